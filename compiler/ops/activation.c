/* Activation functions: elementwise formulas in one input and the operator's attributes. */
#include "compiler/ops/family.h"

#include <assert.h>

/* a x + b with constants. */
static lth_sx affine(struct lth_sx_pool *pool, lth_sx x, double a, double b)
{
	return lth_add(pool, lth_mul(pool, x, lth_same_const(pool, x, a)), lth_same_const(pool, x, b));
}

static lth_sx unit_clamp(struct lth_sx_pool *pool, lth_sx x)
{
	return lth_clamp(pool, x, lth_same_const(pool, x, 0), lth_same_const(pool, x, 1));
}

/* `above` where x > 0, else scale (exp(x / spread) - 1). */
static lth_sx exponential_below(struct lth_sx_pool *pool, lth_sx x, double scale, double spread)
{
	lth_sx inner = spread == 1 ? x : lth_div(pool, x, lth_same_const(pool, x, spread));
	lth_sx below = lth_mul(pool, lth_unary(pool, LTH_SCALAR_EXPM1, inner), lth_same_const(pool, x, scale));
	return lth_sx_select(pool, lth_lt(pool, lth_same_const(pool, x, 0), x), x, below);
}

/* log(1 + exp(x)) without overflow. */
static lth_sx softplus(struct lth_sx_pool *pool, lth_sx x)
{
	lth_sx magnitude = lth_unary(pool, LTH_SCALAR_ABS, x);
	lth_sx small = lth_unary(pool, LTH_SCALAR_EXP, lth_unary(pool, LTH_SCALAR_NEG, magnitude));
	return lth_add(pool, lth_max(pool, x, lth_same_const(pool, x, 0)), lth_unary(pool, LTH_SCALAR_LOG1P, small));
}

static lth_sx swish(struct lth_sx_pool *pool, lth_sx x, double alpha)
{
	lth_sx scaled = alpha == 1 ? x : lth_mul(pool, x, lth_same_const(pool, x, alpha));
	return lth_mul(pool, x, lth_unary(pool, LTH_SCALAR_SIGMOID, scaled));
}

static lth_sx gelu(struct lth_sx_pool *pool, const struct lth_node *node, lth_sx x)
{
	lth_sx inner;
	if (lth_op_string_is(node, "approximate", "tanh")) { /* sqrt(2 / pi) (x + 0.044715 x^3) */
		lth_sx cubic = lth_mul(pool, lth_mul(pool, x, x), lth_mul(pool, x, lth_same_const(pool, x, 0.044715)));
		inner = lth_mul(pool, lth_add(pool, x, cubic), lth_same_const(pool, x, 0.79788456080286535588));
		inner = lth_unary(pool, LTH_SCALAR_TANH, inner);
	} else { /* x / sqrt(2) */
		inner = lth_unary(pool, LTH_SCALAR_ERF,
				  lth_mul(pool, x, lth_same_const(pool, x, 0.70710678118654752440)));
	}
	return lth_mul(pool, lth_mul(pool, x, lth_same_const(pool, x, 0.5)),
		       lth_add(pool, inner, lth_same_const(pool, x, 1)));
}

/* Worked in f64 where x is an integer, as its thresholds are not. */
static lth_sx shrink(struct lth_sx_pool *pool, const struct lth_node *node, lth_sx x)
{
	enum lth_dtype type = lth_sx_dtype(pool, x);
	lth_sx y = lth_is_float(type) ? x : lth_sx_cast(pool, x, LTH_DTYPE_F64);
	double bias = lth_op_float(node, "bias"), lambd = lth_op_float(node, "lambd");
	lth_sx above = lth_sub(pool, y, lth_same_const(pool, y, bias));
	lth_sx below = lth_add(pool, y, lth_same_const(pool, y, bias));
	lth_sx result = lth_sx_select(pool, lth_lt(pool, lth_same_const(pool, y, lambd), y), above,
				      lth_same_const(pool, y, 0));
	result = lth_sx_select(pool, lth_lt(pool, y, lth_same_const(pool, y, -lambd)), below, result);
	return lth_sx_cast(pool, result, type);
}

