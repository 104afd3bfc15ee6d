/* The greedy decoder: places items one by one, each at the lowest or in the tightest hole among those placed before
 * that live at the same time. Placed items stand in lists sorted by offset, cut into chunks with a summary each, so that
 * a scan skips what lies elsewhere in time or below its floor, and an insertion moves little. One list holds all items;
 * further lists hold those that live in one stretch of time, for short-lived items to scan alone. The stretches overlap
 * by half, so an item at most half a stretch long lies in one of them whole. Their width is chosen so that all lists
 * together hold O(n log n) entries. Thread rule: one thread a decoder. */
#include "compiler/memory/plan/internal.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_ENTRIES = 64 };

struct chunk {
	int64_t offset[CHUNK_ENTRIES], top[CHUNK_ENTRIES];
	int32_t lower[CHUNK_ENTRIES], upper[CHUNK_ENTRIES];
	uint32_t item[CHUNK_ENTRIES];
};

struct slot {
	int64_t first_offset, max_top;
	int32_t min_lower, max_upper;
	uint32_t count;
	struct chunk *chunk;
};

struct list {
	struct slot *slots;
	uint32_t count, capacity;
};

struct lth_plan_decoder {
	const struct lth_plan_problem *problem;
	struct lth_arena *arena;
	struct list *lists; /* the first holds all; list 1 + k holds sections [k * half, k * half + 2 * half) */
	uint32_t num_lists;
	int32_t half; /* 0: no time lists */
	struct chunk **spare;
	uint32_t num_spare, spare_capacity;
	uint32_t *fixed; /* the fixed items, in order of index */
	uint32_t num_fixed;
	bool failed; /* out of memory */
};

/* Entries that time lists of this half width would hold in all. */
static int64_t entries_at(const struct lth_plan_problem *problem, int32_t half)
{
	int64_t entries = 0;
	for (uint32_t i = 0; i < problem->count; i++)
		entries += (problem->items[i].upper - 1) / half - problem->items[i].lower / half + 2;
	return entries;
}

static int32_t choose_half(const struct lth_plan_problem *problem)
{
	int64_t log = 8;
	while ((int64_t)1 << log < problem->count)
		log++;
	if (problem->count < 4 * CHUNK_ENTRIES)
		return 0;
	int32_t half = 0;
	for (int32_t trial = problem->sections / 4; trial >= 1; trial /= 2) {
		if (entries_at(problem, trial) > problem->count * log)
			break;
		half = trial;
	}
	return half;
}

struct lth_plan_decoder *lth_plan_decoder_create(const struct lth_plan_problem *problem)
{
	struct lth_arena *arena = lth_arena_create(0);
	if (!arena)
		return NULL;
	struct lth_plan_decoder *decoder = lth_arena_alloc(arena, sizeof(*decoder));
	if (decoder) {
		decoder->arena = arena;
		decoder->problem = problem;
		decoder->half = choose_half(problem);
		decoder->num_lists = 1;
		if (decoder->half)
			decoder->num_lists += (uint32_t)(problem->sections / decoder->half) + 1;
		decoder->lists = lth_arena_array(arena, decoder->num_lists, sizeof(*decoder->lists));
		decoder->fixed = lth_arena_array(arena, problem->count, sizeof(*decoder->fixed));
	}
	if (!lth_arena_ok(arena)) {
		lth_arena_destroy(&arena);
		return NULL;
	}
	for (uint32_t i = 0; i < problem->count; i++)
		if (problem->items[i].fixed >= 0)
			decoder->fixed[decoder->num_fixed++] = i;
	return decoder;
}

void lth_plan_decoder_destroy(struct lth_plan_decoder **decoder)
{
	if (!*decoder)
		return;
	struct lth_arena *arena = (*decoder)->arena;
	lth_arena_destroy(&arena);
	*decoder = NULL;
}

static void reset(struct lth_plan_decoder *decoder)
{
	for (uint32_t l = 0; l < decoder->num_lists; l++) {
		struct list *list = &decoder->lists[l];
		if (list->count == 0)
			continue;
		decoder->spare = lth_arena_grow(decoder->arena, decoder->spare, &decoder->spare_capacity,
						decoder->num_spare + list->count, sizeof(struct chunk *));
		if (!decoder->spare) {
			decoder->failed = true;
			return;
		}
		for (uint32_t k = 0; k < list->count; k++)
			decoder->spare[decoder->num_spare++] = list->slots[k].chunk;
		list->count = 0;
	}
}

