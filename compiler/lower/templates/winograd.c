/* Winograd's minimal filtering F(4x4, 3x3) for dense 3x3 convolutions of stride 1 (Lavin and Gray, 2015), with the
 * points 0, +-5/8, +-3/2 and infinity, which lose less precision than the usual 0, +-1, +-2 (Barabasz et al., 2018): 36
 * products for 16 outputs instead of 144. Weights are transformed at compile time, in double.
 *
 * A unit of work is a block of tiles of 4x4 outputs. Its scratch holds the transformed input V[channel block][tile][36]
 * [lanes] and the products M[tile][output block][36][lanes], so that both transforms address with constants; between
 * them 36 products of [tiles x channels] with panels of weights. Dilation D makes D x D interleaved images of stride 1.
 */
#include "compiler/lower/templates/windows.h"

#include <string.h>

enum { POINTS = 6, OUTPUTS = 4, TAPS = 3, PRODUCTS = POINTS * POINTS, NUM_TILE_AXES = 5 };
enum { SMALLEST_CHANNELS = 16, MOST_WEIGHTS = 65536, FEWEST_TILES = 9, DEAR_EPILOGUE = 10 };

static const double P = 5.0 / 8, Q = 3.0 / 2;

struct winograd {
	struct lth_emit *emit;
	const struct lth_conv *p;
	enum lth_dtype compute;
	unsigned lanes;
	struct lth_tiles tiles; /* for the inner loop */
	struct lth_tile full, tail;
	bool has_full, has_tail, ragged_in, ragged_out;
	int64_t block_tiles, width; /* tiles of a block; padded columns of the weights */
	lth_lv in[2], out[2], pad[2], step[2], phases[2], x_batch, channels, out_channels, total_tiles, block,
		width_value;
	lth_lv full_panels, in_blocks, out_blocks, tile_extent[NUM_TILE_AXES];
	lth_lv buffer, zeros, v, m; /* scratch */
	/* of the tile at hand: image, first output pixel */
	lth_lv n, y, x;
};

/* Compile time: the transform of a 3x3 filter, G g G^T. */

static void transform_matrix(double g[POINTS][TAPS])
{
	const double points[POINTS - 1] = {0, P, -P, Q, -Q};
	for (int i = 0; i < POINTS - 1; i++) {
		double denominator = 1;
		for (int j = 0; j < POINTS - 1; j++)
			denominator *= i == j ? 1 : points[i] - points[j];
		g[i][0] = 1 / denominator;
		g[i][1] = points[i] / denominator;
		g[i][2] = points[i] * points[i] / denominator;
	}
	g[POINTS - 1][0] = g[POINTS - 1][1] = 0;
	g[POINTS - 1][2] = 1;
}

/* Columns that are transformed side by side. */
enum { ABREAST = 8 };

/* The filters of columns [column, column + ABREAST) and one channel; those behind the last column are 0. */
static void read_filters(const struct lth_pack *pack, const void *source, int64_t channel, int64_t column,
			 double out[TAPS][TAPS][ABREAST])
{
	for (int c = 0; c < ABREAST; c++) {
		int64_t at = (column + c) * pack->column_stride + channel * pack->k[2].stride;
		for (int y = 0; y < TAPS; y++)
			for (int x = 0; x < TAPS; x++) {
				int64_t tap = at + y * pack->k[0].stride + x * pack->k[1].stride;
				out[y][x][c] = column + c >= pack->columns    ? 0
					       : pack->dtype == LTH_DTYPE_F32 ? (double)((const float *)source)[tap]
									      : ((const double *)source)[tap];
			}
	}
}

static void write_products(const struct lth_pack *pack, void *packed, int64_t at, const double values[ABREAST],
			   int64_t count)
{
	if (pack->dtype == LTH_DTYPE_F32)
		for (int64_t c = 0; c < count; c++)
			((float *)packed)[at + c] = (float)values[c];
	else
		memcpy((double *)packed + at, values, (size_t)count * sizeof(*values));
}

