/* Attention as products, biases and a softmax, for the passes to fuse; and RotaryEmbedding, which is plain movement. */
#include "compiler/ops/attention.h"
#include "compiler/ops/family.h"

#include <math.h>
#include <string.h>

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, LENGTHS };
enum { Y, PRESENT_KEY, PRESENT_VALUE, SCORES };

static lth_value_id add(struct lth_infer *infer, lth_value_id a, lth_value_id b)
{
	return lth_build2(infer, LTH_OP_ID_Add, a, b);
}

/* What an expansion carries along. */
struct attention {
	enum lth_dtype dtype;
	lth_value_id q, k, v;      /* [batch, heads, sequence, size] */
	lth_value_id past, lengths; /* LTH_NONE when absent */
	lth_value_id bias;         /* LTH_NONE while there is none */
	lth_value_id zero, never;  /* scalars 0 and -inf of dtype */
};

static void add_bias(struct lth_infer *infer, struct attention *a, lth_value_id bias)
{
	a->bias = a->bias == LTH_NONE ? bias : add(infer, a->bias, bias);
}

/* A mask as a bias: bools become 0 and -inf; keys beyond the mask's end are never attended. */
static void apply_mask(struct lth_infer *infer, struct attention *a, lth_value_id mask)
{
	const struct lth_type *type = &infer->graph->values[mask].type;
	uint32_t rank = type->rank;
	bool is_bool = type->dtype == LTH_DTYPE_BOOL;
	if (infer->failed)
		return;
	if (type->dims[rank - 1] != infer->graph->values[a->k].type.dims[2]) {
		const int64_t zeros[2 * LTH_MAX_RANK] = {0}, first = 0;
		lth_value_id keys = lth_build_extent(infer, a->k, 2);
		lth_value_id missing = lth_build2(infer, LTH_OP_ID_Sub, keys, lth_build_extent(infer, mask, rank - 1));
		lth_value_id pads = lth_build_ints(infer, zeros, 2 * rank - 1);
		pads = lth_build_concat(infer, (lth_value_id[]){pads, lth_build_unsqueeze(infer, missing, &first, 1)}, 2, 0);
		lth_value_id fill = is_bool ? LTH_NONE : lth_build_cast(infer, a->never, type->dtype);
		mask = lth_build(infer, LTH_OP_ID_Pad, (lth_value_id[]){mask, pads, fill}, 3, NULL, 0);
	}
	add_bias(infer, a, is_bool ? lth_build_select(infer, mask, a->zero, a->never) : lth_build_cast(infer, mask, a->dtype));
}

/* Distance of each key behind each query: (i + offset) - j, [queries, keys], or with lengths [batch, 1, queries, keys].
 * The offset is how many keys stand before the block of queries. */
static lth_value_id distances(struct lth_infer *infer, struct attention *a)
{
	const int64_t last = -1;
	lth_value_id queries = lth_build_extent(infer, a->q, 2), keys = lth_build_extent(infer, a->k, 2);
	lth_value_id i = lth_build_unsqueeze(infer, lth_build_count(infer, queries), &last, 1);
	if (a->past != LTH_NONE) {
		i = add(infer, i, lth_build_extent(infer, a->past, 2));
	} else if (a->lengths != LTH_NONE) {
		lth_value_id offset = lth_build2(infer, LTH_OP_ID_Sub, a->lengths, queries);
		i = add(infer, i, lth_build_reshape(infer, offset, (int64_t[]){-1, 1, 1, 1}, 4));
	}
	return lth_build2(infer, LTH_OP_ID_Sub, i, lth_build_count(infer, keys));
}

/* -inf where a distance exceeds a limit on either side. */
static void limit_distance(struct lth_infer *infer, struct attention *a, lth_value_id distance, int64_t limit,
			   bool ahead)
{
	if (ahead)
		distance = lth_build1(infer, LTH_OP_ID_Neg, distance);
	lth_value_id near = lth_build2(infer, LTH_OP_ID_LessOrEqual, distance,
				       lth_build_scalar(infer, LTH_DTYPE_I64, (double)limit));
	add_bias(infer, a, lth_build_select(infer, near, a->zero, a->never));
}

