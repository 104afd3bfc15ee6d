/* lathe_client.h: talking to a Lathe daemon from C (-llathe-client, which needs libcurl and jansson).
 *
 *	struct lathe_client *client;
 *	struct lathe_problem problem;
 *	struct lathe_reply reply;
 *	struct lathe_compile compile = {.model = bytes, .model_bytes = size, .query = "opt_level=3&dim=batch=1:64:8"};
 *	if (lathe_client_create(NULL, &client, &problem) || lathe_client_compile(client, &compile, &reply, &problem))
 *		return fprintf(stderr, "%s\n", problem.text), problem.exit_code;
 *	... reply.body is the result document, JSON
 *	lathe_reply_free(&reply);
 *	lathe_client_destroy(&client);
 *
 * Functions that can fail return 0, or the exit code that Lathe's programs end with for that problem, and then have
 * filled in `problem`, which may be NULL. Output parameters are written on success only. Requests that the daemon
 * refuses because it is busy (429, 503) are repeated after the time it asks for; everything that is sent may be sent
 * twice without harm. Threads: one thread a client; any number of clients, the first of them created before threads. */
#ifndef LATHE_CLIENT_H
#define LATHE_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { LATHE_DIGEST_TEXT = 7 + 64 + 1 }; /* "sha256:", 64 hex digits, NUL */

/* What went wrong: by the daemon's account (RFC 9457), or on the way to it. */
struct lathe_problem {
	int exit_code; /* what the command line exits with */
	int status; /* of HTTP; 0 when there was no answer */
	char type[48]; /* stable word: "unsupported-op", "busy", "unreachable" ... */
	char place[256]; /* where: a node, an option, an address */
	char found[2048]; /* what was found */
	char expected[512]; /* what would have been right; may be empty */
	char advice[512]; /* what to do; may be empty */
	char text[4096]; /* all of it in one line, for people */
};

struct lathe_client;

/* How far a call has come; totals are 0 while unknown. */
struct lathe_progress {
	uint64_t sent_bytes, send_bytes, received_bytes, receive_bytes;
	double seconds; /* since the call began */
	double retry_after; /* above 0: the daemon is busy, and this many seconds are waited */
};

struct lathe_client_settings {
	const char
		*server; /* http://HOST:PORT, https://..., unix:PATH; NULL: $LATHE_SERVER, else http://127.0.0.1:8117 */
	const char *token; /* NULL: $LATHE_TOKEN, else none */
	const char *ca_file; /* PEM of the authority to trust; NULL: the system's */
	const char *cert_file; /* of a client certificate, PEM */
	const char *key_file;
	int retries; /* of a busy daemon; negative: 8 */
	void (*on_progress)(void *context,
			    const struct lathe_progress *progress); /* a few times a second; may be NULL */
	void *context;
};

/* `settings` may be NULL. Does not connect. */
int lathe_client_create(const struct lathe_client_settings *settings, struct lathe_client **out_client,
			struct lathe_problem *problem);
void lathe_client_destroy(struct lathe_client **client);
/* The daemon's address; borrowed. */
const char *lathe_client_server(const struct lathe_client *client);

/* One request. What is NULL is not sent. */
struct lathe_call {
	const char *method; /* "GET", "HEAD", "PUT", "POST", "DELETE" */
	const char *path; /* with its query: "/v1/jobs?state=running" */
	const void *body;
	size_t body_bytes;
	const char *type; /* Content-Type of the body */
	const char *content_range; /* of a body that is a part: "bytes FIRST-LAST/TOTAL" */
	const char *accept, *prefer;
	int no_cache; /* 1: Cache-Control: no-cache */
};

struct lathe_reply {
	int status;
	char *body; /* the caller's; a NUL stands behind `bytes` bytes */
	size_t bytes;
	char job[32]; /* the job's id, where there was one */
	char location[256];
	uint64_t upload_offset; /* how much of an upload the daemon has, where it said so */
};

int lathe_client_call(struct lathe_client *client, const struct lathe_call *call, struct lathe_reply *out_reply,
		      struct lathe_problem *problem);
void lathe_reply_free(struct lathe_reply *reply);

/* Makes sure that the daemon has these bytes as a blob, and writes their digest. Sends only what it lacks of them: an
 * upload that was cut off, by whomever and whenever, goes on where it was. */
int lathe_client_upload(struct lathe_client *client, const void *bytes, size_t size, char out_digest[LATHE_DIGEST_TEXT],
			struct lathe_problem *problem);
/* A blob's bytes, checked against the digest. */
int lathe_client_blob(struct lathe_client *client, const char *digest, struct lathe_reply *out_reply,
		      struct lathe_problem *problem);

struct lathe_file {
	const char *name; /* as the model names it */
	const void *bytes;
	size_t size;
};

struct lathe_compile {
	const void *model; /* ONNX, or Lathe's JSON graph */
	size_t model_bytes;
	const struct lathe_file *files; /* external data */
	size_t num_files;
	const char *query; /* options as in a URL, escaped; may be NULL */
	const char *options; /* options as JSON; may be NULL; the query adds to them */
	const char *accept; /* NULL: the result document as JSON */
	const char *prefer; /* "respond-async", "wait=N"; may be NULL */
	int no_cache;
};

/* Compiles. A large model, and one with files, goes by digest and is sent only if the daemon lacks it. */
int lathe_client_compile(struct lathe_client *client, const struct lathe_compile *compile,
			 struct lathe_reply *out_reply, struct lathe_problem *problem);

#ifdef __cplusplus
}
#endif
#endif