static lth_sx activate(struct lth_sx_pool *pool, const struct lth_node *node, lth_sx x)
{
	lth_sx zero = lth_same_const(pool, x, 0);
	switch (lth_op_id(node->op)) {
	case LTH_OP_ID_Relu:
		return lth_max(pool, x, zero);
	case LTH_OP_ID_LeakyRelu:
		return lth_sx_select(pool, lth_lt(pool, x, zero),
				     lth_mul(pool, x, lth_same_const(pool, x, lth_op_float(node, "alpha"))), x);
	case LTH_OP_ID_ThresholdedRelu:
		return lth_sx_select(pool, lth_lt(pool, lth_same_const(pool, x, lth_op_float(node, "alpha")), x), x,
				     zero);
	case LTH_OP_ID_Elu:
		return exponential_below(pool, x, lth_op_float(node, "alpha"), 1);
	case LTH_OP_ID_Celu:
		return exponential_below(pool, x, lth_op_float(node, "alpha"), lth_op_float(node, "alpha"));
	case LTH_OP_ID_Selu:
		x = exponential_below(pool, x, lth_op_float(node, "alpha"), 1);
		return lth_mul(pool, x, lth_same_const(pool, x, lth_op_float(node, "gamma")));
	case LTH_OP_ID_Sigmoid:
		return lth_unary(pool, LTH_SCALAR_SIGMOID, x);
	case LTH_OP_ID_HardSigmoid:
		return unit_clamp(pool, affine(pool, x, lth_op_float(node, "alpha"), lth_op_float(node, "beta")));
	case LTH_OP_ID_HardSwish:
		return lth_mul(pool, x, unit_clamp(pool, affine(pool, x, 1.0 / 6, 0.5)));
	case LTH_OP_ID_Mish:
		return lth_mul(pool, x, lth_unary(pool, LTH_SCALAR_TANH, softplus(pool, x)));
	case LTH_OP_ID_Gelu:
		return gelu(pool, node, x);
	case LTH_OP_ID_Swish:
		return swish(pool, x, lth_op_float(node, "alpha"));
	case LTH_OP_ID_Softplus:
		return softplus(pool, x);
	case LTH_OP_ID_Softsign:
		return lth_div(pool, x, lth_add(pool, lth_unary(pool, LTH_SCALAR_ABS, x), lth_same_const(pool, x, 1)));
	default:
		assert(lth_op_id(node->op) == LTH_OP_ID_Shrink);
		return shrink(pool, node, x);
	}
}

static lth_sx activation_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
				 const lth_sx *index)
{
	(void)output;
	return activate(lth_lower_pool(lower), node, lth_input_at(lower, node, 0, index));
}

const struct lth_op_impl lth_impl_activation = {.infer = lth_infer_elementwise, .element = activation_element};

/* The slope broadcasts to the input, never the other way. */
static enum lth_code infer_prelu(struct lth_infer *infer)
{
	const struct lth_type *x = lth_infer_type(infer, 0), *slope = lth_infer_type(infer, 1);
	lth_dim dims[LTH_MAX_RANK];
	uint32_t rank = x->rank;
	for (uint32_t i = 0; i < rank; i++)
		dims[i] = x->dims[i];
	if (slope->rank > rank)
		return lth_infer_reject(infer, "a slope that broadcasts to the input", "%s has shape %s",
					lth_infer_input_text(infer, 1), lth_infer_shape_text(infer, slope));
	enum lth_code code = lth_infer_broadcast(infer, dims, &rank, slope->dims, slope->rank);
	for (uint32_t i = 0; !code && i < rank; i++)
		code = lth_infer_require(infer, LTH_REL_EQ, dims[i], x->dims[i],
					 "a slope that broadcasts to the input");
	return code ? code : lth_infer_like(infer, 0, 0);
}

static lth_sx prelu_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output, const lth_sx *index)
{
	(void)output;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx x = lth_input_at(lower, node, 0, index), slope = lth_input_at(lower, node, 1, index);
	return lth_sx_select(pool, lth_lt(pool, x, lth_same_const(pool, x, 0)), lth_mul(pool, x, slope), x);
}

const struct lth_op_impl lth_impl_prelu = {.infer = infer_prelu, .element = prelu_element};

static lth_sx swiglu_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output, const lth_sx *index)
{
	(void)output;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx gate = swish(pool, lth_input_at(lower, node, 0, index), lth_op_float(node, "alpha"));
	return lth_mul(pool, gate, lth_input_at(lower, node, 1, index));
}

const struct lth_op_impl lth_impl_swiglu = {.infer = lth_infer_elementwise, .element = swiglu_element};
