/* Numbers as strings and back (ONNX Cast), whatever the program's locale is.
 *
 *   parse_number   output: numbers of any type; input: strings of the same shape. Plain and scientific decimals,
 *                  [+-]INF and NaN in any case; white space around them. Integers are exact; a fraction is cut off. Anything
 *                  else, and an integer that its type does not hold, is an error that names the element.
 *   format_number  output: strings; input: numbers of the same shape. Floats with the fewest digits that tell them from
 *                  their neighbours, as 314.0 or 3.14e+20; True and False.
 */
#include "runtime/exec/strings.h"
#include "runtime/kernels/copy.h"
#include "runtime/kernels/real.h"
#include "runtime/kernels/walk.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DIGITS = 512 }; /* of a number's text */

/* The thread's locale is "C" until leave(). */
static locale_t enter(locale_t *out_before)
{
	locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	*out_before = plain ? uselocale(plain) : (locale_t)0;
	return plain;
}

static void leave(locale_t plain, locale_t before)
{
	uselocale(before);
	freelocale(plain);
}

/* ---- from strings ---- */

/* Whole decimals of 64 bits; false when the text is none. */
static bool parse_integer(const char *text, enum lth_dtype dtype, uint64_t *out)
{
	bool is_signed = lth_dtype_class(dtype) == LTH_CLASS_INT;
	char *end;
	errno = 0;
	if (is_signed)
		*out = (uint64_t)strtoll(text, &end, 10);
	else
		*out = strtoull(text, &end, 10);
	if (end == text || *end || errno)
		return false;
	int64_t value = (int64_t)*out;
	unsigned bits = lth_dtype_bits(dtype);
	if (is_signed)
		return bits == 64 || (value >= -((int64_t)1 << (bits - 1)) && value < (int64_t)1 << (bits - 1));
	return !strchr(text, '-') && (bits == 64 || *out >> bits == 0);
}

static bool parse_real(const char *text, enum lth_dtype dtype, void *out)
{
	char *end;
	bool hexadecimal = strpbrk(text, "xXpP") != NULL; /* which strtod takes beyond what ONNX says */
	double value = strtod(text, &end);
	if (end == text || *end || hexadecimal)
		return false;
	if (dtype == LTH_DTYPE_F32) {
		*(float *)out = strtof(text, NULL); /* not by way of double, which would round twice */
		return true;
	}
	enum lth_dtype_class class = lth_dtype_class(dtype);
	if (class == LTH_CLASS_INT || class == LTH_CLASS_UINT) {
		double limit = ldexp(1, (int)lth_dtype_bits(dtype) - (class == LTH_CLASS_INT));
		value = trunc(value);
		if (!(value < limit && value >= (class == LTH_CLASS_INT ? -limit : 0)))
			return false;
	}
	lth_real_store(out, dtype, value);
	return true;
}

static bool parse(const struct lth_string *string, enum lth_dtype dtype, void *out)
{
	static const char spaces[] = " \t\n\v\f\r";
	char text[MAX_DIGITS];
	const char *at = string->data, *end = string->data + string->size;
	while (at < end && memchr(spaces, *at, sizeof(spaces) - 1))
		at++;
	while (at < end && memchr(spaces, end[-1], sizeof(spaces) - 1))
		end--;
	if (end - at >= MAX_DIGITS || memchr(at, 0, (size_t)(end - at)))
		return false;
	memcpy(text, at, (size_t)(end - at));
	text[end - at] = 0;
	uint64_t word;
	enum lth_dtype_class class = lth_dtype_class(dtype);
	if ((class == LTH_CLASS_INT || class == LTH_CLASS_UINT) && parse_integer(text, dtype, &word)) {
		memcpy(out, &word, lth_dtype_bits(dtype) / 8); /* little-endian: the low bytes come first */
		return true;
	}
	return parse_real(text, dtype, out);
}

