/* Jobs and their states. See jobs.h. */
#include "daemon/jobs.h"
#include "daemon/publish.h"
#include "daemon/quarantine.h"
#include "runtime/base/io.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum { MAX_ATTEMPTS = 2, HISTORY = 1024, PENALTIES = 32 };
/* What a compile takes besides a multiple of its model: measured on the models of the tests, with room. */
static const uint64_t BASE_BYTES = 192u << 20, MODEL_FACTOR = 5;

struct lth_jobs {
	uv_loop_t *loop;
	const struct lth_config *config;
	struct lth_store *store;
	struct lth_answers *answers;
	struct lth_metrics *metrics;
	const struct lth_log *log;
	struct lth_pool *pool;
	struct lth_job *oldest, *newest;
	unsigned num_jobs, queued, running;
	uint64_t running_bytes; /* predicted */
	uint64_t mean_job_ns;   /* moving average, for Retry-After */
	uv_timer_t timer;       /* the earliest deadline */
	bool draining, closing;
	struct {
		uint64_t model_hash, peak_bytes;
	} history[HISTORY];     /* measured peaks by model, direct-mapped */
	char last_client[64];   /* whose job started last */
	struct {
		char client[64];
		unsigned score;
		uint64_t since_ns;
	} penalties[PENALTIES]; /* of clients whose jobs killed workers */
};

const char *lth_job_state_name(enum lth_job_state state)
{
	static const char *const names[LTH_NUM_STATE] = {"queued", "running", "running", "done", "failed"};
	return names[state];
}

const char *lth_job_kind_name(enum lth_job_kind kind)
{
	static const char *const names[LTH_NUM_JOB] = {"compile", "plan", "plan_check"};
	return names[kind];
}

bool lth_job_ended(const struct lth_job *job)
{
	return job->state >= LTH_STATE_DONE;
}

