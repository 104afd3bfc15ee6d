/* Compiled code against the interpreter, bit for bit, on random functions of every type and target; identities and the
 * cache of kernel objects; emission of executables. LATHE_TEST_SEED picks another seed, which is printed on failure. */
#include "kernels.h"
#include "loop_random.h"

#include "compiler/codegen/codegen.h"
#include "compiler/emit/emit.h"
#include "runtime/base/io.h"
#include "runtime/program/program.h"
#include "tests/unit/run_suite.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FUNCTIONS = 20 };

static uint64_t first_seed(void)
{
	const char *text = getenv("LATHE_TEST_SEED");
	return text ? strtoull(text, NULL, 10) : 1;
}

static void compare(const struct lth_loop_fn *fn, lathe_kernel_fn compiled, uint64_t seed, const char *cpu)
{
	static struct loop_data left, right;
	for (int turn = 0; turn < 3; turn++) {
		struct lth_diag diag = {0};
		int64_t begin = turn == 1 ? 7 : 0, end = turn == 0 ? RANDOM_UNITS : turn == 1 ? 30 : 0;
		int error = 0;
		loop_data_fill(&left, seed);
		loop_data_fill(&right, seed);
		ck_assert_int_eq((int)lth_loop_interpret(fn, &left.call, begin, end, &error, &diag), LTH_OK);
		int compiled_error = compiled(&right.call, begin, end);
		if (error != compiled_error || !loop_data_equal(&left, &right)) {
			struct lth_buf text = {0};
			lth_loop_print(fn, &text);
			printf("errors %d, %d\n%s", error, compiled_error, lth_buf_text(&text));
			ck_abort_msg("seed %llu for %s differs", (unsigned long long)seed, cpu);
		}
	}
}

static void compare_all(const char *cpu, struct random_options options)
{
	struct lth_arena *arena = lth_arena_create(0);
	const struct lth_loop_fn *functions[FUNCTIONS];
	if (!test_can_run(cpu)) {
		printf("SKIP %s: this processor cannot run it\n", cpu);
		lth_arena_destroy(&arena);
		return;
	}
	for (uint32_t k = 0; k < FUNCTIONS; k++)
		functions[k] = random_function(arena, first_seed() * 1000 + k, options);
	struct test_kernels kernels = test_kernels_load(functions, FUNCTIONS, cpu);
	for (uint32_t k = 0; k < FUNCTIONS; k++)
		compare(functions[k], kernels.functions[k], first_seed() * 1000 + k, cpu);
	test_kernels_close(&kernels);
	lth_arena_destroy(&arena);
}

START_TEST(host_code_is_what_the_interpreter_says)
{
	compare_all("host", (struct random_options){.fma = __builtin_cpu_supports("fma"), .math = __builtin_cpu_supports("fma")});
}
END_TEST

START_TEST(v4_code_is_what_the_interpreter_says)
{
	compare_all("x86-64-v4", (struct random_options){.fma = true, .math = true});
}
END_TEST

START_TEST(v3_code_is_what_the_interpreter_says)
{
	compare_all("x86-64-v3", (struct random_options){.fma = true, .math = true});
}
END_TEST

START_TEST(v2_code_is_what_the_interpreter_says)
{
	compare_all("x86-64-v2", (struct random_options){.fma = false});
}
END_TEST

/* p1[i] = p0[i] + number */
static struct lth_loop_fn *add_number(struct lth_arena *arena, double number, const char *description)
{
	struct lth_loop_fn *fn = lth_loop_create(arena, 0);
	fn->description = description;
	lth_loop_add_pointer(fn, LTH_DTYPE_F32, false);
	lth_loop_add_pointer(fn, LTH_DTYPE_F32, true);
	lth_lv i = lth_loop_for(fn, lth_loop_begin(fn), lth_loop_end(fn), 1, NULL, 0, NULL);
	lth_lv x = lth_loop_load(fn, lth_loop_offset(fn, lth_loop_pointer(fn, 0), i, LTH_DTYPE_F32), LTH_DTYPE_F32, 1,
				 LTH_LV_NONE);
	x = lth_loop_op2(fn, LTH_SCALAR_ADD, x, lth_loop_const_f(fn, LTH_DTYPE_F32, number));
	lth_loop_store(fn, lth_loop_offset(fn, lth_loop_pointer(fn, 1), i, LTH_DTYPE_F32), x, LTH_DTYPE_F32, LTH_LV_NONE);
	lth_loop_end_for(fn, NULL, 0, NULL);
	return fn;
}

static struct lth_codegen_target resolve(const char *cpu)
{
	struct lth_codegen_target target;
	struct lth_diag diag = {0};
	ck_assert_int_eq((int)lth_codegen_target_resolve(&(struct lth_codegen_request){.cpu = cpu}, &target, &diag), LTH_OK);
	return target;
}

