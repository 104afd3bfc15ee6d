/* SimplifyExpr: rewrites nodes into cheaper equal ones by the rows of simplify.def, from inputs to outputs, at each
 * node until no row applies. Rows are exact or change results by no more than rounding, for nan, infinities and signed
 * zeros too. Patterns that exporters write in pieces become the operators that have templates. Thread rule: as the
 * graph's. */
#include "compiler/passes/pass.h"

#include "compiler/passes/simplify.h"

#include <math.h>
#include <string.h>

LTH_PASS_GRAPH_FN(lth_pass_simplify_expr)

enum { LTH_OP_ID_ANY = LTH_NUM_OPS, MAX_ROUNDS = 16 };

static const struct {
	uint32_t op;
	lth_simplify_fn apply;
} rewrites[] = {
#define LTH_SIMPLIFY(id, op, file, what) {LTH_OP_ID_##op, simplify_##id},
#include "compiler/passes/simplify.def"
#undef LTH_SIMPLIFY
};

bool lth_simplify_to(struct lth_rewrite *rewrite, lth_node_id node, lth_value_id to)
{
	lth_value_id from = rewrite->graph->nodes[node].outputs[0];
	return lth_rewrite_replace(rewrite, from, to);
}

bool lth_is_number(const struct lth_rewrite *rewrite, lth_value_id value, double expected, double relative)
{
	double number;
	return lth_constant_number(rewrite->graph, value, &number) &&
	       fabs(number - expected) <= relative * fabs(expected);
}

bool lth_split_number(const struct lth_rewrite *rewrite, const struct lth_node *node, lth_value_id *out_other,
		      double *out_number)
{
	if (node->num_inputs != 2)
		return false;
	if (lth_constant_number(rewrite->graph, node->inputs[1], out_number)) {
		*out_other = node->inputs[0];
		return true;
	}
	if ((node->op->flags & LTH_OPF_COMMUTATIVE) &&
	    lth_constant_number(rewrite->graph, node->inputs[0], out_number)) {
		*out_other = node->inputs[1];
		return true;
	}
	return false;
}

bool lth_same_constant(const struct lth_graph *graph, lth_value_id a, lth_value_id b)
{
	if (a == b || a == LTH_NONE || b == LTH_NONE)
		return a == b;
	const struct lth_value *x = &graph->values[a], *y = &graph->values[b];
	return x->def == LTH_DEF_CONSTANT && y->def == LTH_DEF_CONSTANT && lth_same_type(graph, a, b) &&
	       x->constant.bytes == y->constant.bytes &&
	       memcmp(x->constant.data, y->constant.data, (size_t)x->constant.bytes) == 0;
}

static bool apply_one(struct lth_rewrite *rewrite, lth_node_id id)
{
	for (size_t i = 0; i < sizeof(rewrites) / sizeof(rewrites[0]); i++) {
		const struct lth_node *node = &rewrite->graph->nodes[id];
		if (rewrites[i].op != LTH_OP_ID_ANY && rewrites[i].op != (uint32_t)lth_op_id(node->op))
			continue;
		if (rewrites[i].apply(rewrite, id))
			return true;
	}
	return false;
}

static void simplify_node(struct lth_rewrite *rewrite, lth_node_id id, void *context)
{
	(void)context;
	for (int round = 0; round < MAX_ROUNDS && !rewrite->graph->nodes[id].deleted; round++)
		if (rewrite->code != LTH_OK || rewrite->graph->nodes[id].num_outputs == 0 ||
		    rewrite->graph->nodes[id].outputs[0] == LTH_NONE || !apply_one(rewrite, id))
			return;
}

enum lth_code lth_pass_simplify_expr(struct lth_graph *graph, const struct lth_pass_context *context,
				     struct lth_diag *diag)
{
	(void)context;
	uint32_t changes;
	return lth_rewrite_run(graph, simplify_node, NULL, diag, &changes);
}
