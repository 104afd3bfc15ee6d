/* Search for the order of least peak memory. See order_search.h.
 *
 * A state is a set of finished tasks that is closed under "must come first". The states of k tasks make a layer; each
 * set is kept once, with the least peak that reaches it. A layer holds at most `width` states, the lowest ones; where
 * no layer had to be cut, the search was complete. Width grows from 1 until it was, or the effort is spent.
 *
 * Two rules keep layers small. Memory is submodular in the set of finished tasks (an item counts while some but not all
 * of its tasks are done), so a task that raises no peak now and frees at least what it takes can only do better earlier
 * than later: it is taken at once. And whatever stays below the bound of a single task is as good as the bound.
 * Thread rule: reentrant. */
#include "compiler/memory/order_search.h"

#include "runtime/base/hash.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

enum { MAX_WIDTH = 4096 };

struct state {
	int64_t live, peak;
	uint64_t hash;
	uint32_t parent, task; /* in the layer before; the task that led here */
};

struct layer {
	struct state *states;
	uint64_t *sets; /* per state: finished tasks, then ready ones; `words` words each */
	uint32_t count;
};

struct step {
	uint32_t parent, task;
};

struct search {
	const struct lth_order_problem *problem;
	uint32_t words;
	uint64_t *masks;		   /* by item: its tasks */
	uint32_t *touched_start, *touched; /* by task: its items */
	uint32_t *after_start, *after;	   /* by task: tasks that wait for it */
	int64_t bound;
	int64_t best; /* a found order's peak: only lower ones count */
	uint32_t width;
	bool cut;
	int64_t expansions;
	struct layer now, next;
	uint32_t *table; /* of `next`, by hash; 2 * width rounded up to a power of two */
	uint32_t table_size;
	struct step *steps; /* num_tasks layers of `width` */
};

static bool has(const uint64_t *set, uint32_t i)
{
	return set[i / 64] >> i % 64 & 1;
}

static void put(uint64_t *set, uint32_t i)
{
	set[i / 64] |= UINT64_C(1) << i % 64;
}

/* How many of the item's tasks are in the set: none, some, or all but perhaps `extra`. */
static void progress(const struct search *s, const uint64_t *done, uint32_t item, uint32_t extra, bool *out_begun,
		     bool *out_ends)
{
	const uint64_t *mask = s->masks + (size_t)item * s->words;
	*out_begun = s->problem->items[item].enters;
	*out_ends = !s->problem->items[item].leaves;
	for (uint32_t w = 0; w < s->words; w++) {
		uint64_t self = extra / 64 == w ? UINT64_C(1) << extra % 64 : 0;
		*out_begun |= (mask[w] & done[w]) != 0;
		*out_ends &= (mask[w] & ~(done[w] | self)) == 0;
	}
}

/* What running a task on top of a set takes while it runs, and leaves behind, relative to the memory before. */
static void effect(const struct search *s, const uint64_t *done, uint32_t task, int64_t *out_rise, int64_t *out_net)
{
	const struct lth_order_problem *p = s->problem;
	int64_t rise = 0, freed = 0;
	bool source_ends = false, result_begins = false;
	for (uint32_t k = s->touched_start[task]; k < s->touched_start[task + 1]; k++) {
		uint32_t item = s->touched[k];
		bool begun, ends;
		progress(s, done, item, task, &begun, &ends);
		rise += begun ? 0 : p->items[item].bytes;
		freed += ends ? p->items[item].bytes : 0;
		source_ends |= item == p->in_place_from[task] && ends && begun;
		result_begins |= item == p->in_place_to[task] && !begun;
	}
	*out_net = rise - freed;
	if (source_ends && result_begins)
		rise -= p->items[p->in_place_to[task]].bytes;
	*out_rise = rise;
}

/* --- layers */
static uint32_t find_slot(const struct search *s, const uint64_t *set, uint64_t hash)
{
	uint32_t slot = (uint32_t)hash & (s->table_size - 1);
	while (s->table[slot] != NONE) {
		uint32_t other = s->table[slot];
		if (s->next.states[other].hash == hash &&
		    memcmp(s->next.sets + (size_t)other * 2 * s->words, set, s->words * sizeof(*set)) == 0)
			break;
		slot = (slot + 1) & (s->table_size - 1);
	}
	return slot;
}

