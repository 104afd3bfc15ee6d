/* See windows.h. The order is rows of tiles, tiles of a row, channels: the channel loop is the inner one, so that a
 * tile's input stays in the first-level cache and its pointers are computed once; inside of it are the rows of a window
 * that is too large to write out. Full tiles go to the epilogue
 * straight from registers; tiles that hang over the edge through a small buffer. */
#include "compiler/lower/templates/windows.h"

enum { DEAR_EPILOGUE = 10, MOST_INPUT_PIXELS = 56, MOST_PRELOADED_TAPS = 12 };

unsigned lth_windows_lanes(struct lth_dims *dims, const struct lth_machine *machine, enum lth_dtype compute,
			   lth_dim channels)
{
	unsigned lanes = lth_machine_lanes(machine, compute);
	int64_t count, half = lanes / 2;
	if (machine->vector_bytes == 64 && lth_dim_is_const(dims, channels, &count) && count < 8 * half &&
	    (count - 1) % lanes < half)
		return lanes / 2;
	return lanes;
}

static int64_t reach(const struct lth_window_axis *axis, int64_t tile)
{
	return (tile - 1) * axis->stride + (axis->kernel - 1) * axis->dilation + 1;
}

/* Whether input position `at` of a tile is under the window of some output; bit t of the result: of output t. */
static uint32_t users(const struct lth_window_axis *axis, unsigned tile, int64_t at)
{
	uint32_t out = 0;
	for (unsigned t = 0; t < tile; t++) {
		int64_t tap = at - (int64_t)t * axis->stride;
		if (tap >= 0 && tap % axis->dilation == 0 && tap / axis->dilation < axis->kernel)
			out |= 1u << t;
	}
	return out;
}

static int64_t used_positions(const struct lth_window_axis *axis, unsigned tile)
{
	int64_t count = 0;
	for (int64_t at = 0; at < reach(axis, tile); at++)
		count += users(axis, tile, at) != 0;
	return count;
}

static bool tile_fits(const struct lth_machine *machine, const struct lth_windows *w, unsigned ty, unsigned tx,
		      int64_t loads)
{
	return ty * tx <= (machine->registers >= 32 ? 16u : 8u) && reach(&w->y, ty) <= LTH_MAX_WINDOW_EXTENT &&
	       reach(&w->x_axis, tx) <= LTH_MAX_WINDOW_EXTENT && (loads <= MOST_INPUT_PIXELS || ty * tx == 1);
}

/* A window of one row of this one. */
static struct lth_windows one_row(const struct lth_windows *w)
{
	struct lth_windows row = *w;
	row.y.kernel = row.y.stride = row.y.dilation = 1;
	return row;
}

/* Of the tiles whose accumulators and input fit: the one that computes least beyond the edge, then the largest. */
bool lth_windows_tile(struct lth_dims *dims, const struct lth_machine *machine, struct lth_windows *windows)
{
	int64_t rows = lth_t_likely(dims, windows->y.out), columns = lth_t_likely(dims, windows->x_axis.out);
	double best = 0;
	windows->by_rows = windows->y.kernel * windows->x_axis.kernel > LTH_MAX_WINDOW_TAPS;
	struct lth_windows part = windows->by_rows ? one_row(windows) : *windows;
	bool share = columns > 1 && windows->x_axis.stride < windows->x_axis.kernel;
	if (windows->by_rows && windows->op != LTH_WINDOW_FMA && !share)
		return false; /* pooling windows that have no pixel in common are as well looked at one by one */
	if (windows->by_rows && windows->x_axis.kernel > LTH_MAX_WINDOW_TAPS)
		return false;
	for (unsigned ty = 1; ty <= (windows->by_rows ? 1 : 2); ty++)
		for (unsigned tx = 1; tx <= 8; tx++) {
			int64_t loads = used_positions(&part.y, ty) * used_positions(&part.x_axis, tx);
			if (!tile_fits(machine, &part, ty, tx, loads))
				continue;
			double useful = (double)rows / (double)((rows + ty - 1) / ty * ty) * (double)columns /
					(double)((columns + tx - 1) / tx * tx);
			double work = (double)(ty * tx) * (double)(part.y.kernel * part.x_axis.kernel);
			double score = useful * work / (work + (double)loads + 4);
			if (score > best + 1e-9) {
				best = score;
				windows->tile_y = ty;
				windows->tile_x = tx;
			}
		}
	return best > 0;
}

