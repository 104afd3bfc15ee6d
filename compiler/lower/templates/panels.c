/* The driver of register tiles: cuts "batch x rows x columns" into units of parallel work, a unit being a block of rows
 * times one panel of columns. Whether rows or panels are the outer loop is two int parameters, so it costs no code:
 * panels outermost when the weights are larger than the cache would keep, else rows. Where B has to be packed first,
 * the unit that uses a panel packs it into its scratch and then runs all rows of the batch entry. */
#include "compiler/lower/templates/internal.h"

enum {
	BLOCK_ROWS = 48,            /* a multiple of every tile's rows */
	PANEL_OUTER_BYTES = 400000, /* of weights */
	FEW_ROWS = 64
};

/* How the columns fall into panels. */
struct partition {
	struct lth_tile full, tail;
	bool has_full, has_tail, full_ragged, tail_ragged;
	lth_dim full_panels, panels;
};

bool lth_tiles_tail(const struct lth_machine *machine, enum lth_dtype compute, int64_t columns,
		    struct lth_tile *out_tile)
{
	struct lth_tile full = lth_tile_full(machine, compute);
	int64_t left = columns % lth_tile_width(&full);
	if (left == 0)
		return false;
	*out_tile = lth_tile_tail(machine, compute, left);
	return true;
}

static struct partition partition_columns(struct lth_tiles *tiles)
{
	struct lth_dims *dims = tiles->emit->dims;
	const struct lth_machine *machine = tiles->emit->machine;
	struct partition out = {.full = lth_tile_full(machine, tiles->compute)};
	int64_t columns, width = lth_tile_width(&out.full);
	lth_dim width_dim = lth_dim_const(dims, width);
	out.full_panels = lth_dim_floordiv(dims, tiles->columns, width_dim);
	if (lth_dim_is_const(dims, tiles->columns, &columns)) {
		out.has_full = columns >= width;
		out.has_tail = lth_tiles_tail(machine, tiles->compute, columns, &out.tail);
		if (tiles->bytes) {
			bool wide = tiles->bytes->zero_points->wide;
			out.full.rows = lth_bytes_rows(machine, out.full.vectors, wide);
			out.tail.rows = lth_bytes_rows(machine, out.tail.vectors, wide);
		}
		out.tail_ragged = out.has_tail && columns % width % out.tail.lanes != 0;
		out.panels = lth_dim_const(dims, columns / width + out.has_tail);
		return out;
	}
	/* Unknown columns: full panels, then panels of one vector. */
	lth_dim left = lth_dim_mod(dims, tiles->columns, width_dim);
	out.tail = lth_tile_tail(machine, tiles->compute, out.full.lanes);
	out.has_full = out.has_tail = out.tail_ragged = true;
	if (tiles->bytes) {
		out.full.rows = lth_bytes_rows(machine, out.full.vectors, tiles->bytes->zero_points->wide);
		out.tail.rows = lth_bytes_rows(machine, out.tail.vectors, tiles->bytes->zero_points->wide);
	}
	out.panels = lth_dim_add(dims, out.full_panels,
				 lth_dim_ceildiv(dims, left, lth_dim_const(dims, out.full.lanes)));
	return out;
}

