/* Operators written as others: what they mean is their expansion, so they need no inference and no lowering of their
 * own, and every pass and template applies to what they become. No two nodes are built in one argument list: C leaves
 * the order open, and the graph must not depend on it. */
#include "compiler/ops/build.h"
#include "compiler/ops/family.h"

#include <string.h>

static lth_value_id add(struct lth_infer *infer, lth_value_id a, lth_value_id b)
{
	return lth_build2(infer, LTH_OP_ID_Add, a, b);
}

static lth_value_id sub(struct lth_infer *infer, lth_value_id a, lth_value_id b)
{
	return lth_build2(infer, LTH_OP_ID_Sub, a, b);
}

static lth_value_id mul(struct lth_infer *infer, lth_value_id a, lth_value_id b)
{
	return lth_build2(infer, LTH_OP_ID_Mul, a, b);
}

static lth_value_id divide(struct lth_infer *infer, lth_value_id a, lth_value_id b)
{
	return lth_build2(infer, LTH_OP_ID_Div, a, b);
}

static enum lth_dtype dtype_of(struct lth_infer *infer, uint32_t input)
{
	return lth_infer_type(infer, input)->dtype;
}

/* A vector over channels as [C, 1, 1, ...] beside a tensor of `rank`. */
static lth_value_id over_channels(struct lth_infer *infer, lth_value_id vector, uint32_t rank)
{
	int64_t axes[LTH_MAX_RANK];
	for (uint32_t i = 0; i + 2 < rank; i++)
		axes[i] = i + 1;
	return rank > 2 ? lth_build_unsqueeze(infer, vector, axes, rank - 2) : vector;
}

static enum lth_code check_channels(struct lth_infer *infer, uint32_t first, uint32_t last)
{
	enum lth_code code = lth_infer_need_rank(infer, 0, 2, LTH_MAX_RANK);
	for (uint32_t i = first; !code && i <= last; i++) {
		code = lth_infer_need_rank(infer, i, 1, 1);
		if (!code)
			code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, i, 0),
						 lth_infer_dim(infer, 0, 1), "one value a channel");
	}
	return code;
}

/* ---- BatchNormalization ---- */

/* Mean and variance over all axes but the channels', as vectors. */
static void channel_moments(struct lth_infer *infer, lth_value_id x, lth_value_id *out_mean, lth_value_id *out_variance)
{
	uint32_t rank = lth_infer_rank(infer, 0), count = 0;
	int64_t axes[LTH_MAX_RANK];
	for (uint32_t i = 0; i < rank; i++)
		if (i != 1)
			axes[count++] = i;
	*out_mean = lth_build_reduce(infer, LTH_OP_ID_ReduceMean, x, axes, count, false);
	lth_value_id centred = sub(infer, x, over_channels(infer, *out_mean, rank));
	*out_variance = lth_build_reduce(infer, LTH_OP_ID_ReduceMean, mul(infer, centred, centred), axes, count, false);
}

/* old * momentum + new * (1 - momentum) */
static lth_value_id running(struct lth_infer *infer, lth_value_id old, lth_value_id fresh, double momentum)
{
	enum lth_dtype dtype = infer->failed ? LTH_DTYPE_F32 : infer->graph->values[old].type.dtype;
	lth_value_id keep = mul(infer, old, lth_build_scalar(infer, dtype, momentum));
	lth_value_id rest = lth_build_scalar(infer, dtype, 1 - momentum);
	return add(infer, keep, mul(infer, lth_build_cast(infer, fresh, dtype), rest));
}

/* The common type of inputs `first` to `last`; of different ones the widest, at least f32. */
static enum lth_dtype widest(struct lth_infer *infer, uint32_t first, uint32_t last)
{
	enum lth_dtype type = dtype_of(infer, first);
	for (uint32_t i = first + 1; i <= last; i++)
		if (dtype_of(infer, i) != type)
			type = type == LTH_DTYPE_F64 || dtype_of(infer, i) == LTH_DTYPE_F64 ? LTH_DTYPE_F64
											    : LTH_DTYPE_F32;
	return type;
}

/* x * s + t with s = scale / sqrt(variance + epsilon), t = bias - mean * s: two steps that fold into a convolution
 * before them. Training takes the batch's own moments. */
