/* Evaluating a node at compile time: lowering it, and running the kernel in the interpreter (or the C kernel). */
#ifndef LTH_LOWER_EVALUATE_H
#define LTH_LOWER_EVALUATE_H

#include "compiler/ir/graph.h"

/* Turns the outputs of a node whose inputs are all constant and whose shapes are static into constants; the node is
 * deleted by the caller. LTH_UNSUPPORTED when this node cannot be evaluated here. */
LTH_MUST_CHECK enum lth_code lth_lower_evaluate_node(struct lth_graph *graph, lth_node_id node, struct lth_diag *diag);

#endif
