/* Operators of com.microsoft that models of language and speech carry beside attention: convolutions and attention with
 * a state, their gates, positions of several streams, biases by relative position, and batches without their padding,
 * whose tokens stand one behind the other. Shapes of inputs: shapes.def. Thread rule: as infer.h. */
#include "compiler/ops/attention.h"
#include "compiler/ops/family.h"
#include "compiler/ops/microsoft.h"

#include <math.h>

static lth_value_id binary(struct lth_infer *infer, enum lth_op_id op, lth_value_id a, lth_value_id b)
{
	return lth_build2(infer, op, a, b);
}

static lth_value_id as_list(struct lth_infer *infer, lth_value_id scalar)
{
	const int64_t one = 1;
	return lth_build_reshape(infer, scalar, &one, 1);
}

/* Refuses an integer attribute of another value than the one that is implemented. */
static enum lth_code need_value(struct lth_infer *infer, const char *name, int64_t value)
{
	int64_t given = lth_op_int(infer->node, name);
	return given == value ? LTH_OK : lth_infer_unsupported(infer, NULL, "attribute %s of %lld", name, (long long)given);
}

/* ---- state along time ---- */

/* Taps `dilation` apart, with zeros in between: [channels, 1, (taps - 1) * dilation + 1]. */
static lth_value_id dilated(struct lth_infer *infer, lth_value_id w, int64_t dilation)
{
	const int64_t last = -1, pads[] = {0, 0, 0, 0, 0, 0, 0, dilation - 1};
	if (dilation == 1)
		return w;
	w = lth_build_unsqueeze(infer, w, &last, 1);
	w = binary(infer, LTH_OP_ID_Pad, w, lth_build_ints(infer, pads, 8));
	w = lth_build_reshape(infer, w, (int64_t[]){0, 0, -1}, 3);
	return lth_build_slice(infer, w, 2, 0, -(dilation - 1));
}

/* [batch, places, channels ...] as [batch, channels, places], or as it was with the channel axes of `like`. */
static lth_value_id channels_first(struct lth_infer *infer, lth_value_id x)
{
	static const int64_t perm[] = {0, 2, 1};
	return x == LTH_NONE ? x : lth_build_transpose(infer, lth_build_reshape(infer, x, (int64_t[]){0, 0, -1}, 3), perm, 3);
}

static lth_value_id channels_last(struct lth_infer *infer, lth_value_id x, lth_value_id like)
{
	static const int64_t perm[] = {0, 2, 1}, kept[] = {0, 0};
	lth_value_id shape[2] = {lth_build1(infer, LTH_OP_ID_Shape, like), LTH_NONE};
	shape[1] = lth_build_slice(infer, shape[0], 0, 2, INT64_MAX);
	shape[0] = lth_build_ints(infer, kept, 2);
	x = lth_build_transpose(infer, x, perm, 3);
	return binary(infer, LTH_OP_ID_Reshape, x, lth_build_concat(infer, shape, 2, 0));
}

