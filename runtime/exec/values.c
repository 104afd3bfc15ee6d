/* A caller's values to objects, and objects to values. See values.h. A value comes from outside: its kind, counts,
 * types and dims are checked against what the model takes before anything runs. */
#include "runtime/exec/values.h"

#include "runtime/base/checked.h"
#include "runtime/kernels/list.h"

#include <stdio.h>
#include <string.h>

static const char *const kind_texts[LTH_NUM_VALUE_KINDS] = {
	[LTH_VALUE_TENSOR] = "a tensor",
	[LTH_VALUE_SEQUENCE] = "a sequence",
	[LTH_VALUE_OPTIONAL] = "an optional",
	[LTH_VALUE_MAP] = "a map",
};
#define SAME_KIND(public, internal) _Static_assert((int)public == (int)internal, "kinds of lathe.h are Lathe's own")
SAME_KIND(LATHE_TENSOR, LTH_VALUE_TENSOR);
SAME_KIND(LATHE_SEQUENCE, LTH_VALUE_SEQUENCE);
SAME_KIND(LATHE_OPTIONAL, LTH_VALUE_OPTIONAL);
SAME_KIND(LATHE_MAP, LTH_VALUE_MAP);
_Static_assert((int)LATHE_OBJECT == 256, "the number of dtypes.def");

/* ---- in ---- */

struct taker {
	struct lth_objects *objects;
	struct lth_diag *diag;
	char place[300]; /* "input 0 'x', element 2" */
};

static enum lth_code no_memory(struct taker *taker)
{
	return lth_diag_fail(taker->diag, LTH_OUT_OF_MEMORY, taker->place, NULL, NULL, "no memory for an object");
}

/* A tensor against its type; dtype NUM: any. */
static enum lth_code take_tensor(struct taker *taker, enum lth_dtype dtype, int32_t rank, const int64_t *dims,
				 const struct lathe_tensor *tensor, struct lth_object **out)
{
	int64_t count = 1, bytes = 0;
	char expected[64];
	if (tensor->dtype != lth_dtype_onnx(dtype))
		return lth_diag_fail(taker->diag, LTH_BAD_INPUT, taker->place, lth_dtype_text(dtype), NULL,
				     "element type %d", tensor->dtype);
	if (tensor->rank > LTH_MAX_RANK || (rank != LTH_ANY_RANK && tensor->rank != (uint32_t)rank)) {
		snprintf(expected, sizeof(expected), "rank %d", rank == LTH_ANY_RANK ? LTH_MAX_RANK : rank);
		return lth_diag_fail(taker->diag, LTH_BAD_INPUT, taker->place, expected, NULL, "rank %u", tensor->rank);
	}
	for (uint32_t axis = 0; axis < tensor->rank; axis++) {
		bool fits = rank == LTH_ANY_RANK || dims[axis] == LTH_ANY_SIZE || dims[axis] == tensor->dims[axis];
		if (fits && tensor->dims[axis] >= 0 && lth_mul_i64(count, tensor->dims[axis], &count))
			continue;
		snprintf(expected, sizeof(expected), "%lld", fits ? 0LL : (long long)dims[axis]);
		return lth_diag_fail(taker->diag, LTH_BAD_INPUT, taker->place, fits ? "dims of 0 or more" : expected,
				     NULL, "%lld at axis %u", (long long)tensor->dims[axis], axis);
	}
	unsigned unit = lth_dtype_bits(dtype) / 8;
	unit = unit > 8 ? 8 : unit < 1 ? 1 : unit;
	if (!lth_dtype_bytes(dtype, count, &bytes) || (uint64_t)bytes > tensor->bytes ||
	    (bytes && (!tensor->data || (uintptr_t)tensor->data % unit != 0))) {
		snprintf(expected, sizeof(expected), "%lld bytes, aligned to their element", (long long)bytes);
		return lth_diag_fail(taker->diag, LTH_BAD_INPUT, taker->place, expected, NULL, "%llu bytes",
				     (unsigned long long)tensor->bytes);
	}
	*out = lth_object_borrow(taker->objects, dtype, tensor->rank, tensor->dims, tensor->data);
	return *out ? LTH_OK : no_memory(taker);
}

