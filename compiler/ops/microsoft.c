/* Operators of com.microsoft, expanded into those of ai.onnx: quantised forms stand for dequantise, compute, quantise;
 * fused forms for what was fused. Passes fuse them again as the target likes it. */
#include "compiler/ops/microsoft.h"
#include "compiler/ops/family.h"

#include <string.h>

const struct lth_attr *lth_ms_attrs_for(struct lth_infer *infer, enum lth_op_id op, uint32_t *out_count)
{
	struct lth_attr *list = lth_arena_array(infer->graph->arena, infer->node->num_attrs, sizeof(*list));
	*out_count = 0;
	for (uint32_t i = 0; list && i < infer->node->num_attrs; i++) {
		const char *cursor = lth_ops[op].attrs, *name = infer->node->attrs[i].name;
		struct lth_attr_rule rule;
		while (lth_attr_rule_next(&cursor, &rule))
			if (rule.name_size == strlen(name) && memcmp(rule.name, name, rule.name_size) == 0)
				list[(*out_count)++] = infer->node->attrs[i];
	}
	return list;
}

/* ---- quantised forms ---- */

lth_value_id lth_ms_dequantized(struct lth_infer *infer, lth_value_id x, lth_value_id scale, lth_value_id zero)
{
	return lth_build(infer, LTH_OP_ID_DequantizeLinear, (lth_value_id[]){x, scale, zero}, zero == LTH_NONE ? 2 : 3,
			 NULL, 0);
}

lth_value_id lth_ms_quantized(struct lth_infer *infer, lth_value_id x, lth_value_id scale, lth_value_id zero)
{
	if (zero != LTH_NONE)
		return lth_build(infer, LTH_OP_ID_QuantizeLinear, (lth_value_id[]){x, scale, zero}, 3, NULL, 0);
	const struct lth_attr type = lth_attr_int("output_dtype", lth_dtype_onnx(infer->out_dtypes[0]));
	return lth_build(infer, LTH_OP_ID_QuantizeLinear, (lth_value_id[]){x, scale}, 2, &type, 1);
}

static enum lth_op_id plain_op(const struct lth_node *node)
{
	switch (lth_op_id(node->op)) {
	case LTH_OP_ID_ms_QLinearAdd:
		return LTH_OP_ID_Add;
	case LTH_OP_ID_ms_QLinearMul:
		return LTH_OP_ID_Mul;
	case LTH_OP_ID_ms_QLinearSigmoid:
		return LTH_OP_ID_Sigmoid;
	case LTH_OP_ID_ms_QLinearLeakyRelu:
		return LTH_OP_ID_LeakyRelu;
	case LTH_OP_ID_ms_QLinearSoftmax:
		return LTH_OP_ID_Softmax;
	case LTH_OP_ID_ms_QLinearReduceMean:
		return LTH_OP_ID_ReduceMean;
	case LTH_OP_ID_ms_QLinearGlobalAveragePool:
		return LTH_OP_ID_GlobalAveragePool;
	default:
		return LTH_OP_ID_AveragePool;
	}
}

lth_value_id lth_ms_move_channels(struct lth_infer *infer, lth_value_id x, bool to_first)
{
	int64_t perm[LTH_MAX_RANK] = {0};
	uint32_t rank = infer->failed ? 0 : infer->graph->values[x].type.rank;
	for (uint32_t i = 1; i < rank; i++) {
		if (to_first)
			perm[i] = i == 1 ? rank - 1 : i - 1;
		else
			perm[i] = i + 1 == rank ? 1 : i + 1;
	}
	return infer->failed ? LTH_NONE : lth_build_transpose(infer, x, perm, rank);
}

/* Softmax of old opsets works on the input as a matrix cut at the axis. */
static lth_value_id old_softmax(struct lth_infer *infer, lth_value_id x)
{
	const struct lth_attr cut = lth_attr_int("axis", lth_op_int(infer->node, "axis"));
	lth_value_id flat = lth_build(infer, LTH_OP_ID_Flatten, &x, 1, &cut, 1);
	return lth_build_reshape_like(infer, lth_build1(infer, LTH_OP_ID_Softmax, flat), x);
}

