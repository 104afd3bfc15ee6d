/* Who has a job: clients that were given its handle, and those whose requests wait for it, which may be others when
 * identical requests shared it. Each can give up its own share; the last one out cancels. See jobs.h. */
#include "daemon/jobs_internal.h"

#include <string.h>

static bool holds(const struct lth_job *job, const char *client, size_t *out_index)
{
	size_t index;
	json_t *holder;
	json_array_foreach(job->holders, index, holder)
		if (strcmp(json_string_value(holder), client) == 0) {
			if (out_index)
				*out_index = index;
			return true;
		}
	return false;
}

static bool waits(const struct lth_job *job, const char *client, bool is_client)
{
	for (const struct lth_waiter *waiter = job->waiters; waiter; waiter = waiter->next)
		if (!waiter->is_watcher && (strcmp(waiter->client, client) == 0) == is_client)
			return true;
	return false;
}

void lth_job_add_holder(struct lth_job *job, const char *client)
{
	if (!job->holders)
		job->holders = json_array();
	if (!holds(job, client, NULL))
		json_array_append_new(job->holders, json_string(client)); /* a client's name is plain text */
}

void lth_jobs_give_handle(struct lth_jobs *jobs, struct lth_job *job, const char *client)
{
	lth_job_add_holder(job, client);
	job->durable = true;
	lth_job_save(jobs, job);
}

void lth_jobs_take_handle_back(struct lth_job *job, const char *client)
{
	size_t index;
	if (holds(job, client, &index))
		json_array_remove(job->holders, index);
	job->durable = json_array_size(job->holders) > 0;
}

bool lth_job_is_of(const struct lth_job *job, const char *client)
{
	return strcmp(job->spec.client, client) == 0 || holds(job, client, NULL) || waits(job, client, true);
}

void lth_jobs_give_up(struct lth_jobs *jobs, struct lth_job *job, const char *client)
{
	size_t index;
	if (lth_job_ended(job))
		return;
	if (holds(job, client, &index))
		json_array_remove(job->holders, index);
	if (!json_array_size(job->holders) && !waits(job, client, false))
		lth_jobs_cancel(jobs, job, "a client asked for it");
	else if (job->durable)
		lth_job_save(jobs, job);
}
