/* Floating-point arithmetic that models do on shapes (Cast, Mul by a scale, Floor, Cast back). Integers that pass
 * through unharmed become dimensions again, so that floor(h * 2.0) is 2*h; the rest stays an opaque expression with a
 * range. A step may be folded only if its rounding is exact for every value in the box. */
#include "compiler/ir/dim_internal.h"

#include "runtime/base/hash.h"

#include <math.h>
#include <string.h>

static const double exact_f64 = 9007199254740992.0, exact_f32 = 16777216.0;

static lth_real intern(struct lth_dims *dims, struct lth_real_node real)
{
	if (real.depth > LTH_DIM_MAX_DEPTH || real.length > LTH_DIM_MAX_LENGTH)
		return lth_dim_overflow(dims);
	uint64_t bits;
	memcpy(&bits, &real.value, sizeof(bits));
	uint64_t hash = lth_hash_u64(real.a | (uint64_t)real.b << 32, lth_hash_u64(bits, (uint64_t)real.op));
	for (uint32_t at = 0, id; (id = lth_id_table_next(&dims->real_table, hash, &at)) != LTH_NONE;) {
		const struct lth_real_node *other = &dims->reals[id];
		if (other->op == real.op && other->a == real.a && other->b == real.b &&
		    memcmp(&other->value, &real.value, sizeof(bits)) == 0)
			return id;
	}
	struct lth_real_node *reals =
		lth_arena_grow(dims->arena, dims->reals, &dims->cap_reals, dims->num_reals + 1, sizeof(*reals));
	if (!reals || !lth_id_table_put(&dims->real_table, dims->arena, hash, dims->num_reals))
		return LTH_DIM_NONE;
	dims->reals = reals;
	reals[dims->num_reals] = real;
	return dims->num_reals++;
}

lth_real lth_real_const(struct lth_dims *dims, double value)
{
	bool integral = value == floor(value) && fabs(value) <= exact_f64 && !(value == 0 && signbit(value));
	if (integral)
		return lth_real_from_dim(dims, lth_dim_const(dims, (int64_t)value));
	double low = isnan(value) ? -HUGE_VAL : value, high = isnan(value) ? HUGE_VAL : value;
	return intern(
		dims,
		(struct lth_real_node){
			.op = LTH_EXPR_RCONST, .a = LTH_NONE, .b = LTH_NONE, .value = value, .min = low, .max = high});
}

lth_real lth_real_from_dim(struct lth_dims *dims, lth_dim a)
{
	if (a == LTH_DIM_NONE)
		return LTH_DIM_NONE;
	const struct lth_dim_node *node = &dims->nodes[a];
	return intern(dims, (struct lth_real_node){.op = LTH_EXPR_TOREAL,
						   .a = a,
						   .b = LTH_NONE,
						   .min = node->min == INT64_MIN ? -HUGE_VAL : (double)node->min,
						   .max = node->max == INT64_MAX ? HUGE_VAL : (double)node->max,
						   .depth = node->depth + 1,
						   .length = lth_dim_longer(node->length, 1),
						   .from_data = node->from_data});
}

bool lth_real_is_const(const struct lth_dims *dims, lth_real a, double *out_value)
{
	int64_t integer;
	if (a == LTH_DIM_NONE)
		return false;
	const struct lth_real_node *real = &dims->reals[a];
	if (real->op == LTH_EXPR_TOREAL && lth_dim_node_const(dims, real->a, &integer))
		*out_value = (double)integer;
	else if (real->op == LTH_EXPR_RCONST)
		*out_value = real->value;
	else
		return false;
	return true;
}

/* The dimension that this real is, if all its values are integers that a double (and float, if asked) holds. A
 * dimension without an upper end counts as below 2^53: no tensor is longer. */
static bool as_dim(const struct lth_dims *dims, lth_real a, double limit, lth_dim *out)
{
	const struct lth_real_node *real = &dims->reals[a];
	if (real->op != LTH_EXPR_TOREAL)
		return false;
	bool unbounded_ok = limit >= exact_f64;
	double low = real->min == -HUGE_VAL && unbounded_ok ? 0 : real->min;
	double high = real->max == HUGE_VAL && unbounded_ok ? 0 : real->max;
	*out = real->a;
	return fabs(low) <= limit && fabs(high) <= limit;
}

