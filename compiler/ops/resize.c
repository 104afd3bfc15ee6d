/* Resize in every mode and coordinate transformation: weighted sums over a few neighbours of a computed
 * point. The neighbours are written out, so a resize fuses like any other movement; antialiasing widens them by the
 * scale, and becomes products with matrices of weights where only the run knows that (resize_dense.c).
 *
 * Coordinates are computed in double from the axis index alone. Whole-numbered enlargements by nearest, which is what
 * most models use, reduce to a division of the index. */
#include "compiler/ops/axes.h"
#include "compiler/ops/build.h"
#include "compiler/ops/resize.h"
#include "compiler/ops/sample.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { INPUT = LTH_RESIZE_INPUT, ROI, SCALES, SIZES };
enum { MAX_NEIGHBOURS = 1024 };

/* ---- which axes, by how much ---- */

uint32_t lth_resize_place(const struct lth_node *node, uint32_t axis, uint32_t rank, uint32_t *out_count)
{
	const int64_t *axes;
	uint32_t count;
	if (!lth_node_ints(node, "axes", &axes, &count)) {
		*out_count = rank;
		return axis;
	}
	*out_count = count;
	for (uint32_t k = 0; k < count; k++)
		if ((axes[k] < 0 ? axes[k] + rank : axes[k]) == axis)
			return k;
	return UINT32_MAX;
}

static const struct lth_contents *contents_of(struct lth_graph *graph, const struct lth_node *node, uint32_t input)
{
	lth_value_id id = lth_node_input(node, input);
	const struct lth_contents *contents = id == LTH_NONE ? NULL : lth_value_contents(graph, id);
	return contents && contents->count ? contents : NULL;
}

static bool keeps_ratio(const struct lth_node *node)
{
	return !lth_op_string_is(node, "keep_aspect_ratio_policy", "stretch");
}

/* The one scale of all axes under a policy that keeps the aspect ratio. */
static lth_real common_scale(struct lth_graph *graph, const struct lth_node *node)
{
	struct lth_dims *dims = graph->dims;
	const struct lth_type *type = &graph->values[node->inputs[INPUT]].type;
	const struct lth_contents *sizes = contents_of(graph, node, SIZES);
	enum lth_expr_op op =
		lth_op_string_is(node, "keep_aspect_ratio_policy", "not_larger") ? LTH_EXPR_RMIN : LTH_EXPR_RMAX;
	lth_real result = UINT32_MAX;
	uint32_t count;
	for (uint32_t i = 0; i < type->rank; i++) {
		uint32_t k = lth_resize_place(node, i, type->rank, &count);
		if (k == UINT32_MAX)
			continue;
		lth_real ratio = lth_real_apply(dims, LTH_EXPR_RDIV, lth_real_from_dim(dims, sizes->dims[k]),
						lth_real_from_dim(dims, type->dims[i]));
		result = result == UINT32_MAX ? ratio : lth_real_apply(dims, op, result, ratio);
	}
	return result;
}

/* Extent of axis i of the output: rounded down for scales, as ONNX Runtime computes it in float32. */
static lth_dim resized_extent(struct lth_graph *graph, const struct lth_node *node, uint32_t i)
{
	struct lth_dims *dims = graph->dims;
	const struct lth_type *type = &graph->values[node->inputs[INPUT]].type;
	const struct lth_contents *scales = contents_of(graph, node, SCALES), *sizes = contents_of(graph, node, SIZES);
	uint32_t count, k = lth_resize_place(node, i, type->rank, &count);
	double factor;
	if (k == UINT32_MAX)
		return type->dims[i];
	if (sizes && !keeps_ratio(node))
		return sizes->dims[k];
	lth_real scale = sizes ? common_scale(graph, node) : scales->reals[k];
	if (!sizes && lth_real_is_const(dims, scale, &factor) && factor == floor(factor) && factor > 0 && factor < 1e6)
		return lth_dim_mul(dims, type->dims[i], lth_dim_const(dims, (int64_t)factor));
	lth_real extent = lth_real_apply(dims, LTH_EXPR_RMUL, lth_real_from_dim(dims, type->dims[i]), scale);
	if (!sizes)
		extent = lth_real_apply(dims, LTH_EXPR_RF32, extent, extent);
	/* With sizes the nearest integer, halves up. */
	if (sizes)
		extent = lth_real_apply(dims, LTH_EXPR_RADD, extent, lth_real_const(dims, 0.5));
	return lth_dim_from_real(dims, lth_real_apply(dims, LTH_EXPR_RFLOOR, extent, extent));
}

