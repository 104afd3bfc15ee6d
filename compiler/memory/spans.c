/* Where storages begin and are used. See spans.h. */
#include "compiler/memory/spans.h"

#include <stdlib.h>

bool lth_spans_init(struct lth_spans *spans, const struct lth_program *program)
{
	spans->born = calloc(program->num_storages + 1, sizeof(*spans->born));
	spans->last = calloc(program->num_storages + 1, sizeof(*spans->last));
	spans->opener = calloc(program->num_instrs + 1, sizeof(*spans->opener));
	return spans->born && spans->last && spans->opener;
}

void lth_spans_free(struct lth_spans *spans)
{
	free(spans->born);
	free(spans->last);
	free(spans->opener);
	*spans = (struct lth_spans){0};
}

void lth_spans_find(struct lth_spans *spans, const struct lth_program *program)
{
	uint32_t current = LTH_NONE;
	for (uint32_t s = 0; s < program->num_storages; s++)
		spans->born[s] = spans->last[s] = LTH_NONE;
	for (uint32_t i = 0; i < program->num_instrs; i++) {
		const struct lth_instr *instr = &program->instrs[i];
		enum lth_instr_op op = instr->op;
		if ((op == LTH_INSTR_ELSE || op == LTH_INSTR_ENDIF || op == LTH_INSTR_ENDLOOP) && current != LTH_NONE)
			current = spans->opener[current];
		spans->opener[i] = current;
		if (op == LTH_INSTR_IF || op == LTH_INSTR_ELSE || op == LTH_INSTR_LOOP)
			current = i;
		if (op == LTH_INSTR_ALLOC)
			spans->born[instr->storage] =
				spans->born[instr->storage] == LTH_NONE ? i : program->num_instrs;
		if (op == LTH_INSTR_CALL && instr->scratch != LTH_NONE)
			spans->last[instr->scratch] = i;
		for (uint32_t k = 0; k < instr->num_tensors; k++)
			if (instr->tensors[k] != LTH_NONE)
				spans->last[program->tensors[instr->tensors[k]].storage] = i;
	}
	for (uint32_t i = 0; i < program->num_outputs; i++)
		spans->last[program->tensors[program->outputs[i].tensor].storage] = program->num_instrs;
}

bool lth_instr_mentions(const struct lth_program *program, const struct lth_instr *instr, uint32_t storage)
{
	if (instr->op == LTH_INSTR_CALL && instr->scratch == storage)
		return true;
	for (uint32_t k = 0; k < instr->num_tensors; k++)
		if (lth_tensor_storage(program, instr->tensors[k]) == storage)
			return true;
	return false;
}

bool lth_same_window(const struct lth_program *program, const struct lth_tensor *a, const struct lth_tensor *b)
{
	if (a->rank != b->rank || a->offset != b->offset || a->dtype != b->dtype)
		return false;
	for (uint32_t axis = 0; axis < a->rank; axis++) {
		const struct lth_expr *extent = &program->exprs[a->dims[axis]];
		bool one = extent->op == LTH_EXPR_CONST && extent->value == 1;
		if (a->dims[axis] != b->dims[axis] || (!one && a->strides[axis] != b->strides[axis]))
			return false;
	}
	return true;
}
