/* Bounds of dimensions over the box, and the comparisons built on them. Bounds come from interval arithmetic on the sum
 * and on the sum with each atom x replaced by lo + t, t >= 0, whichever is tighter: the second sees that h*w - h >= 0
 * for h, w >= 1. A comparison is a proof that a difference is nonnegative; where bounds do not decide, floordiv, mod,
 * min and max atoms are replaced by what they cannot exceed. Infinity is the extreme of int64. */
#include "compiler/ir/dim_internal.h"

#include "runtime/base/checked.h"
#include "runtime/base/hash.h"

static bool infinite(int64_t a)
{
	return a == INT64_MAX || a == INT64_MIN;
}

int64_t lth_dim_saturating_mul(int64_t a, int64_t b)
{
	int64_t result;
	if (a == 0 || b == 0)
		return 0;
	if (!infinite(a) && !infinite(b) && lth_mul_i64(a, b, &result))
		return result;
	return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
}

static int64_t saturating_add(int64_t a, int64_t b)
{
	int64_t result;
	if (infinite(a) || infinite(b))
		return infinite(a) ? a : b;
	return lth_add_i64(a, b, &result) ? result : a < 0 ? INT64_MIN : INT64_MAX;
}

static int64_t saturating_sub(int64_t a, int64_t b)
{
	int64_t result;
	if (infinite(a))
		return a;
	if (infinite(b))
		return b < 0 ? INT64_MAX : INT64_MIN;
	return lth_sub_i64(a, b, &result) ? result : a < 0 ? INT64_MIN : INT64_MAX;
}

struct interval {
	int64_t min, max;
};

static struct interval multiply(struct interval a, struct interval b)
{
	int64_t corner[4] = {lth_dim_saturating_mul(a.min, b.min), lth_dim_saturating_mul(a.min, b.max),
			     lth_dim_saturating_mul(a.max, b.min), lth_dim_saturating_mul(a.max, b.max)};
	struct interval result = {corner[0], corner[0]};
	for (int i = 1; i < 4; i++) {
		result.min = corner[i] < result.min ? corner[i] : result.min;
		result.max = corner[i] > result.max ? corner[i] : result.max;
	}
	return result;
}

/* How the shifted sum names an atom: x = lo + t, or hi - t where only the upper end is known. */
static int64_t shift_of(const struct lth_dim_atom *atom, int64_t *out_sign)
{
	*out_sign = atom->min == INT64_MIN && atom->max != INT64_MAX ? -1 : 1;
	return atom->min != INT64_MIN ? atom->min : atom->max != INT64_MAX ? atom->max : 0;
}

static struct interval bounds_of_terms(const struct lth_dims *dims, const struct lth_dim_sum *sum, bool shifted)
{
	struct interval total = {0, 0};
	for (uint32_t i = 0; i < sum->count; i++) {
		struct interval term = {sum->terms[i].weight, sum->terms[i].weight};
		const struct lth_dim_product *product = &dims->products[sum->terms[i].product];
		for (uint32_t k = 0; k < product->count; k++) {
			const struct lth_dim_atom *atom = &dims->atoms[product->atoms[k]];
			struct interval range = {atom->min, atom->max};
			if (shifted && (atom->min != INT64_MIN || atom->max != INT64_MAX))
				range = (struct interval){0, saturating_sub(atom->max, atom->min)};
			term = multiply(term, range);
		}
		/* an end that saturated is no longer known to be on that side: it is infinite */
		total.min = total.min == INT64_MIN || term.min == INT64_MIN ? INT64_MIN
									    : saturating_add(total.min, term.min);
		total.max = total.max == INT64_MAX || term.max == INT64_MAX ? INT64_MAX
									    : saturating_add(total.max, term.max);
	}
	return total;
}

