/* The parallel range of a kernel, and how wide its vectors are. */
#include "compiler/lower/lower_group.h"

enum {
	UNITS_WANTED = 64,     /* enough units to balance any sensible number of threads */
	WORK_PER_TASK = 16384, /* element operations below which a task of its own does not pay */
};

void lth_parallel_begin(struct lth_emitter *emitter, const struct lth_nest *nest, uint32_t num_available,
			int64_t work_per_turn, struct lth_parallel *out_parallel, struct lth_kernel_spec *out)
{
	struct lth_lower *lower = emitter->lower;
	struct lth_loop_fn *fn = emitter->fn;
	struct lth_dims *dims = lower->graph->dims;
	lth_dim range = lth_dim_const(dims, 1);
	int64_t units = 1;
	uint32_t count = 0;
	while (count < num_available && units < UNITS_WANTED) {
		units *= lth_nest_hint(lower, nest->extents[count]);
		range = lth_dim_mul(dims, range, nest->extents[count++]);
	}
	int64_t work = work_per_turn > 0 ? work_per_turn : 1;
	for (uint32_t i = count; i < num_available && work < WORK_PER_TASK; i++)
		work *= lth_nest_hint(lower, nest->extents[i]);
	out->range = range;
	out->grain = work >= WORK_PER_TASK ? 1 : (uint32_t)((WORK_PER_TASK + work - 1) / work);
	out_parallel->num_parallel = count;
	out_parallel->mark = lth_emitter_open(emitter);
	lth_lv unit = lth_loop_for(fn, lth_loop_begin(fn), lth_loop_end(fn), 1, NULL, 0, NULL);
	for (uint32_t i = count; i-- > 0;) {
		lth_lv extent = lth_lower_dim(lower, nest->extents[i]);
		lth_emit_set_axis(emitter, nest->axes[i], i ? lth_loop_op2(fn, LTH_SCALAR_MOD, unit, extent) : unit);
		unit = i ? lth_loop_op2(fn, LTH_SCALAR_DIV, unit, extent) : unit;
	}
}

void lth_parallel_end(struct lth_emitter *emitter, const struct lth_nest *nest, const struct lth_parallel *parallel)
{
	lth_loop_end_for(emitter->fn, NULL, 0, NULL);
	for (uint32_t i = 0; i < parallel->num_parallel; i++)
		lth_emit_unset_axis(emitter, nest->axes[i]);
	lth_emitter_close(emitter, parallel->mark);
}

unsigned lth_choose_lanes(struct lth_lower *lower, lth_dim extent, unsigned bits)
{
	unsigned lanes = lower->target->vector_bytes * 8 / (bits < 32 ? 32 : bits);
	int64_t fixed;
	if (lth_dim_is_const(lower->graph->dims, extent, &fixed))
		while (lanes > 1 && (int64_t)lanes / 2 >= fixed)
			lanes /= 2;
	return lanes;
}
