/* Unit tests of runtime/kernels: each C kernel by itself, against answers worked out by hand or by a plain loop. */
#include "runtime/base/hash.h"
#include "runtime/exec/strings.h"
#include "runtime/kernels/copy.h"
#include "runtime/kernels/order.h"
#include "runtime/kernels/small_float.h"
#include "runtime/threadpool.h"
#include "tests/unit/run_suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct lth_pool *pool;
static struct lth_threadpool *threads;

static void setup(void)
{
	pool = lth_pool_create();
	threads = lth_threadpool_create(3);
}

static void teardown(void)
{
	ck_assert_int_eq(lth_pool_counters(pool)->used_bytes, 0); /* kernels give back what they took */
	lth_pool_destroy(&pool);
	lth_threadpool_destroy(&threads);
}

struct operand {
	struct lth_builtin_tensor tensor;
	int64_t dims[4], strides[4];
};

/* A dense operand; call `fix` on the array of operands afterwards, since they point into themselves. */
static struct operand dense(enum lth_dtype dtype, const void *data, uint32_t rank, int64_t d0, int64_t d1, int64_t d2)
{
	struct operand o = {.dims = {d0, d1, d2}};
	int64_t stride = 1;
	for (uint32_t k = rank; k-- > 0; stride *= o.dims[k])
		o.strides[k] = stride;
	o.tensor = (struct lth_builtin_tensor){.data = (void *)(uintptr_t)data, .dtype = dtype, .rank = rank};
	return o;
}

static int call(lth_builtin_fn kernel, struct operand *operands, uint32_t count, uint32_t outputs, const int64_t *ints,
		uint32_t num_ints, const char *attributes, char message[192])
{
	struct lth_builtin_tensor tensors[8];
	for (uint32_t i = 0; i < count; i++) {
		tensors[i] = operands[i].tensor;
		if (tensors[i].rank || tensors[i].data) {
			tensors[i].dims = operands[i].dims;
			tensors[i].strides = operands[i].strides;
		}
	}
	struct lth_builtin_call c = {
		.num_outputs = outputs, .num_tensors = count, .num_ints = num_ints, .tensors = tensors, .ints = ints,
		.attributes = attributes, .pool = pool, .threads = threads,
	};
	int error = kernel(&c);
	if (message)
		memcpy(message, c.message, sizeof(c.message));
	return error;
}

/* Copies between random strided layouts against a loop over indices. */
static uint64_t state;

static int64_t random_below(int64_t limit)
{
	state = lth_hash_u64(state, 3);
	return (int64_t)(state % (uint64_t)limit);
}

/* Strides of a random order of axes, over dims padded at random; returns the elements that they span. */
static int64_t random_strides(uint32_t rank, const int64_t *dims, int64_t *strides)
{
	uint32_t order[LTH_MAX_RANK];
	for (uint32_t i = 0; i < rank; i++)
		order[i] = i;
	for (uint32_t i = rank; i > 1; i--) {
		uint32_t k = (uint32_t)random_below(i), swap = order[k];
		order[k] = order[i - 1];
		order[i - 1] = swap;
	}
	int64_t span = 1;
	for (uint32_t i = 0; i < rank; i++) {
		strides[order[i]] = span;
		span *= dims[order[i]] + (random_below(3) == 0 ? random_below(3) : 0);
	}
	return span;
}

