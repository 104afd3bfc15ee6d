/* Addresses in use, as extents in the order of their offsets: no two overlap or touch, for those that would are one.
 * What asks for room passes by chunks of extents that have no gap as large. Thread rule: one thread a set. */
#ifndef LTH_MEMORY_PLAN_EXTENTS_H
#define LTH_MEMORY_PLAN_EXTENTS_H

#include "compiler/memory/plan/internal.h"

struct lth_plan_extents_chunk;

/* All zero is empty. Chunks stay with the set when it is cleared. */
struct lth_plan_extents {
	struct lth_plan_extents_chunk **chunks;
	int64_t *ends; /* by chunk: where its last extent ends */
	int64_t *gaps; /* by chunk: the largest gap in front of any of its extents */
	uint32_t count, num_chunks, capacity; /* chunks in use, made, and room for them */
};

void lth_plan_extents_clear(struct lth_plan_extents *extents);
/* [offset, top) is in use too. False when out of memory. */
LTH_MUST_CHECK bool lth_plan_extents_add(struct lth_plan_extents *extents, struct lth_arena *arena, int64_t offset,
					 int64_t top);

/* A walk from low to high; it goes on where it stopped. All zero is its start. */
struct lth_plan_extents_cursor {
	uint32_t chunk, entry;
	int64_t work; /* chunks and extents looked at */
};

/* The lowest offset of at least `floor` where `size` fits between two extents or above all; what is below an extent that
 * was passed is aligned, as the first floor must be. Floors must not fall during a walk. `*out_ceiling` is where the gap
 * ends, INT64_MAX if nowhere. */
int64_t lth_plan_extents_room(const struct lth_plan_extents *extents, struct lth_plan_extents_cursor *cursor,
			      int64_t size, int64_t alignment, int64_t floor, int64_t *out_ceiling);

#endif
