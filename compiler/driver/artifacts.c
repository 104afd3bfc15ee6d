/* Artifacts: native files through emit/, texts from the stages that hold them. */
#include "compiler/driver/variant.h"

#include "compiler/emit/emit.h"
#include "config.h"
#include "runtime/base/io.h"
#include "runtime/kernels/builtin.h"
#include "runtime/memory/views.h"

#include <stdlib.h>
#include <string.h>

static enum lth_code add(struct lth_variant *build, const char *kind, void *data, size_t size)
{
	struct lth_artifact *list = realloc(build->artifacts, (build->num_artifacts + 1) * sizeof(*list));
	char *name = strdup(kind);
	if (!list || !name) {
		free(data);
		free(name);
		build->artifacts = list ? list : build->artifacts;
		return lth_diag_fail(build->diag, LTH_OUT_OF_MEMORY, "artifacts", NULL, NULL, "no memory");
	}
	build->artifacts = list;
	list[build->num_artifacts++] = (struct lth_artifact){.kind = name, .data = data, .size = size};
	return LTH_OK;
}

/* Takes a text. */
static enum lth_code add_text(struct lth_variant *build, const char *kind, struct lth_buf *text)
{
	if (!lth_buf_ok(text))
		return lth_diag_fail(build->diag, LTH_OUT_OF_MEMORY, "artifacts", NULL, NULL, "no memory for a text");
	char *data = text->data ? text->data : calloc(1, 1);
	size_t size = text->size;
	*text = (struct lth_buf){0};
	return add(build, kind, data, size);
}

static const struct lth_memory_view *find_view(const char *kind)
{
	for (int i = 0; i < LTH_NUM_MEMORY_VIEWS; i++)
		if (strcmp(lth_memory_views[i].artifact, kind) == 0)
			return &lth_memory_views[i];
	return NULL;
}

/* A view of the program's memory at the hint. */
static enum lth_code memory_view(struct lth_variant *build, const struct lth_memory_view *view, struct lth_buf *out)
{
	int64_t *symbols = calloc(build->program->num_symbols + 1, sizeof(*symbols));
	if (!symbols)
		return lth_diag_fail(build->diag, LTH_OUT_OF_MEMORY, view->artifact, NULL, NULL, "no memory");
	lth_symbols_at_hint(build->program, symbols);
	enum lth_code code = view->write(build->program, symbols, out, build->diag);
	free(symbols);
	return code;
}

static enum lth_code add_texts(struct lth_variant *build, const char *kind)
{
	struct lth_buf text = {0};
	enum lth_code code = LTH_OK;
	if (strcmp(kind, "ir") == 0) {
		lth_buf_append(&text, build->ir_text.data, build->ir_text.size);
	} else if (strcmp(kind, "program") == 0) {
		lth_program_print(build->program, &text);
	} else if (find_view(kind)) {
		code = memory_view(build, find_view(kind), &text);
	} else if (strcmp(kind, "loops") == 0) {
		for (uint32_t i = 0; i < build->num_kernels; i++) {
			lth_buf_printf(&text, "# %s: %s\n", build->kernels[i].name, build->kernels[i].fn->description);
			lth_loop_print(build->kernels[i].fn, &text);
			lth_buf_putc(&text, '\n');
		}
	} else {
		code = lth_codegen_text(&build->target, build->kernels, build->num_kernels,
					strcmp(kind, "llvm") == 0 ? LTH_CODEGEN_LLVM : LTH_CODEGEN_ASM, &text, build->diag);
	}
	if (code == LTH_OK)
		code = add_text(build, kind, &text);
	lth_buf_free(&text);
	return code;
}

/* The shared library that the program's C kernels open, or NULL. */
static const char *needed_library(const struct lth_program *program)
{
	const char *library = NULL;
	for (uint32_t i = 0; i < program->num_instrs && !library; i++)
		if (program->instrs[i].op == LTH_INSTR_BUILTIN)
			library = lth_builtin_library((enum lth_builtin)program->instrs[i].callee);
	return library;
}

