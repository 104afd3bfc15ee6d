/* Speed of the kernel templates on this machine: GFLOP/s and the ratio to the peak of fused multiply-adds measured in
 * the same run, one thread, activations warm. Also LLVM's time for each kernel.
 *
 * Usage: bench/kernels/kernels [PART-OF-A-NAME] */
#include "tests/unit/template_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A kernel ready to be timed. */
struct timed {
	lathe_kernel_fn kernel;
	const struct lathe_kernel_call *call;
	int64_t units, turns;
	double best_ns; /* a call */
};

/* CPU time, so that other work on the machine disturbs less. */
static uint64_t cpu_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void time_once(struct timed *timed)
{
	uint64_t start = cpu_ns();
	for (int64_t i = 0; i < timed->turns; i++)
		if (timed->kernel(timed->call, 0, timed->units))
			abort();
	double ns = (double)(cpu_ns() - start) / (double)timed->turns;
	timed->best_ns = timed->best_ns == 0 || ns < timed->best_ns ? ns : timed->best_ns;
}

/* The best of several timings of about 3 ms each, taken in turn, so that both see the same machine. */
static void time_both(struct timed *a, struct timed *b)
{
	struct timed *both[] = {a, b};
	for (int i = 0; i < 2; i++) {
		both[i]->turns = 1;
		time_once(both[i]);
		both[i]->turns = (int64_t)(3000000 / (both[i]->best_ns + 1)) + 1;
		both[i]->best_ns = 0;
	}
	for (int repeat = 0; repeat < 25; repeat++)
		for (int i = 0; i < 2; i++)
			time_once(both[i]);
}

/* Independent chains of multiply-adds, no memory. */
enum { CHAINS = 12, TURNS = 10000 };
static struct rig peak_rig;
static struct timed peak_timed;
static float peak_data[64];

static double peak(void) /* GFLOP/s, as of the last timing */
{
	return 2.0 * CHAINS * TURNS * (peak_rig.machine.vector_bytes / 4) / peak_timed.best_ns;
}

static void start(struct rig *rig);
static void prepare_peak(void)
{
	start(&peak_rig);
	struct lth_loop_fn *fn = peak_rig.emit.fn;
	struct lth_operand out = rig_operand(&peak_rig, peak_data, LTH_DTYPE_F32, true);
	unsigned lanes = peak_rig.machine.vector_bytes / 4;
	lth_lv state[CHAINS], phis[CHAINS];
	lth_lv x = lth_loop_load(fn, out.pointer, LTH_DTYPE_F32, lanes, LTH_LV_NONE);
	for (int i = 0; i < CHAINS; i++)
		state[i] = lth_loop_splat(fn, lth_loop_const_f(fn, LTH_DTYPE_F32, i), lanes);
	lth_loop_for(fn, lth_loop_i64(fn, 0), lth_loop_i64(fn, TURNS), 1, state, CHAINS, phis);
	for (int i = 0; i < CHAINS; i++)
		phis[i] = lth_loop_op3(fn, LTH_SCALAR_FMA, phis[i], x, phis[i]);
	lth_loop_end_for(fn, phis, CHAINS, state);
	for (int i = 1; i < CHAINS; i++)
		state[0] = lth_loop_op2(fn, LTH_SCALAR_ADD, state[0], state[i]);
	lth_loop_store(fn, out.pointer, state[0], LTH_DTYPE_F32, LTH_LV_NONE);
	peak_rig.call = (struct lathe_kernel_call){.pointers = peak_rig.pointers, .ints = peak_rig.values};
	peak_timed = (struct timed){.kernel = rig_compile(&peak_rig, NULL), .call = &peak_rig.call, .units = 1};
}

static const char *filter;

static void start(struct rig *rig)
{
	enum rig_machine machine = RIG_SSE;
	while (machine > 0 && rig_can_execute((enum rig_machine)(machine - 1)))
		machine--;
	const char *choice = getenv("LATHE_BENCH_MACHINE"); /* 0 AVX-512, 1 AVX2, 2 SSE */
	rig_start(rig, choice ? (enum rig_machine)atoi(choice) : machine, LTH_DTYPE_F32, false);
	rig->native = !choice;
	rig->relu = true;
	rig->epilogue.cost = 2;
}

