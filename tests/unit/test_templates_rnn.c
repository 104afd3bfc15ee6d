/* The recurrent template against a plain implementation of ONNX's RNN, GRU and LSTM: directions, sequence lengths,
 * peepholes, clipping, activations, layouts, constant and computed weights. */
#include "tests/unit/template_rig.h"
#include "tests/unit/run_suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct shape {
	enum lth_cell cell;
	uint32_t directions;
	int64_t steps, batch, input, hidden;
	bool reverse, bias, lengths, initial, peepholes, linear_before_reset, input_forget, batch_first, constant;
	double clip;
	enum lth_activation activations[2][3];
	double alpha[2][3], beta[2][3];
};

struct data {
	void *x, *w, *r, *bias, *initial_h, *initial_c, *peepholes;
	int32_t *lengths;
};

static double activate(const struct shape *s, uint32_t dir, int which, double x, bool clipped)
{
	double a = s->alpha[dir][which], b = s->beta[dir][which];
	if (clipped && s->clip > 0)
		x = fmin(fmax(x, -s->clip), s->clip);
	switch (s->activations[dir][which]) {
	case LTH_ACT_SIGMOID: return 1 / (1 + exp(-x));
	case LTH_ACT_TANH: return tanh(x);
	case LTH_ACT_RELU: return fmax(x, 0);
	case LTH_ACT_AFFINE: return a * x + b;
	case LTH_ACT_LEAKY_RELU: return x < 0 ? a * x : x;
	case LTH_ACT_THRESHOLDED_RELU: return x > a ? x : 0;
	case LTH_ACT_SCALED_TANH: return a * tanh(b * x);
	case LTH_ACT_HARD_SIGMOID: return fmin(fmax(a * x + b, 0), 1);
	case LTH_ACT_ELU: return x < 0 ? a * (exp(x) - 1) : x;
	case LTH_ACT_SOFTSIGN: return x / (1 + fabs(x));
	default: return fmax(x, 0) + log1p(exp(-fabs(x)));
	}
}

static int gates_of(const struct shape *s)
{
	return s->cell == LTH_CELL_LSTM ? 4 : s->cell == LTH_CELL_GRU ? 3 : 1;
}

/* The part of a gate's sum that comes from the input / from a state vector; with its bias. */
static double input_sum(const struct rig *rig, const struct shape *s, const struct data *d, uint32_t dir, int gate,
			int64_t unit, int64_t x_at)
{
	int64_t row = (dir * gates_of(s) + gate) * s->hidden + unit;
	double sum = d->bias ? rig_get(rig, d->bias, (dir * 2 * gates_of(s) + gate) * s->hidden + unit) : 0;
	for (int64_t k = 0; k < s->input; k++)
		sum += rig_get(rig, d->x, x_at + k) * rig_get(rig, d->w, row * s->input + k);
	return sum;
}

static double state_sum(const struct rig *rig, const struct shape *s, const struct data *d, uint32_t dir, int gate,
			int64_t unit, const double *h)
{
	int64_t row = (dir * gates_of(s) + gate) * s->hidden + unit;
	double sum = d->bias ? rig_get(rig, d->bias, (dir * 2 * gates_of(s) + gates_of(s) + gate) * s->hidden + unit)
			     : 0;
	for (int64_t k = 0; k < s->hidden; k++)
		sum += h[k] * rig_get(rig, d->r, row * s->hidden + k);
	return sum;
}

static void step(const struct rig *rig, const struct shape *s, const struct data *d, uint32_t dir, int64_t x_at,
		 const double *h, double *c, double *out_h)
{
	double reset[64], gated[64];
	for (int64_t u = 0; s->cell == LTH_CELL_GRU && u < s->hidden; u++) {
		reset[u] = activate(s, dir, 0,
				    input_sum(rig, s, d, dir, 1, u, x_at) + state_sum(rig, s, d, dir, 1, u, h), true);
		gated[u] = reset[u] * h[u];
	}
	for (int64_t u = 0; u < s->hidden; u++) {
		double g[4];
		for (int gate = 0; gate < gates_of(s); gate++)
			g[gate] = input_sum(rig, s, d, dir, gate, u, x_at) + state_sum(rig, s, d, dir, gate, u, h);
		if (s->cell == LTH_CELL_RNN) {
			out_h[u] = activate(s, dir, 0, g[0], true);
		} else if (s->cell == LTH_CELL_GRU) {
			double z = activate(s, dir, 0, g[0], true), x = input_sum(rig, s, d, dir, 2, u, x_at);
			double n = s->linear_before_reset ? x + reset[u] * state_sum(rig, s, d, dir, 2, u, h)
							  : x + state_sum(rig, s, d, dir, 2, u, gated);
			n = activate(s, dir, 1, n, true);
			out_h[u] = (1 - z) * n + z * h[u];
		} else {
			double p[3] = {0};
			for (int k = 0; d->peepholes && k < 3; k++)
				p[k] = rig_get(rig, d->peepholes, (dir * 3 + k) * s->hidden + u);
			double i = activate(s, dir, 0, g[0] + p[0] * c[u], true);
			double f = s->input_forget ? 1 - i : activate(s, dir, 0, g[2] + p[2] * c[u], true);
			c[u] = f * c[u] + i * activate(s, dir, 1, g[3], true);
			out_h[u] = activate(s, dir, 0, g[1] + p[1] * c[u], true) * activate(s, dir, 2, c[u], false);
		}
	}
}

