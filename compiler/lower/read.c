/* What element functions call: reading values through the group (lower.h). A value produced inside the group is
 * evaluated in place, so fusion is composition; others become loads. */
#include "compiler/lower/lower_group.h"

#include "compiler/ops/op.h"
#include "runtime/base/hash.h"

#include <assert.h>
#include <string.h>

enum { MAX_READ_DEPTH = 400 };

struct lth_graph *lth_lower_graph(struct lth_lower *lower)
{
	return lower->graph;
}

struct lth_sx_pool *lth_lower_pool(struct lth_lower *lower)
{
	return lower->pool;
}

enum lth_code lth_lower_fail(struct lth_lower *lower, enum lth_code code, const struct lth_node *node, const char *what)
{
	if (!node) /* the kernel as a whole bears its last node's name */
		node = &lower->graph->nodes[lower->group->nodes[lower->group->num_nodes - 1]];
	if (lower->code == LTH_OK) {
		lower->code = code;
		lth_diag_fail(lower->diag, code, node->name, NULL, NULL, "%s: %s", node->op->name, what);
	}
	return code;
}

bool lth_lower_in_group(const struct lth_lower *lower, lth_value_id value)
{
	const struct lth_value *v = &lower->graph->values[value];
	if (v->def != LTH_DEF_NODE)
		return false;
	for (uint32_t i = 0; i < lower->group->num_nodes; i++)
		if (lower->group->nodes[i] == v->def_id)
			return true;
	return false;
}

static bool packed_dtype(enum lth_dtype dtype)
{
	return lth_dtype_bits(dtype) < 8;
}

/* The element type of a pointer parameter: packed elements are read as bytes, what is moved in words as these, handles
 * as one. */
enum lth_dtype lth_pointer_dtype(enum lth_dtype dtype)
{
	if (packed_dtype(dtype))
		return LTH_DTYPE_U8;
	if (dtype == LTH_DTYPE_C64)
		return LTH_DTYPE_I32;
	return lth_is_two_words(dtype) || dtype == LTH_DTYPE_OBJECT ? LTH_DTYPE_I64 : dtype;
}

uint32_t lth_lower_operand(struct lth_lower *lower, lth_value_id value, bool written)
{
	for (uint32_t i = 0; i < lower->num_operands; i++)
		if (lower->operands[i].value == value) {
			lower->operands[i].written |= written;
			lower->fn->pointers[i].written |= written;
			return i;
		}
	struct lth_kernel_operand *operands = lth_arena_grow(lower->arena, lower->operands, &lower->cap_operands,
							     lower->num_operands + 1, sizeof(*operands));
	if (!operands)
		return 0;
	lower->operands = operands;
	operands[lower->num_operands] = (struct lth_kernel_operand){.value = value, .written = written};
	enum lth_dtype memory = lower->graph->values[value].type.dtype;
	uint32_t id = lth_loop_add_pointer(lower->fn, lth_pointer_dtype(memory), written);
	assert(id == lower->num_operands || !lth_arena_ok(lower->arena));
	lower->num_operands++;
	return id;
}

uint32_t lth_lower_packed(struct lth_lower *lower, struct lth_packed packed, enum lth_dtype memory)
{
	struct lth_kernel_operand *operands = lth_arena_grow(lower->arena, lower->operands, &lower->cap_operands,
							     lower->num_operands + 1, sizeof(*operands));
	if (!operands)
		return 0;
	lower->operands = operands;
	operands[lower->num_operands] = (struct lth_kernel_operand){.value = LTH_NONE, .packed = packed};
	lower->num_operands++;
	return lth_loop_add_pointer(lower->fn, memory, false);
}

lth_lv lth_lower_dim(struct lth_lower *lower, lth_dim dim)
{
	int64_t value;
	if (lth_dim_is_const(lower->graph->dims, dim, &value))
		return lth_loop_i64(lower->fn, value);
	return lth_lower_parameter(lower, dim);
}

