/* Convolution in 1 to 3 dimensions as a product of output pixels with panels of output channels, without im2col, halo
 * or border variants: for each tap every row of the tile gets a pointer to its input pixel, or to a buffer of zeros
 * when the tap falls outside the image; the inner loop runs over input channels. A tap that no row of the tile can use
 * is skipped with its weights. 1x1 without padding needs no taps and is the plain product.
 *
 * The transpose is the same product by phases: output pixels that are equal modulo the strides use the same taps and,
 * among themselves, step through the input one by one. A tap that does not belong to the phase at hand is skipped.
 *
 * Any layout of x works; channels innermost is what it is good at. Groups (and phases) are batch entries of the
 * product. */
#include "compiler/lower/templates/internal.h"

#include <string.h>

enum {
	UNROLLED_CHANNELS = 4,  /* up to so many input channels a tap's inner loop is written out */
	UNROLLED_PRODUCTS = 448 /* and the taps of a tile inside the image, up to so many products of vectors */
};

struct conv {
	const struct lth_conv *problem;
	bool pointwise, flat, inside[LTH_MAX_SPATIAL]; /* inside: no tap ever falls outside along this axis */
	int64_t channels;                              /* of one group when known, else -1 */
	int64_t taps[LTH_MAX_SPATIAL];                 /* the kernel's extents, when known, else -1 */
	int64_t written_out[LTH_MAX_SPATIAL];          /* taps along an axis, when these are written out; else 0 */
	lth_lv group_channels, out_group_channels, x_batch, x_channel, x_group, zeros;
	lth_lv in[LTH_MAX_SPATIAL], kernel[LTH_MAX_SPATIAL], pad[LTH_MAX_SPATIAL], stride[LTH_MAX_SPATIAL];
	lth_lv dilation[LTH_MAX_SPATIAL], x_stride[LTH_MAX_SPATIAL], out[LTH_MAX_SPATIAL];
	bool whole_phases[LTH_MAX_SPATIAL]; /* of the transpose: every phase has equally many pixels */
};

static lth_dim per_group(struct lth_dims *dims, lth_dim channels, int64_t groups)
{
	return lth_dim_floordiv(dims, channels, lth_dim_const(dims, groups));
}

/* Without padding no tap ever falls outside; else (out - 1) * stride + (kernel - 1) * dilation < in may be provable. */
static bool never_outside(struct lth_dims *dims, const struct lth_conv *conv, uint32_t axis)
{
	lth_dim one = lth_dim_const(dims, 1);
	if (conv->transposed || !lth_t_is(dims, conv->pad[axis], 0))
		return false;
	if (lth_t_is(dims, conv->pad_end[axis], 0))
		return true;
	lth_dim last = lth_dim_mul(dims, lth_dim_sub(dims, conv->out[axis], one),
				   lth_dim_const(dims, conv->stride[axis]));
	lth_dim reach = lth_dim_mul(dims, lth_dim_sub(dims, conv->kernel[axis], one),
				    lth_dim_const(dims, conv->dilation[axis]));
	lth_dim need = lth_dim_add(dims, lth_dim_add(dims, last, reach), one);
	return need != LTH_DIM_NONE && lth_dim_at_most(dims, need, conv->in[axis]);
}

static bool is_pointwise(struct lth_dims *dims, const struct lth_conv *conv)
{
	for (uint32_t axis = 0; axis < conv->spatial; axis++)
		if (!lth_t_is(dims, conv->kernel[axis], 1) || !never_outside(dims, conv, axis))
			return false;
	return true;
}

