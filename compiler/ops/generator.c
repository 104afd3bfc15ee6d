/* Values made from indices and a few scalars: ConstantOfShape, Range, EyeLike, OneHot, AffineGrid, windows, the mel
 * matrix. */
#include "compiler/ops/axes.h"
#include "compiler/ops/build.h"
#include "compiler/ops/family.h"

#include <math.h>
#include <string.h>

/* ---- ConstantOfShape ---- */

static enum lth_code infer_constant_of_shape(struct lth_infer *infer)
{
	const lth_dim *wanted;
	uint32_t rank, count;
	const struct lth_attr *value = lth_node_attr(infer->node, "value");
	enum lth_code code = lth_infer_need_rank(infer, 0, 1, 1);
	if (!code)
		code = lth_infer_need_ints(infer, 0, 0, &wanted, &rank);
	if (code)
		return code;
	if (rank > LTH_MAX_RANK)
		return lth_infer_unsupported(infer, NULL, "rank %u is above %d", rank, LTH_MAX_RANK);
	enum lth_dtype dtype = value ? infer->graph->values[value->id].type.dtype : LTH_DTYPE_F32;
	code = lth_infer_output(infer, 0, dtype, rank, wanted);
	if (code || !lth_infer_wants_contents(infer, 0, &count))
		return code;
	uint32_t list[LTH_MAX_CONTENTS];
	const struct lth_contents *known = value ? lth_value_contents(infer->graph, value->id) : NULL;
	if (value && (!known || known->count != 1))
		return LTH_OK;
	for (uint32_t i = 0; i < count; i++)
		list[i] = !value ? lth_real_const(infer->dims, 0) : known->dims ? known->dims[0] : known->reals[0];
	if (lth_is_float(dtype))
		lth_infer_set_reals(infer, 0, list, count);
	else
		lth_infer_set_ints(infer, 0, list, count);
	return LTH_OK;
}

static lth_sx constant_of_shape_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
					const lth_sx *index)
{
	(void)output, (void)index;
	const struct lth_attr *value = lth_node_attr(node, "value");
	return value ? lth_read_scalar(lower, value->id) : lth_sx_const_f(lth_lower_pool(lower), LTH_DTYPE_F32, 0);
}

const struct lth_op_impl lth_impl_constant_of_shape = {.infer = infer_constant_of_shape,
						       .element = constant_of_shape_element};

/* ---- Range ---- */

/* Numbers from start to limit by delta: max(0, ceil((limit - start) / delta)). */
static lth_dim whole_length(struct lth_dims *dims, lth_dim start, lth_dim limit, lth_dim delta)
{
	lth_dim zero = lth_dim_const(dims, 0), one = lth_dim_const(dims, 1), back = lth_dim_sub(dims, zero, delta);
	int64_t min, max;
	lth_dim_range(dims, delta, &min, &max);
	lth_dim up = lth_dim_sub(dims, limit, start), down = lth_dim_sub(dims, start, limit), span, stride;
	if (min > 0 || max < 0) {
		span = min > 0 ? up : down;
		stride = min > 0 ? delta : back;
	} else { /* the sign is the run's */
		span = lth_dim_choose(dims, lth_dim_min(dims, one, lth_dim_max(dims, zero, delta)), up, down);
		stride = lth_dim_max(dims, one, lth_dim_max(dims, delta, back));
	}
	return lth_dim_max(dims, zero, lth_dim_ceildiv(dims, span, stride));
}

static lth_dim real_length(struct lth_infer *infer)
{
	struct lth_dims *dims = infer->dims;
	uint32_t count;
	const lth_real *from = lth_infer_reals(infer, 0, &count), *to = lth_infer_reals(infer, 1, &count);
	const lth_real *by = lth_infer_reals(infer, 2, &count);
	if (!from || !to || !by)
		return LTH_DIM_NONE;
	lth_real steps =
		lth_real_apply(dims, LTH_EXPR_RDIV, lth_real_apply(dims, LTH_EXPR_RSUB, to[0], from[0]), by[0]);
	steps = lth_real_apply(dims, LTH_EXPR_RCEIL, steps, steps);
	return lth_dim_max(dims, lth_dim_const(dims, 0), lth_dim_from_real(dims, steps));
}

