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

static struct figures figures_now(const struct lth_variant *variant)
{
	struct figures out = {-1, -1};
	struct lth_diag ignored = {0};
	struct lth_memory_figures figures;
	if (!variant->program)
		return out;
	int64_t *symbols = calloc(variant->program->num_symbols + 1, sizeof(*symbols));
	if (!symbols)
		return out;
	lth_symbols_at_hint(variant->program, symbols);
	if (lth_memory_figures(variant->program, symbols, &figures, &ignored) == LTH_OK) {
		out.live_bound = figures.live_bound_bytes;
		out.arena = figures.arena_bytes;
	}
	free(symbols);
	return out;
}

static int64_t program_nodes(const struct lth_variant *variant)
{
	return variant->program ? (int64_t)variant->program->num_instrs : (int64_t)lth_graph_live_nodes(variant->graph);
}

static enum lth_code manifest(struct lth_variant *variant)
{
	struct lth_manifest input = {.graph = variant->graph,
				     .accesses = variant->accesses,
				     .regions = variant->regions,
				     .num_kernels = variant->num_objects,
				     .alignment = variant->memory_options.alignment,
				     .threads = variant->threads};
	return lth_manifest_alloc(&input, variant->arena, &variant->program, &variant->constants, variant->diag);
}

/* Expansions of the search for an order, beside some for each call: some hundred microseconds at level 2, none for who
 * wants no search for the plan either. */
static int64_t order_effort(const struct lth_variant *variant)
{
	if (variant->memory_options.strategy != LTH_PLAN_EXACT)
		return 0;
	return variant->opt_level >= 3 ? 2000000 : 2000;
}

static enum lth_code lifetimes(struct lth_variant *variant)
{
	enum lth_code code = lth_manifest_lifetimes(variant->program, variant->diag);
	lth_branches_add_up(variant->program); /* until ShareBranches says otherwise */
	return code;
}

static bool has_budget(const struct lth_variant *variant)
{
	return variant->memory_options.budget_bytes || variant->memory_options.budget_total_bytes;
}

/* Recomputes until the live bound is `sixteenths` of the budget below it. */
static enum lth_code rematerialize(struct lth_variant *variant, int64_t sixteenths)
{
	int64_t allowed, above;
	uint32_t recomputed = 0;
	if (!has_budget(variant) || !variant->passes.on[LTH_PASS_ID_ManifestLifetimes])
		return LTH_OK;
	int64_t *symbols = lth_arena_array(variant->arena, variant->program->num_symbols + 1, sizeof(*symbols));
	if (!symbols)
		return LTH_OK; /* the caller finds the arena exhausted */
	enum lth_code code = lth_memory_arena_budget(variant->program, &variant->memory_options,
						     variant->constants.bytes, symbols, &allowed, &above, variant->diag);
	if (code == LTH_OK)
		code = lth_rematerialize(variant->program, symbols, allowed - allowed / 16 * sixteenths, &recomputed,
					 variant->diag);
	variant->recomputed += recomputed;
	return code;
}

static bool within_budget(const struct lth_variant *variant)
{
	struct lth_diag ignored = {0};
	return lth_memory_check_budget(variant->program, &variant->memory_options, variant->constants.bytes,
				       &ignored) == LTH_OK;
}

/* Under a budget that the first plan misses: a longer search, then lower and lower live bounds. */
static enum lth_code plan(struct lth_variant *variant)
{
	struct lth_memory_options options = variant->memory_options;
	enum lth_code code = lth_memory_plan(variant->program, &options, &variant->memory_report, variant->diag);
	if (code != LTH_OK || within_budget(variant))
		return code;
	options.effort *= 32;
	code = lth_memory_plan(variant->program, &options, &variant->memory_report, variant->diag);
	for (int64_t sixteenths = 1; sixteenths <= 4 && code == LTH_OK && !within_budget(variant) &&
				     variant->passes.on[LTH_PASS_ID_Rematerialize];
	     sixteenths++) {
		uint32_t before = variant->recomputed;
		code = rematerialize(variant, sixteenths);
		if (code == LTH_OK && variant->recomputed == before)
			break;
		if (code == LTH_OK)
			code = lth_memory_plan(variant->program, &options, &variant->memory_report, variant->diag);
	}
	return code;
}