START_TEST(equal_kernels_are_compiled_once)
{
	struct lth_arena *arena = lth_arena_create(0);
	struct lth_codegen_target target = resolve("x86-64-v3"), other = resolve("x86-64-v2");
	struct lth_codegen_kernel kernels[4] = {
		{.fn = add_number(arena, 1, "one")},
		{.fn = add_number(arena, 2, "two")},
		{.fn = add_number(arena, 1, "one by another name")},
		{.fn = add_number(arena, 2, "two")},
	}, elsewhere = kernels[0];
	struct lth_codegen_result result, again;
	struct lth_diag diag = {0};
	uint32_t num_objects;
	ck_assert_int_eq((int)lth_codegen_objects(&target, kernels, 4, 3, NULL, &result, &diag), LTH_OK);
	ck_assert_int_eq((int)lth_codegen_identify(&other, &elsewhere, 1, &num_objects, &diag), LTH_OK);
	ck_assert_uint_eq(result.num_objects, 2);
	ck_assert_uint_eq(kernels[2].object, 0);
	ck_assert_str_eq(kernels[0].name, kernels[2].name);
	ck_assert_str_ne(kernels[0].name, kernels[1].name);
	ck_assert_str_ne(kernels[0].name, elsewhere.name);
	/* The same bytes every time. */
	ck_assert_int_eq((int)lth_codegen_objects(&target, kernels, 4, 1, NULL, &again, &diag), LTH_OK);
	for (uint32_t k = 0; k < 2; k++) {
		ck_assert_uint_eq(result.objects[k].size, again.objects[k].size);
		ck_assert_mem_eq(result.objects[k].data, again.objects[k].data, again.objects[k].size);
	}
	lth_codegen_result_free(&result);
	lth_codegen_result_free(&again);
	lth_arena_destroy(&arena);
}
END_TEST

START_TEST(cached_objects_are_used_unless_damaged)
{
	struct lth_arena *arena = lth_arena_create(0);
	struct lth_codegen_target target = resolve("x86-64-v3");
	struct lth_codegen_kernel kernel = {.fn = add_number(arena, 1, "one")};
	struct lth_codegen_result made, found;
	struct lth_diag diag = {0};
	char folder[] = "cache.XXXXXX", path[128];
	ck_assert_ptr_nonnull(mkdtemp(folder));
	ck_assert_int_eq((int)lth_codegen_objects(&target, &kernel, 1, 1, folder, &made, &diag), LTH_OK);
	ck_assert_uint_eq(made.from_cache, 0);
	ck_assert(lth_codegen_object_valid(made.objects[0].data, made.objects[0].size));
	snprintf(path, sizeof(path), "%s/%s.o", folder, kernel.name);
	ck_assert_int_eq((int)lth_write_file(path, made.objects[0].data, made.objects[0].size, false, &diag), LTH_OK);
	ck_assert_int_eq((int)lth_codegen_objects(&target, &kernel, 1, 1, folder, &found, &diag), LTH_OK);
	ck_assert_uint_eq(found.from_cache, 1);
	ck_assert_mem_eq(found.objects[0].data, made.objects[0].data, made.objects[0].size);
	lth_codegen_result_free(&found);
	made.objects[0].data[made.objects[0].size / 2] ^= 1;
	ck_assert_int_eq((int)lth_write_file(path, made.objects[0].data, made.objects[0].size, false, &diag), LTH_OK);
	ck_assert_int_eq((int)lth_codegen_objects(&target, &kernel, 1, 1, folder, &found, &diag), LTH_OK);
	ck_assert_uint_eq(found.from_cache, 0);
	unlink(path);
	rmdir(folder);
	lth_codegen_result_free(&made);
	lth_codegen_result_free(&found);
	lth_arena_destroy(&arena);
}
END_TEST

START_TEST(unknown_targets_are_refused)
{
	struct lth_codegen_target target;
	struct lth_diag diag = {0};
	struct lth_codegen_request request = {.cpu = "x86-64-v33"};
	ck_assert_int_eq((int)lth_codegen_target_resolve(&request, &target, &diag), LTH_INVALID_OPTION);
	ck_assert_str_eq(diag.advice, "did you mean \"x86-64-v3\"?");
	diag = (struct lth_diag){0};
	request = (struct lth_codegen_request){.triple = "aarch64-linux-gnu"};
	ck_assert_int_eq((int)lth_codegen_target_resolve(&request, &target, &diag), LTH_UNSUPPORTED);
	diag = (struct lth_diag){0};
	request = (struct lth_codegen_request){.cpu = "x86-64-v3", .features = "avx512f"};
	ck_assert_int_eq((int)lth_codegen_target_resolve(&request, &target, &diag), LTH_INVALID_OPTION);
	diag = (struct lth_diag){0};
	request.features = "+avxvnni,-fma";
	ck_assert_int_eq((int)lth_codegen_target_resolve(&request, &target, &diag), LTH_OK);
	ck_assert(target.vnni && target.vector_bytes == 32);
}
END_TEST

