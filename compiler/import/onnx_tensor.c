/* TensorProto to constants: raw bytes, typed fields, external files, sparse forms. The result is dense, row-major,
 * little-endian, sub-byte types packed low half first, strings as struct lth_string. */
#include "compiler/import/onnx_internal.h"

#include "runtime/base/checked.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct tensor_shape {
	int64_t dims[LTH_MAX_RANK];
	uint32_t rank;
	int64_t count, bytes;
	enum lth_dtype dtype;
};

static enum lth_code read_shape(struct lth_onnx *onnx, const char *place, const int64_t *dims, size_t rank,
				int data_type, struct tensor_shape *out)
{
	out->dtype = lth_dtype_by_onnx(data_type);
	if (out->dtype == LTH_NUM_DTYPES)
		return lth_importer_fail(&onnx->base, LTH_INVALID_MODEL, place, "a data type of ONNX", "data type %d",
					 data_type);
	if (rank > LTH_MAX_RANK)
		return lth_importer_fail(&onnx->base, LTH_UNSUPPORTED, place, "at most 16 dimensions",
					 "a tensor with %zu", rank);
	out->rank = (uint32_t)rank;
	if (rank)
		memcpy(out->dims, dims, rank * sizeof(*dims));
	return lth_importer_tensor_bytes(&onnx->base, place, out->dtype, out->dims, out->rank, &out->count,
					 &out->bytes);
}

static enum lth_code wrong_length(struct lth_onnx *onnx, const char *place, const char *what, uint64_t found,
				  int64_t expected)
{
	return lth_importer_fail(&onnx->base, LTH_INVALID_MODEL, place, "as much data as the shape needs",
				 "%" PRIu64 " %s, the shape needs %" PRId64, found, what, expected);
}

/* ---- external data ---- */

/* Relative, without "..": a name inside the request, never a path outside. */
static bool safe_name(const char *name)
{
	if (!*name || *name == '/' || strchr(name, '\\'))
		return false;
	for (const char *part = name; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL)
		if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == 0))
			return false;
	return true;
}

static bool parse_offset(const char *text, uint64_t *out)
{
	char *end;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	if (errno || *end || end == text || *text == '-' || *text == '+' || *text == ' ')
		return false;
	*out = value;
	return true;
}

static enum lth_code external(struct lth_onnx *onnx, const Lth__Onnx__Tensor *tensor, const char *place,
			      const uint8_t **out_data, size_t *out_size)
{
	const char *location = NULL;
	uint64_t offset = 0, length = UINT64_MAX;
	bool valid = true;
	for (size_t i = 0; i < tensor->n_external_data; i++) {
		const char *key = tensor->external_data[i]->key, *value = tensor->external_data[i]->value;
		if (!key || !value)
			continue;
		if (strcmp(key, "location") == 0)
			location = value;
		else if (strcmp(key, "offset") == 0)
			valid &= parse_offset(value, &offset);
		else if (strcmp(key, "length") == 0)
			valid &= parse_offset(value, &length);
	}
	if (!location || !safe_name(location) || !valid)
		return lth_importer_fail(&onnx->base, LTH_INVALID_MODEL, place,
					 "a relative file name, and an offset and length in digits",
					 "external data at '%s'", location ? location : "");
	while (strncmp(location, "./", 2) == 0)
		location += 2;
	const struct lth_compile_file *file = lth_importer_file(&onnx->base, location);
	if (!file)
		return lth_diag_fail(onnx->base.diag, LTH_MISSING_BLOB, place, "a file of that name in the request",
				     "send the model's external data with it", "external data in '%s'", location);
	if (offset > file->size || (length != UINT64_MAX && length > file->size - offset))
		return lth_importer_fail(&onnx->base, LTH_INVALID_MODEL, place, "a part of the file",
					 "offset %" PRIu64 " of '%s', which has %zu bytes", offset, location,
					 file->size);
	*out_data = (const uint8_t *)file->data + offset;
	*out_size = length == UINT64_MAX ? file->size - (size_t)offset : (size_t)length;
	return LTH_OK;
}

/* ---- data ---- */

static enum lth_code strings(struct lth_onnx *onnx, const Lth__Onnx__Tensor *tensor, const char *place,
			     const struct tensor_shape *shape, const void **out)
{
	if ((uint64_t)shape->count != tensor->n_string_data)
		return wrong_length(onnx, place, "strings", tensor->n_string_data, shape->count);
	struct lth_string *list = lth_arena_array(onnx->base.arena, tensor->n_string_data, sizeof(*list));
	if (!list)
		return lth_importer_memory(&onnx->base);
	for (size_t i = 0; i < tensor->n_string_data; i++)
		list[i] = (struct lth_string){(const char *)tensor->string_data[i].data, tensor->string_data[i].len};
	*out = list;
	return LTH_OK;
}

