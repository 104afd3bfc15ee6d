/* Placed items in the order of their offsets, for the greedy decoder: lists cut into chunks with a summary each, so
 * that a scan skips what lies elsewhere in time or below its floor, and an insertion moves little. Thread rule: one
 * thread a pool and its lists. */
#ifndef LTH_MEMORY_PLAN_PLACED_H
#define LTH_MEMORY_PLAN_PLACED_H

#include "compiler/memory/plan/internal.h"

enum { LTH_PLAN_CHUNK_ENTRIES = 64 };

struct lth_plan_chunk {
	int64_t offset[LTH_PLAN_CHUNK_ENTRIES], top[LTH_PLAN_CHUNK_ENTRIES];
	int32_t lower[LTH_PLAN_CHUNK_ENTRIES], upper[LTH_PLAN_CHUNK_ENTRIES];
	uint32_t item[LTH_PLAN_CHUNK_ENTRIES];
};

struct lth_plan_slot {
	int64_t first_offset, max_top;
	int64_t reach; /* the largest top up to here in the list */
	int32_t min_lower, max_upper;
	uint32_t count;
	struct lth_plan_chunk *chunk;
};

struct lth_plan_list {
	struct lth_plan_slot *slots;
	uint32_t count, capacity;
};

struct lth_plan_pool {
	struct lth_arena *arena;
	struct lth_plan_chunk **spare;
	uint32_t num_spare, spare_capacity;
	bool failed; /* out of memory; sticky */
};

void lth_plan_list_clear(struct lth_plan_pool *pool, struct lth_plan_list *list);
void lth_plan_list_insert(struct lth_plan_pool *pool, struct lth_plan_list *list, uint32_t index,
			  const struct lth_plan_item *item, int64_t offset);

/* A scan of a list from low to high for one item; it goes on where it stopped, so a whole scan looks at an entry once.
 * All zero is its start. */
struct lth_plan_list_cursor {
	uint32_t slot, entry;
	int64_t work; /* slots and entries looked at */
};

/* The lowest offset of at least `floor` at which the item fits between the list's items that live with it; floors must
 * not fall during a scan. `*out_ceiling` is where the hole ends, INT64_MAX if nowhere; unless `exact`, it may also be
 * any lower place that leaves the item room. */
int64_t lth_plan_list_room(const struct lth_plan_list *list, struct lth_plan_list_cursor *cursor,
			   const struct lth_plan_item *item, int64_t floor, bool exact, int64_t *out_ceiling);
/* An item of the list that shares a step and a unit with the item at `offset`, or UINT32_MAX. */
uint32_t lth_plan_list_conflict(const struct lth_plan_list *list, const struct lth_plan_item *item, int64_t offset);

#endif