/* Floats that only the run knows: a range of whole numbers, as many as it says, scaled and moved. */
static enum lth_code expand_float_range(struct lth_infer *infer)
{
	lth_value_id start = infer->node->inputs[0], limit = infer->node->inputs[1], delta = infer->node->inputs[2];
	enum lth_dtype dtype = lth_infer_type(infer, 0)->dtype;
	lth_value_id zero = lth_build_scalar(infer, LTH_DTYPE_I64, 0), one = lth_build_scalar(infer, LTH_DTYPE_I64, 1);
	lth_value_id length = lth_build2(infer, LTH_OP_ID_Sub, limit, start);
	length = lth_build1(infer, LTH_OP_ID_Ceil, lth_build2(infer, LTH_OP_ID_Div, length, delta));
	length = lth_build2(infer, LTH_OP_ID_Max, lth_build_cast(infer, length, LTH_DTYPE_I64), zero);
	lth_value_id whole = lth_build(infer, LTH_OP_ID_Range, (lth_value_id[]){zero, length, one}, 3, NULL, 0);
	lth_value_id scaled = lth_build2(infer, LTH_OP_ID_Mul, lth_build_cast(infer, whole, dtype), delta);
	lth_build_output(infer, 0, lth_build2(infer, LTH_OP_ID_Add, scaled, start));
	return LTH_OK;
}

static enum lth_code infer_range(struct lth_infer *infer)
{
	const lth_dim *ints[3] = {NULL};
	uint32_t count, ignored;
	lth_dim list[LTH_MAX_CONTENTS], length;
	bool real = lth_is_float(lth_infer_type(infer, 0)->dtype);
	for (uint32_t i = 0; i < 3; i++) {
		enum lth_code code = lth_infer_need_one(infer, i);
		if (!code && !real)
			code = lth_infer_need_ints(infer, i, INT64_MIN, &ints[i], &ignored);
		if (code)
			return code;
	}
	enum lth_code code = LTH_OK;
	if (!real)
		code = lth_infer_require_nonzero(infer, ints[2][0], "a delta other than 0");
	if (code)
		return code;
	length = real ? real_length(infer) : whole_length(infer->dims, ints[0][0], ints[1][0], ints[2][0]);
	if (real && length == LTH_DIM_NONE)
		return lth_build_expand(infer, expand_float_range);
	code = lth_infer_output(infer, 0, LTH_NUM_DTYPES, 1, &length);
	if (code || real || !lth_infer_wants_contents(infer, 0, &count))
		return code;
	for (uint32_t i = 0; i < count; i++)
		list[i] = i ? lth_dim_add(infer->dims, list[i - 1], ints[2][0]) : ints[0][0];
	lth_infer_set_ints(infer, 0, list, count);
	return LTH_OK;
}

static lth_sx range_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output, const lth_sx *index)
{
	(void)output;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx start = lth_read_scalar(lower, node->inputs[0]), delta = lth_read_scalar(lower, node->inputs[2]);
	lth_sx steps = lth_sx_cast(pool, index[0], lth_sx_dtype(pool, start));
	return lth_add(pool, start, lth_mul(pool, steps, delta));
}

const struct lth_op_impl lth_impl_range = {.infer = infer_range, .element = range_element};

/* ---- EyeLike, OneHot ---- */

static enum lth_code infer_eye_like(struct lth_infer *infer)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	enum lth_dtype dtype = type->dtype;
	enum lth_code code = lth_infer_need_rank(infer, 0, 2, 2);
	if (!code && lth_node_attr(infer->node, "dtype"))
		code = lth_infer_dtype_attr(infer, "dtype", &dtype);
	if (!code && lth_compute_dtype(dtype) == LTH_NUM_DTYPES)
		code = lth_infer_unsupported(infer, NULL, "a matrix of type %s is not implemented",
					     lth_dtype_text(dtype));
	return code ? code : lth_infer_output(infer, 0, dtype, 2, type->dims);
}

static lth_sx eye_like_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
			       const lth_sx *index)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx diagonal = lth_add(pool, index[0], lth_sx_int(pool, lth_op_int(node, "k")));
	lth_sx hit = lth_eq(pool, index[1], diagonal);
	return lth_sx_cast(pool, hit, lth_compute_dtype(lth_value_dtype(lower, node->outputs[output])));
}

const struct lth_op_impl lth_impl_eye_like = {.infer = infer_eye_like, .element = eye_like_element};

/* A depth in floating point that only the run knows, as an integer. */
static enum lth_code expand_float_depth(struct lth_infer *infer)
{
	lth_value_id in[3] = {infer->node->inputs[0], infer->node->inputs[1], infer->node->inputs[2]};
	const struct lth_attr axis = {
		.name = "axis", .kind = LTH_ATTR_INT, .count = 1, .i = lth_op_int(infer->node, "axis")};
	in[1] = lth_build_cast(infer, in[1], LTH_DTYPE_I64);
	lth_build_output(infer, 0, lth_build(infer, LTH_OP_ID_OneHot, in, 3, &axis, 1));
	return LTH_OK;
}

