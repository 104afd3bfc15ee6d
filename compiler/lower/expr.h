/* Scalar expressions: what one element of a value is, as a function of loop indices. Operators build them through a
 * callback that reads other values, so that fusion is composition (COMPILER.md, An operator's lowering). Expressions are
 * interned in a pool: equal ones have equal ids, constants fold, index arithmetic simplifies.
 *
 * Index expressions are of type i64. Thread rule: a pool is one group's own. */
#ifndef LTH_LOWER_EXPR_H
#define LTH_LOWER_EXPR_H

#include "compiler/ir/dim.h"
#include "runtime/tensor/dtype.h"

typedef uint32_t lth_sx;
#define LTH_SX_NONE UINT32_MAX

enum lth_scalar_op {
#define LTH_SCALAR(name, text, arity, rule) LTH_SCALAR_##name,
#include "compiler/lower/scalars.def"
#undef LTH_SCALAR
	LTH_NUM_SCALARS
};

enum lth_sx_kind {
	LTH_SX_OP,      /* scalar operator on operands */
	LTH_SX_CONST,   /* i or f */
	LTH_SX_AXIS,    /* the current value of loop axis `id` (i64) */
	LTH_SX_DIM,     /* a dimension expression (i64), an int parameter of the kernel unless constant */
	LTH_SX_LOAD,    /* element `operand[0]` (i64, flat, in elements) of buffer `id`; narrow types widen (see loads) */
	LTH_SX_STAGE,   /* result of reduction stage `id` */
	LTH_SX_ANCHOR,  /* the template's finished value of its output `id` at the epilogue's own indices */
	LTH_SX_CHECK,   /* operand[0] if 0 <= operand[0] < operand[1], else 0 and the kernel fails with LTH_KERNEL_INDEX */
	LTH_NUM_SX_KINDS
};

struct lth_sx_node {
	enum lth_sx_kind kind;
	enum lth_scalar_op op;
	enum lth_dtype dtype;      /* compute type of the result */
	lth_sx operands[3];
	uint32_t id;
	enum lth_dtype memory;     /* LOAD: element type in memory; ROUND_TO: the narrow type */
	union {
		int64_t i;
		double f;
	};
	lth_dim dim;
	uint32_t axes;             /* bit k: depends on axis k (k < 32) */
	bool has_load, has_stage;
};

enum { LTH_MAX_AXES = 32 };

struct lth_sx_pool;
struct lth_sx_pool *lth_sx_pool_create(struct lth_arena *arena, struct lth_dims *dims);
/* Borrowed until the next expression is made. */
const struct lth_sx_node *lth_sx_get(const struct lth_sx_pool *pool, lth_sx x);
struct lth_dims *lth_sx_dims(const struct lth_sx_pool *pool);

lth_sx lth_sx_int(struct lth_sx_pool *pool, int64_t value);                          /* i64 */
lth_sx lth_sx_const_i(struct lth_sx_pool *pool, enum lth_dtype dtype, int64_t value); /* any integer type or bool */
lth_sx lth_sx_const_f(struct lth_sx_pool *pool, enum lth_dtype dtype, double value);  /* f32 or f64; rounded to it */
lth_sx lth_sx_const(struct lth_sx_pool *pool, enum lth_dtype dtype, double value);    /* whichever class dtype is */
lth_sx lth_sx_axis(struct lth_sx_pool *pool, uint32_t axis);
/* What the pool knows of an axis: its extent, which decides division and remainder, and its loop depth (0 outermost),
 * by which sums are ordered so that what outer loops know is added first. Set before expressions use the axis. */
void lth_sx_set_axis(struct lth_sx_pool *pool, uint32_t axis, lth_dim extent, uint32_t depth);
lth_sx lth_sx_dim(struct lth_sx_pool *pool, lth_dim dim);
lth_sx lth_sx_load(struct lth_sx_pool *pool, uint32_t buffer, enum lth_dtype memory, lth_sx address);
lth_sx lth_sx_stage(struct lth_sx_pool *pool, uint32_t stage, enum lth_dtype dtype);
lth_sx lth_sx_anchor(struct lth_sx_pool *pool, uint32_t output, enum lth_dtype dtype);
lth_sx lth_sx_check(struct lth_sx_pool *pool, lth_sx index, lth_sx limit);
lth_sx lth_sx_op1(struct lth_sx_pool *pool, enum lth_scalar_op op, lth_sx a);
lth_sx lth_sx_op2(struct lth_sx_pool *pool, enum lth_scalar_op op, lth_sx a, lth_sx b);
lth_sx lth_sx_op3(struct lth_sx_pool *pool, enum lth_scalar_op op, lth_sx a, lth_sx b, lth_sx c);
lth_sx lth_sx_cast(struct lth_sx_pool *pool, lth_sx a, enum lth_dtype dtype);
lth_sx lth_sx_bitcast(struct lth_sx_pool *pool, lth_sx a, enum lth_dtype dtype);
lth_sx lth_sx_round_to(struct lth_sx_pool *pool, lth_sx a, enum lth_dtype narrow);
lth_sx lth_sx_select(struct lth_sx_pool *pool, lth_sx condition, lth_sx a, lth_sx b);

/* The compute type in which elements of a memory type are worked on: f16, bf16, f8*, f4 -> f32; i4, i2 -> i8;
 * u4, u2 -> u8; others themselves. LTH_NUM_DTYPES for strings and complex numbers. */
enum lth_dtype lth_compute_dtype(enum lth_dtype memory);
/* Strings and complex numbers are only ever moved, as two words each: i64, of the narrower complex type i32. */
static inline bool lth_is_two_words(enum lth_dtype memory)
{
	enum lth_dtype_class class = lth_dtype_class(memory);
	return class == LTH_CLASS_STRING || class == LTH_CLASS_COMPLEX;
}

/* How an index expression moves with an axis: true and *out_stride (an expression without that axis) when it is affine
 * in the axis, i.e. x(axis + 1) - x(axis) is constant along it. */
bool lth_sx_stride(struct lth_sx_pool *pool, lth_sx x, uint32_t axis, lth_sx *out_stride);
/* Does an index expression never grow by more than one from one place of the axis to the next (clamped, wrapped and
 * mirrored indices)? Where it grows by n over n steps it is then contiguous there. */
bool lth_sx_steps(struct lth_sx_pool *pool, lth_sx x, uint32_t axis);
bool lth_sx_is_int(const struct lth_sx_pool *pool, lth_sx x, int64_t *out_value);
/* Bounds over the axes' extents: true when x >= 0 everywhere / *out_max (inclusive) when an upper bound is known. */
bool lth_sx_nonnegative(struct lth_sx_pool *pool, lth_sx x);
bool lth_sx_max(struct lth_sx_pool *pool, lth_sx x, lth_dim *out_max);
/* x with axis k replaced by replacement[k] (LTH_SX_NONE: kept), for k < count. */
lth_sx lth_sx_substitute(struct lth_sx_pool *pool, lth_sx x, const lth_sx *replacement, uint32_t count);
/* x with every occurrence of the expression `from` replaced by `to`. */
lth_sx lth_sx_replace(struct lth_sx_pool *pool, lth_sx x, lth_sx from, lth_sx to);
void lth_sx_print(const struct lth_sx_pool *pool, lth_sx x, struct lth_buf *out);

#endif
