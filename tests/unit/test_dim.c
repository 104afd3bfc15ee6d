/* Dimensions: normal forms, and properties against evaluation at random points of the box. The seed is printed and can
 * be given in LATHE_SEED. */
#include "compiler/ir/dim.h"
#include "tests/unit/run_suite.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct lth_arena *arena;
static struct lth_dims *dims;
static uint64_t state;

static uint64_t draw(uint64_t below)
{
	state += 0x9e3779b97f4a7c15u;
	uint64_t x = state;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return (x ^ x >> 31) % below;
}

static void begin(void)
{
	arena = lth_arena_create(0);
	dims = lth_dims_create(arena);
	ck_assert_ptr_nonnull(dims);
	const char *seed = getenv("LATHE_SEED");
	state = seed ? strtoull(seed, NULL, 0) : 20;
	printf("LATHE_SEED=%" PRIu64 "\n", state);
}

static void end(void)
{
	lth_arena_destroy(&arena);
}

static lth_dim symbol(const char *name, int64_t min, int64_t max, int64_t multiple)
{
	return lth_dim_symbol(dims, &(struct lth_dim_symbol){.name = name,
							     .min = min,
							     .max = max,
							     .multiple = multiple,
							     .hint = min,
							     .bound = LTH_DIM_NONE});
}

static void check_text(lth_dim a, const char *expected)
{
	struct lth_buf buf = {0};
	lth_dim_print(dims, a, &buf);
	ck_assert_str_eq(lth_buf_text(&buf), expected);
	lth_buf_free(&buf);
}

static lth_dim parse(const char *text)
{
	struct lth_diag diag = {0};
	lth_dim result = LTH_DIM_NONE;
	enum lth_code code = lth_dim_parse(dims, text, strlen(text), &result, &diag);
	ck_assert_msg(code == LTH_OK, "%s: %s %s", text, diag.place, diag.found);
	return result;
}

START_TEST(normal_forms_are_one_id)
{
	static const struct {
		const char *text, *normal;
	} cases[] = {
		{"k + k", "2*k"},
		{"(k + 1)*(k - 1)", "k*k - 1"},
		{"floordiv(32*k, 32)", "k"},
		{"floordiv(32*k + 31, 32)", "k"},
		{"floordiv(32*k + 65, 32)", "k + 2"},
		{"ceildiv(k, 2)", "floordiv(k + 1, 2)"},
		{"floordiv(floordiv(k, 2), 2)", "floordiv(k, 4)"},
		{"floordiv(6*k + 3, 4)", "floordiv(3*k + 1, 2)"},
		{"floordiv(h + 31, 32)", "floordiv(h, 32)"},
		{"32*floordiv(h, 32)", "h"},
		{"floordiv(h, 16)", "floordiv(h, 16)"},
		{"floordiv(h, 4)*floordiv(h, 8)", "h*floordiv(h, 32)"},
		{"mod(h, 32)", "0"},
		{"mod(6*k + 4, 6)", "4"},
		{"mod(6*k + 3, 4)", "2*mod(k + k + k + 1, 2) + 1"},
		{"floordiv(b*k, k)", "b"},
		{"max(k, 1)", "k"},
		{"min(b, b + k)", "b"},
		{"min(k, 7)", "min(k, 7)"},
		{"max(min(k, 7), 9)", "9"},
		{"max(k, floordiv(k, 2))", "k"},
		{"floordiv(-k, 2)", "floordiv(-k, 2)"},
		{"int(rfloor(rmul(real(b), 2)))", "2*b"},
		{"int(rfloor(rmul(rf32(real(b)), 0.5)))", "floordiv(b, 2)"},
		{"int(rmul(real(b), 0.3))", "int(rmul(real(b), 0.3))"},
	};
	symbol("k", 1, INT64_MAX, 1);
	symbol("b", 1, 64, 1);
	symbol("h", 32, 1024, 32);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		lth_dim a = parse(cases[i].text);
		ck_assert_msg(a == parse(cases[i].normal), "%s", cases[i].text);
		if (!strstr(cases[i].normal, "k + k"))
			check_text(a, cases[i].normal);
	}
}
END_TEST

