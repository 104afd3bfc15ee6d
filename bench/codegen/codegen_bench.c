/* codegen-bench [CPU [STEP]]: what code generation costs and what it gives. Compile time by kernel for typical kernels, the
 * speed of the matmul kernel against the machine's own peak, link time by size of the constants, and every STEP-th float
 * (997 unless given) through each math function: worst error in ulp, time per element. Prints a table a part. */
#include "compiler/codegen/codegen.h"
#include "compiler/emit/emit.h"
#include "runtime/base/io.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct lth_codegen_target target;
static char folder[] = "codegen-bench.XXXXXX";

static void need(enum lth_code code, const struct lth_diag *diag)
{
	char line[4096];
	if (code == LTH_OK)
		return;
	fprintf(stderr, "%s\n", lth_diag_line(diag, line, sizeof(line)));
	exit(1);
}

static double elapsed_ms(uint64_t start)
{
	return (double)(lth_now_ns() - start) / 1e6;
}

/* Compiles and, if `out` is given, loads. Returns the processor time in LLVM. */
static double compile(const struct lth_loop_fn *fn, lathe_kernel_fn *out)
{
	struct lth_codegen_kernel kernel = {.fn = fn};
	struct lth_codegen_result result;
	struct lth_diag diag = {0};
	char path[64];
	need(lth_codegen_objects(&target, &kernel, 1, 1, NULL, &result, &diag), &diag);
	double cpu_ms = result.cpu_ms;
	if (out) {
		const char *name = kernel.name;
		struct lth_emit_object object = {result.objects[0].data, result.objects[0].size};
		struct lth_emit_input input = {.kernels = &name, .num_kernels = 1, .objects = &object, .num_objects = 1,
					       .work_dir = folder};
		void *data;
		size_t size;
		need(lth_emit_artifact(LTH_EMIT_KERNELS, &input, &data, &size, &diag), &diag);
		/* By a name of its own: dlopen gives what it has already for a name it knows. */
		snprintf(path, sizeof(path), "%s/%.16s.so", folder, kernel.name);
		need(lth_write_file(path, data, size, true, &diag), &diag);
		void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		const lathe_kernel_fn *table = handle ? dlsym(handle, "lth_image_kernels") : NULL;
		if (!table) {
			fprintf(stderr, "%s\n", dlerror());
			exit(1);
		}
		*out = *table;
		unlink(path);
		free(data);
	}
	lth_codegen_result_free(&result);
	return cpu_ms;
}

/* Rows of MR x (NR vectors): C = max(A B, 0), B packed in panels; ints: K, row stride of A, of C. */
static struct lth_loop_fn *matmul(struct lth_arena *arena, unsigned mr, unsigned nr, unsigned lanes)
{
	struct lth_loop_fn *fn = lth_loop_create(arena, 3);
	enum lth_dtype f32 = LTH_DTYPE_F32;
	lth_lv pointers[3], rows[8], sums[32], phis[32], next[32], results[32], b[8];
	for (uint32_t k = 0; k < 3; k++)
		pointers[k] = lth_loop_pointer(fn, lth_loop_add_pointer(fn, f32, k == 2));
	lth_lv tile = lth_loop_for(fn, lth_loop_begin(fn), lth_loop_end(fn), 1, NULL, 0, NULL);
	lth_lv first = lth_loop_op2(fn, LTH_SCALAR_MUL, tile, lth_loop_i64(fn, mr));
	for (unsigned m = 0; m < mr; m++) {
		lth_lv row = lth_loop_op2(fn, LTH_SCALAR_ADD, first, lth_loop_i64(fn, m));
		rows[m] = lth_loop_offset(fn, pointers[0], lth_loop_op2(fn, LTH_SCALAR_MUL, row, lth_loop_int(fn, 1)), f32);
	}
	for (unsigned k = 0; k < mr * nr; k++)
		sums[k] = lth_loop_splat(fn, lth_loop_const_f(fn, f32, 0), lanes);
	lth_lv k = lth_loop_for(fn, lth_loop_i64(fn, 0), lth_loop_int(fn, 0), 1, sums, mr * nr, phis);
	lth_lv panel = lth_loop_offset(fn, pointers[1], lth_loop_op2(fn, LTH_SCALAR_MUL, k, lth_loop_i64(fn, nr * lanes)), f32);
	for (unsigned n = 0; n < nr; n++)
		b[n] = lth_loop_load(fn, lth_loop_offset(fn, panel, lth_loop_i64(fn, n * lanes), f32), f32, lanes, LTH_LV_NONE);
	for (unsigned m = 0; m < mr; m++) {
		lth_lv a = lth_loop_load(fn, lth_loop_offset(fn, rows[m], k, f32), f32, 1, LTH_LV_NONE);
		for (unsigned n = 0; n < nr; n++)
			next[m * nr + n] = lth_loop_op3(fn, LTH_SCALAR_FMA, a, b[n], phis[m * nr + n]);
	}
	lth_loop_end_for(fn, next, mr * nr, results);
	for (unsigned m = 0; m < mr; m++) {
		lth_lv row = lth_loop_op2(fn, LTH_SCALAR_ADD, first, lth_loop_i64(fn, m));
		lth_lv to = lth_loop_offset(fn, pointers[2], lth_loop_op2(fn, LTH_SCALAR_MUL, row, lth_loop_int(fn, 2)), f32);
		for (unsigned n = 0; n < nr; n++)
			lth_loop_store(fn, lth_loop_offset(fn, to, lth_loop_i64(fn, n * lanes), f32),
				       lth_loop_op2(fn, LTH_SCALAR_MAX, results[m * nr + n], lth_loop_const_f(fn, f32, 0)), f32,
				       LTH_LV_NONE);
	}
	lth_loop_end_for(fn, NULL, 0, NULL);
	fn->description = lth_arena_printf(arena, "matmul %ux%u", mr, nr * lanes);
	return fn;
}

