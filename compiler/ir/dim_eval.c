/* Evaluation of dimensions at points of the box, and bounds for what depends on data. Expressions share parts, so
 * values are kept per atom for the length of one evaluation: linear, however deep the sharing. */
#include "compiler/ir/dim_internal.h"

#include "runtime/base/checked.h"

struct lth_dim_memo *lth_dim_memo_begin(const struct lth_dims *dims)
{
	struct lth_dim_memo *memo = dims->memo;
	if (memo->cap_atoms < dims->num_atoms || !memo->atom_stamps) {
		uint32_t capacity = dims->cap_atoms ? dims->cap_atoms : 1;
		memo->atom_stamps = lth_arena_array(dims->arena, capacity, sizeof(*memo->atom_stamps));
		memo->atom_values = lth_arena_array(dims->arena, capacity, sizeof(*memo->atom_values));
		memo->cap_atoms = memo->atom_values ? capacity : 0; /* exhaustion is sticky */
		if (!memo->cap_atoms)
			memo->atom_stamps = NULL;
	}
	if (memo->cap_reals < dims->num_reals || !memo->real_stamps) {
		uint32_t capacity = dims->cap_reals ? dims->cap_reals : 1;
		memo->real_stamps = lth_arena_array(dims->arena, capacity, sizeof(*memo->real_stamps));
		memo->real_values = lth_arena_array(dims->arena, capacity, sizeof(*memo->real_values));
		memo->cap_reals = memo->real_values ? capacity : 0;
		if (!memo->cap_reals)
			memo->real_stamps = NULL;
	}
	memo->stamp++;
	return memo->atom_stamps && memo->real_stamps ? memo : NULL;
}

static bool eval_real(const struct lth_dims *dims, struct lth_dim_memo *memo, lth_real id, const int64_t *symbols,
		      double *out)
{
	const struct lth_real_node *real = &dims->reals[id];
	double a = 0, b = 0;
	int64_t integer;
	if (memo->real_stamps[id] == memo->stamp) {
		*out = memo->real_values[id];
		return true;
	}
	if (real->op == LTH_EXPR_RCONST) {
		*out = real->value;
	} else if (real->op == LTH_EXPR_TOREAL) {
		if (!lth_dim_memo_eval(dims, memo, real->a, symbols, &integer))
			return false;
		*out = (double)integer;
	} else {
		if (!eval_real(dims, memo, real->a, symbols, &a) ||
		    (real->b != LTH_NONE && !eval_real(dims, memo, real->b, symbols, &b)))
			return false;
		*out = lth_real_fold(real->op, a, b);
	}
	memo->real_stamps[id] = memo->stamp;
	memo->real_values[id] = *out;
	return true;
}

static bool eval_atom(const struct lth_dims *dims, struct lth_dim_memo *memo, uint32_t id, const int64_t *symbols,
		      int64_t *out)
{
	const struct lth_dim_atom *atom = &dims->atoms[id];
	int64_t a, b;
	double real;
	if (memo->atom_stamps[id] == memo->stamp) {
		*out = memo->atom_values[id];
		return true;
	}
	if (atom->op == LTH_EXPR_SYMBOL) {
		*out = lth_floordiv_i64(symbols[atom->a], dims->symbols[atom->a].multiple);
	} else if (atom->op == LTH_EXPR_TOINT) {
		if (!eval_real(dims, memo, atom->a, symbols, &real) || !(real > -9.2e18 && real < 9.2e18))
			return false;
		*out = (int64_t)real;
	} else {
		if (!lth_dim_memo_eval(dims, memo, atom->a, symbols, &a) ||
		    !lth_dim_memo_eval(dims, memo, atom->b, symbols, &b))
			return false;
		bool divides = atom->op == LTH_EXPR_FLOORDIV || atom->op == LTH_EXPR_MOD;
		if (divides && (b == 0 || (a == INT64_MIN && b == -1)))
			return false;
		*out = atom->op == LTH_EXPR_OPAQUE   ? a
		       : atom->op == LTH_EXPR_FLOORDIV ? lth_floordiv_i64(a, b)
		       : atom->op == LTH_EXPR_MOD    ? (a % b + b) % b
		       : atom->op == LTH_EXPR_MIN    ? (a < b ? a : b)
						     : (a > b ? a : b);
	}
	memo->atom_stamps[id] = memo->stamp;
	memo->atom_values[id] = *out;
	return true;
}

bool lth_dim_memo_eval(const struct lth_dims *dims, struct lth_dim_memo *memo, lth_dim a, const int64_t *symbols,
		       int64_t *out)
{
	int64_t total = 0, factor;
	const struct lth_dim_node *node = &dims->nodes[a];
	for (uint32_t i = 0; i < node->count; i++) {
		const struct lth_dim_product *product = &dims->products[node->terms[i].product];
		int64_t term = node->terms[i].weight;
		for (uint32_t k = 0; k < product->count; k++)
			if (!eval_atom(dims, memo, product->atoms[k], symbols, &factor) ||
			    !lth_mul_i64(term, factor, &term))
				return false;
		if (!lth_add_i64(total, term, &total))
			return false;
	}
	*out = total;
	return true;
}

