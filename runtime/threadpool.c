/* Threads that share one parallel range. See threadpool.h.
 *
 * A job is published by raising `generation`. A thread's chunks are claimed through its ticket, a word that holds the
 * job's generation, the next chunk and the end of its chunks: a claim is a compare-and-swap, so it fails when the job
 * has changed, and a worker that woke late can do no harm. What a worker read of the job before a claim that succeeds
 * was the current job's: the job cannot end before that chunk is done. */
#include "runtime/threadpool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

enum {
	CACHE_LINE = 64, /* chunks of a job are at most LTH_MAX_THREADS * CHUNKS_PER_THREAD: 16 bits hold them */
	CHUNKS_PER_THREAD = 4,
	SPINS = 2000, /* about the length of a short kernel; then a worker sleeps */
	SPINS_PER_YIELD = 200
};

struct ticket {
	_Alignas(CACHE_LINE) _Atomic uint64_t word; /* generation << 32 | end << 16 | next chunk */
};

struct worker {
	struct lth_threadpool *pool;
	pthread_t thread;
	unsigned index;
};

struct lth_threadpool {
	_Alignas(CACHE_LINE) _Atomic uint32_t generation;
	_Atomic bool stopping;
	/* The job in hand. */
	_Atomic(lth_task_fn) task;
	_Atomic(void *) context;
	_Atomic int64_t range, chunk_units;
	_Atomic uint32_t job_threads;
	_Alignas(CACHE_LINE) _Atomic uint32_t remaining; /* chunks not done */
	_Atomic uint64_t error;                          /* chunk << 32 | value; UINT64_MAX: none */
	struct ticket *tickets;
	struct worker *workers;
	unsigned threads, started;
	pthread_mutex_t mutex; /* holds: sleepers */
	pthread_cond_t wake;
	_Atomic unsigned sleepers;
};

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#endif
}

static void record_error(struct lth_threadpool *pool, uint32_t chunk, int error)
{
	uint64_t mine = (uint64_t)chunk << 32 | (uint32_t)error, seen = atomic_load(&pool->error);
	while (mine < seen && !atomic_compare_exchange_weak(&pool->error, &seen, mine))
		;
}

/* Claims the next chunk of one thread's part for this generation. */
static bool claim(struct ticket *ticket, uint32_t generation, uint32_t *out_chunk)
{
	uint64_t word = atomic_load_explicit(&ticket->word, memory_order_acquire);
	for (;;) {
		uint32_t next = (uint32_t)word & 0xFFFF, end = (uint32_t)word >> 16;
		if (word >> 32 != generation || next >= end)
			return false;
		if (atomic_compare_exchange_weak_explicit(&ticket->word, &word, word + 1, memory_order_acq_rel,
							  memory_order_acquire)) {
			*out_chunk = next;
			return true;
		}
	}
}

/* Does chunks of the job until there are none: the thread's own part first, then the others'. */
static void work(struct lth_threadpool *pool, uint32_t generation, unsigned self)
{
	uint32_t threads = atomic_load_explicit(&pool->job_threads, memory_order_relaxed);
	lth_task_fn task = atomic_load_explicit(&pool->task, memory_order_relaxed);
	void *context = atomic_load_explicit(&pool->context, memory_order_relaxed);
	int64_t range = atomic_load_explicit(&pool->range, memory_order_relaxed);
	int64_t units = atomic_load_explicit(&pool->chunk_units, memory_order_relaxed);
	if (self >= threads)
		return;
	for (uint32_t step = 0; step < threads; step++) {
		struct ticket *ticket = &pool->tickets[(self + step) % threads];
		uint32_t chunk;
		while (claim(ticket, generation, &chunk)) {
			int64_t begin = (int64_t)chunk * units, end = range - begin < units ? range : begin + units;
			int error = atomic_load_explicit(&pool->error, memory_order_relaxed) == UINT64_MAX
					    ? task(context, begin, end, self)
					    : 0;
			if (error)
				record_error(pool, chunk, error);
			atomic_fetch_sub_explicit(&pool->remaining, 1, memory_order_acq_rel);
		}
	}
}

/* Waits for a generation other than `seen`: spins a little, then sleeps. */
static uint32_t await_job(struct lth_threadpool *pool, uint32_t seen)
{
	for (int i = 0; i < SPINS; i++) {
		uint32_t now = atomic_load_explicit(&pool->generation, memory_order_acquire);
		if (now != seen)
			return now;
		relax();
	}
	pthread_mutex_lock(&pool->mutex);
	atomic_fetch_add(&pool->sleepers, 1);
	uint32_t now;
	while ((now = atomic_load(&pool->generation)) == seen)
		pthread_cond_wait(&pool->wake, &pool->mutex);
	atomic_fetch_sub(&pool->sleepers, 1);
	pthread_mutex_unlock(&pool->mutex);
	return now;
}