/* Where the columns of a tile's input are: their offset, and whether they lie inside the image. */
struct columns {
	lth_lv inside[LTH_MAX_WINDOW_EXTENT], offset[LTH_MAX_WINDOW_EXTENT];
};

static void place_columns(struct lth_windows *w, lth_lv x0, struct columns *out)
{
	struct lth_loop_fn *fn = w->emit->fn;
	for (int64_t ix = 0; ix < reach(&w->x_axis, w->tile_x); ix++) {
		lth_lv x = t_add_const(fn, x0, ix);
		out->inside[ix] = lth_t_inside(fn, x, w->x_in);
		out->offset[ix] = t_mul(fn, x, w->x_step);
	}
}

/* The addresses of the tile's input pixels, row by row; those that no output uses are left out. */
static void place_pixels(struct lth_windows *w, lth_lv image, lth_lv y0, const struct columns *columns,
			 lth_lv out[LTH_MAX_WINDOW_EXTENT][LTH_MAX_WINDOW_EXTENT])
{
	struct lth_loop_fn *fn = w->emit->fn;
	for (int64_t iy = 0; iy < reach(&w->y, w->tile_y); iy++) {
		if (!users(&w->y, w->tile_y, iy))
			continue;
		lth_lv y = t_add_const(fn, y0, iy), inside_y = lth_t_inside(fn, y, w->y_in);
		lth_lv row = lth_loop_offset(fn, image, t_mul(fn, y, w->y_step), w->x.memory);
		for (int64_t ix = 0; ix < reach(&w->x_axis, w->tile_x); ix++) {
			if (!users(&w->x_axis, w->tile_x, ix))
				continue;
			lth_lv pixel = lth_loop_offset(fn, row, columns->offset[ix], w->x.memory);
			out[iy][ix] = t_select(fn, t_and(fn, inside_y, columns->inside[ix]), pixel, w->neutral);
		}
	}
}

/* Prefetches what the next tile of the row will need for the first time: of the input rows that no tile above has read,
 * the columns behind this tile's, which lie one after the other, and its outputs. A call a block of channels, each
 * fetching its share. */
static void fetch_ahead(struct lth_windows *w, lth_lv n, lth_lv image, lth_lv y, lth_lv x, lth_lv channel)
{
	struct lth_loop_fn *fn = w->emit->fn;
	const struct lth_epilogue *epilogue = w->emit->epilogue;
	int64_t rows = reach(&w->y, w->tile_y), columns = (int64_t)w->tile_x * w->x_axis.stride;
	int64_t first = rows - w->tile_y * w->y.stride, line = 64 / (lth_dtype_bits(w->x.memory) / 8);
	lth_lv y0 = t_sub(fn, t_mul_const(fn, y, w->y.stride), w->y_pad);
	lth_lv x0 = t_add_const(fn, t_sub(fn, t_mul_const(fn, x, w->x_axis.stride), w->x_pad),
				reach(&w->x_axis, w->tile_x));
	for (int64_t iy = first < 0 ? 0 : first; iy < rows; iy++) {
		lth_lv at = t_mul(fn, t_add_const(fn, y0, iy), w->y_step);
		at = t_add(fn, at, t_mul(fn, x0, w->x_step));
		lth_lv row = lth_loop_offset(fn, image, t_add(fn, at, t_mul_const(fn, channel, columns)), w->x.memory);
		for (int64_t element = 0; element < columns * w->lanes; element += line)
			lth_loop_prefetch(fn, lth_loop_offset(fn, row, lth_loop_i64(fn, element), w->x.memory), false);
	}
	for (unsigned i = 0; epilogue->prefetch && i < w->tile_y * w->tile_x; i++) {
		lth_lv next_x = t_add_const(fn, x, w->tile_x + i % w->tile_x),
		       next_y = t_add_const(fn, y, i / w->tile_x);
		lth_lv index[4] = {n, channel, next_y, next_x};
		if (w->one_dimension)
			index[2] = next_x;
		epilogue->prefetch(epilogue->context, 0, index);
	}
}

