/* Figures of a program at given symbol values, by symbol id: sizes, sums, the live bound, the plan's arena and offsets. For
 * the compiler and for tools that look at executables; what runs has its own (runtime/exec). Thread rule: pure
 * functions of a program. */
#ifndef LTH_MEMORY_FIGURES_H
#define LTH_MEMORY_FIGURES_H

#include "runtime/program/program.h"

struct lth_memory_figures {
	int64_t naive_bytes, live_bound_bytes, io_bytes;
	int64_t arena_bytes; /* -1 without a plan */
	uint32_t num_storages;
	uint32_t peak_instr; /* at which the live bound is reached */
};
LTH_MUST_CHECK enum lth_code lth_memory_figures(const struct lth_program *program, const int64_t *symbols,
						struct lth_memory_figures *out, struct lth_diag *diag);
/* The same for sizes of all storages, as lth_storage_sizes gives them; they become what storages take. */
LTH_MUST_CHECK enum lth_code lth_memory_figures_of_sizes(const struct lth_program *program, int64_t *sizes,
							 struct lth_memory_figures *out, struct lth_diag *diag);
/* Has it a place in the arena? */
bool lth_storage_planned(const struct lth_storage *storage);
/* Bytes of each storage, as its expression says; -1 where only the run decides. */
LTH_MUST_CHECK enum lth_code lth_storage_sizes(const struct lth_program *program, const int64_t *symbols,
					       int64_t *out_sizes, struct lth_diag *diag);
/* Offsets of the ARENA storages in the best orientation at these symbol values, by storage; -1 for others. */
LTH_MUST_CHECK enum lth_code lth_memory_offsets(const struct lth_program *program, const int64_t *symbols,
						int64_t *out_offsets, struct lth_diag *diag);

#endif
