/* Rematerialize: under a budget, cheap values that wait across the peak are computed again behind it.
 *
 * A value qualifies when one cheap call writes it, all in one block, and what that call reads still holds the same
 * where the value is next needed. Its later readers then read a second storage, written by a copy of the call right
 * before the first of them. Each round tries those alive at the peak, largest first, and keeps the one that lowers the
 * live bound most; the rounds end when the bound fits or nothing lowers it. Thread rule: as the program's. */
#include "compiler/memory/memory.h"

#include <stdlib.h>
#include <string.h>

/* Operations a byte of result up to which a call is cheap: element by element, small windows, no products of matrices.
 */
enum { CHEAP_FLOPS_A_BYTE = 12, MAX_ROUNDS = 128, MAX_TRIALS = 12 };

/* What to recompute: `storage`, written by the call at `writer`, for the readers at `reader` and behind. */
struct candidate {
	uint32_t storage, writer, reader;
	int64_t bytes;
};

static enum lth_code no_memory(struct lth_diag *diag)
{
	return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "Rematerialize", NULL, NULL, "no memory");
}

static uint32_t storage_of(const struct lth_program *program, uint32_t tensor)
{
	return tensor == LTH_NONE ? LTH_NONE : program->tensors[tensor].storage;
}

static bool touches(const struct lth_program *program, const struct lth_instr *instr, uint32_t storage,
		    bool *out_writes)
{
	bool found = instr->op == LTH_INSTR_CALL && instr->scratch == storage;
	*out_writes = found;
	for (uint32_t k = 0; k < instr->num_tensors; k++)
		if (storage_of(program, instr->tensors[k]) == storage) {
			found = true;
			*out_writes |= k < instr->num_outputs;
		}
	return found;
}

/* Positions [begin, end) are in one block: nothing opens or closes one there. */
static bool straight(const struct lth_program *program, uint32_t begin, uint32_t end)
{
	for (uint32_t i = begin; i < end; i++) {
		enum lth_instr_op op = program->instrs[i].op;
		if (op == LTH_INSTR_IF || op == LTH_INSTR_ELSE || op == LTH_INSTR_ENDIF || op == LTH_INSTR_LOOP ||
		    op == LTH_INSTR_ENDLOOP || op == LTH_INSTR_SET || op == LTH_INSTR_BIND)
			return false;
	}
	return true;
}

/* Is what the call at `writer` reads the same at `reader`? */
static bool operands_hold(const struct lth_program *program, uint32_t writer, uint32_t reader)
{
	const struct lth_instr *call = &program->instrs[writer];
	for (uint32_t k = call->num_outputs; k < call->num_tensors; k++) {
		uint32_t storage = storage_of(program, call->tensors[k]);
		bool writes;
		if (storage == LTH_NONE)
			continue;
		for (uint32_t i = writer; i < reader; i++) {
			const struct lth_instr *instr = &program->instrs[i];
			if (instr->op == LTH_INSTR_ALLOC && instr->storage == storage)
				return false;
			if (touches(program, instr, storage, &writes) && writes)
				return false;
		}
	}
	return true;
}

static bool is_output(const struct lth_program *program, uint32_t storage)
{
	for (uint32_t i = 0; i < program->num_outputs; i++)
		if (storage_of(program, program->outputs[i].tensor) == storage)
			return true;
	return false;
}

/* What a program's expressions are at the shape that the budget is for. */
struct shape {
	int64_t *values; /* of expressions */
	int64_t *sizes;  /* of storages, bytes */
};

/* Whether a call does few operations for each byte that it writes. */
static bool cheap(const struct lth_instr *call, const struct shape *shape, int64_t bytes)
{
	return call->flops == LTH_NONE || shape->values[call->flops] <= CHEAP_FLOPS_A_BYTE * bytes;
}

