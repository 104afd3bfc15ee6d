/* Reductions over axes: the Reduce family, ArgMax and ArgMin, running sums and products. */
#include "compiler/ops/axes.h"
#include "compiler/ops/family.h"

#include <assert.h>
#include <string.h>

/* ---- Reduce* ---- */

/* The reduced axes: all, when none are listed and that is not to mean nothing. */
static void reduced_axes(struct lth_graph *graph, const struct lth_node *node, struct lth_axes *out)
{
	uint32_t rank = graph->values[node->inputs[0]].type.rank;
	lth_value_id input = lth_node_input(node, 1);
	const struct lth_contents *list = input == LTH_NONE ? NULL : lth_value_contents(graph, input);
	lth_node_axes(graph, node, 1, rank, out);
	if ((list && list->count) || lth_op_int(node, "noop_with_empty_axes"))
		return;
	out->flags = (1u << rank) - 1;
	for (uint32_t i = 0; i < rank; i++)
		out->in[i] = lth_dim_const(graph->dims, 1);
}

/* The reductions that models do on shapes. */
static void reduce_contents(struct lth_infer *infer, const struct lth_axes *axes)
{
	uint32_t count;
	struct lth_dims *dims = infer->dims;
	enum lth_op_id id = lth_op_id(infer->node->op);
	const lth_dim *ints = lth_infer_ints(infer, 0, &count);
	const lth_real *reals = ints ? NULL : lth_infer_reals(infer, 0, &count);
	bool max = id == LTH_OP_ID_ReduceMax, min = id == LTH_OP_ID_ReduceMin;
	bool sum = id == LTH_OP_ID_ReduceSum && ints, product = id == LTH_OP_ID_ReduceProd && ints;
	if ((!ints && !reals) || count == 0 || axes->flags + 1 != 1u << axes->rank || !(max || min || sum || product))
		return;
	uint32_t result = ints ? ints[0] : reals[0];
	for (uint32_t i = 1; i < count; i++) {
		if (product)
			result = lth_dim_mul(dims, result, ints[i]);
		else if (sum)
			result = lth_dim_add(dims, result, ints[i]);
		else if (ints)
			result = max ? lth_dim_max(dims, result, ints[i]) : lth_dim_min(dims, result, ints[i]);
		else
			result = lth_real_apply(dims, max ? LTH_EXPR_RMAX : LTH_EXPR_RMIN, result, reals[i]);
	}
	if (ints)
		lth_infer_set_ints(infer, 0, &result, 1);
	else
		lth_infer_set_reals(infer, 0, &result, 1);
}

/* `extent` where `flag` is 1, else 1. A symbol's is one term, so that a product over axes does not grow to 2^rank. */
static lth_dim extent_if(struct lth_dims *dims, lth_dim flag, lth_dim extent)
{
	lth_dim one = lth_dim_const(dims, 1);
	int64_t min, max;
	lth_dim_range(dims, extent, &min, &max);
	if (min == max)
		return lth_dim_choose(dims, flag, extent, one);
	lth_dim least = min < 1 ? lth_dim_sub(dims, one, flag) : one;
	return lth_dim_max(dims, least, lth_dim_mul(dims, flag, extent));
}