/* Turns a panel of B whose k axis is contiguous: squares of k by columns. Columns that do not exist repeat the last. */
static void turn_panel(struct lth_tiles *tiles, const struct lth_tile *tile, lth_lv source, lth_lv depth,
		       lth_lv n_stride)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	unsigned lanes = tile->lanes;
	lth_lv last = t_sub(fn, t_sub(fn, tiles->num_columns, tiles->column), lth_loop_i64(fn, 1));
	lth_lv first = lth_loop_for(fn, lth_loop_i64(fn, 0), lth_loop_i64(fn, lth_tile_width(tile)), lanes, NULL, 0,
				    NULL);
	lth_lv columns[LTH_MAX_LANES], vectors[LTH_MAX_LANES];
	for (unsigned c = 0; c < lanes; c++) {
		lth_lv column = t_min(fn, t_add_const(fn, first, c), last);
		columns[c] = lth_loop_offset(fn, source, t_mul(fn, column, n_stride), tiles->b_memory);
	}
	lth_lv k = lth_loop_for(fn, lth_loop_i64(fn, 0), depth, lanes, NULL, 0, NULL);
	lth_lv mask = lth_loop_mask(fn, t_sub(fn, depth, k), lanes);
	for (unsigned c = 0; c < lanes; c++)
		vectors[c] = lth_loop_load(fn, lth_loop_offset(fn, columns[c], k, tiles->b_memory), tiles->b_memory,
					   lanes, mask);
	lth_t_transpose(fn, vectors, lanes);
	for (unsigned i = 0; i < lanes; i++) {
		lth_lv at = t_add(fn, t_mul_const(fn, t_add_const(fn, k, i), lth_tile_width(tile)), first);
		lth_loop_store(fn, lth_loop_offset(fn, tiles->panel, at, tiles->compute), vectors[i], tiles->compute,
			       LTH_LV_NONE);
	}
	lth_loop_end_for(fn, NULL, 0, NULL);
	lth_loop_end_for(fn, NULL, 0, NULL);
}

/* Copies the panel at `column` to scratch, k-major: what the panel does not have reads as zero. */
static void gather_panel(struct lth_tiles *tiles, const struct lth_tile *tile, lth_lv source, const lth_lv *k_extent,
			 const lth_lv *k_stride, lth_lv n_stride)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	lth_lv at = lth_loop_i64(fn, 0), out_at, next = source;
	lth_lv masks[LTH_MAX_TILE_VECTORS], index[LTH_MAX_TILE_VECTORS];
	bool unit = lth_t_is(tiles->emit->dims, tiles->b_n_stride, 1);
	for (unsigned v = 0; v < tile->vectors; v++) {
		lth_lv first = t_add_const(fn, tiles->column, (int64_t)v * tile->lanes);
		masks[v] = lth_loop_mask(fn, t_sub(fn, tiles->num_columns, first), tile->lanes);
		index[v] = t_mul(fn, lth_loop_ramp(fn, lth_loop_i64(fn, (int64_t)v * tile->lanes), tile->lanes),
				 n_stride);
	}
	for (uint32_t axis = 0; axis < tiles->num_k; axis++) {
		lth_lv k = lth_loop_for(fn, lth_loop_i64(fn, 0), k_extent[axis], 1, &at, 1, &out_at);
		next = lth_loop_offset(fn, next, t_mul(fn, k, k_stride[axis]), tiles->b_memory);
		at = out_at;
	}
	for (unsigned v = 0; v < tile->vectors; v++) {
		int64_t lane = (int64_t)v * tile->lanes;
		lth_lv place = lth_loop_offset(fn, tiles->panel, t_add_const(fn, at, lane), tiles->compute), value;
		if (unit)
			value = lth_loop_load(fn, lth_loop_offset(fn, next, lth_loop_i64(fn, lane), tiles->b_memory),
					      tiles->b_memory, tile->lanes, masks[v]);
		else
			value = lth_loop_gather(fn, next, index[v], tiles->b_memory, masks[v]);
		lth_loop_store(fn, place, value, tiles->compute, LTH_LV_NONE);
	}
	at = t_add_const(fn, at, lth_tile_width(tile));
	for (uint32_t axis = tiles->num_k; axis-- > 0;) {
		lth_lv result;
		lth_loop_end_for(fn, &at, 1, &result);
		at = result;
	}
}

/* The parameters of a kernel, read once at its start. */
struct driver {
	struct partition columns;
	lth_lv batch[LTH_MAX_TEMPLATE_AXES], batch_stride[LTH_MAX_TEMPLATE_AXES];
	lth_lv k_extent[LTH_MAX_TEMPLATE_AXES], k_stride[LTH_MAX_TEMPLATE_AXES], n_stride;
	lth_lv total_rows, block_rows, row_blocks, full_panels, panels, row_divisor, panel_divisor, group_width;
	lth_lv gathered;
	lth_dim units;
};

static int64_t padded_width(const struct partition *columns, struct lth_dims *dims)
{
	int64_t full = 0;
	(void)lth_dim_is_const(dims, columns->full_panels, &full);
	return full * lth_tile_width(&columns->full) + (columns->has_tail ? lth_tile_width(&columns->tail) : 0);
}

