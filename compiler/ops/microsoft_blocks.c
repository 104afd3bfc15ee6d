/* Operators of com.microsoft on weights quantised in blocks of few bits: MatMulNBits and GatherBlockQuantized. Bytes
 * hold several numbers, the first in the lowest bits; scales and zero points are one a block. Products take the bytes as
 * they are (block_matmul.c), unless the elements of a block lie apart (g_idx): then the weights become numbers. */
#include "compiler/ops/microsoft.h"
#include "compiler/ops/family.h"

static enum lth_code check_bits(struct lth_infer *infer)
{
	int64_t bits = lth_op_int(infer->node, "bits"), block = lth_op_int(infer->node, "block_size");
	if (bits != 2 && bits != 4 && bits != 8)
		return lth_infer_unsupported(infer, "2, 4 or 8", "attribute bits of %lld", (long long)bits);
	if (block < 16 || (block & (block - 1)))
		return lth_infer_reject(infer, "a power of two of at least 16", "block_size %lld", (long long)block);
	return LTH_OK;
}

lth_value_id lth_ms_unpacked(struct lth_infer *infer, lth_value_id packed, int64_t bits)
{
	const struct lth_attr right = {
		.name = "direction", .kind = LTH_ATTR_STRING, .count = 1, .s = {.data = "RIGHT", .size = 5}};
	const int64_t last = -1, each = 8 / bits;
	uint8_t shifts[4] = {0}, mask = (uint8_t)((1 << bits) - 1);
	int64_t shape[LTH_MAX_RANK] = {0};
	if (infer->failed || bits == 8)
		return packed;
	uint32_t rank = infer->graph->values[packed].type.rank;
	for (int64_t i = 0; i < each; i++)
		shifts[i] = (uint8_t)(i * bits);
	lth_value_id in[2] = {lth_build_unsqueeze(infer, packed, &last, 1)};
	in[1] = lth_build_data(infer, LTH_DTYPE_U8, 1, &each, shifts, (size_t)each);
	lth_value_id numbers = lth_build(infer, LTH_OP_ID_BitShift, in, 2, &right, 1);
	lth_value_id low = lth_build_data(infer, LTH_DTYPE_U8, 0, NULL, &mask, 1);
	numbers = lth_build2(infer, LTH_OP_ID_BitwiseAnd, numbers, low);
	shape[rank - 1] = -1;
	return lth_build_reshape(infer, numbers, shape, rank);
}

/* ---- MatMulNBits ---- */

enum { A, B, SCALES, ZERO_POINTS, GROUPS, BIAS };

struct blocks {
	int64_t k, bits, size; /* elements of a row, bits of each, elements of a block */
};

/* Zero points as [N, blocks]: packed like the weights, each row from a byte of its own; or plain; LTH_NONE: the middle
 * of the range. */
static lth_value_id zero_points(struct lth_infer *infer, int64_t n, int64_t blocks, int64_t bits)
{
	lth_value_id given = lth_in(infer, ZERO_POINTS);
	if (given == LTH_NONE)
		return LTH_NONE;
	if (lth_infer_type(infer, ZERO_POINTS)->dtype != LTH_DTYPE_U8)
		return lth_build_reshape(infer, given, (int64_t[]){n, blocks}, 2);
	int64_t bytes = (blocks * bits + 7) / 8;
	given = lth_ms_unpacked(infer, lth_build_reshape(infer, given, (int64_t[]){n, bytes}, 2), bits);
	return lth_build_slice(infer, given, 1, 0, blocks);
}

/* Each element's parameter by its group: [N, K]. */
static lth_value_id spread(struct lth_infer *infer, lth_value_id parameter, int64_t k)
{
	return lth_build_gather(infer, parameter, lth_build_slice(infer, lth_in(infer, GROUPS), 0, 0, k), 1);
}

