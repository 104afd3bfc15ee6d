/* Operators on strings: those of ONNX written as the internal forms that C kernels compute, and constant strings as
 * tables of bytes. See strings.h and families/strings.def. */
#include "compiler/ops/strings.h"
#include "compiler/ops/family.h"

#include <stdlib.h>
#include <string.h>

/* ---- constants ---- */

/* The bytes behind each other, and where each string ends; false when out of memory. */
static bool lay_out(struct lth_arena *arena, const struct lth_string *list, int64_t count, char **out_bytes,
		    int64_t *out_size, int64_t **out_ends)
{
	size_t size = 0;
	for (int64_t i = 0; i < count; i++)
		size += list[i].size;
	char *bytes = lth_arena_alloc(arena, size ? size : 1);
	int64_t *ends = lth_arena_array(arena, count > 0 ? (size_t)count : 1, sizeof(*ends));
	if (!bytes || !ends)
		return false;
	size = 0;
	for (int64_t i = 0; i < count; i++) {
		if (list[i].size)
			memcpy(bytes + size, list[i].data, list[i].size);
		size += list[i].size;
		ends[i] = (int64_t)size;
	}
	*out_bytes = bytes;
	*out_size = (int64_t)size;
	*out_ends = ends;
	return true;
}

void lth_build_string_bytes(struct lth_infer *infer, const struct lth_string *list, uint32_t count,
			    lth_value_id *out_bytes, lth_value_id *out_ends)
{
	char *bytes = NULL;
	int64_t size = 0, *ends = NULL, shape = count;
	*out_bytes = *out_ends = LTH_NONE;
	if (!lay_out(infer->graph->arena, list, count, &bytes, &size, &ends))
		return; /* the arena's exhaustion is sticky */
	*out_bytes = lth_build_data(infer, LTH_DTYPE_U8, 1, &size, bytes, (size_t)size);
	*out_ends = lth_build_data(infer, LTH_DTYPE_I64, 1, &shape, ends, count * sizeof(*ends));
}

lth_value_id lth_build_strings(struct lth_infer *infer, const struct lth_string *list, uint32_t count)
{
	int64_t *shape = lth_arena_array(infer->graph->arena, 1, sizeof(*shape));
	if (!shape)
		return LTH_NONE;
	*shape = count;
	lth_value_id in[2];
	lth_build_string_bytes(infer, list, count, &in[0], &in[1]);
	const struct lth_attr attr = {.name = "shape", .kind = LTH_ATTR_INTS, .count = 1, .ints = shape};
	return lth_build(infer, LTH_OP_ID_StringTable, in, 2, &attr, 1);
}

static bool is_used(const struct lth_graph *graph, lth_value_id value)
{
	for (lth_node_id id = 0; id < graph->num_nodes; id++)
		for (uint32_t k = 0; !graph->nodes[id].deleted && k < graph->nodes[id].num_inputs; k++)
			if (graph->nodes[id].inputs[k] == value)
				return true;
	for (lth_region_id r = 0; r < graph->num_regions; r++)
		for (uint32_t k = 0; k < graph->regions[r].num_outputs; k++)
			if (graph->regions[r].outputs[k] == value)
				return true;
	return false;
}

/* One constant becomes a node at the head of the main region. */
static bool to_table(struct lth_graph *graph, lth_value_id id)
{
	struct lth_arena *arena = graph->arena;
	struct lth_type type = graph->values[id].type;
	const struct lth_string *list = graph->values[id].constant.data;
	int64_t count = graph->values[id].constant.bytes / (int64_t)sizeof(*list), size = 0, *ends = NULL;
	int64_t *shape = lth_arena_array(arena, LTH_MAX_RANK, sizeof(*shape));
	char *bytes = NULL;
	const char *name = lth_arena_printf(arena, "%s/table", graph->values[id].name);
	if (!shape || !name || !lth_type_static(graph, &type, shape) ||
	    !lay_out(arena, list, count, &bytes, &size, &ends))
		return false;
	const struct lth_attr attr = {.name = "shape", .kind = LTH_ATTR_INTS, .count = type.rank, .ints = shape};
	lth_value_id text = lth_graph_constant(graph, name, LTH_DTYPE_U8, 1, &size, bytes, size);
	lth_value_id in[2] = {text, lth_graph_constant(graph, name, LTH_DTYPE_I64, 1, &count, ends, count * 8)};
	lth_value_id out = lth_graph_value(graph, name, &type);
	lth_node_id node =
		lth_graph_insert(graph, 0, 0, &lth_ops[LTH_OP_ID_StringTable], name, in, 2, &out, 1, &attr, 1);
	if (node != LTH_NONE)
		lth_graph_replace_uses(graph, id, out);
	return node != LTH_NONE;
}

