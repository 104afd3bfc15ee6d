/* Property tests of the memory passes on random programs (random_programs.h). Whatever passes ran, the outputs must be
 * the same; and the plan must hold at random shapes of the box, which the independent checker decides. */
#include "random_programs.h"
#include "runtime/memory/views.h"
#include "tests/unit/run_suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROGRAMS = 600 };

static int64_t live_bound(const struct lth_program *program)
{
	struct lth_memory_figures figures;
	int64_t symbols[2];
	lth_symbols_at_hint(program, symbols);
	random_must(lth_memory_figures(program, symbols, &figures, &random_diag));
	return figures.live_bound_bytes;
}

/* The plan holds at random shapes: the checker on each, and nothing is higher than at the top. */
static void check_plan(const struct lth_program *program)
{
	struct lth_memory_figures figures, top;
	int64_t symbols[2], *offsets = calloc(program->num_storages, sizeof(*offsets));
	int64_t *sizes = calloc(program->num_storages, sizeof(*sizes));
	struct lth_buffer *buffers = calloc(program->num_storages, sizeof(*buffers));
	int64_t *places = calloc(program->num_storages, sizeof(*places));
	ck_assert(lth_symbols_at_top(program, symbols));
	random_must(lth_memory_figures(program, symbols, &top, &random_diag));
	for (unsigned shape = 0; shape < 20; shape++) {
		symbols[0] = 1 + random_below((uint32_t)program->symbols[0].max);
		symbols[1] = 1 + random_below((uint32_t)program->symbols[1].max);
		random_must(lth_memory_figures(program, symbols, &figures, &random_diag));
		random_must(lth_memory_offsets(program, symbols, offsets, &random_diag));
		random_must(lth_storage_sizes(program, symbols, sizes, &random_diag));
		size_t count = 0;
		for (uint32_t s = 0; s < program->num_storages; s++) {
			const struct lth_storage *storage = &program->storages[s];
			if (!lth_storage_planned(storage))
				continue;
			buffers[count] =
				(struct lth_buffer){storage->first, storage->last, sizes[s], storage->alignment, -1};
			places[count++] = offsets[s];
		}
		struct lth_plan_check found;
		random_must(lth_plan_check(buffers, places, count, &found, &random_diag));
		ck_assert_uint_eq(found.num_violations, 0);
		ck_assert_int_eq(found.height, figures.arena_bytes);
		ck_assert_int_eq(found.live_bound_bytes, figures.live_bound_bytes);
		ck_assert_int_le(figures.arena_bytes, top.arena_bytes);
	}
	free(offsets);
	free(sizes);
	free(buffers);
	free(places);
}

static unsigned recomputed_values, lowered_by_sharing, copies_gone, formulas, swaps, counted_swaps;

static unsigned count_copies(const struct lth_program *program)
{
	unsigned count = 0;
	for (uint32_t i = 0; i < program->num_instrs; i++)
		count += program->instrs[i].op == LTH_INSTR_COPY;
	return count;
}

static void count_swaps(const struct lth_program *program)
{
	for (uint32_t i = 0; i < program->num_instrs; i++)
		if (program->instrs[i].op == LTH_INSTR_SWAP) {
			swaps++;
			counted_swaps += program->instrs[i].ints[0] != LTH_NONE;
		}
}

static void share(struct lth_program *program)
{
	int64_t before = live_bound(program);
	unsigned copies = count_copies(program);
	bool tight = random_below(2);
	random_must(lth_share_branches(program, tight, &random_diag));
	ck_assert_int_le(live_bound(program), tight ? before : before + before / 32);
	lowered_by_sharing += live_bound(program) < before;
	copies_gone += copies - count_copies(program);
	count_swaps(program);
}

/* --- reading formulas: min, max, round64, sums and products of numbers and symbols */
struct reader {
	const char *at;
	const struct lth_program *program;
	const int64_t *symbols;
};

static int64_t read_sum(struct reader *r);

static bool taken(struct reader *r, const char *word)
{
	size_t length = strlen(word);
	if (strncmp(r->at, word, length) != 0)
		return false;
	r->at += length;
	return true;
}

static int64_t read_list(struct reader *r, bool least)
{
	int64_t value = read_sum(r);
	while (taken(r, ", ")) {
		int64_t next = read_sum(r);
		if (least ? next < value : next > value)
			value = next;
	}
	ck_assert_msg(taken(r, ")"), "at '%s'", r->at);
	return value;
}

