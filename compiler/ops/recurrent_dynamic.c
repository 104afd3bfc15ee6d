/* DynamicQuantizeLSTM of com.microsoft: an LSTM with weights of 8 bits, whose input and states are quantised on the way,
 * so that all products are sums of integers. They get 16 bits, as two bytes that are multiplied apart: ONNX Runtime takes
 * 8, which saves half of the products and loses up to a hundredth of a gate's input, where these results are those of an
 * LSTM with the weights' values. The input is multiplied at once, by one scale and zero point for all its steps; the rest
 * is a Scan, whose every step quantises the last state, multiplies it and applies the gates. Weights are [directions,
 * inner, 4 * hidden], their scales and zero points one a direction, or one a column. Thread rule: as infer.h. */
#include "compiler/ops/build.h"
#include "compiler/ops/recurrent.h"

enum {
	X = LTH_RECURRENT_X,
	W = LTH_RECURRENT_W,
	R = LTH_RECURRENT_R,
	B = LTH_RECURRENT_B,
	LENGTHS = LTH_RECURRENT_LENGTHS,
	INITIAL_H = LTH_RECURRENT_INITIAL_H,
	INITIAL_C = LTH_RECURRENT_INITIAL_C,
	PEEPHOLES = LTH_RECURRENT_PEEPHOLES,
	W_SCALE,
	W_ZERO,
	R_SCALE,
	R_ZERO,
	NUM_INPUTS
};
enum { GATE_I, GATE_O, GATE_F, GATE_C, NUM_GATES };

/* Where nodes go, and the layer they belong to: the body of a step, or before the composite (LTH_NONE). */
struct place {
	struct lth_infer *infer;
	lth_region_id body;
	const struct lth_recurrent *cell;
	uint32_t direction;
};

static lth_value_id node(const struct place *p, enum lth_op_id op, const lth_value_id *inputs, uint32_t count,
			 const struct lth_attr *attrs, uint32_t num_attrs)
{
	lth_value_id out;
	if (p->body == LTH_NONE)
		return lth_build(p->infer, op, inputs, count, attrs, num_attrs);
	lth_build_in(p->infer, p->body, op, inputs, count, attrs, num_attrs, &out, 1);
	return out;
}

static lth_value_id one(const struct place *p, enum lth_op_id op, lth_value_id a)
{
	return node(p, op, &a, 1, NULL, 0);
}

static lth_value_id two(const struct place *p, enum lth_op_id op, lth_value_id a, lth_value_id b)
{
	return node(p, op, (lth_value_id[]){a, b}, 2, NULL, 0);
}

static lth_value_id number(const struct place *p, double value)
{
	return lth_build_scalar(p->infer, LTH_DTYPE_F32, value);
}

static lth_value_id cast(const struct place *p, lth_value_id x, enum lth_dtype dtype)
{
	const struct lth_attr to = lth_attr_int("to", lth_dtype_onnx(dtype));
	return node(p, LTH_OP_ID_Cast, &x, 1, &to, 1);
}

/* ---- products of quantised values ---- */

/* scale * (256 * (high - zero high) + low - zero low) */
struct bytes {
	lth_value_id value[2], zero[2]; /* u8: the high bytes, the low ones */
	lth_value_id scale;
};

static void split_bytes(const struct place *p, lth_value_id x, lth_value_id *out)
{
	static const uint16_t eight = 8, mask = 255;
	const struct lth_attr right = {
		.name = "direction", .kind = LTH_ATTR_STRING, .count = 1, .s = {.data = "RIGHT", .size = 5}};
	lth_value_id high[] = {x, lth_build_data(p->infer, LTH_DTYPE_U16, 0, NULL, &eight, sizeof(eight))};
	out[0] = cast(p, node(p, LTH_OP_ID_BitShift, high, 2, &right, 1), LTH_DTYPE_U8);
	lth_value_id low = lth_build_data(p->infer, LTH_DTYPE_U16, 0, NULL, &mask, sizeof(mask));
	out[1] = cast(p, two(p, LTH_OP_ID_BitwiseAnd, x, low), LTH_DTYPE_U8);
}