/* Copies `count` integers of `from` bytes into `to` bytes each, keeping the low ones (little-endian host). */
static void narrow(const void *data, size_t from, void *out, size_t to, size_t count)
{
	for (size_t i = 0; i < count; i++)
		memcpy((char *)out + i * to, (const char *)data + i * from, to);
}

/* The typed field that holds this type: its entries and their size. */
static void typed_field(const Lth__Onnx__Tensor *tensor, enum lth_dtype dtype, const void **out_data,
			size_t *out_entries, size_t *out_width)
{
	switch (dtype) {
	case LTH_DTYPE_F32:
	case LTH_DTYPE_C64: *out_data = tensor->float_data, *out_entries = tensor->n_float_data, *out_width = 4; return;
	case LTH_DTYPE_F64:
	case LTH_DTYPE_C128:
		*out_data = tensor->double_data, *out_entries = tensor->n_double_data, *out_width = 8;
		return;
	case LTH_DTYPE_I64: *out_data = tensor->int64_data, *out_entries = tensor->n_int64_data, *out_width = 8; return;
	case LTH_DTYPE_U32:
	case LTH_DTYPE_U64:
		*out_data = tensor->uint64_data, *out_entries = tensor->n_uint64_data, *out_width = 8;
		return;
	default: *out_data = tensor->int32_data, *out_entries = tensor->n_int32_data, *out_width = 4; return;
	}
}

static enum lth_code typed(struct lth_onnx *onnx, const Lth__Onnx__Tensor *tensor, const char *place,
			   const struct tensor_shape *shape, const void **out)
{
	const void *data;
	size_t entries, width;
	unsigned bits = lth_dtype_bits(shape->dtype);
	typed_field(tensor, shape->dtype, &data, &entries, &width);
	/* complex numbers are pairs; sub-byte types fill an entry with a byte of them */
	size_t to = bits < 8 ? 1 : lth_dtype_class(shape->dtype) == LTH_CLASS_COMPLEX ? bits / 16 : bits / 8;
	uint64_t needed = (uint64_t)shape->bytes / to;
	if (entries != needed)
		return wrong_length(onnx, place, "entries of typed data", entries, (int64_t)needed);
	if (to == width) {
		*out = data;
		return LTH_OK;
	}
	void *bytes = lth_arena_alloc(onnx->base.arena, (size_t)shape->bytes);
	if (!bytes)
		return lth_importer_memory(&onnx->base);
	narrow(data, width, bytes, to, entries);
	*out = bytes;
	return LTH_OK;
}

/* Bools are 0 or 1 from here on; a file may hold any non-zero byte. */
static enum lth_code clean_bools(struct lth_onnx *onnx, const struct tensor_shape *shape, const void **data)
{
	const uint8_t *bytes = *data;
	bool clean = true;
	for (int64_t i = 0; i < shape->bytes && clean; i++)
		clean = bytes[i] <= 1;
	if (clean)
		return LTH_OK;
	uint8_t *copy = lth_arena_memdup(onnx->base.arena, bytes, (size_t)shape->bytes);
	if (!copy)
		return lth_importer_memory(&onnx->base);
	for (int64_t i = 0; i < shape->bytes; i++)
		copy[i] = copy[i] != 0;
	*data = copy;
	return LTH_OK;
}

static enum lth_code tensor_data(struct lth_onnx *onnx, const Lth__Onnx__Tensor *tensor, const char *place,
				 const struct tensor_shape *shape, const void **out)
{
	const uint8_t *raw = tensor->raw_data.data;
	size_t size = tensor->raw_data.len;
	bool outside = tensor->data_location == 1;
	enum lth_code code = outside ? external(onnx, tensor, place, &raw, &size) : LTH_OK;
	if (code)
		return code;
	if (shape->dtype == LTH_DTYPE_STRING)
		return outside ? lth_importer_fail(&onnx->base, LTH_INVALID_MODEL, place, "strings inside the model",
						   "strings in external data")
			       : strings(onnx, tensor, place, shape, out);
	if (!tensor->has_raw_data && !outside) {
		code = typed(onnx, tensor, place, shape, out);
	} else {
		if ((uint64_t)shape->bytes != size)
			return wrong_length(onnx, place, "bytes", size, shape->bytes);
		*out = raw;
	}
	if (code == LTH_OK && shape->dtype == LTH_DTYPE_BOOL)
		code = clean_bools(onnx, shape, out);
	return code;
}

