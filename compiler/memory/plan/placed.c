/* Lists of placed items. See placed.h. */
#include "compiler/memory/plan/placed.h"

#include "compiler/memory/plan/windows.h"

#include <string.h>

void lth_plan_list_clear(struct lth_plan_pool *pool, struct lth_plan_list *list)
{
	list->filled = 0;
	if (list->windows)
		lth_plan_windows_clear(list->windows);
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
	slots[at] = (struct lth_plan_slot){.chunk = chunk, .min_lower = INT32_MAX, .number = list->count};
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

/* Where a slot begins and reaches, and its gaps: from its entries and the slot before. */
static void measure(struct lth_plan_list *list, uint32_t k)
{
	struct lth_plan_slot *slot = &list->slots[k];
	const struct lth_plan_chunk *chunk = slot->chunk;
	int64_t reach = k > 0 ? list->slots[k - 1].reach : 0, max_gap = 0;
	for (uint32_t e = 0; e < slot->count; e++) {
		int64_t gap = chunk->offset[e] - reach;
		max_gap = gap > max_gap ? gap : max_gap;
		reach = chunk->top[e] > reach ? chunk->top[e] : reach;
	}
	slot->first_offset = chunk->offset[0];
	slot->max_gap = max_gap;
	slot->reach = reach;
}

/* A slot's bounds hold one more entry. */
static void widen(struct lth_plan_slot *slot, int64_t top, int32_t lower, int32_t upper)
{
	slot->max_top = top > slot->max_top ? top : slot->max_top;
	slot->min_lower = lower < slot->min_lower ? lower : slot->min_lower;
	slot->max_upper = upper > slot->max_upper ? upper : slot->max_upper;
}

/* Recomputes all of a slot's summary. */
static void summarise(struct lth_plan_list *list, uint32_t k)
{
	struct lth_plan_slot *slot = &list->slots[k];
	const struct lth_plan_chunk *chunk = slot->chunk;
	slot->max_top = 0;
	slot->min_lower = INT32_MAX;
	slot->max_upper = 0;
	for (uint32_t e = 0; e < slot->count; e++)
		widen(slot, chunk->top[e], chunk->lower[e], chunk->upper[e]);
	measure(list, k);
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
	low->stamp++;
	if (list->windows)
		lth_plan_windows_split(list->windows, low->number, high->number);
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
	slot->stamp++;
	list->filled += item->size;
	widen(slot, chunk->top[entry], item->lower, item->upper);
	measure(list, at);
	for (uint32_t k = at + 1; k < list->count; k++) {
		int64_t reach = list->slots[k].reach;
		if (k > at + 1 && reach >= offset + item->size)
			break;
		if (k == at + 1)
			measure(list, k);
		else
			list->slots[k].reach = offset + item->size;
	}
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

/* Has the slot no gap for the item in some window? */
static bool is_solid(struct lth_plan_cursor *cursor, const struct lth_plan_slot *slot, int64_t size)
{
	return cursor->windows[0] && (cursor->windows[0]->gap[slot->number] < size ||
				      cursor->windows[1]->gap[slot->number] < size);
}

/* The floor above all that lives with the item in the slots that were passed by. */
static int64_t catch_up(struct lth_plan_cursor *cursor, const struct lth_plan_item *item, int64_t floor)
{
	const struct lth_plan_list *list = cursor->list;
	for (uint32_t k = cursor->slot; k-- > cursor->known && list->slots[k].reach > floor;) {
		const struct lth_plan_slot *slot = &list->slots[k];
		int64_t reach = floor;
		for (uint32_t e = 0; slot->max_top > floor && e < slot->count; e++) {
			bool lives = (slot->chunk->lower[e] < item->upper) & (slot->chunk->upper[e] > item->lower);
			int64_t top = lives ? slot->chunk->top[e] : 0;
			reach = top > reach ? top : reach;
		}
		cursor->work += slot->max_top > floor ? slot->count : 1;
		floor = reach > floor ? lth_plan_align(reach, item->alignment) : floor;
	}
	cursor->known = cursor->slot;
	return floor;
}

/* Moves over slots that have neither a hole nor an entry in the way, and returns the floor that they leave. */
static int64_t pass_by(struct lth_plan_cursor *cursor, const struct lth_plan_item *item, int64_t floor)
{
	const struct lth_plan_list *list = cursor->list;
	for (; cursor->slot < list->count; cursor->slot++, cursor->entry = 0, cursor->work++) {
		const struct lth_plan_slot *slot = &list->slots[cursor->slot];
		if (slot->max_top <= floor || (cursor->entry == 0 && is_solid(cursor, slot, item->size)))
			continue;
		if (cursor->is_column && slot->max_gap < item->size)
			floor = lth_plan_align(slot->max_top, item->alignment);
		else if (cursor->is_column || (slot->max_upper > item->lower && slot->min_lower < item->upper))
			break;
	}
	return floor;
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

int64_t lth_plan_cursor_hole(struct lth_plan_cursor *cursor, const struct lth_plan_item *item, int64_t floor,
			     bool exact, int64_t *ceiling)
{
	const struct lth_plan_list *list = cursor->list;
	if (cursor->slot == 0 && cursor->entry == 0)
		cursor->known = cursor->slot = first_above(list, floor);
	for (;;) {
		floor = pass_by(cursor, item, floor);
		if (cursor->windows[0])
			floor = catch_up(cursor, item, floor);
		if (cursor->slot >= list->count)
			break;
		const struct lth_plan_slot *slot = &list->slots[cursor->slot];
		const struct lth_plan_chunk *chunk = slot->chunk;
		if (!exact && cursor->entry == 0 && slot->first_offset - floor >= item->size) {
			*ceiling = slot->first_offset;
			return floor;
		}
		cursor->work += slot->count - cursor->entry;
		floor = scan_chunk(chunk, slot->count, item, floor, &cursor->entry);
		if (cursor->entry < slot->count) {
			*ceiling = chunk->offset[cursor->entry];
			return floor;
		}
		for (int side = 0; side < 2 && cursor->windows[0]; side++)
			lth_plan_window_look(cursor->windows[side], list, cursor->slot);
		cursor->known = ++cursor->slot;
		cursor->entry = 0;
	}
	*ceiling = INT64_MAX;
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
