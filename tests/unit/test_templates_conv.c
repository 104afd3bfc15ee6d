/* Convolution templates (general, depthwise, transposed) and pooling against plain loops: random shapes with tails,
 * strides, dilations, pads as large as kernels, groups, layouts, machines. */
#include "tests/unit/template_rig.h"
#include "tests/unit/run_suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct shape {
	uint32_t spatial;
	int64_t batch, groups, in_channels, out_channels;
	int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3], pad_end[3];
	bool channels_first, constant_weights, transposed;
};

/* Strides of [n][c][spatial..] held channels first or last. */
static void activation_strides(const struct shape *s, int64_t channels, const int64_t *extents, int64_t *batch,
			       int64_t *channel, int64_t *spatial)
{
	int64_t step = s->channels_first ? 1 : channels;
	for (uint32_t i = s->spatial; i-- > 0; step *= extents[i])
		spatial[i] = step;
	*channel = s->channels_first ? step : 1;
	*batch = s->channels_first ? step * channels : step;
}

struct operands {
	void *x, *w;
	int64_t x_batch, x_channel, x_stride[3], w_first, w_second, w_stride[3];
};

/* y[n][oc][o..] of a convolution; of its transpose what scatters into it. */
static double expected(const struct rig *rig, const struct shape *s, const struct operands *p, const int64_t *index)
{
	int64_t icg = s->in_channels / s->groups, ocg = s->out_channels / s->groups;
	int64_t group = index[1] / ocg, taps = 1;
	double sum = 0;
	for (uint32_t i = 0; i < s->spatial; i++)
		taps *= s->kernel[i];
	for (int64_t tap = 0; tap < taps; tap++) {
		int64_t rest = tap, x_at = index[0] * p->x_batch, w_at = 0;
		bool inside = true;
		for (uint32_t i = s->spatial; i-- > 0; rest /= s->kernel[i]) {
			int64_t k = rest % s->kernel[i], position;
			if (s->transposed) {
				position = index[2 + i] + s->pad[i] - k * s->dilation[i];
				inside &= position >= 0 && position % s->stride[i] == 0;
				position /= s->stride[i];
			} else {
				position = index[2 + i] * s->stride[i] - s->pad[i] + k * s->dilation[i];
			}
			inside &= position >= 0 && position < s->in[i];
			x_at += position * p->x_stride[i];
			w_at += k * p->w_stride[i];
		}
		for (int64_t c = 0; inside && c < icg; c++) {
			int64_t x = x_at + (group * icg + c) * p->x_channel;
			int64_t w = s->transposed ? (group * icg + c) * p->w_first + index[1] % ocg * p->w_second
						  : index[1] * p->w_first + c * p->w_second;
			sum += rig_get(rig, p->x, x) * rig_get(rig, p->w, w_at + w);
		}
	}
	return sum;
}

static void each_output(const struct rig *rig, const struct shape *s, const void *context,
			double (*value)(const struct rig *, const struct shape *, const void *, const int64_t *),
			int64_t terms)
{
	int64_t extents[5], index[5];
	memcpy(extents, rig->outputs[0].extents, sizeof(extents));
	for (int64_t flat = 0; flat < rig->outputs[0].elements; flat++) {
		int64_t rest = flat;
		for (uint32_t i = s->spatial + 2; i-- > 0; rest /= extents[i])
			index[i] = rest % extents[i];
		double want = value(rig, s, context, index), got = rig_at(rig, 0, index);
		ck_assert_msg(rig_near(rig, got, want, terms), "element %lld of %lld: got %.9g, expected %.9g",
			      (long long)flat, (long long)rig->outputs[0].elements, got, want);
	}
}

static double conv_value(const struct rig *rig, const struct shape *s, const void *context, const int64_t *index)
{
	return expected(rig, s, context, index);
}

