/* Convolution in one or two dimensions with few output channels, channels innermost in memory: register tiles of panels
 * would leave most lanes of each panel empty, so vectors run along the input channels instead. A tile is some pixels of
 * a row times all output channels, as many sums as a vector has lanes; at the end they are added up across lanes
 * together, in a tree that halves vectors pairwise. Tiles that lie inside the image look at no tap; others read zeros
 * outside.
 *
 * The transpose is the same by phases (conv.c): output pixel q * stride + phase is a sum over every stride-th tap, from
 * the one that falls on an input pixel on, while the input pixel goes back from q + (phase + pad) / stride. */
#include "compiler/lower/templates/internal.h"

#include <string.h>

enum { MOST_OUTPUTS = 4, MOST_SUMS = 16 };

struct dots {
	struct lth_emit *emit;
	const struct lth_conv *problem;
	enum lth_dtype compute;
	bool one_dimension;
	unsigned lanes, outputs, pixels; /* of a tile */
	int64_t channels;
	int64_t stride[2];
	lth_lv in[2], out[2], kernel[2], pad[2], dilation[2], step[2]; /* y, x; step: elements of the input */
	lth_lv columns; /* output pixels of a row; of the transpose, of a phase */
	lth_lv zeros, first_tap;
	/* of the transpose's phase at hand: where sums begin beside their pixel, its first tap, how many it has */
	lth_lv phase[2], phase_start[2], phase_tap[2], phase_taps[2];
	/* and what becomes of its phases: a row of each output */
	lth_lv row_buffer, row_elements;
};

/* The axis of the problem that is y (0) or x (1); -1: there is none. */
static int problem_axis(const struct lth_conv *conv, int axis)
{
	return axis - 2 + (int)conv->spatial;
}

/* The transpose by panels is so slow with few outputs that a half vector does. */
static unsigned dots_lanes(const struct lth_machine *machine, const struct lth_problem *problem, int64_t channels)
{
	unsigned lanes = lth_machine_lanes(machine, problem->compute);
	while (problem->conv.transposed && lanes > 4 && channels < lanes)
		lanes /= 2;
	return lanes;
}

bool lth_dots_plan(struct lth_dims *dims, const struct lth_machine *machine, const struct lth_problem *problem,
		   struct lth_template_plan *out)
{
	const struct lth_conv *conv = &problem->conv;
	int64_t outputs, lanes;
	struct lth_pack pack = {.kind = LTH_PACK_PANELS, .dtype = conv->w.memory, .groups = 1, .gates = 1};
	if (conv->groups != 1 || conv->spatial > 2 || !conv->w.constant ||
	    !lth_t_loads_as(conv->x.memory, problem->compute) || !lth_t_loads_as(conv->w.memory, problem->compute) ||
	    !lth_t_is(dims, conv->x_channel_stride, 1) || !lth_dim_is_const(dims, conv->out_channels, &outputs) ||
	    !lth_dim_is_const(dims, conv->in_channels, &pack.columns) ||
	    !lth_dim_is_const(dims, conv->w_in_stride, &pack.column_stride) ||
	    !lth_dim_is_const(dims, conv->w_out_stride, &pack.k[0].stride))
		return false;
	lanes = dots_lanes(machine, problem, pack.columns);
	if (outputs < 1 || outputs > MOST_OUTPUTS || outputs > lanes || pack.columns < lanes)
		return false;
	for (uint32_t axis = 0; axis < conv->spatial; axis++)
		if (conv->transposed && conv->dilation[axis] != 1)
			return false;
	/* one panel: for each output and tap all input channels */
	pack.k[0].extent = outputs;
	pack.num_k = 1 + conv->spatial;
	for (uint32_t axis = 0; axis < conv->spatial; axis++)
		if (!lth_dim_is_const(dims, conv->kernel[axis], &pack.k[1 + axis].extent) ||
		    !lth_dim_is_const(dims, conv->w_stride[axis], &pack.k[1 + axis].stride))
			return false;
	pack.panel = (pack.columns + lanes - 1) / lanes * lanes;
	pack.tail = pack.columns < pack.panel ? pack.panel : 0;
	out->packs[0] = pack;
	out->flops = lth_conv_flops(dims, conv);
	return true;
}

/* ---- sums ---- */

/* Lane i of the result: all lanes of sums[i] together. At each step a pair becomes one vector whose blocks, half as
 * wide, hold the pair's blocks folded. */