static enum lth_code take_map(struct taker *taker, const struct lth_value_type *type, const struct lathe_value *value,
			      struct lth_object **out)
{
	static const int64_t any[1] = {LTH_ANY_SIZE};
	struct lth_object *parts[2];
	enum lth_dtype dtypes[2] = {type->keys[0], type->dtype};
	if (type->depth != 1 || type->rank > 0)
		return lth_diag_fail(taker->diag, LTH_UNSUPPORTED, taker->place, NULL, NULL,
				     "a map whose values are no scalars");
	if (value->count != 2)
		return lth_diag_fail(taker->diag, LTH_BAD_INPUT, taker->place, "two elements: keys and values", NULL,
				     "%llu", (unsigned long long)value->count);
	for (int i = 0; i < 2; i++) {
		enum lth_code code = take_tensor(taker, dtypes[i], 1, any, &value->elements[i].tensor, &parts[i]);
		if (code != LTH_OK)
			return code;
	}
	if (parts[0]->dims[0] != parts[1]->dims[0])
		return lth_diag_fail(taker->diag, LTH_BAD_INPUT, taker->place, "a value for each key", NULL,
				     "%lld keys and %lld values", (long long)parts[0]->dims[0],
				     (long long)parts[1]->dims[0]);
	*out = lth_map_make(taker->objects, parts[0], parts[1]);
	return *out ? LTH_OK : no_memory(taker);
}

static enum lth_code take_value(struct taker *taker, const struct lth_value_type *type, const struct lathe_value *value,
				struct lth_object **out)
{
	enum lth_value_kind kind = lth_value_type_kind(type);
	size_t length = strlen(taker->place);
	if (value->kind != (int32_t)kind)
		return lth_diag_fail(taker->diag, LTH_BAD_INPUT, taker->place, kind_texts[kind], NULL, "%s",
				     value->kind >= 0 && value->kind < LTH_NUM_VALUE_KINDS ? kind_texts[value->kind]
											   : "an unknown kind");
	if (kind == LTH_VALUE_TENSOR)
		return take_tensor(taker, type->dtype, type->rank, type->dims, &value->tensor, out);
	if ((value->count && !value->elements) || value->count > INT64_MAX / sizeof(*value) ||
	    (kind == LTH_VALUE_OPTIONAL && value->count > 1))
		return lth_diag_fail(taker->diag, LTH_BAD_INPUT, taker->place,
				     kind == LTH_VALUE_OPTIONAL ? "one element at most" : "elements", NULL, "%llu",
				     (unsigned long long)value->count);
	if (kind == LTH_VALUE_MAP)
		return take_map(taker, type, value, out);
	const struct lth_value_type inner = lth_value_type_element(type);
	struct lth_object *list = lth_object_list(taker->objects, (int64_t)value->count);
	for (uint64_t i = 0; list && i < value->count; i++) {
		struct lth_object *item;
		snprintf(taker->place + length, sizeof(taker->place) - length, ", element %llu", (unsigned long long)i);
		enum lth_code code = take_value(taker, &inner, &value->elements[i], &item);
		if (code != LTH_OK)
			return code;
		taker->place[length] = 0;
		if (!lth_list_push(taker->objects, list, item))
			list = NULL;
	}
	*out = list;
	return list ? LTH_OK : no_memory(taker);
}

enum lth_code lth_take_values(struct lathe_context *c, const struct lathe_tensor *inputs, struct lth_diag *diag)
{
	const struct lth_program *program = c->x->program;
	struct taker taker = {.objects = &c->objects, .diag = diag};
	for (uint32_t i = 0; i < program->num_inputs; i++) {
		struct lth_object *object;
		if (!program->inputs[i].type)
			continue;
		snprintf(taker.place, sizeof(taker.place), "input %u '%.200s'", i, c->x->description.inputs[i].name);
		enum lth_code code = take_value(&taker, &c->x->input_types[i], inputs[i].data, &object);
		if (code != LTH_OK)
			return code;
		c->handles[i] = lth_objects_name(&c->objects, object);
		if (!c->handles[i])
			return no_memory(&taker);
	}
	return LTH_OK;
}

