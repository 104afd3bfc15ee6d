/* What a context counts. See profiler.h. */
#include "runtime/profiler.h"
#include "runtime/base/io.h"

bool lth_profiler_init(struct lth_profiler *profiler, bool times, uint32_t instructions, struct lth_arena *arena)
{
	*profiler = (struct lth_profiler){0};
	if (!times)
		return true;
	profiler->calls = lth_arena_array(arena, instructions, sizeof(uint64_t));
	profiler->bytes = lth_arena_array(arena, instructions, sizeof(uint64_t));
	profiler->ns = lth_arena_array(arena, instructions, sizeof(uint64_t));
	return lth_arena_ok(arena);
}

void lth_profiler_call(struct lth_profiler *profiler, uint32_t instruction, uint64_t start_ns, uint64_t bytes)
{
	profiler->calls[instruction]++;
	profiler->ns[instruction] += lth_now_ns() - start_ns;
	profiler->bytes[instruction] = bytes;
}

void lth_profiler_run(struct lth_profiler *profiler, int64_t in_use, uint64_t allocations)
{
	profiler->runs++;
	profiler->last_run_allocations = allocations;
	if (in_use > profiler->peak_bytes)
		profiler->peak_bytes = in_use;
}
