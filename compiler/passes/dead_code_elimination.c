/* DeadCodeElimination: deletes nodes none of whose results are read, and forgets outputs that nobody reads, going from
 * the last node to the first so that one walk suffices. What binds a symbol that a later shape depends on is read. No
 * operator has effects besides its outputs. A control node is alive when one of its outputs is; what its regions read dies
 * with it. Legal always. Thread rule: as the graph's. */
#include "compiler/passes/pass.h"

#include "compiler/ops/op.h"

#include <string.h>

LTH_PASS_GRAPH_FN(lth_pass_dead_code_elimination)

struct sweeper {
	struct lth_graph *graph;
	uint32_t *uses;  /* by value */
	bool *symbols;   /* by number: some shape that stays depends on it */
};

/* What the shapes of a node that stays, and of what it reads, depend on. */
static void mark_type(struct sweeper *sweeper, lth_value_id value)
{
	const struct lth_type *type = value == LTH_NONE ? NULL : &sweeper->graph->values[value].type;
	bool ranked = type && type->kind == LTH_TYPE_TENSOR && type->rank != LTH_RANK_UNKNOWN;
	for (uint32_t i = 0; ranked && i < type->rank; i++)
		if (lth_dim_depends_on_data(sweeper->graph->dims, type->dims[i]))
			lth_dim_mark_symbols(sweeper->graph->dims, type->dims[i], sweeper->symbols);
}

static void mark_node(struct sweeper *sweeper, const struct lth_node *node)
{
	for (uint32_t k = 0; k < node->num_outputs; k++)
		mark_type(sweeper, node->outputs[k]);
	for (uint32_t k = 0; k < node->num_inputs; k++)
		mark_type(sweeper, node->inputs[k]);
}

/* Does the node bind a symbol that is needed: an element of a result, or a size that it alone knows? */
static bool binds_needed(const struct sweeper *sweeper, const struct lth_node *node)
{
	const struct lth_graph *graph = sweeper->graph;
	for (uint32_t i = 0; i < graph->num_bindings; i++) {
		const struct lth_value *value = &graph->values[graph->bindings[i].value];
		if (sweeper->symbols[graph->bindings[i].symbol] && value->def == LTH_DEF_NODE &&
		    &graph->nodes[value->def_id] == node)
			return true;
	}
	for (uint32_t i = 0; i < lth_dims_num_symbols(graph->dims); i++) {
		const struct lth_dim_symbol *symbol = lth_dims_symbol(graph->dims, i);
		if (sweeper->symbols[i] && symbol->from_data && symbol->node && strcmp(symbol->node, node->name) == 0)
			return true;
	}
	return false;
}

static void count_region(const struct lth_graph *graph, lth_region_id region, uint32_t *uses, uint32_t step);

/* Adds `step` (1, or -1 as an unsigned number) to the uses of all that a node and its regions read. */
static void count_node(const struct lth_graph *graph, const struct lth_node *node, uint32_t *uses, uint32_t step)
{
	for (uint32_t k = 0; k < node->num_inputs; k++)
		if (node->inputs[k] != LTH_NONE)
			uses[node->inputs[k]] += step;
	for (uint32_t a = 0; a < node->num_attrs; a++) {
		if (node->attrs[a].kind == LTH_ATTR_TENSOR)
			uses[node->attrs[a].id] += step;
		else if (node->attrs[a].kind == LTH_ATTR_REGION)
			count_region(graph, node->attrs[a].id, uses, step);
	}
}

static void count_region(const struct lth_graph *graph, lth_region_id region, uint32_t *uses, uint32_t step)
{
	for (uint32_t i = 0; i < graph->regions[region].num_nodes; i++) {
		const struct lth_node *node = &graph->nodes[graph->regions[region].nodes[i]];
		if (!node->deleted)
			count_node(graph, node, uses, step);
	}
	for (uint32_t k = 0; k < graph->regions[region].num_outputs; k++)
		uses[graph->regions[region].outputs[k]] += step;
}

static bool stays(const struct sweeper *sweeper, const struct lth_node *node)
{
	for (uint32_t k = 0; k < node->num_outputs; k++)
		if (node->outputs[k] != LTH_NONE && sweeper->uses[node->outputs[k]] > 0)
			return true;
	return binds_needed(sweeper, node);
}

/* Later outputs that nobody reads become absent, so that no kernel computes them. The outputs of control nodes mirror
 * those of their regions and stay. */
static void forget_outputs(struct sweeper *sweeper, struct lth_node *node)
{
	struct lth_graph *graph = sweeper->graph;
	if (node->op->kind == LTH_OP_CONTROL)
		return;
	for (uint32_t k = node->op->min_outputs; k < node->num_outputs; k++)
		if (node->outputs[k] != LTH_NONE && sweeper->uses[node->outputs[k]] == 0 &&
		    !lth_value_binds(graph, node->outputs[k])) {
			graph->values[node->outputs[k]].def = LTH_DEF_DELETED;
			node->outputs[k] = LTH_NONE;
		}
	while (node->num_outputs > node->op->min_outputs && node->outputs[node->num_outputs - 1] == LTH_NONE &&
	       node->op->max_outputs != UINT32_MAX)
		node->num_outputs--;
}

static void sweep_region(struct sweeper *sweeper, lth_region_id region)
{
	struct lth_graph *graph = sweeper->graph;
	for (uint32_t k = 0; k < graph->regions[region].num_outputs; k++)
		mark_type(sweeper, graph->regions[region].outputs[k]);
	for (uint32_t i = graph->regions[region].num_nodes; i-- > 0;) {
		lth_node_id id = graph->regions[region].nodes[i];
		struct lth_node *node = &graph->nodes[id];
		if (node->deleted)
			continue;
		if (!stays(sweeper, node)) {
			count_node(graph, node, sweeper->uses, UINT32_MAX);
			lth_graph_delete_node(graph, id);
			continue;
		}
		mark_node(sweeper, node);
		forget_outputs(sweeper, node);
		for (uint32_t a = 0; a < node->num_attrs; a++)
			if (node->attrs[a].kind == LTH_ATTR_REGION)
				sweep_region(sweeper, node->attrs[a].id);
	}
}

enum lth_code lth_pass_dead_code_elimination(struct lth_graph *graph, const struct lth_pass_context *context,
					     struct lth_diag *diag)
{
	(void)context;
	struct sweeper sweeper = {.graph = graph};
	sweeper.uses = lth_arena_array(graph->arena, graph->num_values, sizeof(*sweeper.uses));
	sweeper.symbols = lth_arena_array(graph->arena, lth_dims_num_symbols(graph->dims) + 1, sizeof(*sweeper.symbols));
	if (!sweeper.uses || !sweeper.symbols)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "passes", NULL, "raise the memory limit",
				     "the compile's arena is exhausted");
	count_region(graph, 0, sweeper.uses, 1);
	sweep_region(&sweeper, 0);
	lth_graph_compact(graph);
	return LTH_OK;
}
