/* AlterOpLayout: gives every value an order of axes in memory. One walk from inputs to outputs: convolution and
 * pooling get channels innermost, what follows them keeps that order, transposes and reshapes choose the order in
 * which they move nothing at all. Where a reader needs another order than the value has, a LayoutCopy is put between
 * (one for all readers of the region); constants are turned once, here. Inputs and outputs of the model and of regions
 * are row-major.
 *
 * Two exceptions save copies. A convolution reads planes in place when there are at most four channels: that is how
 * images arrive. A matrix product whose result is transposed on the way writes it in the transposed order.
 *
 * Legal once nothing that asks for the model's own order of bytes comes behind; exact. Thread rule: as the graph's.
 */
#include "compiler/passes/pass.h"

#include "compiler/passes/layout.h"
#include "compiler/passes/rewrite.h"

#include <string.h>

LTH_PASS_GRAPH_FN(lth_pass_alter_op_layout)

enum {
	PLANES = 4,          /* channels up to which a convolution reads row-major images in place */
	MAX_CHAIN = 32,      /* elementwise nodes looked through for a transpose */
};

enum way { WAY_NONE, WAY_SPATIAL, WAY_FOLLOW, WAY_THROUGH, WAY_MATRIX, WAY_GEMM, WAY_RECURRENT };

static const enum way ways[LTH_NUM_OPS] = {
#define LTH_LAYOUT(id, way) [LTH_OP_ID_##id] = WAY_##way,
#include "compiler/passes/layouts.def"
#undef LTH_LAYOUT
};

/* A copy that was made: readers in the same region share it. */
struct copy {
	lth_value_id from, to;
	lth_region_id region;
};

struct planner {
	struct copy *copies;
	uint32_t num_copies, cap_copies;
	lth_node_id *reader;  /* by value: its only reader at the start of the pass, or LTH_NONE */
};

static bool is_tensor(const struct lth_graph *graph, lth_value_id value)
{
	if (value == LTH_NONE)
		return false;
	const struct lth_type *type = &graph->values[value].type;
	return type->kind == LTH_TYPE_TENSOR && type->rank <= LTH_MAX_RANK && type->dtype != LTH_NUM_DTYPES;
}

/* Stores an order, in the short form where it is row-major. */
static void set_layout(struct lth_graph *graph, lth_value_id id, const uint8_t *order)
{
	struct lth_value *value = &graph->values[id];
	value->layout = NULL;
	if (order && !lth_layout_equal(graph, &value->type, order, NULL))
		value->layout = lth_arena_memdup(graph->arena, order, value->type.rank);
}

static void channels_last(uint32_t rank, uint8_t *out)
{
	out[0] = 0;
	for (uint32_t place = 1; place + 1 < rank; place++)
		out[place] = (uint8_t)(place + 1);
	out[rank - 1] = 1;
}

/* ---- copies ---- */

static lth_value_id find_copy(const struct planner *planner, const struct lth_graph *graph, lth_value_id from,
			      lth_region_id region, const uint8_t *order)
{
	/* What was itself copied from the order wanted needs no second copy. */
	const struct lth_node *maker = lth_producer(graph, from, LTH_OP_ID_LayoutCopy);
	if (maker && lth_layout_equal(graph, &graph->values[from].type, graph->values[maker->inputs[0]].layout, order))
		return maker->inputs[0];
	for (uint32_t i = 0; i < planner->num_copies; i++)
		if (planner->copies[i].from == from && planner->copies[i].region == region &&
		    lth_layout_equal(graph, &graph->values[from].type, graph->values[planner->copies[i].to].layout, order))
			return planner->copies[i].to;
	return LTH_NONE;
}

static bool movable(const struct lth_graph *graph, const struct lth_type *type, int64_t *extents)
{
	int64_t count;
	return lth_type_static(graph, type, extents) && lth_dtype_bits(type->dtype) >= 8 &&
	       lth_dtype_bytes(type->dtype, 1, &count);
}

