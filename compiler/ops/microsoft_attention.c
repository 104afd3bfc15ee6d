/* com.microsoft Attention, QAttention and MultiHeadAttention: front ends that make queries, keys and values in their
 * own ways, and one attention behind them, with the masks of ONNX Runtime: a padding mask becomes a bias of
 * `mask_filter_value`, keys after a query's own place get the lowest finite score. */
#include "compiler/ops/attention.h"
#include "compiler/ops/family.h"

#include <math.h>

static lth_value_id add(struct lth_infer *infer, lth_value_id a, lth_value_id b)
{
	return a == LTH_NONE ? b : b == LTH_NONE ? a : lth_build2(infer, LTH_OP_ID_Add, a, b);
}

/* Heads apart. Keys and values begin with the past, whose keys are `past` (LTH_NONE without one). */
struct attention {
	lth_value_id q, k, v, past;
	uint32_t mask, bias; /* inputs of the node; UINT32_MAX when the operator has none */
	bool soft;           /* later keys are kept off by the bias of a mask */
};

/* Attributes and inputs that only decoders with a shared cache use: refused by name when they are given. */
static enum lth_code refuse_shared_cache(struct lth_infer *infer, const char *const *attrs, uint32_t num_attrs,
					 uint32_t first_input)
{
	for (uint32_t i = 0; i < num_attrs; i++)
		if (lth_node_int(infer->node, attrs[i], 0) != 0)
			return lth_infer_unsupported(infer, NULL, "attribute %s", attrs[i]);
	for (uint32_t i = first_input; i < infer->node->num_inputs; i++)
		if (lth_in(infer, i) != LTH_NONE)
			return lth_infer_unsupported(infer, "give past and present buffers of their own", "%s",
						     lth_infer_input_text(infer, i));
	return LTH_OK;
}

/* ---- masks ---- */

/* How many keys the past has, as an i64 scalar. */
static lth_value_id past_extent(struct lth_infer *infer, const struct attention *a)
{
	return a->past == LTH_NONE ? lth_build_scalar(infer, LTH_DTYPE_I64, 0) : lth_build_extent(infer, a->past, 2);
}

/* [batch] ends, [2 * batch] ends and then starts, or [3 * batch + 2] ends and places of packed rows: which keys of each
 * row are in between, [batch, 1, 1, keys]. */
static lth_value_id mask_of_lengths(struct lth_infer *infer, const struct attention *a)
{
	static const int64_t rows[] = {-1, 1, 1, 1};
	lth_value_id mask = lth_build_cast(infer, lth_in(infer, a->mask), LTH_DTYPE_I64);
	lth_value_id batch = lth_build_extent(infer, a->q, 0), row = lth_build_count(infer, batch);
	lth_value_id zero = lth_build_scalar(infer, LTH_DTYPE_I64, 0), twice = add(infer, batch, batch);
	lth_value_id has_starts = lth_build2(infer, LTH_OP_ID_Equal, lth_build_extent(infer, mask, 0), twice);
	lth_value_id second = add(infer, row, lth_build_select(infer, has_starts, batch, zero));
	lth_value_id ends = lth_build_gather(infer, mask, row, 0), starts = lth_build_gather(infer, mask, second, 0);
	starts = lth_build_select(infer, has_starts, starts, zero);
	lth_value_id keys = lth_build_count(infer, lth_build_extent(infer, a->k, 2));
	ends = lth_build2(infer, LTH_OP_ID_Less, keys, lth_build_reshape(infer, ends, rows, 4));
	starts = lth_build2(infer, LTH_OP_ID_LessOrEqual, lth_build_reshape(infer, starts, rows, 4), keys);
	return lth_build2(infer, LTH_OP_ID_And, ends, starts);
}

/* The part of a mask [batch, 1, places, places] that belongs to the queries, which stand behind the past. */
static lth_value_id part_of_square(struct lth_infer *infer, const struct attention *a, lth_value_id mask)
{
	lth_value_id queries = lth_build_count(infer, lth_build_extent(infer, a->q, 2));
	queries = add(infer, queries, past_extent(infer, a));
	mask = lth_build_gather(infer, mask, queries, 2);
	return lth_build_gather(infer, mask, lth_build_count(infer, lth_build_extent(infer, a->k, 2)), 3);
}

