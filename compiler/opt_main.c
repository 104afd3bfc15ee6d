/* lathe-opt: for people who work on Lathe. Reads a model (ONNX, JSON graph IR or text IR), infers, runs named passes,
 * and prints the graph. Golden tests are made of it.
 *
 * lathe-opt [--format onnx|json|text] [--passes A,B] [--dim NAME=MIN:MAX:HINT:xMULTIPLE] [--file NAME=PATH]
 *           [--no-infer] [--with-data] [--quiet] FILE
 * lathe-opt --operators: prints the reference page of the operators */
#include "compiler/import/import.h"
#include "compiler/ops/op.h"
#include "compiler/passes/pass.h"
#include "runtime/base/io.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DIMS = 64, MAX_FILES = 64 };

struct arguments {
	const char *path, *format, *passes;
	struct lth_import_dim dims[MAX_DIMS];
	struct lth_compile_file files[MAX_FILES];
	size_t num_dims, num_files;
	bool no_infer, with_data, quiet, operators;
};

static enum lth_code wrong(struct lth_diag *diag, const char *option, const char *expected, const char *found)
{
	return lth_diag_fail(diag, LTH_INVALID_OPTION, option, expected, NULL, "'%s'", found);
}

/* One field of a range; what is empty keeps its default. */
static bool parse_field(const char *text, size_t length, int64_t *out)
{
	char copy[32], *end;
	if (length == 0)
		return true;
	if (length >= sizeof(copy))
		return false;
	memcpy(copy, text, length);
	copy[length] = 0;
	errno = 0;
	*out = strtoll(copy, &end, 10);
	return !errno && !*end && end != copy;
}

/* NAME=MIN:MAX:HINT:xMULTIPLE; a max of * is none, a lone number is both ends. The name may hold '='. */
static enum lth_code parse_dim(struct arguments *arguments, char *text, struct lth_diag *diag)
{
	static const char form[] = "NAME=MIN:MAX:HINT:xMULTIPLE";
	struct lth_import_dim dim = LTH_IMPORT_DIM_DEFAULT;
	char *equals = strrchr(text, '=');
	if (!equals || equals == text || arguments->num_dims == MAX_DIMS)
		return wrong(diag, "--dim", form, text);
	int64_t *fields[] = {&dim.min, &dim.max, &dim.hint};
	size_t field = 0;
	for (const char *at = equals + 1;; field++) {
		size_t length = strcspn(at, ":");
		bool multiple = *at == 'x';
		int64_t *target = multiple ? &dim.multiple : field < 3 ? fields[field] : NULL;
		bool open = field == 1 && length == 1 && *at == '*'; /* as it is */
		if (!target || (!open && !parse_field(at + multiple, length - multiple, target)))
			return wrong(diag, "--dim", form, text);
		at += length;
		if (!*at)
			break;
		at++;
	}
	if (field == 0)
		dim.max = dim.min;
	*equals = 0;
	dim.name = text;
	arguments->dims[arguments->num_dims++] = dim;
	return LTH_OK;
}

static enum lth_code parse_file(struct arguments *arguments, char *text, struct lth_diag *diag)
{
	char *equals = strchr(text, '='), *data;
	size_t size;
	if (!equals || arguments->num_files == MAX_FILES)
		return wrong(diag, "--file", "NAME=PATH", text);
	enum lth_code code = lth_read_file(equals + 1, 0, &data, &size, diag);
	if (code)
		return code;
	*equals = 0;
	arguments->files[arguments->num_files++] = (struct lth_compile_file){text, data, size};
	return LTH_OK;
}

static enum lth_code parse_arguments(int argc, char **argv, struct arguments *arguments, struct lth_diag *diag)
{
	static const char *const known[] = {"--format",   "--passes",    "--dim",  "--file",
					    "--no-infer", "--with-data", "--quiet", "--operators"};
	enum lth_code code = LTH_OK;
	for (int i = 1; i < argc && code == LTH_OK; i++) {
		char *word = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
		bool takes_value = strcmp(word, "--format") == 0 || strcmp(word, "--passes") == 0 ||
				   strcmp(word, "--dim") == 0 || strcmp(word, "--file") == 0;
		if (takes_value && !value)
			return wrong(diag, word, "a value", "");
		i += takes_value;
		if (strcmp(word, "--format") == 0) {
			arguments->format = value;
		} else if (strcmp(word, "--passes") == 0) {
			arguments->passes = value;
		} else if (strcmp(word, "--dim") == 0) {
			code = parse_dim(arguments, value, diag);
		} else if (strcmp(word, "--file") == 0) {
			code = parse_file(arguments, value, diag);
		} else if (strcmp(word, "--no-infer") == 0) {
			arguments->no_infer = true;
		} else if (strcmp(word, "--with-data") == 0) {
			arguments->with_data = true;
		} else if (strcmp(word, "--quiet") == 0) {
			arguments->quiet = true;
		} else if (strcmp(word, "--operators") == 0) {
			arguments->operators = true;
		} else if (word[0] == '-' && word[1]) {
			const char *near = lth_nearest(word, known, sizeof(known) / sizeof(known[0]));
			code = wrong(diag, "arguments", near ? near : "a known option", word);
		} else {
			arguments->path = word;
		}
	}
	if (code == LTH_OK && !arguments->path && !arguments->operators)
		code = wrong(diag, "arguments", "a file", "");
	return code;
}

