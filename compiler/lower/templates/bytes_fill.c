/* Panels of bytes.c for weights that only the run knows: the unit that uses a panel gathers its quads into scratch, then
 * adds up the columns and reads their zero points for the rows in front. Bytes behind the end of k are 0 in the panel,
 * whatever A's are. */
#include "compiler/lower/templates/internal.h"

struct fill {
	struct lth_tiles *tiles;
	const struct lth_tile *tile;
	lth_lv source, depth, k_stride, n_stride;
	lth_lv quads; /* of a column */
	int32_t middle;
};

/* Four rows of contiguous columns, whose bytes become one quad each. */
static lth_lv interleave_rows(const struct fill *f, lth_lv k, lth_lv first)
{
	struct lth_loop_fn *fn = f->tiles->emit->fn;
	enum lth_dtype memory = f->tiles->b_memory;
	unsigned lanes = f->tile->lanes;
	lth_lv columns = t_sub(fn, t_sub(fn, f->tiles->num_columns, f->tiles->column), first);
	lth_lv quads = lth_t_zero(fn, LTH_DTYPE_I32, lanes), byte = lth_loop_const_i(fn, LTH_DTYPE_I32, 0xff);
	for (unsigned i = 0; i < LTH_QUAD; i++) {
		lth_lv row = t_add_const(fn, k, i), exists = t_lt(fn, row, f->depth);
		lth_lv mask = lth_loop_mask(fn, t_select(fn, exists, columns, lth_loop_i64(fn, 0)), lanes);
		lth_lv at = lth_loop_offset(fn, f->source, t_add(fn, t_mul(fn, row, f->k_stride), first), memory);
		lth_lv value = lth_loop_cast(fn, lth_loop_load(fn, at, memory, lanes, mask), LTH_DTYPE_I32);
		lth_lv flip = t_select(fn, exists, lth_loop_const_i(fn, LTH_DTYPE_I32, f->middle),
				       lth_loop_const_i(fn, LTH_DTYPE_I32, 0));
		value = t_and(fn, lth_loop_op2(fn, LTH_SCALAR_XOR, value, lth_loop_splat(fn, flip, lanes)), byte);
		value = lth_loop_op2(fn, LTH_SCALAR_SHL, value, lth_loop_const_i(fn, LTH_DTYPE_I32, 8 * i));
		quads = t_or(fn, quads, value);
	}
	return quads;
}

static void fill_from_rows(const struct fill *f)
{
	struct lth_loop_fn *fn = f->tiles->emit->fn;
	lth_lv quad = lth_loop_for(fn, lth_loop_i64(fn, 0), f->quads, 1, NULL, 0, NULL);
	for (unsigned v = 0; v < f->tile->vectors; v++) {
		lth_lv first = lth_loop_i64(fn, (int64_t)v * f->tile->lanes);
		lth_lv quads = interleave_rows(f, t_mul_const(fn, quad, LTH_QUAD), first);
		lth_lv at = t_add(fn, t_mul_const(fn, quad, lth_tile_width(f->tile)), first);
		lth_loop_store(fn, lth_loop_offset(fn, f->tiles->panel, at, LTH_DTYPE_I32), quads, LTH_DTYPE_I32,
			       LTH_LV_NONE);
	}
	lth_loop_end_for(fn, NULL, 0, NULL);
}

/* As many quads of a column as a vector holds, by way of memory, which is where bytes become quads. */
static lth_lv load_column(const struct fill *f, lth_lv column, lth_lv k, lth_lv mask, unsigned place)
{
	struct lth_loop_fn *fn = f->tiles->emit->fn;
	enum lth_dtype memory = f->tiles->b_memory;
	unsigned lanes = f->tile->lanes;
	lth_lv at = lth_loop_offset(fn, f->source, t_add(fn, t_mul(fn, column, f->n_stride), k), memory);
	lth_lv bytes = lth_loop_load(fn, at, memory, LTH_QUAD * lanes, mask);
	if (f->middle) {
		bytes = lth_loop_op2(fn, LTH_SCALAR_XOR, bytes, lth_loop_const_i(fn, memory, f->middle));
		bytes = t_select(fn, mask, bytes, lth_t_zero(fn, memory, LTH_QUAD * lanes));
	}
	lth_lv staged = lth_loop_offset(fn, f->tiles->tile_buffer, lth_loop_i64(fn, place * lanes), LTH_DTYPE_I32);
	lth_loop_store(fn, staged, bytes, memory, LTH_LV_NONE);
	return lth_loop_load(fn, staged, LTH_DTYPE_I32, lanes, LTH_LV_NONE);
}

/* Columns whose bytes are contiguous: squares of columns by quads, turned. Columns that do not exist repeat the last. */
static void fill_from_columns(const struct fill *f)
{
	struct lth_loop_fn *fn = f->tiles->emit->fn;
	unsigned lanes = f->tile->lanes;
	int64_t width = lth_tile_width(f->tile);
	lth_lv last = t_sub(fn, t_sub(fn, f->tiles->num_columns, f->tiles->column), lth_loop_i64(fn, 1));
	lth_lv first = lth_loop_for(fn, lth_loop_i64(fn, 0), lth_loop_i64(fn, width), lanes, NULL, 0, NULL);
	lth_lv quad = lth_loop_for(fn, lth_loop_i64(fn, 0), f->quads, lanes, NULL, 0, NULL);
	lth_lv k = t_mul_const(fn, quad, LTH_QUAD), vectors[LTH_MAX_LANES];
	lth_lv mask = lth_loop_mask(fn, t_sub(fn, f->depth, k), LTH_QUAD * lanes);
	for (unsigned c = 0; c < lanes; c++)
		vectors[c] = load_column(f, t_min(fn, t_add_const(fn, first, c), last), k, mask, c);
	lth_t_transpose(fn, vectors, lanes);
	for (unsigned i = 0; i < lanes; i++) {
		lth_lv at = t_add(fn, t_mul_const(fn, t_add_const(fn, quad, i), width), first);
		lth_loop_store(fn, lth_loop_offset(fn, f->tiles->panel, at, LTH_DTYPE_I32), vectors[i], LTH_DTYPE_I32,
			       LTH_LV_NONE);
	}
	lth_loop_end_for(fn, NULL, 0, NULL);
	lth_loop_end_for(fn, NULL, 0, NULL);
}