static enum lth_code need_list(struct lth_infer *infer, uint32_t input, uint32_t count, const char *rule)
{
	if (!lth_infer_type(infer, input))
		return lth_infer_reject(infer, rule, "none");
	enum lth_code code = lth_infer_need_rank(infer, input, 1, 1);
	return code ? code
		    : lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, input, 0),
					lth_dim_const(infer->dims, count), rule);
}

static enum lth_code check_lists(struct lth_infer *infer)
{
	uint32_t count, given, rank = lth_infer_rank(infer, INPUT);
	const lth_dim *ignored;
	bool has_scales = lth_infer_type(infer, SCALES) != NULL, has_sizes = lth_infer_type(infer, SIZES) != NULL;
	enum lth_code code = lth_infer_axes_attr(infer, "axes", rank);
	if (code)
		return code;
	lth_resize_place(infer->node, 0, rank, &count);
	if (has_sizes) {
		code = lth_infer_need_ints(infer, SIZES, 0, &ignored, &given);
		if (code)
			return code;
	} else {
		if (!has_scales || !lth_infer_reals(infer, SCALES, &given))
			return lth_infer_reject(infer, "scales or sizes", "neither");
	}
	if (given != count)
		return lth_infer_reject(infer, "one entry a resized axis", "%u entries for %u axes", given, count);
	/* what the run reads one by one: scales that it alone knows, and the box to crop */
	if (has_scales && has_sizes)
		code = need_list(infer, SCALES, count, "one scale a resized axis");
	if (!code && lth_op_string_is(infer->node, "coordinate_transformation_mode", "tf_crop_and_resize"))
		code = need_list(infer, ROI, 2 * count, "a begin and an end of each resized axis");
	return code;
}

/* Scales that only the run knows: the sizes are computed beside, and both are inputs; the sizes decide the shape, the
 * scales the points. */
static enum lth_code expand_run_time_scales(struct lth_infer *infer)
{
	lth_value_id in[SIZES + 1];
	uint32_t rank = lth_infer_rank(infer, INPUT), count, place;
	const int64_t *axes;
	for (uint32_t i = 0; i <= SIZES; i++)
		in[i] = lth_node_input(infer->node, i);
	const struct lth_attr *attrs = infer->node->attrs;
	uint32_t num_attrs = infer->node->num_attrs;
	lth_value_id shape = lth_build1(infer, LTH_OP_ID_Shape, in[INPUT]);
	if (lth_node_ints(infer->node, "axes", &axes, &count)) {
		int64_t order[LTH_MAX_RANK];
		for (place = 0; place < count && place < LTH_MAX_RANK; place++)
			order[place] = axes[place] < 0 ? axes[place] + rank : axes[place];
		shape = lth_build2(infer, LTH_OP_ID_Gather, shape, lth_build_ints(infer, order, place));
	}
	lth_value_id sizes = lth_build_cast(infer, shape, LTH_DTYPE_F32);
	sizes = lth_build2(infer, LTH_OP_ID_Mul, sizes, in[SCALES]);
	in[SIZES] = lth_build_cast(infer, lth_build1(infer, LTH_OP_ID_Floor, sizes), LTH_DTYPE_I64);
	lth_build_output(infer, 0, lth_build(infer, LTH_OP_ID_Resize, in, SIZES + 1, attrs, num_attrs));
	return LTH_OK;
}

