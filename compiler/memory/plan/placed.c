/* Lists of placed items. See placed.h. */
#include "compiler/memory/plan/placed.h"

#include <string.h>

void lth_plan_list_clear(struct lth_plan_pool *pool, struct lth_plan_list *list)
{
	if (list->count == 0)
		return;
	struct lth_plan_chunk **spare = lth_arena_grow(pool->arena, pool->spare, &pool->spare_capacity,
						       pool->num_spare + list->count, sizeof(*spare));
	if (!spare) {
		pool->failed = true;
		return;
	}
	pool->spare = spare;
	for (uint32_t k = 0; k < list->count; k++)
		spare[pool->num_spare++] = list->slots[k].chunk;
	list->count = 0;
}

/* A fresh slot at position `at` of the list; false when out of memory. */
static bool open_slot(struct lth_plan_pool *pool, struct lth_plan_list *list, uint32_t at)
{
	struct lth_plan_slot *slots =
		lth_arena_grow(pool->arena, list->slots, &list->capacity, list->count + 1, sizeof(*slots));
	struct lth_plan_chunk *chunk =
		pool->num_spare ? pool->spare[--pool->num_spare] : lth_arena_alloc(pool->arena, sizeof(*chunk));
	if (!slots || !chunk) {
		pool->failed = true;
		return false;
	}
	list->slots = slots;
	memmove(&slots[at + 1], &slots[at], (list->count - at) * sizeof(*slots));
	slots[at] = (struct lth_plan_slot){.chunk = chunk, .first_offset = INT64_MAX, .min_lower = INT32_MAX};
	list->count++;
	return true;
}

static void move_entries(struct lth_plan_chunk *to, uint32_t at, const struct lth_plan_chunk *from, uint32_t first,
			 uint32_t count)
{
	memmove(&to->offset[at], &from->offset[first], count * sizeof(to->offset[0]));
	memmove(&to->top[at], &from->top[first], count * sizeof(to->top[0]));
	memmove(&to->lower[at], &from->lower[first], count * sizeof(to->lower[0]));
	memmove(&to->upper[at], &from->upper[first], count * sizeof(to->upper[0]));
	memmove(&to->item[at], &from->item[first], count * sizeof(to->item[0]));
}

/* A slot's bounds hold one more entry. */
static void widen(struct lth_plan_slot *slot, int64_t offset, int64_t top, int32_t lower, int32_t upper)
{
	slot->first_offset = offset < slot->first_offset ? offset : slot->first_offset;
	slot->max_top = top > slot->max_top ? top : slot->max_top;
	slot->min_lower = lower < slot->min_lower ? lower : slot->min_lower;
	slot->max_upper = upper > slot->max_upper ? upper : slot->max_upper;
}

static void summarise(struct lth_plan_list *list, uint32_t k)
{
	struct lth_plan_slot *slot = &list->slots[k];
	const struct lth_plan_chunk *chunk = slot->chunk;
	slot->first_offset = INT64_MAX;
	slot->max_top = 0;
	slot->min_lower = INT32_MAX;
	slot->max_upper = 0;
	for (uint32_t e = 0; e < slot->count; e++)
		widen(slot, chunk->offset[e], chunk->top[e], chunk->lower[e], chunk->upper[e]);
	int64_t before = k > 0 ? list->slots[k - 1].reach : 0;
	slot->reach = slot->max_top > before ? slot->max_top : before;
}

