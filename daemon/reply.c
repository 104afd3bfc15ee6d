/* Replies: bytes, files, JSON, problems, blobs with ranges and conditions. See server.h. */
#include "daemon/negotiate.h"
#include "daemon/problem.h"
#include "daemon/server.h"

#include <assert.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void lth_reply_drop(struct lth_request *request)
{
	if (request->answer)
		lth_answer_release(&request->answer);
	else if (request->response)
		MHD_destroy_response(request->response);
	request->response = NULL;
}

static void set(struct lth_request *request, unsigned status, const char *type, struct MHD_Response *response)
{
	lth_reply_drop(request);
	request->response = response;
	request->status = status;
	if (response && type)
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
}

void lth_reply_bytes(struct lth_request *request, unsigned status, const char *type, char *bytes, size_t size)
{
	static const char out_of_memory[] = "{\"type\":\"about:lathe:out-of-memory\",\"status\":500}\n";
	struct MHD_Response *response = NULL;
	if (bytes)
		response = MHD_create_response_from_buffer(size, bytes, MHD_RESPMEM_MUST_FREE);
	if (!response) {
		free(bytes);
		lth_reply_static(request, 500, "application/problem+json", out_of_memory, sizeof(out_of_memory) - 1);
		return;
	}
	set(request, status, type, response);
}

void lth_reply_static(struct lth_request *request, unsigned status, const char *type, const char *text, size_t size)
{
	void *bytes;
	memcpy(&bytes, &text, sizeof(bytes)); /* libmicrohttpd takes a plain pointer and does not write */
	set(request, status, type, MHD_create_response_from_buffer(size, bytes, MHD_RESPMEM_PERSISTENT));
}

void lth_reply_fd(struct lth_request *request, unsigned status, const char *type, int fd, uint64_t offset,
		  uint64_t size)
{
	struct MHD_Response *response = MHD_create_response_from_fd_at_offset64(size, fd, offset);
	if (!response)
		close(fd);
	set(request, status, type, response);
}

void lth_reply_json(struct lth_request *request, unsigned status, json_t *document)
{
	struct lth_buf text = {0};
	char *body = document ? json_dumps(document, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;
	json_decref(document);
	if (body)
		lth_buf_printf(&text, "%s\n", body);
	free(body);
	lth_reply_bytes(request, status, "application/json", text.data, text.size);
}

void lth_reply_problem(struct lth_request *request, const struct lth_diag *diag, const json_t *extra)
{
	struct lth_buf text = {0};
	char *body = lth_problem_text(diag, extra);
	if (body)
		lth_buf_printf(&text, "%s\n", body);
	free(body);
	lth_reply_bytes(request, (unsigned)lth_code_http(diag->code), "application/problem+json", text.data, text.size);
	if (diag->code == LTH_BUSY || diag->code == LTH_QUOTA) {
		char seconds[16];
		snprintf(seconds, sizeof(seconds), "%u",
			 request->server->jobs ? lth_jobs_retry_after(request->server->jobs) : 1);
		lth_reply_header(request, "Retry-After", seconds);
	}
}

void lth_reply_header(struct lth_request *request, const char *name, const char *value)
{
	if (request->later.waits) {
		lth_buf_append(&request->later.headers, name, strlen(name) + 1);
		lth_buf_append(&request->later.headers, value, strlen(value) + 1);
	} else if (request->response) {
		assert(!request->answer); /* others are being sent the same response */
		MHD_add_response_header(request->response, name, value);
	}
}

static void free_response(void *response)
{
	MHD_destroy_response(response);
}

void lth_reply_keep(struct lth_request *request, struct lth_answer *answer)
{
	if (!request->response || request->status != 200 || answer->reply)
		return;
	answer->reply = request->response;
	answer->free_reply = free_response;
	request->answer = lth_answer_share(answer);
}

bool lth_reply_kept(struct lth_request *request, struct lth_answer *answer)
{
	if (!answer->reply)
		return false;
	set(request, 200, NULL, answer->reply);
	request->answer = lth_answer_share(answer);
	return true;
}

static ssize_t on_read(void *context, uint64_t position, char *buffer, size_t size)
{
	struct lth_request *request = context;
	(void)position;
	int64_t count = request->gone ? -1 : request->read(request, buffer, size);
	if (count == 0)
		lth_request_suspend(request); /* a reader that returns 0 would be called again at once */
	return count < 0 ? MHD_CONTENT_READER_END_OF_STREAM : (ssize_t)count;
}

void lth_reply_stream(struct lth_request *request, const char *type,
		      int64_t (*read)(struct lth_request *request, char *buffer, size_t size))
{
	enum { BLOCK = 4096 };
	request->read = read;
	set(request, 200, type, MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, on_read, request, NULL));
}

