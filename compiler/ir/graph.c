/* The graph's building blocks. See graph.h. */
#include "compiler/ir/graph_internal.h"

#include "runtime/base/hash.h"

#include <assert.h>
#include <string.h>

/* ---- names: one table for values and one for nodes ---- */

static const char *name_of(const struct lth_graph *graph, bool of_node, uint32_t id)
{
	return of_node ? graph->nodes[id].name : graph->values[id].name;
}

static uint64_t hash_name(const char *name)
{
	return lth_hash_bytes(name, strlen(name), 0);
}

static uint32_t find_name(const struct lth_graph *graph, const struct lth_name_table *table, const char *name)
{
	uint64_t hash = hash_name(name);
	for (uint32_t at = 0, id; (id = lth_id_table_next(&table->ids, hash, &at)) != LTH_ID_NONE;)
		if (strcmp(name_of(graph, table->of_nodes, id), name) == 0)
			return id;
	return LTH_NONE;
}

/* A copy of the name, with ".N" behind it where it is taken. */
static const char *unique_name(struct lth_graph *graph, struct lth_name_table *table, const char *name)
{
	const char *fallback = table->of_nodes ? "node" : "v";
	const char *base = name && *name ? name : fallback, *candidate = base;
	while (find_name(graph, table, candidate) != LTH_NONE) {
		candidate = lth_arena_printf(graph->arena, "%s.%u", base, ++table->suffix);
		if (!candidate)
			return NULL;
	}
	return candidate == base ? lth_arena_strdup(graph->arena, base) : candidate;
}

static bool take_name(struct lth_graph *graph, struct lth_name_table *table, uint32_t id)
{
	return lth_id_table_put(&table->ids, graph->arena, hash_name(name_of(graph, table->of_nodes, id)), id);
}

lth_value_id lth_graph_find_value(const struct lth_graph *graph, const char *name)
{
	return find_name(graph, &graph->names->values, name);
}

lth_node_id lth_graph_find_node(const struct lth_graph *graph, const char *name)
{
	return find_name(graph, &graph->names->nodes, name);
}

void lth_graph_exchange_names(struct lth_graph *graph, lth_value_id a, lth_value_id b)
{
	struct lth_id_table *ids = &graph->names->values.ids;
	uint64_t hash_a = hash_name(graph->values[a].name), hash_b = hash_name(graph->values[b].name);
	const char *name = graph->values[a].name;
	graph->values[a].name = graph->values[b].name;
	graph->values[b].name = name;
	if (hash_a == hash_b) /* found by either */
		return;
	lth_id_table_replace(ids, hash_a, a, b);
	lth_id_table_replace(ids, hash_b, b, a);
}

/* ---- building ---- */

struct lth_graph *lth_graph_create(struct lth_arena *arena)
{
	struct lth_graph *graph = lth_arena_alloc(arena, sizeof(*graph));
	if (!graph)
		return NULL;
	graph->arena = arena;
	graph->name = "";
	graph->dims = lth_dims_create(arena);
	graph->names = lth_arena_alloc(arena, sizeof(*graph->names));
	if (!graph->dims || !graph->names)
		return NULL;
	graph->names->nodes.of_nodes = true;
	return lth_graph_region(graph, LTH_NONE) == 0 ? graph : NULL;
}

lth_value_id lth_graph_value(struct lth_graph *graph, const char *name, const struct lth_type *type)
{
	struct lth_value *values =
		lth_arena_grow(graph->arena, graph->values, &graph->cap_values, graph->num_values + 1, sizeof(*values));
	if (!values)
		return LTH_NONE;
	graph->values = values;
	struct lth_value *value = &values[graph->num_values];
	*value = (struct lth_value){.def_id = LTH_NONE, .declared_rank = LTH_RANK_UNKNOWN,
				     .declared_dtype = LTH_NUM_DTYPES};
	value->type = (struct lth_type){.kind = LTH_TYPE_TENSOR, .dtype = LTH_NUM_DTYPES, .rank = LTH_RANK_UNKNOWN};
	if (type)
		value->type = *type;
	value->name = unique_name(graph, &graph->names->values, name);
	if (!value->name || !take_name(graph, &graph->names->values, graph->num_values))
		return LTH_NONE;
	return graph->num_values++;
}

lth_value_id lth_graph_constant(struct lth_graph *graph, const char *name, enum lth_dtype dtype, uint32_t rank,
				const int64_t *shape, const void *data, int64_t bytes)
{
	assert(rank <= LTH_MAX_RANK);
	lth_dim dims[LTH_MAX_RANK];
	for (uint32_t i = 0; i < rank; i++)
		dims[i] = lth_dim_const(graph->dims, shape[i]);
	struct lth_type type = lth_type_tensor(graph, dtype, rank, dims);
	lth_value_id id = lth_graph_value(graph, name, &type);
	if (id == LTH_NONE)
		return LTH_NONE;
	graph->values[id].def = LTH_DEF_CONSTANT;
	graph->values[id].constant = (struct lth_constant){.data = data, .bytes = bytes};
	return id;
}

