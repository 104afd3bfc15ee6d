/* lathe bisect: which node a pass computes wrongly. The reference is the same model at opt_level 0 (or with the options
 * of --reference). First all values are made outputs in one compile, which finds wrong kernels; if they all agree,
 * making them outputs hid the fault (nothing fuses past an output), and single values are searched, each as the only
 * output of a model cut down to it, by halves: a value computed from a wrong one is taken to be wrong too. */
#include "api/cli/executable.h"
#include "api/cli/onnx_cut.h"
#include "api/cli/verify.h"
#include "runtime/base/io.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct bisect {
	struct lth_cli *cli;
	struct lth_cli_model model;
	struct lth_onnx_scan scan;
	const char *query, *reference;
	struct lth_cli_tolerance tolerance;
	unsigned compiles;
};

/* What comparing two builds found. Travels through a pipe in one piece. */
struct difference {
	enum lth_code code; /* of a build that does not run */
	bool differs;
	uint32_t output;
	char reason[1024];
};

/* --- in a child: builds may crash */
static void run_build(const struct bisect *b, const struct lathe_reply *library, struct lth_exe *exe,
		      struct lth_diag *diag)
{
	lathe_query_fn query;
	struct lathe_options options = {.bytes = sizeof(options), .threads = 1};
	struct lathe_error error;
	if (lth_cli_load_bytes(b->cli, "build", library->body, library->bytes, &query) != LTH_OK) {
		*diag = b->cli->diag;
		return;
	}
	if (lth_exe_open(exe, query, diag) != LTH_OK)
		return;
	uint32_t count = exe->description->num_inputs;
	if (count != b->cli->num_arguments - 1) {
		lth_diag_fail(diag, LTH_BAD_INPUT, "INPUT", "a file for every input", NULL, "%zu files for %u inputs",
			      b->cli->num_arguments - 1, count);
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		if (lth_exe_read_input(exe, i, b->cli->arguments[i + 1], diag) != LTH_OK)
			return;
	if (exe->api->context_create(exe->executable, &options, &exe->context, &error) != 0 ||
	    exe->api->run(exe->context, exe->inputs, count, exe->outputs, exe->description->num_outputs, &error) != 0)
		lth_exe_error(diag, &error);
}

/* Whether output `number` of one build is right by the other's. */
static bool equal(const struct bisect *b, const struct lth_exe *left, const struct lth_exe *right, uint32_t number,
		  struct difference *out)
{
	const struct lathe_tensor *expected = &left->outputs[number], *got = &right->outputs[number];
	if (left->description->output_types[number])
		return lth_cli_verify_value(got->data, expected->data, &b->tolerance, out->reason, sizeof(out->reason));
	struct lth_host_tensor x = lth_tensor_to_host(expected), y = lth_tensor_to_host(got);
	return lth_cli_verify(&y, &x, &b->tolerance, out->reason, sizeof(out->reason));
}

static void compare_builds(const struct bisect *b, const struct lathe_reply *reference,
			   const struct lathe_reply *subject, struct difference *out)
{
	struct lth_exe left = {0}, right = {0};
	struct lth_diag diag = {0};
	run_build(b, reference, &left, &diag);
	if (diag.code == LTH_OK)
		run_build(b, subject, &right, &diag);
	out->code = diag.code;
	if (diag.code != LTH_OK) {
		lth_diag_line(&diag, out->reason, sizeof(out->reason));
		return;
	}
	for (uint32_t i = 0; i < left.description->num_outputs && !out->differs; i++) {
		out->output = i;
		out->differs = !equal(b, &left, &right, i, out);
	}
}

static enum lth_code compare_in_child(const struct bisect *b, const struct lathe_reply *reference,
				      const struct lathe_reply *subject, struct difference *out)
{
	int ends[2], status = 0;
	struct difference found = {0};
	if (pipe(ends) != 0)
		return lth_diag_fail(&b->cli->diag, LTH_IO_ERROR, "bisect", NULL, NULL, "pipe: %s", strerror(errno));
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		struct rlimit none = {0, 0};
		setrlimit(RLIMIT_CORE, &none);
		compare_builds(b, reference, subject, &found);
		_exit(lth_write_full(ends[1], &found, sizeof(found)) ? 0 : 1);
	}
	close(ends[1]);
	bool complete = child > 0 && lth_read_full(ends[0], &found, sizeof(found));
	close(ends[0]);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (!complete) { /* a crash is a difference, too */
		found = (struct difference){.differs = true};
		snprintf(found.reason, sizeof(found.reason), "the run died of signal %d",
			 WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	}
	*out = found;
	return LTH_OK;
}

/* --- builds */
static enum lth_code build(struct bisect *b, const char *bytes, size_t size, const char *query, struct lathe_reply *out)
{
	struct lathe_problem problem;
	struct lathe_compile compile = {
		.model = bytes,
		.model_bytes = size,
		.files = b->model.files,
		.num_files = b->model.num_files,
		.query = query,
		.accept = "application/octet-stream",
		.no_cache = lth_cli_has(b->cli, LTH_CLI_NO_CACHE),
	};
	b->compiles++;
	int code = lathe_client_compile(b->cli->client, &compile, out, &problem);
	lth_cli_clear_progress(b->cli);
	return code ? lth_cli_problem(b->cli, &problem) : LTH_OK;
}

static enum lth_code compare_model(struct bisect *b, const char *bytes, size_t size, struct difference *out)
{
	struct lathe_reply reference = {0}, subject = {0};
	enum lth_code code = build(b, bytes, size, b->reference, &reference);
	if (code == LTH_OK)
		code = build(b, bytes, size, b->query, &subject);
	if (code == LTH_OK)
		code = compare_in_child(b, &reference, &subject, out);
	lathe_reply_free(&reference);
	lathe_reply_free(&subject);
	return code;
}

static enum lth_code compare_values(struct bisect *b, size_t begin, size_t end, struct difference *out)
{
	struct lth_buf cut = {0};
	enum lth_code code = lth_onnx_cut(&b->scan, begin, end, &cut, &b->cli->diag);
	if (code == LTH_OK)
		code = compare_model(b, lth_buf_text(&cut), cut.size, out);
	if (code == LTH_OK && out->code != LTH_OK)
		code = lth_diag_fail(&b->cli->diag, out->code, b->scan.values[end - 1].name, NULL, NULL, "%s",
				     out->reason);
	lth_buf_free(&cut);
	return code;
}

/* --- the search. *out_value is num_values when none differs. */
static enum lth_code search_by_halves(struct bisect *b, size_t *out_value, struct difference *out)
{
	size_t low = 0, high = b->scan.num_values - 1; /* the first that differs lies in [low, high] */
	struct difference last = {0};
	enum lth_code code = compare_values(b, high, high + 1, &last);
	*out_value = b->scan.num_values;
	if (code != LTH_OK || !last.differs)
		return code;
	*out = last;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		struct difference found = {0};
		code = compare_values(b, middle, middle + 1, &found);
		if (code != LTH_OK)
			return code;
		if (lth_cli_has(b->cli, LTH_CLI_VERBOSE))
			fprintf(stderr, "%s: %s\n", b->scan.values[middle].name,
				found.differs ? found.reason : "equal");
		if (found.differs) {
			high = middle;
			*out = found;
		} else {
			low = middle + 1;
		}
	}
	*out_value = high;
	return LTH_OK;
}

