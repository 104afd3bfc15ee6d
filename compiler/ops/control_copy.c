/* Copies of nodes, with new values for what they give: where one text of a model runs in several places (what follows
 * an If, the body of a SequenceMap). Thread rule: as infer.h. */
#include "compiler/ops/control.h"

#include <string.h>

bool lth_copier_init(struct lth_copier *copier, struct lth_graph *graph)
{
	*copier = (struct lth_copier){.graph = graph, .num_values = graph->num_values};
	copier->map = lth_arena_array(graph->arena, copier->num_values, sizeof(*copier->map));
	if (copier->map)
		memset(copier->map, 0xff, copier->num_values * sizeof(*copier->map));
	return copier->map != NULL;
}

lth_value_id lth_copied(const struct lth_copier *copier, lth_value_id value)
{
	bool has = value < copier->num_values && copier->map[value] != LTH_NONE;
	return has ? copier->map[value] : value;
}

static lth_value_id copy_value(struct lth_copier *copier, lth_value_id value)
{
	const struct lth_type type = copier->graph->values[value].type;
	lth_value_id copy = lth_graph_value(copier->graph, copier->graph->values[value].name, &type);
	if (copy != LTH_NONE)
		copier->graph->values[copy].declared_rank = copier->graph->values[value].declared_rank;
	return copier->map[value] = copy;
}

static lth_region_id copy_region(struct lth_copier *copier, lth_region_id from)
{
	struct lth_graph *graph = copier->graph;
	lth_region_id to = lth_graph_region(graph, LTH_NONE);
	const struct lth_region region = graph->regions[from];
	bool ok = to != LTH_NONE;
	for (uint32_t i = 0; i < region.num_inputs && ok; i++) {
		const struct lth_type type = graph->values[region.inputs[i]].type;
		lth_value_id input = lth_graph_input(graph, to, graph->values[region.inputs[i]].name, &type);
		copier->map[region.inputs[i]] = input;
		ok = input != LTH_NONE;
	}
	ok = ok && lth_copy_nodes(copier, region.nodes, region.num_nodes, to);
	for (uint32_t i = 0; i < region.num_outputs && ok; i++)
		ok = lth_graph_output(graph, to, lth_copied(copier, region.outputs[i]));
	return ok ? to : LTH_NONE;
}

static bool copy_node(struct lth_copier *copier, lth_node_id id, lth_region_id to)
{
	struct lth_graph *graph = copier->graph;
	const struct lth_node node = graph->nodes[id];
	lth_value_id *inputs = lth_arena_array(graph->arena, node.num_inputs + 1, sizeof(*inputs));
	lth_value_id *outputs = lth_arena_array(graph->arena, node.num_outputs + 1, sizeof(*outputs));
	struct lth_attr *attrs = lth_arena_memdup(graph->arena, node.attrs, node.num_attrs * sizeof(*attrs));
	if (!inputs || !outputs || !attrs)
		return false;
	for (uint32_t i = 0; i < node.num_inputs; i++)
		inputs[i] = node.inputs[i] == LTH_NONE ? LTH_NONE : lth_copied(copier, node.inputs[i]);
	for (uint32_t i = 0; i < node.num_attrs; i++)
		if (attrs[i].kind == LTH_ATTR_REGION && (attrs[i].id = copy_region(copier, attrs[i].id)) == LTH_NONE)
			return false;
	for (uint32_t i = 0; i < node.num_outputs; i++) {
		outputs[i] = node.outputs[i] == LTH_NONE ? LTH_NONE : copy_value(copier, node.outputs[i]);
		if (node.outputs[i] != LTH_NONE && outputs[i] == LTH_NONE)
			return false;
	}
	return lth_graph_node(graph, to, node.op, node.name, inputs, node.num_inputs, outputs, node.num_outputs, attrs,
			      node.num_attrs) != LTH_NONE;
}

bool lth_copy_nodes(struct lth_copier *copier, const lth_node_id *nodes, uint32_t count, lth_region_id to)
{
	for (uint32_t i = 0; i < count; i++)
		if (!copier->graph->nodes[nodes[i]].deleted && !copy_node(copier, nodes[i], to))
			return false;
	return true;
}
