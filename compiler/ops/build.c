/* Expansion of composite operators. See build.h. */
#include "compiler/ops/build.h"

#include <assert.h>
#include <string.h>

static lth_value_id stop(struct lth_infer *infer, enum lth_code code)
{
	if (!infer->failed)
		infer->failed = code;
	return LTH_NONE;
}

static lth_value_id out_of_memory(struct lth_infer *infer)
{
	return stop(infer, lth_infer_exhausted(infer));
}

/* Where the composite stands now: what it is built from is inserted there, and nodes only ever come before it. */
static uint32_t position(struct lth_infer *infer)
{
	const struct lth_region *region = &infer->graph->regions[infer->node->region];
	while (region->nodes[infer->at] != infer->id)
		infer->at++;
	return infer->at;
}

void lth_build_many(struct lth_infer *infer, enum lth_op_id op, const lth_value_id *inputs, uint32_t num_inputs,
		    const struct lth_attr *attrs, uint32_t num_attrs, const bool *wanted, lth_value_id *outputs,
		    uint32_t num_outputs)
{
	struct lth_graph *graph = infer->graph;
	const struct lth_type unknown = {.kind = LTH_TYPE_TENSOR, .dtype = LTH_NUM_DTYPES, .rank = LTH_RANK_UNKNOWN};
	for (uint32_t i = 0; i < num_outputs; i++)
		outputs[i] = LTH_NONE;
	if (infer->failed)
		return;
	const char *name = lth_arena_printf(graph->arena, "%s/%s", infer->node->name, lth_ops[op].name);
	for (uint32_t i = 0; name && i < num_outputs; i++)
		outputs[i] = wanted[i] ? lth_graph_value(graph, name, &unknown) : LTH_NONE;
	lth_node_id id = name ? lth_graph_insert(graph, infer->node->region, position(infer), &lth_ops[op], name,
						 inputs, num_inputs, outputs, num_outputs, attrs, num_attrs)
			      : LTH_NONE;
	infer->node = &graph->nodes[infer->id];
	if (id == LTH_NONE || !lth_arena_ok(graph->arena)) {
		out_of_memory(infer);
		return;
	}
	enum lth_code code = lth_infer_node(graph, id, infer->diag);
	infer->node = &graph->nodes[infer->id];
	if (code)
		stop(infer, code);
}

void lth_build_in(struct lth_infer *infer, lth_region_id region, enum lth_op_id op, const lth_value_id *inputs,
		  uint32_t num_inputs, const struct lth_attr *attrs, uint32_t num_attrs, lth_value_id *outputs,
		  uint32_t num_outputs)
{
	struct lth_graph *graph = infer->graph;
	const char *name = lth_arena_printf(graph->arena, "%s/%s", infer->node->name, lth_ops[op].name);
	for (uint32_t i = 0; i < num_outputs; i++)
		outputs[i] = name && !infer->failed ? lth_graph_value(graph, name, NULL) : LTH_NONE;
	if (infer->failed)
		return;
	lth_node_id id = name ? lth_graph_node(graph, region, &lth_ops[op], name, inputs, num_inputs, outputs,
					       num_outputs, attrs, num_attrs)
			      : LTH_NONE;
	infer->node = &graph->nodes[infer->id];
	if (id == LTH_NONE || !lth_arena_ok(graph->arena))
		out_of_memory(infer);
}

lth_value_id lth_build(struct lth_infer *infer, enum lth_op_id op, const lth_value_id *inputs, uint32_t num_inputs,
		       const struct lth_attr *attrs, uint32_t num_attrs)
{
	lth_value_id out;
	lth_build_many(infer, op, inputs, num_inputs, attrs, num_attrs, &(bool){true}, &out, 1);
	return infer->failed ? LTH_NONE : out;
}

lth_value_id lth_build1(struct lth_infer *infer, enum lth_op_id op, lth_value_id a)
{
	return lth_build(infer, op, &a, 1, NULL, 0);
}

lth_value_id lth_build2(struct lth_infer *infer, enum lth_op_id op, lth_value_id a, lth_value_id b)
{
	return lth_build(infer, op, (lth_value_id[]){a, b}, 2, NULL, 0);
}