/* Adds weight * (product with every atom shifted) to out. */
static void add_shifted(struct lth_dims *dims, struct lth_dim_sum *out, int64_t weight, const uint32_t *atoms,
			uint32_t count, uint32_t done)
{
	if (count == 0 || out->failed) {
		lth_dim_sum_add_term(dims, out, weight, done);
		return;
	}
	int64_t sign, constant, shift = shift_of(&dims->atoms[atoms[0]], &sign);
	if (shift != 0 && !lth_mul_i64(weight, shift, &constant))
		out->failed = true;
	else if (shift != 0)
		add_shifted(dims, out, constant, atoms + 1, count - 1, done);
	uint32_t single = lth_dim_product_of_atoms(dims, atoms, 1);
	uint32_t more = single == LTH_NONE ? LTH_NONE : lth_dim_product_of(dims, done, single);
	if (more == LTH_NONE || weight == INT64_MIN)
		out->failed = true;
	else
		add_shifted(dims, out, sign * weight, atoms + 1, count - 1, more);
}

void lth_dim_sum_bounds(struct lth_dims *dims, const struct lth_dim_sum *sum, int64_t *out_min, int64_t *out_max)
{
	enum { MAX_SHIFTED_FACTORS = 6 };
	struct interval plain = bounds_of_terms(dims, sum, false);
	bool try_shift = sum->count >= 2 && sum->count <= 32 &&
			 (plain.min == INT64_MIN || plain.max == INT64_MAX || plain.min != plain.max);
	for (uint32_t i = 0; i < sum->count && try_shift; i++)
		try_shift = dims->products[sum->terms[i].product].count <= MAX_SHIFTED_FACTORS;
	if (try_shift) {
		struct lth_dim_sum out;
		lth_dim_sum_clear(&out);
		for (uint32_t i = 0; i < sum->count && !out.failed; i++) {
			const struct lth_dim_product *product = &dims->products[sum->terms[i].product];
			add_shifted(dims, &out, sum->terms[i].weight, product->atoms, product->count, 0);
		}
		if (!out.failed) {
			struct interval shifted = bounds_of_terms(dims, &out, true);
			plain.min = shifted.min > plain.min ? shifted.min : plain.min;
			plain.max = shifted.max < plain.max ? shifted.max : plain.max;
		}
	}
	*out_min = plain.min;
	*out_max = plain.max;
}

static struct interval divide(struct interval a, int64_t b_min, int64_t b_max)
{
	struct interval result = {INT64_MIN, INT64_MAX};
	if (b_min < 1)
		return result;
	if (a.min != INT64_MIN)
		result.min = a.min >= 0 ? (b_max == INT64_MAX ? 0 : lth_floordiv_i64(a.min, b_max))
					: lth_floordiv_i64(a.min, b_min);
	if (a.max != INT64_MAX)
		result.max = a.max >= 0 ? lth_floordiv_i64(a.max, b_min)
					: (b_max == INT64_MAX ? -1 : lth_floordiv_i64(a.max, b_max));
	return result;
}

static void symbol_bounds(const struct lth_dims *dims, struct lth_dim_atom *atom)
{
	const struct lth_dim_symbol *symbol = &dims->symbols[atom->a];
	atom->min = symbol->min == INT64_MIN ? INT64_MIN : lth_ceildiv_i64(symbol->min, symbol->multiple);
	atom->max = symbol->max == INT64_MAX ? INT64_MAX : lth_floordiv_i64(symbol->max, symbol->multiple);
	if (symbol->from_data && symbol->bound != LTH_DIM_NONE && dims->nodes[symbol->bound].max != INT64_MAX) {
		int64_t bound = lth_floordiv_i64(dims->nodes[symbol->bound].max, symbol->multiple);
		atom->max = bound < atom->max ? bound : atom->max;
	}
	atom->max = atom->max < atom->min ? atom->min : atom->max;
	atom->from_data = symbol->from_data;
}