static void apply_positions(struct lth_infer *infer, struct attention *a)
{
	int64_t left = lth_op_int(infer->node, "left_window_size"),
		right = lth_op_int(infer->node, "right_window_size");
	bool causal = lth_op_int(infer->node, "is_causal") != 0;
	if (causal || left >= 0 || right >= 0) {
		lth_value_id distance = distances(infer, a);
		if (causal)
			limit_distance(infer, a, distance, 0, true);
		if (left >= 0)
			limit_distance(infer, a, distance, left, false);
		if (right >= 0)
			limit_distance(infer, a, distance, right, true);
	}
	if (a->lengths != LTH_NONE) { /* keys behind the valid ones */
		lth_value_id lengths = lth_build_reshape(infer, a->lengths, (int64_t[]){-1, 1, 1, 1}, 4);
		lth_value_id valid =
			lth_build2(infer, LTH_OP_ID_Less, lth_build_count(infer, lth_build_extent(infer, a->k, 2)), lengths);
		add_bias(infer, a, lth_build_select(infer, valid, a->zero, a->never));
	}
}

/* A query that may attend no key has probabilities 0. */
static lth_value_id probabilities(struct lth_infer *infer, struct attention *a, lth_value_id scores)
{
	const int64_t last = -1;
	enum lth_dtype work = a->dtype;
	enum lth_code code = LTH_OK;
	if (lth_node_attr(infer->node, "softmax_precision"))
		code = lth_infer_dtype_attr(infer, "softmax_precision", &work);
	if (code) {
		infer->failed = code;
		return LTH_NONE;
	}
	lth_value_id result = lth_build1(infer, LTH_OP_ID_Softmax, lth_build_cast(infer, scores, work));
	result = lth_build_cast(infer, result, a->dtype);
	if (a->bias == LTH_NONE)
		return result;
	lth_value_id most = lth_build_reduce(infer, LTH_OP_ID_ReduceMax, a->bias, &last, 1, true);
	return lth_build_select(infer, lth_build2(infer, LTH_OP_ID_Equal, most, a->never), a->zero, result);
}

static enum lth_code check_attention(struct lth_infer *infer, uint32_t rank)
{
	enum lth_code code = lth_infer_need_rank(infer, Q, 3, 4);
	for (uint32_t i = K; !code && i <= V; i++)
		code = lth_infer_need_rank(infer, i, rank, rank);
	if (!code && rank == 3 &&
	    (lth_node_int(infer->node, "q_num_heads", 0) < 1 || lth_node_int(infer->node, "kv_num_heads", 0) < 1))
		code = lth_infer_reject(infer, "q_num_heads and kv_num_heads for inputs of rank 3", "none");
	if (!code && lth_infer_type(infer, MASK))
		code = lth_infer_need_rank(infer, MASK, 1, 4);
	for (uint32_t i = PAST_KEY; !code && i <= PAST_VALUE; i++)
		if (lth_infer_type(infer, i))
			code = lth_infer_need_rank(infer, i, 4, 4);
	if (!code && lth_infer_type(infer, LENGTHS))
		code = lth_infer_need_rank(infer, LENGTHS, 1, 1);
	if (!code && !lth_infer_type(infer, PAST_KEY) != !lth_infer_type(infer, PAST_VALUE))
		code = lth_infer_reject(infer, "past_key and past_value together", "one of them");
	if (!code && lth_infer_type(infer, PAST_KEY) && lth_infer_type(infer, LENGTHS))
		code = lth_infer_reject(infer, "past_key or nonpad_kv_seqlen", "both");
	return code;
}

/* Queries, keys and values with heads apart, the past before the present. */
static void gather_inputs(struct lth_infer *infer, struct attention *a, uint32_t rank)
{
	const struct lth_node *node = infer->node;
	lth_value_id in[LENGTHS + 1];
	for (uint32_t i = 0; i <= LENGTHS; i++)
		in[i] = lth_node_input(node, i);
	int64_t q_heads = lth_node_int(node, "q_num_heads", 0), kv_heads = lth_node_int(node, "kv_num_heads", 0);
	a->dtype = lth_infer_type(infer, Q)->dtype;
	a->q = rank == 3 ? lth_split_heads(infer, in[Q], q_heads) : in[Q];
	a->k = rank == 3 ? lth_split_heads(infer, in[K], kv_heads) : in[K];
	a->v = rank == 3 ? lth_split_heads(infer, in[V], kv_heads) : in[V];
	a->past = in[PAST_KEY];
	a->lengths = in[LENGTHS];
	a->bias = LTH_NONE;
	if (in[PAST_KEY] != LTH_NONE) {
		a->k = lth_build_concat(infer, (lth_value_id[]){in[PAST_KEY], a->k}, 2, 2);
		a->v = lth_build_concat(infer, (lth_value_id[]){in[PAST_VALUE], a->v}, 2, 2);
	}
	a->zero = lth_build_scalar(infer, a->dtype, 0);
	a->never = lth_build_scalar(infer, a->dtype, -INFINITY);
}

