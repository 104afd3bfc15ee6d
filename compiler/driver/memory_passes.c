/* ManifestAlloc and the memory passes in the table's order, each with its row of the ledger. AliasViews has done its work
 * on the graph before lowering (compile.c), for kernels are made for the strides that views give them; its row says so by
 * carrying its time from there. */
#include "compiler/driver/variant.h"

#include "runtime/base/io.h"

#include <stdlib.h>
#include <string.h>

struct figures {
	int64_t live_bound, arena;
};

static struct figures figures_now(const struct lth_variant *build)
{
	struct figures out = {-1, -1};
	struct lth_diag ignored = {0};
	struct lth_memory_figures figures;
	if (!build->program)
		return out;
	int64_t *symbols = calloc(build->program->num_symbols + 1, sizeof(*symbols));
	if (!symbols)
		return out;
	lth_symbols_at_hint(build->program, symbols);
	if (lth_memory_figures(build->program, symbols, &figures, &ignored) == LTH_OK) {
		out.live_bound = figures.live_bound_bytes;
		out.arena = figures.arena_bytes;
	}
	free(symbols);
	return out;
}

static int64_t program_nodes(const struct lth_variant *build)
{
	return build->program ? (int64_t)build->program->num_instrs : (int64_t)lth_graph_live_nodes(build->graph);
}

static enum lth_code manifest(struct lth_variant *build)
{
	struct lth_manifest input = {.graph = build->graph,
				     .accesses = build->accesses,
				     .regions = build->regions,
				     .alignment = build->memory_options.alignment,
				     .threads = build->threads};
	return lth_manifest_alloc(&input, build->arena, &build->program, &build->constants, build->diag);
}

/* Expansions of the search for an order: some hundred microseconds at level 2. */
static int64_t order_effort(const struct lth_variant *build)
{
	return build->opt_level >= 3 ? 2000000 : 2000;
}

static enum lth_code lifetimes(struct lth_variant *build)
{
	enum lth_code code = lth_manifest_lifetimes(build->program, build->diag);
	lth_branches_add_up(build->program); /* until ShareBranches says otherwise */
	return code;
}

static bool has_budget(const struct lth_variant *build)
{
	return build->memory_options.budget_bytes || build->memory_options.budget_total_bytes;
}

/* Recomputes until the live bound is `sixteenths` of the budget below it. */
static enum lth_code rematerialize(struct lth_variant *build, int64_t sixteenths)
{
	int64_t allowed;
	uint32_t recomputed = 0;
	if (!has_budget(build) || !build->passes.on[LTH_PASS_ID_ManifestLifetimes])
		return LTH_OK;
	int64_t *symbols = lth_arena_array(build->arena, build->program->num_symbols + 1, sizeof(*symbols));
	if (!symbols)
		return LTH_OK; /* the caller finds the arena exhausted */
	enum lth_code code = lth_memory_arena_budget(build->program, &build->memory_options, build->constants.bytes,
						     symbols, &allowed, build->diag);
	if (code == LTH_OK)
		code = lth_rematerialize(build->program, symbols, allowed - allowed / 16 * sixteenths, &recomputed,
					 build->diag);
	build->recomputed += recomputed;
	return code;
}

static bool within_budget(const struct lth_variant *build)
{
	struct lth_diag ignored = {0};
	return lth_memory_check_budget(build->program, &build->memory_options, build->constants.bytes, &ignored) == LTH_OK;
}

/* Under a budget that the first plan misses: a longer search, then lower and lower live bounds. */
static enum lth_code plan(struct lth_variant *build)
{
	struct lth_memory_options options = build->memory_options;
	enum lth_code code = lth_memory_plan(build->program, &options, &build->memory_report, build->diag);
	if (code != LTH_OK || within_budget(build))
		return code;
	options.effort *= 32;
	code = lth_memory_plan(build->program, &options, &build->memory_report, build->diag);
	for (int64_t sixteenths = 1; sixteenths <= 4 && code == LTH_OK && !within_budget(build) &&
				     build->passes.on[LTH_PASS_ID_Rematerialize]; sixteenths++) {
		uint32_t before = build->recomputed;
		code = rematerialize(build, sixteenths);
		if (code == LTH_OK && build->recomputed == before)
			break;
		if (code == LTH_OK)
			code = lth_memory_plan(build->program, &options, &build->memory_report, build->diag);
	}
	return code;
}

static enum lth_code run_pass(struct lth_variant *build, enum lth_pass_id id)
{
	switch (id) {
	case LTH_PASS_ID_ManifestAlloc:
		return manifest(build);
	case LTH_PASS_ID_OrderForMemory:
		return lth_order_for_memory(build->program, order_effort(build), &build->order_report, build->diag);
	case LTH_PASS_ID_ReuseInPlace:
		return lth_reuse_in_place(build->program, build->diag);
	case LTH_PASS_ID_ManifestLifetimes:
		return lifetimes(build);
	case LTH_PASS_ID_ShareBranches:
		return lth_share_branches(build->program, build->diag);
	case LTH_PASS_ID_FuseSizes:
		build->program->fused_sizes = true;
		return LTH_OK;
	case LTH_PASS_ID_Rematerialize:
		return rematerialize(build, 0);
	case LTH_PASS_ID_MemoryPlan:
		return plan(build);
	default:
		return LTH_OK;
	}
}

/* Does the pass run here and now? AliasViews has run on the graph; Rematerialize acts only under a budget. */
static bool applies(const struct lth_variant *build, enum lth_pass_id id)
{
	if (lth_passes[id].kind != LTH_PASS_MEMORY || id == LTH_PASS_ID_AliasViews)
		return false;
	if (id == LTH_PASS_ID_OrderForMemory)
		return !build->memory_options.source_order;
	return id != LTH_PASS_ID_Rematerialize || has_budget(build);
}

enum lth_code lth_variant_memory(struct lth_variant *build)
{
	for (int i = 0; i < LTH_NUM_PASSES; i++) {
		enum lth_pass_id id = (enum lth_pass_id)i;
		if (!applies(build, id))
			continue;
		if (!build->passes.on[id]) {
			if (id == LTH_PASS_ID_ManifestLifetimes)
				lth_lifetimes_to_the_end(build->program);
			continue;
		}
		struct lth_pass_record *record = &build->records[build->num_records++];
		struct figures before = figures_now(build);
		*record = (struct lth_pass_record){.pass = id,
						   .nodes_before = program_nodes(build),
						   .live_bound_before = before.live_bound,
						   .arena_before = before.arena};
		uint64_t start = lth_now_ns(), cpu = lth_cpu_ns();
		if (build->request->on_pass)
			build->request->on_pass(build->request->on_stage_context, lth_passes[id].name);
		enum lth_code code = run_pass(build, id);
		record->ms = (double)(lth_now_ns() - start) / 1e6;
		record->cpu_ms = (double)(lth_cpu_ns() - cpu) / 1e6;
		if (code == LTH_OK && !lth_arena_ok(build->arena))
			code = lth_diag_fail(build->diag, LTH_OUT_OF_MEMORY, "memory passes", NULL, NULL,
					     "the compile's memory is exhausted");
		if (code == LTH_OK && build->verify)
			code = lth_program_verify(build->program, build->diag);
		if (code != LTH_OK) {
			lth_diag_within(build->diag, "pass %s", lth_passes[id].name);
			return code;
		}
		struct figures after = figures_now(build);
		record->nodes_after = program_nodes(build);
		record->live_bound_after = after.live_bound;
		record->arena_after = after.arena;
	}
	return lth_memory_check_budget(build->program, &build->memory_options, build->constants.bytes, build->diag);
}
