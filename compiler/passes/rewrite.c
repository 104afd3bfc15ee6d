/* The walk of rewriting passes and what keeps its bookkeeping right. Thread rule: as the graph's. */
#include "compiler/passes/rewrite.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static void fail(struct lth_rewrite *rewrite, enum lth_code code)
{
	if (rewrite->code == LTH_OK)
		rewrite->code = code;
}

static void exhausted(struct lth_rewrite *rewrite)
{
	fail(rewrite, lth_diag_fail(rewrite->diag, LTH_OUT_OF_MEMORY, "passes", NULL, "raise the memory limit",
				    "the compile's arena is exhausted"));
}

/* Entries for values that were made since the last call. */
static bool cover_values(struct lth_rewrite *rewrite)
{
	struct lth_graph *graph = rewrite->graph;
	uint32_t need = graph->num_values;
	uint32_t *uses = lth_arena_grow(graph->arena, rewrite->uses, &rewrite->cap_uses, need, sizeof(*uses));
	lth_value_id *forward = lth_arena_grow(graph->arena, rewrite->forward, &rewrite->cap_forward, need,
					       sizeof(*forward));
	bool *pinned = lth_arena_grow(graph->arena, rewrite->pinned, &rewrite->cap_pinned, need, sizeof(*pinned));
	if (!uses || !forward || !pinned) {
		exhausted(rewrite);
		return false;
	}
	rewrite->uses = uses;
	rewrite->forward = forward;
	rewrite->pinned = pinned;
	for (; rewrite->num_values < need; rewrite->num_values++) {
		uses[rewrite->num_values] = 0;
		forward[rewrite->num_values] = rewrite->num_values;
		pinned[rewrite->num_values] = false;
	}
	return true;
}

/* What stands for `value` now. Chains stay short: they are cut to their end on the way. */
static lth_value_id resolve(struct lth_rewrite *rewrite, lth_value_id value)
{
	lth_value_id end = value;
	while (rewrite->forward[end] != end)
		end = rewrite->forward[end];
	while (rewrite->forward[value] != end) {
		lth_value_id next = rewrite->forward[value];
		rewrite->forward[value] = end;
		value = next;
	}
	return end;
}

static void count_uses(struct lth_rewrite *rewrite)
{
	const struct lth_graph *graph = rewrite->graph;
	for (lth_region_id r = 0; r < graph->num_regions; r++) {
		const struct lth_region *region = &graph->regions[r];
		for (uint32_t i = 0; i < region->num_nodes; i++) {
			const struct lth_node *node = &graph->nodes[region->nodes[i]];
			for (uint32_t k = 0; k < node->num_inputs && !node->deleted; k++)
				if (node->inputs[k] != LTH_NONE)
					rewrite->uses[node->inputs[k]]++;
			for (uint32_t a = 0; a < node->num_attrs && !node->deleted; a++)
				if (node->attrs[a].kind == LTH_ATTR_TENSOR)
					rewrite->uses[node->attrs[a].id]++;
		}
		for (uint32_t k = 0; k < region->num_outputs; k++) {
			rewrite->uses[region->outputs[k]]++;
			rewrite->pinned[region->outputs[k]] = true;
		}
	}
}

static bool dead(const struct lth_rewrite *rewrite, const struct lth_node *node)
{
	for (uint32_t k = 0; k < node->num_outputs; k++)
		if (node->outputs[k] != LTH_NONE &&
		    (rewrite->uses[node->outputs[k]] > 0 || lth_value_binds(rewrite->graph, node->outputs[k])))
			return false;
	return node->op->kind != LTH_OP_CONTROL;
}

/* One reading less; a node that nobody reads any more goes, and its readings with it. Depth is bounded by giving up the
 * recursion: what is left over is DeadCodeElimination's. */
static void release(struct lth_rewrite *rewrite, lth_value_id value, unsigned depth)
{
	struct lth_graph *graph = rewrite->graph;
	assert(rewrite->uses[value] > 0);
	if (--rewrite->uses[value] > 0 || graph->values[value].def != LTH_DEF_NODE || depth > 64)
		return;
	struct lth_node *node = &graph->nodes[graph->values[value].def_id];
	if (node->deleted || !dead(rewrite, node))
		return;
	uint32_t num_inputs = node->num_inputs;
	lth_graph_delete_node(graph, graph->values[value].def_id);
	for (uint32_t k = 0; k < num_inputs; k++)
		if (node->inputs[k] != LTH_NONE)
			release(rewrite, resolve(rewrite, node->inputs[k]), depth + 1);
}

