/* SplitToSequence and ConcatFromSequence: Split and Concat where the number of pieces is known when the model is
 * compiled, else C kernels that cut a tensor into a sequence and put one together. */
#include "compiler/ops/object.h"

#include "runtime/base/checked.h"

#include <string.h>

/* ---- SplitToSequence ---- */

struct pieces {
	uint32_t axis, count;
	int64_t sizes[LTH_MAX_KNOWN_LIST];
	bool keep;
};

/* The pieces of one length, the last one maybe shorter. */
static bool equal_pieces(struct lth_infer *infer, int64_t length, struct pieces *out)
{
	int64_t extent;
	if (length < 1 || !lth_dim_is_const(infer->dims, lth_infer_dim(infer, 0, out->axis), &extent) ||
	    lth_ceildiv_i64(extent, length) > LTH_MAX_KNOWN_LIST)
		return false;
	for (int64_t at = 0; at < extent; at += length)
		out->sizes[out->count++] = extent - at < length ? extent - at : length;
	return true;
}

/* Whether the pieces are known; what is wrong with sizes that are is left to Split. */
static bool known_pieces(struct lth_infer *infer, struct pieces *out)
{
	const struct lth_type *split = lth_infer_type(infer, 1);
	const lth_dim *sizes;
	uint32_t count;
	int64_t length = 1;
	if (!split)
		return equal_pieces(infer, 1, out);
	sizes = lth_infer_ints(infer, 1, &count);
	if (split->rank == 0)
		return lth_list_position(infer, 1, &length) && equal_pieces(infer, length, out);
	if (!sizes || count > LTH_MAX_KNOWN_LIST)
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (!lth_dim_is_const(infer->dims, sizes[i], &out->sizes[i]))
			return false;
	out->count = count;
	return true;
}

static lth_value_id build_pieces(struct lth_infer *infer, const struct pieces *pieces)
{
	lth_value_id parts[LTH_MAX_KNOWN_LIST];
	bool wanted[LTH_MAX_KNOWN_LIST];
	const lth_value_id inputs[2] = {infer->node->inputs[0], lth_build_ints(infer, pieces->sizes, pieces->count)};
	const struct lth_attr axis = {.name = "axis", .kind = LTH_ATTR_INT, .count = 1, .i = pieces->axis};
	memset(wanted, true, sizeof(wanted));
	if (pieces->count == 0)
		return lth_build_empty(infer);
	lth_build_many(infer, LTH_OP_ID_Split, inputs, 2, &axis, 1, wanted, parts, pieces->count);
	lth_value_id squeezed = pieces->keep ? LTH_NONE : lth_build_ints(infer, &axis.i, 1);
	for (uint32_t i = 0; i < pieces->count && !pieces->keep; i++)
		parts[i] = lth_build2(infer, LTH_OP_ID_Squeeze, parts[i], squeezed);
	return lth_build_sequence(infer, parts, pieces->count);
}

static enum lth_code expand_split_to_sequence(struct lth_infer *infer)
{
	struct pieces pieces = {.count = 0};
	enum lth_code code =
		lth_infer_axis(infer, lth_op_int(infer->node, "axis"), lth_infer_rank(infer, 0), &pieces.axis);
	if (!code && lth_infer_type(infer, 1))
		code = lth_infer_need_rank(infer, 1, 0, 1);
	if (code)
		return code;
	pieces.keep = lth_infer_type(infer, 1) || lth_op_int(infer->node, "keepdims");
	if (known_pieces(infer, &pieces)) {
		lth_build_output(infer, 0, build_pieces(infer, &pieces));
		return LTH_OK;
	}
	const struct lth_attr attrs[] = {
		{.name = "axis", .kind = LTH_ATTR_INT, .count = 1, .i = pieces.axis},
		{.name = "keepdims", .kind = LTH_ATTR_INT, .count = 1, .i = pieces.keep},
	};
	const lth_value_id inputs[2] = {infer->node->inputs[0], lth_node_input(infer->node, 1)};
	lth_build_output(infer, 0,
			 lth_build(infer, LTH_OP_ID_ListSplit, inputs, inputs[1] == LTH_NONE ? 1 : 2, attrs, 2));
	return LTH_OK;
}

/* Pieces are 1 long without a split, else differ along the axis, or have lost it. */
static enum lth_code give_pieces(struct lth_infer *infer, int64_t axis, bool keep)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	lth_dim dims[LTH_MAX_RANK], length = lth_infer_type(infer, 1) ? LTH_DIM_NONE : lth_dim_const(infer->dims, 1);
	uint32_t rank = 0;
	for (uint32_t k = 0; k < type->rank; k++)
		if (k != axis)
			dims[rank++] = type->dims[k];
		else if (keep)
			dims[rank++] = length;
	struct lth_type piece = lth_type_tensor(infer->graph, type->dtype, rank, dims);
	if (!lth_type_join(infer->graph, &piece, &piece, &piece)) /* without what only holds here */
		return lth_infer_exhausted(infer);
	const struct lth_type list = lth_type_object(infer->graph, LTH_TYPE_SEQUENCE, LTH_DTYPE_F32, &piece);
	return lth_infer_output_type(infer, 0, &list);
}

