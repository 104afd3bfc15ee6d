/* Blobs and results by name. */
#include "daemon/negotiate.h"
#include "daemon/server.h"

#include <stdlib.h>
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

/* How much of an upload is here, for a client that wants to go on with it. */
static void tell_offset(struct lth_request *request, uint64_t bytes)
{
	char text[24];
	snprintf(text, sizeof(text), "%llu", (unsigned long long)bytes);
	lth_reply_header(request, "Upload-Offset", text);
}

void lth_route_blob_get(struct lth_request *request)
{
	if (!check_digest(request))
		return;
	lth_reply_blob(request, request->argument, "application/octet-stream");
	if (request->status == 404)
		tell_offset(request, lth_partial_size(&request->server->store, request->argument));
	else if (request->status < 400)
		lth_reply_header(request, "Cache-Control", "private, max-age=31536000, immutable");
}

/* --- PUT */
struct part { /* of an upload that comes in parts */
	uint64_t first, total, arrived;
};

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

static void add_part(struct lth_request *request)
{
	struct part *part = request->state;
	struct lth_store *store = &request->server->store;
	enum lth_code code =
		lth_partial_add(store, &request->spool, request->argument, part->first, &part->arrived, &request->diag);
	if (code == LTH_OK && part->arrived == part->total)
		(void)!lth_partial_finish(store, request->argument, &request->diag);
}

static void after_part(struct lth_request *request)
{
	const struct part *part = request->state;
	request->server->metrics.values[LTH_METRIC_STORE_BYTES] = atomic_load(&request->server->store.bytes);
	if (request->diag.code != LTH_OK) {
		lth_reply_problem(request, &request->diag, NULL);
		tell_offset(request, lth_partial_size(&request->server->store, request->argument));
		return;
	}
	lth_reply_json(request, part->arrived == part->total ? 201 : 202,
		       json_pack("{s:s, s:I, s:I}", "digest", request->argument, "bytes", (json_int_t)part->total,
				 "arrived", (json_int_t)part->arrived));
	tell_offset(request, part->arrived);
}

static enum lth_code read_part(const struct lth_request *request, const char *range, struct part *out,
			       struct lth_diag *diag)
{
	uint64_t last, limit = request->server->config.body_limit_bytes;
	if (!lth_content_range_parse(range, &out->first, &last, &out->total))
		return lth_diag_fail(diag, LTH_INVALID_REQUEST, "Content-Range", "bytes FIRST-LAST/TOTAL", NULL,
				     "'%s'", range);
	if (last - out->first + 1 != request->body_bytes)
		return lth_diag_fail(diag, LTH_INVALID_REQUEST, "Content-Range", range, NULL, "a body of %llu bytes",
				     (unsigned long long)request->body_bytes);
	if (out->total > limit)
		return lth_diag_fail(diag, LTH_TOO_LARGE, "Content-Range", NULL, "raise lathed's body-limit-bytes",
				     "%llu bytes in all, more than the limit of %llu", (unsigned long long)out->total,
				     (unsigned long long)limit);
	return LTH_OK;
}

static void put_part(struct lth_request *request, const char *range)
{
	struct part *part = calloc(1, sizeof(*part));
	if (!part)
		lth_diag_fail(&request->diag, LTH_OUT_OF_MEMORY, "upload", NULL, NULL, "no memory");
	else
		(void)!read_part(request, range, part, &request->diag);
	if (request->diag.code != LTH_OK) {
		free(part);
		lth_reply_problem(request, &request->diag, NULL);
		return;
	}
	request->state = part;
	request->free_state = free;
	lth_request_work(request, add_part, after_part);
}

