/* The greedy decoder: places items one by one, each in the lowest hole among those placed before that live at the same
 * time, or in the tightest of the lowest few.
 *
 * Time is cut into stretches. Each has two lists: a column of the placed items that live at its fullest step, and the
 * others that live in it. On the stretches stands a binary tree of spans, each of twice as many stretches; a span has
 * the *shadow* of all that lives in any part of it: their addresses as one set of extents, nearly solid from the bottom
 * to the top where the span is wide. An item asks the stretches that it lives in a part of, two at most, and for what
 * is between them the shadows of a few spans: each pushes it up to the next hole of its own, until all agree. Columns
 * have a shadow too, for the items that live at their step, so a stack of ten thousand items that live at once costs
 * little. Stretches are as many as keep the lists together at some entries an item. Thread rule: one thread a
 * decoder. */
#include "compiler/memory/plan/extents.h"
#include "compiler/memory/plan/placed.h"

#include <stdlib.h>
#include <string.h>

enum {
	MAX_SPAN_LEVELS = 24, /* LTH_PLAN_MAX_BUFFERS is 2^24 */
	MAX_ASKED = 2 * MAX_SPAN_LEVELS + 4,
	ITEMS_A_STRETCH = 48,  /* at least, on average: shorter lists cost more memory than they save time */
	FEW_STRETCHES = 32,    /* where there are more than these, ... */
	STRETCHES_AN_ITEM = 6, /* ... an item lives in at most as many on average */
};

struct stretch {
	struct lth_plan_list column, others;
	struct lth_plan_extents shadow; /* of the column */
	int32_t fullest;                /* section whose live items the column holds; -1: too few items for one */
};

struct lth_plan_decoder {
	const struct lth_plan_problem *problem;
	struct lth_plan_pool pool;
	struct stretch *stretches;
	struct lth_plan_extents *spans; /* their shadows; 1 is the root, 2k and 2k + 1 the halves of k */
	int32_t num_stretches, width;   /* the last stretch may be shorter */
	int32_t first_leaf;             /* the first stretch as a span; 0: one stretch is all, and there are no spans */
	uint32_t *fixed;                /* the fixed items, in order of index */
	uint32_t num_fixed;
	struct lth_plan_list all_fixed; /* while conflicts are looked for */
	int64_t work;                   /* entries looked at, not charged yet */
};