START_TEST(text_of_kernels)
{
	struct lth_arena *arena = lth_arena_create(0);
	struct lth_codegen_target target = resolve("x86-64-v3");
	struct lth_codegen_kernel kernel = {.fn = add_number(arena, 1, "add one")};
	uint32_t num_objects;
	struct lth_diag diag = {0};
	struct lth_buf text = {0};
	ck_assert_int_eq((int)lth_codegen_identify(&target, &kernel, 1, &num_objects, &diag), LTH_OK);
	ck_assert_int_eq((int)lth_codegen_text(&target, &kernel, 1, LTH_CODEGEN_LLVM, &text, &diag), LTH_OK);
	ck_assert_ptr_nonnull(strstr(lth_buf_text(&text), "; add one"));
	ck_assert_ptr_nonnull(strstr(lth_buf_text(&text), kernel.name));
	lth_buf_free(&text);
	ck_assert_int_eq((int)lth_codegen_text(&target, &kernel, 1, LTH_CODEGEN_ASM, &text, &diag), LTH_OK);
	ck_assert_ptr_nonnull(strstr(lth_buf_text(&text), "vaddss"));
	lth_buf_free(&text);
	lth_arena_destroy(&arena);
}
END_TEST

/* A whole model by hand: y = x + 1, with constants that nothing reads. */
static const char program_text[] =
	"program \"fixture\" {\n constants %zu\n symbol $n in [1, 1024] hint 4 input 0 axis 0\n e0 = $n * 4\n"
	" storage s0 \"x\" input 0 bytes e0\n storage s1 \"y\" output 0 bytes e0\n"
	" kernel k0 \"%s\" \"add one\" pointers 2 ints 0\n tensor t0 \"x\" f32[$n] in s0\n tensor t1 \"y\" f32[$n] in s1\n"
	" input \"x\" t0\n output \"y\" t1\n call k0 writes (t1) reads (t0) range $n grain 16 node \"add\"\n return\n}\n";

static void make_artifact(enum lth_emit_kind kind, size_t constants_size, void **out, size_t *out_size)
{
	struct lth_arena *arena = lth_arena_create(0);
	struct lth_codegen_target target = resolve("x86-64-v2");
	/* The program writes its outputs first. */
	struct lth_loop_fn *fn = lth_loop_create(arena, 0);
	lth_loop_add_pointer(fn, LTH_DTYPE_F32, true);
	lth_loop_add_pointer(fn, LTH_DTYPE_F32, false);
	lth_lv i = lth_loop_for(fn, lth_loop_begin(fn), lth_loop_end(fn), 1, NULL, 0, NULL);
	lth_lv x = lth_loop_load(fn, lth_loop_offset(fn, lth_loop_pointer(fn, 1), i, LTH_DTYPE_F32), LTH_DTYPE_F32, 1,
				 LTH_LV_NONE);
	x = lth_loop_op2(fn, LTH_SCALAR_ADD, x, lth_loop_const_f(fn, LTH_DTYPE_F32, 1));
	lth_loop_store(fn, lth_loop_offset(fn, lth_loop_pointer(fn, 0), i, LTH_DTYPE_F32), x, LTH_DTYPE_F32, LTH_LV_NONE);
	lth_loop_end_for(fn, NULL, 0, NULL);
	struct lth_codegen_kernel kernel = {.fn = fn};
	struct lth_codegen_result result;
	struct lth_program *program;
	struct lth_diag diag = {0};
	struct lth_buf bytes = {0};
	char text[4096], folder[] = "emit.XXXXXX", log[64], line[4096];
	unsigned char *constants = calloc(constants_size + 1, 1);
	ck_assert_int_eq((int)lth_codegen_objects(&target, &kernel, 1, 1, NULL, &result, &diag), LTH_OK);
	snprintf(text, sizeof(text), program_text, constants_size, kernel.name);
	if (lth_program_parse(text, strlen(text), arena, &program, &diag) != LTH_OK)
		ck_abort_msg("%s", lth_diag_line(&diag, line, sizeof(line)));
	lth_program_encode(program, &bytes);
	ck_assert_ptr_nonnull(mkdtemp(folder));
	const char *name = kernel.name;
	struct lth_emit_object object = {result.objects[0].data, result.objects[0].size};
	struct lth_emit_piece piece = {.data = constants, .size = constants_size};
	struct lth_emit_input input = {
		.program = bytes.data, .program_size = bytes.size, .constants = &piece, .num_constants = 1, .constants_size = constants_size,
		.info = "{}", .info_size = 2, .kernels = &name, .num_kernels = 1, .objects = &object, .num_objects = 1,
		.work_dir = folder,
	};
	if (lth_emit_artifact(kind, &input, out, out_size, &diag) != LTH_OK)
		ck_abort_msg("%s", lth_diag_line(&diag, line, sizeof(line)));
	snprintf(log, sizeof(log), "%s/ld.log", folder);
	unlink(log);
	ck_assert_int_eq(rmdir(folder), 0); /* nothing is left behind */
	free(constants);
	lth_buf_free(&bytes);
	lth_codegen_result_free(&result);
	lth_arena_destroy(&arena);
}

