/* The result document (lathe.result/1) of a compile, without what the daemon adds. */
#include "compiler/driver/variant.h"

#include "config.h"
#include "runtime/base/sha256.h"
#include "runtime/memory/ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* A figure that may not exist. */
static json_t *figure(int64_t value)
{
	return value < 0 ? json_null() : json_integer(value);
}

static json_t *dims_of(const struct lth_graph *graph, const struct lth_type *type)
{
	json_t *dims = json_array();
	for (uint32_t axis = 0; axis < type->rank; axis++) {
		struct lth_buf text = {0};
		int64_t extent;
		if (lth_dim_is_const(graph->dims, type->dims[axis], &extent)) {
			json_array_append_new(dims, json_integer(extent));
			continue;
		}
		lth_dim_print(graph->dims, type->dims[axis], &text);
		json_array_append_new(dims, json_string(lth_buf_text(&text)));
		lth_buf_free(&text);
	}
	return dims;
}

/* Tensors by element type and dims, others by their whole type. */
static json_t *ports(const struct lth_graph *graph, const lth_value_id *list, uint32_t count)
{
	json_t *out = json_array();
	for (uint32_t i = 0; i < count; i++) {
		const struct lth_value *value = &graph->values[list[i]];
		bool tensor = value->type.kind == LTH_TYPE_TENSOR;
		struct lth_buf type = {0};
		if (tensor)
			lth_buf_puts(&type, lth_dtype_text(value->type.dtype));
		else
			lth_type_print(graph, &value->type, &type);
		json_t *port = json_pack("{s:s, s:s}", "name", value->name, "type", lth_buf_text(&type));
		if (tensor)
			json_object_set_new(port, "dims", dims_of(graph, &value->type));
		json_array_append_new(out, port);
		lth_buf_free(&type);
	}
	return out;
}

static json_t *operators_of(const struct lth_graph *graph)
{
	json_t *out = json_object();
	for (uint32_t i = 0; i < graph->num_op_uses; i++)
		json_object_set_new(out, graph->op_uses[i].name, json_integer(graph->op_uses[i].nodes));
	return out;
}

static json_t *model_part(const struct lth_variant *variant)
{
	char digest[LTH_DIGEST_TEXT];
	const struct lth_region *main = &variant->graph->regions[0];
	if (variant->request->model_digest)
		snprintf(digest, sizeof(digest), "%s", variant->request->model_digest);
	else
		lth_sha256_text(variant->request->model, variant->request->model_size, digest);
	return json_pack("{s:s, s:s, s:I, s:I, s:o, s:o, s:o, s:I}", "digest", digest, "format",
			 variant->request->model_is_json ? "json" : "onnx", "opset", (json_int_t)variant->graph->opset,
			 "nodes", (json_int_t)variant->model_nodes, "operators", operators_of(variant->graph), "inputs",
			 ports(variant->graph, main->inputs, main->num_inputs), "outputs",
			 ports(variant->graph, main->outputs, main->num_outputs), "constants_bytes",
			 (json_int_t)variant->constants.bytes);
}

static json_t *timing_part(const struct lth_variant *variant)
{
	json_t *phases = json_array(), *passes = json_array();
	for (size_t i = 0; i < variant->num_phases; i++)
		json_array_append_new(
			phases, json_pack("{s:s, s:f}", "name", variant->phases[i].name, "ms", variant->phases[i].ms));
	for (size_t i = 0; i < variant->num_records; i++) {
		const struct lth_pass_record *r = &variant->records[i];
		json_array_append_new(
			passes,
			json_pack("{s:s, s:f, s:f, s:o, s:o, s:o, s:o, s:o, s:o}", "name", lth_passes[r->pass].name,
				  "ms", r->ms, "cpu_ms", r->cpu_ms, "nodes_before", figure(r->nodes_before),
				  "nodes_after", figure(r->nodes_after), "live_bound_before",
				  figure(r->live_bound_before), "live_bound_after", figure(r->live_bound_after),
				  "arena_before", figure(r->arena_before), "arena_after", figure(r->arena_after)));
	}
	return json_pack("{s:f, s:o, s:o}", "total_ms", variant->total_ms, "phases", phases, "passes", passes);
}

/* Figures at one point of the box. */
static json_t *memory_at(const struct lth_program *program, const int64_t *symbols)
{
	struct lth_memory_figures figures;
	struct lth_diag ignored = {0};
	if (lth_memory_figures(program, symbols, &figures, &ignored) != LTH_OK)
		return NULL;
	json_t *dims = json_object();
	for (uint32_t i = 0; i < program->num_symbols; i++)
		if (program->symbols[i].source == LTH_SOURCE_INPUT)
			json_object_set_new(dims, program->symbols[i].name, json_integer(symbols[i]));
	return json_pack("{s:o, s:I, s:I, s:o, s:I}", "dims", dims, "naive_bytes", (json_int_t)figures.naive_bytes,
			 "live_bound_bytes", (json_int_t)figures.live_bound_bytes, "arena_bytes",
			 figure(figures.arena_bytes), "io_bytes", (json_int_t)figures.io_bytes);
}

