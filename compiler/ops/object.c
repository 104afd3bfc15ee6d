/* Sequences and optionals. What all elements have in common follows from what is put in: the type of a sequence joins
 * the types of its elements. Parts of lists that the graph tells are the values themselves (object_list.c); else they
 * are taken out of the run's objects, with dims that the run finds. */
#include "compiler/ops/object.h"

/* ---- making ---- */

static enum lth_code give_sequence(struct lth_infer *infer, const struct lth_type *element)
{
	const struct lth_type type = lth_type_object(infer->graph, LTH_TYPE_SEQUENCE, LTH_DTYPE_F32, element);
	return lth_infer_output_type(infer, 0, &type);
}

/* Puts one more tensor into what a sequence may hold. */
static enum lth_code widen(struct lth_infer *infer, uint32_t input, struct lth_type *element)
{
	const struct lth_type was = *element;
	if (lth_type_join(infer->graph, &was, lth_infer_type(infer, input), element))
		return LTH_OK;
	return lth_infer_reject(infer, "elements of the sequence's type", "%s is of type %s",
				lth_infer_input_text(infer, input),
				lth_dtype_text(lth_infer_type(infer, input)->dtype));
}

/* Element type 0 (UNDEFINED) leaves it to what is put in. */
static enum lth_code infer_sequence_empty(struct lth_infer *infer)
{
	struct lth_type element = {.kind = LTH_TYPE_TENSOR, .dtype = LTH_NUM_DTYPES, .rank = LTH_RANK_NONE};
	enum lth_code code = LTH_OK;
	if (lth_op_int(infer->node, "dtype") != 0)
		code = lth_infer_dtype_attr(infer, "dtype", &element.dtype);
	return code ? code : give_sequence(infer, &element);
}

static enum lth_code infer_sequence_construct(struct lth_infer *infer)
{
	struct lth_type element = {.kind = LTH_TYPE_TENSOR, .dtype = LTH_NUM_DTYPES, .rank = LTH_RANK_NONE};
	enum lth_code code = LTH_OK;
	for (uint32_t i = 0; i < infer->node->num_inputs && !code; i++)
		code = widen(infer, i, &element);
	return code ? code : give_sequence(infer, &element);
}

/* A position that is known must be there, where the length is known too. */
static enum lth_code check_position(struct lth_infer *infer, uint32_t input, int64_t extra)
{
	struct lth_known_list list;
	int64_t at, count;
	if (!lth_list_position(infer, input, &at) || !lth_list_known(infer->graph, infer->node->inputs[0], &list))
		return LTH_OK;
	count = list.count;
	if (at >= -count && at < count + extra)
		return LTH_OK;
	return lth_infer_reject(infer, "a position of the sequence", "position %lld of %lld elements", (long long)at,
				(long long)count);
}

static enum lth_code infer_sequence_insert(struct lth_infer *infer)
{
	struct lth_type element = *lth_infer_type(infer, 0)->element;
	if (element.kind != LTH_TYPE_TENSOR)
		return lth_infer_reject(infer, "a sequence of tensors", "another");
	enum lth_code code = widen(infer, 1, &element);
	if (!code)
		code = check_position(infer, 2, 1);
	return code ? code : give_sequence(infer, &element);
}

static enum lth_code infer_sequence_erase(struct lth_infer *infer)
{
	enum lth_code code = check_position(infer, 1, 0);
	return code ? code : give_sequence(infer, lth_infer_type(infer, 0)->element);
}

const struct lth_op_impl lth_impl_sequence_empty = {.infer = infer_sequence_empty, .builtin = "list"};
const struct lth_op_impl lth_impl_sequence_construct = {.infer = infer_sequence_construct, .builtin = "list"};
const struct lth_op_impl lth_impl_sequence_insert = {.infer = infer_sequence_insert, .builtin = "list_insert"};
const struct lth_op_impl lth_impl_sequence_erase = {.infer = infer_sequence_erase, .builtin = "list_erase"};

lth_value_id lth_build_sequence(struct lth_infer *infer, const lth_value_id *items, uint32_t count)
{
	return count ? lth_build(infer, LTH_OP_ID_SequenceConstruct, items, count, NULL, 0) : lth_build_empty(infer);
}

lth_value_id lth_build_empty(struct lth_infer *infer)
{
	const struct lth_attr undefined = {.name = "dtype", .kind = LTH_ATTR_INT, .count = 1, .i = 0};
	return lth_build(infer, LTH_OP_ID_SequenceEmpty, NULL, 0, &undefined, 1);
}

/* ---- looking ---- */

static lth_value_id number(struct lth_infer *infer, int64_t value)
{
	return lth_build_data(infer, LTH_DTYPE_I64, 0, NULL, &value, sizeof(value));
}

