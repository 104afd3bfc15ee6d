/* What jobs end with, as replies: the document, the artifact's bytes or a summary, by Accept; problems for failures. */
#include "daemon/negotiate.h"
#include "daemon/server.h"
#include "runtime/base/io.h"

#include <stdlib.h>
#include <string.h>

static void deliver_artifact(struct lth_request *request, const struct lth_answer *answer)
{
	char link[96 + LTH_DIGEST_TEXT];
	struct lth_diag diag = {0};
	if (!answer->num_artifacts) {
		lth_diag_fail(&diag, LTH_NOT_FOUND, "artifacts", "at least one artifact", "ask for one: artifact=so",
			      "a result without artifacts");
		lth_reply_problem(request, &diag, NULL);
		return;
	}
	lth_reply_blob(request, answer->artifacts[0].digest, "application/octet-stream");
	snprintf(link, sizeof(link), "</v1/results/%s>; rel=\"describedby\"; type=\"application/json\"",
		 answer->digest + 7);
	lth_reply_header(request, "Link", link);
	lth_reply_header(request, "Server-Timing", answer->server_timing);
}

void lth_deliver_timeline(struct lth_request *request, const struct lth_answer *answer)
{
	struct lth_diag diag = {0};
	for (size_t i = 0; i < answer->num_artifacts; i++) {
		if (strcmp(answer->artifacts[i].kind, "timeline") != 0)
			continue;
		lth_reply_blob(request, answer->artifacts[i].digest, "image/svg+xml");
		/* drawn by a worker from names in the model: nothing in it may run or load */
		lth_reply_header(request, "Content-Security-Policy",
				 "default-src 'none'; style-src 'unsafe-inline'; sandbox");
		lth_reply_header(request, "X-Content-Type-Options", "nosniff");
		return;
	}
	lth_diag_fail(&diag, LTH_NOT_FOUND, "timeline.svg", "a compile with MemoryPlan on, or with artifact=timeline",
		      "ask for it: POST /v1/compile?artifact=so&artifact=timeline", "a result without a timeline");
	lth_reply_problem(request, &diag, NULL);
}

void lth_deliver_answer(struct lth_request *request, struct lth_answer *answer, const char *cache)
{
	enum lth_media media = lth_accept(lth_request_header(request, "Accept"));
	size_t size;
	if (!answer->digest[0])
		media = LTH_MEDIA_JSON; /* a plan has no other form */
	bool is_hit = media == LTH_MEDIA_JSON && answer->digest[0] && strcmp(cache, "hit") == 0;
	if (is_hit && lth_reply_kept(request, answer))
		return;
	if (media == LTH_MEDIA_BYTES) {
		deliver_artifact(request, answer);
	} else if (media == LTH_MEDIA_TEXT) {
		char *text = strdup(answer->summary);
		lth_reply_bytes(request, 200, "text/plain; charset=utf-8", text, text ? strlen(text) : 0);
	} else {
		char *text = lth_answer_text(answer, cache, &size);
		lth_reply_bytes(request, 200, "application/json", text, text ? size : 0);
	}
	lth_reply_header(request, "Vary", "Accept");
	if (answer->digest[0])
		lth_reply_header(request, "Lathe-Cache", cache);
	if (is_hit)
		lth_reply_keep(request, answer);
}

static void deliver_failure(struct lth_request *request, const struct lth_job *job)
{
	json_t *extra = json_pack("{s:s, s:i}", "job", job->id, "attempts", (int)job->attempts);
	if (job->stage[0])
		json_object_set_new(extra, "stage", json_string(job->stage));
	else if (job->diag.code == LTH_DEADLINE)
		json_object_set_new(extra, "stage", json_string(job->diag.place));
	if (job->signal)
		json_object_set_new(extra, "signal", json_integer(job->signal));
	lth_reply_problem(request, &job->diag, extra);
	json_decref(extra);
}