static void transform_filters(const struct lth_pack *pack, double g[POINTS][TAPS],
			      double w[TAPS][TAPS][ABREAST], void *packed, int64_t at, int64_t plane,
			      int64_t count)
{
	double half[TAPS][ABREAST], products[ABREAST];
	for (int i = 0; i < POINTS; i++) {
		for (int x = 0; x < TAPS; x++)
			for (int c = 0; c < ABREAST; c++)
				half[x][c] = 0 + g[i][0] * w[0][x][c] + g[i][1] * w[1][x][c] + /* 0: never -0 */
					     g[i][2] * w[2][x][c];
		for (int j = 0; j < POINTS; j++) {
			for (int c = 0; c < ABREAST; c++)
				products[c] = half[0][c] * g[j][0] + half[1][c] * g[j][1] + half[2][c] * g[j][2];
			write_products(pack, packed, at + (i * POINTS + j) * plane, products, count);
		}
	}
}

/* k[0] and k[1] are the taps, k[2] the input channels. */
void lth_winograd_pack(const struct lth_pack *pack, const void *source, void *packed)
{
	double g[POINTS][TAPS], filters[TAPS][TAPS][ABREAST];
	int64_t depth = pack->k[2].extent, padded = pack->columns / pack->panel * pack->panel + pack->tail;
	transform_matrix(g);
	for (int64_t first = 0; first < padded; first += pack->panel) {
		int64_t width = first + pack->panel <= pack->columns ? pack->panel : pack->tail;
		for (int64_t channel = 0; channel < depth; channel++)
			for (int64_t c = 0; c < width; c += ABREAST) {
				read_filters(pack, source, channel, first + c, filters);
				transform_filters(pack, g, filters, packed, first * depth + channel * width + c,
						  depth * padded, width - c < ABREAST ? width - c : ABREAST);
			}
	}
}

/* One-dimensional transforms on vectors. */

static lth_lv scale(struct winograd *w, double factor)
{
	return lth_loop_splat(w->emit->fn, lth_loop_const_f(w->emit->fn, w->compute, factor), w->lanes);
}

/* B^T d: the rows of opposite points share their even and odd parts. */
static void transform_input(struct winograd *w, const lth_lv d[POINTS], lth_lv out[POINTS])
{
	struct lth_loop_fn *fn = w->emit->fn;
	double pp = P * P, qq = Q * Q;
	lth_lv odd_p = t_fma(fn, scale(w, -qq), d[1], d[3]), even_p = t_fma(fn, scale(w, -qq), d[2], d[4]);
	lth_lv odd_q = t_fma(fn, scale(w, -pp), d[1], d[3]), even_q = t_fma(fn, scale(w, -pp), d[2], d[4]);
	lth_lv product = scale(w, pp * qq), sum = scale(w, -(pp + qq));
	out[0] = t_fma(fn, product, d[0], t_fma(fn, sum, d[2], d[4]));
	out[1] = t_fma(fn, scale(w, P), odd_p, even_p);
	out[2] = t_fma(fn, scale(w, -P), odd_p, even_p);
	out[3] = t_fma(fn, scale(w, Q), odd_q, even_q);
	out[4] = t_fma(fn, scale(w, -Q), odd_q, even_q);
	out[5] = t_fma(fn, product, d[1], t_fma(fn, sum, d[3], d[5]));
}

/* A^T m. */
static void transform_output(struct winograd *w, const lth_lv m[POINTS], lth_lv out[OUTPUTS])
{
	struct lth_loop_fn *fn = w->emit->fn;
	lth_lv sum_p = t_add(fn, m[1], m[2]), difference_p = t_sub(fn, m[1], m[2]);
	lth_lv sum_q = t_add(fn, m[3], m[4]), difference_q = t_sub(fn, m[3], m[4]);
	out[0] = t_add(fn, t_add(fn, m[0], sum_p), sum_q);
	lth_lv first = t_mul(fn, scale(w, Q), difference_q), second = t_mul(fn, scale(w, Q * Q), sum_q);
	lth_lv third = t_fma(fn, scale(w, Q * Q * Q), difference_q, m[5]);
	out[1] = t_fma(fn, scale(w, P), difference_p, first);
	out[2] = t_fma(fn, scale(w, P * P), sum_p, second);
	out[3] = t_fma(fn, scale(w, P * P * P), difference_p, third);
}