/* Appends to a list of ids; false when the arena is exhausted. */
static bool append_id(struct lth_arena *arena, uint32_t **list, uint32_t *count, uint32_t *capacity, uint32_t id)
{
	uint32_t *grown = lth_arena_grow(arena, *list, capacity, *count + 1, sizeof(*grown));
	if (!grown)
		return false;
	*list = grown;
	grown[(*count)++] = id;
	return true;
}

lth_region_id lth_graph_region(struct lth_graph *graph, lth_node_id parent)
{
	struct lth_region *regions = lth_arena_grow(graph->arena, graph->regions, &graph->cap_regions,
						    graph->num_regions + 1, sizeof(*regions));
	if (!regions)
		return LTH_NONE;
	graph->regions = regions;
	regions[graph->num_regions] = (struct lth_region){.parent = parent};
	return graph->num_regions++;
}

lth_value_id lth_graph_input(struct lth_graph *graph, lth_region_id region, const char *name,
			     const struct lth_type *type)
{
	lth_value_id id = lth_graph_value(graph, name, type);
	if (id == LTH_NONE)
		return LTH_NONE;
	struct lth_region *r = &graph->regions[region];
	struct lth_value *value = &graph->values[id];
	value->def = region == 0 ? LTH_DEF_INPUT : LTH_DEF_REGION_INPUT;
	value->def_id = region == 0 ? r->num_inputs : region;
	value->def_index = r->num_inputs;
	return append_id(graph->arena, &r->inputs, &r->num_inputs, &r->cap_inputs, id) ? id : LTH_NONE;
}

bool lth_graph_output(struct lth_graph *graph, lth_region_id region, lth_value_id value)
{
	struct lth_region *r = &graph->regions[region];
	return append_id(graph->arena, &r->outputs, &r->num_outputs, &r->cap_outputs, value);
}

static bool fill_node(struct lth_graph *graph, struct lth_node *node, lth_node_id id)
{
	node->inputs = lth_arena_memdup(graph->arena, node->inputs, node->num_inputs * sizeof(*node->inputs));
	node->outputs = lth_arena_memdup(graph->arena, node->outputs, node->num_outputs * sizeof(*node->outputs));
	node->attrs = lth_arena_memdup(graph->arena, node->attrs, node->num_attrs * sizeof(*node->attrs));
	if (!node->inputs || !node->outputs || !node->attrs)
		return false;
	for (uint32_t i = 0; i < node->num_outputs; i++) {
		if (node->outputs[i] == LTH_NONE)
			continue;
		struct lth_value *value = &graph->values[node->outputs[i]];
		value->def = LTH_DEF_NODE;
		value->def_id = id;
		value->def_index = i;
	}
	for (uint32_t i = 0; i < node->num_attrs; i++)
		if (node->attrs[i].kind == LTH_ATTR_REGION)
			graph->regions[node->attrs[i].id].parent = id;
	return true;
}

lth_node_id lth_graph_insert(struct lth_graph *graph, lth_region_id region, uint32_t at, const struct lth_op *op,
			     const char *name, const lth_value_id *inputs, uint32_t num_inputs,
			     const lth_value_id *outputs, uint32_t num_outputs, const struct lth_attr *attrs,
			     uint32_t num_attrs)
{
	struct lth_node *nodes =
		lth_arena_grow(graph->arena, graph->nodes, &graph->cap_nodes, graph->num_nodes + 1, sizeof(*nodes));
	if (!nodes)
		return LTH_NONE;
	graph->nodes = nodes;
	struct lth_node *node = &nodes[graph->num_nodes];
	*node = (struct lth_node){.op = op,
				  .region = region,
				  .num_inputs = num_inputs,
				  .num_outputs = num_outputs,
				  .num_attrs = num_attrs,
				  .group = LTH_NONE};
	/* fill_node replaces these by copies */
	memcpy(&node->inputs, &inputs, sizeof(inputs));
	memcpy(&node->outputs, &outputs, sizeof(outputs));
	memcpy(&node->attrs, &attrs, sizeof(attrs));
	if ((!name || !*name) && num_outputs && outputs[0] != LTH_NONE)
		name = graph->values[outputs[0]].name;
	node->name = unique_name(graph, &graph->names->nodes, name);
	if (!node->name || !fill_node(graph, node, graph->num_nodes) ||
	    !take_name(graph, &graph->names->nodes, graph->num_nodes))
		return LTH_NONE;
	struct lth_region *r = &graph->regions[region];
	if (!append_id(graph->arena, &r->nodes, &r->num_nodes, &r->cap_nodes, graph->num_nodes))
		return LTH_NONE;
	assert(at < r->num_nodes);
	memmove(&r->nodes[at + 1], &r->nodes[at], (r->num_nodes - 1 - at) * sizeof(*r->nodes));
	r->nodes[at] = graph->num_nodes;
	return graph->num_nodes++;
}