static lth_lv fold_sums(struct dots *d, lth_lv *sums)
{
	struct lth_loop_fn *fn = d->emit->fn;
	uint32_t low[LTH_MAX_LANES], high[LTH_MAX_LANES];
	unsigned lanes = d->lanes;
	for (unsigned blocks = 1; blocks < lanes; blocks *= 2) {
		unsigned width = lanes / blocks, half = width / 2;
		for (unsigned lane = 0; lane < lanes; lane++) {
			unsigned block = lane / half;
			unsigned from = block / blocks * lanes + block % blocks * width + lane % half;
			low[lane] = from;
			high[lane] = from + half;
		}
		for (unsigned i = 0; i < lanes / blocks / 2; i++) {
			lth_lv a = sums[2 * i], b = sums[2 * i + 1];
			lth_lv evens = lth_loop_shuffle(fn, a, b, low, lanes);
			sums[i] = lth_loop_op2(fn, LTH_SCALAR_ADD, evens, lth_loop_shuffle(fn, a, b, high, lanes));
		}
	}
	return sums[0];
}

/* ---- taps ---- */

/* Adds one tap: channels of each pixel times the tap's weights. `tap` is where the first output's weights begin. */
static void add_channels(struct dots *d, const lth_lv *pixels, lth_lv tap, lth_lv output_step, lth_lv *sums)
{
	struct lth_loop_fn *fn = d->emit->fn;
	const struct lth_conv *conv = d->problem;
	unsigned count = d->pixels * d->outputs;
	int64_t whole = d->channels / d->lanes * d->lanes;
	lth_lv phis[MOST_SUMS], channel = lth_loop_i64(fn, 0);
	for (int part = 0; part < 2; part++) {
		lth_lv mask = LTH_LV_NONE, *acc = sums;
		if (part && whole == d->channels)
			break;
		if (part) {
			channel = lth_loop_i64(fn, whole);
			mask = lth_loop_mask(fn, lth_loop_i64(fn, d->channels - whole), d->lanes);
		} else {
			channel = lth_loop_for(fn, channel, lth_loop_i64(fn, whole), d->lanes, sums, count, phis);
			acc = phis;
		}
		lth_lv weights[MOST_OUTPUTS];
		for (unsigned o = 0; o < d->outputs; o++) {
			lth_lv at = t_add(fn, t_mul_const(fn, output_step, o), channel);
			weights[o] = lth_loop_load(fn, lth_loop_offset(fn, tap, at, conv->w.memory), conv->w.memory,
						   d->lanes, LTH_LV_NONE);
		}
		for (unsigned p = 0; p < d->pixels; p++) {
			lth_lv x = lth_loop_load(fn, lth_loop_offset(fn, pixels[p], channel, conv->x.memory),
						 conv->x.memory, d->lanes, mask);
			for (unsigned o = 0; o < d->outputs; o++)
				acc[o * d->pixels + p] = t_fma(fn, x, weights[o], acc[o * d->pixels + p]);
		}
		if (!part)
			lth_loop_end_for(fn, phis, count, sums);
	}
}

/* How many taps a sum has along an axis, and which the k-th is. */
static lth_lv taps_of(const struct dots *d, int axis)
{
	return d->problem->transposed ? d->phase_taps[axis] : d->kernel[axis];
}

static lth_lv tap_at(const struct dots *d, int axis, lth_lv k)
{
	struct lth_loop_fn *fn = d->emit->fn;
	return d->problem->transposed ? t_add(fn, d->phase_tap[axis], t_mul_const(fn, k, d->stride[axis])) : k;
}