static void apply_bounds(const struct lth_dims *dims, struct lth_real_node *real)
{
	const struct lth_real_node *a = &dims->reals[real->a], *b = real->b == LTH_NONE ? a : &dims->reals[real->b];
	real->depth = 1 + (a->depth > b->depth ? a->depth : b->depth);
	real->length = lth_dim_longer(lth_dim_longer(a->length, real->b == LTH_NONE ? 0 : b->length), 1);
	real->from_data = a->from_data || b->from_data;
	double ends[4] = {-HUGE_VAL, HUGE_VAL, -HUGE_VAL, HUGE_VAL};
	switch (real->op) {
	case LTH_EXPR_RADD: ends[0] = a->min + b->min, ends[1] = ends[2] = ends[3] = a->max + b->max; break;
	case LTH_EXPR_RSUB: ends[0] = a->min - b->max, ends[1] = ends[2] = ends[3] = a->max - b->min; break;
	case LTH_EXPR_RMUL:
		ends[0] = a->min * b->min, ends[1] = a->min * b->max;
		ends[2] = a->max * b->min, ends[3] = a->max * b->max;
		break;
	case LTH_EXPR_RDIV:
		if (b->min > 0 || b->max < 0) {
			ends[0] = a->min / b->min, ends[1] = a->min / b->max;
			ends[2] = a->max / b->min, ends[3] = a->max / b->max;
		}
		break;
	case LTH_EXPR_RMIN: ends[0] = fmin(a->min, b->min), ends[1] = ends[2] = ends[3] = fmin(a->max, b->max); break;
	case LTH_EXPR_RMAX: ends[0] = fmax(a->min, b->min), ends[1] = ends[2] = ends[3] = fmax(a->max, b->max); break;
	case LTH_EXPR_RFLOOR: ends[0] = floor(a->min), ends[1] = ends[2] = ends[3] = floor(a->max); break;
	case LTH_EXPR_RCEIL: ends[0] = ceil(a->min), ends[1] = ends[2] = ends[3] = ceil(a->max); break;
	case LTH_EXPR_RROUND: ends[0] = nearbyint(a->min), ends[1] = ends[2] = ends[3] = nearbyint(a->max); break;
	case LTH_EXPR_RSQRT:
		ends[0] = sqrt(fmax(a->min, 0)), ends[1] = ends[2] = ends[3] = sqrt(fmax(a->max, 0));
		break;
	default: ends[0] = (double)(float)a->min, ends[1] = ends[2] = ends[3] = (double)(float)a->max; break;
	}
	real->min = HUGE_VAL;
	real->max = -HUGE_VAL;
	for (int i = 0; i < 4; i++) {
		if (isnan(ends[i])) { /* infinity times zero and the like */
			real->min = -HUGE_VAL;
			real->max = HUGE_VAL;
			return;
		}
		real->min = fmin(real->min, ends[i]);
		real->max = fmax(real->max, ends[i]);
	}
}

double lth_real_fold(enum lth_expr_op op, double a, double b)
{
	int64_t bits_a, bits_b, bits = 0;
	double result;
	memcpy(&bits_a, &a, sizeof(bits_a));
	memcpy(&bits_b, &b, sizeof(bits_b));
	bool folded = lth_expr_apply(op, bits_a, bits_b, &bits); /* the runtime's own arithmetic */
	memcpy(&result, &bits, sizeof(result));
	return folded ? result : NAN;
}

/* Integer operands and an integer result: the dimension, or LTH_DIM_NONE. */
static lth_dim integer_result(struct lth_dims *dims, enum lth_expr_op op, lth_real a, lth_real b)
{
	lth_dim x, y;
	int64_t divisor;
	if (!as_dim(dims, a, op == LTH_EXPR_RF32 ? exact_f32 : exact_f64, &x))
		return LTH_DIM_NONE;
	if (op == LTH_EXPR_RF32 || op == LTH_EXPR_RFLOOR || op == LTH_EXPR_RCEIL || op == LTH_EXPR_RROUND)
		return x;
	if (b == LTH_DIM_NONE || !as_dim(dims, b, exact_f64, &y))
		return LTH_DIM_NONE;
	lth_dim result = op == LTH_EXPR_RADD   ? lth_dim_add(dims, x, y)
			 : op == LTH_EXPR_RSUB ? lth_dim_sub(dims, x, y)
			 : op == LTH_EXPR_RMUL ? lth_dim_mul(dims, x, y)
			 : op == LTH_EXPR_RMIN ? lth_dim_min(dims, x, y)
			 : op == LTH_EXPR_RMAX ? lth_dim_max(dims, x, y)
					       : LTH_DIM_NONE;
	if (op == LTH_EXPR_RDIV && lth_dim_node_const(dims, y, &divisor) && divisor != 0)
		result = lth_dim_div_exact(dims, x, y);
	if (result == LTH_DIM_NONE)
		return LTH_DIM_NONE;
	lth_dim ignored;
	lth_real real = lth_real_from_dim(dims, result);
	return real != LTH_DIM_NONE && as_dim(dims, real, exact_f64, &ignored) ? result : LTH_DIM_NONE;
}

