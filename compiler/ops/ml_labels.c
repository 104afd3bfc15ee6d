/* ai.onnx.ml: LabelEncoder and CategoryMapper, as a lookup among constant keys and a Gather from constant values with
 * the default behind them. */
#include "compiler/ops/family.h"
#include "compiler/ops/strings.h"

#include <string.h>

static const struct lth_string unused = {"_Unused", 7};

/* A list of strings with one more behind it. */
static lth_value_id strings_and(struct lth_infer *infer, const struct lth_string *list, uint32_t count,
				struct lth_string last)
{
	struct lth_string *all = lth_arena_array(infer->graph->arena, (size_t)count + 1, sizeof(*all));
	if (!all)
		return LTH_NONE;
	memcpy(all, list, count * sizeof(*all));
	all[count] = last;
	return lth_build_strings(infer, all, count + 1);
}

static lth_value_id ints_and(struct lth_infer *infer, const int64_t *list, uint32_t count, int64_t last)
{
	int64_t *all = lth_arena_array(infer->graph->arena, (size_t)count + 1, sizeof(*all));
	if (!all)
		return LTH_NONE;
	memcpy(all, list, count * sizeof(*all));
	all[count] = last;
	return lth_build_ints(infer, all, count + 1);
}

static struct lth_string default_string(const struct lth_node *node)
{
	const struct lth_attr *attr = lth_node_attr(node, "default_string");
	return attr ? attr->s : unused;
}

/* ---- keys ---- */

static const struct lth_value *tensor_attr(struct lth_infer *infer, const char *name)
{
	const struct lth_attr *attr = lth_node_attr(infer->node, name);
	return attr ? &infer->graph->values[attr->id] : NULL;
}

static int64_t tensor_count(const struct lth_value *tensor)
{
	return tensor->constant.bytes / (lth_dtype_bits(tensor->type.dtype) / 8);
}

static enum lth_code wrong_keys(struct lth_infer *infer, enum lth_dtype dtype)
{
	return lth_infer_reject(infer, lth_dtype_text(dtype), "keys of another type than the input's %s",
				lth_dtype_text(dtype));
}

/* Keys or values as the node gives them, in one of four attributes; the others are NULL. */
struct labels {
	const struct lth_value *tensor;
	const struct lth_attr *strings, *ints, *floats;
};

static enum lth_code read_labels(struct lth_infer *infer, const char *const kinds[4], struct labels *out)
{
	*out = (struct labels){.tensor = tensor_attr(infer, kinds[0]),
			       .strings = lth_node_attr(infer->node, kinds[1]),
			       .ints = lth_node_attr(infer->node, kinds[2]),
			       .floats = lth_node_attr(infer->node, kinds[3])};
	return lth_infer_one_of(infer, kinds, 4);
}

/* Places of the input's elements among the keys. */
static enum lth_code find_keys(struct lth_infer *infer, lth_value_id *out, uint32_t *out_count)
{
	lth_value_id x = lth_node_input(infer->node, 0);
	enum lth_dtype dtype = lth_infer_type(infer, 0)->dtype;
	static const char *const kinds[] = {"keys_tensor", "keys_strings", "keys_int64s", "keys_floats"};
	struct labels labels;
	enum lth_code code = read_labels(infer, kinds, &labels);
	if (code)
		return code;
	if (labels.tensor) {
		if (labels.tensor->type.dtype != dtype)
			return wrong_keys(infer, dtype);
		const void *list = labels.tensor->constant.data;
		uint32_t count = (uint32_t)tensor_count(labels.tensor);
		*out_count = count;
		*out = dtype == LTH_DTYPE_STRING ? lth_build_find_string(infer, x, list, count)
						 : lth_build_find(infer, x, list, count);
		return LTH_OK;
	}
	if (labels.strings && dtype == LTH_DTYPE_STRING) {
		*out_count = labels.strings->count;
		*out = lth_build_find_string(infer, x, labels.strings->strings, labels.strings->count);
		return LTH_OK;
	}
	if (labels.ints && dtype == LTH_DTYPE_I64) {
		*out_count = labels.ints->count;
		*out = lth_build_find(infer, x, labels.ints->ints, labels.ints->count);
		return LTH_OK;
	}
	if (!labels.floats || dtype != LTH_DTYPE_F32)
		return wrong_keys(infer, dtype);
	float *list = lth_arena_array(infer->graph->arena, labels.floats->count + 1, sizeof(*list));
	for (uint32_t i = 0; list && i < labels.floats->count; i++)
		list[i] = (float)labels.floats->floats[i];
	*out_count = labels.floats->count;
	*out = list ? lth_build_find(infer, x, list, labels.floats->count) : LTH_NONE;
	return LTH_OK;
}

