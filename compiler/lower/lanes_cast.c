/* Lane functions of casts between all compute types: from floats to integers towards zero, saturating, nan to 0; between
 * integers wrapping; to bool: different from 0 (nan is). See lanes.h. */
#include "compiler/lower/lanes.h"

#define CAST(F, FROM, T, TO, expression) \
	static void F##_to_##T(void *out, const void *pa, const void *pb, const void *pc, size_t n) \
	{ \
		TO *to = out; \
		const FROM *from = pa; \
		(void)pb; \
		(void)pc; \
		for (size_t i = 0; i < n; i++) { \
			const FROM a = from[i]; \
			to[i] = (TO)(expression); \
		} \
	}

/* Bounds are powers of two, exact in both float types: below LOW or at HIGH and above the result saturates. */
#define SATURATE(a, TO, LOW, HIGH, MIN, MAX) ((a) != (a) ? 0 : (a) <= (LOW) ? (MIN) : (a) >= (HIGH) ? (MAX) : (TO)(a))

#define FROM_INT(F, FROM) \
	CAST(F, FROM, b8, uint8_t, a != 0) \
	CAST(F, FROM, i8, int8_t, (uint8_t)a) \
	CAST(F, FROM, i16, int16_t, (uint16_t)a) \
	CAST(F, FROM, i32, int32_t, (uint32_t)a) \
	CAST(F, FROM, i64, int64_t, (uint64_t)a) \
	CAST(F, FROM, u8, uint8_t, a) \
	CAST(F, FROM, u16, uint16_t, a) \
	CAST(F, FROM, u32, uint32_t, a) \
	CAST(F, FROM, u64, uint64_t, a) \
	CAST(F, FROM, f32, float, a) \
	CAST(F, FROM, f64, double, a)

#define FROM_FLOAT(F, FROM) \
	CAST(F, FROM, b8, uint8_t, a != 0) \
	CAST(F, FROM, i8, int8_t, SATURATE(a, int8_t, -0x1p7, 0x1p7, INT8_MIN, INT8_MAX)) \
	CAST(F, FROM, i16, int16_t, SATURATE(a, int16_t, -0x1p15, 0x1p15, INT16_MIN, INT16_MAX)) \
	CAST(F, FROM, i32, int32_t, SATURATE(a, int32_t, -0x1p31, 0x1p31, INT32_MIN, INT32_MAX)) \
	CAST(F, FROM, i64, int64_t, SATURATE(a, int64_t, -0x1p63, 0x1p63, INT64_MIN, INT64_MAX)) \
	CAST(F, FROM, u8, uint8_t, SATURATE(a, uint8_t, -1, 0x1p8, 0, UINT8_MAX)) \
	CAST(F, FROM, u16, uint16_t, SATURATE(a, uint16_t, -1, 0x1p16, 0, UINT16_MAX)) \
	CAST(F, FROM, u32, uint32_t, SATURATE(a, uint32_t, -1, 0x1p32, 0, UINT32_MAX)) \
	CAST(F, FROM, u64, uint64_t, SATURATE(a, uint64_t, -1, 0x1p64, 0, UINT64_MAX)) \
	CAST(F, FROM, f32, float, a) \
	CAST(F, FROM, f64, double, a)

FROM_INT(b8, uint8_t)
FROM_INT(i8, int8_t)
FROM_INT(i16, int16_t)
FROM_INT(i32, int32_t)
FROM_INT(i64, int64_t)
FROM_INT(u8, uint8_t)
FROM_INT(u16, uint16_t)
FROM_INT(u32, uint32_t)
FROM_INT(u64, uint64_t)
FROM_FLOAT(f32, float)
FROM_FLOAT(f64, double)

#define ROW(F) \
	{[LTH_DTYPE_BOOL] = F##_to_b8, [LTH_DTYPE_I8] = F##_to_i8, [LTH_DTYPE_I16] = F##_to_i16, \
	 [LTH_DTYPE_I32] = F##_to_i32, [LTH_DTYPE_I64] = F##_to_i64, [LTH_DTYPE_U8] = F##_to_u8, \
	 [LTH_DTYPE_U16] = F##_to_u16, [LTH_DTYPE_U32] = F##_to_u32, [LTH_DTYPE_U64] = F##_to_u64, \
	 [LTH_DTYPE_F32] = F##_to_f32, [LTH_DTYPE_F64] = F##_to_f64}

static const lth_lanes_fn casts[LTH_NUM_DTYPES][LTH_NUM_DTYPES] = {
	[LTH_DTYPE_BOOL] = ROW(b8),
	[LTH_DTYPE_I8] = ROW(i8),
	[LTH_DTYPE_I16] = ROW(i16),
	[LTH_DTYPE_I32] = ROW(i32),
	[LTH_DTYPE_I64] = ROW(i64),
	[LTH_DTYPE_U8] = ROW(u8),
	[LTH_DTYPE_U16] = ROW(u16),
	[LTH_DTYPE_U32] = ROW(u32),
	[LTH_DTYPE_U64] = ROW(u64),
	[LTH_DTYPE_F32] = ROW(f32),
	[LTH_DTYPE_F64] = ROW(f64),
};

lth_lanes_fn lth_lanes_cast(enum lth_dtype from, enum lth_dtype to)
{
	return from < LTH_NUM_DTYPES && to < LTH_NUM_DTYPES ? casts[from][to] : NULL;
}