static struct lth_loop_fn *map_of(struct lth_arena *arena, enum lth_scalar_op op, unsigned lanes)
{
	struct lth_loop_fn *fn = lth_loop_create(arena, 0);
	lth_lv x[2];
	for (int k = 0; k < 3; k++)
		lth_loop_add_pointer(fn, LTH_DTYPE_F32, k == 2);
	lth_lv i = lth_loop_for(fn, lth_loop_begin(fn), lth_loop_end(fn), lanes, NULL, 0, NULL);
	for (uint32_t k = 0; k < 2; k++)
		x[k] = lth_loop_load(fn, lth_loop_offset(fn, lth_loop_pointer(fn, k), i, LTH_DTYPE_F32), LTH_DTYPE_F32, lanes,
				     LTH_LV_NONE);
	lth_lv value = lth_loop_op2(fn, op, x[0], lth_scalar_arity(op) == 2 ? x[1] : LTH_LV_NONE);
	lth_loop_store(fn, lth_loop_offset(fn, lth_loop_pointer(fn, 2), i, LTH_DTYPE_F32), value, LTH_DTYPE_F32, LTH_LV_NONE);
	lth_loop_end_for(fn, NULL, 0, NULL);
	fn->description = lth_scalar_text(op);
	return fn;
}

static void compile_times(struct lth_arena *arena)
{
	unsigned lanes = target.vector_bytes / 4, mr = target.registers == 32 ? 4 : 6, nr = target.registers == 32 ? 4 : 2;
	const struct lth_loop_fn *list[] = {
		matmul(arena, mr, nr, lanes), matmul(arena, mr > 4 ? 4 : 6, nr, lanes), map_of(arena, LTH_SCALAR_ADD, lanes),
		map_of(arena, LTH_SCALAR_EXP, lanes), map_of(arena, LTH_SCALAR_ERF, lanes), map_of(arena, LTH_SCALAR_SIN, lanes),
		map_of(arena, LTH_SCALAR_POW, lanes),
	};
	compile(list[2], NULL); /* the first in a process costs more */
	printf("%-14s %12s\n", "kernel", "compile ms");
	for (size_t k = 0; k < sizeof(list) / sizeof(list[0]); k++) {
		double best = 1e9;
		for (int turn = 0; turn < 5; turn++)
			best = fmin(best, compile(list[k], NULL));
		printf("%-14s %12.2f\n", list[k]->description, best);
	}
}

static void matmul_speed(struct lth_arena *arena)
{
	enum { K = 512, ROWS = 96 };
	static float a[ROWS * K], b[K * 64], c[ROWS * 64];
	unsigned lanes = target.vector_bytes / 4, mr = target.registers == 32 ? 4 : 6, nr = target.registers == 32 ? 4 : 2;
	lathe_kernel_fn run;
	compile(matmul(arena, mr, nr, lanes), &run);
	void *pointers[3] = {a, b, c};
	int64_t ints[3] = {K, K, nr * lanes};
	struct lathe_kernel_call call = {.pointers = pointers, .ints = ints};
	double best = 0;
	for (int turn = 0; turn < 200; turn++) {
		uint64_t start = lth_now_ns();
		run(&call, 0, ROWS / mr);
		best = fmax(best, 2.0 * ROWS * K * nr * lanes / (double)(lth_now_ns() - start));
	}
	printf("\nmatmul %ux%u, K %d: %.1f GFLOP/s\n", mr, nr * lanes, K, best);
}