/* What `inspect` shows of an executable. The same for the same input and options: no times. */
static char *info_text(const struct lth_variant *build)
{
	json_t *info = json_pack("{s:s, s:s, s:s, s:i, s:I}", "compiler", PACKAGE_VERSION, "target", build->target.cpu, "model",
				 build->graph->name ? build->graph->name : "", "opt_level", (int)build->opt_level, "opset",
				 (json_int_t)build->graph->opset);
	const char *library = needed_library(build->program);
	if (info && library)
		json_object_set_new(info, "needs", json_pack("[s]", library));
	char *text = info ? json_dumps(info, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	json_decref(info);
	return text;
}

/* Everything that the linker step needs, gathered once. */
struct linking {
	struct lth_buf program;
	struct lth_emit_piece *constants;
	char *info;
	const char **kernels;
	struct lth_emit_object *objects;
	struct lth_emit_input input;
};

static void free_linking(struct linking *l)
{
	lth_buf_free(&l->program);
	free(l->constants);
	free(l->info);
	free(l->kernels);
	free(l->objects);
}

static enum lth_code gather(struct lth_variant *build, struct linking *l)
{
	const struct lth_program *program = build->program;
	lth_program_encode(program, &l->program);
	l->constants = calloc((size_t)build->constants.count + 1, sizeof(*l->constants));
	l->info = info_text(build);
	l->kernels = calloc(program->num_kernels + 1, sizeof(*l->kernels));
	l->objects = calloc(build->code.num_objects + 1, sizeof(*l->objects));
	if (!lth_buf_ok(&l->program) || !l->constants || !l->info || !l->kernels || !l->objects)
		return lth_diag_fail(build->diag, LTH_OUT_OF_MEMORY, "emit", NULL, NULL, "no memory");
	for (uint32_t i = 0; i < build->constants.count; i++) {
		const struct lth_constant_piece *piece = &build->constants.pieces[i];
		l->constants[i] = (struct lth_emit_piece){piece->data, (size_t)piece->offset, (size_t)piece->bytes};
	}
	for (uint32_t i = 0; i < program->num_kernels; i++)
		l->kernels[i] = program->kernels[i].name;
	for (uint32_t i = 0; i < build->code.num_objects; i++)
		l->objects[i] = (struct lth_emit_object){build->code.objects[i].data, build->code.objects[i].size};
	l->input = (struct lth_emit_input){.program = l->program.data,
					   .program_size = l->program.size,
					   .constants = l->constants,
					   .num_constants = build->constants.count,
					   .constants_size = (size_t)build->constants.bytes,
					   .info = l->info,
					   .info_size = strlen(l->info),
					   .kernels = l->kernels,
					   .num_kernels = program->num_kernels,
					   .objects = l->objects,
					   .num_objects = build->code.num_objects,
					   .media = needed_library(program) != NULL,
					   .work_dir = build->request->work_dir};
	return LTH_OK;
}

/* The shared object for measuring: the artifact if there is one, else linked for this alone. */
static enum lth_code keep_library(struct lth_variant *build, struct linking *l)
{
	void *data = NULL;
	size_t size = 0;
	enum lth_code code = LTH_OK;
	const struct lth_artifact *so = NULL;
	for (size_t i = 0; i < build->num_artifacts; i++)
		if (strcmp(build->artifacts[i].kind, "so") == 0)
			so = &build->artifacts[i];
	if (!so)
		code = lth_emit_artifact(LTH_EMIT_SO, &l->input, &data, &size, build->diag);
	if (code != LTH_OK)
		return code;
	struct lth_buf path = {0};
	lth_buf_printf(&path, "%s/measure-%p.so", build->request->work_dir, (void *)build);
	build->library = path.data;
	code = lth_write_file(build->library, so ? so->data : data, so ? so->size : size, true, build->diag);
	free(data);
	return code;
}

enum lth_code lth_variant_artifacts(struct lth_variant *build)
{
	struct linking linking = {0};
	bool first = build->is_first, measures = lth_variant_int(build, LTH_OPTION_ID_MEASURE_RUNS) > 0;
	const json_t *kinds = lth_variant_option(build, LTH_OPTION_ID_ARTIFACTS);
	enum lth_code code = gather(build, &linking);
	for (size_t i = 0; i < json_array_size(kinds) && code == LTH_OK && first; i++) {
		const char *kind = json_string_value(json_array_get(kinds, i));
		enum lth_emit_kind native = lth_emit_kind_by_name(kind);
		if (native == LTH_NUM_EMITS) {
			code = add_texts(build, kind);
			continue;
		}
		void *data;
		size_t size;
		code = lth_emit_artifact(native, &linking.input, &data, &size, build->diag);
		if (code == LTH_OK)
			code = add(build, kind, data, size);
	}
	/* the picture that a result's timeline.svg is */
	if (code == LTH_OK && first && build->program->num_orientations && !lth_variant_wants(build, "timeline"))
		code = add_texts(build, "timeline");
	if (code == LTH_OK && measures)
		code = keep_library(build, &linking);
	free_linking(&linking);
	return code;
}
