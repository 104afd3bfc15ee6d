/* Values in memory and as files. See value.h; value_pb.c has the format. */
#include "runtime/exe/value.h"

#include "runtime/base/io.h"

#include <stdlib.h>
#include <string.h>

void lth_value_free(struct lathe_value *value)
{
	for (uint64_t i = 0; i < value->count; i++)
		lth_value_free(&value->elements[i]);
	free(value->elements);
	if (value->kind == LATHE_TENSOR)
		free(value->tensor.data);
	*value = (struct lathe_value){0};
}

struct lathe_tensor lth_tensor_of_host(const struct lth_host_tensor *tensor)
{
	struct lathe_tensor out = {.dtype = lth_dtype_onnx(tensor->dtype),
				   .rank = tensor->rank,
				   .data = tensor->data,
				   .bytes = (uint64_t)tensor->bytes};
	memcpy(out.dims, tensor->dims, sizeof(tensor->dims));
	return out;
}

struct lth_host_tensor lth_tensor_to_host(const struct lathe_tensor *tensor)
{
	struct lth_host_tensor out = {
		.dtype = lth_dtype_by_onnx(tensor->dtype), .rank = tensor->rank, .data = tensor->data};
	int64_t count;
	memcpy(out.dims, tensor->dims, sizeof(out.dims));
	if (out.dtype == LTH_NUM_DTYPES || !lth_host_count(out.rank, out.dims, &count) ||
	    !lth_dtype_bytes(out.dtype, count, &out.bytes))
		out.bytes = 0;
	return out;
}

static enum lth_code parse_type(const char *path, const char *text, struct lth_value_type *out, struct lth_diag *diag)
{
	return lth_value_type_parse(text, out)
		       ? LTH_OK
		       : lth_diag_fail(diag, LTH_BAD_EXECUTABLE, path, "a type", NULL, "'%s'", text);
}

enum lth_code lth_value_read_file(const char *path, const char *text, struct lathe_value *out, struct lth_diag *diag)
{
	struct lth_value_type type;
	char *bytes;
	size_t size;
	enum lth_code code = parse_type(path, text, &type, diag);
	if (code == LTH_OK)
		code = lth_read_file(path, 0, &bytes, &size, diag);
	if (code != LTH_OK)
		return code;
	code = lth_value_read(bytes, size, &type, out, diag);
	if (code != LTH_OK)
		lth_diag_within(diag, "%s", path);
	free(bytes);
	return code;
}

enum lth_code lth_value_write_file(const char *path, const char *name, const char *text,
				   const struct lathe_value *value, struct lth_diag *diag)
{
	struct lth_value_type type;
	struct lth_buf out = {0};
	enum lth_code code = parse_type(path, text, &type, diag);
	if (code == LTH_OK)
		code = lth_value_write(value, &type, name, &out, diag);
	if (code == LTH_OK && !lth_buf_ok(&out))
		code = lth_diag_fail(diag, LTH_OUT_OF_MEMORY, path, NULL, NULL, "no memory to write it");
	if (code == LTH_OK)
		code = lth_write_file(path, out.data ? out.data : "", out.size, false, diag);
	lth_buf_free(&out);
	return code;
}

void lth_value_print(const struct lathe_value *value, struct lth_buf *out)
{
	static const char *const words[] = {"", "seq", "optional", "map"};
	if (value->kind == LATHE_TENSOR) {
		lth_buf_printf(out, "%s[", lth_dtype_text(lth_dtype_by_onnx(value->tensor.dtype)));
		for (uint32_t axis = 0; axis < value->tensor.rank; axis++)
			lth_buf_printf(out, "%s%lld", axis ? ", " : "", (long long)value->tensor.dims[axis]);
		lth_buf_putc(out, ']');
		return;
	}
	lth_buf_printf(out, "%s(", words[value->kind]);
	for (uint64_t i = 0; i < value->count && i < 8; i++) {
		lth_buf_puts(out, i ? ", " : "");
		lth_value_print(&value->elements[i], out);
	}
	if (value->count > 8)
		lth_buf_printf(out, ", ... %llu in all", (unsigned long long)value->count);
	lth_buf_putc(out, ')');
}
