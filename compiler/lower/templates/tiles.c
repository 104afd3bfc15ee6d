/* The one micro-kernel and what drives it: a tile of `rows` x `vectors` accumulators in registers,
 * row pointers into A, which is never packed, panels of B with k outermost, all of K in one go.
 *
 * What remains of a block below a whole tile is done row by row; where there are few rows in all, through smaller tiles
 * into a buffer and from there through one copy of the epilogue. So do all tiles when the epilogue is dear. */
#include "compiler/lower/templates/internal.h"

enum { DEAR_EPILOGUE = 10 };

unsigned lth_machine_lanes(const struct lth_machine *machine, enum lth_dtype compute)
{
	return machine->vector_bytes / (lth_dtype_bits(compute) / 8);
}

/* Accumulators + one vector of B each + a broadcast must leave one register (a spill in the inner loop halves the
 * speed). */
struct lth_tile lth_tile_full(const struct lth_machine *machine, enum lth_dtype compute)
{
	unsigned lanes = lth_machine_lanes(machine, compute);
	if (machine->registers >= 32)
		return (struct lth_tile){lanes, 4, 4};
	return (struct lth_tile){lanes, 2, 6};
}

static unsigned tile_rows(const struct lth_machine *machine, unsigned vectors)
{
	static const unsigned allowed[] = {8, 6, 4, 3, 2, 1};
	unsigned most = (machine->registers - 2 - vectors) / vectors, i = 0;
	while (allowed[i] > most)
		i++;
	return allowed[i];
}

struct lth_tile lth_tile_tail(const struct lth_machine *machine, enum lth_dtype compute, int64_t width)
{
	unsigned lanes = lth_machine_lanes(machine, compute), half = lanes / 2;
	unsigned vectors = (unsigned)((width + lanes - 1) / lanes);
	/* A half-width vector does as many operations a cycle where full ones issue at half rate, and wastes less. */
	if (lanes * vectors - width >= half && machine->vector_bytes == 64) {
		lanes = half;
		vectors = (unsigned)((width + lanes - 1) / lanes);
	}
	return (struct lth_tile){lanes, vectors, tile_rows(machine, vectors)};
}

unsigned lth_tile_sums(const struct lth_tiles *tiles, const struct lth_tile *tile, unsigned rows)
{
	return rows * tile->vectors + (tiles->bytes && tiles->bytes->zero_points->wide ? rows : 0);
}

/* One k: broadcasts the element at a[r] + at of each row and multiplies it into the row's accumulators. */
static void multiply_step(struct lth_tiles *tiles, const struct lth_tile *tile, unsigned rows, const lth_lv *a,
			  lth_lv at, enum lth_dtype a_memory, lth_lv panel, lth_lv *acc)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	enum lth_dtype memory = tiles->panel_memory;
	lth_lv b[LTH_MAX_TILE_VECTORS];
	for (unsigned v = 0; v < tile->vectors; v++) {
		lth_lv place = lth_loop_offset(fn, panel, lth_loop_i64(fn, (int64_t)v * tile->lanes), memory);
		lth_lv mask = v + 1 == tile->vectors ? tiles->load_mask : LTH_LV_NONE;
		b[v] = lth_loop_load(fn, place, memory, tile->lanes, mask);
	}
	for (unsigned r = 0; r < rows; r++) {
		lth_lv place = at == LTH_LV_NONE ? a[r] : lth_loop_offset(fn, a[r], at, a_memory);
		lth_lv element = lth_loop_load(fn, place, a_memory, 1, LTH_LV_NONE);
		lth_lv broadcast = lth_loop_splat(fn, element, tile->lanes);
		for (unsigned v = 0; v < tile->vectors; v++)
			acc[r * tile->vectors + v] = t_fma(fn, broadcast, b[v], acc[r * tile->vectors + v]);
	}
}

/* Carried through the loop: accumulators, panel, then nothing (adjacent: the index serves), one shared offset, or a
 * pointer a row. */
