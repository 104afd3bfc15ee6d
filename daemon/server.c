/* The daemon's loop: libmicrohttpd's epoll descriptor under uv_poll and its time limits under a uv_timer, the pool's
 * and the jobs' events, signals, and the end. libmicrohttpd uses edge-triggered epoll: a time-out of zero after
 * MHD_run means that there is more to do now. */
#include <config.h>
#include "daemon/http.h"
#include "daemon/systemd.h"
#include "runtime/base/io.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EVICTION_GRACE_S = 60, RUNS_AT_ONCE = 64, SWEEP_MS = 1000 };
/* libmicrohttpd reads half of it at a time, and clears all of it for every request: twice as much would take an eighth
 * from the time of a large body and add a quarter to that of a hit. */
enum { CONNECTION_MEMORY = 64 * 1024 };

static void drive(struct lth_server *server);
static void maybe_finish_drain(struct lth_server *server);

static void on_http(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	drive(poll->data);
}

static void on_http_timer(uv_timer_t *timer)
{
	drive(timer->data);
}

static void drive(struct lth_server *server)
{
	MHD_UNSIGNED_LONG_LONG timeout = 0;
	int runs = 0;
	bool waits;
	if (!server->http)
		return;
	/* Accepting pauses at the limit of connections, and goes on when the library next runs: after the last of them has
	 * gone, nothing else would make it. */
	do {
		server->connection_ended = false;
		MHD_run(server->http);
		waits = MHD_get_timeout(server->http, &timeout) == MHD_YES;
		if (server->connection_ended)
			waits = true, timeout = 0;
	} while (waits && timeout == 0 && ++runs < RUNS_AT_ONCE);
	if (waits)
		uv_timer_start(&server->http_timer, on_http_timer, timeout, 0);
	else
		uv_timer_stop(&server->http_timer);
}

void lth_server_kick(struct lth_server *server)
{
	if (server->http)
		uv_timer_start(&server->http_timer, on_http_timer, 0, 0); /* never from inside its own callbacks */
}

/* --- events of the pool */
static void on_stage(void *context, struct lth_task *task, const char *stage)
{
	struct lth_server *server = context;
	lth_jobs_on_stage(server->jobs, task, stage);
}

static void on_pass(void *context, struct lth_task *task, const char *pass)
{
	lth_jobs_on_pass(task, pass);
	(void)context;
}

static void on_outcome(void *context, struct lth_task *task, struct lth_outcome *outcome)
{
	struct lth_server *server = context;
	lth_jobs_on_outcome(server->jobs, task, outcome);
}

static void on_room(void *context)
{
	struct lth_server *server = context;
	unsigned idle;
	if (server->description_is_new) {
		server->description_is_new = false;
		lth_request_wake_early(server);
	}
	lth_jobs_schedule(server->jobs);
	lth_pool_count(server->pool, &idle, NULL);
	server->metrics.values[LTH_METRIC_WORKERS_READY] = idle;
}

static bool on_description(void *context, const char *text, size_t size)
{
	struct lth_server *server = context;
	struct lth_diag diag = {0};
	char line[1024];
	if (lth_description_load(&server->description, text, size, &diag) == LTH_OK) {
		lth_log_event(&server->log, LTH_LOG_INFO, NULL, "description", "build", server->description.build,
			      NULL);
		lth_shortcut_clear(&server->shortcuts);
		server->description_is_new = true; /* whoever waits for it is woken when the worker is ready */
		return true;
	}
	lth_log_event(&server->log, LTH_LOG_ERROR, NULL, "description-refused", "problem",
		      lth_diag_line(&diag, line, sizeof(line)), NULL);
	return false;
}

static void on_http_log(void *context, const char *format, va_list args)
{
	struct lth_server *server = context;
	char line[512];
	vsnprintf(line, sizeof(line), format, args);
	line[strcspn(line, "\n")] = 0;
	lth_log_event(&server->log, LTH_LOG_DEBUG, NULL, "http", "text", line, NULL);
}

