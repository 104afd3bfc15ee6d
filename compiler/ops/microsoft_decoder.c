/* com.microsoft GroupQueryAttention and RotaryEmbedding: what decoders of language models are made of. The cache is a
 * buffer of rows [batch, heads, places, size] whose first places are valid, how many being told for each row of the
 * batch; the new keys and values stand behind them. */
#include "compiler/ops/attention.h"
#include "compiler/ops/family.h"
#include "compiler/ops/microsoft.h"

#include <math.h>
#include <string.h>

static lth_value_id binary(struct lth_infer *infer, enum lth_op_id op, lth_value_id a, lth_value_id b)
{
	return lth_build2(infer, op, a, b);
}

static lth_value_id whole(struct lth_infer *infer, int64_t value)
{
	return lth_build_scalar(infer, LTH_DTYPE_I64, (double)value);
}

/* ---- RotaryEmbedding ---- */

/* ai.onnx's operator; how much of a head turns is the node's own number, or follows from the angles. */
static lth_value_id rotate(struct lth_infer *infer, lth_value_id x, lth_value_id cosine, lth_value_id sine,
			   lth_value_id positions, bool interleaved, int64_t heads)
{
	struct lth_attr attrs[3] = {lth_attr_int("interleaved", interleaved)};
	uint32_t count = 1;
	int64_t given = lth_node_int(infer->node, "rotary_embedding_dim", 0), half;
	if (infer->failed)
		return LTH_NONE;
	const struct lth_type *angles = &infer->graph->values[cosine].type;
	if (given > 0)
		attrs[count++] = lth_attr_int("rotary_embedding_dim", given);
	else if (lth_dim_is_const(infer->dims, angles->dims[1], &half))
		attrs[count++] = lth_attr_int("rotary_embedding_dim", 2 * half);
	if (heads)
		attrs[count++] = lth_attr_int("num_heads", heads);
	lth_value_id in[] = {x, cosine, sine, positions};
	return lth_build(infer, LTH_OP_ID_RotaryEmbedding, in, 4, attrs, count);
}

/* [batch, sequence] from either form: one offset for all rows, or each position. */
static lth_value_id all_positions(struct lth_infer *infer, lth_value_id given, lth_value_id x, int64_t axis)
{
	lth_value_id shape[2];
	if (infer->failed || infer->graph->values[given].type.rank == 2)
		return given;
	shape[0] = lth_build_extent(infer, x, 0);
	shape[1] = lth_build_extent(infer, x, axis);
	lth_value_id places = binary(infer, LTH_OP_ID_Add, lth_build_count(infer, shape[1]), given);
	for (int i = 0; i < 2; i++)
		shape[i] = lth_build_reshape(infer, shape[i], (int64_t[]){1}, 1);
	return binary(infer, LTH_OP_ID_Expand, places, lth_build_concat(infer, shape, 2, 0));
}

/* [batch, sequence, all] as heads that turn as a whole, [batch, heads, sequence, size]. */
static lth_value_id whole_heads(struct lth_infer *infer, lth_value_id x, lth_value_id cosine)
{
	static const int64_t kept[] = {0, 0, -1}, perm[] = {0, 2, 1, 3}, one = 1;
	lth_value_id half = lth_build_extent(infer, cosine, 1);
	lth_value_id size = binary(infer, LTH_OP_ID_Mul, half, whole(infer, 2));
	lth_value_id before = lth_build_ints(infer, kept, 3);
	const lth_value_id shape[] = {before, lth_build_reshape(infer, size, &one, 1)};
	x = binary(infer, LTH_OP_ID_Reshape, x, lth_build_concat(infer, shape, 2, 0));
	return lth_build_transpose(infer, x, perm, 4);
}

