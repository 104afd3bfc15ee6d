/* The complete search: restarts, the node, decomposition, the table of failed states. A restart is cut off after a
 * number of nodes that follows Luby's sequence; the weights it learnt, and the failed states, stay for the next. See
 * search.h. Thread rule: one thread a search. */
#include "compiler/memory/plan/search.h"

#include <stdlib.h>
#include <string.h>

enum {
	MAX_FAILED_ENTRIES = 1 << 16,
	FAILED_ENTRIES_AN_ITEM = 256,
	RESTART_NODES = 800, /* at least; a limit below two nodes an item is wasted */
	MAX_STATE_BYTES = 256 << 20,
	NUM_SLOTS = 4,
};

static const struct lth_plan_config slots[NUM_SLOTS] = {
	{.weigh_slack = true, .wide_first = true, .count_waste = true, .share = 1},
	{.weigh_slack = true, .wide_first = false, .count_waste = true, .share = 1},
	{.weigh_slack = false, .wide_first = false, .count_waste = false, .share = 1},
	{.weigh_slack = true, .wide_first = true, .count_waste = true, .count_refuted = true, .share = 2},
};

static int compare_items(const void *a, const void *b, void *context)
{
	const struct lth_plan_item *items = context;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	if (items[i].lower != items[k].lower)
		return items[i].lower < items[k].lower ? -1 : 1;
	if (items[i].upper != items[k].upper)
		return items[i].upper < items[k].upper ? -1 : 1;
	if (items[i].size != items[k].size)
		return items[i].size < items[k].size ? -1 : 1;
	if (items[i].alignment != items[k].alignment)
		return items[i].alignment < items[k].alignment ? -1 : 1;
	return i < k ? -1 : 1;
}

static int compare_fixed(const void *a, const void *b, void *context)
{
	const struct lth_plan_item *items = context;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	if (items[i].fixed != items[k].fixed)
		return items[i].fixed < items[k].fixed ? -1 : 1;
	return (i > k) - (i < k);
}

static bool are_twins(const struct lth_plan_item *a, const struct lth_plan_item *b)
{
	return a->lower == b->lower && a->upper == b->upper && a->size == b->size && a->alignment == b->alignment &&
	       a->fixed < 0 && b->fixed < 0;
}

static void fill_tables(struct lth_plan_search *search)
{
	int64_t largest = 1;
	for (uint32_t i = 0; i < search->count; i++) {
		const struct lth_plan_item *item = &search->items[i];
		largest = item->size > largest ? item->size : largest;
		for (int32_t s = item->lower; s < item->upper; s++)
			search->cover[(size_t)s * search->words + i / 64] |= UINT64_C(1) << i % 64;
		search->twin[i] = i > 0 && are_twins(item, item - 1) ? i - 1 : LTH_PLAN_NO_ITEM;
	}
	for (uint32_t i = 0; i < search->count; i++) {
		const struct lth_plan_item *item = &search->items[i];
		uint64_t *overlap = search->overlap + (size_t)i * search->words;
		for (int32_t s = item->lower; s < item->upper; s++)
			for (uint32_t w = 0; w < search->words; w++)
				overlap[w] |= search->cover[(size_t)s * search->words + w];
		overlap[i / 64] &= ~(UINT64_C(1) << i % 64);
		double length = item->upper - item->lower;
		search->area[i] = length * (double)item->size;
		search->width[i] = length + (double)item->size / ((double)largest + 1);
	}
	for (int32_t s = 0; s < search->sections; s++)
		search->weights[0][s] = search->weights[1][s] = 1;
}

