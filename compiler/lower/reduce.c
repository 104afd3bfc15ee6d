/* The schedule of groups around a reduction: for each row the stages, then the elements that use their results. Vectors
 * run either along the row axis whose neighbours are neighbours in memory (each lane its own row), or along the innermost
 * reduction axis, with several accumulators combined at the end. Order of combination is fixed by shape and vector width
 * alone, so results do not depend on threads. */
#include "compiler/lower/lower_group.h"

#include "compiler/ops/op.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* A float that thousands of terms are added to one after the other loses a digit: sums of many are summed by blocks. */
enum { MAX_ACCUMULATORS = 4, BLOCK_TURNS = 128 };

struct reduce {
	struct lth_lower *lower;
	struct lth_emitter emitter;
	const struct lth_node *anchor;
	struct lth_reduction form;
	uint32_t rank;
	struct lth_nest rows, terms, elements;
	struct lth_root roots[LTH_MAX_ROOTS]; /* stages first, then value and address of each output */
	uint32_t num_outputs;
	uint32_t operands[LTH_MAX_ROOTS / 2];
	bool once[LTH_MAX_ROOTS / 2]; /* the output is written once a row */
	/* The element needs the terms of stage `kept` again (Softmax): they are stored to output 0 where the stage makes
	 * them, at `kept_address`, and read back. LTH_NONE: none. */
	uint32_t kept;
	lth_sx kept_address;
	bool vector_rows;
	unsigned lanes, element_lanes;
};

static bool is_arg(enum lth_combiner combiner)
{
	return combiner >= LTH_COMBINE_ARGMIN_FIRST;
}

static bool is_float(enum lth_dtype dtype)
{
	return dtype == LTH_DTYPE_F32 || dtype == LTH_DTYPE_F64;
}

static bool takes_least(enum lth_combiner combiner)
{
	return combiner == LTH_COMBINE_MIN || combiner == LTH_COMBINE_ARGMIN_FIRST ||
	       combiner == LTH_COMBINE_ARGMIN_LAST;
}

/* The value that changes nothing when combined. */
lth_lv lth_combine_neutral(struct lth_loop_fn *fn, enum lth_combiner combiner, enum lth_dtype dtype)
{
	if (combiner == LTH_COMBINE_SUM || combiner == LTH_COMBINE_PROD) {
		int64_t unit = combiner == LTH_COMBINE_PROD;
		return is_float(dtype) ? lth_loop_const_f(fn, dtype, (double)unit) : lth_loop_const_i(fn, dtype, unit);
	}
	bool least = takes_least(combiner);
	if (is_float(dtype))
		return lth_loop_const_f(fn, dtype, least ? INFINITY : -INFINITY);
	unsigned bits = lth_dtype_bits(dtype);
	if (dtype == LTH_DTYPE_BOOL)
		return lth_loop_const_i(fn, dtype, least);
	if (lth_dtype_class(dtype) == LTH_CLASS_UINT)
		return lth_loop_const_i(fn, dtype, !least ? 0 : bits == 64 ? -1 : (int64_t)((1ull << bits) - 1));
	int64_t top = (int64_t)(~0ull >> (65 - bits));
	return lth_loop_const_i(fn, dtype, least ? top : -top - 1);
}

enum lth_scalar_op lth_combine_op(enum lth_combiner combiner, enum lth_dtype dtype)
{
	switch (combiner) {
	case LTH_COMBINE_SUM:
		return dtype == LTH_DTYPE_BOOL ? LTH_SCALAR_OR : LTH_SCALAR_ADD;
	case LTH_COMBINE_PROD:
		return dtype == LTH_DTYPE_BOOL ? LTH_SCALAR_AND : LTH_SCALAR_MUL;
	case LTH_COMBINE_MIN:
		return dtype == LTH_DTYPE_BOOL ? LTH_SCALAR_AND : LTH_SCALAR_MIN;
	default:
		return dtype == LTH_DTYPE_BOOL ? LTH_SCALAR_OR : LTH_SCALAR_MAX;
	}
}


/* Accumulators of one stage: a value each, and for ARG combiners the place beside it. */
struct accumulators {
	struct reduce *reduce;
	uint32_t stage;
	enum lth_combiner combiner;
	enum lth_dtype dtype;
	unsigned width; /* 1, or 2 with the place */
	lth_lv state[2 * MAX_ACCUMULATORS];
};

