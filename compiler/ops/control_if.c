/* If. Inference goes into both branches and joins the types of what they give; an axis on which they disagree becomes a
 * data symbol that each branch sets.
 *
 * With a condition that inference knows, the branch that is taken takes the node's place and the other is forgotten: it
 * may not even fit (exporters write Squeeze so).
 *
 * Branches whose results differ in rank: all that follows in the region moves into both of them (control_split.c), so
 * that each branch has its own copy with ranks of its own, and the If gives what the region gives. If that region is a
 * branch of another If and its results differ, too, what follows the outer one moves in before. A branch whose copy then
 * is invalid cannot be meant: the other is taken, and a guard says in the run for which condition there is no valid
 * model. Nothing is guessed. Thread rule: as infer.h. */
#include "compiler/ops/control.h"

#include "compiler/ops/build.h"

#include <string.h>

static lth_region_id arm_of(const struct lth_node *node, bool condition)
{
	return lth_control_region(node, condition ? "then_branch" : "else_branch");
}

/* ---- a branch in the node's place ---- */

bool lth_control_move_before(struct lth_infer *infer, lth_region_id inner)
{
	struct lth_graph *graph = infer->graph;
	lth_region_id outer = infer->node->region;
	struct lth_region *from = &graph->regions[inner], *to = &graph->regions[outer];
	lth_node_id *nodes = lth_arena_grow(graph->arena, to->nodes, &to->cap_nodes, to->num_nodes + from->num_nodes + 1,
					    sizeof(*nodes));
	if (!nodes)
		return false;
	to->nodes = nodes;
	uint32_t at = 0;
	while (nodes[at] != infer->id)
		at++;
	memmove(nodes + at + from->num_nodes, nodes + at, (to->num_nodes - at) * sizeof(*nodes));
	for (uint32_t i = 0; i < from->num_nodes; i++) {
		nodes[at + i] = from->nodes[i];
		graph->nodes[from->nodes[i]].region = outer;
	}
	to->num_nodes += from->num_nodes;
	from->num_nodes = 0;
	lth_graph_move_guards(graph, inner, outer);
	return true;
}

static enum lth_code take_arm(struct lth_infer *infer, bool condition)
{
	lth_region_id arm = arm_of(infer->node, condition);
	const struct lth_region *region = &infer->graph->regions[arm];
	if (region->num_outputs < infer->node->num_outputs)
		return lth_infer_reject(infer, "a result for each output", "%u for %u", region->num_outputs,
					infer->node->num_outputs);
	if (!lth_control_move_before(infer, arm))
		return lth_infer_exhausted(infer);
	for (uint32_t k = 0; k < infer->node->num_outputs; k++)
		lth_build_output(infer, k, infer->graph->regions[arm].outputs[k]);
	infer->graph->regions[arm].num_outputs = 0;
	return LTH_OK;
}

static enum lth_code take_then(struct lth_infer *infer)
{
	return take_arm(infer, true);
}

static enum lth_code take_else(struct lth_infer *infer)
{
	return take_arm(infer, false);
}

/* Whether branches give results of different ranks. */
static bool arms_differ(const struct lth_graph *graph, const struct lth_node *node)
{
	const struct lth_region *first = &graph->regions[arm_of(node, true)];
	const struct lth_region *second = &graph->regions[arm_of(node, false)];
	for (uint32_t k = 0; k < node->num_outputs && k < first->num_outputs && k < second->num_outputs; k++) {
		const struct lth_type *a = &graph->values[first->outputs[k]].type;
		const struct lth_type *b = &graph->values[second->outputs[k]].type;
		if (node->outputs[k] != LTH_NONE && a->kind == LTH_TYPE_TENSOR && b->kind == LTH_TYPE_TENSOR &&
		    a->dtype == b->dtype && a->rank != b->rank)
			return true;
	}
	return false;
}