/* The constant's bytes in another order, as a constant of that layout; LTH_NONE if its elements cannot be moved here.
 */
static lth_value_id turned_constant(struct lth_rewrite *rewrite, lth_value_id from, const uint8_t *order)
{
	struct lth_graph *graph = rewrite->graph;
	const struct lth_value value = graph->values[from];
	int64_t extents[LTH_MAX_RANK], strides[LTH_MAX_RANK], index[LTH_MAX_RANK] = {0}, step = 1;
	if (value.layout || !movable(graph, &value.type, extents))
		return LTH_NONE;
	uint32_t rank = value.type.rank;
	size_t width = lth_dtype_bits(value.type.dtype) / 8;
	char *data = lth_arena_alloc(graph->arena, (size_t)value.constant.bytes);
	if (!data)
		return LTH_NONE;
	for (uint32_t axis = rank; axis-- > 0; step *= extents[axis])
		strides[axis] = step;
	int64_t source = 0;
	for (int64_t at = 0; at < step; at++) {
		memcpy(data + (size_t)at * width, (const char *)value.constant.data + (size_t)source * width, width);
		for (uint32_t place = rank; place-- > 0;) { /* the next element in the new order */
			uint32_t axis = order[place];
			source += strides[axis];
			if (++index[axis] < extents[axis])
				break;
			source -= strides[axis] * extents[axis];
			index[axis] = 0;
		}
	}
	const char *name = lth_arena_printf(graph->arena, "%s.turned", value.name);
	lth_value_id turned = LTH_NONE;
	if (name)
		turned = lth_graph_constant(graph, name, value.type.dtype, rank, extents, data, value.constant.bytes);
	if (turned != LTH_NONE)
		set_layout(graph, turned, order);
	return turned;
}

/* The value in the order wanted: itself, a copy that exists, or a new one before the visited node. */
static lth_value_id in_order(struct lth_rewrite *rewrite, struct planner *planner, lth_value_id from,
			     const uint8_t *order)
{
	struct lth_graph *graph = rewrite->graph;
	if (lth_layout_equal(graph, &graph->values[from].type, graph->values[from].layout, order))
		return from;
	lth_value_id to = find_copy(planner, graph, from, rewrite->region, order);
	if (to != LTH_NONE)
		return to;
	if (lth_sole_producer(rewrite, from, LTH_OP_ID_ConstantOfShape)) { /* one number everywhere: any order is its own */
		set_layout(graph, from, order);
		return from;
	}
	if (graph->values[from].def == LTH_DEF_CONSTANT)
		to = turned_constant(rewrite, from, order);
	if (to == LTH_NONE) {
		to = lth_rewrite_insert(rewrite, LTH_OP_ID_LayoutCopy, "copy", &from, 1, NULL, 0);
		if (to == LTH_NONE)
			return from;
		set_layout(graph, to, order);
	}
	struct copy *copies = lth_arena_grow(graph->arena, planner->copies, &planner->cap_copies,
					     planner->num_copies + 1, sizeof(*copies));
	if (copies) {
		planner->copies = copies;
		copies[planner->num_copies++] = (struct copy){from, to, rewrite->region};
	}
	return to;
}

static void want(struct lth_rewrite *rewrite, struct planner *planner, lth_node_id node, uint32_t index,
		 const uint8_t *order)
{
	lth_value_id from = lth_node_input(&rewrite->graph->nodes[node], index);
	if (!is_tensor(rewrite->graph, from))
		return;
	lth_value_id to = in_order(rewrite, planner, from, order);
	if (to != from)
		lth_rewrite_set_input(rewrite, index, to);
}

/* ---- what each way of treating an operator does ---- */