/* Who is at an instruction, for people. */
static json_t *node_at(const struct lth_program *program, uint32_t instr)
{
	const char *node = instr == LTH_NONE ? NULL : program->instrs[instr].node;
	return node ? json_string(node) : json_null();
}

/* Tensors alive at the peak, and what removing each would save of the live bound. */
static json_t *at_peak(const struct lth_program *program, const int64_t *symbols)
{
	struct lth_memory_figures figures;
	struct lth_diag ignored = {0};
	json_t *out = json_array();
	int64_t *sizes = calloc(program->num_storages + 1, sizeof(*sizes));
	int64_t *without = calloc(program->num_storages + 1, sizeof(*without));
	struct lth_storage_facts *facts = calloc(program->num_storages + 1, sizeof(*facts));
	if (sizes && without && facts && lth_memory_figures(program, symbols, &figures, &ignored) == LTH_OK &&
	    lth_storage_sizes(program, symbols, sizes, &ignored) == LTH_OK &&
	    lth_memory_bound_without(program, symbols, without, &ignored) == LTH_OK) {
		lth_storage_ledger(program, facts);
		for (uint32_t i = 0; i < program->num_storages; i++)
			if (without[i] >= 0)
				json_array_append_new(out,
						      json_pack("{s:s?, s:I, s:I, s:o, s:o}", "tensor",
								program->storages[i].name, "bytes",
								(json_int_t)sizes[i], "saves_bytes",
								(json_int_t)(figures.live_bound_bytes - without[i]),
								"written_by", node_at(program, facts[i].first_write),
								"last_read_by", node_at(program, facts[i].last_read)));
	}
	free(sizes);
	free(without);
	free(facts);
	return out;
}

/* The arena as an expression in the symbols, or null without a plan. */
static json_t *formula(const struct lth_program *program, const int64_t *symbols)
{
	struct lth_buf text = {0};
	lth_memory_formula(program, symbols, &text);
	json_t *out = text.size ? json_string(lth_buf_text(&text)) : json_null();
	lth_buf_free(&text);
	return out;
}

/* What OrderForMemory knows of its order: of the run of calls with the highest peak, at the hint. */
static json_t *order_part(const struct lth_order_report *order)
{
	char text[64] = "optimal: no order is lower";
	if (order->peak_bytes > order->bound_bytes && order->bound_bytes > 0)
		snprintf(text, sizeof(text), "heuristic: at most %.4f above the lowest",
			 (double)order->peak_bytes / (double)order->bound_bytes - 1);
	return json_pack("{s:s, s:i, s:i, s:b, s:I, s:I}", "certificate", text, "runs", (int)order->blocks,
			 "runs_changed", (int)order->changed, "all_proved", (int)order->proved, "peak_bytes",
			 (json_int_t)order->peak_bytes, "bound_bytes", (json_int_t)order->bound_bytes);
}

/* What no plan holds: storages whose size only the data decides, and objects. */
static json_t *unbounded_part(const struct lth_program *program)
{
	json_t *out = json_array();
	for (uint32_t i = 0; i < program->num_storages; i++)
		if (program->storages[i].kind == LTH_STORAGE_POOL)
			json_array_append_new(out,
					      json_string(program->storages[i].name ? program->storages[i].name : ""));
	for (uint32_t i = 0; i < program->num_instrs; i++) {
		const struct lth_instr *instr = &program->instrs[i];
		bool makes = instr->op == LTH_INSTR_BUILTIN && instr->num_outputs && instr->tensors[0] != LTH_NONE &&
			     program->tensors[instr->tensors[0]].dtype == LTH_DTYPE_OBJECT;
		if (makes)
			json_array_append_new(out, json_string(instr->node ? instr->node : ""));
	}
	return out;
}

/* The shape of the box that takes the most: its top, unless some sizes are largest elsewhere. */
static bool has_top(const struct lth_program *program, int64_t *symbols)
{
	static const struct lth_memory_limits largest = {.total_bytes = INT64_MAX};
	struct lth_diag ignored = {0};
	int64_t bound;
	return program->num_symbols && lth_symbols_at_top(program, symbols) &&
	       lth_memory_worst(program, &largest, symbols, &bound, &ignored) == LTH_OK;
}

