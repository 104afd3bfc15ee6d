/* One case of a suite: compile by the daemon, then every data set in a child process, so that a crash is one failure.
 */
#include "api/cli/executable.h"
#include "api/cli/suite.h"
#include "runtime/base/io.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* NodeProto.op_type as it stands in a file: tag, length, name. */
static bool has_op(const char *bytes, size_t size, const char *prefix)
{
	const char *at = bytes, *end = bytes + size;
	size_t length = strlen(prefix);
	while ((at = memmem(at, (size_t)(end - at), prefix, length))) {
		if (at - bytes >= 2 && at[-2] == 0x22 && (unsigned char)at[-1] >= length &&
		    (unsigned char)at[-1] < 0x80)
			return true;
		at++;
	}
	return false;
}

static struct lth_cli_tolerance tolerance_of(const struct lth_cli_suite *suite, const char *bytes, size_t size)
{
	struct lth_cli_tolerance tolerance = suite->tolerance;
#define LTH_SUITE_OP(prefix, field) tolerance.field |= has_op(bytes, size, prefix);
#include "api/cli/suite_ops.def"
#undef LTH_SUITE_OP
	return tolerance;
}

static void fail(struct lth_cli_verdict *verdict, const char *kind, const char *format, ...) LTH_PRINTF(3, 4);
static void fail(struct lth_cli_verdict *verdict, const char *kind, const char *format, ...)
{
	va_list arguments;
	verdict->passed = false;
	snprintf(verdict->kind, sizeof(verdict->kind), "%s", kind);
	va_start(arguments, format);
	vsnprintf(verdict->reason, sizeof(verdict->reason), format, arguments);
	va_end(arguments);
}

static void fail_diag(struct lth_cli_verdict *verdict, const struct lth_diag *diag)
{
	char line[sizeof(verdict->reason)];
	fail(verdict, lth_code_slug(diag->code), "%s", lth_diag_line(diag, line, sizeof(line)));
}

enum { PATH_SIZE = 4096 + 32 }; /* of a file in a folder */

/* --- in the child */
/* The input that the file's tensor is named after, or num_inputs. */
static uint32_t input_named(const struct lth_exe *exe, const char *path)
{
	struct lth_host_tensor tensor = {0};
	struct lth_diag ignored = {0};
	uint32_t input = 0, count = exe->description->num_inputs;
	if (lth_host_read_file(path, &tensor, &ignored) != LTH_OK)
		return count;
	while (input < count && (!tensor.name || strcmp(tensor.name, exe->description->inputs[input].name) != 0))
		input++;
	lth_host_tensor_free(&tensor);
	return input;
}

/* Files of a set are in the order of the inputs, or, in some suites, in any order with the inputs' names: then these say
 * which input each is for. */
static enum lth_code read_set(struct lth_exe *exe, const char *set, struct lth_diag *diag)
{
	uint32_t count = exe->description->num_inputs;
	uint32_t *input_of = calloc(count + 1, sizeof(*input_of));
	bool *taken = calloc(count + 1, sizeof(*taken)), all_named = input_of && taken;
	enum lth_code code = LTH_OK;
	char path[PATH_SIZE];
	for (uint32_t i = 0; i < count && all_named; i++) {
		snprintf(path, sizeof(path), "%s/input_%u.pb", set, i);
		input_of[i] = input_named(exe, path);
		all_named = input_of[i] < count && !taken[input_of[i]];
		taken[input_of[i]] = true;
	}
	for (uint32_t i = 0; i < count && code == LTH_OK; i++) {
		snprintf(path, sizeof(path), "%s/input_%u.pb", set, i);
		code = lth_exe_read_input(exe, all_named ? input_of[i] : i, path, diag);
	}
	free(input_of);
	free(taken);
	return code;
}