/* ---- out ---- */

struct giver {
	struct lth_objects *objects;
	struct lth_diag *diag;
	const char *name; /* of the output */
};

static enum lth_code cannot_give(const struct giver *giver)
{
	return lth_diag_fail(giver->diag, LTH_OUT_OF_MEMORY, giver->name, NULL, NULL, "no memory for its value");
}

/* A tensor that lives on: a caller's bytes are copied, for they may end before. */
static enum lth_code give_tensor(const struct giver *giver, struct lth_object *object, struct lathe_value *out)
{
	struct lathe_tensor *t = &out->tensor;
	*out = (struct lathe_value){.kind = LATHE_TENSOR};
	*t = (struct lathe_tensor){.dtype = lth_dtype_onnx(object->dtype),
				   .rank = object->rank,
				   .data = object->data,
				   .bytes = (uint64_t)object->bytes};
	memcpy(t->dims, object->dims, object->rank * sizeof(*t->dims));
	if (!object->borrowed) {
		lth_objects_keep(object);
		return LTH_OK;
	}
	t->data = lth_objects_keep_bytes(giver->objects, object->bytes);
	if (t->data && object->bytes)
		memcpy(t->data, object->data, (size_t)object->bytes);
	return t->data ? LTH_OK : cannot_give(giver);
}

/* An object as a value of its type, which a program may have got wrong. */
static enum lth_code give(const struct giver *giver, const struct lth_value_type *type, struct lth_object *object,
			  struct lathe_value *out)
{
	enum lth_value_kind kind = lth_value_type_kind(type);
	if (object->is_list != (kind != LTH_VALUE_TENSOR))
		return lth_diag_fail(giver->diag, LTH_BAD_EXECUTABLE, giver->name, kind_texts[kind], NULL, "%s",
				     object->is_list ? "a list" : "a tensor");
	if (kind == LTH_VALUE_TENSOR)
		return give_tensor(giver, object, out);
	int64_t bytes = object->count * (int64_t)sizeof(*out); /* as many items are in memory already */
	struct lathe_value *elements = lth_objects_keep_bytes(giver->objects, bytes);
	if (!elements)
		return cannot_give(giver);
	*out = (struct lathe_value){.kind = (int32_t)kind, .count = (uint64_t)object->count, .elements = elements};
	struct lth_value_type inner = lth_value_type_element(type);
	inner.depth = kind == LTH_VALUE_MAP ? 0 : inner.depth; /* keys and values are tensors */
	enum lth_code code = LTH_OK;
	for (int64_t i = 0; i < object->count && code == LTH_OK; i++)
		code = give(giver, &inner, lth_list_item(object, i), &elements[i]);
	return code;
}

enum lth_code lth_deliver_value(struct lathe_context *c, uint32_t number, struct lathe_tensor *output,
				struct lth_diag *diag)
{
	const struct lth_port *port = &c->x->program->outputs[number];
	struct lth_value_type type;
	void *at;
	int64_t handle;
	enum lth_code code = lth_tensor_pointer(c, port->tensor, &at, diag);
	if (code != LTH_OK)
		return code;
	memcpy(&handle, at, sizeof(handle));
	struct lth_object *object = lth_objects_find(&c->objects, handle);
	if (!object || !lth_value_type_parse(port->type, &type))
		return lth_diag_fail(diag, LTH_BAD_EXECUTABLE, port->name, "an object", NULL, "none");
	/* an output that the last run gave and nobody released is no buffer of the caller's */
	struct lathe_value *value = output->data && !lth_objects_end(&c->objects, output->data)
					    ? output->data
					    : lth_objects_keep_bytes(&c->objects, sizeof(*value));
	const struct giver giver = {.objects = &c->objects, .diag = diag, .name = port->name};
	code = value ? give(&giver, &type, object, value) : cannot_give(&giver);
	if (code != LTH_OK)
		return code;
	*output = (struct lathe_tensor){.dtype = LATHE_OBJECT, .data = value, .bytes = sizeof(*value)};
	return LTH_OK;
}
