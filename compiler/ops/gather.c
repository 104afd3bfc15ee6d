/* Reading by index: Gather, GatherElements, GatherND; and TensorScatter, where each element knows which update it gets.
 * An index out of range is an error of the run. */
#include "compiler/ops/family.h"

#include <string.h>

static void gather_contents(struct lth_infer *infer)
{
	uint32_t count, wanted;
	int32_t from[LTH_MAX_CONTENTS];
	const lth_dim *indices = lth_infer_ints(infer, 1, &count);
	int64_t extent, index;
	if (!indices || lth_infer_rank(infer, 0) != 1 || !lth_infer_wants_contents(infer, 0, &wanted) ||
	    !lth_dim_is_const(infer->dims, lth_infer_dim(infer, 0, 0), &extent))
		return;
	for (uint32_t i = 0; i < count; i++) {
		if (!lth_dim_is_const(infer->dims, indices[i], &index))
			return;
		index = index < 0 ? index + extent : index;
		if (index < 0 || index >= extent)
			return;
		from[i] = (int32_t)index;
	}
	lth_infer_move_contents(infer, 0, from, count);
}

/* Constant indices are checked now, against an extent that is known. */
static enum lth_code check_indices(struct lth_infer *infer, lth_dim extent)
{
	uint32_t count;
	int64_t size, index;
	const lth_dim *indices = lth_infer_ints(infer, 1, &count);
	if (!indices || !lth_dim_is_const(infer->dims, extent, &size))
		return LTH_OK;
	for (uint32_t i = 0; i < count; i++)
		if (lth_dim_is_const(infer->dims, indices[i], &index) && (index < -size || index >= size))
			return lth_infer_reject(infer,
						lth_arena_printf(infer->graph->arena, "in [%lld, %lld)",
								 -(long long)size, (long long)size),
						"index %lld", (long long)index);
	return LTH_OK;
}

static enum lth_code infer_gather(struct lth_infer *infer)
{
	const struct lth_type *data = lth_infer_type(infer, 0), *indices = lth_infer_type(infer, 1);
	uint32_t axis, rank = data->rank + indices->rank - 1;
	lth_dim dims[2 * LTH_MAX_RANK];
	enum lth_code code = lth_infer_axis(infer, lth_op_int(infer->node, "axis"), data->rank, &axis);
	if (!code)
		code = check_indices(infer, data->dims[axis]);
	if (code)
		return code;
	memcpy(dims, data->dims, axis * sizeof(*dims));
	memcpy(dims + axis, indices->dims, indices->rank * sizeof(*dims));
	memcpy(dims + axis + indices->rank, data->dims + axis + 1, (data->rank - axis - 1) * sizeof(*dims));
	code = lth_infer_output(infer, 0, LTH_NUM_DTYPES, rank, dims);
	if (!code)
		gather_contents(infer);
	return code;
}

static lth_sx gather_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
			     const lth_sx *index)
{
	(void)output;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	uint32_t rank = lth_rank(lower, node->inputs[0]), taken = lth_rank(lower, node->inputs[1]);
	int64_t given = lth_op_int(node, "axis");
	uint32_t axis = (uint32_t)(given < 0 ? given + rank : given);
	lth_sx at[LTH_MAX_RANK];
	memcpy(at, index, axis * sizeof(*at));
	at[axis] = lth_data_index(pool, lth_read(lower, node->inputs[1], index + axis),
				  lth_extent(lower, node->inputs[0], (int32_t)axis));
	memcpy(at + axis + 1, index + axis + taken, (rank - axis - 1) * sizeof(*at));
	return lth_read(lower, node->inputs[0], at);
}

const struct lth_op_impl lth_impl_gather = {.infer = infer_gather, .element = gather_element};

static enum lth_code infer_gather_elements(struct lth_infer *infer)
{
	const struct lth_type *data = lth_infer_type(infer, 0), *indices = lth_infer_type(infer, 1);
	uint32_t axis;
	enum lth_code code = lth_infer_need_rank(infer, 1, data->rank, data->rank);
	if (!code)
		code = lth_infer_axis(infer, lth_op_int(infer->node, "axis"), data->rank, &axis);
	for (uint32_t i = 0; !code && i < data->rank; i++)
		if (i != axis)
			code = lth_infer_require(infer, LTH_REL_LE, indices->dims[i], data->dims[i],
						 "indices no larger than the data off the axis");
	return code ? code : lth_infer_like(infer, 0, 1);
}

static lth_sx gather_elements_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
				      const lth_sx *index)
{
	(void)output;
	uint32_t rank = lth_rank(lower, node->inputs[0]);
	int64_t axis = lth_op_int(node, "axis");
	lth_sx at[LTH_MAX_RANK];
	axis = axis < 0 ? axis + rank : axis;
	memcpy(at, index, rank * sizeof(*at));
	at[axis] = lth_data_index(lth_lower_pool(lower), lth_read(lower, node->inputs[1], index),
				  lth_extent(lower, node->inputs[0], (int32_t)axis));
	return lth_read(lower, node->inputs[0], at);
}

const struct lth_op_impl lth_impl_gather_elements = {.infer = infer_gather_elements,
						     .element = gather_elements_element};