/* Row-major place of the current term. */
static lth_lv place(struct reduce *reduce)
{
	struct lth_loop_fn *fn = reduce->lower->fn;
	lth_lv flat = lth_loop_i64(fn, 0);
	for (uint32_t i = 0; i < reduce->terms.num_axes; i++) {
		flat = lth_loop_op2(fn, LTH_SCALAR_MUL, flat, lth_lower_dim(reduce->lower, reduce->terms.extents[i]));
		flat = lth_loop_op2(fn, LTH_SCALAR_ADD, flat, reduce->emitter.axes[reduce->terms.axes[i]]);
	}
	if (!reduce->vector_rows && reduce->emitter.lanes > 1)
		return lth_loop_ramp(fn, flat, reduce->emitter.lanes);
	return flat;
}

/* Combines the current term into accumulator `slot`; `mask` hides lanes behind the end. */
static void combine(struct accumulators *acc, unsigned slot, lth_lv mask)
{
	struct reduce *reduce = acc->reduce;
	struct lth_loop_fn *fn = reduce->lower->fn;
	lth_lv *state = &acc->state[slot * acc->width];
	lth_lv term = lth_emit(&reduce->emitter, reduce->roots[acc->stage].x);
	if (acc->stage == reduce->kept)
		lth_emit_store(&reduce->emitter, reduce->operands[0], acc->dtype, reduce->kept_address, term);
	if (!is_arg(acc->combiner)) {
		if (mask != LTH_LV_NONE)
			term = lth_loop_op3(fn, LTH_SCALAR_SELECT, mask, term,
					    lth_combine_neutral(fn, acc->combiner, acc->dtype));
		state[0] = lth_loop_op2(fn, lth_combine_op(acc->combiner, acc->dtype), state[0], term);
		return;
	}
	bool last = acc->combiner == LTH_COMBINE_ARGMIN_LAST || acc->combiner == LTH_COMBINE_ARGMAX_LAST;
	lth_lv less = takes_least(acc->combiner) ? term : state[0], more = takes_least(acc->combiner) ? state[0] : term;
	lth_lv better = lth_loop_op2(fn, last ? LTH_SCALAR_LE : LTH_SCALAR_LT, less, more);
	if (is_float(acc->dtype)) {
		lth_lv nan = lth_loop_op1(fn, LTH_SCALAR_ISNAN, term);
		if (!last)
			nan = lth_loop_op2(fn, LTH_SCALAR_AND, nan,
					   lth_loop_op1(fn, LTH_SCALAR_NOT,
							lth_loop_op1(fn, LTH_SCALAR_ISNAN, state[0])));
		better = lth_loop_op2(fn, LTH_SCALAR_OR, better, nan);
	}
	if (mask != LTH_LV_NONE)
		better = lth_loop_op2(fn, LTH_SCALAR_AND, better, mask);
	state[0] = lth_loop_op3(fn, LTH_SCALAR_SELECT, better, term, state[0]);
	state[1] = lth_loop_op3(fn, LTH_SCALAR_SELECT, better, place(reduce), state[1]);
}

/* for (axis = begin; axis < end; axis += step * slots) with `slots` accumulators. */
static void plain_loop(struct accumulators *acc, uint32_t axis, lth_lv begin, lth_lv end, int64_t step, unsigned slots)
{
	struct lth_emitter *emitter = &acc->reduce->emitter;
	struct lth_loop_fn *fn = emitter->fn;
	lth_lv phis[2 * MAX_ACCUMULATORS], all[2 * MAX_ACCUMULATORS];
	uint32_t count = slots * acc->width, mark = lth_emitter_open(emitter);
	memcpy(all, acc->state, sizeof(all));
	lth_lv index = lth_loop_for(fn, begin, end, step * (int64_t)slots, all, count, phis);
	memcpy(acc->state, phis, count * sizeof(phis[0]));
	for (unsigned slot = 0; slot < slots; slot++) {
		uint32_t inner = lth_emitter_open(emitter);
		lth_emit_set_axis(emitter, axis,
				  lth_loop_op2(fn, LTH_SCALAR_ADD, index, lth_loop_i64(fn, step * (int64_t)slot)));
		combine(acc, slot, LTH_LV_NONE);
		lth_emitter_close(emitter, inner);
	}
	lth_loop_end_for(fn, acc->state, count, phis);
	memcpy(acc->state, phis, count * sizeof(phis[0]));
	lth_emit_unset_axis(emitter, axis);
	lth_emitter_close(emitter, mark);
}

static lth_lv neutral(const struct accumulators *acc)
{
	struct lth_emitter *emitter = &acc->reduce->emitter;
	lth_lv value = lth_combine_neutral(emitter->fn, acc->combiner, acc->dtype);
	return emitter->lanes > 1 ? lth_loop_splat(emitter->fn, value, emitter->lanes) : value;
}

