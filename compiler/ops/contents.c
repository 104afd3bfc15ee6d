/* Contents of small tensors in the course of inference: read from constants, carried from inputs to outputs, or stood
 * for by data symbols where a shape needs what only the run knows. See infer.h. */
#include "compiler/ops/infer.h"

#include <string.h>

static bool is_integral(enum lth_dtype dtype)
{
	if (dtype == LTH_NUM_DTYPES)
		return false;
	enum lth_dtype_class class = lth_dtype_class(dtype);
	return class == LTH_CLASS_INT || class == LTH_CLASS_UINT || class == LTH_CLASS_BOOL;
}

/* Number of elements when it is a small constant. */
static bool small_count(struct lth_graph *graph, const struct lth_type *type, uint32_t *out)
{
	int64_t count;
	if (type->kind != LTH_TYPE_TENSOR || type->rank == LTH_RANK_UNKNOWN || type->dtype == LTH_NUM_DTYPES)
		return false;
	lth_dim elements = lth_type_elements(graph, type);
	if (elements == LTH_DIM_NONE || !lth_dim_is_const(graph->dims, elements, &count) || count < 0 ||
	    count > LTH_MAX_CONTENTS)
		return false;
	*out = (uint32_t)count;
	return true;
}

static struct lth_contents *new_ints(struct lth_graph *graph, const lth_dim *list, uint32_t count)
{
	struct lth_contents *contents = lth_arena_alloc(graph->arena, sizeof(*contents));
	const lth_dim *copy = lth_arena_memdup(graph->arena, list, count * sizeof(*list));
	if (!contents || !copy)
		return NULL;
	contents->count = count;
	contents->dims = copy;
	return contents;
}

static struct lth_contents *new_reals(struct lth_graph *graph, const lth_real *list, uint32_t count)
{
	struct lth_contents *contents = lth_arena_alloc(graph->arena, sizeof(*contents));
	const lth_real *copy = lth_arena_memdup(graph->arena, list, count * sizeof(*list));
	if (!contents || !copy)
		return NULL;
	contents->count = count;
	contents->reals = copy;
	return contents;
}

const struct lth_contents *lth_value_contents(struct lth_graph *graph, lth_value_id id)
{
	struct lth_value *value = &graph->values[id];
	uint32_t count, found;
	if (value->contents || value->def != LTH_DEF_CONSTANT || !small_count(graph, &value->type, &count))
		return value->contents;
	if (is_integral(value->type.dtype)) {
		const int64_t *ints;
		lth_dim list[LTH_MAX_CONTENTS];
		if (!lth_value_const_ints(graph, id, &ints, &found) || found != count)
			return NULL;
		for (uint32_t i = 0; i < count; i++)
			list[i] = lth_dim_const(graph->dims, ints[i]);
		value->contents = new_ints(graph, list, count);
	} else if (lth_dtype_class(value->type.dtype) == LTH_CLASS_FLOAT && lth_dtype_bits(value->type.dtype) >= 16) {
		const double *floats;
		lth_real list[LTH_MAX_CONTENTS];
		if (!lth_value_const_floats(graph, id, &floats, &found) || found != count)
			return NULL;
		for (uint32_t i = 0; i < count; i++)
			list[i] = lth_real_const(graph->dims, floats[i]);
		value->contents = new_reals(graph, list, count);
	}
	return value->contents;
}

const lth_dim *lth_infer_ints(struct lth_infer *infer, uint32_t input, uint32_t *out_count)
{
	lth_value_id id = lth_node_input(infer->node, input);
	const struct lth_contents *contents = id == LTH_NONE ? NULL : lth_value_contents(infer->graph, id);
	if (!contents || !contents->dims)
		return NULL;
	*out_count = contents->count;
	return contents->dims;
}

const lth_real *lth_infer_reals(struct lth_infer *infer, uint32_t input, uint32_t *out_count)
{
	lth_value_id id = lth_node_input(infer->node, input);
	const struct lth_contents *contents = id == LTH_NONE ? NULL : lth_value_contents(infer->graph, id);
	if (!contents || !contents->reals)
		return NULL;
	*out_count = contents->count;
	return contents->reals;
}

enum lth_code lth_infer_need_ints(struct lth_infer *infer, uint32_t input, int64_t min, const lth_dim **out,
				  uint32_t *out_count)
{
	struct lth_graph *graph = infer->graph;
	const lth_dim *known = lth_infer_ints(infer, input, out_count);
	if (known) {
		*out = known;
		return LTH_OK;
	}
	lth_value_id id = lth_node_input(infer->node, input);
	const struct lth_type *type = &graph->values[id].type;
	uint32_t count;
	if (!is_integral(type->dtype) || !small_count(graph, type, &count))
		return lth_infer_unsupported(infer, "make the number of its elements constant",
					     "the output's shape depends on %s, whose contents %s are not known",
					     lth_infer_input_text(infer, input), lth_infer_shape_text(infer, type));
	lth_dim list[LTH_MAX_CONTENTS];
	for (uint32_t i = 0; i < count; i++)
		list[i] = lth_graph_element(graph, id, i, min);
	struct lth_contents *contents = new_ints(graph, list, count);
	if (!contents)
		return lth_infer_exhausted(infer);
	graph->values[id].contents = contents;
	*out = contents->dims;
	*out_count = count;
	return LTH_OK;
}

