/* QuantizeLinear and DequantizeLinear: by one scale, one a slice of an axis, or one a block of it. */
#include "compiler/ops/family.h"

#include <math.h>

/* Range of an integer type of at most 32 bits. */
static void integer_range(enum lth_dtype dtype, double *out_min, double *out_max)
{
	unsigned bits = lth_dtype_bits(dtype);
	bool is_signed = lth_dtype_class(dtype) == LTH_CLASS_INT;
	*out_min = is_signed ? -ldexp(1, (int)bits - 1) : 0;
	*out_max = ldexp(1, (int)bits - is_signed) - 1;
}

lth_sx lth_saturate(struct lth_sx_pool *pool, lth_sx x, enum lth_dtype dtype)
{
	double min, max;
	integer_range(dtype, &min, &max);
	x = lth_unary(pool, LTH_SCALAR_RINT, x);
	x = lth_clamp(pool, x, lth_same_const(pool, x, min), lth_same_const(pool, x, max));
	return lth_sx_cast(pool, x, lth_compute_dtype(dtype));
}

/* Whether taking the zero points off bytes of type `dtype` may need a ninth bit. */
static bool wide_zeros(const struct lth_value *zero, enum lth_dtype dtype)
{
	if (!zero)
		return dtype == LTH_DTYPE_U8;
	const uint8_t *bytes = zero->constant.data;
	for (int64_t i = 0; i < zero->constant.bytes; i++)
		if (bytes[i] != (dtype == LTH_DTYPE_U8 ? 0x80 : 0))
			return true;
	return false;
}

bool lth_problem_bytes(struct lth_lower *lower, lth_value_id x_zero, lth_value_id w, lth_value_id w_zero,
		       struct lth_problem *out, struct lth_problem_values *out_values)
{
	struct lth_graph *graph = lth_lower_graph(lower);
	const struct lth_value *zero = w_zero == LTH_NONE ? NULL : &graph->values[w_zero];
	bool known = !zero || zero->def == LTH_DEF_CONSTANT;
	int64_t count = 1;
	lth_dim one = lth_dim_const(graph->dims, 1);
	if ((x_zero != LTH_NONE && lth_type_elements(graph, &graph->values[x_zero].type) != one) ||
	    (zero && (zero->type.rank > 1 ||
		      !lth_dim_is_const(graph->dims, lth_type_elements(graph, &zero->type), &count))))
		return false;
	out->compute = LTH_DTYPE_I32;
	out->zero_points = (struct lth_zero_points){.a = {.pointer = LTH_LV_NONE},
						    .b = zero && known ? zero->constant.data : NULL,
						    .b_read = {.pointer = LTH_LV_NONE, .constant = true},
						    .b_by_column = count > 1,
						    .wide = !known || wide_zeros(zero, graph->values[w].type.dtype)};
	if (zero)
		out->zero_points.b_read = lth_operand_of(lower, w_zero);
	out_values->x_zero = x_zero;
	out_values->w_zeros = w_zero;
	return true;
}

/* A vector of which only the run knows whether it is a scale for all. */
static bool may_be_one(struct lth_dims *dims, const struct lth_type *scale)
{
	return scale->rank == 1 && lth_dim_equal(dims, scale->dims[0], lth_dim_const(dims, 1)) == LTH_UNKNOWN;
}

/* The scale is a scalar, a vector over the axis, or blocks: of the input's rank, each covering `block_size`
 * elements. */
static enum lth_code check_scale(struct lth_infer *infer, uint32_t input)
{
	const struct lth_type *x = lth_infer_type(infer, 0), *scale = lth_infer_type(infer, input);
	int64_t block = lth_op_int(infer->node, "block_size");
	lth_dim one = lth_dim_const(infer->dims, 1);
	uint32_t axis;
	int64_t given = lth_op_int(infer->node, "axis"), rank = x->rank;
	if (!scale || lth_dim_equal(infer->dims, lth_type_elements(infer->graph, scale), one) == LTH_YES)
		return LTH_OK;
	if (may_be_one(infer->dims, scale) && !block && (given < -rank || given >= rank))
		return lth_infer_require(infer, LTH_REL_EQ, scale->dims[0], one, "one scale and zero point");
	enum lth_code code = lth_infer_axis(infer, given, x->rank, &axis);
	if (code)
		return code;
	const char *rule = "one scale and zero point for each slice of the axis";
	if (scale->rank == 1 && !block)
		return lth_infer_require_either(infer, scale->dims[0], x->dims[axis], one, rule);
	if (scale->rank != x->rank || block <= 0)
		return lth_infer_reject(infer, "a scalar, a vector along `axis`, or blocks with `block_size`",
					"%s has shape %s", lth_infer_input_text(infer, input),
					lth_infer_shape_text(infer, scale));
	for (uint32_t i = 0; !code && i < x->rank; i++) {
		lth_dim wanted = i == axis ? lth_dim_ceildiv(infer->dims, x->dims[i], lth_dim_const(infer->dims, block))
					   : x->dims[i];
		code = lth_infer_require(infer, LTH_REL_EQ, scale->dims[i], wanted, "one scale for each block");
	}
	return code;
}

