/* A request from its header to the end of its answer. A rule of libmicrohttpd shapes this file: no reply while upload
 * data is pending, so that a body that went wrong is drained to a small cap. How requests wait is in waiting.c. */
#include "daemon/http.h"
#include "daemon/negotiate.h"
#include "runtime/base/io.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { DRAIN_BYTES = 1 << 20 };

/* --- what a request says */
const char *lth_request_header(const struct lth_request *request, const char *name)
{
	return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

const char *lth_request_argument(const struct lth_request *request, const char *name)
{
	return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, name);
}

struct visit {
	bool (*visit)(void *context, const char *name, const char *value);
	void *context;
};

static enum MHD_Result on_argument(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
	const struct visit *visit = context;
	(void)kind;
	return visit->visit(visit->context, name, value ? value : "") ? MHD_YES : MHD_NO;
}

void lth_request_arguments(const struct lth_request *request,
			   bool (*visit)(void *context, const char *name, const char *value), void *context)
{
	struct visit both = {visit, context};
	MHD_get_connection_values(request->connection, MHD_GET_ARGUMENT_KIND, on_argument, &both);
}

bool lth_request_wants_no_cache(const struct lth_request *request)
{
	const char *control = lth_request_header(request, "Cache-Control");
	return control && (strcasestr(control, "no-cache") || strcasestr(control, "no-store"));
}

/* Letters that can stand in a log line and in JSON as they are. */
static bool is_plain(const char *text)
{
	for (; *text; text++)
		if (*text < 0x21 || *text > 0x7e || *text == '"' || *text == '\\')
			return false;
	return true;
}

/* Of a Unix socket: the user at its other end. */
static void peer_name(const struct lth_request *request, char *out_name, size_t size)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);
	if (request->socket && getsockopt(request->socket->fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0)
		snprintf(out_name, size, "uid:%lu", (unsigned long)peer.uid);
}

void lth_request_client(const struct lth_request *request, char *out_name, size_t size)
{
	const char *name = lth_request_header(request, "Lathe-Client");
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	snprintf(out_name, size, "-");
	if (request->client[0])
		snprintf(out_name, size, "%s", request->client); /* credentials say more than a header */
	else if (name && *name && strlen(name) < size && is_plain(name))
		snprintf(out_name, size, "%s", name);
	else if (info && info->client_addr && info->client_addr->sa_family == AF_UNIX)
		peer_name(request, out_name, size);
	else if (info && info->client_addr)
		getnameinfo(info->client_addr,
			    info->client_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
								    : sizeof(struct sockaddr_in6),
			    out_name, (socklen_t)size, NULL, 0, NI_NUMERICHOST);
}

void lth_request_trace(const struct lth_request *request, char *out_trace, size_t size)
{
	const char *trace = lth_request_header(request, "traceparent");
	bool good = trace && strlen(trace) < size && strspn(trace, "0123456789abcdef-") == strlen(trace);
	snprintf(out_trace, size, "%s", good ? trace : "");
}

/* --- the header has arrived */
static uint64_t announced_bytes(const struct lth_request *request, bool *out_known)
{
	const char *length = lth_request_header(request, "Content-Length");
	*out_known = length != NULL;
	return length ? strtoull(length, NULL, 10) : 0;
}

static enum lth_code check_origin(const struct lth_request *request, struct lth_diag *diag)
{
	const char *origin = lth_request_header(request, "Origin");
	if (lth_origin_allowed(origin, lth_request_header(request, "Host"), request->server->loopback))
		return LTH_OK;
	return lth_diag_fail(diag, LTH_FORBIDDEN, "Origin", "the daemon's own page, or a client that is no web page",
			     NULL, "a request from %s", origin);
}

/* Who is it, and may they? */
static enum lth_code check_role(struct lth_request *request, struct lth_diag *diag)
{
	static const char *const names[] = {"open", "read", "submit", "admin"};
	const struct lth_server *server = request->server;
	enum lth_role wanted = request->route->role, has = LTH_ROLE_OPEN;
	request->role = LTH_ROLE_ADMIN;
	if (!server->tokens.count && !server->config.tls_client_ca[0])
		return LTH_OK;
	const struct lth_token *token = lth_tokens_find(&server->tokens, lth_request_header(request, "Authorization"));
	if (token) {
		has = token->role;
		snprintf(request->client, sizeof(request->client), "%s", token->name);
	} else if (lth_tls_client(request, request->client, sizeof(request->client))) {
		has = LTH_ROLE_SUBMIT;
	}
	request->role = has;
	if (has >= wanted)
		return LTH_OK;
	if (has == LTH_ROLE_OPEN)
		return lth_diag_fail(diag, LTH_UNAUTHORIZED, "Authorization",
				     "a bearer token of the daemon's token file", NULL, "none that is valid");
	return lth_diag_fail(diag, LTH_FORBIDDEN, "Authorization", names[wanted], NULL, "the role %s", names[has]);
}

