/* Products of bytes less their zero points, by the matrix product, convolution and depthwise templates, against plain
 * sums: equal to the last bit, for every pairing of signed and unsigned bytes, zero points of any kind, tails of
 * channels and columns, with and without a dot product instruction. Operands end where memory ends. */
#include "tests/unit/template_rig.h"
#include "tests/unit/run_suite.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Bytes that end at a page that cannot be read. */
struct bytes {
	enum lth_dtype dtype;
	void *map, *data;
	size_t mapped;
};

static struct bytes random_bytes(enum lth_dtype dtype, int64_t count, bool extreme)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = ((size_t)count + page - 1) / page * page;
	struct bytes out = {.dtype = dtype, .mapped = size + page};
	out.map = mmap(NULL, out.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert(out.map != MAP_FAILED);
	ck_assert_int_eq(mprotect((char *)out.map + size, page, PROT_NONE), 0);
	out.data = (char *)out.map + size - count;
	for (int64_t i = 0; i < count; i++)
		((uint8_t *)out.data)[i] = (uint8_t)(extreme ? rig_uniform(0, 1) * 255 : rig_uniform(0, 255));
	if (extreme && dtype == LTH_DTYPE_I8)
		for (int64_t i = 0; i < count; i++)
			((uint8_t *)out.data)[i] ^= 0x80;
	return out;
}

static int64_t byte_at(const struct bytes *bytes, int64_t at)
{
	return bytes->dtype == LTH_DTYPE_U8 ? ((const uint8_t *)bytes->data)[at] : ((const int8_t *)bytes->data)[at];
}

/* An operand whose constant stays where it is until it is packed. */
static struct lth_operand operand_of(struct rig *rig, const struct bytes *bytes, bool constant)
{
	struct lth_operand operand = rig_operand(rig, bytes->data, bytes->dtype, false);
	operand.constant = constant;
	return operand;
}

/* Zero points as a model has them: none, one in the middle, one anywhere, one a column. */
struct zeros {
	bool has_a, has_b, by_column;
	struct bytes a, b;
};

static struct zeros random_zeros(enum lth_dtype a, enum lth_dtype b, int64_t columns)
{
	int64_t kind = rig_uniform(0, 3);
	struct zeros out = {.has_a = rig_uniform(0, 3) != 0, .has_b = kind != 0, .by_column = kind == 3 && columns > 1};
	out.a = random_bytes(a, 1, false);
	out.b = random_bytes(b, out.by_column ? columns : 1, false);
	if (kind == 1)
		*(uint8_t *)out.b.data = b == LTH_DTYPE_U8 ? 128 : 0;
	return out;
}

/* Of B they may be `computed`: read by the kernel. */
static void set_zeros(struct rig *rig, const struct zeros *zeros, enum lth_dtype w, bool computed,
		      struct lth_problem *problem)
{
	struct lth_zero_points *out = &problem->zero_points;
	uint8_t middle = w == LTH_DTYPE_U8 ? 128 : 0;
	*out = (struct lth_zero_points){.a = {.pointer = LTH_LV_NONE},
					.b_read = {.pointer = LTH_LV_NONE, .constant = true},
					.wide = !zeros->has_b && middle};
	if (zeros->has_a)
		out->a = operand_of(rig, &zeros->a, false);
	if (!zeros->has_b)
		return;
	if (computed)
		out->b_read = operand_of(rig, &zeros->b, false);
	else
		out->b = zeros->b.data;
	out->b_by_column = zeros->by_column;
	out->wide = zeros->by_column || *(const uint8_t *)zeros->b.data != middle;
}

static int64_t a_zero(const struct zeros *zeros)
{
	return zeros->has_a ? byte_at(&zeros->a, 0) : 0;
}

static int64_t b_zero(const struct zeros *zeros, int64_t column)
{
	return zeros->has_b ? byte_at(&zeros->b, zeros->by_column ? column : 0) : 0;
}

static enum lth_dtype any_byte(void)
{
	return rig_uniform(0, 1) ? LTH_DTYPE_U8 : LTH_DTYPE_I8;
}

static void start(struct rig *rig)
{
	rig_start(rig, (enum rig_machine)rig_uniform(0, RIG_NUM_MACHINES - 1), LTH_DTYPE_I32, rig_uniform(0, 1));
	rig->machine.dot4 = rig->native = rig->kind == RIG_AVX512 && rig_uniform(0, 1);
}

static void unmap(const struct bytes *bytes)
{
	munmap(bytes->map, bytes->mapped);
}

