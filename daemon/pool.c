/* The pool of workers. See pool.h. A worker's life: STARTING until it has introduced itself, IDLE, BUSY with one task,
 * LEAVING once it has been told to go or been killed. It owns three libuv handles (process, socket, timer) and is freed
 * when the last of them has closed. */
#include "daemon/pool.h"
#include "runtime/base/io.h"
#include "runtime/base/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WATCH_MS = 250, FIRST_PAUSE_MS = 100, LONGEST_PAUSE_MS = 10000, WORKER_FD = 3, HANDLES = 3 };

enum state { STARTING, IDLE, BUSY, LEAVING };

struct lth_pool_worker {
	struct lth_pool_worker *next;
	struct lth_pool *pool;
	enum state state;
	uv_process_t process;
	uv_poll_t poll;
	uv_timer_t stop_timer;
	int socket;
	bool exited, polling;
	int open_handles;
	char *work_dir; /* of the worker */
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
	unsigned failed_starts;
	bool closing;
	int open_timers;
	void (*on_closed)(void *context);
	struct lth_wire_message message; /* large: one for all */
};

static void spawn_missing(struct lth_pool *pool);

static void kill_group(const struct lth_pool_worker *worker, int number)
{
	if (worker->process.pid > 1 && !worker->exited)
		kill(-worker->process.pid, number); /* a session of its own: the linker and measuring runs go too */
}

/* --- the end of a task */
static void drop_task(struct lth_pool_worker *worker)
{
	worker->task->worker = NULL;
	worker->task = NULL;
	if (worker->bundle_fd >= 0)
		close(worker->bundle_fd);
	worker->bundle_fd = -1;
	if (worker->task_dir)
		lth_store_remove_tree(worker->task_dir);
	free(worker->task_dir);
	worker->task_dir = NULL;
}

static void report(struct lth_pool_worker *worker, struct lth_outcome *outcome)
{
	struct lth_pool *pool = worker->pool;
	struct lth_task *task = worker->task;
	snprintf(outcome->stage, sizeof(outcome->stage), "%s", worker->stage);
	outcome->bundle_fd = -1;
	if (outcome->diag.code == LTH_OK) {
		outcome->bundle_fd = worker->bundle_fd;
		outcome->work_dir = worker->task_dir;
		worker->bundle_fd = -1;
		worker->task_dir = NULL;
	}
	drop_task(worker);
	pool->events.on_outcome(pool->events.context, task, outcome);
}

/* --- leaving */
static void on_handle_closed(uv_handle_t *handle)
{
	struct lth_pool_worker *worker = handle->data;
	struct lth_pool *pool = worker->pool;
	if (--worker->open_handles)
		return;
	if (worker->socket >= 0)
		close(worker->socket); /* after its handle, never before */
	struct lth_pool_worker **link = &pool->workers;
	while (*link != worker)
		link = &(*link)->next;
	*link = worker->next;
	if (worker->work_dir)
		lth_store_remove_tree(worker->work_dir);
	free(worker->work_dir);
	free(worker);
	if (pool->closing && !pool->workers && !pool->open_timers)
		pool->on_closed(pool->events.context);
	else
		spawn_missing(pool);
}

static void close_handles(struct lth_pool_worker *worker)
{
	uv_handle_t *handles[HANDLES] = {(uv_handle_t *)&worker->process, (uv_handle_t *)&worker->poll,
					 (uv_handle_t *)&worker->stop_timer};
	for (int i = 0; i < HANDLES; i++)
		if (!uv_is_closing(handles[i]))
			uv_close(handles[i], on_handle_closed);
}

static void on_stop_timer(uv_timer_t *timer)
{
	kill_group(timer->data, SIGKILL);
}

/* Two stages: SIGTERM now, SIGKILL after the grace. */
static void stop_worker(struct lth_pool_worker *worker)
{
	worker->state = LEAVING;
	kill_group(worker, SIGTERM);
	uv_timer_start(&worker->stop_timer, on_stop_timer, worker->pool->config->stop_grace_ms, 0);
}

/* An idle worker is sent home by the end of its socket; the timer is for one that does not listen. */
static void send_home(struct lth_pool_worker *worker)
{
	worker->state = LEAVING;
	shutdown(worker->socket, SHUT_RDWR);
	uv_timer_start(&worker->stop_timer, on_stop_timer, worker->pool->config->stop_grace_ms, 0);
}

