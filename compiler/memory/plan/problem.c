/* A planning problem in its normal form: checks the buffers, replaces steps by sections, and divides sizes by what they
 * share. Sections are maximal: a start step is kept only if some buffer ends before or at the next start, so that no
 * section's buffers are a subset of its successor's. Two buffers share a step if and only if they share a section.
 * Thread rule: pure functions over the caller's arena. */
#include "compiler/memory/plan/internal.h"
#include "runtime/base/checked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ALIGNMENTS = 32 };

const char *lth_plan_buffer_fault(const struct lth_buffer *buffer, const char **out_field)
{
	const char *fault = NULL;
	if (buffer->lower < 0) {
		*out_field = "lower";
		fault = "a step of at least 0";
	} else if (buffer->upper <= buffer->lower) {
		*out_field = "upper";
		fault = "a step above lower: live ranges are half-open and not empty";
	} else if (buffer->size < 0) {
		*out_field = "size";
		fault = "a size of at least 0";
	} else if (buffer->alignment < 1) {
		*out_field = "alignment";
		fault = "an alignment of at least 1";
	} else if (buffer->fixed_offset < -1) {
		*out_field = "offset";
		fault = "an offset of at least 0";
	} else if (buffer->fixed_offset > 0 && buffer->fixed_offset % buffer->alignment != 0) {
		*out_field = "offset";
		fault = "a multiple of the buffer's alignment";
	}
	return fault;
}

static int64_t field_value(const struct lth_buffer *buffer, const char *field)
{
	switch (field[0]) {
	case 'l':
		return buffer->lower;
	case 'u':
		return buffer->upper;
	case 's':
		return buffer->size;
	case 'a':
		return buffer->alignment;
	default:
		return buffer->fixed_offset;
	}
}

struct lth_plan_buffer_text lth_plan_buffer_text(const char *const *names, size_t index)
{
	struct lth_plan_buffer_text out;
	if (names)
		snprintf(out.text, sizeof(out.text), "buffer '%.64s'", names[index]);
	else
		snprintf(out.text, sizeof(out.text), "buffer %zu", index);
	return out;
}