/* The range of x, and zero in it, as 16 bits. */
static void quantize(const struct place *p, lth_value_id x, struct bytes *out)
{
	const struct lth_attr flat = lth_attr_int("keepdims", 0);
	lth_value_id zero = number(p, 0), unit = number(p, 1);
	lth_value_id low = two(p, LTH_OP_ID_Min, node(p, LTH_OP_ID_ReduceMin, &x, 1, &flat, 1), zero);
	lth_value_id high = two(p, LTH_OP_ID_Max, node(p, LTH_OP_ID_ReduceMax, &x, 1, &flat, 1), zero);
	lth_value_id scale = two(p, LTH_OP_ID_Sub, high, low);
	scale = two(p, LTH_OP_ID_Div, scale, number(p, UINT16_MAX));
	lth_value_id empty = two(p, LTH_OP_ID_Equal, scale, zero);
	out->scale = node(p, LTH_OP_ID_Where, (lth_value_id[]){empty, unit, scale}, 3, NULL, 0);
	lth_value_id point = two(p, LTH_OP_ID_Div, one(p, LTH_OP_ID_Neg, low), out->scale);
	point = cast(p, one(p, LTH_OP_ID_Round, point), LTH_DTYPE_U16);
	x = node(p, LTH_OP_ID_QuantizeLinear, (lth_value_id[]){x, out->scale, point}, 3, NULL, 0);
	split_bytes(p, x, out->value);
	split_bytes(p, point, out->zero);
}

/* A matrix of 8 bits [inner, columns]; its scale and zero point are one number, or [columns]. */
struct weights {
	lth_value_id value, scale, zero;
};

static lth_value_id multiply(const struct place *p, const struct bytes *x, const struct weights *w)
{
	lth_value_id sums[2];
	for (uint32_t i = 0; i < 2; i++) {
		const lth_value_id factors[] = {x->value[i], w->value, x->zero[i], w->zero};
		sums[i] = cast(p, node(p, LTH_OP_ID_MatMulInteger, factors, 4, NULL, 0), LTH_DTYPE_F32);
	}
	lth_value_id high = two(p, LTH_OP_ID_Mul, sums[0], number(p, UINT8_MAX + 1));
	lth_value_id sum = two(p, LTH_OP_ID_Add, high, sums[1]);
	return two(p, LTH_OP_ID_Mul, sum, two(p, LTH_OP_ID_Mul, x->scale, w->scale));
}

/* ---- the body of a step ---- */

static lth_value_id activate(const struct place *p, unsigned which, lth_value_id x)
{
	double alpha = p->cell->alpha[p->direction][which], beta = p->cell->beta[p->direction][which];
	const struct lth_attr params[] = {lth_attr_float("alpha", alpha), lth_attr_float("beta", beta)};
	switch (p->cell->activations[p->direction][which]) {
	case LTH_ACT_SIGMOID: return one(p, LTH_OP_ID_Sigmoid, x);
	case LTH_ACT_TANH: return one(p, LTH_OP_ID_Tanh, x);
	case LTH_ACT_RELU: return one(p, LTH_OP_ID_Relu, x);
	case LTH_ACT_AFFINE:
		x = two(p, LTH_OP_ID_Mul, x, number(p, alpha));
		return two(p, LTH_OP_ID_Add, x, number(p, beta));
	case LTH_ACT_LEAKY_RELU: return node(p, LTH_OP_ID_LeakyRelu, &x, 1, params, 1);
	case LTH_ACT_THRESHOLDED_RELU: return node(p, LTH_OP_ID_ThresholdedRelu, &x, 1, params, 1);
	case LTH_ACT_SCALED_TANH:
		x = one(p, LTH_OP_ID_Tanh, two(p, LTH_OP_ID_Mul, x, number(p, beta)));
		return two(p, LTH_OP_ID_Mul, x, number(p, alpha));
	case LTH_ACT_HARD_SIGMOID: return node(p, LTH_OP_ID_HardSigmoid, &x, 1, params, 2);
	case LTH_ACT_ELU: return node(p, LTH_OP_ID_Elu, &x, 1, params, 1);
	case LTH_ACT_SOFTSIGN: return one(p, LTH_OP_ID_Softsign, x);
	default: return one(p, LTH_OP_ID_Softplus, x);
	}
}

/* The activation of what a gate is fed with: with the peepholes' share of the cell, within the clip. */
static lth_value_id gate(const struct place *p, unsigned which, lth_value_id x, lth_value_id peephole, lth_value_id cell)
{
	if (peephole != LTH_NONE)
		x = two(p, LTH_OP_ID_Add, x, two(p, LTH_OP_ID_Mul, peephole, cell));
	if (p->cell->clip > 0) {
		lth_value_id low = number(p, -p->cell->clip), high = number(p, p->cell->clip);
		x = node(p, LTH_OP_ID_Clip, (lth_value_id[]){x, low, high}, 3, NULL, 0);
	}
	return activate(p, which, x);
}

