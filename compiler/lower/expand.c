/* Expansion of loop IR. See expand.h. Walks the function once and copies it through the builder; blocks are rebuilt, so
 * that expansions with branches of their own nest. Narrow floats become integer arithmetic on their codes: the formulas
 * mirror narrow.c, which the interpreter uses and the tests compare with. */
#include "compiler/lower/expand.h"

#include "compiler/lower/lanes.h"
#include "compiler/lower/vmath.h"

#include <string.h>

struct expansion {
	const struct lth_loop_fn *from;
	struct lth_loop_fn *fn;
	unsigned what;
	lth_lv *map;
};

static lth_lv u32(struct lth_loop_fn *fn, uint32_t value)
{
	return lth_loop_const_i(fn, LTH_DTYPE_U32, value);
}

static lth_lv shift_left(struct lth_loop_fn *fn, lth_lv a, int by)
{
	return lth_loop_op2(fn, LTH_SCALAR_SHL, a, u32(fn, (uint32_t)by));
}

static lth_lv shift_right(struct lth_loop_fn *fn, lth_lv a, int by)
{
	return lth_loop_op2(fn, LTH_SCALAR_SHR, a, u32(fn, (uint32_t)by));
}

static lth_lv both(struct lth_loop_fn *fn, lth_lv a, lth_lv b)
{
	return lth_loop_op2(fn, LTH_SCALAR_AND, a, b);
}

static lth_lv either(struct lth_loop_fn *fn, lth_lv a, lth_lv b)
{
	return lth_loop_op2(fn, LTH_SCALAR_OR, a, b);
}

static lth_lv at_least(struct lth_loop_fn *fn, lth_lv a, lth_lv b)
{
	return lth_loop_op2(fn, LTH_SCALAR_LE, b, a);
}

/* From codes (u32 lanes) to f32. */
static lth_lv widen(struct lth_loop_fn *fn, enum lth_dtype narrow, lth_lv code)
{
	const struct lth_narrow_format *f = lth_narrow_format(narrow);
	int m = f->mantissa_bits, bits = f->exponent_bits + m;
	if (narrow == LTH_DTYPE_BF16)
		return lth_loop_bitcast(fn, shift_left(fn, code, 16), LTH_DTYPE_F32);
	lth_lv nan = u32(fn, 0x7fc00000);
	if (narrow == LTH_DTYPE_F8E8M0) { /* code 0 is 2^-127, a denormal */
		lth_lv smallest = equal(fn, code, u32(fn, 0)), power = shift_left(fn, code, 23);
		lth_lv value = pick(fn, smallest, u32(fn, 1u << 22), power);
		return lth_loop_bitcast(fn, pick(fn, equal(fn, code, u32(fn, 255)), nan, value), LTH_DTYPE_F32);
	}
	lth_lv magnitude_bits = both(fn, code, u32(fn, (1u << bits) - 1));
	lth_lv sign = shift_left(fn, both(fn, code, u32(fn, 1u << bits)), 31 - bits);
	/* Below the normal range the code counts steps. */
	lth_lv steps = lth_loop_cast(fn, lth_loop_cast(fn, magnitude_bits, LTH_DTYPE_I32), LTH_DTYPE_F32);
	lth_lv low = mul(fn, steps, f32(fn, __builtin_ldexp(1.0, 1 - f->bias - m)));
	lth_lv high = add(fn, shift_left(fn, magnitude_bits, 23 - m), u32(fn, (uint32_t)(127 - f->bias) << 23));
	lth_lv denormal = less(fn, magnitude_bits, u32(fn, 1u << m));
	lth_lv value = pick(fn, denormal, lth_loop_bitcast(fn, low, LTH_DTYPE_U32), high);
	if (f->has_infinity) {
		lth_lv top = u32(fn, ((1u << f->exponent_bits) - 1) << m);
		lth_lv special = either(fn, shift_left(fn, magnitude_bits, 23 - m), u32(fn, 0x7f800000));
		value = pick(fn, at_least(fn, magnitude_bits, top), special, value);
	} else if (f->has_nan && !f->nan_is_minus_zero) {
		value = pick(fn, equal(fn, magnitude_bits, u32(fn, (1u << bits) - 1)), nan, value);
	}
	value = either(fn, value, sign);
	if (f->nan_is_minus_zero)
		value = pick(fn, equal(fn, code, u32(fn, 1u << bits)), nan, value);
	return lth_loop_bitcast(fn, value, LTH_DTYPE_F32);
}

