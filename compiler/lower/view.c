/* Which nodes are views: those whose output's element is an element of one input at an address that is linear in the
 * output's indices. The operator's own element function tells, so no operator has to say it twice. */
#include "compiler/lower/lower_group.h"

#include "compiler/ops/op.h"

#include <string.h>

/* The dim that an index expression is, or LTH_DIM_NONE. */
static lth_dim dim_of(const struct lth_sx_pool *pool, lth_sx x)
{
	const struct lth_sx_node *node = lth_sx_get(pool, x);
	if (node->kind == LTH_SX_CONST)
		return lth_dim_const(lth_sx_dims(pool), node->i);
	return node->kind == LTH_SX_DIM ? node->dim : LTH_DIM_NONE;
}

bool lth_lower_view(struct lth_graph *graph, const struct lth_access *accesses, lth_node_id id, uint32_t output,
		    struct lth_access *out)
{
	const struct lth_node *node = &graph->nodes[id];
	struct lth_diag ignored = {0};
	struct lth_lower_group group = {
		.nodes = &id, .num_nodes = 1, .outputs = &node->outputs[output], .num_outputs = 1};
	static const struct lth_lower_target any = {.vector_bytes = 16, .registers = 16};
	struct lth_lower lower = {.graph = graph,
				  .arena = graph->arena,
				  .accesses = accesses,
				  .group = &group,
				  .target = &any,
				  .diag = &ignored,
				  .anchor = LTH_NONE,
				  .word = LTH_SX_NONE};
	lth_sx index[LTH_MAX_RANK], zeros[LTH_MAX_AXES];
	lower.pool = lth_sx_pool_create(graph->arena, graph->dims);
	lower.fn = lth_loop_create(graph->arena, 0);
	if (!lower.pool || !lower.fn)
		return false;
	const struct lth_type *type = &graph->values[node->outputs[output]].type;
	for (uint32_t axis = 0; axis < type->rank; axis++) {
		lth_sx_set_axis(lower.pool, axis, type->dims[axis], axis);
		index[axis] = lth_sx_axis(lower.pool, axis);
	}
	lth_sx x = lth_read(&lower, node->outputs[output], index);
	if (x == LTH_SX_NONE || lth_sx_get(lower.pool, x)->kind != LTH_SX_LOAD)
		return false;
	lth_value_id from = lower.operands[lth_sx_get(lower.pool, x)->id].value;
	lth_sx address = lth_sx_get(lower.pool, x)->operands[0];
	if (lth_sx_get(lower.pool, x)->memory != type->dtype)
		return false;
	lth_dim *strides = lth_arena_array(graph->arena, type->rank + 1, sizeof(*strides));
	for (uint32_t axis = 0; strides && axis < type->rank; axis++) {
		lth_sx stride;
		if (!lth_sx_stride(lower.pool, address, axis, &stride))
			return false;
		strides[axis] = dim_of(lower.pool, stride);
		if (strides[axis] == LTH_DIM_NONE)
			return false;
	}
	memset(zeros, 0xff, sizeof(zeros));
	for (uint32_t axis = 0; axis < type->rank; axis++)
		zeros[axis] = lth_sx_int(lower.pool, 0);
	lth_sx start = lth_sx_substitute(lower.pool, address, zeros, LTH_MAX_AXES);
	lth_dim offset = start == LTH_SX_NONE ? LTH_DIM_NONE : dim_of(lower.pool, start);
	if (!strides || offset == LTH_DIM_NONE)
		return false;
	*out = (struct lth_access){.base = accesses[from].base,
				   .strides = strides,
				   .offset = lth_dim_add(graph->dims, accesses[from].offset, offset)};
	return out->offset != LTH_DIM_NONE;
}
