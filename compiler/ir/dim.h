/* Symbolic dimensions: interned integer expressions in named symbols, each with a range (COMPILER.md, Dimensions).
 *
 * A dimension is kept in normal form: a sum of integer-weighted products of atoms, ordered by id; atoms are symbols and
 * the non-polynomial terms (floordiv, mod, min, max, opaque, int of a real). Equal normal forms are equal ids, so `==`
 * on ids is the equality that is certain. Comparisons answer yes, no or unknown and never guess. Contents of integer
 * tensors (negative ones too) are dimensions as well. Real expressions (lth_real) are the floating-point arithmetic
 * that models do on shapes; lth_dim_from_real turns one back into an integer atom.
 *
 * Arithmetic that would overflow int64 yields LTH_DIM_NONE and sets the context's sticky overflow flag.
 * Thread rule: a context is its compile's own. */
#ifndef LTH_IR_DIM_H
#define LTH_IR_DIM_H

#include "runtime/base/arena.h"
#include "runtime/base/buf.h"
#include "runtime/base/diag.h"
#include "runtime/program/program.h"

typedef uint32_t lth_dim;
typedef uint32_t lth_real;
#define LTH_DIM_NONE UINT32_MAX

enum lth_truth { LTH_NO, LTH_YES, LTH_UNKNOWN };

struct lth_dims; /* the context */

/* Attributes of a symbol. `node` and `bound` are set for symbols bound by data in the course of a run. */
struct lth_dim_symbol {
	const char *name;
	int64_t min, max; /* inclusive; INT64_MAX: unbounded */
	int64_t multiple; /* >= 1 */
	int64_t hint;
	bool settled; /* nobody gave the hint: it is the least that leaves the model its shapes (graph_hints.c) */
	bool from_data;
	const char *node; /* of data symbols: the node that binds it, for messages */
	lth_dim bound;    /* of data symbols: upper bound over the inputs' symbols, or LTH_DIM_NONE */
};

struct lth_dims *lth_dims_create(struct lth_arena *arena); /* NULL when the arena is exhausted */
bool lth_dims_overflowed(const struct lth_dims *dims);

lth_dim lth_dim_const(struct lth_dims *dims, int64_t value);
/* A new symbol; names are unique (a second one with the same name returns the first). The name is copied. */
lth_dim lth_dim_symbol(struct lth_dims *dims, const struct lth_dim_symbol *symbol);
/* Gives a data symbol that has no bound one. What is known of expressions made before stays as wide as it was. */
void lth_dim_tighten(struct lth_dims *dims, lth_dim symbol, lth_dim bound, int64_t max);
/* Moves a symbol's hint to a value of its range. */
void lth_dims_settle_hint(struct lth_dims *dims, uint32_t number, int64_t hint);
/* The symbol with this name or LTH_DIM_NONE. */
lth_dim lth_dim_find_symbol(const struct lth_dims *dims, const char *name);
uint32_t lth_dims_num_symbols(const struct lth_dims *dims);
/* Symbols are numbered from 0 in order of creation; the pointer is valid until the next symbol is made. */
const struct lth_dim_symbol *lth_dims_symbol(const struct lth_dims *dims, uint32_t number);
lth_dim lth_dims_symbol_dim(const struct lth_dims *dims, uint32_t number);

lth_dim lth_dim_add(struct lth_dims *dims, lth_dim a, lth_dim b);
lth_dim lth_dim_sub(struct lth_dims *dims, lth_dim a, lth_dim b);
lth_dim lth_dim_mul(struct lth_dims *dims, lth_dim a, lth_dim b);
lth_dim lth_dim_floordiv(struct lth_dims *dims, lth_dim a, lth_dim b);
lth_dim lth_dim_ceildiv(struct lth_dims *dims, lth_dim a, lth_dim b);
lth_dim lth_dim_truncdiv(struct lth_dims *dims, lth_dim a, lth_dim b); /* C's and ONNX's integer Div */
lth_dim lth_dim_mod(struct lth_dims *dims, lth_dim a, lth_dim b);      /* sign of the divisor */
lth_dim lth_dim_min(struct lth_dims *dims, lth_dim a, lth_dim b);
lth_dim lth_dim_max(struct lth_dims *dims, lth_dim a, lth_dim b);
/* a as one atom that arithmetic does not look into, so that products of long sums are not multiplied out; a itself when
 * it is a short sum. */
