/* What the operators on sequences, optionals and maps share. Private to compiler/ops.
 *
 * Where the graph tells what a list holds, nothing is left of it: a part of a known list is the value that was put in.
 * Lists are told by walking back over the nodes that made them, never remembered, so passes may move what they like. */
#ifndef LTH_OPS_OBJECT_H
#define LTH_OPS_OBJECT_H

#include "compiler/ops/family.h"

#include "compiler/ops/build.h"

enum { LTH_MAX_KNOWN_LIST = 256 };

struct lth_known_list {
	uint32_t count;
	lth_value_id items[LTH_MAX_KNOWN_LIST];
};

/* The items of a sequence or optional, where the graph tells them; false where only the run does, or there are too
 * many. object_list.c */
bool lth_list_known(struct lth_graph *graph, lth_value_id list, struct lth_known_list *out);
/* A position that inference knows: the one element of input `input`; false where only the run knows. */
bool lth_list_position(const struct lth_infer *infer, uint32_t input, int64_t *out);
/* For expansions: item `index` (a value) of a list, as a value of its own. `optional`: for messages. */
LTH_MUST_CHECK enum lth_code lth_build_item(struct lth_infer *infer, lth_value_id list, lth_value_id index,
					    bool optional, lth_value_id *out);
/* The same while a loop's types have not settled, when what is common to elements may be less in the end: output 0's
 * type alone. `index` matters to maps only, and may be LTH_NONE for others. */
LTH_MUST_CHECK enum lth_code lth_infer_item(struct lth_infer *infer, lth_value_id list, lth_value_id index);
lth_value_id lth_build_sequence(struct lth_infer *infer, const lth_value_id *items, uint32_t count);
/* A sequence into which things of any type can be put. */
lth_value_id lth_build_empty(struct lth_infer *infer);
/* The rank that all tensors of a list have: that of their type, else what the model declares of the node's result, which
 * has `more` axes. Refuses where nothing tells. */
LTH_MUST_CHECK enum lth_code lth_list_rank(struct lth_infer *infer, const struct lth_type *list, uint32_t more,
					   uint32_t *out);

#endif
