/* Printing loop IR: the canonical text, whose digest is a kernel's identity. See docs/IR.md. Values are numbered densely
 * in the order of their definition; entry values are written where they are used: p0, i3, begin, end, scratch, an i64
 * constant as its number, other constants as TYPE(number). */
#include "compiler/lower/loop_build.h"

#include "compiler/lower/lanes.h"

#include <inttypes.h>

static const char *const error_texts[LTH_NUM_KERNEL_ERRORS] = {
	[LTH_KERNEL_OK] = "ok",
	[LTH_KERNEL_INDEX] = "index",
	[LTH_KERNEL_SHAPE] = "shape",
	[LTH_KERNEL_DIVISION] = "division",
	[LTH_KERNEL_MEMORY] = "memory",
	[LTH_KERNEL_LIMIT] = "limit",
	[LTH_KERNEL_LIBRARY] = "library",
};

const char *lth_kernel_error_text(enum lth_kernel_error error)
{
	return error < LTH_NUM_KERNEL_ERRORS ? error_texts[error] : "unknown";
}

struct printer {
	const struct lth_loop_fn *fn;
	struct lth_buf *out;
	uint32_t *numbers;
	uint32_t next;
	unsigned depth;
};

static const char *type_text(enum lth_dtype dtype)
{
	return dtype == LTH_POINTER_TYPE ? "ptr" : lth_dtype_text(dtype);
}

static void print_number(struct printer *p, char before, uint32_t number)
{
	lth_buf_putc(p->out, before);
	lth_buf_int(p->out, number);
}

static void print_type(struct printer *p, const struct lth_loop_instr *x)
{
	lth_buf_puts(p->out, type_text(x->dtype));
	if (x->lanes > 1)
		print_number(p, 'x', x->lanes);
}

static void print_const(struct printer *p, const struct lth_loop_instr *x)
{
	if (x->dtype == LTH_DTYPE_I64) {
		lth_buf_int(p->out, x->i);
		return;
	}
	lth_buf_puts(p->out, lth_dtype_text(x->dtype));
	lth_buf_putc(p->out, '(');
	if (lth_is_float(x->dtype))
		lth_buf_double(p->out, x->f);
	else
		lth_buf_int(p->out, x->i);
	lth_buf_putc(p->out, ')');
}

static void print_value(struct printer *p, lth_lv value)
{
	const struct lth_loop_instr *x = lth_loop_get(p->fn, value);
	switch (x->op) {
	case LTH_LOOP_CONST:
		print_const(p, x);
		break;
	case LTH_LOOP_INT:
		print_number(p, 'i', x->id);
		break;
	case LTH_LOOP_POINTER:
		print_number(p, 'p', x->id);
		break;
	case LTH_LOOP_SCRATCH:
	case LTH_LOOP_BEGIN:
	case LTH_LOOP_END:
		lth_buf_puts(p->out, lth_loop_text(x->op));
		break;
	default:
		print_number(p, '%', p->numbers[value]);
		break;
	}
}

static void print_values(struct printer *p, lth_lv a, lth_lv b, lth_lv c)
{
	lth_lv all[3] = {a, b, c};
	const char *before = " ";
	for (int k = 0; k < 3; k++) {
		if (all[k] == LTH_LV_NONE)
			continue;
		lth_buf_puts(p->out, before);
		print_value(p, all[k]);
		before = ", ";
	}
}

static void print_list(struct printer *p, const uint32_t *list, uint32_t count)
{
	lth_buf_puts(p->out, " [");
	for (uint32_t k = 0; k < count; k++) {
		lth_buf_puts(p->out, k ? ", " : "");
		print_value(p, list[k]);
	}
	lth_buf_putc(p->out, ']');
}

/* "%5:f32x16" of a value defined here. */
static void define(struct printer *p, lth_lv value)
{
	p->numbers[value] = p->next++;
	print_number(p, '%', p->numbers[value]);
	lth_buf_putc(p->out, ':');
	print_type(p, lth_loop_get(p->fn, value));
}

/* The PHIs behind a FOR or RESULTs behind an end, each with what it starts from. */
static void define_list(struct printer *p, lth_lv first, uint32_t count, const uint32_t *from)
{
	for (uint32_t k = 0; k < count; k++) {
		lth_buf_puts(p->out, k ? ", " : "");
		define(p, first + k);
		lth_buf_puts(p->out, " = ");
		print_value(p, from[k]);
	}
}

static void print_memory(struct printer *p, const struct lth_loop_instr *x)
{
	lth_buf_putc(p->out, ' ');
	lth_buf_puts(p->out, lth_dtype_text(x->memory));
}

