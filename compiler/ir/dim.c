/* Dimensions: interning and polynomial arithmetic. See dim.h and dim_internal.h. */
#include "compiler/ir/dim_internal.h"

#include "runtime/base/checked.h"
#include "runtime/base/hash.h"

#include <assert.h>
#include <string.h>

static uint64_t name_hash(const char *name)
{
	return lth_hash_bytes(name, strlen(name), 0);
}

lth_dim lth_dim_overflow(struct lth_dims *dims)
{
	dims->overflowed = true;
	return LTH_DIM_NONE;
}

bool lth_dims_overflowed(const struct lth_dims *dims)
{
	return dims->overflowed;
}

/* ---- products ---- */

uint32_t lth_dim_product_of_atoms(struct lth_dims *dims, const uint32_t *atoms, uint32_t count)
{
	if (count > LTH_DIM_MAX_FACTORS)
		return LTH_NONE;
	uint64_t hash = lth_hash_bytes(atoms, count * sizeof(*atoms), count);
	for (uint32_t at = 0, id; (id = lth_id_table_next(&dims->product_table, hash, &at)) != LTH_NONE;) {
		const struct lth_dim_product *other = &dims->products[id];
		if (other->count == count && (count == 0 || memcmp(other->atoms, atoms, count * sizeof(*atoms)) == 0))
			return id;
	}
	struct lth_dim_product *products = lth_arena_grow(dims->arena, dims->products, &dims->cap_products,
							  dims->num_products + 1, sizeof(*products));
	uint32_t *copy = products ? lth_arena_memdup(dims->arena, atoms, count * sizeof(*atoms)) : NULL;
	if (!copy || !lth_id_table_put(&dims->product_table, dims->arena, hash, dims->num_products))
		return LTH_NONE;
	dims->products = products;
	products[dims->num_products] = (struct lth_dim_product){copy, count};
	return dims->num_products++;
}

uint32_t lth_dim_product_of(struct lth_dims *dims, uint32_t a, uint32_t b)
{
	if (a == 0 || b == 0)
		return a ? a : b;
	const struct lth_dim_product *x = &dims->products[a], *y = &dims->products[b];
	uint32_t atoms[2 * LTH_DIM_MAX_FACTORS], count = 0, i = 0, j = 0;
	while (i < x->count || j < y->count) {
		bool take_x =
			j == y->count || (i < x->count && lth_dim_compare_atoms(dims, x->atoms[i], y->atoms[j]) <= 0);
		atoms[count++] = take_x ? x->atoms[i++] : y->atoms[j++];
	}
	return lth_dim_product_of_atoms(dims, atoms, count);
}

uint32_t lth_dim_product_quotient(struct lth_dims *dims, uint32_t a, uint32_t b)
{
	const struct lth_dim_product *x = &dims->products[a], *y = &dims->products[b];
	uint32_t atoms[LTH_DIM_MAX_FACTORS], count = 0, j = 0;
	for (uint32_t i = 0; i < x->count; i++) {
		if (j < y->count && x->atoms[i] == y->atoms[j])
			j++;
		else
			atoms[count++] = x->atoms[i];
	}
	return j == y->count ? lth_dim_product_of_atoms(dims, atoms, count) : LTH_NONE;
}

void lth_dim_cancel_multiples(const struct lth_dims *dims, struct lth_dim_term *term,
			      int64_t out_divisors[LTH_DIM_MAX_FACTORS])
{
	const struct lth_dim_product *product = &dims->products[term->product];
	for (uint32_t k = 0; k < product->count; k++) {
		const struct lth_dim_atom *atom = &dims->atoms[product->atoms[k]];
		int64_t multiple = atom->op == LTH_EXPR_SYMBOL ? dims->symbols[atom->a].multiple : 1;
		int64_t common = lth_dim_gcd(multiple, term->weight);
		out_divisors[k] = multiple / common;
		term->weight /= common;
	}
}

/* ---- sums ---- */