/* Tiles. */

/* Image and first output pixel of tile number `tile`: its axes are image, row phase, column phase, row, column. */
static void locate_tile(struct winograd *w, lth_lv tile)
{
	struct lth_loop_fn *fn = w->emit->fn;
	lth_lv index[NUM_TILE_AXES];
	lth_t_unflatten(fn, tile, w->tile_extent, NUM_TILE_AXES, index);
	w->n = index[0];
	w->y = t_add(fn, index[1], t_mul(fn, t_mul_const(fn, index[3], OUTPUTS), w->phases[0]));
	w->x = t_add(fn, index[2], t_mul(fn, t_mul_const(fn, index[4], OUTPUTS), w->phases[1]));
}

/* The 36 input pixels of the tile: pointers, at zeros where outside. */
static void place_pixels(struct winograd *w, lth_lv pixels[PRODUCTS])
{
	struct lth_loop_fn *fn = w->emit->fn;
	enum lth_dtype memory = w->p->x.memory;
	lth_lv image = lth_loop_offset(fn, w->p->x.pointer, t_mul(fn, w->n, w->x_batch), memory);
	lth_lv inside[POINTS], offset[POINTS];
	for (int j = 0; j < POINTS; j++) {
		lth_lv left = t_sub(fn, w->x, w->pad[1]);
		lth_lv x = t_add(fn, left, t_mul_const(fn, w->phases[1], j));
		inside[j] = lth_t_inside(fn, x, w->in[1]);
		offset[j] = t_mul(fn, x, w->step[1]);
	}
	for (int i = 0; i < POINTS; i++) {
		lth_lv top = t_sub(fn, w->y, w->pad[0]);
		lth_lv y = t_add(fn, top, t_mul_const(fn, w->phases[0], i));
		lth_lv inside_y = lth_t_inside(fn, y, w->in[0]);
		lth_lv row = lth_loop_offset(fn, image, t_mul(fn, y, w->step[0]), memory);
		for (int j = 0; j < POINTS; j++) {
			lth_lv both = t_and(fn, inside_y, inside[j]);
			lth_lv pixel = lth_loop_offset(fn, row, offset[j], memory);
			pixels[i * POINTS + j] = t_select(fn, both, pixel, w->zeros);
		}
	}
}

/* V of one tile: `slot` is its number in the block. */
static void input_tile(struct winograd *w, lth_lv slot)
{
	struct lth_loop_fn *fn = w->emit->fn;
	lth_lv pixels[PRODUCTS], column[POINTS], half[POINTS][POINTS], mask = LTH_LV_NONE;
	place_pixels(w, pixels);
	lth_lv block = lth_loop_for(fn, lth_loop_i64(fn, 0), w->in_blocks, 1, NULL, 0, NULL);
	lth_lv channel = t_mul_const(fn, block, w->lanes);
	lth_lv at = t_mul_const(fn, t_add(fn, t_mul(fn, block, w->block), slot), (int64_t)PRODUCTS * w->lanes);
	lth_lv v = lth_loop_offset(fn, w->v, at, w->compute);
	if (w->ragged_in)
		mask = lth_loop_mask(fn, t_sub(fn, w->channels, channel), w->lanes);
	for (int j = 0; j < POINTS; j++) {
		lth_lv transformed[POINTS];
		for (int i = 0; i < POINTS; i++)
			column[i] = lth_loop_load(fn,
						  lth_loop_offset(fn, pixels[i * POINTS + j], channel, w->p->x.memory),
						  w->p->x.memory, w->lanes, mask);
		transform_input(w, column, transformed);
		for (int i = 0; i < POINTS; i++)
			half[i][j] = transformed[i];
	}
	for (int i = 0; i < POINTS; i++) {
		lth_lv transformed[POINTS];
		transform_input(w, half[i], transformed);
		for (int j = 0; j < POINTS; j++)
			lth_loop_store(fn,
				       lth_loop_offset(fn, v, lth_loop_i64(fn, (int64_t)(i * POINTS + j) * w->lanes),
						       w->compute),
				       transformed[j], w->compute, LTH_LV_NONE);
	}
	lth_loop_end_for(fn, NULL, 0, NULL);
}

