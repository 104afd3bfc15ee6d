/* One compile, as the picture in docs/ARCHITECTURE.md has it:
 *
 *	bytes -> import -> graph -> graph passes -> groups -> loop IR -> objects --+
 *	                                              |                            +-> executable
 *	                                              +-> program -> memory passes-+
 */
#include "compiler/compile.h"

#include "compiler/driver/variant.h"
#include "compiler/import/import.h"
#include "compiler/ops/op.h"
#include "runtime/base/io.h"

#include <stdlib.h>
#include <string.h>

/* Begins a phase: tells whoever watches, and starts its clock. */
static enum lth_code begin(struct lth_variant *variant, const char *name, uint64_t *out_start)
{
	if (variant->request->on_stage && variant->request->on_stage(variant->request->on_stage_context, name) != 0)
		return lth_diag_fail(variant->diag, LTH_CANCELLED, name, NULL, NULL, "a request to stop");
	*out_start = lth_now_ns();
	return LTH_OK;
}

static void end(struct lth_variant *variant, const char *name, uint64_t start)
{
	if (variant->num_phases < LTH_MAX_PHASES)
		variant->phases[variant->num_phases++] =
			(struct lth_phase){name, (double)(lth_now_ns() - start) / 1e6};
}

static enum lth_code import(struct lth_variant *variant)
{
	const struct lth_compile_request *request = variant->request;
	const json_t *dims = lth_variant_option(variant, LTH_OPTION_ID_DIMS);
	struct lth_import_dim *list = lth_arena_array(variant->arena, json_object_size(dims) + 1, sizeof(*list));
	struct lth_import_options options = {
		.dims = list, .symbolic = json_is_true(lth_variant_option(variant, LTH_OPTION_ID_SYMBOLIC))};
	if (!list)
		return lth_diag_fail(variant->diag, LTH_OUT_OF_MEMORY, "import", NULL, NULL, "no memory");
	json_t *copy = json_deep_copy(dims), *range;
	const char *name;
	json_object_foreach(copy, name, range)
	{
		struct lth_import_dim dim = LTH_IMPORT_DIM_DEFAULT;
		dim.name = lth_arena_strdup(variant->arena, name);
		const json_t *min = json_object_get(range, "min"), *max = json_object_get(range, "max");
		const json_t *hint = json_object_get(range, "hint"), *multiple = json_object_get(range, "multiple");
		dim.min = min ? json_integer_value(min) : dim.min;
		dim.max = max ? json_integer_value(max) : dim.max;
		dim.hint = hint ? json_integer_value(hint) : dim.hint;
		dim.multiple = multiple ? json_integer_value(multiple) : dim.multiple;
		list[options.num_dims++] = dim;
	}
	json_decref(copy);
	enum lth_code code = (request->model_is_json ? lth_import_json : lth_import_onnx)(
		request->model, request->model_size, request->files, request->num_files, &options, variant->arena,
		&variant->graph, variant->diag);
	if (code == LTH_OK)
		code = lth_infer_graph(variant->graph, variant->diag);
	if (code == LTH_OK)
		lth_graph_settle_hints(variant->graph);
	if (code == LTH_OK)
		variant->model_nodes = lth_graph_live_nodes(variant->graph);
	return code;
}

static enum lth_code graph_passes(struct lth_variant *variant)
{
	struct lth_pass_context context = {.opt_level = variant->opt_level,
					   .vector_lanes = variant->lower_target.vector_bytes / 4,
					   .on_pass = variant->request->on_pass,
					   .on_pass_context = variant->request->on_stage_context};
	const char *dump = json_string_value(lth_variant_option(variant, LTH_OPTION_ID_DUMP_AFTER));
	enum lth_code code = lth_passes_run(variant->graph, &variant->passes, &context, variant->verify,
					    dump && *dump ? dump : NULL, &variant->ir_text, variant->records,
					    &variant->num_records, variant->diag);
	if (code == LTH_OK && (!dump || !*dump) && lth_variant_wants(variant, "ir"))
		lth_graph_print(variant->graph, false, &variant->ir_text);
	return code;
}

