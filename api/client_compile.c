/* liblathe-client: blobs and compiles. Large bytes go by digest, so that a daemon that has them gets them no second
 * time. See lathe_client.h. */
#include "api/client.h"
#include "runtime/base/sha256.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LARGE_MODEL = 1 << 20, /* bytes above which asking first is cheaper than sending */
	UPLOAD_ATTEMPTS = 6    /* without progress: a quarter of a minute, in which a daemon restarts */
};

static int fail(struct lathe_problem *problem, enum lth_code code, const char *place, const char *found)
{
	struct lth_diag diag = {0};
	lth_diag_fail(&diag, code, place, NULL, NULL, "%s", found);
	return lathe_problem_set(problem, &diag, 0);
}

/* --- uploads */
struct upload {
	const char *bytes;
	size_t size;
	char path[32 + LTH_DIGEST_TEXT];
	uint64_t arrived; /* what the daemon has, by its last word */
	bool complete;
};

/* How far is it? */
static int ask(struct lathe_client *client, struct upload *upload, enum lth_link *out_link, struct lathe_problem *problem)
{
	struct lathe_call head = {.method = "HEAD", .path = upload->path};
	struct lathe_reply reply = {0};
	int code = lth_client_exchange(client, &head, out_link, &reply, problem);
	upload->complete = code == 0;
	if (reply.status != 404)
		return code;
	upload->arrived = reply.upload_offset < upload->size ? reply.upload_offset : 0;
	return 0;
}

/* Sends what the daemon lacks. */
static int send_rest(struct lathe_client *client, struct upload *upload, enum lth_link *out_link, struct lathe_problem *problem)
{
	char range[80];
	struct lathe_call put = {
		.method = "PUT",
		.path = upload->path,
		.body = upload->bytes + upload->arrived,
		.body_bytes = upload->size - upload->arrived,
		.type = "application/octet-stream",
		.content_range = upload->arrived ? range : NULL,
	};
	struct lathe_reply reply = {0};
	snprintf(range, sizeof(range), "bytes %llu-%llu/%llu", (unsigned long long)upload->arrived,
		 (unsigned long long)upload->size - 1, (unsigned long long)upload->size);
	int code = lth_client_exchange(client, &put, out_link, &reply, problem);
	upload->complete = code == 0;
	lathe_reply_free(&reply);
	if (reply.status == 416) /* another client went on with it meanwhile: ask again */
		*out_link = LTH_LINK_BROKEN;
	return code;
}

/* Goes on after a connection that broke, as long as each attempt or the few before it brought something. */
static int bring(struct lathe_client *client, struct upload *upload, struct lathe_problem *problem)
{
	bool began = false;
	enum lth_link link;
	for (int attempt = 0;; attempt++) {
		uint64_t before = upload->arrived;
		int code = ask(client, upload, &link, problem);
		if (upload->arrived > before)
			attempt = 0;
		began = began || link != LTH_LINK_REFUSED; /* a daemon that never answered will not soon */
		if (code == 0 && !upload->complete)
			code = send_rest(client, upload, &link, problem);
		if (upload->complete || link == LTH_LINK_HELD || !began || attempt >= UPLOAD_ATTEMPTS)
			return code;
		lth_client_pause(attempt); /* the daemon notices the end of a connection a moment later than we do */
	}
}

int lathe_client_upload(struct lathe_client *client, const void *bytes, size_t size, char out_digest[LATHE_DIGEST_TEXT],
			struct lathe_problem *problem)
{
	struct upload upload = {.bytes = bytes, .size = size};
	char digest[LTH_DIGEST_TEXT];
	lth_sha256_text(bytes, size, digest);
	snprintf(upload.path, sizeof(upload.path), "/v1/blobs/%s", digest);
	int code = bring(client, &upload, problem);
	if (code == 0)
		memcpy(out_digest, digest, LATHE_DIGEST_TEXT);
	return code;
}

int lathe_client_blob(struct lathe_client *client, const char *digest, struct lathe_reply *out_reply,
		      struct lathe_problem *problem)
{
	char path[32 + LTH_DIGEST_TEXT], got[LTH_DIGEST_TEXT];
	struct lathe_reply reply;
	if (!lth_digest_valid(digest))
		return fail(problem, LTH_INVALID_OPTION, digest, "no digest: sha256: and 64 lower-case hex digits");
	snprintf(path, sizeof(path), "/v1/blobs/%s", digest);
	struct lathe_call call = {.method = "GET", .path = path};
	int code = lathe_client_call(client, &call, &reply, problem);
	if (code != 0)
		return code;
	lth_sha256_text(reply.body ? reply.body : "", reply.bytes, got);
	if (strcmp(got, digest) != 0) {
		lathe_reply_free(&reply);
		return fail(problem, LTH_IO_ERROR, digest, "bytes that have another digest");
	}
	*out_reply = reply;
	return 0;
}

/* {"model": {"digest"}, "files": {name: digest}, "options"} after all of them are at the daemon. */
static int upload_all(struct lathe_client *client, const struct lathe_compile *compile, json_t **out_body,
		      struct lathe_problem *problem)
{
	char digest[LATHE_DIGEST_TEXT];
	json_t *options = compile->options ? json_loads(compile->options, JSON_REJECT_DUPLICATES, NULL) : json_object();
	if (!json_is_object(options)) {
		json_decref(options);
		return fail(problem, LTH_INVALID_JSON, "options", "no JSON object");
	}
	json_t *body = json_pack("{s:o}", "options", options), *files = json_object();
	int code = lathe_client_upload(client, compile->model, compile->model_bytes, digest, problem);
	json_object_set_new(body, "model", json_pack("{s:s}", "digest", digest));
	for (size_t i = 0; i < compile->num_files && code == 0; i++) {
		code = lathe_client_upload(client, compile->files[i].bytes, compile->files[i].size, digest, problem);
		json_object_set_new(files, compile->files[i].name, json_string(digest));
	}
	if (compile->num_files)
		json_object_set(body, "files", files);
	json_decref(files);
	if (code != 0) {
		json_decref(body);
		return code;
	}
	*out_body = body;
	return 0;
}

int lathe_client_compile(struct lathe_client *client, const struct lathe_compile *compile,
			 struct lathe_reply *out_reply, struct lathe_problem *problem)
{
	char *path, *text = NULL;
	json_t *body = NULL;
	bool by_digest = compile->model_bytes > LARGE_MODEL || compile->num_files || compile->options;
	struct lathe_call call = {
		.method = "POST",
		.body = compile->model,
		.body_bytes = compile->model_bytes,
		.type = "application/octet-stream",
		.accept = compile->accept ? compile->accept : "application/json",
		.prefer = compile->prefer,
		.no_cache = compile->no_cache,
	};
	if (by_digest) {
		int code = upload_all(client, compile, &body, problem);
		if (code != 0)
			return code;
		text = json_dumps(body, JSON_COMPACT);
		json_decref(body);
		if (!text)
			return fail(problem, LTH_OUT_OF_MEMORY, "client", "no memory for a request");
		call.body = text;
		call.body_bytes = strlen(text);
		call.type = "application/json";
	}
	bool has_query = compile->query && *compile->query;
	if (asprintf(&path, "/v1/compile%s%s", has_query ? "?" : "", has_query ? compile->query : "") < 0) {
		free(text);
		return fail(problem, LTH_OUT_OF_MEMORY, "client", "no memory for a request");
	}
	call.path = path;
	int code = lathe_client_call(client, &call, out_reply, problem);
	free(path);
	free(text);
	return code;
}