/* One tile of rows of product `product` with a panel: sums over all channel blocks, then M. */
static void product_tile(struct winograd *w, const struct lth_tile *tile, lth_lv product, lth_lv first_row,
			 lth_lv column, lth_lv panel)
{
	struct lth_loop_fn *fn = w->emit->fn;
	unsigned count = tile->rows * tile->vectors;
	lth_lv state[LTH_MAX_ACCUMULATORS + 1], phis[LTH_MAX_ACCUMULATORS + 1];
	for (unsigned i = 0; i < count; i++)
		state[i] = lth_t_zero(fn, w->compute, tile->lanes);
	state[count] = panel;
	lth_lv block = lth_loop_for(fn, lth_loop_i64(fn, 0), w->in_blocks, 1, state, count + 1, phis);
	struct lth_tile_rows rows = {.steps = LTH_STEP_ADJACENT, .memory = w->compute, .ahead = LTH_LV_NONE};
	for (unsigned r = 0; r < tile->rows; r++) {
		lth_lv begin = t_mul(fn, block, w->block);
		lth_lv slot = t_add(fn, begin, t_add_const(fn, first_row, r));
		lth_lv at = t_mul_const(fn, t_add(fn, t_mul_const(fn, slot, PRODUCTS), product), w->lanes);
		rows.pointer[r] = lth_loop_offset(fn, w->v, at, w->compute);
	}
	lth_lv depth = lth_loop_i64(fn, w->lanes);
	if (w->ragged_in)
		depth = t_min(fn, depth, t_sub(fn, w->channels, t_mul_const(fn, block, w->lanes)));
	phis[count] = lth_tile_dot(&w->tiles, tile, tile->rows, &rows, phis[count], depth, phis);
	lth_loop_end_for(fn, phis, count + 1, state);
	for (unsigned i = 0; i < count; i++) {
		unsigned offset = i % tile->vectors * tile->lanes; /* the panel begins at a multiple of lanes */
		lth_lv block_number = t_add_const(fn, t_div(fn, column, lth_loop_i64(fn, w->lanes)), offset / w->lanes);
		lth_lv slot = t_add_const(fn, first_row, i / tile->vectors);
		lth_lv at = t_add(fn, t_mul(fn, slot, w->out_blocks), block_number);
		at = t_add(fn, t_mul_const(fn, at, PRODUCTS), product);
		at = t_add_const(fn, t_mul_const(fn, at, w->lanes), offset % w->lanes);
		lth_loop_store(fn, lth_loop_offset(fn, w->m, at, w->compute), state[i], w->compute, LTH_LV_NONE);
	}
}

/* `panels` panels of product `product` from column `column` on, times `count` tiles (rounded up to whole row tiles). */
static void product_panels(struct winograd *w, const struct lth_tile *tile, lth_lv product, lth_lv column,
			   lth_lv panels, lth_lv count)
{
	struct lth_loop_fn *fn = w->emit->fn;
	lth_lv zero = lth_loop_i64(fn, 0), width = lth_loop_i64(fn, lth_tile_width(tile));
	w->tiles.panel_step = width;
	lth_lv number = lth_loop_for(fn, zero, panels, 1, NULL, 0, NULL);
	lth_lv first = t_add(fn, column, t_mul(fn, number, width));
	lth_lv at = t_mul(fn, t_add(fn, t_mul(fn, product, w->width_value), first), w->channels);
	lth_lv panel = lth_loop_offset(fn, w->p->w.pointer, at, w->p->w.memory);
	lth_lv row = lth_loop_for(fn, zero, count, tile->rows, NULL, 0, NULL);
	product_tile(w, tile, product, row, first, panel);
	lth_loop_end_for(fn, NULL, 0, NULL);
	lth_loop_end_for(fn, NULL, 0, NULL);
}

