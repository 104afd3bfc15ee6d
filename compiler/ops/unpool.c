/* MaxUnpool: the maxima of a pooling go back to where they were; all else is 0. Written as a scatter into a flat zero
 * tensor of the shape that the attributes imply; a larger output_shape is padded behind. */
#include "compiler/ops/build.h"
#include "compiler/ops/family.h"

#include <string.h>

enum { X, INDICES, OUTPUT_SHAPE };

/* (extent - 1) * stride - pads + kernel for each spatial axis. */
static enum lth_code window_terms(struct lth_infer *infer, uint32_t spatial, int64_t *strides, int64_t *offsets)
{
	const int64_t *kernel, *given, *pads = NULL;
	uint32_t count, pad_count = 0;
	if (!lth_node_ints(infer->node, "kernel_shape", &kernel, &count) || count != spatial)
		return lth_infer_reject(infer, "a kernel extent for each spatial axis", "%u", count);
	bool has_strides = lth_node_ints(infer->node, "strides", &given, &count);
	if (has_strides && count != spatial)
		return lth_infer_reject(infer, "a stride for each spatial axis", "%u", count);
	if (lth_node_ints(infer->node, "pads", &pads, &pad_count) && pad_count != 2 * spatial)
		return lth_infer_reject(infer, "two pads for each spatial axis", "%u", pad_count);
	for (uint32_t i = 0; i < spatial; i++) {
		strides[i] = has_strides ? given[i] : 1;
		int64_t padding = pad_count ? pads[i] + pads[i + spatial] : 0;
		if (strides[i] < 1 || strides[i] > INT32_MAX || kernel[i] < 1 || kernel[i] > INT32_MAX || padding < 0 ||
		    padding > INT32_MAX)
			return lth_infer_reject(infer, "kernel_shape and strides of at least 1, pads of at least 0",
						"others for spatial axis %u", i);
		offsets[i] = kernel[i] - padding;
	}
	return LTH_OK;
}

static enum lth_code expand_max_unpool(struct lth_infer *infer)
{
	int64_t strides[LTH_MAX_RANK], offsets[LTH_MAX_RANK], zeros[LTH_MAX_RANK] = {0};
	const int64_t all = -1, axis = 0, one = 1;
	uint32_t rank = lth_infer_rank(infer, X);
	lth_value_id x = lth_node_input(infer->node, X), indices = lth_node_input(infer->node, INDICES);
	lth_value_id wanted = lth_node_input(infer->node, OUTPUT_SHAPE);
	enum lth_dtype dtype = lth_infer_type(infer, X)->dtype;
	enum lth_code code = lth_infer_need_rank(infer, X, 3, LTH_MAX_RANK);
	if (!code)
		code = lth_infer_need_rank(infer, INDICES, rank, rank);
	if (!code && wanted != LTH_NONE)
		code = lth_infer_need_rank(infer, OUTPUT_SHAPE, 1, 1);
	if (!code)
		code = window_terms(infer, rank - 2, strides, offsets);
	if (code)
		return code;
	lth_value_id shape = lth_build1(infer, LTH_OP_ID_Shape, x), outer = lth_build_slice(infer, shape, 0, 0, 2);
	lth_value_id steps = lth_build_slice(infer, shape, 0, 2, rank);
	steps = lth_build2(infer, LTH_OP_ID_Sub, steps, lth_build_ints(infer, &one, 1));
	steps = lth_build2(infer, LTH_OP_ID_Mul, steps, lth_build_ints(infer, strides, rank - 2));
	steps = lth_build2(infer, LTH_OP_ID_Add, steps, lth_build_ints(infer, offsets, rank - 2));
	lth_value_id full = lth_build_concat(infer, (lth_value_id[]){outer, steps}, 2, 0);
	lth_value_id total = lth_build_reduce(infer, LTH_OP_ID_ReduceProd, full, &axis, 1, true);
	lth_value_id y = lth_build2(infer, LTH_OP_ID_Expand, lth_build_scalar(infer, dtype, 0), total);
	lth_value_id places = lth_build_reshape(infer, indices, &all, 1), maxima = lth_build_reshape(infer, x, &all, 1);
	y = lth_build(infer, LTH_OP_ID_ScatterElements, (lth_value_id[]){y, places, maxima}, 3, NULL, 0);
	y = lth_build2(infer, LTH_OP_ID_Reshape, y, full);
	if (wanted != LTH_NONE) {
		lth_value_id behind = lth_build2(infer, LTH_OP_ID_Sub, wanted, full);
		lth_value_id before = lth_build_ints(infer, zeros, rank);
		lth_value_id pads = lth_build_concat(infer, (lth_value_id[]){before, behind}, 2, 0);
		y = lth_build2(infer, LTH_OP_ID_Pad, y, pads);
	}
	lth_build_output(infer, 0, y);
	return LTH_OK;
}

const struct lth_op_impl lth_impl_max_unpool = {.expand = expand_max_unpool};
