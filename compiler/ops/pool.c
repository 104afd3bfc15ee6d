/* Pooling: windows of AveragePool, MaxPool and LpPool, and the global forms, whose one window is the whole space. */
#include "compiler/ops/window.h"

#include <math.h>
#include <string.h>

static bool is_global(const struct lth_node *node)
{
	enum lth_op_id id = lth_op_id(node->op);
	return id == LTH_OP_ID_GlobalAveragePool || id == LTH_OP_ID_GlobalMaxPool || id == LTH_OP_ID_GlobalLpPool;
}

static bool is_max(const struct lth_node *node)
{
	return lth_op_id(node->op) == LTH_OP_ID_MaxPool || lth_op_id(node->op) == LTH_OP_ID_GlobalMaxPool;
}

static bool is_average(const struct lth_node *node)
{
	return lth_op_id(node->op) == LTH_OP_ID_AveragePool || lth_op_id(node->op) == LTH_OP_ID_GlobalAveragePool;
}

static bool has_indices(const struct lth_node *node)
{
	return node->num_outputs > 1 && node->outputs[1] != LTH_NONE;
}

static void place(struct lth_graph *graph, const struct lth_node *node, struct lth_window *out)
{
	const struct lth_type *x = &graph->values[node->inputs[0]].type;
	lth_dim kernel[LTH_MAX_RANK];
	uint32_t count;
	if (!is_global(node)) {
		lth_window_kernel(graph, node, kernel, &count);
		lth_window_place(graph, node, x->dims, kernel, x->rank - 2, out);
		return;
	}
	memset(out, 0, sizeof(*out));
	out->spatial = x->rank - 2;
	for (uint32_t i = 0; i < out->spatial; i++) {
		out->in[i] = out->kernel[i] = x->dims[i + 2];
		out->out[i] = lth_dim_const(graph->dims, 1);
		out->begin[i] = out->end[i] = lth_dim_const(graph->dims, 0);
		out->stride[i] = out->dilation[i] = 1;
	}
}

static enum lth_code infer_pool(struct lth_infer *infer)
{
	const struct lth_type *x = lth_infer_type(infer, 0);
	struct lth_window window;
	lth_dim dims[LTH_MAX_RANK];
	const int64_t *kernel;
	uint32_t count;
	enum lth_code code = lth_infer_need_rank(infer, 0, is_global(infer->node) ? 2 : 3, LTH_MAX_RANK);
	if (!code && !is_global(infer->node)) {
		code = lth_window_check(infer, x->rank - 2);
		if (!code && (!lth_node_ints(infer->node, "kernel_shape", &kernel, &count) || count != x->rank - 2))
			code = lth_infer_reject(infer, "one entry a spatial axis", "kernel_shape for rank %u", x->rank);
	}
	if (!code && lth_op_id(infer->node->op) != LTH_OP_ID_MaxPool && !is_average(infer->node) &&
	    !is_max(infer->node) && lth_op_int(infer->node, "p") < 1)
		code = lth_infer_reject(infer, "1 or more", "p = %lld", (long long)lth_op_int(infer->node, "p"));
	if (code)
		return code;
	place(infer->graph, infer->node, &window);
	code = lth_window_fits(infer, &window);
	if (code)
		return code;
	dims[0] = x->dims[0];
	dims[1] = x->dims[1];
	memcpy(dims + 2, window.out, window.spatial * sizeof(*dims));
	for (uint32_t i = 0; !code && i < infer->node->num_outputs; i++)
		code = lth_infer_output(infer, i, LTH_NUM_DTYPES, x->rank, dims);
	return code;
}

static enum lth_code pool_reduction(struct lth_lower *lower, const struct lth_node *node, struct lth_reduction *out,
				    struct lth_diag *diag)
{
	(void)diag;
	struct lth_window window;
	place(lth_lower_graph(lower), node, &window);
	out->num_axes = window.spatial;
	memcpy(out->extents, window.kernel, window.spatial * sizeof(lth_dim));
	out->row_axes = (1u << (window.spatial + 2)) - 1;
	out->num_stages = 1 + has_indices(node);
	out->stages[0].combiner = is_max(node) ? LTH_COMBINE_MAX : LTH_COMBINE_SUM;
	out->stages[1].combiner = LTH_COMBINE_ARGMAX_FIRST;
	out->stages[0].dtype = out->stages[1].dtype = lth_compute_dtype(lth_value_dtype(lower, node->inputs[0]));
	return LTH_OK;
}

