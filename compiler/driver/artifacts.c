/* Artifacts: native files through emit/, texts from the stages that hold them. */
#include "compiler/driver/variant.h"

#include "compiler/emit/emit.h"
#include "config.h"
#include "runtime/base/io.h"
#include "runtime/kernels/builtin.h"
#include "runtime/memory/views.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void lth_artifact_free(struct lth_artifact *artifact)
{
	free(artifact->kind);
	if (artifact->path && artifact->data)
		munmap(artifact->data, artifact->size);
	else
		free(artifact->data);
	free(artifact->path);
	*artifact = (struct lth_artifact){0};
}

/* Takes data and path of `artifact`, also on failure. */
static enum lth_code add(struct lth_variant *variant, const char *kind, struct lth_artifact artifact)
{
	struct lth_artifact *list = realloc(variant->artifacts, (variant->num_artifacts + 1) * sizeof(*list));
	artifact.kind = strdup(kind);
	variant->artifacts = list ? list : variant->artifacts;
	if (!list || !artifact.kind) {
		lth_artifact_free(&artifact);
		return lth_diag_fail(variant->diag, LTH_OUT_OF_MEMORY, "artifacts", NULL, NULL, "no memory");
	}
	list[variant->num_artifacts++] = artifact;
	return LTH_OK;
}

/* Takes a text. */
static enum lth_code add_text(struct lth_variant *variant, const char *kind, struct lth_buf *text)
{
	if (!lth_buf_ok(text))
		return lth_diag_fail(variant->diag, LTH_OUT_OF_MEMORY, "artifacts", NULL, NULL, "no memory for a text");
	char *data = text->data ? text->data : calloc(1, 1);
	size_t size = text->size;
	*text = (struct lth_buf){0};
	return add(variant, kind, (struct lth_artifact){.data = data, .size = size});
}

static const struct lth_memory_view *find_view(const char *kind)
{
	for (int i = 0; i < LTH_NUM_MEMORY_VIEWS; i++)
		if (strcmp(lth_memory_views[i].artifact, kind) == 0)
			return &lth_memory_views[i];
	return NULL;
}

/* A view of the program's memory at the hint. */
static enum lth_code memory_view(struct lth_variant *variant, const struct lth_memory_view *view, struct lth_buf *out)
{
	int64_t *symbols = calloc(variant->program->num_symbols + 1, sizeof(*symbols));
	if (!symbols)
		return lth_diag_fail(variant->diag, LTH_OUT_OF_MEMORY, view->artifact, NULL, NULL, "no memory");
	lth_symbols_at_hint(variant->program, symbols);
	enum lth_code code = view->write(variant->program, symbols, out, variant->diag);
	free(symbols);
	return code;
}