static enum lth_code check_buffers(const struct lth_buffer *buffers, size_t count, const char *const *names,
				   struct lth_diag *diag)
{
	for (size_t i = 0; i < count; i++) {
		const char *field = NULL, *fault = lth_plan_buffer_fault(&buffers[i], &field);
		if (!fault)
			continue;
		return lth_diag_fail(diag, LTH_INVALID_REQUEST, lth_plan_buffer_text(names, i).text, fault, NULL,
				     "%s %lld", field, (long long)field_value(&buffers[i], field));
	}
	return LTH_OK;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
	while (b != 0) {
		int64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

static enum lth_code overflow(const char *const *names, size_t index, struct lth_diag *diag)
{
	return lth_diag_fail(diag, LTH_INVALID_REQUEST, lth_plan_buffer_text(names, index).text, "sizes and alignments whose sum fits 62 bits", NULL,
			     "a sum of sizes that overflows");
}

/* Takes sizes and offsets over in bytes, rounded up to the granule, and proves that no planner's sum can overflow:
 * whatever the order, no item ends above the highest fixed end plus every size and alignment. */
static enum lth_code take_sizes(const struct lth_buffer *buffers, const char *const *names,
				struct lth_plan_problem *problem, struct lth_diag *diag)
{
	int64_t granule = 0, highest = 0, sum = 0;
	for (uint32_t i = 0; i < problem->count; i++)
		granule = common_divisor(buffers[i].alignment, granule);
	for (uint32_t i = 0; i < problem->count; i++) {
		const struct lth_buffer *buffer = &buffers[i];
		struct lth_plan_item *item = &problem->items[i];
		int64_t size = buffer->size ? buffer->size : buffer->alignment, end = 0;
		item->alignment = buffer->alignment;
		item->fixed = buffer->fixed_offset;
		if (!lth_add_i64(size, granule - 1, &end))
			return overflow(names, i, diag);
		item->size = end / granule * granule;
		if (!lth_add_i64(problem->naive, item->size, &problem->naive) ||
		    !lth_add_i64(sum, item->size, &sum) || !lth_add_i64(sum, item->alignment, &sum))
			return overflow(names, i, diag);
		if (item->fixed >= 0) {
			if (!lth_add_i64(item->fixed, item->size, &end))
				return overflow(names, i, diag);
			highest = end > highest ? end : highest;
		}
		if (!lth_add_i64(sum, highest, &end) || end > INT64_MAX / 2)
			return overflow(names, i, diag);
	}
	problem->fixed_top = highest;
	return LTH_OK;
}

/* Divides by the largest unit of which every left-justified plan's offsets are multiples. */
static void scale(struct lth_plan_problem *problem)
{
	int64_t unit = 0;
	bool aligned = true; /* by the unit alone */
	for (uint32_t i = 0; i < problem->count; i++) {
		unit = common_divisor(problem->items[i].size, unit);
		if (problem->items[i].fixed >= 0)
			unit = common_divisor(problem->items[i].fixed, unit);
	}
	for (uint32_t i = 0; i < problem->count; i++)
		aligned = aligned && unit % problem->items[i].alignment == 0;
	for (uint32_t i = 0; i < problem->count && !aligned; i++)
		unit = common_divisor(problem->items[i].alignment, unit);
	problem->unit = unit ? unit : 1;
	problem->free_form = aligned;
	for (uint32_t i = 0; i < problem->count; i++) {
		struct lth_plan_item *item = &problem->items[i];
		item->size /= problem->unit;
		item->alignment = aligned ? 1 : item->alignment / problem->unit;
		if (item->fixed >= 0) {
			item->fixed /= problem->unit;
			problem->free_form = false;
		}
	}
	problem->naive /= problem->unit;
	problem->fixed_top /= problem->unit;
}

static int compare_steps(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* The first of the sorted `steps` that is at least `step`. */
static int32_t first_at_least(const int64_t *steps, int32_t count, int64_t step)
{
	int32_t low = 0, high = count;
	while (low < high) {
		int32_t middle = low + (high - low) / 2;
		if (steps[middle] < step)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static enum lth_code make_sections(const struct lth_buffer *buffers, struct lth_plan_problem *problem,
				   struct lth_diag *diag)
{
	uint32_t count = problem->count;
	int64_t *starts = lth_arena_array(problem->arena, count, sizeof(*starts));
	int64_t *ends = lth_arena_array(problem->arena, count, sizeof(*ends));
	if (!starts || !ends)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "memory planner", NULL, NULL, "%u buffers", count);
	for (uint32_t i = 0; i < count; i++) {
		starts[i] = buffers[i].lower;
		ends[i] = buffers[i].upper;
	}
	qsort(starts, count, sizeof(*starts), compare_steps);
	qsort(ends, count, sizeof(*ends), compare_steps);
	int32_t kept = 0;
	for (uint32_t i = 0, end = 0; i < count; i++) {
		if (i + 1 < count && starts[i + 1] == starts[i])
			continue;
		while (end < count && ends[end] <= starts[i])
			end++;
		if (i + 1 == count || (end < count && ends[end] <= starts[i + 1]))
			starts[kept++] = starts[i];
	}
	problem->sections = kept;
	for (uint32_t i = 0; i < count; i++) {
		problem->items[i].lower = first_at_least(starts, kept, buffers[i].lower);
		problem->items[i].upper = first_at_least(starts, kept, buffers[i].upper);
	}
	return LTH_OK;
}

static void sum_loads(struct lth_plan_problem *problem)
{
	for (uint32_t i = 0; i < problem->count; i++) {
		const struct lth_plan_item *item = &problem->items[i];
		problem->load[item->lower] += item->size;
		problem->load[item->upper] -= item->size;
	}
	for (int32_t s = 0; s < problem->sections; s++) {
		problem->load[s + 1] += problem->load[s];
		if (problem->load[s] > problem->live_bound)
			problem->live_bound = problem->load[s];
	}
	problem->floor = problem->live_bound > problem->fixed_top ? problem->live_bound : problem->fixed_top;
}

/* Offsets of items whose alignments are multiples of A lie whole A apart: each but the topmost takes its size rounded up
 * to A, whatever else stands in the rest of it. */
static int64_t bound_at(const struct lth_plan_problem *problem, int64_t alignment, int64_t *change)
{
	int64_t most = 0, live = 0, most_rest = 0;
	memset(change, 0, ((size_t)problem->sections + 1) * sizeof(*change));
	for (uint32_t i = 0; i < problem->count; i++) {
		const struct lth_plan_item *item = &problem->items[i];
		if (item->alignment % alignment != 0)
			continue;
		int64_t taken = lth_plan_align(item->size, alignment);
		change[item->lower] += taken;
		change[item->upper] -= taken;
		most_rest = taken - item->size > most_rest ? taken - item->size : most_rest;
	}
	for (int32_t s = 0; s < problem->sections; s++) {
		live += change[s];
		most = live > most ? live : most;
	}
	return most - most_rest;
}

/* The best of those bounds. Only so many alignments are looked at: there are few, but in requests made to be slow. */
static bool bound_alignments(struct lth_plan_problem *problem)
{
	int64_t seen[MAX_ALIGNMENTS];
	unsigned count = 0;
	int64_t *change = NULL;
	for (uint32_t i = 0; i < problem->count && count < MAX_ALIGNMENTS; i++) {
		int64_t alignment = problem->items[i].alignment;
		unsigned k = 0;
		while (k < count && seen[k] != alignment)
			k++;
		if (alignment == 1 || k < count)
			continue;
		seen[count++] = alignment;
		if (!change)
			change = lth_arena_array(problem->arena, (size_t)problem->sections + 1, sizeof(*change));
		if (!change)
			return false;
		int64_t bound = bound_at(problem, alignment, change);
		problem->aligned_bound = bound > problem->aligned_bound ? bound : problem->aligned_bound;
	}
	problem->floor = problem->aligned_bound > problem->floor ? problem->aligned_bound : problem->floor;
	return true;
}

enum lth_code lth_plan_problem_build(struct lth_arena *arena, const struct lth_buffer *buffers, size_t count,
				     const char *const *names, struct lth_plan_problem *out_problem,
				     struct lth_diag *diag)
{
	if (count > LTH_PLAN_MAX_BUFFERS)
		return lth_diag_fail(diag, LTH_TOO_LARGE, "buffers", "at most 16777216", NULL, "%zu buffers", count);
	enum lth_code code = check_buffers(buffers, count, names, diag);
	if (code != LTH_OK)
		return code;
	struct lth_plan_problem problem = {.arena = arena, .count = (uint32_t)count};
	problem.items = lth_arena_array(arena, count, sizeof(*problem.items));
	if (!problem.items)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "memory planner", NULL, NULL, "%zu buffers", count);
	code = take_sizes(buffers, names, &problem, diag);
	if (code != LTH_OK)
		return code;
	scale(&problem);
	code = make_sections(buffers, &problem, diag);
	if (code != LTH_OK)
		return code;
	problem.load = lth_arena_array(arena, (size_t)problem.sections + 1, sizeof(*problem.load));
	if (!problem.load)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "memory planner", NULL, NULL, "%zu buffers", count);
	sum_loads(&problem);
	if (!bound_alignments(&problem))
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "memory planner", NULL, NULL, "%zu buffers", count);
	*out_problem = problem;
	return LTH_OK;
}
