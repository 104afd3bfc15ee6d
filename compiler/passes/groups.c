/* The list of groups: who belongs together, what each reads and leaves behind, and an order in which they can run.
 * Everything is computed from node->group in linear time but the order, which takes Kahn's algorithm with a heap of the
 * groups that are ready; ties go to the group whose last node stands first, so that the order stays near the model's.
 * Thread rule: as the graph's. */
#include "compiler/passes/groups.h"

#include <assert.h>

void lth_group_each_node(struct lth_graph *graph)
{
	uint32_t count = 0;
	for (uint32_t region = 0; region < graph->num_regions; region++)
		for (uint32_t i = 0; i < graph->regions[region].num_nodes; i++) {
			struct lth_node *node = &graph->nodes[graph->regions[region].nodes[i]];
			if (!node->deleted)
				node->group = count++;
		}
	graph->num_groups = count;
}

bool lth_node_loads_input(const struct lth_graph *graph, const struct lth_node *node, uint32_t index)
{
	lth_value_id input = lth_node_input(node, index);
	if (input == LTH_NONE)
		return false;
	switch (node->op->kind) {
	case LTH_OP_ELEMENTWISE:
	case LTH_OP_INJECTIVE:
	case LTH_OP_REDUCTION:
		return !lth_contents_suffice(graph, input);
	default:
		return true;
	}
}

static uint32_t region_depth(const struct lth_graph *graph, lth_region_id region)
{
	uint32_t depth = 0;
	while (graph->regions[region].parent != LTH_NONE) {
		region = graph->nodes[graph->regions[region].parent].region;
		depth++;
	}
	return depth;
}

/* Depth of the region that defines the value; 0 for the main region's and for constants. */
static uint32_t value_depth(const struct lth_graph *graph, const struct lth_value *value)
{
	if (value->def == LTH_DEF_NODE)
		return region_depth(graph, graph->nodes[value->def_id].region);
	if (value->def == LTH_DEF_REGION_INPUT)
		return region_depth(graph, value->def_id);
	return 0;
}

struct captures {
	const struct lth_graph *graph;
	uint32_t depth; /* of the node's own region */
	void (*visit)(void *context, lth_value_id value);
	void *context;
};

static void capture(const struct captures *captures, lth_value_id id)
{
	if (id == LTH_NONE)
		return;
	const struct lth_value *value = &captures->graph->values[id];
	if (value->def != LTH_DEF_CONSTANT && value_depth(captures->graph, value) <= captures->depth)
		captures->visit(captures->context, id);
}

/* Recursion is as deep as regions nest, which importers bound. */
static void capture_regions(const struct captures *captures, const struct lth_node *node)
{
	const struct lth_graph *graph = captures->graph;
	for (uint32_t a = 0; a < node->num_attrs; a++) {
		if (node->attrs[a].kind != LTH_ATTR_REGION)
			continue;
		const struct lth_region *region = &graph->regions[node->attrs[a].id];
		for (uint32_t i = 0; i < region->num_nodes; i++) {
			const struct lth_node *inner = &graph->nodes[region->nodes[i]];
			if (inner->deleted)
				continue;
			for (uint32_t k = 0; k < inner->num_inputs; k++)
				capture(captures, inner->inputs[k]);
			capture_regions(captures, inner);
		}
		for (uint32_t k = 0; k < region->num_outputs; k++)
			capture(captures, region->outputs[k]);
	}
}

void lth_node_captures(const struct lth_graph *graph, const struct lth_node *node,
		       void (*visit)(void *context, lth_value_id value), void *context)
{
	struct captures captures = {graph, region_depth(graph, node->region), visit, context};
	capture_regions(&captures, node);
}

/* Working state of one list. Arrays indexed by value hold the group (plus 1) that last looked at the value. */
struct lister {
	struct lth_graph *graph;
	struct lth_arena *arena;
	struct lth_group *groups; /* by number */
	uint32_t *seen;           /* by value */
	bool *read;               /* by value: some needed group or region output reads it */
	bool *needed;             /* by group */
	uint32_t *place;          /* by group: position of its last node in its region */
	uint32_t *pending;        /* by group: producers not yet in the order */
	lth_value_id *list;       /* the growing input list of the group at hand */
	uint32_t count, capacity, current;
};

