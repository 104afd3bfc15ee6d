/* Copying between strided tensors. Axes of extent 1 are dropped and neighbours that lie one behind the other in both
 * tensors are merged, so most copies become one of three loops: rows of bytes (memcpy), rows of strided elements, or,
 * where the two tensors' unit strides lie on different axes, blocks of a 2-D transpose that stay in the cache. */
#include "runtime/kernels/copy.h"
#include "runtime/threadpool.h"

#include <string.h>

enum {
	BLOCK = 32,               /* elements a side of a transposed block */
	GRAIN_BYTES = 256 * 1024, /* least bytes worth a task */
};

/* A copy in its least form. Strides are in bytes; axis 0 is the outermost. */
struct copy {
	uint32_t rank;
	int64_t dims[LTH_MAX_RANK], to[LTH_MAX_RANK], from[LTH_MAX_RANK];
	char *target;
	const char *source;
	int64_t element; /* bytes */
	uint32_t outer;  /* axes that are walked by index; the rest is the inner loop's */
};

bool lth_tensor_is_dense(uint32_t rank, const int64_t *dims, const int64_t *strides)
{
	int64_t expected = 1;
	for (uint32_t axis = rank; axis-- > 0;) {
		if (dims[axis] == 0)
			return true;
		if (dims[axis] != 1 && strides[axis] != expected)
			return false;
		expected *= dims[axis];
	}
	return true;
}

int64_t lth_tensor_count(uint32_t rank, const int64_t *dims)
{
	int64_t count = 1;
	for (uint32_t axis = 0; axis < rank; axis++)
		if (dims[axis] == 0)
			return 0; /* whatever the others are */
	for (uint32_t axis = 0; axis < rank; axis++)
		count *= dims[axis];
	return count;
}

/* Orders axes by the target's stride, outermost first, so that writes are as sequential as they can be. */
static void sort_axes(struct copy *c)
{
	for (uint32_t i = 1; i < c->rank; i++)
		for (uint32_t k = i; k > 0; k--) {
			int64_t outer = c->to[k - 1] < 0 ? -c->to[k - 1] : c->to[k - 1];
			int64_t inner = c->to[k] < 0 ? -c->to[k] : c->to[k];
			if (outer >= inner)
				break;
			int64_t dim = c->dims[k], to = c->to[k], from = c->from[k];
			c->dims[k] = c->dims[k - 1];
			c->to[k] = c->to[k - 1];
			c->from[k] = c->from[k - 1];
			c->dims[k - 1] = dim;
			c->to[k - 1] = to;
			c->from[k - 1] = from;
		}
}

/* Merges an axis into the one outside it where both tensors step over it exactly. */
static void merge_axes(struct copy *c)
{
	uint32_t rank = 0;
	for (uint32_t axis = 0; axis < c->rank; axis++) {
		if (rank && c->to[rank - 1] == c->to[axis] * c->dims[axis] &&
		    c->from[rank - 1] == c->from[axis] * c->dims[axis]) {
			c->dims[rank - 1] *= c->dims[axis];
			c->to[rank - 1] = c->to[axis];
			c->from[rank - 1] = c->from[axis];
			continue;
		}
		c->dims[rank] = c->dims[axis];
		c->to[rank] = c->to[axis];
		c->from[rank] = c->from[axis];
		rank++;
	}
	c->rank = rank;
}

static void reduce(struct copy *c, const struct lth_builtin_tensor *to, const struct lth_builtin_tensor *from)
{
	int64_t element = lth_dtype_bits(to->dtype) / 8;
	c->rank = 0;
	c->target = to->data;
	c->source = from->data;
	for (uint32_t axis = 0; axis < to->rank; axis++) {
		if (to->dims[axis] == 1)
			continue;
		c->dims[c->rank] = to->dims[axis];
		c->to[c->rank] = to->strides[axis] * element;
		c->from[c->rank] = from->strides[axis] * element;
		c->rank++;
	}
	c->element = element;
	sort_axes(c);
	merge_axes(c);
	if (c->rank && c->to[c->rank - 1] == element && c->from[c->rank - 1] == element) {
		c->element = element * c->dims[c->rank - 1]; /* whole rows are the elements */
		c->rank--;
	}
}

#define COPY_ROW(type)                                                                                       \
	for (int64_t i = 0; i < count; i++, target += to, source += from) {                                  \
		type value;                                                                                  \
		memcpy(&value, source, sizeof(value));                                                       \
		memcpy(target, &value, sizeof(value));                                                       \
	}

/* One element over and over, a cache line at a time. */
static void fill_row(char *target, const char *source, int64_t count, int64_t element)
{
	enum { LINE = 64 };
	char line[LINE];
	int64_t bytes = count * element;
	if (LINE % element != 0) {
		for (; bytes > 0; bytes -= element, target += element)
			memcpy(target, source, (size_t)element);
		return;
	}
	for (int64_t at = 0; at < LINE; at += element)
		memcpy(line + at, source, (size_t)element);
	for (; bytes >= LINE; bytes -= LINE, target += LINE)
		memcpy(target, line, LINE);
	memcpy(target, line, (size_t)bytes);
}

/* `count` elements, each side with its own step. */
static void copy_row(char *target, const char *source, int64_t count, int64_t to, int64_t from, int64_t element)
{
	if (from == 0 && to == element) {
		fill_row(target, source, count, element);
		return;
	}
	switch (element) {
	case 1:
		COPY_ROW(uint8_t)
		break;
	case 2:
		COPY_ROW(uint16_t)
		break;
	case 4:
		COPY_ROW(uint32_t)
		break;
	case 8:
		COPY_ROW(uint64_t)
		break;
	default:
		for (int64_t i = 0; i < count; i++, target += to, source += from)
			memcpy(target, source, (size_t)element);
	}
}

