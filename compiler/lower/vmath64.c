/* The rarer math functions of f32, computed in f64 where rounding and cancellation cost nothing: three cores (exp - 1, log
 * and sine with cosine) and short formulas over them. See vmath.h. Every result is within 0.6 ulp of f32 but for what the
 * last rounding does to denormals. */
#include "compiler/lower/vmath.h"

#include "compiler/lower/lanes.h"

#include <math.h>

#define HALF_PI 0x1.921fb54442d18p+0

static lth_lv i64(struct lth_loop_fn *fn, uint64_t value)
{
	return lth_loop_const_i(fn, LTH_DTYPE_I64, (int64_t)value);
}

static lth_lv wide(struct lth_loop_fn *fn, lth_lv a)
{
	return lth_loop_cast(fn, a, LTH_DTYPE_F64);
}

static lth_lv root(struct lth_loop_fn *fn, lth_lv a)
{
	return lth_loop_op1(fn, LTH_SCALAR_SQRT, a);
}

/* exp(x) = 2^n (1 + q) for |x| up to 110; beyond it f32 has 0 and infinity only. */
static void core_exp(struct lth_loop_fn *fn, lth_lv x, lth_lv *out_n, lth_lv *out_q)
{
	static const double terms[] = {0.49999999999664607, 0.16666666667265329, 0.04166666696206079,
				       0.008333333094929445, 0.0013888811174875518, 0.00019841539420880432,
				       2.488079495459636e-05, 2.7492887299497816e-06};
	x = lth_loop_op2(fn, LTH_SCALAR_MIN, lth_loop_op2(fn, LTH_SCALAR_MAX, x, f64(fn, -110)), f64(fn, 110));
	lth_lv n = lth_loop_op1(fn, LTH_SCALAR_RINT, mul(fn, x, f64(fn, 1.44269504088896341)));
	lth_lv r = mul_add(fn, n, f64(fn, -0.69314718055994531), x);
	lth_lv square = mul(fn, r, r);
	*out_q = mul_add(fn, square, polynomial(fn, r, terms, 8), r);
	*out_n = n;
}

/* exp(x) - 1 without cancellation: 2^n q + (2^n - 1). */
static lth_lv core_expm1(struct lth_loop_fn *fn, lth_lv x)
{
	lth_lv n, q;
	core_exp(fn, x, &n, &q);
	lth_lv scale = lth_loop_op2(fn, LTH_SCALAR_SCALE, f64(fn, 1), n);
	return mul_add(fn, scale, q, sub(fn, scale, f64(fn, 1)));
}

/* log(u) for any f64 but denormals; where `near` (a bool, or LTH_LV_NONE) holds, log(1 + f) with the given f, |f| < 0.4,
 * which keeps what 1 + f would lose. The logarithm of m in [sqrt(1/2), sqrt(2)) is a series in f / (2 + f). */
