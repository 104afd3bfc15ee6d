/* The greedy decoder: places items one by one, each at the lowest or in the tightest hole among those placed before
 * that live at the same time.
 *
 * Time is cut into stretches. Each has two lists: a column of the placed items that live at its fullest step, and the
 * others that live in it; one more list holds all. An item in few stretches asks their lists in turn, each pushing it
 * up to the next hole of its own, until all agree. An item in many stretches asks the list of all, by windows that it covers
 * (windows.h); one that covers none, three of the columns as well: the fullest, the first and the last. Columns and windows
 * find the next hole by the largest gaps of chunks, so a stack of ten thousand items that live at once costs little.
 * Stretches are as many as keep the lists together at O(n log n) entries. Thread rule: one thread a decoder. */
#include "compiler/memory/plan/placed.h"
#include "compiler/memory/plan/windows.h"

#include <stdlib.h>
#include <string.h>

enum {
	FEW_STRETCHES = 3,
	MAX_ASKED = 2 * FEW_STRETCHES,
	ITEMS_A_STRETCH = 48, /* at least, on average: shorter lists cost more memory than they save time */
};

struct stretch {
	struct lth_plan_list column, others;
	int32_t fullest; /* section: whose live items the column holds */
};

struct lth_plan_decoder {
	const struct lth_plan_problem *problem;
	struct lth_plan_pool pool;
	struct lth_plan_list all;
	struct lth_plan_windows windows; /* of `all` */
	struct stretch *stretches;
	int32_t num_stretches, width; /* 0: none, there is only `all` */
	uint32_t *fixed;              /* the fixed items, in order of index */
	uint32_t num_fixed;
};

/* The lists that an item asks: together they hold all that lives with it. */
struct asked {
	struct lth_plan_cursor cursors[MAX_ASKED];
	int count;
};

/* Entries that lists of this width would hold. */
static int64_t entries_at(const struct lth_plan_problem *problem, int32_t width)
{
	int64_t entries = 0;
	for (uint32_t i = 0; i < problem->count; i++)
		entries += (problem->items[i].upper - 1) / width - problem->items[i].lower / width + 1;
	return entries;
}

static int32_t choose_width(const struct lth_plan_problem *problem)
{
	int64_t log = 8;
	int32_t width = 0;
	while ((int64_t)1 << log < problem->count)
		log++;
	for (int32_t trial = problem->sections; trial >= 1; trial /= 2) {
		if (problem->sections / trial > (int64_t)problem->count / ITEMS_A_STRETCH ||
		    entries_at(problem, trial) > problem->count * log)
			break;
		width = trial;
	}
	return width;
}

static int32_t fullest_section(const struct lth_plan_problem *problem, int32_t first, int32_t width)
{
	int32_t fullest = first;
	for (int32_t s = first; s < problem->sections && s < first + width; s++)
		if (problem->load[s] > problem->load[fullest])
			fullest = s;
	return fullest;
}

struct lth_plan_decoder *lth_plan_decoder_create(const struct lth_plan_problem *problem)
{
	struct lth_arena *arena = lth_arena_create(0);
	struct lth_plan_decoder *decoder = arena ? lth_arena_alloc(arena, sizeof(*decoder)) : NULL;
	if (decoder) {
		decoder->pool.arena = arena;
		decoder->problem = problem;
		decoder->width = choose_width(problem);
		if (decoder->width)
			decoder->num_stretches = (problem->sections - 1) / decoder->width + 1;
		decoder->stretches =
			lth_arena_array(arena, (size_t)decoder->num_stretches, sizeof(*decoder->stretches));
		decoder->all.windows = &decoder->windows;
		lth_plan_windows_init(&decoder->windows, &decoder->pool, problem->sections,
				      problem->count / (LTH_PLAN_CHUNK_ENTRIES / 2) + 2);
		decoder->fixed = lth_arena_array(arena, problem->count, sizeof(*decoder->fixed));
	}
	if (!decoder || !lth_arena_ok(arena)) {
		lth_arena_destroy(&arena);
		return NULL;
	}
	for (int32_t k = 0; k < decoder->num_stretches; k++)
		decoder->stretches[k].fullest = fullest_section(problem, k * decoder->width, decoder->width);
	for (uint32_t i = 0; i < problem->count; i++)
		if (problem->items[i].fixed >= 0)
			decoder->fixed[decoder->num_fixed++] = i;
	return decoder;
}

