/* Rewrites of data movement: what moves nothing goes, what moves twice moves once. Thread rule: as the graph's. */
#include "compiler/passes/simplify.h"

#include <string.h>

static bool all_ints(struct lth_graph *graph, lth_value_id value, int64_t number)
{
	const int64_t *list;
	uint32_t count;
	if (value == LTH_NONE || !lth_value_const_ints(graph, value, &list, &count))
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (list[i] != number)
			return false;
	return true;
}

/* Same type in and out: the input can stand for the output of a node that otherwise changes nothing. */
static bool if_same_type(struct lth_rewrite *rewrite, lth_node_id id)
{
	const struct lth_node *node = &rewrite->graph->nodes[id];
	return lth_same_type(rewrite->graph, node->inputs[0], node->outputs[0]) &&
	       lth_simplify_to(rewrite, id, node->inputs[0]);
}

bool simplify_identity(struct lth_rewrite *rewrite, lth_node_id id)
{
	const struct lth_node *node = &rewrite->graph->nodes[id];
	lth_value_id input = node->inputs[0], output = node->outputs[0];
	if (lth_rewrite_value(rewrite, input)->type.kind == LTH_TYPE_TENSOR &&
	    !lth_same_type(rewrite->graph, input, output))
		return false;
	return lth_simplify_to(rewrite, id, input);
}

bool simplify_dropout(struct lth_rewrite *rewrite, lth_node_id id)
{
	const struct lth_node *node = &rewrite->graph->nodes[id];
	lth_value_id training = lth_node_input(node, 2);
	double number;
	lth_value_id ratio = lth_node_input(node, 1);
	bool trains = training != LTH_NONE && !(lth_constant_number(rewrite->graph, training, &number) && number == 0);
	bool drops = ratio == LTH_NONE || !(lth_constant_number(rewrite->graph, ratio, &number) && number == 0);
	if (trains && drops)
		return false;
	if (node->num_outputs > 1 && node->outputs[1] != LTH_NONE && rewrite->uses[node->outputs[1]] > 0)
		return false;
	return if_same_type(rewrite, id);
}

bool simplify_cast_noop(struct lth_rewrite *rewrite, lth_node_id id)
{
	return if_same_type(rewrite, id);
}

/* Every value of `from` is a value of `to`. */
static bool lossless(enum lth_dtype from, enum lth_dtype to)
{
	enum lth_dtype_class a = lth_dtype_class(from), b = lth_dtype_class(to);
	unsigned from_bits = lth_dtype_bits(from), to_bits = lth_dtype_bits(to);
	unsigned mantissa = to == LTH_DTYPE_F64 ? 53 : to == LTH_DTYPE_F32 ? 24 : to == LTH_DTYPE_F16 ? 11 : 0;
	if (from == LTH_DTYPE_STRING || to == LTH_DTYPE_STRING)
		return false;
	if (a == LTH_CLASS_BOOL)
		return b == LTH_CLASS_INT || b == LTH_CLASS_UINT || mantissa > 0;
	if (a == LTH_CLASS_INT || a == LTH_CLASS_UINT) {
		if (b == LTH_CLASS_FLOAT)
			return from_bits <= mantissa;
		if (a == b)
			return to_bits >= from_bits;
		return a == LTH_CLASS_UINT && b == LTH_CLASS_INT && to_bits > from_bits;
	}
	return a == LTH_CLASS_FLOAT && (to == LTH_DTYPE_F32 || to == LTH_DTYPE_F64) && from_bits <= to_bits;
}

bool simplify_cast_chain(struct lth_rewrite *rewrite, lth_node_id id)
{
	struct lth_graph *graph = rewrite->graph;
	const struct lth_node *node = &graph->nodes[id];
	const struct lth_node *first = lth_producer(graph, node->inputs[0], LTH_OP_ID_Cast);
	if (!first || !lossless(graph->values[first->inputs[0]].type.dtype, graph->values[node->inputs[0]].type.dtype))
		return false;
	lth_rewrite_set_input(rewrite, 0, first->inputs[0]);
	return true;
}

/* The permutation of a Transpose; without `perm` it reverses. */
static bool permutation(const struct lth_graph *graph, const struct lth_node *node, int64_t *out, uint32_t *out_rank)
{
	uint32_t rank = graph->values[node->inputs[0]].type.rank, count;
	const int64_t *perm;
	if (rank > LTH_MAX_RANK)
		return false;
	bool given = lth_node_ints(node, "perm", &perm, &count);
	if (given && count != rank)
		return false;
	for (uint32_t axis = 0; axis < rank; axis++)
		out[axis] = given ? perm[axis] : (int64_t)(rank - 1 - axis);
	*out_rank = rank;
	return true;
}

