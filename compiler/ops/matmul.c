/* Matrix products: MatMul, MatMulInteger, QLinearMatMul, Gemm. One generic form, a reduction over k of products of
 * broadcast reads, and the description for the templates; the elements finish what both leave: scales, bias,
 * rounding. */
#include "compiler/ops/build.h"
#include "compiler/ops/family.h"

#include <assert.h>
#include <string.h>

/* Which inputs are which, by operator; LTH_NONE where there is none. */
struct operands {
	uint32_t a, b, a_zero, b_zero;
};

static struct operands operands_of(const struct lth_node *node)
{
	switch (lth_op_id(node->op)) {
	case LTH_OP_ID_MatMulInteger:
		return (struct operands){0, 1, 2, 3};
	case LTH_OP_ID_QLinearMatMul:
		return (struct operands){0, 3, 2, 5};
	default:
		return (struct operands){0, 1, LTH_NONE, LTH_NONE};
	}
}

/* ---- MatMul ---- */

/* A scale or zero point of a matrix: one, or one for each place of its `axis` (rows of the first, columns of the second
 * matrix), also with the matrices' other axes before it. */
static enum lth_code check_parameter(struct lth_infer *infer, uint32_t input, const struct lth_type *matrix,
				     uint32_t axis)
{
	const struct lth_type *type = lth_infer_type(infer, input);
	lth_dim one = lth_dim_const(infer->dims, 1);
	enum lth_code code = LTH_OK;
	if (!type || matrix->rank < 2 || type->rank <= 1)
		return type && type->rank == 1 && matrix->rank > 1 && type->dims[0] != one
			       ? lth_infer_require_either(infer, type->dims[0], matrix->dims[axis], one,
							  "one scale and zero point, or one a row or column")
			       : lth_infer_need_one(infer, input);
	code = lth_infer_need_rank(infer, input, 0, matrix->rank);
	for (uint32_t i = 0; !code && i < type->rank; i++) {
		uint32_t at = matrix->rank - type->rank + i;
		bool summed = at != axis && at + 2 >= matrix->rank;
		if (type->dims[i] != one)
			code = lth_infer_require(infer, LTH_REL_EQ, type->dims[i], summed ? one : matrix->dims[at],
						 "a scale and zero point for each row or column");
	}
	return code;
}

/* Scales and zero points of the factors, and of what QLinearMatMul gives. */
static enum lth_code check_parameters(struct lth_infer *infer, const struct operands *in)
{
	enum { A_SCALE = 1, B_SCALE = 4, Y_SCALE = 6, Y_ZERO = 7 };
	const struct lth_type *a = lth_infer_type(infer, in->a), *b = lth_infer_type(infer, in->b);
	enum lth_code code = check_parameter(infer, in->a_zero, a, a->rank > 1 ? a->rank - 2 : 0);
	if (!code)
		code = check_parameter(infer, in->b_zero, b, b->rank - 1);
	if (code || lth_op_id(infer->node->op) != LTH_OP_ID_QLinearMatMul)
		return code;
	code = check_parameter(infer, A_SCALE, a, a->rank > 1 ? a->rank - 2 : 0);
	if (!code)
		code = check_parameter(infer, B_SCALE, b, b->rank - 1);
	for (uint32_t i = Y_SCALE; !code && i <= Y_ZERO; i++)
		code = lth_infer_need_one(infer, i);
	return code;
}

/* QLinearMatMul of narrow floats, which have no sums in integers: dequantise, multiply, quantise. */
static enum lth_code expand_narrow_floats(struct lth_infer *infer)
{
	enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, Y_SCALE, Y_ZERO };
	const struct lth_attr row = lth_attr_int("axis", -2), column = lth_attr_int("axis", -1);
	lth_value_id in[Y_ZERO + 1], factors[2];
	for (uint32_t i = A; i <= Y_ZERO; i++)
		in[i] = lth_in(infer, i);
	factors[0] = lth_build(infer, LTH_OP_ID_DequantizeLinear, in + A, 3, &row, 1);
	factors[1] = lth_build(infer, LTH_OP_ID_DequantizeLinear, in + B, 3, &column, 1);
	lth_value_id y[] = {lth_build(infer, LTH_OP_ID_MatMul, factors, 2, NULL, 0), in[Y_SCALE], in[Y_ZERO]};
	lth_build_output(infer, 0, lth_build(infer, LTH_OP_ID_QuantizeLinear, y, 3, &row, 1));
	return LTH_OK;
}

