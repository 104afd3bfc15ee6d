/* Sub-byte elements (i4, u4, i2, u2, f4e2m1), several to a byte, low bits first: reading one as an expression, and
 * kernels whose output is packed, which compute whole bytes. */
#include "compiler/lower/lower_group.h"

static lth_sx op(struct lth_sx_pool *pool, enum lth_scalar_op o, lth_sx a, lth_sx b)
{
	return lth_sx_op2(pool, o, a, b);
}

static lth_sx byte_const(struct lth_sx_pool *pool, int64_t value)
{
	return lth_sx_const_i(pool, LTH_DTYPE_U8, value);
}

/* 4 bits of float to f32: two exponent bits with bias 1, one of mantissa. */
static lth_sx widen_f4(struct lth_sx_pool *pool, lth_sx bits)
{
	static const double magnitudes[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
	lth_sx code = op(pool, LTH_SCALAR_AND, bits, byte_const(pool, 7));
	lth_sx value = lth_sx_const_f(pool, LTH_DTYPE_F32, 0);
	for (int i = 1; i < 8; i++)
		value = lth_sx_select(pool, op(pool, LTH_SCALAR_EQ, code, byte_const(pool, i)),
				      lth_sx_const_f(pool, LTH_DTYPE_F32, magnitudes[i]), value);
	lth_sx negative = op(pool, LTH_SCALAR_LE, byte_const(pool, 8), bits);
	return lth_sx_select(pool, negative, lth_sx_op1(pool, LTH_SCALAR_NEG, value), value);
}

lth_sx lth_packed_load(struct lth_sx_pool *pool, uint32_t buffer, enum lth_dtype dtype, lth_sx address)
{
	int64_t width = (int64_t)lth_dtype_bits(dtype), each = 8 / width;
	lth_sx per_byte = lth_sx_int(pool, each);
	lth_sx byte = lth_sx_load(pool, buffer, LTH_DTYPE_U8, op(pool, LTH_SCALAR_FLOORDIV, address, per_byte));
	lth_sx place = op(pool, LTH_SCALAR_MOD, address, per_byte);
	lth_sx shift = lth_sx_cast(pool, op(pool, LTH_SCALAR_MUL, place, lth_sx_int(pool, width)), LTH_DTYPE_U8);
	lth_sx bits = op(pool, LTH_SCALAR_AND, op(pool, LTH_SCALAR_SHR, byte, shift), byte_const(pool, (1 << width) - 1));
	if (dtype == LTH_DTYPE_F4E2M1)
		return widen_f4(pool, bits);
	if (lth_dtype_class(dtype) == LTH_CLASS_UINT)
		return bits;
	/* (x ^ sign) - sign extends the sign */
	lth_sx sign = lth_sx_const_i(pool, LTH_DTYPE_I8, 1 << (width - 1));
	lth_sx low = lth_sx_cast(pool, bits, LTH_DTYPE_I8);
	return op(pool, LTH_SCALAR_SUB, op(pool, LTH_SCALAR_XOR, low, sign), sign);
}

/* The bits of a value of the compute type; of f32 the nearest of the eight magnitudes, ties to the even code. */
static lth_sx narrow(struct lth_sx_pool *pool, enum lth_dtype dtype, lth_sx x)
{
	static const struct {
		double limit;
		bool inclusive;
	} steps[7] = {{0.25, false}, {0.75, true}, {1.25, false}, {1.75, true}, {2.5, false}, {3.5, true}, {5, false}};
	if (dtype != LTH_DTYPE_F4E2M1)
		return op(pool, LTH_SCALAR_AND, lth_sx_cast(pool, x, LTH_DTYPE_U8),
			  byte_const(pool, (1 << lth_dtype_bits(dtype)) - 1));
	lth_sx magnitude = lth_sx_op1(pool, LTH_SCALAR_ABS, x), code = byte_const(pool, 0);
	for (int i = 0; i < 7; i++) {
		lth_sx limit = lth_sx_const_f(pool, LTH_DTYPE_F32, steps[i].limit);
		lth_sx above = op(pool, steps[i].inclusive ? LTH_SCALAR_LE : LTH_SCALAR_LT, limit, magnitude);
		code = op(pool, LTH_SCALAR_ADD, code, lth_sx_cast(pool, above, LTH_DTYPE_U8));
	}
	lth_sx negative = op(pool, LTH_SCALAR_LT, lth_sx_bitcast(pool, x, LTH_DTYPE_I32),
			     lth_sx_const_i(pool, LTH_DTYPE_I32, 0));
	return lth_sx_select(pool, negative, op(pool, LTH_SCALAR_ADD, code, byte_const(pool, 8)), code);
}

lth_sx lth_packed_byte(struct lth_lower *lower, lth_value_id value, lth_sx byte)
{
	struct lth_sx_pool *pool = lower->pool;
	const struct lth_type type = lower->graph->values[value].type;
	int64_t width = (int64_t)lth_dtype_bits(type.dtype), each = 8 / width;
	lth_sx last = lth_sx_op2(pool, LTH_SCALAR_SUB,
				 lth_sx_dim(pool, lth_dim_product(lower->graph->dims, type.dims, type.rank)),
				 lth_sx_int(pool, 1));
	lth_sx sum = byte_const(pool, 0);
	for (int64_t i = 0; i < each; i++) {
		lth_sx index[LTH_MAX_RANK];
		lth_sx flat = op(pool, LTH_SCALAR_ADD, op(pool, LTH_SCALAR_MUL, byte, lth_sx_int(pool, each)),
				 lth_sx_int(pool, i));
		lth_sx inside = op(pool, LTH_SCALAR_LE, flat, last);
		lth_unflatten_index(lower, value, op(pool, LTH_SCALAR_MIN, flat, last), index);
		lth_sx x = lth_read(lower, value, index);
		if (x == LTH_SX_NONE)
			return x;
		lth_sx bits = lth_sx_select(pool, inside, narrow(pool, type.dtype, x), byte_const(pool, 0));
		bits = op(pool, LTH_SCALAR_SHL, bits, byte_const(pool, i * width));
		sum = op(pool, LTH_SCALAR_OR, sum, bits);
	}
	return sum;
}
