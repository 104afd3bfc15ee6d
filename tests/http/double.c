/* A worker that compiles nothing: the tool of the daemon's tests. It runs the real worker loop; what it "compiles" is a
 * function of its input, and a model `{"do":WHAT,"ms":N}` makes it misbehave, after N milliseconds: crash (SIGSEGV), abort,
 * exit, kill (SIGKILL), eat (memory until none is left), hang, stubborn (the same, deaf to SIGTERM), spin (hang, but
 * busy), sleep, gate (go on once there is a file `open` in the job's folder), fail (a diagnostic), ops (an unsupported
 * operator), probe (the result says what the sandbox lets it do);
 * crash_once crashes at once in any of the first N workers of the pool. A plan takes the same orders as its options. */
#include "compiler/worker/worker.h"
#include "runtime/base/io.h"
#include "runtime/base/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char description[] =
	"{\"version\":\"0\",\"llvm\":\"none\",\"build\":\"double-1\","
	"\"passes\":[{\"name\":\"FoldConstant\",\"level\":1},{\"name\":\"MemoryPlan\",\"level\":1},{\"name\":"
	"\"FuseOps\","
	"\"level\":2}],"
	"\"ops\":[{\"domain\":\"\",\"name\":\"Relu\"}],\"targets\":[{\"name\":\"host\"}],"
	"\"options\":["
	"{\"path\":\"opt_level\",\"type\":\"int\",\"min\":0,\"max\":3,\"default\":2},"
	"{\"path\":\"disabled_passes\",\"type\":\"list\",\"singular\":\"disabled_pass\",\"values_from\":\"passes\","
	"\"set\":true},"
	"{\"path\":\"required_passes\",\"type\":\"list\",\"singular\":\"required_pass\",\"values_from\":\"passes\","
	"\"set\":true},"
	"{\"path\":\"artifacts\",\"type\":\"list\",\"singular\":\"artifact\",\"values\":[\"so\",\"exe\",\"ir\",\"timeline\"],"
	"\"default\":[\"so\"]},"
	"{\"path\":\"dims\",\"type\":\"dims\",\"singular\":\"dim\"},"
	"{\"path\":\"threads\",\"type\":\"int\",\"min\":1,\"max\":256},"
	"{\"path\":\"memory.strategy\",\"type\":\"enum\",\"values\":[\"greedy_by_size\",\"best_fit\",\"exact\"],"
	"\"default\":\"exact\"},"
	"{\"path\":\"memory.alignment\",\"type\":\"int\",\"min\":1},"
	"{\"path\":\"measure.runs\",\"type\":\"int\",\"min\":1},"
	"{\"path\":\"measure.dims\",\"type\":\"map\"},"
	"{\"path\":\"variants\",\"type\":\"variants\"},"
	"{\"path\":\"timeout_ms\",\"type\":\"int\",\"min\":1,\"key\":false}]}";

static json_t *describe(void)
{
	return json_loads(description, 0, NULL);
}

static void sleep_ms(json_int_t ms)
{
	struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000};
	while (nanosleep(&left, &left) != 0 && errno == EINTR)
		;
}

static void eat_memory(void)
{
	enum { PIECE = 16 << 20 };
	static char *volatile last; /* or the compiler sees that nobody looks */
	for (;;) {
		char *piece = malloc(PIECE);
		if (!piece)
			abort(); /* as LLVM does */
		memset(piece, 1, PIECE);
		last = piece;
		if (last[PIECE / 2] != 1)
			abort();
	}
}

/* --- what a locked-in worker can still do, for a test to look at: one attempt a function, true when it succeeded */
struct attempt {
	const char *folder; /* its own */
	const char *state;  /* a file of the daemon's */
	pid_t neighbour;    /* a process of the same user */
};

static bool opens(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0700);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static const char *inside(const struct attempt *attempt, const char *name)
{
	static char path[4096];
	snprintf(path, sizeof(path), "%s/%s", attempt->folder, name);
	return path;
}

static bool write_inside(const struct attempt *attempt)
{
	return opens(inside(attempt, "x"), O_WRONLY | O_CREAT);
}

static bool write_outside(const struct attempt *attempt)
{
	(void)attempt;
	bool done = opens("/tmp/lathe-double-probe", O_WRONLY | O_CREAT);
	unlink("/tmp/lathe-double-probe");
	return done;
}

static bool read_etc(const struct attempt *attempt)
{
	(void)attempt;
	return opens("/etc/passwd", O_RDONLY);
}

static bool read_state(const struct attempt *attempt)
{
	return opens(attempt->state, O_RDONLY);
}

static bool truncate_state(const struct attempt *attempt)
{
	return truncate(attempt->state, 0) == 0;
}

static bool chmod_state(const struct attempt *attempt)
{
	return chmod(attempt->state, 0600) == 0;
}

