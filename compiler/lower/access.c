/* Dense accesses. See access.h. */
#include "compiler/lower/access.h"

const lth_dim *lth_dense_strides(struct lth_graph *graph, struct lth_arena *arena, uint32_t rank, const lth_dim *dims,
				 const uint8_t *layout)
{
	lth_dim *strides = lth_arena_array(arena, rank ? rank : 1, sizeof(*strides));
	lth_dim step = lth_dim_const(graph->dims, 1);
	if (!strides)
		return NULL;
	for (uint32_t i = rank; i-- > 0;) {
		uint32_t axis = layout ? layout[i] : i;
		strides[axis] = step;
		step = lth_dim_mul(graph->dims, step, dims[axis]);
	}
	return strides;
}

struct lth_access *lth_access_dense(struct lth_graph *graph, struct lth_arena *arena)
{
	struct lth_access *accesses = lth_arena_array(arena, graph->num_values, sizeof(*accesses));
	for (lth_value_id id = 0; accesses && id < graph->num_values; id++) {
		const struct lth_value *value = &graph->values[id];
		accesses[id].base = id;
		accesses[id].offset = lth_dim_const(graph->dims, 0);
		if (value->def == LTH_DEF_NONE || value->def == LTH_DEF_DELETED ||
		    value->type.kind != LTH_TYPE_TENSOR || value->type.rank > LTH_MAX_RANK)
			continue;
		accesses[id].strides =
			lth_dense_strides(graph, arena, value->type.rank, value->type.dims, value->layout);
		if (!accesses[id].strides)
			return NULL;
	}
	return accesses;
}
