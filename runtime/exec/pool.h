/* The counted pooled allocator: where storages come from that no plan holds, temporaries of C kernels, and outputs for
 * which the caller brought no buffer. Freed blocks go to a free list of their size class and come back from there, so a
 * program that repeats itself asks the system for nothing. Every byte is counted.
 *
 * Size classes are a quarter of a power of two apart: a block wastes less than a fifth of itself.
 * Thread rule: one thread at a time. */
#ifndef LTH_EXEC_POOL_H
#define LTH_EXEC_POOL_H

#include <stddef.h>
#include <stdint.h>

struct lth_pool;

struct lth_pool_counters {
	uint64_t takes, gives;    /* blocks handed out and given back */
	uint64_t system_calls;    /* blocks that came from the system */
	int64_t used_bytes;       /* out now, as asked for */
	int64_t peak_bytes;       /* the most ever out at one time since lth_pool_reset_peak */
	int64_t reserved_bytes;   /* taken from the system and not returned to it */
};

struct lth_pool *lth_pool_create(void); /* NULL when out of memory */
/* Blocks that are still out stay valid; free() ends them. */
void lth_pool_destroy(struct lth_pool **pool);

/* A block of at least `bytes`, aligned to 64 (any power of two up to 4096 with lth_pool_take_aligned); contents
 * undefined; NULL when out of memory or `bytes` is negative. */
void *lth_pool_take(struct lth_pool *pool, int64_t bytes);
void *lth_pool_take_aligned(struct lth_pool *pool, int64_t bytes, int64_t alignment);
/* Gives a block back; `bytes` as it was taken. NULL is accepted. */
void lth_pool_give(struct lth_pool *pool, void *block, int64_t bytes);
/* A block that is out of one pool is out of another from now on. */
void lth_pool_transfer(struct lth_pool *from, struct lth_pool *to, int64_t bytes);
/* Returns all free blocks to the system. */
void lth_pool_trim(struct lth_pool *pool);

const struct lth_pool_counters *lth_pool_counters(const struct lth_pool *pool);
/* The peak starts again from what is out now. */
void lth_pool_reset_peak(struct lth_pool *pool);

#endif
