/* Property tests of the memory planner: random problems of many shapes, every strategy, every plan through the
 * independent checker; tiny problems against brute force; packings with a known perfect plan. LATHE_SEED=N repeats a
 * run; the seed is printed when a test fails. */
#include "compiler/memory/plan/plan.h"
#include "tests/unit/run_suite.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BUFFERS = 2000 };

static uint64_t base_seed(void)
{
	const char *text = getenv("LATHE_SEED");
	return text ? strtoull(text, NULL, 10) : 20240607;
}

static uint64_t next(uint64_t *state)
{
	uint64_t x = *state += 0x9E3779B97F4A7C15u;
	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
	x = (x ^ x >> 27) * 0x94D049BB133111EBu;
	return x ^ x >> 31;
}

static int64_t between(uint64_t *state, int64_t low, int64_t high)
{
	return low + (int64_t)(next(state) % (uint64_t)(high - low + 1));
}

/* How a random problem looks. */
struct shape {
	size_t count;
	int64_t steps, longest, largest;
	bool alignments, fixed, zeros;
};

static void make(uint64_t *state, const struct shape *shape, struct lth_buffer *buffers)
{
	for (size_t i = 0; i < shape->count; i++) {
		struct lth_buffer *b = &buffers[i];
		b->lower = between(state, 0, shape->steps - 1);
		b->upper = b->lower + between(state, 1, shape->longest);
		b->size = between(state, shape->zeros ? 0 : 1, shape->largest);
		b->alignment = shape->alignments ? (int64_t)1 << between(state, 0, 4) : 1;
		b->fixed_offset = -1;
	}
	/* Fixed buffers that cannot collide: each in a stretch of addresses of its own. */
	for (size_t i = 0, at = 0; shape->fixed && i < shape->count; i += 4, at++)
		buffers[i].fixed_offset = (int64_t)at * ((shape->largest + 31) / 16 * 16);
}

static struct lth_plan_result plan(const struct lth_buffer *buffers, size_t count, enum lth_plan_strategy strategy,
				   int64_t effort, uint64_t seed)
{
	struct lth_plan_options options = {.strategy = strategy, .effort = effort, .seed = seed};
	struct lth_plan_result result = {0};
	struct lth_diag diag = {0};
	enum lth_code code = lth_plan(buffers, count, &options, &result, &diag);
	ck_assert_msg(code == LTH_OK, "%s: %s (LATHE_SEED=%" PRIu64 ")", diag.place, diag.found, base_seed());
	return result;
}

static void verify(const struct lth_buffer *buffers, size_t count, const struct lth_plan_result *result)
{
	struct lth_plan_check check = {0};
	struct lth_diag diag = {0};
	ck_assert_int_eq((int)lth_plan_check(buffers, result->offsets, count, &check, &diag), LTH_OK);
	ck_assert_msg(check.num_violations == 0, "%s: buffers %zu, %zu (LATHE_SEED=%" PRIu64 ")",
		      lth_plan_violation_text(check.violations[0].kind), check.violations[0].first,
		      check.violations[0].second, base_seed());
	ck_assert_int_eq(check.height, result->height);
	ck_assert_int_eq(check.live_bound_bytes, result->live_bound_bytes);
	ck_assert_int_ge(result->height, result->live_bound_bytes);
	if (result->certificate == LTH_CERTIFICATE_LIVE_BOUND)
		ck_assert_int_eq(result->height, result->live_bound_bytes);
}