/* The same; of floats, `extent` in all, blocks of terms are summed on their own before they are added up. */
static void term_loop(struct accumulators *acc, uint32_t axis, lth_dim extent, lth_lv begin, lth_lv end, int64_t step,
		      unsigned slots)
{
	struct lth_loop_fn *fn = acc->reduce->emitter.fn;
	lth_lv totals[MAX_ACCUMULATORS], results[MAX_ACCUMULATORS];
	int64_t block = step * (int64_t)slots * BLOCK_TURNS;
	if (acc->combiner != LTH_COMBINE_SUM || !is_float(acc->dtype) ||
	    lth_nest_hint(acc->reduce->lower, extent) < 2 * block) {
		plain_loop(acc, axis, begin, end, step, slots);
		return;
	}
	lth_lv start = lth_loop_for(fn, begin, end, block, acc->state, slots, totals);
	lth_lv stop = lth_loop_op2(fn, LTH_SCALAR_ADD, start, lth_loop_i64(fn, block));
	for (unsigned slot = 0; slot < slots; slot++)
		acc->state[slot] = neutral(acc);
	plain_loop(acc, axis, start, lth_loop_op2(fn, LTH_SCALAR_MIN, stop, end), step, slots);
	for (unsigned slot = 0; slot < slots; slot++)
		totals[slot] = lth_loop_op2(fn, LTH_SCALAR_ADD, totals[slot], acc->state[slot]);
	lth_loop_end_for(fn, totals, slots, results);
	memcpy(acc->state, results, slots * sizeof(results[0]));
}

/* The lanes that do not fill a vector: one masked turn. */
static void term_tail(struct accumulators *acc, uint32_t axis, lth_lv at, lth_lv left)
{
	struct lth_emitter *emitter = &acc->reduce->emitter;
	struct lth_loop_fn *fn = emitter->fn;
	lth_lv before[2], after[2];
	uint32_t mark = lth_emitter_open(emitter);
	memcpy(before, acc->state, sizeof(before));
	lth_loop_if(fn, lth_loop_op2(fn, LTH_SCALAR_LT, lth_loop_i64(fn, 0), left));
	emitter->mask = lth_loop_mask(fn, left, emitter->lanes);
	lth_emit_set_axis(emitter, axis, at);
	combine(acc, 0, emitter->mask);
	emitter->mask = LTH_LV_NONE;
	lth_loop_else(fn, acc->state, acc->width);
	lth_loop_end_if(fn, before, acc->width, after);
	memcpy(acc->state, after, acc->width * sizeof(after[0]));
	lth_emit_unset_axis(emitter, axis);
	lth_emitter_close(emitter, mark);
}

static unsigned slots_for(struct reduce *reduce, lth_dim extent, unsigned lanes)
{
	return lth_nest_hint(reduce->lower, extent) >= 2 * MAX_ACCUMULATORS * (int64_t)lanes ? MAX_ACCUMULATORS : 1;
}

/* Loops over the reduction axes from `depth` on. */
static void term_loops(struct accumulators *acc, uint32_t depth, unsigned slots)
{
	struct reduce *reduce = acc->reduce;
	struct lth_emitter *emitter = &reduce->emitter;
	struct lth_loop_fn *fn = emitter->fn;
	lth_emit_hoist(emitter, reduce->roots[acc->stage].x);
	if (reduce->terms.num_axes == 0) {
		combine(acc, 0, LTH_LV_NONE);
		return;
	}
	uint32_t axis = reduce->terms.axes[depth];
	lth_lv zero = lth_loop_i64(fn, 0), end = lth_lower_dim(reduce->lower, reduce->terms.extents[depth]);
	if (depth + 1 < reduce->terms.num_axes) {
		lth_lv phis[2 * MAX_ACCUMULATORS];
		uint32_t count = slots * acc->width, mark = lth_emitter_open(emitter);
		lth_lv index = lth_loop_for(fn, zero, end, 1, acc->state, count, phis);
		memcpy(acc->state, phis, count * sizeof(phis[0]));
		lth_emit_set_axis(emitter, axis, index);
		term_loops(acc, depth + 1, slots);
		lth_loop_end_for(fn, acc->state, count, phis);
		memcpy(acc->state, phis, count * sizeof(phis[0]));
		lth_emit_unset_axis(emitter, axis);
		lth_emitter_close(emitter, mark);
		return;
	}
	int64_t step = reduce->vector_rows ? 1 : (int64_t)emitter->lanes;
	lth_lv left = lth_loop_op2(fn, LTH_SCALAR_MOD, end, lth_loop_i64(fn, step));
	lth_lv whole = lth_loop_op2(fn, LTH_SCALAR_SUB, end, left), at = zero;
	if (slots > 1) {
		lth_lv rest = lth_loop_op2(fn, LTH_SCALAR_MOD, end, lth_loop_i64(fn, step * (int64_t)slots));
		lth_lv middle = lth_loop_op2(fn, LTH_SCALAR_SUB, end, rest);
		term_loop(acc, axis, reduce->terms.extents[depth], zero, middle, step, slots);
		at = middle;
	}
	if (slots > 1)
		plain_loop(acc, axis, at, whole, step, 1);
	else
		term_loop(acc, axis, reduce->terms.extents[depth], at, whole, step, 1);
	if (step > 1)
		term_tail(acc, axis, whole, left);
}