void lth_route_blob_put(struct lth_request *request)
{
	char digest[LTH_DIGEST_TEXT];
	const char *range = lth_request_header(request, "Content-Range");
	if (!check_digest(request))
		return;
	bool good = lth_store_is_verified(&request->server->store, request->argument) &&
		    lth_store_has(&request->server->store, request->argument);
	if (good && range) {
		lth_reply_json(request, 200, json_pack("{s:s}", "digest", request->argument));
		return;
	}
	if (range) {
		put_part(request, range);
		return;
	}
	lth_spool_digest(&request->spool, digest);
	if (strcmp(digest, request->argument) != 0) {
		lth_diag_fail(&request->diag, LTH_INVALID_REQUEST, "body", request->argument, NULL,
			      "bytes whose digest is %s", digest);
		lth_reply_problem(request, &request->diag, NULL);
		return;
	}
	if (good) {
		lth_reply_json(request, 200,
			       json_pack("{s:s, s:I}", "digest", digest, "bytes", (json_int_t)request->body_bytes));
		return;
	}
	lth_request_work(request, publish, after);
}

/* --- uploads that were cut off */
struct cut {
	uv_work_t base;
	struct lth_store *store;
	struct lth_spool spool;
	uint64_t offset;
	char digest[LTH_DIGEST_TEXT];
};

static void keep_cut(uv_work_t *base)
{
	struct cut *cut = base->data;
	lth_partial_keep(cut->store, &cut->spool, cut->digest, cut->offset);
}

static void after_cut(uv_work_t *base, int status)
{
	struct cut *cut = base->data;
	(void)status;
	lth_spool_discard(&cut->spool);
	free(cut);
}

static void name_as_blob(struct lth_request *request);

void lth_blob_keep_cut(struct lth_request *request)
{
	uint64_t first = 0, last, total;
	const char *range = lth_request_header(request, "Content-Range");
	if (strncmp(request->route->path, "/cas/", 5) == 0)
		name_as_blob(request);
	/* fewer than that are sent again as fast */
	if (request->spool.fd < 0 || request->spool.size <= LTH_SPOOL_MEMORY || !lth_digest_valid(request->argument) ||
	    (range && !lth_content_range_parse(range, &first, &last, &total)))
		return;
	struct cut *cut = calloc(1, sizeof(*cut));
	if (!cut)
		return;
	cut->base.data = cut;
	cut->store = &request->server->store;
	cut->spool = request->spool;
	cut->offset = first;
	memcpy(cut->digest, request->argument, sizeof(cut->digest)); /* valid: of just this length */
	request->spool = (struct lth_spool){.fd = -1};
	if (request->server->stopping) /* its loop has ended: here and now, or never */
		keep_cut(&cut->base);
	else if (uv_queue_work(request->server->loop, &cut->base, keep_cut, after_cut) == 0)
		return;
	after_cut(&cut->base, 0);
}

/* --- other names */
/* Bazel's HTTP cache protocol names a blob by the hex digits alone. */
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

static void reply_no_result(struct lth_request *request, const char *found)
{
	struct lth_diag diag = {0};
	lth_diag_fail(&diag, LTH_NOT_FOUND, request->argument, NULL, NULL, "%s", found);
	lth_reply_problem(request, &diag, NULL);
}

/* Bazel's /ac/ maps a digest of an action to its result: ours are result documents by action key. They come from
 * compiles only, so that there is no PUT. */
void lth_route_ac_get(struct lth_request *request)
{
	struct lth_server *server = request->server;
	name_as_blob(request);
	struct lth_answer *answer = lth_digest_valid(request->argument)
					    ? lth_answers_find(&server->answers, &server->store, request->argument)
					    : NULL;
	if (!answer) {
		reply_no_result(request, "no result of this action key");
		return;
	}
	lth_deliver_answer(request, answer, "hit");
	lth_answer_release(&answer);
}

void lth_route_result(struct lth_request *request)
{
	struct lth_answer *answer = lth_answers_by_id(&request->server->store, request->argument);
	if (!answer) {
		reply_no_result(request, "no result of this id");
		return;
	}
	lth_deliver_answer(request, answer, "hit");
	lth_answer_release(&answer);
}

void lth_route_timeline(struct lth_request *request)
{
	struct lth_answer *answer = lth_answers_by_id(&request->server->store, request->argument);
	if (!answer) {
		reply_no_result(request, "no result of this id");
		return;
	}
	lth_deliver_timeline(request, answer);
	lth_answer_release(&answer);
}
