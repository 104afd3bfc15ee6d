/* Jobs: what clients asked for, from acceptance to result. QUEUED -> RUNNING (in a worker) -> PUBLISHING -> ENDING ->
 * DONE, or from any state to FAILED by way of ENDING. Requests that ask for the same action share one job; a job that
 * nobody waits for and whose handle was not given out is cancelled. Deadlines include the time in the queue.
 * Whatever is told of a durable job is on the disk first: nobody sees DONE or FAILED, or that a client has it or has
 * given it up, before its record says so. Thread rule: loop thread. */
#ifndef LTH_DAEMON_JOBS_H
#define LTH_DAEMON_JOBS_H

#include "daemon/answers.h"
#include "daemon/pool.h"

enum lth_job_kind { LTH_JOB_COMPILE, LTH_JOB_PLAN, LTH_JOB_PLAN_CHECK, LTH_NUM_JOB };
enum lth_job_state {
	LTH_STATE_QUEUED,
	LTH_STATE_RUNNING,
	LTH_STATE_PUBLISHING, /* what it made, or what it broke, is on its way into the store */
	LTH_STATE_ENDING,     /* how it ended is on its way into its record */
	LTH_STATE_DONE,
	LTH_STATE_FAILED,
	LTH_NUM_STATE
};
enum { LTH_JOB_ID = 24, LTH_JOB_EVENTS = 256 };

struct lth_job;
/* Someone who wants to know: woken once when the job ends, and (when `on_event` is set) at every event. */
struct lth_waiter {
	struct lth_waiter *next;
	struct lth_job *job; /* NULL when not waiting */
	void (*wake)(struct lth_waiter *waiter, struct lth_job *job);
	void (*on_event)(struct lth_waiter *waiter, struct lth_job *job);
	/* After lth_jobs_give_handle or lth_jobs_give_up: what lth_job_holds says is on the disk. Where that is not what
	 * was asked for, `diag` says why. */
	void (*on_saved)(struct lth_waiter *waiter, struct lth_job *job, const struct lth_diag *diag);
	bool is_watcher; /* only looks on: does not keep the job alive */
	char client[64];
};

/* For a job that is about to be submitted. */
struct lth_place {
	struct lth_place *next;
	bool taken;
	char client[64];
};

struct lth_job_event {
	const char *name; /* static text */
	char *data;       /* JSON */
};

struct lth_job_spec {
	enum lth_job_kind kind;
	char key[LTH_DIGEST_TEXT], model[LTH_DIGEST_TEXT];
	bool model_is_json, csv;
	json_t *files;   /* name -> digest; taken; may be NULL */
	json_t *options; /* taken */
	int payload_fd;  /* a plan's body, taken; -1 for a compile, whose model is a blob */
	uint64_t payload_bytes, timeout_ms;
	int priority;    /* -10 to 10, higher first */
	char client[64]; /* whose turn it is, for fairness */
	char trace[64];  /* traceparent, or empty */
};

struct lth_job {
	struct lth_job *next, *previous; /* all, oldest first */
	char id[LTH_JOB_ID];
	struct lth_job_spec spec;
	enum lth_job_state state;
	char stage[64];
	unsigned attempts;
	json_t *holders;  /* names of the clients that have its handle; NULL: nobody yet */
	json_t *recorded; /* the holders by the record that is on the disk; NULL: there is none */
	json_t *leavers;  /* names of those that gave it up; NULL: nobody yet */
	bool durable;     /* has a record, or will have */
	bool saving, save_again; /* its record is on the way to the disk */
	bool cancelled;          /* ends as soon as its publishing does */
	uint64_t created_ns, started_ns, ended_ns, deadline_ns, predicted_bytes;
	int64_t created_unix_ms;
	struct lth_waiter *waiters;
	struct lth_task task;
	int payload_fd;
	struct lth_task_blob *files;
	struct lth_answer *answer; /* DONE; released early for what the store has */
	char answer_digest[LTH_DIGEST_TEXT];
	struct lth_diag diag; /* FAILED */
	int signal;
	struct lth_job_event *events; /* the oldest LTH_JOB_EVENTS; the number of an event is its place, from 1 */
	unsigned num_events;
};

struct lth_jobs;

struct lth_jobs *lth_jobs_create(uv_loop_t *loop, const struct lth_config *config, struct lth_store *store,
				 struct lth_answers *answers, struct lth_metrics *metrics, const struct lth_log *log);
