/* Elements of any numeric type as double, for kernels that work in one type whatever they are given. 64-bit integers
 * beyond 2^53 are rounded. Thread rule: pure functions. */
#ifndef LTH_KERNELS_REAL_H
#define LTH_KERNELS_REAL_H

#include "runtime/tensor/dtype.h"

/* Whether the type is a number of 8 bits or more, or bool. */
bool lth_real_has(enum lth_dtype dtype);
double lth_real_load(const void *element, enum lth_dtype dtype);
/* Rounds to nearest; integers saturate, and NaN becomes 0. */
void lth_real_store(void *element, enum lth_dtype dtype, double value);

#endif
