/* Placed items in the order of their offsets, for the greedy decoder: lists cut into chunks with a summary each, so
 * that a scan skips what lies elsewhere in time or below its floor, and an insertion moves little. In a *column* all
 * items live at some step together, so their address ranges are disjoint, and an item that lives at that step too can
 * pass by chunks whose largest gap it does not fit. Thread rule: one thread a pool and its lists. */
#ifndef LTH_MEMORY_PLAN_PLACED_H
#define LTH_MEMORY_PLAN_PLACED_H

#include "compiler/memory/plan/internal.h"

enum { LTH_PLAN_CHUNK_ENTRIES = 64 };

struct lth_plan_chunk {
	int64_t offset[LTH_PLAN_CHUNK_ENTRIES], top[LTH_PLAN_CHUNK_ENTRIES];
	int32_t lower[LTH_PLAN_CHUNK_ENTRIES], upper[LTH_PLAN_CHUNK_ENTRIES];
	uint32_t item[LTH_PLAN_CHUNK_ENTRIES];
};

struct lth_plan_windows; /* windows.h */
struct lth_plan_window;

struct lth_plan_slot {
	int64_t first_offset, max_top;
	int64_t reach;   /* the largest top up to here in the list */
	int64_t max_gap; /* in a column: the largest gap in front of any entry */
	int32_t min_lower, max_upper;
	uint32_t count;
	uint32_t number, stamp; /* in the order in which slots were opened; changes with what is placed here */
	struct lth_plan_chunk *chunk;
};

struct lth_plan_list {
	struct lth_plan_slot *slots;
	uint32_t count, capacity;
	int64_t filled; /* the sum of sizes */
	struct lth_plan_windows *windows; /* NULL: short lists have none */
};


struct lth_plan_pool {
	struct lth_arena *arena;
	struct lth_plan_chunk **spare;
	uint32_t num_spare, spare_capacity;
	bool failed;  /* out of memory; sticky */
	int64_t work; /* entries looked at, counted by the user of the pool */
};

void lth_plan_list_clear(struct lth_plan_pool *pool, struct lth_plan_list *list);
void lth_plan_list_insert(struct lth_plan_pool *pool, struct lth_plan_list *list, uint32_t index,
			  const struct lth_plan_item *item, int64_t offset);
/* A scan of a list from low to high for one item; it goes on where it stopped, so a whole scan looks at an entry
 * once. */
struct lth_plan_cursor {
	const struct lth_plan_list *list;
	bool is_column; /* the item lives with all of the list, and these with each other */
	struct lth_plan_window *windows[2]; /* that the item covers, or NULL */
	uint32_t known; /* the floor holds for what is in the slots before this one */
	uint32_t slot, entry;
	int64_t work; /* slots and entries looked at */
};

/* The lowest offset of at least `floor` at which the item fits between the list's items that live with it; floors
 * must not fall during a scan. `*ceiling` is where the hole ends, INT64_MAX if nowhere; unless `exact`, it may also
 * be any lower place that leaves the item room. */
int64_t lth_plan_cursor_hole(struct lth_plan_cursor *cursor, const struct lth_plan_item *item, int64_t floor,
			     bool exact, int64_t *ceiling);
/* An item of the list that shares a step and a unit with the item at `offset`, or UINT32_MAX. */
uint32_t lth_plan_list_conflict(const struct lth_plan_list *list, const struct lth_plan_item *item, int64_t offset);

#endif