static enum lth_code infer_one_hot(struct lth_infer *infer)
{
	const struct lth_type *indices = lth_infer_type(infer, 0);
	uint32_t axis, count;
	lth_dim dims[LTH_MAX_RANK + 1], depth;
	if (lth_is_float(lth_infer_type(infer, 1)->dtype) && !lth_infer_reals(infer, 1, &count))
		return lth_build_expand(infer, expand_float_depth);
	enum lth_code code = lth_infer_axis(infer, lth_op_int(infer->node, "axis"), indices->rank + 1, &axis);
	if (!code)
		code = lth_infer_need_rank(infer, 2, 1, 1);
	if (!code)
		code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, 2, 0), lth_dim_const(infer->dims, 2),
					 "two values, off and on");
	if (code)
		return code;
	const lth_dim *ints = lth_infer_ints(infer, 1, &count);
	const lth_real *reals = ints ? NULL : lth_infer_reals(infer, 1, &count);
	if (reals && count == 1) {
		depth = lth_dim_from_real(infer->dims, reals[0]);
	} else {
		code = lth_infer_need_ints(infer, 1, 0, &ints, &count);
		if (code)
			return code;
		depth = ints[0];
	}
	if (count != 1)
		return lth_infer_reject(infer, "one element", "%s has %u elements", lth_infer_input_text(infer, 1),
					count);
	memcpy(dims, indices->dims, axis * sizeof(*dims));
	dims[axis] = depth;
	memcpy(dims + axis + 1, indices->dims + axis, (indices->rank - axis) * sizeof(*dims));
	return lth_infer_output(infer, 0, LTH_NUM_DTYPES, indices->rank + 1, dims);
}

/* Indices out of [-depth, depth) give a row of off values. */
static lth_sx one_hot_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
			      const lth_sx *index)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	uint32_t rank = lth_rank(lower, node->inputs[0]);
	int64_t given = lth_op_int(node, "axis");
	uint32_t axis = (uint32_t)(given < 0 ? given + rank + 1 : given);
	lth_sx at[LTH_MAX_RANK], zero = lth_sx_int(pool, 0);
	memcpy(at, index, axis * sizeof(*at));
	memcpy(at + axis, index + axis + 1, (rank - axis) * sizeof(*at));
	lth_sx depth = lth_extent(lower, node->outputs[output], (int32_t)axis);
	lth_sx hot = lth_sx_cast(pool, lth_read(lower, node->inputs[0], at), LTH_DTYPE_I64);
	hot = lth_sx_select(pool, lth_lt(pool, hot, zero), lth_add(pool, hot, depth), hot);
	lth_sx off = lth_read(lower, node->inputs[2], &zero), one = lth_sx_int(pool, 1);
	return lth_sx_select(pool, lth_eq(pool, hot, index[axis]), lth_read(lower, node->inputs[2], &one), off);
}

const struct lth_op_impl lth_impl_one_hot = {.infer = infer_one_hot, .element = one_hot_element};

/* ---- AffineGrid ---- */

/* theta [N, d, d + 1] and a size (N, C, spatial...): the grid [N, spatial..., d]. */
static enum lth_code infer_affine_grid(struct lth_infer *infer)
{
	const lth_dim *size;
	uint32_t count;
	lth_dim dims[LTH_MAX_RANK];
	enum lth_code code = lth_infer_need_rank(infer, 0, 3, 3);
	if (!code)
		code = lth_infer_need_rank(infer, 1, 1, 1);
	if (!code)
		code = lth_infer_need_ints(infer, 1, 1, &size, &count);
	if (!code && (count < 4 || count > 5))
		code = lth_infer_reject(infer, "4 or 5 sizes", "%u sizes", count);
	if (code)
		return code;
	dims[0] = size[0];
	memcpy(dims + 1, size + 2, (count - 2) * sizeof(*dims));
	dims[count - 1] = lth_dim_const(infer->dims, count - 2);
	code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, 0, 1), dims[count - 1],
				 "a row of theta for each spatial axis");
	if (!code)
		code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, 0, 2),
					 lth_dim_const(infer->dims, count - 1),
					 "a column of theta for each spatial axis, and one");
	return code ? code : lth_infer_output(infer, 0, LTH_NUM_DTYPES, count, dims);
}

