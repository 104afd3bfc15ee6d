/* The program as text. Leaves (constants, symbols) are written where they are used, every other expression has a line
 * of its own, e0, e1, ..., so the text grows with the program and not with how often an expression is shared. The
 * grammar is in docs/PROGRAM.md; program_parse.c reads it. */
#include "runtime/kernels/builtin.h"
#include "runtime/program/program.h"
#include "runtime/program/program_text.h"

#include <stdlib.h>
#include <string.h>

const char *const lth_source_texts[LTH_NUM_SOURCES] = {"input", "data"};
const char *const lth_storage_texts[LTH_NUM_STORAGES] = {"arena", "pool", "input", "output", "constant"};
const char *const lth_relation_texts[LTH_NUM_RELATIONS] = {"==", "<=", "divides"};

struct printer {
	const struct lth_program *program;
	struct lth_buf *out;
	uint32_t *numbers; /* an expression's id to the number behind its "e" */
};

bool lth_text_word_start(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool lth_text_word_char(char c)
{
	return lth_text_word_start(c) || (c >= '0' && c <= '9') || c == '.';
}

static void put_symbol(struct printer *p, uint32_t id)
{
	const char *name = p->program->symbols[id].name ? p->program->symbols[id].name : "";
	bool bare = lth_text_word_start(name[0]);
	for (const char *c = name; *c; c++)
		bare = bare && lth_text_word_char(*c);
	lth_buf_putc(p->out, '$');
	if (bare)
		lth_buf_puts(p->out, name);
	else
		lth_buf_quote(p->out, name);
}

static void put_value(struct printer *p, uint32_t id)
{
	if (id == LTH_NONE) {
		lth_buf_putc(p->out, '_');
		return;
	}
	const struct lth_expr *e = &p->program->exprs[id];
	double real;
	switch (e->op) {
	case LTH_EXPR_CONST:
		lth_buf_printf(p->out, "%lld", (long long)e->value);
		break;
	case LTH_EXPR_SYMBOL:
		put_symbol(p, e->a);
		break;
	case LTH_EXPR_RCONST:
		memcpy(&real, &e->value, sizeof(real));
		lth_buf_putc(p->out, '#');
		lth_buf_double(p->out, real);
		break;
	default:
		lth_buf_printf(p->out, "e%u", p->numbers[id]);
	}
}

static void put_values(struct printer *p, const char *head, const uint32_t *ids, uint32_t count, const char *tail)
{
	lth_buf_puts(p->out, head);
	for (uint32_t i = 0; i < count; i++) {
		lth_buf_puts(p->out, i ? ", " : "");
		put_value(p, ids[i]);
	}
	lth_buf_puts(p->out, tail);
}

static void put_tensor(struct printer *p, uint32_t id)
{
	if (id == LTH_NONE)
		lth_buf_putc(p->out, '_');
	else
		lth_buf_printf(p->out, "t%u", id);
}

static void put_tensors(struct printer *p, const char *head, const uint32_t *ids, uint32_t count)
{
	lth_buf_printf(p->out, " %s (", head);
	for (uint32_t i = 0; i < count; i++) {
		lth_buf_puts(p->out, i ? ", " : "");
		put_tensor(p, ids[i]);
	}
	lth_buf_putc(p->out, ')');
}

static void put_optional_text(struct printer *p, const char *head, const char *text)
{
	if (!text)
		return;
	lth_buf_puts(p->out, head);
	lth_buf_quote(p->out, text);
}

static void print_symbols(struct printer *p)
{
	for (uint32_t i = 0; i < p->program->num_symbols; i++) {
		const struct lth_symbol *s = &p->program->symbols[i];
		lth_buf_puts(p->out, "\tsymbol ");
		put_symbol(p, i);
		lth_buf_printf(p->out, " in [%lld, ", (long long)s->min);
		if (s->max == INT64_MAX)
			lth_buf_puts(p->out, "inf]");
		else
			lth_buf_printf(p->out, "%lld]", (long long)s->max);
		lth_buf_printf(p->out, " multiple %lld hint %lld %s", (long long)s->multiple, (long long)s->hint,
			       lth_source_texts[s->source]);
		if (s->source == LTH_SOURCE_INPUT)
			lth_buf_printf(p->out, " %u axis %u", s->input, s->axis);
		lth_buf_putc(p->out, '\n');
	}
}

static void print_exprs(struct printer *p)
{
	uint32_t number = 0;
	for (uint32_t i = 0; i < p->program->num_exprs; i++) {
		const struct lth_expr *e = &p->program->exprs[i];
		unsigned operands = lth_expr_operands(e->op);
		if (operands == 0)
			continue;
		p->numbers[i] = number;
		lth_buf_printf(p->out, "\te%u = ", number++);
		if (operands == 2) {
			put_value(p, e->a);
			lth_buf_putc(p->out, ' ');
		}
		lth_buf_puts(p->out, lth_expr_text(e->op));
		lth_buf_putc(p->out, ' ');
		put_value(p, operands == 2 ? e->b : e->a);
		lth_buf_putc(p->out, '\n');
	}
	for (uint32_t i = 0; i < p->program->num_symbols; i++) {
		if (p->program->symbols[i].source != LTH_SOURCE_DATA || p->program->symbols[i].bound == LTH_NONE)
			continue;
		lth_buf_puts(p->out, "\tbound ");
		put_symbol(p, i);
		lth_buf_putc(p->out, ' ');
		put_value(p, p->program->symbols[i].bound);
		lth_buf_putc(p->out, '\n');
	}
}

static void print_storages(struct printer *p)
{
	for (uint32_t i = 0; i < p->program->num_storages; i++) {
		const struct lth_storage *s = &p->program->storages[i];
		lth_buf_printf(p->out, "\tstorage s%u", i);
		put_optional_text(p, " ", s->name);
		lth_buf_printf(p->out, " %s", lth_storage_texts[s->kind]);
		if (s->kind != LTH_STORAGE_ARENA && s->kind != LTH_STORAGE_POOL)
			lth_buf_printf(p->out, " %lld", (long long)s->index);
		lth_buf_puts(p->out, " bytes ");
		put_value(p, s->size);
		if (s->alignment != 64)
			lth_buf_printf(p->out, " align %lld", (long long)s->alignment);
		if (s->first || s->last)
			lth_buf_printf(p->out, " live [%u, %u)", s->first, s->last);
		lth_buf_putc(p->out, '\n');
	}
}

/* Whether the strides are those that lth_program_dense_strides would give. */
static bool is_dense(const struct lth_program *program, const struct lth_tensor *tensor)
{
	uint32_t stride = lth_program_find_expr(program, LTH_EXPR_CONST, LTH_NONE, LTH_NONE, 1);
	for (uint32_t axis = tensor->rank; axis-- > 0;) {
		if (stride == LTH_NONE || tensor->strides[axis] != stride)
			return false;
		if (axis)
			stride = lth_program_find_expr(program, LTH_EXPR_MUL, stride, tensor->dims[axis], 0);
	}
	return true;
}

static void print_tensors(struct printer *p)
{
	for (uint32_t i = 0; i < p->program->num_tensors; i++) {
		const struct lth_tensor *t = &p->program->tensors[i];
		lth_buf_printf(p->out, "\ttensor t%u", i);
		put_optional_text(p, " ", t->name);
		lth_buf_printf(p->out, " %s", lth_dtype_text(t->dtype));
		put_values(p, "[", t->dims, t->rank, "]");
		if (!is_dense(p->program, t))
			put_values(p, " strides [", t->strides, t->rank, "]");
		const struct lth_expr *offset = &p->program->exprs[t->offset];
		if (offset->op != LTH_EXPR_CONST || offset->value != 0) {
			lth_buf_puts(p->out, " at ");
			put_value(p, t->offset);
		}
		lth_buf_printf(p->out, " in s%u\n", t->storage);
	}
	for (uint32_t i = 0; i < p->program->num_inputs; i++) {
		lth_buf_puts(p->out, "\tinput");
		put_optional_text(p, " ", p->program->inputs[i].name);
		lth_buf_printf(p->out, " t%u", p->program->inputs[i].tensor);
		put_optional_text(p, " is ", p->program->inputs[i].type);
		lth_buf_putc(p->out, '\n');
	}
	for (uint32_t i = 0; i < p->program->num_outputs; i++) {
		lth_buf_puts(p->out, "\toutput");
		put_optional_text(p, " ", p->program->outputs[i].name);
		lth_buf_printf(p->out, " t%u", p->program->outputs[i].tensor);
		put_optional_text(p, " is ", p->program->outputs[i].type);
		lth_buf_putc(p->out, '\n');
	}
}

static void print_kernels(struct printer *p)
{
	for (uint32_t i = 0; i < p->program->num_kernels; i++) {
		const struct lth_kernel *k = &p->program->kernels[i];
		lth_buf_printf(p->out, "\tkernel k%u ", i);
		lth_buf_quote(p->out, k->name ? k->name : "");
		put_optional_text(p, " ", k->description);
		lth_buf_printf(p->out, " pointers %u ints %u\n", k->num_pointers, k->num_ints);
	}
}

static void print_call(struct printer *p, const struct lth_instr *instr)
{
	if (instr->op == LTH_INSTR_CALL) {
		lth_buf_printf(p->out, " k%u", instr->callee);
	} else {
		lth_buf_putc(p->out, ' ');
		lth_buf_quote(p->out, lth_builtin_text((enum lth_builtin)instr->callee));
	}
	put_tensors(p, "writes", instr->tensors, instr->num_outputs);
	put_tensors(p, "reads", instr->tensors + instr->num_outputs, instr->num_tensors - instr->num_outputs);
	if (instr->num_ints)
		put_values(p, " ints (", instr->ints, instr->num_ints, ")");
	if (instr->op == LTH_INSTR_BUILTIN) {
		put_optional_text(p, " attributes ", instr->text);
		return;
	}
	lth_buf_puts(p->out, " range ");
	put_value(p, instr->range);
	lth_buf_printf(p->out, " grain %u", instr->grain);
	if (instr->scratch != LTH_NONE) {
		lth_buf_printf(p->out, " scratch s%u bytes ", instr->scratch);
		put_value(p, instr->scratch_bytes);
	}
	if (instr->flops != LTH_NONE) {
		lth_buf_puts(p->out, " flops ");
		put_value(p, instr->flops);
	}
}

static void print_operands(struct printer *p, const struct lth_instr *instr)
{
	switch (instr->op) {
	case LTH_INSTR_ALLOC:
	case LTH_INSTR_KILL:
		lth_buf_printf(p->out, " s%u", instr->storage);
		break;
	case LTH_INSTR_CALL:
	case LTH_INSTR_BUILTIN:
		print_call(p, instr);
		break;
	case LTH_INSTR_COPY:
		lth_buf_printf(p->out, " t%u from t%u", instr->tensors[0], instr->tensors[1]);
		break;
	case LTH_INSTR_SWAP:
		lth_buf_printf(p->out, " t%u with t%u", instr->tensors[0], instr->tensors[1]);
		if (instr->ints[0] != LTH_NONE) {
			lth_buf_puts(p->out, " times ");
			put_value(p, instr->ints[0]);
		}
		break;
	case LTH_INSTR_GROW:
		lth_buf_printf(p->out, " t%u to ", instr->tensors[0]);
		put_value(p, instr->ints[0]);
		break;
	case LTH_INSTR_BIND:
		lth_buf_putc(p->out, ' ');
		put_symbol(p, instr->symbol);
		lth_buf_printf(p->out, " from t%u at ", instr->tensors[0]);
		put_value(p, instr->ints[0]);
		break;
	case LTH_INSTR_SET:
		lth_buf_putc(p->out, ' ');
		put_symbol(p, instr->symbol);
		lth_buf_puts(p->out, " to ");
		put_value(p, instr->ints[0]);
		break;
	case LTH_INSTR_GUARD:
		lth_buf_putc(p->out, ' ');
		put_value(p, instr->ints[0]);
		lth_buf_printf(p->out, " %s ", lth_relation_texts[instr->relation]);
		put_value(p, instr->ints[1]);
		put_optional_text(p, " ", instr->text);
		break;
	case LTH_INSTR_IF:
		lth_buf_printf(p->out, " t%u", instr->tensors[0]);
		break;
	case LTH_INSTR_LOOP:
		lth_buf_puts(p->out, " while ");
		put_tensor(p, instr->tensors[0]);
		lth_buf_puts(p->out, " trips ");
		put_value(p, instr->ints[0]);
		if (instr->symbol != LTH_NONE) {
			lth_buf_puts(p->out, " turn ");
			put_symbol(p, instr->symbol);
		}
		break;
	default:
		break;
	}
	put_optional_text(p, " node ", instr->node);
}

static void print_instrs(struct printer *p)
{
	unsigned depth = 0;
	for (uint32_t i = 0; i < p->program->num_instrs; i++) {
		const struct lth_instr *instr = &p->program->instrs[i];
		enum lth_instr_op op = instr->op;
		if (op == LTH_INSTR_ELSE || op == LTH_INSTR_ENDIF || op == LTH_INSTR_ENDLOOP)
			depth -= depth > 0;
		lth_buf_printf(p->out, "\t%u: %*s%s", i, (int)(depth < 100 ? depth * 2 : 200), "", lth_instr_text(op));
		print_operands(p, instr);
		lth_buf_putc(p->out, '\n');
		depth += op == LTH_INSTR_IF || op == LTH_INSTR_ELSE || op == LTH_INSTR_LOOP;
	}
}

static void print_orientations(struct printer *p)
{
	for (uint32_t i = 0; i < p->program->num_orientations; i++) {
		const struct lth_orientation *o = &p->program->orientations[i];
		lth_buf_puts(p->out, "\torientation {\n");
		for (uint32_t k = 0; k < o->num_storages; k++) {
			lth_buf_printf(p->out, "\t\ts%u base %lld", o->storages[k], (long long)o->base[k]);
			for (uint32_t e = o->edges[k]; e < o->edges[k + 1]; e++)
				lth_buf_printf(p->out, "%ss%u", e == o->edges[k] ? " over (" : ", ",
					       o->storages[o->below[e]]);
			lth_buf_puts(p->out, o->edges[k] < o->edges[k + 1] ? ")\n" : "\n");
		}
		lth_buf_puts(p->out, "\t}\n");
	}
}

void lth_program_print(const struct lth_program *program, struct lth_buf *out)
{
	struct printer p = {program, out, malloc((program->num_exprs + 1) * sizeof(*p.numbers))};
	if (!p.numbers) {
		out->failed = true;
		return;
	}
	lth_buf_puts(out, "program ");
	lth_buf_quote(out, program->name ? program->name : "");
	lth_buf_printf(out, " {\n\tfused_sizes %s\n", program->fused_sizes ? "true" : "false");
	lth_buf_printf(out, "\tconstants %llu\n", (unsigned long long)program->constants_bytes);
	if (program->certificate) {
		put_optional_text(&p, "\tcertificate ", program->certificate);
		lth_buf_putc(out, '\n');
	}
	print_symbols(&p);
	print_exprs(&p);
	print_storages(&p);
	print_kernels(&p);
	print_tensors(&p);
	print_instrs(&p);
	print_orientations(&p);
	lth_buf_puts(out, "}\n");
	free(p.numbers);
}
