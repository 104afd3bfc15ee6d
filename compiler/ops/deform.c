/* Windows that are no plain ones: DeformConv, whose taps are displaced by data, and Col2Im, which adds the columns of
 * blocks back into an image. */
#include "compiler/ops/window.h"

#include <string.h>

/* ---- DeformConv ---- */

enum { X, W, OFFSET, BIAS, MASK };

static void place(struct lth_graph *graph, const struct lth_node *node, struct lth_window *out)
{
	const struct lth_type *x = &graph->values[node->inputs[X]].type, *w = &graph->values[node->inputs[W]].type;
	lth_window_place(graph, node, x->dims, w->dims + 2, 2, out);
}

static enum lth_code infer_deform_conv(struct lth_infer *infer)
{
	struct lth_dims *d = infer->dims;
	int64_t groups = lth_op_int(infer->node, "group"), offset_groups = lth_op_int(infer->node, "offset_group");
	struct lth_window window;
	enum lth_code code =
		lth_infer_type(infer, X)->rank == 4
			? LTH_OK
			: lth_infer_unsupported(infer, NULL, "deformable convolution of rank %u is not implemented",
						lth_infer_rank(infer, X));
	if (!code)
		code = lth_infer_need_rank(infer, W, 4, 4);
	if (!code)
		code = lth_infer_need_rank(infer, OFFSET, 4, 4);
	if (!code)
		code = lth_window_check(infer, 2);
	if (!code && (groups < 1 || offset_groups < 1))
		code = lth_infer_reject(infer, "1 or more", "group %lld, offset_group %lld", (long long)groups,
					(long long)offset_groups);
	if (code)
		return code;
	place(infer->graph, infer->node, &window);
	lth_dim taps =
		lth_dim_mul(d, lth_dim_const(d, offset_groups), lth_dim_mul(d, window.kernel[0], window.kernel[1]));
	lth_dim dims[4] = {lth_infer_dim(infer, X, 0), lth_infer_dim(infer, W, 0), window.out[0], window.out[1]};
	lth_dim channels = lth_dim_mul(d, lth_infer_dim(infer, W, 1), lth_dim_const(d, groups));
	code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, X, 1), channels,
				 "as many channels as the weights take, times group");
	if (!code)
		code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, OFFSET, 1),
					 lth_dim_mul(d, taps, lth_dim_const(d, 2)), "two offsets a tap");
	for (uint32_t i = 0; !code && i < 2; i++)
		code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, OFFSET, i + 2), window.out[i],
					 "offsets of the output's size");
	if (!code && lth_infer_type(infer, MASK)) {
		code = lth_infer_need_rank(infer, MASK, 4, 4);
		if (!code)
			code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, MASK, 1), taps,
						 "one mask a tap");
	}
	if (!code && lth_infer_type(infer, BIAS))
		code = lth_infer_need_rank(infer, BIAS, 1, 1);
	if (!code)
		code = lth_window_fits(infer, &window);
	return code ? code : lth_infer_output(infer, 0, LTH_NUM_DTYPES, 4, dims);
}

static enum lth_code deform_conv_reduction(struct lth_lower *lower, const struct lth_node *node,
					   struct lth_reduction *out, struct lth_diag *diag)
{
	(void)diag;
	out->num_axes = 3;
	for (uint32_t i = 0; i < 3; i++)
		out->extents[i] = lth_extent_dim(lower, node->inputs[W], (int32_t)i + 1);
	out->row_axes = 15;
	out->num_stages = 1;
	out->stages[0].combiner = LTH_COMBINE_SUM;
	out->stages[0].dtype = lth_compute_dtype(lth_value_dtype(lower, node->inputs[X]));
	return LTH_OK;
}

/* The input at a point between pixels, 0 outside. */
static lth_sx bilinear(struct lth_lower *lower, lth_value_id value, lth_sx *at, lth_sx y, lth_sx x)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx sum = LTH_SX_NONE, zero = lth_sx_int(pool, 0), points[2] = {y, x};
	for (int corner = 0; corner < 4; corner++) {
		lth_sx weight = lth_same_const(pool, y, 1), inside = LTH_SX_NONE;
		for (uint32_t axis = 0; axis < 2; axis++) {
			bool high = corner >> (1 - axis) & 1;
			lth_sx extent = lth_extent(lower, value, (int32_t)axis + 2), p = points[axis];
			lth_sx base = lth_unary(pool, LTH_SCALAR_FLOOR, p), part = lth_sub(pool, p, base);
			lth_sx index = lth_add(pool, lth_sx_cast(pool, base, LTH_DTYPE_I64), lth_sx_int(pool, high));
			lth_sx here = lth_in_range(pool, index, zero, extent);
			weight = lth_mul(pool, weight, high ? part : lth_sub(pool, lth_same_const(pool, p, 1), part));
			inside = inside == LTH_SX_NONE ? here : lth_and(pool, inside, here);
			at[axis + 2] = lth_safe_index(pool, index, extent);
		}
		lth_sx term = lth_mul(pool, lth_read(lower, value, at), weight);
		term = lth_sx_select(pool, inside, term, lth_same_const(pool, term, 0));
		sum = sum == LTH_SX_NONE ? term : lth_add(pool, sum, term);
	}
	return sum;
}

