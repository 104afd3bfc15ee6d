/* The arena as a function of the symbols, and its inverse. See formula.h. */
#include "runtime/exec/formula.h"
#include "runtime/base/checked.h"
#include "runtime/exec/signature.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TRIALS = 1 << 16 };

/* Scratch of evaluations. */
struct work {
	const struct lathe_executable *x;
	int64_t *symbols, *values, *trial, *offsets, *deltas;
	bool *known, *defined;
};

static void work_free(struct work *w)
{
	free(w->symbols);
	free(w->values);
	free(w->trial);
	free(w->offsets);
	free(w->deltas);
	free(w->known);
	free(w->defined);
}

static enum lth_code work_init(struct work *w, const struct lathe_executable *x, const int64_t *symbols,
			       struct lth_diag *diag)
{
	const struct lth_program *program = x->program;
	size_t num_symbols = program->num_symbols, num_storages = program->num_storages;
	*w = (struct work){.x = x};
	w->symbols = calloc(num_symbols + 1, sizeof(int64_t));
	w->values = calloc((size_t)program->num_exprs + 1, sizeof(int64_t));
	w->trial = calloc(num_storages + 1, sizeof(int64_t));
	w->offsets = calloc(num_storages + 1, sizeof(int64_t));
	w->deltas = calloc((size_t)program->num_instrs + 2, sizeof(int64_t));
	w->known = calloc(num_symbols + 1, sizeof(bool));
	w->defined = calloc((size_t)program->num_exprs + 1, sizeof(bool));
	if (!w->symbols || !w->values || !w->trial || !w->offsets || !w->deltas || !w->known || !w->defined)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "memory", NULL, NULL, "no memory to evaluate it");
	if (num_symbols)
		memcpy(w->symbols, symbols, num_symbols * sizeof(int64_t));
	for (uint32_t i = 0; i < x->num_shape_symbols; i++)
		w->known[x->shape_symbols[i]] = true;
	return LTH_OK;
}

static enum lth_code check_symbols(const struct work *w, struct lth_diag *diag)
{
	enum lth_code code = LTH_OK;
	for (uint32_t i = 0; i < w->x->num_shape_symbols && code == LTH_OK; i++) {
		uint32_t id = w->x->shape_symbols[i];
		const struct lth_symbol *s = &w->x->program->symbols[id];
		char place[128];
		snprintf(place, sizeof(place), "symbol '%.100s'", s->name);
		code = lth_symbol_check(s, w->symbols[id], LTH_INVALID_OPTION, place, diag);
	}
	return code;
}

/* Evaluates at the symbols in hand and lays the arena out. */
static enum lth_code arena_at(struct work *w, int64_t *out_bytes, struct lth_diag *diag)
{
	enum lth_code code =
		lth_program_eval(w->x->program, w->symbols, w->known, w->values, w->defined, diag);
	if (code == LTH_OK && !lth_arena_layout(w->x->program, w->values, w->trial, w->offsets, out_bytes))
		code = lth_diag_fail(diag, LTH_RUNTIME_ERROR, "arena", NULL, "use smaller dims",
				     "sizes whose sum is no int64");
	return code;
}

/* A storage's bytes as plans count them: whole alignment units, at least one. */
static bool planned_bytes(const struct work *w, uint32_t storage, int64_t *out)
{
	const struct lth_storage *s = &w->x->program->storages[storage];
	int64_t size = w->values[s->size];
	if (!lth_add_i64(size > 0 ? size : 1, s->alignment - 1, &size))
		return false;
	*out = size & -s->alignment;
	return true;
}

/* The sum of all arena storages, and the largest sum of those alive at one instruction. */
static bool sum_storages(struct work *w, int64_t *out_naive, int64_t *out_bound)
{
	const struct lth_program *program = w->x->program;
	int64_t naive = 0, alive = 0, bound = 0;
	for (uint32_t i = 0; i < program->num_storages; i++) {
		const struct lth_storage *s = &program->storages[i];
		int64_t bytes;
		if (s->kind != LTH_STORAGE_ARENA || !w->x->allocated[i])
			continue;
		if (!planned_bytes(w, i, &bytes) || !lth_add_i64(naive, bytes, &naive))
			return false;
		bool ranged = s->last > s->first;
		w->deltas[ranged ? s->first : 0] += bytes; /* no partial sum exceeds the naive one */
		w->deltas[ranged ? s->last : program->num_instrs] -= bytes;
	}
	for (uint32_t i = 0; i <= program->num_instrs; i++) {
		alive += w->deltas[i];
		bound = alive > bound ? alive : bound;
	}
	*out_naive = naive;
	*out_bound = bound;
	return true;
}

