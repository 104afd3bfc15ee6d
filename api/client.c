/* liblathe-client: requests to a daemon over libcurl, with retries and problems. See lathe_client.h. One easy handle a
 * client is kept, and with it the connection. Thread rule: one thread a client. */
#include "api/client.h"
#include "runtime/base/buf.h"
#include "runtime/base/diag.h"
#include "runtime/base/io.h"

#include <curl/curl.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { STANDARD_RETRIES = 8, LOST_RETRIES = 2, CONNECT_SECONDS = 10, LONGEST_WAIT_SECONDS = 60 };

struct lathe_client {
	CURL *curl;
	char *server, *base, *socket; /* as given; the URL to put paths behind; path of a Unix socket or NULL */
	char *token, *ca_file, *cert_file, *key_file;
	int retries;
	void (*on_progress)(void *context, const struct lathe_progress *progress);
	void *context;
	uint64_t call_start_ns;
};

/* --- problems */
int lathe_problem_set(struct lathe_problem *problem, const struct lth_diag *diag, int status)
{
	int exit_code = lth_code_exit(diag->code);
	if (!problem)
		return exit_code;
	*problem = (struct lathe_problem){.exit_code = exit_code, .status = status};
	snprintf(problem->type, sizeof(problem->type), "%s", lth_code_slug(diag->code));
	snprintf(problem->place, sizeof(problem->place), "%s", diag->place);
	snprintf(problem->found, sizeof(problem->found), "%s", diag->found);
	snprintf(problem->expected, sizeof(problem->expected), "%s", diag->expected);
	snprintf(problem->advice, sizeof(problem->advice), "%s", diag->advice);
	lth_diag_line(diag, problem->text, sizeof(problem->text));
	return exit_code;
}

static const char *member(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "";
}

/* The code for a status whose body says nothing: something between us and the daemon answered. */
static enum lth_code code_by_status(long status)
{
	for (int i = 1; i < LTH_NUM_CODES; i++)
		if (lth_code_http((enum lth_code)i) == status)
			return (enum lth_code)i;
	return status >= 500 ? LTH_INTERNAL : LTH_INVALID_REQUEST;
}

static int problem_of_body(const struct lth_buf *text, int status, const char *url, struct lathe_problem *problem)
{
	static const char prefix[] = "about:lathe:";
	struct lth_diag diag = {0};
	json_t *body = json_loadb(text->data ? text->data : "", text->size, 0, NULL);
	const char *type = member(body, "type");
	enum lth_code code = LTH_NUM_CODES;
	if (strncmp(type, prefix, sizeof(prefix) - 1) == 0)
		code = lth_code_by_slug(type + sizeof(prefix) - 1);
	if (code == LTH_NUM_CODES || code == LTH_OK)
		lth_diag_fail(&diag, code_by_status(status), url, NULL, NULL, "HTTP status %d", status);
	else
		lth_diag_fail(&diag, code, member(body, "place"), member(body, "expected"), member(body, "advice"),
			      "%s", member(body, "found"));
	json_decref(body);
	return lathe_problem_set(problem, &diag, status);
}

static int out_of_memory(struct lathe_problem *problem)
{
	struct lth_diag diag = {0};
	lth_diag_fail(&diag, LTH_OUT_OF_MEMORY, "client", NULL, NULL, "no memory left");
	return lathe_problem_set(problem, &diag, 0);
}

/* --- clients */
static char *copy_or_environment(const char *text, const char *variable)
{
	const char *chosen = text ? text : variable ? getenv(variable) : NULL;
	return chosen && *chosen ? strdup(chosen) : NULL;
}

/* Where paths go: a URL without its last slash, and the socket of unix:PATH. */
static bool set_server(struct lathe_client *client, const char *server)
{
	client->server = copy_or_environment(server, "LATHE_SERVER");
	if (!client->server)
		client->server = strdup("http://127.0.0.1:8117");
	if (!client->server)
		return false;
	if (strncmp(client->server, "unix:", 5) == 0) {
		client->socket = strdup(client->server + 5);
		client->base = strdup("http://localhost");
		return client->socket && client->base;
	}
	bool has_scheme = strstr(client->server, "://");
	if (asprintf(&client->base, "%s%s", has_scheme ? "" : "http://", client->server) < 0) {
		client->base = NULL;
		return false;
	}
	size_t length = strlen(client->base);
	while (length && client->base[length - 1] == '/')
		client->base[--length] = 0;
	return true;
}

