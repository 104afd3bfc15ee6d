/* ai.onnx.ml: tree ensembles in their three forms, as tables for the C kernel `trees`. The tables are made once, here:
 * nodes renumbered so that children stand behind parents (which also refuses cycles), leaves with their votes side by
 * side. */
#include "compiler/ops/family.h"
#include "compiler/ops/ml.h"

#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 7 }; /* of the kernel's table of nodes: see runtime/kernels/trees.c */
enum { FEATURE, COMPARISON, IF_TRUE, IF_FALSE, NAN_IS_TRUE, MEMBERS_BEGIN, MEMBERS_END };
enum { MEMBER_MODE = 6, LEAF_MODE = 7 };

/* A forest as the attributes have it, or as the kernel wants it. A child of -1 - k is leaf k. */
struct forest {
	uint32_t num_nodes, num_roots, num_leaves, num_votes, num_members;
	int64_t (*nodes)[COLUMNS];
	double *splits;
	const double *members;
	int64_t *roots, *starts, *targets; /* starts: num_leaves + 1 */
	const double *weights;
};

/* A list of floats, or the tensor of doubles that may stand for it. */
static const double *reals(struct lth_infer *infer, const char *name, const char *tensor, uint32_t *out_count)
{
	const struct lth_attr *attr = tensor ? lth_node_attr(infer->node, tensor) : NULL;
	const double *list = NULL;
	*out_count = 0;
	if (attr && lth_value_const_floats(infer->graph, attr->id, &list, out_count))
		return list;
	return name ? lth_ml_floats(infer, name, out_count) : NULL;
}

/* A list of ints of a given length; NULL after the failure has been reported. */
static const int64_t *ints(struct lth_infer *infer, const char *name, uint32_t wanted, enum lth_code *code)
{
	const int64_t *list = NULL;
	uint32_t count = 0;
	bool given = lth_node_ints(infer->node, name, &list, &count);
	if (!*code && (!given || count != wanted))
		*code = lth_infer_reject(infer, lth_arena_printf(infer->graph->arena, "%u entries", wanted),
					 "attribute '%s' has %u", name, count);
	return *code ? NULL : list;
}

static enum lth_code make_room(struct lth_infer *infer, struct forest *f)
{
	struct lth_arena *arena = infer->graph->arena;
	f->nodes = lth_arena_array(arena, (size_t)f->num_nodes + 1, sizeof(*f->nodes));
	f->splits = lth_arena_array(arena, (size_t)f->num_nodes + 1, sizeof(*f->splits));
	f->roots = lth_arena_array(arena, (size_t)f->num_nodes + 1, sizeof(*f->roots));
	f->starts = lth_arena_array(arena, (size_t)f->num_nodes + f->num_leaves + 2, sizeof(*f->starts));
	f->targets = lth_arena_array(arena, (size_t)f->num_votes + 1, sizeof(*f->targets));
	return f->nodes && f->splits && f->roots && f->starts && f->targets ? LTH_OK : lth_infer_exhausted(infer);
}

/* ---- parents first ---- */

/* Numbers nodes from the roots; refuses a node that is reached twice. `order[k]` is the k-th node. */
static enum lth_code number_nodes(struct lth_infer *infer, const struct forest *f, int64_t *number, uint32_t *order,
				  uint32_t *out_count)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < f->num_nodes; i++)
		number[i] = -1;
	for (uint32_t i = 0, next = 0; i <= f->num_roots; i++) {
		/* all that the trees so far reach, breadth first; then the next root */
		for (; next < count; next++) {
			const int64_t *node = f->nodes[order[next]];
			for (int side = IF_TRUE; side <= IF_FALSE; side++) {
				int64_t child = node[side];
				if (child >= (int64_t)f->num_nodes || child < -(int64_t)f->num_leaves ||
				    (child >= 0 && number[child] >= 0))
					return lth_infer_reject(infer, "trees",
								"a child that is not there, or has two parents");
				if (child >= 0) {
					number[child] = count;
					order[count++] = (uint32_t)child;
				}
			}
		}
		int64_t root = i < f->num_roots ? f->roots[i] : -1;
		if (root >= (int64_t)f->num_nodes || root < -(int64_t)f->num_leaves || (root >= 0 && number[root] >= 0))
			return lth_infer_reject(infer, "roots of distinct trees", "root %lld", (long long)root);
		if (root >= 0) {
			number[root] = count;
			order[count++] = (uint32_t)root;
		}
	}
	*out_count = count;
	return LTH_OK;
}

