/* Reading text forms: a cursor with line and column. Spaces and `#` comments are skipped before each token; every
 * reading function leaves the cursor where it was when it answers false or NULL. Errors are LTH_INVALID_GRAPH with
 * line:column. Thread rule: a cursor is its parser's own. */
#ifndef LTH_IR_TEXT_H
#define LTH_IR_TEXT_H

#include "compiler/ir/dim.h"

struct lth_text {
	const char *text;
	size_t size, at;
	size_t line, line_start; /* line from 1; where it begins */
	struct lth_diag *diag;
};

/* The next character after spaces and comments, 0 at the end. */
char lth_text_peek(struct lth_text *text);
bool lth_text_take(struct lth_text *text, char c);
bool lth_text_take_minus(struct lth_text *text);                    /* a '-' that is not "->" */
bool lth_text_take_string(struct lth_text *text, const char *word); /* these characters; not part of a longer word */
/* Letters, digits, '_' and '.', not beginning with a digit or a dot; false if longer than the buffer. */
bool lth_text_word(struct lth_text *text, char *out, size_t size);
bool lth_text_int(struct lth_text *text, int64_t *out); /* with a minus sign if there */
bool lth_text_double(struct lth_text *text, double *out);
/* A string in double quotes with JSON's escapes, NUL-terminated, from the arena; *_bytes also tells its size. */
char *lth_text_quoted(struct lth_text *text, struct lth_arena *arena);
char *lth_text_quoted_bytes(struct lth_text *text, struct lth_arena *arena, size_t *out_size);
/* Records the error here; `found` NULL: shows the text at the cursor. */
enum lth_code lth_text_fail(struct lth_text *text, const char *expected, const char *found);

static inline bool lth_text_word_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

/* Names of symbols: bare where they look like one, else quoted. */
bool lth_text_is_symbol(const char *name);
void lth_text_symbol(struct lth_buf *out, const char *name);

/* The longest dimension at the cursor. dim_text.c */
LTH_MUST_CHECK enum lth_code lth_dim_parse_text(struct lth_dims *dims, struct lth_text *text, lth_dim *out);

#endif