/* What a direction's step reads from outside. */
struct recurrence {
	struct weights weights;
	lth_value_id peepholes[NUM_GATES]; /* [hidden]; LTH_NONE without, and for gate c */
};

static void next_state(const struct place *p, const struct recurrence *r, lth_value_id h, lth_value_id cell,
		       lth_value_id input, lth_value_id *out_h, lth_value_id *out_cell)
{
	const struct lth_attr split[] = {lth_attr_int("axis", 1), lth_attr_int("num_outputs", NUM_GATES)};
	struct bytes bytes;
	lth_value_id gates[NUM_GATES], f;
	quantize(p, h, &bytes);
	lth_value_id fed = two(p, LTH_OP_ID_Add, input, multiply(p, &bytes, &r->weights));
	lth_build_in(p->infer, p->body, LTH_OP_ID_Split, &fed, 1, split, 2, gates, NUM_GATES);
	lth_value_id i = gate(p, 0, gates[GATE_I], r->peepholes[GATE_I], cell);
	if (p->cell->input_forget)
		f = two(p, LTH_OP_ID_Sub, number(p, 1), i);
	else
		f = gate(p, 0, gates[GATE_F], r->peepholes[GATE_F], cell);
	lth_value_id candidate = two(p, LTH_OP_ID_Mul, i, gate(p, 1, gates[GATE_C], LTH_NONE, cell));
	lth_value_id next = two(p, LTH_OP_ID_Add, two(p, LTH_OP_ID_Mul, f, cell), candidate);
	lth_value_id o = gate(p, 0, gates[GATE_O], r->peepholes[GATE_O], next);
	*out_h = two(p, LTH_OP_ID_Mul, o, activate(p, 2, next));
	*out_cell = next;
}

static lth_value_id region_input(const struct place *p, const char *name)
{
	return lth_graph_input(p->infer->graph, p->body, name, NULL);
}

/* States h and cell, then the input's share of the gates and, with lengths, which sequences have not ended: the others
 * keep their states and give zeros. */
static bool fill_body(const struct place *p, const struct recurrence *r, bool lengths)
{
	struct lth_graph *graph = p->infer->graph;
	lth_value_id last_h = region_input(p, "h"), last_cell = region_input(p, "cell"), h, cell;
	lth_value_id input = region_input(p, "input"), active = lengths ? region_input(p, "active") : LTH_NONE;
	if (!lth_arena_ok(graph->arena))
		return false;
	next_state(p, r, last_h, last_cell, input, &h, &cell);
	lth_value_id shown = h;
	if (lengths) {
		shown = node(p, LTH_OP_ID_Where, (lth_value_id[]){active, h, number(p, 0)}, 3, NULL, 0);
		h = node(p, LTH_OP_ID_Where, (lth_value_id[]){active, h, last_h}, 3, NULL, 0);
		cell = node(p, LTH_OP_ID_Where, (lth_value_id[]){active, cell, last_cell}, 3, NULL, 0);
	}
	return lth_graph_output(graph, p->body, h) && lth_graph_output(graph, p->body, cell) &&
	       lth_graph_output(graph, p->body, one(p, LTH_OP_ID_Identity, shown));
}

/* ---- a direction ---- */

/* Slice `direction` of an input, without the axis. */
static lth_value_id of_direction(struct lth_infer *infer, uint32_t input, uint32_t direction)
{
	const int64_t first = 0;
	if (lth_in(infer, input) == LTH_NONE)
		return LTH_NONE;
	lth_value_id slice = lth_build_slice(infer, lth_in(infer, input), 0, direction, direction + 1);
	return lth_build2(infer, LTH_OP_ID_Squeeze, slice, lth_build_ints(infer, &first, 1));
}

/* What all directions share. */
struct layer {
	struct bytes x;
	lth_value_id zeros;   /* [batch, hidden]: states to begin with */
	lth_value_id lengths; /* i64[batch], LTH_NONE without */
	lth_value_id active;  /* [steps, batch, 1]: whether a sequence has not ended */
	struct lth_recurrent cell;
};

static struct weights weights_of(struct lth_infer *infer, uint32_t value, uint32_t scale, uint32_t direction)
{
	struct weights w = {.value = of_direction(infer, value, direction)};
	w.scale = of_direction(infer, scale, direction);
	w.zero = of_direction(infer, scale + 1, direction);
	return w;
}

