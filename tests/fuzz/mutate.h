/* A model as the mutator sees it: the tree of its messages, in an arena that goes with the mutation. */
#ifndef LTH_TESTS_FUZZ_MUTATE_H
#define LTH_TESTS_FUZZ_MUTATE_H

#include "compiler/import/onnx_internal.h"
#include "compiler/ops/op.h"

/* A model, with all of its messages and names. */
struct tree {
	struct lth_arena *arena;
	ProtobufCMessage *root;
	ProtobufCMessage **messages;
	char **names;
	uint32_t num_messages, num_names, cap_messages, cap_names;
	uint64_t random;
};

uint32_t mutate_pick(struct tree *tree, uint32_t below); /* 0 for 0 */
/* A number at an edge, near `old`, or small. */
int64_t mutate_number(struct tree *tree, int64_t old);
double mutate_real(struct tree *tree, double old);
/* A copy, so that no message comes to hold itself; NULL when the arena is exhausted. */
ProtobufCMessage *mutate_copy(struct tree *tree, const ProtobufCMessage *message);

/* mutate_node.c: a whole node of any operator into one of the graphs, with operands that the graph has. */
void mutate_add_node(struct tree *tree);

#endif