static void make_output(struct rig *rig, const struct shape *s)
{
	static const uint32_t last[3][5] = {{0, 2, 1}, {0, 2, 3, 1}, {0, 2, 3, 4, 1}}, first[5] = {0, 1, 2, 3, 4};
	int64_t extents[5] = {s->batch, s->out_channels};
	bool channels_first = rig_uniform(0, 4) == 0;
	memcpy(extents + 2, s->out, sizeof(s->out));
	rig_output(rig, 0, s->spatial + 2, extents, channels_first ? first : last[s->spatial - 1]);
	rig->epilogue.flat_pixels = !channels_first && rig_uniform(0, 1);
	rig->epilogue.unit_axis = channels_first ? s->spatial + 1 : 1;
}

static void print_shape(const struct shape *s, const char *machine)
{
	printf("%s%s n %lld g %lld c %lld->%lld", s->transposed ? "transposed " : "", machine, (long long)s->batch,
	       (long long)s->groups, (long long)s->in_channels, (long long)s->out_channels);
	for (uint32_t i = 0; i < s->spatial; i++)
		printf(" | in %lld out %lld k %lld s %lld d %lld p %lld", (long long)s->in[i], (long long)s->out[i],
		       (long long)s->kernel[i], (long long)s->stride[i], (long long)s->dilation[i],
		       (long long)s->pad[i]);
	printf("\n");
	fflush(stdout);
}

static const char *run_conv(const struct shape *s, enum rig_machine machine, enum lth_dtype compute, bool symbolic)
{
	struct rig rig;
	struct lth_problem problem = {.kind = LTH_PROBLEM_CONV, .compute = compute};
	struct lth_template_plan plan;
	struct lth_conv *conv = &problem.conv;
	struct operands p = {0};
	int64_t x_elements = s->batch * s->in_channels, taps = 1;
	int64_t second = (s->transposed ? s->out_channels : s->in_channels) / s->groups;
	print_shape(s, machine == RIG_AVX512 ? "avx512" : machine == RIG_AVX2 ? "avx2" : "sse");
	rig_start(&rig, machine, compute, symbolic);
	activation_strides(s, s->in_channels, s->in, &p.x_batch, &p.x_channel, p.x_stride);
	for (uint32_t i = s->spatial; i-- > 0;) {
		p.w_stride[i] = taps;
		taps *= s->kernel[i];
		x_elements *= s->in[i];
	}
	p.w_second = taps;
	p.w_first = taps * second;
	p.x = rig_random(&rig, x_elements);
	p.w = rig_random(&rig, p.w_first * (s->transposed ? s->in_channels : s->out_channels));
	conv->x = rig_operand(&rig, p.x, compute, false);
	conv->w = rig_operand(&rig, p.w, compute, false);
	conv->w.constant = s->constant_weights;
	conv->transposed = s->transposed;
	conv->spatial = s->spatial;
	conv->groups = s->groups;
	conv->batch = rig_dim(&rig, s->batch);
	conv->in_channels = lth_dim_const(rig.dims, s->in_channels);
	conv->out_channels = lth_dim_const(rig.dims, s->out_channels);
	conv->x_batch_stride = lth_dim_const(rig.dims, p.x_batch);
	conv->x_channel_stride = lth_dim_const(rig.dims, p.x_channel);
	conv->w_out_stride = lth_dim_const(rig.dims, s->transposed ? p.w_second : p.w_first);
	conv->w_in_stride = lth_dim_const(rig.dims, s->transposed ? p.w_first : p.w_second);
	for (uint32_t i = 0; i < s->spatial; i++) {
		conv->in[i] = rig_dim(&rig, s->in[i]);
		conv->out[i] = rig_dim(&rig, s->out[i]);
		conv->kernel[i] = lth_dim_const(rig.dims, s->kernel[i]);
		conv->pad[i] = lth_dim_const(rig.dims, s->pad[i]);
		conv->pad_end[i] = lth_dim_const(rig.dims, s->pad_end[i]);
		conv->stride[i] = s->stride[i];
		conv->dilation[i] = s->dilation[i];
		conv->x_stride[i] = lth_dim_const(rig.dims, p.x_stride[i]);
		conv->w_stride[i] = lth_dim_const(rig.dims, p.w_stride[i]);
	}
	make_output(&rig, s);
	ck_assert(rig_run(&rig, &problem, (struct lth_operand *[]){&conv->w, NULL}, &plan));
	/* Winograd's transforms cost about a decimal digit */
	each_output(&rig, s, &p, conv_value,
		    taps * second * (strcmp(lth_template_name(plan.chosen), "winograd") ? 1 : 16));
	rig_end(&rig);
	return lth_template_name(plan.chosen);
}

