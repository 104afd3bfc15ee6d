/* From scalar expressions to loop IR. Each expression is emitted once in the scope where it is first needed; parts that
 * an outer loop can compute are emitted there by hoisting, so no later pass has to find them (KERNELS.md, 6). */
#include "compiler/lower/lower_group.h"

#include <assert.h>
#include <string.h>

enum { FARTHEST_STEP = 4 }; /* elements between lanes up to which whole vectors are read */

void lth_emitter_init(struct lth_emitter *emitter, struct lth_lower *lower)
{
	*emitter = (struct lth_emitter){.lower = lower,
					.fn = lower->fn,
					.pool = lower->pool,
					.vector_axis = LTH_NONE,
					.lanes = 1,
					.mask = LTH_LV_NONE,
					.anchor = LTH_LV_NONE};
	for (int i = 0; i < LTH_MAX_STAGES; i++)
		emitter->stages[i] = LTH_LV_NONE;
}

/* Makes the memo tables large enough for expression x. */
static bool memo_reserve(struct lth_emitter *emitter, lth_sx x)
{
	if (x < emitter->memo_size)
		return true;
	uint32_t size = emitter->memo_size ? emitter->memo_size : 256;
	while (size <= x)
		size *= 2;
	for (int mode = 0; mode < 2; mode++) {
		lth_lv *memo = lth_arena_array(emitter->lower->arena, size, sizeof(*memo));
		uint32_t *walked = lth_arena_array(emitter->lower->arena, size, sizeof(*walked));
		if (!memo || !walked)
			return false;
		memset(memo, 0xff, size * sizeof(*memo));
		if (emitter->memo_size) {
			memcpy(memo, emitter->memo[mode], emitter->memo_size * sizeof(*memo));
			memcpy(walked, emitter->walked[mode], emitter->memo_size * sizeof(*walked));
		}
		emitter->memo[mode] = memo;
		emitter->walked[mode] = walked;
	}
	emitter->memo_size = size;
	return true;
}

uint32_t lth_emitter_open(struct lth_emitter *emitter)
{
	return emitter->num_trail;
}

void lth_emitter_close(struct lth_emitter *emitter, uint32_t mark)
{
	while (emitter->num_trail > mark) {
		uint32_t entry = emitter->trail[--emitter->num_trail];
		emitter->memo[entry & 1][entry >> 1] = LTH_LV_NONE;
	}
}

static void remember(struct lth_emitter *emitter, int mode, lth_sx x, lth_lv value)
{
	uint32_t *trail = lth_arena_grow(emitter->lower->arena, emitter->trail, &emitter->cap_trail,
					 emitter->num_trail + 1, sizeof(*trail));
	if (!trail)
		return;
	emitter->trail = trail;
	trail[emitter->num_trail++] = x << 1 | (uint32_t)mode;
	emitter->memo[mode][x] = value;
}

void lth_emit_set_axis(struct lth_emitter *emitter, uint32_t axis, lth_lv value)
{
	emitter->axes[axis] = value;
	emitter->bound |= 1u << axis;
}

void lth_emit_unset_axis(struct lth_emitter *emitter, uint32_t axis)
{
	emitter->bound &= ~(1u << axis);
}

static uint32_t vector_bit(const struct lth_emitter *emitter)
{
	return emitter->vector_axis == LTH_NONE ? 0 : 1u << emitter->vector_axis;
}

static lth_lv emit(struct lth_emitter *emitter, lth_sx x, int mode);

/* The address as a vector, and what stands there. */
static lth_lv emit_gather(struct lth_emitter *emitter, const struct lth_sx_node *node)
{
	lth_lv index = emit(emitter, node->operands[0], 1);
	if (lth_loop_get(emitter->fn, index)->lanes == 1)
		index = lth_loop_splat(emitter->fn, index, emitter->lanes);
	return lth_loop_gather(emitter->fn, lth_loop_pointer(emitter->fn, node->id), index, node->memory,
			       emitter->mask);
}

/* Can elements of this type be moved between lanes by numbers in one instruction? */
static bool permutes(const struct lth_lower_target *target, enum lth_dtype dtype, unsigned lanes)
{
	return lth_dtype_bits(dtype) == 32 && lanes >= 8 && lanes * 4 <= target->vector_bytes;
}