void lth_dim_sum_add_term(struct lth_dims *dims, struct lth_dim_sum *sum, int64_t weight, uint32_t product)
{
	if (sum->failed || weight == 0)
		return;
	if (product == LTH_NONE) {
		sum->failed = true;
		return;
	}
	uint32_t at = 0, end = sum->count;
	while (at < end) { /* terms stand in descending order */
		uint32_t middle = (at + end) / 2;
		if (sum->terms[middle].product != product &&
		    lth_dim_compare_products(dims, sum->terms[middle].product, product) > 0)
			at = middle + 1;
		else
			end = middle;
	}
	struct lth_dim_term *place = &sum->terms[at];
	if (at < sum->count && place->product == product) {
		if (!lth_add_i64(place->weight, weight, &place->weight)) {
			sum->failed = true;
		} else if (place->weight == 0) {
			sum->count--;
			memmove(place, place + 1, (sum->count - at) * sizeof(*place));
		}
		return;
	}
	if (sum->count == LTH_DIM_MAX_TERMS) {
		sum->failed = true;
		return;
	}
	memmove(place + 1, place, (sum->count - at) * sizeof(*place));
	*place = (struct lth_dim_term){weight, product};
	sum->count++;
}

void lth_dim_sum_add_times(struct lth_dims *dims, struct lth_dim_sum *sum, int64_t weight, lth_dim a, uint32_t product)
{
	for (uint32_t i = 0; i < dims->nodes[a].count && !sum->failed; i++) {
		struct lth_dim_term term = dims->nodes[a].terms[i];
		if (!lth_mul_i64(term.weight, weight, &term.weight))
			sum->failed = true;
		lth_dim_sum_add_term(dims, sum, term.weight, lth_dim_product_of(dims, term.product, product));
	}
}

void lth_dim_sum_add(struct lth_dims *dims, struct lth_dim_sum *sum, int64_t weight, lth_dim a)
{
	lth_dim_sum_add_times(dims, sum, weight, a, 0);
}

void lth_dim_sum_scale(struct lth_dim_sum *sum, int64_t factor)
{
	assert(factor != 0);
	for (uint32_t i = 0; i < sum->count; i++)
		if (!lth_mul_i64(sum->terms[i].weight, factor, &sum->terms[i].weight))
			sum->failed = true;
}

static void describe_sum(struct lth_dims *dims, const struct lth_dim_sum *sum, struct lth_dim_node *node)
{
	for (uint32_t i = 0; i < sum->count; i++) {
		const struct lth_dim_product *product = &dims->products[sum->terms[i].product];
		node->length = lth_dim_longer(node->length, 1);
		for (uint32_t k = 0; k < product->count; k++) {
			const struct lth_dim_atom *atom = &dims->atoms[product->atoms[k]];
			node->from_data |= atom->from_data;
			node->depth = atom->depth > node->depth ? atom->depth : node->depth;
			node->length = lth_dim_longer(node->length, atom->length);
		}
	}
	lth_dim_sum_bounds(dims, sum, &node->min, &node->max);
}

lth_dim lth_dim_from_sum(struct lth_dims *dims, const struct lth_dim_sum *sum)
{
	if (sum->failed)
		return lth_dim_overflow(dims);
	uint64_t hash = sum->count;
	for (uint32_t i = 0; i < sum->count; i++)
		hash = lth_hash_u64((uint64_t)sum->terms[i].weight, lth_hash_u64(sum->terms[i].product, hash));
	for (uint32_t at = 0, id; (id = lth_id_table_next(&dims->node_table, hash, &at)) != LTH_NONE;) {
		const struct lth_dim_node *other = &dims->nodes[id];
		bool same = other->count == sum->count;
		for (uint32_t i = 0; same && i < sum->count; i++)
			same = other->terms[i].product == sum->terms[i].product &&
			       other->terms[i].weight == sum->terms[i].weight;
		if (same)
			return id;
	}
	struct lth_dim_node node = {.count = sum->count};
	describe_sum(dims, sum, &node);
	if (node.length > LTH_DIM_MAX_LENGTH)
		return lth_dim_overflow(dims);
	struct lth_dim_node *nodes =
		lth_arena_grow(dims->arena, dims->nodes, &dims->cap_nodes, dims->num_nodes + 1, sizeof(*nodes));
	node.terms = nodes ? lth_arena_memdup(dims->arena, sum->terms, sum->count * sizeof(*sum->terms)) : NULL;
	if (!node.terms || !lth_id_table_put(&dims->node_table, dims->arena, hash, dims->num_nodes))
		return LTH_DIM_NONE;
	dims->nodes = nodes;
	nodes[dims->num_nodes] = node;
	return dims->num_nodes++;
}

/* ---- atoms and symbols ---- */

