/* FuseOps: which nodes become one kernel. Two sweeps over each region.
 *
 * Forward: every node begins as a group. An elementwise node joins the group of a producer whose running value has
 * its own shape and layout: it becomes part of that group's epilogue, or of its loop nest where there is no anchor.
 * Values that others read as well stay outputs; since shapes are equal, one nest writes them all. Backward: a group
 * pulls in the groups that make its inputs, when nobody else reads them, they have no anchor, and evaluating them
 * where they are read repeats no work that memory would have saved (fusion.def).
 *
 * Views that stand alone stay alone: AliasViews makes them free. A Concat stays alone when kernels make its inputs,
 * which may then write into it directly. Only the forward sweep can close a cycle, so it looks for one before it
 * joins. Legal always; exact. Thread rule: as the graph's. */
#include "compiler/passes/pass.h"

#include "compiler/passes/fuse.h"
#include "compiler/passes/layout.h"

#include <string.h>

LTH_PASS_GRAPH_FN(lth_pass_fuse_ops)

enum {
	MAX_CHEAP_MANY = 2,    /* arithmetic worth repeating for every reader of an element */
	MAX_CHEAP_FEW = 8,     /* the same, when a row is passed over a few times */
	MAX_CONCAT_INPUTS = 4, /* of a Concat that is evaluated in place: a chain of selections */
};

enum cost { COST_CHEAP, COST_MATH };

struct rule {
	enum cost cost;
	enum lth_fuse_reads reads;
	bool given;
};

static const struct rule rules[LTH_NUM_OPS] = {
#define LTH_FUSION(id, cost, reads) [LTH_OP_ID_##id] = {COST_##cost, LTH_FUSE_##reads, true},
#include "compiler/passes/fusion.def"
#undef LTH_FUSION
};

static struct rule rule_of(const struct lth_node *node)
{
	struct rule rule = rules[lth_op_id(node->op)];
	if (!rule.given && node->op->kind != LTH_OP_ELEMENTWISE && node->op->kind != LTH_OP_INJECTIVE)
		rule.reads = LTH_FUSE_WINDOW;
	return rule;
}

/* ---- forward: epilogues ---- */

static bool may_join(struct lth_fuser *fuser, const struct lth_fuse_group *group, lth_node_id id)
{
	const struct lth_graph *graph = fuser->graph;
	const struct lth_node *node = &graph->nodes[id];
	lth_value_id output = node->outputs[0];
	if (group->closed || group->view || !lth_fuse_same_shape(graph, group->shape, output) ||
	    !lth_layout_equal(graph, &graph->values[output].type, graph->values[group->shape].layout,
			      graph->values[output].layout))
		return false;
	/* An epilogue is one of the anchor's first output. */
	if (group->anchor != LTH_NONE && graph->nodes[group->anchor].outputs[0] != group->shape)
		return false;
	/* What it reads of the group it reads at its own index: not, say, a row's mean. */
	for (uint32_t e = fuser->first_read[id]; e < fuser->first_read[id + 1]; e++)
		if (lth_fuse_maker(fuser, fuser->reads[e], node->region) == group &&
		    !lth_fuse_same_shape(graph, fuser->reads[e], output))
			return false;
	return lth_fuse_within_limits(fuser, group, &fuser->groups[id]) && !lth_fuse_depends(fuser, id, group);
}

/* How good it is to end in this group: templates before reductions before nests. */
static int rank_of(const struct lth_fuser *fuser, const struct lth_fuse_group *group)
{
	if (group->anchor == LTH_NONE)
		return 0;
	return lth_fuse_is_template(fuser->graph, &fuser->graph->nodes[group->anchor]) ? 2 : 1;
}