/* The place of the best lane of a finished ARG accumulator: of equal lanes the first place or the last. */
static lth_lv best_place(struct accumulators *acc)
{
	struct lth_loop_fn *fn = acc->reduce->lower->fn;
	bool last = acc->combiner == LTH_COMBINE_ARGMIN_LAST || acc->combiner == LTH_COMBINE_ARGMAX_LAST;
	enum lth_scalar_op op = takes_least(acc->combiner) ? LTH_SCALAR_MIN : LTH_SCALAR_MAX;
	lth_lv value = acc->state[0], chosen, nan = LTH_LV_NONE;
	if (is_float(acc->dtype)) {
		nan = lth_loop_op1(fn, LTH_SCALAR_ISNAN, value);
		value = lth_loop_op3(fn, LTH_SCALAR_SELECT, nan, lth_combine_neutral(fn, acc->combiner, acc->dtype), value);
	}
	chosen = lth_loop_op2(fn, LTH_SCALAR_EQ, value, lth_loop_reduce(fn, op, value));
	if (nan != LTH_LV_NONE)
		chosen = lth_loop_op3(fn, LTH_SCALAR_SELECT, lth_loop_reduce(fn, LTH_SCALAR_OR, nan), nan, chosen);
	lth_lv outside = lth_loop_i64(fn, last ? -1 : INT64_MAX);
	lth_lv places = lth_loop_op3(fn, LTH_SCALAR_SELECT, chosen, acc->state[1], outside);
	return lth_loop_reduce(fn, last ? LTH_SCALAR_MAX : LTH_SCALAR_MIN, places);
}

static void run_stage(struct reduce *reduce, uint32_t stage)
{
	struct lth_emitter *emitter = &reduce->emitter;
	struct lth_loop_fn *fn = emitter->fn;
	struct accumulators acc = {.reduce = reduce,
				   .stage = stage,
				   .combiner = reduce->form.stages[stage].combiner,
				   .dtype = reduce->form.stages[stage].dtype};
	acc.width = is_arg(acc.combiner) ? 2 : 1;
	if (!reduce->vector_rows) {
		emitter->lanes = reduce->lanes;
		emitter->vector_axis = emitter->lanes > 1 ? reduce->terms.axes[reduce->terms.num_axes - 1] : LTH_NONE;
	}
	unsigned lanes = emitter->lanes;
	uint32_t terms = reduce->terms.num_axes;
	bool wide = reduce->vector_rows && lanes * lth_dtype_bits(acc.dtype) > 8 * reduce->lower->target->vector_bytes;
	unsigned slots = terms && !is_arg(acc.combiner) && !wide
				 ? slots_for(reduce, reduce->terms.extents[terms - 1], reduce->vector_rows ? 1 : lanes)
				 : 1;
	for (unsigned slot = 0; slot < slots; slot++) {
		acc.state[slot * acc.width] = neutral(&acc);
		if (acc.width > 1) {
			lth_lv none = lth_loop_i64(fn, 0);
			acc.state[slot * acc.width + 1] = lanes > 1 ? lth_loop_splat(fn, none, lanes) : none;
		}
	}
	uint32_t mark = lth_emitter_open(emitter);
	term_loops(&acc, 0, slots);
	lth_emitter_close(emitter, mark);
	enum lth_scalar_op op = lth_combine_op(acc.combiner, acc.dtype);
	lth_lv result = acc.state[is_arg(acc.combiner) ? 1 : 0];
	for (unsigned slot = 1; slot < slots; slot++)
		result = lth_loop_op2(fn, op, result, acc.state[slot * acc.width]);
	if (!reduce->vector_rows && lanes > 1)
		result = is_arg(acc.combiner) ? best_place(&acc) : lth_loop_reduce(fn, op, result);
	if (!reduce->vector_rows) {
		emitter->lanes = 1;
		emitter->vector_axis = LTH_NONE;
	}
	emitter->stages[stage] = result;
	emitter->num_stages = stage + 1;
}