static lth_sx deform_conv_stage(struct lth_lower *lower, const struct lth_node *node, uint32_t stage,
				const lth_sx *index)
{
	(void)stage;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	struct lth_dims *d = lth_lower_graph(lower)->dims;
	struct lth_window window;
	place(lth_lower_graph(lower), node, &window);
	lth_dim in = lth_extent_dim(lower, node->inputs[W], 1), out = lth_extent_dim(lower, node->inputs[W], 0);
	lth_dim per_group = lth_dim_floordiv(d, out, lth_dim_const(d, lth_op_int(node, "group")));
	lth_dim per_offset = lth_dim_floordiv(d, lth_extent_dim(lower, node->inputs[X], 1),
					      lth_dim_const(d, lth_op_int(node, "offset_group")));
	lth_sx group = lth_floordiv(pool, index[1], lth_sx_dim(pool, per_group));
	lth_sx channel = lth_add(pool, lth_mul(pool, group, lth_sx_dim(pool, in)), index[4]);
	lth_sx offset_group = lth_floordiv(pool, channel, lth_sx_dim(pool, per_offset));
	lth_sx tap = lth_add(pool, lth_mul(pool, index[5], lth_sx_dim(pool, window.kernel[1])), index[6]);
	lth_sx taps = lth_mul(pool, lth_sx_dim(pool, window.kernel[0]), lth_sx_dim(pool, window.kernel[1]));
	tap = lth_add(pool, lth_mul(pool, offset_group, taps), tap);
	lth_sx points[2], at[4] = {index[0], channel}, w_at[4] = {index[1], index[4], index[5], index[6]};
	for (uint32_t i = 0; i < 2; i++) {
		lth_sx twice = lth_add(pool, lth_mul(pool, tap, lth_sx_int(pool, 2)), lth_sx_int(pool, i));
		lth_sx where[4] = {index[0], twice, index[2], index[3]};
		lth_sx moved = lth_read(lower, node->inputs[OFFSET], where);
		lth_sx plain = lth_add(pool, lth_mul(pool, index[2 + i], lth_sx_int(pool, window.stride[i])),
				       lth_mul(pool, index[5 + i], lth_sx_int(pool, window.dilation[i])));
		plain = lth_sub(pool, plain, lth_sx_dim(pool, window.begin[i]));
		points[i] = lth_add(pool, lth_sx_cast(pool, plain, lth_sx_dtype(pool, moved)), moved);
	}
	lth_sx x = bilinear(lower, node->inputs[X], at, points[0], points[1]);
	if (lth_node_input(node, MASK) != LTH_NONE) {
		lth_sx where[4] = {index[0], tap, index[2], index[3]};
		x = lth_mul(pool, x, lth_read(lower, node->inputs[MASK], where));
	}
	return lth_mul(pool, x, lth_read(lower, node->inputs[W], w_at));
}

static lth_sx deform_conv_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
				  const lth_sx *index)
{
	(void)output;
	lth_sx x = lth_result(lower, node, 0, lth_compute_dtype(lth_value_dtype(lower, node->inputs[X])));
	if (lth_node_input(node, BIAS) == LTH_NONE)
		return x;
	return lth_add(lth_lower_pool(lower), x, lth_read(lower, node->inputs[BIAS], &index[1]));
}

const struct lth_op_impl lth_impl_deform_conv = {.infer = infer_deform_conv,
						 .element = deform_conv_element,
						 .reduction = deform_conv_reduction,
						 .stage = deform_conv_stage};

/* ---- Col2Im ---- */

enum { COLUMNS, IMAGE, BLOCK };

