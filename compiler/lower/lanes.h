/* Lane functions: one scalar operator on `n` elements lying densely in their compute type's own C type (bool is one
 * byte, 0 or 1). They are the one place where the semantics of scalars.def are written down in C: folding calls them
 * with one lane (scalar.c), the interpreter with as many as a vector has. Outputs do not overlap operands.
 * Thread rule: pure functions. */
#ifndef LTH_LOWER_LANES_H
#define LTH_LOWER_LANES_H

#include "compiler/lower/expr.h"

#include <stddef.h>

typedef void (*lth_lanes_fn)(void *out, const void *a, const void *b, const void *c, size_t n);

/* NULL when the operator does not take these types. `operand` is the type of the operands (of the last two for SELECT),
 * `result` matters for CAST and BITCAST only; for ROUND_TO it names the narrow type. lanes.c, lanes_cast.c */
lth_lanes_fn lth_lanes(enum lth_scalar_op op, enum lth_dtype operand, enum lth_dtype result);
lth_lanes_fn lth_lanes_cast(enum lth_dtype from, enum lth_dtype to);

/* The tables behind it, by operand type and operator: for any processor, and for those with AVX2 and FMA. lanes.c,
 * lanes_wide.c */
extern const lth_lanes_fn lth_lanes_rows[LTH_NUM_DTYPES][LTH_NUM_SCALARS];
extern const lth_lanes_fn lth_lanes_rows_wide[LTH_NUM_DTYPES][LTH_NUM_SCALARS];

/* Bytes of one lane of a compute type (or of a pointer). */
size_t lth_lane_bytes(enum lth_dtype dtype);
bool lth_is_compute_dtype(enum lth_dtype dtype);
static inline bool lth_is_float(enum lth_dtype dtype)
{
	return dtype == LTH_DTYPE_F32 || dtype == LTH_DTYPE_F64;
}

/* Narrow floats (f16, bf16, f8*, f4e2m1 in the low bits of a byte): the value of a code, and the code nearest to a value,
 * half to even. Beyond the largest value: infinity where the type has one, else nan, else (f4) the largest value.
 * narrow.c */
float lth_narrow_widen(enum lth_dtype narrow, uint32_t code);
uint32_t lth_narrow_round(enum lth_dtype narrow, float value);
bool lth_is_narrow(enum lth_dtype dtype);

/* The layout of a narrow float, from which codegen makes the same conversions. */
struct lth_narrow_format {
	int exponent_bits, mantissa_bits, bias;
	bool has_sign, has_infinity, has_nan;
	bool nan_is_minus_zero; /* the fnuz types: the only nan is the code of -0, which does not exist */
};
const struct lth_narrow_format *lth_narrow_format(enum lth_dtype narrow);

#endif
