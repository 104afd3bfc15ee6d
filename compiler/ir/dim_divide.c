/* Division, remainder, minimum and maximum of dimensions in normal form. A quotient by a constant is reduced as far as
 * exact rules go: multiples of the divisor leave it, common factors cancel, nested quotients merge, a remainder that
 * stays within the divisor vanishes. What is left is an atom. */
#include "compiler/ir/dim_internal.h"

#include "runtime/base/checked.h"

int64_t lth_dim_gcd(int64_t a, int64_t b)
{
	uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a, y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
	while (y) {
		uint64_t rest = x % y;
		x = y;
		y = rest;
	}
	return x > INT64_MAX ? 1 : (int64_t)x;
}

static lth_dim negate(struct lth_dims *dims, lth_dim a)
{
	return lth_dim_sub(dims, lth_dim_const(dims, 0), a);
}

static lth_dim binary_atom(struct lth_dims *dims, enum lth_expr_op op, lth_dim a, lth_dim b)
{
	if (a == LTH_DIM_NONE || b == LTH_DIM_NONE)
		return LTH_DIM_NONE;
	return lth_dim_from_atom(dims, &(struct lth_dim_atom){.op = op, .a = a, .b = b});
}

/* Splits a into divisor * quotient + rest, the rest without terms that the divisor divides. */
static void split_multiples(struct lth_dims *dims, lth_dim a, int64_t divisor, struct lth_dim_sum *quotient,
			    struct lth_dim_sum *rest)
{
	*quotient = (struct lth_dim_sum){.count = 0};
	*rest = (struct lth_dim_sum){.count = 0};
	for (uint32_t i = 0; i < dims->nodes[a].count; i++) {
		struct lth_dim_term term = dims->nodes[a].terms[i];
		int64_t part =
			term.product == 0 || term.weight % divisor == 0 ? lth_floordiv_i64(term.weight, divisor) : 0;
		lth_dim_sum_add_term(dims, quotient, part, term.product);
		lth_dim_sum_add_term(dims, rest, term.weight - part * divisor, term.product);
	}
}

/* Common factor of the divisor and of all weights but the constant. */
static int64_t common_factor(const struct lth_dim_sum *sum, int64_t divisor)
{
	int64_t factor = divisor;
	for (uint32_t i = 0; i < sum->count; i++)
		if (sum->terms[i].product != 0)
			factor = lth_dim_gcd(factor, sum->terms[i].weight);
	return factor;
}

static void divide_weights(struct lth_dims *dims, struct lth_dim_sum *sum, int64_t factor)
{
	struct lth_dim_sum result;
	lth_dim_sum_clear(&result);
	for (uint32_t i = 0; i < sum->count; i++)
		lth_dim_sum_add_term(dims, &result, lth_floordiv_i64(sum->terms[i].weight, factor),
				     sum->terms[i].product);
	result.failed |= sum->failed;
	*sum = result;
}

/* floordiv(floordiv(x, c) + k, b) is floordiv(x + c*k, b*c): true when it applies. */
static bool merge_nested(struct lth_dims *dims, const struct lth_dim_sum *rest, int64_t divisor, lth_dim *out)
{
	int64_t inner, product, constant = rest->count == 2 ? rest->terms[1].weight : 0;
	if (rest->count == 0 || rest->count > 2 || rest->terms[0].weight != 1 ||
	    (rest->count == 2 && rest->terms[1].product != 0))
		return false;
	const struct lth_dim_product *factors = &dims->products[rest->terms[0].product];
	if (factors->count != 1 || dims->atoms[factors->atoms[0]].op != LTH_EXPR_FLOORDIV)
		return false;
	struct lth_dim_atom atom = dims->atoms[factors->atoms[0]];
	if (!lth_dim_node_const(dims, atom.b, &inner) || inner <= 0 || !lth_mul_i64(inner, divisor, &product) ||
	    !lth_mul_i64(constant, inner, &constant))
		return false;
	*out = lth_dim_floordiv(dims, lth_dim_add(dims, atom.a, lth_dim_const(dims, constant)),
				lth_dim_const(dims, product));
	return true;
}

