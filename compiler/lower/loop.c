/* Building loop IR. See loop.h. Entry values (constants, parameters) are interned for the whole function. Other values
 * without side effects are interned as far as their blocks reach: each hash chain has the newest value first, so that
 * closing a block pops what was defined in it. loop_memory.c has accesses, loop_blocks.c loops and branches. */
#include "compiler/lower/loop_build.h"

#include "compiler/lower/lanes.h"
#include "runtime/base/hash.h"

#include <string.h>

static const char *const texts[] = {
#define LTH_LOOP(name, text, description) text,
#include "compiler/lower/loops.def"
#undef LTH_LOOP
};

const char *lth_loop_text(enum lth_loop_op op)
{
	return texts[op];
}

bool lth_loop_defines(enum lth_loop_op op)
{
	switch (op) {
	case LTH_LOOP_STORE:
	case LTH_LOOP_SCATTER:
	case LTH_LOOP_PREFETCH:
	case LTH_LOOP_ENDFOR:
	case LTH_LOOP_IF:
	case LTH_LOOP_ELSE:
	case LTH_LOOP_ENDIF:
	case LTH_LOOP_FAIL:
		return false;
	default:
		return true;
	}
}

static uint64_t hash_instr(const struct lth_loop_instr *instr)
{
	uint64_t h = lth_hash_u64((uint64_t)instr->op << 48 | (uint64_t)instr->scalar << 32 |
				  (uint64_t)instr->dtype << 24 | (uint64_t)instr->memory << 16 | instr->lanes, 0);
	h = lth_hash_u64((uint64_t)instr->a << 32 | instr->b, h);
	h = lth_hash_u64((uint64_t)instr->c << 32 | instr->id, h);
	h = lth_hash_u64((uint64_t)instr->i, h);
	return instr->count ? lth_hash_bytes(instr->list, instr->count * sizeof(*instr->list), h) : h;
}

static bool same_instr(const struct lth_loop_instr *x, const struct lth_loop_instr *y)
{
	return x->op == y->op && x->scalar == y->scalar && x->dtype == y->dtype && x->memory == y->memory &&
	       x->lanes == y->lanes && x->a == y->a && x->b == y->b && x->c == y->c && x->id == y->id &&
	       x->i == y->i && x->count == y->count &&
	       (x->count == 0 || memcmp(x->list, y->list, x->count * sizeof(*x->list)) == 0);
}

static lth_lv find(const struct lth_loop_fn *fn, const uint32_t *heads, const struct lth_loop_instr *instr, uint64_t hash)
{
	for (uint32_t v = heads[hash % LTH_LOOP_HEADS]; v != LTH_LV_NONE; v = fn->builder->next[v])
		if (same_instr(&fn->instrs[v], instr))
			return v;
	return LTH_LV_NONE;
}

/* Appends and links into a chain when `heads` is given. */
static lth_lv push(struct lth_loop_fn *fn, const struct lth_loop_instr *instr, uint32_t *heads, uint64_t hash)
{
	struct lth_loop_builder *builder = fn->builder;
	struct lth_loop_instr *instrs =
		lth_arena_grow(fn->arena, fn->instrs, &fn->cap_instrs, fn->num_instrs + 1, sizeof(*instrs));
	uint32_t *next = lth_arena_grow(fn->arena, builder->next, &builder->cap_next, fn->num_instrs + 1, sizeof(*next));
	fn->instrs = instrs ? instrs : fn->instrs;
	builder->next = next ? next : builder->next;
	const uint32_t *list = instr->list;
	if (instr->count)
		list = lth_arena_memdup(fn->arena, instr->list, instr->count * sizeof(*list));
	if (!instrs || !next || (instr->count && !list))
		return 0;
	lth_lv value = fn->num_instrs++;
	instrs[value] = *instr;
	instrs[value].list = list;
	next[value] = LTH_LV_NONE;
	if (heads) {
		next[value] = heads[hash % LTH_LOOP_HEADS];
		heads[hash % LTH_LOOP_HEADS] = value;
	}
	return value;
}

lth_lv lth_loop_append(struct lth_loop_fn *fn, const struct lth_loop_instr *instr)
{
	if (!lth_loop_is_entry(instr->op))
		return push(fn, instr, NULL, 0);
	uint64_t hash = hash_instr(instr);
	lth_lv found = find(fn, fn->builder->entry_heads, instr, hash);
	return found != LTH_LV_NONE ? found : push(fn, instr, fn->builder->entry_heads, hash);
}

