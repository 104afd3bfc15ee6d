/* Interpolation. See sample.h. */
#include "compiler/ops/sample.h"

lth_sx lth_cubic_weight(struct lth_sx_pool *pool, lth_sx d, double a)
{
	lth_sx t = lth_unary(pool, LTH_SCALAR_ABS, d), one = lth_same_const(pool, d, 1),
	       zero = lth_same_const(pool, d, 0);
	/* ((a + 2) t - (a + 3)) t^2 + 1 */
	lth_sx near = lth_sub(pool, lth_mul(pool, t, lth_same_const(pool, d, a + 2)), lth_same_const(pool, d, a + 3));
	near = lth_add(pool, lth_mul(pool, near, lth_mul(pool, t, t)), one);
	/* ((a t - 5 a) t + 8 a) t - 4 a */
	lth_sx far = lth_sub(pool, lth_mul(pool, t, lth_same_const(pool, d, a)), lth_same_const(pool, d, 5 * a));
	far = lth_add(pool, lth_mul(pool, far, t), lth_same_const(pool, d, 8 * a));
	far = lth_sub(pool, lth_mul(pool, far, t), lth_same_const(pool, d, 4 * a));
	return lth_sx_select(pool, lth_le(pool, t, one), near,
			     lth_sx_select(pool, lth_lt(pool, t, lth_same_const(pool, d, 2)), far, zero));
}

lth_sx lth_linear_weight(struct lth_sx_pool *pool, lth_sx d)
{
	lth_sx weight = lth_sub(pool, lth_same_const(pool, d, 1), lth_unary(pool, LTH_SCALAR_ABS, d));
	return lth_max(pool, weight, lth_same_const(pool, d, 0));
}

lth_sx lth_sample_sum(struct lth_lower *lower, lth_value_id value, const struct lth_taps *taps, const uint32_t *axes,
			   uint32_t count, lth_sx *at)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	if (count == 0)
		return lth_read(lower, value, at);
	lth_sx sum = LTH_SX_NONE;
	for (uint32_t k = 0; k < taps->count; k++) {
		at[axes[0]] = taps->index[k];
		lth_sx x = lth_sample_sum(lower, value, taps + 1, axes + 1, count - 1, at);
		enum lth_dtype type = lth_sx_dtype(pool, x);
		enum lth_dtype work = lth_is_float(type) ? type : LTH_DTYPE_F64;
		x = lth_mul(pool, lth_sx_cast(pool, x, work), lth_sx_cast(pool, taps->weight[k], work));
		sum = sum == LTH_SX_NONE ? x : lth_add(pool, sum, x);
	}
	return sum;
}