/* The scale of axis i where compile time knows it, else 0; `out` is the output's extent. */
static double known_scale(struct lth_graph *graph, const struct lth_node *node, uint32_t i, lth_dim out)
{
	struct lth_dims *dims = graph->dims;
	lth_dim in = graph->values[node->inputs[INPUT]].type.dims[i];
	const struct lth_contents *scales = contents_of(graph, node, SCALES), *sizes = contents_of(graph, node, SIZES);
	uint32_t count, place = lth_resize_place(node, i, graph->values[node->inputs[INPUT]].type.rank, &count);
	int64_t from, to;
	double scale = 0;
	if (sizes && lth_node_input(node, SCALES) != LTH_NONE)
		return 0; /* the scales are the run's */
	if (sizes && keeps_ratio(node)) {
		lth_real_is_const(dims, common_scale(graph, node), &scale);
		return scale;
	}
	if (!sizes) {
		lth_real_is_const(dims, scales->reals[place], &scale);
		return scale;
	}
	if (lth_dim_is_const(dims, in, &from) && lth_dim_is_const(dims, out, &to))
		return (double)to / (double)from;
	lth_dim whole = lth_dim_div_exact(dims, out, in);
	return whole != LTH_DIM_NONE && lth_dim_is_const(dims, whole, &to) ? (double)to : 0;
}

/* Antialiasing reaches as many neighbours as the scale says. */
static bool reaches_unknown(const struct lth_infer *infer, const lth_dim *dims)
{
	uint32_t ignored, rank = lth_infer_rank(infer, INPUT);
	if (!lth_op_int(infer->node, "antialias") || lth_op_string_is(infer->node, "mode", "nearest"))
		return false;
	for (uint32_t i = 0; i < rank; i++)
		if (lth_resize_place(infer->node, i, rank, &ignored) != UINT32_MAX &&
		    known_scale(infer->graph, infer->node, i, dims[i]) == 0)
			return true;
	return false;
}

static enum lth_code infer_resize(struct lth_infer *infer)
{
	const struct lth_type *type = lth_infer_type(infer, INPUT);
	lth_dim dims[LTH_MAX_RANK];
	uint32_t ignored;
	if (!lth_infer_type(infer, SIZES) && lth_infer_type(infer, SCALES) && !lth_infer_reals(infer, SCALES, &ignored))
		return lth_build_expand(infer, expand_run_time_scales);
	enum lth_code code = check_lists(infer);
	if (code)
		return code;
	for (uint32_t i = 0; i < type->rank; i++)
		dims[i] = resized_extent(infer->graph, infer->node, i);
	for (uint32_t i = 0; !code && i < type->rank; i++)
		code = lth_infer_source(infer, type->dims[i], dims[i]);
	if (code)
		return code;
	if (reaches_unknown(infer, dims))
		return lth_build_expand(infer, lth_resize_dense);
	return lth_infer_output(infer, 0, LTH_NUM_DTYPES, type->rank, dims);
}

/* ---- coordinates ---- */

static lth_sx f64(struct lth_sx_pool *pool, double value)
{
	return lth_sx_const_f(pool, LTH_DTYPE_F64, value);
}

static lth_sx real_extent(struct lth_sx_pool *pool, lth_dim dim)
{
	return lth_sx_cast(pool, lth_sx_dim(pool, dim), LTH_DTYPE_F64);
}

/* One resized axis: the input's and the output's extent, and the scale between them. */
struct axis {
	lth_dim in, out;
	lth_sx scale;     /* f64 */
	double constant;  /* the scale where it is known, else 0 */
	uint32_t place;   /* in the lists */
	uint32_t count;   /* of the lists */
	bool by_scale;    /* scales were given, not sizes */
};

