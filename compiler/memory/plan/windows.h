/* What lets a scan of a long list pass by most of it. A *window* is a fixed range of sections; an item that covers it must
 * avoid all that lives in any part of it. What lives in a wide window is nearly solid from the bottom to the top, so where
 * a slot of the list has no gap for the item in the window, the scan need not look at its entries.
 *
 * Gaps are found when a slot is looked at, and kept. Items are only ever added, and gaps only shrink, so what is known of
 * a slot stays an upper bound however much is placed. Thread rule: as the list. */
#ifndef LTH_MEMORY_PLAN_WINDOWS_H
#define LTH_MEMORY_PLAN_WINDOWS_H

#include "compiler/memory/plan/placed.h"

enum { LTH_PLAN_WINDOW_LEVELS = 9 };

/* Upper bounds of a window's largest gap, by slot number (lth_plan_slot.number). */
struct lth_plan_window {
	int32_t lower, upper;
	int64_t *gap;    /* NULL: nobody has asked yet */
	uint32_t *stamp; /* the slot's stamp when its gap was found */
};

/* Level k has windows of 2^(k+1) * grid sections, each half over the next. */
struct lth_plan_windows {
	int32_t grid, sections;
	int32_t first[LTH_PLAN_WINDOW_LEVELS + 1]; /* of each level's windows */
	struct lth_plan_window *windows;
	uint32_t capacity; /* slot numbers that rows have room for */
};

/* For a list in `pool`; sticky failure there. */
void lth_plan_windows_init(struct lth_plan_windows *windows, struct lth_plan_pool *pool, int32_t sections,
			   uint32_t max_slots);
/* The list was cleared. */
void lth_plan_windows_clear(struct lth_plan_windows *windows);
/* Slot `high` took some of the entries of slot `low`. */
void lth_plan_windows_split(struct lth_plan_windows *windows, uint32_t low, uint32_t high);
/* The widest windows that the item covers, from its left and from its right; false when it covers none. */
bool lth_plan_windows_of(struct lth_plan_windows *windows, struct lth_plan_pool *pool, const struct lth_plan_item *item,
			 struct lth_plan_window *out[2]);
/* Looks at slot `k` of the list for a window, unless nothing was placed there since. */
void lth_plan_window_look(struct lth_plan_window *window, const struct lth_plan_list *list, uint32_t k);

#endif
