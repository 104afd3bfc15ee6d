/* Floats of 16 and 8 bits (f16, bf16, the f8 family), to double and back. Thread rule: pure functions. */
#ifndef LTH_KERNELS_SMALL_FLOAT_H
#define LTH_KERNELS_SMALL_FLOAT_H

#include "runtime/tensor/dtype.h"

/* Exactly. */
double lth_small_float(uint32_t bits, enum lth_dtype dtype);
/* Rounds to nearest, ties to even; what is too large becomes infinity, or NaN where the type has none. */
uint32_t lth_small_float_bits(double value, enum lth_dtype dtype);

#endif
