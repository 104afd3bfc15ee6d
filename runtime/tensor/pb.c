/* ONNX TensorProto (onnx.proto3): the elements are raw little-endian bytes, or numbers in one of five typed fields,
 * which protobuf may pack or not. The reader is our own because executables stand on libc alone. It makes two passes
 * over the message: type and dims first, for they may come behind the data they describe. */
#include "runtime/tensor/host.h"
#include "runtime/tensor/pb_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fields of TensorProto. */
enum field {
	FIELD_DIMS = 1,
	FIELD_DATA_TYPE = 2,
	FIELD_SEGMENT = 3,
	FIELD_FLOATS = 4,
	FIELD_INT32S = 5,
	FIELD_STRINGS = 6,
	FIELD_INT64S = 7,
	FIELD_NAME = 8,
	FIELD_RAW = 9,
	FIELD_DOUBLES = 10,
	FIELD_UINT64S = 11,
	FIELD_LOCATION = 14
};

/* The first pass. */
struct header {
	struct lth_host_tensor *tensor;
	int64_t type;
	bool too_many, external;
};

static void take_dim(void *context, uint64_t value)
{
	struct header *h = context;
	if (h->tensor->rank == LTH_HOST_MAX_RANK)
		h->too_many = true;
	else
		h->tensor->dims[h->tensor->rank++] = (int64_t)value;
}

static void read_name(struct lth_pb_reader *r, struct lth_host_tensor *tensor)
{
	struct lth_pb_reader name = lth_pb_bytes(r);
	free(tensor->name);
	tensor->name = r->failed ? NULL : strndup((const char *)name.at, (size_t)(name.end - name.at));
	if (!tensor->name && !r->failed)
		lth_pb_fail(r, LTH_OUT_OF_MEMORY, NULL, "no memory for a name");
}

static void read_header(struct lth_pb_reader *r, struct header *h)
{
	while (!r->failed && r->at < r->end) {
		uint64_t tag = lth_pb_varint(r);
		enum lth_pb_wire wire = (enum lth_pb_wire)(tag & 7);
		if (tag >> 3 == FIELD_DIMS)
			lth_pb_numbers(r, wire, LTH_PB_VARINT, take_dim, h);
		else if (tag >> 3 == FIELD_DATA_TYPE && wire == LTH_PB_VARINT)
			h->type = (int64_t)lth_pb_varint(r);
		else if (tag >> 3 == FIELD_NAME && wire == LTH_PB_BYTES)
			read_name(r, h->tensor);
		else if (tag >> 3 == FIELD_LOCATION && wire == LTH_PB_VARINT)
			h->external = lth_pb_varint(r) != 0;
		else if (tag >> 3 == FIELD_SEGMENT)
			lth_pb_fail(r, LTH_UNSUPPORTED, "a whole tensor", "a segment of one");
		else
			lth_pb_skip(r, wire);
	}
	if (r->failed)
		return;
	if (h->too_many)
		lth_pb_fail(r, LTH_BAD_INPUT, "at most 16 dimensions", "more");
	else if (h->external)
		lth_pb_fail(r, LTH_UNSUPPORTED, "data inside the file", "external data");
	else if (h->type < 0 || h->type > INT32_MAX || lth_dtype_by_onnx((int)h->type) == LTH_NUM_DTYPES)
		lth_pb_fail(r, LTH_BAD_INPUT, "an element type of ONNX", "another");
}

/* The second pass: elements in their own width, appended in order. */
struct body {
	struct lth_buf data;
	struct lth_buf strings; /* for string tensors: their bytes; `data` has offset and size of each */
	unsigned bytes;         /* of what one number of the typed field becomes */
};

static void take_element(void *context, uint64_t value)
{
	struct body *b = context;
	unsigned char bytes[8];
	for (unsigned i = 0; i < 8; i++)
		bytes[i] = (unsigned char)(value >> 8 * i);
	lth_buf_append(&b->data, bytes, b->bytes);
}

static void take_string(struct body *b, struct lth_pb_reader *r)
{
	struct lth_pb_reader text = lth_pb_bytes(r);
	size_t size = (size_t)(text.end - text.at);
	lth_buf_u64(&b->data, b->strings.size);
	lth_buf_u64(&b->data, size);
	lth_buf_append(&b->strings, text.at, size);
}

/* Which typed field holds a type's elements, and as what. */
static enum field field_of(enum lth_dtype dtype, enum lth_pb_wire *out_element)
{
	*out_element = LTH_PB_VARINT;
	switch (dtype) {
	case LTH_DTYPE_F32:
	case LTH_DTYPE_C64:
		*out_element = LTH_PB_FIXED32;
		return FIELD_FLOATS;
	case LTH_DTYPE_F64:
	case LTH_DTYPE_C128:
		*out_element = LTH_PB_FIXED64;
		return FIELD_DOUBLES;
	case LTH_DTYPE_I64:
		return FIELD_INT64S;
	case LTH_DTYPE_U32:
	case LTH_DTYPE_U64:
		return FIELD_UINT64S;
	default: /* smaller integers, bool, small floats as their bits, sub-byte types by packed bytes */
		return FIELD_INT32S;
	}
}

