/* The reference page of operators, made from the table: docs/OPERATORS.md is what this prints. */
#include "compiler/ops/op.h"

#include <assert.h>
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

static void put_row(struct lth_buf *out, const struct lth_op *op)
{
	lth_buf_printf(out, "| %s%s%s | ", op->domain, op->domain[0] ? "." : "", op->name);
	put_cell(out, op->summary);
	lth_buf_printf(out, " | %s | ", lth_op_kind_text(op->kind));
	put_count(out, op->min_inputs, op->max_inputs);
	lth_buf_puts(out, " | ");
	put_count(out, op->min_outputs, op->max_outputs);
	lth_buf_puts(out, " | `");
	put_cell(out, op->types);
	lth_buf_puts(out, op->attrs[0] ? "` | `" : "` | ");
	put_cell(out, op->attrs);
	lth_buf_puts(out, op->attrs[0] ? "` |\n" : " |\n");
}

/* Rows in the order of their full names; the table's own order is by family. */
static bool stands_before(const struct lth_op *a, const struct lth_op *b)
{
	int domains = strcmp(a->domain, b->domain);
	return domains ? domains < 0 : strcmp(a->name, b->name) < 0;
}

void lth_op_reference(struct lth_buf *out)
{
	const struct lth_op *last = NULL;
	lth_buf_puts(
		out,
		"# Operators\n\nMade from the operator table (`compiler/ops/ops.def`), which explains the columns. "
		"Models "
		"of any opset are upgraded to these forms when they are read; names without a domain are ai.onnx's.\n\n"
		"How an operator is lowered: *elementwise*, *injective* (data movement) and *reduction* operators are "
		"expressions, which fuse; *templates* write their own loops; *irregular* ones call a kernel of the "
		"runtime; *composite* ones are written as others.\n\n"
		"| operator | what it gives | lowered as | inputs | outputs | types | attributes |\n"
		"|---|---|---|---|---|---|---|\n");
	for (int printed = 0; printed < LTH_NUM_OPS; printed++) {
		const struct lth_op *next = NULL;
		for (int i = 0; i < LTH_NUM_OPS; i++)
			if ((!last || stands_before(last, &lth_ops[i])) && (!next || stands_before(&lth_ops[i], next)))
				next = &lth_ops[i];
		if (!next)
			break;
		put_row(out, next);
		last = next;
	}
}