START_TEST(every_strategy_makes_valid_plans)
{
	uint64_t state = base_seed();
	struct lth_buffer *buffers = calloc(MAX_BUFFERS, sizeof(*buffers));
	for (int round = 0; round < 120; round++) {
		struct shape shape = {.count = (size_t)between(&state, 0, round % 10 == 9 ? MAX_BUFFERS : 60),
				      .steps = between(&state, 1, 200),
				      .largest = between(&state, 1, 1000),
				      .alignments = round % 3 == 1,
				      .fixed = round % 4 == 2,
				      .zeros = round % 2 == 1};
		shape.longest = between(&state, 1, shape.steps);
		make(&state, &shape, buffers);
		int64_t heights[LTH_NUM_PLAN];
		for (int s = 0; s < LTH_NUM_PLAN; s++) {
			struct lth_plan_result result =
				plan(buffers, shape.count, (enum lth_plan_strategy)s, 300, (uint64_t)round);
			struct lth_plan_result again =
				plan(buffers, shape.count, (enum lth_plan_strategy)s, 300, (uint64_t)round);
			verify(buffers, shape.count, &result);
			ck_assert_int_eq(result.nodes, again.nodes);
			ck_assert_mem_eq(result.offsets, again.offsets, shape.count * sizeof(int64_t));
			heights[s] = result.height;
			lth_plan_result_free(&result);
			lth_plan_result_free(&again);
		}
		ck_assert_int_le(heights[LTH_PLAN_EXACT], heights[LTH_PLAN_GREEDY_BY_SIZE]);
		ck_assert_int_le(heights[LTH_PLAN_EXACT], heights[LTH_PLAN_BEST_FIT]);
	}
	free(buffers);
}
END_TEST

/* The least height by trying every order with every buffer at its lowest place in that order: some order gives an
 * optimal plan, because the buffers of one can be pushed down in the order of their offsets. */
static int64_t lowest(const struct lth_buffer *buffers, size_t count, const int64_t *sizes, int64_t *offsets,
		      unsigned placed, int64_t height, int64_t best)
{
	if (height >= best)
		return best;
	if (placed == (1u << count) - 1)
		return height;
	for (size_t i = 0; i < count; i++) {
		if (placed & 1u << i)
			continue;
		int64_t at = 0;
		for (bool moved = true; moved && buffers[i].fixed_offset < 0;) {
			moved = false;
			at = (at + buffers[i].alignment - 1) / buffers[i].alignment * buffers[i].alignment;
			for (size_t k = 0; k < count; k++) {
				bool together = buffers[k].lower < buffers[i].upper &&
						buffers[i].lower < buffers[k].upper;
				if ((placed & 1u << k) && together && offsets[k] < at + sizes[i] &&
				    at < offsets[k] + sizes[k]) {
					at = offsets[k] + sizes[k];
					moved = true;
				}
			}
		}
		offsets[i] = at;
		int64_t top = at + sizes[i];
		best = lowest(buffers, count, sizes, offsets, placed | 1u << i, top > height ? top : height, best);
	}
	return best;
}

static int64_t brute_force(const struct lth_buffer *buffers, size_t count)
{
	int64_t granule = 0, sizes[8], offsets[8], height = 0;
	unsigned placed = 0;
	for (size_t i = 0; i < count; i++)
		for (int64_t a = buffers[i].alignment; a != 0;) {
			int64_t rest = granule % a;
			granule = a;
			a = rest;
		}
	for (size_t i = 0; i < count; i++) {
		sizes[i] = buffers[i].size ? buffers[i].size : buffers[i].alignment;
		sizes[i] = (sizes[i] + granule - 1) / granule * granule;
		if (buffers[i].fixed_offset < 0)
			continue;
		placed |= 1u << i;
		offsets[i] = buffers[i].fixed_offset;
		height = offsets[i] + sizes[i] > height ? offsets[i] + sizes[i] : height;
	}
	return lowest(buffers, count, sizes, offsets, placed, height, INT64_MAX);
}