/* --- events and waiters */
static void add_event(struct lth_job *job, const char *name, const char *stage)
{
	if (job->num_events >= LTH_JOB_EVENTS)
		return;
	if (!job->events)
		job->events = calloc(LTH_JOB_EVENTS, sizeof(*job->events));
	json_t *data = json_pack("{s:s, s:s, s:f}", "job", job->id, "state", lth_job_state_name(job->state), "ms",
				 (double)(lth_now_ns() - job->created_ns) * 1e-6);
	if (stage && *stage)
		json_object_set_new(data, "stage", json_string(stage));
	char *text = data ? json_dumps(data, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
	json_decref(data);
	if (!job->events || !text) {
		free(text);
		return;
	}
	job->events[job->num_events++] = (struct lth_job_event){name, text};
	for (struct lth_waiter *waiter = job->waiters, *next; waiter; waiter = next) {
		next = waiter->next; /* a waiter may leave in its callback */
		if (waiter->on_event)
			waiter->on_event(waiter, job);
	}
}

void lth_jobs_wait(struct lth_jobs *jobs, struct lth_job *job, struct lth_waiter *waiter)
{
	(void)jobs;
	waiter->job = job;
	waiter->next = job->waiters;
	job->waiters = waiter;
}

static void unlink_waiter(struct lth_waiter *waiter)
{
	struct lth_waiter **link = &waiter->job->waiters;
	while (*link != waiter)
		link = &(*link)->next;
	*link = waiter->next;
	waiter->job = NULL;
}

/* --- life and death of the record */
static void set_deadline_timer(struct lth_jobs *jobs);

static void release_inputs(struct lth_job *job)
{
	for (size_t i = 0; i < job->task.num_files; i++)
		close(job->file_fds[i]);
	free(job->file_fds);
	free(job->file_names);
	job->file_fds = NULL;
	job->file_names = NULL;
	job->task.num_files = 0;
	if (job->payload_fd >= 0)
		close(job->payload_fd);
	job->payload_fd = -1;
}

static void destroy_job(struct lth_jobs *jobs, struct lth_job *job)
{
	if (job->next)
		job->next->previous = job->previous;
	else
		jobs->newest = job->previous;
	if (job->previous)
		job->previous->next = job->next;
	else
		jobs->oldest = job->next;
	jobs->num_jobs--;
	release_inputs(job);
	if (job->spec.payload_fd >= 0)
		close(job->spec.payload_fd);
	json_decref(job->spec.files);
	json_decref(job->spec.options);
	lth_answer_release(&job->answer);
	for (unsigned i = 0; i < job->num_events; i++)
		free(job->events[i].data);
	free(job->events);
	free(job);
}

/* Keeps the last `keep_jobs` ended jobs. */
static void forget_old(struct lth_jobs *jobs)
{
	for (struct lth_job *job = jobs->oldest, *next; job && jobs->num_jobs > jobs->config->keep_jobs; job = next) {
		next = job->next;
		if (!lth_job_ended(job) || job->waiters || job->saving)
			continue;
		if (job->durable)
			lth_job_forget(jobs->store, job);
		destroy_job(jobs, job);
	}
}

static void random_id(char out_id[LTH_JOB_ID])
{
	unsigned char bytes[10] = {0};
	ssize_t ignored = getrandom(bytes, sizeof(bytes), 0);
	(void)ignored;
	out_id[0] = 'j';
	for (int i = 0; i < 10; i++)
		snprintf(out_id + 1 + 2 * i, 3, "%02x", bytes[i]);
}

struct lth_job *lth_jobs_adopt(struct lth_jobs *jobs, const char *id)
{
	struct lth_job *job = calloc(1, sizeof(*job));
	struct timespec now;
	if (!job)
		return NULL;
	snprintf(job->id, sizeof(job->id), "%s", id);
	clock_gettime(CLOCK_REALTIME, &now);
	job->spec.payload_fd = job->payload_fd = -1;
	job->created_ns = lth_now_ns();
	job->created_unix_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
	job->previous = jobs->newest;
	if (jobs->newest)
		jobs->newest->next = job;
	else
		jobs->oldest = job;
	jobs->newest = job;
	jobs->num_jobs++;
	return job;
}

/* --- the end of a job */
static void count_states(struct lth_jobs *jobs)
{
	jobs->metrics->values[LTH_METRIC_JOBS_QUEUED] = jobs->queued;
	jobs->metrics->values[LTH_METRIC_JOBS_RUNNING] = jobs->running;
}

static void log_end(struct lth_jobs *jobs, const struct lth_job *job)
{
	char ms[32], line[4096];
	snprintf(ms, sizeof(ms), "%.3f", (double)(job->ended_ns - job->created_ns) * 1e-6);
	if (job->state == LTH_STATE_DONE)
		lth_log_event(jobs->log, LTH_LOG_INFO, job->id, "job-done", "ms", ms, "key", job->spec.key, "trace",
			      job->spec.trace, NULL);
	else
		lth_log_event(jobs->log, LTH_LOG_WARN, job->id, "job-failed", "ms", ms, "problem",
			      lth_diag_line(&job->diag, line, sizeof(line)), "trace", job->spec.trace, NULL);
}

static void wake_all(struct lth_jobs *jobs, struct lth_job *job)
{
	while (job->waiters) {
		struct lth_waiter *waiter = job->waiters;
		unlink_waiter(waiter);
		waiter->wake(waiter, job);
	}
	if (job->answer && job->answer->digest[0])
		lth_answer_release(&job->answer); /* the store and the cache have it */
	if (!jobs->closing)
		forget_old(jobs);
}

/* --- records on disk, written in the thread pool; one write of a job at a time, the newest state last */
struct save {
	uv_work_t request;
	struct lth_jobs *jobs;
	struct lth_job *job;
	char *text, id[LTH_JOB_ID];
	struct lth_diag diag;
};

static void save(struct lth_jobs *jobs, struct lth_job *job);

static void run_save(uv_work_t *request)
{
	struct save *save = request->data;
	(void)!lth_store_write_entry(save->jobs->store, "jobs", save->id, save->text, strlen(save->text), &save->diag);
}

static void tell_saved(struct lth_job *job, const struct lth_diag *diag)
{
	for (struct lth_waiter *waiter = job->waiters, *next; waiter; waiter = next) {
		next = waiter->next;
		if (waiter->on_saved)
			waiter->on_saved(waiter, job, diag);
	}
}

static void after_save(uv_work_t *request, int status)
{
	struct save *done = request->data;
	struct lth_jobs *jobs = done->jobs;
	struct lth_job *job = done->job;
	struct lth_diag diag = done->diag;
	(void)status;
	free(done->text);
	free(done);
	job->saving = false;
	if (job->save_again) {
		save(jobs, job);
		return;
	}
	if (diag.code != LTH_OK)
		lth_log_event(jobs->log, LTH_LOG_ERROR, job->id, "job-save-failed", "found", diag.found, NULL);
	if (lth_job_ended(job))
		wake_all(jobs, job);
	else
		tell_saved(job, &diag);
}

static void save(struct lth_jobs *jobs, struct lth_job *job)
{
	struct lth_diag diag = {0};
	job->save_again = job->saving;
	if (job->saving)
		return;
	struct save *save = calloc(1, sizeof(*save));
	char *text = lth_job_record(job);
	if (save && text) {
		*save = (struct save){.jobs = jobs, .job = job, .text = text};
		memcpy(save->id, job->id, sizeof(save->id));
		save->request.data = save;
		job->saving = uv_queue_work(jobs->loop, &save->request, run_save, after_save) == 0;
	}
	if (job->saving)
		return;
	free(save);
	free(text);
	lth_diag_fail(&diag, LTH_OUT_OF_MEMORY, job->id, NULL, NULL, "a job's record");
	if (lth_job_ended(job))
		wake_all(jobs, job);
	else
		tell_saved(job, &diag);
}

void lth_jobs_give_handle(struct lth_jobs *jobs, struct lth_job *job)
{
	job->handle_given = job->durable = true;
	save(jobs, job);
}

/* DONE when the job has an answer, else FAILED with its diag. Leaves the counts of the state it was in. Those who wait
 * hear of it once a durable job's record is on disk. */
static void finish(struct lth_jobs *jobs, struct lth_job *job)
{
	jobs->queued -= job->state == LTH_STATE_QUEUED;
	if (job->state == LTH_STATE_RUNNING || job->state == LTH_STATE_PUBLISHING) {
		jobs->running--;
		jobs->running_bytes -= job->predicted_bytes;
		uint64_t took = lth_now_ns() - job->started_ns;
		jobs->mean_job_ns = jobs->mean_job_ns ? (jobs->mean_job_ns * 7 + took) / 8 : took;
		lth_metrics_time(jobs->metrics, LTH_HISTOGRAM_JOB, took);
	}
	job->state = job->answer ? LTH_STATE_DONE : LTH_STATE_FAILED;
	job->ended_ns = lth_now_ns();
	jobs->metrics->values[job->answer			    ? LTH_METRIC_JOBS_DONE
			      : job->diag.code == LTH_CANCELLED ? LTH_METRIC_JOBS_CANCELLED
								: LTH_METRIC_JOBS_FAILED]++;
	count_states(jobs);
	release_inputs(job);
	if (job->answer)
		snprintf(job->answer_digest, sizeof(job->answer_digest), "%s",
			 job->answer->digest[0] ? job->answer->digest : job->answer->plan_digest);
	log_end(jobs, job);
	add_event(job, lth_job_state_name(job->state), NULL);
	if (!jobs->closing)
		set_deadline_timer(jobs);
	if (job->durable && !jobs->closing) /* a job cut off by the end of the daemon is for its next life */
		save(jobs, job);
	else
		wake_all(jobs, job);
}

void lth_jobs_cancel(struct lth_jobs *jobs, struct lth_job *job, const char *why)
{
	if (lth_job_ended(job) || job->cancelled)
		return;
	if (job->state == LTH_STATE_PUBLISHING) {
		job->cancelled = true; /* too late to stop: the disk is being written, the callback will come */
		return;
	}
	if (job->state == LTH_STATE_RUNNING)
		lth_pool_abandon(jobs->pool, &job->task);
	lth_diag_fail(&job->diag, LTH_CANCELLED, job->stage[0] ? job->stage : "queue", NULL, NULL, "%s", why);
	finish(jobs, job);
	lth_jobs_schedule(jobs);
}

void lth_jobs_leave(struct lth_jobs *jobs, struct lth_waiter *waiter)
{
	struct lth_job *job = waiter->job;
	if (!job)
		return;
	unlink_waiter(waiter);
	bool wanted = job->handle_given;
	for (const struct lth_waiter *other = job->waiters; other; other = other->next)
		wanted = wanted || !other->is_watcher;
	if (!wanted)
		lth_jobs_cancel(jobs, job, "every client that waited has gone");
}

/* --- deadlines */
static void on_deadline(uv_timer_t *timer)
{
	struct lth_jobs *jobs = timer->data;
	uint64_t now = lth_now_ns();
	for (struct lth_job *job = jobs->oldest, *next; job; job = next) {
		next = job->next;
		if (lth_job_ended(job) || job->state == LTH_STATE_PUBLISHING || job->deadline_ns > now)
			continue;
		const char *stage = job->state == LTH_STATE_QUEUED ? "queue" : job->stage[0] ? job->stage : "start";
		lth_diag_fail(&job->diag, LTH_DEADLINE, stage, NULL, "ask for a longer timeout_ms, or try when the queue is shorter",
			      "%llu ms gone in the stage '%s'", (unsigned long long)job->spec.timeout_ms, stage);
		jobs->metrics->values[LTH_METRIC_WORKERS_DEADLINE] += job->state == LTH_STATE_RUNNING;
		if (job->state == LTH_STATE_RUNNING)
			lth_pool_abandon(jobs->pool, &job->task);
		finish(jobs, job);
	}
	set_deadline_timer(jobs);
	lth_jobs_schedule(jobs);
}

static void set_deadline_timer(struct lth_jobs *jobs)
{
	uint64_t earliest = UINT64_MAX, now = lth_now_ns();
	for (const struct lth_job *job = jobs->oldest; job; job = job->next)
		if ((job->state == LTH_STATE_QUEUED || job->state == LTH_STATE_RUNNING) && job->deadline_ns < earliest)
			earliest = job->deadline_ns;
	if (earliest == UINT64_MAX)
		uv_timer_stop(&jobs->timer);
	else
		uv_timer_start(&jobs->timer, on_deadline, earliest > now ? (earliest - now) / 1000000 + 1 : 0, 0);
}

/* --- admission */
static uint64_t *history_of(struct lth_jobs *jobs, const char *model, uint64_t *out_hash)
{
	char part[17];
	snprintf(part, sizeof(part), "%.16s", model + 7);
	*out_hash = strtoull(part, NULL, 16) | 1;
	return &jobs->history[*out_hash % HISTORY].peak_bytes;
}

static uint64_t predict_bytes(struct lth_jobs *jobs, const struct lth_job_spec *spec)
{
	uint64_t limit = jobs->config->worker_memory_bytes, hash, predicted;
	const uint64_t *known = spec->kind == LTH_JOB_COMPILE ? history_of(jobs, spec->model, &hash) : NULL;
	if (known && *known && jobs->history[hash % HISTORY].model_hash == hash)
		predicted = *known + *known / 4;
	else if (__builtin_mul_overflow(spec->payload_bytes, MODEL_FACTOR, &predicted) ||
		 __builtin_add_overflow(predicted, BASE_BYTES, &predicted))
		predicted = UINT64_MAX;
	return limit && predicted > limit ? limit : predicted; /* a worker cannot take more than its limit */
}

static enum lth_code admit(struct lth_jobs *jobs, const struct lth_job_spec *spec, uint64_t predicted, struct lth_diag *diag)
{
	if (jobs->draining)
		return lth_diag_fail(diag, LTH_BUSY, "queue", NULL, "try again", "a daemon that is shutting down");
	if (predicted > jobs->config->memory_budget_bytes) {
		jobs->metrics->values[LTH_METRIC_JOBS_REFUSED]++;
		return lth_diag_fail(diag, LTH_LIMIT_EXCEEDED, "memory", NULL, "raise lathed's memory-budget-bytes",
				     "a job predicted to take %llu bytes, more than the budget of %llu",
				     (unsigned long long)predicted,
				     (unsigned long long)jobs->config->memory_budget_bytes);
	}
	if (jobs->queued >= jobs->config->queue_limit) {
		jobs->metrics->values[LTH_METRIC_JOBS_REFUSED]++;
		return lth_diag_fail(diag, LTH_BUSY, "queue", NULL, "try again after the time in Retry-After",
				     "%u jobs that wait, as many as are allowed", jobs->queued);
	}
	uint64_t most = jobs->config->client_jobs, own = 0;
	for (const struct lth_job *job = jobs->oldest; most && job; job = job->next)
		own += !lth_job_ended(job) && strcmp(job->spec.client, spec->client) == 0;
	if (most && own >= most) {
		jobs->metrics->values[LTH_METRIC_JOBS_REFUSED]++;
		return lth_diag_fail(diag, LTH_QUOTA, spec->client, NULL, "wait for some of them to end",
				     "%llu jobs of this client in flight, as many as are allowed", (unsigned long long)own);
	}
	return LTH_OK;
}

/* --- submitting */
static void drop_spec(struct lth_job_spec *spec)
{
	json_decref(spec->files);
	json_decref(spec->options);
	if (spec->payload_fd >= 0)
		close(spec->payload_fd);
	*spec = (struct lth_job_spec){.payload_fd = -1};
}

static struct lth_job *in_flight(struct lth_jobs *jobs, const char *key)
{
	for (struct lth_job *job = jobs->newest; *key && job; job = job->previous)
		if (!lth_job_ended(job) && !job->cancelled && strcmp(job->spec.key, key) == 0)
			return job;
	return NULL;
}

void lth_jobs_requeue(struct lth_jobs *jobs, struct lth_job *job)
{
	job->state = LTH_STATE_QUEUED;
	job->predicted_bytes = predict_bytes(jobs, &job->spec);
	if (job->predicted_bytes > jobs->config->memory_budget_bytes)
		job->predicted_bytes = jobs->config->memory_budget_bytes; /* accepted under a larger one: it runs alone */
	job->deadline_ns = lth_now_ns() + job->spec.timeout_ms * 1000000;
	jobs->queued++;
	count_states(jobs);
	add_event(job, "queued", NULL);
	set_deadline_timer(jobs);
}

enum lth_code lth_jobs_submit(struct lth_jobs *jobs, struct lth_job_spec *spec, struct lth_job **out_job, bool *out_joined,
			      struct lth_diag *diag)
{
	char id[LTH_JOB_ID];
	struct lth_job *job = in_flight(jobs, spec->key);
	if (job) {
		uint64_t deadline = lth_now_ns() + spec->timeout_ms * 1000000;
		if (deadline > job->deadline_ns) { /* the more patient client decides */
			job->deadline_ns = deadline;
			job->spec.timeout_ms = spec->timeout_ms;
			set_deadline_timer(jobs);
		}
		if (spec->priority > job->spec.priority)
			job->spec.priority = spec->priority;
		jobs->metrics->values[LTH_METRIC_JOBS_JOINED]++;
		drop_spec(spec);
		*out_job = job;
		*out_joined = true;
		return LTH_OK;
	}
	uint64_t predicted = predict_bytes(jobs, spec);
	enum lth_code code = admit(jobs, spec, predicted, diag);
	random_id(id);
	if (code == LTH_OK && !(job = lth_jobs_adopt(jobs, id)))
		code = lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "queue", NULL, NULL, "a job");
	if (code != LTH_OK) {
		drop_spec(spec);
		return code;
	}
	job->spec = *spec;
	*spec = (struct lth_job_spec){.payload_fd = -1};
	jobs->metrics->values[LTH_METRIC_JOBS_ACCEPTED]++;
	lth_jobs_requeue(jobs, job);
	*out_job = job;
	*out_joined = false;
	return LTH_OK;
}

