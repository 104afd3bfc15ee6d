/* Index arithmetic on scalar expressions: the linear normal form, division and remainder decided by bounds, strides,
 * substitution. Sums are rebuilt with the terms that outer loops know first, so that hoisting finds their prefixes. */
#include "compiler/lower/sx.h"

#include <assert.h>
#include <string.h>

/* The dim that an expression is, if it is one. */
static lth_dim as_dim(struct lth_sx_pool *pool, lth_sx x)
{
	const struct lth_sx_node *node = &pool->nodes[x];
	if (node->kind == LTH_SX_CONST && node->dtype == LTH_DTYPE_I64)
		return lth_dim_const(pool->dims, node->i);
	return node->kind == LTH_SX_DIM ? node->dim : LTH_DIM_NONE;
}

static bool add_term(struct lth_sx_pool *pool, struct lth_sx_linear *form, lth_sx atom, lth_dim weight)
{
	if (weight == LTH_DIM_NONE)
		return false;
	for (uint32_t i = 0; i < form->count; i++)
		if (form->terms[i].atom == atom) {
			form->terms[i].weight = lth_dim_add(pool->dims, form->terms[i].weight, weight);
			return form->terms[i].weight != LTH_DIM_NONE;
		}
	if (form->count == LTH_SX_MAX_TERMS)
		return false;
	form->terms[form->count].atom = atom;
	form->terms[form->count++].weight = weight;
	return true;
}

static bool accumulate(struct lth_sx_pool *pool, lth_sx x, lth_dim weight, struct lth_sx_linear *form)
{
	const struct lth_sx_node node = pool->nodes[x];
	lth_dim dim = as_dim(pool, x);
	if (dim != LTH_DIM_NONE) {
		lth_dim scaled = lth_dim_mul(pool->dims, dim, weight);
		if (scaled == LTH_DIM_NONE)
			return false;
		form->constant = lth_dim_add(pool->dims, form->constant, scaled);
		return form->constant != LTH_DIM_NONE;
	}
	if (node.kind == LTH_SX_OP && node.op == LTH_SCALAR_ADD)
		return accumulate(pool, node.operands[0], weight, form) &&
		       accumulate(pool, node.operands[1], weight, form);
	if (node.kind == LTH_SX_OP && node.op == LTH_SCALAR_MUL) {
		lth_dim left = as_dim(pool, node.operands[0]), right = as_dim(pool, node.operands[1]);
		if (right != LTH_DIM_NONE)
			return accumulate(pool, node.operands[0], lth_dim_mul(pool->dims, weight, right), form);
		if (left != LTH_DIM_NONE)
			return accumulate(pool, node.operands[1], lth_dim_mul(pool->dims, weight, left), form);
	}
	return add_term(pool, form, x, weight);
}

/* x mod d and d * (x div d) in one sum are x again: what a Reshape there and back leaves. */
static bool join_once(struct lth_sx_pool *pool, struct lth_sx_linear *form)
{
	for (uint32_t i = 0; i < form->count; i++) {
		const struct lth_sx_node rest = pool->nodes[form->terms[i].atom];
		if (rest.kind != LTH_SX_OP || rest.op != LTH_SCALAR_MOD)
			continue;
		lth_dim divisor = as_dim(pool, rest.operands[1]), weight = form->terms[i].weight;
		lth_dim wanted = divisor == LTH_DIM_NONE ? LTH_DIM_NONE : lth_dim_mul(pool->dims, weight, divisor);
		for (uint32_t j = 0; j < form->count && wanted != LTH_DIM_NONE; j++) {
			const struct lth_sx_node whole = pool->nodes[form->terms[j].atom];
			if (whole.kind != LTH_SX_OP || whole.op != LTH_SCALAR_FLOORDIV ||
			    whole.operands[0] != rest.operands[0] || whole.operands[1] != rest.operands[1] ||
			    form->terms[j].weight != wanted)
				continue;
			uint32_t high = i > j ? i : j, low = i > j ? j : i;
			form->terms[high] = form->terms[--form->count];
			form->terms[low] = form->terms[--form->count];
			return accumulate(pool, rest.operands[0], weight, form);
		}
	}
	return false;
}

