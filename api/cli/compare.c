/* lathe compare: what passes change. One request with variants, which the worker compiles and measures interleaved, and
 * one table of what it answers. */
#include "api/cli/cli.h"

#include <stdlib.h>
#include <string.h>

enum { STANDARD_RUNS = 50 };

/* The passes that the command line disables for all variants; an overlay replaces lists, so variants repeat them. */
static json_t *disabled_base(const struct lth_cli *cli)
{
	json_t *list = json_array();
	for (size_t i = 0; i < cli->num_given; i++)
		if (cli->given[i].option == LTH_CLI_DISABLE)
			json_array_append_new(list, json_string(cli->given[i].text));
	return list;
}

/* {"disabled_passes": [A, B]} of "A,B". */
static json_t *without(const struct lth_cli *cli, const char *text)
{
	json_t *list = disabled_base(cli);
	while (*text) {
		size_t length = strcspn(text, ",");
		if (length)
			json_array_append_new(list, json_stringn(text, length));
		text += length + (text[length] == ',');
	}
	return json_pack("{s:o}", "disabled_passes", list);
}

/* {"memory": {"strategy": "best_fit"}} of "memory.strategy=best_fit"; NULL when it has no such form. */
static json_t *with(const char *text)
{
	size_t length = strcspn(text, "=");
	json_error_t error;
	if (!text[length] || !length)
		return NULL;
	json_t *value = json_loads(text + length + 1, JSON_DECODE_ANY, &error);
	if (!value)
		value = json_string(text + length + 1);
	for (size_t end = length; end > 0;) {
		size_t begin = end;
		while (begin > 0 && text[begin - 1] != '.')
			begin--;
		json_t *outer = json_object();
		json_object_setn_new(outer, text + begin, end - begin, value);
		value = outer;
		end = begin ? begin - 1 : 0;
	}
	return value;
}

/* The variants and their names for the table's head, in the order of the command line. */
static enum lth_code list_variants(struct lth_cli *cli, json_t *variants, json_t *names)
{
	char name[256];
	json_array_append_new(variants, json_object());
	json_array_append_new(names, json_string("full"));
	for (size_t i = 0; i < cli->num_given; i++) {
		const char *text = cli->given[i].text;
		json_t *overlay = NULL;
		if (cli->given[i].option == LTH_CLI_WITHOUT) {
			snprintf(name, sizeof(name), "without %s", text);
			overlay = without(cli, text);
		} else if (cli->given[i].option == LTH_CLI_WITH) {
			snprintf(name, sizeof(name), "%s", text);
			overlay = with(text);
			if (!overlay)
				return lth_diag_fail(&cli->diag, LTH_INVALID_OPTION, "--with", "PATH=VALUE",
						     "lathe options lists them", "'%s'", text);
		} else {
			continue;
		}
		json_array_append_new(variants, overlay);
		json_array_append_new(names, json_string(name));
	}
	if (json_array_size(variants) == 1) {
		json_array_append_new(variants, without(cli, "MemoryPlan"));
		json_array_append_new(names, json_string("without MemoryPlan"));
	}
	return LTH_OK;
}

/* --- rows of the table */
/* Milliseconds that a variant spent in the passes that `name` names; -1: it ran none of them. */
static double spent(const json_t *variant, const json_t *passes, const char *kind, const char *name)
{
	double sum = -1;
	size_t index, k;
	json_t *record, *pass;
	json_array_foreach(json_object_get(json_object_get(variant, "timing"), "passes"), index, record)
		json_array_foreach(passes, k, pass)
			if (strcmp(lth_cli_member(pass, "name"), lth_cli_member(record, "name")) == 0 &&
			    strcmp(lth_cli_member(pass, "kind"), kind) == 0 &&
			    (!name || strcmp(lth_cli_member(pass, "name"), name) == 0))
				sum = (sum < 0 ? 0 : sum) + lth_cli_real(record, "ms");
	return sum;
}

/* A row of what each variant spent in a pass, or in all of a kind where `name` is NULL; none where no variant ran any. */
static void add_passes(struct lth_cli_table *table, const json_t *variants, const json_t *passes, const char *kind,
		       const char *name)
{
	double most = -1;
	size_t index;
	json_t *variant;
	json_array_foreach(variants, index, variant) {
		double ms = spent(variant, passes, kind, name);
		most = ms > most ? ms : most;
	}
	if (most < 0)
		return;
	lth_cli_cell(table, name ? "  %s" : "%s passes", name ? name : kind);
	json_array_foreach(variants, index, variant) {
		double ms = spent(variant, passes, kind, name);
		lth_cli_cell(table, ms < 0 ? "-" : "%.3f ms", ms);
	}
}

/* All of a kind, then each. */
static void add_kind(struct lth_cli_table *table, const json_t *variants, const json_t *passes, const char *kind)
{
	size_t index;
	json_t *pass;
	add_passes(table, variants, passes, kind, NULL);
	json_array_foreach(passes, index, pass)
		add_passes(table, variants, passes, kind, lth_cli_member(pass, "name"));
}