static void add_input(void *context, lth_value_id value)
{
	struct lister *lister = context;
	const struct lth_value *entry = &lister->graph->values[value];
	if (entry->def == LTH_DEF_NODE && lister->graph->nodes[entry->def_id].group == lister->current)
		return;
	if (lister->seen[value] == lister->current + 1)
		return;
	lister->seen[value] = lister->current + 1;
	lth_value_id *list = lth_arena_grow(lister->arena, lister->list, &lister->capacity, lister->count + 1,
					    sizeof(*list));
	if (!list)
		return;
	lister->list = list;
	list[lister->count++] = value;
}

static bool collect_nodes(struct lister *lister, struct lth_diag *diag)
{
	struct lth_graph *graph = lister->graph;
	for (int fill = 0; fill < 2; fill++) {
		for (uint32_t r = 0; r < graph->num_regions; r++)
			for (uint32_t i = 0; i < graph->regions[r].num_nodes; i++) {
				lth_node_id id = graph->regions[r].nodes[i];
				const struct lth_node *node = &graph->nodes[id];
				if (node->deleted)
					continue;
				if (node->group >= graph->num_groups) {
					lth_diag_fail(diag, LTH_INTERNAL, node->name, "a group for every node", NULL,
						      "node without a group");
					return false;
				}
				struct lth_group *group = &lister->groups[node->group];
				if (fill)
					((lth_node_id *)(uintptr_t)group->nodes)[group->num_nodes] = id;
				group->num_nodes++;
				group->region = r;
				lister->place[node->group] = i;
				if (node->op->kind == LTH_OP_TEMPLATE || node->op->kind == LTH_OP_REDUCTION)
					group->anchor = id;
			}
		for (uint32_t g = 0; g < graph->num_groups && !fill; g++) {
			struct lth_group *group = &lister->groups[g];
			group->id = g;
			group->anchor = LTH_NONE;
			group->nodes = lth_arena_array(lister->arena, group->num_nodes, sizeof(lth_node_id));
			if (!group->nodes)
				return false;
			group->num_nodes = 0;
		}
	}
	return true;
}

static bool collect_inputs(struct lister *lister)
{
	const struct lth_graph *graph = lister->graph;
	for (uint32_t g = 0; g < graph->num_groups; g++) {
		struct lth_group *group = &lister->groups[g];
		lister->current = g;
		lister->count = 0;
		for (uint32_t i = 0; i < group->num_nodes; i++) {
			const struct lth_node *node = &graph->nodes[group->nodes[i]];
			for (uint32_t k = 0; k < node->num_inputs; k++)
				if (lth_node_loads_input(graph, node, k))
					add_input(lister, node->inputs[k]);
			lth_node_captures(graph, node, add_input, lister);
		}
		group->inputs = lth_arena_memdup(lister->arena, lister->list, lister->count * sizeof(lth_value_id));
		group->num_inputs = lister->count;
		if (!group->inputs)
			return false;
	}
	return true;
}

/* Marks what region outputs need, going back from readers to producers. */
static bool mark_needed(struct lister *lister)
{
	const struct lth_graph *graph = lister->graph;
	uint32_t *stack = lth_arena_array(lister->arena, graph->num_groups, sizeof(*stack));
	if (!stack)
		return false;
	uint32_t depth = 0;
	for (uint32_t r = 0; r < graph->num_regions; r++)
		for (uint32_t k = 0; k < graph->regions[r].num_outputs; k++) {
			const struct lth_value *value = &graph->values[graph->regions[r].outputs[k]];
			lister->read[graph->regions[r].outputs[k]] = true;
			if (value->def != LTH_DEF_NODE || lister->needed[graph->nodes[value->def_id].group])
				continue;
			lister->needed[graph->nodes[value->def_id].group] = true;
			stack[depth++] = graph->nodes[value->def_id].group;
		}
	while (depth > 0) {
		const struct lth_group *group = &lister->groups[stack[--depth]];
		for (uint32_t k = 0; k < group->num_inputs; k++) {
			const struct lth_value *value = &graph->values[group->inputs[k]];
			lister->read[group->inputs[k]] = true;
			if (value->def != LTH_DEF_NODE || lister->needed[graph->nodes[value->def_id].group])
				continue;
			lister->needed[graph->nodes[value->def_id].group] = true;
			stack[depth++] = graph->nodes[value->def_id].group;
		}
	}
	return true;
}

