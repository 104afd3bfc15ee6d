/* Upper bounds that are free of data: each data symbol replaced by its bound where the expression grows with it, by its
 * least value where it shrinks. Where that is not known to be valid, the greatest constant of the range serves. */
#include "compiler/ir/dim_internal.h"

#include "runtime/base/checked.h"

static lth_dim constant_top(struct lth_dims *dims, int64_t max)
{
	return max == INT64_MAX ? LTH_DIM_NONE : lth_dim_const(dims, max);
}

static lth_dim find_atom_upper(struct lth_dims *dims, uint32_t id)
{
	struct lth_dim_atom atom = dims->atoms[id];
	lth_dim a, b;
	int64_t low;
	if (!atom.from_data) {
		struct lth_dim_sum sum;
		lth_dim_sum_clear(&sum);
		lth_dim_sum_add_term(dims, &sum, 1, lth_dim_product_of_atoms(dims, &id, 1));
		return lth_dim_from_sum(dims, &sum);
	}
	switch (atom.op) {
	case LTH_EXPR_SYMBOL: {
		const struct lth_dim_symbol *symbol = &dims->symbols[atom.a];
		if (symbol->bound == LTH_DIM_NONE)
			break;
		lth_dim bound = symbol->bound;
		int64_t max = symbol->max, multiple = symbol->multiple;
		if (max != INT64_MAX)
			bound = lth_dim_min(dims, bound, lth_dim_const(dims, max));
		return lth_dim_floordiv(dims, lth_dim_upper_bound(dims, bound), lth_dim_const(dims, multiple));
	}
	case LTH_EXPR_FLOORDIV:
		low = dims->nodes[atom.b].min;
		if (low < 1 || (dims->nodes[atom.a].min < 0 && !lth_dim_node_const(dims, atom.b, &low)))
			break;
		a = lth_dim_upper_bound(dims, atom.a);
		b = dims->nodes[atom.b].from_data ? lth_dim_const(dims, low) : atom.b;
		return a == LTH_DIM_NONE ? constant_top(dims, atom.max) : lth_dim_floordiv(dims, a, b);
	case LTH_EXPR_MOD:
		if (dims->nodes[atom.b].min < 1)
			break;
		b = lth_dim_sub(dims, lth_dim_upper_bound(dims, atom.b), lth_dim_const(dims, 1));
		if (dims->nodes[atom.a].min < 0)
			return b;
		a = lth_dim_upper_bound(dims, atom.a);
		return a == LTH_DIM_NONE ? b : b == LTH_DIM_NONE ? a : lth_dim_min(dims, a, b);
	case LTH_EXPR_MIN:
		a = lth_dim_upper_bound(dims, atom.a);
		b = lth_dim_upper_bound(dims, atom.b);
		return a == LTH_DIM_NONE ? b : b == LTH_DIM_NONE ? a : lth_dim_min(dims, a, b);
	case LTH_EXPR_OPAQUE:
		return lth_dim_opaque(dims, lth_dim_upper_bound(dims, atom.a));
	case LTH_EXPR_MAX:
		return lth_dim_max(dims, lth_dim_upper_bound(dims, atom.a), lth_dim_upper_bound(dims, atom.b));
	default: break;
	}
	return constant_top(dims, atom.max);
}

/* Models ask for the same bounds again and again, and a minimum in one costs proofs. */
static lth_dim atom_upper(struct lth_dims *dims, uint32_t id)
{
	if (dims->atoms[id].upper_age == dims->bounds_age)
		return dims->atoms[id].upper;
	lth_dim upper = find_atom_upper(dims, id);
	dims->atoms[id].upper = upper;
	dims->atoms[id].upper_age = dims->bounds_age;
	return upper;
}

/* weight * product from above; all factors are nonnegative. */
static lth_dim term_upper(struct lth_dims *dims, struct lth_dim_term term)
{
	lth_dim result = lth_dim_const(dims, term.weight);
	struct lth_dim_product product = dims->products[term.product];
	for (uint32_t k = 0; k < product.count; k++) {
		uint32_t id = product.atoms[k];
		struct lth_dim_atom atom = dims->atoms[id];
		lth_dim factor =
			term.weight > 0 || !atom.from_data ? atom_upper(dims, id) : lth_dim_const(dims, atom.min);
		result = lth_dim_mul(dims, result, factor);
	}
	return result;
}

lth_dim lth_dim_upper_bound(struct lth_dims *dims, lth_dim a)
{
	if (a == LTH_DIM_NONE || !dims->nodes[a].from_data)
		return a;
	bool overflowed = dims->overflowed;
	struct lth_dim_node node = dims->nodes[a];
	lth_dim total = lth_dim_const(dims, 0);
	for (uint32_t i = 0; i < node.count; i++) {
		struct lth_dim_product product = dims->products[node.terms[i].product];
		bool data = false, nonnegative = true;
		for (uint32_t k = 0; k < product.count; k++) {
			data |= dims->atoms[product.atoms[k]].from_data;
			nonnegative &= dims->atoms[product.atoms[k]].min >= 0;
		}
		struct lth_dim_sum whole;
		lth_dim_sum_clear(&whole);
		lth_dim_sum_add_term(dims, &whole, node.terms[i].weight, node.terms[i].product);
		lth_dim term = data && !nonnegative ? LTH_DIM_NONE
			       : data               ? term_upper(dims, node.terms[i])
						    : lth_dim_from_sum(dims, &whole);
		total = lth_dim_add(dims, total, term);
	}
	dims->overflowed = overflowed;
	return total != LTH_DIM_NONE ? total : constant_top(dims, node.max);
}
