/* Operators that take text apart: StringSplit, StringNormalizer, TfIdfVectorizer. What only data decides is computed
 * first, so that the results that depend on it have a size when they are made. */
#include "compiler/ops/family.h"
#include "compiler/ops/strings.h"

#include <string.h>

/* ---- StringSplit ---- */

static enum lth_code expand_string_split(struct lth_infer *infer)
{
	const int64_t all = -1, axis = 0, none = 0;
	const struct lth_attr *given = lth_node_attr(infer->node, "delimiter");
	struct lth_string delimiter = given ? given->s : (struct lth_string){"", 0};
	lth_value_id x = lth_node_input(infer->node, 0), bytes, ends;
	const struct lth_attr most = {
		.name = "maxsplit", .kind = LTH_ATTR_INT, .count = 1, .i = lth_node_int(infer->node, "maxsplit", -1)};
	lth_build_string_bytes(infer, &delimiter, 1, &bytes, &ends);
	lth_value_id counts = lth_build(infer, LTH_OP_ID_StringSplitCount, (lth_value_id[]){x, bytes}, 2, &most, 1);
	if (lth_build_wants(infer, 0)) {
		const struct lth_attr along = {.name = "axis", .kind = LTH_ATTR_INT, .count = 1, .i = 0};
		lth_value_id flat = lth_build_reshape(infer, counts, &all, 1), zero = lth_build_ints(infer, &none, 1);
		lth_value_id list = lth_build(infer, LTH_OP_ID_Concat, (lth_value_id[]){flat, zero}, 2, &along, 1);
		lth_value_id room = lth_build_reduce(infer, LTH_OP_ID_ReduceMax, list, &axis, 1, true);
		lth_value_id in[] = {x, bytes, room};
		lth_build_output(infer, 0, lth_build(infer, LTH_OP_ID_StringSplitParts, in, 3, &most, 1));
	}
	lth_build_output(infer, 1, counts);
	return LTH_OK;
}

const struct lth_op_impl lth_impl_string_split = {.expand = expand_string_split};

static enum lth_code infer_split_count(struct lth_infer *infer)
{
	return lth_infer_like(infer, 0, 0);
}

const struct lth_op_impl lth_impl_string_split_count = {.infer = infer_split_count, .builtin = "string_split_count"};

static enum lth_code infer_split_parts(struct lth_infer *infer)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	const lth_dim *room;
	lth_dim dims[LTH_MAX_RANK];
	uint32_t count;
	enum lth_code code = lth_infer_need_rank(infer, 0, 0, LTH_MAX_RANK - 1);
	if (!code)
		code = lth_infer_need_ints(infer, 2, 0, &room, &count);
	if (!code && count != 1)
		code = lth_infer_reject(infer, "one number of parts", "%u", count);
	if (code)
		return code;
	memcpy(dims, type->dims, type->rank * sizeof(*dims));
	dims[type->rank] = room[0];
	return lth_infer_output(infer, 0, LTH_NUM_DTYPES, type->rank + 1, dims);
}

const struct lth_op_impl lth_impl_string_split_parts = {.infer = infer_split_parts, .builtin = "string_split"};

/* ---- StringNormalizer ---- */

static enum lth_code expand_string_normalizer(struct lth_infer *infer)
{
	const struct lth_attr *stops = lth_node_attr(infer->node, "stopwords");
	const struct lth_attr *change = lth_node_attr(infer->node, "case_change_action");
	lth_value_id in[3] = {lth_node_input(infer->node, 0), LTH_NONE, LTH_NONE};
	struct lth_attr attrs[2] = {{.name = "is_case_sensitive",
				     .kind = LTH_ATTR_INT,
				     .count = 1,
				     .i = lth_op_int(infer->node, "is_case_sensitive")}};
	uint32_t count = 1;
	enum lth_code code = lth_infer_need_rank(infer, 0, 1, 2);
	if (!code && lth_infer_rank(infer, 0) == 2)
		code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, 0, 0), lth_dim_const(infer->dims, 1),
					 "strings [n] or [1, n]");
	if (code)
		return code;
	if (change)
		attrs[count++] = *change;
	lth_build_string_bytes(infer, stops ? stops->strings : NULL, stops ? stops->count : 0, &in[1], &in[2]);
	lth_build_output(infer, 0, lth_build(infer, LTH_OP_ID_StringNormalize, in, 3, attrs, count));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_string_normalizer = {.expand = expand_string_normalizer};

static enum lth_code infer_string_normalize(struct lth_infer *infer)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	lth_dim dims[2], one = lth_dim_const(infer->dims, 1);
	enum lth_code code = lth_infer_need_rank(infer, 0, 1, 2);
	if (code)
		return code;
	dims[0] = one;
	lth_dim most =
		lth_dim_max(infer->dims, type->dims[type->rank - 1], one); /* an empty string if nothing is left */
	dims[type->rank - 1] = lth_infer_data_dim(infer, "count", most);
	return lth_infer_output(infer, 0, LTH_NUM_DTYPES, type->rank, dims);
}

const struct lth_op_impl lth_impl_string_normalize = {.infer = infer_string_normalize, .builtin = "string_normalize"};

/* ---- TfIdfVectorizer ---- */