lth_lv lth_tile_dot(struct lth_tiles *tiles, const struct lth_tile *tile, unsigned rows, const struct lth_tile_rows *a,
		    lth_lv panel, lth_lv depth, lth_lv *acc)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	if (tiles->bytes)
		return lth_bytes_dot(tiles, tile, rows, a, panel, depth, acc);
	if (tiles->in_bits) {
		assert(rows == 1);
		lth_blocks_dot(tiles, tile, a, panel, depth, acc);
		return panel;
	}
	unsigned count = rows * tile->vectors, carried = count + 1;
	lth_lv state[LTH_MAX_ACCUMULATORS + LTH_MAX_TILE_ROWS + 1], phis[LTH_MAX_ACCUMULATORS + LTH_MAX_TILE_ROWS + 1];
	lth_lv *extra = phis + count + 1;
	assert(count <= LTH_MAX_ACCUMULATORS && rows <= LTH_MAX_TILE_ROWS);
	for (unsigned i = 0; i < count; i++)
		state[i] = acc[i];
	state[count] = panel;
	if (a->steps == LTH_STEP_SHARED)
		state[carried++] = lth_loop_i64(fn, 0);
	for (unsigned r = 0; a->steps == LTH_STEP_OWN && r < rows; r++)
		state[carried++] = a->pointer[r];
	lth_lv k = lth_loop_for(fn, lth_loop_i64(fn, 0), depth, 1, state, carried, phis);
	if (a->ahead != LTH_LV_NONE)
		lth_loop_prefetch(fn, lth_loop_offset(fn, a->ahead, t_mul_const(fn, k, rows), a->memory), false);
	if (a->steps == LTH_STEP_OWN)
		multiply_step(tiles, tile, rows, extra, LTH_LV_NONE, a->memory, phis[count], phis);
	else
		multiply_step(tiles, tile, rows, a->pointer, a->steps == LTH_STEP_SHARED ? extra[0] : k, a->memory,
			      phis[count], phis);
	phis[count] = lth_loop_offset(fn, phis[count], tiles->panel_step, tiles->panel_memory);
	if (a->steps == LTH_STEP_SHARED)
		extra[0] = t_add(fn, extra[0], a->step[0]);
	for (unsigned r = 0; a->steps == LTH_STEP_OWN && r < rows; r++)
		extra[r] = lth_loop_offset(fn, extra[r], a->step[r], a->memory);
	lth_loop_end_for(fn, phis, carried, state);
	for (unsigned i = 0; i < count; i++)
		acc[i] = state[i];
	return state[count];
}

lth_lv lth_tile_dot_unrolled(struct lth_tiles *tiles, const struct lth_tile *tile, unsigned rows,
			     const struct lth_tile_rows *a, lth_lv panel, unsigned depth, lth_lv *acc)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	for (unsigned k = 0; k < depth; k++) {
		lth_lv pointers[LTH_MAX_TILE_ROWS];
		for (unsigned r = 0; r < rows; r++) {
			lth_lv at = lth_loop_i64(fn, k);
			if (a->steps != LTH_STEP_ADJACENT)
				at = t_mul_const(fn, a->step[a->steps == LTH_STEP_OWN ? r : 0], k);
			pointers[r] = lth_loop_offset(fn, a->pointer[r], at, a->memory);
		}
		multiply_step(tiles, tile, rows, pointers, LTH_LV_NONE, a->memory, panel, acc);
		panel = lth_loop_offset(fn, panel, tiles->panel_step, tiles->panel_memory);
	}
	return panel;
}

/* `row` one further along the flat order of row axes. */
static void next_row(struct lth_tiles *tiles, const lth_lv *row, lth_lv *out)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	lth_lv one = lth_loop_i64(fn, 1), zero = lth_loop_i64(fn, 0), carry = one;
	for (uint32_t axis = tiles->num_rows; axis-- > 0;) {
		out[axis] = t_add(fn, row[axis], carry);
		if (axis == 0)
			break;
		lth_lv wraps = t_eq(fn, out[axis], tiles->row_extent[axis]);
		out[axis] = t_select(fn, wraps, zero, out[axis]);
		carry = t_select(fn, wraps, one, zero);
	}
}

/* Fills row_index for `rows` rows from `first`; returns in `first` the row behind them. */
static void walk_rows(struct lth_tiles *tiles, unsigned rows, lth_lv *first)
{
	for (unsigned r = 0; r < rows; r++) {
		lth_lv next[LTH_MAX_TEMPLATE_AXES];
		for (uint32_t axis = 0; axis < tiles->num_rows; axis++)
			tiles->row_index[r][axis] = first[axis];
		next_row(tiles, first, next);
		for (uint32_t axis = 0; axis < tiles->num_rows; axis++)
			first[axis] = next[axis];
	}
}