static void spatial(struct lth_rewrite *rewrite, struct planner *planner, lth_node_id id)
{
	struct lth_graph *graph = rewrite->graph;
	lth_value_id input = graph->nodes[id].inputs[0], output = graph->nodes[id].outputs[0];
	uint8_t order[LTH_MAX_RANK];
	int64_t channels;
	uint32_t rank = graph->values[input].type.rank;
	if (!is_tensor(graph, input) || rank < 3)
		return;
	channels_last(rank, order);
	bool few = lth_dim_is_const(graph->dims, graph->values[input].type.dims[1], &channels) && channels <= PLANES;
	if (!(few && lth_op_id(graph->nodes[id].op) == LTH_OP_ID_Conv))
		want(rewrite, planner, id, 0, order);
	for (uint32_t k = 0; k < graph->nodes[id].num_outputs; k++) {
		output = graph->nodes[id].outputs[k];
		if (!is_tensor(graph, output) || graph->values[output].type.rank != rank)
			continue;
		bool few_out = lth_dim_is_const(graph->dims, graph->values[output].type.dims[1], &channels) &&
			       channels <= PLANES;
		if (!(few_out && rewrite->pinned[output])) /* planes, written to the model's output in place */
			set_layout(graph, output, order);
	}
}

static int64_t likely_elements(const struct lth_graph *graph, const struct lth_type *type)
{
	double elements = 1;
	for (uint32_t axis = 0; axis < type->rank; axis++) {
		int64_t extent;
		elements *= lth_dim_eval_likely(graph->dims, type->dims[axis], &extent) ? (double)extent : 16.0;
	}
	return elements < 1e18 ? (int64_t)elements : (int64_t)1e18;
}

/* The order that most bytes of the inputs of this rank have. Constants have no say: they can be turned. */
static const uint8_t *majority(const struct lth_graph *graph, const struct lth_node *node, uint32_t rank)
{
	const uint8_t *best = NULL;
	int64_t best_weight = 0;
	for (uint32_t k = 0; k < node->num_inputs; k++) {
		lth_value_id candidate = node->inputs[k];
		if (!is_tensor(graph, candidate) || graph->values[candidate].type.rank != rank ||
		    graph->values[candidate].def == LTH_DEF_CONSTANT)
			continue;
		int64_t weight = 0;
		for (uint32_t other = 0; other < node->num_inputs; other++) {
			lth_value_id input = node->inputs[other];
			if (!is_tensor(graph, input) || graph->values[input].type.rank != rank ||
			    graph->values[input].def == LTH_DEF_CONSTANT)
				continue;
			const struct lth_type *type = &graph->values[input].type;
			if (lth_layout_equal(graph, type, graph->values[input].layout, graph->values[candidate].layout))
				weight += likely_elements(graph, type) / node->num_inputs;
		}
		if (weight > best_weight || (weight == best_weight && !best)) {
			best = graph->values[candidate].layout;
			best_weight = weight;
		}
	}
	return best;
}

/* Inputs that are read once an element must agree; small ones that are broadcast may lie as they like. */
static void follow(struct lth_rewrite *rewrite, struct planner *planner, lth_node_id id)
{
	struct lth_graph *graph = rewrite->graph;
	const struct lth_node node = graph->nodes[id];
	lth_value_id output = node.outputs[0];
	if (!is_tensor(graph, output))
		return;
	uint32_t rank = graph->values[output].type.rank;
	bool alike = node.op->kind == LTH_OP_ELEMENTWISE || lth_op_id(node.op) == LTH_OP_ID_Concat;
	const uint8_t *order = NULL;
	uint8_t row_major[LTH_MAX_RANK];
	if (alike)
		order = majority(graph, &node, rank);
	else if (is_tensor(graph, node.inputs[0]) && graph->values[node.inputs[0]].type.rank == rank)
		order = graph->values[node.inputs[0]].layout;
	for (uint32_t axis = 0; axis < rank; axis++)
		row_major[axis] = (uint8_t)axis;
	/* A result that must be row-major anyway is written so at once, unless that takes a turn. */
	struct lth_value turned = graph->values[output];
	turned.layout = order;
	if (!order || (rewrite->pinned[output] && lth_layout_innermost(graph, &turned) ==
							  lth_layout_innermost(graph, &(struct lth_value){.type = turned.type})))
		order = row_major;
	for (uint32_t k = 0; k < node.num_inputs && alike; k++) {
		lth_value_id input = node.inputs[k];
		if (!is_tensor(graph, input) || graph->values[input].type.rank != rank)
			continue;
		if (graph->values[input].def == LTH_DEF_CONSTANT || lth_op_id(node.op) == LTH_OP_ID_Concat ||
		    lth_same_type(graph, input, output))
			want(rewrite, planner, id, k, order);
	}
	for (uint32_t k = 0; k < node.num_outputs; k++)
		if (is_tensor(graph, node.outputs[k]) && graph->values[node.outputs[k]].type.rank == rank)
			set_layout(graph, node.outputs[k], order);
}

