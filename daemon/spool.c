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
	json_t *record = json_pack(
		"{s:s, s:s, s:s, s:I, s:s, s:s, s:b, s:b, s:O?, s:O?, s:I, s:I, s:i, s:s, s:s, s:s, s:i, s:O?}", "id",
		job->id,
		"kind", lth_job_kind_name(spec->kind), "state", lth_job_state_name(job->state), "created_unix_ms",
		(json_int_t)job->created_unix_ms, "key", spec->key, "model", spec->model, "model_is_json",
		spec->model_is_json, "csv", spec->csv, "files", spec->files, "options", spec->options, "payload_bytes",
		(json_int_t)spec->payload_bytes, "timeout_ms", (json_int_t)spec->timeout_ms, "priority", spec->priority,
		"client", spec->client, "trace", spec->trace, "result", job->answer_digest, "attempts",
		(int)job->attempts, "holders", job->holders);
	if (lth_job_ended(job))
		json_object_set_new(record, "ms", json_real((double)(job->ended_ns - job->created_ns) * 1e-6));
	if (job->state == LTH_STATE_FAILED) {
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
	struct lth_diag diag;
};

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
		lth_job_save(jobs, job);
		return;
	}
	if (diag.code != LTH_OK)
		lth_log_event(jobs->log, LTH_LOG_ERROR, job->id, "job-save-failed", "found", diag.found, NULL);
	job->recorded = job->recorded || diag.code == LTH_OK;
	if (job->recorded)
		diag = (struct lth_diag){0}; /* for whoever joined it, an earlier record is as good */
	if (lth_job_ended(job))
		lth_jobs_wake(jobs, job);
	else
		tell_saved(job, &diag);
}

void lth_job_save(struct lth_jobs *jobs, struct lth_job *job)
{
	struct lth_diag diag = {0};
	job->save_again = job->saving;
	if (job->saving)
		return;
	struct save *save = calloc(1, sizeof(*save));
	char *text = record_text(job);
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
		lth_jobs_wake(jobs, job);
	else
		tell_saved(job, &diag);
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

static bool are_names(const json_t *list)
{
	size_t index;
	json_t *name;
	bool good = json_is_array(list);
	json_array_foreach(list, index, name)
		good = good && json_is_string(name);
	return good;
}

static bool adopt_record(struct lth_jobs *jobs, const json_t *record, const char *id)
{
	char state[16];
	struct lth_job *job = lth_jobs_adopt(jobs, id);
	if (!job)
		return false;
	job->durable = job->recorded = true;
	copy_text(state, sizeof(state), record, "state");
	job->created_unix_ms = json_integer_value(json_object_get(record, "created_unix_ms"));
	copy_text(job->answer_digest, sizeof(job->answer_digest), record, "result");
	bool good = read_spec(record, &job->spec);
	job->holders = json_incref(json_object_get(record, "holders"));
	if (!are_names(job->holders)) {
		json_decref(job->holders);
		job->holders = NULL;
	}
	if (!json_array_size(job->holders))
		lth_job_add_holder(job, job->spec.client); /* those who waited went with the daemon */
	if (strcmp(state, "done") == 0) {
		job->state = LTH_STATE_DONE;
	} else if (strcmp(state, "failed") == 0 || !good) {
		job->state = LTH_STATE_FAILED;
		read_problem(json_object_get(record, "problem"), &job->diag);
		copy_text(job->stage, sizeof(job->stage), record, "stage");
		job->signal = (int)json_integer_value(json_object_get(record, "signal"));
	}
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
