/* The planner's front: strategies, effort, certificates. exact = greedy orders; if none meets the bound, searches at
 * lower and lower heights; always with a valid plan at hand. Thread rule: reentrant. */
#include "compiler/memory/plan/internal.h"
#include "runtime/base/io.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES_BETWEEN_LOOKS = 64 };

/* One run: the problem, what may be spent, and the plan so far, in units. */
struct run {
	const struct lth_plan_options *options;
	struct lth_plan_problem problem;
	struct lth_plan_decoder *decoder;
	struct lth_plan_budget budget;
	int64_t *offsets, height;
	int64_t proved; /* no plan is lower */
};

bool lth_plan_charge(struct lth_plan_budget *budget, int64_t nodes)
{
	budget->nodes += nodes;
	if (budget->nodes >= budget->next_look) {
		budget->next_look = budget->nodes + NODES_BETWEEN_LOOKS;
		if (budget->deadline_ns && lth_now_ns() >= budget->deadline_ns)
			budget->cut_short = true;
		if (budget->cancelled && budget->cancelled(budget->cancel_context))
			budget->is_cancelled = true;
	}
	return budget->nodes <= budget->limit && !budget->cut_short && !budget->is_cancelled;
}

static enum lth_code no_memory(const struct run *run, struct lth_diag *diag)
{
	return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "memory planner", NULL, NULL, "%u buffers", run->problem.count);
}

static enum lth_code greedy(struct run *run, enum lth_plan_fit fit, struct lth_diag *diag)
{
	const struct lth_plan_order_spec spec = {.band_permille = 1000, .tie = LTH_PLAN_TIE_SIZE, .fit = fit};
	run->height = lth_plan_greedy(&run->problem, run->decoder, &spec, INT64_MAX - 1, &run->budget, run->offsets);
	return run->height < INT64_MAX || run->budget.is_cancelled ? LTH_OK : no_memory(run, diag);
}

static enum lth_code greedy_by_size(struct run *run, struct lth_diag *diag)
{
	return greedy(run, LTH_PLAN_FIT_FIRST, diag);
}

static enum lth_code best_fit(struct run *run, struct lth_diag *diag)
{
	return greedy(run, LTH_PLAN_FIT_BEST, diag);
}

/* Free buffers one after another above the fixed ones. */
static enum lth_code region(struct run *run, struct lth_diag *diag)
{
	(void)diag;
	int64_t top = run->problem.fixed_top;
	for (uint32_t i = 0; i < run->problem.count; i++) {
		const struct lth_plan_item *item = &run->problem.items[i];
		run->offsets[i] = item->fixed >= 0 ? item->fixed : lth_plan_align(top, item->alignment);
		if (item->fixed < 0)
			top = run->offsets[i] + item->size;
	}
	run->height = top;
	return LTH_OK;
}

static enum lth_code exact(struct run *run, struct lth_diag *diag)
{
	const struct lth_plan_problem *problem = &run->problem;
	int64_t goal = problem->floor, capacity = run->options->capacity / problem->unit;
	bool fit_only = run->options->capacity > 0;
	if (fit_only)
		goal = capacity;
	enum lth_code code = lth_plan_portfolio(problem, run->decoder, &run->budget, goal, &run->height, run->offsets);
	if (code != LTH_OK)
		return code == LTH_CANCELLED ? LTH_OK : no_memory(run, diag);
	if (run->height > goal && problem->count >= LTH_PLAN_REPAIR_FROM && run->budget.nodes < run->budget.limit)
		lth_plan_repair(problem, run->options->seed, goal, &run->budget, &run->height, run->offsets);
	if (run->height > goal && run->budget.nodes < run->budget.limit)
		run->proved = lth_plan_minimise(problem, run->options->seed, goal, fit_only, &run->budget,
						&run->height, run->offsets);
	return LTH_OK;
}

static const struct {
	const char *name;
	enum lth_code (*run)(struct run *run, struct lth_diag *diag);
} strategies[LTH_NUM_PLAN] = {
#define LTH_PLAN_STRATEGY(name, text, run, description) [LTH_PLAN_##name] = {text, run},
#include "compiler/memory/plan/plan_strategies.def"
#undef LTH_PLAN_STRATEGY
};

const char *lth_plan_strategy_name(enum lth_plan_strategy strategy)
{
	return strategies[strategy].name;
}

enum lth_plan_strategy lth_plan_strategy_by_name(const char *name)
{
	unsigned k = 0;
	while (k < LTH_NUM_PLAN && strcmp(strategies[k].name, name) != 0)
		k++;
	return (enum lth_plan_strategy)k;
}

