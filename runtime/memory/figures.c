/* Figures of a program at given symbol values: what the result document reports (MEMORY.md, Words). Sizes that only the
 * run decides are left out. Thread rule: reads the program only. */
#include "runtime/memory/figures.h"
#include "runtime/base/checked.h"

#include <stdlib.h>
#include <string.h>

/* What a storage takes in a plan: whole alignment units, at least one. */
static bool taken(const struct lth_storage *storage, int64_t size, int64_t *out)
{
	return lth_round_up_i64(size > 0 ? size : 1, storage->alignment, out);
}

bool lth_storage_planned(const struct lth_storage *storage)
{
	return storage->kind == LTH_STORAGE_ARENA && storage->last > storage->first;
}

enum lth_code lth_storage_sizes(const struct lth_program *program, const int64_t *symbols, int64_t *out_sizes,
				struct lth_diag *diag)
{
	enum lth_code code = LTH_OUT_OF_MEMORY;
	int64_t *values = calloc(program->num_exprs + 1, sizeof(*values));
	bool *known = calloc(program->num_symbols + 1, sizeof(*known));
	bool *defined = calloc(program->num_exprs + 1, sizeof(*defined));
	if (!values || !known || !defined) {
		lth_diag_fail(diag, code, "memory figures", NULL, NULL, "no memory");
		goto done;
	}
	for (uint32_t i = 0; i < program->num_symbols; i++)
		known[i] = program->symbols[i].source == LTH_SOURCE_INPUT;
	code = lth_program_eval(program, symbols, known, values, defined, diag);
	for (uint32_t s = 0; s < program->num_storages && code == LTH_OK; s++)
		if (defined[program->storages[s].size]) /* below zero where the symbols make no sense together */
			out_sizes[s] = values[program->storages[s].size] > 0 ? values[program->storages[s].size] : 0;
		else
			out_sizes[s] = -1;
done:
	free(values);
	free(known);
	free(defined);
	return code;
}

/* Largest sum alive at one instruction. */
static void live_bound(const struct lth_program *program, const int64_t *sizes, int64_t *change,
		       struct lth_memory_figures *out)
{
	for (uint32_t s = 0; s < program->num_storages; s++)
		if (lth_storage_planned(&program->storages[s])) {
			change[program->storages[s].first] += sizes[s];
			change[program->storages[s].last] -= sizes[s];
		}
	int64_t live = 0;
	for (uint32_t i = 0; i < program->num_instrs; i++) {
		live += change[i];
		if (live > out->live_bound_bytes) {
			out->live_bound_bytes = live;
			out->peak_instr = i;
		}
	}
}

/* Height of the arena under one orientation, `sizes` being what storages take; -1 on overflow. */
static int64_t orientation_height(const struct lth_program *program, const struct lth_orientation *o,
				  const int64_t *sizes, int64_t *offsets)
{
	int64_t height = 0, top;
	for (uint32_t i = 0; i < o->num_storages; i++) {
		const struct lth_storage *storage = &program->storages[o->storages[i]];
		int64_t offset = o->base[i];
		for (uint32_t e = o->edges[i]; e < o->edges[i + 1]; e++) {
			top = offsets[o->below[e]] + sizes[o->storages[o->below[e]]]; /* no overflow: it was checked */
			offset = top > offset ? top : offset;
		}
		if (!lth_round_up_i64(offset, storage->alignment, &offsets[i]) ||
		    !lth_add_i64(offsets[i], sizes[o->storages[i]], &top))
			return -1;
		height = top > height ? top : height;
	}
	return height;
}

