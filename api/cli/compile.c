/* lathe compile: a model to artifacts, with a summary of what it cost. */
#include "api/cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Kinds by suffix; what has another suffix, or none, is a program. */
static const struct {
	const char *suffix, *kind;
} suffixes[] = {
	{".so", "so"},	   {".a", "a"},	  {".o", "obj"},   {".ir", "ir"},	{".program", "program"},
	{".plan", "plan"}, {".s", "asm"}, {".ll", "llvm"}, {".loops", "loops"},
	{".svg", "timeline"}, {".ledger.json", "ledger"}, {".trace.json", "trace"},
};
enum { NUM_SUFFIXES = sizeof(suffixes) / sizeof(suffixes[0]) };

static const char *kind_by_suffix(const char *path)
{
	size_t length = strlen(path);
	for (size_t i = 0; i < NUM_SUFFIXES; i++) {
		size_t suffix = strlen(suffixes[i].suffix);
		if (length > suffix && strcmp(path + length - suffix, suffixes[i].suffix) == 0)
			return suffixes[i].kind;
	}
	return "exe";
}

static const char *suffix_by_kind(const char *kind)
{
	for (size_t i = 0; i < NUM_SUFFIXES; i++)
		if (strcmp(suffixes[i].kind, kind) == 0)
			return suffixes[i].suffix;
	return strcmp(kind, "exe") == 0 ? ".exe" : "";
}

static void print_time(const json_t *result)
{
	size_t index;
	json_t *phase, *timing = json_object_get(result, "timing"), *compile = json_object_get(result, "compile");
	printf("%-10s%.1f ms", "compile", lth_cli_real(timing, "total_ms"));
	json_array_foreach(json_object_get(timing, "phases"), index, phase)
		printf("%s%s %.1f", index ? ", " : " (", lth_cli_member(phase, "name"), lth_cli_real(phase, "ms"));
	printf("%s; cache %s; %lld kernels, %lld of them from the cache\n", index ? ")" : "",
	       lth_cli_member(result, "cache"), (long long)lth_cli_int(compile, "kernels"),
	       (long long)lth_cli_int(compile, "kernels_from_cache"));
}

static void print_memory(const json_t *memory)
{
	size_t index;
	json_t *at;
	json_array_foreach(json_object_get(memory, "at"), index, at) {
		char arena[32], live[32], naive[32];
		const char *name;
		json_t *value;
		bool any = false;
		lth_cli_bytes(lth_cli_int(at, "arena_bytes"), arena, sizeof(arena));
		lth_cli_bytes(lth_cli_int(at, "live_bound_bytes"), live, sizeof(live));
		lth_cli_bytes(lth_cli_int(at, "naive_bytes"), naive, sizeof(naive));
		printf("%-10sarena %s, live bound %s, without reuse %s", "memory", arena, live, naive);
		json_object_foreach(json_object_get(at, "dims"), name, value) {
			printf("%s%s=%lld", any ? " " : " at ", name, (long long)json_integer_value(value));
			any = true;
		}
		puts("");
	}
	if (*lth_cli_member(memory, "certificate"))
		printf("%-10s%s\n", "plan", lth_cli_member(memory, "certificate"));
}

static void print_measure(const json_t *measure)
{
	char peak[32], resident[32];
	const json_t *latency = json_object_get(measure, "latency_us");
	if (!json_is_object(measure))
		return;
	lth_cli_bytes(lth_cli_int(measure, "peak_bytes"), peak, sizeof(peak));
	lth_cli_bytes(lth_cli_int(measure, "peak_rss_bytes"), resident, sizeof(resident));
	printf("%-10s%lld runs: min %.1f us, p50 %.1f, p90 %.1f, p99 %.1f; peak %s, resident %s, %lld allocations a "
	       "run\n",
	       "measure", (long long)lth_cli_int(measure, "runs"), lth_cli_real(latency, "min"),
	       lth_cli_real(latency, "p50"), lth_cli_real(latency, "p90"), lth_cli_real(latency, "p99"), peak, resident,
	       (long long)lth_cli_int(measure, "allocations_per_run"));
}

static void print_summary(const json_t *result, const char *path)
{
	char constants[32];
	const json_t *model = json_object_get(result, "model");
	lth_cli_bytes(lth_cli_int(model, "constants_bytes"), constants, sizeof(constants));
	printf("%-10s%s: %lld nodes, opset %lld, constants %s\n", "model", path, (long long)lth_cli_int(model, "nodes"),
	       (long long)lth_cli_int(model, "opset"), constants);
	lth_cli_print_ports(json_object_get(model, "inputs"), "input");
	lth_cli_print_ports(json_object_get(model, "outputs"), "output");
	print_time(result);
	print_memory(json_object_get(result, "memory"));
	print_measure(json_object_get(result, "measure"));
}

