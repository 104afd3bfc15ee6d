/* Parsing loop IR: the text that loop_text.c prints, with `#` comments. Instructions are appended as they are written,
 * without folding, so that print(parse(x)) is x; the verifier then judges types and structure. See loop.h. */
#include "compiler/lower/loop_build.h"

#include "compiler/lower/lanes.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORD = 40, MAX_LIST = 4096 };

struct parser {
	const char *at, *end, *line_start;
	uint32_t line;
	struct lth_loop_fn *fn;
	struct lth_diag *diag;
	lth_lv *numbers;       /* by number of the text */
	uint32_t num_numbers, cap_numbers;
	uint32_t *lines;       /* by instruction */
	uint32_t cap_lines;
	lth_lv *open;          /* blocks */
	uint32_t num_open, cap_open;
	lth_lv list[MAX_LIST];
	bool finished;
};

static bool fail(struct parser *p, const char *expected, const char *format, ...) LTH_PRINTF(3, 4);
static bool fail(struct parser *p, const char *expected, const char *format, ...)
{
	char place[64], found[128];
	va_list args;
	va_start(args, format);
	vsnprintf(found, sizeof(found), format, args);
	va_end(args);
	snprintf(place, sizeof(place), "line %u:%u", p->line, (unsigned)(p->at - p->line_start) + 1);
	lth_diag_fail(p->diag, LTH_INVALID_GRAPH, place, expected, NULL, "%s", found);
	return false;
}

static void skip_blanks(struct parser *p)
{
	while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\r'))
		p->at++;
	if (p->at < p->end && *p->at == '#')
		while (p->at < p->end && *p->at != '\n')
			p->at++;
}

static bool at_line_end(struct parser *p)
{
	skip_blanks(p);
	return p->at == p->end || *p->at == '\n';
}

static bool try_char(struct parser *p, char c)
{
	skip_blanks(p);
	if (p->at == p->end || *p->at != c)
		return false;
	p->at++;
	return true;
}

/* What stands here, for messages: at most ten bytes, none of them behind the end. */
static int rest(const struct parser *p)
{
	return p->end - p->at < 10 ? (int)(p->end - p->at) : 10;
}

