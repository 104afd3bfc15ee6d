/* Cutting and growing axes: Slice, Pad, CenterCropPad. Inference and lowering share one description of what happens to
 * each axis, computed from the contents of the inputs. */
#include "compiler/ops/axes.h"
#include "compiler/ops/family.h"

#include <string.h>

/* ---- Slice ---- */

/* Output index i of an axis is input index start + i * step. */
struct slice {
	lth_dim start, extent, step;
};

/* Beyond this, a constant bound means "to the end", whatever the size. */
static const int64_t far = INT64_C(1) << 40;

/* What may be beyond it, limited: no sum overflows, and one is as far as another. */
static lth_dim within_far(struct lth_dims *dims, lth_dim dim)
{
	int64_t min, max;
	lth_dim_range(dims, dim, &min, &max);
	if (min >= -far && max <= far)
		return dim;
	return lth_dim_max(dims, lth_dim_const(dims, -far), lth_dim_min(dims, lth_dim_const(dims, far), dim));
}

/* A start or end as ONNX means it: negative ones count from the end, then it is limited to [low, high]. */
static lth_dim slice_bound(struct lth_dims *dims, lth_dim bound, lth_dim size, lth_dim low, lth_dim high)
{
	int64_t value, min, max;
	if (lth_dim_is_const(dims, bound, &value)) {
		if (value > far)
			return high;
		if (value < -far)
			return low;
	}
	lth_dim_range(dims, bound, &min, &max);
	if (max < 0) {
		bound = lth_dim_add(dims, bound, size);
	} else if (min < 0) { /* the sign is the run's: size * (bound < 0), without a number that may overflow */
		lth_dim sign = lth_dim_max(dims, lth_dim_const(dims, -1), lth_dim_min(dims, lth_dim_const(dims, 0), bound));
		bound = lth_dim_sub(dims, bound, lth_dim_mul(dims, size, sign));
	}
	return lth_dim_max(dims, low, lth_dim_min(dims, high, bound));
}

/* The slice for a step of known sign; `stride` is its magnitude. */
static struct slice slice_towards(struct lth_dims *dims, lth_dim size, lth_dim start, lth_dim end, lth_dim step,
				  lth_dim stride, bool forward)
{
	lth_dim zero = lth_dim_const(dims, 0), one = lth_dim_const(dims, 1);
	lth_dim high = forward ? size : lth_dim_sub(dims, size, one);
	lth_dim first = forward ? zero : lth_dim_min(dims, zero, high); /* unlike in numpy, a slice begins at an element */
	start = slice_bound(dims, start, size, first, high);
	end = slice_bound(dims, end, size, forward ? zero : lth_dim_const(dims, -1), high);
	lth_dim span = forward ? lth_dim_sub(dims, end, start) : lth_dim_sub(dims, start, end);
	return (struct slice){start, lth_dim_max(dims, zero, lth_dim_ceildiv(dims, span, stride)), step};
}

static struct slice slice_axis(struct lth_dims *dims, lth_dim size, lth_dim start, lth_dim end, lth_dim step)
{
	lth_dim zero = lth_dim_const(dims, 0), one = lth_dim_const(dims, 1);
	lth_dim back = lth_dim_sub(dims, zero, step);
	int64_t min, max;
	lth_dim_range(dims, step, &min, &max);
	if (min > 0)
		return slice_towards(dims, size, start, end, step, step, true);
	if (max < 0)
		return slice_towards(dims, size, start, end, step, back, false);
	lth_dim stride = lth_dim_max(dims, one, lth_dim_max(dims, step, back));
	lth_dim forward = lth_dim_min(dims, one, lth_dim_max(dims, zero, step));
	struct slice up = slice_towards(dims, size, start, end, step, stride, true);
	struct slice down = slice_towards(dims, size, start, end, step, stride, false);
	return (struct slice){lth_dim_choose(dims, forward, up.start, down.start),
			      lth_dim_choose(dims, forward, up.extent, down.extent), step};
}

static const struct lth_contents *contents_of(struct lth_graph *graph, const struct lth_node *node, uint32_t input)
{
	lth_value_id value = lth_node_input(node, input);
	return value == LTH_NONE ? NULL : lth_value_contents(graph, value);
}

