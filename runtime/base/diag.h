/* Diagnostics: why something failed, in four parts that a person can act on. A context (a compile, a load, a run)
 * owns one struct lth_diag; the first error wins and later ones are ignored. Fixed buffers, so that reporting an
 * error can never fail; longer text is cut with "...". Thread rule: one thread a diag. */
#ifndef LTH_BASE_DIAG_H
#define LTH_BASE_DIAG_H

#include "runtime/base/status.h"

struct lth_diag {
	enum lth_code code;  /* LTH_OK until the first error */
	char place[256];     /* where: node name, line:column, byte offset, option */
	char found[2048];    /* what was found */
	char expected[512];  /* what would have been right; may be empty */
	char advice[512];    /* what to do; may be empty */
};

/* Records an error unless one is there already, and returns `code`. `expected` and `advice` may be NULL; the format
 * describes what was found. */
enum lth_code lth_diag_fail(struct lth_diag *diag, enum lth_code code, const char *place, const char *expected,
			    const char *advice, const char *found_format, ...) LTH_PRINTF(6, 7);

/* Prefixes the place of a recorded error ("node 'conv1': " + place); for callers that know more. */
void lth_diag_within(struct lth_diag *diag, const char *format, ...) LTH_PRINTF(2, 3);

/* One line for people: "TITLE: PLACE: found FOUND, expected EXPECTED; ADVICE". Returns `buffer`. */
const char *lth_diag_line(const struct lth_diag *diag, char *buffer, unsigned long size);

/* Records what such a line says, of whoever could pass on text only. A title that is not the code's stays in what was
 * found. Returns `code`. */
enum lth_code lth_diag_read_line(struct lth_diag *diag, enum lth_code code, const char *line);

/* The known word nearest to `word` by edit distance, or NULL when none is near (more than a third differs).
 * `names` has `count` entries. Used by every "unknown X, did you mean Y". */
const char *lth_nearest(const char *word, const char *const *names, unsigned long count);

#endif