lth_lv lth_loop_intern(struct lth_loop_fn *fn, const struct lth_loop_instr *instr)
{
	if (lth_loop_is_entry(instr->op))
		return lth_loop_append(fn, instr);
	uint64_t hash = hash_instr(instr);
	lth_lv found = find(fn, fn->builder->heads, instr, hash);
	return found != LTH_LV_NONE ? found : push(fn, instr, fn->builder->heads, hash);
}

void lth_loop_pop_scope(struct lth_loop_fn *fn, uint32_t first)
{
	struct lth_loop_builder *builder = fn->builder;
	for (uint32_t head = 0; head < LTH_LOOP_HEADS; head++)
		while (builder->heads[head] != LTH_LV_NONE && builder->heads[head] >= first)
			builder->heads[head] = builder->next[builder->heads[head]];
}

struct lth_loop_instr lth_loop_instr_of(enum lth_loop_op op, enum lth_dtype dtype, unsigned lanes)
{
	return (struct lth_loop_instr){
		.op = op, .dtype = dtype, .memory = LTH_NUM_DTYPES, .lanes = (uint16_t)lanes,
		.a = LTH_LV_NONE, .b = LTH_LV_NONE, .c = LTH_LV_NONE,
	};
}

struct lth_loop_fn *lth_loop_create(struct lth_arena *arena, uint32_t num_ints)
{
	struct lth_loop_fn *fn = lth_arena_alloc(arena, sizeof(*fn));
	struct lth_loop_builder *builder = lth_arena_alloc(arena, sizeof(*builder));
	if (!fn || !builder)
		return NULL;
	memset(builder->heads, 0xff, sizeof(builder->heads));
	memset(builder->entry_heads, 0xff, sizeof(builder->entry_heads));
	*fn = (struct lth_loop_fn){.arena = arena, .description = "", .num_ints = num_ints, .builder = builder};
	lth_loop_begin(fn); /* value 0 always exists */
	return fn->num_instrs ? fn : NULL;
}

uint32_t lth_loop_add_pointer(struct lth_loop_fn *fn, enum lth_dtype memory, bool written)
{
	struct lth_loop_param *pointers =
		lth_arena_grow(fn->arena, fn->pointers, &fn->cap_pointers, fn->num_pointers + 1, sizeof(*pointers));
	if (!pointers)
		return 0;
	fn->pointers = pointers;
	pointers[fn->num_pointers] = (struct lth_loop_param){memory, written};
	return fn->num_pointers++;
}

uint32_t lth_loop_add_int(struct lth_loop_fn *fn)
{
	return fn->num_ints++;
}

lth_lv lth_loop_const_i(struct lth_loop_fn *fn, enum lth_dtype dtype, int64_t value)
{
	LTH_LOOP_REQUIRE(fn, lth_is_compute_dtype(dtype) && !lth_is_float(dtype));
	struct lth_loop_instr instr = lth_loop_instr_of(LTH_LOOP_CONST, dtype, 1);
	/* Brought into the type's range, so that equal constants are equal bits. */
	if (dtype == LTH_DTYPE_BOOL)
		instr.i = value != 0;
	else
		instr.i = lth_scalar_eval(LTH_SCALAR_CAST, LTH_DTYPE_I64, dtype, (union lth_scalar_value){.i = value},
					  (union lth_scalar_value){0}, (union lth_scalar_value){0}).i;
	return lth_loop_append(fn, &instr);
}

lth_lv lth_loop_const_f(struct lth_loop_fn *fn, enum lth_dtype dtype, double value)
{
	LTH_LOOP_REQUIRE(fn, lth_is_float(dtype));
	struct lth_loop_instr instr = lth_loop_instr_of(LTH_LOOP_CONST, dtype, 1);
	instr.f = dtype == LTH_DTYPE_F32 ? (double)(float)value : value;
	if (instr.f != instr.f)
		instr.f = (double)__builtin_nanf(""); /* one nan */
	return lth_loop_append(fn, &instr);
}

lth_lv lth_loop_i64(struct lth_loop_fn *fn, int64_t value)
{
	return lth_loop_const_i(fn, LTH_DTYPE_I64, value);
}

lth_lv lth_loop_int(struct lth_loop_fn *fn, uint32_t id)
{
	LTH_LOOP_REQUIRE(fn, id < fn->num_ints);
	struct lth_loop_instr instr = lth_loop_instr_of(LTH_LOOP_INT, LTH_DTYPE_I64, 1);
	instr.id = id;
	return lth_loop_append(fn, &instr);
}

lth_lv lth_loop_pointer(struct lth_loop_fn *fn, uint32_t id)
{
	LTH_LOOP_REQUIRE(fn, id < fn->num_pointers);
	struct lth_loop_instr instr = lth_loop_instr_of(LTH_LOOP_POINTER, LTH_POINTER_TYPE, 1);
	instr.id = id;
	return lth_loop_append(fn, &instr);
}

