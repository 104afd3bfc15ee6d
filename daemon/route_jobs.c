/* Jobs by their handle: list, answer, cancel, and events as a stream (server-sent events). */
#include "daemon/server.h"

#include <stdlib.h>
#include <string.h>

static struct lth_job *find(struct lth_request *request)
{
	struct lth_diag diag = {0};
	struct lth_job *job = lth_jobs_find(request->server->jobs, request->argument);
	if (!job) {
		lth_diag_fail(&diag, LTH_NOT_FOUND, request->argument, NULL, NULL,
			      "no job of this id (old ones are forgotten)");
		lth_reply_problem(request, &diag, NULL);
	}
	return job;
}

/* A query argument as a number of 0 to `most`; `standard` when absent. False, with the reply set, when it is none. */
static bool number_argument(struct lth_request *request, const char *name, long standard, long most, long *out)
{
	struct lth_diag diag = {0};
	char expected[48], *end;
	const char *text = lth_request_argument(request, name);
	long number = text ? strtol(text, &end, 10) : standard;
	if (text && (end == text || *end || number < 0 || number > most)) {
		snprintf(expected, sizeof(expected), "0 to %ld", most);
		lth_diag_fail(&diag, LTH_INVALID_REQUEST, name, expected, NULL, "'%s'", text);
		lth_reply_problem(request, &diag, NULL);
		return false;
	}
	*out = number;
	return true;
}

static bool refuse_word(struct lth_request *request, const char *place, const char *word, const char *const *words,
			size_t count)
{
	struct lth_diag diag = {0};
	struct lth_buf expected = {0};
	for (size_t i = 0; i < count; i++)
		lth_buf_printf(&expected, "%s%s", i == 0 ? "" : i + 1 == count ? " or " : ", ", words[i]);
	lth_diag_fail(&diag, LTH_INVALID_REQUEST, place, lth_buf_text(&expected), NULL, "'%s'", word);
	lth_buf_free(&expected);
	lth_reply_problem(request, &diag, NULL);
	return false;
}

static bool is_one_of(const char *word, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(word, words[i]) == 0)
			return true;
	return false;
}

static const char *const filters[] = {"state", "kind", "client", "limit", "before"};
enum { NUM_FILTERS = sizeof(filters) / sizeof(filters[0]) };

static bool find_unknown(void *context, const char *name, const char *value)
{
	(void)value;
	if (!is_one_of(name, filters, NUM_FILTERS))
		*(const char **)context = name;
	return *(const char **)context == NULL;
}

/* A slip in a filter would else list all jobs, or none. False with the reply set. */
static bool check_filters(struct lth_request *request)
{
	static const char *const states[] = {"queued", "running", "done", "failed"};
	const char *kinds[LTH_NUM_JOB], *unknown = NULL;
	const char *state = lth_request_argument(request, "state"), *kind = lth_request_argument(request, "kind");
	for (int i = 0; i < LTH_NUM_JOB; i++)
		kinds[i] = lth_job_kind_name((enum lth_job_kind)i);
	lth_request_arguments(request, find_unknown, &unknown);
	if (unknown)
		return refuse_word(request, "query", unknown, filters, NUM_FILTERS);
	if (state && !is_one_of(state, states, sizeof(states) / sizeof(states[0])))
		return refuse_word(request, "state", state, states, sizeof(states) / sizeof(states[0]));
	if (kind && !is_one_of(kind, kinds, LTH_NUM_JOB))
		return refuse_word(request, "kind", kind, kinds, LTH_NUM_JOB);
	return true;
}

static bool is_or_absent(const char *wanted, const char *text)
{
	return !wanted || strcmp(wanted, text) == 0;
}

void lth_route_jobs(struct lth_request *request)
{
	enum { MOST = 1000, STANDARD = 100 };
	const char *state = lth_request_argument(request, "state"), *client = lth_request_argument(request, "client");
	const char *kind = lth_request_argument(request, "kind"), *before = lth_request_argument(request, "before");
	const char *next = NULL;
	long limit;
	if (!check_filters(request) || !number_argument(request, "limit", STANDARD, MOST, &limit))
		return;
	struct lth_job *job = lth_jobs_newest(request->server->jobs);
	if (before) {
		struct lth_job *mark = lth_jobs_find(request->server->jobs, before);
		job = mark ? mark->previous : NULL;
	}
	json_t *list = json_array();
	for (; job; job = job->previous) {
		if (!is_or_absent(state, lth_job_state_name(job->state)) || !is_or_absent(client, job->spec.client) ||
		    !is_or_absent(kind, lth_job_kind_name(job->spec.kind)))
			continue;
		if (json_array_size(list) == (size_t)limit)
			break;
		json_array_append_new(list, lth_job_json(job));
		next = job->id;
	}
	lth_reply_json(request, 200, json_pack("{s:o, s:s?}", "jobs", list, "next", job ? next : NULL));
}

void lth_route_job(struct lth_request *request)
{
	enum { LONGEST_S = 3600 };
	long seconds;
	struct lth_job *job = find(request);
	if (job && number_argument(request, "wait", 0, LONGEST_S, &seconds))
		lth_deliver_when_done(request, job, seconds);
}

static void on_cancelled(struct lth_waiter *waiter, struct lth_job *job)
{
	struct lth_request *request = lth_request_of(waiter);
	lth_reply_json(request, 200, lth_job_json(job));
	lth_request_resume(request);
}