static enum lth_code expand_qlinear(struct lth_infer *infer)
{
	enum lth_op_id op = plain_op(infer->node);
	bool two = op == LTH_OP_ID_Add || op == LTH_OP_ID_Mul;
	bool pools = op == LTH_OP_ID_GlobalAveragePool || op == LTH_OP_ID_AveragePool;
	bool last = pools && lth_op_int(infer->node, "channels_last") != 0;
	uint32_t count, scale_at = two ? 6 : 3;
	const int64_t *axes;
	lth_value_id in[2] = {lth_ms_dequantized(infer, lth_in(infer, 0), lth_in(infer, 1), lth_in(infer, 2)), LTH_NONE};
	lth_value_id y;
	if (two)
		in[1] = lth_ms_dequantized(infer, lth_in(infer, 3), lth_in(infer, 4), lth_in(infer, 5));
	else if (op == LTH_OP_ID_ReduceMean && lth_node_ints(infer->node, "axes", &axes, &count))
		in[1] = lth_build_ints(infer, axes, count);
	if (last)
		in[0] = lth_ms_move_channels(infer, in[0], true);
	const struct lth_attr *attrs = lth_ms_attrs_for(infer, op, &count);
	if (op == LTH_OP_ID_Softmax && lth_op_int(infer->node, "opset") < 13)
		y = old_softmax(infer, in[0]);
	else
		y = lth_build(infer, op, in, in[1] == LTH_NONE ? 1 : 2, attrs, count);
	if (last)
		y = lth_ms_move_channels(infer, y, false);
	lth_build_output(infer, 0, lth_ms_quantized(infer, y, lth_in(infer, scale_at), lth_in(infer, scale_at + 1)));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_qlinear = {.expand = expand_qlinear};

/* Every third input from 2 on is a value; scale and zero point of each are one, and of the types of the output's. */
static enum lth_code check_concat_parameters(struct lth_infer *infer)
{
	enum lth_code code = LTH_OK;
	for (uint32_t i = 0; !code && i < infer->node->num_inputs; i++) {
		bool value = i > 1 && i % 3 == 2, is_scale = i == 0 || (i > 1 && i % 3 == 0);
		enum lth_dtype wanted = is_scale ? LTH_DTYPE_F32 : infer->out_dtypes[0];
		const struct lth_type *type = lth_infer_type(infer, i);
		if (!type)
			code = lth_infer_reject(infer, NULL, "input %u is missing", i);
		else if (type->dtype != wanted)
			code = lth_infer_reject(infer, lth_dtype_text(wanted), "%s is of type %s", lth_infer_input_text(infer, i),
						lth_dtype_text(type->dtype));
		else if (!value)
			code = lth_infer_need_one(infer, i);
	}
	return code;
}

static enum lth_code expand_qlinear_concat(struct lth_infer *infer)
{
	enum { MAX_PARTS = 256 };
	lth_value_id parts[MAX_PARTS];
	uint32_t count = (infer->node->num_inputs - 2) / 3;
	if (infer->node->num_inputs % 3 != 2 || count > MAX_PARTS)
		return lth_infer_reject(infer, "a scale and zero point, then a value, scale and zero point each",
					"%u inputs", infer->node->num_inputs);
	enum lth_code code = check_concat_parameters(infer);
	if (code)
		return code;
	for (uint32_t i = 0; i < count; i++)
		parts[i] = lth_ms_dequantized(infer, lth_in(infer, 2 + 3 * i), lth_in(infer, 3 + 3 * i),
					      lth_in(infer, 4 + 3 * i));
	const struct lth_attr axis = lth_attr_int("axis", lth_op_int(infer->node, "axis"));
	lth_value_id y = lth_build(infer, LTH_OP_ID_Concat, parts, count, &axis, 1);
	lth_build_output(infer, 0, lth_ms_quantized(infer, y, lth_in(infer, 0), lth_in(infer, 1)));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_qlinear_concat = {.expand = expand_qlinear_concat};

static enum lth_code expand_qlinear_where(struct lth_infer *infer)
{
	lth_value_id x = lth_ms_dequantized(infer, lth_in(infer, 1), lth_in(infer, 2), lth_in(infer, 3));
	lth_value_id y = lth_ms_dequantized(infer, lth_in(infer, 4), lth_in(infer, 5), lth_in(infer, 6));
	lth_value_id z = lth_build(infer, LTH_OP_ID_Where, (lth_value_id[]){lth_in(infer, 0), x, y}, 3, NULL, 0);
	lth_build_output(infer, 0, lth_ms_quantized(infer, z, lth_in(infer, 7), lth_in(infer, 8)));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_qlinear_where = {.expand = expand_qlinear_where};

/* ---- activations ---- */

static enum lth_code expand_gelu(struct lth_infer *infer)
{
	enum lth_op_id id = lth_op_id(infer->node->op);
	lth_value_id x = lth_in(infer, 0);
	const struct lth_attr by_tanh = {
		.name = "approximate", .kind = LTH_ATTR_STRING, .count = 1, .s = {.data = "tanh", .size = 4}};
	if (lth_in(infer, 1) != LTH_NONE)
		x = lth_build2(infer, LTH_OP_ID_Add, x, lth_in(infer, 1));
	if (id == LTH_OP_ID_ms_QuickGelu) {
		const struct lth_attr alpha = lth_attr_float("alpha", lth_op_float(infer->node, "alpha"));
		x = lth_build(infer, LTH_OP_ID_Swish, &x, 1, &alpha, 1);
	} else {
		x = lth_build(infer, LTH_OP_ID_Gelu, &x, 1, &by_tanh, id == LTH_OP_ID_ms_FastGelu);
	}
	lth_build_output(infer, 0, x);
	return LTH_OK;
}

const struct lth_op_impl lth_impl_gelu = {.expand = expand_gelu};

lth_value_id lth_ms_activated(struct lth_infer *infer, lth_value_id x, const double *params, uint32_t num_params)
{
	const struct lth_attr *named = lth_node_attr(infer->node, "activation");
	if (!named || named->s.size == 0 || infer->failed)
		return x;
	const struct lth_op *op = lth_op_find("", named->s.data);
	if (op && lth_op_id(op) == LTH_OP_ID_Clip && num_params >= 2) {
		enum lth_dtype dtype = infer->graph->values[x].type.dtype;
		lth_value_id low = lth_build_scalar(infer, dtype, params[0]),
			     high = lth_build_scalar(infer, dtype, params[1]);
		return lth_build(infer, LTH_OP_ID_Clip, (lth_value_id[]){x, low, high}, 3, NULL, 0);
	}
	if (!op || op->max_inputs != 1 || op->kind != LTH_OP_ELEMENTWISE) {
		infer->failed = lth_infer_unsupported(infer, NULL, "activation '%s' is not implemented", named->s.data);
		return LTH_NONE;
	}
	struct lth_attr attrs[2];
	const char *cursor = op->attrs;
	struct lth_attr_rule rule;
	uint32_t count = 0;
	while (count < num_params && count < 2 && lth_attr_rule_next(&cursor, &rule)) {
		attrs[count] = lth_attr_float(count ? "beta" : "alpha", params[count]);
		count++;
	}
	return lth_build(infer, lth_op_id(op), &x, 1, attrs, count);
}

/* Of the activation that the attributes name, in the order alpha, beta: one by one, or a list. */
static uint32_t activation_parameters(const struct lth_node *node, double *out)
{
	static const char *const names[] = {"activation_alpha", "activation_beta"};
	const struct lth_attr *list = lth_node_attr(node, "activation_params");
	uint32_t count = 0;
	while (count < 2 && (list ? count < list->count : lth_node_attr(node, names[count]) != NULL)) {
		out[count] = list ? list->floats[count] : lth_node_float(node, names[count], 0);
		count++;
	}
	return count;
}

static enum lth_code expand_fused(struct lth_infer *infer)
{
	enum lth_op_id id = lth_op_id(infer->node->op);
	bool gemm = id == LTH_OP_ID_ms_FusedGemm, last = id == LTH_OP_ID_ms_NhwcConv || id == LTH_OP_ID_ms_NhwcFusedConv;
	enum lth_op_id op = gemm ? LTH_OP_ID_Gemm : LTH_OP_ID_Conv;
	lth_value_id in[3] = {lth_in(infer, 0), lth_in(infer, 1), lth_in(infer, 2)}, sum = lth_in(infer, 3);
	double params[2];
	uint32_t num_params = activation_parameters(infer->node, params), count;
	if (last)
		in[0] = lth_ms_move_channels(infer, in[0], true);
	const struct lth_attr *attrs = lth_ms_attrs_for(infer, op, &count);
	lth_value_id y = lth_build(infer, op, in, 3, attrs, count);
	if (last)
		y = lth_ms_move_channels(infer, y, false);
	if (sum != LTH_NONE)
		y = lth_build2(infer, LTH_OP_ID_Add, y, sum);
	lth_build_output(infer, 0, lth_ms_activated(infer, y, params, num_params));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_fused = {.expand = expand_fused};

/* ---- matrix products ---- */

/* The factor with its matrices transposed, or with the first axis moved behind the other batch axes. */
static lth_value_id factor(struct lth_infer *infer, uint32_t i, bool transpose, bool batch)
{
	uint32_t rank = lth_infer_rank(infer, i);
	int64_t perm[LTH_MAX_RANK];
	if (rank < 2 || (!transpose && !batch))
		return lth_in(infer, i);
	for (uint32_t k = 0; k < rank; k++)
		perm[k] = k;
	if (batch) {
		for (uint32_t k = 0; k + 2 < rank; k++)
			perm[k] = k + 1;
		perm[rank - 2] = 0;
	}
	if (transpose) {
		int64_t row = perm[rank - 2];
		perm[rank - 2] = perm[rank - 1];
		perm[rank - 1] = row;
	}
	return lth_build_transpose(infer, lth_in(infer, i), perm, rank);
}

static enum lth_code expand_fused_matmul(struct lth_infer *infer)
{
	double alpha = lth_op_float(infer->node, "alpha");
	enum lth_dtype dtype = lth_infer_type(infer, 0)->dtype;
	const struct lth_node *node = infer->node;
	bool trans_a = lth_op_int(node, "transA"), trans_b = lth_op_int(node, "transB");
	bool batch_a = lth_node_int(node, "transBatchA", 0), batch_b = lth_node_int(node, "transBatchB", 0);
	lth_value_id a = factor(infer, 0, trans_a, batch_a), b = factor(infer, 1, trans_b, batch_b);
	lth_value_id y = lth_build2(infer, LTH_OP_ID_MatMul, a, b);
	if (alpha != 1)
		y = lth_build2(infer, LTH_OP_ID_Mul, y, lth_build_scalar(infer, dtype, alpha));
	double params[2];
	uint32_t num_params = activation_parameters(infer->node, params);
	lth_build_output(infer, 0, lth_ms_activated(infer, y, params, num_params));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_fused_matmul = {.expand = expand_fused_matmul};

static enum lth_code expand_matmul_to_float(struct lth_infer *infer)
{
	bool dynamic = lth_op_id(infer->node->op) == LTH_OP_ID_ms_DynamicQuantizeMatMul;
	lth_value_id a = lth_in(infer, 0), b = lth_in(infer, 1), a_scale = lth_in(infer, 2), b_scale = lth_in(infer, 3);
	lth_value_id a_zero = lth_in(infer, 4), b_zero = lth_in(infer, 5), bias = lth_in(infer, 6);
	if (dynamic) {
		const bool wanted[3] = {true, true, true};
		lth_value_id parts[3];
		b_scale = lth_in(infer, 2);
		b_zero = lth_in(infer, 3);
		bias = lth_in(infer, 4);
		lth_build_many(infer, LTH_OP_ID_DynamicQuantizeLinear, &a, 1, NULL, 0, wanted, parts, 3);
		a = parts[0];
		a_scale = parts[1];
		a_zero = parts[2];
	}
	lth_value_id in[] = {a, b, a_zero, b_zero};
	lth_value_id y = lth_build(infer, LTH_OP_ID_MatMulInteger, in, 4, NULL, 0);
	enum lth_dtype dtype = infer->out_dtypes[0];
	lth_value_id scale = lth_build2(infer, LTH_OP_ID_Mul, a_scale, b_scale);
	y = lth_build2(infer, LTH_OP_ID_Mul, lth_build_cast(infer, y, dtype), scale);
	lth_build_output(infer, 0, bias == LTH_NONE ? y : lth_build2(infer, LTH_OP_ID_Add, y, bias));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_matmul_to_float = {.expand = expand_matmul_to_float};

/* The input broadcasts to the type, and does not make it greater. */
static enum lth_code check_addend(struct lth_infer *infer, uint32_t input, const struct lth_type *to)
{
	const struct lth_type *type = lth_infer_type(infer, input);
	lth_dim one = lth_dim_const(infer->dims, 1);
	enum lth_code code = lth_infer_need_rank(infer, input, 0, to->rank);
	for (uint32_t i = 0; !code && i < type->rank; i++)
		code = lth_infer_require_either(infer, type->dims[i], to->dims[to->rank - type->rank + i], one,
						"a bias that broadcasts to the product");
	return code;
}

/* C is added to the sums of products, before they are scaled; without an output scale the result is in floats. */
static enum lth_code expand_qgemm(struct lth_infer *infer)
{
	enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, C, Y_SCALE, Y_ZERO };
	static const int64_t turned[] = {1, 0};
	lth_value_id in[Y_ZERO + 1];
	enum lth_code code = lth_infer_need_rank(infer, A, 2, 2);
	if (!code)
		code = lth_infer_need_rank(infer, B, 2, 2);
	if (code)
		return code;
	if (!lth_infer_type(infer, Y_SCALE) != !lth_infer_type(infer, Y_ZERO))
		return lth_infer_reject(infer, "y_scale and y_zero_point together", "one of them");
	for (uint32_t i = A; i <= Y_ZERO; i++)
		in[i] = lth_in(infer, i);
	if (lth_op_int(infer->node, "transA"))
		in[A] = lth_build_transpose(infer, in[A], turned, 2);
	if (lth_op_int(infer->node, "transB"))
		in[B] = lth_build_transpose(infer, in[B], turned, 2);
	lth_value_id product[] = {in[A], in[B], in[A_ZERO], in[B_ZERO]};
	lth_value_id y = lth_build(infer, LTH_OP_ID_MatMulInteger, product, 4, NULL, 0);
	if (in[C] != LTH_NONE && !infer->failed) {
		code = check_addend(infer, C, &infer->graph->values[y].type);
		if (code)
			return code;
		y = lth_build2(infer, LTH_OP_ID_Add, y, in[C]);
	}
	lth_value_id scale = lth_build2(infer, LTH_OP_ID_Mul, in[A_SCALE], in[B_SCALE]);
	if (lth_op_float(infer->node, "alpha") != 1) {
		lth_value_id alpha = lth_build_scalar(infer, LTH_DTYPE_F32, lth_op_float(infer->node, "alpha"));
		scale = lth_build2(infer, LTH_OP_ID_Mul, scale, alpha);
	}
	lth_value_id one = lth_build_scalar(infer, LTH_DTYPE_F32, 1);
	if (in[Y_SCALE] != LTH_NONE) /* one factor, as in QLinearMatMul: rounding depends on it */
		scale = lth_build2(infer, LTH_OP_ID_Div, scale, in[Y_SCALE]);
	y = lth_build2(infer, LTH_OP_ID_Mul, lth_build_cast(infer, y, LTH_DTYPE_F32), scale);
	lth_build_output(infer, 0, in[Y_SCALE] == LTH_NONE ? y : lth_ms_quantized(infer, y, one, in[Y_ZERO]));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_qgemm = {.expand = expand_qgemm};

/* ---- normalisations ---- */

/* Outputs 0 to 2 of a LayerNormalization over the last axis. */
static void normalize(struct lth_infer *infer, lth_value_id x, lth_value_id scale, lth_value_id bias, bool moments)
{
	const struct lth_attr epsilon = lth_attr_float("epsilon", lth_op_float(infer->node, "epsilon"));
	const bool wanted[3] = {lth_build_wants(infer, 0), moments && lth_build_wants(infer, 1),
				moments && lth_build_wants(infer, 2)};
	lth_value_id in[] = {x, scale, bias}, out[3];
	lth_build_many(infer, LTH_OP_ID_LayerNormalization, in, bias == LTH_NONE ? 2 : 3, &epsilon, 1, wanted, out, 3);
	for (uint32_t i = 0; i < 3; i++)
		if (wanted[i])
			lth_build_output(infer, i, out[i]);
}

static enum lth_code expand_skip_norm(struct lth_infer *infer)
{
	bool simplified = lth_op_id(infer->node->op) == LTH_OP_ID_ms_SkipSimplifiedLayerNormalization;
	const struct lth_attr epsilon = lth_attr_float("epsilon", lth_op_float(infer->node, "epsilon"));
	lth_value_id scale = lth_in(infer, 2), shift = simplified ? LTH_NONE : lth_in(infer, 3);
	lth_value_id bias = lth_in(infer, simplified ? 3 : 4);
	enum lth_code code = lth_infer_need_rank(infer, 1, 2, lth_infer_rank(infer, 0));
	if (code)
		return code;
	lth_value_id sum = lth_build2(infer, LTH_OP_ID_Add, lth_in(infer, 0), lth_in(infer, 1));
	if (bias != LTH_NONE)
		sum = lth_build2(infer, LTH_OP_ID_Add, sum, bias);
	if (simplified) {
		if (lth_build_wants(infer, 1) || lth_build_wants(infer, 2))
			return lth_infer_unsupported(infer, NULL,
						     "the mean and deviation of this operator are not implemented");
		lth_build_output(
			infer, 0,
			lth_build(infer, LTH_OP_ID_RMSNormalization, (lth_value_id[]){sum, scale}, 2, &epsilon, 1));
	} else {
		normalize(infer, sum, scale, shift, true);
	}
	lth_build_output(infer, 3, sum);
	return LTH_OK;
}

const struct lth_op_impl lth_impl_skip_norm = {.expand = expand_skip_norm};

static enum lth_code expand_simplified_norm(struct lth_infer *infer)
{
	uint32_t count;
	const struct lth_attr *attrs = lth_ms_attrs_for(infer, LTH_OP_ID_RMSNormalization, &count);
	lth_value_id in[] = {lth_in(infer, 0), lth_in(infer, 1)};
	lth_build_output(infer, 0, lth_build(infer, LTH_OP_ID_RMSNormalization, in, 2, attrs, count));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_simplified_norm = {.expand = expand_simplified_norm};

/* Word, position and segment embeddings, summed and normalised; and how many of each row's mask are set. */
static enum lth_code expand_embed_norm(struct lth_infer *infer)
{
	enum { IDS, SEGMENTS, WORDS, POSITIONS, SEGMENT_TABLE, GAMMA, BETA, MASK, POSITION_IDS };
	const int64_t one = 1;
	lth_value_id in[POSITION_IDS + 1];
	for (uint32_t i = 0; i <= POSITION_IDS; i++)
		in[i] = lth_in(infer, i);
	if ((in[SEGMENTS] == LTH_NONE) != (in[SEGMENT_TABLE] == LTH_NONE))
		return lth_infer_reject(infer, "segment_ids and segment_embedding together", "one of them");
	lth_value_id sum = lth_build2(infer, LTH_OP_ID_Gather, in[WORDS], in[IDS]), positions = in[POSITION_IDS];
	if (positions == LTH_NONE) {
		lth_value_id zero = lth_build_scalar(infer, LTH_DTYPE_I64, 0),
			     step = lth_build_scalar(infer, LTH_DTYPE_I64, 1);
		lth_value_id shape = lth_build1(infer, LTH_OP_ID_Shape, in[IDS]);
		lth_value_id length =
			lth_build2(infer, LTH_OP_ID_Gather, shape, lth_build_scalar(infer, LTH_DTYPE_I64, 1));
		positions = lth_build(infer, LTH_OP_ID_Range, (lth_value_id[]){zero, length, step}, 3, NULL, 0);
	}
	sum = lth_build2(infer, LTH_OP_ID_Add, sum, lth_build2(infer, LTH_OP_ID_Gather, in[POSITIONS], positions));
	if (in[SEGMENTS] != LTH_NONE)
		sum = lth_build2(infer, LTH_OP_ID_Add, sum,
				 lth_build2(infer, LTH_OP_ID_Gather, in[SEGMENT_TABLE], in[SEGMENTS]));
	if (lth_build_wants(infer, 1)) {
		lth_value_id mask = in[MASK];
		if (mask == LTH_NONE) /* nothing is masked: ONNX Runtime gives zeros */
			mask = lth_build2(infer, LTH_OP_ID_Sub, in[IDS], in[IDS]);
		lth_build_output(infer, 1, lth_build_reduce(infer, LTH_OP_ID_ReduceSum, mask, &one, 1, false));
	}
	normalize(infer, sum, in[GAMMA], in[BETA], false);
	lth_build_output(infer, 2, sum);
	return LTH_OK;
}

const struct lth_op_impl lth_impl_embed_norm = {.expand = expand_embed_norm};
