/* Moving elements along axes: Transpose, Concat, Split, Slice, DepthToSpace, SpaceToDepth, Trilu, ReverseSequence. */
#include "compiler/ops/family.h"

#include <string.h>

/* ---- Transpose ---- */

static void permutation(const struct lth_node *node, uint32_t rank, uint32_t *out)
{
	const int64_t *perm;
	uint32_t count;
	bool given = lth_node_ints(node, "perm", &perm, &count);
	for (uint32_t i = 0; i < rank; i++)
		out[i] = given ? (uint32_t)(perm[i] < 0 ? perm[i] + rank : perm[i]) : rank - 1 - i;
}

static void transpose_contents(struct lth_infer *infer, const uint32_t *order)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	int64_t shape[LTH_MAX_RANK], in[LTH_MAX_RANK], strides[LTH_MAX_RANK], stride = 1;
	if (!lth_type_static(infer->graph, type, shape))
		return;
	for (uint32_t axis = type->rank; axis-- > 0; stride *= shape[axis]) {
		if (stride > LTH_MAX_CONTENTS || shape[axis] > LTH_MAX_CONTENTS) /* too many to be followed */
			return;
		in[axis] = stride;
	}
	for (uint32_t i = 0; i < type->rank; i++)
		strides[i] = in[order[i]];
	lth_infer_walk_contents(infer, 0, strides);
}

static enum lth_code infer_transpose(struct lth_infer *infer)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	const int64_t *perm;
	uint32_t count, seen = 0, order[LTH_MAX_RANK], axis;
	lth_dim dims[LTH_MAX_RANK];
	if (lth_node_ints(infer->node, "perm", &perm, &count)) {
		if (count != type->rank)
			return lth_infer_reject(infer, "one entry an axis", "perm of %u entries for rank %u", count,
						type->rank);
		for (uint32_t i = 0; i < count; i++) {
			enum lth_code code = lth_infer_axis(infer, perm[i], count, &axis);
			if (code)
				return code;
			if (seen & 1u << axis)
				return lth_infer_reject(infer, "each axis once", "perm names axis %u twice", axis);
			seen |= 1u << axis;
		}
	}
	permutation(infer->node, type->rank, order);
	for (uint32_t i = 0; i < type->rank; i++)
		dims[i] = type->dims[order[i]];
	enum lth_code code = lth_infer_output(infer, 0, LTH_NUM_DTYPES, type->rank, dims);
	if (!code)
		transpose_contents(infer, order);
	return code;
}

static lth_sx transpose_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
				const lth_sx *index)
{
	(void)output;
	uint32_t rank = lth_rank(lower, node->inputs[0]), order[LTH_MAX_RANK];
	lth_sx at[LTH_MAX_RANK];
	permutation(node, rank, order);
	for (uint32_t i = 0; i < rank; i++)
		at[order[i]] = index[i];
	return lth_read(lower, node->inputs[0], at);
}

const struct lth_op_impl lth_impl_transpose = {.infer = infer_transpose, .element = transpose_element};

/* ---- Concat, Split ---- */

static void concat_contents(struct lth_infer *infer)
{
	uint32_t list[LTH_MAX_CONTENTS], total = 0;
	bool real = lth_is_float(infer->out_dtypes[0]);
	for (uint32_t i = 0; i < infer->node->num_inputs; i++) {
		uint32_t count;
		const uint32_t *part = real ? lth_infer_reals(infer, i, &count) : lth_infer_ints(infer, i, &count);
		if (!part || count > LTH_MAX_CONTENTS - total)
			return;
		memcpy(list + total, part, count * sizeof(*part));
		total += count;
	}
	if (real)
		lth_infer_set_reals(infer, 0, list, total);
	else
		lth_infer_set_ints(infer, 0, list, total);
}

