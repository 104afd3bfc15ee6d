/* Text for people: sizes, tables, members of JSON documents. */
#include "api/cli/cli.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void lth_cli_bytes(int64_t bytes, char *out, size_t size)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double value = (double)bytes;
	size_t unit = 0;
	if (bytes < 0) {
		snprintf(out, size, "-");
		return;
	}
	for (; value >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
		value /= 1024;
	snprintf(out, size, "%.*f %s", unit == 0 ? 0 : value < 10 ? 2 : value < 100 ? 1 : 0, value, units[unit]);
}

const char *lth_cli_member(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "";
}

int64_t lth_cli_int(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	return json_is_integer(value) ? json_integer_value(value) : -1;
}

double lth_cli_real(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	return json_is_number(value) ? json_number_value(value) : -1;
}

void lth_cli_print_json(const json_t *json)
{
	char *text = json_dumps(json, JSON_INDENT(2) | JSON_REAL_PRECISION(15) | JSON_ENCODE_ANY);
	if (text)
		puts(text);
	free(text);
}

void lth_cli_clear_progress(struct lth_cli *cli)
{
	if (cli->progress_shown)
		fputs("\r\033[K", stderr);
	cli->progress_shown = false;
}

void lth_cli_cell(struct lth_cli_table *table, const char *format, ...)
{
	va_list arguments;
	char *text;
	va_start(arguments, format);
	int length = vasprintf(&text, format, arguments);
	va_end(arguments);
	char **cells = length < 0 ? NULL : realloc(table->cells, (table->num_cells + 1) * sizeof(*cells));
	if (!cells) {
		if (length >= 0)
			free(text);
		table->failed = true;
		return;
	}
	table->cells = cells;
	cells[table->num_cells++] = text;
}

/* Columns on the terminal that text takes: its code points. */
static size_t width_of(const char *text)
{
	size_t width = 0;
	for (; *text; text++)
		width += ((unsigned char)*text & 0xC0) != 0x80;
	return width;
}

static bool is_number(const char *text)
{
	return isdigit((unsigned char)text[0]) ||
	       (strchr("+-.", text[0]) && text[0] && isdigit((unsigned char)text[1])) || strcmp(text, "-") == 0;
}

/* A column is numeric when every cell below its head is a number, or empty. */
static bool numeric_column(const struct lth_cli_table *table, size_t column)
{
	bool any = false;
	for (size_t i = column + table->columns; i < table->num_cells; i += table->columns) {
		if (!is_number(table->cells[i]) && table->cells[i][0])
			return false;
		any |= table->cells[i][0] != 0;
	}
	return any;
}

void lth_cli_table_print(struct lth_cli_table *table, FILE *file)
{
	for (size_t i = 0; i < table->num_cells && !table->failed; i++) {
		size_t column = i % table->columns, widest = 0, width = width_of(table->cells[i]);
		bool last = column + 1 == table->columns;
		for (size_t k = column; k < table->num_cells; k += table->columns)
			widest = width_of(table->cells[k]) > widest ? width_of(table->cells[k]) : widest;
		int pad = (int)(widest - width);
		bool right = numeric_column(table, column);
		fprintf(file, "%*s%s%*s%s", right ? pad : 0, "", table->cells[i], right || last ? 0 : pad, "",
			last ? "\n" : "  ");
	}
	for (size_t i = 0; i < table->num_cells; i++)
		free(table->cells[i]);
	free(table->cells);
	*table = (struct lth_cli_table){.columns = table->columns};
}

void lth_cli_print_ports(const json_t *ports, const char *label)
{
	size_t index, axis;
	json_t *port, *dim;
	json_array_foreach(ports, index, port) {
		const json_t *dims = json_object_get(port, "dims");
		const char *type = lth_cli_member(port, json_object_get(port, "dtype") ? "dtype" : "type");
		printf("%-10s%s: %s%s", label, lth_cli_member(port, "name"), type, dims ? "[" : "");
		json_array_foreach(dims, axis, dim) {
			if (json_is_integer(dim))
				printf("%s%lld", axis ? ", " : "", (long long)json_integer_value(dim));
			else
				printf("%s%s", axis ? ", " : "", json_string_value(dim));
		}
		puts(dims ? "]" : "");
	}
}
