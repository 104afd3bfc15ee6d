/* The reference page of operators, made from the tables: docs/OPERATORS.md is what this prints. */
#include "compiler/ops/history.h"
#include "compiler/ops/op.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const char *const kinds[LTH_NUM_OP_KINDS] = {
	[LTH_OP_ELEMENTWISE] = "elementwise", [LTH_OP_INJECTIVE] = "injective", [LTH_OP_REDUCTION] = "reduction",
	[LTH_OP_TEMPLATE] = "template",       [LTH_OP_IRREGULAR] = "irregular", [LTH_OP_CONTROL] = "control",
	[LTH_OP_OBJECT] = "object",           [LTH_OP_COMPOSITE] = "composite",
};

const char *lth_op_kind_text(enum lth_op_kind kind)
{
	assert(kind < LTH_NUM_OP_KINDS);
	return kinds[kind];
}

/* Text in a cell of a table: a bar would end it. */
static void put_cell(struct lth_buf *out, const char *text)
{
	for (; *text; text++)
		lth_buf_puts(out, *text == '|' ? "\\|" : (const char[]){*text, 0});
}

static void put_count(struct lth_buf *out, uint32_t min, uint32_t max)
{
	if (max == UINT32_MAX)
		lth_buf_printf(out, "%u or more", min);
	else if (min == max)
		lth_buf_printf(out, "%u", min);
	else
		lth_buf_printf(out, "%u to %u", min, max);
}

/* A row of the page: an operator of the table, or one that is read as others. */
struct entry {
	const char *domain, *name;
	const struct lth_op *op; /* NULL: read as others */
};

static void put_meaning(struct lth_buf *out, const struct lth_op *op)
{
	put_cell(out, op->summary);
	lth_buf_printf(out, " | %s | ", lth_op_kind_text(op->kind));
	put_count(out, op->min_inputs, op->max_inputs);
	lth_buf_puts(out, " | ");
	put_count(out, op->min_outputs, op->max_outputs);
	lth_buf_puts(out, " | `");
	put_cell(out, op->types);
	lth_buf_puts(out, op->attrs[0] ? "` | `" : "` | ");
	put_cell(out, op->attrs);
	lth_buf_puts(out, op->attrs[0] ? "` | " : " | ");
}

static void put_row(struct lth_buf *out, const struct entry *entry)
{
	lth_buf_printf(out, "| %s%s%s | %s | ", entry->domain, *entry->domain ? "." : "", entry->name,
		       lth_op_versions(entry->domain, entry->name));
	if (entry->op)
		put_meaning(out, entry->op);
	else
		lth_buf_puts(out, LTH_OP_IMPORT_SUMMARY " | import | | | | | ");
	lth_buf_printf(out, "%u |\n", lth_op_cases(entry->domain, entry->name));
}

/* Rows in the order of their full names; the table's own order is by family. */
static int by_name(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = strcmp(x->domain, y->domain);
	return order ? order : strcmp(x->name, y->name);
}

void lth_op_reference(struct lth_buf *out)
{
	struct entry *entries = calloc(LTH_NUM_OPS + (size_t)lth_num_op_histories, sizeof(*entries));
	size_t count = 0;
	if (!entries)
		return;
	for (int i = 0; i < LTH_NUM_OPS; i++)
		entries[count++] = (struct entry){lth_ops[i].domain, lth_ops[i].name, &lth_ops[i]};
	for (uint32_t i = 0; i < lth_num_op_histories; i++)
		if (!lth_op_find(lth_op_histories[i].domain, lth_op_histories[i].name))
			entries[count++] = (struct entry){lth_op_histories[i].domain, lth_op_histories[i].name, NULL};
	qsort(entries, count, sizeof(*entries), by_name);
	lth_buf_puts(
		out,
		"# Operators\n\nMade from the tables of operators (`compiler/ops/ops.def`, which explains the columns) and of "
		"their versions (`compiler/ops/history.def`). Models of any opset are upgraded to the newest forms when they "
		"are read; names without a domain are ai.onnx's. *Tests* counts the cases of the ONNX conformance suite that "
		"use the operator and pass.\n\n"
		"How an operator is lowered: *elementwise*, *injective* (data movement) and *reduction* operators are "
		"expressions, which fuse; *templates* write their own loops; *irregular* ones call a kernel of the "
		"runtime; *composite* ones are written as others; *import* says that the importer does that.\n\n"
		"| operator | versions | what it gives | lowered as | inputs | outputs | types | attributes | tests |\n"
		"|---|---|---|---|---|---|---|---|---|\n");
	for (size_t i = 0; i < count; i++)
		put_row(out, &entries[i]);
	free(entries);
}
