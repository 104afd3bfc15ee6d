/* Derivatives of operators, for Gradient. A rule says what the gradient of one input is, given those of the outputs, by
 * building nodes; gradients.def has a row an operator. What a rule builds has rules itself wherever that makes sense,
 * so Gradient of Gradient works. Thread rule: as infer.h. */
#ifndef LTH_OPS_GRADIENT_H
#define LTH_OPS_GRADIENT_H

#include "compiler/ops/build.h"

struct lth_gradient {
	struct lth_infer *infer; /* of the Gradient node */
	struct lth_node node;    /* the node passed through; a copy, since the graph's nodes move as it grows */
	const lth_value_id *of;  /* the gradient of each output; LTH_NONE where there is none */
};

/* The gradient of a floating-point input, LTH_NONE where the output does not depend on it. It may have the shape that
 * the input is broadcast to. Two kinds of rules: WHOLE ones give it; LOCAL ones give the derivative of output 0 by the
 * input, element by element, which output 0's gradient is then multiplied with. */
typedef lth_value_id (*lth_gradient_fn)(struct lth_gradient *g, uint32_t input);

#define LTH_GRADIENT(op, kind, function) lth_value_id lth_gradient_##function(struct lth_gradient *g, uint32_t input);
#include "compiler/ops/gradients.def"
#undef LTH_GRADIENT

/* Refuses the node that is passed through: `what` it cannot do. Returns LTH_NONE. gradient.c */
lth_value_id lth_gradient_refuse(struct lth_gradient *g, const char *what);
/* `value` summed over the axes that were broadcast from the shape of `like`. gradient.c */
lth_value_id lth_gradient_sum_to(struct lth_gradient *g, lth_value_id value, lth_value_id like);
/* A tensor of one number, of a shape that is a tensor itself. gradient.c */
lth_value_id lth_gradient_fill(struct lth_infer *infer, enum lth_dtype dtype, double value, lth_value_id shape);

static inline lth_value_id lth_gradient_in(const struct lth_gradient *g, uint32_t input)
{
	return lth_node_input(&g->node, input);
}

static inline const struct lth_type *lth_gradient_type(const struct lth_gradient *g, uint32_t input)
{
	return &g->infer->graph->values[g->node.inputs[input]].type;
}

/* A scalar of the type that is differentiated: that of a rule's floating-point inputs. */
static inline lth_value_id lth_gradient_number(const struct lth_gradient *g, uint32_t input, double value)
{
	return lth_build_scalar(g->infer, lth_gradient_type(g, input)->dtype, value);
}

#endif
