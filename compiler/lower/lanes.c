/* Lane functions for every x86-64, and the choice between them and the wide ones. See lanes.h, lanes_rows.inc. */
#define LANES_TARGET
#define LANES_ROWS lth_lanes_rows
#include "compiler/lower/lanes_rows.inc"

#include <assert.h>

/* Whether this processor can run lanes_wide.c. */
static bool is_wide(void)
{
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

#define ROUND_LANES(N, D) LANES(round_##N, float, float, lth_narrow_widen(LTH_DTYPE_##D, lth_narrow_round(LTH_DTYPE_##D, a)))
ROUND_LANES(f16, F16)
ROUND_LANES(bf16, BF16)
ROUND_LANES(e4m3, F8E4M3)
ROUND_LANES(e4m3uz, F8E4M3UZ)
ROUND_LANES(e5m2, F8E5M2)
ROUND_LANES(e5m2uz, F8E5M2UZ)
ROUND_LANES(e8m0, F8E8M0)
ROUND_LANES(f4, F4E2M1)

static lth_lanes_fn round_to(enum lth_dtype narrow)
{
	switch (narrow) {
	case LTH_DTYPE_F16:
		return round_f16;
	case LTH_DTYPE_BF16:
		return round_bf16;
	case LTH_DTYPE_F8E4M3:
		return round_e4m3;
	case LTH_DTYPE_F8E4M3UZ:
		return round_e4m3uz;
	case LTH_DTYPE_F8E5M2:
		return round_e5m2;
	case LTH_DTYPE_F8E5M2UZ:
		return round_e5m2uz;
	case LTH_DTYPE_F8E8M0:
		return round_e8m0;
	case LTH_DTYPE_F4E2M1:
		return round_f4;
	default:
		return NULL;
	}
}

#define COPY_LANES(N, BYTES) \
	static void copy_##N(void *out, const void *a, const void *b, const void *c, size_t n) \
	{ \
		(void)b; \
		(void)c; \
		memcpy(out, a, n * BYTES); \
	}
COPY_LANES(8, 1)
COPY_LANES(16, 2)
COPY_LANES(32, 4)
COPY_LANES(64, 8)

static lth_lanes_fn bitcast(enum lth_dtype from, enum lth_dtype to)
{
	if (lth_lane_bytes(from) != lth_lane_bytes(to) || (from == LTH_DTYPE_BOOL) != (to == LTH_DTYPE_BOOL))
		return NULL;
	switch (lth_lane_bytes(from)) {
	case 1:
		return copy_8;
	case 2:
		return copy_16;
	case 4:
		return copy_32;
	default:
		return copy_64;
	}
}

bool lth_is_compute_dtype(enum lth_dtype dtype)
{
	return dtype < LTH_NUM_DTYPES && lth_lanes_rows[dtype][LTH_SCALAR_EQ];
}

size_t lth_lane_bytes(enum lth_dtype dtype)
{
	return dtype >= LTH_NUM_DTYPES ? sizeof(void *) : lth_dtype_bits(dtype) / 8;
}

lth_lanes_fn lth_lanes(enum lth_scalar_op op, enum lth_dtype operand, enum lth_dtype result)
{
	assert(op < LTH_NUM_SCALARS);
	if (operand >= LTH_NUM_DTYPES) /* pointers */
		return op == LTH_SCALAR_SELECT ? select_u64 : op == LTH_SCALAR_EQ ? eq_u64 : NULL;
	if (!lth_is_compute_dtype(operand))
		return NULL;
	switch (op) {
	case LTH_SCALAR_CAST:
		return lth_lanes_cast(operand, result);
	case LTH_SCALAR_BITCAST:
		return lth_is_compute_dtype(result) ? bitcast(operand, result) : NULL;
	case LTH_SCALAR_ROUND_TO:
		return operand == LTH_DTYPE_F32 ? round_to(result) : NULL;
	default:
		return is_wide() ? lth_lanes_rows_wide[operand][op] : lth_lanes_rows[operand][op];
	}
}
