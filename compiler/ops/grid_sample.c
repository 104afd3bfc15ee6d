/* GridSample: reads the input at the points of a grid, by nearest, linear or cubic interpolation, with zeros, the
 * border or reflections outside. */
#include "compiler/ops/sample.h"

#include <string.h>

static enum lth_code infer_grid_sample(struct lth_infer *infer)
{
	const struct lth_type *x = lth_infer_type(infer, 0), *grid = lth_infer_type(infer, 1);
	lth_dim dims[LTH_MAX_RANK], batch;
	enum lth_code code = lth_infer_need_rank(infer, 0, 3, LTH_MAX_RANK);
	if (!code)
		code = lth_infer_need_rank(infer, 1, x->rank, x->rank);
	if (!code)
		code = lth_infer_require(infer, LTH_REL_EQ, grid->dims[grid->rank - 1],
					 lth_dim_const(infer->dims, x->rank - 2), "a coordinate for each spatial axis");
	if (!code)
		code = lth_infer_unify(infer, x->dims[0], grid->dims[0], "one batch", &batch);
	if (!code && x->rank != 4 && lth_op_string_is(infer->node, "mode", "cubic"))
		code = lth_infer_reject(infer, "two spatial axes for cubic", "%s has rank %u",
					lth_infer_input_text(infer, 0), x->rank);
	if (code)
		return code;
	dims[0] = batch;
	dims[1] = x->dims[1];
	memcpy(dims + 2, grid->dims + 1, (x->rank - 2) * sizeof(*dims));
	return lth_infer_output(infer, 0, LTH_NUM_DTYPES, x->rank, dims);
}

/* An axis of the input as real numbers: its extent and the bounds that reflections use. */
struct line {
	lth_sx extent, low, high; /* extent: i64 */
};

static struct line describe_line(struct lth_lower *lower, const struct lth_node *node, uint32_t axis,
				 enum lth_dtype work)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	bool corners = lth_op_int(node, "align_corners") != 0;
	lth_sx extent = lth_extent(lower, node->inputs[0], (int32_t)axis);
	double shift = corners ? 1 : 0.5;
	return (struct line){extent, lth_sx_const(pool, work, corners ? 0 : -0.5),
			     lth_sub(pool, lth_sx_cast(pool, extent, work), lth_sx_const(pool, work, shift))};
}

/* [-1, 1] onto the axis: the centres of the outer pixels with aligned corners, else their outer edges. */
static lth_sx denormalize(struct lth_sx_pool *pool, lth_sx g, const struct line *line, bool corners)
{
	lth_sx one = lth_same_const(pool, g, 1), half = lth_same_const(pool, g, 0.5);
	lth_sx extent = lth_sx_cast(pool, line->extent, lth_sx_dtype(pool, g)), moved = lth_add(pool, g, one);
	if (corners)
		return lth_mul(pool, lth_mul(pool, moved, half), lth_sub(pool, extent, one));
	return lth_mul(pool, lth_sub(pool, lth_mul(pool, moved, extent), one), half);
}

/* Back and forth between low and high. */
static lth_sx reflect(struct lth_sx_pool *pool, lth_sx x, const struct line *line)
{
	lth_sx range = lth_sub(pool, line->high, line->low), zero = lth_same_const(pool, x, 0);
	lth_sx twice = lth_add(pool, range, range);
	lth_sx phase = lth_modulo(pool, lth_sub(pool, x, line->low), twice);
	lth_sx folded = lth_add(pool, line->low, lth_min(pool, phase, lth_sub(pool, twice, phase)));
	return lth_sx_select(pool, lth_le(pool, range, zero), zero, folded);
}

