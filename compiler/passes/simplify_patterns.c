/* Recognisers: arithmetic that exporters write in pieces and that has an operator, hence a template, of its own. A
 * pattern is matched from its last node upwards. Intermediate values may have other readers: they then stay beside the
 * new node, except where that would compute the expensive part twice. Thread rule: as the graph's. */
#include "compiler/passes/simplify.h"

#include <math.h>
#include <string.h>

static const double root_of_two = 1.4142135623730951;
static const double tolerance = 1e-5; /* of constants that were written with a few digits */

/* ---- reductions over trailing axes ---- */

static bool constant_axes(struct lth_graph *graph, const struct lth_node *reduce, const int64_t **axes, uint32_t *count)
{
	lth_value_id input = lth_node_input(reduce, 1);
	return input != LTH_NONE && lth_value_const_ints(graph, input, axes, count) && *count > 0;
}

/* The first of the axes if they are the last ones of the input and kept with extent 1; UINT32_MAX otherwise. */
static uint32_t trailing_axes(struct lth_graph *graph, const struct lth_node *reduce)
{
	uint32_t rank = graph->values[reduce->inputs[0]].type.rank, count, seen = 0;
	const int64_t *axes;
	if (rank == 0 || rank > LTH_MAX_RANK || lth_node_int(reduce, "keepdims", 1) != 1 ||
	    !constant_axes(graph, reduce, &axes, &count) || count > rank)
		return UINT32_MAX;
	for (uint32_t i = 0; i < count; i++) {
		int64_t axis = axes[i] < 0 ? axes[i] + (int64_t)rank : axes[i];
		if (axis < (int64_t)(rank - count))
			return UINT32_MAX;
		seen |= 1u << axis;
	}
	uint32_t wanted = ((1u << count) - 1) << (rank - count);
	return seen == wanted ? rank - count : UINT32_MAX;
}

static struct lth_attr int_attr(const char *name, int64_t value)
{
	return (struct lth_attr){.name = name, .kind = LTH_ATTR_INT, .count = 1, .i = value};
}

static struct lth_attr float_attr(const char *name, double value)
{
	return (struct lth_attr){.name = name, .kind = LTH_ATTR_FLOAT, .count = 1, .f = value};
}

/* ---- softmax ---- */

bool simplify_softmax(struct lth_rewrite *rewrite, lth_node_id id)
{
	struct lth_graph *graph = rewrite->graph;
	const struct lth_node *node = &graph->nodes[id];
	const struct lth_node *sum = lth_producer(graph, node->inputs[1], LTH_OP_ID_ReduceSum);
	const struct lth_node *exp = lth_producer(graph, node->inputs[0], LTH_OP_ID_Exp);
	if (!sum || !exp || sum->inputs[0] != node->inputs[0])
		return false;
	const struct lth_node *shifted = lth_producer(graph, exp->inputs[0], LTH_OP_ID_Sub);
	const struct lth_node *max = shifted ? lth_producer(graph, shifted->inputs[1], LTH_OP_ID_ReduceMax) : NULL;
	const int64_t *sum_axes, *max_axes;
	uint32_t sum_count, max_count;
	if (!max || max->inputs[0] != shifted->inputs[0] || lth_node_int(sum, "keepdims", 1) != 1 ||
	    lth_node_int(max, "keepdims", 1) != 1 || !constant_axes(graph, sum, &sum_axes, &sum_count) ||
	    !constant_axes(graph, max, &max_axes, &max_count) || sum_count != 1 || max_count != 1)
		return false;
	int64_t rank = graph->values[shifted->inputs[0]].type.rank;
	int64_t sum_axis = sum_axes[0] < 0 ? sum_axes[0] + rank : sum_axes[0];
	int64_t max_axis = max_axes[0] < 0 ? max_axes[0] + rank : max_axes[0];
	if (sum_axis != max_axis)
		return false;
	lth_value_id input = shifted->inputs[0];
	struct lth_attr axis = int_attr("axis", sum_axis);
	lth_rewrite_become(rewrite, LTH_OP_ID_Softmax, &input, 1, &axis, 1);
	return true;
}

/* ---- normalisation ---- */