/* Which keys the mask input allows, broadcasting to the scores. */
static lth_value_id padding_mask(struct lth_infer *infer, const struct attention *a)
{
	static const int64_t inner[] = {1, 2};
	const struct lth_type *type = lth_infer_type(infer, a->mask);
	lth_value_id mask = lth_in(infer, a->mask);
	if (type->rank == 1)
		return mask_of_lengths(infer, a);
	if (type->rank == 2)
		mask = lth_build_unsqueeze(infer, mask, inner, 2);
	else if (type->rank == 3)
		mask = lth_build_unsqueeze(infer, mask, inner, 1);
	else
		mask = part_of_square(infer, a, mask);
	return lth_build2(infer, LTH_OP_ID_Greater, mask, lth_build_scalar(infer, LTH_DTYPE_I32, 0));
}

/* Keys up to each query's own place, behind the past: [queries, keys]. The last query sees all: that matters where
 * there are more keys than places, as when the cache comes as the keys. */
static lth_value_id causal_mask(struct lth_infer *infer, const struct attention *a)
{
	const int64_t last = -1;
	lth_value_id queries = lth_build_extent(infer, a->q, 2), one = lth_build_scalar(infer, LTH_DTYPE_I64, 1);
	lth_value_id row = lth_build_unsqueeze(infer, lth_build_count(infer, queries), &last, 1);
	lth_value_id keys = lth_build_count(infer, lth_build_extent(infer, a->k, 2));
	lth_value_id place = add(infer, row, past_extent(infer, a));
	lth_value_id allowed = lth_build2(infer, LTH_OP_ID_LessOrEqual, keys, place);
	lth_value_id is_last = lth_build2(infer, LTH_OP_ID_Equal, add(infer, row, one), queries);
	return lth_build2(infer, LTH_OP_ID_Or, allowed, is_last);
}

static double lowest(enum lth_dtype dtype)
{
	return dtype == LTH_DTYPE_F16 ? -65504 : dtype == LTH_DTYPE_BF16 ? -0x1.fep127 : -0x1.fffffep127;
}

/* What is added to the scores; LTH_NONE when nothing is. */
static lth_value_id score_bias(struct lth_infer *infer, const struct attention *a)
{
	enum lth_dtype dtype = lth_build_dtype(infer, a->q);
	double filter = lth_node_float(infer->node, "mask_filter_value", -10000);
	lth_value_id zero = lth_build_scalar(infer, dtype, 0), bias = LTH_NONE;
	if (infer->failed)
		return LTH_NONE;
	if (lth_infer_type(infer, a->mask)) {
		lth_value_id allowed = padding_mask(infer, a), far = lth_build_scalar(infer, dtype, filter);
		bias = lth_build_select(infer, allowed, zero, far);
	}
	if (lth_op_int(infer->node, "unidirectional")) {
		lth_value_id allowed = causal_mask(infer, a), base = bias == LTH_NONE ? zero : bias;
		lth_value_id later = lth_build_scalar(infer, dtype, a->soft ? filter : lowest(dtype));
		if (a->soft)
			later = add(infer, base, later);
		bias = lth_build_select(infer, allowed, base, later);
	}
	return a->bias == UINT32_MAX ? bias : add(infer, bias, lth_in(infer, a->bias));
}

/* Output 0 and, returned, the scores before the softmax. */
static lth_value_id attend(struct lth_infer *infer, const struct attention *a)
{
	lth_value_id scores = lth_attention_scores(infer, a->q, a->k);
	scores = add(infer, scores, score_bias(infer, a));
	lth_value_id weights = lth_build1(infer, LTH_OP_ID_Softmax, scores);
	lth_build_output(infer, 0, lth_merge_heads(infer, lth_build2(infer, LTH_OP_ID_MatMul, weights, a->v)));
	return scores;
}

/* ---- Attention, QAttention ---- */

/* Part `part` of the past [2, batch, heads, keys, size] before the present. */
static lth_value_id with_past(struct lth_infer *infer, lth_value_id past, int64_t part, lth_value_id present)
{
	lth_value_id both[2] = {LTH_NONE, present};
	if (past == LTH_NONE)
		return present;
	both[0] = lth_build_gather(infer, past, lth_build_scalar(infer, LTH_DTYPE_I64, (double)part), 0);
	return lth_build_concat(infer, both, 2, 2);
}

