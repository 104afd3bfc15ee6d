/* What the workers can do, as they say it themselves when they start (lth_describe): passes, operators, targets and the
 * table of options by which the daemon checks requests and makes action keys. An option's row:
 *   path       dotted JSON path, e.g. "memory.strategy"
 *   type       bool | int | number | string | enum | list (of strings) | dims | map (name to integer) | variants | any
 *   singular   for a list or dims: its name in a query string, repeated ("disabled_pass")
 *   values     for an enum or list: the allowed words; or values_from: "passes" or another list of the description
 *   min, max   for an int or number
 *   default    its value when absent; joins the action key
 *   set        true when a list's order and repetitions mean nothing
 *   key        false when the option cannot change what a finished job gives (timeout_ms)
 * Thread rule: loop thread. */
#ifndef LTH_DAEMON_DESCRIPTION_H
#define LTH_DAEMON_DESCRIPTION_H

#include "runtime/base/diag.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum lth_option_type {
	LTH_OPTION_BOOL,
	LTH_OPTION_INT,
	LTH_OPTION_NUMBER,
	LTH_OPTION_STRING,
	LTH_OPTION_LIST,
	LTH_OPTION_DIMS,
	LTH_OPTION_MAP,
	LTH_OPTION_VARIANTS,
	LTH_OPTION_ANY,
	LTH_NUM_OPTION
};

struct lth_option_row { /* borrowed from the description */
	const char *path, *query_name;
	enum lth_option_type type;
	const char **values; /* NULL: any word; owned by the row */
	size_t num_values;
	const json_t *minimum, *maximum, *standard;
	bool is_set, in_key;
};

struct lth_description {
	json_t *root; /* NULL until the first worker has introduced itself */
	char build[96];
	struct lth_option_row *options;
	size_t num_options;
	const char **paths, **query_names; /* of the options, for "did you mean" */
};

/* Replaces the description by what the JSON text says. On failure the old one stays. */
LTH_MUST_CHECK enum lth_code lth_description_load(struct lth_description *description, const char *text, size_t size,
						  struct lth_diag *diag);
void lth_description_free(struct lth_description *description);
const struct lth_option_row *lth_description_option(const struct lth_description *description, const char *path);

#endif