lth_dim lth_dim_opaque(struct lth_dims *dims, lth_dim a);
/* a / b when b divides a as normal forms (polynomial division), else LTH_DIM_NONE without the overflow flag. */
lth_dim lth_dim_div_exact(struct lth_dims *dims, lth_dim a, lth_dim b);
lth_dim lth_dim_product(struct lth_dims *dims, const lth_dim *list, uint32_t count); /* 1 for an empty list */

bool lth_dim_is_const(const struct lth_dims *dims, lth_dim a, int64_t *out_value); /* out may be NULL */
/* Interval over the box; INT64_MIN / INT64_MAX where unbounded. */
void lth_dim_range(const struct lth_dims *dims, lth_dim a, int64_t *out_min, int64_t *out_max);
/* Structural order, <0, 0, >0: what lists are sorted by, since ids depend on which was made first. dim_order.c */
int lth_dim_compare(const struct lth_dims *dims, lth_dim a, lth_dim b);
enum lth_truth lth_dim_equal(struct lth_dims *dims, lth_dim a, lth_dim b);
enum lth_truth lth_dim_le(struct lth_dims *dims, lth_dim a, lth_dim b); /* a <= b at every point of the box */
/* Whether lth_dim_le would say yes, for half its work where it does not. */
bool lth_dim_at_most(struct lth_dims *dims, lth_dim a, lth_dim b);
enum lth_truth lth_dim_divides(struct lth_dims *dims, lth_dim divisor, lth_dim a);
/* The largest constant known to divide a (uses multiples of symbols); at least 1. */
int64_t lth_dim_known_factor(const struct lth_dims *dims, lth_dim a);
bool lth_dim_depends_on_data(const struct lth_dims *dims, lth_dim a);
/* Sets marks[number] for each symbol that a depends on. */
void lth_dim_mark_symbols(const struct lth_dims *dims, lth_dim a, bool *marks);
/* a with every data symbol replaced by its bound (monotone or by interval); LTH_DIM_NONE where none exists. */
lth_dim lth_dim_upper_bound(struct lth_dims *dims, lth_dim a);

/* Value at given symbol values (indexed by symbol number); false on overflow or division by zero. */
bool lth_dim_eval(const struct lth_dims *dims, lth_dim a, const int64_t *symbols, int64_t *out_value);
/* Value with every symbol at its hint / at its max (its bound, if from data); false if unbounded or overflowing. */
bool lth_dim_eval_hint(const struct lth_dims *dims, lth_dim a, int64_t *out_value);
/* The same at values fit for cost decisions: the hint where the request gave one, else something middling. */
bool lth_dim_eval_likely(const struct lth_dims *dims, lth_dim a, int64_t *out_value);
bool lth_dim_eval_top(const struct lth_dims *dims, lth_dim a, int64_t *out_value);

/* Shape arithmetic in floating point. `op` is one of the real operators of exprs.def; b is ignored for unary ones. */
lth_real lth_real_const(struct lth_dims *dims, double value);
lth_real lth_real_from_dim(struct lth_dims *dims, lth_dim a);
lth_real lth_real_apply(struct lth_dims *dims, enum lth_expr_op op, lth_real a, lth_real b);
bool lth_real_is_const(const struct lth_dims *dims, lth_real a, double *out_value);
lth_dim lth_dim_from_real(struct lth_dims *dims, lth_real a); /* towards zero */

/* Text: `3*batch*seq + floordiv(h + 31, 32) - 1`. What prints parses: symbols must exist. */
void lth_dim_print(const struct lth_dims *dims, lth_dim a, struct lth_buf *out);
LTH_MUST_CHECK enum lth_code lth_dim_parse(struct lth_dims *dims, const char *text, size_t size, lth_dim *out,
					   struct lth_diag *diag);

/* What dimensions of one context became in one program, so that each is made once. The first three are the caller's to
 * set, the rest starts zeroed; memory is the program's arena's. */
struct lth_dim_emitter {
	const struct lth_dims *dims;
	struct lth_program *program;
	const uint32_t *symbol_map; /* by number: the program's symbol id */
	uint32_t *made[3];          /* ids + 1 of dimensions, atoms and reals */
	uint32_t room[3];
};

/* The same expression in the program; LTH_NONE for LTH_DIM_NONE or when the arena is exhausted. */
uint32_t lth_dim_to_program(struct lth_dim_emitter *emitter, lth_dim a);

#endif