static int64_t pick(const int64_t *list, int64_t count)
{
	return list[rig_uniform(0, count - 1)];
}

/* Extents, kernel and so on of the spatial axes; every output extent is at least 1. */
/* Makes the input large enough for one window, and says how many there are. */
static void fit_input(struct shape *s, uint32_t axis)
{
	int64_t reach = (s->kernel[axis] - 1) * s->dilation[axis] + 1, padding = s->pad[axis] + s->pad_end[axis];
	if (s->in[axis] + padding < reach)
		s->in[axis] = reach - padding;
	s->in[axis] = s->in[axis] < 1 ? 1 : s->in[axis];
	s->out[axis] = (s->in[axis] + padding - reach) / s->stride[axis] + 1;
}

static void random_window(struct shape *s)
{
	s->spatial = (uint32_t)(rig_uniform(0, 3) ? 2 : rig_uniform(1, 3));
	s->batch = rig_uniform(1, 2);
	for (uint32_t i = 0; i < s->spatial; i++) {
		int64_t reach;
		s->kernel[i] = rig_uniform(1, rig_uniform(0, 3) ? 3 : 7);
		s->stride[i] = rig_uniform(1, 3);
		s->dilation[i] = rig_uniform(0, 3) ? 1 : rig_uniform(2, 3);
		reach = (s->kernel[i] - 1) * s->dilation[i] + 1;
		s->pad[i] = rig_uniform(0, rig_uniform(0, 3) ? reach / 2 : reach);
		s->pad_end[i] = rig_uniform(0, rig_uniform(0, 3) ? reach / 2 : reach);
		s->in[i] = rig_uniform(1, s->spatial == 3 ? 6 : 13);
		fit_input(s, i);
	}
	s->channels_first = rig_uniform(0, 4) == 0;
	s->constant_weights = rig_uniform(0, 4) != 0;
}

START_TEST(random_convolutions)
{
	static const int64_t in[] = {1, 3, 4, 5, 8, 16, 17},
			     out[] = {1, 2, 3, 8, 12, 16, 20, 24, 32, 40, 48, 64, 65, 80};
	for (int i = 0; i < 60; i++) {
		struct shape s = {0};
		random_window(&s);
		s.groups = rig_uniform(0, 3) ? 1 : rig_uniform(2, 3);
		s.in_channels = pick(in, 7) * s.groups;
		s.out_channels = pick(out, s.groups == 1 ? 14 : 7) * s.groups;
		if (rig_uniform(0, 3) == 0)
			for (uint32_t axis = 0; axis < s.spatial; axis++) {
				s.kernel[axis] = s.dilation[axis] = 1;
				s.pad[axis] = s.pad_end[axis] = 0;
				s.out[axis] = (s.in[axis] - 1) / s.stride[axis] + 1;
			}
		run_conv(&s, (enum rig_machine)rig_uniform(0, RIG_NUM_MACHINES - 1),
			 rig_uniform(0, 4) ? LTH_DTYPE_F32 : LTH_DTYPE_F64, rig_uniform(0, 1));
	}
}
END_TEST

START_TEST(random_winograd)
{
	static const int64_t channels[] = {16, 17, 24, 32, 40, 64, 80};
	int taken = 0;
	for (int i = 0; i < 25; i++) {
		struct shape s = {.spatial = 2, .groups = 1, .constant_weights = true};
		s.batch = rig_uniform(1, 2);
		s.in_channels = pick(channels, 7);
		s.out_channels = pick(channels, 7);
		for (uint32_t axis = 0; axis < 2; axis++) {
			s.kernel[axis] = 3;
			s.stride[axis] = 1;
			s.dilation[axis] = rig_uniform(0, 2) ? 1 : rig_uniform(2, 3);
			s.pad[axis] = rig_uniform(0, 2);
			s.pad_end[axis] = rig_uniform(0, 2);
			s.in[axis] = rig_uniform(2 * s.dilation[axis] + 1, 20);
			s.out[axis] = s.in[axis] + s.pad[axis] + s.pad_end[axis] - 2 * s.dilation[axis];
		}
		taken += !strcmp(run_conv(&s, (enum rig_machine)rig_uniform(0, RIG_NUM_MACHINES - 1),
					  rig_uniform(0, 4) ? LTH_DTYPE_F32 : LTH_DTYPE_F64, rig_uniform(0, 1)),
				 "winograd");
	}
	ck_assert_int_ge(taken, 10);
}
END_TEST

