/* What is made of a row's reductions and the row itself: softmax, layer, instance and RMS normalisation, and their
 * relatives. All read the row again for the element, so a row that was produced in the group is computed once a
 * stage. */
#include "compiler/ops/family.h"

#include <math.h>
#include <string.h>

/* Axes of input 0 that are reduced, as bits: from the attributes of each operator. */
static uint32_t norm_axes(struct lth_lower *lower, const struct lth_node *node)
{
	uint32_t rank = lth_rank(lower, node->inputs[0]), all = (1u << rank) - 1, flags = 0, count;
	const int64_t *axes;
	int64_t axis;
	switch (lth_op_id(node->op)) {
	case LTH_OP_ID_InstanceNormalization:
		return all & ~3u;
	case LTH_OP_ID_MeanVarianceNormalization:
		if (!lth_node_ints(node, "axes", &axes, &count))
			return all & 0xd; /* [0, 2, 3] */
		for (uint32_t i = 0; i < count; i++)
			flags |= 1u << (axes[i] < 0 ? axes[i] + rank : axes[i]);
		return flags;
	case LTH_OP_ID_LayerNormalization:
	case LTH_OP_ID_RMSNormalization:
		axis = lth_op_int(node, "axis");
		return all & ~((1u << (axis < 0 ? axis + rank : axis)) - 1);
	default:
		axis = lth_op_int(node, "axis");
		return 1u << (axis < 0 ? axis + rank : axis);
	}
}

static enum lth_dtype work_dtype(struct lth_lower *lower, const struct lth_node *node)
{
	return lth_compute_dtype(lth_value_dtype(lower, node->inputs[0]));
}

/* The shape of a reduction over norm_axes; the stages are the caller's. */
static void norm_rows(struct lth_lower *lower, const struct lth_node *node, struct lth_reduction *out)
{
	uint32_t rank = lth_rank(lower, node->inputs[0]), axes = norm_axes(lower, node);
	for (uint32_t i = 0; i < rank; i++)
		if (axes & 1u << i)
			out->extents[out->num_axes++] = lth_extent_dim(lower, node->inputs[0], (int32_t)i);
	out->row_axes = ((1u << rank) - 1) & ~axes;
}

static void add_stage(struct lth_lower *lower, const struct lth_node *node, struct lth_reduction *out,
		      enum lth_combiner combiner)
{
	out->stages[out->num_stages].combiner = combiner;
	out->stages[out->num_stages++].dtype = work_dtype(lower, node);
}

/* The row's element for a stage: its own axes from the output's index, the reduced ones from behind it. */
static lth_sx row_element(struct lth_lower *lower, const struct lth_node *node, const lth_sx *index)
{
	uint32_t rank = lth_rank(lower, node->inputs[0]), axes = norm_axes(lower, node), term = rank;
	lth_sx at[LTH_MAX_RANK];
	for (uint32_t i = 0; i < rank; i++)
		at[i] = axes & 1u << i ? index[term++] : index[i];
	return lth_read(lower, node->inputs[0], at);
}

/* Elements in a row, as a number of the given type. */
static lth_sx row_length(struct lth_lower *lower, const struct lth_node *node, enum lth_dtype dtype)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	struct lth_dims *dims = lth_lower_graph(lower)->dims;
	uint32_t axes = norm_axes(lower, node);
	lth_dim count = lth_dim_const(dims, 1);
	for (uint32_t i = 0; axes >> i; i++)
		if (axes & 1u << i)
			count = lth_dim_mul(dims, count, lth_extent_dim(lower, node->inputs[0], (int32_t)i));
	return lth_sx_cast(pool, lth_sx_dim(pool, count), dtype);
}

static enum lth_code infer_axis_like(struct lth_infer *infer)
{
	uint32_t axis;
	enum lth_code code = lth_infer_axis(infer, lth_op_int(infer->node, "axis"), lth_infer_rank(infer, 0), &axis);
	return code ? code : lth_infer_like(infer, 0, 0);
}

/* ---- Softmax, LogSoftmax, Hardmax ---- */

