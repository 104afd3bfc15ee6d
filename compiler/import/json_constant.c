/* Constants of JSON graph IR: values in a list, bytes in base64, or a file of the request by digest. */
#include "compiler/import/json_internal.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct shape {
	int64_t dims[LTH_MAX_RANK];
	uint32_t rank;
	int64_t count, bytes;
	enum lth_dtype dtype;
};

static enum lth_code read_shape(struct lth_json *json, const struct lth_json_path *path, const json_t *object,
				const char *name, struct shape *out)
{
	const json_t *type = json_object_get(object, "type"), *dims = json_object_get(object, "shape");
	out->dtype = json_is_string(type) ? lth_dtype_by_text(json_string_value(type)) : LTH_NUM_DTYPES;
	const struct lth_json_path at_type = {path, "type", 0}, at_shape = {path, "shape", 0};
	if (out->dtype == LTH_NUM_DTYPES)
		return lth_json_fail(json, type ? &at_type : path, "an element type like \"f32\"", "%s",
				     json_is_string(type) ? json_string_value(type) : "none");
	if (!json_is_array(dims) || json_array_size(dims) > LTH_MAX_RANK)
		return lth_json_fail(json, dims ? &at_shape : path, "a shape of at most 16 numbers", "another value");
	out->rank = (uint32_t)json_array_size(dims);
	for (uint32_t i = 0; i < out->rank; i++) {
		const json_t *dim = json_array_get(dims, i);
		const struct lth_json_path at = {&at_shape, NULL, i};
		if (!json_is_integer(dim) || json_integer_value(dim) < 0)
			return lth_json_fail(json, &at, "a number of at least 0", "another value");
		out->dims[i] = json_integer_value(dim);
	}
	return lth_importer_tensor_bytes(&json->base, name, out->dtype, out->dims, out->rank, &out->count, &out->bytes);
}

/* A number, a bool, or one of the words for what JSON cannot write. */
static bool number_of(const json_t *value, double *out_float, int64_t *out_int, bool *out_integer)
{
	static const struct {
		const char *word;
		double value;
	} words[] = {{"nan", NAN}, {"inf", HUGE_VAL}, {"-inf", -HUGE_VAL}};
	*out_integer = json_is_integer(value) || json_is_boolean(value);
	*out_int = json_is_boolean(value)   ? json_is_true(value)
		   : json_is_integer(value) ? json_integer_value(value)
					    : 0;
	*out_float = *out_integer ? (double)*out_int : json_real_value(value);
	if (!json_is_string(value))
		return json_is_number(value) || json_is_boolean(value);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(words[i].word, json_string_value(value)) == 0) {
			*out_float = words[i].value;
			return true;
		}
	}
	return false;
}

static bool store_number(enum lth_dtype dtype, const json_t *value, uint8_t *out)
{
	unsigned bits = lth_dtype_bits(dtype);
	enum lth_dtype_class class = lth_dtype_class(dtype);
	double number;
	int64_t integer;
	bool whole;
	if (!number_of(value, &number, &integer, &whole))
		return false;
	if (dtype == LTH_DTYPE_F32) {
		float narrow = (float)number;
		memcpy(out, &narrow, sizeof(narrow));
		return true;
	}
	if (dtype == LTH_DTYPE_F64) {
		memcpy(out, &number, sizeof(number));
		return true;
	}
	int64_t low = class == LTH_CLASS_INT ? (int64_t)(UINT64_MAX << (bits - 1)) : 0;
	int64_t high = class == LTH_CLASS_BOOL  ? 1
		       : bits == 64             ? INT64_MAX
		       : class == LTH_CLASS_INT ? ~low
						: (int64_t)((UINT64_C(1) << bits) - 1);
	memcpy(out, &integer, bits / 8); /* little-endian host */
	return whole && integer >= low && integer <= high;
}

static enum lth_code store_string(struct lth_json *json, const struct lth_json_path *path, const json_t *value,
				  void *out)
{
	if (!json_is_string(value))
		return lth_json_fail(json, path, "a string", "another value");
	struct lth_string string = {.size = json_string_length(value)};
	string.data = lth_arena_strndup(json->base.arena, json_string_value(value), string.size);
	memcpy(out, &string, sizeof(string));
	return string.data ? LTH_OK : lth_importer_memory(&json->base);
}