/* A window of more taps than are written out. */
static void enlarge_window(struct shape *s)
{
	s->spatial = 2;
	for (uint32_t axis = 0; axis < 2; axis++) {
		s->kernel[axis] = rig_uniform(6, 9);
		s->stride[axis] = rig_uniform(1, 2);
		s->dilation[axis] = rig_uniform(0, 3) ? 1 : 2;
		s->pad[axis] = rig_uniform(0, s->kernel[axis] / 2);
		s->pad_end[axis] = rig_uniform(0, s->kernel[axis] / 2);
		s->in[axis] = rig_uniform(1, 24);
		fit_input(s, axis);
	}
}

START_TEST(random_depthwise)
{
	static const int64_t channels[] = {2, 8, 15, 16, 17, 24, 32, 40, 64};
	int taken = 0;
	for (int i = 0; i < 40; i++) {
		struct shape s = {0};
		random_window(&s);
		if (i % 4 == 0)
			enlarge_window(&s);
		s.groups = s.in_channels = pick(channels, 9);
		s.out_channels = s.groups * (rig_uniform(0, 3) ? 1 : rig_uniform(2, 3));
		s.constant_weights = true;
		s.channels_first = false;
		bool is = !strcmp(run_conv(&s, (enum rig_machine)rig_uniform(0, RIG_NUM_MACHINES - 1),
					   rig_uniform(0, 4) ? LTH_DTYPE_F32 : LTH_DTYPE_F64, rig_uniform(0, 1)),
				  "depthwise");
		ck_assert(is || i % 4);
		taken += is;
	}
	ck_assert_int_ge(taken, 20);
}
END_TEST

START_TEST(random_few_outputs)
{
	static const int64_t channels[] = {4, 7, 8, 16, 17, 31, 32, 50};
	int taken = 0;
	for (int i = 0; i < 40; i++) {
		struct shape s = {0};
		random_window(&s);
		s.groups = 1;
		s.in_channels = pick(channels, 8);
		s.out_channels = rig_uniform(1, 4);
		s.constant_weights = true;
		s.channels_first = false;
		taken += !strcmp(run_conv(&s, (enum rig_machine)rig_uniform(0, RIG_NUM_MACHINES - 1),
					  rig_uniform(0, 4) ? LTH_DTYPE_F32 : LTH_DTYPE_F64, rig_uniform(0, 1)),
				 "dots");
	}
	ck_assert_int_ge(taken, 15);
}
END_TEST

START_TEST(random_transposed)
{
	static const int64_t in[] = {1, 3, 4, 5, 8, 16, 17}, out[] = {1, 2, 3, 8, 12, 16, 20, 24, 48, 65};
	int taken = 0;
	for (int i = 0; i < 45; i++) {
		struct shape s = {.transposed = true};
		random_window(&s);
		s.groups = rig_uniform(0, 3) ? 1 : rig_uniform(2, 3);
		s.in_channels = pick(in, 7) * s.groups;
		s.out_channels = pick(out, 10) * s.groups;
		bool few = i % 3 == 1; /* outputs: by dots */
		if (few) {
			s.groups = 1;
			s.in_channels = rig_uniform(4, 40);
			s.out_channels = rig_uniform(1, 3);
			s.constant_weights = true;
			s.channels_first = false;
		}
		for (uint32_t axis = 0; axis < s.spatial; axis++) {
			int64_t extra = rig_uniform(0, s.stride[axis] - 1), reach;
			s.dilation[axis] = few ? 1 : s.dilation[axis];
			if (i % 3 == 0)
				s.kernel[axis] = s.stride[axis];
			reach = (s.kernel[axis] - 1) * s.dilation[axis] + 1;
			s.pad[axis] = s.pad[axis] < reach ? s.pad[axis] : reach - 1;
			s.pad_end[axis] = 0;
			s.out[axis] = (s.in[axis] - 1) * s.stride[axis] + reach - s.pad[axis] + extra;
		}
		taken += !strcmp(run_conv(&s, (enum rig_machine)rig_uniform(0, RIG_NUM_MACHINES - 1),
					  rig_uniform(0, 4) ? LTH_DTYPE_F32 : LTH_DTYPE_F64, rig_uniform(0, 1)),
				 "dots");
	}
	ck_assert_int_ge(taken, 5);
}
END_TEST

