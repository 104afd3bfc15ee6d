/* Evaluating shape expressions. Reals travel as the bits of a double, so that one array holds both kinds. Integer
 * arithmetic is exact or an error; real arithmetic is IEEE 754 double, rounded by RF32 where the model is in float32. */
#include "runtime/base/checked.h"
#include "runtime/program/program.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const unsigned char operand_counts[LTH_NUM_EXPRS] = {
#define LTH_EXPR(name, text, operands, real, commutes) [LTH_EXPR_##name] = operands,
#include "runtime/program/exprs.def"
#undef LTH_EXPR
};

static double to_real(int64_t bits)
{
	double value;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

static int64_t to_bits(double value)
{
	int64_t bits;
	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static bool apply_real(enum lth_expr_op op, double a, double b, double *out)
{
	switch (op) {
	case LTH_EXPR_RADD:
		*out = a + b;
		return true;
	case LTH_EXPR_RSUB:
		*out = a - b;
		return true;
	case LTH_EXPR_RMUL:
		*out = a * b;
		return true;
	case LTH_EXPR_RDIV:
		*out = a / b;
		return true;
	case LTH_EXPR_RMIN: /* a NaN wins, as in ONNX Min and Max */
		*out = isnan(a) || a < b ? a : b;
		return true;
	case LTH_EXPR_RMAX:
		*out = isnan(a) || a > b ? a : b;
		return true;
	case LTH_EXPR_RFLOOR:
		*out = floor(a);
		return true;
	case LTH_EXPR_RCEIL:
		*out = ceil(a);
		return true;
	case LTH_EXPR_RROUND:
		*out = nearbyint(a);
		return true;
	case LTH_EXPR_RSQRT:
		*out = sqrt(a);
		return true;
	case LTH_EXPR_RF32:
		*out = (double)(float)a;
		return true;
	default:
		return false;
	}
}

/* The quotient INT64_MIN / -1 and its remainder do not exist. */
static bool divisible(int64_t a, int64_t b)
{
	return b != 0 && !(a == INT64_MIN && b == -1);
}

bool lth_expr_apply(enum lth_expr_op op, int64_t a, int64_t b, int64_t *out_value)
{
	double real;
	switch (op) {
	case LTH_EXPR_ADD:
		return lth_add_i64(a, b, out_value);
	case LTH_EXPR_MUL:
		return lth_mul_i64(a, b, out_value);
	case LTH_EXPR_FLOORDIV:
		if (!divisible(a, b))
			return false;
		*out_value = lth_floordiv_i64(a, b);
		return true;
	case LTH_EXPR_CEILDIV:
		if (!divisible(a, b))
			return false;
		*out_value = lth_ceildiv_i64(a, b);
		return true;
	case LTH_EXPR_MOD: {
		if (!divisible(a, b))
			return false;
		int64_t rest = a % b;
		*out_value = rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
		return true;
	}
	case LTH_EXPR_MIN:
		*out_value = a < b ? a : b;
		return true;
	case LTH_EXPR_MAX:
		*out_value = a > b ? a : b;
		return true;
	case LTH_EXPR_OPAQUE:
		*out_value = a;
		return true;
	case LTH_EXPR_TOREAL:
		*out_value = to_bits((double)a);
		return true;
	case LTH_EXPR_TOINT:
		real = to_real(a);
		if (!(real >= -0x1p63 && real < 0x1p63)) /* a NaN fails too */
			return false;
		*out_value = (int64_t)real;
		return true;
	default:
		if (!apply_real(op, to_real(a), to_real(b), &real))
			return false;
		*out_value = to_bits(real);
		return true;
	}
}

bool lth_relation_holds(enum lth_relation relation, int64_t a, int64_t b)
{
	switch (relation) {
	case LTH_REL_EQ:
		return a == b;
	case LTH_REL_LE:
		return a <= b;
	default:
		return a == 0 ? b == 0 : a == -1 || b % a == 0;
	}
}

enum lth_code lth_expr_failed(const struct lth_program *program, uint32_t id, int64_t a, int64_t b, const char *place,
			      struct lth_diag *diag)
{
	enum lth_expr_op op = program->exprs[id].op;
	char number[64];
	snprintf(number, sizeof(number), "shape expression %u", id);
	place = place ? place : number;
	if (op == LTH_EXPR_TOINT)
		return lth_diag_fail(diag, LTH_RUNTIME_ERROR, place, "a real that an int64 can hold", NULL, "%g",
				     to_real(a));
	bool division = (op == LTH_EXPR_FLOORDIV || op == LTH_EXPR_CEILDIV || op == LTH_EXPR_MOD) && b == 0;
	return lth_diag_fail(diag, LTH_RUNTIME_ERROR, place, division ? "a divisor other than 0" : "an int64 result",
			     NULL, "%lld %s %lld", (long long)a, lth_expr_text(op), (long long)b);
}

enum lth_code lth_program_eval(const struct lth_program *program, const int64_t *symbols, const bool *known,
			       int64_t *out_values, bool *out_defined, struct lth_diag *diag)
{
	for (uint32_t i = 0; i < program->num_exprs; i++) {
		const struct lth_expr *e = &program->exprs[i];
		unsigned operands = operand_counts[e->op];
		bool defined = true;
		if (e->op == LTH_EXPR_SYMBOL) {
			defined = !known || known[e->a];
			out_values[i] = defined ? symbols[e->a] : 0;
		} else if (operands == 0) {
			out_values[i] = e->value;
		} else {
			int64_t a = out_values[e->a], b = operands == 2 ? out_values[e->b] : 0;
			defined = !out_defined || (out_defined[e->a] && (operands == 1 || out_defined[e->b]));
			out_values[i] = 0;
			if (defined && !lth_expr_apply(e->op, a, b, &out_values[i]))
				return lth_expr_failed(program, i, a, b, NULL, diag);
		}
		if (out_defined)
			out_defined[i] = defined;
	}
	return LTH_OK;
}
