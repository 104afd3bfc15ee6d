/* Operators of com.microsoft for text: MurmurHash3, BifurcationDetector, WordConvEmbedding. */
#include "compiler/ops/microsoft.h"
#include "compiler/ops/family.h"

#include <math.h>

static enum lth_code infer_murmur_hash(struct lth_infer *infer)
{
	const struct lth_type *x = lth_infer_type(infer, 0);
	enum lth_dtype dtype = lth_op_int(infer->node, "positive") ? LTH_DTYPE_U32 : LTH_DTYPE_I32;
	return lth_infer_output(infer, 0, dtype, x->rank, x->dims);
}

const struct lth_op_impl lth_impl_ms_murmur_hash = {.infer = infer_murmur_hash, .builtin = "murmur_hash"};

/* At most all predicted tokens are taken over. */
static enum lth_code infer_bifurcation(struct lth_infer *infer)
{
	enum { TOKENS = 1, PREDICTED = 3 };
	int64_t least = lth_op_int(infer->node, "min_ngram_size"), longest = lth_op_int(infer->node, "max_ngram_size");
	if (least > longest)
		return lth_infer_reject(infer, "min_ngram_size up to max_ngram_size", "%lld and %lld", (long long)least,
					(long long)longest);
	lth_dim most = lth_infer_dim(infer, TOKENS, 0);
	if (lth_infer_type(infer, PREDICTED))
		most = lth_dim_add(infer->dims, most, lth_infer_dim(infer, PREDICTED, 0));
	lth_dim count = lth_infer_data_dim(infer, "count", most);
	enum lth_code code = lth_infer_output(infer, 0, LTH_NUM_DTYPES, 1, &count);
	return code ? code : lth_infer_output(infer, 1, LTH_NUM_DTYPES, 0, NULL);
}

const struct lth_op_impl lth_impl_ms_bifurcation = {.infer = infer_bifurcation, .builtin = "bifurcation"};

/* ---- WordConvEmbedding ---- */

/* How many characters each word has: those that are not 0, none when it begins with 0. [words] */
static lth_value_id word_lengths(struct lth_infer *infer, lth_value_id words)
{
	const int64_t last = -1;
	lth_value_id zero = lth_build_scalar(infer, LTH_DTYPE_I32, 0);
	lth_value_id used = lth_build2(infer, LTH_OP_ID_Greater, words, zero);
	lth_value_id count = lth_build_cast(infer, used, LTH_DTYPE_I64);
	count = lth_build_reduce(infer, LTH_OP_ID_ReduceSum, count, &last, 1, false);
	lth_value_id begins = lth_build_gather(infer, used, lth_build_scalar(infer, LTH_DTYPE_I64, 0), 1);
	return lth_build_select(infer, begins, count, lth_build_scalar(infer, LTH_DTYPE_I64, 0));
}

/* Attributes that repeat what the filters [embedding, 1, window, character embedding] say; below 0: not given. */
static enum lth_code check_sizes(struct lth_infer *infer, uint32_t filters)
{
	static const char *const names[] = {"embedding_size", NULL, "conv_window_size", "char_embedding_size"};
	enum lth_code code = LTH_OK;
	for (uint32_t axis = 0; !code && axis < 4; axis++) {
		int64_t given = names[axis] ? lth_node_int(infer->node, names[axis], -1) : -1;
		if (given != -1)
			code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, filters, axis),
						 lth_dim_const(infer->dims, given),
						 lth_arena_printf(infer->graph->arena, "%s as the filters'", names[axis]));
	}
	return code;
}

/* Windows of characters through filters, the greatest value of each filter over a word's windows, tanh; 0 for empty
 * words. A word shorter than a window has one, into its padding. */
static enum lth_code expand_word_embedding(struct lth_infer *infer)
{
	enum { WORDS, FILTERS, BIAS, CHARACTERS };
	const int64_t one = 1, column[] = {1, 2}, last = -1;
	int64_t window;
	enum lth_code code = check_sizes(infer, FILTERS);
	if (code)
		return code;
	if (!lth_dim_is_const(infer->dims, lth_infer_dim(infer, FILTERS, 2), &window) || window < 1)
		return lth_infer_unsupported(infer, "give filters of a fixed size", "%s of symbolic size",
					     lth_infer_input_text(infer, FILTERS));
	lth_value_id words = lth_in(infer, WORDS), filters = lth_in(infer, FILTERS), bias = lth_in(infer, BIAS);
	lth_value_id rows = lth_build_gather(infer, lth_in(infer, CHARACTERS), words, 0);
	rows = lth_build_unsqueeze(infer, rows, &one, 1);
	lth_value_id y = lth_build(infer, LTH_OP_ID_Conv, (lth_value_id[]){rows, filters, bias}, 3, NULL, 0);
	y = lth_build_reshape(infer, y, (int64_t[]){0, 0, -1}, 3);
	lth_value_id lengths = word_lengths(infer, words),
		     width = lth_build_scalar(infer, LTH_DTYPE_I64, (double)window);
	lth_value_id ends = lth_build2(infer, LTH_OP_ID_Sub, lth_build2(infer, LTH_OP_ID_Max, lengths, width), width);
	ends = lth_build_unsqueeze(infer, ends, column, 2);
	lth_value_id places = lth_build_count(infer, lth_build_extent(infer, y, 2));
	lth_value_id never = lth_build_scalar(infer, LTH_DTYPE_F32, -INFINITY);
	y = lth_build_select(infer, lth_build2(infer, LTH_OP_ID_LessOrEqual, places, ends), y, never);
	y = lth_build1(infer, LTH_OP_ID_Tanh, lth_build_reduce(infer, LTH_OP_ID_ReduceMax, y, &last, 1, false));
	lth_value_id zero = lth_build_scalar(infer, LTH_DTYPE_I64, 0),
		     nothing = lth_build_scalar(infer, LTH_DTYPE_F32, 0);
	lth_value_id used = lth_build2(infer, LTH_OP_ID_Greater, lengths, zero);
	used = lth_build_unsqueeze(infer, used, &one, 1);
	lth_build_output(infer, 0, lth_build_select(infer, used, y, nothing));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_ms_word_embedding = {.expand = expand_word_embedding};