static void check_copy(enum lth_dtype dtype)
{
	uint32_t rank = (uint32_t)random_below(5);
	int64_t dims[4], to_strides[4], from_strides[4], size = lth_dtype_bits(dtype) / 8;
	for (uint32_t i = 0; i < rank; i++)
		dims[i] = random_below(rank < 3 ? 90 : 9);
	int64_t to_span = random_strides(rank, dims, to_strides), from_span = random_strides(rank, dims, from_strides);
	unsigned char *to = calloc((size_t)to_span + 1, (size_t)size);
	unsigned char *want = calloc((size_t)to_span + 1, (size_t)size);
	unsigned char *from = malloc(((size_t)from_span + 1) * (size_t)size);
	for (int64_t i = 0; i < from_span * size; i++)
		from[i] = (unsigned char)random_below(256);
	int64_t count = lth_tensor_count(rank, dims);
	for (int64_t i = 0; i < count; i++) {
		int64_t rest = i, a = 0, b = 0;
		for (uint32_t k = rank; k-- > 0; rest /= dims[k]) {
			a += rest % dims[k] * to_strides[k];
			b += rest % dims[k] * from_strides[k];
		}
		memcpy(want + a * size, from + b * size, (size_t)size);
	}
	struct lth_builtin_tensor target = {.data = to, .dtype = dtype, .rank = rank, .dims = dims};
	target.strides = to_strides;
	struct lth_builtin_tensor source = target;
	source.data = from;
	source.strides = from_strides;
	lth_copy_tensor(&target, &source, random_below(2) ? threads : NULL);
	ck_assert_int_eq(memcmp(to, want, (size_t)(to_span * size)), 0);
	free(to);
	free(from);
	free(want);
}

START_TEST(copies_of_random_layouts)
{
	const char *given = getenv("LATHE_SEED");
	static const enum lth_dtype dtypes[] = {LTH_DTYPE_U8, LTH_DTYPE_F16, LTH_DTYPE_F32, LTH_DTYPE_I64,
						LTH_DTYPE_C128};
	state = given ? strtoull(given, NULL, 0) : 1;
	for (int i = 0; i < 2000; i++)
		check_copy(dtypes[random_below(5)]);
}
END_TEST

START_TEST(large_copies_use_threads)
{
	enum { N = 700, M = 1000 };
	int32_t *from = malloc(N * M * sizeof(*from)), *to = malloc(N * M * sizeof(*to));
	for (int i = 0; i < N * M; i++)
		from[i] = i;
	int64_t dims[2] = {M, N}, row[2] = {N, 1}, column[2] = {1, M};
	struct lth_builtin_tensor a = {.data = to, .dtype = LTH_DTYPE_I32, .rank = 2, .dims = dims, .strides = row};
	struct lth_builtin_tensor b = a;
	b.data = from;
	b.strides = column;
	lth_copy_tensor(&a, &b, threads);
	for (int i = 0; i < M; i++)
		for (int k = 0; k < N; k++)
			ck_assert_int_eq(to[i * N + k], k * M + i);
	b.strides = row;
	lth_copy_tensor(&a, &b, threads);
	ck_assert_int_eq(memcmp(to, from, N * M * sizeof(*to)), 0);
	free(from);
	free(to);
}
END_TEST

START_TEST(nonzero_lists_indices_by_axis)
{
	float x[2][3] = {{0, 1, -0.0f}, {NAN, 0, 2}};
	int64_t out[12], extent[1];
	struct operand o[3] = {dense(LTH_DTYPE_I64, out, 2, 2, 6, 0), dense(LTH_DTYPE_I64, extent, 0, 0, 0, 0),
			       dense(LTH_DTYPE_F32, x, 2, 2, 3, 0)};
	ck_assert_int_eq(call(lth_builtin_non_zero, o, 3, 2, NULL, 0, "", NULL), 0);
	const int64_t expected[6] = {0, 1, 1, 1, 0, 2};
	ck_assert_int_eq(extent[0], 3);
	ck_assert_int_eq(memcmp(out, expected, sizeof(expected)), 0);
	char message[192];
	o[0].dims[1] = 2; /* a bound that was too small: an error, not an overrun */
	ck_assert_int_eq(call(lth_builtin_non_zero, o, 3, 2, NULL, 0, "", message), LTH_KERNEL_SHAPE);
	ck_assert_str_eq(message, "3 elements that are not zero");
}
END_TEST

