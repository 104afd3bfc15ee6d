/* Loop IR: what building folds, text and its errors, the verifier, the interpreter, rounding to narrow floats. */
#include "loop_random.h"

#include "compiler/lower/expand.h"
#include "compiler/lower/lanes.h"
#include "compiler/lower/loop_build.h"
#include "tests/unit/run_suite.h"

#include <math.h>
#include <string.h>

static struct lth_arena *arena;

static void set_up(void)
{
	arena = lth_arena_create(0);
}

static void tear_down(void)
{
	lth_arena_destroy(&arena);
}

static const char *text_of(const struct lth_loop_fn *fn)
{
	struct lth_buf text = {0};
	lth_loop_print(fn, &text);
	const char *copy = lth_arena_strdup(arena, lth_buf_text(&text));
	lth_buf_free(&text);
	return copy;
}

static struct lth_loop_fn *parse(const char *text)
{
	struct lth_loop_fn *fn = NULL;
	struct lth_diag diag = {0};
	char line[4096];
	if (lth_loop_parse(text, strlen(text), arena, &fn, &diag) != LTH_OK)
		ck_abort_msg("%s", lth_diag_line(&diag, line, sizeof(line)));
	return fn;
}

static const char every_instruction[] =
	"kernel (f32, written f16, i64, written i32) ints 2\n"
	"\t%0:f32x4 = splat f32(0.5)\n"
	"\tfor %1:i64 = begin to end step 4 [%2:f32x4 = %0, %3:i32 = i32(-1)]\n"
	"\t\t%4:i64 = sub i0, %1\n"
	"\t\t%5:boolx4 = mask %4\n"
	"\t\t%6:ptr = offset f32 p0, %1\n"
	"\t\t%7:f32x4 = load f32 %6, %5\n"
	"\t\t%8:i64x4 = ramp %1\n"
	"\t\t%9:i64x4 = gather i64 p2, %8, %5\n"
	"\t\t%10:f32x4 = cast %9\n"
	"\t\t%11:f32x4 = fma %7, %10, %2\n"
	"\t\t%12:f32x4 = round_to f8e4m3fnuz %11\n"
	"\t\t%13:f32x4 = shuffle %12, %7 [0, 5, 2, 7]\n"
	"\t\tscatter f16 p1, %9, %13, %5\n"
	"\t\t%14:f32 = reduce add %13\n"
	"\t\t%15:f32 = extract %13 [3]\n"
	"\t\t%16:bool = lt %14, %15\n"
	"\t\tif %16\n"
	"\t\t\tprefetch write p3\n"
	"\t\telse [f32(1)]\n"
	"\t\t\tprefetch read scratch\n"
	"\t\tendif [%17:f32 = f32(-inf)]\n"
	"\t\t%18:boolx4 = lt %13, %0\n"
	"\t\tfail index %18\n"
	"\t\t%19:i32 = cast %17\n"
	"\tendfor [%20:f32x4 = %13, %21:i32 = %19]\n"
	"\tstore i32 p3, %21\n"
	"\tif bool(1)\n"
	"\t\tstore f16 p1, f32(nan)\n"
	"\tendif\n"
	"end\n";

START_TEST(print_of_parse_is_the_text)
{
	ck_assert_str_eq(text_of(parse(every_instruction)), every_instruction);
	const char *commented = "# a comment\n\nkernel ( )  ints 0 # nothing\n\tprefetch read scratch\n\nend\n";
	ck_assert_str_eq(text_of(parse(commented)), "kernel () ints 0\n\tprefetch read scratch\nend\n");
}
END_TEST

START_TEST(random_functions_verify_and_round_trip)
{
	for (uint64_t seed = 0; seed < 200; seed++) {
		struct lth_loop_fn *fn = random_function(arena, seed, (struct random_options){true, true});
		struct lth_diag diag = {0};
		ck_assert_msg(lth_loop_verify(fn, &diag) == LTH_OK, "seed %d: %s", (int)seed, diag.found);
		const char *text = text_of(fn);
		ck_assert_str_eq(text_of(parse(text)), text);
		/* So do their expansions. */
		const struct lth_loop_fn *wide = lth_loop_expand(
			fn, LTH_EXPAND_MATH | LTH_EXPAND_NARROW | LTH_EXPAND_F16, arena);
		ck_assert_msg(lth_loop_verify(wide, &diag) == LTH_OK, "expanded seed %d: %s: %s", (int)seed, diag.place,
			      diag.found);
	}
}
END_TEST