static void through(struct lth_rewrite *rewrite, struct planner *planner, lth_node_id id)
{
	struct lth_graph *graph = rewrite->graph;
	lth_value_id input = graph->nodes[id].inputs[0], output = graph->nodes[id].outputs[0];
	uint8_t order[LTH_MAX_RANK];
	if (!is_tensor(graph, input) || !is_tensor(graph, output))
		return;
	if (lth_layout_through(graph, &graph->nodes[id], graph->values[input].layout, order))
		set_layout(graph, output, order);
	else
		want(rewrite, planner, id, 0, NULL);
}

/* Input `index` has one of its last `last` axes innermost, or is copied to row-major. */
static void want_inner(struct lth_rewrite *rewrite, struct planner *planner, lth_node_id id, uint32_t index,
		       uint32_t last)
{
	const struct lth_graph *graph = rewrite->graph;
	lth_value_id input = lth_node_input(&graph->nodes[id], index);
	if (!is_tensor(graph, input))
		return;
	const struct lth_value *value = &graph->values[input];
	uint32_t axis = lth_layout_innermost(graph, value);
	if (value->layout && axis != LTH_NONE && axis + last < value->type.rank)
		want(rewrite, planner, id, index, NULL);
}

/* If all that happens to a product is elementwise arithmetic and then a transpose that keeps columns columns: the order
 * in which the transpose's result is row-major. */
static bool transposed_later(const struct planner *planner, const struct lth_graph *graph, lth_value_id value,
			     uint8_t *out)
{
	uint32_t rank = graph->values[value].type.rank, count;
	for (int step = 0; step < MAX_CHAIN; step++) {
		if (planner->reader[value] == LTH_NONE)
			return false;
		const struct lth_node *reader = &graph->nodes[planner->reader[value]];
		const int64_t *perm;
		if (reader->deleted || reader->num_outputs != 1)
			return false;
		if (lth_op_id(reader->op) == LTH_OP_ID_Transpose && lth_node_ints(reader, "perm", &perm, &count) &&
		    count == rank && rank > 0 && perm[rank - 1] == rank - 1) {
			for (uint32_t axis = 0; axis < rank; axis++)
				out[axis] = (uint8_t)perm[axis];
			return true;
		}
		if (reader->op->kind != LTH_OP_ELEMENTWISE || !lth_same_type(graph, value, reader->outputs[0]))
			return false;
		value = reader->outputs[0];
	}
	return false;
}

static void matrix(struct lth_rewrite *rewrite, struct planner *planner, lth_node_id id)
{
	struct lth_graph *graph = rewrite->graph;
	uint8_t order[LTH_MAX_RANK];
	want_inner(rewrite, planner, id, 0, 1);
	want_inner(rewrite, planner, id, 1, 2);
	lth_value_id output = graph->nodes[id].outputs[0];
	if (is_tensor(graph, output) && transposed_later(planner, graph, output, order))
		set_layout(graph, output, order);
}

static void row_major_inputs(struct lth_rewrite *rewrite, struct planner *planner, lth_node_id id, uint32_t first)
{
	for (uint32_t k = first; k < rewrite->graph->nodes[id].num_inputs; k++)
		want(rewrite, planner, id, k, NULL);
}

