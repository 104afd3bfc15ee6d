/* Orientations for a box of shapes. See plan_box.h. */
#include "compiler/memory/plan_box.h"
#include "runtime/base/checked.h"

#include <stdlib.h>
#include <string.h>

/* Plans beyond the first get a part of its effort: there are several, and the decoder's orders find most of them. */
enum { MAX_ATTEMPTS = 24, LARGE_ATTEMPTS = 6, GREEDY_ATTEMPTS = 3, LARGE = 4096, EFFORT_PART = 8, LEAST_EFFORT = 500 };

/* The greedy strategies are for who wants to wait less: arena over bound that they leave at that. */
static const double GREEDY_ENOUGH = 1.01;

struct chooser {
	const struct lth_box *box;
	const struct lth_plan_options *options;
	struct lth_box_plan *plan;
	struct lth_diag *diag;
	int64_t *bound;	  /* by row: the live bound; 0 where the row cannot be planned */
	int64_t *least;	  /* by row: height of the best orientation so far */
	int64_t *heights; /* of each orientation of the set at each row, and behind them of two candidates */
	int64_t *offsets; /* scratch, one a buffer */
	bool *closed;	  /* by row: has been planned */
};

static void set_row(struct chooser *c, uint32_t row)
{
	for (size_t i = 0; i < c->box->count; i++)
		c->box->buffers[i].size = c->box->sizes[row * c->box->count + i];
}

/* The largest sum alive at one step, in the row that is set. Steps are instruction positions, so a table serves. */
static int64_t live_bound(struct chooser *c, int64_t *change, int64_t num_steps)
{
	int64_t live = 0, most = 0, largest = INT64_MAX / 2 / (int64_t)(c->box->count + 1);
	memset(change, 0, (size_t)(num_steps + 1) * sizeof(*change));
	for (size_t i = 0; i < c->box->count; i++) {
		const struct lth_buffer *b = &c->box->buffers[i];
		int64_t size;
		if (!lth_round_up_i64(b->size > 0 ? b->size : 1, b->alignment, &size) || size > largest)
			return 0;
		change[b->lower] += size;
		change[b->upper] -= size;
	}
	for (int64_t step = 0; step <= num_steps; step++) {
		live += change[step];
		most = live > most ? live : most;
	}
	return most;
}

static bool find_bounds(struct chooser *c)
{
	int64_t steps = 0;
	for (size_t i = 0; i < c->box->count; i++)
		steps = c->box->buffers[i].upper > steps ? c->box->buffers[i].upper : steps;
	int64_t *change = calloc((size_t)steps + 2, sizeof(*change));
	if (!change)
		return false;
	for (uint32_t row = 0; row < c->box->num_rows; row++) {
		set_row(c, row);
		c->bound[row] = live_bound(c, change, steps);
		c->least[row] = INT64_MAX;
	}
	free(change);
	return true;
}

/* Height of one orientation at a row, INT64_MAX on overflow. */
static int64_t height_at(struct chooser *c, const struct lth_orient *orient, uint32_t row)
{
	int64_t height;
	if (!lth_orient_evaluate(orient, c->box->buffers, c->box->sizes + row * c->box->count, c->offsets, &height))
		return INT64_MAX;
	return height;
}

/* Arena over live bound at a row under the set. */
static double ratio(const struct chooser *c, uint32_t row)
{
	return c->bound[row] > 0 ? (double)c->least[row] / (double)c->bound[row] : 1;
}

/* The open row that stands highest over its bound, or UINT32_MAX when none stands higher than what will do. */
static uint32_t worst_row(const struct chooser *c)
{
	uint32_t worst = UINT32_MAX;
	double enough = c->options->strategy == LTH_PLAN_EXACT ? 1 : GREEDY_ENOUGH;
	for (uint32_t row = 0; row < c->box->num_rows; row++)
		if (!c->closed[row] && ratio(c, row) > enough && (worst == UINT32_MAX || ratio(c, row) > ratio(c, worst)))
			worst = row;
	return worst;
}

