/* Operators whose work is a C kernel of the runtime: sorting, sets, scattering. Here stand their checks and shapes;
 * sizes that only data decides are symbols with a bound. */
#include "compiler/ops/family.h"

#include <string.h>

/* ---- TopK ---- */

static enum lth_code infer_top_k(struct lth_infer *infer)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	const lth_dim *k;
	uint32_t axis, count;
	lth_dim dims[LTH_MAX_RANK];
	enum lth_code code = lth_infer_need_rank(infer, 0, 1, LTH_MAX_RANK);
	if (!code)
		code = lth_infer_axis(infer, lth_op_int(infer->node, "axis"), type->rank, &axis);
	if (!code)
		code = lth_infer_need_ints(infer, 1, 0, &k, &count);
	if (code)
		return code;
	if (count != 1)
		return lth_infer_reject(infer, "one element", "%s has %u elements", lth_infer_input_text(infer, 1),
					count);
	code = lth_infer_require(infer, LTH_REL_LE, k[0], type->dims[axis], "k no larger than the axis");
	memcpy(dims, type->dims, type->rank * sizeof(*dims));
	dims[axis] = k[0];
	for (uint32_t i = 0; !code && i < infer->node->num_outputs; i++)
		code = lth_infer_output(infer, i, LTH_NUM_DTYPES, type->rank, dims);
	return code;
}

const struct lth_op_impl lth_impl_top_k = {.infer = infer_top_k, .builtin = "top_k"};

/* ---- sets ---- */

static enum lth_code infer_non_zero(struct lth_infer *infer)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	lth_dim elements = lth_type_elements(infer->graph, type);
	lth_dim dims[2] = {lth_dim_const(infer->dims, type->rank ? type->rank : 1),
			   lth_infer_data_dim(infer, "count", elements)};
	return lth_infer_output(infer, 0, LTH_NUM_DTYPES, 2, dims);
}

const struct lth_op_impl lth_impl_non_zero = {.infer = infer_non_zero, .builtin = "non_zero"};

static enum lth_code infer_compress(struct lth_infer *infer)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	const struct lth_attr *attr = lth_node_attr(infer->node, "axis");
	uint32_t axis = 0;
	lth_dim dims[LTH_MAX_RANK];
	enum lth_code code = lth_infer_need_rank(infer, 1, 1, 1);
	if (!code && attr)
		code = lth_infer_axis(infer, attr->i, type->rank, &axis);
	if (code)
		return code;
	lth_dim condition = lth_infer_dim(infer, 1, 0);
	if (!attr) {
		lth_dim bound = lth_dim_min(infer->dims, condition, lth_type_elements(infer->graph, type));
		dims[0] = lth_infer_data_dim(infer, "count", bound);
		return lth_infer_output(infer, 0, LTH_NUM_DTYPES, 1, dims);
	}
	memcpy(dims, type->dims, type->rank * sizeof(*dims));
	dims[axis] = lth_infer_data_dim(infer, "count", lth_dim_min(infer->dims, condition, type->dims[axis]));
	return lth_infer_output(infer, 0, LTH_NUM_DTYPES, type->rank, dims);
}

const struct lth_op_impl lth_impl_compress = {.infer = infer_compress, .builtin = "compress"};

static enum lth_code infer_unique(struct lth_infer *infer)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	const struct lth_attr *attr = lth_node_attr(infer->node, "axis");
	uint32_t axis = 0, rank = attr ? type->rank : 1;
	lth_dim dims[LTH_MAX_RANK], all = lth_type_elements(infer->graph, type);
	enum lth_code code = attr ? lth_infer_axis(infer, attr->i, type->rank, &axis) : LTH_OK;
	if (code)
		return code;
	if (attr) {
		memcpy(dims, type->dims, rank * sizeof(*dims));
		all = type->dims[axis];
	}
	lth_dim distinct = lth_infer_data_dim(infer, "count", all);
	dims[axis] = distinct;
	code = lth_infer_output(infer, 0, LTH_NUM_DTYPES, rank, dims);
	for (uint32_t i = 1; !code && i < infer->node->num_outputs; i++) /* first places, inverse, counts */
		code = lth_infer_output(infer, i, LTH_NUM_DTYPES, 1, i == 2 ? &all : &distinct);
	return code;
}

const struct lth_op_impl lth_impl_unique = {.infer = infer_unique, .builtin = "unique"};