lth_lv lth_loop_scratch(struct lth_loop_fn *fn)
{
	struct lth_loop_instr instr = lth_loop_instr_of(LTH_LOOP_SCRATCH, LTH_POINTER_TYPE, 1);
	return lth_loop_append(fn, &instr);
}

lth_lv lth_loop_begin(struct lth_loop_fn *fn)
{
	struct lth_loop_instr instr = lth_loop_instr_of(LTH_LOOP_BEGIN, LTH_DTYPE_I64, 1);
	return lth_loop_append(fn, &instr);
}

lth_lv lth_loop_end(struct lth_loop_fn *fn)
{
	struct lth_loop_instr instr = lth_loop_instr_of(LTH_LOOP_END, LTH_DTYPE_I64, 1);
	return lth_loop_append(fn, &instr);
}

/* Scalar operators. */

enum lth_dtype lth_loop_op_dtype(enum lth_scalar_op op, enum lth_dtype operand)
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

lth_lv lth_loop_raw_op(struct lth_loop_fn *fn, enum lth_scalar_op op, enum lth_dtype dtype, enum lth_dtype memory,
		       unsigned lanes, lth_lv a, lth_lv b, lth_lv c)
{
	struct lth_loop_instr instr = lth_loop_instr_of(LTH_LOOP_OP, dtype, lanes);
	instr.scalar = op;
	instr.memory = memory;
	instr.a = a;
	instr.b = b;
	instr.c = c;
	return lth_loop_intern(fn, &instr);
}

/* Any operator: folds; works on scalars where all operands are splats; splats the scalars among vectors. */
static lth_lv apply(struct lth_loop_fn *fn, enum lth_scalar_op op, enum lth_dtype result, enum lth_dtype narrow, lth_lv a,
		    lth_lv b, lth_lv c)
{
	lth_lv operands[3] = {a, b, c};
	unsigned lanes = 1;
	bool uniform = true;
	for (int k = 0; k < 3; k++) {
		if (operands[k] == LTH_LV_NONE)
			continue;
		const struct lth_loop_instr *x = lth_loop_get(fn, operands[k]);
		LTH_LOOP_REQUIRE(fn, lanes == 1 || x->lanes == 1 || lanes == x->lanes);
		lanes = x->lanes > lanes ? x->lanes : lanes;
		uniform &= x->lanes == 1 || x->op == LTH_LOOP_SPLAT;
	}
	if (lanes > 1 && uniform) {
		for (int k = 0; k < 3; k++)
			if (operands[k] != LTH_LV_NONE && lth_loop_get(fn, operands[k])->lanes > 1)
				operands[k] = lth_loop_get(fn, operands[k])->a;
		return lth_loop_splat(fn, apply(fn, op, result, narrow, operands[0], operands[1], operands[2]), lanes);
	}
	lth_lv folded = lth_loop_fold(fn, op, op == LTH_SCALAR_ROUND_TO ? narrow : result, a, b, c);
	if (folded != LTH_LV_NONE)
		return lth_loop_splat(fn, folded, lanes);
	for (int k = 0; k < 3; k++)
		if (operands[k] != LTH_LV_NONE)
			operands[k] = lth_loop_splat(fn, operands[k], lanes);
	return lth_loop_raw_op(fn, op, result, narrow, lanes, operands[0], operands[1], operands[2]);
}

static bool is_operand(const struct lth_loop_fn *fn, lth_lv value, enum lth_dtype dtype)
{
	return value == LTH_LV_NONE || lth_loop_get(fn, value)->dtype == dtype;
}

lth_lv lth_loop_op3(struct lth_loop_fn *fn, enum lth_scalar_op op, lth_lv a, lth_lv b, lth_lv c)
{
	enum lth_dtype operand = lth_loop_get(fn, op == LTH_SCALAR_SELECT ? b : a)->dtype;
	enum lth_dtype first = op == LTH_SCALAR_SELECT ? LTH_DTYPE_BOOL : operand;
	enum lth_dtype result = lth_loop_op_dtype(op, operand);
	LTH_LOOP_REQUIRE(fn, op != LTH_SCALAR_CAST && op != LTH_SCALAR_BITCAST && op != LTH_SCALAR_ROUND_TO);
	LTH_LOOP_REQUIRE(fn, lth_lanes(op, operand, result));
	LTH_LOOP_REQUIRE(fn, (b != LTH_LV_NONE) + (c != LTH_LV_NONE) + 1u == lth_scalar_arity(op));
	LTH_LOOP_REQUIRE(fn, is_operand(fn, a, first) && is_operand(fn, b, operand) && is_operand(fn, c, operand));
	return apply(fn, op, result, LTH_NUM_DTYPES, a, b, c);
}

