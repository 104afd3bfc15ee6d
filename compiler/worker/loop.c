/* The worker's loop: say what this build can do, then take jobs until the daemon closes its end. See worker.h for the
 * protocol. A job's views, descriptors and result are gone before the next job begins. */
#include "compiler/worker/worker.h"
#include "runtime/base/io.h"
#include "runtime/base/sha256.h"
#include "runtime/base/wire.h"

#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FD_REQUEST, FD_BUNDLE, FD_PAYLOAD, FD_FILES };
static const size_t REQUEST_LIMIT = 64u << 20;

struct worker {
	int fd;
	const char *kernel_cache;
	const struct lth_worker_functions *functions;
	struct lth_wire_message message;
};

static bool send_json(struct worker *worker, json_t *message, const int *fds, unsigned num_fds) /* takes `message` */
{
	char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
	json_decref(message);
	bool ok = text && lth_wire_send(worker->fd, text, strlen(text), fds, num_fds);
	free(text);
	return ok;
}

static int on_stage(void *context, const char *stage)
{
	return !send_json(context, json_pack("{s:s, s:s}", "event", "stage", "stage", stage), NULL, 0);
}

static void on_pass(void *context, const char *pass)
{
	send_json(context, json_pack("{s:s, s:s}", "event", "pass", "pass", pass), NULL, 0);
}

static bool send_failure(struct worker *worker, const struct lth_diag *diag)
{
	json_t *message = json_pack("{s:s, s:s}", "event", "failed", "slug", lth_code_slug(diag->code));
	const struct {
		const char *key, *text;
	} parts[] = {
		{"place", diag->place}, {"found", diag->found}, {"expected", diag->expected}, {"advice", diag->advice}};
	for (size_t i = 0; message && i < sizeof(parts) / sizeof(parts[0]); i++) {
		json_t *value = json_string(parts[i].text);
		if (!value) { /* a diagnostic may quote bytes of a hostile model; jansson refuses what is not UTF-8 */
			char clean[sizeof(diag->found)];
			size_t n = 0;
			for (const char *c = parts[i].text; *c; c++)
				clean[n++] = (char)(*c & 0x80 ? '?' : *c);
			clean[n] = 0;
			value = json_string(clean);
		}
		json_object_set_new(message, parts[i].key, value);
	}
	return send_json(worker, message, NULL, 0);
}

static const char *text_of(const json_t *request, const char *key)
{
	const char *text = json_string_value(json_object_get(request, key));
	return text ? text : "";
}

/* `place` is {"digest","hashed"}. A blob that was damaged on the disk is as good as none. */
static enum lth_code check_digest(const json_t *place, const struct lth_wire_view *view, struct lth_diag *diag)
{
	char digest[LTH_DIGEST_TEXT];
	const char *expected = text_of(place, "digest");
	if (json_is_true(json_object_get(place, "hashed")))
		return LTH_OK;
	lth_sha256_text(view->data, view->size, digest);
	if (strcmp(digest, expected) == 0)
		return LTH_OK;
	return lth_diag_fail(diag, LTH_MISSING_BLOB, expected, NULL, "PUT it to /v1/blobs again",
			     "a blob that was damaged on the disk: its digest is %s", digest);
}

/* Maps the files behind the payload; `views` and `files` have room for them all. */
static enum lth_code map_files(struct worker *worker, const json_t *places, struct lth_wire_view *views,
			       struct lth_compile_file *files, size_t *out_mapped, struct lth_diag *diag)
{
	size_t count = json_array_size(places);
	if (count + FD_FILES != worker->message.num_fds)
		return lth_diag_fail(diag, LTH_INTERNAL, "worker protocol", NULL, NULL, "%zu files for %u descriptors",
				     count, worker->message.num_fds);
	for (size_t i = 0; i < count; i++) {
		const json_t *place = json_array_get(places, i);
		const char *name = text_of(place, "name");
		if (!lth_wire_map(worker->message.fds[FD_FILES + i], 0, &views[i]))
			return lth_diag_fail(diag, errno == ENOMEM ? LTH_OUT_OF_MEMORY : LTH_IO_ERROR, name, NULL, NULL,
					     "%s", strerror(errno));
		files[i] = (struct lth_compile_file){name, views[i].data, views[i].size};
		*out_mapped = i + 1;
		enum lth_code code = check_digest(place, &views[i], diag);
		if (code != LTH_OK)
			return code;
	}
	return LTH_OK;
}