static bool quantises_to_floats(const struct lth_infer *infer)
{
	enum { A, B = 3, Y_ZERO = 7 };
	return lth_op_id(infer->node->op) == LTH_OP_ID_QLinearMatMul &&
	       (lth_dtype_in(lth_infer_type(infer, A)->dtype, "f8") ||
		lth_dtype_in(lth_infer_type(infer, B)->dtype, "f8") ||
		lth_dtype_in(lth_infer_type(infer, Y_ZERO)->dtype, "f8"));
}

static enum lth_code infer_matmul(struct lth_infer *infer)
{
	if (quantises_to_floats(infer))
		return lth_build_expand(infer, expand_narrow_floats);
	struct operands in = operands_of(infer->node);
	const struct lth_type *a = lth_infer_type(infer, in.a), *b = lth_infer_type(infer, in.b);
	lth_dim dims[LTH_MAX_RANK];
	uint32_t rank = 0;
	enum lth_code code = lth_infer_need_rank(infer, in.a, 1, LTH_MAX_RANK);
	if (!code)
		code = lth_infer_need_rank(infer, in.b, 1, LTH_MAX_RANK);
	if (code)
		return code;
	code = lth_infer_require(infer, LTH_REL_EQ, a->dims[a->rank - 1], b->dims[b->rank > 1 ? b->rank - 2 : 0],
				 "as many columns in the first matrix as rows in the second");
	if (!code && a->rank > 2)
		code = lth_infer_broadcast(infer, dims, &rank, a->dims, a->rank - 2);
	if (!code && b->rank > 2)
		code = lth_infer_broadcast(infer, dims, &rank, b->dims, b->rank - 2);
	if (!code && in.a_zero != LTH_NONE)
		code = check_parameters(infer, &in);
	if (code)
		return code;
	if (a->rank > 1)
		dims[rank++] = a->dims[a->rank - 2];
	if (b->rank > 1)
		dims[rank++] = b->dims[b->rank - 1];
	return lth_infer_output(infer, 0, LTH_NUM_DTYPES, rank, dims);
}

static enum lth_dtype sum_dtype(struct lth_lower *lower, const struct lth_node *node)
{
	enum lth_dtype compute = lth_compute_dtype(lth_value_dtype(lower, node->inputs[0]));
	return operands_of(node).a_zero != LTH_NONE ? LTH_DTYPE_I32 : compute;
}

static enum lth_code matmul_reduction(struct lth_lower *lower, const struct lth_node *node, struct lth_reduction *out,
				      struct lth_diag *diag)
{
	(void)diag;
	out->num_axes = 1;
	out->extents[0] = lth_extent_dim(lower, node->inputs[0], -1);
	out->row_axes = (1u << lth_rank(lower, node->outputs[0])) - 1;
	out->num_stages = 1;
	out->stages[0].combiner = LTH_COMBINE_SUM;
	out->stages[0].dtype = sum_dtype(lower, node);
	return LTH_OK;
}

/* Indices of A (batch, m, k) and B (batch, k, n) behind an index of the output and k. */
struct matmul_index {
	lth_sx a[LTH_MAX_RANK + 2], b[LTH_MAX_RANK + 2];
	uint32_t rank; /* of both, with batch axes */
	lth_sx row, column;
};

static struct matmul_index matmul_index(struct lth_lower *lower, const struct lth_node *node, const lth_sx *index,
					lth_sx k)
{
	struct operands in = operands_of(node);
	struct matmul_index result;
	lth_sx zero = lth_sx_int(lth_lower_pool(lower), 0);
	bool has_row = lth_rank(lower, node->inputs[in.a]) > 1, has_column = lth_rank(lower, node->inputs[in.b]) > 1;
	uint32_t batch = lth_rank(lower, node->outputs[0]) - has_row - has_column;
	memcpy(result.a, index, batch * sizeof(*index));
	memcpy(result.b, index, batch * sizeof(*index));
	result.row = has_row ? index[batch] : zero;
	result.column = has_column ? index[batch + has_row] : zero;
	result.a[batch] = result.row;
	result.a[batch + 1] = result.b[batch] = k;
	result.b[batch + 1] = result.column;
	result.rank = batch + 2;
	return result;
}

