/* Families that are on their way: rows whose inference and lowering are not there yet. */
#include "compiler/ops/op.h"

extern const struct lth_op_impl lth_impl_col2im;
const struct lth_op_impl lth_impl_col2im = {0};
extern const struct lth_op_impl lth_impl_compress;
const struct lth_op_impl lth_impl_compress = {0};
extern const struct lth_op_impl lth_impl_deform_conv;
const struct lth_op_impl lth_impl_deform_conv = {0};
extern const struct lth_op_impl lth_impl_dft;
const struct lth_op_impl lth_impl_dft = {0};
extern const struct lth_op_impl lth_impl_einsum;
const struct lth_op_impl lth_impl_einsum = {0};
extern const struct lth_op_impl lth_impl_grid_sample;
const struct lth_op_impl lth_impl_grid_sample = {0};
extern const struct lth_op_impl lth_impl_max_roi_pool;
const struct lth_op_impl lth_impl_max_roi_pool = {0};
extern const struct lth_op_impl lth_impl_non_max_suppression;
const struct lth_op_impl lth_impl_non_max_suppression = {0};
extern const struct lth_op_impl lth_impl_non_zero;
const struct lth_op_impl lth_impl_non_zero = {0};
extern const struct lth_op_impl lth_impl_resize;
const struct lth_op_impl lth_impl_resize = {0};
extern const struct lth_op_impl lth_impl_roi_align;
const struct lth_op_impl lth_impl_roi_align = {0};
extern const struct lth_op_impl lth_impl_scatter_elements;
const struct lth_op_impl lth_impl_scatter_elements = {0};
extern const struct lth_op_impl lth_impl_scatter_nd;
const struct lth_op_impl lth_impl_scatter_nd = {0};
extern const struct lth_op_impl lth_impl_stft;
const struct lth_op_impl lth_impl_stft = {0};
extern const struct lth_op_impl lth_impl_top_k;
const struct lth_op_impl lth_impl_top_k = {0};
extern const struct lth_op_impl lth_impl_unique;
const struct lth_op_impl lth_impl_unique = {0};
