/* Matrix products of any rank: batch axes, row axes of A, one axis of K, columns of B, all with strides, so that
 * transposed operands and broadcast batches are the same code. Constant B is packed in panels at compile time; computed
 * B is read in place where its columns are contiguous, else packed panel by panel on the way. */
#include "compiler/lower/templates/internal.h"

struct gemm {
	const struct lth_gemm *problem;
	lth_lv row_stride[LTH_MAX_TEMPLATE_AXES], batch_stride[LTH_MAX_TEMPLATE_AXES], k_step; /* k_step NONE: 1 */
	bool dense; /* the rows of A follow each other without a gap */
	bool flat;  /* all row axes are one */
	lth_lv k;   /* NONE: the panel's depth */
};

/* B's packing, when everything about it is known: at most one batch axis may have weights of its own. */
static bool gemm_pack(struct lth_dims *dims, const struct lth_machine *machine, const struct lth_problem *problem,
		      struct lth_pack *out)
{
	const struct lth_gemm *gemm = &problem->gemm;
	struct lth_pack pack = {.kind = LTH_PACK_PANELS, .dtype = gemm->b.memory, .groups = 1, .gates = 1, .num_k = 1};
	uint32_t own = 0;
	if (!gemm->b.constant || (problem->compute == LTH_DTYPE_I32 && !lth_bytes_known(problem, &gemm->b)) ||
	    !lth_dim_is_const(dims, gemm->k, &pack.k[0].extent) ||
	    !lth_dim_is_const(dims, gemm->b_k_stride, &pack.k[0].stride) ||
	    !lth_dim_is_const(dims, gemm->n, &pack.columns) ||
	    !lth_dim_is_const(dims, gemm->b_n_stride, &pack.column_stride))
		return false;
	for (uint32_t axis = 0; axis < gemm->num_batch; axis++) {
		const struct lth_gemm_axis *batch = &gemm->batch[axis];
		if (lth_t_is(dims, batch->b_stride, 0))
			continue;
		if (own++ || !lth_dim_is_const(dims, batch->extent, &pack.groups) ||
		    !lth_dim_is_const(dims, batch->b_stride, &pack.group_stride))
			return false;
	}
	struct lth_tile full = lth_tile_full(machine, problem->compute), tail;
	pack.panel = lth_tile_width(&full);
	if (lth_tiles_tail(machine, problem->compute, pack.columns, &tail))
		pack.tail = lth_tile_width(&tail);
	if (problem->compute == LTH_DTYPE_I32)
		lth_bytes_pack(problem, 0, &pack);
	*out = pack;
	return true;
}

/* Whether computed B with contiguous columns is better copied into panels: deep ones touch a page for every k, which
 * many rows would pay again and again. */
static bool worth_packing(struct lth_dims *dims, const struct lth_gemm *gemm)
{
	enum { MANY_ROWS = 96, DEEP = 256 };
	int64_t rows = 1;
	for (uint32_t axis = 0; axis < gemm->num_rows && rows < MANY_ROWS; axis++)
		rows *= lth_t_likely(dims, gemm->rows[axis].extent);
	return rows >= MANY_ROWS && lth_t_likely(dims, gemm->k) >= DEEP;
}

bool lth_gemm_plan(struct lth_dims *dims, const struct lth_machine *machine, const struct lth_problem *problem,
		   struct lth_template_plan *out)
{
	const struct lth_gemm *gemm = &problem->gemm;
	bool bytes = lth_bytes_plan(dims, problem, &gemm->a, &gemm->b, gemm->a_k_stride), blocks = problem->blocks.bits;
	if (blocks && (problem->compute != LTH_DTYPE_F32 || !lth_t_loads_as(gemm->a.memory, problem->compute)))
		return false;
	if (!bytes && !blocks &&
	    (!lth_t_loads_as(gemm->a.memory, problem->compute) || !lth_t_loads_as(gemm->b.memory, problem->compute)))
		return false;
	out->flops = lth_dim_mul(dims, lth_dim_const(dims, 2), lth_dim_mul(dims, gemm->k, gemm->n));
	for (uint32_t axis = 0; axis < gemm->num_batch; axis++)
		out->flops = lth_dim_mul(dims, out->flops, gemm->batch[axis].extent);
	for (uint32_t axis = 0; axis < gemm->num_rows; axis++)
		out->flops = lth_dim_mul(dims, out->flops, gemm->rows[axis].extent);
	if (blocks)
		out->variant = LTH_PANELS_GATHERED;
	else if (gemm_pack(dims, machine, problem, &out->packs[0]))
		out->variant = LTH_PANELS_PACKED;
	else if (bytes && !lth_t_is(dims, gemm->b_n_stride, 1) && !lth_t_is(dims, gemm->b_k_stride, 1))
		return false;
	else if (bytes)
		out->variant = LTH_PANELS_GATHERED;
	else if (lth_t_is(dims, gemm->b_n_stride, 1) && !worth_packing(dims, gemm))
		out->variant = LTH_PANELS_IN_PLACE;
	else
		out->variant = LTH_PANELS_GATHERED;
	return true;
}

