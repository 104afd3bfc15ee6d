/* Pooling with channels innermost. Small constant windows go through windows.c; any other window (global pooling,
 * unknown or large kernels, three dimensions) through loops over the part of the window that is inside the image, a few
 * vectors of channels at a time. */
#include "compiler/lower/templates/windows.h"

enum { BLOCK_VECTORS = 4, VARIANT_WINDOWS = 0, VARIANT_LOOPS = 1 };

struct pool {
	struct lth_emit *emit;
	const struct lth_pool *problem;
	enum lth_dtype compute;
	unsigned lanes;
	lth_lv in[LTH_MAX_SPATIAL], kernel[LTH_MAX_SPATIAL], pad[LTH_MAX_SPATIAL], pad_end[LTH_MAX_SPATIAL];
	lth_lv step[LTH_MAX_SPATIAL], out[LTH_MAX_SPATIAL], batch_step, channels;
	/* of the pixel at hand: position of the window, first tap inside the image and one past the last */
	lth_lv index[LTH_MAX_SPATIAL], start[LTH_MAX_SPATIAL], first[LTH_MAX_SPATIAL], last[LTH_MAX_SPATIAL];
};

static void read_pool(struct lth_emit *emit, const struct lth_problem *problem, struct pool *out)
{
	const struct lth_pool *pool = &problem->pool;
	out->emit = emit;
	out->problem = pool;
	out->compute = problem->compute;
	for (uint32_t axis = 0; axis < pool->spatial; axis++) {
		out->in[axis] = lth_t_param(emit, pool->in[axis]);
		out->out[axis] = lth_t_param(emit, pool->out[axis]);
		out->kernel[axis] = lth_t_param(emit, pool->kernel[axis]);
		out->pad[axis] = lth_t_stride(emit, pool->pad[axis]);
		out->pad_end[axis] = lth_t_stride(emit, pool->pad_end[axis]);
		out->step[axis] = lth_t_param(emit, pool->x_stride[axis]);
	}
}

/* The number of taps k >= 0 with k * dilation < distance. */
static lth_lv taps_before(struct pool *pool, uint32_t axis, lth_lv distance)
{
	struct lth_loop_fn *fn = pool->emit->fn;
	int64_t dilation = pool->problem->dilation[axis];
	if (dilation != 1)
		distance = lth_loop_op2(fn, LTH_SCALAR_FLOORDIV, t_add_const(fn, distance, dilation - 1),
					lth_loop_i64(fn, dilation));
	return t_max(fn, lth_loop_i64(fn, 0), distance);
}

static void clip_window(struct pool *pool, uint32_t axis, lth_lv index)
{
	struct lth_loop_fn *fn = pool->emit->fn;
	pool->index[axis] = index;
	pool->start[axis] = t_sub(fn, t_mul_const(fn, index, pool->problem->stride[axis]), pool->pad[axis]);
	pool->first[axis] = taps_before(pool, axis, t_sub(fn, lth_loop_i64(fn, 0), pool->start[axis]));
	pool->last[axis] = t_min(fn, pool->kernel[axis],
				 taps_before(pool, axis, t_sub(fn, pool->in[axis], pool->start[axis])));
}

/* By how much an average is divided, of the window that clip_window has seen: the taps inside the image, or all that
 * padding reaches. */
static lth_lv divisor(struct pool *pool)
{
	struct lth_loop_fn *fn = pool->emit->fn;
	lth_lv count = lth_loop_i64(fn, 1);
	for (uint32_t axis = 0; axis < pool->problem->spatial; axis++) {
		lth_lv taps = t_sub(fn, pool->last[axis], pool->first[axis]);
		if (pool->problem->kind == LTH_POOL_AVERAGE_PADDED) {
			lth_lv end = t_add(fn, pool->in[axis], pool->pad_end[axis]);
			taps = t_min(fn, pool->kernel[axis],
				     taps_before(pool, axis, t_sub(fn, end, pool->start[axis])));
		}
		count = t_mul(fn, count, taps);
	}
	return lth_loop_cast(fn, count, pool->compute);
}

static lth_lv finish_value(struct pool *pool, lth_lv value)
{
	if (pool->problem->kind == LTH_POOL_MAX)
		return value;
	return lth_loop_op2(pool->emit->fn, LTH_SCALAR_DIV, value, divisor(pool));
}

/* Small windows. */

