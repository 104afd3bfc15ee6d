/* The live bound of a graph: how many bytes of node outputs must exist at once, in the order given. Once groups are
 * formed, a group is one step and values that never leave it take no memory. Thread rule: reads the graph only. */
#include "compiler/passes/pass.h"

#include "compiler/ops/op.h"
#include "runtime/base/checked.h"

#include <stdlib.h>

/* Bytes at the hint; false if unknown. Objects and strings have no size known ahead. */
static bool value_bytes(const struct lth_graph *graph, const struct lth_value *value, int64_t *out_bytes)
{
	const struct lth_type *type = &value->type;
	if (type->kind != LTH_TYPE_TENSOR || type->dtype == LTH_NUM_DTYPES || type->rank == LTH_RANK_UNKNOWN)
		return false;
	int64_t elements = 1;
	for (uint32_t axis = 0; axis < type->rank; axis++) {
		int64_t extent;
		if (!lth_dim_eval_hint(graph->dims, type->dims[axis], &extent) ||
		    !lth_mul_i64(elements, extent < 0 ? 0 : extent, &elements))
			return false;
	}
	return lth_dtype_bytes(type->dtype, elements, out_bytes);
}

/* By value: the steps of the main region at which it is made and last read. Nodes in inner regions count as their
 * outermost control node's step. */
struct lives {
	const struct lth_graph *graph;
	uint32_t *step;  /* by node: step of the main region */
	uint32_t *place; /* by group: place of its last node in the main region */
	uint32_t *last;  /* by value: last step that reads it */
	bool *leaves;    /* by value: read outside of its group */
};

static uint32_t main_region_step(const struct lives *lives, lth_node_id id)
{
	const struct lth_graph *graph = lives->graph;
	while (graph->regions[graph->nodes[id].region].parent != LTH_NONE)
		id = graph->regions[graph->nodes[id].region].parent;
	return lives->step[id];
}

static void number_steps(struct lives *lives)
{
	const struct lth_graph *graph = lives->graph;
	const struct lth_region *region = &graph->regions[0];
	/* A group's step is the place of its last node: then all it reads is there. */
	for (uint32_t i = 0; i < region->num_nodes; i++) {
		const struct lth_node *node = &graph->nodes[region->nodes[i]];
		if (node->group != LTH_NONE && graph->num_groups > 0)
			lives->place[node->group] = i;
	}
	for (uint32_t i = 0; i < region->num_nodes; i++) {
		const struct lth_node *node = &graph->nodes[region->nodes[i]];
		bool grouped = node->group != LTH_NONE && graph->num_groups > 0;
		lives->step[region->nodes[i]] = grouped ? lives->place[node->group] : i;
	}
}

static void find_last_reads(struct lives *lives)
{
	const struct lth_graph *graph = lives->graph;
	for (lth_node_id id = 0; id < graph->num_nodes; id++) {
		const struct lth_node *node = &graph->nodes[id];
		if (node->deleted)
			continue;
		uint32_t step = main_region_step(lives, id);
		for (uint32_t k = 0; k < node->num_inputs; k++) {
			if (node->inputs[k] == LTH_NONE)
				continue;
			const struct lth_value *value = &graph->values[node->inputs[k]];
			bool inside = value->def == LTH_DEF_NODE && node->group != LTH_NONE && graph->num_groups > 0 &&
				      graph->nodes[value->def_id].group == node->group;
			if (inside)
				continue;
			lives->leaves[node->inputs[k]] = true;
			if (step > lives->last[node->inputs[k]])
				lives->last[node->inputs[k]] = step;
		}
	}
	for (lth_region_id r = 1; r < graph->num_regions; r++)
		for (uint32_t k = 0; k < graph->regions[r].num_outputs; k++) {
			lth_value_id value = graph->regions[r].outputs[k];
			if (graph->regions[r].parent == LTH_NONE || graph->nodes[graph->regions[r].parent].deleted)
				continue;
			uint32_t step = main_region_step(lives, graph->regions[r].parent);
			lives->leaves[value] = true;
			if (step > lives->last[value])
				lives->last[value] = step;
		}
}

static int64_t sweep(const struct lives *lives, const bool *is_output, int64_t *change)
{
	const struct lth_graph *graph = lives->graph;
	const struct lth_region *region = &graph->regions[0];
	for (uint32_t i = 0; i < region->num_nodes; i++) {
		const struct lth_node *node = &graph->nodes[region->nodes[i]];
		for (uint32_t k = 0; k < node->num_outputs && !node->deleted; k++) {
			lth_value_id id = node->outputs[k];
			int64_t bytes;
			if (id == LTH_NONE || is_output[id] || (graph->num_groups > 0 && !lives->leaves[id]))
				continue;
			if (!value_bytes(graph, &graph->values[id], &bytes))
				return -1;
			uint32_t made = lives->step[region->nodes[i]];
			uint32_t read = lives->last[id] > made ? lives->last[id] : made;
			if (!lth_add_i64(change[made], bytes, &change[made]) ||
			    !lth_sub_i64(change[read + 1], bytes, &change[read + 1]))
				return -1;
		}
	}
	int64_t live = 0, most = 0;
	for (uint32_t i = 0; i < region->num_nodes; i++) {
		if (!lth_add_i64(live, change[i], &live))
			return -1;
		if (live > most)
			most = live;
	}
	return most;
}

int64_t lth_graph_live_bound(const struct lth_graph *graph)
{
	uint32_t num_main = graph->regions[0].num_nodes;
	struct lives lives = {.graph = graph};
	lives.step = calloc((size_t)graph->num_nodes + 1, sizeof(*lives.step));
	lives.place = calloc((size_t)graph->num_nodes + graph->num_groups + 1, sizeof(*lives.place));
	lives.last = calloc((size_t)graph->num_values + 1, sizeof(*lives.last));
	lives.leaves = calloc((size_t)graph->num_values + 1, sizeof(*lives.leaves));
	bool *is_output = calloc((size_t)graph->num_values + 1, sizeof(*is_output));
	int64_t *change = calloc((size_t)num_main + 2, sizeof(*change));
	int64_t bound = -1;
	if (lives.step && lives.place && lives.last && lives.leaves && is_output && change) {
		for (uint32_t k = 0; k < graph->regions[0].num_outputs; k++)
			is_output[graph->regions[0].outputs[k]] = true;
		number_steps(&lives);
		find_last_reads(&lives);
		bound = sweep(&lives, is_output, change);
	}
	free(lives.step);
	free(lives.place);
	free(lives.last);
	free(lives.leaves);
	free(is_output);
	free(change);
	return bound;
}