static bool collect_outputs(struct lister *lister)
{
	const struct lth_graph *graph = lister->graph;
	for (uint32_t g = 0; g < graph->num_groups; g++) {
		struct lth_group *group = &lister->groups[g];
		uint32_t most = 0;
		for (uint32_t i = 0; i < group->num_nodes; i++)
			most += graph->nodes[group->nodes[i]].num_outputs;
		lth_value_id *outputs = lth_arena_array(lister->arena, most, sizeof(*outputs));
		if (!outputs)
			return false;
		for (uint32_t i = 0; i < group->num_nodes; i++) {
			const struct lth_node *node = &graph->nodes[group->nodes[i]];
			for (uint32_t k = 0; k < node->num_outputs; k++)
				if (node->outputs[k] != LTH_NONE && lister->read[node->outputs[k]])
					outputs[group->num_outputs++] = node->outputs[k];
		}
		group->outputs = outputs;
	}
	return true;
}

/* A binary heap of groups that are ready, least place (then number) on top. */
struct heap {
	uint32_t *items;
	uint32_t count;
	const uint32_t *place;
};

static bool before(const struct heap *heap, uint32_t a, uint32_t b)
{
	return heap->place[a] != heap->place[b] ? heap->place[a] < heap->place[b] : a < b;
}

