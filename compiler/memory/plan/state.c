/* States of the search: what a placement entails, and the bounds that refute it. The bounds, in the order they are
 * tried: every unplaced item must end below the height; so must a section's floor plus what is still to go there;
 * and so must, in one section, the items that all start at or above some offset, stacked on it (the heads bound).
 * Thread rule: one thread a search. */
#include "compiler/memory/plan/search.h"

#include <string.h>

/* The lowest offset of at least `floor` that the item may have beside the fixed ones. Those are sorted by offset,
 * and one that is passed by below stays below. */
static int64_t lowest_beside_fixed(const struct lth_plan_search *search, uint32_t index, int64_t floor)
{
	const struct lth_plan_item *item = &search->items[index];
	int64_t offset = lth_plan_align(floor, item->alignment);
	for (uint32_t k = search->near_starts[index]; k < search->near_starts[index + 1]; k++) {
		const struct lth_plan_item *fixed = &search->items[search->near_fixed[k]];
		if (offset + item->size > fixed->fixed && offset < fixed->fixed + fixed->size)
			offset = lth_plan_align(fixed->fixed + fixed->size, item->alignment);
	}
	return offset;
}

void lth_plan_state_start(const struct lth_plan_search *search, struct lth_plan_state *state)
{
	size_t sections = (size_t)search->sections;
	memset(state->floor, 0, sections * sizeof(*state->floor));
	memset(state->top, 0, sections * sizeof(*state->top));
	memset(state->rest, 0, sections * sizeof(*state->rest));
	memset(state->crossing, 0, sections * sizeof(*state->crossing));
	memset(state->unplaced, 0, search->words * sizeof(*state->unplaced));
	for (uint32_t i = 0; i < search->count; i++) {
		const struct lth_plan_item *item = &search->items[i];
		state->least[i] = item->fixed >= 0 ? item->fixed : lowest_beside_fixed(search, i, 0);
		state->unplaced[i / 64] |= UINT64_C(1) << i % 64;
		for (int32_t s = item->lower; s < item->upper; s++) {
			state->rest[s] += item->size;
			state->crossing[s] += s + 1 < item->upper;
		}
	}
}

void lth_plan_state_copy(const struct lth_plan_part *part, const struct lth_plan_state *from,
			 struct lth_plan_state *to)
{
	size_t at = (size_t)part->lower, sections = (size_t)(part->upper - part->lower);
	size_t word = part->first / 64, words = (part->last + 63) / 64 - word;
	memcpy(to->floor + at, from->floor + at, sections * sizeof(*to->floor));
	memcpy(to->top + at, from->top + at, sections * sizeof(*to->top));
	memcpy(to->rest + at, from->rest + at, sections * sizeof(*to->rest));
	memcpy(to->crossing + at, from->crossing + at, sections * sizeof(*to->crossing));
	memcpy(to->least + part->first, from->least + part->first, (part->last - part->first) * sizeof(*to->least));
	memcpy(to->unplaced + word, from->unplaced + word, words * sizeof(*to->unplaced));
}

static void start_step(struct lth_plan_search *search)
{
	search->touch_epoch++;
	search->num_touched = 0;
	search->num_changed = 0;
}

/* The section's floor may rise: settle looks at it again. */
static inline void touch(struct lth_plan_search *search, const struct lth_plan_state *state, int32_t section)
{
	if (search->touched_at[section] == search->touch_epoch)
		return;
	search->touched_at[section] = search->touch_epoch;
	search->touched_sum[section] = state->floor[section] + state->rest[section];
	search->touched[search->num_touched++] = section;
}

/* Items among `items` (a set of words) that are unplaced can't start below `floor`. */
static bool raise_items(struct lth_plan_search *search, struct lth_plan_state *state, const uint64_t *items,
			uint32_t first_word, uint32_t last_word, int64_t floor)
{
	for (uint32_t w = first_word; w < last_word; w++) {
		for (uint64_t bits = items[w] & state->unplaced[w]; bits; bits &= bits - 1) {
			uint32_t i = w * 64 + (uint32_t)__builtin_ctzll(bits);
			const struct lth_plan_item *item = &search->items[i];
			int64_t old = state->least[i];
			if (old >= floor)
				continue;
			int64_t least = lowest_beside_fixed(search, i, floor);
			if (item->fixed >= 0 || least + item->size > search->height)
				return false;
			state->least[i] = least;
			search->changed[search->num_changed++] = i;
			for (int32_t s = item->lower; s < item->upper; s++)
				if (state->floor[s] == old)
					touch(search, state, s);
		}
	}
	return true;
}

/* The least offset of any unplaced item in the section. None is below the floor, so one that lies on it ends the
 * scan. */