static void products(struct winograd *w, lth_lv count)
{
	struct lth_loop_fn *fn = w->emit->fn;
	lth_lv zero = lth_loop_i64(fn, 0);
	lth_lv product = lth_loop_for(fn, zero, lth_loop_i64(fn, PRODUCTS), 1, NULL, 0, NULL);
	if (w->has_full)
		product_panels(w, &w->full, product, zero, w->full_panels, count);
	if (w->has_tail)
		product_panels(w, &w->tail, product, t_mul_const(fn, w->full_panels, lth_tile_width(&w->full)),
			       lth_loop_i64(fn, 1), count);
	lth_loop_end_for(fn, NULL, 0, NULL);
}

static void hand_over(struct winograd *w, lth_lv y, lth_lv x, lth_lv column, lth_lv value, lth_lv mask)
{
	const struct lth_epilogue *epilogue = w->emit->epilogue;
	lth_lv index[4] = {w->n, column, y, x};
	epilogue->apply(epilogue->context, 0, index, 1, value, w->lanes, mask);
}

/* The i-th pixel of the tile along an axis. */
static lth_lv pixel(struct winograd *w, int axis, lth_lv i)
{
	struct lth_loop_fn *fn = w->emit->fn;
	return t_add(fn, axis ? w->x : w->y, t_mul(fn, i, w->phases[axis]));
}

/* Through the buffer, those of the 16 outputs that exist. */
static void hand_over_buffered(struct winograd *w, lth_lv column, lth_lv results[OUTPUTS][OUTPUTS], lth_lv mask)
{
	struct lth_loop_fn *fn = w->emit->fn;
	lth_lv zero = lth_loop_i64(fn, 0), four = lth_loop_i64(fn, OUTPUTS);
	for (int i = 0; i < OUTPUTS * OUTPUTS; i++)
		lth_loop_store(fn, lth_loop_offset(fn, w->buffer, lth_loop_i64(fn, (int64_t)i * w->lanes), w->compute),
			       results[i / OUTPUTS][i % OUTPUTS], w->compute, LTH_LV_NONE);
	lth_lv i = lth_loop_for(fn, zero, four, 1, NULL, 0, NULL), y = pixel(w, 0, i);
	lth_lv j = lth_loop_for(fn, zero, four, 1, NULL, 0, NULL), x = pixel(w, 1, j);
	lth_lv inside_y = t_lt(fn, y, w->out[0]), inside_x = t_lt(fn, x, w->out[1]);
	lth_loop_if(fn, t_and(fn, inside_y, inside_x));
	lth_lv at = t_mul_const(fn, t_add(fn, t_mul_const(fn, i, OUTPUTS), j), w->lanes);
	lth_lv value = lth_loop_load(fn, lth_loop_offset(fn, w->buffer, at, w->compute), w->compute, w->lanes,
				     LTH_LV_NONE);
	hand_over(w, y, x, column, value, mask);
	lth_loop_end_if(fn, NULL, 0, NULL);
	lth_loop_end_for(fn, NULL, 0, NULL);
	lth_loop_end_for(fn, NULL, 0, NULL);
}