static lth_lv load_pixel(struct lth_windows *w, lth_lv pixel, lth_lv channel, lth_lv mask)
{
	struct lth_loop_fn *fn = w->emit->fn;
	lth_lv place = lth_loop_offset(fn, pixel, channel, w->x.memory), value;
	if (w->multiplier == 1) {
		value = lth_loop_load(fn, place, w->x.memory, w->lanes, mask);
	} else {
		lth_lv index = t_div(fn, lth_loop_ramp(fn, channel, w->lanes), lth_loop_i64(fn, w->multiplier));
		value = lth_loop_gather(fn, pixel, index, w->x.memory, mask);
	}
	if (!w->bytes)
		return value;
	value = lth_loop_cast(fn, value, w->compute);
	return t_sub(fn, value, lth_loop_cast(fn, w->bytes->padding, w->compute));
}

static lth_lv combine(struct lth_windows *w, lth_lv acc, lth_lv value, lth_lv weight)
{
	struct lth_loop_fn *fn = w->emit->fn;
	if (w->op == LTH_WINDOW_FMA)
		return t_fma(fn, value, weight, acc);
	return lth_loop_op2(fn, w->op == LTH_WINDOW_MAX ? LTH_SCALAR_MAX : LTH_SCALAR_ADD, acc, value);
}

static lth_lv load_weight(struct lth_windows *w, lth_lv block, int64_t tap)
{
	struct lth_loop_fn *fn = w->emit->fn;
	lth_lv place = lth_loop_offset(fn, block, lth_loop_i64(fn, tap * w->lanes), w->weights_memory);
	return lth_loop_load(fn, place, w->weights_memory, w->lanes, LTH_LV_NONE);
}

/* All windows of a tile for the channels from `channel` on, whose weights are at `block`. */
static void reduce_tile(struct lth_windows *w, lth_lv pixels[LTH_MAX_WINDOW_EXTENT][LTH_MAX_WINDOW_EXTENT],
			lth_lv channel, lth_lv block, lth_lv mask, lth_lv *acc)
{
	int64_t taps = w->y.kernel * w->x_axis.kernel;
	bool weighted = w->op == LTH_WINDOW_FMA, preload = weighted && taps <= MOST_PRELOADED_TAPS;
	lth_lv weights[LTH_MAX_WINDOW_TAPS];
	for (int64_t tap = 0; preload && tap < taps; tap++)
		weights[tap] = load_weight(w, block, tap);
	for (int64_t iy = 0; iy < reach(&w->y, w->tile_y); iy++)
		for (int64_t ix = 0; ix < reach(&w->x_axis, w->tile_x); ix++) {
			uint32_t rows = users(&w->y, w->tile_y, iy), columns = users(&w->x_axis, w->tile_x, ix);
			if (!rows || !columns)
				continue;
			lth_lv value = load_pixel(w, pixels[iy][ix], channel, mask);
			for (unsigned i = 0; i < w->tile_y * w->tile_x; i++) {
				unsigned ty = i / w->tile_x, tx = i % w->tile_x;
				if (!(rows >> ty & 1) || !(columns >> tx & 1))
					continue;
				int64_t tap = (iy - ty * w->y.stride) / w->y.dilation * w->x_axis.kernel +
					      (ix - tx * w->x_axis.stride) / w->x_axis.dilation;
				lth_lv weight = !weighted ? LTH_LV_NONE
						: preload ? weights[tap]
							  : load_weight(w, block, tap);
				acc[i] = combine(w, acc[i], value, weight);
			}
		}
}