static enum lth_code expand_causal_conv(struct lth_infer *infer)
{
	enum { X, WEIGHT, BIAS, STATE };
	static const struct {
		const char *name;
		int64_t value;
	} fixed[] = {{"ndim", 1}, {"input_channel_offset", 0}, {"input_channels", 0}, {"state_channels_last", -1},
		     {"state_length", 0}, {"state_update_capacity", 0}, {"state_window", 0}};
	int64_t dilation = lth_op_int(infer->node, "dilation");
	bool last = lth_op_int(infer->node, "channels_last") != 0;
	enum lth_code code = LTH_OK;
	for (size_t i = 0; !code && i < sizeof(fixed) / sizeof(*fixed); i++)
		code = need_value(infer, fixed[i].name, fixed[i].value);
	if (!code && !last)
		code = lth_infer_need_rank(infer, X, 3, 3);
	if (code)
		return code;
	uint32_t count;
	const struct lth_attr *attrs = lth_ms_attrs_for(infer, LTH_OP_ID_CausalConvWithState, &count);
	const bool wanted[2] = {lth_build_wants(infer, 0), lth_build_wants(infer, 1)};
	lth_value_id x = lth_in(infer, X), out[2], in[] = {x, LTH_NONE, lth_in(infer, BIAS), lth_in(infer, STATE)};
	in[WEIGHT] = dilated(infer, lth_in(infer, WEIGHT), dilation);
	for (uint32_t i = X; last && i <= STATE; i += STATE)
		in[i] = channels_first(infer, in[i]);
	lth_build_many(infer, LTH_OP_ID_CausalConvWithState, in, 4, attrs, count, wanted, out, 2);
	for (uint32_t i = 0; i < 2; i++)
		if (wanted[i])
			lth_build_output(infer, i, last ? channels_last(infer, out[i], x) : out[i]);
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_causal_conv = {.expand = expand_causal_conv};

static enum lth_code expand_linear_attention(struct lth_infer *infer)
{
	const bool wanted[2] = {lth_build_wants(infer, 0), lth_build_wants(infer, 1)};
	lth_value_id in[6], out[2];
	uint32_t count;
	enum lth_code code = need_value(infer, "state_window", 0);
	if (code)
		return code;
	for (uint32_t i = 0; i < 6; i++)
		in[i] = lth_in(infer, i);
	const struct lth_attr *attrs = lth_ms_attrs_for(infer, LTH_OP_ID_LinearAttention, &count);
	lth_build_many(infer, LTH_OP_ID_LinearAttention, in, infer->node->num_inputs, attrs, count, wanted, out, 2);
	for (uint32_t i = 0; i < 2; i++)
		if (wanted[i])
			lth_build_output(infer, i, out[i]);
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_linear_attention = {.expand = expand_linear_attention};

/* How much each head's state decays, and how much it is corrected. */
static enum lth_code expand_attention_gate(struct lth_infer *infer)
{
	enum { A, DT_BIAS, DECAY_SCALE, B };
	if (lth_build_wants(infer, 1) && lth_in(infer, B) == LTH_NONE)
		return lth_infer_reject(infer, NULL, "input %d is missing, for output 1", B);
	lth_value_id a = lth_build_cast(infer, lth_in(infer, A), LTH_DTYPE_F32);
	a = lth_build1(infer, LTH_OP_ID_Softplus, binary(infer, LTH_OP_ID_Add, a, lth_in(infer, DT_BIAS)));
	a = binary(infer, LTH_OP_ID_Mul, a, lth_in(infer, DECAY_SCALE));
	lth_build_output(infer, 0, lth_build_cast(infer, a, infer->out_dtypes[0]));
	if (lth_build_wants(infer, 1))
		lth_build_output(infer, 1, lth_build1(infer, LTH_OP_ID_Sigmoid, lth_in(infer, B)));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_attention_gate = {.expand = expand_attention_gate};

/* ---- positions ---- */

/* Which of the three streams of positions (time, height, width) turns pair `i`: one section behind the other, or in turn
 * as far as the sections of height and width reach. */
static int64_t stream_of(int64_t i, const int64_t *sections, bool in_turn)
{
	if (in_turn)
		return i % 3 != 0 && i < 3 * sections[i % 3] ? i % 3 : 0;
	return i < sections[0] ? 0 : i < sections[0] + sections[1] ? 1 : 2;
}

/* Angles [batch, sequence, pairs] from a table [places, pairs] and positions [3, batch, sequence]. */
static lth_value_id angles(struct lth_infer *infer, uint32_t table, lth_value_id positions, const bool *const *of_stream,
			   int64_t pairs)
{
	lth_value_id rows = lth_build_gather(infer, lth_in(infer, table), positions, 0), y = LTH_NONE;
	for (int64_t stream = 0; stream < 3; stream++) {
		lth_value_id at = lth_build_scalar(infer, LTH_DTYPE_I64, (double)stream);
		lth_value_id row = lth_build_gather(infer, rows, at, 0);
		lth_value_id mask = lth_build_data(infer, LTH_DTYPE_BOOL, 1, &pairs, of_stream[stream], (size_t)pairs);
		y = y == LTH_NONE ? row : lth_build_select(infer, mask, row, y);
	}
	return y;
}

static enum lth_code expand_streams_rotary(struct lth_infer *infer)
{
	enum { X, POSITIONS, COS, SIN, MOST_PAIRS = 4096 };
	const int64_t *sections;
	uint32_t count, rank = lth_infer_rank(infer, X);
	bool in_turn = lth_op_int(infer->node, "mrope_layout") == 1;
	bool masks[3][MOST_PAIRS];
	lth_node_ints(infer->node, "mrope_section", &sections, &count);
	int64_t pairs = 0, heads = lth_op_int(infer->node, "num_heads"), size = lth_op_int(infer->node, "rotary_embedding_dim");
	for (uint32_t i = 0; i < count; i++)
		pairs = sections[i] < 0 || sections[i] > MOST_PAIRS || pairs > MOST_PAIRS ? MOST_PAIRS + 1 : pairs + sections[i];
	if (count != 3 || pairs > MOST_PAIRS)
		return lth_infer_reject(infer, "three sections of at most 4096 pairs", "%u that make %lld", count, (long long)pairs);
	if (lth_op_float(infer->node, "scale") != 1)
		return lth_infer_unsupported(infer, NULL, "attribute scale of another value than 1");
	enum lth_code code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, COS, 1), lth_dim_const(infer->dims, pairs),
					       "as many angles as the sections make");
	if (!code && rank == 3 && heads < 1)
		code = lth_infer_reject(infer, "num_heads for an input of rank 3", "none");
	if (code)
		return code;
	for (int64_t i = 0; i < pairs; i++)
		for (int64_t stream = 0; stream < 3; stream++)
			masks[stream][i] = stream_of(i, sections, in_turn) == stream;
	const bool *const of_stream[] = {masks[0], masks[1], masks[2]};
	lth_value_id positions = lth_in(infer, POSITIONS), in[3] = {lth_in(infer, X)};
	in[1] = angles(infer, COS, positions, of_stream, pairs);
	in[2] = angles(infer, SIN, positions, of_stream, pairs);
	const struct lth_attr attrs[] = {lth_attr_int("interleaved", lth_op_int(infer->node, "interleaved")),
					 lth_attr_int("rotary_embedding_dim", size ? size : 2 * pairs),
					 lth_attr_int("num_heads", heads)};
	lth_build_output(infer, 0, lth_build(infer, LTH_OP_ID_RotaryEmbedding, in, 3, attrs, rank == 3 ? 3 : 2));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_streams_rotary = {.expand = expand_streams_rotary};

/* The bucket of each distance [queries, keys]: one each below `exact`, then logarithmically up to `most`. */
static lth_value_id buckets_of(struct lth_infer *infer, lth_value_id distance, int64_t buckets, int64_t most)
{
	int64_t exact = buckets / 2;
	double slope = (double)(buckets - exact) / log((double)most / (double)exact);
	lth_value_id limit = lth_build_scalar(infer, LTH_DTYPE_I64, (double)exact);
	lth_value_id far = lth_build_cast(infer, binary(infer, LTH_OP_ID_Max, distance, limit), LTH_DTYPE_F32);
	far = binary(infer, LTH_OP_ID_Div, far, lth_build_scalar(infer, LTH_DTYPE_F32, (double)exact));
	far = lth_build1(infer, LTH_OP_ID_Log, far);
	far = binary(infer, LTH_OP_ID_Mul, far, lth_build_scalar(infer, LTH_DTYPE_F32, slope));
	far = binary(infer, LTH_OP_ID_Add, lth_build_cast(infer, far, LTH_DTYPE_I64), limit);
	far = binary(infer, LTH_OP_ID_Min, far, lth_build_scalar(infer, LTH_DTYPE_I64, (double)buckets - 1));
	return lth_build_select(infer, binary(infer, LTH_OP_ID_Less, distance, limit), distance, far);
}

/* A bias of each head for each bucket of distances, [1, heads, queries, keys]. The table's elements stand head by head,
 * whatever its shape [buckets, heads] says. */
static enum lth_code expand_relative_bias(struct lth_infer *infer)
{
	enum { TABLE, QUERIES, KEYS };
	static const int64_t scalar[1] = {0}, first = 0, last = -1;
	bool both = lth_op_int(infer->node, "is_bidirectional") != 0;
	int64_t buckets, most = lth_op_int(infer->node, "max_distance");
	if (!lth_dim_is_const(infer->dims, lth_infer_dim(infer, TABLE, 0), &buckets))
		return lth_infer_unsupported(infer, "give the table a fixed number of buckets", "%s of shape %s",
					     lth_infer_input_text(infer, TABLE),
					     lth_infer_shape_text(infer, lth_infer_type(infer, TABLE)));
	int64_t each = both ? buckets / 2 : buckets;
	if (each < 2 || most <= each / 2)
		return lth_infer_reject(infer, "max_distance above half of the buckets of a side", "%lld for %lld buckets",
					(long long)most, (long long)each);
	lth_value_id rows = lth_build_count(infer, lth_build_reshape(infer, lth_in(infer, QUERIES), scalar, 0));
	lth_value_id columns = lth_build_count(infer, lth_build_reshape(infer, lth_in(infer, KEYS), scalar, 0));
	lth_value_id ahead = binary(infer, LTH_OP_ID_Sub, columns, lth_build_unsqueeze(infer, rows, &last, 1));
	lth_value_id zero = lth_build_scalar(infer, LTH_DTYPE_I64, 0), behind = lth_build1(infer, LTH_OP_ID_Neg, ahead);
	lth_value_id distance = both ? lth_build1(infer, LTH_OP_ID_Abs, ahead) : binary(infer, LTH_OP_ID_Max, behind, zero);
	lth_value_id bucket = buckets_of(infer, distance, each, most);
	if (both) {
		lth_value_id side = lth_build_scalar(infer, LTH_DTYPE_I64, (double)each);
		side = lth_build_select(infer, binary(infer, LTH_OP_ID_Greater, ahead, zero), side, zero);
		bucket = binary(infer, LTH_OP_ID_Add, bucket, side);
	}
	lth_value_id table = lth_build_reshape(infer, lth_in(infer, TABLE), (int64_t[]){-1, buckets}, 2);
	lth_build_output(infer, 0, lth_build_unsqueeze(infer, lth_build_gather(infer, table, bucket, 1), &first, 1));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_relative_bias = {.expand = expand_relative_bias};

/* Two gates of each query scale the biases of its row: a (b c - 1) + 2. */
static enum lth_code expand_gated_bias(struct lth_infer *infer)
{
	enum { QUERY, QUERY_BIAS, POSITIONS, WEIGHT, BIAS, SCALE, OFFSETS };
	const int64_t last = -1;
	if (lth_in(infer, OFFSETS) != LTH_NONE)
		return lth_infer_unsupported(infer, "restore the padding before", "%s", lth_infer_input_text(infer, OFFSETS));
	enum lth_dtype dtype = infer->out_dtypes[0];
	lth_value_id q = binary(infer, LTH_OP_ID_Add, lth_in(infer, QUERY), lth_in(infer, QUERY_BIAS)), gates[2];
	q = lth_split_heads(infer, q, lth_op_int(infer->node, "num_heads"));
	q = binary(infer, LTH_OP_ID_MatMul, q, lth_in(infer, WEIGHT));
	q = binary(infer, LTH_OP_ID_Add, q, lth_in(infer, BIAS));
	q = lth_build_reshape(infer, q, (int64_t[]){0, 0, 0, 2, -1}, 5);
	q = lth_build1(infer, LTH_OP_ID_Sigmoid, lth_build_reduce(infer, LTH_OP_ID_ReduceSum, q, &last, 1, false));
	for (int64_t i = 0; i < 2; i++)
		gates[i] = lth_build_slice(infer, q, -1, i, i + 1);
	lth_value_id y = binary(infer, LTH_OP_ID_Mul, gates[1], lth_in(infer, SCALE));
	y = binary(infer, LTH_OP_ID_Sub, y, lth_build_scalar(infer, dtype, 1));
	y = binary(infer, LTH_OP_ID_Mul, gates[0], y);
	y = binary(infer, LTH_OP_ID_Add, y, lth_build_scalar(infer, dtype, 2));
	lth_build_output(infer, 0, binary(infer, LTH_OP_ID_Mul, y, lth_in(infer, POSITIONS)));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_gated_bias = {.expand = expand_gated_bias};

/* ---- batches without padding ---- */

/* Indices of what is true in a flat mask. */
static lth_value_id places_of(struct lth_infer *infer, lth_value_id mask)
{
	const int64_t flat = -1;
	return lth_build_reshape(infer, lth_build1(infer, LTH_OP_ID_NonZero, lth_build_reshape(infer, mask, &flat, 1)), &flat, 1);
}

/* [batch, sequence, size]: tokens one behind the other, where those and then the paddings stood, where each row begins,
 * and the longest. */
static enum lth_code expand_remove_padding(struct lth_infer *infer)
{
	enum { X, COUNTS };
	static const int64_t last = -1, rows[] = {-1, 1};
	lth_value_id x = lth_in(infer, X), counts = lth_in(infer, COUNTS), flat, parts[2], shape;
	lth_value_id places = lth_build_cast(infer, lth_build_count(infer, lth_build_extent(infer, x, 1)), LTH_DTYPE_I32);
	lth_value_id used = binary(infer, LTH_OP_ID_Less, places, lth_build_reshape(infer, counts, rows, 2));
	parts[0] = places_of(infer, used);
	parts[1] = places_of(infer, lth_build1(infer, LTH_OP_ID_Not, used));
	shape = lth_build1(infer, LTH_OP_ID_Shape, used);
	flat = binary(infer, LTH_OP_ID_Reshape, lth_build_concat(infer, parts, 2, 0), shape);
	lth_value_id tokens = lth_build1(infer, LTH_OP_ID_Shape, x);
	tokens = lth_build_slice(infer, tokens, 0, 2, 3);
	parts[1] = lth_build_ints(infer, &last, 1);
	const lth_value_id matrix[] = {parts[1], tokens};
	tokens = binary(infer, LTH_OP_ID_Reshape, x, lth_build_concat(infer, matrix, 2, 0));
	lth_build_output(infer, 0, lth_build_gather(infer, tokens, parts[0], 0));
	if (lth_build_wants(infer, 1))
		lth_build_output(infer, 1, lth_build_cast(infer, flat, LTH_DTYPE_I32));
	if (lth_build_wants(infer, 2)) {
		parts[0] = as_list(infer, lth_build_scalar(infer, LTH_DTYPE_I32, 0));
		parts[1] = binary(infer, LTH_OP_ID_CumSum, counts, lth_build_scalar(infer, LTH_DTYPE_I64, 0));
		lth_build_output(infer, 2, lth_build_concat(infer, parts, 2, 0));
	}
	if (lth_build_wants(infer, 3))
		lth_build_output(infer, 3, lth_build_reduce(infer, LTH_OP_ID_ReduceMax, counts, &last, 1, true));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_remove_padding = {.expand = expand_remove_padding};

/* Where each token of [tokens, ..] belongs in a batch whose rows stand one behind the other, by offsets [batch, sequence]. */
static lth_value_id token_places(struct lth_infer *infer, lth_value_id tokens, uint32_t offsets)
{
	const int64_t flat = -1, zero = 0;
	lth_value_id in[4] = {lth_build_cast(infer, lth_build_reshape(infer, lth_in(infer, offsets), &flat, 1), LTH_DTYPE_I64)};
	in[1] = lth_build_ints(infer, &zero, 1);
	in[2] = as_list(infer, lth_build_extent(infer, tokens, 0));
	in[3] = lth_build_ints(infer, &zero, 1);
	return lth_build(infer, LTH_OP_ID_Slice, in, 4, NULL, 0);
}

/* [tokens, size] as [batch, sequence, size], zero where no token belongs. */
static lth_value_id padded(struct lth_infer *infer, lth_value_id tokens, uint32_t offsets)
{
	const int64_t last = -1;
	lth_value_id places = token_places(infer, tokens, offsets), shape = lth_build1(infer, LTH_OP_ID_Shape, lth_in(infer, offsets));
	lth_value_id count = lth_build1(infer, LTH_OP_ID_Size, lth_in(infer, offsets));
	lth_value_id size = as_list(infer, lth_build_extent(infer, tokens, 1));
	const lth_value_id flat[] = {as_list(infer, count), size}, full[] = {shape, size};
	lth_value_id zero = lth_build_scalar(infer, lth_build_dtype(infer, tokens), 0);
	lth_value_id rows = binary(infer, LTH_OP_ID_Expand, zero, lth_build_concat(infer, flat, 2, 0));
	lth_value_id in[] = {rows, lth_build_unsqueeze(infer, places, &last, 1), tokens};
	rows = lth_build(infer, LTH_OP_ID_ScatterND, in, 3, NULL, 0);
	return binary(infer, LTH_OP_ID_Reshape, rows, lth_build_concat(infer, full, 2, 0));
}

static enum lth_code expand_restore_padding(struct lth_infer *infer)
{
	lth_build_output(infer, 0, padded(infer, lth_in(infer, 0), 1));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_restore_padding = {.expand = expand_restore_padding};

/* Attention of tokens without padding: the padding comes back, where nobody looks at it, and goes again. */
static void attend_tokens(struct lth_infer *infer, lth_value_id *parts, uint32_t offsets, lth_value_id bias)
{
	uint32_t count;
	const int64_t flat[] = {-1};
	lth_value_id tokens = parts[0], begins = lth_in(infer, offsets + 1), in[6] = {0};
	const struct lth_attr *attrs = lth_ms_attrs_for(infer, LTH_OP_ID_ms_MultiHeadAttention, &count);
	for (uint32_t i = 0; i < 3; i++)
		in[i] = padded(infer, parts[i], offsets);
	in[3] = LTH_NONE;
	in[4] = lth_build_slice(infer, begins, 0, 1, INT64_MAX);
	in[4] = binary(infer, LTH_OP_ID_Sub, in[4], lth_build_slice(infer, begins, 0, 0, -1));
	in[5] = bias;
	lth_value_id y = lth_build(infer, LTH_OP_ID_ms_MultiHeadAttention, in, 6, attrs, count);
	lth_value_id size = as_list(infer, lth_build_extent(infer, y, 2));
	const lth_value_id shape[] = {lth_build_ints(infer, flat, 1), size};
	y = binary(infer, LTH_OP_ID_Reshape, y, lth_build_concat(infer, shape, 2, 0));
	lth_build_output(infer, 0, lth_build_gather(infer, y, token_places(infer, tokens, offsets), 0));
}

/* The joint projection [tokens, all] cut into queries, keys and values. */
static enum lth_code expand_packed_attention(struct lth_infer *infer)
{
	enum { X, WEIGHT, BIAS, OFFSETS, BEGINS, SCORE_BIAS };
	const struct lth_attr cut[] = {lth_attr_int("axis", 1), lth_attr_int("num_outputs", 3)};
	const bool wanted[3] = {true, true, true};
	const int64_t *sizes;
	uint32_t count = 0;
	bool sized = lth_node_ints(infer->node, "qkv_hidden_sizes", &sizes, &count) && count;
	if (sized && count != 3)
		return lth_infer_reject(infer, "three qkv_hidden_sizes", "%u", count);
	lth_value_id joint = binary(infer, LTH_OP_ID_MatMul, lth_in(infer, X), lth_in(infer, WEIGHT)), parts[3];
	lth_value_id in[2] = {binary(infer, LTH_OP_ID_Add, joint, lth_in(infer, BIAS)), LTH_NONE};
	if (sized)
		in[1] = lth_build_ints(infer, sizes, count);
	lth_build_many(infer, LTH_OP_ID_Split, in, sized ? 2 : 1, cut, sized ? 1 : 2, wanted, parts, 3);
	attend_tokens(infer, parts, OFFSETS, lth_in(infer, SCORE_BIAS));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_packed_attention = {.expand = expand_packed_attention};

/* Queries, keys and values apart, or as one [tokens, heads, 3, size]; a bias for all of them side by side. */
static enum lth_code expand_packed_multi_head(struct lth_infer *infer)
{
	enum { QUERY, KEY, VALUE, BIAS, OFFSETS, BEGINS, SCORE_BIAS };
	static const int64_t row[] = {0, -1};
	bool joint = lth_infer_rank(infer, QUERY) == 4;
	lth_value_id parts[3], bias = lth_in(infer, BIAS), begin = lth_build_scalar(infer, LTH_DTYPE_I64, 0);
	if (joint ? lth_in(infer, KEY) != LTH_NONE || lth_in(infer, VALUE) != LTH_NONE
		  : lth_in(infer, KEY) == LTH_NONE || lth_in(infer, VALUE) == LTH_NONE)
		return lth_infer_reject(infer, "a query [tokens, heads, 3, size], or a key and a value", "one of both");
	for (uint32_t i = 0; i < 3; i++) {
		parts[i] = lth_in(infer, joint ? QUERY : i);
		if (joint) {
			lth_value_id part = lth_build_scalar(infer, LTH_DTYPE_I64, i);
			parts[i] = lth_build_reshape(infer, lth_build_gather(infer, parts[i], part, 2), row, 2);
		}
		if (bias == LTH_NONE)
			continue;
		lth_value_id width = lth_build_extent(infer, parts[i], 1), places = lth_build_count(infer, width);
		places = binary(infer, LTH_OP_ID_Add, places, begin);
		begin = binary(infer, LTH_OP_ID_Add, begin, width);
		parts[i] = binary(infer, LTH_OP_ID_Add, parts[i], lth_build_gather(infer, bias, places, 0));
	}
	attend_tokens(infer, parts, OFFSETS, lth_in(infer, SCORE_BIAS));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_packed_multi_head = {.expand = expand_packed_multi_head};
