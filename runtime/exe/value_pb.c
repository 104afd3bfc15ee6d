/* ONNX's messages of values that are no tensors (onnx-data.proto). The type says which message the bytes are, and
 * which of its fields hold elements; a field of another kind of elements is refused.
 *
 *	SequenceProto  name 1, elem_type 2, elements: tensors 3, sequences 5, maps 6, optionals 7
 *	OptionalProto  the same, of one element or none
 *	MapProto       name 1, key_type 2, keys 3 (integers), string_keys 4, values 5 (a SequenceProto of tensors) */
#include "runtime/exe/value.h"

#include "runtime/tensor/pb_wire.h"

#include <stdlib.h>
#include <string.h>

enum field { FIELD_NAME = 1, FIELD_TYPE = 2 };
enum map_field { MAP_KEY_TYPE = 2, MAP_INT_KEYS = 3, MAP_STRING_KEYS = 4, MAP_VALUES = 5 };

static const struct {
	const char *message;
	unsigned field; /* of elements of this kind */
	unsigned type;  /* their elem_type */
} kinds[LTH_NUM_VALUE_KINDS] = {
	[LTH_VALUE_TENSOR] = {"TensorProto", 3, 1},
	[LTH_VALUE_SEQUENCE] = {"SequenceProto", 5, 3},
	[LTH_VALUE_OPTIONAL] = {"OptionalProto", 7, 5},
	[LTH_VALUE_MAP] = {"MapProto", 6, 4},
};

static enum lth_code read(struct lth_pb_reader *r, const struct lth_value_type *type, struct lathe_value *out);

/* Room for one more element. */
static struct lathe_value *append(struct lth_pb_reader *r, struct lathe_value *value)
{
	uint64_t count = value->count;
	if ((count & (count - 1)) == 0) { /* grows at powers of two */
		struct lathe_value *grown = realloc(value->elements, (count ? 2 * count : 1) * sizeof(*grown));
		if (!grown) {
			lth_pb_fail(r, LTH_OUT_OF_MEMORY, NULL, "no memory for its elements");
			return NULL;
		}
		value->elements = grown;
	}
	struct lathe_value *element = &value->elements[value->count++];
	*element = (struct lathe_value){0};
	return element;
}

static enum lth_code read_tensor(struct lth_pb_reader *r, enum lth_dtype dtype, struct lathe_value *out)
{
	struct lth_host_tensor tensor = {0};
	enum lth_code code = lth_pb_read(r->at, (size_t)(r->end - r->at), &tensor, r->diag);
	if (code != LTH_OK)
		return code;
	free(tensor.name);
	*out = (struct lathe_value){.kind = LATHE_TENSOR, .tensor = lth_tensor_of_host(&tensor)};
	if (tensor.dtype != dtype)
		lth_pb_fail(r, LTH_BAD_INPUT, lth_dtype_text(dtype), lth_dtype_text(tensor.dtype));
	return r->failed ? r->diag->code : LTH_OK;
}

/* The elements of a sequence or optional. */
static enum lth_code read_elements(struct lth_pb_reader *r, const struct lth_value_type *type, struct lathe_value *out)
{
	const struct lth_value_type inner = lth_value_type_element(type);
	enum lth_value_kind kind = lth_value_type_kind(&inner);
	*out = (struct lathe_value){.kind = (int32_t)lth_value_type_kind(type)};
	while (!r->failed && r->at < r->end) {
		uint64_t tag = lth_pb_varint(r);
		enum lth_pb_wire wire = (enum lth_pb_wire)(tag & 7);
		if (tag >> 3 <= FIELD_TYPE) {
			lth_pb_skip(r, wire);
			continue;
		}
		if (tag >> 3 != kinds[kind].field || wire != LTH_PB_BYTES) {
			lth_pb_fail(r, LTH_BAD_INPUT, kinds[kind].message, "an element of another kind");
			break;
		}
		struct lth_pb_reader bytes = lth_pb_bytes(r);
		if (out->kind == LATHE_OPTIONAL && out->count)
			lth_pb_fail(r, LTH_BAD_INPUT, "one value", "two");
		struct lathe_value *element = r->failed ? NULL : append(r, out);
		enum lth_code code = element ? read(&bytes, &inner, element) : r->diag->code;
		if (code != LTH_OK)
			return code;
	}
	return r->failed ? r->diag->code : LTH_OK;
}

/* ---- maps ---- */

struct keys {
	struct lth_buf elements, strings; /* of strings: offset and size of each in `strings` */
};

static void take_key(void *context, uint64_t value)
{
	lth_buf_u64(&((struct keys *)context)->elements, value);
}