/* The same by a loop over the windows' rows. */
static void reduce_rows(struct lth_windows *w, lth_lv image, lth_lv y0, const struct columns *columns, lth_lv channel,
			lth_lv block, lth_lv mask, lth_lv *acc)
{
	struct lth_loop_fn *fn = w->emit->fn;
	struct lth_windows row = one_row(w);
	lth_lv pixels[LTH_MAX_WINDOW_EXTENT][LTH_MAX_WINDOW_EXTENT], sums[LTH_MAX_WINDOW_TILE];
	lth_lv zero = lth_loop_i64(fn, 0), kernel = lth_loop_i64(fn, w->y.kernel);
	lth_lv tap = lth_loop_for(fn, zero, kernel, 1, acc, w->tile_x, sums);
	place_pixels(&row, image, t_add(fn, y0, t_mul_const(fn, tap, w->y.dilation)), columns, pixels);
	if (w->op == LTH_WINDOW_FMA)
		block = lth_loop_offset(fn, block, t_mul_const(fn, tap, w->x_axis.kernel * w->lanes),
					w->weights_memory);
	reduce_tile(&row, pixels, channel, block, mask, sums);
	lth_loop_end_for(fn, sums, w->tile_x, acc);
}

static void hand_over(struct lth_windows *w, lth_lv n, lth_lv y, lth_lv x, lth_lv channel, lth_lv value, lth_lv mask)
{
	const struct lth_epilogue *epilogue = w->emit->epilogue;
	lth_lv index[4] = {n, channel, y, x};
	if (w->finish)
		value = w->finish(w, y, x, value);
	if (w->bytes)
		value = lth_loop_cast(w->emit->fn, value, LTH_DTYPE_I32);
	if (w->one_dimension)
		index[2] = x;
	epilogue->apply(epilogue->context, 0, index, 1, value, w->lanes, mask);
}

/* A tile that hangs over the edge, or whose epilogue is dear: by way of the buffer, only the pixels that exist. */
static void hand_over_buffered(struct lth_windows *w, lth_lv n, lth_lv y, lth_lv x, lth_lv channel, const lth_lv *acc,
			       lth_lv mask)
{
	struct lth_loop_fn *fn = w->emit->fn;
	lth_lv zero = lth_loop_i64(fn, 0);
	for (unsigned i = 0; i < w->tile_y * w->tile_x; i++)
		lth_loop_store(fn, lth_loop_offset(fn, w->buffer, lth_loop_i64(fn, (int64_t)i * w->lanes), w->compute),
			       acc[i], w->compute, LTH_LV_NONE);
	lth_lv rows = t_min(fn, lth_loop_i64(fn, w->tile_y), t_sub(fn, w->y_out, y));
	lth_lv columns = t_min(fn, lth_loop_i64(fn, w->tile_x), t_sub(fn, w->x_out, x));
	lth_lv ty = lth_loop_for(fn, zero, rows, 1, NULL, 0, NULL);
	lth_lv tx = lth_loop_for(fn, zero, columns, 1, NULL, 0, NULL);
	lth_lv at = t_mul_const(fn, t_add(fn, t_mul_const(fn, ty, w->tile_x), tx), w->lanes);
	lth_lv value = lth_loop_load(fn, lth_loop_offset(fn, w->buffer, at, w->compute), w->compute, w->lanes,
				     LTH_LV_NONE);
	lth_lv at_y = t_add(fn, y, ty), at_x = t_add(fn, x, tx);
	hand_over(w, n, at_y, at_x, channel, value, mask);
	lth_loop_end_for(fn, NULL, 0, NULL);
	lth_loop_end_for(fn, NULL, 0, NULL);
}

