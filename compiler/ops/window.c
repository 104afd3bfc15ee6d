/* Placing windows: padding of every auto_pad, rounding of ceil_mode, and the transposed placement. See window.h. */
#include "compiler/ops/window.h"

#include <assert.h>
#include <string.h>

static enum lth_code check_list(struct lth_infer *infer, const char *name, uint32_t count, int64_t min)
{
	const int64_t *list;
	uint32_t given;
	if (!lth_node_ints(infer->node, name, &list, &given))
		return LTH_OK;
	if (given != count)
		return lth_infer_reject(infer, lth_arena_printf(infer->graph->arena, "%u", count), "%u entries in %s",
					given, name);
	for (uint32_t i = 0; i < given; i++)
		if (list[i] < min || list[i] > INT32_MAX)
			return lth_infer_reject(
				infer, lth_arena_printf(infer->graph->arena, "%lld to %d", (long long)min, INT32_MAX),
				"%lld in %s", (long long)list[i], name);
	return LTH_OK;
}

enum lth_code lth_window_check(struct lth_infer *infer, uint32_t spatial)
{
	enum lth_code code = check_list(infer, "strides", spatial, 1);
	if (!code)
		code = check_list(infer, "dilations", spatial, 1);
	if (!code)
		code = check_list(infer, "kernel_shape", spatial, 1);
	return code ? code : check_list(infer, "pads", 2 * spatial, 0);
}

bool lth_window_kernel(struct lth_graph *graph, const struct lth_node *node, lth_dim *out, uint32_t *out_count)
{
	const int64_t *list;
	if (!lth_node_ints(node, "kernel_shape", &list, out_count) || *out_count > LTH_MAX_RANK)
		return false;
	for (uint32_t i = 0; i < *out_count; i++)
		out[i] = lth_dim_const(graph->dims, list[i]);
	return true;
}

static int64_t entry(const struct lth_node *node, const char *name, uint32_t i, int64_t otherwise)
{
	const int64_t *list;
	uint32_t count;
	return lth_node_ints(node, name, &list, &count) && i < count ? list[i] : otherwise;
}

/* Extent of a kernel with its gaps. */
static lth_dim reach(struct lth_dims *dims, lth_dim kernel, int64_t dilation)
{
	lth_dim one = lth_dim_const(dims, 1);
	return lth_dim_add(dims, lth_dim_mul(dims, lth_dim_sub(dims, kernel, one), lth_dim_const(dims, dilation)), one);
}

/* The larger half of SAME's padding is at the end for SAME_UPPER, else at the begin. */
static void split_padding(struct lth_dims *dims, lth_dim total, bool upper, lth_dim *begin, lth_dim *end)
{
	lth_dim half = lth_dim_floordiv(dims, total, lth_dim_const(dims, 2)), rest = lth_dim_sub(dims, total, half);
	*begin = upper ? half : rest;
	*end = upper ? rest : half;
}

/* Whether the operator's schema has the attribute. */
static bool knows(const struct lth_node *node, const char *attribute)
{
	const char *cursor = node->op->attrs;
	struct lth_attr_rule rule;
	while (lth_attr_rule_next(&cursor, &rule))
		if (rule.name_size == strlen(attribute) && memcmp(rule.name, attribute, rule.name_size) == 0)
			return true;
	return false;
}

static bool auto_pad_is(const struct lth_node *node, const char *mode)
{
	return knows(node, "auto_pad") && lth_op_string_is(node, "auto_pad", mode);
}

/* How often a stride fits into `span`, how far the first window can move, and once more. A pooling window that misses less
 * than a stride of its first place is cut off at the end of the input: ONNX's own inference divides towards zero, and
 * ONNX Runtime and Paddle do the same. A convolution has no output there. */