START_TEST(exact_equals_brute_force)
{
	uint64_t state = base_seed() + 1;
	struct lth_buffer buffers[8];
	for (int round = 0; round < 3000; round++) {
		struct shape shape = {.count = (size_t)between(&state, 1, 7),
				      .steps = between(&state, 2, 8),
				      .longest = between(&state, 1, 5),
				      .largest = between(&state, 1, 12),
				      .alignments = round % 3 == 1,
				      .fixed = round % 5 == 2,
				      .zeros = round % 7 == 3};
		make(&state, &shape, buffers);
		struct lth_plan_result result = plan(buffers, shape.count, LTH_PLAN_EXACT, 0, (uint64_t)round);
		verify(buffers, shape.count, &result);
		ck_assert_msg(result.certificate != LTH_CERTIFICATE_ANYTIME, "round %d: %s (LATHE_SEED=%" PRIu64 ")",
			      round, result.certificate_text, base_seed());
		int64_t least = brute_force(buffers, shape.count);
		ck_assert_msg(result.height == least, "round %d: %" PRId64 " for %" PRId64 " (LATHE_SEED=%" PRIu64 ")",
			      round, result.height, least, base_seed());
		if (least > result.live_bound_bytes && shape.alignments == false && shape.fixed == false) {
			struct lth_plan_options options = {.strategy = LTH_PLAN_EXACT, .capacity = least - 1};
			struct lth_plan_result missed = {0};
			struct lth_diag diag = {0};
			ck_assert_int_eq((int)lth_plan(buffers, shape.count, &options, &missed, &diag), LTH_OK);
			ck_assert_int_ge(missed.height, least);
			ck_assert_int_eq(missed.certificate, LTH_CERTIFICATE_EXHAUSTED);
			lth_plan_result_free(&missed);
		}
		lth_plan_result_free(&result);
	}
}
END_TEST

/* A rectangle of steps by bytes cut again and again at random, across or along: its pieces pack with no waste. */
static size_t cut(uint64_t *state, int64_t steps, int64_t bytes, size_t pieces, struct lth_buffer *buffers)
{
	size_t count = 1;
	buffers[0] = (struct lth_buffer){0, steps, bytes, 1, -1};
	for (int tries = 0; count < pieces && tries < 100000; tries++) {
		struct lth_buffer *piece = &buffers[(size_t)between(state, 0, (int64_t)count - 1)];
		struct lth_buffer *other = &buffers[count];
		*other = *piece;
		if (next(state) % 2 && piece->upper - piece->lower > 1) {
			other->lower = between(state, piece->lower + 1, piece->upper - 1);
			piece->upper = other->lower;
			count++;
		} else if (piece->size > 1) {
			other->size = between(state, 1, piece->size - 1);
			piece->size -= other->size;
			count++;
		}
	}
	for (size_t i = count; i > 1; i--) {
		size_t k = (size_t)between(state, 0, (int64_t)i - 1);
		struct lth_buffer swapped = buffers[i - 1];
		buffers[i - 1] = buffers[k];
		buffers[k] = swapped;
	}
	return count;
}

START_TEST(perfect_packings_are_found)
{
	uint64_t state = base_seed() + 2;
	struct lth_buffer buffers[64];
	for (int round = 0; round < 40; round++) {
		size_t count = cut(&state, 40, 1000, 12 + (size_t)round % 30, buffers);
		struct lth_plan_result result = plan(buffers, count, LTH_PLAN_EXACT, 200000, 1);
		verify(buffers, count, &result);
		ck_assert_int_eq(result.live_bound_bytes, 1000);
		ck_assert_msg(result.height == 1000, "round %d: %s (LATHE_SEED=%" PRIu64 ")", round,
			      result.certificate_text, base_seed());
		ck_assert_str_eq(result.certificate_text, "optimal: arena equals live bound");
		lth_plan_result_free(&result);
	}
}
END_TEST

