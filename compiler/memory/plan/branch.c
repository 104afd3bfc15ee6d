/* Branching of the search. At a section whose lowest items all lie flat (every floor on their range is the same),
 * what comes next above the floor is one of them, or a gap; sections with a locally lowest floor are always of that
 * kind, but any such section may be picked, and picking the one with the fewest options for its weight, not the
 * lowest, is what makes the search fast. Weights grow where the search fails. Thread rule: one thread a search. */
#include "compiler/memory/plan/search.h"

#include <stdlib.h>
#include <string.h>

/* The unplaced items of the part in word w of a set. */
static uint64_t part_bits(const struct lth_plan_part *part, const struct lth_plan_state *state, uint32_t w)
{
	uint64_t bits = state->unplaced[w];
	if (part->first > w * 64)
		bits &= ~UINT64_C(0) << (part->first - w * 64);
	if (part->last < (w + 1) * 64)
		bits &= ~(~UINT64_C(0) << (part->last - w * 64));
	return bits;
}

/* Finds run ends of equal floors, the flat items and their number by section, and the sections that an item at its
 * floor blocks because it is not flat. */
static void survey(struct lth_plan_search *search, const struct lth_plan_part *part,
		   const struct lth_plan_state *state)
{
	const int64_t *floor = state->floor;
	int32_t *run_end = search->run_end;
	for (int32_t s = part->upper; s-- > part->lower;) {
		run_end[s] = s + 1 < part->upper && floor[s + 1] == floor[s] ? run_end[s + 1] : s + 1;
		search->num_flat[s] = 0;
		search->blocked[s] = false;
	}
	search->num_flat[part->upper] = 0;
	for (uint32_t w = part->first / 64; w * 64 < part->last; w++) {
		search->flat[w] = 0;
		for (uint64_t bits = part_bits(part, state, w); bits; bits &= bits - 1) {
			uint32_t i = w * 64 + (uint32_t)__builtin_ctzll(bits);
			const struct lth_plan_item *item = &search->items[i];
			int64_t least = state->least[i];
			if (floor[item->lower] == least && run_end[item->lower] >= item->upper) {
				search->flat[w] |= UINT64_C(1) << i % 64;
				search->num_flat[item->lower]++;
				search->num_flat[item->upper]--;
				continue;
			}
			for (int32_t s = item->lower; s < item->upper; s = run_end[s]) {
				int32_t end = run_end[s] < item->upper ? run_end[s] : item->upper;
				if (floor[s] == least)
					memset(search->blocked + s, 1, (size_t)(end - s) * sizeof(*search->blocked));
			}
		}
	}
	for (int32_t s = part->lower + 1; s < part->upper; s++)
		search->num_flat[s] += search->num_flat[s - 1];
}

static double section_cost(const struct lth_plan_search *search, const struct lth_plan_state *state, int32_t section)
{
	int64_t slack = search->height - state->floor[section] - state->rest[section];
	double scaled = (double)slack * search->scale, options = search->num_flat[section];
	if (search->config.weigh_slack)
		return (options + (slack > 0 ? 1 + 0.02 * scaled : 0)) / search->weight[section] +
		       1e-4 * (double)state->floor[section] * search->scale;
	return (options + (slack > 0)) / search->weight[section] + 1e-4 * scaled;
}

bool lth_plan_branch_choose(struct lth_plan_search *search, const struct lth_plan_part *part,
			    const struct lth_plan_state *state, struct lth_plan_branch *out_branch)
{
	int32_t best = -1;
	double best_cost = 0;
	survey(search, part, state);
	for (int32_t s = part->lower; s < part->upper; s++) {
		if (search->blocked[s])
			continue;
		if (search->num_flat[s] == 0 && search->height - state->floor[s] - state->rest[s] <= 0) {
			search->weight[s] += LTH_PLAN_DEAD_END_WEIGHT;
			return false;
		}
		double cost = section_cost(search, state, s);
		if (best < 0 || cost < best_cost) {
			best = s;
			best_cost = cost;
		}
	}
	int32_t lower = best;
	while (lower > part->lower && state->floor[lower - 1] == state->floor[best])
		lower--;
	*out_branch = (struct lth_plan_branch){
		.section = best,
		.niche_lower = lower,
		.niche_upper = search->run_end[best],
		.floor = state->floor[best],
		.slack = search->height - state->floor[best] - state->rest[best],
	};
	return true;
}

/* How many edges of the item end flush with the niche, and with the walls beside it. */
static int flush_edges(const struct lth_plan_search *search, const struct lth_plan_part *part,
		       const struct lth_plan_state *state, const struct lth_plan_branch *branch, uint32_t index)
{
	const struct lth_plan_item *item = &search->items[index];
	int64_t top = branch->floor + item->size;
	int flush = 0;
	if (item->lower == branch->niche_lower) {
		int64_t wall = item->lower > part->lower ? state->floor[item->lower - 1] : search->height;
		flush += 1 + (top == wall);
	}
	if (item->upper == branch->niche_upper) {
		int64_t wall = item->upper < part->upper ? state->floor[item->upper] : search->height;
		flush += 1 + (top == wall);
	}
	return flush;
}