/* value = numerator / sqrt(mean + epsilon), whether written with Div or with a reciprocal. */
static bool over_root(struct lth_graph *graph, const struct lth_node *node, lth_value_id *out_numerator,
		      lth_value_id *out_mean, double *out_epsilon)
{
	lth_value_id root = LTH_NONE;
	if (lth_op_id(node->op) == LTH_OP_ID_Div) {
		*out_numerator = node->inputs[0];
		root = node->inputs[1];
	} else if (lth_op_id(node->op) == LTH_OP_ID_Mul) {
		for (uint32_t k = 0; k < 2; k++) {
			const struct lth_node *inverse = lth_producer(graph, node->inputs[k], LTH_OP_ID_Reciprocal);
			if (!inverse)
				continue;
			*out_numerator = node->inputs[1 - k];
			root = inverse->inputs[0];
		}
	}
	const struct lth_node *sqrt_node = lth_producer(graph, root, LTH_OP_ID_Sqrt);
	const struct lth_node *add = sqrt_node ? lth_producer(graph, sqrt_node->inputs[0], LTH_OP_ID_Add) : NULL;
	if (!add)
		return false;
	for (uint32_t k = 0; k < 2; k++)
		if (lth_constant_number(graph, add->inputs[k], out_epsilon) && *out_epsilon >= 0) {
			*out_mean = add->inputs[1 - k];
			return true;
		}
	return false;
}

/* mean over trailing axes of the square of a value; gives the value and the first axis. */
static bool mean_of_square(struct lth_graph *graph, lth_value_id value, lth_value_id *out_squared, uint32_t *out_axis)
{
	const struct lth_node *mean = lth_producer(graph, value, LTH_OP_ID_ReduceMean);
	const struct lth_node *square = mean ? lth_producer(graph, mean->inputs[0], LTH_OP_ID_Mul) : NULL;
	if (!square || square->inputs[0] != square->inputs[1])
		return false;
	*out_squared = square->inputs[0];
	*out_axis = trailing_axes(graph, mean);
	return *out_axis != UINT32_MAX;
}

/* A scale of ones for the axes from `first` on, which must be static. */
static lth_value_id unit_scale(struct lth_rewrite *rewrite, lth_value_id like, uint32_t first)
{
	const struct lth_type type = lth_rewrite_value(rewrite, like)->type;
	int64_t shape[LTH_MAX_RANK], count = 1, bytes;
	for (uint32_t axis = first; axis < type.rank; axis++)
		if (!lth_dim_is_const(rewrite->graph->dims, type.dims[axis], &shape[axis - first]) ||
		    __builtin_mul_overflow(count, shape[axis - first], &count) || count > 1 << 20)
			return LTH_NONE;
	if (!lth_dtype_bytes(type.dtype, count, &bytes))
		return LTH_NONE;
	char *data = lth_arena_alloc(rewrite->graph->arena, (size_t)bytes);
	for (int64_t i = 0; i < count; i++)
		if (!data || !lth_store_real(type.dtype, data, i, 1))
			return LTH_NONE;
	return lth_rewrite_constant(rewrite, "ones", type.dtype, type.rank - first, shape, data, bytes);
}

static bool become_normalisation(struct lth_rewrite *rewrite, enum lth_op_id op, lth_value_id input, uint32_t first,
				 double epsilon)
{
	lth_value_id inputs[2] = {input, unit_scale(rewrite, input, first)};
	if (inputs[1] == LTH_NONE)
		return false;
	int64_t rank = lth_rewrite_value(rewrite, input)->type.rank;
	struct lth_attr attrs[] = {int_attr("axis", (int64_t)first - rank), float_attr("epsilon", epsilon)};
	lth_rewrite_become(rewrite, op, inputs, 2, attrs, 2);
	return true;
}

bool simplify_layer_norm(struct lth_rewrite *rewrite, lth_node_id id)
{
	struct lth_graph *graph = rewrite->graph;
	lth_value_id centred, mean_square, squared;
	double epsilon;
	uint32_t axis;
	if (!over_root(graph, &graph->nodes[id], &centred, &mean_square, &epsilon) ||
	    !mean_of_square(graph, mean_square, &squared, &axis) || squared != centred)
		return false;
	const struct lth_node *sub = lth_producer(graph, centred, LTH_OP_ID_Sub);
	const struct lth_node *mean = sub ? lth_producer(graph, sub->inputs[1], LTH_OP_ID_ReduceMean) : NULL;
	if (!mean || mean->inputs[0] != sub->inputs[0] || trailing_axes(graph, mean) != axis ||
	    !lth_is_float(rewrite, sub->inputs[0]))
		return false;
	return become_normalisation(rewrite, LTH_OP_ID_LayerNormalization, sub->inputs[0], axis, epsilon);
}