START_TEST(a_program_is_linked_and_runs)
{
	static const size_t sizes[] = {0, 1000, 300000};
	for (int k = 0; k < 3; k++) {
		void *data, *again;
		size_t size, again_size;
		char path[] = "program.XXXXXX", command[128];
		struct lth_diag diag = {0};
		make_artifact(LTH_EMIT_EXE, sizes[k], &data, &size);
		make_artifact(LTH_EMIT_EXE, sizes[k], &again, &again_size);
		ck_assert_uint_eq(size, again_size);
		ck_assert_mem_eq(data, again, size);
		close(mkstemp(path));
		ck_assert_int_eq((int)lth_write_file(path, data, size, true, &diag), LTH_OK);
		snprintf(command, sizeof(command), "./%s --bench 2 --dim n=5 > /dev/null", path);
		ck_assert_int_eq(system(command), 0);
		unlink(path);
		free(data);
		free(again);
	}
}
END_TEST

START_TEST(a_shared_object_exports_the_query)
{
	void *data;
	size_t size;
	char path[] = "./object.XXXXXX";
	struct lth_diag diag = {0};
	make_artifact(LTH_EMIT_SO, 5000, &data, &size);
	close(mkstemp(path));
	ck_assert_int_eq((int)lth_write_file(path, data, size, true, &diag), LTH_OK);
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	ck_assert_ptr_nonnull(handle);
	ck_assert_ptr_nonnull(dlsym(handle, "lathe_query"));
	ck_assert_ptr_null(dlsym(handle, "lth_image_program"));
	dlclose(handle);
	unlink(path);
	free(data);
}
END_TEST

START_TEST(objects_and_archives)
{
	void *object, *archive;
	size_t object_size, archive_size;
	make_artifact(LTH_EMIT_OBJECT, 5000, &object, &object_size);
	make_artifact(LTH_EMIT_ARCHIVE, 5000, &archive, &archive_size);
	ck_assert_mem_eq(object, "\177ELF", 4);
	ck_assert_mem_eq(archive, "!<arch>\n", 8);
	ck_assert_uint_ge(archive_size, object_size + 8 + 120);
	free(object);
	free(archive);
}
END_TEST

START_TEST(a_failing_link_says_why)
{
	struct lth_emit_object object = {"not an object", 13};
	struct lth_emit_input input = {.objects = &object, .num_objects = 1, .work_dir = "."};
	struct lth_diag diag = {0};
	void *data = NULL;
	size_t size;
	ck_assert_int_eq((int)lth_emit_artifact(LTH_EMIT_KERNELS, &input, &data, &size, &diag), LTH_IO_ERROR);
	ck_assert_str_eq(diag.place, "linker");
	ck_assert_ptr_nonnull(strstr(diag.found, "k0.o"));
	ck_assert_ptr_null(data);
	unlink("ld.log");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("codegen");
	TCase *tests = tcase_create("codegen");
	suite_add_tcase(suite, tests);
	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, host_code_is_what_the_interpreter_says);
	tcase_add_test(tests, v4_code_is_what_the_interpreter_says);
	tcase_add_test(tests, v3_code_is_what_the_interpreter_says);
	tcase_add_test(tests, v2_code_is_what_the_interpreter_says);
	tcase_add_test(tests, equal_kernels_are_compiled_once);
	tcase_add_test(tests, cached_objects_are_used_unless_damaged);
	tcase_add_test(tests, unknown_targets_are_refused);
	tcase_add_test(tests, text_of_kernels);
	tcase_add_test(tests, a_program_is_linked_and_runs);
	tcase_add_test(tests, a_shared_object_exports_the_query);
	tcase_add_test(tests, objects_and_archives);
	tcase_add_test(tests, a_failing_link_says_why);
	return run_suite(suite);
}