/* Whether a region ends in an If whose results differ in rank. That node may not have been looked at yet. */
static bool is_open(const struct lth_graph *graph, lth_region_id id)
{
	if (id == LTH_NONE)
		return false;
	const struct lth_region *region = &graph->regions[id];
	uint32_t at = region->num_nodes;
	while (at > 0 && graph->nodes[region->nodes[at - 1]].deleted)
		at--;
	const struct lth_node *last = at ? &graph->nodes[region->nodes[at - 1]] : NULL;
	if (!last || last->op != &lth_ops[LTH_OP_ID_If])
		return false;
	lth_region_id arms[2] = {arm_of(last, true), arm_of(last, false)};
	return (arms[0] != LTH_NONE && arms[1] != LTH_NONE && arms_differ(graph, last)) || is_open(graph, arms[0]) ||
	       is_open(graph, arms[1]);
}

/* Infers a branch; sets *open, without an error, where it needs what follows the node. */
static enum lth_code enter_arm(struct lth_infer *infer, lth_region_id arm, bool *open)
{
	struct lth_diag diag = {0}, *outer = infer->diag;
	infer->diag = &diag;
	enum lth_code code = lth_control_enter(infer, arm);
	infer->diag = outer;
	if (code == LTH_UNSUPPORTED && lth_control_has_rest(infer) && is_open(infer->graph, arm)) {
		*open = true;
		return LTH_OK;
	}
	if (code)
		*infer->diag = diag;
	return code;
}

static enum lth_code take(struct lth_infer *infer, bool condition)
{
	lth_region_id arm = arm_of(infer->node, condition);
	bool open = false;
	enum lth_code code = enter_arm(infer, arm, &open);
	if (!code && open)
		code = lth_control_move_rest(infer, &arm, 1);
	if (!code && open)
		code = lth_control_enter(infer, arm);
	return code ? code : lth_build_expand(infer, condition ? take_then : take_else);
}

static enum lth_code split_rest(struct lth_infer *infer, const lth_region_id arms[2]);

/* A loop whose types have not settled: what is known now may change with the next turn. Only types are looked at. */
static enum lth_code look_at_arm(struct lth_infer *infer, const lth_region_id arms[2], bool condition)
{
	struct lth_graph *graph = infer->graph;
	lth_region_id arm = arms[condition ? 0 : 1];
	bool open = false;
	enum lth_code code = enter_arm(infer, arm, &open);
	if (!code && open)
		return split_rest(infer, arms);
	for (uint32_t k = 0; k < infer->node->num_outputs && !code; k++) {
		if (k >= graph->regions[arm].num_outputs)
			return lth_infer_reject(infer, "a result for each output", "%u for %u",
						graph->regions[arm].num_outputs, infer->node->num_outputs);
		lth_value_id from = graph->regions[arm].outputs[k], out = infer->node->outputs[k];
		if (out == LTH_NONE)
			continue;
		const struct lth_type type = graph->values[from].type;
		code = lth_infer_output_type(infer, k, &type);
		graph->values[out].contents = lth_value_contents(graph, from);
	}
	return code;
}

static bool known_condition(const struct lth_infer *infer, bool *out)
{
	const struct lth_contents *contents = lth_value_contents(infer->graph, infer->node->inputs[0]);
	int64_t value;
	if (!contents || !contents->dims || contents->count != 1 ||
	    !lth_dim_is_const(infer->dims, contents->dims[0], &value))
		return false;
	*out = value != 0;
	return true;
}

/* One branch does not fit what follows: the run must take the other. */
static enum lth_code exclude(struct lth_infer *infer, bool taken, const struct lth_diag *reason)
{
	const lth_dim *condition;
	uint32_t count;
	enum lth_code code = lth_infer_need_ints(infer, 0, 0, &condition, &count);
	if (code)
		return code;
	const char *rule = lth_arena_printf(infer->graph->arena, "a condition that is %s, for otherwise %s has %s",
					    taken ? "true" : "false", reason->place, reason->found);
	code = lth_infer_require(infer, LTH_REL_EQ, condition[0], lth_dim_const(infer->dims, taken),
				 rule ? rule : "a condition under which the model is valid");
	return code ? code : take(infer, taken);
}

static enum lth_code join_arms(struct lth_infer *infer, const lth_region_id arms[2]);