static enum lth_code infer_list_split(struct lth_infer *infer)
{
	int64_t axis = lth_op_int(infer->node, "axis");
	if (axis < 0 || axis >= lth_infer_type(infer, 0)->rank)
		return lth_infer_reject(infer, "an axis", "%lld", (long long)axis);
	return give_pieces(infer, axis, lth_op_int(infer->node, "keepdims"));
}

static enum lth_code infer_split_to_sequence(struct lth_infer *infer)
{
	uint32_t axis;
	enum lth_code code = lth_infer_axis(infer, lth_op_int(infer->node, "axis"), lth_infer_rank(infer, 0), &axis);
	return code ? code : give_pieces(infer, axis, lth_infer_type(infer, 1) || lth_op_int(infer->node, "keepdims"));
}

const struct lth_op_impl lth_impl_split_to_sequence = {.expand = expand_split_to_sequence,
						       .infer = infer_split_to_sequence};
const struct lth_op_impl lth_impl_list_split = {.infer = infer_list_split, .builtin = "list_split"};

/* ---- ConcatFromSequence ---- */

static lth_value_id concat_known(struct lth_infer *infer, const struct lth_known_list *list, int64_t axis, bool fresh)
{
	lth_value_id items[LTH_MAX_KNOWN_LIST];
	const struct lth_attr attr = {.name = "axis", .kind = LTH_ATTR_INT, .count = 1, .i = axis};
	for (uint32_t i = 0; i < list->count; i++)
		items[i] = fresh ? lth_build_unsqueeze(infer, list->items[i], &axis, 1) : list->items[i];
	return lth_build(infer, LTH_OP_ID_Concat, items, list->count, &attr, 1);
}

static enum lth_code expand_concat_from_sequence(struct lth_infer *infer)
{
	struct lth_known_list list;
	uint32_t rank, axis;
	bool fresh = lth_op_int(infer->node, "new_axis");
	const struct lth_type type = *lth_infer_type(infer, 0);
	if (type.element->kind != LTH_TYPE_TENSOR)
		return lth_infer_reject(infer, "a sequence of tensors", "another");
	enum lth_code code = lth_list_rank(infer, &type, fresh, &rank);
	if (!code)
		code = lth_infer_axis(infer, lth_op_int(infer->node, "axis"), rank + fresh, &axis);
	if (code)
		return code;
	if (lth_list_known(infer->graph, infer->node->inputs[0], &list)) {
		if (list.count == 0)
			return lth_infer_reject(infer, "a sequence with elements", "an empty one");
		lth_build_output(infer, 0, concat_known(infer, &list, axis, fresh));
		return LTH_OK;
	}
	const struct lth_attr attrs[] = {
		{.name = "axis", .kind = LTH_ATTR_INT, .count = 1, .i = axis},
		{.name = "new_axis", .kind = LTH_ATTR_INT, .count = 1, .i = fresh},
		{.name = "rank", .kind = LTH_ATTR_INT, .count = 1, .i = rank + fresh},
	};
	lth_value_id inputs[2] = {infer->node->inputs[0], LTH_NONE};
	inputs[1] = lth_build(infer, LTH_OP_ID_ListConcatDims, inputs, 1, attrs, 3);
	lth_build_output(infer, 0, lth_build(infer, LTH_OP_ID_ListConcat, inputs, 2, attrs, 2));
	return LTH_OK;
}

/* Along the axis the run finds the length; elsewhere the elements may tell. */
static enum lth_code infer_list_concat(struct lth_infer *infer)
{
	const struct lth_type *element = lth_infer_type(infer, 0)->element;
	int64_t axis = lth_op_int(infer->node, "axis");
	bool fresh = lth_op_int(infer->node, "new_axis");
	const lth_dim *found;
	uint32_t rank;
	if (element->kind != LTH_TYPE_TENSOR)
		return lth_infer_reject(infer, "a sequence of tensors", "another");
	enum lth_code code = lth_infer_need_ints(infer, 1, 0, &found, &rank);
	if (code)
		return code;
	if (rank > LTH_MAX_RANK)
		return lth_infer_reject(infer, "at most 16 dims", "%u", rank);
	bool known = element->rank <= LTH_MAX_RANK;
	if ((known && rank != element->rank + fresh) || axis < 0 || axis >= rank)
		return lth_infer_reject(infer, "dims and an axis of the elements' rank", "rank %u, axis %lld", rank,
					(long long)axis);
	lth_dim dims[LTH_MAX_RANK];
	for (uint32_t k = 0, from = 0; k < rank; k++) {
		dims[k] = found[k];
		if (k == axis && fresh)
			continue;
		if (k != axis && known && element->dims[from] != LTH_DIM_NONE)
			dims[k] = element->dims[from];
		from++;
	}
	return lth_infer_output(infer, 0, element->dtype, rank, dims);
}

const struct lth_op_impl lth_impl_concat_from_sequence = {.expand = expand_concat_from_sequence};
const struct lth_op_impl lth_impl_list_concat = {.infer = infer_list_concat, .builtin = "list_concat"};