/* A text and a word of the error that it must give. */
static const struct {
	const char *text, *place, *word;
} broken[] = {
	{"", "line 1:1", "line's end"},
	{"kernel (f33) ints 0\nend\n", "line 1:12", "f33"},
	{"kernel () ints 0\n", "line 2:1", "text's end"},
	{"kernel () ints 0\n%1:i64 = add begin, end\nend\n", "line 2:3", "%1"},
	{"kernel () ints 0\n%0:i64 = add begin\nend\n", "line 2:19", "line's end"},
	{"kernel () ints 0\n%0:i64 = add begin, %7\nend\n", "line 2:23", "%7"},
	{"kernel () ints 0\n%0:i64 = bogus begin\nend\n", "line 2:15", "bogus"},
	{"kernel () ints 1\n%0:i64 = add i0, i1\nend\n", "line 2:20", "i1"},
	{"kernel () ints 0\n%0:f32 = add begin, end\nend\n", "line 2", "f32"},
	{"kernel () ints 0\n%0:i64 = add begin, f32(1)\nend\n", "line 2", "f32"},
	{"kernel () ints 0\n%0:i64 = fma begin, end, 3\nend\n", "line 2", "fma"},
	{"kernel () ints 0\n%0:i64x999 = splat begin\nend\n", "line 2:11", "i64x999"},
	{"kernel (f32) ints 0\n%0:f64 = load f32 p0\nend\n", "line 2", "f64"},
	{"kernel (f32) ints 0\n%0:f32 = load f32 begin\nend\n", "line 2", "i64"},
	{"kernel () ints 0\nfor %0:i64 = 0 to 4 step 0\nendfor\nend\n", "line 2", "another step"},
	{"kernel () ints 0\nfor %0:i64 = 0 to 4 step 1\nend\n", "line 2", "1 open"},
	{"kernel () ints 0\nendfor\nend\n", "line 2:7", "endfor"},
	{"kernel () ints 0\nif bool(1)\nendfor\nend\n", "line 3", "endfor"},
	{"kernel () ints 0\nif bool(1)\nelse\nelse\nendif\nend\n", "line 4", "else"},
	{"kernel () ints 0\nif bool(1)\nendif [%0:i64 = 1]\nend\n", "line 3", "1 values"},
	{"kernel () ints 0\nif bool(1)\nelse [1]\nendif [%0:f32 = f32(1)]\nend\n", "line 4", "f32"},
	{"kernel () ints 0\nfor %0:i64 = 0 to 4 step 1 [%1:f32 = f32(0)]\nendfor\nend\n", "line 3", "0, before 1"},
	{"kernel () ints 0\nif bool(1)\n%0:i64 = add begin, end\nendif\n%1:i64 = add %0, 1\nend\n", "line 5", "operand"},
	{"kernel () ints 0\n%0:i64x2 = ramp begin\n%1:i64 = extract %0 [2]\nend\n", "line 3", "lane 2"},
	{"kernel () ints 0\n%0:i64x2 = ramp begin\n%1:i64x2 = shuffle %0, %0 [0, 4]\nend\n", "line 3", "lane 4"},
	{"kernel () ints 0\n%0:i64x2 = ramp begin\n%1:i64 = reduce lt %0\nend\n", "line 3", "lt"},
	{"kernel (u4) ints 0\n%0:u8 = load u4 p0\nend\n", "line 2", "u4"},
	{"kernel () ints 0\nfail nothing bool(1)\nend\n", "line 2:13", "nothing"},
};