/* --- running */
static enum lth_code open_inputs(struct lth_jobs *jobs, struct lth_job *job, struct lth_diag *diag)
{
	uint64_t size;
	const char *name;
	json_t *digest;
	size_t count = json_object_size(job->spec.files);
	job->file_fds = calloc(count + 1, sizeof(*job->file_fds));
	job->file_names = calloc(count + 1, sizeof(*job->file_names));
	if (!job->file_fds || !job->file_names)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "files", NULL, NULL, "%zu files", count);
	job->payload_fd = job->spec.payload_fd >= 0 ? dup(job->spec.payload_fd)
						    : lth_store_open_blob(jobs->store, job->spec.model, &size);
	if (job->payload_fd < 0)
		return lth_diag_fail(diag, LTH_MISSING_BLOB, job->spec.model, NULL, "PUT it to /v1/blobs again",
				     "no such blob any more");
	json_object_foreach(job->spec.files, name, digest) {
		int fd = lth_store_open_blob(jobs->store, json_string_value(digest), &size);
		if (fd < 0)
			return lth_diag_fail(diag, LTH_MISSING_BLOB, json_string_value(digest), NULL,
					     "PUT it to /v1/blobs again", "no such blob any more");
		job->file_fds[job->task.num_files] = fd;
		job->file_names[job->task.num_files++] = name;
	}
	return LTH_OK;
}