static bool conv_pack(struct lth_dims *dims, const struct lth_machine *machine, const struct lth_problem *problem,
		      struct lth_pack *out)
{
	const struct lth_conv *conv = &problem->conv;
	struct lth_pack pack = {.kind = LTH_PACK_PANELS,
				.dtype = conv->w.memory,
				.groups = conv->groups,
				.gates = 1,
				.num_k = conv->spatial + 1};
	struct lth_tile full = lth_tile_full(machine, problem->compute), tail;
	lth_dim columns = per_group(dims, conv->out_channels, conv->groups);
	if (!conv->w.constant || !lth_dim_is_const(dims, columns, &pack.columns) ||
	    !lth_dim_is_const(dims, conv->w_out_stride, &pack.column_stride) ||
	    !lth_dim_is_const(dims, per_group(dims, conv->in_channels, conv->groups), &pack.k[conv->spatial].extent) ||
	    !lth_dim_is_const(dims, conv->w_in_stride, &pack.k[conv->spatial].stride))
		return false;
	for (uint32_t axis = 0; axis < conv->spatial; axis++)
		if (!lth_dim_is_const(dims, conv->kernel[axis], &pack.k[axis].extent) ||
		    !lth_dim_is_const(dims, conv->w_stride[axis], &pack.k[axis].stride))
			return false;
	pack.group_stride = conv->transposed ? pack.k[conv->spatial].extent * pack.k[conv->spatial].stride
					     : pack.columns * pack.column_stride;
	pack.panel = lth_tile_width(&full);
	if (lth_tiles_tail(machine, problem->compute, pack.columns, &tail))
		pack.tail = lth_tile_width(&tail);
	if (problem->compute == LTH_DTYPE_I32)
		lth_bytes_pack(problem, pack.columns, &pack);
	*out = pack;
	return true;
}

lth_dim lth_conv_flops(struct lth_dims *dims, const struct lth_conv *conv)
{
	lth_dim flops = lth_dim_mul(dims, lth_dim_const(dims, 2), lth_dim_mul(dims, conv->batch, conv->out_channels));
	flops = lth_dim_mul(dims, flops, per_group(dims, conv->in_channels, conv->groups));
	for (uint32_t axis = 0; axis < conv->spatial; axis++)
		flops = lth_dim_mul(
			dims, flops,
			lth_dim_mul(dims, conv->kernel[axis], conv->transposed ? conv->in[axis] : conv->out[axis]));
	return flops;
}

/* From one channel to the next: a single one is adjacent to itself, whatever the layout. */
static lth_dim channel_stride(struct lth_dims *dims, const struct lth_conv *conv)
{
	return lth_t_is(dims, conv->in_channels, 1) ? lth_dim_const(dims, 1) : conv->x_channel_stride;
}

bool lth_conv_plan(struct lth_dims *dims, const struct lth_machine *machine, const struct lth_problem *problem,
		   struct lth_template_plan *out)
{
	const struct lth_conv *conv = &problem->conv;
	bool bytes = lth_bytes_plan(dims, problem, &conv->x, &conv->w, channel_stride(dims, conv)) &&
		     lth_bytes_known(problem, &conv->w) && !conv->transposed;
	if (!bytes &&
	    (!lth_t_loads_as(conv->x.memory, problem->compute) || !lth_t_loads_as(conv->w.memory, problem->compute)))
		return false;
	out->flops = lth_conv_flops(dims, conv);
	out->variant = conv_pack(dims, machine, problem, &out->packs[0]) ? LTH_PANELS_PACKED : LTH_PANELS_GATHERED;
	return !bytes || out->variant == LTH_PANELS_PACKED;
}

/* Where the windows of the tile's rows begin. */
struct windows {
	lth_lv base[LTH_MAX_TILE_ROWS], start[LTH_MAX_SPATIAL][LTH_MAX_TILE_ROWS];
};