int lth_builtin_parse_number(struct lth_builtin_call *call)
{
	struct lth_builtin_tensor in = lth_builtin_input(call, 0), out = call->tensors[0];
	struct lth_walk walk;
	locale_t before;
	if (in.dtype != LTH_DTYPE_STRING || !lth_real_has(out.dtype))
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "parse_number takes strings and gives numbers");
	locale_t plain = enter(&before);
	if (!plain)
		return LTH_KERNEL_MEMORY;
	int64_t count = lth_tensor_count(in.rank, in.dims), width = lth_dtype_bits(out.dtype) / 8;
	int error = 0;
	lth_walk_init(&walk, &in, LTH_MAX_RANK);
	for (int64_t i = 0; i < count && !error; i++, lth_walk_next(&walk)) {
		const struct lth_string *text = (const void *)walk.at;
		if (!parse(text, out.dtype, (char *)out.data + i * width))
			error = lth_builtin_fail(call, LTH_KERNEL_SHAPE, "element %lld, '%.*s', is no %s", (long long)i,
						 (int)(text->size < 60 ? text->size : 60), text->data,
						 lth_dtype_text(out.dtype));
	}
	leave(plain, before);
	return error;
}

/* ---- to strings ---- */

/* Whether digits read back as the same element. */
static bool same_element(const char *text, enum lth_dtype dtype, const void *element)
{
	double word;
	memset(&word, 0, sizeof(word));
	return parse_real(text, dtype, &word) && memcmp(&word, element, lth_dtype_bits(dtype) / 8) == 0;
}

/* A finite float: the shortest "d.ddde+xx" that is the element, then in plain notation where that is not too long. */
static void format_float(const void *element, enum lth_dtype dtype, char text[64])
{
	char digits[48];
	double value = lth_real_load(element, dtype);
	int places = 0;
	do
		snprintf(digits, sizeof(digits), "%.*e", places, value);
	while (!same_element(digits, dtype, element) && ++places < 17);
	long exponent = strtol(strchr(digits, 'e') + 1, NULL, 10);
	if (exponent < -4 || exponent >= 16)
		snprintf(text, 64, "%s", digits);
	else
		snprintf(text, 64, "%.*f", places > exponent ? (int)(places - exponent) : 1, value);
}

static void format(const void *element, enum lth_dtype dtype, char text[64])
{
	enum lth_dtype_class class = lth_dtype_class(dtype);
	double value = lth_real_load(element, dtype);
	if (dtype == LTH_DTYPE_BOOL)
		snprintf(text, 64, "%s", value != 0 ? "True" : "False");
	else if (dtype == LTH_DTYPE_U64)
		snprintf(text, 64, "%llu", (unsigned long long)*(const uint64_t *)element);
	else if (dtype == LTH_DTYPE_I64)
		snprintf(text, 64, "%lld", (long long)*(const int64_t *)element);
	else if (class == LTH_CLASS_INT || class == LTH_CLASS_UINT)
		snprintf(text, 64, "%.0f", value);
	else if (isfinite(value))
		format_float(element, dtype, text);
	else
		snprintf(text, 64, "%s", isnan(value) ? "NaN" : value > 0 ? "INF" : "-INF");
}

int lth_builtin_format_number(struct lth_builtin_call *call)
{
	struct lth_builtin_tensor in = lth_builtin_input(call, 0);
	struct lth_string *out = call->tensors[0].data;
	struct lth_walk walk;
	locale_t before;
	if (!lth_real_has(in.dtype) || call->tensors[0].dtype != LTH_DTYPE_STRING)
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "format_number takes numbers and gives strings");
	locale_t plain = enter(&before);
	if (!plain)
		return LTH_KERNEL_MEMORY;
	int64_t count = lth_tensor_count(in.rank, in.dims);
	int error = 0;
	lth_walk_init(&walk, &in, LTH_MAX_RANK);
	for (int64_t i = 0; i < count && !error; i++, lth_walk_next(&walk)) {
		char text[64];
		format(walk.at, in.dtype, text);
		size_t size = strlen(text);
		char *bytes = lth_strings_take(call->strings, size);
		if (bytes)
			memcpy(bytes, text, size);
		out[i] = (struct lth_string){bytes, size};
		error = bytes ? 0 : LTH_KERNEL_MEMORY;
	}
	leave(plain, before);
	return error;
}
