/* Floats of 16 and 8 bits. See small_float.h. One table of formats, one function each way. */
#include "runtime/kernels/small_float.h"

#include <math.h>

static const struct format {
	enum lth_dtype dtype;
	int exponent_bits, mantissa_bits, bias;
	bool infinities;    /* the largest exponent is for infinity and NaN, as in IEEE 754 */
	bool unsigned_zero; /* the pattern of negative zero is the only NaN */
} formats[] = {
	{LTH_DTYPE_F16, 5, 10, 15, true, false},   {LTH_DTYPE_BF16, 8, 7, 127, true, false},
	{LTH_DTYPE_F8E4M3, 4, 3, 7, false, false}, {LTH_DTYPE_F8E4M3UZ, 4, 3, 8, false, true},
	{LTH_DTYPE_F8E5M2, 5, 2, 15, true, false}, {LTH_DTYPE_F8E5M2UZ, 5, 2, 16, false, true},
};

static const struct format *format_of(enum lth_dtype dtype)
{
	const struct format *f = formats;
	while (f->dtype != dtype)
		f++;
	return f;
}

double lth_small_float(uint32_t bits, enum lth_dtype dtype)
{
	if (dtype == LTH_DTYPE_F8E8M0)
		return bits == 0xFF ? (double)NAN : ldexp(1.0, (int)bits - 127);
	const struct format *f = format_of(dtype);
	int width = 1 + f->exponent_bits + f->mantissa_bits, top = (1 << f->exponent_bits) - 1;
	uint32_t sign = bits >> (width - 1) & 1, mantissa = bits & ((1u << f->mantissa_bits) - 1);
	int exponent = (int)(bits >> f->mantissa_bits) & top;
	bool all_ones = exponent == top && mantissa == (1u << f->mantissa_bits) - 1;
	if (f->unsigned_zero ? sign && !exponent && !mantissa
			     : f->infinities ? exponent == top && mantissa != 0 : all_ones)
		return (double)NAN;
	double value;
	if (f->infinities && exponent == top)
		value = (double)INFINITY;
	else if (exponent == 0)
		value = ldexp((double)mantissa, 1 - f->bias - f->mantissa_bits);
	else
		value = ldexp((double)(mantissa | 1u << f->mantissa_bits), exponent - f->bias - f->mantissa_bits);
	return sign ? -value : value;
}

/* The pattern of NaN, without a sign but where the sign is all of it. */
static uint32_t nan_bits(const struct format *f)
{
	int width = 1 + f->exponent_bits + f->mantissa_bits;
	if (f->unsigned_zero)
		return 1u << (width - 1);
	uint32_t exponent = ((1u << f->exponent_bits) - 1) << f->mantissa_bits;
	return f->infinities ? exponent | 1u << (f->mantissa_bits - 1) : exponent | ((1u << f->mantissa_bits) - 1);
}

uint32_t lth_small_float_bits(double value, enum lth_dtype dtype)
{
	if (dtype == LTH_DTYPE_F8E8M0) {
		int power;
		if (!(value > 0) || isinf(value))
			return 0xFF;
		double part = frexp(value, &power); /* value = part * 2^power, part in [0.5, 1) */
		power += 126 + (part >= 0.75);
		return power < 0 ? 0 : power > 254 ? 0xFF : (uint32_t)power;
	}
	const struct format *f = format_of(dtype);
	int width = 1 + f->exponent_bits + f->mantissa_bits, top = (1 << f->exponent_bits) - 1, power;
	uint32_t sign = signbit(value) ? 1u << (width - 1) : 0;
	if (isnan(value))
		return nan_bits(f);
	/* Units of the last place: of the value's own binade, or of the smallest one. */
	double size = fabs(value);
	frexp(size, &power);
	int unit = (power - 1 < 1 - f->bias ? 1 - f->bias : power - 1) - f->mantissa_bits;
	double count = isinf(size) ? INFINITY : nearbyint(ldexp(size, -unit));
	/* The patterns of a sign are numbered by size; the largest finite one bounds what may be counted. */
	uint32_t limit = f->infinities ? (uint32_t)top << f->mantissa_bits
				       : (1u << (width - 1)) - (f->unsigned_zero ? 0 : 1);
	double number = count + (double)((unit + f->mantissa_bits + f->bias - 1) * (1 << f->mantissa_bits));
	if (size == 0)
		return f->unsigned_zero ? 0 : sign;
	if (!(number < (double)limit))
		return f->infinities ? sign | limit : nan_bits(f);
	return number == 0 && f->unsigned_zero ? 0 : sign | (uint32_t)number;
}
