/* Random operators by Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", 2011):
 * the counter is the element's flat index, the key comes from the seed. See random.h. */
#include "compiler/ops/random.h"

#include "compiler/ops/build.h"
#include "compiler/ops/family.h"
#include "runtime/base/hash.h"

#include <string.h>

static lth_sx u32(struct lth_sx_pool *pool, uint32_t value)
{
	return lth_sx_const_i(pool, LTH_DTYPE_U32, value);
}

/* High and low half of the product of two 32-bit numbers. */
static void multiply(struct lth_sx_pool *pool, lth_sx a, uint32_t b, lth_sx *out_high, lth_sx *out_low)
{
	lth_sx wide = lth_mul(pool, lth_sx_cast(pool, a, LTH_DTYPE_U64), lth_sx_const_i(pool, LTH_DTYPE_U64, b));
	lth_sx high = lth_sx_op2(pool, LTH_SCALAR_SHR, wide, lth_sx_const_i(pool, LTH_DTYPE_U64, 32));
	*out_high = lth_sx_cast(pool, high, LTH_DTYPE_U32);
	*out_low = lth_mul(pool, a, u32(pool, b)); /* wraps */
}

static void philox(struct lth_sx_pool *pool, uint64_t seed, lth_sx flat, lth_sx out[4])
{
	uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
	lth_sx wide = lth_sx_cast(pool, flat, LTH_DTYPE_U64);
	lth_sx upper = lth_sx_op2(pool, LTH_SCALAR_SHR, wide, lth_sx_const_i(pool, LTH_DTYPE_U64, 32));
	lth_sx c[4] = {lth_sx_cast(pool, wide, LTH_DTYPE_U32), lth_sx_cast(pool, upper, LTH_DTYPE_U32), u32(pool, 0),
		       u32(pool, 0)};
	for (int round = 0; round < 10; round++) {
		lth_sx high0, low0, high1, low1;
		multiply(pool, c[0], 0xD2511F53u, &high0, &low0);
		multiply(pool, c[2], 0xCD9E8D57u, &high1, &low1);
		lth_sx first = lth_sx_op2(pool, LTH_SCALAR_XOR, high1, c[1]);
		lth_sx third = lth_sx_op2(pool, LTH_SCALAR_XOR, high0, c[3]);
		c[0] = lth_sx_op2(pool, LTH_SCALAR_XOR, first, u32(pool, key0));
		c[1] = low1;
		c[2] = lth_sx_op2(pool, LTH_SCALAR_XOR, third, u32(pool, key1));
		c[3] = low0;
		key0 += 0x9E3779B9u;
		key1 += 0xBB67AE85u;
	}
	memcpy(out, c, sizeof(c));
}

static uint64_t seed_of(const struct lth_node *node)
{
	const struct lth_attr *seed = lth_node_attr(node, "seed");
	uint64_t bits = 0;
	if (!seed)
		return lth_hash_bytes(node->name, strlen(node->name), 0);
	if (seed->kind == LTH_ATTR_INT)
		bits = (uint64_t)seed->i;
	else
		memcpy(&bits, &seed->f, sizeof(bits));
	return lth_hash_u64(bits, 0);
}

static lth_sx flat_index(struct lth_lower *lower, lth_value_id value, const lth_sx *index)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx flat = lth_sx_int(pool, 0);
	for (uint32_t i = 0; i < lth_rank(lower, value); i++)
		flat = lth_add(pool, lth_mul(pool, flat, lth_extent(lower, value, (int32_t)i)), index[i]);
	return flat;
}

/* The upper 24 bits, exact in f32. */
static lth_sx unit(struct lth_sx_pool *pool, lth_sx bits)
{
	lth_sx top = lth_sx_op2(pool, LTH_SCALAR_SHR, bits, u32(pool, 8));
	return lth_mul(pool, lth_sx_cast(pool, top, LTH_DTYPE_F32), lth_sx_const_f(pool, LTH_DTYPE_F32, 0x1p-24));
}

lth_sx lth_random_uniform(struct lth_lower *lower, const struct lth_node *node, lth_value_id value, const lth_sx *index)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx bits[4];
	philox(pool, seed_of(node), flat_index(lower, value, index), bits);
	return unit(pool, bits[0]);
}