/* The last two axes, whose unit strides disagree: block by block, so that a block's lines stay cached on both sides. */
static void copy_transposed(const struct copy *c, char *target, const char *source)
{
	uint32_t x = c->rank - 2, y = c->rank - 1;
	for (int64_t i = 0; i < c->dims[x]; i += BLOCK)
		for (int64_t k = 0; k < c->dims[y]; k += BLOCK) {
			int64_t rows = c->dims[x] - i < BLOCK ? c->dims[x] - i : BLOCK;
			int64_t columns = c->dims[y] - k < BLOCK ? c->dims[y] - k : BLOCK;
			for (int64_t r = i; r < i + rows; r++)
				copy_row(target + r * c->to[x] + k * c->to[y], source + r * c->from[x] + k * c->from[y],
					 columns, c->to[y], c->from[y], c->element);
		}
}

/* Steps [begin, end) of the outer axes, taken together as one index. */
static int copy_steps(void *context, int64_t begin, int64_t end, int64_t thread)
{
	const struct copy *c = context;
	int64_t index[LTH_MAX_RANK] = {0}, rest = begin;
	char *target = c->target;
	const char *source = c->source;
	(void)thread;
	for (uint32_t axis = c->outer; axis-- > 0;) {
		index[axis] = rest % c->dims[axis];
		rest /= c->dims[axis];
		target += index[axis] * c->to[axis];
		source += index[axis] * c->from[axis];
	}
	for (int64_t step = begin; step < end; step++) {
		if (c->outer + 2 == c->rank)
			copy_transposed(c, target, source);
		else if (c->outer + 1 == c->rank)
			copy_row(target, source, c->dims[c->outer], c->to[c->outer], c->from[c->outer], c->element);
		else
			memcpy(target, source, (size_t)c->element);
		for (uint32_t axis = c->outer; axis-- > 0;) {
			target += c->to[axis];
			source += c->from[axis];
			if (++index[axis] < c->dims[axis])
				break;
			target -= index[axis] * c->to[axis];
			source -= index[axis] * c->from[axis];
			index[axis] = 0;
		}
	}
	return 0;
}

static void run(struct copy *c, struct lth_threadpool *threads, int64_t bytes)
{
	/* The second innermost axis is the source's unit axis: a transpose. */
	bool transposed = c->rank >= 2 && c->from[c->rank - 2] == c->element && c->from[c->rank - 1] != c->element &&
			  c->from[c->rank - 1] != 0;
	int64_t steps = 1;
	c->outer = c->rank - (transposed ? 2 : c->rank > 0);
	if (c->element >= 512) /* long rows: each is a step */
		c->outer = c->rank;
	if (c->outer == 0 && transposed && bytes > GRAIN_BYTES && threads)
		c->outer = 1; /* one large matrix is shared out by rows */
	for (uint32_t axis = 0; axis < c->outer; axis++)
		steps *= c->dims[axis];
	int64_t step_bytes = bytes / steps > 0 ? bytes / steps : 1;
	if (threads && bytes > GRAIN_BYTES)
		lth_threadpool_run(threads, copy_steps, c, steps, GRAIN_BYTES / step_bytes, LTH_MAX_THREADS);
	else
		copy_steps(c, 0, steps, 0);
}

/* A dense copy in pieces, so that threads share it. */
static int copy_bytes(void *context, int64_t begin, int64_t end, int64_t thread)
{
	const struct copy *c = context;
	(void)thread;
	memcpy(c->target + begin, c->source + begin, (size_t)(end - begin));
	return 0;
}

void lth_copy_tensor(const struct lth_builtin_tensor *to, const struct lth_builtin_tensor *from,
		     struct lth_threadpool *threads)
{
	int64_t count = lth_tensor_count(to->rank, to->dims), bytes;
	if (count == 0 || to->data == from->data || !lth_dtype_bytes(to->dtype, count, &bytes))
		return;
	struct copy c = {.target = to->data, .source = from->data};
	bool dense = lth_dtype_bits(to->dtype) < 8;
	if (!dense)
		reduce(&c, to, from);
	if (dense || c.rank == 0) {
		if (threads && bytes > 4 * GRAIN_BYTES)
			lth_threadpool_run(threads, copy_bytes, &c, bytes, GRAIN_BYTES, LTH_MAX_THREADS);
		else
			memcpy(c.target, c.source, (size_t)bytes);
		return;
	}
	run(&c, threads, bytes);
}

int lth_builtin_copy(struct lth_builtin_call *call)
{
	if (call->num_tensors != 2 || call->num_outputs != 1)
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "copy takes one output and one input");
	lth_copy_tensor(&call->tensors[0], &call->tensors[1], call->threads);
	return 0;
}

/* Output: integers or bools, dense; ints: its elements. */
int lth_builtin_numbers(struct lth_builtin_call *call)
{
	const struct lth_builtin_tensor *out = &call->tensors[0];
	size_t bytes = lth_dtype_bits(out->dtype) / 8;
	if (call->num_outputs != 1 || bytes == 0 || lth_tensor_count(out->rank, out->dims) < (int64_t)call->num_ints)
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "numbers takes an output with room for them");
	for (uint32_t i = 0; i < call->num_ints; i++) /* the low bytes of a little-endian integer are the narrower one */
		memcpy((char *)out->data + i * bytes, &call->ints[i], bytes);
	return 0;
}