static lth_dim rounded_extent(struct lth_dims *dims, const struct lth_window *w, uint32_t i, lth_dim span, bool pools,
			      bool ceil)
{
	lth_dim zero = lth_dim_const(dims, 0), one = lth_dim_const(dims, 1), stride = lth_dim_const(dims, w->stride[i]);
	if (!ceil && pools && w->stride[i] > 1)
		return lth_dim_add(dims, lth_dim_floordiv(dims, lth_dim_max(dims, span, zero), stride),
				   lth_dim_min(dims, lth_dim_add(dims, span, stride), one));
	if (!ceil)
		return lth_dim_add(dims, lth_dim_floordiv(dims, span, stride), one);
	/* A window must not begin in the padding at the end. */
	lth_dim last = lth_dim_sub(dims, lth_dim_add(dims, w->in[i], w->begin[i]), one);
	return lth_dim_add(dims,
			   lth_dim_min(dims, lth_dim_ceildiv(dims, span, stride), lth_dim_floordiv(dims, last, stride)),
			   one);
}

void lth_window_place(struct lth_graph *graph, const struct lth_node *node, const lth_dim *in, const lth_dim *kernel,
		      uint32_t spatial, struct lth_window *out)
{
	struct lth_dims *dims = graph->dims;
	lth_dim zero = lth_dim_const(dims, 0), one = lth_dim_const(dims, 1);
	bool upper = auto_pad_is(node, "SAME_UPPER"), same = upper || auto_pad_is(node, "SAME_LOWER");
	bool valid = auto_pad_is(node, "VALID"), pools = knows(node, "ceil_mode");
	bool ceil = lth_node_int(node, "ceil_mode", 0) != 0;
	memset(out, 0, sizeof(*out));
	out->spatial = spatial;
	for (uint32_t i = 0; i < spatial; i++) {
		out->in[i] = in[i + 2];
		out->kernel[i] = kernel[i];
		out->stride[i] = entry(node, "strides", i, 1);
		out->dilation[i] = entry(node, "dilations", i, 1);
		lth_dim taps = reach(dims, kernel[i], out->dilation[i]), stride = lth_dim_const(dims, out->stride[i]);
		if (same) {
			out->out[i] = lth_dim_ceildiv(dims, in[i + 2], stride);
			lth_dim covered = lth_dim_mul(dims, lth_dim_sub(dims, out->out[i], one), stride);
			lth_dim total = lth_dim_sub(dims, lth_dim_add(dims, covered, taps), in[i + 2]);
			split_padding(dims, lth_dim_max(dims, total, zero), upper, &out->begin[i], &out->end[i]);
			continue;
		}
		out->begin[i] = lth_dim_const(dims, valid ? 0 : entry(node, "pads", i, 0));
		out->end[i] = lth_dim_const(dims, valid ? 0 : entry(node, "pads", i + spatial, 0));
		lth_dim padded = lth_dim_add(dims, in[i + 2], lth_dim_add(dims, out->begin[i], out->end[i]));
		out->out[i] = rounded_extent(dims, out, i, lth_dim_sub(dims, padded, taps), pools, ceil);
	}
}

void lth_window_place_transposed(struct lth_graph *graph, const struct lth_node *node, const lth_dim *in,
				 const lth_dim *kernel, uint32_t spatial, struct lth_window *out)
{
	struct lth_dims *dims = graph->dims;
	lth_dim one = lth_dim_const(dims, 1);
	bool upper = auto_pad_is(node, "SAME_UPPER"), same = upper || auto_pad_is(node, "SAME_LOWER");
	bool valid = auto_pad_is(node, "VALID");
	const int64_t *shape;
	uint32_t count = 0;
	bool given = lth_node_ints(node, "output_shape", &shape, &count) && count >= spatial;
	memset(out, 0, sizeof(*out));
	out->spatial = spatial;
	for (uint32_t i = 0; i < spatial; i++) {
		out->in[i] = in[i + 2];
		out->kernel[i] = kernel[i];
		out->stride[i] = entry(node, "strides", i, 1);
		out->dilation[i] = entry(node, "dilations", i, 1);
		lth_dim full =
			lth_dim_mul(dims, lth_dim_sub(dims, in[i + 2], one), lth_dim_const(dims, out->stride[i]));
		full = lth_dim_add(dims, full, reach(dims, kernel[i], out->dilation[i]));
		full = lth_dim_add(dims, full, lth_dim_const(dims, entry(node, "output_padding", i, 0)));
		if (given || same) {
			/* Newer exporters write all axes, older ones the spatial ones. What SAME asks for and windows do not
			 * reach is not there; what a given shape asks for is, without a sum. */
			lth_dim wanted = given ? lth_dim_const(dims, shape[count - spatial + i])
					       : lth_dim_mul(dims, in[i + 2], lth_dim_const(dims, out->stride[i]));
			lth_dim total = lth_dim_max(dims, lth_dim_sub(dims, full, wanted), lth_dim_const(dims, 0));
			split_padding(dims, total, upper, &out->begin[i], &out->end[i]);
			out->out[i] = given ? wanted : lth_dim_sub(dims, full, total);
			continue;
		}
		out->begin[i] = lth_dim_const(dims, valid ? 0 : entry(node, "pads", i, 0));
		out->end[i] = lth_dim_const(dims, valid ? 0 : entry(node, "pads", i + spatial, 0));
		out->out[i] = lth_dim_sub(dims, full, lth_dim_add(dims, out->begin[i], out->end[i]));
	}
}

