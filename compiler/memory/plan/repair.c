/* Repairs a plan that stands too high in a few places: takes a stretch of time around an item that ends above the
 * target, lets go of all items that live only there, keeps the others where they are, and searches for a way to fit
 * the stretch under the target; when there is none, or none is found soon, the stretch grows. What was below the
 * target stays below, so each success leaves fewer items above it. This is what large problems get beyond greedy
 * orders: their peaks are short, and the search is good at a hundred items. Thread rule: reentrant. */
#include "compiler/memory/plan/internal.h"

#include <stdlib.h>
#include <string.h>

enum {
	MAX_FREE = 400,       /* items let go at once */
	MAX_ITEMS = 1600,     /* and with those kept in place */
	FIRST_MARGIN = 2,     /* sections on either side */
	MAX_GROWTHS = 7,      /* doublings of the margin */
	NODES_A_STRETCH = 2000,
	NUM_TARGETS = 4,
};

struct repair {
	const struct lth_plan_problem *problem;
	struct lth_plan_budget *budget;
	uint64_t seed;
	int64_t target;
	int64_t *offsets;
	/* The current stretch: sections [lower, upper) and its items. */
	int32_t lower, upper;
	uint32_t *items;
	struct lth_buffer *buffers;
	uint32_t count;
	int64_t *found;
};

static bool is_above(const struct repair *repair, uint32_t index)
{
	return repair->offsets[index] + repair->problem->items[index].size > repair->target;
}

/* Gathers the items of the stretch; false when it is too large, or an item above the target reaches out of it. */
static bool gather(struct repair *repair)
{
	uint32_t num_free = 0;
	repair->count = 0;
	for (uint32_t i = 0; i < repair->problem->count; i++) {
		const struct lth_plan_item *item = &repair->problem->items[i];
		if (item->lower >= repair->upper || item->upper <= repair->lower)
			continue;
		bool is_free = item->fixed < 0 && item->lower >= repair->lower && item->upper <= repair->upper;
		num_free += is_free;
		if ((!is_free && is_above(repair, i)) || num_free > MAX_FREE || repair->count == MAX_ITEMS)
			return false;
		struct lth_buffer *buffer = &repair->buffers[repair->count];
		repair->items[repair->count++] = i;
		buffer->lower = (item->lower > repair->lower ? item->lower : repair->lower) - repair->lower;
		buffer->upper = (item->upper < repair->upper ? item->upper : repair->upper) - repair->lower;
		buffer->size = item->size;
		buffer->alignment = item->alignment;
		buffer->fixed_offset = is_free ? -1 : repair->offsets[i];
	}
	return true;
}

/* Searches the gathered stretch; takes the offsets over when it fits. */
static bool fit(struct repair *repair)
{
	struct lth_plan_problem part;
	struct lth_diag ignored = {0};
	struct lth_plan_search *search = NULL;
	struct lth_arena *arena = lth_arena_create(0);
	bool fits = false;
	if (arena && lth_plan_problem_build(arena, repair->buffers, repair->count, NULL, &part, &ignored) == LTH_OK)
		search = lth_plan_search_create(&part, repair->seed);
	if (search)
		fits = lth_plan_search_run(search, repair->target / part.unit, NODES_A_STRETCH, repair->budget,
					   repair->found) == LTH_PLAN_FOUND;
	for (uint32_t k = 0; fits && k < repair->count; k++)
		if (repair->buffers[k].fixed_offset < 0)
			repair->offsets[repair->items[k]] = repair->found[k] * part.unit;
	lth_plan_search_destroy(&search);
	lth_arena_destroy(&arena);
	return fits;
}

/* Brings one item, and what is above the target around it, below. */
static bool bring_down(struct repair *repair, uint32_t index)
{
	const struct lth_plan_item *item = &repair->problem->items[index];
	int32_t sections = repair->problem->sections, margin = FIRST_MARGIN, last_lower = -1, last_upper = -1;
	for (int growth = 0; growth <= MAX_GROWTHS; growth++, margin *= 2) {
		repair->lower = item->lower > margin ? item->lower - margin : 0;
		repair->upper = item->upper < sections - margin ? item->upper + margin : sections;
		if (repair->lower == last_lower && repair->upper == last_upper)
			return false;
		last_lower = repair->lower;
		last_upper = repair->upper;
		if (!lth_plan_charge(repair->budget, 1 + repair->problem->count / LTH_PLAN_ENTRIES_A_NODE))
			return false;
		if (gather(repair) && fit(repair))
			return true;
	}
	return false;
}

/* Brings everything below the target; `offsets` is good only if it succeeds. */
static bool reach(struct repair *repair)
{
	for (uint32_t i = 0; i < repair->problem->count; i++)
		if (is_above(repair, i) && !bring_down(repair, i))
			return false;
	return true;
}

static void lower(struct repair *repair, int64_t goal, int64_t *height, int64_t *offsets)
{
	static const int64_t shares[NUM_TARGETS] = {0, 16, 4, 2}; /* of the way from the goal: none, 1/16, 1/4, 1/2 */
	const struct lth_plan_problem *problem = repair->problem;
	for (int k = 0; k < NUM_TARGETS && *height > goal; k++) {
		repair->target = goal + (shares[k] ? (*height - goal) / shares[k] : 0);
		if (repair->target >= *height)
			break;
		memcpy(repair->offsets, offsets, problem->count * sizeof(*offsets));
		if (!reach(repair))
			continue;
		*height = problem->fixed_top;
		for (uint32_t i = 0; i < problem->count; i++) {
			int64_t top = repair->offsets[i] + problem->items[i].size;
			*height = top > *height ? top : *height;
		}
		memcpy(offsets, repair->offsets, problem->count * sizeof(*offsets));
	}
}

void lth_plan_repair(const struct lth_plan_problem *problem, uint64_t seed, int64_t goal,
		     struct lth_plan_budget *budget, int64_t *height, int64_t *offsets)
{
	size_t count = problem->count ? problem->count : 1;
	struct repair repair = {
		.problem = problem,
		.budget = budget,
		.seed = seed,
		.offsets = malloc(count * sizeof(*repair.offsets)),
		.items = malloc(MAX_ITEMS * sizeof(*repair.items)),
		.buffers = malloc(MAX_ITEMS * sizeof(*repair.buffers)),
		.found = malloc(MAX_ITEMS * sizeof(*repair.found)),
	};
	if (repair.offsets && repair.items && repair.buffers && repair.found)
		lower(&repair, goal, height, offsets);
	free(repair.offsets);
	free(repair.items);
	free(repair.buffers);
	free(repair.found);
}