static void rebuild_table(struct search *s)
{
	memset(s->table, 0xff, s->table_size * sizeof(*s->table));
	for (uint32_t i = 0; i < s->next.count; i++) {
		uint32_t slot = (uint32_t)s->next.states[i].hash & (s->table_size - 1);
		while (s->table[slot] != NONE)
			slot = (slot + 1) & (s->table_size - 1);
		s->table[slot] = i;
	}
}

static bool higher(const struct state *a, const struct state *b)
{
	if (a->peak != b->peak)
		return a->peak > b->peak;
	if (a->live != b->live)
		return a->live > b->live;
	return a->hash > b->hash;
}

/* The place for a new state: behind the others, or where the highest one goes. NONE: the new one is the highest. */
static uint32_t make_room(struct search *s, const struct state *made)
{
	if (s->next.count < s->width)
		return s->next.count++;
	s->cut = true;
	uint32_t highest = 0;
	for (uint32_t i = 1; i < s->next.count; i++)
		if (higher(&s->next.states[i], &s->next.states[highest]))
			highest = i;
	return higher(&s->next.states[highest], made) ? highest : NONE;
}

/* The set behind `task` on top of state `from`, with its ready tasks. */
static void fill_set(const struct search *s, const uint64_t *from, uint32_t task, uint64_t *to)
{
	const struct lth_order_problem *p = s->problem;
	memcpy(to, from, 2 * s->words * sizeof(*to));
	uint64_t *ready = to + s->words;
	put(to, task);
	ready[task / 64] &= ~(UINT64_C(1) << task % 64);
	for (uint32_t k = s->after_start[task]; k < s->after_start[task + 1]; k++) {
		uint32_t waits = s->after[k];
		bool all = true;
		for (uint32_t e = p->before_start[waits]; e < p->before_start[waits + 1] && all; e++)
			all = has(to, p->before[e]);
		if (all)
			put(ready, waits);
	}
}

static void extend(struct search *s, uint32_t parent, uint32_t task, int64_t rise, int64_t net, uint64_t *scratch)
{
	const struct state *from = &s->now.states[parent];
	struct state made = {.live = from->live + net,
			     .peak = from->live + rise,
			     .hash = from->hash ^ lth_hash_u64(task, 7),
			     .parent = parent,
			     .task = task};
	made.peak = made.peak > from->peak ? made.peak : from->peak;
	if (made.peak >= s->best)
		return;
	fill_set(s, s->now.sets + (size_t)parent * 2 * s->words, task, scratch);
	uint32_t slot = find_slot(s, scratch, made.hash), place = s->table[slot];
	if (place != NONE) {
		if (made.peak < s->next.states[place].peak)
			s->next.states[place] = made;
		return;
	}
	bool full = s->next.count == s->width;
	place = make_room(s, &made);
	if (place == NONE)
		return;
	s->next.states[place] = made;
	memcpy(s->next.sets + (size_t)place * 2 * s->words, scratch, 2 * s->words * sizeof(*scratch));
	if (full)
		rebuild_table(s);
	else
		s->table[slot] = place;
}

static void expand(struct search *s, uint32_t parent, uint64_t *scratch)
{
	const uint64_t *done = s->now.sets + (size_t)parent * 2 * s->words, *ready = done + s->words;
	const struct state *from = &s->now.states[parent];
	for (int free_only = 1; free_only >= 0; free_only--) /* first: is there a task that can only help? */
		for (uint32_t w = 0; w < s->words; w++)
			for (uint64_t bits = ready[w]; bits; bits &= bits - 1) {
				uint32_t task = w * 64 + (uint32_t)__builtin_ctzll(bits);
				int64_t rise, net;
				effect(s, done, task, &rise, &net);
				s->expansions++;
				if (free_only && (net > 0 || from->live + rise > from->peak))
					continue;
				extend(s, parent, task, rise, net, scratch);
				if (free_only)
					return;
			}
}

