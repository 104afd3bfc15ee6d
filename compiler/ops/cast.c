/* Conversions of element type (Cast, CastLike, BitCast) and what passes its input on (Identity, Dropout).
 *
 * Compute types are wider than some memory types (expr.h): a conversion to a narrow type must leave a value that the
 * narrow type holds, because the next operator may read it without a store between. */
#include "compiler/ops/build.h"
#include "compiler/ops/family.h"
#include "compiler/ops/random.h"

#include <math.h>
#include <string.h>

/* Largest finite value of the narrow floats that saturate. */
static double largest(enum lth_dtype dtype)
{
	switch (dtype) {
	case LTH_DTYPE_F8E4M3:
		return 448;
	case LTH_DTYPE_F8E4M3UZ:
		return 240;
	case LTH_DTYPE_F8E5M2:
	case LTH_DTYPE_F8E5M2UZ:
		return 57344;
	case LTH_DTYPE_F4E2M1:
		return 6;
	default:
		return INFINITY;
	}
}

/* Sub-byte integers: the low bits, sign-extended for signed ones. */
static lth_sx low_bits(struct lth_sx_pool *pool, lth_sx x, enum lth_dtype dtype)
{
	unsigned bits = lth_dtype_bits(dtype);
	if (bits >= 8)
		return x;
	if (lth_dtype_class(dtype) == LTH_CLASS_UINT)
		return lth_and(pool, x, lth_same_const(pool, x, (double)((1u << bits) - 1)));
	lth_sx shift = lth_same_const(pool, x, 8 - bits);
	return lth_sx_op2(pool, LTH_SCALAR_SHR, lth_sx_op2(pool, LTH_SCALAR_SHL, x, shift), shift);
}

lth_sx lth_cast_to(struct lth_sx_pool *pool, lth_sx x, enum lth_dtype dtype, bool saturate)
{
	enum lth_dtype compute = lth_compute_dtype(dtype);
	if (!lth_is_float(dtype)) {
		if (lth_dtype_bits(dtype) < 8 && lth_is_float(lth_sx_dtype(pool, x)))
			x = lth_sx_cast(pool, x, LTH_DTYPE_I32); /* a whole number's low bits, not its limit */
		return low_bits(pool, lth_sx_cast(pool, x, compute), dtype);
	}
	x = lth_sx_cast(pool, x, compute);
	if (dtype == compute)
		return x;
	double limit = largest(dtype);
	if (isfinite(limit) && (saturate || dtype == LTH_DTYPE_F4E2M1))
		x = lth_clamp(pool, x, lth_same_const(pool, x, -limit), lth_same_const(pool, x, limit));
	if (dtype == LTH_DTYPE_F4E2M1) /* has no nan: it becomes -0 */
		x = lth_sx_select(pool, lth_unary(pool, LTH_SCALAR_ISNAN, x), lth_same_const(pool, x, -0.0), x);
	return lth_sx_round_to(pool, x, dtype);
}

/* A power of two: the exponent of x, raised by one for a remainder by the rounding mode. */
static lth_sx cast_to_exponent(struct lth_sx_pool *pool, const struct lth_node *node, lth_sx x)
{
	lth_sx bits = lth_sx_bitcast(pool, lth_sx_cast(pool, x, LTH_DTYPE_F32), LTH_DTYPE_I32);
	lth_sx shift = lth_same_const(pool, bits, 23);
	lth_sx exponent = lth_and(pool, lth_sx_op2(pool, LTH_SCALAR_SHR, bits, shift), lth_same_const(pool, bits, 255));
	lth_sx fraction = lth_and(pool, bits, lth_same_const(pool, bits, 0x7fffff));
	if (!lth_op_string_is(node, "round_mode", "down")) {
		double least = lth_op_string_is(node, "round_mode", "up") ? 1 : 0x400000;
		lth_sx raise = lth_le(pool, lth_same_const(pool, bits, least), fraction);
		/* The greatest exponent is taken by nan: saturate below it. */
		exponent = lth_min(pool, lth_add(pool, exponent, lth_sx_cast(pool, raise, LTH_DTYPE_I32)),
				   lth_same_const(pool, bits, 254));
	}
	lth_sx power = lth_sx_bitcast(pool, lth_sx_op2(pool, LTH_SCALAR_SHL, exponent, shift), LTH_DTYPE_F32);
	return lth_sx_select(pool, lth_unary(pool, LTH_SCALAR_ISNAN, x), lth_sx_cast(pool, x, LTH_DTYPE_F32), power);
}