static enum lth_code infer_reduce(struct lth_infer *infer)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	struct lth_dims *d = infer->dims;
	lth_dim dims[LTH_MAX_RANK], one = lth_dim_const(d, 1);
	uint32_t rank = type->rank, listed = 0;
	struct lth_axes axes;
	enum lth_code code = lth_infer_axes(infer, 1, type->rank, &axes);
	if (code)
		return code;
	reduced_axes(infer->graph, infer->node, &axes);
	if (!lth_op_int(infer->node, "keepdims")) {
		/* Each listed axis is another: so many are dropped, whichever they are. */
		if (axes.known)
			listed = (uint32_t)__builtin_popcount(axes.flags);
		else
			lth_infer_ints(infer, 1, &listed);
		if (listed > type->rank)
			return lth_infer_reject(infer, "each axis once", "%u axes for rank %u", listed, type->rank);
		rank = type->rank - listed;
		for (uint32_t j = 0; j < rank; j++) {
			dims[j] = lth_dim_const(d, 0);
			for (uint32_t i = 0; i < type->rank; i++)
				dims[j] = lth_dim_add(d, dims[j],
						      lth_dim_mul(d, type->dims[i], lth_axes_is_kept(d, &axes, i, j)));
		}
	} else {
		for (uint32_t i = 0; i < rank; i++)
			dims[i] = extent_if(d, lth_dim_sub(d, one, axes.in[i]), type->dims[i]);
	}
	code = lth_infer_output(infer, 0, LTH_NUM_DTYPES, rank, dims);
	if (!code && axes.known)
		reduce_contents(infer, &axes);
	return code;
}

static bool is_extreme(enum lth_op_id id)
{
	return id == LTH_OP_ID_ReduceMax || id == LTH_OP_ID_ReduceMin;
}

/* The type that sums are kept in: integers in their own if it is wide, roots and logarithms of integers in double. */
static enum lth_dtype sum_dtype(struct lth_lower *lower, const struct lth_node *node)
{
	enum lth_dtype compute = lth_compute_dtype(lth_value_dtype(lower, node->inputs[0]));
	enum lth_op_id id = lth_op_id(node->op);
	if (lth_is_float(compute) || is_extreme(id))
		return compute;
	if (id == LTH_OP_ID_ReduceL2 || id == LTH_OP_ID_ReduceLogSum || id == LTH_OP_ID_ReduceLogSumExp)
		return LTH_DTYPE_F64;
	return lth_dtype_bits(compute) >= 32 ? compute : LTH_DTYPE_I64;
}

static enum lth_code reduce_reduction(struct lth_lower *lower, const struct lth_node *node, struct lth_reduction *out,
				      struct lth_diag *diag)
{
	(void)diag;
	enum lth_op_id id = lth_op_id(node->op);
	struct lth_dims *dims = lth_lower_graph(lower)->dims;
	enum lth_dtype dtype = sum_dtype(lower, node);
	struct lth_axes axes;
	reduced_axes(lth_lower_graph(lower), node, &axes);
	for (uint32_t i = 0; i < axes.rank; i++)
		if (!axes.known || axes.flags & 1u << i)
			out->extents[out->num_axes++] =
				extent_if(dims, axes.in[i], lth_extent_dim(lower, node->inputs[0], (int32_t)i));
	out->row_axes = (1u << lth_rank(lower, node->outputs[0])) - 1;
	if (id == LTH_OP_ID_ReduceLogSumExp) {
		out->stages[0].combiner = LTH_COMBINE_MAX;
		out->stages[0].dtype = dtype;
		out->num_stages = 1;
	}
	out->stages[out->num_stages].combiner = id == LTH_OP_ID_ReduceProd  ? LTH_COMBINE_PROD
						: id == LTH_OP_ID_ReduceMax ? LTH_COMBINE_MAX
						: id == LTH_OP_ID_ReduceMin ? LTH_COMBINE_MIN
									    : LTH_COMBINE_SUM;
	out->stages[out->num_stages++].dtype = dtype;
	return LTH_OK;
}

/* Index of axis i from the kept axes of the output, when only the run knows which they are. */
static lth_sx kept_index(struct lth_lower *lower, const struct lth_axes *axes, uint32_t i, const lth_sx *index,
			 uint32_t out_rank)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx sum = lth_sx_int(pool, 0);
	for (uint32_t j = 0; j < out_rank; j++) {
		lth_dim here = out_rank == axes->rank ? lth_dim_const(lth_sx_dims(pool), i == j)
						      : lth_axes_is_kept(lth_sx_dims(pool), axes, i, j);
		sum = lth_add(pool, sum, lth_mul(pool, index[j], lth_sx_dim(pool, here)));
	}
	return sum;
}