START_TEST(the_checker_finds_every_corruption)
{
	uint64_t state = base_seed() + 3;
	struct lth_buffer buffers[40];
	const struct shape shape = {.count = 40, .steps = 20, .longest = 10, .largest = 50, .alignments = true};
	for (int round = 0; round < 200; round++) {
		make(&state, &shape, buffers);
		struct lth_plan_result result = plan(buffers, 40, LTH_PLAN_GREEDY_BY_SIZE, 0, 0);
		size_t moved = (size_t)between(&state, 0, 39);
		result.offsets[moved] = between(&state, -2, result.height);
		/* The truth, by looking at every pair; alignment 1 is among them, so sizes count as they are. */
		bool valid = result.offsets[moved] >= 0 && result.offsets[moved] % buffers[moved].alignment == 0;
		for (size_t k = 0; k < 40; k++)
			if (k != moved && buffers[k].lower < buffers[moved].upper &&
			    buffers[moved].lower < buffers[k].upper &&
			    result.offsets[k] < result.offsets[moved] + buffers[moved].size &&
			    result.offsets[moved] < result.offsets[k] + buffers[k].size)
				valid = false;
		struct lth_plan_check check = {0};
		struct lth_diag diag = {0};
		ck_assert_int_eq((int)lth_plan_check(buffers, result.offsets, 40, &check, &diag), LTH_OK);
		ck_assert_msg((check.num_violations == 0) == valid, "round %d (LATHE_SEED=%" PRIu64 ")", round,
			      base_seed());
		for (size_t v = 0; v < check.num_violations && v < 16; v++)
			ck_assert(check.violations[v].first == moved || check.violations[v].second == moved);
		lth_plan_result_free(&result);
	}
}
END_TEST

START_TEST(the_checker_says_what_is_wrong)
{
	struct lth_buffer buffers[] = {{0, 4, 10, 4, -1}, {2, 6, 10, 4, -1}, {4, 9, 0, 64, 128}};
	int64_t offsets[] = {0, 8, 64};
	struct lth_plan_check check = {0};
	struct lth_diag diag = {0};
	ck_assert_int_eq((int)lth_plan_check(buffers, offsets, 3, &check, &diag), LTH_OK);
	ck_assert_uint_eq(check.num_violations, 2);
	ck_assert_int_eq(check.violations[0].kind, LTH_VIOLATION_FIXED);
	ck_assert_uint_eq(check.violations[0].first, 2);
	ck_assert_int_eq(check.violations[1].kind, LTH_VIOLATION_OVERLAP);
	ck_assert_uint_eq(check.violations[1].first, 0);
	ck_assert_uint_eq(check.violations[1].second, 1);
	ck_assert_int_eq(check.violations[1].step, 2);
	ck_assert_int_eq(check.height, 128);
	ck_assert_int_eq(check.live_bound_bytes, 12 + 64);
	offsets[0] = -4;
	offsets[1] = 2;
	offsets[2] = 128;
	ck_assert_int_eq((int)lth_plan_check(buffers, offsets, 3, &check, &diag), LTH_OK);
	ck_assert_uint_eq(check.num_violations, 2);
	ck_assert_int_eq(check.violations[0].kind, LTH_VIOLATION_NEGATIVE);
	ck_assert_int_eq(check.violations[1].kind, LTH_VIOLATION_ALIGNMENT);
	buffers[1].upper = 2;
	ck_assert_int_eq((int)lth_plan_check(buffers, offsets, 3, &check, &diag), LTH_INVALID_REQUEST);
}
END_TEST

START_TEST(sizes_have_64_bits)
{
	const int64_t big = INT64_C(1) << 58;
	struct lth_buffer buffers[] = {{0, 2, big + 1, 1, -1}, {1, 3, big, 1, -1}, {2, 4, big + 3, 1, -1}};
	for (int s = 0; s < LTH_NUM_PLAN; s++) {
		struct lth_plan_result result = plan(buffers, 3, (enum lth_plan_strategy)s, 0, 0);
		verify(buffers, 3, &result);
		ck_assert_int_eq(result.naive_bytes, 3 * big + 4);
		ck_assert_int_eq(result.height, s == LTH_PLAN_REGION ? 3 * big + 4 : 2 * big + 3);
		lth_plan_result_free(&result);
	}
	buffers[0].size = INT64_MAX - 5;
	struct lth_plan_options options = {.strategy = LTH_PLAN_EXACT};
	struct lth_plan_result result = {0};
	struct lth_diag diag = {0};
	ck_assert_int_eq((int)lth_plan(buffers, 3, &options, &result, &diag), LTH_INVALID_REQUEST);
	ck_assert_ptr_nonnull(strstr(diag.found, "overflow"));
}
END_TEST