static bool check_output(const struct lth_exe *exe, uint32_t number, const char *path,
			 const struct lth_cli_tolerance *tolerance, char *reason, size_t size, struct lth_diag *diag)
{
	const char *type = exe->description->output_types[number];
	struct lth_host_tensor expected, got;
	struct lathe_value value;
	bool right = false;
	if (type && lth_value_read_file(path, type, &value, diag) == LTH_OK) {
		right = lth_cli_verify_value(exe->outputs[number].data, &value, tolerance, reason, size);
		lth_value_free(&value);
	} else if (!type && lth_host_read_file(path, &expected, diag) == LTH_OK) {
		got = lth_tensor_to_host(&exe->outputs[number]);
		right = lth_cli_verify(&got, &expected, tolerance, reason, size);
		lth_host_tensor_free(&expected);
	}
	return right;
}

static bool check_outputs(const struct lth_exe *exe, const char *set, const struct lth_cli_tolerance *tolerance,
			  struct lth_cli_verdict *verdict)
{
	const char *name = strrchr(set, '/') ? strrchr(set, '/') + 1 : set;
	for (uint32_t i = 0; i < exe->description->num_outputs; i++) {
		char path[PATH_SIZE], reason[512];
		struct lth_diag diag = {0};
		snprintf(path, sizeof(path), "%s/output_%u.pb", set, i);
		bool right = check_output(exe, i, path, tolerance, reason, sizeof(reason), &diag);
		if (diag.code != LTH_OK) {
			fail_diag(verdict, &diag);
			return false;
		}
		if (!right) {
			fail(verdict, "wrong", "%s, output %u (%s): %s", name, i, exe->description->outputs[i].name,
			     reason);
			return false;
		}
	}
	return true;
}

static bool same_outputs(const struct lathe_tensor *a, const struct lathe_tensor *b, uint32_t count)
{
	bool same = true;
	for (uint32_t i = 0; i < count && same; i++) {
		struct lth_host_tensor left = lth_tensor_to_host(&a[i]), right = lth_tensor_to_host(&b[i]);
		same = left.dtype == right.dtype && left.rank == right.rank && left.bytes == right.bytes &&
		       memcmp(left.dims, right.dims, left.rank * sizeof(left.dims[0])) == 0;
		if (same && left.dtype != LTH_DTYPE_STRING && left.bytes)
			same = memcmp(left.data, right.data, (size_t)left.bytes) == 0;
	}
	return same;
}

/* Random numbers come from the seed alone: a second run gives the same ones. */
static bool repeats(struct lth_exe *exe, struct lth_cli_verdict *verdict)
{
	const struct lathe_description *d = exe->description;
	struct lathe_error error;
	struct lathe_tensor *again = calloc(d->num_outputs + 1, sizeof(*again));
	uint32_t outputs = d->num_outputs;
	bool same = again && exe->api->run(exe->context, exe->inputs, d->num_inputs, again, outputs, &error) == 0;
	if (!same)
		fail(verdict, "wrong", "a second run failed");
	else if (!(same = same_outputs(exe->outputs, again, d->num_outputs)))
		fail(verdict, "wrong", "a second run gave other numbers");
	for (uint32_t i = 0; again && i < d->num_outputs; i++)
		exe->api->release(exe->context, &again[i]);
	free(again);
	return same;
}

/* A named dimension is 1 or more unless a request says otherwise, but a data set may be empty: what it would have to
 * say. */
static bool outside_box(const struct lth_exe *exe, char *out, size_t size)
{
	const struct lathe_description *d = exe->description;
	struct lth_buf query = {0};
	bool *asked = calloc(d->num_symbols + 1, sizeof(*asked));
	for (uint32_t i = 0; asked && i < d->num_inputs; i++)
		for (uint32_t axis = 0; axis < d->inputs[i].rank && axis < exe->inputs[i].rank; axis++) {
			int32_t symbol = d->inputs[i].dim_symbols[axis];
			char text[256];
			if (symbol < 0 || asked[symbol] || exe->inputs[i].dims[axis] >= d->symbols[symbol].min)
				continue;
			asked[symbol] = true;
			snprintf(text, sizeof(text), "%.200s=%lld:*", d->symbols[symbol].name,
				 (long long)exe->inputs[i].dims[axis]);
			lth_cli_query_add(&query, "dim", text);
		}
	bool outside = query.size && query.size < size;
	if (outside)
		memcpy(out, query.data, query.size + 1);
	lth_buf_free(&query);
	free(asked);
	return outside;
}