static enum lth_code softmax_reduction(struct lth_lower *lower, const struct lth_node *node, struct lth_reduction *out,
				       struct lth_diag *diag)
{
	(void)diag;
	norm_rows(lower, node, out);
	add_stage(lower, node, out, LTH_COMBINE_MAX);
	add_stage(lower, node, out, LTH_COMBINE_SUM);
	return LTH_OK;
}

static lth_sx softmax_stage(struct lth_lower *lower, const struct lth_node *node, uint32_t stage, const lth_sx *index)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx x = row_element(lower, node, index);
	if (stage == 0)
		return x;
	return lth_unary(pool, LTH_SCALAR_EXP, lth_sub(pool, x, lth_sx_stage(pool, 0, work_dtype(lower, node))));
}

static lth_sx softmax_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
			      const lth_sx *index)
{
	(void)output;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	enum lth_dtype dtype = work_dtype(lower, node);
	lth_sx sum = lth_result(lower, node, 1, dtype);
	lth_sx x = lth_read(lower, node->inputs[0], index);
	lth_sx shifted = lth_sub(pool, x, lth_result(lower, node, 0, dtype));
	if (lth_op_id(node->op) == LTH_OP_ID_LogSoftmax)
		return lth_sub(pool, shifted, lth_unary(pool, LTH_SCALAR_LOG, sum));
	return lth_div(pool, lth_unary(pool, LTH_SCALAR_EXP, shifted), sum);
}

const struct lth_op_impl lth_impl_softmax = {.infer = infer_axis_like,
					     .element = softmax_element,
					     .reduction = softmax_reduction,
					     .stage = softmax_stage};

static enum lth_code hardmax_reduction(struct lth_lower *lower, const struct lth_node *node, struct lth_reduction *out,
				       struct lth_diag *diag)
{
	(void)diag;
	norm_rows(lower, node, out);
	add_stage(lower, node, out, LTH_COMBINE_ARGMAX_FIRST);
	return LTH_OK;
}

static lth_sx hardmax_stage(struct lth_lower *lower, const struct lth_node *node, uint32_t stage, const lth_sx *index)
{
	(void)stage;
	return row_element(lower, node, index);
}

static lth_sx hardmax_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
			      const lth_sx *index)
{
	(void)output;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	int64_t axis = lth_op_int(node, "axis");
	axis = axis < 0 ? axis + lth_rank(lower, node->inputs[0]) : axis;
	lth_sx hit = lth_eq(pool, index[axis], lth_result(lower, node, 0, LTH_DTYPE_I64));
	return lth_sx_cast(pool, hit, work_dtype(lower, node));
}

const struct lth_op_impl lth_impl_hardmax = {.infer = infer_axis_like,
					     .element = hardmax_element,
					     .reduction = hardmax_reduction,
					     .stage = hardmax_stage};

/* ---- mean and variance: LayerNormalization, InstanceNormalization, MeanVarianceNormalization ---- */

static enum lth_code moments_reduction(struct lth_lower *lower, const struct lth_node *node, struct lth_reduction *out,
				       struct lth_diag *diag)
{
	(void)diag;
	norm_rows(lower, node, out);
	add_stage(lower, node, out, LTH_COMBINE_SUM);
	add_stage(lower, node, out, LTH_COMBINE_SUM);
	return LTH_OK;
}

/* The mean, from stage 0. */
static lth_sx mean_of(struct lth_lower *lower, const struct lth_node *node)
{
	enum lth_dtype dtype = work_dtype(lower, node);
	lth_sx sum = lth_result(lower, node, 0, dtype);
	return lth_div(lth_lower_pool(lower), sum, row_length(lower, node, dtype));
}

/* Two passes: the squares of what is left without the mean lose nothing to cancellation. */
static lth_sx moments_stage(struct lth_lower *lower, const struct lth_node *node, uint32_t stage, const lth_sx *index)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx x = row_element(lower, node, index);
	if (stage == 0)
		return x;
	x = lth_sub(pool, x, mean_of(lower, node));
	return lth_mul(pool, x, x);
}