static void place_windows(struct lth_tiles *tiles, unsigned rows, struct windows *out)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	const struct conv *conv = tiles->context;
	lth_lv x = lth_loop_offset(fn, conv->problem->x.pointer, t_mul(fn, tiles->batch_index[0], conv->x_group),
				   conv->problem->x.memory);
	for (unsigned r = 0; r < rows; r++) {
		out->base[r] = lth_loop_offset(fn, x, t_mul(fn, tiles->row_index[r][0], conv->x_batch),
					       conv->problem->x.memory);
		for (uint32_t axis = 0; axis < conv->problem->spatial; axis++) {
			lth_lv index = tiles->row_index[r][1 + axis];
			if (!conv->problem->transposed)
				index = t_sub(fn, t_mul(fn, index, conv->stride[axis]), conv->pad[axis]);
			out->start[axis][r] = index;
		}
	}
}

static void pointwise_accumulate(struct lth_tiles *tiles, const struct lth_tile *tile, unsigned rows, lth_lv *acc)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	const struct conv *conv = tiles->context;
	enum lth_dtype memory = conv->problem->x.memory;
	uint32_t last = conv->problem->spatial - 1;
	struct lth_tile_rows a = {.step = {conv->x_channel}, .memory = memory, .ahead = LTH_LV_NONE};
	struct windows windows;
	if (conv->flat) {
		lth_lv x = lth_loop_offset(fn, conv->problem->x.pointer,
					   t_mul(fn, tiles->batch_index[0], conv->x_group), memory);
		for (unsigned r = 0; r < rows; r++)
			a.pointer[r] = lth_loop_offset(fn, x, t_mul(fn, tiles->row_index[r][0], conv->x_stride[last]),
						       memory);
	} else {
		place_windows(tiles, rows, &windows);
		for (unsigned r = 0; r < rows; r++) {
			a.pointer[r] = windows.base[r];
			for (uint32_t axis = 0; axis <= last; axis++)
				a.pointer[r] = lth_loop_offset(fn, a.pointer[r],
							       t_mul(fn, windows.start[axis][r], conv->x_stride[axis]),
							       memory);
		}
	}
	a.steps = conv->x_channel == LTH_LV_NONE ? LTH_STEP_ADJACENT : LTH_STEP_SHARED;
	if (conv->flat && a.steps == LTH_STEP_ADJACENT)
		a.ahead = lth_loop_offset(fn, a.pointer[0], t_mul_const(fn, conv->x_stride[last], rows), memory);
	lth_tile_dot(tiles, tile, rows, &a, tiles->panel, conv->group_channels, acc);
}

/* One tap: `at` are the rows' pointers along the axes so far, `valid` whether they are inside (LTH_LV_NONE: surely). */
static lth_lv accumulate_tap(struct lth_tiles *tiles, const struct lth_tile *tile, unsigned rows, const lth_lv *at,
			     const lth_lv *valid, lth_lv panel, lth_lv *acc)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	const struct conv *conv = tiles->context;
	struct lth_tile_rows a = {.memory = conv->problem->x.memory, .ahead = LTH_LV_NONE};
	bool adjacent = conv->x_channel == LTH_LV_NONE, checked = valid[0] != LTH_LV_NONE;
	a.steps = adjacent ? LTH_STEP_ADJACENT : checked ? LTH_STEP_OWN : LTH_STEP_SHARED;
	lth_lv any = valid[0];
	for (unsigned r = 0; r < rows; r++) {
		a.pointer[r] = checked ? t_select(fn, valid[r], at[r], conv->zeros) : at[r];
		if (!adjacent)
			a.step[r] = checked ? t_select(fn, valid[r], conv->x_channel, lth_loop_i64(fn, 0))
					    : conv->x_channel;
		if (r && checked)
			any = t_or(fn, any, valid[r]);
	}
	if (conv->channels >= 0 && conv->channels <= UNROLLED_CHANNELS && !conv->problem->transposed && !tiles->bytes)
		return lth_tile_dot_unrolled(tiles, tile, rows, &a, panel, (unsigned)conv->channels, acc);
	if (!checked || tiles->bytes) /* the sums of bytes are settled as if no tap were missing */
		return lth_tile_dot(tiles, tile, rows, &a, panel, conv->group_channels, acc);
	unsigned count = rows * tile->vectors;
	lth_lv done[LTH_MAX_ACCUMULATORS + 1], skipped[LTH_MAX_ACCUMULATORS + 1], merged[LTH_MAX_ACCUMULATORS + 1];
	for (unsigned i = 0; i < count; i++)
		done[i] = skipped[i] = acc[i];
	lth_loop_if(fn, any);
	done[count] = lth_tile_dot(tiles, tile, rows, &a, panel, conv->group_channels, done);
	lth_loop_else(fn, done, count + 1);
	skipped[count] = lth_loop_offset(fn, panel, t_mul(fn, conv->group_channels, tiles->panel_step),
					 tiles->panel_memory);
	lth_loop_end_if(fn, skipped, count + 1, merged);
	for (unsigned i = 0; i < count; i++)
		acc[i] = merged[i];
	return merged[count];
}