static int64_t least_in_section(const struct lth_plan_search *search, const struct lth_plan_state *state,
				int32_t section)
{
	const uint64_t *cover = search->cover + (size_t)section * search->words;
	int64_t least = INT64_MAX, floor = state->floor[section];
	for (uint32_t w = 0; w < search->words; w++)
		for (uint64_t bits = cover[w] & state->unplaced[w]; bits; bits &= bits - 1) {
			int64_t other = state->least[w * 64 + (uint32_t)__builtin_ctzll(bits)];
			least = other < least ? other : least;
			if (least <= floor)
				return least;
		}
	return least;
}

/* Raises the floors of touched sections to the least offset of any item there. One round is enough: a floor raised so
 * stays at or below all its items. */
static bool settle(struct lth_plan_search *search, struct lth_plan_state *state, double *waste)
{
	for (int32_t k = 0; k < search->num_touched; k++) {
		int32_t s = search->touched[k];
		if (state->rest[s] == 0)
			continue;
		int64_t least = least_in_section(search, state, s), old_sum = search->touched_sum[s];
		if (least > state->floor[s])
			state->floor[s] = least;
		int64_t sum = state->floor[s] + state->rest[s];
		if (sum > search->height)
			return false;
		if (sum > old_sum)
			*waste += (double)(sum - old_sum) * search->scale /
				  (1 + (double)(search->height - old_sum) * search->scale);
	}
	return true;
}

/* Items that start at or above some offset, stacked on it; those of one offset count together. */
static bool heads_fit(struct lth_plan_search *search, const struct lth_plan_state *state, int32_t section)
{
	const uint64_t *cover = search->cover + (size_t)section * search->words;
	struct lth_plan_head *heads = search->heads;
	uint32_t count = 0;
	for (uint32_t w = 0; w < search->words; w++)
		for (uint64_t bits = cover[w] & state->unplaced[w]; bits; bits &= bits - 1) {
			uint32_t i = w * 64 + (uint32_t)__builtin_ctzll(bits), at = count;
			int64_t least = state->least[i];
			while (at > 0 && heads[at - 1].least < least)
				at--;
			if (at > 0 && heads[at - 1].least == least) {
				heads[at - 1].size += search->items[i].size;
				continue;
			}
			memmove(heads + at + 1, heads + at, (count++ - at) * sizeof(*heads));
			heads[at] = (struct lth_plan_head){least, search->items[i].size};
		}
	int64_t sum = 0;
	for (uint32_t k = 0; k < count; k++) {
		sum += heads[k].size;
		if (heads[k].least + sum > search->height)
			return false;
	}
	return true;
}

/* The heads bound, only where a changed item lives and, starting at `floor` or above, would not fit with all that
 * is left of its section. */
static bool all_heads_fit(struct lth_plan_search *search, const struct lth_plan_state *state, int64_t floor)
{
	int32_t first = search->sections, last = 0, *change = search->num_changed_at;
	for (uint32_t k = 0; k < search->num_changed; k++) {
		const struct lth_plan_item *item = &search->items[search->changed[k]];
		change[item->lower]++;
		change[item->upper]--;
		first = item->lower < first ? item->lower : first;
		last = item->upper > last ? item->upper : last;
	}
	bool fit = true;
	int32_t changed = 0;
	for (int32_t s = first; s <= last; s++) {
		changed += change[s];
		change[s] = 0;
		if (fit && changed > 0 && floor + state->rest[s] > search->height)
			fit = heads_fit(search, state, s);
	}
	return fit;
}

bool lth_plan_state_place(struct lth_plan_search *search, struct lth_plan_state *state, uint32_t index, double *waste)
{
	const struct lth_plan_item *item = &search->items[index];
	int64_t top = state->least[index] + item->size;
	start_step(search);
	state->unplaced[index / 64] &= ~(UINT64_C(1) << index % 64);
	for (int32_t s = item->lower; s < item->upper; s++) {
		touch(search, state, s);
		state->floor[s] = top;
		state->top[s] = top;
		state->rest[s] -= item->size;
		state->crossing[s] -= s + 1 < item->upper;
	}
	const uint64_t *overlap = search->overlap + (size_t)index * search->words;
	return raise_items(search, state, overlap, 0, search->words, top) && settle(search, state, waste) &&
	       all_heads_fit(search, state, top);
}

bool lth_plan_state_gap(struct lth_plan_search *search, struct lth_plan_state *state, int32_t section, int64_t floor)
{
	double waste = 0;
	start_step(search);
	touch(search, state, section);
	state->floor[section] = floor;
	const uint64_t *cover = search->cover + (size_t)section * search->words;
	return raise_items(search, state, cover, 0, search->words, floor) && settle(search, state, &waste) &&
	       all_heads_fit(search, state, floor);
}
