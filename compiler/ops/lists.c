/* Operands that are lists of numbers - shapes, axes, pads, index tuples - and whose length the model leaves to the run.
 * The operator's rule tells most lengths: as many as the input has axes, as the node has results. Before such a node is
 * inferred, the list is made one of known length: by a Reshape with a guard where the length is settled (lists.def),
 * and where it is only bounded (Slice, Pad, Expand, Reduce), by entries behind that mean nothing.
 *
 * The rank of a result that nothing else decides is the one that the model declares. It is not believed blindly: a run
 * whose list has another length ends in an error. Thread rule: as infer.h. */
#include "compiler/ops/build.h"

/* ---- lengths ---- */

/* LTH_NONE where the rule does not tell. */
typedef uint32_t (*length_fn)(const struct lth_infer *infer);

static uint32_t one(const struct lth_infer *infer)
{
	(void)infer;
	return 1;
}

static uint32_t two(const struct lth_infer *infer)
{
	(void)infer;
	return 2;
}

static uint32_t input_axes(const struct lth_infer *infer)
{
	return lth_infer_rank(infer, 0);
}

static uint32_t results(const struct lth_infer *infer)
{
	return infer->node->num_outputs;
}

/* The axes that the attribute names; without it, all. */
static uint32_t named_axes(const struct lth_infer *infer)
{
	const int64_t *ignored;
	uint32_t count;
	return lth_node_ints(infer->node, "axes", &ignored, &count) ? count : lth_infer_rank(infer, 0);
}

static uint32_t twice_named_axes(const struct lth_infer *infer)
{
	return 2 * named_axes(infer);
}

static uint32_t result_axes(const struct lth_infer *infer)
{
	lth_value_id result = infer->node->outputs[0];
	return result == LTH_NONE ? LTH_NONE : infer->graph->values[result].declared_rank;
}

static uint32_t difference(uint32_t a, uint32_t b)
{
	return a == LTH_NONE || b == LTH_NONE || a < b ? LTH_NONE : a - b;
}

static uint32_t dropped_axes(const struct lth_infer *infer)
{
	return difference(lth_infer_rank(infer, 0), result_axes(infer));
}

static uint32_t added_axes(const struct lth_infer *infer)
{
	return difference(result_axes(infer), lth_infer_rank(infer, 0));
}

/* Col2Im: an attribute has an entry an axis of the image, or the result tells. */
static uint32_t image_axes(const struct lth_infer *infer)
{
	static const char *const lists[] = {"strides", "dilations"};
	const int64_t *ignored;
	uint32_t count;
	for (int i = 0; i < 2; i++)
		if (lth_node_ints(infer->node, lists[i], &ignored, &count))
			return count;
	return lth_node_ints(infer->node, "pads", &ignored, &count) ? count / 2 : difference(result_axes(infer), 2);
}

/* AffineGrid: N, C and two or three axes, of which the map theta has as many rows. */
static uint32_t grid_axes(const struct lth_infer *infer)
{
	int64_t rows;
	if (lth_infer_rank(infer, 0) == 3 && lth_dim_is_const(infer->dims, lth_infer_dim(infer, 0, 1), &rows) &&
	    rows > 0 && rows < LTH_MAX_RANK)
		return (uint32_t)rows + 2;
	return result_axes(infer);
}

/* The result's axes are those of the data and of the indices, less the tuple and what it names. */
static uint32_t tuple(const struct lth_infer *infer, uint32_t data_axes, uint32_t rest)
{
	return difference(data_axes + lth_infer_rank(infer, 1), rest == LTH_NONE ? LTH_NONE : rest + 1);
}

static uint32_t gathered_axes(const struct lth_infer *infer)
{
	int64_t batch = lth_op_int(infer->node, "batch_dims");
	uint32_t rank = lth_infer_rank(infer, 0);
	return batch < 0 || batch > rank ? LTH_NONE : tuple(infer, rank - (uint32_t)batch, result_axes(infer));
}

static uint32_t scattered_axes(const struct lth_infer *infer)
{
	return lth_infer_type(infer, 2) ? tuple(infer, lth_infer_rank(infer, 0), lth_infer_rank(infer, 2)) : LTH_NONE;
}