static void store_outputs(struct reduce *reduce, bool once)
{
	uint32_t stages = reduce->form.num_stages;
	lth_lv values[LTH_MAX_ROOTS / 2];
	for (uint32_t k = 0; k < reduce->num_outputs; k++)
		if (reduce->once[k] == once)
			values[k] = lth_emit(&reduce->emitter, reduce->roots[stages + 2 * k].x);
	for (uint32_t k = 0; k < reduce->num_outputs; k++)
		if (reduce->once[k] == once)
			lth_emit_store(&reduce->emitter, reduce->operands[k],
				       reduce->lower->graph->values[reduce->lower->group->outputs[k]].type.dtype,
				       reduce->roots[stages + 2 * k + 1].x, values[k]);
}

static void element_body(void *context)
{
	store_outputs(context, false);
}

static void hoist_outputs(struct reduce *reduce)
{
	for (uint32_t k = 0; k < 2 * reduce->num_outputs; k++)
		if (!reduce->once[k / 2])
			lth_emit_hoist(&reduce->emitter, reduce->roots[reduce->form.num_stages + k].x);
}

static void element_loops(struct reduce *reduce, uint32_t depth)
{
	struct lth_emitter *emitter = &reduce->emitter;
	struct lth_nest *nest = &reduce->elements;
	if (nest->num_axes == 0) {
		store_outputs(reduce, false);
		return;
	}
	uint32_t axis = nest->axes[depth];
	bool last = depth + 1 == nest->num_axes;
	if (last && !reduce->vector_rows) {
		emitter->lanes = reduce->element_lanes;
		emitter->vector_axis = emitter->lanes > 1 ? axis : LTH_NONE;
		hoist_outputs(reduce);
		lth_emit_vector_loop(emitter, axis, nest->extents[depth], LTH_LV_NONE, LTH_LV_NONE,
				     reduce->element_lanes, element_body, reduce);
		return;
	}
	hoist_outputs(reduce);
	uint32_t mark = lth_emitter_open(emitter);
	lth_lv index = lth_loop_for(emitter->fn, lth_loop_i64(emitter->fn, 0),
				    lth_lower_dim(reduce->lower, nest->extents[depth]), 1, NULL, 0, NULL);
	lth_emit_set_axis(emitter, axis, index);
	if (last)
		store_outputs(reduce, false);
	else
		element_loops(reduce, depth + 1);
	lth_loop_end_for(emitter->fn, NULL, 0, NULL);
	lth_emit_unset_axis(emitter, axis);
	lth_emitter_close(emitter, mark);
}

/* One row, or one vector of rows. */
static void row_body(void *context)
{
	struct reduce *reduce = context;
	struct lth_emitter *emitter = &reduce->emitter;
	uint32_t mark = lth_emitter_open(emitter);
	emitter->num_stages = 0;
	for (uint32_t stage = 0; stage < reduce->form.num_stages; stage++)
		run_stage(reduce, stage);
	store_outputs(reduce, true);
	element_loops(reduce, 0);
	emitter->num_stages = 0;
	for (uint32_t stage = 0; stage < reduce->form.num_stages; stage++)
		emitter->stages[stage] = LTH_LV_NONE;
	lth_emitter_close(emitter, mark);
}

static void row_loops(struct reduce *reduce, uint32_t depth)
{
	struct lth_emitter *emitter = &reduce->emitter;
	struct lth_nest *nest = &reduce->rows;
	if (depth == nest->num_axes) {
		row_body(reduce);
		return;
	}
	uint32_t axis = nest->axes[depth];
	if (depth + 1 == nest->num_axes && reduce->vector_rows) {
		lth_emit_vector_loop(emitter, axis, nest->extents[depth], LTH_LV_NONE, LTH_LV_NONE, reduce->lanes,
				     row_body, reduce);
		return;
	}
	uint32_t mark = lth_emitter_open(emitter);
	lth_lv index = lth_loop_for(emitter->fn, lth_loop_i64(emitter->fn, 0),
				    lth_lower_dim(reduce->lower, nest->extents[depth]), 1, NULL, 0, NULL);
	lth_emit_set_axis(emitter, axis, index);
	row_loops(reduce, depth + 1);
	lth_loop_end_for(emitter->fn, NULL, 0, NULL);
	lth_emit_unset_axis(emitter, axis);
	lth_emitter_close(emitter, mark);
}