/* Addresses between the first lane's and `reach` behind it, at most a vector: that piece of memory, and each lane its
 * element of it. */
static lth_lv emit_window(struct lth_emitter *emitter, const struct lth_sx_node *node, lth_lv first, lth_lv reach)
{
	struct lth_loop_fn *fn = emitter->fn;
	lth_lv place = lth_loop_op2(fn, LTH_SCALAR_SUB, emit(emitter, node->operands[0], 1), first), near, far, result;
	lth_lv place_bits = lth_loop_bitcast(fn, place, LTH_DTYPE_U64);
	lth_lv reach_bits = lth_loop_bitcast(fn, reach, LTH_DTYPE_U64);
	lth_lv inside = lth_loop_op2(fn, LTH_SCALAR_LE, place_bits, reach_bits);
	lth_lv short_reach = lth_loop_op2(fn, LTH_SCALAR_LT, reach_bits,
					  lth_loop_const_i(fn, LTH_DTYPE_U64, emitter->lanes));
	lth_loop_if(fn, lth_loop_op2(fn, LTH_SCALAR_AND, short_reach, lth_loop_reduce(fn, LTH_SCALAR_AND, inside)));
	lth_lv mask = lth_loop_mask(fn, lth_loop_op2(fn, LTH_SCALAR_ADD, reach, lth_loop_i64(fn, 1)), emitter->lanes);
	near = lth_loop_load(fn, lth_loop_offset(fn, lth_loop_pointer(fn, node->id), first, node->memory), node->memory,
			     emitter->lanes, mask);
	near = lth_loop_permute(fn, near, lth_loop_cast(fn, place, LTH_DTYPE_I32));
	lth_loop_else(fn, &near, 1);
	far = emit_gather(emitter, node);
	lth_loop_end_if(fn, &far, 1, &result);
	return result;
}

/* An address that moves unevenly, mostly by at most one element a lane (clamped, wrapped, scaled): many vectors are
 * contiguous, as the first and the last lane tell, or lie within a vector's reach. */
static lth_lv emit_mostly_contiguous(struct lth_emitter *emitter, const struct lth_sx_node *node)
{
	struct lth_loop_fn *fn = emitter->fn;
	lth_sx moved[LTH_MAX_AXES];
	int64_t way = (int64_t)emitter->lanes - 1;
	memset(moved, 0xff, sizeof(moved));
	moved[emitter->vector_axis] = lth_sx_op2(emitter->pool, LTH_SCALAR_ADD,
						 lth_sx_axis(emitter->pool, emitter->vector_axis),
						 lth_sx_int(emitter->pool, way));
	lth_lv first, last, fast, slow, result;
	if (emitter->tabulated) {
		if (emitter->mask != LTH_LV_NONE)
			return emit_gather(emitter, node);
		lth_lv index = emit(emitter, node->operands[0], 1);
		first = lth_loop_extract(fn, index, 0);
		last = lth_loop_extract(fn, index, emitter->lanes - 1);
	} else {
		first = emit(emitter, node->operands[0], 0);
		last = emit(emitter, lth_sx_substitute(emitter->pool, node->operands[0], moved, LTH_MAX_AXES), 0);
	}
	lth_lv step = lth_loop_op2(fn, LTH_SCALAR_SUB, last, first);
	lth_loop_if(fn, lth_loop_op2(fn, LTH_SCALAR_EQ, step, lth_loop_i64(fn, way)));
	fast = lth_loop_load(fn, lth_loop_offset(fn, lth_loop_pointer(fn, node->id), first, node->memory), node->memory,
			     emitter->lanes, emitter->mask);
	lth_loop_else(fn, &fast, 1);
	uint32_t mark = lth_emitter_open(emitter);
	if (emitter->tabulated && permutes(emitter->lower->target, node->dtype, emitter->lanes))
		slow = emit_window(emitter, node, first, step);
	else
		slow = emit_gather(emitter, node);
	lth_emitter_close(emitter, mark);
	lth_loop_end_if(fn, &slow, 1, &result);
	return result;
}