static lth_value_id reversed(struct lth_infer *infer, const struct layer *layer, lth_value_id x)
{
	const struct lth_attr axes[] = {lth_attr_int("batch_axis", 1), lth_attr_int("time_axis", 0)};
	return lth_build(infer, LTH_OP_ID_ReverseSequence, (lth_value_id[]){x, layer->lengths}, 2, axes, 2);
}

/* What the input gives to the gates at each step, with the bias: [steps, batch, 4 * hidden]. */
static lth_value_id multiply_input(const struct place *p, const struct layer *layer)
{
	struct lth_infer *infer = p->infer;
	const struct weights w = weights_of(infer, W, W_SCALE, p->direction);
	lth_value_id bias = of_direction(infer, B, p->direction), product = multiply(p, &layer->x, &w);
	if (bias == LTH_NONE)
		return product;
	bias = lth_build_reshape(infer, bias, (int64_t[]){2, -1}, 2);
	return two(p, LTH_OP_ID_Add, product, lth_build_reduce(infer, LTH_OP_ID_ReduceSum, bias, &(int64_t){0}, 1, false));
}

static struct recurrence recurrence_of(struct lth_infer *infer, uint32_t direction)
{
	static const unsigned order[] = {GATE_I, GATE_O, GATE_F};
	const bool wanted[3] = {true, true, true};
	const struct lth_attr split[] = {lth_attr_int("axis", 0), lth_attr_int("num_outputs", 3)};
	struct recurrence r = {.peepholes = {LTH_NONE, LTH_NONE, LTH_NONE, LTH_NONE}};
	lth_value_id peepholes = of_direction(infer, PEEPHOLES, direction), parts[3];
	r.weights = weights_of(infer, R, R_SCALE, direction);
	if (peepholes == LTH_NONE)
		return r;
	lth_build_many(infer, LTH_OP_ID_Split, &peepholes, 1, split, 2, wanted, parts, 3);
	for (unsigned i = 0; i < 3; i++)
		r.peepholes[order[i]] = parts[i];
	return r;
}

/* The Scan over all steps. Sequences of one length run backwards by its own means, others are turned before and behind. */
static void scan(struct lth_infer *infer, const struct layer *layer, lth_region_id body, lth_value_id *in, bool reverse,
		 lth_value_id *out)
{
	enum { STATES = 2 };
	static const int64_t backwards = 1;
	bool lengths = layer->lengths != LTH_NONE;
	const struct lth_attr attrs[] = {
		{.name = "body", .kind = LTH_ATTR_REGION, .count = 1, .id = body},
		lth_attr_int("num_scan_inputs", lengths ? 2 : 1),
		{.name = "scan_input_directions", .kind = LTH_ATTR_INTS, .count = 1, .ints = &backwards},
		{.name = "scan_output_directions", .kind = LTH_ATTR_INTS, .count = 1, .ints = &backwards},
	};
	const bool wanted[STATES + 1] = {true, true, true};
	if (reverse && lengths)
		in[STATES] = reversed(infer, layer, in[STATES]);
	lth_build_many(infer, LTH_OP_ID_Scan, in, STATES + (lengths ? 2 : 1), attrs, reverse && !lengths ? 4 : 2, wanted,
		       out, STATES + 1);
	if (reverse && lengths)
		out[STATES] = reversed(infer, layer, out[STATES]);
}

/* A direction's outputs: the last state and cell, [batch, hidden], and all states, [steps, batch, hidden]. */
static void run_direction(struct lth_infer *infer, const struct layer *layer, uint32_t direction, lth_value_id *out)
{
	bool reverse = direction == 1 || lth_op_string_is(infer->node, "direction", "reverse");
	struct place p = {infer, LTH_NONE, &layer->cell, direction};
	const struct recurrence r = recurrence_of(infer, direction);
	lth_value_id in[4];
	for (uint32_t i = 0; i < 2; i++) {
		in[i] = of_direction(infer, INITIAL_H + i, direction);
		in[i] = in[i] == LTH_NONE ? layer->zeros : in[i];
	}
	in[2] = multiply_input(&p, layer);
	in[3] = layer->active;
	if (infer->failed)
		return;
	p.body = lth_graph_region(infer->graph, LTH_NONE);
	if (p.body == LTH_NONE || !fill_body(&p, &r, layer->lengths != LTH_NONE)) {
		infer->failed = lth_infer_exhausted(infer);
		return;
	}
	scan(infer, layer, p.body, in, reverse, out);
}