static void output_tile(struct winograd *w, lth_lv slot)
{
	struct lth_loop_fn *fn = w->emit->fn;
	lth_lv half[OUTPUTS][POINTS], results[OUTPUTS][OUTPUTS], mask = LTH_LV_NONE,
								 last = lth_loop_i64(fn, OUTPUTS - 1);
	bool dear = w->emit->epilogue->cost > DEAR_EPILOGUE;
	lth_lv column = lth_loop_for(fn, lth_loop_i64(fn, 0), w->out_channels, w->lanes, NULL, 0, NULL);
	lth_lv block = t_div(fn, column, lth_loop_i64(fn, w->lanes));
	lth_lv at = t_mul_const(fn, t_add(fn, t_mul(fn, slot, w->out_blocks), block), (int64_t)PRODUCTS * w->lanes);
	lth_lv m = lth_loop_offset(fn, w->m, at, w->compute);
	if (w->ragged_out)
		mask = lth_loop_mask(fn, t_sub(fn, w->out_channels, column), w->lanes);
	for (int j = 0; j < POINTS; j++) {
		lth_lv values[POINTS], transformed[OUTPUTS];
		for (int i = 0; i < POINTS; i++)
			values[i] = lth_loop_load(
				fn,
				lth_loop_offset(fn, m, lth_loop_i64(fn, (int64_t)(i * POINTS + j) * w->lanes),
						w->compute),
				w->compute, w->lanes, LTH_LV_NONE);
		transform_output(w, values, transformed);
		for (int i = 0; i < OUTPUTS; i++)
			half[i][j] = transformed[i];
	}
	for (int i = 0; i < OUTPUTS; i++)
		transform_output(w, half[i], results[i]);
	if (!dear) {
		lth_lv inside_y = t_lt(fn, pixel(w, 0, last), w->out[0]);
		lth_loop_if(fn, t_and(fn, inside_y, t_lt(fn, pixel(w, 1, last), w->out[1])));
		for (int i = 0; i < OUTPUTS * OUTPUTS; i++) {
			lth_lv y = pixel(w, 0, lth_loop_i64(fn, i / OUTPUTS));
			lth_lv x = pixel(w, 1, lth_loop_i64(fn, i % OUTPUTS));
			hand_over(w, y, x, column, results[i / OUTPUTS][i % OUTPUTS], mask);
		}
		lth_loop_else(fn, NULL, 0);
	}
	hand_over_buffered(w, column, results, mask);
	if (!dear)
		lth_loop_end_if(fn, NULL, 0, NULL);
	lth_loop_end_for(fn, NULL, 0, NULL);
}

static void emit_unit(struct winograd *w, lth_lv unit)
{
	struct lth_loop_fn *fn = w->emit->fn;
	lth_lv zero = lth_loop_i64(fn, 0), first = t_mul(fn, unit, w->block);
	lth_lv count = t_min(fn, w->block, t_sub(fn, w->total_tiles, first));
	lth_lv slot = lth_loop_for(fn, zero, count, 1, NULL, 0, NULL);
	locate_tile(w, t_add(fn, first, slot));
	input_tile(w, slot);
	lth_loop_end_for(fn, NULL, 0, NULL);
	products(w, count);
	slot = lth_loop_for(fn, zero, count, 1, NULL, 0, NULL);
	locate_tile(w, t_add(fn, first, slot));
	output_tile(w, slot);
	lth_loop_end_for(fn, NULL, 0, NULL);
}

/* How many tiles there are: over images, phases, rows, columns. */
static lth_dim count_tiles(struct lth_dims *dims, const struct lth_conv *p, lth_dim extents[NUM_TILE_AXES])
{
	extents[0] = p->batch;
	for (int axis = 0; axis < 2; axis++) {
		extents[1 + axis] = lth_dim_const(dims, p->dilation[axis]);
		lth_dim pixels = lth_dim_ceildiv(dims, p->out[axis], extents[1 + axis]);
		extents[3 + axis] = lth_dim_ceildiv(dims, pixels, lth_dim_const(dims, OUTPUTS));
	}
	return lth_dim_product(dims, extents, NUM_TILE_AXES);
}