/* Blocks whose elements lie apart: the weights as numbers. */
static lth_value_id multiply_groups(struct lth_infer *infer, lth_value_id bytes, lth_value_id scale, lth_value_id zero,
				    const struct blocks *b)
{
	static const int64_t turned[] = {1, 0};
	enum lth_dtype dtype = infer->out_dtypes[0];
	lth_value_id w = lth_build_cast(infer, lth_build_slice(infer, lth_ms_unpacked(infer, bytes, b->bits), 1, 0, b->k), dtype);
	zero = zero == LTH_NONE ? lth_build_scalar(infer, dtype, (double)(1 << (b->bits - 1)))
				: spread(infer, lth_build_cast(infer, zero, dtype), b->k);
	w = lth_build2(infer, LTH_OP_ID_Sub, w, zero);
	w = lth_build2(infer, LTH_OP_ID_Mul, w, spread(infer, scale, b->k));
	return lth_build2(infer, LTH_OP_ID_MatMul, lth_in(infer, A), lth_build_transpose(infer, w, turned, 2));
}

/* The weights stay bytes, turned so that neighbours in memory are neighbours in the result. */
static lth_value_id multiply_blocks(struct lth_infer *infer, lth_value_id bytes, lth_value_id scale, lth_value_id zero,
				    const struct blocks *b)
{
	static const int64_t turned[] = {1, 0};
	const struct lth_attr attrs[] = {lth_attr_int("bits", b->bits), lth_attr_int("block_size", b->size)};
	bytes = lth_build_transpose(infer, bytes, turned, 2);
	scale = lth_build_transpose(infer, scale, turned, 2);
	zero = zero == LTH_NONE ? zero : lth_build_transpose(infer, zero, turned, 2);
	const lth_value_id in[] = {lth_in(infer, A), bytes, scale, zero};
	return lth_build(infer, LTH_OP_ID_BlockMatMul, in, 4, attrs, 2);
}

static enum lth_code check_matmul_bits(struct lth_infer *infer)
{
	enum lth_code code = check_bits(infer);
	if (!code && lth_op_int(infer->node, "weight_prepacked"))
		code = lth_infer_unsupported(infer, "give weights in the plain layout", "attribute weight_prepacked");
	return code;
}

static enum lth_code expand_matmul_bits(struct lth_infer *infer)
{
	enum lth_code code = check_matmul_bits(infer);
	if (code)
		return code;
	struct blocks b = {.k = lth_op_int(infer->node, "K"), .bits = lth_op_int(infer->node, "bits"),
			   .size = lth_op_int(infer->node, "block_size")};
	int64_t n = lth_op_int(infer->node, "N"), count = (b.k + b.size - 1) / b.size;
	lth_value_id bytes = lth_build_reshape(infer, lth_in(infer, B), (int64_t[]){n, count * (b.size * b.bits / 8)}, 2);
	lth_value_id scale = lth_build_reshape(infer, lth_in(infer, SCALES), (int64_t[]){n, count}, 2);
	lth_value_id zero = zero_points(infer, n, count, b.bits);
	bool groups = lth_in(infer, GROUPS) != LTH_NONE;
	lth_value_id y = (groups ? multiply_groups : multiply_blocks)(infer, bytes, scale, zero, &b);
	if (lth_in(infer, BIAS) != LTH_NONE)
		y = lth_build2(infer, LTH_OP_ID_Add, y, lth_in(infer, BIAS));
	lth_build_output(infer, 0, y);
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_matmul_bits = {.expand = expand_matmul_bits};

/* ---- GatherBlockQuantized ---- */

/* A scale for each block along the axis, and as many zero points, `each` of which share a byte, as do numbers. */
static enum lth_code check_block_shapes(struct lth_infer *infer, uint32_t block_axis, int64_t each)
{
	enum { DATA, INDICES, SCALE, ZERO };
	struct lth_dims *d = infer->dims;
	lth_dim share = lth_dim_const(d, each), size = lth_dim_const(d, lth_op_int(infer->node, "block_size"));
	enum lth_code code = LTH_OK;
	for (uint32_t axis = 0; !code && axis < lth_infer_rank(infer, DATA); axis++) {
		lth_dim scales = lth_infer_dim(infer, DATA, axis), zeros = scales;
		if (axis == block_axis) {
			scales = lth_dim_ceildiv(d, lth_dim_mul(d, scales, share), size);
			zeros = lth_dim_ceildiv(d, scales, share);
		}
		code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, SCALE, axis), scales, "a scale for each block");
		if (!code && lth_infer_type(infer, ZERO))
			code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, ZERO, axis), zeros,
						 "a zero point for each block");
	}
	return code;
}