/* Hands a queued job to a worker. LTH_BUSY leaves it queued. */
static enum lth_code start(struct lth_jobs *jobs, struct lth_job *job, struct lth_diag *diag)
{
	enum lth_code code = open_inputs(jobs, job, diag);
	if (code != LTH_OK)
		return code;
	uint64_t now = lth_now_ns();
	job->task = (struct lth_task){
		.job_id = job->id,
		.owner = job,
		.kind = lth_job_kind_name(job->spec.kind),
		.options = job->spec.options,
		.payload_fd = job->payload_fd,
		.model_is_json = job->spec.model_is_json,
		.csv = job->spec.csv,
		.file_names = job->file_names,
		.file_fds = job->file_fds,
		.num_files = job->task.num_files,
		.cpu_seconds = job->spec.timeout_ms / 1000 * jobs->config->worker_threads + 1,
	};
	code = lth_pool_start(jobs->pool, &job->task, diag);
	if (code != LTH_OK)
		return code;
	job->state = LTH_STATE_RUNNING;
	job->attempts++;
	job->started_ns = now;
	job->stage[0] = 0;
	jobs->queued--;
	jobs->running++;
	jobs->running_bytes += job->predicted_bytes;
	count_states(jobs);
	snprintf(jobs->last_client, sizeof(jobs->last_client), "%s", job->spec.client);
	lth_metrics_time(jobs->metrics, LTH_HISTOGRAM_QUEUE, now - job->created_ns);
	lth_log_event(jobs->log, LTH_LOG_DEBUG, job->id, "job-started", "client", job->spec.client, NULL);
	add_event(job, "started", NULL);
	return LTH_OK;
}

