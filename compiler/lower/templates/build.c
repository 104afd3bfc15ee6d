/* Small pieces of loop IR that every template needs. */
#include "compiler/lower/templates/internal.h"

static lth_lv unsigned_op(struct lth_loop_fn *fn, enum lth_scalar_op op, lth_lv a, lth_lv b)
{
	if (lth_loop_get(fn, a)->lanes > 1) /* vectors of constants and ramps */
		return lth_loop_op2(fn, op, a, b);
	lth_lv a_bits = lth_loop_bitcast(fn, a, LTH_DTYPE_U64), b_bits = lth_loop_bitcast(fn, b, LTH_DTYPE_U64);
	lth_lv result = lth_loop_op2(fn, op, a_bits, b_bits);
	return lth_loop_bitcast(fn, result, LTH_DTYPE_I64);
}

lth_lv t_div(struct lth_loop_fn *fn, lth_lv a, lth_lv b)
{
	return unsigned_op(fn, LTH_SCALAR_DIV, a, b);
}

lth_lv t_rem(struct lth_loop_fn *fn, lth_lv a, lth_lv b)
{
	return unsigned_op(fn, LTH_SCALAR_REM, a, b);
}

lth_lv lth_t_zero(struct lth_loop_fn *fn, enum lth_dtype dtype, unsigned lanes)
{
	lth_lv zero = lth_dtype_class(dtype) == LTH_CLASS_FLOAT ? lth_loop_const_f(fn, dtype, 0)
								 : lth_loop_const_i(fn, dtype, 0);
	return lanes == 1 ? zero : lth_loop_splat(fn, zero, lanes);
}

lth_lv lth_t_inside(struct lth_loop_fn *fn, lth_lv index, lth_lv limit)
{
	lth_lv index_bits = lth_loop_bitcast(fn, index, LTH_DTYPE_U64);
	return t_lt(fn, index_bits, lth_loop_bitcast(fn, limit, LTH_DTYPE_U64));
}

bool lth_t_is(struct lth_dims *dims, lth_dim dim, int64_t value)
{
	int64_t constant;
	return lth_dim_is_const(dims, dim, &constant) && constant == value;
}

lth_lv lth_t_stride(struct lth_emit *emit, lth_dim dim)
{
	if (lth_t_is(emit->dims, dim, 0))
		return lth_loop_i64(emit->fn, 0);
	if (lth_t_is(emit->dims, dim, 1))
		return lth_loop_i64(emit->fn, 1);
	return lth_t_param(emit, dim);
}

int64_t lth_t_likely(struct lth_dims *dims, lth_dim dim)
{
	enum { MOST = 1 << 24 }; /* so that products of two fit, whatever a model says */
	int64_t value;
	if (!lth_dim_eval_likely(dims, dim, &value) || value < 1)
		return 1;
	return value < MOST ? value : MOST;
}

lth_dim lth_t_min_units(struct lth_dims *dims, lth_dim flops_per_unit)
{
	enum { WORTH_A_THREAD = 2000000 }; /* about 20 us of one core */
	int64_t flops = lth_t_likely(dims, flops_per_unit);
	return lth_dim_const(dims, flops < 1 ? WORTH_A_THREAD : 1 + (WORTH_A_THREAD - 1) / flops);
}

void lth_t_unflatten(struct lth_loop_fn *fn, lth_lv flat, const lth_lv *extents, uint32_t count, lth_lv *out)
{
	for (uint32_t axis = count; axis-- > 1;) {
		out[axis] = t_rem(fn, flat, extents[axis]);
		flat = t_div(fn, flat, extents[axis]);
	}
	if (count)
		out[0] = flat;
}

lth_lv lth_t_least(struct lth_loop_fn *fn, enum lth_dtype dtype)
{
	if (lth_dtype_class(dtype) == LTH_CLASS_FLOAT)
		return lth_loop_const_f(fn, dtype, -__builtin_inf());
	return lth_loop_const_i(fn, dtype, dtype == LTH_DTYPE_I8 ? INT8_MIN : 0);
}

bool lth_t_loads_as(enum lth_dtype memory, enum lth_dtype compute)
{
	return lth_dtype_bits(memory) >= 8 && lth_dtype_class(memory) == LTH_CLASS_FLOAT &&
	       lth_compute_dtype(memory) == compute;
}