static void join_producer(struct lth_fuser *fuser, lth_node_id id)
{
	const struct lth_node *node = &fuser->graph->nodes[id];
	struct lth_fuse_group *best = NULL;
	for (uint32_t e = fuser->first_read[id]; e < fuser->first_read[id + 1]; e++) {
		struct lth_fuse_group *group = lth_fuse_maker(fuser, fuser->reads[e], node->region);
		if (!group || group == best)
			continue;
		int better = best ? rank_of(fuser, group) - rank_of(fuser, best) : 1;
		if (better < 0 || (better == 0 && group->last < best->last))
			continue;
		if (may_join(fuser, group, id))
			best = group;
	}
	if (best)
		lth_fuse_merge(fuser, best, &fuser->groups[id]);
}

/* A Concat that is better evaluated where it is read than put together in memory: few inputs, some of them mere views,
 * none made by a kernel with an anchor (which may write its slice of the result directly). */
static bool concat_evaluates(const struct lth_fuser *fuser, lth_node_id id)
{
	const struct lth_node *node = &fuser->graph->nodes[id];
	uint32_t kernels = 0;
	for (uint32_t k = 0; k < node->num_inputs; k++) {
		const struct lth_fuse_group *group = lth_fuse_maker(fuser, node->inputs[k], node->region);
		if (!group || group->view)
			continue;
		if (group->closed || group->anchor != LTH_NONE || lth_fuse_read_outside(fuser, node->inputs[k], id, id))
			return false;
		kernels++;
	}
	return node->num_inputs <= MAX_CONCAT_INPUTS && (kernels < node->num_inputs || node->num_inputs == 1);
}

