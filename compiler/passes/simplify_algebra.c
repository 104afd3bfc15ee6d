/* Rewrites of arithmetic. Each says why it is exact where that is not plain. Thread rule: as the graph's. */
#include "compiler/passes/simplify.h"

#include <math.h>

/* The node's result is `other` itself when they have one type: no broadcast widens it. */
static bool is_operand(struct lth_rewrite *rewrite, lth_node_id id, lth_value_id other)
{
	return lth_same_type(rewrite->graph, other, rewrite->graph->nodes[id].outputs[0]) &&
	       lth_simplify_to(rewrite, id, other);
}

bool simplify_add_zero(struct lth_rewrite *rewrite, lth_node_id id)
{
	lth_value_id other;
	double number;
	if (!lth_split_number(rewrite, &rewrite->graph->nodes[id], &other, &number) || number != 0)
		return false;
	/* -0 + 0 is 0, so only -0 is neutral for floats. */
	if (lth_is_float(rewrite, other) && !signbit(number))
		return false;
	return is_operand(rewrite, id, other);
}

bool simplify_sub_zero(struct lth_rewrite *rewrite, lth_node_id id)
{
	lth_value_id other;
	double number;
	if (!lth_split_number(rewrite, &rewrite->graph->nodes[id], &other, &number) || number != 0)
		return false;
	if (lth_is_float(rewrite, other) && signbit(number)) /* x - -0 is x + 0 */
		return false;
	return is_operand(rewrite, id, other);
}

bool simplify_mul_one(struct lth_rewrite *rewrite, lth_node_id id)
{
	lth_value_id other;
	double number;
	return lth_split_number(rewrite, &rewrite->graph->nodes[id], &other, &number) && number == 1 &&
	       is_operand(rewrite, id, other);
}

bool simplify_div_one(struct lth_rewrite *rewrite, lth_node_id id)
{
	return simplify_mul_one(rewrite, id);
}

/* The reciprocal of a power of two is exact as long as neither side is denormal in the narrowest type (f16). */
bool simplify_div_power_of_two(struct lth_rewrite *rewrite, lth_node_id id)
{
	const struct lth_node *node = &rewrite->graph->nodes[id];
	lth_value_id inputs[2] = {node->inputs[0], node->inputs[1]};
	double number;
	int exponent;
	if (!lth_is_float(rewrite, inputs[0]) || !lth_constant_number(rewrite->graph, inputs[1], &number) ||
	    number == 1 || !isfinite(number) || fabs(frexp(number, &exponent)) != 0.5 || exponent < -12 || exponent > 14)
		return false;
	/* A scalar keeps the result's shape only if the divisor did not widen it. */
	if (!lth_same_type(rewrite->graph, inputs[0], node->outputs[0]))
		return false;
	inputs[1] = lth_rewrite_scalar_f(rewrite, "reciprocal", lth_rewrite_value(rewrite, inputs[0])->type.dtype,
					 1 / number);
	if (inputs[1] == LTH_NONE)
		return false;
	lth_rewrite_become(rewrite, LTH_OP_ID_Mul, inputs, 2, NULL, 0);
	return true;
}

/* Certainly at least +0, or nan: then pow(x, 0.5) and sqrt(x) agree, which they do not at -0 and -inf. */
static bool not_negative(const struct lth_rewrite *rewrite, lth_value_id value, int depth)
{
	const struct lth_value *entry = lth_rewrite_value(rewrite, value);
	double number;
	if (lth_constant_number(rewrite->graph, value, &number))
		return !signbit(number);
	if (entry->def != LTH_DEF_NODE || depth > 8)
		return false;
	const struct lth_node *node = &rewrite->graph->nodes[entry->def_id];
	switch (lth_op_id(node->op)) {
	case LTH_OP_ID_Abs:
	case LTH_OP_ID_Exp:
	case LTH_OP_ID_Sigmoid:
	case LTH_OP_ID_Softmax:
	case LTH_OP_ID_ReduceSumSquare:
		return true;
	case LTH_OP_ID_Mul:
		return node->inputs[0] == node->inputs[1];
	case LTH_OP_ID_Add:
		return not_negative(rewrite, node->inputs[0], depth + 1) &&
		       not_negative(rewrite, node->inputs[1], depth + 1);
	case LTH_OP_ID_ReduceMean:
	case LTH_OP_ID_ReduceSum:
	case LTH_OP_ID_ReduceMax:
	case LTH_OP_ID_Reshape:
	case LTH_OP_ID_Transpose:
		return not_negative(rewrite, node->inputs[0], depth + 1);
	default:
		return false;
	}
}