/* The nests: rows and elements from output 0 in memory order, terms from the reduction's own axes. */
static void plan_nests(struct reduce *reduce, const struct lth_value *shape)
{
	struct lth_lower *lower = reduce->lower;
	uint32_t depth = 0;
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < reduce->rank; i++) {
			uint32_t axis = shape->layout ? shape->layout[i] : i;
			bool row = reduce->form.row_axes & (1u << axis);
			struct lth_nest *nest = row ? &reduce->rows : &reduce->elements;
			int64_t extent;
			if (row != (pass == 0))
				continue;
			lth_sx_set_axis(lower->pool, axis, shape->type.dims[axis], depth++);
			if (lth_dim_is_const(lower->graph->dims, shape->type.dims[axis], &extent) && extent == 1)
				continue;
			nest->axes[nest->num_axes] = axis;
			nest->extents[nest->num_axes++] = shape->type.dims[axis];
		}
	for (uint32_t i = 0; i < reduce->form.num_axes; i++) {
		int64_t extent;
		lth_sx_set_axis(lower->pool, reduce->rank + i, reduce->form.extents[i], depth++);
		if (lth_dim_is_const(lower->graph->dims, reduce->form.extents[i], &extent) && extent == 1)
			continue;
		reduce->terms.axes[reduce->terms.num_axes] = reduce->rank + i;
		reduce->terms.extents[reduce->terms.num_axes++] = reduce->form.extents[i];
	}
}

/* Is the output's extent 1 at each axis that is not a row axis while output 0's is not? */
static bool once_a_row(struct reduce *reduce, lth_value_id output, const struct lth_value *shape)
{
	struct lth_graph *graph = reduce->lower->graph;
	bool differs = false;
	for (uint32_t axis = 0; axis < reduce->rank; axis++)
		differs |= graph->values[output].type.dims[axis] != shape->type.dims[axis];
	return differs;
}

static void build_roots(struct reduce *reduce, const struct lth_value *shape)
{
	struct lth_lower *lower = reduce->lower;
	lth_sx index[LTH_MAX_AXES];
	uint32_t stages = reduce->form.num_stages;
	for (uint32_t axis = 0; axis < reduce->rank; axis++)
		index[axis] = reduce->form.row_axes & (1u << axis) ? lth_sx_axis(lower->pool, axis) : LTH_SX_NONE;
	for (uint32_t i = 0; i < reduce->form.num_axes; i++)
		index[reduce->rank + i] = lth_sx_axis(lower->pool, reduce->rank + i);
	for (uint32_t stage = 0; stage < stages; stage++) {
		lth_sx x = reduce->anchor->op->impl->stage(lower, reduce->anchor, stage, index);
		reduce->roots[stage].x = x == LTH_SX_NONE
						 ? x
						 : lth_sx_cast(lower->pool, x, reduce->form.stages[stage].dtype);
		if (x == LTH_SX_NONE)
			lth_lower_fail(lower, LTH_UNSUPPORTED, reduce->anchor, "this form of the operator");
	}
	reduce->num_outputs = lower->group->num_outputs;
	for (uint32_t k = 0; k < reduce->num_outputs; k++) {
		lth_value_id output = lower->group->outputs[k];
		reduce->once[k] = once_a_row(reduce, output, shape);
		for (uint32_t axis = 0; axis < reduce->rank; axis++)
			index[axis] = reduce->once[k] && !(reduce->form.row_axes & (1u << axis))
					      ? lth_sx_int(lower->pool, 0)
					      : lth_sx_axis(lower->pool, axis);
		struct lth_root *root = &reduce->roots[stages + 2 * k];
		root[0].x = lth_read(lower, output, index);
		root[1].x = lth_lower_address(lower, output, index);
		root[1].is_address = true;
	}
	for (uint32_t k = 0; k < reduce->num_outputs; k++)
		reduce->operands[k] = lth_lower_operand(lower, lower->group->outputs[k], true);
}

/* Does x compute a function that is dear enough to be stored rather than computed twice? */
static bool finds_dear(const struct lth_sx_pool *pool, lth_sx x, bool *seen)
{
	const struct lth_sx_node *node = lth_sx_get(pool, x);
	if (seen[x] || node->kind != LTH_SX_OP || node->dtype == LTH_DTYPE_I64)
		return false;
	if (node->op >= LTH_SCALAR_EXP && node->op < LTH_NUM_SCALARS)
		return true;
	seen[x] = true;
	for (unsigned k = 0; k < lth_scalar_arity(node->op); k++)
		if (finds_dear(pool, node->operands[k], seen))
			return true;
	return false;
}