enum lth_code lth_strings_to_tables(struct lth_graph *graph, struct lth_diag *diag)
{
	uint32_t count = graph->num_values;
	for (lth_value_id id = 0; id < count; id++) {
		const struct lth_value *value = &graph->values[id];
		if (value->def != LTH_DEF_CONSTANT || value->type.dtype != LTH_DTYPE_STRING || !is_used(graph, id))
			continue;
		if (!to_table(graph, id))
			return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, graph->name, NULL,
					     "raise the compile's memory limit", "the compile's memory is used up");
	}
	return LTH_OK;
}

/* ---- lookup ---- */

/* A key and where it stands in the list that it comes from. */
struct key {
	const void *data;
	enum lth_dtype dtype;
	uint32_t index;
};

/* In the order of the C kernels (runtime/kernels/order.h): zeros are equal, NaN is last. */
static int compare_reals(double a, double b)
{
	bool a_nan = a != a, b_nan = b != b;
	return a_nan || b_nan ? a_nan - b_nan : (a > b) - (a < b);
}

static int compare_values(const struct key *a, const struct key *b)
{
	if (a->dtype == LTH_DTYPE_STRING) {
		const struct lth_string *x = a->data, *y = b->data;
		size_t common = x->size < y->size ? x->size : y->size;
		int order = common ? memcmp(x->data, y->data, common) : 0;
		return order ? order : (x->size > y->size) - (x->size < y->size);
	}
	int64_t x = 0, y = 0;
	switch (a->dtype) {
	case LTH_DTYPE_F32:
		return compare_reals((double)*(const float *)a->data, (double)*(const float *)b->data);
	case LTH_DTYPE_F64:
		return compare_reals(*(const double *)a->data, *(const double *)b->data);
	case LTH_DTYPE_I64:
		x = *(const int64_t *)a->data;
		y = *(const int64_t *)b->data;
		break;
	case LTH_DTYPE_I32:
		x = *(const int32_t *)a->data;
		y = *(const int32_t *)b->data;
		break;
	default:
		x = *(const int16_t *)a->data;
		y = *(const int16_t *)b->data;
		break;
	}
	return (x > y) - (x < y);
}

static int compare_keys(const void *a, const void *b)
{
	const struct key *x = a, *y = b;
	int order = compare_values(x, y);
	return order ? order : (x->index > y->index) - (x->index < y->index);
}

/* The list's keys in order, each once: of equal ones the last. */
static struct key *sorted_keys(struct lth_infer *infer, const void *list, enum lth_dtype dtype, uint32_t count,
			       uint32_t *out_count)
{
	struct key *keys = lth_arena_array(infer->graph->arena, count ? count : 1, sizeof(*keys));
	uint32_t distinct = 0;
	for (uint32_t i = 0; keys && i < count; i++)
		keys[i] = (struct key){(const char *)list + i * (size_t)(lth_dtype_bits(dtype) / 8), dtype, i};
	if (keys)
		qsort(keys, count, sizeof(*keys), compare_keys);
	for (uint32_t i = 0; keys && i < count; i++)
		if (i + 1 == count || compare_values(&keys[i], &keys[i + 1]) != 0)
			keys[distinct++] = keys[i];
	*out_count = distinct;
	return keys;
}