static lth_sx variance_of(struct lth_lower *lower, const struct lth_node *node)
{
	enum lth_dtype dtype = work_dtype(lower, node);
	lth_sx squares = lth_result(lower, node, 1, dtype);
	return lth_div(lth_lower_pool(lower), squares, row_length(lower, node, dtype));
}

static lth_sx inverse_deviation(struct lth_lower *lower, const struct lth_node *node, lth_sx variance)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx padded = lth_add(pool, variance, lth_same_const(pool, variance, lth_op_float(node, "epsilon")));
	return lth_div(pool, lth_same_const(pool, variance, 1), lth_unary(pool, LTH_SCALAR_SQRT, padded));
}

/* Scale and bias broadcast onto the input, never the other way. */
static enum lth_code check_onto(struct lth_infer *infer, uint32_t input)
{
	const struct lth_type *x = lth_infer_type(infer, 0), *type = lth_infer_type(infer, input);
	lth_dim dims[LTH_MAX_RANK];
	uint32_t rank = x->rank;
	if (!type)
		return LTH_OK;
	memcpy(dims, x->dims, rank * sizeof(*dims));
	if (type->rank > rank)
		return lth_infer_reject(infer, "a shape that broadcasts to the input", "%s has shape %s",
					lth_infer_input_text(infer, input), lth_infer_shape_text(infer, type));
	enum lth_code code = lth_infer_broadcast(infer, dims, &rank, type->dims, type->rank);
	for (uint32_t i = 0; !code && i < rank; i++)
		code = lth_infer_require(infer, LTH_REL_EQ, dims[i], x->dims[i],
					 "a shape that broadcasts to the input");
	return code;
}

static enum lth_code infer_layer_norm(struct lth_infer *infer)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	int64_t stash = lth_op_int(infer->node, "stash_type");
	lth_dim dims[LTH_MAX_RANK];
	uint32_t axis;
	enum lth_code code = lth_infer_axis(infer, lth_op_int(infer->node, "axis"), type->rank, &axis);
	if (!code && stash != 1 && stash != 16)
		code = lth_infer_reject(infer, "1 (float) or 16 (bfloat16)", "stash_type %lld", (long long)stash);
	for (uint32_t i = 1; !code && i <= 2; i++)
		code = check_onto(infer, i);
	if (!code)
		code = lth_infer_like(infer, 0, 0);
	for (uint32_t i = 0; i < type->rank; i++)
		dims[i] = !code && i < axis ? type->dims[i] : lth_dim_const(infer->dims, 1);
	for (uint32_t i = 1; !code && i <= 2; i++)
		code = lth_infer_output(infer, i, stash == 16 ? LTH_DTYPE_BF16 : LTH_DTYPE_F32, type->rank, dims);
	return code;
}

static lth_sx layer_norm_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
				 const lth_sx *index)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx inverse = inverse_deviation(lower, node, variance_of(lower, node)), mean = mean_of(lower, node);
	if (output > 0)
		return lth_sx_cast(pool, output == 1 ? mean : inverse, LTH_DTYPE_F32);
	uint32_t rank = lth_rank(lower, node->inputs[0]);
	lth_sx x = lth_mul(pool, lth_sub(pool, lth_read(lower, node->inputs[0], index), mean), inverse);
	x = lth_mul(pool, x, lth_read_input(lower, node, 1, index, rank));
	return lth_node_input(node, 2) == LTH_NONE ? x : lth_add(pool, x, lth_read_input(lower, node, 2, index, rank));
}

const struct lth_op_impl lth_impl_layer_norm = {.infer = infer_layer_norm,
						.element = layer_norm_element,
						.reduction = moments_reduction,
						.stage = moments_stage};

static enum lth_code infer_instance_norm(struct lth_infer *infer)
{
	enum lth_code code = lth_infer_need_rank(infer, 0, 3, LTH_MAX_RANK);
	for (uint32_t i = 1; !code && i <= 2; i++) {
		code = lth_infer_need_rank(infer, i, 1, 1);
		if (!code)
			code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, i, 0),
						 lth_infer_dim(infer, 0, 1), "one scale and bias a channel");
	}
	return code ? code : lth_infer_like(infer, 0, 0);
}

