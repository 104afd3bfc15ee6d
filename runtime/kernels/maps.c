/* Maps of a run: lists of two tensors of one axis, keys (i64 or strings, ascending, each once) and values.
 *
 *   maps_of_rows  output: list of a map for each row; inputs: keys [columns], f32 [rows, columns]
 *   map_find      output: values, like the keys; inputs: map, keys. Keys that the map has not get 0, or "" */
#include "runtime/kernels/list.h"

#include "runtime/kernels/order.h"

#include <string.h>

static char *element(const struct lth_object *object, int64_t at)
{
	return (char *)object->data + at * (int64_t)(lth_dtype_bits(object->dtype) / 8);
}

/* Where `key` is among the first `count` keys, or where it belongs; whether it is there. */
static bool search(const struct lth_object *keys, int64_t count, const void *key, int64_t *out_at)
{
	int64_t low = 0, high = count;
	while (low < high) {
		int64_t middle = low + (high - low) / 2;
		if (lth_compare(element(keys, middle), key, keys->dtype) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*out_at = low;
	return low < count && lth_compare(element(keys, low), key, keys->dtype) == 0;
}

/* Inserts element `from` of a tensor at `at` of another that has `count` so far. */
static void put(struct lth_object *to, int64_t count, int64_t at, const struct lth_object *tensor, int64_t from)
{
	size_t width = lth_dtype_bits(to->dtype) / 8;
	memmove(element(to, at + 1), element(to, at), (size_t)(count - at) * width);
	memcpy(element(to, at), element(tensor, from), width);
}

static bool ascending(const struct lth_object *keys)
{
	for (int64_t i = 1; i < keys->dims[0]; i++)
		if (lth_compare(element(keys, i - 1), element(keys, i), keys->dtype) >= 0)
			return false;
	return true;
}

/* Copies of keys and values in order; of equal keys the last counts. */
static bool sort(struct lth_objects *objects, struct lth_object **keys, struct lth_object **values)
{
	struct lth_object *k = lth_object_tensor(objects, (*keys)->dtype, 1, (*keys)->dims);
	struct lth_object *v = lth_object_tensor(objects, (*values)->dtype, 1, (*values)->dims);
	int64_t count = 0, at;
	if (!k || !v)
		return false;
	for (int64_t i = 0; i < (*keys)->dims[0]; i++) {
		if (search(k, count, element(*keys, i), &at)) {
			memcpy(element(v, at), element(*values, i), lth_dtype_bits(v->dtype) / 8);
			continue;
		}
		put(v, count, at, *values, i);
		put(k, count++, at, *keys, i);
	}
	k->dims[0] = v->dims[0] = count;
	*keys = k;
	*values = v;
	return true;
}

struct lth_object *lth_map_make(struct lth_objects *objects, struct lth_object *keys, struct lth_object *values)
{
	if (!ascending(keys) && !sort(objects, &keys, &values))
		return NULL;
	struct lth_object *map = lth_object_list(objects, 2);
	bool ok = map && lth_list_push(objects, map, keys) && lth_list_push(objects, map, values);
	return ok ? map : NULL;
}

int lth_builtin_maps_of_rows(struct lth_builtin_call *call)
{
	struct lth_builtin_tensor keys = lth_builtin_input(call, 0), rows = lth_builtin_input(call, 1);
	bool fits = call->objects && keys.dims && rows.dims && keys.rank == 1 && rows.rank == 2 &&
		    keys.dims[0] == rows.dims[1] && (keys.dtype == LTH_DTYPE_I64 || keys.dtype == LTH_DTYPE_STRING) &&
		    lth_dtype_bits(rows.dtype) >= 8 && rows.dtype != LTH_DTYPE_OBJECT;
	if (!fits)
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "maps_of_rows takes keys and a column for each");
	struct lth_object *list = lth_object_list(call->objects, rows.dims[0]), *all = lth_list_copy(call, &keys);
	for (int64_t row = 0; list && row < rows.dims[0]; row++) {
		struct lth_builtin_tensor one = rows;
		one.rank = 1;
		one.dims++;
		one.strides++;
		one.data = (char *)rows.data + row * rows.strides[0] * (int64_t)(lth_dtype_bits(rows.dtype) / 8);
		struct lth_object *values = all ? lth_list_copy(call, &one) : NULL;
		struct lth_object *map = values ? lth_map_make(call->objects, all, values) : NULL;
		if (!map || !lth_list_push(call->objects, list, map))
			list = NULL;
	}
	return lth_list_result(call, list);
}

int lth_builtin_map_find(struct lth_builtin_call *call)
{
	struct lth_object *map = lth_list_operand(call, 0);
	struct lth_builtin_tensor wanted = lth_builtin_input(call, 1);
	const struct lth_builtin_tensor *out = &call->tensors[0];
	if (!map)
		return LTH_KERNEL_SHAPE;
	const struct lth_object *keys = map->count == 2 ? lth_list_item(map, 0) : NULL;
	const struct lth_object *values = keys ? lth_list_item(map, 1) : NULL;
	bool fits = keys && !keys->is_list && !values->is_list && keys->rank == 1 && values->rank == 1 &&
		    keys->dims[0] == values->dims[0] &&
		    (keys->dtype == LTH_DTYPE_I64 || keys->dtype == LTH_DTYPE_STRING) && wanted.dims &&
		    wanted.dtype == keys->dtype && wanted.rank == 1 && call->num_outputs == 1 &&
		    out->dtype == values->dtype && lth_dtype_bits(out->dtype) >= 8 && out->rank == 1 &&
		    out->dims[0] == wanted.dims[0];
	if (!fits)
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "map_find takes a map and keys of its type");
	int64_t width = lth_dtype_bits(out->dtype) / 8, key_width = lth_dtype_bits(keys->dtype) / 8, at;
	for (int64_t i = 0; i < wanted.dims[0]; i++) {
		char *to = (char *)out->data + i * out->strides[0] * width;
		const char *key = (const char *)wanted.data + i * wanted.strides[0] * key_width;
		if (search(keys, keys->dims[0], key, &at))
			memcpy(to, element(values, at), (size_t)width);
		else
			memset(to, 0, (size_t)width);
	}
	return 0;
}