lth_node_id lth_graph_node(struct lth_graph *graph, lth_region_id region, const struct lth_op *op, const char *name,
			   const lth_value_id *inputs, uint32_t num_inputs, const lth_value_id *outputs,
			   uint32_t num_outputs, const struct lth_attr *attrs, uint32_t num_attrs)
{
	return lth_graph_insert(graph, region, graph->regions[region].num_nodes, op, name, inputs, num_inputs, outputs,
				num_outputs, attrs, num_attrs);
}

void lth_graph_guard(struct lth_graph *graph, const struct lth_guard *guard)
{
	for (uint32_t i = 0; i < graph->num_guards; i++) { /* one is enough; what always holds, holds in a region too */
		const struct lth_guard *known = &graph->guards[i];
		if (known->relation == guard->relation && known->a == guard->a && known->b == guard->b &&
		    (known->region == guard->region || known->region == 0))
			return;
	}
	struct lth_guard *guards =
		lth_arena_grow(graph->arena, graph->guards, &graph->cap_guards, graph->num_guards + 1, sizeof(*guards));
	if (!guards)
		return;
	graph->guards = guards;
	guards[graph->num_guards++] = *guard;
}

void lth_graph_usual(struct lth_graph *graph, lth_dim a, lth_dim b)
{
	for (uint32_t i = 0; i < graph->num_usual; i++)
		if (graph->usual[i].a == a && graph->usual[i].b == b)
			return;
	struct lth_usual *usual =
		lth_arena_grow(graph->arena, graph->usual, &graph->cap_usual, graph->num_usual + 1, sizeof(*usual));
	if (!usual)
		return;
	graph->usual = usual;
	usual[graph->num_usual++] = (struct lth_usual){a, b};
}

void lth_graph_move_guards(struct lth_graph *graph, lth_region_id from, lth_region_id to)
{
	for (uint32_t i = 0; i < graph->num_guards; i++)
		if (graph->guards[i].region == from)
			graph->guards[i].region = to;
}

/* ---- rewriting ---- */

static void replace_in(uint32_t *list, uint32_t count, uint32_t from, uint32_t to)
{
	for (uint32_t i = 0; i < count; i++)
		if (list[i] == from)
			list[i] = to;
}

void lth_graph_replace_uses(struct lth_graph *graph, lth_value_id from, lth_value_id to)
{
	for (uint32_t i = 0; i < graph->num_nodes; i++)
		if (!graph->nodes[i].deleted)
			replace_in(graph->nodes[i].inputs, graph->nodes[i].num_inputs, from, to);
	for (uint32_t i = 0; i < graph->num_regions; i++)
		replace_in(graph->regions[i].outputs, graph->regions[i].num_outputs, from, to);
	lth_graph_rebind(graph, from, to);
}

void lth_graph_delete_node(struct lth_graph *graph, lth_node_id id)
{
	struct lth_node *node = &graph->nodes[id];
	node->deleted = true;
	for (uint32_t i = 0; i < node->num_outputs; i++)
		if (node->outputs[i] != LTH_NONE)
			graph->values[node->outputs[i]].def = LTH_DEF_DELETED;
	for (uint32_t i = 0; i < node->num_attrs; i++) /* what stands inside goes too */
		if (node->attrs[i].kind == LTH_ATTR_REGION)
			lth_graph_clear_region(graph, node->attrs[i].id);
}

void lth_graph_clear_region(struct lth_graph *graph, lth_region_id id)
{
	struct lth_region *region = &graph->regions[id];
	for (uint32_t i = 0; i < region->num_nodes; i++)
		if (!graph->nodes[region->nodes[i]].deleted)
			lth_graph_delete_node(graph, region->nodes[i]);
	for (uint32_t i = 0; i < region->num_inputs; i++)
		graph->values[region->inputs[i]].def = LTH_DEF_DELETED;
	region->num_nodes = region->num_inputs = region->num_outputs = 0;
}

void lth_graph_compact(struct lth_graph *graph)
{
	for (uint32_t i = 0; i < graph->num_regions; i++) {
		struct lth_region *region = &graph->regions[i];
		uint32_t kept = 0;
		for (uint32_t k = 0; k < region->num_nodes; k++)
			if (!graph->nodes[region->nodes[k]].deleted)
				region->nodes[kept++] = region->nodes[k];
		region->num_nodes = kept;
	}
}

uint32_t lth_graph_live_nodes(const struct lth_graph *graph)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < graph->num_nodes; i++)
		count += !graph->nodes[i].deleted;
	return count;
}