bool simplify_pow_small(struct lth_rewrite *rewrite, lth_node_id id)
{
	const struct lth_node *node = &rewrite->graph->nodes[id];
	lth_value_id base = node->inputs[0], inputs[2] = {base, base};
	double exponent;
	if (!lth_constant_number(rewrite->graph, node->inputs[1], &exponent) ||
	    !lth_same_type(rewrite->graph, base, node->outputs[0]))
		return false;
	if (exponent == 1)
		return lth_simplify_to(rewrite, id, base);
	if (exponent == 2) {
		lth_rewrite_become(rewrite, LTH_OP_ID_Mul, inputs, 2, NULL, 0);
		return true;
	}
	if (!lth_is_float(rewrite, base))
		return false;
	if (exponent == 3) {
		inputs[0] = lth_rewrite_insert(rewrite, LTH_OP_ID_Mul, "square", inputs, 2, NULL, 0);
		if (inputs[0] == LTH_NONE)
			return false;
		lth_rewrite_become(rewrite, LTH_OP_ID_Mul, inputs, 2, NULL, 0);
		return true;
	}
	if (exponent == -1) {
		lth_rewrite_become(rewrite, LTH_OP_ID_Reciprocal, inputs, 1, NULL, 0);
		return true;
	}
	if (exponent == 0.5 && not_negative(rewrite, base, 0)) {
		lth_rewrite_become(rewrite, LTH_OP_ID_Sqrt, inputs, 1, NULL, 0);
		return true;
	}
	return false;
}

bool simplify_twice_undone(struct lth_rewrite *rewrite, lth_node_id id)
{
	const struct lth_node *node = &rewrite->graph->nodes[id];
	enum lth_op_id op = lth_op_id(node->op);
	if (op != LTH_OP_ID_Neg && op != LTH_OP_ID_Not && op != LTH_OP_ID_BitwiseNot)
		return false;
	const struct lth_node *first = lth_producer(rewrite->graph, node->inputs[0], op);
	return first && is_operand(rewrite, id, first->inputs[0]);
}

bool simplify_twice_is_once(struct lth_rewrite *rewrite, lth_node_id id)
{
	const struct lth_node *node = &rewrite->graph->nodes[id];
	enum lth_op_id op = lth_op_id(node->op);
	switch (op) {
	case LTH_OP_ID_Relu:
	case LTH_OP_ID_Abs:
	case LTH_OP_ID_Floor:
	case LTH_OP_ID_Ceil:
	case LTH_OP_ID_Round:
	case LTH_OP_ID_Sign:
		break;
	default:
		return false;
	}
	return lth_producer(rewrite->graph, node->inputs[0], op) && is_operand(rewrite, id, node->inputs[0]);
}

bool simplify_where_decided(struct lth_rewrite *rewrite, lth_node_id id)
{
	const struct lth_node *node = &rewrite->graph->nodes[id];
	double condition;
	if (node->inputs[1] == node->inputs[2])
		return is_operand(rewrite, id, node->inputs[1]);
	return lth_constant_number(rewrite->graph, node->inputs[0], &condition) &&
	       is_operand(rewrite, id, condition != 0 ? node->inputs[1] : node->inputs[2]);
}

static bool is_wide_float(const struct lth_rewrite *rewrite, lth_value_id value)
{
	enum lth_dtype dtype = lth_rewrite_value(rewrite, value)->type.dtype;
	return dtype == LTH_DTYPE_F32 || dtype == LTH_DTYPE_F64;
}