/* Hands one row's vectors over; the last is masked where the columns end inside it. */
static void finish_row(struct lth_tiles *tiles, const struct lth_tile *tile, bool ragged, const lth_lv *row,
		       const lth_lv *values)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	for (unsigned v = 0; v < tile->vectors; v++) {
		lth_lv column = t_add_const(fn, tiles->column, (int64_t)v * tile->lanes), mask = LTH_LV_NONE;
		if (ragged && v + 1 == tile->vectors)
			mask = lth_loop_mask(fn, t_sub(fn, tiles->num_columns, column), tile->lanes);
		tiles->finish(tiles, row, column, values[v], tile->lanes, mask);
	}
}

static lth_lv buffer_place(struct lth_tiles *tiles, const struct lth_tile *tile, lth_lv row, unsigned vector)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	lth_lv at = t_add_const(fn, t_mul_const(fn, row, lth_tile_width(tile)), (int64_t)vector * tile->lanes);
	return lth_loop_offset(fn, tiles->tile_buffer, at, tiles->compute);
}

/* The finished sums of `rows` rows. */
static void sum_rows(struct lth_tiles *tiles, const struct lth_tile *tile, unsigned rows, lth_lv *acc)
{
	if (tiles->bytes)
		lth_bytes_start(tiles, tile, rows, acc);
	for (unsigned i = 0; !tiles->bytes && i < rows * tile->vectors; i++)
		acc[i] = lth_t_zero(tiles->emit->fn, tiles->compute, tile->lanes);
	tiles->accumulate(tiles, tile, rows, acc);
	if (tiles->bytes)
		lth_bytes_settle(tiles, tile, rows, acc);
}

/* The sums of `rows` rows, stored to the buffer from row `at` on. */
static void tile_to_buffer(struct lth_tiles *tiles, const struct lth_tile *tile, unsigned rows, lth_lv at)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	lth_lv acc[LTH_MAX_ACCUMULATORS];
	tiles->buffer_used = true;
	sum_rows(tiles, tile, rows, acc);
	for (unsigned r = 0; r < rows; r++)
		for (unsigned v = 0; v < tile->vectors; v++)
			lth_loop_store(fn, buffer_place(tiles, tile, t_add_const(fn, at, r), v),
				       acc[r * tile->vectors + v], tiles->compute, LTH_LV_NONE);
}

/* The epilogue over the first `count` rows of the buffer, which begin at row `first`. */
static void finish_buffer(struct lth_tiles *tiles, const struct lth_tile *tile, bool ragged, lth_lv count,
			  const lth_lv *first, lth_lv *out_next)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	lth_lv row[LTH_MAX_TEMPLATE_AXES], next[LTH_MAX_TEMPLATE_AXES], values[LTH_MAX_TILE_VECTORS];
	lth_lv r = lth_loop_for(fn, lth_loop_i64(fn, 0), count, 1, first, tiles->num_rows, row);
	for (unsigned v = 0; v < tile->vectors; v++)
		values[v] = lth_loop_load(fn, buffer_place(tiles, tile, r, v), tiles->compute, tile->lanes,
					  LTH_LV_NONE);
	finish_row(tiles, tile, ragged, row, values);
	next_row(tiles, row, next);
	lth_loop_end_for(fn, next, tiles->num_rows, out_next);
}

