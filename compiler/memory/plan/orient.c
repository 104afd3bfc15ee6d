/* Orientation plans. See orient.h. The neighbours come from a sweep over the steps with the live buffers in a set
 * of ranks (places in the order of offsets) that knows the next one up and down: a tree of bitmaps, 64 a node.
 * Thread rule: reentrant. */
#include "compiler/memory/plan/orient.h"
#include "runtime/base/checked.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_LEVELS = 6, MAX_MARKS = 1024 };

/* A set of small numbers. Bit i of level l tells whether word i of level l - 1 is not 0. */
struct rank_set {
	uint64_t *words[MAX_LEVELS];
	int levels;
};

struct event {
	int64_t step;
	uint32_t rank;
	bool begins; /* ends come first */
};

struct edge {
	uint32_t above, below;
};

struct builder {
	const struct lth_buffer *buffers;
	const int64_t *offsets;
	uint32_t count;
	struct place { int64_t offset; uint32_t index; } *places; /* by rank */
	struct event *events;
	struct rank_set live;
	struct edge *edges;
	uint32_t num_edges;
	uint32_t *mark;
};

static bool set_create(struct rank_set *set, uint32_t count)
{
	for (size_t words = count; set->levels == 0 || words > 1; set->levels++) {
		words = (words + 63) / 64;
		words = words ? words : 1;
		set->words[set->levels] = calloc(words, sizeof(uint64_t));
		if (!set->words[set->levels])
			return false;
	}
	return true;
}

static void set_destroy(struct rank_set *set)
{
	for (int l = 0; l < MAX_LEVELS; l++)
		free(set->words[l]);
}

static void set_add(struct rank_set *set, uint32_t rank)
{
	for (int l = 0; l < set->levels; l++, rank /= 64)
		set->words[l][rank / 64] |= UINT64_C(1) << rank % 64;
}

static void set_remove(struct rank_set *set, uint32_t rank)
{
	for (int l = 0; l < set->levels; l++, rank /= 64) {
		set->words[l][rank / 64] &= ~(UINT64_C(1) << rank % 64);
		if (set->words[l][rank / 64])
			break;
	}
}

/* The largest member below `rank`, or UINT32_MAX. */
static uint32_t set_below(const struct rank_set *set, uint32_t rank)
{
	for (int l = 0; l < set->levels; l++, rank /= 64) {
		uint64_t bits = set->words[l][rank / 64] & ((UINT64_C(1) << rank % 64) - 1);
		if (!bits)
			continue;
		rank = rank / 64 * 64 + 63 - (uint32_t)__builtin_clzll(bits);
		while (l-- > 0)
			rank = rank * 64 + 63 - (uint32_t)__builtin_clzll(set->words[l][rank]);
		return rank;
	}
	return UINT32_MAX;
}

/* The smallest member above `rank`, or UINT32_MAX. */
static uint32_t set_above(const struct rank_set *set, uint32_t rank)
{
	for (int l = 0; l < set->levels; l++, rank /= 64) {
		uint64_t bits = rank % 64 == 63 ? 0 : set->words[l][rank / 64] & ~UINT64_C(0) << (rank % 64 + 1);
		if (!bits)
			continue;
		rank = rank / 64 * 64 + (uint32_t)__builtin_ctzll(bits);
		while (l-- > 0)
			rank = rank * 64 + (uint32_t)__builtin_ctzll(set->words[l][rank]);
		return rank;
	}
	return UINT32_MAX;
}

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return x->index < y->index ? -1 : 1;
}

static int compare_events(const void *a, const void *b)
{
	const struct event *x = a, *y = b;
	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	if (x->begins != y->begins)
		return x->begins ? 1 : -1;
	return x->rank < y->rank ? -1 : 1;
}

static int compare_edges(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;
	if (x->above != y->above)
		return x->above < y->above ? -1 : 1;
	return (x->below > y->below) - (x->below < y->below);
}

static void add_edge(struct builder *builder, uint32_t below, uint32_t above)
{
	if (below != UINT32_MAX && above != UINT32_MAX)
		builder->edges[builder->num_edges++] = (struct edge){.above = above, .below = below};
}