/* The sums over storages; their sizes become what they take. */
static bool sum_up(const struct lth_program *program, int64_t *sizes, struct lth_memory_figures *out)
{
	for (uint32_t s = 0; s < program->num_storages; s++) {
		const struct lth_storage *storage = &program->storages[s];
		if (storage->kind == LTH_STORAGE_INPUT || storage->kind == LTH_STORAGE_OUTPUT) {
			if (sizes[s] > 0 && !lth_add_i64(out->io_bytes, sizes[s], &out->io_bytes))
				return false;
		} else if (!taken(storage, sizes[s], &sizes[s])) {
			return false;
		} else if (lth_storage_planned(storage)) {
			out->num_storages++;
			if (!lth_add_i64(out->naive_bytes, sizes[s], &out->naive_bytes))
				return false;
		}
	}
	return true;
}

enum lth_code lth_memory_figures_of_sizes(const struct lth_program *program, int64_t *sizes,
					  struct lth_memory_figures *out, struct lth_diag *diag)
{
	struct lth_memory_figures figures = {.arena_bytes = -1};
	enum lth_code code = LTH_OUT_OF_MEMORY;
	int64_t *offsets = calloc(program->num_storages + 1, sizeof(*offsets));
	int64_t *change = calloc(program->num_instrs + 2, sizeof(*change));
	if (!offsets || !change) {
		lth_diag_fail(diag, code, "memory figures", NULL, NULL, "no memory");
		goto done;
	}
	code = sum_up(program, sizes, &figures) ? LTH_OK
						: lth_diag_fail(diag, LTH_RUNTIME_ERROR, "arena", NULL, "use smaller dims",
								"sizes whose sum is no int64");
	if (code != LTH_OK)
		goto done;
	live_bound(program, sizes, change, &figures);
	for (uint32_t k = 0; k < program->num_orientations; k++) {
		int64_t height = orientation_height(program, &program->orientations[k], sizes, offsets);
		if (height >= 0 && (figures.arena_bytes < 0 || height < figures.arena_bytes))
			figures.arena_bytes = height;
	}
	*out = figures;
done:
	free(offsets);
	free(change);
	return code;
}

enum lth_code lth_memory_figures(const struct lth_program *program, const int64_t *symbols,
				 struct lth_memory_figures *out, struct lth_diag *diag)
{
	int64_t *sizes = calloc(program->num_storages + 1, sizeof(*sizes));
	enum lth_code code = sizes ? lth_storage_sizes(program, symbols, sizes, diag)
				   : lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "memory figures", NULL, NULL, "no memory");
	if (code == LTH_OK)
		code = lth_memory_figures_of_sizes(program, sizes, out, diag);
	free(sizes);
	return code;
}

enum lth_code lth_memory_offsets(const struct lth_program *program, const int64_t *symbols, int64_t *out_offsets,
				 struct lth_diag *diag)
{
	struct lth_memory_figures ignored = {0};
	enum lth_code code = LTH_OUT_OF_MEMORY;
	int64_t *sizes = calloc(program->num_storages + 1, sizeof(*sizes));
	int64_t *offsets = calloc(program->num_storages + 1, sizeof(*offsets)), best = -1;
	if (!sizes || !offsets) {
		lth_diag_fail(diag, code, "memory figures", NULL, NULL, "no memory");
		goto done;
	}
	code = lth_storage_sizes(program, symbols, sizes, diag);
	if (code == LTH_OK && !sum_up(program, sizes, &ignored))
		code = lth_diag_fail(diag, LTH_RUNTIME_ERROR, "arena", NULL, "use smaller dims",
				     "sizes whose sum is no int64");
	if (code != LTH_OK)
		goto done;
	for (uint32_t s = 0; s < program->num_storages; s++)
		out_offsets[s] = -1;
	for (uint32_t k = 0; k < program->num_orientations; k++) {
		const struct lth_orientation *o = &program->orientations[k];
		int64_t height = orientation_height(program, o, sizes, offsets);
		if (height < 0 || (best >= 0 && height >= best))
			continue;
		best = height;
		for (uint32_t i = 0; i < o->num_storages; i++)
			out_offsets[o->storages[i]] = offsets[i];
	}
done:
	free(sizes);
	free(offsets);
	return code;
}