static enum lth_code run_pass(struct lth_variant *variant, enum lth_pass_id id)
{
	switch (id) {
	case LTH_PASS_ID_ManifestAlloc:
		return manifest(variant);
	case LTH_PASS_ID_OrderForMemory:
		return lth_order_for_memory(variant->program, order_effort(variant), &variant->order_report,
					    variant->diag);
	case LTH_PASS_ID_ReuseInPlace:
		return lth_reuse_in_place(variant->program, variant->diag);
	case LTH_PASS_ID_ManifestLifetimes:
		return lifetimes(variant);
	case LTH_PASS_ID_ShareBranches:
		return lth_share_branches(variant->program, has_budget(variant), variant->diag);
	case LTH_PASS_ID_FuseSizes:
		variant->program->fused_sizes = true;
		return LTH_OK;
	case LTH_PASS_ID_Rematerialize:
		return rematerialize(variant, 0);
	case LTH_PASS_ID_MemoryPlan:
		return plan(variant);
	default:
		return LTH_OK;
	}
}

/* Does the pass run here and now? AliasViews has run on the graph; Rematerialize acts only under a budget. */
static bool applies(const struct lth_variant *variant, enum lth_pass_id id)
{
	if (lth_passes[id].kind != LTH_PASS_MEMORY || id == LTH_PASS_ID_AliasViews)
		return false;
	if (id == LTH_PASS_ID_OrderForMemory)
		return !variant->memory_options.source_order;
	return id != LTH_PASS_ID_Rematerialize || has_budget(variant);
}

/* A program that no executable would run is Lathe's own fault, whatever rule it breaks. */
static enum lth_code verify(struct lth_variant *variant)
{
	if (lth_program_verify(variant->program, variant->diag) == LTH_OK)
		return LTH_OK;
	variant->diag->code = LTH_INTERNAL;
	return LTH_INTERNAL;
}

enum lth_code lth_variant_memory(struct lth_variant *variant)
{
	for (int i = 0; i < LTH_NUM_PASSES; i++) {
		enum lth_pass_id id = (enum lth_pass_id)i;
		if (!applies(variant, id))
			continue;
		if (!variant->passes.on[id]) {
			if (id == LTH_PASS_ID_ManifestLifetimes)
				lth_lifetimes_to_the_end(variant->program);
			continue;
		}
		struct lth_pass_record *record = &variant->records[variant->num_records++];
		struct figures before = figures_now(variant);
		*record = (struct lth_pass_record){.pass = id,
						   .nodes_before = program_nodes(variant),
						   .live_bound_before = before.live_bound,
						   .arena_before = before.arena};
		uint64_t start = lth_now_ns(), cpu = lth_cpu_ns();
		if (variant->request->on_pass)
			variant->request->on_pass(variant->request->on_stage_context, lth_passes[id].name);
		enum lth_code code = run_pass(variant, id);
		record->ms = (double)(lth_now_ns() - start) / 1e6;
		record->cpu_ms = (double)(lth_cpu_ns() - cpu) / 1e6;
		if (code == LTH_OK && !lth_arena_ok(variant->arena))
			code = lth_diag_fail(variant->diag, LTH_OUT_OF_MEMORY, "memory passes", NULL, NULL,
					     "the compile's memory is exhausted");
		if (code == LTH_OK && variant->verify)
			code = verify(variant);
		if (code != LTH_OK) {
			lth_diag_within(variant->diag, "pass %s", lth_passes[id].name);
			return code;
		}
		struct figures after = figures_now(variant);
		record->nodes_after = program_nodes(variant);
		record->live_bound_after = after.live_bound;
		record->arena_after = after.arena;
	}
	enum lth_code code = variant->verify ? LTH_OK : verify(variant);
	return code ? code
		    : lth_memory_check_budget(variant->program, &variant->memory_options, variant->constants.bytes,
					      variant->diag);
}