/* Boxes [batches, boxes, 4] and scores [batches, classes, boxes]: rows of (batch, class, box). */
static enum lth_code infer_non_max_suppression(struct lth_infer *infer)
{
	struct lth_dims *dims = infer->dims;
	uint32_t count;
	enum lth_code code = lth_infer_need_rank(infer, 0, 3, 3);
	if (!code)
		code = lth_infer_need_rank(infer, 1, 3, 3);
	for (uint32_t i = 2; !code && i < infer->node->num_inputs; i++)
		code = lth_infer_need_one(infer, i);
	if (!code)
		code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, 0, 2), lth_dim_const(dims, 4),
					 "four coordinates a box");
	if (!code)
		code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, 0, 0), lth_infer_dim(infer, 1, 0),
					 "scores for each batch of boxes");
	if (!code)
		code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, 0, 1), lth_infer_dim(infer, 1, 2),
					 "a score for each box");
	if (code)
		return code;
	lth_dim most = lth_infer_dim(infer, 1, 2);
	const lth_dim *limit = lth_infer_ints(infer, 2, &count);
	int64_t number;
	if (limit && count == 1) /* a limit below 0 selects nothing */
		most = lth_dim_max(dims, lth_dim_const(dims, 0), lth_dim_min(dims, most, limit[0]));
	else if (!lth_infer_type(infer, 2))
		most = lth_dim_const(dims, 0); /* the default */
	lth_dim rows =
		lth_dim_mul(dims, most, lth_dim_mul(dims, lth_infer_dim(infer, 1, 0), lth_infer_dim(infer, 1, 1)));
	bool none = lth_dim_is_const(dims, rows, &number) && number == 0;
	lth_dim shape[2] = {none ? rows : lth_infer_data_dim(infer, "count", rows), lth_dim_const(dims, 3)};
	return lth_infer_output(infer, 0, LTH_NUM_DTYPES, 2, shape);
}

const struct lth_op_impl lth_impl_non_max_suppression = {.infer = infer_non_max_suppression,
							 .builtin = "non_max_suppression"};

/* ---- scattering ---- */

static enum lth_code infer_scatter_elements(struct lth_infer *infer)
{
	const struct lth_type *data = lth_infer_type(infer, 0), *indices = lth_infer_type(infer, 1);
	uint32_t axis;
	enum lth_code code = lth_infer_axis(infer, lth_op_int(infer->node, "axis"), data->rank, &axis);
	for (uint32_t i = 1; !code && i <= 2; i++)
		code = lth_infer_need_rank(infer, i, data->rank, data->rank);
	for (uint32_t i = 0; !code && i < data->rank; i++) {
		code = lth_infer_require(infer, LTH_REL_EQ, indices->dims[i], lth_infer_dim(infer, 2, i),
					 "updates of the indices' shape");
		if (!code && i != axis)
			code = lth_infer_require(infer, LTH_REL_LE, indices->dims[i], data->dims[i],
						 "indices no larger than the data off the axis");
	}
	return code ? code : lth_infer_like(infer, 0, 0);
}

const struct lth_op_impl lth_impl_scatter_elements = {.infer = infer_scatter_elements, .builtin = "scatter_elements"};

/* Updates have the indices' shape without tuples, then the data's axes behind a tuple. */
static enum lth_code infer_scatter_nd(struct lth_infer *infer)
{
	const struct lth_type *data = lth_infer_type(infer, 0), *indices = lth_infer_type(infer, 1);
	int64_t tuple;
	enum lth_code code = lth_infer_need_rank(infer, 1, 1, LTH_MAX_RANK);
	if (code)
		return code;
	if (!lth_dim_is_const(infer->dims, indices->dims[indices->rank - 1], &tuple))
		return lth_infer_unsupported(infer, "give the last axis of the indices a fixed size",
					     "%s has index tuples of unknown length", lth_infer_input_text(infer, 1));
	if (tuple < 0 || tuple > data->rank)
		return lth_infer_reject(infer, "index tuples within the data's rank", "tuples of %lld for rank %u",
					(long long)tuple, data->rank);
	uint32_t outer = indices->rank - 1, inner = data->rank - (uint32_t)tuple;
	code = lth_infer_need_rank(infer, 2, outer + inner, outer + inner);
	for (uint32_t i = 0; !code && i < outer + inner; i++) {
		lth_dim wanted = i < outer ? indices->dims[i] : data->dims[(uint32_t)tuple + i - outer];
		code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, 2, i), wanted,
					 "updates of the indices' shape and the data's slices");
	}
	return code ? code : lth_infer_like(infer, 0, 0);
}

const struct lth_op_impl lth_impl_scatter_nd = {.infer = infer_scatter_nd, .builtin = "scatter_nd"};
