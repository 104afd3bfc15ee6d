/* Gradient (ai.onnx.preview.training): reverse-mode differentiation of the nodes before it. The importer has put the
 * values that the attributes name behind the node's own inputs: x1 .. xn, z1 .. zm, then y, and the named ones again.
 *
 * Where the inputs are the named tensors themselves, the values of the forward pass are used as they stand; else the
 * part of the graph that y needs is built once more on what was given. Then the nodes are gone through from the last,
 * each adding to the gradients of its inputs. y counts as the sum of its elements. An x is independent of what it was
 * computed from. */
#include "compiler/ops/gradient.h"
#include "compiler/ops/family.h"

#include <string.h>

enum kind { LOCAL = 1, WHOLE };

static const struct rule {
	enum kind kind; /* 0: none */
	lth_gradient_fn function;
} rules[LTH_NUM_OPS] = {
#define LTH_GRADIENT(op, kind, function) [LTH_OP_ID_##op] = {kind, lth_gradient_##function},
#include "compiler/ops/gradients.def"
#undef LTH_GRADIENT
};

/* The pass: lists by value have an entry for each value before any gradient was built. */
struct pass {
	struct lth_infer *infer;
	lth_value_id y;
	lth_value_id *named; /* the independent values: xs, then zs */
	uint32_t num_xs, num_named;
	lth_node_id *nodes; /* between them and y, in order */
	uint32_t num_nodes, num_values;
	bool *active;            /* depends on an x by floating-point numbers */
	lth_value_id *gradients; /* LTH_NONE: none yet */
};

lth_value_id lth_gradient_refuse(struct lth_gradient *g, const char *what)
{
	if (!g->infer->failed)
		g->infer->failed = lth_infer_unsupported(g->infer, "end the path before it, or leave it out of y",
							 "no derivative of %s %s (node '%s')", g->node.op->name, what,
							 g->node.name);
	return LTH_NONE;
}

lth_value_id lth_gradient_fill(struct lth_infer *infer, enum lth_dtype dtype, double value, lth_value_id shape)
{
	return lth_build2(infer, LTH_OP_ID_Expand, lth_build_scalar(infer, dtype, value), shape);
}

lth_value_id lth_gradient_sum_to(struct lth_gradient *g, lth_value_id value, lth_value_id like)
{
	struct lth_infer *infer = g->infer;
	if (infer->failed)
		return LTH_NONE;
	const struct lth_type *from = &infer->graph->values[value].type, *to = &infer->graph->values[like].type;
	uint32_t leading = from->rank - to->rank, count = 0;
	int64_t axes[LTH_MAX_RANK], extent;
	for (uint32_t axis = 0; axis < from->rank; axis++) {
		if (axis >= leading && from->dims[axis] == to->dims[axis - leading])
			continue;
		lth_dim own = axis >= leading ? to->dims[axis - leading] : LTH_DIM_NONE;
		if (axis >= leading && (!lth_dim_is_const(infer->dims, own, &extent) || extent != 1))
			return lth_gradient_refuse(g, "where it depends on the run whether an axis is broadcast");
		axes[count++] = axis;
	}
	bool same_rank = leading == 0;
	if (count)
		value = lth_build_reduce(infer, LTH_OP_ID_ReduceSum, value, axes, count, true);
	return same_rank ? value : lth_build_reshape_like(infer, value, like);
}

/* ---- what is gone through ---- */

static bool is_real(const struct lth_graph *graph, lth_value_id value)
{
	const struct lth_type *type = &graph->values[value].type;
	return type->kind == LTH_TYPE_TENSOR && lth_dtype_in(type->dtype, "float");
}

static bool is_named(const struct pass *pass, lth_value_id value)
{
	for (uint32_t i = 0; i < pass->num_named; i++)
		if (pass->named[i] == value)
			return true;
	return false;
}