/* What a place in the padding counts as. */
static double padding_value(enum lth_dtype dtype, bool max)
{
	if (!max)
		return 0;
	if (lth_is_float(dtype))
		return -INFINITY;
	return lth_dtype_class(dtype) == LTH_CLASS_INT ? -ldexp(1, (int)lth_dtype_bits(dtype) - 1) : 0;
}

static lth_sx pool_stage(struct lth_lower *lower, const struct lth_node *node, uint32_t stage, const lth_sx *index)
{
	(void)stage;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	struct lth_window window;
	lth_sx at[LTH_MAX_RANK] = {index[0], index[1]}, inside = LTH_SX_NONE;
	place(lth_lower_graph(lower), node, &window);
	const lth_sx *tap = index + window.spatial + 2;
	for (uint32_t i = 0; i < window.spatial; i++) {
		lth_sx here;
		at[i + 2] =
			is_global(node) ? tap[i] : lth_window_position(pool, &window, i, index[i + 2], tap[i], &here);
		if (!is_global(node) && here != LTH_SX_NONE)
			inside = inside == LTH_SX_NONE ? here : lth_and(pool, inside, here);
	}
	lth_sx x = lth_read(lower, node->inputs[0], at);
	if (!is_max(node) && !is_average(node)) {
		int64_t p = lth_op_int(node, "p");
		x = p == 2 ? lth_mul(pool, x, x) : lth_unary(pool, LTH_SCALAR_ABS, x);
		if (p > 2)
			x = lth_sx_op2(pool, LTH_SCALAR_POW, x, lth_same_const(pool, x, (double)p));
	}
	if (inside == LTH_SX_NONE)
		return x;
	return lth_sx_select(pool, inside, x,
			     lth_same_const(pool, x, padding_value(lth_sx_dtype(pool, x), is_max(node))));
}

/* Taps of the window that lie on the input, or with count_include_pad on the padded input; rounding up can let a window
 * hang over even that. */
static lth_sx tap_count(struct lth_lower *lower, const struct lth_node *node, const struct lth_window *window,
			const lth_sx *index)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	struct lth_dims *dims = lth_lower_graph(lower)->dims;
	bool padded = !is_global(node) && lth_op_int(node, "count_include_pad") != 0;
	lth_sx count = lth_sx_int(pool, 1), zero = lth_sx_int(pool, 0), one = lth_sx_int(pool, 1);
	for (uint32_t i = 0; i < window->spatial; i++) {
		lth_sx kernel = lth_sx_dim(pool, window->kernel[i]), inside = LTH_SX_NONE;
		if (!is_global(node))
			(void)lth_window_position(pool, window, i, index[i + 2], zero, &inside);
		if (inside == LTH_SX_NONE) { /* every window is whole */
			count = lth_mul(pool, count, kernel);
			continue;
		}
		lth_sx dilation = lth_sx_int(pool, window->dilation[i]);
		lth_sx start = lth_sub(pool, lth_mul(pool, index[i + 2], lth_sx_int(pool, window->stride[i])),
				       lth_sx_dim(pool, window->begin[i]));
		lth_dim limit = padded ? lth_dim_add(dims, window->in[i], window->end[i]) : window->in[i];
		lth_sx round = lth_sub(pool, dilation, one);
		lth_sx end = lth_floordiv(pool, lth_add(pool, lth_sub(pool, lth_sx_dim(pool, limit), start), round),
					  dilation);
		lth_sx begin = zero;
		if (!padded)
			begin = lth_max(pool, zero, lth_floordiv(pool, lth_sub(pool, round, start), dilation));
		count = lth_mul(pool, count, lth_sub(pool, lth_min(pool, end, kernel), begin));
	}
	return count;
}

