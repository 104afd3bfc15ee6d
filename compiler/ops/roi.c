/* Regions of interest: RoiAlign, a reduction over sampling points, and MaxRoiPool, a reduction over the map's
 * pixels. */
#include "compiler/ops/family.h"

#include <math.h>

enum { MAP, ROIS, BATCH };

static enum lth_dtype work_dtype(struct lth_lower *lower, const struct lth_node *node)
{
	return lth_compute_dtype(lth_value_dtype(lower, node->inputs[MAP]));
}

/* Coordinate `k` of region `r`, scaled onto the map. */
static lth_sx corner(struct lth_lower *lower, const struct lth_node *node, lth_sx r, uint32_t k)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx at[2] = {r, lth_sx_int(pool, k)}, x = lth_read(lower, node->inputs[ROIS], at);
	return lth_mul(pool, x, lth_same_const(pool, x, lth_op_float(node, "spatial_scale")));
}

/* ---- RoiAlign ---- */

static enum lth_code infer_roi_align(struct lth_infer *infer)
{
	struct lth_dims *d = infer->dims;
	int64_t height = lth_op_int(infer->node, "output_height"), width = lth_op_int(infer->node, "output_width");
	lth_dim rois;
	enum lth_code code = lth_infer_need_rank(infer, MAP, 4, 4);
	if (!code)
		code = lth_infer_need_rank(infer, ROIS, 2, 2);
	if (!code)
		code = lth_infer_need_rank(infer, BATCH, 1, 1);
	if (!code)
		code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, ROIS, 1), lth_dim_const(d, 4),
					 "four coordinates a region");
	if (!code)
		code = lth_infer_unify(infer, lth_infer_dim(infer, ROIS, 0), lth_infer_dim(infer, BATCH, 0),
				       "a batch index for each region", &rois);
	if (!code && (height < 1 || width < 1 || lth_op_int(infer->node, "sampling_ratio") < 0 ||
		      lth_op_int(infer->node, "sampling_ratio") > INT16_MAX))
		code = lth_infer_reject(infer, "sizes of 1 or more, a ratio of 0 to 32767", "%lld x %lld by %lld",
					(long long)height, (long long)width,
					(long long)lth_op_int(infer->node, "sampling_ratio"));
	if (code)
		return code;
	lth_dim dims[4] = {rois, lth_infer_dim(infer, MAP, 1), lth_dim_const(d, height), lth_dim_const(d, width)};
	return lth_infer_output(infer, 0, LTH_NUM_DTYPES, 4, dims);
}

/* Sampling points along an axis (0 height, 1 width) of a cell: given, or as many as pixels, which only the run knows.
 * Then the loop is long enough for regions as large as the map; larger ones are an error of the run. */
static lth_dim most_samples(struct lth_lower *lower, const struct lth_node *node, uint32_t axis)
{
	struct lth_dims *dims = lth_lower_graph(lower)->dims;
	int64_t ratio = lth_op_int(node, "sampling_ratio");
	if (ratio > 0)
		return lth_dim_const(dims, ratio);
	lth_dim cells = lth_extent_dim(lower, node->outputs[0], (int32_t)axis + 2);
	return lth_dim_add(dims,
			   lth_dim_ceildiv(dims, lth_extent_dim(lower, node->inputs[MAP], (int32_t)axis + 2), cells),
			   lth_dim_const(dims, 1));
}

/* A region along one axis: where it begins, a cell's size, and the sampling points of a cell. */
struct span {
	lth_sx begin, cell, samples; /* samples: i64 */
};

static struct span describe_span(struct lth_lower *lower, const struct lth_node *node, lth_sx r, uint32_t axis)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	bool half = lth_op_string_is(node, "coordinate_transformation_mode", "half_pixel");
	lth_sx begin = corner(lower, node, r, 1 - axis), end = corner(lower, node, r, 3 - axis);
	lth_sx size = lth_sub(pool, end, begin);
	if (half)
		begin = lth_sub(pool, begin, lth_same_const(pool, begin, 0.5));
	else
		size = lth_max(pool, size, lth_same_const(pool, size, 1));
	lth_sx cells =
		lth_sx_cast(pool, lth_extent(lower, node->outputs[0], (int32_t)axis + 2), lth_sx_dtype(pool, size));
	struct span span = {begin, lth_div(pool, size, cells), lth_sx_dim(pool, most_samples(lower, node, axis))};
	if (lth_op_int(node, "sampling_ratio") == 0) {
		lth_sx wanted = lth_sx_cast(pool, lth_unary(pool, LTH_SCALAR_CEIL, span.cell), LTH_DTYPE_I64);
		span.samples = lth_sx_check(pool, lth_max(pool, wanted, lth_sx_int(pool, 0)),
					    lth_add(pool, span.samples, lth_sx_int(pool, 1)));
	}
	return span;
}