/* A tensor of one axis from elements one behind the other; of strings, with their bytes behind them. */
static bool make_row(enum lth_dtype dtype, const struct lth_buf *elements, const struct lth_buf *strings,
		     struct lathe_value *out)
{
	size_t width = lth_dtype_bits(dtype) / 8;
	char *data = malloc(elements->size + strings->size + 1);
	if (!data || elements->failed || strings->failed) {
		free(data);
		return false;
	}
	if (elements->size)
		memcpy(data, elements->data, elements->size);
	if (strings->size)
		memcpy(data + elements->size, strings->data, strings->size);
	for (size_t at = 0; dtype == LTH_DTYPE_STRING && at < elements->size; at += width) {
		uint64_t parts[2];
		memcpy(parts, data + at, sizeof(parts));
		const struct lth_string string = {data + elements->size + parts[0], (size_t)parts[1]};
		memcpy(data + at, &string, sizeof(string));
	}
	*out = (struct lathe_value){.kind = LATHE_TENSOR};
	out->tensor = (struct lathe_tensor){
		.dtype = lth_dtype_onnx(dtype), .rank = 1, .data = data, .bytes = elements->size};
	out->tensor.dims[0] = (int64_t)(elements->size / width);
	return true;
}

/* Scalars, one a tensor, as one tensor. */
static enum lth_code join(struct lth_pb_reader *r, enum lth_dtype dtype, const struct lathe_value *list,
			  struct lathe_value *out)
{
	struct keys joined = {{0}, {0}};
	size_t width = lth_dtype_bits(dtype) / 8;
	for (uint64_t i = 0; i < list->count && !r->failed; i++) {
		const struct lathe_tensor *t = &list->elements[i].tensor;
		if (t->bytes != width) {
			lth_pb_fail(r, LTH_UNSUPPORTED, "a scalar for each key", "another value");
		} else if (dtype == LTH_DTYPE_STRING) {
			const struct lth_string *string = t->data;
			lth_buf_u64(&joined.elements, joined.strings.size);
			lth_buf_u64(&joined.elements, string->size);
			lth_buf_append(&joined.strings, string->data, string->size);
		} else {
			lth_buf_append(&joined.elements, t->data, width);
		}
	}
	if (!r->failed && !make_row(dtype, &joined.elements, &joined.strings, out))
		lth_pb_fail(r, LTH_OUT_OF_MEMORY, NULL, "no memory for its values");
	lth_buf_free(&joined.elements);
	lth_buf_free(&joined.strings);
	return r->failed ? r->diag->code : LTH_OK;
}

static void read_map_fields(struct lth_pb_reader *r, enum lth_dtype key, struct keys *keys,
			    struct lth_pb_reader *values)
{
	while (!r->failed && r->at < r->end) {
		uint64_t tag = lth_pb_varint(r);
		enum lth_pb_wire wire = (enum lth_pb_wire)(tag & 7);
		if (tag >> 3 == MAP_INT_KEYS && key == LTH_DTYPE_I64) {
			lth_pb_numbers(r, wire, LTH_PB_VARINT, take_key, keys);
		} else if (tag >> 3 == MAP_STRING_KEYS && key == LTH_DTYPE_STRING && wire == LTH_PB_BYTES) {
			struct lth_pb_reader text = lth_pb_bytes(r);
			lth_buf_u64(&keys->elements, keys->strings.size);
			lth_buf_u64(&keys->elements, (uint64_t)(text.end - text.at));
			lth_buf_append(&keys->strings, text.at, (size_t)(text.end - text.at));
		} else if (tag >> 3 == MAP_VALUES && wire == LTH_PB_BYTES) {
			*values = lth_pb_bytes(r);
			values->message = "MapProto's values";
		} else {
			lth_pb_skip(r, wire);
		}
	}
}

static enum lth_code read_map(struct lth_pb_reader *r, const struct lth_value_type *type, struct lathe_value *out)
{
	const struct lth_value_type row = {
		.depth = 1, .kinds = {LTH_VALUE_SEQUENCE}, .dtype = type->dtype, .rank = LTH_ANY_RANK};
	struct lth_pb_reader values = *r;
	struct keys keys = {{0}, {0}};
	struct lathe_value list = {0}, *pair = calloc(2, sizeof(*pair));
	values.at = values.end;
	*out = (struct lathe_value){.kind = LATHE_MAP, .count = pair ? 2 : 0, .elements = pair};
	if (!pair)
		lth_pb_fail(r, LTH_OUT_OF_MEMORY, NULL, "no memory for a map");
	if (type->depth != 1 || lth_dtype_bits(type->dtype) < 8)
		lth_pb_fail(r, LTH_UNSUPPORTED, "scalars of whole bytes as values", "a map of something else");
	read_map_fields(r, type->keys[0], &keys, &values);
	enum lth_code code = r->failed ? r->diag->code : read_elements(&values, &row, &list);
	if (code == LTH_OK)
		code = join(r, type->dtype, &list, &pair[1]);
	if (code == LTH_OK && !make_row(type->keys[0], &keys.elements, &keys.strings, &pair[0]))
		lth_pb_fail(r, LTH_OUT_OF_MEMORY, NULL, "no memory for its keys");
	if (code == LTH_OK && !r->failed && pair[0].tensor.dims[0] != pair[1].tensor.dims[0])
		lth_pb_fail(r, LTH_BAD_INPUT, "a value for each key", "another number");
	lth_buf_free(&keys.elements);
	lth_buf_free(&keys.strings);
	lth_value_free(&list);
	return r->failed ? r->diag->code : code;
}