START_TEST(compress_along_an_axis_and_flat)
{
	int32_t x[3][2] = {{1, 2}, {3, 4}, {5, 6}}, out[6];
	int64_t extent[1];
	const unsigned char keep[5] = {0, 1, 1, 0, 1};
	struct operand o[4] = {dense(LTH_DTYPE_I32, out, 2, 3, 2, 0), dense(LTH_DTYPE_I64, extent, 0, 0, 0, 0),
			       dense(LTH_DTYPE_I32, x, 2, 3, 2, 0), dense(LTH_DTYPE_BOOL, keep, 1, 3, 0, 0)};
	ck_assert_int_eq(call(lth_builtin_compress, o, 4, 2, NULL, 0, "axis=0", NULL), 0);
	ck_assert_int_eq(extent[0], 2);
	ck_assert_int_eq(memcmp(out, (const int32_t[]){3, 4, 5, 6}, 16), 0);
	o[3].dims[0] = 2;
	ck_assert_int_eq(call(lth_builtin_compress, o, 4, 2, NULL, 0, "axis=-1", NULL), 0);
	ck_assert_int_eq(extent[0], 1);
	ck_assert_int_eq(memcmp(out, (const int32_t[]){2, 4, 6}, 12), 0);
	o[0] = dense(LTH_DTYPE_I32, out, 1, 6, 0, 0);
	o[3].dims[0] = 5;
	ck_assert_int_eq(call(lth_builtin_compress, o, 4, 2, NULL, 0, "", NULL), 0);
	ck_assert_int_eq(memcmp(out, (const int32_t[]){2, 3, 5}, 12), 0);
	ck_assert_int_eq(call(lth_builtin_compress, o, 4, 2, NULL, 0, "axis=2", NULL), LTH_KERNEL_SHAPE);
}
END_TEST

static void check_unique(struct operand in, const char *attributes, int64_t count, const void *values, size_t bytes,
			 const int64_t *first, const int64_t *inverse, int64_t slices, const int64_t *counts)
{
	char out[256];
	int64_t a[16], b[16], c[16], extent[1];
	struct operand o[6] = {in, dense(LTH_DTYPE_I64, a, 1, slices, 0, 0), dense(LTH_DTYPE_I64, b, 1, slices, 0, 0),
			       dense(LTH_DTYPE_I64, c, 1, slices, 0, 0), dense(LTH_DTYPE_I64, extent, 0, 0, 0, 0), in};
	o[0].tensor.data = out;
	ck_assert_int_eq(call(lth_builtin_unique, o, 6, 5, NULL, 0, attributes, NULL), 0);
	ck_assert_int_eq(extent[0], count);
	ck_assert_int_eq(memcmp(out, values, bytes), 0);
	ck_assert_int_eq(memcmp(a, first, (size_t)count * 8), 0);
	ck_assert_int_eq(memcmp(b, inverse, (size_t)slices * 8), 0);
	ck_assert_int_eq(memcmp(c, counts, (size_t)count * 8), 0);
}

START_TEST(unique_as_the_specification_shows)
{
	const float flat[6] = {2, 1, 1, 3, 4, 3};
	struct operand in = dense(LTH_DTYPE_F32, flat, 1, 6, 0, 0);
	check_unique(in, "sorted=0", 4, (const float[]){2, 1, 3, 4}, 16, (const int64_t[]){0, 1, 3, 4},
		     (const int64_t[]){0, 1, 1, 2, 3, 2}, 6, (const int64_t[]){1, 2, 2, 1});
	check_unique(in, "", 4, (const float[]){1, 2, 3, 4}, 16, (const int64_t[]){1, 0, 3, 4},
		     (const int64_t[]){1, 0, 0, 2, 3, 2}, 6, (const int64_t[]){2, 1, 2, 1});
	const float rows[3][3] = {{1, 0, 0}, {1, 0, 0}, {2, 3, 4}};
	in = dense(LTH_DTYPE_F32, rows, 2, 3, 3, 0);
	check_unique(in, "axis=0", 2, (const float[]){1, 0, 0, 2, 3, 4}, 24, (const int64_t[]){0, 2},
		     (const int64_t[]){0, 0, 1}, 3, (const int64_t[]){2, 1});
	const float cube[2][4][2] = {{{1, 1}, {0, 1}, {2, 1}, {0, 1}}, {{1, 1}, {0, 1}, {2, 1}, {0, 1}}};
	in = dense(LTH_DTYPE_F32, cube, 3, 2, 4, 2);
	check_unique(in, "axis=1", 3, (const float[]){0, 1, 1, 1, 2, 1, 0, 1, 1, 1, 2, 1}, 48,
		     (const int64_t[]){1, 0, 2}, (const int64_t[]){1, 0, 2, 0}, 4, (const int64_t[]){2, 1, 1});
	const struct lth_string words[3] = {{"b", 1}, {"aa", 2}, {"b", 1}};
	in = dense(LTH_DTYPE_STRING, words, 1, 3, 0, 0);
	const struct lth_string sorted[2] = {words[1], words[0]};
	check_unique(in, "", 2, sorted, sizeof(sorted), (const int64_t[]){1, 0}, (const int64_t[]){1, 0, 1}, 3,
		     (const int64_t[]){1, 2});
}
END_TEST