START_TEST(comparisons_are_proofs)
{
	static const struct {
		const char *a, *b;
		enum lth_truth le, equal;
	} cases[] = {
		{"k", "k + 1", LTH_YES, LTH_NO},
		{"k", "k*b", LTH_YES, LTH_UNKNOWN},
		{"floordiv(k, 2)", "k", LTH_YES, LTH_UNKNOWN},
		{"b*floordiv(k + 1, 2)", "b*k", LTH_YES, LTH_UNKNOWN},
		{"2*k", "2*b + 1", LTH_UNKNOWN, LTH_NO},
		{"h + 2000", "h", LTH_NO, LTH_NO},
		{"mod(k, 7)", "6", LTH_YES, LTH_UNKNOWN},
		{"min(k, b)", "b", LTH_YES, LTH_UNKNOWN},
		{"k", "max(b, k + 1)", LTH_YES, LTH_NO},
		{"b", "k", LTH_UNKNOWN, LTH_UNKNOWN},
		{"max(b, k)", "b + k", LTH_YES, LTH_NO},
	};
	symbol("k", 1, INT64_MAX, 1);
	symbol("b", 1, 64, 1);
	symbol("h", 32, 1024, 32);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		lth_dim a = parse(cases[i].a), b = parse(cases[i].b);
		ck_assert_msg(lth_dim_le(dims, a, b) == cases[i].le, "%s <= %s", cases[i].a, cases[i].b);
		ck_assert_msg(lth_dim_equal(dims, a, b) == cases[i].equal, "%s == %s", cases[i].a, cases[i].b);
	}
	ck_assert_int_eq((int)lth_dim_divides(dims, lth_dim_const(dims, 16), parse("h*k")), LTH_YES);
	ck_assert_int_eq((int)lth_dim_divides(dims, lth_dim_const(dims, 16), parse("h + 8")), LTH_NO);
	ck_assert_int_eq((int)lth_dim_divides(dims, parse("k"), parse("k*k + 2*k")), LTH_YES);
	ck_assert_int_eq((int)lth_dim_divides(dims, lth_dim_const(dims, 3), parse("k")), LTH_UNKNOWN);
	ck_assert_int_eq((int)lth_dim_known_factor(dims, parse("h*k + 64")), 32);
	ck_assert_uint_eq(lth_dim_div_exact(dims, parse("k*k - 1"), parse("k + 1")), parse("k - 1"));
	ck_assert_uint_eq(lth_dim_div_exact(dims, parse("k*k + 1"), parse("k + 1")), LTH_DIM_NONE);
	ck_assert(!lth_dims_overflowed(dims));
}
END_TEST

START_TEST(overflow_is_sticky_and_bounded)
{
	lth_dim k = symbol("k", 1, INT64_MAX, 1);
	ck_assert_uint_eq(lth_dim_add(dims, lth_dim_const(dims, INT64_MAX), lth_dim_const(dims, 1)), LTH_DIM_NONE);
	ck_assert(lth_dims_overflowed(dims));
	lth_dim power = k;
	for (int i = 0; i < 100; i++) /* a degree without end is refused, not computed */
		power = lth_dim_mul(dims, power, lth_dim_add(dims, k, lth_dim_const(dims, i)));
	ck_assert_uint_eq(power, LTH_DIM_NONE);
	lth_dim deep = k;
	for (int i = 0; i < 1000; i++)
		deep = lth_dim_mod(dims, lth_dim_mul(dims, deep, lth_dim_add(dims, k, deep)),
				   lth_dim_const(dims, 1000 + i));
	ck_assert_uint_eq(deep, LTH_DIM_NONE);
	lth_dim lengthy = k; /* 2^60 terms when written out */
	for (int i = 0; i < 60; i++)
		lengthy = lth_dim_min(dims, lth_dim_sub(dims, lth_dim_mul(dims, lengthy, lth_dim_const(dims, 3)), lth_dim_const(dims, 7)),
				      lth_dim_add(dims, lth_dim_add(dims, lengthy, lengthy), lth_dim_const(dims, 5)));
	ck_assert_uint_eq(lengthy, LTH_DIM_NONE);
}
END_TEST