static enum lth_code split_rest(struct lth_infer *infer, const lth_region_id arms[2])
{
	struct lth_diag diags[2] = {{0}};
	enum lth_code codes[2], code;
	if (!lth_control_has_rest(infer))
		return join_arms(infer, arms); /* says what differs */
	if ((code = lth_control_move_rest(infer, arms, 2)))
		return code;
	for (int i = 0; i < 2; i++)
		codes[i] = lth_infer_region(infer->graph, arms[i], &diags[i]);
	infer->node = &infer->graph->nodes[infer->id];
	for (int i = 0; i < 2; i++)
		if (codes[i] == LTH_INVALID_GRAPH && codes[1 - i] == LTH_OK)
			return exclude(infer, i == 1, &diags[i]);
	for (int i = 0; i < 2; i++)
		if (codes[i]) {
			*infer->diag = diags[i];
			return codes[i];
		}
	return join_arms(infer, arms);
}

/* ---- both branches ---- */

/* The type that both branches' values have, with a data symbol at each axis where they differ. */
static enum lth_code join(struct lth_infer *infer, uint32_t output, const struct lth_type *a, const struct lth_type *b)
{
	lth_dim dims[LTH_MAX_RANK];
	struct lth_type object;
	if (a->kind != b->kind || (a->kind != LTH_TYPE_TENSOR && !lth_type_join(infer->graph, a, b, &object)))
		return lth_infer_reject(infer, "results of one type from both branches",
					"output %u is of another type in the other branch", output);
	if (a->kind != LTH_TYPE_TENSOR)
		return lth_infer_output_type(infer, output, &object);
	if (a->dtype != b->dtype)
		return lth_infer_reject(infer, lth_dtype_text(a->dtype), "output %u is of type %s in the other branch", output,
					lth_dtype_text(b->dtype));
	if (a->rank != b->rank)
		return lth_infer_unsupported(infer, "give both branches results of one rank",
					     "output %u has rank %u in one branch and %u in the other", output, a->rank,
					     b->rank);
	for (uint32_t axis = 0; axis < a->rank; axis++) {
		dims[axis] = a->dims[axis];
		if (a->dims[axis] == b->dims[axis])
			continue;
		lth_dim x = lth_dim_upper_bound(infer->dims, a->dims[axis]);
		lth_dim y = lth_dim_upper_bound(infer->dims, b->dims[axis]);
		lth_dim bound = x == LTH_DIM_NONE || y == LTH_DIM_NONE ? LTH_DIM_NONE : lth_dim_max(infer->dims, x, y);
		dims[axis] = lth_infer_data_dim(infer, lth_arena_printf(infer->graph->arena, "out%u.%u", output, axis), bound);
	}
	return lth_infer_output(infer, output, a->dtype, a->rank, dims);
}

static enum lth_code join_arms(struct lth_infer *infer, const lth_region_id arms[2])
{
	enum lth_code code = LTH_OK;
	for (uint32_t k = 0; k < infer->node->num_outputs && !code; k++) {
		const struct lth_region *first = &infer->graph->regions[arms[0]], *second = &infer->graph->regions[arms[1]];
		if (k >= first->num_outputs || k >= second->num_outputs)
			return lth_infer_reject(infer, "as many results from both branches", "%u and %u for %u outputs",
						first->num_outputs, second->num_outputs, infer->node->num_outputs);
		if (infer->node->outputs[k] == LTH_NONE)
			continue;
		struct lth_type a = infer->graph->values[first->outputs[k]].type;
		struct lth_type b = infer->graph->values[second->outputs[k]].type;
		code = join(infer, k, &a, &b);
	}
	return code;
}

static enum lth_code infer_if(struct lth_infer *infer)
{
	lth_region_id arms[2] = {arm_of(infer->node, true), arm_of(infer->node, false)};
	bool taken;
	if (known_condition(infer, &taken))
		return infer->graph->tentative ? look_at_arm(infer, arms, taken) : take(infer, taken);
	for (uint32_t k = 0; k < infer->node->num_outputs; k++) { /* what one branch gave when only it was looked at */
		lth_value_id out = infer->node->outputs[k];
		if (out != LTH_NONE && !lth_value_binds(infer->graph, out))
			infer->graph->values[out].contents = NULL;
	}
	bool open = false;
	enum lth_code code = enter_arm(infer, arms[0], &open);
	if (!code)
		code = enter_arm(infer, arms[1], &open);
	if (code)
		return code;
	return open || arms_differ(infer->graph, infer->node) ? split_rest(infer, arms) : join_arms(infer, arms);
}

const struct lth_op_impl lth_impl_if = {.infer = infer_if};
