/* AliasViews on the graph: which values are windows on the storage of others.
 *
 * Forwards: the output of a view operator shows its input's storage. Backwards: the operands of a Concat are written by
 * their producers straight into the result, when each is a kernel's own output that nothing else binds to a place (a
 * graph output, another Concat). What cannot be placed is copied by a node of its own (lth_alias_prepare), which can.
 * Only nodes that are groups of their own take part. Thread rule: as the graph's. */
#include "compiler/memory/memory.h"

#include "compiler/ops/op.h"

#include <stdlib.h>
#include <string.h>

struct alias {
	struct lth_graph *graph;
	const struct lth_op *concat;
	uint32_t *group_sizes; /* live nodes by group */
	uint8_t *bound;        /* by value: a graph or region output, or placed in a Concat already */
	uint8_t *dense;        /* by value: a reader wants it dense and row-major */
};

/* Recurrent layers take their states and weights as dense blocks, and rows of x that are contiguous. */
static bool wants_dense(const struct lth_node *node)
{
	enum lth_op_id op = lth_op_id(node->op);
	return op == LTH_OP_ID_LSTM || op == LTH_OP_ID_GRU || op == LTH_OP_ID_RNN;
}

static bool init(struct alias *a, struct lth_graph *graph, const struct lth_op *concat)
{
	*a = (struct alias){.graph = graph, .concat = concat};
	a->group_sizes = calloc(graph->num_groups + 1, sizeof(*a->group_sizes));
	a->bound = calloc(graph->num_values + 1, sizeof(*a->bound));
	a->dense = calloc(graph->num_values + 1, sizeof(*a->dense));
	if (!a->group_sizes || !a->bound || !a->dense)
		return false;
	for (lth_node_id id = 0; id < graph->num_nodes; id++) {
		const struct lth_node *node = &graph->nodes[id];
		for (uint32_t k = 0; !node->deleted && wants_dense(node) && k < node->num_inputs; k++)
			if (node->inputs[k] != LTH_NONE)
				a->dense[node->inputs[k]] = k == 0 ? 1 : 2; /* x: the last axis alone */
	}
	for (lth_node_id id = 0; id < graph->num_nodes; id++)
		if (!graph->nodes[id].deleted && graph->nodes[id].group < graph->num_groups)
			a->group_sizes[graph->nodes[id].group]++;
	for (lth_region_id region = 0; region < graph->num_regions; region++)
		for (uint32_t i = 0; i < graph->regions[region].num_outputs; i++)
			a->bound[graph->regions[region].outputs[i]] = 1;
	return true;
}

static void fini(struct alias *a)
{
	free(a->group_sizes);
	free(a->bound);
	free(a->dense);
}

static bool alone(const struct alias *a, const struct lth_node *node)
{
	return !node->deleted && node->group < a->graph->num_groups && a->group_sizes[node->group] == 1;
}

static bool is_concat(const struct alias *a, const struct lth_node *node)
{
	return node->op == a->concat && alone(a, node) && lth_dtype_bits(a->graph->values[node->outputs[0]].type.dtype) >= 8;
}

/* May the producer of operand `value` write it into the concatenation of `node`? A value whose contents suffice may have
 * no producer that writes it. */
static bool placeable(const struct alias *a, const struct lth_node *node, lth_value_id value)
{
	const struct lth_value *v = &a->graph->values[value];
	if (v->def != LTH_DEF_NODE || a->bound[value] || lth_contents_suffice(a->graph, value) || a->dense[value])
		return false;
	const struct lth_node *producer = &a->graph->nodes[v->def_id];
	if (producer->region != node->region)
		return false;
	switch (producer->op->kind) {
	case LTH_OP_ELEMENTWISE:
	case LTH_OP_REDUCTION:
	case LTH_OP_TEMPLATE:
		return true;
	case LTH_OP_INJECTIVE: /* a view, or another Concat that is placed in turn */
		return producer->op == a->concat || !(producer->op->flags & LTH_OPF_VIEW) || !alone(a, producer);
	default:
		return false;
	}
}

static enum lth_code exhausted(struct lth_diag *diag)
{
	return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "AliasViews", NULL, NULL, "no memory");
}

/* Puts a copy of operand `input` before node `id`. */
static void insert_copy(struct lth_graph *graph, lth_node_id id, uint32_t input, const struct lth_op *copy)
{
	lth_value_id from = graph->nodes[id].inputs[input];
	struct lth_type type = graph->values[from].type;
	const char *name = lth_arena_printf(graph->arena, "%s.part%u", graph->nodes[id].name, input);
	lth_region_id region = graph->nodes[id].region;
	uint32_t at = 0;
	while (graph->regions[region].nodes[at] != id)
		at++;
	lth_value_id to = lth_graph_value(graph, name, &type);
	if (to == LTH_NONE)
		return;
	graph->values[to].layout = graph->values[graph->nodes[id].outputs[0]].layout;
	lth_node_id made = lth_graph_insert(graph, region, at, copy, name, &from, 1, &to, 1, NULL, 0);
	if (made == LTH_NONE)
		return;
	graph->nodes[made].group = graph->num_groups++;
	graph->nodes[id].inputs[input] = to;
}