lth_lv lth_lower_parameter(struct lth_lower *lower, lth_dim dim)
{
	for (uint32_t i = 0; i < lower->num_ints; i++)
		if (lower->ints[i] == dim)
			return lth_loop_int(lower->fn, i);
	lth_dim *ints =
		lth_arena_grow(lower->arena, lower->ints, &lower->cap_ints, lower->num_ints + 1, sizeof(*ints));
	if (!ints)
		return lth_loop_i64(lower->fn, 0);
	lower->ints = ints;
	ints[lower->num_ints++] = dim;
	return lth_loop_int(lower->fn, lth_loop_add_int(lower->fn));
}

static lth_sx constant_element(struct lth_lower *lower, const struct lth_value *value)
{
	const void *p = value->constant.data;
	struct lth_sx_pool *pool = lower->pool;
	switch (value->type.dtype) {
	case LTH_DTYPE_F32: {
		float f;
		memcpy(&f, p, sizeof(f));
		return lth_sx_const_f(pool, LTH_DTYPE_F32, (double)f);
	}
	case LTH_DTYPE_F64: {
		double d;
		memcpy(&d, p, sizeof(d));
		return lth_sx_const_f(pool, LTH_DTYPE_F64, d);
	}
	case LTH_DTYPE_I64:
	case LTH_DTYPE_U64: {
		int64_t i;
		memcpy(&i, p, sizeof(i));
		return lth_sx_const_i(pool, value->type.dtype, i);
	}
	case LTH_DTYPE_I32: {
		int32_t i;
		memcpy(&i, p, sizeof(i));
		return lth_sx_const_i(pool, LTH_DTYPE_I32, i);
	}
	case LTH_DTYPE_U32: {
		uint32_t i;
		memcpy(&i, p, sizeof(i));
		return lth_sx_const_i(pool, LTH_DTYPE_U32, i);
	}
	case LTH_DTYPE_I16: {
		int16_t i;
		memcpy(&i, p, sizeof(i));
		return lth_sx_const_i(pool, LTH_DTYPE_I16, i);
	}
	case LTH_DTYPE_U16: {
		uint16_t i;
		memcpy(&i, p, sizeof(i));
		return lth_sx_const_i(pool, LTH_DTYPE_U16, i);
	}
	case LTH_DTYPE_I8:
		return lth_sx_const_i(pool, LTH_DTYPE_I8, *(const int8_t *)p);
	case LTH_DTYPE_U8:
		return lth_sx_const_i(pool, LTH_DTYPE_U8, *(const uint8_t *)p);
	case LTH_DTYPE_BOOL:
		return lth_sx_const_i(pool, LTH_DTYPE_BOOL, *(const uint8_t *)p != 0);
	default:
		return LTH_SX_NONE; /* narrow floats and packed integers are loaded */
	}
}

/* 0 when an axis is empty whose index is then not one of its own, else 1: what an operator reads beside its operand, and
 * does not select, must be in memory all the same. LTH_DIM_NONE when no axis can be so. */
static lth_dim not_empty(struct lth_lower *lower, lth_value_id value, const lth_sx *index)
{
	struct lth_dims *dims = lower->graph->dims;
	const struct lth_type *type = &lower->graph->values[value].type;
	lth_dim result = LTH_DIM_NONE, one = lth_dim_const(dims, 1), top;
	for (uint32_t axis = 0; axis < type->rank; axis++) {
		int64_t min, max;
		lth_dim extent = type->dims[axis];
		lth_dim_range(dims, extent, &min, &max);
		if (min > 0 || (lth_sx_max(lower->pool, index[axis], &top) &&
				lth_dim_at_most(dims, lth_dim_add(dims, top, one), extent)))
			continue;
		lth_dim here = lth_dim_max(dims, lth_dim_const(dims, 0), lth_dim_min(dims, one, extent));
		result = result == LTH_DIM_NONE ? here : lth_dim_mul(dims, result, here);
	}
	return result;
}