static void read_order(struct lth_tiles *tiles, struct driver *driver, lth_dim total_rows, lth_dim row_blocks)
{
	struct lth_emit *emit = tiles->emit;
	struct lth_dims *dims = emit->dims;
	lth_dim one = lth_dim_const(dims, 1);
	int64_t weights = lth_t_likely(dims, tiles->columns) * lth_t_likely(dims, tiles->depth) *
			  (lth_dtype_bits(tiles->b_memory) / 8);
	bool panels_outer = tiles->panels == LTH_PANELS_GATHERED || weights > PANEL_OUTER_BYTES;
	driver->total_rows = lth_t_param(emit, total_rows);
	driver->block_rows = lth_t_param(emit, tiles->panels == LTH_PANELS_GATHERED ? total_rows
										    : lth_dim_const(dims, BLOCK_ROWS));
	driver->row_blocks = lth_t_param(emit, row_blocks);
	driver->panels = lth_t_param(emit, driver->columns.panels);
	driver->full_panels = lth_t_param(emit, driver->columns.full_panels);
	driver->row_divisor = lth_t_param(emit, panels_outer ? one : driver->columns.panels);
	driver->panel_divisor = lth_t_param(emit, panels_outer ? row_blocks : one);
}

static void read_params(struct lth_tiles *tiles, struct driver *driver)
{
	struct lth_emit *emit = tiles->emit;
	struct lth_dims *dims = emit->dims;
	driver->columns = partition_columns(tiles);
	lth_dim total_rows = lth_dim_product(dims, tiles->rows, tiles->num_rows);
	lth_dim row_blocks = tiles->panels == LTH_PANELS_GATHERED
				     ? lth_dim_const(dims, 1)
				     : lth_dim_ceildiv(dims, total_rows, lth_dim_const(dims, BLOCK_ROWS));
	read_order(tiles, driver, total_rows, row_blocks);
	for (uint32_t axis = 0; axis < tiles->num_rows; axis++)
		tiles->row_extent[axis] = axis ? lth_t_param(emit, tiles->rows[axis]) : LTH_LV_NONE;
	for (uint32_t axis = 0; axis < tiles->num_batch; axis++) {
		driver->batch[axis] = lth_t_param(emit, tiles->batch[axis]);
		driver->batch_stride[axis] = lth_t_stride(emit, tiles->b_batch_stride[axis]);
	}
	tiles->num_columns = lth_t_param(emit, tiles->columns);
	tiles->depth_value = lth_t_param(emit, tiles->depth);
	for (uint32_t axis = 0; tiles->panels != LTH_PANELS_PACKED && axis < tiles->num_k; axis++) {
		driver->k_extent[axis] = lth_t_param(emit, tiles->b_k[axis]);
		driver->k_stride[axis] = lth_t_stride(emit, tiles->b_k_stride[axis]);
	}
	if (tiles->panels == LTH_PANELS_GATHERED)
		driver->n_stride = lth_t_stride(emit, tiles->b_n_stride);
	if (tiles->panels == LTH_PANELS_PACKED)
		driver->group_width = lth_t_param(emit, lth_dim_const(dims, padded_width(&driver->columns, dims)));
	driver->units = lth_dim_mul(dims, lth_dim_product(dims, tiles->batch, tiles->num_batch),
				    lth_dim_mul(dims, row_blocks, driver->columns.panels));
	if (!lth_dim_is_const(dims, total_rows, &tiles->known_rows))
		tiles->known_rows = -1;
	tiles->few_rows = lth_t_likely(dims, total_rows) < FEW_ROWS;
}

/* Weights of few bits are multiplied as they are by a single row, and written out for more. */
static bool may_be_one_row(const struct lth_tiles *tiles)
{
	return tiles->blocks && tiles->known_rows <= 1;
}

static bool may_fill_panels(const struct lth_tiles *tiles)
{
	bool one = tiles->known_rows == 0 || tiles->known_rows == 1;
	return tiles->panels == LTH_PANELS_GATHERED && !(tiles->blocks && one);
}