bool lth_sx_linear_of(struct lth_sx_pool *pool, lth_sx x, struct lth_sx_linear *out)
{
	out->count = 0;
	out->constant = lth_dim_const(pool->dims, 0);
	return accumulate(pool, x, lth_dim_const(pool->dims, 1), out);
}

/* Depth at which an atom is known: one more than that of its deepest axis. */
static uint32_t depth_of(const struct lth_sx_pool *pool, lth_sx x)
{
	uint32_t axes = pool->nodes[x].axes, depth = 0;
	for (uint32_t axis = 0; axes; axis++, axes >>= 1)
		if ((axes & 1) && pool->depths[axis] + 1 > depth)
			depth = pool->depths[axis] + 1;
	return depth;
}

static int compare_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* The structural order of expressions: ids depend on which was made first, which C leaves open where both are arguments
 * of one call. Of different expressions only the first operands that differ are looked into. */
static int compare_atoms(const struct lth_sx_pool *pool, lth_sx x, lth_sx y)
{
	if (x == y)
		return 0;
	if (x == LTH_SX_NONE || y == LTH_SX_NONE)
		return x == LTH_SX_NONE ? -1 : 1;
	const struct lth_sx_node *a = &pool->nodes[x], *b = &pool->nodes[y];
	const uint64_t facts[][2] = {{a->kind, b->kind},     {a->op, b->op},	 {a->dtype, b->dtype},
				     {a->memory, b->memory}, {a->id, b->id}, {(uint64_t)a->i, (uint64_t)b->i}};
	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
		if (facts[i][0] != facts[i][1])
			return compare_numbers(facts[i][0], facts[i][1]);
	if (a->dim != b->dim && (a->dim == LTH_DIM_NONE || b->dim == LTH_DIM_NONE))
		return a->dim == LTH_DIM_NONE ? -1 : 1;
	if (a->dim != b->dim)
		return lth_dim_compare(pool->dims, a->dim, b->dim);
	for (int k = 0; k < 3; k++)
		if (a->operands[k] != b->operands[k])
			return compare_atoms(pool, a->operands[k], b->operands[k]);
	return 0;
}

lth_sx lth_sx_linear_build(struct lth_sx_pool *pool, struct lth_sx_linear *form)
{
	/* insertion sort by depth, then atom: few terms */
	for (uint32_t i = 1; i < form->count; i++)
		for (uint32_t j = i; j > 0; j--) {
			uint32_t a = depth_of(pool, form->terms[j - 1].atom), b = depth_of(pool, form->terms[j].atom);
			if (a < b || (a == b && compare_atoms(pool, form->terms[j - 1].atom, form->terms[j].atom) < 0))
				break;
			lth_sx atom = form->terms[j].atom;
			lth_dim weight = form->terms[j].weight;
			form->terms[j] = form->terms[j - 1];
			form->terms[j - 1].atom = atom;
			form->terms[j - 1].weight = weight;
		}
	int64_t value;
	lth_sx sum = LTH_SX_NONE;
	if (!lth_dim_is_const(pool->dims, form->constant, &value) || value != 0)
		sum = lth_sx_dim(pool, form->constant);
	for (uint32_t i = 0; i < form->count; i++) {
		bool constant = lth_dim_is_const(pool->dims, form->terms[i].weight, &value);
		if (constant && value == 0)
			continue;
		lth_sx term = form->terms[i].atom;
		if (!constant || value != 1)
			term = lth_sx_raw(pool, LTH_SCALAR_MUL, LTH_DTYPE_I64, term,
					  lth_sx_dim(pool, form->terms[i].weight), LTH_SX_NONE);
		sum = sum == LTH_SX_NONE ? term
					 : lth_sx_raw(pool, LTH_SCALAR_ADD, LTH_DTYPE_I64, sum, term, LTH_SX_NONE);
	}
	return sum == LTH_SX_NONE ? lth_sx_int(pool, 0) : sum;
}