/* All taps of a tile whose windows begin at row y and columns x[p]. */
static void add_taps(struct dots *d, lth_lv image, lth_lv y, const lth_lv *x, bool checked, lth_lv *sums)
{
	struct lth_loop_fn *fn = d->emit->fn;
	enum lth_dtype memory = d->problem->x.memory;
	unsigned count = d->pixels * d->outputs;
	lth_lv rows[MOST_SUMS], columns[MOST_SUMS], pixels[MOST_SUMS], corner[MOST_SUMS];
	int64_t padded = (d->channels + d->lanes - 1) / d->lanes * d->lanes;
	lth_lv width = lth_t_param(d->emit, lth_dim_const(d->emit->dims, padded));
	lth_lv output_step = t_mul(fn, t_mul(fn, d->kernel[0], d->kernel[1]), width);
	for (unsigned p = 0; p < d->pixels; p++) {
		lth_lv row = lth_loop_offset(fn, image, t_mul(fn, y, d->step[0]), memory);
		corner[p] = lth_loop_offset(fn, row, t_mul(fn, x[p], d->step[1]), memory);
	}
	lth_lv ky = lth_loop_for(fn, lth_loop_i64(fn, 0), taps_of(d, 0), 1, sums, count, rows);
	lth_lv kx = lth_loop_for(fn, lth_loop_i64(fn, 0), taps_of(d, 1), 1, rows, count, columns);
	lth_lv down = t_mul(fn, ky, d->dilation[0]), along = t_mul(fn, kx, d->dilation[1]);
	lth_lv distance = t_mul(fn, down, d->step[0]);
	distance = t_add(fn, distance, t_mul(fn, along, d->step[1]));
	for (unsigned p = 0; p < d->pixels; p++) {
		pixels[p] = lth_loop_offset(fn, corner[p], distance, memory);
		if (!checked)
			continue;
		lth_lv inside_y = lth_t_inside(fn, t_add(fn, y, down), d->in[0]);
		lth_lv inside = t_and(fn, inside_y, lth_t_inside(fn, t_add(fn, x[p], along), d->in[1]));
		pixels[p] = t_select(fn, inside, pixels[p], d->zeros);
	}
	lth_lv tap = t_mul(fn, t_add(fn, t_mul(fn, tap_at(d, 0, ky), d->kernel[1]), tap_at(d, 1, kx)), width);
	add_channels(d, pixels, lth_loop_offset(fn, d->first_tap, tap, d->problem->w.memory), output_step, columns);
	lth_loop_end_for(fn, columns, count, rows);
	lth_loop_end_for(fn, rows, count, sums);
}

/* Whether windows from `first` to `last` lie inside along an axis. */
static lth_lv inside(struct dots *d, int axis, lth_lv first, lth_lv last)
{
	struct lth_loop_fn *fn = d->emit->fn;
	lth_lv reach = t_mul(fn, t_sub(fn, taps_of(d, axis), lth_loop_i64(fn, 1)), d->dilation[axis]);
	lth_lv low = d->problem->transposed ? t_add(fn, first, reach) : first; /* its dilation is -1 */
	lth_lv high = d->problem->transposed ? last : t_add(fn, last, reach);
	lth_lv begins = t_le(fn, lth_loop_i64(fn, 0), low);
	return t_and(fn, begins, t_lt(fn, high, d->in[axis]));
}

/* ---- tiles ---- */

static void hand_over(struct dots *d, lth_lv n, lth_lv y, lth_lv x, lth_lv result)
{
	struct lth_loop_fn *fn = d->emit->fn;
	const struct lth_epilogue *epilogue = d->emit->epilogue;
	lth_lv mask = LTH_LV_NONE;
	if (d->pixels > 1)
		mask = lth_loop_mask(fn, t_sub(fn, d->out[1], x), d->pixels);
	for (unsigned o = 0; o < d->outputs; o++) {
		lth_lv index[4] = {n, lth_loop_i64(fn, o), y, x}, value;
		uint32_t from[MOST_SUMS];
		for (unsigned p = 0; p < d->pixels; p++)
			from[p] = o * d->pixels + p;
		value = d->pixels == 1          ? lth_loop_extract(fn, result, from[0])
			: d->pixels == d->lanes ? result
						: lth_loop_shuffle(fn, result, result, from, d->pixels);
		if (d->one_dimension)
			index[2] = x;
		epilogue->apply(epilogue->context, 0, index, d->one_dimension ? 2 : 3, value, d->pixels, mask);
	}
}

/* Of the transpose: pixels of a phase, every stride-th of the row, into the row's buffer. */
static void keep_phase(struct dots *d, lth_lv x, lth_lv result)
{
	struct lth_loop_fn *fn = d->emit->fn;
	for (unsigned i = 0; i < d->pixels * d->outputs; i++) {
		lth_lv column = t_mul_const(fn, t_add_const(fn, x, i % d->pixels), d->stride[1]);
		lth_lv row = t_mul_const(fn, d->row_elements, i / d->pixels);
		lth_lv at = t_add(fn, row, t_add(fn, column, d->phase[1]));
		at = lth_loop_offset(fn, d->row_buffer, at, d->compute);
		lth_loop_store(fn, at, lth_loop_extract(fn, result, i), d->compute, LTH_LV_NONE);
	}
}