/* theta times (x, y, [z], 1), x along the last spatial axis; coordinates cover [-1, 1], at the pixels' centres unless
 * corners are aligned. */
static lth_sx affine_grid_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
				  const lth_sx *index)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	uint32_t spatial = lth_rank(lower, node->outputs[output]) - 2;
	bool corners = lth_op_int(node, "align_corners") != 0;
	lth_sx at[3] = {index[0], index[spatial + 1], lth_sx_int(pool, spatial)};
	lth_sx sum = lth_read(lower, node->inputs[0], at);
	enum lth_dtype type = lth_sx_dtype(pool, sum);
	for (uint32_t k = 0; k < spatial; k++) {
		uint32_t axis = spatial - k; /* of the output: x is the last */
		lth_sx extent = lth_sx_cast(pool, lth_extent(lower, node->outputs[output], (int32_t)axis), type);
		lth_sx i = lth_sx_cast(pool, index[axis], type);
		lth_sx one = lth_sx_const(pool, type, 1), two = lth_sx_const(pool, type, 2), coordinate;
		if (corners) {
			lth_sx steps = lth_max(pool, lth_sub(pool, extent, one), one);
			coordinate = lth_sub(pool, lth_div(pool, lth_mul(pool, i, two), steps), one);
		} else {
			lth_sx centre = lth_add(pool, lth_mul(pool, i, two), one);
			coordinate = lth_sub(pool, lth_div(pool, centre, extent), one);
		}
		at[2] = lth_sx_int(pool, k);
		sum = lth_add(pool, sum, lth_mul(pool, lth_read(lower, node->inputs[0], at), coordinate));
	}
	return sum;
}

const struct lth_op_impl lth_impl_affine_grid = {.infer = infer_affine_grid, .element = affine_grid_element};

/* ---- windows ---- */

static enum lth_code infer_window(struct lth_infer *infer)
{
	const lth_dim *size;
	uint32_t count;
	enum lth_dtype dtype;
	enum lth_code code = lth_infer_dtype_attr(infer, "output_datatype", &dtype);
	if (!code && !lth_dtype_in(dtype, "num"))
		code = lth_infer_reject(infer, "a number type", "output_datatype %s", lth_dtype_text(dtype));
	if (!code)
		code = lth_infer_need_rank(infer, 0, 0, 0);
	if (!code)
		code = lth_infer_need_ints(infer, 0, 0, &size, &count);
	return code ? code : lth_infer_output(infer, 0, dtype, 1, size);
}

/* a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n), n the size, less one unless periodic. */
static lth_sx window_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
			     const lth_sx *index)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	enum lth_dtype type = LTH_DTYPE_F64;
	double a0 = 0.5, a1 = 0.5, a2 = 0;
	if (lth_op_id(node->op) == LTH_OP_ID_HammingWindow) {
		a0 = 25.0 / 46;
		a1 = 21.0 / 46;
	} else if (lth_op_id(node->op) == LTH_OP_ID_BlackmanWindow) {
		a0 = 0.42;
		a2 = 0.08;
	}
	lth_sx size = lth_extent(lower, node->outputs[output], 0);
	if (!lth_op_int(node, "periodic"))
		size = lth_max(pool, lth_sub(pool, size, lth_sx_int(pool, 1)), lth_sx_int(pool, 1));
	lth_sx turn = lth_div(pool, lth_sx_cast(pool, index[0], type), lth_sx_cast(pool, size, type));
	lth_sx angle = lth_mul(pool, turn, lth_sx_const(pool, type, 6.283185307179586));
	lth_sx once = lth_mul(pool, lth_unary(pool, LTH_SCALAR_COS, angle), lth_sx_const(pool, type, -a1));
	lth_sx twice = lth_unary(pool, LTH_SCALAR_COS, lth_mul(pool, angle, lth_sx_const(pool, type, 2)));
	lth_sx sum = lth_add(pool, lth_sx_const(pool, type, a0), once);
	if (a2 != 0)
		sum = lth_add(pool, sum, lth_mul(pool, twice, lth_sx_const(pool, type, a2)));
	return lth_sx_cast(pool, sum, lth_compute_dtype(lth_value_dtype(lower, node->outputs[output])));
}

const struct lth_op_impl lth_impl_window = {.infer = infer_window, .element = window_element};

/* ---- MelWeightMatrix ---- */

