/* The counted pooled allocator. See pool.h. A free block holds the link to the next one of its class. */
#include "runtime/exec/pool.h"

#include "runtime/base/arena.h"

#include <assert.h>
#include <stdlib.h>

enum {
	ALIGNMENT = 64,
	MIN_SHIFT = 6, /* the smallest class: 64 bytes */
	STEPS = 4,     /* classes between one power of two and the next */
	NUM_CLASSES = (62 - MIN_SHIFT) * STEPS,
	MAX_ALIGNMENT = 4096
};

struct free_block {
	struct free_block *next;
};

struct lth_pool {
	struct free_block *free_lists[NUM_CLASSES];
	struct lth_pool_counters counters;
};

/* The class of a size, and the size of its blocks: (4 + step) * 2^(power - 2). */
static unsigned class_of(int64_t bytes, int64_t *out_block_bytes)
{
	uint64_t size = bytes < (1 << MIN_SHIFT) ? 1 << MIN_SHIFT : (uint64_t)bytes;
	unsigned power = 63 - (unsigned)__builtin_clzll(size);
	uint64_t quarter = (uint64_t)1 << (power - 2);
	uint64_t step = (size - ((uint64_t)1 << power) + quarter - 1) / quarter;
	*out_block_bytes = (int64_t)((STEPS + step) * quarter);
	return (power - MIN_SHIFT) * STEPS + (unsigned)step;
}

struct lth_pool *lth_pool_create(void)
{
	return calloc(1, sizeof(struct lth_pool));
}

void lth_pool_trim(struct lth_pool *pool)
{
	for (unsigned class = 0; class < NUM_CLASSES; class++)
		for (struct free_block *block; (block = pool->free_lists[class]) != NULL;) {
			unsigned power = class / STEPS + MIN_SHIFT, step = class % STEPS;
			pool->free_lists[class] = block->next;
			pool->counters.reserved_bytes -= (int64_t)((uint64_t)(STEPS + step) << (power - 2));
			free(block);
		}
}

void lth_pool_destroy(struct lth_pool **pool)
{
	if (!*pool)
		return;
	lth_pool_trim(*pool);
	free(*pool);
	*pool = NULL;
}

static void count_take(struct lth_pool *pool, int64_t bytes)
{
	struct lth_pool_counters *c = &pool->counters;
	c->takes++;
	c->used_bytes += bytes;
	if (c->used_bytes > c->peak_bytes)
		c->peak_bytes = c->used_bytes;
}

void *lth_pool_take_aligned(struct lth_pool *pool, int64_t bytes, int64_t alignment)
{
	assert(alignment > 0 && alignment <= MAX_ALIGNMENT && (alignment & (alignment - 1)) == 0);
	if (bytes < 0 || bytes > INT64_MAX / 4)
		return NULL;
	/* Blocks of a page and more are aligned to pages, so that such a class serves every alignment. */
	int64_t block_bytes;
	unsigned class = class_of(bytes, &block_bytes);
	struct free_block *block = pool->free_lists[class];
	if (block && (uintptr_t)block % (uint64_t)alignment == 0) {
		pool->free_lists[class] = block->next;
	} else {
		size_t align = block_bytes >= MAX_ALIGNMENT ? MAX_ALIGNMENT : (size_t)alignment;
		void *fresh;
		if (posix_memalign(&fresh, align < ALIGNMENT ? ALIGNMENT : align, (size_t)block_bytes) != 0)
			return NULL;
		lth_advise_large(fresh, (size_t)block_bytes);
		block = fresh;
		pool->counters.system_calls++;
		pool->counters.reserved_bytes += block_bytes;
	}
	count_take(pool, bytes);
	return block;
}

void *lth_pool_take(struct lth_pool *pool, int64_t bytes)
{
	return lth_pool_take_aligned(pool, bytes, ALIGNMENT);
}

void lth_pool_give(struct lth_pool *pool, void *block, int64_t bytes)
{
	if (!block)
		return;
	int64_t block_bytes;
	struct free_block *freed = block;
	unsigned class = class_of(bytes, &block_bytes);
	pool->counters.gives++;
	pool->counters.used_bytes -= bytes;
	freed->next = pool->free_lists[class];
	pool->free_lists[class] = freed;
}

void lth_pool_transfer(struct lth_pool *from, struct lth_pool *to, int64_t bytes)
{
	int64_t block_bytes;
	class_of(bytes, &block_bytes);
	from->counters.gives++;
	from->counters.used_bytes -= bytes;
	from->counters.reserved_bytes -= block_bytes;
	to->counters.reserved_bytes += block_bytes;
	count_take(to, bytes);
}

const struct lth_pool_counters *lth_pool_counters(const struct lth_pool *pool)
{
	return &pool->counters;
}

void lth_pool_reset_peak(struct lth_pool *pool)
{
	pool->counters.peak_bytes = pool->counters.used_bytes;
}
