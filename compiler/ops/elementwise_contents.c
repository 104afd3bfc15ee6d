/* Arithmetic on the contents of small tensors: shapes computed by a model become dimension expressions here. Integers
 * are exact; floating-point steps are kept with the rounding to float32 that the model's own arithmetic does. What an
 * operator cannot say exactly stays unknown. */
#include "compiler/ops/family.h"

#include <math.h>

#define UNKNOWN UINT32_MAX

/* One element: a dimension or a real. */
struct element {
	bool real;
	uint32_t id;
};

static uint32_t truth(struct lth_infer *infer, enum lth_truth value)
{
	return value == LTH_UNKNOWN ? UNKNOWN : lth_dim_const(infer->dims, value == LTH_YES);
}

static bool is_truth_value(struct lth_infer *infer, lth_dim a)
{
	int64_t min, max;
	lth_dim_range(infer->dims, a, &min, &max);
	return min >= 0 && max <= 1;
}

static enum lth_truth negate(enum lth_truth value)
{
	return value == LTH_UNKNOWN ? value : value == LTH_YES ? LTH_NO : LTH_YES;
}

/* Truth values as dimensions: 1 where x > 0. The conditions of If are such; x is a difference of sizes. */
static uint32_t is_above_zero(struct lth_infer *infer, lth_dim x)
{
	lth_dim zero = lth_dim_const(infer->dims, 0), one = lth_dim_const(infer->dims, 1);
	return x == LTH_DIM_NONE ? (uint32_t)UNKNOWN
				 : lth_dim_min(infer->dims, one, lth_dim_max(infer->dims, zero, x));
}

static uint32_t invert(struct lth_infer *infer, uint32_t truth_value)
{
	return truth_value == UNKNOWN ? truth_value
				      : lth_dim_sub(infer->dims, lth_dim_const(infer->dims, 1), truth_value);
}

static bool is_size(struct lth_infer *infer, lth_dim a)
{
	int64_t min, max;
	lth_dim_range(infer->dims, a, &min, &max);
	return min >= 0 && (min < INT32_MAX || max < INT64_MAX);
}

/* A comparison that the box does not decide; of single sizes, as the conditions of If are. */
static uint32_t compare_dims(struct lth_infer *infer, lth_dim a, lth_dim b)
{
	uint32_t count;
	if (!lth_infer_wants_contents(infer, 0, &count) || count != 1 || !is_size(infer, a) || !is_size(infer, b))
		return UNKNOWN;
	lth_dim forth = lth_dim_sub(infer->dims, a, b), back = lth_dim_sub(infer->dims, b, a);
	if (forth == LTH_DIM_NONE || back == LTH_DIM_NONE)
		return UNKNOWN;
	switch (lth_op_id(infer->node->op)) {
	case LTH_OP_ID_Equal:
		return invert(infer, is_above_zero(infer, lth_dim_max(infer->dims, forth, back)));
	case LTH_OP_ID_LessOrEqual:
		return invert(infer, is_above_zero(infer, forth));
	case LTH_OP_ID_GreaterOrEqual:
		return invert(infer, is_above_zero(infer, back));
	case LTH_OP_ID_Less:
		return is_above_zero(infer, back);
	default:
		return is_above_zero(infer, forth);
	}
}

/* The sign is known: division and remainder by 0 or by what may be 0 stay unknown. */
static bool is_positive(struct lth_infer *infer, lth_dim a)
{
	int64_t min, max;
	lth_dim_range(infer->dims, a, &min, &max);
	return min > 0;
}

static uint32_t divide(struct lth_infer *infer, const struct lth_node *node, lth_dim a, lth_dim b)
{
	int64_t divisor;
	bool safe = is_positive(infer, b) || (lth_dim_is_const(infer->dims, b, &divisor) && divisor < -1);
	if (!safe)
		return UNKNOWN;
	if (lth_op_id(node->op) == LTH_OP_ID_Div)
		return lth_dim_truncdiv(infer->dims, a, b);
	if (!lth_op_int(node, "fmod"))
		return lth_dim_mod(infer->dims, a, b);
	lth_dim quotient = lth_dim_truncdiv(infer->dims, a, b);
	return quotient == LTH_DIM_NONE ? UNKNOWN : lth_dim_sub(infer->dims, a, lth_dim_mul(infer->dims, quotient, b));
}

static uint32_t compare(struct lth_infer *infer, enum lth_truth decided, lth_dim a, lth_dim b)
{
	return decided == LTH_UNKNOWN ? compare_dims(infer, a, b) : truth(infer, decided);
}