/* A fresh slot at position `at` of the list, NULL when out of memory. */
static struct slot *open_slot(struct lth_plan_decoder *decoder, struct list *list, uint32_t at)
{
	list->slots = lth_arena_grow(decoder->arena, list->slots, &list->capacity, list->count + 1,
				     sizeof(struct slot));
	struct chunk *chunk = decoder->num_spare ? decoder->spare[--decoder->num_spare]
						 : lth_arena_alloc(decoder->arena, sizeof(*chunk));
	if (!list->slots || !chunk) {
		decoder->failed = true;
		return NULL;
	}
	memmove(&list->slots[at + 1], &list->slots[at], (list->count - at) * sizeof(struct slot));
	list->count++;
	list->slots[at] = (struct slot){.chunk = chunk};
	return &list->slots[at];
}

static void move_entries(struct chunk *to, uint32_t at, const struct chunk *from, uint32_t first, uint32_t count)
{
	memmove(&to->offset[at], &from->offset[first], count * sizeof(to->offset[0]));
	memmove(&to->top[at], &from->top[first], count * sizeof(to->top[0]));
	memmove(&to->lower[at], &from->lower[first], count * sizeof(to->lower[0]));
	memmove(&to->upper[at], &from->upper[first], count * sizeof(to->upper[0]));
	memmove(&to->item[at], &from->item[first], count * sizeof(to->item[0]));
}

static void widen(struct slot *slot, int64_t top, int32_t lower, int32_t upper)
{
	slot->max_top = top > slot->max_top ? top : slot->max_top;
	slot->min_lower = lower < slot->min_lower ? lower : slot->min_lower;
	slot->max_upper = upper > slot->max_upper ? upper : slot->max_upper;
}

static void summarise(struct slot *slot)
{
	slot->first_offset = slot->chunk->offset[0];
	slot->max_top = 0;
	slot->min_lower = INT32_MAX;
	slot->max_upper = 0;
	for (uint32_t e = 0; e < slot->count; e++)
		widen(slot, slot->chunk->top[e], slot->chunk->lower[e], slot->chunk->upper[e]);
}

/* The last slot whose first offset is at most `offset`, or 0. */
static uint32_t find_slot(const struct list *list, int64_t offset)
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

static void insert(struct lth_plan_decoder *decoder, struct list *list, uint32_t index, int64_t offset)
{
	const struct lth_plan_item *item = &decoder->problem->items[index];
	uint32_t at = find_slot(list, offset);
	if (list->count == 0) {
		struct slot *opened = open_slot(decoder, list, 0);
		if (!opened)
			return;
		opened->min_lower = INT32_MAX;
		opened->first_offset = offset;
	}
	if (list->slots[at].count == CHUNK_ENTRIES) {
		struct slot *upper = open_slot(decoder, list, at + 1), *lower = &list->slots[at];
		if (!upper)
			return;
		upper->count = CHUNK_ENTRIES / 2;
		lower->count -= upper->count;
		move_entries(upper->chunk, 0, lower->chunk, lower->count, upper->count);
		summarise(lower);
		summarise(upper);
		if (offset >= upper->first_offset)
			at++;
	}
	struct slot *slot = &list->slots[at];
	struct chunk *chunk = slot->chunk;
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
	slot->first_offset = chunk->offset[0];
	widen(slot, offset + item->size, item->lower, item->upper);
}

static void place(struct lth_plan_decoder *decoder, uint32_t index, int64_t offset)
{
	const struct lth_plan_item *item = &decoder->problem->items[index];
	insert(decoder, &decoder->lists[0], index, offset);
	if (!decoder->half)
		return;
	int32_t first = item->lower / decoder->half - 1, last = (item->upper - 1) / decoder->half;
	for (int32_t k = first < 0 ? 0 : first; k <= last; k++)
		insert(decoder, &decoder->lists[1 + k], index, offset);
}

/* The list that holds everything that lives with the item. */
static const struct list *list_for(const struct lth_plan_decoder *decoder, const struct lth_plan_item *item)
{
	if (!decoder->half)
		return &decoder->lists[0];
	int32_t k = item->lower / decoder->half;
	return item->upper <= (k + 2) * decoder->half ? &decoder->lists[1 + k] : &decoder->lists[0];
}