static struct lth_sx_bounds sum_bounds(struct lth_sx_pool *pool, lth_sx a, lth_sx b)
{
	struct lth_sx_bounds out = {.max = LTH_DIM_NONE};
	lth_dim max_a, max_b;
	out.nonnegative = lth_sx_nonnegative(pool, a) && lth_sx_nonnegative(pool, b);
	if (lth_sx_max(pool, a, &max_a) && lth_sx_max(pool, b, &max_b))
		out.max = lth_dim_add(pool->dims, max_a, max_b);
	return out;
}

static struct lth_sx_bounds product_bounds(struct lth_sx_pool *pool, lth_sx a, lth_sx b)
{
	struct lth_sx_bounds out = {.max = LTH_DIM_NONE};
	lth_dim max_a, max_b;
	out.nonnegative = lth_sx_nonnegative(pool, a) && lth_sx_nonnegative(pool, b);
	if (out.nonnegative && lth_sx_max(pool, a, &max_a) && lth_sx_max(pool, b, &max_b))
		out.max = lth_dim_mul(pool->dims, max_a, max_b);
	return out;
}

static struct lth_sx_bounds op_bounds(struct lth_sx_pool *pool, const struct lth_sx_node *node)
{
	struct lth_sx_bounds out = {.max = LTH_DIM_NONE};
	lth_sx a = node->operands[0], b = node->operands[1], c = node->operands[2];
	lth_dim max_a = LTH_DIM_NONE, max_b = LTH_DIM_NONE;
	switch (node->op) {
	case LTH_SCALAR_ADD:
		return sum_bounds(pool, a, b);
	case LTH_SCALAR_MUL:
		return product_bounds(pool, a, b);
	case LTH_SCALAR_FLOORDIV:
	case LTH_SCALAR_DIV: {
		out.nonnegative = lth_sx_nonnegative(pool, a) && lth_sx_nonnegative(pool, b);
		lth_dim divisor = as_dim(pool, b);
		if (out.nonnegative && divisor != LTH_DIM_NONE && lth_sx_max(pool, a, &max_a))
			out.max = lth_dim_floordiv(pool->dims, max_a, divisor);
		return out;
	}
	case LTH_SCALAR_MOD:
		out.nonnegative = lth_sx_nonnegative(pool, b);
		if (out.nonnegative && lth_sx_max(pool, b, &max_b))
			out.max = lth_dim_sub(pool->dims, max_b, lth_dim_const(pool->dims, 1));
		return out;
	case LTH_SCALAR_MIN:
		out.nonnegative = lth_sx_nonnegative(pool, a) && lth_sx_nonnegative(pool, b);
		if (lth_sx_max(pool, a, &max_a) && lth_sx_max(pool, b, &max_b))
			out.max = lth_dim_min(pool->dims, max_a, max_b);
		else
			out.max = max_a != LTH_DIM_NONE ? max_a : lth_sx_max(pool, b, &max_b) ? max_b : LTH_DIM_NONE;
		return out;
	case LTH_SCALAR_MAX:
		out.nonnegative = lth_sx_nonnegative(pool, a) || lth_sx_nonnegative(pool, b);
		if (lth_sx_max(pool, a, &max_a) && lth_sx_max(pool, b, &max_b))
			out.max = lth_dim_max(pool->dims, max_a, max_b);
		return out;
	case LTH_SCALAR_SELECT:
		out.nonnegative = lth_sx_nonnegative(pool, b) && lth_sx_nonnegative(pool, c);
		if (lth_sx_max(pool, b, &max_a) && lth_sx_max(pool, c, &max_b))
			out.max = lth_dim_max(pool->dims, max_a, max_b);
		return out;
	default:
		return out;
	}
}