bool simplify_transpose_noop(struct lth_rewrite *rewrite, lth_node_id id)
{
	int64_t perm[LTH_MAX_RANK];
	uint32_t rank;
	if (!permutation(rewrite->graph, &rewrite->graph->nodes[id], perm, &rank))
		return false;
	for (uint32_t axis = 0; axis < rank; axis++)
		if (perm[axis] != (int64_t)axis)
			return false;
	return if_same_type(rewrite, id);
}

bool simplify_transpose_chain(struct lth_rewrite *rewrite, lth_node_id id)
{
	struct lth_graph *graph = rewrite->graph;
	const struct lth_node *node = &graph->nodes[id];
	const struct lth_node *first = lth_producer(graph, node->inputs[0], LTH_OP_ID_Transpose);
	int64_t outer[LTH_MAX_RANK], inner[LTH_MAX_RANK], both[LTH_MAX_RANK];
	uint32_t rank, inner_rank;
	if (!first || !permutation(graph, node, outer, &rank) || !permutation(graph, first, inner, &inner_rank) ||
	    rank != inner_rank)
		return false;
	for (uint32_t axis = 0; axis < rank; axis++)
		both[axis] = inner[outer[axis]];
	lth_value_id input = first->inputs[0];
	struct lth_attr perm = {.name = "perm", .kind = LTH_ATTR_INTS, .count = rank};
	perm.ints = lth_arena_memdup(graph->arena, both, rank * sizeof(*both));
	if (!perm.ints)
		return false;
	lth_rewrite_become(rewrite, LTH_OP_ID_Transpose, &input, 1, &perm, 1);
	return true;
}

bool simplify_reshape_noop(struct lth_rewrite *rewrite, lth_node_id id)
{
	const struct lth_graph *graph = rewrite->graph;
	const struct lth_node *node = &graph->nodes[id];
	lth_value_id output = node->outputs[0];
	for (int step = 0; step < 16 && lth_reshapes(node); step++) {
		lth_value_id input = node->inputs[0];
		if (lth_same_type(graph, input, output))
			return lth_simplify_to(rewrite, id, input);
		if (graph->values[input].def != LTH_DEF_NODE)
			return false;
		node = &graph->nodes[graph->values[input].def_id];
	}
	return false;
}

/* A shape operand without 0 (copy) says the same whatever was reshaped before. */
bool simplify_reshape_chain(struct lth_rewrite *rewrite, lth_node_id id)
{
	struct lth_graph *graph = rewrite->graph;
	const struct lth_node *node = &graph->nodes[id];
	const struct lth_value *input = lth_rewrite_value(rewrite, node->inputs[0]);
	const int64_t *shape;
	uint32_t count;
	if (input->def != LTH_DEF_NODE || !lth_reshapes(&graph->nodes[input->def_id]) ||
	    !lth_value_const_ints(graph, node->inputs[1], &shape, &count))
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (shape[i] == 0)
			return false;
	lth_rewrite_set_input(rewrite, 0, graph->nodes[input->def_id].inputs[0]);
	return true;
}

bool simplify_expand_noop(struct lth_rewrite *rewrite, lth_node_id id)
{
	return if_same_type(rewrite, id);
}

/* What can stand for an operand where stretching is implied: what was expanded, or the one number of a ConstantOfShape.
 * LTH_NONE for others. */
static lth_value_id unstretched(struct lth_rewrite *rewrite, lth_value_id value)
{
	const struct lth_graph *graph = rewrite->graph;
	const struct lth_node *expand = lth_producer(graph, value, LTH_OP_ID_Expand);
	const struct lth_node *fill = lth_producer(graph, value, LTH_OP_ID_ConstantOfShape);
	if (expand)
		return expand->inputs[0];
	if (!fill)
		return LTH_NONE;
	const struct lth_attr *number = lth_node_attr(fill, "value");
	if (number)
		return number->kind == LTH_ATTR_TENSOR ? number->id : LTH_NONE;
	return lth_rewrite_scalar_f(rewrite, "zero", LTH_DTYPE_F32, 0);
}

static bool has_shape_of(const struct lth_graph *graph, lth_value_id value, const struct lth_type *output)
{
	const struct lth_type *type = &graph->values[value].type;
	if (type->kind != LTH_TYPE_TENSOR || type->rank != output->rank || type->rank == 0)
		return false;
	for (uint32_t axis = 0; axis < type->rank; axis++)
		if (lth_dim_equal(graph->dims, type->dims[axis], output->dims[axis]) != LTH_YES)
			return false;
	return true;
}