static enum lth_code infer_gather_nd(struct lth_infer *infer)
{
	const struct lth_type *data = lth_infer_type(infer, 0), *indices = lth_infer_type(infer, 1);
	int64_t batch = lth_op_int(infer->node, "batch_dims"), tuple;
	lth_dim dims[2 * LTH_MAX_RANK];
	enum lth_code code = lth_infer_need_rank(infer, 1, 1, LTH_MAX_RANK);
	if (code)
		return code;
	if (!lth_dim_is_const(infer->dims, indices->dims[indices->rank - 1], &tuple))
		return lth_infer_unsupported(infer, "give the last axis of the indices a fixed size",
					     "the output's rank depends on the last axis of %s of shape %s",
					     lth_infer_input_text(infer, 1), lth_infer_shape_text(infer, indices));
	if (batch < 0 || batch >= indices->rank || batch > data->rank || tuple < 1 || tuple > data->rank - batch)
		return lth_infer_reject(infer, "batch_dims and an index tuple within the data's rank",
					"batch_dims %lld and tuples of %lld for data of rank %u", (long long)batch,
					(long long)tuple, data->rank);
	uint32_t rank = indices->rank - 1, first = (uint32_t)(batch + tuple);
	memcpy(dims, indices->dims, rank * sizeof(*dims));
	for (uint32_t i = 0; !code && i < batch; i++)
		code = lth_infer_unify(infer, indices->dims[i], data->dims[i], "equal batch sizes", &dims[i]);
	if (code)
		return code;
	memcpy(dims + rank, data->dims + first, (data->rank - first) * sizeof(*dims));
	return lth_infer_output(infer, 0, LTH_NUM_DTYPES, rank + data->rank - first, dims);
}

static lth_sx gather_nd_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
				const lth_sx *index)
{
	(void)output;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	uint32_t rank = lth_rank(lower, node->inputs[0]), indices_rank = lth_rank(lower, node->inputs[1]);
	uint32_t batch = (uint32_t)lth_op_int(node, "batch_dims");
	int64_t tuple = 0;
	lth_sx at[LTH_MAX_RANK], where[LTH_MAX_RANK];
	lth_dim_is_const(lth_lower_graph(lower)->dims, lth_extent_dim(lower, node->inputs[1], -1), &tuple);
	memcpy(where, index, (indices_rank - 1) * sizeof(*where));
	memcpy(at, index, batch * sizeof(*at));
	for (uint32_t k = 0; k < tuple; k++) {
		where[indices_rank - 1] = lth_sx_int(pool, k);
		at[batch + k] = lth_data_index(pool, lth_read(lower, node->inputs[1], where),
					       lth_extent(lower, node->inputs[0], (int32_t)(batch + k)));
	}
	uint32_t first = batch + (uint32_t)tuple;
	memcpy(at + first, index + indices_rank - 1, (rank - first) * sizeof(*at));
	return lth_read(lower, node->inputs[0], at);
}

const struct lth_op_impl lth_impl_gather_nd = {.infer = infer_gather_nd, .element = gather_nd_element};

/* ---- TensorScatter ---- */

static enum lth_code infer_tensor_scatter(struct lth_infer *infer)
{
	const struct lth_type *cache = lth_infer_type(infer, 0), *update = lth_infer_type(infer, 1);
	uint32_t axis;
	enum lth_code code = lth_infer_axis(infer, lth_op_int(infer->node, "axis"), cache->rank, &axis);
	if (!code && axis == 0)
		code = lth_infer_reject(infer, "an axis behind the batch", "axis 0");
	if (!code)
		code = lth_infer_need_rank(infer, 1, cache->rank, cache->rank);
	for (uint32_t i = 0; !code && i < cache->rank; i++)
		code = lth_infer_require(infer, i == axis ? LTH_REL_LE : LTH_REL_EQ, update->dims[i], cache->dims[i],
					 "an update of the cache's shape, no longer along the axis");
	if (!code && lth_infer_type(infer, 2)) {
		code = lth_infer_need_rank(infer, 2, 1, 1);
		if (!code)
			code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, 2, 0), cache->dims[0],
						 "one place a batch entry");
	}
	return code ? code : lth_infer_like(infer, 0, 0);
}

static lth_sx tensor_scatter_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
				     const lth_sx *index)
{
	(void)output;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	uint32_t rank = lth_rank(lower, node->inputs[0]);
	int64_t given = lth_op_int(node, "axis");
	uint32_t axis = (uint32_t)(given < 0 ? given + rank : given);
	lth_sx at[LTH_MAX_RANK], place = index[axis], length = lth_extent(lower, node->inputs[1], (int32_t)axis);
	memcpy(at, index, rank * sizeof(*at));
	lth_sx room = lth_extent(lower, node->inputs[0], (int32_t)axis);
	bool circular = lth_op_string_is(node, "mode", "circular");
	if (lth_node_input(node, 2) != LTH_NONE) {
		lth_sx first = lth_read(lower, node->inputs[2], index);
		/* where all of it fits */
		lth_sx places = lth_add(pool, lth_sub(pool, room, length), lth_sx_int(pool, 1));
		place = lth_sub(pool, place, lth_sx_check(pool, first, circular ? room : places));
	}
	if (circular)
		place = lth_modulo(pool, place, room);
	at[axis] = lth_safe_index(pool, place, length);
	lth_sx updated = lth_in_range(pool, place, lth_sx_int(pool, 0), length);
	lth_sx fresh = lth_read(lower, node->inputs[1], at);
	return lth_sx_select(pool, updated, fresh, lth_read(lower, node->inputs[0], index));
}

const struct lth_op_impl lth_impl_tensor_scatter = {.infer = infer_tensor_scatter, .element = tensor_scatter_element};