START_TEST(broken_text_is_refused_with_its_place)
{
	for (size_t k = 0; k < sizeof(broken) / sizeof(broken[0]); k++) {
		struct lth_loop_fn *fn = NULL;
		struct lth_diag diag = {0};
		enum lth_code code = lth_loop_parse(broken[k].text, strlen(broken[k].text), arena, &fn, &diag);
		ck_assert_msg(code == LTH_INVALID_GRAPH, "accepted: %s", broken[k].text);
		ck_assert_ptr_null(fn);
		ck_assert_str_eq(diag.place, broken[k].place);
		ck_assert_msg(strstr(diag.found, broken[k].word), "%s: found %s", broken[k].text, diag.found);
	}
}
END_TEST

START_TEST(parsing_survives_exhaustion)
{
	for (size_t allocations = 1; allocations < 60; allocations++) {
		struct lth_arena *small = lth_arena_create(0);
		struct lth_loop_fn *fn = NULL;
		struct lth_diag diag = {0};
		lth_arena_fail_after(small, allocations);
		enum lth_code code = lth_loop_parse(every_instruction, strlen(every_instruction), small, &fn, &diag);
		ck_assert(code == LTH_OK || code == LTH_OUT_OF_MEMORY);
		lth_arena_destroy(&small);
	}
}
END_TEST

START_TEST(building_survives_exhaustion)
{
	for (size_t allocations = 3; allocations < 400; allocations += 7) {
		struct lth_arena *small = lth_arena_create(0);
		lth_arena_fail_after(small, allocations);
		random_function(small, allocations, (struct random_options){true, true});
		lth_arena_destroy(&small);
	}
}
END_TEST

START_TEST(identities_fold_and_only_exact_ones)
{
	struct lth_loop_fn *fn = lth_loop_create(arena, 1);
	uint32_t p = lth_loop_add_pointer(fn, LTH_DTYPE_F32, false);
	lth_lv i = lth_loop_int(fn, 0), f = lth_loop_load(fn, lth_loop_pointer(fn, p), LTH_DTYPE_F32, 1, LTH_LV_NONE);
	lth_lv zero = lth_loop_const_f(fn, LTH_DTYPE_F32, 0), one = lth_loop_const_f(fn, LTH_DTYPE_F32, 1);
	ck_assert_uint_eq(lth_loop_op2(fn, LTH_SCALAR_ADD, i, lth_loop_i64(fn, 0)), i);
	ck_assert_uint_eq(lth_loop_op2(fn, LTH_SCALAR_ADD, lth_loop_i64(fn, 0), i), i);
	ck_assert_uint_eq(lth_loop_op2(fn, LTH_SCALAR_SUB, i, i), lth_loop_i64(fn, 0));
	ck_assert_uint_eq(lth_loop_op2(fn, LTH_SCALAR_MUL, f, one), f);
	ck_assert_uint_ne(lth_loop_op2(fn, LTH_SCALAR_ADD, f, zero), f); /* -0 + 0 is 0 */
	ck_assert_uint_eq(lth_loop_op2(fn, LTH_SCALAR_ADD, f, lth_loop_const_f(fn, LTH_DTYPE_F32, -0.0)), f);
	ck_assert_uint_ne(lth_loop_op2(fn, LTH_SCALAR_MUL, f, zero), zero); /* nan, infinity, -0 */
	ck_assert_uint_ne(lth_loop_op2(fn, LTH_SCALAR_SUB, f, f), zero);
	ck_assert_int_eq((int)lth_loop_get(fn, lth_loop_op2(fn, LTH_SCALAR_EQ, f, f))->op, LTH_LOOP_OP);
	ck_assert_uint_eq(lth_loop_op2(fn, LTH_SCALAR_ADD, lth_loop_i64(fn, 40), lth_loop_i64(fn, 2)), lth_loop_i64(fn, 42));
	/* (i + 3) - 1 is i + 2, and found again. */
	lth_lv three = lth_loop_op2(fn, LTH_SCALAR_ADD, i, lth_loop_i64(fn, 3));
	ck_assert_uint_eq(lth_loop_op2(fn, LTH_SCALAR_SUB, three, lth_loop_i64(fn, 1)),
			  lth_loop_op2(fn, LTH_SCALAR_ADD, lth_loop_i64(fn, 2), i));
	/* Operators on splats work on scalars. */
	lth_lv wide = lth_loop_op2(fn, LTH_SCALAR_MUL, lth_loop_splat(fn, f, 8), lth_loop_splat(fn, f, 8));
	ck_assert_int_eq((int)lth_loop_get(fn, wide)->op, LTH_LOOP_SPLAT);
	/* A mask of all lanes is none. */
	lth_lv load = lth_loop_load(fn, lth_loop_pointer(fn, p), LTH_DTYPE_F32, 8, lth_loop_mask(fn, lth_loop_i64(fn, 9), 8));
	ck_assert_uint_eq(lth_loop_get(fn, load)->c, LTH_LV_NONE);
}
END_TEST