/* Lists, for every free item, the fixed ones that live with it. */
static bool list_fixed(struct lth_plan_search *search)
{
	uint32_t num_fixed = 0, listed = 0;
	uint32_t *fixed = lth_arena_array(search->arena, search->count, sizeof(*fixed));
	search->near_starts = lth_arena_array(search->arena, (size_t)search->count + 1, sizeof(*search->near_starts));
	for (uint32_t i = 0; fixed && i < search->count; i++)
		if (search->items[i].fixed >= 0)
			fixed[num_fixed++] = i;
	search->near_fixed = lth_arena_array(search->arena, (size_t)num_fixed * (search->count - num_fixed),
					     sizeof(*search->near_fixed));
	if (!lth_arena_ok(search->arena))
		return false;
	qsort_r(fixed, num_fixed, sizeof(*fixed), compare_fixed, search->items);
	for (uint32_t i = 0; i < search->count; i++) {
		const struct lth_plan_item *item = &search->items[i];
		search->near_starts[i] = listed;
		for (uint32_t k = 0; k < num_fixed && item->fixed < 0; k++)
			if (search->items[fixed[k]].lower < item->upper && search->items[fixed[k]].upper > item->lower)
				search->near_fixed[listed++] = fixed[k];
	}
	search->near_starts[search->count] = listed;
	return true;
}

static size_t state_bytes(const struct lth_plan_problem *problem)
{
	size_t sections = (size_t)problem->sections, count = problem->count;
	return sections * 28 + count * 8 + (count + 63) / 64 * 8 + 96;
}

static bool allocate(struct lth_plan_search *search)
{
	struct lth_arena *arena = search->arena;
	size_t sections = (size_t)search->sections + 1, count = search->count, words = search->words;
	search->items = lth_arena_array(arena, count, sizeof(*search->items));
	search->original = lth_arena_array(arena, count, sizeof(*search->original));
	search->cover = lth_arena_array(arena, sections * words, sizeof(*search->cover));
	search->overlap = lth_arena_array(arena, count * words, sizeof(*search->overlap));
	search->twin = lth_arena_array(arena, count, sizeof(*search->twin));
	search->area = lth_arena_array(arena, count, sizeof(*search->area));
	search->width = lth_arena_array(arena, count, sizeof(*search->width));
	search->priority = lth_arena_array(arena, count, sizeof(*search->priority));
	search->weights[0] = lth_arena_array(arena, sections, sizeof(*search->weights[0]));
	search->weights[1] = lth_arena_array(arena, sections, sizeof(*search->weights[1]));
	search->offsets = lth_arena_array(arena, count, sizeof(*search->offsets));
	size_t failed_entries = FAILED_ENTRIES_AN_ITEM;
	while (failed_entries < FAILED_ENTRIES_AN_ITEM * count && failed_entries < MAX_FAILED_ENTRIES)
		failed_entries *= 2;
	search->failed_mask = failed_entries - 1;
	search->failed = lth_arena_array(arena, failed_entries, sizeof(*search->failed));
	search->touched = lth_arena_array(arena, sections, sizeof(*search->touched));
	search->touched_at = lth_arena_array(arena, sections, sizeof(*search->touched_at));
	search->touched_sum = lth_arena_array(arena, sections, sizeof(*search->touched_sum));
	search->changed = lth_arena_array(arena, count, sizeof(*search->changed));
	search->num_changed_at = lth_arena_array(arena, sections, sizeof(*search->num_changed_at));
	search->heads = lth_arena_array(arena, count, sizeof(*search->heads));
	search->run_end = lth_arena_array(arena, sections, sizeof(*search->run_end));
	search->num_flat = lth_arena_array(arena, sections, sizeof(*search->num_flat));
	search->blocked = lth_arena_array(arena, sections, sizeof(*search->blocked));
	search->flat = lth_arena_array(arena, words, sizeof(*search->flat));
	return lth_arena_ok(arena);
}

