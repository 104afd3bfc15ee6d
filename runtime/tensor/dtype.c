/* Element types: lookups over the table. */
#include "runtime/tensor/dtype.h"

#include <assert.h>
#include <string.h>

static const struct {
	const char *text;
	int onnx;
	unsigned bits;
	enum lth_dtype_class class;
} dtypes[LTH_NUM_DTYPES] = {
#define LTH_DTYPE(name, text, onnx, bits, class) [LTH_DTYPE_##name] = {text, onnx, bits, LTH_CLASS_##class},
#include "runtime/tensor/dtypes.def"
#undef LTH_DTYPE
};

const char *lth_dtype_text(enum lth_dtype dtype)
{
	assert(dtype <= LTH_NUM_DTYPES);
	return dtype == LTH_NUM_DTYPES ? "?" : dtypes[dtype].text;
}

unsigned lth_dtype_bits(enum lth_dtype dtype)
{
	assert(dtype < LTH_NUM_DTYPES);
	return dtypes[dtype].bits;
}

enum lth_dtype_class lth_dtype_class(enum lth_dtype dtype)
{
	assert(dtype < LTH_NUM_DTYPES);
	return dtypes[dtype].class;
}

int lth_dtype_onnx(enum lth_dtype dtype)
{
	assert(dtype < LTH_NUM_DTYPES);
	return dtypes[dtype].onnx;
}

enum lth_dtype lth_dtype_by_onnx(int onnx)
{
	for (int i = 0; i < LTH_NUM_DTYPES; i++)
		if (dtypes[i].onnx == onnx && i != LTH_DTYPE_OBJECT)
			return (enum lth_dtype)i;
	return LTH_NUM_DTYPES;
}

enum lth_dtype lth_dtype_by_text(const char *text)
{
	for (int i = 0; i < LTH_NUM_DTYPES; i++)
		if (strcmp(dtypes[i].text, text) == 0 && i != LTH_DTYPE_OBJECT)
			return (enum lth_dtype)i;
	return LTH_NUM_DTYPES;
}

bool lth_dtype_bytes(enum lth_dtype dtype, int64_t count, int64_t *out_bytes)
{
	int64_t bits;
	if (count < 0 || __builtin_mul_overflow(count, (int64_t)lth_dtype_bits(dtype), &bits) || bits > INT64_MAX - 7)
		return false;
	*out_bytes = (bits + 7) / 8;
	return true;
}