void lth_deliver_job(struct lth_request *request, struct lth_job *job)
{
	struct lth_diag diag = {0};
	struct lth_answer *answer = NULL;
	if (job->state == LTH_STATE_FAILED) {
		deliver_failure(request, job);
		lth_reply_header(request, "Lathe-Job", job->id);
		return;
	}
	if (job->answer)
		answer = lth_answer_share(job->answer);
	else if (job->answer_digest[0] && job->spec.kind != LTH_JOB_COMPILE)
		answer = lth_answers_plan(&request->server->store, job->answer_digest);
	else if (job->answer_digest[0])
		answer = lth_answers_by_id(&request->server->store, job->answer_digest + 7);
	if (!answer) {
		lth_diag_fail(&diag, LTH_NOT_FOUND, job->id, NULL, "send the request again",
			      "a job whose result is not in the store any more");
		lth_reply_problem(request, &diag, NULL);
		return;
	}
	lth_deliver_answer(request, answer, request->cache ? request->cache : "miss");
	lth_reply_header(request, "Lathe-Job", job->id);
	lth_answer_release(&answer);
}

/* --- jobs in flight */
json_t *lth_job_json(const struct lth_job *job)
{
	uint64_t now = lth_now_ns(), end = lth_job_ended(job) ? job->ended_ns : now;
	json_t *out =
		json_pack("{s:s, s:s, s:s, s:I, s:s, s:i, s:i, s:s}", "id", job->id, "kind",
			  lth_job_kind_name(job->spec.kind), "state", lth_job_state_name(job->state), "created_unix_ms",
			  (json_int_t)job->created_unix_ms, "client", job->spec.client, "priority", job->spec.priority,
			  "attempts", (int)job->attempts, "model", job->spec.model);
	if (job->spec.key[0])
		json_object_set_new(out, "action_key", json_string(job->spec.key));
	if (job->stage[0])
		json_object_set_new(out, "stage", json_string(job->stage));
	if (end >= job->created_ns)
		json_object_set_new(out, "ms", json_real((double)(end - job->created_ns) * 1e-6));
	if (job->state == LTH_STATE_DONE && job->spec.kind == LTH_JOB_COMPILE) {
		char address[32 + LTH_DIGEST_TEXT];
		snprintf(address, sizeof(address), "/v1/results/%s", job->answer_digest + 7);
		json_object_set_new(out, "result", json_string(address));
	}
	if (job->state == LTH_STATE_FAILED)
		json_object_set_new(out, "problem", json_string(lth_code_slug(job->diag.code)));
	return out;
}

/* 202: it is under way, and there it will be found. */
static void reply_accepted(struct lth_request *request, const struct lth_job *job)
{
	char location[32 + LTH_JOB_ID];
	snprintf(location, sizeof(location), "/v1/jobs/%s", job->id);
	lth_reply_json(request, 202, lth_job_json(job));
	lth_reply_header(request, "Location", location);
	lth_reply_header(request, "Lathe-Job", job->id);
	if (lth_request_header(request, "Prefer"))
		lth_reply_header(request, "Preference-Applied", lth_request_header(request, "Prefer"));
}

static void wake(struct lth_waiter *waiter, struct lth_job *job)
{
	struct lth_request *request = lth_request_of(waiter);
	lth_request_stop_timer(request);
	lth_deliver_job(request, job);
	if (request->response) /* else a blob of the answer is being verified */
		lth_request_resume(request);
}

/* The job's record is on disk, with this client among its holders: now the handle may be given out. */
static void on_saved(struct lth_waiter *waiter, struct lth_job *job, const struct lth_diag *diag)
{
	struct lth_request *request = lth_request_of(waiter);
	if (!request->wants_handle)
		return;
	if (diag->code == LTH_OK || lth_job_holds(job, waiter->client))
		reply_accepted(request, job);
	else
		lth_reply_problem(request, diag, NULL);
	lth_jobs_leave(request->server->jobs, waiter);
	lth_request_resume(request);
}