static int64_t *heights_of(const struct chooser *c, uint32_t orient)
{
	return c->heights + (size_t)orient * c->box->num_rows;
}

/* Evaluates an orientation at all rows into `heights`; what the set would gain by it: the sum of ratios saved. */
static double gain(struct chooser *c, const struct lth_orient *orient, int64_t *heights)
{
	double sum = 0;
	for (uint32_t row = 0; row < c->box->num_rows; row++) {
		heights[row] = height_at(c, orient, row);
		if (c->bound[row] > 0 && heights[row] < c->least[row])
			sum += ((double)c->least[row] - (double)heights[row]) / (double)c->bound[row];
	}
	return sum;
}

static void adopt(struct chooser *c, struct lth_orient *orient, const int64_t *heights)
{
	for (uint32_t row = 0; row < c->box->num_rows; row++)
		c->least[row] = heights[row] < c->least[row] ? heights[row] : c->least[row];
	memcpy(heights_of(c, c->plan->set.count), heights, c->box->num_rows * sizeof(*heights));
	c->plan->set.orients[c->plan->set.count++] = *orient;
	*orient = (struct lth_orient){0};
}

/* Plans a row with one strategy. */
static enum lth_code plan_row(struct chooser *c, enum lth_plan_strategy strategy, uint32_t row, struct lth_orient *out)
{
	struct lth_plan_options options = *c->options;
	struct lth_plan_result result = {0};
	options.strategy = strategy;
	if (row > 0) {
		options.effort = options.effort / EFFORT_PART;
		options.effort = options.effort < LEAST_EFFORT ? LEAST_EFFORT : options.effort;
	}
	set_row(c, row);
	enum lth_code code = lth_plan(c->box->buffers, c->box->count, &options, &result, c->diag);
	if (code != LTH_OK)
		return code;
	code = lth_orient_build(c->box->buffers, result.offsets, c->box->count, out, c->diag);
	c->plan->nodes += result.nodes;
	c->plan->cut_short |= result.cut_short;
	if (row == 0 && !c->plan->hint.offsets) {
		c->plan->hint = result;
		return code;
	}
	lth_plan_result_free(&result);
	return code;
}

/* Plans of one row differ in what they are worth at the others: the wanted strategy and, beside the exact one, the
 * greedy ones are tried, and the one that gains most over all rows is kept. */
static enum lth_code try_row(struct chooser *c, uint32_t row)
{
	static const enum lth_plan_strategy beside[] = {LTH_PLAN_GREEDY_BY_SIZE, LTH_PLAN_BEST_FIT};
	struct lth_orient best = {0};
	int64_t *heights = heights_of(c, LTH_ORIENT_MAX), *best_heights = heights_of(c, LTH_ORIENT_MAX + 1);
	double most = 0;
	size_t others = c->options->strategy == LTH_PLAN_EXACT ? sizeof(beside) / sizeof(beside[0]) : 0;
	enum lth_code code = LTH_OK;
	for (size_t k = 0; k <= others && code == LTH_OK; k++) {
		struct lth_orient one = {0};
		code = plan_row(c, k == 0 ? c->options->strategy : beside[k - 1], row, &one);
		double saved = code == LTH_OK ? gain(c, &one, heights) : 0;
		if (saved > most) {
			struct lth_orient old = best;
			best = one;
			one = old;
			most = saved;
			memcpy(best_heights, heights, c->box->num_rows * sizeof(*heights));
		}
		lth_orient_free(&one);
	}
	if (code == LTH_OK && most > 0)
		adopt(c, &best, best_heights);
	lth_orient_free(&best);
	c->closed[row] = true;
	return code;
}

/* Drops, last first, the orientations without which no row gets worse. */
static void drop_needless(struct chooser *c)
{
	struct lth_orient_set *set = &c->plan->set;
	for (uint32_t k = set->count; k-- > 0 && set->count > 1;) {
		bool needed = false;
		for (uint32_t row = 0; row < c->box->num_rows && !needed; row++) {
			int64_t without = INT64_MAX;
			for (uint32_t j = 0; j < set->count; j++) {
				int64_t height = j == k ? INT64_MAX : heights_of(c, j)[row];
				without = height < without ? height : without;
			}
			needed = without > c->least[row];
		}
		if (needed)
			continue;
		lth_orient_free(&set->orients[k]);
		set->count--;
		memmove(&set->orients[k], &set->orients[k + 1], (set->count - k) * sizeof(set->orients[0]));
		memmove(heights_of(c, k), heights_of(c, k + 1),
			(size_t)(set->count - k) * c->box->num_rows * sizeof(*c->heights));
	}
}

