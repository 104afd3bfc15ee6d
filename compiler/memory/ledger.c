/* The ledger of storages: who wrote each, who read it last, where it lies, and what the peak would be without it.
 * Thread rule: reads the program only. */
#include "compiler/memory/memory.h"

#include <stdlib.h>
#include <string.h>

static enum lth_code no_memory(struct lth_diag *diag)
{
	return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "ledger", NULL, NULL, "no memory");
}

enum lth_code lth_storage_ledger(const struct lth_program *program, struct lth_storage_facts *out,
				 struct lth_diag *diag)
{
	(void)diag;
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
	return LTH_OK;
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

static void put_node(const struct lth_program *program, uint32_t instr, struct lth_buf *out)
{
	const char *node = instr == LTH_NONE ? NULL : program->instrs[instr].node;
	if (node)
		lth_buf_quote(out, node);
	else
		lth_buf_puts(out, "null");
}

static void put_storage(const struct lth_program *program, uint32_t s, const struct lth_storage_facts *facts,
			int64_t bytes, int64_t offset, struct lth_buf *out)
{
	const struct lth_storage *storage = &program->storages[s];
	lth_buf_printf(out, "{\"id\":%u,\"tensor\":", s);
	if (storage->name)
		lth_buf_quote(out, storage->name);
	else
		lth_buf_puts(out, "null");
	lth_buf_printf(out, ",\"kind\":\"%s\",\"written_by\":", storage->kind == LTH_STORAGE_POOL ? "pool" : "arena");
	put_node(program, facts->first_write, out);
	lth_buf_puts(out, ",\"last_read_by\":");
	put_node(program, facts->last_read, out);
	lth_buf_printf(out, ",\"first\":%u,\"last\":%u", storage->first, storage->last);
	if (bytes >= 0)
		lth_buf_printf(out, ",\"bytes\":%lld", (long long)bytes);
	if (offset >= 0)
		lth_buf_printf(out, ",\"offset\":%lld", (long long)offset);
	lth_buf_putc(out, '}');
}

enum lth_code lth_memory_ledger(const struct lth_program *program, const int64_t *symbols, struct lth_buf *out,
				struct lth_diag *diag)
{
	struct lth_memory_figures figures;
	struct lth_storage_facts *facts = calloc(program->num_storages + 1, sizeof(*facts));
	int64_t *sizes = calloc(program->num_storages + 1, sizeof(*sizes));
	int64_t *offsets = calloc(program->num_storages + 1, sizeof(*offsets));
	enum lth_code code =
		facts && sizes && offsets ? lth_memory_figures(program, symbols, &figures, diag) : no_memory(diag);
	if (code == LTH_OK)
		code = lth_storage_ledger(program, facts, diag);
	if (code == LTH_OK)
		code = lth_storage_sizes(program, symbols, sizes, diag);
	if (code == LTH_OK)
		code = lth_memory_offsets(program, symbols, offsets, diag);
	if (code == LTH_OK) {
		lth_buf_puts(out, "{\"dims\":{");
		for (uint32_t i = 0, n = 0; i < program->num_symbols; i++)
			if (program->symbols[i].source == LTH_SOURCE_INPUT) {
				lth_buf_puts(out, n++ ? "," : "");
				lth_buf_quote(out, program->symbols[i].name);
				lth_buf_printf(out, ":%lld", (long long)symbols[i]);
			}
		lth_buf_printf(out, "},\"steps\":%u,\"peak_step\":%u,\"live_bound_bytes\":%lld,\"storages\":[",
			       program->num_instrs, figures.peak_instr, (long long)figures.live_bound_bytes);
		bool first = true;
		for (uint32_t s = 0; s < program->num_storages; s++) {
			const struct lth_storage *storage = &program->storages[s];
			if (storage->last <= storage->first)
				continue;
			lth_buf_puts(out, first ? "\n" : ",\n");
			first = false;
			put_storage(program, s, &facts[s], sizes[s], offsets[s], out);
		}
		lth_buf_puts(out, "\n]}\n");
	}
	free(facts);
	free(sizes);
	free(offsets);
	return code;
}