/* Fills in a candidate for a storage alive at the peak; false when it does not qualify. */
static bool qualify(const struct lth_program *program, uint32_t storage, uint32_t peak, const struct shape *shape,
		    struct candidate *out)
{
	const struct lth_storage *s = &program->storages[storage];
	uint32_t writer = LTH_NONE, reader = LTH_NONE;
	int64_t bytes = shape->sizes[storage];
	bool writes;
	for (uint32_t i = s->first; i < s->last && i < program->num_instrs; i++) {
		const struct lth_instr *instr = &program->instrs[i];
		if (!touches(program, instr, storage, &writes))
			continue;
		if (i == peak || (writes && writer != LTH_NONE) || (!writes && writer == LTH_NONE))
			return false;
		if (writes)
			writer = i;
		else if (i > peak && reader == LTH_NONE)
			reader = i;
	}
	if (writer == LTH_NONE || writer > peak || reader == LTH_NONE || is_output(program, storage))
		return false;
	const struct lth_instr *call = &program->instrs[writer];
	if (call->op != LTH_INSTR_CALL || call->num_outputs != 1 || call->scratch == storage ||
	    !cheap(call, shape, bytes) || !straight(program, s->first, s->last) ||
	    !operands_hold(program, writer, reader))
		return false;
	*out = (struct candidate){storage, writer, reader, bytes};
	return true;
}

static int by_bytes(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->storage < y->storage ? -1 : x->storage > y->storage;
}

/* --- the rewriting */
static uint32_t clone_storage(struct lth_program *program, uint32_t storage)
{
	struct lth_storage copy = program->storages[storage];
	return lth_program_storage(program, &copy);
}

/* The operands with those on storage `from` moved to `to`. */
static const uint32_t *moved_operands(struct lth_program *program, const struct lth_instr *instr, uint32_t from,
				      uint32_t to, uint32_t count)
{
	uint32_t *tensors = lth_arena_array(program->arena, instr->num_tensors + 1, sizeof(*tensors));
	for (uint32_t k = 0; tensors && k < instr->num_tensors; k++) {
		tensors[k] = instr->tensors[k];
		if (k >= count || storage_of(program, tensors[k]) != from)
			continue;
		struct lth_tensor copy = program->tensors[tensors[k]];
		copy.storage = to;
		tensors[k] = lth_program_tensor(program, &copy);
	}
	return tensors;
}

static struct lth_instr alloc_of(uint32_t storage)
{
	struct lth_instr instr = lth_instr_of(LTH_INSTR_ALLOC);
	instr.storage = storage;
	return instr;
}

/* Recomputes the candidate in the program; kills are placed anew. */
static enum lth_code apply(struct lth_program *program, const struct candidate *c, struct lth_diag *diag)
{
	struct lth_instr *instrs = lth_arena_array(program->arena, program->num_instrs + 3, sizeof(*instrs));
	uint32_t out = 0, again = clone_storage(program, c->storage);
	struct lth_instr copy = program->instrs[c->writer];
	if (!instrs || again == LTH_NONE)
		return no_memory(diag);
	copy.tensors = moved_operands(program, &copy, c->storage, again, 1);
	if (copy.scratch != LTH_NONE)
		copy.scratch = clone_storage(program, copy.scratch);
	if (!copy.tensors || !lth_arena_ok(program->arena))
		return no_memory(diag);
	for (uint32_t i = 0; i < program->num_instrs; i++) {
		struct lth_instr instr = program->instrs[i];
		if (instr.op == LTH_INSTR_KILL)
			continue;
		if (i == c->reader) {
			instrs[out++] = alloc_of(again);
			if (copy.scratch != LTH_NONE)
				instrs[out++] = alloc_of(copy.scratch);
			instrs[out++] = copy;
		}
		bool writes;
		if (i >= c->reader && touches(program, &instr, c->storage, &writes)) {
			instr.tensors = moved_operands(program, &instr, c->storage, again, instr.num_tensors);
			if (!instr.tensors)
				return no_memory(diag);
		}
		instrs[out++] = instr;
	}
	program->instrs = instrs;
	program->num_instrs = out;
	program->cap_instrs = program->num_instrs;
	enum lth_code code = lth_program_link_blocks(program, diag);
	return code == LTH_OK ? lth_manifest_lifetimes(program, diag) : code;
}