lth_lv lth_loop_op2(struct lth_loop_fn *fn, enum lth_scalar_op op, lth_lv a, lth_lv b)
{
	return lth_loop_op3(fn, op, a, b, LTH_LV_NONE);
}

lth_lv lth_loop_op1(struct lth_loop_fn *fn, enum lth_scalar_op op, lth_lv a)
{
	return lth_loop_op3(fn, op, a, LTH_LV_NONE, LTH_LV_NONE);
}

lth_lv lth_loop_cast(struct lth_loop_fn *fn, lth_lv a, enum lth_dtype dtype)
{
	LTH_LOOP_REQUIRE(fn, lth_lanes(LTH_SCALAR_CAST, lth_loop_get(fn, a)->dtype, dtype));
	return apply(fn, LTH_SCALAR_CAST, dtype, LTH_NUM_DTYPES, a, LTH_LV_NONE, LTH_LV_NONE);
}

lth_lv lth_loop_bitcast(struct lth_loop_fn *fn, lth_lv a, enum lth_dtype dtype)
{
	LTH_LOOP_REQUIRE(fn, lth_lanes(LTH_SCALAR_BITCAST, lth_loop_get(fn, a)->dtype, dtype));
	return apply(fn, LTH_SCALAR_BITCAST, dtype, LTH_NUM_DTYPES, a, LTH_LV_NONE, LTH_LV_NONE);
}

lth_lv lth_loop_round_to(struct lth_loop_fn *fn, lth_lv a, enum lth_dtype narrow)
{
	LTH_LOOP_REQUIRE(fn, lth_lanes(LTH_SCALAR_ROUND_TO, lth_loop_get(fn, a)->dtype, narrow));
	return apply(fn, LTH_SCALAR_ROUND_TO, LTH_DTYPE_F32, narrow, a, LTH_LV_NONE, LTH_LV_NONE);
}

/* Vectors. */

lth_lv lth_loop_splat(struct lth_loop_fn *fn, lth_lv a, unsigned lanes)
{
	const struct lth_loop_instr *x = lth_loop_get(fn, a);
	LTH_LOOP_REQUIRE(fn, lanes >= 1 && lanes <= LTH_MAX_LANES && (x->lanes == 1 || x->lanes == lanes));
	if (x->lanes == lanes)
		return a;
	LTH_LOOP_REQUIRE(fn, x->dtype != LTH_POINTER_TYPE);
	struct lth_loop_instr instr = lth_loop_instr_of(LTH_LOOP_SPLAT, x->dtype, lanes);
	instr.a = a;
	return lth_loop_intern(fn, &instr);
}

lth_lv lth_loop_ramp(struct lth_loop_fn *fn, lth_lv a, unsigned lanes)
{
	LTH_LOOP_REQUIRE(fn, lth_loop_get(fn, a)->dtype == LTH_DTYPE_I64 && lth_loop_get(fn, a)->lanes == 1);
	if (lanes == 1)
		return a;
	struct lth_loop_instr instr = lth_loop_instr_of(LTH_LOOP_RAMP, LTH_DTYPE_I64, lanes);
	instr.a = a;
	return lth_loop_intern(fn, &instr);
}

lth_lv lth_loop_mask(struct lth_loop_fn *fn, lth_lv count, unsigned lanes)
{
	const struct lth_loop_instr *x = lth_loop_get(fn, count);
	LTH_LOOP_REQUIRE(fn, x->dtype == LTH_DTYPE_I64 && x->lanes == 1);
	if (lanes == 1)
		return lth_loop_op2(fn, LTH_SCALAR_LT, lth_loop_i64(fn, 0), count);
	if (x->op == LTH_LOOP_CONST && (x->i >= lanes || x->i <= 0))
		return lth_loop_splat(fn, lth_loop_const_i(fn, LTH_DTYPE_BOOL, x->i > 0), lanes);
	struct lth_loop_instr instr = lth_loop_instr_of(LTH_LOOP_MASK, LTH_DTYPE_BOOL, lanes);
	instr.a = count;
	return lth_loop_intern(fn, &instr);
}

