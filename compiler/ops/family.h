/* Shorthands for the families' lowering: scalar expressions in infix order, and inputs as an element function reads
 * them. Private to compiler/ops. */
#ifndef LTH_OPS_FAMILY_H
#define LTH_OPS_FAMILY_H

#include "compiler/lower/templates/template.h"
#include "compiler/ops/infer.h"

#define LTH_SX_BINARY(name, op)                                                          \
	static inline lth_sx name(struct lth_sx_pool *pool, lth_sx a, lth_sx b)          \
	{                                                                                \
		return lth_sx_op2(pool, LTH_SCALAR_##op, a, b);                          \
	}
LTH_SX_BINARY(lth_add, ADD)
LTH_SX_BINARY(lth_sub, SUB)
LTH_SX_BINARY(lth_mul, MUL)
LTH_SX_BINARY(lth_div, DIV)
LTH_SX_BINARY(lth_min, MIN)
LTH_SX_BINARY(lth_max, MAX)
LTH_SX_BINARY(lth_and, AND)
LTH_SX_BINARY(lth_or, OR)
LTH_SX_BINARY(lth_eq, EQ)
LTH_SX_BINARY(lth_lt, LT)
LTH_SX_BINARY(lth_le, LE)
LTH_SX_BINARY(lth_floordiv, FLOORDIV)
LTH_SX_BINARY(lth_modulo, MOD)
#undef LTH_SX_BINARY

static inline lth_sx lth_unary(struct lth_sx_pool *pool, enum lth_scalar_op op, lth_sx a)
{
	return lth_sx_op1(pool, op, a);
}

static inline enum lth_dtype lth_sx_dtype(const struct lth_sx_pool *pool, lth_sx x)
{
	return x == LTH_SX_NONE ? LTH_DTYPE_F32
				: lth_sx_get(pool, x)->dtype; /* NONE: the lowering has failed already */
}

/* A constant of the type of `like`. */
static inline lth_sx lth_same_const(struct lth_sx_pool *pool, lth_sx like, double value)
{
	return lth_sx_const(pool, lth_sx_dtype(pool, like), value);
}

static inline bool lth_is_float(enum lth_dtype dtype)
{
	return lth_dtype_class(dtype) == LTH_CLASS_FLOAT;
}

/* low <= x < high, of i64. */
static inline lth_sx lth_in_range(struct lth_sx_pool *pool, lth_sx x, lth_sx low, lth_sx high)
{
	return lth_and(pool, lth_le(pool, low, x), lth_lt(pool, x, high));
}

static inline lth_sx lth_clamp(struct lth_sx_pool *pool, lth_sx x, lth_sx low, lth_sx high)
{
	return lth_min(pool, lth_max(pool, x, low), high);
}

/* Input `input` broadcast to the index of output 0. */
static inline lth_sx lth_input_at(struct lth_lower *lower, const struct lth_node *node, uint32_t input,
				  const lth_sx *index)
{
	return lth_read_input(lower, node, input, index, lth_rank(lower, node->outputs[0]));
}

/* x brought into [0, extent): what is read where a select will not take it anyhow must still be in range. */
static inline lth_sx lth_safe_index(struct lth_sx_pool *pool, lth_sx x, lth_sx extent)
{
	lth_sx zero = lth_sx_int(pool, 0);
	return lth_max(pool, lth_min(pool, x, lth_sub(pool, extent, lth_sx_int(pool, 1))), zero);
}

/* An index read from data, of any integer type: negative ones count from the end; the kernel fails if out of range. */
static inline lth_sx lth_data_index(struct lth_sx_pool *pool, lth_sx x, lth_sx extent)
{
	x = lth_sx_cast(pool, x, LTH_DTYPE_I64);
	lth_sx negative = lth_lt(pool, x, lth_sx_int(pool, 0));
	return lth_sx_check(pool, lth_sx_select(pool, negative, lth_add(pool, x, extent), x), extent);
}

/* A template's operand: what a value is; the pointer is set later. */
static inline struct lth_operand lth_operand_of(struct lth_lower *lower, lth_value_id value)
{
	const struct lth_value *v = &lth_lower_graph(lower)->values[value];
	return (struct lth_operand){
		.pointer = LTH_LV_NONE, .memory = v->type.dtype, .constant = v->def == LTH_DEF_CONSTANT};
}

/* The shape of a value of the graph that is lowered. */
static inline const lth_dim *lth_shape_of(struct lth_lower *lower, lth_value_id value)
{
	return lth_lower_graph(lower)->values[value].type.dims;
}

/* Output 0 has the elements of input 0 in order: the contents are the same. reshape.c */
void lth_infer_pass_contents(struct lth_infer *infer);

/* Inference of all elementwise operators: broadcasts the inputs, follows contents. elementwise.c */
enum lth_code lth_infer_elementwise(struct lth_infer *infer);
/* elementwise_contents.c: output 0's contents from the inputs', for the operators where that matters to shapes. */
void lth_infer_elementwise_contents(struct lth_infer *infer);

/* quantize.c: rounds and limits `x` (f32 or f64) to an integer type's range, as a value of its compute type. */
lth_sx lth_saturate(struct lth_sx_pool *pool, lth_sx x, enum lth_dtype dtype);
/* quantize.c: a product of bytes less their zero points (LTH_NONE: 0), as templates take it; false when they do not. */
bool lth_problem_bytes(struct lth_lower *lower, lth_value_id x_zero, lth_value_id w, lth_value_id w_zero,
		       struct lth_problem *out, struct lth_problem_values *out_values);
/* cast.c: x as a value that the memory type `dtype` can hold, in its compute type. */
lth_sx lth_cast_to(struct lth_sx_pool *pool, lth_sx x, enum lth_dtype dtype, bool saturate);

#endif