static lth_dim floordiv_const(struct lth_dims *dims, lth_dim a, int64_t divisor)
{
	struct lth_dim_sum quotient, rest;
	lth_dim inner;
	int64_t min, max;
	split_multiples(dims, a, divisor, &quotient, &rest);
	lth_dim whole = lth_dim_from_sum(dims, &quotient);
	if (rest.count == 0 || rest.failed)
		return rest.failed ? lth_dim_overflow(dims) : whole;
	int64_t factor = common_factor(&rest, divisor);
	divide_weights(dims, &rest, factor);
	divisor /= factor;
	lth_dim_sum_bounds(dims, &rest, &min, &max);
	if (min != INT64_MIN && max != INT64_MAX && lth_floordiv_i64(min, divisor) == lth_floordiv_i64(max, divisor))
		inner = lth_dim_const(dims, lth_floordiv_i64(min, divisor));
	else if (divisor == 1)
		inner = lth_dim_from_sum(dims, &rest);
	else if (!merge_nested(dims, &rest, divisor, &inner))
		inner = binary_atom(dims, LTH_EXPR_FLOORDIV, lth_dim_from_sum(dims, &rest),
				    lth_dim_const(dims, divisor));
	return lth_dim_add(dims, whole, inner);
}

/* a = b*q + r with the terms of a that b divides as a single product taken out, for symbolic divisors. */
static lth_dim floordiv_symbolic(struct lth_dims *dims, lth_dim a, lth_dim b)
{
	lth_dim exact = lth_dim_div_exact(dims, a, b);
	if (exact != LTH_DIM_NONE)
		return exact;
	const struct lth_dim_node *x = &dims->nodes[a], *y = &dims->nodes[b];
	if (x->min >= 0 && lth_dim_at_most(dims, lth_dim_add(dims, a, lth_dim_const(dims, 1)), b))
		return lth_dim_const(dims, 0);
	if (y->count != 1)
		return binary_atom(dims, LTH_EXPR_FLOORDIV, a, b);
	struct lth_dim_term by = y->terms[0];
	struct lth_dim_sum quotient, rest;
	lth_dim_sum_clear(&quotient);
	lth_dim_sum_clear(&rest);
	for (uint32_t i = 0; i < dims->nodes[a].count; i++) {
		struct lth_dim_term term = dims->nodes[a].terms[i];
		uint32_t product = term.weight % by.weight == 0
					   ? lth_dim_product_quotient(dims, term.product, by.product)
					   : LTH_NONE;
		if (product != LTH_NONE)
			lth_dim_sum_add_term(dims, &quotient, term.weight / by.weight, product);
		else
			lth_dim_sum_add_term(dims, &rest, term.weight, term.product);
	}
	lth_dim whole = lth_dim_from_sum(dims, &quotient), remainder = lth_dim_from_sum(dims, &rest);
	if (quotient.count == 0)
		return binary_atom(dims, LTH_EXPR_FLOORDIV, a, b);
	return lth_dim_add(dims, whole, lth_dim_floordiv(dims, remainder, b));
}

lth_dim lth_dim_floordiv(struct lth_dims *dims, lth_dim a, lth_dim b)
{
	int64_t divisor;
	if (a == LTH_DIM_NONE || b == LTH_DIM_NONE)
		return LTH_DIM_NONE;
	if (lth_dim_node_const(dims, b, &divisor)) {
		if (divisor == 0 || divisor == INT64_MIN)
			return lth_dim_overflow(dims);
		return divisor < 0 ? floordiv_const(dims, negate(dims, a), -divisor) : floordiv_const(dims, a, divisor);
	}
	if (dims->nodes[b].max < 0)
		return lth_dim_floordiv(dims, negate(dims, a), negate(dims, b));
	if (dims->nodes[b].min < 1)
		return binary_atom(dims, LTH_EXPR_FLOORDIV, a, b);
	return floordiv_symbolic(dims, a, b);
}