/* What a list says of axis i: entry k is for axis axes[k], or for axis k; `otherwise` where no entry is for it. */
static lth_dim entry_for(struct lth_graph *graph, const lth_dim *list, uint32_t count, const struct lth_contents *axes,
			 uint32_t i, uint32_t rank, lth_dim otherwise)
{
	struct lth_dims *dims = graph->dims;
	lth_dim result = otherwise;
	if (!axes)
		return i < count ? list[i] : otherwise;
	for (uint32_t k = 0; k < count; k++) { /* at most one of them is */
		lth_dim here = lth_dim_is_axis(dims, axes->dims[k], i, rank);
		if (lth_dim_is_const(dims, here, NULL)) {
			result = lth_dim_choose(dims, here, list[k], result);
			continue;
		}
		lth_dim entry = within_far(dims, list[k]);
		result = lth_dim_add(dims, result, lth_dim_mul(dims, here, lth_dim_sub(dims, entry, otherwise)));
	}
	return result;
}

/* What happens to every axis; the inputs' contents are there and checked. */
static void slice_axes(struct lth_graph *graph, const struct lth_node *node, struct slice *out)
{
	const struct lth_type *type = &graph->values[node->inputs[0]].type;
	const struct lth_contents *starts = contents_of(graph, node, 1), *ends = contents_of(graph, node, 2);
	const struct lth_contents *axes = contents_of(graph, node, 3), *steps = contents_of(graph, node, 4);
	lth_dim zero = lth_dim_const(graph->dims, 0), one = lth_dim_const(graph->dims, 1);
	lth_dim limited[LTH_MAX_CONTENTS]; /* steps, whose magnitude is taken */
	uint32_t rank = type->rank, count = starts->count;
	for (uint32_t k = 0; steps && k < count; k++)
		limited[k] = within_far(graph->dims, steps->dims[k]);
	for (uint32_t i = 0; i < rank; i++) {
		lth_dim start = entry_for(graph, starts->dims, count, axes, i, rank, zero);
		lth_dim end = entry_for(graph, ends->dims, count, axes, i, rank, type->dims[i]);
		lth_dim step = steps ? entry_for(graph, limited, count, axes, i, rank, one) : one;
		bool whole = start == zero && end == type->dims[i] && step == one;
		out[i] = whole ? (struct slice){zero, end, one}
			       : slice_axis(graph->dims, type->dims[i], start, end, step);
	}
}

static enum lth_code check_slice(struct lth_infer *infer, uint32_t rank)
{
	const lth_dim *starts, *ends, *steps, *ignored;
	uint32_t count, other;
	struct lth_axes axes;
	enum lth_code code = lth_infer_need_ints(infer, 1, INT64_MIN, &starts, &count);
	if (!code)
		code = lth_infer_need_ints(infer, 2, INT64_MIN, &ends, &other);
	if (!code && other != count)
		code = lth_infer_reject(infer, "as many ends as starts", "%u starts and %u ends", count, other);
	if (!code && lth_infer_type(infer, 3)) {
		code = lth_infer_axes(infer, 3, rank, &axes);
		if (!code)
			code = lth_infer_need_ints(infer, 3, INT64_MIN, &ignored, &other);
		if (!code && other != count)
			code = lth_infer_reject(infer, "as many axes as starts", "%u starts and %u axes", count, other);
	} else if (!code && count > rank) {
		code = lth_infer_reject(infer, "at most one start an axis", "%u starts for rank %u", count, rank);
	}
	if (code || !lth_infer_type(infer, 4))
		return code;
	code = lth_infer_need_ints(infer, 4, INT64_MIN, &steps, &other);
	if (!code && other != count)
		return lth_infer_reject(infer, "as many steps as starts", "%u starts and %u steps", count, other);
	for (uint32_t k = 0; !code && k < count; k++)
		code = lth_infer_require_nonzero(infer, steps[k], "a step other than 0");
	return code;
}

static void slice_contents(struct lth_infer *infer, const struct slice *slices)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	int64_t shape[LTH_MAX_RANK], strides[LTH_MAX_RANK], start, step, offset = 0, stride = 1;
	if (!lth_type_static(infer->graph, type, shape))
		return;
	for (uint32_t axis = type->rank; axis-- > 0;) {
		if (stride > LTH_MAX_CONTENTS || shape[axis] > LTH_MAX_CONTENTS || /* too many to be followed */
		    !lth_dim_is_const(infer->dims, slices[axis].start, &start) ||
		    !lth_dim_is_const(infer->dims, slices[axis].step, &step))
			return;
		offset += start * stride;
		strides[axis] = shape[axis] > 1 ? step * stride : 0;
		stride *= shape[axis];
	}
	lth_infer_walk_contents(infer, offset, strides);
}

static enum lth_code infer_slice(struct lth_infer *infer)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	struct slice slices[LTH_MAX_RANK];
	lth_dim dims[LTH_MAX_RANK];
	enum lth_code code = check_slice(infer, type->rank);
	if (code)
		return code;
	slice_axes(infer->graph, infer->node, slices);
	for (uint32_t i = 0; i < type->rank; i++)
		dims[i] = slices[i].extent;
	code = lth_infer_output(infer, 0, LTH_NUM_DTYPES, type->rank, dims);
	if (!code)
		slice_contents(infer, slices);
	return code;
}