static bool is_dear(const struct lth_lower *lower, lth_sx x)
{
	bool *seen = lth_arena_array(lower->arena, (size_t)x + 1, sizeof(*seen)); /* operands come before */
	return seen && finds_dear(lower->pool, x, seen);
}

/* Looks for a stage whose terms the only output's element repeats, along the one axis that both run over. */
static void plan_kept(struct reduce *reduce)
{
	struct lth_lower *lower = reduce->lower;
	struct lth_sx_pool *pool = lower->pool;
	uint32_t stages = reduce->form.num_stages;
	struct lth_root *value = &reduce->roots[stages];
	if (reduce->num_outputs != 1 || reduce->once[0] || reduce->form.num_axes != 1 || reduce->terms.num_axes != 1 ||
	    reduce->elements.num_axes != 1 || reduce->elements.extents[0] != reduce->terms.extents[0])
		return;
	enum lth_dtype memory = lower->graph->values[lower->group->outputs[0]].type.dtype;
	uint32_t term_axis = reduce->terms.axes[0], element_axis = reduce->elements.axes[0];
	lth_sx to_element[LTH_MAX_AXES], to_term[LTH_MAX_AXES];
	memset(to_element, 0xff, sizeof(to_element));
	memset(to_term, 0xff, sizeof(to_term));
	to_element[term_axis] = lth_sx_axis(pool, element_axis);
	to_term[element_axis] = lth_sx_axis(pool, term_axis);
	for (uint32_t stage = stages; stage-- > 0;) {
		if (reduce->form.stages[stage].dtype != memory || !is_float(memory) ||
		    !is_dear(reduce->lower, reduce->roots[stage].x))
			continue;
		lth_sx term = lth_sx_substitute(pool, reduce->roots[stage].x, to_element, LTH_MAX_AXES);
		lth_sx again = lth_sx_load(pool, reduce->operands[0], memory, value[1].x);
		lth_sx replaced = lth_sx_replace(pool, value->x, term, again);
		if (replaced == value->x || replaced == LTH_SX_NONE)
			continue;
		value->x = replaced;
		reduce->kept = stage;
		value[2] = (struct lth_root){lth_sx_substitute(pool, value[1].x, to_term, LTH_MAX_AXES), true};
		return;
	}
}

/* Rows in vectors of several registers, so that whole runs of cache lines are used at once; where registers allow. */
static void widen_rows(struct reduce *reduce, lth_dim extent)
{
	unsigned times = 8;
	for (uint32_t stage = 0; stage < reduce->form.num_stages; stage++)
		if (is_dear(reduce->lower, reduce->roots[stage].x))
			times = 1;
		else if (is_arg(reduce->form.stages[stage].combiner))
			times = times > 2 ? 2 : times;
	for (unsigned k = 1; k < times && lth_nest_hint(reduce->lower, extent) >= 2 * (int64_t)reduce->lanes; k *= 2)
		reduce->lanes *= 2;
}

/* Along which axis vectors run. */
static void choose_vectors(struct reduce *reduce)
{
	struct lth_lower *lower = reduce->lower;
	uint32_t stages = reduce->form.num_stages, unit, irregular;
	int64_t row_score = INT64_MIN, term_score = INT64_MIN;
	unsigned bits = 8;
	for (uint32_t i = 0; i < stages; i++) {
		unsigned own = lth_dtype_bits(reduce->form.stages[i].dtype);
		bits = own > bits ? own : bits;
	}
	if (reduce->rows.num_axes) {
		uint32_t last = reduce->rows.num_axes - 1;
		lth_nest_strides(lower, reduce->roots, stages, reduce->rows.axes[last], &unit, &irregular);
		if (lth_nest_hint(lower, reduce->rows.extents[last]) > 2)
			row_score = (int64_t)unit - 4 * (int64_t)irregular;
	}
	if (reduce->terms.num_axes) {
		uint32_t last = reduce->terms.num_axes - 1;
		lth_nest_strides(lower, reduce->roots, stages, reduce->terms.axes[last], &unit, &irregular);
		if (lth_nest_hint(lower, reduce->terms.extents[last]) > 2)
			term_score = (int64_t)unit - 4 * (int64_t)irregular;
	}
	reduce->vector_rows = row_score > term_score;
	const struct lth_nest *nest = reduce->vector_rows ? &reduce->rows : &reduce->terms;
	reduce->lanes = nest->num_axes ? lth_choose_lanes(lower, nest->extents[nest->num_axes - 1], bits) : 1;
	if (reduce->vector_rows)
		widen_rows(reduce, nest->extents[nest->num_axes - 1]);
	if (term_score == INT64_MIN && !reduce->vector_rows)
		reduce->lanes = 1;
	reduce->element_lanes = 1;
	if (reduce->elements.num_axes && !reduce->vector_rows)
		reduce->element_lanes = lth_choose_lanes(
			lower, reduce->elements.extents[reduce->elements.num_axes - 1], bits);
}