static lth_lv core_log(struct lth_loop_fn *fn, lth_lv u, lth_lv near, lth_lv near_f)
{
	static const double terms[] = {0.33333333333293547, 0.20000000026166395, 0.1428570856082371,
				       0.11111686082796426, 0.09061814658152079, 0.08409980300855524};
	lth_lv bits = lth_loop_bitcast(fn, u, LTH_DTYPE_U64), fifty_two = lth_loop_const_i(fn, LTH_DTYPE_U64, 52);
	/* The exponent with its bias, one more from sqrt(1/2) up: by a logical shift, since u is positive. */
	lth_lv shifted = add(fn, bits, lth_loop_const_i(fn, LTH_DTYPE_U64, 0x3ff0000000000000 - 0x3fe6a09e667f3bcd));
	lth_lv biased = lth_loop_op2(fn, LTH_SCALAR_SHR, shifted, fifty_two);
	lth_lv e_bits = sub(fn, biased, lth_loop_const_i(fn, LTH_DTYPE_U64, 1023));
	lth_lv m = lth_loop_bitcast(fn, sub(fn, bits, lth_loop_op2(fn, LTH_SCALAR_SHL, e_bits, fifty_two)), LTH_DTYPE_F64);
	/* To a float by way of 2^52 + biased. */
	lth_lv magic = lth_loop_op2(fn, LTH_SCALAR_OR, biased, lth_loop_const_i(fn, LTH_DTYPE_U64, 0x4330000000000000));
	lth_lv e = sub(fn, lth_loop_bitcast(fn, magic, LTH_DTYPE_F64), f64(fn, 0x1p52 + 1023));
	lth_lv f = sub(fn, m, f64(fn, 1)), zero = f64(fn, 0);
	if (near != LTH_LV_NONE) {
		f = pick(fn, near, near_f, f);
		e = pick(fn, near, zero, e);
	}
	lth_lv s = quotient(fn, f, add(fn, f, f64(fn, 2)));
	lth_lv z = mul(fn, s, s), twice = add(fn, s, s);
	lth_lv cube = mul(fn, twice, z);
	lth_lv sum = mul_add(fn, cube, polynomial(fn, z, terms, 6), twice);
	sum = mul_add(fn, e, f64(fn, 0.69314718055994531), sum);
	lth_lv odd = pick(fn, equal(fn, u, zero), f64(fn, -INFINITY), f64(fn, NAN));
	sum = pick(fn, less(fn, zero, u), sum, odd);
	return pick(fn, equal(fn, u, f64(fn, INFINITY)), u, sum);
}

/* log(1 + x) */
static lth_lv core_log1p(struct lth_loop_fn *fn, lth_lv x)
{
	lth_lv u = add(fn, x, f64(fn, 1));
	return core_log(fn, u, less(fn, magnitude(fn, x), f64(fn, 0.4)), x);
}

/* The bits of two words, one behind the other, from bit `by` on; `back` is 64 - by. */
static lth_lv shift_two(struct lth_loop_fn *fn, lth_lv high, lth_lv low, lth_lv by, lth_lv back)
{
	high = lth_loop_op2(fn, LTH_SCALAR_SHL, high, by);
	return lth_loop_op2(fn, LTH_SCALAR_OR, high, lth_loop_op2(fn, LTH_SCALAR_SHR, low, back));
}

/* The 64 bits of 2/pi from `position` on, and the next 64, with two zero bits in front of the point: position 0 gives
 * 2/pi * 2^62. Positions up to 104. */
static void two_over_pi(struct lth_loop_fn *fn, lth_lv position, lth_lv *out_high, lth_lv *out_low)
{
	static const uint64_t words[4] = {0x28be60db9391054a, 0x7f09d5f47d4d3770, 0x36d8a5664f10e410, 0x7f9458eaf7aef158};
	lth_lv w[4], sixty_four = lth_loop_const_i(fn, LTH_DTYPE_U64, 64);
	for (int k = 0; k < 4; k++)
		w[k] = lth_loop_const_i(fn, LTH_DTYPE_U64, (int64_t)words[k]);
	lth_lv first = less(fn, position, sixty_four);
	lth_lv by = lth_loop_op2(fn, LTH_SCALAR_AND, position, lth_loop_const_i(fn, LTH_DTYPE_U64, 63));
	lth_lv back = sub(fn, sixty_four, by); /* a shift by 64 gives 0 */
	lth_lv a = pick(fn, first, w[0], w[1]), b = pick(fn, first, w[1], w[2]), c = pick(fn, first, w[2], w[3]);
	*out_high = shift_two(fn, a, b, by, back);
	*out_low = shift_two(fn, b, c, by, back);
}

/* Reduction by Payne and Hanek for f32 x >= 2^23 (others: garbage): x = mantissa * 2^e with a mantissa of 24 bits, so a
 * 64-bit product modulo 2^64 holds x * 2/pi modulo 4 with 62 bits behind the point, all of them right thanks to the low
 * word. */