/* bf16 is f32's upper half: half to even by adding just less than half. */
static lth_lv narrow_bf16(struct lth_loop_fn *fn, lth_lv bits)
{
	lth_lv odd = both(fn, shift_right(fn, bits, 16), u32(fn, 1));
	lth_lv rounded = shift_right(fn, add(fn, bits, add(fn, odd, u32(fn, 0x7fff))), 16);
	lth_lv nan = either(fn, both(fn, shift_right(fn, bits, 16), u32(fn, 0x8000)), u32(fn, 0x7fc0));
	lth_lv is_nan = less(fn, u32(fn, 0x7f800000), both(fn, bits, u32(fn, 0x7fffffff)));
	return pick(fn, is_nan, nan, rounded);
}

/* What stands for nan and for what is too large, without their sign. */
static void special_codes(const struct lth_narrow_format *f, uint32_t *largest, uint32_t *nan, uint32_t *beyond)
{
	uint32_t all = (1u << (f->exponent_bits + f->mantissa_bits)) - 1;
	*largest = all;
	*nan = all;
	if (f->has_infinity) {
		*largest = (((1u << f->exponent_bits) - 1) << f->mantissa_bits) - 1;
		*nan = *largest + 1 + (1u << (f->mantissa_bits - 1));
	} else if (f->nan_is_minus_zero) {
		*nan = all + 1;
	} else if (f->has_nan) {
		*largest = all - 1;
	}
	*beyond = f->has_infinity ? *largest + 1 : *nan;
}

/* From f32 to codes (u32 lanes). */
static lth_lv round_to_code(struct lth_loop_fn *fn, enum lth_dtype narrow, lth_lv value)
{
	const struct lth_narrow_format *f = lth_narrow_format(narrow);
	int m = f->mantissa_bits, shift = 23 - m, bits = f->exponent_bits + m;
	lth_lv all = lth_loop_bitcast(fn, value, LTH_DTYPE_U32);
	if (narrow == LTH_DTYPE_BF16)
		return narrow_bf16(fn, all);
	lth_lv plain = both(fn, all, u32(fn, 0x7fffffff)), is_nan = less(fn, u32(fn, 0x7f800000), plain);
	if (narrow == LTH_DTYPE_F8E8M0) {
		lth_lv exponent = shift_right(fn, plain, 23), half = both(fn, shift_right(fn, plain, 22), u32(fn, 1));
		lth_lv up = add(fn, exponent, half);
		lth_lv low = lth_loop_cast(fn, at_least(fn, plain, u32(fn, 0x600000)), LTH_DTYPE_U32);
		up = pick(fn, less(fn, plain, u32(fn, 0x800000)), low, up);
		return pick(fn, at_least(fn, plain, u32(fn, 0x7f800000)), u32(fn, 255), up);
	}
	lth_lv sign = shift_left(fn, shift_right(fn, all, 31), bits);
	lth_lv odd = both(fn, shift_right(fn, plain, shift), u32(fn, 1));
	lth_lv high = shift_right(fn, add(fn, plain, add(fn, odd, u32(fn, (1u << (shift - 1)) - 1))), shift);
	high = sub(fn, high, u32(fn, (uint32_t)(127 - f->bias) << m));
	/* Below the normal range: adding a power of two whose last place is the format's step rounds to steps. */
	lth_lv anchor = f32(fn, __builtin_ldexp(1.0, 24 - f->bias - m));
	lth_lv low = lth_loop_bitcast(fn, add(fn, lth_loop_bitcast(fn, plain, LTH_DTYPE_F32), anchor), LTH_DTYPE_U32);
	low = sub(fn, low, lth_loop_bitcast(fn, anchor, LTH_DTYPE_U32));
	lth_lv code = pick(fn, less(fn, plain, u32(fn, (uint32_t)(128 - f->bias) << 23)), low, high);
	uint32_t largest, nan, beyond;
	special_codes(f, &largest, &nan, &beyond);
	lth_lv too_large = less(fn, u32(fn, largest), code);
	code = pick(fn, too_large, u32(fn, beyond), code);
	code = pick(fn, is_nan, u32(fn, nan), code);
	if (f->nan_is_minus_zero) { /* neither nan nor zero has a sign */
		lth_lv bare = equal(fn, code, u32(fn, 0));
		bare = either(fn, bare, equal(fn, code, u32(fn, nan)));
		sign = pick(fn, bare, u32(fn, 0), sign);
	} else if (!f->has_nan) {
		sign = pick(fn, is_nan, u32(fn, 0), sign);
	}
	return either(fn, code, sign);
}