static bool use_device(const struct attempt *attempt) /* /dev/zero by another name */
{
	return mknod(inside(attempt, "device"), S_IFCHR | 0600, makedev(1, 5)) == 0 &&
	       opens(inside(attempt, "device"), O_RDONLY);
}

static bool execute_written(const struct attempt *attempt)
{
	int status = -1, fd = open(inside(attempt, "program"), O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	if (fd < 0 || write(fd, "#!/bin/true\n", 12) != 12)
		return false;
	close(fd);
	pid_t child = fork();
	if (child == 0) {
		execl(inside(attempt, "program"), "program", (char *)NULL);
		_exit(9);
	}
	return waitpid(child, &status, 0) == child && status == 0;
}

static bool open_socket(const struct attempt *attempt)
{
	(void)attempt;
	return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0;
}

static bool signal_parent(const struct attempt *attempt)
{
	(void)attempt;
	long high = (long)1 << 32; /* of the register, not of the number */
	return kill(getppid(), 0) == 0 || syscall(SYS_tgkill, getppid(), getppid(), 0) == 0 ||
	       syscall(SYS_tgkill, getppid() | high, getppid(), 0) == 0 || syscall(SYS_tkill, getppid(), 0) == 0;
}

static bool signal_neighbour(const struct attempt *attempt)
{
	return kill(attempt->neighbour, 0) == 0 || syscall(SYS_tgkill, attempt->neighbour, attempt->neighbour, 0) == 0;
}

static bool signal_by_file(const struct attempt *attempt)
{
	int ends[2];
	(void)attempt;
	return pipe(ends) == 0 && fcntl(ends[0], F_SETOWN, getppid()) == 0;
}

static bool limit_parent(const struct attempt *attempt)
{
	struct rlimit limit;
	(void)attempt;
	return prlimit(getppid(), RLIMIT_CORE, NULL, &limit) == 0 ||
	       setpriority(PRIO_PROCESS, (id_t)getppid(), 19) == 0;
}

static bool enter_namespace(const struct attempt *attempt)
{
	(void)attempt;
	long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
	if (child == 0)
		_exit(0);
	return child > 0 || unshare(CLONE_NEWUSER) == 0;
}

static bool signal_scope(const struct attempt *attempt) /* not an attempt: can this kernel confine signals? */
{
	(void)attempt;
	return syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) >= 6;
}

static json_t *probe(const char *work_dir, pid_t neighbour)
{
	static const struct {
		const char *name;
		bool (*make)(const struct attempt *attempt);
	} attempts[] = {
		{"write_inside", write_inside},       {"write_outside", write_outside},
		{"read_etc", read_etc},               {"read_state", read_state},
		{"truncate_state", truncate_state},   {"chmod_state", chmod_state},
		{"use_device", use_device},           {"execute_written", execute_written},
		{"open_socket", open_socket},         {"signal_parent", signal_parent},
		{"signal_by_file", signal_by_file},   {"limit_parent", limit_parent},
		{"enter_namespace", enter_namespace}, {"signal_neighbour", signal_neighbour},
		{"signal_scope", signal_scope},
	};
	char state[4096];
	snprintf(state, sizeof(state), "%.*s/lock", (int)(strstr(work_dir, "/work/w") - work_dir), work_dir);
	const struct attempt attempt = {work_dir, state, neighbour};
	json_t *found = json_object();
	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++)
		json_object_set_new(found, attempts[i].name, json_boolean(attempts[i].make(&attempt)));
	return found;
}

static void wait_at_gate(const char *work_dir)
{
	char gate[4096];
	snprintf(gate, sizeof(gate), "%s/open", work_dir);
	while (access(gate, F_OK) != 0)
		sleep_ms(5);
}

static enum lth_code misbehave(const struct lth_compile_request *request, const json_t *orders, json_t **out_probe,
			       struct lth_diag *diag)
{
	const char *what = json_string_value(json_object_get(orders, "do"));
	json_int_t ms = json_integer_value(json_object_get(orders, "ms"));
	if (!what)
		return LTH_OK;
	if (strcmp(what, "crash_once") != 0)
		sleep_ms(ms);
	if (strcmp(what, "crash") == 0)
		raise(SIGSEGV);
	else if (strcmp(what, "abort") == 0)
		abort();
	else if (strcmp(what, "exit") == 0)
		_exit(3);
	else if (strcmp(what, "kill") == 0)
		kill(getpid(), SIGKILL);
	else if (strcmp(what, "eat") == 0)
		eat_memory();
	else if (strcmp(what, "hang") == 0)
		for (;;)
			pause();
	else if (strcmp(what, "stubborn") == 0)
		for (signal(SIGTERM, SIG_IGN);;)
			pause();
	else if (strcmp(what, "gate") == 0)
		wait_at_gate(request->work_dir);
	else if (strcmp(what, "spin") == 0)
		for (volatile unsigned turns = 0;; turns++)
			;
	else if (strcmp(what, "crash_once") == 0) {
		const char *worker = strstr(request->work_dir, "/work/w"); /* workers are numbered as they start */
		if (worker && atoi(worker + 7) <= ms)
			raise(SIGSEGV);
	} else if (strcmp(what, "fail") == 0)
		return lth_diag_fail(diag, LTH_INVALID_GRAPH, "node 'n'", "rank 4", "check the exporter", "rank 3");
	else if (strcmp(what, "ops") == 0)
		return lth_diag_fail(diag, LTH_UNSUPPORTED_OP, "graph", NULL, NULL, "Frobnicate (1 node: 'f')");
	else if (strcmp(what, "probe") == 0)
		*out_probe = probe(request->work_dir, (pid_t)json_integer_value(json_object_get(orders, "neighbour")));
	return LTH_OK;
}