/* Decides from the header alone whether the body may come: a client that waits for 100 Continue then sends nothing. */
static enum lth_code check_body(struct lth_request *request, struct lth_diag *diag)
{
	const struct lth_config *config = &request->server->config;
	bool known, chunked = lth_request_header(request, "Transfer-Encoding") != NULL;
	uint64_t bytes = announced_bytes(request, &known);
	if (request->route->body == LTH_BODY_NONE) {
		if (bytes || chunked)
			return lth_diag_fail(diag, LTH_TOO_LARGE, "body", "no body", NULL, "a body for %s %s",
					     request->route->method, request->route->path);
		return LTH_OK;
	}
	const char *encoding = lth_request_header(request, "Content-Encoding");
	if (encoding && strcasecmp(encoding, "identity") != 0)
		return lth_diag_fail(diag, LTH_UNSUPPORTED_MEDIA, "Content-Encoding", "a body that is not compressed", NULL,
				     "%s", encoding);
	enum lth_content content = lth_content_type(lth_request_header(request, "Content-Type"));
	if (request->route->body == LTH_BODY_MODEL && (content == LTH_CONTENT_OTHER || content == LTH_CONTENT_CSV))
		return lth_diag_fail(diag, LTH_UNSUPPORTED_MEDIA, "Content-Type",
				     "application/octet-stream, application/onnx or application/json", NULL, "%s",
				     lth_request_header(request, "Content-Type"));
	request->body_is_json = request->route->body == LTH_BODY_MODEL && content == LTH_CONTENT_JSON;
	request->body_limit = request->body_is_json ? config->json_limit_bytes : config->body_limit_bytes;
	if (!known && !chunked)
		return lth_diag_fail(diag, LTH_LENGTH_REQUIRED, "body", "Content-Length, or chunked encoding", NULL,
				     "neither");
	if (bytes > request->body_limit)
		return lth_diag_fail(diag, LTH_TOO_LARGE, "body", NULL,
				     request->body_is_json ? "PUT weights to /v1/blobs and name them by digest"
							   : "raise lathed's body-limit-bytes",
				     "%llu bytes, more than the limit of %llu", (unsigned long long)bytes,
				     (unsigned long long)request->body_limit);
	if (!request->body_is_json)
		return lth_spool_begin(&request->server->store, &request->spool, diag);
	return LTH_OK;
}

static void begin(struct lth_request *request, const char *method, const char *path)
{
	struct lth_diag diag = {0};
	lth_routes_match(request, method, path);
	if (!request->route)
		return;
	enum lth_code code = check_origin(request, &diag);
	if (code == LTH_OK)
		code = check_role(request, &diag);
	if (code == LTH_OK)
		code = check_body(request, &diag);
	if (code == LTH_OK)
		return;
	lth_reply_problem(request, &diag, NULL);
	if (code == LTH_UNAUTHORIZED)
		lth_reply_header(request, "WWW-Authenticate", "Bearer realm=\"lathe\"");
}

/* --- the body arrives. False cuts the connection. */
static bool take_body(struct lth_request *request, const char *data, size_t size)
{
	request->body_bytes += size;
	request->server->metrics.values[LTH_METRIC_BODY_BYTES] += size;
	if (request->body_bytes > request->body_limit && request->diag.code == LTH_OK)
		lth_diag_fail(&request->diag, LTH_TOO_LARGE, "body", NULL, NULL, "more bytes than the limit of %llu",
			      (unsigned long long)request->body_limit);
	if (request->diag.code != LTH_OK)
		return request->body_bytes < request->body_limit ||
		       request->body_bytes - request->body_limit < DRAIN_BYTES;
	if (!request->body_is_json)
		(void)!lth_spool_append(&request->spool, data, size,
					&request->diag); /* the diag tells, once all is drained */
	else
		lth_buf_append(&request->text, data, size);
	if (!lth_buf_ok(&request->text))
		lth_diag_fail(&request->diag, LTH_OUT_OF_MEMORY, "body", NULL, NULL, "%zu bytes", request->text.size);
	return true;
}

