/* Executables of programs written by hand. See exec_fixture.h. */
#include "exec_fixture.h"

#include <check.h>
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

struct lth_arena *exec_arena;
const struct lathe_api exec_api = {LTH_QUERY_FUNCTIONS};
_Alignas(64) const float exec_constants[16] = {10, 20, 30, 40};

void exec_setup(void)
{
	exec_arena = lth_arena_create(0);
}

void exec_teardown(void)
{
	lth_arena_destroy(&exec_arena);
}

struct lathe_executable *exec_open_text(const char *text)
{
	struct lth_program *program;
	struct lth_diag diag = {0};
	struct lth_buf bytes = {0};
	char line[4096];
	struct lathe_error error;
	struct lathe_executable *executable = NULL;
	enum lth_code code = lth_program_parse(text, strlen(text), exec_arena, &program, &diag);
	ck_assert_msg(code == LTH_OK, "%s", lth_diag_line(&diag, line, sizeof(line)));
	lth_program_encode(program, &bytes);
	lathe_kernel_fn *kernels = lth_arena_array(exec_arena, program->num_kernels, sizeof(*kernels));
	for (uint32_t i = 0; i < program->num_kernels; i++)
		for (size_t k = 0; k < sizeof(known_kernels) / sizeof(known_kernels[0]); k++)
			if (strcmp(known_kernels[k].name, program->kernels[i].name) == 0)
				kernels[i] = known_kernels[k].function;
	struct lth_image image = {
		.program = lth_arena_memdup(exec_arena, bytes.data, bytes.size), .program_bytes = bytes.size,
		.constants = exec_constants, .constants_bytes = sizeof(exec_constants), .kernels = kernels,
		.num_kernels = program->num_kernels, .info = "{}", .info_bytes = 2,
	};
	lth_buf_free(&bytes);
	ck_assert_msg(lth_query_open(&image, &exec_api, &executable, &error) == 0, "%s", error.text);
	return executable;
}

struct lathe_context *exec_make_context(const struct lathe_executable *executable,
					  const struct lathe_options *options)
{
	struct lathe_context *context = NULL;
	struct lathe_error error;
	ck_assert_msg(lth_query_context_create(executable, options, &context, &error) == 0, "%s", error.text);
	return context;
}

/* A tensor of floats. */
struct lathe_tensor exec_floats(float *data, uint32_t rank, int64_t d0, int64_t d1)
{
	struct lathe_tensor t = {.dtype = LATHE_F32, .rank = rank, .dims = {d0, d1}, .data = data};
	t.bytes = (uint64_t)(d0 * (rank > 1 ? d1 : 1)) * sizeof(float);
	return t;
}

void exec_run_ok(struct lathe_context *context, const struct lathe_tensor *inputs, size_t num_inputs,
		   struct lathe_tensor *outputs, size_t num_outputs)
{
	struct lathe_error error;
	int code = lth_query_run(context, inputs, num_inputs, outputs, num_outputs, &error);
	ck_assert_msg(code == 0, "%s", error.text);
}

void exec_run_fails(struct lathe_context *context, const struct lathe_tensor *inputs, size_t num_inputs,
		      struct lathe_tensor *outputs, size_t num_outputs, int code, const char *text)
{
	struct lathe_error error = {0};
	int got = lth_query_run(context, inputs, num_inputs, outputs, num_outputs, &error);
	ck_assert_msg(got == code && strstr(error.text, text), "%d: %s", got, error.text);
}

void exec_close_all(struct lathe_context **context, struct lathe_executable **executable)
{
	lth_context_destroy(context);
	lth_executable_unload(executable);
}

void exec_check_chain(struct lathe_context *context, int64_t n, int64_t m)
{
	float x[64 * 8], y[64 * 8];
	for (int64_t i = 0; i < n * m; i++)
		x[i] = (float)i;
	struct lathe_tensor in = exec_floats(x, 2, n, m), out = exec_floats(y, 2, 64, 8);
	exec_run_ok(context, &in, 1, &out, 1);
	ck_assert_int_eq(out.dims[0], n);
	ck_assert_int_eq(out.dims[1], m);
	ck_assert_ptr_eq(out.data, y);
	for (int64_t i = 0; i < n * m; i++)
		ck_assert(y[i] == (x[i] + 1) * 2);
}
