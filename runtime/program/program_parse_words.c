/* Reading the program's text form: words, ids, values and lists of them. See program_parse.h. */
#include "runtime/program/program_parse.h"

#include <stdio.h>
#include <string.h>

enum { MAX_OPERANDS = 1 << 16 };

bool lth_take_next(struct lth_text_parser *p)
{
	return lth_lexer_next(&p->lexer);
}

bool lth_text_is_text(const struct lth_text_parser *p, const char *text)
{
	return (p->lexer.kind == LTH_TOKEN_WORD || p->lexer.kind == LTH_TOKEN_PUNCT) &&
	       strcmp(p->lexer.text, text) == 0;
}

bool lth_take(struct lth_text_parser *p, const char *text)
{
	if (!lth_text_is_text(p, text)) {
		char expected[64];
		snprintf(expected, sizeof(expected), "'%s'", text);
		return lth_lexer_expected(&p->lexer, expected);
	}
	return lth_take_next(p);
}

bool lth_take_optional(struct lth_text_parser *p, const char *text, bool *out_found)
{
	*out_found = lth_text_is_text(p, text);
	return !*out_found || lth_take_next(p);
}

bool lth_take_int(struct lth_text_parser *p, int64_t *out)
{
	if (p->lexer.kind != LTH_TOKEN_INT)
		return lth_lexer_expected(&p->lexer, "an integer");
	*out = p->lexer.value;
	return lth_take_next(p);
}

bool lth_take_u32(struct lth_text_parser *p, uint32_t *out)
{
	if (p->lexer.kind != LTH_TOKEN_INT || p->lexer.value < 0 || p->lexer.value >= LTH_NONE)
		return lth_lexer_expected(&p->lexer, "an integer of 32 bits");
	*out = (uint32_t)p->lexer.value;
	return lth_take_next(p);
}

bool lth_take_string(struct lth_text_parser *p, const char **out)
{
	if (p->lexer.kind != LTH_TOKEN_STRING)
		return lth_lexer_expected(&p->lexer, "a string");
	*out = p->lexer.text;
	return lth_take_next(p);
}

bool lth_take_optional_string(struct lth_text_parser *p, const char **out)
{
	*out = NULL;
	return p->lexer.kind != LTH_TOKEN_STRING || lth_take_string(p, out);
}

bool lth_take_tagged_string(struct lth_text_parser *p, const char *word, const char **out)
{
	bool found;
	*out = NULL;
	return lth_take_optional(p, word, &found) && (!found || lth_take_string(p, out));
}

bool lth_text_id_of(const char *word, char letter, uint32_t *out)
{
	uint64_t value = 0;
	if (word[0] != letter || !word[1] || (word[1] == '0' && word[2]))
		return false;
	for (const char *c = word + 1; *c; c++) {
		if (*c < '0' || *c > '9' || value >= LTH_NONE)
			return false;
		value = value * 10 + (uint64_t)(*c - '0');
	}
	*out = (uint32_t)value;
	return value < LTH_NONE;
}

bool lth_take_id(struct lth_text_parser *p, char letter, uint32_t limit, uint32_t *out)
{
	uint32_t id;
	if (p->lexer.kind == LTH_TOKEN_WORD && lth_text_id_of(p->lexer.text, letter, &id) && id < limit) {
		*out = id;
		return lth_take_next(p);
	}
	char expected[64];
	if (limit)
		snprintf(expected, sizeof(expected), "%c0 to %c%u", letter, letter, limit - 1);
	else
		snprintf(expected, sizeof(expected), "a declaration of %c0 before its use", letter);
	return lth_lexer_expected(&p->lexer, expected);
}

bool lth_take_new_id(struct lth_text_parser *p, char letter, uint32_t number)
{
	uint32_t id;
	if (p->lexer.kind == LTH_TOKEN_WORD && lth_text_id_of(p->lexer.text, letter, &id) && id == number)
		return lth_take_next(p);
	char expected[64];
	snprintf(expected, sizeof(expected), "%c%u, the next number", letter, number);
	return lth_lexer_expected(&p->lexer, expected);
}

uint32_t lth_text_symbol_named(const struct lth_program *program, const char *name)
{
	for (uint32_t i = 0; i < program->num_symbols; i++)
		if (strcmp(program->symbols[i].name, name) == 0)
			return i;
	return LTH_NONE;
}