/* From places in the sorted keys to places in the list. */
static lth_value_id in_list(struct lth_infer *infer, lth_value_id places, const struct key *keys, uint32_t distinct,
			    uint32_t count)
{
	int64_t *from = lth_arena_array(infer->graph->arena, (size_t)distinct + 1, sizeof(*from));
	if (!from)
		return LTH_NONE;
	for (uint32_t i = 0; i < distinct; i++)
		from[i] = keys[i].index;
	from[distinct] = count;
	return lth_build2(infer, LTH_OP_ID_Gather, lth_build_ints(infer, from, distinct + 1), places);
}

lth_value_id lth_build_find_string(struct lth_infer *infer, lth_value_id x, const struct lth_string *list,
				   uint32_t count)
{
	uint32_t distinct;
	struct key *keys = sorted_keys(infer, list, LTH_DTYPE_STRING, count, &distinct);
	struct lth_string *sorted = lth_arena_array(infer->graph->arena, distinct ? distinct : 1, sizeof(*sorted));
	lth_value_id in[3] = {x, LTH_NONE, LTH_NONE};
	if (!keys || !sorted)
		return LTH_NONE;
	for (uint32_t i = 0; i < distinct; i++)
		sorted[i] = *(const struct lth_string *)keys[i].data;
	lth_build_string_bytes(infer, sorted, distinct, &in[1], &in[2]);
	return in_list(infer, lth_build(infer, LTH_OP_ID_LookupString, in, 3, NULL, 0), keys, distinct, count);
}

lth_value_id lth_build_find(struct lth_infer *infer, lth_value_id x, const void *list, uint32_t count)
{
	uint32_t distinct;
	enum lth_dtype dtype = infer->failed ? LTH_DTYPE_F32 : infer->graph->values[x].type.dtype;
	size_t width = lth_dtype_bits(dtype) / 8;
	struct key *keys = sorted_keys(infer, list, dtype, count, &distinct);
	char *sorted = lth_arena_array(infer->graph->arena, distinct ? distinct : 1, width);
	if (!keys || !sorted)
		return LTH_NONE;
	for (uint32_t i = 0; i < distinct; i++)
		memcpy(sorted + i * width, keys[i].data, width);
	lth_value_id table = lth_build_data(infer, dtype, 1, &(int64_t){distinct}, sorted, distinct * width);
	return in_list(infer, lth_build2(infer, LTH_OP_ID_Lookup, x, table), keys, distinct, count);
}

static enum lth_code infer_places(struct lth_infer *infer)
{
	return lth_infer_like(infer, 0, 0);
}

const struct lth_op_impl lth_impl_lookup = {.infer = infer_places, .builtin = "lookup"};
const struct lth_op_impl lth_impl_lookup_string = {.infer = infer_places, .builtin = "lookup_string"};

static enum lth_code infer_string_table(struct lth_infer *infer)
{
	const int64_t *shape;
	uint32_t rank = 0;
	lth_dim dims[LTH_MAX_RANK], count = lth_dim_const(infer->dims, 1);
	if (!lth_node_ints(infer->node, "shape", &shape, &rank) || rank > LTH_MAX_RANK)
		return lth_infer_reject(infer, "a shape", "rank %u", rank);
	for (uint32_t axis = 0; axis < rank; axis++) {
		dims[axis] = lth_dim_const(infer->dims, shape[axis]);
		count = lth_dim_mul(infer->dims, count, dims[axis]);
	}
	enum lth_code code = lth_infer_need_rank(infer, 1, 1, 1);
	if (!code)
		code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, 1, 0), count,
					 "an end for each string");
	return code ? code : lth_infer_output(infer, 0, LTH_NUM_DTYPES, rank, dims);
}

const struct lth_op_impl lth_impl_string_table = {.infer = infer_string_table, .builtin = "string_table"};
const struct lth_op_impl lth_impl_string_equal = {.infer = lth_infer_elementwise, .builtin = "string_equal"};
const struct lth_op_impl lth_impl_string_concat = {.infer = lth_infer_elementwise, .builtin = "string_concat"};
