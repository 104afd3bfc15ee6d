/* FuseOps: which nodes become one kernel. Two sweeps over each region.
 *
 * Forward: every node begins as a group. An elementwise node joins the group of a producer whose running value has its
 * own shape and layout: it becomes part of that group's epilogue, or of its loop nest where there is no anchor. Values that
 * others read as well stay outputs; since shapes are equal, one nest writes them all.
 * Backward: a group pulls in the groups that make its inputs, when nobody else reads them, they have no anchor, and
 * evaluating them where they are read repeats no work that memory would have saved (fusion.def).
 *
 * Views that stand alone stay alone: AliasViews makes them free. A Concat stays alone when kernels make its inputs, which
 * may then write into it directly. Only the forward sweep can close a cycle, so it looks for one before it joins.
 * Legal always; exact. Thread rule: as the graph's. */
#include "compiler/passes/pass.h"

#include "compiler/passes/groups.h"
#include "compiler/passes/layout.h"

#include <assert.h>
#include <string.h>

LTH_PASS_GRAPH_FN(lth_pass_fuse_ops)

enum {
	MAX_NODES = 64,         /* of a group */
	MAX_OPERANDS = 24,      /* values read and written by a group */
	MAX_OUTPUTS = 12,       /* of those, written */
	MAX_SEARCH = 4096,      /* groups looked at for a cycle; beyond it the answer is "maybe" */
	MAX_CHEAP_MANY = 2,     /* arithmetic worth repeating for every reader of an element */
	MAX_CHEAP_FEW = 8,      /* the same, when a row is passed over a few times */
	MAX_CONCAT_INPUTS = 4,  /* of a Concat that is evaluated in place: a chain of selections */
};

enum cost { COST_CHEAP, COST_MATH };
enum reads { READS_ONCE, READS_FLAT, READS_FEW, READS_MANY, READS_WINDOW };

struct rule {
	enum cost cost;
	enum reads reads;
	bool given;
};

static const struct rule rules[LTH_NUM_OPS] = {
#define LTH_FUSION(id, cost, reads) [LTH_OP_ID_##id] = {COST_##cost, READS_##reads, true},
#include "compiler/passes/fusion.def"
#undef LTH_FUSION
};

static struct rule rule_of(const struct lth_node *node)
{
	struct rule rule = rules[lth_op_id(node->op)];
	if (!rule.given && node->op->kind != LTH_OP_ELEMENTWISE && node->op->kind != LTH_OP_INJECTIVE)
		rule.reads = READS_WINDOW;
	return rule;
}

struct group {
	lth_node_id head, tail;  /* members, linked by fuser.next */
	lth_node_id anchor;      /* LTH_NONE: none */
	lth_value_id shape;      /* the running value: its type and layout are those of the outputs */
	uint32_t count;
	uint32_t first, last;    /* places of its first and last member */
	bool closed;             /* takes nothing and is not taken */
	bool view;               /* one node that costs nothing by itself */
};

/* Groups are numbered by the node that each began with. */
struct fuser {
	struct lth_graph *graph;
	struct group *groups;    /* by node */
	uint32_t *group_of;      /* by node */
	lth_node_id *next;       /* by node: the next member of its group, or LTH_NONE */
	uint32_t *place;         /* by node: position in its region */
	enum reads *repeats;     /* by node: how often one of its elements is evaluated inside its group */
	bool *needed;            /* by node */
	bool *pinned;            /* by value: a region gives it back, or an inner region reads it */
	/* Readers of value v: nodes at readers[first_reader[v]] .. readers[first_reader[v + 1] - 1]. */
	uint32_t *first_reader;
	lth_node_id *readers;
	/* What a node reads: values at reads[first_read[n]] .. ; control nodes with what their regions capture. */
	uint32_t *first_read;
	lth_value_id *reads;
	uint32_t num_reads, cap_reads;
	uint32_t *mark;          /* by value or by group, as the search goes: the last search that saw it */
	uint32_t search;
	uint32_t *stack;
};

/* ---- who reads what ---- */

static void add_read(void *context, lth_value_id value)
{
	struct fuser *fuser = context;
	lth_value_id *reads = lth_arena_grow(fuser->graph->arena, fuser->reads, &fuser->cap_reads,
					     fuser->num_reads + 1, sizeof(*reads));
	if (!reads)
		return;
	fuser->reads = reads;
	reads[fuser->num_reads++] = value;
}

static void collect_reads(struct fuser *fuser)
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
static void mark_needed(struct fuser *fuser)
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

static void collect_readers(struct fuser *fuser)
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

