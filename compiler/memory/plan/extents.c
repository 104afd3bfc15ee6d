/* Addresses in use. See extents.h. */
#include "compiler/memory/plan/extents.h"

#include <string.h>

enum { CHUNK_EXTENTS = 64 };

struct lth_plan_extents_chunk {
	uint32_t count;
	int64_t offset[CHUNK_EXTENTS], top[CHUNK_EXTENTS];
};

void lth_plan_extents_clear(struct lth_plan_extents *extents)
{
	extents->count = 0;
}

/* An empty chunk at position `at`; false when out of memory. */
static bool open_chunk(struct lth_plan_extents *extents, struct lth_arena *arena, uint32_t at)
{
	if (extents->count == extents->num_chunks) {
		uint32_t ends_capacity = extents->capacity, gaps_capacity = extents->capacity;
		int64_t *ends =
			lth_arena_grow(arena, extents->ends, &ends_capacity, extents->count + 1, sizeof(*ends));
		int64_t *gaps =
			lth_arena_grow(arena, extents->gaps, &gaps_capacity, extents->count + 1, sizeof(*gaps));
		struct lth_plan_extents_chunk **chunks = lth_arena_grow(arena, extents->chunks, &extents->capacity,
									extents->count + 1, sizeof(*chunks));
		struct lth_plan_extents_chunk *chunk = lth_arena_alloc(arena, sizeof(*chunk));
		if (!ends || !gaps || !chunks || !chunk)
			return false;
		chunks[extents->num_chunks++] = chunk;
		extents->ends = ends;
		extents->gaps = gaps;
		extents->chunks = chunks;
	}
	struct lth_plan_extents_chunk *chunk = extents->chunks[extents->count];
	uint32_t behind = extents->count - at;
	memmove(&extents->chunks[at + 1], &extents->chunks[at], behind * sizeof(*extents->chunks));
	memmove(&extents->ends[at + 1], &extents->ends[at], behind * sizeof(*extents->ends));
	memmove(&extents->gaps[at + 1], &extents->gaps[at], behind * sizeof(*extents->gaps));
	extents->chunks[at] = chunk;
	extents->count++;
	chunk->count = 0;
	return true;
}

static void close_chunk(struct lth_plan_extents *extents, uint32_t at)
{
	struct lth_plan_extents_chunk *chunk = extents->chunks[at];
	uint32_t behind = --extents->count - at;
	memmove(&extents->chunks[at], &extents->chunks[at + 1], behind * sizeof(*extents->chunks));
	memmove(&extents->ends[at], &extents->ends[at + 1], behind * sizeof(*extents->ends));
	memmove(&extents->gaps[at], &extents->gaps[at + 1], behind * sizeof(*extents->gaps));
	extents->chunks[extents->count] = chunk;
}

static void move_extents(struct lth_plan_extents_chunk *to, uint32_t at, const struct lth_plan_extents_chunk *from,
			 uint32_t first, uint32_t count)
{
	memmove(&to->offset[at], &from->offset[first], count * sizeof(to->offset[0]));
	memmove(&to->top[at], &from->top[first], count * sizeof(to->top[0]));
}

/* The gap in front of an extent. */
static int64_t gap_before(const struct lth_plan_extents *extents, uint32_t at, uint32_t entry)
{
	const struct lth_plan_extents_chunk *chunk = extents->chunks[at];
	int64_t below = entry > 0 ? chunk->top[entry - 1] : at > 0 ? extents->ends[at - 1] : 0;
	return chunk->offset[entry] - below;
}

/* Finds the end of chunk `at` and its largest gap anew. */
static void measure(struct lth_plan_extents *extents, uint32_t at)
{
	const struct lth_plan_extents_chunk *chunk = extents->chunks[at];
	int64_t gap = gap_before(extents, at, 0);
	for (uint32_t e = 1; e < chunk->count; e++) {
		int64_t next = chunk->offset[e] - chunk->top[e - 1];
		gap = next > gap ? next : gap;
	}
	extents->gaps[at] = gap;
	extents->ends[at] = chunk->top[chunk->count - 1];
}

/* How many of the ascending `values` are below `bound`. Which half it is cannot be foretold, so there is no branch. */
static uint32_t count_below(const int64_t *values, uint32_t count, int64_t bound)
{
	uint32_t low = 0;
	while (count > 1) {
		uint32_t half = count / 2;
		low += values[low + half - 1] < bound ? half : 0;
		count -= half;
	}
	return low + (count == 1 && values[low] < bound);
}

