/* Unit tests of executables as wholes: memory, arguments, threads, profiles, damage. */
#include "exec_fixture.h"
#include "runtime/threadpool.h"
#include "tests/unit/run_suite.h"

#include <string.h>

START_TEST(planned_runs_allocate_nothing_after_the_first)
{
	struct lathe_executable *executable = exec_open_text(EXEC_HEAD EXEC_CHAIN EXEC_PLAN "}");
	struct lathe_context *context = exec_make_context(executable, NULL);
	struct lathe_counters counters;
	exec_check_chain(context, 8, 4);
	lth_context_counters(context, &counters);
	ck_assert_uint_eq(counters.arena_bytes, 128);
	ck_assert_uint_eq(counters.last_run_allocations, 1); /* the arena */
	for (int i = 0; i < 5; i++)
		exec_check_chain(context, 8, 4);
	lth_context_counters(context, &counters);
	ck_assert_uint_eq(counters.runs, 6);
	ck_assert_uint_eq(counters.signature_misses, 1);
	ck_assert_uint_eq(counters.signature_hits, 5);
	ck_assert_uint_eq(counters.last_run_allocations, 0);
	ck_assert_uint_eq(counters.pool_takes, 0);
	ck_assert_uint_eq(counters.peak_bytes, 128);
	exec_check_chain(context, 2, 1); /* smaller: the arena stays */
	lth_context_counters(context, &counters);
	ck_assert_uint_eq(counters.last_run_allocations, 0);
	ck_assert_uint_eq(counters.arena_used_bytes, 64);
	exec_check_chain(context, 64, 8);
	lth_context_counters(context, &counters);
	ck_assert_uint_eq(counters.arena_bytes, 64 * 8 * 4);
	exec_close_all(&context, &executable);
}
END_TEST

START_TEST(without_a_plan_the_pool_serves_and_counts)
{
	struct lathe_executable *executable = exec_open_text(EXEC_HEAD EXEC_CHAIN "}");
	struct lathe_context *context = exec_make_context(executable, NULL);
	struct lathe_counters counters;
	for (int i = 0; i < 3; i++)
		exec_check_chain(context, 8, 4);
	lth_context_counters(context, &counters);
	ck_assert_uint_eq(counters.arena_bytes, 0);
	ck_assert_uint_eq(counters.pool_takes, 3);
	ck_assert_uint_eq(counters.pool_gives, 3);
	ck_assert_uint_eq(counters.pool_used_bytes, 0);
	ck_assert_uint_eq(counters.peak_bytes, 128);
	ck_assert_uint_eq(counters.last_run_allocations, 1);
	ck_assert_uint_eq(counters.system_allocations, 1);
	exec_close_all(&context, &executable);
}
END_TEST

START_TEST(storages_without_kill_live_to_the_end)
{
	struct lathe_executable *executable =
		exec_open_text(EXEC_HEAD " fused_sizes false\n alloc s1\n call k0 writes (t1) reads (t0) range e0 grain 8\n"
			       " call k1 writes (t2) reads (t1) range e0 grain 8\n return\n}");
	struct lathe_context *context = exec_make_context(executable, NULL);
	struct lathe_counters counters;
	exec_check_chain(context, 8, 4);
	lth_context_counters(context, &counters);
	ck_assert_uint_eq(counters.pool_used_bytes, 0);
	ck_assert_uint_eq(counters.pool_gives, 1);
	exec_close_all(&context, &executable);
}
END_TEST

START_TEST(outputs_without_a_buffer_are_handed_over)
{
	struct lathe_executable *executable = exec_open_text(EXEC_HEAD EXEC_CHAIN EXEC_PLAN "}");
	struct lathe_context *context = exec_make_context(executable, NULL);
	struct lathe_counters counters;
	float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	for (int i = 0; i < 3; i++) {
		struct lathe_tensor in = exec_floats(x, 2, 4, 2), out = {0};
		exec_run_ok(context, &in, 1, &out, 1);
		ck_assert_int_eq(out.dtype, LATHE_F32);
		ck_assert_uint_eq(out.rank, 2);
		ck_assert(((float *)out.data)[7] == 18);
		lth_context_release(context, &out);
		ck_assert_ptr_null(out.data);
	}
	lth_context_counters(context, &counters);
	ck_assert_uint_eq(counters.last_run_allocations, 0);
	ck_assert_uint_eq(counters.pool_used_bytes, 0);
	ck_assert_uint_eq(counters.output_bytes, 0);
	ck_assert_uint_eq(counters.peak_bytes, 64);
	exec_close_all(&context, &executable);
}
END_TEST