int lathe_client_create(const struct lathe_client_settings *settings, struct lathe_client **out_client,
			struct lathe_problem *problem)
{
	static const struct lathe_client_settings standard = {.retries = -1};
	struct lathe_client *client = calloc(1, sizeof(*client));
	if (!settings)
		settings = &standard;
	if (!client)
		return out_of_memory(problem);
	curl_global_init(CURL_GLOBAL_DEFAULT);
	client->curl = curl_easy_init();
	client->retries = settings->retries < 0 ? STANDARD_RETRIES : settings->retries;
	client->token = copy_or_environment(settings->token, "LATHE_TOKEN");
	client->ca_file = copy_or_environment(settings->ca_file, NULL);
	client->cert_file = copy_or_environment(settings->cert_file, NULL);
	client->key_file = copy_or_environment(settings->key_file, NULL);
	client->on_progress = settings->on_progress;
	client->context = settings->context;
	if (!client->curl || !set_server(client, settings->server)) {
		lathe_client_destroy(&client);
		return out_of_memory(problem);
	}
	*out_client = client;
	return 0;
}

void lathe_client_destroy(struct lathe_client **client)
{
	struct lathe_client *c = *client;
	if (!c)
		return;
	if (c->curl)
		curl_easy_cleanup(c->curl);
	free(c->server);
	free(c->base);
	free(c->socket);
	free(c->token);
	free(c->ca_file);
	free(c->cert_file);
	free(c->key_file);
	free(c);
	*client = NULL;
}

const char *lathe_client_server(const struct lathe_client *client)
{
	return client->server;
}

void lathe_reply_free(struct lathe_reply *reply)
{
	free(reply->body);
	*reply = (struct lathe_reply){0};
}

/* --- one exchange */
struct exchange {
	struct lathe_client *client;
	const struct lathe_call *call;
	struct lth_buf body;
	size_t sent;
	struct lathe_reply reply;
	struct curl_slist *headers;
	char error[CURL_ERROR_SIZE];
};

static size_t on_body(char *bytes, size_t size, size_t count, void *context)
{
	struct exchange *x = context;
	lth_buf_append(&x->body, bytes, size * count);
	return lth_buf_ok(&x->body) ? size * count : 0;
}

static size_t on_send(char *buffer, size_t size, size_t count, void *context)
{
	struct exchange *x = context;
	size_t left = x->call->body_bytes - x->sent, now = left < size * count ? left : size * count;
	if (now)
		memcpy(buffer, (const char *)x->call->body + x->sent, now);
	x->sent += now;
	return now;
}

/* libcurl sends again on a connection that turned out to be dead. */
static int on_seek(void *context, curl_off_t offset, int origin)
{
	struct exchange *x = context;
	if (origin != SEEK_SET || offset < 0 || (size_t)offset > x->call->body_bytes)
		return CURL_SEEKFUNC_CANTSEEK;
	x->sent = (size_t)offset;
	return CURL_SEEKFUNC_OK;
}

static void keep_header(const char *line, size_t size, const char *name, char *out, size_t capacity)
{
	size_t length = strlen(name);
	if (size < length || strncasecmp(line, name, length) != 0)
		return;
	line += length;
	size -= length;
	while (size && (*line == ' ' || *line == '\t')) {
		line++;
		size--;
	}
	while (size && (line[size - 1] == '\r' || line[size - 1] == '\n'))
		size--;
	snprintf(out, capacity, "%.*s", (int)size, line);
}

static size_t on_header(char *line, size_t size, size_t count, void *context)
{
	struct exchange *x = context;
	char offset[24] = "";
	keep_header(line, size * count, "Lathe-Job:", x->reply.job, sizeof(x->reply.job));
	keep_header(line, size * count, "Location:", x->reply.location, sizeof(x->reply.location));
	keep_header(line, size * count, "Upload-Offset:", offset, sizeof(offset));
	if (offset[0])
		x->reply.upload_offset = strtoull(offset, NULL, 10);
	return size * count;
}