/* Marks the inputs of a node, those that its regions take from outside among them. */
static void mark_inputs(const struct lth_graph *graph, const struct lth_node *node, bool *marks)
{
	for (uint32_t i = 0; i < node->num_inputs; i++)
		if (node->inputs[i] != LTH_NONE)
			marks[node->inputs[i]] = true;
	for (uint32_t i = 0; i < node->num_attrs; i++) {
		if (node->attrs[i].kind != LTH_ATTR_REGION)
			continue;
		const struct lth_region *region = &graph->regions[node->attrs[i].id];
		for (uint32_t k = 0; k < region->num_nodes; k++)
			mark_inputs(graph, &graph->nodes[region->nodes[k]], marks);
		for (uint32_t k = 0; k < region->num_outputs; k++)
			marks[region->outputs[k]] = true;
	}
}

/* The nodes before the Gradient that y needs, up to the independent values. */
static bool find_nodes(struct pass *pass)
{
	struct lth_graph *graph = pass->infer->graph;
	const struct lth_region *region = &graph->regions[pass->infer->node->region];
	bool *needed = lth_arena_array(graph->arena, graph->num_values, sizeof(*needed));
	pass->nodes = lth_arena_array(graph->arena, region->num_nodes, sizeof(*pass->nodes));
	if (!needed || !pass->nodes)
		return false;
	uint32_t end = 0, first = region->num_nodes;
	while (region->nodes[end] != pass->infer->id)
		end++;
	needed[pass->y] = true;
	for (uint32_t at = end; at-- > 0;) {
		const struct lth_node *node = &graph->nodes[region->nodes[at]];
		bool wanted = false;
		for (uint32_t k = 0; !node->deleted && k < node->num_outputs; k++)
			wanted |= node->outputs[k] != LTH_NONE && needed[node->outputs[k]] &&
				  !is_named(pass, node->outputs[k]);
		if (!wanted)
			continue;
		mark_inputs(graph, node, needed);
		pass->nodes[--first] = region->nodes[at];
	}
	pass->num_nodes = region->num_nodes - first;
	pass->nodes += first;
	return true;
}

/* ---- the same graph on other values ---- */

static enum lth_code copy_node(struct pass *pass, lth_node_id *node_id, lth_value_id *copies)
{
	struct lth_infer *infer = pass->infer;
	struct lth_graph *graph = infer->graph;
	const struct lth_node node = graph->nodes[*node_id];
	bool changed = false;
	lth_value_id *inputs = lth_arena_memdup(graph->arena, node.inputs, node.num_inputs * sizeof(*inputs));
	lth_value_id *outputs = lth_arena_array(graph->arena, node.num_outputs, sizeof(*outputs));
	bool *wanted = lth_arena_array(graph->arena, node.num_outputs, sizeof(*wanted));
	if (!inputs || !outputs || !wanted)
		return LTH_OK; /* the arena's exhaustion is sticky */
	for (uint32_t k = 0; k < node.num_inputs; k++)
		if (inputs[k] != LTH_NONE && copies[inputs[k]] != LTH_NONE) {
			inputs[k] = copies[inputs[k]];
			changed = true;
		}
	for (uint32_t k = 0; k < node.num_attrs; k++)
		if (node.attrs[k].kind == LTH_ATTR_REGION)
			return lth_infer_unsupported(infer, "give Gradient the tensors that xs and zs name",
						     "%s (node '%s') on the way, to be computed for other values",
						     node.op->name, node.name);
	if (!changed)
		return LTH_OK;
	for (uint32_t k = 0; k < node.num_outputs; k++)
		wanted[k] = node.outputs[k] != LTH_NONE && !is_named(pass, node.outputs[k]);
	*node_id = graph->num_nodes;
	lth_build_many(infer, lth_op_id(node.op), inputs, node.num_inputs, node.attrs, node.num_attrs, wanted, outputs,
		       node.num_outputs);
	for (uint32_t k = 0; k < node.num_outputs && !infer->failed; k++)
		if (wanted[k])
			copies[node.outputs[k]] = outputs[k];
	return infer->failed;
}