static enum lth_code expand_batch_norm(struct lth_infer *infer)
{
	enum { DATA, SCALE, BIAS, MEAN, VARIANCE };
	uint32_t rank = lth_infer_rank(infer, DATA);
	double momentum = lth_op_float(infer->node, "momentum"), epsilon = lth_op_float(infer->node, "epsilon");
	bool training = lth_op_int(infer->node, "training_mode") != 0;
	const lth_value_id *in = infer->node->inputs;
	lth_value_id x = in[DATA], scale = in[SCALE], bias = in[BIAS], mean = in[MEAN], variance = in[VARIANCE];
	enum lth_code code = check_channels(infer, SCALE, VARIANCE);
	if (code)
		return code;
	enum lth_dtype x_dtype = dtype_of(infer, DATA), work = widest(infer, DATA, VARIANCE);
	if (training) {
		lth_value_id own_mean, own_variance;
		channel_moments(infer, x, &own_mean, &own_variance);
		lth_build_output(infer, 1, running(infer, mean, own_mean, momentum));
		lth_build_output(infer, 2, running(infer, variance, own_variance, momentum));
		mean = own_mean;
		variance = own_variance;
	} else if (lth_build_wants(infer, 1) || lth_build_wants(infer, 2)) {
		return lth_infer_reject(infer, "training_mode 1 for more than one output", "training_mode 0");
	}
	mean = lth_build_cast(infer, mean, work);
	variance = lth_build_cast(infer, variance, work);
	lth_value_id padded = add(infer, variance, lth_build_scalar(infer, work, epsilon));
	scale = lth_build_cast(infer, scale, work);
	bias = lth_build_cast(infer, bias, work);
	lth_value_id factor = divide(infer, scale, lth_build1(infer, LTH_OP_ID_Sqrt, padded));
	lth_value_id shift = sub(infer, bias, mul(infer, mean, factor));
	factor = over_channels(infer, factor, rank);
	shift = over_channels(infer, shift, rank);
	lth_value_id y = add(infer, mul(infer, lth_build_cast(infer, x, work), factor), shift);
	lth_build_output(infer, 0, lth_build_cast(infer, y, x_dtype));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_batch_norm = {.expand = expand_batch_norm};

/* ---- GroupNormalization ---- */

/* As rows [N, groups, the rest], normalised; then scaled by channel. */
static enum lth_code expand_group_norm(struct lth_infer *infer)
{
	uint32_t rank = lth_infer_rank(infer, 0);
	int64_t groups = lth_op_int(infer->node, "num_groups"), last = 2;
	const lth_value_id x = infer->node->inputs[0], scale = infer->node->inputs[1], bias = infer->node->inputs[2];
	enum lth_code code = check_channels(infer, 1, 2);
	if (!code && groups < 1)
		code = lth_infer_reject(infer, "1 or more", "num_groups %lld", (long long)groups);
	if (!code)
		code = lth_infer_require(infer, LTH_REL_DIVIDES, lth_dim_const(infer->dims, groups),
					 lth_infer_dim(infer, 0, 1), "channels divisible by num_groups");
	if (code)
		return code;
	enum lth_dtype dtype = dtype_of(infer, 0), work = dtype == LTH_DTYPE_F64 ? dtype : LTH_DTYPE_F32;
	lth_value_id rows = lth_build_reshape(infer, lth_build_cast(infer, x, work), (int64_t[]){0, groups, -1}, 3);
	lth_value_id mean = lth_build_reduce(infer, LTH_OP_ID_ReduceMean, rows, &last, 1, true);
	lth_value_id centred = sub(infer, rows, mean);
	lth_value_id variance =
		lth_build_reduce(infer, LTH_OP_ID_ReduceMean, mul(infer, centred, centred), &last, 1, true);
	lth_value_id padded = add(infer, variance, lth_build_scalar(infer, work, lth_op_float(infer->node, "epsilon")));
	lth_value_id norm = divide(infer, centred, lth_build1(infer, LTH_OP_ID_Sqrt, padded));
	norm = lth_build_cast(infer, lth_build_reshape_like(infer, norm, x), dtype);
	norm = mul(infer, norm, over_channels(infer, scale, rank));
	lth_build_output(infer, 0, add(infer, norm, over_channels(infer, bias, rank)));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_group_norm = {.expand = expand_group_norm};

/* ---- losses ---- */

/* -weight[target] * input[target] over the class axis, 0 where the target is ignored. */
static enum lth_code negative_log_likelihood(struct lth_infer *infer, lth_value_id input, lth_value_id target,
					     lth_value_id weight, enum lth_dtype dtype)
{
	const int64_t class_axis = 1;
	const struct lth_attr *ignored = lth_node_attr(infer->node, "ignore_index");
	enum lth_dtype index_dtype = dtype_of(infer, 1);
	lth_value_id kept = LTH_NONE, safe = target, zero = lth_build_scalar(infer, dtype, 0);
	if (ignored) {
		lth_value_id skip = lth_build2(infer, LTH_OP_ID_Equal, target,
					       lth_build_scalar(infer, index_dtype, (double)ignored->i));
		kept = lth_build1(infer, LTH_OP_ID_Not, skip);
		lth_value_id pick[] = {skip, lth_build_scalar(infer, index_dtype, 0), target};
		safe = lth_build(infer, LTH_OP_ID_Where, pick, 3, NULL, 0);
	}
	const struct lth_attr axis = {.name = "axis", .kind = LTH_ATTR_INT, .count = 1, .i = 1};
	lth_value_id wide = lth_build_unsqueeze(infer, safe, &class_axis, 1);
	lth_value_id pick[] = {input, wide};
	lth_value_id picked = lth_build(infer, LTH_OP_ID_GatherElements, pick, 2, &axis, 1);
	picked = lth_build2(infer, LTH_OP_ID_Squeeze, picked, lth_build_ints(infer, &class_axis, 1));
	lth_value_id loss = lth_build1(infer, LTH_OP_ID_Neg, picked), weights = LTH_NONE;
	if (weight != LTH_NONE) {
		weights = lth_build2(infer, LTH_OP_ID_Gather, weight, safe);
	} else if (lth_op_string_is(infer->node, "reduction", "mean") && ignored) {
		weights = lth_build_cast(infer, kept, dtype);
	}
	if (weights != LTH_NONE && kept != LTH_NONE) {
		lth_value_id choose[] = {kept, weights, zero};
		weights = lth_build(infer, LTH_OP_ID_Where, choose, 3, NULL, 0);
	}
	if (weight != LTH_NONE)
		loss = mul(infer, loss, weights);
	if (kept != LTH_NONE) {
		lth_value_id choose[] = {kept, loss, zero};
		loss = lth_build(infer, LTH_OP_ID_Where, choose, 3, NULL, 0);
	}
	const struct lth_attr flat = {.name = "keepdims", .kind = LTH_ATTR_INT, .count = 1, .i = 0};
	if (lth_op_string_is(infer->node, "reduction", "sum"))
		loss = lth_build(infer, LTH_OP_ID_ReduceSum, &loss, 1, &flat, 1);
	else if (lth_op_string_is(infer->node, "reduction", "mean") && weights == LTH_NONE)
		loss = lth_build(infer, LTH_OP_ID_ReduceMean, &loss, 1, &flat, 1);
	else if (lth_op_string_is(infer->node, "reduction", "mean")) {
		loss = lth_build(infer, LTH_OP_ID_ReduceSum, &loss, 1, &flat, 1);
		loss = divide(infer, loss, lth_build(infer, LTH_OP_ID_ReduceSum, &weights, 1, &flat, 1));
	}
	lth_build_output(infer, 0, loss);
	return LTH_OK;
}

/* Scores [N, C, ...], targets [N, ...], weights [C]. */
static enum lth_code check_loss(struct lth_infer *infer)
{
	uint32_t rank = lth_infer_rank(infer, 0);
	enum lth_code code = lth_infer_need_rank(infer, 0, 2, LTH_MAX_RANK);
	if (!code)
		code = lth_infer_need_rank(infer, 1, rank - 1, rank - 1);
	for (uint32_t i = 0; !code && i < rank - 1; i++)
		code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, 1, i),
					 lth_infer_dim(infer, 0, i ? i + 1 : 0),
					 "targets of the scores' shape without classes");
	if (!code && lth_infer_type(infer, 2)) {
		code = lth_infer_need_rank(infer, 2, 1, 1);
		if (!code)
			code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, 2, 0),
						 lth_infer_dim(infer, 0, 1), "one weight a class");
	}
	return code;
}