static bool expands_narrow(const struct expansion *x, enum lth_dtype memory)
{
	if (!lth_is_narrow(memory))
		return false;
	return x->what & (memory == LTH_DTYPE_F16 ? LTH_EXPAND_F16 : LTH_EXPAND_NARROW);
}

/* The unsigned integer that holds a narrow float in memory. */
static enum lth_dtype holder(enum lth_dtype narrow)
{
	return lth_dtype_bits(narrow) == 16 ? LTH_DTYPE_U16 : LTH_DTYPE_U8;
}

static lth_lv mapped(const struct expansion *x, lth_lv value)
{
	return value == LTH_LV_NONE ? value : x->map[value];
}

/* Operands mapped; the list, if it holds values, too. */
static struct lth_loop_instr moved(const struct expansion *x, const struct lth_loop_instr *instr, lth_lv *list)
{
	struct lth_loop_instr copy = *instr;
	copy.a = mapped(x, instr->a);
	copy.b = mapped(x, instr->b);
	copy.c = mapped(x, instr->c);
	if (instr->count && instr->op != LTH_LOOP_SHUFFLE) {
		for (uint32_t k = 0; k < instr->count; k++)
			list[k] = x->map[instr->list[k]];
		copy.list = list;
	}
	return copy;
}

static lth_lv expand_op(struct expansion *x, const struct lth_loop_instr *instr)
{
	struct lth_loop_fn *fn = x->fn;
	if (instr->scalar == LTH_SCALAR_ROUND_TO) {
		if (!expands_narrow(x, instr->memory))
			return LTH_LV_NONE;
		return widen(fn, instr->memory, round_to_code(fn, instr->memory, instr->a));
	}
	return x->what & LTH_EXPAND_MATH ? lth_vmath(fn, instr->scalar, instr->a, instr->b) : LTH_LV_NONE;
}

static lth_lv expand_memory(struct expansion *x, const struct lth_loop_instr *instr)
{
	struct lth_loop_fn *fn = x->fn;
	enum lth_dtype memory = holder(instr->memory);
	switch (instr->op) {
	case LTH_LOOP_LOAD:
	case LTH_LOOP_GATHER: {
		lth_lv code = instr->op == LTH_LOOP_LOAD ?
				      lth_loop_load(fn, instr->a, memory, instr->lanes, instr->c) :
				      lth_loop_gather(fn, instr->a, instr->b, memory, instr->c);
		lth_lv value = widen(fn, instr->memory, lth_loop_cast(fn, code, LTH_DTYPE_U32));
		if (instr->c == LTH_LV_NONE || instr->memory != LTH_DTYPE_F8E8M0)
			return value; /* elsewhere the code 0 of masked-off lanes is the value 0 */
		return pick(fn, instr->c, value, f32(fn, 0));
	}
	case LTH_LOOP_STORE: {
		lth_lv code = lth_loop_cast(fn, round_to_code(fn, instr->memory, instr->b), memory);
		lth_loop_store(fn, instr->a, lth_loop_splat(fn, code, instr->lanes), memory, instr->c);
		return 0;
	}
	default: {
		lth_lv code = lth_loop_cast(fn, round_to_code(fn, instr->memory, instr->b), memory);
		lth_loop_scatter(fn, instr->a, instr->list[0], lth_loop_splat(fn, code, instr->lanes), memory, instr->c);
		return 0;
	}
	}
}

