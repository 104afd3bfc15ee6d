/* Inside of the dimension context, shared by the dim*.c files only.
 *
 * Three interned layers. An atom is what polynomial arithmetic cannot look into: a symbol, floordiv, mod, min, max, int
 * of a real. A product is a sorted list of atoms. A dimension is a sum of weighted products, highest degree first,
 * constant last. The order of products is structural (never by id), so that text does not depend on the history of a
 * context, and is a graded lexicographic monomial order, which polynomial division needs.
 *
 * A symbol with multiple m is the atom t times m, so that what follows from the multiple falls out of plain polynomial
 * arithmetic; text and programs show the symbol again. Ceiling division is floor division in normal form.
 *
 * The work that hostile models can cause is bounded: terms a sum, factors a product, nesting, and the length written
 * out, since expressions share what they are made of. Beyond the bound an operation fails as on overflow. */
#ifndef LTH_IR_DIM_INTERNAL_H
#define LTH_IR_DIM_INTERNAL_H

#include "compiler/ir/dim.h"
#include "runtime/base/id_table.h"

enum { LTH_DIM_MAX_TERMS = 128, LTH_DIM_MAX_FACTORS = 24, LTH_DIM_MAX_DEPTH = 100, LTH_DIM_MAX_LENGTH = 1 << 17 };

struct lth_dim_term {
	int64_t weight; /* never 0 in an interned sum */
	uint32_t product;
};

struct lth_dim_product {
	const uint32_t *atoms; /* ascending in atom order, with repetition */
	uint32_t count;
};

struct lth_dim_atom {
	enum lth_expr_op op; /* SYMBOL, FLOORDIV, MOD, MIN, MAX, OPAQUE or TOINT */
	uint32_t a, b;       /* SYMBOL: number; TOINT: a real; else dimensions; of OPAQUE, b is 0 */
	int64_t min, max;
	uint32_t depth, length; /* length: terms and atoms when written out, at most one more than allowed */
	bool from_data;
	lth_dim upper;      /* of lth_dim_upper_bound, */
	uint32_t upper_age; /* valid while it is the context's */
};

struct lth_dim_node {
	const struct lth_dim_term *terms;
	uint32_t count;
	int64_t min, max;
	uint32_t depth, length;
	bool from_data;
};

struct lth_real_node {
	enum lth_expr_op op;
	uint32_t a, b; /* reals; TOREAL: a is a dimension */
	double value;  /* RCONST */
	double min, max;
	uint32_t depth, length;
	bool from_data;
};

/* Memory of an evaluation over the shared expression graph: one slot an atom and one a real. */
struct lth_dim_memo {
	uint32_t *atom_stamps, *real_stamps;
	int64_t *atom_values;
	double *real_values;
	uint32_t cap_atoms, cap_reals, stamp;
};

/* What a comparison found (dim_range.c), valid while its age is the context's. */
struct lth_dim_proof {
	lth_dim a, b;
	uint32_t age; /* bounds_age + 1; 0: an empty slot */
	int8_t plus;
	bool holds;
};

static inline uint32_t lth_dim_longer(uint32_t length, uint32_t more)
{
	uint32_t sum = length + more;
	return sum > LTH_DIM_MAX_LENGTH ? LTH_DIM_MAX_LENGTH + 1 : sum;
}

struct lth_dims {
	struct lth_arena *arena;
	struct lth_dim_symbol *symbols;
	lth_dim *symbol_dims;
	uint32_t *symbol_atoms;
	struct lth_dim_atom *atoms;
	struct lth_dim_product *products;
	struct lth_dim_node *nodes;
	struct lth_real_node *reals;
	uint32_t num_symbols, cap_symbols, cap_symbol_dims, cap_symbol_atoms, num_atoms, cap_atoms, num_products,
		cap_products;
	uint32_t num_nodes, cap_nodes, num_reals, cap_reals;
	struct lth_id_table symbol_table, atom_table, product_table, node_table, real_table;
	struct lth_dim_memo *memo;
	uint32_t proof_steps; /* what is left of the current proof's budget */
	uint32_t bounds_age;  /* grows with every symbol that gets a bound */
	struct lth_dim_proof *proofs; /* the last that fell into each slot; NULL until one is wanted */
	bool overflowed;
};