static bool passes_by(const struct slot *slot, const struct lth_plan_item *item, int64_t floor)
{
	return slot->max_top <= floor || slot->max_upper <= item->lower || slot->min_lower >= item->upper;
}

static int64_t first_fit(const struct list *list, const struct lth_plan_item *item)
{
	int64_t floor = 0;
	for (uint32_t k = 0; k < list->count; k++) {
		const struct slot *slot = &list->slots[k];
		if (slot->first_offset >= floor + item->size)
			return floor;
		if (passes_by(slot, item, floor))
			continue;
		const struct chunk *chunk = slot->chunk;
		for (uint32_t e = 0; e < slot->count; e++) {
			if (chunk->top[e] <= floor || chunk->lower[e] >= item->upper || chunk->upper[e] <= item->lower)
				continue;
			if (chunk->offset[e] >= floor + item->size)
				return floor;
			floor = lth_plan_align(chunk->top[e], item->alignment);
		}
	}
	return floor;
}

static int64_t best_fit(const struct list *list, const struct lth_plan_item *item)
{
	int64_t floor = 0, best = -1, best_spare = INT64_MAX;
	for (uint32_t k = 0; k < list->count && best_spare > 0; k++) {
		const struct slot *slot = &list->slots[k];
		if (passes_by(slot, item, floor))
			continue;
		const struct chunk *chunk = slot->chunk;
		for (uint32_t e = 0; e < slot->count; e++) {
			if (chunk->top[e] <= floor || chunk->lower[e] >= item->upper || chunk->upper[e] <= item->lower)
				continue;
			int64_t spare = chunk->offset[e] - floor - item->size;
			if (spare >= 0 && spare < best_spare) {
				best = floor;
				best_spare = spare;
			}
			floor = lth_plan_align(chunk->top[e], item->alignment);
		}
	}
	return best >= 0 ? best : floor;
}

bool lth_plan_decoder_conflict(struct lth_plan_decoder *decoder, uint32_t *out_first, uint32_t *out_second)
{
	reset(decoder);
	for (uint32_t f = 0; f < decoder->num_fixed && !decoder->failed; f++) {
		const struct lth_plan_item *item = &decoder->problem->items[decoder->fixed[f]];
		const struct list *list = list_for(decoder, item);
		int64_t end = item->fixed + item->size;
		for (uint32_t k = 0; k < list->count && list->slots[k].first_offset < end; k++) {
			const struct slot *slot = &list->slots[k];
			for (uint32_t e = 0; e < slot->count && !passes_by(slot, item, item->fixed); e++) {
				const struct chunk *chunk = slot->chunk;
				if (chunk->top[e] <= item->fixed || chunk->offset[e] >= end ||
				    chunk->lower[e] >= item->upper || chunk->upper[e] <= item->lower)
					continue;
				*out_first = chunk->item[e];
				*out_second = decoder->fixed[f];
				return true;
			}
		}
		place(decoder, decoder->fixed[f], item->fixed);
	}
	return false;
}

int64_t lth_plan_decode(struct lth_plan_decoder *decoder, const uint32_t *order, enum lth_plan_fit fit, int64_t limit,
			int64_t *offsets)
{
	const struct lth_plan_problem *problem = decoder->problem;
	int64_t height = problem->fixed_top;
	reset(decoder);
	for (uint32_t f = 0; f < decoder->num_fixed; f++) {
		offsets[decoder->fixed[f]] = problem->items[decoder->fixed[f]].fixed;
		place(decoder, decoder->fixed[f], offsets[decoder->fixed[f]]);
	}
	for (uint32_t k = 0; k < problem->count && !decoder->failed; k++) {
		uint32_t index = order[k];
		const struct lth_plan_item *item = &problem->items[index];
		if (item->fixed >= 0)
			continue;
		const struct list *list = list_for(decoder, item);
		int64_t offset = fit == LTH_PLAN_FIT_FIRST ? first_fit(list, item) : best_fit(list, item);
		if (offset + item->size > limit)
			return INT64_MAX;
		height = offset + item->size > height ? offset + item->size : height;
		offsets[index] = offset;
		place(decoder, index, offset);
	}
	return decoder->failed ? INT64_MAX : height;
}