static void heap_push(struct heap *heap, uint32_t item)
{
	uint32_t at = heap->count++;
	while (at > 0 && before(heap, item, heap->items[(at - 1) / 2])) {
		heap->items[at] = heap->items[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	heap->items[at] = item;
}

static uint32_t heap_pop(struct heap *heap)
{
	uint32_t top = heap->items[0], last = heap->items[--heap->count], at = 0;
	for (;;) {
		uint32_t child = 2 * at + 1;
		if (child >= heap->count)
			break;
		if (child + 1 < heap->count && before(heap, heap->items[child + 1], heap->items[child]))
			child++;
		if (!before(heap, heap->items[child], last))
			break;
		heap->items[at] = heap->items[child];
		at = child;
	}
	heap->items[at] = last;
	return top;
}

/* Edges from producer to reader within a region: reader lists by producer, as one array. */
struct edges {
	uint32_t *first, *readers;
};

static const struct lth_group *producer_in_region(const struct lister *lister, lth_value_id value,
						  lth_region_id region)
{
	const struct lth_value *entry = &lister->graph->values[value];
	if (entry->def != LTH_DEF_NODE || lister->graph->nodes[entry->def_id].region != region)
		return NULL;
	return &lister->groups[lister->graph->nodes[entry->def_id].group];
}

static bool collect_edges(struct lister *lister, struct edges *edges)
{
	uint32_t num_groups = lister->graph->num_groups, total = 0;
	edges->first = lth_arena_array(lister->arena, (size_t)num_groups + 2, sizeof(uint32_t));
	for (uint32_t g = 0; g < num_groups; g++)
		total += lister->groups[g].num_inputs;
	edges->readers = lth_arena_array(lister->arena, total, sizeof(uint32_t));
	if (!edges->first || !edges->readers)
		return false;
	/* Counted two places up, so that after the filling first[g] .. first[g + 1] are g's readers. */
	for (int fill = 0; fill < 2; fill++) {
		for (uint32_t g = 0; g < num_groups; g++)
			for (uint32_t k = 0; k < lister->groups[g].num_inputs && lister->needed[g]; k++) {
				const struct lth_group *from = producer_in_region(lister, lister->groups[g].inputs[k],
										  lister->groups[g].region);
				if (!from)
					continue;
				if (fill)
					edges->readers[edges->first[from->id + 1]++] = g;
				else {
					edges->first[from->id + 2]++;
					lister->pending[g]++;
				}
			}
		for (uint32_t g = 0; g < num_groups && !fill; g++)
			edges->first[g + 2] += edges->first[g + 1];
	}
	return true;
}

/* Puts the needed groups of one region into the list; false on a cycle. */
static bool order_region(struct lister *lister, const struct edges *edges, struct heap *heap, lth_region_id region,
			 const uint32_t *members, uint32_t num_members, struct lth_groups *out)
{
	uint32_t wanted = 0, placed = 0;
	heap->count = 0;
	for (uint32_t i = 0; i < num_members; i++) {
		assert(lister->groups[members[i]].region == region);
		if (!lister->needed[members[i]])
			continue;
		wanted++;
		if (lister->pending[members[i]] == 0)
			heap_push(heap, members[i]);
	}
	while (heap->count > 0) {
		uint32_t g = heap_pop(heap);
		out->list[out->count++] = lister->groups[g];
		placed++;
		for (uint32_t e = edges->first[g]; e < edges->first[g + 1]; e++)
			if (--lister->pending[edges->readers[e]] == 0)
				heap_push(heap, edges->readers[e]);
	}
	return placed == wanted;
}

static enum lth_code order_groups(struct lister *lister, struct lth_groups *out, struct lth_diag *diag)
{
	const struct lth_graph *graph = lister->graph;
	struct edges edges;
	uint32_t *first = lth_arena_array(lister->arena, (size_t)graph->num_regions + 1, sizeof(*first));
	uint32_t *next = lth_arena_array(lister->arena, (size_t)graph->num_regions + 1, sizeof(*next));
	uint32_t *members = lth_arena_array(lister->arena, graph->num_groups, sizeof(*members));
	struct heap heap = {lth_arena_array(lister->arena, graph->num_groups, sizeof(uint32_t)), 0, lister->place};
	out->list = lth_arena_array(lister->arena, graph->num_groups, sizeof(*out->list));
	if (!collect_edges(lister, &edges) || !first || !next || !members || !heap.items || !out->list)
		return LTH_OUT_OF_MEMORY;
	for (uint32_t g = 0; g < graph->num_groups; g++)
		if (lister->groups[g].num_nodes > 0)
			next[lister->groups[g].region + 1]++;
	for (uint32_t r = 0; r < graph->num_regions; r++)
		next[r + 1] += next[r];
	for (uint32_t g = 0; g < graph->num_groups; g++)
		if (lister->groups[g].num_nodes > 0)
			members[next[lister->groups[g].region]++] = g;
	/* Now next[r] is the end of region r's members, and the end of r - 1's is where they begin. */
	for (uint32_t r = 0; r < graph->num_regions; r++) {
		uint32_t begin = r > 0 ? next[r - 1] : 0;
		first[r] = out->count;
		if (!order_region(lister, &edges, &heap, r, members + begin, next[r] - begin, out))
			return lth_diag_fail(diag, LTH_INTERNAL, "groups", "an order of groups", NULL,
					     "groups that wait for each other");
	}
	first[graph->num_regions] = out->count;
	out->first = first;
	return LTH_OK;
}

enum lth_code lth_graph_groups(struct lth_graph *graph, struct lth_arena *arena, struct lth_groups *out,
			       struct lth_diag *diag)
{
	struct lister lister = {.graph = graph, .arena = arena};
	struct lth_groups groups = {0};
	lister.groups = lth_arena_array(arena, graph->num_groups, sizeof(*lister.groups));
	lister.seen = lth_arena_array(arena, graph->num_values, sizeof(*lister.seen));
	lister.read = lth_arena_array(arena, graph->num_values, sizeof(*lister.read));
	lister.needed = lth_arena_array(arena, graph->num_groups, sizeof(*lister.needed));
	lister.place = lth_arena_array(arena, graph->num_groups, sizeof(*lister.place));
	lister.pending = lth_arena_array(arena, graph->num_groups, sizeof(*lister.pending));
	enum lth_code code = LTH_OUT_OF_MEMORY;
	if (lister.groups && lister.seen && lister.read && lister.needed && lister.place && lister.pending &&
	    collect_nodes(&lister, diag) && collect_inputs(&lister) && mark_needed(&lister) && collect_outputs(&lister))
		code = order_groups(&lister, &groups, diag);
	if (diag->code == LTH_OK && code == LTH_OUT_OF_MEMORY)
		return lth_diag_fail(diag, code, "groups", NULL, "raise the memory limit",
				     "the compile's arena is exhausted");
	if (diag->code != LTH_OK)
		return diag->code;
	*out = groups;
	return LTH_OK;
}
