/* lathe memory: what a compiled model takes at given dimensions, over a range, or how large a dimension may be. */
#include "api/cli/cli.h"
#include "api/cli/executable.h"
#include "runtime/base/checked.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static enum lth_code find_symbol(struct lth_cli *cli, const struct lth_exe *exe, const char *option, const char *name,
				 size_t length, uint32_t *out_symbol)
{
	struct lth_buf known = {0};
	for (uint32_t i = 0; i < exe->description->num_symbols; i++) {
		const struct lathe_symbol *s = &exe->description->symbols[i];
		if (s->from_data)
			continue;
		if (strlen(s->name) == length && memcmp(s->name, name, length) == 0) {
			*out_symbol = i;
			lth_buf_free(&known);
			return LTH_OK;
		}
		lth_buf_printf(&known, "%s%s", known.size ? ", " : "one of: ", s->name);
	}
	enum lth_code code = lth_diag_fail(&cli->diag, LTH_INVALID_OPTION, option,
					   known.size ? lth_buf_text(&known) : "a model with named dimensions", NULL,
					   "'%.*s'", (int)length, name);
	lth_buf_free(&known);
	return code;
}

static enum lth_code fit(struct lth_cli *cli, const struct lth_exe *exe)
{
	const char *name = lth_cli_value(cli, LTH_CLI_FIT);
	int64_t under = lth_cli_count(cli, LTH_CLI_UNDER, -1), value;
	struct lathe_error error;
	uint32_t symbol;
	if (under < 0)
		return lth_diag_fail(&cli->diag, LTH_INVALID_OPTION, "--fit", "--under BYTES beside it", NULL, "none");
	enum lth_code code = find_symbol(cli, exe, "--fit", name, strlen(name), &symbol);
	if (code != LTH_OK)
		return code;
	if (exe->api->fit(exe->executable, exe->symbols, symbol, (uint64_t)under, &value, &error) != 0)
		return lth_exe_error(&cli->diag, &error);
	exe->symbols[symbol] = value;
	struct lathe_memory memory;
	if (exe->api->memory(exe->executable, exe->symbols, &memory, &error) != 0)
		return lth_exe_error(&cli->diag, &error);
	if (lth_cli_has(cli, LTH_CLI_JSON))
		printf("{\"symbol\":\"%s\",\"value\":%lld,\"arena_bytes\":%llu,\"under_bytes\":%lld}\n", name,
		       (long long)value, (unsigned long long)memory.arena_bytes, (long long)under);
	else
		printf("%s=%lld: arena of %llu bytes, under %lld\n", name, (long long)value,
		       (unsigned long long)memory.arena_bytes, (long long)under);
	return LTH_OK;
}

static enum lth_code print_row(struct lth_cli *cli, const struct lth_exe *exe)
{
	struct lathe_memory m;
	struct lathe_error error;
	if (exe->api->memory(exe->executable, exe->symbols, &m, &error) != 0)
		return lth_exe_error(&cli->diag, &error);
	for (uint32_t i = 0; i < exe->description->num_symbols; i++)
		if (!exe->description->symbols[i].from_data)
			printf("%lld,", (long long)exe->symbols[i]);
	printf("%llu,%llu,%llu,%llu,%llu\n", (unsigned long long)m.arena_bytes, (unsigned long long)m.live_bound_bytes,
	       (unsigned long long)m.naive_bytes, (unsigned long long)m.io_bytes,
	       (unsigned long long)m.constants_bytes);
	return LTH_OK;
}

static void print_columns(const struct lth_exe *exe)
{
	for (uint32_t i = 0; i < exe->description->num_symbols; i++)
		if (!exe->description->symbols[i].from_data)
			printf("%s,", exe->description->symbols[i].name);
	puts("arena_bytes,live_bound_bytes,naive_bytes,io_bytes,constants_bytes");
}

/* FROM:TO[:STEP] behind the equals sign. */
static bool parse_range(const char *text, int64_t range[3])
{
	int count = 0;
	range[2] = 1;
	for (; count < 3; count++) {
		char *end;
		errno = 0;
		range[count] = strtoll(text, &end, 10);
		if (end == text || errno)
			return false;
		if (!*end)
			return count >= 1 && range[0] <= range[1] && range[2] > 0;
		if (*end != ':')
			return false;
		text = end + 1;
	}
	return false;
}

static enum lth_code table(struct lth_cli *cli, const struct lth_exe *exe)
{
	const char *text = lth_cli_value(cli, LTH_CLI_TABLE);
	size_t length = strcspn(text, "=");
	int64_t range[3];
	uint32_t symbol;
	if (!text[length] || !parse_range(text + length + 1, range))
		return lth_diag_fail(&cli->diag, LTH_INVALID_OPTION, "--table", "SYMBOL=FROM:TO[:STEP]", NULL, "'%s'",
				     text);
	enum lth_code code = find_symbol(cli, exe, "--table", text, length, &symbol);
	if (code == LTH_OK)
		print_columns(exe);
	while (code == LTH_OK && range[0] <= range[1]) {
		exe->symbols[symbol] = range[0];
		code = print_row(cli, exe);
		if (!lth_add_i64(range[0], range[2], &range[0]))
			break;
	}
	return code;
}

enum lth_code lth_cli_memory(struct lth_cli *cli)
{
	struct lth_exe exe = {0};
	struct lth_exe_options options;
	lathe_query_fn query;
	enum lth_code code = lth_cli_load(cli, cli->arguments[0], &query);
	if (code != LTH_OK)
		return code;
	lth_cli_exe_dims(cli, &options);
	code = lth_exe_open(&exe, query, &cli->diag);
	if (code == LTH_OK)
		code = lth_exe_bind_dims(&exe, &options, &cli->diag);
	if (code == LTH_OK && lth_cli_has(cli, LTH_CLI_FIT)) {
		code = fit(cli, &exe);
	} else if (code == LTH_OK && lth_cli_has(cli, LTH_CLI_TABLE)) {
		code = table(cli, &exe);
	} else if (code == LTH_OK) {
		print_columns(&exe);
		code = print_row(cli, &exe);
	}
	lth_exe_close(&exe);
	return code;
}