/* A row whose phases have all been kept. */
static void hand_over_row(struct dots *d, lth_lv n, lth_lv y)
{
	struct lth_loop_fn *fn = d->emit->fn;
	const struct lth_epilogue *epilogue = d->emit->epilogue;
	lth_lv x = lth_loop_for(fn, lth_loop_i64(fn, 0), d->out[1], d->lanes, NULL, 0, NULL);
	lth_lv mask = lth_loop_mask(fn, t_sub(fn, d->out[1], x), d->lanes);
	for (unsigned o = 0; o < d->outputs; o++) {
		lth_lv at = t_add(fn, t_mul_const(fn, d->row_elements, o), x);
		lth_lv index[4] = {n, lth_loop_i64(fn, o), y, x};
		lth_lv value = lth_loop_load(fn, lth_loop_offset(fn, d->row_buffer, at, d->compute), d->compute,
					     d->lanes, LTH_LV_NONE);
		if (d->one_dimension)
			index[2] = x;
		epilogue->apply(epilogue->context, 0, index, d->one_dimension ? 2 : 3, value, d->lanes, mask);
	}
	lth_loop_end_for(fn, NULL, 0, NULL);
}

/* Where the sum of the pixel `at` (of the transpose: of its phase) begins in the input. */
static lth_lv window_start(const struct dots *d, int axis, lth_lv at)
{
	struct lth_loop_fn *fn = d->emit->fn;
	if (d->problem->transposed)
		return t_add(fn, at, d->phase_start[axis]);
	return t_sub(fn, t_mul_const(fn, at, d->stride[axis]), d->pad[axis]);
}

static void begin_phase(struct dots *d, int axis, lth_lv phase)
{
	struct lth_loop_fn *fn = d->emit->fn;
	lth_lv stride = lth_loop_i64(fn, d->stride[axis]), sum = t_add(fn, phase, d->pad[axis]);
	d->phase[axis] = phase;
	d->phase_start[axis] = t_div(fn, sum, stride);
	d->phase_tap[axis] = t_rem(fn, sum, stride);
	lth_lv left = t_sub(fn, d->kernel[axis], d->phase_tap[axis]);
	d->phase_taps[axis] = t_div(fn, t_add_const(fn, left, d->stride[axis] - 1), stride);
}

static void emit_tile(struct dots *d, lth_lv n, lth_lv image, lth_lv y, lth_lv x)
{
	struct lth_loop_fn *fn = d->emit->fn;
	bool transposed = d->problem->transposed;
	unsigned count = d->pixels * d->outputs;
	lth_lv sums[MOST_SUMS], outside[MOST_SUMS], merged[MOST_SUMS], columns[MOST_SUMS];
	lth_lv zero = lth_t_zero(fn, d->compute, d->lanes), end = t_sub(fn, d->columns, lth_loop_i64(fn, 1));
	lth_lv row = window_start(d, 0, transposed ? t_div(fn, y, lth_loop_i64(fn, d->stride[0])) : y);
	for (unsigned p = 0; p < d->pixels; p++) /* pixels that do not exist repeat the last */
		columns[p] = window_start(d, 1, t_min(fn, t_add_const(fn, x, p), end));
	for (unsigned i = 0; i < d->lanes; i++)
		sums[i] = outside[i] = zero;
	lth_lv row_inside = inside(d, 0, row, row);
	lth_loop_if(fn, t_and(fn, row_inside, inside(d, 1, columns[0], columns[d->pixels - 1])));
	add_taps(d, image, row, columns, false, sums);
	lth_loop_else(fn, sums, count);
	add_taps(d, image, row, columns, true, outside);
	lth_loop_end_if(fn, outside, count, merged);
	memcpy(sums, merged, count * sizeof(*sums));
	if (transposed)
		keep_phase(d, x, fold_sums(d, sums));
	else
		hand_over(d, n, y, x, fold_sums(d, sums));
}

static lth_lv dim_or(struct dots *d, const lth_dim *list, int axis, int64_t otherwise)
{
	int at = problem_axis(d->problem, axis);
	return at < 0 ? lth_loop_i64(d->emit->fn, otherwise) : lth_t_stride(d->emit, list[at]);
}

/* Of the transpose: scratch for a row of all outputs, behind the zeros; tiles may hang over its end, as may vectors. */
static void lay_out_row(struct dots *d)
{
	struct lth_emit *emit = d->emit;
	struct lth_dims *dims = emit->dims;
	lth_dim stride = lth_dim_const(dims, d->stride[1]), line = lth_dim_const(dims, 64);
	lth_dim columns = lth_dim_ceildiv(dims, d->problem->out[d->problem->spatial - 1], stride);
	lth_dim row = lth_dim_mul(dims, lth_dim_add(dims, columns, lth_dim_const(dims, d->lanes)), stride);
	lth_dim zeros = lth_dim_mul(dims, lth_dim_ceildiv(dims, emit->scratch_bytes, line), line);
	int64_t bytes = lth_dtype_bits(d->compute) / 8 * d->outputs;
	d->columns = lth_t_param(emit, columns);
	d->row_elements = lth_t_param(emit, row);
	d->row_buffer = lth_loop_offset(emit->fn, d->zeros, lth_t_param(emit, zeros), LTH_DTYPE_U8);
	emit->scratch_bytes = lth_dim_add(dims, zeros, lth_dim_mul(dims, row, lth_dim_const(dims, bytes)));
}

