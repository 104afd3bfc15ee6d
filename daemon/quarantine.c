/* Quarantine of actions that kill workers. See quarantine.h. */
#include "daemon/quarantine.h"
#include "daemon/jobs_internal.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct entry {
	uv_work_t request;
	struct lth_store *store;
	struct lth_jobs *jobs;
	struct lth_job *job;
	void (*then)(struct lth_jobs *jobs, struct lth_job *job);
	char folder[24 + LTH_DIGEST_TEXT], model[LTH_DIGEST_TEXT];
	char *problem, *orders;
	struct lth_diag diag;
};

static void folder_of(const char *key, char *out, size_t size)
{
	snprintf(out, size, "quarantine/%s", key + 7);
}

static char *problem_of(const struct lth_job *job)
{
	json_t *problem = json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:i}", "slug", lth_code_slug(job->diag.code),
				    "place", job->diag.place, "found", job->diag.found, "job", job->id, "stage",
				    job->stage, "signal", job->signal, "attempts", (int)job->attempts);
	char *text = problem ? json_dumps(problem, JSON_INDENT(1)) : NULL;
	json_decref(problem);
	return text;
}

static char *orders_of(const struct lth_job *job)
{
	json_t *orders = json_pack("{s:{s:s}, s:O?, s:O?}", "model", "digest", job->spec.model, "files",
				   job->spec.files, "options", job->spec.options);
	char *text = orders ? json_dumps(orders, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) : NULL;
	json_decref(orders);
	return text;
}

/* Keeps the newest; what is removed is the folder that was written first. */
static void remove_oldest(const struct lth_store *store)
{
	char *root = lth_store_path(store, "quarantine", ""), *oldest = NULL;
	DIR *folder = root ? opendir(root) : NULL;
	struct timespec when = {0};
	unsigned count = 0;
	for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
		struct stat info;
		char *path = entry->d_name[0] == '.' ? NULL : lth_store_path(store, "quarantine", entry->d_name);
		if (!path || stat(path, &info) != 0) {
			free(path);
			continue;
		}
		count++;
		if (!oldest || info.st_mtim.tv_sec < when.tv_sec) {
			free(oldest);
			oldest = path;
			when = info.st_mtim;
		} else {
			free(path);
		}
	}
	if (folder)
		closedir(folder);
	if (count > LTH_QUARANTINE_MOST && oldest)
		lth_store_remove_tree(oldest);
	free(oldest);
	free(root);
}

static void run_add(uv_work_t *request)
{
	struct entry *entry = request->data;
	char *folder = lth_store_path(entry->store, entry->folder, ""),
	     *model = lth_store_path(entry->store, entry->folder, "model");
	if (!folder || !model || (mkdir(folder, 0700) != 0 && errno != EEXIST)) {
		lth_diag_fail(&entry->diag, LTH_IO_ERROR, entry->folder, NULL, NULL, "%s", strerror(errno));
	} else {
		lth_store_link_blob(entry->store, entry->model, model);
		if (lth_store_write_entry(entry->store, entry->folder, "request.json", entry->orders,
					  strlen(entry->orders), &entry->diag) == LTH_OK)
			(void)!lth_store_write_entry(entry->store, entry->folder, "problem.json", entry->problem,
						     strlen(entry->problem), &entry->diag);
		remove_oldest(entry->store);
	}
	free(folder);
	free(model);
}

static void free_entry(struct entry *entry)
{
	free(entry->problem);
	free(entry->orders);
	free(entry);
}

static void after_add(uv_work_t *request, int status)
{
	struct entry *entry = request->data;
	const struct lth_log *log = entry->jobs->log;
	(void)status;
	if (entry->diag.code != LTH_OK)
		lth_log_event(log, LTH_LOG_ERROR, entry->job->id, "quarantine-failed", "found", entry->diag.found,
			      NULL);
	else
		lth_log_event(log, LTH_LOG_WARN, entry->job->id, "quarantined", "folder", entry->folder, NULL);
	entry->then(entry->jobs, entry->job);
	free_entry(entry);
}

void lth_quarantine_add(struct lth_jobs *jobs, struct lth_job *job,
			void (*then)(struct lth_jobs *jobs, struct lth_job *job))
{
	struct entry *entry = calloc(1, sizeof(*entry));
	if (entry) {
		*entry = (struct entry){.store = jobs->store,
					.jobs = jobs,
					.job = job,
					.then = then,
					.problem = problem_of(job),
					.orders = orders_of(job)};
		folder_of(job->spec.key, entry->folder, sizeof(entry->folder));
		memcpy(entry->model, job->spec.model, sizeof(entry->model));
		entry->request.data = entry;
		if (entry->problem && entry->orders &&
		    uv_queue_work(jobs->loop, &entry->request, run_add, after_add) == 0)
			return;
		free_entry(entry);
	}
	then(jobs, job);
}

json_t *lth_quarantine_find(const struct lth_store *store, const char *key, struct lth_diag *out_diag)
{
	char folder[24 + LTH_DIGEST_TEXT], advice[256];
	folder_of(key, folder, sizeof(folder));
	json_t *problem = lth_store_read_entry(store, folder, "problem.json");
	const char *slug = json_string_value(json_object_get(problem, "slug"));
	const char *place = json_string_value(json_object_get(problem, "place"));
	const char *found = json_string_value(json_object_get(problem, "found"));
	enum lth_code code = slug ? lth_code_by_slug(slug) : LTH_NUM_CODES;
	if (!place || !found || code == LTH_NUM_CODES || code == LTH_OK) {
		json_decref(problem);
		return NULL;
	}
	snprintf(advice, sizeof(advice),
		 "the reproducer is in the state folder, %s; a new build or Cache-Control: no-cache tries again",
		 folder);
	lth_diag_fail(out_diag, code, place, NULL, advice, "%s, at every attempt", found);
	json_object_del(problem, "slug");
	json_object_del(problem, "place");
	json_object_del(problem, "found");
	json_object_set_new(problem, "quarantined", json_true());
	return problem;
}

void lth_quarantine_release(const struct lth_store *store, const char *key)
{
	char folder[24 + LTH_DIGEST_TEXT];
	folder_of(key, folder, sizeof(folder));
	char *path = lth_store_path(store, folder, "");
	if (path && access(path, F_OK) == 0)
		lth_store_remove_tree(path);
	free(path);
}