static enum lth_code search(struct bisect *b, size_t *out_value, struct difference *out)
{
	struct difference all = {0};
	enum lth_code code = compare_values(b, 0, b->scan.num_values, &all);
	if (code == LTH_OK && all.differs) {
		*out_value = all.output;
		*out = all;
		return LTH_OK;
	}
	b->cli->diag = (struct lth_diag){0}; /* a value that cannot be an output: single ones may do */
	return search_by_halves(b, out_value, out);
}

/* --- reporting */
static enum lth_code write_cut(struct bisect *b, size_t value)
{
	struct lth_buf cut = {0};
	const char *output = lth_cli_value(b->cli, LTH_CLI_OUTPUT);
	enum lth_code code = lth_onnx_cut(&b->scan, value, value + 1, &cut, &b->cli->diag);
	if (code == LTH_OK)
		code = lth_write_file(output, lth_buf_text(&cut), cut.size, false, &b->cli->diag);
	lth_buf_free(&cut);
	return code;
}

static void report(const struct bisect *b, size_t value, const struct difference *found)
{
	if (value == b->scan.num_values) {
		if (lth_cli_has(b->cli, LTH_CLI_JSON))
			printf("{\"differs\":false,\"values\":%zu,\"compiles\":%u}\n", b->scan.num_values, b->compiles);
		else
			printf("no value differs: %zu values of %u compiles compared\n", b->scan.num_values,
			       b->compiles);
		return;
	}
	const struct lth_onnx_value *v = &b->scan.values[value];
	if (lth_cli_has(b->cli, LTH_CLI_JSON)) {
		json_t *document =
			json_pack("{s:b, s:s, s:s, s:s, s:s, s:i}", "differs", 1, "value", v->name, "node", v->node,
				  "op", v->op, "reason", found->reason, "compiles", (int)b->compiles);
		lth_cli_print_json(document);
		json_decref(document);
	} else {
		printf("first value that differs: %s, of node '%s' (%s)\n%s\n%u compiles\n", v->name, v->node, v->op,
		       found->reason, b->compiles);
	}
	b->cli->status = 1;
}

