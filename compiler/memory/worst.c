/* The shape of a box that needs most. The arena is monotone in the sizes of storages, but these need not be monotone in
 * the symbols: a detector that scales images to a given side takes more for oblong ones than for the largest. So boxes
 * are cut in two, the one with the highest bound first; a bound is the need at sizes of which each is at its own upper
 * bound (ranges.c), and what is no higher than the best shape found is dropped. Where all sizes are monotone the top is
 * the answer at once. A symbol without a top does no harm where no size that counts depends on it. Thread rule: reads
 * the program only. */
#include "compiler/memory/memory.h"

#include "runtime/base/checked.h"
#include "runtime/memory/figures.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_BOXES = 2000 };

struct box {
	int64_t *low, *high; /* by symbol; one array */
	int64_t bound;
};

struct search {
	const struct lth_program *program;
	const struct lth_memory_limits *limits;
	struct lth_range *ranges;
	int64_t *sizes, *best; /* scratch; the symbols of the best shape */
	struct box boxes[MAX_BOXES];
	uint32_t count;
	int64_t most; /* need at the best shape */
	bool found;
};

/* What figures take above the limits. */
static int64_t need(const struct lth_memory_limits *limits, const struct lth_memory_figures *figures)
{
	int64_t arena = figures->arena_bytes >= 0 ? figures->arena_bytes : figures->live_bound_bytes;
	int64_t total = INT64_MIN, above = limits->arena_bytes < INT64_MAX ? arena - limits->arena_bytes : INT64_MIN;
	if (limits->total_bytes < INT64_MAX && (!lth_add_i64(arena, figures->io_bytes, &total) ||
						!lth_sub_i64(total, limits->total_bytes, &total)))
		total = INT64_MAX;
	return total > above ? total : above;
}

/* INT64_MAX where some size has no bound. */
static int64_t bound_of(struct search *s, const struct box *box)
{
	const struct lth_program *program = s->program;
	struct lth_memory_figures figures;
	struct lth_diag ignored = {0};
	lth_expr_ranges(program, box->low, box->high, s->ranges);
	for (uint32_t i = 0; i < program->num_storages; i++) {
		const struct lth_range *range = &s->ranges[program->storages[i].size];
		const struct lth_storage *storage = &program->storages[i];
		bool counts = storage->kind == LTH_STORAGE_ARENA || s->limits->total_bytes < INT64_MAX;
		if (!range->known && counts && storage->kind != LTH_STORAGE_POOL)
			return INT64_MAX;
		s->sizes[i] = !range->known ? -1 : range->high > 0 ? range->high : 0;
	}
	if (lth_memory_figures_of_sizes(program, s->sizes, &figures, &ignored) != LTH_OK)
		return INT64_MAX;
	return need(s->limits, &figures);
}

/* Tries the top of a box as the worst shape. */
static enum lth_code try_top(struct search *s, const struct box *box, struct lth_diag *diag)
{
	struct lth_memory_figures figures;
	enum lth_code code = lth_memory_figures(s->program, box->high, &figures, diag);
	int64_t here = code == LTH_OK ? need(s->limits, &figures) : INT64_MIN;
	if (code == LTH_OK && (!s->found || here > s->most)) {
		s->found = true;
		s->most = here;
		memcpy(s->best, box->high, s->program->num_symbols * sizeof(*s->best));
	}
	return code;
}

static bool open_box(struct search *s, const int64_t *low, const int64_t *high)
{
	size_t symbols = s->program->num_symbols;
	struct box *box = &s->boxes[s->count];
	box->low = malloc((2 * symbols + 1) * sizeof(*box->low));
	if (!box->low)
		return false;
	box->high = box->low + symbols;
	memcpy(box->low, low, symbols * sizeof(*low));
	memcpy(box->high, high, symbols * sizeof(*high));
	box->bound = bound_of(s, box);
	s->count++;
	return true;
}

/* The box's longest side for its place, UINT32_MAX when it is one shape. */
static uint32_t side_to_cut(const struct lth_program *program, const struct box *box)
{
	uint32_t side = UINT32_MAX;
	double longest = 0;
	for (uint32_t i = 0; i < program->num_symbols; i++) {
		double length = (double)box->high[i] - (double)box->low[i];
		if (program->symbols[i].source != LTH_SOURCE_INPUT || length <= 0)
			continue;
		length /= (double)box->high[i];
		if (length > longest) {
			longest = length;
			side = i;
		}
	}
	return side;
}