static void real_bounds(const struct lth_dims *dims, struct lth_dim_atom *atom)
{
	const struct lth_real_node *real = &dims->reals[atom->a];
	const double limit = 9.2e18;
	atom->min = real->min > -limit ? (int64_t)real->min : INT64_MIN;
	atom->max = real->max < limit ? (int64_t)real->max : INT64_MAX;
	atom->depth = real->depth + 1;
	atom->length = lth_dim_longer(real->length, 1);
	atom->from_data = real->from_data;
}

/* Fills range, depth, length and from_data. */
void lth_dim_atom_bounds(const struct lth_dims *dims, struct lth_dim_atom *atom)
{
	atom->length = 1;
	if (atom->op == LTH_EXPR_SYMBOL || atom->op == LTH_EXPR_TOINT) {
		(atom->op == LTH_EXPR_SYMBOL ? symbol_bounds : real_bounds)(dims, atom);
		return;
	}
	const struct lth_dim_node *a = &dims->nodes[atom->a], *b = &dims->nodes[atom->b];
	struct interval range = {INT64_MIN, INT64_MAX};
	atom->depth = 1 + (a->depth > b->depth ? a->depth : b->depth);
	atom->length = lth_dim_longer(lth_dim_longer(a->length, b->length), 1);
	atom->from_data = a->from_data || b->from_data;
	if (atom->op == LTH_EXPR_FLOORDIV) {
		range = divide((struct interval){a->min, a->max}, b->min, b->max);
	} else if (atom->op == LTH_EXPR_MOD && b->min >= 1) {
		range = (struct interval){0, b->max == INT64_MAX ? INT64_MAX : b->max - 1};
		if (a->min >= 0 && a->max < range.max)
			range.max = a->max;
	} else if (atom->op == LTH_EXPR_MIN) {
		range.min = a->min < b->min ? a->min : b->min;
		range.max = a->max < b->max ? a->max : b->max;
	} else if (atom->op == LTH_EXPR_MAX) {
		range.min = a->min > b->min ? a->min : b->min;
		range.max = a->max > b->max ? a->max : b->max;
	} else if (atom->op == LTH_EXPR_OPAQUE) {
		range = (struct interval){a->min, a->max};
	}
	atom->min = range.min;
	atom->max = range.max;
}

void lth_dim_range(const struct lth_dims *dims, lth_dim a, int64_t *out_min, int64_t *out_max)
{
	*out_min = a == LTH_DIM_NONE ? INT64_MIN : dims->nodes[a].min;
	*out_max = a == LTH_DIM_NONE ? INT64_MAX : dims->nodes[a].max;
}

/* ---- proofs ---- */

static bool nonnegative(struct lth_dims *dims, const struct lth_dim_sum *sum, unsigned fuel);

/* sum with term `at` replaced by weight * (a + plus) * rest, everything else scaled by `scale`. */
static bool nonnegative_with(struct lth_dims *dims, const struct lth_dim_sum *sum, uint32_t at, uint32_t rest,
			     int64_t scale, lth_dim a, int64_t plus, unsigned fuel)
{
	struct lth_dim_sum other = *sum;
	struct lth_dim_term term = sum->terms[at];
	int64_t constant;
	lth_dim_sum_add_term(dims, &other, term.weight == INT64_MIN ? 0 : -term.weight, term.product);
	lth_dim_sum_scale(&other, scale);
	lth_dim_sum_add_times(dims, &other, term.weight, a, rest);
	if (term.weight == INT64_MIN || !lth_mul_i64(term.weight, plus, &constant))
		return false;
	lth_dim_sum_add_term(dims, &other, constant, rest);
	return !other.failed && nonnegative(dims, &other, fuel);
}