static enum lth_code expand_nll_loss(struct lth_infer *infer)
{
	enum lth_code code = check_loss(infer);
	const lth_value_id *in = infer->node->inputs;
	return code ? code
		    : negative_log_likelihood(infer, in[0], in[1], lth_node_input(infer->node, 2), dtype_of(infer, 0));
}

const struct lth_op_impl lth_impl_nll_loss = {.expand = expand_nll_loss};

static enum lth_code expand_softmax_loss(struct lth_infer *infer)
{
	const struct lth_attr axis = {.name = "axis", .kind = LTH_ATTR_INT, .count = 1, .i = 1};
	lth_value_id scores = infer->node->inputs[0], target = infer->node->inputs[1];
	lth_value_id weight = lth_node_input(infer->node, 2);
	enum lth_dtype dtype = dtype_of(infer, 0);
	enum lth_code code = check_loss(infer);
	if (code)
		return code;
	lth_value_id log = lth_build(infer, LTH_OP_ID_LogSoftmax, &scores, 1, &axis, 1);
	code = negative_log_likelihood(infer, log, target, weight, dtype);
	lth_build_output(infer, 1, log);
	return code;
}

const struct lth_op_impl lth_impl_softmax_loss = {.expand = expand_softmax_loss};

/* ---- DynamicQuantizeLinear ---- */

