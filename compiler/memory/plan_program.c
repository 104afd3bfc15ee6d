/* MemoryPlan on a program: a place in the arena for its ARENA storages.
 *
 * A program of fixed sizes gets one orientation with fixed offsets. One whose sizes depend on symbols is planned for
 * the box that they span (plan_box.h): of plans at sampled shapes only the order is kept, which storage lies below
 * which. MEMORY.md tells why this is safe at every shape. Thread rule: as the program's. */
#include "compiler/memory/memory.h"

#include "compiler/memory/plan_box.h"

#include <stdlib.h>
#include <string.h>

/* Sampled shapes, and sizes kept of all of them. The greedy strategies are for who wants to wait less: the samples
 * are most of what they take. */
enum { MAX_SAMPLES = 96, GREEDY_SAMPLES = 16, MIN_SAMPLES = 8, MAX_SIZES = 1 << 17 };

struct planner {
	struct lth_program *program;
	const struct lth_memory_options *options;
	struct lth_diag *diag;
	uint32_t *ids; /* storages in the plan */
	struct lth_buffer *buffers;
	uint32_t count;
	bool fixed;	/* no size depends on a symbol */
	int64_t *sizes; /* rows of `count`, one a shape */
	uint32_t num_rows;
	int64_t *symbols, *all_sizes; /* scratch */
};

static enum lth_code no_memory(struct lth_diag *diag)
{
	return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "MemoryPlan", NULL, NULL, "no memory for the plan");
}

static void find_storages(struct planner *p)
{
	const struct lth_program *program = p->program;
	p->fixed = true;
	for (uint32_t i = 0; i < program->num_storages; i++) {
		const struct lth_storage *storage = &program->storages[i];
		if (!lth_storage_planned(storage))
			continue;
		p->buffers[p->count] = (struct lth_buffer){.lower = storage->first,
							   .upper = storage->last,
							   .alignment = storage->alignment,
							   .fixed_offset = -1};
		p->ids[p->count++] = i;
		p->fixed &= program->exprs[storage->size].op == LTH_EXPR_CONST;
	}
}

/* Sizes at the sampled shapes. A corner may overflow where the hint does not: such a shape is left out. */
static enum lth_code sample(struct planner *p)
{
	uint32_t rows = p->options->strategy == LTH_PLAN_EXACT ? MAX_SAMPLES : GREEDY_SAMPLES;
	if ((size_t)rows * p->count > MAX_SIZES)
		rows = MAX_SIZES / p->count > MIN_SAMPLES ? MAX_SIZES / p->count : MIN_SAMPLES;
	uint32_t negative = 0; /* a storage at fault at the hint */
	rows = p->fixed ? 1 : rows;
	p->sizes = calloc((size_t)rows * p->count + 1, sizeof(*p->sizes));
	if (!p->sizes)
		return no_memory(p->diag);
	for (uint32_t number = 0; number < rows; number++) {
		struct lth_diag ignored = {0};
		lth_symbols_sample(p->program, number, p->symbols);
		enum lth_code code =
			lth_storage_sizes(p->program, p->symbols, p->all_sizes, number == 0 ? p->diag : &ignored);
		if (code != LTH_OK && number == 0)
			return code;
		int64_t *row = p->sizes + (size_t)p->num_rows * p->count;
		for (uint32_t i = 0; i < p->count && code == LTH_OK; i++) {
			row[i] = p->all_sizes[p->ids[i]];
			code = row[i] < 0 ? LTH_RUNTIME_ERROR : LTH_OK;
			if (code != LTH_OK && number == 0)
				negative = p->ids[i];
		}
		p->num_rows += code == LTH_OK;
	}
	return p->num_rows ? LTH_OK
			   : lth_diag_fail(p->diag, LTH_INVALID_OPTION, "dims", "hints at which sizes are 0 or more",
					   NULL, "storage %u '%s' of %lld bytes at the hint", negative,
					   p->program->storages[negative].name ? p->program->storages[negative].name : "",
					   (long long)p->all_sizes[negative]);
}

static struct lth_plan_options plan_options(const struct planner *p)
{
	return (struct lth_plan_options){.strategy = p->options->strategy,
					 .capacity = 0,
					 .effort = p->options->effort,
					 .seed = p->options->seed,
					 .time_limit_ms = p->options->time_limit_ms};
}

