/* What the expansions of com.microsoft share. Thread rule: as infer.h. */
#ifndef LTH_OPS_MICROSOFT_H
#define LTH_OPS_MICROSOFT_H

#include "compiler/ops/build.h"

/* The node's attributes that `op` has too. */
const struct lth_attr *lth_ms_attrs_for(struct lth_infer *infer, enum lth_op_id op, uint32_t *out_count);
/* Images with their channels last, moved behind the batch axis; or back. */
lth_value_id lth_ms_move_channels(struct lth_infer *infer, lth_value_id x, bool to_first);
/* The activation that a fused operator's attribute names, with its parameters in the order alpha, beta. */
lth_value_id lth_ms_activated(struct lth_infer *infer, lth_value_id x, const double *params, uint32_t num_params);
/* By scale and zero point, which may be absent; quantised to the element type of output 0 then. */
lth_value_id lth_ms_dequantized(struct lth_infer *infer, lth_value_id x, lth_value_id scale, lth_value_id zero);
lth_value_id lth_ms_quantized(struct lth_infer *infer, lth_value_id x, lth_value_id scale, lth_value_id zero);
/* u8[..., n] as the 8 / bits times as many numbers that it holds, u8[..., n * 8 / bits], the first in the lowest bits.
 * microsoft_blocks.c */
lth_value_id lth_ms_unpacked(struct lth_infer *infer, lth_value_id packed, int64_t bits);

/* Caches of keys and values of few bits (microsoft_cache.c): how an operator's attributes say that one is quantised, and
 * the input with its scales. */
struct lth_ms_cache {
	lth_value_id scale; /* broadcasts to [batch, heads, places, size]; LTH_NONE: not quantised */
	enum lth_dtype dtype;
	int64_t bits;
};
/* What attribute `quant_type` and input `scale` say of a cache of `heads` heads; `past` is its input. */
LTH_MUST_CHECK enum lth_code lth_ms_cache(struct lth_infer *infer, const char *quant_type, uint32_t scale, uint32_t past,
					  int64_t heads, struct lth_ms_cache *out);
/* Into the cache's form, and back to numbers of `dtype`; as they are when it is not quantised. */
lth_value_id lth_ms_cached(struct lth_infer *infer, const struct lth_ms_cache *cache, lth_value_id x);
lth_value_id lth_ms_uncached(struct lth_infer *infer, const struct lth_ms_cache *cache, lth_value_id x, enum lth_dtype dtype);

#endif