struct lth_plan_search *lth_plan_search_create(const struct lth_plan_problem *problem, uint64_t seed)
{
	if (problem->count == 0 || 2 * state_bytes(problem) > (size_t)MAX_STATE_BYTES / problem->count)
		return NULL;
	struct lth_arena *arena = lth_arena_create(0);
	struct lth_plan_search *search = arena ? lth_arena_alloc(arena, sizeof(*search)) : NULL;
	if (!search) {
		lth_arena_destroy(&arena);
		return NULL;
	}
	search->arena = arena;
	search->problem = problem;
	search->count = problem->count;
	search->words = (problem->count + 63) / 64;
	search->sections = problem->sections;
	search->random = seed * 0x9E3779B97F4A7C15u + 0x2545F4914F6CDD1Du;
	search->random |= search->random == 0;
	if (!allocate(search)) {
		lth_arena_destroy(&arena);
		return NULL;
	}
	for (uint32_t i = 0; i < search->count; i++)
		search->original[i] = i;
	qsort_r(search->original, search->count, sizeof(*search->original), compare_items, problem->items);
	for (uint32_t i = 0; i < search->count; i++)
		search->items[i] = problem->items[search->original[i]];
	fill_tables(search);
	if (!list_fixed(search))
		lth_plan_search_destroy(&search);
	return search;
}

void lth_plan_search_destroy(struct lth_plan_search **search)
{
	if (!*search)
		return;
	struct lth_arena *arena = (*search)->arena;
	lth_arena_destroy(&arena);
	*search = NULL;
}

/* The state of a depth, made when first asked for. Earlier pointers into `states` are void. */
static bool reach_state(struct lth_plan_search *search, uint32_t depth)
{
	if (depth < search->num_states)
		return true;
	struct lth_plan_state *states = lth_arena_grow(search->arena, search->states, &search->states_capacity,
						       depth + 1, sizeof(*states));
	size_t sections = (size_t)search->sections;
	if (states) {
		search->states = states;
		struct lth_plan_state *state = &states[depth];
		state->floor = lth_arena_array(search->arena, sections, sizeof(*state->floor));
		state->top = lth_arena_array(search->arena, sections, sizeof(*state->top));
		state->rest = lth_arena_array(search->arena, sections, sizeof(*state->rest));
		state->crossing = lth_arena_array(search->arena, sections, sizeof(*state->crossing));
		state->least = lth_arena_array(search->arena, search->count, sizeof(*state->least));
		state->unplaced = lth_arena_array(search->arena, search->words, sizeof(*state->unplaced));
		search->num_states = depth + 1;
	}
	search->out_of_memory = !lth_arena_ok(search->arena);
	return !search->out_of_memory;
}

static void mix(struct lth_plan_key *key, uint64_t value)
{
	key->low = (key->low ^ value) * 0x9E3779B97F4A7C15u;
	key->low ^= key->low >> 32;
	key->high = (key->high + value) * 0xD6E8FEB86659FD93u;
	key->high ^= key->high >> 29;
}

/* Two independent words, so that a proof by this table errs with a chance of 2^-100 or so. */
static struct lth_plan_key key_of(const struct lth_plan_search *search, const struct lth_plan_part *part,
				  const struct lth_plan_state *state)
{
	struct lth_plan_key key = {(uint64_t)search->height, (uint64_t)part->lower};
	mix(&key, (uint64_t)part->upper);
	for (uint32_t w = part->first / 64; w * 64 < part->last; w++) {
		uint64_t bits = state->unplaced[w];
		if (part->first > w * 64)
			bits &= ~UINT64_C(0) << (part->first - w * 64);
		if (part->last < (w + 1) * 64)
			bits &= ~(~UINT64_C(0) << (part->last - w * 64));
		mix(&key, bits);
	}
	for (int32_t s = part->lower; s < part->upper; s++)
		mix(&key, (uint64_t)state->floor[s]);
	key.low |= key.low == 0;
	return key;
}

static bool has_failed(const struct lth_plan_search *search, const struct lth_plan_key *key)
{
	const struct lth_plan_key *entry = &search->failed[key->low & search->failed_mask];
	return entry->low == key->low && entry->high == key->high;
}

static enum lth_plan_answer solve_parts(struct lth_plan_search *search, const struct lth_plan_part *whole,
					uint32_t depth);