static int64_t work_of_row(struct reduce *reduce)
{
	int64_t work = 1;
	for (uint32_t i = 0; i < reduce->terms.num_axes && work < INT32_MAX; i++)
		work *= lth_nest_hint(reduce->lower, reduce->terms.extents[i]);
	return (work < INT32_MAX ? work : INT32_MAX) * reduce->form.num_stages;
}

static void emit_rows(struct reduce *reduce, struct lth_kernel_spec *out)
{
	struct lth_parallel parallel;
	uint32_t available = reduce->rows.num_axes - (reduce->vector_rows ? 1 : 0);
	int64_t work = work_of_row(reduce);
	if (reduce->vector_rows && available == 0) {
		/* one row axis only: units of one vector */
		struct lth_loop_fn *fn = reduce->lower->fn;
		struct lth_dims *dims = reduce->lower->graph->dims;
		lth_lv width = lth_loop_i64(fn, reduce->lanes), count = lth_lower_dim(reduce->lower, reduce->rows.extents[0]);
		lth_lv begin = lth_loop_op2(fn, LTH_SCALAR_MUL, lth_loop_begin(fn), width);
		lth_lv end = lth_loop_op2(fn, LTH_SCALAR_MIN, lth_loop_op2(fn, LTH_SCALAR_MUL, lth_loop_end(fn), width),
					  count);
		out->range = lth_dim_ceildiv(dims, reduce->rows.extents[0], lth_dim_const(dims, (int64_t)reduce->lanes));
		out->grain = work * (int64_t)reduce->lanes >= 16384 ? 1 : (uint32_t)(16384 / (work * reduce->lanes) + 1);
		lth_emit_vector_loop(&reduce->emitter, reduce->rows.axes[0], reduce->rows.extents[0], begin, end,
				     reduce->lanes, row_body, reduce);
		return;
	}
	if (reduce->vector_rows)
		work *= lth_nest_hint(reduce->lower, reduce->rows.extents[available]);
	lth_parallel_begin(&reduce->emitter, &reduce->rows, available, work, &parallel, out);
	row_loops(reduce, parallel.num_parallel);
	lth_parallel_end(&reduce->emitter, &reduce->rows, &parallel);
}

enum lth_code lth_lower_reduction(struct lth_lower *lower, const struct lth_node *anchor, struct lth_kernel_spec *out)
{
	struct reduce reduce = {.lower = lower, .anchor = anchor, .kept = LTH_NONE};
	const struct lth_op_impl *impl = anchor->op->impl;
	if (lower->group->num_outputs * 2 + LTH_MAX_STAGES + 1 > LTH_MAX_ROOTS)
		return lth_lower_fail(lower, LTH_LIMIT_EXCEEDED, anchor, "a group with too many outputs");
	enum lth_code code = impl->reduction(lower, anchor, &reduce.form, lower->diag);
	if (code != LTH_OK)
		return lower->code = code;
	if (reduce.form.scan)
		return lth_lower_scan(lower, anchor, &reduce.form, out);
	/* output 0, or whichever is there with its shape */
	lth_value_id first = anchor->outputs[0] != LTH_NONE ? anchor->outputs[0] : lower->group->outputs[0];
	struct lth_value shape = lower->graph->values[first];
	reduce.rank = shape.type.rank;
	if (reduce.rank + reduce.form.num_axes > LTH_MAX_AXES)
		return lth_lower_fail(lower, LTH_LIMIT_EXCEEDED, anchor, "more than 32 axes");
	lth_emitter_init(&reduce.emitter, lower);
	plan_nests(&reduce, &shape);
	build_roots(&reduce, &shape);
	if (lower->code != LTH_OK || !lth_arena_ok(lower->arena))
		return lower->code;
	uint32_t stages = reduce.form.num_stages, all = stages + 2 * reduce.num_outputs;
	plan_kept(&reduce);
	lth_nest_merge(lower, &reduce.rows, reduce.roots, all + (reduce.kept != LTH_NONE));
	reduce.kept_address = reduce.kept != LTH_NONE ? reduce.roots[all].x : LTH_SX_NONE;
	lth_nest_merge(lower, &reduce.terms, reduce.roots, stages);
	lth_nest_merge(lower, &reduce.elements, reduce.roots + stages, 2 * reduce.num_outputs);
	choose_vectors(&reduce);
	emit_rows(&reduce, out);
	return lower->code;
}