START_TEST(topk_orders_and_breaks_ties_by_index)
{
	const float x[2][4] = {{1, 3, 3, 2}, {NAN, 5, -1, INFINITY}};
	float values[4];
	int64_t indices[4];
	struct operand o[3] = {dense(LTH_DTYPE_F32, values, 2, 2, 2, 0), dense(LTH_DTYPE_I64, indices, 2, 2, 2, 0),
			       dense(LTH_DTYPE_F32, x, 2, 2, 4, 0)};
	ck_assert_int_eq(call(lth_builtin_top_k, o, 3, 2, NULL, 0, "", NULL), 0);
	ck_assert_int_eq(memcmp(indices, (const int64_t[]){1, 2, 0, 3}, 32), 0);
	ck_assert(values[1] == 3 && isnan(values[2]) && isinf(values[3]));
	ck_assert_int_eq(call(lth_builtin_top_k, o, 3, 2, NULL, 0, "largest=0", NULL), 0);
	ck_assert_int_eq(memcmp(indices, (const int64_t[]){0, 3, 2, 1}, 32), 0);
	o[0] = dense(LTH_DTYPE_F32, values, 2, 1, 4, 0);
	o[1] = dense(LTH_DTYPE_I64, indices, 2, 1, 4, 0);
	ck_assert_int_eq(call(lth_builtin_top_k, o, 3, 2, NULL, 0, "axis=0;largest=1", NULL), 0);
	ck_assert_int_eq(memcmp(indices, (const int64_t[]){1, 1, 0, 1}, 32), 0);
	o[0].dims[0] = 3;
	ck_assert_int_eq(call(lth_builtin_top_k, o, 3, 2, NULL, 0, "axis=0", NULL), LTH_KERNEL_SHAPE);
}
END_TEST

/* Floats are passed over a block at a time: rows of many ties, of nan, and best elements in every place of a block. */
START_TEST(topk_of_long_float_rows)
{
	enum { ROWS = 60, N = 203, K = 9 };
	static float x[ROWS][N], values[ROWS][K];
	static int64_t indices[ROWS][K];
	static const char *const ways[2] = {"largest=0", "largest=1"};
	state = 11;
	for (int r = 0; r < ROWS; r++) {
		for (int i = 0; i < N; i++)
			x[r][i] = (float)random_below(r % 2 ? 12 : 100000) - 6;
		x[r][(r * 7) % N] = r % 3 ? -INFINITY : NAN;
	}
	struct operand o[3] = {dense(LTH_DTYPE_F32, values, 2, ROWS, K, 0),
			       dense(LTH_DTYPE_I64, indices, 2, ROWS, K, 0),
			       dense(LTH_DTYPE_F32, x, 2, ROWS, N, 0)};
	for (int largest = 0; largest < 2; largest++) {
		ck_assert_int_eq(call(lth_builtin_top_k, o, 3, 2, NULL, 0, ways[largest], NULL), 0);
		for (int r = 0; r < ROWS; r++)
			for (int i = 0; i < K; i++) {
				const float *own = &x[r][indices[r][i]];
				int before = 0;
				for (int j = 0; j < N; j++) {
					int order = lth_compare(&x[r][j], own, LTH_DTYPE_F32);
					before += (largest ? order > 0 : order < 0) || (order == 0 && j < indices[r][i]);
				}
				ck_assert_int_eq(before, i);
			}
	}
}
END_TEST

