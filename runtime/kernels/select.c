/* Kernels that keep a part of their input, whose extent only the data decides: non_zero and compress. Both write
 * densely at the true extent (see builtin.h) and put the extent into their last output, an i64.
 *
 *   non_zero  outputs: indices i64 [rank, bound], extent; input: any type of 8 bits or more (a scalar has one index, 0)
 *   compress  outputs: values, extent; inputs: values, condition bool [m]; attribute axis, absent: flattened */
#include "runtime/kernels/copy.h"
#include "runtime/kernels/order.h"
#include "runtime/kernels/walk.h"

#include <string.h>

/* Whether the extent fits what the output was planned for. */
static bool fits(const struct lth_builtin_tensor *output, uint32_t axis, int64_t extent)
{
	return output->rank > axis && extent <= output->dims[axis];
}

int lth_builtin_non_zero(struct lth_builtin_call *call)
{
	if (call->num_tensors != 3 || call->num_outputs != 2)
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "non_zero takes two outputs and one input");
	const struct lth_builtin_tensor *out = &call->tensors[0], *in = &call->tensors[2];
	int64_t total = lth_tensor_count(in->rank, in->dims), count = 0, *indices = out->data;
	struct lth_walk walk;
	lth_walk_init(&walk, in, LTH_MAX_RANK);
	for (int64_t i = 0; i < total; i++, lth_walk_next(&walk))
		count += !lth_is_zero(walk.at, in->dtype);
	if (!fits(out, 1, count))
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "%lld elements that are not zero", (long long)count);
	int64_t found = 0;
	lth_walk_init(&walk, in, LTH_MAX_RANK);
	if (in->rank == 0 && count && out->dims[0])
		indices[0] = 0;
	for (int64_t i = 0; i < total && in->rank; i++, lth_walk_next(&walk)) {
		if (lth_is_zero(walk.at, in->dtype))
			continue;
		for (uint32_t axis = 0; axis < in->rank; axis++)
			indices[axis * count + found] = walk.index[axis];
		found++;
	}
	*(int64_t *)call->tensors[1].data = count;
	return 0;
}

/* Elements of the flattened input whose condition is true. */
static void compress_flat(const struct lth_builtin_tensor *in, const struct lth_builtin_tensor *condition, char *out)
{
	int64_t total = lth_tensor_count(in->rank, in->dims);
	size_t element = lth_dtype_bits(in->dtype) / 8;
	const char *keep = condition->data;
	struct lth_walk walk;
	total = condition->dims[0] < total ? condition->dims[0] : total;
	lth_walk_init(&walk, in, LTH_MAX_RANK);
	for (int64_t i = 0; i < total; i++, lth_walk_next(&walk)) {
		if (!keep[i * condition->strides[0]])
			continue;
		memcpy(out, walk.at, element);
		out += element;
	}
}

/* Slices along an axis, each copied to its place in an output of `count` slices. */
static void compress_axis(struct lth_builtin_call *call, uint32_t axis, int64_t length, int64_t count)
{
	const struct lth_builtin_tensor *in = &call->tensors[2], *condition = &call->tensors[3];
	int64_t dims[LTH_MAX_RANK], strides[LTH_MAX_RANK], stride = 1, place = 0;
	size_t element = lth_dtype_bits(in->dtype) / 8;
	const char *keep = condition->data;
	for (uint32_t k = in->rank; k-- > 0;) {
		dims[k] = k == axis ? 1 : in->dims[k];
		strides[k] = stride;
		stride *= k == axis ? count : in->dims[k];
	}
	struct lth_builtin_tensor from = *in, to = call->tensors[0];
	from.dims = to.dims = dims;
	to.strides = strides;
	to.rank = in->rank;
	for (int64_t i = 0; i < length; i++) {
		if (!keep[i * condition->strides[0]])
			continue;
		from.data = (char *)in->data + i * in->strides[axis] * (int64_t)element;
		to.data = (char *)call->tensors[0].data + place++ * strides[axis] * (int64_t)element;
		lth_copy_tensor(&to, &from, call->threads);
	}
}

int lth_builtin_compress(struct lth_builtin_call *call)
{
	if (call->num_tensors != 4 || call->num_outputs != 2 || call->tensors[3].rank != 1)
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "compress takes two outputs, values and a condition");
	const struct lth_builtin_tensor *in = &call->tensors[2], *condition = &call->tensors[3];
	int64_t axis = lth_builtin_int(call, "axis", INT64_MIN), count = 0;
	bool flat = axis == INT64_MIN;
	axis += axis < 0 && !flat ? in->rank : 0;
	if (!flat && (axis < 0 || axis >= (int64_t)in->rank))
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "axis %lld of rank %u", (long long)axis, in->rank);
	int64_t length = flat ? lth_tensor_count(in->rank, in->dims) : in->dims[axis];
	length = condition->dims[0] < length ? condition->dims[0] : length;
	for (int64_t i = 0; i < length; i++)
		count += ((const char *)condition->data)[i * condition->strides[0]] != 0;
	if (!fits(&call->tensors[0], flat ? 0 : (uint32_t)axis, count))
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "%lld slices to keep", (long long)count);
	if (flat)
		compress_flat(in, condition, call->tensors[0].data);
	else
		compress_axis(call, (uint32_t)axis, length, count);
	*(int64_t *)call->tensors[1].data = count;
	return 0;
}
