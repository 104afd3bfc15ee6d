/* FakeQuantizationToInteger: models that are quantised by nodes around their operators (DequantizeLinear, Conv,
 * QuantizeLinear) compute in integers. A convolution or product of what was dequantised from bytes, by weights that are
 * constants, becomes the sum of the bytes' products, scaled afterwards:
 *
 *   sum (a - za) sa (b - zb) sb  =  sa sb * sum (a - za)(b - zb)
 *
 * The sum is exact, so that results differ from the float form by its rounding only. What moves elements or takes
 * their greatest runs on the bytes, and is dequantised afterwards; SimplifyExpr then finds pairs that undo each other.
 *
 * Legal where the sums cannot overflow 32 bits. Before FoldConstant, which would make floats of the weights. Thread
 * rule: as the graph's. */
#include "compiler/passes/pass.h"

#include "compiler/passes/rewrite.h"

LTH_PASS_GRAPH_FN(lth_pass_fake_quantization)

enum {
	MOST_TERMS = INT32_MAX / (255 * 255), /* products of differences of bytes that surely fit a sum */
	FEWEST_CHANNELS = 3,                  /* a quad with less of four bytes is no better than a float */
};

/* What a DequantizeLinear to f32 reads; zero LTH_NONE: 0. */
struct quantised {
	lth_value_id x, scale, zero;
	bool by_axis; /* one scale for each place of the axis asked for, else one for all */
};

static bool is_one_element(const struct lth_rewrite *rewrite, lth_value_id value)
{
	struct lth_graph *graph = rewrite->graph;
	return value == LTH_NONE ||
	       lth_type_elements(graph, &graph->values[value].type) == lth_dim_const(graph->dims, 1);
}

static bool is_byte(const struct lth_rewrite *rewrite, lth_value_id value)
{
	enum lth_dtype dtype = rewrite->graph->values[value].type.dtype;
	return dtype == LTH_DTYPE_U8 || dtype == LTH_DTYPE_I8;
}

/* `axis`: along which scales and zero points may differ, counted from the front; LTH_NONE: none. */
static bool find_quantised(const struct lth_rewrite *rewrite, lth_value_id value, uint32_t axis, struct quantised *out)
{
	const struct lth_graph *graph = rewrite->graph;
	const struct lth_node *node = value == LTH_NONE ? NULL
							: lth_producer(graph, value, LTH_OP_ID_DequantizeLinear);
	if (!node || graph->values[value].type.dtype != LTH_DTYPE_F32 || !is_byte(rewrite, node->inputs[0]) ||
	    graph->values[node->inputs[1]].type.dtype != LTH_DTYPE_F32 || lth_op_int(node, "block_size") != 0)
		return false;
	*out = (struct quantised){.x = node->inputs[0], .scale = node->inputs[1], .zero = lth_node_input(node, 2)};
	if (is_one_element(rewrite, out->scale) && is_one_element(rewrite, out->zero))
		return true;
	int64_t own = lth_op_int(node, "axis"), rank = graph->values[out->x].type.rank;
	out->by_axis = axis != LTH_NONE && (own < 0 ? own + rank : own) == (int64_t)axis;
	return out->by_axis;
}

static bool find_weights(const struct lth_rewrite *rewrite, lth_value_id value, uint32_t axis, struct quantised *out)
{
	const struct lth_value *values = rewrite->graph->values;
	return find_quantised(rewrite, value, axis, out) && values[out->x].def == LTH_DEF_CONSTANT &&
	       (out->zero == LTH_NONE || values[out->zero].def == LTH_DEF_CONSTANT);
}

/* The product of constant extents `first` to `last` - 1, at most `most`. */
static bool few_terms(const struct lth_graph *graph, const struct lth_type *type, uint32_t first, uint32_t last,
		      int64_t most)
{
	int64_t terms = 1, extent;
	for (uint32_t axis = first; axis < last; axis++) {
		if (!lth_dim_is_const(graph->dims, type->dims[axis], &extent) || (extent > 0 && terms > most / extent))
			return false;
		terms *= extent;
	}
	return true;
}