static lth_lv start_value(struct lth_windows *w, unsigned lanes)
{
	struct lth_loop_fn *fn = w->emit->fn;
	lth_lv scalar = w->op == LTH_WINDOW_MAX ? lth_t_least(fn, w->compute) : lth_loop_const_f(fn, w->compute, 0);
	return lanes == 1 ? scalar : lth_loop_splat(fn, scalar, lanes);
}

static lth_lv weights_of(struct lth_windows *w, lth_lv channel)
{
	lth_lv at = t_mul_const(w->emit->fn, channel, w->y.kernel * w->x_axis.kernel);
	return lth_loop_offset(w->emit->fn, w->weights, at, w->weights_memory);
}

static void emit_tile(struct lth_windows *w, lth_lv n, lth_lv image, lth_lv y, lth_lv x)
{
	struct lth_loop_fn *fn = w->emit->fn;
	lth_lv pixels[LTH_MAX_WINDOW_EXTENT][LTH_MAX_WINDOW_EXTENT], acc[LTH_MAX_WINDOW_TILE], mask = LTH_LV_NONE;
	struct columns columns;
	unsigned count = w->tile_y * w->tile_x;
	bool dear = w->emit->epilogue->cost > DEAR_EPILOGUE;
	lth_lv y0 = t_sub(fn, t_mul_const(fn, y, w->y.stride), w->y_pad);
	lth_lv x0 = t_sub(fn, t_mul_const(fn, x, w->x_axis.stride), w->x_pad);
	place_columns(w, x0, &columns);
	if (!w->by_rows)
		place_pixels(w, image, y0, &columns, pixels);
	lth_lv channel = lth_loop_for(fn, lth_loop_i64(fn, 0), w->num_channels, w->lanes, NULL, 0, NULL);
	if (lth_dim_known_factor(w->emit->dims, w->channels) % w->lanes)
		mask = lth_loop_mask(fn, t_sub(fn, w->num_channels, channel), w->lanes);
	if (w->streams)
		fetch_ahead(w, n, image, y, x, channel);
	for (unsigned i = 0; i < count; i++)
		acc[i] = start_value(w, w->lanes);
	lth_lv block = w->op == LTH_WINDOW_FMA ? weights_of(w, channel) : LTH_LV_NONE;
	if (w->by_rows)
		reduce_rows(w, image, y0, &columns, channel, block, mask, acc);
	else
		reduce_tile(w, pixels, channel, block, mask, acc);
	if (!dear && count > 1) {
		lth_lv full_y = t_le(fn, t_add_const(fn, y, w->tile_y), w->y_out);
		lth_lv full = t_and(fn, full_y, t_le(fn, t_add_const(fn, x, w->tile_x), w->x_out));
		lth_loop_if(fn, full);
		for (unsigned i = 0; i < count; i++) {
			lth_lv at_y = t_add_const(fn, y, i / w->tile_x), at_x = t_add_const(fn, x, i % w->tile_x);
			hand_over(w, n, at_y, at_x, channel, acc[i], mask);
		}
		lth_loop_else(fn, NULL, 0);
	}
	if (count > 1)
		hand_over_buffered(w, n, y, x, channel, acc, mask);
	else
		hand_over(w, n, y, x, channel, acc[0], mask);
	if (!dear && count > 1)
		lth_loop_end_if(fn, NULL, 0, NULL);
	lth_loop_end_for(fn, NULL, 0, NULL);
}

static void read_params(struct lth_windows *w)
{
	struct lth_emit *emit = w->emit;
	w->y_in = lth_t_param(emit, w->y.in);
	w->x_in = lth_t_param(emit, w->x_axis.in);
	w->y_out = lth_t_param(emit, w->y.out);
	w->x_out = lth_t_param(emit, w->x_axis.out);
	w->y_pad = lth_t_stride(emit, w->y.pad);
	w->x_pad = lth_t_stride(emit, w->x_axis.pad);
	w->y_step = lth_t_param(emit, w->y.stride_elements);
	w->x_step = lth_t_param(emit, w->x_axis.stride_elements);
	w->num_channels = lth_t_param(emit, w->channels);
}

