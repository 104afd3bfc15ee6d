/* The independent plan checker. It shares no code with the planners and knows nothing of how a plan was made: it
 * walks the steps in order and keeps the address ranges in use in a balanced tree, ordered by offset. As long as
 * the ranges in the tree are disjoint, a new one collides with some of them if and only if it collides with its
 * neighbour below or above; so the first collision ends the sweep, O(n log n) in all. Sizes are taken as plan.h
 * says. Thread rule: pure function. */
#include "compiler/memory/plan/plan.h"

#include <stdlib.h>
#include <string.h>

enum { NONE = -1 };

/* A treap over buffer indices; priorities come from the index, so its shape is the same in every run. */
struct tree {
	const int64_t *begins, *ends;
	int32_t *left, *right;
	int32_t root;
};

struct event {
	int64_t step;
	int32_t is_start; /* ends come before starts of the same step */
	int32_t index;
};

struct sweep {
	size_t count;
	int64_t *begins, *ends;
	struct event *events;
	struct tree tree;
};

static uint32_t priority(int32_t index)
{
	uint32_t x = (uint32_t)index * 2654435761u;
	x ^= x >> 15;
	x *= 2246822519u;
	return x ^ x >> 13;
}

static bool before(const struct tree *tree, int32_t a, int32_t b)
{
	return tree->begins[a] != tree->begins[b] ? tree->begins[a] < tree->begins[b] : a < b;
}

/* Cuts a subtree into the part before `pivot` and the rest. */
static void split(struct tree *tree, int32_t node, int32_t pivot, int32_t *out_low, int32_t *out_high)
{
	while (node != NONE) {
		if (before(tree, node, pivot)) {
			*out_low = node;
			out_low = &tree->right[node];
			node = *out_low;
		} else {
			*out_high = node;
			out_high = &tree->left[node];
			node = *out_high;
		}
	}
	*out_low = NONE;
	*out_high = NONE;
}

static void tree_insert(struct tree *tree, int32_t index)
{
	int32_t *at = &tree->root;
	while (*at != NONE && priority(*at) >= priority(index))
		at = before(tree, *at, index) ? &tree->right[*at] : &tree->left[*at];
	int32_t low = NONE, high = NONE;
	split(tree, *at, index, &low, &high);
	tree->left[index] = low;
	tree->right[index] = high;
	*at = index;
}

static void tree_remove(struct tree *tree, int32_t index)
{
	int32_t *at = &tree->root;
	while (*at != index)
		at = before(tree, *at, index) ? &tree->right[*at] : &tree->left[*at];
	int32_t low = tree->left[index], high = tree->right[index];
	while (low != NONE && high != NONE) {
		if (priority(low) >= priority(high)) {
			*at = low;
			at = &tree->right[low];
			low = *at;
		} else {
			*at = high;
			at = &tree->left[high];
			high = *at;
		}
	}
	*at = low != NONE ? low : high;
}

/* A range in use that collides with the new one, or NONE. */
static int32_t tree_collision(const struct tree *tree, int32_t index)
{
	int32_t below = NONE, above = NONE, node = tree->root;
	while (node != NONE) {
		if (before(tree, node, index)) {
			below = node;
			node = tree->right[node];
		} else {
			above = node;
			node = tree->left[node];
		}
	}
	if (below != NONE && tree->ends[below] > tree->begins[index])
		return below;
	if (above != NONE && tree->begins[above] < tree->ends[index])
		return above;
	return NONE;
}

static int compare_events(const void *a, const void *b)
{
	const struct event *x = a, *y = b;
	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	if (x->is_start != y->is_start)
		return x->is_start - y->is_start;
	return (x->index > y->index) - (x->index < y->index);
}

static void report(struct lth_plan_check *check, enum lth_plan_violation_kind kind, size_t first, size_t second,
		   int64_t step)
{
	const size_t room = sizeof(check->violations) / sizeof(check->violations[0]);
	if (check->num_violations < room)
		check->violations[check->num_violations] =
			(struct lth_plan_violation){.kind = kind, .first = first, .second = second, .step = step};
	check->num_violations++;
}

static enum lth_code bad_buffer(const struct lth_buffer *buffers, size_t index, struct lth_diag *diag)
{
	const struct lth_buffer *b = &buffers[index];
	return lth_diag_fail(diag, LTH_INVALID_REQUEST, "plan check", "0 <= lower < upper, size >= 0, alignment >= 1",
			     NULL, "buffer %zu with lower %lld, upper %lld, size %lld, alignment %lld", index,
			     (long long)b->lower, (long long)b->upper, (long long)b->size, (long long)b->alignment);
}

static enum lth_code overflowing(size_t index, struct lth_diag *diag)
{
	return lth_diag_fail(diag, LTH_INVALID_REQUEST, "plan check", "sizes whose sum fits 63 bits", NULL,
			     "a sum that overflows at buffer %zu", index);
}

static int64_t granule_of(const struct lth_buffer *buffers, size_t count)
{
	int64_t granule = count ? buffers[0].alignment : 1;
	for (size_t i = 1; i < count && granule > 1; i++)
		for (int64_t other = buffers[i].alignment; other != 0;) {
			int64_t rest = granule % other;
			granule = other;
			other = rest;
		}
	return granule;
}

/* The address range of every buffer, and the violations that concern one buffer alone. A buffer whose range cannot be
 * expressed is reported and takes no part in the sweep: its range stays empty. */