START_TEST(topk_of_random_rows)
{
	enum { ROWS = 50, N = 1000, K = 37 };
	static int32_t x[ROWS][N], values[ROWS][K];
	static int64_t indices[ROWS][K];
	state = 7;
	for (int r = 0; r < ROWS; r++)
		for (int i = 0; i < N; i++)
			x[r][i] = (int32_t)random_below(300);
	struct operand o[3] = {dense(LTH_DTYPE_I32, values, 2, ROWS, K, 0),
			       dense(LTH_DTYPE_I64, indices, 2, ROWS, K, 0),
			       dense(LTH_DTYPE_I32, x, 2, ROWS, N, 0)};
	ck_assert_int_eq(call(lth_builtin_top_k, o, 3, 2, NULL, 0, "", NULL), 0);
	for (int r = 0; r < ROWS; r++)
		for (int i = 0; i < K; i++) {
			int before = 0; /* elements that come in front of this one */
			for (int j = 0; j < N; j++)
				before += x[r][j] > values[r][i] || (x[r][j] == values[r][i] && j < indices[r][i]);
			ck_assert_int_eq(before, i);
			ck_assert_int_eq(values[r][i], x[r][indices[r][i]]);
		}
}
END_TEST

static int64_t run_nms(const float *boxes, const float *scores, int64_t n, int64_t classes, int64_t most, float iou,
		       const float *threshold, const char *attributes, int64_t *out)
{
	int64_t extent[1] = {-1};
	struct operand o[7] = {dense(LTH_DTYPE_I64, out, 2, 12, 3, 0), dense(LTH_DTYPE_I64, extent, 0, 0, 0, 0),
			       dense(LTH_DTYPE_F32, boxes, 3, 1, n, 4), dense(LTH_DTYPE_F32, scores, 3, 1, classes, n),
			       dense(LTH_DTYPE_I64, &most, 0, 0, 0, 0), dense(LTH_DTYPE_F32, &iou, 1, 1, 0, 0),
			       dense(LTH_DTYPE_F32, threshold, 0, 0, 0, 0)};
	ck_assert_int_eq(call(lth_builtin_non_max_suppression, o, 7, 2, NULL, 0, attributes, NULL), 0);
	return extent[0];
}

/* The cases of the operator's specification. */
START_TEST(nms_as_the_specification_shows)
{
	const float boxes[6][4] = {{0, 0, 1, 1},       {0, 0.1f, 1, 1.1f},   {0, -0.1f, 1, 0.9f},
				   {0, 10, 1, 11},     {0, 10.1f, 1, 11.1f}, {0, 100, 1, 101}};
	const float flipped[6][4] = {{1, 1, 0, 0},     {0, 0.1f, 1, 1.1f},   {0, 0.9f, 1, -0.1f},
				     {0, 10, 1, 11},   {1, 10.1f, 0, 11.1f}, {1, 101, 0, 100}};
	const float centred[6][4] = {{0.5f, 0.5f, 1, 1},  {0.5f, 0.6f, 1, 1},  {0.5f, 0.4f, 1, 1},
				     {0.5f, 10.5f, 1, 1}, {0.5f, 10.6f, 1, 1}, {0.5f, 100.5f, 1, 1}};
	const float scores[12] = {0.9f, 0.75f, 0.6f, 0.95f, 0.5f, 0.3f, 0.9f, 0.75f, 0.6f, 0.95f, 0.5f, 0.3f};
	const float zero = 0, high = 0.4f;
	int64_t out[36];
	ck_assert_int_eq(run_nms(boxes[0], scores, 6, 1, 3, 0.5f, &zero, "", out), 3);
	ck_assert_int_eq(memcmp(out, (const int64_t[]){0, 0, 3, 0, 0, 0, 0, 0, 5}, 72), 0);
	ck_assert_int_eq(run_nms(flipped[0], scores, 6, 1, 3, 0.5f, &zero, "", out), 3);
	ck_assert_int_eq(memcmp(out, (const int64_t[]){0, 0, 3, 0, 0, 0, 0, 0, 5}, 72), 0);
	ck_assert_int_eq(run_nms(centred[0], scores, 6, 1, 3, 0.5f, &zero, "center_point_box=1", out), 3);
	ck_assert_int_eq(memcmp(out, (const int64_t[]){0, 0, 3, 0, 0, 0, 0, 0, 5}, 72), 0);
	ck_assert_int_eq(run_nms(boxes[0], scores, 6, 1, 3, 0.5f, &high, "", out), 2);
	ck_assert_int_eq(run_nms(boxes[0], scores, 6, 1, 3, 0.5f, NULL, "", out), 3);
	ck_assert_int_eq(run_nms(boxes[0], scores, 6, 1, 0, 0.5f, NULL, "", out), 0);
	ck_assert_int_eq(run_nms(boxes[0], scores, 6, 2, 2, 0.5f, &zero, "", out), 4);
	ck_assert_int_eq(memcmp(out, (const int64_t[]){0, 0, 3, 0, 0, 0, 0, 1, 3, 0, 1, 0}, 96), 0);
}
END_TEST

