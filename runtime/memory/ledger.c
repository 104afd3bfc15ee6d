/* Who wrote and read each storage, and what the peak would be without it. See ledger.h. */
#include "runtime/memory/ledger.h"

#include <stdlib.h>
#include <string.h>

static enum lth_code no_memory(struct lth_diag *diag)
{
	return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "ledger", NULL, NULL, "no memory");
}

void lth_storage_ledger(const struct lth_program *program, struct lth_storage_facts *out)
{
	for (uint32_t s = 0; s < program->num_storages; s++)
		out[s] = (struct lth_storage_facts){LTH_NONE, LTH_NONE};
	for (uint32_t i = 0; i < program->num_instrs; i++) {
		const struct lth_instr *instr = &program->instrs[i];
		if (instr->op == LTH_INSTR_CALL && instr->scratch != LTH_NONE) {
			if (out[instr->scratch].first_write == LTH_NONE)
				out[instr->scratch].first_write = i;
			out[instr->scratch].last_read = i;
		}
		for (uint32_t k = 0; k < instr->num_tensors; k++) {
			if (instr->tensors[k] == LTH_NONE)
				continue;
			struct lth_storage_facts *facts = &out[program->tensors[instr->tensors[k]].storage];
			if (k >= instr->num_outputs)
				facts->last_read = i;
			else if (facts->first_write == LTH_NONE)
				facts->first_write = i;
		}
	}
}

/* Sums alive at each instruction; `without` (or LTH_NONE) left out. */
static int64_t most_alive(const struct lth_program *program, const int64_t *sizes, uint32_t without, int64_t *change)
{
	int64_t live = 0, most = 0;
	memset(change, 0, (program->num_instrs + 1) * sizeof(*change));
	for (uint32_t s = 0; s < program->num_storages; s++) {
		const struct lth_storage *storage = &program->storages[s];
		if (!lth_storage_planned(storage) || s == without)
			continue;
		int64_t unit = storage->alignment, size = ((sizes[s] > 0 ? sizes[s] : 1) + unit - 1) / unit * unit;
		change[storage->first] += size;
		change[storage->last] -= size;
	}
	for (uint32_t i = 0; i < program->num_instrs; i++) {
		live += change[i];
		most = live > most ? live : most;
	}
	return most;
}

enum lth_code lth_memory_bound_without(const struct lth_program *program, const int64_t *symbols, int64_t *out_bounds,
				       struct lth_diag *diag)
{
	struct lth_memory_figures figures;
	int64_t *sizes = calloc(program->num_storages + 1, sizeof(*sizes));
	int64_t *change = calloc(program->num_instrs + 2, sizeof(*change));
	enum lth_code code = sizes && change ? lth_memory_figures(program, symbols, &figures, diag) : no_memory(diag);
	if (code == LTH_OK)
		code = lth_storage_sizes(program, symbols, sizes, diag);
	for (uint32_t s = 0; s < program->num_storages && code == LTH_OK; s++) {
		const struct lth_storage *storage = &program->storages[s];
		bool there = lth_storage_planned(storage) && storage->first <= figures.peak_instr &&
			     figures.peak_instr < storage->last;
		out_bounds[s] = there ? most_alive(program, sizes, s, change) : -1;
	}
	free(sizes);
	free(change);
	return code;
}
