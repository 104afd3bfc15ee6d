/* Convolutions: Conv, ConvInteger, QLinearConv, ConvTranspose. As in matmul.c: a generic reduction over channels and
 * taps, the description for the templates, and elements that finish the sum. Taps in the padding count as zero. */
#include "compiler/ops/window.h"

#include <assert.h>
#include <string.h>

/* Which inputs are which, by operator; LTH_NONE where there is none. */
struct operands {
	uint32_t x, w, x_zero, w_zero, bias;
};

static struct operands operands_of(const struct lth_node *node)
{
	switch (lth_op_id(node->op)) {
	case LTH_OP_ID_ConvInteger:
		return (struct operands){0, 1, 2, 3, LTH_NONE};
	case LTH_OP_ID_QLinearConv:
		return (struct operands){0, 3, 2, 5, 8};
	default:
		return (struct operands){0, 1, LTH_NONE, LTH_NONE, 2};
	}
}

static bool is_transposed(const struct lth_node *node)
{
	return lth_op_id(node->op) == LTH_OP_ID_ConvTranspose;
}

static void place(struct lth_graph *graph, const struct lth_node *node, struct lth_window *out)
{
	struct operands in = operands_of(node);
	const struct lth_type *x = &graph->values[node->inputs[in.x]].type,
			      *w = &graph->values[node->inputs[in.w]].type;
	if (is_transposed(node))
		lth_window_place_transposed(graph, node, x->dims, w->dims + 2, x->rank - 2, out);
	else
		lth_window_place(graph, node, x->dims, w->dims + 2, x->rank - 2, out);
}

/* ---- inference ---- */

static enum lth_code check_list(struct lth_infer *infer, uint32_t input, lth_dim count, const char *rule)
{
	if (input == LTH_NONE || !lth_infer_type(infer, input))
		return LTH_OK;
	enum lth_code code = lth_infer_need_rank(infer, input, 1, 1);
	return code ? code : lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, input, 0), count, rule);
}

static enum lth_code check_one_or_list(struct lth_infer *infer, uint32_t input, lth_dim count, const char *rule)
{
	const struct lth_type *type = input == LTH_NONE ? NULL : lth_infer_type(infer, input);
	lth_dim one = lth_dim_const(infer->dims, 1);
	if (type && lth_dim_equal(infer->dims, lth_type_elements(infer->graph, type), one) == LTH_YES)
		return LTH_OK;
	return check_list(infer, input, count, rule);
}

/* Older exporters write all axes of the output's shape, newer ones those of the image. */
static enum lth_code check_transposed(struct lth_infer *infer, uint32_t spatial)
{
	static const char *const names[] = {"output_shape", "output_padding"};
	for (int i = 0; i < 2; i++) {
		const int64_t *list;
		uint32_t count;
		if (!lth_node_ints(infer->node, names[i], &list, &count))
			continue;
		if (count != spatial && (i > 0 || count != spatial + 2))
			return lth_infer_reject(infer, "one entry an axis of the image", "%u in %s for %u axes", count,
						names[i], spatial);
		const char *rule = i == 0 ? "1 or more, within 32 bits" : "0 or more, within 32 bits";
		for (uint32_t k = 0; k < count; k++)
			if (list[k] < (i == 0) || list[k] > INT32_MAX)
				return lth_infer_reject(infer, rule, "%lld in %s", (long long)list[k], names[i]);
	}
	return LTH_OK;
}

static enum lth_code check_kernel(struct lth_infer *infer, const struct lth_type *w)
{
	lth_dim kernel[LTH_MAX_RANK];
	uint32_t count;
	enum lth_code code = lth_window_check(infer, w->rank - 2);
	if (!code && is_transposed(infer->node))
		code = check_transposed(infer, w->rank - 2);
	if (code || !lth_window_kernel(infer->graph, infer->node, kernel, &count))
		return code;
	for (uint32_t i = 0; !code && i < count; i++)
		code = lth_infer_require(infer, LTH_REL_EQ, kernel[i], w->dims[i + 2],
					 "kernel_shape as the weights' shape");
	return code;
}