static enum lth_code infer_concat(struct lth_infer *infer)
{
	const struct lth_type *first = lth_infer_type(infer, 0);
	uint32_t axis, rank = first->rank;
	lth_dim dims[LTH_MAX_RANK];
	enum lth_code code = lth_infer_axis(infer, lth_op_int(infer->node, "axis"), rank, &axis);
	if (code)
		return code;
	memcpy(dims, first->dims, rank * sizeof(*dims));
	for (uint32_t i = 1; i < infer->node->num_inputs; i++) {
		const struct lth_type *type = lth_infer_type(infer, i);
		if (!type)
			return lth_infer_reject(infer, NULL, "input %u is missing", i);
		if (type->rank != rank)
			return lth_infer_reject(infer, "inputs of one rank", "%s has shape %s, input 0 has rank %u",
						lth_infer_input_text(infer, i), lth_infer_shape_text(infer, type),
						rank);
		for (uint32_t k = 0; k < rank; k++) {
			if (k == axis)
				dims[k] = lth_dim_add(infer->dims, dims[k], type->dims[k]);
			else if ((code = lth_infer_unify(infer, dims[k], type->dims[k], "equal sizes off the axis",
							 &dims[k])))
				return code;
		}
	}
	code = lth_infer_output(infer, 0, LTH_NUM_DTYPES, rank, dims);
	if (!code && rank == 1)
		concat_contents(infer);
	return code;
}

static lth_sx concat_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
			     const lth_sx *index)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	struct lth_dims *dims = lth_lower_graph(lower)->dims;
	uint32_t rank = lth_rank(lower, node->outputs[output]);
	int64_t axis = lth_op_int(node, "axis"), extent;
	axis = axis < 0 ? axis + rank : axis;
	lth_dim begin = lth_dim_const(dims, 0);
	lth_sx at[LTH_MAX_RANK], result = LTH_SX_NONE;
	memcpy(at, index, rank * sizeof(*at));
	for (uint32_t i = 0; i < node->num_inputs; i++) {
		lth_dim size = lth_extent_dim(lower, node->inputs[i], (int32_t)axis);
		if (lth_dim_is_const(dims, size, &extent) && extent == 0)
			continue;
		lth_sx local = lth_sub(pool, index[axis], lth_sx_dim(pool, begin));
		at[axis] = node->num_inputs == 1 ? local : lth_safe_index(pool, local, lth_sx_dim(pool, size));
		lth_sx part = lth_read(lower, node->inputs[i], at);
		/* Of the parts that begin at or before the index, the last is the one. */
		result = result == LTH_SX_NONE ? part
					       : lth_sx_select(pool, lth_lt(pool, index[axis], lth_sx_dim(pool, begin)),
							       result, part);
		begin = lth_dim_add(dims, begin, size);
	}
	if (result == LTH_SX_NONE) /* all parts are empty: nothing will be read */
		result = lth_sx_const(pool, lth_compute_dtype(lth_value_dtype(lower, node->outputs[output])), 0);
	return result;
}

const struct lth_op_impl lth_impl_concat = {.infer = infer_concat, .element = concat_element};

/* Size of part `part` along the axis: as listed, or even ones of which the last may be smaller. */
static lth_dim split_size(struct lth_graph *graph, const struct lth_node *node, uint32_t axis, uint32_t part)
{
	const struct lth_contents *sizes = lth_node_input(node, 1) == LTH_NONE
						   ? NULL
						   : lth_value_contents(graph, node->inputs[1]);
	if (sizes)
		return sizes->dims[part];
	lth_dim extent = graph->values[node->inputs[0]].type.dims[axis];
	int64_t parts = lth_node_int(node, "num_outputs", node->num_outputs);
	lth_dim even = lth_dim_ceildiv(graph->dims, extent, lth_dim_const(graph->dims, parts));
	if (part + 1 < parts)
		return even;
	return lth_dim_sub(graph->dims, extent, lth_dim_mul(graph->dims, even, lth_dim_const(graph->dims, parts - 1)));
}

static enum lth_code check_split(struct lth_infer *infer, uint32_t axis)
{
	const lth_dim *sizes;
	uint32_t count;
	lth_dim total = lth_dim_const(infer->dims, 0);
	int64_t parts = lth_node_int(infer->node, "num_outputs", infer->node->num_outputs);
	bool told = lth_node_attr(infer->node, "num_outputs") != NULL, sized = lth_infer_type(infer, 1) != NULL;
	if (told == sized)
		return lth_infer_reject(infer, "sizes or num_outputs", told ? "both" : "neither");
	if (!sized)
		return parts == infer->node->num_outputs
			       ? LTH_OK
			       : lth_infer_reject(infer, "as many outputs as `num_outputs`", "%u outputs, not %lld",
						  infer->node->num_outputs, (long long)parts);
	enum lth_code code = lth_infer_need_ints(infer, 1, 0, &sizes, &count);
	if (code)
		return code;
	if (count != infer->node->num_outputs)
		return lth_infer_reject(infer, "one size an output", "%u sizes for %u outputs", count,
					infer->node->num_outputs);
	for (uint32_t i = 0; i < count; i++)
		total = lth_dim_add(infer->dims, total, sizes[i]);
	return lth_infer_require(infer, LTH_REL_EQ, total, lth_infer_dim(infer, 0, axis), "sizes that fill the axis");
}