static void resolve_inputs(struct lth_rewrite *rewrite, struct lth_node *node)
{
	for (uint32_t k = 0; k < node->num_inputs; k++)
		if (node->inputs[k] != LTH_NONE)
			node->inputs[k] = resolve(rewrite, node->inputs[k]);
	for (uint32_t a = 0; a < node->num_attrs; a++)
		if (node->attrs[a].kind == LTH_ATTR_TENSOR)
			node->attrs[a].id = resolve(rewrite, node->attrs[a].id);
}

static void walk_region(struct lth_rewrite *rewrite, lth_region_id region, lth_visit_fn visit, void *context)
{
	struct lth_graph *graph = rewrite->graph;
	for (uint32_t i = 0; i < graph->regions[region].num_nodes && rewrite->code == LTH_OK; i++) {
		lth_node_id id = graph->regions[region].nodes[i];
		if (graph->nodes[id].deleted)
			continue;
		resolve_inputs(rewrite, &graph->nodes[id]);
		for (uint32_t a = 0; a < graph->nodes[id].num_attrs; a++)
			if (graph->nodes[id].attrs[a].kind == LTH_ATTR_REGION)
				walk_region(rewrite, graph->nodes[id].attrs[a].id, visit, context);
		if (graph->nodes[id].deleted || rewrite->code != LTH_OK)
			continue;
		rewrite->region = region;
		rewrite->position = i;
		rewrite->node = id;
		visit(rewrite, id, context);
		i = rewrite->position;
	}
	for (uint32_t k = 0; k < graph->regions[region].num_outputs; k++)
		graph->regions[region].outputs[k] = resolve(rewrite, graph->regions[region].outputs[k]);
}

enum lth_code lth_rewrite_run(struct lth_graph *graph, lth_visit_fn visit, void *context, struct lth_diag *diag,
			      uint32_t *out_changes)
{
	struct lth_rewrite rewrite = {.graph = graph, .diag = diag};
	if (cover_values(&rewrite)) {
		count_uses(&rewrite);
		walk_region(&rewrite, 0, visit, context);
		lth_graph_compact(graph);
	}
	if (rewrite.code == LTH_OK && !lth_arena_ok(graph->arena))
		exhausted(&rewrite);
	*out_changes = rewrite.changes;
	return rewrite.code;
}

static bool may_stand_for_output(const struct lth_rewrite *rewrite, lth_value_id from, lth_value_id to)
{
	const struct lth_graph *graph = rewrite->graph;
	const struct lth_value *value = &graph->values[to];
	return !rewrite->pinned[to] && value->def == LTH_DEF_NODE &&
	       graph->nodes[value->def_id].region == graph->nodes[graph->values[from].def_id].region &&
	       lth_same_type(graph, from, to);
}

/* Gives the visited node's outputs up and takes it out of the graph if nobody reads any of them. */
static void delete_if_dead(struct lth_rewrite *rewrite, lth_node_id id)
{
	struct lth_graph *graph = rewrite->graph;
	struct lth_node *node = &graph->nodes[id];
	if (node->deleted || !dead(rewrite, node))
		return;
	uint32_t num_inputs = node->num_inputs;
	lth_graph_delete_node(graph, id);
	for (uint32_t k = 0; k < num_inputs; k++)
		if (node->inputs[k] != LTH_NONE)
			release(rewrite, node->inputs[k], 0);
}

/* Regions give back a new value with the old one's name; other readers keep the old one. LTH_NONE on failure. */
static lth_value_id split_output(struct lth_rewrite *rewrite, lth_value_id from)
{
	struct lth_graph *graph = rewrite->graph;
	struct lth_type type = graph->values[from].type;
	lth_value_id output = lth_graph_value(graph, graph->values[from].name, &type);
	if (output == LTH_NONE || !cover_values(rewrite)) {
		exhausted(rewrite);
		return LTH_NONE;
	}
	lth_graph_exchange_names(graph, from, output);
	graph->values[output].contents = graph->values[from].contents;
	for (lth_region_id r = 0; r < graph->num_regions; r++)
		for (uint32_t k = 0; k < graph->regions[r].num_outputs; k++)
			if (graph->regions[r].outputs[k] == from) {
				graph->regions[r].outputs[k] = output;
				rewrite->uses[output]++;
				rewrite->uses[from]--;
			}
	rewrite->pinned[from] = false;
	rewrite->pinned[output] = true;
	return output;
}