static struct lth_sx_bounds bounds_of(struct lth_sx_pool *pool, lth_sx x)
{
	if (pool->bounds[x].known)
		return pool->bounds[x];
	struct lth_sx_bounds out = {.max = LTH_DIM_NONE};
	const struct lth_sx_node node = pool->nodes[x];
	lth_dim dim = as_dim(pool, x);
	if (dim != LTH_DIM_NONE) {
		int64_t low, high;
		lth_dim_range(pool->dims, dim, &low, &high);
		out.nonnegative = low >= 0;
		out.max = dim;
	} else if (node.kind == LTH_SX_AXIS) {
		out.nonnegative = true;
		if (pool->extents[node.id] != LTH_DIM_NONE)
			out.max = lth_dim_sub(pool->dims, pool->extents[node.id], lth_dim_const(pool->dims, 1));
	} else if (node.kind == LTH_SX_CHECK) {
		lth_dim limit = as_dim(pool, node.operands[1]);
		out.nonnegative = true;
		if (limit != LTH_DIM_NONE)
			out.max = lth_dim_sub(pool->dims, limit, lth_dim_const(pool->dims, 1));
	} else if (node.kind == LTH_SX_OP && node.dtype == LTH_DTYPE_I64) {
		out = op_bounds(pool, &node);
	}
	out.known = true;
	pool->bounds[x] = out;
	return out;
}

bool lth_sx_nonnegative(struct lth_sx_pool *pool, lth_sx x)
{
	return bounds_of(pool, x).nonnegative;
}

bool lth_sx_max(struct lth_sx_pool *pool, lth_sx x, lth_dim *out_max)
{
	struct lth_sx_bounds bounds = bounds_of(pool, x);
	if (bounds.max == LTH_DIM_NONE)
		return false;
	*out_max = bounds.max;
	return true;
}

/* 0 <= x < limit everywhere? */
static bool within(struct lth_sx_pool *pool, lth_sx x, lth_dim limit)
{
	lth_dim max;
	if (!lth_sx_nonnegative(pool, x) || !lth_sx_max(pool, x, &max))
		return false;
	lth_dim next = lth_dim_add(pool->dims, max, lth_dim_const(pool->dims, 1));
	return next != LTH_DIM_NONE && lth_dim_at_most(pool->dims, next, limit);
}

/* floordiv and mod by a dim: terms that the divisor divides leave the division. */
static lth_sx divide(struct lth_sx_pool *pool, bool remainder, lth_sx a, lth_dim divisor)
{
	int64_t low, high;
	struct lth_sx_linear form, whole = {.constant = lth_dim_const(pool->dims, 0)}, rest = whole;
	lth_dim_range(pool->dims, divisor, &low, &high);
	if (low <= 0 || !lth_sx_linear_of(pool, a, &form))
		return LTH_SX_NONE;
	for (uint32_t i = 0; i < form.count; i++) {
		lth_dim quotient = lth_dim_div_exact(pool->dims, form.terms[i].weight, divisor);
		struct lth_sx_linear *to = quotient != LTH_DIM_NONE ? &whole : &rest;
		to->terms[to->count] = form.terms[i];
		if (quotient != LTH_DIM_NONE)
			to->terms[to->count].weight = quotient;
		to->count++;
	}
	lth_dim quotient = lth_dim_div_exact(pool->dims, form.constant, divisor);
	if (quotient != LTH_DIM_NONE)
		whole.constant = quotient;
	else
		rest.constant = form.constant;
	lth_sx low_part = lth_sx_linear_build(pool, &rest), dim = lth_sx_dim(pool, divisor);
	if (low_part == LTH_SX_NONE)
		return LTH_SX_NONE;
	bool inside = within(pool, low_part, divisor);
	if (remainder)
		return inside ? low_part
			      : lth_sx_raw(pool, LTH_SCALAR_MOD, LTH_DTYPE_I64, low_part, dim, LTH_SX_NONE);
	lth_sx high_part = lth_sx_linear_build(pool, &whole);
	if (inside)
		return high_part;
	lth_sx part = lth_sx_raw(pool, LTH_SCALAR_FLOORDIV, LTH_DTYPE_I64, low_part, dim, LTH_SX_NONE);
	return lth_sx_op2(pool, LTH_SCALAR_ADD, high_part, part);
}