START_TEST(keys_order_as_values_do)
{
	const float f[] = {-INFINITY, -2, -1e-45f, 0, 1e-45f, 1, INFINITY, NAN};
	for (int i = 0; i + 1 < 8; i++)
		ck_assert(lth_key(&f[i], LTH_DTYPE_F32) < lth_key(&f[i + 1], LTH_DTYPE_F32));
	const float negative_zero = -0.0f;
	ck_assert(lth_key(&negative_zero, LTH_DTYPE_F32) == lth_key(&f[3], LTH_DTYPE_F32));
	const int8_t i8[] = {-128, -1, 0, 127};
	for (int i = 0; i + 1 < 4; i++)
		ck_assert(lth_key(&i8[i], LTH_DTYPE_I8) < lth_key(&i8[i + 1], LTH_DTYPE_I8));
	ck_assert(lth_small_float(0x3c00, LTH_DTYPE_F16) == 1 && lth_small_float(0x0001, LTH_DTYPE_F16) == 0x1p-24);
	ck_assert(isinf(lth_small_float(0xfc00, LTH_DTYPE_F16)) && isnan(lth_small_float(0x7e00, LTH_DTYPE_F16)));
	ck_assert(lth_small_float(0xbf80, LTH_DTYPE_BF16) == -1);
	ck_assert(lth_small_float(0x7e, LTH_DTYPE_F8E4M3) == 448 && isnan(lth_small_float(0xff, LTH_DTYPE_F8E4M3)));
	ck_assert(lth_small_float(0x7f, LTH_DTYPE_F8E4M3UZ) == 240 && isnan(lth_small_float(0x80, LTH_DTYPE_F8E4M3UZ)));
	ck_assert(lth_small_float(0x7b, LTH_DTYPE_F8E5M2) == 57344 && isinf(lth_small_float(0x7c, LTH_DTYPE_F8E5M2)));
	ck_assert(lth_small_float(0x7f, LTH_DTYPE_F8E5M2UZ) == 57344);
	ck_assert(lth_small_float(127, LTH_DTYPE_F8E8M0) == 1 && isnan(lth_small_float(255, LTH_DTYPE_F8E8M0)));
}
END_TEST

START_TEST(pool_reuses_blocks_and_counts)
{
	struct lth_pool *p = lth_pool_create();
	const struct lth_pool_counters *c = lth_pool_counters(p);
	for (int64_t bytes = 0; bytes < 100000; bytes = bytes * 3 / 2 + 1) {
		char *block = lth_pool_take(p, bytes);
		ck_assert_uint_eq((uintptr_t)block % 64, 0);
		memset(block, 1, (size_t)bytes);
		lth_pool_give(p, block, bytes);
		ck_assert_ptr_eq(lth_pool_take(p, bytes), block); /* the same block again */
		ck_assert_int_eq(c->used_bytes, bytes);
		lth_pool_give(p, block, bytes);
	}
	void *page = lth_pool_take_aligned(p, 8192, 4096);
	ck_assert_uint_eq((uintptr_t)page % 4096, 0);
	ck_assert_ptr_null(lth_pool_take(p, -1));
	ck_assert_ptr_null(lth_pool_take(p, INT64_MAX));
	ck_assert_uint_eq(c->takes, c->gives + 1);
	lth_pool_trim(p);
	ck_assert_int_eq(c->reserved_bytes, 8192);
	lth_pool_give(p, page, 8192);
	lth_pool_destroy(&p);
}
END_TEST

