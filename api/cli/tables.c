/* lathe passes, ops, targets, options, version: the daemon's tables. */
#include "api/cli/cli.h"
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The daemon's table `name`, or its JSON to standard output. *out_rows NULL: printed already. */
static enum lth_code fetch(struct lth_cli *cli, const char *name, json_t **out_document, json_t **out_rows)
{
	char path[32];
	json_t *document;
	snprintf(path, sizeof(path), "/v1/%s", name);
	enum lth_code code = lth_cli_get(cli, path, &document);
	if (code != LTH_OK)
		return code;
	*out_document = document;
	*out_rows = json_object_get(document, name);
	if (lth_cli_has(cli, LTH_CLI_JSON)) {
		lth_cli_print_json(document);
		*out_rows = NULL;
	}
	return LTH_OK;
}

enum lth_code lth_cli_passes(struct lth_cli *cli)
{
	json_t *document, *rows, *row;
	struct lth_cli_table table = {.columns = 4};
	size_t index;
	enum lth_code code = fetch(cli, "passes", &document, &rows);
	if (code != LTH_OK)
		return code;
	if (rows) {
		lth_cli_cell(&table, "pass");
		lth_cli_cell(&table, "kind");
		lth_cli_cell(&table, "opt_level");
		lth_cli_cell(&table, "what it does");
	}
	json_array_foreach(rows, index, row) {
		bool required = json_is_true(json_object_get(row, "required"));
		lth_cli_cell(&table, "%s", lth_cli_member(row, "name"));
		lth_cli_cell(&table, "%s", lth_cli_member(row, "kind"));
		lth_cli_cell(&table, required ? "always" : "%lld and up", (long long)lth_cli_int(row, "level"));
		lth_cli_cell(&table, "%s", lth_cli_member(row, "description"));
	}
	lth_cli_table_print(&table, stdout);
	json_decref(document);
	return LTH_OK;
}

static const char *versions_of(const json_t *row, char *out, size_t size)
{
	size_t index, used = 0;
	json_t *version;
	*out = 0;
	json_array_foreach(json_object_get(row, "versions"), index, version)
		if (used < size)
			used += (size_t)snprintf(out + used, size - used, "%s%lld", index ? " " : "",
						 (long long)json_integer_value(version));
	return out;
}

enum lth_code lth_cli_ops(struct lth_cli *cli)
{
	json_t *document, *rows, *row;
	struct lth_cli_table table = {.columns = 6};
	char versions[128];
	const char *wanted = cli->num_arguments ? cli->arguments[0] : "";
	size_t index;
	enum lth_code code = fetch(cli, "ops", &document, &rows);
	if (code != LTH_OK)
		return code;
	json_array_foreach(rows, index, row) {
		if (!strcasestr(lth_cli_member(row, "name"), wanted))
			continue;
		lth_cli_cell(&table, "%s", lth_cli_member(row, "name"));
		lth_cli_cell(&table, "%s", lth_cli_member(row, "domain"));
		lth_cli_cell(&table, "%s", versions_of(row, versions, sizeof(versions)));
		lth_cli_cell(&table, "%lld", (long long)lth_cli_int(row, "tests_passed"));
		lth_cli_cell(&table, "%s", lth_cli_member(row, "lowering"));
		lth_cli_cell(&table, "%s", lth_cli_member(row, "summary"));
	}
	lth_cli_table_print(&table, stdout);
	json_decref(document);
	return LTH_OK;
}

enum lth_code lth_cli_targets(struct lth_cli *cli)
{
	json_t *document, *rows, *row;
	struct lth_cli_table table = {.columns = 2};
	size_t index;
	enum lth_code code = fetch(cli, "targets", &document, &rows);
	if (code != LTH_OK)
		return code;
	json_array_foreach(rows, index, row) {
		lth_cli_cell(&table, "%s", lth_cli_member(row, "name"));
		lth_cli_cell(&table, "%s", lth_cli_member(row, "description"));
	}
	lth_cli_table_print(&table, stdout);
	json_decref(document);
	return LTH_OK;
}

/* What an option may be: its words, its range or its type. */
static void print_values(struct lth_cli_table *table, const json_t *row)
{
	const json_t *values = json_object_get(row, "values");
	const char *from = lth_cli_member(row, "values_from");
	int64_t least = lth_cli_int(row, "min"), most = lth_cli_int(row, "max");
	struct lth_buf text = {0};
	size_t index;
	json_t *value;
	json_array_foreach(values, index, value)
		lth_buf_printf(&text, "%s%s", index ? " " : "", json_string_value(value));
	if (text.size)
		lth_cli_cell(table, "%s", lth_buf_text(&text));
	else if (*from)
		lth_cli_cell(table, "lathe %s", from + (*from == '@'));
	else if (most > 0)
		lth_cli_cell(table, "%lld to %lld", (long long)least, (long long)most);
	else
		lth_cli_cell(table, "%s", lth_cli_member(row, "type"));
	lth_buf_free(&text);
}

enum lth_code lth_cli_options(struct lth_cli *cli)
{
	json_t *document, *rows, *row;
	struct lth_cli_table table = {.columns = 4};
	size_t index;
	enum lth_code code = fetch(cli, "options", &document, &rows);
	if (code != LTH_OK)
		return code;
	json_array_foreach(rows, index, row) {
		char *standard = json_dumps(json_object_get(row, "default"), JSON_ENCODE_ANY | JSON_COMPACT);
		lth_cli_cell(&table, "%s", lth_cli_member(row, "path"));
		print_values(&table, row);
		lth_cli_cell(&table, "%s", standard ? standard : "");
		lth_cli_cell(&table, "%s", lth_cli_member(row, "description"));
		free(standard);
	}
	lth_cli_table_print(&table, stdout);
	json_decref(document);
	return LTH_OK;
}

enum lth_code lth_cli_version(struct lth_cli *cli)
{
	json_t *document;
	/* asked for first because it waits for a worker to introduce itself */
	enum lth_code code = lth_cli_get(cli, "/v1/targets", &document);
	if (code != LTH_OK)
		return code;
	json_decref(document);
	code = lth_cli_get(cli, "/v1/version", &document);
	if (code != LTH_OK)
		return code;
	if (lth_cli_has(cli, LTH_CLI_JSON)) {
		json_object_set_new(document, "lathe", json_string(PACKAGE_VERSION));
		lth_cli_print_json(document);
	} else {
		const json_t *worker = json_object_get(document, "worker");
		size_t index;
		json_t *layer;
		printf("lathe %s\nlathed %s at %s\nworker %s, LLVM %s\nsandbox", PACKAGE_VERSION,
		       lth_cli_member(document, "lathed"), lathe_client_server(cli->client),
		       lth_cli_member(worker, "version"), lth_cli_member(worker, "llvm"));
		json_array_foreach(json_object_get(document, "sandbox"), index, layer)
			printf(" %s", json_is_string(layer) ? json_string_value(layer) : lth_cli_member(layer, "name"));
		puts("");
	}
	json_decref(document);
	return LTH_OK;
}