/* What stands behind the instruction's word. */
static void print_operands(struct printer *p, const struct lth_loop_instr *x)
{
	switch (x->op) {
	case LTH_LOOP_OP:
		if (x->scalar == LTH_SCALAR_ROUND_TO)
			print_memory(p, x);
		print_values(p, x->a, x->b, x->c);
		break;
	case LTH_LOOP_EXTRACT:
		print_values(p, x->a, LTH_LV_NONE, LTH_LV_NONE);
		lth_buf_printf(p->out, " [%" PRId64 "]", x->i);
		break;
	case LTH_LOOP_SHUFFLE:
		print_values(p, x->a, x->b, LTH_LV_NONE);
		for (uint32_t k = 0; k < x->count; k++)
			lth_buf_printf(p->out, "%s%u", k ? ", " : " [", x->list[k]);
		lth_buf_putc(p->out, ']');
		break;
	case LTH_LOOP_REDUCE:
		lth_buf_printf(p->out, " %s", lth_scalar_text(x->scalar));
		print_values(p, x->a, LTH_LV_NONE, LTH_LV_NONE);
		break;
	case LTH_LOOP_OFFSET:
	case LTH_LOOP_LOAD:
	case LTH_LOOP_STORE:
	case LTH_LOOP_GATHER:
		print_memory(p, x);
		print_values(p, x->a, x->b, x->c);
		break;
	case LTH_LOOP_SCATTER:
		print_memory(p, x);
		print_values(p, x->a, x->list[0], x->b);
		if (x->c != LTH_LV_NONE) {
			lth_buf_puts(p->out, ", ");
			print_value(p, x->c);
		}
		break;
	case LTH_LOOP_PREFETCH:
		lth_buf_puts(p->out, x->i ? " write" : " read");
		print_values(p, x->a, LTH_LV_NONE, LTH_LV_NONE);
		break;
	case LTH_LOOP_FAIL:
		lth_buf_printf(p->out, " %s", lth_kernel_error_text((enum lth_kernel_error)x->i));
		print_values(p, x->a, LTH_LV_NONE, LTH_LV_NONE);
		break;
	default:
		print_values(p, x->a, x->b, x->c);
		break;
	}
}

/* Blocks: "for %2:i64 = 0 to i0 step 16 [%3:f32 = f32(0)]", "endfor [%7] -> [%8:f32 = %7]". */
static void print_block(struct printer *p, lth_lv value, const struct lth_loop_instr *x)
{
	lth_buf_puts(p->out, lth_loop_text(x->op));
	if (x->op == LTH_LOOP_FOR) {
		lth_buf_putc(p->out, ' ');
		define(p, value);
		lth_buf_puts(p->out, " = ");
		print_value(p, x->a);
		lth_buf_puts(p->out, " to ");
		print_value(p, x->b);
		lth_buf_puts(p->out, " step ");
		print_value(p, x->c);
		if (x->count) {
			lth_buf_puts(p->out, " [");
			define_list(p, value + 1, x->count, x->list);
			lth_buf_putc(p->out, ']');
		}
	} else if (x->op == LTH_LOOP_IF) {
		print_values(p, x->a, LTH_LV_NONE, LTH_LV_NONE);
	} else if (x->op == LTH_LOOP_ELSE && x->count) {
		print_list(p, x->list, x->count);
	} else if (x->count) {
		lth_buf_puts(p->out, " [");
		define_list(p, value + 1, x->count, x->list);
		lth_buf_putc(p->out, ']');
	}
}

static void print_instr(struct printer *p, lth_lv value)
{
	const struct lth_loop_instr *x = lth_loop_get(p->fn, value);
	bool closes = x->op == LTH_LOOP_ENDFOR || x->op == LTH_LOOP_ELSE || x->op == LTH_LOOP_ENDIF;
	bool opens = x->op == LTH_LOOP_FOR || x->op == LTH_LOOP_ELSE || x->op == LTH_LOOP_IF;
	if (lth_loop_is_entry(x->op) || x->op == LTH_LOOP_PHI || x->op == LTH_LOOP_RESULT)
		return;
	p->depth -= closes && p->depth > 0;
	for (unsigned k = 0; k < p->depth + 1; k++)
		lth_buf_putc(p->out, '\t');
	if (opens || closes) {
		print_block(p, value, x);
	} else {
		if (lth_loop_defines(x->op)) {
			define(p, value);
			lth_buf_puts(p->out, " = ");
		}
		lth_buf_puts(p->out, x->op == LTH_LOOP_OP ? lth_scalar_text(x->scalar) : lth_loop_text(x->op));
		print_operands(p, x);
	}
	lth_buf_putc(p->out, '\n');
	p->depth += opens;
}

void lth_loop_print(const struct lth_loop_fn *fn, struct lth_buf *out)
{
	struct printer p = {.fn = fn, .out = out};
	p.numbers = lth_arena_array(fn->arena, fn->num_instrs, sizeof(*p.numbers));
	if (!p.numbers) {
		out->failed = true;
		return;
	}
	lth_buf_puts(out, "kernel (");
	for (uint32_t k = 0; k < fn->num_pointers; k++)
		lth_buf_printf(out, "%s%s%s", k ? ", " : "", fn->pointers[k].written ? "written " : "",
			       lth_dtype_text(fn->pointers[k].memory));
	lth_buf_printf(out, ") ints %u\n", fn->num_ints);
	for (lth_lv value = 0; value < fn->num_instrs; value++)
		print_instr(&p, value);
	lth_buf_puts(out, "end\n");
}