/* The joint product [batch, sequence, all] cut into queries, keys and values: equal parts, or of given sizes. */
static enum lth_code cut_joint(struct lth_infer *infer, lth_value_id joint, lth_value_id *parts)
{
	const struct lth_attr axis = lth_attr_int("axis", 2), cut[] = {axis, lth_attr_int("num_outputs", 3)};
	const bool wanted[3] = {true, true, true};
	const int64_t *sizes;
	uint32_t count;
	if (!lth_node_ints(infer->node, "qkv_hidden_sizes", &sizes, &count) || count == 0) {
		lth_build_many(infer, LTH_OP_ID_Split, &joint, 1, cut, 2, wanted, parts, 3);
		return LTH_OK;
	}
	if (count != 3)
		return lth_infer_reject(infer, "three qkv_hidden_sizes", "%u", count);
	lth_value_id in[2] = {joint, lth_build_ints(infer, sizes, count)};
	lth_build_many(infer, LTH_OP_ID_Split, in, 2, &axis, 1, wanted, parts, 3);
	return LTH_OK;
}

/* From the joint product; `past` is both keys and values, and so is output 1. */
static enum lth_code attend_joint(struct lth_infer *infer, struct attention *a, lth_value_id joint, lth_value_id past)
{
	const int64_t first = 0;
	lth_value_id parts[3], present[2];
	enum lth_code code = cut_joint(infer, joint, parts);
	if (code)
		return code;
	for (int i = 0; i < 3; i++)
		parts[i] = lth_split_heads(infer, parts[i], lth_op_int(infer->node, "num_heads"));
	a->q = parts[0];
	a->k = with_past(infer, past, 0, parts[1]);
	a->v = with_past(infer, past, 1, parts[2]);
	a->past = LTH_NONE;
	if (past != LTH_NONE)
		a->past = lth_build_gather(infer, past, lth_build_scalar(infer, LTH_DTYPE_I64, 0), 0);
	attend(infer, a);
	if (lth_build_wants(infer, 1)) {
		present[0] = lth_build_unsqueeze(infer, a->k, &first, 1);
		present[1] = lth_build_unsqueeze(infer, a->v, &first, 1);
		lth_build_output(infer, 1, lth_build_concat(infer, present, 2, 0));
	}
	return LTH_OK;
}

static enum lth_code expand_attention(struct lth_infer *infer)
{
	enum { X, WEIGHT, BIAS, MASK, PAST, SCORE_BIAS, PAST_LENGTH };
	static const char *const foreign[] = {"do_rotary", "past_present_share_buffer"};
	struct attention a = {.mask = MASK, .bias = SCORE_BIAS};
	enum lth_code code = refuse_shared_cache(infer, foreign, 2, PAST_LENGTH);
	if (code)
		return code;
	lth_value_id joint = lth_build2(infer, LTH_OP_ID_MatMul, lth_in(infer, X), lth_in(infer, WEIGHT));
	return attend_joint(infer, &a, add(infer, joint, lth_in(infer, BIAS)), lth_in(infer, PAST));
}

const struct lth_op_impl lth_impl_ms_attention = {.expand = expand_attention};

static enum lth_code expand_qattention(struct lth_infer *infer)
{
	enum { X, WEIGHT, BIAS, X_SCALE, WEIGHT_SCALE, MASK, X_ZERO, WEIGHT_ZERO, PAST };
	static const char *const foreign[] = {"do_rotary", "past_present_share_buffer"};
	struct attention a = {.mask = MASK, .bias = UINT32_MAX, .soft = true};
	enum lth_code code = refuse_shared_cache(infer, foreign, 2, PAST + 1);
	if (code)
		return code;
	lth_value_id in[] = {lth_in(infer, X), lth_in(infer, WEIGHT), lth_in(infer, X_ZERO),
			     lth_in(infer, WEIGHT_ZERO)};
	lth_value_id joint = lth_build(infer, LTH_OP_ID_MatMulInteger, in, 4, NULL, 0);
	lth_value_id scale = lth_build2(infer, LTH_OP_ID_Mul, lth_in(infer, X_SCALE), lth_in(infer, WEIGHT_SCALE));
	joint = lth_build2(infer, LTH_OP_ID_Mul, lth_build_cast(infer, joint, infer->out_dtypes[0]), scale);
	return attend_joint(infer, &a, add(infer, joint, lth_in(infer, BIAS)), lth_in(infer, PAST));
}

