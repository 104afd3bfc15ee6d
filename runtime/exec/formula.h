/* The arena as a function of the symbols, and its inverse. Thread rule: pure functions of an executable. */
#ifndef LTH_EXEC_FORMULA_H
#define LTH_EXEC_FORMULA_H

#include "runtime/exec/executable.h"

/* Memory at given values of all symbols (those of DATA source are not looked at). */
LTH_MUST_CHECK enum lth_code lth_memory_at(const struct lathe_executable *x, const int64_t *symbols,
					   struct lathe_memory *out_memory, struct lth_diag *diag);
/* The largest value of one symbol, the others fixed, whose arena is at most `bytes`; LTH_BUDGET_UNREACHABLE when there
 * is none. Where sizes grow with the symbol, as a rule they do and it is proved first, a binary search; else every
 * value of the symbol's range is tried, which must not be large. */
LTH_MUST_CHECK enum lth_code lth_memory_fit(const struct lathe_executable *x, const int64_t *symbols, uint32_t symbol,
					    uint64_t bytes, int64_t *out_value, struct lth_diag *diag);

/* Whether no arena storage shrinks as the symbol grows in its range, the others fixed. False when not known. */
bool lth_sizes_grow(const struct lathe_executable *x, const int64_t *symbols, uint32_t symbol);

#endif
