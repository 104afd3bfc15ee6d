/* MemoryPlan on a program: offsets for its ARENA storages.
 *
 * A program of fixed sizes gets one orientation with fixed offsets. A symbolic one is planned at a few sample shapes (the
 * hint, corners and middle of the box); of each plan only the order is kept: which storage lies below which among those
 * that live together. MEMORY.md tells why this is safe at every shape. Two storages that touch nowhere in between need
 * no edge of their own, so the edges are the neighbours at each step: their paths order everything else.
 * Thread rule: as the program's. */
#include "compiler/memory/memory.h"

#include "compiler/memory/plan/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SAMPLES = 8 };

struct planner {
	struct lth_program *program;
	const struct lth_memory_options *options;
	struct lth_diag *diag;
	uint32_t *ids;             /* storages in the plan */
	struct lth_buffer *buffers;
	uint32_t count;
	bool fixed;                /* no size depends on a symbol */
	int64_t *values, *symbols;
};

static bool planned(const struct lth_storage *storage)
{
	return storage->kind == LTH_STORAGE_ARENA && storage->last > storage->first;
}

/* Sizes at the symbol values in `symbols`. */
static enum lth_code set_sizes(struct planner *p)
{
	enum lth_code code = lth_program_eval(p->program, p->symbols, NULL, p->values, NULL, p->diag);
	for (uint32_t i = 0; i < p->count && code == LTH_OK; i++) {
		const struct lth_storage *storage = &p->program->storages[p->ids[i]];
		p->buffers[i] = (struct lth_buffer){.lower = storage->first,
						    .upper = storage->last,
						    .size = p->values[storage->size],
						    .alignment = storage->alignment,
						    .fixed_offset = -1};
	}
	return code;
}

/* --- the order of a plan */
struct entry {
	int64_t offset;
	uint32_t index;
};