/* A sum under construction, on the stack. `failed` is sticky. */
struct lth_dim_sum {
	uint32_t count;
	bool failed;
	struct lth_dim_term terms[LTH_DIM_MAX_TERMS];
};

static inline void lth_dim_sum_clear(struct lth_dim_sum *sum) /* the terms need no writing: a sum is 2 KiB */
{
	sum->count = 0;
	sum->failed = false;
}

/* dim.c: sums */
void lth_dim_sum_add_term(struct lth_dims *dims, struct lth_dim_sum *sum, int64_t weight, uint32_t product);
void lth_dim_sum_add(struct lth_dims *dims, struct lth_dim_sum *sum, int64_t weight, lth_dim a);
/* sum += weight * a * product */
void lth_dim_sum_add_times(struct lth_dims *dims, struct lth_dim_sum *sum, int64_t weight, lth_dim a, uint32_t product);
void lth_dim_sum_scale(struct lth_dim_sum *sum, int64_t factor);
/* Interns; sets the overflow flag if the sum failed. */
lth_dim lth_dim_from_sum(struct lth_dims *dims, const struct lth_dim_sum *sum);
lth_dim lth_dim_overflow(struct lth_dims *dims);
uint32_t lth_dim_product_of(struct lth_dims *dims, uint32_t a, uint32_t b); /* LTH_NONE: too many factors */
uint32_t lth_dim_product_of_atoms(struct lth_dims *dims, const uint32_t *atoms, uint32_t count);
/* a / b for products; LTH_NONE when b does not divide a. */
uint32_t lth_dim_product_quotient(struct lth_dims *dims, uint32_t a, uint32_t b);
/* How a term shows its symbols: factor k is the symbol divided by out_divisors[k]; the weight loses what cancels. */
void lth_dim_cancel_multiples(const struct lth_dims *dims, struct lth_dim_term *term,
			      int64_t out_divisors[LTH_DIM_MAX_FACTORS]);
lth_dim lth_dim_from_atom(struct lth_dims *dims, const struct lth_dim_atom *atom);
/* dim_order.c: structural order, <0, 0, >0; the greater product stands first in a sum */
int lth_dim_compare_products(const struct lth_dims *dims, uint32_t a, uint32_t b);
int lth_dim_compare_atoms(const struct lth_dims *dims, uint32_t a, uint32_t b);
/* dim_range.c */
void lth_dim_sum_bounds(struct lth_dims *dims, const struct lth_dim_sum *sum, int64_t *out_min, int64_t *out_max);
void lth_dim_atom_bounds(const struct lth_dims *dims, struct lth_dim_atom *atom);
int64_t lth_dim_saturating_mul(int64_t a, int64_t b);
/* dim_divide.c */
int64_t lth_dim_gcd(int64_t a, int64_t b);
/* dim_eval.c: a fresh stamp over all atoms and reals; NULL when the arena is exhausted */
struct lth_dim_memo *lth_dim_memo_begin(const struct lth_dims *dims);
bool lth_dim_memo_eval(const struct lth_dims *dims, struct lth_dim_memo *memo, lth_dim a, const int64_t *symbols,
		       int64_t *out);
/* dim_real.c: one step on doubles */
double lth_real_fold(enum lth_expr_op op, double a, double b);

static inline bool lth_dim_node_const(const struct lth_dims *dims, lth_dim a, int64_t *out)
{
	const struct lth_dim_node *node = &dims->nodes[a];
	if (node->count > 1 || (node->count == 1 && node->terms[0].product != 0))
		return false;
	*out = node->count ? node->terms[0].weight : 0;
	return true;
}

#endif
