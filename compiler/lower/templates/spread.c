/* Transposed convolution whose windows do not overlap (kernel = stride, no padding) with few output channels, as at the
 * end of detectors and segmenters: each output pixel is one tap of one input pixel. Vectors run along the pixels of a
 * row: a block of them is turned once, so that a channel is a vector, and every tap multiplies those vectors by its
 * weights, read in place. The sums of neighbouring taps are then interleaved to neighbouring output pixels. */
#include "compiler/lower/templates/internal.h"

enum { MOST_OUTPUTS = 4, MOST_SUMS = 16, MOST_TAPS = 8 /* of a row */ };

struct spread {
	struct lth_emit *emit;
	const struct lth_conv *p;
	enum lth_dtype compute;
	unsigned lanes, outputs, taps; /* taps: along a row */
	uint32_t row;                  /* the spatial axis that rows run along */
	lth_lv channels, pixels, turned;
	lth_lv index[LTH_MAX_SPATIAL + 1]; /* image, input pixel; of the row axis a block's first */
	lth_lv tap[LTH_MAX_SPATIAL];       /* but of the row axis */
};

bool lth_spread_plan(struct lth_dims *dims, const struct lth_machine *machine, const struct lth_problem *problem,
		     struct lth_template_plan *out)
{
	const struct lth_conv *p = &problem->conv;
	unsigned lanes = lth_machine_lanes(machine, problem->compute);
	int64_t outputs;
	if (!p->transposed || p->groups != 1 || !lth_t_loads_as(p->x.memory, problem->compute) ||
	    !lth_t_loads_as(p->w.memory, problem->compute) || !lth_t_is(dims, p->x_channel_stride, 1) ||
	    !lth_dim_is_const(dims, p->out_channels, &outputs) || outputs < 1 || outputs > MOST_OUTPUTS)
		return false;
	for (uint32_t axis = 0; axis < p->spatial; axis++) {
		lth_dim stride = lth_dim_const(dims, p->stride[axis]);
		if (!lth_t_is(dims, p->kernel[axis], p->stride[axis]) || !lth_t_is(dims, p->pad[axis], 0) ||
		    p->dilation[axis] != 1 ||
		    lth_dim_equal(dims, p->out[axis], lth_dim_mul(dims, p->in[axis], stride)) != LTH_YES)
			return false;
	}
	int64_t taps = p->stride[p->spatial - 1], most = machine->registers / 2;
	if ((taps & (taps - 1)) != 0 || taps > MOST_TAPS || outputs * taps > MOST_SUMS || outputs * taps > most ||
	    lth_t_likely(dims, p->in[p->spatial - 1]) < lanes)
		return false;
	out->flops = lth_conv_flops(dims, p);
	return true;
}

/* Turns the block of pixels from `first` on: channel c of all of them at turned + c * lanes. Pixels that do not exist
 * repeat the last. */
static void turn_pixels(struct spread *s, lth_lv row, lth_lv first)
{
	struct lth_loop_fn *fn = s->emit->fn;
	enum lth_dtype memory = s->p->x.memory;
	lth_lv step = lth_t_stride(s->emit, s->p->x_stride[s->row]), last = t_sub(fn, s->pixels, lth_loop_i64(fn, 1));
	lth_lv pixel[LTH_MAX_LANES], vectors[LTH_MAX_LANES];
	for (unsigned i = 0; i < s->lanes; i++)
		pixel[i] = lth_loop_offset(fn, row, t_mul(fn, t_min(fn, t_add_const(fn, first, i), last), step), memory);
	lth_lv channel = lth_loop_for(fn, lth_loop_i64(fn, 0), s->channels, s->lanes, NULL, 0, NULL);
	lth_lv mask = lth_loop_mask(fn, t_sub(fn, s->channels, channel), s->lanes);
	for (unsigned i = 0; i < s->lanes; i++)
		vectors[i] = lth_loop_load(fn, lth_loop_offset(fn, pixel[i], channel, memory), memory, s->lanes, mask);
	lth_t_transpose(fn, vectors, s->lanes);
	for (unsigned i = 0; i < s->lanes; i++) {
		lth_lv at = t_mul_const(fn, t_add_const(fn, channel, i), s->lanes);
		lth_loop_store(fn, lth_loop_offset(fn, s->turned, at, s->compute), vectors[i], s->compute, LTH_LV_NONE);
	}
	lth_loop_end_for(fn, NULL, 0, NULL);
}

