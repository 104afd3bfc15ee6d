/* Quarantine: an action that killed its worker twice is answered from here until a new build (or a request with
 * Cache-Control: no-cache) tries it again. quarantine/HEX/, named by the action key, is also the reproducer:
 * problem.json (signal and stage), request.json (options and files) and model (the bytes themselves).
 * Thread rule: add and find on the loop thread; writing happens in the thread pool. */
#ifndef LTH_DAEMON_QUARANTINE_H
#define LTH_DAEMON_QUARANTINE_H

#include "daemon/jobs.h"

enum { LTH_QUARANTINE_MOST = 256 }; /* the oldest go */

/* Calls `then` when it is done, at once without memory for it. Best effort: what cannot be written is logged and
 * forgotten. */
void lth_quarantine_add(struct lth_jobs *jobs, struct lth_job *job,
			void (*then)(struct lth_jobs *jobs, struct lth_job *job));
/* The problem of a quarantined action: fills the diag and returns the members to add to the document (the caller's);
 * NULL when the action is not quarantined. */
json_t *lth_quarantine_find(const struct lth_store *store, const char *key, struct lth_diag *out_diag);
void lth_quarantine_release(const struct lth_store *store, const char *key); /* it has worked after all */

#endif
