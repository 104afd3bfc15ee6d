/* What the operators of control flow share (control.c, control_if.c). Private to compiler/ops. */
#ifndef LTH_OPS_CONTROL_H
#define LTH_OPS_CONTROL_H

#include "compiler/ops/family.h"

/* The region that an attribute holds; LTH_NONE where none does. */
lth_region_id lth_control_region(const struct lth_node *node, const char *name);
/* Infers a region of the node; errors say that they come from inside of it. */
LTH_MUST_CHECK enum lth_code lth_control_enter(struct lth_infer *infer, lth_region_id region);
/* Moves a region's nodes before the node, with their guards; false when out of memory. control_if.c */
bool lth_control_move_before(struct lth_infer *infer, lth_region_id inner);

/* A loop may carry an optional whose body gives the value itself: the value becomes an optional at the body's end, and
 * what the loop gives is taken out of it behind the loop. control_optional.c */
LTH_MUST_CHECK enum lth_code lth_control_wrap(struct lth_infer *infer, lth_region_id body, uint32_t output,
					      struct lth_type *out);
LTH_MUST_CHECK enum lth_code lth_control_unwrap(struct lth_infer *infer, lth_region_id body, uint32_t body_output,
						uint32_t output);

/* Copies of nodes. `map` has the copy of each value, or what stands for it; LTH_NONE: the value itself. Values beyond
 * `num_values` came later and are nobody's original. control_copy.c */
struct lth_copier {
	struct lth_graph *graph;
	lth_value_id *map;
	uint32_t num_values;
};
bool lth_copier_init(struct lth_copier *copier, struct lth_graph *graph);
lth_value_id lth_copied(const struct lth_copier *copier, lth_value_id value);
/* Appends copies of the nodes to a region; false when out of memory. */
bool lth_copy_nodes(struct lth_copier *copier, const lth_node_id *nodes, uint32_t count, lth_region_id to);

/* Whether nodes stand behind the node in its region. control_split.c */
bool lth_control_has_rest(const struct lth_infer *infer);
/* Moves them into regions of the node, an If: copies in all but the first. The node gives what its region gives then, and
 * the regions are to be inferred again. */
LTH_MUST_CHECK enum lth_code lth_control_move_rest(struct lth_infer *infer, const lth_region_id *arms, uint32_t num_arms);

/* Whether a node may become an If whose results differ in rank: what follows is known, and may be moved. */
bool lth_control_may_split(const struct lth_infer *infer);
/* A Squeeze becomes an If: it drops the axes `ones`, and those of the axes `open` that are 1. control_squeeze.c */
LTH_MUST_CHECK enum lth_code lth_control_squeeze(struct lth_infer *infer, uint32_t ones, uint32_t open);

#endif