/* ---- the layer ---- */

static enum lth_code check(struct lth_infer *infer)
{
	lth_dim batch, hidden, directions = lth_dim_const(infer->dims, lth_recurrent_directions(infer->node));
	enum lth_code code = lth_infer_need_rank(infer, X, 3, 3);
	if (!code)
		code = lth_infer_need_rank(infer, R, 3, 3);
	if (code)
		return code;
	batch = lth_infer_dim(infer, X, 1);
	hidden = lth_infer_dim(infer, R, 1);
	code = lth_recurrent_check(infer, batch, hidden, true);
	const lth_dim each[] = {directions, lth_infer_dim(infer, R, 2)};
	for (uint32_t i = W_SCALE; !code && i <= R_ZERO; i++) {
		code = lth_infer_need_rank(infer, i, 1, 2);
		if (!code)
			code = lth_recurrent_need_shape(infer, i, each, lth_infer_rank(infer, i));
	}
	return code;
}

/* [steps, batch, 1]: steps before the end of each sequence. */
static lth_value_id active_steps(struct lth_infer *infer, lth_value_id lengths)
{
	static const int64_t behind[] = {1, 2}, last = 1;
	lth_value_id times = lth_build_count(infer, lth_build_extent(infer, lth_in(infer, X), 0));
	times = lth_build_unsqueeze(infer, times, behind, 2);
	return lth_build2(infer, LTH_OP_ID_Less, times, lth_build_unsqueeze(infer, lengths, &last, 1));
}

/* What stands behind a sequence's end takes no part in the input's range. */
static void prepare(struct lth_infer *infer, struct layer *layer)
{
	static const int64_t single = 1;
	const struct place p = {infer, LTH_NONE, &layer->cell, 0};
	lth_value_id x = lth_in(infer, X), shape[2], zero = number(&p, 0);
	layer->lengths = layer->active = LTH_NONE;
	if (lth_in(infer, LENGTHS) != LTH_NONE) {
		layer->lengths = lth_build_cast(infer, lth_in(infer, LENGTHS), LTH_DTYPE_I64);
		layer->active = active_steps(infer, layer->lengths);
		x = lth_build_select(infer, layer->active, x, zero);
	}
	quantize(&p, x, &layer->x);
	shape[0] = lth_build_reshape(infer, lth_build_extent(infer, x, 1), &single, 1);
	shape[1] = lth_build_reshape(infer, lth_build_extent(infer, lth_in(infer, R), 1), &single, 1);
	layer->zeros = lth_build2(infer, LTH_OP_ID_Expand, zero, lth_build_concat(infer, shape, 2, 0));
	layer->cell.directions = lth_recurrent_directions(infer->node);
	layer->cell.clip = lth_node_float(infer->node, "clip", 0);
	layer->cell.input_forget = lth_op_int(infer->node, "input_forget") != 0;
	lth_recurrent_activations(infer->node, &layer->cell);
}

static enum lth_code expand_dynamic_lstm(struct lth_infer *infer)
{
	enum { Y, Y_H, Y_C, NUM_OUTPUTS };
	static const uint32_t results[] = {[Y] = 2, [Y_H] = 0, [Y_C] = 1}; /* of run_direction */
	static const int64_t direction_axis[] = {[Y] = 1, [Y_H] = 0, [Y_C] = 0};
	struct layer layer = {.zeros = LTH_NONE};
	lth_value_id outputs[2][NUM_OUTPUTS], parts[2];
	enum lth_code code = check(infer);
	if (code)
		return code;
	prepare(infer, &layer);
	uint32_t directions = layer.cell.directions;
	for (uint32_t d = 0; d < directions && !infer->failed; d++)
		run_direction(infer, &layer, d, outputs[d]);
	for (uint32_t i = Y; i < NUM_OUTPUTS && !infer->failed; i++) {
		if (!lth_build_wants(infer, i))
			continue;
		for (uint32_t d = 0; d < directions; d++)
			parts[d] = lth_build_unsqueeze(infer, outputs[d][results[i]], &direction_axis[i], 1);
		lth_build_output(infer, i, directions == 1 ? parts[0] : lth_build_concat(infer, parts, 2, direction_axis[i]));
	}
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_dynamic_lstm = {.expand = expand_dynamic_lstm};
