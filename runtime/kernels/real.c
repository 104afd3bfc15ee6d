/* Elements as double. See real.h. */
#include "runtime/kernels/real.h"
#include "runtime/kernels/small_float.h"

#include <math.h>
#include <string.h>

bool lth_real_has(enum lth_dtype dtype)
{
	enum lth_dtype_class class = lth_dtype_class(dtype);
	return lth_dtype_bits(dtype) >= 8 && class != LTH_CLASS_STRING && class != LTH_CLASS_COMPLEX;
}

#define LOAD(type) ((double)*(const type *)element)

double lth_real_load(const void *element, enum lth_dtype dtype)
{
	switch (dtype) {
	case LTH_DTYPE_F32:
		return LOAD(float);
	case LTH_DTYPE_F64:
		return LOAD(double);
	case LTH_DTYPE_I8:
		return LOAD(int8_t);
	case LTH_DTYPE_I16:
		return LOAD(int16_t);
	case LTH_DTYPE_I32:
		return LOAD(int32_t);
	case LTH_DTYPE_I64:
		return LOAD(int64_t);
	case LTH_DTYPE_U8:
	case LTH_DTYPE_BOOL:
		return LOAD(uint8_t);
	case LTH_DTYPE_U16:
		return LOAD(uint16_t);
	case LTH_DTYPE_U32:
		return LOAD(uint32_t);
	case LTH_DTYPE_U64:
		return LOAD(uint64_t);
	case LTH_DTYPE_F16:
	case LTH_DTYPE_BF16:
		return lth_small_float(*(const uint16_t *)element, dtype);
	default:
		return lth_small_float(*(const uint8_t *)element, dtype);
	}
}

/* The low bytes of an integer of `bits`, saturated. */
static void store_integer(void *element, enum lth_dtype dtype, double value)
{
	int bits = (int)lth_dtype_bits(dtype);
	bool is_signed = lth_dtype_class(dtype) == LTH_CLASS_INT;
	double low = is_signed ? -ldexp(1.0, bits - 1) : 0, high = ldexp(1.0, is_signed ? bits - 1 : bits);
	uint64_t word;
	value = isnan(value) ? 0 : nearbyint(value);
	if (value >= high)
		word = is_signed ? ((uint64_t)1 << (bits - 1)) - 1 : UINT64_MAX;
	else if (value <= low)
		word = is_signed ? (uint64_t)1 << (bits - 1) : 0;
	else
		word = is_signed ? (uint64_t)(int64_t)value : (uint64_t)value;
	memcpy(element, &word, (size_t)bits / 8); /* little-endian: the low bytes come first */
}

void lth_real_store(void *element, enum lth_dtype dtype, double value)
{
	if (dtype == LTH_DTYPE_F32) {
		*(float *)element = (float)value;
	} else if (dtype == LTH_DTYPE_F64) {
		*(double *)element = value;
	} else if (dtype == LTH_DTYPE_BOOL) {
		*(uint8_t *)element = value != 0;
	} else if (lth_dtype_class(dtype) == LTH_CLASS_FLOAT) {
		uint32_t bits = lth_small_float_bits(value, dtype);
		memcpy(element, &bits, lth_dtype_bits(dtype) / 8);
	} else {
		store_integer(element, dtype, value);
	}
}
