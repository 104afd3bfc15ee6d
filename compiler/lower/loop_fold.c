/* Simplification while loop IR is built: constants fold, identities that are exact for every input apply. Works on one
 * operation at a time, before its operands are splatted; a splat of a constant counts as the constant. */
#include "compiler/lower/loop_build.h"

#include "compiler/lower/lanes.h"

#include <math.h>

/* What is needed of an operand: its constant, seen through a splat. */
struct operand {
	lth_lv value;
	enum lth_dtype dtype;
	bool constant;
	union lth_scalar_value of;
};

static struct operand look(const struct lth_loop_fn *fn, lth_lv value)
{
	struct operand operand = {.value = value};
	if (value == LTH_LV_NONE)
		return operand;
	const struct lth_loop_instr *x = lth_loop_get(fn, value);
	operand.dtype = x->dtype;
	if (x->op == LTH_LOOP_SPLAT)
		x = lth_loop_get(fn, x->a);
	operand.constant = x->op == LTH_LOOP_CONST;
	if (operand.constant && lth_is_float(x->dtype))
		operand.of.f = x->f;
	else if (operand.constant)
		operand.of.i = x->i;
	return operand;
}

static lth_lv constant(struct lth_loop_fn *fn, enum lth_dtype dtype, union lth_scalar_value value)
{
	return lth_is_float(dtype) ? lth_loop_const_f(fn, dtype, value.f) : lth_loop_const_i(fn, dtype, value.i);
}

static lth_lv constant_i(struct lth_loop_fn *fn, enum lth_dtype dtype, int64_t value)
{
	return lth_loop_const_i(fn, dtype, value);
}

/* The constant of an integer or float that is exactly `value`. */
static bool is(struct operand x, double value)
{
	if (!x.constant)
		return false;
	if (lth_is_float(x.dtype))
		return x.of.f == value && signbit(x.of.f) == signbit(value);
	return (double)x.of.i == value && x.of.i == (int64_t)value;
}

/* Swapping the operands changes nothing but which of -0 and +0 a float minimum or maximum gives, and a nan's payload. */
static bool commutes(enum lth_scalar_op op)
{
	switch (op) {
	case LTH_SCALAR_ADD:
	case LTH_SCALAR_MUL:
	case LTH_SCALAR_MIN:
	case LTH_SCALAR_MAX:
	case LTH_SCALAR_AND:
	case LTH_SCALAR_OR:
	case LTH_SCALAR_XOR:
	case LTH_SCALAR_EQ:
	case LTH_SCALAR_NE:
		return true;
	default:
		return false;
	}
}

/* x + c1 + c2 and the like of integers: the constants combine. */
static lth_lv reassociate(struct lth_loop_fn *fn, enum lth_scalar_op op, struct operand a, struct operand b)
{
	struct lth_loop_instr inner = *lth_loop_get(fn, a.value);
	if (inner.op != LTH_LOOP_OP || inner.scalar != op || lth_is_float(a.dtype) || !b.constant)
		return LTH_LV_NONE;
	struct operand c = look(fn, inner.b);
	if (!c.constant)
		return LTH_LV_NONE;
	union lth_scalar_value both = lth_scalar_eval(op, b.dtype, b.dtype, c.of, b.of, b.of);
	return lth_loop_op2(fn, op, inner.a, constant(fn, b.dtype, both));
}

static lth_lv fold_bool(struct operand a, struct operand b, enum lth_scalar_op op)
{
	bool any = op == LTH_SCALAR_OR || op == LTH_SCALAR_ADD || op == LTH_SCALAR_MAX;
	bool all = op == LTH_SCALAR_AND || op == LTH_SCALAR_MUL || op == LTH_SCALAR_MIN;
	if ((any || all) && a.value == b.value)
		return a.value;
	if ((any || all) && b.constant)
		return (b.of.i != 0) == any ? b.value : a.value;
	return LTH_LV_NONE;
}

static lth_lv fold_int(struct lth_loop_fn *fn, enum lth_scalar_op op, struct operand a, struct operand b)
{
	bool same = a.value == b.value;
	switch (op) {
	case LTH_SCALAR_ADD:
		return is(b, 0) ? a.value : is(a, 0) ? b.value : reassociate(fn, op, a, b);
	case LTH_SCALAR_SUB:
		if (b.constant && !is(b, 0))
			return lth_loop_op2(fn, LTH_SCALAR_ADD, a.value, constant_i(fn, b.dtype, (int64_t)(0 - (uint64_t)b.of.i)));
		return is(b, 0) ? a.value : same ? constant_i(fn, a.dtype, 0) : LTH_LV_NONE;
	case LTH_SCALAR_MUL:
		return is(b, 1) ? a.value : is(b, 0) ? b.value : reassociate(fn, op, a, b);
	case LTH_SCALAR_DIV:
	case LTH_SCALAR_FLOORDIV:
		return is(b, 1) ? a.value : LTH_LV_NONE;
	case LTH_SCALAR_MOD:
	case LTH_SCALAR_REM:
		return is(b, 1) ? constant_i(fn, a.dtype, 0) : LTH_LV_NONE;
	case LTH_SCALAR_MIN:
	case LTH_SCALAR_MAX:
		return same ? a.value : reassociate(fn, op, a, b);
	case LTH_SCALAR_AND:
		return same ? a.value : is(b, 0) ? b.value : is(b, -1) ? a.value : LTH_LV_NONE;
	case LTH_SCALAR_OR:
		return same || is(b, 0) ? a.value : is(b, -1) ? b.value : LTH_LV_NONE;
	case LTH_SCALAR_XOR:
		return is(b, 0) ? a.value : same ? constant_i(fn, a.dtype, 0) : LTH_LV_NONE;
	case LTH_SCALAR_SHL:
	case LTH_SCALAR_SHR:
		return is(b, 0) ? a.value : LTH_LV_NONE;
	case LTH_SCALAR_EQ:
	case LTH_SCALAR_LE:
		return same ? constant_i(fn, LTH_DTYPE_BOOL, 1) : LTH_LV_NONE;
	case LTH_SCALAR_NE:
	case LTH_SCALAR_LT:
		return same ? constant_i(fn, LTH_DTYPE_BOOL, 0) : LTH_LV_NONE;
	default:
		return LTH_LV_NONE;
	}
}

