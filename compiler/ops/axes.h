/* Sets of axes that an input lists. Mostly constants, but a model may compute them in the run; then membership is an
 * expression that is 0 or 1, and extents and indices are sums weighted by it. Private to compiler/ops. */
#ifndef LTH_OPS_AXES_H
#define LTH_OPS_AXES_H

#include "compiler/ops/infer.h"

struct lth_axes {
	uint32_t rank;
	bool known;               /* plain numbers: `flags` is the set */
	uint32_t flags;
	lth_dim in[LTH_MAX_RANK]; /* 1 where the axis is in the set, else 0 */
};

/* 1 when a == value, else 0; a number when a is one. */
lth_dim lth_dim_is(struct lth_dims *dims, lth_dim a, int64_t value);
/* 1 when `axis` of `rank`, counted from either end, is meant by a. */
lth_dim lth_dim_is_axis(struct lth_dims *dims, lth_dim a, uint32_t axis, uint32_t rank);
/* The set that the contents list. */
void lth_axes_read(struct lth_dims *dims, const struct lth_contents *list, uint32_t rank, struct lth_axes *out);
/* 1 when axis `axis` is not in the set and `place` axes before it are not either. */
lth_dim lth_axes_is_kept(struct lth_dims *dims, const struct lth_axes *axes, uint32_t axis, uint32_t place);
/* a * b + (1 - a) * c for a of 0 or 1. */
lth_dim lth_dim_choose(struct lth_dims *dims, lth_dim a, lth_dim b, lth_dim c);
/* Axes listed in an input: known ones are checked; the others are data symbols. Absent or empty: no axes. */
LTH_MUST_CHECK enum lth_code lth_infer_axes(struct lth_infer *infer, uint32_t input, uint32_t rank,
					    struct lth_axes *out);
/* An axis of extent `out` is made from the elements of one of extent `in`: of none, nothing can be made. */
LTH_MUST_CHECK enum lth_code lth_infer_source(struct lth_infer *infer, lth_dim in, lth_dim out);
/* The same set again when the node is lowered. */
void lth_node_axes(struct lth_graph *graph, const struct lth_node *node, uint32_t input, uint32_t rank,
		   struct lth_axes *out);

#endif
