/* Shape expressions as people write them: "2*batch + 1", "ceil(height/32)*64". For descriptions and messages; the text
 * form of programs is another (program_print.c). */
#include "runtime/program/program.h"

#include <string.h>

enum { MAX_TEXT = 400, MAX_DEPTH = 40 };
enum precedence { SUM, PRODUCT, ATOM };

struct writer {
	const struct lth_program *program;
	struct lth_buf *out;
	size_t limit;
};

static void put(struct writer *w, uint32_t id, enum precedence context, unsigned depth);

/* a - b where b is a negative constant; reads better than a + -b. */
static void put_sum(struct writer *w, const struct lth_expr *e, unsigned depth)
{
	const struct lth_expr *b = &w->program->exprs[e->b];
	put(w, e->a, SUM, depth);
	if (b->op == LTH_EXPR_CONST && b->value < 0 && b->value != INT64_MIN) {
		lth_buf_printf(w->out, " - %lld", (long long)-b->value);
		return;
	}
	lth_buf_puts(w->out, " + ");
	put(w, e->b, SUM, depth);
}

static void put_product(struct writer *w, const struct lth_expr *e, unsigned depth)
{
	bool constant_behind = w->program->exprs[e->b].op == LTH_EXPR_CONST;
	put(w, constant_behind ? e->b : e->a, PRODUCT, depth);
	lth_buf_putc(w->out, '*');
	put(w, constant_behind ? e->a : e->b, PRODUCT, depth);
}

static void put_function(struct writer *w, const char *name, const char *between, const struct lth_expr *e,
			 enum precedence context, unsigned depth)
{
	lth_buf_printf(w->out, "%s(", name);
	put(w, e->a, context, depth);
	if (lth_expr_operands(e->op) == 2) {
		lth_buf_puts(w->out, between);
		put(w, e->b, context == PRODUCT ? ATOM : context, depth);
	}
	lth_buf_putc(w->out, ')');
}

static void put_leaf(struct writer *w, const struct lth_expr *e)
{
	double real;
	if (e->op == LTH_EXPR_SYMBOL) {
		lth_buf_puts(w->out, w->program->symbols[e->a].name);
	} else if (e->op == LTH_EXPR_CONST) {
		lth_buf_printf(w->out, "%lld", (long long)e->value);
	} else {
		memcpy(&real, &e->value, sizeof(real));
		lth_buf_double(w->out, real);
	}
}

static void put_operator(struct writer *w, const struct lth_expr *e, unsigned depth)
{
	switch (e->op) {
	case LTH_EXPR_ADD:
		put_sum(w, e, depth);
		break;
	case LTH_EXPR_MUL:
		put_product(w, e, depth);
		break;
	case LTH_EXPR_FLOORDIV:
		put_function(w, "floor", "/", e, PRODUCT, depth);
		break;
	case LTH_EXPR_CEILDIV:
		put_function(w, "ceil", "/", e, PRODUCT, depth);
		break;
	default:
		put_function(w, lth_expr_text(e->op), ", ", e, SUM, depth);
	}
}

static void put(struct writer *w, uint32_t id, enum precedence context, unsigned depth)
{
	const struct lth_expr *e = &w->program->exprs[id];
	if (lth_expr_operands(e->op) == 0) {
		put_leaf(w, e);
		return;
	}
	if (depth == 0 || w->out->size > w->limit) {
		lth_buf_puts(w->out, "...");
		return;
	}
	enum precedence own = e->op == LTH_EXPR_ADD ? SUM : e->op == LTH_EXPR_MUL ? PRODUCT : ATOM;
	if (own < context)
		lth_buf_putc(w->out, '(');
	put_operator(w, e, depth - 1);
	if (own < context)
		lth_buf_putc(w->out, ')');
}

void lth_program_expr_text(const struct lth_program *program, uint32_t expr, struct lth_buf *out)
{
	struct writer w = {program, out, out->size + MAX_TEXT};
	put(&w, expr, SUM, MAX_DEPTH);
}