/* The last slot whose first offset is at most `offset`, or 0. */
static uint32_t find_slot(const struct lth_plan_list *list, int64_t offset)
{
	uint32_t low = 0, high = list->count;
	while (low + 1 < high) {
		uint32_t middle = low + (high - low) / 2;
		if (list->slots[middle].first_offset <= offset)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Makes room in slot `at`, cutting it in two when it is full; returns the slot that takes `offset`. */
static uint32_t make_room(struct lth_plan_pool *pool, struct lth_plan_list *list, uint32_t at, int64_t offset)
{
	if (list->count == 0) {
		open_slot(pool, list, 0);
		return 0;
	}
	if (list->slots[at].count < LTH_PLAN_CHUNK_ENTRIES)
		return at;
	if (!open_slot(pool, list, at + 1))
		return at;
	struct lth_plan_slot *low = &list->slots[at], *high = &list->slots[at + 1];
	high->count = LTH_PLAN_CHUNK_ENTRIES / 2;
	low->count -= high->count;
	move_entries(high->chunk, 0, low->chunk, low->count, high->count);
	summarise(list, at);
	summarise(list, at + 1);
	return offset >= high->first_offset ? at + 1 : at;
}

void lth_plan_list_insert(struct lth_plan_pool *pool, struct lth_plan_list *list, uint32_t index,
			  const struct lth_plan_item *item, int64_t offset)
{
	uint32_t at = make_room(pool, list, find_slot(list, offset), offset);
	if (pool->failed)
		return;
	struct lth_plan_slot *slot = &list->slots[at];
	struct lth_plan_chunk *chunk = slot->chunk;
	uint32_t entry = slot->count;
	while (entry > 0 && chunk->offset[entry - 1] > offset)
		entry--;
	move_entries(chunk, entry + 1, chunk, entry, slot->count - entry);
	chunk->offset[entry] = offset;
	chunk->top[entry] = offset + item->size;
	chunk->lower[entry] = item->lower;
	chunk->upper[entry] = item->upper;
	chunk->item[entry] = index;
	slot->count++;
	widen(slot, offset, chunk->top[entry], item->lower, item->upper);
	for (uint32_t k = at; k < list->count && list->slots[k].reach < offset + item->size; k++)
		list->slots[k].reach = offset + item->size;
}

/* The first slot that reaches above `floor`. */
static uint32_t first_above(const struct lth_plan_list *list, int64_t floor)
{
	uint32_t low = 0, high = list->count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (list->slots[middle].reach <= floor)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Moves over slots that have nothing in the way. */
static void pass_by(const struct lth_plan_list *list, struct lth_plan_list_cursor *cursor,
		    const struct lth_plan_item *item, int64_t floor)
{
	if (cursor->slot < list->count && list->slots[cursor->slot].reach <= floor) {
		cursor->slot = first_above(list, floor);
		cursor->entry = 0;
	}
	for (; cursor->slot < list->count; cursor->slot++, cursor->entry = 0, cursor->work++) {
		const struct lth_plan_slot *slot = &list->slots[cursor->slot];
		if (slot->max_top > floor && slot->max_upper > item->lower && slot->min_lower < item->upper)
			break;
	}
}

/* From entry `*entry` of a chunk on, to the first in front of which the item fits at or above the floor; to `count` if
 * there is none. Which entries live with the item is as good as random, so a branch on it would be guessed wrong every
 * other time: the floor is raised without one where it needs no aligning. */
static int64_t scan_chunk(const struct lth_plan_chunk *chunk, uint32_t count, const struct lth_plan_item *item,
			  int64_t floor, uint32_t *entry)
{
	int64_t size = item->size, alignment = item->alignment;
	int32_t lower = item->lower, upper = item->upper;
	uint32_t e = *entry;
	for (; e < count; e++) {
		int64_t top = chunk->top[e];
		bool blocks = (chunk->lower[e] < upper) & (chunk->upper[e] > lower) & (top > floor);
		if (blocks & (chunk->offset[e] - floor >= size))
			break;
		floor = blocks ? top : floor;
		if (alignment != 1 && blocks)
			floor = lth_plan_align(floor, alignment);
	}
	*entry = e;
	return floor;
}

int64_t lth_plan_list_room(const struct lth_plan_list *list, struct lth_plan_list_cursor *cursor,
			   const struct lth_plan_item *item, int64_t floor, bool exact, int64_t *out_ceiling)
{
	for (;;) {
		pass_by(list, cursor, item, floor);
		if (cursor->slot >= list->count)
			break;
		const struct lth_plan_slot *slot = &list->slots[cursor->slot];
		const struct lth_plan_chunk *chunk = slot->chunk;
		if (!exact && cursor->entry == 0 && slot->first_offset - floor >= item->size) {
			*out_ceiling = slot->first_offset;
			return floor;
		}
		cursor->work += slot->count - cursor->entry;
		floor = scan_chunk(chunk, slot->count, item, floor, &cursor->entry);
		if (cursor->entry < slot->count) {
			*out_ceiling = chunk->offset[cursor->entry];
			return floor;
		}
		cursor->slot++;
		cursor->entry = 0;
	}
	*out_ceiling = INT64_MAX;
	return floor;
}

uint32_t lth_plan_list_conflict(const struct lth_plan_list *list, const struct lth_plan_item *item, int64_t offset)
{
	int64_t end = offset + item->size;
	for (uint32_t k = first_above(list, offset); k < list->count && list->slots[k].first_offset < end; k++) {
		const struct lth_plan_chunk *chunk = list->slots[k].chunk;
		for (uint32_t e = 0; e < list->slots[k].count && list->slots[k].max_upper > item->lower; e++)
			if (chunk->top[e] > offset && chunk->offset[e] < end && chunk->lower[e] < item->upper &&
			    chunk->upper[e] > item->lower)
				return chunk->item[e];
	}
	return UINT32_MAX;
}