static enum lth_code append(struct planner *p, const struct lth_orientation *orientation)
{
	return lth_program_orientation(p->program, orientation) == LTH_NONE ? no_memory(p->diag) : LTH_OK;
}

struct fixed_place {
	int64_t offset;
	uint32_t storage;
};

static int by_offset(const void *a, const void *b)
{
	const struct fixed_place *x = a, *y = b;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return (x->storage > y->storage) - (x->storage < y->storage);
}

static enum lth_code append_fixed(struct planner *p, const int64_t *offsets)
{
	struct lth_arena *arena = p->program->arena;
	struct fixed_place *places = lth_arena_array(arena, p->count + 1, sizeof(*places));
	uint32_t *storages = lth_arena_array(arena, p->count + 1, sizeof(*storages));
	uint32_t *no_edges = lth_arena_array(arena, p->count + 1, sizeof(*no_edges));
	int64_t *base = lth_arena_array(arena, p->count + 1, sizeof(*base));
	if (!places || !storages || !no_edges || !base)
		return no_memory(p->diag);
	for (uint32_t i = 0; i < p->count; i++)
		places[i] = (struct fixed_place){offsets[i], p->ids[i]};
	qsort(places, p->count, sizeof(*places), by_offset);
	for (uint32_t i = 0; i < p->count; i++) {
		storages[i] = places[i].storage;
		base[i] = places[i].offset;
	}
	return append(p, &(struct lth_orientation){
				 .num_storages = p->count, .storages = storages, .base = base, .edges = no_edges});
}

static enum lth_code append_orient(struct planner *p, const struct lth_orient *orient)
{
	struct lth_arena *arena = p->program->arena;
	uint32_t *storages = lth_arena_array(arena, orient->count + 1, sizeof(*storages));
	int64_t *base = lth_arena_array(arena, orient->count + 1, sizeof(*base));
	if (!storages || !base)
		return no_memory(p->diag);
	for (uint32_t i = 0; i < orient->count; i++)
		storages[i] = p->ids[orient->buffers[i]];
	return append(p, &(struct lth_orientation){.num_storages = orient->count,
						   .num_edges = orient->num_edges,
						   .storages = storages,
						   .base = base,
						   .edges = orient->edges,
						   .below = orient->below});
}

static enum lth_code plan_fixed(struct planner *p, struct lth_memory_report *report)
{
	struct lth_plan_options options = plan_options(p);
	struct lth_plan_result result = {0};
	for (uint32_t i = 0; i < p->count; i++)
		p->buffers[i].size = p->sizes[i];
	enum lth_code code = lth_plan(p->buffers, p->count, &options, &result, p->diag);
	if (code == LTH_OK)
		code = append_fixed(p, result.offsets);
	if (code == LTH_OK) {
		report->nodes = result.nodes;
		report->cut_short = result.cut_short;
		report->certificate = lth_arena_strdup(p->program->arena, result.certificate_text);
		report->shapes = 1;
		report->mean_ratio = report->worst_ratio =
			result.live_bound_bytes ? (double)result.height / (double)result.live_bound_bytes : 1;
	}
	lth_plan_result_free(&result);
	return code;
}

static enum lth_code plan_box(struct planner *p, struct lth_memory_report *report)
{
	struct lth_plan_options options = plan_options(p);
	struct lth_box box = {.buffers = p->buffers, .count = p->count, .sizes = p->sizes, .num_rows = p->num_rows};
	struct lth_box_plan plan = {0};
	enum lth_code code = lth_box_plan(&box, &options, &plan, p->diag);
	if (code != LTH_OK)
		return code;
	for (uint32_t k = 0; k < plan.set.count && code == LTH_OK; k++)
		code = append_orient(p, &plan.set.orients[k]);
	*report = (struct lth_memory_report){
		.certificate = lth_arena_strdup(p->program->arena, plan.hint.certificate_text),
		.nodes = plan.nodes,
		.cut_short = plan.cut_short,
		.shapes = p->num_rows,
		.mean_ratio = plan.mean_ratio,
		.worst_ratio = plan.worst_ratio,
	};
	lth_box_plan_free(&plan);
	return code;
}