/* Channels against weights and groups; the number of output channels. */
static enum lth_code check_channels(struct lth_infer *infer, const struct lth_type *x, const struct lth_type *w,
				    lth_dim *out_channels)
{
	struct lth_dims *dims = infer->dims;
	int64_t group = lth_op_int(infer->node, "group");
	if (group < 1 || group > INT32_MAX)
		return lth_infer_reject(infer, "1 or more", "group %lld", (long long)group);
	lth_dim groups = lth_dim_const(dims, group);
	if (is_transposed(infer->node)) {
		*out_channels = lth_dim_mul(dims, w->dims[1], groups);
		enum lth_code code = lth_infer_require(infer, LTH_REL_EQ, x->dims[1], w->dims[0],
						       "as many channels as the weights take");
		return code ? code
			    : lth_infer_require(infer, LTH_REL_DIVIDES, groups, w->dims[0],
						"channels divisible by group");
	}
	*out_channels = w->dims[0];
	enum lth_code code = lth_infer_require(infer, LTH_REL_EQ, x->dims[1], lth_dim_mul(dims, w->dims[1], groups),
					       "as many channels as the weights take, times group");
	return code ? code
		    : lth_infer_require(infer, LTH_REL_DIVIDES, groups, w->dims[0],
					"output channels divisible by group");
}

/* Scales and zero points are one for all, those of the weights also one a channel. */
static enum lth_code check_quantisation(struct lth_infer *infer, const struct operands *in, lth_dim channels)
{
	enum { X_SCALE = 1, W_SCALE = 4, Y_SCALE = 6, Y_ZERO = 7 };
	enum lth_code code = in->x_zero == LTH_NONE ? LTH_OK : lth_infer_need_one(infer, in->x_zero);
	if (!code)
		code = check_one_or_list(infer, in->w_zero, channels, "one zero point, or one a channel");
	if (code || lth_op_id(infer->node->op) != LTH_OP_ID_QLinearConv)
		return code;
	code = lth_infer_need_one(infer, X_SCALE);
	if (!code)
		code = check_one_or_list(infer, W_SCALE, channels, "one scale, or one a channel");
	for (uint32_t i = Y_SCALE; !code && i <= Y_ZERO; i++)
		code = lth_infer_need_one(infer, i);
	return code;
}

static enum lth_code infer_conv(struct lth_infer *infer)
{
	struct operands in = operands_of(infer->node);
	const struct lth_type *x = lth_infer_type(infer, in.x), *w = lth_infer_type(infer, in.w);
	struct lth_window window;
	lth_dim dims[LTH_MAX_RANK];
	enum lth_code code = lth_infer_need_rank(infer, in.x, 3, LTH_MAX_RANK);
	if (!code)
		code = lth_infer_need_rank(infer, in.w, x->rank, x->rank);
	if (!code)
		code = check_kernel(infer, w);
	if (!code)
		code = check_channels(infer, x, w, &dims[1]);
	if (!code)
		code = check_list(infer, in.bias, dims[1], "one bias a channel");
	if (!code)
		code = check_quantisation(infer, &in, dims[1]);
	if (code)
		return code;
	place(infer->graph, infer->node, &window);
	code = lth_window_fits(infer, &window);
	if (code)
		return code;
	dims[0] = x->dims[0];
	memcpy(dims + 2, window.out, window.spatial * sizeof(*dims));
	return lth_infer_output(infer, 0, LTH_NUM_DTYPES, x->rank, dims);
}

/* ---- the generic form ---- */

static enum lth_dtype sum_dtype(struct lth_lower *lower, const struct lth_node *node)
{
	enum lth_dtype compute = lth_compute_dtype(lth_value_dtype(lower, node->inputs[0]));
	return operands_of(node).x_zero != LTH_NONE ? LTH_DTYPE_I32 : compute;
}

/* Input channels of a group: what is summed over. */
static lth_dim group_inputs(struct lth_lower *lower, const struct lth_node *node)
{
	struct operands in = operands_of(node);
	struct lth_dims *dims = lth_lower_graph(lower)->dims;
	if (!is_transposed(node))
		return lth_extent_dim(lower, node->inputs[in.w], 1);
	return lth_dim_floordiv(dims, lth_extent_dim(lower, node->inputs[in.w], 0),
				lth_dim_const(dims, lth_op_int(node, "group")));
}