lth_sx lth_lower_address(struct lth_lower *lower, lth_value_id value, const lth_sx *index)
{
	const struct lth_access *access = &lower->accesses[value];
	uint32_t rank = lower->graph->values[value].type.rank;
	lth_sx sum = lth_sx_int(lower->pool, 0);
	for (uint32_t axis = 0; axis < rank; axis++) {
		int64_t extent;
		if (lth_dim_is_const(lower->graph->dims, lower->graph->values[value].type.dims[axis], &extent) &&
		    extent == 1)
			continue; /* its index can only be 0 */
		lth_sx step = lth_sx_op2(lower->pool, LTH_SCALAR_MUL, index[axis],
					 lth_sx_dim(lower->pool, access->strides[axis]));
		sum = lth_sx_op2(lower->pool, LTH_SCALAR_ADD, sum, step);
	}
	lth_dim some = not_empty(lower, value, index);
	if (some != LTH_DIM_NONE) /* nothing else than the first place is read of what is empty */
		sum = lth_sx_op2(lower->pool, LTH_SCALAR_MUL, sum, lth_sx_dim(lower->pool, some));
	if (lth_is_two_words(lower->graph->values[value].type.dtype) && lower->word != LTH_SX_NONE) {
		sum = lth_sx_op2(lower->pool, LTH_SCALAR_MUL, sum, lth_sx_int(lower->pool, 2));
		sum = lth_sx_op2(lower->pool, LTH_SCALAR_ADD, sum, lower->word);
	}
	if (sum == LTH_SX_NONE && lth_arena_ok(lower->arena))
		lth_lower_fail(lower, LTH_UNSUPPORTED, NULL, "a shape whose formula grows too large");
	return sum;
}

/* An element, by its row-major place, that the compiler knows (passes/groups.c leaves such values out of memory): by a
 * formula where they are equally spaced (counting, filling), else by choice. */
static lth_sx contents_element(struct lth_lower *lower, lth_value_id id, lth_sx flat)
{
	const struct lth_value *value = &lower->graph->values[id];
	struct lth_sx_pool *pool = lower->pool;
	struct lth_dims *dims = lower->graph->dims;
	const lth_dim *list = value->contents->dims;
	uint32_t count = value->contents->count;
	lth_sx x = count ? lth_sx_dim(pool, list[0]) : lth_sx_int(pool, 0);
	if (count > 1) {
		lth_dim step = lth_dim_sub(dims, list[1], list[0]);
		bool even = step != LTH_DIM_NONE;
		for (uint32_t i = 2; i < count && even; i++)
			even = lth_dim_sub(dims, list[i], list[i - 1]) == step;
		if (even)
			x = lth_sx_op2(pool, LTH_SCALAR_ADD, x, lth_sx_op2(pool, LTH_SCALAR_MUL, flat, lth_sx_dim(pool, step)));
		for (uint32_t i = 1; i < count && !even; i++)
			x = lth_sx_select(pool, lth_sx_op2(pool, LTH_SCALAR_EQ, flat, lth_sx_int(pool, i)),
					  lth_sx_dim(pool, list[i]), x);
	}
	if (value->type.dtype == LTH_DTYPE_BOOL)
		return lth_sx_op2(pool, LTH_SCALAR_LT, lth_sx_int(pool, 0), x);
	return lth_sx_cast(pool, x, lth_compute_dtype(value->type.dtype));
}

static uint64_t hash_read(const struct lth_lower *lower, lth_value_id value, const lth_sx *index)
{
	size_t size = lower->graph->values[value].type.rank * sizeof(*index);
	return lth_hash_bytes(index, size, lth_hash_u64(value, lower->read_round));
}

static lth_sx known_read(const struct lth_lower *lower, lth_value_id value, const lth_sx *index)
{
	size_t size = lower->graph->values[value].type.rank * sizeof(*index);
	uint64_t hash = hash_read(lower, value, index);
	for (uint32_t at = 0, id; (id = lth_id_table_next(&lower->read_table, hash, &at)) != LTH_ID_NONE;) {
		const struct lth_group_read *read = &lower->reads[id];
		if (read->value == value && read->round == lower->read_round && memcmp(read->index, index, size) == 0)
			return read->x;
	}
	return LTH_SX_NONE;
}

static void remember_read(struct lth_lower *lower, lth_value_id value, const lth_sx *index, lth_sx x)
{
	size_t size = lower->graph->values[value].type.rank * sizeof(*index);
	struct lth_group_read *reads =
		lth_arena_grow(lower->arena, lower->reads, &lower->cap_reads, lower->num_reads + 1, sizeof(*reads));
	const lth_sx *copy = lth_arena_memdup(lower->arena, index, size);
	if (!reads || !copy)
		return;
	lower->reads = reads;
	reads[lower->num_reads] =
		(struct lth_group_read){.value = value, .round = lower->read_round, .index = copy, .x = x};
	if (lth_id_table_put(&lower->read_table, lower->arena, hash_read(lower, value, index), lower->num_reads))
		lower->num_reads++;
}