bool simplify_rms_norm(struct lth_rewrite *rewrite, lth_node_id id)
{
	struct lth_graph *graph = rewrite->graph;
	lth_value_id input, mean_square, squared;
	double epsilon;
	uint32_t axis;
	if (!over_root(graph, &graph->nodes[id], &input, &mean_square, &epsilon) ||
	    !mean_of_square(graph, mean_square, &squared, &axis) || squared != input || !lth_is_float(rewrite, input))
		return false;
	/* Of centred values this is LayerNormalization, should its own rewrite have missed it. */
	return become_normalisation(rewrite, LTH_OP_ID_RMSNormalization, input, axis, epsilon);
}

/* True when `value` has exactly the type of the normalisation's scale. */
static bool fits_scale(const struct lth_rewrite *rewrite, const struct lth_node *norm, lth_value_id value)
{
	return lth_same_type(rewrite->graph, value, norm->inputs[1]);
}

static const struct lth_node *sole_normalisation(const struct lth_rewrite *rewrite, lth_value_id value)
{
	const struct lth_node *norm = lth_sole_producer(rewrite, value, LTH_OP_ID_LayerNormalization);
	if (!norm)
		norm = lth_sole_producer(rewrite, value, LTH_OP_ID_RMSNormalization);
	for (uint32_t k = 1; norm && k < norm->num_outputs; k++)
		if (norm->outputs[k] != LTH_NONE && rewrite->uses[norm->outputs[k]] > 0)
			return NULL;
	return norm;
}

static void copy_norm_attrs(const struct lth_node *norm, struct lth_attr *out)
{
	out[0] = int_attr("axis", lth_node_int(norm, "axis", -1));
	out[1] = float_attr("epsilon", lth_node_float(norm, "epsilon", 1e-5));
}

bool simplify_norm_scale(struct lth_rewrite *rewrite, lth_node_id id)
{
	struct lth_graph *graph = rewrite->graph;
	const struct lth_node *node = &graph->nodes[id];
	struct lth_attr attrs[2];
	for (uint32_t k = 0; k < 2; k++) {
		const struct lth_node *norm = sole_normalisation(rewrite, node->inputs[k]);
		if (!norm || lth_node_input(norm, 2) != LTH_NONE || !lth_is_number(rewrite, norm->inputs[1], 1, 0) ||
		    !fits_scale(rewrite, norm, node->inputs[1 - k]))
			continue;
		lth_value_id inputs[2] = {norm->inputs[0], node->inputs[1 - k]};
		copy_norm_attrs(norm, attrs);
		lth_rewrite_become(rewrite, lth_op_id(norm->op), inputs, 2, attrs, 2);
		return true;
	}
	return false;
}

bool simplify_norm_bias(struct lth_rewrite *rewrite, lth_node_id id)
{
	struct lth_graph *graph = rewrite->graph;
	const struct lth_node *node = &graph->nodes[id];
	struct lth_attr attrs[2];
	for (uint32_t k = 0; k < 2; k++) {
		const struct lth_node *norm = sole_normalisation(rewrite, node->inputs[k]);
		if (!norm || lth_op_id(norm->op) != LTH_OP_ID_LayerNormalization ||
		    lth_node_input(norm, 2) != LTH_NONE || !fits_scale(rewrite, norm, node->inputs[1 - k]))
			continue;
		lth_value_id inputs[3] = {norm->inputs[0], norm->inputs[1], node->inputs[1 - k]};
		copy_norm_attrs(norm, attrs);
		lth_rewrite_become(rewrite, LTH_OP_ID_LayerNormalization, inputs, 3, attrs, 2);
		return true;
	}
	return false;
}

/* ---- activations ---- */

enum { MAX_FACTORS = 8, MAX_PRODUCTS = 16 };

/* A product as a list: constants multiplied together, and the other factors. Follows Mul and division by a number
 * through values that nobody else reads: a few, since each node of a long chain is the root of a product. */