static void add_artifact(struct lth_compile_result *result, const struct lth_compile_request *request, const char *kind)
{
	char text[256], digest[LTH_DIGEST_TEXT];
	struct lth_artifact *artifact = &result->artifacts[result->num_artifacts++];
	lth_sha256_text(request->model, request->model_size, digest);
	char *options = json_dumps(request->options, JSON_SORT_KEYS | JSON_COMPACT);
	snprintf(text, sizeof(text), "%s of %s\n", kind, digest);
	artifact->kind = strdup(kind);
	artifact->size = strlen(text) + strlen(options);
	artifact->data = malloc(artifact->size + 1);
	sprintf(artifact->data, "%s%s", text, options);
	free(options);
}

static enum lth_code compile(const struct lth_compile_request *request, struct lth_compile_result *out_result,
			     struct lth_diag *diag)
{
	json_t *orders = json_loadb(request->model, request->model_size, 0, NULL), *found = NULL;
	const json_t *kinds = json_object_get(request->options, "artifacts");
	if (request->on_stage(request->on_stage_context, "import") ||
	    request->on_stage(request->on_stage_context, "codegen")) {
		json_decref(orders);
		return lth_diag_fail(diag, LTH_CANCELLED, "codegen", NULL, NULL, "cancelled");
	}
	enum lth_code code = misbehave(request, orders, &found, diag);
	json_decref(orders);
	if (code != LTH_OK)
		return code;
	size_t count = json_array_size(kinds);
	struct lth_compile_result result = {.artifacts = calloc(count + 1, sizeof(struct lth_artifact))};
	for (size_t i = 0; i < count; i++)
		add_artifact(&result, request, json_string_value(json_array_get(kinds, i)));
	if (!count)
		add_artifact(&result, request, "so");
	result.new_kernels = calloc(1, sizeof(*result.new_kernels));
	result.new_kernels[0] = (struct lth_kernel_object){strdup("double_kernel"), strdup("object"), 6};
	result.num_new_kernels = 1;
	result.document = json_pack("{s:s, s:{s:f, s:[{s:s, s:f}]}, s:{s:i, s:s}, s:i, s:i}", "schema", "lathe.result/1",
				    "timing", "total_ms", 1.5, "phases", "name", "import", "ms", 0.25, "memory",
				    "arena_bytes", 64, "certificate", "optimal", "files", (int)request->num_files, "threads",
				    (int)request->jobs);
	if (found)
		json_object_set_new(result.document, "probe", found);
	*out_result = result;
	return LTH_OK;
}

static void free_result(struct lth_compile_result *result)
{
	for (size_t i = 0; i < result->num_artifacts; i++) {
		free(result->artifacts[i].kind);
		free(result->artifacts[i].data);
	}
	for (size_t i = 0; i < result->num_new_kernels; i++) {
		free(result->new_kernels[i].name);
		free(result->new_kernels[i].data);
	}
	free(result->artifacts);
	free(result->new_kernels);
	json_decref(result->document);
	*result = (struct lth_compile_result){0};
}

static enum lth_code plan(const char *bytes, size_t size, bool csv, const json_t *options, json_t **out_document,
			  struct lth_diag *diag)
{
	const struct lth_compile_request request = {.work_dir = ""};
	enum lth_code code = misbehave(&request, options, NULL, diag);
	if (code != LTH_OK)
		return code;
	if (!csv && (!size || bytes[0] != '{'))
		return lth_diag_fail(diag, LTH_INVALID_JSON, "line 1, column 1", "an object", NULL, "something else");
	*out_document = json_pack("{s:i, s:b, s:O?}", "height", (int)size, "csv", csv, "options", options);
	return LTH_OK;
}

int main(int argc, char **argv)
{
	static const struct lth_worker_functions functions = {
		.describe = describe, .compile = compile, .free_result = free_result, .plan = plan, .plan_check = plan};
	return lth_worker_main(argc, argv, &functions);
}