/* Tries what is known of the atom of term `at`, whose other factors `rest` are nonnegative. */
static bool relax(struct lth_dims *dims, const struct lth_dim_sum *sum, uint32_t at, uint32_t atom_id, uint32_t rest,
		  unsigned fuel)
{
	struct lth_dim_atom atom = dims->atoms[atom_id];
	bool positive = sum->terms[at].weight > 0;
	int64_t divisor;
	switch (atom.op) {
	case LTH_EXPR_FLOORDIV: /* (a - b + 1) / b <= floordiv <= a / b */
		if (lth_dim_node_const(dims, atom.b, &divisor) && divisor > 0)
			return nonnegative_with(dims, sum, at, rest, divisor, atom.a, positive ? 1 - divisor : 0, fuel);
		return !positive && dims->nodes[atom.a].min >= 0 && dims->nodes[atom.b].min >= 1 &&
		       nonnegative_with(dims, sum, at, rest, 1, atom.a, 0, fuel);
	case LTH_EXPR_MOD:
		return !positive && dims->nodes[atom.b].min >= 1 &&
		       (nonnegative_with(dims, sum, at, rest, 1, atom.b, -1, fuel) ||
			(dims->nodes[atom.a].min >= 0 && nonnegative_with(dims, sum, at, rest, 1, atom.a, 0, fuel)));
	case LTH_EXPR_MIN:
	case LTH_EXPR_MAX: {
		bool either = (atom.op == LTH_EXPR_MAX) == positive; /* one side already suffices */
		bool first = nonnegative_with(dims, sum, at, rest, 1, atom.a, 0, fuel);
		if (first == either)
			return first;
		return nonnegative_with(dims, sum, at, rest, 1, atom.b, 0, fuel);
	}
	case LTH_EXPR_OPAQUE:
		return nonnegative_with(dims, sum, at, rest, 1, atom.a, 0, fuel);
	case LTH_EXPR_SYMBOL: { /* a data symbol under its bound */
		const struct lth_dim_symbol *symbol = &dims->symbols[atom.a];
		return !positive && symbol->from_data && symbol->bound != LTH_DIM_NONE &&
		       nonnegative_with(dims, sum, at, rest, symbol->multiple, symbol->bound, 0, fuel);
	}
	default: return false;
	}
}

static bool nonnegative(struct lth_dims *dims, const struct lth_dim_sum *sum, unsigned fuel)
{
	int64_t min, max;
	lth_dim_sum_bounds(dims, sum, &min, &max);
	if (min >= 0)
		return true;
	if (fuel == 0 || max < 0 || dims->proof_steps == 0)
		return false;
	dims->proof_steps--;
	for (uint32_t i = 0; i < sum->count; i++) {
		struct lth_dim_product product = dims->products[sum->terms[i].product];
		for (uint32_t k = 0; k < product.count; k++) {
			const struct lth_dim_atom *atom = &dims->atoms[product.atoms[k]];
			if (atom->op == LTH_EXPR_SYMBOL && !atom->from_data)
				continue;
			bool rest_nonnegative = true;
			for (uint32_t j = 0; j < product.count; j++)
				rest_nonnegative &= j == k || dims->atoms[product.atoms[j]].min >= 0;
			uint32_t single = lth_dim_product_of_atoms(dims, &product.atoms[k], 1);
			uint32_t rest = lth_dim_product_quotient(dims, sum->terms[i].product, single);
			if (rest_nonnegative && rest != LTH_NONE &&
			    relax(dims, sum, i, product.atoms[k], rest, fuel - 1))
				return true;
		}
	}
	return false;
}

static bool prove(struct lth_dims *dims, lth_dim a, lth_dim b, int64_t plus)
{
	enum { FUEL = 4, STEPS = 48 };
	struct lth_dim_sum sum;
	lth_dim_sum_clear(&sum);
	dims->proof_steps = STEPS;
	lth_dim_sum_add(dims, &sum, 1, b);
	lth_dim_sum_add(dims, &sum, -1, a);
	lth_dim_sum_add_term(dims, &sum, plus, 0);
	return !sum.failed && nonnegative(dims, &sum, FUEL);
}

/* b - a + plus >= 0 everywhere? Operators of one shape ask the same again and again, and a proof may take some ten
 * microseconds: what was found is kept until a symbol gets another bound. */