/* Where the artifact of this place goes: -o itself, or -o with the kind's suffix. False when the path is too long. */
static bool artifact_path(const char *output, size_t index, const char *kind, char *out, size_t size)
{
	int length;
	if (index == 0 || strcmp(output, "-") == 0) {
		length = snprintf(out, size, "%s", output);
	} else {
		const char *slash = strrchr(output, '/'), *dot = strrchr(output, '.');
		size_t stem =
			dot && (!slash || dot > slash + 1) && dot != output ? (size_t)(dot - output) : strlen(output);
		length = snprintf(out, size, "%.*s%s", (int)stem, output, suffix_by_kind(kind));
	}
	return length >= 0 && (size_t)length < size;
}

/* Every result has a picture of its plan for the daemon to show; it becomes a file where it was asked for by name. */
static bool wanted(const struct lth_cli *cli, size_t index, const char *kind)
{
	for (size_t i = 0; i < cli->num_given; i++)
		if (cli->given[i].text && strstr(cli->given[i].text, "timeline"))
			return true;
	return index == 0 || strcmp(kind, "timeline") != 0;
}

static enum lth_code write_artifacts(struct lth_cli *cli, const json_t *result, bool quiet)
{
	const char *output = lth_cli_value(cli, LTH_CLI_OUTPUT);
	size_t index;
	json_t *artifact;
	json_array_foreach(json_object_get(result, "artifacts"), index, artifact) {
		char path[4096], size[32];
		const char *kind = lth_cli_member(artifact, "kind");
		enum lth_code code = LTH_OK;
		if (!wanted(cli, index, kind))
			continue;
		lth_cli_bytes(lth_cli_int(artifact, "bytes"), size, sizeof(size));
		if (output && !artifact_path(output, index, kind, path, sizeof(path)))
			code = lth_diag_fail(&cli->diag, LTH_INVALID_OPTION, "--output", "a shorter path", NULL, "'%s'",
					     output);
		else if (output)
			code = lth_cli_fetch(cli, artifact, path);
		if (code != LTH_OK)
			return code;
		if (!quiet)
			printf("%-10s%s, %s: %s\n", "artifact", kind, size,
			       output ? path : lth_cli_member(artifact, "digest"));
	}
	return LTH_OK;
}

static enum lth_code finish(struct lth_cli *cli, const json_t *result, const char *path)
{
	const char *output = lth_cli_value(cli, LTH_CLI_OUTPUT);
	bool to_stdout = output && strcmp(output, "-") == 0, json = lth_cli_has(cli, LTH_CLI_JSON);
	if (!json_object_get(result, "artifacts")) { /* accepted, not done */
		if (json)
			lth_cli_print_json(result);
		else
			printf("job %s: %s\n", lth_cli_member(result, "id"), lth_cli_member(result, "state"));
		return LTH_OK;
	}
	if (json && !to_stdout)
		lth_cli_print_json(result);
	else if (!to_stdout)
		print_summary(result, path);
	return write_artifacts(cli, result, json || to_stdout);
}

/* Asked before a compile that may take minutes. */
static enum lth_code check_output(struct lth_cli *cli, const char *output)
{
	char folder[4096];
	if (!output || strcmp(output, "-") == 0)
		return LTH_OK;
	snprintf(folder, sizeof(folder), "%s", output);
	char *slash = strrchr(folder, '/');
	if (slash)
		slash[slash == folder] = 0;
	if (access(slash ? folder : ".", W_OK) == 0)
		return LTH_OK;
	return lth_diag_fail(&cli->diag, errno == ENOENT ? LTH_NOT_FOUND : LTH_IO_ERROR, output,
			     "a file in a folder that can be written", NULL, "%s: %s", slash ? folder : ".",
			     strerror(errno));
}

enum lth_code lth_cli_compile(struct lth_cli *cli)
{
	struct lth_cli_model model;
	struct lth_buf query = {0};
	json_t *result = NULL;
	const char *output = lth_cli_value(cli, LTH_CLI_OUTPUT);
	if (output && !lth_cli_has(cli, LTH_CLI_ARTIFACT))
		lth_cli_query_add(&query, "artifact", kind_by_suffix(output));
	enum lth_code code = check_output(cli, output);
	if (code == LTH_OK)
		code = lth_cli_query(cli, &query);
	if (code == LTH_OK)
		code = lth_cli_model_read(cli, cli->arguments[0], &model);
	if (code == LTH_OK) {
		code = lth_cli_compile_model(cli, &model, lth_buf_text(&query), NULL, &result);
		lth_cli_model_free(&model);
	}
	if (code == LTH_OK)
		code = finish(cli, result, cli->arguments[0]);
	json_decref(result);
	lth_buf_free(&query);
	return code;
}
