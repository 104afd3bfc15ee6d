/* Loops that carry an optional while their body gives a value (ONNX takes a value for an optional that has one): the value
 * is made an optional at the end of the body, and behind the loop the value is taken out again, so that types stay what
 * they are. Done once; when a loop is looked at again its body gives an optional. Thread rule: as infer.h. */
#include "compiler/ops/control.h"

static const char wrapper[] = "as_optional"; /* what such nodes are called: nothing else makes them */

enum lth_code lth_control_wrap(struct lth_infer *infer, lth_region_id body, uint32_t output, struct lth_type *out)
{
	struct lth_graph *graph = infer->graph;
	lth_value_id from = graph->regions[body].outputs[output];
	const char *name = lth_arena_printf(graph->arena, "%s.%s%u", infer->node->name, wrapper, output);
	lth_value_id to = name ? lth_graph_value(graph, name, NULL) : LTH_NONE;
	lth_node_id id = to == LTH_NONE ? LTH_NONE
					: lth_graph_node(graph, body, &lth_ops[LTH_OP_ID_Optional], name, &from, 1, &to, 1,
							 NULL, 0);
	infer->node = &graph->nodes[infer->id];
	if (id == LTH_NONE)
		return lth_infer_exhausted(infer);
	graph->regions[body].outputs[output] = to;
	enum lth_code code = lth_infer_node(graph, id, infer->diag);
	*out = graph->values[to].type;
	return code;
}

/* Whether the body's output is an optional that lth_control_wrap made of a value. */
static bool is_wrapped(const struct lth_infer *infer, lth_region_id body, uint32_t output)
{
	const struct lth_graph *graph = infer->graph;
	const struct lth_value *value = &graph->values[graph->regions[body].outputs[output]];
	const char *name = lth_arena_printf(graph->arena, "%s.%s%u", infer->node->name, wrapper, output);
	return value->def == LTH_DEF_NODE && name && lth_graph_find_node(graph, name) == value->def_id;
}

enum lth_code lth_control_unwrap(struct lth_infer *infer, lth_region_id body, uint32_t body_output, uint32_t output)
{
	struct lth_graph *graph = infer->graph;
	lth_value_id out = infer->node->outputs[output];
	const struct lth_region *region = &graph->regions[infer->node->region];
	const char *name = lth_arena_printf(graph->arena, "%s.optional%u", infer->node->name, output);
	uint32_t at = 0;
	if (out == LTH_NONE || !name || !is_wrapped(infer, body, body_output) || lth_graph_find_value(graph, name) == out)
		return LTH_OK;
	while (region->nodes[at] != infer->id)
		at++;
	const struct lth_type type = graph->values[out].type;
	lth_value_id optional = lth_graph_value(graph, name, &type);
	if (optional == LTH_NONE)
		return lth_infer_exhausted(infer);
	graph->nodes[infer->id].outputs[output] = optional;
	graph->values[optional].def = LTH_DEF_NODE;
	graph->values[optional].def_id = infer->id;
	graph->values[optional].def_index = output;
	lth_graph_insert(graph, graph->nodes[infer->id].region, at + 1, &lth_ops[LTH_OP_ID_OptionalGetElement],
			 graph->values[out].name, &optional, 1, &out, 1, NULL, 0);
	infer->node = &graph->nodes[infer->id];
	return lth_arena_ok(graph->arena) ? LTH_OK : lth_infer_exhausted(infer);
}