static lth_sx instance_norm_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
				    const lth_sx *index)
{
	(void)output;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx inverse = inverse_deviation(lower, node, variance_of(lower, node));
	lth_sx x = lth_read(lower, node->inputs[0], index);
	x = lth_sub(pool, x, mean_of(lower, node));
	lth_sx scale = lth_mul(pool, inverse, lth_read(lower, node->inputs[1], &index[1]));
	return lth_add(pool, lth_mul(pool, x, scale), lth_read(lower, node->inputs[2], &index[1]));
}

const struct lth_op_impl lth_impl_instance_norm = {.infer = infer_instance_norm,
						   .element = instance_norm_element,
						   .reduction = moments_reduction,
						   .stage = moments_stage};

static enum lth_code infer_mvn(struct lth_infer *infer)
{
	const int64_t *axes, standard[] = {0, 2, 3};
	uint32_t count, axis;
	enum lth_code code = LTH_OK;
	if (!lth_node_ints(infer->node, "axes", &axes, &count)) {
		axes = standard;
		count = 3;
	}
	for (uint32_t i = 0; !code && i < count; i++)
		code = lth_infer_axis(infer, axes[i], lth_infer_rank(infer, 0), &axis);
	return code ? code : lth_infer_like(infer, 0, 0);
}

static lth_sx mvn_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output, const lth_sx *index)
{
	(void)output;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx deviation = lth_unary(pool, LTH_SCALAR_SQRT, variance_of(lower, node));
	lth_sx x = lth_read(lower, node->inputs[0], index);
	x = lth_sub(pool, x, mean_of(lower, node));
	return lth_div(pool, x, lth_add(pool, deviation, lth_same_const(pool, x, 1e-9)));
}

const struct lth_op_impl lth_impl_mvn = {
	.infer = infer_mvn, .element = mvn_element, .reduction = moments_reduction, .stage = moments_stage};

/* ---- sums of powers: RMSNormalization, LpNormalization ---- */

static enum lth_code power_reduction(struct lth_lower *lower, const struct lth_node *node, struct lth_reduction *out,
				     struct lth_diag *diag)
{
	(void)diag;
	norm_rows(lower, node, out);
	add_stage(lower, node, out, LTH_COMBINE_SUM);
	return LTH_OK;
}

static bool is_l1(const struct lth_node *node)
{
	return lth_op_id(node->op) == LTH_OP_ID_LpNormalization && lth_op_int(node, "p") == 1;
}

static lth_sx power_stage(struct lth_lower *lower, const struct lth_node *node, uint32_t stage, const lth_sx *index)
{
	(void)stage;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx x = row_element(lower, node, index);
	return is_l1(node) ? lth_unary(pool, LTH_SCALAR_ABS, x) : lth_mul(pool, x, x);
}

static enum lth_code infer_rms_norm(struct lth_infer *infer)
{
	uint32_t axis;
	enum lth_code code = lth_infer_axis(infer, lth_op_int(infer->node, "axis"), lth_infer_rank(infer, 0), &axis);
	if (!code)
		code = check_onto(infer, 1);
	return code ? code : lth_infer_like(infer, 0, 0);
}

static lth_sx rms_norm_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
			       const lth_sx *index)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	enum lth_dtype dtype = work_dtype(lower, node);
	lth_sx square = lth_result(lower, node, 0, dtype);
	square = lth_div(pool, square, row_length(lower, node, dtype));
	lth_sx x = lth_read(lower, node->inputs[0], index);
	x = lth_mul(pool, x, inverse_deviation(lower, node, square));
	lth_sx scale = lth_read_input(lower, node, 1, index, lth_rank(lower, node->inputs[0]));
	enum lth_dtype wanted = lth_compute_dtype(lth_value_dtype(lower, node->outputs[output]));
	return lth_mul(pool, lth_sx_cast(pool, x, wanted), lth_sx_cast(pool, scale, wanted));
}