/* How far from a window's start tap `k` is. Of the transpose: output pixel q * stride + phase takes input pixel
 * q + (phase + pad - k * dilation) / stride, if that divides; `out_belongs` says whether. */
static lth_lv tap_shift(struct lth_tiles *tiles, uint32_t axis, lth_lv k, lth_lv *out_belongs)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	const struct conv *conv = tiles->context;
	lth_lv reach = t_mul(fn, k, conv->dilation[axis]);
	if (!conv->problem->transposed)
		return reach;
	lth_lv distance = t_sub(fn, t_add(fn, tiles->batch_index[1 + axis], conv->pad[axis]), reach);
	lth_lv remainder = lth_loop_op2(fn, LTH_SCALAR_MOD, distance, conv->stride[axis]);
	*out_belongs = t_eq(fn, remainder, lth_loop_i64(fn, 0));
	return lth_loop_op2(fn, LTH_SCALAR_FLOORDIV, distance, conv->stride[axis]);
}

static lth_lv accumulate_axis(struct lth_tiles *tiles, const struct lth_tile *tile, unsigned rows, uint32_t axis,
			      const struct windows *windows, const lth_lv *at, const lth_lv *valid, lth_lv panel,
			      lth_lv *acc);

/* The taps of an axis one after the other, none of them outside: the rows' pointers move by the same distances. */
static lth_lv accumulate_written_out(struct lth_tiles *tiles, const struct lth_tile *tile, unsigned rows, uint32_t axis,
				     const struct windows *windows, const lth_lv *at, const lth_lv *valid, lth_lv panel,
				     lth_lv *acc)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	const struct conv *conv = tiles->context;
	lth_lv step = t_mul(fn, conv->dilation[axis], conv->x_stride[axis]), here[LTH_MAX_TILE_ROWS];
	for (int64_t k = 0; k < conv->written_out[axis]; k++) {
		for (unsigned r = 0; r < rows; r++)
			here[r] = lth_loop_offset(fn, at[r], t_mul_const(fn, step, k), conv->problem->x.memory);
		panel = accumulate_axis(tiles, tile, rows, axis + 1, windows, here, valid, panel, acc);
	}
	return panel;
}