START_TEST(wrong_inputs_are_refused_before_anything_is_written)
{
	struct lathe_executable *executable = exec_open_text(EXEC_HEAD EXEC_CHAIN EXEC_PLAN "}");
	struct lathe_context *context = exec_make_context(executable, NULL);
	float x[64] = {0}, y[64];
	struct lathe_tensor good = exec_floats(x, 2, 4, 2), out = exec_floats(y, 2, 4, 2), bad;
	memset(y, 0x5a, sizeof(y));
	bad = good, bad.dtype = LATHE_F64;
	exec_run_fails(context, &bad, 1, &out, 1, LATHE_ERROR_INPUT, "input 0 'x': found f64, expected f32");
	bad = good, bad.rank = 1;
	exec_run_fails(context, &bad, 1, &out, 1, LATHE_ERROR_INPUT, "found rank 1, expected rank 2");
	bad = good, bad.dims[0] = 66;
	exec_run_fails(context, &bad, 1, &out, 1, LATHE_ERROR_INPUT, "bytes");
	bad.bytes = 4096;
	exec_run_fails(context, &bad, 1, &out, 1, LATHE_ERROR_INPUT,
		  "axis 0: found 66, expected n in [1, 64], a multiple of 2");
	bad = good, bad.dims[0] = 3;
	exec_run_fails(context, &bad, 1, &out, 1, LATHE_ERROR_INPUT, "axis 0: found 3");
	bad = good, bad.dims[1] = 0;
	exec_run_fails(context, &bad, 1, &out, 1, LATHE_ERROR_INPUT, "axis 1: found 0, expected m in [1, inf]");
	bad = good, bad.dims[1] = -1;
	exec_run_fails(context, &bad, 1, &out, 1, LATHE_ERROR_INPUT, "-1 at axis 1");
	bad = good, bad.data = NULL;
	exec_run_fails(context, &bad, 1, &out, 1, LATHE_ERROR_INPUT, "no data");
	bad = good, bad.dims[1] = INT64_MAX / 2, bad.bytes = UINT64_MAX;
	exec_run_fails(context, &bad, 1, &out, 1, LATHE_ERROR_INPUT, "product");
	exec_run_fails(context, &good, 0, &out, 1, LATHE_ERROR_INPUT, "number of inputs: found 0, expected 1");
	exec_run_fails(context, NULL, 1, &out, 1, LATHE_ERROR_INPUT, "inputs: found NULL");
	context->running = true; /* as another thread's run would have it */
	exec_run_fails(context, &good, 1, &out, 1, LATHE_ERROR_OPTION, "make a context for each thread");
	context->running = false;
	exec_run_fails(context, &good, 1, &out, 0, LATHE_ERROR_INPUT, "number of outputs");
	out.bytes = 31;
	exec_run_fails(context, &good, 1, &out, 1, LATHE_ERROR_INPUT, "found 31 bytes, expected a buffer of 32 bytes");
	for (size_t i = 0; i < sizeof(y); i++)
		ck_assert_int_eq(((unsigned char *)y)[i], 0x5a);
	exec_check_chain(context, 4, 2); /* and the context goes on */
	exec_close_all(&context, &executable);
}
END_TEST