static int by_offset(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

struct event {
	int64_t step;
	bool begins;
	uint32_t rank; /* position in the order of offsets */
};

static int by_step(const void *a, const void *b)
{
	const struct event *x = a, *y = b;
	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	if (x->begins != y->begins)
		return x->begins ? 1 : -1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

struct edge {
	uint32_t above, below; /* ranks */
};

static int by_above(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;
	if (x->above != y->above)
		return x->above < y->above ? -1 : 1;
	return x->below < y->below ? -1 : x->below > y->below;
}

/* Sweeps over the steps with the live storages in the order of their offsets; records each pair that becomes
 * neighbours. `edges` has room for 3 a storage. */
static uint32_t neighbours(const struct event *events, uint32_t num_events, uint32_t *live, struct edge *edges)
{
	uint32_t num_live = 0, num_edges = 0;
	for (uint32_t e = 0; e < num_events; e++) {
		uint32_t low = 0, high = num_live, rank = events[e].rank;
		while (low < high) {
			uint32_t middle = (low + high) / 2;
			if (live[middle] < rank)
				low = middle + 1;
			else
				high = middle;
		}
		if (events[e].begins) {
			memmove(live + low + 1, live + low, (num_live - low) * sizeof(*live));
			live[low] = rank;
			num_live++;
			if (low > 0)
				edges[num_edges++] = (struct edge){rank, live[low - 1]};
			if (low + 1 < num_live)
				edges[num_edges++] = (struct edge){live[low + 1], rank};
		} else {
			memmove(live + low, live + low + 1, (num_live - low - 1) * sizeof(*live));
			num_live--;
			if (low > 0 && low < num_live)
				edges[num_edges++] = (struct edge){live[low], live[low - 1]};
		}
	}
	qsort(edges, num_edges, sizeof(*edges), by_above);
	uint32_t unique = 0;
	for (uint32_t i = 0; i < num_edges; i++)
		if (i == 0 || by_above(&edges[i], &edges[i - 1]) != 0)
			edges[unique++] = edges[i];
	return unique;
}

static bool build_orientation(struct planner *p, const int64_t *offsets, struct lth_orientation *out)
{
	struct lth_arena *arena = p->program->arena;
	uint32_t n = p->count;
	uint32_t *storages = lth_arena_array(arena, n + 1, sizeof(*storages));
	int64_t *base = lth_arena_array(arena, n + 1, sizeof(*base));
	uint32_t *starts = lth_arena_array(arena, n + 1, sizeof(*starts));
	struct entry *order = calloc(n + 1, sizeof(*order));
	struct event *events = calloc(2 * (size_t)n + 1, sizeof(*events));
	struct edge *edges = calloc(3 * (size_t)n + 1, sizeof(*edges));
	uint32_t *live = calloc(n + 2, sizeof(*live)), *below = NULL, num_edges = 0;
	bool ok = storages && base && starts && order && events && edges && live;
	for (uint32_t i = 0; ok && i < n; i++)
		order[i] = (struct entry){offsets[i], i};
	if (ok)
		qsort(order, n, sizeof(*order), by_offset);
	for (uint32_t rank = 0; ok && rank < n; rank++) {
		const struct lth_buffer *buffer = &p->buffers[order[rank].index];
		storages[rank] = p->ids[order[rank].index];
		base[rank] = p->fixed ? order[rank].offset : 0;
		events[2 * rank] = (struct event){buffer->lower, true, rank};
		events[2 * rank + 1] = (struct event){buffer->upper, false, rank};
	}
	if (ok && !p->fixed) {
		qsort(events, 2 * (size_t)n, sizeof(*events), by_step);
		num_edges = neighbours(events, 2 * n, live, edges);
	}
	if (ok)
		below = lth_arena_array(arena, num_edges + 1, sizeof(*below));
	ok = ok && below;
	for (uint32_t rank = 0, e = 0; ok && rank <= n; rank++) {
		starts[rank] = e;
		for (; rank < n && e < num_edges && edges[e].above == rank; e++)
			below[e] = edges[e].below;
	}
	if (ok)
		*out = (struct lth_orientation){.num_storages = n,
						.num_edges = num_edges,
						.storages = storages,
						.base = base,
						.edges = starts,
						.below = below};
	free(order);
	free(events);
	free(edges);
	free(live);
	return ok;
}

/* --- sample shapes: sample k of a symbol's range */
static void sample_symbols(struct planner *p, unsigned sample)
{
	for (uint32_t i = 0; i < p->program->num_symbols; i++) {
		const struct lth_symbol *s = &p->program->symbols[i];
		int64_t top = s->max == INT64_MAX ? (s->hint > INT64_MAX / 64 ? s->hint : s->hint * 16) : s->max;
		int64_t low = s->min > 0 ? s->min : 1, value = s->hint;
		int64_t middle = low + (top - low) / 2;
		bool odd = i & 1;
		if (sample == 1)
			value = top;
		else if (sample == 2)
			value = low;
		else if (sample == 3)
			value = middle;
		else if (sample == 4)
			value = odd ? top : low;
		else if (sample == 5)
			value = odd ? low : top;
		value = value / s->multiple * s->multiple;
		value = value < s->min ? (s->min + s->multiple - 1) / s->multiple * s->multiple : value;
		p->symbols[i] = value;
	}
}

static enum lth_code plan_sample(struct planner *p, struct lth_memory_report *report)
{
	struct lth_plan_options options = {.strategy = p->options->strategy,
					   .effort = p->options->effort,
					   .seed = p->options->seed,
					   .time_limit_ms = p->options->time_limit_ms};
	struct lth_plan_result result;
	enum lth_code code = lth_plan(p->buffers, p->count, &options, &result, p->diag);
	if (code != LTH_OK)
		return code;
	struct lth_orientation *list = lth_arena_grow(p->program->arena, p->program->orientations,
						      &p->program->cap_orientations, p->program->num_orientations + 1,
						      sizeof(*list));
	if (list && build_orientation(p, result.offsets, &list[p->program->num_orientations])) {
		p->program->orientations = list;
		p->program->num_orientations++;
	} else {
		code = lth_diag_fail(p->diag, LTH_OUT_OF_MEMORY, "MemoryPlan", NULL, NULL, "no memory for the plan");
	}
	report->nodes += result.nodes;
	report->cut_short |= result.cut_short;
	if (!report->certificate)
		report->certificate = lth_arena_strdup(p->program->arena, result.certificate_text);
	lth_plan_result_free(&result);
	return code;
}

/* Arena of orientation k alone, at the shape in `symbols`; -1 on failure. */
static int64_t height_alone(struct planner *p, uint32_t k)
{
	struct lth_program one = *p->program;
	struct lth_memory_figures figures;
	struct lth_diag ignored = {0};
	one.orientations = &p->program->orientations[k];
	one.num_orientations = 1;
	if (lth_memory_figures(&one, p->symbols, &figures, &ignored) != LTH_OK)
		return -1;
	return figures.arena_bytes;
}

/* Keeps the orientations that are the first best at some sample. */
static void drop_never_best(struct planner *p, unsigned samples)
{
	bool best[MAX_SAMPLES] = {false};
	uint32_t n = p->program->num_orientations, kept = 0;
	for (unsigned sample = 0; sample < samples; sample++) {
		int64_t least = -1;
		uint32_t winner = 0;
		sample_symbols(p, sample);
		for (uint32_t k = 0; k < n; k++) {
			int64_t height = height_alone(p, k);
			if (height >= 0 && (least < 0 || height < least)) {
				least = height;
				winner = k;
			}
		}
		best[winner] = true;
	}
	for (uint32_t k = 0; k < n; k++)
		if (best[k])
			p->program->orientations[kept++] = p->program->orientations[k];
	p->program->num_orientations = kept;
}

static enum lth_code plan_all(struct planner *p, struct lth_memory_report *report)
{
	unsigned samples = p->fixed ? 1 : 6;
	p->program->num_orientations = 0;
	for (unsigned sample = 0; sample < samples; sample++) {
		sample_symbols(p, sample);
		struct lth_diag scratch = {0}, *diag = p->diag;
		if (sample > 0) /* a corner may overflow where the hint does not: such a sample is left out */
			p->diag = &scratch;
		enum lth_code code = set_sizes(p);
		if (code == LTH_OK)
			code = plan_sample(p, report);
		p->diag = diag;
		if (code != LTH_OK && sample == 0)
			return code;
	}
	if (!p->fixed)
		drop_never_best(p, samples);
	return LTH_OK;
}

/* The budget holds at the top of the box, or at the hint where the box has no top. */
static enum lth_code check_budget(struct planner *p)
{
	struct lth_memory_figures figures;
	if (p->options->budget_bytes == 0)
		return LTH_OK;
	if (!lth_symbols_at_top(p->program, p->symbols))
		lth_symbols_at_hint(p->program, p->symbols);
	enum lth_code code = lth_memory_figures(p->program, p->symbols, &figures, p->diag);
	if (code != LTH_OK || figures.arena_bytes <= p->options->budget_bytes)
		return code;
	char expected[96];
	snprintf(expected, sizeof(expected), "at most %lld bytes", (long long)p->options->budget_bytes);
	return lth_diag_fail(p->diag, LTH_BUDGET_UNREACHABLE, "memory.budget_bytes", expected,
			     "raise the budget or lower the dims",
			     "an arena of %lld bytes; no plan in this order can take less than %lld",
			     (long long)figures.arena_bytes, (long long)figures.live_bound_bytes);
}

enum lth_code lth_memory_plan(struct lth_program *program, const struct lth_memory_options *options,
			      struct lth_memory_report *out, struct lth_diag *diag)
{
	struct planner p = {.program = program, .options = options, .diag = diag, .fixed = true};
	struct lth_memory_report report = {0};
	enum lth_code code = LTH_OUT_OF_MEMORY;
	p.ids = calloc(program->num_storages + 1, sizeof(*p.ids));
	p.buffers = calloc(program->num_storages + 1, sizeof(*p.buffers));
	p.values = calloc(program->num_exprs + 1, sizeof(*p.values));
	p.symbols = calloc(program->num_symbols + 1, sizeof(*p.symbols));
	if (!p.ids || !p.buffers || !p.values || !p.symbols) {
		lth_diag_fail(diag, code, "MemoryPlan", NULL, NULL, "no memory");
		goto done;
	}
	for (uint32_t i = 0; i < program->num_storages; i++)
		if (planned(&program->storages[i])) {
			p.ids[p.count++] = i;
			p.fixed &= program->exprs[program->storages[i].size].op == LTH_EXPR_CONST;
		}
	code = plan_all(&p, &report);
	if (code == LTH_OK)
		code = check_budget(&p);
	if (code == LTH_OK) {
		program->certificate = report.certificate;
		*out = report;
	}
done:
	free(p.ids);
	free(p.buffers);
	free(p.values);
	free(p.symbols);
	return code;
}
