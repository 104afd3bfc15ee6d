/* Planning for a box of shapes: a few orientations (plan/orient.h), of which the best is taken at each shape. The box
 * is known by rows of sizes, one row a sampled shape. Thread rule: reentrant. */
#ifndef LTH_MEMORY_PLAN_BOX_H
#define LTH_MEMORY_PLAN_BOX_H

#include "compiler/memory/plan/orient.h"

struct lth_box {
	struct lth_buffer *buffers; /* sizes are scratch */
	size_t count;
	const int64_t *sizes; /* num_rows rows of `count`; row 0 is the shape that matters most */
	uint32_t num_rows;
};

struct lth_box_plan {
	struct lth_orient_set set;
	struct lth_plan_result hint; /* the plan of row 0 */
	int64_t nodes;
	bool cut_short;
	double mean_ratio, worst_ratio; /* arena over live bound, over the rows */
};

/* Plans row 0, then again and again the row that stands highest over its live bound, until none stands above it, no
 * plan helps, or the set is full. Orientations that are best at no row are dropped. The caller frees the result. */
LTH_MUST_CHECK enum lth_code lth_box_plan(const struct lth_box *box, const struct lth_plan_options *options,
					  struct lth_box_plan *out_plan, struct lth_diag *diag);
void lth_box_plan_free(struct lth_box_plan *plan);

#endif
