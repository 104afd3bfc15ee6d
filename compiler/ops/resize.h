/* What the two files of Resize share. Private to compiler/ops. */
#ifndef LTH_OPS_RESIZE_H
#define LTH_OPS_RESIZE_H

#include "compiler/ops/infer.h"

enum { LTH_RESIZE_INPUT, LTH_RESIZE_ROI, LTH_RESIZE_SCALES, LTH_RESIZE_SIZES };

/* Position of axis `axis` in the lists scales, sizes and roi; UINT32_MAX when it is not resized. */
uint32_t lth_resize_place(const struct lth_node *node, uint32_t axis, uint32_t rank, uint32_t *out_count);

/* resize_dense.c: antialiased interpolation by scales that compile time does not know; the lists are checked. */
enum lth_code lth_resize_dense(struct lth_infer *infer);

#endif