static lth_sx joined(struct lth_sx_pool *pool, struct lth_sx_linear *form)
{
	struct lth_sx_linear before = *form;
	while (join_once(pool, form))
		before = *form;
	*form = before; /* a join that ran out of terms is undone */
	return lth_sx_linear_build(pool, form);
}

static lth_sx linear_op(struct lth_sx_pool *pool, enum lth_scalar_op op, lth_sx a, lth_sx b)
{
	struct lth_sx_linear form = {.constant = lth_dim_const(pool->dims, 0)};
	lth_dim one = lth_dim_const(pool->dims, 1);
	if (op == LTH_SCALAR_MUL) {
		lth_dim da = as_dim(pool, a), db = as_dim(pool, b);
		if (da == LTH_DIM_NONE && db == LTH_DIM_NONE)
			return LTH_SX_NONE;
		if (!accumulate(pool, db != LTH_DIM_NONE ? a : b, db != LTH_DIM_NONE ? db : da, &form))
			return LTH_SX_NONE;
	} else {
		lth_dim weight = op == LTH_SCALAR_ADD ? one : lth_dim_const(pool->dims, -1);
		if (!accumulate(pool, a, one, &form) || !accumulate(pool, b, weight, &form))
			return LTH_SX_NONE;
	}
	return joined(pool, &form);
}

/* min and max that the bounds decide. */
static lth_sx choose(struct lth_sx_pool *pool, bool least, lth_sx a, lth_sx b)
{
	int64_t value;
	lth_dim max, dim;
	for (int swap = 0; swap < 2; swap++) {
		lth_sx x = swap ? b : a, y = swap ? a : b;
		dim = as_dim(pool, y);
		if (dim != LTH_DIM_NONE && lth_sx_max(pool, x, &max) && lth_dim_at_most(pool->dims, max, dim))
			return least ? x : y;
		if (lth_sx_is_int(pool, y, &value) && value <= 0 && lth_sx_nonnegative(pool, x))
			return least ? y : x;
	}
	return LTH_SX_NONE;
}

/* Comparisons that the bounds decide. */
static lth_sx compare(struct lth_sx_pool *pool, enum lth_scalar_op op, lth_sx a, lth_sx b)
{
	lth_dim da = as_dim(pool, a), db = as_dim(pool, b), max;
	if (a == b)
		return lth_sx_const_i(pool, LTH_DTYPE_BOOL, op == LTH_SCALAR_LE || op == LTH_SCALAR_EQ);
	if (op != LTH_SCALAR_LT && op != LTH_SCALAR_LE)
		return LTH_SX_NONE;
	if (db != LTH_DIM_NONE && lth_sx_max(pool, a, &max)) {
		lth_dim left = op == LTH_SCALAR_LT ? lth_dim_add(pool->dims, max, lth_dim_const(pool->dims, 1)) : max;
		if (left != LTH_DIM_NONE && lth_dim_at_most(pool->dims, left, db))
			return lth_sx_const_i(pool, LTH_DTYPE_BOOL, 1);
	}
	int64_t value;
	if (lth_sx_is_int(pool, b, &value) && (op == LTH_SCALAR_LT ? value <= 0 : value < 0) &&
	    lth_sx_nonnegative(pool, a))
		return lth_sx_const_i(pool, LTH_DTYPE_BOOL, 0);
	if (lth_sx_is_int(pool, a, &value) && (op == LTH_SCALAR_LT ? value < 0 : value <= 0) &&
	    lth_sx_nonnegative(pool, b))
		return lth_sx_const_i(pool, LTH_DTYPE_BOOL, 1);
	(void)da;
	return LTH_SX_NONE;
}

