/* Families that are on their way: rows whose inference and lowering are not there yet. */
#include "compiler/ops/op.h"

extern const struct lth_op_impl lth_impl_col2im;
const struct lth_op_impl lth_impl_col2im = {0};
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
extern const struct lth_op_impl lth_impl_roi_align;
const struct lth_op_impl lth_impl_roi_align = {0};
extern const struct lth_op_impl lth_impl_stft;
const struct lth_op_impl lth_impl_stft = {0};