enum lth_code lth_window_fits(struct lth_infer *infer, const struct lth_window *window)
{
	struct lth_dims *dims = infer->dims;
	lth_dim zero = lth_dim_const(dims, 0);
	enum lth_code code = LTH_OK;
	for (uint32_t i = 0; !code && i < window->spatial; i++) {
		lth_dim padded = lth_dim_add(dims, window->in[i], lth_dim_add(dims, window->begin[i], window->end[i]));
		lth_graph_usual(infer->graph, reach(dims, window->kernel[i], window->dilation[i]), padded);
		code = lth_infer_require(infer, LTH_REL_LE, zero, window->out[i],
					 "windows no larger than the padded input");
	}
	return code;
}

lth_sx lth_window_position(struct lth_sx_pool *pool, const struct lth_window *window, uint32_t axis, lth_sx o, lth_sx k,
			   lth_sx *inside)
{
	int64_t begin, end;
	struct lth_dims *dims = lth_sx_dims(pool);
	lth_sx position = lth_add(pool, lth_mul(pool, o, lth_sx_int(pool, window->stride[axis])),
				  lth_mul(pool, k, lth_sx_int(pool, window->dilation[axis])));
	bool plain = lth_dim_is_const(dims, window->begin[axis], &begin) &&
		     lth_dim_is_const(dims, window->end[axis], &end) && begin == 0 && end == 0;
	lth_dim one = lth_dim_const(dims, 1);
	lth_dim taps = reach(dims, window->kernel[axis], window->dilation[axis]);
	lth_dim last = lth_dim_add(dims, lth_dim_mul(dims, lth_dim_sub(dims, window->out[axis], one),
						     lth_dim_const(dims, window->stride[axis])),
				   taps);
	*inside = LTH_SX_NONE;
	if (plain && last != LTH_DIM_NONE && lth_dim_at_most(dims, last, window->in[axis]))
		return position;
	position = lth_sub(pool, position, lth_sx_dim(pool, window->begin[axis]));
	lth_sx extent = lth_sx_dim(pool, window->in[axis]);
	*inside = lth_in_range(pool, position, lth_sx_int(pool, 0), extent);
	return lth_safe_index(pool, position, extent);
}

lth_sx lth_window_transposed_position(struct lth_sx_pool *pool, const struct lth_window *window, uint32_t axis,
				      lth_sx o, lth_sx k, lth_sx *inside)
{
	lth_sx zero = lth_sx_int(pool, 0), stride = lth_sx_int(pool, window->stride[axis]);
	lth_sx extent = lth_sx_dim(pool, window->in[axis]);
	lth_sx at = lth_sub(pool, lth_add(pool, o, lth_sx_dim(pool, window->begin[axis])),
			    lth_mul(pool, k, lth_sx_int(pool, window->dilation[axis])));
	lth_sx position = window->stride[axis] == 1 ? at : lth_floordiv(pool, at, stride);
	*inside = lth_in_range(pool, position, zero, extent);
	if (window->stride[axis] != 1)
		*inside = lth_and(pool, *inside, lth_eq(pool, lth_modulo(pool, at, stride), zero));
	return lth_safe_index(pool, position, extent);
}