static const struct {
	enum lth_op_id op;
	uint32_t input;
	length_fn length;
} lists[] = {
#define LTH_LIST(op, input, length) {LTH_OP_ID_##op, input, length},
#include "compiler/ops/lists.def"
#undef LTH_LIST
};

/* What an operator on elements gives has the rank of what it takes: declarations count for the nodes before, too. */
void lth_infer_declared_ranks(struct lth_graph *graph)
{
	for (lth_node_id id = graph->num_nodes; id-- > 0;) {
		const struct lth_node *node = &graph->nodes[id];
		bool alone = node->num_inputs == 1 || lth_op_id(node->op) == LTH_OP_ID_CastLike;
		if (node->deleted || node->op->kind != LTH_OP_ELEMENTWISE || !alone || node->inputs[0] == LTH_NONE ||
		    node->outputs[0] == LTH_NONE)
			continue;
		struct lth_value *from = &graph->values[node->inputs[0]];
		if (from->declared_rank == LTH_RANK_UNKNOWN)
			from->declared_rank = graph->values[node->outputs[0]].declared_rank;
	}
}

/* ---- making them so long ---- */

/* The length of the list, the last axis of input `input`; LTH_DIM_NONE where there is none, or it is known. */
static lth_dim open_length(const struct lth_infer *infer, uint32_t input)
{
	const struct lth_type *type = lth_infer_type(infer, input);
	if (!type || type->kind != LTH_TYPE_TENSOR || type->rank == LTH_RANK_UNKNOWN || type->rank == 0)
		return LTH_DIM_NONE;
	lth_dim length = type->dims[type->rank - 1];
	return lth_dim_is_const(infer->dims, length, NULL) ? LTH_DIM_NONE : length;
}

static void require_length(struct lth_infer *infer, uint32_t input, enum lth_relation relation, lth_dim length,
			   uint32_t count)
{
	lth_dim wanted = lth_dim_const(infer->dims, count);
	const char *where = lth_infer_input_text(infer, input);
	const char *rule = lth_arena_printf(infer->graph->arena, "the number of entries in %s", where);
	enum lth_code code = lth_infer_require(infer, relation, length, wanted, rule ? rule : "");
	if (code && !infer->failed)
		infer->failed = code;
}

static void set_input(struct lth_infer *infer, uint32_t input, lth_value_id value)
{
	if (!infer->failed)
		infer->graph->nodes[infer->id].inputs[input] = value;
}

/* Exactly `count` entries in the last axis. */
static void fit(struct lth_infer *infer, uint32_t input, uint32_t count)
{
	lth_dim length = open_length(infer, input);
	if (length == LTH_DIM_NONE || count == LTH_NONE)
		return;
	lth_value_id list = infer->node->inputs[input], shape = lth_build_ints(infer, &(int64_t){count}, 1);
	require_length(infer, input, LTH_REL_EQ, length, count);
	if (lth_infer_rank(infer, input) > 1) {
		const struct lth_attr but_last = lth_attr_int("end", -1);
		lth_value_id before = lth_build(infer, LTH_OP_ID_Shape, &list, 1, &but_last, 1);
		shape = lth_build_concat(infer, (lth_value_id[]){before, shape}, 2, 0);
	}
	const struct lth_attr plain = lth_attr_int("allowzero", 1);
	set_input(infer, input, lth_build(infer, LTH_OP_ID_Reshape, (lth_value_id[]){list, shape}, 2, &plain, 1));
}

/* A constant of one element of the type of `like`; the greatest value where that does not fit. */
static lth_value_id filler(struct lth_infer *infer, lth_value_id like, int64_t value)
{
	enum lth_dtype dtype = infer->graph->values[like].type.dtype;
	int32_t narrow = value > INT32_MAX ? INT32_MAX : (int32_t)value;
	return dtype == LTH_DTYPE_I32 ? lth_build_data(infer, dtype, 0, NULL, &narrow, sizeof(narrow))
				      : lth_build_data(infer, LTH_DTYPE_I64, 0, NULL, &value, sizeof(value));
}

