/* A worker: one process of the daemon's pool that takes one job at a time over a socket pair. The loop knows nothing of
 * compiling: what it calls stands in a table, so that the real worker and the test double share it.
 *
 * Protocol (runtime/base/wire.h; the text of a message is a JSON object with `event`):
 *   worker  -> {"event":"ready","build","layers":[...]} + [description memfd]          once, after it has locked itself in
 *   daemon  -> {"event":"job","job"} + [request memfd, bundle file, payload, files...]
 *   worker  -> {"event":"stage","stage"}                                               as each stage begins
 *   worker  -> {"event":"pass","pass"}                                                 and each pass of a compile
 *   worker  -> {"event":"done","index_offset","index_bytes"}                           the bundle is complete
 *   worker  -> {"event":"failed","slug","place","found","expected","advice"}           the job failed, the worker is well
 *   worker  -> {"event":"crash","signal","address_space_bytes"}                        last words of a dying worker
 * The daemon closes its end to send a worker home.
 * The request is {"job","kind":"compile|plan|plan_check","options","model_is_json","csv","work_dir","threads",
 * "cpu_seconds","left_ms","model":{"digest","hashed"},"files":[{"name","digest","hashed"}]}; left_ms is the time until
 * the job's deadline; the payload is the model or the plan's body. What the daemon has not hashed since its start, the
 * worker hashes before it uses it. The bundle holds the document, the artifacts
 * and the new kernels one after another and ends with its index: {"document":{offset,bytes},
 * "artifacts":[{kind,offset,bytes}],"kernels":[{name,offset,bytes,digest}]}. An artifact with "file":N in place of an
 * offset is the file artifact-N of work_dir, which the worker has closed.
 * A document with "cacheable": false is delivered and stored, but no later request is answered with it.
 * Thread rule: one worker a process; the loop runs on the main thread. */
#ifndef LTH_WORKER_H
#define LTH_WORKER_H

#include "compiler/compile.h"

#include <stdint.h>

typedef enum lth_code (*lth_worker_plan_fn)(const char *bytes, size_t size, bool csv, const json_t *options,
					    json_t **out_document, struct lth_diag *diag);

struct lth_worker_functions {
	json_t *(*describe)(void);
	enum lth_code (*compile)(const struct lth_compile_request *request, struct lth_compile_result *out_result,
				 struct lth_diag *diag);
	void (*free_result)(struct lth_compile_result *result);
	lth_worker_plan_fn plan, plan_check; /* NULL where the build has no planner: such jobs are refused */
};

/* Command line of every worker: --fd N --parent PID --work DIR --kernels DIR --memory BYTES --file-bytes BYTES
 * --nice N [--no-sandbox]. Returns the exit status of the process. */
int lth_worker_main(int argc, char **argv, const struct lth_worker_functions *functions);

/* --- sandbox.c */
struct lth_worker_limits {
	long parent;              /* the daemon; the worker dies with it. 0: not checked */
	uint64_t memory_bytes;    /* of address space, 0 for none */
	uint64_t file_bytes;      /* of any file written, 0 for none */
	int nice;                 /* 0 to 19: how much others come first */
	const char *work_dir;     /* may be written */
	const char *kernel_cache; /* may be read; NULL for none */
	bool sandbox;             /* Landlock and seccomp, where the kernel has them */
};
/* Locks the process in; adds the names of the layers that hold to `layers`. Whatever the kernel lacks is left out; a
 * layer that exists and fails is an error. */
LTH_MUST_CHECK enum lth_code lth_worker_lock_in(const struct lth_worker_limits *limits, json_t *layers,
						struct lth_diag *diag);
/* What the kernel said when it refused a layer. */
enum lth_code lth_worker_layer_failed(struct lth_diag *diag, const char *layer);
/* --- calls.c: the last layer. */
LTH_MUST_CHECK enum lth_code lth_worker_deny_calls(json_t *layers, struct lth_diag *diag);
/* A new CPU budget that begins now: SIGXCPU after `seconds`. */
void lth_worker_cpu_budget(uint64_t seconds);

/* --- crash.c */
/* From now on a fatal signal sends `crash` on `fd` before it kills the process. False when out of memory. */
bool lth_worker_report_crashes(int fd);

/* --- bundle.c */
/* Writes the result, with its index at the end, to `fd`. */
LTH_MUST_CHECK enum lth_code lth_worker_bundle(int fd, const struct lth_compile_result *result,
					       uint64_t *out_index_offset, uint64_t *out_index_bytes,
					       struct lth_diag *diag);

#endif
