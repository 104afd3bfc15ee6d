/* Tables of a map: index and weight arithmetic that depends on one axis alone (the coordinates of a Resize, the wrapped
 * index of a Tile) is the same on every turn of the loops around that axis. It is computed once into scratch, and read
 * from there. What is affine in the axis costs nothing and stays. */
#include "compiler/lower/map.h"

#include <string.h>

enum {
	WORTH_A_TABLE = 6,       /* cost of an element */
	DIVISION_COST = 8,       /* of division, remainder and what is dearer; other operations cost 1 */
	FEWEST_TURNS = 8,        /* of the loops around the axis */
	MOST_TABLE_BYTES = 16384 /* each */
};

static bool is_dear(enum lth_scalar_op op)
{
	return op == LTH_SCALAR_DIV || op == LTH_SCALAR_FLOORDIV || op == LTH_SCALAR_MOD || op == LTH_SCALAR_REM ||
	       op >= LTH_SCALAR_EXP;
}

static unsigned cost_of(const struct lth_sx_pool *pool, lth_sx x)
{
	if (x == LTH_SX_NONE)
		return 0;
	const struct lth_sx_node *node = lth_sx_get(pool, x);
	if (node->kind != LTH_SX_OP)
		return 0;
	unsigned cost = is_dear(node->op) ? DIVISION_COST : 1;
	for (int k = 0; k < 3 && cost < WORTH_A_TABLE; k++)
		cost += cost_of(pool, node->operands[k]);
	return cost;
}

/* The place in the nest of the one axis that x depends on; LTH_NONE if it depends on none, several or another. */
static uint32_t only_axis(const struct lth_nest *nest, const struct lth_sx_node *node)
{
	for (uint32_t depth = 0; depth < nest->num_axes; depth++)
		if (node->axes == 1u << nest->axes[depth])
			return depth;
	return LTH_NONE;
}

static int64_t turns_around(struct lth_map *map, uint32_t depth)
{
	int64_t turns = 1;
	for (uint32_t i = 0; i < depth && turns < FEWEST_TURNS; i++)
		turns *= lth_nest_hint(map->lower, map->nest.extents[i]);
	return turns;
}

static bool deserves(struct lth_map *map, lth_sx x, const struct lth_sx_node *node, uint32_t depth)
{
	struct lth_sx_pool *pool = map->lower->pool;
	lth_sx stride;
	int64_t bytes = (lth_dtype_bits(node->dtype) + 7) / 8, hint;
	/* scratch is planned before the run: its size must not depend on data */
	if (lth_dim_depends_on_data(map->lower->graph->dims, map->nest.extents[depth]) ||
	    !lth_dim_eval_hint(map->lower->graph->dims, map->nest.extents[depth], &hint))
		return false;
	return hint <= MOST_TABLE_BYTES / bytes && node->kind == LTH_SX_OP && !node->has_load && !node->has_stage &&
	       turns_around(map, depth) >= FEWEST_TURNS &&
	       !(node->dtype == LTH_DTYPE_I64 && lth_sx_stride(pool, x, map->nest.axes[depth], &stride)) &&
	       cost_of(pool, x) >= WORTH_A_TABLE;
}

/* The largest such expressions below x. */
static void find_tables(struct lth_map *map, lth_sx x, uint8_t *seen)
{
	if (x == LTH_SX_NONE || seen[x] || map->tables.count == LTH_MAX_TABLES)
		return;
	seen[x] = 1;
	const struct lth_sx_node node = *lth_sx_get(map->lower->pool, x);
	uint32_t depth = only_axis(&map->nest, &node);
	if (depth != LTH_NONE && deserves(map, x, &node, depth)) {
		map->tables.rows[map->tables.count++] = (struct lth_table){.x = x, .axis = map->nest.axes[depth]};
		return;
	}
	for (int k = 0; k < 3; k++)
		find_tables(map, node.operands[k], seen);
}

