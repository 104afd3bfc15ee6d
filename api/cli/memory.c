/* lathe memory: what a compiled model takes at given dimensions, over a range, or how large a dimension may be; and what
 * is alive at its peak. */
#include "api/cli/cli.h"
#include "api/cli/executable.h"
#include "runtime/base/checked.h"
#include "runtime/memory/ledger.h"

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

/* Dimensions and memory as an object, one row of the table. */
static json_t *row_json(const struct lth_exe *exe, const struct lathe_memory *m)
{
	json_t *dims = json_object();
	for (uint32_t i = 0; i < exe->description->num_symbols; i++)
		if (!exe->description->symbols[i].from_data)
			json_object_set_new(dims, exe->description->symbols[i].name,
					    json_integer((json_int_t)exe->symbols[i]));
	return json_pack("{s:o, s:I, s:I, s:I, s:I, s:I}", "dims", dims, "arena_bytes", (json_int_t)m->arena_bytes,
			 "live_bound_bytes", (json_int_t)m->live_bound_bytes, "naive_bytes", (json_int_t)m->naive_bytes,
			 "io_bytes", (json_int_t)m->io_bytes, "constants_bytes", (json_int_t)m->constants_bytes);
}

/* Onto the list, or printed as CSV where that is NULL. */
static enum lth_code add_row(struct lth_cli *cli, const struct lth_exe *exe, json_t *list)
{
	struct lathe_memory m;
	struct lathe_error error;
	if (exe->api->memory(exe->executable, exe->symbols, &m, &error) != 0)
		return lth_exe_error(&cli->diag, &error);
	if (list) {
		json_array_append_new(list, row_json(exe, &m));
		return LTH_OK;
	}
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
	json_t *list = lth_cli_has(cli, LTH_CLI_JSON) ? json_array() : NULL;
	if (code == LTH_OK && !list)
		print_columns(exe);
	while (code == LTH_OK && range[0] <= range[1]) {
		exe->symbols[symbol] = range[0];
		code = add_row(cli, exe, list);
		if (!lth_add_i64(range[0], range[2], &range[0]))
			break;
	}
	if (code == LTH_OK && list)
		lth_cli_print_json(list);
	json_decref(list);
	return code;
}

/* A storage that is alive at the peak. */
struct peak_row {
	uint32_t storage;
	int64_t bytes, saves;
};

static int larger_first(const void *a, const void *b)
{
	const struct peak_row *x = a, *y = b;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->storage < y->storage ? -1 : 1;
}

static const char *node_at(const struct lth_program *program, uint32_t instr)
{
	return instr != LTH_NONE && program->instrs[instr].node ? program->instrs[instr].node : "-";
}

/* A peak: the program, its figures, and who is alive. */
struct peak {
	const struct lth_program *program;
	struct lth_memory_figures figures;
	const struct lth_storage_facts *facts;
	struct peak_row *rows;
	size_t count;
};

static const char *tensor_of(const struct peak *peak, const struct peak_row *row)
{
	const char *name = peak->program->storages[row->storage].name;
	return name ? name : "-";
}

static void print_peak_json(const struct peak *peak)
{
	json_t *list = json_array();
	for (size_t i = 0; i < peak->count; i++) {
		const struct peak_row *row = &peak->rows[i];
		const struct lth_storage_facts *f = &peak->facts[row->storage];
		json_array_append_new(list, json_pack("{s:s, s:I, s:I, s:s, s:s}", "tensor", tensor_of(peak, row),
						      "bytes", (json_int_t)row->bytes, "saves_bytes",
						      (json_int_t)row->saves, "written_by",
						      node_at(peak->program, f->first_write), "last_read_by",
						      node_at(peak->program, f->last_read)));
	}
	lth_cli_print_json(list);
	json_decref(list);
}

static void print_peak(const struct peak *peak)
{
	static const char *const head[] = {"bytes", "saves", "tensor", "written by", "last read by"};
	struct lth_cli_table table = {.columns = sizeof(head) / sizeof(head[0])};
	for (size_t i = 0; i < table.columns; i++)
		lth_cli_cell(&table, "%s", head[i]);
	for (size_t i = 0; i < peak->count; i++) {
		const struct peak_row *row = &peak->rows[i];
		const struct lth_storage_facts *f = &peak->facts[row->storage];
		lth_cli_cell(&table, "%lld", (long long)row->bytes);
		lth_cli_cell(&table, "%lld", (long long)row->saves);
		lth_cli_cell(&table, "%s", tensor_of(peak, row));
		lth_cli_cell(&table, "%s", node_at(peak->program, f->first_write));
		lth_cli_cell(&table, "%s", node_at(peak->program, f->last_read));
	}
	printf("live bound %lld bytes at step %u of %u, %s\n", (long long)peak->figures.live_bound_bytes,
	       peak->figures.peak_instr, peak->program->num_instrs,
	       node_at(peak->program, peak->figures.peak_instr));
	lth_cli_table_print(&table, stdout);
}

/* Works out a peak; its arrays are the view's. */
static enum lth_code find_peak(const struct lth_cli_view *view, struct peak *peak, struct lth_diag *diag)
{
	const struct lth_program *program = peak->program = view->program;
	int64_t *sizes = lth_arena_array(view->arena, program->num_storages, sizeof(*sizes));
	int64_t *without = lth_arena_array(view->arena, program->num_storages, sizeof(*without));
	struct lth_storage_facts *facts = lth_arena_array(view->arena, program->num_storages, sizeof(*facts));
	peak->facts = facts;
	peak->rows = lth_arena_array(view->arena, program->num_storages, sizeof(*peak->rows));
	if (!sizes || !without || !facts || !peak->rows)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "peak", NULL, NULL, "no memory");
	enum lth_code code = lth_memory_figures(program, view->symbols, &peak->figures, diag);
	if (code == LTH_OK)
		code = lth_storage_sizes(program, view->symbols, sizes, diag);
	if (code == LTH_OK)
		code = lth_memory_bound_without(program, view->symbols, without, diag);
	if (code != LTH_OK)
		return code;
	lth_storage_ledger(program, facts);
	for (uint32_t s = 0; s < program->num_storages; s++)
		if (without[s] >= 0)
			peak->rows[peak->count++] =
				(struct peak_row){s, sizes[s], peak->figures.live_bound_bytes - without[s]};
	if (peak->count)
		qsort(peak->rows, peak->count, sizeof(*peak->rows), larger_first);
	return LTH_OK;
}

static enum lth_code show_peak(struct lth_cli *cli)
{
	struct lth_cli_view view = {0};
	struct peak peak = {0};
	enum lth_code code = lth_cli_view_open(cli, cli->arguments[0], &view);
	if (code == LTH_OK)
		code = find_peak(&view, &peak, &cli->diag);
	if (code == LTH_OK && lth_cli_has(cli, LTH_CLI_JSON))
		print_peak_json(&peak);
	else if (code == LTH_OK)
		print_peak(&peak);
	lth_cli_view_close(&view);
	return code;
}

enum lth_code lth_cli_memory(struct lth_cli *cli)
{
	if (lth_cli_has(cli, LTH_CLI_PEAK))
		return show_peak(cli);
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
	} else if (code == LTH_OK && lth_cli_has(cli, LTH_CLI_JSON)) {
		json_t *list = json_array();
		code = add_row(cli, &exe, list);
		if (code == LTH_OK)
			lth_cli_print_json(json_array_get(list, 0));
		json_decref(list);
	} else if (code == LTH_OK) {
		print_columns(&exe);
		code = add_row(cli, &exe, NULL);
	}
	lth_exe_close(&exe);
	return code;
}