static struct axis describe_axis(struct lth_lower *lower, const struct lth_node *node, uint32_t i)
{
	struct lth_graph *graph = lth_lower_graph(lower);
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	struct axis axis = {.in = lth_shape_of(lower, node->inputs[INPUT])[i],
			    .out = lth_shape_of(lower, node->outputs[0])[i]};
	const struct lth_contents *sizes = contents_of(graph, node, SIZES);
	bool run_time = lth_node_input(node, SCALES) != LTH_NONE && sizes;
	axis.by_scale = !sizes || run_time;
	axis.place = lth_resize_place(node, i, lth_rank(lower, node->inputs[INPUT]), &axis.count);
	if (run_time) {
		lth_sx place = lth_sx_int(pool, axis.place);
		axis.scale = lth_sx_cast(pool, lth_read(lower, node->inputs[SCALES], &place), LTH_DTYPE_F64);
		return axis;
	}
	axis.constant = known_scale(graph, node, i, axis.out);
	axis.scale = axis.constant != 0 ? f64(pool, axis.constant)
					: lth_div(pool, real_extent(pool, axis.out), real_extent(pool, axis.in));
	return axis;
}

/* The roi's begin and end on an axis, as fractions of the input. */
static void roi_bounds(struct lth_lower *lower, const struct lth_node *node, const struct axis *axis, lth_sx *out_begin,
		       lth_sx *out_end)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx begin = lth_sx_int(pool, axis->place), end = lth_sx_int(pool, axis->place + axis->count);
	*out_begin = lth_sx_cast(pool, lth_read(lower, node->inputs[ROI], &begin), LTH_DTYPE_F64);
	*out_end = lth_sx_cast(pool, lth_read(lower, node->inputs[ROI], &end), LTH_DTYPE_F64);
}

/* Rounded to single precision. Weights of linear interpolation follow it in other runtimes, and detectors rank scores that
 * lie closer together than what the difference makes. */
static lth_sx single(struct lth_sx_pool *pool, lth_sx x)
{
	return lth_sx_cast(pool, lth_sx_cast(pool, x, LTH_DTYPE_F32), LTH_DTYPE_F64);
}

/* (i + 0.5) / scale */
static lth_sx pixel_centre(struct lth_sx_pool *pool, lth_sx i, lth_sx scale, bool is_single)
{
	lth_sx index = lth_add(pool, lth_sx_cast(pool, i, LTH_DTYPE_F64), f64(pool, 0.5));
	return is_single ? single(pool, lth_div(pool, index, single(pool, scale))) : lth_div(pool, index, scale);
}

static lth_sx crop_coordinate(struct lth_lower *lower, const struct lth_node *node, const struct axis *axis, lth_sx i)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx begin, end, one = f64(pool, 1), out = real_extent(pool, axis->out);
	lth_sx last = lth_sub(pool, real_extent(pool, axis->in), one);
	roi_bounds(lower, node, axis, &begin, &end);
	lth_sx step = lth_div(pool, lth_mul(pool, lth_sub(pool, end, begin), last),
			      lth_max(pool, lth_sub(pool, out, one), one));
	lth_sx x = lth_add(pool, lth_mul(pool, begin, last), lth_mul(pool, lth_sx_cast(pool, i, LTH_DTYPE_F64), step));
	lth_sx middle = lth_mul(pool, lth_mul(pool, lth_add(pool, begin, end), f64(pool, 0.5)), last);
	return lth_sx_select(pool, lth_lt(pool, one, out), x, middle);
}

