/* Elements of constants as doubles, for passes that do arithmetic on weights. Thread rule: pure functions. */
#include "compiler/passes/rewrite.h"

#include <math.h>
#include <string.h>

/* A binary float of `mantissa` stored bits and an exponent field of `exponent` bits, sign on top. */
static double widen(uint32_t bits, unsigned exponent, unsigned mantissa)
{
	uint32_t field = (bits >> mantissa) & ((1u << exponent) - 1);
	uint32_t fraction = bits & ((1u << mantissa) - 1);
	int bias = (1 << (exponent - 1)) - 1;
	double sign = bits >> (exponent + mantissa) ? -1.0 : 1.0;
	if (field == (1u << exponent) - 1)
		return fraction ? NAN : sign * INFINITY;
	if (field == 0)
		return sign * ldexp((double)fraction, 1 - bias - (int)mantissa);
	return sign * ldexp((double)(fraction | 1u << mantissa), (int)field - bias - (int)mantissa);
}

static uint32_t narrow(double value, unsigned exponent, unsigned mantissa)
{
	uint32_t sign = signbit(value) ? 1u << (exponent + mantissa) : 0;
	uint32_t infinity = ((1u << exponent) - 1) << mantissa;
	int bias = (1 << (exponent - 1)) - 1, scale;
	double magnitude = fabs(value);
	if (isnan(value))
		return sign | infinity | 1u << (mantissa - 1);
	if (isinf(value))
		return sign | infinity;
	if (magnitude == 0)
		return sign;
	(void)frexp(magnitude, &scale); /* magnitude in [2^(scale-1), 2^scale) */
	int lowest = 1 - bias;
	int unit = (scale - 1 < lowest ? lowest : scale - 1) - (int)mantissa;
	/* In units of the last place: below 2^mantissa a denormal; a carry moves into the exponent by itself. */
	uint32_t steps = (uint32_t)rint(ldexp(magnitude, -unit));
	uint32_t bits = steps + ((uint32_t)(unit + (int)mantissa - lowest) << mantissa);
	return sign | (bits > infinity ? infinity : bits);
}

#define LOAD(type)                                                                                                     \
	do {                                                                                                           \
		type element;                                                                                          \
		memcpy(&element, (const char *)data + index * (int64_t)sizeof(element), sizeof(element));              \
		*out = (double)element;                                                                                \
	} while (0)

static uint32_t load_16(const void *data, int64_t index)
{
	uint16_t bits;
	memcpy(&bits, (const char *)data + index * 2, sizeof(bits));
	return bits;
}

bool lth_load_real(enum lth_dtype dtype, const void *data, int64_t index, double *out)
{
	switch (dtype) {
	case LTH_DTYPE_F32:
		LOAD(float);
		return true;
	case LTH_DTYPE_F64:
		LOAD(double);
		return true;
	case LTH_DTYPE_F16:
		*out = widen(load_16(data, index), 5, 10);
		return true;
	case LTH_DTYPE_BF16:
		*out = widen(load_16(data, index), 8, 7);
		return true;
	case LTH_DTYPE_I8:
		LOAD(int8_t);
		return true;
	case LTH_DTYPE_BOOL:
	case LTH_DTYPE_U8:
		LOAD(uint8_t);
		return true;
	case LTH_DTYPE_I16:
		LOAD(int16_t);
		return true;
	case LTH_DTYPE_U16:
		LOAD(uint16_t);
		return true;
	case LTH_DTYPE_I32:
		LOAD(int32_t);
		return true;
	case LTH_DTYPE_U32:
		LOAD(uint32_t);
		return true;
	case LTH_DTYPE_I64:
		LOAD(int64_t);
		return true;
	case LTH_DTYPE_U64:
		LOAD(uint64_t);
		return true;
	default:
		return false;
	}
}

bool lth_store_real(enum lth_dtype dtype, void *data, int64_t index, double value)
{
	float single = (float)value;
	uint16_t bits;
	switch (dtype) {
	case LTH_DTYPE_F32:
		memcpy((char *)data + index * 4, &single, sizeof(single));
		return true;
	case LTH_DTYPE_F64:
		memcpy((char *)data + index * 8, &value, sizeof(value));
		return true;
	case LTH_DTYPE_F16:
		bits = (uint16_t)narrow(value, 5, 10);
		break;
	case LTH_DTYPE_BF16:
		bits = (uint16_t)narrow(value, 8, 7);
		break;
	default:
		return false;
	}
	memcpy((char *)data + index * 2, &bits, sizeof(bits));
	return true;
}