/* Scratch: the tile buffer, then as many neutral elements as a pixel has channels. */
static void write_neutral(struct lth_windows *w)
{
	struct lth_emit *emit = w->emit;
	struct lth_dims *dims = emit->dims;
	struct lth_loop_fn *fn = emit->fn;
	enum { BUFFER_BYTES = LTH_MAX_WINDOW_TILE * 64 };
	w->buffer = lth_loop_scratch(fn);
	w->neutral = lth_loop_offset(fn, w->buffer, lth_loop_i64(fn, BUFFER_BYTES), LTH_DTYPE_U8);
	lth_lv channel = lth_loop_for(fn, lth_loop_i64(fn, 0), w->num_channels, w->lanes, NULL, 0, NULL);
	lth_lv value = w->bytes ? lth_loop_splat(fn, w->bytes->padding, w->lanes) : start_value(w, w->lanes);
	lth_loop_store(fn, lth_loop_offset(fn, w->neutral, channel, w->x.memory), value, w->x.memory, LTH_LV_NONE);
	lth_loop_end_for(fn, NULL, 0, NULL);
	lth_dim padded = lth_dim_add(dims, w->channels, lth_dim_const(dims, w->lanes));
	emit->scratch_bytes = lth_dim_add(
		dims, lth_dim_const(dims, BUFFER_BYTES),
		lth_dim_mul(dims, padded, lth_dim_const(dims, lth_dtype_bits(w->x.memory) / 8)));
}

static bool exceeds_cache(struct lth_windows *w)
{
	struct lth_dims *dims = w->emit->dims;
	int64_t pixels = lth_t_likely(dims, w->y.in) * lth_t_likely(dims, w->x_axis.in) +
			 lth_t_likely(dims, w->y.out) * lth_t_likely(dims, w->x_axis.out);
	int64_t limit = 4 * w->emit->machine->l2_bytes;
	return pixels > limit || pixels * lth_t_likely(dims, w->channels) * (lth_dtype_bits(w->x.memory) / 8) > limit;
}

void lth_windows_emit(struct lth_windows *w)
{
	struct lth_emit *emit = w->emit;
	struct lth_dims *dims = emit->dims;
	struct lth_loop_fn *fn = emit->fn;
	w->streams = exceeds_cache(w);
	read_params(w);
	write_neutral(w);
	lth_dim tile_rows = lth_dim_ceildiv(dims, w->y.out, lth_dim_const(dims, w->tile_y));
	lth_lv rows = lth_t_param(emit, tile_rows), batch_step = lth_t_param(emit, w->x_batch_stride);
	lth_lv unit = lth_loop_for(fn, lth_loop_begin(fn), lth_loop_end(fn), 1, NULL, 0, NULL);
	lth_lv n = t_div(fn, unit, rows), y = t_mul_const(fn, t_rem(fn, unit, rows), w->tile_y);
	lth_lv image = lth_loop_offset(fn, w->x.pointer, t_mul(fn, n, batch_step), w->x.memory);
	lth_lv x = lth_loop_for(fn, lth_loop_i64(fn, 0), w->x_out, w->tile_x, NULL, 0, NULL);
	emit_tile(w, n, image, y, x);
	lth_loop_end_for(fn, NULL, 0, NULL);
	lth_loop_end_for(fn, NULL, 0, NULL);
	emit->units = lth_dim_mul(dims, w->batch, tile_rows);
	lth_dim work = lth_dim_mul(dims, lth_dim_mul(dims, w->channels, w->x_axis.out),
				   lth_dim_const(dims, 2 * w->tile_y * w->y.kernel * w->x_axis.kernel));
	emit->min_units = lth_t_min_units(dims, work);
}
