/* Math functions against libm in higher precision: at most 4 ulp on points spread over all exponents and crowded where
 * functions are delicate, and the exact answers at nan, infinities and signed zeros. bench/codegen sweeps more points. */
#include "kernels.h"

#include "compiler/lower/loop.h"
#include "runtime/base/hash.h"
#include "tests/unit/run_suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { POINTS = 1 << 16, FIRST = LTH_SCALAR_EXP, COUNT = LTH_NUM_SCALARS - LTH_SCALAR_EXP };

static float x32[POINTS], y32[POINTS], out32[POINTS];
static double x64[POINTS], y64[POINTS], out64[POINTS];

/* out[i] = op(x[i], y[i]), 16 lanes at a time with a masked tail. */
static struct lth_loop_fn *map_of(struct lth_arena *arena, enum lth_scalar_op op, enum lth_dtype dtype)
{
	struct lth_loop_fn *fn = lth_loop_create(arena, 0);
	lth_lv x[2];
	for (int k = 0; k < 3; k++)
		lth_loop_add_pointer(fn, dtype, k == 2);
	lth_lv i = lth_loop_for(fn, lth_loop_begin(fn), lth_loop_end(fn), 16, NULL, 0, NULL);
	lth_lv mask = lth_loop_mask(fn, lth_loop_op2(fn, LTH_SCALAR_SUB, lth_loop_end(fn), i), 16);
	for (uint32_t k = 0; k < 2; k++)
		x[k] = lth_loop_load(fn, lth_loop_offset(fn, lth_loop_pointer(fn, k), i, dtype), dtype, 16, mask);
	lth_lv value = lth_loop_op2(fn, op, x[0], lth_scalar_arity(op) == 2 ? x[1] : LTH_LV_NONE);
	lth_loop_store(fn, lth_loop_offset(fn, lth_loop_pointer(fn, 2), i, dtype), value, dtype, mask);
	lth_loop_end_for(fn, NULL, 0, NULL);
	return fn;
}

static long double reference(enum lth_scalar_op op, long double x, long double y)
{
	int sign;
	switch (op) {
	case LTH_SCALAR_EXP: return expl(x);
	case LTH_SCALAR_LOG: return logl(x);
	case LTH_SCALAR_SIN: return sinl(x);
	case LTH_SCALAR_COS: return cosl(x);
	case LTH_SCALAR_TAN: return tanl(x);
	case LTH_SCALAR_ASIN: return asinl(x);
	case LTH_SCALAR_ACOS: return acosl(x);
	case LTH_SCALAR_ATAN: return atanl(x);
	case LTH_SCALAR_SINH: return sinhl(x);
	case LTH_SCALAR_COSH: return coshl(x);
	case LTH_SCALAR_TANH: return tanhl(x);
	case LTH_SCALAR_ASINH: return asinhl(x);
	case LTH_SCALAR_ACOSH: return acoshl(x);
	case LTH_SCALAR_ATANH: return atanhl(x);
	case LTH_SCALAR_ERF: return erfl(x);
	case LTH_SCALAR_LOG1P: return log1pl(x);
	case LTH_SCALAR_EXPM1: return expm1l(x);
	case LTH_SCALAR_POW: return powl(x, y);
	case LTH_SCALAR_SIGMOID: return 1 / (1 + expl(-x));
	default: return lgammal_r(x, &sign);
	}
}

static uint32_t point_bits(uint32_t i, uint32_t which)
{
	return (uint32_t)lth_hash_u64(i, which);
}

/* All exponents, then numbers of everyday size, then special ones. */
static void fill(void)
{
	static const float special[] = {0.0f, -0.0f, 1, -1, INFINITY, -INFINITY, NAN, 0.5f, -0.5f, 2, -2, 3, -3, 0x1p-149f,
					-0x1p-149f, 0x1p-126f, 0x1.fffffep127f, -0x1.fffffep127f, 0x1p23f, 0x1p24f, 1e22f,
					88.72284f, -103.97f, 0.55f, 0.9277f, 4, 0x1.921fb6p0f, 0x1.921fb6p1f};
	const uint32_t num_special = sizeof(special) / sizeof(special[0]);
	for (uint32_t i = 0; i < POINTS; i++) {
		uint32_t a = point_bits(i, 1), b = point_bits(i, 2);
		if (i < num_special * num_special) {
			x32[i] = special[i / num_special];
			y32[i] = special[i % num_special];
		} else if (i % 2) {
			memcpy(&x32[i], &a, sizeof(a));
			memcpy(&y32[i], &b, sizeof(b));
			if (i % 4 == 1)
				y32[i] = (float)((int)(b >> 24) - 128) / 4;
		} else {
			x32[i] = (float)(int32_t)a * (i % 4 ? 0x1p-31f : 0x1p-27f);
			y32[i] = (float)(int32_t)b * 0x1p-28f;
		}
		x64[i] = (double)x32[i] + (isfinite(x32[i]) ? (double)x32[i] * 0x1p-30 : 0);
		y64[i] = (double)y32[i];
	}
}

