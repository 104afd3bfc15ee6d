/* Options of a request: from a query string to JSON, checks by the table that the workers described, and the action
 * key. Thread rule: loop thread. */
#ifndef LTH_DAEMON_OPTIONS_H
#define LTH_DAEMON_OPTIONS_H

#include "daemon/description.h"
#include "runtime/base/sha256.h"

/* Adds one `name=value` of a query string to `options`. */
LTH_MUST_CHECK enum lth_code lth_options_add(const struct lth_description *description, json_t *options,
					     const char *name, const char *value, struct lth_diag *diag);
/* Names, types, words and ranges of a whole options object, as it came in JSON or was put together from a query. */
LTH_MUST_CHECK enum lth_code lth_options_check(const struct lth_description *description, const json_t *options,
					       struct lth_diag *diag);

/* The action key: SHA-256 of a canonical text of model, files, build, host and every resolved option. Parsed meaning is
 * what counts: 2 and 2.0, order of members, and an option given its default value make no difference. */
LTH_MUST_CHECK enum lth_code lth_options_key(const struct lth_description *description, const char *model_digest,
					     const json_t *files, const json_t *options, const char *salt,
					     char out_key[LTH_DIGEST_TEXT], struct lth_diag *diag);

#endif