static lth_lv fold_float(struct lth_loop_fn *fn, enum lth_scalar_op op, struct operand a, struct operand b, struct operand c)
{
	switch (op) {
	case LTH_SCALAR_ADD:
		return is(b, -0.0) ? a.value : LTH_LV_NONE;
	case LTH_SCALAR_SUB:
		return is(b, 0) ? a.value : LTH_LV_NONE;
	case LTH_SCALAR_MUL:
		return is(b, 1) ? a.value : is(b, -1) ? lth_loop_op1(fn, LTH_SCALAR_NEG, a.value) : LTH_LV_NONE;
	case LTH_SCALAR_DIV: /* by a power of two whose inverse is one too: exact */
		if (is(b, 1))
			return a.value;
		if (b.constant && fabs(b.of.f) >= 0x1p-60 && fabs(b.of.f) <= 0x1p60) {
			int exponent;
			if (fabs(frexp(b.of.f, &exponent)) == 0.5)
				return lth_loop_op2(fn, LTH_SCALAR_MUL, a.value, lth_loop_const_f(fn, b.dtype, 1 / b.of.f));
		}
		return LTH_LV_NONE;
	case LTH_SCALAR_MIN:
	case LTH_SCALAR_MAX:
		return a.value == b.value ? a.value : LTH_LV_NONE;
	case LTH_SCALAR_FMA:
		if (is(b, 1))
			return lth_loop_op2(fn, LTH_SCALAR_ADD, a.value, c.value);
		if (is(a, 1))
			return lth_loop_op2(fn, LTH_SCALAR_ADD, b.value, c.value);
		return is(c, -0.0) ? lth_loop_op2(fn, LTH_SCALAR_MUL, a.value, b.value) : LTH_LV_NONE;
	default:
		return LTH_LV_NONE;
	}
}

/* Operators that undo themselves or do nothing twice. */
static lth_lv fold_unary(struct lth_loop_fn *fn, enum lth_scalar_op op, enum lth_dtype result, struct operand a)
{
	if ((op == LTH_SCALAR_CAST || op == LTH_SCALAR_BITCAST) && result == a.dtype)
		return a.value;
	struct lth_loop_instr inner_copy = *lth_loop_get(fn, a.value), *inner = &inner_copy;
	if (inner->op != LTH_LOOP_OP || inner->scalar != op)
		return LTH_LV_NONE;
	switch (op) {
	case LTH_SCALAR_NEG:
	case LTH_SCALAR_NOT:
		return inner->a;
	case LTH_SCALAR_ABS:
	case LTH_SCALAR_FLOOR:
	case LTH_SCALAR_CEIL:
	case LTH_SCALAR_TRUNC:
	case LTH_SCALAR_RINT:
		return a.value;
	case LTH_SCALAR_ROUND_TO:
		return inner->memory == result ? a.value : LTH_LV_NONE;
	default:
		return LTH_LV_NONE;
	}
}

/* SELECT: the arms may differ in lanes from the condition; a folded result is splatted by the caller. */
static lth_lv fold_select(struct operand condition, lth_lv yes, lth_lv no)
{
	if (yes == no)
		return yes;
	if (!condition.constant)
		return LTH_LV_NONE;
	return condition.of.i ? yes : no;
}

lth_lv lth_loop_fold(struct lth_loop_fn *fn, enum lth_scalar_op op, enum lth_dtype result, lth_lv va, lth_lv vb, lth_lv vc)
{
	struct operand a = look(fn, va), b = look(fn, vb), c = look(fn, vc);
	unsigned arity = lth_scalar_arity(op);
	if (op == LTH_SCALAR_SELECT)
		return fold_select(a, vb, vc);
	if (a.dtype == LTH_POINTER_TYPE)
		return op == LTH_SCALAR_EQ && va == vb ? constant_i(fn, LTH_DTYPE_BOOL, 1) : LTH_LV_NONE;
	if (a.constant && (arity < 2 || b.constant) && (arity < 3 || c.constant)) {
		enum lth_dtype type = op == LTH_SCALAR_ROUND_TO ? a.dtype : result;
		return constant(fn, type, lth_scalar_eval(op, a.dtype, result, a.of, b.of, c.of));
	}
	if (arity == 2 && a.constant && commutes(op)) {
		/* Once more with the constant on the right, where the rules look for it. */
		return lth_loop_op2(fn, op, vb, va);
	}
	if (arity == 1)
		return fold_unary(fn, op, result, a);
	if (a.dtype == LTH_DTYPE_BOOL)
		return fold_bool(a, b, op);
	return lth_is_float(a.dtype) ? fold_float(fn, op, a, b, c) : fold_int(fn, op, a, b);
}
