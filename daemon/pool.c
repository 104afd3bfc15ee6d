/* The pool of workers: how many there are, and who gets a task. See pool.h and pool_internal.h. */
#include "daemon/pool_internal.h"
#include "runtime/base/io.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

enum { WATCH_MS = 250, FIRST_PAUSE_MS = 100, LONGEST_PAUSE_MS = 10000 };

static void on_pause_over(uv_timer_t *timer)
{
	struct lth_pool *pool = timer->data;
	for (unsigned missing = (unsigned)pool->config->workers - lth_pool_count(pool, NULL, NULL); missing; missing--)
		lth_worker_spawn(pool);
}

void lth_pool_fill(struct lth_pool *pool)
{
	if (pool->closing || uv_is_active((uv_handle_t *)&pool->pause))
		return;
	if (pool->failed_starts) {
		uint64_t shift = pool->failed_starts < 8 ? pool->failed_starts : 8, pause = FIRST_PAUSE_MS << shift;
		uv_timer_start(&pool->pause, on_pause_over, pause < LONGEST_PAUSE_MS ? pause : LONGEST_PAUSE_MS, 0);
		return;
	}
	on_pause_over(&pool->pause);
}

/* A worker that started on a full disk has no folder, and cannot be let into one any more: once there is room, another
 * takes its place. */
static void replace_homeless(struct lth_pool *pool)
{
	bool room = false;
	for (struct lth_pool_worker *worker = pool->workers; worker; worker = worker->next) {
		if (worker->state != LTH_WORKER_IDLE || !worker->folder_error || mkdir(worker->work_dir, 0700) != 0)
			continue;
		lth_worker_send_home(worker);
		room = true;
	}
	if (room)
		lth_pool_fill(pool);
}

/* The address-space limit holds the worker itself; resident memory is watched too, for what that limit cannot see. */
static void on_watch(uv_timer_t *timer)
{
	struct lth_pool *pool = timer->data;
	uint64_t limit = pool->config->worker_memory_bytes;
	replace_homeless(pool);
	for (struct lth_pool_worker *worker = pool->workers; limit && worker; worker = worker->next) {
		if (worker->state != LTH_WORKER_BUSY || lth_pool_resident_bytes(worker->process.pid) <= limit)
			continue;
		worker->over_memory = true;
		lth_worker_kill(worker, SIGKILL);
	}
}

struct lth_pool *lth_pool_create(uv_loop_t *loop, const struct lth_config *config, struct lth_store *store,
				 struct lth_metrics *metrics, const struct lth_log *log,
				 const struct lth_pool_events *events)
{
	struct lth_pool *pool = calloc(1, sizeof(*pool));
	if (!pool)
		return NULL;
	pool->loop = loop;
	pool->config = config;
	pool->store = store;
	pool->metrics = metrics;
	pool->log = log;
	pool->events = *events;
	if (getrandom(&pool->life, sizeof(pool->life), 0) != sizeof(pool->life))
		pool->life = (unsigned)lth_now_ns();
	pool->kernels = lth_store_path(store, "kernels", "");
	if (!pool->kernels) {
		free(pool);
		return NULL;
	}
	uv_timer_init(loop, &pool->watch);
	uv_timer_init(loop, &pool->pause);
	pool->watch.data = pool->pause.data = pool;
	uv_timer_start(&pool->watch, on_watch, WATCH_MS, WATCH_MS);
	lth_pool_fill(pool);
	return pool;
}

/* --- the interface */
unsigned lth_pool_count(const struct lth_pool *pool, unsigned *out_idle, unsigned *out_busy)
{
	unsigned all = 0, idle = 0, busy = 0;
	for (const struct lth_pool_worker *worker = pool->workers; worker; worker = worker->next) {
		all += worker->state != LTH_WORKER_LEAVING;
		idle += worker->state == LTH_WORKER_IDLE;
		busy += worker->state == LTH_WORKER_BUSY;
	}
	if (out_idle)
		*out_idle = idle;
	if (out_busy)
		*out_busy = busy;
	return all;
}

bool lth_pool_has_room(const struct lth_pool *pool)
{
	unsigned idle;
	lth_pool_count(pool, &idle, NULL);
	return idle > 0;
}

const json_t *lth_pool_layers(const struct lth_pool *pool)
{
	return pool->layers;
}

enum lth_code lth_pool_start(struct lth_pool *pool, struct lth_task *task, struct lth_diag *diag)
{
	struct lth_pool_worker *worker = pool->workers;
	while (worker && worker->state != LTH_WORKER_IDLE)
		worker = worker->next;
	if (!worker)
		return lth_diag_fail(diag, LTH_BUSY, "pool", NULL, NULL, "no idle worker");
	worker->task = task;
	task->worker = worker;
	worker->bundle_fd = lth_store_anonymous_file(pool->store);
	int error = worker->bundle_fd < 0 ? errno : worker->folder_error;
	if (asprintf(&worker->task_dir, "%s/%s", worker->work_dir, task->job_id) < 0)
		worker->task_dir = NULL;
	if (!error && (!worker->task_dir || mkdir(worker->task_dir, 0700) != 0))
		error = errno;
	if (error) {
		lth_worker_drop_task(worker);
		return lth_diag_fail(diag, error == ENOSPC ? LTH_DISK_FULL : LTH_IO_ERROR, "work folder", NULL, NULL,
				     "%s", strerror(error));
	}
	worker->stage[0] = 0;
	if (!lth_worker_send(worker, task)) { /* it is dying: its exit will be seen; this task has not begun */
		lth_worker_drop_task(worker);
		lth_worker_stop(worker);
		return lth_diag_fail(diag, LTH_BUSY, "pool", NULL, NULL, "the worker is gone: %s", strerror(errno));
	}
	worker->state = LTH_WORKER_BUSY;
	return LTH_OK;
}

void lth_pool_abandon(struct lth_pool *pool, struct lth_task *task)
{
	struct lth_pool_worker *worker = task->worker;
	if (!worker)
		return;
	lth_worker_drop_task(worker);
	lth_worker_stop(worker);
	lth_pool_fill(pool);
}

static void on_timer_closed(uv_handle_t *handle)
{
	struct lth_pool *pool = handle->data;
	if (--pool->open_timers == 0 && !pool->workers)
		pool->on_closed(pool->events.context);
}

void lth_pool_close(struct lth_pool *pool, void (*on_closed)(void *context))
{
	pool->closing = true;
	pool->on_closed = on_closed;
	pool->open_timers = 2;
	for (struct lth_pool_worker *worker = pool->workers; worker; worker = worker->next) {
		if (worker->task)
			lth_worker_drop_task(worker);
		if (!worker->exited)
			lth_worker_stop(worker);
	}
	uv_close((uv_handle_t *)&pool->watch, on_timer_closed);
	uv_close((uv_handle_t *)&pool->pause, on_timer_closed);
}

void lth_pool_destroy(struct lth_pool **pool)
{
	if (!*pool)
		return;
	json_decref((*pool)->layers);
	free((*pool)->kernels);
	free(*pool);
	*pool = NULL;
}
