/* ReuseInPlace: a result takes over the storage of an operand that dies there.
 *
 * Runs on a program without kills. Kernels tell which operands they read only at the element that they then write
 * (lth_instr.in_place). Such an operand's storage becomes the result's when this call is its last use, both are arena
 * storages of one size that the call's tensors cover from their start in the same way, and both are born in the block of
 * the call. Thread rule: as the program's. */
#include "compiler/memory/memory.h"

#include <stdlib.h>
#include <string.h>

struct reuse {
	struct lth_program *program;
	uint32_t *last;  /* by storage: position of its last use */
	uint32_t *born;  /* by storage: position of its ALLOC */
	uint32_t *block; /* by position: the opener of its block, or LTH_NONE */
	uint32_t *now;   /* by storage: what it has become */
};

static uint32_t storage_of(const struct lth_program *program, uint32_t tensor)
{
	return tensor == LTH_NONE ? LTH_NONE : program->tensors[tensor].storage;
}

static bool same_window(const struct lth_program *program, uint32_t a, uint32_t b)
{
	const struct lth_tensor *x = &program->tensors[a], *y = &program->tensors[b];
	if (x->rank != y->rank || x->offset != y->offset || lth_dtype_bits(x->dtype) != lth_dtype_bits(y->dtype))
		return false;
	for (uint32_t axis = 0; axis < x->rank; axis++)
		if (x->dims[axis] != y->dims[axis] || x->strides[axis] != y->strides[axis])
			return false;
	return true;
}

static void scan(struct reuse *r)
{
	const struct lth_program *program = r->program;
	uint32_t current = LTH_NONE;
	uint32_t *stack = r->block;
	for (uint32_t i = 0; i < program->num_instrs; i++) {
		const struct lth_instr *instr = &program->instrs[i];
		bool closes = instr->op == LTH_INSTR_ELSE || instr->op == LTH_INSTR_ENDIF || instr->op == LTH_INSTR_ENDLOOP;
		if (closes && current != LTH_NONE)
			current = stack[current];
		stack[i] = current;
		if (instr->op == LTH_INSTR_IF || instr->op == LTH_INSTR_ELSE || instr->op == LTH_INSTR_LOOP)
			current = i;
		if (instr->op == LTH_INSTR_ALLOC)
			r->born[instr->storage] = i;
		if (instr->op == LTH_INSTR_CALL && instr->scratch != LTH_NONE)
			r->last[instr->scratch] = i;
		for (uint32_t k = 0; k < instr->num_tensors; k++) {
			uint32_t storage = storage_of(program, instr->tensors[k]);
			if (storage != LTH_NONE)
				r->last[storage] = i;
		}
	}
	for (uint32_t i = 0; i < program->num_outputs; i++)
		r->last[storage_of(program, program->outputs[i].tensor)] = program->num_instrs;
}

/* May the operand at `k` of the call at `at` give its storage to the result? */
static bool may_take(const struct reuse *r, uint32_t at, uint32_t k)
{
	const struct lth_program *program = r->program;
	const struct lth_instr *call = &program->instrs[at];
	uint32_t from = storage_of(program, call->tensors[k]), to = storage_of(program, call->tensors[0]);
	if (from == LTH_NONE || to == LTH_NONE || from == to || r->now[to] != to || r->now[from] == to)
		return false;
	const struct lth_storage *x = &program->storages[from], *y = &program->storages[to];
	if (x->kind != LTH_STORAGE_ARENA || y->kind != LTH_STORAGE_ARENA || x->size != y->size ||
	    x->alignment != y->alignment)
		return false;
	/* the result must be born right here: a Concat's storage lives from its first part on */
	if (r->last[from] != at || r->born[to] == LTH_NONE || r->born[to] + 1 > at || r->born[from] == LTH_NONE)
		return false;
	for (uint32_t i = r->born[to] + 1; i < at; i++)
		if (program->instrs[i].op != LTH_INSTR_ALLOC)
			return false;
	if (r->block[at] != r->block[r->born[from]] || r->block[at] != r->block[r->born[to]])
		return false;
	for (uint32_t i = 0; i < call->num_tensors; i++) /* every operand on that storage must allow it */
		if (storage_of(program, call->tensors[i]) == from && !(call->in_place & (1u << i)))
			return false;
	return same_window(program, call->tensors[0], call->tensors[k]);
}

static void rewrite(struct reuse *r)
{
	struct lth_program *program = r->program;
	uint32_t out = 0;
	uint32_t *moved = r->block; /* no longer needed as blocks */
	for (uint32_t i = 0; i < program->num_tensors; i++)
		program->tensors[i].storage = r->now[program->tensors[i].storage];
	for (uint32_t i = 0; i < program->num_instrs; i++) {
		struct lth_instr *instr = &program->instrs[i];
		moved[i] = out;
		if (instr->op == LTH_INSTR_ALLOC && r->now[instr->storage] != instr->storage)
			continue;
		program->instrs[out++] = *instr;
	}
	program->num_instrs = out;
	for (uint32_t i = 0; i < out; i++) {
		enum lth_instr_op op = program->instrs[i].op;
		if (op == LTH_INSTR_IF || op == LTH_INSTR_ELSE || op == LTH_INSTR_LOOP || op == LTH_INSTR_ENDLOOP)
			program->instrs[i].target = moved[program->instrs[i].target];
	}
}

enum lth_code lth_reuse_in_place(struct lth_program *program, struct lth_diag *diag)
{
	struct reuse r = {.program = program};
	enum lth_code code = LTH_OK;
	size_t storages = program->num_storages + 1, instrs = program->num_instrs + 1;
	r.last = malloc(storages * sizeof(uint32_t));
	r.born = malloc(storages * sizeof(uint32_t));
	r.now = malloc(storages * sizeof(uint32_t));
	r.block = malloc(instrs * sizeof(uint32_t));
	if (!r.last || !r.born || !r.now || !r.block) {
		code = lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "ReuseInPlace", NULL, NULL, "no memory");
		goto done;
	}
	memset(r.last, 0xff, storages * sizeof(uint32_t));
	memset(r.born, 0xff, storages * sizeof(uint32_t));
	for (uint32_t i = 0; i < program->num_storages; i++)
		r.now[i] = i;
	scan(&r);
	for (uint32_t at = 0; at < program->num_instrs; at++) {
		const struct lth_instr *instr = &program->instrs[at];
		if (instr->op != LTH_INSTR_CALL || instr->num_outputs != 1)
			continue;
		for (uint32_t k = 1; k < instr->num_tensors && k < 32; k++)
			if ((instr->in_place & (1u << k)) && may_take(&r, at, k)) {
				uint32_t from = storage_of(program, instr->tensors[k]);
				r.now[storage_of(program, instr->tensors[0])] = r.now[from];
				break;
			}
	}
	rewrite(&r);
done:
	free(r.last);
	free(r.born);
	free(r.now);
	free(r.block);
	return code;
}