static void reduce_large(struct lth_loop_fn *fn, lth_lv x, lth_lv *out_rest, lth_lv *out_quadrant)
{
	lth_lv bits = lth_loop_cast(fn, lth_loop_bitcast(fn, x, LTH_DTYPE_U32), LTH_DTYPE_U64);
	lth_lv exponent = sub(fn, lth_loop_op2(fn, LTH_SCALAR_SHR, bits, lth_loop_const_i(fn, LTH_DTYPE_U64, 23)),
			      lth_loop_const_i(fn, LTH_DTYPE_U64, 150));
	lth_lv mantissa = lth_loop_op2(fn, LTH_SCALAR_AND, bits, lth_loop_const_i(fn, LTH_DTYPE_U64, 0x7fffff));
	mantissa = lth_loop_op2(fn, LTH_SCALAR_OR, mantissa, lth_loop_const_i(fn, LTH_DTYPE_U64, 0x800000));
	lth_lv high, low, thirty_two = lth_loop_const_i(fn, LTH_DTYPE_U64, 32);
	two_over_pi(fn, exponent, &high, &low);
	low = lth_loop_op2(fn, LTH_SCALAR_SHR, low, thirty_two);
	lth_lv product = mul(fn, mantissa, high);
	product = add(fn, product, lth_loop_op2(fn, LTH_SCALAR_SHR, mul(fn, mantissa, low), thirty_two));
	/* To the nearest quadrant; what is left is a signed fraction of one. */
	lth_lv rounded = add(fn, product, lth_loop_const_i(fn, LTH_DTYPE_U64, 1ll << 61));
	lth_lv quadrant = lth_loop_op2(fn, LTH_SCALAR_SHR, rounded, lth_loop_const_i(fn, LTH_DTYPE_U64, 62));
	lth_lv rest = lth_loop_op2(fn, LTH_SCALAR_SHL, product, lth_loop_const_i(fn, LTH_DTYPE_U64, 2));
	rest = wide(fn, lth_loop_cast(fn, rest, LTH_DTYPE_I64));
	*out_rest = mul(fn, rest, f64(fn, HALF_PI * 0x1p-64));
	*out_quadrant = lth_loop_cast(fn, quadrant, LTH_DTYPE_I64);
}

/* x >= 0 as quadrant * pi/2 + rest, |rest| <= pi/4; nan for infinity. */
static void reduce(struct lth_loop_fn *fn, lth_lv x, lth_lv *out_rest, lth_lv *out_quadrant)
{
	lth_lv x64 = wide(fn, x), limit = f32(fn, 0x1p23);
	lth_lv n = lth_loop_op1(fn, LTH_SCALAR_RINT, mul(fn, x64, f64(fn, 0.63661977236758134)));
	/* n has 23 bits and the first constant 30, so the product is exact, with or without fused instructions. */
	lth_lv rest = mul_add(fn, n, f64(fn, -0x1.921fb54000000p+0), x64);
	rest = mul_add(fn, n, f64(fn, -0x1.10b4611a62633p-30), rest);
	lth_lv quadrant = lth_loop_bitcast(fn, add(fn, n, f64(fn, 0x1.8p52)), LTH_DTYPE_I64);
	lth_lv large = lth_loop_op2(fn, LTH_SCALAR_LE, limit, x);
	lth_lv first[2] = {rest, quadrant}, out[2];
	lth_loop_if(fn, lth_loop_op1(fn, LTH_SCALAR_NOT, lth_loop_reduce(fn, LTH_SCALAR_OR, large)));
	lth_loop_else(fn, first, 2);
	lth_lv second[2];
	reduce_large(fn, x, &second[0], &second[1]);
	second[0] = pick(fn, large, second[0], rest);
	second[0] = pick(fn, equal(fn, x, f32(fn, INFINITY)), f64(fn, NAN), second[0]);
	second[1] = pick(fn, large, second[1], quadrant);
	/* Folding may have left a scalar where lanes were uniform. */
	unsigned lanes = lth_loop_get(fn, rest)->lanes;
	for (int k = 0; k < 2; k++)
		second[k] = lth_loop_splat(fn, second[k], lanes);
	lth_loop_end_if(fn, second, 2, out);
	*out_rest = out[0];
	*out_quadrant = out[1];
}

static lth_lv odd_quadrant(struct lth_loop_fn *fn, lth_lv quadrant)
{
	return equal(fn, lth_loop_op2(fn, LTH_SCALAR_AND, quadrant, i64(fn, 1)), i64(fn, 1));
}

