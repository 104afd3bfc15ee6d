/* Weights of few bits, in blocks along k with a scale and a zero point a column: the unit that uses a panel writes it out
 * as floats into its scratch, once for all rows, and the tiles multiply that. A single row multiplies the bits as they
 * come. What lies in memory stays packed. */
#include "compiler/lower/templates/internal.h"

/* The loop over blocks: what it knows of the panel's columns, and of the block at hand. */
struct panel {
	lth_lv mask[LTH_MAX_TILE_VECTORS]; /* columns that exist */
	lth_lv block, scale[LTH_MAX_TILE_VECTORS], zero[LTH_MAX_TILE_VECTORS];
};

/* A row of scales or zero points over a vector of columns, in floats. */
static lth_lv load_parameter(struct lth_tiles *tiles, const struct lth_operand *operand, lth_dim stride, lth_lv block,
			     lth_lv column, unsigned lanes, lth_lv mask)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	lth_lv at = t_add(fn, t_mul(fn, block, lth_t_stride(tiles->emit, stride)), column);
	lth_lv place = lth_loop_offset(fn, operand->pointer, at, operand->memory);
	return lth_loop_cast(fn, lth_loop_load(fn, place, operand->memory, lanes, mask), LTH_DTYPE_F32);
}

static struct panel begin_blocks(struct lth_tiles *tiles, const struct lth_tile *tile, const lth_lv *carried,
				 unsigned num_carried, lth_lv *phis)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	const struct lth_blocks *blocks = tiles->blocks;
	struct panel panel;
	lth_lv column[LTH_MAX_TILE_VECTORS];
	for (unsigned v = 0; v < tile->vectors; v++) {
		column[v] = t_add_const(fn, tiles->column, (int64_t)v * tile->lanes);
		panel.mask[v] = lth_loop_mask(fn, t_sub(fn, tiles->num_columns, column[v]), tile->lanes);
	}
	panel.block = lth_loop_for(fn, lth_loop_i64(fn, 0), lth_t_param(tiles->emit, blocks->count), 1, carried,
				   num_carried, phis);
	for (unsigned v = 0; v < tile->vectors; v++) {
		panel.scale[v] = load_parameter(tiles, &blocks->scales, blocks->scale_stride, panel.block, column[v],
						tile->lanes, panel.mask[v]);
		panel.zero[v] = lth_loop_const_f(fn, LTH_DTYPE_F32, 1 << (blocks->bits - 1));
		if (blocks->zeros.pointer != LTH_LV_NONE)
			panel.zero[v] = load_parameter(tiles, &blocks->zeros, blocks->zero_stride, panel.block,
						       column[v], tile->lanes, panel.mask[v]);
	}
	return panel;
}

/* The bytes of row `row` of the weights in vector `vector` of columns, as i32. */
static lth_lv load_bytes(struct lth_tiles *tiles, const struct lth_tile *tile, const struct panel *panel, lth_lv source,
			 lth_lv row, unsigned vector)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	lth_lv at = t_mul(fn, row, lth_t_stride(tiles->emit, tiles->blocks->row_stride));
	at = lth_loop_offset(fn, source, t_add_const(fn, at, (int64_t)vector * tile->lanes), LTH_DTYPE_U8);
	return lth_loop_cast(fn, lth_loop_load(fn, at, LTH_DTYPE_U8, tile->lanes, panel->mask[vector]), LTH_DTYPE_I32);
}

/* The element of a vector of bytes that begins at bit `shift`, as floats. */
static lth_lv take_bits(struct lth_loop_fn *fn, lth_lv bytes, unsigned shift, unsigned bits)
{
	lth_lv q = lth_loop_op2(fn, LTH_SCALAR_SHR, bytes, lth_loop_const_i(fn, LTH_DTYPE_I32, shift));
	if (shift + bits < 8)
		q = t_and(fn, q, lth_loop_const_i(fn, LTH_DTYPE_I32, (1 << bits) - 1));
	return lth_loop_cast(fn, q, LTH_DTYPE_F32);
}

