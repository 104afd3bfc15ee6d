/* Durable jobs: one JSON file a job in jobs/, named by its id. See jobs.h. A job whose handle is given out is
 * written before it is acknowledged and again when it ends; start-up reads all of them back. */
#include "daemon/jobs_internal.h"
#include "runtime/base/io.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

static json_t *diag_json(const struct lth_diag *diag)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s}", "slug", lth_code_slug(diag->code), "place", diag->place, "found",
			 diag->found, "expected", diag->expected, "advice", diag->advice);
}

static json_t *record_json(const struct lth_job *job)
{
	const struct lth_job_spec *spec = &job->spec;
	enum lth_job_state state = job->state; /* an end is written down before it is one */
	if (state == LTH_STATE_ENDING)
		state = lth_job_outcome(job);
	json_t *record = json_pack(
		"{s:s, s:s, s:s, s:I, s:s, s:s, s:b, s:b, s:O?, s:O?, s:I, s:I, s:i, s:s, s:s, s:s, s:i, s:O?, s:O?}",
		"id", job->id,
		"kind", lth_job_kind_name(spec->kind), "state", lth_job_state_name(state), "created_unix_ms",
		(json_int_t)job->created_unix_ms, "key", spec->key, "model", spec->model, "model_is_json",
		spec->model_is_json, "csv", spec->csv, "files", spec->files, "options", spec->options, "payload_bytes",
		(json_int_t)spec->payload_bytes, "timeout_ms", (json_int_t)spec->timeout_ms, "priority", spec->priority,
		"client", spec->client, "trace", spec->trace, "result", job->answer_digest, "attempts",
		(int)job->attempts, "holders", job->holders, "leavers", job->leavers);
	if (state == LTH_STATE_DONE || state == LTH_STATE_FAILED)
		json_object_set_new(record, "ms", json_real((double)(job->ended_ns - job->created_ns) * 1e-6));
	if (state == LTH_STATE_FAILED) {
		json_object_set_new(record, "problem", diag_json(&job->diag));
		json_object_set_new(record, "stage", json_string(job->stage));
		json_object_set_new(record, "signal", json_integer(job->signal));
	}
	return record;
}

