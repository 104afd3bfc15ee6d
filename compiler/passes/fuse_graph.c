/* What FuseOps knows of the graph: readers by value, what is needed at all, groups as linked lists of nodes, and
 * whether joining two would go over a limit or close a cycle. Thread rule: as the graph's. */
#include "compiler/passes/fuse.h"

#include "compiler/passes/groups.h"
#include "compiler/passes/layout.h"

enum {
	MAX_NODES = 64,    /* of a group */
	MAX_OPERANDS = 24, /* values read and written by a group */
	MAX_OUTPUTS = 12,  /* of those, written */
	MAX_SEARCH = 4096, /* groups looked at for a cycle; beyond it the answer is "maybe" */
};

/* ---- who reads what ---- */

static void add_read(void *context, lth_value_id value)
{
	struct lth_fuser *fuser = context;
	lth_value_id *reads = lth_arena_grow(fuser->graph->arena, fuser->reads, &fuser->cap_reads,
					     fuser->num_reads + 1, sizeof(*reads));
	if (!reads)
		return;
	fuser->reads = reads;
	reads[fuser->num_reads++] = value;
}

static void collect_reads(struct lth_fuser *fuser)
{
	const struct lth_graph *graph = fuser->graph;
	for (lth_node_id id = 0; id < graph->num_nodes; id++) {
		const struct lth_node *node = &graph->nodes[id];
		fuser->first_read[id] = fuser->num_reads;
		if (node->deleted)
			continue;
		for (uint32_t k = 0; k < node->num_inputs; k++)
			if (lth_node_loads_input(graph, node, k))
				add_read(fuser, node->inputs[k]);
		lth_node_captures(graph, node, add_read, fuser);
	}
	fuser->first_read[graph->num_nodes] = fuser->num_reads;
}

/* Nodes that some region's output depends on. */
static void mark_needed(struct lth_fuser *fuser)
{
	const struct lth_graph *graph = fuser->graph;
	uint32_t depth = 0;
	for (lth_region_id r = 0; r < graph->num_regions; r++)
		for (uint32_t k = 0; k < graph->regions[r].num_outputs; k++) {
			const struct lth_value *value = &graph->values[graph->regions[r].outputs[k]];
			fuser->pinned[graph->regions[r].outputs[k]] = true;
			if (value->def == LTH_DEF_NODE && !fuser->needed[value->def_id]) {
				fuser->needed[value->def_id] = true;
				fuser->stack[depth++] = value->def_id;
			}
		}
	while (depth > 0) {
		lth_node_id id = fuser->stack[--depth];
		for (uint32_t e = fuser->first_read[id]; e < fuser->first_read[id + 1]; e++) {
			const struct lth_value *value = &graph->values[fuser->reads[e]];
			if (value->def == LTH_DEF_NODE && !fuser->needed[value->def_id]) {
				fuser->needed[value->def_id] = true;
				fuser->stack[depth++] = value->def_id;
			}
		}
	}
}

static void collect_readers(struct lth_fuser *fuser)
{
	const struct lth_graph *graph = fuser->graph;
	for (int fill = 0; fill < 2; fill++) {
		for (lth_node_id id = 0; id < graph->num_nodes; id++)
			for (uint32_t e = fuser->first_read[id]; e < fuser->first_read[id + 1] && fuser->needed[id]; e++) {
				lth_value_id value = fuser->reads[e];
				if (fill)
					fuser->readers[fuser->first_reader[value + 1]++] = id;
				else
					fuser->first_reader[value + 2]++;
			}
		for (lth_value_id value = 0; value < graph->num_values && !fill; value++)
			fuser->first_reader[value + 2] += fuser->first_reader[value + 1];
	}
}

/* ---- groups of one node ---- */

static bool computable(const struct lth_graph *graph, lth_value_id value)
{
	if (value == LTH_NONE)
		return true;
	const struct lth_type *type = &graph->values[value].type;
	if (type->kind != LTH_TYPE_TENSOR || type->dtype == LTH_NUM_DTYPES || type->rank == LTH_RANK_UNKNOWN)
		return false;
	enum lth_dtype_class class = lth_dtype_class(type->dtype);
	return class != LTH_CLASS_STRING && class != LTH_CLASS_COMPLEX && lth_dtype_bits(type->dtype) >= 8;
}