/* What is gathered, and only that, is dequantised: blocks lie along another axis than the gathered one. */
static enum lth_code expand_gather_blocks(struct lth_infer *infer)
{
	enum { DATA, INDICES, SCALE, ZERO };
	uint32_t gather_axis, block_axis, rank = lth_infer_rank(infer, DATA), indices = lth_infer_rank(infer, INDICES);
	int64_t bits = lth_op_int(infer->node, "bits");
	enum lth_code code = check_bits(infer);
	if (!code)
		code = lth_infer_need_rank(infer, DATA, 2, LTH_MAX_RANK);
	for (uint32_t i = SCALE; !code && i <= ZERO; i++)
		if (lth_infer_type(infer, i))
			code = lth_infer_need_rank(infer, i, rank, rank);
	if (!code)
		code = lth_infer_axis(infer, lth_op_int(infer->node, "gather_axis"), rank, &gather_axis);
	if (!code)
		code = lth_infer_axis(infer, lth_op_int(infer->node, "quantize_axis"), rank, &block_axis);
	if (!code && gather_axis == block_axis)
		code = lth_infer_reject(infer, "another axis for blocks than for indices", "%u for both", gather_axis);
	if (code)
		return code;
	enum lth_dtype dtype = lth_infer_type(infer, DATA)->dtype;
	bool packed = dtype == LTH_DTYPE_U8;
	if (packed && block_axis != rank - 1)
		return lth_infer_reject(infer, "blocks along the last axis of bytes", "axis %u", block_axis);
	code = check_block_shapes(infer, block_axis, packed ? 8 / bits : 1);
	if (code)
		return code;
	lth_value_id in[4] = {lth_in(infer, DATA), lth_in(infer, INDICES), lth_in(infer, SCALE), lth_in(infer, ZERO)};
	const lth_value_id where = in[INDICES];
	for (uint32_t i = DATA; i <= ZERO; i++) {
		if (i == INDICES || in[i] == LTH_NONE)
			continue;
		in[i] = lth_build_gather(infer, in[i], where, gather_axis);
		if (packed && i != SCALE)
			in[i] = lth_ms_unpacked(infer, in[i], bits);
		if (packed && i == ZERO) { /* the last byte may be half used */
			lth_value_id blocks = lth_build_count(infer, lth_build_extent(infer, in[SCALE], -1));
			in[i] = lth_build_gather(infer, in[i], blocks, -1);
		}
	}
	if (in[ZERO] == LTH_NONE && packed) {
		const uint8_t middle = (uint8_t)(1 << (bits - 1));
		lth_value_id shape = lth_build1(infer, LTH_OP_ID_Shape, in[SCALE]);
		in[ZERO] = lth_build_data(infer, LTH_DTYPE_U8, 0, NULL, &middle, 1);
		in[ZERO] = lth_build2(infer, LTH_OP_ID_Expand, in[ZERO], shape);
	}
	block_axis += gather_axis < block_axis ? indices - 1 : 0;
	const struct lth_attr attrs[] = {lth_attr_int("axis", block_axis),
					 lth_attr_int("block_size", lth_op_int(infer->node, "block_size"))};
	const lth_value_id parts[] = {in[DATA], in[SCALE], in[ZERO]};
	lth_build_output(infer, 0, lth_build(infer, LTH_OP_ID_DequantizeLinear, parts, 3, attrs, 2));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_gather_blocks = {.expand = expand_gather_blocks};
