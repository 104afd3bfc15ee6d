/* Reductions over axes: the Reduce family, ArgMax and ArgMin, running sums and products. */
#include "compiler/ops/family.h"

#include <assert.h>
#include <string.h>

/* ---- Reduce* ---- */

/* Axes as bits. The contents of the axes are known and checked once inference is past. */
static uint32_t reduced_axes(struct lth_graph *graph, const struct lth_node *node)
{
	uint32_t rank = graph->values[node->inputs[0]].type.rank, flags = 0;
	lth_value_id input = lth_node_input(node, 1);
	const struct lth_contents *axes = input == LTH_NONE ? NULL : lth_value_contents(graph, input);
	for (uint32_t i = 0; axes && i < axes->count; i++) {
		int64_t axis = 0;
		lth_dim_is_const(graph->dims, axes->dims[i], &axis);
		flags |= 1u << (axis < 0 ? axis + rank : axis);
	}
	if ((!axes || axes->count == 0) && !lth_op_int(node, "noop_with_empty_axes"))
		flags = (1u << rank) - 1;
	return flags;
}

static enum lth_code check_axes(struct lth_infer *infer)
{
	const int64_t *axes;
	uint32_t count, axis;
	if (!lth_infer_type(infer, 1))
		return LTH_OK;
	enum lth_code code = lth_infer_need_consts(infer, 1, &axes, &count);
	for (uint32_t i = 0; !code && i < count; i++)
		code = lth_infer_axis(infer, axes[i], lth_infer_rank(infer, 0), &axis);
	return code;
}

/* The reductions that models do on shapes. */
static void reduce_contents(struct lth_infer *infer)
{
	uint32_t count;
	enum lth_op_id id = lth_op_id(infer->node->op);
	const lth_dim *ints = lth_infer_ints(infer, 0, &count);
	const lth_real *reals = ints ? NULL : lth_infer_reals(infer, 0, &count);
	if ((!ints && !reals) || count == 0 || reduced_axes(infer->graph, infer->node) + 1 != 1u << lth_infer_rank(infer, 0))
		return;
	uint32_t result = ints ? ints[0] : reals[0];
	for (uint32_t i = 1; i < count; i++) {
		struct lth_dims *dims = infer->dims;
		if (id == LTH_OP_ID_ReduceProd && ints)
			result = lth_dim_mul(dims, result, ints[i]);
		else if (id == LTH_OP_ID_ReduceSum && ints)
			result = lth_dim_add(dims, result, ints[i]);
		else if (id == LTH_OP_ID_ReduceMax)
			result = ints ? lth_dim_max(dims, result, ints[i])
				      : lth_real_apply(dims, LTH_EXPR_RMAX, result, reals[i]);
		else if (id == LTH_OP_ID_ReduceMin)
			result = ints ? lth_dim_min(dims, result, ints[i])
				      : lth_real_apply(dims, LTH_EXPR_RMIN, result, reals[i]);
		else
			return;
	}
	if (id != LTH_OP_ID_ReduceProd && id != LTH_OP_ID_ReduceSum && id != LTH_OP_ID_ReduceMax &&
	    id != LTH_OP_ID_ReduceMin)
		return;
	if (ints)
		lth_infer_set_ints(infer, 0, &result, 1);
	else
		lth_infer_set_reals(infer, 0, &result, 1);
}

static enum lth_code infer_reduce(struct lth_infer *infer)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	bool keep = lth_op_int(infer->node, "keepdims") != 0;
	lth_dim dims[LTH_MAX_RANK];
	uint32_t rank = 0;
	enum lth_code code = check_axes(infer);
	if (code)
		return code;
	uint32_t axes = reduced_axes(infer->graph, infer->node);
	for (uint32_t i = 0; i < type->rank; i++) {
		if (!(axes & 1u << i))
			dims[rank++] = type->dims[i];
		else if (keep)
			dims[rank++] = lth_dim_const(infer->dims, 1);
	}
	code = lth_infer_output(infer, 0, LTH_NUM_DTYPES, rank, dims);
	if (!code)
		reduce_contents(infer);
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
	uint32_t axes = reduced_axes(lth_lower_graph(lower), node), rank = lth_rank(lower, node->inputs[0]);
	enum lth_dtype dtype = sum_dtype(lower, node);
	for (uint32_t i = 0; i < rank; i++)
		if (axes & 1u << i)
			out->extents[out->num_axes++] = lth_extent_dim(lower, node->inputs[0], (int32_t)i);
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