static void link_times(struct lth_arena *arena)
{
	static const size_t sizes[] = {0, 1000000, 100000000};
	struct lth_codegen_kernel kernel = {.fn = map_of(arena, LTH_SCALAR_ADD, 4)};
	struct lth_codegen_result result;
	struct lth_diag diag = {0};
	need(lth_codegen_objects(&target, &kernel, 1, 1, NULL, &result, &diag), &diag);
	const char *name = kernel.name;
	struct lth_emit_object object = {result.objects[0].data, result.objects[0].size};
	printf("\n%14s %12s\n", "constants", "link ms");
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		double best = 1e9;
		char *constants = malloc(sizes[k] + 1);
		memset(constants, 1, sizes[k] + 1);
		for (int turn = 0; turn < 5; turn++) {
			struct lth_emit_input input = {.kernels = &name, .num_kernels = 1, .objects = &object,
						       .num_objects = 1, .constants = constants,
						       .constants_size = sizes[k], .work_dir = folder};
			void *data;
			size_t size;
			uint64_t start = lth_now_ns();
			need(lth_emit_artifact(LTH_EMIT_KERNELS, &input, &data, &size, &diag), &diag);
			best = fmin(best, elapsed_ms(start));
			free(data);
		}
		free(constants);
		printf("%14zu %12.1f\n", sizes[k], best);
	}
	lth_codegen_result_free(&result);
}

static double reference(enum lth_scalar_op op, double x, double y)
{
	union lth_scalar_value a = {.f = x}, b = {.f = y};
	return lth_scalar_eval(op, LTH_DTYPE_F64, LTH_DTYPE_F64, a, b, a).f;
}

static double error_ulp(double want, float got)
{
	if (isnan(want) || isnan(got))
		return isnan(want) && isnan(got) ? 0 : HUGE_VAL;
	float rounded = (float)want;
	if (isinf(got) || isinf(rounded) || want == 0)
		return rounded == got && signbit(rounded) == signbit(got) ? 0 : HUGE_VAL;
	int exponent;
	frexp(want, &exponent);
	return fabs((double)got - want) / ldexp(1, exponent - 24 < -149 ? -149 : exponent - 24);
}

static void math_sweep(struct lth_arena *arena, uint32_t step)
{
	enum { BLOCK = 4096 };
	static float x[BLOCK], y[BLOCK], out[BLOCK];
	void *pointers[3] = {x, y, out};
	struct lathe_kernel_call call = {.pointers = pointers};
	printf("\n%-10s %10s %14s %10s %12s\n", "function", "worst ulp", "at", "ns/elem", "points");
	for (int op = LTH_SCALAR_EXP; op < LTH_NUM_SCALARS; op++) {
		lathe_kernel_fn run;
		compile(map_of(arena, (enum lth_scalar_op)op, 16), &run);
		double worst = 0, worst_at = 0;
		uint64_t spent = 0, count = 0;
		for (uint64_t bits = 0; bits < (1ull << 32);) {
			for (int i = 0; i < BLOCK; i++, bits += step) {
				uint32_t pattern = (uint32_t)bits;
				memcpy(&x[i], &pattern, sizeof(pattern));
				y[i] = (float)((int)(pattern * 2654435761u >> 20) - 2048) / 128;
			}
			uint64_t start = lth_now_ns();
			run(&call, 0, BLOCK);
			spent += lth_now_ns() - start;
			count += BLOCK;
			for (int i = 0; i < BLOCK; i++) {
				double error = error_ulp(reference((enum lth_scalar_op)op, (double)x[i], (double)y[i]), out[i]);
				if (error > worst) {
					worst = error;
					worst_at = (double)x[i];
				}
			}
		}
		printf("%-10s %10.2f %14.6g %10.3f %12llu\n", lth_scalar_text((enum lth_scalar_op)op), worst, worst_at,
		       (double)spent / (double)count, (unsigned long long)count);
	}
}

int main(int argc, char **argv)
{
	struct lth_arena *arena = lth_arena_create(0);
	struct lth_codegen_request request = {.cpu = argc > 1 ? argv[1] : "host"};
	struct lth_diag diag = {0};
	char path[64];
	need(lth_codegen_target_resolve(&request, &target, &diag), &diag);
	if (!mkdtemp(folder))
		return 1;
	compile_times(arena);
	matmul_speed(arena);
	link_times(arena);
	math_sweep(arena, argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 997);
	snprintf(path, sizeof(path), "%s/ld.log", folder);
	unlink(path);
	rmdir(folder);
	lth_arena_destroy(&arena);
	return 0;
}