static json_t *memory_part(const struct lth_variant *variant)
{
	const struct lth_program *program = variant->program;
	int64_t *symbols = calloc(program->num_symbols + 1, sizeof(*symbols));
	json_t *at = json_array(), *unbounded = unbounded_part(program);
	if (!symbols)
		return NULL;
	lth_symbols_at_hint(program, symbols);
	json_t *hint = memory_at(program, symbols), *peak = at_peak(program, symbols);
	json_t *expression = formula(program, symbols);
	if (hint)
		json_array_append(at, hint);
	if (has_top(program, symbols))
		json_array_append_new(at, memory_at(program, symbols));
	free(symbols);
	json_int_t live = json_integer_value(json_object_get(hint, "live_bound_bytes"));
	const json_t *arena = json_object_get(hint, "arena_bytes");
	json_t *out = json_pack(
		"{s:o, s:O?, s:O?, s:O?, s:O?, s:s?, s:s, s:i, s:s?, s:o, s:I, s:o}", "at", at, "naive_bytes",
		json_object_get(hint, "naive_bytes"), "live_bound_bytes", json_object_get(hint, "live_bound_bytes"),
		"arena_bytes", arena, "io_bytes", json_object_get(hint, "io_bytes"), "certificate",
		program->certificate, "order", variant->order_report.changed ? "memory" : "source", "alignment",
		(int)variant->memory_options.alignment, "strategy",
		json_is_integer(arena) ? lth_plan_strategy_name(variant->memory_options.strategy) : NULL, "unbounded",
		unbounded, "constants_bytes", (json_int_t)variant->constants.bytes, "at_peak", peak);
	if (json_is_integer(arena) && live > 0)
		json_object_set_new(out, "gap", json_real((double)json_integer_value(arena) / (double)live - 1));
	json_object_set_new(out, "formula", expression);
	if (variant->recomputed)
		json_object_set_new(out, "recomputed", json_integer(variant->recomputed));
	if (variant->order_report.blocks)
		json_object_set_new(out, "order_search", order_part(&variant->order_report));
	if (variant->memory_report.shapes > 1)
		json_object_set_new(out, "sampled",
				    json_pack("{s:i, s:f, s:f}", "shapes", (int)variant->memory_report.shapes,
					      "mean_arena_over_bound", variant->memory_report.mean_ratio,
					      "worst_arena_over_bound", variant->memory_report.worst_ratio));
	static const char *const measured[] = {"allocations_per_run", "copies_per_run"};
	for (size_t i = 0; variant->measured && i < sizeof(measured) / sizeof(*measured); i++)
		json_object_set(out, measured[i], json_object_get(variant->measured, measured[i]));
	json_decref(hint);
	return out;
}

static json_t *compile_part(const struct lth_variant *variant)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return json_pack("{s:I, s:f, s:f, s:I, s:I}", "peak_rss_bytes", (json_int_t)usage.ru_maxrss * 1024, "cpu_ms",
			 variant->cpu_ms, "codegen_cpu_ms", variant->code.cpu_ms, "kernels", (json_int_t)variant->program->num_kernels,
			 "kernels_from_cache", (json_int_t)variant->code.from_cache);
}

static json_t *variants_part(struct lth_variant *variants, size_t count)
{
	json_t *out = json_array();
	const json_t *overlays = json_object_get(variants[0].request->options, "variants");
	for (size_t i = 0; i < count; i++) {
		json_t *part = json_pack("{s:O?, s:o, s:o, s:o}", "options", json_array_get(overlays, i), "timing",
					 timing_part(&variants[i]), "memory", memory_part(&variants[i]), "compile",
					 compile_part(&variants[i]));
		if (variants[i].measured) {
			json_object_set(part, "measure", variants[i].measured);
			json_object_set(part, "outputs_equal", json_object_get(variants[i].measured, "outputs_equal"));
		}
		json_array_append_new(out, part);
	}
	return out;
}

json_t *lth_variant_document(struct lth_variant *variants, size_t count)
{
	struct lth_variant *first = &variants[0];
	json_t *artifacts = json_array();
	for (size_t i = 0; i < first->num_artifacts; i++) {
		const struct lth_artifact *artifact = &first->artifacts[i];
		json_array_append_new(artifacts, json_pack("{s:s, s:I}", "kind", artifact->kind, "bytes",
							   (json_int_t)artifact->size));
	}
	json_t *target = json_pack("{s:s, s:s, s:s}", "name", first->target.name, "triple", first->target.triple, "cpu",
				   first->target.cpu);
	json_t *compiler = json_pack("{s:s, s:s}", "version", PACKAGE_VERSION, "llvm", lth_codegen_llvm_version());
	json_t *out = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "schema", "lathe.result/1",
				"status", "ok", "compiler", compiler, "target", target, "model", model_part(first),
				"artifacts", artifacts, "timing", timing_part(first), "memory", memory_part(first),
				"compile", compile_part(first), "diagnostics", json_array());
	for (size_t i = 0; out && i < count; i++)
		if (variants[i].memory_report.cut_short) /* another day's clock may give another plan */
			json_object_set_new(out, "cacheable", json_false());
	if (out && first->measured)
		json_object_set(out, "measure", first->measured);
	if (out && json_array_size(json_object_get(first->request->options, "variants")))
		json_object_set_new(out, "variants", variants_part(variants, count));
	return out;
}