/* Only where the product of the numbers is itself an ordinary number of the type. */
bool simplify_mul_chain(struct lth_rewrite *rewrite, lth_node_id id)
{
	const struct lth_node *node = &rewrite->graph->nodes[id];
	lth_value_id inner, inputs[2];
	double outer_number, inner_number;
	if (!lth_split_number(rewrite, node, &inner, &outer_number) || !is_wide_float(rewrite, inner))
		return false;
	const struct lth_node *mul = lth_sole_producer(rewrite, inner, LTH_OP_ID_Mul);
	if (!mul || !lth_split_number(rewrite, mul, &inputs[0], &inner_number) ||
	    !lth_same_type(rewrite->graph, inputs[0], node->outputs[0]))
		return false;
	double product = outer_number * inner_number;
	if (!isnormal((float)product) || !isnormal((float)inner_number) || !isnormal((float)outer_number))
		return false;
	inputs[1] = lth_rewrite_scalar_f(rewrite, "product", lth_rewrite_value(rewrite, inputs[0])->type.dtype, product);
	if (inputs[1] == LTH_NONE)
		return false;
	lth_rewrite_become(rewrite, LTH_OP_ID_Mul, inputs, 2, NULL, 0);
	return true;
}

/* (x s) y is (x y) s: behind the product the scale costs nothing, since it becomes part of the kernel or of constant
 * weights. */
bool simplify_matmul_scale(struct lth_rewrite *rewrite, lth_node_id id)
{
	struct lth_graph *graph = rewrite->graph;
	for (uint32_t k = 0; k < 2; k++) {
		const struct lth_node *node = &graph->nodes[id];
		lth_value_id scaled = node->inputs[k], inputs[2] = {node->inputs[0], node->inputs[1]}, other;
		const struct lth_node *scale = lth_sole_producer(rewrite, scaled, LTH_OP_ID_Mul);
		double number;
		if (!scale)
			scale = lth_sole_producer(rewrite, scaled, LTH_OP_ID_Div);
		if (!scale || !is_wide_float(rewrite, scaled) || !lth_split_number(rewrite, scale, &other, &number) ||
		    !isnormal((float)number) || !lth_same_type(graph, other, scaled))
			continue;
		enum lth_op_id op = lth_op_id(scale->op);
		inputs[k] = other;
		lth_value_id product = lth_rewrite_insert(rewrite, LTH_OP_ID_MatMul, "unscaled", inputs, 2, NULL, 0);
		if (product == LTH_NONE)
			return false;
		inputs[0] = product;
		inputs[1] = lth_rewrite_scalar_f(rewrite, "scale", lth_rewrite_value(rewrite, product)->type.dtype, number);
		if (inputs[1] == LTH_NONE)
			return false;
		lth_rewrite_become(rewrite, op, inputs, 2, NULL, 0);
		return true;
	}
	return false;
}

/* (x - z) s / s is within two roundings of the integer x - z, as long as s is nowhere near the ends of its range. */
bool simplify_quantize_undone(struct lth_rewrite *rewrite, lth_node_id id)
{
	const struct lth_graph *graph = rewrite->graph;
	const struct lth_node *node = &graph->nodes[id];
	const struct lth_node *source = lth_producer(graph, node->inputs[0], LTH_OP_ID_DequantizeLinear);
	double scale;
	if (!source || graph->values[node->inputs[0]].type.dtype != LTH_DTYPE_F32 ||
	    lth_dtype_class(graph->values[node->outputs[0]].type.dtype) == LTH_CLASS_FLOAT ||
	    lth_dtype_bits(graph->values[node->outputs[0]].type.dtype) > 16 ||
	    !lth_same_type(graph, source->inputs[0], node->outputs[0]) ||
	    !lth_constant_number(rewrite->graph, node->inputs[1], &scale) || !(scale > 1e-30 && scale < 1e30) ||
	    !lth_same_constant(graph, node->inputs[1], source->inputs[1]) ||
	    !lth_same_constant(graph, lth_node_input(node, 2), lth_node_input(source, 2)) ||
	    lth_op_int(node, "axis") != lth_op_int(source, "axis") ||
	    lth_op_int(node, "block_size") != lth_op_int(source, "block_size"))
		return false;
	return lth_simplify_to(rewrite, id, source->inputs[0]);
}
