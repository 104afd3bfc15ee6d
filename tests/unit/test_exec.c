/* Unit tests of the interpreter, on programs written by hand with kernels in C. */
#include "runtime/exec/context.h"
#include "runtime/exec/query.h"
#include "runtime/threadpool.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Kernels. Their operands are said in the programs. */

static int add_one(const struct lathe_kernel_call *call, int64_t begin, int64_t end)
{
	float *out = call->pointers[0];
	const float *in = call->pointers[1];
	for (int64_t i = begin; i < end; i++)
		out[i] = in[i] + 1;
	return 0;
}

static int double_it(const struct lathe_kernel_call *call, int64_t begin, int64_t end)
{
	float *out = call->pointers[0];
	const float *in = call->pointers[1];
	for (int64_t i = begin; i < end; i++)
		out[i] = in[i] * 2;
	return 0;
}

/* out[i] = in[i] + constant[i % ints[0]], through scratch. */
static int add_constant(const struct lathe_kernel_call *call, int64_t begin, int64_t end)
{
	float *out = call->pointers[0], *scratch = call->scratch;
	const float *in = call->pointers[1], *constant = call->pointers[2];
	for (int64_t i = begin; i < end; i++) {
		scratch[0] = constant[i % call->ints[0]];
		out[i] = in[i] + scratch[0];
	}
	return 0;
}

/* out[0] = in[0] < ints[0] */
static int is_less(const struct lathe_kernel_call *call, int64_t begin, int64_t end)
{
	(void)begin, (void)end;
	*(unsigned char *)call->pointers[0] = *(const float *)call->pointers[1] < (float)call->ints[0];
	return 0;
}

static int fails_with_index(const struct lathe_kernel_call *call, int64_t begin, int64_t end)
{
	(void)call, (void)begin, (void)end;
	return LTH_KERNEL_INDEX;
}

static const struct {
	const char *name;
	lathe_kernel_fn function;
} known_kernels[] = {
	{"add_one", add_one}, {"double_it", double_it},           {"add_constant", add_constant},
	{"is_less", is_less}, {"fails_with_index", fails_with_index},
};

static struct lth_arena *arena;
static const struct lathe_api api = {LTH_QUERY_FUNCTIONS};
static _Alignas(64) const float constants[16] = {10, 20, 30, 40};

static void setup(void)
{
	arena = lth_arena_create(0);
}

static void teardown(void)
{
	lth_arena_destroy(&arena);
}

static struct lathe_executable *open_text(const char *text)
{
	struct lth_program *program;
	struct lth_diag diag = {0};
	struct lth_buf bytes = {0};
	char line[4096];
	struct lathe_error error;
	struct lathe_executable *executable = NULL;
	enum lth_code code = lth_program_parse(text, strlen(text), arena, &program, &diag);
	ck_assert_msg(code == LTH_OK, "%s", lth_diag_line(&diag, line, sizeof(line)));
	lth_program_encode(program, &bytes);
	lathe_kernel_fn *kernels = lth_arena_array(arena, program->num_kernels, sizeof(*kernels));
	for (uint32_t i = 0; i < program->num_kernels; i++)
		for (size_t k = 0; k < sizeof(known_kernels) / sizeof(known_kernels[0]); k++)
			if (strcmp(known_kernels[k].name, program->kernels[i].name) == 0)
				kernels[i] = known_kernels[k].function;
	struct lth_image image = {
		.program = lth_arena_memdup(arena, bytes.data, bytes.size), .program_bytes = bytes.size,
		.constants = constants, .constants_bytes = sizeof(constants), .kernels = kernels,
		.num_kernels = program->num_kernels, .info = "{}", .info_bytes = 2,
	};
	lth_buf_free(&bytes);
	ck_assert_msg(lth_query_open(&image, &api, &executable, &error) == 0, "%s", error.text);
	return executable;
}

static struct lathe_context *make_context(const struct lathe_executable *executable,
					  const struct lathe_options *options)
{
	struct lathe_context *context = NULL;
	struct lathe_error error;
	ck_assert_msg(lth_query_context_create(executable, options, &context, &error) == 0, "%s", error.text);
	return context;
}