static enum lth_code run_compile(struct worker *worker, const json_t *request, const struct lth_wire_view *model,
				 struct lth_compile_result *out_result, struct lth_diag *diag)
{
	struct lth_wire_view views[LTH_WIRE_FDS_MAX];
	struct lth_compile_file files[LTH_WIRE_FDS_MAX];
	size_t mapped = 0;
	const json_t *place = json_object_get(request, "model");
	enum lth_code code = check_digest(place, model, diag);
	if (code == LTH_OK)
		code = map_files(worker, json_object_get(request, "files"), views, files, &mapped, diag);
	json_int_t threads = json_integer_value(json_object_get(request, "threads"));
	json_int_t left_ms = json_integer_value(json_object_get(request, "left_ms"));
	if (code == LTH_OK) {
		struct lth_compile_request compile = {
			.model = model->data,
			.model_size = model->size,
			.model_digest = json_string_value(json_object_get(place, "digest")),
			.model_is_json = json_is_true(json_object_get(request, "model_is_json")),
			.files = files,
			.num_files = mapped,
			.options = json_object_get(request, "options"),
			.kernel_cache = worker->kernel_cache,
			.work_dir = text_of(request, "work_dir"),
			.deadline_ns = left_ms > 0 ? lth_now_ns() + (uint64_t)left_ms * 1000000 : 0,
			.jobs = threads > 0 && threads < 1024 ? (unsigned)threads : 1,
			.on_stage = on_stage,
			.on_pass = on_pass,
			.on_stage_context = worker,
		};
		code = worker->functions->compile(&compile, out_result, diag);
	}
	for (size_t i = 0; i < mapped; i++)
		lth_wire_unmap(&views[i]);
	return code;
}

static enum lth_code run_plan(struct worker *worker, const json_t *request, const char *kind,
			      const struct lth_wire_view *body, struct lth_compile_result *out_result,
			      struct lth_diag *diag)
{
	bool check = strcmp(kind, "plan_check") == 0;
	lth_worker_plan_fn plan = check ? worker->functions->plan_check : worker->functions->plan;
	if (!plan)
		return lth_diag_fail(diag, LTH_UNSUPPORTED, kind, NULL, NULL, "a build without a planner");
	on_stage(worker, check ? "check" : "plan");
	return plan(body->data, body->size, json_is_true(json_object_get(request, "csv")),
		    json_object_get(request, "options"), &out_result->document, diag);
}

static enum lth_code run_job(struct worker *worker, const json_t *request, struct lth_compile_result *out_result,
			     struct lth_diag *diag)
{
	struct lth_wire_view payload;
	const char *kind = text_of(request, "kind");
	lth_worker_cpu_budget((uint64_t)json_integer_value(json_object_get(request, "cpu_seconds")));
	if (!lth_wire_map(worker->message.fds[FD_PAYLOAD], 0, &payload))
		return lth_diag_fail(diag, errno == ENOMEM ? LTH_OUT_OF_MEMORY : LTH_IO_ERROR, "model", NULL, NULL,
				     "cannot map: %s", strerror(errno));
	enum lth_code code = strcmp(kind, "compile") == 0 ? run_compile(worker, request, &payload, out_result, diag)
							  : run_plan(worker, request, kind, &payload, out_result, diag);
	lth_wire_unmap(&payload);
	return code;
}

static json_t *read_request(struct worker *worker, struct lth_diag *diag)
{
	struct lth_wire_view view;
	json_error_t error;
	if (worker->message.num_fds < FD_FILES ||
	    !lth_wire_map(worker->message.fds[FD_REQUEST], REQUEST_LIMIT, &view)) {
		lth_diag_fail(diag, LTH_INTERNAL, "worker protocol", NULL, NULL,
			      "%u descriptors, or no request in them", worker->message.num_fds);
		return NULL;
	}
	json_t *request = json_loadb(view.data, view.size, JSON_REJECT_DUPLICATES, &error);
	if (!request)
		lth_diag_fail(diag, LTH_INTERNAL, "worker protocol", NULL, NULL, "request: %s", error.text);
	lth_wire_unmap(&view);
	return request;
}