static enum lth_code from_values(struct lth_json *json, const struct lth_json_path *path, const json_t *values,
				 const struct shape *shape, uint8_t *out)
{
	unsigned bits = lth_dtype_bits(shape->dtype);
	enum lth_dtype_class class = lth_dtype_class(shape->dtype);
	bool narrow = bits < 8 || class == LTH_CLASS_COMPLEX || (class == LTH_CLASS_FLOAT && bits < 32);
	if (narrow)
		return lth_json_fail(json, path, "base64 or digest for this element type", "values of type %s",
				     lth_dtype_text(shape->dtype));
	if (!json_is_array(values) || json_array_size(values) != (uint64_t)shape->count)
		return lth_json_fail(json, path, "as many values as the shape has",
				     "%zu values for %" PRId64 " elements", json_array_size(values), shape->count);
	for (size_t i = 0; i < json_array_size(values); i++) {
		const struct lth_json_path at = {path, NULL, i};
		const json_t *value = json_array_get(values, i);
		enum lth_code code = LTH_OK;
		if (shape->dtype == LTH_DTYPE_STRING)
			code = store_string(json, &at, value, out + i * sizeof(struct lth_string));
		else if (!store_number(shape->dtype, value, out + i * (bits / 8)))
			code = lth_json_fail(json, &at, "a value of the constant's type", "another");
		if (code)
			return code;
	}
	return LTH_OK;
}

static int base64_digit(char c)
{
	return c >= 'A' && c <= 'Z'   ? c - 'A'
	       : c >= 'a' && c <= 'z' ? c - 'a' + 26
	       : c >= '0' && c <= '9' ? c - '0' + 52
	       : c == '+'             ? 62
	       : c == '/'             ? 63
				      : -1;
}

/* RFC 4648 with padding; false unless it is exactly `bytes` long. */
static bool decode_base64(const char *text, size_t size, uint8_t *out, int64_t bytes)
{
	if (size % 4 != 0 || (uint64_t)bytes > size / 4 * 3 || (uint64_t)bytes + 3 <= size / 4 * 3)
		return false;
	int64_t used = 0;
	for (size_t i = 0; i < size; i += 4) {
		uint32_t group = 0;
		for (size_t k = 0; k < 4; k++) {
			bool padding = text[i + k] == '=' && i + 4 == size && k >= 2;
			int digit = padding ? 0 : base64_digit(text[i + k]);
			if (digit < 0)
				return false;
			group = group << 6 | (uint32_t)digit;
		}
		for (int shift = 16; shift >= 0 && used < bytes; shift -= 8)
			out[used++] = (uint8_t)(group >> shift);
	}
	return used == bytes;
}

static enum lth_code from_file(struct lth_json *json, const struct lth_json_path *path, const char *digest,
			       const struct shape *shape, const void **out)
{
	const struct lth_compile_file *file = lth_importer_file(&json->base, digest);
	char place[64];
	lth_json_locate(json->text, json->size, path, place, sizeof(place));
	if (!file)
		return lth_diag_fail(json->base.diag, LTH_MISSING_BLOB, place, "a blob that the request sends or names",
				     "PUT it to /v1/blobs first", "digest '%s'", digest);
	if (shape->dtype == LTH_DTYPE_STRING || file->size != (uint64_t)shape->bytes)
		return lth_json_fail(json, path, "as many bytes as the shape needs",
				     "%zu bytes, the shape needs %" PRId64, file->size, shape->bytes);
	*out = file->data;
	return LTH_OK;
}

enum lth_code lth_json_constant(struct lth_json *json, const struct lth_json_path *path, const json_t *object,
				const char *name, lth_value_id *out)
{
	static const char *const members[] = {"name", "type", "shape", "values", "base64", "digest", NULL};
	struct shape shape = {.rank = 0};
	const json_t *values = json_object_get(object, "values"), *base64 = json_object_get(object, "base64");
	const json_t *digest = json_object_get(object, "digest");
	enum lth_code code = lth_json_members(json, path, object, members);
	if (code || (code = read_shape(json, path, object, name, &shape)))
		return code;
	if ((values != NULL) + json_is_string(base64) + json_is_string(digest) != 1)
		return lth_json_fail(json, path, "one of values, base64 and digest", "none or several");
	uint64_t room = json->size * (uint64_t)sizeof(struct lth_string); /* more bytes than the text can give */
	if (!digest && (uint64_t)shape.bytes > room)
		return lth_json_fail(json, path, "as much data as the shape needs", "less");
	const void *data = NULL;
	if (digest) {
		const struct lth_json_path at = {path, "digest", 0};
		code = from_file(json, &at, json_string_value(digest), &shape, &data);
	} else {
		const struct lth_json_path at = {path, values ? "values" : "base64", 0};
		uint8_t *bytes = lth_arena_alloc(json->base.arena, (size_t)shape.bytes);
		data = bytes;
		if (!bytes)
			return lth_importer_memory(&json->base);
		if (values)
			code = from_values(json, &at, values, &shape, bytes);
		else if (shape.dtype == LTH_DTYPE_STRING ||
			 !decode_base64(json_string_value(base64), json_string_length(base64), bytes, shape.bytes))
			code = lth_json_fail(json, &at, "base64 of the bytes that the shape needs", "another text");
	}
	if (code)
		return code;
	*out = lth_graph_constant(json->base.graph, name, shape.dtype, shape.rank, shape.dims, data, shape.bytes);
	return *out == LTH_NONE ? lth_importer_memory(&json->base) : LTH_OK;
}