lth_dim lth_dim_ceildiv(struct lth_dims *dims, lth_dim a, lth_dim b)
{
	if (a == LTH_DIM_NONE || b == LTH_DIM_NONE)
		return LTH_DIM_NONE;
	if (dims->nodes[b].min < 1)
		return negate(dims, lth_dim_floordiv(dims, negate(dims, a), b));
	lth_dim up = lth_dim_sub(dims, lth_dim_add(dims, a, b), lth_dim_const(dims, 1));
	return lth_dim_floordiv(dims, up, b);
}

lth_dim lth_dim_truncdiv(struct lth_dims *dims, lth_dim a, lth_dim b)
{
	if (a == LTH_DIM_NONE || b == LTH_DIM_NONE)
		return LTH_DIM_NONE;
	bool a_up = dims->nodes[a].min >= 0, a_down = dims->nodes[a].max <= 0;
	bool b_up = dims->nodes[b].min >= 0, b_down = dims->nodes[b].max <= 0;
	lth_dim zero = lth_dim_const(dims, 0);
	if ((a_up && b_up) || (a_down && b_down))
		return lth_dim_floordiv(dims, a, b);
	if ((a_up && b_down) || (a_down && b_up))
		return lth_dim_ceildiv(dims, a, b);
	return lth_dim_add(dims, lth_dim_max(dims, zero, lth_dim_floordiv(dims, a, b)),
			   lth_dim_min(dims, zero, lth_dim_ceildiv(dims, a, b)));
}

lth_dim lth_dim_mod(struct lth_dims *dims, lth_dim a, lth_dim b)
{
	int64_t divisor, min, max;
	if (a == LTH_DIM_NONE || b == LTH_DIM_NONE)
		return LTH_DIM_NONE;
	if (!lth_dim_node_const(dims, b, &divisor)) {
		if (dims->nodes[b].min >= 1 && lth_dim_div_exact(dims, a, b) != LTH_DIM_NONE)
			return lth_dim_const(dims, 0);
		bool below = dims->nodes[a].min >= 0 &&
			     lth_dim_at_most(dims, lth_dim_add(dims, a, lth_dim_const(dims, 1)), b);
		return below ? a : binary_atom(dims, LTH_EXPR_MOD, a, b);
	}
	if (divisor == 0 || divisor == INT64_MIN)
		return lth_dim_overflow(dims);
	if (divisor < 0) /* the sign of the divisor */
		return negate(dims, lth_dim_mod(dims, negate(dims, a), lth_dim_const(dims, -divisor)));
	struct lth_dim_sum quotient, rest;
	split_multiples(dims, a, divisor, &quotient, &rest);
	int64_t factor = common_factor(&rest, divisor), low = 0;
	for (uint32_t i = 0; i < rest.count; i++) /* the part of the constant that the factor does not divide stays */
		low = rest.terms[i].product == 0 ? rest.terms[i].weight % factor : low;
	lth_dim_sum_add_term(dims, &rest, -low, 0);
	divide_weights(dims, &rest, factor);
	divisor /= factor;
	lth_dim_sum_bounds(dims, &rest, &min, &max);
	lth_dim inner = lth_dim_from_sum(dims, &rest);
	if (rest.count == 0 || divisor == 1)
		inner = lth_dim_const(dims, 0);
	else if (!(min >= 0 && max < divisor))
		inner = binary_atom(dims, LTH_EXPR_MOD, inner, lth_dim_const(dims, divisor));
	return lth_dim_add(dims, lth_dim_mul(dims, inner, lth_dim_const(dims, factor)), lth_dim_const(dims, low));
}

