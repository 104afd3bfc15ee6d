/* Blobs and results by name. */
#include "daemon/server.h"

#include <string.h>

static bool check_digest(struct lth_request *request)
{
	struct lth_diag diag = {0};
	if (lth_digest_valid(request->argument))
		return true;
	lth_diag_fail(&diag, LTH_INVALID_REQUEST, request->argument, "sha256: and 64 lower-case hex digits", NULL,
		      "no digest");
	lth_reply_problem(request, &diag, NULL);
	return false;
}

void lth_route_blob_get(struct lth_request *request)
{
	if (!check_digest(request))
		return;
	lth_reply_blob(request, request->argument, "application/octet-stream");
	if (request->status < 400)
		lth_reply_header(request, "Cache-Control", "private, max-age=31536000, immutable");
}

static void publish(struct lth_request *request)
{
	(void)!lth_spool_publish(&request->server->store, &request->spool, request->argument, &request->diag);
}

static void after(struct lth_request *request)
{
	if (request->diag.code != LTH_OK) {
		lth_reply_problem(request, &request->diag, NULL);
		return;
	}
	request->server->metrics.values[LTH_METRIC_STORE_BYTES] = atomic_load(&request->server->store.bytes);
	lth_reply_json(request, 201,
		       json_pack("{s:s, s:I}", "digest", request->argument, "bytes", (json_int_t)request->body_bytes));
}

void lth_route_blob_put(struct lth_request *request)
{
	char digest[LTH_DIGEST_TEXT];
	if (!check_digest(request))
		return;
	lth_spool_digest(&request->spool, digest);
	if (strcmp(digest, request->argument) != 0) {
		lth_diag_fail(&request->diag, LTH_INVALID_REQUEST, "body", request->argument, NULL,
			      "bytes whose digest is %s", digest);
		lth_reply_problem(request, &request->diag, NULL);
		return;
	}
	if (lth_store_has(&request->server->store, digest)) {
		lth_reply_json(request, 200,
			       json_pack("{s:s, s:I}", "digest", digest, "bytes", (json_int_t)request->body_bytes));
		return;
	}
	lth_request_work(request, publish, after);
}

/* Bazel's HTTP cache protocol names a blob by the hex digits alone. Its /ac/ holds Bazel's own messages, which nothing
 * here could make or check: it has no alias. */
static void name_as_blob(struct lth_request *request)
{
	char digest[sizeof(request->argument) + 8];
	snprintf(digest, sizeof(digest), "sha256:%s",
		 request->argument); /* whatever it was: refused unless it is hex now */
	snprintf(request->argument, sizeof(request->argument), "%.*s", (int)sizeof(request->argument) - 1, digest);
}

void lth_route_cas_get(struct lth_request *request)
{
	name_as_blob(request);
	lth_route_blob_get(request);
}

void lth_route_cas_put(struct lth_request *request)
{
	name_as_blob(request);
	lth_route_blob_put(request);
}

void lth_route_result(struct lth_request *request)
{
	struct lth_diag diag = {0};
	struct lth_answer *answer = lth_answers_by_id(&request->server->store, request->argument);
	if (answer) {
		lth_deliver_answer(request, answer, "hit");
		lth_answer_release(&answer);
		return;
	}
	lth_diag_fail(&diag, LTH_NOT_FOUND, request->argument, NULL, NULL, "no result of this id");
	lth_reply_problem(request, &diag, NULL);
}

void lth_route_timeline(struct lth_request *request)
{
	struct lth_diag diag = {0};
	struct lth_answer *answer = lth_answers_by_id(&request->server->store, request->argument);
	const char *digest = NULL;
	for (size_t i = 0; answer && i < answer->num_artifacts; i++)
		if (strcmp(answer->artifacts[i].kind, "timeline") == 0)
			digest = answer->artifacts[i].digest;
	if (digest) {
		lth_reply_blob(request, digest, "image/svg+xml");
		lth_reply_header(request, "Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'");
	} else {
		lth_diag_fail(&diag, LTH_NOT_FOUND, request->argument, NULL,
			      answer ? "compile with MemoryPlan on" : NULL,
			      answer ? "a result without a memory plan" : "no result of this id");
		lth_reply_problem(request, &diag, NULL);
	}
	lth_answer_release(&answer);
}
