/* Elementwise arithmetic, comparison and logic with numpy broadcasting. Activations, casts and quantisation have files
 * of their own; all share lth_infer_elementwise. */
#include "compiler/ops/build.h"
#include "compiler/ops/family.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum lth_code lth_infer_elementwise(struct lth_infer *infer)
{
	lth_dim dims[LTH_MAX_RANK];
	uint32_t rank = 0;
	for (uint32_t i = 0; i < infer->node->num_inputs; i++) {
		const struct lth_type *type = lth_infer_type(infer, i);
		enum lth_code code = type ? lth_infer_broadcast(infer, dims, &rank, type->dims, type->rank) : LTH_OK;
		if (code)
			return code;
	}
	enum lth_code code = lth_infer_output(infer, 0, LTH_NUM_DTYPES, rank, dims);
	if (!code)
		lth_infer_elementwise_contents(infer);
	return code;
}

/* ---- one operand ---- */

static const enum lth_scalar_op unary_scalars[LTH_NUM_OPS] = {
	[LTH_OP_ID_Neg] = LTH_SCALAR_NEG,        [LTH_OP_ID_Sqrt] = LTH_SCALAR_SQRT,
	[LTH_OP_ID_Floor] = LTH_SCALAR_FLOOR,    [LTH_OP_ID_Ceil] = LTH_SCALAR_CEIL,
	[LTH_OP_ID_Round] = LTH_SCALAR_RINT,     [LTH_OP_ID_Exp] = LTH_SCALAR_EXP,
	[LTH_OP_ID_Log] = LTH_SCALAR_LOG,        [LTH_OP_ID_Sin] = LTH_SCALAR_SIN,
	[LTH_OP_ID_Cos] = LTH_SCALAR_COS,        [LTH_OP_ID_Tan] = LTH_SCALAR_TAN,
	[LTH_OP_ID_Asin] = LTH_SCALAR_ASIN,      [LTH_OP_ID_Acos] = LTH_SCALAR_ACOS,
	[LTH_OP_ID_Atan] = LTH_SCALAR_ATAN,      [LTH_OP_ID_Sinh] = LTH_SCALAR_SINH,
	[LTH_OP_ID_Cosh] = LTH_SCALAR_COSH,      [LTH_OP_ID_Tanh] = LTH_SCALAR_TANH,
	[LTH_OP_ID_Asinh] = LTH_SCALAR_ASINH,    [LTH_OP_ID_Acosh] = LTH_SCALAR_ACOSH,
	[LTH_OP_ID_Atanh] = LTH_SCALAR_ATANH,    [LTH_OP_ID_Erf] = LTH_SCALAR_ERF,
	[LTH_OP_ID_Not] = LTH_SCALAR_NOT,        [LTH_OP_ID_IsNaN] = LTH_SCALAR_ISNAN,
	[LTH_OP_ID_BitwiseNot] = LTH_SCALAR_NOT,
};

static lth_sx sign(struct lth_sx_pool *pool, lth_sx x)
{
	lth_sx zero = lth_same_const(pool, x, 0), one = lth_same_const(pool, x, 1);
	lth_sx below = lth_dtype_class(lth_sx_dtype(pool, x)) == LTH_CLASS_UINT
			       ? x
			       : lth_sx_select(pool, lth_lt(pool, x, zero), lth_same_const(pool, x, -1), x);
	return lth_sx_select(pool, lth_lt(pool, zero, x), one, below); /* zeros and nan pass */
}

static lth_sx unary_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output, const lth_sx *index)
{
	(void)output;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx x = lth_input_at(lower, node, 0, index);
	enum lth_dtype memory = lth_value_dtype(lower, node->inputs[0]);
	switch (lth_op_id(node->op)) {
	case LTH_OP_ID_Abs:
		return lth_dtype_class(memory) == LTH_CLASS_UINT ? x : lth_unary(pool, LTH_SCALAR_ABS, x);
	case LTH_OP_ID_Sign:
		return sign(pool, x);
	case LTH_OP_ID_Reciprocal:
		return lth_div(pool, lth_same_const(pool, x, 1), x);
	default:
		return lth_unary(pool, unary_scalars[lth_op_id(node->op)], x);
	}
}