static uint32_t binary_int(struct lth_infer *infer, lth_dim a, lth_dim b)
{
	struct lth_dims *dims = infer->dims;
	int64_t x, y;
	bool known = lth_dim_is_const(dims, a, &x) && lth_dim_is_const(dims, b, &y);
	switch (lth_op_id(infer->node->op)) {
	case LTH_OP_ID_Add:
		return lth_dim_add(dims, a, b);
	case LTH_OP_ID_Sub:
		return lth_dim_sub(dims, a, b);
	case LTH_OP_ID_Mul:
		return lth_dim_mul(dims, a, b);
	case LTH_OP_ID_Div:
	case LTH_OP_ID_Mod:
		return divide(infer, infer->node, a, b);
	case LTH_OP_ID_Min:
		return lth_dim_min(dims, a, b);
	case LTH_OP_ID_Max:
		return lth_dim_max(dims, a, b);
	case LTH_OP_ID_Equal:
		return compare(infer, lth_dim_equal(dims, a, b), a, b);
	case LTH_OP_ID_LessOrEqual:
		return compare(infer, lth_dim_le(dims, a, b), a, b);
	case LTH_OP_ID_GreaterOrEqual:
		return compare(infer, lth_dim_le(dims, b, a), a, b);
	case LTH_OP_ID_Less:
		return compare(infer, negate(lth_dim_le(dims, b, a)), a, b);
	case LTH_OP_ID_Greater:
		return compare(infer, negate(lth_dim_le(dims, a, b)), a, b);
	case LTH_OP_ID_And:
		return is_truth_value(infer, a) && is_truth_value(infer, b) ? lth_dim_min(dims, a, b) : (uint32_t)UNKNOWN;
	case LTH_OP_ID_Or:
		return is_truth_value(infer, a) && is_truth_value(infer, b) ? lth_dim_max(dims, a, b) : (uint32_t)UNKNOWN;
	case LTH_OP_ID_Xor:
		return known ? lth_dim_const(dims, !x != !y) : (uint32_t)UNKNOWN;
	default:
		return UNKNOWN;
	}
}

/* Comparisons of constant reals; the result is a dimension. */
static uint32_t compare_reals(struct lth_infer *infer, lth_real a, lth_real b)
{
	double x, y;
	if (!lth_real_is_const(infer->dims, a, &x) || !lth_real_is_const(infer->dims, b, &y))
		return UNKNOWN;
	switch (lth_op_id(infer->node->op)) {
	case LTH_OP_ID_Equal:
		return lth_dim_const(infer->dims, x == y);
	case LTH_OP_ID_Less:
		return lth_dim_const(infer->dims, x < y);
	case LTH_OP_ID_LessOrEqual:
		return lth_dim_const(infer->dims, x <= y);
	case LTH_OP_ID_Greater:
		return lth_dim_const(infer->dims, x > y);
	case LTH_OP_ID_GreaterOrEqual:
		return lth_dim_const(infer->dims, x >= y);
	default:
		return UNKNOWN;
	}
}

static enum lth_expr_op real_operator(enum lth_op_id id)
{
	switch (id) {
	case LTH_OP_ID_Add:
	case LTH_OP_ID_Sum:
		return LTH_EXPR_RADD;
	case LTH_OP_ID_Sub:
		return LTH_EXPR_RSUB;
	case LTH_OP_ID_Mul:
		return LTH_EXPR_RMUL;
	case LTH_OP_ID_Div:
		return LTH_EXPR_RDIV;
	case LTH_OP_ID_Min:
		return LTH_EXPR_RMIN;
	case LTH_OP_ID_Max:
		return LTH_EXPR_RMAX;
	case LTH_OP_ID_Floor:
		return LTH_EXPR_RFLOOR;
	case LTH_OP_ID_Ceil:
		return LTH_EXPR_RCEIL;
	case LTH_OP_ID_Round:
		return LTH_EXPR_RROUND;
	case LTH_OP_ID_Sqrt:
		return LTH_EXPR_RSQRT;
	default:
		return LTH_NUM_EXPRS;
	}
}

/* Rounds as a value of the element type would be. */
static uint32_t rounded(struct lth_infer *infer, enum lth_dtype dtype, lth_real a)
{
	if (a == UNKNOWN || dtype == LTH_DTYPE_F64)
		return a;
	return lth_real_apply(infer->dims, LTH_EXPR_RF32, a, a);
}

static uint32_t binary(struct lth_infer *infer, enum lth_dtype dtype, struct element a, struct element b)
{
	if (a.real != b.real)
		return UNKNOWN;
	if (!a.real)
		return binary_int(infer, a.id, b.id);
	if (dtype == LTH_DTYPE_BOOL)
		return compare_reals(infer, a.id, b.id);
	enum lth_expr_op op = real_operator(lth_op_id(infer->node->op));
	return op == LTH_NUM_EXPRS ? (uint32_t)UNKNOWN
				   : rounded(infer, dtype, lth_real_apply(infer->dims, op, a.id, b.id));
}