static void blob_headers(struct lth_request *request, const char *etag)
{
	lth_reply_header(request, "ETag", etag);
	lth_reply_header(request, "Accept-Ranges", "bytes");
}

static void reply_verified(struct lth_request *request, const char *digest, const char *type)
{
	char etag[LTH_DIGEST_TEXT + 2], content_range[96];
	uint64_t size, first = 0, last;
	struct lth_diag diag = {0};
	int fd = lth_store_open_blob(&request->server->store, digest, &size);
	if (fd < 0) {
		lth_diag_fail(&diag, LTH_NOT_FOUND, digest, NULL, NULL, "no blob of this digest");
		lth_reply_problem(request, &diag, NULL);
		return;
	}
	snprintf(etag, sizeof(etag), "\"%s\"", digest);
	if (lth_etag_listed(lth_request_header(request, "If-None-Match"), etag)) {
		close(fd);
		lth_reply_static(request, 304, NULL, "", 0);
		blob_headers(request, etag);
		return;
	}
	const char *range = lth_request_header(request, "Range"), *condition = lth_request_header(request, "If-Range");
	if (condition && strcmp(condition, etag) != 0)
		range = NULL;
	switch (lth_range_parse(range, size, &first, &last)) {
	case LTH_RANGE_WHOLE: lth_reply_fd(request, 200, type, fd, 0, size); break;
	case LTH_RANGE_PART:
		lth_reply_fd(request, 206, type, fd, first, last - first + 1);
		snprintf(content_range, sizeof(content_range), "bytes %llu-%llu/%llu", (unsigned long long)first,
			 (unsigned long long)last, (unsigned long long)size);
		lth_reply_header(request, "Content-Range", content_range);
		break;
	default:
		close(fd);
		lth_diag_fail(&diag, LTH_BAD_RANGE, digest, NULL, NULL, "the range '%s' of %llu bytes", range,
			      (unsigned long long)size);
		lth_reply_problem(request, &diag, NULL);
		snprintf(content_range, sizeof(content_range), "bytes */%llu", (unsigned long long)size);
		lth_reply_header(request, "Content-Range", content_range);
		return;
	}
	blob_headers(request, etag);
}

static void verify(struct lth_request *request)
{
	(void)!lth_store_verify(&request->server->store, request->later.digest, &request->diag);
}

static void after_verify(struct lth_request *request)
{
	const struct lth_buf *headers = &request->later.headers;
	request->later.waits = false;
	if (request->diag.code != LTH_OK || !lth_buf_ok(headers)) {
		lth_diag_fail(&request->diag, LTH_OUT_OF_MEMORY, "headers", NULL, NULL, "no memory"); /* the first wins */
		lth_reply_problem(request, &request->diag, NULL);
		return;
	}
	reply_verified(request, request->later.digest, request->later.type);
	for (size_t at = 0; at < headers->size;) {
		const char *name = headers->data + at, *value = name + strlen(name) + 1;
		lth_reply_header(request, name, value);
		at += strlen(name) + strlen(value) + 2;
	}
}

void lth_reply_blob(struct lth_request *request, const char *digest, const char *type)
{
	if (lth_store_is_verified(&request->server->store, digest) || !lth_store_has(&request->server->store, digest)) {
		reply_verified(request, digest, type);
		return;
	}
	request->later.waits = true;
	request->later.type = type;
	snprintf(request->later.digest, sizeof(request->later.digest), "%s", digest);
	lth_request_work(request, verify, after_verify);
	if (request->response) /* no memory for the work */
		request->later.waits = false;
}
