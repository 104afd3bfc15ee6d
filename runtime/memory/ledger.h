/* The ledger of a program's storages: who wrote each and read it last, and what the peak would be without it. Thread
 * rule: pure functions of a program. */
#ifndef LTH_MEMORY_LEDGER_H
#define LTH_MEMORY_LEDGER_H

#include "runtime/memory/figures.h"

/* By storage; LTH_NONE where nobody did. */
struct lth_storage_facts {
	uint32_t first_write, last_read; /* instructions */
};
void lth_storage_ledger(const struct lth_program *program, struct lth_storage_facts *out);
/* For each storage, what the live bound would be without it; -1 for those that are not alive at the peak. */
LTH_MUST_CHECK enum lth_code lth_memory_bound_without(const struct lth_program *program, const int64_t *symbols,
						      int64_t *out_bounds, struct lth_diag *diag);

#endif