START_TEST(random_windows_side_by_side)
{
	static const int64_t strides[] = {1, 2, 2, 4};
	int taken = 0;
	for (int i = 0; i < 40; i++) {
		struct shape s = {.transposed = true};
		random_window(&s);
		s.groups = 1;
		s.in_channels = rig_uniform(1, 40);
		s.out_channels = rig_uniform(1, 4);
		s.channels_first = false;
		for (uint32_t axis = 0; axis < s.spatial; axis++) {
			if (axis + 1 == s.spatial)
				s.in[axis] = rig_uniform(4, 40);
			s.kernel[axis] = s.stride[axis] = pick(strides, 4);
			s.dilation[axis] = 1;
			s.pad[axis] = s.pad_end[axis] = 0;
			s.out[axis] = s.in[axis] * s.stride[axis];
		}
		taken += !strcmp(run_conv(&s, (enum rig_machine)rig_uniform(0, RIG_NUM_MACHINES - 1),
					  rig_uniform(0, 4) ? LTH_DTYPE_F32 : LTH_DTYPE_F64, rig_uniform(0, 3) == 0),
				 "spread");
	}
	ck_assert_int_ge(taken, 10);
}
END_TEST

struct pooling {
	enum lth_pool_kind kind;
	struct operands p;
};

static double pool_value(const struct rig *rig, const struct shape *s, const void *context, const int64_t *index)
{
	const struct pooling *pooling = context;
	int64_t taps = 1, inside_count = 0, padded_count = 0;
	double sum = 0, max = -INFINITY;
	for (uint32_t i = 0; i < s->spatial; i++)
		taps *= s->kernel[i];
	for (int64_t tap = 0; tap < taps; tap++) {
		int64_t rest = tap, at = index[0] * pooling->p.x_batch + index[1] * pooling->p.x_channel;
		bool inside = true, padded = true;
		for (uint32_t i = s->spatial; i-- > 0; rest /= s->kernel[i]) {
			int64_t position = index[2 + i] * s->stride[i] - s->pad[i] +
					   rest % s->kernel[i] * s->dilation[i];
			inside &= position >= 0 && position < s->in[i];
			padded &= position < s->in[i] + s->pad_end[i];
			at += position * pooling->p.x_stride[i];
		}
		inside_count += inside;
		padded_count += padded;
		if (inside) {
			sum += rig_get(rig, pooling->p.x, at);
			max = fmax(max, rig_get(rig, pooling->p.x, at));
		}
	}
	if (pooling->kind == LTH_POOL_MAX)
		return max;
	return sum / (double)(pooling->kind == LTH_POOL_AVERAGE ? inside_count : padded_count);
}

