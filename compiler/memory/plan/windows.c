/* Windows of a list of placed items. See windows.h. */
#include "compiler/memory/plan/windows.h"

static int32_t width_at(const struct lth_plan_windows *windows, int level)
{
	return windows->grid * (int32_t)2 << level;
}

void lth_plan_windows_init(struct lth_plan_windows *windows, struct lth_plan_pool *pool, int32_t sections,
			   uint32_t max_slots)
{
	int32_t count = 0;
	*windows = (struct lth_plan_windows){.grid = sections >> LTH_PLAN_WINDOW_LEVELS, .sections = sections,
					     .capacity = max_slots};
	if (windows->grid == 0)
		return;
	for (int level = 0; level < LTH_PLAN_WINDOW_LEVELS; level++) {
		windows->first[level] = count;
		count += sections / (width_at(windows, level) / 2);
	}
	windows->first[LTH_PLAN_WINDOW_LEVELS] = count;
	windows->windows = lth_arena_array(pool->arena, (size_t)count, sizeof(*windows->windows));
	pool->failed |= !windows->windows;
	for (int level = 0; windows->windows && level < LTH_PLAN_WINDOW_LEVELS; level++)
		for (int32_t i = windows->first[level]; i < windows->first[level + 1]; i++) {
			int32_t width = width_at(windows, level), lower = (i - windows->first[level]) * (width / 2);
			windows->windows[i] = (struct lth_plan_window){.lower = lower, .upper = lower + width};
		}
}

static void forget(const struct lth_plan_windows *windows, struct lth_plan_window *window)
{
	for (uint32_t k = 0; k < windows->capacity; k++) {
		window->gap[k] = INT64_MAX;
		window->stamp[k] = UINT32_MAX;
	}
}

void lth_plan_windows_clear(struct lth_plan_windows *windows)
{
	for (int32_t i = 0; i < windows->first[LTH_PLAN_WINDOW_LEVELS]; i++)
		if (windows->windows[i].gap)
			forget(windows, &windows->windows[i]);
}

void lth_plan_windows_split(struct lth_plan_windows *windows, uint32_t low, uint32_t high)
{
	for (int32_t i = 0; i < windows->first[LTH_PLAN_WINDOW_LEVELS]; i++)
		if (windows->windows[i].gap)
			windows->windows[i].gap[high] = windows->windows[i].gap[low];
}

/* The window's rows at its first use. */
static struct lth_plan_window *open_window(struct lth_plan_windows *windows, struct lth_plan_pool *pool, int32_t i)
{
	struct lth_plan_window *window = &windows->windows[i];
	if (window->gap)
		return window;
	window->stamp = lth_arena_array(pool->arena, windows->capacity, sizeof(*window->stamp));
	window->gap = lth_arena_array(pool->arena, windows->capacity, sizeof(*window->gap));
	if (!window->gap || !window->stamp) {
		window->gap = NULL;
		pool->failed = true;
		return NULL;
	}
	forget(windows, window);
	return window;
}

bool lth_plan_windows_of(struct lth_plan_windows *windows, struct lth_plan_pool *pool, const struct lth_plan_item *item,
			 struct lth_plan_window *out[2])
{
	for (int level = windows->grid ? LTH_PLAN_WINDOW_LEVELS : 0; level-- > 0;) {
		int32_t width = width_at(windows, level), step = width / 2;
		if (item->upper - item->lower < width)
			continue;
		int32_t left = (item->lower + step - 1) / step, right = (item->upper - width) / step;
		if (left > right)
			continue;
		out[0] = open_window(windows, pool, windows->first[level] + left);
		out[1] = open_window(windows, pool, windows->first[level] + right);
		return out[0] && out[1];
	}
	return false;
}

static bool lives_in(const struct lth_plan_chunk *chunk, uint32_t entry, const struct lth_plan_window *window)
{
	return (chunk->lower[entry] < window->upper) & (chunk->upper[entry] > window->lower);
}

/* How far up what lives in the window reaches in the slots before `k`. */
static int64_t reach_before(const struct lth_plan_window *window, const struct lth_plan_list *list, uint32_t k)
{
	int64_t reach = 0;
	while (k-- > 0 && list->slots[k].reach > reach) {
		const struct lth_plan_slot *slot = &list->slots[k];
		for (uint32_t e = 0; slot->max_top > reach && e < slot->count; e++) {
			int64_t top = lives_in(slot->chunk, e, window) ? slot->chunk->top[e] : 0;
			reach = top > reach ? top : reach;
		}
	}
	return reach;
}

/* The gap that ends in the slot behind, where anything there ends it, counts for this one too: what is placed into it may
 * be of this slot. */
void lth_plan_window_look(struct lth_plan_window *window, const struct lth_plan_list *list, uint32_t k)
{
	const struct lth_plan_slot *slot = &list->slots[k], *behind = k + 1 < list->count ? slot + 1 : NULL;
	if (window->stamp[slot->number] == slot->stamp)
		return;
	int64_t reach = reach_before(window, list, k), max_gap = 0;
	for (uint32_t e = 0; e < slot->count; e++) {
		bool lives = lives_in(slot->chunk, e, window);
		int64_t gap = lives ? slot->chunk->offset[e] - reach : 0, top = lives ? slot->chunk->top[e] : 0;
		max_gap = gap > max_gap ? gap : max_gap;
		reach = top > reach ? top : reach;
	}
	uint32_t next = 0;
	while (behind && next < behind->count && !lives_in(behind->chunk, next, window))
		next++;
	if (!behind || next == behind->count)
		max_gap = INT64_MAX;
	else if (behind->chunk->offset[next] - reach > max_gap)
		max_gap = behind->chunk->offset[next] - reach;
	window->gap[slot->number] = max_gap;
	window->stamp[slot->number] = slot->stamp;
}
