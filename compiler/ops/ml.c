/* ai.onnx.ml: features made fit for models, and mappings between labels; what models share (ml.h). */
#include "compiler/ops/ml.h"
#include "compiler/ops/family.h"
#include "compiler/ops/strings.h"

#include <string.h>

/* ---- shared ---- */

const double *lth_ml_floats(const struct lth_infer *infer, const char *name, uint32_t *out_count)
{
	const struct lth_attr *attr = lth_node_attr(infer->node, name);
	*out_count = attr ? attr->count : 0;
	return attr ? attr->floats : NULL;
}

lth_value_id lth_ml_matrix(struct lth_infer *infer, const double *list, uint32_t rank, const int64_t *shape)
{
	int64_t count = 1;
	for (uint32_t axis = 0; axis < rank; axis++)
		count *= shape[axis];
	float *copy = lth_arena_array(infer->graph->arena, count > 0 ? (size_t)count : 1, sizeof(*copy));
	if (!copy)
		return LTH_NONE;
	for (int64_t i = 0; i < count; i++)
		copy[i] = (float)list[i];
	return lth_build_data(infer, LTH_DTYPE_F32, rank, shape, copy, (size_t)count * sizeof(*copy));
}

static lth_value_id f32(struct lth_infer *infer, double value)
{
	return lth_build_scalar(infer, LTH_DTYPE_F32, value);
}

static lth_value_id binary(struct lth_infer *infer, enum lth_op_id op, lth_value_id a, lth_value_id b)
{
	return lth_build2(infer, op, a, b);
}

static lth_value_id last_axis(struct lth_infer *infer, enum lth_op_id op, lth_value_id x)
{
	const int64_t last = -1;
	return lth_build_reduce(infer, op, x, &last, 1, true);
}

/* Softmax in which scores of (almost) 0 stay small: exp(-max) times themselves. */
static lth_value_id softmax_zero(struct lth_infer *infer, lth_value_id x)
{
	lth_value_id most = last_axis(infer, LTH_OP_ID_ReduceMax, x);
	lth_value_id shifted = lth_build1(infer, LTH_OP_ID_Exp, binary(infer, LTH_OP_ID_Sub, x, most));
	lth_value_id factor = lth_build1(infer, LTH_OP_ID_Exp, lth_build1(infer, LTH_OP_ID_Neg, most));
	lth_value_id size = lth_build1(infer, LTH_OP_ID_Abs, x), limit = f32(infer, 1e-7);
	lth_value_id large = binary(infer, LTH_OP_ID_Greater, size, limit);
	lth_value_id y = lth_build_select(infer, large, shifted, binary(infer, LTH_OP_ID_Mul, x, factor));
	lth_value_id sum = last_axis(infer, LTH_OP_ID_ReduceSum, y), zero = f32(infer, 0), half = f32(infer, 0.5);
	lth_value_id none = binary(infer, LTH_OP_ID_Equal, sum, zero);
	return lth_build_select(infer, none, half, binary(infer, LTH_OP_ID_Div, y, sum));
}

/* sqrt(2) * the inverse of erf at 2 x - 1, by Winitzki's approximation, as ONNX Runtime has it. */
static lth_value_id probit(struct lth_infer *infer, lth_value_id x)
{
	const double a = 0.147, two_over_pi_a = 2 / (3.14159265358979323846 * a);
	lth_value_id one = f32(infer, 1), half = f32(infer, 0.5), zero = f32(infer, 0);
	lth_value_id y = binary(infer, LTH_OP_ID_Sub, binary(infer, LTH_OP_ID_Add, x, x), one);
	lth_value_id rest = binary(infer, LTH_OP_ID_Sub, one, binary(infer, LTH_OP_ID_Mul, y, y));
	lth_value_id log = lth_build1(infer, LTH_OP_ID_Log, rest);
	lth_value_id v = binary(infer, LTH_OP_ID_Mul, log, half);
	v = binary(infer, LTH_OP_ID_Add, v, f32(infer, two_over_pi_a));
	lth_value_id inner = binary(infer, LTH_OP_ID_Mul, log, f32(infer, 1 / a));
	inner = binary(infer, LTH_OP_ID_Sub, binary(infer, LTH_OP_ID_Mul, v, v), inner);
	lth_value_id root = binary(infer, LTH_OP_ID_Sub, lth_build1(infer, LTH_OP_ID_Sqrt, inner), v);
	root = lth_build1(infer, LTH_OP_ID_Sqrt, root);
	lth_value_id sign = lth_build1(infer, LTH_OP_ID_Sign, y);
	lth_value_id result = binary(infer, LTH_OP_ID_Mul, sign, root);
	result = binary(infer, LTH_OP_ID_Mul, result, f32(infer, 1.41421356));
	return lth_build_select(infer, binary(infer, LTH_OP_ID_Equal, rest, zero), zero, result);
}