static enum lth_code expand_attention(struct lth_infer *infer)
{
	uint32_t rank = lth_infer_rank(infer, Q);
	double softcap = lth_op_float(infer->node, "softcap");
	int64_t mode = lth_op_int(infer->node, "qk_matmul_output_mode");
	lth_value_id mask = lth_node_input(infer->node, MASK);
	struct attention a;
	enum lth_code code = check_attention(infer, rank);
	if (code)
		return code;
	gather_inputs(infer, &a, rank);
	lth_value_id k = lth_share_heads(infer, a.k, a.q), v = lth_share_heads(infer, a.v, a.q);
	lth_value_id scores = lth_attention_scores(infer, a.q, k), shown = scores;
	if (softcap > 0) {
		lth_value_id cap = lth_build_scalar(infer, a.dtype, softcap);
		scores = lth_build1(infer, LTH_OP_ID_Tanh, lth_build2(infer, LTH_OP_ID_Div, scores, cap));
		scores = lth_build2(infer, LTH_OP_ID_Mul, scores, cap);
	}
	shown = mode == 1 ? scores : shown;
	if (mask != LTH_NONE)
		apply_mask(infer, &a, mask);
	apply_positions(infer, &a);
	scores = a.bias == LTH_NONE ? scores : add(infer, scores, a.bias);
	lth_value_id weights = probabilities(infer, &a, scores);
	shown = mode == 2 ? scores : mode == 3 ? weights : shown;
	lth_value_id y = lth_build2(infer, LTH_OP_ID_MatMul, weights, lth_build_cast(infer, v, a.dtype));
	if (rank == 3)
		y = lth_merge_heads(infer, y);
	lth_build_output(infer, Y, y);
	lth_build_output(infer, PRESENT_KEY, a.k);
	lth_build_output(infer, PRESENT_VALUE, a.v);
	lth_build_output(infer, SCORES, shown);
	return LTH_OK;
}

const struct lth_op_impl lth_impl_attention = {.expand = expand_attention};

/* ---- RotaryEmbedding ---- */

enum { COS = 1, SIN, POSITIONS };

/* Heads and their size: from the shape [batch, heads, sequence, size], or the attribute with [batch, sequence, all]. */
static lth_dim head_size(struct lth_graph *graph, const struct lth_node *node)
{
	const struct lth_type *x = &graph->values[node->inputs[0]].type;
	int64_t heads = lth_node_int(node, "num_heads", 0);
	if (x->rank == 4)
		return x->dims[3];
	return heads > 0 ? lth_dim_floordiv(graph->dims, x->dims[2], lth_dim_const(graph->dims, heads)) : LTH_DIM_NONE;
}

/* How much of a head is rotated. */
static lth_dim rotated_size(struct lth_graph *graph, const struct lth_node *node)
{
	int64_t given = lth_op_int(node, "rotary_embedding_dim");
	return given > 0 ? lth_dim_const(graph->dims, given) : head_size(graph, node);
}

/* Inputs `first` to `last` say something of each step of each row of the batch. */
static enum lth_code check_steps(struct lth_infer *infer, uint32_t first, uint32_t last)
{
	lth_dim batch = lth_infer_dim(infer, 0, 0), steps = lth_infer_dim(infer, 0, lth_infer_rank(infer, 0) == 4 ? 2 : 1);
	enum lth_code code = LTH_OK;
	for (uint32_t i = first; !code && i <= last; i++) {
		code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, i, 0), batch, "one batch");
		if (!code)
			code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, i, 1), steps, "one sequence");
	}
	return code;
}

