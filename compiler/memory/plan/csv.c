/* Buffers as CSV: `id,lower,upper,size[,alignment][,offset]`, the columns in any order, named by the header row. Cells
 * may stand in double quotes, a doubled quote inside stands for one; lines end in LF or CR LF; empty lines are skipped.
 * Every error names line:column, the column counted in bytes from 1. Thread rule: reentrant. */
#include "compiler/memory/plan/plan.h"
#include "runtime/base/buf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum column { COLUMN_ID, COLUMN_LOWER, COLUMN_UPPER, COLUMN_SIZE, COLUMN_ALIGNMENT, COLUMN_OFFSET, NUM_COLUMNS };
static const char *const column_names[NUM_COLUMNS] = {"id", "lower", "upper", "size", "alignment", "offset"};
#define NUM_REQUIRED COLUMN_ALIGNMENT

struct reader {
	const char *at, *end, *line_start;
	size_t line;
	const struct lth_plan_reading *reading;
	struct lth_diag *diag;
	enum column columns[NUM_COLUMNS]; /* by position */
	size_t num_columns;
	size_t *lines; /* of every row, to name a repeated id's */
	size_t lines_capacity;
	struct lth_buf cell; /* the text of the current cell */
	char cell_place[48];
	bool row_ends; /* behind the current cell */
};

static void set_place(struct reader *reader, const char *at)
{
	snprintf(reader->cell_place, sizeof(reader->cell_place), "%zu:%zu", reader->line,
		 (size_t)(at - reader->line_start) + 1);
}

static enum lth_code fail(struct reader *reader, const char *expected, const char *advice, const char *found)
{
	return lth_diag_fail(reader->diag, LTH_INVALID_REQUEST, reader->cell_place, expected, advice, "%s", found);
}

static enum lth_code no_memory(struct reader *reader)
{
	return lth_diag_fail(reader->diag, LTH_OUT_OF_MEMORY, "CSV", NULL, NULL, "line %zu", reader->line);
}

static bool at_line_end(const struct reader *reader)
{
	return reader->at == reader->end || *reader->at == '\n' ||
	       (*reader->at == '\r' && (reader->at + 1 == reader->end || reader->at[1] == '\n'));
}

static void skip_blanks(struct reader *reader)
{
	while (reader->at < reader->end && (*reader->at == ' ' || *reader->at == '\t'))
		reader->at++;
}

static enum lth_code read_quoted(struct reader *reader)
{
	for (reader->at++; reader->at < reader->end; reader->at++) {
		if (*reader->at == '\n')
			break;
		if (*reader->at != '"') {
			lth_buf_putc(&reader->cell, *reader->at);
		} else if (reader->at + 1 < reader->end && reader->at[1] == '"') {
			lth_buf_putc(&reader->cell, '"');
			reader->at++;
		} else {
			reader->at++;
			return LTH_OK;
		}
	}
	return fail(reader, "a closing quote on the same line", NULL, "a quoted cell without an end");
}

/* Reads one cell and the comma or line end behind it. */
static enum lth_code read_cell(struct reader *reader)
{
	skip_blanks(reader);
	set_place(reader, reader->at);
	reader->cell.size = 0;
	lth_buf_puts(&reader->cell, "");
	if (!at_line_end(reader) && *reader->at == '"') {
		enum lth_code code = read_quoted(reader);
		if (code != LTH_OK)
			return code;
		skip_blanks(reader);
		if (!at_line_end(reader) && *reader->at != ',')
			return fail(reader, "a comma or the end of the line", NULL, "text behind a quoted cell");
	} else {
		const char *start = reader->at;
		while (!at_line_end(reader) && *reader->at != ',')
			reader->at++;
		const char *stop = reader->at;
		while (stop > start && (stop[-1] == ' ' || stop[-1] == '\t'))
			stop--;
		lth_buf_append(&reader->cell, start, (size_t)(stop - start));
	}
	if (!lth_buf_ok(&reader->cell))
		return no_memory(reader);
	if (memchr(lth_buf_text(&reader->cell), 0, reader->cell.size))
		return fail(reader, "text", NULL, "a cell with a NUL byte");
	reader->row_ends = at_line_end(reader);
	if (!reader->row_ends)
		reader->at++;
	return LTH_OK;
}

static void next_line(struct reader *reader)
{
	if (reader->at < reader->end && *reader->at == '\r')
		reader->at++;
	if (reader->at < reader->end && *reader->at == '\n')
		reader->at++;
	reader->line_start = reader->at;
	reader->line++;
}

/* Moves to the next line with something on it; false at the end of the text. */
static bool find_row(struct reader *reader)
{
	for (;;) {
		skip_blanks(reader);
		if (reader->at == reader->end)
			return false;
		if (!at_line_end(reader))
			return true;
		next_line(reader);
	}
}