/* The loop over the kernel along `axis`, and inside it those of the axes behind. */
static lth_lv accumulate_axis(struct lth_tiles *tiles, const struct lth_tile *tile, unsigned rows, uint32_t axis,
			      const struct windows *windows, const lth_lv *at, const lth_lv *valid, lth_lv panel,
			      lth_lv *acc)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	const struct conv *conv = tiles->context;
	unsigned count = lth_tile_sums(tiles, tile, rows);
	lth_lv state[LTH_MAX_ACCUMULATORS + 1], phis[LTH_MAX_ACCUMULATORS + 1];
	lth_lv here[LTH_MAX_TILE_ROWS] = {0}, still[LTH_MAX_TILE_ROWS] = {0};
	if (axis == conv->problem->spatial)
		return accumulate_tap(tiles, tile, rows, at, valid, panel, acc);
	if (conv->written_out[axis])
		return accumulate_written_out(tiles, tile, rows, axis, windows, at, valid, panel, acc);
	for (unsigned i = 0; i < count; i++)
		state[i] = acc[i];
	state[count] = panel;
	lth_lv k = lth_loop_for(fn, lth_loop_i64(fn, 0), conv->kernel[axis], 1, state, count + 1, phis);
	lth_lv belongs = LTH_LV_NONE, shift = tap_shift(tiles, axis, k, &belongs);
	for (unsigned r = 0; r < rows; r++) {
		lth_lv position = t_add(fn, windows->start[axis][r], shift);
		here[r] = lth_loop_offset(fn, at[r], t_mul(fn, position, conv->x_stride[axis]),
					  conv->problem->x.memory);
		still[r] = valid[r];
		if (conv->inside[axis])
			continue;
		lth_lv inside = lth_t_inside(fn, position, conv->in[axis]);
		if (belongs != LTH_LV_NONE)
			inside = t_and(fn, inside, belongs);
		still[r] = valid[r] == LTH_LV_NONE ? inside : t_and(fn, valid[r], inside);
	}
	phis[count] = accumulate_axis(tiles, tile, rows, axis + 1, windows, here, still, phis[count], phis);
	lth_loop_end_for(fn, phis, count + 1, state);
	for (unsigned i = 0; i < count; i++)
		acc[i] = state[i];
	return state[count];
}

/* Whether no tap of any row falls outside; LTH_LV_NONE where that is certain. */
static lth_lv all_inside(struct lth_tiles *tiles, unsigned rows, const struct windows *windows)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	const struct conv *conv = tiles->context;
	lth_lv result = LTH_LV_NONE;
	for (uint32_t axis = 0; axis < conv->problem->spatial; axis++) {
		if (conv->inside[axis])
			continue;
		lth_lv reach = t_mul(fn, t_sub(fn, conv->kernel[axis], lth_loop_i64(fn, 1)), conv->dilation[axis]);
		for (unsigned r = 0; r < rows; r++) {
			lth_lv first = windows->start[axis][r], last = t_add(fn, first, reach);
			lth_lv begins = t_le(fn, lth_loop_i64(fn, 0), first), ends = t_lt(fn, last, conv->in[axis]);
			lth_lv inside = t_and(fn, begins, ends);
			result = result == LTH_LV_NONE ? inside : t_and(fn, result, inside);
		}
	}
	return result;
}

/* Taps of a tile that lies inside the image: their distances are the same for all rows. */
static void accumulate_inside(struct lth_tiles *tiles, const struct lth_tile *tile, unsigned rows,
			      const struct windows *windows, const lth_lv *valid, lth_lv *acc)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	struct conv *conv = tiles->context, inside = *conv;
	struct windows from = *windows;
	int64_t products = conv->channels * rows * tile->vectors;
	for (uint32_t axis = conv->problem->spatial; axis-- > 0;) {
		int64_t taps = conv->taps[axis];
		inside.inside[axis] = true;
		products = taps > 0 && products <= UNROLLED_PRODUCTS / taps ? products * taps : UNROLLED_PRODUCTS + 1;
		inside.written_out[axis] = products <= UNROLLED_PRODUCTS ? taps : 0;
		for (unsigned r = 0; r < rows; r++) {
			lth_lv at = t_mul(fn, windows->start[axis][r], conv->x_stride[axis]);
			from.base[r] = lth_loop_offset(fn, from.base[r], at, conv->problem->x.memory);
			from.start[axis][r] = lth_loop_i64(fn, 0);
		}
	}
	tiles->context = &inside;
	accumulate_axis(tiles, tile, rows, 0, &from, from.base, valid, tiles->panel, acc);
	tiles->context = conv;
}

