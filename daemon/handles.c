/* Who has a job: clients that were given its handle, and those whose requests wait for it, which may be others when
 * identical requests shared it. Each can give up its own share; the last one out cancels. See jobs.h. */
#include "daemon/jobs_internal.h"

#include <string.h>

static bool has_name(const json_t *names, const char *client, size_t *out_index)
{
	size_t index;
	json_t *name;
	json_array_foreach(names, index, name)
		if (strcmp(json_string_value(name), client) == 0) {
			if (out_index)
				*out_index = index;
			return true;
		}
	return false;
}

static void add_name(json_t **names, const char *client)
{
	if (!*names)
		*names = json_array();
	if (!has_name(*names, client, NULL))
		json_array_append_new(*names, json_string(client)); /* a client's name is plain text */
}

static bool waits(const struct lth_job *job, const char *client, bool is_client)
{
	for (const struct lth_waiter *waiter = job->waiters; waiter; waiter = waiter->next)
		if (!waiter->is_watcher && (strcmp(waiter->client, client) == 0) == is_client)
			return true;
	return false;
}

bool lth_job_holds(const struct lth_job *job, const char *client)
{
	return has_name(job->holders, client, NULL);
}

void lth_job_add_holder(struct lth_job *job, const char *client)
{
	add_name(&job->holders, client);
}

void lth_job_restore_holders(struct lth_job *job)
{
	json_decref(job->holders);
	job->holders = json_copy(job->recorded);
	job->durable = job->recorded != NULL;
}

void lth_jobs_give_handle(struct lth_jobs *jobs, struct lth_job *job, const char *client)
{
	lth_job_add_holder(job, client);
	job->durable = true;
	lth_job_save(jobs, job);
}

bool lth_job_is_of(const struct lth_job *job, const char *client)
{
	return strcmp(job->spec.client, client) == 0 || lth_job_holds(job, client) || waits(job, client, true) ||
	       has_name(job->leavers, client, NULL);
}

bool lth_jobs_give_up(struct lth_jobs *jobs, struct lth_job *job, const char *client)
{
	size_t index;
	bool held = has_name(job->holders, client, &index);
	add_name(&job->leavers, client); /* who sends its request twice is no stranger the second time */
	if (held)
		json_array_remove(job->holders, index);
	if (!json_array_size(job->holders) && !waits(job, client, false))
		lth_jobs_cancel(jobs, job, "a client asked for it");
	else if (held)
		lth_job_save(jobs, job);
	else
		return job->saving; /* by an earlier request of this client, perhaps */
	return true;
}