static uint64_t resident_bytes(int pid)
{
	char path[48], text[128] = "";
	unsigned long long total = 0, resident = 0;
	snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t size = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (size <= 0 || sscanf(text, "%llu %llu", &total, &resident) != 2)
		return 0;
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static bool shall_retire(const struct lth_pool_worker *worker)
{
	const struct lth_config *config = worker->pool->config;
	return worker->jobs_done >= config->worker_jobs ||
	       resident_bytes(worker->process.pid) > config->worker_grown_bytes;
}

static void retire(struct lth_pool_worker *worker)
{
	struct lth_pool *pool = worker->pool;
	pool->metrics->values[LTH_METRIC_WORKERS_RECYCLED]++;
	lth_log_event(pool->log, LTH_LOG_INFO, NULL, "worker-recycled", "worker", worker->name, NULL);
	send_home(worker);
	spawn_missing(pool);
}

/* --- messages from a worker */
static void on_ready(struct lth_pool_worker *worker, const json_t *message)
{
	struct lth_pool *pool = worker->pool;
	struct lth_wire_view view;
	const char *build = json_string_value(json_object_get(message, "build"));
	if (worker->state != STARTING)
		return;
	pool->failed_starts = 0;
	json_decref(pool->layers);
	pool->layers = json_incref(json_object_get(message, "layers"));
	if (build && strcmp(build, pool->build) != 0) {
		bool ok = pool->message.num_fds == 1 && lth_wire_map(pool->message.fds[0], 64u << 20, &view);
		if (ok) {
			ok = pool->events.on_description(pool->events.context, view.data, view.size);
			lth_wire_unmap(&view);
		}
		if (!ok) {
			pool->failed_starts++;
			stop_worker(worker);
			return;
		}
		snprintf(pool->build, sizeof(pool->build), "%s", build);
	}
	char *layers = pool->layers ? json_dumps(pool->layers, JSON_COMPACT) : NULL;
	lth_log_event(pool->log, LTH_LOG_INFO, NULL, "worker-ready", "worker", worker->name, "layers",
		      layers ? layers : "-", NULL);
	free(layers);
	worker->state = IDLE;
	pool->events.on_room(pool->events.context);
}

static void copy_text(char *out, size_t size, const json_t *message, const char *key)
{
	const char *text = json_string_value(json_object_get(message, key));
	snprintf(out, size, "%s", text ? text : "");
}

static void on_end(struct lth_pool_worker *worker, const json_t *message, bool done)
{
	struct lth_outcome outcome = {0};
	if (worker->state != BUSY)
		return;
	if (done) {
		outcome.index_offset = (uint64_t)json_integer_value(json_object_get(message, "index_offset"));
		outcome.index_bytes = (uint64_t)json_integer_value(json_object_get(message, "index_bytes"));
	} else {
		const char *slug = json_string_value(json_object_get(message, "slug"));
		enum lth_code code = slug ? lth_code_by_slug(slug) : LTH_NUM_CODES;
		outcome.diag.code = code == LTH_NUM_CODES || code == LTH_OK ? LTH_INTERNAL : code;
		copy_text(outcome.diag.place, sizeof(outcome.diag.place), message, "place");
		copy_text(outcome.diag.found, sizeof(outcome.diag.found), message, "found");
		copy_text(outcome.diag.expected, sizeof(outcome.diag.expected), message, "expected");
		copy_text(outcome.diag.advice, sizeof(outcome.diag.advice), message, "advice");
		if (outcome.diag.code == LTH_OUT_OF_MEMORY)
			worker->pool->metrics->values[LTH_METRIC_WORKERS_MEMORY]++;
	}
	worker->jobs_done++;
	bool retires = shall_retire(worker);
	worker->state = retires ? LEAVING : IDLE; /* before the report, which looks for room */
	report(worker, &outcome);
	if (retires)
		retire(worker);
	else if (worker->state == IDLE)
		worker->pool->events.on_room(worker->pool->events.context);
}

static void on_message(struct lth_pool_worker *worker)
{
	struct lth_pool *pool = worker->pool;
	json_t *message = json_loadb(pool->message.text, pool->message.size, JSON_REJECT_DUPLICATES, NULL);
	const char *event = json_string_value(json_object_get(message, "event"));
	if (!event)
		lth_log_event(pool->log, LTH_LOG_WARN, NULL, "worker-nonsense", "worker", worker->name, NULL);
	else if (strcmp(event, "ready") == 0)
		on_ready(worker, message);
	else if (strcmp(event, "stage") == 0 && worker->state == BUSY) {
		copy_text(worker->stage, sizeof(worker->stage), message, "stage");
		pool->events.on_stage(pool->events.context, worker->task, worker->stage);
	} else if (strcmp(event, "done") == 0 || strcmp(event, "failed") == 0)
		on_end(worker, message, event[0] == 'd');
	else if (strcmp(event, "crash") == 0) {
		worker->last_signal = (int)json_integer_value(json_object_get(message, "signal"));
		worker->last_address_space =
			(uint64_t)json_integer_value(json_object_get(message, "address_space_bytes"));
	}
	json_decref(message);
}

static void drain_socket(struct lth_pool_worker *worker)
{
	for (;;) {
		enum lth_wire_status status = lth_wire_receive(worker->socket, &worker->pool->message);
		if (status == LTH_WIRE_AGAIN)
			return;
		if (status != LTH_WIRE_MESSAGE) {
			if (worker->polling)
				uv_poll_stop(&worker->poll); /* the exit callback follows */
			worker->polling = false;
			return;
		}
		on_message(worker);
		lth_wire_close(&worker->pool->message);
	}
}

static void on_socket(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	drain_socket(poll->data);
}

/* --- death */
static void report_death(struct lth_pool_worker *worker, int64_t exit_status, int number)
{
	struct lth_pool *pool = worker->pool;
	struct lth_outcome outcome = {.crashed = true, .signal = number ? number : worker->last_signal};
	uint64_t limit = pool->config->worker_memory_bytes;
	const char *stage = worker->stage[0] ? worker->stage : "start";
	char limit_text[64];
	snprintf(limit_text, sizeof(limit_text), "at most %llu bytes", (unsigned long long)limit);
	if (worker->over_memory || (limit && worker->last_address_space > limit - limit / 8)) {
		outcome.crashed = false;
		pool->metrics->values[LTH_METRIC_WORKERS_MEMORY]++;
		lth_diag_fail(&outcome.diag, LTH_OUT_OF_MEMORY, stage, limit_text,
			      "raise lathed's worker-memory-bytes, or narrow the model's dimensions",
			      "a worker at its memory limit");
	} else if (outcome.signal == SIGXCPU) {
		outcome.crashed = false;
		pool->metrics->values[LTH_METRIC_WORKERS_DEADLINE]++;
		lth_diag_fail(&outcome.diag, LTH_DEADLINE, stage, NULL, "ask for a longer timeout_ms",
			      "the job's CPU time used up");
	} else if (outcome.signal) {
		lth_diag_fail(&outcome.diag, LTH_WORKER_CRASHED, stage, NULL, NULL, "signal %d (%s)", outcome.signal,
			      strsignal(outcome.signal));
	} else {
		lth_diag_fail(&outcome.diag, LTH_WORKER_CRASHED, stage, NULL, NULL, "exit with status %lld",
			      (long long)exit_status);
	}
	if (outcome.crashed)
		pool->metrics->values[LTH_METRIC_WORKERS_CRASHED]++;
	report(worker, &outcome);
}

static void on_exit_of_worker(uv_process_t *process, int64_t exit_status, int number)
{
	struct lth_pool_worker *worker = process->data;
	struct lth_pool *pool = worker->pool;
	char text[48];
	drain_socket(worker);         /* a result or last words may still be there */
	kill(-process->pid, SIGKILL); /* children that outlived it */
	worker->exited = true;
	snprintf(text, sizeof(text), "%lld/%d", (long long)exit_status, number);
	lth_log_event(pool->log, worker->state == LEAVING ? LTH_LOG_INFO : LTH_LOG_WARN,
		      worker->task ? worker->task->job_id : NULL, "worker-exit", "worker", worker->name, "status", text,
		      "stage", worker->stage[0] ? worker->stage : "-", NULL);
	if (worker->state == STARTING)
		pool->failed_starts++;
	bool had_task = worker->task != NULL;
	worker->state = LEAVING;
	close_handles(worker);
	if (had_task)
		report_death(worker, exit_status, number);
}

/* --- starting */
static int spawn_process(struct lth_pool_worker *worker, int child_end)
{
	const struct lth_pool *pool = worker->pool;
	char parent[24], memory[24], file_bytes[24], fd[8];
	snprintf(fd, sizeof(fd), "%d", WORKER_FD);
	snprintf(parent, sizeof(parent), "%ld", (long)getpid());
	snprintf(memory, sizeof(memory), "%llu", (unsigned long long)pool->config->worker_memory_bytes);
	snprintf(file_bytes, sizeof(file_bytes), "%llu", (unsigned long long)pool->config->worker_file_bytes);
	const char *const args[] = {pool->config->worker_path,
				    "--fd",
				    fd,
				    "--parent",
				    parent,
				    "--work",
				    worker->work_dir,
				    "--kernels",
				    pool->kernels,
				    "--memory",
				    memory,
				    "--file-bytes",
				    file_bytes,
				    pool->config->worker_sandbox ? NULL : "--no-sandbox",
				    NULL};
	char *plain_args[sizeof(args) / sizeof(args[0])]; /* as libuv's interface has them; it does not write */
	memcpy(plain_args, args, sizeof(args));
	uv_stdio_container_t stdio[WORKER_FD + 1] = {
		{.flags = UV_IGNORE},
		{.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
		{.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
		{.flags = UV_INHERIT_FD, .data.fd = child_end},
	};
	/* a clean environment: nothing of the daemon's (service manager, proxies, preloads) reaches what compiles for others */
	char temporary[PATH_MAX + 16], sanitizer[256];
	const char *asan = getenv("ASAN_OPTIONS");
	char path_variable[] = "PATH=/usr/bin:/bin", locale[] = "LC_ALL=C.UTF-8";
	snprintf(temporary, sizeof(temporary), "TMPDIR=%s", worker->work_dir);
	snprintf(sanitizer, sizeof(sanitizer), "ASAN_OPTIONS=%s", asan ? asan : "");
	char *environment[] = {path_variable, locale, temporary, asan ? sanitizer : NULL, NULL};
	uv_process_options_t options = {
		.file = pool->config->worker_path,
		.env = environment,
		.args = plain_args,
		.stdio = stdio,
		.stdio_count = WORKER_FD + 1,
		.exit_cb = on_exit_of_worker,
		.flags = UV_PROCESS_DETACHED, /* setsid in the child: its group can be killed as one */
	};
	return uv_spawn(pool->loop, &worker->process, &options);
}

/* A worker linked into the pool with its handles on the loop, STARTING or (when it could not start) going away. */
static void spawn(struct lth_pool *pool)
{
	int ends[2];
	char path[64], *work_dir;
	struct lth_pool_worker *worker = calloc(1, sizeof(*worker));
	snprintf(path, sizeof(path), "work/w%llu", (unsigned long long)++pool->serial);
	work_dir = lth_store_path(pool->store, path, "");
	if (!worker || !work_dir || !lth_wire_pair(ends)) {
		free(worker);
		free(work_dir);
		pool->failed_starts++;
		return;
	}
	mkdir(work_dir, 0700); /* should that fail, every task will say so */
	*worker = (struct lth_pool_worker){
		.pool = pool, .socket = ends[0], .bundle_fd = -1, .next = pool->workers, .work_dir = work_dir};
	snprintf(worker->name, sizeof(worker->name), "w%llu", (unsigned long long)pool->serial);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	pool->workers = worker;
	uv_poll_init(pool->loop, &worker->poll, ends[0]);
	uv_timer_init(pool->loop, &worker->stop_timer);
	int error = spawn_process(worker, ends[1]);
	close(ends[1]);
	worker->process.data = worker->poll.data = worker->stop_timer.data = worker;
	worker->open_handles = HANDLES;
	pool->metrics->values[LTH_METRIC_WORKERS_STARTED]++;
	if (error) {
		lth_log_event(pool->log, LTH_LOG_ERROR, NULL, "worker-start-failed", "worker", worker->name, "error",
			      uv_strerror(error), NULL);
		pool->failed_starts++;
		worker->state = LEAVING;
		worker->exited = true;
		close_handles(worker); /* uv_spawn initialises its handle even when it fails */
		return;
	}
	worker->polling = true;
	uv_poll_start(&worker->poll, UV_READABLE, on_socket);
}

static void on_pause_over(uv_timer_t *timer)
{
	struct lth_pool *pool = timer->data;
	for (unsigned missing = (unsigned)pool->config->workers - lth_pool_count(pool, NULL, NULL); missing; missing--)
		spawn(pool);
}

/* Workers that leave do not count: their successors start at once, unless starting has kept failing. */
static void spawn_missing(struct lth_pool *pool)
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

/* The address-space limit holds the worker itself; resident memory is watched too, for what that limit cannot see. */
static void on_watch(uv_timer_t *timer)
{
	struct lth_pool *pool = timer->data;
	uint64_t limit = pool->config->worker_memory_bytes;
	for (struct lth_pool_worker *worker = pool->workers; limit && worker; worker = worker->next) {
		if (worker->state != BUSY || resident_bytes(worker->process.pid) <= limit)
			continue;
		worker->over_memory = true;
		kill_group(worker, SIGKILL);
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
	pool->kernels = lth_store_path(store, "kernels", "");
	if (!pool->kernels) {
		free(pool);
		return NULL;
	}
	uv_timer_init(loop, &pool->watch);
	uv_timer_init(loop, &pool->pause);
	pool->watch.data = pool->pause.data = pool;
	uv_timer_start(&pool->watch, on_watch, WATCH_MS, WATCH_MS);
	spawn_missing(pool);
	return pool;
}

/* --- the interface */
unsigned lth_pool_count(const struct lth_pool *pool, unsigned *out_idle, unsigned *out_busy)
{
	unsigned all = 0, idle = 0, busy = 0;
	for (const struct lth_pool_worker *worker = pool->workers; worker; worker = worker->next) {
		all += worker->state != LEAVING;
		idle += worker->state == IDLE;
		busy += worker->state == BUSY;
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

static json_t *request_of(const struct lth_pool_worker *worker, const struct lth_task *task)
{
	json_t *files = json_array();
	for (size_t i = 0; i < task->num_files; i++)
		json_array_append_new(files, json_pack("{s:s, s:s, s:b}", "name", task->files[i].name, "digest",
						       task->files[i].digest, "hashed", task->files[i].hashed));
	return json_pack("{s:s, s:s, s:O?, s:b, s:b, s:s, s:I, s:I, s:I, s:{s:s?, s:b}, s:o}", "job", task->job_id,
			 "kind", task->kind, "options", task->options, "model_is_json", task->model_is_json, "csv",
			 task->csv, "work_dir", worker->task_dir, "threads",
			 (json_int_t)worker->pool->config->worker_threads, "cpu_seconds", (json_int_t)task->cpu_seconds,
			 "left_ms", (json_int_t)task->left_ms, "model", "digest", task->payload.digest, "hashed",
			 task->payload.hashed, "files", files);
}

static bool send_task(struct lth_pool_worker *worker, const struct lth_task *task)
{
	enum { FIXED = 3 };
	int fds[LTH_WIRE_FDS_MAX];
	char text[128];
	bool ok = false;
	json_t *request = request_of(worker, task);
	char *body = request ? json_dumps(request, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
	int memfd = body ? lth_wire_memfd("lathe-request", body, strlen(body)) : -1;
	if (memfd >= 0 && task->num_files <= LTH_WIRE_FDS_MAX - FIXED) {
		fds[0] = memfd;
		fds[1] = worker->bundle_fd;
		fds[2] = task->payload.fd;
		for (size_t i = 0; i < task->num_files; i++)
			fds[FIXED + i] = task->files[i].fd;
		snprintf(text, sizeof(text), "{\"event\":\"job\",\"job\":\"%s\"}", task->job_id);
		ok = lth_wire_send(worker->socket, text, strlen(text), fds, (unsigned)(FIXED + task->num_files));
	}
	if (memfd >= 0)
		close(memfd);
	free(body);
	json_decref(request);
	return ok;
}

enum lth_code lth_pool_start(struct lth_pool *pool, struct lth_task *task, struct lth_diag *diag)
{
	struct lth_pool_worker *worker = pool->workers;
	while (worker && worker->state != IDLE)
		worker = worker->next;
	if (!worker)
		return lth_diag_fail(diag, LTH_BUSY, "pool", NULL, NULL, "no idle worker");
	worker->task = task;
	task->worker = worker;
	worker->bundle_fd = lth_store_anonymous_file(pool->store);
	int error = worker->bundle_fd < 0 ? errno : 0;
	if (asprintf(&worker->task_dir, "%s/%s", worker->work_dir, task->job_id) < 0)
		worker->task_dir = NULL;
	if (!error && (!worker->task_dir || mkdir(worker->task_dir, 0700) != 0))
		error = errno;
	if (error) {
		drop_task(worker);
		return lth_diag_fail(diag, error == ENOSPC ? LTH_DISK_FULL : LTH_IO_ERROR, "work folder", NULL, NULL,
				     "%s", strerror(error));
	}
	worker->stage[0] = 0;
	if (!send_task(worker, task)) { /* it is dying: its exit will be seen; this task has not begun */
		drop_task(worker);
		stop_worker(worker);
		return lth_diag_fail(diag, LTH_BUSY, "pool", NULL, NULL, "the worker is gone: %s", strerror(errno));
	}
	worker->state = BUSY;
	return LTH_OK;
}

void lth_pool_abandon(struct lth_pool *pool, struct lth_task *task)
{
	struct lth_pool_worker *worker = task->worker;
	if (!worker)
		return;
	drop_task(worker);
	stop_worker(worker);
	spawn_missing(pool);
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
			drop_task(worker);
		if (!worker->exited)
			stop_worker(worker);
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
