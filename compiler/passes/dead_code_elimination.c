/* DeadCodeElimination: deletes nodes none of whose results are read, and forgets outputs that nobody reads, going from
 * the last node to the first so that one walk suffices. No operator has effects besides its outputs. A control node is
 * alive when one of its outputs is; what its regions read dies with it. Legal always. Thread rule: as the graph's. */
#include "compiler/passes/pass.h"

#include "compiler/ops/op.h"

LTH_PASS_GRAPH_FN(lth_pass_dead_code_elimination)

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

static bool any_output_read(const struct lth_node *node, const uint32_t *uses)
{
	for (uint32_t k = 0; k < node->num_outputs; k++)
		if (node->outputs[k] != LTH_NONE && uses[node->outputs[k]] > 0)
			return true;
	return false;
}

/* Later outputs that nobody reads become absent, so that no kernel computes them. The outputs of control nodes mirror
 * those of their regions and stay. */
static void forget_outputs(struct lth_graph *graph, struct lth_node *node, const uint32_t *uses)
{
	if (node->op->kind == LTH_OP_CONTROL)
		return;
	for (uint32_t k = node->op->min_outputs; k < node->num_outputs; k++)
		if (node->outputs[k] != LTH_NONE && uses[node->outputs[k]] == 0) {
			graph->values[node->outputs[k]].def = LTH_DEF_DELETED;
			node->outputs[k] = LTH_NONE;
		}
	while (node->num_outputs > node->op->min_outputs && node->outputs[node->num_outputs - 1] == LTH_NONE &&
	       node->op->max_outputs != UINT32_MAX)
		node->num_outputs--;
}

static void sweep_region(struct lth_graph *graph, lth_region_id region, uint32_t *uses)
{
	for (uint32_t i = graph->regions[region].num_nodes; i-- > 0;) {
		lth_node_id id = graph->regions[region].nodes[i];
		struct lth_node *node = &graph->nodes[id];
		if (node->deleted)
			continue;
		if (!any_output_read(node, uses)) {
			count_node(graph, node, uses, UINT32_MAX);
			lth_graph_delete_node(graph, id);
			continue;
		}
		forget_outputs(graph, node, uses);
		for (uint32_t a = 0; a < node->num_attrs; a++)
			if (node->attrs[a].kind == LTH_ATTR_REGION)
				sweep_region(graph, node->attrs[a].id, uses);
	}
}

enum lth_code lth_pass_dead_code_elimination(struct lth_graph *graph, const struct lth_pass_context *context,
					     struct lth_diag *diag)
{
	(void)context;
	uint32_t *uses = lth_arena_array(graph->arena, graph->num_values, sizeof(*uses));
	if (!uses)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "passes", NULL, "raise the memory limit",
				     "the compile's arena is exhausted");
	count_region(graph, 0, uses, 1);
	sweep_region(graph, 0, uses);
	lth_graph_compact(graph);
	return LTH_OK;
}