/* At most `count` entries in the last axis of a value; the missing ones are `fill`, behind the others or before. */
static lth_value_id extended(struct lth_infer *infer, lth_value_id list, uint32_t count, int64_t fill, bool in_front)
{
	const struct lth_attr last = lth_attr_int("start", -1);
	if (infer->failed)
		return LTH_NONE;
	lth_value_id length = lth_build(infer, LTH_OP_ID_Shape, &list, 1, &last, 1);
	lth_value_id missing = lth_build2(infer, LTH_OP_ID_Sub, lth_build_ints(infer, &(int64_t){count}, 1), length);
	lth_value_id none = lth_build_ints(infer, &(int64_t){0}, 1);
	const lth_value_id sides[2] = {in_front ? missing : none, in_front ? none : missing};
	lth_value_id pads = lth_build_concat(infer, sides, 2, 0), with = filler(infer, list, fill);
	const lth_value_id inputs[4] = {list, pads, with, lth_build_ints(infer, &(int64_t){-1}, 1)};
	return lth_build(infer, LTH_OP_ID_Pad, inputs, 4, NULL, 0);
}

static void extend(struct lth_infer *infer, uint32_t input, uint32_t count, int64_t fill, bool in_front)
{
	lth_dim length = open_length(infer, input);
	if (length == LTH_DIM_NONE)
		return;
	require_length(infer, input, LTH_REL_LE, length, count);
	set_input(infer, input, extended(infer, infer->node->inputs[input], count, fill, in_front));
}

/* ---- lists that are only bounded ---- */

/* Starts, ends, axes and steps are as many as each other, at most one an axis. */
static void fit_slice(struct lth_infer *infer)
{
	int64_t rank = lth_infer_rank(infer, 0);
	const int64_t fills[5] = {0, 0, INT64_MAX, rank, 1};
	lth_dim first = LTH_DIM_NONE;
	uint32_t known = LTH_NONE;
	for (uint32_t i = 1; i < 5; i++) {
		const struct lth_type *type = lth_infer_type(infer, i);
		int64_t count;
		if (type && type->rank == 1 && lth_dim_is_const(infer->dims, type->dims[0], &count) && count <= rank)
			known = (uint32_t)count;
	}
	for (uint32_t i = 1; i < 5; i++) {
		lth_dim length = open_length(infer, i);
		if (length == LTH_DIM_NONE)
			continue;
		if (known != LTH_NONE) {
			fit(infer, i, known);
			continue;
		}
		extend(infer, i, (uint32_t)rank, fills[i], false);
		first = first == LTH_DIM_NONE ? length : first;
		enum lth_code code = lth_infer_require(infer, LTH_REL_EQ, length, first, "as many entries as starts");
		infer->failed = infer->failed ? infer->failed : code;
	}
}

/* All paddings before, then all behind: of the axes that an input lists, or of all. */
static void fit_pad(struct lth_infer *infer)
{
	uint32_t rank = lth_infer_rank(infer, 0), count = rank;
	const struct lth_type *pads = lth_infer_type(infer, 1), *axes = lth_infer_type(infer, 3);
	int64_t known;
	if (pads->rank != 1 || (axes && axes->rank != 1))
		return;
	if (axes && lth_dim_is_const(infer->dims, axes->dims[0], &known) && known >= 0 && known <= rank)
		count = (uint32_t)known;
	else if (axes && lth_dim_is_const(infer->dims, pads->dims[0], &known) && known >= 0 &&
		 known <= 2 * (int64_t)rank)
		count = (uint32_t)known / 2;
	if (!axes || open_length(infer, 3) == LTH_DIM_NONE || open_length(infer, 1) == LTH_DIM_NONE) {
		fit(infer, 1, 2 * count);
		fit(infer, 3, count);
		return;
	}
	lth_value_id halves = lth_build_reshape(infer, infer->node->inputs[1], (int64_t[]){2, -1}, 2);
	if (!infer->failed) {
		lth_dim half = infer->graph->values[halves].type.dims[1];
		enum lth_code code = lth_infer_require(infer, LTH_REL_EQ, half, open_length(infer, 3),
						       "a begin and an end for each axis");
		infer->failed = infer->failed ? infer->failed : code;
	}
	extend(infer, 3, rank, rank, false);
	halves = extended(infer, halves, rank, 0, false);
	set_input(infer, 1, lth_build_reshape(infer, halves, (int64_t[]){2 * (int64_t)rank}, 1));
}

