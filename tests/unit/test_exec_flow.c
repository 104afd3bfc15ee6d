/* Unit tests of the interpreter: branches, loops, guards, extents that the data decides, swaps, views. */
#include "exec_fixture.h"
#include "tests/unit/run_suite.h"

#include <string.h>

#define FLOW_HEAD                                                                                                      \
	"program \"flow\" {\n constants 64\n symbol $i in [0, 100] data\n"                                             \
	" storage s0 input 0 bytes 16\n storage s1 arena bytes 16\n storage s2 arena bytes 1\n"                        \
	" storage s3 output 0 bytes 16\n"                                                                              \
	" kernel k0 \"add_one\" pointers 2 ints 0\n kernel k1 \"double_it\" pointers 2 ints 0\n"                       \
	" kernel k2 \"is_less\" pointers 2 ints 1\n"                                                                   \
	" tensor t0 f32[4] in s0\n tensor t1 f32[4] in s1\n tensor t2 bool[] in s2\n tensor t3 f32[4] in s3\n"         \
	" input \"x\" t0\n output \"y\" t3\n alloc s1\n alloc s2\n"                                                    \
	" call k2 writes (t2) reads (t0) ints (10) range 1 grain 1\n copy t1 from t0\n"

static float run_flow(const char *body, float first)
{
	struct lathe_executable *executable = exec_open_text(lth_arena_printf(exec_arena, "%s%s}", FLOW_HEAD, body));
	struct lathe_context *context = exec_make_context(executable, NULL);
	float x[4] = {first, 0, 0, 0}, y[4];
	struct lathe_tensor in = exec_floats(x, 1, 4, 0), out = exec_floats(y, 1, 4, 0);
	exec_run_ok(context, &in, 1, &out, 1);
	exec_run_ok(context, &in, 1, &out, 1);
	exec_close_all(&context, &executable);
	return y[0];
}

START_TEST(if_takes_one_arm)
{
	const char *body = " if t2\n call k0 writes (t3) reads (t1) range 4 grain 4\n else\n"
			   " call k1 writes (t3) reads (t1) range 4 grain 4\n endif\n kill s1\n kill s2\n return\n";
	ck_assert(run_flow(body, 3) == 4);
	ck_assert(run_flow(body, 30) == 60);
	body = " copy t3 from t1\n if t2\n call k0 writes (t3) reads (t1) range 4 grain 4\n endif\n return\n";
	ck_assert(run_flow(body, 3) == 4);
	ck_assert(run_flow(body, 30) == 30);
}
END_TEST

START_TEST(loops_end_by_condition_or_count)
{
	const char *body = " loop while t2 trips 100\n call k1 writes (t1) reads (t1) range 4 grain 4\n"
			   " call k2 writes (t2) reads (t1) ints (10) range 1 grain 1\n endloop\n"
			   " copy t3 from t1\n return\n";
	ck_assert(run_flow(body, 1) == 16);
	ck_assert(run_flow(body, 50) == 50); /* no turn */
	body = " loop while _ trips 3\n call k0 writes (t1) reads (t1) range 4 grain 4\n"
	       " loop while _ trips 2\n call k0 writes (t1) reads (t1) range 4 grain 4\n endloop\n"
	       " endloop\n copy t3 from t1\n return\n";
	ck_assert(run_flow(body, 0) == 9);
	body = " loop while _ trips 0\n call k0 writes (t1) reads (t1) range 4 grain 4\n endloop\n"
	       " copy t3 from t1\n return\n";
	ck_assert(run_flow(body, 5) == 5);
	/* The turn's number as the range: 0 + 1 + 2 + 3 elements are raised, the first in turns 1 to 3. */
	body = " loop while _ trips 4 turn $i\n call k0 writes (t1) reads (t1) range $i grain 4\n endloop\n"
	       " copy t3 from t1\n return\n";
	ck_assert(run_flow(body, 0) == 3);
}
END_TEST