START_TEST(values_of_closed_blocks_are_not_found_again)
{
	struct lth_loop_fn *fn = lth_loop_create(arena, 2);
	lth_lv a = lth_loop_int(fn, 0), b = lth_loop_int(fn, 1);
	lth_loop_for(fn, a, b, 1, NULL, 0, NULL);
	lth_lv inside = lth_loop_op2(fn, LTH_SCALAR_MUL, a, b);
	ck_assert_uint_eq(lth_loop_op2(fn, LTH_SCALAR_MUL, a, b), inside);
	lth_loop_end_for(fn, NULL, 0, NULL);
	ck_assert_uint_ne(lth_loop_op2(fn, LTH_SCALAR_MUL, a, b), inside);
	/* A loop of one turn is none. */
	uint32_t before = fn->num_instrs;
	lth_lv index = lth_loop_for(fn, lth_loop_i64(fn, 5), lth_loop_i64(fn, 7), 2, NULL, 0, NULL);
	lth_loop_end_for(fn, NULL, 0, NULL);
	ck_assert_uint_eq(index, lth_loop_i64(fn, 5));
	ck_assert_uint_le(fn->num_instrs, before + 2);
}
END_TEST

START_TEST(the_interpreter_runs_text)
{
	struct lth_loop_fn *fn = parse("kernel (f32, written f32) ints 1\n"
				       "for %0:i64 = begin to end step 1 [%1:f32 = f32(0)]\n"
				       "%2:ptr = offset f32 p0, %0\n"
				       "%3:f32 = load f32 %2\n"
				       "%4:f32 = add %1, %3\n"
				       "%5:bool = lt f32(6), %4\n"
				       "fail shape %5\n"
				       "endfor [%6:f32 = %4]\n"
				       "store f32 p1, %6\n"
				       "end\n");
	float in[4] = {1, 2, 3, 4}, out = 0;
	void *pointers[2] = {in, &out};
	struct lathe_kernel_call call = {.pointers = pointers};
	struct lth_diag diag = {0};
	int error = -1;
	ck_assert_int_eq((int)lth_loop_interpret(fn, &call, 0, 3, &error, &diag), LTH_OK);
	ck_assert_int_eq(error, 0);
	ck_assert_float_eq(out, 6);
	ck_assert_int_eq((int)lth_loop_interpret(fn, &call, 0, 4, &error, &diag), LTH_OK);
	ck_assert_int_eq(error, LTH_KERNEL_SHAPE);
	ck_assert_float_eq(out, 10); /* work went on */
	ck_assert_int_eq((int)lth_loop_interpret(fn, &call, 4, 4, &error, &diag), LTH_OK);
	ck_assert_float_eq(out, 0);
}
END_TEST

START_TEST(a_loop_may_carry_its_index)
{
	struct lth_loop_fn *fn = parse("kernel (written i64) ints 1\n"
				       "for %0:i64 = begin to end step 2 [%1:i64 = -1, %2:i64 = -2]\n"
				       "endfor [%3:i64 = %2, %4:i64 = %0]\n"
				       "store i64 p0, %3\n"
				       "%5:ptr = offset i64 p0, 1\n"
				       "store i64 %5, %4\n"
				       "end\n");
	int64_t out[2];
	void *pointers[1] = {out};
	struct lathe_kernel_call call = {.pointers = pointers};
	struct lth_diag diag = {0};
	int error;
	ck_assert_int_eq((int)lth_loop_interpret(fn, &call, 10, 16, &error, &diag), LTH_OK);
	ck_assert_int_eq(out[0], 12);
	ck_assert_int_eq(out[1], 14);
}
END_TEST