static void compare(const struct rig *rig, uint32_t which, const int64_t *index, double want)
{
	double got = rig_at(rig, which, index);
	ck_assert_msg(got == want || fabs(got - want) < 2e-4 * (1 + fabs(want)),
		      "output %u at %lld %lld %lld: got %g, expected %g", which, (long long)index[0],
		      (long long)index[1], (long long)index[2], got, want);
}

static void check_layer(const struct rig *rig, const struct shape *s, const struct data *d)
{
	for (uint32_t dir = 0; dir < s->directions; dir++)
		for (int64_t b = 0; b < s->batch; b++) {
			double h[64] = {0}, c[64] = {0}, next[64];
			bool reverse = s->directions == 2 ? dir == 1 : s->reverse;
			int64_t length = d->lengths ? d->lengths[b] : s->steps;
			for (int64_t u = 0; s->initial && u < s->hidden; u++) {
				int64_t at = s->batch_first ? (b * s->directions + dir) * s->hidden + u
							    : (dir * s->batch + b) * s->hidden + u;
				h[u] = rig_get(rig, d->initial_h, at);
				c[u] = rig_get(rig, d->initial_c, at);
			}
			for (int64_t t = 0; t < s->steps; t++) {
				int64_t time = t < length && reverse ? length - 1 - t : t;
				int64_t x_at = (s->batch_first ? b * s->steps + time : time * s->batch + b) * s->input;
				if (t < length) {
					step(rig, s, d, dir, x_at, h, c, next);
					memcpy(h, next, sizeof(h));
				}
				for (int64_t u = 0; u < s->hidden; u++)
					compare(rig, 0, (int64_t[]){time, dir, b, u}, t < length ? h[u] : 0);
			}
			for (int64_t u = 0; u < s->hidden; u++) {
				compare(rig, 1, (int64_t[]){dir, b, u}, h[u]);
				if (s->cell == LTH_CELL_LSTM)
					compare(rig, 2, (int64_t[]){dir, b, u}, c[u]);
			}
		}
}

static struct lth_operand optional(struct rig *rig, void *data)
{
	if (!data)
		return (struct lth_operand){.pointer = LTH_LV_NONE, .memory = rig->compute};
	return rig_operand(rig, data, rig->compute, false);
}