/* sum * sa sb as f32, where `vector_axes` axes of the result stand behind the one along which sb may vary. */
static lth_value_id by_columns(struct lth_rewrite *rewrite, lth_value_id vector, uint32_t vector_axes)
{
	struct lth_graph *graph = rewrite->graph;
	int64_t *shape = lth_arena_array(graph->arena, vector_axes + 1, sizeof(*shape));
	int64_t count = vector_axes + 1;
	if (vector == LTH_NONE || vector_axes == 0 || is_one_element(rewrite, vector) || !shape)
		return vector;
	shape[0] = -1;
	for (uint32_t axis = 1; axis <= vector_axes; axis++)
		shape[axis] = 1;
	lth_value_id to = lth_rewrite_constant(rewrite, "shape", LTH_DTYPE_I64, 1, &count, shape,
					       count * (int64_t)sizeof(*shape));
	return lth_rewrite_insert(rewrite, LTH_OP_ID_Reshape, "by_channel", (lth_value_id[]){vector, to}, 2, NULL, 0);
}

/* The visited node becomes op(a, b) in integers, scaled, plus `bias` if there is one. */
static void become_integer(struct lth_rewrite *rewrite, enum lth_op_id op, const struct quantised *a,
			   const struct quantised *b, lth_value_id bias, uint32_t vector_axes,
			   const struct lth_attr *attrs, uint32_t num_attrs)
{
	const struct lth_attr to_float = {
		.name = "to", .kind = LTH_ATTR_INT, .count = 1, .i = lth_dtype_onnx(LTH_DTYPE_F32)};
	uint32_t count = b->zero != LTH_NONE ? 4 : a->zero != LTH_NONE ? 3 : 2;
	lth_value_id operands[4] = {a->x, b->x, a->zero, b->zero};
	lth_value_id sum = lth_rewrite_insert(rewrite, op, "sum", operands, count, attrs, num_attrs);
	lth_value_id real = lth_rewrite_insert(rewrite, LTH_OP_ID_Cast, "real", &sum, 1, &to_float, 1);
	lth_value_id scales[2] = {a->scale, by_columns(rewrite, b->scale, vector_axes)};
	lth_value_id scale = lth_rewrite_insert(rewrite, LTH_OP_ID_Mul, "scale", scales, 2, NULL, 0);
	lth_value_id scaled[2] = {real, scale};
	if (rewrite->code != LTH_OK)
		return;
	if (bias == LTH_NONE) {
		lth_rewrite_become(rewrite, LTH_OP_ID_Mul, scaled, 2, NULL, 0);
		return;
	}
	lth_value_id product = lth_rewrite_insert(rewrite, LTH_OP_ID_Mul, "scaled", scaled, 2, NULL, 0);
	lth_value_id terms[2] = {product, by_columns(rewrite, bias, vector_axes)};
	if (rewrite->code == LTH_OK)
		lth_rewrite_become(rewrite, LTH_OP_ID_Add, terms, 2, NULL, 0);
}

static void convolution(struct lth_rewrite *rewrite, const struct lth_node *node)
{
	const struct lth_graph *graph = rewrite->graph;
	struct quantised x, w;
	int64_t inputs, channels, groups = lth_op_int(node, "group");
	if (!find_quantised(rewrite, node->inputs[0], LTH_NONE, &x) || !find_weights(rewrite, node->inputs[1], 0, &w))
		return;
	const struct lth_type *type = &graph->values[w.x].type;
	if (!lth_dim_is_const(graph->dims, type->dims[0], &channels) ||
	    !lth_dim_is_const(graph->dims, type->dims[1], &inputs) ||
	    (inputs < FEWEST_CHANNELS && !(inputs == 1 && groups > 1)) ||
	    !few_terms(graph, type, 1, type->rank, MOST_TERMS))
		return;
	become_integer(rewrite, LTH_OP_ID_ConvInteger, &x, &w, lth_node_input(node, 2), type->rank - 2, node->attrs,
		       node->num_attrs);
}