/* Replaces a box by its halves; false when out of memory. */
static bool cut(struct search *s, uint32_t index, uint32_t side)
{
	struct lth_diag ignored = {0};
	struct box box = s->boxes[index];
	int64_t low = box.low[side], high = box.high[side], multiple = s->program->symbols[side].multiple;
	int64_t middle = low + (high - low) / multiple / 2 * multiple;
	s->boxes[index] = s->boxes[--s->count];
	box.low[side] = middle + multiple;
	bool good = open_box(s, box.low, box.high);
	box.low[side] = low;
	box.high[side] = middle;
	(void)try_top(s, &box, &ignored); /* a shape that overflows cannot run */
	good = good && open_box(s, box.low, box.high);
	free(box.low);
	return good;
}

/* The box with the highest bound. */
static uint32_t highest(const struct search *s)
{
	uint32_t highest = 0;
	for (uint32_t i = 1; i < s->count; i++)
		if (s->boxes[i].bound > s->boxes[highest].bound)
			highest = i;
	return highest;
}

/* The bound of all that is still open. With limits, a shape above them ends the search, and so does a proof that there
 * is none. */
static int64_t close_in(struct search *s)
{
	bool has_limits = s->limits->arena_bytes > 0 || s->limits->total_bytes < INT64_MAX;
	for (;;) {
		uint32_t index = highest(s), side = side_to_cut(s->program, &s->boxes[index]);
		int64_t bound = s->boxes[index].bound;
		if (bound <= s->most || (has_limits && (bound <= 0 || s->most > 0)))
			return bound > s->most ? bound : s->most;
		if (s->count == MAX_BOXES)
			return bound;
		if (side == UINT32_MAX)
			s->boxes[index].bound = s->most; /* a single shape, which was tried */
		else if (!cut(s, index, side))
			return INT64_MAX;
	}
}

/* The box's corners, in multiples; false when a symbol has no top: it stays at its hint. */
static bool corners(const struct lth_program *program, int64_t *low, int64_t *high)
{
	bool bounded = lth_symbols_at_top(program, high);
	for (uint32_t i = 0; i < program->num_symbols; i++) {
		const struct lth_symbol *symbol = &program->symbols[i];
		low[i] = lth_ceildiv_i64(symbol->min, symbol->multiple) * symbol->multiple;
		if (symbol->source == LTH_SOURCE_INPUT)
			high[i] = lth_floordiv_i64(high[i], symbol->multiple) * symbol->multiple;
		low[i] = low[i] < high[i] && symbol->max != INT64_MAX ? low[i] : high[i];
	}
	return bounded;
}

enum lth_code lth_memory_worst(const struct lth_program *program, const struct lth_memory_limits *limits,
			       int64_t *out_symbols, int64_t *out_bound, struct lth_diag *diag)
{
	enum lth_code code = LTH_OK;
	struct search *s = calloc(1, sizeof(*s));
	int64_t *low = calloc(2 * (size_t)program->num_symbols + 1, sizeof(*low)), *high = low + program->num_symbols;
	struct lth_range *ranges = calloc(program->num_exprs + 1, sizeof(*ranges));
	int64_t *sizes = calloc(program->num_storages + 1, sizeof(*sizes));
	if (!s || !low || !ranges || !sizes) {
		code = lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "memory", NULL, NULL, "no memory");
		goto done;
	}
	s->program = program;
	s->limits = limits;
	s->ranges = ranges;
	s->sizes = sizes;
	s->best = out_symbols;
	bool bounded = corners(program, low, high);
	bool boxed = open_box(s, low, high) && (bounded || s->boxes[0].bound < INT64_MAX);
	struct lth_diag ignored = {0};
	struct box top = {.low = low, .high = high};
	code = try_top(s, &top, bounded ? diag : &ignored);
	if (code != LTH_OK && !bounded) { /* tops and hints together make no shape */
		lth_symbols_at_hint(program, high);
		boxed = false;
		code = try_top(s, &top, diag);
	}
	if (code == LTH_OK)
		*out_bound = boxed ? close_in(s) : bounded ? INT64_MAX : s->most;
	for (uint32_t i = 0; i < s->count; i++)
		free(s->boxes[i].low);
done:
	free(s);
	free(low);
	free(ranges);
	free(sizes);
	return code;
}