static void run_pool(const struct shape *s, enum lth_pool_kind kind, enum rig_machine machine, enum lth_dtype compute,
		     bool symbolic)
{
	struct rig rig;
	struct lth_problem problem = {.kind = LTH_PROBLEM_POOL, .compute = compute};
	struct lth_template_plan plan;
	struct lth_pool *pool = &problem.pool;
	struct pooling pooling = {.kind = kind};
	int64_t elements = s->batch * s->in_channels, taps = 1;
	print_shape(s, "pool");
	rig_start(&rig, machine, compute, symbolic);
	activation_strides(s, s->in_channels, s->in, &pooling.p.x_batch, &pooling.p.x_channel, pooling.p.x_stride);
	for (uint32_t i = 0; i < s->spatial; i++)
		elements *= s->in[i];
	pooling.p.x = rig_random(&rig, elements);
	pool->x = rig_operand(&rig, pooling.p.x, compute, false);
	pool->kind = kind;
	pool->spatial = s->spatial;
	pool->batch = rig_dim(&rig, s->batch);
	pool->channels = rig_dim(&rig, s->in_channels);
	pool->x_batch_stride = lth_dim_const(rig.dims, pooling.p.x_batch);
	pool->x_channel_stride = lth_dim_const(rig.dims, pooling.p.x_channel);
	for (uint32_t i = 0; i < s->spatial; i++) {
		taps *= s->kernel[i];
		pool->in[i] = rig_dim(&rig, s->in[i]);
		pool->out[i] = rig_dim(&rig, s->out[i]);
		pool->kernel[i] = s->kernel[i] == s->in[i] ? rig_dim(&rig, s->kernel[i])
							   : lth_dim_const(rig.dims, s->kernel[i]);
		pool->pad[i] = lth_dim_const(rig.dims, s->pad[i]);
		pool->pad_end[i] = lth_dim_const(rig.dims, s->pad_end[i]);
		pool->stride[i] = s->stride[i];
		pool->dilation[i] = s->dilation[i];
		pool->x_stride[i] = lth_dim_const(rig.dims, pooling.p.x_stride[i]);
	}
	make_output(&rig, s);
	ck_assert(rig_run(&rig, &problem, (struct lth_operand *[]){NULL, NULL}, &plan));
	each_output(&rig, s, &pooling, pool_value, taps);
	rig_end(&rig);
}

/* A window wholly in the padding has no maximum or mean: ONNX forbids it. */
static bool every_window_touches(const struct shape *s)
{
	for (uint32_t i = 0; i < s->spatial; i++)
		for (int64_t o = 0; o < s->out[i]; o++) {
			bool touches = false;
			for (int64_t k = 0; k < s->kernel[i]; k++) {
				int64_t at = o * s->stride[i] - s->pad[i] + k * s->dilation[i];
				touches |= at >= 0 && at < s->in[i];
			}
			if (!touches)
				return false;
		}
	return true;
}

START_TEST(random_pools)
{
	static const int64_t channels[] = {1, 8, 15, 16, 17, 24, 64, 130};
	for (int i = 0; i < 60; i++) {
		struct shape s = {0};
		random_window(&s);
		s.channels_first = false;
		s.groups = 1;
		s.in_channels = s.out_channels = pick(channels, 8);
		for (uint32_t axis = 0; axis < s.spatial && i % 4 == 0; axis++) { /* global */
			s.kernel[axis] = s.in[axis];
			s.stride[axis] = s.dilation[axis] = s.out[axis] = 1;
			s.pad[axis] = s.pad_end[axis] = 0;
		}
		if (i % 4 == 2)
			enlarge_window(&s);
		if (i % 4 == 1) /* ceil_mode */
			for (uint32_t axis = 0; axis < s.spatial; axis++) {
				int64_t span = s.in[axis] + s.pad[axis] + s.pad_end[axis] -
					       (s.kernel[axis] - 1) * s.dilation[axis] - 1;
				s.out[axis] = (span + s.stride[axis] - 1) / s.stride[axis] + 1;
				if ((s.out[axis] - 1) * s.stride[axis] >= s.in[axis] + s.pad[axis])
					s.out[axis]--;
			}
		if (!every_window_touches(&s))
			continue;
		run_pool(&s, (enum lth_pool_kind)rig_uniform(0, 2),
			 (enum rig_machine)rig_uniform(0, RIG_NUM_MACHINES - 1),
			 rig_uniform(0, 4) ? LTH_DTYPE_F32 : LTH_DTYPE_F64, rig_uniform(0, 1));
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("templates/conv");
	TCase *tcase = tcase_create("conv");
	rig_seed();
	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, random_convolutions);
	tcase_add_test(tcase, random_winograd);
	tcase_add_test(tcase, random_depthwise);
	tcase_add_test(tcase, random_few_outputs);
	tcase_add_test(tcase, random_transposed);
	tcase_add_test(tcase, random_windows_side_by_side);
	tcase_add_test(tcase, random_pools);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