static void gemm_accumulate(struct lth_tiles *tiles, const struct lth_tile *tile, unsigned rows, lth_lv *acc)
{
	struct lth_loop_fn *fn = tiles->emit->fn;
	const struct gemm *gemm = tiles->context;
	enum lth_dtype memory = gemm->problem->a.memory;
	lth_lv base = gemm->problem->a.pointer;
	struct lth_tile_rows a = {.step = {gemm->k_step}, .memory = memory, .ahead = LTH_LV_NONE};
	for (uint32_t axis = 0; axis < tiles->num_batch; axis++)
		base = lth_loop_offset(fn, base, t_mul(fn, tiles->batch_index[axis], gemm->batch_stride[axis]), memory);
	for (unsigned r = 0; r < rows; r++) {
		lth_lv offset = lth_loop_i64(fn, 0);
		for (uint32_t axis = 0; axis < tiles->num_rows; axis++)
			offset = t_add(fn, offset, t_mul(fn, tiles->row_index[r][axis], gemm->row_stride[axis]));
		a.pointer[r] = lth_loop_offset(fn, base, offset, memory);
	}
	a.steps = gemm->k_step == LTH_LV_NONE ? LTH_STEP_ADJACENT : LTH_STEP_SHARED;
	if (gemm->dense)
		a.ahead = lth_loop_offset(fn, a.pointer[0], t_mul_const(fn, gemm->row_stride[0], rows), memory);
	lth_tile_dot(tiles, tile, rows, &a, tiles->panel, gemm->k == LTH_LV_NONE ? tiles->depth_value : gemm->k, acc);
}

static void gemm_index(struct lth_tiles *tiles, const lth_lv *row, lth_lv column, lth_lv *out)
{
	const struct gemm *gemm = tiles->context;
	uint32_t at = 0;
	for (uint32_t axis = 0; axis < tiles->num_batch; axis++)
		out[at++] = tiles->batch_index[axis];
	for (uint32_t axis = 0; axis < gemm->problem->num_rows; axis++) {
		bool last = axis + 1 == gemm->problem->num_rows;
		out[at++] = !gemm->flat ? row[axis] : last ? row[0] : lth_loop_i64(tiles->emit->fn, 0);
	}
	out[at] = column;
}

static void gemm_finish(struct lth_tiles *tiles, const lth_lv *row, lth_lv column, lth_lv value, unsigned lanes,
			lth_lv mask)
{
	const struct gemm *gemm = tiles->context;
	const struct lth_epilogue *epilogue = tiles->emit->epilogue;
	lth_lv index[2 * LTH_MAX_TEMPLATE_AXES + 1];
	gemm_index(tiles, row, column, index);
	epilogue->apply(epilogue->context, 0, index, tiles->num_batch + gemm->problem->num_rows, value, lanes, mask);
}

static void gemm_prefetch(struct lth_tiles *tiles, const lth_lv *row, lth_lv column)
{
	const struct lth_epilogue *epilogue = tiles->emit->epilogue;
	lth_lv index[2 * LTH_MAX_TEMPLATE_AXES + 1];
	gemm_index(tiles, row, column, index);
	epilogue->prefetch(epilogue->context, 0, index);
}