static void report(struct rig *rig, struct lth_problem *problem, struct lth_operand *packed, const char *name)
{
	struct lth_template_plan plan;
	double ms, flops;
	int64_t count;
	if (!rig_prepare(rig, problem, (struct lth_operand *[]){packed, packed}, &plan)) {
		printf("%-34s no template\n", name);
		return;
	}
	lathe_kernel_fn kernel = rig_compile(rig, &ms);
	flops = lth_dim_eval_hint(rig->dims, plan.flops, &count) ? (double)count : 0;
	struct timed timed = {.kernel = kernel, .call = &rig->call, .units = rig->units};
	peak_timed.best_ns = 0;
	time_both(&timed, &peak_timed);
	double ns = timed.best_ns;
	printf("%-34s %-10s %9.1f us %7.1f GF/s %5.2f of peak  %5.1f ms compile\n", name,
	       lth_template_name(plan.chosen), ns / 1e3, flops / ns, flops / ns / peak(), ms);
	fflush(stdout);
}

static void bench_gemm(int64_t m, int64_t n, int64_t k, bool transposed, bool constant)
{
	char name[64];
	struct rig rig;
	struct lth_problem problem = {.kind = LTH_PROBLEM_GEMM, .compute = LTH_DTYPE_F32};
	struct lth_gemm *gemm = &problem.gemm;
	snprintf(name, sizeof(name), "gemm %lldx%lldx%lld%s%s", (long long)m, (long long)n, (long long)k,
		 constant ? "" : " computed", transposed ? " B^T" : "");
	if (filter && !strstr(name, filter))
		return;
	start(&rig);
	gemm->a = rig_operand(&rig, rig_random(&rig, m * k), LTH_DTYPE_F32, false);
	gemm->b = rig_operand(&rig, rig_random(&rig, n * k), LTH_DTYPE_F32, false);
	gemm->b.constant = constant;
	gemm->num_rows = 1;
	gemm->rows[0] = (struct lth_gemm_axis){rig_dim(&rig, m), lth_dim_const(rig.dims, k), LTH_DIM_NONE};
	gemm->k = lth_dim_const(rig.dims, k);
	gemm->n = lth_dim_const(rig.dims, n);
	gemm->a_k_stride = lth_dim_const(rig.dims, 1);
	gemm->b_k_stride = lth_dim_const(rig.dims, transposed ? 1 : n);
	gemm->b_n_stride = lth_dim_const(rig.dims, transposed ? k : 1);
	rig_output(&rig, 0, 2, (int64_t[]){m, n}, (uint32_t[]){0, 1});
	report(&rig, &problem, &gemm->b, name);
	rig_end(&rig);
}

