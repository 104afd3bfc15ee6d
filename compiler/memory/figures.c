/* Figures of a program at given sizes: what the result document reports (MEMORY.md, Words). */
#include "compiler/memory/memory.h"

#include <stdlib.h>
#include <string.h>

void lth_symbols_at_hint(const struct lth_program *program, int64_t *out)
{
	for (uint32_t i = 0; i < program->num_symbols; i++)
		out[i] = program->symbols[i].hint;
}

bool lth_symbols_at_top(const struct lth_program *program, int64_t *out)
{
	bool bounded = true;
	for (uint32_t i = 0; i < program->num_symbols; i++) {
		const struct lth_symbol *symbol = &program->symbols[i];
		bounded &= symbol->max != INT64_MAX || symbol->source == LTH_SOURCE_DATA;
		out[i] = symbol->max == INT64_MAX ? symbol->hint : symbol->max;
	}
	return bounded;
}

static int64_t rounded(const struct lth_storage *storage, int64_t size)
{
	int64_t unit = storage->alignment;
	if (size <= 0)
		return unit;
	return size > INT64_MAX - unit ? -1 : (size + unit - 1) / unit * unit;
}

/* Height of the arena under one orientation. */
static int64_t orientation_height(const struct lth_program *program, const struct lth_orientation *o,
				  const int64_t *sizes, int64_t *offsets)
{
	int64_t height = 0;
	for (uint32_t i = 0; i < o->num_storages; i++) {
		const struct lth_storage *storage = &program->storages[o->storages[i]];
		int64_t offset = o->base[i];
		for (uint32_t e = o->edges[i]; e < o->edges[i + 1]; e++) {
			int64_t top = offsets[o->below[e]] + sizes[o->storages[o->below[e]]];
			offset = top > offset ? top : offset;
		}
		offset = (offset + storage->alignment - 1) / storage->alignment * storage->alignment;
		offsets[i] = offset;
		int64_t top = offset + sizes[o->storages[i]];
		height = top > height ? top : height;
	}
	return height;
}

/* Largest sum alive at one instruction. */
static void live_bound(const struct lth_program *program, const int64_t *sizes, int64_t *change,
		       struct lth_memory_figures *out)
{
	for (uint32_t s = 0; s < program->num_storages; s++)
		if (program->storages[s].kind == LTH_STORAGE_ARENA && program->storages[s].last) {
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

enum lth_code lth_memory_figures(const struct lth_program *program, const int64_t *symbols,
				 struct lth_memory_figures *out, struct lth_diag *diag)
{
	struct lth_memory_figures figures = {.arena_bytes = -1};
	enum lth_code code = LTH_OUT_OF_MEMORY;
	int64_t *values = calloc(program->num_exprs + 1, sizeof(*values));
	int64_t *sizes = calloc(program->num_storages + 1, sizeof(*sizes));
	int64_t *offsets = calloc(program->num_storages + 1, sizeof(*offsets));
	int64_t *change = calloc(program->num_instrs + 2, sizeof(*change));
	if (!values || !sizes || !offsets || !change) {
		lth_diag_fail(diag, code, "memory figures", NULL, NULL, "no memory");
		goto done;
	}
	code = lth_program_eval(program, symbols, NULL, values, NULL, diag);
	if (code != LTH_OK)
		goto done;
	for (uint32_t s = 0; s < program->num_storages; s++) {
		const struct lth_storage *storage = &program->storages[s];
		sizes[s] = rounded(storage, values[storage->size]);
		if (storage->kind == LTH_STORAGE_ARENA && storage->last) {
			figures.num_storages++;
			figures.naive_bytes += sizes[s];
		} else if (storage->kind == LTH_STORAGE_INPUT || storage->kind == LTH_STORAGE_OUTPUT) {
			figures.io_bytes += values[storage->size];
		}
	}
	live_bound(program, sizes, change, &figures);
	for (uint32_t k = 0; k < program->num_orientations; k++) {
		int64_t height = orientation_height(program, &program->orientations[k], sizes, offsets);
		if (figures.arena_bytes < 0 || height < figures.arena_bytes)
			figures.arena_bytes = height;
	}
	*out = figures;
done:
	free(values);
	free(sizes);
	free(offsets);
	free(change);
	return code;
}

enum lth_code lth_memory_offsets(const struct lth_program *program, const int64_t *symbols, int64_t *out_offsets,
				 struct lth_diag *diag)
{
	enum lth_code code = LTH_OUT_OF_MEMORY;
	int64_t *values = calloc(program->num_exprs + 1, sizeof(*values));
	int64_t *sizes = calloc(program->num_storages + 1, sizeof(*sizes));
	int64_t *offsets = calloc(program->num_storages + 1, sizeof(*offsets)), best = -1;
	if (!values || !sizes || !offsets) {
		lth_diag_fail(diag, code, "memory figures", NULL, NULL, "no memory");
		goto done;
	}
	code = lth_program_eval(program, symbols, NULL, values, NULL, diag);
	if (code != LTH_OK)
		goto done;
	for (uint32_t s = 0; s < program->num_storages; s++) {
		sizes[s] = rounded(&program->storages[s], values[program->storages[s].size]);
		out_offsets[s] = -1;
	}
	for (uint32_t k = 0; k < program->num_orientations; k++) {
		const struct lth_orientation *o = &program->orientations[k];
		int64_t height = orientation_height(program, o, sizes, offsets);
		if (best >= 0 && height >= best)
			continue;
		best = height;
		for (uint32_t i = 0; i < o->num_storages; i++)
			out_offsets[o->storages[i]] = offsets[i];
	}
done:
	free(values);
	free(sizes);
	free(offsets);
	return code;
}
