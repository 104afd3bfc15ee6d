/* bifurcation: what com.microsoft BifurcationDetector does between two steps of aggressive decoding.
 *
 *   outputs: tokens i64 [bound], place i64 scalar, extent of the tokens
 *   inputs: source tokens, tokens so far, place of the last match (one element), predicted tokens (may be absent);
 *           all i64; attributes min_ngram_size, max_ngram_size
 *
 * Predicted tokens are taken over as far as they agree with the source from the last match on, and one more. Then the
 * shortest suffix of all tokens is looked for that occurs in the source exactly once: the place behind it, or -1. */
#include "runtime/kernels/builtin.h"

/* A vector with a stride. */
struct list {
	const int64_t *data;
	int64_t count, stride;
};

static struct list list_of(const struct lth_builtin_tensor *tensor)
{
	if (!tensor->data || tensor->rank != 1)
		return (struct list){0};
	return (struct list){tensor->data, tensor->dims[0], tensor->strides[0]};
}

static int64_t at(const struct list *list, int64_t i)
{
	return list->data[i * list->stride];
}

/* The first place from `begin` on where the last `size` tokens stand in the source, or -1. */
static int64_t find(const struct list *source, const int64_t *tokens, int64_t count, int64_t size, int64_t begin)
{
	for (int64_t i = begin; i <= source->count - size; i++) {
		int64_t k = 0;
		while (k < size && at(source, i + k) == tokens[count - size + k])
			k++;
		if (k == size)
			return i;
	}
	return -1;
}

static int64_t match_suffix(const struct list *source, const int64_t *tokens, int64_t count, int64_t min, int64_t max)
{
	for (int64_t size = min < 1 ? 1 : min; size <= max && size <= count; size++) {
		int64_t found = find(source, tokens, count, size, 0);
		if (found < 0)
			return -1;
		if (found + size >= source->count)
			return found + size;
		if (find(source, tokens, count, size, found + 1) < 0)
			return found + size;
	}
	return -1;
}

int lth_builtin_bifurcation(struct lth_builtin_call *call)
{
	struct lth_builtin_tensor in[4];
	for (uint32_t i = 0; i < 4; i++)
		in[i] = lth_builtin_input(call, i);
	struct list source = list_of(&in[0]), current = list_of(&in[1]), predicted = list_of(&in[3]);
	int64_t last = in[2].data ? *(const int64_t *)in[2].data : 0, *tokens = call->tensors[0].data, agreed = 0;
	if (call->num_outputs != 3 || !in[0].data || !in[1].data)
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "bifurcation takes three outputs and vectors");
	if (in[3].data) {
		if (last < 0 || last > source.count || predicted.count != source.count + 1 - last)
			return lth_builtin_fail(call, LTH_KERNEL_SHAPE,
						"%lld predicted tokens for a match at %lld of %lld source tokens",
						(long long)predicted.count, (long long)last, (long long)source.count);
		while (agreed < source.count - last && at(&predicted, agreed) == at(&source, last + agreed))
			agreed++;
		agreed++; /* the first that differs, or the one behind the source */
	}
	if (current.count + agreed > call->tensors[0].dims[0])
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "%lld tokens", (long long)(current.count + agreed));
	for (int64_t i = 0; i < current.count; i++)
		tokens[i] = at(&current, i);
	for (int64_t i = 0; i < agreed; i++)
		tokens[current.count + i] = at(&predicted, i);
	int64_t place =
		match_suffix(&source, tokens, current.count + agreed, lth_builtin_int(call, "min_ngram_size", 1),
			     lth_builtin_int(call, "max_ngram_size", 3));
	if (call->tensors[1].data)
		*(int64_t *)call->tensors[1].data = place;
	*(int64_t *)call->tensors[2].data = current.count + agreed;
	return 0;
}