static void *worker_main(void *argument)
{
	struct worker *self = argument;
	struct lth_threadpool *pool = self->pool;
	for (uint32_t seen = 0;;) {
		seen = await_job(pool, seen);
		if (atomic_load(&pool->stopping))
			return NULL;
		work(pool, seen, self->index);
	}
}

/* Makes a job, or the end, known to spinning and to sleeping workers. */
static uint32_t publish(struct lth_threadpool *pool)
{
	uint32_t generation = atomic_fetch_add(&pool->generation, 1) + 1;
	if (atomic_load(&pool->sleepers)) {
		pthread_mutex_lock(&pool->mutex);
		pthread_cond_broadcast(&pool->wake);
		pthread_mutex_unlock(&pool->mutex);
	}
	return generation;
}

static bool start_workers(struct lth_threadpool *pool)
{
	for (unsigned i = 1; i < pool->threads; i++) {
		struct worker *worker = &pool->workers[i];
		*worker = (struct worker){.pool = pool, .index = i};
		if (pthread_create(&worker->thread, NULL, worker_main, worker) != 0)
			return false;
		pool->started = i;
	}
	return true;
}

static void *aligned_zero(size_t size)
{
	size_t rounded = (size + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
	char *memory = aligned_alloc(CACHE_LINE, rounded);
	for (size_t i = 0; memory && i < rounded; i++)
		memory[i] = 0;
	return memory;
}

struct lth_threadpool *lth_threadpool_create(unsigned threads)
{
	threads = threads < 1 ? 1 : threads > LTH_MAX_THREADS ? LTH_MAX_THREADS : threads;
	struct lth_threadpool *pool = aligned_zero(sizeof(*pool));
	if (!pool)
		return NULL;
	pool->threads = threads;
	pthread_mutex_init(&pool->mutex, NULL);
	pthread_cond_init(&pool->wake, NULL);
	pool->tickets = aligned_zero(threads * sizeof(*pool->tickets));
	pool->workers = calloc(threads, sizeof(*pool->workers));
	if (!pool->tickets || !pool->workers || !start_workers(pool))
		lth_threadpool_destroy(&pool);
	return pool;
}

void lth_threadpool_destroy(struct lth_threadpool **pool)
{
	struct lth_threadpool *p = *pool;
	if (!p)
		return;
	atomic_store(&p->stopping, true);
	publish(p);
	for (unsigned i = 1; i <= p->started; i++)
		pthread_join(p->workers[i].thread, NULL);
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->mutex);
	free(p->tickets);
	free(p->workers);
	free(p);
	*pool = NULL;
}

unsigned lth_threadpool_threads(const struct lth_threadpool *pool)
{
	return pool->threads;
}

/* Cuts the range: units a chunk, so that there are a few chunks a thread but none below the grain. */
static int64_t cut(int64_t range, int64_t grain, unsigned threads)
{
	int64_t wanted = (int64_t)threads * CHUNKS_PER_THREAD;
	int64_t units = range / wanted + (range % wanted != 0);
	return units < grain ? grain : units;
}

int lth_threadpool_run(struct lth_threadpool *pool, lth_task_fn task, void *context, int64_t range, int64_t grain,
		       unsigned max_threads)
{
	if (range <= 0)
		return 0;
	unsigned threads = max_threads < pool->threads ? max_threads : pool->threads;
	grain = grain < 1 ? 1 : grain;
	int64_t units = threads > 1 ? cut(range, grain, threads) : range;
	uint32_t chunks = (uint32_t)(range / units + (range % units != 0));
	if (chunks < 2)
		return task(context, 0, range, 0);
	threads = chunks < threads ? chunks : threads;
	uint32_t generation = atomic_load_explicit(&pool->generation, memory_order_relaxed) + 1;
	atomic_store_explicit(&pool->task, task, memory_order_relaxed);
	atomic_store_explicit(&pool->context, context, memory_order_relaxed);
	atomic_store_explicit(&pool->range, range, memory_order_relaxed);
	atomic_store_explicit(&pool->chunk_units, units, memory_order_relaxed);
	atomic_store_explicit(&pool->job_threads, threads, memory_order_relaxed);
	atomic_store_explicit(&pool->error, UINT64_MAX, memory_order_relaxed);
	atomic_store_explicit(&pool->remaining, chunks, memory_order_relaxed);
	for (unsigned i = 0; i < threads; i++) {
		uint32_t begin = chunks * i / threads, end = chunks * (i + 1) / threads;
		atomic_store_explicit(&pool->tickets[i].word, (uint64_t)generation << 32 | end << 16 | begin,
				      memory_order_release);
	}
	publish(pool);
	work(pool, generation, 0);
	for (int spins = 0; atomic_load_explicit(&pool->remaining, memory_order_acquire) != 0; spins++) {
		if (spins % SPINS_PER_YIELD == SPINS_PER_YIELD - 1)
			sched_yield(); /* a worker that was put off its core holds a chunk */
		relax();
	}
	uint64_t error = atomic_load(&pool->error);
	return error == UINT64_MAX ? 0 : (int)(uint32_t)error;
}