static enum lth_code conv_reduction(struct lth_lower *lower, const struct lth_node *node, struct lth_reduction *out,
				    struct lth_diag *diag)
{
	(void)diag;
	struct lth_window window;
	place(lth_lower_graph(lower), node, &window);
	out->num_axes = 1 + window.spatial;
	out->extents[0] = group_inputs(lower, node);
	memcpy(out->extents + 1, window.kernel, window.spatial * sizeof(lth_dim));
	out->row_axes = (1u << (window.spatial + 2)) - 1;
	out->num_stages = 1;
	out->stages[0].combiner = LTH_COMBINE_SUM;
	out->stages[0].dtype = sum_dtype(lower, node);
	return LTH_OK;
}

/* A zero point or scale: one for all, or one an output channel. */
static lth_sx channel_parameter(struct lth_lower *lower, lth_value_id value, lth_sx channel)
{
	return lth_rank(lower, value) == 1 ? lth_read_broadcast(lower, value, &channel, 1)
					   : lth_read_scalar(lower, value); /* of any rank */
}

static lth_sx less_zero_point(struct lth_lower *lower, const struct lth_node *node, uint32_t input, lth_sx x,
			      lth_sx channel)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	x = lth_sx_cast(pool, x, LTH_DTYPE_I32);
	if (lth_node_input(node, input) == LTH_NONE)
		return x;
	lth_sx zero = channel_parameter(lower, node->inputs[input], channel);
	return lth_sub(pool, x, lth_sx_cast(pool, zero, LTH_DTYPE_I32));
}

static lth_sx conv_stage(struct lth_lower *lower, const struct lth_node *node, uint32_t stage, const lth_sx *index)
{
	(void)stage;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	struct operands in = operands_of(node);
	struct lth_window window;
	bool transposed = is_transposed(node);
	int64_t groups = lth_op_int(node, "group");
	lth_sx x_at[LTH_MAX_RANK], w_at[LTH_MAX_RANK], inside = LTH_SX_NONE;
	place(lth_lower_graph(lower), node, &window);
	uint32_t rank = window.spatial + 2;
	const lth_sx *term = index + rank; /* input channel in the group, then taps */
	lth_sx channels = lth_sx_dim(pool, group_inputs(lower, node));
	lth_sx width = transposed
			       ? lth_extent(lower, node->inputs[in.w], 1)
			       : lth_floordiv(pool, lth_extent(lower, node->inputs[in.w], 0), lth_sx_int(pool, groups));
	lth_sx group = groups == 1 ? lth_sx_int(pool, 0) : lth_floordiv(pool, index[1], width);
	lth_sx channel = lth_add(pool, lth_mul(pool, group, channels), term[0]);
	x_at[0] = index[0];
	x_at[1] = channel;
	w_at[0] = transposed ? channel : index[1];
	w_at[1] = !transposed ? term[0] : groups == 1 ? index[1] : lth_modulo(pool, index[1], width);
	for (uint32_t i = 0; i < window.spatial; i++) {
		lth_sx here, o = index[i + 2], k = term[i + 1];
		x_at[i + 2] = transposed ? lth_window_transposed_position(pool, &window, i, o, k, &here)
					 : lth_window_position(pool, &window, i, o, k, &here);
		w_at[i + 2] = k;
		if (here != LTH_SX_NONE)
			inside = inside == LTH_SX_NONE ? here : lth_and(pool, inside, here);
	}
	lth_sx x = lth_read(lower, node->inputs[in.x], x_at), w = lth_read(lower, node->inputs[in.w], w_at);
	if (in.x_zero != LTH_NONE) {
		x = less_zero_point(lower, node, in.x_zero, x, lth_sx_int(pool, 0));
		w = less_zero_point(lower, node, in.w_zero, w, index[1]);
	}
	if (inside != LTH_SX_NONE)
		x = lth_sx_select(pool, inside, x, lth_same_const(pool, x, 0));
	return lth_mul(pool, x, w);
}