static void conv_accumulate(struct lth_tiles *tiles, const struct lth_tile *tile, unsigned rows, lth_lv *acc)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	const struct conv *conv = tiles->context;
	struct windows windows;
	unsigned count = lth_tile_sums(tiles, tile, rows);
	lth_lv valid[LTH_MAX_TILE_ROWS], outside[LTH_MAX_ACCUMULATORS], merged[LTH_MAX_ACCUMULATORS];
	place_windows(tiles, rows, &windows);
	for (unsigned r = 0; r < rows; r++)
		valid[r] = LTH_LV_NONE;
	/* with few channels it is the pointers that cost: most tiles need no look at each tap's */
	bool few = conv->channels >= 0 && conv->channels <= UNROLLED_CHANNELS && !conv->problem->transposed;
	lth_lv inside = few && rows > 1 ? all_inside(tiles, rows, &windows) : LTH_LV_NONE;
	if (inside == LTH_LV_NONE) {
		accumulate_axis(tiles, tile, rows, 0, &windows, windows.base, valid, tiles->panel, acc);
		return;
	}
	memcpy(outside, acc, count * sizeof(*acc));
	lth_loop_if(fn, inside);
	accumulate_inside(tiles, tile, rows, &windows, valid, acc);
	lth_loop_else(fn, acc, count);
	accumulate_axis(tiles, tile, rows, 0, &windows, windows.base, valid, tiles->panel, outside);
	lth_loop_end_if(fn, outside, count, merged);
	memcpy(acc, merged, count * sizeof(*acc));
}

static void conv_index(struct lth_tiles *tiles, const lth_lv *row, lth_lv column, lth_lv *out)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	const struct conv *conv = tiles->context;
	uint32_t spatial = conv->problem->spatial;
	out[1] = t_add(fn, t_mul(fn, tiles->batch_index[0], conv->out_group_channels), column);
	if (conv->flat) {
		out[0] = lth_loop_i64(fn, 0);
		for (uint32_t axis = 0; axis < spatial; axis++)
			out[2 + axis] = axis + 1 == spatial ? row[0] : lth_loop_i64(fn, 0);
		return;
	}
	out[0] = row[0];
	for (uint32_t axis = 0; axis < spatial; axis++) {
		out[2 + axis] = row[1 + axis];
		if (conv->problem->transposed)
			out[2 + axis] = t_add(fn, t_mul(fn, row[1 + axis], conv->stride[axis]),
					      tiles->batch_index[1 + axis]);
	}
}

/* Phases of the transpose that are one pixel short have a last row that does not exist. */
static void conv_finish(struct lth_tiles *tiles, const lth_lv *row, lth_lv column, lth_lv value, unsigned lanes,
			lth_lv mask)
{
	const struct conv *conv = tiles->context;
	const struct lth_epilogue *epilogue = tiles->emit->epilogue;
	lth_lv index[LTH_MAX_SPATIAL + 2];
	lth_lv exists = LTH_LV_NONE;
	conv_index(tiles, row, column, index);
	for (uint32_t axis = 0; axis < conv->problem->spatial; axis++) {
		if (!conv->problem->transposed || conv->whole_phases[axis])
			continue;
		lth_lv inside = t_lt(tiles->emit->fn, index[2 + axis], conv->out[axis]);
		exists = exists == LTH_LV_NONE ? inside : t_and(tiles->emit->fn, exists, inside);
	}
	if (exists != LTH_LV_NONE)
		lth_loop_if(tiles->emit->fn, exists);
	epilogue->apply(epilogue->context, 0, index, 1, value, lanes, mask);
	if (exists != LTH_LV_NONE)
		lth_loop_end_if(tiles->emit->fn, NULL, 0, NULL);
}

static void conv_prefetch(struct lth_tiles *tiles, const lth_lv *row, lth_lv column)
{
	const struct lth_epilogue *epilogue = tiles->emit->epilogue;
	lth_lv index[LTH_MAX_SPATIAL + 2];
	conv_index(tiles, row, column, index);
	epilogue->prefetch(epilogue->context, 0, index);
}