static void run_product(int64_t rows, int64_t k, int64_t n, bool extreme)
{
	struct rig rig;
	struct lth_problem problem = {.kind = LTH_PROBLEM_GEMM, .compute = LTH_DTYPE_I32};
	struct lth_gemm *gemm = &problem.gemm;
	struct lth_template_plan plan;
	bool turned = rig_uniform(0, 1), computed = rig_uniform(0, 1);
	struct bytes a = random_bytes(any_byte(), rows * k, extreme), b = random_bytes(any_byte(), k * n, extreme);
	struct zeros zeros = random_zeros(a.dtype, b.dtype, n);
	start(&rig);
	printf("%s[%lld, %lld] x %s%s[%lld, %lld]\n", lth_dtype_text(a.dtype), (long long)rows, (long long)k,
	       computed ? "computed " : "", lth_dtype_text(b.dtype), (long long)k, (long long)n);
	gemm->a = operand_of(&rig, &a, false);
	gemm->b = operand_of(&rig, &b, !computed);
	set_zeros(&rig, &zeros, b.dtype, computed, &problem);
	gemm->num_rows = 1;
	gemm->rows[0] = (struct lth_gemm_axis){rig_dim(&rig, rows), lth_dim_const(rig.dims, k), LTH_DIM_NONE};
	gemm->k = computed ? rig_dim(&rig, k) : lth_dim_const(rig.dims, k);
	gemm->n = computed ? rig_dim(&rig, n) : lth_dim_const(rig.dims, n);
	gemm->a_k_stride = lth_dim_const(rig.dims, 1);
	gemm->b_k_stride = lth_dim_const(rig.dims, turned ? 1 : n);
	gemm->b_n_stride = lth_dim_const(rig.dims, turned ? k : 1);
	rig_output(&rig, 0, 2, (int64_t[]){rows, n}, (uint32_t[]){0, 1});
	ck_assert(rig_run(&rig, &problem, (struct lth_operand *[]){computed ? NULL : &gemm->b, NULL}, &plan));
	for (int64_t row = 0; row < rows; row++)
		for (int64_t column = 0; column < n; column++) {
			int64_t sum = 0;
			for (int64_t i = 0; i < k; i++)
				sum += (byte_at(&a, row * k + i) - a_zero(&zeros)) *
				       (byte_at(&b, turned ? column * k + i : i * n + column) - b_zero(&zeros, column));
			ck_assert_msg(rig_at(&rig, 0, (int64_t[]){row, column}) == (double)sum,
				      "[%lld, %lld]: got %.0f, expected %lld", (long long)row, (long long)column,
				      rig_at(&rig, 0, (int64_t[]){row, column}), (long long)sum);
		}
	rig_end(&rig);
	unmap(&a);
	unmap(&b);
	unmap(&zeros.a);
	unmap(&zeros.b);
}

START_TEST(products)
{
	static const int64_t widths[] = {1, 7, 8, 15, 16, 17, 31, 33, 48, 63, 64, 65, 100, 130};
	for (int i = 0; i < 80; i++)
		run_product(rig_uniform(1, 60), rig_uniform(1, 40), widths[rig_uniform(0, 13)], false);
}
END_TEST

/* Products of the greatest bytes would saturate 16 bits. */
START_TEST(nothing_saturates)
{
	for (int i = 0; i < 12; i++)
		run_product(rig_uniform(1, 9), rig_uniform(200, 600), rig_uniform(1, 70), true);
}
END_TEST

struct window {
	int64_t batch, groups, in_channels, out_channels, in[2], out[2], kernel[2], stride, dilation, pad;
};

static int64_t expected(const struct window *s, const struct bytes *x, const struct bytes *w,
			const struct zeros *zeros, const int64_t *index)
{
	int64_t inputs = s->in_channels / s->groups, outputs = s->out_channels / s->groups, sum = 0;
	int64_t first = index[1] / outputs * inputs;
	for (int64_t tap = 0; tap < s->kernel[0] * s->kernel[1]; tap++) {
		int64_t y = index[2] * s->stride - s->pad + tap / s->kernel[1] * s->dilation;
		int64_t z = index[3] * s->stride - s->pad + tap % s->kernel[1] * s->dilation;
		if (y < 0 || y >= s->in[0] || z < 0 || z >= s->in[1])
			continue;
		int64_t pixel = ((index[0] * s->in[0] + y) * s->in[1] + z) * s->in_channels + first;
		for (int64_t c = 0; c < inputs; c++)
			sum += (byte_at(x, pixel + c) - a_zero(zeros)) *
			       (byte_at(w, (index[1] * inputs + c) * s->kernel[0] * s->kernel[1] + tap) -
				b_zero(zeros, index[1]));
	}
	return sum;
}

static void describe(struct rig *rig, const struct window *s, struct lth_conv *conv)
{
	int64_t taps = s->kernel[0] * s->kernel[1], inputs = s->in_channels / s->groups;
	conv->spatial = 2;
	conv->groups = s->groups;
	conv->batch = rig_dim(rig, s->batch);
	conv->in_channels = lth_dim_const(rig->dims, s->in_channels);
	conv->out_channels = lth_dim_const(rig->dims, s->out_channels);
	/* of a single channel, the stride means nothing */
	conv->x_channel_stride = lth_dim_const(rig->dims, s->in_channels == 1 ? s->in[0] * s->in[1] : 1);
	conv->x_batch_stride = lth_dim_const(rig->dims, s->in[0] * s->in[1] * s->in_channels);
	conv->w_out_stride = lth_dim_const(rig->dims, inputs * taps);
	conv->w_in_stride = lth_dim_const(rig->dims, taps);
	for (int i = 0; i < 2; i++) {
		conv->in[i] = rig_dim(rig, s->in[i]);
		conv->out[i] = rig_dim(rig, s->out[i]);
		conv->kernel[i] = lth_dim_const(rig->dims, s->kernel[i]);
		conv->pad[i] = conv->pad_end[i] = lth_dim_const(rig->dims, s->pad);
		conv->stride[i] = s->stride;
		conv->dilation[i] = s->dilation;
		conv->x_stride[i] = lth_dim_const(rig->dims, (i ? 1 : s->in[1]) * s->in_channels);
		conv->w_stride[i] = lth_dim_const(rig->dims, i ? 1 : s->kernel[1]);
	}
}