/* The input's index behind a stage's: reduced axes come from behind the output's. Of an axis that may be either, one of
 * both indices only counts to 1. */
static lth_sx read_term(struct lth_lower *lower, const struct lth_node *node, const lth_sx *index)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	struct lth_axes axes;
	uint32_t out_rank = lth_rank(lower, node->outputs[0]), reduced = out_rank, kept = 0;
	bool keep = lth_op_int(node, "keepdims") != 0;
	lth_sx at[LTH_MAX_RANK];
	reduced_axes(lth_lower_graph(lower), node, &axes);
	for (uint32_t i = 0; i < axes.rank; i++) {
		bool inner = axes.flags & 1u << i;
		if (axes.known)
			at[i] = inner ? index[reduced++] : index[kept];
		else
			at[i] = lth_add(pool, index[reduced++], kept_index(lower, &axes, i, index, out_rank));
		kept += !inner || keep;
	}
	return lth_read(lower, node->inputs[0], at);
}

/* A greatest exponent of infinity is no use to shift by: infinite terms then give what exp gives. */
static lth_sx finite_or_zero(struct lth_sx_pool *pool, lth_sx x)
{
	lth_sx infinite =
		lth_eq(pool, lth_unary(pool, LTH_SCALAR_ABS, x), lth_same_const(pool, x, (double)__builtin_inff()));
	return lth_sx_select(pool, infinite, lth_same_const(pool, x, 0), x);
}

static lth_sx reduce_stage(struct lth_lower *lower, const struct lth_node *node, uint32_t stage, const lth_sx *index)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	enum lth_dtype dtype = sum_dtype(lower, node);
	lth_sx x = lth_sx_cast(pool, read_term(lower, node, index), dtype);
	switch (lth_op_id(node->op)) {
	case LTH_OP_ID_ReduceL1:
		return lth_dtype_class(dtype) == LTH_CLASS_UINT ? x : lth_unary(pool, LTH_SCALAR_ABS, x);
	case LTH_OP_ID_ReduceL2:
	case LTH_OP_ID_ReduceSumSquare:
		return lth_mul(pool, x, x);
	case LTH_OP_ID_ReduceLogSumExp:
		if (stage == 0)
			return x;
		return lth_unary(pool, LTH_SCALAR_EXP,
				 lth_sub(pool, x, finite_or_zero(pool, lth_sx_stage(pool, 0, dtype))));
	default:
		return x;
	}
}

static lth_sx reduce_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
			     const lth_sx *index)
{
	(void)index;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	struct lth_graph *graph = lth_lower_graph(lower);
	enum lth_dtype dtype = sum_dtype(lower, node);
	enum lth_op_id id = lth_op_id(node->op);
	lth_sx x = lth_result(lower, node, 0, dtype);
	if (id == LTH_OP_ID_ReduceMean) {
		lth_dim one = lth_dim_const(graph->dims, 1), count = one;
		struct lth_axes axes;
		reduced_axes(graph, node, &axes);
		for (uint32_t i = 0; i < axes.rank; i++) {
			lth_dim extent = lth_extent_dim(lower, node->inputs[0], (int32_t)i);
			count = lth_dim_mul(graph->dims, count, extent_if(graph->dims, axes.in[i], extent));
		}
		x = lth_div(pool, x, lth_sx_cast(pool, lth_sx_dim(pool, count), dtype));
	} else if (id == LTH_OP_ID_ReduceL2) {
		x = lth_unary(pool, LTH_SCALAR_SQRT, x);
	} else if (id == LTH_OP_ID_ReduceLogSum) {
		x = lth_unary(pool, LTH_SCALAR_LOG, x);
	} else if (id == LTH_OP_ID_ReduceLogSumExp) {
		lth_sx log = lth_unary(pool, LTH_SCALAR_LOG, lth_result(lower, node, 1, dtype));
		x = lth_add(pool, log, finite_or_zero(pool, x));
	}
	return lth_sx_cast(pool, x, lth_compute_dtype(lth_value_dtype(lower, node->outputs[output])));
}

