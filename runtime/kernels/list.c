/* Lists of a run (runtime/exec/objects.h): what sequences and optionals are made of. Tensors are copied in and out.
 *
 *   list         output: list; inputs: tensors and lists, of which absent ones are left out
 *   list_insert  output: list; inputs: list, tensor, position (absent: behind the last)
 *   list_erase   output: list; inputs: list, position (absent: the last)
 *   list_length  output: i64 scalar; input: list
 *   list_dims    output: i64 [rank]; inputs: list, position of a tensor of that rank
 *   list_at      output: tensor or list; inputs: list, position
 *
 * Positions count from the end where they are negative. Attribute optional=1: the list is an optional, for messages. */
#include "runtime/kernels/list.h"

#include <string.h>

/* ---- operands ---- */

static bool is_absent(const struct lth_builtin_tensor *tensor)
{
	return !tensor->dims; /* an empty tensor may have no data, but it has dims */
}

static struct lth_object *find(const struct lth_builtin_call *call, const struct lth_builtin_tensor *tensor)
{
	int64_t handle;
	if (is_absent(tensor) || tensor->dtype != LTH_DTYPE_OBJECT || !tensor->data || !call->objects)
		return NULL;
	memcpy(&handle, tensor->data, sizeof(handle));
	return lth_objects_find(call->objects, handle);
}

struct lth_object *lth_list_operand(struct lth_builtin_call *call, uint32_t index)
{
	struct lth_builtin_tensor input = lth_builtin_input(call, index);
	struct lth_object *object = find(call, &input);
	if (object && object->is_list)
		return object;
	lth_builtin_fail(call, LTH_KERNEL_SHAPE, "input %u is no list", index);
	return NULL;
}

bool lth_list_int(struct lth_builtin_call *call, uint32_t index, int64_t *out)
{
	struct lth_builtin_tensor input = lth_builtin_input(call, index);
	if (is_absent(&input) || !input.data || lth_tensor_count(input.rank, input.dims) < 1 ||
	    (input.dtype != LTH_DTYPE_I32 && input.dtype != LTH_DTYPE_I64)) {
		lth_builtin_fail(call, LTH_KERNEL_SHAPE, "input %u is no integer", index);
		return false;
	}
	*out = input.dtype == LTH_DTYPE_I32 ? *(const int32_t *)input.data : *(const int64_t *)input.data;
	return true;
}

/* A position among `places`, of a list of `count` items. */
static bool read_position(struct lth_builtin_call *call, uint32_t index, int64_t count, int64_t places, int64_t *out)
{
	struct lth_builtin_tensor input = lth_builtin_input(call, index);
	int64_t at;
	if (is_absent(&input)) {
		*out = places - 1;
		if (places > 0)
			return true;
		lth_builtin_fail(call, LTH_KERNEL_INDEX, "the last of 0 elements");
		return false;
	}
	if (!lth_list_int(call, index, &at))
		return false;
	*out = at < 0 ? at + count : at;
	if (*out >= 0 && *out < places)
		return true;
	if (lth_builtin_int(call, "optional", 0))
		lth_builtin_fail(call, LTH_KERNEL_INDEX, "an optional without a value");
	else
		lth_builtin_fail(call, LTH_KERNEL_INDEX, "position %lld of %lld elements", (long long)at,
				 (long long)count);
	return false;
}

int lth_list_result(struct lth_builtin_call *call, struct lth_object *object)
{
	const struct lth_builtin_tensor *out = &call->tensors[0];
	if (call->num_outputs < 1 || out->dtype != LTH_DTYPE_OBJECT || !out->data || !call->objects)
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "an output that is no object");
	int64_t handle = object ? lth_objects_name(call->objects, object) : 0;
	if (!handle)
		return lth_builtin_fail(call, LTH_KERNEL_MEMORY, "for an object");
	memcpy(out->data, &handle, sizeof(handle));
	return 0;
}

struct lth_builtin_tensor lth_object_view(const struct lth_object *object, int64_t *strides)
{
	int64_t stride = 1;
	for (uint32_t axis = object->rank; axis-- > 0;) {
		strides[axis] = stride;
		stride *= object->dims[axis];
	}
	return (struct lth_builtin_tensor){.data = object->data,
					   .dtype = object->dtype,
					   .rank = object->rank,
					   .dims = object->dims,
					   .strides = strides};
}

struct lth_object *lth_list_copy(struct lth_builtin_call *call, const struct lth_builtin_tensor *tensor)
{
	int64_t strides[LTH_MAX_RANK];
	struct lth_object *copy = lth_object_tensor(call->objects, tensor->dtype, tensor->rank, tensor->dims);
	if (!copy)
		return NULL;
	struct lth_builtin_tensor to = lth_object_view(copy, strides);
	lth_copy_tensor(&to, tensor, call->threads);
	return copy;
}