/* Whether output pixels and the input pixels they read are numbered alike, with equal steps. */
static bool pixels_are_flat(struct lth_emit *emit, const struct lth_conv *conv)
{
	struct lth_dims *dims = emit->dims;
	if (!emit->epilogue->flat_pixels || !is_pointwise(dims, conv))
		return false;
	lth_dim next = conv->x_stride[conv->spatial - 1];
	for (uint32_t axis = conv->spatial; axis-- > 0;) {
		if (conv->stride[axis] != 1 || lth_dim_equal(dims, conv->x_stride[axis], next) != LTH_YES)
			return false;
		next = lth_dim_mul(dims, next, conv->in[axis]);
	}
	return lth_t_is(dims, conv->batch, 1) || lth_dim_equal(dims, conv->x_batch_stride, next) == LTH_YES;
}

/* The buffer of zeros (or zero points) that taps outside the image read: as many as a tap reads. */
static lth_dim write_zeros(struct lth_emit *emit, lth_lv zero, const struct lth_conv *conv, struct conv *out)
{
	struct lth_dims *dims = emit->dims;
	struct lth_loop_fn *fn = emit->fn;
	lth_dim bytes = lth_dim_const(dims, lth_dtype_bits(conv->x.memory) / 8), count = lth_dim_const(dims, 1);
	if (out->x_channel == LTH_LV_NONE)
		count = per_group(dims, conv->in_channels, conv->groups);
	out->zeros = lth_loop_offset(fn, lth_loop_scratch(fn), lth_loop_i64(fn, LTH_TILE_BUFFER_BYTES), LTH_DTYPE_U8);
	lth_lv i = lth_loop_for(fn, lth_loop_i64(fn, 0), lth_t_param(emit, count), 1, NULL, 0, NULL);
	lth_loop_store(fn, lth_loop_offset(fn, out->zeros, i, conv->x.memory), zero, conv->x.memory, LTH_LV_NONE);
	lth_loop_end_for(fn, NULL, 0, NULL);
	return lth_dim_mul(dims, count, bytes);
}

static void read_conv(struct lth_emit *emit, const struct lth_conv *conv, struct conv *out)
{
	struct lth_dims *dims = emit->dims;
	lth_dim channels = per_group(dims, conv->in_channels, conv->groups);
	out->problem = conv;
	out->pointwise = is_pointwise(dims, conv);
	out->flat = pixels_are_flat(emit, conv);
	if (!lth_dim_is_const(dims, channels, &out->channels))
		out->channels = -1;
	out->group_channels = lth_t_param(emit, channels);
	out->out_group_channels = lth_t_param(emit, per_group(dims, conv->out_channels, conv->groups));
	out->x_batch = lth_t_param(emit, conv->x_batch_stride);
	lth_dim stride = channel_stride(dims, conv);
	out->x_channel = lth_t_is(dims, stride, 1) ? LTH_LV_NONE : lth_t_param(emit, stride);
	out->x_group = lth_t_param(emit, lth_dim_mul(dims, channels, conv->x_channel_stride));
	for (uint32_t axis = 0; axis < conv->spatial; axis++) {
		out->inside[axis] = never_outside(dims, conv, axis);
		out->in[axis] = lth_t_param(emit, conv->in[axis]);
		out->kernel[axis] = lth_t_stride(emit, conv->kernel[axis]);
		if (!lth_dim_is_const(dims, conv->kernel[axis], &out->taps[axis]))
			out->taps[axis] = -1;
		out->pad[axis] = lth_t_stride(emit, conv->pad[axis]);
		/* The transpose divides by it. */
		out->stride[axis] = conv->transposed ? lth_loop_i64(emit->fn, conv->stride[axis])
						     : lth_t_stride(emit, lth_dim_const(dims, conv->stride[axis]));
		out->dilation[axis] = lth_t_stride(emit, lth_dim_const(dims, conv->dilation[axis]));
		out->x_stride[axis] = lth_t_stride(emit, conv->x_stride[axis]);
		if (!conv->transposed)
			continue;
		out->out[axis] = lth_t_param(emit, conv->out[axis]);
		out->whole_phases[axis] = lth_dim_divides(dims, lth_dim_const(dims, conv->stride[axis]),
							  conv->out[axis]) == LTH_YES;
	}
}

