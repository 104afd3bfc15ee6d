/* Requests that wait: for a job, for work in the thread pool, for a time, for the first worker. The rules of
 * libmicrohttpd that shape this file: suspended connections neither time out nor notice that the client has left (a
 * watcher on a copy of the socket does), resuming only on the loop thread, and the library must run afterwards
 * (lth_server_kick). */
#include "daemon/http.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { EARLY_MS = 10000 };

struct lth_watcher {
	uv_poll_t poll;
	int fd;
	struct lth_request *request; /* NULL once stopped */
};

/* --- watching for a client that leaves */
static void on_watcher_closed(uv_handle_t *handle)
{
	struct lth_watcher *watcher = handle->data;
	close(watcher->fd); /* never before its handle */
	free(watcher);
}

void lth_http_stop_watching(struct lth_request *request)
{
	if (!request->watcher)
		return;
	request->watcher->request = NULL;
	uv_close((uv_handle_t *)&request->watcher->poll, on_watcher_closed);
	request->watcher = NULL;
}

static void on_disconnect(uv_poll_t *poll, int status, int events)
{
	struct lth_watcher *watcher = poll->data;
	struct lth_request *request = watcher->request;
	struct lth_diag diag = {0};
	if (!request || (status == 0 && !(events & UV_DISCONNECT)))
		return;
	lth_http_stop_watching(request);
	lth_request_stop_timer(request);
	request->gone = true;
	request->early = false;
	lth_jobs_leave(request->server->jobs, &request->waiter);
	if (request->working)
		return;       /* its work ends first */
	if (!request->read) { /* a stream has replied already */
		lth_diag_fail(&diag, LTH_CANCELLED, "connection", NULL, NULL, "the client left");
		lth_reply_problem(request, &diag, NULL);
	}
	lth_request_resume(request);
}

static void watch(struct lth_request *request)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct lth_watcher *watcher = info ? calloc(1, sizeof(*watcher)) : NULL;
	if (!watcher)
		return; /* then a client that leaves is noticed when its answer is sent */
	watcher->fd = fcntl(info->connect_fd, F_DUPFD_CLOEXEC, 0);
	if (watcher->fd < 0 || uv_poll_init(request->server->loop, &watcher->poll, watcher->fd) != 0) {
		if (watcher->fd >= 0)
			close(watcher->fd);
		free(watcher);
		return;
	}
	watcher->poll.data = watcher;
	watcher->request = request;
	request->watcher = watcher;
	uv_poll_start(&watcher->poll, UV_DISCONNECT, on_disconnect);
}

void lth_request_suspend(struct lth_request *request)
{
	if (request->suspended)
		return;
	request->suspended = true;
	MHD_suspend_connection(request->connection);
	watch(request);
}

void lth_request_resume(struct lth_request *request)
{
	if (!request->suspended)
		return;
	lth_http_stop_watching(request);
	request->suspended = false;
	MHD_resume_connection(request->connection);
	lth_server_kick(request->server);
}

static void on_timer_closed(uv_handle_t *timer)
{
	free(timer);
}

void lth_request_stop_timer(struct lth_request *request)
{
	if (request->timer)
		uv_close((uv_handle_t *)request->timer, on_timer_closed);
	request->timer = NULL;
}

void lth_request_start_timer(struct lth_request *request, uint64_t ms, uv_timer_cb callback)
{
	request->timer = calloc(1, sizeof(*request->timer));
	if (!request->timer)
		return;
	uv_timer_init(request->server->loop, request->timer);
	request->timer->data = request;
	uv_timer_start(request->timer, callback, ms, 0);
}

/* --- requests that came before the first worker was ready */
static void on_still_early(uv_timer_t *timer)
{
	struct lth_request *request = timer->data;
	struct lth_diag diag = {0};
	lth_request_stop_timer(request);
	request->early = false;
	lth_diag_fail(&diag, LTH_BUSY, "workers", NULL, "try again", "no worker has introduced itself yet");
	lth_reply_problem(request, &diag, NULL);
	lth_request_resume(request);
}

bool lth_request_has_description(struct lth_request *request)
{
	if (request->server->description.root)
		return true;
	request->early = true;
	lth_request_suspend(request);
	lth_request_start_timer(request, EARLY_MS, on_still_early);
	return false;
}

void lth_request_wake_early(struct lth_server *server)
{
	for (struct lth_connection *socket = server->connections; socket; socket = socket->next) {
		struct lth_request *request = socket->request;
		if (!request || !request->early)
			continue;
		request->early = false;
		lth_request_stop_timer(request);
		request->route->handler(request);
		if (request->response)
			lth_request_resume(request);
	}
}

/* --- work in the thread pool */
struct work {
	uv_work_t base;
	struct lth_request *request;
	void (*work)(struct lth_request *request), (*after)(struct lth_request *request);
};

static void run_work(uv_work_t *base)
{
	struct work *work = base->data;
	work->work(work->request);
}

static void after_work(uv_work_t *base, int status)
{
	struct work *work = base->data;
	struct lth_request *request = work->request;
	struct lth_diag diag = {0};
	(void)status;
	request->working = false;
	if (request->gone) {
		lth_diag_fail(&diag, LTH_CANCELLED, "connection", NULL, NULL, "the client left");
		lth_reply_problem(request, &diag, NULL);
	} else {
		work->after(request);
	}
	if (request->response)
		lth_request_resume(request);
	free(work);
}

void lth_request_work(struct lth_request *request, void (*function)(struct lth_request *request),
		      void (*after)(struct lth_request *request))
{
	struct lth_diag diag = {0};
	struct work *work = calloc(1, sizeof(*work));
	if (work) {
		*work = (struct work){.request = request, .work = function, .after = after};
		work->base.data = work;
	}
	if (!work || uv_queue_work(request->server->loop, &work->base, run_work, after_work) != 0) {
		free(work);
		lth_diag_fail(&diag, LTH_OUT_OF_MEMORY, "request", NULL, NULL, "no memory for its work");
		lth_reply_problem(request, &diag, NULL);
		return;
	}
	request->working = true;
	lth_request_suspend(request);
}