lth_lv lth_loop_extract(struct lth_loop_fn *fn, lth_lv a, unsigned lane)
{
	const struct lth_loop_instr *x = lth_loop_get(fn, a);
	LTH_LOOP_REQUIRE(fn, lane < x->lanes);
	if (x->lanes == 1)
		return a;
	if (x->op == LTH_LOOP_SPLAT)
		return x->a;
	if (x->op == LTH_LOOP_RAMP) {
		lth_lv first = x->a;
		return lth_loop_op2(fn, LTH_SCALAR_ADD, first, lth_loop_i64(fn, lane));
	}
	struct lth_loop_instr instr = lth_loop_instr_of(LTH_LOOP_EXTRACT, x->dtype, 1);
	instr.a = a;
	instr.i = lane;
	return lth_loop_intern(fn, &instr);
}

lth_lv lth_loop_shuffle(struct lth_loop_fn *fn, lth_lv a, lth_lv b, const uint32_t *lanes, unsigned count)
{
	const struct lth_loop_instr *x = lth_loop_get(fn, a), *y = lth_loop_get(fn, b);
	LTH_LOOP_REQUIRE(fn, x->dtype == y->dtype && x->lanes == y->lanes && count >= 1 && count <= LTH_MAX_LANES);
	if (!lth_arena_ok(fn->arena))
		return 0;
	unsigned source = x->lanes;
	if (count == 1)
		return lanes[0] < source ? lth_loop_extract(fn, a, lanes[0]) :
					   lth_loop_extract(fn, b, lanes[0] - source);
	if (a == b && (x->op == LTH_LOOP_SPLAT || source == 1))
		return lth_loop_splat(fn, source == 1 ? a : x->a, count);
	bool identity = count == source;
	for (unsigned k = 0; k < count; k++) {
		LTH_LOOP_REQUIRE(fn, lanes[k] < 2 * source);
		identity &= lanes[k] == k;
	}
	if (identity)
		return a;
	uint32_t doubled[LTH_MAX_LANES];
	if (source == 1) { /* of two scalars: of vectors of two */
		for (unsigned k = 0; k < count; k++)
			doubled[k] = lanes[k] * 2;
		a = lth_loop_splat(fn, a, 2);
		b = lth_loop_splat(fn, b, 2);
		lanes = doubled;
	}
	struct lth_loop_instr instr = lth_loop_instr_of(LTH_LOOP_SHUFFLE, lth_loop_get(fn, a)->dtype, count);
	instr.a = a;
	instr.b = b;
	instr.count = count;
	instr.list = lanes;
	return lth_loop_intern(fn, &instr);
}

lth_lv lth_loop_permute(struct lth_loop_fn *fn, lth_lv a, lth_lv lanes)
{
	const struct lth_loop_instr *x = lth_loop_get(fn, a);
	LTH_LOOP_REQUIRE(fn, lth_loop_get(fn, lanes)->dtype == LTH_DTYPE_I32 && x->dtype != LTH_POINTER_TYPE);
	if (x->lanes == 1 || x->op == LTH_LOOP_SPLAT)
		return a;
	struct lth_loop_instr instr = lth_loop_instr_of(LTH_LOOP_PERMUTE, x->dtype, x->lanes);
	instr.b = lth_loop_splat(fn, lanes, x->lanes);
	instr.a = a;
	return lth_loop_intern(fn, &instr);
}

lth_lv lth_loop_reduce(struct lth_loop_fn *fn, enum lth_scalar_op op, lth_lv a)
{
	const struct lth_loop_instr *x = lth_loop_get(fn, a);
	if (x->lanes == 1)
		return a;
	struct lth_loop_instr instr = lth_loop_instr_of(LTH_LOOP_REDUCE, x->dtype, 1);
	LTH_LOOP_REQUIRE(fn, lth_lanes(op, x->dtype, x->dtype));
	instr.scalar = op;
	instr.a = a;
	return lth_loop_intern(fn, &instr);
}

lth_lv lth_loop_dot4(struct lth_loop_fn *fn, lth_lv sum, lth_lv unsigned_bytes, lth_lv signed_bytes)
{
	unsigned lanes = lth_loop_get(fn, sum)->lanes;
	struct lth_loop_instr instr = lth_loop_instr_of(LTH_LOOP_DOT4, LTH_DTYPE_I32, lanes);
	instr.a = sum;
	instr.b = lth_loop_splat(fn, unsigned_bytes, 4 * lanes);
	instr.c = lth_loop_splat(fn, signed_bytes, 4 * lanes);
	LTH_LOOP_REQUIRE(fn, lth_loop_get(fn, sum)->dtype == LTH_DTYPE_I32);
	LTH_LOOP_REQUIRE(fn, lth_loop_get(fn, instr.b)->dtype == LTH_DTYPE_U8 &&
				     lth_loop_get(fn, instr.c)->dtype == LTH_DTYPE_I8);
	return lth_loop_intern(fn, &instr);
}