static bool need_char(struct parser *p, char c)
{
	char expected[8] = {'\'', c, '\'', 0};
	if (try_char(p, c))
		return true;
	return p->at == p->end || *p->at == '\n' ? fail(p, expected, "the line's end") : fail(p, expected, "'%.*s'", rest(p), p->at);
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool word(struct parser *p, char out[MAX_WORD])
{
	size_t length = 0;
	skip_blanks(p);
	while (p->at + length < p->end && is_word(p->at[length]) && length < MAX_WORD - 1)
		length++;
	if (length == 0)
		return fail(p, "a word", "%s", p->at == p->end || *p->at == '\n' ? "the line's end" : "something else");
	memcpy(out, p->at, length);
	out[length] = 0;
	p->at += length;
	return true;
}

static bool keyword(struct parser *p, const char *expected)
{
	char text[MAX_WORD];
	return word(p, text) && (strcmp(text, expected) == 0 || fail(p, expected, "'%s'", text));
}

/* A number as text, for strtod and strtoll: the input need not end in NUL. */
static bool number_text(struct parser *p, char out[MAX_WORD])
{
	size_t length = 0;
	skip_blanks(p);
	while (p->at + length < p->end && length < MAX_WORD - 1 &&
	       (is_word(p->at[length]) || p->at[length] == '-' || p->at[length] == '+' || p->at[length] == '.'))
		length++;
	memcpy(out, p->at, length);
	out[length] = 0;
	p->at += length;
	return length > 0 || fail(p, "a number", "something else");
}

static bool integer(struct parser *p, int64_t *out)
{
	char text[MAX_WORD], *stop;
	if (!number_text(p, text))
		return false;
	*out = strtoll(text, &stop, 10);
	return *stop == 0 || fail(p, "an integer", "'%s'", text);
}

static bool small(struct parser *p, uint32_t *out)
{
	int64_t value;
	if (!integer(p, &value))
		return false;
	if (value < 0 || value > 1 << 24)
		return fail(p, "a small number", "%" PRId64, value);
	*out = (uint32_t)value;
	return true;
}

static bool dtype(struct parser *p, enum lth_dtype *out)
{
	char text[MAX_WORD];
	if (!word(p, text))
		return false;
	*out = lth_dtype_by_text(text);
	return *out != LTH_NUM_DTYPES || fail(p, "an element type", "'%s'", text);
}

/* "f32", "f32x16", "ptr" */
static bool type(struct parser *p, struct lth_loop_instr *instr)
{
	char text[MAX_WORD], *times;
	if (!word(p, text))
		return false;
	instr->lanes = 1;
	if (strcmp(text, "ptr") == 0) {
		instr->dtype = LTH_POINTER_TYPE;
		return true;
	}
	times = strrchr(text, 'x');
	if (times) {
		char *stop;
		unsigned long lanes = strtoul(times + 1, &stop, 10);
		if (*stop || stop == times + 1 || lanes < 2 || lanes > LTH_MAX_LANES)
			return fail(p, "2 to 256 lanes", "'%s'", text);
		instr->lanes = (uint16_t)lanes;
		*times = 0;
	}
	instr->dtype = lth_dtype_by_text(text);
	return instr->dtype != LTH_NUM_DTYPES || fail(p, "a type", "'%s'", text);
}

static lth_lv append(struct parser *p, const struct lth_loop_instr *instr)
{
	lth_lv value = lth_loop_append(p->fn, instr);
	uint32_t *lines = lth_arena_grow(p->fn->arena, p->lines, &p->cap_lines, p->fn->num_instrs, sizeof(*lines));
	if (lines) {
		p->lines = lines;
		p->lines[value] = p->line;
	}
	return value;
}

/* "TYPE(number)" */
static bool typed_constant(struct parser *p, enum lth_dtype of, lth_lv *out)
{
	if (!lth_is_compute_dtype(of))
		return fail(p, "a compute type", "%s", lth_dtype_text(of));
	if (!need_char(p, '('))
		return false;
	if (lth_is_float(of)) {
		char text[MAX_WORD], *stop;
		if (!number_text(p, text))
			return false;
		double value = strtod(text, &stop);
		if (*stop)
			return fail(p, "a number", "'%s'", text);
		*out = lth_loop_const_f(p->fn, of, value);
	} else {
		int64_t value;
		if (!integer(p, &value))
			return false;
		*out = lth_loop_const_i(p->fn, of, value);
	}
	return need_char(p, ')');
}

/* i3, p0 */
static bool parameter(struct parser *p, const char *text, lth_lv *out)
{
	char *stop;
	unsigned long id = strtoul(text + 1, &stop, 10);
	bool pointer = *text == 'p';
	if (*stop || stop == text + 1 || id >= (pointer ? p->fn->num_pointers : p->fn->num_ints))
		return false;
	*out = pointer ? lth_loop_pointer(p->fn, (uint32_t)id) : lth_loop_int(p->fn, (uint32_t)id);
	return true;
}

static bool value(struct parser *p, lth_lv *out)
{
	char text[MAX_WORD];
	uint32_t number;
	if (try_char(p, '%')) {
		if (!small(p, &number))
			return false;
		if (number >= p->num_numbers)
			return fail(p, "a value defined before", "%%%u", number);
		*out = p->numbers[number];
		return true;
	}
	skip_blanks(p);
	if (p->at < p->end && (*p->at == '-' || (*p->at >= '0' && *p->at <= '9'))) {
		int64_t constant;
		if (!integer(p, &constant))
			return false;
		*out = lth_loop_i64(p->fn, constant);
		return true;
	}
	if (!word(p, text))
		return false;
	if (strcmp(text, "begin") == 0)
		*out = lth_loop_begin(p->fn);
	else if (strcmp(text, "end") == 0)
		*out = lth_loop_end(p->fn);
	else if (strcmp(text, "scratch") == 0)
		*out = lth_loop_scratch(p->fn);
	else if ((*text == 'i' || *text == 'p') && parameter(p, text, out))
		return true;
	else if (lth_dtype_by_text(text) != LTH_NUM_DTYPES)
		return typed_constant(p, lth_dtype_by_text(text), out);
	else
		return fail(p, "a value", "'%s'", text);
	return true;
}

/* "%5:f32x16", which must be the next number. */
static bool definition(struct parser *p, struct lth_loop_instr *instr)
{
	uint32_t number;
	if (!need_char(p, '%') || !small(p, &number))
		return false;
	if (number != p->num_numbers)
		return fail(p, "the next number", "%%%u after %u values", number, p->num_numbers);
	return need_char(p, ':') && type(p, instr) && need_char(p, '=');
}

static void name_value(struct parser *p, lth_lv named)
{
	lth_lv *numbers = lth_arena_grow(p->fn->arena, p->numbers, &p->cap_numbers, p->num_numbers + 1, sizeof(*numbers));
	if (!numbers)
		return;
	p->numbers = numbers;
	numbers[p->num_numbers++] = named;
}

/* "[a, b]" or nothing, into p->list. */
static bool value_list(struct parser *p, uint32_t *out_count)
{
	*out_count = 0;
	if (!try_char(p, '['))
		return true;
	do {
		if (*out_count == MAX_LIST)
			return fail(p, "at most 4096 values", "more");
		if (!value(p, &p->list[*out_count]))
			return false;
		++*out_count;
	} while (try_char(p, ','));
	return need_char(p, ']');
}

/* "[%8:f32 = %7, ...]" or nothing: appends `opening` with the list of right sides, then a follower each. */
static bool defining_list(struct parser *p, struct lth_loop_instr *opening, enum lth_loop_op follower)
{
	uint32_t count = 0, first = p->num_numbers + (opening->op == LTH_LOOP_FOR);
	struct lth_loop_instr *followers = NULL;
	uint32_t capacity = 0;
	if (try_char(p, '[')) {
		do {
			followers = lth_arena_grow(p->fn->arena, followers, &capacity, count + 1, sizeof(*followers));
			if (!followers || count == MAX_LIST)
				return fail(p, "at most 4096 values", "more");
			struct lth_loop_instr instr = {.op = follower, .memory = LTH_NUM_DTYPES, .a = LTH_LV_NONE,
						       .b = LTH_LV_NONE, .c = LTH_LV_NONE, .i = count};
			uint32_t number;
			if (!need_char(p, '%') || !small(p, &number))
				return false;
			if (number != first + count)
				return fail(p, "the next number", "%%%u", number);
			if (!need_char(p, ':') || !type(p, &instr) || !need_char(p, '=') || !value(p, &p->list[count]))
				return false;
			followers[count++] = instr;
		} while (try_char(p, ','));
		if (!need_char(p, ']'))
			return false;
	}
	opening->list = p->list;
	opening->count = count;
	lth_lv parent = append(p, opening);
	if (opening->op == LTH_LOOP_FOR) {
		name_value(p, parent);
		lth_lv *open = lth_arena_grow(p->fn->arena, p->open, &p->cap_open, p->num_open + 1, sizeof(*open));
		if (open) {
			p->open = open;
			open[p->num_open++] = parent;
		}
	}
	for (uint32_t k = 0; k < count; k++) {
		followers[k].id = parent;
		name_value(p, append(p, &followers[k]));
	}
	return true;
}

static struct lth_loop_instr blank(enum lth_loop_op op)
{
	return (struct lth_loop_instr){
		.op = op, .dtype = LTH_NUM_DTYPES, .memory = LTH_NUM_DTYPES, .lanes = 1,
		.a = LTH_LV_NONE, .b = LTH_LV_NONE, .c = LTH_LV_NONE,
	};
}

static bool parse_for(struct parser *p)
{
	struct lth_loop_instr instr = blank(LTH_LOOP_FOR);
	return definition(p, &instr) && value(p, &instr.a) && keyword(p, "to") && value(p, &instr.b) && keyword(p, "step") &&
	       value(p, &instr.c) && defining_list(p, &instr, LTH_LOOP_PHI);
}

static bool parse_end(struct parser *p, enum lth_loop_op op)
{
	struct lth_loop_instr instr = blank(op);
	if (p->num_open == 0)
		return fail(p, "an open block", "%s", lth_loop_text(op));
	instr.id = p->open[p->num_open - 1];
	if (op != LTH_LOOP_ELSE) {
		p->num_open--;
		return defining_list(p, &instr, LTH_LOOP_RESULT);
	}
	instr.list = p->list;
	if (!value_list(p, &instr.count))
		return false;
	append(p, &instr);
	return true;
}

static bool parse_if(struct parser *p)
{
	struct lth_loop_instr instr = blank(LTH_LOOP_IF);
	if (!value(p, &instr.a))
		return false;
	lth_lv opening = append(p, &instr);
	lth_lv *open = lth_arena_grow(p->fn->arena, p->open, &p->cap_open, p->num_open + 1, sizeof(*open));
	if (open) {
		p->open = open;
		open[p->num_open++] = opening;
	}
	return true;
}

/* Up to three values with commas between, into the places given; the last `optional` may be missing. */
static bool values(struct parser *p, lth_lv *places[], unsigned count, unsigned optional)
{
	for (unsigned k = 0; k < count; k++) {
		if (k > 0 && !try_char(p, ','))
			return k >= count - optional || need_char(p, ',');
		if (!value(p, places[k]))
			return false;
	}
	return true;
}

static bool lane_list(struct parser *p, struct lth_loop_instr *instr)
{
	if (!need_char(p, '['))
		return false;
	do {
		if (instr->count == LTH_MAX_LANES)
			return fail(p, "at most 256 lanes", "more");
		if (!small(p, &p->list[instr->count]))
			return false;
		instr->count++;
	} while (try_char(p, ','));
	instr->list = p->list;
	return need_char(p, ']');
}

static bool scalar_op(struct parser *p, const char *text, enum lth_scalar_op *out)
{
	for (int op = 0; op < LTH_NUM_SCALARS; op++)
		if (strcmp(lth_scalar_text((enum lth_scalar_op)op), text) == 0) {
			*out = (enum lth_scalar_op)op;
			return true;
		}
	return fail(p, "an operator", "'%s'", text);
}

static bool reduce_operands(struct parser *p, struct lth_loop_instr *x)
{
	char text[MAX_WORD];
	return word(p, text) && scalar_op(p, text, &x->scalar) && value(p, &x->a);
}

static bool fail_operands(struct parser *p, struct lth_loop_instr *x)
{
	char text[MAX_WORD];
	if (!word(p, text))
		return false;
	for (int error = 1; error < LTH_NUM_KERNEL_ERRORS; error++)
		if (strcmp(lth_kernel_error_text((enum lth_kernel_error)error), text) == 0)
			x->i = error;
	if (x->i == 0)
		return fail(p, "an error", "'%s'", text);
	if (!value(p, &x->a))
		return false;
	x->lanes = lth_loop_get(p->fn, x->a)->lanes;
	return true;
}

static bool prefetch_operands(struct parser *p, struct lth_loop_instr *x)
{
	char text[MAX_WORD];
	if (!word(p, text))
		return false;
	x->i = strcmp(text, "write") == 0;
	return (x->i || strcmp(text, "read") == 0 || fail(p, "read or write", "'%s'", text)) && value(p, &x->a);
}

/* Operands of a store: the value gives type and lanes. */
static bool store_operands(struct parser *p, struct lth_loop_instr *x)
{
	bool scatter = x->op == LTH_LOOP_SCATTER;
	if (!dtype(p, &x->memory) ||
	    !(scatter ? values(p, (lth_lv *[]){&x->a, &p->list[0], &x->b, &x->c}, 4, 1) :
			values(p, (lth_lv *[]){&x->a, &x->b, &x->c}, 3, 1)))
		return false;
	x->dtype = lth_loop_get(p->fn, x->b)->dtype;
	x->lanes = lth_loop_get(p->fn, x->b)->lanes;
	if (scatter) {
		x->list = p->list;
		x->count = 1;
	}
	return true;
}

static bool operands(struct parser *p, struct lth_loop_instr *x)
{
	uint32_t lane;
	switch (x->op) {
	case LTH_LOOP_OP:
		if (x->scalar == LTH_SCALAR_ROUND_TO && !dtype(p, &x->memory))
			return false;
		return values(p, (lth_lv *[]){&x->a, &x->b, &x->c}, lth_scalar_arity(x->scalar), 0);
	case LTH_LOOP_SPLAT:
	case LTH_LOOP_RAMP:
	case LTH_LOOP_MASK:
		return value(p, &x->a);
	case LTH_LOOP_EXTRACT:
		if (!value(p, &x->a) || !need_char(p, '[') || !small(p, &lane))
			return false;
		x->i = lane;
		return need_char(p, ']');
	case LTH_LOOP_SHUFFLE:
		return values(p, (lth_lv *[]){&x->a, &x->b}, 2, 0) && lane_list(p, x);
	case LTH_LOOP_PERMUTE:
		return values(p, (lth_lv *[]){&x->a, &x->b}, 2, 0);
	case LTH_LOOP_REDUCE:
		return reduce_operands(p, x);
	case LTH_LOOP_OFFSET:
		return dtype(p, &x->memory) && values(p, (lth_lv *[]){&x->a, &x->b}, 2, 0);
	case LTH_LOOP_LOAD:
		return dtype(p, &x->memory) && values(p, (lth_lv *[]){&x->a, &x->c}, 2, 1);
	case LTH_LOOP_GATHER:
		return dtype(p, &x->memory) && values(p, (lth_lv *[]){&x->a, &x->b, &x->c}, 3, 1);
	case LTH_LOOP_STORE:
	case LTH_LOOP_SCATTER:
		return store_operands(p, x);
	case LTH_LOOP_PREFETCH:
		return prefetch_operands(p, x);
	case LTH_LOOP_DOT4:
		return values(p, (lth_lv *[]){&x->a, &x->b, &x->c}, 3, 0);
	case LTH_LOOP_FAIL:
		return fail_operands(p, x);
	default:
		return fail(p, "an instruction", "'%s'", lth_loop_text(x->op));
	}
}

/* The instruction of a word: a loop instruction that may stand alone, else a scalar operator. */
static bool find_instr(struct parser *p, const char *text, struct lth_loop_instr *x)
{
	for (int op = LTH_LOOP_SPLAT; op < LTH_NUM_LOOPS; op++)
		if (strcmp(lth_loop_text((enum lth_loop_op)op), text) == 0) {
			x->op = (enum lth_loop_op)op;
			return true;
		}
	x->op = LTH_LOOP_OP;
	return scalar_op(p, text, &x->scalar);
}

static bool parse_instr(struct parser *p)
{
	char text[MAX_WORD];
	struct lth_loop_instr x = blank(LTH_LOOP_OP);
	skip_blanks(p);
	bool defines = p->at < p->end && *p->at == '%';
	if (defines && !definition(p, &x))
		return false;
	if (!word(p, text))
		return false;
	if (!defines) {
		if (strcmp(text, "for") == 0)
			return parse_for(p);
		if (strcmp(text, "if") == 0)
			return parse_if(p);
		if (strcmp(text, "endfor") == 0)
			return parse_end(p, LTH_LOOP_ENDFOR);
		if (strcmp(text, "else") == 0)
			return parse_end(p, LTH_LOOP_ELSE);
		if (strcmp(text, "endif") == 0)
			return parse_end(p, LTH_LOOP_ENDIF);
		if (strcmp(text, "end") == 0) {
			p->finished = true;
			return true;
		}
	}
	if (!find_instr(p, text, &x))
		return false;
	if (lth_loop_defines(x.op) != defines)
		return fail(p, defines ? "an instruction with a result" : "a name for the result", "%s", text);
	if (!operands(p, &x))
		return false;
	lth_lv made = append(p, &x);
	if (defines)
		name_value(p, made);
	return true;
}

/* "kernel (f32, written f16) ints 2" */
static bool parse_head(struct parser *p)
{
	if (!keyword(p, "kernel") || !need_char(p, '('))
		return false;
	while (!try_char(p, ')')) {
		char text[MAX_WORD];
		if (p->fn->num_pointers && !need_char(p, ','))
			return false;
		if (!word(p, text))
			return false;
		bool written = strcmp(text, "written") == 0;
		if (written && !word(p, text))
			return false;
		enum lth_dtype memory = lth_dtype_by_text(text);
		if (memory == LTH_NUM_DTYPES)
			return fail(p, "an element type", "'%s'", text);
		lth_loop_add_pointer(p->fn, memory, written);
		if (!lth_arena_ok(p->fn->arena))
			return false;
	}
	return keyword(p, "ints") && small(p, &p->fn->num_ints);
}

static bool next_line(struct parser *p)
{
	if (!at_line_end(p))
		return fail(p, "the line's end", "'%.*s'", rest(p), p->at);
	if (p->at < p->end) {
		p->at++;
		p->line++;
		p->line_start = p->at;
	}
	return true;
}

static bool parse_all(struct parser *p)
{
	while (p->at < p->end && at_line_end(p))
		if (!next_line(p))
			return false;
	if (!parse_head(p) || !next_line(p))
		return false;
	while (!p->finished) {
		if (p->at == p->end)
			return fail(p, "end", "the text's end");
		if (!at_line_end(p) && !parse_instr(p))
			return false;
		if (!next_line(p) || !lth_arena_ok(p->fn->arena))
			return false;
	}
	while (p->at < p->end)
		if (!next_line(p))
			return false;
	return true;
}

enum lth_code lth_loop_parse(const char *text, size_t size, struct lth_arena *arena, struct lth_loop_fn **out_fn,
			     struct lth_diag *diag)
{
	struct parser *p = lth_arena_alloc(arena, sizeof(*p));
	struct lth_loop_fn *fn = p ? lth_loop_create(arena, 0) : NULL;
	bool ok = false;
	if (fn) {
		*p = (struct parser){.at = text, .end = text + size, .line_start = text, .line = 1, .fn = fn, .diag = diag};
		ok = parse_all(p);
	}
	if (!lth_arena_ok(arena))
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "loop IR", NULL, NULL, "no memory for %zu bytes of text", size);
	if (!ok)
		return diag->code;
	/* Entry values made in passing have no line. */
	uint32_t *lines = lth_arena_grow(arena, p->lines, &p->cap_lines, fn->num_instrs, sizeof(*lines));
	if (!lines)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "loop IR", NULL, NULL, "no memory for %zu bytes of text", size);
	enum lth_code code = lth_loop_verify_lines(fn, lines, diag);
	if (code == LTH_OK)
		*out_fn = fn;
	return code;
}
