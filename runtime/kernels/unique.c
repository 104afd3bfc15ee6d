/* unique: the distinct elements of a flattened tensor, or the distinct slices along an axis (ONNX Unique-11).
 *
 *   outputs: values, first i64, inverse i64, counts i64 (one to four of them), extent i64; input: values
 *   attributes: axis (absent: flattened), sorted (1)
 *
 * Slices are sorted as a list of numbers, equal neighbours form a group, and without `sorted` groups take the order in
 * which they first occur. Values are written densely at the true extent (see builtin.h). */
#include "runtime/exec/pool.h"
#include "runtime/kernels/copy.h"
#include "runtime/kernels/order.h"
#include "runtime/kernels/walk.h"

#include <string.h>

struct unique {
	struct lth_builtin_tensor in; /* rank 1 when flattened */
	uint32_t axis;
	int64_t slices, slice_elements, num_groups;
	struct lth_keyed *order, *scratch; /* index: of a slice; key: its group, in the end */
	struct lth_keyed *groups;          /* index: the first slice of the group; key: its size */
};

static const char *slice_at(const struct unique *u, int64_t slice)
{
	return (const char *)u->in.data + slice * u->in.strides[u->axis] * (int64_t)(lth_dtype_bits(u->in.dtype) / 8);
}

static int compare_slices(const struct unique *u, int64_t a, int64_t b)
{
	struct lth_walk walk;
	struct lth_builtin_tensor slice = u->in;
	const char *base = u->in.data, *other = slice_at(u, b);
	ptrdiff_t shift = other - base;
	lth_walk_init(&walk, &slice, u->axis);
	walk.at += slice_at(u, a) - base;
	shift -= slice_at(u, a) - base;
	for (int64_t i = 0; i < u->slice_elements; i++, lth_walk_next(&walk)) {
		int order = lth_compare(walk.at, walk.at + shift, u->in.dtype);
		if (order)
			return order;
	}
	return 0;
}

/* Merge sort of slices that have no key: strings, and slices of more than one element. */
static void sort_slices(const struct unique *u, struct lth_keyed *items, struct lth_keyed *scratch, int64_t count)
{
	if (count < 2)
		return;
	int64_t half = count / 2, left = 0, right = half;
	sort_slices(u, items, scratch, half);
	sort_slices(u, items + half, scratch, count - half);
	for (int64_t out = 0; out < count; out++) {
		bool take_left = left < half &&
				 (right >= count || compare_slices(u, items[left].index, items[right].index) <= 0);
		scratch[out] = items[take_left ? left++ : right++];
	}
	memcpy(items, scratch, (size_t)count * sizeof(*items));
}

/* Numbers groups along the sorted slices: u->order[i].key becomes the group of slice u->order[i].index. */
static void form_groups(struct unique *u, bool keyed)
{
	uint64_t previous = 0;
	for (int64_t i = 0; i < u->slices; i++) {
		bool same = i > 0 && (keyed ? u->order[i].key == previous
					    : compare_slices(u, u->order[i - 1].index, u->order[i].index) == 0);
		previous = u->order[i].key;
		if (!same)
			u->groups[u->num_groups++] = (struct lth_keyed){.index = u->order[i].index};
		struct lth_keyed *group = &u->groups[u->num_groups - 1];
		group->key++;
		if (u->order[i].index < group->index)
			group->index = u->order[i].index;
		u->order[i].key = (uint64_t)u->num_groups - 1;
	}
}

/* Puts groups into the order of their first slices. */
static void order_by_first(struct unique *u)
{
	struct lth_keyed *by_first = u->scratch;
	for (int64_t g = 0; g < u->num_groups; g++)
		by_first[g] = (struct lth_keyed){.key = (uint64_t)u->groups[g].index, .index = g};
	lth_sort_keyed(by_first, by_first + u->slices, u->num_groups);
	/* Where each old group went, then the groups themselves. */
	struct lth_keyed *place = by_first + u->slices;
	for (int64_t g = 0; g < u->num_groups; g++)
		place[by_first[g].index].index = g;
	for (int64_t i = 0; i < u->slices; i++)
		u->order[i].key = (uint64_t)place[u->order[i].key].index;
	for (int64_t g = 0; g < u->num_groups; g++)
		place[g].key = u->groups[by_first[g].index].key;
	for (int64_t g = 0; g < u->num_groups; g++)
		u->groups[g] = (struct lth_keyed){.key = place[g].key, .index = (int64_t)by_first[g].key};
}