START_TEST(data_symbols_have_bounds)
{
	symbol("n", 1, 100, 1);
	lth_dim bound = parse("4*n");
	lth_dim_symbol(dims, &(struct lth_dim_symbol){.name = "found",
						      .max = INT64_MAX,
						      .multiple = 1,
						      .from_data = true,
						      .node = "nz",
						      .bound = bound});
	lth_dim_symbol(dims, &(struct lth_dim_symbol){.name = "free",
						      .max = INT64_MAX,
						      .multiple = 1,
						      .from_data = true,
						      .node = "u",
						      .bound = LTH_DIM_NONE});
	ck_assert_uint_eq(lth_dim_upper_bound(dims, parse("3*found + n")), parse("13*n"));
	ck_assert_uint_eq(lth_dim_upper_bound(dims, parse("n - found")), parse("n"));
	ck_assert_uint_eq(lth_dim_upper_bound(dims, parse("min(free, 300)")), lth_dim_const(dims, 300));
	ck_assert_uint_eq(lth_dim_upper_bound(dims, parse("free")), LTH_DIM_NONE);
	ck_assert_int_eq((int)lth_dim_le(dims, parse("found"), bound), LTH_YES);
	ck_assert(lth_dim_depends_on_data(dims, parse("found*n")));
	int64_t top;
	ck_assert(lth_dim_eval_top(dims, parse("found + 1"), &top) && top == 401);
	ck_assert(!lth_dim_eval_top(dims, parse("free"), &top));
}
END_TEST

/* Long sums are multiplied as one; their range, bound and value are seen through. */
/* What could not be proved is asked again once a symbol has a bound. */
START_TEST(a_bound_is_news_to_comparisons)
{
	lth_dim n = symbol("n", 1, INT64_MAX, 1), two_n = lth_dim_mul(dims, n, lth_dim_const(dims, 2));
	lth_dim found = lth_dim_symbol(dims, &(struct lth_dim_symbol){.name = "found",
								      .max = INT64_MAX,
								      .multiple = 1,
								      .from_data = true,
								      .bound = LTH_DIM_NONE});
	for (int turn = 0; turn < 2; turn++) {
		ck_assert_int_eq((int)lth_dim_le(dims, found, two_n), LTH_UNKNOWN);
		ck_assert_int_eq((int)lth_dim_le(dims, two_n, found), LTH_UNKNOWN);
	}
	lth_dim_tighten(dims, found, n, INT64_MAX);
	for (int turn = 0; turn < 2; turn++) {
		ck_assert_int_eq((int)lth_dim_le(dims, found, two_n), LTH_YES);
		ck_assert_int_eq((int)lth_dim_le(dims, two_n, found), LTH_NO);
	}
}
END_TEST

START_TEST(opaque_sums_do_not_explode)
{
	for (int i = 0; i < 6; i++)
		symbol((char[]){(char)('a' + i), 0}, 0, 9, 1);
	ck_assert_uint_eq(parse("opaque(a + b + c + 1)"), parse("a + b + c + 1"));
	lth_dim sum = parse("opaque(a + b + c + d - e + 20)"), power = lth_dim_const(dims, 1);
	check_text(sum, "opaque(a + b + c + d - e + 20)");
	for (int i = 0; i < 5; i++)
		power = lth_dim_mul(dims, power, sum);
	ck_assert_uint_ne(power, LTH_DIM_NONE);
	int64_t min, max, value, at[] = {1, 2, 3, 4, 5, 6};
	lth_dim_range(dims, sum, &min, &max);
	ck_assert(min == 11 && max == 56);
	ck_assert(lth_dim_eval(dims, power, at, &value) && value == 9765625);
	ck_assert_int_eq((int)lth_dim_le(dims, parse("a + b + c + 11"), sum), LTH_YES);
	ck_assert_int_eq((int)lth_dim_le(dims, parse("a + b + c + 12"), sum), LTH_UNKNOWN);
	lth_dim_symbol(dims, &(struct lth_dim_symbol){.name = "found", .max = INT64_MAX, .multiple = 1, .from_data = true,
						      .node = "nz", .bound = parse("a*b")});
	ck_assert_uint_eq(lth_dim_upper_bound(dims, parse("2*opaque(found + b + c + d + e)")),
			  parse("2*opaque(a*b + b + c + d + e)"));
}
END_TEST