/* An address that stands still for `*out_times` places of the vector axis and then moves by one element. */
static bool repeats(struct lth_emitter *emitter, lth_sx address, unsigned *out_times)
{
	struct lth_sx_pool *pool = emitter->pool;
	const struct lth_sx_node node = *lth_sx_get(pool, address);
	uint32_t bit = vector_bit(emitter);
	int64_t times;
	if (node.kind != LTH_SX_OP || !emitter->aligned || emitter->mask != LTH_LV_NONE)
		return false;
	lth_sx a = node.operands[0], b = node.operands[1];
	if (node.op == LTH_SCALAR_ADD) {
		bool left = lth_sx_get(pool, a)->axes & bit, right = lth_sx_get(pool, b)->axes & bit;
		return left != right && repeats(emitter, left ? a : b, out_times);
	}
	if (node.op != LTH_SCALAR_FLOORDIV || a != lth_sx_axis(pool, emitter->vector_axis) ||
	    !lth_sx_is_int(pool, b, &times) || times < 2 || emitter->lanes % times != 0)
		return false;
	*out_times = (unsigned)times;
	return true;
}

static lth_lv emit_repeated(struct lth_emitter *emitter, const struct lth_sx_node *node, unsigned times)
{
	struct lth_loop_fn *fn = emitter->fn;
	uint32_t from[LTH_MAX_LANES];
	lth_lv at = lth_loop_offset(fn, lth_loop_pointer(fn, node->id), emit(emitter, node->operands[0], 0), node->memory);
	unsigned count = emitter->lanes / times;
	lth_lv few = lth_loop_load(fn, at, node->memory, count, LTH_LV_NONE);
	if (count == 1)
		return lth_loop_splat(fn, few, emitter->lanes);
	for (unsigned i = 0; i < emitter->lanes; i++)
		from[i] = i / times;
	return lth_loop_shuffle(fn, few, few, from, emitter->lanes);
}

/* Elements a few places apart (or one back): contiguous vectors, of which the last ends at the last lane's element, and
 * the lanes picked out of them. */
static lth_lv emit_strided(struct lth_emitter *emitter, lth_lv at, enum lth_dtype memory, int64_t step)
{
	struct lth_loop_fn *fn = emitter->fn;
	int64_t lanes = emitter->lanes, parts = step < 0 ? 1 : step;
	uint32_t from[LTH_MAX_LANES];
	lth_lv result = LTH_LV_NONE;
	if (step < 0)
		at = lth_loop_offset(fn, at, lth_loop_i64(fn, 1 - lanes), memory);
	for (int64_t part = 0; part < parts; part++) {
		int64_t first = part * (lanes - 1);
		lth_lv place = lth_loop_offset(fn, at, lth_loop_i64(fn, first), memory);
		lth_lv vector = lth_loop_load(fn, place, memory, emitter->lanes, LTH_LV_NONE);
		for (int64_t i = 0; i < lanes; i++) {
			int64_t element = step < 0 ? lanes - 1 - i : i * step - first;
			bool here = element >= 0 && element < lanes;
			from[i] = (uint32_t)(!here ? i : part ? lanes + element : element);
		}
		result = lth_loop_shuffle(fn, part ? result : vector, vector, from, emitter->lanes);
	}
	return result;
}

static lth_lv emit_load(struct lth_emitter *emitter, const struct lth_sx_node *node, int mode)
{
	struct lth_loop_fn *fn = emitter->fn;
	lth_lv pointer = lth_loop_pointer(fn, node->id);
	uint32_t bit = vector_bit(emitter);
	if (mode == 0 || !(node->axes & bit)) {
		lth_lv at = lth_loop_offset(fn, pointer, emit(emitter, node->operands[0], 0), node->memory);
		return lth_loop_load(fn, at, node->memory, 1, LTH_LV_NONE);
	}
	lth_sx stride;
	int64_t step;
	if (lth_sx_stride(emitter->pool, node->operands[0], emitter->vector_axis, &stride)) {
		lth_lv at = lth_loop_offset(fn, pointer, emit(emitter, node->operands[0], 0), node->memory);
		if (lth_sx_is_int(emitter->pool, stride, &step) && step == 1)
			return lth_loop_load(fn, at, node->memory, emitter->lanes, emitter->mask);
		if (lth_sx_is_int(emitter->pool, stride, &step) && step >= -1 && step != 0 && step <= FARTHEST_STEP &&
		    emitter->mask == LTH_LV_NONE)
			return emit_strided(emitter, at, node->memory, step);
		lth_lv lanes = lth_loop_ramp(fn, lth_loop_i64(fn, 0), emitter->lanes);
		lanes = lth_loop_op2(fn, LTH_SCALAR_MUL, lanes, emit(emitter, stride, 0));
		return lth_loop_gather(fn, at, lanes, node->memory, emitter->mask);
	}
	unsigned times;
	if (repeats(emitter, node->operands[0], &times))
		return emit_repeated(emitter, node, times);
	bool near = emitter->tabulated && !lth_sx_get(emitter->pool, node->operands[0])->has_load &&
		    permutes(emitter->lower->target, node->dtype, emitter->lanes);
	return near || lth_sx_steps(emitter->pool, node->operands[0], emitter->vector_axis)
		       ? emit_mostly_contiguous(emitter, node)
		       : emit_gather(emitter, node);
}