static void write_values(const struct unique *u, const struct lth_builtin_tensor *out, struct lth_threadpool *threads)
{
	int64_t dims[LTH_MAX_RANK], strides[LTH_MAX_RANK], stride = 1;
	int64_t element = lth_dtype_bits(u->in.dtype) / 8;
	for (uint32_t k = u->in.rank; k-- > 0;) {
		dims[k] = k == u->axis ? 1 : u->in.dims[k];
		strides[k] = stride;
		stride *= k == u->axis ? u->num_groups : u->in.dims[k];
	}
	struct lth_builtin_tensor from = u->in, to = u->in;
	from.dims = to.dims = dims;
	to.strides = strides;
	for (int64_t g = 0; g < u->num_groups; g++) {
		from.data = (char *)u->in.data + u->groups[g].index * u->in.strides[u->axis] * element;
		to.data = (char *)out->data + g * strides[u->axis] * element;
		lth_copy_tensor(&to, &from, threads);
	}
}

static void write_outputs(const struct unique *u, const struct lth_builtin_call *call)
{
	uint32_t last = call->num_outputs - 1; /* the extent */
	int64_t *first = last > 1 ? call->tensors[1].data : NULL;
	int64_t *inverse = last > 2 ? call->tensors[2].data : NULL;
	int64_t *counts = last > 3 ? call->tensors[3].data : NULL;
	if (call->tensors[0].data)
		write_values(u, &call->tensors[0], call->threads);
	for (int64_t g = 0; g < u->num_groups; g++) {
		if (first)
			first[g] = u->groups[g].index;
		if (counts)
			counts[g] = (int64_t)u->groups[g].key;
	}
	for (int64_t i = 0; inverse && i < u->slices; i++)
		inverse[u->order[i].index] = (int64_t)u->order[i].key;
	*(int64_t *)call->tensors[last].data = u->num_groups;
}

static void run(struct unique *u, const struct lth_builtin_call *call)
{
	bool keyed = u->slice_elements == 1 && lth_has_key(u->in.dtype);
	for (int64_t i = 0; i < u->slices; i++)
		u->order[i] = (struct lth_keyed){.key = keyed ? lth_key(slice_at(u, i), u->in.dtype) : 0, .index = i};
	if (keyed)
		lth_sort_keyed(u->order, u->scratch, u->slices);
	else
		sort_slices(u, u->order, u->scratch, u->slices);
	form_groups(u, keyed);
	if (!lth_builtin_int(call, "sorted", 1))
		order_by_first(u);
	write_outputs(u, call);
}

int lth_builtin_unique(struct lth_builtin_call *call)
{
	if (call->num_outputs < 2 || call->num_outputs > 5 || call->num_tensors != call->num_outputs + 1)
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "unique takes two to five outputs and one input");
	struct unique u = {.in = lth_builtin_input(call, 0)};
	int64_t axis = lth_builtin_int(call, "axis", INT64_MIN), flat_dim, flat_stride = 1, element;
	int64_t total = lth_tensor_count(u.in.rank, u.in.dims), dense_bytes = 0;
	void *dense = NULL;
	if (lth_dtype_bits(u.in.dtype) < 8 || lth_dtype_class(u.in.dtype) == LTH_CLASS_COMPLEX)
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "no order for %s", lth_dtype_text(u.in.dtype));
	element = lth_dtype_bits(u.in.dtype) / 8;
	if (axis == INT64_MIN) { /* one row; a tensor that is not dense is copied into one */
		if (!lth_tensor_is_dense(u.in.rank, u.in.dims, u.in.strides)) {
			int64_t strides[LTH_MAX_RANK], stride = 1;
			for (uint32_t k = u.in.rank; k-- > 0; stride *= u.in.dims[k])
				strides[k] = stride;
			dense_bytes = total * element;
			dense = lth_pool_take(call->pool, dense_bytes);
			if (!dense)
				return LTH_KERNEL_MEMORY;
			struct lth_builtin_tensor to = u.in;
			to.data = dense;
			to.strides = strides;
			lth_copy_tensor(&to, &u.in, call->threads);
			u.in.data = dense;
		}
		flat_dim = total;
		u.in.rank = 1;
		u.in.dims = &flat_dim;
		u.in.strides = &flat_stride;
		axis = 0;
	}
	axis += axis < 0 ? u.in.rank : 0;
	if (axis < 0 || axis >= (int64_t)u.in.rank)
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "axis %lld of rank %u", (long long)axis, u.in.rank);
	u.axis = (uint32_t)axis;
	u.slices = u.in.dims[axis];
	u.slice_elements = u.slices ? total / u.slices : 0;
	int64_t bytes = 4 * u.slices * (int64_t)sizeof(struct lth_keyed);
	u.order = lth_pool_take(call->pool, bytes);
	if (u.order) {
		u.groups = u.order + u.slices;
		u.scratch = u.groups + u.slices;
		run(&u, call);
		lth_pool_give(call->pool, u.order, bytes);
	}
	lth_pool_give(call->pool, dense, dense_bytes);
	return u.order ? 0 : LTH_KERNEL_MEMORY;
}