/* Several row axes as one: where A and everything the epilogue touches is dense over them. */
static bool rows_are_flat(struct lth_emit *emit, const struct lth_gemm *gemm)
{
	struct lth_dims *dims = emit->dims;
	if (gemm->num_batch || gemm->num_rows < 2 || !emit->epilogue->flat_pixels)
		return false;
	lth_dim next = gemm->rows[gemm->num_rows - 1].a_stride;
	for (uint32_t axis = gemm->num_rows; axis-- > 0;) {
		const struct lth_gemm_axis *row = &gemm->rows[axis];
		if (!lth_t_is(dims, row->extent, 1) && lth_dim_equal(dims, row->a_stride, next) != LTH_YES)
			return false;
		next = lth_dim_mul(dims, next, row->extent);
	}
	return true;
}

void lth_gemm_emit(struct lth_emit *emit, const struct lth_problem *problem, const struct lth_template_plan *plan)
{
	const struct lth_gemm *p = &problem->gemm;
	struct lth_dims *dims = emit->dims;
	struct gemm gemm = {.problem = p, .k_step = LTH_LV_NONE, .k = LTH_LV_NONE};
	struct lth_bytes bytes;
	struct lth_tiles tiles = {
		.emit = emit,
		.compute = problem->compute,
		.b_memory = p->b.memory,
		.panels = (enum lth_panels)plan->variant,
		.num_batch = p->num_batch,
		.num_rows = p->num_rows ? p->num_rows : 1,
		.num_k = 1,
		.columns = p->n,
		.depth = p->k,
		.b = p->b.pointer,
		.b_n_stride = p->b_n_stride,
		.extra_scratch = LTH_DIM_NONE,
		.context = &gemm,
		.accumulate = gemm_accumulate,
		.finish = gemm_finish,
		.prefetch = emit->epilogue->prefetch ? gemm_prefetch : NULL,
	};
	if (problem->compute == LTH_DTYPE_I32) {
		int64_t depth = -1;
		(void)lth_dim_is_const(dims, p->k, &depth);
		lth_bytes_begin(emit, problem, p->a.memory, depth, &bytes);
		tiles.bytes = &bytes;
		tiles.depth = lth_bytes_depth(dims, problem, p->k);
		if (tiles.panels == LTH_PANELS_PACKED)
			tiles.b_memory = plan->packs[0].dtype;
		gemm.k = lth_t_param(emit, p->k);
	}
	if (problem->blocks.bits) {
		tiles.blocks = &problem->blocks;
		tiles.depth = lth_dim_mul(dims, problem->blocks.count, lth_dim_const(dims, problem->blocks.size));
		gemm.k = lth_t_param(emit, p->k);
	}
	tiles.rows[0] = lth_dim_const(dims, 1);
	tiles.b_k[0] = p->k;
	tiles.b_k_stride[0] = p->b_k_stride;
	gemm.row_stride[0] = lth_loop_i64(emit->fn, 0);
	for (uint32_t axis = 0; axis < p->num_batch; axis++) {
		bool own = !lth_t_is(dims, p->batch[axis].b_stride, 0);
		tiles.batch[axis] = p->batch[axis].extent;
		tiles.b_batch_stride[axis] = tiles.panels == LTH_PANELS_PACKED ? lth_dim_const(dims, own)
									       : p->batch[axis].b_stride;
		gemm.batch_stride[axis] = lth_t_stride(emit, p->batch[axis].a_stride);
	}
	for (uint32_t axis = 0; axis < p->num_rows; axis++)
		tiles.rows[axis] = p->rows[axis].extent;
	gemm.flat = rows_are_flat(emit, p);
	if (gemm.flat) {
		tiles.rows[0] = lth_dim_product(dims, tiles.rows, tiles.num_rows);
		tiles.num_rows = 1;
	}
	for (uint32_t axis = 0; p->num_rows && axis < tiles.num_rows; axis++)
		gemm.row_stride[axis] = lth_t_stride(emit, p->rows[gemm.flat ? p->num_rows - 1 : axis].a_stride);
	if (!lth_t_is(dims, p->a_k_stride, 1))
		gemm.k_step = lth_t_stride(emit, p->a_k_stride);
	else
		gemm.dense = p->num_rows && tiles.num_rows == 1 &&
			     lth_dim_equal(dims, p->rows[p->num_rows - 1].a_stride, p->k) == LTH_YES;
	lth_tiles_emit(&tiles);
}