/* An index read from data: in range, or the kernel fails and 0 stands in. */
static lth_lv emit_check(struct lth_emitter *emitter, const struct lth_sx_node *node, int mode)
{
	struct lth_loop_fn *fn = emitter->fn;
	lth_lv index = emit(emitter, node->operands[0], mode), limit = emit(emitter, node->operands[1], mode);
	lth_lv zero = lth_loop_i64(fn, 0);
	lth_lv low = lth_loop_op2(fn, LTH_SCALAR_LT, index, zero), high = lth_loop_op2(fn, LTH_SCALAR_LE, limit, index);
	lth_lv bad = lth_loop_op2(fn, LTH_SCALAR_OR, low, high), fails = bad;
	if (emitter->mask != LTH_LV_NONE && lth_loop_get(fn, bad)->lanes > 1)
		fails = lth_loop_op2(fn, LTH_SCALAR_AND, bad, emitter->mask);
	lth_loop_fail(fn, fails, LTH_KERNEL_INDEX);
	return lth_loop_op3(fn, LTH_SCALAR_SELECT, bad, zero, index);
}

/* Indices along the vector axis against a bound that is the same for all lanes: the lanes below a count. */
static bool emit_bound(struct lth_emitter *emitter, const struct lth_sx_node *node, lth_lv *out)
{
	struct lth_loop_fn *fn = emitter->fn;
	struct lth_sx_pool *pool = emitter->pool;
	lth_sx stride;
	int64_t step;
	if ((node->op != LTH_SCALAR_LT && node->op != LTH_SCALAR_LE) || emitter->lanes == 1 ||
	    lth_sx_get(pool, node->operands[0])->dtype != LTH_DTYPE_I64)
		return false;
	bool right = lth_sx_get(pool, node->operands[1])->axes & vector_bit(emitter);
	lth_sx index = node->operands[right], bound = node->operands[!right];
	if ((lth_sx_get(pool, bound)->axes & vector_bit(emitter)) || lth_sx_get(pool, bound)->has_stage ||
	    lth_sx_get(pool, index)->has_stage ||
	    !(lth_sx_get(pool, index)->axes & vector_bit(emitter)) ||
	    !lth_sx_stride(pool, index, emitter->vector_axis, &stride) || !lth_sx_is_int(pool, stride, &step) || step != 1)
		return false;
	lth_lv limit = emit(emitter, bound, 0), place = emit(emitter, index, 0);
	lth_lv count = lth_loop_op2(fn, LTH_SCALAR_SUB, limit, place);
	if ((node->op == LTH_SCALAR_LE) != right)
		count = lth_loop_op2(fn, LTH_SCALAR_ADD, count, lth_loop_i64(fn, 1));
	*out = lth_loop_mask(fn, count, emitter->lanes);
	if (right)
		*out = lth_loop_op1(fn, LTH_SCALAR_NOT, *out);
	return true;
}

static lth_lv emit_op(struct lth_emitter *emitter, const struct lth_sx_node *node, int mode)
{
	struct lth_loop_fn *fn = emitter->fn;
	lth_lv operands[3] = {LTH_LV_NONE, LTH_LV_NONE, LTH_LV_NONE}, bound;
	if (mode == 1 && emit_bound(emitter, node, &bound))
		return bound;
	for (int k = 0; k < 3; k++)
		if (node->operands[k] != LTH_SX_NONE)
			operands[k] = emit(emitter, node->operands[k], mode);
	switch (node->op) {
	case LTH_SCALAR_CAST:
		return lth_loop_cast(fn, operands[0], node->dtype);
	case LTH_SCALAR_BITCAST:
		return lth_loop_bitcast(fn, operands[0], node->dtype);
	case LTH_SCALAR_ROUND_TO:
		return lth_loop_round_to(fn, operands[0], node->memory);
	default:
		break;
	}
	if (operands[2] != LTH_LV_NONE)
		return lth_loop_op3(fn, node->op, operands[0], operands[1], operands[2]);
	if (operands[1] != LTH_LV_NONE)
		return lth_loop_op2(fn, node->op, operands[0], operands[1]);
	return lth_loop_op1(fn, node->op, operands[0]);
}

