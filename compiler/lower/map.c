/* The schedule of groups without an anchor: one loop nest over the outputs' common shape, in memory order, the innermost
 * axis in vectors. A single merged axis is cut into the parallel range directly. Strings, which are only ever moved, are
 * two words an element (where the bytes are, and how many): one more axis, innermost. */
#include "compiler/lower/map.h"

#include <string.h>

void lth_map_body(void *context)
{
	struct lth_map *map = context;
	lth_lv values[LTH_MAX_ROOTS / 2];
	if (map->tables.count)
		lth_tables_read(map, map->nest.axes[map->nest.num_axes - 1]);
	for (uint32_t k = 0; k < map->num_outputs; k++)
		values[k] = lth_emit(&map->emitter, map->roots[2 * k].x);
	for (uint32_t k = 0; k < map->num_outputs; k++) {
		lth_value_id value = map->lower->group->outputs[k];
		enum lth_dtype memory = lth_pointer_dtype(map->lower->graph->values[value].type.dtype);
		lth_emit_store(&map->emitter, map->operands[k], memory, map->roots[2 * k + 1].x, values[k]);
	}
}

/* Loops over nest axes [depth, last), hoisting before each; then the vector axis. */
static void loops(struct lth_map *map, uint32_t depth, unsigned lanes)
{
	struct lth_emitter *emitter = &map->emitter;
	uint32_t last = map->nest.num_axes - 1, axis = map->nest.axes[depth];
	emitter->vector_axis = lanes > 1 ? map->nest.axes[last] : LTH_NONE;
	emitter->lanes = lanes;
	for (uint32_t k = 0; k < 2 * map->num_outputs; k++)
		lth_emit_hoist(emitter, map->roots[k].x);
	if (depth == last) {
		lth_emit_vector_loop(emitter, axis, map->nest.extents[depth], LTH_LV_NONE, LTH_LV_NONE, lanes, lth_map_body,
				     map);
		return;
	}
	uint32_t mark = lth_emitter_open(emitter);
	lth_lv index = lth_loop_for(emitter->fn, lth_loop_i64(emitter->fn, 0),
				    lth_lower_dim(map->lower, map->nest.extents[depth]), 1, NULL, 0, NULL);
	lth_emit_set_axis(emitter, axis, index);
	lth_tables_read(map, axis);
	loops(map, depth + 1, lanes);
	lth_loop_end_for(emitter->fn, NULL, 0, NULL);
	lth_emit_unset_axis(emitter, axis);
	lth_emitter_close(emitter, mark);
}

/* One axis only: units of `chunk` elements. */
static void flat_loop(struct lth_map *map, unsigned lanes, struct lth_kernel_spec *out)
{
	enum { CHUNK = 1024, GRAIN = 16 };
	struct lth_emitter *emitter = &map->emitter;
	struct lth_loop_fn *fn = map->lower->fn;
	lth_dim extent = map->nest.extents[0];
	lth_lv chunk = lth_loop_i64(fn, CHUNK), count = lth_lower_dim(map->lower, extent);
	lth_lv begin = lth_loop_op2(fn, LTH_SCALAR_MUL, lth_loop_begin(fn), chunk);
	lth_lv end = lth_loop_op2(fn, LTH_SCALAR_MUL, lth_loop_end(fn), chunk);
	end = lth_loop_op2(fn, LTH_SCALAR_MIN, end, count);
	out->range = lth_dim_ceildiv(map->lower->graph->dims, extent, lth_dim_const(map->lower->graph->dims, CHUNK));
	out->grain = GRAIN;
	emitter->vector_axis = lanes > 1 ? map->nest.axes[0] : LTH_NONE;
	emitter->lanes = lanes;
	for (uint32_t k = 0; k < 2 * map->num_outputs; k++)
		lth_emit_hoist(emitter, map->roots[k].x);
	lth_emit_vector_loop(emitter, map->nest.axes[0], extent, begin, end, lanes, lth_map_body, map);
}

static void plan_nest(struct lth_map *map)
{
	struct lth_lower *lower = map->lower;
	const struct lth_value *first = &lower->graph->values[lower->group->outputs[0]];
	for (uint32_t i = 0; i < first->type.rank; i++) {
		uint32_t axis = first->layout ? first->layout[i] : i;
		int64_t extent;
		lth_sx_set_axis(lower->pool, axis, first->type.dims[axis], i);
		if (lth_dim_is_const(lower->graph->dims, first->type.dims[axis], &extent) && extent == 1)
			continue;
		map->nest.axes[map->nest.num_axes] = axis;
		map->nest.extents[map->nest.num_axes++] = first->type.dims[axis];
	}
	if (lth_is_two_words(first->type.dtype)) {
		uint32_t axis = first->type.rank;
		lth_dim words = lth_dim_const(lower->graph->dims, 2);
		lth_sx_set_axis(lower->pool, axis, words, axis);
		map->nest.axes[map->nest.num_axes] = axis;
		map->nest.extents[map->nest.num_axes++] = words;
		lower->word = lth_sx_axis(lower->pool, axis);
	}
}