static enum lth_code bisect(struct bisect *b)
{
	struct difference found = {0};
	size_t value = b->scan.num_values;
	enum lth_code code = compare_model(b, b->model.bytes, b->model.size, &found);
	if (code == LTH_OK && found.code != LTH_OK)
		code = lth_diag_fail(&b->cli->diag, found.code, b->model.path, NULL, NULL, "%s", found.reason);
	if (code == LTH_OK && lth_cli_has(b->cli, LTH_CLI_VERBOSE))
		fprintf(stderr, "the whole model: %s\n", found.differs ? found.reason : "equal");
	if (code == LTH_OK)
		code = search(b, &value, &found);
	if (code != LTH_OK)
		return code;
	report(b, value, &found);
	return value < b->scan.num_values && lth_cli_has(b->cli, LTH_CLI_OUTPUT) ? write_cut(b, value) : LTH_OK;
}

/* The reference's options: --reference instead of the passes and the level, --dim and --target as they are. */
static enum lth_code reference_query(struct lth_cli *cli, struct lth_buf *out)
{
	lth_cli_query_add(out, "artifact", "so");
	for (size_t i = 0; i < cli->num_given; i++) {
		enum lth_cli_option option = cli->given[i].option;
		const char *text = cli->given[i].text;
		if (option == LTH_CLI_DIM || option == LTH_CLI_TARGET)
			lth_cli_query_add(out, lth_cli_options_table[option].query, text);
		if (option != LTH_CLI_REFERENCE)
			continue;
		char name[128];
		size_t length = strcspn(text, "=");
		if (!text[length] || !length || length >= sizeof(name))
			return lth_diag_fail(&cli->diag, LTH_INVALID_OPTION, "--reference", "PATH=VALUE", NULL, "'%s'",
					     text);
		snprintf(name, sizeof(name), "%.*s", (int)length, text);
		lth_cli_query_add(out, name, text + length + 1);
	}
	if (!lth_cli_has(cli, LTH_CLI_REFERENCE))
		lth_cli_query_add(out, "opt_level", "0");
	return LTH_OK;
}

enum lth_code lth_cli_bisect(struct lth_cli *cli)
{
	struct lth_buf query = {0}, reference = {0};
	struct bisect b = {
		.cli = cli,
		.tolerance =
			{
				.rtol = lth_cli_number(cli, LTH_CLI_RTOL, -1),
				.atol = lth_cli_number(cli, LTH_CLI_ATOL, -1),
				.scaled = true, /* values in the middle of a model have any magnitude */
			},
	};
	lth_cli_query_add(&query, "artifact", "so");
	enum lth_code code = lth_cli_query(cli, &query);
	if (code == LTH_OK)
		code = reference_query(cli, &reference);
	b.query = lth_buf_text(&query);
	b.reference = lth_buf_text(&reference);
	if (code == LTH_OK)
		code = lth_cli_model_read(cli, cli->arguments[0], &b.model);
	if (code == LTH_OK)
		code = lth_onnx_scan(b.model.bytes, b.model.size, &b.scan, &cli->diag);
	if (code == LTH_OK)
		code = bisect(&b);
	lth_onnx_scan_free(&b.scan);
	lth_cli_model_free(&b.model);
	lth_buf_free(&query);
	lth_buf_free(&reference);
	return code;
}