static void run_layer(const struct shape *s, enum rig_machine machine, enum lth_dtype compute, bool symbolic)
{
	struct rig rig;
	struct lth_problem problem = {.kind = LTH_PROBLEM_RECURRENT, .compute = compute};
	struct lth_template_plan plan;
	struct lth_recurrent *p = &problem.recurrent;
	struct data d = {0};
	int64_t gates = gates_of(s), dirs = s->directions, states = dirs * s->batch * s->hidden;
	rig_start(&rig, machine, compute, symbolic);
	d.x = rig_random(&rig, s->steps * s->batch * s->input);
	d.w = rig_random(&rig, dirs * gates * s->hidden * s->input);
	d.r = rig_random(&rig, dirs * gates * s->hidden * s->hidden);
	d.bias = s->bias ? rig_random(&rig, dirs * 2 * gates * s->hidden) : NULL;
	d.initial_h = s->initial ? rig_random(&rig, states) : NULL;
	d.initial_c = s->initial ? rig_random(&rig, states) : NULL;
	d.peepholes = s->peepholes ? rig_random(&rig, dirs * 3 * s->hidden) : NULL;
	p->cell = s->cell;
	p->directions = s->directions;
	p->reverse = s->reverse;
	p->outputs[0] = p->outputs[1] = true;
	p->outputs[2] = s->cell == LTH_CELL_LSTM;
	p->steps = rig_dim(&rig, s->steps);
	p->batch = rig_dim(&rig, s->batch);
	p->input = s->constant ? lth_dim_const(rig.dims, s->input) : rig_dim(&rig, s->input);
	p->hidden = s->constant ? lth_dim_const(rig.dims, s->hidden) : rig_dim(&rig, s->hidden);
	p->x = rig_operand(&rig, d.x, compute, false);
	p->w = rig_operand(&rig, d.w, compute, false);
	p->r = rig_operand(&rig, d.r, compute, false);
	p->w.constant = p->r.constant = s->constant;
	p->bias = optional(&rig, d.bias);
	p->initial_h = optional(&rig, d.initial_h);
	p->initial_c = optional(&rig, d.initial_c);
	p->peepholes = optional(&rig, d.peepholes);
	p->lengths = (struct lth_operand){.pointer = LTH_LV_NONE, .memory = LTH_DTYPE_I32};
	if (s->lengths) {
		d.lengths = lth_arena_array(rig.arena, (size_t)s->batch, sizeof(int32_t));
		for (int64_t b = 0; b < s->batch; b++)
			d.lengths[b] = (int32_t)rig_uniform(0, s->steps);
		p->lengths = rig_operand(&rig, d.lengths, LTH_DTYPE_I32, false);
	}
	p->x_step_stride = lth_dim_const(rig.dims, s->batch_first ? s->input : s->batch * s->input);
	p->x_batch_stride = lth_dim_const(rig.dims, s->batch_first ? s->steps * s->input : s->input);
	p->state_dir_stride = lth_dim_const(rig.dims, s->batch_first ? s->hidden : s->batch * s->hidden);
	p->state_batch_stride = lth_dim_const(rig.dims, s->batch_first ? dirs * s->hidden : s->hidden);
	memcpy(p->activations, s->activations, sizeof(p->activations));
	memcpy(p->alpha, s->alpha, sizeof(p->alpha));
	memcpy(p->beta, s->beta, sizeof(p->beta));
	p->clip = s->clip;
	p->linear_before_reset = s->linear_before_reset;
	p->input_forget = s->input_forget;
	rig_output(&rig, 0, 4, (int64_t[]){s->steps, dirs, s->batch, s->hidden}, (uint32_t[]){0, 1, 2, 3});
	rig_output(&rig, 1, 3, (int64_t[]){dirs, s->batch, s->hidden}, (uint32_t[]){0, 1, 2});
	rig_output(&rig, 2, 3, (int64_t[]){dirs, s->batch, s->hidden}, (uint32_t[]){0, 1, 2});
	ck_assert(rig_run(&rig, &problem, (struct lth_operand *[]){&p->w, &p->r}, &plan));
	check_layer(&rig, s, &d);
	rig_end(&rig);
}

enum { FEW_STEPS = 5 };

static struct shape random_layer(void)
{
	struct shape s = {.cell = (enum lth_cell)rig_uniform(0, 2), .directions = (uint32_t)rig_uniform(1, 2)};
	s.steps = rig_uniform(0, 3) ? rig_uniform(1, FEW_STEPS) : rig_uniform(15, 36); /* fewer and more than a chunk */
	s.batch = rig_uniform(0, 2) ? rig_uniform(1, 6) : 1;
	s.input = rig_uniform(1, 12);
	s.hidden = rig_uniform(0, 2) ? rig_uniform(1, 20) : 16 * rig_uniform(1, 3);
	s.reverse = rig_uniform(0, 1);
	s.bias = rig_uniform(0, 3);
	s.lengths = rig_uniform(0, 2) == 0;
	s.initial = rig_uniform(0, 1);
	s.peepholes = s.cell == LTH_CELL_LSTM && rig_uniform(0, 2) == 0;
	s.linear_before_reset = rig_uniform(0, 1);
	s.input_forget = rig_uniform(0, 4) == 0;
	s.batch_first = rig_uniform(0, 3) == 0;
	s.constant = rig_uniform(0, 3) != 0;
	s.clip = rig_uniform(0, 2) ? 0 : 0.6;
	for (int dir = 0; dir < 2; dir++)
		for (int which = 0; which < 3; which++) {
			s.activations[dir][which] = s.steps > FEW_STEPS || rig_uniform(0, 2)
							    ? which ? LTH_ACT_TANH : LTH_ACT_SIGMOID
							    : (enum lth_activation)rig_uniform(0, LTH_NUM_ACTS - 1);
			s.alpha[dir][which] = 0.3;
			s.beta[dir][which] = 0.4;
		}
	return s;
}

START_TEST(random_layers)
{
	for (int i = 0; i < 50; i++) {
		struct shape s = random_layer();
		bool wide = s.steps > FEW_STEPS || rig_uniform(0, 4) == 0; /* many steps make much of a rounding */
		run_layer(&s, (enum rig_machine)rig_uniform(0, RIG_NUM_MACHINES - 1),
			  wide ? LTH_DTYPE_F64 : LTH_DTYPE_F32, rig_uniform(0, 1));
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("templates/recurrent");
	TCase *tcase = tcase_create("recurrent");
	rig_seed();
	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, random_layers);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