/* Refuses the buffers; the message contains `word`. */
static void refuse(const struct lth_buffer *buffers, size_t count, int64_t capacity, enum lth_code code,
		   const char *word)
{
	struct lth_plan_options options = {.strategy = LTH_PLAN_EXACT, .capacity = capacity};
	struct lth_plan_result result = {0};
	struct lth_diag diag = {0};
	char line[4096];
	ck_assert_int_eq((int)lth_plan(buffers, count, &options, &result, &diag), (int)code);
	lth_diag_line(&diag, line, sizeof(line));
	ck_assert_msg(strstr(line, word) != NULL, "no '%s' in: %s", word, line);
	ck_assert_ptr_null(result.offsets);
}

START_TEST(wrong_buffers_are_refused)
{
	struct lth_buffer ok = {0, 4, 8, 1, -1}, bad = ok;
	bad.lower = -1;
	refuse(&bad, 1, 0, LTH_INVALID_REQUEST, "lower -1");
	bad = ok;
	bad.upper = 0;
	refuse(&bad, 1, 0, LTH_INVALID_REQUEST, "half-open");
	bad = ok;
	bad.size = -8;
	refuse(&bad, 1, 0, LTH_INVALID_REQUEST, "size -8");
	bad = ok;
	bad.alignment = 0;
	refuse(&bad, 1, 0, LTH_INVALID_REQUEST, "alignment 0");
	bad = (struct lth_buffer){0, 4, 8, 16, 24};
	refuse(&bad, 1, 0, LTH_INVALID_REQUEST, "multiple");
	struct lth_buffer pair[] = {{0, 4, 8, 1, 0}, {3, 5, 8, 1, 7}};
	refuse(pair, 2, 0, LTH_INVALID_REQUEST, "buffer 0 at 0 and buffer 1 at 7");
	refuse(&ok, 1, 7, LTH_BUDGET_UNREACHABLE, "at least 8, the live bound");
	struct lth_buffer high = {0, 4, 8, 1, 100};
	refuse(&high, 1, 107, LTH_BUDGET_UNREACHABLE, "at least 108, the top of a fixed buffer");
}
END_TEST

START_TEST(a_fixed_top_is_a_certificate)
{
	struct lth_buffer buffers[] = {{0, 4, 8, 1, 100}, {0, 4, 50, 1, -1}, {2, 5, 60, 1, -1}};
	struct lth_plan_result result = plan(buffers, 3, LTH_PLAN_EXACT, 0, 0);
	verify(buffers, 3, &result);
	ck_assert_int_eq(result.height, 158);
	ck_assert_int_eq(result.certificate, LTH_CERTIFICATE_EXHAUSTED);
	lth_plan_result_free(&result);
	buffers[2].size = 50;
	result = plan(buffers, 3, LTH_PLAN_EXACT, 0, 0);
	ck_assert_int_eq(result.height, 108);
	ck_assert_int_eq(result.certificate, LTH_CERTIFICATE_LIVE_BOUND);
	lth_plan_result_free(&result);
	buffers[2].size = 10;
	result = plan(buffers, 3, LTH_PLAN_EXACT, 0, 0);
	ck_assert_int_eq(result.certificate, LTH_CERTIFICATE_FIXED_TOP);
	lth_plan_result_free(&result);
}
END_TEST