static lth_value_id first_output(const struct lth_node *node)
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

static bool is_template(const struct lth_graph *graph, const struct lth_node *node)
{
	return node->op->kind == LTH_OP_TEMPLATE || turns(graph, node);
}

static void begin_group(struct fuser *fuser, lth_node_id id, uint32_t place)
{
	const struct lth_node *node = &fuser->graph->nodes[id];
	struct group *group = &fuser->groups[id];
	bool anchors = is_template(fuser->graph, node) || node->op->kind == LTH_OP_REDUCTION;
	*group = (struct group){.head = id, .tail = id, .anchor = anchors ? id : LTH_NONE, .count = 1, .first = place,
				.last = place};
	group->shape = first_output(node);
	group->closed = !fuser->needed[id] || group->shape == LTH_NONE || !may_fuse(fuser->graph, node);
	group->view = node->op->flags & LTH_OPF_VIEW;
	fuser->group_of[id] = id;
	fuser->next[id] = LTH_NONE;
	fuser->place[id] = place;
	fuser->repeats[id] = READS_ONCE;
}

/* The group that makes a value in this region, or NULL. */
static struct group *maker(const struct fuser *fuser, lth_value_id value, lth_region_id region)
{
	const struct lth_value *entry = &fuser->graph->values[value];
	if (entry->def != LTH_DEF_NODE || fuser->graph->nodes[entry->def_id].region != region)
		return NULL;
	return &fuser->groups[fuser->group_of[entry->def_id]];
}

static bool same_shape(const struct lth_graph *graph, lth_value_id a, lth_value_id b)
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
static void merge(struct fuser *fuser, struct group *into, struct group *from)
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

static bool read_outside(const struct fuser *fuser, lth_value_id value, uint32_t a, uint32_t b)
{
	for (uint32_t e = fuser->first_reader[value]; e < fuser->first_reader[value + 1]; e++) {
		uint32_t reader = fuser->group_of[fuser->readers[e]];
		if (reader != a && reader != b)
			return true;
	}
	return fuser->pinned[value];
}

/* Counts what the union of two groups reads and writes. */
static bool within_limits(struct fuser *fuser, const struct group *a, const struct group *b)
{
	const struct lth_graph *graph = fuser->graph;
	const struct group *const both[] = {a, b};
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
				if (node->outputs[k] != LTH_NONE && read_outside(fuser, node->outputs[k], first, second))
					outputs++;
		}
	return outputs <= MAX_OUTPUTS && operands + outputs <= MAX_OPERANDS;
}