/* In a plan pushed down as far as it goes every item rests on the ground or on another. Not so with alignments and
 * fixed items. */
static bool is_supported(const struct lth_plan_search *search, const struct lth_plan_state *state, uint32_t index,
			 int64_t floor)
{
	const struct lth_plan_item *item = &search->items[index];
	if (floor == 0 || !search->problem->free_form)
		return true;
	for (int32_t s = item->lower; s < item->upper; s++)
		if (state->top[s] == floor)
			return true;
	return false;
}

static int compare_children(const void *a, const void *b)
{
	const struct lth_plan_child *x = a, *y = b;
	if (x->cost != y->cost)
		return x->cost > y->cost ? -1 : 1;
	if (x->priority != y->priority)
		return x->priority < y->priority ? -1 : 1;
	return x->item > y->item ? -1 : 1;
}

static bool push_child(struct lth_plan_search *search, const struct lth_plan_child *child)
{
	struct lth_plan_child *grown = lth_arena_grow(search->arena, search->children, &search->children_capacity,
						      search->num_children + 1, sizeof(*grown));
	if (!grown) {
		search->out_of_memory = true;
		return false;
	}
	search->children = grown;
	search->children[search->num_children++] = *child;
	return true;
}

uint32_t lth_plan_branch_children(struct lth_plan_search *search, const struct lth_plan_part *part,
				  const struct lth_plan_state *state, const struct lth_plan_branch *branch,
				  struct lth_plan_state *scratch)
{
	const uint64_t *cover = search->cover + (size_t)branch->section * search->words;
	uint32_t base = search->num_children;
	for (uint32_t w = part->first / 64; w * 64 < part->last; w++) {
		for (uint64_t bits = cover[w] & search->flat[w]; bits; bits &= bits - 1) {
			uint32_t i = w * 64 + (uint32_t)__builtin_ctzll(bits), twin = search->twin[i];
			if (twin != LTH_PLAN_NO_ITEM && state->unplaced[twin / 64] >> twin % 64 & 1)
				continue;
			if (!is_supported(search, state, i, branch->floor))
				continue;
			double waste = 0;
			lth_plan_state_copy(part, state, scratch);
			if (!lth_plan_state_place(search, scratch, i, &waste)) {
				if (search->config.count_refuted)
					search->weight[branch->section] += 1;
				continue;
			}
			struct lth_plan_child child = {.priority = search->priority[i], .item = i};
			child.cost = -flush_edges(search, part, state, branch, i);
			if (search->config.count_waste)
				child.cost += waste;
			if (!push_child(search, &child))
				break;
		}
	}
	uint32_t count = search->num_children - base;
	if (count > 1)
		qsort(search->children + base, count, sizeof(*search->children), compare_children);
	return count;
}

/* The lowest offset above its least at which item `index` can rest: on an unplaced one that does not reach the
 * section. */
static int64_t lowest_rest(const struct lth_plan_search *search, const struct lth_plan_state *state, uint32_t index,
			   const uint64_t *cover)
{
	const uint64_t *overlap = search->overlap + (size_t)index * search->words;
	int64_t lowest = INT64_MAX;
	if (search->items[index].fixed >= 0)
		return INT64_MAX;
	for (uint32_t w = 0; w < search->words; w++)
		for (uint64_t bits = overlap[w] & ~cover[w] & state->unplaced[w]; bits; bits &= bits - 1) {
			uint32_t other = w * 64 + (uint32_t)__builtin_ctzll(bits);
			int64_t top = state->least[other] + search->items[other].size;
			lowest = top < lowest ? top : lowest;
		}
	return lowest == INT64_MAX ? lowest : lth_plan_align(lowest, search->items[index].alignment);
}

int64_t lth_plan_branch_gap(const struct lth_plan_search *search, const struct lth_plan_state *state,
			    const struct lth_plan_branch *branch)
{
	const uint64_t *cover = search->cover + (size_t)branch->section * search->words;
	int64_t floor = INT64_MAX;
	for (uint32_t w = 0; w < search->words; w++)
		for (uint64_t bits = cover[w] & state->unplaced[w]; bits; bits &= bits - 1) {
			uint32_t i = w * 64 + (uint32_t)__builtin_ctzll(bits);
			int64_t next = state->least[i];
			if (next <= branch->floor)
				next = lowest_rest(search, state, i, cover);
			floor = next < floor ? next : floor;
		}
	return floor == INT64_MAX || floor - branch->floor > branch->slack ? INT64_MAX : floor;
}
