/* What the program around a model does: opens it, reads inputs, runs or measures, writes outputs. See exe.h and
 * options.def. */
#include "runtime/exe/exe.h"
#include "runtime/tensor/element.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum lth_code lth_exe_open(struct lth_exe *exe, lathe_query_fn query, struct lth_diag *diag)
{
	struct lathe_error error;
	exe->api = query(LATHE_ABI_VERSION);
	if (!exe->api)
		return lth_diag_fail(diag, LTH_BAD_EXECUTABLE, "model", NULL, "compile the model again",
				     "one that does not speak version %d of lathe.h", LATHE_ABI_VERSION);
	if (exe->api->open(&exe->executable, &error) != 0)
		return lth_exe_error(diag, &error);
	exe->description = exe->api->describe(exe->executable);
	exe->symbols = calloc(exe->description->num_symbols + 1, sizeof(*exe->symbols));
	exe->files = calloc(exe->description->num_inputs + 1, sizeof(*exe->files));
	exe->values = calloc(exe->description->num_inputs + 1, sizeof(*exe->values));
	exe->inputs = calloc(exe->description->num_inputs + 1, sizeof(*exe->inputs));
	exe->outputs = calloc(exe->description->num_outputs + 1, sizeof(*exe->outputs));
	if (!exe->symbols || !exe->files || !exe->values || !exe->inputs || !exe->outputs)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "model", NULL, NULL, "no memory for its inputs");
	return LTH_OK;
}

enum lth_code lth_exe_program(const struct lth_exe *exe, const void **out_program, uint64_t *out_bytes,
			      struct lth_diag *diag)
{
	if (exe->api->bytes <= offsetof(struct lathe_api, program))
		return lth_diag_fail(diag, LTH_BAD_EXECUTABLE, "model", "one that tells its program",
				     "compile the model again", "one made by Lathe %s", exe->api->runtime);
	*out_program = exe->api->program(exe->executable, out_bytes);
	return LTH_OK;
}

void lth_exe_close(struct lth_exe *exe)
{
	for (uint32_t i = 0; exe->files && i < exe->description->num_inputs; i++)
		lth_host_tensor_free(&exe->files[i]);
	for (uint32_t i = 0; exe->values && i < exe->description->num_inputs; i++)
		lth_value_free(&exe->values[i]);
	if (exe->context)
		exe->api->context_destroy(&exe->context);
	if (exe->executable)
		exe->api->close(&exe->executable);
	free(exe->symbols);
	free(exe->files);
	free(exe->values);
	free(exe->inputs);
	free(exe->outputs);
}

static enum lth_code make_context(struct lth_exe *exe, const struct lth_exe_options *options, struct lth_diag *diag)
{
	struct lathe_options wanted = {
		.bytes = sizeof(wanted), .threads = (uint32_t)options->threads,
		.profile = options->given[LTH_EXE_PROFILE],
	};
	struct lathe_error error;
	int code = exe->api->context_create(exe->executable, &wanted, &exe->context, &error);
	return code ? lth_exe_error(diag, &error) : LTH_OK;
}

static enum lth_code write_output(const struct lth_exe *exe, uint32_t number, const char *path, struct lth_diag *diag)
{
	const char *type = exe->description->output_types[number], *name = exe->description->outputs[number].name;
	if (type)
		return lth_value_write_file(path, name, type, exe->outputs[number].data, diag);
	struct lth_host_tensor t = lth_tensor_to_host(&exe->outputs[number]);
	t.name = strdup(name);
	enum lth_code code = lth_host_write_file(path, &t, diag);
	free(t.name);
	return code;
}