static uint32_t unary_int(struct lth_infer *infer, lth_dim a)
{
	struct lth_dims *dims = infer->dims;
	lth_dim zero = lth_dim_const(dims, 0);
	int64_t value;
	switch (lth_op_id(infer->node->op)) {
	case LTH_OP_ID_Neg:
		return lth_dim_sub(dims, zero, a);
	case LTH_OP_ID_Abs:
		if (lth_dim_at_most(dims, zero, a))
			return a;
		return lth_dim_max(dims, a, lth_dim_sub(dims, zero, a));
	case LTH_OP_ID_Sign:
		if (is_positive(infer, a))
			return lth_dim_const(dims, 1);
		return lth_dim_is_const(dims, a, &value) ? lth_dim_const(dims, (value > 0) - (value < 0))
							 : (uint32_t)UNKNOWN;
	case LTH_OP_ID_Relu:
		return lth_dim_max(dims, a, zero);
	case LTH_OP_ID_Not:
		return is_truth_value(infer, a) ? invert(infer, a) : (uint32_t)UNKNOWN;
	default:
		return UNKNOWN;
	}
}

static uint32_t unary_real(struct lth_infer *infer, enum lth_dtype dtype, lth_real a)
{
	struct lth_dims *dims = infer->dims;
	enum lth_expr_op op = real_operator(lth_op_id(infer->node->op));
	if (op != LTH_NUM_EXPRS)
		return rounded(infer, dtype, lth_real_apply(dims, op, a, a));
	if (lth_op_id(infer->node->op) == LTH_OP_ID_Neg)
		return lth_real_apply(dims, LTH_EXPR_RSUB, lth_real_const(dims, -0.0), a);
	if (lth_op_id(infer->node->op) == LTH_OP_ID_Reciprocal)
		return rounded(infer, dtype, lth_real_apply(dims, LTH_EXPR_RDIV, lth_real_const(dims, 1), a));
	return UNKNOWN;
}

/* Between element types; integers that would not fit stay unknown. */
static uint32_t convert(struct lth_infer *infer, enum lth_dtype to, struct element a)
{
	struct lth_dims *dims = infer->dims;
	bool to_real = lth_is_float(to);
	double real;
	if (to_real && !a.real)
		return rounded(infer, to, lth_real_from_dim(dims, a.id));
	if (to_real)
		return rounded(infer, to, a.id);
	if (to == LTH_DTYPE_BOOL) {
		if (a.real)
			return lth_real_is_const(dims, a.id, &real) ? lth_dim_const(dims, real != 0)
								    : (uint32_t)UNKNOWN;
		if (is_truth_value(infer, a.id))
			return a.id;
		return truth(infer, negate(lth_dim_equal(dims, a.id, lth_dim_const(dims, 0))));
	}
	if (!a.real)
		return a.id;
	if (lth_real_is_const(dims, a.id, &real) && !(fabs(real) < 9e18))
		return UNKNOWN;
	return lth_dim_from_real(dims, a.id);
}

static uint32_t pow_contents(struct lth_infer *infer, enum lth_dtype dtype, struct element a, struct element b)
{
	int64_t exponent;
	double x, y;
	if (!a.real && !b.real && lth_dim_is_const(infer->dims, b.id, &exponent) && exponent >= 0 && exponent <= 8) {
		lth_dim result = lth_dim_const(infer->dims, 1);
		for (int64_t i = 0; i < exponent && result != LTH_DIM_NONE; i++)
			result = lth_dim_mul(infer->dims, result, a.id);
		return result;
	}
	if (a.real && b.real && lth_real_is_const(infer->dims, a.id, &x) && lth_real_is_const(infer->dims, b.id, &y))
		return rounded(infer, dtype, lth_real_const(infer->dims, pow(x, y)));
	return UNKNOWN;
}

static uint32_t select_contents(struct lth_infer *infer, const struct element *in)
{
	int64_t condition;
	if (lth_dim_is_const(infer->dims, in[0].id, &condition))
		return condition ? in[1].id : in[2].id;
	return in[1].real == in[2].real && in[1].id == in[2].id ? in[1].id : (uint32_t)UNKNOWN;
}

static uint32_t clip_contents(struct lth_infer *infer, const struct element *in)
{
	uint32_t x = in[0].id;
	bool real = in[0].real;
	if (in[1].id != UNKNOWN)
		x = real ? lth_real_apply(infer->dims, LTH_EXPR_RMAX, x, in[1].id)
			 : lth_dim_max(infer->dims, x, in[1].id);
	if (in[2].id != UNKNOWN)
		x = real ? lth_real_apply(infer->dims, LTH_EXPR_RMIN, x, in[2].id)
			 : lth_dim_min(infer->dims, x, in[2].id);
	return x;
}

