/* Squares of elements turned in registers, and the template that moves data between layouts which disagree on the
 * contiguous axis: blocks of lanes x lanes, read along one axis and handed over along the other. */
#include "compiler/lower/templates/internal.h"

/* log2(lanes) stages, each exchanging one bit of the vector's number with one of the lane's. */
void lth_t_transpose(struct lth_loop_fn *fn, lth_lv *vectors, unsigned lanes)
{
	assert(lanes <= LTH_MAX_LANES);
	for (unsigned bit = lanes / 2; bit > 0; bit /= 2)
		for (unsigned i = 0; i < lanes; i++) {
			uint32_t low[LTH_MAX_LANES], high[LTH_MAX_LANES];
			if (i & bit)
				continue;
			for (unsigned j = 0; j < lanes; j++) {
				low[j] = j & bit ? lanes + j - bit : j;
				high[j] = j & bit ? lanes + j : j + bit;
			}
			lth_lv a = vectors[i], b = vectors[i + bit];
			vectors[i] = lth_loop_shuffle(fn, a, b, low, lanes);
			vectors[i + bit] = lth_loop_shuffle(fn, a, b, high, lanes);
		}
}

bool lth_transpose_plan(struct lth_dims *dims, const struct lth_machine *machine, const struct lth_problem *problem,
			struct lth_template_plan *out)
{
	const struct lth_transpose *p = &problem->transpose;
	(void)machine;
	out->flops = LTH_DIM_NONE;
	return p->source_axis != p->target_axis && lth_t_loads_as(p->x.memory, problem->compute) &&
	       lth_t_is(dims, p->x_stride[p->source_axis], 1);
}

/* One block: rows of x at `target` .. + lanes, each along the source axis from `source` on. Rows that do not exist
 * repeat the last one. */
static void turn_block(struct lth_emit *emit, const struct lth_problem *problem, unsigned lanes, lth_lv x,
		       lth_lv *index, lth_lv source_extent, lth_lv target_extent, lth_lv row_step)
{
	const struct lth_transpose *p = &problem->transpose;
	struct lth_loop_fn *fn = emit->fn;
	lth_lv source = index[p->source_axis], target = index[p->target_axis], vectors[LTH_MAX_LANES];
	lth_lv last = t_sub(fn, target_extent, lth_loop_i64(fn, 1));
	lth_lv mask = lth_loop_mask(fn, t_sub(fn, source_extent, source), lanes);
	for (unsigned i = 0; i < lanes; i++) {
		lth_lv row = t_min(fn, t_add_const(fn, target, i), last);
		lth_lv place = lth_loop_offset(fn, x, t_add(fn, t_mul(fn, row, row_step), source), p->x.memory);
		vectors[i] = lth_loop_load(fn, place, p->x.memory, lanes, mask);
	}
	lth_t_transpose(fn, vectors, lanes);
	mask = lth_loop_mask(fn, t_sub(fn, target_extent, target), lanes);
	for (unsigned i = 0; i < lanes; i++) {
		index[p->source_axis] = t_add_const(fn, source, i);
		lth_loop_if(fn, t_lt(fn, index[p->source_axis], source_extent));
		emit->epilogue->apply(emit->epilogue->context, 0, index, p->target_axis, vectors[i], lanes, mask);
		lth_loop_end_if(fn, NULL, 0, NULL);
	}
	index[p->source_axis] = source;
}

/* A unit is a block of the source axis at one position of the other axes; the target axis is the inner loop. */
void lth_transpose_emit(struct lth_emit *emit, const struct lth_problem *problem, const struct lth_template_plan *plan)
{
	const struct lth_transpose *p = &problem->transpose;
	struct lth_dims *dims = emit->dims;
	struct lth_loop_fn *fn = emit->fn;
	unsigned lanes = lth_machine_lanes(emit->machine, problem->compute);
	lth_lv extents[LTH_MAX_TEMPLATE_AXES], steps[LTH_MAX_TEMPLATE_AXES], index[LTH_MAX_TEMPLATE_AXES];
	lth_lv source_extent = lth_t_param(emit, p->extent[p->source_axis]);
	lth_lv target_extent = lth_t_param(emit, p->extent[p->target_axis]);
	lth_dim units = lth_dim_const(dims, 1);
	(void)plan;
	for (uint32_t axis = 0; axis < p->num_axes; axis++) {
		lth_dim extent = p->extent[axis];
		if (axis == p->source_axis)
			extent = lth_dim_ceildiv(dims, extent, lth_dim_const(dims, lanes));
		if (axis == p->target_axis)
			extent = lth_dim_const(dims, 1);
		extents[axis] = lth_t_stride(emit, extent);
		steps[axis] = lth_t_stride(emit, p->x_stride[axis]);
		units = lth_dim_mul(dims, units, extent);
	}
	lth_lv unit = lth_loop_for(fn, lth_loop_begin(fn), lth_loop_end(fn), 1, NULL, 0, NULL);
	lth_t_unflatten(fn, unit, extents, p->num_axes, index);
	index[p->source_axis] = t_mul_const(fn, index[p->source_axis], lanes);
	lth_lv x = p->x.pointer;
	for (uint32_t axis = 0; axis < p->num_axes; axis++)
		if (axis != p->source_axis && axis != p->target_axis)
			x = lth_loop_offset(fn, x, t_mul(fn, index[axis], steps[axis]), p->x.memory);
	index[p->target_axis] = lth_loop_for(fn, lth_loop_i64(fn, 0), target_extent, lanes, NULL, 0, NULL);
	turn_block(emit, problem, lanes, x, index, source_extent, target_extent, steps[p->target_axis]);
	lth_loop_end_for(fn, NULL, 0, NULL);
	lth_loop_end_for(fn, NULL, 0, NULL);
	emit->units = units;
	emit->min_units = lth_t_min_units(dims,
					  lth_dim_mul(dims, p->extent[p->target_axis], lth_dim_const(dims, 4 * lanes)));
}
