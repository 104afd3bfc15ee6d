/* Elements as numbers. See element.h. */
#include "runtime/tensor/element.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A float of `exponent` and `mantissa` bits below a sign, IEEE 754's way: the largest exponent is infinities and NaN.
 */
static double small_float(uint32_t bits, int exponent_bits, int mantissa_bits, int bias, bool specials)
{
	uint32_t mantissa = bits & ((1u << mantissa_bits) - 1);
	uint32_t exponent = bits >> mantissa_bits & ((1u << exponent_bits) - 1);
	double sign = bits >> (mantissa_bits + exponent_bits) & 1 ? -1.0 : 1.0;
	if (specials && exponent == (1u << exponent_bits) - 1)
		return mantissa ? (double)NAN : sign * (double)INFINITY;
	if (exponent == 0)
		return sign * ldexp(mantissa, 1 - bias - mantissa_bits);
	return sign * ldexp((double)(mantissa | 1u << mantissa_bits), (int)exponent - bias - mantissa_bits);
}

/* The forms of 8 bits (OCP's and those without signed zero, whose 0x80 is NaN). */
static double float8(enum lth_dtype dtype, uint8_t bits)
{
	switch (dtype) {
	case LTH_DTYPE_F8E4M3:
		return (bits & 0x7F) == 0x7F ? (double)NAN : small_float(bits, 4, 3, 7, false);
	case LTH_DTYPE_F8E4M3UZ:
		return bits == 0x80 ? (double)NAN : small_float(bits, 4, 3, 8, false);
	case LTH_DTYPE_F8E5M2:
		return small_float(bits, 5, 2, 15, true);
	case LTH_DTYPE_F8E5M2UZ:
		return bits == 0x80 ? (double)NAN : small_float(bits, 5, 2, 16, false);
	default: /* F8E8M0: a power of two */
		return bits == 0xFF ? (double)NAN : ldexp(1, (int)bits - 127);
	}
}

static double sub_byte(enum lth_dtype dtype, const uint8_t *bytes, int64_t index)
{
	unsigned bits = lth_dtype_bits(dtype), in_byte = 8 / bits;
	unsigned value = bytes[index / in_byte] >> (bits * (unsigned)(index % in_byte)) & ((1u << bits) - 1);
	if (dtype == LTH_DTYPE_F4E2M1)
		return small_float(value, 2, 1, 1, false);
	if (lth_dtype_class(dtype) == LTH_CLASS_INT && value >> (bits - 1))
		return (double)value - (double)(1u << bits);
	return value;
}

double lth_host_element(const struct lth_host_tensor *tensor, int64_t index)
{
	const void *data = tensor->data;
	uint32_t word;
	float single;
	switch (tensor->dtype) {
	case LTH_DTYPE_F32:
	case LTH_DTYPE_C64:
		return (double)((const float *)data)[index];
	case LTH_DTYPE_F64:
	case LTH_DTYPE_C128:
		return ((const double *)data)[index];
	case LTH_DTYPE_F16:
		return small_float(((const uint16_t *)data)[index], 5, 10, 15, true);
	case LTH_DTYPE_BF16:
		word = (uint32_t)((const uint16_t *)data)[index] << 16;
		memcpy(&single, &word, sizeof(single));
		return (double)single;
	case LTH_DTYPE_U8:
	case LTH_DTYPE_BOOL:
		return ((const uint8_t *)data)[index];
	case LTH_DTYPE_I8:
		return ((const int8_t *)data)[index];
	case LTH_DTYPE_U16:
		return ((const uint16_t *)data)[index];
	case LTH_DTYPE_I16:
		return ((const int16_t *)data)[index];
	case LTH_DTYPE_U32:
		return ((const uint32_t *)data)[index];
	case LTH_DTYPE_I32:
		return ((const int32_t *)data)[index];
	case LTH_DTYPE_U64:
		return (double)((const uint64_t *)data)[index];
	case LTH_DTYPE_I64:
		return (double)((const int64_t *)data)[index];
	case LTH_DTYPE_STRING:
		return 0;
	default:
		return lth_dtype_bits(tensor->dtype) < 8 ? sub_byte(tensor->dtype, data, index)
							 : float8(tensor->dtype, ((const uint8_t *)data)[index]);
	}
}

