/* lathe inspect: what a compiled model says about itself, from the shared object or by asking the program. */
#include "api/cli/cli.h"
#include "api/cli/executable.h"

#include <stdlib.h>
#include <string.h>

static enum lth_code describe_library(struct lth_cli *cli, const char *path, struct lth_buf *describe,
				      struct lth_buf *info)
{
	struct lth_exe exe = {0};
	struct lth_exe_options options;
	lathe_query_fn query;
	enum lth_code code = lth_cli_load(cli, path, &query);
	if (code != LTH_OK)
		return code;
	lth_cli_exe_dims(cli, &options);
	code = lth_exe_open(&exe, query, &cli->diag);
	if (code == LTH_OK)
		code = lth_exe_bind_dims(&exe, &options, &cli->diag);
	if (code == LTH_OK)
		code = lth_exe_describe(&exe, describe, &cli->diag);
	if (code == LTH_OK)
		lth_buf_append(info, exe.description->info, exe.description->info_bytes);
	lth_exe_close(&exe);
	return code;
}

static void print_symbols(const json_t *symbols)
{
	size_t index;
	json_t *symbol;
	json_array_foreach(symbols, index, symbol) {
		printf("%-10s%s in [%lld, ", "dimension", lth_cli_member(symbol, "name"),
		       (long long)lth_cli_int(symbol, "min"));
		if (json_is_integer(json_object_get(symbol, "max")))
			printf("%lld]", (long long)lth_cli_int(symbol, "max"));
		else
			printf("...)");
		if (lth_cli_int(symbol, "multiple") > 1)
			printf(", a multiple of %lld", (long long)lth_cli_int(symbol, "multiple"));
		if (json_is_true(json_object_get(symbol, "from_data")))
			puts(", from the data");
		else
			printf(", planned for %lld\n", (long long)lth_cli_int(symbol, "hint"));
	}
}

static void print_memory(const json_t *memory)
{
	static const struct {
		const char *label, *key;
	} rows[] = {
		{"arena", "arena_bytes"},	  {"live bound", "live_bound_bytes"}, {"without reuse", "naive_bytes"},
		{"constants", "constants_bytes"}, {"inputs and outputs", "io_bytes"},
	};
	const char *name;
	json_t *value;
	printf("%-10s", "memory");
	bool any = false;
	json_object_foreach(json_object_get(memory, "dims"), name, value) {
		printf("%s%s=%lld", any ? " " : "at ", name, (long long)json_integer_value(value));
		any = true;
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[32];
		lth_cli_bytes(lth_cli_int(memory, rows[i].key), text, sizeof(text));
		printf("%s%s %s", i ? ", " : any ? ": " : "", rows[i].label, text);
	}
	printf("\n%-10s%s\n", "plan", lth_cli_member(memory, "certificate"));
}

static enum lth_code print_all(struct lth_cli *cli, const char *path, const struct lth_buf *describe,
			       const struct lth_buf *info)
{
	json_t *document = json_loadb(lth_buf_text(describe), describe->size, 0, NULL);
	json_t *made = json_loadb(lth_buf_text(info), info->size, 0, NULL);
	if (!document) {
		json_decref(made);
		return lth_diag_fail(&cli->diag, LTH_BAD_EXECUTABLE, path, "a description in JSON", NULL,
				     "something else");
	}
	if (lth_cli_has(cli, LTH_CLI_JSON)) {
		if (made)
			json_object_set(document, "info", made);
		lth_cli_print_json(document);
	} else {
		char *text = json_dumps(made, JSON_COMPACT);
		printf("%-10s%s, runtime %s\n", "model", lth_cli_member(document, "name"),
		       lth_cli_member(document, "runtime"));
		lth_cli_print_ports(json_object_get(document, "inputs"), "input");
		lth_cli_print_ports(json_object_get(document, "outputs"), "output");
		print_symbols(json_object_get(document, "symbols"));
		print_memory(json_object_get(document, "memory"));
		if (text)
			printf("%-10s%s\n", "made by", text);
		free(text);
	}
	json_decref(document);
	json_decref(made);
	return LTH_OK;
}

enum lth_code lth_cli_inspect(struct lth_cli *cli)
{
	struct lth_buf describe = {0}, info = {0};
	const char *path = cli->arguments[0];
	enum lth_code code;
	if (lth_cli_is_program(path)) {
		code = lth_cli_ask_program(cli, path, "--describe", &describe);
		if (code == LTH_OK)
			code = lth_cli_ask_program(cli, path, "--info", &info);
	} else {
		code = describe_library(cli, path, &describe, &info);
	}
	if (code == LTH_OK)
		code = print_all(cli, path, &describe, &info);
	lth_buf_free(&describe);
	lth_buf_free(&info);
	return code;
}
