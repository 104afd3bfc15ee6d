/* trees: sums (or averages, minima, maxima) of the leaves that rows of features reach in decision trees.
 *
 *   output: scores [rows, targets], any floating-point type
 *   inputs: features [rows, features], any number
 *           nodes i64 [nodes, 7]: feature, comparison, child if true, child if false, where NaN goes (1: true), and
 *           where its members begin and end; a child of -1 - k is leaf k
 *           splits f64 [nodes]; members f64; roots i64 [trees], children in form; leaves i64 [leaves + 1]: where the
 *           votes of each begin; targets i64 [votes]; weights f64 [votes]
 *   attribute: aggregate (0 average, 1 sum, 2 minimum, 3 maximum)
 *
 * A target that no leaf votes for scores 0. A child stands behind its parent or is a leaf, so every walk ends; tables
 * are checked at each call, since they come from a model. */
#include "runtime/exec/pool.h"
#include "runtime/kernels/copy.h"
#include "runtime/kernels/real.h"
#include "runtime/threadpool.h"

#include <math.h>
#include <string.h>

enum { FEATURES, NODES, SPLITS, MEMBERS, ROOTS, LEAVES, TARGETS, WEIGHTS, NUM_OPERANDS };
enum { COLUMNS = 7 };
enum { FEATURE, COMPARISON, IF_TRUE, IF_FALSE, NAN_IS_TRUE, MEMBERS_BEGIN, MEMBERS_END };
enum { AVERAGE, SUM, MINIMUM, MAXIMUM };
enum { LEQ, LT, GTE, GT, EQ, NEQ, MEMBER };

struct trees {
	struct lth_builtin_tensor in[NUM_OPERANDS], out;
	const int64_t *nodes, *roots, *leaves, *targets;
	const double *splits, *members, *weights;
	int64_t num_nodes, num_trees, num_leaves, num_votes, num_features, num_targets;
	int64_t aggregate;
	double *scores; /* of one row a thread */
	bool *voted;
};

static bool is_true(const struct trees *t, const int64_t *node, double split, double x)
{
	if (isnan(x) && node[NAN_IS_TRUE])
		return true;
	switch (node[COMPARISON]) {
	case LEQ:
		return x <= split;
	case LT:
		return x < split;
	case GTE:
		return x >= split;
	case GT:
		return x > split;
	case EQ:
		return x == split;
	case NEQ:
		return x != split;
	default:
		for (int64_t i = node[MEMBERS_BEGIN]; i < node[MEMBERS_END]; i++)
			if (t->members[i] == x)
				return true;
		return false;
	}
}

/* The leaf that a row reaches from a root. */
static int64_t walk(const struct trees *t, int64_t place, const char *row)
{
	const struct lth_builtin_tensor *x = &t->in[FEATURES];
	int64_t step = x->strides[1] * (int64_t)(lth_dtype_bits(x->dtype) / 8);
	while (place >= 0) {
		const int64_t *node = t->nodes + place * COLUMNS;
		double value = lth_real_load(row + node[FEATURE] * step, x->dtype);
		place = node[is_true(t, node, t->splits[place], value) ? IF_TRUE : IF_FALSE];
	}
	return -1 - place;
}

static void vote(const struct trees *t, int64_t leaf, double *scores, bool *voted)
{
	for (int64_t v = t->leaves[leaf]; v < t->leaves[leaf + 1]; v++) {
		double *score = &scores[t->targets[v]], weight = t->weights[v];
		if (!voted[t->targets[v]])
			*score = weight;
		else if (t->aggregate == MINIMUM)
			*score = weight < *score ? weight : *score;
		else if (t->aggregate == MAXIMUM)
			*score = weight > *score ? weight : *score;
		else
			*score += weight;
		voted[t->targets[v]] = true;
	}
}

static int score_rows(void *context, int64_t begin, int64_t end, int64_t thread)
{
	const struct trees *t = context;
	const struct lth_builtin_tensor *x = &t->in[FEATURES];
	double *scores = t->scores + thread * t->num_targets;
	bool *voted = t->voted + thread * t->num_targets;
	int64_t element = lth_dtype_bits(t->out.dtype) / 8;
	for (int64_t row = begin; row < end; row++) {
		const char *features = x->data;
		features += row * x->strides[0] * (int64_t)(lth_dtype_bits(x->dtype) / 8);
		memset(scores, 0, (size_t)t->num_targets * sizeof(*scores));
		memset(voted, 0, (size_t)t->num_targets * sizeof(*voted));
		for (int64_t tree = 0; tree < t->num_trees; tree++)
			vote(t, walk(t, t->roots[tree], features), scores, voted);
		for (int64_t k = 0; k < t->num_targets; k++)
			lth_real_store((char *)t->out.data + (row * t->num_targets + k) * element, t->out.dtype,
				       t->aggregate == AVERAGE ? scores[k] / (double)t->num_trees : scores[k]);
	}
	return 0;
}