/* sums[output][tap of the row] over all channels, for the taps of the other axes at hand. */
static void sum_taps(struct spread *s, lth_lv *sums)
{
	struct lth_loop_fn *fn = s->emit->fn;
	const struct lth_conv *p = s->p;
	unsigned count = s->outputs * s->taps;
	lth_lv zero[MOST_SUMS], phis[MOST_SUMS], weights = p->w.pointer;
	lth_lv out_step = lth_t_stride(s->emit, p->w_out_stride), tap_step = lth_t_stride(s->emit, p->w_stride[s->row]);
	for (unsigned i = 0; i < count; i++)
		zero[i] = lth_t_zero(fn, s->compute, s->lanes);
	for (uint32_t axis = 0; axis < s->row; axis++) {
		lth_lv at = t_mul(fn, s->tap[axis], lth_t_stride(s->emit, p->w_stride[axis]));
		weights = lth_loop_offset(fn, weights, at, p->w.memory);
	}
	lth_lv channel = lth_loop_for(fn, lth_loop_i64(fn, 0), s->channels, 1, zero, count, phis);
	lth_lv x = lth_loop_offset(fn, s->turned, t_mul_const(fn, channel, s->lanes), s->compute);
	x = lth_loop_load(fn, x, s->compute, s->lanes, LTH_LV_NONE);
	lth_lv from = t_mul(fn, channel, lth_t_stride(s->emit, p->w_in_stride));
	for (unsigned i = 0; i < count; i++) {
		lth_lv at = t_mul_const(fn, out_step, i / s->taps);
		at = t_add(fn, at, t_mul_const(fn, tap_step, i % s->taps));
		at = lth_loop_offset(fn, weights, t_add(fn, from, at), p->w.memory);
		lth_lv weight = lth_loop_load(fn, at, p->w.memory, 1, LTH_LV_NONE);
		phis[i] = t_fma(fn, lth_loop_splat(fn, weight, s->lanes), x, phis[i]);
	}
	lth_loop_end_for(fn, phis, count, sums);
}

/* vectors[t] lane i becomes element i * count + t of the whole; `count` is a power of two. */
static void interleave(struct lth_loop_fn *fn, lth_lv *vectors, unsigned count, unsigned lanes)
{
	lth_lv even[MOST_TAPS], odd[MOST_TAPS];
	uint32_t low[LTH_MAX_LANES], high[LTH_MAX_LANES];
	if (count == 1)
		return;
	for (unsigned i = 0; i < count; i++)
		(i % 2 ? odd : even)[i / 2] = vectors[i];
	interleave(fn, even, count / 2, lanes);
	interleave(fn, odd, count / 2, lanes);
	for (unsigned lane = 0; lane < lanes; lane++) {
		low[lane] = lane / 2 + lane % 2 * lanes;
		high[lane] = low[lane] + lanes / 2;
	}
	for (unsigned i = 0; i < count / 2; i++) {
		vectors[2 * i] = lth_loop_shuffle(fn, even[i], odd[i], low, lanes);
		vectors[2 * i + 1] = lth_loop_shuffle(fn, even[i], odd[i], high, lanes);
	}
}

static void hand_over(struct spread *s, lth_lv *sums)
{
	struct lth_loop_fn *fn = s->emit->fn;
	const struct lth_epilogue *epilogue = s->emit->epilogue;
	lth_lv index[LTH_MAX_SPATIAL + 2] = {s->index[0]};
	lth_lv first = t_mul_const(fn, s->index[1 + s->row], s->taps), end = t_mul_const(fn, s->pixels, s->taps);
	for (uint32_t axis = 0; axis < s->row; axis++)
		index[2 + axis] = t_add(fn, t_mul_const(fn, s->index[1 + axis], s->p->stride[axis]), s->tap[axis]);
	for (unsigned o = 0; o < s->outputs; o++) {
		index[1] = lth_loop_i64(fn, o);
		interleave(fn, sums + o * s->taps, s->taps, s->lanes);
		for (unsigned t = 0; t < s->taps; t++) {
			lth_lv at = index[2 + s->row] = t_add_const(fn, first, (int64_t)t * s->lanes);
			epilogue->apply(epilogue->context, 0, index, 2 + s->row, sums[o * s->taps + t], s->lanes,
					lth_loop_mask(fn, t_sub(fn, end, at), s->lanes));
		}
	}
}

