/* Derivatives of elementwise operators. x is the input, y the output; at a kink the derivative is that of one side, or
 * the mean of both, as said there. No two nodes are built in one argument list: C leaves the order open. */
#include "compiler/ops/family.h"
#include "compiler/ops/gradient.h"

#include <math.h>

#define RULE(name) lth_value_id lth_gradient_##name(struct lth_gradient *g, uint32_t input)

static lth_value_id x_of(const struct lth_gradient *g)
{
	return lth_gradient_in(g, 0);
}

static lth_value_id y_of(const struct lth_gradient *g)
{
	return g->node.outputs[0];
}

static lth_value_id number(struct lth_gradient *g, double value)
{
	return lth_gradient_number(g, 0, value);
}

static lth_value_id unary(struct lth_gradient *g, enum lth_op_id op, lth_value_id a)
{
	return lth_build1(g->infer, op, a);
}

static lth_value_id binary(struct lth_gradient *g, enum lth_op_id op, lth_value_id a, lth_value_id b)
{
	return lth_build2(g->infer, op, a, b);
}

static lth_value_id square(struct lth_gradient *g, lth_value_id a)
{
	return binary(g, LTH_OP_ID_Mul, a, a);
}

static lth_value_id scaled(struct lth_gradient *g, lth_value_id a, double factor)
{
	return binary(g, LTH_OP_ID_Mul, a, number(g, factor));
}

static lth_value_id plus(struct lth_gradient *g, lth_value_id a, double value)
{
	return binary(g, LTH_OP_ID_Add, a, number(g, value));
}

/* value - a */
static lth_value_id from(struct lth_gradient *g, double value, lth_value_id a)
{
	return binary(g, LTH_OP_ID_Sub, number(g, value), a);
}

static lth_value_id select_of(struct lth_gradient *g, lth_value_id condition, lth_value_id yes, lth_value_id no)
{
	return lth_build(g->infer, LTH_OP_ID_Where, (lth_value_id[]){condition, yes, no}, 3, NULL, 0);
}

/* `yes` where `a` compares so with a number, else `no`. */
static lth_value_id step_at(struct lth_gradient *g, lth_value_id a, enum lth_op_id comparison, double bound, double yes,
			    double no)
{
	lth_value_id condition = binary(g, comparison, a, number(g, bound));
	lth_value_id then = number(g, yes);
	return select_of(g, condition, then, number(g, no));
}

/* ---- functions of one number ---- */

RULE(none)
{
	(void)g;
	(void)input;
	return LTH_NONE;
}

RULE(abs)
{
	(void)input;
	return unary(g, LTH_OP_ID_Sign, x_of(g));
}

RULE(neg)
{
	(void)input;
	return number(g, -1);
}

RULE(reciprocal) /* -y^2 */
{
	(void)input;
	return unary(g, LTH_OP_ID_Neg, square(g, y_of(g)));
}

RULE(sqrt) /* 1 / (2 y) */
{
	(void)input;
	return binary(g, LTH_OP_ID_Div, number(g, 0.5), y_of(g));
}

RULE(exp)
{
	(void)input;
	return y_of(g);
}

RULE(log)
{
	(void)input;
	return unary(g, LTH_OP_ID_Reciprocal, x_of(g));
}

RULE(sin)
{
	(void)input;
	return unary(g, LTH_OP_ID_Cos, x_of(g));
}

RULE(cos)
{
	(void)input;
	return unary(g, LTH_OP_ID_Neg, unary(g, LTH_OP_ID_Sin, x_of(g)));
}

RULE(tan) /* 1 + y^2 */
{
	(void)input;
	return plus(g, square(g, y_of(g)), 1);
}

/* 1 / sqrt(a) */
static lth_value_id inverse_root(struct lth_gradient *g, lth_value_id a)
{
	return unary(g, LTH_OP_ID_Reciprocal, unary(g, LTH_OP_ID_Sqrt, a));
}