static void on_given_up(struct lth_waiter *waiter, struct lth_job *job, const struct lth_diag *diag)
{
	struct lth_request *request = lth_request_of(waiter);
	if (job->cancelled)
		return; /* its end is the answer */
	lth_jobs_leave(request->server->jobs, waiter);
	if (diag->code == LTH_OK || !lth_job_holds(job, waiter->client))
		lth_reply_json(request, 200, lth_job_json(job));
	else
		lth_reply_problem(request, diag, NULL);
	lth_request_resume(request);
}

/* For the client that asks; whoever is none of the job's (an admin, or where nobody is asked who they are) ends it for
 * all. The answer comes once it holds: after kill -9, too. */
void lth_route_job_cancel(struct lth_request *request)
{
	struct lth_waiter *waiter = &request->waiter;
	struct lth_jobs *jobs = request->server->jobs;
	struct lth_diag diag = {0};
	struct lth_job *job = find(request);
	if (!job)
		return;
	lth_request_client(request, waiter->client, sizeof(waiter->client));
	bool is_its = lth_job_is_of(job, waiter->client);
	if (!is_its && request->role < LTH_ROLE_ADMIN) {
		lth_diag_fail(&diag, LTH_FORBIDDEN, "Authorization", "one of its clients, or the role admin", NULL,
			      "a job of '%s'", job->spec.client);
		lth_reply_problem(request, &diag, NULL);
		return;
	}
	if (lth_job_ended(job)) {
		lth_reply_json(request, 200, lth_job_json(job));
		return;
	}
	waiter->wake = on_cancelled;
	waiter->on_saved = is_its ? on_given_up : NULL;
	waiter->is_watcher = true;
	lth_jobs_wait(jobs, job, waiter);
	if (!is_its)
		lth_jobs_cancel(jobs, job, "a client asked for it");
	else if (!lth_jobs_give_up(jobs, job, waiter->client))
		on_given_up(waiter, job, &diag);
	if (!request->response)
		lth_request_suspend(request);
}

/* --- events. The stream holds what is still to be sent, so that it does not need the job once that has ended. */
struct stream {
	struct lth_buf text;
	size_t sent;
	unsigned next; /* event */
	bool ended;
};

static void free_stream(void *state)
{
	struct stream *stream = state;
	lth_buf_free(&stream->text);
	free(stream);
}

static void take_events(struct stream *stream, const struct lth_job *job)
{
	for (; stream->next < job->num_events; stream->next++)
		lth_buf_printf(&stream->text, "id: %u\nevent: %s\ndata: %s\n\n", stream->next + 1,
			       job->events[stream->next].name, job->events[stream->next].data);
}

static void on_event(struct lth_waiter *waiter, struct lth_job *job)
{
	struct lth_request *request = lth_request_of(waiter);
	take_events(request->state, job);
	lth_request_resume(request);
}

static void on_end(struct lth_waiter *waiter, struct lth_job *job)
{
	struct stream *stream = lth_request_of(waiter)->state;
	take_events(stream, job);
	stream->ended = true;
	lth_request_stop_timer(lth_request_of(waiter));
	lth_request_resume(lth_request_of(waiter));
}

/* A comment, twice in the time after which a proxy would think that nobody is there any more. */
static void on_silence(uv_timer_t *timer)
{
	struct lth_request *request = timer->data;
	struct stream *stream = request->state;
	lth_buf_puts(&stream->text, ":\n\n");
	lth_request_resume(request);
	lth_request_stop_timer(request);
	lth_request_start_timer(request, request->server->config.idle_timeout_ms / 2, on_silence);
}

static int64_t read_stream(struct lth_request *request, char *buffer, size_t size)
{
	struct stream *stream = request->state;
	size_t left = stream->text.size - stream->sent, count = left < size ? left : size;
	if (!left)
		return stream->ended || !lth_buf_ok(&stream->text) ? -1 : 0;
	memcpy(buffer, stream->text.data + stream->sent, count);
	stream->sent += count;
	if (stream->sent == stream->text.size) {
		lth_buf_free(&stream->text);
		stream->sent = 0;
	}
	return (int64_t)count;
}

void lth_route_job_events(struct lth_request *request)
{
	struct lth_job *job = find(request);
	struct stream *stream = job ? calloc(1, sizeof(*stream)) : NULL;
	const char *last = lth_request_header(request, "Last-Event-ID");
	if (!stream)
		return; /* the reply is set, or there is no memory for one: the connection is closed */
	request->state = stream;
	request->free_state = free_stream;
	if (last)
		stream->next = (unsigned)strtoul(last, NULL, 10);
	if (stream->next > job->num_events)
		stream->next = 0; /* what it has is of an earlier life of the daemon: the job began anew */
	take_events(stream, job);
	stream->ended = lth_job_ended(job);
	if (!stream->ended) {
		request->waiter.wake = on_end;
		request->waiter.on_event = on_event;
		request->waiter.is_watcher = true;
		lth_jobs_wait(request->server->jobs, job, &request->waiter);
		lth_request_start_timer(request, request->server->config.idle_timeout_ms / 2, on_silence);
	}
	lth_reply_stream(request, "text/event-stream", read_stream);
	lth_reply_header(request, "Cache-Control", "no-store");
}
