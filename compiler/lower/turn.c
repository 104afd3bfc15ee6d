/* Maps whose input and output disagree on the contiguous axis (Transpose, changes of layout): blocks of lanes x lanes.
 * Each is read along the input's contiguous axis, turned in registers, and then computed and stored row by row along the
 * output's. Loads that agree with the output stay as they are. */
#include "compiler/lower/map.h"

#include "compiler/lower/templates/internal.h"

#include <string.h>

enum { MAX_TURNED = 4 };

struct turn {
	struct lth_map *map;
	lth_sx loads[MAX_TURNED]; /* contiguous along `source` */
	uint32_t num_loads;
	uint32_t source, target; /* axes; the target is the nest's innermost */
	lth_dim source_extent, target_extent;
	unsigned lanes;
};

/* Is the load contiguous along one of the nest's outer axes, and does it move along the innermost? */
static bool wants_turn(struct turn *turn, const struct lth_sx_node *load, uint32_t *out_source)
{
	struct lth_sx_pool *pool = turn->map->lower->pool;
	const struct lth_nest *nest = &turn->map->nest;
	lth_sx stride;
	int64_t step;
	if (!lth_sx_stride(pool, load->operands[0], turn->target, &stride) ||
	    (lth_sx_is_int(pool, stride, &step) && step >= -1 && step <= 1))
		return false;
	for (uint32_t i = 0; i + 1 < nest->num_axes; i++)
		if (lth_sx_stride(pool, load->operands[0], nest->axes[i], &stride) &&
		    lth_sx_is_int(pool, stride, &step) && step == 1) {
			*out_source = nest->axes[i];
			return true;
		}
	return false;
}

/* Collects the loads below x; those that move with the innermost axis in a way that blocks do not help stay gathers. */
static void find_loads(struct turn *turn, lth_sx x, uint8_t *seen, uint32_t size)
{
	if (x == LTH_SX_NONE || x >= size || seen[x])
		return;
	seen[x] = 1;
	const struct lth_sx_node node = *lth_sx_get(turn->map->lower->pool, x);
	uint32_t source;
	if (node.kind == LTH_SX_LOAD && wants_turn(turn, &node, &source) && turn->num_loads < MAX_TURNED &&
	    (turn->num_loads == 0 || source == turn->source)) {
		turn->source = source;
		turn->loads[turn->num_loads++] = x;
	}
	for (int k = 0; k < 3; k++)
		find_loads(turn, node.operands[k], seen, size);
}

static bool plan(struct turn *turn)
{
	struct lth_map *map = turn->map;
	struct lth_nest *nest = &map->nest;
	uint32_t size = 0;
	for (uint32_t k = 0; k < map->num_outputs; k++)
		size = map->roots[2 * k].x >= size ? map->roots[2 * k].x + 1 : size;
	uint8_t *seen = lth_arena_alloc(map->lower->arena, size);
	if (!seen || turn->lanes < 4 || nest->num_axes < 2)
		return false;
	turn->target = nest->axes[nest->num_axes - 1];
	turn->target_extent = nest->extents[nest->num_axes - 1];
	for (uint32_t k = 0; k < map->num_outputs; k++)
		find_loads(turn, map->roots[2 * k].x, seen, size);
	if (turn->num_loads == 0)
		return false;
	for (uint32_t i = 0; i + 1 < nest->num_axes; i++)
		if (nest->axes[i] == turn->source)
			turn->source_extent = nest->extents[i];
	return 2 * lth_nest_hint(map->lower, turn->source_extent) > (int64_t)turn->lanes;
}

/* A turned load: vector j is along the target axis at the j-th place of the source axis. `left` places of the target axis
 * and `mask` lanes of the source axis exist; rows that do not repeat the last one. */
