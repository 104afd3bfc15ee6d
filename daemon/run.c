/* Jobs from the queue through a worker into the store. See jobs_internal.h. */
#include "daemon/jobs_internal.h"
#include "daemon/publish.h"
#include "daemon/quarantine.h"
#include "runtime/base/io.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_ATTEMPTS = 2 };

static enum lth_code open_inputs(struct lth_jobs *jobs, struct lth_job *job, struct lth_diag *diag)
{
	uint64_t size;
	const char *name;
	json_t *digest;
	size_t count = json_object_size(job->spec.files);
	job->files = calloc(count + 1, sizeof(*job->files));
	if (!job->files)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "files", NULL, NULL, "%zu files", count);
	job->payload_fd = job->spec.payload_fd >= 0 ? dup(job->spec.payload_fd)
						    : lth_store_open_blob(jobs->store, job->spec.model, &size);
	if (job->payload_fd < 0)
		return lth_diag_fail(diag, LTH_MISSING_BLOB, job->spec.model, NULL, "PUT it to /v1/blobs again",
				     "no such blob any more");
	json_object_foreach(job->spec.files, name, digest) {
		const char *text = json_string_value(digest);
		int fd = lth_store_open_blob(jobs->store, text, &size);
		if (fd < 0)
			return lth_diag_fail(diag, LTH_MISSING_BLOB, text, NULL, "PUT it to /v1/blobs again",
					     "no such blob any more");
		job->files[job->task.num_files++] =
			(struct lth_task_blob){text, lth_store_is_verified(jobs->store, text), fd, name};
	}
	return LTH_OK;
}

/* A job that is alone may use the whole machine. More than some threads do little for one compile but take memory. */
static uint64_t threads_for_one(const struct lth_jobs *jobs)
{
	enum { MOST_THREADS = 8 };
	uint64_t workers = jobs->config->workers, there = (uint64_t)jobs->running + jobs->queued;
	if (jobs->config->worker_threads)
		return jobs->config->worker_threads;
	there = there < workers ? there : workers;
	uint64_t share = jobs->config->num_cpus / (there ? there : 1);
	return share < 1 ? 1 : share > MOST_THREADS ? MOST_THREADS : share;
}

/* Hands a queued job to a worker. LTH_BUSY leaves it queued. */
static enum lth_code start(struct lth_jobs *jobs, struct lth_job *job, struct lth_diag *diag)
{
	enum lth_code code = open_inputs(jobs, job, diag);
	if (code != LTH_OK)
		return code;
	uint64_t now = lth_now_ns(), threads = threads_for_one(jobs);
	job->task = (struct lth_task){
		.job_id = job->id,
		.owner = job,
		.kind = lth_job_kind_name(job->spec.kind),
		.options = job->spec.options,
		.payload = {.fd = job->payload_fd},
		.model_is_json = job->spec.model_is_json,
		.csv = job->spec.csv,
		.files = job->files,
		.num_files = job->task.num_files,
		.left_ms = job->deadline_ns > now ? (job->deadline_ns - now) / 1000000 + 1 : 0,
		.threads = threads,
		.cpu_seconds = job->spec.timeout_ms / 1000 * threads + 1,
	};
	if (job->spec.kind == LTH_JOB_COMPILE) {
		job->task.payload.digest = job->spec.model;
		job->task.payload.hashed = lth_store_is_verified(jobs->store, job->spec.model);
	}
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
	lth_jobs_count(jobs);
	snprintf(jobs->last_client, sizeof(jobs->last_client), "%s", job->spec.client);
	lth_metrics_time(jobs->metrics, LTH_HISTOGRAM_QUEUE, now - job->created_ns);
	lth_log_event(jobs->log, LTH_LOG_DEBUG, job->id, "job-started", "client", job->spec.client, NULL);
	lth_jobs_add_event(job, "started", NULL, NULL);
	return LTH_OK;
}

void lth_jobs_schedule(struct lth_jobs *jobs)
{
	struct lth_job *job;
	while (!jobs->closing && jobs->queued && lth_pool_has_room(jobs->pool) && (job = lth_jobs_next(jobs)) != NULL) {
		struct lth_diag diag = {0};
		enum lth_code code = start(jobs, job, &diag);
		if (code == LTH_BUSY) {
			lth_jobs_release_inputs(job); /* that worker has just died: the next one will do */
			continue;
		}
		if (code != LTH_OK) {
			job->diag = diag;
			lth_jobs_finish(jobs, job);
		}
	}
}