/* ---- kernels ---- */

int lth_builtin_list(struct lth_builtin_call *call)
{
	if (!call->objects)
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "no objects");
	struct lth_object *list = lth_object_list(call->objects, call->num_tensors);
	for (uint32_t i = call->num_outputs; list && i < call->num_tensors; i++) {
		const struct lth_builtin_tensor *input = &call->tensors[i];
		if (is_absent(input))
			continue;
		bool object = input->dtype == LTH_DTYPE_OBJECT;
		struct lth_object *item = object ? find(call, input) : lth_list_copy(call, input);
		if (object && !item)
			return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "input %u is no object", i - call->num_outputs);
		if (!item || !lth_list_push(call->objects, list, item))
			list = NULL;
	}
	return lth_list_result(call, list);
}

int lth_builtin_list_insert(struct lth_builtin_call *call)
{
	struct lth_object *list = lth_list_operand(call, 0);
	struct lth_builtin_tensor input = lth_builtin_input(call, 1);
	int64_t at;
	if (!list || !read_position(call, 2, list->count, list->count + 1, &at))
		return list ? LTH_KERNEL_INDEX : LTH_KERNEL_SHAPE;
	if (is_absent(&input) || input.dtype == LTH_DTYPE_OBJECT)
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "input 1 is no tensor");
	struct lth_object *item = lth_list_copy(call, &input);
	return lth_list_result(call, item ? lth_list_insert(call->objects, list, at, item) : NULL);
}

int lth_builtin_list_erase(struct lth_builtin_call *call)
{
	struct lth_object *list = lth_list_operand(call, 0);
	int64_t at;
	if (!list || !read_position(call, 1, list->count, list->count, &at))
		return list ? LTH_KERNEL_INDEX : LTH_KERNEL_SHAPE;
	return lth_list_result(call, lth_list_erase(call->objects, list, at));
}

/* Output 0, if it is a dense i64 tensor of so many elements. */
static int64_t *integers(struct lth_builtin_call *call, int64_t count)
{
	const struct lth_builtin_tensor *out = &call->tensors[0];
	bool fits = call->num_outputs == 1 && out->dtype == LTH_DTYPE_I64 && out->data &&
		    lth_tensor_count(out->rank, out->dims) == count;
	return fits ? out->data : NULL;
}

int lth_builtin_list_length(struct lth_builtin_call *call)
{
	struct lth_object *list = lth_list_operand(call, 0);
	int64_t *out = integers(call, 1);
	if (!list || !out)
		return LTH_KERNEL_SHAPE;
	*out = list->count;
	return 0;
}

/* The item that a call asks for. */
static struct lth_object *item_of(struct lth_builtin_call *call, int *out_error)
{
	struct lth_object *list = lth_list_operand(call, 0);
	int64_t at;
	*out_error = list ? LTH_KERNEL_INDEX : LTH_KERNEL_SHAPE;
	return list && read_position(call, 1, list->count, list->count, &at) ? lth_list_item(list, at) : NULL;
}

int lth_builtin_list_dims(struct lth_builtin_call *call)
{
	int error;
	struct lth_object *item = item_of(call, &error);
	if (!item)
		return error;
	int64_t *out = item->is_list || item->rank == 0 ? NULL : integers(call, item->rank);
	if (!out)
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "an element of rank %u where the model has rank %lld",
					item->rank, (long long)lth_builtin_int(call, "rank", 0));
	memcpy(out, item->dims, item->rank * sizeof(*out));
	return 0;
}

int lth_builtin_list_at(struct lth_builtin_call *call)
{
	int64_t strides[LTH_MAX_RANK];
	const struct lth_builtin_tensor *out = &call->tensors[0];
	int error;
	struct lth_object *item = item_of(call, &error);
	if (!item)
		return error;
	if (call->num_outputs == 1 && out->dtype == LTH_DTYPE_OBJECT)
		return item->is_list ? lth_list_result(call, item)
				     : lth_builtin_fail(call, LTH_KERNEL_SHAPE, "an element that is a tensor");
	bool fits = call->num_outputs == 1 && !item->is_list && item->dtype == out->dtype && item->rank == out->rank;
	for (uint32_t axis = 0; fits && axis < item->rank; axis++)
		if (item->dims[axis] != out->dims[axis])
			return lth_builtin_fail(call, LTH_KERNEL_SHAPE,
						"an element whose axis %u has size %lld where the model has %lld", axis,
						(long long)item->dims[axis], (long long)out->dims[axis]);
	if (!fits)
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE,
					"an element of another type or rank than the model has");
	struct lth_builtin_tensor from = lth_object_view(item, strides);
	lth_copy_tensor(out, &from, call->threads);
	return 0;
}