/* Tries one child, whose state stands at depth + 1. */
static enum lth_plan_answer descend(struct lth_plan_search *search, const struct lth_plan_part *part, uint32_t depth,
				    int32_t section)
{
	enum lth_plan_answer answer = solve_parts(search, part, depth + 1);
	if (answer == LTH_PLAN_NONE)
		search->weight[section] += 1;
	return answer;
}

static enum lth_plan_answer try_children(struct lth_plan_search *search, const struct lth_plan_part *part,
					 uint32_t depth, const struct lth_plan_branch *branch)
{
	uint32_t base = search->num_children;
	lth_plan_branch_children(search, part, &search->states[depth], branch, &search->states[depth + 1]);
	enum lth_plan_answer answer = search->out_of_memory ? LTH_PLAN_UNKNOWN : LTH_PLAN_NONE;
	while (answer == LTH_PLAN_NONE && search->num_children > base) {
		uint32_t item = search->children[--search->num_children].item;
		double waste = 0;
		lth_plan_state_copy(part, &search->states[depth], &search->states[depth + 1]);
		if (!lth_plan_state_place(search, &search->states[depth + 1], item, &waste))
			continue;
		search->offsets[item] = branch->floor;
		answer = descend(search, part, depth, branch->section);
	}
	search->num_children = base;
	return answer;
}

/* The gap comes last: what the support rule left out lies among the children before it. */
static enum lth_plan_answer try_gap(struct lth_plan_search *search, const struct lth_plan_part *part, uint32_t depth,
				    const struct lth_plan_branch *branch)
{
	if (branch->slack <= 0)
		return LTH_PLAN_NONE;
	int64_t floor = lth_plan_branch_gap(search, &search->states[depth], branch);
	if (floor == INT64_MAX)
		return LTH_PLAN_NONE;
	lth_plan_state_copy(part, &search->states[depth], &search->states[depth + 1]);
	if (!lth_plan_state_gap(search, &search->states[depth + 1], branch->section, floor)) {
		search->weight[branch->section] += 1;
		return LTH_PLAN_NONE;
	}
	return descend(search, part, depth, branch->section);
}

static enum lth_plan_answer solve(struct lth_plan_search *search, const struct lth_plan_part *part, uint32_t depth)
{
	struct lth_plan_branch branch;
	if (search->nodes_left-- <= 0 || !lth_plan_charge(search->budget, 1) || !reach_state(search, depth + 1))
		return LTH_PLAN_UNKNOWN;
	struct lth_plan_key key = key_of(search, part, &search->states[depth]);
	if (has_failed(search, &key))
		return LTH_PLAN_NONE;
	if (lth_plan_branch_choose(search, part, &search->states[depth], &branch)) {
		enum lth_plan_answer answer = try_children(search, part, depth, &branch);
		if (answer == LTH_PLAN_NONE)
			answer = try_gap(search, part, depth, &branch);
		if (answer != LTH_PLAN_NONE)
			return answer;
		search->weight[branch.section] += LTH_PLAN_DEAD_END_WEIGHT;
	}
	search->failed[key.low & search->failed_mask] = key;
	return LTH_PLAN_NONE;
}

/* The next part of `whole` at or after section `from`: sections that unplaced items tie together. */
static bool next_part(const struct lth_plan_search *search, const struct lth_plan_part *whole,
		      const struct lth_plan_state *state, int32_t from, struct lth_plan_part *out_part)
{
	while (from < whole->upper && state->rest[from] == 0)
		from++;
	if (from >= whole->upper)
		return false;
	struct lth_plan_part part = {.lower = from, .first = whole->first};
	while (from + 1 < whole->upper && state->crossing[from] > 0)
		from++;
	part.upper = from + 1;
	while (part.first < whole->last && search->items[part.first].lower < part.lower)
		part.first++;
	part.last = part.first;
	for (; part.last < whole->last && search->items[part.last].lower < part.upper; part.last++)
		part.unplaced += state->unplaced[part.last / 64] >> part.last % 64 & 1;
	*out_part = part;
	return true;
}