void lth_blocks_fill(struct lth_tiles *tiles, const struct lth_tile *tile, lth_lv source)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	unsigned bits = tiles->blocks->bits;
	int64_t each = 8 / bits, rows = tiles->blocks->size / each, width = lth_tile_width(tile);
	struct panel panel = begin_blocks(tiles, tile, NULL, 0, NULL);
	lth_lv row = lth_loop_for(fn, lth_loop_i64(fn, 0), lth_loop_i64(fn, rows), 1, NULL, 0, NULL);
	row = t_add(fn, t_mul_const(fn, panel.block, rows), row);
	for (unsigned v = 0; v < tile->vectors; v++) {
		lth_lv bytes = load_bytes(tiles, tile, &panel, source, row, v);
		lth_lv at = t_add_const(fn, t_mul_const(fn, row, each * width), (int64_t)v * tile->lanes);
		for (unsigned shift = 0; shift < 8; shift += bits) {
			lth_lv value = t_sub(fn, take_bits(fn, bytes, shift, bits), panel.zero[v]);
			value = t_mul(fn, value, panel.scale[v]);
			lth_loop_store(fn, lth_loop_offset(fn, tiles->panel, at, LTH_DTYPE_F32), value, LTH_DTYPE_F32,
				       LTH_LV_NONE);
			at = t_add_const(fn, at, width);
		}
	}
	lth_loop_end_for(fn, NULL, 0, NULL);
	lth_loop_end_for(fn, NULL, 0, NULL);
}

/* Element k of the row, in every lane; 0 behind its end, where the last block is not whole. */
static lth_lv load_a(struct lth_tiles *tiles, const struct lth_tile_rows *a, lth_lv k, lth_lv depth)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	lth_lv at = t_min(fn, k, t_sub(fn, depth, lth_loop_i64(fn, 1)));
	at = a->steps == LTH_STEP_SHARED ? t_mul(fn, at, a->step[0]) : at;
	lth_lv element = lth_loop_load(fn, lth_loop_offset(fn, a->pointer[0], at, a->memory), a->memory, 1, LTH_LV_NONE);
	return t_select(fn, t_lt(fn, k, depth), element, lth_loop_const_f(fn, LTH_DTYPE_F32, 0));
}

/* acc += scale * (sum of a * q - zero * sum of a), block by block. */
void lth_blocks_dot(struct lth_tiles *tiles, const struct lth_tile *tile, const struct lth_tile_rows *a, lth_lv source,
		    lth_lv depth, lth_lv *acc)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	unsigned bits = tiles->blocks->bits, vectors = tile->vectors;
	int64_t each = 8 / bits, rows = tiles->blocks->size / each;
	lth_lv sums[LTH_MAX_TILE_VECTORS + 1], phis[LTH_MAX_TILE_VECTORS + 1], totals[LTH_MAX_TILE_VECTORS];
	struct panel panel = begin_blocks(tiles, tile, acc, vectors, totals);
	for (unsigned v = 0; v < vectors; v++)
		sums[v] = lth_t_zero(fn, LTH_DTYPE_F32, tile->lanes);
	sums[vectors] = lth_loop_const_f(fn, LTH_DTYPE_F32, 0);
	lth_lv row = lth_loop_for(fn, lth_loop_i64(fn, 0), lth_loop_i64(fn, rows), 1, sums, vectors + 1, phis);
	row = t_add(fn, t_mul_const(fn, panel.block, rows), row);
	lth_lv bytes[LTH_MAX_TILE_VECTORS];
	for (unsigned v = 0; v < vectors; v++)
		bytes[v] = load_bytes(tiles, tile, &panel, source, row, v);
	for (int64_t e = 0; e < each; e++) {
		lth_lv element = load_a(tiles, a, t_add_const(fn, t_mul_const(fn, row, each), e), depth);
		lth_lv broadcast = lth_loop_splat(fn, element, tile->lanes);
		for (unsigned v = 0; v < vectors; v++)
			phis[v] = t_fma(fn, broadcast, take_bits(fn, bytes[v], (unsigned)e * bits, bits), phis[v]);
		phis[vectors] = t_add(fn, phis[vectors], element);
	}
	lth_loop_end_for(fn, phis, vectors + 1, sums);
	lth_lv sum_a = lth_loop_splat(fn, sums[vectors], tile->lanes);
	for (unsigned v = 0; v < vectors; v++) {
		lth_lv sum = t_sub(fn, sums[v], t_mul(fn, panel.zero[v], sum_a));
		totals[v] = t_fma(fn, panel.scale[v], sum, totals[v]);
	}
	lth_loop_end_for(fn, totals, vectors, acc);
}
