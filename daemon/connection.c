/* Connections: their beginning and end, cutting those that are too slow, and waking all requests at the daemon's end.
 * See http.h. */
#include "daemon/acked.h"
#include "daemon/http.h"
#include "runtime/base/io.h"

#include <stdlib.h>
#include <sys/socket.h>

void lth_http_connection(void *context, struct MHD_Connection *connection, void **state,
			 enum MHD_ConnectionNotificationCode what)
{
	struct lth_server *server = context;
	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		const union MHD_ConnectionInfo *info =
			MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
		struct lth_connection *socket = calloc(1, sizeof(*socket));
		*state = socket;
		if (!socket)
			return;
		*socket = (struct lth_connection){.fd = info ? info->connect_fd : -1,
						  .quiet_since_ns = lth_now_ns(),
						  .next = server->connections};
		if (server->connections)
			server->connections->previous = socket;
		server->connections = socket;
		server->metrics.values[LTH_METRIC_CONNECTIONS]++;
		return;
	}
	struct lth_connection *socket = *state;
	if (!socket)
		return;
	if (socket->next)
		socket->next->previous = socket->previous;
	if (socket->previous)
		socket->previous->next = socket->next;
	else
		server->connections = socket->next;
	server->metrics.values[LTH_METRIC_CONNECTIONS]--;
	free(socket);
	*state = NULL;
	server->connection_ended = true;
}

/* Too few bytes a second after the grace. */
static bool is_below_rate(const struct lth_server *server, uint64_t bytes, uint64_t elapsed_ns)
{
	uint64_t grace_ns = server->config.idle_timeout_ms * 1000000;
	double seconds = elapsed_ns > grace_ns ? (double)(elapsed_ns - grace_ns) * 1e-9 : 0;
	return (double)bytes < seconds * (double)server->config.body_rate_bytes;
}

/* An answer that its client hardly reads would hold the connection as long as a byte now and then keeps it from falling
 * silent. How much has arrived the kernel knows; of a Unix socket it does not say. */
static bool reads_too_slowly(const struct lth_server *server, struct lth_request *request, int fd, uint64_t now)
{
	uint64_t acked;
	bool waits;
	if (request->read || request->suspended || !lth_socket_acked(fd, &acked, &waits))
		return false;
	if (!request->reply_since_ns) {
		request->reply_since_ns = now;
		request->acked_before = acked;
	}
	return waits && is_below_rate(server, acked - request->acked_before, now - request->reply_since_ns);
}

static bool too_slow(const struct lth_server *server, const struct lth_connection *socket, uint64_t now)
{
	struct lth_request *request = socket->request;
	if (!request)
		return now - socket->quiet_since_ns > server->config.idle_timeout_ms * 1000000;
	if (request->response)
		return reads_too_slowly(server, request, socket->fd, now);
	if (request->dispatched || !request->route)
		return false;
	return is_below_rate(server, request->body_bytes, now - request->started_ns);
}

void lth_http_sweep(struct lth_server *server)
{
	uint64_t now = lth_now_ns();
	for (struct lth_connection *socket = server->connections; socket; socket = socket->next)
		if (socket->fd >= 0 && too_slow(server, socket, now))
			shutdown(socket->fd, SHUT_RDWR); /* libmicrohttpd sees the end and closes */
}

bool lth_http_answers(const struct lth_server *server)
{
	for (const struct lth_connection *socket = server->connections; socket; socket = socket->next) {
		const struct lth_request *request = socket->request;
		bool sends = request && request->dispatched && !request->suspended && !request->read;
		if (sends || (request && request->working))
			return true;
	}
	return false;
}

void lth_http_wake_all(struct lth_server *server)
{
	for (struct lth_connection *socket = server->connections; socket; socket = socket->next) {
		struct lth_request *request = socket->request;
		struct lth_diag diag = {0};
		if (!request || !request->suspended || request->working)
			continue;
		lth_jobs_leave(server->jobs, &request->waiter);
		lth_request_stop_timer(request);
		request->gone = true; /* ends a stream */
		if (!request->response && !request->read) {
			lth_diag_fail(&diag, LTH_BUSY, "daemon", NULL, "try again", "a daemon that is shutting down");
			lth_reply_problem(request, &diag, NULL);
		}
		lth_request_resume(request);
	}
}