static enum lth_code add_texts(struct lth_variant *variant, const char *kind)
{
	struct lth_buf text = {0};
	enum lth_code code = LTH_OK;
	if (strcmp(kind, "ir") == 0) {
		lth_buf_append(&text, variant->ir_text.data, variant->ir_text.size);
	} else if (strcmp(kind, "program") == 0) {
		lth_program_print(variant->program, &text);
	} else if (find_view(kind)) {
		code = memory_view(variant, find_view(kind), &text);
	} else if (strcmp(kind, "loops") == 0) {
		for (uint32_t i = 0; i < variant->num_kernels; i++) {
			lth_buf_printf(&text, "# %s: %s\n", variant->kernels[i].name,
				       variant->kernels[i].fn->description);
			lth_loop_print(variant->kernels[i].fn, &text);
			lth_buf_putc(&text, '\n');
		}
	} else {
		code = lth_codegen_text(&variant->target, variant->kernels, variant->num_kernels,
					strcmp(kind, "llvm") == 0 ? LTH_CODEGEN_LLVM : LTH_CODEGEN_ASM, &text,
					variant->diag);
	}
	if (code == LTH_OK)
		code = add_text(variant, kind, &text);
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
static char *info_text(const struct lth_variant *variant)
{
	json_t *info = json_pack("{s:s, s:s, s:s, s:i, s:I}", "compiler", PACKAGE_VERSION, "target",
				 variant->target.cpu, "model", variant->graph->name ? variant->graph->name : "",
				 "opt_level", (int)variant->opt_level, "opset", (json_int_t)variant->graph->opset);
	const char *library = needed_library(variant->program);
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

static enum lth_code gather(struct lth_variant *variant, struct linking *l)
{
	const struct lth_program *program = variant->program;
	lth_program_encode(program, &l->program);
	l->constants = calloc((size_t)variant->constants.count + 1, sizeof(*l->constants));
	l->info = info_text(variant);
	l->kernels = calloc(program->num_kernels + 1, sizeof(*l->kernels));
	l->objects = calloc(variant->code.num_objects + 1, sizeof(*l->objects));
	if (!lth_buf_ok(&l->program) || !l->constants || !l->info || !l->kernels || !l->objects)
		return lth_diag_fail(variant->diag, LTH_OUT_OF_MEMORY, "emit", NULL, NULL, "no memory");
	for (uint32_t i = 0; i < variant->constants.count; i++) {
		const struct lth_constant_piece *piece = &variant->constants.pieces[i];
		l->constants[i] = (struct lth_emit_piece){.data = piece->data,
							  .pack = piece->pack,
							  .offset = (size_t)piece->offset,
							  .size = (size_t)piece->bytes};
	}
	for (uint32_t i = 0; i < program->num_kernels; i++)
		l->kernels[i] = program->kernels[i].name;
	for (uint32_t i = 0; i < variant->code.num_objects; i++)
		l->objects[i] = (struct lth_emit_object){variant->code.objects[i].data, variant->code.objects[i].size};
	l->input = (struct lth_emit_input){.program = l->program.data,
					   .program_size = l->program.size,
					   .constants = l->constants,
					   .num_constants = variant->constants.count,
					   .constants_size = (size_t)variant->constants.bytes,
					   .info = l->info,
					   .info_size = strlen(l->info),
					   .kernels = l->kernels,
					   .num_kernels = program->num_kernels,
					   .objects = l->objects,
					   .num_objects = variant->code.num_objects,
					   .threads = variant->request->jobs,
					   .media = needed_library(program) != NULL,
					   .work_dir = variant->request->work_dir};
	return LTH_OK;
}

/* The shared object for measuring: the artifact if there is one, else linked for this alone. */
static enum lth_code keep_library(struct lth_variant *variant, struct linking *l)
{
	for (size_t i = 0; i < variant->num_artifacts && !variant->library; i++)
		if (strcmp(variant->artifacts[i].kind, "so") == 0)
			variant->library = strdup(variant->artifacts[i].path);
	if (variant->library)
		return LTH_OK;
	if (asprintf(&variant->library, "%s/measure-%p.so", variant->request->work_dir, (void *)variant) < 0) {
		variant->library = NULL;
		return lth_diag_fail(variant->diag, LTH_OUT_OF_MEMORY, "measure", NULL, NULL, "no memory");
	}
	return lth_emit_file(LTH_EMIT_SO, &l->input, variant->library, variant->diag);
}

static enum lth_code map_file(struct lth_artifact *artifact, struct lth_diag *diag)
{
	struct stat info;
	int fd = open(artifact->path, O_RDONLY | O_CLOEXEC);
	bool ok = fd >= 0 && fstat(fd, &info) == 0;
	if (ok) {
		artifact->size = (size_t)info.st_size;
		artifact->data = mmap(NULL, artifact->size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (artifact->data == MAP_FAILED)
			artifact->data = NULL;
	}
	int error = errno;
	if (fd >= 0)
		close(fd);
	if (artifact->data)
		return LTH_OK;
	return lth_diag_fail(diag, error == ENOMEM ? LTH_OUT_OF_MEMORY : LTH_IO_ERROR, artifact->path, NULL, NULL, "%s",
			     strerror(error));
}

/* What is loaded as it is (shared object, program) becomes a file of the work folder, named by the artifact's place. */
static enum lth_code add_native(struct lth_variant *variant, const char *kind, enum lth_emit_kind native,
				const struct lth_emit_input *input)
{
	struct lth_artifact artifact = {0};
	enum lth_code code = LTH_OK;
	if (native != LTH_EMIT_SO && native != LTH_EMIT_EXE)
		code = lth_emit_artifact(native, input, &artifact.data, &artifact.size, variant->diag);
	else if (asprintf(&artifact.path, "%s/artifact-%zu", variant->request->work_dir, variant->num_artifacts) < 0)
		code = lth_diag_fail(variant->diag, LTH_OUT_OF_MEMORY, "artifacts", NULL, NULL, "no memory");
	else
		code = lth_emit_file(native, input, artifact.path, variant->diag);
	if (code == LTH_OK && artifact.path)
		code = map_file(&artifact, variant->diag);
	if (code == LTH_OK)
		return add(variant, kind, artifact);
	lth_artifact_free(&artifact);
	return code;
}

enum lth_code lth_variant_artifacts(struct lth_variant *variant)
{
	struct linking linking = {0};
	bool first = variant->is_first, measures = lth_variant_int(variant, LTH_OPTION_ID_MEASURE_RUNS) > 0;
	const json_t *kinds = lth_variant_option(variant, LTH_OPTION_ID_ARTIFACTS);
	enum lth_code code = lth_variant_needs_code(variant) ? gather(variant, &linking) : LTH_OK;
	for (size_t i = 0; i < json_array_size(kinds) && code == LTH_OK && first; i++) {
		const char *kind = json_string_value(json_array_get(kinds, i));
		enum lth_emit_kind native = lth_emit_kind_by_name(kind);
		code = native == LTH_NUM_EMITS ? add_texts(variant, kind)
					       : add_native(variant, kind, native, &linking.input);
	}
	/* the picture that a result's timeline.svg is */
	if (code == LTH_OK && first && variant->program->num_orientations && !lth_variant_wants(variant, "timeline"))
		code = add_texts(variant, "timeline");
	if (code == LTH_OK && measures)
		code = keep_library(variant, &linking);
	free_linking(&linking);
	return code;
}
