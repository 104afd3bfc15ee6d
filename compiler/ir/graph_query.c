/* Questions to types, attributes and constants of a graph. See graph.h. */
#include "compiler/ir/graph.h"

#include <stdio.h>
#include <string.h>

struct lth_type lth_type_tensor(struct lth_graph *graph, enum lth_dtype dtype, uint32_t rank, const lth_dim *dims)
{
	struct lth_type type = {.kind = LTH_TYPE_TENSOR, .dtype = dtype, .rank = rank};
	if (rank != LTH_RANK_UNKNOWN)
		type.dims = lth_arena_memdup(graph->arena, dims, rank * sizeof(*dims));
	return type;
}

bool lth_type_static(const struct lth_graph *graph, const struct lth_type *type, int64_t *out_shape)
{
	if (type->kind != LTH_TYPE_TENSOR || type->rank == LTH_RANK_UNKNOWN)
		return false;
	for (uint32_t i = 0; i < type->rank; i++)
		if (!lth_dim_is_const(graph->dims, type->dims[i], &out_shape[i]))
			return false;
	return true;
}

lth_dim lth_type_elements(struct lth_graph *graph, const struct lth_type *type)
{
	if (type->kind != LTH_TYPE_TENSOR || type->rank == LTH_RANK_UNKNOWN)
		return LTH_DIM_NONE;
	return lth_dim_product(graph->dims, type->dims, type->rank);
}

const struct lth_attr *lth_node_attr(const struct lth_node *node, const char *name)
{
	for (uint32_t i = 0; i < node->num_attrs; i++)
		if (strcmp(node->attrs[i].name, name) == 0)
			return &node->attrs[i];
	return NULL;
}

int64_t lth_node_int(const struct lth_node *node, const char *name, int64_t otherwise)
{
	const struct lth_attr *attr = lth_node_attr(node, name);
	return attr && attr->kind == LTH_ATTR_INT ? attr->i : otherwise;
}

double lth_node_float(const struct lth_node *node, const char *name, double otherwise)
{
	const struct lth_attr *attr = lth_node_attr(node, name);
	return attr && attr->kind == LTH_ATTR_FLOAT ? attr->f : otherwise;
}

const char *lth_node_string(const struct lth_node *node, const char *name, const char *otherwise)
{
	const struct lth_attr *attr = lth_node_attr(node, name);
	return attr && attr->kind == LTH_ATTR_STRING ? attr->s.data : otherwise;
}

bool lth_node_ints(const struct lth_node *node, const char *name, const int64_t **out, uint32_t *out_count)
{
	const struct lth_attr *attr = lth_node_attr(node, name);
	if (!attr || attr->kind != LTH_ATTR_INTS)
		return false;
	*out = attr->ints;
	*out_count = attr->count;
	return true;
}

lth_value_id lth_node_input(const struct lth_node *node, uint32_t index)
{
	return index < node->num_inputs ? node->inputs[index] : LTH_NONE;
}

bool lth_contents_suffice(const struct lth_graph *graph, lth_value_id id)
{
	const struct lth_contents *contents = graph->values[id].contents;
	if (!contents || !contents->dims)
		return false;
	bool counter = graph->values[id].def == LTH_DEF_REGION_INPUT; /* a loop's is known inside of it */
	for (uint32_t i = 0; i < contents->count; i++)
		if (contents->dims[i] == LTH_DIM_NONE ||
		    (!counter && lth_dim_depends_on_data(graph->dims, contents->dims[i])))
			return false;
	return true;
}