void lth_conv_emit(struct lth_emit *emit, const struct lth_problem *problem, const struct lth_template_plan *plan)
{
	const struct lth_conv *p = &problem->conv;
	struct lth_dims *dims = emit->dims;
	struct conv conv = {0};
	struct lth_bytes bytes;
	lth_dim group_channels = per_group(dims, p->in_channels, p->groups);
	read_conv(emit, p, &conv);
	struct lth_tiles tiles = {
		.emit = emit,
		.compute = problem->compute,
		.b_memory = p->w.memory,
		.panels = (enum lth_panels)plan->variant,
		.num_batch = p->transposed ? 1 + p->spatial : 1,
		.num_rows = 1 + p->spatial,
		.num_k = p->spatial + 1,
		.columns = per_group(dims, p->out_channels, p->groups),
		.b = p->w.pointer,
		.b_n_stride = p->w_out_stride,
		.extra_scratch = LTH_DIM_NONE,
		.context = &conv,
		.accumulate = conv.pointwise ? pointwise_accumulate : conv_accumulate,
		.finish = conv_finish,
		.prefetch = emit->epilogue->prefetch ? conv_prefetch : NULL,
	};
	lth_dim group_stride = p->transposed ? lth_dim_mul(dims, group_channels, p->w_in_stride)
					     : lth_dim_mul(dims, tiles.columns, p->w_out_stride);
	if (p->groups == 1 && !p->transposed) {
		tiles.num_batch = 0;
		tiles.batch_index[0] = lth_loop_i64(emit->fn, 0);
	}
	tiles.batch[0] = lth_dim_const(dims, p->groups);
	tiles.b_batch_stride[0] = tiles.panels == LTH_PANELS_PACKED ? lth_dim_const(dims, 1) : group_stride;
	tiles.depth = group_channels;
	tiles.rows[0] = p->batch;
	for (uint32_t axis = 0; axis < p->spatial; axis++) {
		lth_dim stride = lth_dim_const(dims, p->stride[axis]);
		tiles.rows[1 + axis] = p->transposed ? lth_dim_ceildiv(dims, p->out[axis], stride) : p->out[axis];
		tiles.batch[1 + axis] = stride;
		tiles.b_batch_stride[1 + axis] = lth_dim_const(dims, 0);
		tiles.b_k[axis] = p->kernel[axis];
		tiles.b_k_stride[axis] = p->w_stride[axis];
		tiles.depth = lth_dim_mul(dims, tiles.depth, p->kernel[axis]);
	}
	tiles.b_k[p->spatial] = group_channels;
	tiles.b_k_stride[p->spatial] = p->w_in_stride;
	if (conv.flat) {
		tiles.rows[0] = lth_dim_product(dims, tiles.rows, tiles.num_rows);
		tiles.num_rows = 1;
	}
	if (problem->compute == LTH_DTYPE_I32) {
		lth_bytes_begin(emit, problem, p->x.memory, plan->packs[0].k[p->spatial].extent, &bytes);
		tiles.bytes = &bytes;
		tiles.b_memory = plan->packs[0].dtype;
		tiles.depth = lth_dim_const(dims, lth_bytes_pack_depth(&plan->packs[0]));
	}
	if (!conv.pointwise)
		tiles.extra_scratch = write_zeros(
			emit, tiles.bytes ? bytes.padding : lth_t_zero(emit->fn, problem->compute, 1), p, &conv);
	lth_tiles_emit(&tiles);
}