/* Ones in front of a shape change nothing. */
static void fit_expand(struct lth_infer *infer)
{
	uint32_t rank = result_axes(infer);
	if (rank == LTH_NONE || rank < lth_infer_rank(infer, 0) || rank > LTH_MAX_RANK)
		return;
	if (rank > lth_infer_rank(infer, 0))
		fit(infer, 1, rank);
	else
		extend(infer, 1, rank, 1, true);
}

/* The list of axes with `rank` entries. What is behind its own means no axis; but of an empty list that stands for all
 * axes, it is all of them. */
static lth_value_id axes_or_all(struct lth_infer *infer, lth_value_id list, uint32_t rank)
{
	int64_t all[LTH_MAX_RANK];
	for (uint32_t i = 0; i < rank; i++)
		all[i] = i;
	lth_value_id length = lth_build1(infer, LTH_OP_ID_Shape, list);
	lth_value_id some = lth_build2(infer, LTH_OP_ID_Min, length, lth_build_ints(infer, &(int64_t){1}, 1));
	lth_value_id beyond = lth_build2(infer, LTH_OP_ID_Mul, some, lth_build_ints(infer, &(int64_t){rank}, 1));
	lth_value_id fill = lth_build2(infer, LTH_OP_ID_Add, lth_build_ints(infer, all, rank), beyond);
	return lth_build_slice(infer, lth_build_concat(infer, (lth_value_id[]){list, fill}, 2, 0), 0, 0, rank);
}

static void fit_reduce(struct lth_infer *infer)
{
	lth_dim length = open_length(infer, 1);
	uint32_t rank = lth_infer_rank(infer, 0), count = dropped_axes(infer);
	bool keep = lth_op_int(infer->node, "keepdims") != 0;
	bool empty_is_none = lth_op_int(infer->node, "noop_with_empty_axes") != 0;
	if (length == LTH_DIM_NONE || rank == 0 || lth_infer_rank(infer, 1) != 1)
		return;
	if (keep) {
		require_length(infer, 1, LTH_REL_LE, length, rank);
	} else if (empty_is_none || count != rank) {
		fit(infer, 1, count);
		return;
	} else { /* all axes go: an empty list, or a full one */
		lth_dim missing = lth_dim_sub(infer->dims, length, lth_dim_const(infer->dims, rank));
		lth_dim some = lth_dim_mul(infer->dims, length, missing);
		infer->failed = lth_infer_require(infer, LTH_REL_EQ, some, lth_dim_const(infer->dims, 0),
						  "an axis for each that the result has not, or none");
	}
	if (empty_is_none)
		set_input(infer, 1, extended(infer, infer->node->inputs[1], rank, rank, false));
	else
		set_input(infer, 1, axes_or_all(infer, infer->node->inputs[1], rank));
}

enum lth_code lth_infer_lists(struct lth_infer *infer)
{
	const struct lth_op *op = infer->node->op;
	bool open = false;
	for (uint32_t i = 0; i < infer->node->num_inputs && !open; i++)
		open = open_length(infer, i) != LTH_DIM_NONE;
	if (!open)
		return LTH_OK;
	infer->at = 0;
	infer->first_built = infer->graph->num_nodes;
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		if (lists[i].op == lth_op_id(op))
			fit(infer, lists[i].input, lists[i].length(infer));
	if (lth_op_id(op) == LTH_OP_ID_Slice)
		fit_slice(infer);
	else if (lth_op_id(op) == LTH_OP_ID_Pad)
		fit_pad(infer);
	else if (lth_op_id(op) == LTH_OP_ID_Expand)
		fit_expand(infer);
	else if (op->impl == lth_ops[LTH_OP_ID_ReduceSum].impl)
		fit_reduce(infer);
	return infer->failed;
}
