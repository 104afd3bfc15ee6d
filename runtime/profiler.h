/* What a context counts: runs, and the time of each instruction when asked. Byte counts are the pool's own.
 * Thread rule: as the context. */
#ifndef LTH_PROFILER_H
#define LTH_PROFILER_H

#include "runtime/base/arena.h"

#include <stdbool.h>
#include <stdint.h>

struct lth_profiler {
	uint64_t runs, system_allocations, last_run_allocations, last_run_copies;
	int64_t peak_bytes;
	/* Per instruction; NULL when not asked for. */
	uint64_t *calls, *ns, *bytes;
};

/* Room for times of `instructions`; false when the arena is exhausted. */
bool lth_profiler_init(struct lth_profiler *profiler, bool times, uint32_t instructions, struct lth_arena *arena);
static inline bool lth_profiler_on(const struct lth_profiler *profiler)
{
	return profiler->ns != NULL;
}
/* One call of an instruction that began at `start_ns`. */
void lth_profiler_call(struct lth_profiler *profiler, uint32_t instruction, uint64_t start_ns, uint64_t bytes);
/* A run has ended. `in_use` is the most bytes in use at one time; `allocations` what it asked pool and system for. */
void lth_profiler_run(struct lth_profiler *profiler, int64_t in_use, uint64_t allocations);

#endif