/* The independent checker on the offsets that a run would have, at each sampled shape. */
static enum lth_code check(struct planner *p)
{
	int64_t *offsets = calloc(p->program->num_storages + 1, sizeof(*offsets));
	int64_t *places = calloc(p->count + 1, sizeof(*places));
	enum lth_code code = offsets && places ? LTH_OK : no_memory(p->diag);
	for (uint32_t number = 0; number < (p->fixed ? 1 : MAX_SAMPLES) && code == LTH_OK; number++) {
		struct lth_plan_check found;
		struct lth_diag ignored = {0};
		lth_symbols_sample(p->program, number, p->symbols);
		if (lth_storage_sizes(p->program, p->symbols, p->all_sizes, &ignored) != LTH_OK ||
		    lth_memory_offsets(p->program, p->symbols, offsets, &ignored) != LTH_OK)
			continue; /* sizes that overflow: no run gets this far */
		for (uint32_t i = 0; i < p->count; i++) {
			p->buffers[i].lower = p->program->storages[p->ids[i]].first;
			p->buffers[i].upper = p->program->storages[p->ids[i]].last;
			p->buffers[i].size = p->all_sizes[p->ids[i]];
			places[i] = offsets[p->ids[i]];
		}
		code = lth_plan_check(p->buffers, places, p->count, &found, p->diag);
		if (code == LTH_OK && found.num_violations) {
			const struct lth_plan_violation *v = &found.violations[0];
			code = lth_diag_fail(p->diag, LTH_INTERNAL, "MemoryPlan", "a plan without violations", NULL,
					     "%s: storages %u and %u at sample %u, step %lld",
					     lth_plan_violation_text(v->kind), p->ids[v->first],
					     v->second == SIZE_MAX ? p->ids[v->first] : p->ids[v->second], number,
					     (long long)v->step);
		}
	}
	free(offsets);
	free(places);
	return code;
}

/* In one region nothing may share a byte at any shape, so there every two storages are ordered. The certificate still
 * compares with the real live ranges. */
static enum lth_code widen_for_region(struct planner *p, const char **out_certificate)
{
	struct lth_plan_options options = plan_options(p);
	struct lth_plan_result result = {0};
	for (uint32_t i = 0; i < p->count; i++)
		p->buffers[i].size = p->sizes[i];
	enum lth_code code = lth_plan(p->buffers, p->count, &options, &result, p->diag);
	if (code != LTH_OK)
		return code;
	*out_certificate = lth_arena_strdup(p->program->arena, result.certificate_text);
	lth_plan_result_free(&result);
	for (uint32_t i = 0; i < p->count; i++) {
		p->buffers[i].lower = 0;
		p->buffers[i].upper = p->program->num_instrs;
	}
	return LTH_OK;
}

static enum lth_code plan(struct planner *p, struct lth_memory_report *report)
{
	const char *certificate = NULL;
	enum lth_code code = sample(p);
	p->program->num_orientations = 0;
	if (code == LTH_OK && !p->fixed && p->options->strategy == LTH_PLAN_REGION)
		code = widen_for_region(p, &certificate);
	if (code == LTH_OK)
		code = p->fixed ? plan_fixed(p, report) : plan_box(p, report);
	if (code == LTH_OK && certificate)
		report->certificate = certificate;
	if (code == LTH_OK && p->options->check)
		code = check(p);
	return code;
}

enum lth_code lth_memory_plan(struct lth_program *program, const struct lth_memory_options *options,
			      struct lth_memory_report *out, struct lth_diag *diag)
{
	struct planner p = {.program = program, .options = options, .diag = diag};
	struct lth_memory_report report = {0};
	enum lth_code code = LTH_OUT_OF_MEMORY;
	p.ids = calloc(program->num_storages + 1, sizeof(*p.ids));
	p.buffers = calloc(program->num_storages + 1, sizeof(*p.buffers));
	p.symbols = calloc(program->num_symbols + 1, sizeof(*p.symbols));
	p.all_sizes = calloc(program->num_storages + 1, sizeof(*p.all_sizes));
	if (!p.ids || !p.buffers || !p.symbols || !p.all_sizes) {
		no_memory(diag);
	} else {
		find_storages(&p);
		code = plan(&p, &report);
	}
	if (code == LTH_OK) {
		program->certificate = report.certificate;
		*out = report;
	}
	free(p.ids);
	free(p.buffers);
	free(p.sizes);
	free(p.symbols);
	free(p.all_sizes);
	return code;
}
