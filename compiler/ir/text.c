/* A cursor over text. See text.h. */
#include "compiler/ir/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char lth_text_peek(struct lth_text *text)
{
	bool comment = false;
	for (; text->at < text->size; text->at++) {
		char c = text->text[text->at];
		if (c == '\n') {
			text->line++;
			text->line_start = text->at + 1;
			comment = false;
		} else if (c == '#') {
			comment = true;
		} else if (!comment && c != ' ' && c != '\t' && c != '\r') {
			return c ? c : 1; /* a NUL byte is not the end, and no token either */
		}
	}
	return 0;
}

bool lth_text_take(struct lth_text *text, char c)
{
	if (c == 0 || lth_text_peek(text) != c)
		return false;
	text->at++;
	return true;
}

bool lth_text_take_minus(struct lth_text *text)
{
	if (lth_text_peek(text) != '-' || (text->at + 1 < text->size && text->text[text->at + 1] == '>'))
		return false;
	text->at++;
	return true;
}

bool lth_text_take_string(struct lth_text *text, const char *word)
{
	size_t length = strlen(word);
	lth_text_peek(text);
	if (text->size - text->at < length || memcmp(text->text + text->at, word, length) != 0)
		return false;
	if (lth_text_word_char(word[length - 1]) && text->at + length < text->size &&
	    lth_text_word_char(text->text[text->at + length]))
		return false;
	text->at += length;
	return true;
}

bool lth_text_word(struct lth_text *text, char *out, size_t size)
{
	char first = lth_text_peek(text);
	size_t length = 0;
	if (!lth_text_word_char(first) || (first >= '0' && first <= '9') || first == '.')
		return false;
	while (text->at + length < text->size && lth_text_word_char(text->text[text->at + length]))
		length++;
	if (length >= size)
		return false;
	memcpy(out, text->text + text->at, length);
	out[length] = 0;
	text->at += length;
	return true;
}

/* The characters of a number at the cursor, NUL-terminated. */
static size_t copy_number(struct lth_text *text, const char *extra, char out[64])
{
	size_t length = 0;
	lth_text_peek(text);
	while (length < 63 && text->at + length < text->size) {
		char c = text->text[text->at + length];
		bool sign = (c == '-' || c == '+') && (length == 0 || (*extra && (out[length - 1] | 32) == 'e'));
		if (!(c >= '0' && c <= '9') && !sign && !(c && strchr(extra, c)))
			break;
		out[length++] = c;
	}
	out[length] = 0;
	return length;
}

bool lth_text_int(struct lth_text *text, int64_t *out)
{
	char digits[64], *end;
	size_t length = copy_number(text, "", digits);
	if (length == 0 || digits[0] == '+' || length > 20)
		return false;
	errno = 0;
	long long value = strtoll(digits, &end, 10);
	if (errno || *end || end == digits || digits[length - 1] == '-')
		return false;
	text->at += length;
	*out = value;
	return true;
}

bool lth_text_double(struct lth_text *text, double *out)
{
	char digits[64], *end;
	static const struct {
		const char *word;
		double value;
	} special[] = {{"nan", NAN}, {"inf", HUGE_VAL}, {"-inf", -HUGE_VAL}};
	for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++) {
		if (lth_text_take_string(text, special[i].word)) {
			*out = special[i].value;
			return true;
		}
	}
	size_t length = copy_number(text, ".eE", digits);
	if (length == 0 || digits[0] == '+' || ((digits[0] | 32) == 'e'))
		return false;
	double value = strtod(digits, &end);
	if (*end || end == digits)
		return false;
	text->at += length;
	*out = value;
	return true;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* Decodes one escape after the backslash; returns the bytes read, 0 when wrong. Code points become UTF-8. */
static size_t unescape(const char *in, size_t size, char *out, size_t *out_used)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *simple = size && in[0] ? strchr(from, in[0]) : NULL;
	if (simple) {
		out[(*out_used)++] = to[simple - from];
		return 1;
	}
	unsigned code = 0;
	if (size < 5 || in[0] != 'u')
		return 0;
	for (int i = 1; i <= 4; i++) {
		int digit = hex_digit(in[i]);
		if (digit < 0)
			return 0;
		code = code << 4 | (unsigned)digit;
	}
	if (code < 0x80) {
		out[(*out_used)++] = (char)code;
	} else if (code < 0x800) {
		out[(*out_used)++] = (char)(0xc0 | code >> 6);
		out[(*out_used)++] = (char)(0x80 | (code & 0x3f));
	} else {
		out[(*out_used)++] = (char)(0xe0 | code >> 12);
		out[(*out_used)++] = (char)(0x80 | (code >> 6 & 0x3f));
		out[(*out_used)++] = (char)(0x80 | (code & 0x3f));
	}
	return 5;
}

char *lth_text_quoted_bytes(struct lth_text *text, struct lth_arena *arena, size_t *out_size)
{
	if (lth_text_peek(text) != '"')
		return NULL;
	size_t end = text->at + 1, used = 0;
	while (end < text->size && text->text[end] != '"' && text->text[end] != '\n')
		end += text->text[end] == '\\' ? 2 : 1;
	if (end >= text->size || text->text[end] != '"')
		return NULL;
	char *out = lth_arena_alloc(arena, end - text->at);
	for (size_t i = text->at + 1; out && i < end;) {
		if (text->text[i] != '\\') {
			out[used++] = text->text[i++];
			continue;
		}
		size_t read = unescape(text->text + i + 1, end - i - 1, out, &used);
		if (read == 0)
			return NULL;
		i += 1 + read;
	}
	if (!out)
		return NULL;
	out[used] = 0;
	text->at = end + 1;
	*out_size = used;
	return out;
}

char *lth_text_quoted(struct lth_text *text, struct lth_arena *arena)
{
	size_t size, at = text->at;
	char *out = lth_text_quoted_bytes(text, arena, &size);
	if (out && strlen(out) != size) { /* a NUL inside a name */
		text->at = at;
		return NULL;
	}
	return out;
}

enum lth_code lth_text_fail(struct lth_text *text, const char *expected, const char *found)
{
	char place[64], shown[40];
	lth_text_peek(text);
	snprintf(place, sizeof(place), "%zu:%zu", text->line, text->at - text->line_start + 1);
	if (!found) {
		size_t length = text->size - text->at;
		length = length < sizeof(shown) - 8 ? length : sizeof(shown) - 8;
		size_t used = 0;
		while (used < length && text->text[text->at + used] >= ' ')
			used++;
		snprintf(shown, sizeof(shown), "'%.*s'", (int)used, text->text + text->at);
		found = used ? shown : "the end of the line";
	}
	return lth_diag_fail(text->diag, LTH_INVALID_GRAPH, place, expected, NULL, "%s", found);
}
