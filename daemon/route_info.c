/* What the daemon says about itself: the workers' tables, versions, health, metrics, the interface, the page. */
#include <config.h>
#include "daemon/embedded.h"
#include "daemon/server.h"
#include "runtime/base/io.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void reply_table(struct lth_request *request, const char *name)
{
	if (!lth_request_has_description(request))
		return;
	json_t *table = json_object_get(request->server->description.root, name);
	lth_reply_json(request, 200,
		       json_pack("{s:s, s:O}", "build", request->server->description.build, name,
				 table ? table : json_null()));
}

void lth_route_passes(struct lth_request *request)
{
	reply_table(request, "passes");
}

void lth_route_ops(struct lth_request *request)
{
	reply_table(request, "ops");
}

void lth_route_targets(struct lth_request *request)
{
	reply_table(request, "targets");
}

void lth_route_options(struct lth_request *request)
{
	reply_table(request, "options");
}

static json_t *copy_of(json_t *value)
{
	return value ? json_incref(value) : json_null();
}

void lth_route_version(struct lth_request *request)
{
	const struct lth_server *server = request->server;
	const struct lth_config *config = &server->config;
	const json_t *layers = lth_pool_layers(server->pool);
	json_t *root = server->description.root;
	lth_reply_json(
		request, 200,
		json_pack(
			"{s:s, s:{s:o, s:o, s:o}, s:{s:s, s:s, s:s}, s:o, s:{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}}",
			"lathed", PACKAGE_VERSION, "worker", "version", copy_of(json_object_get(root, "version")),
			"llvm", copy_of(json_object_get(root, "llvm")), "build",
			copy_of(json_object_get(root, "build")), "libraries", "libmicrohttpd", MHD_get_version(),
			"libuv", uv_version_string(), "jansson", jansson_version_str(), "sandbox",
			layers ? json_deep_copy(layers) : json_array(), "limits", "workers",
			(json_int_t)config->workers, "worker_memory_bytes", (json_int_t)config->worker_memory_bytes,
			"memory_budget_bytes", (json_int_t)config->memory_budget_bytes, "queue",
			(json_int_t)config->queue_limit, "job_timeout_ms", (json_int_t)config->job_timeout_ms,
			"body_bytes", (json_int_t)config->body_limit_bytes, "json_bytes",
			(json_int_t)config->json_limit_bytes, "connections", (json_int_t)config->connections));
}

/* healthz?deep=1 also writes to the store, durably, and reads back what it wrote. */
static void try_store(struct lth_request *request)
{
	static const char text[] = "lathe: the store can be written and read\n";
	char digest[LTH_DIGEST_TEXT], *data;
	size_t size;
	struct lth_store *store = &request->server->store;
	if (lth_store_put(store, text, sizeof(text) - 1, digest, &request->diag) == LTH_OK &&
	    lth_store_write_entry(store, "tmp", "health", text, sizeof(text) - 1, &request->diag) == LTH_OK &&
	    lth_store_read(store, digest, sizeof(text), &data, &size, &request->diag) == LTH_OK)
		free(data);
	lth_store_remove_entry(store, "tmp", "health");
}

static void after_try(struct lth_request *request)
{
	unsigned idle, busy;
	lth_pool_count(request->server->pool, &idle, &busy);
	if (request->diag.code == LTH_OK && idle + busy == 0)
		lth_diag_fail(&request->diag, LTH_BUSY, "workers", NULL, NULL, "no worker is alive");
	if (request->diag.code == LTH_OK && lth_jobs_stuck(request->server->jobs))
		lth_diag_fail(&request->diag, LTH_INTERNAL, "jobs", NULL, NULL,
			      "a job that does not end at its deadline");
	if (request->diag.code != LTH_OK)
		lth_reply_problem(request, &request->diag, NULL);
	else
		lth_reply_json(
			request, 200,
			json_pack("{s:s, s:s, s:i}", "status", "ok", "store", "ok", "workers", (int)(idle + busy)));
}

void lth_route_healthz(struct lth_request *request)
{
	if (lth_request_argument(request, "deep")) {
		lth_request_work(request, try_store, after_try);
		return;
	}
	static const char text[] = "{\"status\":\"ok\"}\n";
	lth_reply_static(request, 200, "application/json", text, sizeof(text) - 1);
}

/* Ready: a worker has introduced itself, some are alive, and the daemon is not draining. */
void lth_route_readyz(struct lth_request *request)
{
	const struct lth_server *server = request->server;
	struct lth_diag diag = {0};
	unsigned idle, busy, queued, alive = lth_pool_count(server->pool, &idle, &busy);
	lth_jobs_in_flight(server->jobs, &queued);
	if (server->draining)
		lth_diag_fail(&diag, LTH_BUSY, "daemon", NULL, NULL, "a daemon that is shutting down");
	else if (!server->description.root || idle + busy == 0)
		lth_diag_fail(&diag, LTH_BUSY, "workers", NULL, NULL, "no worker is ready (%u are starting)", alive);
	if (diag.code != LTH_OK) {
		lth_reply_problem(request, &diag, NULL);
		return;
	}
	lth_reply_json(request, 200,
		       json_pack("{s:s, s:i, s:i, s:i}", "status", "ready", "workers_idle", (int)idle, "workers_busy",
				 (int)busy, "queued", (int)queued));
}

/* Gauges that nobody sets as they change. */
static void set_gauges(struct lth_server *server)
{
	unsigned idle;
	uint64_t *values = server->metrics.values;
	lth_pool_count(server->pool, &idle, NULL);
	values[LTH_METRIC_WORKERS_READY] = idle;
	values[LTH_METRIC_JOBS_PREDICTED] = lth_jobs_running_bytes(server->jobs);
	values[LTH_METRIC_MEMORY_BUDGET] = server->config.memory_budget_bytes;
	values[LTH_METRIC_STORE_BUDGET] = server->config.store_budget_bytes;
	values[LTH_METRIC_RESIDENT] = lth_pool_resident_bytes((long)getpid());
	values[LTH_METRIC_START_TIME] = (uint64_t)time(NULL) - (lth_now_ns() - server->started_ns) / 1000000000;
}

void lth_route_metrics(struct lth_request *request)
{
	struct lth_buf text = {0};
	struct lth_server *server = request->server;
	set_gauges(server);
	lth_metrics_print(&server->metrics, lth_routes_name, &text);
	lth_reply_bytes(request, 200, "text/plain; version=0.0.4; charset=utf-8", text.data, text.size);
}

void lth_route_openapi(struct lth_request *request)
{
	lth_reply_static(request, 200, "application/yaml", lth_openapi_text, strlen(lth_openapi_text));
}

void lth_route_page(struct lth_request *request)
{
	lth_reply_static(request, 200, "text/html; charset=utf-8", lth_web_page, strlen(lth_web_page));
	lth_reply_header(
		request, "Content-Security-Policy",
		"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'");
}