static void fill_body(void *context)
{
	struct lth_map *map = context;
	struct lth_emitter *emitter = &map->emitter;
	struct lth_loop_fn *fn = emitter->fn;
	for (uint32_t k = 0; k < map->tables.count; k++) {
		const struct lth_table *table = &map->tables.rows[k];
		if (table->axis != emitter->vector_axis)
			continue;
		enum lth_dtype dtype = lth_sx_get(emitter->pool, table->x)->dtype;
		lth_lv value = lth_emit(emitter, table->x);
		lth_lv place = lth_loop_offset(fn, table->pointer, emitter->axes[table->axis], dtype);
		lth_loop_store(fn, place, value, dtype, emitter->mask);
	}
}

/* The expressions of all roots that get tables. */
static void choose_tables(struct lth_map *map)
{
	uint32_t size = 0;
	for (uint32_t k = 0; k < 2 * map->num_outputs; k++)
		size = map->roots[k].x >= size ? map->roots[k].x + 1 : size;
	uint8_t *seen = lth_arena_alloc(map->lower->arena, size);
	if (!seen)
		return;
	memset(seen, 0, size);
	for (uint32_t k = 0; k < 2 * map->num_outputs; k++)
		find_tables(map, map->roots[k].x, seen);
}

/* Gives the tables of an axis their places from `*bytes` on, which moves behind them; how many there are. */
static uint32_t place_tables(struct lth_map *map, uint32_t depth, unsigned lanes, lth_dim *bytes)
{
	struct lth_dims *dims = map->lower->graph->dims;
	struct lth_loop_fn *fn = map->emitter.fn;
	lth_dim line = lth_dim_const(dims, 64);
	/* whole vectors are read */
	lth_dim count = lth_dim_add(dims, map->nest.extents[depth], lth_dim_const(dims, lanes));
	uint32_t placed = 0;
	for (uint32_t k = 0; k < map->tables.count; k++) {
		struct lth_table *table = &map->tables.rows[k];
		if (table->axis != map->nest.axes[depth])
			continue;
		unsigned bits = lth_dtype_bits(lth_sx_get(map->lower->pool, table->x)->dtype);
		lth_dim own = lth_dim_mul(dims, count, lth_dim_const(dims, (bits + 7) / 8));
		lth_lv at = lth_lower_dim(map->lower, *bytes);
		table->pointer = lth_loop_offset(fn, lth_loop_scratch(fn), at, LTH_DTYPE_U8);
		*bytes = lth_dim_add(dims, *bytes, lth_dim_mul(dims, lth_dim_ceildiv(dims, own, line), line));
		placed++;
	}
	return placed;
}

void lth_tables_fill(struct lth_map *map, unsigned lanes, struct lth_kernel_spec *out)
{
	lth_dim bytes = lth_dim_const(map->lower->graph->dims, 0);
	if (lanes < 2)
		return;
	choose_tables(map);
	for (uint32_t depth = 0; depth < map->nest.num_axes; depth++)
		if (place_tables(map, depth, lanes, &bytes) > 0)
			lth_emit_vector_loop(&map->emitter, map->nest.axes[depth], map->nest.extents[depth],
					     LTH_LV_NONE, LTH_LV_NONE, lanes, fill_body, map);
	if (map->tables.count)
		out->scratch_bytes = bytes;
	map->emitter.tabulated = map->tables.count > 0;
}

void lth_tables_read(struct lth_map *map, uint32_t axis)
{
	struct lth_emitter *emitter = &map->emitter;
	struct lth_loop_fn *fn = emitter->fn;
	bool vector = axis == emitter->vector_axis && emitter->lanes > 1;
	for (uint32_t k = 0; k < map->tables.count; k++) {
		const struct lth_table *table = &map->tables.rows[k];
		if (table->axis != axis)
			continue;
		enum lth_dtype dtype = lth_sx_get(emitter->pool, table->x)->dtype;
		lth_lv place = lth_loop_offset(fn, table->pointer, emitter->axes[axis], dtype);
		lth_emit_preset(emitter, table->x, lth_loop_load(fn, place, dtype, 1, LTH_LV_NONE), false);
		if (vector)
			lth_emit_preset(emitter, table->x,
					lth_loop_load(fn, place, dtype, emitter->lanes, LTH_LV_NONE), true);
	}
}