static enum lth_code read_header(struct reader *reader)
{
	bool seen[NUM_COLUMNS] = {false};
	if (!find_row(reader)) {
		set_place(reader, reader->at);
		return fail(reader, "a header row such as id,lower,upper,size", NULL, "no text");
	}
	do {
		enum lth_code code = read_cell(reader);
		if (code != LTH_OK)
			return code;
		const char *name = lth_buf_text(&reader->cell);
		size_t column = 0;
		while (column < NUM_COLUMNS && strcmp(name, column_names[column]) != 0)
			column++;
		if (column == NUM_COLUMNS) {
			const char *near = lth_nearest(name, column_names, NUM_COLUMNS);
			char advice[64] = "";
			if (near)
				snprintf(advice, sizeof(advice), "did you mean '%s'?", near);
			return lth_diag_fail(reader->diag, LTH_INVALID_REQUEST, reader->cell_place,
					     "a header row of id, lower, upper, size, alignment, offset", advice,
					     "column '%s'", name);
		}
		if (seen[column])
			return lth_diag_fail(reader->diag, LTH_INVALID_REQUEST, reader->cell_place,
					     "every column once", NULL, "column '%s' again", name);
		seen[column] = true;
		reader->columns[reader->num_columns++] = (enum column)column;
	} while (!reader->row_ends);
	for (size_t c = 0; c < NUM_REQUIRED; c++)
		if (!seen[c])
			return lth_diag_fail(reader->diag, LTH_INVALID_REQUEST, reader->cell_place,
					     "the columns id, lower, upper, size", NULL, "no column '%s'",
					     column_names[c]);
	return LTH_OK;
}

static enum lth_code read_number(struct reader *reader, enum column column, int64_t *out_value)
{
	const char *text = lth_buf_text(&reader->cell), *digit = text;
	bool negative = *digit == '-';
	int64_t value = 0;
	digit += negative || *digit == '+';
	bool valid = *digit != 0;
	for (; valid && *digit; digit++) {
		int64_t step = *digit - '0';
		if (step < 0 || step > 9)
			valid = false;
		else if (__builtin_mul_overflow(value, 10, &value) ||
			 __builtin_add_overflow(value, negative ? -step : step, &value))
			return lth_diag_fail(reader->diag, LTH_INVALID_REQUEST, reader->cell_place,
					     "a number below 2^63", NULL, "%s '%s'", column_names[column], text);
	}
	if (!valid)
		return lth_diag_fail(reader->diag, LTH_INVALID_REQUEST, reader->cell_place, "a whole number", NULL,
				     "%s '%s'", column_names[column], text);
	*out_value = value;
	return LTH_OK;
}

static int64_t *field_of(struct lth_buffer *buffer, enum column column)
{
	switch (column) {
	case COLUMN_LOWER:
		return &buffer->lower;
	case COLUMN_UPPER:
		return &buffer->upper;
	case COLUMN_SIZE:
		return &buffer->size;
	case COLUMN_ALIGNMENT:
		return &buffer->alignment;
	default:
		return &buffer->fixed_offset;
	}
}

static enum lth_code check_row(struct reader *reader, struct lth_buffer *buffer, const char *id,
			       char (*places)[48])
{
	const char *field = NULL, *fault = lth_plan_buffer_fault(buffer, &field);
	if (!fault)
		return LTH_OK;
	size_t column = 0;
	while (strcmp(column_names[column], field) != 0)
		column++;
	return lth_diag_fail(reader->diag, LTH_INVALID_REQUEST, places[column], fault, NULL, "%s %" PRId64 " of '%s'",
			     field, *field_of(buffer, (enum column)column), id);
}

static enum lth_code read_row(struct reader *reader, struct lth_buf *id, struct lth_plan_table *table)
{
	struct lth_buffer buffer = {.alignment = reader->reading->alignment, .fixed_offset = -1};
	int64_t offset = LTH_PLAN_NO_OFFSET;
	char places[NUM_COLUMNS][48] = {{0}};
	size_t cells = 0;
	for (bool more = true; more; more = !reader->row_ends) {
		enum lth_code code = read_cell(reader);
		if (code != LTH_OK)
			return code;
		if (cells == reader->num_columns)
			return fail(reader, "as many cells as the header has", NULL, "one cell more");
		enum column column = reader->columns[cells++];
		memcpy(places[column], reader->cell_place, sizeof(places[column]));
		if (column == COLUMN_ID) {
			id->size = 0;
			lth_buf_puts(id, lth_buf_text(&reader->cell));
			if (id->size == 0)
				return fail(reader, "an id", NULL, "an empty cell");
		} else if (reader->cell.size > 0 || column < NUM_REQUIRED) {
			int64_t *field = column == COLUMN_OFFSET ? &offset : field_of(&buffer, column);
			code = read_number(reader, column, field);
			if (code != LTH_OK)
				return code;
		}
	}
	if (cells < reader->num_columns) {
		set_place(reader, reader->at);
		return fail(reader, "as many cells as the header has", NULL, "the end of the line");
	}
	bool is_fixed = offset != LTH_PLAN_NO_OFFSET && reader->reading->offsets_are_fixed;
	if (is_fixed && offset < 0)
		return lth_diag_fail(reader->diag, LTH_INVALID_REQUEST, places[COLUMN_OFFSET],
				     "an offset of at least 0", NULL, "offset %" PRId64 " of '%s'", offset,
				     lth_buf_text(id));
	if (is_fixed)
		buffer.fixed_offset = offset;
	enum lth_code code = check_row(reader, &buffer, lth_buf_text(id), places);
	if (code != LTH_OK)
		return code;
	if (!lth_buf_ok(id) || !lth_plan_table_add(table, id->data, id->size, &buffer, offset))
		return no_memory(reader);
	return LTH_OK;
}