/* ---- random expressions against evaluation ---- */

enum { NUM_SYMBOLS = 4, NUM_EXPRS = 60, NUM_POINTS = 20 };

struct sample {
	lth_dim dim;
	int64_t at[NUM_POINTS]; /* computed beside the normal form */
	bool valid[NUM_POINTS];
};

static int64_t floor_of(int64_t a, int64_t b)
{
	int64_t q = a / b;
	return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

static void combine(struct sample *out, const struct sample *a, const struct sample *b, unsigned op)
{
	switch (op) {
	case 0: out->dim = lth_dim_add(dims, a->dim, b->dim); break;
	case 1: out->dim = lth_dim_sub(dims, a->dim, b->dim); break;
	case 2: out->dim = lth_dim_mul(dims, a->dim, b->dim); break;
	case 3: out->dim = lth_dim_floordiv(dims, a->dim, b->dim); break;
	case 4: out->dim = lth_dim_ceildiv(dims, a->dim, b->dim); break;
	case 5: out->dim = lth_dim_truncdiv(dims, a->dim, b->dim); break;
	case 6: out->dim = lth_dim_mod(dims, a->dim, b->dim); break;
	case 7: out->dim = lth_dim_min(dims, a->dim, b->dim); break;
	default: out->dim = lth_dim_max(dims, a->dim, b->dim); break;
	}
	for (int p = 0; p < NUM_POINTS; p++) {
		int64_t x = a->at[p], y = b->at[p], r = 0;
		bool ok = a->valid[p] && b->valid[p] && !(op >= 3 && op <= 6 && y == 0);
		if (ok)
			r = op == 0   ? x + y
			    : op == 1 ? x - y
			    : op == 2 ? x * y
			    : op == 3 ? floor_of(x, y)
			    : op == 4 ? -floor_of(-x, y)
			    : op == 5 ? x / y
			    : op == 6 ? x - y * floor_of(x, y)
			    : op == 7 ? (x < y ? x : y)
				      : (x > y ? x : y);
		out->at[p] = r;
		out->valid[p] = ok && r > -1000000000 && r < 1000000000;
	}
}

static void check_sample(const struct sample *s, int64_t points[NUM_POINTS][NUM_SYMBOLS])
{
	int64_t min, max, value;
	struct lth_buf text = {0};
	lth_dim_range(dims, s->dim, &min, &max);
	lth_dim_print(dims, s->dim, &text);
	ck_assert_uint_eq(parse(lth_buf_text(&text)), s->dim);
	for (int p = 0; p < NUM_POINTS; p++) {
		if (!s->valid[p])
			continue;
		bool evaluated = lth_dim_eval(dims, s->dim, points[p], &value);
		ck_assert_msg(evaluated && value == s->at[p], "%s: %" PRId64 " not %" PRId64, lth_buf_text(&text),
			      value, s->at[p]);
		ck_assert_msg(min <= value && value <= max, "%s: range", lth_buf_text(&text));
		ck_assert_int_eq(value % lth_dim_known_factor(dims, s->dim), 0);
	}
	lth_buf_free(&text);
}

/* The same expression in a program has the same values. */
static void check_program(const struct sample *s, int64_t points[NUM_POINTS][NUM_SYMBOLS])
{
	struct lth_program *program = lth_program_create(arena);
	uint32_t map[NUM_SYMBOLS];
	for (uint32_t i = 0; i < NUM_SYMBOLS; i++) {
		const struct lth_dim_symbol *from = lth_dims_symbol(dims, i);
		map[i] = lth_program_symbol(program, &(struct lth_symbol){.name = from->name,
									  .min = from->min,
									  .max = from->max,
									  .multiple = from->multiple,
									  .hint = from->hint,
									  .bound = LTH_NONE});
	}
	struct lth_dim_emitter emitter = {.dims = dims, .program = program, .symbol_map = map};
	uint32_t expr = lth_dim_to_program(&emitter, s->dim);
	ck_assert_uint_lt(expr, program->num_exprs);
	int64_t *values = lth_arena_array(arena, program->num_exprs, sizeof(*values));
	for (int p = 0; p < NUM_POINTS; p++) {
		struct lth_diag diag = {0};
		if (!s->valid[p])
			continue;
		enum lth_code code = lth_program_eval(program, points[p], NULL, values, NULL, &diag);
		ck_assert_msg(code == LTH_OK && values[expr] == s->at[p], "%s", diag.found);
	}
}

static void check_pair(const struct sample *a, const struct sample *b)
{
	enum lth_truth le = lth_dim_le(dims, a->dim, b->dim), equal = lth_dim_equal(dims, a->dim, b->dim);
	lth_dim quotient = lth_dim_div_exact(dims, a->dim, b->dim);
	for (int p = 0; p < NUM_POINTS; p++) {
		if (!a->valid[p] || !b->valid[p])
			continue;
		ck_assert(le == LTH_UNKNOWN || (le == LTH_YES) == (a->at[p] <= b->at[p]));
		ck_assert(equal == LTH_UNKNOWN || (equal == LTH_YES) == (a->at[p] == b->at[p]));
		ck_assert(quotient == LTH_DIM_NONE || b->at[p] == 0 || a->at[p] % b->at[p] == 0);
	}
}

START_TEST(random_expressions_agree_with_evaluation)
{
	static struct sample samples[NUM_EXPRS];
	static const int64_t multiples[NUM_SYMBOLS] = {1, 1, 32, 3};
	int64_t points[NUM_POINTS][NUM_SYMBOLS];
	begin();
	state += (uint64_t)_i * 1000003;
	for (int p = 0; p < NUM_POINTS; p++)
		for (int s = 0; s < NUM_SYMBOLS; s++)
			points[p][s] = multiples[s] * (int64_t)(1 + draw(s == 1 ? 3 : 30));
	for (int i = 0; i < NUM_EXPRS; i++) {
		struct sample *s = &samples[i];
		char name[2] = {(char)('a' + i), 0};
		if (i < NUM_SYMBOLS) {
			s->dim = symbol(name, multiples[i], i == 0 ? INT64_MAX : multiples[i] * (i == 1 ? 3 : 30),
					multiples[i]);
			for (int p = 0; p < NUM_POINTS; p++)
				s->at[p] = points[p][i], s->valid[p] = true;
		} else if (draw(3) == 0) {
			int64_t value = (int64_t)draw(40) - 8;
			s->dim = lth_dim_const(dims, value);
			for (int p = 0; p < NUM_POINTS; p++)
				s->at[p] = value, s->valid[p] = true;
		} else {
			do
				combine(s, &samples[draw((uint64_t)i)], &samples[draw((uint64_t)i)], (unsigned)draw(9));
			while (s->dim == LTH_DIM_NONE);
		}
		check_sample(s, points);
		if (i >= NUM_SYMBOLS)
			check_program(s, points);
	}
	for (int i = 0; i < NUM_EXPRS; i++)
		for (int k = 0; k < NUM_EXPRS; k++)
			check_pair(&samples[i], &samples[k]);
	end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("dim");
	TCase *cases = tcase_create("dim");
	tcase_set_timeout(cases, 120);
	tcase_add_checked_fixture(cases, begin, end);
	tcase_add_test(cases, normal_forms_are_one_id);
	tcase_add_test(cases, comparisons_are_proofs);
	tcase_add_test(cases, overflow_is_sticky_and_bounded);
	tcase_add_test(cases, data_symbols_have_bounds);
	tcase_add_test(cases, a_bound_is_news_to_comparisons);
	tcase_add_test(cases, opaque_sums_do_not_explode);
	suite_add_tcase(suite, cases);
	TCase *random_cases = tcase_create("random");
	tcase_set_timeout(random_cases, 120);
	tcase_add_loop_test(random_cases, random_expressions_agree_with_evaluation, 0, 60);
	suite_add_tcase(suite, random_cases);
	return run_suite(suite);
}