/* A tensor of floats. */
static struct lathe_tensor floats(float *data, uint32_t rank, int64_t d0, int64_t d1)
{
	struct lathe_tensor t = {.dtype = LATHE_F32, .rank = rank, .dims = {d0, d1}, .data = data};
	t.bytes = (uint64_t)(d0 * (rank > 1 ? d1 : 1)) * sizeof(float);
	return t;
}

static void run_ok(struct lathe_context *context, const struct lathe_tensor *inputs, size_t num_inputs,
		   struct lathe_tensor *outputs, size_t num_outputs)
{
	struct lathe_error error;
	int code = lth_query_run(context, inputs, num_inputs, outputs, num_outputs, &error);
	ck_assert_msg(code == 0, "%s", error.text);
}

static void run_fails(struct lathe_context *context, const struct lathe_tensor *inputs, size_t num_inputs,
		      struct lathe_tensor *outputs, size_t num_outputs, int code, const char *text)
{
	struct lathe_error error = {0};
	int got = lth_query_run(context, inputs, num_inputs, outputs, num_outputs, &error);
	ck_assert_msg(got == code && strstr(error.text, text), "%d: %s", got, error.text);
}

static void close_all(struct lathe_context **context, struct lathe_executable **executable)
{
	lth_context_destroy(context);
	lth_executable_unload(executable);
}

/* Two elementwise calls over a planned temporary; then the output. */
#define HEAD                                                                                                           \
	"program \"chain\" {\n constants 64\n"                                                                         \
	" symbol $n in [1, 64] multiple 2 hint 8 input 0 axis 0\n"                                                     \
	" symbol $m in [1, inf] hint 4 input 0 axis 1\n"                                                               \
	" e0 = $n * $m\n e1 = e0 * 4\n"                                                                                \
	" storage s0 \"x\" input 0 bytes e1\n storage s1 \"t\" arena bytes e1 live [0, 4)\n"                           \
	" storage s2 \"y\" output 0 bytes e1\n storage s3 constant 0 bytes 16\n"                                       \
	" kernel k0 \"add_one\" \"plus one\" pointers 2 ints 0\n kernel k1 \"double_it\" pointers 2 ints 0\n"          \
	" tensor t0 \"x\" f32[$n, $m] in s0\n tensor t1 f32[$n, $m] in s1\n tensor t2 \"y\" f32[$n, $m] in s2\n"       \
	" tensor t3 f32[4] in s3\n"                                                                                    \
	" input \"x\" t0\n output \"y\" t2\n"
#define CHAIN                                                                                                          \
	" alloc s1\n call k0 writes (t1) reads (t0) range e0 grain 8 node \"a\"\n"                                     \
	" call k1 writes (t2) reads (t1) range e0 grain 8 node \"b\"\n kill s1\n return\n"
#define PLAN " orientation {\n s1 base 0\n }\n"

static void check_chain(struct lathe_context *context, int64_t n, int64_t m)
{
	float x[64 * 8], y[64 * 8];
	for (int64_t i = 0; i < n * m; i++)
		x[i] = (float)i;
	struct lathe_tensor in = floats(x, 2, n, m), out = floats(y, 2, 64, 8);
	run_ok(context, &in, 1, &out, 1);
	ck_assert_int_eq(out.dims[0], n);
	ck_assert_int_eq(out.dims[1], m);
	ck_assert_ptr_eq(out.data, y);
	for (int64_t i = 0; i < n * m; i++)
		ck_assert(y[i] == (x[i] + 1) * 2);
}

