/* com.microsoft Attention and QAttention: one product makes queries, keys and values, which then attend as usual. */
#include "compiler/ops/build.h"
#include "compiler/ops/family.h"

#include <math.h>
#include <string.h>

/* Inputs of Attention by place; QAttention has scales and zero points between. */
struct places {
	uint32_t mask, past;
};

static lth_value_id input(const struct lth_infer *infer, uint32_t i)
{
	return lth_node_input(infer->node, i);
}

static lth_value_id concat(struct lth_infer *infer, lth_value_id a, lth_value_id b, int64_t axis)
{
	const struct lth_attr attr = {.name = "axis", .kind = LTH_ATTR_INT, .count = 1, .i = axis};
	return lth_build(infer, LTH_OP_ID_Concat, (lth_value_id[]){a, b}, 2, &attr, 1);
}

/* An axis's extent as an i64 scalar, and 0, 1, ... below it. */
static lth_value_id extent_of(struct lth_infer *infer, lth_value_id value, int64_t axis)
{
	lth_value_id shape = lth_build1(infer, LTH_OP_ID_Shape, value);
	return lth_build2(infer, LTH_OP_ID_Gather, shape, lth_build_scalar(infer, LTH_DTYPE_I64, (double)axis));
}

static lth_value_id count_to(struct lth_infer *infer, lth_value_id limit)
{
	lth_value_id zero = lth_build_scalar(infer, LTH_DTYPE_I64, 0), one = lth_build_scalar(infer, LTH_DTYPE_I64, 1);
	return lth_build(infer, LTH_OP_ID_Range, (lth_value_id[]){zero, limit, one}, 3, NULL, 0);
}

static lth_value_id heads_apart(struct lth_infer *infer, lth_value_id x, int64_t heads)
{
	static const int64_t perm[] = {0, 2, 1, 3};
	return lth_build_transpose(infer, lth_build_reshape(infer, x, (int64_t[]){0, 0, heads, -1}, 4), perm, 4);
}

/* `filter` where a key may not be attended, else 0. */
static lth_value_id bias_where(struct lth_infer *infer, lth_value_id allowed, enum lth_dtype dtype, double filter)
{
	lth_value_id zero = lth_build_scalar(infer, dtype, 0), far = lth_build_scalar(infer, dtype, filter);
	return lth_build(infer, LTH_OP_ID_Where, (lth_value_id[]){allowed, zero, far}, 3, NULL, 0);
}

/* A mask [batch] is the number of keys of each row; [batch, keys] has 0 for keys that are left out. */
static enum lth_code mask_scores(struct lth_infer *infer, const struct places *at, enum lth_dtype dtype,
				 lth_value_id keys, lth_value_id *scores)
{
	const struct lth_type *type = lth_infer_type(infer, at->mask);
	double filter = lth_node_float(infer->node, "mask_filter_value", -10000);
	lth_value_id mask = input(infer, at->mask), allowed;
	if (!type)
		return LTH_OK;
	if (type->rank == 1) {
		lth_value_id lengths = lth_build_reshape(infer, lth_build_cast(infer, mask, LTH_DTYPE_I64),
							 (int64_t[]){-1, 1, 1, 1}, 4);
		allowed = lth_build2(infer, LTH_OP_ID_Less, count_to(infer, extent_of(infer, keys, 2)), lengths);
	} else if (type->rank == 2) {
		lth_value_id rows = lth_build_unsqueeze(infer, mask, (const int64_t[]){1, 2}, 2);
		allowed = lth_build2(infer, LTH_OP_ID_Greater, rows, lth_build_scalar(infer, LTH_DTYPE_I32, 0));
	} else {
		return lth_infer_unsupported(infer, "give a mask [batch] or [batch, keys]", "a mask of rank %u",
					     type->rank);
	}
	*scores = lth_build2(infer, LTH_OP_ID_Add, *scores, bias_where(infer, allowed, dtype, filter));
	return LTH_OK;
}

/* Each query sees the keys up to its own place, behind the past. */
static lth_value_id hide_later(struct lth_infer *infer, enum lth_dtype dtype, lth_value_id scores)
{
	const int64_t last = -1;
	double filter = lth_node_float(infer->node, "mask_filter_value", -10000);
	lth_value_id queries = extent_of(infer, scores, 2), keys = extent_of(infer, scores, 3);
	lth_value_id before = lth_build2(infer, LTH_OP_ID_Sub, keys, queries);
	lth_value_id place = lth_build2(infer, LTH_OP_ID_Add, count_to(infer, queries), before);
	place = lth_build_unsqueeze(infer, place, &last, 1);
	lth_value_id allowed = lth_build2(infer, LTH_OP_ID_LessOrEqual, count_to(infer, keys), place);
	return lth_build2(infer, LTH_OP_ID_Add, scores, bias_where(infer, allowed, dtype, filter));
}

/* Part `part` of the past [2, batch, heads, keys, size] before the present. */
static lth_value_id with_past(struct lth_infer *infer, lth_value_id past, int64_t part, lth_value_id present)
{
	if (past == LTH_NONE)
		return present;
	lth_value_id half =
		lth_build2(infer, LTH_OP_ID_Gather, past, lth_build_scalar(infer, LTH_DTYPE_I64, (double)part));
	return concat(infer, half, present, 2);
}