static lth_lv emit_new(struct lth_emitter *emitter, const struct lth_sx_node *node, int mode)
{
	struct lth_loop_fn *fn = emitter->fn;
	switch (node->kind) {
	case LTH_SX_CONST:
		if (node->dtype == LTH_DTYPE_F32 || node->dtype == LTH_DTYPE_F64)
			return lth_loop_const_f(fn, node->dtype, node->f);
		return lth_loop_const_i(fn, node->dtype, node->i);
	case LTH_SX_DIM:
		return lth_lower_dim(emitter->lower, node->dim);
	case LTH_SX_AXIS:
		assert(emitter->bound & (1u << node->id));
		if (mode == 1 && node->id == emitter->vector_axis)
			return lth_loop_ramp(fn, emitter->axes[node->id], emitter->lanes);
		return emitter->axes[node->id];
	case LTH_SX_STAGE:
		assert(emitter->stages[node->id] != LTH_LV_NONE);
		return emitter->stages[node->id];
	case LTH_SX_ANCHOR:
		assert(emitter->anchor != LTH_LV_NONE);
		return emitter->anchor;
	case LTH_SX_LOAD:
		return emit_load(emitter, node, mode);
	case LTH_SX_CHECK:
		return emit_check(emitter, node, mode);
	default:
		return emit_op(emitter, node, mode);
	}
}

static lth_lv emit(struct lth_emitter *emitter, lth_sx x, int mode)
{
	if (x == LTH_SX_NONE || !memo_reserve(emitter, x))
		return lth_loop_i64(emitter->fn, 0);
	const struct lth_sx_node node = *lth_sx_get(emitter->pool, x);
	if (!(node.axes & vector_bit(emitter)) && !node.has_stage)
		mode = 0;
	if (emitter->memo[mode][x] != LTH_LV_NONE)
		return emitter->memo[mode][x];
	lth_lv value = emit_new(emitter, &node, mode);
	if (node.kind != LTH_SX_CONST && node.kind != LTH_SX_DIM)
		remember(emitter, mode, x, value);
	return value;
}

lth_lv lth_emit(struct lth_emitter *emitter, lth_sx x)
{
	return emit(emitter, x, 1);
}

void lth_emit_preset(struct lth_emitter *emitter, lth_sx x, lth_lv value, bool vector)
{
	if (memo_reserve(emitter, x))
		remember(emitter, vector, x, value);
}

lth_lv lth_emit_scalar(struct lth_emitter *emitter, lth_sx x)
{
	return emit(emitter, x, 0);
}

/* Walks as emit would; what is ready is emitted whole. */
static void hoist(struct lth_emitter *emitter, lth_sx x, int mode)
{
	if (x == LTH_SX_NONE || !memo_reserve(emitter, x))
		return;
	const struct lth_sx_node node = *lth_sx_get(emitter->pool, x);
	if (node.kind == LTH_SX_CONST || node.kind == LTH_SX_DIM)
		return;
	if (!(node.axes & vector_bit(emitter)) && !node.has_stage)
		mode = 0;
	if (emitter->memo[mode][x] != LTH_LV_NONE || emitter->walked[mode][x] == emitter->num_walks)
		return;
	emitter->walked[mode][x] = emitter->num_walks;
	if (!(node.axes & ~emitter->bound) && (!node.has_stage || emitter->num_stages > 0)) {
		emit(emitter, x, mode);
		return;
	}
	if (node.kind == LTH_SX_LOAD) {
		lth_sx stride;
		bool affine = mode == 1 && emitter->vector_axis != LTH_NONE &&
			      lth_sx_stride(emitter->pool, node.operands[0], emitter->vector_axis, &stride);
		hoist(emitter, node.operands[0], affine ? 0 : mode);
		return;
	}
	for (int k = 0; k < 3; k++)
		hoist(emitter, node.operands[k], mode);
}

