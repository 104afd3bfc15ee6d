/* Counter-based random numbers as scalar expressions: element i of a node is a function of the node's seed and i alone,
 * so threads, schedules and fusion do not change it. Private to compiler/ops. */
#ifndef LTH_OPS_RANDOM_H
#define LTH_OPS_RANDOM_H

#include "compiler/ops/infer.h"

/* Uniform in [0, 1), f32, for the element of `value` at `index`. The seed is the node's attribute `seed`, else its
 * name's hash. */
lth_sx lth_random_uniform(struct lth_lower *lower, const struct lth_node *node, lth_value_id value,
			  const lth_sx *index);
/* Standard normal, f32. */
lth_sx lth_random_normal(struct lth_lower *lower, const struct lth_node *node, lth_value_id value, const lth_sx *index);

#endif
