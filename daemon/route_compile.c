/* POST /v1/compile: body and options to a job specification; the store's answer if there is one; else the model
 * becomes a blob and the job is submitted. */
#include "daemon/options.h"
#include "daemon/quarantine.h"
#include "daemon/server.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct compile {
	struct lth_job_spec spec;
	json_t *body;       /* a JSON body, owned; inline models point into it */
	char *inline_model; /* canonical text of an inline graph */
	bool has_raw;
	struct lth_diag diag;
};

static void free_compile(void *state)
{
	struct compile *compile = state;
	json_decref(compile->spec.files);
	json_decref(compile->spec.options);
	json_decref(compile->body);
	free(compile->inline_model);
	free(compile);
}

struct arguments {
	struct lth_request *request;
	json_t *options;
	struct lth_diag *diag;
};

static bool on_argument(void *context, const char *name, const char *value)
{
	struct arguments *arguments = context;
	return lth_options_add(&arguments->request->server->description, arguments->options, name, value,
			       arguments->diag) == LTH_OK;
}

static enum lth_code read_options(struct lth_request *request, struct compile *compile)
{
	struct arguments arguments = {request, compile->spec.options, &compile->diag};
	lth_request_arguments(request, on_argument, &arguments);
	if (compile->diag.code != LTH_OK)
		return compile->diag.code;
	return lth_options_check(&request->server->description, compile->spec.options, &compile->diag);
}

/* --- JSON bodies */
static enum lth_code parse_body(struct lth_request *request, struct compile *compile)
{
	json_error_t error;
	char place[64];
	compile->body = json_loadb(request->text.data ? request->text.data : "", request->text.size,
				   JSON_REJECT_DUPLICATES, &error);
	if (json_is_object(compile->body))
		return LTH_OK;
	snprintf(place, sizeof(place), "line %d, column %d", error.line, error.column);
	return compile->body
		       ? lth_diag_fail(&compile->diag, LTH_INVALID_JSON, "body", "an object", NULL, "something else")
		       : lth_diag_fail(&compile->diag, LTH_INVALID_JSON, place, NULL, NULL, "%s", error.text);
}

static enum lth_code check_members(struct compile *compile)
{
	static const char *const names[] = {"model", "files", "options", "priority"};
	const char *key;
	json_t *value;
	json_object_foreach(compile->body, key, value) {
		char advice[64] = "";
		bool known = false;
		for (size_t i = 0; i < 4; i++)
			known = known || strcmp(names[i], key) == 0;
		if (known)
			continue;
		const char *nearest = lth_nearest(key, names, 4);
		if (nearest)
			snprintf(advice, sizeof(advice), "did you mean %s?", nearest);
		return lth_diag_fail(&compile->diag, LTH_INVALID_JSON, key, "model, files, options or priority", advice,
				     "the unknown member '%s'", key);
	}
	return LTH_OK;
}

static enum lth_code read_files(struct compile *compile, const json_t *files)
{
	const char *name;
	json_t *digest;
	if (!files)
		return LTH_OK;
	if (!json_is_object(files))
		return lth_diag_fail(&compile->diag, LTH_INVALID_JSON, "files", "an object of digests by name", NULL,
				     "something else");
	json_object_foreach((json_t *)(uintptr_t)files, name, digest)
		if (!json_is_string(digest) || !lth_digest_valid(json_string_value(digest)))
			return lth_diag_fail(&compile->diag, LTH_INVALID_JSON, name,
					     "sha256: and 64 lower-case hex digits", NULL, "'%s'",
					     json_is_string(digest) ? json_string_value(digest) : "no string");
	compile->spec.files = json_deep_copy(files);
	return LTH_OK;
}

static enum lth_code read_model(struct compile *compile, const json_t *model)
{
	const json_t *digest = json_object_get(model, "digest");
	if (!json_is_object(model))
		return lth_diag_fail(&compile->diag, LTH_INVALID_JSON, "model",
				     "a graph, or {\"digest\":\"sha256:...\"}", NULL,
				     model ? "something else" : "no model");
	if (digest) {
		const char *text = json_string_value(digest);
		if (!text || !lth_digest_valid(text))
			return lth_diag_fail(&compile->diag, LTH_INVALID_JSON, "model.digest",
					     "sha256: and 64 lower-case hex digits", NULL, "'%s'",
					     text ? text : "no string");
		strcpy(compile->spec.model, text);
		return LTH_OK;
	}
	compile->inline_model = json_dumps(model, JSON_COMPACT | JSON_REAL_PRECISION(17));
	if (!compile->inline_model)
		return lth_diag_fail(&compile->diag, LTH_OUT_OF_MEMORY, "model", NULL, NULL, "its text");
	compile->spec.payload_bytes = strlen(compile->inline_model);
	compile->spec.model_is_json = true;
	lth_sha256_text(compile->inline_model, compile->spec.payload_bytes, compile->spec.model);
	return LTH_OK;
}