static int64_t read_factor(struct reader *r)
{
	if (taken(r, "min("))
		return read_list(r, true);
	if (taken(r, "max("))
		return read_list(r, false);
	if (taken(r, "round64("))
		return (read_list(r, false) + 63) / 64 * 64;
	if (taken(r, "("))
		return read_list(r, false);
	for (uint32_t i = 0; i < r->program->num_symbols; i++)
		if (taken(r, r->program->symbols[i].name))
			return r->symbols[i];
	char *end;
	long long value = strtoll(r->at, &end, 10);
	ck_assert_msg(end != r->at, "at '%s'", r->at);
	r->at = end;
	return value;
}

static int64_t read_product(struct reader *r)
{
	int64_t value = read_factor(r);
	while (taken(r, "*"))
		value *= read_factor(r);
	return value;
}

static int64_t read_sum(struct reader *r)
{
	int64_t value = read_product(r);
	while (taken(r, " + "))
		value += read_product(r);
	return value;
}

/* The formula is the arena at random shapes; the pictures are made of the same. */
static void check_views(const struct lth_program *program)
{
	struct lth_memory_figures figures;
	struct lth_buf text = {0}, svg = {0}, trace = {0}, ledger = {0};
	int64_t symbols[2];
	lth_symbols_at_hint(program, symbols);
	lth_memory_formula(program, symbols, &text);
	for (unsigned shape = 0; shape < 10 && !strstr(lth_buf_text(&text), "too long"); shape++) {
		struct reader reader = {lth_buf_text(&text), program, symbols};
		symbols[0] = 1 + random_below((uint32_t)program->symbols[0].max);
		symbols[1] = 1 + random_below((uint32_t)program->symbols[1].max);
		random_must(lth_memory_figures(program, symbols, &figures, &random_diag));
		ck_assert_int_eq(read_sum(&reader), figures.arena_bytes);
		ck_assert_str_eq(reader.at, "");
		formulas++;
	}
	random_must(lth_memory_svg(program, symbols, &svg, &random_diag));
	random_must(lth_memory_trace(program, symbols, &trace, &random_diag));
	random_must(lth_memory_ledger(program, symbols, &ledger, &random_diag));
	ck_assert(strncmp(lth_buf_text(&svg), "<svg ", 5) == 0 && strstr(lth_buf_text(&svg), "</svg>"));
	ck_assert(strstr(lth_buf_text(&trace), "\"traceEvents\"") && strstr(lth_buf_text(&ledger), "\"storages\""));
	lth_buf_free(&text);
	lth_buf_free(&svg);
	lth_buf_free(&trace);
	lth_buf_free(&ledger);
}

/* A budget of the arena's own size is kept; one byte less is refused and says why. */
static void check_budgets(const struct lth_program *program)
{
	struct lth_memory_figures top;
	struct lth_diag refused = {0};
	struct lth_memory_options options = {.alignment = 64};
	int64_t symbols[2];
	ck_assert(lth_symbols_at_top(program, symbols));
	random_must(lth_memory_figures(program, symbols, &top, &random_diag));
	options.budget_bytes = top.arena_bytes;
	random_must(lth_memory_check_budget(program, &options, 1000, &random_diag));
	options.budget_bytes--;
	ck_assert_int_eq(lth_memory_check_budget(program, &options, 1000, &refused), LTH_BUDGET_UNREACHABLE);
	ck_assert_ptr_nonnull(strstr(refused.found, "alive at the peak"));
	refused = (struct lth_diag){0};
	options = (struct lth_memory_options){.budget_total_bytes = top.arena_bytes + top.io_bytes + 1000};
	random_must(lth_memory_check_budget(program, &options, 1000, &random_diag));
	ck_assert_int_eq(lth_memory_check_budget(program, &options, 1001, &refused), LTH_BUDGET_UNREACHABLE);
}

/* Rematerialize under a budget that can seldom be met. */
static void halve_live_bound(struct lth_program *program)
{
	int64_t symbols[2], before = live_bound(program);
	uint32_t recomputed;
	lth_symbols_at_hint(program, symbols);
	random_must(lth_rematerialize(program, symbols, before / 2, &recomputed, &random_diag));
	ck_assert(recomputed ? live_bound(program) < before : live_bound(program) == before);
	recomputed_values += recomputed;
}

static const struct lth_memory_options plan_options = {
	.strategy = LTH_PLAN_EXACT, .effort = 500, .seed = 1, .alignment = 64, .check = true};