static bool run_set(struct lth_exe *exe, const char *set, const struct lth_cli_tolerance *tolerance,
		    struct lth_cli_verdict *verdict)
{
	const struct lathe_description *d = exe->description;
	struct lth_diag diag = {0};
	struct lathe_error error;
	if (read_set(exe, set, &diag) != LTH_OK) {
		fail_diag(verdict, &diag);
		return false;
	}
	if (!verdict->box[0] && outside_box(exe, verdict->box, sizeof(verdict->box)))
		return verdict->passed = false;
	if (exe->api->run(exe->context, exe->inputs, d->num_inputs, exe->outputs, d->num_outputs, &error) != 0) {
		fail(verdict, lth_code_slug((enum lth_code)error.code), "%s", error.text);
		return false;
	}
	bool right = check_outputs(exe, set, tolerance, verdict);
	if (right && (tolerance->random || tolerance->kept))
		right = repeats(exe, verdict);
	for (uint32_t i = 0; i < d->num_outputs; i++)
		exe->api->release(exe->context, &exe->outputs[i]);
	return right;
}

static void run_sets(const struct lth_cli_suite *suite, const char *folder, const struct lathe_reply *library,
		     const struct lth_cli_tolerance *tolerance, struct lth_cli_verdict *verdict)
{
	struct lth_exe exe = {0};
	lathe_query_fn query;
	struct lathe_options options = {.bytes = sizeof(options), .threads = 1};
	struct lathe_error error;
	struct lth_cli *cli = suite->cli;
	if (lth_cli_load_bytes(cli, folder, library->body, library->bytes, &query) != LTH_OK ||
	    lth_exe_open(&exe, query, &cli->diag) != LTH_OK) {
		fail_diag(verdict, &cli->diag);
		return;
	}
	if (exe.api->context_create(exe.executable, &options, &exe.context, &error) != 0) {
		fail(verdict, "runtime-error", "%s", error.text);
		return;
	}
	verdict->passed = true;
	for (uint32_t i = 0; verdict->passed; i++) {
		char set[4096];
		snprintf(set, sizeof(set), "%s/test_data_set_%u", folder, i);
		if (access(set, F_OK) != 0)
			break;
		if (run_set(&exe, set, tolerance, verdict))
			verdict->data_sets++;
	}
	if (verdict->passed && !verdict->data_sets)
		fail(verdict, "no-data", "no test_data_set_0 beside the model");
	lth_exe_close(&exe);
}

/* --- in the process that distributes */
static void child(const struct lth_cli_suite *suite, const char *folder, const struct lathe_reply *library,
		  const struct lth_cli_tolerance *tolerance, struct lth_cli_verdict *verdict, int out)
{
	struct rlimit none = {0, 0};
	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm((unsigned)suite->seconds);
	run_sets(suite, folder, library, tolerance, verdict);
	_exit(lth_write_full(out, verdict, sizeof(*verdict)) ? 0 : 1);
}

