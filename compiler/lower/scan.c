/* The schedule of running reductions: along the axis one loop that carries the sum so far. Where another axis is
 * contiguous in memory, vectors run along that, several at once; else rows go element by element. */
#include "compiler/lower/lower_group.h"

#include "compiler/ops/op.h"

#include <string.h>

enum { VECTORS = 8 }; /* a strip of rows wide enough for whole cache lines to be used at once */

struct scan {
	struct lth_lower *lower;
	struct lth_emitter emitter;
	const struct lth_reduction *form;
	struct lth_nest rows;                 /* all axes but the one that is run along, in memory order */
	struct lth_root roots[LTH_MAX_ROOTS]; /* the term, then value and address of each output */
	uint32_t operands[LTH_MAX_ROOTS / 2];
	uint32_t num_outputs;
	lth_dim extent;
	unsigned lanes; /* along the last row axis; 1: the axis run along is the contiguous one */
};

static void hoist_roots(struct scan *scan)
{
	for (uint32_t k = 0; k < 1 + 2 * scan->num_outputs; k++)
		lth_emit_hoist(&scan->emitter, scan->roots[k].x);
}

static void store_outputs(struct scan *scan)
{
	struct lth_lower *lower = scan->lower;
	lth_lv values[LTH_MAX_ROOTS / 2];
	for (uint32_t k = 0; k < scan->num_outputs; k++)
		values[k] = lth_emit(&scan->emitter, scan->roots[1 + 2 * k].x);
	for (uint32_t k = 0; k < scan->num_outputs; k++)
		lth_emit_store(&scan->emitter, scan->operands[k],
			       lower->graph->values[lower->group->outputs[k]].type.dtype, scan->roots[2 + 2 * k].x,
			       values[k]);
}

/* One row, or one vector of rows, from its first term to its last. */
static void run(void *context)
{
	struct scan *scan = context;
	struct lth_emitter *emitter = &scan->emitter;
	struct lth_loop_fn *fn = emitter->fn;
	enum lth_combiner combiner = scan->form->stages[0].combiner;
	enum lth_dtype dtype = scan->form->stages[0].dtype;
	lth_lv start = lth_combine_neutral(fn, combiner, dtype), before, after;
	lth_lv count = lth_lower_dim(scan->lower, scan->extent);
	if (emitter->lanes > 1)
		start = lth_loop_splat(fn, start, emitter->lanes);
	hoist_roots(scan);
	uint32_t mark = lth_emitter_open(emitter);
	lth_lv index = lth_loop_for(fn, lth_loop_i64(fn, 0), count, 1, &start, 1, &before);
	if (scan->form->scan_reverse)
		index = lth_loop_op2(fn, LTH_SCALAR_SUB, lth_loop_op2(fn, LTH_SCALAR_SUB, count, lth_loop_i64(fn, 1)),
				     index);
	lth_emit_set_axis(emitter, scan->form->scan_axis, index);
	after = lth_loop_op2(fn, lth_combine_op(combiner, dtype), before, lth_emit(emitter, scan->roots[0].x));
	emitter->stages[0] = scan->form->scan_exclusive ? before : after;
	emitter->num_stages = 1;
	store_outputs(scan);
	emitter->num_stages = 0;
	emitter->stages[0] = LTH_LV_NONE;
	lth_loop_end_for(fn, &after, 1, &after);
	lth_emit_unset_axis(emitter, scan->form->scan_axis);
	lth_emitter_close(emitter, mark);
}

static void row_loops(struct scan *scan, uint32_t depth)
{
	struct lth_emitter *emitter = &scan->emitter;
	struct lth_nest *nest = &scan->rows;
	if (depth == nest->num_axes) {
		run(scan);
		return;
	}
	if (depth + 1 == nest->num_axes && scan->lanes > 1) {
		lth_emit_vector_loop(emitter, nest->axes[depth], nest->extents[depth], LTH_LV_NONE, LTH_LV_NONE,
				     scan->lanes, run, scan);
		return;
	}
	uint32_t mark = lth_emitter_open(emitter);
	lth_lv index = lth_loop_for(emitter->fn, lth_loop_i64(emitter->fn, 0),
				    lth_lower_dim(scan->lower, nest->extents[depth]), 1, NULL, 0, NULL);
	lth_emit_set_axis(emitter, nest->axes[depth], index);
	row_loops(scan, depth + 1);
	lth_loop_end_for(emitter->fn, NULL, 0, NULL);
	lth_emit_unset_axis(emitter, nest->axes[depth]);
	lth_emitter_close(emitter, mark);
}