/* Groups, and where each value is. */
static enum lth_code group(struct lth_variant *variant)
{
	struct lth_graph *graph = variant->graph;
	bool alias = variant->passes.on[LTH_PASS_ID_AliasViews];
	const struct lth_op *concat = &lth_ops[LTH_OP_ID_Concat];
	if (!variant->passes.on[LTH_PASS_ID_FuseOps])
		lth_group_each_node(graph);
	enum lth_code code = LTH_OK;
	if (alias)
		code = lth_alias_prepare(graph, concat, &lth_ops[LTH_OP_ID_LayoutCopy], variant->diag);
	if (code == LTH_OK)
		code = lth_graph_groups(graph, variant->arena, &variant->groups, variant->diag);
	if (code != LTH_OK)
		return code;
	variant->accesses = lth_access_dense(graph, variant->arena);
	variant->is_view = lth_arena_array(variant->arena, graph->num_nodes + 1, sizeof(bool));
	if (!variant->accesses || !variant->is_view)
		return lth_diag_fail(variant->diag, LTH_OUT_OF_MEMORY, "groups", NULL, NULL, "no memory");
	if (!alias)
		lth_control_all_windows(graph, variant->accesses, 0);
	return alias ? lth_alias_views(graph, concat, variant->accesses, variant->is_view, variant->diag) : LTH_OK;
}

static enum lth_code generate(struct lth_variant *variant)
{
	if (!lth_variant_needs_code(variant))
		return LTH_OK;
	return lth_codegen_objects(&variant->target, variant->kernels, variant->num_kernels, variant->request->jobs,
				   variant->request->kernel_cache, &variant->code, variant->diag);
}

/* The way of the data. */
static enum lth_code build_variant(struct lth_variant *variant)
{
	static const struct {
		const char *name;
		enum lth_code (*run)(struct lth_variant *variant);
	} stages[] = {
		{"import", import},	 {"passes", graph_passes}, {"group", group},	    {"lower", lth_variant_lower},
		{"memory", lth_variant_memory}, {"codegen", generate},	   {"emit", lth_variant_artifacts},
	};
	uint64_t first = lth_now_ns(), first_cpu = lth_cpu_all_ns();
	for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++) {
		uint64_t start;
		enum lth_code code = begin(variant, stages[i].name, &start);
		if (code == LTH_OK)
			code = stages[i].run(variant);
		if (code == LTH_OK && !lth_arena_ok(variant->arena))
			code = lth_diag_fail(variant->diag, LTH_OUT_OF_MEMORY, stages[i].name, NULL,
					     "raise the worker's memory limit", "the compile's memory is exhausted");
		if (code != LTH_OK)
			return code;
		end(variant, stages[i].name, start);
	}
	variant->total_ms = (double)(lth_now_ns() - first) / 1e6;
	variant->cpu_ms = (double)(lth_cpu_all_ns() - first_cpu) / 1e6;
	return LTH_OK;
}

static void free_variant(struct lth_variant *variant)
{
	lth_arena_destroy(&variant->arena);
	lth_buf_free(&variant->ir_text);
	lth_codegen_result_free(&variant->code);
	for (size_t i = 0; i < variant->num_artifacts; i++)
		lth_artifact_free(&variant->artifacts[i]);
	free(variant->artifacts);
	free(variant->library);
	json_decref(variant->options);
	json_decref(variant->defaults);
	json_decref(variant->measured);
}