static void read_params(struct dots *d)
{
	const struct lth_conv *conv = d->problem;
	struct lth_emit *emit = d->emit;
	struct lth_loop_fn *fn = emit->fn;
	for (int axis = 0; axis < 2; axis++) {
		int at = problem_axis(conv, axis);
		d->in[axis] = dim_or(d, conv->in, axis, 1);
		d->out[axis] = dim_or(d, conv->out, axis, 1);
		d->kernel[axis] = dim_or(d, conv->kernel, axis, 1);
		d->pad[axis] = dim_or(d, conv->pad, axis, 0);
		d->step[axis] = dim_or(d, conv->x_stride, axis, 0);
		d->dilation[axis] = lth_loop_i64(fn, conv->transposed ? -1 : at < 0 ? 1 : conv->dilation[at]);
		d->stride[axis] = at < 0 ? 1 : conv->stride[at];
	}
	d->columns = d->out[1];
	d->first_tap = conv->w.pointer;
	d->zeros = lth_loop_scratch(fn);
	lth_lv i = lth_loop_for(fn, lth_loop_i64(fn, 0), lth_loop_i64(fn, d->channels), 1, NULL, 0, NULL);
	lth_lv at = lth_loop_offset(fn, d->zeros, i, conv->x.memory);
	lth_loop_store(fn, at, lth_t_zero(fn, d->compute, 1), conv->x.memory, LTH_LV_NONE);
	lth_loop_end_for(fn, NULL, 0, NULL);
	emit->scratch_bytes = lth_dim_const(emit->dims, d->channels * (lth_dtype_bits(conv->x.memory) / 8));
	if (conv->transposed)
		lay_out_row(d);
}

/* A unit is a row of output pixels. */
void lth_dots_emit(struct lth_emit *emit, const struct lth_problem *problem, const struct lth_template_plan *plan)
{
	const struct lth_conv *conv = &problem->conv;
	struct lth_dims *dims = emit->dims;
	struct lth_loop_fn *fn = emit->fn;
	struct dots d = {.emit = emit,
			 .problem = conv,
			 .compute = problem->compute,
			 .one_dimension = conv->spatial == 1,
			 .lanes = dots_lanes(emit->machine, problem, plan->packs[0].columns),
			 .outputs = (unsigned)plan->packs[0].k[0].extent,
			 .channels = plan->packs[0].columns};
	for (d.pixels = d.lanes; d.pixels * d.outputs > d.lanes && d.pixels > 1;)
		d.pixels /= 2;
	read_params(&d);
	lth_dim rows = conv->spatial == 1 ? lth_dim_const(dims, 1) : conv->out[0];
	lth_lv row_count = lth_t_param(emit, rows), batch_step = lth_t_param(emit, conv->x_batch_stride);
	lth_lv unit = lth_loop_for(fn, lth_loop_begin(fn), lth_loop_end(fn), 1, NULL, 0, NULL);
	lth_lv n = t_div(fn, unit, row_count), y = t_rem(fn, unit, row_count);
	lth_lv image = lth_loop_offset(fn, conv->x.pointer, t_mul(fn, n, batch_step), conv->x.memory);
	if (conv->transposed) {
		begin_phase(&d, 0, t_rem(fn, y, lth_loop_i64(fn, d.stride[0])));
		lth_lv phases = lth_loop_i64(fn, d.stride[1]);
		begin_phase(&d, 1, lth_loop_for(fn, lth_loop_i64(fn, 0), phases, 1, NULL, 0, NULL));
	}
	lth_lv x = lth_loop_for(fn, lth_loop_i64(fn, 0), d.columns, d.pixels, NULL, 0, NULL);
	emit_tile(&d, n, image, y, x);
	lth_loop_end_for(fn, NULL, 0, NULL);
	if (conv->transposed) {
		lth_loop_end_for(fn, NULL, 0, NULL);
		hand_over_row(&d, n, y);
	}
	lth_loop_end_for(fn, NULL, 0, NULL);
	emit->units = lth_dim_mul(dims, conv->batch, rows);
	int64_t products = 2 * d.channels; /* of the transpose at the most */
	for (uint32_t k = 0; k < plan->packs[0].num_k; k++)
		products *= plan->packs[0].k[k].extent;
	emit->min_units = lth_t_min_units(
		dims, lth_dim_mul(dims, conv->out[conv->spatial - 1], lth_dim_const(dims, products)));
}
