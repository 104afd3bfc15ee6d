/* Fuzz target: a request as the daemon reads it before any worker sees it. The first byte chooses: header values, a method
 * and a path, or the body of a compile, JSON or raw, which goes through the route's own handler up to admission: a queue
 * that is closed refuses what everything before has let through. */
#include "daemon/negotiate.h"
#include "daemon/server.h"
#include "tests/fuzz/fuzz_daemon.h"

#include <string.h>

static void headers(const char *text)
{
	uint64_t first, last, total;
	if (lth_range_parse(text, 1000, &first, &last) == LTH_RANGE_PART && (first > last || last >= 1000))
		abort();
	if (lth_content_range_parse(text, &first, &last, &total) && (first > last || last >= total))
		abort();
	lth_accept(text);
	lth_content_type(text);
	lth_etag_listed(text, "\"sha256:0\"");
	lth_origin_allowed(text, text, true);
	lth_prefer_parse(text);
}

/* A request has a route or a reply, never both. */
static void path(struct lth_request *request, char *text)
{
	char *line = strchr(text, '\n');
	if (line)
		*line++ = 0;
	lth_routes_match(request, text, line ? line : "");
	if (!request->route == !request->response)
		abort();
	if (request->route && strlen(request->argument) >= sizeof(request->argument))
		abort();
	lth_routes_name(request->route_number);
}

/* Always refused in the end, with a reply. */
static void compile(struct lth_request *request, const char *text, size_t size, bool is_json)
{
	struct lth_server *server = request->server;
	request->body_is_json = is_json;
	lth_routes_match(request, "POST", "/v1/compile");
	if (is_json)
		lth_buf_append(&request->text, text, size);
	else if (lth_spool_begin(&server->store, &request->spool, &request->diag) != LTH_OK ||
		 lth_spool_append(&request->spool, text, size, &request->diag) != LTH_OK)
		abort();
	request->route->handler(request);
	if (!request->response || request->status < 400 || request->suspended)
		abort();
	if (request->state)
		request->free_state(request->state);
	lth_spool_discard(&request->spool);
	lth_buf_free(&request->text);
}

static void start(struct lth_server *server, uv_loop_t *loop)
{
	static char nowhere[] = "/nonexistent";
	uv_loop_init(loop);
	server->loop = loop;
	server->store.root = nowhere; /* every look-up finds nothing */
	server->config.memory_budget_bytes = UINT64_MAX;
	server->config.salt = strdup("");
	load_description(&server->description);
	server->jobs = lth_jobs_create(loop, &server->config, &server->store, &server->answers, &server->metrics,
				       &server->log);
	lth_jobs_drain(server->jobs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct lth_server server;
	static uv_loop_t loop;
	struct lth_request request = {.server = &server, .client = "fuzz", .spool = {.fd = -1}};
	if (!server.loop)
		start(&server, &loop);
	char *text = size ? malloc(size) : NULL;
	if (!text)
		return 0;
	memcpy(text, data + 1, size - 1);
	text[size - 1] = 0;
	switch (data[0] % 4) {
	case 0: path(&request, text); break;
	case 1: compile(&request, text, size - 1, true); break;
	case 2: headers(text); break;
	default: compile(&request, text, size - 1, false); break;
	}
	lth_reply_drop(&request);
	free(text);
	return 0;
}
