/* Lowers a plan by searches at chosen heights. A short search at the bound and some quick steps down come first, so that
 * a clock that ends the search early leaves a good plan. Then the bound, with a third of the effort: most plans that can
 * be improved at all can be brought to it. If that gives no answer, steps of a quarter of what is left between the best
 * plan and what is proved unreachable, halved after each search that gives no answer. Thread rule: reentrant. */
#include "compiler/memory/plan/internal.h"

#include <stdlib.h>
#include <string.h>

/* The quick steps: a part of the effort, and at most so many nodes. */
enum { QUICK_PART = 16, QUICK_NODES = 12500 };

struct descent {
	const struct lth_plan_problem *problem;
	struct lth_plan_search *search;
	struct lth_plan_budget *budget;
	int64_t *height, *offsets; /* the best plan */
	int64_t *trial;
	int64_t refuted; /* every height below is proved out of reach */
};

/* One search at `target` with at most `nodes`; takes a plan over if it is found, or what it proves. */
static enum lth_plan_answer attempt(struct descent *descent, int64_t target, int64_t nodes)
{
	const struct lth_plan_problem *problem = descent->problem;
	enum lth_plan_answer answer =
		lth_plan_search_run(descent->search, target, nodes, descent->budget, descent->trial);
	if (answer == LTH_PLAN_NONE)
		descent->refuted = target + 1;
	if (answer != LTH_PLAN_FOUND)
		return answer;
	*descent->height = problem->fixed_top;
	for (uint32_t i = 0; i < problem->count; i++) {
		int64_t top = descent->trial[i] + problem->items[i].size;
		*descent->height = top > *descent->height ? top : *descent->height;
	}
	memcpy(descent->offsets, descent->trial, problem->count * sizeof(*descent->offsets));
	return answer;
}

static int64_t nodes_left(const struct lth_plan_budget *budget)
{
	return budget->cut_short || budget->is_cancelled ? 0 : budget->limit - budget->nodes;
}

/* Until `kept` nodes are left. */
static void step_down(struct descent *descent, int64_t kept)
{
	int64_t step = (*descent->height - descent->refuted) / 4;
	while (nodes_left(descent->budget) > kept && descent->refuted < *descent->height) {
		step = step > 0 ? step : 1;
		int64_t target = *descent->height - step;
		target = target > descent->refuted ? target : descent->refuted;
		int64_t left = nodes_left(descent->budget) - kept, least = 4 * (int64_t)descent->problem->count;
		enum lth_plan_answer answer = attempt(descent, target, left / 3 > least ? left / 3 : left);
		if (answer == LTH_PLAN_UNKNOWN)
			step = step / 2 < *descent->height - target ? step / 2 : (*descent->height - target) / 2;
		else
			step = (*descent->height - descent->refuted) / 4;
	}
}

/* A short search at the bound and some steps down, so that a clock that ends what follows leaves a good plan. The search
 * is one of its own: what it learns on the way down is worth little at the bound. */
static void descend_quickly(struct descent *descent, uint64_t seed, int64_t left)
{
	struct lth_plan_search *own = descent->search;
	int64_t quick = left / QUICK_PART < QUICK_NODES ? left / QUICK_PART : QUICK_NODES;
	descent->search = lth_plan_search_create(descent->problem, seed);
	if (descent->search && attempt(descent, descent->refuted, quick / 4) == LTH_PLAN_UNKNOWN)
		step_down(descent, left - quick);
	lth_plan_search_destroy(&descent->search);
	descent->search = own;
}

int64_t lth_plan_minimise(const struct lth_plan_problem *problem, uint64_t seed, int64_t goal, bool fit_only,
			  struct lth_plan_budget *budget, int64_t *height, int64_t *offsets)
{
	struct descent descent = {
		.problem = problem,
		.search = lth_plan_search_create(problem, seed),
		.budget = budget,
		.height = height,
		.offsets = offsets,
		.trial = malloc((problem->count ? problem->count : 1) * sizeof(*descent.trial)),
		.refuted = problem->floor,
	};
	int64_t left = nodes_left(budget);
	if (descent.search && descent.trial && fit_only) {
		attempt(&descent, goal, left);
	} else if (descent.search && descent.trial) {
		descend_quickly(&descent, seed, left);
		if (*height > descent.refuted && attempt(&descent, descent.refuted, left / 3) != LTH_PLAN_FOUND)
			step_down(&descent, 0);
	}
	lth_plan_search_destroy(&descent.search);
	free(descent.trial);
	return descent.refuted < *height ? descent.refuted : *height;
}