void lth_jobs_on_stage(struct lth_jobs *jobs, struct lth_task *task, const char *stage)
{
	struct lth_job *job = task->owner;
	(void)jobs;
	snprintf(job->stage, sizeof(job->stage), "%s", stage);
	lth_jobs_add_event(job, "stage", stage, NULL);
}

void lth_jobs_on_pass(struct lth_task *task, const char *pass)
{
	struct lth_job *job = task->owner;
	lth_jobs_add_event(job, "pass", job->stage, pass);
}

static void end(struct lth_jobs *jobs, struct lth_job *job)
{
	lth_jobs_finish(jobs, job);
	lth_jobs_schedule(jobs);
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
		lth_jobs_note_peak(jobs, job->spec.model, answer->peak_bytes);
		lth_quarantine_release(jobs->store, job->spec.key);
		if (answer->cacheable)
			lth_answers_keep(jobs->answers, job->spec.key, answer);
	}
	jobs->metrics->values[LTH_METRIC_STORE_BYTES] = atomic_load(&jobs->store->bytes);
	end(jobs, job);
}

static void publish(struct lth_jobs *jobs, struct lth_job *job, struct lth_outcome *outcome)
{
	struct lth_publish publish = {
		.store = jobs->store,
		.bundle_fd = outcome->bundle_fd,
		.work_dir = outcome->work_dir,
		.index_offset = outcome->index_offset,
		.index_bytes = outcome->index_bytes,
		.queue_ms = (double)(job->started_ns - job->created_ns) * 1e-6,
		.on_published = on_published,
	};
	struct published *published = calloc(1, sizeof(*published));
	memcpy(publish.key, job->spec.key, sizeof(publish.key));
	memcpy(publish.model, job->spec.model, sizeof(publish.model));
	publish.keep_plan =
		job->spec.kind != LTH_JOB_COMPILE && job->spec.model[0]; /* its body is a blob: it may outlive us */
	publish.context = published;
	job->state = LTH_STATE_PUBLISHING;
	if (published)
		*published = (struct published){jobs, job};
	if (published && lth_publish_begin(jobs->loop, &publish))
		return;
	free(published);
	close(outcome->bundle_fd);
	lth_store_remove_tree(outcome->work_dir);
	free(outcome->work_dir);
	lth_diag_fail(&job->diag, LTH_OUT_OF_MEMORY, "publishing", NULL, NULL, "no memory to publish");
	lth_jobs_finish(jobs, job);
}

void lth_jobs_on_outcome(struct lth_jobs *jobs, struct lth_task *task, struct lth_outcome *outcome)
{
	struct lth_job *job = task->owner;
	if (outcome->diag.code == LTH_OK) {
		publish(jobs, job, outcome);
		return;
	}
	if (outcome->crashed && job->attempts < MAX_ATTEMPTS) {
		jobs->metrics->values[LTH_METRIC_JOBS_RETRIED]++;
		jobs->running--;
		jobs->running_bytes -= job->predicted_bytes;
		jobs->queued++;
		job->state = LTH_STATE_QUEUED;
		lth_jobs_release_inputs(job);
		lth_jobs_count(jobs);
		lth_jobs_add_event(job, "retry", outcome->stage, NULL);
		lth_jobs_schedule(jobs);
		return;
	}
	job->diag = outcome->diag;
	job->signal = outcome->signal;
	if (outcome->stage[0])
		snprintf(job->stage, sizeof(job->stage), "%s", outcome->stage);
	if (outcome->crashed && job->spec.kind == LTH_JOB_COMPILE && job->attempts >= MAX_ATTEMPTS) {
		jobs->metrics->values[LTH_METRIC_JOBS_QUARANTINED]++;
		lth_jobs_punish(jobs, job->spec.client);
		job->state = LTH_STATE_PUBLISHING; /* whoever sends it again after its answer is answered from there */
		lth_quarantine_add(jobs, job, end);
		return;
	}
	end(jobs, job);
}