static void summarise(struct chooser *c)
{
	uint32_t rows = 0;
	double sum = 0, worst = 1;
	for (uint32_t row = 0; row < c->box->num_rows; row++) {
		if (c->bound[row] <= 0 || c->least[row] == INT64_MAX)
			continue;
		rows++;
		sum += ratio(c, row);
		worst = ratio(c, row) > worst ? ratio(c, row) : worst;
	}
	c->plan->mean_ratio = rows ? sum / rows : 1;
	c->plan->worst_ratio = worst;
}

/* The first orientation must hold row 0 to its plan, so it is taken without comparison. */
static enum lth_code choose(struct chooser *c)
{
	struct lth_orient first = {0};
	struct lth_diag *diag = c->diag, scratch = {0};
	enum lth_code code = plan_row(c, c->options->strategy, 0, &first);
	if (code != LTH_OK)
		return code;
	(void)gain(c, &first, heights_of(c, LTH_ORIENT_MAX));
	adopt(c, &first, heights_of(c, LTH_ORIENT_MAX));
	c->closed[0] = true;
	c->diag = &scratch; /* a shape that overflows where the hint does not is left out */
	unsigned attempts = c->box->count > LARGE ? LARGE_ATTEMPTS : MAX_ATTEMPTS;
	attempts = c->options->strategy == LTH_PLAN_EXACT ? attempts : GREEDY_ATTEMPTS;
	for (unsigned attempt = 0; attempt < attempts && c->plan->set.count < LTH_ORIENT_MAX; attempt++) {
		uint32_t row = worst_row(c);
		if (row == UINT32_MAX)
			break;
		code = try_row(c, row);
		scratch = (struct lth_diag){0};
		if (code == LTH_OUT_OF_MEMORY || code == LTH_CANCELLED)
			break;
		code = LTH_OK;
	}
	c->diag = diag;
	if (code != LTH_OK)
		return lth_diag_fail(diag, code, "MemoryPlan", NULL, NULL, "planning the box failed");
	drop_needless(c);
	summarise(c);
	return LTH_OK;
}

enum lth_code lth_box_plan(const struct lth_box *box, const struct lth_plan_options *options,
			   struct lth_box_plan *out_plan, struct lth_diag *diag)
{
	struct lth_box_plan plan = {.mean_ratio = 1, .worst_ratio = 1};
	struct chooser c = {.box = box, .options = options, .plan = &plan, .diag = diag};
	enum lth_code code = LTH_OUT_OF_MEMORY;
	c.bound = calloc(box->num_rows + 1, sizeof(*c.bound));
	c.least = calloc(box->num_rows + 1, sizeof(*c.least));
	c.heights = calloc((size_t)box->num_rows * (LTH_ORIENT_MAX + 2) + 1, sizeof(*c.heights));
	c.offsets = calloc(box->count + 1, sizeof(*c.offsets));
	c.closed = calloc(box->num_rows + 1, sizeof(*c.closed));
	if (c.bound && c.least && c.heights && c.offsets && c.closed && find_bounds(&c))
		code = choose(&c);
	else
		lth_diag_fail(diag, code, "MemoryPlan", NULL, NULL, "no memory for %zu storages", box->count);
	if (code == LTH_OK)
		*out_plan = plan;
	else
		lth_box_plan_free(&plan);
	free(c.bound);
	free(c.least);
	free(c.heights);
	free(c.offsets);
	free(c.closed);
	return code;
}

void lth_box_plan_free(struct lth_box_plan *plan)
{
	lth_orient_set_free(&plan->set);
	lth_plan_result_free(&plan->hint);
}