static const enum lth_dtype narrow_types[] = {
	LTH_DTYPE_F16, LTH_DTYPE_BF16, LTH_DTYPE_F8E4M3, LTH_DTYPE_F8E4M3UZ, LTH_DTYPE_F8E5M2, LTH_DTYPE_F8E5M2UZ,
	LTH_DTYPE_F8E8M0, LTH_DTYPE_F4E2M1,
};

START_TEST(narrow_floats_round_to_the_nearest)
{
	for (size_t t = 0; t < sizeof(narrow_types) / sizeof(narrow_types[0]); t++) {
		enum lth_dtype type = narrow_types[t];
		uint32_t codes = 1u << lth_dtype_bits(type);
		for (uint32_t code = 0; code < codes; code++) {
			float value = lth_narrow_widen(type, code);
			if (isnan(value)) {
				ck_assert(isnan(lth_narrow_widen(type, lth_narrow_round(type, value))));
				continue;
			}
			ck_assert_uint_eq(lth_narrow_round(type, value), code);
			/* Halfway to the next code: the even one of the two; a step off it: the nearer. */
			float next = code + 1 < codes ? lth_narrow_widen(type, code + 1) : NAN;
			if (isnan(next) || isinf(next) || isinf(value) || next < value || type == LTH_DTYPE_F8E8M0 || value < 0)
				continue;
			float middle = (float)(((double)value + (double)next) / 2);
			if (type == LTH_DTYPE_BF16 && code == 0)
				continue; /* the middle is below f32's own steps */
			ck_assert_uint_eq(lth_narrow_round(type, middle), code % 2 ? code + 1 : code);
			ck_assert_uint_eq(lth_narrow_round(type, nextafterf(middle, 0)), code);
			ck_assert_uint_eq(lth_narrow_round(type, nextafterf(middle, INFINITY)), code + 1);
		}
	}
	ck_assert_uint_eq(lth_narrow_round(LTH_DTYPE_F16, 65519.996f), 0x7bff);
	ck_assert_uint_eq(lth_narrow_round(LTH_DTYPE_F16, 65520.0f), 0x7c00);
	ck_assert_uint_eq(lth_narrow_round(LTH_DTYPE_F8E4M3, 1e9f), 0x7f);
	ck_assert_uint_eq(lth_narrow_round(LTH_DTYPE_F8E4M3UZ, -1e9f), 0x80);
	ck_assert_uint_eq(lth_narrow_round(LTH_DTYPE_F8E4M3UZ, -0.0f), 0);
	ck_assert_uint_eq(lth_narrow_round(LTH_DTYPE_F4E2M1, -100.0f), 0xf);
}
END_TEST

static int64_t eval_i(enum lth_scalar_op op, enum lth_dtype dtype, int64_t a, int64_t b)
{
	union lth_scalar_value x = {.i = a}, y = {.i = b};
	return lth_scalar_eval(op, dtype, lth_loop_op_dtype(op, dtype), x, y, y).i;
}

static int64_t cast_f(double value, enum lth_dtype to)
{
	union lth_scalar_value x = {.f = value};
	return lth_scalar_eval(LTH_SCALAR_CAST, LTH_DTYPE_F64, to, x, x, x).i;
}

