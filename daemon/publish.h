/* From a bundle to the store: checks every number, stores artifacts, document and kernels, then the action entry, in
 * that order, in libuv's thread pool (it hashes and waits for the disk). Thread rule: begin and the callback on the
 * loop thread. */
#ifndef LTH_DAEMON_PUBLISH_H
#define LTH_DAEMON_PUBLISH_H

#include "daemon/answers.h"
#include "daemon/store.h"

#include <uv.h>

struct lth_publish {
	struct lth_store *store;
	int bundle_fd;  /* taken */
	char *work_dir; /* taken, and removed */
	uint64_t index_offset, index_bytes;
	char key[LTH_DIGEST_TEXT]; /* empty for a plan: its document is the answer */
	char model[LTH_DIGEST_TEXT];
	bool keep_plan; /* store a plan too: its job may outlive the daemon */
	double queue_ms;
	void *context;
	/* `answer` (taken by the callee) or, when NULL, the diag. */
	void (*on_published)(void *context, struct lth_answer *answer, const struct lth_diag *diag);
};

/* Copies `publish`. False when out of memory; what it would take stays the caller's then. */
bool lth_publish_begin(uv_loop_t *loop, const struct lth_publish *publish);

#endif
