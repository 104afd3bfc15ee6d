/* Words of the program's text form. See program_lex.h; the rules are in docs/PROGRAM.md. */
#include "runtime/program/program_lex.h"
#include "runtime/program/program_text.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void lth_lexer_init(struct lth_lexer *lexer, const char *text, size_t size, struct lth_arena *arena,
		    struct lth_diag *diag)
{
	*lexer = (struct lth_lexer){
		.at = text, .end = text + size, .line_start = text, .line = 1, .arena = arena, .diag = diag,
		.start = text, .text = "",
	};
}

bool lth_lexer_fail(struct lth_lexer *lexer, const char *expected, const char *format, ...)
{
	char place[64], found[512];
	va_list args;
	va_start(args, format);
	vsnprintf(found, sizeof(found), format, args);
	va_end(args);
	snprintf(place, sizeof(place), "%u:%u", lexer->line, (unsigned)(lexer->start - lexer->line_start) + 1);
	lth_diag_fail(lexer->diag, LTH_INVALID_GRAPH, place, expected, NULL, "%s", found);
	return false;
}

bool lth_lexer_expected(struct lth_lexer *lexer, const char *expected)
{
	switch (lexer->kind) {
	case LTH_TOKEN_END:
		return lth_lexer_fail(lexer, expected, "the end of the text");
	case LTH_TOKEN_INT:
		return lth_lexer_fail(lexer, expected, "%lld", (long long)lexer->value);
	case LTH_TOKEN_REAL:
		return lth_lexer_fail(lexer, expected, "a real");
	case LTH_TOKEN_SYMBOL:
		return lth_lexer_fail(lexer, expected, "the symbol $%.200s", lexer->text);
	default:
		return lth_lexer_fail(lexer, expected, "'%.200s'", lexer->text);
	}
}

static void skip_blanks(struct lth_lexer *lexer)
{
	for (; lexer->at < lexer->end; lexer->at++) {
		char c = *lexer->at;
		if (c == ';') /* a comment, to the end of the line */
			while (lexer->at < lexer->end && *lexer->at != '\n')
				lexer->at++;
		if (lexer->at < lexer->end && *lexer->at == '\n') {
			lexer->line++;
			lexer->line_start = lexer->at + 1;
		} else if (c != ' ' && c != '\t' && c != '\r') {
			return;
		}
	}
}

/* The text of a token; false when the arena is exhausted. */
static bool take_text(struct lth_lexer *lexer, enum lth_token_kind kind, const char *text, size_t length)
{
	lexer->kind = kind;
	lexer->text = lth_arena_strndup(lexer->arena, text, length);
	if (lexer->text)
		return true;
	lexer->text = "";
	lth_diag_fail(lexer->diag, LTH_OUT_OF_MEMORY, "program text", NULL, NULL, "a text that is too large");
	return false;
}

static bool lex_word(struct lth_lexer *lexer, enum lth_token_kind kind)
{
	const char *from = lexer->at;
	while (lexer->at < lexer->end && lth_text_word_char(*lexer->at))
		lexer->at++;
	return take_text(lexer, kind, from, (size_t)(lexer->at - from));
}

