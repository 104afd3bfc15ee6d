/* What jobs end with, as replies: the document, the artifact's bytes or a summary, by Accept; problems for failures. */
#include "daemon/negotiate.h"
#include "daemon/server.h"

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
	snprintf(link, sizeof(link), "</v1/results/%s>; rel=\"describedby\"; type=\"application/json\"", answer->digest + 7);
	lth_reply_header(request, "Link", link);
	lth_reply_header(request, "Server-Timing", answer->server_timing);
}

void lth_deliver_answer(struct lth_request *request, const struct lth_answer *answer, const char *cache)
{
	enum lth_media media = lth_accept(lth_request_header(request, "Accept"));
	size_t size;
	if (!answer->digest[0])
		media = LTH_MEDIA_JSON; /* a plan has no other form */
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
		return;
	}
	if (job->answer)
		answer = lth_answer_share(job->answer);
	else if (job->answer_digest[0])
		answer = lth_answers_by_id(&request->server->store, job->answer_digest + 7);
	if (!answer) {
		lth_diag_fail(&diag, LTH_NOT_FOUND, job->id, NULL, "send the request again",
			      "a job whose result is not in the store any more");
		lth_reply_problem(request, &diag, NULL);
		return;
	}
	lth_deliver_answer(request, answer, request->cache ? request->cache : "miss");
	lth_answer_release(&answer);
}

static void wake(struct lth_waiter *waiter, struct lth_job *job)
{
	struct lth_request *request =
		(struct lth_request *)(void *)((char *)waiter - offsetof(struct lth_request, waiter));
	lth_deliver_job(request, job);
	lth_request_resume(request);
}

static void reply_refusal(struct lth_request *request, const struct lth_diag *diag)
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
	struct lth_diag diag = {0};
	struct lth_job *job;
	bool joined;
	if (lth_jobs_submit(server->jobs, spec, &job, &joined, &diag) != LTH_OK) {
		reply_refusal(request, &diag);
		return;
	}
	request->cache = joined ? "joined" : "miss";
	request->waiter.wake = wake;
	lth_jobs_wait(server->jobs, job, &request->waiter);
	lth_request_suspend(request);
	lth_jobs_schedule(server->jobs);
}
