/* Options of a compile: one table (options.def) makes the checks, the description that the daemon and clients work by,
 * and the accessors. Thread rule: pure functions over the request's JSON. */
#ifndef LTH_OPTIONS_H
#define LTH_OPTIONS_H

#include "runtime/base/diag.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum lth_option_id {
#define LTH_OPTION(id, path, type, singular, values, min, max, standard, set, key, text) LTH_OPTION_ID_##id,
#include "compiler/options/options.def"
#undef LTH_OPTION
	LTH_NUM_OPTIONS
};

/* Names, types, words and ranges. `passes` and `targets` are the words that "@passes" and "@targets" stand for, arrays
 * of strings. LTH_INVALID_OPTION names the option, what is expected and the nearest known word. */
LTH_MUST_CHECK enum lth_code lth_compile_options_check(const json_t *options, const json_t *passes,
						       const json_t *targets, struct lth_diag *diag);
/* The option's value, or its default (borrowed; defaults live in `defaults`, which lth_option_defaults made). */
json_t *lth_option_defaults(void); /* array by id; the caller owns it; NULL when out of memory */
const json_t *lth_option_get(const json_t *options, const json_t *defaults, enum lth_option_id id);
/* True when the request itself gives it. */
bool lth_option_given(const json_t *options, enum lth_option_id id);
/* base with overlay's members over it, objects merged; the caller owns it. */
json_t *lth_options_overlay(const json_t *base, const json_t *overlay);
/* The table as JSON: [{path, type, singular, values, values_from, min, max, default, set, key, description}]. */
json_t *lth_options_describe(void);

#endif
