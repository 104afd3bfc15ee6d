/* Words of the program's text form, for program_parse.c. */
#ifndef LTH_PROGRAM_LEX_H
#define LTH_PROGRAM_LEX_H

#include "runtime/base/arena.h"
#include "runtime/base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lth_token_kind {
	LTH_TOKEN_END,
	LTH_TOKEN_WORD,   /* text: the word */
	LTH_TOKEN_STRING, /* text: the string without quotes, escapes resolved */
	LTH_TOKEN_SYMBOL, /* text: the symbol's name without the $ */
	LTH_TOKEN_INT,    /* value */
	LTH_TOKEN_REAL,   /* value: the bits of a double */
	LTH_TOKEN_PUNCT,  /* text: one of { } ( ) [ ] , : = + * == <= */
	LTH_NUM_TOKENS
};

struct lth_lexer {
	const char *at, *end, *line_start;
	unsigned line;
	struct lth_arena *arena; /* of the texts */
	struct lth_diag *diag;
	/* The token in hand. */
	enum lth_token_kind kind;
	const char *text;
	int64_t value;
	const char *start;
};

void lth_lexer_init(struct lth_lexer *lexer, const char *text, size_t size, struct lth_arena *arena,
		    struct lth_diag *diag);
/* Takes the next token in hand; false after an error, which is in the diag. */
LTH_MUST_CHECK bool lth_lexer_next(struct lth_lexer *lexer);
/* Records "found the token in hand, expected ..."; returns false. */
bool lth_lexer_expected(struct lth_lexer *lexer, const char *expected);
/* Records another error at the token in hand; returns false. */
bool lth_lexer_fail(struct lth_lexer *lexer, const char *expected, const char *format, ...) LTH_PRINTF(3, 4);

#endif
