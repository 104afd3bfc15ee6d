/* What the files behind loop.h share: appending instructions as they stand. */
#ifndef LTH_LOWER_LOOP_BUILD_H
#define LTH_LOWER_LOOP_BUILD_H

#include "compiler/lower/loop.h"

#include <assert.h>

/* A broken invariant of the caller, unless memory ran out, after which values mean nothing. */
#define LTH_LOOP_REQUIRE(fn, condition) assert((condition) || !lth_arena_ok((fn)->arena))

/* Appends without folding. Entry values (see lth_loop_is_entry) are found again, others are new. 0 when exhausted. */
lth_lv lth_loop_append(struct lth_loop_fn *fn, const struct lth_loop_instr *instr);
/* The same, but an equal instruction without side effects that is in scope is found again. */
lth_lv lth_loop_intern(struct lth_loop_fn *fn, const struct lth_loop_instr *instr);
/* Scalar or vector operator as it stands; operands have equal lanes. */
lth_lv lth_loop_raw_op(struct lth_loop_fn *fn, enum lth_scalar_op op, enum lth_dtype dtype, enum lth_dtype memory,
		       unsigned lanes, lth_lv a, lth_lv b, lth_lv c);
/* A simpler equal of a scalar operation, or LTH_LV_NONE. `result` is the result's type (CAST, BITCAST), `narrow` that of
 * ROUND_TO. loop_fold.c */
lth_lv lth_loop_fold(struct lth_loop_fn *fn, enum lth_scalar_op op, enum lth_dtype result, lth_lv a, lth_lv b, lth_lv c);

enum lth_dtype lth_loop_op_dtype(enum lth_scalar_op op, enum lth_dtype operand);
const char *lth_loop_text(enum lth_loop_op op);

/* lth_loop_verify that names lines of a text (by instruction; NULL: instructions themselves). loop_verify.c */
LTH_MUST_CHECK enum lth_code lth_loop_verify_lines(const struct lth_loop_fn *fn, const uint32_t *lines,
						   struct lth_diag *diag);

/* Values that belong to no block. */
static inline bool lth_loop_is_entry(enum lth_loop_op op)
{
	return op <= LTH_LOOP_END;
}

/* Whether the instruction defines a value. */
bool lth_loop_defines(enum lth_loop_op op);

enum { LTH_LOOP_HEADS = 1024 };

/* An open for or if. */
struct lth_loop_block {
	lth_lv opening;
	enum lth_loop_op op;   /* FOR, IF, ELSE; CONST for a loop of one turn, which is no loop */
	uint32_t count;        /* carried or yielded values */
	const uint32_t *list;  /* ELSE: what the first arm yields */
	uint32_t first;        /* first instruction inside */
};

struct lth_loop_builder {
	uint32_t entry_heads[LTH_LOOP_HEADS], heads[LTH_LOOP_HEADS];
	uint32_t *next; /* by instruction: the next older one of its chain */
	uint32_t cap_next;
	struct lth_loop_block *blocks;
	uint32_t num_blocks, cap_blocks;
};

struct lth_loop_instr lth_loop_instr_of(enum lth_loop_op op, enum lth_dtype dtype, unsigned lanes);
/* Forgets the interned values of a block that ends; `first` is its first instruction. */
void lth_loop_pop_scope(struct lth_loop_fn *fn, uint32_t first);

#endif