/* Range [min(0, least), max(0, greatest)] onto 0..255. A range of 0 quantises by 1. */
static enum lth_code expand_dynamic_quantize(struct lth_infer *infer)
{
	const struct lth_attr flat = {.name = "keepdims", .kind = LTH_ATTR_INT, .count = 1, .i = 0};
	const struct lth_attr to_u8 = {
		.name = "to", .kind = LTH_ATTR_INT, .count = 1, .i = lth_dtype_onnx(LTH_DTYPE_U8)};
	lth_value_id x = infer->node->inputs[0], zero = lth_build_scalar(infer, LTH_DTYPE_F32, 0);
	lth_value_id top = lth_build_scalar(infer, LTH_DTYPE_F32, 255), one = lth_build_scalar(infer, LTH_DTYPE_F32, 1);
	lth_value_id low =
		lth_build2(infer, LTH_OP_ID_Min, lth_build(infer, LTH_OP_ID_ReduceMin, &x, 1, &flat, 1), zero);
	lth_value_id high =
		lth_build2(infer, LTH_OP_ID_Max, lth_build(infer, LTH_OP_ID_ReduceMax, &x, 1, &flat, 1), zero);
	lth_value_id scale = divide(infer, sub(infer, high, low), top);
	lth_value_id empty = lth_build2(infer, LTH_OP_ID_Equal, scale, zero);
	scale = lth_build(infer, LTH_OP_ID_Where, (lth_value_id[]){empty, one, scale}, 3, NULL, 0);
	lth_value_id point = divide(infer, sub(infer, zero, low), scale);
	point = lth_build(infer, LTH_OP_ID_Clip, (lth_value_id[]){point, zero, top}, 3, NULL, 0);
	point = lth_build1(infer, LTH_OP_ID_Round, point);
	point = lth_build(infer, LTH_OP_ID_Cast, &point, 1, &to_u8, 1);
	lth_value_id y = lth_build(infer, LTH_OP_ID_QuantizeLinear, (lth_value_id[]){x, scale, point}, 3, NULL, 0);
	lth_build_output(infer, 0, y);
	lth_build_output(infer, 1, scale);
	lth_build_output(infer, 2, point);
	return LTH_OK;
}

const struct lth_op_impl lth_impl_dynamic_quantize = {.expand = expand_dynamic_quantize};

/* ---- CausalConvWithState ---- */

static lth_value_id as_list(struct lth_infer *infer, lth_value_id scalar)
{
	const int64_t one = 1;
	return lth_build_reshape(infer, scalar, &one, 1);
}

/* A convolution of each channel by itself whose number of channels or taps is a symbol, which no group can be: x[l + t]
 * times w[t], summed over t. `ahead` is how many places of x are no result's, a scalar. */
static lth_value_id convolve_channels(struct lth_infer *infer, lth_value_id x, lth_value_id w, lth_value_id bias,
				      lth_value_id ahead)
{
	const int64_t last = -1;
	lth_value_id places = lth_build_count(infer, sub(infer, lth_build_extent(infer, x, 2), ahead));
	lth_value_id taps = lth_build_count(infer, lth_build_extent(infer, w, 2));
	lth_value_id at = lth_build2(infer, LTH_OP_ID_Add, lth_build_unsqueeze(infer, places, &last, 1), taps);
	lth_value_id terms = lth_build2(infer, LTH_OP_ID_Mul, lth_build_gather(infer, x, at, 2), w);
	lth_value_id y = lth_build_reduce(infer, LTH_OP_ID_ReduceSum, terms, &last, 1, false);
	return bias == LTH_NONE ? y : lth_build2(infer, LTH_OP_ID_Add, y, lth_build_unsqueeze(infer, bias, &last, 1));
}

