/* Orientation plans as properties over random programs: sizes are products of a batch and a length that vary, live
 * ranges are random. At every shape the independent checker passes, nothing shrinks when a size grows, and at the
 * sample the arena is no larger than the plan's. LATHE_SEED=N repeats a run. */
#include "compiler/memory/plan/orient.h"
#include "tests/unit/run_suite.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BUFFERS = 300 };

static uint64_t base_seed(void)
{
	const char *text = getenv("LATHE_SEED");
	return text ? strtoull(text, NULL, 10) : 20240608;
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

/* size = constant + by_batch * batch + by_area * batch * length */
struct program {
	size_t count;
	struct lth_buffer buffers[MAX_BUFFERS];
	int64_t constant[MAX_BUFFERS], by_batch[MAX_BUFFERS], by_area[MAX_BUFFERS];
};

static void make(uint64_t *state, struct program *program)
{
	int64_t steps = between(state, 1, 60), longest = between(state, 1, steps);
	bool mixed = next(state) % 3 == 0;
	program->count = (size_t)between(state, 1, MAX_BUFFERS);
	for (size_t i = 0; i < program->count; i++) {
		int64_t lower = between(state, 0, steps - 1);
		program->buffers[i] = (struct lth_buffer){
			.lower = lower,
			.upper = lower + between(state, 1, longest),
			.alignment = mixed ? (int64_t)1 << between(state, 0, 6) : 64,
			.fixed_offset = -1,
		};
		program->constant[i] = between(state, 1, 100);
		program->by_batch[i] = next(state) % 2 ? between(state, 0, 300) : 0;
		program->by_area[i] = next(state) % 2 ? between(state, 0, 50) : 0;
	}
}

static void set_sizes(const struct program *program, int64_t batch, int64_t length, int64_t *sizes)
{
	for (size_t i = 0; i < program->count; i++)
		sizes[i] = program->constant[i] + program->by_batch[i] * batch + program->by_area[i] * batch * length;
}

/* Checks offsets at sizes with the independent checker. */
static void verify(const struct program *program, const int64_t *sizes, const int64_t *offsets, int64_t height)
{
	struct lth_plan_check check = {0};
	struct lth_diag diag = {0};
	struct lth_buffer buffers[MAX_BUFFERS];
	memcpy(buffers, program->buffers, sizeof(buffers));
	for (size_t i = 0; i < program->count; i++)
		buffers[i].size = sizes[i];
	ck_assert_int_eq((int)lth_plan_check(buffers, offsets, program->count, &check, &diag), LTH_OK);
	ck_assert_msg(check.num_violations == 0, "%s (LATHE_SEED=%" PRIu64 ")",
		      lth_plan_violation_text(check.violations[0].kind), base_seed());
	ck_assert_int_eq(check.height, height);
}

START_TEST(an_orientation_holds_at_every_size)
{
	uint64_t state = base_seed();
	static struct program program;
	static int64_t sizes[MAX_BUFFERS], offsets[MAX_BUFFERS], larger[MAX_BUFFERS];
	for (int round = 0; round < 150; round++) {
		struct lth_plan_options options = {.strategy = LTH_PLAN_EXACT, .effort = 100};
		struct lth_plan_result result = {0};
		struct lth_orient orient = {0};
		struct lth_diag diag = {0};
		int64_t height = 0, larger_height = 0;
		make(&state, &program);
		set_sizes(&program, 4, 32, sizes);
		for (size_t i = 0; i < program.count; i++)
			program.buffers[i].size = sizes[i];
		ck_assert_int_eq((int)lth_plan(program.buffers, program.count, &options, &result, &diag), LTH_OK);
		ck_assert_int_eq((int)lth_orient_build(program.buffers, result.offsets, program.count, &orient, &diag), LTH_OK);
		ck_assert_uint_le(orient.num_edges, 3 * program.count);
		ck_assert(lth_orient_evaluate(&orient, program.buffers, sizes, offsets, &height));
		ck_assert_int_le(height, result.height);
		for (size_t i = 0; i < program.count; i++)
			ck_assert_int_le(offsets[i], result.offsets[i]);
		verify(&program, sizes, offsets, height);
		for (int shape = 0; shape < 20; shape++) {
			if (shape % 2)
				set_sizes(&program, between(&state, 1, 16), between(&state, 1, 128), sizes);
			else
				for (size_t i = 0; i < program.count; i++)
					sizes[i] = between(&state, 1, 100000);
			ck_assert(lth_orient_evaluate(&orient, program.buffers, sizes, offsets, &height));
			verify(&program, sizes, offsets, height);
			for (size_t i = 0; i < program.count; i++)
				sizes[i] += next(&state) % 3 ? 0 : between(&state, 0, 5000);
			ck_assert(lth_orient_evaluate(&orient, program.buffers, sizes, larger, &larger_height));
			ck_assert_int_ge(larger_height, height);
			for (size_t i = 0; i < program.count; i++)
				ck_assert_int_ge(larger[i], offsets[i]);
		}
		lth_orient_free(&orient);
		lth_plan_result_free(&result);
	}
}
END_TEST

START_TEST(the_best_of_a_set_is_taken)
{
	uint64_t state = base_seed() + 1;
	static struct program program;
	static int64_t samples[4 * MAX_BUFFERS], sizes[MAX_BUFFERS], offsets[MAX_BUFFERS], scratch[MAX_BUFFERS];
	static const int64_t corners[4][2] = {{4, 32}, {1, 1}, {16, 128}, {16, 1}};
	for (int round = 0; round < 40; round++) {
		struct lth_plan_options options = {.strategy = LTH_PLAN_EXACT, .effort = 100};
		struct lth_orient_set set = {.count = 0};
		struct lth_diag diag = {0};
		int64_t height = 0, top = 0;
		make(&state, &program);
		for (int k = 0; k < 4; k++)
			set_sizes(&program, corners[k][0], corners[k][1], samples + (size_t)k * program.count);
		ck_assert_int_eq((int)lth_orient_choose(program.buffers, program.count, samples, 4, &options, &set, &diag),
				 LTH_OK);
		ck_assert_uint_ge(set.count, 1);
		ck_assert(lth_orient_set_evaluate(&set, program.buffers, samples + 2 * program.count, scratch, offsets,
						  &top) < set.count);
		for (int shape = 0; shape < 20; shape++) {
			set_sizes(&program, between(&state, 1, 16), between(&state, 1, 128), sizes);
			uint32_t best = lth_orient_set_evaluate(&set, program.buffers, sizes, scratch, offsets, &height);
			ck_assert_uint_lt(best, set.count);
			verify(&program, sizes, offsets, height);
			ck_assert_int_le(height, top);
			for (uint32_t k = 0; k < set.count; k++) {
				int64_t other = 0;
				ck_assert(lth_orient_evaluate(&set.orients[k], program.buffers, sizes, scratch, &other));
				ck_assert_int_ge(other, height);
			}
		}
		lth_orient_set_free(&set);
	}
}
END_TEST

/* Buffers that all live together are a chain: one edge each, though every pair is ordered. */
START_TEST(implied_pairs_are_left_out)
{
	struct lth_buffer buffers[100];
	int64_t offsets[100], sizes[100], height = 0;
	struct lth_orient orient = {0};
	struct lth_diag diag = {0};
	for (int i = 0; i < 100; i++) {
		buffers[i] = (struct lth_buffer){i, 200 - i, 10, 1, -1};
		offsets[i] = (i * 37 % 100) * 10;
		sizes[i] = i;
	}
	sizes[0] = 100;
	ck_assert_int_eq((int)lth_orient_build(buffers, offsets, 100, &orient, &diag), LTH_OK);
	ck_assert_uint_eq(orient.num_edges, 99);
	ck_assert(lth_orient_evaluate(&orient, buffers, sizes, offsets, &height));
	ck_assert_int_eq(height, 99 * 100 / 2 + 100);
	sizes[5] = INT64_MAX - 10;
	ck_assert(!lth_orient_evaluate(&orient, buffers, sizes, offsets, &height));
	lth_orient_free(&orient);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("orient");
	TCase *tests = tcase_create("orient");
	tcase_set_timeout(tests, 300);
	tcase_add_test(tests, an_orientation_holds_at_every_size);
	tcase_add_test(tests, the_best_of_a_set_is_taken);
	tcase_add_test(tests, implied_pairs_are_left_out);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
