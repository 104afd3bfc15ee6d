/* Element types, made from dtypes.def. Thread rule: pure functions. */
#ifndef LTH_TENSOR_DTYPE_H
#define LTH_TENSOR_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lth_dtype {
#define LTH_DTYPE(name, text, onnx, bits, class) LTH_DTYPE_##name,
#include "runtime/tensor/dtypes.def"
#undef LTH_DTYPE
	LTH_NUM_DTYPES
};

enum lth_dtype_class {
	LTH_CLASS_FLOAT,
	LTH_CLASS_INT,
	LTH_CLASS_UINT,
	LTH_CLASS_BOOL,
	LTH_CLASS_COMPLEX,
	LTH_CLASS_STRING,
	LTH_CLASS_OBJECT,
	LTH_NUM_CLASSES
};

/* One element of a string tensor. The bytes belong to whoever owns the tensor. */
struct lth_string {
	const char *data;
	size_t size;
};

const char *lth_dtype_text(enum lth_dtype dtype); /* "?" for LTH_NUM_DTYPES, a type that is not known */
unsigned lth_dtype_bits(enum lth_dtype dtype);
enum lth_dtype_class lth_dtype_class(enum lth_dtype dtype);
/* TensorProto.DataType of a type, and back; LTH_NUM_DTYPES for a number that is none, and for OBJECT's, which is none
 * of ONNX's. */
int lth_dtype_onnx(enum lth_dtype dtype);
enum lth_dtype lth_dtype_by_onnx(int onnx);
/* The type of tensors with this text, or LTH_NUM_DTYPES; never OBJECT. */
enum lth_dtype lth_dtype_by_text(const char *text);
/* Bytes of `count` packed elements (rounded up for sub-byte types); false when it overflows int64. */
bool lth_dtype_bytes(enum lth_dtype dtype, int64_t count, int64_t *out_bytes);

#endif
