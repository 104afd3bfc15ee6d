/* The math functions that models spend their time in, in f32: exp, log, tanh, erf, sigmoid. See vmath.h. Polynomials are
 * minimax fits of the form named beside them. Odd functions work on the magnitude and take the sign back at the end, which
 * keeps -0. Measured bounds (bench/codegen, all exponents): exp 0.9, log 1.0, tanh 2.0, erf 1.1, sigmoid 2.4 ulp. */
#include "compiler/lower/vmath.h"

#include "compiler/lower/lanes.h"

#include <math.h>

/* exp(x) = 2^n * exp(r), r = x - n ln 2. Beyond the bounds the result is 0 or infinity all the same. */
static lth_lv exp32(struct lth_loop_fn *fn, lth_lv x)
{
	static const double terms[] = {1, 1, 0.499999851, 1.6666472e-1, 4.16695364e-2, 8.37312452e-3, 1.37805939e-3};
	x = lth_loop_op2(fn, LTH_SCALAR_MIN, lth_loop_op2(fn, LTH_SCALAR_MAX, x, f32(fn, -105)), f32(fn, 90));
	lth_lv n = lth_loop_op1(fn, LTH_SCALAR_RINT, mul(fn, x, f32(fn, 1.44269504088896341)));
	lth_lv r = mul_add(fn, n, f32(fn, -0.693145751953125), x); /* exact: the constant has 15 bits */
	r = mul_add(fn, n, f32(fn, -1.42860682e-6), r);
	return lth_loop_op2(fn, LTH_SCALAR_SCALE, polynomial(fn, r, terms, 7), n);
}

/* log(x) = e ln 2 + log(m), m in [sqrt(1/2), sqrt(2)), log(1 + f) = f - f^2/2 + f^3 P(f). */
static lth_lv log32(struct lth_loop_fn *fn, lth_lv x)
{
	static const double terms[] = {0.3333333170780454, -0.2500082103550102, 0.20001226865411276, -0.16623357298096098,
				       0.14201758233698006, -0.13160183062597558, 0.12761575644187362,
				       -0.07634493024506682};
	lth_lv zero = f32(fn, 0), small = less(fn, x, f32(fn, 0x1p-126));
	lth_lv normal = pick(fn, small, mul(fn, x, f32(fn, 0x1p23)), x);
	lth_lv bits = lth_loop_bitcast(fn, normal, LTH_DTYPE_I32);
	lth_lv above = sub(fn, bits, lth_loop_const_i(fn, LTH_DTYPE_I32, 0x3f3504f3)); /* sqrt(1/2) */
	lth_lv exponent = lth_loop_op2(fn, LTH_SCALAR_SHR, above, lth_loop_const_i(fn, LTH_DTYPE_I32, 23));
	lth_lv high = lth_loop_op2(fn, LTH_SCALAR_AND, above, lth_loop_const_i(fn, LTH_DTYPE_I32, -0x800000));
	lth_lv f = sub(fn, lth_loop_bitcast(fn, sub(fn, bits, high), LTH_DTYPE_F32), f32(fn, 1));
	lth_lv e = lth_loop_cast(fn, exponent, LTH_DTYPE_F32);
	e = add(fn, e, pick(fn, small, f32(fn, -23), zero));
	lth_lv z = mul(fn, f, f);
	lth_lv cube = mul(fn, f, z);
	lth_lv sum = mul(fn, cube, polynomial(fn, f, terms, 8));
	sum = mul_add(fn, e, f32(fn, -2.12194440e-4), sum);
	sum = mul_add(fn, z, f32(fn, -0.5), sum);
	sum = mul_add(fn, e, f32(fn, 0.693359375), add(fn, f, sum));
	lth_lv odd = pick(fn, equal(fn, x, zero), f32(fn, -INFINITY), f32(fn, NAN));
	sum = pick(fn, less(fn, zero, x), sum, odd);
	return pick(fn, equal(fn, x, f32(fn, INFINITY)), x, sum);
}

/* Below 0.55 a polynomial, else 1 - 2 / (exp(2|x|) + 1). */
static lth_lv tanh32(struct lth_loop_fn *fn, lth_lv x)
{
	static const double terms[] = {-0.333327681, 0.133152977, -5.23007087e-2, 1.57296831e-2};
	lth_lv t = magnitude(fn, x), z = mul(fn, t, t), one = f32(fn, 1);
	lth_lv cube = mul(fn, t, z);
	lth_lv near = mul_add(fn, cube, polynomial(fn, z, terms, 4), t);
	lth_lv far = sub(fn, one, quotient(fn, f32(fn, 2), add(fn, exp32(fn, add(fn, t, t)), one)));
	return with_sign(fn, pick(fn, less(fn, t, f32(fn, 0.55)), near, far), x);
}

/* Below 0.9277 x + x Q(x^2), else 1 - exp(-(t + t R(t))); from 4 on the result is 1. */
static lth_lv erf32(struct lth_loop_fn *fn, lth_lv x)
{
	static const double near_terms[] = {0.1283791505070343, -0.37612497615349544, 0.11281838682984018,
					    -0.026766905252533175, 0.0049929818912653485, -0.000598723532232297};
	static const double far_terms[] = {0.12864848997578804, 0.6351513176051907, 0.10623687549703134,
					   -0.023762060888705812, 0.0036424579812152228, -0.00032280357785495366,
					   1.12312760934035e-05};
	lth_lv t = magnitude(fn, x), z = mul(fn, t, t);
	lth_lv near = mul_add(fn, t, polynomial(fn, z, near_terms, 6), t);
	lth_lv u = lth_loop_op2(fn, LTH_SCALAR_MIN, t, f32(fn, 4));
	lth_lv power = mul_add(fn, u, polynomial(fn, u, far_terms, 7), u);
	lth_lv far = sub(fn, f32(fn, 1), exp32(fn, negative(fn, power)));
	return with_sign(fn, pick(fn, less(fn, t, f32(fn, 0.9277)), near, far), x);
}

/* 1 / (1 + e) or e / (1 + e) with e = exp(-|x|), which never overflows and keeps small results exact. */
static lth_lv sigmoid32(struct lth_loop_fn *fn, lth_lv x)
{
	enum lth_dtype dtype = lth_loop_get(fn, x)->dtype;
	lth_lv one = lth_loop_const_f(fn, dtype, 1), zero = lth_loop_const_f(fn, dtype, 0);
	lth_lv power = negative(fn, magnitude(fn, x));
	lth_lv e = dtype == LTH_DTYPE_F32 ? exp32(fn, power) : lth_loop_op1(fn, LTH_SCALAR_EXP, power);
	lth_lv above = pick(fn, less(fn, x, zero), e, one);
	return quotient(fn, above, add(fn, one, e));
}

lth_lv lth_vmath(struct lth_loop_fn *fn, enum lth_scalar_op op, lth_lv a, lth_lv b)
{
	if (op == LTH_SCALAR_SIGMOID)
		return sigmoid32(fn, a);
	if (lth_loop_get(fn, a)->dtype != LTH_DTYPE_F32)
		return LTH_LV_NONE;
	switch (op) {
	case LTH_SCALAR_EXP:
		return exp32(fn, a);
	case LTH_SCALAR_LOG:
		return log32(fn, a);
	case LTH_SCALAR_TANH:
		return tanh32(fn, a);
	case LTH_SCALAR_ERF:
		return erf32(fn, a);
	default:
		return lth_vmath64(fn, op, a, b);
	}
}