/* Runs all layers at the width in hand. True when an order below `best` came out; its tasks are in `out`. */
static bool run(struct search *s, int64_t start_live, const uint64_t *start_ready, int64_t limit, uint64_t *scratch,
		uint32_t *out)
{
	uint32_t n = s->problem->num_tasks;
	s->cut = false;
	s->now.count = 1;
	s->now.states[0] = (struct state){.live = start_live, .peak = s->bound > start_live ? s->bound : start_live};
	memset(s->now.sets, 0, s->words * sizeof(uint64_t));
	memcpy(s->now.sets + s->words, start_ready, s->words * sizeof(uint64_t));
	for (uint32_t layer = 0; layer < n; layer++) {
		s->next.count = 0;
		rebuild_table(s);
		for (uint32_t i = 0; i < s->now.count; i++)
			expand(s, i, scratch);
		if (s->next.count == 0)
			return false;
		if (s->expansions > limit) {
			s->cut = true;
			return false;
		}
		for (uint32_t i = 0; i < s->next.count; i++)
			s->steps[(size_t)layer * s->width + i] =
				(struct step){s->next.states[i].parent, s->next.states[i].task};
		struct layer swap = s->now;
		s->now = s->next;
		s->next = swap;
	}
	s->best = s->now.states[0].peak;
	for (uint32_t layer = n, at = 0; layer-- > 0;) {
		const struct step *step = &s->steps[(size_t)layer * s->width + at];
		out[layer] = step->task;
		at = step->parent;
	}
	return true;
}

/* --- setting up */
static bool allocate(struct search *s)
{
	const struct lth_order_problem *p = s->problem;
	uint32_t touches = 0, waits = p->before_start[p->num_tasks];
	for (uint32_t i = 0; i < p->num_items; i++)
		touches += p->items[i].num_tasks;
	s->words = p->num_tasks / 64 + 1;
	s->masks = calloc((size_t)p->num_items * s->words + 1, sizeof(*s->masks));
	s->touched_start = calloc(p->num_tasks + 2, sizeof(uint32_t));
	s->touched = calloc(touches + 1, sizeof(uint32_t));
	s->after_start = calloc(p->num_tasks + 2, sizeof(uint32_t));
	s->after = calloc(waits + 1, sizeof(uint32_t));
	if (!s->masks || !s->touched_start || !s->touched || !s->after_start || !s->after)
		return false;
	/* counting sort: starts are counted one place up, and filling moves them down */
	for (uint32_t i = 0; i < p->num_items; i++)
		for (uint32_t k = 0; k < p->items[i].num_tasks; k++)
			s->touched_start[p->items[i].tasks[k] + 1]++;
	for (uint32_t e = 0; e < waits; e++)
		s->after_start[p->before[e] + 1]++;
	for (uint32_t t = 0; t < p->num_tasks; t++) {
		s->touched_start[t + 1] += s->touched_start[t];
		s->after_start[t + 1] += s->after_start[t];
	}
	for (uint32_t i = p->num_items; i-- > 0;)
		for (uint32_t k = 0; k < p->items[i].num_tasks; k++)
			s->touched[--s->touched_start[p->items[i].tasks[k] + 1]] = i;
	for (uint32_t t = p->num_tasks; t-- > 0;)
		for (uint32_t e = p->before_start[t]; e < p->before_start[t + 1]; e++)
			s->after[--s->after_start[p->before[e] + 1]] = t;
	memmove(s->touched_start, s->touched_start + 1, p->num_tasks * sizeof(uint32_t));
	memmove(s->after_start, s->after_start + 1, p->num_tasks * sizeof(uint32_t));
	s->touched_start[p->num_tasks] = touches;
	s->after_start[p->num_tasks] = waits;
	for (uint32_t i = 0; i < p->num_items; i++)
		for (uint32_t k = 0; k < p->items[i].num_tasks; k++)
			put(s->masks + (size_t)i * s->words, p->items[i].tasks[k]);
	return true;
}

