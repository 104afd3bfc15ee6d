/* lathe suite: finds cases, runs several at once in processes that share a counter, and reports. */
#include "api/cli/suite.h"
#include "runtime/base/io.h"
#include "runtime/base/machine.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STANDARD_SECONDS = 120, DEEPEST = 32, MOST_PROCESSES = 256 };

/* --- finding */
static enum lth_code add_case(struct lth_cli_suite *suite, const char *folder)
{
	bool wanted = !lth_cli_has(suite->cli, LTH_CLI_MATCH);
	for (size_t i = 0; i < suite->cli->num_given; i++)
		if (suite->cli->given[i].option == LTH_CLI_MATCH && strstr(folder, suite->cli->given[i].text))
			wanted = true;
	if (!wanted)
		return LTH_OK;
	char **cases = realloc(suite->cases, (suite->num_cases + 1) * sizeof(*cases)), *copy = strdup(folder);
	if (cases)
		suite->cases = cases;
	if (!cases || !copy) {
		free(copy);
		return lth_diag_fail(&suite->cli->diag, LTH_OUT_OF_MEMORY, folder, NULL, NULL, "no memory");
	}
	cases[suite->num_cases++] = copy;
	return LTH_OK;
}

/* A folder with a model.onnx is a case; other folders are looked into. */
static enum lth_code find_cases(struct lth_cli_suite *suite, const char *folder, int depth)
{
	char path[4096];
	struct stat status;
	snprintf(path, sizeof(path), "%s/model.onnx", folder);
	if (access(path, R_OK) == 0)
		return add_case(suite, folder);
	DIR *directory = depth < DEEPEST ? opendir(folder) : NULL;
	if (!directory)
		return depth == 0 ? lth_diag_fail(&suite->cli->diag, LTH_IO_ERROR, folder, "a folder", NULL, "%s",
						  strerror(errno))
				  : LTH_OK;
	enum lth_code code = LTH_OK;
	for (struct dirent *entry; code == LTH_OK && (entry = readdir(directory));) {
		int length = snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (entry->d_name[0] != '.' && length > 0 && (size_t)length < sizeof(path) &&
		    stat(path, &status) == 0 && S_ISDIR(status.st_mode))
			code = find_cases(suite, path, depth + 1);
	}
	closedir(directory);
	return code;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* --- distributing */
static void work(const struct lth_cli_suite *suite, atomic_size_t *next, int out)
{
	struct lathe_client *client;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (lth_cli_another_client(suite->cli, &client) != LTH_OK)
		_exit(1);
	for (size_t index; (index = atomic_fetch_add(next, 1)) < suite->num_cases;) {
		struct lth_cli_verdict verdict = {.index = (uint32_t)index};
		lth_cli_suite_case(suite, client, suite->cases[index], &verdict);
		if (!lth_write_full(out, &verdict, sizeof(verdict)))
			_exit(1);
	}
	lathe_client_destroy(&client);
	_exit(0);
}

/* Starts the processes; what they find comes out of *out_fd. */
static enum lth_code start(const struct lth_cli_suite *suite, size_t processes, pid_t *pids, int *out_fd)
{
	int ends[2];
	struct lth_diag *diag = &suite->cli->diag;
	atomic_size_t *next = mmap(NULL, sizeof(*next), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (next == MAP_FAILED || pipe(ends) != 0)
		return lth_diag_fail(diag, LTH_IO_ERROR, "suite", NULL, NULL, "%s", strerror(errno));
	fflush(NULL);
	for (size_t i = 0; i < processes; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			close(ends[0]);
			work(suite, next, ends[1]);
		}
	}
	close(ends[1]);
	munmap(next, sizeof(*next));
	*out_fd = ends[0];
	return LTH_OK;
}

/* --- reporting */
static void print_verdict(const struct lth_cli_suite *suite, const struct lth_cli_verdict *v)
{
	const char *name = suite->cases[v->index];
	if (!v->passed)
		printf("FAIL %s (%.2f s): %s\n", name, v->total_ms * 1e-3, v->reason);
	else if (lth_cli_has(suite->cli, LTH_CLI_PASSES))
		printf("PASS %s (%.2f s)%s\n", name, v->total_ms * 1e-3,
		       v->by_property ? ", random: by distribution" : "");
}

static int by_number(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static double median_compile(const struct lth_cli_verdict *verdicts, size_t count)
{
	double *times = calloc(count + 1, sizeof(*times)), median;
	for (size_t i = 0; times && i < count; i++)
		times[i] = verdicts[i].compile_ms;
	if (times)
		qsort(times, count, sizeof(*times), by_number);
	median = times && count ? times[count / 2] : 0;
	free(times);
	return median;
}

static void add_one(json_t *counts, const char *name)
{
	json_object_set_new(counts, name, json_integer(json_integer_value(json_object_get(counts, name)) + 1));
}

/* Failures by kind, most frequent first: "wrong 3, unsupported-op 2". */
static json_t *count_kinds(const struct lth_cli_verdict *verdicts, size_t count)
{
	json_t *kinds = json_object();
	for (size_t i = 0; i < count; i++)
		if (!verdicts[i].passed)
			add_one(kinds, verdicts[i].kind);
	return kinds;
}

/* How many cases that passed use each operator. */
static json_t *count_operators(const struct lth_cli_verdict *verdicts, size_t count)
{
	json_t *operators = json_object();
	for (size_t i = 0; i < count; i++) {
		char names[sizeof(verdicts[i].operators)], *rest = names;
		memcpy(names, verdicts[i].operators, sizeof(names));
		for (const char *name; (name = strsep(&rest, " ")) && *name;)
			add_one(operators, name);
	}
	return operators;
}

static void print_counts(const char *prefix, json_t *counts)
{
	const char *name;
	json_t *value;
	json_object_foreach(counts, name, value)
		printf("%s%lld %s\n", prefix, (long long)json_integer_value(value), name);
}

static void report(const struct lth_cli_suite *suite, const struct lth_cli_verdict *verdicts, double seconds)
{
	size_t passed = 0, sets = 0, random = 0, count = suite->num_cases;
	json_t *kinds = count_kinds(verdicts, count), *operators = count_operators(verdicts, count),
	       *list = json_array();
	for (size_t i = 0; i < count; i++) {
		passed += verdicts[i].passed;
		sets += verdicts[i].data_sets;
		random += verdicts[i].passed && verdicts[i].by_property;
		json_array_append_new(list,
				      json_pack("{s:s, s:b, s:s, s:s, s:f, s:f, s:i}", "case", suite->cases[i],
						"passed", verdicts[i].passed, "kind", verdicts[i].kind, "reason",
						verdicts[i].reason, "compile_ms", verdicts[i].compile_ms, "total_ms",
						verdicts[i].total_ms, "data_sets", (int)verdicts[i].data_sets));
	}
	if (lth_cli_has(suite->cli, LTH_CLI_JSON)) {
		json_t *document = json_pack("{s:I, s:I, s:I, s:I, s:f, s:f, s:O, s:O, s:O}", "passed", (json_int_t)passed,
					     "failed", (json_int_t)(count - passed), "data_sets", (json_int_t)sets,
					     "by_property", (json_int_t)random, "seconds", seconds, "median_compile_ms",
					     median_compile(verdicts, count), "failures", kinds, "operators", operators, "cases",
					     list);
		lth_cli_print_json(document);
		json_decref(document);
	} else {
		printf("%zu passed (%zu data sets, %zu cases random: by distribution), %zu failed, %.1f s, median "
		       "compile "
		       "%.1f ms\n",
		       passed, sets, random, count - passed, seconds, median_compile(verdicts, count));
		print_counts("  ", kinds);
		print_counts("OPERATOR ", operators);
	}
	json_decref(kinds);
	json_decref(operators);
	json_decref(list);
	suite->cli->status = passed == count ? 0 : 1;
}

/* Takes verdicts as they come and prints them in the order of the cases. */
static void collect(const struct lth_cli_suite *suite, int fd, struct lth_cli_verdict *verdicts, bool *known)
{
	struct lth_cli_verdict verdict;
	bool json = lth_cli_has(suite->cli, LTH_CLI_JSON), terminal = isatty(2);
	size_t printed = 0, arrived = 0;
	while (lth_read_full(fd, &verdict, sizeof(verdict))) {
		if (verdict.index >= suite->num_cases)
			continue;
		verdicts[verdict.index] = verdict;
		known[verdict.index] = true;
		arrived++;
		lth_cli_clear_progress(suite->cli);
		for (; printed < suite->num_cases && known[printed]; printed++)
			if (!json)
				print_verdict(suite, &verdicts[printed]);
		if (terminal) {
			fflush(stdout);
			fprintf(stderr, "%zu of %zu", arrived, suite->num_cases);
			suite->cli->progress_shown = true;
		}
	}
	lth_cli_clear_progress(suite->cli);
	for (; printed < suite->num_cases; printed++) {
		if (!known[printed]) {
			verdicts[printed] = (struct lth_cli_verdict){.index = (uint32_t)printed, .kind = "lost"};
			snprintf(verdicts[printed].reason, sizeof(verdicts[printed].reason),
				 "the process that ran it ended early");
		}
		if (!json)
			print_verdict(suite, &verdicts[printed]);
	}
}

static enum lth_code run_all(struct lth_cli_suite *suite)
{
	size_t processes = (size_t)lth_cli_count(suite->cli, LTH_CLI_JOBS, (int64_t)lth_machine_cpus(""));
	struct lth_cli_verdict *verdicts = calloc(suite->num_cases + 1, sizeof(*verdicts));
	bool *known = calloc(suite->num_cases + 1, sizeof(*known));
	pid_t pids[MOST_PROCESSES];
	int fd = -1;
	uint64_t begin = lth_now_ns();
	processes = processes < 1 ? 1 : processes > MOST_PROCESSES ? MOST_PROCESSES : processes;
	enum lth_code code = verdicts && known ? start(suite, processes, pids, &fd)
					       : lth_diag_fail(&suite->cli->diag, LTH_OUT_OF_MEMORY, "suite", NULL,
							       NULL, "no memory for %zu cases", suite->num_cases);
	if (code == LTH_OK) {
		collect(suite, fd, verdicts, known);
		close(fd);
		for (size_t i = 0; i < processes; i++)
			while (pids[i] > 0 && waitpid(pids[i], NULL, 0) < 0 && errno == EINTR)
				;
		report(suite, verdicts, (double)(lth_now_ns() - begin) * 1e-9);
	}
	free(verdicts);
	free(known);
	return code;
}

/* A daemon that is not there would fail every case; better once. */
static enum lth_code check_daemon(struct lth_cli *cli)
{
	json_t *version;
	enum lth_code code = lth_cli_get(cli, "/readyz", &version);
	if (code == LTH_OK)
		json_decref(version);
	return code;
}

enum lth_code lth_cli_suite(struct lth_cli *cli)
{
	struct lth_buf query = {0};
	struct lth_cli_suite suite = {
		.cli = cli,
		.seconds = lth_cli_count(cli, LTH_CLI_CASE_TIME, STANDARD_SECONDS),
		.tolerance =
			{
				.rtol = lth_cli_number(cli, LTH_CLI_RTOL, -1),
				.atol = lth_cli_number(cli, LTH_CLI_ATOL, -1),
				.mismatch = lth_cli_number(cli, LTH_CLI_MISMATCH, 0) / 100,
				.scaled = lth_cli_has(cli, LTH_CLI_SCALED),
			},
	};
	enum lth_code code = check_daemon(cli);
	for (size_t i = 0; i < cli->num_arguments && code == LTH_OK; i++)
		code = find_cases(&suite, cli->arguments[i], 0);
	if (code == LTH_OK && !suite.num_cases)
		code = lth_diag_fail(&cli->diag, LTH_NOT_FOUND, cli->arguments[0],
				     "folders with a model.onnx, at any depth", NULL, "no case");
	lth_cli_query_add(&query, "artifact", "so");
	if (code == LTH_OK)
		code = lth_cli_query(cli, &query);
	suite.query = lth_buf_text(&query);
	if (suite.num_cases)
		qsort(suite.cases, suite.num_cases, sizeof(*suite.cases), by_name);
	if (code == LTH_OK)
		code = run_all(&suite);
	for (size_t i = 0; i < suite.num_cases; i++)
		free(suite.cases[i]);
	free(suite.cases);
	lth_buf_free(&query);
	return code;
}