static enum lth_code parents_first(struct lth_infer *infer, struct forest *f)
{
	struct lth_arena *arena = infer->graph->arena;
	int64_t *number = lth_arena_array(arena, (size_t)f->num_nodes + 1, sizeof(*number));
	uint32_t *order = lth_arena_array(arena, (size_t)f->num_nodes + 1, sizeof(*order)), count = 0;
	struct forest sorted = *f;
	if (!number || !order || make_room(infer, &sorted))
		return lth_infer_exhausted(infer);
	enum lth_code code = number_nodes(infer, f, number, order, &count);
	if (code)
		return code;
	for (uint32_t k = 0; k < count; k++) {
		memcpy(sorted.nodes[k], f->nodes[order[k]], sizeof(*sorted.nodes));
		sorted.splits[k] = f->splits[order[k]];
		for (int side = IF_TRUE; side <= IF_FALSE; side++)
			if (sorted.nodes[k][side] >= 0)
				sorted.nodes[k][side] = number[sorted.nodes[k][side]];
	}
	for (uint32_t i = 0; i < f->num_roots; i++)
		f->roots[i] = f->roots[i] >= 0 ? number[f->roots[i]] : f->roots[i];
	f->nodes = sorted.nodes;
	f->splits = sorted.splits;
	f->num_nodes = count;
	return LTH_OK;
}

/* The scores [rows, targets] in `dtype`. */
/* Features that the input has, as far as its shape is known, and targets that the output has. */
static enum lth_code check_references(struct lth_infer *infer, const struct forest *f, int64_t targets)
{
	int64_t features = INT64_MAX;
	lth_dim width = lth_infer_dim(infer, 0, lth_infer_rank(infer, 0) - 1);
	if (!lth_dim_is_const(infer->dims, width, &features))
		features = INT64_MAX;
	for (uint32_t i = 0; i < f->num_nodes; i++)
		if (f->nodes[i][FEATURE] < 0 || f->nodes[i][FEATURE] >= features)
			return lth_infer_reject(infer, "a feature of the input", "feature %lld",
						(long long)f->nodes[i][FEATURE]);
	for (uint32_t v = 0; v < f->num_votes; v++)
		if (f->targets[v] < 0 || f->targets[v] >= targets)
			return lth_infer_reject(infer, "one of the targets", "target %lld of %lld",
						(long long)f->targets[v], (long long)targets);
	return LTH_OK;
}

static lth_value_id build_trees(struct lth_infer *infer, const struct forest *f, enum lth_dtype dtype, int64_t targets,
				int64_t aggregate)
{
	const struct lth_attr attrs[] = {
		{.name = "aggregate", .kind = LTH_ATTR_INT, .count = 1, .i = aggregate},
		{.name = "dtype", .kind = LTH_ATTR_INT, .count = 1, .i = lth_dtype_onnx(dtype)},
		{.name = "targets", .kind = LTH_ATTR_INT, .count = 1, .i = targets}};
	const int64_t first = 0, nodes[] = {f->num_nodes, COLUMNS};
	lth_value_id x = lth_node_input(infer->node, 0), in[8];
	if (!infer->failed)
		infer->failed = check_references(infer, f, targets);
	if (lth_infer_rank(infer, 0) == 1)
		x = lth_build_unsqueeze(infer, x, &first, 1);
	in[0] = x;
	in[1] = lth_build_data(infer, LTH_DTYPE_I64, 2, nodes, f->nodes, f->num_nodes * sizeof(*f->nodes));
	in[2] = lth_build_data(infer, LTH_DTYPE_F64, 1, nodes, f->splits, f->num_nodes * sizeof(*f->splits));
	in[3] = lth_build_data(infer, LTH_DTYPE_F64, 1, &(int64_t){f->num_members}, f->members,
			       f->num_members * sizeof(*f->members));
	in[4] = lth_build_ints(infer, f->roots, f->num_roots);
	in[5] = lth_build_ints(infer, f->starts, f->num_leaves + 1);
	in[6] = lth_build_ints(infer, f->targets, f->num_votes);
	in[7] = lth_build_data(infer, LTH_DTYPE_F64, 1, &(int64_t){f->num_votes}, f->weights,
			       f->num_votes * sizeof(*f->weights));
	return lth_build(infer, LTH_OP_ID_Trees, in, 8, attrs, 3);
}