/* Sine and cosine of a reduced angle. */
static void sine_cosine(struct lth_loop_fn *fn, lth_lv r, lth_lv *out_sine, lth_lv *out_cosine)
{
	static const double sine_terms[] = {-0.16666666640796976, 0.008333329304835498, -0.00019839312267449946,
					    2.718121610570584e-06};
	static const double cosine_terms[] = {0.041666666619492185, -0.0013888883500144233, 2.4799460171898268e-05,
					      -2.720575559715142e-07};
	lth_lv z = mul(fn, r, r);
	lth_lv cube = mul(fn, r, z), fourth = mul(fn, z, z);
	*out_sine = mul_add(fn, cube, polynomial(fn, z, sine_terms, 4), r);
	lth_lv tail = mul_add(fn, z, f64(fn, -0.5), f64(fn, 1));
	*out_cosine = mul_add(fn, fourth, polynomial(fn, z, cosine_terms, 4), tail);
}

/* Negated in the upper half of the circle. */
static lth_lv flip(struct lth_loop_fn *fn, lth_lv value, lth_lv quadrant)
{
	lth_lv half = lth_loop_op2(fn, LTH_SCALAR_AND, quadrant, i64(fn, 2));
	lth_lv sign = lth_loop_op2(fn, LTH_SCALAR_SHL, half, i64(fn, 62));
	lth_lv bits = lth_loop_op2(fn, LTH_SCALAR_XOR, lth_loop_bitcast(fn, value, LTH_DTYPE_I64), sign);
	return lth_loop_bitcast(fn, bits, LTH_DTYPE_F64);
}

static lth_lv to_f32(struct lth_loop_fn *fn, lth_lv value)
{
	return lth_loop_cast(fn, value, LTH_DTYPE_F32);
}

/* An odd function: `value` at |x|, of either sign, with the sign of x flipped in. */
static lth_lv odd(struct lth_loop_fn *fn, lth_lv value, lth_lv x)
{
	lth_lv sign = lth_loop_op2(fn, LTH_SCALAR_AND, lth_loop_bitcast(fn, x, LTH_DTYPE_U32),
				   lth_loop_const_i(fn, LTH_DTYPE_U32, 0x80000000));
	lth_lv bits = lth_loop_bitcast(fn, to_f32(fn, value), LTH_DTYPE_U32);
	return lth_loop_bitcast(fn, lth_loop_op2(fn, LTH_SCALAR_XOR, bits, sign), LTH_DTYPE_F32);
}

static lth_lv trigonometric(struct lth_loop_fn *fn, enum lth_scalar_op op, lth_lv x)
{
	lth_lv rest, quadrant, sine, cosine;
	reduce(fn, magnitude(fn, x), &rest, &quadrant);
	sine_cosine(fn, rest, &sine, &cosine);
	lth_lv swap = odd_quadrant(fn, quadrant);
	if (op == LTH_SCALAR_SIN)
		return odd(fn, flip(fn, pick(fn, swap, cosine, sine), quadrant), x);
	lth_lv below = pick(fn, swap, sine, cosine);
	if (op == LTH_SCALAR_COS)
		return to_f32(fn, flip(fn, below, add(fn, quadrant, i64(fn, 1))));
	lth_lv above = pick(fn, swap, negative(fn, cosine), sine);
	return odd(fn, quotient(fn, above, below), x);
}

/* asin of z^(1/2) <= 1/2, over that root. */
static lth_lv asin_ratio(struct lth_loop_fn *fn, lth_lv z)
{
	static const double terms[] = {1, 0.16666666626724524, 0.07500005042073865, 0.044640687711213906,
				       0.03042684258244401, 0.021863002943375183, 0.020659062085367573,
				       0.0019484021409039848, 0.032941801357421446};
	return polynomial(fn, z, terms, 9);
}