/* True if `node`, a group of its own, may need a result of `group` through a third one. */
static bool depends_through_others(struct fuser *fuser, lth_node_id node, const struct group *group)
{
	const struct lth_graph *graph = fuser->graph;
	uint32_t target = (uint32_t)(group - fuser->groups), depth = 0, seen = 0;
	uint32_t search = ++fuser->search;
	fuser->stack[depth++] = node;
	while (depth > 0) {
		const struct group *at = &fuser->groups[fuser->stack[--depth]];
		bool start = (uint32_t)(at - fuser->groups) == node;
		for (lth_node_id id = at->head; id != LTH_NONE; id = fuser->next[id])
			for (uint32_t e = fuser->first_read[id]; e < fuser->first_read[id + 1]; e++) {
				const struct group *made = maker(fuser, fuser->reads[e], graph->nodes[id].region);
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

/* ---- forward: epilogues ---- */

static bool may_join(struct fuser *fuser, const struct group *group, lth_node_id id)
{
	const struct lth_graph *graph = fuser->graph;
	const struct lth_node *node = &graph->nodes[id];
	lth_value_id output = node->outputs[0];
	if (group->closed || group->view || !same_shape(graph, group->shape, output) ||
	    !lth_layout_equal(graph, &graph->values[output].type, graph->values[group->shape].layout,
			      graph->values[output].layout))
		return false;
	/* What it reads of the group it reads at its own index: not, say, a row's mean. */
	for (uint32_t e = fuser->first_read[id]; e < fuser->first_read[id + 1]; e++)
		if (maker(fuser, fuser->reads[e], node->region) == group &&
		    !same_shape(graph, fuser->reads[e], output))
			return false;
	return within_limits(fuser, group, &fuser->groups[id]) && !depends_through_others(fuser, id, group);
}

/* How good it is to end in this group: templates before reductions before nests. */
static int rank_of(const struct fuser *fuser, const struct group *group)
{
	if (group->anchor == LTH_NONE)
		return 0;
	return is_template(fuser->graph, &fuser->graph->nodes[group->anchor]) ? 2 : 1;
}

static void join_producer(struct fuser *fuser, lth_node_id id)
{
	const struct lth_node *node = &fuser->graph->nodes[id];
	struct group *best = NULL;
	for (uint32_t e = fuser->first_read[id]; e < fuser->first_read[id + 1]; e++) {
		struct group *group = maker(fuser, fuser->reads[e], node->region);
		if (!group || group == best)
			continue;
		int better = best ? rank_of(fuser, group) - rank_of(fuser, best) : 1;
		if (better < 0 || (better == 0 && group->last < best->last))
			continue;
		if (may_join(fuser, group, id))
			best = group;
	}
	if (best)
		merge(fuser, best, &fuser->groups[id]);
}

/* A Concat that is better evaluated where it is read than put together in memory: few inputs, some of them mere views,
 * none made by a kernel with an anchor (which may write its slice of the result directly). */
static bool concat_evaluates(const struct fuser *fuser, lth_node_id id)
{
	const struct lth_node *node = &fuser->graph->nodes[id];
	uint32_t kernels = 0;
	for (uint32_t k = 0; k < node->num_inputs; k++) {
		const struct group *group = maker(fuser, node->inputs[k], node->region);
		if (!group || group->view)
			continue;
		if (group->closed || group->anchor != LTH_NONE || read_outside(fuser, node->inputs[k], id, id))
			return false;
		kernels++;
	}
	return node->num_inputs <= MAX_CONCAT_INPUTS && (kernels < node->num_inputs || node->num_inputs == 1);
}

static void sweep_forward(struct fuser *fuser, const struct lth_region *region)
{
	const struct lth_graph *graph = fuser->graph;
	for (uint32_t i = 0; i < region->num_nodes; i++)
		begin_group(fuser, region->nodes[i], i);
	for (uint32_t i = 0; i < region->num_nodes; i++) {
		lth_node_id id = region->nodes[i];
		struct group *group = &fuser->groups[id];
		if (group->closed)
			continue;
		if (lth_op_id(graph->nodes[id].op) == LTH_OP_ID_Concat)
			group->closed = !concat_evaluates(fuser, id);
		else if (graph->nodes[id].op->kind == LTH_OP_ELEMENTWISE && graph->nodes[id].num_outputs == 1)
			join_producer(fuser, id);
	}
}

/* ---- backward: producers ---- */

/* How often an element of input `value` is read while one of the reader's own is evaluated. */
static enum reads reading(const struct fuser *fuser, const struct lth_node *reader, lth_value_id value)
{
	const struct lth_graph *graph = fuser->graph;
	enum reads reads = rule_of(reader).reads;
	if (reader->op->kind == LTH_OP_ELEMENTWISE)
		return same_shape(graph, value, reader->outputs[0]) ? READS_ONCE : READS_MANY;
	if (lth_op_id(reader->op) == LTH_OP_ID_Concat)
		return READS_FEW; /* each element once, but every branch of the selection is computed */
	if (value == reader->inputs[0])
		return reads;
	return reads == READS_WINDOW ? READS_WINDOW : READS_MANY;
}

struct weight {
	uint32_t arithmetic;
	bool math; /* more than cheap arithmetic */
};

static struct weight weigh(const struct fuser *fuser, const struct group *group)
{
	struct weight weight = {0};
	for (lth_node_id id = group->head; id != LTH_NONE; id = fuser->next[id]) {
		const struct lth_node *node = &fuser->graph->nodes[id];
		weight.arithmetic += !(node->op->flags & LTH_OPF_VIEW) && lth_op_id(node->op) != LTH_OP_ID_Cast;
		weight.math |= rule_of(node).cost == COST_MATH;
	}
	return weight;
}

/* May the group's elements be evaluated as often as `reads` says? */
static bool worth_repeating(const struct weight *weight, enum reads reads)
{
	switch (reads) {
	case READS_ONCE:
		return true;
	case READS_FLAT:
		return false;
	case READS_FEW:
		return !weight->math && weight->arithmetic <= MAX_CHEAP_FEW;
	case READS_MANY:
		return !weight->math && weight->arithmetic <= MAX_CHEAP_MANY;
	default:
		return false;
	}
}

static enum reads most(enum reads a, enum reads b)
{
	return a > b ? a : b;
}

/* May `taker` evaluate `value`, made by `given`, where its members read it? Gives the worst reading. */
static bool readings_allow(const struct fuser *fuser, const struct group *taker, const struct group *given,
			   lth_value_id value, enum reads *worst)
{
	const struct lth_graph *graph = fuser->graph;
	struct weight weight = weigh(fuser, given);
	uint32_t elsewhere = 0; /* readings at an index of their own */
	for (uint32_t e = fuser->first_reader[value]; e < fuser->first_reader[value + 1]; e++) {
		lth_node_id id = fuser->readers[e];
		const struct lth_node *reader = &graph->nodes[id];
		if (is_template(graph, reader))
			return false;
		/* Movement around a template's epilogue stays a view. */
		if (taker->anchor != LTH_NONE && is_template(graph, &graph->nodes[taker->anchor]) &&
		    (given->view || !same_shape(graph, value, taker->shape)))
			return false;
		enum reads reads = most(reading(fuser, reader, value), fuser->repeats[id]);
		if (reader->op->kind != LTH_OP_ELEMENTWISE && ++elsewhere > 1)
			reads = most(reads, READS_FEW);
		if (!worth_repeating(&weight, reads))
			return false;
		*worst = most(*worst, reads);
	}
	return true;
}

static bool may_pull(struct fuser *fuser, const struct group *taker, const struct group *given, enum reads *worst)
{
	const struct lth_graph *graph = fuser->graph;
	uint32_t number = (uint32_t)(taker - fuser->groups), own = (uint32_t)(given - fuser->groups);
	if (given->closed || given->anchor != LTH_NONE)
		return false;
	*worst = READS_ONCE;
	for (lth_node_id id = given->head; id != LTH_NONE; id = fuser->next[id]) {
		const struct lth_node *node = &graph->nodes[id];
		for (uint32_t k = 0; k < node->num_outputs; k++) {
			if (node->outputs[k] == LTH_NONE)
				continue;
			if (read_outside(fuser, node->outputs[k], number, own))
				return false;
			bool inner = true;
			for (uint32_t e = fuser->first_reader[node->outputs[k]];
			     e < fuser->first_reader[node->outputs[k] + 1]; e++)
				inner = inner && fuser->group_of[fuser->readers[e]] == own;
			if (!inner && !readings_allow(fuser, taker, given, node->outputs[k], worst))
				return false;
		}
	}
	return within_limits(fuser, taker, given);
}

/* Pulls one producer in; false when none is left that may be. */
static bool pull_one(struct fuser *fuser, struct group *taker)
{
	for (lth_node_id id = taker->head; id != LTH_NONE; id = fuser->next[id])
		for (uint32_t e = fuser->first_read[id]; e < fuser->first_read[id + 1]; e++) {
			struct group *given = maker(fuser, fuser->reads[e], fuser->graph->nodes[id].region);
			enum reads worst;
			if (!given || given == taker || !may_pull(fuser, taker, given, &worst))
				continue;
			for (lth_node_id member = given->head; member != LTH_NONE; member = fuser->next[member])
				fuser->repeats[member] = most(fuser->repeats[member], worst);
			merge(fuser, taker, given);
			return true;
		}
	return false;
}

static void sweep_backward(struct fuser *fuser, const struct lth_region *region)
{
	for (uint32_t i = region->num_nodes; i-- > 0;) {
		struct group *group = &fuser->groups[fuser->group_of[region->nodes[i]]];
		if (group->closed || group->view || group->last != i)
			continue;
		while (pull_one(fuser, group))
			;
	}
}

/* ---- the pass ---- */

static bool prepare(struct fuser *fuser)
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

static void number_groups(struct lth_graph *graph, const struct fuser *fuser)
{
	uint32_t *number = fuser->stack; /* by first node */
	memset(number, 0xff, graph->num_nodes * sizeof(*number));
	graph->num_groups = 0;
	for (lth_region_id r = 0; r < graph->num_regions; r++)
		for (uint32_t i = 0; i < graph->regions[r].num_nodes; i++) {
			lth_node_id id = graph->regions[r].nodes[i];
			if (number[fuser->group_of[id]] == LTH_NONE)
				number[fuser->group_of[id]] = graph->num_groups++;
			graph->nodes[id].group = number[fuser->group_of[id]];
		}
}

enum lth_code lth_pass_fuse_ops(struct lth_graph *graph, const struct lth_pass_context *context, struct lth_diag *diag)
{
	(void)context;
	struct fuser fuser = {.graph = graph};
	if (!prepare(&fuser))
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "passes", NULL, "raise the memory limit",
				     "the compile's arena is exhausted");
	for (lth_region_id r = 0; r < graph->num_regions; r++) {
		sweep_forward(&fuser, &graph->regions[r]);
		sweep_backward(&fuser, &graph->regions[r]);
	}
	number_groups(graph, &fuser);
	return LTH_OK;
}