static enum lth_code roi_align_reduction(struct lth_lower *lower, const struct lth_node *node,
					 struct lth_reduction *out, struct lth_diag *diag)
{
	(void)diag;
	out->num_axes = 2;
	out->extents[0] = most_samples(lower, node, 0);
	out->extents[1] = most_samples(lower, node, 1);
	out->row_axes = 15;
	out->num_stages = 1;
	out->stages[0].combiner = lth_op_string_is(node, "mode", "max") ? LTH_COMBINE_MAX : LTH_COMBINE_SUM;
	out->stages[0].dtype = work_dtype(lower, node);
	return LTH_OK;
}

/* The two pixels around a point and their weights; outside [-1, extent] there is nothing. */
struct pair {
	lth_sx low, high, low_weight, high_weight, inside;
};

static struct pair neighbours(struct lth_sx_pool *pool, lth_sx x, lth_sx extent)
{
	struct pair pair;
	lth_sx zero = lth_same_const(pool, x, 0), one = lth_same_const(pool, x, 1), minus = lth_same_const(pool, x, -1);
	lth_sx size = lth_sx_cast(pool, extent, lth_sx_dtype(pool, x)), last = lth_sub(pool, size, one);
	pair.inside = lth_and(pool, lth_le(pool, minus, x), lth_le(pool, x, size));
	x = lth_clamp(pool, x, zero, last);
	lth_sx base = lth_unary(pool, LTH_SCALAR_FLOOR, x);
	pair.low = lth_safe_index(pool, lth_sx_cast(pool, base, LTH_DTYPE_I64), extent);
	pair.high = lth_safe_index(pool, lth_add(pool, pair.low, lth_sx_int(pool, 1)), extent);
	pair.high_weight = lth_sub(pool, x, base);
	pair.low_weight = lth_sub(pool, one, pair.high_weight);
	return pair;
}

/* The sampled value: the bilinear sum, or with mode max the greatest of the weighted pixels. */
static lth_sx sample(struct lth_lower *lower, const struct lth_node *node, lth_sx batch, lth_sx channel,
		     const struct pair *y, const struct pair *x)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	bool max = lth_op_string_is(node, "mode", "max");
	lth_sx result = LTH_SX_NONE;
	for (int i = 0; i < 4; i++) {
		lth_sx at[4] = {batch, channel, i & 2 ? y->high : y->low, i & 1 ? x->high : x->low};
		lth_sx weight =
			lth_mul(pool, i & 2 ? y->high_weight : y->low_weight, i & 1 ? x->high_weight : x->low_weight);
		lth_sx part = lth_mul(pool, lth_read(lower, node->inputs[MAP], at), weight);
		result = result == LTH_SX_NONE ? part : max ? lth_max(pool, result, part) : lth_add(pool, result, part);
	}
	return lth_sx_select(pool, lth_and(pool, y->inside, x->inside), result, lth_same_const(pool, result, 0));
}

static lth_sx roi_align_stage(struct lth_lower *lower, const struct lth_node *node, uint32_t stage, const lth_sx *index)
{
	(void)stage;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	struct pair pairs[2];
	lth_sx counted = lth_sx_const_i(pool, LTH_DTYPE_BOOL, 1);
	for (uint32_t axis = 0; axis < 2; axis++) {
		struct span span = describe_span(lower, node, index[0], axis);
		enum lth_dtype type = lth_sx_dtype(pool, span.begin);
		lth_sx cell = lth_sx_cast(pool, index[2 + axis], type), i = lth_sx_cast(pool, index[4 + axis], type);
		lth_sx inner = lth_div(pool, lth_add(pool, i, lth_sx_const(pool, type, 0.5)),
				       lth_sx_cast(pool, span.samples, type));
		lth_sx point = lth_add(pool, span.begin, lth_mul(pool, lth_add(pool, cell, inner), span.cell));
		pairs[axis] = neighbours(pool, point, lth_extent(lower, node->inputs[MAP], (int32_t)axis + 2));
		counted = lth_and(pool, counted, lth_lt(pool, index[4 + axis], span.samples));
	}
	lth_sx batch = lth_sx_check(pool, lth_read(lower, node->inputs[BATCH], &index[0]),
				    lth_extent(lower, node->inputs[MAP], 0));
	lth_sx value = sample(lower, node, batch, index[1], &pairs[0], &pairs[1]);
	if (lth_op_int(node, "sampling_ratio") > 0)
		return value;
	double absent = lth_op_string_is(node, "mode", "max") ? -INFINITY : 0;
	return lth_sx_select(pool, counted, value, lth_same_const(pool, value, absent));
}

static lth_sx roi_align_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
				const lth_sx *index)
{
	(void)output;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	enum lth_dtype type = work_dtype(lower, node);
	lth_sx x = lth_result(lower, node, 0, type), count = lth_sx_int(pool, 1);
	if (lth_op_string_is(node, "mode", "max"))
		return x;
	for (uint32_t axis = 0; axis < 2; axis++)
		count = lth_mul(pool, count, describe_span(lower, node, index[0], axis).samples);
	return lth_div(pool, x, lth_sx_cast(pool, lth_max(pool, count, lth_sx_int(pool, 1)), type));
}