/* Strings are read and written by C kernels. */
static enum lth_code expand_text_cast(struct lth_infer *infer)
{
	lth_value_id x = lth_node_input(infer->node, 0), like = lth_node_input(infer->node, 1);
	enum lth_dtype from = lth_infer_type(infer, 0)->dtype, to;
	enum lth_code code = LTH_OK;
	if (like != LTH_NONE)
		to = lth_infer_type(infer, 1)->dtype;
	else
		code = lth_infer_dtype_attr(infer, "to", &to);
	if (code)
		return code;
	if (!lth_dtype_in(from == LTH_DTYPE_STRING ? to : from, "num|bool"))
		return lth_infer_unsupported(infer, "cast to f32 first or last", "a conversion from %s to %s",
					     lth_dtype_text(from), lth_dtype_text(to));
	const struct lth_attr attr = {.name = "to", .kind = LTH_ATTR_INT, .count = 1, .i = lth_dtype_onnx(to)};
	bool parses = from == LTH_DTYPE_STRING;
	lth_build_output(infer, 0, lth_build(infer, parses ? LTH_OP_ID_ParseNumber : LTH_OP_ID_FormatNumber, &x, 1,
					     &attr, parses));
	return LTH_OK;
}

static enum lth_code infer_parse_number(struct lth_infer *infer)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	enum lth_dtype to;
	enum lth_code code = lth_infer_dtype_attr(infer, "to", &to);
	return code ? code : lth_infer_output(infer, 0, to, type->rank, type->dims);
}

const struct lth_op_impl lth_impl_parse_number = {.infer = infer_parse_number, .builtin = "parse_number"};
const struct lth_op_impl lth_impl_format_number = {.infer = lth_infer_same, .builtin = "format_number"};

static enum lth_code infer_cast(struct lth_infer *infer)
{
	enum lth_dtype to = infer->out_dtypes[0], from = lth_infer_type(infer, 0)->dtype;
	enum lth_code code = to == LTH_NUM_DTYPES ? lth_infer_dtype_attr(infer, "to", &to) : LTH_OK;
	if (code)
		return code;
	if (from != to && (from == LTH_DTYPE_STRING || to == LTH_DTYPE_STRING))
		return lth_build_expand(infer, expand_text_cast);
	if (from != to && (lth_compute_dtype(from) == LTH_NUM_DTYPES || lth_compute_dtype(to) == LTH_NUM_DTYPES))
		return lth_infer_unsupported(infer, NULL, "a conversion from %s to %s is not implemented",
					     lth_dtype_text(from), lth_dtype_text(to));
	const struct lth_type *type = lth_infer_type(infer, 0);
	code = lth_infer_output(infer, 0, to, type->rank, type->dims);
	if (!code)
		lth_infer_elementwise_contents(infer);
	return code;
}

static lth_sx cast_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output, const lth_sx *index)
{
	(void)output;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx x = lth_input_at(lower, node, 0, index);
	enum lth_dtype to = lth_value_dtype(lower, node->outputs[0]);
	if (to == lth_value_dtype(lower, node->inputs[0]))
		return x;
	if (to == LTH_DTYPE_F8E8M0)
		return cast_to_exponent(pool, node, x);
	return lth_cast_to(pool, x, to, lth_op_int(node, "saturate") != 0);
}

const struct lth_op_impl lth_impl_cast = {.infer = infer_cast, .element = cast_element};

/* Whether the compute type shows the bits in memory: bfloat16, the upper half of a float, is the only narrow float that
 * does. */
static bool has_plain_bits(enum lth_dtype dtype)
{
	return lth_compute_dtype(dtype) == dtype || dtype == LTH_DTYPE_BF16;
}

static enum lth_code infer_bitcast(struct lth_infer *infer)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	enum lth_dtype to;
	enum lth_code code = lth_infer_dtype_attr(infer, "to", &to);
	if (code)
		return code;
	if (lth_dtype_bits(to) != lth_dtype_bits(type->dtype))
		return lth_infer_reject(infer, "types of the same width", "%s of %u bits to %s of %u bits",
					lth_dtype_text(type->dtype), lth_dtype_bits(type->dtype), lth_dtype_text(to),
					lth_dtype_bits(to));
	if (to != type->dtype && (!has_plain_bits(to) || !has_plain_bits(type->dtype)))
		return lth_infer_unsupported(infer, NULL, "a cast of bits from %s to %s is not implemented",
					     lth_dtype_text(type->dtype), lth_dtype_text(to));
	return lth_infer_output(infer, 0, to, type->rank, type->dims);
}