/* The live bound that the candidate would give; INT64_MAX when it cannot be had. The program is left as it is. */
static int64_t bound_with(const struct lth_program *program, const struct candidate *c, const int64_t *symbols)
{
	struct lth_program trial = *program;
	struct lth_memory_figures figures = {.live_bound_bytes = INT64_MAX};
	struct lth_diag ignored = {0};
	trial.arena = lth_arena_create(0);
	if (!trial.arena)
		return INT64_MAX;
	/* appending must not touch the program's own arrays, nor lifetimes its ranges */
	trial.storages =
		lth_arena_memdup(trial.arena, program->storages, program->num_storages * sizeof(*trial.storages));
	trial.tensors = lth_arena_memdup(trial.arena, program->tensors, program->num_tensors * sizeof(*trial.tensors));
	trial.cap_storages = trial.num_storages;
	trial.cap_tensors = trial.num_tensors;
	trial.num_orientations = 0;
	if (!trial.storages || !trial.tensors || apply(&trial, c, &ignored) != LTH_OK ||
	    lth_memory_figures(&trial, symbols, &figures, &ignored) != LTH_OK)
		figures.live_bound_bytes = INT64_MAX;
	lth_arena_destroy(&trial.arena);
	return figures.live_bound_bytes;
}

/* One round; `*out_changed` tells whether anything lowered the bound. */
static enum lth_code recompute_one(struct lth_program *program, const int64_t *symbols, const struct shape *shape,
				   const struct lth_memory_figures *now, bool *out_changed, struct lth_diag *diag)
{
	struct candidate *list = calloc(program->num_storages + 1, sizeof(*list)), *best = NULL;
	uint32_t count = 0;
	int64_t least = now->live_bound_bytes;
	*out_changed = false;
	if (!list)
		return no_memory(diag);
	for (uint32_t s = 0; s < program->num_storages; s++) {
		const struct lth_storage *storage = &program->storages[s];
		if (lth_storage_planned(storage) && storage->first <= now->peak_instr &&
		    now->peak_instr < storage->last)
			count += qualify(program, s, now->peak_instr, shape, &list[count]);
	}
	if (count)
		qsort(list, count, sizeof(*list), by_bytes);
	for (uint32_t i = 0; i < count && i < MAX_TRIALS; i++) {
		int64_t bound = bound_with(program, &list[i], symbols);
		if (bound < least) {
			least = bound;
			best = &list[i];
		}
	}
	enum lth_code code = best ? apply(program, best, diag) : LTH_OK;
	*out_changed = best && code == LTH_OK;
	free(list);
	return code;
}

enum lth_code lth_rematerialize(struct lth_program *program, const int64_t *symbols, int64_t target_bytes,
				uint32_t *out_recomputed, struct lth_diag *diag)
{
	enum lth_code code = LTH_OK;
	bool changed = true;
	*out_recomputed = 0;
	for (unsigned round = 0; round < MAX_ROUNDS && changed && code == LTH_OK; round++) {
		struct lth_memory_figures figures;
		struct shape shape = {.values = calloc(program->num_exprs + 1, sizeof(*shape.values)),
				      .sizes = calloc(program->num_storages + 1, sizeof(*shape.sizes))};
		code = shape.values && shape.sizes ? lth_memory_figures(program, symbols, &figures, diag) : no_memory(diag);
		if (code == LTH_OK)
			code = lth_program_eval(program, symbols, NULL, shape.values, NULL, diag);
		if (code == LTH_OK)
			code = lth_storage_sizes(program, symbols, shape.sizes, diag);
		changed = false;
		if (code == LTH_OK && figures.live_bound_bytes > target_bytes)
			code = recompute_one(program, symbols, &shape, &figures, &changed, diag);
		*out_recomputed += changed;
		free(shape.values);
		free(shape.sizes);
	}
	return code;
}