static void choose(struct lth_rewrite *rewrite, lth_node_id id, void *context)
{
	struct planner *planner = context;
	const struct lth_op *op = rewrite->graph->nodes[id].op;
	if (rewrite->graph->nodes[id].num_inputs == 0)
		return;
	switch (ways[lth_op_id(op)]) {
	case WAY_SPATIAL:
		spatial(rewrite, planner, id);
		row_major_inputs(rewrite, planner, id, 1);
		break;
	case WAY_FOLLOW:
		follow(rewrite, planner, id);
		break;
	case WAY_THROUGH:
		through(rewrite, planner, id);
		break;
	case WAY_MATRIX:
		matrix(rewrite, planner, id);
		break;
	case WAY_GEMM:
		want(rewrite, planner, id, 0, NULL);
		want_inner(rewrite, planner, id, 1, 2);
		break;
	case WAY_RECURRENT:
		want_inner(rewrite, planner, id, 0, 1);
		row_major_inputs(rewrite, planner, id, 1);
		break;
	case WAY_NONE:
		if (op->kind == LTH_OP_ELEMENTWISE)
			follow(rewrite, planner, id);
		else if (op->kind == LTH_OP_IRREGULAR || op->kind == LTH_OP_OBJECT || op->kind == LTH_OP_CONTROL)
			row_major_inputs(rewrite, planner, id, 0);
		break;
	}
}

/* What a region gives back is row-major: a last copy takes the output's place and name. */
static void turn_outputs(struct lth_graph *graph)
{
	for (lth_region_id r = 0; r < graph->num_regions; r++)
		for (uint32_t k = 0; k < graph->regions[r].num_outputs; k++) {
			lth_value_id from = graph->regions[r].outputs[k];
			const struct lth_type type = graph->values[from].type;
			if (!graph->values[from].layout)
				continue;
			const char *name = graph->values[from].name;
			lth_value_id to = lth_graph_value(graph, name, &type);
			if (to == LTH_NONE)
				return;
			graph->values[to].contents = graph->values[from].contents;
			lth_graph_exchange_names(graph, from, to);
			lth_graph_node(graph, r, &lth_ops[LTH_OP_ID_LayoutCopy], name, &from, 1, &to, 1, NULL, 0);
			for (uint32_t other = k; other < graph->regions[r].num_outputs; other++)
				if (graph->regions[r].outputs[other] == from)
					graph->regions[r].outputs[other] = to;
		}
}

static bool find_sole_readers(struct planner *planner, const struct lth_graph *graph)
{
	planner->reader = lth_arena_array(graph->arena, graph->num_values, sizeof(*planner->reader));
	uint32_t *count = lth_arena_array(graph->arena, graph->num_values, sizeof(*count));
	if (!planner->reader || !count)
		return false;
	for (lth_node_id id = 0; id < graph->num_nodes; id++)
		for (uint32_t k = 0; k < graph->nodes[id].num_inputs && !graph->nodes[id].deleted; k++)
			if (graph->nodes[id].inputs[k] != LTH_NONE) {
				count[graph->nodes[id].inputs[k]]++;
				planner->reader[graph->nodes[id].inputs[k]] = id;
			}
	for (lth_region_id r = 0; r < graph->num_regions; r++)
		for (uint32_t k = 0; k < graph->regions[r].num_outputs; k++)
			count[graph->regions[r].outputs[k]] = 2;
	for (lth_value_id value = 0; value < graph->num_values; value++)
		if (count[value] != 1)
			planner->reader[value] = LTH_NONE;
	return true;
}

enum lth_code lth_pass_alter_op_layout(struct lth_graph *graph, const struct lth_pass_context *context,
				       struct lth_diag *diag)
{
	(void)context;
	struct planner planner = {0};
	uint32_t changes;
	if (!find_sole_readers(&planner, graph))
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "passes", NULL, "raise the memory limit",
				     "the compile's arena is exhausted");
	enum lth_code code = lth_rewrite_run(graph, choose, &planner, diag, &changes);
	if (code == LTH_OK)
		turn_outputs(graph);
	return code;
}