static void sweep_forward(struct lth_fuser *fuser, const struct lth_region *region)
{
	const struct lth_graph *graph = fuser->graph;
	for (uint32_t i = 0; i < region->num_nodes; i++)
		lth_fuse_begin(fuser, region->nodes[i], i);
	for (uint32_t i = 0; i < region->num_nodes; i++) {
		lth_node_id id = region->nodes[i];
		struct lth_fuse_group *group = &fuser->groups[id];
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
static enum lth_fuse_reads reading(const struct lth_fuser *fuser, const struct lth_node *reader, lth_value_id value)
{
	const struct lth_graph *graph = fuser->graph;
	enum lth_fuse_reads reads = rule_of(reader).reads;
	if (reader->op->kind == LTH_OP_ELEMENTWISE)
		return lth_fuse_same_shape(graph, value, reader->outputs[0]) ? LTH_FUSE_ONCE : LTH_FUSE_MANY;
	if (lth_op_id(reader->op) == LTH_OP_ID_Concat)
		return LTH_FUSE_FEW; /* each element once, but every branch of the selection is computed */
	if (value == reader->inputs[0])
		return reads;
	return reads == LTH_FUSE_WINDOW ? LTH_FUSE_WINDOW : LTH_FUSE_MANY;
}

struct weight {
	uint32_t arithmetic;
	bool math; /* more than cheap arithmetic */
};

static struct weight weigh(const struct lth_fuser *fuser, const struct lth_fuse_group *group)
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
static bool worth_repeating(const struct weight *weight, enum lth_fuse_reads reads)
{
	switch (reads) {
	case LTH_FUSE_ONCE:
		return true;
	case LTH_FUSE_FLAT:
		return false;
	case LTH_FUSE_FEW:
		return !weight->math && weight->arithmetic <= MAX_CHEAP_FEW;
	case LTH_FUSE_MANY:
		return !weight->math && weight->arithmetic <= MAX_CHEAP_MANY;
	default:
		return false;
	}
}

static enum lth_fuse_reads most(enum lth_fuse_reads a, enum lth_fuse_reads b)
{
	return a > b ? a : b;
}

/* May `taker` evaluate `value`, made by `given`, where its members read it? Gives the worst reading. */
static bool readings_allow(const struct lth_fuser *fuser, const struct lth_fuse_group *taker,
			   const struct lth_fuse_group *given, lth_value_id value, enum lth_fuse_reads *worst)
{
	const struct lth_graph *graph = fuser->graph;
	struct weight weight = weigh(fuser, given);
	uint32_t elsewhere = 0; /* readings at an index of their own */
	for (uint32_t e = fuser->first_reader[value]; e < fuser->first_reader[value + 1]; e++) {
		lth_node_id id = fuser->readers[e];
		const struct lth_node *reader = &graph->nodes[id];
		if (lth_fuse_is_template(graph, reader))
			return false;
		/* Movement around a template's epilogue stays a view. */
		if (taker->anchor != LTH_NONE && lth_fuse_is_template(graph, &graph->nodes[taker->anchor]) &&
		    (given->view || !lth_fuse_same_shape(graph, value, taker->shape)))
			return false;
		enum lth_fuse_reads reads = most(reading(fuser, reader, value), fuser->repeats[id]);
		if (reader->op->kind != LTH_OP_ELEMENTWISE && ++elsewhere > 1)
			reads = most(reads, LTH_FUSE_FEW);
		if (!worth_repeating(&weight, reads))
			return false;
		*worst = most(*worst, reads);
	}
	return true;
}

static bool may_pull(struct lth_fuser *fuser, const struct lth_fuse_group *taker,
		     const struct lth_fuse_group *given, enum lth_fuse_reads *worst)
{
	const struct lth_graph *graph = fuser->graph;
	uint32_t number = (uint32_t)(taker - fuser->groups), own = (uint32_t)(given - fuser->groups);
	if (given->closed || given->anchor != LTH_NONE)
		return false;
	*worst = LTH_FUSE_ONCE;
	for (lth_node_id id = given->head; id != LTH_NONE; id = fuser->next[id]) {
		const struct lth_node *node = &graph->nodes[id];
		for (uint32_t k = 0; k < node->num_outputs; k++) {
			if (node->outputs[k] == LTH_NONE)
				continue;
			if (lth_fuse_read_outside(fuser, node->outputs[k], number, own))
				return false;
			bool inner = true;
			for (uint32_t e = fuser->first_reader[node->outputs[k]];
			     e < fuser->first_reader[node->outputs[k] + 1]; e++)
				inner = inner && fuser->group_of[fuser->readers[e]] == own;
			if (!inner && !readings_allow(fuser, taker, given, node->outputs[k], worst))
				return false;
		}
	}
	return lth_fuse_within_limits(fuser, taker, given);
}

/* Pulls one producer in; false when none is left that may be. */
static bool pull_one(struct lth_fuser *fuser, struct lth_fuse_group *taker)
{
	for (lth_node_id id = taker->head; id != LTH_NONE; id = fuser->next[id])
		for (uint32_t e = fuser->first_read[id]; e < fuser->first_read[id + 1]; e++) {
			struct lth_fuse_group *given = lth_fuse_maker(fuser, fuser->reads[e], fuser->graph->nodes[id].region);
			enum lth_fuse_reads worst;
			if (!given || given == taker || !may_pull(fuser, taker, given, &worst))
				continue;
			for (lth_node_id member = given->head; member != LTH_NONE; member = fuser->next[member])
				fuser->repeats[member] = most(fuser->repeats[member], worst);
			lth_fuse_merge(fuser, taker, given);
			return true;
		}
	return false;
}

static void sweep_backward(struct lth_fuser *fuser, const struct lth_region *region)
{
	for (uint32_t i = region->num_nodes; i-- > 0;) {
		struct lth_fuse_group *group = &fuser->groups[fuser->group_of[region->nodes[i]]];
		if (group->closed || group->view || group->last != i)
			continue;
		while (pull_one(fuser, group))
			;
	}
}

/* ---- the pass ---- */

static void number_groups(struct lth_graph *graph, const struct lth_fuser *fuser)
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
	struct lth_fuser fuser = {.graph = graph};
	if (!lth_fuse_prepare(&fuser))
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "passes", NULL, "raise the memory limit",
				     "the compile's arena is exhausted");
	for (lth_region_id r = 0; r < graph->num_regions; r++) {
		sweep_forward(&fuser, &graph->regions[r]);
		sweep_backward(&fuser, &graph->regions[r]);
	}
	number_groups(graph, &fuser);
	return LTH_OK;
}
