/* Expansion: a copy of a function in which operators that few machines have are written out in simpler ones, so that all
 * back ends share one text for them. See expand.c. */
#ifndef LTH_LOWER_EXPAND_H
#define LTH_LOWER_EXPAND_H

#include "compiler/lower/loop.h"

enum {
	LTH_EXPAND_MATH = 1,   /* math functions of f32 (vmath.h); those of f64 and lgamma stay */
	LTH_EXPAND_NARROW = 2, /* loads, stores and roundings of bf16, f8* and f4 */
	LTH_EXPAND_F16 = 4,    /* of f16 too */
};

/* The function itself when nothing is to be done; NULL when `arena` is exhausted. The copy lives in `arena`, and `fn` is
 * only read. */
const struct lth_loop_fn *lth_loop_expand(const struct lth_loop_fn *fn, unsigned what, struct lth_arena *arena);

#endif