lth_value_id lth_ml_post(struct lth_infer *infer, lth_value_id scores)
{
	if (lth_op_string_is(infer->node, "post_transform", "SOFTMAX"))
		return lth_build1(infer, LTH_OP_ID_Softmax, scores);
	if (lth_op_string_is(infer->node, "post_transform", "LOGISTIC"))
		return lth_build1(infer, LTH_OP_ID_Sigmoid, scores);
	if (lth_op_string_is(infer->node, "post_transform", "SOFTMAX_ZERO"))
		return softmax_zero(infer, scores);
	if (lth_op_string_is(infer->node, "post_transform", "PROBIT"))
		return probit(infer, scores);
	return scores;
}

/* The labels, whichever name and kind the operator's schema gives them. */
static const struct lth_attr *labels_of(const struct lth_infer *infer)
{
	static const char *const names[] = {"classlabels_ints", "classlabels_int64s", "classlabels_strings"};
	for (int i = 0; i < 3; i++) {
		const struct lth_attr *attr = lth_node_attr(infer->node, names[i]);
		if (attr && attr->count)
			return attr;
	}
	return NULL;
}

uint32_t lth_ml_num_labels(const struct lth_infer *infer)
{
	const struct lth_attr *labels = labels_of(infer);
	return labels ? labels->count : 0;
}

lth_value_id lth_ml_labels(struct lth_infer *infer, lth_value_id places)
{
	const struct lth_attr *labels = labels_of(infer);
	if (!labels)
		return places;
	lth_value_id list = labels->kind == LTH_ATTR_STRINGS ? lth_build_strings(infer, labels->strings, labels->count)
							     : lth_build_ints(infer, labels->ints, labels->count);
	return binary(infer, LTH_OP_ID_Gather, list, places);
}

lth_value_id lth_ml_input(struct lth_infer *infer)
{
	lth_value_id x = lth_build_cast(infer, lth_node_input(infer->node, 0), LTH_DTYPE_F32);
	const int64_t first = 0;
	return lth_infer_rank(infer, 0) == 1 ? lth_build_unsqueeze(infer, x, &first, 1) : x;
}

lth_value_id lth_ml_both_signs(struct lth_infer *infer, lth_value_id score)
{
	const struct lth_attr axis = {.name = "axis", .kind = LTH_ATTR_INT, .count = 1, .i = 1};
	lth_value_id negative = lth_build1(infer, LTH_OP_ID_Neg, score);
	return lth_build(infer, LTH_OP_ID_Concat, (lth_value_id[]){negative, score}, 2, &axis, 1);
}

lth_value_id lth_ml_best(struct lth_infer *infer, lth_value_id scores)
{
	const struct lth_attr attrs[] = {{.name = "axis", .kind = LTH_ATTR_INT, .count = 1, .i = 1},
					 {.name = "keepdims", .kind = LTH_ATTR_INT, .count = 1, .i = 0}};
	return lth_build(infer, LTH_OP_ID_ArgMax, &scores, 1, attrs, 2);
}

/* ---- features ---- */