struct product {
	double number;
	lth_value_id factors[MAX_FACTORS];
	uint32_t count, num_products;
};

static bool add_factor(const struct lth_rewrite *rewrite, lth_value_id value, bool root, struct product *product)
{
	double number;
	const struct lth_node *mul = root ? lth_producer(rewrite->graph, value, LTH_OP_ID_Mul)
					  : lth_sole_producer(rewrite, value, LTH_OP_ID_Mul);
	const struct lth_node *div = root ? lth_producer(rewrite->graph, value, LTH_OP_ID_Div)
					  : lth_sole_producer(rewrite, value, LTH_OP_ID_Div);
	if (lth_constant_number(rewrite->graph, value, &number)) {
		product->number *= number;
		return true;
	}
	if ((mul || div) && product->num_products++ == MAX_PRODUCTS)
		return false;
	if (mul)
		return add_factor(rewrite, mul->inputs[0], false, product) &&
		       add_factor(rewrite, mul->inputs[1], false, product);
	if (div && lth_constant_number(rewrite->graph, div->inputs[1], &number) && number != 0) {
		product->number /= number;
		return add_factor(rewrite, div->inputs[0], false, product);
	}
	if (product->count == MAX_FACTORS)
		return false;
	product->factors[product->count++] = value;
	return true;
}

static bool product_of(const struct lth_rewrite *rewrite, lth_value_id value, struct product *out)
{
	*out = (struct product){.number = 1};
	return add_factor(rewrite, value, true, out);
}

static bool near(double value, double expected)
{
	return fabs(value - expected) <= tolerance * fabs(expected);
}

/* 1 + f(argument), f being `op`: the argument. */
static bool one_plus(const struct lth_rewrite *rewrite, lth_value_id value, enum lth_op_id op, lth_value_id *out)
{
	const struct lth_node *add = lth_producer(rewrite->graph, value, LTH_OP_ID_Add);
	lth_value_id other;
	double number;
	if (!add || !lth_split_number(rewrite, add, &other, &number) || number != 1)
		return false;
	const struct lth_node *function = lth_producer(rewrite->graph, other, op);
	if (!function)
		return false;
	*out = function->inputs[0];
	return true;
}

/* The visited product is 0.5 * x * (1 + f(argument)): finds x and the argument. */
static bool half_x_one_plus(const struct lth_rewrite *rewrite, lth_node_id id, enum lth_op_id op, lth_value_id *out_x,
			    lth_value_id *out_argument)
{
	struct product product;
	if (!product_of(rewrite, rewrite->graph->nodes[id].outputs[0], &product) || product.count != 2 ||
	    !near(product.number, 0.5))
		return false;
	for (uint32_t k = 0; k < 2; k++)
		if (one_plus(rewrite, product.factors[k], op, out_argument)) {
			*out_x = product.factors[1 - k];
			return lth_same_type(rewrite->graph, *out_x, rewrite->graph->nodes[id].outputs[0]);
		}
	return false;
}

bool simplify_gelu(struct lth_rewrite *rewrite, lth_node_id id)
{
	struct product scaled;
	lth_value_id x, argument;
	if (!half_x_one_plus(rewrite, id, LTH_OP_ID_Erf, &x, &argument) || !lth_is_float(rewrite, x) ||
	    !product_of(rewrite, argument, &scaled) || scaled.count != 1 || scaled.factors[0] != x ||
	    !near(scaled.number, 1 / root_of_two))
		return false;
	lth_rewrite_become(rewrite, LTH_OP_ID_Gelu, &x, 1, NULL, 0);
	return true;
}

/* number * x^3 in any order of multiplications: the number. */
static bool cube(const struct lth_rewrite *rewrite, lth_value_id value, lth_value_id x, double *out_number)
{
	struct product product;
	if (!product_of(rewrite, value, &product))
		return false;
	uint32_t power = 0;
	for (uint32_t k = 0; k < product.count; k++) {
		const struct lth_node *pow = lth_producer(rewrite->graph, product.factors[k], LTH_OP_ID_Pow);
		const struct lth_node *square = lth_producer(rewrite->graph, product.factors[k], LTH_OP_ID_Mul);
		if (product.factors[k] == x)
			power++;
		else if (square && square->inputs[0] == x && square->inputs[1] == x)
			power += 2;
		else if (pow && pow->inputs[0] == x && lth_is_number(rewrite, pow->inputs[1], 3, 0))
			power += 3;
		else
			return false;
	}
	*out_number = product.number;
	return power == 3;
}