/* Distance in units of the last place of the format with `digits` of significand and the smallest exponent. */
static double ulps(long double want, long double got, int digits, int lowest, long double largest)
{
	if (isnan(want) || isnan(got))
		return isnan(want) && isnan(got) ? 0 : HUGE_VAL;
	if (want == 0 && got == 0)
		return signbit(want) == signbit(got) ? 0 : HUGE_VAL;
	int exponent;
	frexpl(want, &exponent);
	int place = exponent - digits < lowest ? lowest : exponent - digits;
	if (isinf(got) || isinf(want)) { /* overflow begins half a place above the largest number */
		bool both_large = fabsl(want) >= largest * (1 - 0x1p-20L) && fabsl(got) >= largest * (1 - 0x1p-20L);
		return want == got || (both_large && signbit(want) == signbit(got)) ? 0 : HUGE_VAL;
	}
	return (double)(fabsl(want - got) / ldexpl(1, place));
}

static void check_op(enum lth_scalar_op op, const char *cpu)
{
	double worst32 = 0, worst64 = 0;
	for (uint32_t i = 0; i < POINTS - 3; i++) {
		double u32 = ulps(reference(op, (long double)x32[i], (long double)y32[i]), (long double)out32[i], 24, -149,
				  0x1.fffffep127L);
		double u64 = ulps(reference(op, (long double)x64[i], (long double)y64[i]), (long double)out64[i], 53, -1074,
				  0x1.fffffffffffffp1023L);
		worst32 = u32 > worst32 ? u32 : worst32;
		worst64 = u64 > worst64 ? u64 : worst64;
		ck_assert_msg(u32 <= 4, "%s: %s(%a, %a) in f32 is %a, %g ulp off", cpu, lth_scalar_text(op), (double)x32[i],
			      (double)y32[i], (double)out32[i], u32);
		ck_assert_msg(u64 <= 4, "%s: %s(%a, %a) in f64 is %a, %g ulp off", cpu, lth_scalar_text(op), x64[i], y64[i],
			      out64[i], u64);
	}
	printf("%s %s: f32 %.2f ulp, f64 %.2f ulp\n", cpu, lth_scalar_text(op), worst32, worst64);
}

static void check_target(const char *cpu)
{
	if (!test_can_run(cpu)) {
		printf("SKIP %s: this processor cannot run it\n", cpu);
		return;
	}
	struct lth_arena *arena = lth_arena_create(0);
	const struct lth_loop_fn *functions[2 * COUNT];
	void *pointers32[3] = {x32, y32, out32}, *pointers64[3] = {x64, y64, out64};
	struct lathe_kernel_call call32 = {.pointers = pointers32}, call64 = {.pointers = pointers64};
	for (int k = 0; k < COUNT; k++) {
		functions[2 * k] = map_of(arena, (enum lth_scalar_op)(FIRST + k), LTH_DTYPE_F32);
		functions[2 * k + 1] = map_of(arena, (enum lth_scalar_op)(FIRST + k), LTH_DTYPE_F64);
	}
	fill();
	struct test_kernels kernels = test_kernels_load(functions, 2 * COUNT, cpu);
	for (int k = 0; k < COUNT; k++) {
		kernels.functions[2 * k](&call32, 0, POINTS - 3);
		kernels.functions[2 * k + 1](&call64, 0, POINTS - 3);
		check_op((enum lth_scalar_op)(FIRST + k), cpu);
	}
	test_kernels_close(&kernels);
	lth_arena_destroy(&arena);
}

START_TEST(within_4_ulp_on_host)
{
	check_target("host");
}
END_TEST

START_TEST(within_4_ulp_without_fma)
{
	check_target("x86-64-v2");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("vmath");
	TCase *tests = tcase_create("vmath");
	suite_add_tcase(suite, tests);
	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, within_4_ulp_on_host);
	tcase_add_test(tests, within_4_ulp_without_fma);
	return run_suite(suite);
}
