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
static enum lth_code begin(struct lth_variant *build, const char *name, uint64_t *out_start)
{
	if (build->request->on_stage && build->request->on_stage(build->request->on_stage_context, name) != 0)
		return lth_diag_fail(build->diag, LTH_CANCELLED, name, NULL, NULL, "a request to stop");
	*out_start = lth_now_ns();
	return LTH_OK;
}

static void end(struct lth_variant *build, const char *name, uint64_t start)
{
	if (build->num_phases < LTH_MAX_PHASES)
		build->phases[build->num_phases++] =
			(struct lth_phase){name, (double)(lth_now_ns() - start) / 1e6};
}

static enum lth_code import(struct lth_variant *build)
{
	const struct lth_compile_request *request = build->request;
	const json_t *dims = lth_variant_option(build, LTH_OPTION_ID_DIMS);
	struct lth_import_dim *list = lth_arena_array(build->arena, json_object_size(dims) + 1, sizeof(*list));
	struct lth_import_options options = {
		.dims = list, .symbolic = json_is_true(lth_variant_option(build, LTH_OPTION_ID_SYMBOLIC))};
	if (!list)
		return lth_diag_fail(build->diag, LTH_OUT_OF_MEMORY, "import", NULL, NULL, "no memory");
	json_t *copy = json_deep_copy(dims), *range;
	const char *name;
	json_object_foreach(copy, name, range)
	{
		struct lth_import_dim dim = LTH_IMPORT_DIM_DEFAULT;
		dim.name = lth_arena_strdup(build->arena, name);
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
		request->model, request->model_size, request->files, request->num_files, &options, build->arena,
		&build->graph, build->diag);
	if (code == LTH_OK)
		code = lth_infer_graph(build->graph, build->diag);
	if (code == LTH_OK)
		lth_graph_settle_hints(build->graph);
	if (code == LTH_OK)
		build->model_nodes = lth_graph_live_nodes(build->graph);
	return code;
}

static enum lth_code graph_passes(struct lth_variant *build)
{
	struct lth_pass_context context = {.opt_level = build->opt_level,
					   .vector_lanes = build->lower_target.vector_bytes / 4,
					   .on_pass = build->request->on_pass,
					   .on_pass_context = build->request->on_stage_context};
	const char *dump = json_string_value(lth_variant_option(build, LTH_OPTION_ID_DUMP_AFTER));
	enum lth_code code = lth_passes_run(build->graph, &build->passes, &context, build->verify,
					    dump && *dump ? dump : NULL, &build->ir_text, build->records,
					    &build->num_records, build->diag);
	if (code == LTH_OK && (!dump || !*dump) && lth_variant_wants(build, "ir"))
		lth_graph_print(build->graph, false, &build->ir_text);
	return code;
}

/* Groups, and where each value is. */
static enum lth_code group(struct lth_variant *build)
{
	struct lth_graph *graph = build->graph;
	bool alias = build->passes.on[LTH_PASS_ID_AliasViews];
	const struct lth_op *concat = &lth_ops[LTH_OP_ID_Concat];
	if (!build->passes.on[LTH_PASS_ID_FuseOps])
		lth_group_each_node(graph);
	enum lth_code code = LTH_OK;
	if (alias)
		code = lth_alias_prepare(graph, concat, &lth_ops[LTH_OP_ID_LayoutCopy], build->diag);
	if (code == LTH_OK)
		code = lth_graph_groups(graph, build->arena, &build->groups, build->diag);
	if (code != LTH_OK)
		return code;
	build->accesses = lth_access_dense(graph, build->arena);
	build->is_view = lth_arena_array(build->arena, graph->num_nodes + 1, sizeof(bool));
	if (!build->accesses || !build->is_view)
		return lth_diag_fail(build->diag, LTH_OUT_OF_MEMORY, "groups", NULL, NULL, "no memory");
	if (!alias)
		lth_control_all_windows(graph, build->accesses, 0);
	return alias ? lth_alias_views(graph, concat, build->accesses, build->is_view, build->diag) : LTH_OK;
}

static enum lth_code generate(struct lth_variant *build)
{
	if (!lth_variant_needs_code(build))
		return LTH_OK;
	return lth_codegen_objects(&build->target, build->kernels, build->num_kernels, build->request->jobs,
				   build->request->kernel_cache, &build->code, build->diag);
}

/* The way of the data. */
static enum lth_code build_variant(struct lth_variant *build)
{
	static const struct {
		const char *name;
		enum lth_code (*run)(struct lth_variant *build);
	} stages[] = {
		{"import", import},	 {"passes", graph_passes}, {"group", group},	    {"lower", lth_variant_lower},
		{"memory", lth_variant_memory}, {"codegen", generate},	   {"emit", lth_variant_artifacts},
	};
	uint64_t first = lth_now_ns();
	for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++) {
		uint64_t start;
		enum lth_code code = begin(build, stages[i].name, &start);
		if (code == LTH_OK)
			code = stages[i].run(build);
		if (code == LTH_OK && !lth_arena_ok(build->arena))
			code = lth_diag_fail(build->diag, LTH_OUT_OF_MEMORY, stages[i].name, NULL,
					     "raise the worker's memory limit", "the compile's memory is exhausted");
		if (code != LTH_OK)
			return code;
		end(build, stages[i].name, start);
	}
	build->total_ms = (double)(lth_now_ns() - first) / 1e6;
	return LTH_OK;
}