static enum lth_code expand_rotary(struct lth_infer *infer)
{
	enum { X, POSITIONS, COS, SIN };
	int64_t heads = lth_op_int(infer->node, "num_heads");
	uint32_t rank = lth_infer_rank(infer, X);
	if (lth_op_float(infer->node, "scale") != 1)
		return lth_infer_unsupported(infer, NULL, "attribute scale of another value than 1");
	lth_value_id positions = all_positions(infer, lth_in(infer, POSITIONS), lth_in(infer, X), rank == 4 ? 2 : 1);
	bool interleaved = lth_op_int(infer->node, "interleaved") != 0, apart = rank == 3 && heads == 0;
	lth_value_id x = apart ? whole_heads(infer, lth_in(infer, X), lth_in(infer, COS)) : lth_in(infer, X);
	x = rotate(infer, x, lth_in(infer, COS), lth_in(infer, SIN), positions, interleaved, rank == 3 ? heads : 0);
	lth_build_output(infer, 0, apart ? lth_merge_heads(infer, x) : x);
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_rotary = {.expand = expand_rotary};

/* ---- GroupQueryAttention ---- */

enum {
	QUERY,
	KEY,
	VALUE,
	PAST_KEY,
	PAST_VALUE,
	LENGTHS,
	TOTAL,
	COS,
	SIN,
	POSITIONS,
	BIAS,
	SINK,
	KEY_SCALE,
	VALUE_SCALE,
	QUERY_NORM,
	KEY_NORM,
	QUERY_LENGTHS
};

/* What an expansion carries along; extents are i64 scalars, heads are apart. */
struct decoder {
	lth_value_id q, k, v;
	lth_value_id queries, places; /* how many queries; places of the present buffer */
	lth_value_id total, first;    /* longest row; whether no row has a past */
	lth_value_id ends, begins;    /* [batch, 1]: valid keys of each row with and without the new ones */
};

static enum lth_code refuse_forms(struct lth_infer *infer)
{
	if (lth_op_int(infer->node, "sliding_window_cache"))
		return lth_infer_unsupported(infer, NULL, "attribute sliding_window_cache");
	if (lth_infer_type(infer, QUERY_LENGTHS))
		return lth_infer_unsupported(infer, NULL, "%s", lth_infer_input_text(infer, QUERY_LENGTHS));
	return LTH_OK;
}

static enum lth_code check_decoder(struct lth_infer *infer)
{
	const struct lth_node *node = infer->node;
	int64_t heads = lth_op_int(node, "num_heads"), kv_heads = lth_op_int(node, "kv_num_heads");
	enum lth_code code = refuse_forms(infer);
	if (!code && heads % kv_heads)
		code = lth_infer_reject(infer, "num_heads a multiple of kv_num_heads", "%lld and %lld",
					(long long)heads, (long long)kv_heads);
	/* What is there has its rank by shapes.def; what is absent has none. */
	if (!code && lth_infer_type(infer, KEY))
		code = lth_infer_need_rank(infer, VALUE, 3, 3);
	if (!code && lth_infer_type(infer, PAST_KEY))
		code = lth_infer_need_rank(infer, PAST_VALUE, 4, 4);
	for (uint32_t i = COS; !code && lth_op_int(node, "do_rotary") && i <= SIN; i++)
		code = lth_infer_need_rank(infer, i, 2, 2);
	if (!code && !lth_infer_type(infer, COS) != !lth_infer_type(infer, SIN))
		code = lth_infer_reject(infer, "cos_cache and sin_cache together", "one of them");
	if (!code && !lth_infer_type(infer, QUERY_NORM) != !lth_infer_type(infer, KEY_NORM))
		code = lth_infer_reject(infer, "q_norm_weight and k_norm_weight together", "one of them");
	return code;
}

static void gather_heads(struct lth_infer *infer, struct decoder *d)
{
	int64_t heads = lth_op_int(infer->node, "num_heads"), kv_heads = lth_op_int(infer->node, "kv_num_heads");
	if (lth_in(infer, KEY) != LTH_NONE) {
		d->q = lth_split_heads(infer, lth_in(infer, QUERY), heads);
		d->k = lth_split_heads(infer, lth_in(infer, KEY), kv_heads);
		d->v = lth_split_heads(infer, lth_in(infer, VALUE), kv_heads);
		return;
	}
	lth_value_id all = lth_split_heads(infer, lth_in(infer, QUERY), heads + 2 * kv_heads);
	d->q = lth_build_slice(infer, all, 1, 0, heads);
	d->k = lth_build_slice(infer, all, 1, heads, heads + kv_heads);
	d->v = lth_build_slice(infer, all, 1, heads + kv_heads, heads + 2 * kv_heads);
}

/* A row's new keys end where `seqlens_k` says, one short; in the first step they begin at 0, whatever the padding. */
static void measure(struct lth_infer *infer, struct decoder *d)
{
	static const int64_t column[] = {-1, 1};
	d->queries = lth_build_extent(infer, d->q, 2);
	d->total =
		lth_build_cast(infer, lth_build_reshape(infer, lth_in(infer, TOTAL), (int64_t[]){0}, 0), LTH_DTYPE_I64);
	d->places = d->total;
	if (lth_in(infer, PAST_KEY) != LTH_NONE)
		d->places = binary(infer, LTH_OP_ID_Max, d->total, lth_build_extent(infer, lth_in(infer, PAST_KEY), 2));
	lth_value_id ends = lth_build_reshape(infer, lth_in(infer, LENGTHS), column, 2);
	ends = lth_build_cast(infer, ends, LTH_DTYPE_I64);
	d->ends = binary(infer, LTH_OP_ID_Add, ends, whole(infer, 1));
	d->first = binary(infer, LTH_OP_ID_Equal, d->queries, d->total);
	lth_value_id behind = binary(infer, LTH_OP_ID_Sub, d->ends, d->queries);
	d->begins = lth_build_select(infer, d->first, whole(infer, 0), behind);
}

/* In the first step only the first given position counts, ONNX Runtime says. */
static lth_value_id query_positions(struct lth_infer *infer, const struct decoder *d)
{
	lth_value_id steps = lth_build_count(infer, d->queries), given = lth_in(infer, POSITIONS);
	if (given == LTH_NONE)
		return binary(infer, LTH_OP_ID_Add, d->begins, steps);
	lth_value_id start = lth_build_slice(infer, lth_build_slice(infer, given, 0, 0, 1), 1, 0, 1);
	lth_value_id counted = binary(infer, LTH_OP_ID_Add, start, steps);
	return lth_build_select(infer, d->first, counted, given);
}

static lth_value_id head_norm(struct lth_infer *infer, lth_value_id x, uint32_t weight, const char *own_epsilon)
{
	const struct lth_attr *own = lth_node_attr(infer->node, own_epsilon);
	const struct lth_attr epsilon =
		lth_attr_float("epsilon", own ? own->f : lth_op_float(infer->node, "qk_norm_epsilon"));
	lth_value_id in[] = {x, lth_in(infer, weight)};
	return lth_build(infer, LTH_OP_ID_RMSNormalization, in, 2, &epsilon, 1);
}

/* Norms first, then the turn by position. */
static void prepare_heads(struct lth_infer *infer, struct decoder *d)
{
	if (lth_in(infer, QUERY_NORM) != LTH_NONE) {
		d->q = head_norm(infer, d->q, QUERY_NORM, "q_norm_epsilon");
		d->k = head_norm(infer, d->k, KEY_NORM, "k_norm_epsilon");
	}
	if (!lth_op_int(infer->node, "do_rotary"))
		return;
	bool interleaved = lth_op_int(infer->node, "rotary_interleaved") != 0;
	lth_value_id positions = query_positions(infer, d);
	d->q = rotate(infer, d->q, lth_in(infer, COS), lth_in(infer, SIN), positions, interleaved, 0);
	d->k = rotate(infer, d->k, lth_in(infer, COS), lth_in(infer, SIN), positions, interleaved, 0);
}

/* For each place of the present buffer, where its row stands in past, new, and one row of zeros behind each other:
 * [batch, 1, places, 1]. */
static lth_value_id cache_places(struct lth_infer *infer, const struct decoder *d)
{
	static const int64_t rows[] = {0, 1, -1, 1};
	lth_value_id past = whole(infer, 0), places = lth_build_count(infer, d->places);
	if (lth_in(infer, PAST_KEY) != LTH_NONE)
		past = lth_build_extent(infer, lth_in(infer, PAST_KEY), 2);
	lth_value_id step = binary(infer, LTH_OP_ID_Sub, places, d->begins);
	lth_value_id fresh = binary(infer, LTH_OP_ID_Add, step, past);
	lth_value_id zeros = binary(infer, LTH_OP_ID_Add, past, d->queries);
	lth_value_id is_fresh = binary(infer, LTH_OP_ID_Less, step, d->queries);
	fresh = lth_build_select(infer, is_fresh, fresh, zeros);
	lth_value_id is_past = binary(infer, LTH_OP_ID_Less, places, d->begins);
	return lth_build_reshape(infer, lth_build_select(infer, is_past, places, fresh), rows, 4);
}

/* The present buffer: valid rows of the past, the new ones, zeros. */
static lth_value_id present(struct lth_infer *infer, lth_value_id past, lth_value_id fresh, lth_value_id places)
{
	static const int64_t pads[] = {0, 0, 0, 0, 0, 0, 1, 0};
	const struct lth_attr axis = lth_attr_int("axis", 2);
	lth_value_id shape[4], rows = fresh;
	if (past != LTH_NONE)
		rows = lth_build_concat(infer, (lth_value_id[]){past, fresh}, 2, 2);
	rows = binary(infer, LTH_OP_ID_Pad, rows, lth_build_ints(infer, pads, 8));
	for (int64_t i = 0; i < 4; i++) {
		shape[i] = lth_build_extent(infer, i == 2 ? places : fresh, i);
		shape[i] = lth_build_reshape(infer, shape[i], (int64_t[]){1}, 1);
	}
	places = binary(infer, LTH_OP_ID_Expand, places, lth_build_concat(infer, shape, 4, 0));
	return lth_build(infer, LTH_OP_ID_GatherElements, (lth_value_id[]){rows, places}, 2, &axis, 1);
}

/* Which keys each query sees: [batch, 1, queries, places]. */
static lth_value_id visible(struct lth_infer *infer, const struct decoder *d)
{
	static const int64_t column[] = {1, 2}, row = 1;
	int64_t window = lth_op_int(infer->node, "local_window_size");
	lth_value_id places = lth_build_count(infer, d->places);
	if (!lth_op_int(infer->node, "causal"))
		return binary(infer, LTH_OP_ID_Less, places, lth_build_unsqueeze(infer, d->ends, column, 2));
	lth_value_id own = binary(infer, LTH_OP_ID_Add, d->begins, lth_build_count(infer, d->queries));
	own = lth_build_unsqueeze(infer, lth_build_unsqueeze(infer, own, &row, 1), (const int64_t[]){3}, 1);
	lth_value_id allowed = binary(infer, LTH_OP_ID_LessOrEqual, places, own);
	if (window < 0)
		return allowed;
	lth_value_id before = binary(infer, LTH_OP_ID_Sub, own, whole(infer, window));
	return binary(infer, LTH_OP_ID_And, allowed, binary(infer, LTH_OP_ID_Less, before, places));
}

/* The bias of scores reaches as far as the longest row; the buffer may be longer. */
static lth_value_id padded_bias(struct lth_infer *infer, const struct decoder *d)
{
	const int64_t zeros[7] = {0};
	lth_value_id bias = lth_in(infer, BIAS), pads[2];
	pads[1] = binary(infer, LTH_OP_ID_Sub, d->places, lth_build_extent(infer, bias, 3));
	pads[1] = lth_build_reshape(infer, pads[1], (int64_t[]){1}, 1);
	pads[0] = lth_build_ints(infer, zeros, 7);
	return binary(infer, LTH_OP_ID_Pad, bias, lth_build_concat(infer, pads, 2, 0));
}

/* Softmax with one more score a head that takes part in the sum only: 0, or the sink's. */
static lth_value_id sinking_softmax(struct lth_infer *infer, lth_value_id scores)
{
	const int64_t last = -1;
	lth_value_id sink = lth_in(infer, SINK);
	if (sink == LTH_NONE)
		sink = lth_build_scalar(infer, lth_build_dtype(infer, scores), 0);
	else
		sink = lth_build_reshape(infer, sink, (int64_t[]){1, -1, 1, 1}, 4);
	lth_value_id most = lth_build_reduce(infer, LTH_OP_ID_ReduceMax, scores, &last, 1, true);
	most = binary(infer, LTH_OP_ID_Max, most, sink);
	lth_value_id raised = lth_build1(infer, LTH_OP_ID_Exp, binary(infer, LTH_OP_ID_Sub, scores, most));
	lth_value_id rest = lth_build1(infer, LTH_OP_ID_Exp, binary(infer, LTH_OP_ID_Sub, sink, most));
	lth_value_id sum = lth_build_reduce(infer, LTH_OP_ID_ReduceSum, raised, &last, 1, true);
	return binary(infer, LTH_OP_ID_Div, raised, binary(infer, LTH_OP_ID_Add, sum, rest));
}

static lth_value_id masked_scores(struct lth_infer *infer, const struct decoder *d, lth_value_id keys)
{
	double softcap = lth_op_float(infer->node, "softcap");
	lth_value_id scores = lth_attention_scores(infer, d->q, lth_share_heads(infer, keys, d->q));
	enum lth_dtype dtype = lth_build_dtype(infer, scores);
	if (softcap > 0) {
		lth_value_id cap = lth_build_scalar(infer, dtype, softcap);
		scores = lth_build1(infer, LTH_OP_ID_Tanh, binary(infer, LTH_OP_ID_Div, scores, cap));
		scores = binary(infer, LTH_OP_ID_Mul, scores, cap);
	}
	if (lth_in(infer, BIAS) != LTH_NONE)
		scores = binary(infer, LTH_OP_ID_Add, scores, padded_bias(infer, d));
	lth_value_id never = lth_build_scalar(infer, dtype, -INFINITY);
	return lth_build_select(infer, visible(infer, d), scores, never);
}

static enum lth_code expand_decoder(struct lth_infer *infer)
{
	struct decoder d;
	enum lth_code code = check_decoder(infer);
	if (code)
		return code;
	gather_heads(infer, &d);
	measure(infer, &d);
	prepare_heads(infer, &d);
	struct lth_ms_cache key_cache, value_cache;
	int64_t kv_heads = lth_op_int(infer->node, "kv_num_heads");
	code = lth_ms_cache(infer, "k_quant_type", KEY_SCALE, PAST_KEY, kv_heads, &key_cache);
	if (!code)
		code = lth_ms_cache(infer, "v_quant_type", VALUE_SCALE, PAST_VALUE, kv_heads, &value_cache);
	if (code)
		return code;
	lth_value_id places = cache_places(infer, &d);
	lth_value_id keys = present(infer, lth_in(infer, PAST_KEY), lth_ms_cached(infer, &key_cache, d.k), places);
	lth_value_id values = present(infer, lth_in(infer, PAST_VALUE), lth_ms_cached(infer, &value_cache, d.v), places);
	enum lth_dtype dtype = lth_build_dtype(infer, d.q);
	lth_value_id seen = lth_ms_uncached(infer, &value_cache, values, dtype), weights;
	lth_value_id scores = masked_scores(infer, &d, lth_ms_uncached(infer, &key_cache, keys, dtype));
	bool sinks = lth_in(infer, SINK) != LTH_NONE || lth_op_int(infer->node, "smooth_softmax") > 0;
	weights = sinks ? sinking_softmax(infer, scores) : lth_build1(infer, LTH_OP_ID_Softmax, scores);
	lth_value_id shared = lth_share_heads(infer, seen, d.q);
	lth_build_output(infer, 0, lth_merge_heads(infer, binary(infer, LTH_OP_ID_MatMul, weights, shared)));
	lth_build_output(infer, 1, keys);
	lth_build_output(infer, 2, values);
	lth_build_output(infer, 3, lth_op_int(infer->node, "qk_output") == 1 ? scores : weights);
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_decoder = {.expand = expand_decoder};