/* The request's options, or each variant's overlay on them. */
static enum lth_code make_variants(const struct lth_compile_request *request, struct lth_variant **out_variants,
				 size_t *out_count, struct lth_diag *diag)
{
	const json_t *overlays = json_object_get(request->options, "variants");
	size_t count = json_array_size(overlays) ? json_array_size(overlays) : 1;
	struct lth_variant *variants = calloc(count, sizeof(*variants));
	if (!variants)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "compile", NULL, NULL, "no memory");
	enum lth_code code = LTH_OK;
	for (size_t i = 0; i < count; i++) {
		variants[i].request = request;
		variants[i].diag = diag;
		variants[i].is_first = i == 0;
		variants[i].options = lth_options_overlay(request->options, json_array_get(overlays, i));
		variants[i].defaults = lth_option_defaults();
		variants[i].arena = lth_arena_create(0);
		if (!variants[i].options || !variants[i].defaults || !variants[i].arena)
			code = lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "compile", NULL, NULL, "no memory");
	}
	*out_variants = variants;
	*out_count = count;
	return code;
}

/* Artifacts and kernels change hands: the first variant's artifacts, everyone's new kernels (each once). */
static enum lth_code take_result(struct lth_variant *variants, size_t count, struct lth_compile_result *out,
				 struct lth_diag *diag)
{
	size_t most = 0;
	for (size_t i = 0; i < count; i++)
		most += variants[i].code.num_objects;
	struct lth_kernel_object *kernels = calloc(most + 1, sizeof(*kernels));
	if (!kernels)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "compile", NULL, NULL, "no memory");
	size_t num_kernels = 0;
	for (size_t i = 0; i < count; i++)
		for (uint32_t k = 0; k < variants[i].code.num_objects; k++) {
			struct lth_codegen_object *object = &variants[i].code.objects[k];
			bool known = object->from_cache;
			for (size_t j = 0; j < num_kernels && !known; j++)
				known = strcmp(kernels[j].name, object->name) == 0;
			if (known)
				continue;
			kernels[num_kernels++] = (struct lth_kernel_object){
				.name = strdup(object->name), .data = object->data, .size = object->size};
			object->data = NULL;
		}
	out->artifacts = variants[0].artifacts;
	out->num_artifacts = variants[0].num_artifacts;
	variants[0].artifacts = NULL;
	variants[0].num_artifacts = 0;
	out->new_kernels = kernels;
	out->num_new_kernels = num_kernels;
	return LTH_OK;
}

enum lth_code lth_compile(const struct lth_compile_request *request, struct lth_compile_result *out_result,
			  struct lth_diag *diag)
{
	struct lth_variant *variants = NULL;
	struct lth_compile_result result = {0};
	size_t count = 0;
	json_t *description = lth_describe_words();
	enum lth_code code = lth_compile_options_check(request->options, json_object_get(description, "passes"),
						       json_object_get(description, "targets"), diag);
	json_decref(description);
	if (code == LTH_OK)
		code = make_variants(request, &variants, &count, diag);
	for (size_t i = 0; i < count && code == LTH_OK; i++) {
		code = lth_variant_resolve(&variants[i]);
		if (code == LTH_OK)
			code = build_variant(&variants[i]);
	}
	uint64_t start = 0;
	if (code == LTH_OK && lth_variant_int(&variants[0], LTH_OPTION_ID_MEASURE_RUNS) > 0) {
		code = begin(&variants[0], "measure", &start);
		if (code == LTH_OK)
			code = lth_variant_measure(variants, count);
		if (code == LTH_OK)
			end(&variants[0], "measure", start);
	}
	if (code == LTH_OK) {
		result.document = lth_variant_document(variants, count);
		if (!result.document)
			code = lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "compile", NULL, NULL, "no memory");
	}
	if (code == LTH_OK)
		code = take_result(variants, count, &result, diag);
	if (code == LTH_OK)
		*out_result = result;
	else
		json_decref(result.document);
	for (size_t i = 0; i < count; i++)
		free_variant(&variants[i]);
	free(variants);
	return code;
}

void lth_compile_result_free(struct lth_compile_result *result)
{
	json_decref(result->document);
	for (size_t i = 0; i < result->num_artifacts; i++)
		lth_artifact_free(&result->artifacts[i]);
	for (size_t i = 0; i < result->num_new_kernels; i++) {
		free(result->new_kernels[i].name);
		free(result->new_kernels[i].data);
	}
	free(result->artifacts);
	free(result->new_kernels);
	*result = (struct lth_compile_result){0};
}