/* Whatever it has made so far is in `out`, also after a failure. */
static enum lth_code read(struct lth_pb_reader *r, const struct lth_value_type *type, struct lathe_value *out)
{
	enum lth_value_kind kind = lth_value_type_kind(type);
	r->message = kinds[kind].message;
	switch (kind) {
	case LTH_VALUE_TENSOR:
		return read_tensor(r, type->dtype, out);
	case LTH_VALUE_MAP:
		return read_map(r, type, out);
	default:
		return read_elements(r, type, out);
	}
}

enum lth_code lth_value_read(const void *bytes, size_t size, const struct lth_value_type *type, struct lathe_value *out,
			     struct lth_diag *diag)
{
	struct lth_pb_reader r = {.at = bytes, .start = bytes, .diag = diag};
	struct lathe_value value = {0};
	r.end = r.at + size;
	enum lth_code code = read(&r, type, &value);
	if (code == LTH_OK)
		*out = value;
	else
		lth_value_free(&value);
	return code;
}

/* ---- writing ---- */

/* A map's values are tensors of one element each. */
static enum lth_code write_map(const struct lathe_value *value, const struct lth_value_type *type, struct lth_buf *out,
			       struct lth_diag *diag)
{
	const struct lathe_tensor *keys = &value->elements[0].tensor, *values = &value->elements[1].tensor;
	const struct lth_string *strings = keys->data;
	const int64_t *ints = keys->data;
	struct lth_buf list = {0};
	enum lth_code code = LTH_OK;
	lth_pb_put_number(out, MAP_KEY_TYPE, (uint64_t)lth_dtype_onnx(type->keys[0]));
	lth_pb_put_number(&list, FIELD_TYPE, kinds[LTH_VALUE_TENSOR].type);
	for (int64_t i = 0; i < keys->dims[0] && code == LTH_OK; i++) {
		size_t width = lth_dtype_bits(type->dtype) / 8;
		struct lth_buf one = {0};
		struct lth_host_tensor scalar = {.dtype = type->dtype,
						 .data = (char *)values->data + (size_t)i * width,
						 .bytes = (int64_t)width};
		if (type->keys[0] == LTH_DTYPE_STRING)
			lth_pb_put_bytes(out, MAP_STRING_KEYS, strings[i].data, strings[i].size);
		else
			lth_pb_put_number(out, MAP_INT_KEYS, (uint64_t)ints[i]);
		code = lth_pb_write(&scalar, &one, diag);
		lth_pb_put_bytes(&list, kinds[LTH_VALUE_TENSOR].field, one.data, one.size);
		lth_buf_free(&one);
	}
	lth_pb_put_bytes(out, MAP_VALUES, list.data, list.size);
	lth_buf_free(&list);
	return code;
}

enum lth_code lth_value_write(const struct lathe_value *value, const struct lth_value_type *type, const char *name,
			      struct lth_buf *out, struct lth_diag *diag)
{
	enum lth_value_kind kind = lth_value_type_kind(type);
	if (kind == LTH_VALUE_TENSOR) {
		struct lth_host_tensor tensor = lth_tensor_to_host(&value->tensor);
		return lth_pb_write(&tensor, out, diag);
	}
	if (name)
		lth_pb_put_bytes(out, FIELD_NAME, name, strlen(name));
	if (kind == LTH_VALUE_MAP)
		return write_map(value, type, out, diag);
	const struct lth_value_type inner = lth_value_type_element(type);
	enum lth_value_kind element = lth_value_type_kind(&inner);
	bool empty = kind == LTH_VALUE_OPTIONAL && value->count == 0; /* of no type */
	lth_pb_put_number(out, FIELD_TYPE, empty ? 0 : kinds[element].type);
	enum lth_code code = LTH_OK;
	for (uint64_t i = 0; i < value->count && code == LTH_OK; i++) {
		struct lth_buf one = {0};
		code = lth_value_write(&value->elements[i], &inner, NULL, &one, diag);
		lth_pb_put_bytes(out, kinds[element].field, one.data, one.size);
		if (!lth_buf_ok(&one))
			out->failed = true;
		lth_buf_free(&one);
	}
	return code;
}
