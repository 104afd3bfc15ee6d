/* Narrow floats by their format, one rule for all: widening and rounding half to even. See lanes.h. */
#include "compiler/lower/lanes.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static const struct lth_narrow_format formats[LTH_NUM_DTYPES] = {
	[LTH_DTYPE_F16] = {5, 10, 15, true, true, true, false},
	[LTH_DTYPE_BF16] = {8, 7, 127, true, true, true, false},
	[LTH_DTYPE_F8E4M3] = {4, 3, 7, true, false, true, false},
	[LTH_DTYPE_F8E4M3UZ] = {4, 3, 8, true, false, true, true},
	[LTH_DTYPE_F8E5M2] = {5, 2, 15, true, true, true, false},
	[LTH_DTYPE_F8E5M2UZ] = {5, 2, 16, true, false, true, true},
	[LTH_DTYPE_F8E8M0] = {8, 0, 127, false, false, true, false},
	[LTH_DTYPE_F4E2M1] = {2, 1, 1, true, false, false, false},
};

bool lth_is_narrow(enum lth_dtype dtype)
{
	return dtype < LTH_NUM_DTYPES && formats[dtype].exponent_bits != 0;
}

const struct lth_narrow_format *lth_narrow_format(enum lth_dtype narrow)
{
	assert(lth_is_narrow(narrow));
	return &formats[narrow];
}

static uint32_t float_bits(float value)
{
	uint32_t bits;
	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

float lth_narrow_widen(enum lth_dtype narrow, uint32_t code)
{
	const struct lth_narrow_format *f = lth_narrow_format(narrow);
	int m = f->mantissa_bits;
	uint32_t top = (1u << f->exponent_bits) - 1, fraction_mask = (1u << m) - 1;
	uint32_t exponent = code >> m & top, fraction = code & fraction_mask;
	bool negative = f->has_sign && (code >> (m + f->exponent_bits) & 1);
	if (narrow == LTH_DTYPE_F8E8M0)
		return code == 255 ? NAN : ldexpf(1.0f, (int)code - 127);
	if (f->nan_is_minus_zero && negative && exponent == 0 && fraction == 0)
		return NAN;
	if (f->has_infinity && exponent == top)
		return fraction ? copysignf(NAN, negative ? -1.0f : 1.0f) : negative ? -INFINITY : INFINITY;
	if (f->has_nan && !f->has_infinity && !f->nan_is_minus_zero && exponent == top && fraction == fraction_mask)
		return copysignf(NAN, negative ? -1.0f : 1.0f);
	float magnitude = exponent == 0 ? ldexpf((float)fraction, 1 - f->bias - m) :
					  ldexpf((float)(fraction | 1u << m), (int)exponent - f->bias - m);
	return negative ? -magnitude : magnitude;
}

/* The largest finite code without its sign. */
static uint32_t largest(const struct lth_narrow_format *f)
{
	uint32_t all = (1u << (f->exponent_bits + f->mantissa_bits)) - 1;
	if (f->has_infinity)
		return (((1u << f->exponent_bits) - 1) << f->mantissa_bits) - 1;
	return f->has_nan && !f->nan_is_minus_zero ? all - 1 : all;
}

/* What stands for nan (and, without an infinity, for what is too large). */
static uint32_t nan_code(const struct lth_narrow_format *f)
{
	uint32_t sign = 1u << (f->exponent_bits + f->mantissa_bits);
	if (f->nan_is_minus_zero)
		return sign;
	if (!f->has_nan)
		return largest(f);
	if (!f->has_infinity)
		return sign - 1;
	return largest(f) + 1 + (1u << (f->mantissa_bits - 1));
}

/* Power-of-two scale: no sign, no zero, no fraction. Ties go up, as in the OCP specification's usual readings. */
static uint32_t round_e8m0(float value)
{
	uint32_t bits = float_bits(value) & 0x7fffffffu, exponent = bits >> 23;
	if (exponent == 255)
		return 255;
	if (exponent == 0) /* the code 0 is 2^-127, a denormal of f32 */
		return bits >= 0x600000;
	return exponent + (bits >> 22 & 1);
}

uint32_t lth_narrow_round(enum lth_dtype narrow, float value)
{
	const struct lth_narrow_format *f = lth_narrow_format(narrow);
	if (narrow == LTH_DTYPE_F8E8M0)
		return round_e8m0(value);
	uint32_t bits = float_bits(value), magnitude = bits & 0x7fffffffu;
	uint32_t sign = (bits >> 31) << (f->exponent_bits + f->mantissa_bits);
	if (isnan(value))
		return f->nan_is_minus_zero || !f->has_nan ? nan_code(f) : nan_code(f) | sign;
	/* Scale so that the format's smallest step is 1 below its normal range; above, the step doubles per binade. */
	int exponent = (int)(magnitude >> 23) - 127;
	int lowest = 1 - f->bias;
	int step = (exponent < lowest ? lowest : exponent) - f->mantissa_bits;
	double steps = isinf(value) ? INFINITY : rint(ldexp(fabs((double)value), -step));
	uint32_t code = largest(f) + 1;
	if (exponent < lowest)
		code = (uint32_t)steps; /* may carry into the first normal binade, as it should */
	else if (exponent - lowest < 1 << f->exponent_bits && !isinf(value))
		code = (uint32_t)steps + ((uint32_t)(exponent - lowest) << f->mantissa_bits);
	if (code > largest(f))
		return f->has_infinity ? (largest(f) + 1) | sign : f->nan_is_minus_zero ? nan_code(f) : nan_code(f) | sign;
	return code == 0 && f->nan_is_minus_zero ? 0 : code | sign;
}