/* Element of A or B; a vector has only the k. */
static lth_sx read_factor(struct lth_lower *lower, lth_value_id value, const lth_sx *index, uint32_t rank, lth_sx k)
{
	return lth_rank(lower, value) == 1 ? lth_read(lower, value, &k) : lth_read_broadcast(lower, value, index, rank);
}

/* A scale or zero point of A (by row) or B (by column); `place` is the row or column. */
static lth_sx read_parameter(struct lth_lower *lower, lth_value_id value, const lth_sx *index, uint32_t rank,
			     lth_sx place)
{
	uint32_t own = lth_rank(lower, value);
	if (own == 0 || own > rank) /* one for all, of any rank */
		return lth_read_scalar(lower, value);
	return own == 1 ? lth_read_broadcast(lower, value, &place, 1) : lth_read_broadcast(lower, value, index, rank);
}

static lth_sx matmul_stage(struct lth_lower *lower, const struct lth_node *node, uint32_t stage, const lth_sx *index)
{
	(void)stage;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	struct operands in = operands_of(node);
	lth_sx k = index[lth_rank(lower, node->outputs[0])];
	struct matmul_index at = matmul_index(lower, node, index, k);
	lth_sx a = read_factor(lower, node->inputs[in.a], at.a, at.rank, k);
	lth_sx b = read_factor(lower, node->inputs[in.b], at.b, at.rank, k);
	if (in.a_zero == LTH_NONE)
		return lth_mul(pool, a, b);
	lth_value_id a_zero = lth_node_input(node, in.a_zero), b_zero = lth_node_input(node, in.b_zero);
	a = lth_sx_cast(pool, a, LTH_DTYPE_I32);
	b = lth_sx_cast(pool, b, LTH_DTYPE_I32);
	if (a_zero != LTH_NONE)
		a = lth_sub(pool, a,
			    lth_sx_cast(pool, read_parameter(lower, a_zero, at.a, at.rank, at.row), LTH_DTYPE_I32));
	if (b_zero != LTH_NONE)
		b = lth_sub(pool, b,
			    lth_sx_cast(pool, read_parameter(lower, b_zero, at.b, at.rank, at.column), LTH_DTYPE_I32));
	return lth_mul(pool, a, b);
}

static lth_sx matmul_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
			     const lth_sx *index)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx sum = lth_result(lower, node, 0, sum_dtype(lower, node));
	if (lth_op_id(node->op) != LTH_OP_ID_QLinearMatMul)
		return sum;
	enum { A_SCALE = 1, B_SCALE = 4, Y_SCALE = 6, Y_ZERO = 7 };
	struct matmul_index at = matmul_index(lower, node, index, lth_sx_int(pool, 0));
	enum lth_dtype work = LTH_DTYPE_F32;
	lth_sx a = lth_sx_cast(pool, read_parameter(lower, node->inputs[A_SCALE], at.a, at.rank, at.row), work);
	lth_sx b = lth_sx_cast(pool, read_parameter(lower, node->inputs[B_SCALE], at.b, at.rank, at.column), work);
	lth_sx y = lth_sx_cast(pool, lth_read_scalar(lower, node->inputs[Y_SCALE]), work);
	lth_sx zero = lth_sx_cast(pool, lth_read_scalar(lower, node->inputs[Y_ZERO]), work);
	lth_sx scaled = lth_mul(pool, lth_sx_cast(pool, sum, work), lth_div(pool, lth_mul(pool, a, b), y));
	scaled = lth_add(pool, lth_unary(pool, LTH_SCALAR_RINT, scaled), zero);
	return lth_saturate(pool, scaled, lth_value_dtype(lower, node->outputs[output]));
}

/* Stride along an output axis: 0 where the operand is broadcast; false when only the run knows. */
static bool axis_stride(struct lth_lower *lower, lth_value_id value, int32_t axis, lth_dim extent, lth_dim *out)
{
	struct lth_dims *dims = lth_lower_graph(lower)->dims;
	int32_t rank = (int32_t)lth_rank(lower, value);
	int64_t own = 1;
	*out = lth_dim_const(dims, 0);
	if (axis < 0)
		return true;
	assert(axis < rank);
	if (lth_extent_dim(lower, value, axis) == extent) {
		*out = lth_lower_strides(lower, value)[axis];
		return true;
	}
	return lth_dim_is_const(dims, lth_extent_dim(lower, value, axis), &own) && own == 1;
}

