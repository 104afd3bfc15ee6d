/* Interpolation between the elements of a tensor: neighbours with weights along each axis, and the sum over their
 * combinations. Private to compiler/ops. */
#ifndef LTH_OPS_SAMPLE_H
#define LTH_OPS_SAMPLE_H

#include "compiler/ops/family.h"

enum { LTH_MAX_TAPS = 32 };

/* Neighbours of a point along one axis: indices in range, weights of a floating-point type. */
struct lth_taps {
	uint32_t count;
	lth_sx index[LTH_MAX_TAPS], weight[LTH_MAX_TAPS];
};

/* Weights at distance d (f32 or f64): Keys' cubic with parameter a, reaching 2; linear, reaching 1. */
lth_sx lth_cubic_weight(struct lth_sx_pool *pool, lth_sx d, double a);
lth_sx lth_linear_weight(struct lth_sx_pool *pool, lth_sx d);

/* Sum over all combinations of the taps of the `count` axes in `axes`; `at` holds the index along the others. Integers
 * are summed in f64, floats in their own type. */
lth_sx lth_sample_sum(struct lth_lower *lower, lth_value_id value, const struct lth_taps *taps, const uint32_t *axes,
		      uint32_t count, lth_sx *at);

#endif