static void build_roots(struct lth_map *map)
{
	struct lth_lower *lower = map->lower;
	lth_sx index[LTH_MAX_RANK];
	uint32_t rank = lower->graph->values[lower->group->outputs[0]].type.rank;
	for (uint32_t axis = 0; axis < rank; axis++)
		index[axis] = lth_sx_axis(lower->pool, axis);
	map->num_outputs = lower->group->num_outputs;
	for (uint32_t k = 0; k < map->num_outputs; k++) {
		lth_value_id value = lower->group->outputs[k];
		map->roots[2 * k].x = lth_read(lower, value, index);
		map->roots[2 * k + 1].x = lth_lower_address(lower, value, index);
		map->roots[2 * k + 1].is_address = true;
	}
	for (uint32_t k = 0; k < map->num_outputs; k++)
		map->operands[k] = lth_lower_operand(lower, lower->group->outputs[k], true);
}

/* The widest element that the kernel computes with decides the number of lanes. */
static unsigned widest_bits(struct lth_map *map)
{
	unsigned bits = 8;
	for (uint32_t k = 0; k < map->num_outputs; k++) {
		unsigned own = lth_dtype_bits(lth_sx_get(map->lower->pool, map->roots[2 * k].x)->dtype);
		bits = own > bits ? own : bits;
	}
	return bits;
}

/* Outputs of sub-byte elements: one axis over whole bytes. */
static void plan_packed(struct lth_map *map)
{
	struct lth_lower *lower = map->lower;
	struct lth_dims *dims = lower->graph->dims;
	const struct lth_type type = lower->graph->values[lower->group->outputs[0]].type;
	lth_dim each = lth_dim_const(dims, 8 / (int64_t)lth_dtype_bits(type.dtype));
	map->nest.extents[0] = lth_dim_ceildiv(dims, lth_dim_product(dims, type.dims, type.rank), each);
	map->nest.num_axes = 1;
	map->num_outputs = lower->group->num_outputs;
	lth_sx_set_axis(lower->pool, 0, map->nest.extents[0], 0);
	for (uint32_t k = 0; k < map->num_outputs; k++) {
		lth_value_id value = lower->group->outputs[k];
		lth_sx byte = lth_sx_axis(lower->pool, 0);
		if (lth_dtype_bits(lower->graph->values[value].type.dtype) != lth_dtype_bits(type.dtype)) {
			lth_lower_fail(lower, LTH_UNSUPPORTED, NULL, "packed outputs of different widths in one group");
			return;
		}
		map->roots[2 * k] = (struct lth_root){.x = lth_packed_byte(lower, value, byte)};
		map->roots[2 * k + 1] = (struct lth_root){.x = byte, .is_address = true};
		map->operands[k] = lth_lower_operand(lower, value, true);
	}
}

enum lth_code lth_lower_map(struct lth_lower *lower, struct lth_kernel_spec *out)
{
	struct lth_map map = {.lower = lower};
	if (lower->group->num_outputs > LTH_MAX_ROOTS / 2)
		return lth_lower_fail(lower, LTH_LIMIT_EXCEEDED, NULL, "a group with too many outputs");
	lth_emitter_init(&map.emitter, lower);
	bool packed = lth_dtype_bits(lower->graph->values[lower->group->outputs[0]].type.dtype) < 8;
	if (packed) {
		plan_packed(&map);
	} else {
		plan_nest(&map);
		build_roots(&map);
	}
	if (lower->code != LTH_OK || !lth_arena_ok(lower->arena))
		return lower->code;
	if (map.num_outputs == 1 && !packed && lower->word == LTH_SX_NONE)
		lth_lower_mark_in_place(lower, map.roots[0].x, map.roots[1].x,
					lower->graph->values[lower->group->outputs[0]].type.dtype, 1);
	lth_nest_merge(lower, &map.nest, map.roots, 2 * map.num_outputs);
	if (map.nest.num_axes == 0) { /* one element */
		map.nest.axes[0] = 0;
		map.nest.extents[0] = lth_dim_const(lower->graph->dims, 1);
		map.nest.num_axes = 1;
	}
	uint32_t last = map.nest.num_axes - 1;
	unsigned lanes = lth_choose_lanes(lower, map.nest.extents[last], widest_bits(&map));
	if (map.nest.num_axes == 1) {
		flat_loop(&map, lanes, out);
		return lower->code;
	}
	if (lth_map_turn(&map, lanes, out))
		return lower->code;
	struct lth_parallel parallel;
	lth_tables_fill(&map, lanes, out);
	lth_parallel_begin(&map.emitter, &map.nest, last, lth_nest_hint(lower, map.nest.extents[last]), &parallel, out);
	for (uint32_t i = 0; i < parallel.num_parallel; i++)
		lth_tables_read(&map, map.nest.axes[i]);
	loops(&map, parallel.num_parallel, lanes);
	lth_parallel_end(&map.emitter, &map.nest, &parallel);
	return lower->code;
}
