/* Orientation plans: what a plan at one set of sizes is worth at every other. A plan orders each pair of buffers
 * that live at the same step: one lies below the other. Only that order is kept; at other sizes
 *     offset(b) = max over a below b of align(offset(a) + size(a))
 * so nothing can overlap, whatever the sizes; at the sizes of the plan nothing lies higher than there; and all
 * offsets are monotone in all sizes (above 0), so sizes at their upper bounds bound the arena. Pairs that follow
 * from others are left out: those that are neighbours in the order of offsets at some step imply the rest, at most
 * three a buffer, and of these the ones that a path of two others implies go too. Thread rule: reentrant; an
 * orientation is read-only once built. */
#ifndef LTH_MEMORY_ORIENT_H
#define LTH_MEMORY_ORIENT_H

#include "compiler/memory/plan/plan.h"

/* In the form that one linear pass evaluates: entries in an order in which everything below comes before. */
struct lth_orient {
	uint32_t count, num_edges;
	uint32_t *buffers; /* by entry: which buffer */
	uint32_t *edges;   /* count + 1 positions in `below` */
	uint32_t *below;   /* entries, smaller than their own */
};

/* The orientation of a valid plan, in O(n log n). The caller frees it. */
LTH_MUST_CHECK enum lth_code lth_orient_build(const struct lth_buffer *buffers, const int64_t *offsets, size_t count,
					      struct lth_orient *out_orient, struct lth_diag *diag);
void lth_orient_free(struct lth_orient *orient);

/* Offsets and height at `sizes` (of the buffers, in their order); only alignments are read of `buffers`. Sizes are
 * taken as plan.h says, and the height has the same meaning. False, and nothing written to `*out_height`, on
 * overflow. */
LTH_MUST_CHECK bool lth_orient_evaluate(const struct lth_orient *orient, const struct lth_buffer *buffers,
					const int64_t *sizes, int64_t *offsets, int64_t *out_height);

/* A few orientations, of which the best is taken at each shape. */
enum { LTH_ORIENT_MAX = 8 };
struct lth_orient_set {
	struct lth_orient orients[LTH_ORIENT_MAX];
	uint32_t count;
};

/* Plans at each of `num_samples` (1 to LTH_ORIENT_MAX) rows of `sizes`, row k beginning at sizes[k * count], and
 * keeps the orientations that are best at some row. */
LTH_MUST_CHECK enum lth_code lth_orient_choose(const struct lth_buffer *buffers, size_t count, const int64_t *sizes,
					       uint32_t num_samples, const struct lth_plan_options *options,
					       struct lth_orient_set *out_set, struct lth_diag *diag);
void lth_orient_set_free(struct lth_orient_set *set);

/* The orientation that is lowest at `sizes`, the first among equals, with its offsets and height; UINT32_MAX when all
 * overflow. `scratch` has room for one offset a buffer. */
LTH_MUST_CHECK uint32_t lth_orient_set_evaluate(const struct lth_orient_set *set, const struct lth_buffer *buffers,
						const int64_t *sizes, int64_t *scratch, int64_t *offsets,
						int64_t *out_height);

#endif