START_TEST(scatter_elements_along_an_axis)
{
	const float data[3][3] = {{0}}, updates[2][3] = {{1, 1.1f, 1.2f}, {2, 2.1f, 2.2f}};
	const int64_t indices[2][3] = {{1, 0, 2}, {0, 2, -2}};
	float out[3][3];
	struct operand o[4] = {dense(LTH_DTYPE_F32, out, 2, 3, 3, 0), dense(LTH_DTYPE_F32, data, 2, 3, 3, 0),
			       dense(LTH_DTYPE_I64, indices, 2, 2, 3, 0), dense(LTH_DTYPE_F32, updates, 2, 2, 3, 0)};
	ck_assert_int_eq(call(lth_builtin_scatter_elements, o, 4, 1, NULL, 0, "axis=0;reduction=none", NULL), 0);
	const float expected[9] = {2, 1.1f, 0, 1, 0, 2.2f, 0, 2.1f, 1.2f};
	ck_assert_int_eq(memcmp(out, expected, sizeof(expected)), 0);
	const float five[1][5] = {{1, 2, 3, 4, 5}}, two[1][2] = {{1.1f, 2.1f}};
	const int32_t twice[1][2] = {{1, 1}};
	float row[1][5];
	o[0] = dense(LTH_DTYPE_F32, row, 2, 1, 5, 0);
	o[1] = dense(LTH_DTYPE_F32, five, 2, 1, 5, 0);
	o[2] = dense(LTH_DTYPE_I32, twice, 2, 1, 2, 0);
	o[3] = dense(LTH_DTYPE_F32, two, 2, 1, 2, 0);
	ck_assert_int_eq(call(lth_builtin_scatter_elements, o, 4, 1, NULL, 0, "reduction=add;axis=1", NULL), 0);
	ck_assert(fabsf(row[0][1] - 5.2f) < 1e-6f && row[0][4] == 5);
	ck_assert_int_eq(call(lth_builtin_scatter_elements, o, 4, 1, NULL, 0, "reduction=max;axis=1", NULL), 0);
	ck_assert(row[0][1] == 2.1f);
	char message[192];
	const int32_t outside[1][2] = {{1, 5}};
	o[2] = dense(LTH_DTYPE_I32, outside, 2, 1, 2, 0);
	ck_assert_int_eq(call(lth_builtin_scatter_elements, o, 4, 1, NULL, 0, "axis=1", message), LTH_KERNEL_INDEX);
	ck_assert_str_eq(message, "index 5 on an axis of 5");
}
END_TEST

START_TEST(scatter_nd_elements_and_slices)
{
	const int32_t data[8] = {1, 2, 3, 4, 5, 6, 7, 8}, updates[4] = {9, 10, 11, 12};
	const int64_t indices[4][1] = {{4}, {3}, {1}, {7}};
	int32_t out[8];
	struct operand o[4] = {dense(LTH_DTYPE_I32, out, 1, 8, 0, 0), dense(LTH_DTYPE_I32, data, 1, 8, 0, 0),
			       dense(LTH_DTYPE_I64, indices, 2, 4, 1, 0), dense(LTH_DTYPE_I32, updates, 1, 4, 0, 0)};
	ck_assert_int_eq(call(lth_builtin_scatter_nd, o, 4, 1, NULL, 0, "", NULL), 0);
	const int32_t expected[8] = {1, 11, 3, 10, 9, 6, 7, 12};
	ck_assert_int_eq(memcmp(out, expected, sizeof(expected)), 0);
	const int64_t rows[2][1] = {{1}, {1}};
	o[0] = dense(LTH_DTYPE_I32, out, 2, 4, 2, 0);
	o[1] = dense(LTH_DTYPE_I32, data, 2, 4, 2, 0);
	o[2] = dense(LTH_DTYPE_I64, rows, 2, 2, 1, 0);
	o[3] = dense(LTH_DTYPE_I32, updates, 2, 2, 2, 0);
	ck_assert_int_eq(call(lth_builtin_scatter_nd, o, 4, 1, NULL, 0, "reduction=mul", NULL), 0);
	ck_assert(out[2] == 3 * 9 * 11 && out[3] == 4 * 10 * 12 && out[0] == 1);
	o[3].dims[1] = 1;
	ck_assert_int_eq(call(lth_builtin_scatter_nd, o, 4, 1, NULL, 0, "", NULL), LTH_KERNEL_SHAPE);
}
END_TEST