bool lth_winograd_plan(struct lth_dims *dims, const struct lth_machine *machine, const struct lth_problem *problem,
		       struct lth_template_plan *out)
{
	const struct lth_conv *p = &problem->conv;
	struct lth_pack pack = {
		.kind = LTH_PACK_WINOGRAD, .dtype = p->w.memory, .groups = PRODUCTS, .gates = 1, .num_k = 3};
	struct lth_tile full = lth_tile_full(machine, problem->compute), tail;
	lth_dim extents[NUM_TILE_AXES];
	if (p->transposed || p->groups != 1 || p->spatial != 2 || p->stride[0] != 1 || p->stride[1] != 1 ||
	    !p->w.constant || p->x.memory != problem->compute || p->w.memory != problem->compute ||
	    !lth_t_is(dims, p->x_channel_stride, 1) || !lth_dim_is_const(dims, p->out_channels, &pack.columns) ||
	    !lth_dim_is_const(dims, p->w_out_stride, &pack.column_stride) ||
	    !lth_dim_is_const(dims, p->in_channels, &pack.k[2].extent) ||
	    !lth_dim_is_const(dims, p->w_in_stride, &pack.k[2].stride))
		return false;
	for (int axis = 0; axis < 2; axis++)
		if (!lth_dim_is_const(dims, p->kernel[axis], &pack.k[axis].extent) || pack.k[axis].extent != TAPS ||
		    !lth_dim_is_const(dims, p->w_stride[axis], &pack.k[axis].stride))
			return false;
	if (pack.columns < SMALLEST_CHANNELS || pack.k[2].extent < SMALLEST_CHANNELS ||
	    pack.columns * pack.k[2].extent > MOST_WEIGHTS ||
	    lth_t_likely(dims, count_tiles(dims, p, extents)) < FEWEST_TILES)
		return false;
	pack.panel = lth_tile_width(&full);
	if (lth_tiles_tail(machine, problem->compute, pack.columns, &tail))
		pack.tail = lth_tile_width(&tail);
	out->packs[0] = pack;
	out->flops = lth_conv_flops(dims, p);
	return true;
}

/* Scratch: outputs of a tile, zeros for a pixel, V, M. */
static void lay_out_scratch(struct winograd *w, int64_t channels)
{
	struct lth_emit *emit = w->emit;
	struct lth_loop_fn *fn = emit->fn;
	int64_t size = lth_dtype_bits(w->compute) / 8, in_blocks = (channels + w->lanes - 1) / w->lanes;
	int64_t out_blocks = (w->width + w->lanes - 1) / w->lanes, tile = (int64_t)PRODUCTS * w->lanes * size;
	int64_t zeros = (int64_t)OUTPUTS * OUTPUTS * w->lanes * size, v = zeros + in_blocks * w->lanes * size;
	int64_t m = v + in_blocks * w->block_tiles * tile, end = m + out_blocks * w->block_tiles * tile;
	w->in_blocks = lth_t_param(emit, lth_dim_const(emit->dims, in_blocks));
	w->out_blocks = lth_t_param(emit, lth_dim_const(emit->dims, out_blocks));
	w->buffer = lth_loop_scratch(fn);
	w->zeros = lth_loop_offset(fn, w->buffer, lth_loop_i64(fn, zeros), LTH_DTYPE_U8);
	w->v = lth_loop_offset(fn, w->buffer, lth_t_param(emit, lth_dim_const(emit->dims, v)), LTH_DTYPE_U8);
	w->m = lth_loop_offset(fn, w->buffer, lth_t_param(emit, lth_dim_const(emit->dims, m)), LTH_DTYPE_U8);
	emit->scratch_bytes = lth_dim_const(emit->dims, end);
	lth_lv i = lth_loop_for(fn, lth_loop_i64(fn, 0), w->in_blocks, 1, NULL, 0, NULL);
	lth_lv at = lth_loop_offset(fn, w->zeros, t_mul_const(fn, i, w->lanes), w->compute);
	lth_loop_store(fn, at, lth_t_zero(fn, w->compute, w->lanes), w->compute, LTH_LV_NONE);
	lth_loop_end_for(fn, NULL, 0, NULL);
}