/* Box and Muller, of which only the cosine is used: no element depends on its neighbour. */
lth_sx lth_random_normal(struct lth_lower *lower, const struct lth_node *node, lth_value_id value, const lth_sx *index)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx bits[4];
	philox(pool, seed_of(node), flat_index(lower, value, index), bits);
	lth_sx positive = lth_sub(pool, lth_sx_const_f(pool, LTH_DTYPE_F32, 1), unit(pool, bits[0])); /* (0, 1] */
	lth_sx log = lth_unary(pool, LTH_SCALAR_LOG, positive);
	lth_sx radius = lth_unary(pool, LTH_SCALAR_SQRT, lth_mul(pool, log, lth_sx_const_f(pool, LTH_DTYPE_F32, -2)));
	lth_sx angle = lth_mul(pool, unit(pool, bits[1]), lth_sx_const_f(pool, LTH_DTYPE_F32, 6.283185307179586));
	return lth_mul(pool, radius, lth_unary(pool, LTH_SCALAR_COS, angle));
}

static enum lth_code infer_random(struct lth_infer *infer)
{
	enum lth_dtype dtype = LTH_DTYPE_F32;
	lth_dim dims[LTH_MAX_RANK];
	const int64_t *shape;
	uint32_t rank;
	if (lth_node_attr(infer->node, "dtype")) {
		enum lth_code code = lth_infer_dtype_attr(infer, "dtype", &dtype);
		if (code)
			return code;
	} else if (infer->node->num_inputs) {
		dtype = lth_infer_type(infer, 0)->dtype;
	}
	if (!lth_dtype_in(dtype, "float"))
		return lth_infer_unsupported(infer, NULL, "random numbers of type %s are not implemented",
					     lth_dtype_text(dtype));
	if (infer->node->num_inputs) {
		const struct lth_type *type = lth_infer_type(infer, 0);
		return lth_infer_output(infer, 0, dtype, type->rank, type->dims);
	}
	if (!lth_node_ints(infer->node, "shape", &shape, &rank) || rank > LTH_MAX_RANK)
		return lth_infer_unsupported(infer, NULL, "ranks above %d are not implemented", LTH_MAX_RANK);
	for (uint32_t i = 0; i < rank; i++)
		dims[i] = lth_dim_const(infer->dims, shape[i]);
	return lth_infer_output(infer, 0, dtype, rank, dims);
}

static lth_sx random_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
			     const lth_sx *index)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	enum lth_op_id id = lth_op_id(node->op);
	bool normal = id == LTH_OP_ID_RandomNormal || id == LTH_OP_ID_RandomNormalLike;
	double base = lth_op_float(node, normal ? "mean" : "low");
	double scale = normal ? lth_op_float(node, "scale") : lth_op_float(node, "high") - base;
	lth_sx x = normal ? lth_random_normal(lower, node, node->outputs[output], index)
			  : lth_random_uniform(lower, node, node->outputs[output], index);
	x = lth_sx_cast(pool, x, lth_compute_dtype(lth_value_dtype(lower, node->outputs[output])));
	return lth_add(pool, lth_mul(pool, x, lth_same_const(pool, x, scale)), lth_same_const(pool, x, base));
}

const struct lth_op_impl lth_impl_random = {.infer = infer_random, .element = random_element};

static enum lth_code infer_bernoulli(struct lth_infer *infer)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	enum lth_dtype dtype = type->dtype;
	enum lth_code code =
		lth_node_attr(infer->node, "dtype") ? lth_infer_dtype_attr(infer, "dtype", &dtype) : LTH_OK;
	if (code)
		return code;
	if (lth_compute_dtype(dtype) == LTH_NUM_DTYPES)
		return lth_infer_unsupported(infer, NULL, "random numbers of type %s are not implemented",
					     lth_dtype_text(dtype));
	return lth_infer_output(infer, 0, dtype, type->rank, type->dims);
}

static lth_sx bernoulli_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
				const lth_sx *index)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx probability = lth_sx_cast(pool, lth_read(lower, node->inputs[0], index), LTH_DTYPE_F32);
	lth_sx hit = lth_lt(pool, lth_random_uniform(lower, node, node->outputs[output], index), probability);
	return lth_sx_cast(pool, hit, lth_compute_dtype(lth_value_dtype(lower, node->outputs[output])));
}

