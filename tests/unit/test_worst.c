/* Ranges of shape expressions and the shape that needs most, against all shapes of small boxes: random expressions of
 * two symbols, reals and divisions among them, as the sizes of storages that live at random times. LTH_TEST_SEED
 * chooses them. */
#include "compiler/memory/memory.h"
#include "runtime/memory/figures.h"
#include "tests/unit/run_suite.h"

#include <stdlib.h>
#include <string.h>

enum { PROGRAMS = 300, EXPRS = 14, STORAGES = 6, STEPS = 5, SYMBOLS = 2 };

static struct lth_arena *arena;
static uint64_t random_state;

static int64_t between(int64_t low, int64_t high)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return low + (int64_t)((random_state >> 20) % (uint64_t)(high - low + 1));
}

static uint32_t apply(struct lth_program *program, enum lth_expr_op op, uint32_t a, uint32_t b)
{
	return lth_program_expr(program, op, a, b, 0);
}

/* floor(a * 1 / b) in reals, as detectors scale; b is at least 1. */
static uint32_t scaled(struct lth_program *program, uint32_t a, uint32_t b)
{
	uint32_t one = apply(program, LTH_EXPR_TOREAL, lth_program_const(program, 1), LTH_NONE);
	uint32_t divisor = apply(program, LTH_EXPR_MAX, b, lth_program_const(program, 1));
	uint32_t scale = apply(program, LTH_EXPR_RDIV, one, apply(program, LTH_EXPR_TOREAL, divisor, LTH_NONE));
	scale = apply(program, LTH_EXPR_RF32, scale, LTH_NONE);
	uint32_t product = apply(program, LTH_EXPR_RMUL, apply(program, LTH_EXPR_TOREAL, a, LTH_NONE), scale);
	return apply(program, LTH_EXPR_TOINT, apply(program, LTH_EXPR_RFLOOR, product, LTH_NONE), LTH_NONE);
}

static uint32_t some_expr(struct lth_program *program, const uint32_t *known, uint32_t count)
{
	static const enum lth_expr_op ops[] = {LTH_EXPR_ADD, LTH_EXPR_MUL, LTH_EXPR_MIN, LTH_EXPR_MAX};
	static const enum lth_expr_op divisions[] = {LTH_EXPR_FLOORDIV, LTH_EXPR_CEILDIV, LTH_EXPR_MOD};
	uint32_t a = known[between(0, count - 1)];
	uint32_t b = known[between(0, count - 1)];
	int64_t kind = between(0, 5);
	int64_t which = between(0, 11);
	switch (kind) {
	case 0:
		return apply(program, divisions[which % 3], a, lth_program_const(program, between(1, 9)));
	case 1:
		return scaled(program, a, b);
	case 2:
		return apply(program, LTH_EXPR_MUL, a, lth_program_const(program, between(-2, 3)));
	case 3:
		return apply(program, LTH_EXPR_MOD, a, apply(program, LTH_EXPR_MAX, b, lth_program_const(program, 1)));
	default:
		return apply(program, ops[which % 4], a, b);
	}
}

/* Only what figures look at: sizes and times. */
static struct lth_program *make_program(void)
{
	struct lth_program *program = lth_program_create(arena);
	uint32_t known[SYMBOLS + EXPRS];
	for (uint32_t i = 0; i < SYMBOLS; i++) {
		int64_t multiple = between(1, 3);
		struct lth_symbol symbol = {.name = i ? "w" : "h", .multiple = multiple, .axis = i, .bound = LTH_NONE};
		symbol.min = between(1, 3);
		symbol.max = between(6, 24);
		symbol.hint = symbol.max / multiple * multiple;
		known[i] = lth_program_expr(program, LTH_EXPR_SYMBOL, lth_program_symbol(program, &symbol), LTH_NONE, 0);
	}
	for (uint32_t i = SYMBOLS; i < SYMBOLS + EXPRS; i++)
		known[i] = some_expr(program, known, i);
	for (int i = 0; i < STORAGES; i++) {
		uint32_t first = (uint32_t)between(0, STEPS - 1);
		struct lth_storage storage = {.kind = i ? LTH_STORAGE_ARENA : LTH_STORAGE_OUTPUT,
					      .size = known[between(0, SYMBOLS + EXPRS - 1)],
					      .alignment = 4,
					      .first = first};
		storage.last = first + (uint32_t)between(1, 3);
		lth_program_storage(program, &storage);
	}
	for (int i = 0; i < STEPS + 3; i++) {
		struct lth_instr instr = lth_instr_of(LTH_INSTR_KILL);
		lth_program_instr(program, &instr);
	}
	ck_assert(lth_arena_ok(arena));
	return program;
}