/* The point of the input's axis that output index i samples. */
static lth_sx coordinate(struct lth_lower *lower, const struct lth_node *node, const struct axis *axis, lth_sx i)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	static const char *const mode = "coordinate_transformation_mode";
	lth_sx half = f64(pool, 0.5), one = f64(pool, 1), out = real_extent(pool, axis->out);
	lth_sx index = lth_sx_cast(pool, i, LTH_DTYPE_F64);
	if (lth_op_string_is(node, mode, "asymmetric"))
		return lth_div(pool, index, axis->scale);
	if (lth_op_string_is(node, mode, "align_corners")) {
		/* Scales mean a length that is not rounded to whole pixels. */
		lth_sx in = real_extent(pool, axis->in), length = axis->by_scale ? lth_mul(pool, in, axis->scale) : out;
		lth_sx last = lth_sub(pool, in, one), steps = lth_sub(pool, length, one);
		lth_sx x = lth_div(pool, lth_mul(pool, index, last), steps);
		return lth_sx_select(pool, lth_eq(pool, steps, f64(pool, 0)), f64(pool, 0), x);
	}
	if (lth_op_string_is(node, mode, "tf_crop_and_resize"))
		return crop_coordinate(lower, node, axis, i);
	bool is_single = lth_op_string_is(node, "mode", "linear") && !lth_op_int(node, "antialias");
	lth_sx centre = pixel_centre(pool, i, axis->scale, is_single);
	if (lth_op_string_is(node, mode, "tf_half_pixel_for_nn"))
		return centre;
	lth_sx x = lth_sub(pool, centre, half);
	if (is_single)
		x = single(pool, x);
	if (lth_op_string_is(node, mode, "pytorch_half_pixel"))
		return lth_sx_select(pool, lth_lt(pool, one, out), x, f64(pool, 0));
	if (lth_op_string_is(node, mode, "half_pixel_symmetric")) {
		lth_sx in = real_extent(pool, axis->in);
		lth_sx adjustment = lth_div(pool, out, lth_mul(pool, in, axis->scale));
		lth_sx offset = lth_mul(pool, lth_mul(pool, in, half), lth_sub(pool, one, adjustment));
		return lth_add(pool, offset, x);
	}
	return x;
}

/* ---- nearest ---- */

/* Enlarging by a whole number: the sampled point's nearest pixel is the index divided. */
static bool divides_evenly(const struct lth_node *node, double scale)
{
	static const char *const mode = "coordinate_transformation_mode";
	bool rounds = lth_op_string_is(node, "nearest_mode", "round_prefer_floor") ||
		      lth_op_string_is(node, "nearest_mode", "round_prefer_ceil");
	if (scale < 1 || scale != floor(scale) || scale > 1e6)
		return false;
	if (lth_op_string_is(node, mode, "half_pixel") || lth_op_string_is(node, mode, "pytorch_half_pixel"))
		return rounds;
	return lth_op_string_is(node, mode, "asymmetric") &&
	       (lth_op_string_is(node, "nearest_mode", "floor") ||
		(scale == 2 && lth_op_string_is(node, "nearest_mode", "round_prefer_floor")));
}

static lth_sx nearest_index(struct lth_lower *lower, const struct lth_node *node, const struct axis *axis, lth_sx i,
			    lth_sx x)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	if (divides_evenly(node, axis->constant))
		return lth_floordiv(pool, i, lth_sx_int(pool, (int64_t)axis->constant));
	lth_sx half = f64(pool, 0.5);
	if (lth_op_string_is(node, "nearest_mode", "round_prefer_floor"))
		x = lth_unary(pool, LTH_SCALAR_CEIL, lth_sub(pool, x, half));
	else if (lth_op_string_is(node, "nearest_mode", "round_prefer_ceil"))
		x = lth_unary(pool, LTH_SCALAR_FLOOR, lth_add(pool, x, half));
	else
		x = lth_unary(pool,
			      lth_op_string_is(node, "nearest_mode", "floor") ? LTH_SCALAR_FLOOR : LTH_SCALAR_CEIL, x);
	return lth_safe_index(pool, lth_sx_cast(pool, x, LTH_DTYPE_I64), lth_sx_dim(pool, axis->in));
}

/* ---- weights ---- */