enum { INPUT, WEIGHT, BIAS, STATE };

/* Input [batch, channels, length], weights [channels, 1, taps], bias [channels], state [batch, channels, taps - 1]. */
static enum lth_code check_causal_conv(struct lth_infer *infer)
{
	static const uint32_t ranks[] = {3, 3, 1, 3};
	struct lth_dims *dims = infer->dims;
	enum lth_code code = LTH_OK;
	for (uint32_t i = INPUT; !code && i <= STATE; i++)
		if (lth_infer_type(infer, i))
			code = lth_infer_need_rank(infer, i, ranks[i], ranks[i]);
	if (code)
		return code;
	lth_dim one = lth_dim_const(dims, 1), channels = lth_infer_dim(infer, INPUT, 1),
		taps = lth_infer_dim(infer, WEIGHT, 2);
	const lth_dim weight[] = {channels, one},
		      state[] = {lth_infer_dim(infer, INPUT, 0), channels, lth_dim_sub(dims, taps, one)};
	code = lth_infer_require(infer, LTH_REL_LE, one, taps, "one tap or more");
	for (uint32_t axis = 0; !code && axis < 2; axis++)
		code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, WEIGHT, axis), weight[axis],
					 "weights [channels, 1, taps]");
	if (!code && lth_infer_type(infer, BIAS))
		code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, BIAS, 0), channels,
					 "a bias for each channel");
	for (uint32_t axis = 0; !code && lth_infer_type(infer, STATE) && axis < 3; axis++)
		code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, STATE, axis), state[axis],
					 "a past state [batch, channels, taps - 1]");
	return code;
}

/* The input behind the state (or zeros) is convolved channel by channel; its end is the next state. */
static enum lth_code expand_causal_conv(struct lth_infer *infer)
{
	static const int64_t two = 2, far = INT64_MAX, zeros[3] = {0};
	int64_t channels, taps;
	enum lth_code code = check_causal_conv(infer);
	if (code)
		return code;
	lth_value_id in[STATE + 1];
	for (uint32_t i = 0; i <= STATE; i++)
		in[i] = lth_node_input(infer->node, i);
	bool activates = !lth_op_string_is(infer->node, "activation", "none");
	bool known = lth_dim_is_const(infer->dims, lth_infer_dim(infer, WEIGHT, 0), &channels) && channels > 0 &&
		     lth_dim_is_const(infer->dims, lth_infer_dim(infer, WEIGHT, 2), &taps);
	lth_value_id width = lth_build_extent(infer, in[WEIGHT], 2);
	lth_value_id ahead = sub(infer, width, lth_build_scalar(infer, LTH_DTYPE_I64, 1));
	lth_value_id padded, y;
	if (in[STATE] != LTH_NONE) {
		padded = lth_build_concat(infer, (lth_value_id[]){in[STATE], in[INPUT]}, 2, 2);
	} else {
		lth_value_id before = lth_build_ints(infer, zeros, 2), list = as_list(infer, ahead);
		const lth_value_id pads[] = {before, list, lth_build_ints(infer, zeros, 3)};
		padded = lth_build2(infer, LTH_OP_ID_Pad, in[INPUT], lth_build_concat(infer, pads, 3, 0));
	}
	if (known) {
		const struct lth_attr group = lth_attr_int("group", channels);
		y = lth_build(infer, LTH_OP_ID_Conv, (lth_value_id[]){padded, in[WEIGHT], in[BIAS]}, 3, &group, 1);
	} else {
		y = convolve_channels(infer, padded, in[WEIGHT], in[BIAS], ahead);
	}
	lth_build_output(infer, 0, activates ? lth_build1(infer, LTH_OP_ID_Swish, y) : y);
	if (!lth_build_wants(infer, 1))
		return LTH_OK;
	lth_value_id start = sub(infer, lth_build_extent(infer, padded, 2), ahead); /* the last taps - 1 */
	lth_value_id from = as_list(infer, start), to = lth_build_ints(infer, &far, 1);
	lth_value_id slice[] = {padded, from, to, lth_build_ints(infer, &two, 1)};
	lth_build_output(infer, 1, lth_build(infer, LTH_OP_ID_Slice, slice, 4, NULL, 0));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_causal_conv = {.expand = expand_causal_conv};
