/* Arithmetic that tells when it overflows. Each returns true on success and writes *out only then. */
#ifndef LTH_BASE_CHECKED_H
#define LTH_BASE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

static inline bool lth_add_i64(int64_t a, int64_t b, int64_t *out)
{
	return !__builtin_add_overflow(a, b, out);
}

static inline bool lth_sub_i64(int64_t a, int64_t b, int64_t *out)
{
	return !__builtin_sub_overflow(a, b, out);
}

static inline bool lth_mul_i64(int64_t a, int64_t b, int64_t *out)
{
	return !__builtin_mul_overflow(a, b, out);
}

/* Floor and ceiling division; b must not be 0. */
static inline int64_t lth_floordiv_i64(int64_t a, int64_t b)
{
	int64_t q = a / b;
	return q - (a % b != 0 && (a < 0) != (b < 0));
}

static inline int64_t lth_ceildiv_i64(int64_t a, int64_t b)
{
	int64_t q = a / b;
	return q + (a % b != 0 && (a < 0) == (b < 0));
}

/* The least multiple of `unit` (above 0) that is at least `value` (0 or more). Most units are powers of two, and a
 * division costs more than all else around it. */
static inline bool lth_round_up_i64(int64_t value, int64_t unit, int64_t *out)
{
	int64_t rest = (unit & (unit - 1)) == 0 ? value & (unit - 1) : value % unit;
	return lth_add_i64(value, rest ? unit - rest : 0, out);
}

#endif