/* The neighbours that the mode's kernel reaches, stretched when antialiasing a reduction. */
static bool find_taps(struct lth_lower *lower, const struct lth_node *node, const struct axis *axis, lth_sx x,
		      struct lth_taps *out)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	bool is_cubic = lth_op_string_is(node, "mode", "cubic"), antialias = lth_op_int(node, "antialias") != 0;
	bool excludes = lth_op_int(node, "exclude_outside") != 0;
	double shrink = antialias && axis->constant < 1 ? axis->constant : 1;
	if (antialias && axis->constant == 0)
		return false;
	double reach = (is_cubic ? 2 : 1) / shrink;
	int64_t first = (int64_t)floor(-reach) + 1, count = 2 - 2 * first;
	if (count > LTH_MAX_TAPS)
		return false;
	lth_sx base = lth_unary(pool, LTH_SCALAR_FLOOR, x), extent = lth_sx_dim(pool, axis->in);
	lth_sx base_index = lth_sx_cast(pool, base, LTH_DTYPE_I64), total = LTH_SX_NONE;
	out->count = (uint32_t)count;
	for (uint32_t k = 0; k < out->count; k++) {
		lth_sx offset = lth_sx_int(pool, first + k), index = lth_add(pool, base_index, offset);
		lth_sx distance = lth_sub(pool, lth_add(pool, base, f64(pool, (double)(first + k))), x);
		distance = shrink == 1 ? distance : lth_mul(pool, distance, f64(pool, shrink));
		lth_sx weight = is_cubic ? lth_cubic_weight(pool, distance, lth_op_float(node, "cubic_coeff_a"))
					 : lth_linear_weight(pool, distance);
		if (excludes)
			weight = lth_sx_select(pool, lth_in_range(pool, index, lth_sx_int(pool, 0), extent), weight,
					       f64(pool, 0));
		out->index[k] = lth_safe_index(pool, index, extent);
		out->weight[k] = weight;
		total = total == LTH_SX_NONE ? weight : lth_add(pool, total, weight);
	}
	for (uint32_t k = 0; (excludes || shrink != 1) && k < out->count; k++)
		out->weight[k] = lth_div(pool, out->weight[k], total);
	return true;
}

static lth_sx resize_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
			     const lth_sx *index)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	uint32_t rank = lth_rank(lower, node->inputs[INPUT]), axes[LTH_MAX_RANK], count = 0, neighbours = 1;
	bool nearest = lth_op_string_is(node, "mode", "nearest");
	bool crops = lth_op_string_is(node, "coordinate_transformation_mode", "tf_crop_and_resize");
	struct lth_taps taps[LTH_MAX_RANK];
	lth_sx at[LTH_MAX_RANK], inside = LTH_SX_NONE;
	memcpy(at, index, rank * sizeof(*at));
	for (uint32_t i = 0; i < rank; i++) {
		uint32_t ignored;
		if (lth_resize_place(node, i, rank, &ignored) == UINT32_MAX)
			continue;
		struct axis axis = describe_axis(lower, node, i);
		if (axis.in == axis.out && axis.constant == 1 && !crops)
			continue;
		lth_sx x = coordinate(lower, node, &axis, index[i]);
		if (crops) {
			lth_sx last = lth_sub(pool, real_extent(pool, axis.in), f64(pool, 1));
			lth_sx here = lth_and(pool, lth_le(pool, f64(pool, 0), x), lth_le(pool, x, last));
			inside = inside == LTH_SX_NONE ? here : lth_and(pool, inside, here);
		}
		if (nearest) {
			at[i] = nearest_index(lower, node, &axis, index[i], x);
			continue;
		}
		if (!find_taps(lower, node, &axis, x, &taps[count]))
			return LTH_SX_NONE;
		neighbours *= taps[count].count;
		axes[count++] = i;
		if (neighbours > MAX_NEIGHBOURS)
			return LTH_SX_NONE;
	}
	lth_sx value = lth_sample_sum(lower, node->inputs[INPUT], taps, axes, count, at);
	enum lth_dtype to = lth_value_dtype(lower, node->outputs[output]);
	if (!lth_is_float(to) && lth_is_float(lth_sx_dtype(pool, value)))
		value = lth_dtype_bits(to) <= 32 && to != LTH_DTYPE_BOOL ? lth_saturate(pool, value, to)
									 : lth_sx_cast(pool, value, to);
	if (inside != LTH_SX_NONE)
		value = lth_sx_select(pool, inside, value,
				      lth_same_const(pool, value, lth_op_float(node, "extrapolation_value")));
	return value;
}

const struct lth_op_impl lth_impl_resize = {.infer = infer_resize, .element = resize_element};