static enum lth_code expand_sequence_at(struct lth_infer *infer)
{
	struct lth_known_list list;
	int64_t at;
	enum lth_code code = check_position(infer, 1, 0);
	if (code)
		return code;
	lth_value_id item = LTH_NONE;
	if (lth_list_position(infer, 1, &at) && lth_list_known(infer->graph, infer->node->inputs[0], &list))
		item = list.items[at < 0 ? at + list.count : at];
	else
		code = lth_build_item(infer, infer->node->inputs[0], infer->node->inputs[1], false, &item);
	if (!code)
		lth_build_output(infer, 0, item);
	return code;
}

static enum lth_code expand_sequence_length(struct lth_infer *infer)
{
	struct lth_known_list list;
	lth_value_id in = infer->node->inputs[0];
	bool known = lth_list_known(infer->graph, in, &list);
	lth_build_output(infer, 0, known ? number(infer, list.count) : lth_build1(infer, LTH_OP_ID_ListLength, in));
	return LTH_OK;
}

static enum lth_code infer_sequence_at(struct lth_infer *infer)
{
	return lth_infer_item(infer, infer->node->inputs[0], infer->node->inputs[1]);
}

static enum lth_code infer_sequence_length(struct lth_infer *infer)
{
	return lth_infer_output(infer, 0, LTH_NUM_DTYPES, 0, NULL);
}

const struct lth_op_impl lth_impl_sequence_at = {.expand = expand_sequence_at, .infer = infer_sequence_at};
const struct lth_op_impl lth_impl_sequence_length = {.expand = expand_sequence_length, .infer = infer_sequence_length};

/* ---- optionals ---- */

/* The type of what an absent value would be, with no rank: there never is one. */
static struct lth_type without_value(struct lth_graph *graph, const struct lth_type *type)
{
	struct lth_type inner = {.kind = LTH_TYPE_TENSOR, .dtype = type->dtype, .rank = LTH_RANK_NONE};
	if (type->kind == LTH_TYPE_TENSOR)
		return inner;
	inner = without_value(graph, type->element);
	return lth_type_object(graph, type->kind, type->key, &inner);
}

static enum lth_code infer_optional(struct lth_infer *infer)
{
	const struct lth_attr *attr = lth_node_attr(infer->node, "type");
	const struct lth_type *given = lth_infer_type(infer, 0);
	if (!given && !attr)
		return lth_infer_reject(infer, "a value, or the type of the one that is not there", "neither");
	struct lth_type element = given ? *given : without_value(infer->graph, attr->type);
	struct lth_type bottom = without_value(infer->graph, &element);
	if (!lth_type_join(infer->graph, &bottom, &element, &element))
		return lth_infer_exhausted(infer);
	const struct lth_type type = lth_type_object(infer->graph, LTH_TYPE_OPTIONAL, LTH_DTYPE_F32, &element);
	return lth_infer_output_type(infer, 0, &type);
}

/* A tensor or sequence in an optional's place is a value that is there. */
static enum lth_code expand_optional_has_element(struct lth_infer *infer)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	struct lth_known_list list;
	bool known = !type || type->kind != LTH_TYPE_OPTIONAL, has = type != NULL;
	if (!known && lth_list_known(infer->graph, infer->node->inputs[0], &list)) {
		known = true;
		has = list.count > 0;
	}
	lth_value_id out =
		known ? lth_build_data(infer, LTH_DTYPE_BOOL, 0, NULL, &has, 1)
		      : lth_build_cast(infer, lth_build1(infer, LTH_OP_ID_ListLength, infer->node->inputs[0]),
				       LTH_DTYPE_BOOL);
	lth_build_output(infer, 0, out);
	return LTH_OK;
}

static enum lth_code expand_optional_get_element(struct lth_infer *infer)
{
	lth_value_id item = infer->node->inputs[0];
	struct lth_known_list list;
	enum lth_code code = LTH_OK;
	if (lth_infer_type(infer, 0)->kind == LTH_TYPE_OPTIONAL) {
		bool known = lth_list_known(infer->graph, item, &list);
		if (known && list.count == 0)
			return lth_infer_reject(infer, "an optional with a value", "one without");
		if (known)
			item = list.items[0];
		else
			code = lth_build_item(infer, item, number(infer, 0), true, &item);
	}
	if (!code)
		lth_build_output(infer, 0, item);
	return code;
}

const struct lth_op_impl lth_impl_optional = {.infer = infer_optional, .builtin = "list"};
static enum lth_code infer_optional_get_element(struct lth_infer *infer)
{
	const struct lth_type type = *lth_infer_type(infer, 0);
	return type.kind == LTH_TYPE_OPTIONAL ? lth_infer_item(infer, infer->node->inputs[0], LTH_NONE)
					      : lth_infer_output_type(infer, 0, &type);
}

const struct lth_op_impl lth_impl_optional_has_element = {.expand = expand_optional_has_element};
const struct lth_op_impl lth_impl_optional_get_element = {.expand = expand_optional_get_element,
							  .infer = infer_optional_get_element};
