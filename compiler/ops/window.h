/* Windows over spatial axes, as convolution and pooling place them. Private to compiler/ops. */
#ifndef LTH_OPS_WINDOW_H
#define LTH_OPS_WINDOW_H

#include "compiler/ops/family.h"

/* Spatial axis i is axis i + 2 of the tensors. A window at output o reads o * stride - begin + k * dilation. */
struct lth_window {
	uint32_t spatial;
	lth_dim in[LTH_MAX_RANK], out[LTH_MAX_RANK], kernel[LTH_MAX_RANK];
	lth_dim begin[LTH_MAX_RANK], end[LTH_MAX_RANK]; /* padding */
	int64_t stride[LTH_MAX_RANK], dilation[LTH_MAX_RANK];
};

/* Checks the attributes strides, dilations, pads, auto_pad of a node against `spatial` axes. */
LTH_MUST_CHECK enum lth_code lth_window_check(struct lth_infer *infer, uint32_t spatial);
/* Places the windows of a checked node over the input's shape (with batch and channel axes). */
void lth_window_place(struct lth_graph *graph, const struct lth_node *node, const lth_dim *in, const lth_dim *kernel,
		      uint32_t spatial, struct lth_window *out);
/* The same for the transpose of a convolution: `out` is what is scattered to. */
void lth_window_place_transposed(struct lth_graph *graph, const struct lth_node *node, const lth_dim *in,
				 const lth_dim *kernel, uint32_t spatial, struct lth_window *out);
/* Every extent of the output must be 0 or more: windows no larger than the padded input. */
LTH_MUST_CHECK enum lth_code lth_window_fits(struct lth_infer *infer, const struct lth_window *window);
/* Input position along axis i for output o and kernel place k, and whether it is inside (LTH_SX_NONE: always). */
lth_sx lth_window_position(struct lth_sx_pool *pool, const struct lth_window *window, uint32_t axis, lth_sx o, lth_sx k,
			   lth_sx *inside);
/* Where output o of the transpose takes tap k from: (o + begin - k * dilation) / stride, inside where that divides and
 * lies on the input. */
lth_sx lth_window_transposed_position(struct lth_sx_pool *pool, const struct lth_window *window, uint32_t axis,
				      lth_sx o, lth_sx k, lth_sx *inside);
/* kernel_shape as dimensions; false when absent. */
bool lth_window_kernel(struct lth_graph *graph, const struct lth_node *node, lth_dim *out, uint32_t *out_count);

#endif
