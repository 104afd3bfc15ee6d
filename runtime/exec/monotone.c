/* Does the memory grow with a symbol? Every expression gets an interval and two directions, "may rise" and "may fall",
 * as one symbol rises through its range and the others stay. The arena is monotone in the sizes of its storages (each
 * orientation is a maximum of sums, and the least of monotone functions is monotone), so sizes that never fall make an
 * arena that never falls. */
#include "runtime/base/checked.h"
#include "runtime/exec/formula.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RISES = 1, FALLS = 2 };

/* Reals keep floor and ceiling of their bounds. INT64_MIN and INT64_MAX stand for "no bound". */
struct trend {
	int64_t low, high;
	unsigned directions;
};

static int64_t saturated_add(int64_t a, int64_t b)
{
	int64_t sum;
	return lth_add_i64(a, b, &sum) ? sum : a < 0 ? INT64_MIN : INT64_MAX;
}

static int64_t saturated_mul(int64_t a, int64_t b)
{
	int64_t product;
	return lth_mul_i64(a, b, &product) ? product : (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static unsigned flipped(unsigned directions)
{
	return (directions & RISES ? FALLS : 0) | (directions & FALLS ? RISES : 0);
}

static struct trend unknown(unsigned directions)
{
	return (struct trend){INT64_MIN, INT64_MAX, directions ? RISES | FALLS : 0};
}

static struct trend product(struct trend a, struct trend b)
{
	int64_t corners[4] = {saturated_mul(a.low, b.low), saturated_mul(a.low, b.high), saturated_mul(a.high, b.low),
			      saturated_mul(a.high, b.high)};
	struct trend t = {corners[0], corners[0], RISES | FALLS};
	for (int i = 1; i < 4; i++) {
		t.low = least(t.low, corners[i]);
		t.high = most(t.high, corners[i]);
	}
	if (a.low >= 0 && b.low >= 0)
		t.directions = a.directions | b.directions;
	else if (!b.directions && (b.low >= 0 || b.high <= 0))
		t.directions = b.low >= 0 ? a.directions : flipped(a.directions);
	else if (!a.directions && (a.low >= 0 || a.high <= 0))
		t.directions = a.low >= 0 ? b.directions : flipped(b.directions);
	return t;
}

static struct trend quotient(struct trend a, struct trend b, bool real)
{
	if (b.low <= 0)
		return unknown(a.directions | b.directions);
	struct trend t = {INT64_MIN, INT64_MAX, RISES | FALLS};
	if (a.low >= 0 || !b.directions)
		t.directions = a.directions | (a.low >= 0 ? flipped(b.directions) : 0);
	if (a.low >= 0) {
		t.low = real ? 0 : a.low / b.high; /* both roundings are at least this */
		t.high = a.high == INT64_MAX ? INT64_MAX : a.high / b.low + 1;
	}
	return t;
}

static struct trend leaf(const struct lth_program *program, const struct lth_expr *e, const int64_t *symbols,
			 uint32_t varying)
{
	double real;
	if (e->op == LTH_EXPR_CONST)
		return (struct trend){e->value, e->value, 0};
	if (e->op == LTH_EXPR_RCONST) {
		memcpy(&real, &e->value, sizeof(real));
		if (!(fabs(real) < 0x1p62))
			return unknown(0);
		return (struct trend){(int64_t)floor(real), (int64_t)ceil(real), 0};
	}
	const struct lth_symbol *s = &program->symbols[e->a];
	if (e->a == varying)
		return (struct trend){s->min, s->max, RISES};
	return (struct trend){symbols[e->a], symbols[e->a], 0};
}

static struct trend apply(enum lth_expr_op op, struct trend a, struct trend b)
{
	unsigned both = a.directions | b.directions;
	switch (op) {
	case LTH_EXPR_ADD:
	case LTH_EXPR_RADD:
		return (struct trend){saturated_add(a.low, b.low), saturated_add(a.high, b.high), both};
	case LTH_EXPR_RSUB:
		return (struct trend){INT64_MIN, INT64_MAX, a.directions | flipped(b.directions)};
	case LTH_EXPR_MUL:
	case LTH_EXPR_RMUL:
		return product(a, b);
	case LTH_EXPR_FLOORDIV:
	case LTH_EXPR_CEILDIV:
		return quotient(a, b, false);
	case LTH_EXPR_RDIV:
		return quotient(a, b, true);
	case LTH_EXPR_MIN:
	case LTH_EXPR_RMIN:
		return (struct trend){least(a.low, b.low), least(a.high, b.high), both};
	case LTH_EXPR_MAX:
	case LTH_EXPR_RMAX:
		return (struct trend){most(a.low, b.low), most(a.high, b.high), both};
	case LTH_EXPR_OPAQUE:
	case LTH_EXPR_TOREAL:
	case LTH_EXPR_TOINT:
	case LTH_EXPR_RFLOOR:
	case LTH_EXPR_RCEIL:
	case LTH_EXPR_RROUND:
		return a; /* bounds are whole numbers: rounding keeps them */
	case LTH_EXPR_RF32:
		return (struct trend){a.low >= 0 ? 0 : INT64_MIN, INT64_MAX, a.directions};
	case LTH_EXPR_RSQRT:
		return (struct trend){a.low >= 0 ? 0 : INT64_MIN, INT64_MAX, a.directions};
	default:
		return unknown(both);
	}
}

bool lth_sizes_grow(const struct lathe_executable *x, const int64_t *symbols, uint32_t symbol)
{
	const struct lth_program *program = x->program;
	struct trend *trends = calloc(program->num_exprs + 1, sizeof(*trends));
	bool grow = trends != NULL;
	for (uint32_t i = 0; grow && i < program->num_exprs; i++) {
		const struct lth_expr *e = &program->exprs[i];
		unsigned operands = lth_expr_operands(e->op);
		if (!x->shape_only[i])
			continue;
		trends[i] = operands == 0
				    ? leaf(program, e, symbols, symbol)
				    : apply(e->op, trends[e->a], operands == 2 ? trends[e->b] : (struct trend){0});
	}
	for (uint32_t i = 0; grow && i < program->num_storages; i++)
		grow = program->storages[i].kind != LTH_STORAGE_ARENA ||
		       !(trends[program->storages[i].size].directions & FALLS);
	free(trends);
	return grow;
}