const struct lth_op_impl lth_impl_reduce = {
	.infer = infer_reduce, .element = reduce_element, .reduction = reduce_reduction, .stage = reduce_stage};

/* ---- ArgMax, ArgMin ---- */

static enum lth_code infer_arg(struct lth_infer *infer)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	bool keep = lth_op_int(infer->node, "keepdims") != 0;
	lth_dim dims[LTH_MAX_RANK];
	uint32_t axis, rank = 0;
	enum lth_code code = lth_infer_axis(infer, lth_op_int(infer->node, "axis"), type->rank, &axis);
	if (code)
		return code;
	for (uint32_t i = 0; i < type->rank; i++) {
		if (i != axis)
			dims[rank++] = type->dims[i];
		else if (keep)
			dims[rank++] = lth_dim_const(infer->dims, 1);
	}
	return lth_infer_output(infer, 0, LTH_NUM_DTYPES, rank, dims);
}

static uint32_t axis_of(struct lth_lower *lower, const struct lth_node *node)
{
	int64_t axis = lth_op_int(node, "axis");
	return (uint32_t)(axis < 0 ? axis + lth_rank(lower, node->inputs[0]) : axis);
}

static enum lth_code arg_reduction(struct lth_lower *lower, const struct lth_node *node, struct lth_reduction *out,
				   struct lth_diag *diag)
{
	(void)diag;
	bool last = lth_op_int(node, "select_last_index") != 0, max = lth_op_id(node->op) == LTH_OP_ID_ArgMax;
	out->num_axes = 1;
	out->extents[0] = lth_extent_dim(lower, node->inputs[0], (int32_t)axis_of(lower, node));
	out->row_axes = (1u << lth_rank(lower, node->outputs[0])) - 1;
	out->num_stages = 1;
	out->stages[0].combiner = max ? (last ? LTH_COMBINE_ARGMAX_LAST : LTH_COMBINE_ARGMAX_FIRST)
				      : (last ? LTH_COMBINE_ARGMIN_LAST : LTH_COMBINE_ARGMIN_FIRST);
	out->stages[0].dtype = lth_compute_dtype(lth_value_dtype(lower, node->inputs[0]));
	return LTH_OK;
}

static lth_sx arg_stage(struct lth_lower *lower, const struct lth_node *node, uint32_t stage, const lth_sx *index)
{
	(void)stage;
	uint32_t axis = axis_of(lower, node), rank = lth_rank(lower, node->inputs[0]);
	uint32_t out_rank = lth_rank(lower, node->outputs[0]), kept = out_rank == rank;
	lth_sx at[LTH_MAX_RANK];
	for (uint32_t i = 0; i < rank; i++)
		at[i] = i == axis ? index[out_rank] : index[i > axis && !kept ? i - 1 : i];
	return lth_read(lower, node->inputs[0], at);
}

static lth_sx arg_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output, const lth_sx *index)
{
	(void)output, (void)index;
	return lth_result(lower, node, 0, LTH_DTYPE_I64);
}

const struct lth_op_impl lth_impl_argminmax = {
	.infer = infer_arg, .element = arg_element, .reduction = arg_reduction, .stage = arg_stage};

/* ---- CumSum, CumProd ---- */

static enum lth_code infer_cumulative(struct lth_infer *infer)
{
	struct lth_axes axes;
	uint32_t count;
	enum lth_code code = lth_infer_need_rank(infer, 0, 1, LTH_MAX_RANK);
	if (!code)
		code = lth_infer_axes(infer, 1, lth_infer_rank(infer, 0), &axes);
	if (!code && lth_infer_ints(infer, 1, &count) && count != 1)
		code = lth_infer_reject(infer, "one axis", "%u axes", count);
	return code ? code : lth_infer_like(infer, 0, 0);
}