lth_sx lth_sx_index_op(struct lth_sx_pool *pool, enum lth_scalar_op op, lth_sx a, lth_sx b)
{
	lth_dim divisor = as_dim(pool, b);
	switch (op) {
	case LTH_SCALAR_ADD:
	case LTH_SCALAR_SUB:
	case LTH_SCALAR_MUL:
		return linear_op(pool, op, a, b);
	case LTH_SCALAR_FLOORDIV:
		return divisor == LTH_DIM_NONE ? LTH_SX_NONE : divide(pool, false, a, divisor);
	case LTH_SCALAR_MOD:
		return divisor == LTH_DIM_NONE ? LTH_SX_NONE : divide(pool, true, a, divisor);
	case LTH_SCALAR_DIV:
	case LTH_SCALAR_REM:
		if (divisor == LTH_DIM_NONE || !lth_sx_nonnegative(pool, a) || !lth_sx_nonnegative(pool, b))
			return LTH_SX_NONE;
		return divide(pool, op == LTH_SCALAR_REM, a, divisor);
	case LTH_SCALAR_MIN:
	case LTH_SCALAR_MAX:
		return a == b ? a : choose(pool, op == LTH_SCALAR_MIN, a, b);
	case LTH_SCALAR_EQ:
	case LTH_SCALAR_NE:
	case LTH_SCALAR_LT:
	case LTH_SCALAR_LE:
		return compare(pool, op, a, b);
	default:
		return LTH_SX_NONE;
	}
}

bool lth_sx_stride(struct lth_sx_pool *pool, lth_sx x, uint32_t axis, lth_sx *out_stride)
{
	struct lth_sx_linear form;
	if (!(pool->nodes[x].axes & (1u << axis))) {
		*out_stride = lth_sx_int(pool, 0);
		return true;
	}
	if (!lth_sx_linear_of(pool, x, &form))
		return false;
	lth_dim stride = LTH_DIM_NONE;
	for (uint32_t i = 0; i < form.count; i++) {
		const struct lth_sx_node *atom = &pool->nodes[form.terms[i].atom];
		if (!(atom->axes & (1u << axis)))
			continue;
		if (atom->kind != LTH_SX_AXIS)
			return false;
		stride = form.terms[i].weight;
	}
	if (stride == LTH_DIM_NONE)
		return false;
	*out_stride = lth_sx_dim(pool, stride);
	return true;
}

/* By how much x grows at least and at most from one place of the axis to the next. */
struct growth {
	int64_t low, high;
};

enum { ANY = 1 << 20 };         /* this or more: no bound */
enum { MAX_GROWTH_STEPS = 64 }; /* what is used twice is looked at twice: no further than this */

static int64_t bounded_sum(int64_t a, int64_t b)
{
	int64_t sum = a + b;
	return a <= -ANY || b <= -ANY || sum < -ANY ? -ANY : a >= ANY || b >= ANY || sum > ANY ? ANY : sum;
}