START_TEST(scalar_rules)
{
	ck_assert_int_eq(eval_i(LTH_SCALAR_DIV, LTH_DTYPE_I32, -7, 2), -3);
	ck_assert_int_eq(eval_i(LTH_SCALAR_FLOORDIV, LTH_DTYPE_I32, -7, 2), -4);
	ck_assert_int_eq(eval_i(LTH_SCALAR_MOD, LTH_DTYPE_I32, -7, 2), 1);
	ck_assert_int_eq(eval_i(LTH_SCALAR_MOD, LTH_DTYPE_I32, 7, -2), -1);
	ck_assert_int_eq(eval_i(LTH_SCALAR_REM, LTH_DTYPE_I32, -7, 2), -1);
	ck_assert_int_eq(eval_i(LTH_SCALAR_DIV, LTH_DTYPE_I64, 5, 0), 0);
	ck_assert_int_eq(eval_i(LTH_SCALAR_DIV, LTH_DTYPE_I64, INT64_MIN, -1), INT64_MIN);
	ck_assert_int_eq(eval_i(LTH_SCALAR_REM, LTH_DTYPE_I8, -128, -1), 0);
	ck_assert_int_eq(eval_i(LTH_SCALAR_ADD, LTH_DTYPE_I8, 127, 1), -128);
	ck_assert_int_eq(eval_i(LTH_SCALAR_MUL, LTH_DTYPE_U16, 0xffff, 0xffff), 1);
	ck_assert_int_eq(eval_i(LTH_SCALAR_SHL, LTH_DTYPE_I32, 1, 32), 0);
	ck_assert_int_eq(eval_i(LTH_SCALAR_SHR, LTH_DTYPE_I32, -8, 99), -1);
	ck_assert_int_eq(eval_i(LTH_SCALAR_SHR, LTH_DTYPE_U8, 0x80, 7), 1);
	ck_assert_int_eq(eval_i(LTH_SCALAR_POPCOUNT, LTH_DTYPE_I8, -1, 0), 8);
	ck_assert_int_eq(eval_i(LTH_SCALAR_LT, LTH_DTYPE_U64, -1, 1), 0);
	ck_assert_int_eq(cast_f(300, LTH_DTYPE_I8), 127);
	ck_assert_int_eq(cast_f(-1e30, LTH_DTYPE_I64), INT64_MIN);
	ck_assert_int_eq(cast_f(1e30, LTH_DTYPE_U64), -1); /* all bits */
	ck_assert_int_eq(cast_f(NAN, LTH_DTYPE_I32), 0);
	ck_assert_int_eq(cast_f(NAN, LTH_DTYPE_BOOL), 1);
	ck_assert_int_eq(cast_f(-0.9, LTH_DTYPE_U8), 0);
	union lth_scalar_value nan = {.f = NAN}, one = {.f = 1}, minus = {.f = -7.5}, two = {.f = 2};
	ck_assert(isnan(lth_scalar_eval(LTH_SCALAR_MAX, LTH_DTYPE_F32, LTH_DTYPE_F32, nan, one, one).f));
	ck_assert(isnan(lth_scalar_eval(LTH_SCALAR_MIN, LTH_DTYPE_F32, LTH_DTYPE_F32, one, nan, one).f));
	ck_assert_double_eq(lth_scalar_eval(LTH_SCALAR_MOD, LTH_DTYPE_F64, LTH_DTYPE_F64, minus, two, one).f, 0.5);
	ck_assert_double_eq(lth_scalar_eval(LTH_SCALAR_REM, LTH_DTYPE_F64, LTH_DTYPE_F64, minus, two, one).f, -1.5);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("loop");
	TCase *tests = tcase_create("loop");
	suite_add_tcase(suite, tests);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, print_of_parse_is_the_text);
	tcase_add_test(tests, random_functions_verify_and_round_trip);
	tcase_add_test(tests, broken_text_is_refused_with_its_place);
	tcase_add_test(tests, parsing_survives_exhaustion);
	tcase_add_test(tests, building_survives_exhaustion);
	tcase_add_test(tests, identities_fold_and_only_exact_ones);
	tcase_add_test(tests, values_of_closed_blocks_are_not_found_again);
	tcase_add_test(tests, the_interpreter_runs_text);
	tcase_add_test(tests, a_loop_may_carry_its_index);
	tcase_add_test(tests, narrow_floats_round_to_the_nearest);
	tcase_add_test(tests, scalar_rules);
	return run_suite(suite);
}
