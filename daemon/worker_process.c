/* Workers as processes: starting, stopping, dying. See pool_internal.h. */
#include "daemon/pool_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORKER_FD = 3, HANDLES = 3 };

void lth_worker_kill(const struct lth_pool_worker *worker, int number)
{
	if (worker->process.pid > 1 && !worker->exited)
		kill(-worker->process.pid, number); /* a session of its own: the linker and measuring runs go too */
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
		lth_pool_fill(pool);
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
	lth_worker_kill(timer->data, SIGKILL);
}

void lth_worker_stop(struct lth_pool_worker *worker)
{
	worker->state = LTH_WORKER_LEAVING;
	lth_worker_kill(worker, SIGTERM);
	uv_timer_start(&worker->stop_timer, on_stop_timer, worker->pool->config->stop_grace_ms, 0);
}

void lth_worker_send_home(struct lth_pool_worker *worker)
{
	worker->state = LTH_WORKER_LEAVING;
	shutdown(worker->socket, SHUT_RDWR);
	uv_timer_start(&worker->stop_timer, on_stop_timer, worker->pool->config->stop_grace_ms, 0);
}

uint64_t lth_pool_resident_bytes(long pid)
{
	char path[48], text[128] = "";
	unsigned long long total = 0, resident = 0;
	snprintf(path, sizeof(path), "/proc/%ld/statm", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t size = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (size <= 0 || sscanf(text, "%llu %llu", &total, &resident) != 2)
		return 0;
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
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
	lth_worker_report(worker, &outcome);
}

static void on_exit_of_worker(uv_process_t *process, int64_t exit_status, int number)
{
	struct lth_pool_worker *worker = process->data;
	struct lth_pool *pool = worker->pool;
	char text[48];
	const char *stage = worker->state == LTH_WORKER_IDLE ? "idle" : worker->stage[0] ? worker->stage : "-";
	lth_worker_drain(worker);         /* a result or last words may still be there */
	kill(-process->pid, SIGKILL); /* children that outlived it */
	worker->exited = true;
	snprintf(text, sizeof(text), "%lld/%d", (long long)exit_status, number);
	lth_log_event(pool->log, worker->state == LTH_WORKER_LEAVING ? LTH_LOG_INFO : LTH_LOG_WARN,
		      worker->task ? worker->task->job_id : NULL, "worker-exit", "worker", worker->name, "status", text,
		      "stage", stage, NULL);
	if (worker->state == LTH_WORKER_STARTING)
		pool->failed_starts++;
	bool had_task = worker->task != NULL;
	worker->state = LTH_WORKER_LEAVING;
	close_handles(worker);
	if (had_task)
		report_death(worker, exit_status, number);
}

/* --- starting */
static int spawn_process(struct lth_pool_worker *worker, int child_end)
{
	const struct lth_pool *pool = worker->pool;
	char parent[24], memory[24], file_bytes[24], nice_value[24], fd[8];
	snprintf(fd, sizeof(fd), "%d", WORKER_FD);
	snprintf(parent, sizeof(parent), "%ld", (long)getpid());
	snprintf(memory, sizeof(memory), "%llu", (unsigned long long)pool->config->worker_memory_bytes);
	snprintf(file_bytes, sizeof(file_bytes), "%llu", (unsigned long long)pool->config->worker_file_bytes);
	snprintf(nice_value, sizeof(nice_value), "%llu", (unsigned long long)pool->config->worker_nice);
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
				    "--nice",
				    nice_value,
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
	/* a clean environment: nothing of the daemon's (service manager, proxies, preloads) reaches what compiles for
	 * others */
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

void lth_worker_spawn(struct lth_pool *pool)
{
	int ends[2];
	char path[64], *work_dir;
	struct lth_pool_worker *worker = calloc(1, sizeof(*worker));
	snprintf(path, sizeof(path), "w%llu-%08x", (unsigned long long)++pool->serial, pool->life);
	work_dir = lth_store_path(pool->store, "work", path);
	if (!worker || !work_dir || !lth_wire_pair(ends)) {
		free(worker);
		free(work_dir);
		pool->failed_starts++;
		return;
	}
	int folder_error = mkdir(work_dir, 0700) == 0 ? 0 : errno;
	*worker = (struct lth_pool_worker){
		.pool = pool, .socket = ends[0], .bundle_fd = -1, .next = pool->workers, .work_dir = work_dir,
		.folder_error = folder_error};
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
		lth_log_event(pool->log, LTH_LOG_ERROR, NULL, "worker-start-failed", "worker", worker->name, "program",
			      pool->config->worker_path, "error", uv_strerror(error), NULL);
		pool->failed_starts++;
		worker->state = LTH_WORKER_LEAVING;
		worker->exited = true;
		close_handles(worker); /* uv_spawn initialises its handle even when it fails */
		return;
	}
	worker->polling = true;
	uv_poll_start(&worker->poll, UV_READABLE, lth_worker_on_socket);
}