static uint32_t intern_atom(struct lth_dims *dims, struct lth_dim_atom atom)
{
	uint64_t hash = lth_hash_u64(atom.a | (uint64_t)atom.b << 32, (uint64_t)atom.op);
	for (uint32_t at = 0, id; (id = lth_id_table_next(&dims->atom_table, hash, &at)) != LTH_NONE;) {
		const struct lth_dim_atom *other = &dims->atoms[id];
		if (other->op == atom.op && other->a == atom.a && other->b == atom.b)
			return id;
	}
	lth_dim_atom_bounds(dims, &atom);
	if (atom.depth > LTH_DIM_MAX_DEPTH || atom.length > LTH_DIM_MAX_LENGTH)
		return LTH_NONE;
	struct lth_dim_atom *atoms =
		lth_arena_grow(dims->arena, dims->atoms, &dims->cap_atoms, dims->num_atoms + 1, sizeof(*atoms));
	if (!atoms || !lth_id_table_put(&dims->atom_table, dims->arena, hash, dims->num_atoms))
		return LTH_NONE;
	dims->atoms = atoms;
	atoms[dims->num_atoms] = atom;
	return dims->num_atoms++;
}

static lth_dim weighted_atom(struct lth_dims *dims, int64_t weight, uint32_t atom)
{
	struct lth_dim_sum sum;
	lth_dim_sum_clear(&sum);
	if (atom == LTH_NONE)
		return lth_dim_overflow(dims);
	lth_dim_sum_add_term(dims, &sum, weight, lth_dim_product_of_atoms(dims, &atom, 1));
	return lth_dim_from_sum(dims, &sum);
}

lth_dim lth_dim_from_atom(struct lth_dims *dims, const struct lth_dim_atom *atom)
{
	return weighted_atom(dims, 1, intern_atom(dims, *atom));
}

struct lth_dims *lth_dims_create(struct lth_arena *arena)
{
	struct lth_dims *dims = lth_arena_alloc(arena, sizeof(*dims));
	if (!dims)
		return NULL;
	dims->arena = arena;
	dims->bounds_age = 1;
	dims->memo = lth_arena_alloc(arena, sizeof(*dims->memo));
	uint32_t unit = lth_dim_product_of_atoms(dims, NULL, 0); /* product 0 is the empty one */
	assert(unit == 0 || unit == LTH_NONE);
	lth_dim_const(dims, 0);
	return lth_arena_ok(arena) ? dims : NULL;
}

lth_dim lth_dim_const(struct lth_dims *dims, int64_t value)
{
	struct lth_dim_sum sum;
	lth_dim_sum_clear(&sum);
	lth_dim_sum_add_term(dims, &sum, value, 0);
	return lth_dim_from_sum(dims, &sum);
}

lth_dim lth_dim_find_symbol(const struct lth_dims *dims, const char *name)
{
	uint64_t hash = name_hash(name);
	for (uint32_t at = 0, id; (id = lth_id_table_next(&dims->symbol_table, hash, &at)) != LTH_NONE;)
		if (strcmp(dims->symbols[id].name, name) == 0)
			return dims->symbol_dims[id];
	return LTH_DIM_NONE;
}

lth_dim lth_dim_symbol(struct lth_dims *dims, const struct lth_dim_symbol *symbol)
{
	lth_dim found = lth_dim_find_symbol(dims, symbol->name);
	if (found != LTH_DIM_NONE)
		return found;
	uint32_t number = dims->num_symbols;
	struct lth_dim_symbol *symbols =
		lth_arena_grow(dims->arena, dims->symbols, &dims->cap_symbols, number + 1, sizeof(*symbols));
	lth_dim *symbol_dims = lth_arena_grow(dims->arena, dims->symbol_dims, &dims->cap_symbol_dims, number + 1,
					      sizeof(*symbol_dims));
	uint32_t *symbol_atoms = lth_arena_grow(dims->arena, dims->symbol_atoms, &dims->cap_symbol_atoms, number + 1,
						sizeof(*symbol_atoms));
	char *name = lth_arena_strdup(dims->arena, symbol->name);
	if (!symbols || !symbol_dims || !symbol_atoms || !name ||
	    !lth_id_table_put(&dims->symbol_table, dims->arena, name_hash(name), number))
		return LTH_DIM_NONE;
	dims->symbols = symbols;
	dims->symbol_dims = symbol_dims;
	dims->symbol_atoms = symbol_atoms;
	symbols[number] = *symbol;
	symbols[number].name = name;
	if (symbols[number].multiple < 1)
		symbols[number].multiple = 1;
	dims->num_symbols++;
	symbol_atoms[number] = intern_atom(dims, (struct lth_dim_atom){.op = LTH_EXPR_SYMBOL, .a = number});
	return symbol_dims[number] = weighted_atom(dims, symbols[number].multiple, symbol_atoms[number]);
}

