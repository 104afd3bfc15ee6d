/* What the printer and the parser of programs share. */
#ifndef LTH_PROGRAM_TEXT_H
#define LTH_PROGRAM_TEXT_H

#include "runtime/program/program.h"

extern const char *const lth_source_texts[LTH_NUM_SOURCES];
extern const char *const lth_storage_texts[LTH_NUM_STORAGES];
extern const char *const lth_relation_texts[LTH_NUM_RELATIONS];

/* Letters of a word: [A-Za-z_][A-Za-z0-9_.]* */
bool lth_text_word_start(char c);
bool lth_text_word_char(char c);

#endif