static bool may_fuse(const struct lth_graph *graph, const struct lth_node *node)
{
	switch (node->op->kind) {
	case LTH_OP_ELEMENTWISE:
	case LTH_OP_INJECTIVE:
	case LTH_OP_REDUCTION:
	case LTH_OP_TEMPLATE:
		break;
	default:
		return false;
	}
	if (node->op->flags & LTH_OPF_RANDOM)
		return false;
	for (uint32_t k = 0; k < node->num_inputs; k++)
		if (!computable(graph, node->inputs[k]))
			return false;
	for (uint32_t k = 0; k < node->num_outputs; k++)
		if (!computable(graph, node->outputs[k]))
			return false;
	return true;
}

lth_value_id lth_fuse_first_output(const struct lth_node *node)
{
	for (uint32_t k = 0; k < node->num_outputs; k++)
		if (node->outputs[k] != LTH_NONE)
			return node->outputs[k];
	return LTH_NONE;
}

/* A copy whose two sides disagree on which axis is contiguous goes by blocks in registers, not element by element where
 * it is read: it stands on its own, with an epilogue, like a template. */
static bool turns(const struct lth_graph *graph, const struct lth_node *node)
{
	return lth_op_id(node->op) == LTH_OP_ID_LayoutCopy &&
	       lth_layout_innermost(graph, &graph->values[node->inputs[0]]) !=
		       lth_layout_innermost(graph, &graph->values[node->outputs[0]]);
}

bool lth_fuse_is_template(const struct lth_graph *graph, const struct lth_node *node)
{
	return node->op->kind == LTH_OP_TEMPLATE || turns(graph, node);
}

void lth_fuse_begin(struct lth_fuser *fuser, lth_node_id id, uint32_t place)
{
	const struct lth_node *node = &fuser->graph->nodes[id];
	struct lth_fuse_group *group = &fuser->groups[id];
	bool anchors = lth_fuse_is_template(fuser->graph, node) || node->op->kind == LTH_OP_REDUCTION;
	*group = (struct lth_fuse_group){.head = id, .tail = id, .anchor = anchors ? id : LTH_NONE, .count = 1, .first = place,
				.last = place};
	group->shape = lth_fuse_first_output(node);
	group->closed = !fuser->needed[id] || group->shape == LTH_NONE || !may_fuse(fuser->graph, node);
	for (uint32_t k = 0; k < node->num_outputs; k++) /* what binds symbols has to be in memory */
		group->closed |= node->outputs[k] != LTH_NONE && lth_value_binds(fuser->graph, node->outputs[k]);
	group->view = node->op->flags & LTH_OPF_VIEW;
	fuser->group_of[id] = id;
	fuser->next[id] = LTH_NONE;
	fuser->place[id] = place;
	fuser->repeats[id] = LTH_FUSE_ONCE;
}

/* The group that makes a value in this region, or NULL. */
struct lth_fuse_group *lth_fuse_maker(const struct lth_fuser *fuser, lth_value_id value, lth_region_id region)
{
	const struct lth_value *entry = &fuser->graph->values[value];
	if (entry->def != LTH_DEF_NODE || fuser->graph->nodes[entry->def_id].region != region)
		return NULL;
	return &fuser->groups[fuser->group_of[entry->def_id]];
}

bool lth_fuse_same_shape(const struct lth_graph *graph, lth_value_id a, lth_value_id b)
{
	const struct lth_type *first = &graph->values[a].type, *second = &graph->values[b].type;
	if (first->rank != second->rank)
		return false;
	for (uint32_t axis = 0; axis < first->rank; axis++)
		if (first->dims[axis] != second->dims[axis] &&
		    lth_dim_equal(graph->dims, first->dims[axis], second->dims[axis]) != LTH_YES)
			return false;
	return true;
}

/* Members of `from` become members of `into`. */
void lth_fuse_merge(struct lth_fuser *fuser, struct lth_fuse_group *into, struct lth_fuse_group *from)
{
	uint32_t number = (uint32_t)(into - fuser->groups);
	for (lth_node_id id = from->head; id != LTH_NONE; id = fuser->next[id])
		fuser->group_of[id] = number;
	fuser->next[into->tail] = from->head;
	into->tail = from->tail;
	into->count += from->count;
	into->first = from->first < into->first ? from->first : into->first;
	into->last = from->last > into->last ? from->last : into->last;
	into->view = false;
}

/* ---- limits ---- */

bool lth_fuse_read_outside(const struct lth_fuser *fuser, lth_value_id value, uint32_t a, uint32_t b)
{
	for (uint32_t e = fuser->first_reader[value]; e < fuser->first_reader[value + 1]; e++) {
		uint32_t reader = fuser->group_of[fuser->readers[e]];
		if (reader != a && reader != b)
			return true;
	}
	return fuser->pinned[value];
}

