/* What workers say and are told: the protocol of compiler/worker/worker.h from the daemon's side. See pool_internal.h. */
#include "daemon/pool_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- the end of a task */
void lth_worker_drop_task(struct lth_pool_worker *worker)
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

/* The task's folder goes where neither the worker's next task nor the end of the worker touches it: its files are
 * published beside either. NULL when it stays where it was. */
static char *move_task_dir(struct lth_pool_worker *worker, struct lth_diag *diag)
{
	char *apart = lth_store_path(worker->pool->store, "work", worker->task->job_id);
	if (apart && rename(worker->task_dir, apart) == 0)
		return apart;
	enum lth_code code = errno == ENOSPC || errno == EDQUOT ? LTH_DISK_FULL : LTH_IO_ERROR;
	lth_diag_fail(diag, apart ? code : LTH_OUT_OF_MEMORY, "work folder", NULL, NULL, "cannot move a result: %s",
		      strerror(errno));
	free(apart);
	return NULL;
}

void lth_worker_report(struct lth_pool_worker *worker, struct lth_outcome *outcome)
{
	struct lth_pool *pool = worker->pool;
	struct lth_task *task = worker->task;
	assert(task && task->worker == worker && worker->task_dir);
	snprintf(outcome->stage, sizeof(outcome->stage), "%s", worker->stage);
	outcome->bundle_fd = -1;
	if (outcome->diag.code == LTH_OK && (outcome->work_dir = move_task_dir(worker, &outcome->diag)) != NULL) {
		outcome->bundle_fd = worker->bundle_fd;
		worker->bundle_fd = -1;
		free(worker->task_dir);
		worker->task_dir = NULL;
	}
	lth_worker_drop_task(worker);
	pool->events.on_outcome(pool->events.context, task, outcome);
}

static bool shall_retire(const struct lth_pool_worker *worker)
{
	const struct lth_config *config = worker->pool->config;
	return worker->jobs_done >= config->worker_jobs ||
	       lth_pool_resident_bytes(worker->process.pid) > config->worker_grown_bytes;
}

static void retire(struct lth_pool_worker *worker)
{
	struct lth_pool *pool = worker->pool;
	pool->metrics->values[LTH_METRIC_WORKERS_RECYCLED]++;
	lth_log_event(pool->log, LTH_LOG_INFO, NULL, "worker-recycled", "worker", worker->name, NULL);
	lth_worker_send_home(worker);
	lth_pool_fill(pool);
}

/* --- messages from a worker */
static void on_ready(struct lth_pool_worker *worker, const json_t *message)
{
	struct lth_pool *pool = worker->pool;
	struct lth_wire_view view;
	const char *build = json_string_value(json_object_get(message, "build"));
	if (worker->state != LTH_WORKER_STARTING)
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
			lth_worker_stop(worker);
			return;
		}
		snprintf(pool->build, sizeof(pool->build), "%s", build);
	}
	char *layers = pool->layers ? json_dumps(pool->layers, JSON_COMPACT) : NULL;
	lth_log_event(pool->log, LTH_LOG_INFO, NULL, "worker-ready", "worker", worker->name, "layers",
		      layers ? layers : "-", NULL);
	free(layers);
	worker->state = LTH_WORKER_IDLE;
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
	if (worker->state != LTH_WORKER_BUSY)
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
	worker->state = retires ? LTH_WORKER_LEAVING : LTH_WORKER_IDLE; /* before the report, which looks for room */
	lth_worker_report(worker, &outcome);
	if (retires)
		retire(worker);
	else if (worker->state == LTH_WORKER_IDLE)
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
	else if (strcmp(event, "stage") == 0 && worker->state == LTH_WORKER_BUSY) {
		copy_text(worker->stage, sizeof(worker->stage), message, "stage");
		pool->events.on_stage(pool->events.context, worker->task, worker->stage);
	} else if (strcmp(event, "pass") == 0 && worker->state == LTH_WORKER_BUSY) {
		char pass[64];
		copy_text(pass, sizeof(pass), message, "pass");
		pool->events.on_pass(pool->events.context, worker->task, pass);
	} else if (strcmp(event, "done") == 0 || strcmp(event, "failed") == 0)
		on_end(worker, message, event[0] == 'd');
	else if (strcmp(event, "crash") == 0) {
		worker->last_signal = (int)json_integer_value(json_object_get(message, "signal"));
		worker->last_address_space =
			(uint64_t)json_integer_value(json_object_get(message, "address_space_bytes"));
	}
	json_decref(message);
}

void lth_worker_drain(struct lth_pool_worker *worker)
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

void lth_worker_on_socket(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	lth_worker_drain(poll->data);
}

/* --- telling it a task */
static json_t *request_of(const struct lth_pool_worker *worker, const struct lth_task *task)
{
	json_t *files = json_array();
	for (size_t i = 0; i < task->num_files; i++)
		json_array_append_new(files, json_pack("{s:s, s:s, s:b}", "name", task->files[i].name, "digest",
						       task->files[i].digest, "hashed", task->files[i].hashed));
	return json_pack("{s:s, s:s, s:O?, s:b, s:b, s:s, s:I, s:I, s:I, s:{s:s?, s:b}, s:o}", "job", task->job_id,
			 "kind", task->kind, "options", task->options, "model_is_json", task->model_is_json, "csv",
			 task->csv, "work_dir", worker->task_dir, "threads",
			 (json_int_t)task->threads, "cpu_seconds", (json_int_t)task->cpu_seconds, "left_ms",
			 (json_int_t)task->left_ms, "model", "digest", task->payload.digest, "hashed",
			 task->payload.hashed, "files", files);
}

bool lth_worker_send(struct lth_pool_worker *worker, const struct lth_task *task)
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