/* Rows in memory order; whether the axis run along is the innermost of the output. */
static bool plan_rows(struct scan *scan, const struct lth_value *shape)
{
	struct lth_lower *lower = scan->lower;
	uint32_t innermost = scan->form->scan_axis;
	for (uint32_t i = 0, depth = 0; i < shape->type.rank; i++) {
		uint32_t axis = shape->layout ? shape->layout[i] : i;
		bool along = axis == scan->form->scan_axis;
		int64_t extent;
		lth_sx_set_axis(lower->pool, axis, shape->type.dims[axis], along ? shape->type.rank : depth++);
		if (lth_dim_is_const(lower->graph->dims, shape->type.dims[axis], &extent) && extent == 1)
			continue;
		innermost = axis;
		if (along)
			continue;
		scan->rows.axes[scan->rows.num_axes] = axis;
		scan->rows.extents[scan->rows.num_axes++] = shape->type.dims[axis];
	}
	scan->extent = shape->type.dims[scan->form->scan_axis];
	return innermost == scan->form->scan_axis;
}

static void build_roots(struct scan *scan, const struct lth_node *anchor, const struct lth_value *shape)
{
	struct lth_lower *lower = scan->lower;
	lth_sx index[LTH_MAX_RANK];
	for (uint32_t axis = 0; axis < shape->type.rank; axis++)
		index[axis] = lth_sx_axis(lower->pool, axis);
	lth_sx term = anchor->op->impl->stage(lower, anchor, 0, index);
	if (term == LTH_SX_NONE) {
		lth_lower_fail(lower, LTH_UNSUPPORTED, anchor, "this form of the operator");
		return;
	}
	scan->roots[0].x = lth_sx_cast(lower->pool, term, scan->form->stages[0].dtype);
	scan->num_outputs = lower->group->num_outputs;
	for (uint32_t k = 0; k < scan->num_outputs; k++) {
		lth_value_id output = lower->group->outputs[k];
		scan->roots[1 + 2 * k].x = lth_read(lower, output, index);
		scan->roots[2 + 2 * k].x = lth_lower_address(lower, output, index);
		scan->roots[2 + 2 * k].is_address = true;
	}
	for (uint32_t k = 0; k < scan->num_outputs; k++)
		scan->operands[k] = lth_lower_operand(lower, lower->group->outputs[k], true);
}

/* One row axis only, in vectors: units of one vector. */
static void flat_rows(struct scan *scan, int64_t work, struct lth_kernel_spec *out)
{
	enum { WORK_PER_TASK = 16384 };
	struct lth_loop_fn *fn = scan->emitter.fn;
	struct lth_dims *dims = scan->lower->graph->dims;
	lth_dim extent = scan->rows.extents[0];
	lth_lv width = lth_loop_i64(fn, scan->lanes), count = lth_lower_dim(scan->lower, extent);
	lth_lv begin = lth_loop_op2(fn, LTH_SCALAR_MUL, lth_loop_begin(fn), width);
	lth_lv end = lth_loop_op2(fn, LTH_SCALAR_MIN, lth_loop_op2(fn, LTH_SCALAR_MUL, lth_loop_end(fn), width), count);
	work *= scan->lanes;
	out->range = lth_dim_ceildiv(dims, extent, lth_dim_const(dims, (int64_t)scan->lanes));
	out->grain = (uint32_t)(work >= WORK_PER_TASK ? 1 : WORK_PER_TASK / work + 1);
	lth_emit_vector_loop(&scan->emitter, scan->rows.axes[0], extent, begin, end, scan->lanes, run, scan);
}

enum lth_code lth_lower_scan(struct lth_lower *lower, const struct lth_node *anchor, const struct lth_reduction *form,
			     struct lth_kernel_spec *out)
{
	struct scan scan = {.lower = lower, .form = form, .lanes = 1};
	struct lth_value shape = lower->graph->values[anchor->outputs[0]];
	if (lower->group->num_outputs * 2 + 1 > LTH_MAX_ROOTS)
		return lth_lower_fail(lower, LTH_LIMIT_EXCEEDED, anchor, "a group with too many outputs");
	lth_emitter_init(&scan.emitter, lower);
	bool contiguous = plan_rows(&scan, &shape);
	build_roots(&scan, anchor, &shape);
	if (lower->code != LTH_OK || !lth_arena_ok(lower->arena))
		return lower->code;
	lth_nest_merge(lower, &scan.rows, scan.roots, 1 + 2 * scan.num_outputs);
	uint32_t available = scan.rows.num_axes;
	int64_t work = lth_nest_hint(lower, scan.extent);
	if (!contiguous && available > 0) {
		lth_dim last = scan.rows.extents[--available];
		unsigned bits = lth_dtype_bits(form->stages[0].dtype);
		scan.lanes = lth_choose_lanes(lower, last, bits);
		for (unsigned k = 1; k < VECTORS && lth_nest_hint(lower, last) >= 2 * (int64_t)scan.lanes; k *= 2)
			scan.lanes *= 2;
		if (available == 0 && scan.lanes > 1) {
			flat_rows(&scan, work, out);
			return lower->code;
		}
		work *= lth_nest_hint(lower, last);
	}
	struct lth_parallel parallel;
	lth_parallel_begin(&scan.emitter, &scan.rows, available, work, &parallel, out);
	row_loops(&scan, parallel.num_parallel);
	lth_parallel_end(&scan.emitter, &scan.rows, &parallel);
	return lower->code;
}
