/* Scalar expressions: the pool, interning, and construction with folding. Index arithmetic goes through sx_index.c. */
#include "compiler/lower/sx.h"

#include "compiler/lower/loop.h"
#include "runtime/base/hash.h"

#include <assert.h>
#include <math.h>
#include <string.h>

struct lth_sx_pool *lth_sx_pool_create(struct lth_arena *arena, struct lth_dims *dims)
{
	struct lth_sx_pool *pool = lth_arena_alloc(arena, sizeof(*pool));
	if (!pool)
		return NULL;
	pool->arena = arena;
	pool->dims = dims;
	for (int i = 0; i < LTH_MAX_AXES; i++)
		pool->extents[i] = LTH_DIM_NONE;
	return pool;
}

const struct lth_sx_node *lth_sx_get(const struct lth_sx_pool *pool, lth_sx x)
{
	assert(x < pool->num_nodes);
	return &pool->nodes[x];
}

struct lth_dims *lth_sx_dims(const struct lth_sx_pool *pool)
{
	return pool->dims;
}

void lth_sx_set_axis(struct lth_sx_pool *pool, uint32_t axis, lth_dim extent, uint32_t depth)
{
	assert(axis < LTH_MAX_AXES);
	pool->extents[axis] = extent;
	pool->depths[axis] = depth;
}

static bool same(const struct lth_sx_node *a, const struct lth_sx_node *b)
{
	return a->kind == b->kind && a->op == b->op && a->dtype == b->dtype && a->id == b->id &&
	       a->memory == b->memory && a->i == b->i && a->dim == b->dim &&
	       memcmp(a->operands, b->operands, sizeof(a->operands)) == 0;
}

static uint64_t hash_node(const struct lth_sx_node *node)
{
	uint64_t h = lth_hash_u64((uint64_t)node->kind << 40 | (uint64_t)node->op << 24 | (uint64_t)node->dtype << 8 |
					  (uint64_t)node->memory,
				  node->id);
	h = lth_hash_u64((uint64_t)node->i, h);
	h = lth_hash_u64((uint64_t)node->operands[0] << 32 | node->operands[1], h);
	return lth_hash_u64((uint64_t)node->operands[2] << 32 | node->dim, h);
}

static bool rehash(struct lth_sx_pool *pool)
{
	uint32_t size = pool->table_size ? pool->table_size * 2 : 256;
	uint32_t *table = lth_arena_array(pool->arena, size, sizeof(*table));
	if (!table)
		return false;
	for (uint32_t i = 0; i < pool->num_nodes; i++) {
		uint32_t slot = (uint32_t)hash_node(&pool->nodes[i]) & (size - 1);
		while (table[slot])
			slot = (slot + 1) & (size - 1);
		table[slot] = i + 1;
	}
	pool->table = table;
	pool->table_size = size;
	return true;
}

lth_sx lth_sx_intern(struct lth_sx_pool *pool, const struct lth_sx_node *node)
{
	if (pool->num_nodes * 2 >= pool->table_size && !rehash(pool))
		return LTH_SX_NONE;
	uint32_t slot = (uint32_t)hash_node(node) & (pool->table_size - 1);
	for (; pool->table[slot]; slot = (slot + 1) & (pool->table_size - 1))
		if (same(&pool->nodes[pool->table[slot] - 1], node))
			return pool->table[slot] - 1;
	struct lth_sx_node *nodes =
		lth_arena_grow(pool->arena, pool->nodes, &pool->cap_nodes, pool->num_nodes + 1, sizeof(*nodes));
	struct lth_sx_bounds *bounds =
		lth_arena_grow(pool->arena, pool->bounds, &pool->cap_bounds, pool->num_nodes + 1, sizeof(*bounds));
	if (!nodes || !bounds)
		return LTH_SX_NONE;
	pool->nodes = nodes;
	pool->bounds = bounds;
	lth_sx id = pool->num_nodes++;
	nodes[id] = *node;
	for (int k = 0; k < 3; k++)
		if (node->operands[k] != LTH_SX_NONE) {
			const struct lth_sx_node *operand = &nodes[node->operands[k]];
			nodes[id].axes |= operand->axes;
			nodes[id].has_load |= operand->has_load;
			nodes[id].has_stage |= operand->has_stage;
		}
	nodes[id].has_load |= node->kind == LTH_SX_LOAD;
	nodes[id].has_stage |= node->kind == LTH_SX_STAGE || node->kind == LTH_SX_ANCHOR;
	pool->table[slot] = id + 1;
	return id;
}