static void product(struct lth_rewrite *rewrite, const struct lth_node *node)
{
	const struct lth_graph *graph = rewrite->graph;
	struct quantised a, b;
	uint32_t rank = graph->values[node->inputs[1]].type.rank;
	if (rank < 2 || !find_quantised(rewrite, node->inputs[0], LTH_NONE, &a) ||
	    !find_weights(rewrite, node->inputs[1], rank - 1, &b) ||
	    !few_terms(graph, &graph->values[b.x].type, rank - 2, rank - 1, MOST_TERMS))
		return;
	become_integer(rewrite, LTH_OP_ID_MatMulInteger, &a, &b, LTH_NONE, 0, NULL, 0);
}

static void gemm(struct lth_rewrite *rewrite, const struct lth_node *node)
{
	const struct lth_graph *graph = rewrite->graph;
	static const int64_t exchange[2] = {1, 0};
	const struct lth_attr perm = {.name = "perm", .kind = LTH_ATTR_INTS, .count = 2, .ints = exchange};
	struct quantised a, b;
	bool turned = lth_op_int(node, "transB") != 0;
	lth_value_id bias = lth_node_input(node, 2);
	if (lth_op_float(node, "alpha") != 1 || lth_op_float(node, "beta") != 1 || lth_op_int(node, "transA") != 0 ||
	    !find_quantised(rewrite, node->inputs[0], LTH_NONE, &a) ||
	    !find_weights(rewrite, node->inputs[1], turned ? 0 : 1, &b) ||
	    !few_terms(graph, &graph->values[b.x].type, turned, turned + 1u, MOST_TERMS))
		return;
	if (turned)
		b.x = lth_rewrite_insert(rewrite, LTH_OP_ID_Transpose, "turned", &b.x, 1, &perm, 1);
	if (rewrite->code == LTH_OK)
		become_integer(rewrite, LTH_OP_ID_MatMulInteger, &a, &b, bias, 0, NULL, 0);
}

/* op(dequantised x) is op(x), dequantised: x has one scale, a positive one. */
static void on_bytes(struct lth_rewrite *rewrite, const struct lth_node *node)
{
	const struct lth_node before = *node;
	struct quantised x;
	double scale;
	if (!lth_sole_producer(rewrite, before.inputs[0], LTH_OP_ID_DequantizeLinear) ||
	    !find_quantised(rewrite, before.inputs[0], LTH_NONE, &x) ||
	    !lth_constant_number(rewrite->graph, x.scale, &scale) || !(scale > 0) ||
	    (before.num_outputs > 1 && before.outputs[1] != LTH_NONE))
		return;
	lth_value_id inputs[2] = {x.x, lth_node_input(&before, 1)};
	lth_value_id moved = lth_rewrite_insert(rewrite, lth_op_id(before.op), "bytes", inputs, before.num_inputs,
						before.attrs, before.num_attrs);
	lth_value_id quantised[3] = {moved, x.scale, x.zero};
	if (rewrite->code == LTH_OK)
		lth_rewrite_become(rewrite, LTH_OP_ID_DequantizeLinear, quantised, x.zero == LTH_NONE ? 2 : 3, NULL, 0);
}

static void visit(struct lth_rewrite *rewrite, lth_node_id id, void *context)
{
	(void)context;
	const struct lth_node *node = &rewrite->graph->nodes[id];
	if (node->num_inputs == 0 || node->num_outputs == 0 || node->inputs[0] == LTH_NONE)
		return;
	switch (lth_op_id(node->op)) {
	case LTH_OP_ID_Conv:
		convolution(rewrite, node);
		break;
	case LTH_OP_ID_MatMul:
		product(rewrite, node);
		break;
	case LTH_OP_ID_Gemm:
		gemm(rewrite, node);
		break;
	case LTH_OP_ID_MaxPool:
	case LTH_OP_ID_Transpose:
	case LTH_OP_ID_Reshape:
	case LTH_OP_ID_Flatten:
	case LTH_OP_ID_Squeeze:
	case LTH_OP_ID_Unsqueeze:
		on_bytes(rewrite, node);
		break;
	default:
		break;
	}
}

enum lth_code lth_pass_fake_quantization(struct lth_graph *graph, const struct lth_pass_context *context,
					 struct lth_diag *diag)
{
	(void)context;
	uint32_t changes;
	return lth_rewrite_run(graph, visit, NULL, diag, &changes);
}