START_TEST(guards_stop_a_run)
{
	struct lathe_executable *executable =
		exec_open_text(EXEC_HEAD " guard $m == 2 \"the second dimension\" node \"reshape\"\n" EXEC_CHAIN EXEC_PLAN "}");
	struct lathe_context *context = exec_make_context(executable, NULL);
	float x[64] = {0}, y[64];
	struct lathe_tensor in = exec_floats(x, 2, 4, 4), out = exec_floats(y, 2, 8, 8);
	exec_run_fails(context, &in, 1, &out, 1, LATHE_ERROR_RUNTIME,
		  "node 'reshape': found the second dimension: 4, expected equal to 2");
	exec_check_chain(context, 4, 2);
	exec_close_all(&context, &executable);
}
END_TEST

START_TEST(kernel_errors_have_their_node)
{
	struct lathe_executable *executable = exec_open_text(
		EXEC_HEAD " kernel k2 \"fails_with_index\" pointers 1 ints 0\n"
		     " call k2 writes (t2) reads () range e0 grain 1 node \"gather\"\n" EXEC_CHAIN EXEC_PLAN "}");
	struct lathe_context *context = exec_make_context(executable, NULL);
	float x[64] = {0};
	struct lathe_tensor in = exec_floats(x, 2, 4, 4), out = {0};
	exec_run_fails(context, &in, 1, &out, 1, LATHE_ERROR_RUNTIME, "node 'gather': found an index outside its tensor");
	ck_assert_ptr_null(out.data);
	struct lathe_counters counters;
	lth_context_counters(context, &counters);
	ck_assert_uint_eq(counters.pool_used_bytes, 0);
	exec_close_all(&context, &executable);
}
END_TEST

/* NonZero of x, then a copy of the indices at their true extent into a POOL output. */
static const char data_symbols[] =
	"program \"nonzero\" {\n symbol $n in [1, 64] hint 8 input 0 axis 0\n symbol $k in [0, inf] data\n"
	" e0 = $n * 4\n e1 = $n * 8\n e2 = $k * 8\n bound $k $n\n"
	" storage s0 input 0 bytes e0\n storage s1 arena bytes e1\n storage s2 arena bytes 8\n"
	" storage s3 pool bytes e2\n"
	" tensor t0 f32[$n] in s0\n tensor t1 i64[1, $n] in s1\n tensor t2 i64[] in s2\n"
	" tensor t3 i64[1, $k] in s1\n tensor t4 i64[1, $k] in s3\n"
	" input \"x\" t0\n output \"indices\" t4\n output \"planned\" t3\n output \"count\" t2\n"
	" alloc s1\n alloc s2\n builtin \"non_zero\" writes (t1, t2) reads (t0)\n bind $k from t2 at 0\n"
	" alloc s3\n copy t4 from t3\n return\n"
	" orientation {\n s1 base 0\n s2 base 0 over (s1)\n }\n}";

START_TEST(data_symbols_carry_true_extents)
{
	struct lathe_executable *executable = exec_open_text(data_symbols);
	struct lathe_context *context = exec_make_context(executable, NULL);
	float x[8] = {0, 1, 0, 2, 0, NAN, -0.0f, 3};
	int64_t buffer[8];
	for (int round = 0; round < 3; round++) {
		struct lathe_tensor in = exec_floats(x, 1, 8, 0), out[3] = {{0}, {0}, {0}};
		out[1].data = buffer;
		out[1].bytes = round == 2 ? 24 : sizeof(buffer);
		x[0] = (float)round;
		if (round == 2) { /* 5 indices do not fit 24 bytes; what was taken for others goes back */
			exec_run_fails(context, &in, 1, out, 3, LATHE_ERROR_INPUT, "expected a buffer of 40 bytes");
			ck_assert_ptr_null(out[0].data);
			break;
		}
		exec_run_ok(context, &in, 1, out, 3);
		const int64_t *indices = out[0].data;
		ck_assert_int_eq(out[0].dims[1], 4 + round);
		ck_assert_int_eq(indices[0], round ? 0 : 1);
		ck_assert_int_eq(indices[3 + round], 7);
		ck_assert_int_eq(buffer[3 + round], 7);
		ck_assert_int_eq(*(int64_t *)out[2].data, 4 + round);
		lth_context_release(context, &out[0]);
		lth_context_release(context, &out[2]);
	}
	struct lathe_counters counters;
	lth_context_counters(context, &counters);
	ck_assert_uint_eq(counters.pool_used_bytes, 0);
	ck_assert_uint_eq(counters.output_bytes, 0);
	exec_close_all(&context, &executable);
}
END_TEST

