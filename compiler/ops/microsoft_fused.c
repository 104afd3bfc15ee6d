/* Operators of com.microsoft that stand for a few of ai.onnx in a row: biases, gates and activations of transformers and
 * of image generators, normalisation by groups, products of complex numbers, distances. Passes fuse them again. Shapes
 * of inputs: shapes.def. Thread rule: as infer.h. */
#include "compiler/ops/family.h"
#include "compiler/ops/microsoft.h"

static lth_value_id binary(struct lth_infer *infer, enum lth_op_id op, lth_value_id a, lth_value_id b)
{
	return lth_build2(infer, op, a, b);
}

static lth_value_id scaled(struct lth_infer *infer, lth_value_id x, double factor)
{
	if (factor == 1)
		return x;
	return binary(infer, LTH_OP_ID_Mul, x, lth_build_scalar(infer, lth_build_dtype(infer, x), factor));
}

/* The two halves of the last axis. */
static void halves(struct lth_infer *infer, lth_value_id x, lth_value_id *out)
{
	const struct lth_attr split[] = {lth_attr_int("axis", -1), lth_attr_int("num_outputs", 2)};
	const bool wanted[2] = {true, true};
	lth_build_many(infer, LTH_OP_ID_Split, &x, 1, split, 2, wanted, out, 2);
}

/* ---- biases, gates, activations ---- */