/* One job from message to answer. False when the daemon is gone. */
static bool serve(struct worker *worker)
{
	struct lth_diag diag = {0};
	struct lth_compile_result result = {0};
	uint64_t offset = 0, bytes = 0;
	json_t *request = read_request(worker, &diag);
	enum lth_code code = request ? run_job(worker, request, &result, &diag) : diag.code;
	if (code == LTH_OK) {
		on_stage(worker, "deliver");
		code = lth_worker_bundle(worker->message.fds[FD_BUNDLE], &result, &offset, &bytes, &diag);
	}
	if (code != LTH_OK && diag.code == LTH_OK)
		code = lth_diag_fail(&diag, code, "worker", NULL, NULL, "no detail");
	bool alive = code != LTH_OK ? send_failure(worker, &diag)
				    : send_json(worker,
						json_pack("{s:s, s:I, s:I}", "event", "done", "index_offset",
							  (json_int_t)offset, "index_bytes", (json_int_t)bytes),
						NULL, 0);
	if (strcmp(text_of(request, "kind"), "compile") == 0)
		worker->functions->free_result(&result);
	else
		json_decref(result.document);
	json_decref(request);
	lth_wire_close(&worker->message);
	malloc_trim(0);
	return alive;
}

static bool introduce(struct worker *worker, json_t *layers)
{
	json_t *description = worker->functions->describe();
	char *text = description ? json_dumps(description, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
	int fd = text ? lth_wire_memfd("lathe-description", text, strlen(text)) : -1;
	const char *build = text_of(description, "build");
	bool ok = fd >= 0 &&
		  send_json(worker, json_pack("{s:s, s:s, s:O}", "event", "ready", "build", build, "layers", layers),
			    &fd, 1);
	if (fd >= 0)
		close(fd);
	free(text);
	json_decref(description);
	return ok;
}

static int run(struct worker *worker, const struct lth_worker_limits *limits)
{
	struct lth_diag diag = {0};
	char line[4096];
	json_t *layers = json_array();
	if (!layers || !lth_worker_report_crashes(worker->fd) || lth_worker_lock_in(limits, layers, &diag) != LTH_OK) {
		fprintf(stderr, "lathe-worker: %s\n",
			diag.code ? lth_diag_line(&diag, line, sizeof(line)) : lth_code_text(LTH_OUT_OF_MEMORY));
		json_decref(layers);
		return 1;
	}
	bool ok = introduce(worker, layers);
	json_decref(layers);
	while (ok && lth_wire_receive(worker->fd, &worker->message) == LTH_WIRE_MESSAGE)
		ok = serve(worker);
	return 0;
}

int lth_worker_main(int argc, char **argv, const struct lth_worker_functions *functions)
{
	static const struct option options[] = {
		{"fd", required_argument, NULL, 'f'},     {"parent", required_argument, NULL, 'p'},
		{"work", required_argument, NULL, 'w'},   {"kernels", required_argument, NULL, 'k'},
		{"memory", required_argument, NULL, 'm'}, {"file-bytes", required_argument, NULL, 'b'},
		{"nice", required_argument, NULL, 'n'},   {"no-sandbox", no_argument, NULL, 's'},
		{NULL, 0, NULL, 0},
	};
	struct worker *worker = calloc(1, sizeof(*worker));
	struct lth_worker_limits limits = {.sandbox = true};
	if (!worker)
		return 1;
	*worker = (struct worker){.fd = -1, .functions = functions};
	for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		switch (option) {
		case 'f': worker->fd = atoi(optarg); break;
		case 'p': limits.parent = atol(optarg); break;
		case 'w': limits.work_dir = optarg; break;
		case 'k': limits.kernel_cache = worker->kernel_cache = optarg; break;
		case 'm': limits.memory_bytes = strtoull(optarg, NULL, 10); break;
		case 'b': limits.file_bytes = strtoull(optarg, NULL, 10); break;
		case 'n': limits.nice = atoi(optarg); break;
		case 's': limits.sandbox = false; break;
		default: worker->fd = -2; break;
		}
	}
	int status = 2;
	if (worker->fd < 0 || !limits.work_dir || optind != argc)
		fprintf(stderr, "lathe-worker is started by lathed (or `lathe --local`), not by hand\n");
	else
		status = run(worker, &limits);
	free(worker);
	return status;
}