/* The pool's events for jobs go here. */
void lth_jobs_attach(struct lth_jobs *jobs, struct lth_pool *pool);
void lth_jobs_on_stage(struct lth_jobs *jobs, struct lth_task *task, const char *stage);
void lth_jobs_on_pass(struct lth_task *task, const char *pass);
void lth_jobs_on_outcome(struct lth_jobs *jobs, struct lth_task *task, struct lth_outcome *outcome);
void lth_jobs_schedule(struct lth_jobs *jobs);

/* A place in the queue, taken before the spec's inputs are stored, so that a refusal costs no disk; or the refusal. A
 * job in flight that will be joined needs none. */
LTH_MUST_CHECK enum lth_code lth_jobs_take_place(struct lth_jobs *jobs, const struct lth_job_spec *spec,
						 struct lth_place *place, struct lth_diag *diag);
/* Before lth_jobs_submit, and when it does not come to that. Accepts one that was not taken. */
void lth_jobs_leave_place(struct lth_jobs *jobs, struct lth_place *place);
/* Takes what the spec holds, also on failure. `*out_job` may be one in flight: `*out_joined`. Nobody waits yet: follow
 * with lth_jobs_wait. */
LTH_MUST_CHECK enum lth_code lth_jobs_submit(struct lth_jobs *jobs, struct lth_job_spec *spec, struct lth_job **out_job,
					     bool *out_joined, struct lth_diag *diag);
void lth_jobs_wait(struct lth_jobs *jobs, struct lth_job *job, struct lth_waiter *waiter);
/* A waiter goes; the last one takes the job with it, unless its handle was given out. */
void lth_jobs_leave(struct lth_jobs *jobs, struct lth_waiter *waiter);
void lth_jobs_cancel(struct lth_jobs *jobs, struct lth_job *job, const char *why);
/* --- handles.c */
/* From now on the job lives without waiters and survives a restart; the waiters' on_saved is called once it does. */
void lth_jobs_give_handle(struct lth_jobs *jobs, struct lth_job *job, const char *client);
/* Has the client its handle? */
bool lth_job_holds(const struct lth_job *job, const char *client);
/* Did the client ask for it, alone or with others, even if it has given it up since? */
bool lth_job_is_of(const struct lth_job *job, const char *client);
/* The client's share of the job goes, and the job with it unless others have one. True: the job's waiters hear of it,
 * by on_saved or by its end. False: there was nothing to give up. */
bool lth_jobs_give_up(struct lth_jobs *jobs, struct lth_job *job, const char *client);

struct lth_job *lth_jobs_find(struct lth_jobs *jobs, const char *id);
struct lth_job *lth_jobs_newest(struct lth_jobs *jobs); /* walk by ->previous */
bool lth_job_ended(const struct lth_job *job);
const char *lth_job_state_name(enum lth_job_state state);
const char *lth_job_kind_name(enum lth_job_kind kind);
/* A time that was not enough, and the stage in which it was up. */
void lth_job_tell_deadline(const struct lth_job *job, uint64_t timeout_ms, struct lth_diag *diag);
/* Seconds after which trying again makes sense. */
unsigned lth_jobs_retry_after(const struct lth_jobs *jobs);
/* Those whose end is not on the disk yet included. */
unsigned lth_jobs_in_flight(const struct lth_jobs *jobs, unsigned *out_queued);
uint64_t lth_jobs_running_bytes(const struct lth_jobs *jobs); /* predicted */
/* True when a job is still in flight a minute after its deadline: something does not move any more. */
bool lth_jobs_stuck(const struct lth_jobs *jobs);
/* The digests of the blobs that jobs in flight need, as keys of an object, the caller's; NULL when out of memory. */
json_t *lth_jobs_held(const struct lth_jobs *jobs);
/* No more jobs are taken; the running ones go on. */
void lth_jobs_drain(struct lth_jobs *jobs);
/* --- spool.c: durable jobs. A file a job in jobs/, written before the job is acknowledged, and rewritten before its end
 * and every change of its holders is. */
void lth_job_forget(struct lth_store *store, const struct lth_job *job);
/* Reads the spooled jobs of an earlier life back, oldest first: ended ones as history, the others into the queue. */
void lth_jobs_recover(struct lth_jobs *jobs, struct lth_store *store, const struct lth_log *log);
/* An empty job with an id, linked in as the newest; for recovery. NULL when out of memory. */
struct lth_job *lth_jobs_adopt(struct lth_jobs *jobs, const char *id);
/* Queues an adopted job; its deadline begins anew. */
void lth_jobs_requeue(struct lth_jobs *jobs, struct lth_job *job);

/* Ends every job in flight as cancelled. The timer leaves the loop. */
void lth_jobs_close(struct lth_jobs *jobs);
void lth_jobs_destroy(struct lth_jobs **jobs);

#endif
