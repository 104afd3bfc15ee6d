/* What follows an If, moved into its branches: each has a copy of its own then, with the ranks that its results have,
 * and the If gives what its region gives. A model of many such nodes would grow without a bound: copies are counted.
 * Thread rule: as infer.h. */
#include "compiler/ops/control.h"

#include <string.h>

enum { MOST_COPIES = 1 << 14 }; /* nodes of a graph, beyond which none is copied */

struct split {
	struct lth_infer *infer;
	lth_region_id outer;
	lth_node_id *rest; /* the nodes behind the If */
	uint32_t num_rest;
	lth_value_id *results; /* what the outer region gives and the If or the rest make; each once */
	uint32_t num_results;
};

static bool is_made_here(const struct split *split, lth_value_id value)
{
	const struct lth_graph *graph = split->infer->graph;
	if (graph->values[value].def != LTH_DEF_NODE)
		return false;
	lth_node_id maker = graph->values[value].def_id;
	bool found = maker == split->infer->id;
	for (uint32_t i = 0; i < split->num_rest && !found; i++)
		found = split->rest[i] == maker;
	return found;
}

static bool find_rest(struct split *split)
{
	struct lth_graph *graph = split->infer->graph;
	const struct lth_region *outer = &graph->regions[split->outer];
	uint32_t at = 0;
	while (outer->nodes[at] != split->infer->id)
		at++;
	split->num_rest = outer->num_nodes - at - 1;
	split->rest = lth_arena_memdup(graph->arena, outer->nodes + at + 1, split->num_rest * sizeof(lth_node_id));
	split->results = lth_arena_array(graph->arena, outer->num_outputs + 1, sizeof(lth_value_id));
	for (uint32_t k = 0; split->results && split->rest && k < outer->num_outputs; k++) {
		bool known = !is_made_here(split, outer->outputs[k]);
		for (uint32_t i = 0; i < split->num_results && !known; i++)
			known = split->results[i] == outer->outputs[k];
		if (!known)
			split->results[split->num_results++] = outer->outputs[k];
	}
	return split->results && split->rest;
}

/* A branch gets copies; what the If gave is what that branch gives. */
static bool fill_copy(struct split *split, lth_region_id arm)
{
	struct lth_graph *graph = split->infer->graph;
	const struct lth_node *node = split->infer->node;
	struct lth_copier copier;
	if (!lth_copier_init(&copier, graph))
		return false;
	for (uint32_t k = 0; k < node->num_outputs; k++)
		if (node->outputs[k] != LTH_NONE)
			copier.map[node->outputs[k]] = graph->regions[arm].outputs[k];
	bool ok = lth_copy_nodes(&copier, split->rest, split->num_rest, arm);
	split->infer->node = &graph->nodes[split->infer->id];
	graph->regions[arm].num_outputs = 0;
	for (uint32_t i = 0; i < split->num_results && ok; i++)
		ok = lth_graph_output(graph, arm, lth_copied(&copier, split->results[i]));
	return ok;
}

/* A branch gets the nodes themselves. */
static bool fill_first(struct split *split, lth_region_id first)
{
	struct lth_graph *graph = split->infer->graph;
	struct lth_region *arm = &graph->regions[first], *outer = &graph->regions[split->outer];
	lth_node_id *nodes = lth_arena_grow(graph->arena, arm->nodes, &arm->cap_nodes,
					    arm->num_nodes + split->num_rest + 1, sizeof(*nodes));
	if (!nodes)
		return false;
	arm->nodes = nodes;
	for (uint32_t i = 0; i < split->num_rest; i++) {
		graph->nodes[split->rest[i]].region = first;
		nodes[arm->num_nodes++] = split->rest[i];
	}
	outer->num_nodes -= split->num_rest;
	return true;
}

/* The If gives new values with the names of the region's results. */
static bool give_results(struct split *split, lth_region_id first)
{
	struct lth_graph *graph = split->infer->graph;
	struct lth_node *node = &graph->nodes[split->infer->id];
	struct lth_region *arm = &graph->regions[first], *outer = &graph->regions[split->outer];
	uint32_t num_old = node->num_outputs;
	lth_value_id *fresh = lth_arena_array(graph->arena, split->num_results + 1, sizeof(*fresh));
	const lth_value_id *old = node->outputs, *given = lth_arena_memdup(graph->arena, arm->outputs,
									    arm->num_outputs * sizeof(*given));
	if (!fresh || !given)
		return false;
	arm->num_outputs = 0;
	for (uint32_t i = 0; i < split->num_results; i++) {
		lth_value_id was = split->results[i];
		fresh[i] = lth_graph_value(graph, graph->values[was].name, NULL);
		if (fresh[i] == LTH_NONE || !lth_graph_output(graph, first, was))
			return false;
		lth_graph_exchange_names(graph, was, fresh[i]);
		graph->values[fresh[i]].type = graph->values[was].type;
		graph->values[fresh[i]].declared_rank = graph->values[was].declared_rank;
		graph->values[fresh[i]].declared_dtype = graph->values[was].declared_dtype;
		graph->values[fresh[i]].def = LTH_DEF_NODE;
		graph->values[fresh[i]].def_id = split->infer->id;
		graph->values[fresh[i]].def_index = i;
		for (uint32_t k = 0; k < outer->num_outputs; k++)
			if (outer->outputs[k] == was)
				outer->outputs[k] = fresh[i];
	}
	for (uint32_t k = 0; k < num_old; k++)
		if (old[k] != LTH_NONE) {
			lth_graph_replace_uses(graph, old[k], given[k]);
			graph->values[old[k]].def = LTH_DEF_DELETED;
		}
	node->outputs = fresh;
	node->num_outputs = split->num_results;
	return true;
}

bool lth_control_has_rest(const struct lth_infer *infer)
{
	const struct lth_region *outer = &infer->graph->regions[infer->node->region];
	for (uint32_t at = outer->num_nodes; at-- > 0 && outer->nodes[at] != infer->id;)
		if (!infer->graph->nodes[outer->nodes[at]].deleted)
			return true;
	return false;
}

enum lth_code lth_control_move_rest(struct lth_infer *infer, const lth_region_id *arms, uint32_t num_arms)
{
	struct split split = {.infer = infer, .outer = infer->node->region};
	for (uint32_t i = 0; i < num_arms; i++)
		if (infer->graph->regions[arms[i]].num_outputs < infer->node->num_outputs)
			return lth_infer_reject(infer, "a result for each output", "%u for %u",
						infer->graph->regions[arms[i]].num_outputs, infer->node->num_outputs);
	if (num_arms > 1 && lth_graph_live_nodes(infer->graph) > MOST_COPIES)
		return lth_infer_unsupported(infer, "give both branches results of one rank",
					     "its branches differ in rank, as those of many others do: with copies of "
					     "what follows, the model has more than %d nodes",
					     MOST_COPIES);
	bool ok = find_rest(&split);
	for (uint32_t i = 1; i < num_arms && ok; i++)
		ok = fill_copy(&split, arms[i]);
	ok = ok && fill_first(&split, arms[0]) && give_results(&split, arms[0]);
	infer->node = &infer->graph->nodes[infer->id];
	return ok ? LTH_OK : lth_infer_exhausted(infer);
}