static bool at_most(struct lth_dims *dims, lth_dim a, lth_dim b, int8_t plus)
{
	enum { SLOTS = 2048 };
	int64_t x, y, difference;
	if (lth_dim_node_const(dims, a, &x) && lth_dim_node_const(dims, b, &y) && lth_sub_i64(y, x, &difference))
		return difference >= -plus;
	if (!dims->proofs)
		dims->proofs = lth_arena_array(dims->arena, SLOTS, sizeof(*dims->proofs));
	if (!dims->proofs)
		return false; /* the arena is exhausted */
	struct lth_dim_proof *slot = &dims->proofs[lth_hash_u64((uint64_t)a << 32 | b, (uint64_t)plus) % SLOTS];
	if (slot->a != a || slot->b != b || slot->plus != plus || slot->age != dims->bounds_age + 1)
		*slot = (struct lth_dim_proof){a, b, dims->bounds_age + 1, plus, prove(dims, a, b, plus)};
	return slot->holds;
}

enum lth_truth lth_dim_le(struct lth_dims *dims, lth_dim a, lth_dim b)
{
	if (a == LTH_DIM_NONE || b == LTH_DIM_NONE)
		return LTH_UNKNOWN;
	if (at_most(dims, a, b, 0))
		return LTH_YES;
	return at_most(dims, b, a, -1) ? LTH_NO : LTH_UNKNOWN;
}

bool lth_dim_at_most(struct lth_dims *dims, lth_dim a, lth_dim b)
{
	return a != LTH_DIM_NONE && b != LTH_DIM_NONE && at_most(dims, a, b, 0);
}

enum lth_truth lth_dim_equal(struct lth_dims *dims, lth_dim a, lth_dim b)
{
	if (a == LTH_DIM_NONE || b == LTH_DIM_NONE)
		return LTH_UNKNOWN;
	if (a == b)
		return LTH_YES;
	if (at_most(dims, a, b, -1) || at_most(dims, b, a, -1))
		return LTH_NO;
	struct lth_dim_sum sum;
	lth_dim_sum_clear(&sum);
	lth_dim_sum_add(dims, &sum, 1, a);
	lth_dim_sum_add(dims, &sum, -1, b);
	int64_t constant = 0, factor = 0;
	for (uint32_t i = 0; i < sum.count && !sum.failed; i++) {
		int64_t weight = sum.terms[i].weight;
		if (sum.terms[i].product == 0)
			constant = weight;
		else
			factor = lth_dim_gcd(factor, weight);
	}
	bool never = !sum.failed && factor != 0 && constant % factor != 0;
	return never ? LTH_NO : at_most(dims, a, b, 0) && at_most(dims, b, a, 0) ? LTH_YES : LTH_UNKNOWN;
}

enum lth_truth lth_dim_divides(struct lth_dims *dims, lth_dim divisor, lth_dim a)
{
	int64_t by, value;
	if (divisor == LTH_DIM_NONE || a == LTH_DIM_NONE)
		return LTH_UNKNOWN;
	if (!lth_dim_node_const(dims, divisor, &by))
		return lth_dim_div_exact(dims, a, divisor) != LTH_DIM_NONE ? LTH_YES : LTH_UNKNOWN;
	if (by == 0)
		return lth_dim_node_const(dims, a, &value) ? (value == 0 ? LTH_YES : LTH_NO) : LTH_UNKNOWN;
	if (by == INT64_MIN)
		return LTH_UNKNOWN;
	bool overflowed = dims->overflowed;
	lth_dim rest = lth_dim_mod(dims, a, lth_dim_const(dims, by < 0 ? -by : by));
	dims->overflowed = overflowed;
	if (rest == LTH_DIM_NONE)
		return LTH_UNKNOWN;
	const struct lth_dim_node *node = &dims->nodes[rest];
	return node->min == 0 && node->max == 0 ? LTH_YES : node->min > 0 ? LTH_NO : LTH_UNKNOWN;
}