bool lth_take_symbol(struct lth_text_parser *p, uint32_t *out)
{
	if (p->lexer.kind != LTH_TOKEN_SYMBOL)
		return lth_lexer_expected(&p->lexer, "a symbol");
	*out = lth_text_symbol_named(p->program, p->lexer.text);
	if (*out == LTH_NONE)
		return lth_lexer_expected(&p->lexer, "a symbol that is declared above");
	return lth_take_next(p);
}

bool lth_text_is_value(const struct lth_text_parser *p)
{
	uint32_t number;
	enum lth_token_kind kind = p->lexer.kind;
	return kind == LTH_TOKEN_INT || kind == LTH_TOKEN_REAL || kind == LTH_TOKEN_SYMBOL ||
	       (kind == LTH_TOKEN_WORD && lth_text_id_of(p->lexer.text, 'e', &number));
}

bool lth_text_out_of_memory(struct lth_text_parser *p)
{
	lth_diag_fail(p->lexer.diag, LTH_OUT_OF_MEMORY, "program text", NULL, NULL, "a text that is too large");
	return false;
}

bool lth_take_value(struct lth_text_parser *p, uint32_t *out)
{
	uint32_t number;
	if (!lth_text_is_value(p))
		return lth_lexer_expected(&p->lexer, "a value (integer, #real, $symbol or eN)");
	if (p->lexer.kind == LTH_TOKEN_WORD) {
		if (!lth_take_id(p, 'e', p->num_expr_names, &number))
			return false;
		*out = p->expr_names[number];
		return true;
	}
	if (p->lexer.kind == LTH_TOKEN_SYMBOL) {
		if (!lth_take_symbol(p, &number))
			return false;
		*out = lth_program_expr(p->program, LTH_EXPR_SYMBOL, number, LTH_NONE, 0);
		return *out != LTH_NONE || lth_text_out_of_memory(p);
	}
	enum lth_expr_op op = p->lexer.kind == LTH_TOKEN_INT ? LTH_EXPR_CONST : LTH_EXPR_RCONST;
	*out = lth_program_expr(p->program, op, LTH_NONE, LTH_NONE, p->lexer.value);
	return *out != LTH_NONE ? lth_take_next(p) : lth_text_out_of_memory(p);
}

bool lth_take_optional_value(struct lth_text_parser *p, uint32_t *out)
{
	bool absent;
	*out = LTH_NONE;
	return lth_take_optional(p, "_", &absent) && (absent || lth_take_value(p, out));
}

bool lth_text_push(struct lth_text_parser *p, uint32_t id)
{
	uint32_t *list = lth_arena_grow(p->program->arena, p->list, &p->cap_list, p->num_list + 1, sizeof(*list));
	if (!list)
		return lth_text_out_of_memory(p);
	if (p->num_list >= MAX_OPERANDS)
		return lth_lexer_fail(&p->lexer, NULL, "more than %d operands", MAX_OPERANDS);
	p->list = list;
	list[p->num_list++] = id;
	return true;
}

bool lth_take_value_item(struct lth_text_parser *p)
{
	uint32_t id;
	return lth_take_value(p, &id) && lth_text_push(p, id);
}

bool lth_take_tensor_item(struct lth_text_parser *p)
{
	uint32_t id = LTH_NONE;
	bool absent;
	return lth_take_optional(p, "_", &absent) && (absent || lth_take_id(p, 't', p->program->num_tensors, &id)) &&
	       lth_text_push(p, id);
}

bool lth_take_list(struct lth_text_parser *p, const char *open, const char *close,
		   bool (*item)(struct lth_text_parser *))
{
	bool done, more = true;
	if (!lth_take(p, open) || !lth_take_optional(p, close, &done))
		return false;
	while (!done) {
		if (!item(p) || !lth_take_optional(p, ",", &more))
			return false;
		if (!more) {
			if (!lth_take(p, close))
				return false;
			done = true;
		}
	}
	return true;
}

bool lth_take_choice(struct lth_text_parser *p, const char *const *texts, unsigned count, const char *what,
		     unsigned *out)
{
	for (unsigned i = 0; i < count; i++)
		if (lth_text_is_text(p, texts[i])) {
			*out = i;
			return lth_take_next(p);
		}
	return lth_lexer_expected(&p->lexer, what);
}