/* A whole position brought onto the axis; *inside says whether it counts (LTH_SX_NONE: it does). */
static lth_sx settle(struct lth_sx_pool *pool, const struct lth_node *node, lth_sx x, const struct line *line,
		     lth_sx *inside)
{
	*inside = LTH_SX_NONE;
	if (lth_op_string_is(node, "padding_mode", "reflection"))
		x = reflect(pool, x, line);
	lth_sx index = lth_sx_cast(pool, x, LTH_DTYPE_I64);
	if (lth_op_string_is(node, "padding_mode", "zeros"))
		*inside = lth_in_range(pool, index, lth_sx_int(pool, 0), line->extent);
	return lth_safe_index(pool, index, line->extent);
}

static void add_tap(struct lth_sx_pool *pool, const struct lth_node *node, struct lth_taps *taps, lth_sx position,
		    lth_sx weight, const struct line *line)
{
	lth_sx inside;
	taps->index[taps->count] = settle(pool, node, position, line, &inside);
	taps->weight[taps->count++] =
		inside == LTH_SX_NONE ? weight : lth_sx_select(pool, inside, weight, lth_same_const(pool, weight, 0));
}

static void find_taps(struct lth_lower *lower, const struct lth_node *node, uint32_t axis, lth_sx g,
		      struct lth_taps *taps)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	bool corners = lth_op_int(node, "align_corners") != 0;
	struct line line = describe_line(lower, node, axis, lth_sx_dtype(pool, g));
	lth_sx x = denormalize(pool, g, &line, corners), one = lth_same_const(pool, g, 1);
	taps->count = 0;
	if (lth_op_string_is(node, "mode", "nearest")) {
		add_tap(pool, node, taps, lth_unary(pool, LTH_SCALAR_RINT, x), one, &line);
		return;
	}
	if (lth_op_string_is(node, "padding_mode", "border")) { /* the outer half of an edge pixel is not outside yet */
		lth_sx last = lth_sub(pool, lth_sx_cast(pool, line.extent, lth_sx_dtype(pool, g)), one);
		lth_sx inside = lth_and(pool, lth_le(pool, line.low, x), lth_le(pool, x, line.high));
		x = lth_sx_select(pool, inside, x, lth_clamp(pool, x, lth_same_const(pool, g, 0), last));
	} else if (lth_op_string_is(node, "padding_mode", "reflection")) {
		x = reflect(pool, x, &line);
	}
	lth_sx base = lth_unary(pool, LTH_SCALAR_FLOOR, x);
	bool cubic = lth_op_string_is(node, "mode", "cubic");
	for (int k = cubic ? -1 : 0; k < (cubic ? 3 : 2); k++) {
		lth_sx position = lth_add(pool, base, lth_same_const(pool, g, k)),
		       distance = lth_sub(pool, position, x);
		add_tap(pool, node, taps, position,
			cubic ? lth_cubic_weight(pool, distance, -0.75) : lth_linear_weight(pool, distance), &line);
	}
}

static lth_sx grid_sample_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
				  const lth_sx *index)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	uint32_t spatial = lth_rank(lower, node->inputs[0]) - 2, axes[LTH_MAX_RANK];
	struct lth_taps taps[3];
	lth_sx at[LTH_MAX_RANK] = {index[0], index[1]}, where[LTH_MAX_RANK];
	if (spatial > 3)
		return LTH_SX_NONE;
	where[0] = index[0];
	memcpy(where + 1, index + 2, spatial * sizeof(*where));
	for (uint32_t i = 0; i < spatial; i++) {
		where[spatial + 1] = lth_sx_int(pool, spatial - 1 - i); /* x, the last axis, comes first */
		axes[i] = i + 2;
		find_taps(lower, node, i + 2, lth_read(lower, node->inputs[1], where), &taps[i]);
	}
	lth_sx value = lth_sample_sum(lower, node->inputs[0], taps, axes, spatial, at);
	enum lth_dtype to = lth_compute_dtype(lth_value_dtype(lower, node->outputs[output]));
	return lth_sx_cast(pool, value, to);
}

const struct lth_op_impl lth_impl_grid_sample = {.infer = infer_grid_sample, .element = grid_sample_element};