static enum lth_code take_ranges(struct sweep *sweep, const struct lth_buffer *buffers, const int64_t *offsets,
				 struct lth_plan_check *check, struct lth_diag *diag)
{
	for (size_t i = 0; i < sweep->count; i++) {
		const struct lth_buffer *b = &buffers[i];
		if (b->lower < 0 || b->upper <= b->lower || b->size < 0 || b->alignment < 1)
			return bad_buffer(buffers, i, diag);
	}
	int64_t granule = granule_of(buffers, sweep->count), total = 0;
	for (size_t i = 0; i < sweep->count; i++) {
		int64_t size = buffers[i].size > 0 ? buffers[i].size : buffers[i].alignment, end = 0;
		if (size > INT64_MAX - granule)
			return overflowing(i, diag);
		size += size % granule ? granule - size % granule : 0;
		if (__builtin_add_overflow(total, size, &total))
			return overflowing(i, diag);
		if (buffers[i].fixed_offset >= 0 && offsets[i] != buffers[i].fixed_offset)
			report(check, LTH_VIOLATION_FIXED, i, SIZE_MAX, 0);
		if (offsets[i] < 0 || __builtin_add_overflow(offsets[i], size, &end)) {
			report(check, LTH_VIOLATION_NEGATIVE, i, SIZE_MAX, 0);
			continue;
		}
		if (offsets[i] % buffers[i].alignment != 0)
			report(check, LTH_VIOLATION_ALIGNMENT, i, SIZE_MAX, 0);
		sweep->begins[i] = offsets[i];
		sweep->ends[i] = end;
		check->height = end > check->height ? end : check->height;
	}
	return LTH_OK;
}

static void walk(struct sweep *sweep, const struct lth_buffer *buffers, struct lth_plan_check *check)
{
	struct tree *tree = &sweep->tree;
	int64_t granule = granule_of(buffers, sweep->count), live = 0;
	bool collided = false;
	for (size_t e = 0; e < 2 * sweep->count; e++) {
		const struct event *event = &sweep->events[e];
		int32_t index = event->index;
		int64_t size = buffers[index].size > 0 ? buffers[index].size : buffers[index].alignment;
		size += size % granule ? granule - size % granule : 0;
		live += event->is_start ? size : -size;
		if (live > check->live_bound_bytes) {
			check->live_bound_bytes = live;
			check->live_bound_step = event->step;
		}
		if (collided || sweep->begins[index] == sweep->ends[index])
			continue;
		if (!event->is_start) {
			tree_remove(tree, index);
			continue;
		}
		int32_t other = tree_collision(tree, index);
		if (other == NONE) {
			tree_insert(tree, index);
		} else {
			report(check, LTH_VIOLATION_OVERLAP, (size_t)other, (size_t)index, event->step);
			collided = true;
		}
	}
}

static bool sweep_create(struct sweep *sweep, size_t count)
{
	size_t room = count ? count : 1;
	sweep->count = count;
	sweep->begins = calloc(room, sizeof(int64_t));
	sweep->ends = calloc(room, sizeof(int64_t));
	sweep->events = calloc(room, 2 * sizeof(struct event));
	sweep->tree.left = malloc(room * sizeof(int32_t));
	sweep->tree.right = malloc(room * sizeof(int32_t));
	sweep->tree.begins = sweep->begins;
	sweep->tree.ends = sweep->ends;
	sweep->tree.root = NONE;
	return sweep->begins && sweep->ends && sweep->events && sweep->tree.left && sweep->tree.right;
}

static void sweep_destroy(struct sweep *sweep)
{
	free(sweep->begins);
	free(sweep->ends);
	free(sweep->events);
	free(sweep->tree.left);
	free(sweep->tree.right);
}

enum lth_code lth_plan_check(const struct lth_buffer *buffers, const int64_t *offsets, size_t count,
			     struct lth_plan_check *out_check, struct lth_diag *diag)
{
	struct lth_plan_check check = {0};
	struct sweep sweep = {0};
	enum lth_code code = LTH_OK;
	if (count > INT32_MAX)
		return lth_diag_fail(diag, LTH_TOO_LARGE, "plan check", "fewer than 2^31", NULL, "%zu buffers", count);
	if (!sweep_create(&sweep, count))
		code = lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "plan check", NULL, NULL, "%zu buffers", count);
	if (code == LTH_OK)
		code = take_ranges(&sweep, buffers, offsets, &check, diag);
	if (code == LTH_OK) {
		for (size_t i = 0; i < count; i++) {
			sweep.events[2 * i] = (struct event){buffers[i].lower, 1, (int32_t)i};
			sweep.events[2 * i + 1] = (struct event){buffers[i].upper, 0, (int32_t)i};
		}
		qsort(sweep.events, 2 * count, sizeof(struct event), compare_events);
		walk(&sweep, buffers, &check);
		*out_check = check;
	}
	sweep_destroy(&sweep);
	return code;
}

const char *lth_plan_violation_text(enum lth_plan_violation_kind kind)
{
	static const char *const texts[LTH_NUM_VIOLATION] = {
		[LTH_VIOLATION_OVERLAP] = "two buffers share a step and a byte",
		[LTH_VIOLATION_NEGATIVE] = "the offset is negative or the buffer's end overflows",
		[LTH_VIOLATION_ALIGNMENT] = "the offset is not a multiple of the buffer's alignment",
		[LTH_VIOLATION_FIXED] = "the buffer is not at its fixed offset",
	};
	return texts[kind];
}