const struct lth_op_impl lth_impl_bernoulli = {.infer = infer_bernoulli, .element = bernoulli_element};

/* ---- Multinomial ---- */

/* One dimension of the input, as a tensor of one element. */
static lth_value_id extent_of(struct lth_infer *infer, lth_value_id x, int64_t axis)
{
	const struct lth_attr attrs[2] = {{.name = "start", .kind = LTH_ATTR_INT, .count = 1, .i = axis},
					  {.name = "end", .kind = LTH_ATTR_INT, .count = 1, .i = axis + 1}};
	return lth_build(infer, LTH_OP_ID_Shape, &x, 1, attrs, 2);
}

/* Uniform numbers [batches, samples], from the node's own seed. */
static lth_value_id draws(struct lth_infer *infer, lth_value_id x, int64_t samples)
{
	const struct lth_attr axis = {.name = "axis", .kind = LTH_ATTR_INT, .count = 1, .i = 0};
	const struct lth_attr *seed = lth_node_attr(infer->node, "seed");
	lth_value_id list[2] = {extent_of(infer, x, 0), LTH_NONE};
	list[1] = lth_build_ints(infer, &samples, 1);
	lth_value_id shape = lth_build(infer, LTH_OP_ID_Concat, list, 2, &axis, 1);
	lth_value_id zero = lth_build_scalar(infer, LTH_DTYPE_F32, 0);
	lth_value_id like = lth_build2(infer, LTH_OP_ID_Expand, zero, shape);
	return lth_build(infer, LTH_OP_ID_RandomUniformLike, &like, 1, seed, seed != NULL);
}

/* Rows of unnormalised log probabilities: the class drawn is the number of those whose share, with all before, is not
 * above a uniform number. */
static enum lth_code expand_multinomial(struct lth_infer *infer)
{
	const struct lth_attr axis = {.name = "axis", .kind = LTH_ATTR_INT, .count = 1, .i = 1};
	const int64_t classes_axis = 1, draw_axis = 2;
	int64_t samples = lth_op_int(infer->node, "sample_size");
	enum lth_dtype dtype;
	enum lth_code code = lth_infer_need_rank(infer, 0, 2, 2);
	if (!code)
		code = lth_infer_dtype_attr(infer, "dtype", &dtype);
	if (!code && !lth_dtype_in(dtype, "i32|i64"))
		code = lth_infer_reject(infer, "classes as i32 or i64", "%s", lth_dtype_text(dtype));
	if (!code && samples < 1)
		code = lth_infer_reject(infer, "a sample_size of at least 1", "%lld", (long long)samples);
	if (code)
		return code;
	lth_value_id x = lth_build_cast(infer, lth_node_input(infer->node, 0), LTH_DTYPE_F32);
	lth_value_id shares[2] = {lth_build(infer, LTH_OP_ID_Softmax, &x, 1, &axis, 1), LTH_NONE};
	shares[1] = lth_build_scalar(infer, LTH_DTYPE_I64, 1);
	lth_value_id ends = lth_build(infer, LTH_OP_ID_CumSum, shares, 2, NULL, 0);
	ends = lth_build_unsqueeze(infer, ends, &classes_axis, 1);
	lth_value_id drawn = lth_build_unsqueeze(infer, draws(infer, x, samples), &draw_axis, 1);
	lth_value_id passed = lth_build2(infer, LTH_OP_ID_LessOrEqual, ends, drawn);
	passed = lth_build_cast(infer, passed, LTH_DTYPE_I64);
	lth_value_id class = lth_build_reduce(infer, LTH_OP_ID_ReduceSum, passed, &draw_axis, 1, false);
	lth_value_id last = extent_of(infer, x, 1), one = lth_build_scalar(infer, LTH_DTYPE_I64, 1);
	last = lth_build2(infer, LTH_OP_ID_Sub, last, one); /* shares that add up to less than the number drawn */
	class = lth_build2(infer, LTH_OP_ID_Min, class, last);
	lth_build_output(infer, 0, lth_build_cast(infer, class, dtype));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_multinomial = {.expand = expand_multinomial};