RULE(asin) /* 1 / sqrt(1 - x^2) */
{
	(void)input;
	return inverse_root(g, from(g, 1, square(g, x_of(g))));
}

RULE(acos)
{
	return unary(g, LTH_OP_ID_Neg, lth_gradient_asin(g, input));
}

RULE(atan) /* 1 / (1 + x^2) */
{
	(void)input;
	return unary(g, LTH_OP_ID_Reciprocal, plus(g, square(g, x_of(g)), 1));
}

RULE(sinh)
{
	(void)input;
	return unary(g, LTH_OP_ID_Cosh, x_of(g));
}

RULE(cosh)
{
	(void)input;
	return unary(g, LTH_OP_ID_Sinh, x_of(g));
}

RULE(tanh) /* 1 - y^2 */
{
	(void)input;
	return from(g, 1, square(g, y_of(g)));
}

RULE(asinh) /* 1 / sqrt(x^2 + 1) */
{
	(void)input;
	return inverse_root(g, plus(g, square(g, x_of(g)), 1));
}

RULE(acosh) /* 1 / sqrt(x^2 - 1) */
{
	(void)input;
	return inverse_root(g, plus(g, square(g, x_of(g)), -1));
}

RULE(atanh) /* 1 / (1 - x^2) */
{
	(void)input;
	return unary(g, LTH_OP_ID_Reciprocal, from(g, 1, square(g, x_of(g))));
}

/* exp(-a^2) */
static lth_value_id bell(struct lth_gradient *g, lth_value_id a)
{
	return unary(g, LTH_OP_ID_Exp, unary(g, LTH_OP_ID_Neg, square(g, a)));
}

RULE(erf) /* 2 / sqrt(pi) exp(-x^2) */
{
	(void)input;
	return scaled(g, bell(g, x_of(g)), 1.1283791670955125739);
}

/* ---- activations; their kinks belong to the left side ---- */

static double attribute(const struct lth_gradient *g, const char *name)
{
	return lth_op_float(&g->node, name);
}

RULE(relu)
{
	(void)input;
	return step_at(g, x_of(g), LTH_OP_ID_Greater, 0, 1, 0);
}

RULE(leaky_relu)
{
	(void)input;
	return step_at(g, x_of(g), LTH_OP_ID_Less, 0, attribute(g, "alpha"), 1);
}

RULE(thresholded_relu)
{
	(void)input;
	return step_at(g, x_of(g), LTH_OP_ID_Greater, attribute(g, "alpha"), 1, 0);
}

RULE(prelu)
{
	lth_value_id slope = lth_gradient_in(g, 1), below = binary(g, LTH_OP_ID_Less, x_of(g), number(g, 0));
	return input == 0 ? select_of(g, below, slope, number(g, 1)) : select_of(g, below, x_of(g), number(g, 0));
}

/* `above` where x >= 0, else `factor` exp(x / `width`) */
static lth_value_id exponential_below(struct lth_gradient *g, double above, double factor, double width)
{
	lth_value_id below = binary(g, LTH_OP_ID_Less, x_of(g), number(g, 0));
	/* what is not taken must not overflow */
	lth_value_id limited = binary(g, LTH_OP_ID_Min, x_of(g), number(g, 0));
	lth_value_id slope = scaled(g, unary(g, LTH_OP_ID_Exp, scaled(g, limited, 1 / width)), factor);
	return select_of(g, below, slope, number(g, above));
}

RULE(elu)
{
	(void)input;
	return exponential_below(g, 1, attribute(g, "alpha"), 1);
}

RULE(selu)
{
	(void)input;
	double gamma = attribute(g, "gamma");
	return exponential_below(g, gamma, gamma * attribute(g, "alpha"), 1);
}

RULE(celu)
{
	(void)input;
	return exponential_below(g, 1, 1, attribute(g, "alpha"));
}

/* s (1 - s) */
static lth_value_id bump(struct lth_gradient *g, lth_value_id sigmoid)
{
	return binary(g, LTH_OP_ID_Mul, sigmoid, from(g, 1, sigmoid));
}

