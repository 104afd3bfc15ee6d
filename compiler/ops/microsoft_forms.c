/* Operators of com.microsoft that ai.onnx has as well, in another spelling: other names of attribute values, inputs for
 * attributes, channels last. Each becomes the operator of ai.onnx. */
#include "compiler/ops/microsoft.h"
#include "compiler/ops/family.h"

#include <string.h>

/* ---- the same but for the domain ---- */

static enum lth_op_id namesake(const struct lth_node *node)
{
	switch (lth_op_id(node->op)) {
	case LTH_OP_ID_ms_Trilu:
		return LTH_OP_ID_Trilu;
	case LTH_OP_ID_ms_QuantizeLinear:
		return LTH_OP_ID_QuantizeLinear;
	default:
		return LTH_OP_ID_DequantizeLinear;
	}
}

static enum lth_code expand_same(struct lth_infer *infer)
{
	enum lth_op_id op = namesake(infer->node);
	lth_value_id in[3] = {lth_in(infer, 0), lth_in(infer, 1), lth_in(infer, 2)};
	uint32_t count;
	const struct lth_attr *attrs = lth_ms_attrs_for(infer, op, &count);
	lth_build_output(infer, 0, lth_build(infer, op, in, infer->node->num_inputs, attrs, count));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_same = {.expand = expand_same};

/* ---- movement ---- */

static enum lth_code expand_expand_dims(struct lth_infer *infer)
{
	const int64_t one = 1;
	lth_value_id axis = lth_build_cast(infer, lth_build_reshape(infer, lth_in(infer, 1), &one, 1), LTH_DTYPE_I64);
	lth_build_output(infer, 0, lth_build2(infer, LTH_OP_ID_Unsqueeze, lth_in(infer, 0), axis));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_expand_dims = {.expand = expand_expand_dims};

/* The pads may be [1, 2 * rank], the value [1]. */
static enum lth_code expand_pad(struct lth_infer *infer)
{
	const int64_t all = -1, none = 0;
	uint32_t count;
	lth_value_id in[3] = {lth_in(infer, 0), LTH_NONE, lth_in(infer, 2)};
	const struct lth_attr *attrs = lth_ms_attrs_for(infer, LTH_OP_ID_Pad, &count);
	in[1] = lth_build_reshape(infer, lth_in(infer, 1), &all, 1);
	if (in[2] != LTH_NONE)
		in[2] = lth_build_reshape(infer, in[2], &none, 0);
	lth_build_output(infer, 0, lth_build(infer, LTH_OP_ID_Pad, in, 3, attrs, count));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_pad = {.expand = expand_pad};

static enum lth_code expand_gather_nd(struct lth_infer *infer)
{
	lth_value_id indices = lth_build_cast(infer, lth_in(infer, 1), LTH_DTYPE_I64);
	lth_build_output(infer, 0, lth_build2(infer, LTH_OP_ID_GatherND, lth_in(infer, 0), indices));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_gather_nd = {.expand = expand_gather_nd};

static enum lth_code expand_embedding(struct lth_infer *infer)
{
	lth_build_output(infer, 0, lth_build_gather(infer, lth_in(infer, 0), lth_in(infer, 1), 0));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_embedding = {.expand = expand_embedding};

/* Bounds may be [1]; the step is 1 when it is absent. */
static enum lth_code expand_range(struct lth_infer *infer)
{
	const int64_t none = 0;
	lth_value_id in[3] = {lth_in(infer, 0), lth_in(infer, 1), lth_in(infer, 2)};
	if (in[2] == LTH_NONE)
		in[2] = lth_build_cast(infer, lth_build_scalar(infer, LTH_DTYPE_I64, 1), infer->out_dtypes[0]);
	for (uint32_t i = 0; i < 3; i++)
		in[i] = lth_build_reshape(infer, in[i], &none, 0);
	lth_build_output(infer, 0, lth_build(infer, LTH_OP_ID_Range, in, 3, NULL, 0));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_range = {.expand = expand_range};

/* Distinct elements in the order of their first places; without those places. */
static enum lth_code expand_unique(struct lth_infer *infer)
{
	const struct lth_attr sorted = lth_attr_int("sorted", 0);
	const bool wanted[4] = {true, false, lth_build_wants(infer, 1), lth_build_wants(infer, 2)};
	lth_value_id x = lth_in(infer, 0), out[4];
	lth_build_many(infer, LTH_OP_ID_Unique, &x, 1, &sorted, 1, wanted, out, 4);
	lth_build_output(infer, 0, out[0]);
	for (uint32_t i = 1; i < 3; i++)
		if (wanted[i + 1])
			lth_build_output(infer, i, out[i + 1]);
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_unique = {.expand = expand_unique};

/* ---- images ---- */

static struct lth_attr text_attr(const char *name, const char *text)
{
	return (struct lth_attr){
		.name = name, .kind = LTH_ATTR_STRING, .count = 1, .s = {.data = text, .size = strlen(text)}};
}

static enum lth_code expand_grid_sample(struct lth_infer *infer)
{
	const struct lth_attr attrs[] = {
		text_attr("mode", lth_op_string_is(infer->node, "mode", "bilinear")  ? "linear"
				  : lth_op_string_is(infer->node, "mode", "bicubic") ? "cubic"
										     : "nearest"),
		text_attr("padding_mode", lth_node_string(infer->node, "padding_mode", "zeros")),
		lth_attr_int("align_corners", lth_op_int(infer->node, "align_corners")),
	};
	lth_value_id in[] = {lth_in(infer, 0), lth_in(infer, 1)};
	lth_build_output(infer, 0, lth_build(infer, LTH_OP_ID_GridSample, in, 2, attrs, 3));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_grid_sample = {.expand = expand_grid_sample};

static enum lth_code expand_nhwc_max_pool(struct lth_infer *infer)
{
	uint32_t count;
	lth_value_id x = lth_ms_move_channels(infer, lth_in(infer, 0), true);
	const struct lth_attr *attrs = lth_ms_attrs_for(infer, LTH_OP_ID_MaxPool, &count);
	lth_value_id y = lth_build(infer, LTH_OP_ID_MaxPool, &x, 1, attrs, count);
	lth_build_output(infer, 0, lth_ms_move_channels(infer, y, false));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_nhwc_max_pool = {.expand = expand_nhwc_max_pool};

static enum lth_code expand_qlinear_conv(struct lth_infer *infer)
{
	bool last = lth_op_int(infer->node, "channels_last") != 0;
	uint32_t count;
	lth_value_id in[9];
	for (uint32_t i = 0; i < 9; i++)
		in[i] = lth_in(infer, i);
	if (last)
		in[0] = lth_ms_move_channels(infer, in[0], true);
	const struct lth_attr *attrs = lth_ms_attrs_for(infer, LTH_OP_ID_QLinearConv, &count);
	lth_value_id y = lth_build(infer, LTH_OP_ID_QLinearConv, in, infer->node->num_inputs, attrs, count);
	lth_build_output(infer, 0, last ? lth_ms_move_channels(infer, y, false) : y);
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_qlinear_conv = {.expand = expand_qlinear_conv};

/* Pads of a transposed convolution cut its output: they are cut from the one without pads, whenever they are known. */
static enum lth_code expand_dynamic_pads(struct lth_infer *infer)
{
	enum { X, W, PADS, B };
	const int64_t zeros[2] = {0, 0};
	bool explicit_pads = lth_op_string_is(infer->node, "auto_pad", "NOTSET");
	uint32_t count, rank = lth_infer_rank(infer, X);
	lth_value_id pads = lth_in(infer, PADS), in[3] = {lth_in(infer, X), lth_in(infer, W), lth_in(infer, B)};
	if (pads != LTH_NONE) {
		enum lth_code code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, PADS, 0),
						       lth_dim_const(infer->dims, 2 * ((int64_t)rank - 2)),
						       "pads before and behind each axis of the image");
		if (code)
			return code;
	}
	const struct lth_attr *attrs = lth_ms_attrs_for(infer, LTH_OP_ID_ConvTranspose, &count);
	lth_value_id y = lth_build(infer, LTH_OP_ID_ConvTranspose, in, 3, attrs, count);
	if (pads != LTH_NONE && explicit_pads) {
		pads = lth_build1(infer, LTH_OP_ID_Neg, pads);
		lth_value_id parts[4];
		parts[0] = parts[2] = lth_build_ints(infer, zeros, 2);
		parts[1] = lth_build_slice(infer, pads, 0, 0, rank - 2);
		parts[3] = lth_build_slice(infer, pads, 0, rank - 2, 2 * ((int64_t)rank - 2));
		y = lth_build2(infer, LTH_OP_ID_Pad, y, lth_build_concat(infer, parts, 4, 0));
	}
	lth_build_output(infer, 0, y);
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_dynamic_pads = {.expand = expand_dynamic_pads};