/* --- penalties: a client whose jobs keep killing workers waits behind all others of its priority. The first is forgiven at
 * once, each further one after a while. */
static const uint64_t FORGIVEN_NS = 300000000000; /* five minutes */

static unsigned penalty_of(struct lth_jobs *jobs, const char *client)
{
	uint64_t now = lth_now_ns();
	for (int i = 0; i < PENALTIES; i++) {
		if (!jobs->penalties[i].score || strcmp(jobs->penalties[i].client, client) != 0)
			continue;
		uint64_t forgiven = (now - jobs->penalties[i].since_ns) / FORGIVEN_NS;
		return forgiven < jobs->penalties[i].score ? jobs->penalties[i].score - (unsigned)forgiven : 0;
	}
	return 0;
}

static bool keeps_crashing(struct lth_jobs *jobs, const char *client)
{
	return penalty_of(jobs, client) > 1;
}

static void punish(struct lth_jobs *jobs, const char *client)
{
	int slot = 0; /* the client's own, else the one that is the oldest */
	for (int i = 0; i < PENALTIES; i++) {
		if (jobs->penalties[i].score && strcmp(jobs->penalties[i].client, client) == 0) {
			slot = i;
			break;
		}
		if (jobs->penalties[i].since_ns < jobs->penalties[slot].since_ns)
			slot = i;
	}
	unsigned score = penalty_of(jobs, client) + 1;
	snprintf(jobs->penalties[slot].client, sizeof(jobs->penalties[slot].client), "%s", client);
	jobs->penalties[slot].score = score;
	jobs->penalties[slot].since_ns = lth_now_ns();
}