static enum MHD_Result send_reply(struct lth_request *request)
{
	if (!request->response)
		return MHD_NO;
	enum MHD_Result result = MHD_queue_response(request->connection, request->status, request->response);
	lth_reply_drop(request);
	return result;
}

static struct lth_request *new_request(struct lth_server *server, struct MHD_Connection *connection)
{
	struct lth_request *request = calloc(1, sizeof(*request));
	if (!request)
		return NULL;
	request->server = server;
	request->connection = connection;
	request->spool.fd = -1;
	request->started_ns = lth_now_ns();
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	request->socket = info ? info->socket_context : NULL;
	if (request->socket)
		request->socket->request = request;
	return request;
}

enum MHD_Result lth_http_request(void *server, struct MHD_Connection *connection, const char *url, const char *method,
				 const char *version, const char *data, size_t *size, void **state)
{
	struct lth_request *request = *state;
	(void)version;
	if (!request) {
		request = *state = new_request(server, connection);
		if (!request)
			return MHD_NO;
		begin(request, method, url);
		return request->response ? send_reply(request) : MHD_YES;
	}
	if (*size) {
		bool go_on = take_body(request, data, *size);
		*size = 0;
		return go_on ? MHD_YES : MHD_NO;
	}
	if (!request->dispatched) {
		request->dispatched = true;
		if (request->diag.code != LTH_OK)
			lth_reply_problem(request, &request->diag, NULL);
		else
			request->route->handler(request);
	}
	if (request->response)
		return send_reply(request);
	return request->suspended ? MHD_YES : MHD_NO;
}

/* --- the end */
struct drop {
	uv_work_t work;
	struct lth_spool spool;
};

static void run_drop(uv_work_t *work)
{
	struct drop *drop = work->data;
	lth_spool_discard(&drop->spool);
}

static void after_drop(uv_work_t *work, int status)
{
	(void)status;
	free(work->data);
}

void lth_request_drop_body(struct lth_request *request)
{
	bool large = request->spool.fd >= 0 && !request->server->stopping;
	struct drop *drop = large ? calloc(1, sizeof(*drop)) : NULL;
	if (drop) {
		drop->work.data = drop;
		drop->spool = request->spool;
		if (uv_queue_work(request->server->loop, &drop->work, run_drop, after_drop) == 0) {
			request->spool = (struct lth_spool){.fd = -1};
			return;
		}
		free(drop);
	}
	lth_spool_discard(&request->spool);
}

static void log_request(const struct lth_request *request)
{
	char ms[32], status[16];
	if (request->server->log.threshold > LTH_LOG_DEBUG)
		return; /* printing is a tenth of a cached answer's time */
	snprintf(ms, sizeof(ms), "%.3f", (double)(lth_now_ns() - request->started_ns) * 1e-6);
	snprintf(status, sizeof(status), "%u", request->status);
	lth_log_event(&request->server->log, LTH_LOG_DEBUG, NULL, "request", "route",
		      lth_routes_name(request->route_number), "status", status, "ms", ms, NULL);
}

void lth_http_completed(void *context, struct MHD_Connection *connection, void **state,
			enum MHD_RequestTerminationCode why)
{
	struct lth_server *server = context;
	struct lth_request *request = *state;
	(void)connection;
	(void)why;
	if (!request)
		return;
	*state = NULL;
	lth_jobs_leave(server->jobs, &request->waiter);
	lth_jobs_leave_place(server->jobs, &request->place);
	lth_request_stop_timer(request);
	lth_http_stop_watching(request);
	lth_metrics_answer(&server->metrics, request->route_number, request->status);
	lth_metrics_time(&server->metrics, LTH_HISTOGRAM_REQUEST, lth_now_ns() - request->started_ns);
	log_request(request);
	if (request->socket) {
		request->socket->request = NULL;
		request->socket->quiet_since_ns = lth_now_ns();
	}
	lth_reply_drop(request);
	if (request->state)
		request->free_state(request->state);
	if (!request->dispatched && request->route && request->route->body == LTH_BODY_BLOB &&
	    request->diag.code == LTH_OK)
		lth_blob_keep_cut(request);
	lth_request_drop_body(request);
	lth_buf_free(&request->text);
	lth_buf_free(&request->later.headers);
	free(request);
}