static void set_tls_options(const struct lth_server *server, struct MHD_OptionItem options[3])
{
	const union { /* the library takes an object for whatever the value points to */
		gnutls_certificate_retrieve_function3 *function;
		void *object;
	} certificate = {lth_tls_certificate};
	size_t count = 0;
	if (server->tls.cert)
		options[count++] =
			(struct MHD_OptionItem){MHD_OPTION_HTTPS_CERT_CALLBACK2, 0, certificate.object};
	if (server->tls.client_ca)
		options[count++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_TRUST, 0, server->tls.client_ca};
	options[count] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
}

static enum lth_code start_http(struct lth_server *server, struct lth_diag *diag)
{
	const struct lth_config *config = &server->config;
	struct MHD_OptionItem tls[3] = {{MHD_OPTION_END, 0, NULL}};
	unsigned flags =
		MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG | (server->tls.cert ? MHD_USE_TLS : 0);
	set_tls_options(server, tls);
	lth_tls_serve(&server->tls);
	/* clang-format off: an option and its value a line */
	server->http = MHD_start_daemon(
		flags, 0, NULL, NULL, lth_http_request, server, MHD_OPTION_EXTERNAL_LOGGER, on_http_log, server,
		MHD_OPTION_LISTEN_SOCKET, server->listen_fd, MHD_OPTION_NOTIFY_COMPLETED, lth_http_completed, server,
		MHD_OPTION_NOTIFY_CONNECTION, lth_http_connection, server, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)config->connections, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
		(unsigned)config->address_connections, MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned)((config->idle_timeout_ms + 999) / 1000), MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)CONNECTION_MEMORY, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
	/* clang-format on */
	const union MHD_DaemonInfo *info =
		server->http ? MHD_get_daemon_info(server->http, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
	if (!info)
		return lth_diag_fail(diag, LTH_INTERNAL, "http", NULL, NULL, "libmicrohttpd does not start");
	uv_poll_init(server->loop, &server->http_poll, info->epoll_fd);
	server->http_poll.data = server;
	uv_poll_start(&server->http_poll, UV_READABLE, on_http);
	lth_server_kick(server);
	return LTH_OK;
}

/* --- signals and the end */
static void on_pool_closed(void *context)
{
	struct lth_server *server = context;
	server->pool_closed = true;
}

static void close_handle(uv_handle_t *handle, void *context)
{
	(void)context;
	if (!uv_is_closing(handle) && (handle->type == UV_SIGNAL))
		uv_close(handle, NULL);
}

/* Everything goes: jobs that still run are cancelled, workers killed. The loop ends when the last handle has closed. */
static void shut(struct lth_server *server)
{
	if (server->stopping)
		return;
	server->stopping = true;
	lth_jobs_close(server->jobs);
	lth_http_wake_all(server);
	drive(server);
	drive(server);
	uv_close((uv_handle_t *)&server->http_poll, NULL);
	uv_close((uv_handle_t *)&server->http_timer, NULL);
	uv_close((uv_handle_t *)&server->sweep_timer, NULL);
	uv_close((uv_handle_t *)&server->watchdog_timer, NULL);
	uv_walk(server->loop, close_handle, NULL);
	signal(SIGTERM, SIG_IGN); /* it is about to end well: no further one may kill it */
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	lth_pool_close(server->pool, on_pool_closed);
}

static void maybe_finish_drain(struct lth_server *server)
{
	bool busy = lth_jobs_in_flight(server->jobs, NULL) > 0 || lth_http_answers(server);
	if (server->draining && (!busy || lth_now_ns() > server->drain_until_ns))
		shut(server);
}

void lth_server_stop(struct lth_server *server)
{
	if (server->draining) {
		shut(server);
		return;
	}
	lth_systemd_notify("STOPPING=1");
	lth_log_event(&server->log, LTH_LOG_INFO, NULL, "drain", NULL);
	server->draining = true;
	server->drain_until_ns = lth_now_ns() + server->config.drain_timeout_ms * 1000000;
	lth_jobs_drain(server->jobs);
	maybe_finish_drain(server);
	if (!server->stopping)
		uv_timer_set_repeat(&server->sweep_timer, SWEEP_MS / 20);
	uv_timer_again(&server->sweep_timer);
}

/* --- eviction, in the thread pool, one at a time */
struct eviction {
	uv_work_t request;
	struct lth_server *server;
	uint64_t budget_bytes;
	json_t *held; /* digests of jobs in flight when it began, as keys */
	unsigned gone;
};