/* All taps of a block of pixels. */
static void emit_block(struct spread *s)
{
	struct lth_loop_fn *fn = s->emit->fn;
	lth_lv sums[MOST_SUMS];
	for (uint32_t axis = 0; axis < s->row; axis++)
		s->tap[axis] = lth_loop_for(fn, lth_loop_i64(fn, 0), lth_loop_i64(fn, s->p->stride[axis]), 1, NULL, 0,
					    NULL);
	sum_taps(s, sums);
	hand_over(s, sums);
	for (uint32_t axis = 0; axis < s->row; axis++)
		lth_loop_end_for(fn, NULL, 0, NULL);
}

/* A unit is a row of input pixels. */
void lth_spread_emit(struct lth_emit *emit, const struct lth_problem *problem, const struct lth_template_plan *plan)
{
	const struct lth_conv *p = &problem->conv;
	struct lth_dims *dims = emit->dims;
	struct lth_loop_fn *fn = emit->fn;
	int64_t outputs = 1;
	(void)plan;
	(void)lth_dim_is_const(dims, p->out_channels, &outputs);
	struct spread s = {.emit = emit,
			   .p = p,
			   .compute = problem->compute,
			   .lanes = lth_machine_lanes(emit->machine, problem->compute),
			   .outputs = (unsigned)outputs,
			   .row = p->spatial - 1,
			   .taps = (unsigned)p->stride[p->spatial - 1],
			   .channels = lth_t_param(emit, p->in_channels),
			   .pixels = lth_t_param(emit, p->in[p->spatial - 1]),
			   .turned = lth_loop_scratch(fn)};
	lth_dim lanes = lth_dim_const(dims, s.lanes), line = lth_dim_const(dims, emit->machine->vector_bytes);
	lth_lv extents[LTH_MAX_SPATIAL + 1] = {LTH_LV_NONE};
	for (uint32_t axis = 0; axis < s.row; axis++)
		extents[1 + axis] = lth_t_param(emit, p->in[axis]);
	lth_lv batch_step = lth_t_param(emit, p->x_batch_stride);
	lth_lv unit = lth_loop_for(fn, lth_loop_begin(fn), lth_loop_end(fn), 1, NULL, 0, NULL);
	lth_t_unflatten(fn, unit, extents, 1 + s.row, s.index);
	lth_lv row = lth_loop_offset(fn, p->x.pointer, t_mul(fn, s.index[0], batch_step), p->x.memory);
	for (uint32_t axis = 0; axis < s.row; axis++) {
		lth_lv at = t_mul(fn, s.index[1 + axis], lth_t_stride(emit, p->x_stride[axis]));
		row = lth_loop_offset(fn, row, at, p->x.memory);
	}
	s.index[1 + s.row] = lth_loop_for(fn, lth_loop_i64(fn, 0), s.pixels, s.lanes, NULL, 0, NULL);
	turn_pixels(&s, row, s.index[1 + s.row]);
	emit_block(&s);
	lth_loop_end_for(fn, NULL, 0, NULL);
	lth_loop_end_for(fn, NULL, 0, NULL);
	emit->scratch_bytes = lth_dim_mul(
		dims, lth_dim_mul(dims, lth_dim_ceildiv(dims, p->in_channels, lanes), lanes), line);
	emit->units = lth_dim_mul(dims, p->batch, lth_dim_product(dims, p->in, s.row));
	lth_dim work = lth_dim_const(dims, 2 * outputs);
	for (uint32_t axis = 0; axis < p->spatial; axis++)
		work = lth_dim_mul(dims, work, p->kernel[axis]);
	emit->min_units = lth_t_min_units(
		dims, lth_dim_mul(dims, work, lth_dim_mul(dims, p->in[s.row], p->in_channels)));
}