/* ---- values ---- */

/* A tensor of values, and the default tensor's only element behind them. */
static lth_value_id tensor_values(struct lth_infer *infer, const struct lth_value *tensor)
{
	const struct lth_value *last = tensor_attr(infer, "default_tensor");
	enum lth_dtype dtype = tensor->type.dtype;
	size_t width = lth_dtype_bits(dtype) / 8;
	uint32_t count = (uint32_t)tensor_count(tensor);
	bool given = last && last->type.dtype == dtype && last->constant.bytes >= (int64_t)width;
	const void *list = tensor->constant.data;
	if (dtype == LTH_DTYPE_STRING)
		return strings_and(infer, list, count,
				   given ? *(const struct lth_string *)last->constant.data : unused);
	char *all = lth_arena_array(infer->graph->arena, (size_t)count + 1, width);
	if (!all)
		return LTH_NONE;
	memcpy(all, list, count * width);
	int64_t minus_one = lth_is_float(dtype) ? 0 : -1; /* floats: zero */
	memcpy(all + count * width, given ? last->constant.data : (const void *)&minus_one, width);
	return lth_build_data(infer, dtype, 1, &(int64_t){count + 1}, all, (count + 1) * width);
}

static enum lth_code build_values(struct lth_infer *infer, uint32_t keys, lth_value_id *out)
{
	static const char *const kinds[] = {"values_tensor", "values_strings", "values_int64s", "values_floats"};
	struct labels labels;
	enum lth_code code = read_labels(infer, kinds, &labels);
	if (code)
		return code;
	const struct lth_attr *list_attr = labels.strings ? labels.strings : labels.ints ? labels.ints : labels.floats;
	int64_t count = labels.tensor ? tensor_count(labels.tensor) : list_attr ? (int64_t)list_attr->count : -1;
	if (count != keys)
		return lth_infer_reject(infer, "a value for each key", "%lld values, %u keys", (long long)count, keys);
	if (labels.tensor) {
		*out = tensor_values(infer, labels.tensor);
	} else if (labels.strings) {
		*out = strings_and(infer, labels.strings->strings, labels.strings->count, default_string(infer->node));
	} else if (labels.ints) {
		*out = ints_and(infer, labels.ints->ints, labels.ints->count, lth_op_int(infer->node, "default_int64"));
	} else {
		float *list = lth_arena_array(infer->graph->arena, labels.floats->count + 1, sizeof(*list));
		int64_t size = labels.floats->count + 1;
		for (uint32_t i = 0; list && i < labels.floats->count; i++)
			list[i] = (float)labels.floats->floats[i];
		if (!list)
			return LTH_OK;
		list[labels.floats->count] = (float)lth_op_float(infer->node, "default_float");
		*out = lth_build_data(infer, LTH_DTYPE_F32, 1, &size, list, (size_t)size * sizeof(*list));
	}
	return LTH_OK;
}

static enum lth_code expand_label_encoder(struct lth_infer *infer)
{
	lth_value_id places = LTH_NONE, values = LTH_NONE;
	uint32_t keys = 0;
	enum lth_code code = find_keys(infer, &places, &keys);
	if (!code)
		code = build_values(infer, keys, &values);
	if (!code)
		lth_build_output(infer, 0, lth_build2(infer, LTH_OP_ID_Gather, values, places));
	return code;
}

const struct lth_op_impl lth_impl_label_encoder = {.expand = expand_label_encoder};

static enum lth_code expand_category_mapper(struct lth_infer *infer)
{
	const struct lth_attr *strings = lth_node_attr(infer->node, "cats_strings");
	const struct lth_attr *ints = lth_node_attr(infer->node, "cats_int64s");
	lth_value_id x = lth_node_input(infer->node, 0), places, values;
	if (strings->count != ints->count)
		return lth_infer_reject(infer, "as many strings as numbers", "%u and %u", strings->count, ints->count);
	if (lth_infer_type(infer, 0)->dtype == LTH_DTYPE_STRING) {
		places = lth_build_find_string(infer, x, strings->strings, strings->count);
		values = ints_and(infer, ints->ints, ints->count, lth_op_int(infer->node, "default_int64"));
	} else {
		places = lth_build_find(infer, x, ints->ints, ints->count);
		values = strings_and(infer, strings->strings, strings->count, default_string(infer->node));
	}
	lth_build_output(infer, 0, lth_build2(infer, LTH_OP_ID_Gather, values, places));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_category_mapper = {.expand = expand_category_mapper};