lth_value_id lth_build_data(struct lth_infer *infer, enum lth_dtype dtype, uint32_t rank, const int64_t *shape,
			     const void *data, size_t bytes)
{
	struct lth_graph *graph = infer->graph;
	if (infer->failed)
		return LTH_NONE;
	void *copy = lth_arena_memdup(graph->arena, data, bytes);
	const char *name = lth_arena_printf(graph->arena, "%s/const", infer->node->name);
	if (!copy || !name)
		return out_of_memory(infer);
	lth_value_id id = lth_graph_constant(graph, name, dtype, rank, shape, copy, (int64_t)bytes);
	return id == LTH_NONE ? out_of_memory(infer) : id;
}

lth_value_id lth_build_ints(struct lth_infer *infer, const int64_t *list, uint32_t count)
{
	return lth_build_data(infer, LTH_DTYPE_I64, 1, &(int64_t){count}, list, count * sizeof(*list));
}

lth_value_id lth_build_scalar(struct lth_infer *infer, enum lth_dtype dtype, double value)
{
	if (dtype == LTH_DTYPE_F64)
		return lth_build_data(infer, dtype, 0, NULL, &value, sizeof(value));
	if (dtype == LTH_DTYPE_I64 || dtype == LTH_DTYPE_I32) {
		int64_t integer = (int64_t)value; /* little-endian: the low half is the narrower number */
		return lth_build_data(infer, dtype, 0, NULL, &integer, lth_dtype_bits(dtype) / 8);
	}
	float single = (float)value;
	lth_value_id id = lth_build_data(infer, LTH_DTYPE_F32, 0, NULL, &single, sizeof(single));
	return lth_build_cast(infer, id, dtype);
}

lth_value_id lth_build_cast(struct lth_infer *infer, lth_value_id a, enum lth_dtype dtype)
{
	if (infer->failed || infer->graph->values[a].type.dtype == dtype)
		return a;
	const struct lth_attr to = lth_attr_int("to", lth_dtype_onnx(dtype));
	return lth_build(infer, LTH_OP_ID_Cast, &a, 1, &to, 1);
}

lth_value_id lth_build_select(struct lth_infer *infer, lth_value_id condition, lth_value_id a, lth_value_id b)
{
	return lth_build(infer, LTH_OP_ID_Where, (lth_value_id[]){condition, a, b}, 3, NULL, 0);
}

lth_value_id lth_build_extent(struct lth_infer *infer, lth_value_id a, int64_t axis)
{
	lth_value_id shape = lth_build1(infer, LTH_OP_ID_Shape, a);
	return lth_build2(infer, LTH_OP_ID_Gather, shape, lth_build_scalar(infer, LTH_DTYPE_I64, (double)axis));
}

lth_value_id lth_build_count(struct lth_infer *infer, lth_value_id limit)
{
	lth_value_id zero = lth_build_scalar(infer, LTH_DTYPE_I64, 0), one = lth_build_scalar(infer, LTH_DTYPE_I64, 1);
	return lth_build(infer, LTH_OP_ID_Range, (lth_value_id[]){zero, limit, one}, 3, NULL, 0);
}

lth_value_id lth_build_concat(struct lth_infer *infer, const lth_value_id *list, uint32_t count, int64_t axis)
{
	const struct lth_attr at = lth_attr_int("axis", axis);
	return lth_build(infer, LTH_OP_ID_Concat, list, count, &at, 1);
}

lth_value_id lth_build_gather(struct lth_infer *infer, lth_value_id a, lth_value_id indices, int64_t axis)
{
	const struct lth_attr at = lth_attr_int("axis", axis);
	return lth_build(infer, LTH_OP_ID_Gather, (lth_value_id[]){a, indices}, 2, &at, 1);
}

lth_value_id lth_build_slice(struct lth_infer *infer, lth_value_id a, int64_t axis, int64_t begin, int64_t end)
{
	lth_value_id in[4] = {a};
	in[1] = lth_build_ints(infer, &begin, 1);
	in[2] = lth_build_ints(infer, &end, 1);
	in[3] = lth_build_ints(infer, &axis, 1);
	return lth_build(infer, LTH_OP_ID_Slice, in, 4, NULL, 0);
}

lth_value_id lth_build_reshape(struct lth_infer *infer, lth_value_id a, const int64_t *shape, uint32_t rank)
{
	return lth_build2(infer, LTH_OP_ID_Reshape, a, lth_build_ints(infer, shape, rank));
}

lth_value_id lth_build_reshape_like(struct lth_infer *infer, lth_value_id a, lth_value_id like)
{
	return lth_build2(infer, LTH_OP_ID_Reshape, a, lth_build1(infer, LTH_OP_ID_Shape, like));
}