static enum lth_code infer_rotary(struct lth_infer *infer)
{
	uint32_t rank = lth_infer_type(infer, POSITIONS) ? 2 : 3;
	enum lth_code code = lth_infer_need_rank(infer, 0, 3, 4);
	for (uint32_t i = COS; !code && i <= SIN; i++)
		code = lth_infer_need_rank(infer, i, rank, rank);
	if (!code && rank == 2)
		code = lth_infer_need_rank(infer, POSITIONS, 2, 2);
	if (!code)
		code = check_steps(infer, rank == 2 ? POSITIONS : COS, rank == 2 ? POSITIONS : SIN);
	if (!code && rank == 2)
		code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, COS, 0), lth_infer_dim(infer, SIN, 0),
					 "as many rows of cosines as of sines");
	if (!code && head_size(infer->graph, infer->node) == LTH_DIM_NONE)
		code = lth_infer_reject(infer, "num_heads for an input of rank 3", "none");
	if (code)
		return code;
	lth_dim rotated = rotated_size(infer->graph, infer->node);
	code = lth_infer_require(infer, LTH_REL_LE, rotated, head_size(infer->graph, infer->node),
				 "no more of a head rotated than it has");
	if (code)
		return code;
	lth_dim half = lth_dim_floordiv(infer->dims, rotated, lth_dim_const(infer->dims, 2));
	for (uint32_t i = COS; !code && i <= SIN; i++)
		code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, i, rank - 1), half,
					 "half as many angles as are rotated");
	return code ? code : lth_infer_like(infer, 0, 0);
}

/* Element d of a head is x1 cos - x2 sin in the first half of the rotated part, x1 sin + x2 cos in the second; the
 * halves are neighbours when interleaved. */
static lth_sx rotary_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output, const lth_sx *index)
{
	(void)output;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	struct lth_graph *graph = lth_lower_graph(lower);
	uint32_t rank = lth_rank(lower, node->inputs[0]);
	lth_sx rotated = lth_sx_dim(pool, rotated_size(graph, node)), size = lth_sx_dim(pool, head_size(graph, node));
	lth_sx two = lth_sx_int(pool, 2), half = lth_floordiv(pool, rotated, two);
	lth_sx last = index[rank - 1], d = rank == 4 ? last : lth_modulo(pool, last, size), angle, first_index, second,
	       step;
	if (lth_op_int(node, "interleaved")) {
		angle = lth_floordiv(pool, d, two);
		second = lth_eq(pool, lth_modulo(pool, d, two), lth_sx_int(pool, 1));
		step = lth_sx_int(pool, 1);
		first_index = lth_mul(pool, angle, two);
	} else {
		second = lth_le(pool, half, d);
		angle = lth_sx_select(pool, second, lth_sub(pool, d, half), d);
		step = half;
		first_index = angle;
	}
	lth_sx inside = lth_lt(pool, d, rotated);
	angle = lth_safe_index(pool, angle, half);
	lth_sx base = lth_sub(pool, last, d), pair[2], at[LTH_MAX_RANK];
	memcpy(at, index, rank * sizeof(*at));
	for (int k = 0; k < 2; k++) {
		lth_sx place = k ? lth_add(pool, first_index, step) : first_index;
		at[rank - 1] = lth_add(pool, base, lth_safe_index(pool, place, size));
		pair[k] = lth_read(lower, node->inputs[0], at);
	}
	lth_sx where[3] = {index[0], rank == 4 ? index[2] : index[1], angle}, *cache = where;
	if (lth_node_input(node, POSITIONS) != LTH_NONE) {
		lth_sx position = lth_read(lower, node->inputs[POSITIONS], where);
		where[1] = lth_data_index(pool, position, lth_extent(lower, node->inputs[COS], 0));
		cache = where + 1;
	}
	lth_sx cos = lth_read(lower, node->inputs[COS], cache), sin = lth_read(lower, node->inputs[SIN], cache);
	lth_sx real = lth_sub(pool, lth_mul(pool, cos, pair[0]), lth_mul(pool, sin, pair[1]));
	lth_sx imaginary = lth_add(pool, lth_mul(pool, sin, pair[0]), lth_mul(pool, cos, pair[1]));
	lth_sx turned = lth_sx_select(pool, second, imaginary, real);
	return lth_sx_select(pool, inside, turned, lth_read(lower, node->inputs[0], index));
}

const struct lth_op_impl lth_impl_rotary = {.infer = infer_rotary, .element = rotary_element};