START_TEST(callers_arena)
{
	struct lathe_executable *executable = exec_open_text(EXEC_HEAD EXEC_CHAIN EXEC_PLAN "}");
	_Alignas(64) static char memory[256];
	struct lathe_options options = {.bytes = sizeof(options), .arena = memory, .arena_bytes = sizeof(memory)};
	struct lathe_context *context = exec_make_context(executable, &options);
	struct lathe_counters counters;
	exec_check_chain(context, 8, 8);
	float x[64 * 8] = {0}, y[64 * 8] = {0};
	struct lathe_tensor in = exec_floats(x, 2, 16, 8), out = exec_floats(y, 2, 64, 8);
	exec_run_fails(context, &in, 1, &out, 1, LATHE_ERROR_ARENA_TOO_SMALL, "found 256 bytes, expected 512 bytes");
	exec_check_chain(context, 8, 8);
	lth_context_counters(context, &counters);
	ck_assert_uint_eq(counters.system_allocations, 0);
	lth_context_destroy(&context);
	struct lathe_error error;
	options.arena = memory + 1;
	ck_assert_int_eq(lth_query_context_create(executable, &options, &context, &error), LATHE_ERROR_OPTION);
	exec_close_all(&context, &executable);
}
END_TEST

START_TEST(signature_cache_is_bounded)
{
	struct lathe_executable *executable = exec_open_text(EXEC_HEAD EXEC_CHAIN EXEC_PLAN "}");
	struct lathe_options options = {.bytes = sizeof(options), .signatures = 3};
	struct lathe_context *context = exec_make_context(executable, &options);
	struct lathe_counters counters;
	for (int round = 0; round < 2; round++)
		for (int64_t n = 2; n <= 6; n += 2)
			exec_check_chain(context, n, 3);
	lth_context_counters(context, &counters);
	ck_assert_uint_eq(counters.signature_misses, 3);
	exec_check_chain(context, 8, 3); /* takes the place of 2, the oldest */
	exec_check_chain(context, 4, 3);
	lth_context_counters(context, &counters);
	ck_assert_uint_eq(counters.signature_misses, 4);
	exec_check_chain(context, 2, 3);
	lth_context_counters(context, &counters);
	ck_assert_uint_eq(counters.signature_misses, 5);
	exec_close_all(&context, &executable);
}
END_TEST

START_TEST(least_orientation_is_taken)
{
	/* t lies below u in one, side by side from a base in the other. */
	struct lathe_executable *executable = exec_open_text(
		"program \"o\" {\n symbol $n in [1, 1000] hint 8 input 0 axis 0\n e0 = $n * 4\n"
		" storage s0 input 0 bytes e0\n storage s1 arena bytes e0\n storage s2 arena bytes 64\n"
		" storage s3 \"left behind\" arena bytes 4096\n"
		" tensor t0 f32[$n] in s0\n tensor t1 f32[$n] in s1\n input \"x\" t0\n output \"y\" t1\n"
		" alloc s1\n alloc s2\n copy t1 from t0\n return\n"
		" orientation {\n s1 base 0\n s2 base 0 over (s1)\n }\n"
		" orientation {\n s1 base 0\n s2 base 1024\n }\n}");
	struct lathe_memory memory;
	struct lathe_error error;
	int64_t n = 4, most;
	ck_assert_int_eq(lth_query_memory(executable, &n, &memory, &error), 0);
	ck_assert_uint_eq(memory.arena_bytes, 128);
	ck_assert_uint_eq(memory.naive_bytes, 128);
	ck_assert_uint_eq(memory.live_bound_bytes, 128);
	ck_assert_uint_eq(memory.io_bytes, 32);
	n = 1000;
	ck_assert_int_eq(lth_query_memory(executable, &n, &memory, &error), 0);
	ck_assert_uint_eq(memory.arena_bytes, 4032); /* the second, whose storages overlap: not checked here */
	n = 1001;
	ck_assert_int_eq(lth_query_memory(executable, &n, &memory, &error), LATHE_ERROR_OPTION);
	n = 1;
	ck_assert_int_eq(lth_query_fit(executable, &n, 0, 1024, &most, &error), 0);
	ck_assert_int_eq(most, 240);
	ck_assert_int_eq(lth_query_fit(executable, &n, 0, 1 << 20, &most, &error), 0);
	ck_assert_int_eq(most, 1000);
	ck_assert_int_eq(lth_query_fit(executable, &n, 0, 127, &most, &error), LATHE_ERROR_BUDGET);
	lth_executable_unload(&executable);
}
END_TEST