/* The passes keep what a program computes, and plans hold. */
START_TEST(passes_keep_outputs)
{
	uint64_t before[2], after[2];
	for (uint64_t seed = random_first_seed; seed < random_first_seed + PROGRAMS; seed++) {
		struct lth_program *p = random_make_program(seed);
		struct lth_order_report order;
		struct lth_memory_report report;
		random_run_model(p, before);
		if (seed % 4)
			random_must(lth_order_for_memory(p, 2000, &order, &random_diag));
		if (seed % 3)
			random_must(lth_reuse_in_place(p, &random_diag));
		if (seed % 7)
			random_must(lth_manifest_lifetimes(p, &random_diag));
		else
			lth_lifetimes_to_the_end(p);
		lth_branches_add_up(p);
		random_must(lth_program_verify(p, &random_diag));
		if (seed % 5)
			share(p);
		if (seed % 7 && seed % 2)
			halve_live_bound(p);
		random_must(lth_program_verify(p, &random_diag));
		random_run_model(p, after);
		ck_assert_msg(before[0] == after[0] && before[1] == after[1], "seed %llu", (unsigned long long)seed);
		random_must(lth_memory_plan(p, &plan_options, &report, &random_diag));
		random_must(lth_program_verify(p, &random_diag));
		random_run_model(p, after);
		ck_assert_msg(before[0] == after[0] && before[1] == after[1], "seed %llu, planned",
			      (unsigned long long)seed);
		ck_assert(report.worst_ratio >= 1 && report.mean_ratio <= report.worst_ratio);
		check_plan(p);
		check_views(p);
		check_budgets(p);
		lth_arena_destroy(&random_arena);
		random_arena = lth_arena_create(0);
	}
	ck_assert(recomputed_values && lowered_by_sharing && copies_gone && formulas && swaps && counted_swaps);
}
END_TEST

/* An order is never worse than the source's, and its bound never above it. */
/* Samples keep to each symbol's range and multiples, however wide: what data bind may be any integer. */
START_TEST(samples_are_of_the_range)
{
	static const struct lth_symbol symbols[] = {
		{.name = "n", .min = 1, .max = 64, .multiple = 1, .hint = 8},
		{.name = "h", .min = 32, .max = INT64_MAX, .multiple = 32, .hint = 320},
		{.name = "negative", .min = -7, .max = 5, .multiple = 3, .hint = 0},
		{.name = "any", .min = INT64_MIN, .max = INT64_MAX, .multiple = 1, .hint = 1},
		{.name = "below", .min = INT64_MIN, .max = -1, .multiple = 1, .hint = -1},
	};
	enum { COUNT = sizeof(symbols) / sizeof(*symbols) };
	struct lth_program *program = lth_program_create(random_arena);
	for (uint32_t i = 0; i < COUNT; i++)
		lth_program_symbol(program, &symbols[i]);
	for (uint64_t number = 0; number < 200; number++) {
		int64_t sample[COUNT];
		lth_symbols_sample(program, number, sample);
		for (uint32_t i = 0; i < COUNT; i++) {
			ck_assert_int_ge(sample[i], symbols[i].min);
			ck_assert_int_le(sample[i], symbols[i].max);
			ck_assert_int_eq(sample[i] % symbols[i].multiple, 0);
		}
	}
}
END_TEST

START_TEST(order_lowers_the_live_bound)
{
	unsigned better = 0;
	for (uint64_t seed = random_first_seed; seed < random_first_seed + PROGRAMS; seed++) {
		struct lth_order_report order;
		struct lth_program *source = random_make_program(seed), *ordered = random_make_program(seed);
		random_must(lth_manifest_lifetimes(source, &random_diag));
		random_must(lth_order_for_memory(ordered, 5000, &order, &random_diag));
		ck_assert_int_le(order.bound_bytes, order.peak_bytes);
		random_must(lth_manifest_lifetimes(ordered, &random_diag));
		better += live_bound(ordered) < live_bound(source);
		lth_arena_destroy(&random_arena);
		random_arena = lth_arena_create(0);
	}
	ck_assert_uint_gt(better, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("memory");
	TCase *cases = tcase_create("passes");
	tcase_add_checked_fixture(cases, random_setup, random_teardown);
	tcase_set_timeout(cases, 120);
	tcase_add_test(cases, passes_keep_outputs);
	tcase_add_test(cases, samples_are_of_the_range);
	tcase_add_test(cases, order_lowers_the_live_bound);
	suite_add_tcase(suite, cases);
	return run_suite(suite);
}
