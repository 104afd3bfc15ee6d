/* Lists as inference sees them: what a list is known to hold, and taking an item out. See object.h. */
#include "compiler/ops/object.h"

#include <string.h>

/* ---- what is known ---- */

static bool position_of(struct lth_graph *graph, lth_value_id value, int64_t *out)
{
	const struct lth_contents *contents = lth_value_contents(graph, value);
	return contents && contents->dims && contents->count == 1 &&
	       lth_dim_is_const(graph->dims, contents->dims[0], out);
}

bool lth_list_position(const struct lth_infer *infer, uint32_t input, int64_t *out)
{
	lth_value_id value = lth_node_input(infer->node, input);
	return value != LTH_NONE && position_of(infer->graph, value, out);
}

/* One step of the list's making, on the list before it; false where the position is not known or not there. */
static bool step(struct lth_graph *graph, const struct lth_node *node, struct lth_known_list *list)
{
	bool insert = lth_op_id(node->op) == LTH_OP_ID_SequenceInsert;
	lth_value_id where = lth_node_input(node, insert ? 2 : 1);
	int64_t count = list->count, places = insert ? count + 1 : count, at = insert ? count : count - 1;
	if (where != LTH_NONE && !position_of(graph, where, &at))
		return false;
	at = at < 0 ? at + count : at; /* from the end: before the last element is -1 */
	if (at < 0 || at >= places || (insert && count == LTH_MAX_KNOWN_LIST))
		return false;
	lth_value_id *place = list->items + at;
	if (insert) {
		memmove(place + 1, place, (size_t)(count - at) * sizeof(*place));
		*place = node->inputs[1];
	} else {
		memmove(place, place + 1, (size_t)(count - at - 1) * sizeof(*place));
	}
	list->count = (uint32_t)(insert ? count + 1 : count - 1);
	return true;
}

bool lth_list_known(struct lth_graph *graph, lth_value_id id, struct lth_known_list *out)
{
	lth_node_id steps[2 * LTH_MAX_KNOWN_LIST];
	uint32_t num_steps = 0;
	for (;;) {
		const struct lth_value *value = &graph->values[id];
		if (value->def != LTH_DEF_NODE)
			return false;
		const struct lth_node *node = &graph->nodes[value->def_id];
		switch (lth_op_id(node->op)) {
		case LTH_OP_ID_Identity:
			break;
		case LTH_OP_ID_SequenceInsert:
		case LTH_OP_ID_SequenceErase:
			if (num_steps == 2 * LTH_MAX_KNOWN_LIST)
				return false;
			steps[num_steps++] = value->def_id;
			break;
		case LTH_OP_ID_SequenceEmpty:
		case LTH_OP_ID_SequenceConstruct:
		case LTH_OP_ID_Optional:
			if (node->num_inputs > LTH_MAX_KNOWN_LIST)
				return false;
			out->count = node->num_inputs && node->inputs[0] == LTH_NONE ? 0 : node->num_inputs;
			memcpy(out->items, node->inputs, out->count * sizeof(*out->items));
			while (num_steps)
				if (!step(graph, &graph->nodes[steps[--num_steps]], out))
					return false;
			return true;
		default:
			return false;
		}
		id = node->inputs[0];
	}
}

/* ---- items ---- */

enum lth_code lth_list_rank(struct lth_infer *infer, const struct lth_type *list, uint32_t more, uint32_t *out)
{
	const struct lth_type *element = list->element;
	lth_value_id result = infer->node->outputs[0];
	uint32_t declared = result == LTH_NONE ? LTH_RANK_UNKNOWN : infer->graph->values[result].declared_rank;
	if (element->dtype == LTH_NUM_DTYPES)
		return lth_infer_unsupported(infer, "take elements behind where they are put in",
					     "an element of a sequence that has had none so far");
	*out = element->rank;
	if (element->rank > LTH_MAX_RANK && declared <= LTH_MAX_RANK && declared >= more)
		*out = declared - more; /* the run holds the model to it */
	if (*out <= LTH_MAX_RANK)
		return LTH_OK;
	return lth_infer_unsupported(infer, "declare the shape of the result, or of the elements where they are an input",
				     "an element of a sequence whose rank is not known, or not always the same");
}

/* What item `index` of a list is. Of a map, 0 is the keys, 1 the values: tensors of one axis each. */
static struct lth_type item_type(struct lth_infer *infer, const struct lth_type *list, lth_value_id index)
{
	int64_t which = 0;
	if (list->kind != LTH_TYPE_MAP)
		return *list->element;
	bool values = position_of(infer->graph, index, &which) && which == 1;
	const lth_dim any = LTH_DIM_NONE;
	return lth_type_tensor(infer->graph, values ? list->element->dtype : list->key, 1, &any);
}

