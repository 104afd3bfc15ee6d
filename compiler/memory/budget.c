/* Budgets: what they leave for the arena, and the refusal that tells why a plan does not fit. Thread rule: reads the
 * program only. */
#include "compiler/memory/memory.h"

#include "runtime/base/checked.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_NAMED = 12 };

enum lth_code lth_memory_arena_budget(const struct lth_program *program, const struct lth_memory_options *options,
				      int64_t constants_bytes, int64_t *out_symbols, int64_t *out_bytes,
				      int64_t *out_above, struct lth_diag *diag)
{
	struct lth_memory_limits limits = {.arena_bytes = INT64_MAX, .total_bytes = INT64_MAX};
	struct lth_memory_figures figures;
	if (options->budget_bytes)
		limits.arena_bytes = options->budget_bytes;
	if (options->budget_total_bytes)
		limits.total_bytes = options->budget_total_bytes - constants_bytes; /* both are at least 0 */
	enum lth_code code = lth_memory_worst(program, &limits, out_symbols, out_above, diag);
	if (code == LTH_OK)
		code = lth_memory_figures(program, out_symbols, &figures, diag);
	if (code != LTH_OK)
		return code;
	int64_t rest = INT64_MAX;
	if (options->budget_total_bytes && !lth_sub_i64(limits.total_bytes, figures.io_bytes, &rest))
		rest = -1;
	*out_bytes = rest < limits.arena_bytes ? rest : limits.arena_bytes;
	return LTH_OK;
}

struct entry {
	uint32_t storage;
	int64_t bytes;
};

static int by_bytes(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->storage < y->storage ? -1 : x->storage > y->storage;
}

/* "name (bytes), ..." of those alive at the peak, largest first. */
static void name_peak(const struct lth_program *program, const int64_t *sizes, uint32_t peak, struct lth_buf *out)
{
	struct entry *list = calloc(program->num_storages + 1, sizeof(*list));
	uint32_t count = 0;
	for (uint32_t i = 0; list && i < program->num_storages; i++) {
		const struct lth_storage *s = &program->storages[i];
		if (lth_storage_planned(s) && s->first <= peak && peak < s->last)
			list[count++] = (struct entry){i, sizes[i]};
	}
	if (count)
		qsort(list, count, sizeof(*list), by_bytes);
	for (uint32_t i = 0; i < count && i < MAX_NAMED; i++) {
		const char *name = program->storages[list[i].storage].name;
		lth_buf_printf(out, "%s%.80s (%lld)", i ? ", " : "", name ? name : "a scratch",
			       (long long)list[i].bytes);
	}
	if (count > MAX_NAMED)
		lth_buf_printf(out, " and %u more", count - MAX_NAMED);
	free(list);
}

static void describe_shape(const struct lth_program *program, const int64_t *symbols, struct lth_buf *out)
{
	bool any = false;
	for (uint32_t i = 0; i < program->num_symbols; i++)
		if (program->symbols[i].source == LTH_SOURCE_INPUT) {
			lth_buf_printf(out, "%s%.60s = %lld", any ? ", " : " at ", program->symbols[i].name,
				       (long long)symbols[i]);
			any = true;
		}
}

/* The shape found keeps to the budget, but not what is proved of the others, which are `above` it at most. */
static enum lth_code refuse_unproved(const struct lth_memory_options *options, int64_t above, struct lth_diag *diag)
{
	char found[96] = "sizes without a bound";
	if (above < INT64_MAX)
		snprintf(found, sizeof(found), "shapes that may take up to %lld bytes more", (long long)above);
	return lth_diag_fail(diag, LTH_BUDGET_UNREACHABLE,
			     options->budget_bytes ? "memory.budget_bytes" : "memory.budget_total_bytes",
			     "a budget that every shape of the box is proved to keep to",
			     "raise the budget, or give dims with smaller ranges", "%s", found);
}

static enum lth_code refuse(const struct lth_program *program, const struct lth_memory_options *options,
			    int64_t constants_bytes, const int64_t *symbols, int64_t allowed, struct lth_diag *diag)
{
	struct lth_memory_figures figures;
	struct lth_buf shape = {0}, peak = {0};
	char expected[160];
	int64_t *sizes = calloc(program->num_storages + 1, sizeof(*sizes));
	enum lth_code code = sizes ? lth_memory_figures(program, symbols, &figures, diag)
				   : lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "memory", NULL, NULL, "no memory");
	if (code == LTH_OK)
		code = lth_storage_sizes(program, symbols, sizes, diag);
	if (code == LTH_OK) {
		bool total = options->budget_total_bytes && allowed != options->budget_bytes;
		describe_shape(program, symbols, &shape);
		name_peak(program, sizes, figures.peak_instr, &peak);
		if (total && allowed < 0)
			snprintf(expected, sizeof(expected),
				 "more than %lld bytes, which %lld of constants and %lld of inputs and outputs "
				 "take alone",
				 (long long)(constants_bytes + figures.io_bytes), (long long)constants_bytes,
				 (long long)figures.io_bytes);
		else if (total)
			snprintf(expected, sizeof(expected),
				 "at most %lld bytes, %lld in all less %lld of constants and "
				 "%lld of inputs and outputs",
				 (long long)allowed, (long long)options->budget_total_bytes, (long long)constants_bytes,
				 (long long)figures.io_bytes);
		else
			snprintf(expected, sizeof(expected), "at most %lld bytes", (long long)allowed);
		code = lth_diag_fail(diag, LTH_BUDGET_UNREACHABLE,
				     total ? "memory.budget_total_bytes" : "memory.budget_bytes", expected,
				     "raise the budget, lower the dims, or make what is alive at the peak smaller",
				     "an arena of %lld bytes%s, the least reached; no plan in this order can take less "
				     "than %lld; alive at the peak: %s",
				     (long long)figures.arena_bytes, lth_buf_text(&shape),
				     (long long)figures.live_bound_bytes, lth_buf_text(&peak));
	}
	lth_buf_free(&shape);
	lth_buf_free(&peak);
	free(sizes);
	return code;
}

enum lth_code lth_memory_check_budget(const struct lth_program *program, const struct lth_memory_options *options,
				      int64_t constants_bytes, struct lth_diag *diag)
{
	struct lth_memory_figures figures;
	int64_t allowed, above;
	if (!options->budget_bytes && !options->budget_total_bytes)
		return LTH_OK;
	if (program->num_orientations == 0)
		return lth_diag_fail(diag, LTH_INVALID_OPTION, "memory.budget_bytes", "MemoryPlan to be on",
				     "leave MemoryPlan on, or the budget out", "a budget without a plan");
	int64_t *symbols = calloc(program->num_symbols + 1, sizeof(*symbols));
	if (!symbols)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "memory", NULL, NULL, "no memory");
	enum lth_code code = lth_memory_arena_budget(program, options, constants_bytes, symbols, &allowed, &above, diag);
	if (code == LTH_OK)
		code = lth_memory_figures(program, symbols, &figures, diag);
	if (code == LTH_OK && figures.arena_bytes > allowed)
		code = refuse(program, options, constants_bytes, symbols, allowed, diag);
	else if (code == LTH_OK && above > 0)
		code = refuse_unproved(options, above, diag);
	free(symbols);
	return code;
}
