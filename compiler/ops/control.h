/* What the operators of control flow share (control.c, control_if.c). Private to compiler/ops. */
#ifndef LTH_OPS_CONTROL_H
#define LTH_OPS_CONTROL_H

#include "compiler/ops/family.h"

/* The region that an attribute holds. */
lth_region_id lth_control_region(const struct lth_node *node, const char *name);
/* Infers a region of the node; errors say that they come from inside of it. */
LTH_MUST_CHECK enum lth_code lth_control_enter(struct lth_infer *infer, lth_region_id region);

#endif