static struct lth_sx_node leaf(enum lth_sx_kind kind, enum lth_dtype dtype)
{
	return (struct lth_sx_node){.kind = kind,
				    .dtype = dtype,
				    .memory = dtype,
				    .dim = LTH_DIM_NONE,
				    .operands = {LTH_SX_NONE, LTH_SX_NONE, LTH_SX_NONE}};
}

lth_sx lth_sx_raw(struct lth_sx_pool *pool, enum lth_scalar_op op, enum lth_dtype dtype, lth_sx a, lth_sx b, lth_sx c)
{
	struct lth_sx_node node = leaf(LTH_SX_OP, dtype);
	node.op = op;
	node.operands[0] = a;
	node.operands[1] = b;
	node.operands[2] = c;
	return lth_sx_intern(pool, &node);
}

lth_sx lth_sx_int(struct lth_sx_pool *pool, int64_t value)
{
	return lth_sx_const_i(pool, LTH_DTYPE_I64, value);
}

lth_sx lth_sx_const_i(struct lth_sx_pool *pool, enum lth_dtype dtype, int64_t value)
{
	struct lth_sx_node node = leaf(LTH_SX_CONST, dtype);
	node.i = value;
	return lth_sx_intern(pool, &node);
}

lth_sx lth_sx_const_f(struct lth_sx_pool *pool, enum lth_dtype dtype, double value)
{
	struct lth_sx_node node = leaf(LTH_SX_CONST, dtype);
	node.f = dtype == LTH_DTYPE_F32 ? (double)(float)value : value;
	return lth_sx_intern(pool, &node);
}

static bool is_float(enum lth_dtype dtype)
{
	return dtype == LTH_DTYPE_F32 || dtype == LTH_DTYPE_F64;
}

lth_sx lth_sx_const(struct lth_sx_pool *pool, enum lth_dtype dtype, double value)
{
	return is_float(dtype) ? lth_sx_const_f(pool, dtype, value) : lth_sx_const_i(pool, dtype, (int64_t)value);
}

lth_sx lth_sx_axis(struct lth_sx_pool *pool, uint32_t axis)
{
	assert(axis < LTH_MAX_AXES);
	int64_t extent;
	if (pool->extents[axis] != LTH_DIM_NONE && lth_dim_is_const(pool->dims, pool->extents[axis], &extent) &&
	    extent == 1)
		return lth_sx_int(pool, 0);
	struct lth_sx_node node = leaf(LTH_SX_AXIS, LTH_DTYPE_I64);
	node.id = axis;
	node.axes = 1u << axis;
	return lth_sx_intern(pool, &node);
}

lth_sx lth_sx_dim(struct lth_sx_pool *pool, lth_dim dim)
{
	int64_t value;
	if (dim == LTH_DIM_NONE)
		return LTH_SX_NONE;
	if (lth_dim_is_const(pool->dims, dim, &value))
		return lth_sx_int(pool, value);
	struct lth_sx_node node = leaf(LTH_SX_DIM, LTH_DTYPE_I64);
	node.dim = lth_dim_opaque(pool->dims, dim); /* index arithmetic multiplies it */
	return node.dim == LTH_DIM_NONE ? LTH_SX_NONE : lth_sx_intern(pool, &node);
}

lth_sx lth_sx_load(struct lth_sx_pool *pool, uint32_t buffer, enum lth_dtype memory, lth_sx address)
{
	if (address == LTH_SX_NONE)
		return LTH_SX_NONE;
	struct lth_sx_node node = leaf(LTH_SX_LOAD, lth_compute_dtype(memory));
	node.memory = memory;
	node.id = buffer;
	node.operands[0] = address;
	return lth_sx_intern(pool, &node);
}

lth_sx lth_sx_stage(struct lth_sx_pool *pool, uint32_t stage, enum lth_dtype dtype)
{
	struct lth_sx_node node = leaf(LTH_SX_STAGE, dtype);
	node.id = stage;
	return lth_sx_intern(pool, &node);
}