const struct lth_op_impl lth_impl_unary = {.infer = lth_infer_elementwise, .element = unary_element};

static lth_sx isinf_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output, const lth_sx *index)
{
	(void)output;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx x = lth_input_at(lower, node, 0, index);
	lth_sx no = lth_sx_const_i(pool, LTH_DTYPE_BOOL, 0);
	lth_sx above = lth_op_int(node, "detect_positive") ? lth_eq(pool, x, lth_same_const(pool, x, INFINITY)) : no;
	lth_sx below = lth_op_int(node, "detect_negative") ? lth_eq(pool, x, lth_same_const(pool, x, -INFINITY)) : no;
	return lth_or(pool, above, below);
}

const struct lth_op_impl lth_impl_isinf = {.infer = lth_infer_elementwise, .element = isinf_element};

/* ---- two operands ---- */

/* The scalar operator, and whether its operands are exchanged (a > b is b < a). */
static enum lth_scalar_op binary_scalar(const struct lth_node *node, bool *out_swap)
{
	*out_swap = false;
	switch (lth_op_id(node->op)) {
	case LTH_OP_ID_Add:
		return LTH_SCALAR_ADD;
	case LTH_OP_ID_Sub:
		return LTH_SCALAR_SUB;
	case LTH_OP_ID_Mul:
		return LTH_SCALAR_MUL;
	case LTH_OP_ID_Div:
		return LTH_SCALAR_DIV;
	case LTH_OP_ID_Mod:
		return lth_op_int(node, "fmod") ? LTH_SCALAR_REM : LTH_SCALAR_MOD;
	case LTH_OP_ID_BitShift:
		return lth_op_string_is(node, "direction", "LEFT") ? LTH_SCALAR_SHL : LTH_SCALAR_SHR;
	case LTH_OP_ID_And:
	case LTH_OP_ID_BitwiseAnd:
		return LTH_SCALAR_AND;
	case LTH_OP_ID_Or:
	case LTH_OP_ID_BitwiseOr:
		return LTH_SCALAR_OR;
	case LTH_OP_ID_Xor:
	case LTH_OP_ID_BitwiseXor:
		return LTH_SCALAR_XOR;
	case LTH_OP_ID_Equal:
		return LTH_SCALAR_EQ;
	case LTH_OP_ID_Less:
		return LTH_SCALAR_LT;
	case LTH_OP_ID_LessOrEqual:
		return LTH_SCALAR_LE;
	case LTH_OP_ID_Greater:
		*out_swap = true;
		return LTH_SCALAR_LT;
	default:
		assert(lth_op_id(node->op) == LTH_OP_ID_GreaterOrEqual);
		*out_swap = true;
		return LTH_SCALAR_LE;
	}
}

static lth_sx binary_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
			     const lth_sx *index)
{
	(void)output;
	bool swap;
	enum lth_scalar_op op = binary_scalar(node, &swap);
	lth_sx a = lth_input_at(lower, node, swap ? 1 : 0, index);
	lth_sx b = lth_input_at(lower, node, swap ? 0 : 1, index);
	return lth_sx_op2(lth_lower_pool(lower), op, a, b);
}

const struct lth_op_impl lth_impl_binary = {.infer = lth_infer_elementwise, .element = binary_element};

static enum lth_code expand_string_equal(struct lth_infer *infer)
{
	lth_value_id a = lth_node_input(infer->node, 0), b = lth_node_input(infer->node, 1);
	lth_build_output(infer, 0, lth_build2(infer, LTH_OP_ID_StringEqual, a, b));
	return LTH_OK;
}

static enum lth_code infer_equal(struct lth_infer *infer)
{
	if (lth_infer_type(infer, 0)->dtype == LTH_DTYPE_STRING)
		return lth_build_expand(infer, expand_string_equal);
	return lth_infer_elementwise(infer);
}

const struct lth_op_impl lth_impl_equal = {.infer = infer_equal, .element = binary_element};

