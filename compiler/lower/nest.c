/* Loop nests: which neighbouring axes are one, and how loads move along an axis. */
#include "compiler/lower/lower_group.h"

#include <string.h>

/* A walk over all expressions below some roots, each visited once. */
struct walk {
	struct lth_lower *lower;
	uint8_t *seen;
	uint32_t size;
};

static bool walk_begin(struct walk *walk, struct lth_lower *lower, uint32_t num_nodes)
{
	walk->lower = lower;
	walk->size = num_nodes;
	walk->seen = lth_arena_alloc(lower->arena, num_nodes + 1);
	return walk->seen != NULL;
}

/* Highest expression id among the roots, plus one: ids below a root are smaller than it. */
static uint32_t roots_end(const lth_sx *roots, uint32_t num_roots)
{
	uint32_t end = 0;
	for (uint32_t i = 0; i < num_roots; i++)
		if (roots[i] != LTH_SX_NONE && roots[i] + 1 > end)
			end = roots[i] + 1;
	return end;
}

/* Does x use axes `outer` and `inner` only inside addresses that pass through both as through one axis? */
static bool merges(struct walk *walk, lth_sx x, uint32_t outer, uint32_t inner, lth_sx inner_extent)
{
	struct lth_sx_pool *pool = walk->lower->pool;
	uint32_t bits = 1u << outer | 1u << inner;
	if (x == LTH_SX_NONE)
		return true;
	const struct lth_sx_node node = *lth_sx_get(pool, x);
	if (!(node.axes & bits))
		return true;
	if (x < walk->size) {
		if (walk->seen[x])
			return true;
		walk->seen[x] = 1;
	}
	if (node.kind == LTH_SX_AXIS)
		return false;
	if (node.kind == LTH_SX_LOAD) {
		lth_sx a, b;
		if (!lth_sx_stride(pool, node.operands[0], outer, &a) ||
		    !lth_sx_stride(pool, node.operands[0], inner, &b))
			return false;
		return lth_sx_op2(pool, LTH_SCALAR_MUL, b, inner_extent) == a;
	}
	for (int k = 0; k < 3; k++)
		if (!merges(walk, node.operands[k], outer, inner, inner_extent))
			return false;
	return true;
}

/* Store addresses are roots too: as if they were loads. */
static bool root_merges(struct walk *walk, lth_sx root, bool address, uint32_t outer, uint32_t inner, lth_sx extent)
{
	lth_sx a, b;
	if (!address)
		return merges(walk, root, outer, inner, extent);
	return lth_sx_stride(walk->lower->pool, root, outer, &a) && lth_sx_stride(walk->lower->pool, root, inner, &b) &&
	       lth_sx_op2(walk->lower->pool, LTH_SCALAR_MUL, b, extent) == a;
}

void lth_nest_merge(struct lth_lower *lower, struct lth_nest *nest, struct lth_root *roots, uint32_t num_roots)
{
	for (uint32_t i = nest->num_axes; i-- > 1;) {
		uint32_t outer = nest->axes[i - 1], inner = nest->axes[i];
		lth_sx extent = lth_sx_dim(lower->pool, nest->extents[i]);
		struct walk walk;
		lth_sx ids[LTH_MAX_ROOTS];
		for (uint32_t k = 0; k < num_roots; k++)
			ids[k] = roots[k].x;
		if (!walk_begin(&walk, lower, roots_end(ids, num_roots)))
			return;
		bool good = true;
		for (uint32_t k = 0; good && k < num_roots; k++)
			good = root_merges(&walk, roots[k].x, roots[k].is_address, outer, inner, extent);
		if (!good)
			continue;
		lth_dim merged = lth_dim_mul(lower->graph->dims, nest->extents[i - 1], nest->extents[i]);
		if (merged == LTH_DIM_NONE)
			continue;
		/* the outer axis becomes 0 and the inner one runs through both */
		lth_sx replacement[LTH_MAX_AXES];
		memset(replacement, 0xff, sizeof(replacement));
		replacement[outer] = lth_sx_int(lower->pool, 0);
		for (uint32_t k = 0; k < num_roots; k++)
			roots[k].x = lth_sx_substitute(lower->pool, roots[k].x, replacement, LTH_MAX_AXES);
		lth_sx_set_axis(lower->pool, inner, merged, i - 1);
		nest->axes[i - 1] = inner;
		nest->extents[i - 1] = merged;
		memmove(nest->axes + i, nest->axes + i + 1, (nest->num_axes - i - 1) * sizeof(nest->axes[0]));
		memmove(nest->extents + i, nest->extents + i + 1, (nest->num_axes - i - 1) * sizeof(nest->extents[0]));
		nest->num_axes--;
	}
}

