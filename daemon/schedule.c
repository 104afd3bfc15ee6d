/* Which jobs are taken, and which runs next. See jobs_internal.h. */
#include "daemon/jobs_internal.h"
#include "runtime/base/io.h"

#include <stdlib.h>
#include <string.h>

/* What a compile takes besides a multiple of its model: measured on the models of the tests, with room. */
static const uint64_t BASE_BYTES = 192u << 20, MODEL_FACTOR = 5;

/* --- admission */
static uint64_t *history_of(struct lth_jobs *jobs, const char *model, uint64_t *out_hash)
{
	char part[17];
	snprintf(part, sizeof(part), "%.16s", model + 7);
	*out_hash = strtoull(part, NULL, 16) | 1;
	return &jobs->history[*out_hash % LTH_JOBS_HISTORY].peak_bytes;
}

uint64_t lth_jobs_predict(struct lth_jobs *jobs, const struct lth_job_spec *spec)
{
	uint64_t limit = jobs->config->worker_memory_bytes, hash, predicted;
	const uint64_t *known = spec->kind == LTH_JOB_COMPILE ? history_of(jobs, spec->model, &hash) : NULL;
	if (known && *known && jobs->history[hash % LTH_JOBS_HISTORY].model_hash == hash)
		predicted = *known + *known / 4;
	else if (__builtin_mul_overflow(spec->payload_bytes, MODEL_FACTOR, &predicted) ||
		 __builtin_add_overflow(predicted, BASE_BYTES, &predicted))
		predicted = UINT64_MAX;
	return limit && predicted > limit ? limit : predicted; /* a worker cannot take more than its limit */
}

void lth_jobs_note_peak(struct lth_jobs *jobs, const char *model, uint64_t peak_bytes)
{
	uint64_t hash, *peak = history_of(jobs, model, &hash);
	*peak = peak_bytes;
	jobs->history[hash % LTH_JOBS_HISTORY].model_hash = hash;
}

enum lth_code lth_jobs_admit(struct lth_jobs *jobs, const struct lth_job_spec *spec, uint64_t predicted,
			     struct lth_diag *diag)
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
	unsigned idle, waiting = jobs->queued + jobs->num_places;
	lth_pool_count(jobs->pool, &idle, NULL);
	if (waiting >= jobs->config->queue_limit + idle) {
		jobs->metrics->values[LTH_METRIC_JOBS_REFUSED]++;
		return lth_diag_fail(diag, LTH_BUSY, "queue", NULL, "try again after the time in Retry-After",
				     "%u jobs that wait, as many as are allowed", waiting);
	}
	uint64_t most = jobs->config->client_jobs, own = 0;
	for (const struct lth_job *job = jobs->oldest; most && job; job = job->next)
		own += !lth_job_ended(job) && strcmp(job->spec.client, spec->client) == 0;
	for (const struct lth_place *place = jobs->places; most && place; place = place->next)
		own += strcmp(place->client, spec->client) == 0;
	if (most && own >= most) {
		jobs->metrics->values[LTH_METRIC_JOBS_REFUSED]++;
		return lth_diag_fail(diag, LTH_QUOTA, spec->client, NULL, "wait for some of them to end",
				     "%llu jobs of this client in flight, as many as are allowed",
				     (unsigned long long)own);
	}
	return LTH_OK;
}

/* --- penalties: a client whose jobs keep killing workers waits behind all others of its priority. The first is
 * forgiven at once, each further one after a while. */
static const uint64_t FORGIVEN_NS = 300000000000; /* five minutes */

static unsigned penalty_of(struct lth_jobs *jobs, const char *client)
{
	uint64_t now = lth_now_ns();
	for (int i = 0; i < LTH_JOBS_PENALTIES; i++) {
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

void lth_jobs_punish(struct lth_jobs *jobs, const char *client)
{
	int slot = 0; /* the client's own, else the one that is the oldest */
	for (int i = 0; i < LTH_JOBS_PENALTIES; i++) {
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
	for (const struct lth_job *job = jobs->newest; job && count < MOST_RUNNING && count < jobs->running;
	     job = job->previous)
		if (job->state == LTH_STATE_RUNNING || job->state == LTH_STATE_PUBLISHING)
			out_list[count++] = job;
	return count;
}

/* The next to run: highest priority; then the client with the fewest jobs running, not the one served last; then the
 * oldest. A job whose memory does not fit now holds back those behind it of no higher priority: it would starve. */
struct lth_job *lth_jobs_next(struct lth_jobs *jobs)
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