/* The input's index behind a stage's: reduced axes come from behind the output's. */
static lth_sx read_term(struct lth_lower *lower, const struct lth_node *node, const lth_sx *index)
{
	uint32_t axes = reduced_axes(lth_lower_graph(lower), node);
	uint32_t rank = lth_rank(lower, node->inputs[0]), reduced = lth_rank(lower, node->outputs[0]), kept = 0;
	bool keep = lth_op_int(node, "keepdims") != 0;
	lth_sx at[LTH_MAX_RANK];
	for (uint32_t i = 0; i < rank; i++) {
		bool inner = axes & 1u << i;
		at[i] = inner ? index[reduced++] : index[kept];
		kept += !inner || keep;
	}
	return lth_read(lower, node->inputs[0], at);
}

/* A greatest exponent of infinity is no use to shift by: infinite terms then give what exp gives. */
static lth_sx finite_or_zero(struct lth_sx_pool *pool, lth_sx x)
{
	lth_sx infinite = lth_eq(pool, lth_unary(pool, LTH_SCALAR_ABS, x), lth_same_const(pool, x, (double)__builtin_inff()));
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
		return lth_unary(pool, LTH_SCALAR_EXP, lth_sub(pool, x, finite_or_zero(pool, lth_sx_stage(pool, 0, dtype))));
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
		lth_dim count = lth_dim_const(graph->dims, 1);
		for (uint32_t i = 0, axes = reduced_axes(graph, node); axes >> i; i++)
			if (axes & 1u << i)
				count = lth_dim_mul(graph->dims, count, lth_extent_dim(lower, node->inputs[0], (int32_t)i));
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
	int64_t axis;
	uint32_t ignored;
	enum lth_code code = lth_infer_need_const(infer, 1, &axis);
	if (!code)
		code = lth_infer_axis(infer, axis, lth_infer_rank(infer, 0), &ignored);
	return code ? code : lth_infer_like(infer, 0, 0);
}

static uint32_t cumulative_axis(struct lth_lower *lower, const struct lth_node *node)
{
	struct lth_graph *graph = lth_lower_graph(lower);
	const struct lth_contents *contents = lth_value_contents(graph, node->inputs[1]);
	int64_t axis = 0;
	lth_dim_is_const(graph->dims, contents->dims[0], &axis);
	return (uint32_t)(axis < 0 ? axis + lth_rank(lower, node->inputs[0]) : axis);
}

static enum lth_code cumulative_reduction(struct lth_lower *lower, const struct lth_node *node,
					  struct lth_reduction *out, struct lth_diag *diag)
{
	(void)diag;
	out->num_axes = 1;
	out->extents[0] = lth_extent_dim(lower, node->inputs[0], (int32_t)cumulative_axis(lower, node));
	out->row_axes = (1u << lth_rank(lower, node->inputs[0])) - 1;
	out->num_stages = 1;
	out->stages[0].combiner = lth_op_id(node->op) == LTH_OP_ID_CumSum ? LTH_COMBINE_SUM : LTH_COMBINE_PROD;
	out->stages[0].dtype = lth_compute_dtype(lth_value_dtype(lower, node->inputs[0]));
	return LTH_OK;
}

/* Each element combines its whole axis, with the neutral value past itself: quadratic, but any element is independent
 * of its neighbours and so of threads and vectors. */
static lth_sx cumulative_stage(struct lth_lower *lower, const struct lth_node *node, uint32_t stage,
			       const lth_sx *index)
{
	(void)stage;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	uint32_t axis = cumulative_axis(lower, node), rank = lth_rank(lower, node->inputs[0]);
	lth_sx at[LTH_MAX_RANK], term = index[rank], here = index[axis];
	memcpy(at, index, rank * sizeof(*at));
	at[axis] = term;
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
