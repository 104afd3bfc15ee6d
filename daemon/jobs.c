/* Jobs: records, those who wait for them, deadlines, ends. See jobs.h and jobs_internal.h. */
#include "daemon/jobs_internal.h"
#include "runtime/base/io.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

const char *lth_job_state_name(enum lth_job_state state)
{
	static const char *const names[LTH_NUM_STATE] = {"queued", "running", "running", "running", "done", "failed"};
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
void lth_jobs_add_event(struct lth_job *job, const char *name, const char *stage, const char *pass)
{
	unsigned most = lth_job_ended(job) ? LTH_JOB_EVENTS : LTH_JOB_EVENTS - 1; /* the last is for the end */
	if (job->num_events >= most)
		return;
	if (!job->events)
		job->events = calloc(LTH_JOB_EVENTS, sizeof(*job->events));
	json_t *data = json_pack("{s:s, s:s, s:f}", "job", job->id, "state", lth_job_state_name(job->state), "ms",
				 (double)(lth_now_ns() - job->created_ns) * 1e-6);
	if (stage && *stage)
		json_object_set_new(data, "stage", json_string(stage));
	if (pass)
		json_object_set_new(data, "pass", json_string(pass));
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
void lth_jobs_release_inputs(struct lth_job *job)
{
	for (size_t i = 0; i < job->task.num_files; i++)
		close(job->files[i].fd);
	free(job->files);
	job->files = NULL;
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
	lth_jobs_release_inputs(job);
	if (job->spec.payload_fd >= 0)
		close(job->spec.payload_fd);
	json_decref(job->spec.files);
	json_decref(job->spec.options);
	json_decref(job->holders);
	json_decref(job->recorded);
	json_decref(job->leavers);
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
void lth_jobs_count(struct lth_jobs *jobs)
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

/* Tells those who wait, and forgets the oldest jobs. */
static void wake(struct lth_jobs *jobs, struct lth_job *job)
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

enum lth_job_state lth_job_outcome(const struct lth_job *job)
{
	return job->answer ? LTH_STATE_DONE : LTH_STATE_FAILED;
}

void lth_jobs_settle(struct lth_jobs *jobs, struct lth_job *job)
{
	job->state = lth_job_outcome(job);
	jobs->ending--;
	jobs->metrics->values[job->answer                       ? LTH_METRIC_JOBS_DONE
			      : job->diag.code == LTH_CANCELLED ? LTH_METRIC_JOBS_CANCELLED
								: LTH_METRIC_JOBS_FAILED]++;
	log_end(jobs, job);
	if (!job->durable || !jobs->closing)
		lth_jobs_add_event(job, lth_job_state_name(job->state), NULL, NULL);
	wake(jobs, job);
}

void lth_jobs_finish(struct lth_jobs *jobs, struct lth_job *job)
{
	jobs->queued -= job->state == LTH_STATE_QUEUED;
	if (job->state == LTH_STATE_RUNNING || job->state == LTH_STATE_PUBLISHING) {
		jobs->running--;
		jobs->running_bytes -= job->predicted_bytes;
		uint64_t took = lth_now_ns() - job->started_ns;
		jobs->mean_job_ns = jobs->mean_job_ns ? (jobs->mean_job_ns * 7 + took) / 8 : took;
		lth_metrics_time(jobs->metrics, LTH_HISTOGRAM_JOB, took);
	}
	job->state = LTH_STATE_ENDING;
	job->ended_ns = lth_now_ns();
	jobs->ending++;
	lth_jobs_count(jobs);
	lth_jobs_release_inputs(job);
	if (job->answer)
		snprintf(job->answer_digest, sizeof(job->answer_digest), "%s",
			 job->answer->digest[0] ? job->answer->digest : job->answer->plan_digest);
	if (!jobs->closing)
		lth_jobs_set_timer(jobs);
	if (job->durable && !jobs->closing) /* a job cut off by the end of the daemon is for its next life */
		lth_job_save(jobs, job);
	else
		lth_jobs_settle(jobs, job);
}

static void cut(struct lth_jobs *jobs, struct lth_job *job, enum lth_code code, const char *advice, const char *why)
{
	if (job->state >= LTH_STATE_ENDING || job->cancelled)
		return;
	if (job->state == LTH_STATE_PUBLISHING) {
		job->cancelled = true; /* too late to stop: the disk is being written, the callback will come */
		return;
	}
	if (job->state == LTH_STATE_RUNNING)
		lth_pool_abandon(jobs->pool, &job->task);
	lth_diag_fail(&job->diag, code, job->stage[0] ? job->stage : "queue", NULL, advice, "%s", why);
	lth_jobs_finish(jobs, job);
	lth_jobs_schedule(jobs);
}

void lth_jobs_cancel(struct lth_jobs *jobs, struct lth_job *job, const char *why)
{
	cut(jobs, job, LTH_CANCELLED, NULL, why);
}

void lth_jobs_leave(struct lth_jobs *jobs, struct lth_waiter *waiter)
{
	struct lth_job *job = waiter->job;
	if (!job)
		return;
	unlink_waiter(waiter);
	bool wanted = json_array_size(job->holders) > 0;
	for (const struct lth_waiter *other = job->waiters; other; other = other->next)
		wanted = wanted || !other->is_watcher;
	if (!wanted)
		lth_jobs_cancel(jobs, job, "every client that waited has gone");
}

/* --- deadlines */
void lth_job_tell_deadline(const struct lth_job *job, uint64_t timeout_ms, struct lth_diag *diag)
{
	const char *stage = job->state == LTH_STATE_QUEUED ? "queue" : job->stage[0] ? job->stage : "start";
	lth_diag_fail(diag, LTH_DEADLINE, stage, NULL, "ask for a longer timeout_ms, or try when the queue is shorter",
		      "%llu ms gone in the stage '%s'", (unsigned long long)timeout_ms, stage);
}

static void on_deadline(uv_timer_t *timer)
{
	struct lth_jobs *jobs = timer->data;
	uint64_t now = lth_now_ns();
	for (struct lth_job *job = jobs->oldest, *next; job; job = next) {
		next = job->next;
		if (job->state >= LTH_STATE_PUBLISHING || job->deadline_ns > now)
			continue;
		lth_job_tell_deadline(job, job->spec.timeout_ms, &job->diag);
		jobs->metrics->values[LTH_METRIC_WORKERS_DEADLINE] += job->state == LTH_STATE_RUNNING;
		if (job->state == LTH_STATE_RUNNING)
			lth_pool_abandon(jobs->pool, &job->task);
		lth_jobs_finish(jobs, job);
	}
	lth_jobs_set_timer(jobs);
	lth_jobs_schedule(jobs);
}

void lth_jobs_set_timer(struct lth_jobs *jobs)
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
		if (job->state < LTH_STATE_ENDING && !job->cancelled && strcmp(job->spec.key, key) == 0)
			return job;
	return NULL;
}

void lth_jobs_requeue(struct lth_jobs *jobs, struct lth_job *job)
{
	job->state = LTH_STATE_QUEUED;
	job->predicted_bytes = lth_jobs_predict(jobs, &job->spec);
	if (job->predicted_bytes > jobs->config->memory_budget_bytes)
		job->predicted_bytes =
			jobs->config->memory_budget_bytes; /* accepted under a larger one: it runs alone */
	job->deadline_ns = lth_now_ns() + job->spec.timeout_ms * 1000000;
	jobs->queued++;
	lth_jobs_count(jobs);
	lth_jobs_add_event(job, "queued", NULL, NULL);
	lth_jobs_set_timer(jobs);
}

enum lth_code lth_jobs_take_place(struct lth_jobs *jobs, const struct lth_job_spec *spec, struct lth_place *place,
				  struct lth_diag *diag)
{
	if (in_flight(jobs, spec->key))
		return LTH_OK;
	enum lth_code code = lth_jobs_admit(jobs, spec, lth_jobs_predict(jobs, spec), diag);
	if (code != LTH_OK)
		return code;
	*place = (struct lth_place){.next = jobs->places, .taken = true};
	memcpy(place->client, spec->client, sizeof(place->client));
	jobs->places = place;
	jobs->num_places++;
	return LTH_OK;
}

void lth_jobs_leave_place(struct lth_jobs *jobs, struct lth_place *place)
{
	struct lth_place **link = &jobs->places;
	if (!place->taken)
		return;
	while (*link != place)
		link = &(*link)->next;
	*link = place->next;
	place->taken = false;
	jobs->num_places--;
}

enum lth_code lth_jobs_submit(struct lth_jobs *jobs, struct lth_job_spec *spec, struct lth_job **out_job,
			      bool *out_joined, struct lth_diag *diag)
{
	char id[LTH_JOB_ID];
	struct lth_job *job = in_flight(jobs, spec->key);
	if (job) {
		uint64_t deadline = lth_now_ns() + spec->timeout_ms * 1000000;
		if (deadline > job->deadline_ns) { /* the more patient client decides */
			job->deadline_ns = deadline;
			job->spec.timeout_ms = spec->timeout_ms;
			lth_jobs_set_timer(jobs);
		}
		if (spec->priority > job->spec.priority)
			job->spec.priority = spec->priority;
		jobs->metrics->values[LTH_METRIC_JOBS_JOINED]++;
		drop_spec(spec);
		*out_job = job;
		*out_joined = true;
		return LTH_OK;
	}
	uint64_t predicted = lth_jobs_predict(jobs, spec);
	enum lth_code code = lth_jobs_admit(jobs, spec, predicted, diag);
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
	return jobs->queued + jobs->running + jobs->ending;
}

uint64_t lth_jobs_running_bytes(const struct lth_jobs *jobs)
{
	return jobs->running_bytes;
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
		cut(jobs, job, LTH_BUSY,
		    job->durable ? "ask for the job again: it goes on when the daemon does" : "try again",
		    "a daemon that shuts down");
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