static lth_sx slice_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output, const lth_sx *index)
{
	(void)output;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	struct slice slices[LTH_MAX_RANK];
	lth_sx at[LTH_MAX_RANK];
	slice_axes(lth_lower_graph(lower), node, slices);
	for (uint32_t i = 0; i < lth_rank(lower, node->inputs[0]); i++)
		at[i] = lth_add(pool, lth_sx_dim(pool, slices[i].start),
				lth_mul(pool, index[i], lth_sx_dim(pool, slices[i].step)));
	return lth_read(lower, node->inputs[0], at);
}

const struct lth_op_impl lth_impl_slice = {.infer = infer_slice, .element = slice_element};

/* ---- Pad ---- */

struct pad {
	lth_dim before, after;
};

/* Padding of every axis; contents are there and checked. */
static void pad_axes(struct lth_graph *graph, const struct lth_node *node, struct pad *out)
{
	uint32_t rank = graph->values[node->inputs[0]].type.rank;
	const struct lth_contents *pads = contents_of(graph, node, 1), *axes = contents_of(graph, node, 3);
	uint32_t count = pads->count / 2;
	lth_dim zero = lth_dim_const(graph->dims, 0);
	for (uint32_t i = 0; i < rank; i++) {
		out[i].before = entry_for(graph, pads->dims, count, axes, i, rank, zero);
		out[i].after = entry_for(graph, pads->dims + count, count, axes, i, rank, zero);
	}
}

static enum lth_code infer_pad(struct lth_infer *infer)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	const lth_dim *pads;
	uint32_t count, num_axes = type->rank;
	lth_dim dims[LTH_MAX_RANK];
	struct lth_axes axes;
	struct pad sides[LTH_MAX_RANK];
	enum lth_code code = lth_infer_need_rank(infer, 1, 1, 1);
	if (!code)
		code = lth_infer_need_ints(infer, 1, INT64_MIN, &pads, &count);
	if (!code)
		code = lth_infer_need_one(infer, 2);
	if (!code)
		code = lth_infer_axes(infer, 3, type->rank, &axes);
	if (!code && lth_infer_type(infer, 3))
		lth_infer_ints(infer, 3, &num_axes);
	if (code)
		return code;
	if (count != 2 * num_axes)
		return lth_infer_reject(infer, "a begin and an end for each axis", "%u paddings for %u axes", count,
					num_axes);
	pad_axes(infer->graph, infer->node, sides);
	for (uint32_t i = 0; i < type->rank; i++) {
		dims[i] = lth_dim_add(infer->dims, type->dims[i],
				      lth_dim_add(infer->dims, sides[i].before, sides[i].after));
		int64_t min, max;
		if (dims[i] != LTH_DIM_NONE)
			lth_dim_range(infer->dims, dims[i], &min, &max);
		if (dims[i] != LTH_DIM_NONE && min < 0)
			code = lth_infer_require(infer, LTH_REL_LE, lth_dim_const(infer->dims, 0), dims[i],
						 "a padded size of 0 or more");
		if (!code && !lth_op_string_is(infer->node, "mode", "constant"))
			code = lth_infer_source(infer, type->dims[i], dims[i]);
		if (code)
			return code;
	}
	return lth_infer_output(infer, 0, LTH_NUM_DTYPES, type->rank, dims);
}

/* Where a padded index reads. Mirrors repeat when the padding is wider than the axis; `narrow` says that it is not. */
static lth_sx pad_source(struct lth_sx_pool *pool, const struct lth_node *node, lth_sx x, lth_sx extent, bool narrow)
{
	lth_sx one = lth_sx_int(pool, 1);
	if (lth_op_string_is(node, "mode", "wrap"))
		return lth_modulo(pool, x, extent);
	if (!lth_op_string_is(node, "mode", "reflect"))
		return lth_safe_index(pool, x, extent);
	lth_sx twice = lth_mul(pool, lth_sub(pool, extent, one), lth_sx_int(pool, 2));
	lth_sx phase = narrow ? lth_max(pool, x, lth_sub(pool, lth_sx_int(pool, 0), x))
			      : lth_modulo(pool, x, lth_max(pool, twice, one));
	return lth_min(pool, phase, lth_sub(pool, twice, phase));
}