static enum lth_code read_json(struct lth_request *request, struct compile *compile)
{
	enum lth_code code = parse_body(request, compile);
	code = code == LTH_OK ? check_members(compile) : code;
	if (code != LTH_OK)
		return code;
	const json_t *options = json_object_get(compile->body, "options");
	const json_t *priority = json_object_get(compile->body, "priority");
	if (options && !json_is_object(options))
		return lth_diag_fail(&compile->diag, LTH_INVALID_JSON, "options", "an object", NULL, "something else");
	if (priority &&
	    (!json_is_integer(priority) || json_integer_value(priority) < -10 || json_integer_value(priority) > 10))
		return lth_diag_fail(&compile->diag, LTH_INVALID_JSON, "priority", "a whole number from -10 to 10",
				     NULL, "something else");
	compile->spec.priority = (int)json_integer_value(priority);
	compile->spec.options = options ? json_deep_copy(options) : json_object();
	code = read_files(compile, json_object_get(compile->body, "files"));
	return code == LTH_OK ? read_model(compile, json_object_get(compile->body, "model")) : code;
}

static enum lth_code read_raw(struct lth_request *request, struct compile *compile)
{
	compile->spec.options = json_object();
	compile->has_raw = true;
	if (!request->spool.size)
		return lth_diag_fail(&compile->diag, LTH_INVALID_REQUEST, "body", "a model",
				     "curl --data-binary @m.onnx", "an empty body");
	compile->spec.payload_bytes = request->spool.size;
	compile->spec.model_is_json = request->spool.head == '{'; /* no ONNX file begins so: field 15, group start */
	lth_spool_digest(&request->spool, compile->spec.model);
	return LTH_OK;
}

/* --- blobs that the request names */
static void note_missing(const struct lth_store *store, const char *digest, json_t *missing, uint64_t *bytes,
			 char *head)
{
	uint64_t size = 0;
	int fd = lth_store_open_blob(store, digest, &size);
	if (fd < 0) {
		json_array_append_new(missing, json_string(digest));
		return;
	}
	if (head && pread(fd, head, 1, 0) != 1)
		*head = 0;
	*bytes += size;
	close(fd);
}

/* False, with the reply set, when one is missing. */
static bool find_blobs(struct lth_request *request, struct compile *compile)
{
	const struct lth_store *store = &request->server->store;
	json_t *missing = json_array(), *digest;
	const char *name;
	char head = 0;
	if (!compile->has_raw && !compile->inline_model) {
		note_missing(store, compile->spec.model, missing, &compile->spec.payload_bytes, &head);
		compile->spec.model_is_json = head == '{';
	}
	json_object_foreach(compile->spec.files, name, digest)
		note_missing(store, json_string_value(digest), missing, &compile->spec.payload_bytes, NULL);
	bool complete = json_array_size(missing) == 0;
	if (!complete) {
		json_t *extra = json_pack("{s:O}", "missing", missing);
		lth_diag_fail(&compile->diag, LTH_MISSING_BLOB, json_string_value(json_array_get(missing, 0)), NULL,
			      "PUT each to /v1/blobs/DIGEST, then send the request again",
			      "%zu blobs that are not in the store", json_array_size(missing));
		lth_reply_problem(request, &compile->diag, extra);
		json_decref(extra);
	}
	json_decref(missing);
	return complete;
}

/* --- the model becomes a blob, in the thread pool */
static void publish_model(struct lth_request *request)
{
	struct compile *compile = request->state;
	char digest[LTH_DIGEST_TEXT];
	struct lth_store *store = &request->server->store;
	if (compile->has_raw)
		(void)!lth_spool_publish(store, &request->spool, compile->spec.model, &compile->diag);
	else
		(void)!lth_store_put(store, compile->inline_model, strlen(compile->inline_model), digest,
				     &compile->diag);
}

static void submit(struct lth_request *request)
{
	struct compile *compile = request->state;
	lth_request_drop_body(request); /* it is a blob */
	if (compile->diag.code != LTH_OK) {
		lth_reply_problem(request, &compile->diag, NULL);
		return;
	}
	struct lth_job_spec spec = compile->spec;
	compile->spec.files = compile->spec.options = NULL;
	lth_deliver_submit(request, &spec);
}

static uint64_t timeout_of(const struct lth_request *request, const json_t *options)
{
	uint64_t most = request->server->config.job_timeout_ms;
	json_int_t asked = json_integer_value(json_object_get(options, "timeout_ms"));
	return asked > 0 && (uint64_t)asked < most ? (uint64_t)asked : most;
}

