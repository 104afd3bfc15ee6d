/* Bounds of shape expressions over a part of the box, by interval arithmetic. Every operator is monotone in each operand
 * where its divisor keeps its sign, rounding of reals included, so its bounds are among what it gives at the ends of the
 * operands' ranges; where an end overflows or the divisor may be 0, nothing is known. Thread rule: reads the program
 * only. */
#include "compiler/memory/memory.h"

#include <math.h>
#include <string.h>

static double to_real(int64_t bits)
{
	double value;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

static bool is_below(bool real, int64_t a, int64_t b)
{
	return real ? to_real(a) < to_real(b) : a < b;
}

static struct lth_range point(bool real, int64_t value)
{
	return (struct lth_range){.low = value, .high = value, .known = !real || !isnan(to_real(value))};
}

/* Is the operator monotone over these operands? A square root has no value below 0, where the result is not a number. */
static bool is_monotone(enum lth_expr_op op, const struct lth_range *b)
{
	switch (op) {
	case LTH_EXPR_FLOORDIV:
	case LTH_EXPR_CEILDIV:
	case LTH_EXPR_MOD:
		return b->low > 0 || b->high < 0;
	case LTH_EXPR_RDIV:
		return to_real(b->low) > 0 || to_real(b->high) < 0;
	default:
		return true;
	}
}

/* A remainder runs through all of [0, divisor) unless the quotient is the same at both ends. */
static struct lth_range remainder_range(const struct lth_range *a, const struct lth_range *b)
{
	struct lth_range range = {.low = 0, .high = b->high - 1, .known = b->low > 0};
	int64_t first, last;
	if (b->low == b->high && lth_expr_apply(LTH_EXPR_FLOORDIV, a->low, b->low, &first) &&
	    lth_expr_apply(LTH_EXPR_FLOORDIV, a->high, b->low, &last) && first == last &&
	    lth_expr_apply(LTH_EXPR_MOD, a->low, b->low, &first) &&
	    lth_expr_apply(LTH_EXPR_MOD, a->high, b->low, &last))
		range = (struct lth_range){.low = first < last ? first : last, .high = first < last ? last : first,
					   .known = true};
	return range;
}

static struct lth_range combine(enum lth_expr_op op, const struct lth_range *a, const struct lth_range *b)
{
	bool real = lth_expr_is_real(op);
	struct lth_range range = {0};
	if (!a->known || !b->known || !is_monotone(op, b))
		return range;
	if (op == LTH_EXPR_MOD)
		return remainder_range(a, b);
	for (int corner = 0; corner < 4; corner++) {
		int64_t value;
		if (!lth_expr_apply(op, corner & 1 ? a->high : a->low, corner & 2 ? b->high : b->low, &value) ||
		    (real && isnan(to_real(value))))
			return (struct lth_range){0};
		if (corner == 0)
			range = point(real, value);
		range.low = is_below(real, value, range.low) ? value : range.low;
		range.high = is_below(real, range.high, value) ? value : range.high;
	}
	return range;
}

static bool has_range(const struct lth_symbol *symbol)
{
	return symbol->source == LTH_SOURCE_INPUT && symbol->max != INT64_MAX;
}

void lth_expr_ranges(const struct lth_program *program, const int64_t *low, const int64_t *high,
		     struct lth_range *out_ranges)
{
	static const struct lth_range nothing = {.known = true};
	for (uint32_t i = 0; i < program->num_exprs; i++) {
		const struct lth_expr *e = &program->exprs[i];
		if (e->op == LTH_EXPR_SYMBOL)
			out_ranges[i] = (struct lth_range){.low = low[e->a], .high = high[e->a],
							   .known = has_range(&program->symbols[e->a])};
		else if (lth_expr_operands(e->op) == 0)
			out_ranges[i] = point(lth_expr_is_real(e->op), e->value);
		else
			out_ranges[i] = combine(e->op, &out_ranges[e->a],
						lth_expr_operands(e->op) == 2 ? &out_ranges[e->b] : &nothing);
	}
}