static uint64_t port_bytes(const struct work *w, const struct lth_port *port)
{
	const struct lth_tensor *t = &w->x->program->tensors[port->tensor];
	int64_t count = 1, bytes;
	for (uint32_t axis = 0; axis < t->rank; axis++)
		if (!w->defined[t->dims[axis]] || !lth_mul_i64(count, w->values[t->dims[axis]], &count))
			return 0;
	return lth_dtype_bytes(t->dtype, count, &bytes) ? (uint64_t)bytes : 0;
}

enum lth_code lth_memory_at(const struct lathe_executable *x, const int64_t *symbols, struct lathe_memory *out_memory,
			    struct lth_diag *diag)
{
	struct work w;
	int64_t arena = 0, naive = 0, bound = 0;
	enum lth_code code = work_init(&w, x, symbols, diag);
	if (code == LTH_OK)
		code = check_symbols(&w, diag);
	if (code == LTH_OK)
		code = arena_at(&w, &arena, diag);
	if (code == LTH_OK && !sum_storages(&w, &naive, &bound))
		code = lth_diag_fail(diag, LTH_RUNTIME_ERROR, "arena", NULL, "use smaller dims",
				     "sizes whose sum is no int64");
	if (code == LTH_OK) {
		*out_memory = (struct lathe_memory){
			.arena_bytes = (uint64_t)arena, .naive_bytes = (uint64_t)naive,
			.live_bound_bytes = (uint64_t)bound, .constants_bytes = x->program->constants_bytes,
		};
		for (uint32_t i = 0; i < x->program->num_inputs; i++)
			out_memory->io_bytes += port_bytes(&w, &x->program->inputs[i]);
		for (uint32_t i = 0; i < x->program->num_outputs; i++)
			out_memory->io_bytes += port_bytes(&w, &x->program->outputs[i]);
	}
	work_free(&w);
	return code;
}

/* Whether the symbol may have this value: sizes that cannot be evaluated do not fit. */
static bool fits(struct work *w, uint32_t symbol, int64_t value, uint64_t bytes)
{
	struct lth_diag ignored = {0};
	int64_t arena;
	w->symbols[symbol] = value;
	return arena_at(w, &arena, &ignored) == LTH_OK && (uint64_t)arena <= bytes;
}

/* The largest k in [low, high] for which first + k * step fits; low does. */
static int64_t search(struct work *w, uint32_t symbol, int64_t first, int64_t step, int64_t high, uint64_t bytes)
{
	int64_t low = 0, reach = 1;
	while (reach < high && fits(w, symbol, first + reach * step, bytes)) { /* the range may have no end */
		low = reach;
		reach = reach > high / 2 ? high : reach * 2;
	}
	high = reach < high ? reach : high;
	while (low < high) {
		int64_t middle = low + (high - low) / 2 + (high - low) % 2;
		if (fits(w, symbol, first + middle * step, bytes))
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

enum lth_code lth_memory_fit(const struct lathe_executable *x, const int64_t *symbols, uint32_t symbol, uint64_t bytes,
			     int64_t *out_value, struct lth_diag *diag)
{
	if (symbol >= x->program->num_symbols || x->program->symbols[symbol].source != LTH_SOURCE_INPUT)
		return lth_diag_fail(diag, LTH_INVALID_OPTION, "symbol", "a symbol of an input's shape", NULL, "%u",
				     symbol);
	const struct lth_symbol *s = &x->program->symbols[symbol];
	int64_t first = s->min + (s->multiple - s->min % s->multiple) % s->multiple;
	int64_t last = (s->max - first) / s->multiple, found = -1;
	struct work w;
	enum lth_code code = work_init(&w, x, symbols, diag);
	w.symbols[symbol] = code == LTH_OK ? first : 0;
	if (code == LTH_OK)
		code = check_symbols(&w, diag);
	if (code != LTH_OK)
		goto done;
	if (lth_sizes_grow(x, symbols, symbol)) {
		found = fits(&w, symbol, first, bytes) ? search(&w, symbol, first, s->multiple, last, bytes) : -1;
	} else if (last < MAX_TRIALS) {
		for (found = last; found >= 0 && !fits(&w, symbol, first + found * s->multiple, bytes);)
			found--;
	} else {
		code = lth_diag_fail(diag, LTH_UNSUPPORTED, s->name, "a range of at most 65536 values", "give it a max",
				     "a symbol with which memory may shrink, and a range too large to try");
		goto done;
	}
	if (found < 0)
		code = lth_diag_fail(diag, LTH_BUDGET_UNREACHABLE, s->name, NULL, NULL,
				     "no value whose arena is at most %llu bytes", (unsigned long long)bytes);
	else
		*out_value = first + found * s->multiple;
done:
	work_free(&w);
	return code;
}