enum { MOST_RUNNING = 256 };

static unsigned list_running(const struct lth_jobs *jobs, const struct lth_job **out_list)
{
	unsigned count = 0;
	for (const struct lth_job *job = jobs->newest; job && count < MOST_RUNNING && count < jobs->running; job = job->previous)
		if (job->state == LTH_STATE_RUNNING || job->state == LTH_STATE_PUBLISHING)
			out_list[count++] = job;
	return count;
}

/* The next to run: highest priority; then the client with the fewest jobs running, not the one served last; then the
 * oldest. A job whose memory does not fit now holds back those behind it of no higher priority: it would starve. */
static struct lth_job *next_queued(struct lth_jobs *jobs)
{
	struct lth_job *best = NULL;
	const struct lth_job *running[MOST_RUNNING];
	unsigned best_load = 0, num_running = list_running(jobs, running);
	for (struct lth_job *job = jobs->oldest; job; job = job->next) {
		if (job->state != LTH_STATE_QUEUED)
			continue;
		unsigned load = (strcmp(job->spec.client, jobs->last_client) == 0) +
				(keeps_crashing(jobs, job->spec.client) ? 4 * MOST_RUNNING : 0);
		for (unsigned i = 0; i < num_running; i++)
			load += 2 * (strcmp(job->spec.client, running[i]->spec.client) == 0);
		if (!best || job->spec.priority > best->spec.priority ||
		    (job->spec.priority == best->spec.priority && load < best_load)) {
			best = job;
			best_load = load;
		}
	}
	if (best && jobs->running && best->predicted_bytes > jobs->config->memory_budget_bytes - jobs->running_bytes)
		return NULL;
	return best;
}

