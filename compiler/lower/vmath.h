/* Math functions as expansions into basic loop IR, so that every target and the interpreter compute the same: within
 * 4 ulp, with the right nan, infinities and signed zeros. Shared by vmath.c and vmath64.c, with short names for building
 * arithmetic; not for other files, which call lth_vmath. */
#ifndef LTH_LOWER_VMATH_H
#define LTH_LOWER_VMATH_H

#include "compiler/lower/loop_build.h"

/* The value of math function `op` at a (and b, for POW), or LTH_LV_NONE when the operator is no math function or has no
 * expansion (f64, lgamma: libm's function, lane by lane). vmath.c */
lth_lv lth_vmath(struct lth_loop_fn *fn, enum lth_scalar_op op, lth_lv a, lth_lv b);
/* The functions of f32 that are computed in f64, where exactness is cheap. vmath64.c */
lth_lv lth_vmath64(struct lth_loop_fn *fn, enum lth_scalar_op op, lth_lv a, lth_lv b);

static inline lth_lv add(struct lth_loop_fn *fn, lth_lv a, lth_lv b)
{
	return lth_loop_op2(fn, LTH_SCALAR_ADD, a, b);
}

static inline lth_lv sub(struct lth_loop_fn *fn, lth_lv a, lth_lv b)
{
	return lth_loop_op2(fn, LTH_SCALAR_SUB, a, b);
}

static inline lth_lv mul(struct lth_loop_fn *fn, lth_lv a, lth_lv b)
{
	return lth_loop_op2(fn, LTH_SCALAR_MUL, a, b);
}

static inline lth_lv quotient(struct lth_loop_fn *fn, lth_lv a, lth_lv b)
{
	return lth_loop_op2(fn, LTH_SCALAR_DIV, a, b);
}

/* a * b + c */
static inline lth_lv mul_add(struct lth_loop_fn *fn, lth_lv a, lth_lv b, lth_lv c)
{
	return lth_loop_op3(fn, LTH_SCALAR_FMA, a, b, c);
}

static inline lth_lv pick(struct lth_loop_fn *fn, lth_lv condition, lth_lv yes, lth_lv no)
{
	return lth_loop_op3(fn, LTH_SCALAR_SELECT, condition, yes, no);
}

static inline lth_lv less(struct lth_loop_fn *fn, lth_lv a, lth_lv b)
{
	return lth_loop_op2(fn, LTH_SCALAR_LT, a, b);
}

static inline lth_lv equal(struct lth_loop_fn *fn, lth_lv a, lth_lv b)
{
	return lth_loop_op2(fn, LTH_SCALAR_EQ, a, b);
}

static inline lth_lv magnitude(struct lth_loop_fn *fn, lth_lv a)
{
	return lth_loop_op1(fn, LTH_SCALAR_ABS, a);
}

static inline lth_lv negative(struct lth_loop_fn *fn, lth_lv a)
{
	return lth_loop_op1(fn, LTH_SCALAR_NEG, a);
}

static inline lth_lv f32(struct lth_loop_fn *fn, double value)
{
	return lth_loop_const_f(fn, LTH_DTYPE_F32, value);
}

static inline lth_lv f64(struct lth_loop_fn *fn, double value)
{
	return lth_loop_const_f(fn, LTH_DTYPE_F64, value);
}

/* A polynomial with `count` coefficients, lowest first, in the type of x. */
static inline lth_lv polynomial(struct lth_loop_fn *fn, lth_lv x, const double *coefficients, unsigned count)
{
	enum lth_dtype dtype = lth_loop_get(fn, x)->dtype;
	lth_lv sum = lth_loop_const_f(fn, dtype, coefficients[count - 1]);
	for (unsigned k = count - 1; k-- > 0;)
		sum = mul_add(fn, sum, x, lth_loop_const_f(fn, dtype, coefficients[k]));
	return sum;
}

/* `value` (not negative) with the sign of x, both f32. */
static inline lth_lv with_sign(struct lth_loop_fn *fn, lth_lv value, lth_lv x)
{
	lth_lv sign = lth_loop_op2(fn, LTH_SCALAR_AND, lth_loop_bitcast(fn, x, LTH_DTYPE_U32),
				   lth_loop_const_i(fn, LTH_DTYPE_U32, 0x80000000));
	lth_lv bits = lth_loop_op2(fn, LTH_SCALAR_OR, lth_loop_bitcast(fn, value, LTH_DTYPE_U32), sign);
	return lth_loop_bitcast(fn, bits, LTH_DTYPE_F32);
}

#endif