static bool matmul_problem(struct lth_lower *lower, const struct lth_node *node, struct lth_problem *out,
			   struct lth_problem_values *out_values)
{
	struct lth_dims *dims = lth_lower_graph(lower)->dims;
	struct operands in = operands_of(node);
	lth_value_id a = node->inputs[in.a], b = node->inputs[in.b], y = node->outputs[0];
	int32_t a_rank = (int32_t)lth_rank(lower, a), b_rank = (int32_t)lth_rank(lower, b);
	int32_t rank = (int32_t)lth_rank(lower, y), batch = rank - (a_rank > 1) - (b_rank > 1);
	enum lth_dtype compute = lth_compute_dtype(lth_value_dtype(lower, a));
	struct lth_gemm *gemm = &out->gemm;
	out->compute = compute;
	if (b_rank < 2 || batch + 1 > LTH_MAX_TEMPLATE_AXES)
		return false;
	if (in.a_zero == LTH_NONE ? !lth_is_float(compute)
				  : !lth_problem_bytes(lower, lth_node_input(node, in.a_zero), b,
						       lth_node_input(node, in.b_zero), out, out_values))
		return false;
	bool shared = true; /* B has no batch of its own: A's batch axes are more rows */
	for (int32_t i = 0; i < batch; i++) {
		struct lth_gemm_axis *axis = &gemm->batch[i];
		axis->extent = lth_extent_dim(lower, y, i);
		if (!axis_stride(lower, a, i - (batch - (a_rank - 2)), axis->extent, &axis->a_stride) ||
		    !axis_stride(lower, b, i - (batch - (b_rank - 2)), axis->extent, &axis->b_stride))
			return false;
		shared = shared && axis->b_stride == lth_dim_const(dims, 0);
	}
	gemm->num_batch = shared ? 0 : (uint32_t)batch;
	if (shared) {
		memcpy(gemm->rows, gemm->batch, (size_t)batch * sizeof(gemm->rows[0]));
		gemm->num_rows = (uint32_t)batch;
	}
	const lth_dim *a_strides = lth_lower_strides(lower, a), *b_strides = lth_lower_strides(lower, b);
	if (a_rank > 1)
		gemm->rows[gemm->num_rows++] = (struct lth_gemm_axis){
			lth_extent_dim(lower, a, -2), a_strides[a_rank - 2], lth_dim_const(dims, 0)};
	gemm->k = lth_extent_dim(lower, a, -1);
	gemm->a_k_stride = a_strides[a_rank - 1];
	gemm->b_k_stride = b_strides[b_rank - 2];
	gemm->n = lth_extent_dim(lower, b, -1);
	gemm->b_n_stride = b_strides[b_rank - 1];
	gemm->a = lth_operand_of(lower, a);
	gemm->b = lth_operand_of(lower, b);
	out->kind = LTH_PROBLEM_GEMM;
	out_values->x = a;
	out_values->w = b;
	return true;
}

const struct lth_op_impl lth_impl_matmul = {.infer = infer_matmul,
					    .element = matmul_element,
					    .reduction = matmul_reduction,
					    .stage = matmul_stage,
					    .problem = matmul_problem};

/* ---- Gemm ---- */

static enum lth_code infer_gemm(struct lth_infer *infer)
{
	uint32_t trans_a = lth_op_int(infer->node, "transA") != 0, trans_b = lth_op_int(infer->node, "transB") != 0;
	lth_dim dims[2], onto[LTH_MAX_RANK];
	uint32_t rank = 2;
	enum lth_code code = lth_infer_need_rank(infer, 0, 2, 2);
	if (!code)
		code = lth_infer_need_rank(infer, 1, 2, 2);
	if (!code)
		code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, 0, !trans_a),
					 lth_infer_dim(infer, 1, trans_b),
					 "as many columns in the first matrix as rows in the second");
	if (code)
		return code;
	dims[0] = onto[0] = lth_infer_dim(infer, 0, trans_a);
	dims[1] = onto[1] = lth_infer_dim(infer, 1, !trans_b);
	const struct lth_type *c = lth_infer_type(infer, 2);
	if (c && c->rank > 2)
		return lth_infer_reject(infer, "a shape that broadcasts to the product's", "%s has rank %u",
					lth_infer_input_text(infer, 2), c->rank);
	if (c)
		code = lth_infer_broadcast(infer, onto, &rank, c->dims, c->rank);
	for (uint32_t i = 0; !code && i < 2; i++)
		code = lth_infer_require(infer, LTH_REL_EQ, onto[i], dims[i],
					 "a shape that broadcasts to the product's");
	return code ? code : lth_infer_output(infer, 0, LTH_NUM_DTYPES, 2, dims);
}