static uint32_t region_readings(const struct lth_graph *graph, lth_value_id value)
{
	uint32_t count = 0;
	for (lth_region_id r = 0; r < graph->num_regions; r++)
		for (uint32_t k = 0; k < graph->regions[r].num_outputs; k++)
			count += graph->regions[r].outputs[k] == value;
	return count;
}

/* The visited node becomes an Identity of `to` for the regions; all others read `to` itself. */
static bool keep_as_identity(struct lth_rewrite *rewrite, lth_value_id from, lth_value_id to)
{
	struct lth_graph *graph = rewrite->graph;
	const struct lth_node *old = &graph->nodes[rewrite->node];
	if (lth_op_id(old->op) == LTH_OP_ID_Identity && old->inputs[0] == to &&
	    region_readings(graph, from) == rewrite->uses[from])
		return false;
	lth_value_id output = split_output(rewrite, from);
	if (output == LTH_NONE)
		return false;
	struct lth_node *node = &graph->nodes[rewrite->node];
	struct lth_value *value = &graph->values[output];
	value->def = LTH_DEF_NODE;
	value->def_id = rewrite->node;
	value->def_index = 0;
	graph->values[from].def = LTH_DEF_DELETED;
	node->outputs[0] = output;
	lth_rewrite_become(rewrite, LTH_OP_ID_Identity, &to, 1, NULL, 0);
	rewrite->uses[to] += rewrite->uses[from];
	rewrite->uses[from] = 0;
	rewrite->forward[from] = to;
	lth_graph_rebind(graph, from, to);
	return true;
}

bool lth_rewrite_replace(struct lth_rewrite *rewrite, lth_value_id from, lth_value_id to)
{
	struct lth_graph *graph = rewrite->graph;
	assert(graph->values[from].def == LTH_DEF_NODE && from != to);
	lth_node_id id = graph->values[from].def_id;
	if (lth_value_binds(graph, from))
		return false; /* sizes are bound by its elements, under its name */
	if (rewrite->pinned[from]) {
		if (!may_stand_for_output(rewrite, from, to)) {
			assert(id == rewrite->node && graph->values[from].def_index == 0);
			return keep_as_identity(rewrite, from, to);
		}
		lth_graph_exchange_names(graph, from, to);
		rewrite->pinned[to] = true;
		rewrite->pinned[from] = false;
	}
	rewrite->changes++;
	rewrite->uses[to] += rewrite->uses[from];
	rewrite->uses[from] = 0;
	rewrite->forward[from] = to;
	lth_graph_rebind(graph, from, to);
	delete_if_dead(rewrite, id);
	return true;
}

/* Types may be known better than a pass knows them; what is known of contents must not get lost. */
static bool infer(struct lth_rewrite *rewrite, lth_node_id id)
{
	enum lth_code code = lth_infer_node(rewrite->graph, id, rewrite->diag);
	if (code != LTH_OK)
		fail(rewrite, code);
	return code == LTH_OK && cover_values(rewrite);
}

lth_value_id lth_rewrite_insert(struct lth_rewrite *rewrite, enum lth_op_id op, const char *suffix,
				const lth_value_id *inputs, uint32_t num_inputs, const struct lth_attr *attrs,
				uint32_t num_attrs)
{
	struct lth_graph *graph = rewrite->graph;
	const char *name = lth_arena_printf(graph->arena, "%s.%s", graph->nodes[rewrite->node].name, suffix);
	struct lth_type unknown = {.kind = LTH_TYPE_TENSOR, .dtype = LTH_NUM_DTYPES, .rank = LTH_RANK_UNKNOWN};
	lth_value_id output = name ? lth_graph_value(graph, name, &unknown) : LTH_NONE;
	if (output == LTH_NONE) {
		exhausted(rewrite);
		return LTH_NONE;
	}
	lth_node_id id = lth_graph_insert(graph, rewrite->region, rewrite->position, &lth_ops[op], name, inputs,
					  num_inputs, &output, 1, attrs, num_attrs);
	if (id == LTH_NONE || !cover_values(rewrite)) {
		exhausted(rewrite);
		return LTH_NONE;
	}
	rewrite->position++;
	rewrite->changes++;
	for (uint32_t k = 0; k < num_inputs; k++)
		if (inputs[k] != LTH_NONE)
			rewrite->uses[inputs[k]]++;
	return infer(rewrite, id) ? output : LTH_NONE;
}