static void mark_dim(const struct lth_dims *dims, struct lth_dim_memo *memo, lth_dim a, bool *marks);

static void mark_real(const struct lth_dims *dims, struct lth_dim_memo *memo, lth_real id, bool *marks)
{
	const struct lth_real_node *real = &dims->reals[id];
	if (memo->real_stamps[id] == memo->stamp || real->op == LTH_EXPR_RCONST)
		return;
	memo->real_stamps[id] = memo->stamp;
	if (real->op == LTH_EXPR_TOREAL) {
		mark_dim(dims, memo, real->a, marks);
		return;
	}
	mark_real(dims, memo, real->a, marks);
	if (real->b != LTH_NONE)
		mark_real(dims, memo, real->b, marks);
}

static void mark_atom(const struct lth_dims *dims, struct lth_dim_memo *memo, uint32_t id, bool *marks)
{
	const struct lth_dim_atom *atom = &dims->atoms[id];
	if (memo->atom_stamps[id] == memo->stamp)
		return;
	memo->atom_stamps[id] = memo->stamp;
	if (atom->op == LTH_EXPR_SYMBOL) {
		marks[atom->a] = true;
	} else if (atom->op == LTH_EXPR_TOINT) {
		mark_real(dims, memo, atom->a, marks);
	} else {
		mark_dim(dims, memo, atom->a, marks);
		mark_dim(dims, memo, atom->b, marks);
	}
}

static void mark_dim(const struct lth_dims *dims, struct lth_dim_memo *memo, lth_dim a, bool *marks)
{
	const struct lth_dim_node *node = &dims->nodes[a];
	for (uint32_t i = 0; i < node->count; i++) {
		const struct lth_dim_product *product = &dims->products[node->terms[i].product];
		for (uint32_t k = 0; k < product->count; k++)
			mark_atom(dims, memo, product->atoms[k], marks);
	}
}

void lth_dim_mark_symbols(const struct lth_dims *dims, lth_dim a, bool *marks)
{
	struct lth_dim_memo *memo = a == LTH_DIM_NONE || lth_dim_is_const(dims, a, NULL) ? NULL : lth_dim_memo_begin(dims);
	if (memo)
		mark_dim(dims, memo, a, marks);
}

bool lth_dim_eval(const struct lth_dims *dims, lth_dim a, const int64_t *symbols, int64_t *out_value)
{
	if (a == LTH_DIM_NONE)
		return false;
	if (lth_dim_node_const(dims, a, out_value))
		return true;
	struct lth_dim_memo *memo = lth_dim_memo_begin(dims);
	return memo && lth_dim_memo_eval(dims, memo, a, symbols, out_value);
}

enum point { AT_HINT, AT_TOP, AT_LIKELY };

/* A given hint that says more than the least value is believed; else a middling extent within the range. */
static int64_t likely_value(const struct lth_dim_symbol *symbol)
{
	enum { MIDDLING = 64 };
	int64_t multiple = symbol->multiple > 0 ? symbol->multiple : 1;
	int64_t value = (MIDDLING + multiple - 1) / multiple * multiple;
	if (symbol->hint > symbol->min && !symbol->settled)
		return symbol->hint;
	value = value < symbol->hint ? symbol->hint : value;
	return value > symbol->max ? symbol->max : value;
}

/* All symbols at their hint, at a likely value, or at their top: max, a data symbol's bound at the others' tops. */
static bool eval_all(const struct lth_dims *dims, lth_dim a, enum point point, int64_t *out_value)
{
	bool top = point == AT_TOP;
	if (a == LTH_DIM_NONE)
		return false;
	if (lth_dim_node_const(dims, a, out_value))
		return true;
	if (top && dims->nodes[a].max == INT64_MAX)
		return false;
	int64_t *values = lth_arena_array(dims->arena, dims->num_symbols, sizeof(*values));
	if (!values)
		return false;
	for (uint32_t i = 0; i < dims->num_symbols; i++) { /* a bound names earlier symbols only */
		const struct lth_dim_symbol *symbol = &dims->symbols[i];
		values[i] = top ? symbol->max : point == AT_HINT ? symbol->hint : likely_value(symbol);
		int64_t bound;
		if (top && symbol->from_data && symbol->bound != LTH_DIM_NONE &&
		    lth_dim_eval(dims, symbol->bound, values, &bound) && bound < values[i])
			values[i] = bound;
	}
	return lth_dim_eval(dims, a, values, out_value);
}

bool lth_dim_eval_hint(const struct lth_dims *dims, lth_dim a, int64_t *out_value)
{
	return eval_all(dims, a, AT_HINT, out_value);
}

bool lth_dim_eval_likely(const struct lth_dims *dims, lth_dim a, int64_t *out_value)
{
	return eval_all(dims, a, AT_LIKELY, out_value);
}

bool lth_dim_eval_top(const struct lth_dims *dims, lth_dim a, int64_t *out_value)
{
	return eval_all(dims, a, AT_TOP, out_value);
}
