/* A compile's memory: bump allocation, freed at once. An arena has a cap; running out is sticky and returns NULL from
 * then on, so a pass may check once at its end with lth_arena_ok. Memory comes zeroed and aligned to 16 bytes.
 * Thread rule: one thread an arena. */
#ifndef LTH_BASE_ARENA_H
#define LTH_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lth_arena;

/* calloc that asks the system for large pages where much is asked for: weights of 100 MB otherwise cost more in page
 * faults than in copying. The caller's to free. */
void *lth_calloc_large(size_t size);
/* The same advice for memory from elsewhere that nobody has written yet. */
void lth_advise_large(void *memory, size_t size);

/* `cap_bytes` bounds what the arena takes from the system, 0 for no bound. NULL when out of memory. */
struct lth_arena *lth_arena_create(size_t cap_bytes);
void lth_arena_destroy(struct lth_arena **arena);

/* Zeroed memory, owned by the arena; NULL once the arena is exhausted. A size of 0 gives a valid pointer. */
void *lth_arena_alloc(struct lth_arena *arena, size_t size);
/* The same for `count` elements, with the multiplication checked. */
void *lth_arena_array(struct lth_arena *arena, size_t count, size_t element_size);
char *lth_arena_strdup(struct lth_arena *arena, const char *text);
char *lth_arena_strndup(struct lth_arena *arena, const char *text, size_t length);
char *lth_arena_printf(struct lth_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
void *lth_arena_memdup(struct lth_arena *arena, const void *bytes, size_t size);

/* Makes room for `need` elements in a growing array: returns the array (moved or not), NULL when exhausted. The
 * capacity at least doubles. Old copies stay in the arena: keep growth to arrays whose final size is unknown. */
void *lth_arena_grow(struct lth_arena *arena, void *array, uint32_t *capacity, uint32_t need, size_t element_size);

bool lth_arena_ok(const struct lth_arena *arena);
/* Bytes taken from the system. */
size_t lth_arena_bytes(const struct lth_arena *arena);
/* For tests: the arena reports exhaustion at the n-th allocation from now (0 switches it off). */
void lth_arena_fail_after(struct lth_arena *arena, size_t allocations);

#endif