static bool dims_known(const struct lth_type *type)
{
	for (uint32_t axis = 0; type->kind == LTH_TYPE_TENSOR && axis < type->rank; axis++)
		if (type->dims[axis] == LTH_DIM_NONE)
			return false;
	return true;
}

enum lth_code lth_build_item(struct lth_infer *infer, lth_value_id list, lth_value_id index, bool optional,
			     lth_value_id *out)
{
	const struct lth_type type = infer->graph->values[list].type, item = item_type(infer, &type, index);
	uint32_t rank = item.rank;
	if (item.kind == LTH_TYPE_TENSOR && type.kind != LTH_TYPE_MAP) {
		enum lth_code code = lth_list_rank(infer, &type, 0, &rank);
		if (code)
			return code;
	}
	const struct lth_attr attrs[] = {
		{.name = "optional", .kind = LTH_ATTR_INT, .count = 1, .i = optional},
		{.name = "rank", .kind = LTH_ATTR_INT, .count = 1, .i = rank},
	};
	lth_value_id inputs[3] = {list, index, LTH_NONE};
	uint32_t count = 2;
	if (item.rank != rank || !dims_known(&item))
		inputs[count++] = lth_build(infer, LTH_OP_ID_ListDims, inputs, 2, attrs, 2);
	*out = lth_build(infer, LTH_OP_ID_ListAt, inputs, count, attrs, 1);
	return infer->failed;
}

enum lth_code lth_infer_item(struct lth_infer *infer, lth_value_id list, lth_value_id index)
{
	const struct lth_type type = infer->graph->values[list].type, item = item_type(infer, &type, index);
	lth_dim dims[LTH_MAX_RANK];
	uint32_t rank = item.rank;
	if (item.kind != LTH_TYPE_TENSOR)
		return lth_infer_output_type(infer, 0, &item);
	enum lth_code code = type.kind == LTH_TYPE_MAP ? LTH_OK : lth_list_rank(infer, &type, 0, &rank);
	for (uint32_t axis = 0; axis < rank && !code; axis++) {
		const char *name = lth_arena_printf(infer->graph->arena, "dim%u", axis);
		bool known = item.rank == rank && item.dims[axis] != LTH_DIM_NONE;
		dims[axis] = known ? item.dims[axis] : lth_infer_data_dim(infer, name ? name : "dim", LTH_DIM_NONE);
	}
	return code ? code : lth_infer_output(infer, 0, item.dtype, rank, dims);
}

/* The item's dims: what all elements have in common, else what the run finds. */
static enum lth_code infer_list_at(struct lth_infer *infer)
{
	const struct lth_type item = item_type(infer, lth_infer_type(infer, 0), infer->node->inputs[1]);
	lth_dim dims[LTH_MAX_RANK];
	const lth_dim *found = NULL;
	uint32_t count = 0;
	if (item.kind != LTH_TYPE_TENSOR)
		return lth_infer_output_type(infer, 0, &item);
	if (lth_node_input(infer->node, 2) != LTH_NONE) {
		enum lth_code code = lth_infer_need_ints(infer, 2, 0, &found, &count);
		if (code)
			return code;
	}
	uint32_t rank = item.rank <= LTH_MAX_RANK ? item.rank : count;
	if (rank > LTH_MAX_RANK)
		return lth_infer_reject(infer, "at most 16 dims", "%u", rank);
	for (uint32_t axis = 0; axis < rank; axis++) {
		bool known = item.rank == rank && item.dims[axis] != LTH_DIM_NONE;
		if (!known && axis >= count)
			return lth_infer_reject(infer, "the dims of the item", "%u", count);
		dims[axis] = known ? item.dims[axis] : found[axis];
	}
	return lth_infer_output(infer, 0, item.dtype, rank, dims);
}

static enum lth_code infer_list_dims(struct lth_infer *infer)
{
	int64_t rank = lth_op_int(infer->node, "rank");
	if (rank < 0 || rank > LTH_MAX_RANK)
		return lth_infer_reject(infer, "a rank of at most 16", "%lld", (long long)rank);
	lth_dim count = lth_dim_const(infer->dims, rank);
	return lth_infer_output(infer, 0, LTH_NUM_DTYPES, 1, &count);
}

static enum lth_code infer_scalar(struct lth_infer *infer)
{
	return lth_infer_output(infer, 0, LTH_NUM_DTYPES, 0, NULL);
}

const struct lth_op_impl lth_impl_list_at = {.infer = infer_list_at, .builtin = "list_at"};
const struct lth_op_impl lth_impl_list_dims = {.infer = infer_list_dims, .builtin = "list_dims"};
const struct lth_op_impl lth_impl_list_length = {.infer = infer_scalar, .builtin = "list_length"};
const struct lth_op_impl lth_impl_list_concat_dims = {.infer = infer_list_dims, .builtin = "list_concat_dims"};