/* The windows that would have made the columns: over the image, by blocks. `in` is the number of windows an axis. */
static void place_blocks(struct lth_graph *graph, const struct lth_node *node, struct lth_window *out)
{
	const struct lth_contents *image = lth_value_contents(graph, node->inputs[IMAGE]);
	const struct lth_contents *block = lth_value_contents(graph, node->inputs[BLOCK]);
	lth_dim shape[LTH_MAX_RANK + 2] = {LTH_DIM_NONE, LTH_DIM_NONE};
	memcpy(shape + 2, image->dims, image->count * sizeof(*shape));
	lth_window_place(graph, node, shape, block->dims, image->count, out);
	memcpy(out->in, out->out, sizeof(out->in));
	memcpy(out->out, image->dims, image->count * sizeof(*shape));
}

static enum lth_code infer_col2im(struct lth_infer *infer)
{
	struct lth_dims *d = infer->dims;
	const lth_dim *image, *block;
	uint32_t spatial, count;
	struct lth_window window;
	enum lth_code code = lth_infer_need_rank(infer, COLUMNS, 3, 3);
	for (uint32_t i = IMAGE; !code && i <= BLOCK; i++)
		code = lth_infer_need_rank(infer, i, 1, 1);
	if (!code)
		code = lth_infer_need_ints(infer, IMAGE, 1, &image, &spatial);
	if (!code)
		code = lth_infer_need_ints(infer, BLOCK, 1, &block, &count);
	if (!code && (count != spatial || count < 1 || count > LTH_MAX_RANK - 2))
		code = lth_infer_reject(infer, "one size of image and block for each axis", "%u and %u", spatial,
					count);
	if (!code)
		code = lth_window_check(infer, spatial);
	if (code)
		return code;
	place_blocks(infer->graph, infer->node, &window);
	lth_dim taps = lth_dim_product(d, block, count), dims[LTH_MAX_RANK];
	code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, COLUMNS, 2),
				 lth_dim_product(d, window.in, spatial), "a column for each block of the image");
	if (!code)
		code = lth_infer_require(infer, LTH_REL_DIVIDES, taps, lth_infer_dim(infer, COLUMNS, 1),
					 "rows divisible by the block's elements");
	dims[0] = lth_infer_dim(infer, COLUMNS, 0);
	dims[1] = lth_dim_floordiv(d, lth_infer_dim(infer, COLUMNS, 1), taps);
	memcpy(dims + 2, image, spatial * sizeof(*dims));
	return code ? code : lth_infer_output(infer, 0, LTH_NUM_DTYPES, spatial + 2, dims);
}

static enum lth_code col2im_reduction(struct lth_lower *lower, const struct lth_node *node, struct lth_reduction *out,
				      struct lth_diag *diag)
{
	(void)diag;
	struct lth_window window;
	place_blocks(lth_lower_graph(lower), node, &window);
	out->num_axes = window.spatial;
	memcpy(out->extents, window.kernel, window.spatial * sizeof(lth_dim));
	out->row_axes = (1u << (window.spatial + 2)) - 1;
	out->num_stages = 1;
	out->stages[0].combiner = LTH_COMBINE_SUM;
	out->stages[0].dtype = lth_compute_dtype(lth_value_dtype(lower, node->inputs[COLUMNS]));
	return LTH_OK;
}

static lth_sx col2im_stage(struct lth_lower *lower, const struct lth_node *node, uint32_t stage, const lth_sx *index)
{
	(void)stage;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	struct lth_window window;
	place_blocks(lth_lower_graph(lower), node, &window);
	lth_sx row = index[1], column = lth_sx_int(pool, 0), inside = LTH_SX_NONE;
	for (uint32_t i = 0; i < window.spatial; i++) {
		lth_sx here, tap = index[window.spatial + 2 + i];
		lth_sx number = lth_window_transposed_position(pool, &window, i, index[i + 2], tap, &here);
		row = lth_add(pool, lth_mul(pool, row, lth_sx_dim(pool, window.kernel[i])), tap);
		column = lth_add(pool, lth_mul(pool, column, lth_sx_dim(pool, window.in[i])), number);
		inside = inside == LTH_SX_NONE ? here : lth_and(pool, inside, here);
	}
	lth_sx at[3] = {index[0], row, column}, x = lth_read(lower, node->inputs[COLUMNS], at);
	return lth_sx_select(pool, inside, x, lth_same_const(pool, x, 0));
}

static lth_sx col2im_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output, const lth_sx *index)
{
	(void)output, (void)index;
	return lth_result(lower, node, 0, lth_compute_dtype(lth_value_dtype(lower, node->inputs[COLUMNS])));
}

const struct lth_op_impl lth_impl_col2im = {
	.infer = infer_col2im, .element = col2im_element, .reduction = col2im_reduction, .stage = col2im_stage};
