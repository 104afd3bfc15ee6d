/* Runs a function in a child process, for code that may crash or hang: the measured model. The child inherits the
 * worker's resource limits, Landlock and seccomp (see fork(2), seccomp(2)), and keeps no descriptor but the pipe of its
 * answer and standard error. Thread rule: call from a process whose other threads hold no locks that the function
 * needs. */
#ifndef LTH_DRIVER_CHILD_H
#define LTH_DRIVER_CHILD_H

#include "runtime/base/buf.h"
#include "runtime/base/diag.h"

#include <stdint.h>

/* In the child: malloc'ed text, or NULL when it failed. */
typedef char *(*lth_child_fn)(void *context);

/* `out_text` is what the function returned (the caller frees it), `*out_rss_bytes` the child's largest resident size. It is
 * given `limit_ms` of wall-clock time (0: no limit). A child that dies is LTH_RUNTIME_ERROR with its signal, one that
 * takes too long LTH_DEADLINE, one that the kernel kills LTH_OUT_OF_MEMORY; `place` stands in all of them. */
LTH_MUST_CHECK enum lth_code lth_child_run(const char *place, lth_child_fn function, void *context, uint64_t limit_ms,
					   struct lth_buf *out_text, int64_t *out_rss_bytes, struct lth_diag *diag);

#endif
