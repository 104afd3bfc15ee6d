/* Threads that share one parallel range. A pool of n threads is the caller and n - 1 workers, made once; a call
 * allocates nothing. A range is cut into chunks whose bounds depend on the range, the grain and the number of threads
 * only; each thread owns a run of neighbouring chunks, and helps others when its own are done. Since every unit is
 * computed by itself, results do not depend on who did which chunk.
 *
 * A call ends when all chunks are done, and never waits for a worker that did not wake up in time to claim one.
 * Thread rule: one call at a time a pool, not from inside a task. */
#ifndef LTH_THREADPOOL_H
#define LTH_THREADPOOL_H

#include <stdint.h>

struct lth_threadpool;

/* Units [begin, end) by thread `thread`; a non-zero value is an error and stops further chunks. */
typedef int (*lth_task_fn)(void *context, int64_t begin, int64_t end, int64_t thread);

enum { LTH_MAX_THREADS = 256 };

/* `threads` of 1 makes no thread at all. NULL when out of memory or threads cannot be made. */
struct lth_threadpool *lth_threadpool_create(unsigned threads);
void lth_threadpool_destroy(struct lth_threadpool **pool);
unsigned lth_threadpool_threads(const struct lth_threadpool *pool);

/* Runs the task over [0, range) on at most `max_threads` threads, in chunks of at least `grain` units. Returns 0 or the
 * error of the first chunk, by index, that reported one. */
int lth_threadpool_run(struct lth_threadpool *pool, lth_task_fn task, void *context, int64_t range, int64_t grain,
		       unsigned max_threads);

#endif