/* The scale or zero point that belongs to the element at `index`. */
static lth_sx parameter(struct lth_lower *lower, const struct lth_node *node, uint32_t input, const lth_sx *index)
{
	struct lth_graph *graph = lth_lower_graph(lower);
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_value_id value = node->inputs[input];
	uint32_t rank = lth_rank(lower, value), x_rank = lth_rank(lower, node->inputs[0]);
	lth_dim one = lth_dim_const(graph->dims, 1);
	if (lth_dim_equal(graph->dims, lth_type_elements(graph, &graph->values[value].type), one) == LTH_YES)
		return lth_read_scalar(lower, value);
	int64_t axis = lth_op_int(node, "axis"), block = lth_op_int(node, "block_size");
	axis = axis < 0 ? axis + x_rank : axis;
	if (rank == 1 && !block) {
		const struct lth_type *type = &graph->values[value].type;
		if (axis < 0 || axis >= x_rank)
			return lth_read_scalar(lower, value);
		lth_sx place = index[axis];
		if (may_be_one(graph->dims, type) && type->dims[0] != lth_shape_of(lower, node->inputs[0])[axis])
			place = lth_safe_index(pool, place, lth_sx_dim(pool, type->dims[0]));
		return lth_read(lower, value, &place);
	}
	lth_sx at[LTH_MAX_RANK];
	for (uint32_t i = 0; i < x_rank; i++)
		at[i] = (int64_t)i == axis ? lth_floordiv(pool, index[i], lth_sx_int(pool, block)) : index[i];
	return lth_read(lower, value, at);
}

static enum lth_code infer_quantize(struct lth_infer *infer)
{
	enum lth_dtype dtype = LTH_DTYPE_U8;
	enum lth_code code = LTH_OK;
	const struct lth_type *zero = lth_infer_type(infer, 2);
	if (lth_op_int(infer->node, "output_dtype"))
		code = lth_infer_dtype_attr(infer, "output_dtype", &dtype);
	else if (zero)
		dtype = zero->dtype;
	if (!code && zero && zero->dtype != dtype)
		code = lth_infer_reject(infer, "output_dtype as the zero point's type", "%s for %s",
					lth_dtype_text(dtype), lth_dtype_text(zero->dtype));
	if (!code && !lth_dtype_in(dtype, "i2|i4|i8|i16|u2|u4|u8|u16|f8|f4e2m1"))
		code = lth_infer_reject(infer, "an integer of up to 16 bits, or a narrow float",
					"quantised type %s", lth_dtype_text(dtype));
	if (!code)
		code = check_scale(infer, 1);
	if (!code)
		code = check_scale(infer, 2);
	if (code)
		return code;
	const struct lth_type *x = lth_infer_type(infer, 0);
	return lth_infer_output(infer, 0, dtype, x->rank, x->dims);
}

static lth_sx quantize_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
			       const lth_sx *index)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	enum lth_dtype to = lth_value_dtype(lower, node->outputs[output]);
	lth_sx x = lth_read(lower, node->inputs[0], index), scale = parameter(lower, node, 1, index);
	enum lth_dtype work = lth_sx_dtype(pool, x) == LTH_DTYPE_F64 ? LTH_DTYPE_F64 : LTH_DTYPE_F32;
	lth_sx quotient = lth_div(pool, lth_sx_cast(pool, x, work), lth_sx_cast(pool, scale, work));
	if (lth_is_float(to))
		return lth_cast_to(pool, quotient, to, lth_op_int(node, "saturate") != 0);
	quotient = lth_unary(pool, LTH_SCALAR_RINT, quotient);
	if (lth_node_input(node, 2) != LTH_NONE)
		quotient = lth_add(pool, quotient, lth_sx_cast(pool, parameter(lower, node, 2, index), work));
	return lth_saturate(pool, quotient, to);
}

const struct lth_op_impl lth_impl_quantize = {.infer = infer_quantize, .element = quantize_element};

static enum lth_code infer_dequantize(struct lth_infer *infer)
{
	enum lth_dtype dtype = lth_infer_type(infer, 1)->dtype;
	enum lth_code code = LTH_OK;
	if (lth_op_int(infer->node, "output_dtype"))
		code = lth_infer_dtype_attr(infer, "output_dtype", &dtype);
	else if (dtype == LTH_DTYPE_F8E8M0)
		dtype = LTH_DTYPE_F32;
	if (!code && !lth_dtype_in(dtype, "float"))
		code = lth_infer_reject(infer, "a floating-point type", "output type %s", lth_dtype_text(dtype));
	if (!code)
		code = check_scale(infer, 1);
	if (!code)
		code = check_scale(infer, 2);
	if (code)
		return code;
	const struct lth_type *x = lth_infer_type(infer, 0);
	return lth_infer_output(infer, 0, dtype, x->rank, x->dims);
}

static lth_sx dequantize_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
				 const lth_sx *index)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	enum lth_dtype work = lth_compute_dtype(lth_value_dtype(lower, node->outputs[output]));
	lth_sx x = lth_read(lower, node->inputs[0], index);
	bool wide = lth_is_float(lth_sx_dtype(pool, x));
	x = wide ? x : lth_sx_cast(pool, x, LTH_DTYPE_I32);
	if (lth_node_input(node, 2) != LTH_NONE)
		x = lth_sub(pool, x, lth_sx_cast(pool, parameter(lower, node, 2, index), lth_sx_dtype(pool, x)));
	return lth_mul(pool, lth_sx_cast(pool, x, work), lth_sx_cast(pool, parameter(lower, node, 1, index), work));
}

const struct lth_op_impl lth_impl_dequantize = {.infer = infer_dequantize, .element = dequantize_element};
