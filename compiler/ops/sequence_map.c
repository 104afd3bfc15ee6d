/* SequenceMap. Where the graph tells what the sequences hold, the body is copied for each element; else it becomes a
 * Loop over their positions that carries the sequences of results. */
#include "compiler/ops/control.h"
#include "compiler/ops/object.h"

/* ---- copies ---- */

/* Element `at` of each sequence; tensors stand for themselves. */
static bool known_inputs(struct lth_infer *infer, struct lth_known_list *lists, uint32_t *out_count)
{
	const struct lth_node *node = infer->node;
	for (uint32_t i = 0; i < node->num_inputs; i++) {
		lists[i].count = 0;
		if (lth_infer_type(infer, i)->kind != LTH_TYPE_SEQUENCE)
			continue;
		if (!lth_list_known(infer->graph, node->inputs[i], &lists[i]))
			return false;
	}
	*out_count = lists[0].count;
	return true;
}

/* One copy of the body, before the node; its results in `out`. */
static enum lth_code copy_body(struct lth_infer *infer, lth_region_id body, const lth_value_id *inputs,
			       lth_value_id *out)
{
	struct lth_graph *graph = infer->graph;
	struct lth_copier copier;
	lth_region_id copy = lth_graph_region(graph, infer->id);
	if (copy == LTH_NONE || !lth_copier_init(&copier, graph))
		return lth_infer_exhausted(infer);
	const struct lth_region region = graph->regions[body];
	for (uint32_t i = 0; i < region.num_inputs; i++)
		copier.map[region.inputs[i]] = inputs[i];
	bool ok = lth_copy_nodes(&copier, region.nodes, region.num_nodes, copy);
	infer->node = &graph->nodes[infer->id];
	enum lth_code code = ok ? lth_control_enter(infer, copy) : LTH_OK;
	if (code)
		return code;
	if (!ok || !lth_control_move_before(infer, copy))
		return lth_infer_exhausted(infer);
	for (uint32_t k = 0; k < infer->node->num_outputs; k++)
		out[k] = lth_copied(&copier, region.outputs[k]);
	return LTH_OK;
}

static enum lth_code unroll(struct lth_infer *infer, lth_region_id body, const struct lth_known_list *lists,
			    uint32_t count)
{
	struct lth_arena *arena = infer->graph->arena;
	uint32_t num_inputs = infer->node->num_inputs, num_outputs = infer->node->num_outputs;
	lth_value_id *inputs = lth_arena_array(arena, num_inputs + 1, sizeof(*inputs));
	lth_value_id *results = lth_arena_array(arena, (size_t)count * num_outputs + 1, sizeof(*results));
	lth_value_id *column = lth_arena_array(arena, count + 1, sizeof(*column));
	if (!inputs || !results || !column)
		return lth_infer_exhausted(infer);
	for (uint32_t at = 0; at < count; at++) {
		for (uint32_t i = 0; i < num_inputs; i++) {
			bool sequence = lth_infer_type(infer, i)->kind == LTH_TYPE_SEQUENCE;
			if (sequence && lists[i].count != count)
				return lth_infer_reject(infer, "sequences of one length", "%u and %u", count,
							lists[i].count);
			inputs[i] = sequence ? lists[i].items[at] : infer->node->inputs[i];
		}
		enum lth_code code = copy_body(infer, body, inputs, results + (size_t)at * num_outputs);
		if (code)
			return code;
	}
	for (uint32_t k = 0; k < num_outputs; k++) {
		for (uint32_t at = 0; at < count; at++)
			column[at] = results[(size_t)at * num_outputs + k];
		lth_build_output(infer, k, lth_build_sequence(infer, column, count));
	}
	return LTH_OK;
}

/* ---- a loop ---- */

static lth_value_id add_node(struct lth_infer *infer, lth_region_id region, enum lth_op_id op,
			     const lth_value_id *inputs, uint32_t count)
{
	lth_value_id out;
	lth_build_in(infer, region, op, inputs, count, NULL, 0, &out, 1);
	return infer->failed ? LTH_NONE : out;
}