static void want_handle(struct lth_request *request)
{
	request->wants_handle = true;
	lth_jobs_give_handle(request->server->jobs, request->waiter.job, request->waiter.client);
}

static void on_patience_over(uv_timer_t *timer)
{
	struct lth_request *request = timer->data;
	lth_request_stop_timer(request);
	want_handle(request);
}

/* Of a request whose job has more time than it has itself, since another client has: the job goes on for that one.
 * Where both times are the same, the end of the job is the answer. */
static void on_own_deadline(uv_timer_t *timer)
{
	static const uint64_t SAME_NS = 100000000;
	struct lth_request *request = timer->data;
	struct lth_job *job = request->waiter.job;
	struct lth_diag diag = {0};
	lth_request_stop_timer(request);
	if (job->state == LTH_STATE_ENDING || job->deadline_ns < lth_now_ns() + SAME_NS)
		return;
	lth_job_tell_deadline(job, request->own_timeout_ms, &diag);
	json_t *extra = json_pack("{s:s, s:s}", "job", job->id, "stage", diag.place);
	lth_reply_problem(request, &diag, extra);
	json_decref(extra);
	lth_jobs_leave(request->server->jobs, &request->waiter);
	lth_request_resume(request);
}

void lth_deliver_refusal(struct lth_request *request, const struct lth_diag *diag)
{
	unsigned queued;
	lth_jobs_in_flight(request->server->jobs, &queued);
	json_t *extra = json_pack("{s:i}", "queued", (int)queued);
	lth_reply_problem(request, diag, extra);
	json_decref(extra);
}

void lth_deliver_submit(struct lth_request *request, struct lth_job_spec *spec)
{
	struct lth_server *server = request->server;
	struct lth_prefer prefer = lth_prefer_parse(lth_request_header(request, "Prefer"));
	struct lth_diag diag = {0};
	struct lth_job *job;
	bool joined;
	lth_jobs_leave_place(server->jobs, &request->place);
	request->own_timeout_ms = spec->timeout_ms;
	snprintf(request->waiter.client, sizeof(request->waiter.client), "%s", spec->client);
	if (lth_jobs_submit(server->jobs, spec, &job, &joined, &diag) != LTH_OK) {
		lth_deliver_refusal(request, &diag);
		return;
	}
	request->cache = joined ? "joined" : "miss";
	request->waiter.wake = wake;
	request->waiter.on_saved = on_saved;
	lth_jobs_wait(server->jobs, job, &request->waiter);
	uint64_t patience_ms = prefer.wait_seconds > 0 ? (uint64_t)prefer.wait_seconds * 1000 : UINT64_MAX;
	if (patience_ms == UINT64_MAX && (prefer.respond_async || prefer.wait_seconds == 0))
		want_handle(request);
	else if (patience_ms < request->own_timeout_ms)
		lth_request_start_timer(request, patience_ms, on_patience_over);
	else
		lth_request_start_timer(request, request->own_timeout_ms, on_own_deadline);
	lth_jobs_schedule(server->jobs);
	if (!request->response) /* a job that cannot even start has ended already */
		lth_request_suspend(request);
}

static void on_long_poll_over(uv_timer_t *timer)
{
	struct lth_request *request = timer->data;
	struct lth_job *job = request->waiter.job;
	lth_request_stop_timer(request);
	reply_accepted(request, job);
	lth_jobs_leave(request->server->jobs, &request->waiter);
	lth_request_resume(request);
}

void lth_deliver_when_done(struct lth_request *request, struct lth_job *job, int64_t seconds)
{
	if (lth_job_ended(job)) {
		lth_deliver_job(request, job);
	} else if (seconds <= 0) {
		reply_accepted(request, job);
	} else {
		request->waiter.wake = wake;
		request->waiter.is_watcher = true;
		lth_jobs_wait(request->server->jobs, job, &request->waiter);
		lth_request_suspend(request);
		lth_request_start_timer(request, (uint64_t)seconds * 1000, on_long_poll_over);
	}
}