static enum lth_code infer_trees(struct lth_infer *infer)
{
	enum lth_dtype dtype = LTH_DTYPE_F32;
	enum lth_code code = lth_infer_dtype_attr(infer, "dtype", &dtype);
	if (!code)
		code = lth_infer_need_rank(infer, 0, 2, 2);
	if (code)
		return code;
	const lth_dim dims[] = {lth_infer_dim(infer, 0, 0),
				lth_dim_const(infer->dims, lth_op_int(infer->node, "targets"))};
	return lth_infer_output(infer, 0, dtype, 2, dims);
}

const struct lth_op_impl lth_impl_trees = {.infer = infer_trees, .builtin = "trees"};

/* ---- TreeEnsemble-5 ---- */

/* Sets of members stand behind each other, each ended by NaN, in the order of the nodes that ask for one. */
static enum lth_code share_members(struct lth_infer *infer, struct forest *f)
{
	uint32_t at = 0;
	for (uint32_t i = 0; i < f->num_nodes; i++) {
		if (f->nodes[i][COMPARISON] != MEMBER_MODE)
			continue;
		f->nodes[i][MEMBERS_BEGIN] = at;
		while (at < f->num_members && f->members[at] == f->members[at])
			at++;
		if (at >= f->num_members)
			return lth_infer_reject(infer, "a set of members, ended by NaN, for each membership node",
						"fewer");
		f->nodes[i][MEMBERS_END] = at++;
	}
	return LTH_OK;
}

static enum lth_code read_new_form(struct lth_infer *infer, struct forest *f)
{
	static const char *const children[2][2] = {{"nodes_truenodeids", "nodes_trueleafs"},
						   {"nodes_falsenodeids", "nodes_falseleafs"}};
	uint32_t num_splits, num_modes, num_missing;
	const double *splits = reals(infer, NULL, "nodes_splits", &num_splits);
	const double *modes = reals(infer, NULL, "nodes_modes", &num_modes);
	const int64_t *missing = NULL, *roots;
	enum lth_code code = LTH_OK;
	f->weights = reals(infer, NULL, "leaf_weights", &f->num_votes);
	f->members = reals(infer, NULL, "membership_values", &f->num_members);
	f->num_nodes = num_splits;
	f->num_leaves = f->num_votes;
	if (!splits || !modes || !f->weights || num_modes != num_splits)
		return lth_infer_reject(infer, "a split and a mode for each node", "%u and %u", num_splits, num_modes);
	const int64_t *features = ints(infer, "nodes_featureids", num_splits, &code);
	const int64_t *targets = ints(infer, "leaf_targetids", f->num_votes, &code);
	if (lth_node_ints(infer->node, "nodes_missing_value_tracks_true", &missing, &num_missing) && num_missing)
		missing = ints(infer, "nodes_missing_value_tracks_true", num_splits, &code);
	else
		missing = NULL;
	if (!code && (!lth_node_ints(infer->node, "tree_roots", &roots, &f->num_roots) || f->num_roots > num_splits))
		code = lth_infer_reject(infer, "tree_roots, no more than nodes", "%u", f->num_roots);
	const struct lth_attr *tensor = lth_node_attr(infer->node, "nodes_splits");
	enum lth_dtype dtype = infer->graph->values[tensor->id].type.dtype;
	if (!code && dtype != lth_infer_type(infer, 0)->dtype)
		code = lth_infer_reject(infer, "nodes_splits of the input's type", "%s", lth_dtype_text(dtype));
	if (!code)
		code = make_room(infer, f);
	for (int side = 0; !code && side < 2; side++) {
		const int64_t *ids = ints(infer, children[side][0], num_splits, &code);
		const int64_t *leaves = ints(infer, children[side][1], num_splits, &code);
		for (uint32_t i = 0; !code && i < num_splits; i++)
			f->nodes[i][IF_TRUE + side] = leaves[i] ? -1 - (ids[i] & INT64_MAX) : ids[i] & INT64_MAX;
	}
	if (code)
		return code;
	for (uint32_t i = 0; i < num_splits; i++) {
		f->nodes[i][FEATURE] = features[i];
		f->nodes[i][COMPARISON] = (int64_t)modes[i];
		f->nodes[i][NAN_IS_TRUE] = missing ? missing[i] != 0 : 0;
		f->splits[i] = splits[i];
	}
	memcpy(f->roots, roots, f->num_roots * sizeof(*roots));
	memcpy(f->targets, targets, f->num_votes * sizeof(*targets));
	for (uint32_t i = 0; i <= f->num_leaves; i++)
		f->starts[i] = i;
	return share_members(infer, f);
}