/* One element of the output from the elements of the inputs at its place. */
static uint32_t evaluate(struct lth_infer *infer, enum lth_dtype dtype, const struct element *in, uint32_t count)
{
	switch (lth_op_id(infer->node->op)) {
	case LTH_OP_ID_Cast:
	case LTH_OP_ID_CastLike:
		return convert(infer, dtype, in[0]);
	case LTH_OP_ID_Where:
		return select_contents(infer, in);
	case LTH_OP_ID_Clip:
		return clip_contents(infer, in);
	case LTH_OP_ID_Pow:
		return pow_contents(infer, dtype, in[0], in[1]);
	case LTH_OP_ID_Min:
	case LTH_OP_ID_Max:
	case LTH_OP_ID_Sum: {
		struct element result = in[0];
		for (uint32_t i = 1; i < count && result.id != UNKNOWN; i++)
			result.id = binary(infer, dtype, result, in[i]);
		return result.id;
	}
	default:
		break;
	}
	if (count == 2)
		return binary(infer, dtype, in[0], in[1]);
	if (count == 1)
		return in[0].real ? unary_real(infer, dtype, in[0].id) : unary_int(infer, in[0].id);
	return UNKNOWN;
}

/* The place in an input, of constant shape, that output place `flat` reads. */
static uint32_t broadcast_place(struct lth_infer *infer, uint32_t input, uint32_t flat, const int64_t *shape,
				uint32_t rank)
{
	const struct lth_type *type = lth_infer_type(infer, input);
	int64_t place = 0, stride = 1;
	for (uint32_t i = 0; i < rank; i++) {
		int64_t at = flat % shape[rank - 1 - i], extent = 1;
		flat = (uint32_t)(flat / shape[rank - 1 - i]);
		if (i >= type->rank)
			continue;
		lth_dim_is_const(infer->dims, type->dims[type->rank - 1 - i], &extent);
		place += extent == 1 ? 0 : at * stride;
		stride *= extent;
	}
	return (uint32_t)place;
}

/* Contents only follow the types whose arithmetic is exact here. */
static bool is_followed(enum lth_dtype dtype)
{
	return dtype == LTH_DTYPE_I64 || dtype == LTH_DTYPE_I32 || dtype == LTH_DTYPE_BOOL || dtype == LTH_DTYPE_F32 ||
	       dtype == LTH_DTYPE_F64;
}

static bool fits(struct lth_infer *infer, enum lth_dtype dtype, uint32_t id)
{
	int64_t value;
	if (id == UNKNOWN)
		return false;
	return dtype != LTH_DTYPE_I32 || !lth_dim_is_const(infer->dims, id, &value) ||
	       (value >= INT32_MIN && value <= INT32_MAX);
}

void lth_infer_elementwise_contents(struct lth_infer *infer)
{
	enum { MAX_INPUTS = 8 };
	uint32_t count, inputs = infer->node->num_inputs, list[LTH_MAX_CONTENTS], counts[MAX_INPUTS];
	const uint32_t *known[MAX_INPUTS];
	bool reals[MAX_INPUTS];
	int64_t shape[LTH_MAX_RANK];
	if (inputs > MAX_INPUTS || !lth_infer_wants_contents(infer, 0, &count))
		return;
	const struct lth_type *type = &infer->graph->values[infer->node->outputs[0]].type;
	if (!is_followed(type->dtype) || !lth_type_static(infer->graph, type, shape))
		return;
	for (uint32_t i = 0; i < inputs; i++) {
		known[i] = lth_infer_ints(infer, i, &counts[i]);
		reals[i] = !known[i];
		if (!known[i])
			known[i] = lth_infer_reals(infer, i, &counts[i]);
		bool type_only = lth_op_id(infer->node->op) == LTH_OP_ID_CastLike && i == 1;
		if (!known[i] && infer->node->inputs[i] != LTH_NONE && !type_only)
			return;
	}
	for (uint32_t at = 0; at < count; at++) {
		struct element in[MAX_INPUTS] = {{false, UNKNOWN}, {false, UNKNOWN}, {false, UNKNOWN}};
		for (uint32_t i = 0; i < inputs; i++) {
			if (!known[i])
				continue;
			uint32_t place = broadcast_place(infer, i, at, shape, type->rank);
			in[i] = (struct element){reals[i], known[i][place < counts[i] ? place : 0]};
		}
		list[at] = evaluate(infer, type->dtype, in, inputs);
		if (!fits(infer, type->dtype, list[at]))
			return;
	}
	if (lth_is_float(type->dtype))
		lth_infer_set_reals(infer, 0, list, count);
	else
		lth_infer_set_ints(infer, 0, list, count);
}