START_TEST(planned_runs_allocate_nothing_after_the_first)
{
	struct lathe_executable *executable = open_text(HEAD CHAIN PLAN "}");
	struct lathe_context *context = make_context(executable, NULL);
	struct lathe_counters counters;
	check_chain(context, 8, 4);
	lth_context_counters(context, &counters);
	ck_assert_uint_eq(counters.arena_bytes, 128);
	ck_assert_uint_eq(counters.last_run_allocations, 1); /* the arena */
	for (int i = 0; i < 5; i++)
		check_chain(context, 8, 4);
	lth_context_counters(context, &counters);
	ck_assert_uint_eq(counters.runs, 6);
	ck_assert_uint_eq(counters.signature_misses, 1);
	ck_assert_uint_eq(counters.signature_hits, 5);
	ck_assert_uint_eq(counters.last_run_allocations, 0);
	ck_assert_uint_eq(counters.pool_takes, 0);
	ck_assert_uint_eq(counters.peak_bytes, 128);
	check_chain(context, 2, 1); /* smaller: the arena stays */
	lth_context_counters(context, &counters);
	ck_assert_uint_eq(counters.last_run_allocations, 0);
	ck_assert_uint_eq(counters.arena_used_bytes, 64);
	check_chain(context, 64, 8);
	lth_context_counters(context, &counters);
	ck_assert_uint_eq(counters.arena_bytes, 64 * 8 * 4);
	close_all(&context, &executable);
}
END_TEST

START_TEST(without_a_plan_the_pool_serves_and_counts)
{
	struct lathe_executable *executable = open_text(HEAD CHAIN "}");
	struct lathe_context *context = make_context(executable, NULL);
	struct lathe_counters counters;
	for (int i = 0; i < 3; i++)
		check_chain(context, 8, 4);
	lth_context_counters(context, &counters);
	ck_assert_uint_eq(counters.arena_bytes, 0);
	ck_assert_uint_eq(counters.pool_takes, 3);
	ck_assert_uint_eq(counters.pool_gives, 3);
	ck_assert_uint_eq(counters.pool_used_bytes, 0);
	ck_assert_uint_eq(counters.peak_bytes, 128);
	ck_assert_uint_eq(counters.last_run_allocations, 1);
	ck_assert_uint_eq(counters.system_allocations, 1);
	close_all(&context, &executable);
}
END_TEST

START_TEST(storages_without_kill_live_to_the_end)
{
	struct lathe_executable *executable =
		open_text(HEAD " fused_sizes false\n alloc s1\n call k0 writes (t1) reads (t0) range e0 grain 8\n"
			       " call k1 writes (t2) reads (t1) range e0 grain 8\n return\n}");
	struct lathe_context *context = make_context(executable, NULL);
	struct lathe_counters counters;
	check_chain(context, 8, 4);
	lth_context_counters(context, &counters);
	ck_assert_uint_eq(counters.pool_used_bytes, 0);
	ck_assert_uint_eq(counters.pool_gives, 1);
	close_all(&context, &executable);
}
END_TEST