/* Attribute post_transform is a number here. */
static enum lth_code expand_tree_ensemble(struct lth_infer *infer)
{
	struct forest f = {0};
	enum lth_dtype dtype = lth_infer_type(infer, 0)->dtype;
	enum lth_code code = lth_infer_need_rank(infer, 0, 2, 2);
	if (!code)
		code = read_new_form(infer, &f);
	if (!code)
		code = parents_first(infer, &f);
	if (code)
		return code;
	int64_t targets = lth_op_int(infer->node, "n_targets"), post = lth_op_int(infer->node, "post_transform");
	int64_t aggregate = lth_op_int(infer->node, "aggregate_function");
	if (targets < 1 || aggregate < 0 || aggregate > 3)
		return lth_infer_reject(infer, "n_targets of at least 1, aggregate_function 0 to 3", "%lld and %lld",
					(long long)targets, (long long)aggregate);
	if (post > 2 || post < 0)
		return lth_infer_unsupported(infer, NULL, "TreeEnsemble: post_transform %lld", (long long)post);
	lth_value_id y = build_trees(infer, &f, dtype, targets, aggregate);
	if (post)
		y = lth_build1(infer, post == 1 ? LTH_OP_ID_Softmax : LTH_OP_ID_Sigmoid, y);
	lth_build_output(infer, 0, y);
	return LTH_OK;
}

const struct lth_op_impl lth_impl_tree_ensemble = {.expand = expand_tree_ensemble};

/* ---- TreeEnsembleRegressor and TreeEnsembleClassifier: nodes by the numbers of tree and node ---- */

struct node_key {
	int64_t tree, node;
	uint32_t index;
};

static int compare_keys(const void *a, const void *b)
{
	const struct node_key *x = a, *y = b;
	if (x->tree != y->tree)
		return x->tree < y->tree ? -1 : 1;
	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

/* Position of a node, or -1. */
static int64_t find_node(const struct node_key *keys, uint32_t count, int64_t tree, int64_t node)
{
	uint32_t low = 0, high = count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		bool below = keys[middle].tree < tree || (keys[middle].tree == tree && keys[middle].node < node);
		low = below ? middle + 1 : low;
		high = below ? high : middle;
	}
	return low < count && keys[low].tree == tree && keys[low].node == node ? (int64_t)keys[low].index : -1;
}

static int64_t mode_of(const struct lth_string *text)
{
	static const char *const names[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",    "BRANCH_GT",
					    "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF"};
	for (int64_t i = 0; i <= LEAF_MODE; i++)
		if (strlen(names[i]) == text->size && memcmp(names[i], text->data, text->size) == 0)
			return i == MEMBER_MODE ? -1 : i;
	return -1;
}

/* The votes of each leaf side by side: a counting sort by leaf. `places`: by node, -1 - leaf for leaves. */
static enum lth_code share_votes(struct lth_infer *infer, struct forest *f, const struct node_key *keys,
				 uint32_t num_keys, const int64_t *places, const char *prefix)
{
	struct lth_arena *arena = infer->graph->arena;
	enum lth_code code = LTH_OK;
	const int64_t *trees = ints(infer, lth_arena_printf(arena, "%s_treeids", prefix), f->num_votes, &code);
	const int64_t *nodes = ints(infer, lth_arena_printf(arena, "%s_nodeids", prefix), f->num_votes, &code);
	const int64_t *ids = ints(infer, lth_arena_printf(arena, "%s_ids", prefix), f->num_votes, &code);
	double *weights = lth_arena_array(arena, (size_t)f->num_votes + 1, sizeof(*weights));
	int64_t *leaf = lth_arena_array(arena, (size_t)f->num_votes + 1, sizeof(*leaf));
	int64_t *next = lth_arena_array(arena, (size_t)f->num_leaves + 1, sizeof(*next));
	if (code || !weights || !leaf || !next)
		return code ? code : lth_infer_exhausted(infer);
	for (uint32_t v = 0; v < f->num_votes; v++) {
		int64_t node = find_node(keys, num_keys, trees[v], nodes[v]);
		if (node < 0 || places[node] >= 0)
			return lth_infer_reject(infer, "votes at leaves", "one at node %lld of tree %lld",
						(long long)nodes[v], (long long)trees[v]);
		leaf[v] = -1 - places[node];
		f->starts[leaf[v] + 1]++;
	}
	for (uint32_t i = 0; i < f->num_leaves; i++) {
		f->starts[i + 1] += f->starts[i];
		next[i] = f->starts[i];
	}
	for (uint32_t v = 0; v < f->num_votes; v++) {
		f->targets[next[leaf[v]]] = ids[v];
		weights[next[leaf[v]]++] = f->weights[v];
	}
	f->weights = weights;
	return LTH_OK;
}