static enum lth_code expand_binarizer(struct lth_infer *infer)
{
	enum lth_dtype dtype = lth_infer_type(infer, 0)->dtype;
	double threshold = lth_op_float(infer->node, "threshold");
	lth_value_id x = lth_node_input(infer->node, 0);
	enum lth_dtype work = dtype == LTH_DTYPE_F32 ? LTH_DTYPE_F32 : LTH_DTYPE_F64;
	x = lth_build_cast(infer, x, work);
	lth_value_id above = binary(infer, LTH_OP_ID_Greater, x, lth_build_scalar(infer, work, threshold));
	lth_build_output(infer, 0, lth_build_cast(infer, above, dtype));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_binarizer = {.expand = expand_binarizer};

static enum lth_code expand_scaler(struct lth_infer *infer)
{
	uint32_t num_offsets, num_scales;
	const double *offsets = lth_ml_floats(infer, "offset", &num_offsets);
	const double *scales = lth_ml_floats(infer, "scale", &num_scales);
	if (num_offsets && num_scales && num_offsets != num_scales)
		return lth_infer_reject(infer, "as many of both", "%u offsets and %u scales", num_offsets, num_scales);
	lth_value_id x = lth_build_cast(infer, lth_node_input(infer->node, 0), LTH_DTYPE_F32);
	if (num_offsets)
		x = binary(infer, LTH_OP_ID_Sub, x, lth_ml_matrix(infer, offsets, 1, &(int64_t){num_offsets}));
	if (num_scales)
		x = binary(infer, LTH_OP_ID_Mul, x, lth_ml_matrix(infer, scales, 1, &(int64_t){num_scales}));
	lth_build_output(infer, 0, x);
	return LTH_OK;
}

const struct lth_op_impl lth_impl_scaler = {.expand = expand_scaler};

static enum lth_code expand_normalizer(struct lth_infer *infer)
{
	enum lth_op_id norm = lth_op_string_is(infer->node, "norm", "L1")   ? LTH_OP_ID_ReduceL1
			      : lth_op_string_is(infer->node, "norm", "L2") ? LTH_OP_ID_ReduceL2
									     : LTH_OP_ID_ReduceMax;
	enum lth_code code = lth_infer_need_rank(infer, 0, 1, 2);
	if (code)
		return code;
	lth_value_id x = lth_build_cast(infer, lth_node_input(infer->node, 0), LTH_DTYPE_F32);
	lth_value_id size = last_axis(infer, norm, x), zero = f32(infer, 0), one = f32(infer, 1);
	lth_value_id divisor = lth_build_select(infer, binary(infer, LTH_OP_ID_Equal, size, zero), one, size);
	lth_build_output(infer, 0, binary(infer, LTH_OP_ID_Div, x, divisor));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_normalizer = {.expand = expand_normalizer};

static enum lth_code expand_imputer(struct lth_infer *infer)
{
	enum lth_dtype dtype = lth_infer_type(infer, 0)->dtype;
	uint32_t count;
	const int64_t *ints;
	lth_value_id x = lth_node_input(infer->node, 0), values, found;
	static const char *const kinds[] = {"imputed_value_floats", "imputed_value_int64s"};
	enum lth_code code = lth_infer_one_of(infer, kinds, 2);
	if (code)
		return code;
	if (lth_is_float(dtype)) {
		const double *list = lth_ml_floats(infer, "imputed_value_floats", &count);
		double replaced = lth_op_float(infer->node, "replaced_value_float");
		if (!list)
			return lth_infer_reject(infer, "imputed_value_floats", "none");
		values = lth_build_cast(infer, lth_ml_matrix(infer, list, 1, &(int64_t){count}), dtype);
		found = replaced != replaced
				? lth_build1(infer, LTH_OP_ID_IsNaN, x)
				: binary(infer, LTH_OP_ID_Equal, x, lth_build_scalar(infer, dtype, replaced));
	} else {
		int64_t replaced = lth_op_int(infer->node, "replaced_value_int64");
		if (!lth_node_ints(infer->node, "imputed_value_int64s", &ints, &count))
			return lth_infer_reject(infer, "imputed_value_int64s", "none");
		values = lth_build_cast(infer, lth_build_ints(infer, ints, count), dtype);
		lth_value_id key = lth_build_cast(infer, lth_build_ints(infer, &replaced, 1), dtype);
		found = binary(infer, LTH_OP_ID_Equal, x, key);
	}
	lth_build_output(infer, 0, lth_build_select(infer, found, values, x));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_imputer = {.expand = expand_imputer};

/* The first `columns` columns of x, and zeros behind them where it has fewer. */
static lth_value_id with_columns(struct lth_infer *infer, lth_value_id x, int64_t columns)
{
	const int64_t one = 1;
	int64_t has;
	if (infer->failed || (lth_dim_is_const(infer->dims, infer->graph->values[x].type.dims[1], &has) && has == columns))
		return x;
	lth_value_id shape[2] = {lth_build_reshape(infer, lth_build_extent(infer, x, 0), &one, 1), LTH_NONE};
	shape[1] = lth_build_ints(infer, &columns, 1);
	lth_value_id parts[2] = {x, lth_build2(infer, LTH_OP_ID_Expand, f32(infer, 0), lth_build_concat(infer, shape, 2, 0))};
	return lth_build_slice(infer, lth_build_concat(infer, parts, 2, 1), 1, 0, columns);
}

static enum lth_code check_columns(struct lth_infer *infer, const int64_t *columns, uint32_t count)
{
	if (columns && count != infer->node->num_inputs)
		return lth_infer_reject(infer, "one entry an input", "%u inputdimensions for %u inputs", count,
					infer->node->num_inputs);
	for (uint32_t i = 0; columns && i < count; i++)
		if (columns[i] < 0 || columns[i] > INT32_MAX)
			return lth_infer_reject(infer, "0 or more", "inputdimensions of %lld", (long long)columns[i]);
	return LTH_OK;
}

static enum lth_code expand_feature_vectorizer(struct lth_infer *infer)
{
	enum { MOST = 1024 };
	const struct lth_attr axis = {.name = "axis", .kind = LTH_ATTR_INT, .count = 1, .i = 1};
	const int64_t first = 0, *columns = NULL;
	lth_value_id parts[MOST];
	uint32_t count = infer->node->num_inputs, listed = 0;
	if (count > MOST)
		return lth_infer_reject(infer, "at most 1024 inputs", "%u", count);
	lth_node_ints(infer->node, "inputdimensions", &columns, &listed);
	enum lth_code code = check_columns(infer, columns, listed);
	for (uint32_t i = 0; !code && i < count; i++) {
		code = lth_infer_need_rank(infer, i, 1, 2);
		parts[i] = lth_build_cast(infer, lth_node_input(infer->node, i), LTH_DTYPE_F32);
		if (!code && lth_infer_rank(infer, i) == 1)
			parts[i] = lth_build_unsqueeze(infer, parts[i], &first, 1);
		if (!code && columns)
			parts[i] = with_columns(infer, parts[i], columns[i]);
	}
	if (!code)
		lth_build_output(infer, 0, lth_build(infer, LTH_OP_ID_Concat, parts, count, &axis, 1));
	return code;
}

const struct lth_op_impl lth_impl_feature_vectorizer = {.expand = expand_feature_vectorizer};

static enum lth_code expand_feature_extractor(struct lth_infer *infer)
{
	const struct lth_attr axis = {.name = "axis", .kind = LTH_ATTR_INT, .count = 1, .i = -1};
	const int64_t flat = -1, first = 0;
	enum lth_code code = lth_infer_need_rank(infer, 0, 1, LTH_MAX_RANK - 1);
	if (code)
		return code;
	lth_value_id x = lth_node_input(infer->node, 0);
	lth_value_id places = lth_build_reshape(infer, lth_node_input(infer->node, 1), &flat, 1);
	if (lth_infer_rank(infer, 0) == 1)
		x = lth_build_unsqueeze(infer, x, &first, 1);
	lth_build_output(infer, 0, lth_build(infer, LTH_OP_ID_Gather, (lth_value_id[]){x, places}, 2, &axis, 1));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_feature_extractor = {.expand = expand_feature_extractor};

static enum lth_code expand_one_hot_encoder(struct lth_infer *infer)
{
	const struct lth_attr *strings = lth_node_attr(infer->node, "cats_strings");
	const struct lth_attr *ints = lth_node_attr(infer->node, "cats_int64s");
	bool text = lth_infer_type(infer, 0)->dtype == LTH_DTYPE_STRING;
	const struct lth_attr *list = text ? strings : ints;
	const int64_t last = -1;
	enum lth_code code = lth_infer_one_of(infer, (const char *const[]){"cats_strings", "cats_int64s"}, 2);
	if (code)
		return code;
	if (!list)
		return lth_infer_reject(infer, "categories of the input's kind", "none");
	if (!lth_op_int(infer->node, "zeros"))
		return lth_infer_unsupported(infer, "set zeros to 1", "failing on unknown categories (zeros = 0)");
	lth_value_id x = lth_node_input(infer->node, 0), places;
	if (text)
		places = lth_build_find_string(infer, x, strings->strings, strings->count);
	else
		places = lth_build_find(infer, lth_build_cast(infer, x, LTH_DTYPE_I64), ints->ints, ints->count);
	int64_t *columns = lth_arena_array(infer->graph->arena, list->count + 1, sizeof(*columns));
	for (uint32_t i = 0; columns && i < list->count; i++)
		columns[i] = i;
	lth_value_id wide = lth_build_unsqueeze(infer, places, &last, 1);
	lth_value_id hit = binary(infer, LTH_OP_ID_Equal, wide, lth_build_ints(infer, columns, list->count));
	lth_build_output(infer, 0, lth_build_cast(infer, hit, LTH_DTYPE_F32));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_one_hot_encoder = {.expand = expand_one_hot_encoder};
