/* top_k: the k largest or smallest along an axis, with their indices (ONNX TopK). Equal elements come by index, the
 * lower first. NaN counts as the largest.
 *
 *   outputs: values, indices i64 (dims as the input's, k on the axis); inputs: values, k (not read: the dims say it)
 *   attributes: axis (-1), largest (1), sorted (1; 0 gives the same order) */
#include "runtime/exec/pool.h"
#include "runtime/kernels/order.h"
#include "runtime/kernels/walk.h"
#include "runtime/threadpool.h"

#include <string.h>

enum { BLOCK = 16 };

struct top_k {
	const struct lth_builtin_tensor *in;
	char *values;     /* NULL: not wanted */
	int64_t *indices; /* the same */
	const int64_t *value_strides, *index_strides;
	uint32_t axis;
	int64_t k;
	bool largest;
	struct lth_keyed *heaps; /* 2 * k a thread */
};

/* Keys are turned so that a lower one is better; then the worst kept is the root of a heap of k. */
static bool is_worse(const struct lth_keyed *a, const struct lth_keyed *b)
{
	return a->key > b->key || (a->key == b->key && a->index > b->index);
}

static void sift_down(struct lth_keyed *heap, int64_t count, int64_t at)
{
	struct lth_keyed item = heap[at];
	for (int64_t child; (child = 2 * at + 1) < count; at = child) {
		if (child + 1 < count && is_worse(&heap[child + 1], &heap[child]))
			child++;
		if (!is_worse(&heap[child], &item))
			break;
		heap[at] = heap[child];
	}
	heap[at] = item;
}

/* Whether x may be better than the worst kept; with a nan always. */
static bool may_beat(float x, float worst, bool largest)
{
	return largest ? !(x <= worst) : !(x >= worst);
}

static bool block_may_beat(const float *x, float worst, bool largest)
{
	int some = 0;
	for (int i = 0; i < BLOCK && largest; i++)
		some |= !(x[i] <= worst);
	for (int i = 0; i < BLOCK && !largest; i++)
		some |= !(x[i] >= worst);
	return some != 0;
}

/* The first element from `at` on that may be better than the worst kept. Of contiguous floats most are passed over, a
 * block at a time. */
static int64_t next_candidate(const struct top_k *t, const char *row, int64_t at, int64_t count, int64_t worst)
{
	const float *x = (const float *)row;
	if (t->in->dtype != LTH_DTYPE_F32 || t->in->strides[t->axis] != 1)
		return at;
	while (count - at >= BLOCK && !block_may_beat(x + at, x[worst], t->largest))
		at += BLOCK;
	while (at < count && !may_beat(x[at], x[worst], t->largest))
		at++;
	return at;
}

static void select_row(const struct top_k *t, const char *row, struct lth_keyed *heap)
{
	int64_t count = t->in->dims[t->axis];
	int64_t step = t->in->strides[t->axis] * (int64_t)(lth_dtype_bits(t->in->dtype) / 8);
	for (int64_t i = 0; i < count; i++) {
		if (i >= t->k && (i = next_candidate(t, row, i, count, heap[0].index)) == count)
			break;
		uint64_t key = lth_key(row + i * step, t->in->dtype);
		struct lth_keyed item = {.key = t->largest ? ~key : key, .index = i};
		if (i < t->k) {
			heap[i] = item;
			for (int64_t at = t->k / 2; i == t->k - 1 && at-- > 0;)
				sift_down(heap, t->k, at);
		} else if (is_worse(&heap[0], &item)) {
			heap[0] = item;
			sift_down(heap, t->k, 0);
		}
	}
	lth_sort_keyed(heap, heap + t->k, t->k);
}

/* Rows [begin, end): the positions on all axes but `axis`, in row-major order. */
static int run_rows(void *context, int64_t begin, int64_t end, int64_t thread)
{
	const struct top_k *t = context;
	int64_t element = lth_dtype_bits(t->in->dtype) / 8;
	struct lth_keyed *heap = t->heaps + 2 * t->k * thread;
	for (int64_t row = begin; row < end; row++) {
		int64_t rest = row, from = 0, to = 0, to_index = 0;
		for (uint32_t k = t->in->rank; k-- > 0;) {
			if (k == t->axis)
				continue;
			int64_t index = rest % t->in->dims[k];
			rest /= t->in->dims[k];
			from += index * t->in->strides[k];
			to += index * t->value_strides[k];
			to_index += index * t->index_strides[k];
		}
		const char *source = (const char *)t->in->data + from * element;
		select_row(t, source, heap);
		for (int64_t i = 0; i < t->k; i++) {
			if (t->values)
				memcpy(t->values + (to + i * t->value_strides[t->axis]) * element,
				       source + heap[i].index * t->in->strides[t->axis] * element, (size_t)element);
			if (t->indices)
				t->indices[to_index + i * t->index_strides[t->axis]] = heap[i].index;
		}
	}
	return 0;
}

int lth_builtin_top_k(struct lth_builtin_call *call)
{
	struct lth_builtin_tensor in = lth_builtin_input(call, 0);
	if (call->num_outputs < 1 || call->num_outputs > 2 || !in.data || in.rank == 0)
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "top_k takes two outputs and one input");
	static const struct lth_builtin_tensor absent;
	const struct lth_builtin_tensor *values = &call->tensors[0];
	const struct lth_builtin_tensor *indices = call->num_outputs > 1 ? &call->tensors[1] : &absent;
	struct top_k t = {.in = &in, .values = values->data, .indices = indices->data};
	/* An absent output has no strides; any will do. */
	t.value_strides = values->strides ? values->strides : t.in->strides;
	t.index_strides = indices->strides ? indices->strides : t.in->strides;
	int64_t axis = lth_builtin_int(call, "axis", -1);
	axis += axis < 0 ? t.in->rank : 0;
	if (axis < 0 || axis >= (int64_t)t.in->rank || !lth_has_key(t.in->dtype))
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "axis %lld of rank %u, type %s", (long long)axis,
					t.in->rank, lth_dtype_text(t.in->dtype));
	t.axis = (uint32_t)axis;
	t.k = values->dims ? values->dims[axis] : indices->dims ? indices->dims[axis] : 0;
	t.largest = lth_builtin_int(call, "largest", 1) != 0;
	if (t.k < 0 || t.k > t.in->dims[axis])
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "k is %lld for %lld elements", (long long)t.k,
					(long long)t.in->dims[axis]);
	int64_t rows = 1, threads = call->threads ? lth_threadpool_threads(call->threads) : 1;
	for (uint32_t k = 0; k < t.in->rank; k++)
		rows *= k == t.axis ? 1 : t.in->dims[k];
	if (t.k == 0 || rows == 0)
		return 0;
	int64_t bytes = threads * 2 * t.k * (int64_t)sizeof(struct lth_keyed);
	t.heaps = lth_pool_take(call->pool, bytes);
	if (!t.heaps)
		return LTH_KERNEL_MEMORY;
	int64_t grain = 16384 / t.in->dims[axis] + 1;
	if (call->threads)
		lth_threadpool_run(call->threads, run_rows, &t, rows, grain, LTH_MAX_THREADS);
	else
		run_rows(&t, 0, rows, 0);
	lth_pool_give(call->pool, t.heaps, bytes);
	return 0;
}