static void run_in_child(const struct lth_cli_suite *suite, const char *folder, const struct lathe_reply *library,
			 const struct lth_cli_tolerance *tolerance, struct lth_cli_verdict *verdict)
{
	int ends[2], status = 0;
	struct lth_cli_verdict answer;
	if (pipe(ends) != 0) {
		fail(verdict, "io-error", "pipe: %s", strerror(errno));
		return;
	}
	pid_t pid = fork();
	if (pid == 0)
		child(suite, folder, library, tolerance, verdict, ends[1]);
	close(ends[1]);
	bool complete = pid > 0 && lth_read_full(ends[0], &answer, sizeof(answer));
	close(ends[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (complete)
		*verdict = answer;
	else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		fail(verdict, "timeout", "the run did not end within %lld s", (long long)suite->seconds);
	else if (WIFSIGNALED(status))
		fail(verdict, "crashed", "the run died of signal %d (%s)", WTERMSIG(status),
		     strsignal(WTERMSIG(status)));
	else
		fail(verdict, "crashed", "the run ended early with status %d", WEXITSTATUS(status));
}

static bool compile(const struct lth_cli_suite *suite, struct lathe_client *client, const struct lth_cli_model *model,
		    const char *query, struct lathe_reply *out_library, struct lth_cli_verdict *verdict)
{
	struct lathe_problem problem;
	struct lathe_compile compile = {
		.model = model->bytes,
		.model_bytes = model->size,
		.files = model->files,
		.num_files = model->num_files,
		.query = query,
		.accept = "application/octet-stream",
		.no_cache = lth_cli_has(suite->cli, LTH_CLI_NO_CACHE),
	};
	uint64_t start = lth_now_ns();
	int code = lathe_client_compile(client, &compile, out_library, &problem);
	verdict->compile_ms = (double)(lth_now_ns() - start) * 1e-6;
	if (code != 0)
		fail(verdict, problem.type, "%.1000s", problem.text);
	return code == 0;
}

/* Which operators the model uses, from the result document of what was just compiled. Names that do not fit are left out. */
static void list_operators(struct lathe_client *client, const struct lth_cli_model *model, const char *query,
			   struct lth_cli_verdict *verdict)
{
	struct lathe_problem problem;
	struct lathe_reply reply;
	struct lathe_compile compile = {.model = model->bytes,
					.model_bytes = model->size,
					.files = model->files,
					.num_files = model->num_files,
					.query = query};
	if (lathe_client_compile(client, &compile, &reply, &problem) != 0)
		return;
	json_t *document = json_loadb(reply.body, reply.bytes, 0, NULL), *uses;
	const char *name;
	size_t used = 0, room = sizeof(verdict->operators);
	json_object_foreach(json_object_get(json_object_get(document, "model"), "operators"), name, uses)
		if (used + strlen(name) + 2 <= room)
			used += (size_t)snprintf(verdict->operators + used, room - used, "%s%s", used ? " " : "", name);
	json_decref(document);
	lathe_reply_free(&reply);
}

/* Once with the dims as they are asked for, and again where the data needs others. */
static void compile_and_run(const struct lth_cli_suite *suite, struct lathe_client *client,
			    const struct lth_cli_model *model, const char *folder,
			    const struct lth_cli_tolerance *tolerance, struct lth_cli_verdict *verdict)
{
	struct lth_buf query = {0};
	struct lathe_reply library;
	lth_buf_puts(&query, suite->query);
	for (int attempt = 0; attempt < 2; attempt++) {
		if (!compile(suite, client, model, lth_buf_text(&query), &library, verdict))
			break;
		run_in_child(suite, folder, &library, tolerance, verdict);
		lathe_reply_free(&library);
		if (verdict->passed && lth_cli_has(suite->cli, LTH_CLI_OPERATORS))
			list_operators(client, model, lth_buf_text(&query), verdict);
		if (verdict->passed || !verdict->box[0] || verdict->kind[0])
			break;
		lth_buf_printf(&query, "%s%s", query.size ? "&" : "", verdict->box);
	}
	lth_buf_free(&query);
}

void lth_cli_suite_case(const struct lth_cli_suite *suite, struct lathe_client *client, const char *folder,
			struct lth_cli_verdict *out_verdict)
{
	char path[4096];
	struct lth_cli_model model;
	struct lth_cli_verdict verdict = {.index = out_verdict->index};
	uint64_t start = lth_now_ns();
	suite->cli->diag = (struct lth_diag){0};
	snprintf(path, sizeof(path), "%s/model.onnx", folder);
	if (lth_cli_model_read(suite->cli, path, &model) != LTH_OK) {
		fail_diag(&verdict, &suite->cli->diag);
	} else {
		struct lth_cli_tolerance tolerance = tolerance_of(suite, model.bytes, model.size);
		verdict.by_property = tolerance.random;
		compile_and_run(suite, client, &model, folder, &tolerance, &verdict);
		lth_cli_model_free(&model);
	}
	verdict.total_ms = (double)(lth_now_ns() - start) * 1e-6;
	*out_verdict = verdict;
}
