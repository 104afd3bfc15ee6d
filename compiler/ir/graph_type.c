/* Types of sequences, optionals and maps: making them, comparing them, and the type of what several values have in
 * common. See graph.h. */
#include "compiler/ir/graph.h"

struct lth_type lth_type_object(struct lth_graph *graph, enum lth_type_kind kind, enum lth_dtype key,
				const struct lth_type *element)
{
	struct lth_type type = {.kind = kind, .dtype = LTH_DTYPE_OBJECT, .key = key};
	type.element = lth_arena_memdup(graph->arena, element, sizeof(*element));
	return type;
}

bool lth_type_equal(const struct lth_type *a, const struct lth_type *b)
{
	if (a->kind != b->kind || a->dtype != b->dtype || a->rank != b->rank)
		return false;
	if (a->kind != LTH_TYPE_TENSOR)
		return a->key == b->key && lth_type_equal(a->element, b->element);
	for (uint32_t axis = 0; a->rank <= LTH_MAX_RANK && axis < a->rank; axis++)
		if (a->dims[axis] != b->dims[axis])
			return false;
	return true;
}

/* A dimension that both have, and that means the same wherever the element is used. */
static lth_dim join_dim(const struct lth_graph *graph, lth_dim a, lth_dim b)
{
	bool common = a == b && a != LTH_DIM_NONE && !lth_dim_depends_on_data(graph->dims, a);
	return common ? a : LTH_DIM_NONE;
}

/* `out` may be a or b. */
static bool join_tensors(struct lth_graph *graph, const struct lth_type *a, const struct lth_type *b,
			 struct lth_type *out)
{
	if (a->dtype != b->dtype && a->dtype != LTH_NUM_DTYPES && b->dtype != LTH_NUM_DTYPES)
		return false;
	const struct lth_type x = a->rank == LTH_RANK_NONE ? *b : *a, y = b->rank == LTH_RANK_NONE ? *a : *b;
	enum lth_dtype dtype = a->dtype == LTH_NUM_DTYPES ? b->dtype : a->dtype;
	uint32_t rank = x.rank == y.rank ? x.rank : LTH_RANK_UNKNOWN;
	lth_dim dims[LTH_MAX_RANK];
	*out = (struct lth_type){.kind = LTH_TYPE_TENSOR, .dtype = dtype, .rank = rank};
	if (rank > LTH_MAX_RANK)
		return true;
	for (uint32_t axis = 0; axis < rank; axis++)
		dims[axis] = join_dim(graph, x.dims[axis], y.dims[axis]);
	*out = lth_type_tensor(graph, dtype, rank, dims);
	return out->dims != NULL;
}

bool lth_type_join(struct lth_graph *graph, const struct lth_type *a, const struct lth_type *b, struct lth_type *out)
{
	struct lth_type element;
	if (a->kind != b->kind)
		return false;
	if (a->kind == LTH_TYPE_TENSOR)
		return join_tensors(graph, a, b, out);
	const struct lth_type whole = *a;
	if (a->key != b->key || !lth_type_join(graph, a->element, b->element, &element))
		return false;
	*out = lth_type_object(graph, whole.kind, whole.key, &element);
	return out->element != NULL;
}