static int on_progress(void *context, curl_off_t receive, curl_off_t received, curl_off_t send, curl_off_t sent)
{
	struct lathe_client *client = context;
	struct lathe_progress progress = {
		.sent_bytes = (uint64_t)sent,
		.send_bytes = (uint64_t)send,
		.received_bytes = (uint64_t)received,
		.receive_bytes = (uint64_t)receive,
		.seconds = (double)(lth_now_ns() - client->call_start_ns) * 1e-9,
	};
	client->on_progress(client->context, &progress);
	return 0;
}

static void add_header(struct exchange *x, const char *name, const char *value)
{
	char *line;
	if (!value || asprintf(&line, "%s: %s", name, value) < 0)
		return;
	struct curl_slist *list = curl_slist_append(x->headers, line);
	if (list)
		x->headers = list;
	free(line);
}

static void set_connection(const struct lathe_client *client)
{
	CURL *curl = client->curl;
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "lathe");
	if (client->socket)
		curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, client->socket);
	if (client->ca_file)
		curl_easy_setopt(curl, CURLOPT_CAINFO, client->ca_file);
	if (client->cert_file)
		curl_easy_setopt(curl, CURLOPT_SSLCERT, client->cert_file);
	if (client->key_file)
		curl_easy_setopt(curl, CURLOPT_SSLKEY, client->key_file);
	if (client->token) {
		curl_easy_setopt(curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
		curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, client->token);
	}
	if (client->on_progress) {
		curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
		curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
		curl_easy_setopt(curl, CURLOPT_XFERINFODATA, client);
	}
}

static void set_request(struct exchange *x, const char *url)
{
	CURL *curl = x->client->curl;
	const struct lathe_call *call = x->call;
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, x->error);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, x);
	curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(curl, CURLOPT_HEADERDATA, x);
	if (strcmp(call->method, "HEAD") == 0)
		curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
	else if (strcmp(call->method, "PUT") == 0 || strcmp(call->method, "POST") == 0) {
		curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
		curl_easy_setopt(curl, CURLOPT_READFUNCTION, on_send);
		curl_easy_setopt(curl, CURLOPT_READDATA, x);
		curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, on_seek);
		curl_easy_setopt(curl, CURLOPT_SEEKDATA, x);
		curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, (curl_off_t)call->body_bytes);
		curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, call->method);
	} else {
		curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, call->method);
	}
	add_header(x, "Content-Type", call->type);
	add_header(x, "Content-Range", call->content_range);
	add_header(x, "Accept", call->accept);
	add_header(x, "Prefer", call->prefer);
	if (call->no_cache)
		add_header(x, "Cache-Control", "no-cache");
	if (call->body_bytes < 64 * 1024) /* a refusal costs less than asking first */
		add_header(x, "Expect", "");
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, x->headers);
}

static void reset(struct exchange *x)
{
	lth_buf_free(&x->body);
	curl_slist_free_all(x->headers);
	x->headers = NULL;
	x->sent = 0;
	x->error[0] = 0;
	x->reply = (struct lathe_reply){0};
}

static int unreachable(const struct exchange *x, CURLcode result, struct lathe_problem *problem)
{
	struct lth_diag diag = {0};
	long error = 0;
	const char *found = x->error[0] ? x->error : curl_easy_strerror(result);
	bool refused = result == CURLE_COULDNT_CONNECT || result == CURLE_COULDNT_RESOLVE_HOST;
	if (result == CURLE_UNSUPPORTED_PROTOCOL || result == CURLE_URL_MALFORMAT) {
		lth_diag_fail(&diag, LTH_INVALID_OPTION, "server", "http://HOST:PORT, https://HOST:PORT or unix:PATH",
			      NULL, "'%s'", x->client->server);
		return lathe_problem_set(problem, &diag, 0);
	}
	curl_easy_getinfo(x->client->curl, CURLINFO_OS_ERRNO, &error);
	if (x->client->socket && refused && error) /* libcurl speaks of a host and a port there */
		found = strerror((int)error);
	lth_diag_fail(&diag, LTH_UNREACHABLE, x->client->server, NULL,
		      refused ? "start lathed, name its address with --server or LATHE_SERVER, or use --local" : NULL,
		      "%s", found);
	return lathe_problem_set(problem, &diag, 0);
}