/* Whom an item asks: together they hold all that lives with it. */
struct asked {
	struct {
		const struct lth_plan_extents *shadow; /* or else the list */
		const struct lth_plan_list *list;
		struct lth_plan_extents_cursor in_shadow;
		struct lth_plan_list_cursor in_list;
	} sides[MAX_ASKED];
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
	int32_t width = problem->sections > 0 ? problem->sections : 1;
	for (int32_t trial = width; trial >= 1; trial /= 2) {
		int32_t stretches = problem->sections / trial;
		if (stretches > (int64_t)problem->count / ITEMS_A_STRETCH ||
		    (stretches > FEW_STRETCHES &&
		     entries_at(problem, trial) > (int64_t)problem->count * STRETCHES_AN_ITEM))
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

static void make_stretches(struct lth_plan_decoder *decoder)
{
	const struct lth_plan_problem *problem = decoder->problem;
	struct lth_arena *arena = decoder->pool.arena;
	decoder->width = choose_width(problem);
	decoder->num_stretches = problem->sections > 0 ? (problem->sections - 1) / decoder->width + 1 : 1;
	decoder->stretches = lth_arena_array(arena, (size_t)decoder->num_stretches, sizeof(*decoder->stretches));
	for (int32_t k = 0; decoder->stretches && k < decoder->num_stretches; k++)
		decoder->stretches[k].fullest = problem->count < ITEMS_A_STRETCH
							? -1
							: fullest_section(problem, k * decoder->width, decoder->width);
	if (decoder->num_stretches == 1)
		return;
	for (decoder->first_leaf = 1; decoder->first_leaf < decoder->num_stretches;)
		decoder->first_leaf *= 2;
	decoder->spans = lth_arena_array(arena, 2 * (size_t)decoder->first_leaf, sizeof(*decoder->spans));
}

struct lth_plan_decoder *lth_plan_decoder_create(const struct lth_plan_problem *problem)
{
	struct lth_arena *arena = lth_arena_create(0);
	struct lth_plan_decoder *decoder = arena ? lth_arena_alloc(arena, sizeof(*decoder)) : NULL;
	if (decoder) {
		decoder->pool.arena = arena;
		decoder->problem = problem;
		make_stretches(decoder);
		decoder->fixed = lth_arena_array(arena, problem->count, sizeof(*decoder->fixed));
	}
	if (!decoder || !lth_arena_ok(arena)) {
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
	struct lth_arena *arena = (*decoder)->pool.arena;
	lth_arena_destroy(&arena);
	*decoder = NULL;
}

static void reset(struct lth_plan_decoder *decoder)
{
	for (int32_t k = 0; k < decoder->num_stretches; k++) {
		lth_plan_list_clear(&decoder->pool, &decoder->stretches[k].column);
		lth_plan_list_clear(&decoder->pool, &decoder->stretches[k].others);
		lth_plan_extents_clear(&decoder->stretches[k].shadow);
	}
	for (int32_t span = 1; span < 2 * decoder->first_leaf; span++)
		lth_plan_extents_clear(&decoder->spans[span]);
}

static bool lives_at_fullest(const struct lth_plan_item *item, const struct stretch *stretch)
{
	return item->lower <= stretch->fullest && item->upper > stretch->fullest;
}

static void cast_shadow(struct lth_plan_decoder *decoder, struct lth_plan_extents *shadow, int64_t offset, int64_t size)
{
	if (!lth_plan_extents_add(shadow, decoder->pool.arena, offset, offset + size))
		decoder->pool.failed = true;
}

static void place(struct lth_plan_decoder *decoder, uint32_t index, int64_t offset)
{
	const struct lth_plan_item *item = &decoder->problem->items[index];
	int32_t first = item->lower / decoder->width, last = (item->upper - 1) / decoder->width;
	for (int32_t k = first; k <= last; k++) {
		struct stretch *stretch = &decoder->stretches[k];
		bool in_column = lives_at_fullest(item, stretch);
		lth_plan_list_insert(&decoder->pool, in_column ? &stretch->column : &stretch->others, index, item,
				     offset);
		if (in_column)
			cast_shadow(decoder, &stretch->shadow, offset, item->size);
	}
	if (!decoder->first_leaf)
		return;
	first += decoder->first_leaf;
	last += decoder->first_leaf;
	for (; first > 0; first /= 2, last /= 2)
		for (int32_t span = first; span <= last; span++)
			cast_shadow(decoder, &decoder->spans[span], offset, item->size);
}

static void ask_list(struct asked *asked, const struct lth_plan_list *list)
{
	int k = asked->count++;
	asked->sides[k].shadow = NULL;
	asked->sides[k].list = list;
	asked->sides[k].in_list = (struct lth_plan_list_cursor){0};
}

static void ask_shadow(struct asked *asked, const struct lth_plan_extents *shadow)
{
	int k = asked->count++;
	asked->sides[k].shadow = shadow;
	asked->sides[k].in_shadow = (struct lth_plan_extents_cursor){0};
}

/* All of a column lives with an item that lives at its step too. */
static void ask_stretch(struct asked *asked, const struct stretch *stretch, const struct lth_plan_item *item)
{
	ask_list(asked, &stretch->others);
	if (lives_at_fullest(item, stretch))
		ask_shadow(asked, &stretch->shadow);
	else if (stretch->fullest >= 0)
		ask_list(asked, &stretch->column);
}

/* The fewest spans that are the stretches [first, end), the widest last. */
static void ask_spans(struct asked *asked, const struct lth_plan_decoder *decoder, int32_t first, int32_t end)
{
	first += decoder->first_leaf;
	end += decoder->first_leaf;
	for (; first < end; first /= 2, end /= 2) {
		if (first % 2)
			ask_shadow(asked, &decoder->spans[first++]);
		if (end % 2)
			ask_shadow(asked, &decoder->spans[--end]);
	}
}

static void whom_to_ask(const struct lth_plan_decoder *decoder, const struct lth_plan_item *item, struct asked *asked)
{
	int32_t width = decoder->width, sections = decoder->problem->sections;
	int32_t first = item->lower / width, end = (item->upper - 1) / width + 1;
	asked->count = 0;
	if (!decoder->first_leaf || item->lower % width) {
		ask_stretch(asked, &decoder->stretches[first], item);
		first++;
	}
	if (first < end && item->upper % width && item->upper < sections) {
		end--;
		ask_stretch(asked, &decoder->stretches[end], item);
	}
	ask_spans(asked, decoder, first, end);
}

/* The next hole by what one side knows. */
static int64_t ask_side(struct asked *asked, int k, const struct lth_plan_item *item, int64_t floor, bool exact,
			int64_t *out_ceiling)
{
	if (asked->sides[k].shadow)
		return lth_plan_extents_room(asked->sides[k].shadow, &asked->sides[k].in_shadow, item->size,
					     item->alignment, floor, out_ceiling);
	return lth_plan_list_room(asked->sides[k].list, &asked->sides[k].in_list, item, floor, exact, out_ceiling);
}

/* The lowest hole at or above `floor`, and where it ends; gives up above `limit`. */
static int64_t next_hole(struct asked *asked, const struct lth_plan_item *item, int64_t floor, int64_t limit,
			 bool exact, int64_t *out_ceiling)
{
	int agreed = 0;
	int64_t ceiling = INT64_MAX;
	for (int k = asked->count - 1; agreed < asked->count && floor + item->size <= limit;
	     k = (k > 0 ? k : asked->count) - 1) {
		int64_t own_ceiling = INT64_MAX;
		int64_t hole = ask_side(asked, k, item, floor, exact, &own_ceiling);
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

/* The tightest of the lowest holes. */
static int64_t best_fit(struct asked *asked, const struct lth_plan_item *item, int64_t limit)
{
	int64_t best = -1, best_spare = INT64_MAX, floor = 0, ceiling = 0;
	for (int hole = 0; hole < LTH_PLAN_BEST_FIT_HOLES && best_spare > 0; hole++) {
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
	bool found = false;
	lth_plan_list_clear(&decoder->pool, &decoder->all_fixed);
	for (uint32_t f = 0; f < decoder->num_fixed && !found && !decoder->pool.failed; f++) {
		const struct lth_plan_item *item = &decoder->problem->items[decoder->fixed[f]];
		*out_first = lth_plan_list_conflict(&decoder->all_fixed, item, item->fixed);
		*out_second = decoder->fixed[f];
		found = *out_first != UINT32_MAX;
		lth_plan_list_insert(&decoder->pool, &decoder->all_fixed, decoder->fixed[f], item, item->fixed);
	}
	return found;
}

/* Charges what asking took; false when the decoder must stop. */
static bool pay(struct lth_plan_decoder *decoder, const struct asked *asked, struct lth_plan_budget *budget,
		bool may_give_up)
{
	decoder->work += 1;
	for (int k = 0; k < asked->count; k++)
		decoder->work += asked->sides[k].shadow ? asked->sides[k].in_shadow.work : asked->sides[k].in_list.work;
	if (decoder->work >= LTH_PLAN_ENTRIES_A_NODE) {
		lth_plan_charge(budget, decoder->work / LTH_PLAN_ENTRIES_A_NODE);
		decoder->work %= LTH_PLAN_ENTRIES_A_NODE;
	}
	return !budget->is_cancelled && !(may_give_up && budget->cut_short);
}

int64_t lth_plan_decode(struct lth_plan_decoder *decoder, const uint32_t *order, enum lth_plan_fit fit, int64_t limit,
			struct lth_plan_budget *budget, int64_t *offsets)
{
	const struct lth_plan_problem *problem = decoder->problem;
	decoder->work = 0;
	int64_t height = problem->fixed_top, ceiling = 0;
	struct asked asked;
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
		whom_to_ask(decoder, item, &asked);
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
