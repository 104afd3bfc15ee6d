/* Heads of attention and their scores. See attention.h. */
#include "compiler/ops/attention.h"

#include <math.h>

static const int64_t swap_heads[] = {0, 2, 1, 3};

lth_value_id lth_split_heads(struct lth_infer *infer, lth_value_id x, int64_t heads)
{
	return lth_build_transpose(infer, lth_build_reshape(infer, x, (int64_t[]){0, 0, heads, -1}, 4), swap_heads, 4);
}

lth_value_id lth_merge_heads(struct lth_infer *infer, lth_value_id x)
{
	return lth_build_reshape(infer, lth_build_transpose(infer, x, swap_heads, 4), (int64_t[]){0, 0, -1}, 3);
}

/* `times` is a list of one. */
static lth_value_id repeat_heads(struct lth_infer *infer, lth_value_id x, lth_value_id queries, lth_value_id times)
{
	const int64_t two = 2, one = 1, ones[] = {1, 1};
	const lth_value_id once = lth_build_ints(infer, ones, 2), spread[] = {once, times, once};
	lth_value_id wide = lth_build_unsqueeze(infer, x, &two, 1), shape[4];
	wide = lth_build2(infer, LTH_OP_ID_Expand, wide, lth_build_concat(infer, spread, 3, 0));
	for (int64_t axis = 0; axis < 4; axis++)
		shape[axis] = lth_build_reshape(infer, lth_build_extent(infer, axis == 1 ? queries : x, axis), &one, 1);
	return lth_build2(infer, LTH_OP_ID_Reshape, wide, lth_build_concat(infer, shape, 4, 0));
}

lth_value_id lth_share_heads(struct lth_infer *infer, lth_value_id x, lth_value_id queries)
{
	const int64_t one = 1;
	int64_t q_heads, heads;
	if (infer->failed)
		return x;
	lth_dim q_dim = infer->graph->values[queries].type.dims[1], dim = infer->graph->values[x].type.dims[1];
	if (lth_dim_equal(infer->dims, q_dim, dim) == LTH_YES)
		return x;
	if (lth_dim_is_const(infer->dims, q_dim, &q_heads) && lth_dim_is_const(infer->dims, dim, &heads) &&
	    (heads < 1 || q_heads % heads)) {
		infer->failed = lth_infer_reject(infer, "query heads that are a multiple of the key heads",
						 "%lld and %lld", (long long)q_heads, (long long)heads);
		return x;
	}
	lth_value_id shared = lth_build_extent(infer, queries, 1);
	lth_value_id times = lth_build2(infer, LTH_OP_ID_Div, shared, lth_build_extent(infer, x, 1));
	return repeat_heads(infer, x, queries, lth_build_reshape(infer, times, &one, 1));
}

lth_value_id lth_attention_scores(struct lth_infer *infer, lth_value_id q, lth_value_id k)
{
	static const int64_t turned[] = {0, 1, 3, 2};
	const struct lth_attr *attr = lth_node_attr(infer->node, "scale");
	enum lth_dtype dtype = lth_build_dtype(infer, q);
	int64_t size;
	lth_value_id scale;
	if (attr) {
		scale = lth_build_scalar(infer, dtype, attr->f);
	} else if (!infer->failed && lth_dim_is_const(infer->dims, infer->graph->values[q].type.dims[3], &size)) {
		scale = lth_build_scalar(infer, dtype, size > 0 ? 1 / sqrt((double)size) : 1);
	} else {
		lth_value_id root = lth_build_cast(infer, lth_build_extent(infer, q, 3), dtype);
		scale = lth_build1(infer, LTH_OP_ID_Reciprocal, lth_build1(infer, LTH_OP_ID_Sqrt, root));
	}
	q = lth_build2(infer, LTH_OP_ID_Mul, q, scale);
	return lth_build2(infer, LTH_OP_ID_MatMul, q, lth_build_transpose(infer, k, turned, 4));
}