static void load_block(struct turn *turn, lth_sx x, lth_lv left, lth_lv mask, lth_lv *vectors)
{
	struct lth_emitter *emitter = &turn->map->emitter;
	struct lth_loop_fn *fn = emitter->fn;
	const struct lth_sx_node load = *lth_sx_get(emitter->pool, x);
	lth_sx stride;
	if (!lth_sx_stride(emitter->pool, load.operands[0], turn->target, &stride))
		return;
	lth_lv step = lth_emit_scalar(emitter, stride);
	lth_lv first = lth_loop_offset(fn, lth_loop_pointer(fn, load.id), lth_emit_scalar(emitter, load.operands[0]),
				       load.memory);
	for (unsigned i = 0; i < turn->lanes; i++) {
		lth_lv row = lth_loop_i64(fn, i);
		if (left != LTH_LV_NONE)
			row = lth_loop_op2(fn, LTH_SCALAR_MIN, row,
					   lth_loop_op2(fn, LTH_SCALAR_SUB, left, lth_loop_i64(fn, 1)));
		lth_lv at = lth_loop_offset(fn, first, lth_loop_op2(fn, LTH_SCALAR_MUL, row, step), load.memory);
		vectors[i] = lth_loop_load(fn, at, load.memory, turn->lanes, mask);
	}
	lth_t_transpose(fn, vectors, turn->lanes);
}

/* One block at `source`, `target`; with masks where it reaches over an end. */
static void block(struct turn *turn, lth_lv source, lth_lv target, bool masked)
{
	struct lth_emitter *emitter = &turn->map->emitter;
	struct lth_loop_fn *fn = emitter->fn;
	lth_lv vectors[MAX_TURNED][LTH_MAX_LANES], left = LTH_LV_NONE, mask = LTH_LV_NONE;
	lth_lv source_end = lth_lower_dim(turn->map->lower, turn->source_extent);
	if (masked) {
		left = lth_loop_op2(fn, LTH_SCALAR_SUB, lth_lower_dim(turn->map->lower, turn->target_extent), target);
		mask = lth_loop_mask(fn, lth_loop_op2(fn, LTH_SCALAR_SUB, source_end, source), turn->lanes);
	}
	uint32_t mark = lth_emitter_open(emitter);
	lth_emit_set_axis(emitter, turn->source, source);
	lth_emit_set_axis(emitter, turn->target, target);
	for (uint32_t k = 0; k < turn->num_loads; k++)
		load_block(turn, turn->loads[k], left, mask, vectors[k]);
	lth_emitter_close(emitter, mark);
	emitter->vector_axis = turn->target;
	emitter->lanes = turn->lanes;
	emitter->mask = masked ? lth_loop_mask(fn, left, turn->lanes) : LTH_LV_NONE;
	for (unsigned j = 0; j < turn->lanes; j++) {
		lth_lv place = lth_loop_op2(fn, LTH_SCALAR_ADD, source, lth_loop_i64(fn, j));
		if (masked)
			lth_loop_if(fn, lth_loop_op2(fn, LTH_SCALAR_LT, place, source_end));
		mark = lth_emitter_open(emitter);
		lth_emit_set_axis(emitter, turn->source, place);
		for (uint32_t k = 0; k < turn->num_loads; k++)
			lth_emit_preset(emitter, turn->loads[k], vectors[k][j], true);
		lth_map_body(turn->map);
		lth_emitter_close(emitter, mark);
		if (masked)
			lth_loop_end_if(fn, NULL, 0, NULL);
	}
	lth_emit_unset_axis(emitter, turn->source);
	lth_emit_unset_axis(emitter, turn->target);
	emitter->vector_axis = LTH_NONE;
	emitter->lanes = 1;
	emitter->mask = LTH_LV_NONE;
}

static bool divides(struct turn *turn, lth_dim extent)
{
	int64_t fixed;
	return lth_dim_is_const(turn->map->lower->graph->dims, extent, &fixed) && fixed % (int64_t)turn->lanes == 0;
}