/* floor(x / c), ceil(x / c) of integers: the rounded quotient cannot cross an integer while x and c are exact in the
 * format (the distance to it is at least 1/c). Multiplying by 2^-k is dividing by 2^k. */
static lth_dim rounded_quotient(struct lth_dims *dims, enum lth_expr_op op, lth_real a)
{
	const struct lth_real_node *real = &dims->reals[a];
	double limit = exact_f64, constant, divisor = 0;
	lth_dim x;
	if (real->op == LTH_EXPR_RF32) {
		limit = exact_f32;
		real = &dims->reals[real->a];
	}
	if (real->op == LTH_EXPR_RDIV && lth_real_is_const(dims, real->b, &constant)) {
		divisor = constant;
	} else if (real->op == LTH_EXPR_RMUL && lth_real_is_const(dims, real->b, &constant) && constant > 0) {
		int exponent;
		if (frexp(constant, &exponent) == 0.5 && exponent <= 0 && exponent > -40)
			divisor = ldexp(1, 1 - exponent);
	}
	if (!(divisor >= 1 && divisor <= limit && divisor == floor(divisor)) || !as_dim(dims, real->a, limit, &x))
		return LTH_DIM_NONE;
	lth_dim by = lth_dim_const(dims, (int64_t)divisor);
	return op == LTH_EXPR_RFLOOR  ? lth_dim_floordiv(dims, x, by)
	       : op == LTH_EXPR_RCEIL ? lth_dim_ceildiv(dims, x, by)
				      : lth_dim_truncdiv(dims, x, by);
}

static bool unary(enum lth_expr_op op)
{
	return op == LTH_EXPR_RFLOOR || op == LTH_EXPR_RCEIL || op == LTH_EXPR_RROUND || op == LTH_EXPR_RSQRT ||
	       op == LTH_EXPR_RF32;
}

lth_real lth_real_apply(struct lth_dims *dims, enum lth_expr_op op, lth_real a, lth_real b)
{
	double x = 0, y = 0;
	b = unary(op) ? LTH_DIM_NONE : b;
	if (a == LTH_DIM_NONE || (b == LTH_DIM_NONE && !unary(op)))
		return LTH_DIM_NONE;
	if (lth_real_is_const(dims, a, &x) && (unary(op) || lth_real_is_const(dims, b, &y)))
		return lth_real_const(dims, lth_real_fold(op, x, y));
	bool commutes = op == LTH_EXPR_RADD || op == LTH_EXPR_RMUL;
	if (commutes && lth_real_is_const(dims, a, &x)) { /* constants second */
		lth_real other = a;
		a = b;
		b = other;
	}
	bool overflowed = dims->overflowed;
	lth_dim integer = integer_result(dims, op, a, b);
	if (integer == LTH_DIM_NONE && (op == LTH_EXPR_RFLOOR || op == LTH_EXPR_RCEIL))
		integer = rounded_quotient(dims, op, a);
	dims->overflowed = overflowed;
	if (integer != LTH_DIM_NONE)
		return lth_real_from_dim(dims, integer);
	if (op == LTH_EXPR_RF32 && dims->reals[a].op == LTH_EXPR_RF32)
		return a;
	struct lth_real_node real = {.op = op, .a = a, .b = b};
	apply_bounds(dims, &real);
	return intern(dims, real);
}

lth_dim lth_dim_from_real(struct lth_dims *dims, lth_real a)
{
	double value;
	lth_dim integer;
	if (a == LTH_DIM_NONE)
		return LTH_DIM_NONE;
	if (lth_real_is_const(dims, a, &value)) {
		if (!(fabs(value) < 9.2e18))
			return lth_dim_overflow(dims);
		return lth_dim_const(dims, (int64_t)value);
	}
	if (as_dim(dims, a, exact_f64, &integer))
		return integer;
	integer = rounded_quotient(dims, LTH_EXPR_TOINT, a);
	if (integer != LTH_DIM_NONE)
		return integer;
	return lth_dim_from_atom(dims, &(struct lth_dim_atom){.op = LTH_EXPR_TOINT, .a = a, .b = LTH_NONE});
}