static bool is_held(const void *context, const char *digest)
{
	return json_object_get(context, digest) != NULL;
}

static void run_eviction(uv_work_t *request)
{
	struct eviction *eviction = request->data;
	eviction->gone = lth_store_evict(&eviction->server->store, eviction->budget_bytes, EVICTION_GRACE_S, is_held,
					 eviction->held);
}

static void after_eviction(uv_work_t *request, int status)
{
	struct eviction *eviction = request->data;
	struct lth_server *server = eviction->server;
	char gone[16];
	(void)status;
	server->evicting = false;
	server->metrics.values[LTH_METRIC_STORE_EVICTED] += eviction->gone;
	server->metrics.values[LTH_METRIC_STORE_BYTES] = atomic_load(&server->store.bytes);
	snprintf(gone, sizeof(gone), "%u", eviction->gone);
	if (eviction->gone)
		lth_log_event(&server->log, LTH_LOG_INFO, NULL, "evicted", "files", gone, NULL);
	json_decref(eviction->held);
	free(eviction);
}

/* Goes down to nine tenths of the budget, so that not every publication scans the store. */
static void maybe_evict(struct lth_server *server)
{
	uint64_t budget = server->config.store_budget_bytes;
	if (!budget || server->evicting || server->stopping || atomic_load(&server->store.bytes) <= budget)
		return;
	struct eviction *eviction = calloc(1, sizeof(*eviction));
	if (!eviction)
		return;
	*eviction = (struct eviction){
		.server = server, .budget_bytes = budget / 10 * 9, .held = lth_jobs_held(server->jobs)};
	eviction->request.data = eviction;
	server->evicting =
		eviction->held && uv_queue_work(server->loop, &eviction->request, run_eviction, after_eviction) == 0;
	if (!server->evicting) {
		json_decref(eviction->held);
		free(eviction);
	}
}

static void on_sweep(uv_timer_t *timer)
{
	struct lth_server *server = timer->data;
	lth_http_sweep(server);
	maybe_evict(server);
	maybe_finish_drain(server);
}

/* The watchdog is fed while jobs move: a daemon whose job is past its deadline by much is stuck, whatever its loop
 * does. */
static void on_watchdog(uv_timer_t *timer)
{
	struct lth_server *server = timer->data;
	if (!lth_jobs_stuck(server->jobs))
		lth_systemd_notify("WATCHDOG=1");
}

/* New settings, and the files that they name: all of them or none. */
static void reload(struct lth_server *server)
{
	struct lth_config fresh = {0};
	struct lth_tls tls = {0};
	struct lth_diag diag = {0};
	enum lth_config_action action;
	char line[1024];
	lth_systemd_notify("RELOADING=1");
	enum lth_code code = lth_config_load(server->argc, server->argv, &fresh, &action, &diag);
	if (code == LTH_OK)
		code = lth_tls_load(&fresh, &tls, &diag);
	if (code == LTH_OK && !tls.cert != !server->tls.cert)
		code = lth_diag_fail(&diag, LTH_INVALID_OPTION, "tls_cert", NULL, "restart the daemon",
				     "TLS switched on or off by a reload");
	if (code == LTH_OK && fresh.token_file[0] && server->config.token_file[0])
		code = lth_tokens_load(&server->tokens, fresh.token_file, &diag);
	if (code == LTH_OK && !fresh.token_file[0] != !server->config.token_file[0])
		code = lth_diag_fail(&diag, LTH_INVALID_OPTION, "token_file", NULL, "restart the daemon",
				     "credentials switched on or off by a reload");
	if (diag.code == LTH_OK) {
		lth_tls_renew(&server->tls, &tls);
		lth_config_reload(&server->config, &fresh, &server->log);
		server->log.threshold = server->config.log_threshold;
		lth_log_event(&server->log, LTH_LOG_INFO, NULL, "reloaded", NULL);
	} else {
		lth_log_event(&server->log, LTH_LOG_ERROR, NULL, "reload-refused", "problem",
			      lth_diag_line(&diag, line, sizeof(line)), NULL);
	}
	lth_tls_free(&tls);
	lth_config_free(&fresh);
	lth_systemd_notify("READY=1");
}