static lth_dim choose(struct lth_dims *dims, enum lth_expr_op op, lth_dim a, lth_dim b)
{
	if (a == LTH_DIM_NONE || b == LTH_DIM_NONE)
		return LTH_DIM_NONE;
	if (lth_dim_at_most(dims, a, b))
		return op == LTH_EXPR_MIN ? a : b;
	if (lth_dim_at_most(dims, b, a))
		return op == LTH_EXPR_MIN ? b : a;
	return lth_dim_compare(dims, a, b) > 0 ? binary_atom(dims, op, a, b) : binary_atom(dims, op, b, a);
}

lth_dim lth_dim_min(struct lth_dims *dims, lth_dim a, lth_dim b)
{
	return choose(dims, LTH_EXPR_MIN, a, b);
}

lth_dim lth_dim_max(struct lth_dims *dims, lth_dim a, lth_dim b)
{
	return choose(dims, LTH_EXPR_MAX, a, b);
}

lth_dim lth_dim_opaque(struct lth_dims *dims, lth_dim a)
{
	enum { SHORT = 4 }; /* products of such sums stay far below LTH_DIM_MAX_TERMS */
	if (a == LTH_DIM_NONE || dims->nodes[a].count <= SHORT)
		return a;
	return binary_atom(dims, LTH_EXPR_OPAQUE, a, lth_dim_const(dims, 0));
}

/* Polynomial long division in the graded order of products. */
lth_dim lth_dim_div_exact(struct lth_dims *dims, lth_dim a, lth_dim b)
{
	if (a == LTH_DIM_NONE || b == LTH_DIM_NONE || dims->nodes[b].count == 0)
		return LTH_DIM_NONE;
	struct lth_dim_sum rest, quotient;
	lth_dim_sum_clear(&rest);
	lth_dim_sum_clear(&quotient);
	struct lth_dim_term lead = dims->nodes[b].terms[0];
	lth_dim_sum_add(dims, &rest, 1, a);
	while (rest.count && !rest.failed) {
		struct lth_dim_term top = rest.terms[0];
		uint32_t product = lth_dim_product_quotient(dims, top.product, lead.product);
		if (product == LTH_NONE || (lead.weight == -1 && top.weight == INT64_MIN) ||
		    top.weight % lead.weight != 0 || top.weight / lead.weight == INT64_MIN)
			return LTH_DIM_NONE;
		int64_t weight = top.weight / lead.weight;
		lth_dim_sum_add_term(dims, &quotient, weight, product);
		lth_dim_sum_add_times(dims, &rest, -weight, b, product);
	}
	return rest.failed || quotient.failed ? LTH_DIM_NONE : lth_dim_from_sum(dims, &quotient);
}

static int64_t atom_factor(const struct lth_dims *dims, uint32_t id)
{
	const struct lth_dim_atom *atom = &dims->atoms[id];
	if (atom->op != LTH_EXPR_MIN && atom->op != LTH_EXPR_MAX)
		return 1;
	/* one level deep: enough for padded sizes, and linear */
	int64_t factor = 0;
	for (int side = 0; side < 2; side++) {
		const struct lth_dim_node *node = &dims->nodes[side ? atom->b : atom->a];
		for (uint32_t i = 0; i < node->count; i++)
			factor = lth_dim_gcd(factor, node->terms[i].weight);
	}
	return factor ? factor : 1;
}

int64_t lth_dim_known_factor(const struct lth_dims *dims, lth_dim a)
{
	int64_t factor = 0;
	if (a == LTH_DIM_NONE)
		return 1;
	for (uint32_t i = 0; i < dims->nodes[a].count; i++) {
		int64_t term = dims->nodes[a].terms[i].weight;
		const struct lth_dim_product *product = &dims->products[dims->nodes[a].terms[i].product];
		for (uint32_t k = 0; k < product->count; k++) {
			int64_t more;
			if (lth_mul_i64(term, atom_factor(dims, product->atoms[k]), &more))
				term = more;
		}
		factor = lth_dim_gcd(factor, term);
	}
	return factor ? factor : 1;
}