static lth_value_id constant(struct lth_onnx *onnx, const char *name, const struct tensor_shape *shape,
			     const void *data)
{
	static const uint64_t nothing;
	return lth_graph_constant(onnx->base.graph, name, shape->dtype, shape->rank, shape->dims,
				  data ? data : &nothing, shape->bytes);
}

enum lth_code lth_onnx_tensor(struct lth_onnx *onnx, const Lth__Onnx__Tensor *tensor, const char *name,
			      lth_value_id *out)
{
	struct tensor_shape shape = {.rank = 0};
	const void *data = NULL;
	const char *place = name ? name : tensor->name ? tensor->name : "";
	enum lth_code code = read_shape(onnx, place, tensor->dims, tensor->n_dims, tensor->data_type, &shape);
	if (code == LTH_OK)
		code = tensor_data(onnx, tensor, place, &shape, &data);
	if (code)
		return code;
	lth_value_id id = constant(onnx, place, &shape, data);
	if (id == LTH_NONE)
		return lth_importer_memory(&onnx->base);
	*out = id;
	return LTH_OK;
}

/* ---- sparse tensors ---- */

/* The flat position of entry `entry`: linear indices, or one row of coordinates. */
static bool sparse_position(const struct tensor_shape *dense, const int64_t *indices, bool linear, int64_t entry,
			    int64_t *out)
{
	int64_t position = 0;
	if (linear) {
		position = indices[entry];
	} else {
		for (uint32_t axis = 0; axis < dense->rank; axis++) {
			int64_t index = indices[entry * dense->rank + axis];
			if (index < 0 || index >= dense->dims[axis])
				return false;
			position = position * dense->dims[axis] + index;
		}
	}
	*out = position;
	return position >= 0 && position < dense->count;
}

enum lth_code lth_onnx_sparse(struct lth_onnx *onnx, const Lth__Onnx__SparseTensor *sparse, const char *name,
			      lth_value_id *out)
{
	struct tensor_shape dense = {.rank = 0}, values = {.rank = 0}, indices = {.rank = 0};
	const void *data = NULL, *places = NULL;
	const char *place = name ? name : sparse->values && sparse->values->name ? sparse->values->name : "sparse";
	if (!sparse->values || !sparse->indices)
		return lth_importer_fail(&onnx->base, LTH_INVALID_MODEL, place, "values and indices",
					 "a sparse tensor that lacks one");
	const Lth__Onnx__Tensor *v = sparse->values, *x = sparse->indices;
	enum lth_code code = read_shape(onnx, place, sparse->dims, sparse->n_dims, v->data_type, &dense);
	if (code || (code = read_shape(onnx, place, v->dims, v->n_dims, v->data_type, &values)) ||
	    (code = tensor_data(onnx, v, place, &values, &data)) ||
	    (code = read_shape(onnx, place, x->dims, x->n_dims, x->data_type, &indices)) ||
	    (code = tensor_data(onnx, x, place, &indices, &places)))
		return code;
	unsigned bits = lth_dtype_bits(dense.dtype);
	bool linear = indices.rank == 1;
	bool fits = linear ? indices.count == values.count
			   : indices.rank == 2 && indices.dims[0] == values.count && indices.dims[1] == dense.rank;
	if (values.rank != 1 || indices.dtype != LTH_DTYPE_I64 || !fits || bits % 8 != 0)
		return lth_importer_fail(&onnx->base, LTH_INVALID_MODEL, place, "an index for each value",
					 "indices of another type or shape");
	if (dense.dtype == LTH_DTYPE_STRING)
		return lth_importer_fail(&onnx->base, LTH_UNSUPPORTED, place, NULL, "a sparse tensor of strings");
	uint8_t *bytes = lth_arena_alloc(onnx->base.arena, (size_t)dense.bytes);
	if (!bytes)
		return lth_importer_memory(&onnx->base);
	for (int64_t i = 0; i < values.count; i++) {
		int64_t position;
		if (!sparse_position(&dense, places, linear, i, &position))
			return lth_importer_fail(&onnx->base, LTH_INVALID_MODEL, place, "indices within the shape",
						 "entry %" PRId64 " outside", i);
		memcpy(bytes + position * (bits / 8), (const uint8_t *)data + i * (bits / 8), bits / 8);
	}
	lth_value_id id = constant(onnx, place, &dense, bytes);
	if (id == LTH_NONE)
		return lth_importer_memory(&onnx->base);
	*out = id;
	return LTH_OK;
}