static enum lth_code note_line(struct reader *reader, size_t row)
{
	if (row >= reader->lines_capacity) {
		size_t capacity = reader->lines_capacity ? 2 * reader->lines_capacity : 64;
		size_t *lines = realloc(reader->lines, capacity * sizeof(*lines));
		if (!lines)
			return no_memory(reader);
		reader->lines = lines;
		reader->lines_capacity = capacity;
	}
	reader->lines[row] = reader->line;
	return LTH_OK;
}

static enum lth_code check_ids(struct reader *reader, const struct lth_plan_table *table)
{
	size_t repeated = lth_plan_table_repeated_id(table), first = 0;
	if (repeated == SIZE_MAX)
		return LTH_OK;
	if (repeated == SIZE_MAX - 1)
		return no_memory(reader);
	while (strcmp(table->ids[first], table->ids[repeated]) != 0)
		first++;
	snprintf(reader->cell_place, sizeof(reader->cell_place), "%zu:1", reader->lines[repeated]);
	return lth_diag_fail(reader->diag, LTH_INVALID_REQUEST, reader->cell_place, "distinct ids", NULL,
			     "id '%s', which line %zu has too", table->ids[repeated], reader->lines[first]);
}

static enum lth_code read_all(struct reader *reader, struct lth_buf *id, struct lth_plan_table *table)
{
	enum lth_code code = read_header(reader);
	while (code == LTH_OK && find_row(reader)) {
		code = note_line(reader, table->count);
		if (code == LTH_OK && table->count == LTH_PLAN_MAX_BUFFERS)
			code = lth_diag_fail(reader->diag, LTH_TOO_LARGE, "CSV", "at most 16777216 buffers", NULL,
					     "more at line %zu", reader->line);
		if (code == LTH_OK)
			code = read_row(reader, id, table);
	}
	return code == LTH_OK ? check_ids(reader, table) : code;
}

enum lth_code lth_plan_read_csv(const char *text, size_t size, const struct lth_plan_reading *reading,
				struct lth_plan_table *out_table, struct lth_diag *diag)
{
	struct lth_plan_table table = {0};
	struct lth_buf id = {0};
	if (size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) {
		text += 3;
		size -= 3;
	}
	struct reader reader = {.at = text, .end = text + size, .line_start = text, .line = 1, .diag = diag};
	reader.reading = reading;
	enum lth_code code = read_all(&reader, &id, &table);
	if (code == LTH_OK)
		*out_table = table;
	else
		lth_plan_table_free(&table);
	free(reader.lines);
	lth_buf_free(&reader.cell);
	lth_buf_free(&id);
	return code;
}

static void write_id(struct lth_buf *out, const char *id)
{
	if (!id[strcspn(id, ",\" \t\r\n")]) {
		lth_buf_puts(out, id);
		return;
	}
	lth_buf_putc(out, '"');
	for (; *id; id++) {
		if (*id == '"')
			lth_buf_putc(out, '"');
		lth_buf_putc(out, *id);
	}
	lth_buf_putc(out, '"');
}

enum lth_code lth_plan_write_csv(const struct lth_plan_table *table, const int64_t *offsets, char **out_text,
				 struct lth_diag *diag)
{
	struct lth_buf out = {0};
	lth_buf_puts(&out, "id,lower,upper,size,alignment,offset\n");
	for (size_t i = 0; i < table->count; i++) {
		const struct lth_buffer *b = &table->buffers[i];
		write_id(&out, table->ids[i]);
		lth_buf_printf(&out, ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",", b->lower, b->upper, b->size,
			       b->alignment);
		if (offsets[i] != LTH_PLAN_NO_OFFSET)
			lth_buf_printf(&out, "%" PRId64, offsets[i]);
		lth_buf_putc(&out, '\n');
	}
	if (!lth_buf_ok(&out)) {
		lth_buf_free(&out);
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "CSV", NULL, NULL, "%zu buffers", table->count);
	}
	*out_text = out.data;
	return LTH_OK;
}