RULE(sigmoid)
{
	(void)input;
	return bump(g, y_of(g));
}

/* `slope` where low < a < high, else `outside` above and 0 below. */
static lth_value_id between(struct lth_gradient *g, lth_value_id a, double low, double high, lth_value_id slope,
			    double above)
{
	lth_value_id under = binary(g, LTH_OP_ID_Less, a, number(g, high));
	lth_value_id inner = select_of(g, under, slope, number(g, above));
	lth_value_id over = binary(g, LTH_OP_ID_Greater, a, number(g, low));
	return select_of(g, over, inner, number(g, 0));
}

RULE(hard_sigmoid)
{
	(void)input;
	return between(g, y_of(g), 0, 1, number(g, attribute(g, "alpha")), 0);
}

RULE(hard_swish) /* x / 3 + 1 / 2 in (-3, 3) */
{
	(void)input;
	return between(g, x_of(g), -3, 3, plus(g, scaled(g, x_of(g), 1.0 / 3), 0.5), 1);
}

RULE(mish) /* t + x sigmoid(x) (1 - t^2), t = tanh(softplus(x)) */
{
	(void)input;
	lth_value_id t = unary(g, LTH_OP_ID_Tanh, unary(g, LTH_OP_ID_Softplus, x_of(g)));
	lth_value_id weight = binary(g, LTH_OP_ID_Mul, x_of(g), unary(g, LTH_OP_ID_Sigmoid, x_of(g)));
	weight = binary(g, LTH_OP_ID_Mul, weight, from(g, 1, square(g, t)));
	return binary(g, LTH_OP_ID_Add, t, weight);
}

/* Of x (1 + tanh(u)) / 2, u = c (x + 0.044715 x^3): (1 + t) / 2 + x (1 - t^2) c (1 + 3 0.044715 x^2) / 2 */
static lth_value_id gelu_by_tanh(struct lth_gradient *g)
{
	const double c = 0.79788456080286535588, cubic = 0.044715; /* sqrt(2 / pi) */
	lth_value_id squared = square(g, x_of(g));
	lth_value_id u = binary(g, LTH_OP_ID_Mul, x_of(g), scaled(g, plus(g, scaled(g, squared, cubic), 1), c));
	lth_value_id t = unary(g, LTH_OP_ID_Tanh, u);
	lth_value_id inner = scaled(g, plus(g, scaled(g, squared, 3 * cubic), 1), c / 2);
	lth_value_id weight = binary(g, LTH_OP_ID_Mul, x_of(g), from(g, 1, square(g, t)));
	weight = binary(g, LTH_OP_ID_Mul, weight, inner);
	return binary(g, LTH_OP_ID_Add, weight, scaled(g, plus(g, t, 1), 0.5));
}

RULE(gelu) /* P(x) + x p(x) of the normal distribution */
{
	(void)input;
	if (lth_op_string_is(&g->node, "approximate", "tanh"))
		return gelu_by_tanh(g);
	const double half_root = 0.70710678118654752440, density = 0.39894228040143267794;
	lth_value_id z = scaled(g, x_of(g), half_root);
	lth_value_id weight = binary(g, LTH_OP_ID_Mul, x_of(g), scaled(g, bell(g, z), density));
	lth_value_id cumulative = scaled(g, plus(g, unary(g, LTH_OP_ID_Erf, z), 1), 0.5);
	return binary(g, LTH_OP_ID_Add, cumulative, weight);
}

RULE(swish) /* s + alpha x s (1 - s), s = sigmoid(alpha x) */
{
	(void)input;
	lth_value_id inner = scaled(g, x_of(g), attribute(g, "alpha"));
	lth_value_id s = unary(g, LTH_OP_ID_Sigmoid, inner);
	return binary(g, LTH_OP_ID_Add, s, binary(g, LTH_OP_ID_Mul, inner, bump(g, s)));
}

RULE(softplus)
{
	(void)input;
	return unary(g, LTH_OP_ID_Sigmoid, x_of(g));
}