/* Scratch: the tile buffer, the template's own part, the gathered panel. */
static void read_scratch(struct lth_tiles *tiles, struct driver *driver)
{
	struct lth_emit *emit = tiles->emit;
	struct lth_dims *dims = emit->dims;
	struct lth_loop_fn *fn = emit->fn;
	lth_dim line = lth_dim_const(dims, 64), total = lth_dim_const(dims, LTH_TILE_BUFFER_BYTES);
	tiles->tile_buffer = lth_loop_scratch(fn);
	tiles->extra = lth_loop_offset(fn, tiles->tile_buffer, lth_loop_i64(fn, LTH_TILE_BUFFER_BYTES), LTH_DTYPE_U8);
	if (tiles->extra_scratch != LTH_DIM_NONE)
		total = lth_dim_add(dims, total,
				    lth_dim_mul(dims, lth_dim_ceildiv(dims, tiles->extra_scratch, line), line));
	if (may_fill_panels(tiles)) {
		const struct partition *columns = &driver->columns;
		int64_t width = lth_tile_width(columns->has_full ? &columns->full : &columns->tail);
		int64_t row_bytes = width * (lth_dtype_bits(tiles->compute) / 8);
		driver->gathered = lth_loop_offset(fn, tiles->tile_buffer, lth_t_param(emit, total), LTH_DTYPE_U8);
		/* turned panels are written in whole squares */
		lth_dim depth = lth_dim_add(dims, tiles->depth,
					    lth_dim_const(dims, lth_machine_lanes(emit->machine, tiles->compute)));
		total = lth_dim_add(dims, total, lth_dim_mul(dims, depth, lth_dim_const(dims, row_bytes)));
	}
	emit->scratch_bytes = total;
}

/* Points the tiles at the panel whose first column is tiles->column. */
static void enter_panel(struct lth_tiles *tiles, struct driver *driver, const struct lth_tile *tile)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	lth_lv offset = lth_loop_i64(fn, 0);
	for (uint32_t axis = 0; axis < tiles->num_batch; axis++)
		offset = t_add(fn, offset, t_mul(fn, tiles->batch_index[axis], driver->batch_stride[axis]));
	tiles->panel_step = lth_loop_i64(fn, lth_tile_width(tile));
	tiles->panel_memory = tiles->panels == LTH_PANELS_GATHERED ? tiles->compute : tiles->b_memory;
	if (tiles->panels == LTH_PANELS_PACKED) {
		offset = t_mul(fn, t_add(fn, t_mul(fn, offset, driver->group_width), tiles->column),
			       tiles->depth_value);
		if (tiles->bytes)
			offset = t_add_const(fn, offset,
					     lth_bytes_header(tiles->bytes->zero_points->wide) * lth_tile_width(tile));
		tiles->panel = lth_loop_offset(fn, tiles->b, offset, tiles->b_memory);
		return;
	}
	if (tiles->panels == LTH_PANELS_IN_PLACE) {
		tiles->panel = lth_loop_offset(fn, tiles->b, t_add(fn, offset, tiles->column), tiles->b_memory);
		tiles->panel_step = driver->k_stride[0];
		return;
	}
	offset = t_add(fn, offset, t_mul(fn, tiles->column, driver->n_stride));
	lth_lv source = lth_loop_offset(fn, tiles->b, offset, tiles->b_memory);
	tiles->panel = tiles->in_bits ? source : driver->gathered;
	if (tiles->in_bits)
		return;
	if (tiles->bytes) {
		int64_t header = lth_bytes_header(tiles->bytes->zero_points->wide) * lth_tile_width(tile);
		tiles->panel = lth_loop_offset(fn, tiles->panel, lth_loop_i64(fn, header), LTH_DTYPE_I32);
		lth_bytes_fill(tiles, tile, source, driver->k_extent[0], driver->k_stride[0], driver->n_stride);
	} else if (tiles->blocks)
		lth_blocks_fill(tiles, tile, source);
	else if (tiles->num_k == 1 && lth_t_is(tiles->emit->dims, tiles->b_k_stride[0], 1))
		turn_panel(tiles, tile, source, driver->k_extent[0], driver->n_stride);
	else
		gather_panel(tiles, tile, source, driver->k_extent, driver->k_stride, driver->n_stride);
}