/* The pool as a constant of the input's type, or LTH_NONE with the code set. */
static enum lth_code build_pool(struct lth_infer *infer, lth_value_id *out)
{
	const struct lth_attr *words = lth_node_attr(infer->node, "pool_strings");
	const struct lth_attr *numbers = lth_node_attr(infer->node, "pool_int64s");
	enum lth_dtype dtype = lth_infer_type(infer, 0)->dtype;
	if (!words == !numbers || (dtype == LTH_DTYPE_STRING) != (words != NULL))
		return lth_infer_reject(infer, "pool_strings for strings or pool_int64s for integers", "type %s",
					lth_dtype_text(dtype));
	if (words)
		*out = lth_build_strings(infer, words->strings, words->count);
	else
		*out = lth_build_cast(infer, lth_build_ints(infer, numbers->ints, numbers->count), dtype);
	return LTH_OK;
}

/* Columns of the output: one beyond the largest index. */
static enum lth_code output_columns(struct lth_infer *infer, const int64_t *columns, uint32_t count, int64_t *out)
{
	*out = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (columns[i] < 0 || columns[i] >= INT32_MAX)
			return lth_infer_reject(infer, "ngram_indexes of at least 0", "%lld", (long long)columns[i]);
		if (columns[i] >= *out)
			*out = columns[i] + 1;
	}
	return LTH_OK;
}

static lth_value_id weighted(struct lth_infer *infer, lth_value_id counts, int64_t size)
{
	const struct lth_attr *given = lth_node_attr(infer->node, "weights");
	bool once = lth_op_string_is(infer->node, "mode", "IDF");
	if (once)
		counts = lth_build2(infer, LTH_OP_ID_Min, counts, lth_build_scalar(infer, LTH_DTYPE_F32, 1));
	if (!given || lth_op_string_is(infer->node, "mode", "TF"))
		return counts;
	float *weights = lth_arena_array(infer->graph->arena, size ? (size_t)size : 1, sizeof(*weights));
	if (!weights)
		return LTH_NONE;
	for (int64_t i = 0; i < size; i++)
		weights[i] = i < given->count ? (float)given->floats[i] : 1;
	lth_value_id factors =
		lth_build_data(infer, LTH_DTYPE_F32, 1, &size, weights, (size_t)size * sizeof(*weights));
	return lth_build2(infer, LTH_OP_ID_Mul, counts, factors);
}

/* Lengths and skips that make sense, and a place in the pool where the grams of each length begin. */
static enum lth_code check_grams(struct lth_infer *infer, const int64_t *starts, uint32_t num_starts)
{
	const struct lth_node *node = infer->node;
	const struct lth_attr *strings = lth_node_attr(node, "pool_strings"), *ints = lth_node_attr(node, "pool_int64s");
	int64_t pool = strings ? strings->count : ints ? ints->count : 0, last = 0;
	int64_t min = lth_op_int(node, "min_gram_length"), max = lth_op_int(node, "max_gram_length");
	int64_t skips = lth_op_int(node, "max_skip_count");
	if (min < 1 || max < min || max > num_starts)
		return lth_infer_reject(infer, "lengths from 1 on for which ngram_counts says where they begin",
					"min_gram_length %lld and max_gram_length %lld", (long long)min, (long long)max);
	if (skips < 0 || skips > INT32_MAX)
		return lth_infer_reject(infer, "0 or more, within 32 bits", "max_skip_count %lld", (long long)skips);
	for (uint32_t i = 0; i < num_starts; last = starts[i++])
		if (starts[i] < last || starts[i] > pool)
			return lth_infer_reject(infer, "ascending places in the pool", "ngram_counts %lld",
						(long long)starts[i]);
	return LTH_OK;
}

static enum lth_code expand_tf_idf(struct lth_infer *infer)
{
	static const char *const kept[] = {"max_gram_length", "max_skip_count", "min_gram_length"};
	const int64_t *starts, *columns;
	uint32_t num_starts, num_columns;
	struct lth_attr attrs[4];
	int64_t size;
	lth_value_id in[4] = {lth_node_input(infer->node, 0)};
	enum lth_code code = lth_infer_need_rank(infer, 0, 1, 2);
	if (!code && (!lth_node_ints(infer->node, "ngram_counts", &starts, &num_starts) ||
		      !lth_node_ints(infer->node, "ngram_indexes", &columns, &num_columns)))
		code = lth_infer_reject(infer, "ngram_counts and ngram_indexes", "none");
	if (!code)
		code = check_grams(infer, starts, num_starts);
	if (!code)
		code = output_columns(infer, columns, num_columns, &size);
	if (!code)
		code = build_pool(infer, &in[1]);
	if (code)
		return code;
	in[2] = lth_build_ints(infer, starts, num_starts);
	in[3] = lth_build_ints(infer, columns, num_columns);
	for (int i = 0; i < 3; i++)
		attrs[i] = (struct lth_attr){
			.name = kept[i], .kind = LTH_ATTR_INT, .count = 1, .i = lth_op_int(infer->node, kept[i])};
	attrs[3] = (struct lth_attr){.name = "size", .kind = LTH_ATTR_INT, .count = 1, .i = size};
	lth_value_id counts = lth_build(infer, LTH_OP_ID_NGrams, in, 4, attrs, 4);
	lth_build_output(infer, 0, weighted(infer, counts, size));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_tf_idf = {.expand = expand_tf_idf};

static enum lth_code infer_ngrams(struct lth_infer *infer)
{
	lth_dim dims[2], size = lth_dim_const(infer->dims, lth_op_int(infer->node, "size"));
	enum lth_code code = lth_infer_need_rank(infer, 0, 1, 2);
	if (code)
		return code;
	uint32_t rank = lth_infer_rank(infer, 0);
	dims[0] = lth_infer_dim(infer, 0, 0);
	dims[rank - 1] = size;
	return lth_infer_output(infer, 0, LTH_NUM_DTYPES, rank, dims);
}

const struct lth_op_impl lth_impl_ngrams = {.infer = infer_ngrams, .builtin = "ngrams"};
