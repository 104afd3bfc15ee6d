/* Sets of axes. See axes.h. */
#include "compiler/ops/axes.h"

lth_dim lth_dim_is(struct lth_dims *dims, lth_dim a, int64_t value)
{
	/* 1 - min(1, |a - value|) */
	lth_dim zero = lth_dim_const(dims, 0), one = lth_dim_const(dims, 1);
	lth_dim distance = lth_dim_sub(dims, a, lth_dim_const(dims, value));
	distance = lth_dim_max(dims, distance, lth_dim_sub(dims, zero, distance));
	return lth_dim_sub(dims, one, lth_dim_min(dims, one, distance));
}

lth_dim lth_dim_is_axis(struct lth_dims *dims, lth_dim a, uint32_t axis, uint32_t rank)
{
	return lth_dim_add(dims, lth_dim_is(dims, a, axis), lth_dim_is(dims, a, (int64_t)axis - rank));
}

lth_dim lth_dim_choose(struct lth_dims *dims, lth_dim a, lth_dim b, lth_dim c)
{
	int64_t known;
	if (lth_dim_is_const(dims, a, &known))
		return known ? b : c;
	/* c + a (b - c) */
	return b == c ? b : lth_dim_add(dims, c, lth_dim_mul(dims, a, lth_dim_sub(dims, b, c)));
}

void lth_axes_read(struct lth_dims *dims, const struct lth_contents *list, uint32_t rank, struct lth_axes *out)
{
	lth_dim one = lth_dim_const(dims, 1);
	*out = (struct lth_axes){.rank = rank, .known = true};
	for (uint32_t i = 0; i < rank; i++) {
		int64_t known;
		out->in[i] = lth_dim_const(dims, 0);
		for (uint32_t k = 0; list && k < list->count; k++)
			out->in[i] = lth_dim_add(dims, out->in[i], lth_dim_is_axis(dims, list->dims[k], i, rank));
		out->in[i] = lth_dim_min(dims, out->in[i], one);
		if (!lth_dim_is_const(dims, out->in[i], &known))
			out->known = false;
		else if (known)
			out->flags |= 1u << i;
	}
}

lth_dim lth_axes_is_kept(struct lth_dims *dims, const struct lth_axes *axes, uint32_t axis, uint32_t place)
{
	lth_dim one = lth_dim_const(dims, 1), before = lth_dim_const(dims, 0);
	for (uint32_t i = 0; i < axis; i++)
		before = lth_dim_add(dims, before, lth_dim_sub(dims, one, axes->in[i]));
	return lth_dim_mul(dims, lth_dim_sub(dims, one, axes->in[axis]), lth_dim_is(dims, before, place));
}

enum lth_code lth_infer_axes(struct lth_infer *infer, uint32_t input, uint32_t rank, struct lth_axes *out)
{
	const lth_dim *list;
	uint32_t count, axis, seen = 0;
	int64_t value;
	enum lth_code code = LTH_OK;
	if (lth_infer_type(infer, input))
		code = lth_infer_need_ints(infer, input, -(int64_t)rank, &list, &count);
	for (uint32_t k = 0; !code && lth_infer_type(infer, input) && k < count; k++) {
		if (!lth_dim_is_const(infer->dims, list[k], &value))
			continue;
		code = lth_infer_axis(infer, value, rank, &axis);
		if (!code && seen & 1u << axis)
			code = lth_infer_reject(infer, "each axis once", "axis %lld twice", (long long)value);
		seen |= code ? 0 : 1u << axis;
	}
	if (!code)
		lth_node_axes(infer->graph, infer->node, input, rank, out);
	return code;
}

void lth_node_axes(struct lth_graph *graph, const struct lth_node *node, uint32_t input, uint32_t rank,
		   struct lth_axes *out)
{
	lth_value_id value = lth_node_input(node, input);
	lth_axes_read(graph->dims, value == LTH_NONE ? NULL : lth_value_contents(graph, value), rank, out);
}

enum lth_code lth_infer_source(struct lth_infer *infer, lth_dim in, lth_dim out)
{
	struct lth_dims *dims = infer->dims;
	int64_t min, max;
	lth_dim_range(dims, in, &min, &max);
	if (in == out || min > 0)
		return LTH_OK;
	return lth_infer_require(infer, LTH_REL_EQ, lth_dim_mul(dims, out, lth_dim_is(dims, in, 0)), lth_dim_const(dims, 0),
				 "elements to take from");
}
