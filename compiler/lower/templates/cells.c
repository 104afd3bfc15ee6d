/* See cells.h. Formulas are those of ONNX's LSTM, GRU and RNN. */
#include "compiler/lower/templates/cells.h"

static lth_lv constant(struct lth_loop_fn *fn, lth_lv like, double value)
{
	return lth_loop_const_f(fn, lth_loop_get(fn, like)->dtype, value);
}

static lth_lv op1(struct lth_loop_fn *fn, enum lth_scalar_op op, lth_lv a)
{
	return lth_loop_op1(fn, op, a);
}

static lth_lv op2(struct lth_loop_fn *fn, enum lth_scalar_op op, lth_lv a, lth_lv b)
{
	return lth_loop_op2(fn, op, a, b);
}

static lth_lv affine(struct lth_loop_fn *fn, lth_lv x, double alpha, double beta)
{
	return t_fma(fn, x, constant(fn, x, alpha), constant(fn, x, beta));
}

/* log(1 + exp(x)) without overflow: max(x, 0) + log1p(exp(-|x|)). */
static lth_lv softplus(struct lth_loop_fn *fn, lth_lv x)
{
	lth_lv small = op1(fn, LTH_SCALAR_EXP, op1(fn, LTH_SCALAR_NEG, op1(fn, LTH_SCALAR_ABS, x)));
	lth_lv positive = t_max(fn, x, constant(fn, x, 0));
	return t_add(fn, positive, op1(fn, LTH_SCALAR_LOG1P, small));
}

lth_lv lth_cell_activate(struct lth_loop_fn *fn, const struct lth_recurrent *p, unsigned direction, unsigned which,
			 lth_lv x)
{
	double alpha = p->alpha[direction][which], beta = p->beta[direction][which];
	lth_lv zero = constant(fn, x, 0), one = constant(fn, x, 1);
	if (p->clip > 0)
		x = t_min(fn, t_max(fn, x, constant(fn, x, -p->clip)), constant(fn, x, p->clip));
	switch (p->activations[direction][which]) {
	case LTH_ACT_SIGMOID: return op1(fn, LTH_SCALAR_SIGMOID, x);
	case LTH_ACT_TANH: return op1(fn, LTH_SCALAR_TANH, x);
	case LTH_ACT_RELU: return t_max(fn, x, zero);
	case LTH_ACT_AFFINE: return affine(fn, x, alpha, beta);
	case LTH_ACT_LEAKY_RELU: {
		lth_lv negative = t_lt(fn, x, zero);
		return t_select(fn, negative, t_mul(fn, x, constant(fn, x, alpha)), x);
	}
	case LTH_ACT_THRESHOLDED_RELU: return t_select(fn, t_le(fn, x, constant(fn, x, alpha)), zero, x);
	case LTH_ACT_SCALED_TANH:
		return t_mul(fn, constant(fn, x, alpha), op1(fn, LTH_SCALAR_TANH, t_mul(fn, x, constant(fn, x, beta))));
	case LTH_ACT_HARD_SIGMOID: return t_min(fn, t_max(fn, affine(fn, x, alpha, beta), zero), one);
	case LTH_ACT_ELU: {
		lth_lv negative = t_lt(fn, x, zero);
		return t_select(fn, negative, t_mul(fn, constant(fn, x, alpha), op1(fn, LTH_SCALAR_EXPM1, x)), x);
	}
	case LTH_ACT_SOFTSIGN: return op2(fn, LTH_SCALAR_DIV, x, t_add(fn, one, op1(fn, LTH_SCALAR_ABS, x)));
	case LTH_ACT_SOFTPLUS: return softplus(fn, x);
	default: assert(!"activation"); return x;
	}
}

void lth_cell_lstm(struct lth_loop_fn *fn, const struct lth_recurrent *p, unsigned direction, const lth_lv *gates,
		   const lth_lv *peepholes, lth_lv c, lth_lv *out_h, lth_lv *out_c)
{
	bool peeps = peepholes[0] != LTH_LV_NONE;
	lth_lv one = constant(fn, c, 1);
	lth_lv i = peeps ? t_fma(fn, peepholes[0], c, gates[0]) : gates[0];
	lth_lv f = peeps ? t_fma(fn, peepholes[2], c, gates[2]) : gates[2];
	i = lth_cell_activate(fn, p, direction, 0, i);
	f = p->input_forget ? t_sub(fn, one, i) : lth_cell_activate(fn, p, direction, 0, f);
	lth_lv candidate = lth_cell_activate(fn, p, direction, 1, gates[3]);
	lth_lv next = t_fma(fn, f, c, t_mul(fn, i, candidate));
	lth_lv o = peeps ? t_fma(fn, peepholes[1], next, gates[1]) : gates[1];
	o = lth_cell_activate(fn, p, direction, 0, o);
	struct lth_recurrent unclipped = *p;
	unclipped.clip = 0; /* the clip is for what gates are fed with, not for the cell's state */
	*out_h = t_mul(fn, o, lth_cell_activate(fn, &unclipped, direction, 2, next));
	*out_c = next;
}

lth_lv lth_cell_gru(struct lth_loop_fn *fn, lth_lv z, lth_lv n, lth_lv h)
{
	/* (1 - z) n + z h */
	return t_fma(fn, z, t_sub(fn, h, n), n);
}