/* Leaves leave the list of nodes: places[i] is node i itself, or -1 - its leaf. The first of a tree
 * is its root. */
static enum lth_code read_nodes(struct lth_infer *infer, struct forest *f, struct node_key *keys, int64_t *places)
{
	enum lth_code code = LTH_OK;
	const struct lth_attr *modes = lth_node_attr(infer->node, "nodes_modes");
	uint32_t count = f->num_nodes, num_missing = 0;
	const int64_t *trees = ints(infer, "nodes_treeids", count, &code),
		      *ids = ints(infer, "nodes_nodeids", count, &code);
	const int64_t *features = ints(infer, "nodes_featureids", count, &code), *missing = NULL;
	const int64_t *if_true = ints(infer, "nodes_truenodeids", count, &code);
	const int64_t *if_false = ints(infer, "nodes_falsenodeids", count, &code);
	if (lth_node_ints(infer->node, "nodes_missing_value_tracks_true", &missing, &num_missing) &&
	    num_missing != count)
		missing = NULL;
	for (uint32_t i = 0; !code && i < count; i++) {
		keys[i] = (struct node_key){trees[i], ids[i], i};
		f->nodes[i][COMPARISON] = mode_of(&modes->strings[i]);
		if (f->nodes[i][COMPARISON] < 0)
			code = lth_infer_unsupported(infer, NULL, "nodes_modes '%s'", modes->strings[i].data);
		places[i] = f->nodes[i][COMPARISON] == LEAF_MODE ? -1 - (int64_t)f->num_leaves++ : (int64_t)i;
		f->nodes[i][FEATURE] = features[i];
		f->nodes[i][NAN_IS_TRUE] = missing ? missing[i] != 0 : 0;
		if (i == 0 || trees[i] != trees[i - 1])
			f->roots[f->num_roots++] = places[i];
	}
	if (code)
		return code;
	qsort(keys, count, sizeof(*keys), compare_keys);
	for (uint32_t i = 0; !code && i < count; i++) {
		if (places[i] < 0)
			continue;
		int64_t yes = find_node(keys, count, trees[i], if_true[i]);
		int64_t no = find_node(keys, count, trees[i], if_false[i]);
		if (yes < 0 || no < 0)
			return lth_infer_reject(infer, "children in the same tree", "node %lld of tree %lld",
						(long long)ids[i], (long long)trees[i]);
		f->nodes[i][IF_TRUE] = places[yes];
		f->nodes[i][IF_FALSE] = places[no];
	}
	return code;
}

/* `prefix`: of the attributes of votes, "target" or "class". */
static enum lth_code read_old_form(struct lth_infer *infer, struct forest *f, const char *prefix)
{
	struct lth_arena *arena = infer->graph->arena;
	const struct lth_attr *modes = lth_node_attr(infer->node, "nodes_modes");
	uint32_t num_splits;
	const double *splits = reals(infer, "nodes_values", "nodes_values_as_tensor", &num_splits);
	f->weights = reals(infer, lth_arena_printf(arena, "%s_weights", prefix),
			   lth_arena_printf(arena, "%s_weights_as_tensor", prefix), &f->num_votes);
	f->num_nodes = num_splits;
	struct node_key *keys = lth_arena_array(arena, (size_t)num_splits + 1, sizeof(*keys));
	int64_t *places = lth_arena_array(arena, (size_t)num_splits + 1, sizeof(*places));
	if (!splits || !f->weights || !modes || modes->count != num_splits)
		return lth_infer_reject(infer, "a value and a mode for each node", "%u values", num_splits);
	enum lth_code code = make_room(infer, f);
	if (!code && (!keys || !places))
		code = lth_infer_exhausted(infer);
	if (!code)
		code = read_nodes(infer, f, keys, places);
	if (code)
		return code;
	memcpy(f->splits, splits, num_splits * sizeof(*splits));
	code = share_votes(infer, f, keys, num_splits, places, prefix);
	return code ? code : parents_first(infer, f);
}