const struct lth_op_impl lth_impl_rms_norm = {
	.infer = infer_rms_norm, .element = rms_norm_element, .reduction = power_reduction, .stage = power_stage};

static enum lth_code infer_lp_norm(struct lth_infer *infer)
{
	int64_t p = lth_op_int(infer->node, "p");
	if (p != 1 && p != 2)
		return lth_infer_reject(infer, "1 or 2", "p = %lld", (long long)p);
	return infer_axis_like(infer);
}

static lth_sx lp_norm_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
			      const lth_sx *index)
{
	(void)output;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx norm = lth_result(lower, node, 0, work_dtype(lower, node)), x = lth_read(lower, node->inputs[0], index);
	norm = is_l1(node) ? norm : lth_unary(pool, LTH_SCALAR_SQRT, norm);
	lth_sx zero = lth_same_const(pool, norm, 0); /* a row of zeros stays one */
	return lth_sx_select(pool, lth_eq(pool, norm, zero), zero, lth_div(pool, x, norm));
}

const struct lth_op_impl lth_impl_lp_norm = {
	.infer = infer_lp_norm, .element = lp_norm_element, .reduction = power_reduction, .stage = power_stage};

/* ---- LRN ---- */

static enum lth_code infer_lrn(struct lth_infer *infer)
{
	int64_t size = lth_op_int(infer->node, "size");
	enum lth_code code = lth_infer_need_rank(infer, 0, 3, LTH_MAX_RANK);
	if (!code && (size < 1 || size > INT32_MAX))
		code = lth_infer_reject(infer, "1 or more, within 32 bits", "size %lld", (long long)size);
	return code ? code : lth_infer_like(infer, 0, 0);
}

static enum lth_code lrn_reduction(struct lth_lower *lower, const struct lth_node *node, struct lth_reduction *out,
				   struct lth_diag *diag)
{
	(void)diag;
	out->num_axes = 1;
	out->extents[0] = lth_dim_const(lth_lower_graph(lower)->dims, lth_op_int(node, "size"));
	out->row_axes = (1u << lth_rank(lower, node->inputs[0])) - 1;
	add_stage(lower, node, out, LTH_COMBINE_SUM);
	return LTH_OK;
}

static lth_sx lrn_stage(struct lth_lower *lower, const struct lth_node *node, uint32_t stage, const lth_sx *index)
{
	(void)stage;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	uint32_t rank = lth_rank(lower, node->inputs[0]);
	lth_sx at[LTH_MAX_RANK], channels = lth_extent(lower, node->inputs[0], 1);
	lth_sx before = lth_sx_int(pool, (lth_op_int(node, "size") - 1) / 2);
	lth_sx channel = lth_sub(pool, lth_add(pool, index[1], index[rank]), before);
	memcpy(at, index, rank * sizeof(*at));
	at[1] = lth_safe_index(pool, channel, channels);
	lth_sx x = lth_read(lower, node->inputs[0], at);
	return lth_sx_select(pool, lth_in_range(pool, channel, lth_sx_int(pool, 0), channels), lth_mul(pool, x, x),
			     lth_same_const(pool, x, 0));
}

static lth_sx lrn_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output, const lth_sx *index)
{
	(void)output;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx sum = lth_result(lower, node, 0, work_dtype(lower, node));
	double scale = lth_op_float(node, "alpha") / (double)lth_op_int(node, "size");
	lth_sx base = lth_add(pool, lth_mul(pool, sum, lth_same_const(pool, sum, scale)),
			      lth_same_const(pool, sum, lth_op_float(node, "bias")));
	lth_sx power = lth_sx_op2(pool, LTH_SCALAR_POW, base, lth_same_const(pool, sum, lth_op_float(node, "beta")));
	return lth_div(pool, lth_read(lower, node->inputs[0], index), power);
}

const struct lth_op_impl lth_impl_lrn = {
	.infer = infer_lrn, .element = lrn_element, .reduction = lrn_reduction, .stage = lrn_stage};