START_TEST(fit_without_an_upper_bound_and_where_memory_may_shrink)
{
	struct lathe_executable *grows = exec_open_text(
		"program \"o\" {\n symbol $n in [3, inf] multiple 3 hint 3 input 0 axis 0\n"
		" e0 = $n + -1\n e1 = e0 floordiv 2\n e2 = e1 + 1\n e3 = e2 * 64\n e4 = $n * 4\n"
		" storage s0 input 0 bytes e4\n storage s1 arena bytes e3\n tensor t0 f32[$n] in s0\n"
		" tensor t1 f32[1] in s1\n input \"x\" t0\n output \"y\" t1\n alloc s1\n return\n"
		" orientation {\n s1 base 0\n }\n}");
	struct lathe_executable *shrinks = exec_open_text(
		"program \"o\" {\n symbol $n in [1, 100] hint 3 input 0 axis 0\n"
		" e0 = $n mod 10\n e1 = e0 * 64\n e2 = $n * 4\n"
		" storage s0 input 0 bytes e2\n storage s1 arena bytes e1\n tensor t0 f32[$n] in s0\n"
		" input \"x\" t0\n alloc s1\n return\n orientation {\n s1 base 0\n }\n}");
	struct lathe_error error;
	int64_t n = 3, most;
	ck_assert_int_eq(lth_query_fit(grows, &n, 0, 64 * 100, &most, &error), 0);
	ck_assert_int_eq(most, 198); /* (198 - 1) / 2 + 1 = 99; 201 would be 101 */
	ck_assert_int_eq(lth_query_fit(shrinks, &n, 0, 64 * 5, &most, &error), 0);
	ck_assert_int_eq(most, 100);
	lth_executable_unload(&grows);
	lth_executable_unload(&shrinks);
}
END_TEST

START_TEST(threads_scratch_and_constants)
{
	const char *text =
		"program \"s\" {\n constants 64\n symbol $n in [1, inf] hint 8 input 0 axis 0\n e0 = $n * 4\n"
		" storage s0 input 0 bytes e0\n storage s1 arena bytes 256\n storage s2 output 0 bytes e0\n"
		" storage s3 constant 0 bytes 16\n kernel k0 \"add_constant\" pointers 3 ints 1\n"
		" tensor t0 f32[$n] in s0\n tensor t1 f32[$n] in s2\n tensor t2 f32[4] in s3\n"
		" input \"x\" t0\n output \"y\" t1\n alloc s1\n"
		" call k0 writes (t1) reads (t0, t2) ints (4) range $n grain 10 scratch s1 bytes 64\n kill s1\n"
		" return\n orientation {\n s1 base 0\n }\n}";
	struct lathe_executable *executable = exec_open_text(text);
	enum { N = 10007 };
	static float x[N], y[N];
	for (uint32_t threads = 1; threads <= 8; threads *= 2) {
		struct lathe_options options = {.bytes = sizeof(options), .threads = threads};
		struct lathe_context *context = exec_make_context(executable, &options);
		for (int round = 0; round < 20; round++) {
			memset(y, 0, sizeof(y));
			struct lathe_tensor in = exec_floats(x, 1, N, 0), out = exec_floats(y, 1, N, 0);
			exec_run_ok(context, &in, 1, &out, 1);
			for (int i = 0; i < N; i++)
				ck_assert(y[i] == exec_constants[i % 4]);
		}
		lth_context_destroy(&context);
	}
	lth_executable_unload(&executable);
}
END_TEST

START_TEST(profile_and_description)
{
	struct lathe_executable *executable = exec_open_text(EXEC_HEAD EXEC_CHAIN EXEC_PLAN "}");
	struct lathe_options options = {.bytes = sizeof(options), .profile = 1};
	struct lathe_context *context = exec_make_context(executable, &options);
	struct lathe_profile_entry entries[4];
	exec_check_chain(context, 4, 2);
	exec_check_chain(context, 4, 2);
	ck_assert_uint_eq(lth_query_profile(context, entries, 4), 2);
	ck_assert_str_eq(entries[0].kernel, "plus one");
	ck_assert_str_eq(entries[0].node, "a");
	ck_assert_uint_eq(entries[0].calls, 2);
	ck_assert_uint_eq(entries[0].bytes, 64);
	const struct lathe_description *d = lth_query_describe(executable);
	ck_assert_str_eq(d->name, "chain");
	ck_assert_uint_eq(d->num_inputs, 1);
	ck_assert_str_eq(d->inputs[0].name, "x");
	ck_assert_str_eq(d->inputs[0].dims[1], "m");
	ck_assert_int_eq(d->inputs[0].static_dims[1], -1);
	ck_assert_int_eq(d->inputs[0].dim_symbols[1], 1);
	ck_assert_int_eq(d->symbols[0].multiple, 2);
	ck_assert_str_eq(d->certificate, "");
	exec_close_all(&context, &executable);
}
END_TEST