static enum lth_code gemm_reduction(struct lth_lower *lower, const struct lth_node *node, struct lth_reduction *out,
				    struct lth_diag *diag)
{
	(void)diag;
	out->num_axes = 1;
	out->extents[0] = lth_extent_dim(lower, node->inputs[0], lth_op_int(node, "transA") ? 0 : 1);
	out->row_axes = 3;
	out->num_stages = 1;
	out->stages[0].combiner = LTH_COMBINE_SUM;
	out->stages[0].dtype = sum_dtype(lower, node);
	return LTH_OK;
}

static lth_sx gemm_stage(struct lth_lower *lower, const struct lth_node *node, uint32_t stage, const lth_sx *index)
{
	(void)stage;
	bool trans_a = lth_op_int(node, "transA") != 0, trans_b = lth_op_int(node, "transB") != 0;
	lth_sx a[2], b[2];
	a[trans_a] = index[0];
	a[!trans_a] = b[trans_b] = index[2];
	b[!trans_b] = index[1];
	lth_sx left = lth_read(lower, node->inputs[0], a), right = lth_read(lower, node->inputs[1], b);
	return lth_mul(lth_lower_pool(lower), left, right);
}

/* x times an attribute: of integers in double, as the factor is not whole. */
static lth_sx scale_by(struct lth_sx_pool *pool, lth_sx x, double factor)
{
	if (factor == 1)
		return x;
	return lth_mul(pool, x, lth_same_const(pool, x, factor));
}

/* Of integers by factors the whole sum is computed in reals, and cut once. */
static lth_sx gemm_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output, const lth_sx *index)
{
	(void)output;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	double alpha = lth_op_float(node, "alpha"), beta = lth_op_float(node, "beta");
	bool adds = lth_node_input(node, 2) != LTH_NONE && beta != 0;
	lth_sx x = lth_result(lower, node, 0, sum_dtype(lower, node));
	enum lth_dtype type = lth_sx_dtype(pool, x);
	bool whole = lth_is_float(type) || (alpha == 1 && (beta == 1 || !adds));
	x = scale_by(pool, whole ? x : lth_sx_cast(pool, x, LTH_DTYPE_F64), alpha);
	if (adds) {
		lth_sx c = lth_read_input(lower, node, 2, index, 2);
		x = lth_add(pool, x, scale_by(pool, whole ? c : lth_sx_cast(pool, c, LTH_DTYPE_F64), beta));
	}
	return whole ? x : lth_sx_cast(pool, x, type);
}

static bool gemm_problem(struct lth_lower *lower, const struct lth_node *node, struct lth_problem *out,
			 struct lth_problem_values *out_values)
{
	uint32_t trans_a = lth_op_int(node, "transA") != 0, trans_b = lth_op_int(node, "transB") != 0;
	lth_value_id a = node->inputs[0], b = node->inputs[1];
	const lth_dim *a_strides = lth_lower_strides(lower, a), *b_strides = lth_lower_strides(lower, b);
	enum lth_dtype compute = lth_compute_dtype(lth_value_dtype(lower, a));
	struct lth_gemm *gemm = &out->gemm;
	if (!lth_is_float(compute))
		return false;
	gemm->num_rows = 1;
	gemm->rows[0] = (struct lth_gemm_axis){lth_extent_dim(lower, a, (int32_t)trans_a), a_strides[trans_a],
					       lth_dim_const(lth_lower_graph(lower)->dims, 0)};
	gemm->k = lth_extent_dim(lower, a, !trans_a);
	gemm->a_k_stride = a_strides[!trans_a];
	gemm->b_k_stride = b_strides[trans_b];
	gemm->n = lth_extent_dim(lower, b, !trans_b);
	gemm->b_n_stride = b_strides[!trans_b];
	gemm->a = lth_operand_of(lower, a);
	gemm->b = lth_operand_of(lower, b);
	out->kind = LTH_PROBLEM_GEMM;
	out->compute = compute;
	out_values->x = a;
	out_values->w = b;
	return true;
}

const struct lth_op_impl lth_impl_gemm = {.infer = infer_gemm,
					  .element = gemm_element,
					  .reduction = gemm_reduction,
					  .stage = gemm_stage,
					  .problem = gemm_problem};