/* With as many digits as people read, or with as few as read back as the same number: of f32, which holds those of all
 * narrower types, or of f64. */
static void print_number(enum lth_dtype dtype, double value, bool exact, struct lth_buf *out)
{
	bool is_double = dtype == LTH_DTYPE_F64 || dtype == LTH_DTYPE_C128;
	int digits = exact ? FLT_DIG : is_double ? DBL_DIG : FLT_DIG + 1;
	int most = is_double ? DBL_DECIMAL_DIG : FLT_DECIMAL_DIG;
	char text[40];
	for (; exact && digits < most; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if ((is_double ? strtod(text, NULL) : (double)strtof(text, NULL)) == value)
			break;
	}
	lth_buf_printf(out, "%.*g", digits, value);
}

static void print_element(const struct lth_host_tensor *tensor, int64_t index, bool exact, struct lth_buf *out)
{
	switch (tensor->dtype) {
	case LTH_DTYPE_STRING: {
		const struct lth_string *s = (const struct lth_string *)tensor->data + index;
		lth_buf_printf(out, "\"%.*s\"", (int)s->size, s->data);
		return;
	}
	case LTH_DTYPE_BOOL:
		lth_buf_puts(out, lth_host_element(tensor, index) != 0 ? "true" : "false");
		return;
	case LTH_DTYPE_I64:
		lth_buf_printf(out, "%lld", (long long)((const int64_t *)tensor->data)[index]);
		return;
	case LTH_DTYPE_U64:
		lth_buf_printf(out, "%llu", (unsigned long long)((const uint64_t *)tensor->data)[index]);
		return;
	case LTH_DTYPE_C64:
	case LTH_DTYPE_C128:
		print_number(tensor->dtype, lth_host_element(tensor, 2 * index), exact, out);
		lth_buf_puts(out, signbit(lth_host_element(tensor, 2 * index + 1)) ? "" : "+");
		print_number(tensor->dtype, lth_host_element(tensor, 2 * index + 1), exact, out);
		lth_buf_putc(out, 'i');
		return;
	case LTH_DTYPE_U32:
	case LTH_DTYPE_I32:
		lth_buf_printf(out, "%.0f", lth_host_element(tensor, index));
		return;
	default:
		print_number(tensor->dtype, lth_host_element(tensor, index), exact, out);
	}
}

void lth_host_element_print(const struct lth_host_tensor *tensor, int64_t index, struct lth_buf *out)
{
	print_element(tensor, index, false, out);
}

/* One value of the list. */
static void put_value(const struct lth_host_tensor *tensor, int64_t index, struct lth_buf *out)
{
	struct lth_buf element = {0};
	bool plain = tensor->dtype != LTH_DTYPE_STRING && lth_dtype_class(tensor->dtype) != LTH_CLASS_COMPLEX;
	double value = plain ? lth_host_element(tensor, index) : 0;
	print_element(tensor, index, true, &element);
	if (plain && value - value == 0)
		lth_buf_puts(out, lth_buf_text(&element));
	else if (tensor->dtype == LTH_DTYPE_STRING)
		lth_buf_quote(out, ((const struct lth_string *)tensor->data)[index].data);
	else
		lth_buf_quote(out, lth_buf_text(&element));
	lth_buf_free(&element);
}

void lth_host_json_members(const struct lth_host_tensor *tensor, struct lth_buf *out)
{
	int64_t count = 0;
	lth_buf_printf(out, "\"dtype\":\"%s\",\"dims\":[", lth_dtype_text(tensor->dtype));
	for (uint32_t axis = 0; axis < tensor->rank; axis++)
		lth_buf_printf(out, "%s%lld", axis ? "," : "", (long long)tensor->dims[axis]);
	lth_buf_puts(out, "],\"values\":[");
	if (!lth_host_count(tensor->rank, tensor->dims, &count))
		count = 0;
	for (int64_t i = 0; i < count; i++) {
		lth_buf_puts(out, i ? "," : "");
		put_value(tensor, i, out);
	}
	lth_buf_putc(out, ']');
}