static lth_sx pad_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output, const lth_sx *index)
{
	(void)output;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	uint32_t rank = lth_rank(lower, node->inputs[0]);
	bool constant = lth_op_string_is(node, "mode", "constant");
	struct pad sides[LTH_MAX_RANK];
	lth_sx at[LTH_MAX_RANK], inside = LTH_SX_NONE;
	pad_axes(lth_lower_graph(lower), node, sides);
	for (uint32_t i = 0; i < rank; i++) {
		lth_dim zero = lth_dim_const(lth_lower_graph(lower)->dims, 0);
		at[i] = index[i];
		if (sides[i].before == zero && sides[i].after == zero)
			continue;
		lth_sx extent = lth_extent(lower, node->inputs[0], (int32_t)i);
		lth_sx x = lth_sub(pool, index[i], lth_sx_dim(pool, sides[i].before));
		struct lth_dims *dims = lth_lower_graph(lower)->dims;
		lth_dim last = lth_dim_sub(dims, lth_extent_dim(lower, node->inputs[0], (int32_t)i),
					   lth_dim_const(dims, 1));
		bool narrow = lth_dim_at_most(dims, sides[i].before, last) &&
			      lth_dim_at_most(dims, sides[i].after, last);
		at[i] = pad_source(pool, node, x, extent, narrow);
		lth_sx here = lth_in_range(pool, x, lth_sx_int(pool, 0), extent);
		inside = inside == LTH_SX_NONE ? here : lth_and(pool, inside, here);
	}
	lth_sx value = lth_read(lower, node->inputs[0], at);
	if (!constant || inside == LTH_SX_NONE)
		return value;
	lth_sx fill = lth_node_input(node, 2) == LTH_NONE ? lth_same_const(pool, value, 0)
							  : lth_read_scalar(lower, node->inputs[2]);
	return lth_sx_select(pool, inside, value, fill);
}

const struct lth_op_impl lth_impl_pad = {.infer = infer_pad, .element = pad_element};

/* ---- CenterCropPad ---- */

/* The axis that entry k of the wanted shape is for. */
static int64_t crop_axis(const struct lth_node *node, uint32_t k, uint32_t rank)
{
	const int64_t *axes;
	uint32_t count;
	int64_t axis = lth_node_ints(node, "axes", &axes, &count) ? axes[k] : k;
	return axis < 0 ? axis + rank : axis;
}

static enum lth_code infer_center_crop_pad(struct lth_infer *infer)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	const lth_dim *wanted;
	const int64_t *axes;
	uint32_t count, num_axes = type->rank;
	lth_dim dims[LTH_MAX_RANK];
	enum lth_code code = lth_infer_need_ints(infer, 1, 0, &wanted, &count);
	if (!code)
		code = lth_infer_axes_attr(infer, "axes", type->rank);
	lth_node_ints(infer->node, "axes", &axes, &num_axes);
	if (!code && count != num_axes)
		code = lth_infer_reject(infer, "one size an axis", "%u sizes for %u axes", count, num_axes);
	if (code)
		return code;
	memcpy(dims, type->dims, type->rank * sizeof(*dims));
	for (uint32_t k = 0; k < count; k++)
		dims[crop_axis(infer->node, k, type->rank)] = wanted[k];
	return lth_infer_output(infer, 0, LTH_NUM_DTYPES, type->rank, dims);
}

static lth_sx center_crop_pad_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
				      const lth_sx *index)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	struct lth_dims *dims = lth_lower_graph(lower)->dims;
	uint32_t rank = lth_rank(lower, node->inputs[0]);
	const lth_dim *in = lth_shape_of(lower, node->inputs[0]), *out = lth_shape_of(lower, node->outputs[output]);
	lth_sx at[LTH_MAX_RANK], inside = lth_sx_const_i(pool, LTH_DTYPE_BOOL, 1);
	for (uint32_t i = 0; i < rank; i++) {
		at[i] = index[i];
		if (in[i] == out[i])
			continue;
		/* Half the difference, towards zero, whether cut or added. */
		lth_dim before = lth_dim_truncdiv(dims, lth_dim_sub(dims, out[i], in[i]), lth_dim_const(dims, 2));
		lth_sx extent = lth_sx_dim(pool, in[i]), x = lth_sub(pool, index[i], lth_sx_dim(pool, before));
		inside = lth_and(pool, inside, lth_in_range(pool, x, lth_sx_int(pool, 0), extent));
		at[i] = lth_safe_index(pool, x, extent);
	}
	lth_sx value = lth_read(lower, node->inputs[0], at);
	return lth_sx_select(pool, inside, value, lth_same_const(pool, value, 0));
}

const struct lth_op_impl lth_impl_center_crop_pad = {.infer = infer_center_crop_pad,
						     .element = center_crop_pad_element};