static lth_sx bitcast_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
			      const lth_sx *index)
{
	(void)output;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx x = lth_input_at(lower, node, 0, index);
	enum lth_dtype from = lth_value_dtype(lower, node->inputs[0]), to = lth_value_dtype(lower, node->outputs[0]);
	if (from == to)
		return x;
	if (from == LTH_DTYPE_BF16) {
		x = lth_sx_bitcast(pool, x, LTH_DTYPE_U32);
		x = lth_sx_op2(pool, LTH_SCALAR_SHR, x, lth_same_const(pool, x, 16));
		return lth_sx_cast(pool, x, to);
	}
	if (to == LTH_DTYPE_BF16) {
		x = lth_sx_cast(pool, lth_sx_bitcast(pool, x, LTH_DTYPE_U16), LTH_DTYPE_U32);
		x = lth_sx_op2(pool, LTH_SCALAR_SHL, x, lth_same_const(pool, x, 16));
		return lth_sx_bitcast(pool, x, LTH_DTYPE_F32);
	}
	return lth_sx_bitcast(pool, x, to);
}

const struct lth_op_impl lth_impl_bitcast = {.infer = infer_bitcast, .element = bitcast_element};

static enum lth_code infer_identity(struct lth_infer *infer)
{
	enum lth_code code = lth_infer_output_type(infer, 0, lth_infer_type(infer, 0));
	if (!code && infer->node->outputs[0] != LTH_NONE) {
		const struct lth_contents *contents = lth_value_contents(infer->graph, infer->node->inputs[0]);
		if (contents)
			infer->graph->values[infer->node->outputs[0]].contents = contents;
	}
	return code;
}

static lth_sx identity_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
			       const lth_sx *index)
{
	(void)output;
	return lth_read(lower, node->inputs[0], index);
}

const struct lth_op_impl lth_impl_identity = {.infer = infer_identity, .element = identity_element};

/* Kept elements are scaled so that the mean stays. Training that is not known at compile time is decided an element. */
static lth_sx dropout_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
			      const lth_sx *index)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_value_id ratio_input = lth_node_input(node, 1), training_input = lth_node_input(node, 2);
	lth_sx yes = lth_sx_const_i(pool, LTH_DTYPE_BOOL, 1);
	lth_sx x = lth_read(lower, node->inputs[0], index);
	lth_sx training = training_input == LTH_NONE ? lth_sx_const_i(pool, LTH_DTYPE_BOOL, 0)
						     : lth_read_scalar(lower, training_input);
	int64_t off;
	if (lth_sx_is_int(pool, training, &off) && !off)
		return output == 0 ? x : yes;
	lth_sx ratio = ratio_input == LTH_NONE ? lth_sx_const_f(pool, LTH_DTYPE_F32, 0.5)
					       : lth_sx_cast(pool, lth_read_scalar(lower, ratio_input), LTH_DTYPE_F32);
	lth_sx keep = lth_le(pool, ratio, lth_random_uniform(lower, node, node->outputs[0], index));
	if (output == 1)
		return lth_sx_select(pool, training, keep, yes);
	lth_sx scale = lth_div(pool, lth_sx_const_f(pool, LTH_DTYPE_F32, 1),
			       lth_sub(pool, lth_sx_const_f(pool, LTH_DTYPE_F32, 1), ratio));
	lth_sx kept = lth_mul(pool, x, lth_sx_cast(pool, scale, lth_sx_dtype(pool, x)));
	kept = lth_sx_select(pool, keep, kept, lth_same_const(pool, x, 0));
	return lth_sx_select(pool, training, kept, x);
}

static enum lth_code infer_dropout(struct lth_infer *infer)
{
	enum lth_code code = lth_infer_need_one(infer, 1);
	if (!code)
		code = lth_infer_need_one(infer, 2);
	return code ? code : lth_infer_same(infer);
}

const struct lth_op_impl lth_impl_dropout = {.infer = infer_dropout, .element = dropout_element};