static bool describe(struct lth_dims *dims, const struct lth_machine *machine, const struct lth_problem *problem,
		     struct lth_windows *out)
{
	const struct lth_pool *pool = &problem->pool;
	lth_dim one = lth_dim_const(dims, 1);
	struct lth_window_axis axes[2] = {{one, one, lth_dim_const(dims, 0), lth_dim_const(dims, 0), 1, 1, 1}};
	if (pool->spatial > 2)
		return false;
	for (uint32_t axis = 0; axis < pool->spatial; axis++) {
		struct lth_window_axis *window = &axes[2 - pool->spatial + axis];
		*window = (struct lth_window_axis){
			pool->in[axis],     pool->out[axis],     pool->pad[axis], pool->x_stride[axis], 1,
			pool->stride[axis], pool->dilation[axis]};
		if (!lth_dim_is_const(dims, pool->kernel[axis], &window->kernel) || window->kernel < 1)
			return false;
	}
	*out = (struct lth_windows){
		.compute = problem->compute,
		.op = pool->kind == LTH_POOL_MAX ? LTH_WINDOW_MAX : LTH_WINDOW_SUM,
		.x = pool->x,
		.batch = pool->batch,
		.channels = pool->channels,
		.x_batch_stride = pool->x_batch_stride,
		.multiplier = 1,
		.y = axes[0],
		.x_axis = axes[1],
		.one_dimension = pool->spatial == 1,
		.lanes = lth_windows_lanes(dims, machine, problem->compute, pool->channels),
	};
	return lth_windows_tile(dims, machine, out);
}

static lth_lv finish_window(struct lth_windows *windows, lth_lv y, lth_lv x, lth_lv value)
{
	struct pool *pool = windows->context;
	if (pool->problem->spatial == 2)
		clip_window(pool, 0, y);
	clip_window(pool, pool->problem->spatial - 1, x);
	return finish_value(pool, value);
}

/* Any window. A row of a sum is summed on its own: thousands of terms, one added after the other, lose a digit. */

static void reduce_window(struct pool *pool, lth_lv pixel, unsigned vectors, lth_lv mask, lth_lv *acc)
{
	struct lth_loop_fn *fn = pool->emit->fn;
	enum lth_dtype memory = pool->problem->x.memory;
	bool max = pool->problem->kind == LTH_POOL_MAX;
	lth_lv state[LTH_MAX_SPATIAL + 1][BLOCK_VECTORS];
	lth_lv scalar = max ? lth_t_least(fn, pool->compute) : lth_loop_const_f(fn, pool->compute, 0);
	uint32_t spatial = pool->problem->spatial;
	for (unsigned v = 0; v < vectors; v++)
		state[0][v] = lth_loop_splat(fn, scalar, pool->lanes);
	for (uint32_t axis = 0; axis < spatial; axis++) {
		const lth_lv *initial = !max && axis + 1 == spatial ? state[0] : state[axis];
		lth_lv k = lth_loop_for(fn, pool->first[axis], pool->last[axis], 1, initial, vectors, state[axis + 1]);
		lth_lv position = t_add(fn, pool->start[axis], t_mul_const(fn, k, pool->problem->dilation[axis]));
		pixel = lth_loop_offset(fn, pixel, t_mul(fn, position, pool->step[axis]), memory);
	}
	for (unsigned v = 0; v < vectors; v++) {
		lth_lv place = lth_loop_offset(fn, pixel, lth_loop_i64(fn, (int64_t)v * pool->lanes), memory);
		lth_lv value = lth_loop_load(fn, place, memory, pool->lanes, mask);
		acc[v] = lth_loop_op2(fn, max ? LTH_SCALAR_MAX : LTH_SCALAR_ADD, state[spatial][v], value);
	}
	for (uint32_t axis = spatial; axis-- > 0;) {
		lth_lv results[BLOCK_VECTORS];
		lth_loop_end_for(fn, acc, vectors, results);
		bool row = !max && axis + 1 == spatial && axis > 0;
		for (unsigned v = 0; v < vectors; v++)
			acc[v] = row ? t_add(fn, state[axis][v], results[v]) : results[v];
	}
}

static void emit_vectors(struct pool *pool, lth_lv n, lth_lv image, lth_lv channel, unsigned vectors, lth_lv mask)
{
	struct lth_loop_fn *fn = pool->emit->fn;
	const struct lth_epilogue *epilogue = pool->emit->epilogue;
	lth_lv acc[BLOCK_VECTORS], index[LTH_MAX_SPATIAL + 2] = {n};
	reduce_window(pool, lth_loop_offset(fn, image, channel, pool->problem->x.memory), vectors, mask, acc);
	for (uint32_t axis = 0; axis < pool->problem->spatial; axis++)
		index[2 + axis] = pool->index[axis];
	for (unsigned v = 0; v < vectors; v++) {
		index[1] = t_add_const(fn, channel, (int64_t)v * pool->lanes);
		epilogue->apply(epilogue->context, 0, index, 1, finish_value(pool, acc[v]), pool->lanes, mask);
	}
}