/* Every pair that becomes neighbours at some step: two where a buffer begins, one where it ends. */
static void find_neighbours(struct builder *builder)
{
	for (uint32_t rank = 0; rank < builder->count; rank++) {
		const struct lth_buffer *buffer = &builder->buffers[builder->places[rank].index];
		builder->events[2 * rank] = (struct event){.step = buffer->lower, .rank = rank, .begins = true};
		builder->events[2 * rank + 1] = (struct event){.step = buffer->upper, .rank = rank};
	}
	qsort(builder->events, 2 * (size_t)builder->count, sizeof(struct event), compare_events);
	for (size_t e = 0; e < 2 * (size_t)builder->count; e++) {
		uint32_t rank = builder->events[e].rank;
		if (!builder->events[e].begins)
			set_remove(&builder->live, rank);
		uint32_t below = set_below(&builder->live, rank), above = set_above(&builder->live, rank);
		if (builder->events[e].begins) {
			add_edge(builder, below, rank);
			add_edge(builder, rank, above);
			set_add(&builder->live, rank);
		} else {
			add_edge(builder, below, above);
		}
	}
	qsort(builder->edges, builder->num_edges, sizeof(struct edge), compare_edges);
	uint32_t unique = 0;
	for (uint32_t e = 0; e < builder->num_edges; e++)
		if (unique == 0 || compare_edges(&builder->edges[e], &builder->edges[unique - 1]) != 0)
			builder->edges[unique++] = builder->edges[e];
	builder->num_edges = unique;
}

/* Writes the edges by entry, without those that two others imply. Where a buffer has very many below it, some of these
 * may stay: they do no harm. */
static void write_edges(struct builder *builder, struct lth_orient *orient)
{
	uint32_t *starts = builder->mark + builder->count, written = 0;
	for (uint32_t rank = 0, e = 0; rank <= builder->count; rank++) {
		starts[rank] = e;
		while (rank < builder->count && e < builder->num_edges && builder->edges[e].above == rank)
			e++;
	}
	for (uint32_t rank = 0; rank < builder->count; rank++) {
		orient->edges[rank] = written;
		int marks = 0;
		for (uint32_t e = starts[rank]; e < starts[rank + 1]; e++) {
			uint32_t between = builder->edges[e].below;
			for (uint32_t k = starts[between]; k < starts[between + 1] && marks < MAX_MARKS; k++, marks++)
				builder->mark[builder->edges[k].below] = rank + 1;
		}
		for (uint32_t e = starts[rank]; e < starts[rank + 1]; e++)
			if (builder->mark[builder->edges[e].below] != rank + 1)
				orient->below[written++] = builder->edges[e].below;
	}
	orient->edges[builder->count] = written;
	orient->num_edges = written;
}

void lth_orient_free(struct lth_orient *orient)
{
	free(orient->buffers);
	free(orient->edges);
	free(orient->below);
	*orient = (struct lth_orient){0};
}

static bool allocate(struct builder *builder, struct lth_orient *orient)
{
	size_t count = builder->count;
	builder->places = calloc(count + 1, sizeof(*builder->places));
	builder->events = calloc(2 * count + 1, sizeof(*builder->events));
	builder->edges = calloc(3 * count + 1, sizeof(*builder->edges));
	builder->mark = calloc(2 * count + 1, sizeof(*builder->mark));
	orient->buffers = calloc(count + 1, sizeof(*orient->buffers));
	orient->edges = calloc(count + 1, sizeof(*orient->edges));
	orient->below = calloc(3 * count + 1, sizeof(*orient->below));
	return set_create(&builder->live, builder->count) && builder->places && builder->events && builder->edges &&
	       builder->mark && orient->buffers && orient->edges && orient->below;
}

enum lth_code lth_orient_build(const struct lth_buffer *buffers, const int64_t *offsets, size_t count,
			       struct lth_orient *out_orient, struct lth_diag *diag)
{
	struct builder builder = {.buffers = buffers, .offsets = offsets, .count = (uint32_t)count};
	struct lth_orient orient = {.count = (uint32_t)count};
	enum lth_code code = LTH_OK;
	if (count > LTH_PLAN_MAX_BUFFERS)
		return lth_diag_fail(diag, LTH_TOO_LARGE, "orientation", "at most 16777216", NULL, "%zu buffers",
				     count);
	if (allocate(&builder, &orient)) {
		for (uint32_t i = 0; i < builder.count; i++)
			builder.places[i] = (struct place){.offset = offsets[i], .index = i};
		qsort(builder.places, count, sizeof(*builder.places), compare_places);
		for (uint32_t rank = 0; rank < builder.count; rank++)
			orient.buffers[rank] = builder.places[rank].index;
		find_neighbours(&builder);
		write_edges(&builder, &orient);
		*out_orient = orient;
	} else {
		lth_orient_free(&orient);
		code = lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "orientation", NULL, NULL, "%zu buffers", count);
	}
	set_destroy(&builder.live);
	free(builder.places);
	free(builder.events);
	free(builder.edges);
	free(builder.mark);
	return code;
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