static void read_params(struct winograd *w)
{
	struct lth_emit *emit = w->emit;
	const struct lth_conv *p = w->p;
	for (int axis = 0; axis < 2; axis++) {
		w->in[axis] = lth_t_param(emit, p->in[axis]);
		w->out[axis] = lth_t_param(emit, p->out[axis]);
		w->pad[axis] = lth_t_stride(emit, p->pad[axis]);
		w->step[axis] = lth_t_param(emit, p->x_stride[axis]);
		w->phases[axis] = lth_t_stride(emit, lth_dim_const(emit->dims, p->dilation[axis]));
	}
	w->x_batch = lth_t_param(emit, p->x_batch_stride);
	w->channels = lth_t_param(emit, p->in_channels);
	w->out_channels = lth_t_param(emit, p->out_channels);
	w->block = lth_t_param(emit, lth_dim_const(emit->dims, w->block_tiles));
	w->width_value = lth_t_param(emit, lth_dim_const(emit->dims, w->width));
}

/* Tiles of a block, in whole register tiles: as many as keep V and M in the cache, all blocks alike. */
static int64_t choose_block(const struct winograd *w, int64_t tiles, int64_t channels)
{
	int64_t most = channels <= 64 ? 24 : 48, blocks = (tiles + most - 1) / most;
	int64_t block = blocks < 1 ? most : (tiles + blocks - 1) / blocks, unit = w->has_full ? w->full.rows : 1;
	while (w->has_tail && unit % w->tail.rows != 0)
		unit += w->has_full ? w->full.rows : 1;
	return (block + unit - 1) / unit * unit;
}

void lth_winograd_emit(struct lth_emit *emit, const struct lth_problem *problem, const struct lth_template_plan *plan)
{
	const struct lth_pack *pack = &plan->packs[0];
	struct lth_dims *dims = emit->dims;
	struct lth_loop_fn *fn = emit->fn;
	struct winograd w = {.emit = emit,
			     .p = &problem->conv,
			     .compute = problem->compute,
			     .lanes = lth_machine_lanes(emit->machine, problem->compute),
			     .full = lth_tile_full(emit->machine, problem->compute)};
	int64_t channels = pack->k[2].extent;
	lth_dim extents[NUM_TILE_AXES], tiles = count_tiles(dims, w.p, extents);
	w.has_full = pack->columns >= pack->panel;
	w.has_tail = lth_tiles_tail(emit->machine, problem->compute, pack->columns, &w.tail);
	w.ragged_in = channels % w.lanes != 0;
	w.ragged_out = pack->columns % w.lanes != 0;
	w.width = pack->columns / pack->panel * pack->panel + pack->tail;
	w.block_tiles = choose_block(&w, lth_t_likely(dims, tiles), channels);
	w.tiles = (struct lth_tiles){
		.emit = emit, .compute = w.compute, .panel_memory = w.compute, .load_mask = LTH_LV_NONE};
	read_params(&w);
	w.total_tiles = lth_t_param(emit, tiles);
	w.full_panels = lth_t_param(emit, lth_dim_const(dims, pack->columns / pack->panel));
	for (int axis = 0; axis < NUM_TILE_AXES; axis++)
		w.tile_extent[axis] = axis ? lth_t_stride(emit, extents[axis]) : LTH_LV_NONE;
	lay_out_scratch(&w, channels);
	lth_lv unit = lth_loop_for(fn, lth_loop_begin(fn), lth_loop_end(fn), 1, NULL, 0, NULL);
	emit_unit(&w, unit);
	lth_loop_end_for(fn, NULL, 0, NULL);
	emit->units = lth_dim_ceildiv(dims, tiles, lth_dim_const(dims, w.block_tiles));
	emit->min_units = lth_t_min_units(dims, lth_dim_const(dims, 2 * w.block_tiles * PRODUCTS * channels * w.width));
}
