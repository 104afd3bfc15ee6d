/* The rewrites of SimplifyExpr (simplify.def) and what they share. Thread rule: as the graph's. */
#ifndef LTH_PASSES_SIMPLIFY_H
#define LTH_PASSES_SIMPLIFY_H

#include "compiler/passes/rewrite.h"

/* Tries one rewrite at the visited node; true when it changed the graph. */
typedef bool (*lth_simplify_fn)(struct lth_rewrite *rewrite, lth_node_id node);

#define LTH_SIMPLIFY(id, op, file, what) bool simplify_##id(struct lth_rewrite *rewrite, lth_node_id node);
#include "compiler/passes/simplify.def"
#undef LTH_SIMPLIFY

/* The node's outputs from the first become `to`; true. */
bool lth_simplify_to(struct lth_rewrite *rewrite, lth_node_id node, lth_value_id to);

/* Splits a node with two inputs into a constant of one number and the other input; of commutative operators the
 * constant may stand on either side, of others only on the right. */
bool lth_split_number(const struct lth_rewrite *rewrite, const struct lth_node *node, lth_value_id *out_other,
		      double *out_number);

/* True when `value` is a constant of one number within `relative` of `expected`. */
bool lth_is_number(const struct lth_rewrite *rewrite, lth_value_id value, double expected, double relative);

/* One value, both absent, or constants of one type with the same bytes. */
bool lth_same_constant(const struct lth_graph *graph, lth_value_id a, lth_value_id b);

static inline bool lth_is_float(const struct lth_rewrite *rewrite, lth_value_id value)
{
	return lth_dtype_class(rewrite->graph->values[value].type.dtype) == LTH_CLASS_FLOAT;
}

/* True for the operators that give a row-major value another shape and nothing else. */
static inline bool lth_reshapes(const struct lth_node *node)
{
	enum lth_op_id op = lth_op_id(node->op);
	return op == LTH_OP_ID_Reshape || op == LTH_OP_ID_Flatten || op == LTH_OP_ID_Squeeze ||
	       op == LTH_OP_ID_Unsqueeze;
}

#endif