/* The next shape in order; false behind the last. */
static bool next_shape(const struct lth_program *program, int64_t *shape)
{
	for (uint32_t i = 0; i < SYMBOLS; i++) {
		const struct lth_symbol *symbol = &program->symbols[i];
		shape[i] += symbol->multiple;
		if (shape[i] <= symbol->max)
			return true;
		shape[i] = (symbol->min + symbol->multiple - 1) / symbol->multiple * symbol->multiple;
	}
	return false;
}

static double real_of(int64_t bits)
{
	double value;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

static void check_ranges(const struct lth_program *program, const struct lth_range *ranges, const int64_t *values)
{
	for (uint32_t i = 0; i < program->num_exprs; i++) {
		if (!ranges[i].known)
			continue;
		if (lth_expr_is_real(program->exprs[i].op))
			ck_assert(real_of(values[i]) >= real_of(ranges[i].low) && real_of(values[i]) <= real_of(ranges[i].high));
		else
			ck_assert(values[i] >= ranges[i].low && values[i] <= ranges[i].high);
	}
}

static int64_t need(const struct lth_program *program, const struct lth_memory_limits *limits, const int64_t *shape)
{
	struct lth_memory_figures figures;
	struct lth_diag diag = {0};
	ck_assert_int_eq(lth_memory_figures(program, shape, &figures, &diag), LTH_OK);
	int64_t arena_need = figures.live_bound_bytes - limits->arena_bytes;
	int64_t total_need = limits->total_bytes == INT64_MAX
				     ? INT64_MIN
				     : figures.live_bound_bytes + figures.io_bytes - limits->total_bytes;
	return arena_need > total_need ? arena_need : total_need;
}

START_TEST(no_shape_needs_more)
{
	const char *seed = getenv("LTH_TEST_SEED");
	uint64_t first = seed ? strtoull(seed, NULL, 10) : 1;
	unsigned elsewhere = 0, refused = 0;
	for (uint64_t k = 0; k < PROGRAMS; k++) {
		random_state = (first + k) * 0x9E3779B97F4A7C15u + 1;
		arena = lth_arena_create(0);
		struct lth_program *program = make_program();
		struct lth_memory_limits limits = {.total_bytes = INT64_MAX};
		struct lth_diag diag = {0};
		struct lth_range *ranges = calloc(program->num_exprs, sizeof(*ranges));
		int64_t *values = calloc(program->num_exprs, sizeof(*values));
		int64_t low[SYMBOLS], high[SYMBOLS], shape[SYMBOLS], worst[SYMBOLS], bound, most = INT64_MIN;
		for (uint32_t i = 0; i < SYMBOLS; i++) {
			const struct lth_symbol *symbol = &program->symbols[i];
			low[i] = shape[i] = (symbol->min + symbol->multiple - 1) / symbol->multiple * symbol->multiple;
			high[i] = symbol->hint;
		}
		lth_expr_ranges(program, low, high, ranges);
		do {
			ck_assert_int_eq(lth_program_eval(program, shape, NULL, values, NULL, &diag), LTH_OK);
			check_ranges(program, ranges, values);
			int64_t here = need(program, &limits, shape);
			most = here > most ? here : most;
		} while (next_shape(program, shape));
		ck_assert_int_eq(lth_memory_worst(program, &limits, worst, &bound, &diag), LTH_OK);
		ck_assert_msg(need(program, &limits, worst) == most && bound == most, "seed %llu: %lld to %lld, not %lld",
			      (unsigned long long)(first + k), (long long)need(program, &limits, worst),
			      (long long)bound, (long long)most);
		elsewhere += memcmp(worst, high, sizeof(high)) != 0;
		/* limits that just hold, and that do not */
		limits.arena_bytes = most > 1 ? most : 1;
		ck_assert_int_eq(lth_memory_worst(program, &limits, worst, &bound, &diag), LTH_OK);
		ck_assert_int_le(bound, 0);
		limits.arena_bytes--;
		if (limits.arena_bytes > 0) {
			ck_assert_int_eq(lth_memory_worst(program, &limits, worst, &bound, &diag), LTH_OK);
			ck_assert_int_eq(need(program, &limits, worst), 1);
			refused++;
		}
		limits = (struct lth_memory_limits){.arena_bytes = INT64_MAX / 2, .total_bytes = most / 2 + 1};
		ck_assert_int_eq(lth_memory_worst(program, &limits, worst, &bound, &diag), LTH_OK);
		for (uint32_t i = 0; i < SYMBOLS; i++)
			shape[i] = low[i];
		bool fits = true;
		do {
			fits = fits && need(program, &limits, shape) <= 0;
		} while (next_shape(program, shape));
		ck_assert_msg(fits == (bound <= 0) && fits == (need(program, &limits, worst) <= 0), "seed %llu",
			      (unsigned long long)(first + k));
		free(ranges);
		free(values);
		lth_arena_destroy(&arena);
	}
	ck_assert_uint_gt(elsewhere, PROGRAMS / 30); /* or the test tests nothing */
	ck_assert_uint_gt(refused, PROGRAMS / 2);
}
END_TEST

/* A symbol without a top counts only where a size depends on it. */
START_TEST(open_symbols_that_no_size_asks_for)
{
	for (int depends = 0; depends < 2; depends++) {
		arena = lth_arena_create(0);
		struct lth_program *program = lth_program_create(arena);
		struct lth_symbol a = {.name = "a", .min = 1, .max = 8, .multiple = 1, .hint = 2, .bound = LTH_NONE};
		struct lth_symbol b = {.name = "b", .min = 1, .max = INT64_MAX, .multiple = 1, .hint = 3, .bound = LTH_NONE};
		uint32_t of_a = lth_program_expr(program, LTH_EXPR_SYMBOL, lth_program_symbol(program, &a), LTH_NONE, 0);
		uint32_t of_b = lth_program_expr(program, LTH_EXPR_SYMBOL, lth_program_symbol(program, &b), LTH_NONE, 0);
		struct lth_storage storage = {.kind = LTH_STORAGE_ARENA, .alignment = 1, .last = 1};
		struct lth_storage output = {.kind = LTH_STORAGE_OUTPUT, .size = of_b, .alignment = 1};
		struct lth_instr instr = lth_instr_of(LTH_INSTR_KILL);
		storage.size = depends ? of_b : of_a;
		lth_program_storage(program, &storage);
		lth_program_storage(program, &output);
		lth_program_instr(program, &instr);
		struct lth_memory_limits limits = {.arena_bytes = 4, .total_bytes = INT64_MAX};
		struct lth_diag diag = {0};
		int64_t worst[2], bound;
		ck_assert_int_eq(lth_memory_worst(program, &limits, worst, &bound, &diag), LTH_OK);
		ck_assert_int_eq(worst[0], 8);
		ck_assert_int_eq(worst[1], 3);
		ck_assert_int_eq(bound, depends ? -1 : 4);
		lth_arena_destroy(&arena);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("worst");
	TCase *tests = tcase_create("worst");
	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, no_shape_needs_more);
	tcase_add_test(tests, open_symbols_that_no_size_asks_for);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