lth_value_id lth_build_unsqueeze(struct lth_infer *infer, lth_value_id a, const int64_t *axes, uint32_t count)
{
	return count ? lth_build2(infer, LTH_OP_ID_Unsqueeze, a, lth_build_ints(infer, axes, count)) : a;
}

lth_value_id lth_build_transpose(struct lth_infer *infer, lth_value_id a, const int64_t *perm, uint32_t rank)
{
	const int64_t *copy = lth_arena_memdup(infer->graph->arena, perm, rank * sizeof(*perm));
	if (!copy)
		return out_of_memory(infer);
	const struct lth_attr attr = {.name = "perm", .kind = LTH_ATTR_INTS, .count = rank, .ints = copy};
	return lth_build(infer, LTH_OP_ID_Transpose, &a, 1, &attr, 1);
}

lth_value_id lth_build_reduce(struct lth_infer *infer, enum lth_op_id op, lth_value_id a, const int64_t *axes,
			      uint32_t count, bool keep_dims)
{
	const struct lth_attr keep = lth_attr_int("keepdims", keep_dims);
	const lth_value_id inputs[] = {a, lth_build_ints(infer, axes, count)};
	return lth_build(infer, op, inputs, 2, &keep, 1);
}

bool lth_build_wants(const struct lth_infer *infer, uint32_t output)
{
	return output < infer->node->num_outputs && infer->node->outputs[output] != LTH_NONE;
}

/* The built node that defines `value` defines the composite's output instead; what was not built here is passed on by
 * an Identity. */
void lth_build_output(struct lth_infer *infer, uint32_t output, lth_value_id value)
{
	struct lth_graph *graph = infer->graph;
	if (infer->failed || !lth_build_wants(infer, output))
		return;
	const struct lth_value *built = &graph->values[value];
	if (built->def != LTH_DEF_NODE || built->def_id < infer->first_built)
		value = lth_build1(infer, LTH_OP_ID_Identity, value);
	if (infer->failed)
		return;
	lth_value_id out = infer->node->outputs[output];
	struct lth_value *from = &graph->values[value], *to = &graph->values[out];
	to->type = from->type;
	to->contents = from->contents;
	to->def = LTH_DEF_NODE;
	to->def_id = from->def_id;
	to->def_index = from->def_index;
	from->def = LTH_DEF_DELETED;
	graph->nodes[to->def_id].outputs[to->def_index] = out;
	for (lth_node_id id = infer->first_built; id < graph->num_nodes; id++)
		for (uint32_t i = 0; i < graph->nodes[id].num_inputs; i++)
			if (graph->nodes[id].inputs[i] == value)
				graph->nodes[id].inputs[i] = out;
	graph->nodes[infer->id].outputs[output] = LTH_NONE;
	lth_graph_rebind(graph, value, out);
}

/* Builds what stands for the composite; its outputs are those of built nodes then. */
static enum lth_code build_all(struct lth_infer *infer, lth_infer_fn expand)
{
	infer->at = 0;
	infer->first_built = infer->graph->num_nodes;
	enum lth_code code = expand(infer);
	if (!code)
		code = infer->failed;
	for (uint32_t i = 0; !code && i < infer->node->num_outputs; i++)
		assert(infer->node->outputs[i] == LTH_NONE); /* every output was built */
	return code;
}

enum lth_code lth_build_expand(struct lth_infer *infer, lth_infer_fn expand)
{
	enum lth_code code = build_all(infer, expand);
	if (!code)
		lth_graph_delete_node(infer->graph, infer->id);
	return code;
}

enum lth_code lth_build_look(struct lth_infer *infer, lth_infer_fn expand)
{
	struct lth_graph *graph = infer->graph;
	uint32_t num_outputs = infer->node->num_outputs;
	const lth_value_id *outputs =
		lth_arena_memdup(graph->arena, infer->node->outputs, num_outputs * sizeof(*outputs));
	if (!outputs)
		out_of_memory(infer);
	enum lth_code code = infer->failed ? infer->failed : build_all(infer, expand);
	for (uint32_t i = 0; !code && i < num_outputs; i++) {
		if (outputs[i] == LTH_NONE)
			continue;
		struct lth_value *value = &graph->values[outputs[i]];
		graph->nodes[value->def_id].outputs[value->def_index] = LTH_NONE;
		value->def_id = infer->id;
		value->def_index = i;
		infer->node->outputs[i] = outputs[i];
	}
	for (lth_node_id id = infer->first_built; !code && id < graph->num_nodes; id++)
		if (!graph->nodes[id].deleted)
			lth_graph_delete_node(graph, id);
	return code;
}