static lth_sx conv_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output, const lth_sx *index)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	struct operands in = operands_of(node);
	lth_sx sum = lth_result(lower, node, 0, sum_dtype(lower, node));
	if (in.bias != LTH_NONE && lth_node_input(node, in.bias) != LTH_NONE)
		sum = lth_add(pool, sum, lth_read(lower, node->inputs[in.bias], &index[1]));
	if (lth_op_id(node->op) != LTH_OP_ID_QLinearConv)
		return sum;
	enum { X_SCALE = 1, W_SCALE = 4, Y_SCALE = 6, Y_ZERO = 7 };
	enum lth_dtype work = LTH_DTYPE_F32;
	lth_sx x_scale = lth_read_scalar(lower, node->inputs[X_SCALE]);
	lth_sx scale = lth_mul(pool, x_scale, channel_parameter(lower, node->inputs[W_SCALE], index[1]));
	scale = lth_div(pool, scale, lth_read_scalar(lower, node->inputs[Y_SCALE]));
	lth_sx scaled = lth_mul(pool, lth_sx_cast(pool, sum, work), scale);
	scaled = lth_add(pool, lth_unary(pool, LTH_SCALAR_RINT, scaled),
			 lth_sx_cast(pool, lth_read_scalar(lower, node->inputs[Y_ZERO]), work));
	return lth_saturate(pool, scaled, lth_value_dtype(lower, node->outputs[output]));
}

/* ---- for the templates ---- */

static bool conv_problem(struct lth_lower *lower, const struct lth_node *node, struct lth_problem *out,
			 struct lth_problem_values *out_values)
{
	struct lth_graph *graph = lth_lower_graph(lower);
	struct operands in = operands_of(node);
	lth_value_id x = node->inputs[in.x], w = node->inputs[in.w];
	const lth_dim *x_strides = lth_lower_strides(lower, x), *w_strides = lth_lower_strides(lower, w);
	struct lth_conv *conv = &out->conv;
	struct lth_window window;
	enum lth_dtype compute = lth_compute_dtype(lth_value_dtype(lower, x));
	place(graph, node, &window);
	out->compute = compute;
	if (window.spatial > LTH_MAX_SPATIAL)
		return false;
	if (in.x_zero == LTH_NONE ? !lth_is_float(compute)
				  : !lth_problem_bytes(lower, lth_node_input(node, in.x_zero), w,
						       lth_node_input(node, in.w_zero), out, out_values))
		return false;
	conv->x = lth_operand_of(lower, x);
	conv->w = lth_operand_of(lower, w);
	conv->transposed = is_transposed(node);
	conv->spatial = window.spatial;
	conv->groups = lth_op_int(node, "group");
	conv->batch = lth_extent_dim(lower, x, 0);
	conv->in_channels = lth_extent_dim(lower, x, 1);
	conv->out_channels = lth_extent_dim(lower, node->outputs[0], 1);
	conv->x_batch_stride = x_strides[0];
	conv->x_channel_stride = x_strides[1];
	conv->w_out_stride = w_strides[conv->transposed ? 1 : 0];
	conv->w_in_stride = w_strides[conv->transposed ? 0 : 1];
	for (uint32_t i = 0; i < window.spatial; i++) {
		conv->in[i] = window.in[i];
		conv->out[i] = window.out[i];
		conv->kernel[i] = window.kernel[i];
		conv->pad[i] = window.begin[i];
		conv->pad_end[i] = window.end[i];
		conv->stride[i] = window.stride[i];
		conv->dilation[i] = window.dilation[i];
		conv->x_stride[i] = x_strides[i + 2];
		conv->w_stride[i] = w_strides[i + 2];
	}
	out->kind = LTH_PROBLEM_CONV;
	out_values->x = x;
	out_values->w = w;
	return true;
}

const struct lth_op_impl lth_impl_conv = {.infer = infer_conv,
					  .element = conv_element,
					  .reduction = conv_reduction,
					  .stage = conv_stage,
					  .problem = conv_problem};

const struct lth_op_impl lth_impl_conv_transpose = {.infer = infer_conv,
						    .element = conv_element,
						    .reduction = conv_reduction,
						    .stage = conv_stage,
						    .problem = conv_problem};