/* Builds the pass's nodes on the node's own inputs where these are not the named values. */
static enum lth_code substitute(struct pass *pass)
{
	struct lth_infer *infer = pass->infer;
	uint32_t count = infer->graph->num_values;
	lth_value_id *copies = lth_arena_array(infer->graph->arena, count, sizeof(*copies));
	bool same = true;
	for (uint32_t i = 0; i < pass->num_named; i++)
		same &= lth_node_input(infer->node, i) == pass->named[i];
	if (same || !copies)
		return LTH_OK;
	for (uint32_t i = 0; i < count; i++)
		copies[i] = LTH_NONE;
	for (uint32_t i = 0; i < pass->num_named; i++) /* a value of its own, even if one tensor is given twice */
		copies[pass->named[i]] = lth_build1(infer, LTH_OP_ID_Identity, lth_node_input(infer->node, i));
	enum lth_code code = infer->failed;
	for (uint32_t i = 0; i < pass->num_nodes && !code; i++)
		code = copy_node(pass, &pass->nodes[i], copies);
	if (code)
		return code;
	for (uint32_t i = 0; i < pass->num_named; i++)
		pass->named[i] = copies[pass->named[i]];
	pass->y = copies[pass->y] == LTH_NONE ? pass->y : copies[pass->y];
	return LTH_OK;
}

/* ---- the way back ---- */

static bool mark_active(struct pass *pass)
{
	struct lth_graph *graph = pass->infer->graph;
	pass->num_values = graph->num_values;
	pass->active = lth_arena_array(graph->arena, pass->num_values, sizeof(*pass->active));
	pass->gradients = lth_arena_array(graph->arena, pass->num_values, sizeof(*pass->gradients));
	if (!pass->active || !pass->gradients)
		return false;
	for (uint32_t i = 0; i < pass->num_values; i++)
		pass->gradients[i] = LTH_NONE;
	for (uint32_t i = 0; i < pass->num_xs; i++)
		pass->active[pass->named[i]] = true;
	bool *seen = lth_arena_array(graph->arena, pass->num_values, sizeof(*seen));
	for (uint32_t i = 0; seen && i < pass->num_nodes; i++) {
		const struct lth_node *node = &graph->nodes[pass->nodes[i]];
		memset(seen, 0, pass->num_values * sizeof(*seen));
		mark_inputs(graph, node, seen);
		bool depends = false;
		for (uint32_t v = 0; v < pass->num_values && !depends; v++)
			depends = seen[v] && pass->active[v];
		for (uint32_t k = 0; k < node->num_outputs && depends; k++) {
			lth_value_id out = node->outputs[k];
			if (out != LTH_NONE && is_real(graph, out) && !is_named(pass, out))
				pass->active[out] = true;
		}
	}
	return seen != NULL;
}

static void accumulate(struct pass *pass, lth_value_id value, lth_value_id more)
{
	lth_value_id *sum = &pass->gradients[value];
	*sum = *sum == LTH_NONE ? more : lth_build2(pass->infer, LTH_OP_ID_Add, *sum, more);
}

static void go_through(struct pass *pass, struct lth_gradient *g)
{
	const struct rule *rule = &rules[lth_op_id(g->node.op)];
	for (uint32_t k = 0; k < g->node.num_inputs && !pass->infer->failed; k++) {
		lth_value_id in = g->node.inputs[k];
		if (in == LTH_NONE || !pass->active[in] || !is_real(pass->infer->graph, in))
			continue;
		lth_value_id part = rule->function(g, k);
		if (part == LTH_NONE)
			continue;
		if (rule->kind == LOCAL)
			part = lth_build2(pass->infer, LTH_OP_ID_Mul, g->of[0], part);
		part = lth_gradient_sum_to(g, part, in);
		accumulate(pass, in, part);
	}
}