enum lth_code lth_alias_prepare(struct lth_graph *graph, const struct lth_op *concat, const struct lth_op *copy,
				struct lth_diag *diag)
{
	struct alias a;
	enum lth_code code = LTH_OK;
	if (!init(&a, graph, concat))
		code = exhausted(diag);
	for (lth_node_id id = graph->num_nodes; code == LTH_OK && id-- > 0;) {
		if (!is_concat(&a, &graph->nodes[id]))
			continue;
		for (uint32_t i = 0; i < graph->nodes[id].num_inputs; i++) {
			lth_value_id value = graph->nodes[id].inputs[i];
			if (placeable(&a, &graph->nodes[id], value)) {
				a.bound[value] = 1;
				continue;
			}
			insert_copy(graph, id, i, copy);
		}
		if (!lth_arena_ok(graph->arena))
			code = exhausted(diag);
	}
	fini(&a);
	return code;
}

/* Windows for the operands of one Concat. */
static bool place_operands(struct alias *a, const struct lth_node *node, struct lth_access *accesses)
{
	struct lth_graph *graph = a->graph;
	struct lth_dims *dims = graph->dims;
	lth_value_id out = node->outputs[0];
	int64_t axis = lth_node_int(node, "axis", 0);
	uint32_t rank = graph->values[out].type.rank;
	axis = axis < 0 ? axis + rank : axis;
	lth_dim position = lth_dim_const(dims, 0);
	for (uint32_t i = 0; i < node->num_inputs; i++)
		if (!placeable(a, node, node->inputs[i]))
			return false;
	for (uint32_t i = 0; i < node->num_inputs; i++) {
		lth_value_id value = node->inputs[i];
		lth_dim shift = lth_dim_mul(dims, position, accesses[out].strides[axis]);
		accesses[value] = (struct lth_access){.base = accesses[out].base,
						      .strides = accesses[out].strides,
						      .offset = lth_dim_add(dims, accesses[out].offset, shift)};
		a->bound[value] = 1;
		position = lth_dim_add(dims, position, graph->values[value].type.dims[axis]);
	}
	return true;
}

/* Does the window lie as the value's readers want it? */
static bool dense_enough(const struct alias *a, lth_value_id value, const struct lth_access *view)
{
	const struct lth_type *type = &a->graph->values[value].type;
	lth_dim step = lth_dim_const(a->graph->dims, 1);
	uint32_t last = a->dense[value] == 1 && type->rank > 0 ? type->rank - 1 : 0;
	for (uint32_t axis = type->rank; a->dense[value] && axis-- > last;) {
		int64_t extent;
		bool one = lth_dim_is_const(a->graph->dims, type->dims[axis], &extent) && extent == 1;
		if (!one && view->strides[axis] != step)
			return false;
		step = lth_dim_mul(a->graph->dims, step, type->dims[axis]);
	}
	return true;
}

/* Makes all outputs of a view operator windows, or none: one that is placed in a Concat has to be written there. */
static bool show_outputs(struct alias *a, lth_node_id id, struct lth_access *accesses)
{
	enum { MOST = 64 };
	const struct lth_node node = a->graph->nodes[id];
	struct lth_access views[MOST];
	if (node.num_outputs > MOST)
		return false;
	for (uint32_t k = 0; k < node.num_outputs; k++) {
		lth_value_id value = node.outputs[k];
		if (value == LTH_NONE)
			continue;
		if (accesses[value].base != value || !lth_lower_view(a->graph, accesses, id, k, &views[k]) ||
		    !dense_enough(a, value, &views[k]))
			return false;
	}
	for (uint32_t k = 0; k < node.num_outputs; k++)
		if (node.outputs[k] != LTH_NONE)
			accesses[node.outputs[k]] = views[k];
	return true;
}

/* Nodes in order, and the regions of a node with it: what they show are windows on what stands before. */
static void show_region(struct alias *a, lth_region_id region, struct lth_access *accesses, bool *is_view)
{
	struct lth_graph *graph = a->graph;
	for (uint32_t i = 0; i < graph->regions[region].num_nodes; i++) {
		lth_node_id id = graph->regions[region].nodes[i];
		const struct lth_node node = graph->nodes[id];
		bool control = !node.deleted && node.op->kind == LTH_OP_CONTROL;
		if (control)
			lth_control_windows(graph, accesses, &node);
		for (uint32_t k = 0; k < node.num_attrs && control; k++)
			if (node.attrs[k].kind == LTH_ATTR_REGION)
				show_region(a, node.attrs[k].id, accesses, is_view);
		if (alone(a, &node) && node.op->kind == LTH_OP_INJECTIVE && node.op != a->concat &&
		    (node.op->flags & LTH_OPF_VIEW))
			is_view[id] = show_outputs(a, id, accesses);
	}
}

enum lth_code lth_alias_views(struct lth_graph *graph, const struct lth_op *concat, struct lth_access *accesses,
			      bool *is_view, struct lth_diag *diag)
{
	struct alias a;
	if (!init(&a, graph, concat)) {
		fini(&a);
		return exhausted(diag);
	}
	/* a node stands behind its operands' producers, so backwards meets an outer Concat before an inner one */
	for (lth_region_id region = 0; region < graph->num_regions; region++)
		for (uint32_t i = graph->regions[region].num_nodes; i-- > 0;) {
			lth_node_id id = graph->regions[region].nodes[i];
			if (is_concat(&a, &graph->nodes[id]))
				is_view[id] = place_operands(&a, &graph->nodes[id], accesses);
		}
	show_region(&a, 0, accesses, is_view);
	fini(&a);
	return lth_arena_ok(graph->arena) ? LTH_OK : exhausted(diag);
}