/* Makes an extent of its own in front of extent `entry` of chunk `at`, which exists, or behind the last. */
static bool insert(struct lth_plan_extents *extents, struct lth_arena *arena, uint32_t at, uint32_t entry,
		   int64_t offset, int64_t top)
{
	if (extents->count == 0 && !open_chunk(extents, arena, 0))
		return false;
	if (extents->chunks[at]->count == CHUNK_EXTENTS) {
		if (!open_chunk(extents, arena, at + 1))
			return false;
		struct lth_plan_extents_chunk *low = extents->chunks[at], *high = extents->chunks[at + 1];
		/* what is added at the end, and so perhaps in order, leaves full chunks behind */
		uint32_t kept = entry == CHUNK_EXTENTS ? CHUNK_EXTENTS - 1 : CHUNK_EXTENTS / 2;
		move_extents(high, 0, low, kept, CHUNK_EXTENTS - kept);
		high->count = CHUNK_EXTENTS - kept;
		low->count = kept;
		measure(extents, at);
		measure(extents, at + 1);
		at += entry >= kept;
		entry -= entry >= kept ? kept : 0;
	}
	struct lth_plan_extents_chunk *chunk = extents->chunks[at];
	bool is_last = entry == chunk->count;
	bool splits_largest = !is_last && gap_before(extents, at, entry) == extents->gaps[at];
	move_extents(chunk, entry + 1, chunk, entry, chunk->count - entry);
	chunk->offset[entry] = offset;
	chunk->top[entry] = top;
	chunk->count++;
	if (is_last || splits_largest)
		measure(extents, at);
	return true;
}

/* Takes out the extents from `entry` of chunk `at` on that begin at or below `top`; returns where the last of them ends,
 * or `top`. */
static int64_t absorb(struct lth_plan_extents *extents, uint32_t at, uint32_t entry, int64_t top)
{
	for (bool ends_here = false; !ends_here && at < extents->count; entry = 0) {
		struct lth_plan_extents_chunk *chunk = extents->chunks[at];
		uint32_t next = entry;
		while (next < chunk->count && chunk->offset[next] <= top) {
			top = chunk->top[next] > top ? chunk->top[next] : top;
			next++;
		}
		ends_here = next < chunk->count;
		move_extents(chunk, entry, chunk, next, chunk->count - next);
		chunk->count -= next - entry;
		if (chunk->count > 0)
			at++;
		else
			close_chunk(extents, at);
	}
	return top;
}

bool lth_plan_extents_add(struct lth_plan_extents *extents, struct lth_arena *arena, int64_t offset, int64_t top)
{
	uint32_t at = count_below(extents->ends, extents->count, offset);
	if (at == extents->count) {
		at -= at > 0;
		return insert(extents, arena, at, at < extents->count ? extents->chunks[at]->count : 0, offset, top);
	}
	struct lth_plan_extents_chunk *chunk = extents->chunks[at];
	uint32_t entry = count_below(chunk->top, chunk->count, offset);
	if (chunk->offset[entry] > top)
		return insert(extents, arena, at, entry, offset, top);
	bool grows_up = top > chunk->top[entry], grows_down = offset < chunk->offset[entry];
	bool shrinks_largest = grows_up || (grows_down && gap_before(extents, at, entry) == extents->gaps[at]);
	if (grows_down)
		chunk->offset[entry] = offset;
	if (grows_up)
		chunk->top[entry] = absorb(extents, at, entry + 1, top);
	if (shrinks_largest)
		measure(extents, at);
	if (grows_up && entry + 1 == chunk->count && at + 1 < extents->count)
		measure(extents, at + 1);
	return true;
}

int64_t lth_plan_extents_room(const struct lth_plan_extents *extents, struct lth_plan_extents_cursor *cursor,
			      int64_t size, int64_t alignment, int64_t floor, int64_t *out_ceiling)
{
	uint32_t at = cursor->chunk;
	cursor->work++;
	if (at < extents->count && extents->ends[at] <= floor) {
		at += count_below(extents->ends + at, extents->count - at, floor + 1);
		cursor->entry = 0;
	}
	for (; at < extents->count; at++, cursor->entry = 0, cursor->work++) {
		const struct lth_plan_extents_chunk *chunk = extents->chunks[at];
		if (extents->gaps[at] < size) {
			/* the whole chunk, unless the floor is in it */
			floor = extents->ends[at] > floor ? lth_plan_align(extents->ends[at], alignment) : floor;
			continue;
		}
		uint32_t first = cursor->entry;
		first += count_below(chunk->top + first, chunk->count - first, floor + 1);
		uint32_t e = first;
		for (; e < chunk->count && chunk->offset[e] - floor < size; e++)
			floor = lth_plan_align(chunk->top[e] > floor ? chunk->top[e] : floor, alignment);
		cursor->work += e - first;
		if (e < chunk->count) {
			cursor->chunk = at;
			cursor->entry = e;
			*out_ceiling = chunk->offset[e];
			return floor;
		}
	}
	cursor->chunk = at;
	cursor->entry = 0;
	*out_ceiling = INT64_MAX;
	return floor;
}