void lth_rewrite_become(struct lth_rewrite *rewrite, enum lth_op_id op, const lth_value_id *inputs,
			uint32_t num_inputs, const struct lth_attr *attrs, uint32_t num_attrs)
{
	struct lth_graph *graph = rewrite->graph;
	struct lth_node *node = &graph->nodes[rewrite->node];
	const lth_value_id *old_inputs = node->inputs;
	uint32_t num_old_inputs = node->num_inputs;
	node->inputs = lth_arena_memdup(graph->arena, inputs, num_inputs * sizeof(*inputs));
	node->attrs = lth_arena_memdup(graph->arena, attrs, num_attrs * sizeof(*attrs));
	if (!node->inputs || !node->attrs) {
		exhausted(rewrite);
		return;
	}
	node->op = &lth_ops[op];
	node->num_inputs = num_inputs;
	node->num_attrs = num_attrs;
	for (uint32_t k = 1; k < node->num_outputs; k++)
		if (node->outputs[k] != LTH_NONE) {
			assert(rewrite->uses[node->outputs[k]] == 0);
			graph->values[node->outputs[k]].def = LTH_DEF_DELETED;
		}
	node->num_outputs = 1;
	rewrite->changes++;
	for (uint32_t k = 0; k < num_inputs; k++)
		if (inputs[k] != LTH_NONE)
			rewrite->uses[inputs[k]]++;
	for (uint32_t k = 0; k < num_old_inputs; k++)
		if (old_inputs[k] != LTH_NONE)
			release(rewrite, old_inputs[k], 0);
	if (op != LTH_OP_ID_Identity)
		infer(rewrite, rewrite->node);
}

bool lth_rewrite_unpin(struct lth_rewrite *rewrite, uint32_t index)
{
	struct lth_graph *graph = rewrite->graph;
	lth_value_id value = graph->nodes[rewrite->node].outputs[index];
	if (!rewrite->pinned[value])
		return true;
	lth_value_id output = split_output(rewrite, value);
	if (output == LTH_NONE)
		return false;
	lth_node_id id = lth_graph_insert(graph, rewrite->region, rewrite->position + 1, &lth_ops[LTH_OP_ID_Identity],
					  graph->values[output].name, &value, 1, &output, 1, NULL, 0);
	if (id == LTH_NONE)
		exhausted(rewrite);
	rewrite->uses[value]++;
	return id != LTH_NONE;
}

void lth_rewrite_inline(struct lth_rewrite *rewrite, lth_region_id inner)
{
	struct lth_graph *graph = rewrite->graph;
	struct lth_region *from = &graph->regions[inner], *to = &graph->regions[rewrite->region];
	lth_node_id *nodes = lth_arena_grow(graph->arena, to->nodes, &to->cap_nodes, to->num_nodes + from->num_nodes,
					    sizeof(*nodes));
	if (!nodes) {
		exhausted(rewrite);
		return;
	}
	to->nodes = nodes;
	memmove(nodes + rewrite->position + from->num_nodes, nodes + rewrite->position,
		(to->num_nodes - rewrite->position) * sizeof(*nodes));
	memcpy(nodes + rewrite->position, from->nodes, from->num_nodes * sizeof(*nodes));
	for (uint32_t i = 0; i < from->num_nodes; i++)
		graph->nodes[from->nodes[i]].region = rewrite->region;
	to->num_nodes += from->num_nodes;
	rewrite->position += from->num_nodes;
	for (uint32_t k = 0; k < from->num_outputs; k++) {
		rewrite->uses[from->outputs[k]]--;
		rewrite->pinned[from->outputs[k]] = false;
	}
	for (lth_region_id r = 0; r < graph->num_regions; r++) /* those that another region gives back, too, stay so */
		for (uint32_t k = 0; k < graph->regions[r].num_outputs && r != inner; k++)
			rewrite->pinned[graph->regions[r].outputs[k]] = true;
	from->num_nodes = from->num_outputs = 0;
	lth_graph_move_guards(graph, inner, rewrite->region);
	rewrite->changes++;
}