/* Three of 65 bytes at multiples of 64 take 128 each, but for the last; a small one fits between. */
START_TEST(aligned_sizes_are_a_certificate)
{
	struct lth_buffer buffers[] = {{0, 4, 65, 64, -1}, {0, 4, 65, 64, -1}, {2, 5, 65, 64, -1}, {3, 9, 50, 1, -1}};
	struct lth_plan_result result = plan(buffers, 4, LTH_PLAN_EXACT, 0, 0);
	verify(buffers, 4, &result);
	ck_assert_int_eq(result.height, 321);
	ck_assert_int_eq(result.live_bound_bytes, 245);
	ck_assert_int_eq(result.lower_bound_bytes, 321);
	ck_assert_int_eq(result.certificate, LTH_CERTIFICATE_ALIGNMENT);
	lth_plan_result_free(&result);
	refuse(buffers, 4, 320, LTH_BUDGET_UNREACHABLE, "at least 321, what aligned buffers take");
}
END_TEST

static bool always(void *context)
{
	++*(int *)context;
	return true;
}

START_TEST(a_plan_can_be_cancelled)
{
	uint64_t state = base_seed() + 4;
	struct lth_buffer buffers[200];
	const struct shape shape = {.count = 200, .steps = 50, .longest = 30, .largest = 1000};
	int asked = 0;
	make(&state, &shape, buffers);
	struct lth_plan_options options = {.strategy = LTH_PLAN_EXACT, .cancelled = always, .cancel_context = &asked};
	struct lth_plan_result result = {0};
	struct lth_diag diag = {0};
	ck_assert_int_eq((int)lth_plan(buffers, 200, &options, &result, &diag), LTH_CANCELLED);
	ck_assert_int_gt(asked, 0);
}
END_TEST

START_TEST(many_buffers)
{
	const struct shape shapes[] = {
		{.count = 30000, .steps = 30000, .longest = 40, .largest = 1 << 20},
		{.count = 5000, .steps = 40, .longest = 40, .largest = 1 << 20},
		{.count = 10000, .steps = 10000, .longest = 10000, .largest = 100},
	};
	uint64_t state = base_seed() + 5;
	struct lth_buffer *buffers = calloc(30000, sizeof(*buffers));
	for (size_t k = 0; k < sizeof(shapes) / sizeof(shapes[0]); k++) {
		int64_t greedy = INT64_MAX;
		make(&state, &shapes[k], buffers);
		for (int s = 0; s < LTH_NUM_PLAN; s++) {
			struct lth_plan_result result = plan(buffers, shapes[k].count, (enum lth_plan_strategy)s, 1, 0);
			verify(buffers, shapes[k].count, &result);
			greedy = s == LTH_PLAN_GREEDY_BY_SIZE ? result.height : greedy;
			lth_plan_result_free(&result);
		}
		/* With effort: stretches of the plan are repaired. */
		struct lth_plan_result repaired = plan(buffers, shapes[k].count, LTH_PLAN_EXACT, 20000, 1);
		verify(buffers, shapes[k].count, &repaired);
		ck_assert_int_le(repaired.height, greedy);
		lth_plan_result_free(&repaired);
	}
	free(buffers);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("plan");
	TCase *tests = tcase_create("plan");
	tcase_set_timeout(tests, 300);
	tcase_add_test(tests, every_strategy_makes_valid_plans);
	tcase_add_test(tests, exact_equals_brute_force);
	tcase_add_test(tests, perfect_packings_are_found);
	tcase_add_test(tests, the_checker_finds_every_corruption);
	tcase_add_test(tests, the_checker_says_what_is_wrong);
	tcase_add_test(tests, sizes_have_64_bits);
	tcase_add_test(tests, wrong_buffers_are_refused);
	tcase_add_test(tests, a_fixed_top_is_a_certificate);
	tcase_add_test(tests, aligned_sizes_are_a_certificate);
	tcase_add_test(tests, a_plan_can_be_cancelled);
	tcase_add_test(tests, many_buffers);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