bool simplify_gelu_tanh(struct lth_rewrite *rewrite, lth_node_id id)
{
	struct product scaled;
	lth_value_id x, argument;
	double number;
	if (!half_x_one_plus(rewrite, id, LTH_OP_ID_Tanh, &x, &argument) || !lth_is_float(rewrite, x) ||
	    !product_of(rewrite, argument, &scaled) || scaled.count != 1 ||
	    !near(scaled.number, sqrt(2 / acos(-1.0))))
		return false;
	const struct lth_node *sum = lth_producer(rewrite->graph, scaled.factors[0], LTH_OP_ID_Add);
	if (!sum)
		return false;
	for (uint32_t k = 0; k < 2; k++)
		if (sum->inputs[k] == x && cube(rewrite, sum->inputs[1 - k], x, &number) && near(number, 0.044715)) {
			struct lth_attr attr = {.name = "approximate", .kind = LTH_ATTR_STRING, .count = 1,
						.s = {"tanh", 4}};
			lth_rewrite_become(rewrite, LTH_OP_ID_Gelu, &x, 1, &attr, 1);
			return true;
		}
	return false;
}

/* clip(x + 3, 0, 6): gives x. */
static bool clipped_shift(const struct lth_rewrite *rewrite, lth_value_id value, lth_value_id *out_x)
{
	const struct lth_node *clip = lth_producer(rewrite->graph, value, LTH_OP_ID_Clip);
	if (!clip || !lth_is_number(rewrite, lth_node_input(clip, 1), 0, 0) ||
	    !lth_is_number(rewrite, lth_node_input(clip, 2), 6, 0))
		return false;
	const struct lth_node *add = lth_producer(rewrite->graph, clip->inputs[0], LTH_OP_ID_Add);
	double number;
	return add && lth_split_number(rewrite, add, out_x, &number) && number == 3;
}

bool simplify_hard_swish(struct lth_rewrite *rewrite, lth_node_id id)
{
	const struct lth_node *node = &rewrite->graph->nodes[id];
	enum lth_op_id op = lth_op_id(node->op);
	struct product product;
	lth_value_id x;
	if ((op != LTH_OP_ID_Mul && op != LTH_OP_ID_Div) || !lth_is_float(rewrite, node->outputs[0]) ||
	    !product_of(rewrite, node->outputs[0], &product) || product.count != 2)
		return false;
	for (uint32_t k = 0; k < 2; k++) {
		lth_value_id other = product.factors[1 - k];
		const struct lth_node *sigmoid = lth_producer(rewrite->graph, product.factors[k],
							      LTH_OP_ID_HardSigmoid);
		bool pieces = near(product.number, 1.0 / 6) && clipped_shift(rewrite, product.factors[k], &x) &&
			      x == other;
		bool whole = product.number == 1 && sigmoid && sigmoid->inputs[0] == other &&
			     near(lth_node_float(sigmoid, "alpha", 0.2), 1.0 / 6) &&
			     lth_node_float(sigmoid, "beta", 0.5) == 0.5;
		if ((!pieces && !whole) || !lth_same_type(rewrite->graph, other, node->outputs[0]))
			continue;
		lth_rewrite_become(rewrite, LTH_OP_ID_HardSwish, &other, 1, NULL, 0);
		return true;
	}
	return false;
}

bool simplify_swish(struct lth_rewrite *rewrite, lth_node_id id)
{
	const struct lth_node *node = &rewrite->graph->nodes[id];
	for (uint32_t k = 0; k < 2; k++) {
		const struct lth_node *sigmoid = lth_producer(rewrite->graph, node->inputs[k], LTH_OP_ID_Sigmoid);
		lth_value_id x = node->inputs[1 - k];
		if (!sigmoid || sigmoid->inputs[0] != x)
			continue;
		lth_rewrite_become(rewrite, LTH_OP_ID_Swish, &x, 1, NULL, 0);
		return true;
	}
	return false;
}