/* Room for layers of `width` states. */
static bool widen(struct search *s, uint32_t width)
{
	struct layer *layers[2] = {&s->now, &s->next};
	s->width = width;
	for (s->table_size = 4; s->table_size < 2 * width;)
		s->table_size *= 2;
	for (int i = 0; i < 2; i++) {
		free(layers[i]->states);
		free(layers[i]->sets);
		layers[i]->states = calloc(width, sizeof(*layers[i]->states));
		layers[i]->sets = calloc((size_t)width * 2 * s->words, sizeof(uint64_t));
		if (!layers[i]->states || !layers[i]->sets)
			return false;
	}
	free(s->table);
	free(s->steps);
	s->table = calloc(s->table_size, sizeof(*s->table));
	s->steps = calloc((size_t)s->problem->num_tasks * width, sizeof(*s->steps));
	return s->table && s->steps;
}

static void destroy(struct search *s)
{
	free(s->masks);
	free(s->touched_start);
	free(s->touched);
	free(s->after_start);
	free(s->after);
	free(s->table);
	free(s->steps);
	free(s->now.states);
	free(s->now.sets);
	free(s->next.states);
	free(s->next.sets);
}

/* Whatever the order, a task runs with all that it touches alive, less what it writes over. */
static int64_t single_task_bound(const struct search *s)
{
	const struct lth_order_problem *p = s->problem;
	int64_t most = 0;
	for (uint32_t t = 0; t < p->num_tasks; t++) {
		int64_t sum = 0;
		for (uint32_t k = s->touched_start[t]; k < s->touched_start[t + 1]; k++)
			sum += p->items[s->touched[k]].bytes;
		if (p->in_place_from[t] != NONE && p->in_place_to[t] != NONE)
			sum -= p->items[p->in_place_to[t]].bytes;
		most = sum > most ? sum : most;
	}
	return most;
}

/* The peak of the given order. */
static int64_t given_peak(const struct search *s, int64_t live, uint64_t *done)
{
	int64_t peak = live;
	for (uint32_t t = 0; t < s->problem->num_tasks; t++) {
		int64_t rise, net;
		effect(s, done, t, &rise, &net);
		peak = live + rise > peak ? live + rise : peak;
		live += net;
		put(done, t);
	}
	return peak;
}

static bool search_widths(struct search *s, int64_t start_live, uint64_t *ready, uint64_t *scratch, uint32_t *tasks,
			  bool *out_complete)
{
	*out_complete = s->best <= s->bound;
	for (uint32_t width = 1; !*out_complete && width <= MAX_WIDTH && s->expansions < s->problem->effort;
	     width *= 8) {
		if (!widen(s, width))
			return false;
		run(s, start_live, ready, s->problem->effort, scratch, tasks);
		*out_complete = !s->cut || s->best <= s->bound;
	}
	return true;
}

enum lth_code lth_order_search(const struct lth_order_problem *problem, struct lth_order *out_order,
			       struct lth_diag *diag)
{
	struct search s = {.problem = problem};
	uint32_t n = problem->num_tasks;
	uint64_t *scratch = calloc(3 * ((size_t)n / 64 + 1), sizeof(*scratch));
	uint32_t *tasks = calloc(n + 1, sizeof(*tasks));
	enum lth_code code = LTH_OK;
	bool complete = false;
	int64_t live = 0;
	if (!scratch || !tasks || !allocate(&s)) {
		code = lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "order", NULL, NULL, "%u tasks", n);
		goto done;
	}
	uint64_t *ready = scratch + 2 * s.words;
	for (uint32_t i = 0; i < problem->num_items; i++)
		live += problem->items[i].enters ? problem->items[i].bytes : 0;
	for (uint32_t t = 0; t < n; t++) {
		tasks[t] = t;
		if (problem->before_start[t] == problem->before_start[t + 1])
			put(ready, t);
	}
	s.bound = single_task_bound(&s);
	s.bound = live > s.bound ? live : s.bound;
	s.best = given_peak(&s, live, scratch);
	memset(scratch, 0, 2 * s.words * sizeof(*scratch));
	if (!search_widths(&s, live, ready, scratch, tasks, &complete))
		code = lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "order", NULL, NULL, "%u tasks", n);
done:
	destroy(&s);
	free(scratch);
	if (code != LTH_OK) {
		free(tasks);
		return code;
	}
	*out_order = (struct lth_order){.tasks = tasks,
					.peak_bytes = s.best,
					.bound_bytes = complete ? s.best : s.bound,
					.expansions = s.expansions};
	return LTH_OK;
}