static char *record_text(const struct lth_job *job)
{
	json_t *record = record_json(job);
	char *text = record ? json_dumps(record, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
	json_decref(record);
	return text;
}

void lth_job_forget(struct lth_store *store, const struct lth_job *job)
{
	lth_store_remove_entry(store, "jobs", job->id);
}

/* --- writing, in the thread pool; one write of a job at a time, the newest state last */
struct save {
	uv_work_t request;
	struct lth_jobs *jobs;
	struct lth_job *job;
	char *text, id[LTH_JOB_ID];
	json_t *holders; /* that it names */
	bool is_cancel;
	struct lth_diag diag;
};

static void run_save(uv_work_t *request)
{
	struct save *save = request->data;
	enum lth_code code = lth_store_write_entry(save->jobs->store, "jobs", save->id, save->text, strlen(save->text),
						   &save->diag);
	if (code != LTH_OK && save->is_cancel)
		lth_store_remove_entry(save->jobs->store, "jobs", save->id); /* rather none than one that runs again */
}

static void free_save(struct save *save)
{
	json_decref(save->holders);
	free(save->text);
	free(save);
}

static void after_writing(struct lth_jobs *jobs, struct lth_job *job, const struct lth_diag *diag)
{
	if (diag->code != LTH_OK) {
		lth_log_event(jobs->log, LTH_LOG_ERROR, job->id, "job-save-failed", "found", diag->found, NULL);
		lth_job_restore_holders(job);
	}
	if (job->state == LTH_STATE_ENDING) {
		lth_jobs_settle(jobs, job);
		return;
	}
	/* the last one that leaves ends the job, and then nobody waits for it any more */
	for (struct lth_waiter *waiter = job->waiters, *next; waiter && waiter->job; waiter = next) {
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
	if (diag.code == LTH_OK) {
		json_decref(job->recorded);
		job->recorded = json_incref(done->holders);
	}
	free_save(done);
	job->saving = false;
	if (job->save_again && !lth_job_ended(job)) /* one that the end of the daemon cut off is for its next life */
		lth_job_save(jobs, job);
	else
		after_writing(jobs, job, &diag);
}

void lth_job_save(struct lth_jobs *jobs, struct lth_job *job)
{
	struct lth_diag diag = {0};
	job->save_again = job->saving;
	if (job->saving)
		return;
	struct save *save = calloc(1, sizeof(*save));
	if (save) {
		*save = (struct save){.jobs = jobs,
				      .job = job,
				      .text = record_text(job),
				      .holders = json_copy(job->holders),
				      .is_cancel = job->state == LTH_STATE_ENDING && job->diag.code == LTH_CANCELLED};
		memcpy(save->id, job->id, sizeof(save->id));
		save->request.data = save;
		job->saving = save->text && save->holders &&
			      uv_queue_work(jobs->loop, &save->request, run_save, after_save) == 0;
		if (job->saving)
			return;
		free_save(save);
	}
	lth_diag_fail(&diag, LTH_OUT_OF_MEMORY, job->id, NULL, NULL, "a job's record");
	after_writing(jobs, job, &diag);
}

/* --- reading back */
static void copy_text(char *out, size_t size, const json_t *record, const char *key)
{
	const char *text = json_string_value(json_object_get(record, key));
	snprintf(out, size, "%s", text ? text : "");
}

static void read_problem(const json_t *problem, struct lth_diag *diag)
{
	const char *slug = json_string_value(json_object_get(problem, "slug"));
	enum lth_code code = slug ? lth_code_by_slug(slug) : LTH_NUM_CODES;
	diag->code = code == LTH_NUM_CODES || code == LTH_OK ? LTH_INTERNAL : code;
	copy_text(diag->place, sizeof(diag->place), problem, "place");
	copy_text(diag->found, sizeof(diag->found), problem, "found");
	copy_text(diag->expected, sizeof(diag->expected), problem, "expected");
	copy_text(diag->advice, sizeof(diag->advice), problem, "advice");
}

static bool read_spec(const json_t *record, struct lth_job_spec *spec)
{
	char kind[16];
	copy_text(kind, sizeof(kind), record, "kind");
	copy_text(spec->key, sizeof(spec->key), record, "key");
	copy_text(spec->model, sizeof(spec->model), record, "model");
	copy_text(spec->client, sizeof(spec->client), record, "client");
	copy_text(spec->trace, sizeof(spec->trace), record, "trace");
	spec->model_is_json = json_is_true(json_object_get(record, "model_is_json"));
	spec->csv = json_is_true(json_object_get(record, "csv"));
	spec->payload_bytes = (uint64_t)json_integer_value(json_object_get(record, "payload_bytes"));
	spec->timeout_ms = (uint64_t)json_integer_value(json_object_get(record, "timeout_ms"));
	spec->priority = (int)json_integer_value(json_object_get(record, "priority"));
	for (int i = 0; i < LTH_NUM_JOB; i++)
		if (strcmp(lth_job_kind_name((enum lth_job_kind)i), kind) == 0) {
			spec->kind = (enum lth_job_kind)i;
			spec->files = json_is_object(json_object_get(record, "files"))
					      ? json_incref(json_object_get(record, "files"))
					      : NULL;
			spec->options = json_is_object(json_object_get(record, "options"))
						? json_incref(json_object_get(record, "options"))
						: json_object();
			return lth_digest_valid(spec->model);
		}
	return false;
}

/* A list of clients; NULL when there is none. */
static json_t *read_names(const json_t *record, const char *key)
{
	size_t index;
	json_t *list = json_object_get(record, key), *name;
	bool good = json_is_array(list);
	json_array_foreach(list, index, name)
		good = good && json_is_string(name);
	return good ? json_incref(list) : NULL;
}

static void read_holders(const json_t *record, struct lth_job *job)
{
	job->leavers = read_names(record, "leavers");
	job->holders = read_names(record, "holders");
	if (!job->holders)
		lth_job_add_holder(job, job->spec.client);
	job->recorded = json_copy(job->holders);
	job->durable = true;
	if (lth_job_ended(job) || json_array_size(job->holders))
		return;
	job->state = LTH_STATE_FAILED; /* those who waited went with the daemon */
	lth_diag_fail(&job->diag, LTH_CANCELLED, "queue", NULL, NULL, "every client that waited has gone");
}

static bool adopt_record(struct lth_jobs *jobs, const json_t *record, const char *id)
{
	char state[16];
	struct lth_job *job = lth_jobs_adopt(jobs, id);
	if (!job)
		return false;
	copy_text(state, sizeof(state), record, "state");
	job->created_unix_ms = json_integer_value(json_object_get(record, "created_unix_ms"));
	copy_text(job->answer_digest, sizeof(job->answer_digest), record, "result");
	bool good = read_spec(record, &job->spec);
	if (strcmp(state, "done") == 0) {
		job->state = LTH_STATE_DONE;
	} else if (strcmp(state, "failed") == 0 || !good) {
		job->state = LTH_STATE_FAILED;
		read_problem(json_object_get(record, "problem"), &job->diag);
		copy_text(job->stage, sizeof(job->stage), record, "stage");
		job->signal = (int)json_integer_value(json_object_get(record, "signal"));
	}
	read_holders(record, job);
	if (!lth_job_ended(job)) {
		lth_jobs_requeue(jobs, job); /* whatever killed its worker may have been the end of the daemon */
		return true;
	}
	job->attempts = (unsigned)json_integer_value(json_object_get(record, "attempts"));
	double ms = json_number_value(json_object_get(record, "ms"));
	job->ended_ns = job->created_ns + (ms > 0 && ms < 1e12 ? (uint64_t)(ms * 1e6) : 0);
	lth_jobs_add_event(job, lth_job_state_name(job->state), NULL, NULL); /* a listener may have missed it */
	return true;
}

struct found {
	char id[LTH_JOB_ID];
	int64_t created;
	json_t *record;
};

static int by_age(const void *a, const void *b)
{
	const struct found *left = a, *right = b;
	if (left->created != right->created)
		return left->created < right->created ? -1 : 1;
	return strcmp(left->id, right->id);
}

void lth_jobs_recover(struct lth_jobs *jobs, struct lth_store *store, const struct lth_log *log)
{
	char *path = lth_store_path(store, "jobs", ""), number[24];
	DIR *folder = path ? opendir(path) : NULL;
	struct found *all = NULL;
	size_t count = 0, capacity = 0;
	free(path);
	for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
		if (entry->d_name[0] != 'j' || strlen(entry->d_name) >= LTH_JOB_ID)
			continue;
		if (count == capacity) {
			capacity = capacity ? capacity * 2 : 64;
			struct found *grown = realloc(all, capacity * sizeof(*all));
			if (!grown)
				break;
			all = grown;
		}
		json_t *record = lth_store_read_entry(store, "jobs", entry->d_name);
		if (!record) {
			lth_log_event(log, LTH_LOG_ERROR, entry->d_name, "job-record-damaged", NULL);
			continue;
		}
		all[count] = (struct found){.record = record,
					    .created = json_integer_value(json_object_get(record, "created_unix_ms"))};
		strcpy(all[count++].id, entry->d_name);
	}
	if (folder)
		closedir(folder);
	if (count)
		qsort(all, count, sizeof(*all), by_age);
	for (size_t i = 0; i < count; i++) {
		adopt_record(jobs, all[i].record, all[i].id);
		json_decref(all[i].record);
	}
	free(all);
	snprintf(number, sizeof(number), "%zu", count);
	if (count)
		lth_log_event(log, LTH_LOG_INFO, NULL, "jobs-recovered", "count", number, NULL);
}