/* Whether `child`, seen from node `from`, ends: a leaf, or a node behind it. */
static bool is_place(const struct trees *t, int64_t child, int64_t from)
{
	return child < 0 ? child >= -t->num_leaves : child > from && child < t->num_nodes;
}

static bool is_sound(const struct trees *t)
{
	for (int64_t i = 0; i < t->num_nodes; i++) {
		const int64_t *node = t->nodes + i * COLUMNS;
		if (node[FEATURE] < 0 || node[FEATURE] >= t->num_features || !is_place(t, node[IF_TRUE], i) ||
		    !is_place(t, node[IF_FALSE], i) || node[MEMBERS_BEGIN] < 0 ||
		    node[MEMBERS_END] > t->in[MEMBERS].dims[0])
			return false;
	}
	for (int64_t i = 0; i < t->num_trees; i++)
		if (!is_place(t, t->roots[i], -1))
			return false;
	for (int64_t i = 0; i < t->num_leaves; i++)
		if (t->leaves[i] < 0 || t->leaves[i] > t->leaves[i + 1] || t->leaves[i + 1] > t->num_votes)
			return false;
	for (int64_t i = 0; i < t->num_votes; i++)
		if (t->targets[i] < 0 || t->targets[i] >= t->num_targets)
			return false;
	return true;
}

static bool fits(const struct trees *t)
{
	const struct lth_builtin_tensor *in = t->in;
	for (int i = NODES; i < NUM_OPERANDS; i++)
		if (in[i].rank != (i == NODES ? 2 : 1) || !lth_tensor_is_dense(in[i].rank, in[i].dims, in[i].strides))
			return false;
	return in[FEATURES].rank == 2 && lth_real_has(in[FEATURES].dtype) && in[NODES].dims[1] == COLUMNS &&
	       in[SPLITS].dims[0] == in[NODES].dims[0] && in[LEAVES].dims[0] >= 1 &&
	       in[TARGETS].dims[0] == in[WEIGHTS].dims[0] && t->out.rank == 2;
}

static void take_tables(struct trees *t)
{
	t->nodes = t->in[NODES].data;
	t->splits = t->in[SPLITS].data;
	t->members = t->in[MEMBERS].data;
	t->roots = t->in[ROOTS].data;
	t->leaves = t->in[LEAVES].data;
	t->targets = t->in[TARGETS].data;
	t->weights = t->in[WEIGHTS].data;
	t->num_nodes = t->in[NODES].dims[0];
	t->num_trees = t->in[ROOTS].dims[0];
	t->num_leaves = t->in[LEAVES].dims[0] - 1;
	t->num_votes = t->in[TARGETS].dims[0];
	t->num_features = t->in[FEATURES].dims[1];
	t->num_targets = t->out.dims[1];
}

int lth_builtin_trees(struct lth_builtin_call *call)
{
	struct trees t = {.out = call->tensors[0], .aggregate = lth_builtin_int(call, "aggregate", SUM)};
	for (uint32_t i = 0; i < NUM_OPERANDS; i++)
		t.in[i] = lth_builtin_input(call, i);
	if (!fits(&t))
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "trees takes features and its seven tables");
	take_tables(&t);
	if (!is_sound(&t))
		return lth_builtin_fail(call, LTH_KERNEL_INDEX,
					"a tree refers to a feature, node, leaf or target that is not there");
	int64_t threads = call->threads ? lth_threadpool_threads(call->threads) : 1, cells = threads * t.num_targets;
	int64_t bytes = cells * (int64_t)(sizeof(*t.scores) + sizeof(*t.voted));
	t.scores = lth_pool_take(call->pool, bytes);
	if (!t.scores)
		return LTH_KERNEL_MEMORY;
	t.voted = (bool *)(t.scores + cells);
	int64_t rows = t.in[FEATURES].dims[0];
	if (call->threads)
		lth_threadpool_run(call->threads, score_rows, &t, rows, 16, LTH_MAX_THREADS);
	else
		score_rows(&t, 0, rows, 0);
	lth_pool_give(call->pool, t.scores, bytes);
	return 0;
}