/* A value of the group: its operator says what it is. Values that are used twice would be followed twice, and what they
 * read four times: within one read, each is found once. Later ones may know more of the axes. */
static lth_sx read_inside(struct lth_lower *lower, lth_value_id value, const lth_sx *index)
{
	const struct lth_value *v = &lower->graph->values[value];
	const struct lth_node *node = &lower->graph->nodes[v->def_id];
	if (!node->op->impl || !node->op->impl->element) {
		lth_lower_fail(lower, LTH_UNSUPPORTED, node, "an operator without a lowering");
		return LTH_SX_NONE;
	}
	if (lower->read_depth == 0)
		lower->read_round++;
	lth_sx x = lower->read_depth ? known_read(lower, value, index) : LTH_SX_NONE;
	if (x != LTH_SX_NONE)
		return x;
	if (++lower->read_depth > MAX_READ_DEPTH) {
		lth_lower_fail(lower, LTH_LIMIT_EXCEEDED, node, "a fused chain that is too long");
		return LTH_SX_NONE;
	}
	x = node->op->impl->element(lower, node, v->def_index, index);
	lower->read_depth--;
	if (x == LTH_SX_NONE && lower->code == LTH_OK && lth_arena_ok(lower->arena))
		lth_lower_fail(lower, LTH_UNSUPPORTED, node, "this form of the operator");
	if (x != LTH_SX_NONE && lower->read_depth)
		remember_read(lower, value, index, x);
	return x;
}

lth_sx lth_read(struct lth_lower *lower, lth_value_id value, const lth_sx *index)
{
	if (value == LTH_NONE || lower->code != LTH_OK)
		return LTH_SX_NONE;
	const struct lth_value *v = &lower->graph->values[value];
	if (v->def == LTH_DEF_CONSTANT) {
		int64_t width = (int64_t)lth_dtype_bits(v->type.dtype) / 8;
		if (v->constant.bytes == width && width > 0) {
			lth_sx constant = constant_element(lower, v);
			if (constant != LTH_SX_NONE)
				return constant;
		}
	}
	if (v->def != LTH_DEF_CONSTANT && lth_contents_suffice(lower->graph, value))
		return contents_element(lower, value, lth_flatten_index(lower, value, index));
	if (v->def == LTH_DEF_NODE && v->def_id == lower->anchor && !lower->graph->nodes[v->def_id].op->impl->element)
		return lth_sx_anchor(lower->pool, v->def_index, lth_compute_dtype(v->type.dtype));
	if (lth_lower_in_group(lower, value))
		return read_inside(lower, value, index);
	bool words = lth_is_two_words(v->type.dtype) && lower->word != LTH_SX_NONE;
	if (lth_compute_dtype(v->type.dtype) == LTH_NUM_DTYPES && !words) {
		lth_lower_fail(lower, LTH_UNSUPPORTED, NULL, lth_dtype_text(v->type.dtype));
		return LTH_SX_NONE;
	}
	uint32_t operand = lth_lower_operand(lower, value, false);
	lth_sx address = lth_lower_address(lower, value, index);
	return packed_dtype(v->type.dtype)
		       ? lth_packed_load(lower->pool, operand, v->type.dtype, address)
		       : lth_sx_load(lower->pool, operand, lth_pointer_dtype(v->type.dtype), address);
}

lth_sx lth_result(struct lth_lower *lower, const struct lth_node *node, uint32_t stage, enum lth_dtype dtype)
{
	bool by_template = lower->anchor != LTH_NONE && node == &lower->graph->nodes[lower->anchor];
	return by_template ? lth_sx_anchor(lower->pool, stage, dtype) : lth_sx_stage(lower->pool, stage, dtype);
}

uint32_t lth_rank(struct lth_lower *lower, lth_value_id value)
{
	return lower->graph->values[value].type.rank;
}