/* All rows of a block times the panel at tiles->column. */
static void emit_panel(struct lth_tiles *tiles, struct driver *driver, const struct lth_tile *tile, bool ragged,
		       lth_lv count, const lth_lv *start)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	bool one = may_be_one_row(tiles), more = !tiles->blocks || may_fill_panels(tiles);
	if (one && more)
		lth_loop_if(fn, t_le(fn, driver->total_rows, lth_loop_i64(fn, 1)));
	if (one) {
		struct lth_tile single = {tile->lanes, tile->vectors, 1};
		tiles->in_bits = true;
		enter_panel(tiles, driver, &single);
		lth_tiles_block(tiles, &single, ragged, count, start);
		tiles->in_bits = false;
	}
	if (one && more)
		lth_loop_else(fn, NULL, 0);
	if (more) {
		enter_panel(tiles, driver, tile);
		lth_tiles_block(tiles, tile, ragged, count, start);
	}
	if (one && more)
		lth_loop_end_if(fn, NULL, 0, NULL);
}

static void emit_unit(struct lth_tiles *tiles, struct driver *driver, lth_lv unit)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	const struct partition *columns = &driver->columns;
	lth_lv start[LTH_MAX_TEMPLATE_AXES];
	if (tiles->num_batch) {
		lth_lv per_batch = t_mul(fn, driver->row_blocks, driver->panels);
		lth_t_unflatten(fn, t_div(fn, unit, per_batch), driver->batch, tiles->num_batch, tiles->batch_index);
		unit = t_rem(fn, unit, per_batch);
	}
	lth_lv block = t_rem(fn, t_div(fn, unit, driver->row_divisor), driver->row_blocks);
	lth_lv panel = t_rem(fn, t_div(fn, unit, driver->panel_divisor), driver->panels);
	lth_lv first = t_mul(fn, block, driver->block_rows);
	lth_lv count = t_min(fn, driver->block_rows, t_sub(fn, driver->total_rows, first));
	lth_t_unflatten(fn, first, tiles->row_extent, tiles->num_rows, start);
	if (columns->has_full && columns->has_tail)
		lth_loop_if(fn, t_lt(fn, panel, driver->full_panels));
	if (columns->has_full) {
		tiles->column = t_mul_const(fn, panel, lth_tile_width(&columns->full));
		emit_panel(tiles, driver, &columns->full, false, count, start);
	}
	if (columns->has_full && columns->has_tail)
		lth_loop_else(fn, NULL, 0);
	if (columns->has_tail) {
		lth_lv behind = t_sub(fn, panel, driver->full_panels);
		lth_lv full = t_mul_const(fn, driver->full_panels, lth_tile_width(&columns->full));
		tiles->column = t_add(fn, full, t_mul_const(fn, behind, lth_tile_width(&columns->tail)));
		emit_panel(tiles, driver, &columns->tail, columns->tail_ragged, count, start);
	}
	if (columns->has_full && columns->has_tail)
		lth_loop_end_if(fn, NULL, 0, NULL);
}

void lth_tiles_emit(struct lth_tiles *tiles)
{
	struct lth_emit *emit = tiles->emit;
	struct lth_dims *dims = emit->dims;
	struct lth_loop_fn *fn = emit->fn;
	struct driver driver = {0};
	read_params(tiles, &driver);
	read_scratch(tiles, &driver);
	lth_lv unit = lth_loop_for(fn, lth_loop_begin(fn), lth_loop_end(fn), 1, NULL, 0, NULL);
	emit_unit(tiles, &driver, unit);
	lth_loop_end_for(fn, NULL, 0, NULL);
	bool bare = !may_fill_panels(tiles) && tiles->extra_scratch == LTH_DIM_NONE;
	if (bare && !tiles->buffer_used)
		emit->scratch_bytes = lth_dim_const(dims, 0);
	emit->units = driver.units;
	emit->min_units = lth_t_min_units(dims,
					  lth_dim_mul(dims, tiles->depth, lth_dim_const(dims, 2 * BLOCK_ROWS * 64)));
}
