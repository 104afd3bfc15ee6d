/* What the pool's files share: pool.c (how many workers, and who gets a task), worker_process.c (their beginning and
 * end) and worker_messages.c (what they say and are told). A worker's life: STARTING until it has introduced itself,
 * IDLE, BUSY with one task, LEAVING once it has been told to go or been killed. It owns three libuv handles (process,
 * socket, timer) and is freed when the last of them has closed. Thread rule: loop thread.
 *
 * A task's folder has one owner at a time. lth_pool_start makes work/WORKER/JOB, within the only folder that the worker
 * may write in. From there it goes one of two ways: lth_worker_drop_task removes it (the task failed, its worker died, it
 * was abandoned by a cancel or a deadline, the daemon ends), or, when the worker has said that the task is done,
 * lth_worker_report moves it to work/JOB, out of reach of the worker, of its next task and of its end, and the
 * receiver of the outcome removes it once the result is published. A job tried again gets a new folder in another
 * worker's. The folder of a worker goes when the last of its handles has closed. Names of workers' folders are new in
 * each life of the daemon, which begins by emptying work/: a linker that outlives a killed worker for a moment still
 * has paths into the old one. */
#ifndef LTH_DAEMON_POOL_INTERNAL_H
#define LTH_DAEMON_POOL_INTERNAL_H

#include "daemon/pool.h"
#include "runtime/base/wire.h"

enum lth_worker_state { LTH_WORKER_STARTING, LTH_WORKER_IDLE, LTH_WORKER_BUSY, LTH_WORKER_LEAVING };

struct lth_pool_worker {
	struct lth_pool_worker *next;
	struct lth_pool *pool;
	enum lth_worker_state state;
	uv_process_t process;
	uv_poll_t poll;
	uv_timer_t stop_timer;
	int socket;
	bool exited, polling;
	int open_handles;
	char *work_dir;   /* of the worker */
	int folder_error; /* why it could not be made; 0: it was */
	char *task_dir; /* of the task, inside */
	struct lth_task *task;
	int bundle_fd;
	char stage[64];
	uint64_t jobs_done;
	int last_signal; /* from its last words */
	uint64_t last_address_space;
	bool over_memory; /* stopped by the watch */
	char name[24];
};

struct lth_pool {
	uv_loop_t *loop;
	const struct lth_config *config;
	struct lth_store *store;
	struct lth_metrics *metrics;
	const struct lth_log *log;
	struct lth_pool_events events;
	struct lth_pool_worker *workers;
	uv_timer_t watch, pause;
	json_t *layers;
	char *kernels; /* the folder */
	char build[96];
	uint64_t serial;
	unsigned life; /* random: in the names of the workers' folders */
	unsigned failed_starts;
	bool closing;
	int open_timers;
	void (*on_closed)(void *context);
	struct lth_wire_message message; /* large: one for all */
};

/* --- pool.c */
/* Starts as many workers as are missing. Those that leave do not count: their successors start at once, unless starting
 * has kept failing. */
void lth_pool_fill(struct lth_pool *pool);

/* --- worker_process.c */
/* A worker linked into the pool with its handles on the loop, STARTING or (when it could not start) going away. */
void lth_worker_spawn(struct lth_pool *pool);
/* A signal to it and all its children. */
void lth_worker_kill(const struct lth_pool_worker *worker, int number);
/* Two stages: SIGTERM now, SIGKILL after the grace. */
void lth_worker_stop(struct lth_pool_worker *worker);
/* An idle worker is sent home by the end of its socket; the timer is for one that does not listen. */
void lth_worker_send_home(struct lth_pool_worker *worker);

/* --- worker_messages.c */
void lth_worker_on_socket(uv_poll_t *poll, int status, int events);
/* Reads all that the worker has said. */
void lth_worker_drain(struct lth_pool_worker *worker);
/* Tells it its task. False with errno when it is gone. */
bool lth_worker_send(struct lth_pool_worker *worker, const struct lth_task *task);
/* The task's end, with its outcome for whoever gave it. */
void lth_worker_report(struct lth_pool_worker *worker, struct lth_outcome *outcome);
/* The task's end without one. */
void lth_worker_drop_task(struct lth_pool_worker *worker);

#endif