/* \uXXXX of the basic plane, as UTF-8; NUL is refused. Returns the bytes written, 0 on error. */
static size_t decode_unicode(struct lth_lexer *lexer, char *out)
{
	char digits[5] = {0}, *stop;
	if (lexer->end - lexer->at < 4)
		return 0;
	memcpy(digits, lexer->at, 4);
	unsigned long code = strtoul(digits, &stop, 16);
	if (stop != digits + 4 || digits[0] == '-' || digits[0] == '+' || code == 0)
		return 0;
	lexer->at += 4;
	if (code < 0x80) {
		out[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		out[0] = (char)(0xC0 | code >> 6);
		out[1] = (char)(0x80 | (code & 0x3F));
		return 2;
	}
	out[0] = (char)(0xE0 | code >> 12);
	out[1] = (char)(0x80 | (code >> 6 & 0x3F));
	out[2] = (char)(0x80 | (code & 0x3F));
	return 3;
}

static size_t decode_escape(struct lth_lexer *lexer, char *out)
{
	static const char names[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
	if (lexer->at == lexer->end)
		return 0;
	char c = *lexer->at++;
	if (c == 'u')
		return decode_unicode(lexer, out);
	const char *name = c ? strchr(names, c) : NULL;
	if (name)
		*out = meanings[name - names];
	return name != NULL;
}

static bool lex_string(struct lth_lexer *lexer, enum lth_token_kind kind)
{
	const char *close = ++lexer->at;
	while (close < lexer->end && *close != '"')
		close += *close == '\\' && close + 1 < lexer->end ? 2 : 1;
	char *text = lth_arena_alloc(lexer->arena, (size_t)(close - lexer->at) + 1);
	if (!text)
		return take_text(lexer, kind, "", 0);
	size_t length = 0;
	while (lexer->at < lexer->end && *lexer->at != '"') {
		char c = *lexer->at++;
		size_t bytes = 1;
		text[length] = c;
		if (c == '\\')
			bytes = decode_escape(lexer, text + length);
		if (bytes == 0 || c == 0 || c == '\n')
			return lth_lexer_fail(lexer, "a string on one line with JSON's escapes", "a malformed string");
		length += bytes;
	}
	if (lexer->at == lexer->end)
		return lth_lexer_fail(lexer, "a closing quote", "the end of the text");
	lexer->at++;
	text[length] = 0;
	lexer->kind = kind;
	lexer->text = text;
	return true;
}

static bool lex_int(struct lth_lexer *lexer)
{
	bool negative = *lexer->at == '-';
	lexer->at += negative;
	int64_t value = 0;
	for (; lexer->at < lexer->end && *lexer->at >= '0' && *lexer->at <= '9'; lexer->at++) {
		int digit = *lexer->at - '0';
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_sub_overflow(value, digit, &value)) /* negative, so that INT64_MIN has a place */
			return lth_lexer_fail(lexer, "an integer of 64 bits", "a larger one");
	}
	if (!negative && __builtin_sub_overflow((int64_t)0, value, &value))
		return lth_lexer_fail(lexer, "an integer of 64 bits", "a larger one");
	lexer->kind = LTH_TOKEN_INT;
	lexer->value = value;
	return true;
}

static bool lex_real(struct lth_lexer *lexer)
{
	char text[64], *stop;
	size_t length = 0;
	lexer->at++;
	while (lexer->at < lexer->end && length < sizeof(text) - 1 &&
	       (lth_text_word_char(*lexer->at) || *lexer->at == '+' || *lexer->at == '-'))
		text[length++] = *lexer->at++;
	text[length] = 0;
	double value = strtod(text, &stop);
	if (length == 0 || *stop)
		return lth_lexer_fail(lexer, "a real number behind #", "'%s'", text);
	if (isnan(value))
		value = (double)NAN; /* one NaN only */
	lexer->kind = LTH_TOKEN_REAL;
	memcpy(&lexer->value, &value, sizeof(value));
	return true;
}

static bool lex_punct(struct lth_lexer *lexer)
{
	char c = *lexer->at;
	size_t left = (size_t)(lexer->end - lexer->at);
	size_t length = left >= 2 && (c == '=' || c == '<') && lexer->at[1] == '=' ? 2 : 1;
	if (c == 0 || !strchr("{}()[],:=+*<", c) || (c == '<' && length == 1))
		return lth_lexer_fail(lexer, "a word, number, string or mark", "the byte 0x%02x", (unsigned char)c);
	lexer->at += length;
	return take_text(lexer, LTH_TOKEN_PUNCT, lexer->at - length, length);
}

bool lth_lexer_next(struct lth_lexer *lexer)
{
	skip_blanks(lexer);
	lexer->start = lexer->at;
	if (lexer->at >= lexer->end) {
		lexer->kind = LTH_TOKEN_END;
		lexer->text = "";
		return true;
	}
	char c = *lexer->at, next = lexer->end - lexer->at > 1 ? lexer->at[1] : 0;
	if (lth_text_word_start(c))
		return lex_word(lexer, LTH_TOKEN_WORD);
	if ((c >= '0' && c <= '9') || (c == '-' && next >= '0' && next <= '9'))
		return lex_int(lexer);
	if (c == '"')
		return lex_string(lexer, LTH_TOKEN_STRING);
	if (c == '#')
		return lex_real(lexer);
	if (c == '$' && next == '"') {
		lexer->at++;
		return lex_string(lexer, LTH_TOKEN_SYMBOL);
	}
	if (c == '$' && lth_text_word_start(next)) {
		lexer->at++;
		return lex_word(lexer, LTH_TOKEN_SYMBOL);
	}
	return lex_punct(lexer);
}
