/* Products with weights of few bits, which stay packed in memory: the internal operator BlockMatMul, what MatMulNBits is
 * made of. A [.., K], W u8 [K' * bits / 8, N], scales and zero points [blocks, N], K' being K made up to whole blocks; a
 * byte holds several elements of one column, the first in the lowest bits.
 *
 *   y[.., n] = sum over blocks of scale * (sum a q - zero * sum a)
 *
 * One term of the reduction is a run of a few elements of one block: their scale and zero point are read once, the sum of
 * a is the same for all columns. Vectors run along the columns. The template (templates/blocks.c) does the same, and
 * writes the weights out by panels where rows share them. Thread rule: as infer.h. */
#include "compiler/ops/family.h"

enum { A, W, SCALES, ZERO_POINTS };
enum { RUN = 8 }; /* elements of a term; divides every block */

static enum lth_code infer_block_matmul(struct lth_infer *infer)
{
	const struct lth_type *a = lth_infer_type(infer, A);
	int64_t bits = lth_op_int(infer->node, "bits"), size = lth_op_int(infer->node, "block_size");
	struct lth_dims *d = infer->dims;
	lth_dim dims[LTH_MAX_RANK];
	enum lth_code code = lth_infer_need_rank(infer, A, 1, LTH_MAX_RANK);
	for (uint32_t i = W; !code && i <= ZERO_POINTS; i++)
		if (lth_infer_type(infer, i))
			code = lth_infer_need_rank(infer, i, 2, 2);
	if (!code && size % RUN != 0)
		code = lth_infer_reject(infer, "a multiple of 8", "block_size %lld", (long long)size);
	if (code)
		return code;
	lth_dim n = lth_infer_dim(infer, W, 1);
	lth_dim blocks = lth_dim_ceildiv(d, a->dims[a->rank - 1], lth_dim_const(d, size));
	code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, W, 0),
				 lth_dim_mul(d, blocks, lth_dim_const(d, size * bits / 8)), "bytes of whole blocks");
	for (uint32_t i = SCALES; !code && i <= ZERO_POINTS && lth_infer_type(infer, i); i++) {
		code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, i, 0), blocks, "a row for each block");
		if (!code)
			code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, i, 1), n, "as many columns");
	}
	for (uint32_t i = 0; i + 1 < a->rank; i++)
		dims[i] = a->dims[i];
	dims[a->rank - 1] = n;
	return code ? code : lth_infer_output(infer, 0, LTH_NUM_DTYPES, a->rank, dims);
}

/* Axes of the sum: blocks, and runs of a block. */
static enum lth_code block_matmul_reduction(struct lth_lower *lower, const struct lth_node *node,
					    struct lth_reduction *out, struct lth_diag *diag)
{
	(void)diag;
	out->num_axes = 2;
	out->extents[0] = lth_extent_dim(lower, node->inputs[SCALES], 0);
	out->extents[1] = lth_dim_const(lth_lower_graph(lower)->dims, lth_op_int(node, "block_size") / RUN);
	out->row_axes = (1u << lth_rank(lower, node->outputs[0])) - 1;
	out->num_stages = 1;
	out->stages[0].combiner = LTH_COMBINE_SUM;
	out->stages[0].dtype = LTH_DTYPE_F32;
	return LTH_OK;
}

/* Element k of A's row; 0 behind its end, where the last block is not whole. */
static lth_sx read_a(struct lth_lower *lower, const struct lth_node *node, const lth_sx *index, lth_sx k)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	struct lth_dims *dims = lth_lower_graph(lower)->dims;
	uint32_t last = lth_rank(lower, node->inputs[A]) - 1;
	lth_dim size = lth_dim_const(dims, lth_op_int(node, "block_size"));
	lth_dim extent = lth_extent_dim(lower, node->inputs[A], -1);
	lth_sx at[LTH_MAX_RANK];
	for (uint32_t i = 0; i < last; i++)
		at[i] = index[i];
	at[last] = k;
	if (lth_dim_divides(dims, size, extent) == LTH_YES)
		return lth_read(lower, node->inputs[A], at);
	lth_sx end = lth_sx_dim(pool, extent);
	at[last] = lth_safe_index(pool, k, end);
	lth_sx a = lth_read(lower, node->inputs[A], at);
	return lth_sx_select(pool, lth_in_range(pool, k, lth_sx_int(pool, 0), end), a, lth_same_const(pool, a, 0));
}