/* c channels in, oc out, square image and kernel, padding that keeps the size at stride 1. */
static void bench_conv(int64_t c, int64_t oc, int64_t groups, int64_t size, int64_t kernel, int64_t stride,
		       int64_t dilation, bool channels_first)
{
	char name[64];
	struct rig rig;
	struct lth_problem problem = {.kind = LTH_PROBLEM_CONV, .compute = LTH_DTYPE_F32};
	struct lth_conv *conv = &problem.conv;
	int64_t pad = (kernel - 1) / 2 * dilation, out = (size + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1;
	snprintf(name, sizeof(name), "conv %lldx%lld %lld->%lld @%lld s%lld d%lld%s%s", (long long)kernel,
		 (long long)kernel, (long long)c, (long long)oc, (long long)size, (long long)stride,
		 (long long)dilation, groups > 1 ? " groups" : "", channels_first ? " NCHW" : "");
	if (filter && !strstr(name, filter))
		return;
	start(&rig);
	conv->x = rig_operand(&rig, rig_random(&rig, c * size * size), LTH_DTYPE_F32, false);
	conv->w = rig_operand(&rig, rig_random(&rig, oc * c / groups * kernel * kernel), LTH_DTYPE_F32, false);
	conv->w.constant = true;
	conv->spatial = 2;
	conv->groups = groups;
	conv->batch = rig_dim(&rig, 1);
	conv->in_channels = rig_dim(&rig, c);
	conv->out_channels = rig_dim(&rig, oc);
	conv->x_batch_stride = rig_dim(&rig, c * size * size);
	conv->x_channel_stride = rig_dim(&rig, channels_first ? size * size : 1);
	conv->w_out_stride = rig_dim(&rig, c / groups * kernel * kernel);
	conv->w_in_stride = rig_dim(&rig, kernel * kernel);
	for (int i = 0; i < 2; i++) {
		conv->in[i] = rig_dim(&rig, size);
		conv->out[i] = rig_dim(&rig, out);
		conv->kernel[i] = rig_dim(&rig, kernel);
		conv->pad[i] = conv->pad_end[i] = rig_dim(&rig, pad);
		conv->stride[i] = stride;
		conv->dilation[i] = dilation;
		conv->x_stride[i] = rig_dim(&rig, (i ? 1 : size) * (channels_first ? 1 : c));
		conv->w_stride[i] = rig_dim(&rig, i ? 1 : kernel);
	}
	rig_output(&rig, 0, 4, (int64_t[]){1, oc, out, out}, (uint32_t[]){0, 2, 3, 1});
	rig.epilogue.flat_pixels = true;
	rig.epilogue.unit_axis = 1;
	report(&rig, &problem, &conv->w, name);
	rig_end(&rig);
}

static void bench_pool(enum lth_pool_kind kind, int64_t c, int64_t size, int64_t kernel, int64_t stride, int64_t pad)
{
	char name[64];
	struct rig rig;
	struct lth_problem problem = {.kind = LTH_PROBLEM_POOL, .compute = LTH_DTYPE_F32};
	struct lth_pool *pool = &problem.pool;
	int64_t out = (size + 2 * pad - kernel) / stride + 1;
	snprintf(name, sizeof(name), "%spool %lldx%lld/%lld %lld@%lld", kind == LTH_POOL_MAX ? "max" : "avg",
		 (long long)kernel, (long long)kernel, (long long)stride, (long long)c, (long long)size);
	if (filter && !strstr(name, filter))
		return;
	start(&rig);
	pool->x = rig_operand(&rig, rig_random(&rig, c * size * size), LTH_DTYPE_F32, false);
	pool->kind = kind;
	pool->spatial = 2;
	pool->batch = rig_dim(&rig, 1);
	pool->channels = rig_dim(&rig, c);
	pool->x_batch_stride = rig_dim(&rig, c * size * size);
	pool->x_channel_stride = rig_dim(&rig, 1);
	for (int i = 0; i < 2; i++) {
		pool->in[i] = rig_dim(&rig, size);
		pool->out[i] = rig_dim(&rig, out);
		pool->kernel[i] = rig_dim(&rig, kernel);
		pool->pad[i] = pool->pad_end[i] = rig_dim(&rig, pad);
		pool->stride[i] = stride;
		pool->dilation[i] = 1;
		pool->x_stride[i] = rig_dim(&rig, (i ? 1 : size) * c);
	}
	rig_output(&rig, 0, 4, (int64_t[]){1, c, out, out}, (uint32_t[]){0, 2, 3, 1});
	report(&rig, &problem, &pool->x, name);
	rig_end(&rig);
}

static void all_products(void)
{
	static const int64_t sizes[][3] = {{1024, 1024, 1024}, {512, 1024, 256}, {128, 3072, 768}, {128, 768, 3072},
					   {197, 768, 768},    {40, 384, 128},   {16, 1024, 256},  {16, 3072, 768},
					   {8, 1024, 1024},    {4, 1024, 1024},  {2, 1024, 1024},  {1, 1024, 1024},
					   {1, 3072, 768},     {1, 257, 512},    {128, 24, 64},    {128, 40, 64},
					   {100, 6625, 120}};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		bench_gemm(sizes[i][0], sizes[i][1], sizes[i][2], true, true);
	bench_gemm(128, 128, 64, true, false);
	bench_gemm(128, 64, 128, false, false);
	bench_gemm(512, 512, 64, true, false);
	bench_gemm(1024, 1024, 1024, false, false);
}

static void all_convolutions(void)
{
	static const int64_t layers[][7] = {
		/* in, out, groups, size, kernel, stride, dilation */
		{64, 64, 1, 56, 3, 1, 1},     {128, 128, 1, 28, 3, 1, 1},    {256, 256, 1, 14, 3, 1, 1},
		{512, 512, 1, 7, 3, 1, 1},    {128, 128, 1, 56, 3, 2, 1},    {512, 512, 1, 14, 3, 2, 1},
		{64, 64, 1, 256, 3, 1, 5},    {64, 64, 1, 56, 1, 1, 1},      {64, 256, 1, 56, 1, 1, 1},
		{256, 64, 1, 56, 1, 1, 1},    {128, 512, 1, 28, 1, 1, 1},    {512, 128, 1, 28, 1, 1, 1},
		{256, 1024, 1, 14, 1, 1, 1},  {1024, 256, 1, 14, 1, 1, 1},   {512, 2048, 1, 7, 1, 1, 1},
		{2048, 512, 1, 7, 1, 1, 1},   {256, 512, 1, 56, 1, 2, 1},    {32, 16, 1, 256, 1, 1, 1},
		{16, 96, 1, 256, 1, 1, 1},    {16, 64, 1, 256, 1, 1, 1},     {64, 16, 1, 256, 1, 1, 1},
		{96, 24, 1, 128, 1, 1, 1},    {24, 144, 1, 128, 1, 1, 1},    {144, 32, 1, 64, 1, 1, 1},
		{32, 192, 1, 64, 1, 1, 1},    {64, 384, 1, 32, 1, 1, 1},     {16, 32, 1, 320, 1, 1, 1},
		{48, 12, 1, 160, 1, 1, 1},    {96, 18, 1, 80, 1, 1, 1},      {192, 42, 1, 40, 1, 1, 1},
		{12, 96, 1, 160, 1, 1, 1},    {96, 32, 1, 160, 3, 1, 1},     {32, 32, 32, 256, 3, 1, 1},
		{96, 96, 96, 256, 3, 2, 1},   {144, 144, 144, 128, 3, 1, 1}, {192, 192, 192, 64, 3, 1, 1},
		{384, 384, 384, 32, 3, 1, 1}, {576, 576, 576, 32, 3, 1, 1},  {48, 48, 48, 160, 3, 1, 1},
		{96, 96, 96, 80, 3, 1, 1},    {192, 192, 192, 40, 5, 1, 1},  {384, 384, 384, 20, 5, 1, 1},
		{192, 192, 192, 40, 5, 2, 1}, {24, 24, 24, 128, 3, 1, 1},    {3, 16, 1, 640, 3, 2, 1},
		{4, 32, 1, 512, 3, 2, 1},     {16, 3, 1, 256, 9, 1, 1},
	};
	bench_conv(3, 64, 1, 224, 7, 2, 1, true);
	bench_conv(3, 64, 1, 224, 7, 2, 1, false);
	for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++)
		bench_conv(layers[i][0], layers[i][1], layers[i][2], layers[i][3], layers[i][4], layers[i][5],
			   layers[i][6], false);
}

int main(int argc, char **argv)
{
	filter = argc > 1 ? argv[1] : NULL;
	rig_seed();
	prepare_peak();
	all_products();
	all_convolutions();
	bench_pool(LTH_POOL_MAX, 64, 112, 3, 2, 1);
	bench_pool(LTH_POOL_MAX, 64, 160, 2, 2, 0);
	bench_pool(LTH_POOL_AVERAGE, 2048, 7, 7, 1, 0);
	bench_pool(LTH_POOL_AVERAGE, 192, 40, 40, 1, 0);
	return 0;
}