static void free_build(struct lth_variant *build)
{
	lth_arena_destroy(&build->arena);
	lth_buf_free(&build->ir_text);
	lth_codegen_result_free(&build->code);
	for (size_t i = 0; i < build->num_artifacts; i++)
		lth_artifact_free(&build->artifacts[i]);
	free(build->artifacts);
	free(build->library);
	json_decref(build->options);
	json_decref(build->defaults);
	json_decref(build->measured);
}

/* The request's options, or each variant's overlay on them. */
static enum lth_code make_builds(const struct lth_compile_request *request, struct lth_variant **out_builds,
				 size_t *out_count, struct lth_diag *diag)
{
	const json_t *variants = json_object_get(request->options, "variants");
	size_t count = json_array_size(variants) ? json_array_size(variants) : 1;
	struct lth_variant *builds = calloc(count, sizeof(*builds));
	if (!builds)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "compile", NULL, NULL, "no memory");
	enum lth_code code = LTH_OK;
	for (size_t i = 0; i < count; i++) {
		builds[i].request = request;
		builds[i].diag = diag;
		builds[i].is_first = i == 0;
		builds[i].options = lth_options_overlay(request->options, json_array_get(variants, i));
		builds[i].defaults = lth_option_defaults();
		builds[i].arena = lth_arena_create(0);
		if (!builds[i].options || !builds[i].defaults || !builds[i].arena)
			code = lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "compile", NULL, NULL, "no memory");
	}
	*out_builds = builds;
	*out_count = count;
	return code;
}

/* Artifacts and kernels change hands: the first variant's artifacts, everyone's new kernels (each once). */
static enum lth_code take_result(struct lth_variant *builds, size_t count, struct lth_compile_result *out,
				 struct lth_diag *diag)
{
	size_t most = 0;
	for (size_t i = 0; i < count; i++)
		most += builds[i].code.num_objects;
	struct lth_kernel_object *kernels = calloc(most + 1, sizeof(*kernels));
	if (!kernels)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "compile", NULL, NULL, "no memory");
	size_t num_kernels = 0;
	for (size_t i = 0; i < count; i++)
		for (uint32_t k = 0; k < builds[i].code.num_objects; k++) {
			struct lth_codegen_object *object = &builds[i].code.objects[k];
			bool known = object->from_cache;
			for (size_t j = 0; j < num_kernels && !known; j++)
				known = strcmp(kernels[j].name, object->name) == 0;
			if (known)
				continue;
			kernels[num_kernels++] = (struct lth_kernel_object){
				.name = strdup(object->name), .data = object->data, .size = object->size};
			object->data = NULL;
		}
	out->artifacts = builds[0].artifacts;
	out->num_artifacts = builds[0].num_artifacts;
	builds[0].artifacts = NULL;
	builds[0].num_artifacts = 0;
	out->new_kernels = kernels;
	out->num_new_kernels = num_kernels;
	return LTH_OK;
}

enum lth_code lth_compile(const struct lth_compile_request *request, struct lth_compile_result *out_result,
			  struct lth_diag *diag)
{
	struct lth_variant *builds = NULL;
	struct lth_compile_result result = {0};
	size_t count = 0;
	json_t *description = lth_describe_words();
	enum lth_code code = lth_compile_options_check(request->options, json_object_get(description, "passes"),
						       json_object_get(description, "targets"), diag);
	json_decref(description);
	if (code == LTH_OK)
		code = make_builds(request, &builds, &count, diag);
	for (size_t i = 0; i < count && code == LTH_OK; i++) {
		code = lth_variant_resolve(&builds[i]);
		if (code == LTH_OK)
			code = build_variant(&builds[i]);
	}
	uint64_t start = 0;
	if (code == LTH_OK && lth_variant_int(&builds[0], LTH_OPTION_ID_MEASURE_RUNS) > 0) {
		code = begin(&builds[0], "measure", &start);
		if (code == LTH_OK)
			code = lth_variant_measure(builds, count);
		if (code == LTH_OK)
			end(&builds[0], "measure", start);
	}
	if (code == LTH_OK) {
		result.document = lth_variant_document(builds, count);
		if (!result.document)
			code = lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "compile", NULL, NULL, "no memory");
	}
	if (code == LTH_OK)
		code = take_result(builds, count, &result, diag);
	if (code == LTH_OK)
		*out_result = result;
	else
		json_decref(result.document);
	for (size_t i = 0; i < count; i++)
		free_build(&builds[i]);
	free(builds);
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