void lth_plan_decoder_destroy(struct lth_plan_decoder **decoder)
{
	if (!*decoder)
		return;
	struct lth_arena *arena = (*decoder)->pool.arena;
	lth_arena_destroy(&arena);
	*decoder = NULL;
}

static void reset(struct lth_plan_decoder *decoder)
{
	lth_plan_list_clear(&decoder->pool, &decoder->all);
	for (int32_t k = 0; k < decoder->num_stretches; k++) {
		lth_plan_list_clear(&decoder->pool, &decoder->stretches[k].column);
		lth_plan_list_clear(&decoder->pool, &decoder->stretches[k].others);
	}
}

static bool lives_at_fullest(const struct lth_plan_item *item, const struct stretch *stretch)
{
	return item->lower <= stretch->fullest && item->upper > stretch->fullest;
}

static void place(struct lth_plan_decoder *decoder, uint32_t index, int64_t offset)
{
	const struct lth_plan_item *item = &decoder->problem->items[index];
	lth_plan_list_insert(&decoder->pool, &decoder->all, index, item, offset);
	if (!decoder->width)
		return;
	for (int32_t k = item->lower / decoder->width; k <= (item->upper - 1) / decoder->width; k++) {
		struct stretch *stretch = &decoder->stretches[k];
		struct lth_plan_list *list = lives_at_fullest(item, stretch) ? &stretch->column : &stretch->others;
		lth_plan_list_insert(&decoder->pool, list, index, item, offset);
	}
}

/* All of a column lives with an item that lives at its step too. */
static void ask(struct asked *asked, const struct lth_plan_list *list, bool as_column)
{
	asked->cursors[asked->count++] = (struct lth_plan_cursor){.list = list, .is_column = as_column};
}

static struct asked whom_to_ask(struct lth_plan_decoder *decoder, const struct lth_plan_item *item)
{
	struct asked asked = {.count = 0};
	int32_t first = decoder->width ? item->lower / decoder->width : 0;
	int32_t last = decoder->width ? (item->upper - 1) / decoder->width : INT32_MAX;
	if (last - first < FEW_STRETCHES) {
		for (int32_t k = first; k <= last; k++) {
			const struct stretch *stretch = &decoder->stretches[k];
			ask(&asked, &stretch->column, lives_at_fullest(item, stretch));
			ask(&asked, &stretch->others, false);
		}
		return asked;
	}
	ask(&asked, &decoder->all, false);
	if (lth_plan_windows_of(&decoder->windows, &decoder->pool, item, asked.cursors[0].windows))
		return asked;
	asked.cursors[0].windows[0] = NULL;
	if (decoder->width) {
		first += !lives_at_fullest(item, &decoder->stretches[first]);
		last -= !lives_at_fullest(item, &decoder->stretches[last]);
		int32_t fullest = first;
		for (int32_t k = first; k <= last; k++)
			if (decoder->stretches[k].column.filled > decoder->stretches[fullest].column.filled)
				fullest = k;
		ask(&asked, &decoder->stretches[fullest].column, true);
		ask(&asked, &decoder->stretches[first].column, true);
		ask(&asked, &decoder->stretches[last].column, true);
	}
	return asked;
}