void lth_emit_hoist(struct lth_emitter *emitter, lth_sx x)
{
	emitter->num_walks++;
	hoist(emitter, x, 1);
}

void lth_emit_store(struct lth_emitter *emitter, uint32_t operand, enum lth_dtype memory, lth_sx address, lth_lv value)
{
	struct lth_loop_fn *fn = emitter->fn;
	lth_lv pointer = lth_loop_pointer(fn, operand);
	lth_lv at = lth_loop_offset(fn, pointer, lth_emit_scalar(emitter, address), memory);
	lth_sx stride;
	int64_t step;
	bool varies = emitter->vector_axis != LTH_NONE &&
		      (lth_sx_get(emitter->pool, address)->axes & vector_bit(emitter)) && emitter->lanes > 1;
	if (!varies) {
		if (lth_loop_get(fn, value)->lanes > 1)
			value = lth_loop_extract(fn, value, 0);
		lth_loop_store(fn, at, value, memory, LTH_LV_NONE);
		return;
	}
	if (lth_loop_get(fn, value)->lanes == 1)
		value = lth_loop_splat(fn, value, emitter->lanes);
	bool affine = lth_sx_stride(emitter->pool, address, emitter->vector_axis, &stride);
	assert(affine);
	(void)affine;
	if (lth_sx_is_int(emitter->pool, stride, &step) && step == 1) {
		lth_loop_store(fn, at, value, memory, emitter->mask);
		return;
	}
	lth_lv lanes = lth_loop_ramp(fn, lth_loop_i64(fn, 0), emitter->lanes);
	lanes = lth_loop_op2(fn, LTH_SCALAR_MUL, lanes, lth_emit_scalar(emitter, stride));
	lth_loop_scatter(fn, at, lanes, value, memory, emitter->mask);
}

void lth_emit_vector_loop(struct lth_emitter *emitter, uint32_t axis, lth_dim extent, lth_lv begin, lth_lv end,
			  unsigned lanes, void (*body)(void *context), void *context)
{
	struct lth_loop_fn *fn = emitter->fn;
	int64_t fixed = -1;
	bool constant = lth_dim_is_const(emitter->lower->graph->dims, extent, &fixed) && begin == LTH_LV_NONE &&
			end == LTH_LV_NONE;
	lth_lv low = begin == LTH_LV_NONE ? lth_loop_i64(fn, 0) : begin;
	lth_lv high = end == LTH_LV_NONE ? lth_lower_dim(emitter->lower, extent) : end;
	lth_lv count = lth_loop_op2(fn, LTH_SCALAR_SUB, high, low);
	lth_lv width = lth_loop_i64(fn, (int64_t)lanes);
	lth_lv left = lth_loop_op2(fn, LTH_SCALAR_MOD, count, width);
	lth_lv middle = lth_loop_op2(fn, LTH_SCALAR_SUB, high, left);
	emitter->vector_axis = lanes > 1 ? axis : LTH_NONE;
	emitter->lanes = lanes;
	emitter->mask = LTH_LV_NONE;
	emitter->aligned = true;
	if (!constant || fixed >= (int64_t)lanes) {
		uint32_t mark = lth_emitter_open(emitter);
		lth_lv index = lth_loop_for(fn, low, middle, (int64_t)lanes, NULL, 0, NULL);
		lth_emit_set_axis(emitter, axis, index);
		body(context);
		lth_loop_end_for(fn, NULL, 0, NULL);
		lth_emitter_close(emitter, mark);
		lth_emit_unset_axis(emitter, axis);
	}
	if (lanes > 1 && (!constant || fixed % (int64_t)lanes != 0)) {
		uint32_t mark = lth_emitter_open(emitter);
		lth_loop_if(fn, lth_loop_op2(fn, LTH_SCALAR_LT, middle, high));
		emitter->mask = lth_loop_mask(fn, left, lanes);
		lth_emit_set_axis(emitter, axis, middle);
		body(context);
		lth_loop_end_if(fn, NULL, 0, NULL);
		lth_emitter_close(emitter, mark);
		lth_emit_unset_axis(emitter, axis);
		emitter->mask = LTH_LV_NONE;
	}
	emitter->vector_axis = LTH_NONE;
	emitter->lanes = 1;
	emitter->aligned = false;
}