/* Copies block instructions through the builder, which gives PHIs and RESULTs their places. False when it is none. */
static bool copy_block(struct expansion *x, lth_lv value, const struct lth_loop_instr *instr)
{
	switch (instr->op) {
	case LTH_LOOP_FOR:
		x->map[value] = lth_loop_for(x->fn, instr->a, instr->b, lth_loop_get(x->fn, instr->c)->i, instr->list,
					     instr->count, &x->map[value + 1]);
		return true;
	case LTH_LOOP_ENDFOR:
		lth_loop_end_for(x->fn, instr->list, instr->count, &x->map[value + 1]);
		return true;
	case LTH_LOOP_IF:
		lth_loop_if(x->fn, instr->a);
		return true;
	case LTH_LOOP_ELSE:
		lth_loop_else(x->fn, instr->list, instr->count);
		return true;
	case LTH_LOOP_ENDIF:
		lth_loop_end_if(x->fn, instr->list, instr->count, &x->map[value + 1]);
		return true;
	case LTH_LOOP_PHI:
	case LTH_LOOP_RESULT:
		return true;
	default:
		return false;
	}
}

static void copy_instr(struct expansion *x, lth_lv value, lth_lv *list)
{
	struct lth_loop_instr instr = moved(x, lth_loop_get(x->from, value), list);
	bool memory = instr.op == LTH_LOOP_LOAD || instr.op == LTH_LOOP_STORE || instr.op == LTH_LOOP_GATHER ||
		      instr.op == LTH_LOOP_SCATTER;
	if (copy_block(x, value, &instr))
		return;
	if (memory && expands_narrow(x, instr.memory)) {
		x->map[value] = expand_memory(x, &instr);
		return;
	}
	lth_lv expanded = instr.op == LTH_LOOP_OP ? expand_op(x, &instr) : LTH_LV_NONE;
	if (expanded != LTH_LV_NONE)
		x->map[value] = lth_loop_splat(x->fn, expanded, instr.lanes);
	else
		x->map[value] = lth_loop_append(x->fn, &instr);
}

static bool needs_work(const struct expansion *x)
{
	for (lth_lv value = 0; value < x->from->num_instrs; value++) {
		const struct lth_loop_instr *instr = lth_loop_get(x->from, value);
		bool math = instr->op == LTH_LOOP_OP && instr->scalar > LTH_SCALAR_ISNAN;
		if ((math && x->what & LTH_EXPAND_MATH) || expands_narrow(x, instr->memory))
			return true;
	}
	return false;
}

const struct lth_loop_fn *lth_loop_expand(const struct lth_loop_fn *fn, unsigned what, struct lth_arena *arena)
{
	struct expansion x = {.from = fn, .what = what};
	if (!needs_work(&x))
		return fn;
	x.fn = lth_loop_create(arena, fn->num_ints);
	x.map = lth_arena_array(arena, fn->num_instrs, sizeof(*x.map));
	lth_lv *list = lth_arena_array(arena, fn->num_instrs, sizeof(*list));
	if (!x.fn || !x.map || !list)
		return NULL;
	x.fn->description = fn->description;
	for (uint32_t k = 0; k < fn->num_pointers; k++)
		lth_loop_add_pointer(x.fn, fn->pointers[k].memory, fn->pointers[k].written);
	for (lth_lv value = 0; value < fn->num_instrs && lth_arena_ok(arena); value++)
		copy_instr(&x, value, list);
	return lth_arena_ok(arena) ? x.fn : NULL;
}