/* Bytes that one number of the typed field becomes: complex elements are two numbers, sub-byte ones share a number. */
static unsigned number_bytes(enum lth_dtype dtype)
{
	unsigned bits = lth_dtype_bits(dtype);
	bits = lth_dtype_class(dtype) == LTH_CLASS_COMPLEX ? bits / 2 : bits;
	return bits < 8 ? 1 : bits / 8;
}

static void read_body(struct lth_pb_reader *r, enum lth_dtype dtype, struct body *b)
{
	enum lth_pb_wire element;
	enum field typed = field_of(dtype, &element);
	b->bytes = number_bytes(dtype);
	while (!r->failed && r->at < r->end) {
		uint64_t tag = lth_pb_varint(r);
		enum lth_pb_wire wire = (enum lth_pb_wire)(tag & 7);
		if (dtype == LTH_DTYPE_STRING && tag >> 3 == FIELD_STRINGS && wire == LTH_PB_BYTES) {
			take_string(b, r);
		} else if (dtype != LTH_DTYPE_STRING && tag >> 3 == FIELD_RAW && wire == LTH_PB_BYTES) {
			struct lth_pb_reader raw = lth_pb_bytes(r);
			lth_buf_append(&b->data, raw.at, (size_t)(raw.end - raw.at));
		} else if (dtype != LTH_DTYPE_STRING && tag >> 3 == typed) {
			lth_pb_numbers(r, wire, element, take_element, b);
		} else {
			lth_pb_skip(r, wire);
		}
	}
	if (!r->failed && (b->data.failed || b->strings.failed))
		lth_pb_fail(r, LTH_OUT_OF_MEMORY, NULL, "no memory for its elements");
}

/* One block: the elements, and behind strings their bytes. */
static void finish_data(struct lth_pb_reader *r, struct body *b, struct lth_host_tensor *tensor)
{
	char *block = malloc(b->data.size + b->strings.size + 1);
	if (!block) {
		lth_pb_fail(r, LTH_OUT_OF_MEMORY, NULL, "no memory for its elements");
		return;
	}
	tensor->data = block;
	if (tensor->dtype != LTH_DTYPE_STRING) {
		if (b->data.size)
			memcpy(block, b->data.data, b->data.size);
		return;
	}
	char *texts = block + b->data.size;
	if (b->strings.size)
		memcpy(texts, b->strings.data, b->strings.size);
	for (size_t at = 0; at < b->data.size; at += sizeof(struct lth_string)) {
		uint64_t parts[2];
		memcpy(parts, b->data.data + at, sizeof(parts));
		struct lth_string string = {texts + parts[0], (size_t)parts[1]};
		memcpy(block + at, &string, sizeof(string));
	}
}

enum lth_code lth_pb_read(const void *bytes, size_t size, struct lth_host_tensor *out_tensor, struct lth_diag *diag)
{
	struct lth_host_tensor tensor = {0};
	struct header header = {.tensor = &tensor};
	struct body body = {{0}, {0}, 0};
	struct lth_pb_reader r = {.message = "TensorProto", .at = bytes, .start = bytes, .diag = diag};
	int64_t count = 0;
	r.end = r.at + size;
	read_header(&r, &header);
	if (!r.failed) {
		tensor.dtype = lth_dtype_by_onnx((int)header.type);
		r.at = r.start;
		read_body(&r, tensor.dtype, &body);
	}
	if (!r.failed && (!lth_host_count(tensor.rank, tensor.dims, &count) ||
			  !lth_dtype_bytes(tensor.dtype, count, &tensor.bytes) ||
			  (uint64_t)tensor.bytes != body.data.size)) {
		char expected[64], found[64];
		snprintf(expected, sizeof(expected), "%lld bytes of %s for its dims", (long long)tensor.bytes,
			 lth_dtype_text(tensor.dtype));
		snprintf(found, sizeof(found), "%zu", body.data.size);
		lth_pb_fail(&r, LTH_BAD_INPUT, expected, found);
	}
	if (!r.failed)
		finish_data(&r, &body, &tensor);
	lth_buf_free(&body.data);
	lth_buf_free(&body.strings);
	if (r.failed) {
		lth_host_tensor_free(&tensor);
		return diag->code;
	}
	*out_tensor = tensor;
	return LTH_OK;
}

enum lth_code lth_pb_write(const struct lth_host_tensor *tensor, struct lth_buf *out, struct lth_diag *diag)
{
	(void)diag; /* every type has a place in the format */
	for (uint32_t axis = 0; axis < tensor->rank; axis++)
		lth_pb_put_number(out, FIELD_DIMS, (uint64_t)tensor->dims[axis]);
	lth_pb_put_number(out, FIELD_DATA_TYPE, (uint64_t)lth_dtype_onnx(tensor->dtype));
	if (tensor->dtype == LTH_DTYPE_STRING) {
		const struct lth_string *strings = tensor->data;
		for (int64_t i = 0; i < tensor->bytes / (int64_t)sizeof(*strings); i++)
			lth_pb_put_bytes(out, FIELD_STRINGS, strings[i].data, strings[i].size);
	}
	if (tensor->name)
		lth_pb_put_bytes(out, FIELD_NAME, tensor->name, strlen(tensor->name));
	if (tensor->dtype != LTH_DTYPE_STRING)
		lth_pb_put_bytes(out, FIELD_RAW, tensor->data, (size_t)tensor->bytes);
	return LTH_OK;
}