enum figure { BYTES, INTEGER, MICROSECONDS, MILLISECONDS };
static const struct {
	const char *label;
	enum figure kind;
	const char *part, *group, *key; /* group within part, or NULL */
} rows[] = {
	{"compile", MILLISECONDS, "timing", NULL, "total_ms"},
	{"arena", BYTES, "memory", NULL, "arena_bytes"},
	{"live bound", BYTES, "memory", NULL, "live_bound_bytes"},
	{"without reuse", BYTES, "memory", NULL, "naive_bytes"},
	{"allocations a run", INTEGER, "measure", NULL, "allocations_per_run"},
	{"copies a run", INTEGER, "measure", NULL, "copies_per_run"},
	{"peak, measured", BYTES, "measure", NULL, "peak_bytes"},
	{"resident, measured", BYTES, "measure", NULL, "peak_rss_bytes"},
	{"latency, least", MICROSECONDS, "measure", "latency_us", "min"},
	{"latency, p50", MICROSECONDS, "measure", "latency_us", "p50"},
	{"latency, p90", MICROSECONDS, "measure", "latency_us", "p90"},
};

static void add_figure(struct lth_cli_table *table, const json_t *variant, size_t row)
{
	char text[32];
	const json_t *from = json_object_get(variant, rows[row].part);
	if (rows[row].group)
		from = json_object_get(from, rows[row].group);
	double value = lth_cli_real(from, rows[row].key);
	if (value < 0)
		snprintf(text, sizeof(text), "-");
	else if (rows[row].kind == BYTES)
		lth_cli_bytes((int64_t)value, text, sizeof(text));
	else if (rows[row].kind == INTEGER)
		snprintf(text, sizeof(text), "%.0f", value);
	else
		snprintf(text, sizeof(text), "%.1f %s", value, rows[row].kind == MICROSECONDS ? "us" : "ms");
	lth_cli_cell(table, "%s", text);
}

static void print_table(const json_t *variants, const json_t *names, const json_t *passes)
{
	struct lth_cli_table table = {.columns = json_array_size(variants) + 1};
	size_t index;
	json_t *variant, *name;
	lth_cli_cell(&table, "%s", "");
	json_array_foreach(names, index, name)
		lth_cli_cell(&table, "%s", json_string_value(name));
	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		lth_cli_cell(&table, "%s", rows[row].label);
		json_array_foreach(variants, index, variant)
			add_figure(&table, variant, row);
		if (row > 0)
			continue;
		add_kind(&table, variants, passes, "graph");
		add_kind(&table, variants, passes, "memory");
	}
	lth_cli_cell(&table, "outputs equal");
	json_array_foreach(variants, index, variant) {
		const json_t *measure = json_object_get(variant, "measure");
		double error = lth_cli_real(measure, "largest_error");
		if (json_is_true(json_object_get(variant, "outputs_equal")))
			lth_cli_cell(&table, "yes");
		else if (error >= 0)
			lth_cli_cell(&table, "within %.1e", error);
		else
			lth_cli_cell(&table, "no");
	}
	lth_cli_table_print(&table, stdout);
}

static void print_head(const json_t *result, const char *path)
{
	const char *name;
	json_t *value;
	const json_t *first = json_array_get(json_object_get(result, "variants"), 0);
	const json_t *measure = json_object_get(first, "measure");
	printf("%s: %lld runs of each, interleaved, %lld thread%s", path, (long long)lth_cli_int(measure, "runs"),
	       (long long)lth_cli_int(measure, "threads"), lth_cli_int(measure, "threads") == 1 ? "" : "s");
	bool any = false;
	json_object_foreach(json_object_get(measure, "dims"), name, value) {
		printf("%s%s=%lld", any ? " " : "; ", name, (long long)json_integer_value(value));
		any = true;
	}
	puts(strcmp(lth_cli_member(result, "cache"), "hit") == 0 ? " (from the cache; --no-cache measures again)" : "");
}

static enum lth_code compare(struct lth_cli *cli, const char *query, json_t *options, const json_t *names)
{
	struct lth_cli_model model;
	json_t *result = NULL, *passes = NULL;
	char *text = json_dumps(options, JSON_COMPACT);
	enum lth_code code = lth_cli_model_read(cli, cli->arguments[0], &model);
	if (code == LTH_OK) {
		code = lth_cli_compile_model(cli, &model, query, text, &result);
		lth_cli_model_free(&model);
	}
	free(text);
	if (code == LTH_OK && lth_cli_has(cli, LTH_CLI_JSON)) {
		lth_cli_print_json(result);
	} else if (code == LTH_OK) {
		code = lth_cli_get(cli, "/v1/passes", &passes);
		if (code == LTH_OK) {
			print_head(result, cli->arguments[0]);
			print_table(json_object_get(result, "variants"), names, json_object_get(passes, "passes"));
		}
	}
	json_decref(result);
	json_decref(passes);
	return code;
}

enum lth_code lth_cli_compare(struct lth_cli *cli)
{
	struct lth_buf query = {0};
	json_t *variants = json_array(), *names = json_array();
	json_t *options = json_pack("{s:O}", "variants", variants);
	enum lth_code code = list_variants(cli, variants, names);
	if (code == LTH_OK)
		code = lth_cli_query(cli, &query);
	if (code == LTH_OK && !lth_cli_has(cli, LTH_CLI_RUNS)) {
		char runs[16];
		snprintf(runs, sizeof(runs), "%d", STANDARD_RUNS);
		lth_cli_query_add(&query, "measure.runs", runs);
	}
	if (code == LTH_OK)
		code = compare(cli, lth_buf_text(&query), options, names);
	json_decref(options);
	json_decref(variants);
	json_decref(names);
	lth_buf_free(&query);
	return code;
}