/* From the joint product [batch, sequence, queries and keys and values]. */
static enum lth_code attend(struct lth_infer *infer, const struct places *at, lth_value_id joint)
{
	static const int64_t turned[] = {0, 1, 3, 2}, back[] = {0, 2, 1, 3};
	enum lth_dtype dtype = infer->failed ? LTH_DTYPE_F32 : infer->graph->values[joint].type.dtype;
	const struct lth_attr cut[] = {{.name = "axis", .kind = LTH_ATTR_INT, .count = 1, .i = 2},
				       {.name = "num_outputs", .kind = LTH_ATTR_INT, .count = 1, .i = 3}};
	const bool wanted[3] = {true, true, true};
	int64_t heads = lth_op_int(infer->node, "num_heads"), size;
	lth_value_id parts[3], past = input(infer, at->past);
	lth_build_many(infer, LTH_OP_ID_Split, &joint, 1, cut, 2, wanted, parts, 3);
	for (int i = 0; i < 3; i++)
		parts[i] = heads_apart(infer, parts[i], heads);
	lth_value_id keys = with_past(infer, past, 0, parts[1]), values = with_past(infer, past, 1, parts[2]);
	if (infer->failed || !lth_dim_is_const(infer->dims, infer->graph->values[parts[0]].type.dims[3], &size))
		return lth_infer_unsupported(infer, "give the weights a fixed size", "heads of symbolic size");
	double scale = lth_node_float(infer->node, "scale", 1 / sqrt((double)(size > 0 ? size : 1)));
	lth_value_id scores =
		lth_build2(infer, LTH_OP_ID_MatMul, parts[0], lth_build_transpose(infer, keys, turned, 4));
	scores = lth_build2(infer, LTH_OP_ID_Mul, scores, lth_build_scalar(infer, dtype, scale));
	enum lth_code code = mask_scores(infer, at, dtype, keys, &scores);
	if (code)
		return code;
	if (lth_op_int(infer->node, "unidirectional"))
		scores = hide_later(infer, dtype, scores);
	lth_value_id y = lth_build2(infer, LTH_OP_ID_MatMul, lth_build1(infer, LTH_OP_ID_Softmax, scores), values);
	y = lth_build_reshape(infer, lth_build_transpose(infer, y, back, 4), (int64_t[]){0, 0, -1}, 3);
	lth_build_output(infer, 0, y);
	if (lth_build_wants(infer, 1)) {
		const int64_t first = 0;
		keys = lth_build_unsqueeze(infer, keys, &first, 1);
		values = lth_build_unsqueeze(infer, values, &first, 1);
		lth_build_output(infer, 1, concat(infer, keys, values, 0));
	}
	return LTH_OK;
}

static enum lth_code check(struct lth_infer *infer)
{
	enum lth_code code = lth_infer_need_rank(infer, 0, 3, 3);
	if (!code)
		code = lth_infer_need_rank(infer, 1, 2, 2);
	if (!code && lth_op_int(infer->node, "num_heads") < 1)
		code = lth_infer_reject(infer, "num_heads of at least 1", "%lld",
					(long long)lth_op_int(infer->node, "num_heads"));
	return code;
}

static enum lth_code expand_attention(struct lth_infer *infer)
{
	const struct places at = {.mask = 3, .past = 4};
	enum lth_code code = check(infer);
	if (!code && lth_node_attr(infer->node, "qkv_hidden_sizes"))
		code = lth_infer_unsupported(infer, NULL, "Attention: attribute qkv_hidden_sizes");
	if (code)
		return code;
	lth_value_id joint = lth_build2(infer, LTH_OP_ID_MatMul, input(infer, 0), input(infer, 1));
	if (input(infer, 2) != LTH_NONE)
		joint = lth_build2(infer, LTH_OP_ID_Add, joint, input(infer, 2));
	return attend(infer, &at, joint);
}

const struct lth_op_impl lth_impl_ms_attention = {.expand = expand_attention};

static enum lth_code expand_qattention(struct lth_infer *infer)
{
	enum { X, WEIGHT, BIAS, X_SCALE, WEIGHT_SCALE, MASK, X_ZERO, WEIGHT_ZERO, PAST };
	const struct places at = {.mask = MASK, .past = PAST};
	enum lth_code code = check(infer);
	if (code)
		return code;
	lth_value_id in[] = {input(infer, X), input(infer, WEIGHT), input(infer, X_ZERO), input(infer, WEIGHT_ZERO)};
	lth_value_id joint = lth_build(infer, LTH_OP_ID_MatMulInteger, in, 4, NULL, 0);
	lth_value_id scale = lth_build2(infer, LTH_OP_ID_Mul, input(infer, X_SCALE), input(infer, WEIGHT_SCALE));
	joint = lth_build2(infer, LTH_OP_ID_Mul, lth_build_cast(infer, joint, infer->out_dtypes[0]), scale);
	return attend(infer, &at, lth_build2(infer, LTH_OP_ID_Add, joint, input(infer, BIAS)));
}

const struct lth_op_impl lth_impl_ms_qattention = {.expand = expand_qattention};
