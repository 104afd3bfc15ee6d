/* POST /v1/plan and /v1/plan/check: the body goes to a worker as it came; the planner there parses it. */
#include "daemon/negotiate.h"
#include "daemon/server.h"
#include "runtime/base/wire.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_whole_number(const char *text)
{
	return *text && strspn(text, "0123456789") == strlen(text) && strlen(text) < 19;
}

static bool on_argument(void *context, const char *name, const char *value)
{
	json_t *number = is_whole_number(value) ? json_integer(strtoll(value, NULL, 10)) : json_string(value);
	json_object_set_new(context, name, number ? number : json_string("?"));
	return true;
}

static bool looks_like_csv(const struct lth_request *request)
{
	enum lth_content content = lth_content_type(lth_request_header(request, "Content-Type"));
	if (content == LTH_CONTENT_CSV || content == LTH_CONTENT_JSON)
		return content == LTH_CONTENT_CSV;
	return request->spool.head != '{'; /* curl's default type says nothing */
}

/* A job that may outlive this process needs its body as a blob. */
static void free_spec(void *state)
{
	struct lth_job_spec *spec = state;
	json_decref(spec->options);
	free(spec);
}

static void publish_body(struct lth_request *request)
{
	struct lth_job_spec *spec = request->state;
	(void)!lth_spool_publish(&request->server->store, &request->spool, spec->model, &request->diag);
}

static void submit_kept(struct lth_request *request)
{
	struct lth_job_spec *kept = request->state, spec = *kept;
	if (request->diag.code != LTH_OK) {
		lth_reply_problem(request, &request->diag, NULL);
		return;
	}
	kept->options = NULL;
	lth_deliver_submit(request, &spec);
}

static void keep_body(struct lth_request *request, struct lth_job_spec *spec)
{
	struct lth_diag diag = {0};
	struct lth_job_spec *kept = calloc(1, sizeof(*kept));
	if (!kept) {
		json_decref(spec->options);
		lth_diag_fail(&diag, LTH_OUT_OF_MEMORY, "plan", NULL, NULL, "a job");
		lth_reply_problem(request, &diag, NULL);
		return;
	}
	*kept = *spec;
	lth_spool_digest(&request->spool, kept->model);
	request->state = kept;
	request->free_state = free_spec;
	lth_request_work(request, publish_body, submit_kept);
}

static void submit(struct lth_request *request, enum lth_job_kind kind)
{
	struct lth_diag diag = {0};
	struct lth_job_spec spec = {.kind = kind, .payload_fd = -1, .options = json_object()};
	const json_t *asked;
	if (!request->spool.size) {
		lth_diag_fail(&diag, LTH_INVALID_REQUEST, "body", "buffers as JSON or CSV", NULL, "an empty body");
		lth_reply_problem(request, &diag, NULL);
		json_decref(spec.options);
		return;
	}
	lth_request_arguments(request, on_argument, spec.options);
	spec.timeout_ms = request->server->config.job_timeout_ms;
	asked = json_object_get(spec.options, "timeout_ms");
	if (asked && json_integer_value(asked) > 0 && (uint64_t)json_integer_value(asked) < spec.timeout_ms)
		spec.timeout_ms = (uint64_t)json_integer_value(asked);
	json_object_del(spec.options, "timeout_ms"); /* the daemon's; the planner knows time_limit_ms */
	spec.csv = looks_like_csv(request);
	spec.payload_bytes = request->spool.size;
	lth_request_client(request, spec.client, sizeof(spec.client));
	lth_request_trace(request, spec.trace, sizeof(spec.trace));
	if (lth_jobs_take_place(request->server->jobs, &spec, &request->place, &diag) != LTH_OK) {
		lth_deliver_refusal(request, &diag);
		json_decref(spec.options);
		return;
	}
	if (lth_request_header(request, "Prefer")) {
		keep_body(request, &spec);
		return;
	}
	spec.payload_fd = request->spool.fd >= 0 ? dup(request->spool.fd)
						 : lth_wire_memfd("lathe-plan", request->spool.memory.data,
								  request->spool.memory.size);
	if (spec.payload_fd < 0) {
		lth_diag_fail(&diag, LTH_OUT_OF_MEMORY, "plan", NULL, NULL, "no descriptor for its body");
		lth_reply_problem(request, &diag, NULL);
		json_decref(spec.options);
		return;
	}
	lth_request_drop_body(request);
	lth_deliver_submit(request, &spec);
}

void lth_route_plan(struct lth_request *request)
{
	submit(request, LTH_JOB_PLAN);
}

void lth_route_plan_check(struct lth_request *request)
{
	submit(request, LTH_JOB_PLAN_CHECK);
}
