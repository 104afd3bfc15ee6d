/* The daemon as one structure, and requests as the routes see them. Only the files of http.h and reply.c know
 * libmicrohttpd; routes work with what stands here. A route's handler is called once the body is complete; it either
 * replies or suspends the request until a job or a piece of work wakes it. Thread rule: loop thread. */
#ifndef LTH_DAEMON_SERVER_H
#define LTH_DAEMON_SERVER_H

#include "daemon/answers.h"
#include "daemon/auth.h"
#include "daemon/config.h"
#include "daemon/description.h"
#include "daemon/jobs.h"
#include "daemon/metrics.h"
#include "daemon/pool.h"
#include "daemon/shortcut.h"
#include "daemon/store.h"
#include "runtime/base/buf.h"
#include "runtime/base/log.h"

#include <stddef.h>
#include <uv.h>

struct MHD_Connection;
struct MHD_Daemon;
struct MHD_Response;
struct lth_request;

enum lth_body { LTH_BODY_NONE, LTH_BODY_SPOOL, LTH_BODY_BLOB, LTH_BODY_MODEL };

struct lth_route {
	const char *method, *path;
	enum lth_body body;
	enum lth_role role;
	void (*handler)(struct lth_request *request);
};

struct lth_connection { /* one client's socket */
	struct lth_connection *next, *previous;
	int fd;
	uint64_t quiet_since_ns; /* when it last had no request */
	struct lth_request *request;
};

struct lth_server {
	uv_loop_t *loop;
	struct lth_config config;
	struct lth_log log;
	struct lth_metrics metrics;
	struct lth_store store;
	struct lth_answers answers;
	struct lth_shortcuts shortcuts;
	struct lth_description description;
	struct lth_tokens tokens;
	struct lth_pool *pool;
	struct lth_jobs *jobs;
	struct MHD_Daemon *http;
	struct lth_connection *connections;
	int listen_fd;
	unsigned port;
	struct lth_tls {
		char *cert, *key, *client_ca; /* PEM; NULL without TLS */
	} tls;
	bool connection_ended; /* since the library last began to run */
	bool loopback, draining, stopping, pool_closed, evicting, description_is_new;
	uint64_t drain_until_ns, started_ns;
	uv_poll_t http_poll;
	uv_timer_t http_timer, sweep_timer, watchdog_timer;
	uv_signal_t sigterm, sigint, sighup;
	int argc;
	char **argv;
};

struct lth_request {
	struct lth_server *server;
	struct MHD_Connection *connection;
	struct lth_connection *socket;
	const struct lth_route *route; /* NULL: none matched */
	unsigned route_number;
	char argument[160]; /* what stood for `*` in the path */
	uint64_t started_ns, body_bytes, body_limit;
	uint64_t reply_since_ns, acked_before; /* when the sweep first saw its reply, and what of the connection had arrived */
	bool head, dispatched, suspended, gone, working;
	bool early; /* waits for the first worker to introduce itself */
	enum lth_body body;
	bool body_is_json;
	char client[64];        /* the name that its credentials gave it; else empty */
	enum lth_role role; /* what those credentials allow; everything where none are asked for */
	struct lth_spool spool; /* a raw body */
	struct lth_buf text;    /* a JSON body */
	struct lth_diag diag;   /* the first thing that went wrong with the body */
	struct MHD_Response *response;
	struct lth_answer *answer; /* whose kept reply the response is; else NULL: it is the request's own */
	unsigned status;
	struct lth_waiter waiter;
	struct lth_place place; /* while the job's inputs are stored */
	struct lth_reply_later {
		bool waits;                   /* for a blob to be verified: headers are kept for the reply then */
		char digest[LTH_DIGEST_TEXT]; /* of the blob */
		const char *type;
		struct lth_buf headers; /* name NUL value NUL ... */
	} later;
	const char *cache; /* for the reply: "miss", "hit", "joined" */
	bool wants_handle; /* 202 once the job's record is on disk */
	uint64_t own_timeout_ms;
	uv_timer_t *timer; /* of a wait, while one runs */
	struct lth_watcher *watcher;
	int64_t (*read)(struct lth_request *request, char *buffer, size_t size); /* of a stream */
	void *state; /* the route's own, freed by free_state */
	void (*free_state)(void *state);
};

static inline struct lth_request *lth_request_of(struct lth_waiter *waiter)
{
	return (struct lth_request *)(void *)((char *)waiter - offsetof(struct lth_request, waiter));
}

/* --- server.c */
LTH_MUST_CHECK enum lth_code lth_server_start(struct lth_server *server, uv_loop_t *loop, struct lth_diag *diag);
/* After the loop has ended. */
void lth_server_finish(struct lth_server *server);
/* Lets libmicrohttpd run soon, after something outside its callbacks has changed its connections. */
void lth_server_kick(struct lth_server *server);
/* First call drains, second is fast. */
void lth_server_stop(struct lth_server *server);

/* --- listen.c */
/* Sets listen_fd, port and loopback. */
LTH_MUST_CHECK enum lth_code lth_server_listen(struct lth_server *server, struct lth_diag *diag);

/* --- tls.c */
LTH_MUST_CHECK enum lth_code lth_tls_load(const struct lth_config *config, struct lth_tls *out_tls,
					  struct lth_diag *diag);