/* The loop's body: elements out, the map's body, results in. */
static bool fill_loop(struct lth_infer *infer, lth_region_id body, lth_region_id loop)
{
	struct lth_graph *graph = infer->graph;
	const struct lth_region region = graph->regions[body];
	const struct lth_type number = lth_type_tensor(graph, LTH_DTYPE_I64, 0, NULL);
	const struct lth_type flag = lth_type_tensor(graph, LTH_DTYPE_BOOL, 0, NULL);
	struct lth_copier copier;
	lth_value_id turn = lth_graph_input(graph, loop, "turn", &number);
	lth_value_id more = lth_graph_input(graph, loop, "more", &flag);
	uint32_t num_outputs = infer->node->num_outputs;
	bool ok = lth_graph_output(graph, loop, more);
	for (uint32_t k = 0; k < num_outputs; k++)
		ok = lth_graph_input(graph, loop, "results", NULL) != LTH_NONE && ok;
	if (!ok || turn == LTH_NONE || !lth_copier_init(&copier, graph))
		return false;
	for (uint32_t i = 0; i < region.num_inputs; i++) {
		lth_value_id in[2] = {infer->node->inputs[i], turn};
		bool sequence = lth_infer_type(infer, i)->kind == LTH_TYPE_SEQUENCE;
		lth_value_id element = sequence ? add_node(infer, loop, LTH_OP_ID_SequenceAt, in, 2) : in[0];
		if (sequence && element != LTH_NONE)
			graph->values[element].declared_rank = graph->values[region.inputs[i]].declared_rank;
		copier.map[region.inputs[i]] = element;
	}
	ok = lth_copy_nodes(&copier, region.nodes, region.num_nodes, loop);
	infer->node = &graph->nodes[infer->id];
	for (uint32_t k = 0; k < num_outputs && ok; k++) {
		lth_value_id in[2] = {graph->regions[loop].inputs[2 + k], lth_copied(&copier, region.outputs[k])};
		lth_value_id longer = add_node(infer, loop, LTH_OP_ID_SequenceInsert, in, 2);
		ok = longer != LTH_NONE && lth_graph_output(graph, loop, longer);
	}
	return ok && lth_arena_ok(graph->arena);
}

static enum lth_code build_loop(struct lth_infer *infer, lth_region_id body)
{
	struct lth_graph *graph = infer->graph;
	uint32_t num_outputs = infer->node->num_outputs;
	lth_region_id loop = lth_graph_region(graph, LTH_NONE);
	lth_value_id *inputs = lth_arena_array(graph->arena, num_outputs + 2, sizeof(*inputs));
	lth_value_id *outputs = lth_arena_array(graph->arena, num_outputs + 1, sizeof(*outputs));
	bool *wanted = lth_arena_array(graph->arena, num_outputs + 1, sizeof(*wanted));
	if (loop == LTH_NONE || !inputs || !outputs || !wanted || !fill_loop(infer, body, loop))
		return lth_infer_exhausted(infer);
	inputs[0] = lth_build1(infer, LTH_OP_ID_SequenceLength, infer->node->inputs[0]);
	inputs[1] = LTH_NONE;
	for (uint32_t k = 0; k < num_outputs; k++) {
		inputs[2 + k] = lth_build_empty(infer);
		wanted[k] = true;
	}
	const struct lth_attr attr = {.name = "body", .kind = LTH_ATTR_REGION, .count = 1, .id = loop};
	lth_build_many(infer, LTH_OP_ID_Loop, inputs, num_outputs + 2, &attr, 1, wanted, outputs, num_outputs);
	for (uint32_t k = 0; k < num_outputs; k++)
		lth_build_output(infer, k, outputs[k]);
	return LTH_OK;
}

static enum lth_code expand_sequence_map(struct lth_infer *infer)
{
	lth_region_id body = lth_control_region(infer->node, "body");
	const struct lth_region *region = &infer->graph->regions[body];
	if (region->num_inputs != infer->node->num_inputs || region->num_outputs < infer->node->num_outputs)
		return lth_infer_reject(infer, "a body that takes and gives what the node does",
					"%u inputs and %u outputs for %u and %u", region->num_inputs,
					region->num_outputs, infer->node->num_inputs, infer->node->num_outputs);
	for (uint32_t i = 0; i < infer->node->num_inputs; i++)
		if (infer->node->inputs[i] == LTH_NONE)
			return lth_infer_reject(infer, NULL, "input %u is missing", i);
	struct lth_known_list *lists = lth_arena_array(infer->graph->arena, infer->node->num_inputs, sizeof(*lists));
	uint32_t count;
	if (!lists)
		return lth_infer_exhausted(infer);
	return known_inputs(infer, lists, &count) ? unroll(infer, body, lists, count) : build_loop(infer, body);
}

const struct lth_op_impl lth_impl_sequence_map = {.expand = expand_sequence_map};
