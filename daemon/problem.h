/* Problem documents (RFC 9457): a diagnostic as application/problem+json. `type` is about:lathe:SLUG from status.def.
 * Thread rule: pure. */
#ifndef LTH_DAEMON_PROBLEM_H
#define LTH_DAEMON_PROBLEM_H

#include "runtime/base/diag.h"

#include <jansson.h>

/* `extra`: members to add (job, signal, stage, missing ...), borrowed, may be NULL. The text is malloc'ed; NULL when
 * out of memory. */
char *lth_problem_text(const struct lth_diag *diag, const json_t *extra);

#endif