uint32_t lth_dims_num_symbols(const struct lth_dims *dims)
{
	return dims->num_symbols;
}

const struct lth_dim_symbol *lth_dims_symbol(const struct lth_dims *dims, uint32_t number)
{
	assert(number < dims->num_symbols);
	return &dims->symbols[number];
}

lth_dim lth_dims_symbol_dim(const struct lth_dims *dims, uint32_t number)
{
	assert(number < dims->num_symbols);
	return dims->symbol_dims[number];
}

/* ---- arithmetic ---- */

static lth_dim linear(struct lth_dims *dims, lth_dim a, int64_t weight, lth_dim b)
{
	if (a == LTH_DIM_NONE || b == LTH_DIM_NONE)
		return LTH_DIM_NONE;
	struct lth_dim_sum sum;
	lth_dim_sum_clear(&sum);
	lth_dim_sum_add(dims, &sum, 1, a);
	lth_dim_sum_add(dims, &sum, weight, b);
	return lth_dim_from_sum(dims, &sum);
}

lth_dim lth_dim_add(struct lth_dims *dims, lth_dim a, lth_dim b)
{
	return linear(dims, a, 1, b);
}

lth_dim lth_dim_sub(struct lth_dims *dims, lth_dim a, lth_dim b)
{
	return linear(dims, a, -1, b);
}

lth_dim lth_dim_mul(struct lth_dims *dims, lth_dim a, lth_dim b)
{
	int64_t x, y;
	if (a == LTH_DIM_NONE || b == LTH_DIM_NONE)
		return LTH_DIM_NONE;
	bool a_known = lth_dim_node_const(dims, a, &x), b_known = lth_dim_node_const(dims, b, &y);
	if (b_known && y == 1)
		return a;
	if (a_known && x == 1)
		return b;
	if (a_known && b_known && lth_mul_i64(x, y, &x))
		return lth_dim_const(dims, x);
	struct lth_dim_sum sum;
	lth_dim_sum_clear(&sum);
	for (uint32_t i = 0; i < dims->nodes[b].count; i++) {
		struct lth_dim_term term = dims->nodes[b].terms[i];
		lth_dim_sum_add_times(dims, &sum, term.weight, a, term.product);
	}
	return lth_dim_from_sum(dims, &sum);
}

lth_dim lth_dim_product(struct lth_dims *dims, const lth_dim *list, uint32_t count)
{
	lth_dim result = count ? list[0] : lth_dim_const(dims, 1);
	for (uint32_t i = 1; i < count; i++)
		result = lth_dim_mul(dims, result, list[i]);
	return result;
}

bool lth_dim_is_const(const struct lth_dims *dims, lth_dim a, int64_t *out_value)
{
	int64_t value;
	if (a == LTH_DIM_NONE || !lth_dim_node_const(dims, a, &value))
		return false;
	if (out_value)
		*out_value = value;
	return true;
}

bool lth_dim_depends_on_data(const struct lth_dims *dims, lth_dim a)
{
	return a != LTH_DIM_NONE && dims->nodes[a].from_data;
}

void lth_dims_settle_hint(struct lth_dims *dims, uint32_t number, int64_t hint)
{
	dims->symbols[number].hint = hint;
	dims->symbols[number].settled = true;
}

void lth_dim_tighten(struct lth_dims *dims, lth_dim symbol, lth_dim bound, int64_t max)
{
	for (uint32_t i = 0; bound != LTH_DIM_NONE && i < dims->num_symbols; i++) {
		struct lth_dim_symbol *known = &dims->symbols[i];
		if (!known->from_data || known->bound != LTH_DIM_NONE || lth_dims_symbol_dim(dims, i) != symbol)
			continue;
		known->bound = bound;
		dims->bounds_age++;
		known->max = max < known->max ? max : known->max;
		known->hint = max == INT64_MAX ? known->hint : max;
		return;
	}
}