/* All blocks at one place of the source axis. */
static void row_of_blocks(struct turn *turn, lth_lv source)
{
	struct lth_loop_fn *fn = turn->map->emitter.fn;
	struct lth_lower *lower = turn->map->lower;
	lth_lv end = lth_lower_dim(lower, turn->target_extent), width = lth_loop_i64(fn, turn->lanes);
	bool whole = divides(turn, turn->source_extent) && divides(turn, turn->target_extent);
	lth_lv target = lth_loop_for(fn, lth_loop_i64(fn, 0), end, turn->lanes, NULL, 0, NULL);
	if (whole) {
		block(turn, source, target, false);
	} else {
		lth_lv source_end = lth_lower_dim(lower, turn->source_extent);
		lth_lv read_to = lth_loop_op2(fn, LTH_SCALAR_ADD, source, width);
		lth_lv readable = lth_loop_op2(fn, LTH_SCALAR_LE, read_to, source_end);
		lth_lv written_to = lth_loop_op2(fn, LTH_SCALAR_ADD, target, width);
		lth_lv writable = lth_loop_op2(fn, LTH_SCALAR_LE, written_to, end);
		lth_lv fits = lth_loop_op2(fn, LTH_SCALAR_AND, readable, writable);
		lth_loop_if(fn, fits);
		block(turn, source, target, false);
		lth_loop_else(fn, NULL, 0);
		block(turn, source, target, true);
		lth_loop_end_if(fn, NULL, 0, NULL);
	}
	lth_loop_end_for(fn, NULL, 0, NULL);
}

/* Loops over nest axes [depth, source), then the blocks of the source axis, which comes last but one. */
static void loops(struct turn *turn, uint32_t depth)
{
	struct lth_map *map = turn->map;
	struct lth_emitter *emitter = &map->emitter;
	bool blocks = depth + 2 == map->nest.num_axes;
	for (uint32_t k = 0; k < 2 * map->num_outputs; k++)
		lth_emit_hoist(emitter, map->roots[k].x);
	uint32_t mark = lth_emitter_open(emitter);
	lth_dim extent = blocks ? turn->source_extent : map->nest.extents[depth];
	lth_lv index = lth_loop_for(emitter->fn, lth_loop_i64(emitter->fn, 0), lth_lower_dim(map->lower, extent),
				    blocks ? turn->lanes : 1, NULL, 0, NULL);
	if (blocks) {
		row_of_blocks(turn, index);
	} else {
		lth_emit_set_axis(emitter, map->nest.axes[depth], index);
		loops(turn, depth + 1);
	}
	lth_loop_end_for(emitter->fn, NULL, 0, NULL);
	if (!blocks)
		lth_emit_unset_axis(emitter, map->nest.axes[depth]);
	lth_emitter_close(emitter, mark);
}

bool lth_map_turn(struct lth_map *map, unsigned lanes, struct lth_kernel_spec *out)
{
	struct turn turn = {.map = map, .lanes = lanes};
	struct lth_nest *nest = &map->nest;
	struct lth_dims *dims = map->lower->graph->dims;
	struct lth_loop_fn *fn = map->emitter.fn;
	if (!plan(&turn))
		return false;
	/* the source axis goes last but one, counted in blocks */
	uint32_t last = nest->num_axes - 1, at = 0;
	while (nest->axes[at] != turn.source)
		at++;
	memmove(nest->axes + at, nest->axes + at + 1, (last - 1 - at) * sizeof(nest->axes[0]));
	memmove(nest->extents + at, nest->extents + at + 1, (last - 1 - at) * sizeof(nest->extents[0]));
	nest->axes[last - 1] = turn.source;
	nest->extents[last - 1] = lth_dim_ceildiv(dims, turn.source_extent, lth_dim_const(dims, lanes));
	struct lth_parallel parallel;
	int64_t work = lth_nest_hint(map->lower, turn.target_extent) * lanes;
	lth_parallel_begin(&map->emitter, nest, last, work, &parallel, out);
	if (parallel.num_parallel == last) {
		lth_lv unit = map->emitter.axes[turn.source];
		lth_emit_unset_axis(&map->emitter, turn.source);
		for (uint32_t k = 0; k < 2 * map->num_outputs; k++)
			lth_emit_hoist(&map->emitter, map->roots[k].x);
		row_of_blocks(&turn, lth_loop_op2(fn, LTH_SCALAR_MUL, unit, lth_loop_i64(fn, lanes)));
	} else {
		loops(&turn, parallel.num_parallel);
	}
	lth_parallel_end(&map->emitter, nest, &parallel);
	return true;
}