static void wait_seconds(double seconds)
{
	struct timespec time = {.tv_sec = (time_t)seconds,
				.tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
	while (nanosleep(&time, &time) != 0 && errno == EINTR)
		;
}

static void wait_for_busy(const struct lathe_client *client, double seconds)
{
	struct lathe_progress progress = {
		.retry_after = seconds,
		.seconds = (double)(lth_now_ns() - client->call_start_ns) * 1e-9,
	};
	if (client->on_progress)
		client->on_progress(client->context, &progress);
	wait_seconds(seconds);
}

static double pause_of(int attempt)
{
	return 0.25 * (double)(1u << (attempt < 7 ? attempt : 7));
}

void lth_client_pause(int attempt)
{
	wait_seconds(pause_of(attempt));
}

/* Seconds to wait for a busy daemon; negative when it is not busy, or has been asked often enough. One that `was_there`
 * a moment ago and now refuses connections is being restarted. */
static double busy_seconds(const struct exchange *x, CURLcode result, int attempt, bool was_there)
{
	curl_off_t asked = 0;
	bool restarts = was_there && result == CURLE_COULDNT_CONNECT;
	bool says_busy = result == CURLE_OK && (x->reply.status == 429 || x->reply.status == 503);
	if ((!says_busy && !restarts) || attempt >= x->client->retries)
		return -1;
	curl_easy_getinfo(x->client->curl, CURLINFO_RETRY_AFTER, &asked);
	double wait = asked > 0 ? (double)asked : pause_of(attempt);
	return wait < LONGEST_WAIT_SECONDS ? wait : LONGEST_WAIT_SECONDS;
}

static CURLcode perform(struct exchange *x, const char *url)
{
	long status = 0;
	reset(x);
	curl_easy_reset(x->client->curl);
	set_connection(x->client);
	set_request(x, url);
	CURLcode result = curl_easy_perform(x->client->curl);
	curl_easy_getinfo(x->client->curl, CURLINFO_RESPONSE_CODE, &status);
	x->reply.status = (int)status;
	return result;
}

static enum lth_link link_after(CURLcode result)
{
	switch (result) {
	case CURLE_GOT_NOTHING:
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR:
	case CURLE_PARTIAL_FILE: return LTH_LINK_BROKEN;
	case CURLE_COULDNT_CONNECT: return LTH_LINK_REFUSED;
	default: return LTH_LINK_HELD;
	}
}

/* `lost_retries`: how often the same is sent again when the connection breaks before the answer. */
static int exchange(struct lathe_client *client, const struct lathe_call *call, int lost_retries, enum lth_link *out_link,
		    struct lathe_reply *out_reply, struct lathe_problem *problem)
{
	struct exchange x = {.client = client, .call = call};
	char *url;
	int code = 0, lost = 0, busy = 0;
	CURLcode result;
	*out_link = LTH_LINK_HELD;
	if (asprintf(&url, "%s%s", client->base, call->path) < 0)
		return out_of_memory(problem);
	client->call_start_ns = lth_now_ns();
	for (;;) {
		result = perform(&x, url);
		double wait = busy_seconds(&x, result, busy, busy || lost);
		if (wait >= 0) {
			wait_for_busy(client, wait);
			busy++;
		} else if (link_after(result) == LTH_LINK_BROKEN && lost < lost_retries) {
			lth_client_pause(lost++);
		} else {
			break;
		}
	}
	*out_link = link_after(result);
	*out_reply = x.reply;
	if (result != CURLE_OK)
		code = unreachable(&x, result, problem);
	else if (x.reply.status >= 400)
		code = problem_of_body(&x.body, x.reply.status, url, problem);
	if (code == 0) {
		out_reply->bytes = x.body.size;
		out_reply->body = x.body.data;
		x.body = (struct lth_buf){0};
	}
	free(url);
	reset(&x);
	return code;
}

int lth_client_exchange(struct lathe_client *client, const struct lathe_call *call, enum lth_link *out_link,
			struct lathe_reply *out_reply, struct lathe_problem *problem)
{
	return exchange(client, call, 0, out_link, out_reply, problem);
}

int lathe_client_call(struct lathe_client *client, const struct lathe_call *call, struct lathe_reply *out_reply,
		      struct lathe_problem *problem)
{
	struct lathe_reply reply;
	enum lth_link link;
	int code = exchange(client, call, LOST_RETRIES, &link, &reply, problem);
	if (code == 0)
		*out_reply = reply;
	return code;
}