bool lth_orient_evaluate(const struct lth_orient *orient, const struct lth_buffer *buffers, const int64_t *sizes,
			 int64_t *offsets, int64_t *out_height)
{
	int64_t granule = 0, height = 0;
	for (uint32_t i = 0; i < orient->count; i++)
		if (buffers[i].alignment != granule)
			granule = common_divisor(buffers[i].alignment, granule);
	for (uint32_t entry = 0; entry < orient->count; entry++) {
		uint32_t index = orient->buffers[entry];
		int64_t offset = 0, end = 0;
		for (uint32_t e = orient->edges[entry]; e < orient->edges[entry + 1]; e++) {
			uint32_t below = orient->buffers[orient->below[e]];
			int64_t size = sizes[below] ? sizes[below] : buffers[below].alignment;
			if (!lth_add_i64(offsets[below], size, &end))
				return false;
			offset = end > offset ? end : offset;
		}
		int64_t size = sizes[index] ? sizes[index] : buffers[index].alignment;
		if (!lth_round_up_i64(offset, buffers[index].alignment, &offset) || !lth_add_i64(offset, size, &end))
			return false;
		offsets[index] = offset;
		height = end > height ? end : height;
	}
	return lth_round_up_i64(height, granule ? granule : 1, out_height);
}

void lth_orient_set_free(struct lth_orient_set *set)
{
	for (uint32_t k = 0; k < set->count; k++)
		lth_orient_free(&set->orients[k]);
	set->count = 0;
}

uint32_t lth_orient_set_evaluate(const struct lth_orient_set *set, const struct lth_buffer *buffers,
				 const int64_t *sizes, int64_t *scratch, int64_t *offsets, int64_t *out_height)
{
	uint32_t best = UINT32_MAX;
	int64_t least = 0, height = 0;
	for (uint32_t k = 0; k < set->count; k++) {
		if (!lth_orient_evaluate(&set->orients[k], buffers, sizes, scratch, &height))
			continue;
		if (best != UINT32_MAX && height >= least)
			continue;
		best = k;
		least = height;
		memcpy(offsets, scratch, set->orients[k].count * sizeof(*offsets));
	}
	if (best != UINT32_MAX)
		*out_height = least;
	return best;
}

/* Plans at one row of sizes and adds its orientation to the set. */
static enum lth_code add_sample(struct lth_buffer *buffers, size_t count, const int64_t *sizes,
				const struct lth_plan_options *options, struct lth_orient_set *set,
				struct lth_diag *diag)
{
	struct lth_plan_result result = {0};
	for (size_t i = 0; i < count; i++)
		buffers[i].size = sizes[i];
	enum lth_code code = lth_plan(buffers, count, options, &result, diag);
	if (code == LTH_OK)
		code = lth_orient_build(buffers, result.offsets, count, &set->orients[set->count], diag);
	if (code == LTH_OK)
		set->count++;
	lth_plan_result_free(&result);
	return code;
}

/* Frees the orientations that are best at no row. */
static void drop_never_best(struct lth_orient_set *set, const struct lth_buffer *buffers, size_t count,
			    const int64_t *sizes, uint32_t num_samples, int64_t *space)
{
	bool best[LTH_ORIENT_MAX] = {false};
	int64_t height = 0;
	for (uint32_t k = 0; k < num_samples; k++) {
		uint32_t winner =
			lth_orient_set_evaluate(set, buffers, sizes + k * count, space, space + count, &height);
		if (winner != UINT32_MAX)
			best[winner] = true;
	}
	uint32_t kept = 0;
	for (uint32_t k = 0; k < set->count; k++) {
		if (best[k])
			set->orients[kept++] = set->orients[k];
		else
			lth_orient_free(&set->orients[k]);
	}
	set->count = kept;
}

enum lth_code lth_orient_choose(const struct lth_buffer *buffers, size_t count, const int64_t *sizes,
				uint32_t num_samples, const struct lth_plan_options *options,
				struct lth_orient_set *out_set, struct lth_diag *diag)
{
	struct lth_orient_set set = {.count = 0};
	enum lth_code code = LTH_OK;
	if (num_samples < 1 || num_samples > LTH_ORIENT_MAX)
		return lth_diag_fail(diag, LTH_INVALID_REQUEST, "orientation", "1 to 8 samples", NULL, "%u",
				     num_samples);
	struct lth_buffer *copy = calloc(count + 1, sizeof(*copy));
	int64_t *space = calloc(2 * count + 1, sizeof(*space));
	if (!copy || !space)
		code = lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "orientation", NULL, NULL, "%zu buffers", count);
	if (code == LTH_OK)
		memcpy(copy, buffers, count * sizeof(*copy));
	for (uint32_t k = 0; k < num_samples && code == LTH_OK; k++)
		code = add_sample(copy, count, sizes + k * count, options, &set, diag);
	if (code == LTH_OK) {
		drop_never_best(&set, buffers, count, sizes, num_samples, space);
		*out_set = set;
	} else {
		lth_orient_set_free(&set);
	}
	free(copy);
	free(space);
	return code;
}