/* B's zero points over a vector of columns, less the middle. */
static lth_lv read_zeros(const struct fill *f, unsigned vector)
{
	struct lth_loop_fn *fn = f->tiles->emit->fn;
	const struct lth_zero_points *zeros = f->tiles->bytes->zero_points;
	const struct lth_operand *read = &zeros->b_read;
	unsigned lanes = f->tile->lanes;
	lth_lv zero = lth_t_zero(fn, LTH_DTYPE_I32, lanes);
	lth_lv column = t_add_const(fn, f->tiles->column, (int64_t)vector * lanes);
	if (read->pointer != LTH_LV_NONE && zeros->b_by_column) {
		lth_lv mask = lth_loop_mask(fn, t_sub(fn, f->tiles->num_columns, column), lanes);
		lth_lv at = lth_loop_offset(fn, read->pointer, column, read->memory);
		zero = lth_loop_cast(fn, lth_loop_load(fn, at, read->memory, lanes, mask), LTH_DTYPE_I32);
	} else if (read->pointer != LTH_LV_NONE) {
		lth_lv one = lth_loop_load(fn, read->pointer, read->memory, 1, LTH_LV_NONE);
		zero = lth_loop_splat(fn, lth_loop_cast(fn, one, LTH_DTYPE_I32), lanes);
	}
	return t_sub(fn, zero, lth_loop_const_i(fn, LTH_DTYPE_I32, f->middle));
}

static void store_header(const struct fill *f, int64_t row, unsigned vector, lth_lv value)
{
	struct lth_loop_fn *fn = f->tiles->emit->fn;
	int64_t back = lth_bytes_header(f->tiles->bytes->zero_points->wide) - row;
	int64_t at = (int64_t)vector * f->tile->lanes - back * lth_tile_width(f->tile);
	lth_loop_store(fn, lth_loop_offset(fn, f->tiles->panel, lth_loop_i64(fn, at), LTH_DTYPE_I32), value,
		       LTH_DTYPE_I32, LTH_LV_NONE);
}

/* The rows in front of the quads. */
static void write_header(const struct fill *f)
{
	struct lth_loop_fn *fn = f->tiles->emit->fn;
	unsigned lanes = f->tile->lanes, vectors = f->tile->vectors;
	lth_lv sums[LTH_MAX_TILE_VECTORS], phis[LTH_MAX_TILE_VECTORS];
	lth_lv ones = lth_loop_splat(fn, lth_loop_const_i(fn, LTH_DTYPE_U8, 1), LTH_QUAD * lanes);
	for (unsigned v = 0; v < vectors; v++)
		sums[v] = lth_t_zero(fn, LTH_DTYPE_I32, lanes);
	lth_lv quad = lth_loop_for(fn, lth_loop_i64(fn, 0), f->quads, 1, sums, vectors, phis);
	for (unsigned v = 0; v < vectors; v++) {
		lth_lv at = t_add_const(fn, t_mul_const(fn, quad, lth_tile_width(f->tile)), (int64_t)v * lanes);
		lth_lv b = lth_loop_load(fn, lth_loop_offset(fn, f->tiles->panel, at, LTH_DTYPE_I32), LTH_DTYPE_I8,
					 LTH_QUAD * lanes, LTH_LV_NONE);
		phis[v] = lth_loop_dot4(fn, phis[v], ones, b);
	}
	lth_loop_end_for(fn, phis, vectors, sums);
	lth_lv depth = lth_loop_splat(fn, lth_loop_cast(fn, f->depth, LTH_DTYPE_I32), lanes);
	for (unsigned v = 0; v < vectors; v++) {
		lth_lv zero = read_zeros(f, v);
		store_header(f, 0, v, t_sub(fn, sums[v], t_mul(fn, zero, depth)));
		if (f->tiles->bytes->zero_points->wide)
			store_header(f, 1, v, zero);
	}
}

void lth_bytes_fill(struct lth_tiles *tiles, const struct lth_tile *tile, lth_lv source, lth_lv depth, lth_lv k_stride,
		    lth_lv n_stride)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	struct fill f = {.tiles = tiles, .tile = tile, .source = source, .depth = depth, .k_stride = k_stride,
			 .n_stride = n_stride, .middle = tiles->b_memory == LTH_DTYPE_U8 ? LTH_UNSIGNED_MIDDLE : 0};
	f.quads = t_div(fn, t_add_const(fn, depth, LTH_QUAD - 1), lth_loop_i64(fn, LTH_QUAD));
	if (lth_t_is(tiles->emit->dims, tiles->b_n_stride, 1))
		fill_from_rows(&f);
	else
		fill_from_columns(&f);
	write_header(&f);
}
