/* Operators on matrices whose work is a C kernel: determinants, inverses, and linear attention with its recurrent state. */
#include "compiler/ops/family.h"

#include <string.h>

static enum lth_code need_squares(struct lth_infer *infer)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	enum lth_code code = lth_infer_need_rank(infer, 0, 2, LTH_MAX_RANK);
	return code ? code
		    : lth_infer_require(infer, LTH_REL_EQ, type->dims[type->rank - 2], type->dims[type->rank - 1],
					"square matrices");
}

static enum lth_code infer_det(struct lth_infer *infer)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	enum lth_code code = need_squares(infer);
	return code ? code : lth_infer_output(infer, 0, LTH_NUM_DTYPES, type->rank - 2, type->dims);
}

const struct lth_op_impl lth_impl_det = {.infer = infer_det, .builtin = "det"};

static enum lth_code infer_inverse(struct lth_infer *infer)
{
	enum lth_code code = need_squares(infer);
	return code ? code : lth_infer_like(infer, 0, 0);
}

const struct lth_op_impl lth_impl_ms_inverse = {.infer = infer_inverse, .builtin = "inverse"};

enum { QUERY, KEY, VALUE, PAST_STATE, DECAY, BETA };

static enum lth_code check_linear_attention(struct lth_infer *infer, int64_t q_heads, int64_t kv_heads)
{
	bool decays = !lth_op_string_is(infer->node, "update_rule", "linear") &&
		      !lth_op_string_is(infer->node, "update_rule", "delta");
	bool corrects = !lth_op_string_is(infer->node, "update_rule", "linear") &&
			!lth_op_string_is(infer->node, "update_rule", "gated");
	enum lth_code code = LTH_OK;
	if (q_heads < 1 || kv_heads < 1 || q_heads % kv_heads)
		return lth_infer_reject(infer, "q_num_heads a multiple of kv_num_heads", "%lld and %lld",
					(long long)q_heads, (long long)kv_heads);
	if ((decays && !lth_infer_type(infer, DECAY)) || (corrects && !lth_infer_type(infer, BETA)))
		return lth_infer_reject(infer, "decay and beta as the update rule needs them", "update_rule '%s'",
					lth_node_string(infer->node, "update_rule", "gated_delta"));
	for (uint32_t i = QUERY; !code && i <= BETA; i++) {
		if (!lth_infer_type(infer, i))
			continue;
		uint32_t rank = i == PAST_STATE ? 4 : 3;
		code = lth_infer_need_rank(infer, i, rank, rank);
		for (uint32_t axis = 0; !code && i != PAST_STATE && axis < 2; axis++)
			code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, i, axis),
						 lth_infer_dim(infer, QUERY, axis), "one batch and sequence");
	}
	return code;
}

/* A decay for each head or each row of its state; a rate for each head, or one. */
static enum lth_code check_gates(struct lth_infer *infer, lth_dim heads, lth_dim key_size)
{
	struct lth_dims *dims = infer->dims;
	lth_dim one = lth_dim_const(dims, 1);
	enum lth_code code = LTH_OK;
	if (lth_infer_type(infer, DECAY))
		code = lth_infer_require_either(infer, lth_infer_dim(infer, DECAY, 2), heads,
						lth_dim_mul(dims, heads, key_size),
						"a decay for each head, or each of its keys");
	if (!code && lth_infer_type(infer, BETA))
		code = lth_infer_require_either(infer, lth_infer_dim(infer, BETA, 2), heads, one,
						"one rate, or one for each head");
	return code;
}

static enum lth_code infer_linear_attention(struct lth_infer *infer)
{
	struct lth_dims *dims = infer->dims;
	int64_t q_heads = lth_op_int(infer->node, "q_num_heads"), kv_heads = lth_op_int(infer->node, "kv_num_heads");
	enum lth_code code = check_linear_attention(infer, q_heads, kv_heads);
	if (code)
		return code;
	lth_dim heads = lth_dim_const(dims, kv_heads), batch = lth_infer_dim(infer, QUERY, 0);
	lth_dim key_size = lth_dim_floordiv(dims, lth_infer_dim(infer, KEY, 2), heads);
	lth_dim value_size = lth_dim_floordiv(dims, lth_infer_dim(infer, VALUE, 2), heads);
	const lth_dim state[4] = {batch, heads, key_size, value_size};
	const lth_dim y[3] = {batch, lth_infer_dim(infer, QUERY, 1),
			      lth_dim_mul(dims, value_size, lth_dim_const(dims, q_heads))};
	for (uint32_t i = KEY; !code && i <= VALUE; i++)
		code = lth_infer_require(infer, LTH_REL_DIVIDES, heads, lth_infer_dim(infer, i, 2),
					 "keys and values of whole heads");
	if (!code)
		code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, QUERY, 2),
					 lth_dim_mul(dims, key_size, lth_dim_const(dims, q_heads)),
					 "queries and keys of one size");
	if (!code)
		code = check_gates(infer, heads, key_size);
	for (uint32_t axis = 0; !code && lth_infer_type(infer, PAST_STATE) && axis < 4; axis++)
		code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, PAST_STATE, axis), state[axis],
					 "a past state [batch, kv heads, key size, value size]");
	const struct lth_type *past = lth_infer_type(infer, PAST_STATE);
	enum lth_dtype state_dtype = past ? past->dtype : lth_infer_type(infer, QUERY)->dtype;
	if (!code)
		code = lth_infer_output(infer, 0, LTH_NUM_DTYPES, 3, y);
	return code ? code : lth_infer_output(infer, 1, state_dtype, 4, state);
}

const struct lth_op_impl lth_impl_linear_attention = {.infer = infer_linear_attention, .builtin = "linear_attention"};