static enum lth_code expand_bias_add(struct lth_infer *infer)
{
	lth_value_id y = binary(infer, LTH_OP_ID_Add, lth_in(infer, 0), lth_in(infer, 1));
	lth_build_output(infer, 0, binary(infer, LTH_OP_ID_Add, y, lth_in(infer, 2)));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_bias_add = {.expand = expand_bias_add};

static enum lth_code expand_bias_split_gelu(struct lth_infer *infer)
{
	lth_value_id parts[2];
	halves(infer, binary(infer, LTH_OP_ID_Add, lth_in(infer, 0), lth_in(infer, 1)), parts);
	lth_build_output(infer, 0, binary(infer, LTH_OP_ID_Mul, parts[0], lth_build1(infer, LTH_OP_ID_Gelu, parts[1])));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_bias_split_gelu = {.expand = expand_bias_split_gelu};

/* Softmax of a sum, over all axes from `axis` on; the bias may lack axes, or have them as 1. */
static enum lth_code expand_bias_softmax(struct lth_infer *infer)
{
	const struct lth_attr cut = lth_attr_int("axis", lth_op_int(infer->node, "axis"));
	lth_value_id sum = binary(infer, LTH_OP_ID_Add, lth_in(infer, 0), lth_in(infer, 1));
	lth_value_id flat = lth_build(infer, LTH_OP_ID_Flatten, &sum, 1, &cut, 1);
	lth_build_output(infer, 0, lth_build_reshape_like(infer, lth_build1(infer, LTH_OP_ID_Softmax, flat), sum));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_bias_softmax = {.expand = expand_bias_softmax};

static enum lth_code expand_gemm_fast_gelu(struct lth_infer *infer)
{
	const struct lth_attr by_tanh = {
		.name = "approximate", .kind = LTH_ATTR_STRING, .count = 1, .s = {.data = "tanh", .size = 4}};
	lth_value_id y = binary(infer, LTH_OP_ID_MatMul, lth_in(infer, 0), lth_in(infer, 1));
	if (lth_in(infer, 2) != LTH_NONE)
		y = binary(infer, LTH_OP_ID_Add, y, lth_in(infer, 2));
	lth_build_output(infer, 0, lth_build(infer, LTH_OP_ID_Gelu, &y, 1, &by_tanh, 1));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_gemm_fast_gelu = {.expand = expand_gemm_fast_gelu};

/* z = scale x, then z sigmoid(z). */
static enum lth_code expand_scaled_silu(struct lth_infer *infer)
{
	lth_value_id x = lth_in(infer, 0), scale = lth_in(infer, 1);
	if (scale == LTH_NONE) {
		x = scaled(infer, x, lth_op_float(infer->node, "alpha"));
	} else {
		scale = lth_build_cast(infer, scale, infer->out_dtypes[0]);
		x = binary(infer, LTH_OP_ID_Mul, x, lth_build_reshape(infer, scale, NULL, 0));
	}
	lth_build_output(infer, 0, lth_build1(infer, LTH_OP_ID_Swish, x));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_scaled_silu = {.expand = expand_scaled_silu};

/* min(gate, limit) sigmoid(alpha gate) (up within the limit + beta); both halves of one input when there is no `up`. */
static enum lth_code expand_swiglu(struct lth_infer *infer)
{
	lth_value_id parts[2] = {lth_in(infer, 0), lth_in(infer, 1)};
	double limit = lth_op_float(infer->node, "limit"), beta = lth_op_float(infer->node, "activation_beta");
	const struct lth_attr alpha = lth_attr_float("alpha", lth_op_float(infer->node, "activation_alpha"));
	enum lth_dtype dtype = infer->out_dtypes[0];
	if (lth_op_int(infer->node, "round_activation") && dtype != LTH_DTYPE_F32)
		return lth_infer_unsupported(infer, NULL, "attribute round_activation for %s", lth_dtype_text(dtype));
	if (parts[1] == LTH_NONE)
		halves(infer, parts[0], parts);
	if (limit > 0) {
		lth_value_id low = lth_build_scalar(infer, dtype, -limit), high = lth_build_scalar(infer, dtype, limit);
		parts[0] = binary(infer, LTH_OP_ID_Min, parts[0], high);
		parts[1] = lth_build(infer, LTH_OP_ID_Clip, (lth_value_id[]){parts[1], low, high}, 3, NULL, 0);
	}
	if (beta != 0)
		parts[1] = binary(infer, LTH_OP_ID_Add, parts[1], lth_build_scalar(infer, dtype, beta));
	lth_value_id activated = lth_build(infer, LTH_OP_ID_Swish, parts, 1, &alpha, 1);
	lth_build_output(infer, 0, binary(infer, LTH_OP_ID_Mul, activated, parts[1]));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_swiglu = {.expand = expand_swiglu};

/* x + gate y; the gate is one number a row, or what a projection and a sigmoid make of its input. */
static enum lth_code expand_gated_add(struct lth_infer *infer)
{
	lth_value_id gate = lth_in(infer, 2), weight = lth_in(infer, 3);
	if (weight != LTH_NONE) {
		gate = lth_build_cast(infer, gate, LTH_DTYPE_F32);
		gate = binary(infer, LTH_OP_ID_MatMul, gate, lth_build_cast(infer, weight, LTH_DTYPE_F32));
		gate = lth_build_cast(infer, lth_build1(infer, LTH_OP_ID_Sigmoid, gate), infer->out_dtypes[0]);
	}
	lth_value_id y = binary(infer, LTH_OP_ID_Mul, lth_in(infer, 1), gate);
	lth_build_output(infer, 0, binary(infer, LTH_OP_ID_Add, lth_in(infer, 0), y));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_gated_add = {.expand = expand_gated_add};

/* ---- normalisations ---- */

/* Each run of as many elements of the last axis as there are scales is normalised, then all is gated. */
static enum lth_code expand_gated_norm(struct lth_infer *infer)
{
	const struct lth_attr epsilon = lth_attr_float("epsilon", lth_op_float(infer->node, "epsilon"));
	static const int64_t one = 1, open = -1;
	lth_value_id x = lth_in(infer, 0), scale = lth_in(infer, 1), gate = lth_in(infer, 2);
	lth_value_id shape[3] = {lth_build1(infer, LTH_OP_ID_Shape, x)};
	shape[0] = lth_build_slice(infer, shape[0], 0, 0, (int64_t)lth_infer_rank(infer, 0) - 1);
	shape[1] = lth_build_ints(infer, &open, 1);
	shape[2] = lth_build_reshape(infer, lth_build_extent(infer, scale, 0), &one, 1);
	lth_value_id rows = binary(infer, LTH_OP_ID_Reshape, x, lth_build_concat(infer, shape, 3, 0));
	rows = lth_build(infer, LTH_OP_ID_RMSNormalization, (lth_value_id[]){rows, scale}, 2, &epsilon, 1);
	rows = lth_build_reshape_like(infer, rows, x);
	bool sigmoid = lth_op_string_is(infer->node, "activation", "sigmoid");
	gate = lth_build1(infer, sigmoid ? LTH_OP_ID_Sigmoid : LTH_OP_ID_Swish, gate);
	lth_build_output(infer, 0, binary(infer, LTH_OP_ID_Mul, rows, gate));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_gated_norm = {.expand = expand_gated_norm};

/* By groups of channels, in the parameters' type; `x` has its channels last unless told otherwise. */
static lth_value_id normalize_groups(struct lth_infer *infer, lth_value_id x)
{
	const struct lth_attr attrs[] = {lth_attr_float("epsilon", lth_op_float(infer->node, "epsilon")),
					 lth_attr_int("num_groups", lth_op_int(infer->node, "groups"))};
	bool last = lth_op_int(infer->node, "channels_last") != 0;
	enum lth_dtype dtype = infer->out_dtypes[0];
	lth_value_id in[] = {x, lth_in(infer, 1), lth_in(infer, 2)};
	if (last)
		in[0] = lth_ms_move_channels(infer, in[0], true);
	for (uint32_t i = 0; i < 3; i++)
		in[i] = lth_build_cast(infer, in[i], LTH_DTYPE_F32);
	lth_value_id y = lth_build(infer, LTH_OP_ID_GroupNormalization, in, 3, attrs, 2);
	if (lth_op_int(infer->node, "activation"))
		y = lth_build1(infer, LTH_OP_ID_Swish, y);
	y = lth_build_cast(infer, y, dtype);
	return last ? lth_ms_move_channels(infer, y, false) : y;
}

static enum lth_code expand_group_norm(struct lth_infer *infer)
{
	lth_build_output(infer, 0, normalize_groups(infer, lth_in(infer, 0)));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_group_norm = {.expand = expand_group_norm};

/* Before it, a residual is added, which may be one for the whole image [batch, channels], and a bias a channel. */
static enum lth_code expand_skip_group_norm(struct lth_infer *infer)
{
	enum { X, GAMMA, BETA, SKIP, BIAS };
	static const int64_t image_last[] = {1, 2}, image_first[] = {2, 3};
	const int64_t *image = lth_op_int(infer->node, "channels_last") ? image_last : image_first;
	lth_value_id x = lth_in(infer, X), skip = lth_in(infer, SKIP), bias = lth_in(infer, BIAS);
	if (lth_infer_rank(infer, SKIP) == 2)
		skip = lth_build_unsqueeze(infer, skip, image, 2);
	x = binary(infer, LTH_OP_ID_Add, x, skip);
	if (bias != LTH_NONE)
		x = binary(infer, LTH_OP_ID_Add, x,
			   image == image_last ? bias : lth_build_unsqueeze(infer, bias, image_last, 2));
	lth_build_output(infer, 0, normalize_groups(infer, x));
	lth_build_output(infer, 1, x);
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_skip_group_norm = {.expand = expand_skip_group_norm};

/* ---- complex numbers, distances ---- */

/* Part 0 or 1 of the last axis, which stays as 1. */
static lth_value_id part(struct lth_infer *infer, uint32_t input, int64_t at)
{
	return lth_build_slice(infer, lth_in(infer, input), -1, at, at + 1);
}

/* (a + bi)(c + di), or with d negated. */
static enum lth_code expand_complex_mul(struct lth_infer *infer)
{
	bool conjugate = lth_op_id(infer->node->op) == LTH_OP_ID_ms_ComplexMulConj;
	lth_value_id a = part(infer, 0, 0), b = part(infer, 0, 1), c = part(infer, 1, 0), d = part(infer, 1, 1), y[2];
	lth_value_id ac = binary(infer, LTH_OP_ID_Mul, a, c), bd = binary(infer, LTH_OP_ID_Mul, b, d);
	lth_value_id ad = binary(infer, LTH_OP_ID_Mul, a, d), bc = binary(infer, LTH_OP_ID_Mul, b, c);
	y[0] = binary(infer, conjugate ? LTH_OP_ID_Add : LTH_OP_ID_Sub, ac, bd);
	y[1] = conjugate ? binary(infer, LTH_OP_ID_Sub, bc, ad) : binary(infer, LTH_OP_ID_Add, ad, bc);
	lth_build_output(infer, 0, lth_build_concat(infer, y, 2, -1));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_complex_mul = {.expand = expand_complex_mul};

/* Of each row of A to each row of B. */
static enum lth_code expand_distances(struct lth_infer *infer)
{
	static const int64_t middle = 1, last = 2;
	lth_value_id rows = lth_build_unsqueeze(infer, lth_in(infer, 0), &middle, 1);
	lth_value_id apart = binary(infer, LTH_OP_ID_Sub, rows, lth_in(infer, 1));
	lth_value_id y = lth_build_reduce(infer, LTH_OP_ID_ReduceSumSquare, apart, &last, 1, false);
	bool squared = lth_op_string_is(infer->node, "metric", "sqeuclidean");
	lth_build_output(infer, 0, squared ? y : lth_build1(infer, LTH_OP_ID_Sqrt, y));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_distances = {.expand = expand_distances};