const struct lth_op_impl lth_impl_roi_align = {.infer = infer_roi_align,
					       .element = roi_align_element,
					       .reduction = roi_align_reduction,
					       .stage = roi_align_stage};

/* ---- MaxRoiPool ---- */

static enum lth_code infer_max_roi_pool(struct lth_infer *infer)
{
	const int64_t *shape;
	uint32_t count;
	struct lth_dims *d = infer->dims;
	enum lth_code code = lth_infer_need_rank(infer, MAP, 4, 4);
	if (!code)
		code = lth_infer_need_rank(infer, ROIS, 2, 2);
	if (!code)
		code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, ROIS, 1), lth_dim_const(d, 5),
					 "a batch index and four coordinates a region");
	if (code)
		return code;
	if (!lth_node_ints(infer->node, "pooled_shape", &shape, &count) || count != 2 || shape[0] < 1 || shape[1] < 1)
		return lth_infer_reject(infer, "two sizes of 1 or more", "pooled_shape");
	lth_dim dims[4] = {lth_infer_dim(infer, ROIS, 0), lth_infer_dim(infer, MAP, 1), lth_dim_const(d, shape[0]),
			   lth_dim_const(d, shape[1])};
	return lth_infer_output(infer, 0, LTH_NUM_DTYPES, 4, dims);
}

static enum lth_code max_roi_pool_reduction(struct lth_lower *lower, const struct lth_node *node,
					    struct lth_reduction *out, struct lth_diag *diag)
{
	(void)diag;
	out->num_axes = 2;
	out->extents[0] = lth_extent_dim(lower, node->inputs[MAP], 2);
	out->extents[1] = lth_extent_dim(lower, node->inputs[MAP], 3);
	out->row_axes = 15;
	out->num_stages = 1;
	out->stages[0].combiner = LTH_COMBINE_MAX;
	out->stages[0].dtype = work_dtype(lower, node);
	return LTH_OK;
}

/* Rounded to pixels, halves up. */
static lth_sx pixel(struct lth_sx_pool *pool, lth_sx x)
{
	return lth_unary(pool, LTH_SCALAR_FLOOR, lth_add(pool, x, lth_same_const(pool, x, 0.5)));
}

/* Whether pixel i of an axis lies in a cell of the region. */
static lth_sx in_cell(struct lth_lower *lower, const struct lth_node *node, lth_sx r, uint32_t axis, lth_sx cell,
		      lth_sx i)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx begin = pixel(pool, corner(lower, node, r, 2 - axis)),
	       end = pixel(pool, corner(lower, node, r, 4 - axis));
	enum lth_dtype type = lth_sx_dtype(pool, begin);
	lth_sx one = lth_sx_const(pool, type, 1);
	lth_sx size = lth_max(pool, lth_add(pool, lth_sub(pool, end, begin), one), one);
	lth_sx step =
		lth_div(pool, size, lth_sx_cast(pool, lth_extent(lower, node->outputs[0], (int32_t)axis + 2), type));
	lth_sx number = lth_sx_cast(pool, cell, type), place = lth_sub(pool, lth_sx_cast(pool, i, type), begin);
	lth_sx first = lth_unary(pool, LTH_SCALAR_FLOOR, lth_mul(pool, number, step));
	lth_sx last = lth_unary(pool, LTH_SCALAR_CEIL, lth_mul(pool, lth_add(pool, number, one), step));
	return lth_in_range(pool, place, first, last);
}

static lth_sx max_roi_pool_stage(struct lth_lower *lower, const struct lth_node *node, uint32_t stage,
				 const lth_sx *index)
{
	(void)stage;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx which[2] = {index[0], lth_sx_int(pool, 0)};
	lth_sx batch = lth_sx_cast(pool, lth_read(lower, node->inputs[ROIS], which), LTH_DTYPE_I64);
	batch = lth_sx_check(pool, batch, lth_extent(lower, node->inputs[MAP], 0));
	lth_sx inside_y = in_cell(lower, node, index[0], 0, index[2], index[4]);
	lth_sx inside = lth_and(pool, inside_y, in_cell(lower, node, index[0], 1, index[3], index[5]));
	lth_sx at[4] = {batch, index[1], index[4], index[5]}, x = lth_read(lower, node->inputs[MAP], at);
	return lth_sx_select(pool, inside, x, lth_same_const(pool, x, -INFINITY));
}

/* A cell that lies outside the map is 0. */
static lth_sx max_roi_pool_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
				   const lth_sx *index)
{
	(void)output, (void)index;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx x = lth_result(lower, node, 0, work_dtype(lower, node));
	return lth_sx_select(pool, lth_eq(pool, x, lth_same_const(pool, x, -INFINITY)), lth_same_const(pool, x, 0), x);
}

const struct lth_op_impl lth_impl_max_roi_pool = {.infer = infer_max_roi_pool,
						  .element = max_roi_pool_element,
						  .reduction = max_roi_pool_reduction,
						  .stage = max_roi_pool_stage};