/* The axis, when it is known now. */
static bool cumulative_axis(struct lth_lower *lower, const struct lth_axes *axes, uint32_t *out_axis)
{
	struct lth_dims *dims = lth_lower_graph(lower)->dims;
	for (uint32_t i = 0; i < axes->rank; i++) {
		int64_t in;
		if (!lth_dim_is_const(dims, axes->in[i], &in))
			return false;
		if (in)
			*out_axis = i;
	}
	return true;
}

static enum lth_code cumulative_reduction(struct lth_lower *lower, const struct lth_node *node,
					  struct lth_reduction *out, struct lth_diag *diag)
{
	(void)diag;
	struct lth_dims *dims = lth_lower_graph(lower)->dims;
	struct lth_axes axes;
	lth_node_axes(lth_lower_graph(lower), node, 1, lth_rank(lower, node->inputs[0]), &axes);
	out->num_axes = 1;
	out->extents[0] = lth_dim_const(dims, 0);
	for (uint32_t i = 0; i < axes.rank; i++)
		out->extents[0] =
			lth_dim_add(dims, out->extents[0],
				    lth_dim_mul(dims, axes.in[i], lth_extent_dim(lower, node->inputs[0], (int32_t)i)));
	out->row_axes = (1u << axes.rank) - 1;
	out->num_stages = 1;
	out->scan = cumulative_axis(lower, &axes, &out->scan_axis);
	out->scan_reverse = lth_op_int(node, "reverse") != 0;
	out->scan_exclusive = lth_op_int(node, "exclusive") != 0;
	out->stages[0].combiner = lth_op_id(node->op) == LTH_OP_ID_CumSum ? LTH_COMBINE_SUM : LTH_COMBINE_PROD;
	out->stages[0].dtype = lth_compute_dtype(lth_value_dtype(lower, node->inputs[0]));
	return LTH_OK;
}

/* Where the axis is not known before the run, each element combines its whole axis, with the neutral value past itself. */
static lth_sx cumulative_stage(struct lth_lower *lower, const struct lth_node *node, uint32_t stage,
			       const lth_sx *index)
{
	(void)stage;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	uint32_t rank = lth_rank(lower, node->inputs[0]);
	struct lth_axes axes;
	uint32_t axis;
	lth_node_axes(lth_lower_graph(lower), node, 1, rank, &axes);
	if (cumulative_axis(lower, &axes, &axis))
		return lth_read(lower, node->inputs[0], index);
	lth_sx at[LTH_MAX_RANK], term = index[rank], here = lth_sx_int(pool, 0);
	for (uint32_t i = 0; i < rank; i++) {
		lth_sx along = lth_sx_dim(pool, axes.in[i]);
		here = lth_add(pool, here, lth_mul(pool, along, index[i]));
		at[i] = lth_add(pool, index[i], lth_mul(pool, along, lth_sub(pool, term, index[i])));
	}
	bool reverse = lth_op_int(node, "reverse") != 0, exclusive = lth_op_int(node, "exclusive") != 0;
	lth_sx first = reverse ? here : term, second = reverse ? term : here;
	lth_sx taken = exclusive ? lth_lt(pool, first, second) : lth_le(pool, first, second);
	lth_sx x = lth_read(lower, node->inputs[0], at);
	return lth_sx_select(pool, taken, x, lth_same_const(pool, x, lth_op_id(node->op) == LTH_OP_ID_CumProd));
}

static lth_sx cumulative_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
				 const lth_sx *index)
{
	(void)output, (void)index;
	return lth_result(lower, node, 0, lth_compute_dtype(lth_value_dtype(lower, node->inputs[0])));
}

const struct lth_op_impl lth_impl_cumulative = {.infer = infer_cumulative,
						.element = cumulative_element,
						.reduction = cumulative_reduction,
						.stage = cumulative_stage};