START_TEST(damaged_images_are_refused)
{
	struct lathe_executable *executable = exec_open_text(EXEC_HEAD EXEC_CHAIN "}");
	struct lth_image image = executable->image;
	struct lathe_executable *second;
	struct lathe_error error;
	image.num_kernels--;
	ck_assert_int_eq(lth_query_open(&image, &exec_api, &second, &error), LATHE_ERROR_EXECUTABLE);
	image = executable->image;
	image.constants_bytes = 63;
	ck_assert_int_eq(lth_query_open(&image, &exec_api, &second, &error), LATHE_ERROR_EXECUTABLE);
	image = executable->image;
	image.program_bytes--;
	ck_assert_int_eq(lth_query_open(&image, &exec_api, &second, &error), LATHE_ERROR_EXECUTABLE);
	lth_executable_unload(&executable);
}
END_TEST

/* The thread pool by itself: every unit once, errors of the lowest chunk. */
static int count_units(void *context, int64_t begin, int64_t end, int64_t thread)
{
	unsigned char *units = context;
	(void)thread;
	for (int64_t i = begin; i < end; i++)
		units[i]++;
	return 0;
}

static int fail_late(void *context, int64_t begin, int64_t end, int64_t thread)
{
	(void)context, (void)thread;
	return end > 500 ? (int)(begin / 100) + 1 : 0;
}

START_TEST(threadpool_does_every_unit_once)
{
	static unsigned char units[5000];
	for (unsigned threads = 1; threads <= 6; threads++) {
		struct lth_threadpool *pool = lth_threadpool_create(threads);
		ck_assert_uint_eq(lth_threadpool_threads(pool), threads);
		for (int64_t range = 0; range < 5000; range = range * 2 + 1) {
			memset(units, 0, sizeof(units));
			ck_assert_int_eq(lth_threadpool_run(pool, count_units, units, range, 7, 1 + threads / 2), 0);
			for (int64_t i = 0; i < 5000; i++)
				ck_assert_int_eq(units[i], i < range);
		}
		for (int i = 0; i < 2000; i++)
			ck_assert_int_eq(lth_threadpool_run(pool, count_units, units, 16, 1, LTH_MAX_THREADS), 0);
		ck_assert_int_ne(lth_threadpool_run(pool, fail_late, NULL, 1000, 100, LTH_MAX_THREADS), 0);
		lth_threadpool_destroy(&pool);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("exec");
	TCase *tests = tcase_create("exec");
	tcase_add_checked_fixture(tests, exec_setup, exec_teardown);
	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, planned_runs_allocate_nothing_after_the_first);
	tcase_add_test(tests, without_a_plan_the_pool_serves_and_counts);
	tcase_add_test(tests, storages_without_kill_live_to_the_end);
	tcase_add_test(tests, outputs_without_a_buffer_are_handed_over);
	tcase_add_test(tests, wrong_inputs_are_refused_before_anything_is_written);
	tcase_add_test(tests, callers_arena);
	tcase_add_test(tests, signature_cache_is_bounded);
	tcase_add_test(tests, least_orientation_is_taken);
	tcase_add_test(tests, fit_without_an_upper_bound_and_where_memory_may_shrink);
	tcase_add_test(tests, threads_scratch_and_constants);
	tcase_add_test(tests, profile_and_description);
	tcase_add_test(tests, damaged_images_are_refused);
	tcase_add_test(tests, threadpool_does_every_unit_once);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