static void on_signal(uv_signal_t *handle, int number)
{
	struct lth_server *server = handle->data;
	if (number == SIGHUP)
		reload(server);
	else
		lth_server_stop(server);
}

static void watch_signal(struct lth_server *server, uv_signal_t *handle, int number)
{
	uv_signal_init(server->loop, handle);
	handle->data = server;
	uv_signal_start(handle, on_signal, number);
}

/* --- start */
static enum lth_code write_port_file(const struct lth_server *server, struct lth_diag *diag)
{
	char text[16];
	int size = snprintf(text, sizeof(text), "%u\n", server->port);
	if (!server->config.port_file[0])
		return LTH_OK;
	return lth_write_file(server->config.port_file, text, (size_t)size, false, diag);
}

enum lth_code lth_server_start(struct lth_server *server, uv_loop_t *loop, struct lth_diag *diag)
{
	char port[16];
	server->loop = loop;
	server->log.threshold = server->config.log_threshold;
	server->started_ns = lth_now_ns();
	server->listen_fd = -1;
	enum lth_code code = server->config.token_file[0]
				     ? lth_tokens_load(&server->tokens, server->config.token_file, diag)
				     : LTH_OK;
	if (code == LTH_OK)
		code = lth_tls_load(&server->config, &server->tls, diag);
	if (code == LTH_OK)
		code = lth_server_listen(server, diag);
	if (code == LTH_OK)
		code = lth_store_open(&server->store, server->config.state_dir, diag);
	if (code != LTH_OK)
		return code;
	server->metrics.values[LTH_METRIC_STORE_BYTES] = atomic_load(&server->store.bytes);
	server->jobs = lth_jobs_create(loop, &server->config, &server->store, &server->answers, &server->metrics,
				       &server->log);
	if (!server->jobs)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "start", NULL, NULL, "jobs");
	const struct lth_pool_events events = {server, on_stage, on_pass, on_outcome, on_room, on_description};
	server->pool = lth_pool_create(loop, &server->config, &server->store, &server->metrics, &server->log, &events);
	if (!server->pool)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "start", NULL, NULL, "the pool");
	lth_jobs_attach(server->jobs, server->pool);
	lth_jobs_recover(server->jobs, &server->store, &server->log);
	uv_timer_init(loop, &server->http_timer);
	uv_timer_init(loop, &server->sweep_timer);
	uv_timer_init(loop, &server->watchdog_timer);
	server->http_timer.data = server->sweep_timer.data = server->watchdog_timer.data = server;
	if (lth_systemd_watchdog_ms())
		uv_timer_start(&server->watchdog_timer, on_watchdog, 0, lth_systemd_watchdog_ms());
	uv_timer_start(&server->sweep_timer, on_sweep, SWEEP_MS, SWEEP_MS);
	watch_signal(server, &server->sigterm, SIGTERM);
	watch_signal(server, &server->sigint, SIGINT);
	watch_signal(server, &server->sighup, SIGHUP);
	code = start_http(server, diag);
	if (code == LTH_OK)
		code = write_port_file(server, diag);
	if (code != LTH_OK)
		return code;
	lth_systemd_notify("READY=1");
	snprintf(port, sizeof(port), "%u", server->port);
	lth_log_event(&server->log, LTH_LOG_INFO, NULL, "listening", "address", server->config.listen, "port", port,
		      "state_dir", server->store.root, NULL);
	return LTH_OK;
}

void lth_server_finish(struct lth_server *server)
{
	if (server->http)
		MHD_stop_daemon(server->http); /* closes the listening socket too */
	else if (server->listen_fd >= 0)
		close(server->listen_fd);
	server->http = NULL;
	lth_jobs_destroy(&server->jobs);
	lth_pool_destroy(&server->pool);
	lth_answers_clear(&server->answers);
	lth_description_free(&server->description);
	lth_store_close(&server->store);
	lth_tokens_free(&server->tokens);
	lth_tls_serve(NULL);
	lth_tls_free(&server->tls);
	if (strncmp(server->config.listen, "unix:", 5) == 0)
		unlink(server->config.listen + 5);
	lth_config_free(&server->config);
}