/* A unit is one output pixel and a block of channels. */
static void emit_loops(struct pool *pool)
{
	struct lth_emit *emit = pool->emit;
	struct lth_dims *dims = emit->dims;
	struct lth_loop_fn *fn = emit->fn;
	const struct lth_pool *p = pool->problem;
	int64_t width = (int64_t)BLOCK_VECTORS * pool->lanes;
	lth_dim blocks_dim = lth_dim_ceildiv(dims, p->channels, lth_dim_const(dims, width));
	lth_dim pixels = lth_dim_product(dims, p->out, p->spatial), work = lth_dim_const(dims, width);
	lth_lv extents[LTH_MAX_SPATIAL + 2], index[LTH_MAX_SPATIAL + 2], mask = LTH_LV_NONE;
	pool->batch_step = lth_t_param(emit, p->x_batch_stride);
	pool->channels = lth_t_param(emit, p->channels);
	extents[0] = LTH_LV_NONE;
	for (uint32_t axis = 0; axis < p->spatial; axis++) {
		extents[1 + axis] = pool->out[axis];
		work = lth_dim_mul(dims, work, p->kernel[axis]);
	}
	extents[1 + p->spatial] = lth_t_param(emit, blocks_dim);
	lth_lv unit = lth_loop_for(fn, lth_loop_begin(fn), lth_loop_end(fn), 1, NULL, 0, NULL);
	lth_t_unflatten(fn, unit, extents, p->spatial + 2, index);
	for (uint32_t axis = 0; axis < p->spatial; axis++)
		clip_window(pool, axis, index[1 + axis]);
	lth_lv image = lth_loop_offset(fn, p->x.pointer, t_mul(fn, index[0], pool->batch_step), p->x.memory);
	lth_lv channel = t_mul_const(fn, index[1 + p->spatial], width);
	lth_lv end = t_add_const(fn, channel, width);
	lth_loop_if(fn, t_le(fn, end, pool->channels));
	emit_vectors(pool, index[0], image, channel, BLOCK_VECTORS, LTH_LV_NONE);
	lth_loop_else(fn, NULL, 0);
	lth_lv single = lth_loop_for(fn, channel, pool->channels, pool->lanes, NULL, 0, NULL);
	mask = lth_loop_mask(fn, t_sub(fn, pool->channels, single), pool->lanes);
	emit_vectors(pool, index[0], image, single, 1, mask);
	lth_loop_end_for(fn, NULL, 0, NULL);
	lth_loop_end_if(fn, NULL, 0, NULL);
	lth_loop_end_for(fn, NULL, 0, NULL);
	emit->units = lth_dim_mul(dims, p->batch, lth_dim_mul(dims, pixels, blocks_dim));
	emit->min_units = lth_t_min_units(dims, work);
}

bool lth_pool_plan(struct lth_dims *dims, const struct lth_machine *machine, const struct lth_problem *problem,
		   struct lth_template_plan *out)
{
	const struct lth_pool *pool = &problem->pool;
	struct lth_windows windows;
	bool bytes = pool->kind == LTH_POOL_MAX && pool->x.memory == problem->compute;
	if ((!bytes && !lth_t_loads_as(pool->x.memory, problem->compute)) || !lth_t_is(dims, pool->x_channel_stride, 1))
		return false;
	out->variant = describe(dims, machine, problem, &windows) ? VARIANT_WINDOWS : VARIANT_LOOPS;
	out->flops = lth_dim_mul(dims, lth_dim_mul(dims, pool->batch, pool->channels),
				 lth_dim_mul(dims, lth_dim_product(dims, pool->out, pool->spatial),
					     lth_dim_product(dims, pool->kernel, pool->spatial)));
	return true;
}

void lth_pool_emit(struct lth_emit *emit, const struct lth_problem *problem, const struct lth_template_plan *plan)
{
	struct pool pool = {
		.lanes = lth_windows_lanes(emit->dims, emit->machine, problem->compute, problem->pool.channels)};
	struct lth_windows windows;
	read_pool(emit, problem, &pool);
	if (plan->variant == VARIANT_LOOPS) {
		emit_loops(&pool);
		return;
	}
	if (!describe(emit->dims, emit->machine, problem, &windows))
		return; /* plan said yes */
	windows.emit = emit;
	windows.context = &pool;
	if (problem->pool.kind != LTH_POOL_MAX)
		windows.finish = finish_window;
	lth_windows_emit(&windows);
}