lth_sx lth_sx_anchor(struct lth_sx_pool *pool, uint32_t output, enum lth_dtype dtype)
{
	struct lth_sx_node node = leaf(LTH_SX_ANCHOR, dtype);
	node.id = output;
	return lth_sx_intern(pool, &node);
}

lth_sx lth_sx_check(struct lth_sx_pool *pool, lth_sx index, lth_sx limit)
{
	int64_t value, bound;
	if (index == LTH_SX_NONE || limit == LTH_SX_NONE)
		return LTH_SX_NONE;
	if (lth_sx_is_int(pool, index, &value) && lth_sx_is_int(pool, limit, &bound) && value >= 0 && value < bound)
		return index;
	struct lth_sx_node node = leaf(LTH_SX_CHECK, LTH_DTYPE_I64);
	node.operands[0] = index;
	node.operands[1] = limit;
	return lth_sx_intern(pool, &node);
}

/* Result type of an operator by its rule. */
static enum lth_dtype result_type(enum lth_scalar_op op, enum lth_dtype operand)
{
	switch (op) {
	case LTH_SCALAR_EQ:
	case LTH_SCALAR_NE:
	case LTH_SCALAR_LT:
	case LTH_SCALAR_LE:
	case LTH_SCALAR_ISNAN:
		return LTH_DTYPE_BOOL;
	default:
		return operand;
	}
}

static union lth_scalar_value scalar_of(const struct lth_sx_node *node)
{
	union lth_scalar_value value = {.i = node->i};
	return value;
}

static lth_sx fold(struct lth_sx_pool *pool, enum lth_scalar_op op, enum lth_dtype operand, enum lth_dtype result,
		   lth_sx a, lth_sx b, lth_sx c)
{
	lth_sx list[3] = {a, b, c};
	union lth_scalar_value values[3] = {{0}, {0}, {0}};
	for (int k = 0; k < 3; k++) {
		if (list[k] == LTH_SX_NONE)
			continue;
		if (pool->nodes[list[k]].kind != LTH_SX_CONST)
			return LTH_SX_NONE;
		values[k] = scalar_of(&pool->nodes[list[k]]);
	}
	union lth_scalar_value value = lth_scalar_eval(op, operand, result, values[0], values[1], values[2]);
	return is_float(result) ? lth_sx_const_f(pool, result, value.f) : lth_sx_const_i(pool, result, value.i);
}

lth_sx lth_sx_op1(struct lth_sx_pool *pool, enum lth_scalar_op op, lth_sx a)
{
	if (a == LTH_SX_NONE)
		return LTH_SX_NONE;
	enum lth_dtype operand = pool->nodes[a].dtype, result = result_type(op, operand);
	if (op == LTH_SCALAR_NEG && operand == LTH_DTYPE_I64)
		return lth_sx_op2(pool, LTH_SCALAR_SUB, lth_sx_int(pool, 0), a);
	lth_sx folded = fold(pool, op, operand, result, a, LTH_SX_NONE, LTH_SX_NONE);
	return folded != LTH_SX_NONE ? folded : lth_sx_raw(pool, op, result, a, LTH_SX_NONE, LTH_SX_NONE);
}

lth_sx lth_sx_op2(struct lth_sx_pool *pool, enum lth_scalar_op op, lth_sx a, lth_sx b)
{
	if (a == LTH_SX_NONE || b == LTH_SX_NONE)
		return LTH_SX_NONE;
	enum lth_dtype operand = pool->nodes[a].dtype, result = result_type(op, operand);
	assert(operand == pool->nodes[b].dtype);
	lth_sx folded = fold(pool, op, operand, result, a, b, LTH_SX_NONE);
	if (folded != LTH_SX_NONE)
		return folded;
	if (operand == LTH_DTYPE_I64) {
		lth_sx better = lth_sx_index_op(pool, op, a, b);
		if (better != LTH_SX_NONE)
			return better;
	}
	return lth_sx_raw(pool, op, result, a, b, LTH_SX_NONE);
}

lth_sx lth_sx_op3(struct lth_sx_pool *pool, enum lth_scalar_op op, lth_sx a, lth_sx b, lth_sx c)
{
	if (a == LTH_SX_NONE || b == LTH_SX_NONE || c == LTH_SX_NONE)
		return LTH_SX_NONE;
	if (op == LTH_SCALAR_SELECT)
		return lth_sx_select(pool, a, b, c);
	enum lth_dtype dtype = pool->nodes[a].dtype;
	lth_sx folded = fold(pool, op, dtype, dtype, a, b, c);
	return folded != LTH_SX_NONE ? folded : lth_sx_raw(pool, op, dtype, a, b, c);
}