static struct growth growth_of(struct lth_sx_pool *pool, lth_sx x, uint32_t axis, uint32_t *steps)
{
	const struct growth none = {0, 0}, unknown = {-ANY, ANY};
	const struct lth_sx_node node = pool->nodes[x];
	if (!(node.axes & (1u << axis)))
		return none;
	if (node.kind == LTH_SX_AXIS)
		return (struct growth){1, 1};
	if (node.kind != LTH_SX_OP || ++*steps > MAX_GROWTH_STEPS)
		return unknown;
	struct growth a = growth_of(pool, node.operands[0], axis, steps), b = none;
	if (node.operands[1] != LTH_SX_NONE)
		b = growth_of(pool, node.operands[1], axis, steps);
	int64_t factor, low, high;
	switch (node.op) {
	case LTH_SCALAR_ADD:
		return (struct growth){bounded_sum(a.low, b.low), bounded_sum(a.high, b.high)};
	case LTH_SCALAR_SUB:
		return (struct growth){bounded_sum(a.low, -b.high), bounded_sum(a.high, -b.low)};
	case LTH_SCALAR_MUL:
		if (!lth_sx_is_int(pool, node.operands[1], &factor) || factor < -1 || factor > 1)
			return unknown;
		return factor < 0 ? (struct growth){-a.high, -a.low} : factor ? a : none;
	case LTH_SCALAR_MIN:
	case LTH_SCALAR_MAX:
		return (struct growth){a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
	case LTH_SCALAR_MOD:
	case LTH_SCALAR_FLOORDIV:
		if (as_dim(pool, node.operands[1]) == LTH_DIM_NONE || a.low < 0 || a.high > 1)
			return unknown;
		lth_dim_range(pool->dims, as_dim(pool, node.operands[1]), &low, &high);
		if (low < 1)
			return unknown;
		return node.op == LTH_SCALAR_MOD ? (struct growth){-ANY, 1} : (struct growth){0, 1};
	default:
		return unknown;
	}
}

bool lth_sx_steps(struct lth_sx_pool *pool, lth_sx x, uint32_t axis)
{
	uint32_t steps = 0;
	return growth_of(pool, x, axis, &steps).high <= 1;
}

struct substitution {
	struct lth_sx_pool *pool;
	const lth_sx *replacement;
	uint32_t count, mask;
	lth_sx *memo; /* by node id; LTH_SX_NONE: not yet */
	uint32_t memo_size;
};

static lth_sx substitute(struct substitution *s, lth_sx x)
{
	struct lth_sx_pool *pool = s->pool;
	if (x == LTH_SX_NONE || !(pool->nodes[x].axes & s->mask))
		return x;
	if (s->memo[x] != LTH_SX_NONE)
		return s->memo[x];
	const struct lth_sx_node node = pool->nodes[x];
	lth_sx out, a, b, c;
	if (node.kind == LTH_SX_AXIS) {
		out = s->replacement[node.id];
	} else {
		a = substitute(s, node.operands[0]);
		b = substitute(s, node.operands[1]);
		c = substitute(s, node.operands[2]);
		if (node.kind == LTH_SX_LOAD)
			out = lth_sx_load(pool, node.id, node.memory, a);
		else if (node.kind == LTH_SX_CHECK)
			out = lth_sx_check(pool, a, b);
		else if (node.op == LTH_SCALAR_CAST)
			out = lth_sx_cast(pool, a, node.dtype);
		else if (node.op == LTH_SCALAR_BITCAST)
			out = lth_sx_bitcast(pool, a, node.dtype);
		else if (node.op == LTH_SCALAR_ROUND_TO)
			out = lth_sx_round_to(pool, a, node.memory);
		else if (c != LTH_SX_NONE)
			out = lth_sx_op3(pool, node.op, a, b, c);
		else if (b != LTH_SX_NONE)
			out = lth_sx_op2(pool, node.op, a, b);
		else
			out = lth_sx_op1(pool, node.op, a);
	}
	s->memo[x] = out;
	return out;
}

static bool begin_substitution(struct substitution *s)
{
	s->memo = lth_arena_array(s->pool->arena, s->memo_size, sizeof(*s->memo));
	if (s->memo)
		memset(s->memo, 0xff, s->memo_size * sizeof(*s->memo));
	return s->memo != NULL;
}

lth_sx lth_sx_substitute(struct lth_sx_pool *pool, lth_sx x, const lth_sx *replacement, uint32_t count)
{
	struct substitution s = {.pool = pool, .replacement = replacement, .count = count, .memo_size = pool->num_nodes};
	assert(count <= LTH_MAX_AXES);
	for (uint32_t k = 0; k < count; k++)
		if (replacement[k] != LTH_SX_NONE)
			s.mask |= 1u << k;
	return begin_substitution(&s) ? substitute(&s, x) : LTH_SX_NONE;
}

lth_sx lth_sx_replace(struct lth_sx_pool *pool, lth_sx x, lth_sx from, lth_sx to)
{
	lth_sx same[LTH_MAX_AXES];
	struct substitution s = {.pool = pool, .replacement = same, .count = LTH_MAX_AXES};
	s.mask = pool->nodes[from].axes; /* what contains `from` has all its axes */
	for (uint32_t k = 0; k < LTH_MAX_AXES; k++)
		same[k] = s.mask & (1u << k) ? lth_sx_axis(pool, k) : LTH_SX_NONE;
	s.memo_size = pool->num_nodes;
	if (s.mask == 0 || !begin_substitution(&s))
		return x;
	s.memo[from] = to;
	return substitute(&s, x);
}