static void count_loads(struct walk *walk, lth_sx x, uint32_t axis, uint32_t *unit, uint32_t *irregular)
{
	struct lth_sx_pool *pool = walk->lower->pool;
	if (x == LTH_SX_NONE || x >= walk->size || walk->seen[x])
		return;
	walk->seen[x] = 1;
	const struct lth_sx_node node = *lth_sx_get(pool, x);
	if (!(node.axes & (1u << axis)))
		return;
	if (node.kind == LTH_SX_LOAD) {
		lth_sx stride;
		int64_t step;
		if (lth_sx_stride(pool, node.operands[0], axis, &stride) &&
		    lth_sx_is_int(pool, stride, &step) && step == 1)
			++*unit;
		else
			++*irregular;
	}
	for (int k = 0; k < 3; k++)
		count_loads(walk, node.operands[k], axis, unit, irregular);
}

void lth_nest_strides(struct lth_lower *lower, const struct lth_root *roots, uint32_t num_roots, uint32_t axis,
		      uint32_t *out_unit, uint32_t *out_irregular)
{
	struct walk walk;
	lth_sx ids[LTH_MAX_ROOTS];
	*out_unit = *out_irregular = 0;
	for (uint32_t k = 0; k < num_roots; k++)
		ids[k] = roots[k].x;
	if (!walk_begin(&walk, lower, roots_end(ids, num_roots)))
		return;
	for (uint32_t k = 0; k < num_roots; k++)
		if (!roots[k].is_address)
			count_loads(&walk, roots[k].x, axis, out_unit, out_irregular);
}

int64_t lth_nest_hint(struct lth_lower *lower, lth_dim extent)
{
	int64_t value;
	enum { UNKNOWN = 64, MOST = 1 << 24 };
	if (!lth_dim_eval_likely(lower->graph->dims, extent, &value))
		return UNKNOWN;
	return value < 1 ? 1 : value > MOST ? MOST : value;
}

/* For each operand: 1 read at `address`, 2 read elsewhere (or both). */
static void note_loads(struct walk *walk, lth_sx x, lth_sx address, uint8_t *how)
{
	if (x == LTH_SX_NONE || x >= walk->size || walk->seen[x])
		return;
	walk->seen[x] = 1;
	const struct lth_sx_node node = *lth_sx_get(walk->lower->pool, x);
	if (node.kind == LTH_SX_LOAD)
		how[node.id] |= node.operands[0] == address ? 1 : 2;
	for (int k = 0; k < 3; k++)
		note_loads(walk, node.operands[k], address, how);
}

void lth_lower_mark_in_place(struct lth_lower *lower, lth_sx value, lth_sx address, enum lth_dtype memory,
			     uint32_t first)
{
	struct walk walk;
	uint8_t *how = lth_arena_alloc(lower->arena, lower->num_operands + 1);
	if (value == LTH_SX_NONE || !how || !walk_begin(&walk, lower, value + 1))
		return;
	note_loads(&walk, value, address, how);
	for (uint32_t i = first; i < lower->num_operands; i++) {
		lth_value_id id = lower->operands[i].value;
		lower->operands[i].in_place =
			how[i] == 1 && id != LTH_NONE && !lower->operands[i].written &&
			lth_dtype_bits(lower->graph->values[id].type.dtype) == lth_dtype_bits(memory);
	}
}