void lth_jobs_schedule(struct lth_jobs *jobs)
{
	struct lth_job *job;
	while (!jobs->closing && jobs->queued && lth_pool_has_room(jobs->pool) && (job = next_queued(jobs)) != NULL) {
		struct lth_diag diag = {0};
		enum lth_code code = start(jobs, job, &diag);
		if (code == LTH_BUSY) {
			release_inputs(job); /* that worker has just died: the next one will do */
			continue;
		}
		if (code != LTH_OK) {
			job->diag = diag;
			finish(jobs, job);
		}
	}
}

void lth_jobs_on_stage(struct lth_jobs *jobs, struct lth_task *task, const char *stage)
{
	struct lth_job *job = task->owner;
	(void)jobs;
	snprintf(job->stage, sizeof(job->stage), "%s", stage);
	add_event(job, "stage", stage);
}

struct published {
	struct lth_jobs *jobs;
	struct lth_job *job;
};

static void on_published(void *context, struct lth_answer *answer, const struct lth_diag *diag)
{
	struct published *published = context;
	struct lth_jobs *jobs = published->jobs;
	struct lth_job *job = published->job;
	free(published);
	job->answer = answer;
	job->diag = *diag;
	if (answer && answer->digest[0]) {
		uint64_t hash, *peak = history_of(jobs, job->spec.model, &hash);
		*peak = answer->peak_bytes;
		jobs->history[hash % HISTORY].model_hash = hash;
		lth_quarantine_release(jobs->store, job->spec.key);
		if (answer->cacheable)
			lth_answers_keep(jobs->answers, job->spec.key, answer);
	}
	jobs->metrics->values[LTH_METRIC_STORE_BYTES] = atomic_load(&jobs->store->bytes);
	finish(jobs, job);
	lth_jobs_schedule(jobs);
}

static void publish(struct lth_jobs *jobs, struct lth_job *job, struct lth_outcome *outcome)
{
	struct lth_publish publish = {
		.store = jobs->store,
		.bundle_fd = outcome->bundle_fd,
		.index_offset = outcome->index_offset,
		.index_bytes = outcome->index_bytes,
		.queue_ms = (double)(job->started_ns - job->created_ns) * 1e-6,
		.on_published = on_published,
	};
	struct published *published = calloc(1, sizeof(*published));
	memcpy(publish.key, job->spec.key, sizeof(publish.key));
	memcpy(publish.model, job->spec.model, sizeof(publish.model));
	publish.keep_plan = job->spec.kind != LTH_JOB_COMPILE && job->spec.model[0]; /* its body is a blob: it may outlive us */
	publish.context = published;
	job->state = LTH_STATE_PUBLISHING;
	if (published)
		*published = (struct published){jobs, job};
	if (published && lth_publish_begin(jobs->loop, &publish))
		return;
	free(published);
	close(outcome->bundle_fd);
	lth_diag_fail(&job->diag, LTH_OUT_OF_MEMORY, "publishing", NULL, NULL, "no memory to publish");
	finish(jobs, job);
}