START_TEST(data_symbols_out_of_range_are_errors)
{
	const char *text = lth_arena_printf(exec_arena, "%s", data_symbols);
	char *at = strstr(text, "[0, inf]");
	memcpy(at, "[0,   3]", 8);
	struct lathe_executable *executable = exec_open_text(text);
	struct lathe_context *context = exec_make_context(executable, NULL);
	float x[4] = {1, 1, 1, 1};
	struct lathe_tensor in = exec_floats(x, 1, 4, 0), out[3] = {{0}, {0}, {0}};
	exec_run_fails(context, &in, 1, out, 3, LATHE_ERROR_RUNTIME, "found 4, expected k in [0, 3]");
	x[0] = 0;
	exec_run_ok(context, &in, 1, out, 3);
	for (int i = 0; i < 3; i++)
		lth_context_release(context, &out[i]);
	exec_close_all(&context, &executable);
}
END_TEST

/* Two outputs and a storage between them trade places in turn; the caller finds each output's bytes in its own buffer,
 * whether it brought one or not, with a plan and without. */
START_TEST(outputs_that_swap_come_home)
{
	static const char text[] =
		"program \"s\" {\n constants 64\n symbol $n in [0, 9] input 0 axis 0\n symbol $i in [0, 9] data\n e0 = $n * 4\n"
		" storage s0 input 0 bytes e0\n storage s1 output 0 bytes 8\n storage s2 output 1 bytes 8\n"
		" storage s3 arena bytes 8 live [0, 8)\n storage s4 constant 0 bytes 8\n storage s5 constant 8 bytes 8 align 8\n"
		" kernel k0 \"double_it\" pointers 2 ints 0\n"
		" tensor t0 f32[$n] in s0\n tensor t1 f32[2] in s1\n tensor t2 f32[2] in s2\n tensor t3 f32[2] in s3\n"
		" tensor t4 f32[2] in s4\n tensor t5 f32[2] in s5\n"
		" input \"x\" t0\n output \"y\" t1\n output \"z\" t2\n"
		" alloc s3\n copy t1 from t4\n copy t2 from t5\n loop while _ trips $n turn $i\n"
		"  call k0 writes (t3) reads (t1) range 2 grain 1\n  swap t1 with t3\n  swap t1 with t2\n endloop\n return\n";
	for (int planned = 0; planned < 2; planned++)
		for (int64_t turns = 0; turns < 7; turns++) {
			struct lathe_executable *executable = exec_open_text(
				lth_arena_printf(exec_arena, "%s%s}\n", text, planned ? " orientation { s3 base 0 }\n" : ""));
			struct lathe_context *context = exec_make_context(executable, NULL);
			float x[8] = {0}, y[2] = {10, 20}, z[2] = {30, 40}, buffer[2];
			for (int64_t i = 0; i < turns; i++)
				for (int k = 0; k < 2; k++) {
					float next = y[k] * 2;
					y[k] = z[k];
					z[k] = next;
				}
			for (int given = 0; given < 3; given++) {
				struct lathe_tensor in = exec_floats(x, 1, turns, 0), out[2] = {{0}, {0}};
				if (given)
					out[given - 1] = (struct lathe_tensor){.data = buffer, .bytes = sizeof(buffer)};
				exec_run_ok(context, &in, 1, out, 2);
				ck_assert(given == 0 || out[given - 1].data == buffer);
				ck_assert_mem_eq(out[0].data, y, sizeof(y));
				ck_assert_mem_eq(out[1].data, z, sizeof(z));
				for (int i = 0; i < 2; i++)
					if (given != i + 1)
						lth_context_release(context, &out[i]);
			}
			struct lathe_counters counters;
			lth_context_counters(context, &counters);
			ck_assert_uint_eq(counters.pool_used_bytes + counters.output_bytes, 0);
			exec_close_all(&context, &executable);
		}
}
END_TEST

