/* Rules of index expressions that schedules rely on, each against the values that the expressions take: an index that is
 * said to step never grows by more than one, and what simplifies keeps its value. */
#include "compiler/lower/expr.h"
#include "runtime/base/arena.h"
#include "tests/unit/run_suite.h"


enum { EXTENT = 40 };

static struct lth_arena *arena;
static struct lth_dims *dims;
static struct lth_sx_pool *pool;

static void setup(void)
{
	arena = lth_arena_create(0);
	dims = lth_dims_create(arena);
	pool = lth_sx_pool_create(arena, dims);
	lth_sx_set_axis(pool, 0, lth_dim_const(dims, EXTENT), 0);
	ck_assert_ptr_nonnull(pool);
}

static void teardown(void)
{
	lth_arena_destroy(&arena);
}

/* The value at a place of axis 0. */
static int64_t value_at(lth_sx x, int64_t place)
{
	lth_sx replacement = lth_sx_int(pool, place);
	int64_t value;
	ck_assert(lth_sx_is_int(pool, lth_sx_substitute(pool, x, &replacement, 1), &value));
	return value;
}

static lth_sx op(enum lth_scalar_op which, lth_sx a, int64_t b)
{
	return lth_sx_op2(pool, which, a, lth_sx_int(pool, b));
}

START_TEST(what_steps_never_grows_by_more_than_one)
{
	lth_sx axis = lth_sx_axis(pool, 0), moved = op(LTH_SCALAR_SUB, axis, 3);
	lth_sx back = lth_sx_op2(pool, LTH_SCALAR_SUB, lth_sx_int(pool, 0), moved);
	lth_sx mirrored = lth_sx_op2(pool, LTH_SCALAR_MAX, moved, back);
	lth_sx both = lth_sx_op2(pool, LTH_SCALAR_MIN, mirrored,
				 lth_sx_op2(pool, LTH_SCALAR_SUB, lth_sx_int(pool, 20), mirrored));
	const lth_sx stepping[] = {
		axis, moved, back, mirrored, both,
		op(LTH_SCALAR_MIN, op(LTH_SCALAR_MAX, moved, 0), 12),
		op(LTH_SCALAR_MOD, axis, 7),
		op(LTH_SCALAR_FLOORDIV, axis, 3),
		op(LTH_SCALAR_ADD, op(LTH_SCALAR_MOD, axis, 7), 100),
	};
	for (size_t k = 0; k < sizeof(stepping) / sizeof(stepping[0]); k++) {
		ck_assert_msg(lth_sx_steps(pool, stepping[k], 0), "expression %zu", k);
		for (int64_t i = 0; i + 1 < EXTENT; i++)
			ck_assert_int_le(value_at(stepping[k], i + 1) - value_at(stepping[k], i), 1);
	}
	/* those that may grow faster, or from data */
	ck_assert(!lth_sx_steps(pool, op(LTH_SCALAR_MUL, axis, 2), 0));
	ck_assert(!lth_sx_steps(pool, op(LTH_SCALAR_MOD, back, 7), 0));
	ck_assert(!lth_sx_steps(pool, lth_sx_load(pool, 0, LTH_DTYPE_I64, axis), 0));
	lth_sx jumping = lth_sx_op2(pool, LTH_SCALAR_SUB, lth_sx_int(pool, 0), op(LTH_SCALAR_MOD, axis, 7));
	ck_assert(!lth_sx_steps(pool, jumping, 0));
}
END_TEST

START_TEST(parts_of_an_index_join_again)
{
	lth_sx axis = lth_sx_axis(pool, 0), high = op(LTH_SCALAR_FLOORDIV, axis, 4);
	lth_sx low = op(LTH_SCALAR_MOD, axis, 4), middle = op(LTH_SCALAR_MOD, high, 5), top = op(LTH_SCALAR_FLOORDIV, high, 5);
	lth_sx sum = lth_sx_op2(pool, LTH_SCALAR_ADD, low, op(LTH_SCALAR_MUL, middle, 4));
	sum = lth_sx_op2(pool, LTH_SCALAR_ADD, sum, op(LTH_SCALAR_MUL, top, 20));
	ck_assert_uint_eq(sum, axis);
	/* other weights do not */
	sum = lth_sx_op2(pool, LTH_SCALAR_ADD, low, op(LTH_SCALAR_MUL, high, 8));
	for (int64_t i = 0; i < EXTENT; i++)
		ck_assert_int_eq(value_at(sum, i), i % 4 + i / 4 * 8);
}
END_TEST

START_TEST(a_part_is_replaced_everywhere)
{
	lth_sx axis = lth_sx_axis(pool, 0), part = op(LTH_SCALAR_MOD, axis, 7);
	lth_sx x = lth_sx_op2(pool, LTH_SCALAR_ADD, op(LTH_SCALAR_MIN, part, 5), op(LTH_SCALAR_MAX, part, 2));
	int64_t value;
	ck_assert(lth_sx_is_int(pool, lth_sx_replace(pool, x, part, lth_sx_int(pool, 6)), &value));
	ck_assert_int_eq(value, 11);
	ck_assert_uint_eq(lth_sx_replace(pool, axis, part, lth_sx_int(pool, 6)), axis);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("index");
	TCase *tests = tcase_create("index");
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, what_steps_never_grows_by_more_than_one);
	tcase_add_test(tests, parts_of_an_index_join_again);
	tcase_add_test(tests, a_part_is_replaced_everywhere);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