static const char *format_of(const struct arguments *arguments)
{
	const char *dot = strrchr(arguments->path, '.');
	if (arguments->format)
		return arguments->format;
	return dot && strcmp(dot, ".onnx") == 0 ? "onnx" : dot && strcmp(dot, ".json") == 0 ? "json" : "text";
}

static enum lth_code read_graph(const struct arguments *arguments, const char *data, size_t size,
				struct lth_arena *arena, struct lth_graph **out, struct lth_diag *diag)
{
	const struct lth_import_options options = {arguments->dims, arguments->num_dims, false};
	const char *format = format_of(arguments);
	if (strcmp(format, "onnx") == 0)
		return lth_import_onnx(data, size, arguments->files, arguments->num_files, &options, arena, out, diag);
	if (strcmp(format, "json") == 0)
		return lth_import_json(data, size, arguments->files, arguments->num_files, &options, arena, out, diag);
	if (strcmp(format, "text") == 0)
		return lth_graph_parse(data, size, arena, out, diag);
	return wrong(diag, "--format", "onnx, json or text", format);
}

/* The graph passes of a comma-separated list, in the order given, each followed by the verifier. */
static enum lth_code run_passes(struct lth_graph *graph, const char *list, struct lth_diag *diag)
{
	const struct lth_pass_context context = {.opt_level = 2, .vector_lanes = 8};
	enum lth_code code = LTH_OK;
	while (*list && code == LTH_OK) {
		char name[64];
		size_t length = strcspn(list, ",");
		snprintf(name, sizeof(name), "%.*s", (int)length, list);
		list += length + (list[length] == ',');
		const char *names[] = {name};
		struct lth_pass_set set; /* asked for by name: an unknown one is named with its nearest */
		code = lth_pass_select(0, names, 1, NULL, 0, &set, diag);
		enum lth_pass_id id = lth_pass_find(name);
		if (code)
			return code;
		if (!lth_passes[id].run)
			return wrong(diag, "--passes", "graph passes", name);
		code = lth_passes[id].run(graph, &context, diag);
		if (code == LTH_OK)
			code = lth_graph_verify(graph, diag);
	}
	return code;
}

static enum lth_code work(const struct arguments *arguments, const char *data, size_t size, struct lth_arena *arena,
			  struct lth_diag *diag)
{
	struct lth_graph *graph;
	struct lth_buf text = {0};
	enum lth_code code = read_graph(arguments, data, size, arena, &graph, diag);
	if (code == LTH_OK && !arguments->no_infer)
		code = lth_infer_graph(graph, diag);
	if (code == LTH_OK)
		code = lth_graph_verify(graph, diag);
	if (code == LTH_OK && arguments->passes)
		code = run_passes(graph, arguments->passes, diag);
	if (code)
		return code;
	if (arguments->quiet)
		return LTH_OK;
	lth_graph_print(graph, arguments->with_data, &text);
	if (!lth_buf_ok(&text))
		code = lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "print", NULL, NULL, "no memory left");
	else
		fwrite(text.data, 1, text.size, stdout);
	lth_buf_free(&text);
	return code;
}

static enum lth_code print_operators(struct lth_diag *diag)
{
	struct lth_buf text = {0};
	lth_op_reference(&text);
	bool ok = lth_buf_ok(&text) && fwrite(text.data, 1, text.size, stdout) == text.size;
	lth_buf_free(&text);
	return ok ? LTH_OK : lth_diag_fail(diag, LTH_IO_ERROR, "print", NULL, NULL, "writing failed");
}

int main(int argc, char **argv)
{
	struct arguments arguments = {.path = NULL};
	struct lth_diag diag = {.code = LTH_OK};
	struct lth_arena *arena = lth_arena_create(0);
	char *data = NULL, line[4096];
	size_t size = 0;
	enum lth_code code = arena ? parse_arguments(argc, argv, &arguments, &diag) : LTH_OUT_OF_MEMORY;
	if (code == LTH_OK && arguments.operators)
		code = print_operators(&diag);
	if (code == LTH_OK && arguments.path)
		code = lth_read_file(arguments.path, 0, &data, &size, &diag);
	if (code == LTH_OK && arguments.path)
		code = work(&arguments, data, size, arena, &diag);
	if (code)
		fprintf(stderr, "lathe-opt: %s\n", lth_diag_line(&diag, line, sizeof(line)));
	for (size_t i = 0; i < arguments.num_files; i++)
		free((char *)(uintptr_t)arguments.files[i].data);
	free(data);
	lth_arena_destroy(&arena);
	return lth_code_exit(code);
}
