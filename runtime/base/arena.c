/* Bump arena over malloc'ed blocks. See arena.h. */
#include "runtime/base/arena.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

/* Blocks double from the least size to the most: an arena for little takes little, and one for much has blocks that lie
 * in large pages, which cost one fault instead of hundreds. */
enum { LEAST_BLOCK = 4 * 1024, MOST_BLOCK = 4 << 20, ALIGN = 16 };

struct block {
	struct block *next;
	size_t size, used;
};

struct lth_arena {
	struct block *blocks;
	size_t cap, taken, fail_after;
	size_t block_bytes; /* of the next block */
	bool exhausted;
};

struct lth_arena *lth_arena_create(size_t cap_bytes)
{
	struct lth_arena *arena = calloc(1, sizeof(*arena));
	if (arena) {
		arena->cap = cap_bytes;
		arena->block_bytes = LEAST_BLOCK;
	}
	return arena;
}

void lth_arena_destroy(struct lth_arena **arena)
{
	if (!*arena)
		return;
	for (struct block *block = (*arena)->blocks; block;) {
		struct block *next = block->next;
		free(block);
		block = next;
	}
	free(*arena);
	*arena = NULL;
}

void lth_advise_large(void *memory, size_t size)
{
	enum { LARGE = 1 << 20, PAGE = 4096 };
#ifdef MADV_HUGEPAGE
	if (memory && size >= LARGE) { /* to take the advice or not is the system's affair */
		size_t skip = -(uintptr_t)memory & (PAGE - 1);
		madvise((char *)memory + skip, (size - skip) & ~(size_t)(PAGE - 1), MADV_HUGEPAGE);
	}
#endif
}

void *lth_calloc_large(size_t size)
{
	void *memory = calloc(1, size ? size : 1);
	lth_advise_large(memory, size);
	return memory;
}

static size_t round_up(size_t size)
{
	return (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

static struct block *new_block(struct lth_arena *arena, size_t payload)
{
	size_t header = round_up(sizeof(struct block));
	if (payload > SIZE_MAX - header)
		return NULL;
	size_t total = header + payload;
	if (arena->cap && total > arena->cap - arena->taken)
		return NULL;
	struct block *block = lth_calloc_large(total);
	if (!block)
		return NULL;
	block->size = total;
	block->used = header;
	arena->taken += total;
	return block;
}

void *lth_arena_alloc(struct lth_arena *arena, size_t size)
{
	if (arena->exhausted)
		return NULL;
	if ((arena->fail_after && --arena->fail_after == 0) || size > SIZE_MAX - ALIGN) {
		arena->exhausted = true;
		return NULL;
	}
	size = round_up(size ? size : 1);
	struct block *block = arena->blocks;
	if (!block || size > block->size - block->used) {
		bool nearly_full = arena->cap && arena->block_bytes > (arena->cap - arena->taken) / 2;
		bool big = nearly_full || size > arena->block_bytes / 4;
		struct block *fresh = new_block(arena, big ? size : arena->block_bytes);
		if (!fresh) {
			arena->exhausted = true;
			return NULL;
		}
		if (big && block) { /* a large one goes behind, so that the current block stays in use */
			fresh->next = block->next;
			block->next = fresh;
		} else {
			fresh->next = block;
			arena->blocks = fresh;
		}
		if (!big && arena->block_bytes < MOST_BLOCK)
			arena->block_bytes *= 2;
		block = fresh;
	}
	void *memory = (char *)block + block->used;
	block->used += size;
	return memory;
}

void *lth_arena_array(struct lth_arena *arena, size_t count, size_t element_size)
{
	size_t size;
	if (__builtin_mul_overflow(count, element_size, &size)) {
		arena->exhausted = true;
		return NULL;
	}
	return lth_arena_alloc(arena, size);
}

void *lth_arena_memdup(struct lth_arena *arena, const void *bytes, size_t size)
{
	void *copy = lth_arena_alloc(arena, size);
	if (copy && size)
		memcpy(copy, bytes, size);
	return copy;
}

char *lth_arena_strndup(struct lth_arena *arena, const char *text, size_t length)
{
	if (length == SIZE_MAX) {
		arena->exhausted = true;
		return NULL;
	}
	char *copy = lth_arena_alloc(arena, length + 1);
	if (copy && length)
		memcpy(copy, text, length);
	return copy;
}

char *lth_arena_strdup(struct lth_arena *arena, const char *text)
{
	return lth_arena_strndup(arena, text, strlen(text));
}

char *lth_arena_printf(struct lth_arena *arena, const char *format, ...)
{
	va_list args, again;
	va_start(args, format);
	va_copy(again, args);
	int length = vsnprintf(NULL, 0, format, args);
	char *text = length < 0 ? NULL : lth_arena_alloc(arena, (size_t)length + 1);
	if (text)
		vsnprintf(text, (size_t)length + 1, format, again);
	va_end(again);
	va_end(args);
	return text;
}

void *lth_arena_grow(struct lth_arena *arena, void *array, uint32_t *capacity, uint32_t need, size_t element_size)
{
	if (need <= *capacity && array) /* NULL is exhaustion, so even a need of none gets an array */
		return array;
	uint32_t wanted = *capacity > UINT32_MAX / 2 ? UINT32_MAX : *capacity * 2;
	wanted = wanted < 8 ? 8 : wanted;
	wanted = wanted < need ? need : wanted;
	void *fresh = lth_arena_array(arena, wanted, element_size);
	if (!fresh)
		return NULL;
	if (*capacity)
		memcpy(fresh, array, *capacity * element_size);
	*capacity = wanted;
	return fresh;
}

bool lth_arena_ok(const struct lth_arena *arena)
{
	return !arena->exhausted;
}

size_t lth_arena_bytes(const struct lth_arena *arena)
{
	return arena->taken;
}

void lth_arena_fail_after(struct lth_arena *arena, size_t allocations)
{
	arena->fail_after = allocations;
}
