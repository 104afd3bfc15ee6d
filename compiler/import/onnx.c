/* The ONNX importer's entry: bytes are checked, unpacked into the arena, and walked. See import.h. */
#include "compiler/import/onnx_internal.h"

#include <inttypes.h>
#include <string.h>

static void *arena_alloc(void *arena, size_t size)
{
	return lth_arena_alloc(arena, size);
}

static void arena_free(void *arena, void *memory)
{
	(void)arena;
	(void)memory; /* goes with the arena */
}

static bool is_main_domain(const char *domain)
{
	return !domain || !*domain || strcmp(domain, "ai.onnx") == 0;
}

/* An operator set that is newer than what is known may mean something else by the same names. */
static enum lth_code check_opsets(struct lth_importer *importer, const char *place, Lth__Onnx__OpsetId **sets,
				  size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *domain = sets[i]->domain ? sets[i]->domain : "";
		if (sets[i]->version < 1)
			return lth_importer_fail(importer, LTH_INVALID_MODEL, place, "versions of at least 1",
						 "operator set '%s' version %" PRId64, domain, sets[i]->version);
		if (is_main_domain(domain) && sets[i]->version > LTH_NEWEST_OPSET)
			return lth_importer_fail(importer, LTH_UNSUPPORTED, place, "operator sets of ai.onnx up to 28",
						 "operator set version %" PRId64, sets[i]->version);
	}
	return LTH_OK;
}

static enum lth_code unpack(const void *bytes, size_t size, struct lth_arena *arena, const Lth__Onnx__Model **out,
			    struct lth_importer *importer)
{
	ProtobufCAllocator allocator = {arena_alloc, arena_free, arena};
	const Lth__Onnx__Model *model = lth__onnx__model__unpack(&allocator, size, bytes);
	if (!model)
		return lth_arena_ok(arena)
			       ? lth_importer_fail(importer, LTH_INVALID_MODEL, "model", "fields of ONNX's wire types",
						   "a field of another wire type")
			       : lth_importer_memory(importer);
	if (!model->graph)
		return lth_importer_fail(importer, LTH_INVALID_MODEL, "model", "a graph", "a model without one");
	if (!model->has_ir_version || model->ir_version < 1)
		return lth_importer_fail(importer, LTH_INVALID_MODEL, "model", "an IR version of at least 1",
					 "IR version %" PRId64, model->ir_version);
	enum lth_code code = check_opsets(importer, "model", model->opset_import, model->n_opset_import);
	for (size_t i = 0; i < model->n_functions && code == LTH_OK; i++) {
		const Lth__Onnx__Function *function = model->functions[i];
		code = check_opsets(importer, function->name ? function->name : "function", function->opset_import,
				    function->n_opset_import);
	}
	if (code == LTH_OK)
		*out = model;
	return code;
}

static int64_t main_opset(const Lth__Onnx__Model *model)
{
	for (size_t i = 0; i < model->n_opset_import; i++) {
		const char *domain = model->opset_import[i]->domain;
		if (is_main_domain(domain))
			return model->opset_import[i]->version;
	}
	return 1;
}

enum lth_code lth_import_onnx(const void *model, size_t size, const struct lth_compile_file *files, size_t num_files,
			      const struct lth_import_options *options, struct lth_arena *arena,
			      struct lth_graph **out_graph, struct lth_diag *diag)
{
	struct lth_onnx onnx = {.base = {.files = files, .num_files = num_files, .fault = LTH_INVALID_MODEL},
				.prefix = ""};
	struct lth_onnx_scope scope = {.region = 0};
	enum lth_code code;
	if ((code = lth_onnx_check_wire(model, size, diag)) ||
	    (code = lth_importer_begin(&onnx.base, arena, options, diag)) ||
	    (code = unpack(model, size, arena, &onnx.model, &onnx.base)) || (code = lth_onnx_functions(&onnx)))
		return code;
	onnx.opsets = onnx.model->opset_import;
	onnx.num_opsets = onnx.model->n_opset_import;
	onnx.base.graph->name = onnx.model->graph->name ? onnx.model->graph->name : "";
	onnx.base.graph->opset = main_opset(onnx.model);
	if ((code = lth_onnx_graph(&onnx, onnx.model->graph, &scope)) || (code = lth_importer_end(&onnx.base)))
		return code;
	*out_graph = onnx.base.graph;
	return LTH_OK;
}