/* The exponent when it is one number for all elements. */
static bool constant_exponent(struct lth_lower *lower, const struct lth_node *node, double *out)
{
	struct lth_graph *graph = lth_lower_graph(lower);
	const struct lth_contents *contents = lth_value_contents(graph, node->inputs[1]);
	int64_t integer;
	if (!contents || contents->count != 1)
		return false;
	if (contents->reals)
		return lth_real_is_const(graph->dims, contents->reals[0], out);
	if (!lth_dim_is_const(graph->dims, contents->dims[0], &integer))
		return false;
	*out = (double)integer;
	return true;
}

/* Of integers in double: exact as long as the result is below 2^53. Small whole powers are products. */
static lth_sx pow_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output, const lth_sx *index)
{
	(void)output;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx x = lth_input_at(lower, node, 0, index);
	double exponent;
	if (constant_exponent(lower, node, &exponent)) {
		if (exponent == 1)
			return x;
		if (exponent == 2)
			return lth_mul(pool, x, x);
		if (exponent == 3)
			return lth_mul(pool, lth_mul(pool, x, x), x);
	}
	lth_sx y = lth_input_at(lower, node, 1, index);
	enum lth_dtype type = lth_sx_dtype(pool, x), exponent_type = lth_sx_dtype(pool, y);
	enum lth_dtype work = type;
	if (!lth_is_float(type) || exponent_type == LTH_DTYPE_F64)
		work = LTH_DTYPE_F64;
	lth_sx power = lth_sx_op2(pool, LTH_SCALAR_POW, lth_sx_cast(pool, x, work), lth_sx_cast(pool, y, work));
	return lth_sx_cast(pool, power, type);
}

const struct lth_op_impl lth_impl_pow = {.infer = lth_infer_elementwise, .element = pow_element};

/* ---- any number of operands ---- */

static lth_sx variadic_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
			       const lth_sx *index)
{
	(void)output;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	enum lth_op_id id = lth_op_id(node->op);
	enum lth_scalar_op op = id == LTH_OP_ID_Max   ? LTH_SCALAR_MAX
				: id == LTH_OP_ID_Min ? LTH_SCALAR_MIN
						      : LTH_SCALAR_ADD;
	lth_sx result = lth_input_at(lower, node, 0, index);
	for (uint32_t i = 1; i < node->num_inputs; i++)
		result = lth_sx_op2(pool, op, result, lth_input_at(lower, node, i, index));
	return id == LTH_OP_ID_Mean ? lth_div(pool, result, lth_same_const(pool, result, node->num_inputs)) : result;
}

const struct lth_op_impl lth_impl_variadic = {.infer = lth_infer_elementwise, .element = variadic_element};

static lth_sx where_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output, const lth_sx *index)
{
	(void)output;
	lth_sx condition = lth_input_at(lower, node, 0, index);
	lth_sx yes = lth_input_at(lower, node, 1, index), no = lth_input_at(lower, node, 2, index);
	return lth_sx_select(lth_lower_pool(lower), condition, yes, no);
}

const struct lth_op_impl lth_impl_where = {.infer = lth_infer_elementwise, .element = where_element};

static enum lth_code infer_clip(struct lth_infer *infer)
{
	enum lth_code code = LTH_OK;
	for (uint32_t i = 1; !code && i < infer->node->num_inputs; i++)
		code = lth_infer_need_one(infer, i);
	if (!code)
		code = lth_infer_like(infer, 0, 0);
	if (!code)
		lth_infer_elementwise_contents(infer);
	return code;
}

static lth_sx clip_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output, const lth_sx *index)
{
	(void)output;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx x = lth_input_at(lower, node, 0, index);
	lth_value_id low = lth_node_input(node, 1), high = lth_node_input(node, 2);
	if (low != LTH_NONE)
		x = lth_max(pool, x, lth_read_scalar(lower, low));
	return high == LTH_NONE ? x : lth_min(pool, x, lth_read_scalar(lower, high));
}

const struct lth_op_impl lth_impl_clip = {.infer = infer_clip, .element = clip_element};
