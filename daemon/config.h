/* Settings of lathed: defaults, then the configuration file, then the environment, then flags, each overriding the one
 * before, all from config.def. Thread rule: made on the loop thread; others read. */
#ifndef LTH_DAEMON_CONFIG_H
#define LTH_DAEMON_CONFIG_H

#include "runtime/base/diag.h"
#include "runtime/base/log.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef char *lth_config_TEXT;
typedef uint64_t lth_config_COUNT, lth_config_BYTES, lth_config_MS;
typedef bool lth_config_YESNO;

struct lth_config {
#define LTH_CONFIG(name, type, value, argument, reload, help) lth_config_##type name;
#include "daemon/config.def"
#undef LTH_CONFIG
	char *file; /* the configuration file, or NULL */
	char *host; /* from `listen` */
	char *port;
	char *worker_path; /* found: an absolute path */
	enum lth_log_level log_threshold;
	uint64_t num_cpus; /* that the process may use */
};

enum lth_config_action { LTH_CONFIG_RUN, LTH_CONFIG_HELP, LTH_CONFIG_VERSION, LTH_CONFIG_REFERENCE, LTH_CONFIG_MANUAL };

/* Reads all sources. `argv` as main got it. On failure nothing is left to free. */
LTH_MUST_CHECK enum lth_code lth_config_load(int argc, char **argv, struct lth_config *out_config,
					     enum lth_config_action *out_action, struct lth_diag *diag);
/* Takes the reloadable settings of `fresh` over; the rest stays, and is named in the log when it differs. */
void lth_config_reload(struct lth_config *config, struct lth_config *fresh, const struct lth_log *log);
void lth_config_free(struct lth_config *config);
/* --- config_text.c */
void lth_config_help(FILE *out);
/* The table as lines of a configuration file, every line a comment. */
void lth_config_reference(FILE *out);
/* The manual page, in man(7). */
void lth_config_manual(FILE *out);

#endif