static enum lth_code write_outputs(const struct lth_exe *exe, const struct lth_exe_options *options,
				   struct lth_diag *diag)
{
	if (mkdir(options->output, 0777) != 0 && errno != EEXIST)
		return lth_diag_fail(diag, LTH_IO_ERROR, options->output, "a folder to write to", NULL, "%s",
				     strerror(errno));
	enum lth_code code = LTH_OK;
	for (uint32_t i = 0; i < exe->description->num_outputs && code == LTH_OK; i++) {
		const char *type = exe->description->output_types[i];
		char path[4096];
		int length = snprintf(path, sizeof(path), "%s/output_%u.%s", options->output, i,
				      options->given[LTH_EXE_NPY] && !type ? "npy" : "pb");
		if (length < 0 || (size_t)length >= sizeof(path))
			return lth_diag_fail(diag, LTH_INVALID_OPTION, "--output", "a shorter path", NULL, "too long");
		code = write_output(exe, i, path, diag);
	}
	return code;
}

/* An output's name, type and dims, for people. */
static void print_summary(const struct lth_exe *exe)
{
	for (uint32_t i = 0; i < exe->description->num_outputs; i++) {
		const struct lathe_tensor *t = &exe->outputs[i];
		if (exe->description->output_types[i]) {
			struct lth_buf text = {0};
			lth_value_print(t->data, &text);
			printf("%s: %s\n", exe->description->outputs[i].name, lth_buf_text(&text));
			lth_buf_free(&text);
			continue;
		}
		printf("%s: %s[", exe->description->outputs[i].name, lth_dtype_text(lth_dtype_by_onnx(t->dtype)));
		for (uint32_t axis = 0; axis < t->rank; axis++)
			printf("%s%lld", axis ? ", " : "", (long long)t->dims[axis]);
		int64_t count = 0;
		bool counted = lth_host_count(t->rank, t->dims, &count) && t->dtype == LATHE_F32;
		printf("]");
		for (int64_t k = 0; counted && k < count && k < 8; k++)
			printf(" %g", (double)((const float *)t->data)[k]);
		printf("%s\n", counted && count > 8 ? " ..." : "");
	}
}

/* {"outputs":[{"name","dtype","dims","values"}]}; of what is no tensor, the text that people are shown. */
static void print_json(const struct lth_exe *exe, struct lth_buf *out)
{
	lth_buf_puts(out, "{\"outputs\":[");
	for (uint32_t i = 0; i < exe->description->num_outputs; i++) {
		struct lth_buf text = {0};
		lth_buf_puts(out, i ? ",{\"name\":" : "{\"name\":");
		lth_buf_quote(out, exe->description->outputs[i].name);
		lth_buf_putc(out, ',');
		if (exe->description->output_types[i]) {
			lth_value_print(exe->outputs[i].data, &text);
			lth_buf_puts(out, "\"text\":");
			lth_buf_quote(out, lth_buf_text(&text));
		} else {
			struct lth_host_tensor tensor = lth_tensor_to_host(&exe->outputs[i]);
			lth_host_json_members(&tensor, out);
		}
		lth_buf_putc(out, '}');
		lth_buf_free(&text);
	}
	lth_buf_puts(out, "]}\n");
}

static enum lth_code run(struct lth_exe *exe, const struct lth_exe_options *options, struct lth_buf *out,
			 struct lth_diag *diag)
{
	const struct lathe_description *d = exe->description;
	struct lathe_error error;
	if (exe->api->run(exe->context, exe->inputs, d->num_inputs, exe->outputs, d->num_outputs, &error) != 0)
		return lth_exe_error(diag, &error);
	enum lth_code code = LTH_OK;
	if (options->output)
		code = write_outputs(exe, options, diag);
	if (options->given[LTH_EXE_JSON])
		print_json(exe, out);
	else if (!options->output)
		print_summary(exe);
	for (uint32_t i = 0; i < d->num_outputs; i++)
		exe->api->release(exe->context, &exe->outputs[i]);
	return code;
}

