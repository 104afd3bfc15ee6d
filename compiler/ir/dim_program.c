/* Dimensions as expressions of a program. A program's symbol holds the whole value; the atom of a symbol with a
 * multiple is the symbol divided by it, less what cancels against the weight. */
#include "compiler/ir/dim_internal.h"

#include <string.h>

enum { DIMS, ATOMS, REALS };

static uint32_t emit_dim(struct lth_dim_emitter *emitter, lth_dim a);

/* The id that `id` became, LTH_NONE if it has not. */
static uint32_t made(const struct lth_dim_emitter *emitter, int kind, uint32_t id)
{
	return id < emitter->room[kind] ? emitter->made[kind][id] - 1 : LTH_NONE;
}

static uint32_t note(struct lth_dim_emitter *emitter, int kind, uint32_t id, uint32_t expr)
{
	uint32_t *grown = lth_arena_grow(emitter->program->arena, emitter->made[kind], &emitter->room[kind], id + 1,
					 sizeof(*grown));
	if (!grown)
		return LTH_NONE;
	emitter->made[kind] = grown;
	grown[id] = expr + 1;
	return expr;
}

static uint32_t apply(struct lth_dim_emitter *emitter, enum lth_expr_op op, uint32_t a, uint32_t b)
{
	if (a == LTH_NONE || b == LTH_NONE)
		return LTH_NONE;
	return lth_program_expr(emitter->program, op, a, b, 0);
}

static uint32_t emit_real(struct lth_dim_emitter *emitter, lth_real id)
{
	const struct lth_real_node *real = &emitter->dims->reals[id];
	uint32_t result = made(emitter, REALS, id);
	int64_t bits;
	if (result != LTH_NONE)
		return result;
	if (real->op == LTH_EXPR_RCONST) {
		memcpy(&bits, &real->value, sizeof(bits));
		result = lth_program_expr(emitter->program, LTH_EXPR_RCONST, 0, 0, bits);
	} else if (real->op == LTH_EXPR_TOREAL) {
		result = apply(emitter, LTH_EXPR_TOREAL, emit_dim(emitter, real->a), 0);
	} else {
		uint32_t a = emit_real(emitter, real->a);
		result = apply(emitter, real->op, a, real->b == LTH_NONE ? 0 : emit_real(emitter, real->b));
	}
	return note(emitter, REALS, id, result);
}

static uint32_t emit_symbol(struct lth_dim_emitter *emitter, uint32_t number, int64_t divisor)
{
	uint32_t symbol = lth_program_expr(emitter->program, LTH_EXPR_SYMBOL, emitter->symbol_map[number], 0, 0);
	if (divisor == 1)
		return symbol;
	return apply(emitter, LTH_EXPR_FLOORDIV, symbol, lth_program_const(emitter->program, divisor));
}

static uint32_t emit_atom(struct lth_dim_emitter *emitter, uint32_t id)
{
	const struct lth_dim_atom *atom = &emitter->dims->atoms[id];
	uint32_t result = made(emitter, ATOMS, id);
	if (result != LTH_NONE)
		return result;
	if (atom->op == LTH_EXPR_TOINT) {
		result = apply(emitter, LTH_EXPR_TOINT, emit_real(emitter, atom->a), 0);
	} else if (atom->op == LTH_EXPR_OPAQUE) {
		result = emit_dim(emitter, atom->a); /* programs do not multiply out */
	} else {
		uint32_t a = emit_dim(emitter, atom->a);
		result = apply(emitter, atom->op, a, emit_dim(emitter, atom->b));
	}
	return note(emitter, ATOMS, id, result);
}

static uint32_t emit_term(struct lth_dim_emitter *emitter, struct lth_dim_term term)
{
	const struct lth_dim_product *product = &emitter->dims->products[term.product];
	uint32_t result = LTH_NONE;
	int64_t divisors[LTH_DIM_MAX_FACTORS];
	lth_dim_cancel_multiples(emitter->dims, &term, divisors);
	for (uint32_t k = 0; k < product->count; k++) {
		const struct lth_dim_atom *atom = &emitter->dims->atoms[product->atoms[k]];
		uint32_t factor = atom->op == LTH_EXPR_SYMBOL ? emit_symbol(emitter, atom->a, divisors[k])
							      : emit_atom(emitter, product->atoms[k]);
		result = result == LTH_NONE ? factor : apply(emitter, LTH_EXPR_MUL, result, factor);
	}
	uint32_t weight = lth_program_const(emitter->program, term.weight);
	return result == LTH_NONE ? weight : term.weight == 1 ? result : apply(emitter, LTH_EXPR_MUL, result, weight);
}

static uint32_t emit_dim(struct lth_dim_emitter *emitter, lth_dim a)
{
	const struct lth_dim_node *node = &emitter->dims->nodes[a];
	uint32_t total = made(emitter, DIMS, a);
	if (total != LTH_NONE)
		return total;
	if (node->count == 0)
		return note(emitter, DIMS, a, lth_program_const(emitter->program, 0));
	total = emit_term(emitter, node->terms[0]);
	for (uint32_t i = 1; i < node->count; i++)
		total = apply(emitter, LTH_EXPR_ADD, total, emit_term(emitter, node->terms[i]));
	return note(emitter, DIMS, a, total);
}

uint32_t lth_dim_to_program(struct lth_dim_emitter *emitter, lth_dim a)
{
	return a == LTH_DIM_NONE ? LTH_NONE : emit_dim(emitter, a);
}
