/* What the files that read the program's text form share: taking words in hand. Each returns false after an error, which
 * is in the diag. */
#ifndef LTH_PROGRAM_PARSE_H
#define LTH_PROGRAM_PARSE_H

#include "runtime/program/program_lex.h"
#include "runtime/program/program_text.h"

struct lth_text_parser {
	struct lth_lexer lexer;
	struct lth_program *program;
	uint32_t *expr_names; /* of eN: its id */
	uint32_t num_expr_names, cap_expr_names;
	uint32_t *list; /* operands of the line in hand */
	uint32_t num_list, cap_list;
	uint32_t *places; /* in the orientation in hand: a storage's position + 1, or 0 */
};

bool lth_take_next(struct lth_text_parser *p);
bool lth_text_is_text(const struct lth_text_parser *p, const char *text);
/* Takes a word or mark that must be there. */
bool lth_take(struct lth_text_parser *p, const char *text);
/* Takes a word or mark if it is there: *out_found says so. */
bool lth_take_optional(struct lth_text_parser *p, const char *text, bool *out_found);
bool lth_take_int(struct lth_text_parser *p, int64_t *out);
bool lth_take_u32(struct lth_text_parser *p, uint32_t *out);
bool lth_take_string(struct lth_text_parser *p, const char **out);
bool lth_take_optional_string(struct lth_text_parser *p, const char **out);
/* WORD STRING, if the word is there. */
bool lth_take_tagged_string(struct lth_text_parser *p, const char *word, const char **out);
/* The number of a word such as t12; false without an error when it is none of this letter. */
bool lth_text_id_of(const char *word, char letter, uint32_t *out);
/* An id of a thing of which there are `limit`. */
bool lth_take_id(struct lth_text_parser *p, char letter, uint32_t limit, uint32_t *out);
/* The id of a thing being declared: the next number. */
bool lth_take_new_id(struct lth_text_parser *p, char letter, uint32_t number);
uint32_t lth_text_symbol_named(const struct lth_program *program, const char *name);
bool lth_take_symbol(struct lth_text_parser *p, uint32_t *out);
bool lth_text_is_value(const struct lth_text_parser *p);
bool lth_text_out_of_memory(struct lth_text_parser *p);
/* VALUE: integer, #real, $symbol or eN. */
bool lth_take_value(struct lth_text_parser *p, uint32_t *out);
bool lth_take_optional_value(struct lth_text_parser *p, uint32_t *out);
bool lth_text_push(struct lth_text_parser *p, uint32_t id);
bool lth_take_value_item(struct lth_text_parser *p);
bool lth_take_tensor_item(struct lth_text_parser *p);
/* OPEN [ITEM {, ITEM}] CLOSE appended to p->list. */
bool lth_take_list(struct lth_text_parser *p, const char *open, const char *close,
		   bool (*item)(struct lth_text_parser *));
/* The index of a word among texts. */
bool lth_take_choice(struct lth_text_parser *p, const char *const *texts, unsigned count, const char *what,
		     unsigned *out);

/* What stands behind an instruction's name. program_parse_instr.c */
bool lth_text_parse_instr(struct lth_text_parser *p, enum lth_instr_op op);

#endif