/* Whole tiles from flat row p while they fit before `end`; `row` moves along. Returns the row count left over. */
static lth_lv whole_tiles(struct lth_tiles *tiles, const struct lth_tile *tile, bool ragged, lth_lv count, lth_lv *row)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	lth_lv first[LTH_MAX_TEMPLATE_AXES], next[LTH_MAX_TEMPLATE_AXES];
	lth_lv whole = t_mul_const(fn, t_div(fn, count, lth_loop_i64(fn, tile->rows)), tile->rows);
	lth_loop_for(fn, lth_loop_i64(fn, 0), whole, tile->rows, row, tiles->num_rows, first);
	for (uint32_t axis = 0; axis < tiles->num_rows; axis++)
		next[axis] = first[axis];
	walk_rows(tiles, tile->rows, next);
	if (tiles->prefetch && tiles->num_rows == 1 && tile->rows > 1)
		for (unsigned r = 0; r < tile->rows; r++)
			for (unsigned v = 0; v < tile->vectors; v++) {
				lth_lv ahead = t_add_const(fn, next[0], r);
				tiles->prefetch(tiles, &ahead,
						t_add_const(fn, tiles->column, (int64_t)v * tile->lanes));
			}
	if (tiles->emit->epilogue->cost > DEAR_EPILOGUE && tile->rows > 1) {
		tile_to_buffer(tiles, tile, tile->rows, lth_loop_i64(fn, 0));
		finish_buffer(tiles, tile, ragged, lth_loop_i64(fn, tile->rows), first, next);
	} else {
		lth_lv acc[LTH_MAX_ACCUMULATORS];
		sum_rows(tiles, tile, tile->rows, acc);
		for (unsigned r = 0; r < tile->rows; r++)
			finish_row(tiles, tile, ragged, tiles->row_index[r], acc + r * tile->vectors);
	}
	lth_loop_end_for(fn, next, tiles->num_rows, row);
	return t_sub(fn, count, whole);
}

/* The last rows, fewer than a tile: tiles of 4, 2 and 1 rows as the bits of `count` say, then the epilogue. */
static void last_rows(struct lth_tiles *tiles, const struct lth_tile *tile, bool ragged, lth_lv count,
		      const lth_lv *start)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	lth_lv row[LTH_MAX_TEMPLATE_AXES], ignored[LTH_MAX_TEMPLATE_AXES], done = lth_loop_i64(fn, 0);
	lth_lv zero = lth_loop_i64(fn, 0);
	for (uint32_t axis = 0; axis < tiles->num_rows; axis++)
		row[axis] = start[axis];
	lth_loop_if(fn, t_lt(fn, zero, count));
	for (unsigned rows = 4; rows > 0; rows /= 2) {
		if (rows >= tile->rows || (tiles->known_rows >= 0 && (tiles->known_rows % tile->rows & rows) == 0))
			continue;
		lth_lv state[LTH_MAX_TEMPLATE_AXES + 1], kept[LTH_MAX_TEMPLATE_AXES + 1];
		lth_lv some = t_and(fn, count, lth_loop_i64(fn, rows));
		for (uint32_t axis = 0; axis < tiles->num_rows; axis++)
			state[axis] = kept[axis] = row[axis];
		kept[tiles->num_rows] = done;
		lth_loop_if(fn, lth_loop_op2(fn, LTH_SCALAR_NE, some, zero));
		walk_rows(tiles, rows, state);
		tile_to_buffer(tiles, tile, rows, done);
		state[tiles->num_rows] = t_add_const(fn, done, rows);
		lth_loop_else(fn, state, tiles->num_rows + 1);
		lth_lv merged[LTH_MAX_TEMPLATE_AXES + 1];
		lth_loop_end_if(fn, kept, tiles->num_rows + 1, merged);
		for (uint32_t axis = 0; axis < tiles->num_rows; axis++)
			row[axis] = merged[axis];
		done = merged[tiles->num_rows];
	}
	finish_buffer(tiles, tile, ragged, count, start, ignored);
	lth_loop_end_if(fn, NULL, 0, NULL);
}

void lth_tiles_block(struct lth_tiles *tiles, const struct lth_tile *tile, bool ragged, lth_lv count,
		     const lth_lv *start)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	lth_lv row[LTH_MAX_TEMPLATE_AXES];
	tiles->load_mask = LTH_LV_NONE;
	if (tiles->panels == LTH_PANELS_IN_PLACE && ragged) {
		lth_lv last = t_add_const(fn, tiles->column, lth_tile_width(tile) - tile->lanes);
		tiles->load_mask = lth_loop_mask(fn, t_sub(fn, tiles->num_columns, last), tile->lanes);
	}
	for (uint32_t axis = 0; axis < tiles->num_rows; axis++)
		row[axis] = start[axis];
	if (tiles->known_rows < 0 || tiles->known_rows >= tile->rows)
		count = whole_tiles(tiles, tile, ragged, count, row);
	if (tiles->known_rows >= 0 && tiles->known_rows % tile->rows == 0)
		return;
	if (tiles->few_rows) {
		last_rows(tiles, tile, ragged, count, row);
		return;
	}
	struct lth_tile single = {tile->lanes, tile->vectors, 1};
	whole_tiles(tiles, &single, ragged, count, row);
}
