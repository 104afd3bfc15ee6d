/* Greedy orders. Which order packs best depends on the model; the ones in plan_orders.def differ in what they put
 * first, and each costs one run of the decoder, which gives up as soon as it is no better than the best so far.
 * What tells the good ones apart: items that live through the highest load are placed first, while the arena is
 * still smooth there, and small ones are kept for last, to fill the holes. Thread rule: pure functions. */
#include "compiler/memory/plan/internal.h"

#include <stdlib.h>
#include <string.h>

struct ranked {
	int64_t band, tie, size; /* all descending */
	uint32_t index;
};

static int compare_ranked(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	if (x->band != y->band)
		return x->band > y->band ? -1 : 1;
	if (x->tie != y->tie)
		return x->tie > y->tie ? -1 : 1;
	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	return x->index < y->index ? -1 : 1;
}

/* For every item the largest load over its sections: a sparse table of maxima over windows of 2^k sections, built one
 * level at a time, each level answering the items of its length. */
static int64_t *peak_loads(const struct lth_plan_problem *problem)
{
	size_t sections = (size_t)problem->sections;
	int64_t *peaks = malloc((problem->count ? problem->count : 1) * sizeof(*peaks));
	int64_t *window = malloc((sections ? sections : 1) * sizeof(*window));
	if (!peaks || !window) {
		free(peaks);
		free(window);
		return NULL;
	}
	memcpy(window, problem->load, sections * sizeof(*window));
	for (int32_t width = 1; width <= problem->sections; width *= 2) {
		for (uint32_t i = 0; i < problem->count; i++) {
			const struct lth_plan_item *item = &problem->items[i];
			int32_t length = item->upper - item->lower;
			if (length < width || length / 2 >= width)
				continue;
			int64_t left = window[item->lower], right = window[item->upper - width];
			peaks[i] = left > right ? left : right;
		}
		for (int32_t s = 0; s + 2 * width <= problem->sections; s++)
			window[s] = window[s] > window[s + width] ? window[s] : window[s + width];
		if (width > INT32_MAX / 2)
			break;
	}
	free(window);
	return peaks;
}

static int64_t tie_key(const struct lth_plan_item *item, enum lth_plan_tie tie)
{
	int64_t length = item->upper - item->lower, area = 0;
	switch (tie) {
	case LTH_PLAN_TIE_START:
		return -item->lower;
	case LTH_PLAN_TIE_END:
		return item->upper;
	case LTH_PLAN_TIE_DURATION:
		return length;
	case LTH_PLAN_TIE_AREA:
		return __builtin_mul_overflow(length, item->size, &area) ? INT64_MAX : area;
	case LTH_PLAN_TIE_SIZE:
		break;
	}
	return item->size;
}

/* `peaks`: of all items, NULL where all are one band. */
static struct ranked rank(const struct lth_plan_problem *problem, const struct lth_plan_order_spec *spec,
			  const int64_t *peaks, uint32_t index)
{
	const struct lth_plan_item *item = &problem->items[index];
	struct ranked ranked = {.index = index, .size = item->size};
	double bound = (double)problem->live_bound;
	if ((double)item->size * 1e6 < bound * (double)spec->threshold_ppm) {
		ranked.band = -1;
		return ranked;
	}
	if (spec->band_permille == 0)
		ranked.band = peaks[index];
	else if (peaks)
		ranked.band = (int64_t)((double)peaks[index] * 1e3 / (bound * (double)spec->band_permille));
	ranked.tie = tie_key(item, spec->tie);
	return ranked;
}

int64_t lth_plan_greedy(const struct lth_plan_problem *problem, struct lth_plan_decoder *decoder,
			const struct lth_plan_order_spec *spec, int64_t limit, struct lth_plan_budget *budget,
			int64_t *offsets)
{
	size_t count = problem->count ? problem->count : 1;
	struct ranked *ranked = malloc(count * sizeof(*ranked));
	uint32_t *order = malloc(count * sizeof(*order));
	bool banded = spec->band_permille < 1000;
	int64_t *peaks = banded ? peak_loads(problem) : NULL, height = INT64_MAX;
	if (ranked && order && (peaks || !banded)) {
		for (uint32_t i = 0; i < problem->count; i++)
			ranked[i] = rank(problem, spec, peaks, i);
		qsort(ranked, problem->count, sizeof(*ranked), compare_ranked);
		for (uint32_t i = 0; i < problem->count; i++)
			order[i] = ranked[i].index;
		height = lth_plan_decode(decoder, order, spec->fit, limit, budget, offsets);
	}
	free(peaks);
	free(order);
	free(ranked);
	return height;
}

static const struct {
	bool always;
	struct lth_plan_order_spec spec;
} rows[] = {
#define LTH_PLAN_ORDER(always, band, threshold, tie, fit)                                                              \
	{always, {band, threshold, LTH_PLAN_TIE_##tie, LTH_PLAN_FIT_##fit}},
#include "compiler/memory/plan/plan_orders.def"
#undef LTH_PLAN_ORDER
};

/* So near the bound that repairing a large plan gets further than another order. */
static bool is_near(const struct lth_plan_problem *problem, int64_t height)
{
	return problem->count >= LTH_PLAN_REPAIR_FROM && height < INT64_MAX &&
	       height - problem->floor <= problem->floor / 1000;
}

enum lth_code lth_plan_portfolio(const struct lth_plan_problem *problem, struct lth_plan_decoder *decoder,
				 struct lth_plan_budget *budget, int64_t goal, int64_t *height, int64_t *offsets)
{
	int64_t *trial = malloc((problem->count ? problem->count : 1) * sizeof(*trial));
	if (!trial)
		return LTH_OUT_OF_MEMORY;
	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]) && *height > goal; k++) {
		bool goes_on = lth_plan_charge(budget, 1);
		bool aborted = budget->cut_short || budget->is_cancelled;
		if (*height < INT64_MAX && !goes_on && (aborted || !rows[k].always))
			break;
		if (!rows[k].always && is_near(problem, *height))
			continue;
		int64_t reached = lth_plan_greedy(problem, decoder, &rows[k].spec, *height - 1, budget, trial);
		if (reached < *height) {
			*height = reached;
			memcpy(offsets, trial, problem->count * sizeof(*offsets));
		}
	}
	free(trial);
	if (*height < INT64_MAX)
		return LTH_OK;
	return budget->is_cancelled ? LTH_CANCELLED : LTH_OUT_OF_MEMORY;
}