START_TEST(outputs_without_a_buffer_are_handed_over)
{
	struct lathe_executable *executable = open_text(HEAD CHAIN PLAN "}");
	struct lathe_context *context = make_context(executable, NULL);
	struct lathe_counters counters;
	float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	for (int i = 0; i < 3; i++) {
		struct lathe_tensor in = floats(x, 2, 4, 2), out = {0};
		run_ok(context, &in, 1, &out, 1);
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
	close_all(&context, &executable);
}
END_TEST

START_TEST(wrong_inputs_are_refused_before_anything_is_written)
{
	struct lathe_executable *executable = open_text(HEAD CHAIN PLAN "}");
	struct lathe_context *context = make_context(executable, NULL);
	float x[64] = {0}, y[64];
	struct lathe_tensor good = floats(x, 2, 4, 2), out = floats(y, 2, 4, 2), bad;
	memset(y, 0x5a, sizeof(y));
	bad = good, bad.dtype = LATHE_F64;
	run_fails(context, &bad, 1, &out, 1, LATHE_ERROR_INPUT, "input 0 'x': found f64, expected f32");
	bad = good, bad.rank = 1;
	run_fails(context, &bad, 1, &out, 1, LATHE_ERROR_INPUT, "found rank 1, expected rank 2");
	bad = good, bad.dims[0] = 66;
	run_fails(context, &bad, 1, &out, 1, LATHE_ERROR_INPUT, "bytes");
	bad.bytes = 4096;
	run_fails(context, &bad, 1, &out, 1, LATHE_ERROR_INPUT,
		  "axis 0: found 66, expected n in [1, 64], a multiple of 2");
	bad = good, bad.dims[0] = 3;
	run_fails(context, &bad, 1, &out, 1, LATHE_ERROR_INPUT, "axis 0: found 3");
	bad = good, bad.dims[1] = 0;
	run_fails(context, &bad, 1, &out, 1, LATHE_ERROR_INPUT, "axis 1: found 0, expected m in [1, inf]");
	bad = good, bad.dims[1] = -1;
	run_fails(context, &bad, 1, &out, 1, LATHE_ERROR_INPUT, "-1 at axis 1");
	bad = good, bad.data = NULL;
	run_fails(context, &bad, 1, &out, 1, LATHE_ERROR_INPUT, "no data");
	bad = good, bad.dims[1] = INT64_MAX / 2, bad.bytes = UINT64_MAX;
	run_fails(context, &bad, 1, &out, 1, LATHE_ERROR_INPUT, "product");
	run_fails(context, &good, 0, &out, 1, LATHE_ERROR_INPUT, "number of inputs: found 0, expected 1");
	run_fails(context, NULL, 1, &out, 1, LATHE_ERROR_INPUT, "inputs: found NULL");
	context->running = true; /* as another thread's run would have it */
	run_fails(context, &good, 1, &out, 1, LATHE_ERROR_OPTION, "make a context for each thread");
	context->running = false;
	run_fails(context, &good, 1, &out, 0, LATHE_ERROR_INPUT, "number of outputs");
	out.bytes = 31;
	run_fails(context, &good, 1, &out, 1, LATHE_ERROR_INPUT, "found 31 bytes, expected a buffer of 32 bytes");
	for (size_t i = 0; i < sizeof(y); i++)
		ck_assert_int_eq(((unsigned char *)y)[i], 0x5a);
	check_chain(context, 4, 2); /* and the context goes on */
	close_all(&context, &executable);
}
END_TEST

START_TEST(callers_arena)
{
	struct lathe_executable *executable = open_text(HEAD CHAIN PLAN "}");
	_Alignas(64) static char memory[256];
	struct lathe_options options = {.bytes = sizeof(options), .arena = memory, .arena_bytes = sizeof(memory)};
	struct lathe_context *context = make_context(executable, &options);
	struct lathe_counters counters;
	check_chain(context, 8, 8);
	float x[64 * 8] = {0}, y[64 * 8] = {0};
	struct lathe_tensor in = floats(x, 2, 16, 8), out = floats(y, 2, 64, 8);
	run_fails(context, &in, 1, &out, 1, LATHE_ERROR_ARENA_TOO_SMALL, "found 256 bytes, expected 512 bytes");
	check_chain(context, 8, 8);
	lth_context_counters(context, &counters);
	ck_assert_uint_eq(counters.system_allocations, 0);
	lth_context_destroy(&context);
	struct lathe_error error;
	options.arena = memory + 1;
	ck_assert_int_eq(lth_query_context_create(executable, &options, &context, &error), LATHE_ERROR_OPTION);
	close_all(&context, &executable);
}
END_TEST

START_TEST(signature_cache_is_bounded)
{
	struct lathe_executable *executable = open_text(HEAD CHAIN PLAN "}");
	struct lathe_options options = {.bytes = sizeof(options), .signatures = 3};
	struct lathe_context *context = make_context(executable, &options);
	struct lathe_counters counters;
	for (int round = 0; round < 2; round++)
		for (int64_t n = 2; n <= 6; n += 2)
			check_chain(context, n, 3);
	lth_context_counters(context, &counters);
	ck_assert_uint_eq(counters.signature_misses, 3);
	check_chain(context, 8, 3); /* takes the place of 2, the oldest */
	check_chain(context, 4, 3);
	lth_context_counters(context, &counters);
	ck_assert_uint_eq(counters.signature_misses, 4);
	check_chain(context, 2, 3);
	lth_context_counters(context, &counters);
	ck_assert_uint_eq(counters.signature_misses, 5);
	close_all(&context, &executable);
}
END_TEST

START_TEST(least_orientation_is_taken)
{
	/* t lies below u in one, side by side from a base in the other. */
	struct lathe_executable *executable = open_text(
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
	struct lathe_executable *grows = open_text(
		"program \"o\" {\n symbol $n in [3, inf] multiple 3 hint 3 input 0 axis 0\n"
		" e0 = $n + -1\n e1 = e0 floordiv 2\n e2 = e1 + 1\n e3 = e2 * 64\n e4 = $n * 4\n"
		" storage s0 input 0 bytes e4\n storage s1 arena bytes e3\n tensor t0 f32[$n] in s0\n"
		" tensor t1 f32[1] in s1\n input \"x\" t0\n output \"y\" t1\n alloc s1\n return\n"
		" orientation {\n s1 base 0\n }\n}");
	struct lathe_executable *shrinks = open_text(
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
	struct lathe_executable *executable = open_text(lth_arena_printf(arena, "%s%s}", FLOW_HEAD, body));
	struct lathe_context *context = make_context(executable, NULL);
	float x[4] = {first, 0, 0, 0}, y[4];
	struct lathe_tensor in = floats(x, 1, 4, 0), out = floats(y, 1, 4, 0);
	run_ok(context, &in, 1, &out, 1);
	run_ok(context, &in, 1, &out, 1);
	close_all(&context, &executable);
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
		open_text(HEAD " guard $m == 2 \"the second dimension\" node \"reshape\"\n" CHAIN PLAN "}");
	struct lathe_context *context = make_context(executable, NULL);
	float x[64] = {0}, y[64];
	struct lathe_tensor in = floats(x, 2, 4, 4), out = floats(y, 2, 8, 8);
	run_fails(context, &in, 1, &out, 1, LATHE_ERROR_RUNTIME,
		  "node 'reshape': found the second dimension: 4, expected equal to 2");
	check_chain(context, 4, 2);
	close_all(&context, &executable);
}
END_TEST

START_TEST(kernel_errors_have_their_node)
{
	struct lathe_executable *executable = open_text(
		HEAD " kernel k2 \"fails_with_index\" pointers 1 ints 0\n"
		     " call k2 writes (t2) reads () range e0 grain 1 node \"gather\"\n" CHAIN PLAN "}");
	struct lathe_context *context = make_context(executable, NULL);
	float x[64] = {0};
	struct lathe_tensor in = floats(x, 2, 4, 4), out = {0};
	run_fails(context, &in, 1, &out, 1, LATHE_ERROR_RUNTIME, "node 'gather': found an index outside its tensor");
	ck_assert_ptr_null(out.data);
	struct lathe_counters counters;
	lth_context_counters(context, &counters);
	ck_assert_uint_eq(counters.pool_used_bytes, 0);
	close_all(&context, &executable);
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
	struct lathe_executable *executable = open_text(data_symbols);
	struct lathe_context *context = make_context(executable, NULL);
	float x[8] = {0, 1, 0, 2, 0, NAN, -0.0f, 3};
	int64_t buffer[8];
	for (int round = 0; round < 3; round++) {
		struct lathe_tensor in = floats(x, 1, 8, 0), out[3] = {{0}, {0}, {0}};
		out[1].data = buffer;
		out[1].bytes = round == 2 ? 24 : sizeof(buffer);
		x[0] = (float)round;
		if (round == 2) { /* 5 indices do not fit 24 bytes; what was taken for others goes back */
			run_fails(context, &in, 1, out, 3, LATHE_ERROR_INPUT, "expected a buffer of 40 bytes");
			ck_assert_ptr_null(out[0].data);
			break;
		}
		run_ok(context, &in, 1, out, 3);
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
	close_all(&context, &executable);
}
END_TEST

START_TEST(data_symbols_out_of_range_are_errors)
{
	const char *text = lth_arena_printf(arena, "%s", data_symbols);
	char *at = strstr(text, "[0, inf]");
	memcpy(at, "[0,   3]", 8);
	struct lathe_executable *executable = open_text(text);
	struct lathe_context *context = make_context(executable, NULL);
	float x[4] = {1, 1, 1, 1};
	struct lathe_tensor in = floats(x, 1, 4, 0), out[3] = {{0}, {0}, {0}};
	run_fails(context, &in, 1, out, 3, LATHE_ERROR_RUNTIME, "found 4, expected k in [0, 3]");
	x[0] = 0;
	run_ok(context, &in, 1, out, 3);
	for (int i = 0; i < 3; i++)
		lth_context_release(context, &out[i]);
	close_all(&context, &executable);
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
			struct lathe_executable *executable = open_text(
				lth_arena_printf(arena, "%s%s}\n", text, planned ? " orientation { s3 base 0 }\n" : ""));
			struct lathe_context *context = make_context(executable, NULL);
			float x[8] = {0}, y[2] = {10, 20}, z[2] = {30, 40}, buffer[2];
			for (int64_t i = 0; i < turns; i++)
				for (int k = 0; k < 2; k++) {
					float next = y[k] * 2;
					y[k] = z[k];
					z[k] = next;
				}
			for (int given = 0; given < 3; given++) {
				struct lathe_tensor in = floats(x, 1, turns, 0), out[2] = {{0}, {0}};
				if (given)
					out[given - 1] = (struct lathe_tensor){.data = buffer, .bytes = sizeof(buffer)};
				run_ok(context, &in, 1, out, 2);
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
			close_all(&context, &executable);
		}
}
END_TEST

/* A POOL storage that grows with the turn: each turn allocates it anew. */
START_TEST(pool_storages_in_loops)
{
	struct lathe_executable *executable = open_text(
		"program \"p\" {\n symbol $i in [0, 9] data\n e0 = $i + 1\n e1 = e0 * 4\n"
		" storage s0 input 0 bytes 40\n storage s1 pool bytes e1\n storage s2 output 0 bytes 40\n"
		" tensor t0 f32[10] in s0\n tensor t1 f32[e0] in s1\n tensor t2 f32[e0] in s0\n"
		" tensor t3 f32[e0] in s2\n tensor t4 f32[10] in s2\n"
		" input \"x\" t0\n output \"y\" t4\n"
		" loop while _ trips 10 turn $i\n alloc s1\n copy t1 from t2\n copy t3 from t1\n endloop\n return\n}");
	struct lathe_context *context = make_context(executable, NULL);
	float x[10], y[10];
	for (int i = 0; i < 10; i++)
		x[i] = (float)i;
	struct lathe_tensor in = floats(x, 1, 10, 0), out = floats(y, 1, 10, 0);
	run_ok(context, &in, 1, &out, 1);
	ck_assert_int_eq(memcmp(x, y, sizeof(x)), 0);
	struct lathe_counters counters;
	lth_context_counters(context, &counters);
	ck_assert_uint_eq(counters.pool_takes, 10);
	ck_assert_uint_eq(counters.pool_used_bytes, 0);
	close_all(&context, &executable);
}
END_TEST

START_TEST(views_and_outputs_on_other_storages)
{
	/* Output 0: a transposed view of the input; output 1: the input itself; output 2: a constant. */
	struct lathe_executable *executable = open_text(
		"program \"v\" {\n constants 64\n symbol $n in [1, 8] hint 2 input 0 axis 0\n e0 = $n * 12\n"
		" storage s0 input 0 bytes e0\n storage s1 constant 0 bytes 16\n"
		" tensor t0 f32[$n, 3] in s0\n tensor t1 f32[3, $n] strides [1, 3] in s0\n tensor t2 f32[4] in s1\n"
		" tensor t3 f32[$n] strides [-3] at 24 in s0\n"
		" input \"x\" t0\n output \"t\" t1\n output \"x\" t0\n output \"c\" t2\n output \"r\" t3\n return\n}");
	struct lathe_context *context = make_context(executable, NULL);
	float x[9] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
	struct lathe_tensor in = floats(x, 2, 3, 3), out[4] = {{0}, {0}, {0}, {0}};
	run_ok(context, &in, 1, out, 4);
	const float expected[9] = {0, 3, 6, 1, 4, 7, 2, 5, 8};
	ck_assert_int_eq(memcmp(out[0].data, expected, sizeof(expected)), 0);
	ck_assert_int_eq(memcmp(out[1].data, x, sizeof(x)), 0);
	ck_assert_int_eq(memcmp(out[2].data, constants, 16), 0);
	ck_assert(((float *)out[3].data)[0] == 6 && ((float *)out[3].data)[2] == 0);
	for (int i = 0; i < 4; i++)
		lth_context_release(context, &out[i]);
	/* At n = 4 the view that runs backwards would begin before its storage: refused. */
	float longer[12] = {0};
	in = floats(longer, 2, 4, 3);
	run_fails(context, &in, 1, out, 4, LATHE_ERROR_RUNTIME, "outside its storage");
	close_all(&context, &executable);
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
	struct lathe_executable *executable = open_text(text);
	enum { N = 10007 };
	static float x[N], y[N];
	for (uint32_t threads = 1; threads <= 8; threads *= 2) {
		struct lathe_options options = {.bytes = sizeof(options), .threads = threads};
		struct lathe_context *context = make_context(executable, &options);
		for (int round = 0; round < 20; round++) {
			memset(y, 0, sizeof(y));
			struct lathe_tensor in = floats(x, 1, N, 0), out = floats(y, 1, N, 0);
			run_ok(context, &in, 1, &out, 1);
			for (int i = 0; i < N; i++)
				ck_assert(y[i] == constants[i % 4]);
		}
		lth_context_destroy(&context);
	}
	lth_executable_unload(&executable);
}
END_TEST

START_TEST(profile_and_description)
{
	struct lathe_executable *executable = open_text(HEAD CHAIN PLAN "}");
	struct lathe_options options = {.bytes = sizeof(options), .profile = 1};
	struct lathe_context *context = make_context(executable, &options);
	struct lathe_profile_entry entries[4];
	check_chain(context, 4, 2);
	check_chain(context, 4, 2);
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
	close_all(&context, &executable);
}
END_TEST

START_TEST(damaged_images_are_refused)
{
	struct lathe_executable *executable = open_text(HEAD CHAIN "}");
	struct lth_image image = executable->image;
	struct lathe_executable *second;
	struct lathe_error error;
	image.num_kernels--;
	ck_assert_int_eq(lth_query_open(&image, &api, &second, &error), LATHE_ERROR_EXECUTABLE);
	image = executable->image;
	image.constants_bytes = 63;
	ck_assert_int_eq(lth_query_open(&image, &api, &second, &error), LATHE_ERROR_EXECUTABLE);
	image = executable->image;
	image.program_bytes--;
	ck_assert_int_eq(lth_query_open(&image, &api, &second, &error), LATHE_ERROR_EXECUTABLE);
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
	tcase_add_checked_fixture(tests, setup, teardown);
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
	tcase_add_test(tests, if_takes_one_arm);
	tcase_add_test(tests, loops_end_by_condition_or_count);
	tcase_add_test(tests, guards_stop_a_run);
	tcase_add_test(tests, kernel_errors_have_their_node);
	tcase_add_test(tests, data_symbols_carry_true_extents);
	tcase_add_test(tests, data_symbols_out_of_range_are_errors);
	tcase_add_test(tests, outputs_that_swap_come_home);
	tcase_add_test(tests, pool_storages_in_loops);
	tcase_add_test(tests, views_and_outputs_on_other_storages);
	tcase_add_test(tests, threads_scratch_and_constants);
	tcase_add_test(tests, profile_and_description);
	tcase_add_test(tests, damaged_images_are_refused);
	tcase_add_test(tests, threadpool_does_every_unit_once);
	suite_add_tcase(suite, tests);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