/* An elementwise operator stretches its inputs itself, if another input has the result's shape. */
bool simplify_expand_implicit(struct lth_rewrite *rewrite, lth_node_id id)
{
	struct lth_graph *graph = rewrite->graph;
	const struct lth_node *node = &graph->nodes[id];
	if (node->op->kind != LTH_OP_ELEMENTWISE || node->num_inputs < 2)
		return false;
	for (uint32_t k = 0; k < node->num_inputs; k++) {
		bool other_is_full = false;
		for (uint32_t other = 0; other < node->num_inputs && !other_is_full; other++)
			other_is_full = other != k && node->inputs[other] != LTH_NONE &&
					has_shape_of(graph, node->inputs[other],
						     &graph->values[node->outputs[0]].type);
		lth_value_id to = LTH_NONE;
		if (other_is_full && node->inputs[k] != LTH_NONE)
			to = unstretched(rewrite, node->inputs[k]);
		if (to == LTH_NONE)
			continue;
		lth_rewrite_set_input(rewrite, k, to);
		return true;
	}
	return false;
}

bool simplify_slice_full(struct lth_rewrite *rewrite, lth_node_id id)
{
	const struct lth_node *node = &rewrite->graph->nodes[id];
	lth_value_id steps = lth_node_input(node, 4);
	if (steps != LTH_NONE && !all_ints(rewrite->graph, steps, 1))
		return false;
	return if_same_type(rewrite, id);
}

bool simplify_concat_one(struct lth_rewrite *rewrite, lth_node_id id)
{
	return rewrite->graph->nodes[id].num_inputs == 1 && if_same_type(rewrite, id);
}

bool simplify_split_one(struct lth_rewrite *rewrite, lth_node_id id)
{
	return rewrite->graph->nodes[id].num_outputs == 1 && if_same_type(rewrite, id);
}

bool simplify_pad_nothing(struct lth_rewrite *rewrite, lth_node_id id)
{
	return all_ints(rewrite->graph, lth_node_input(&rewrite->graph->nodes[id], 1), 0) && if_same_type(rewrite, id);
}

bool simplify_tile_once(struct lth_rewrite *rewrite, lth_node_id id)
{
	return all_ints(rewrite->graph, lth_node_input(&rewrite->graph->nodes[id], 1), 1) && if_same_type(rewrite, id);
}

/* Constant zeros by non-negative amounts at spatial axes: [begin of each spatial axis.., end of each ..]. */
static bool spatial_zero_pads(struct lth_rewrite *rewrite, const struct lth_node *pad, uint32_t rank, int64_t *out)
{
	struct lth_graph *graph = rewrite->graph;
	const int64_t *amounts, *axes = NULL;
	uint32_t count, num_axes = rank;
	lth_value_id value = lth_node_input(pad, 2), axes_input = lth_node_input(pad, 3);
	double number;
	if (strcmp(lth_node_string(pad, "mode", "constant"), "constant") != 0 ||
	    (value != LTH_NONE && !(lth_constant_number(graph, value, &number) && number == 0)) ||
	    !lth_value_const_ints(graph, pad->inputs[1], &amounts, &count))
		return false;
	if (axes_input != LTH_NONE && !lth_value_const_ints(graph, axes_input, &axes, &num_axes))
		return false;
	if (count != 2 * num_axes)
		return false;
	memset(out, 0, 2 * (rank - 2) * sizeof(*out));
	for (uint32_t i = 0; i < num_axes; i++) {
		int64_t axis = axes ? axes[i] : (int64_t)i;
		axis += axis < 0 ? (int64_t)rank : 0;
		if (amounts[i] < 0 || amounts[num_axes + i] < 0)
			return false;
		if (axis >= 2) {
			out[axis - 2] = amounts[i];
			out[(int64_t)rank - 2 + axis - 2] = amounts[num_axes + i];
		} else if (amounts[i] > 0 || amounts[num_axes + i] > 0) {
			return false;
		}
	}
	return true;
}

bool simplify_pad_into_conv(struct lth_rewrite *rewrite, lth_node_id id)
{
	struct lth_graph *graph = rewrite->graph;
	const struct lth_node *node = &graph->nodes[id];
	const struct lth_node *pad = lth_sole_producer(rewrite, node->inputs[0], LTH_OP_ID_Pad);
	uint32_t rank = graph->values[node->inputs[0]].type.rank, count;
	int64_t pads[2 * LTH_MAX_RANK];
	const int64_t *own;
	const char *auto_pad = lth_node_string(node, "auto_pad", "NOTSET");
	bool valid = strcmp(auto_pad, "VALID") == 0;
	if (!pad || rank < 3 || rank > LTH_MAX_RANK || (!valid && strcmp(auto_pad, "NOTSET") != 0) ||
	    !spatial_zero_pads(rewrite, pad, rank, pads))
		return false;
	if (!valid && lth_node_ints(node, "pads", &own, &count))
		for (uint32_t i = 0; i < count && i < 2 * (rank - 2); i++)
			if (__builtin_add_overflow(pads[i], own[i], &pads[i]))
				return false;
	/* The node's attributes with the sum for its pads. */
	struct lth_attr attrs[16];
	uint32_t num_attrs = 0;
	for (uint32_t a = 0; a < node->num_attrs && num_attrs < 15; a++)
		if (strcmp(node->attrs[a].name, "pads") != 0 && strcmp(node->attrs[a].name, "auto_pad") != 0)
			attrs[num_attrs++] = node->attrs[a];
	struct lth_attr sum = {.name = "pads", .kind = LTH_ATTR_INTS, .count = 2 * (rank - 2)};
	sum.ints = lth_arena_memdup(graph->arena, pads, sum.count * sizeof(*pads));
	if (!sum.ints)
		return false;
	attrs[num_attrs++] = sum;
	lth_value_id inputs[3];
	uint32_t num_inputs = node->num_inputs;
	memcpy(inputs, node->inputs, num_inputs * sizeof(*inputs));
	inputs[0] = pad->inputs[0];
	lth_rewrite_become(rewrite, LTH_OP_ID_Conv, inputs, num_inputs, attrs, num_attrs);
	return true;
}

