/* Constant strings and lookup in constant lists, for operators that map. Thread rule: as infer.h. */
#ifndef LTH_OPS_STRINGS_H
#define LTH_OPS_STRINGS_H

#include "compiler/ops/build.h"

/* Strings as two constants: their bytes, and where each ends. */
void lth_build_string_bytes(struct lth_infer *infer, const struct lth_string *list, uint32_t count,
			    lth_value_id *out_bytes, lth_value_id *out_ends);
/* A 1-D tensor of strings. */
lth_value_id lth_build_strings(struct lth_infer *infer, const struct lth_string *list, uint32_t count);
/* The place of each element of `x` in a list of strings, or of numbers of x's type; the last of equal ones counts, and
 * `count` stands for none. */
lth_value_id lth_build_find_string(struct lth_infer *infer, lth_value_id x, const struct lth_string *list,
				   uint32_t count);
lth_value_id lth_build_find(struct lth_infer *infer, lth_value_id x, const void *list, uint32_t count);
/* Replaces constants of strings, which hold pointers, by tables of bytes. */
LTH_MUST_CHECK enum lth_code lth_strings_to_tables(struct lth_graph *graph, struct lth_diag *diag);

#endif
