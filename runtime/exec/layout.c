/* Laying out the arena at given sizes, by the orientations of the plan (MEMORY.md, orientation plans): one pass over
 * each, then the one with the least arena. */
#include "runtime/base/checked.h"
#include "runtime/exec/signature.h"

bool lth_orientation_place(const struct lth_program *program, const struct lth_orientation *o, const int64_t *values,
			   int64_t *offsets, int64_t *out_arena_bytes)
{
	int64_t height = 0;
	for (uint32_t i = 0; i < o->num_storages; i++) {
		const struct lth_storage *s = &program->storages[o->storages[i]];
		int64_t offset = o->base[i], size = values[s->size], end;
		for (uint32_t e = o->edges[i]; e < o->edges[i + 1]; e++) {
			uint32_t below = o->storages[o->below[e]];
			int64_t below_size = values[program->storages[below].size], top;
			/* An empty storage takes a unit, as it did in the plan. */
			if (!lth_add_i64(offsets[below], below_size > 0 ? below_size : 1, &top))
				return false;
			offset = top > offset ? top : offset;
		}
		if (!lth_round_up_i64(offset, s->alignment, &offset) ||
		    !lth_round_up_i64(size > 0 ? size : 1, s->alignment, &end) || !lth_add_i64(offset, end, &end))
			return false;
		offsets[o->storages[i]] = offset;
		height = end > height ? end : height;
	}
	*out_arena_bytes = height;
	return true;
}

bool lth_arena_layout(const struct lth_program *program, const int64_t *values, int64_t *trial, int64_t *out_offsets,
		      int64_t *out_arena_bytes)
{
	int64_t least = program->num_orientations ? INT64_MAX : 0;
	for (uint32_t k = 0; k < program->num_orientations; k++) {
		const struct lth_orientation *o = &program->orientations[k];
		int64_t bytes;
		if (!lth_orientation_place(program, o, values, trial, &bytes))
			continue; /* this one overflows; another may not */
		if (bytes >= least)
			continue;
		least = bytes;
		for (uint32_t i = 0; i < o->num_storages; i++)
			out_offsets[o->storages[i]] = trial[o->storages[i]];
	}
	*out_arena_bytes = least;
	return least != INT64_MAX;
}