/* True with the reply set, when the cache has the answer and may be asked. */
static bool reply_hit(struct lth_request *request, const char *key)
{
	struct lth_server *server = request->server;
	struct lth_answer *answer = lth_request_wants_no_cache(request)
					    ? NULL
					    : lth_answers_find(&server->answers, &server->store, key);
	if (!answer)
		return false;
	server->metrics.values[LTH_METRIC_CACHE_HITS]++;
	lth_deliver_answer(request, answer, "hit");
	lth_answer_release(&answer);
	return true;
}

/* --- a request that came before: its key is known without looking at the options */
struct gather {
	struct lth_shortcut *shortcut;
	bool fits;
};

static bool gather(void *context, const char *name, const char *value)
{
	struct gather *into = context;
	const char *const words[] = {name, value};
	for (int i = 0; i < 2 && into->fits; i++) {
		size_t size = strlen(words[i]) + 1, left = LTH_SHORTCUT_ARGUMENTS - into->shortcut->size;
		into->fits = size <= left;
		if (into->fits)
			memcpy(into->shortcut->arguments + into->shortcut->size, words[i], size);
		into->shortcut->size += into->fits ? size : 0;
	}
	return into->fits;
}

/* False where there is none: for JSON bodies, and more arguments than fit. */
static bool shortcut_of(struct lth_request *request, const struct compile *compile, struct lth_shortcut *out)
{
	struct gather into = {out, compile->has_raw};
	out->size = 0;
	memcpy(out->model, compile->spec.model, sizeof(out->model));
	if (into.fits)
		lth_request_arguments(request, gather, &into);
	return into.fits;
}

static bool hit_by_shortcut(struct lth_request *request, struct compile *compile)
{
	struct lth_shortcut asked;
	if (!shortcut_of(request, compile, &asked))
		return false;
	const char *key = lth_shortcut_find(&request->server->shortcuts, &asked);
	return key && reply_hit(request, key);
}

static void keep_shortcut(struct lth_request *request, const struct compile *compile)
{
	struct lth_shortcut asked;
	if (shortcut_of(request, compile, &asked))
		lth_shortcut_keep(&request->server->shortcuts, &asked, compile->spec.key);
}

static void look_up(struct lth_request *request, struct compile *compile)
{
	struct lth_server *server = request->server;
	struct lth_job_spec *spec = &compile->spec;
	if (reply_hit(request, spec->key))
		return;
	server->metrics.values[LTH_METRIC_CACHE_MISSES]++;
	json_t *quarantined = lth_request_wants_no_cache(request)
				      ? NULL
				      : lth_quarantine_find(&server->store, spec->key, &compile->diag);
	if (quarantined) {
		lth_reply_problem(request, &compile->diag, quarantined);
		json_decref(quarantined);
		return;
	}
	if (!find_blobs(request, compile))
		return;
	if (lth_jobs_take_place(server->jobs, spec, &request->place, &compile->diag) != LTH_OK) {
		lth_deliver_refusal(request, &compile->diag);
		return;
	}
	if (compile->has_raw || compile->inline_model)
		lth_request_work(request, publish_model, submit);
	else
		submit(request);
}

void lth_route_compile(struct lth_request *request)
{
	struct lth_server *server = request->server;
	struct lth_diag diag = {0};
	if (!lth_request_has_description(request))
		return;
	struct compile *compile = calloc(1, sizeof(*compile));
	if (!compile) {
		lth_diag_fail(&diag, LTH_OUT_OF_MEMORY, "request", NULL, NULL, "a compile");
		lth_reply_problem(request, &diag, NULL);
		return;
	}
	request->state = compile;
	request->free_state = free_compile;
	compile->spec.kind = LTH_JOB_COMPILE;
	compile->spec.payload_fd = -1;
	enum lth_code code = request->body_is_json ? read_json(request, compile) : read_raw(request, compile);
	lth_buf_free(&request->text);
	if (code == LTH_OK && hit_by_shortcut(request, compile))
		return;
	if (code == LTH_OK)
		code = read_options(request, compile);
	if (code == LTH_OK)
		code = lth_options_key(&server->description, compile->spec.model, compile->spec.files,
				       compile->spec.options, server->config.salt, compile->spec.key, &compile->diag);
	if (code != LTH_OK) {
		lth_reply_problem(request, &compile->diag, NULL);
		return;
	}
	keep_shortcut(request, compile);
	compile->spec.timeout_ms = timeout_of(request, compile->spec.options);
	lth_request_client(request, compile->spec.client, sizeof(compile->spec.client));
	lth_request_trace(request, compile->spec.trace, sizeof(compile->spec.trace));
	look_up(request, compile);
}