const struct lth_op_impl lth_impl_ms_qattention = {.expand = expand_qattention};

/* ---- MultiHeadAttention ---- */

enum { QUERY, KEY, VALUE, PROJECTION_BIAS, KEY_MASK, SCORE_BIAS, PAST_KEY, PAST_VALUE, PAST_LENGTH };

/* Several projections in one input: [batch, sequence, heads, parts, size]. */
static void unpack_heads(struct lth_infer *infer, lth_value_id packed, uint32_t parts, lth_value_id *out)
{
	static const int64_t perm[] = {0, 2, 1, 3};
	for (uint32_t i = 0; i < parts; i++) {
		lth_value_id part = lth_build_scalar(infer, LTH_DTYPE_I64, i);
		out[i] = lth_build_transpose(infer, lth_build_gather(infer, packed, part, 3), perm, 4);
	}
}

/* Adds the part of the bias from `begin` (LTH_NONE: 0) on, moves `begin` behind it, and takes heads apart. */
static lth_value_id project(struct lth_infer *infer, lth_value_id x, lth_value_id *begin)
{
	lth_value_id bias = lth_in(infer, PROJECTION_BIAS), places;
	if (bias != LTH_NONE) {
		lth_value_id width = lth_build_extent(infer, x, 2);
		places = lth_build_count(infer, width);
		if (*begin != LTH_NONE)
			places = add(infer, places, *begin);
		*begin = add(infer, *begin, width);
		x = add(infer, x, lth_build_gather(infer, bias, places, 0));
	}
	return lth_split_heads(infer, x, lth_op_int(infer->node, "num_heads"));
}

static enum lth_code check_multi_head(struct lth_infer *infer)
{
	uint32_t query = lth_infer_rank(infer, QUERY), key = lth_infer_rank(infer, KEY);
	enum lth_code code = LTH_OK;
	if (query == 3)
		code = lth_infer_need_rank(infer, KEY, 3, 5);
	if (!code && query == 5 && (key || lth_infer_type(infer, VALUE)))
		code = lth_infer_reject(infer, "no key and value beside a packed query", "them");
	if (!code && query == 3 && key != 5)
		code = lth_infer_need_rank(infer, VALUE, key, key);
	if (!code && (query == 5 || key == 5) && lth_in(infer, PROJECTION_BIAS) != LTH_NONE)
		code = lth_infer_unsupported(infer, "add it before", "a projection bias of packed inputs");
	if (!code && !lth_infer_type(infer, PAST_KEY) != !lth_infer_type(infer, PAST_VALUE))
		code = lth_infer_reject(infer, "past_key and past_value together", "one of them");
	return code;
}

static enum lth_code expand_multi_head(struct lth_infer *infer)
{
	struct attention a = {.mask = KEY_MASK, .bias = SCORE_BIAS, .past = lth_in(infer, PAST_KEY)};
	lth_value_id parts[3], begin = LTH_NONE, past_value = lth_in(infer, PAST_VALUE);
	enum lth_code code = check_multi_head(infer);
	if (!code)
		code = refuse_shared_cache(infer, NULL, 0, PAST_LENGTH);
	if (code)
		return code;
	uint32_t query_rank = lth_infer_rank(infer, QUERY), key_rank = lth_infer_rank(infer, KEY);
	if (query_rank == 5) {
		unpack_heads(infer, lth_in(infer, QUERY), 3, parts);
	} else {
		parts[0] = project(infer, lth_in(infer, QUERY), &begin);
		if (key_rank == 5)
			unpack_heads(infer, lth_in(infer, KEY), 2, parts + 1);
		for (uint32_t i = KEY; key_rank != 5 && i <= VALUE; i++)
			parts[i] = key_rank == 4 ? lth_in(infer, i) : project(infer, lth_in(infer, i), &begin);
	}
	a.q = parts[0];
	a.k = parts[1];
	a.v = parts[2];
	if (a.past != LTH_NONE) {
		a.k = lth_build_concat(infer, (lth_value_id[]){a.past, a.k}, 2, 2);
		a.v = lth_build_concat(infer, (lth_value_id[]){past_value, a.v}, 2, 2);
	}
	lth_value_id scores = attend(infer, &a);
	lth_build_output(infer, 1, a.k);
	lth_build_output(infer, 2, a.v);
	lth_build_output(infer, 3, scores);
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_multi_head = {.expand = expand_multi_head};
