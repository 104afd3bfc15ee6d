/* com.microsoft: caches of keys and values that are quantised, with a scale for all or one a head and channel, and no zero
 * point. Numbers of 4 bits lie two to a byte, the first in the low half, 8 above their value. */
#include "compiler/ops/family.h"
#include "compiler/ops/microsoft.h"

static lth_value_id number(struct lth_infer *infer, double value)
{
	return lth_build_scalar(infer, LTH_DTYPE_F32, value);
}

enum lth_code lth_ms_cache(struct lth_infer *infer, const char *quant_type, uint32_t scale, uint32_t past, int64_t heads,
			   struct lth_ms_cache *out)
{
	int64_t bits = lth_node_int(infer->node, "kv_cache_bit_width", 8);
	const struct lth_type *type = lth_infer_type(infer, past);
	*out = (struct lth_ms_cache){.scale = LTH_NONE, .bits = bits};
	if (lth_op_string_is(infer->node, quant_type, "NONE")) {
		if (lth_infer_type(infer, scale))
			return lth_infer_reject(infer, "no scales of a cache that is not quantised", "%s",
						lth_infer_input_text(infer, scale));
		return LTH_OK;
	}
	if (bits != 4 && bits != 8)
		return lth_infer_reject(infer, "4 or 8", "kv_cache_bit_width %lld", (long long)bits);
	if (!lth_infer_type(infer, scale))
		return lth_infer_reject(infer, "scales of a quantised cache", "no input %u", scale);
	out->dtype = type ? type->dtype : bits == 4 ? LTH_DTYPE_U8 : LTH_DTYPE_I8;
	if (!lth_dtype_in(out->dtype, bits == 4 ? "u8" : "i8|f8e4m3fn"))
		return lth_infer_reject(infer, bits == 4 ? "u8" : "i8 or f8e4m3fn", "%s of type %s for %lld bits",
					lth_infer_input_text(infer, past), lth_dtype_text(out->dtype), (long long)bits);
	const int64_t all[] = {1}, each[] = {heads, 1, -1};
	bool one = lth_op_string_is(infer->node, quant_type, "PER_TENSOR");
	out->scale = lth_build_reshape(infer, lth_in(infer, scale), one ? all : each, one ? 1 : 3);
	return infer->failed;
}

/* i8 in [-8, 7] of an even number of channels, two to a byte. */
static lth_value_id packed(struct lth_infer *infer, lth_value_id x)
{
	static const int64_t pairs[] = {0, 0, 0, -1, 2};
	const struct lth_attr left = {
		.name = "direction", .kind = LTH_ATTR_STRING, .count = 1, .s = {.data = "LEFT", .size = 4}};
	x = lth_build_cast(infer, lth_build2(infer, LTH_OP_ID_Add, x, number(infer, 8)), LTH_DTYPE_U8);
	x = lth_build_reshape(infer, x, pairs, 5);
	lth_value_id half[2], four = lth_build_cast(infer, number(infer, 4), LTH_DTYPE_U8);
	for (int i = 0; i < 2; i++)
		half[i] = lth_build_gather(infer, x, lth_build_scalar(infer, LTH_DTYPE_I64, i), -1);
	half[1] = lth_build(infer, LTH_OP_ID_BitShift, (lth_value_id[]){half[1], four}, 2, &left, 1);
	return lth_build2(infer, LTH_OP_ID_BitwiseOr, half[0], half[1]);
}

lth_value_id lth_ms_cached(struct lth_infer *infer, const struct lth_ms_cache *cache, lth_value_id x)
{
	if (cache->scale == LTH_NONE)
		return x;
	x = lth_build2(infer, LTH_OP_ID_Div, lth_build_cast(infer, x, LTH_DTYPE_F32), cache->scale);
	if (cache->dtype == LTH_DTYPE_F8E4M3)
		return lth_build_cast(infer, x, cache->dtype);
	double most = cache->bits == 4 ? 8 : 128;
	lth_value_id rounded = lth_build1(infer, LTH_OP_ID_Round, x), low = number(infer, -most);
	const lth_value_id limited[] = {rounded, low, number(infer, most - 1)};
	x = lth_build(infer, LTH_OP_ID_Clip, limited, 3, NULL, 0);
	return cache->bits == 4 ? packed(infer, x) : lth_build_cast(infer, x, cache->dtype);
}

lth_value_id lth_ms_uncached(struct lth_infer *infer, const struct lth_ms_cache *cache, lth_value_id x, enum lth_dtype dtype)
{
	if (cache->scale == LTH_NONE)
		return x;
	if (cache->bits == 4) {
		x = lth_build_cast(infer, lth_ms_unpacked(infer, x, 4), LTH_DTYPE_F32);
		x = lth_build2(infer, LTH_OP_ID_Sub, x, number(infer, 8));
	}
	x = lth_build2(infer, LTH_OP_ID_Mul, lth_build_cast(infer, x, LTH_DTYPE_F32), cache->scale);
	return lth_build_cast(infer, x, dtype);
}
