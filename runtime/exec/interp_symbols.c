/* Symbols whose value comes from the data: binding them, and evaluating what depends on them. */
#include "runtime/exec/context.h"

/* Evaluates one expression whose operands have values; `place` says for whom. */
static enum lth_code evaluate(const struct lth_program *program, const int64_t *symbols, int64_t *values, uint32_t id,
			      const char *place, struct lth_diag *diag)
{
	const struct lth_expr *e = &program->exprs[id];
	unsigned operands = lth_expr_operands(e->op);
	if (operands == 0) {
		values[id] = e->op == LTH_EXPR_SYMBOL ? symbols[e->a] : e->value;
		return LTH_OK;
	}
	int64_t a = values[e->a], b = operands == 2 ? values[e->b] : 0;
	return lth_expr_apply(e->op, a, b, &values[id]) ? LTH_OK : lth_expr_failed(program, id, a, b, place, diag);
}

/* Tensors in the pool are checked at each use instead: their storage may not have its size yet. */
static enum lth_code check_tensors(struct lathe_context *c, uint32_t symbol, struct lth_diag *diag)
{
	const struct lathe_executable *x = c->x;
	for (uint32_t i = x->symbol_tensors.start[symbol]; i < x->symbol_tensors.start[symbol + 1]; i++) {
		uint32_t id = x->symbol_tensors.items[i];
		const struct lth_tensor *t = &x->program->tensors[id];
		const struct lth_storage *s = &x->program->storages[t->storage];
		bool known = c->defined[t->offset] && s->kind != LTH_STORAGE_POOL;
		for (uint32_t axis = 0; axis < t->rank; axis++)
			known = known && c->defined[t->dims[axis]] && c->defined[t->strides[axis]];
		if (!known)
			continue;
		enum lth_code code = lth_tensor_check(x->program, id, c->signature->values,
						      c->signature->values[s->size], diag);
		if (code != LTH_OK)
			return code;
	}
	return LTH_OK;
}

enum lth_code lth_bind_symbol(struct lathe_context *c, uint32_t symbol, int64_t value, const char *place,
			      struct lth_diag *diag)
{
	const struct lathe_executable *x = c->x;
	enum lth_code code = lth_symbol_check(&x->program->symbols[symbol], value, LTH_RUNTIME_ERROR, place, diag);
	if (code != LTH_OK)
		return code;
	c->signature->symbols[symbol] = value;
	for (uint32_t i = x->symbol_exprs.start[symbol]; i < x->symbol_exprs.start[symbol + 1]; i++) {
		uint32_t id = x->symbol_exprs.items[i];
		const struct lth_expr *e = &x->program->exprs[id];
		unsigned operands = lth_expr_operands(e->op);
		if ((operands >= 1 && !c->defined[e->a]) || (operands == 2 && !c->defined[e->b]))
			continue; /* another symbol is to come */
		code = evaluate(x->program, c->signature->symbols, c->signature->values, id, place, diag);
		if (code != LTH_OK)
			return code;
		c->defined[id] = true;
	}
	return check_tensors(c, symbol, diag);
}

enum lth_code lth_evaluate_afresh(struct lathe_context *c, uint32_t expr, const char *place, int64_t *out_value,
				  struct lth_diag *diag)
{
	/* Depth first: an expression leaves the stack when its operands are done. The stack holds each at most once
	 * with its operands above it, so num_exprs * 2 entries suffice. */
	const struct lth_program *program = c->x->program;
	uint32_t height = 0;
	for (uint32_t i = 0; i <= expr; i++)
		c->fresh[i] = false;
	c->stack[height++] = expr;
	while (height) {
		uint32_t id = c->stack[height - 1];
		const struct lth_expr *e = &program->exprs[id];
		unsigned operands = lth_expr_operands(e->op);
		uint32_t before = height;
		if (operands >= 1 && !c->fresh[e->a])
			c->stack[height++] = e->a;
		if (operands == 2 && !c->fresh[e->b])
			c->stack[height++] = e->b;
		if (height != before)
			continue;
		height--;
		if (c->fresh[id])
			continue;
		enum lth_code code = evaluate(program, c->signature->symbols, c->signature->values, id, place, diag);
		if (code != LTH_OK)
			return code;
		c->fresh[id] = true;
	}
	*out_value = c->signature->values[expr];
	return LTH_OK;
}