START_TEST(small_floats_round_trip_and_round_to_even)
{
	static const struct {
		enum lth_dtype dtype;
		uint32_t patterns;
	} types[] = {{LTH_DTYPE_F16, 65536}, {LTH_DTYPE_BF16, 65536}, {LTH_DTYPE_F8E4M3, 256},
		     {LTH_DTYPE_F8E4M3UZ, 256}, {LTH_DTYPE_F8E5M2, 256}, {LTH_DTYPE_F8E5M2UZ, 256},
		     {LTH_DTYPE_F8E8M0, 256}};
	for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++)
		for (uint32_t bits = 0; bits < types[t].patterns; bits++) {
			double value = lth_small_float(bits, types[t].dtype);
			uint32_t back = lth_small_float_bits(value, types[t].dtype);
			ck_assert_msg(isnan(value) ? isnan(lth_small_float(back, types[t].dtype)) : back == bits,
				      "%s %x: %g became %x", lth_dtype_text(types[t].dtype), bits, value, back);
		}
	ck_assert_uint_eq(lth_small_float_bits(1 + 0x1p-11, LTH_DTYPE_F16), 0x3c00);     /* a tie, down to even */
	ck_assert_uint_eq(lth_small_float_bits(1 + 3 * 0x1p-11, LTH_DTYPE_F16), 0x3c02); /* a tie, up to even */
	ck_assert_uint_eq(lth_small_float_bits(65519, LTH_DTYPE_F16), 0x7bff);
	ck_assert_uint_eq(lth_small_float_bits(65520, LTH_DTYPE_F16), 0x7c00);
	ck_assert_uint_eq(lth_small_float_bits(0x1p-25, LTH_DTYPE_F16), 0);
	ck_assert_uint_eq(lth_small_float_bits(-0x1.8p-25, LTH_DTYPE_F16), 0x8001);
	ck_assert_uint_eq(lth_small_float_bits(1e9, LTH_DTYPE_F8E4M3), 0x7f);
}
END_TEST

START_TEST(strings_reuse_their_blocks)
{
	struct lth_strings strings = {.pool = pool};
	for (int round = 0; round < 3; round++) {
		char *first = NULL;
		lth_strings_reset(&strings);
		for (size_t bytes = 0; bytes < 200000; bytes = bytes * 2 + 1) {
			char *text = lth_strings_take(&strings, bytes);
			ck_assert_ptr_nonnull(text);
			memset(text, round, bytes);
			first = first ? first : text;
			ck_assert(text == first || bytes == 0 || *first == round);
		}
		if (round)
			ck_assert_uint_eq(lth_pool_counters(pool)->takes, lth_pool_counters(pool)->system_calls);
	}
	ck_assert_ptr_null(lth_strings_take(&strings, SIZE_MAX));
	lth_strings_free(&strings);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("kernels");
	TCase *tests = tcase_create("kernels");
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, copies_of_random_layouts);
	tcase_add_test(tests, large_copies_use_threads);
	tcase_add_test(tests, nonzero_lists_indices_by_axis);
	tcase_add_test(tests, compress_along_an_axis_and_flat);
	tcase_add_test(tests, unique_as_the_specification_shows);
	tcase_add_test(tests, topk_orders_and_breaks_ties_by_index);
	tcase_add_test(tests, topk_of_random_rows);
	tcase_add_test(tests, topk_of_long_float_rows);
	tcase_add_test(tests, nms_as_the_specification_shows);
	tcase_add_test(tests, keys_order_as_values_do);
	tcase_add_test(tests, scatter_elements_along_an_axis);
	tcase_add_test(tests, scatter_nd_elements_and_slices);
	tcase_add_test(tests, small_floats_round_trip_and_round_to_even);
	tcase_add_test(tests, strings_reuse_their_blocks);
	tcase_add_test(tests, pool_reuses_blocks_and_counts);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
