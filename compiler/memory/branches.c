/* ShareBranches: what the arms of an If may share, and loops without copies.
 *
 * Only one arm of an If runs, so storages of its two arms may lie on each other: their ranges in the linear list never
 * meet. Without the pass (lth_branches_add_up) they live for the whole If and add up. A loop's next state that is copied
 * over the old one at the end of a turn is written there at once, where nobody reads the old one any more.
 * Thread rule: as the program's. */
#include "compiler/memory/memory.h"

#include <string.h>

void lth_branches_add_up(struct lth_program *program)
{
	uint32_t depth = 0, begin = 0;
	for (uint32_t i = 0; i < program->num_instrs; i++) {
		enum lth_instr_op op = program->instrs[i].op;
		if (op == LTH_INSTR_IF && depth++ == 0)
			begin = i;
		if (op != LTH_INSTR_ENDIF || --depth > 0)
			continue;
		for (uint32_t k = begin; k < i; k++) { /* the outermost If is complete: its own storages live through it */
			if (program->instrs[k].op != LTH_INSTR_ALLOC)
				continue;
			struct lth_storage *storage = &program->storages[program->instrs[k].storage];
			if (storage->first < begin)
				continue;
			storage->first = begin;
			storage->last = storage->last > i + 1 ? storage->last : i + 1;
		}
	}
}

static uint32_t storage_of(const struct lth_program *program, uint32_t tensor)
{
	return tensor == LTH_NONE ? LTH_NONE : program->tensors[tensor].storage;
}

static bool same_window(const struct lth_tensor *a, const struct lth_tensor *b)
{
	return a->rank == b->rank && a->offset == b->offset && a->dtype == b->dtype &&
	       memcmp(a->dims, b->dims, a->rank * sizeof(a->dims[0])) == 0 &&
	       memcmp(a->strides, b->strides, a->rank * sizeof(a->strides[0])) == 0;
}

/* The same window on two storages of one size. */
static bool whole_copy(const struct lth_program *program, const struct lth_instr *copy)
{
	const struct lth_tensor *to = &program->tensors[copy->tensors[0]], *from = &program->tensors[copy->tensors[1]];
	const struct lth_storage *x = &program->storages[from->storage], *y = &program->storages[to->storage];
	return x->kind == LTH_STORAGE_ARENA && y->kind == LTH_STORAGE_ARENA && x->size == y->size &&
	       x->alignment <= y->alignment && from->storage != to->storage && same_window(from, to);
}

/* May the call write its result on `from` over its operands on `to`: does it read them only where it then writes? */
static bool writes_over(const struct lth_program *program, const struct lth_instr *call, uint32_t from, uint32_t to)
{
	if (call->op != LTH_INSTR_CALL || call->num_outputs != 1 || call->scratch == to ||
	    storage_of(program, call->tensors[0]) != from)
		return false;
	for (uint32_t k = 1; k < call->num_tensors; k++)
		if (storage_of(program, call->tensors[k]) == to &&
		    (k >= 32 || !(call->in_place & 1u << k) ||
		     !same_window(&program->tensors[call->tensors[0]], &program->tensors[call->tensors[k]])))
			return false;
	return true;
}

static bool mentions(const struct lth_program *program, const struct lth_instr *instr, uint32_t storage)
{
	if (instr->op == LTH_INSTR_CALL && instr->scratch == storage)
		return true;
	for (uint32_t k = 0; k < instr->num_tensors; k++)
		if (storage_of(program, instr->tensors[k]) == storage)
			return true;
	return false;
}

/* The ALLOC of the copied storage, when all of its life lies between it and the copy in a straight line, and the target
 * is not touched there but by the call that begins it; LTH_NONE otherwise. */
static uint32_t copied_life(const struct lth_program *program, uint32_t copy)
{
	const struct lth_instr *instrs = program->instrs;
	uint32_t to = storage_of(program, instrs[copy].tensors[0]), from = storage_of(program, instrs[copy].tensors[1]);
	uint32_t born = LTH_NONE;
	for (uint32_t i = 0; i < program->num_instrs; i++) {
		if (i > copy && mentions(program, &instrs[i], from))
			return LTH_NONE;
		if (instrs[i].op == LTH_INSTR_ALLOC && instrs[i].storage == from) {
			if (born != LTH_NONE || i > copy)
				return LTH_NONE;
			born = i;
		}
	}
	for (uint32_t i = 0; i < program->num_outputs; i++)
		if (storage_of(program, program->outputs[i].tensor) == from)
			return LTH_NONE;
	bool begun = false;
	for (uint32_t i = born == LTH_NONE ? copy : born + 1; i < copy; i++) {
		enum lth_instr_op op = instrs[i].op;
		bool straight = op == LTH_INSTR_CALL || op == LTH_INSTR_BUILTIN || op == LTH_INSTR_COPY ||
				op == LTH_INSTR_ALLOC || op == LTH_INSTR_KILL || op == LTH_INSTR_GUARD;
		bool first = !begun && mentions(program, &instrs[i], from);
		if (!straight || ((op == LTH_INSTR_ALLOC || op == LTH_INSTR_KILL) && instrs[i].storage == to))
			return LTH_NONE;
		begun |= first;
		if (mentions(program, &instrs[i], to) && begun && !(first && writes_over(program, &instrs[i], from, to)))
			return LTH_NONE;
	}
	return begun ? born : LTH_NONE;
}

/* Moves all of the copied storage's tensors to the target and takes ALLOC, KILL and copy out. */
static void coalesce(struct lth_program *program, uint32_t copy)
{
	uint32_t to = storage_of(program, program->instrs[copy].tensors[0]);
	uint32_t from = storage_of(program, program->instrs[copy].tensors[1]), out = 0;
	for (uint32_t t = 0; t < program->num_tensors; t++)
		if (program->tensors[t].storage == from)
			program->tensors[t].storage = to;
	for (uint32_t i = 0; i < program->num_instrs; i++) {
		const struct lth_instr *instr = &program->instrs[i];
		bool ends = (instr->op == LTH_INSTR_ALLOC || instr->op == LTH_INSTR_KILL) && instr->storage == from;
		if (i != copy && !ends)
			program->instrs[out++] = *instr;
	}
	program->num_instrs = out;
}

enum lth_code lth_share_branches(struct lth_program *program, struct lth_diag *diag)
{
	uint32_t loops = 0;
	for (uint32_t i = 0; i < program->num_instrs; i++) {
		const struct lth_instr *instr = &program->instrs[i];
		loops += instr->op == LTH_INSTR_LOOP;
		loops -= instr->op == LTH_INSTR_ENDLOOP;
		if (!loops || instr->op != LTH_INSTR_COPY || !whole_copy(program, instr))
			continue;
		uint32_t born = copied_life(program, i);
		if (born == LTH_NONE)
			continue;
		coalesce(program, i);
		i = born - 1; /* what was behind the ALLOC has moved up by one */
	}
	enum lth_code code = lth_program_link_blocks(program, diag);
	lth_lifetimes_set_ranges(program);
	return code;
}
