/* The structural order of dimensions, products, atoms and reals. Equal structure is equal id, so of two different
 * expressions only the first pair of operands that differs is looked into: linear in the nesting. */
#include "compiler/ir/dim_internal.h"

#include <string.h>

static int compare_u32(uint32_t a, uint32_t b)
{
	return (a > b) - (a < b);
}

static int compare_reals(const struct lth_dims *dims, lth_real a, lth_real b)
{
	if (a == b)
		return 0;
	const struct lth_real_node *x = &dims->reals[a], *y = &dims->reals[b];
	if (x->op != y->op)
		return compare_u32(x->op, y->op);
	if (x->op == LTH_EXPR_RCONST) {
		uint64_t p, q;
		memcpy(&p, &x->value, sizeof(p));
		memcpy(&q, &y->value, sizeof(q));
		return (p > q) - (p < q);
	}
	if (x->op == LTH_EXPR_TOREAL)
		return lth_dim_compare(dims, x->a, y->a);
	return x->a != y->a ? compare_reals(dims, x->a, y->a) : compare_reals(dims, x->b, y->b);
}

int lth_dim_compare_atoms(const struct lth_dims *dims, uint32_t a, uint32_t b)
{
	if (a == b)
		return 0;
	const struct lth_dim_atom *x = &dims->atoms[a], *y = &dims->atoms[b];
	if (x->op != y->op)
		return compare_u32(x->op, y->op);
	if (x->op == LTH_EXPR_SYMBOL)
		return compare_u32(x->a, y->a);
	if (x->op == LTH_EXPR_TOINT)
		return compare_reals(dims, x->a, y->a);
	return x->a != y->a ? lth_dim_compare(dims, x->a, y->a) : lth_dim_compare(dims, x->b, y->b);
}

int lth_dim_compare_products(const struct lth_dims *dims, uint32_t a, uint32_t b)
{
	if (a == b)
		return 0;
	const struct lth_dim_product *x = &dims->products[a], *y = &dims->products[b];
	if (x->count != y->count)
		return compare_u32(x->count, y->count);
	for (uint32_t i = 0; i < x->count; i++)
		if (x->atoms[i] != y->atoms[i]) /* the smaller atom leads */
			return lth_dim_compare_atoms(dims, y->atoms[i], x->atoms[i]);
	return 0;
}

int lth_dim_compare(const struct lth_dims *dims, lth_dim a, lth_dim b)
{
	if (a == b)
		return 0;
	const struct lth_dim_node *x = &dims->nodes[a], *y = &dims->nodes[b];
	for (uint32_t i = 0; i < x->count && i < y->count; i++) {
		if (x->terms[i].product != y->terms[i].product)
			return lth_dim_compare_products(dims, x->terms[i].product, y->terms[i].product);
		if (x->terms[i].weight != y->terms[i].weight)
			return x->terms[i].weight < y->terms[i].weight ? -1 : 1;
	}
	return compare_u32(x->count, y->count);
}