static enum lth_code infer_split(struct lth_infer *infer)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	uint32_t axis;
	lth_dim dims[LTH_MAX_RANK];
	enum lth_code code = lth_infer_axis(infer, lth_op_int(infer->node, "axis"), type->rank, &axis);
	if (!code)
		code = check_split(infer, axis);
	memcpy(dims, type->dims, type->rank * sizeof(*dims));
	uint32_t known, begin = 0;
	const lth_dim *ints = type->rank == 1 ? lth_infer_ints(infer, 0, &known) : NULL;
	for (uint32_t i = 0; !code && i < infer->node->num_outputs; i++) {
		int64_t size;
		dims[axis] = split_size(infer->graph, infer->node, axis, i);
		code = lth_infer_output(infer, i, infer->out_dtypes[0], type->rank, dims);
		if (code || !ints || !lth_dim_is_const(infer->dims, dims[axis], &size) || size > known - begin)
			continue;
		lth_infer_set_ints(infer, i, ints + begin, (uint32_t)size);
		begin += (uint32_t)size;
	}
	return code;
}

static lth_sx split_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output, const lth_sx *index)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	struct lth_graph *graph = lth_lower_graph(lower);
	uint32_t rank = lth_rank(lower, node->inputs[0]);
	int64_t given = lth_op_int(node, "axis");
	uint32_t axis = (uint32_t)(given < 0 ? given + rank : given);
	lth_dim begin = lth_dim_const(graph->dims, 0);
	lth_sx at[LTH_MAX_RANK];
	for (uint32_t i = 0; i < output; i++)
		begin = lth_dim_add(graph->dims, begin, split_size(graph, node, axis, i));
	memcpy(at, index, rank * sizeof(*at));
	at[axis] = lth_add(pool, index[axis], lth_sx_dim(pool, begin));
	return lth_read(lower, node->inputs[0], at);
}

const struct lth_op_impl lth_impl_split = {.infer = infer_split, .element = split_element};

/* ---- blocks of pixels ---- */

static enum lth_code infer_blocks(struct lth_infer *infer)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	int64_t block = lth_op_int(infer->node, "blocksize");
	bool to_space = lth_op_id(infer->node->op) == LTH_OP_ID_DepthToSpace;
	enum lth_code code = lth_infer_need_rank(infer, 0, 4, 4);
	if (code)
		return code;
	if (block < 1 || block > 1 << 20)
		return lth_infer_reject(infer, "1 or more", "blocksize %lld", (long long)block);
	struct lth_dims *dims = infer->dims;
	lth_dim size = lth_dim_const(dims, block), area = lth_dim_const(dims, block * block);
	const lth_dim *d = type->dims;
	lth_dim out[4] = {d[0]};
	if (to_space) {
		code = lth_infer_require(infer, LTH_REL_DIVIDES, area, d[1], "channels divisible by blocksize squared");
		out[1] = lth_dim_floordiv(dims, d[1], area);
		out[2] = lth_dim_mul(dims, d[2], size);
		out[3] = lth_dim_mul(dims, d[3], size);
	} else {
		code = lth_infer_require(infer, LTH_REL_DIVIDES, size, d[2], "a height divisible by blocksize");
		if (!code)
			code = lth_infer_require(infer, LTH_REL_DIVIDES, size, d[3], "a width divisible by blocksize");
		out[1] = lth_dim_mul(dims, d[1], area);
		out[2] = lth_dim_floordiv(dims, d[2], size);
		out[3] = lth_dim_floordiv(dims, d[3], size);
	}
	return code ? code : lth_infer_output(infer, 0, LTH_NUM_DTYPES, 4, out);
}

/* DCR: the place in the block is the outer part of the channel; CRD: the inner one. */
static lth_sx depth_to_space_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
				     const lth_sx *index)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx block = lth_sx_int(pool, lth_op_int(node, "blocksize"));
	lth_sx place = lth_add(pool, lth_mul(pool, lth_modulo(pool, index[2], block), block),
			       lth_modulo(pool, index[3], block));
	lth_sx channel =
		lth_op_string_is(node, "mode", "DCR")
			? lth_add(pool, lth_mul(pool, place, lth_extent(lower, node->outputs[output], 1)), index[1])
			: lth_add(pool, lth_mul(pool, index[1], lth_mul(pool, block, block)), place);
	lth_sx at[4] = {index[0], channel, lth_floordiv(pool, index[2], block), lth_floordiv(pool, index[3], block)};
	return lth_read(lower, node->inputs[0], at);
}