/* Solves the parts that the state at `depth` falls into, the smallest first; one that fails fails all. */
static enum lth_plan_answer solve_parts(struct lth_plan_search *search, const struct lth_plan_part *whole,
					uint32_t depth)
{
	uint32_t done_size = 0;
	int32_t done_lower = -1;
	for (;;) {
		struct lth_plan_part part, chosen = {.unplaced = UINT32_MAX};
		int32_t from = whole->lower;
		uint32_t open = 0;
		while (next_part(search, whole, &search->states[depth], from, &part)) {
			from = part.upper;
			if (part.unplaced < done_size || (part.unplaced == done_size && part.lower <= done_lower))
				continue;
			open++;
			if (part.unplaced < chosen.unplaced)
				chosen = part;
		}
		if (open == 0)
			return LTH_PLAN_FOUND;
		enum lth_plan_answer answer = solve(search, &chosen, depth);
		if (answer != LTH_PLAN_FOUND || open == 1)
			return answer;
		done_size = chosen.unplaced;
		done_lower = chosen.lower;
	}
}

/* 1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8, ... for k = 1, 2, ... */
static int64_t luby(int64_t k)
{
	for (;;) {
		int64_t power = 1;
		while (2 * power - 1 < k)
			power *= 2;
		if (2 * power - 1 == k)
			return power;
		k -= power - 1;
	}
}

static double uniform(struct lth_plan_search *search)
{
	search->random ^= search->random << 13;
	search->random ^= search->random >> 7;
	search->random ^= search->random << 17;
	return (double)(search->random >> 11) / 9007199254740992.0;
}

/* Sets up restart number `restart`: its slot, its noise, its share of nodes. */
static void set_up(struct lth_plan_search *search, int64_t restart)
{
	static const double noises[] = {0, 0.25, 0.5, 0.75};
	int64_t base = 2 * (int64_t)search->count;
	base = base > RESTART_NODES ? base : RESTART_NODES;
	search->config = slots[restart % NUM_SLOTS];
	search->weight = search->weights[search->config.count_refuted];
	search->nodes_left = base * luby(restart / NUM_SLOTS + 1) * search->config.share;
	double noise = restart < NUM_SLOTS ? 0 : noises[restart / NUM_SLOTS % 4];
	const double *fixed = search->config.wide_first ? search->width : search->area;
	for (uint32_t i = 0; i < search->count; i++)
		search->priority[i] = noise > 0 ? fixed[i] * (1 + noise * uniform(search)) : fixed[i];
	for (int32_t s = 0; s < search->sections && restart > 0; s++)
		search->weight[s] = 1 + (search->weight[s] - 1) / 2;
}

enum lth_plan_answer lth_plan_search_run(struct lth_plan_search *search, int64_t height, int64_t nodes,
					 struct lth_plan_budget *budget, int64_t *offsets)
{
	const struct lth_plan_part whole = {
		.upper = search->sections, .last = search->count, .unplaced = search->count};
	int64_t end = budget->nodes + nodes;
	search->budget = budget;
	search->height = height;
	search->scale = 1024.0 / (double)height;
	if (height < search->problem->floor)
		return LTH_PLAN_NONE;
	for (int64_t restart = 0; budget->nodes < end; restart++) {
		set_up(search, restart);
		if (search->nodes_left > end - budget->nodes)
			search->nodes_left = end - budget->nodes;
		if (!reach_state(search, 0))
			return LTH_PLAN_UNKNOWN;
		lth_plan_state_start(search, &search->states[0]);
		search->num_children = 0;
		enum lth_plan_answer answer = solve_parts(search, &whole, 0);
		if (answer == LTH_PLAN_FOUND)
			for (uint32_t i = 0; i < search->count; i++)
				offsets[search->original[i]] = search->offsets[i];
		if (answer != LTH_PLAN_UNKNOWN)
			return answer;
		if (search->out_of_memory || budget->cut_short || budget->is_cancelled)
			break;
	}
	return LTH_PLAN_UNKNOWN;
}