enum lth_code lth_infer_need_consts(struct lth_infer *infer, uint32_t input, const int64_t **out, uint32_t *out_count)
{
	uint32_t count;
	const lth_dim *list = lth_infer_ints(infer, input, &count);
	if (!list) {
		/* Constants longer than what is followed. */
		if (lth_value_const_ints(infer->graph, lth_node_input(infer->node, input), out, out_count))
			return LTH_OK;
		return lth_infer_unsupported(infer, "make it a constant", "%s is not known at compile time",
					     lth_infer_input_text(infer, input));
	}
	int64_t *values = lth_arena_array(infer->graph->arena, count, sizeof(*values));
	for (uint32_t i = 0; i < count; i++)
		if (!values || !lth_dim_is_const(infer->dims, list[i], &values[i]))
			return lth_infer_unsupported(infer, "make it a constant", "%s is not a constant but %s",
						     lth_infer_input_text(infer, input),
						     lth_infer_dim_text(infer, list[i]));
	*out = values;
	*out_count = count;
	return LTH_OK;
}

bool lth_infer_wants_contents(const struct lth_infer *infer, uint32_t output, uint32_t *out_count)
{
	if (output >= infer->node->num_outputs || infer->node->outputs[output] == LTH_NONE)
		return false;
	const struct lth_type *type = &infer->graph->values[infer->node->outputs[output]].type;
	return (is_integral(type->dtype) || type->dtype == LTH_DTYPE_F32 || type->dtype == LTH_DTYPE_F64) &&
	       small_count(infer->graph, type, out_count);
}

void lth_infer_set_ints(struct lth_infer *infer, uint32_t output, const lth_dim *list, uint32_t count)
{
	uint32_t wanted;
	if (!lth_infer_wants_contents(infer, output, &wanted) || wanted != count)
		return;
	for (uint32_t i = 0; i < count; i++)
		if (list[i] == LTH_DIM_NONE)
			return;
	struct lth_value *value = &infer->graph->values[infer->node->outputs[output]];
	if (is_integral(value->type.dtype))
		value->contents = new_ints(infer->graph, list, count);
}

void lth_infer_set_reals(struct lth_infer *infer, uint32_t output, const lth_real *list, uint32_t count)
{
	uint32_t wanted;
	if (!lth_infer_wants_contents(infer, output, &wanted) || wanted != count)
		return;
	for (uint32_t i = 0; i < count; i++)
		if (list[i] == UINT32_MAX)
			return;
	struct lth_value *value = &infer->graph->values[infer->node->outputs[output]];
	if (lth_dtype_class(value->type.dtype) == LTH_CLASS_FLOAT)
		value->contents = new_reals(infer->graph, list, count);
}

void lth_infer_move_contents(struct lth_infer *infer, uint32_t input, const int32_t *from, uint32_t count)
{
	uint32_t known;
	uint32_t list[LTH_MAX_CONTENTS]; /* lth_dim or lth_real */
	const lth_dim *dims = lth_infer_ints(infer, input, &known);
	const lth_real *reals = dims ? NULL : lth_infer_reals(infer, input, &known);
	if ((!dims && !reals) || count > LTH_MAX_CONTENTS)
		return;
	for (uint32_t i = 0; i < count; i++) {
		if (from[i] >= 0 && (uint32_t)from[i] >= known)
			return;
		if (from[i] < 0)
			list[i] = dims ? lth_dim_const(infer->dims, 0) : lth_real_const(infer->dims, 0);
		else
			list[i] = dims ? dims[from[i]] : reals[from[i]];
	}
	if (dims)
		lth_infer_set_ints(infer, 0, list, count);
	else
		lth_infer_set_reals(infer, 0, list, count);
}

void lth_infer_walk_contents(struct lth_infer *infer, int64_t offset, const int64_t *strides)
{
	uint32_t count;
	int32_t from[LTH_MAX_CONTENTS];
	int64_t shape[LTH_MAX_RANK];
	if (!lth_infer_wants_contents(infer, 0, &count))
		return;
	const struct lth_type *type = &infer->graph->values[infer->node->outputs[0]].type;
	if (!lth_type_static(infer->graph, type, shape))
		return;
	for (uint32_t k = 0; k < count; k++) {
		int64_t rest = k, place = offset;
		for (uint32_t axis = type->rank; axis-- > 0;) {
			place += rest % shape[axis] * strides[axis];
			rest /= shape[axis];
		}
		from[k] = (int32_t)place;
	}
	lth_infer_move_contents(infer, 0, from, count);
}