/* A POOL storage that grows with the turn: each turn allocates it anew. */
START_TEST(pool_storages_in_loops)
{
	struct lathe_executable *executable = exec_open_text(
		"program \"p\" {\n symbol $i in [0, 9] data\n e0 = $i + 1\n e1 = e0 * 4\n"
		" storage s0 input 0 bytes 40\n storage s1 pool bytes e1\n storage s2 output 0 bytes 40\n"
		" tensor t0 f32[10] in s0\n tensor t1 f32[e0] in s1\n tensor t2 f32[e0] in s0\n"
		" tensor t3 f32[e0] in s2\n tensor t4 f32[10] in s2\n"
		" input \"x\" t0\n output \"y\" t4\n"
		" loop while _ trips 10 turn $i\n alloc s1\n copy t1 from t2\n copy t3 from t1\n endloop\n return\n}");
	struct lathe_context *context = exec_make_context(executable, NULL);
	float x[10], y[10];
	for (int i = 0; i < 10; i++)
		x[i] = (float)i;
	struct lathe_tensor in = exec_floats(x, 1, 10, 0), out = exec_floats(y, 1, 10, 0);
	exec_run_ok(context, &in, 1, &out, 1);
	ck_assert_int_eq(memcmp(x, y, sizeof(x)), 0);
	struct lathe_counters counters;
	lth_context_counters(context, &counters);
	ck_assert_uint_eq(counters.pool_takes, 10);
	ck_assert_uint_eq(counters.pool_used_bytes, 0);
	exec_close_all(&context, &executable);
}
END_TEST

START_TEST(views_and_outputs_on_other_storages)
{
	/* Output 0: a transposed view of the input; output 1: the input itself; output 2: a constant. */
	struct lathe_executable *executable = exec_open_text(
		"program \"v\" {\n constants 64\n symbol $n in [1, 8] hint 2 input 0 axis 0\n e0 = $n * 12\n"
		" storage s0 input 0 bytes e0\n storage s1 constant 0 bytes 16\n"
		" tensor t0 f32[$n, 3] in s0\n tensor t1 f32[3, $n] strides [1, 3] in s0\n tensor t2 f32[4] in s1\n"
		" tensor t3 f32[$n] strides [-3] at 24 in s0\n"
		" input \"x\" t0\n output \"t\" t1\n output \"x\" t0\n output \"c\" t2\n output \"r\" t3\n return\n}");
	struct lathe_context *context = exec_make_context(executable, NULL);
	float x[9] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
	struct lathe_tensor in = exec_floats(x, 2, 3, 3), out[4] = {{0}, {0}, {0}, {0}};
	exec_run_ok(context, &in, 1, out, 4);
	const float expected[9] = {0, 3, 6, 1, 4, 7, 2, 5, 8};
	ck_assert_int_eq(memcmp(out[0].data, expected, sizeof(expected)), 0);
	ck_assert_int_eq(memcmp(out[1].data, x, sizeof(x)), 0);
	ck_assert_int_eq(memcmp(out[2].data, exec_constants, 16), 0);
	ck_assert(((float *)out[3].data)[0] == 6 && ((float *)out[3].data)[2] == 0);
	for (int i = 0; i < 4; i++)
		lth_context_release(context, &out[i]);
	/* At n = 4 the view that runs backwards would begin before its storage: refused. */
	float longer[12] = {0};
	in = exec_floats(longer, 2, 4, 3);
	exec_run_fails(context, &in, 1, out, 4, LATHE_ERROR_RUNTIME, "outside its storage");
	exec_close_all(&context, &executable);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("exec flow");
	TCase *tests = tcase_create("exec flow");
	tcase_add_checked_fixture(tests, exec_setup, exec_teardown);
	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, if_takes_one_arm);
	tcase_add_test(tests, loops_end_by_condition_or_count);
	tcase_add_test(tests, guards_stop_a_run);
	tcase_add_test(tests, kernel_errors_have_their_node);
	tcase_add_test(tests, data_symbols_carry_true_extents);
	tcase_add_test(tests, data_symbols_out_of_range_are_errors);
	tcase_add_test(tests, outputs_that_swap_come_home);
	tcase_add_test(tests, pool_storages_in_loops);
	tcase_add_test(tests, views_and_outputs_on_other_storages);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
