/* The pool of workers: processes exec'ed before they are needed, one task at a time each, replaced after their share
 * of tasks, when grown, and when they die. Every end of a task is typed: done, failed, crashed (with signal and
 * stage), out of memory. The protocol is compiler/worker/worker.h's. Thread rule: loop thread. */
#ifndef LTH_DAEMON_POOL_H
#define LTH_DAEMON_POOL_H

#include "daemon/config.h"
#include "daemon/metrics.h"
#include "daemon/store.h"

#include <jansson.h>
#include <uv.h>

struct lth_pool;
struct lth_pool_worker;

struct lth_task_blob { /* bytes with a digest */
	const char *digest;
	bool hashed; /* the store has hashed them since its start; else the worker does */
	int fd;
	const char *name; /* of a file */
};

/* What a worker is given. All borrowed until the outcome, or until the task is abandoned. */
struct lth_task {
	const char *job_id, *kind; /* "compile", "plan", "plan_check" */
	const json_t *options;
	struct lth_task_blob payload; /* without a digest when it is a plan's body */
	bool model_is_json, csv;
	const struct lth_task_blob *files;
	size_t num_files;
	uint64_t threads;               /* that it may use */
	uint64_t cpu_seconds;           /* 0: no limit */
	uint64_t left_ms;               /* until the deadline; 0: none */
	void *owner;                    /* the caller's */
	struct lth_pool_worker *worker; /* the pool's: who runs it */
};

struct lth_outcome {
	struct lth_diag diag; /* code LTH_OK: the bundle is complete */
	int bundle_fd;        /* the receiver's, -1 unless LTH_OK */
	char *work_dir;       /* what the worker left there; the receiver removes it; NULL unless LTH_OK */
	uint64_t index_offset, index_bytes;
	bool crashed; /* the worker died: worth another try */
	int signal;
	char stage[64]; /* the last stage it reported */
};

struct lth_pool_events {
	void *context;
	void (*on_stage)(void *context, struct lth_task *task, const char *stage);
	void (*on_pass)(void *context, struct lth_task *task, const char *pass);
	void (*on_outcome)(void *context, struct lth_task *task, struct lth_outcome *outcome);
	void (*on_room)(void *context); /* a worker has become idle */
	/* The first worker of a build has described itself; false refuses the worker. */
	bool (*on_description)(void *context, const char *text, size_t size);
};

/* Starts the workers. NULL when out of memory; a worker that cannot be started is tried again, with growing pauses. */
struct lth_pool *lth_pool_create(uv_loop_t *loop, const struct lth_config *config, struct lth_store *store,
				 struct lth_metrics *metrics, const struct lth_log *log,
				 const struct lth_pool_events *events);
/* Kills all workers; `on_closed` is called when the last is gone and nothing of the pool is on the loop any more. */
void lth_pool_close(struct lth_pool *pool, void (*on_closed)(void *context));
void lth_pool_destroy(struct lth_pool **pool); /* after on_closed */

bool lth_pool_has_room(const struct lth_pool *pool);
unsigned lth_pool_count(const struct lth_pool *pool, unsigned *out_idle, unsigned *out_busy);
/* Resident memory of a process; 0 when there is none of this id. */
uint64_t lth_pool_resident_bytes(long pid);
/* The layers that the last worker reported ("rlimits", "landlock", ...); borrowed, may be NULL. */
const json_t *lth_pool_layers(const struct lth_pool *pool);

/* Hands the task to an idle worker (there must be one). On failure the task has not begun. */
LTH_MUST_CHECK enum lth_code lth_pool_start(struct lth_pool *pool, struct lth_task *task, struct lth_diag *diag);
/* Stops the worker of a running task in two stages; there will be no outcome. */
void lth_pool_abandon(struct lth_pool *pool, struct lth_task *task);

#endif