/* ---- arithmetic over movement ---- */

enum { MAX_MOVES = 8 };

/* The only input that is not a constant scalar, of an elementwise node that keeps its shape. */
static bool pointwise_input(const struct lth_rewrite *rewrite, const struct lth_node *node, uint32_t *out_index)
{
	const struct lth_graph *graph = rewrite->graph;
	bool found = false;
	double number;
	if (node->op->kind != LTH_OP_ELEMENTWISE || (node->op->flags & LTH_OPF_RANDOM) || node->num_outputs != 1)
		return false;
	for (uint32_t k = 0; k < node->num_inputs; k++) {
		if (node->inputs[k] == LTH_NONE)
			continue;
		const struct lth_value *input = &graph->values[node->inputs[k]];
		/* A vector of equal numbers would not stretch over another shape: rank 0 only. */
		if (input->type.kind == LTH_TYPE_TENSOR && input->type.rank == 0 &&
		    lth_constant_number(rewrite->graph, node->inputs[k], &number))
			continue;
		if (found)
			return false;
		found = true;
		*out_index = k;
	}
	if (!found)
		return false;
	const struct lth_type *in = &graph->values[node->inputs[*out_index]].type;
	const struct lth_type *out = &graph->values[node->outputs[0]].type;
	return in->kind == LTH_TYPE_TENSOR && out->kind == LTH_TYPE_TENSOR && in->rank == out->rank;
}

/* f(move(move(x))) is move(move(f(x))): worth it where x has just been computed, so that f ends that computation. */
bool simplify_over_movement(struct lth_rewrite *rewrite, lth_node_id id)
{
	struct lth_graph *graph = rewrite->graph;
	const struct lth_node node = graph->nodes[id];
	lth_node_id moves[MAX_MOVES];
	lth_value_id inputs[8];
	uint32_t index = 0, num_moves = 0;
	if (node.num_inputs > 8 || !pointwise_input(rewrite, &node, &index))
		return false;
	lth_value_id source = node.inputs[index];
	for (;;) {
		const struct lth_value *value = &graph->values[source];
		if (value->def != LTH_DEF_NODE || rewrite->uses[source] != 1)
			return false;
		const struct lth_node *move = &graph->nodes[value->def_id];
		if (!lth_reshapes(move) && lth_op_id(move->op) != LTH_OP_ID_Transpose)
			break;
		if (num_moves == MAX_MOVES || move->region != node.region)
			return false;
		moves[num_moves++] = value->def_id;
		source = move->inputs[0];
	}
	const struct lth_node *maker = &graph->nodes[graph->values[source].def_id];
	if (num_moves == 0 || maker->region != node.region ||
	    (maker->op->kind != LTH_OP_TEMPLATE && maker->op->kind != LTH_OP_ELEMENTWISE))
		return false;
	memcpy(inputs, node.inputs, node.num_inputs * sizeof(*inputs));
	inputs[index] = source;
	lth_value_id value = lth_rewrite_insert(rewrite, lth_op_id(node.op), "moved", inputs, node.num_inputs, node.attrs,
						node.num_attrs);
	for (uint32_t m = num_moves; m-- > 0 && value != LTH_NONE;) {
		const struct lth_node move = graph->nodes[moves[m]];
		memcpy(inputs, move.inputs, move.num_inputs * sizeof(*inputs));
		inputs[0] = value;
		if (m > 0)
			value = lth_rewrite_insert(rewrite, lth_op_id(move.op), "move", inputs, move.num_inputs,
						   move.attrs, move.num_attrs);
		else
			lth_rewrite_become(rewrite, lth_op_id(move.op), inputs, move.num_inputs, move.attrs,
					   move.num_attrs);
	}
	return true;
}