RULE(softsign) /* 1 / (1 + |x|)^2 */
{
	(void)input;
	return unary(g, LTH_OP_ID_Reciprocal, square(g, plus(g, unary(g, LTH_OP_ID_Abs, x_of(g)), 1)));
}

RULE(shrink)
{
	(void)input;
	return step_at(g, unary(g, LTH_OP_ID_Abs, x_of(g)), LTH_OP_ID_Greater, attribute(g, "lambd"), 1, 0);
}

/* ---- functions of several numbers ---- */

RULE(pass)
{
	(void)input;
	return g->of[0];
}

RULE(sub)
{
	return input == 0 ? g->of[0] : unary(g, LTH_OP_ID_Neg, g->of[0]);
}

RULE(mul)
{
	return lth_gradient_in(g, 1 - input);
}

RULE(div) /* 1 / b and -y / b */
{
	lth_value_id divisor = lth_gradient_in(g, 1);
	if (input == 0)
		return unary(g, LTH_OP_ID_Reciprocal, divisor);
	return binary(g, LTH_OP_ID_Div, unary(g, LTH_OP_ID_Neg, y_of(g)), divisor);
}

RULE(pow) /* b a^(b - 1), and y log(a), which is 0 where a <= 0 as elsewhere it has no meaning */
{
	enum lth_dtype dtype = lth_gradient_type(g, 0)->dtype;
	lth_value_id base = x_of(g), exponent = lth_build_cast(g->infer, lth_gradient_in(g, 1), dtype);
	if (input == 0) {
		lth_value_id power = binary(g, LTH_OP_ID_Pow, base, plus(g, exponent, -1));
		return binary(g, LTH_OP_ID_Mul, exponent, power);
	}
	lth_value_id positive = binary(g, LTH_OP_ID_Greater, base, number(g, 0));
	lth_value_id logarithm = unary(g, LTH_OP_ID_Log, select_of(g, positive, base, number(g, 1)));
	return binary(g, LTH_OP_ID_Mul, y_of(g), logarithm);
}

RULE(mean)
{
	(void)input;
	return number(g, 1.0 / g->node.num_inputs);
}

/* Equal inputs share. */
RULE(extremum)
{
	lth_value_id share = LTH_NONE, all = LTH_NONE;
	for (uint32_t k = 0; k < g->node.num_inputs; k++) {
		lth_value_id is = binary(g, LTH_OP_ID_Equal, lth_gradient_in(g, k), y_of(g));
		is = lth_build_cast(g->infer, is, lth_gradient_type(g, 0)->dtype);
		share = k == input ? is : share;
		all = k == 0 ? is : binary(g, LTH_OP_ID_Add, all, is);
	}
	return binary(g, LTH_OP_ID_Div, share, all);
}

RULE(where)
{
	lth_value_id zero = lth_gradient_number(g, 1, 0), condition = lth_gradient_in(g, 0);
	return input == 1 ? select_of(g, condition, g->of[0], zero) : select_of(g, condition, zero, g->of[0]);
}

/* Of x inside the bounds, and of a bound where it is the value. */
RULE(clip)
{
	lth_value_id of = g->of[0], zero = number(g, 0), bound = lth_gradient_in(g, input);
	if (input > 0) {
		lth_value_id beyond = binary(g, input == 1 ? LTH_OP_ID_Less : LTH_OP_ID_Greater, x_of(g), bound);
		return select_of(g, beyond, of, zero);
	}
	return select_of(g, binary(g, LTH_OP_ID_Equal, x_of(g), y_of(g)), of, zero);
}

RULE(cast)
{
	if (input > 0)
		return LTH_NONE;
	return lth_build_cast(g->infer, g->of[0], lth_gradient_type(g, 0)->dtype);
}

RULE(dropout)
{
	if (input > 0)
		return LTH_NONE;
	if (lth_gradient_in(g, 2) != LTH_NONE)
		return lth_gradient_refuse(g, "in training");
	return g->of[0];
}