static void go_back(struct pass *pass)
{
	struct lth_graph *graph = pass->infer->graph;
	for (uint32_t at = pass->num_nodes; at-- > 0 && !pass->infer->failed;) {
		struct lth_gradient g = {.infer = pass->infer, .node = graph->nodes[pass->nodes[at]]};
		lth_value_id *of = lth_arena_array(graph->arena, g.node.num_outputs, sizeof(*of));
		bool any = false, active = false;
		for (uint32_t k = 0; of && k < g.node.num_outputs; k++) {
			lth_value_id out = g.node.outputs[k];
			of[k] = out == LTH_NONE || is_named(pass, out) ? LTH_NONE : pass->gradients[out];
			any |= of[k] != LTH_NONE;
			active |= out != LTH_NONE && pass->active[out];
		}
		g.of = of;
		if (!any || !active)
			continue;
		if (rules[lth_op_id(g.node.op)].kind)
			go_through(pass, &g);
		else
			lth_gradient_refuse(&g, "is known");
	}
}

/* ---- the operator ---- */

static enum lth_code begin(struct lth_infer *infer, struct pass *pass)
{
	const struct lth_attr *xs = lth_node_attr(infer->node, "xs"), *zs = lth_node_attr(infer->node, "zs");
	uint32_t count = xs->count + (zs ? zs->count : 0);
	*pass = (struct pass){.infer = infer, .num_xs = xs->count, .num_named = count};
	if (infer->node->num_inputs != 2 * count + 1 || infer->node->num_outputs > xs->count)
		return lth_infer_reject(infer, "an input for each of xs and zs, no more outputs than xs",
					"%u inputs, %u outputs for %u tensors", infer->node->num_inputs / 2,
					infer->node->num_outputs, count);
	for (uint32_t i = 0; i < infer->node->num_inputs; i++)
		if (infer->node->inputs[i] == LTH_NONE)
			return lth_infer_reject(infer, "tensors that are there", "an absent input");
	const lth_value_id *behind = infer->node->inputs + count;
	pass->named = lth_arena_memdup(infer->graph->arena, behind + 1, count * sizeof(*pass->named));
	pass->y = behind[0];
	for (uint32_t i = 0; pass->named && i < xs->count; i++)
		if (!is_real(infer->graph, pass->named[i]))
			return lth_infer_reject(infer, "floating-point tensors in xs", "'%s'",
						infer->graph->values[pass->named[i]].name);
	if (!is_real(infer->graph, pass->y))
		return lth_infer_reject(infer, "a floating-point y", "'%s'", infer->graph->values[pass->y].name);
	return LTH_OK;
}

static lth_value_id filled_like(struct lth_infer *infer, lth_value_id like, double value)
{
	enum lth_dtype dtype = infer->graph->values[like].type.dtype;
	return lth_gradient_fill(infer, dtype, value, lth_build1(infer, LTH_OP_ID_Shape, like));
}

static enum lth_code expand_gradient(struct lth_infer *infer)
{
	struct pass pass;
	enum lth_code code = begin(infer, &pass);
	if (!code && find_nodes(&pass))
		code = substitute(&pass);
	if (code || !lth_arena_ok(infer->graph->arena) || !mark_active(&pass))
		return code;
	pass.gradients[pass.y] = filled_like(infer, pass.y, 1);
	go_back(&pass);
	for (uint32_t i = 0; i < infer->node->num_outputs && !infer->failed; i++) {
		lth_value_id x = pass.named[i], gradient = pass.gradients[x];
		if (gradient == LTH_NONE)
			gradient = filled_like(infer, x, 0);
		lth_build_output(infer, i, lth_build1(infer, LTH_OP_ID_Identity, gradient)); /* several may share one */
	}
	return LTH_OK;
}

const struct lth_op_impl lth_impl_gradient = {.expand = expand_gradient};