static enum lth_code infer_mel_weight_matrix(struct lth_infer *infer)
{
	const lth_dim *bins, *length;
	uint32_t count;
	enum lth_dtype dtype;
	enum lth_code code = lth_infer_dtype_attr(infer, "output_datatype", &dtype);
	if (!code && !lth_dtype_in(dtype, "num"))
		code = lth_infer_reject(infer, "a number type", "output_datatype %s", lth_dtype_text(dtype));
	for (uint32_t i = 0; !code && i < infer->node->num_inputs; i++)
		code = lth_infer_need_one(infer, i);
	if (!code)
		code = lth_infer_need_ints(infer, 0, 0, &bins, &count);
	if (!code)
		code = lth_infer_need_ints(infer, 1, 0, &length, &count);
	if (code)
		return code;
	lth_dim half = lth_dim_floordiv(infer->dims, length[0], lth_dim_const(infer->dims, 2));
	lth_dim dims[2] = {lth_dim_add(infer->dims, half, lth_dim_const(infer->dims, 1)), bins[0]};
	return lth_infer_output(infer, 0, dtype, 2, dims);
}

static lth_sx scalar64(struct lth_lower *lower, const struct lth_node *node, uint32_t input)
{
	return lth_sx_cast(lth_lower_pool(lower), lth_read_scalar(lower, node->inputs[input]), LTH_DTYPE_F64);
}

static lth_sx mel(struct lth_sx_pool *pool, lth_sx hertz)
{
	lth_sx ratio = lth_div(pool, hertz, lth_same_const(pool, hertz, 700));
	/* 2595 log10(1 + x) */
	return lth_mul(pool, lth_unary(pool, LTH_SCALAR_LOG1P, ratio), lth_same_const(pool, hertz, 2595 / log(10)));
}

/* The spectrogram bin of the k-th band edge. */
static lth_sx band_edge(struct lth_lower *lower, const struct lth_node *node, lth_sx k)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx low = mel(pool, scalar64(lower, node, 3)), high = mel(pool, scalar64(lower, node, 4));
	lth_sx bands = lth_add(pool, scalar64(lower, node, 0), lth_same_const(pool, low, 2));
	lth_sx step = lth_div(pool, lth_sub(pool, high, low), bands);
	lth_sx at = lth_add(pool, low, lth_mul(pool, lth_sx_cast(pool, k, LTH_DTYPE_F64), step));
	lth_sx power = lth_unary(pool, LTH_SCALAR_EXPM1, lth_mul(pool, at, lth_same_const(pool, at, log(10) / 2595)));
	lth_sx hertz = lth_mul(pool, power, lth_same_const(pool, at, 700));
	lth_sx length = lth_add(pool, scalar64(lower, node, 1), lth_same_const(pool, at, 1));
	return lth_unary(pool, LTH_SCALAR_FLOOR, lth_div(pool, lth_mul(pool, length, hertz), scalar64(lower, node, 2)));
}

/* A triangle over three band edges; 1 at the centre when the lower side is empty. */
static lth_sx mel_weight_matrix_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
					const lth_sx *index)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx bin = lth_sx_cast(pool, index[0], LTH_DTYPE_F64);
	lth_sx zero = lth_same_const(pool, bin, 0), one = lth_same_const(pool, bin, 1);
	lth_sx low = band_edge(lower, node, index[1]);
	lth_sx centre = band_edge(lower, node, lth_add(pool, index[1], lth_sx_int(pool, 1)));
	lth_sx high = band_edge(lower, node, lth_add(pool, index[1], lth_sx_int(pool, 2)));
	lth_sx rise_width = lth_sub(pool, centre, low), fall_width = lth_sub(pool, high, centre);
	lth_sx rise = lth_div(pool, lth_sub(pool, bin, low), lth_max(pool, rise_width, one));
	lth_sx fall = lth_div(pool, lth_sub(pool, high, bin), lth_max(pool, fall_width, one));
	lth_sx rising = lth_and(pool, lth_le(pool, low, bin), lth_le(pool, bin, centre));
	lth_sx falling = lth_and(pool, lth_le(pool, centre, bin), lth_lt(pool, bin, high));
	lth_sx below = lth_sx_select(pool, lth_eq(pool, rise_width, zero), lth_same_const(pool, bin, 1), rise);
	lth_sx x = lth_sx_select(pool, rising, below, zero);
	lth_sx after = lth_and(pool, falling, lth_lt(pool, centre, bin));
	x = lth_sx_select(pool, after, fall, x);
	return lth_sx_cast(pool, x, lth_compute_dtype(lth_value_dtype(lower, node->outputs[output])));
}

const struct lth_op_impl lth_impl_mel_weight_matrix = {.infer = infer_mel_weight_matrix,
						       .element = mel_weight_matrix_element};