static void run_window(const struct window *s, const char *wanted)
{
	struct rig rig;
	struct lth_problem problem = {.kind = LTH_PROBLEM_CONV, .compute = LTH_DTYPE_I32};
	struct lth_template_plan plan;
	int64_t inputs = s->in_channels / s->groups, taps = s->kernel[0] * s->kernel[1];
	struct bytes x = random_bytes(any_byte(), s->batch * s->in[0] * s->in[1] * s->in_channels, false);
	struct bytes w = random_bytes(any_byte(), s->out_channels * inputs * taps, false);
	struct zeros zeros = random_zeros(x.dtype, w.dtype, s->out_channels);
	start(&rig);
	printf("%s -> %s g %lld c %lld->%lld in %lldx%lld k %lldx%lld s %lld d %lld p %lld\n", lth_dtype_text(x.dtype),
	       lth_dtype_text(w.dtype), (long long)s->groups, (long long)s->in_channels, (long long)s->out_channels,
	       (long long)s->in[0], (long long)s->in[1], (long long)s->kernel[0], (long long)s->kernel[1],
	       (long long)s->stride, (long long)s->dilation, (long long)s->pad);
	problem.conv.x = operand_of(&rig, &x, false);
	problem.conv.w = operand_of(&rig, &w, true);
	set_zeros(&rig, &zeros, w.dtype, false, &problem);
	describe(&rig, s, &problem.conv);
	rig_output(&rig, 0, 4, (int64_t[]){s->batch, s->out_channels, s->out[0], s->out[1]},
		   (uint32_t[]){0, 2, 3, 1});
	rig.epilogue.flat_pixels = rig_uniform(0, 1);
	ck_assert(rig_run(&rig, &problem, (struct lth_operand *[]){&problem.conv.w, NULL}, &plan));
	ck_assert_str_eq(lth_template_name(plan.chosen), wanted);
	for (int64_t flat = 0; flat < rig.outputs[0].elements; flat++) {
		int64_t index[4], rest = flat;
		for (int i = 4; i-- > 0; rest /= rig.outputs[0].extents[i])
			index[i] = rest % rig.outputs[0].extents[i];
		int64_t sum = expected(s, &x, &w, &zeros, index);
		ck_assert_msg(rig_at(&rig, 0, index) == (double)sum, "element %lld: got %.0f, expected %lld",
			      (long long)flat, rig_at(&rig, 0, index), (long long)sum);
	}
	rig_end(&rig);
	unmap(&x);
	unmap(&w);
	unmap(&zeros.a);
	unmap(&zeros.b);
}

static struct window random_window(void)
{
	struct window s = {.batch = rig_uniform(1, 2), .stride = rig_uniform(1, 2), .dilation = rig_uniform(1, 2)};
	do {
		s.pad = rig_uniform(0, 2);
		for (int i = 0; i < 2; i++) {
			s.in[i] = rig_uniform(1, 12);
			s.kernel[i] = rig_uniform(1, 3);
			s.out[i] = (s.in[i] + 2 * s.pad - (s.kernel[i] - 1) * s.dilation - 1) / s.stride + 1;
		}
	} while (s.in[0] + 2 * s.pad < (s.kernel[0] - 1) * s.dilation + 1 ||
		 s.in[1] + 2 * s.pad < (s.kernel[1] - 1) * s.dilation + 1);
	return s;
}

START_TEST(convolutions)
{
	for (int i = 0; i < 40; i++) {
		struct window s = random_window();
		s.groups = rig_uniform(1, 3);
		s.in_channels = s.groups == 1 && rig_uniform(0, 3) == 0 ? 1 : s.groups * rig_uniform(2, 23);
		s.out_channels = s.groups * rig_uniform(1, 70);
		run_window(&s, "conv");
	}
}
END_TEST

START_TEST(depthwise)
{
	for (int i = 0; i < 30; i++) {
		struct window s = random_window();
		s.groups = s.in_channels = rig_uniform(2, 70);
		s.out_channels = s.groups * rig_uniform(1, 2);
		run_window(&s, "depthwise");
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("templates/bytes");
	TCase *tcase = tcase_create("bytes");
	rig_seed();
	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, products);
	tcase_add_test(tcase, nothing_saturates);
	tcase_add_test(tcase, convolutions);
	tcase_add_test(tcase, depthwise);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