lth_sx lth_sx_select(struct lth_sx_pool *pool, lth_sx condition, lth_sx a, lth_sx b)
{
	if (condition == LTH_SX_NONE || a == LTH_SX_NONE || b == LTH_SX_NONE)
		return LTH_SX_NONE;
	assert(pool->nodes[condition].dtype == LTH_DTYPE_BOOL && pool->nodes[a].dtype == pool->nodes[b].dtype);
	if (a == b)
		return a;
	if (pool->nodes[condition].kind == LTH_SX_CONST)
		return pool->nodes[condition].i ? a : b;
	return lth_sx_raw(pool, LTH_SCALAR_SELECT, pool->nodes[a].dtype, condition, a, b);
}

lth_sx lth_sx_cast(struct lth_sx_pool *pool, lth_sx a, enum lth_dtype dtype)
{
	if (a == LTH_SX_NONE || pool->nodes[a].dtype == dtype)
		return a;
	lth_sx folded = fold(pool, LTH_SCALAR_CAST, pool->nodes[a].dtype, dtype, a, LTH_SX_NONE, LTH_SX_NONE);
	return folded != LTH_SX_NONE ? folded
				     : lth_sx_raw(pool, LTH_SCALAR_CAST, dtype, a, LTH_SX_NONE, LTH_SX_NONE);
}

lth_sx lth_sx_bitcast(struct lth_sx_pool *pool, lth_sx a, enum lth_dtype dtype)
{
	if (a == LTH_SX_NONE || pool->nodes[a].dtype == dtype)
		return a;
	if (pool->nodes[a].dtype == LTH_DTYPE_BOOL || dtype == LTH_DTYPE_BOOL) /* a byte in memory, a bit in registers */
		return lth_sx_cast(pool, lth_sx_bitcast(pool, lth_sx_cast(pool, a, LTH_DTYPE_U8), LTH_DTYPE_U8), dtype);
	return lth_sx_raw(pool, LTH_SCALAR_BITCAST, dtype, a, LTH_SX_NONE, LTH_SX_NONE);
}

lth_sx lth_sx_round_to(struct lth_sx_pool *pool, lth_sx a, enum lth_dtype narrow)
{
	if (a == LTH_SX_NONE || lth_compute_dtype(narrow) == narrow)
		return a;
	struct lth_sx_node node = leaf(LTH_SX_OP, LTH_DTYPE_F32);
	node.op = LTH_SCALAR_ROUND_TO;
	node.operands[0] = a;
	node.memory = narrow;
	return lth_sx_intern(pool, &node);
}

enum lth_dtype lth_compute_dtype(enum lth_dtype memory)
{
	switch (memory) {
	case LTH_DTYPE_F16:
	case LTH_DTYPE_BF16:
	case LTH_DTYPE_F8E4M3:
	case LTH_DTYPE_F8E4M3UZ:
	case LTH_DTYPE_F8E5M2:
	case LTH_DTYPE_F8E5M2UZ:
	case LTH_DTYPE_F8E8M0:
	case LTH_DTYPE_F4E2M1:
		return LTH_DTYPE_F32;
	case LTH_DTYPE_I4:
	case LTH_DTYPE_I2:
		return LTH_DTYPE_I8;
	case LTH_DTYPE_U4:
	case LTH_DTYPE_U2:
		return LTH_DTYPE_U8;
	case LTH_DTYPE_C64:
	case LTH_DTYPE_C128:
	case LTH_DTYPE_STRING:
		return LTH_NUM_DTYPES;
	case LTH_DTYPE_OBJECT: /* a handle, which is only ever moved */
		return LTH_DTYPE_I64;
	default:
		return memory;
	}
}

bool lth_sx_is_int(const struct lth_sx_pool *pool, lth_sx x, int64_t *out_value)
{
	if (x == LTH_SX_NONE || pool->nodes[x].kind != LTH_SX_CONST || is_float(pool->nodes[x].dtype))
		return false;
	*out_value = pool->nodes[x].i;
	return true;
}