/* The flat index into the input of the window's greatest element. */
static lth_sx max_index(struct lth_lower *lower, const struct lth_node *node, const struct lth_window *window,
			const lth_sx *index)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx rest = lth_result(lower, node, 1, LTH_DTYPE_I64), position[LTH_MAX_RANK], ignored;
	lth_sx flat = lth_add(pool, lth_mul(pool, index[0], lth_extent(lower, node->inputs[0], 1)), index[1]);
	bool column_major = lth_op_int(node, "storage_order") != 0;
	for (uint32_t i = window->spatial; i-- > 0;) {
		lth_sx kernel = lth_sx_dim(pool, window->kernel[i]);
		lth_sx tap = i ? lth_modulo(pool, rest, kernel) : rest;
		position[i] = lth_window_position(pool, window, i, index[i + 2], tap, &ignored);
		rest = i ? lth_floordiv(pool, rest, kernel) : rest;
	}
	for (uint32_t k = 0; k < window->spatial; k++) {
		uint32_t i = column_major ? window->spatial - 1 - k : k;
		flat = lth_add(pool, lth_mul(pool, flat, lth_sx_dim(pool, window->in[i])), position[i]);
	}
	return flat;
}

static lth_sx pool_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output, const lth_sx *index)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	struct lth_window window;
	enum lth_dtype dtype = lth_compute_dtype(lth_value_dtype(lower, node->inputs[0]));
	place(lth_lower_graph(lower), node, &window);
	if (output == 1)
		return max_index(lower, node, &window, index);
	lth_sx x = lth_result(lower, node, 0, dtype);
	if (is_max(node) || lth_sx_get(pool, x)->kind == LTH_SX_ANCHOR) /* a template has divided already */
		return x;
	if (is_average(node))
		return lth_div(pool, x, lth_sx_cast(pool, tap_count(lower, node, &window, index), dtype));
	int64_t p = lth_op_int(node, "p");
	if (p == 1)
		return x;
	if (p == 2)
		return lth_unary(pool, LTH_SCALAR_SQRT, x);
	return lth_sx_op2(pool, LTH_SCALAR_POW, x, lth_same_const(pool, x, 1 / (double)p));
}

static bool pool_problem(struct lth_lower *lower, const struct lth_node *node, struct lth_problem *out,
			 struct lth_problem_values *out_values)
{
	lth_value_id x = node->inputs[0];
	const lth_dim *strides = lth_lower_strides(lower, x);
	enum lth_dtype compute = lth_compute_dtype(lth_value_dtype(lower, x));
	struct lth_pool *pool = &out->pool;
	struct lth_window window;
	place(lth_lower_graph(lower), node, &window);
	if ((!lth_is_float(compute) && !is_max(node)) || window.spatial == 0 ||
	    window.spatial > LTH_MAX_SPATIAL || has_indices(node) ||
	    (!is_max(node) && !is_average(node)))
		return false;
	pool->x = lth_operand_of(lower, x);
	pool->kind = is_max(node)                                                     ? LTH_POOL_MAX
		     : !is_global(node) && lth_op_int(node, "count_include_pad") != 0 ? LTH_POOL_AVERAGE_PADDED
										      : LTH_POOL_AVERAGE;
	pool->spatial = window.spatial;
	pool->batch = lth_extent_dim(lower, x, 0);
	pool->channels = lth_extent_dim(lower, x, 1);
	pool->x_batch_stride = strides[0];
	pool->x_channel_stride = strides[1];
	for (uint32_t i = 0; i < window.spatial; i++) {
		pool->in[i] = window.in[i];
		pool->out[i] = window.out[i];
		pool->kernel[i] = window.kernel[i];
		pool->pad[i] = window.begin[i];
		pool->pad_end[i] = window.end[i];
		pool->stride[i] = window.stride[i];
		pool->dilation[i] = window.dilation[i];
		pool->x_stride[i] = strides[i + 2];
	}
	out->kind = LTH_PROBLEM_POOL;
	out->compute = compute;
	out_values->x = x;
	return true;
}

const struct lth_op_impl lth_impl_pool = {.infer = infer_pool,
					  .element = pool_element,
					  .reduction = pool_reduction,
					  .stage = pool_stage,
					  .problem = pool_problem};

const struct lth_op_impl lth_impl_global_pool = {.infer = infer_pool,
						 .element = pool_element,
						 .reduction = pool_reduction,
						 .stage = pool_stage,
						 .problem = pool_problem};
