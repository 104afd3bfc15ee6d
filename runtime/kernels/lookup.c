/* Finding elements in constant lists.
 *
 *   lookup   output: places i64, like the elements; inputs: elements, keys [n] of their type, ascending and distinct.
 *            An element that is no key gets place n. NaN equals NaN.
 *   lookup_string  the same; inputs: strings, keys as bytes u8 and ends i64 (as in string_table)
 *   ngrams   output: counts f32 [size] or [rows, size]; inputs: tokens [columns] or [rows, columns]; pool of n-grams:
 *            pool (tokens), starts i64 (where the 1-grams, 2-grams ... begin in it), columns i64 (of the output, one
 *            for each n-gram)
 *            attributes: min_gram_length, max_gram_length, max_skip_count (ONNX TfIdfVectorizer-9, mode TF)
 */
#include "runtime/kernels/copy.h"
#include "runtime/kernels/order.h"
#include "runtime/kernels/walk.h"

#include <string.h>

/* The first of `count` keys that is not below the element: binary search. */
static int64_t place_of_key(const void *element, const struct lth_builtin_tensor *keys)
{
	int64_t low = 0, high = keys->dims[0], step = keys->strides[0] * (int64_t)(lth_dtype_bits(keys->dtype) / 8);
	while (low < high) {
		int64_t middle = low + (high - low) / 2;
		if (lth_compare((const char *)keys->data + middle * step, element, keys->dtype) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	bool found = low < keys->dims[0] &&
		     lth_compare((const char *)keys->data + low * step, element, keys->dtype) == 0;
	return found ? low : keys->dims[0];
}

int lth_builtin_lookup(struct lth_builtin_call *call)
{
	struct lth_builtin_tensor in = lth_builtin_input(call, 0), keys = lth_builtin_input(call, 1);
	if (keys.rank != 1 || keys.dtype != in.dtype || !lth_has_key(in.dtype))
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "lookup takes elements and keys of one type");
	int64_t count = lth_tensor_count(in.rank, in.dims), *out = call->tensors[0].data;
	struct lth_walk walk;
	lth_walk_init(&walk, &in, LTH_MAX_RANK);
	for (int64_t i = 0; i < count; i++, lth_walk_next(&walk))
		out[i] = place_of_key(walk.at, &keys);
	return 0;
}

static struct lth_string key_at(const struct lth_builtin_tensor *bytes, const struct lth_builtin_tensor *ends,
				int64_t i)
{
	const int64_t *list = ends->data;
	int64_t begin = i ? list[i - 1] : 0;
	return (struct lth_string){(const char *)bytes->data + begin, (size_t)(list[i] - begin)};
}

static int64_t place_of_string(const void *element, const struct lth_builtin_tensor *bytes,
			       const struct lth_builtin_tensor *ends)
{
	int64_t low = 0, high = ends->dims[0];
	while (low < high) {
		int64_t middle = low + (high - low) / 2;
		struct lth_string key = key_at(bytes, ends, middle);
		if (lth_compare(&key, element, LTH_DTYPE_STRING) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	struct lth_string key = low < ends->dims[0] ? key_at(bytes, ends, low) : (struct lth_string){0};
	bool found = low < ends->dims[0] && lth_compare(&key, element, LTH_DTYPE_STRING) == 0;
	return found ? low : ends->dims[0];
}

int lth_builtin_lookup_string(struct lth_builtin_call *call)
{
	struct lth_builtin_tensor in = lth_builtin_input(call, 0), bytes = lth_builtin_input(call, 1);
	struct lth_builtin_tensor ends = lth_builtin_input(call, 2);
	if (bytes.rank != 1 || ends.rank != 1 || in.dtype != LTH_DTYPE_STRING)
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "lookup_string takes strings and keys");
	for (int64_t i = 0, begin = 0; i < ends.dims[0]; i++) {
		int64_t end = ((const int64_t *)ends.data)[i];
		if (end < begin || end > bytes.dims[0])
			return lth_builtin_fail(call, LTH_KERNEL_INDEX, "key %lld is outside the bytes", (long long)i);
		begin = end;
	}
	int64_t count = lth_tensor_count(in.rank, in.dims), *out = call->tensors[0].data;
	struct lth_walk walk;
	lth_walk_init(&walk, &in, LTH_MAX_RANK);
	for (int64_t i = 0; i < count; i++, lth_walk_next(&walk))
		out[i] = place_of_string(walk.at, &bytes, &ends);
	return 0;
}

/* ---- n-grams ---- */

struct ngrams {
	struct lth_builtin_tensor tokens, pool, starts, columns;
	int64_t length, skips; /* of the grams in hand; most tokens skipped between two of a gram */
	int64_t size;          /* of an output row */
};

static int64_t int_at(const struct lth_builtin_tensor *list, int64_t i)
{
	return ((const int64_t *)list->data)[i * list->strides[0]];
}

/* Counts the gram of `length` tokens that begins at `first`, `step` tokens apart. */
static void count_gram(const struct ngrams *n, const char *first, int64_t token_step, int64_t row_begin,
		       int64_t row_end, int64_t gram_base, float *out)
{
	int64_t element = lth_dtype_bits(n->tokens.dtype) / 8;
	for (int64_t at = row_begin, gram = gram_base; at + n->length <= row_end; at += n->length, gram++) {
		bool same = true;
		for (int64_t k = 0; k < n->length && same; k++)
			same = lth_compare(first + k * token_step, (const char *)n->pool.data + (at + k) * element,
					   n->tokens.dtype) == 0;
		int64_t column = same && gram < n->columns.dims[0] ? int_at(&n->columns, gram) : -1;
		if (column >= 0 && column < n->size)
			out[column] += 1;
	}
}

/* All grams of one length in a row of tokens, for each number of tokens skipped. */
static void count_row(const struct ngrams *n, const char *row, int64_t count, int64_t stride, int64_t begin,
		      int64_t end, int64_t gram_base, float *out)
{
	for (int64_t skip = 0; skip <= (n->length == 1 ? 0 : n->skips); skip++)
		for (int64_t first = 0; first + (n->length - 1) * (skip + 1) < count; first++)
			count_gram(n, row + first * stride, stride * (skip + 1), begin, end, gram_base, out);
}

int lth_builtin_ngrams(struct lth_builtin_call *call)
{
	struct lth_builtin_tensor out = call->tensors[0];
	struct ngrams n = {.tokens = lth_builtin_input(call, 0), .pool = lth_builtin_input(call, 1),
			   .starts = lth_builtin_input(call, 2), .columns = lth_builtin_input(call, 3),
			   .skips = lth_builtin_int(call, "max_skip_count", 0), .size = out.dims[out.rank - 1]};
	if (n.tokens.rank < 1 || n.tokens.rank > 2 || out.rank != n.tokens.rank || n.pool.rank != 1 ||
	    n.pool.dtype != n.tokens.dtype || n.starts.rank != 1 || n.columns.rank != 1)
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "ngrams takes tokens and a pool of one type");
	int64_t rows = n.tokens.rank == 2 ? n.tokens.dims[0] : 1, pool = n.pool.dims[0];
	int64_t longest = lth_builtin_int(call, "max_gram_length", 1), element = lth_dtype_bits(n.tokens.dtype) / 8;
	int64_t shortest = lth_builtin_int(call, "min_gram_length", 1);
	memset(out.data, 0, (size_t)(rows * n.size) * sizeof(float));
	int64_t gram_base = 0;
	for (n.length = 1; n.length <= n.starts.dims[0] && n.length <= longest; n.length++) {
		int64_t begin = int_at(&n.starts, n.length - 1);
		int64_t end = n.length < n.starts.dims[0] ? int_at(&n.starts, n.length) : pool;
		if (begin < 0 || begin > end || end > pool)
			return lth_builtin_fail(call, LTH_KERNEL_INDEX, "n-grams of length %lld outside the pool",
						(long long)n.length);
		for (int64_t row = 0; row < rows && n.length >= shortest; row++) {
			int64_t last = n.tokens.rank - 1;
			const char *tokens = (const char *)n.tokens.data +
					     (n.tokens.rank == 2 ? row * n.tokens.strides[0] * element : 0);
			count_row(&n, tokens, n.tokens.dims[last], n.tokens.strides[last] * element, begin, end,
				  gram_base, (float *)out.data + row * n.size);
		}
		gram_base += (end - begin) / n.length;
	}
	return 0;
}
