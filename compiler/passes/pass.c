/* The pass manager: selects passes by level and by name, runs them in the order of the table, and keeps the ledger:
 * time, nodes and the live bound before and after each. With `verify` a broken graph is reported together with the
 * name of the pass that broke it. Thread rule: see pass.h. */
#include "compiler/passes/pass.h"

#include "runtime/base/io.h"

#include <stdio.h>
#include <string.h>

/* Prototypes of the graph passes, from the table; memory passes have no function here. */
#define LTH_PASS_PROTOTYPE_GRAPH(run) LTH_PASS_GRAPH_FN(run)
#define LTH_PASS_PROTOTYPE_MEMORY(run)
#define LTH_PASS(name, kind, level, required, run, description) LTH_PASS_PROTOTYPE_##kind(run)
#include "compiler/passes/passes.def"
#undef LTH_PASS

const struct lth_pass lth_passes[LTH_NUM_PASSES] = {
#define LTH_PASS(name, kind, level, required, run, description) \
	[LTH_PASS_ID_##name] = {#name, LTH_PASS_##kind, level, required, run, description},
#include "compiler/passes/passes.def"
#undef LTH_PASS
};

enum lth_pass_id lth_pass_find(const char *name)
{
	for (unsigned id = 0; id < LTH_NUM_PASSES; id++)
		if (strcmp(lth_passes[id].name, name) == 0)
			return (enum lth_pass_id)id;
	return LTH_NUM_PASSES;
}

static enum lth_code unknown_pass(const char *option, const char *name, struct lth_diag *diag)
{
	const char *names[LTH_NUM_PASSES];
	for (unsigned id = 0; id < LTH_NUM_PASSES; id++)
		names[id] = lth_passes[id].name;
	const char *near = lth_nearest(name, names, LTH_NUM_PASSES);
	char advice[128] = "GET /v1/passes or `lathe passes` lists them";
	if (near)
		snprintf(advice, sizeof(advice), "did you mean %s?", near);
	return lth_diag_fail(diag, LTH_INVALID_OPTION, option, "the name of a pass", advice, "unknown pass \"%s\"", name);
}

enum lth_code lth_pass_select(unsigned opt_level, const char *const *required, size_t num_required,
			      const char *const *disabled, size_t num_disabled, struct lth_pass_set *out,
			      struct lth_diag *diag)
{
	struct lth_pass_set set;
	for (unsigned id = 0; id < LTH_NUM_PASSES; id++)
		set.on[id] = lth_passes[id].required || opt_level >= lth_passes[id].level;
	for (size_t i = 0; i < num_required; i++) {
		enum lth_pass_id id = lth_pass_find(required[i]);
		if (id == LTH_NUM_PASSES)
			return unknown_pass("required_passes", required[i], diag);
		set.on[id] = true;
	}
	for (size_t i = 0; i < num_disabled; i++) {
		enum lth_pass_id id = lth_pass_find(disabled[i]);
		if (id == LTH_NUM_PASSES)
			return unknown_pass("disabled_passes", disabled[i], diag);
		if (lth_passes[id].required)
			return lth_diag_fail(diag, LTH_INVALID_OPTION, "disabled_passes",
					     "a pass that compiling can do without",
					     "leave it out of disabled_passes", "required pass \"%s\"", disabled[i]);
		set.on[id] = false;
	}
	*out = set;
	return LTH_OK;
}

static enum lth_code run_one(struct lth_graph *graph, enum lth_pass_id id, const struct lth_pass_context *context,
			     bool verify, struct lth_pass_record *record, struct lth_diag *diag)
{
	*record = (struct lth_pass_record){.pass = id, .arena_before = -1, .arena_after = -1};
	record->nodes_before = lth_graph_live_nodes(graph);
	record->live_bound_before = lth_graph_live_bound(graph);
	if (context->on_pass)
		context->on_pass(context->on_pass_context, lth_passes[id].name);
	uint64_t wall_start_ns = lth_now_ns(), cpu_start_ns = lth_cpu_ns();
	enum lth_code code = lth_passes[id].run(graph, context, diag);
	record->ms = (double)(lth_now_ns() - wall_start_ns) / 1e6;
	record->cpu_ms = (double)(lth_cpu_ns() - cpu_start_ns) / 1e6;
	if (code == LTH_OK && !lth_arena_ok(graph->arena))
		code = lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "passes", NULL, "raise the memory limit",
				     "the compile's arena is exhausted");
	if (code == LTH_OK && verify)
		code = lth_graph_verify(graph, diag);
	if (code != LTH_OK) {
		lth_diag_within(diag, "pass %s", lth_passes[id].name);
		return code;
	}
	record->nodes_after = lth_graph_live_nodes(graph);
	record->live_bound_after = lth_graph_live_bound(graph);
	return LTH_OK;
}

enum lth_code lth_passes_run(struct lth_graph *graph, const struct lth_pass_set *set,
			     const struct lth_pass_context *context, bool verify, const char *dump_after,
			     struct lth_buf *dump, struct lth_pass_record *records, size_t *out_num_records,
			     struct lth_diag *diag)
{
	enum lth_pass_id dump_id = LTH_NUM_PASSES;
	if (dump_after) {
		dump_id = lth_pass_find(dump_after);
		if (dump_id == LTH_NUM_PASSES)
			return unknown_pass("dump_after", dump_after, diag);
	}
	size_t num_records = 0;
	for (unsigned id = 0; id < LTH_NUM_PASSES; id++) {
		if (!set->on[id] || lth_passes[id].kind != LTH_PASS_GRAPH)
			continue;
		enum lth_code code = run_one(graph, (enum lth_pass_id)id, context, verify, &records[num_records], diag);
		if (code != LTH_OK)
			return code;
		num_records++;
		if (id == dump_id)
			lth_graph_print(graph, false, dump);
	}
	*out_num_records = num_records;
	return LTH_OK;
}