void lth_rewrite_consumed(struct lth_rewrite *rewrite)
{
	const struct lth_node *node = &rewrite->graph->nodes[rewrite->node];
	rewrite->changes++;
	for (uint32_t k = 0; k < node->num_inputs; k++)
		if (node->inputs[k] != LTH_NONE)
			release(rewrite, node->inputs[k], 0);
}

void lth_rewrite_set_input(struct lth_rewrite *rewrite, uint32_t index, lth_value_id to)
{
	struct lth_node *node = &rewrite->graph->nodes[rewrite->node];
	lth_value_id from = node->inputs[index];
	node->inputs[index] = to;
	rewrite->uses[to]++;
	rewrite->changes++;
	if (from != LTH_NONE)
		release(rewrite, from, 0);
}

lth_value_id lth_rewrite_constant(struct lth_rewrite *rewrite, const char *suffix, enum lth_dtype dtype,
				  uint32_t rank, const int64_t *shape, const void *data, int64_t bytes)
{
	struct lth_graph *graph = rewrite->graph;
	const char *name = lth_arena_printf(graph->arena, "%s.%s", graph->nodes[rewrite->node].name, suffix);
	lth_value_id value = LTH_NONE;
	if (name && data)
		value = lth_graph_constant(graph, name, dtype, rank, shape, data, bytes);
	if (value == LTH_NONE || !cover_values(rewrite)) {
		exhausted(rewrite);
		return LTH_NONE;
	}
	return value;
}

lth_value_id lth_rewrite_scalar_f(struct lth_rewrite *rewrite, const char *suffix, enum lth_dtype dtype, double value)
{
	char *data = lth_arena_alloc(rewrite->graph->arena, sizeof(double));
	int64_t bytes;
	if (!data || !lth_store_real(dtype, data, 0, value) || !lth_dtype_bytes(dtype, 1, &bytes))
		return LTH_NONE;
	return lth_rewrite_constant(rewrite, suffix, dtype, 0, NULL, data, bytes);
}

const struct lth_node *lth_producer(const struct lth_graph *graph, lth_value_id value, enum lth_op_id op)
{
	if (value == LTH_NONE || graph->values[value].def != LTH_DEF_NODE || graph->values[value].def_index != 0)
		return NULL;
	const struct lth_node *node = &graph->nodes[graph->values[value].def_id];
	return lth_op_id(node->op) == op ? node : NULL;
}

const struct lth_node *lth_sole_producer(const struct lth_rewrite *rewrite, lth_value_id value, enum lth_op_id op)
{
	const struct lth_node *node = lth_producer(rewrite->graph, value, op);
	return node && rewrite->uses[value] == 1 ? node : NULL;
}

bool lth_same_type(const struct lth_graph *graph, lth_value_id a, lth_value_id b)
{
	const struct lth_type *first = &graph->values[a].type, *second = &graph->values[b].type;
	if (first->kind != LTH_TYPE_TENSOR || second->kind != LTH_TYPE_TENSOR || first->dtype != second->dtype ||
	    first->rank != second->rank || first->rank == LTH_RANK_UNKNOWN)
		return false;
	for (uint32_t axis = 0; axis < first->rank; axis++)
		if (lth_dim_equal(graph->dims, first->dims[axis], second->dims[axis]) != LTH_YES)
			return false;
	return true;
}

bool lth_constant_number(struct lth_graph *graph, lth_value_id value, double *out)
{
	if (value == LTH_NONE || graph->values[value].def != LTH_DEF_CONSTANT)
		return false;
	const struct lth_value *entry = &graph->values[value];
	int64_t count = 1, shape[LTH_MAX_RANK];
	double number, other;
	if (entry->type.rank > LTH_MAX_RANK || !lth_type_static(graph, &entry->type, shape))
		return false;
	for (uint32_t axis = 0; axis < entry->type.rank; axis++)
		count *= shape[axis]; /* the bytes exist: no overflow */
	if (count < 1 || !lth_load_real(entry->type.dtype, entry->constant.data, 0, &number))
		return false;
	for (int64_t i = 1; i < count; i++)
		if (!lth_load_real(entry->type.dtype, entry->constant.data, i, &other) ||
		    memcmp(&other, &number, sizeof(number)) != 0)
			return false;
	*out = number;
	return true;
}