lth_dim lth_extent_dim(struct lth_lower *lower, lth_value_id value, int32_t axis)
{
	const struct lth_type *type = &lower->graph->values[value].type;
	return type->dims[axis < 0 ? axis + (int32_t)type->rank : axis];
}

lth_sx lth_extent(struct lth_lower *lower, lth_value_id value, int32_t axis)
{
	return lth_sx_dim(lower->pool, lth_extent_dim(lower, value, axis));
}

enum lth_dtype lth_value_dtype(struct lth_lower *lower, lth_value_id value)
{
	return lower->graph->values[value].type.dtype;
}

lth_sx lth_read_broadcast(struct lth_lower *lower, lth_value_id value, const lth_sx *index, uint32_t rank)
{
	if (value == LTH_NONE)
		return LTH_SX_NONE;
	const struct lth_type *type = &lower->graph->values[value].type;
	lth_sx own[LTH_MAX_RANK];
	assert(type->rank <= rank);
	for (uint32_t axis = 0; axis < type->rank; axis++) {
		lth_sx i = index[rank - type->rank + axis];
		int64_t extent, low, high;
		lth_dim dim = type->dims[axis];
		bool constant = lth_dim_is_const(lower->graph->dims, dim, &extent);
		lth_dim_range(lower->graph->dims, dim, &low, &high);
		if (constant && extent == 1) {
			own[axis] = lth_sx_int(lower->pool, 0);
		} else if (!constant && low <= 1) {
			/* the extent may turn out to be 1 and be stretched: unless it is the output's own, clamp */
			lth_dim max;
			bool fits = lth_sx_max(lower->pool, i, &max) &&
				    lth_dim_at_most(lower->graph->dims,
						    lth_dim_add(lower->graph->dims, max,
								lth_dim_const(lower->graph->dims, 1)),
						    dim);
			own[axis] = fits ? i
					 : lth_sx_op2(lower->pool, LTH_SCALAR_MIN, i,
						      lth_sx_dim(lower->pool,
								 lth_dim_sub(lower->graph->dims, dim,
									     lth_dim_const(lower->graph->dims, 1))));
		} else {
			own[axis] = i;
		}
	}
	return lth_read(lower, value, own);
}

lth_sx lth_read_input(struct lth_lower *lower, const struct lth_node *node, uint32_t input, const lth_sx *index,
		      uint32_t rank)
{
	return lth_read_broadcast(lower, lth_node_input(node, input), index, rank);
}

lth_sx lth_read_scalar(struct lth_lower *lower, lth_value_id value)
{
	lth_sx zero[LTH_MAX_RANK];
	if (value == LTH_NONE)
		return LTH_SX_NONE;
	for (uint32_t i = 0; i < LTH_MAX_RANK; i++)
		zero[i] = lth_sx_int(lower->pool, 0);
	return lth_read(lower, value, zero);
}

lth_sx lth_flatten_index(struct lth_lower *lower, lth_value_id value, const lth_sx *index)
{
	const struct lth_type *type = &lower->graph->values[value].type;
	lth_sx flat = lth_sx_int(lower->pool, 0);
	for (uint32_t axis = 0; axis < type->rank; axis++) {
		flat = lth_sx_op2(lower->pool, LTH_SCALAR_MUL, flat, lth_sx_dim(lower->pool, type->dims[axis]));
		flat = lth_sx_op2(lower->pool, LTH_SCALAR_ADD, flat, index[axis]);
	}
	return flat;
}

void lth_unflatten_index(struct lth_lower *lower, lth_value_id value, lth_sx flat, lth_sx *out_index)
{
	const struct lth_type *type = &lower->graph->values[value].type;
	for (uint32_t axis = type->rank; axis-- > 0;) {
		lth_sx extent = lth_sx_dim(lower->pool, type->dims[axis]);
		out_index[axis] = axis == 0 ? flat : lth_sx_op2(lower->pool, LTH_SCALAR_MOD, flat, extent);
		flat = axis == 0 ? flat : lth_sx_op2(lower->pool, LTH_SCALAR_FLOORDIV, flat, extent);
	}
}

const lth_dim *lth_lower_strides(struct lth_lower *lower, lth_value_id value)
{
	return lower->accesses[value].strides;
}