static void certify(const struct run *run, struct lth_plan_result *result)
{
	const struct lth_plan_problem *problem = &run->problem;
	char *text = result->certificate_text;
	size_t size = sizeof(result->certificate_text);
	if (run->height == problem->live_bound) {
		result->certificate = LTH_CERTIFICATE_LIVE_BOUND;
		snprintf(text, size, "optimal: arena equals live bound");
	} else if (run->height == problem->fixed_top) {
		result->certificate = LTH_CERTIFICATE_FIXED_TOP;
		snprintf(text, size, "optimal: arena equals the top of a fixed buffer");
	} else if (run->height == problem->aligned_bound) {
		result->certificate = LTH_CERTIFICATE_ALIGNMENT;
		snprintf(text, size, "optimal: arena equals what aligned buffers take");
	} else if (run->height == run->proved) {
		result->certificate = LTH_CERTIFICATE_EXHAUSTED;
		snprintf(text, size, "optimal: search exhausted (%lld nodes)", (long long)run->budget.nodes);
	} else {
		result->certificate = LTH_CERTIFICATE_ANYTIME;
		int length = snprintf(text, size, "anytime: gap %.3f %% after %lld nodes",
				      100.0 * ((double)run->height / (double)problem->live_bound - 1),
				      (long long)run->budget.nodes);
		if (run->proved > problem->live_bound)
			snprintf(text + length, size - (size_t)length, ", %.3f %% above what is proved",
				 100.0 * ((double)run->height / (double)run->proved - 1));
	}
}

static enum lth_code check_capacity(const struct run *run, struct lth_diag *diag)
{
	const struct lth_plan_problem *problem = &run->problem;
	int64_t least = problem->floor * problem->unit, capacity = run->options->capacity;
	char expected[96];
	if (capacity < 0)
		return lth_diag_fail(diag, LTH_INVALID_OPTION, "capacity", "a number of at least 0", NULL, "%lld",
				     (long long)capacity);
	if (capacity == 0 || capacity >= least)
		return LTH_OK;
	snprintf(expected, sizeof(expected), "at least %lld, %s", (long long)least,
		 problem->floor == problem->live_bound  ? "the live bound"
		 : problem->floor == problem->fixed_top ? "the top of a fixed buffer"
							: "what aligned buffers take");
	return lth_diag_fail(diag, LTH_BUDGET_UNREACHABLE, "capacity", expected, NULL, "%lld", (long long)capacity);
}

static void start_budget(const struct lth_plan_options *options, struct lth_plan_budget *budget)
{
	budget->limit = options->effort > 0 ? options->effort : LTH_PLAN_DEFAULT_EFFORT;
	if (options->time_limit_ms > 0)
		budget->deadline_ns = lth_now_ns() + (uint64_t)options->time_limit_ms * 1000000u;
	budget->cancelled = options->cancelled;
	budget->cancel_context = options->cancel_context;
}

static enum lth_code prepare(struct run *run, struct lth_arena *arena, const struct lth_buffer *buffers, size_t count,
			     struct lth_diag *diag)
{
	uint32_t first = 0, second = 0;
	enum lth_code code = lth_plan_problem_build(arena, buffers, count, run->options->names, &run->problem, diag);
	if (code != LTH_OK)
		return code;
	code = check_capacity(run, diag);
	if (code != LTH_OK)
		return code;
	run->decoder = lth_plan_decoder_create(&run->problem);
	if (!run->decoder)
		return no_memory(run, diag);
	if (lth_plan_decoder_conflict(run->decoder, &first, &second))
		return lth_diag_fail(diag, LTH_INVALID_REQUEST, "fixed offsets", "buffers that do not overlap", NULL,
				     "%s at %lld and %s at %lld share a step and a byte",
				     lth_plan_buffer_text(run->options->names, first).text,
				     (long long)buffers[first].fixed_offset,
				     lth_plan_buffer_text(run->options->names, second).text,
				     (long long)buffers[second].fixed_offset);
	run->proved = run->problem.floor;
	start_budget(run->options, &run->budget);
	return LTH_OK;
}

static void finish(const struct run *run, struct lth_plan_result *out_result)
{
	const struct lth_plan_problem *problem = &run->problem;
	struct lth_plan_result result = {.offsets = run->offsets};
	for (uint32_t i = 0; i < problem->count; i++)
		result.offsets[i] *= problem->unit;
	result.height = run->height * problem->unit;
	result.live_bound_bytes = problem->live_bound * problem->unit;
	result.lower_bound_bytes = run->proved * problem->unit;
	result.naive_bytes = problem->naive * problem->unit;
	result.nodes = run->budget.nodes;
	result.cut_short = run->budget.cut_short;
	certify(run, &result);
	*out_result = result;
}

enum lth_code lth_plan(const struct lth_buffer *buffers, size_t count, const struct lth_plan_options *options,
		       struct lth_plan_result *out_result, struct lth_diag *diag)
{
	struct run run = {.options = options, .height = INT64_MAX};
	if ((unsigned)options->strategy >= LTH_NUM_PLAN)
		return lth_diag_fail(diag, LTH_INVALID_OPTION, "strategy", "one of plan_strategies.def", NULL, "number %u",
				     (unsigned)options->strategy);
	struct lth_arena *arena = lth_arena_create(0);
	run.offsets = calloc(count ? count : 1, sizeof(*run.offsets));
	enum lth_code code = arena && run.offsets ? prepare(&run, arena, buffers, count, diag) : no_memory(&run, diag);
	if (code == LTH_OK)
		code = strategies[options->strategy].run(&run, diag);
	if (code == LTH_OK && run.budget.is_cancelled)
		code = lth_diag_fail(diag, LTH_CANCELLED, "memory planner", NULL, NULL, "a cancelled request");
	if (code == LTH_OK)
		finish(&run, out_result);
	else
		free(run.offsets);
	lth_plan_decoder_destroy(&run.decoder);
	lth_arena_destroy(&arena);
	return code;
}

void lth_plan_result_free(struct lth_plan_result *result)
{
	free(result->offsets);
	result->offsets = NULL;
}