void lth_tls_free(struct lth_tls *tls);
/* The server's certificate and key of `fresh`, and in return those it had; the authority of clients stays as it was. */
void lth_tls_renew(struct lth_tls *tls, struct lth_tls *fresh);
/* What handshakes use from now on; NULL at the end. */
void lth_tls_serve(const struct lth_tls *tls);
/* True when the client showed a certificate that our authority signed; its common name is put into `out_name`. */
bool lth_tls_client(const struct lth_request *request, char *out_name, size_t size);

/* --- waiting.c */
/* One timer a request. Without memory for it there is none: the request waits for what it waits for. */
void lth_request_start_timer(struct lth_request *request, uint64_t ms, uv_timer_cb callback);
void lth_request_stop_timer(struct lth_request *request);
/* Until lth_request_resume; watches for a client that leaves. Not with a reply set: libmicrohttpd loses a reply that it is
 * given for a suspended connection. */
void lth_request_suspend(struct lth_request *request);
void lth_request_resume(struct lth_request *request);  /* a reply must have been set, unless the client is gone */
/* Runs `work` in the thread pool with the request suspended, then `after` on the loop, which replies or goes on
 * waiting. */
void lth_request_work(struct lth_request *request, void (*work)(struct lth_request *request),
		      void (*after)(struct lth_request *request));
/* True when a worker has introduced itself. Else the request waits for that (then its handler is called again), or is
 * refused once it has waited long. */
bool lth_request_has_description(struct lth_request *request);
void lth_request_wake_early(struct lth_server *server);

/* --- request.c */
/* Throws a request's spooled body away, a large one in the thread pool. Accepts none. */
void lth_request_drop_body(struct lth_request *request);
const char *lth_request_header(const struct lth_request *request, const char *name); /* NULL when absent */
/* Calls `visit` for each query argument in order, until it returns false. */
void lth_request_arguments(const struct lth_request *request,
			   bool (*visit)(void *context, const char *name, const char *value), void *context);
const char *lth_request_argument(const struct lth_request *request, const char *name); /* the first; NULL when absent */
/* Who asks, for fairness: the Lathe-Client header, else the peer's address. */
void lth_request_client(const struct lth_request *request, char *out_name, size_t size);
/* The traceparent header, if it is well formed; else empty. */
void lth_request_trace(const struct lth_request *request, char *out_trace, size_t size);
bool lth_request_wants_no_cache(const struct lth_request *request);

/* --- reply.c: each sets the request's reply; headers may be added afterwards */
void lth_reply_bytes(struct lth_request *request, unsigned status, const char *type, char *bytes,
		     size_t size); /* takes */
void lth_reply_static(struct lth_request *request, unsigned status, const char *type, const char *text, size_t size);
void lth_reply_fd(struct lth_request *request, unsigned status, const char *type, int fd, uint64_t offset,
		  uint64_t size);                                                    /* takes the descriptor */
void lth_reply_json(struct lth_request *request, unsigned status, json_t *document); /* takes */
void lth_reply_problem(struct lth_request *request, const struct lth_diag *diag, const json_t *extra);
void lth_reply_header(struct lth_request *request, const char *name, const char *value);
/* The reply that has just been set becomes the answer's, for lth_reply_kept; no header can be added any more. */
void lth_reply_keep(struct lth_request *request, struct lth_answer *answer);
/* The answer's kept reply; false when it has none. */
bool lth_reply_kept(struct lth_request *request, struct lth_answer *answer);
/* Lets go of the response, sent or not. */
void lth_reply_drop(struct lth_request *request);
/* A reply without end whose bytes `read` gives: how many it wrote, 0 for none yet (the request is suspended until
 * lth_request_resume), -1 for the end. */
void lth_reply_stream(struct lth_request *request, const char *type,
		      int64_t (*read)(struct lth_request *request, char *buffer, size_t size));
/* A blob with ETag, conditions and ranges. A blob that has not been hashed since the start is verified first, in the
 * thread pool: the request is suspended then, and headers added meanwhile wait for the reply. */
void lth_reply_blob(struct lth_request *request, const char *digest, const char *type);

/* --- route_store.c */
/* An upload whose client went away: what has arrived is kept for it to go on. Takes the spool. */
void lth_blob_keep_cut(struct lth_request *request);

/* --- routes.c */
/* Finds the route and fills route, route_number, argument and head; else sets a problem (404, 405 with Allow). */
void lth_routes_match(struct lth_request *request, const char *method, const char *path);
const char *lth_routes_name(unsigned number);
#define LTH_ROUTE(method, path, body, role, handler, summary) void handler(struct lth_request *request);
#include "daemon/routes.def"
#undef LTH_ROUTE

/* --- deliver.c: what jobs end with, as replies */
void lth_deliver_answer(struct lth_request *request, struct lth_answer *answer, const char *cache);
void lth_deliver_job(struct lth_request *request, struct lth_job *job); /* an ended one */
void lth_deliver_timeline(struct lth_request *request, const struct lth_answer *answer);
json_t *lth_job_json(const struct lth_job *job);
/* A job that was not taken: with the number of queued ones. */
void lth_deliver_refusal(struct lth_request *request, const struct lth_diag *diag);
/* Submits the spec (taken) and replies, or suspends until the job ends: what Prefer says. */
void lth_deliver_submit(struct lth_request *request, struct lth_job_spec *spec);
/* The job's end as a reply, now or within some seconds; else 202 with its state. */
void lth_deliver_when_done(struct lth_request *request, struct lth_job *job, int64_t seconds);

#endif