static enum lth_code run_or_bench(struct lth_exe *exe, const struct lth_exe_options *options, struct lth_buf *out,
				  struct lth_diag *diag)
{
	enum lth_code code;
	if (options->given[LTH_EXE_BENCH] && options->num_inputs == 0)
		code = lth_exe_random_inputs(exe, (uint64_t)options->seed, diag);
	else
		code = lth_exe_read_inputs(exe, options, diag);
	if (code == LTH_OK)
		code = make_context(exe, options, diag);
	if (code == LTH_OK)
		code = options->given[LTH_EXE_BENCH] ? lth_exe_bench(exe, options, out, diag)
						     : run(exe, options, out, diag);
	return code;
}

static enum lth_code execute(struct lth_exe *exe, const struct lth_exe_options *options, lathe_query_fn query,
			     struct lth_buf *out, struct lth_diag *diag)
{
	enum lth_code code = lth_exe_open(exe, query, diag);
	if (code != LTH_OK)
		return code;
	if (options->given[LTH_EXE_HELP]) {
		lth_exe_help(options, exe->description, out);
		return LTH_OK;
	}
	if (options->given[LTH_EXE_VERSION]) {
		lth_buf_printf(out, "lathe %s\n", exe->api->runtime);
		return LTH_OK;
	}
	if (options->given[LTH_EXE_INFO]) {
		lth_buf_append(out, exe->description->info, exe->description->info_bytes);
		lth_buf_putc(out, '\n');
		return LTH_OK;
	}
	if (options->given[LTH_EXE_PROGRAM]) {
		uint64_t bytes;
		const void *program;
		code = lth_exe_program(exe, &program, &bytes, diag);
		if (code == LTH_OK)
			lth_buf_append(out, program, bytes);
		return code;
	}
	code = lth_exe_bind_dims(exe, options, diag);
	if (code != LTH_OK)
		return code;
	return options->given[LTH_EXE_DESCRIBE] ? lth_exe_describe(exe, out, diag)
						: run_or_bench(exe, options, out, diag);
}

/* One line for people, or with --json the same parts as an object on standard output. */
static void print_problem(const char *program, const struct lth_exe_options *options, const struct lth_diag *diag)
{
	char line[4096];
	struct lth_buf text = {0};
	if (!options->given[LTH_EXE_JSON]) {
		fprintf(stderr, "%s: %s\n", program, lth_diag_line(diag, line, sizeof(line)));
		return;
	}
	const struct {
		const char *key, *value;
	} parts[] = {{"title", lth_code_text(diag->code)}, {"place", diag->place},   {"found", diag->found},
		     {"expected", diag->expected},         {"advice", diag->advice}};
	lth_buf_printf(&text, "{\"type\":\"about:lathe:%s\",\"exit\":%d", lth_code_slug(diag->code),
		       lth_code_exit(diag->code));
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		lth_buf_printf(&text, ",\"%s\":", parts[i].key);
		lth_buf_quote(&text, parts[i].value);
	}
	lth_buf_puts(&text, "}\n");
	fputs(lth_buf_text(&text), stdout);
	lth_buf_free(&text);
}

int lth_exe_main(int argc, char **argv, lathe_query_fn query)
{
	struct lth_exe_options options = {0};
	struct lth_exe exe = {0};
	struct lth_buf out = {0};
	struct lth_diag diag = {0};
	const char *name = argc ? argv[0] : "model";
	enum lth_code code = lth_exe_parse(argc, argv, &options, &diag);
	if (code == LTH_OK)
		code = execute(&exe, &options, query, &out, &diag);
	if (code == LTH_OK && !lth_buf_ok(&out))
		code = lth_diag_fail(&diag, LTH_OUT_OF_MEMORY, "output", NULL, NULL, "no memory to print it");
	if (code == LTH_OK && (fwrite(lth_buf_text(&out), 1, out.size, stdout) != out.size || fflush(stdout) != 0))
		code = lth_diag_fail(&diag, LTH_IO_ERROR, "standard output", NULL, NULL, "%s", strerror(errno));
	if (code != LTH_OK)
		print_problem(name, &options, &diag);
	lth_buf_free(&out);
	lth_exe_close(&exe);
	return lth_code_exit(code);
}
