/* What jobs.c (jobs, waiters, ends), spool.c (their records on disk), run.c (from the queue through a worker into the
 * store) and schedule.c (admission, whose turn it is) share. Thread rule: loop thread. */
#ifndef LTH_DAEMON_JOBS_INTERNAL_H
#define LTH_DAEMON_JOBS_INTERNAL_H

#include "daemon/jobs.h"

enum { LTH_JOBS_HISTORY = 1024, LTH_JOBS_PENALTIES = 32 };

struct lth_jobs {
	uv_loop_t *loop;
	const struct lth_config *config;
	struct lth_store *store;
	struct lth_answers *answers;
	struct lth_metrics *metrics;
	const struct lth_log *log;
	struct lth_pool *pool;
	struct lth_job *oldest, *newest;
	unsigned num_jobs, queued, running, ending, num_places;
	struct lth_place *places;
	uint64_t running_bytes; /* predicted */
	uint64_t mean_job_ns;   /* moving average, for Retry-After */
	uv_timer_t timer;       /* the earliest deadline */
	bool draining, closing;
	struct {
		uint64_t model_hash, peak_bytes;
	} history[LTH_JOBS_HISTORY]; /* measured peaks by model, direct-mapped */
	char last_client[64];        /* whose job started last */
	struct {
		char client[64];
		unsigned score;
		uint64_t since_ns;
	} penalties[LTH_JOBS_PENALTIES]; /* of clients whose jobs killed workers */
};

/* --- jobs.c */
/* Stage and pass may be NULL. The last of the LTH_JOB_EVENTS places is kept for the end. */
void lth_jobs_add_event(struct lth_job *job, const char *name, const char *stage, const char *pass);
/* Ends a job: ENDING until its record is on the disk, where it is durable, then lth_jobs_settle. Leaves the counts of
 * the state it was in. */
void lth_jobs_finish(struct lth_jobs *jobs, struct lth_job *job);
/* The state that it ends in: DONE when it has an answer, else FAILED with its diag. */
enum lth_job_state lth_job_outcome(const struct lth_job *job);
/* The end of an ENDING job for everyone to see. */
void lth_jobs_settle(struct lth_jobs *jobs, struct lth_job *job);
void lth_jobs_count(struct lth_jobs *jobs); /* into the metrics */
void lth_jobs_set_timer(struct lth_jobs *jobs);
void lth_jobs_release_inputs(struct lth_job *job);

/* --- handles.c */
void lth_job_add_holder(struct lth_job *job, const char *client);
/* Who has it is again what the record on the disk says: a newer one could not be written. */
void lth_job_restore_holders(struct lth_job *job);

/* --- spool.c */
/* Writes the job's record. Whoever waits for that is told afterwards; an ENDING job is settled. */
void lth_job_save(struct lth_jobs *jobs, struct lth_job *job);

/* --- schedule.c */
/* The memory a job is charged with: what this model took before, else a multiple of its bytes; at most a worker's
 * limit. */
uint64_t lth_jobs_predict(struct lth_jobs *jobs, const struct lth_job_spec *spec);
void lth_jobs_note_peak(struct lth_jobs *jobs, const char *model, uint64_t peak_bytes);
LTH_MUST_CHECK enum lth_code lth_jobs_admit(struct lth_jobs *jobs, const struct lth_job_spec *spec, uint64_t predicted,
					    struct lth_diag *diag);
struct lth_job *lth_jobs_next(struct lth_jobs *jobs); /* NULL: nobody, or what is next has to wait for memory */
void lth_jobs_punish(struct lth_jobs *jobs, const char *client);

#endif