/* The lowest hole at or above `floor`, and where it ends; gives up above `limit`. */
static int64_t next_hole(struct asked *asked, const struct lth_plan_item *item, int64_t floor, int64_t limit,
			 bool exact, int64_t *out_ceiling)
{
	int agreed = 0;
	int64_t ceiling = INT64_MAX;
	for (int k = 0; agreed < asked->count && floor + item->size <= limit; k = (k + 1) % asked->count) {
		int64_t own_ceiling = INT64_MAX;
		int64_t hole = lth_plan_cursor_hole(&asked->cursors[k], item, floor, exact, &own_ceiling);
		if (hole > floor) {
			floor = hole;
			agreed = 0;
			ceiling = INT64_MAX;
		}
		agreed++;
		ceiling = own_ceiling < ceiling ? own_ceiling : ceiling;
	}
	*out_ceiling = ceiling;
	return floor;
}

static int64_t best_fit(struct asked *asked, const struct lth_plan_item *item, int64_t limit)
{
	int64_t best = -1, best_spare = INT64_MAX, floor = 0, ceiling = 0;
	while (best_spare > 0) {
		floor = next_hole(asked, item, floor, limit, true, &ceiling);
		if (ceiling == INT64_MAX || floor + item->size > limit)
			break;
		int64_t spare = ceiling - floor - item->size;
		if (spare < best_spare) {
			best = floor;
			best_spare = spare;
		}
		floor = lth_plan_align(ceiling, item->alignment);
	}
	return best >= 0 ? best : floor;
}

bool lth_plan_decoder_conflict(struct lth_plan_decoder *decoder, uint32_t *out_first, uint32_t *out_second)
{
	reset(decoder);
	for (uint32_t f = 0; f < decoder->num_fixed && !decoder->pool.failed; f++) {
		const struct lth_plan_item *item = &decoder->problem->items[decoder->fixed[f]];
		uint32_t other = lth_plan_list_conflict(&decoder->all, item, item->fixed);
		if (other != UINT32_MAX) {
			*out_first = other;
			*out_second = decoder->fixed[f];
			return true;
		}
		place(decoder, decoder->fixed[f], item->fixed);
	}
	return false;
}

/* Charges what asking took; false when the decoder must stop. */
static bool pay(struct lth_plan_decoder *decoder, const struct asked *asked, struct lth_plan_budget *budget,
		bool may_give_up)
{
	decoder->pool.work += 1;
	for (int k = 0; k < asked->count; k++)
		decoder->pool.work += asked->cursors[k].work;
	if (decoder->pool.work >= LTH_PLAN_ENTRIES_A_NODE) {
		lth_plan_charge(budget, decoder->pool.work / LTH_PLAN_ENTRIES_A_NODE);
		decoder->pool.work %= LTH_PLAN_ENTRIES_A_NODE;
	}
	return !budget->is_cancelled && !(may_give_up && budget->cut_short);
}

int64_t lth_plan_decode(struct lth_plan_decoder *decoder, const uint32_t *order, enum lth_plan_fit fit, int64_t limit,
			struct lth_plan_budget *budget, int64_t *offsets)
{
	const struct lth_plan_problem *problem = decoder->problem;
	decoder->pool.work = 0;
	int64_t height = problem->fixed_top, ceiling = 0;
	reset(decoder);
	for (uint32_t f = 0; f < decoder->num_fixed; f++) {
		offsets[decoder->fixed[f]] = problem->items[decoder->fixed[f]].fixed;
		place(decoder, decoder->fixed[f], offsets[decoder->fixed[f]]);
	}
	for (uint32_t k = 0; k < problem->count && !decoder->pool.failed; k++) {
		uint32_t index = order[k];
		const struct lth_plan_item *item = &problem->items[index];
		if (item->fixed >= 0)
			continue;
		struct asked asked = whom_to_ask(decoder, item);
		int64_t offset = fit == LTH_PLAN_FIT_FIRST ? next_hole(&asked, item, 0, limit, false, &ceiling)
							   : best_fit(&asked, item, limit);
		if (offset + item->size > limit || !pay(decoder, &asked, budget, limit < INT64_MAX - 1))
			return INT64_MAX;
		height = offset + item->size > height ? offset + item->size : height;
		offsets[index] = offset;
		place(decoder, index, offset);
	}
	return decoder->pool.failed ? INT64_MAX : height;
}