/* Near 1 by asin(x) = pi/2 - 2 asin(((1 - x) / 2)^(1/2)). */
static lth_lv arcsine(struct lth_loop_fn *fn, enum lth_scalar_op op, lth_lv x)
{
	lth_lv t = wide(fn, magnitude(fn, x)), half = f64(fn, 0.5);
	lth_lv near = lth_loop_op2(fn, LTH_SCALAR_LE, t, half);
	lth_lv square = mul(fn, t, t), rest = mul(fn, sub(fn, f64(fn, 1), t), half);
	lth_lv z = pick(fn, near, square, rest);
	lth_lv base = pick(fn, near, t, root(fn, z));
	lth_lv angle = mul(fn, base, asin_ratio(fn, z)), twice = add(fn, angle, angle);
	if (op == LTH_SCALAR_ASIN)
		return odd(fn, pick(fn, near, angle, sub(fn, f64(fn, HALF_PI), twice)), x);
	lth_lv below = less(fn, x, f32(fn, 0));
	lth_lv more = add(fn, f64(fn, HALF_PI), angle), less_than_half = sub(fn, f64(fn, HALF_PI), angle);
	lth_lv inner = pick(fn, below, more, less_than_half);
	lth_lv outer = pick(fn, below, sub(fn, f64(fn, 2 * HALF_PI), twice), twice);
	return to_f32(fn, pick(fn, near, inner, outer));
}

/* In three pieces, each by a quotient in [-tan(pi/8), tan(pi/8)]. */
static lth_lv arctangent(struct lth_loop_fn *fn, lth_lv x)
{
	static const double terms[] = {-0.3333333329646051, 0.19999994409606686, -0.14285426767982998, 0.11104058531795383,
				       -0.08997320279733374, 0.06993292115036323, -0.037959364432527974};
	lth_lv t = wide(fn, magnitude(fn, x)), one = f64(fn, 1), zero = f64(fn, 0);
	lth_lv steep = less(fn, f64(fn, 2.414213562373095), t), middle = less(fn, f64(fn, 0.41421356237309503), t);
	lth_lv above = pick(fn, steep, f64(fn, -1), pick(fn, middle, sub(fn, t, one), t));
	lth_lv below = pick(fn, steep, t, pick(fn, middle, add(fn, t, one), one));
	lth_lv base = pick(fn, steep, f64(fn, HALF_PI), pick(fn, middle, f64(fn, HALF_PI / 2), zero));
	lth_lv s = quotient(fn, above, below), z = mul(fn, s, s);
	lth_lv cube = mul(fn, s, z);
	lth_lv angle = mul_add(fn, cube, polynomial(fn, z, terms, 7), s);
	return odd(fn, add(fn, base, angle), x);
}

static lth_lv hyperbolic(struct lth_loop_fn *fn, enum lth_scalar_op op, lth_lv x)
{
	lth_lv t = wide(fn, magnitude(fn, x)), one = f64(fn, 1), half = f64(fn, 0.5);
	switch (op) {
	case LTH_SCALAR_SINH: { /* (e + e / (e + 1)) / 2 with e = exp(t) - 1 */
		lth_lv e = core_expm1(fn, t);
		return odd(fn, mul(fn, half, add(fn, e, quotient(fn, e, add(fn, e, one)))), x);
	}
	case LTH_SCALAR_COSH: {
		lth_lv e = add(fn, core_expm1(fn, t), one);
		return to_f32(fn, mul(fn, half, add(fn, e, quotient(fn, one, e))));
	}
	case LTH_SCALAR_ASINH: { /* log(1 + t + t^2 / (1 + (1 + t^2)^(1/2))) */
		lth_lv square = mul(fn, t, t);
		lth_lv more = quotient(fn, square, add(fn, one, root(fn, add(fn, square, one))));
		lth_lv value = core_log1p(fn, add(fn, t, more));
		return odd(fn, pick(fn, equal(fn, t, f64(fn, INFINITY)), t, value), x);
	}
	case LTH_SCALAR_ACOSH: { /* with y = x - 1: log(1 + y + (2 y + y^2)^(1/2)) */
		lth_lv y = sub(fn, wide(fn, x), one);
		lth_lv value = core_log1p(fn, add(fn, y, root(fn, mul_add(fn, y, y, add(fn, y, y)))));
		return to_f32(fn, pick(fn, less(fn, y, f64(fn, 0)), f64(fn, NAN), value));
	}
	default: { /* atanh: log(1 + 2 t / (1 - t)) / 2 */
		lth_lv twice = add(fn, t, t);
		lth_lv inner = quotient(fn, twice, sub(fn, one, t));
		return odd(fn, mul(fn, half, core_log1p(fn, inner)), x);
	}
	}
}

