/* The greedy decoder against its definition: each item at the lowest place, or in the tightest of the lowest few holes,
 * among all that were placed before and live with it, found by looking at each of them. Random problems of many shapes,
 * alignments and fixed places among them, in random orders and by size. LATHE_SEED=N repeats a run. */
#include "compiler/memory/plan/internal.h"
#include "tests/unit/run_suite.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1800 };

static uint64_t state, seed;

static int64_t between(int64_t low, int64_t high)
{
	uint64_t x = state += 0x9E3779B97F4A7C15u;
	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
	x = (x ^ x >> 27) * 0x94D049BB133111EBu;
	return low + (int64_t)((x ^ x >> 31) % (uint64_t)(high - low + 1));
}

struct shape {
	size_t count;
	int64_t steps, longest, largest; /* `longest` 0: two steps of each buffer are anywhere */
	bool equal, alignments, fixed;
};

static const struct shape shapes[] = {
	{.count = 300, .steps = 600, .largest = 1000},
	{.count = MOST, .steps = 6000, .largest = 100000},
	{.count = MOST, .steps = 6000, .largest = 1 << 20, .alignments = true},
	{.count = MOST, .steps = 6000, .largest = 60},
	{.count = MOST, .steps = 6000, .equal = true, .largest = 64},
	{.count = MOST, .steps = 6000, .longest = 600, .largest = 5000},
	{.count = MOST, .steps = 9000, .longest = 3000, .largest = 300, .fixed = true},
	{.count = MOST, .steps = 700, .largest = 100000, .fixed = true, .alignments = true},
	{.count = MOST, .steps = 3000, .longest = 12, .largest = 100},
	{.count = MOST, .steps = 30, .longest = 30, .largest = 1000},
};

static void make(const struct shape *shape, struct lth_buffer *buffers)
{
	for (size_t i = 0; i < shape->count; i++) {
		int64_t a = between(0, shape->steps - 1), b = between(0, shape->steps - 1);
		int64_t lower = shape->longest || a < b ? a : b;
		int64_t upper = shape->longest ? a + between(1, shape->longest) : (a < b ? b : a) + 1;
		buffers[i] = (struct lth_buffer){.lower = lower,
						 .upper = upper,
						 .size = shape->equal ? shape->largest : between(1, shape->largest),
						 .alignment = shape->alignments ? (int64_t)1 << between(0, 6) : 1,
						 .fixed_offset = -1};
	}
	for (size_t i = 0, at = 0; shape->fixed && i < shape->count; i += 40, at++)
		buffers[i].fixed_offset = (int64_t)at * ((shape->largest + 63) / 64 * 64);
}

/* What lives with an item, by offset. */
struct placed {
	int64_t offset, top;
};

static int by_offset(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;
	return x->offset != y->offset ? (x->offset < y->offset ? -1 : 1) : (x->top > y->top) - (x->top < y->top);
}

static int64_t find_place(const struct lth_plan_item *item, struct placed *list, size_t count, enum lth_plan_fit fit)
{
	int64_t floor = 0, best = -1, best_spare = INT64_MAX;
	int holes = 0;
	qsort(list, count, sizeof(*list), by_offset);
	for (size_t i = 0; i < count && holes < LTH_PLAN_BEST_FIT_HOLES; i++) {
		int64_t spare = list[i].offset - floor - item->size;
		if (spare >= 0 && list[i].top > floor) {
			if (fit == LTH_PLAN_FIT_FIRST)
				return floor;
			holes++;
			if (spare < best_spare) {
				best = floor;
				best_spare = spare;
			}
		}
		if (list[i].top > floor)
			floor = lth_plan_align(list[i].top, item->alignment);
	}
	return best >= 0 ? best : floor;
}

static void decode(const struct lth_plan_problem *problem, const uint32_t *order, enum lth_plan_fit fit, int64_t *offsets)
{
	struct placed *list = calloc(problem->count + 1, sizeof(*list));
	bool *done = calloc(problem->count + 1, sizeof(*done));
	for (uint32_t i = 0; i < problem->count; i++)
		if (problem->items[i].fixed >= 0) {
			offsets[i] = problem->items[i].fixed;
			done[i] = true;
		}
	for (uint32_t k = 0; k < problem->count; k++) {
		const struct lth_plan_item *item = &problem->items[order[k]];
		size_t count = 0;
		if (done[order[k]])
			continue;
		for (uint32_t i = 0; i < problem->count; i++) {
			const struct lth_plan_item *other = &problem->items[i];
			if (done[i] && other->lower < item->upper && other->upper > item->lower)
				list[count++] = (struct placed){offsets[i], offsets[i] + other->size};
		}
		offsets[order[k]] = find_place(item, list, count, fit);
		done[order[k]] = true;
	}
	free(list);
	free(done);
}

static const struct lth_plan_item *sorted_items;

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	if (sorted_items[x].size != sorted_items[y].size)
		return sorted_items[x].size > sorted_items[y].size ? -1 : 1;
	return x < y ? -1 : 1;
}

START_TEST(places_are_those_of_the_definition)
{
	const char *text = getenv("LATHE_SEED");
	seed = text ? strtoull(text, NULL, 10) : 20261130;
	state = seed + (uint64_t)_i;
	struct lth_buffer *buffers = calloc(MOST, sizeof(*buffers));
	uint32_t order[MOST];
	int64_t *expected = calloc(MOST, sizeof(*expected)), *got = calloc(MOST, sizeof(*got));
	struct lth_plan_problem problem;
	struct lth_diag diag = {0};
	struct lth_arena *arena = lth_arena_create(0);
	make(&shapes[_i], buffers);
	ck_assert_int_eq(lth_plan_problem_build(arena, buffers, shapes[_i].count, NULL, &problem, &diag), LTH_OK);
	struct lth_plan_decoder *decoder = lth_plan_decoder_create(&problem);
	sorted_items = problem.items;
	for (int round = 0; round < 4; round++) {
		struct lth_plan_budget budget = {.limit = INT64_MAX, .next_look = INT64_MAX};
		enum lth_plan_fit fit = round % 2 ? LTH_PLAN_FIT_BEST : LTH_PLAN_FIT_FIRST;
		for (uint32_t i = 0; i < problem.count; i++)
			order[i] = i;
		for (uint32_t i = problem.count; round >= 2 && i > 1; i--) {
			uint32_t k = (uint32_t)between(0, i - 1), held = order[k];
			order[k] = order[i - 1];
			order[i - 1] = held;
		}
		if (round < 2)
			qsort(order, problem.count, sizeof(*order), by_size);
		decode(&problem, order, fit, expected);
		ck_assert_int_ne(lth_plan_decode(decoder, order, fit, INT64_MAX - 1, &budget, got), INT64_MAX);
		for (uint32_t i = 0; i < problem.count; i++)
			ck_assert_msg(got[i] == expected[i], "LATHE_SEED=%" PRIu64 " round %d: item %u at %lld, not %lld", seed,
				      round, i, (long long)got[i], (long long)expected[i]);
	}
	lth_plan_decoder_destroy(&decoder);
	lth_arena_destroy(&arena);
	free(buffers);
	free(expected);
	free(got);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("decode");
	TCase *tests = tcase_create("decode");
	tcase_set_timeout(tests, 120);
	tcase_add_loop_test(tests, places_are_those_of_the_definition, 0, (int)(sizeof(shapes) / sizeof(shapes[0])));
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