static lth_value_id add_base(struct lth_infer *infer, lth_value_id y)
{
	uint32_t count;
	const double *base = reals(infer, "base_values", "base_values_as_tensor", &count);
	return count ? lth_build2(infer, LTH_OP_ID_Add, y, lth_ml_matrix(infer, base, 1, &(int64_t){count})) : y;
}

static enum lth_code expand_tree_regressor(struct lth_infer *infer)
{
	struct forest f = {0};
	int64_t targets = lth_node_int(infer->node, "n_targets", 1);
	int64_t aggregate = lth_op_string_is(infer->node, "aggregate_function", "AVERAGE") ? 0
			    : lth_op_string_is(infer->node, "aggregate_function", "MIN")   ? 2
			    : lth_op_string_is(infer->node, "aggregate_function", "MAX")   ? 3
											   : 1;
	enum lth_code code = lth_infer_need_rank(infer, 0, 1, 2);
	if (!code && targets < 1)
		code = lth_infer_reject(infer, "n_targets of at least 1", "%lld", (long long)targets);
	if (!code)
		code = read_old_form(infer, &f, "target");
	if (code)
		return code;
	lth_value_id y = add_base(infer, build_trees(infer, &f, LTH_DTYPE_F32, targets, aggregate));
	lth_build_output(infer, 0, lth_ml_post(infer, y));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_tree_regressor = {.expand = expand_tree_regressor};

/* Two labels and votes for one of them only: its score decides alone. Where the votes are for the first, its score is
 * taken as the second's, and the first's follows from it, as ONNX Runtime does. */
static void one_sided(struct lth_infer *infer, const struct forest *f, lth_value_id scores)
{
	const int64_t flat = -1;
	bool positive = true;
	int64_t begin = f->num_votes ? f->targets[0] : 0, end = begin + 1, axis = 1;
	for (uint32_t v = 0; v < f->num_votes; v++)
		positive &= f->weights[v] >= 0;
	lth_value_id cut[4] = {scores};
	cut[1] = lth_build_ints(infer, &begin, 1);
	cut[2] = lth_build_ints(infer, &end, 1);
	cut[3] = lth_build_ints(infer, &axis, 1);
	lth_value_id score = lth_build(infer, LTH_OP_ID_Slice, cut, 4, NULL, 0);
	lth_value_id limit = lth_build_scalar(infer, LTH_DTYPE_F32, positive ? 0.5 : 0);
	if (lth_build_wants(infer, 0)) {
		lth_value_id above =
			lth_build2(infer, LTH_OP_ID_Greater, lth_build_reshape(infer, score, &flat, 1), limit);
		lth_build_output(infer, 0, lth_ml_labels(infer, lth_build_cast(infer, above, LTH_DTYPE_I64)));
	}
	if (begin != 0) {
		lth_build_output(infer, 1, lth_ml_post(infer, scores));
	} else if (positive) {
		const struct lth_attr along = {.name = "axis", .kind = LTH_ATTR_INT, .count = 1, .i = 1};
		lth_value_id one = lth_build_scalar(infer, LTH_DTYPE_F32, 1);
		lth_value_id rest = lth_build2(infer, LTH_OP_ID_Sub, one, score);
		lth_build_output(infer, 1,
				 lth_build(infer, LTH_OP_ID_Concat, (lth_value_id[]){rest, score}, 2, &along, 1));
	} else {
		lth_build_output(infer, 1, lth_ml_post(infer, lth_ml_both_signs(infer, score)));
	}
}

static enum lth_code expand_tree_classifier(struct lth_infer *infer)
{
	struct forest f = {0};
	uint32_t classes = lth_ml_num_labels(infer);
	bool single = classes == 2;
	enum lth_code code = lth_infer_need_rank(infer, 0, 1, 2);
	if (!code && classes < 1)
		code = lth_infer_reject(infer, "class labels", "none");
	if (!code)
		code = read_old_form(infer, &f, "class");
	if (code)
		return code;
	for (uint32_t v = 1; v < f.num_votes; v++)
		single &= f.targets[v] == f.targets[0];
	lth_value_id scores = add_base(infer, build_trees(infer, &f, LTH_DTYPE_F32, classes, 1));
	if (single) {
		one_sided(infer, &f, scores);
		return LTH_OK;
	}
	if (lth_build_wants(infer, 0))
		lth_build_output(infer, 0, lth_ml_labels(infer, lth_ml_best(infer, scores)));
	lth_build_output(infer, 1, lth_ml_post(infer, scores));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_tree_classifier = {.expand = expand_tree_classifier};