/* IEEE 754's pow: exp(y log|x|), then the cases that it does not cover. */
static lth_lv power(struct lth_loop_fn *fn, lth_lv x, lth_lv y)
{
	lth_lv x64 = wide(fn, x), y64 = wide(fn, y), t = magnitude(fn, x64), one = f64(fn, 1), zero = f64(fn, 0);
	lth_lv n, q;
	core_exp(fn, mul(fn, y64, core_log(fn, t, LTH_LV_NONE, LTH_LV_NONE)), &n, &q);
	lth_lv value = lth_loop_op2(fn, LTH_SCALAR_SCALE, add(fn, q, one), n);
	lth_lv base_one = equal(fn, t, one), exponent_zero = equal(fn, y64, zero);
	lth_lv unit = lth_loop_op2(fn, LTH_SCALAR_OR, base_one, exponent_zero);
	value = pick(fn, unit, one, value);
	lth_lv whole = equal(fn, lth_loop_op1(fn, LTH_SCALAR_RINT, y64), y64);
	lth_lv half = mul(fn, y64, f64(fn, 0.5));
	lth_lv even = equal(fn, lth_loop_op1(fn, LTH_SCALAR_RINT, half), half);
	lth_lv odd_power = lth_loop_op2(fn, LTH_SCALAR_AND, whole, lth_loop_op1(fn, LTH_SCALAR_NOT, even));
	/* The sign bit counts, of -0 too. */
	lth_lv minus = less(fn, lth_loop_bitcast(fn, x, LTH_DTYPE_I32), lth_loop_const_i(fn, LTH_DTYPE_I32, 0));
	lth_lv negated = lth_loop_op2(fn, LTH_SCALAR_AND, minus, odd_power);
	value = pick(fn, negated, negative(fn, value), value);
	lth_lv below_zero = less(fn, x64, zero), finite = less(fn, t, f64(fn, INFINITY));
	lth_lv finite_minus = lth_loop_op2(fn, LTH_SCALAR_AND, below_zero, finite);
	lth_lv bad = lth_loop_op2(fn, LTH_SCALAR_AND, finite_minus, lth_loop_op1(fn, LTH_SCALAR_NOT, whole));
	return to_f32(fn, pick(fn, bad, f64(fn, NAN), value));
}

lth_lv lth_vmath64(struct lth_loop_fn *fn, enum lth_scalar_op op, lth_lv a, lth_lv b)
{
	switch (op) {
	case LTH_SCALAR_SIN:
	case LTH_SCALAR_COS:
	case LTH_SCALAR_TAN:
		return trigonometric(fn, op, a);
	case LTH_SCALAR_ASIN:
	case LTH_SCALAR_ACOS:
		return arcsine(fn, op, a);
	case LTH_SCALAR_ATAN:
		return arctangent(fn, a);
	case LTH_SCALAR_SINH:
	case LTH_SCALAR_COSH:
	case LTH_SCALAR_ASINH:
	case LTH_SCALAR_ACOSH:
	case LTH_SCALAR_ATANH:
		return hyperbolic(fn, op, a);
	case LTH_SCALAR_LOG1P: /* on the magnitude's sign separately, for -0 */
		return with_sign(fn, magnitude(fn, to_f32(fn, core_log1p(fn, wide(fn, a)))), a);
	case LTH_SCALAR_EXPM1:
		return with_sign(fn, magnitude(fn, to_f32(fn, core_expm1(fn, wide(fn, a)))), a);
	case LTH_SCALAR_POW:
		return power(fn, a, b);
	default:
		return LTH_LV_NONE;
	}
}