void lth_jobs_on_outcome(struct lth_jobs *jobs, struct lth_task *task, struct lth_outcome *outcome)
{
	struct lth_job *job = task->owner;
	if (outcome->diag.code == LTH_OK) {
		publish(jobs, job, outcome);
		return;
	}
	if (outcome->crashed && job->attempts < MAX_ATTEMPTS && !jobs->draining) {
		jobs->metrics->values[LTH_METRIC_JOBS_RETRIED]++;
		jobs->running--;
		jobs->running_bytes -= job->predicted_bytes;
		jobs->queued++;
		job->state = LTH_STATE_QUEUED;
		release_inputs(job);
		count_states(jobs);
		add_event(job, "retry", outcome->stage);
		lth_jobs_schedule(jobs);
		return;
	}
	job->diag = outcome->diag;
	job->signal = outcome->signal;
	if (outcome->stage[0])
		snprintf(job->stage, sizeof(job->stage), "%s", outcome->stage);
	if (outcome->crashed && job->spec.kind == LTH_JOB_COMPILE && job->attempts >= MAX_ATTEMPTS) {
		jobs->metrics->values[LTH_METRIC_JOBS_QUARANTINED]++;
		punish(jobs, job->spec.client);
		lth_quarantine_add(jobs->loop, jobs->store, jobs->log, job);
	}
	finish(jobs, job);
	lth_jobs_schedule(jobs);
}

/* --- looking */
struct lth_job *lth_jobs_find(struct lth_jobs *jobs, const char *id)
{
	for (struct lth_job *job = jobs->newest; job; job = job->previous)
		if (strcmp(job->id, id) == 0)
			return job;
	return NULL;
}

struct lth_job *lth_jobs_newest(struct lth_jobs *jobs)
{
	return jobs->newest;
}

unsigned lth_jobs_retry_after(const struct lth_jobs *jobs)
{
	uint64_t workers = jobs->config->workers ? jobs->config->workers : 1;
	uint64_t seconds = jobs->mean_job_ns * (jobs->queued + 1) / workers / 1000000000;
	return seconds < 1 ? 1 : seconds > 60 ? 60 : (unsigned)seconds;
}

unsigned lth_jobs_in_flight(const struct lth_jobs *jobs, unsigned *out_queued)
{
	if (out_queued)
		*out_queued = jobs->queued;
	return jobs->queued + jobs->running;
}

bool lth_jobs_stuck(const struct lth_jobs *jobs)
{
	static const uint64_t LATE_NS = 60000000000;
	uint64_t now = lth_now_ns();
	for (const struct lth_job *job = jobs->newest; job; job = job->previous)
		if (!lth_job_ended(job) && now > job->deadline_ns && now - job->deadline_ns > LATE_NS)
			return true;
	return false;
}

json_t *lth_jobs_held(const struct lth_jobs *jobs)
{
	json_t *held = json_object();
	for (const struct lth_job *job = jobs->newest; held && job; job = job->previous) {
		const char *name;
		json_t *file;
		if (lth_job_ended(job))
			continue;
		json_object_set_new(held, job->spec.model, json_true());
		json_object_foreach(job->spec.files, name, file)
			json_object_set_new(held, json_string_value(file), json_true());
	}
	return held;
}

/* --- the whole */
struct lth_jobs *lth_jobs_create(uv_loop_t *loop, const struct lth_config *config, struct lth_store *store,
				 struct lth_answers *answers, struct lth_metrics *metrics, const struct lth_log *log)
{
	struct lth_jobs *jobs = calloc(1, sizeof(*jobs));
	if (!jobs)
		return NULL;
	jobs->loop = loop;
	jobs->config = config;
	jobs->store = store;
	jobs->answers = answers;
	jobs->metrics = metrics;
	jobs->log = log;
	uv_timer_init(loop, &jobs->timer);
	jobs->timer.data = jobs;
	return jobs;
}

void lth_jobs_attach(struct lth_jobs *jobs, struct lth_pool *pool)
{
	jobs->pool = pool;
}

void lth_jobs_drain(struct lth_jobs *jobs)
{
	jobs->draining = true;
}

void lth_jobs_close(struct lth_jobs *jobs)
{
	jobs->draining = jobs->closing = true;
	for (struct lth_job *job = jobs->oldest, *next; job; job = next) {
		next = job->next;
		lth_jobs_cancel(jobs, job, "the daemon shut down");
	}
	uv_close((uv_handle_t *)&jobs->timer, NULL);
}

void lth_jobs_destroy(struct lth_jobs **jobs)
{
	if (!*jobs)
		return;
	while ((*jobs)->oldest)
		destroy_job(*jobs, (*jobs)->oldest);
	free(*jobs);
	*jobs = NULL;
}
