/* Reading the elements of constants as plain numbers, whatever their element type. */
#include "compiler/ir/graph.h"

#include <math.h>
#include <string.h>

/* Narrow floating-point formats: sign, exponent, mantissa, from the top. */
static const struct narrow_format {
	enum lth_dtype dtype;
	int exponent_bits, mantissa_bits, bias;
	enum { IEEE, FINITE_NAN_ALL_ONES, NAN_IS_NEGATIVE_ZERO, FINITE_ONLY } special;
} formats[] = {
	{LTH_DTYPE_F16, 5, 10, 15, IEEE},
	{LTH_DTYPE_BF16, 8, 7, 127, IEEE},
	{LTH_DTYPE_F8E4M3, 4, 3, 7, FINITE_NAN_ALL_ONES},
	{LTH_DTYPE_F8E4M3UZ, 4, 3, 8, NAN_IS_NEGATIVE_ZERO},
	{LTH_DTYPE_F8E5M2, 5, 2, 15, IEEE},
	{LTH_DTYPE_F8E5M2UZ, 5, 2, 16, NAN_IS_NEGATIVE_ZERO},
	{LTH_DTYPE_F4E2M1, 2, 1, 1, FINITE_ONLY},
};

static double decode_narrow(const struct narrow_format *format, unsigned bits)
{
	int exponent_mask = (1 << format->exponent_bits) - 1, mantissa_mask = (1 << format->mantissa_bits) - 1;
	int mantissa = (int)bits & mantissa_mask, exponent = (int)(bits >> format->mantissa_bits) & exponent_mask;
	bool negative = bits >> (format->exponent_bits + format->mantissa_bits) & 1;
	double value = exponent ? ldexp(mantissa + mantissa_mask + 1, exponent - format->bias - format->mantissa_bits)
				: ldexp(mantissa, 1 - format->bias - format->mantissa_bits);
	if (format->special == IEEE && exponent == exponent_mask)
		value = mantissa ? NAN : HUGE_VAL;
	if (format->special == FINITE_NAN_ALL_ONES && exponent == exponent_mask && mantissa == mantissa_mask)
		value = NAN;
	if (format->special == NAN_IS_NEGATIVE_ZERO && negative && exponent == 0 && mantissa == 0)
		return NAN;
	return negative ? -value : value;
}

static unsigned packed_bits(const uint8_t *bytes, unsigned bits, uint32_t index)
{
	uint64_t at = (uint64_t)index * bits;
	return bytes[at / 8] >> at % 8 & ((1u << bits) - 1);
}

static int64_t read_int(enum lth_dtype dtype, const void *data, uint32_t index)
{
	const uint8_t *bytes = data;
	unsigned bits = lth_dtype_bits(dtype);
	uint64_t raw = 0;
	if (bits < 8)
		raw = packed_bits(bytes, bits, index);
	else
		memcpy(&raw, bytes + (size_t)index * (bits / 8), bits / 8); /* little-endian host */
	if (lth_dtype_class(dtype) == LTH_CLASS_INT && bits < 64)
		return (int64_t)(raw << (64 - bits)) >> (64 - bits);
	return (int64_t)raw;
}

static double read_float(enum lth_dtype dtype, const void *data, uint32_t index)
{
	const uint8_t *bytes = data;
	unsigned bits = lth_dtype_bits(dtype), raw = 0;
	if (dtype == LTH_DTYPE_F64) {
		double value;
		memcpy(&value, bytes + (size_t)index * 8, 8);
		return value;
	}
	if (dtype == LTH_DTYPE_F32) {
		float value;
		memcpy(&value, bytes + (size_t)index * 4, 4);
		return (double)value;
	}
	if (bits < 8)
		raw = packed_bits(bytes, bits, index);
	else
		memcpy(&raw, bytes + (size_t)index * (bits / 8), bits / 8);
	if (dtype == LTH_DTYPE_F8E8M0)
		return raw == 0xff ? NAN : ldexp(1, (int)raw - 127);
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (formats[i].dtype == dtype)
			return decode_narrow(&formats[i], raw);
	return NAN;
}

/* The number of elements of a constant, checked against its bytes; false for what is not a plain constant tensor. */
static bool constant_count(const struct lth_graph *graph, lth_value_id id, uint32_t *out_count)
{
	if (id == LTH_NONE || graph->values[id].def != LTH_DEF_CONSTANT)
		return false;
	const struct lth_value *value = &graph->values[id];
	int64_t shape[LTH_MAX_RANK], count = 1, bytes;
	if (value->type.rank > LTH_MAX_RANK || !lth_type_static(graph, &value->type, shape))
		return false;
	for (uint32_t i = 0; i < value->type.rank; i++)
		if (__builtin_mul_overflow(count, shape[i], &count))
			return false;
	if (count < 0 || count > UINT32_MAX || !lth_dtype_bytes(value->type.dtype, count, &bytes) ||
	    bytes > value->constant.bytes)
		return false;
	*out_count = (uint32_t)count;
	return true;
}

static bool integer_class(enum lth_dtype dtype)
{
	enum lth_dtype_class class = dtype < LTH_NUM_DTYPES ? lth_dtype_class(dtype) : LTH_NUM_CLASSES;
	return class == LTH_CLASS_INT || class == LTH_CLASS_UINT || class == LTH_CLASS_BOOL;
}

bool lth_value_const_ints(struct lth_graph *graph, lth_value_id value, const int64_t **out, uint32_t *out_count)
{
	uint32_t count;
	if (!constant_count(graph, value, &count) || !integer_class(graph->values[value].type.dtype))
		return false;
	int64_t *list = lth_arena_array(graph->arena, count, sizeof(*list));
	for (uint32_t i = 0; list && i < count; i++)
		list[i] = read_int(graph->values[value].type.dtype, graph->values[value].constant.data, i);
	*out = list;
	*out_count = count;
	return list != NULL;
}

bool lth_value_const_floats(struct lth_graph *graph, lth_value_id value, const double **out, uint32_t *out_count)
{
	uint32_t count;
	if (!constant_count(graph, value, &count))
		return false;
	enum lth_dtype dtype = graph->values[value].type.dtype;
	bool integer = integer_class(dtype);
	if (!integer && lth_dtype_class(dtype) != LTH_CLASS_FLOAT)
		return false;
	double *list = lth_arena_array(graph->arena, count, sizeof(*list));
	const void *data = graph->values[value].constant.data;
	for (uint32_t i = 0; list && i < count; i++)
		list[i] = !integer                 ? read_float(dtype, data, i)
			  : dtype == LTH_DTYPE_U64 ? (double)(uint64_t)read_int(dtype, data, i)
						   : (double)read_int(dtype, data, i);
	*out = list;
	*out_count = count;
	return list != NULL;
}