const struct lth_op_impl lth_impl_depth_to_space = {.infer = infer_blocks, .element = depth_to_space_element};

static lth_sx space_to_depth_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
				     const lth_sx *index)
{
	(void)output;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx block = lth_sx_int(pool, lth_op_int(node, "blocksize")), area = lth_mul(pool, block, block);
	lth_sx channels = lth_extent(lower, node->inputs[0], 1);
	bool outer = lth_op_string_is(node, "mode", "DCR");
	lth_sx place = outer ? lth_floordiv(pool, index[1], channels) : lth_modulo(pool, index[1], area);
	lth_sx channel = outer ? lth_modulo(pool, index[1], channels) : lth_floordiv(pool, index[1], area);
	lth_sx at[4] = {index[0], channel,
			lth_add(pool, lth_mul(pool, index[2], block), lth_floordiv(pool, place, block)),
			lth_add(pool, lth_mul(pool, index[3], block), lth_modulo(pool, place, block))};
	return lth_read(lower, node->inputs[0], at);
}

const struct lth_op_impl lth_impl_space_to_depth = {.infer = infer_blocks, .element = space_to_depth_element};

/* ---- Trilu, ReverseSequence ---- */

static enum lth_code infer_trilu(struct lth_infer *infer)
{
	enum lth_code code = lth_infer_need_rank(infer, 0, 2, LTH_MAX_RANK);
	if (!code)
		code = lth_infer_need_one(infer, 1);
	return code ? code : lth_infer_like(infer, 0, 0);
}

static lth_sx trilu_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output, const lth_sx *index)
{
	(void)output;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	uint32_t rank = lth_rank(lower, node->inputs[0]);
	lth_sx x = lth_read(lower, node->inputs[0], index);
	lth_sx k = lth_node_input(node, 1) == LTH_NONE ? lth_sx_int(pool, 0) : lth_read_scalar(lower, node->inputs[1]);
	lth_sx diagonal = lth_sub(pool, index[rank - 1], index[rank - 2]);
	lth_sx keep = lth_op_int(node, "upper") ? lth_le(pool, k, diagonal) : lth_le(pool, diagonal, k);
	return lth_sx_select(pool, keep, x, lth_same_const(pool, x, 0));
}

const struct lth_op_impl lth_impl_trilu = {.infer = infer_trilu, .element = trilu_element};

static enum lth_code infer_reverse_sequence(struct lth_infer *infer)
{
	int64_t batch = lth_op_int(infer->node, "batch_axis"), time = lth_op_int(infer->node, "time_axis");
	enum lth_code code = lth_infer_need_rank(infer, 0, 2, LTH_MAX_RANK);
	if (!code)
		code = lth_infer_need_rank(infer, 1, 1, 1);
	if (!code && (batch < 0 || batch > 1 || time != 1 - batch))
		code = lth_infer_reject(infer, "0 and 1 in either order", "batch_axis %lld and time_axis %lld",
					(long long)batch, (long long)time);
	if (!code)
		code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, 1, 0),
					 lth_infer_dim(infer, 0, (uint32_t)batch), "one length a sequence");
	return code ? code : lth_infer_like(infer, 0, 0);
}

static lth_sx reverse_sequence_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
				       const lth_sx *index)
{
	(void)output;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	uint32_t rank = lth_rank(lower, node->inputs[0]);
	int64_t batch = lth_op_int(node, "batch_axis"), time = lth_op_int(node, "time_axis");
	lth_sx at[LTH_MAX_RANK];
	memcpy(at, index, rank * sizeof(*at));
	lth_sx length = lth_read(lower, node->inputs[1], &index[batch]);
	lth_sx mirrored = lth_sub(pool, lth_sub(pool, length, lth_sx_int(pool, 1)), index[time]);
	lth_sx inside = lth_lt(pool, index[time], length);
	lth_sx extent = lth_extent(lower, node->inputs[0], (int32_t)time);
	at[time] = lth_sx_check(pool, lth_sx_select(pool, inside, mirrored, index[time]), extent);
	return lth_read(lower, node->inputs[0], at);
}

const struct lth_op_impl lth_impl_reverse_sequence = {.infer = infer_reverse_sequence,
						      .element = reverse_sequence_element};