/* Counts what the union of two groups reads and writes. */
bool lth_fuse_within_limits(struct lth_fuser *fuser, const struct lth_fuse_group *a, const struct lth_fuse_group *b)
{
	const struct lth_graph *graph = fuser->graph;
	const struct lth_fuse_group *const both[] = {a, b};
	uint32_t first = (uint32_t)(a - fuser->groups), second = (uint32_t)(b - fuser->groups);
	uint32_t operands = 0, outputs = 0;
	if (a->count + b->count > MAX_NODES)
		return false;
	fuser->search++;
	for (int side = 0; side < 2; side++)
		for (lth_node_id id = both[side]->head; id != LTH_NONE; id = fuser->next[id]) {
			const struct lth_node *node = &graph->nodes[id];
			for (uint32_t e = fuser->first_read[id]; e < fuser->first_read[id + 1]; e++) {
				lth_value_id value = fuser->reads[e];
				const struct lth_value *entry = &graph->values[value];
				uint32_t made = entry->def == LTH_DEF_NODE ? fuser->group_of[entry->def_id] : LTH_NONE;
				if (made == first || made == second || fuser->mark[value] == fuser->search)
					continue;
				fuser->mark[value] = fuser->search;
				operands++;
			}
			for (uint32_t k = 0; k < node->num_outputs; k++)
				if (node->outputs[k] != LTH_NONE && lth_fuse_read_outside(fuser, node->outputs[k], first, second))
					outputs++;
		}
	return outputs <= MAX_OUTPUTS && operands + outputs <= MAX_OPERANDS;
}

/* True if `node`, a group of its own, may need a result of `group` through a third one. */
bool lth_fuse_depends(struct lth_fuser *fuser, lth_node_id node, const struct lth_fuse_group *group)
{
	const struct lth_graph *graph = fuser->graph;
	uint32_t target = (uint32_t)(group - fuser->groups), depth = 0, seen = 0;
	uint32_t search = ++fuser->search;
	fuser->stack[depth++] = node;
	while (depth > 0) {
		const struct lth_fuse_group *at = &fuser->groups[fuser->stack[--depth]];
		bool start = (uint32_t)(at - fuser->groups) == node;
		for (lth_node_id id = at->head; id != LTH_NONE; id = fuser->next[id])
			for (uint32_t e = fuser->first_read[id]; e < fuser->first_read[id + 1]; e++) {
				const struct lth_fuse_group *made = lth_fuse_maker(fuser, fuser->reads[e], graph->nodes[id].region);
				if (!made || made == at)
					continue;
				uint32_t number = (uint32_t)(made - fuser->groups);
				if (number == target) {
					if (!start)
						return true;
					continue;
				}
				/* What lies wholly before the group cannot need it. */
				if (made->last < group->first || fuser->mark[number] == search)
					continue;
				if (++seen > MAX_SEARCH)
					return true;
				fuser->mark[number] = search;
				fuser->stack[depth++] = number;
			}
	}
	return false;
}

/* ---- the beginning ---- */

bool lth_fuse_prepare(struct lth_fuser *fuser)
{
	struct lth_arena *arena = fuser->graph->arena;
	size_t nodes = fuser->graph->num_nodes, values = fuser->graph->num_values;
	fuser->groups = lth_arena_array(arena, nodes, sizeof(*fuser->groups));
	fuser->group_of = lth_arena_array(arena, nodes, sizeof(*fuser->group_of));
	fuser->next = lth_arena_array(arena, nodes, sizeof(*fuser->next));
	fuser->place = lth_arena_array(arena, nodes, sizeof(*fuser->place));
	fuser->repeats = lth_arena_array(arena, nodes, sizeof(*fuser->repeats));
	fuser->needed = lth_arena_array(arena, nodes, sizeof(*fuser->needed));
	fuser->pinned = lth_arena_array(arena, values, sizeof(*fuser->pinned));
	fuser->first_reader = lth_arena_array(arena, values + 3, sizeof(*fuser->first_reader));
	fuser->first_read = lth_arena_array(arena, nodes + 1, sizeof(*fuser->first_read));
	fuser->mark = lth_arena_array(arena, nodes + values, sizeof(*fuser->mark));
	fuser->stack = lth_arena_array(arena, nodes + MAX_SEARCH + 1, sizeof(*fuser->stack));
	if (!lth_arena_ok(arena))
		return false;
	collect_reads(fuser);
	fuser->readers = lth_arena_array(arena, fuser->num_reads, sizeof(*fuser->readers));
	if (!lth_arena_ok(arena))
		return false;
	mark_needed(fuser);
	collect_readers(fuser);
	return true;
}