static lth_sx block_matmul_stage(struct lth_lower *lower, const struct lth_node *node, uint32_t stage,
				 const lth_sx *index)
{
	(void)stage;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	uint32_t rank = lth_rank(lower, node->outputs[0]);
	int64_t bits = lth_op_int(node, "bits"), each = 8 / bits, runs = lth_op_int(node, "block_size") / RUN;
	lth_sx column = index[rank - 1], block = index[rank]; /* and the run within the block */
	lth_sx run = lth_add(pool, lth_mul(pool, block, lth_sx_int(pool, runs)), index[rank + 1]);
	lth_sx sum = LTH_SX_NONE, sum_a = LTH_SX_NONE, byte = LTH_SX_NONE;
	lth_sx mask = lth_sx_const_i(pool, LTH_DTYPE_U8, (1 << bits) - 1);
	lth_sx first_k = lth_mul(pool, run, lth_sx_int(pool, RUN));
	lth_sx first_byte = lth_mul(pool, run, lth_sx_int(pool, RUN / each));
	for (int64_t e = 0; e < RUN; e++) {
		lth_sx row = lth_add(pool, first_byte, lth_sx_int(pool, e / each));
		if (e % each == 0)
			byte = lth_read(lower, node->inputs[W], (lth_sx[]){row, column});
		lth_sx shift = lth_sx_const_i(pool, LTH_DTYPE_U8, e % each * bits);
		lth_sx q = lth_and(pool, lth_sx_op2(pool, LTH_SCALAR_SHR, byte, shift), mask);
		lth_sx a = read_a(lower, node, index, lth_add(pool, first_k, lth_sx_int(pool, e)));
		lth_sx product = lth_mul(pool, a, lth_sx_cast(pool, q, LTH_DTYPE_F32));
		sum = e ? lth_add(pool, sum, product) : product;
		sum_a = e ? lth_add(pool, sum_a, a) : a;
	}
	lth_sx scale = lth_read(lower, node->inputs[SCALES], (lth_sx[]){block, column});
	lth_sx zero = lth_sx_const_f(pool, LTH_DTYPE_F32, (double)(1 << (bits - 1)));
	lth_value_id zeros = lth_node_input(node, ZERO_POINTS);
	if (zeros != LTH_NONE)
		zero = lth_sx_cast(pool, lth_read(lower, zeros, (lth_sx[]){block, column}), LTH_DTYPE_F32);
	return lth_mul(pool, scale, lth_sub(pool, sum, lth_mul(pool, zero, sum_a)));
}

static lth_sx block_matmul_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
				   const lth_sx *index)
{
	(void)output, (void)index;
	return lth_result(lower, node, 0, LTH_DTYPE_F32);
}

static bool block_matmul_problem(struct lth_lower *lower, const struct lth_node *node, struct lth_problem *out,
				 struct lth_problem_values *out_values)
{
	struct lth_dims *dims = lth_lower_graph(lower)->dims;
	lth_dim zero = lth_dim_const(dims, 0), one = lth_dim_const(dims, 1);
	lth_value_id a = node->inputs[A], w = node->inputs[W], scales = node->inputs[SCALES];
	lth_value_id zeros = lth_node_input(node, ZERO_POINTS);
	const lth_dim *w_strides = lth_lower_strides(lower, w), *scale_strides = lth_lower_strides(lower, scales);
	struct lth_gemm *gemm = &out->gemm;
	const lth_dim *a_strides = lth_lower_strides(lower, a);
	uint32_t last = lth_rank(lower, a) - 1;
	if (last > LTH_MAX_TEMPLATE_AXES)
		return false;
	out->kind = LTH_PROBLEM_GEMM;
	out->compute = LTH_DTYPE_F32;
	gemm->num_rows = last;
	for (uint32_t i = 0; i < last; i++)
		gemm->rows[i] = (struct lth_gemm_axis){lth_extent_dim(lower, a, (int32_t)i), a_strides[i], zero};
	gemm->k = lth_extent_dim(lower, a, -1);
	gemm->n = lth_extent_dim(lower, w, 1);
	gemm->a_k_stride = a_strides[last];
	gemm->a = lth_operand_of(lower, a);
	gemm->b = lth_operand_of(lower, w);
	gemm->b_k_stride = gemm->b_n_stride = one;
	lth_dim count = lth_extent_dim(lower, scales, 0);
	out->blocks = (struct lth_blocks){.bits = (unsigned)lth_op_int(node, "bits"),
					  .size = lth_op_int(node, "block_size"),
					  .count = count,
					  .row_stride = w_strides[0],
					  .scale_stride = scale_strides[0],
					  .scales = lth_operand_of(lower, scales),
					  .zeros = {.pointer = LTH_LV_NONE}};
	if (w_strides[1] != one || scale_strides[1] != one)
		return false;
	out_values->x = a;
	out_values->w = w;
	out_values->scales = scales;
	if (zeros == LTH_NONE)
		return true;
	out_values->w_zeros = zeros;
	out->blocks.zeros = lth_operand_of(lower, zeros);
	out->blocks.zero_stride = lth_lower_strides(lower, zeros)[0];
	return lth_lower_strides(lower, zeros)[1] == one;
}

const struct lth_op_impl lth_impl_block_matmul = {.infer = infer_block_matmul,
						  .element = block_matmul_element,
						  .reduction = block_matmul_reduction,
						  .stage = block_matmul_stage,
						  .problem = block_matmul_problem};
