/* Groups: the nodes that become one kernel, as FuseOps formed them. Lowering and ManifestAlloc read the graph through
 * this list. Thread rule: as the graph's. */
#ifndef LTH_PASSES_GROUPS_H
#define LTH_PASSES_GROUPS_H

#include "compiler/ops/op.h"

struct lth_group {
	uint32_t id;            /* node->group of its nodes */
	lth_region_id region;
	lth_node_id anchor;     /* its TEMPLATE or REDUCTION node, or LTH_NONE */
	const lth_node_id *nodes; /* definitions before uses */
	/* Values read from outside, each once, in order of first use; of control nodes those that their regions capture,
	 * too. Not among them: absent inputs, and values whose known contents make reading memory unnecessary. */
	const lth_value_id *inputs;
	/* Values that other groups or a region's outputs read, in order of definition. */
	const lth_value_id *outputs;
	uint32_t num_nodes, num_inputs, num_outputs;
};

/* All groups of one region after the other, those of region r at list[first[r]] .. list[first[r + 1] - 1], each
 * region's in an order in which producers precede readers and which is otherwise that of the nodes. Groups that nobody
 * reads (computations on shapes that compile time has done) are left out. */
struct lth_groups {
	struct lth_group *list;
	uint32_t count;
	const uint32_t *first; /* num_regions + 1 entries */
};

/* Without FuseOps: every node is a group of its own, numbered in order. */
void lth_group_each_node(struct lth_graph *graph);

/* The list, owned by `arena`. Every live node must have a group, no group may span regions. LTH_INTERNAL when groups
 * depend on each other in a cycle; LTH_OUT_OF_MEMORY. */
LTH_MUST_CHECK enum lth_code lth_graph_groups(struct lth_graph *graph, struct lth_arena *arena,
					      struct lth_groups *out, struct lth_diag *diag);

/* True when a kernel that computes `node` loads input `index` from memory: false for absent inputs, for values whose
 * contents are known wherever lowering reads through expressions, and for operands that only tell a shape. */
bool lth_node_loads_input(const struct lth_graph *graph, const struct lth_node *node, uint32_t index);

/* Calls `visit` for every value of outer regions that the node's regions read (each use, in order), nested ones too. */
void lth_node_captures(const struct lth_graph *graph, const struct lth_node *node,
		       void (*visit)(void *context, lth_value_id value), void *context);

#endif
