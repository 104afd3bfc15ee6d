/* NumPy's .npy (numpy.lib.format): magic, version, the length of a header, the header, the elements. The header is a
 * Python dict of three known keys, read by a small parser that takes what NumPy writes and refuses the rest. Elements
 * of either byte order and either order of axes are read; little-endian and row-major is what is written. */
#include "runtime/tensor/host.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *descr;
	enum lth_dtype dtype;
} types[] = {
	{"|b1", LTH_DTYPE_BOOL}, {"|i1", LTH_DTYPE_I8},  {"|u1", LTH_DTYPE_U8},  {"<i2", LTH_DTYPE_I16},
	{"<u2", LTH_DTYPE_U16},  {"<i4", LTH_DTYPE_I32}, {"<u4", LTH_DTYPE_U32}, {"<i8", LTH_DTYPE_I64},
	{"<u8", LTH_DTYPE_U64},  {"<f2", LTH_DTYPE_F16}, {"<f4", LTH_DTYPE_F32}, {"<f8", LTH_DTYPE_F64},
	{"<c8", LTH_DTYPE_C64},  {"<c16", LTH_DTYPE_C128},
};
enum { NUM_TYPES = sizeof(types) / sizeof(types[0]) };

struct reader {
	const char *at, *end, *start;
	struct lth_diag *diag;
	bool big_endian, column_major;
};

static enum lth_code fail(struct reader *r, const char *expected, const char *format, ...) LTH_PRINTF(3, 4);

static enum lth_code fail(struct reader *r, const char *expected, const char *format, ...)
{
	char found[256], place[48];
	va_list args;
	va_start(args, format);
	vsnprintf(found, sizeof(found), format, args);
	va_end(args);
	snprintf(place, sizeof(place), "byte %zu", (size_t)(r->at - r->start));
	return lth_diag_fail(r->diag, LTH_BAD_INPUT, place, expected, NULL, "%s", found);
}

static void skip_blanks(struct reader *r)
{
	while (r->at < r->end && (*r->at == ' ' || *r->at == '\n'))
		r->at++;
}

static bool take(struct reader *r, const char *text)
{
	size_t length = strlen(text);
	skip_blanks(r);
	if ((size_t)(r->end - r->at) < length || memcmp(r->at, text, length) != 0)
		return false;
	r->at += length;
	return true;
}

static enum lth_code read_descr(struct reader *r, struct lth_host_tensor *t)
{
	char descr[16];
	size_t length = 0;
	if (!take(r, "'"))
		return fail(r, "a type as text", "a structured type");
	while (r->at < r->end && *r->at != '\'' && length < sizeof(descr) - 1)
		descr[length++] = *r->at++;
	descr[length] = 0;
	if (!take(r, "'"))
		return fail(r, "a type as text", "'%s...'", descr);
	r->big_endian = descr[0] == '>';
	for (int i = 0; i < NUM_TYPES; i++)
		if (strcmp(types[i].descr, descr) == 0 ||
		    (r->big_endian && strcmp(types[i].descr + 1, descr + 1) == 0)) {
			t->dtype = types[i].dtype;
			return LTH_OK;
		}
	if (strpbrk(descr, "USO"))
		return fail(r, "numbers", "strings (%s); store them as a TensorProto (.pb)", descr);
	return fail(r, "bool, an integer, a float or a complex type", "type %s", descr);
}

static enum lth_code read_shape(struct reader *r, struct lth_host_tensor *t)
{
	if (!take(r, "("))
		return fail(r, "a tuple", "another shape");
	while (!take(r, ")")) {
		int64_t dim = 0;
		const char *first = r->at;
		for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++)
			if (__builtin_mul_overflow(dim, 10, &dim) || __builtin_add_overflow(dim, *r->at - '0', &dim))
				return fail(r, "dimensions of 63 bits", "a larger one");
		if (r->at == first)
			return fail(r, "a dimension", "something else");
		if (t->rank == LTH_HOST_MAX_RANK)
			return fail(r, "at most 16 dimensions", "more");
		t->dims[t->rank++] = dim;
		if (!take(r, ",")) {
			if (!take(r, ")"))
				return fail(r, "',' or ')'", "something else");
			break;
		}
	}
	return LTH_OK;
}

static enum lth_code read_order(struct reader *r)
{
	r->column_major = take(r, "True");
	return r->column_major || take(r, "False") ? LTH_OK : fail(r, "True or False", "another fortran_order");
}

/* {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } in any order. */
static enum lth_code read_header(struct reader *r, struct lth_host_tensor *t)
{
	bool descr = false, order = false, shape = false;
	enum lth_code code = LTH_OK;
	if (!take(r, "{"))
		return fail(r, "a header", "something else");
	while (!take(r, "}")) {
		if (!descr && take(r, "'descr':")) {
			descr = true;
			code = read_descr(r, t);
		} else if (!order && take(r, "'fortran_order':")) {
			order = true;
			code = read_order(r);
		} else if (!shape && take(r, "'shape':")) {
			shape = true;
			code = read_shape(r, t);
		} else {
			code = fail(r, "descr, fortran_order and shape, once each", "another key");
		}
		if (code != LTH_OK)
			return code;
		take(r, ",");
	}
	return descr && order && shape ? LTH_OK : fail(r, "descr, fortran_order and shape", "fewer keys");
}

/* From the order in which the first axis is the fastest to that in which the last one is. */
static void to_row_major(const struct lth_host_tensor *t, const char *from, size_t width)
{
	int64_t index[LTH_HOST_MAX_RANK] = {0}, steps[LTH_HOST_MAX_RANK], step = (int64_t)width, place = 0;
	if (!t->bytes)
		return;
	for (uint32_t axis = 0; axis < t->rank; axis++) {
		steps[axis] = step;
		step *= t->dims[axis];
	}
	for (char *to = t->data, *end = to + t->bytes; to < end; to += width) {
		memcpy(to, from + place, width);
		for (uint32_t axis = t->rank; axis-- > 0;) {
			place += steps[axis];
			if (++index[axis] < t->dims[axis])
				break;
			place -= steps[axis] * t->dims[axis];
			index[axis] = 0;
		}
	}
}

/* The elements as they lie in the file to a tensor's own; a complex number is two words. */
static void place_elements(const struct reader *r, const struct lth_host_tensor *t, const char *from)
{
	size_t width = lth_dtype_bits(t->dtype) / 8;
	size_t word = lth_dtype_class(t->dtype) == LTH_CLASS_COMPLEX ? width / 2 : width;
	if (r->column_major)
		to_row_major(t, from, width);
	else if (t->bytes)
		memcpy(t->data, from, (size_t)t->bytes);
	for (char *at = t->data, *end = at + t->bytes; r->big_endian && at < end; at += word)
		for (size_t low = 0, high = word - 1; low < high; low++, high--) {
			char byte = at[low];
			at[low] = at[high];
			at[high] = byte;
		}
}

enum lth_code lth_npy_read(const void *bytes, size_t size, struct lth_host_tensor *out_tensor, struct lth_diag *diag)
{
	struct reader r = {.at = bytes, .start = bytes, .diag = diag};
	struct lth_host_tensor t = {0};
	const unsigned char *head = bytes;
	int64_t count;
	r.end = r.at + size;
	if (size < 12 || memcmp(bytes, "\x93NUMPY", 6) != 0 || head[6] < 1 || head[6] > 3)
		return fail(&r, "a .npy file of format 1 to 3", "something else");
	size_t header = (size_t)head[8] | (size_t)head[9] << 8, begin = 10;
	if (head[6] > 1) {
		header |= (size_t)head[10] << 16 | (size_t)head[11] << 24;
		begin = 12;
	}
	r.at += begin;
	if (header > size - begin)
		return fail(&r, NULL, "a header of %zu bytes in a file of %zu", header, size);
	const char *data = r.at + header;
	r.end = data;
	enum lth_code code = read_header(&r, &t);
	if (code != LTH_OK)
		return code;
	size_t left = size - begin - header;
	if (!lth_host_count(t.rank, t.dims, &count) || !lth_dtype_bytes(t.dtype, count, &t.bytes) ||
	    (uint64_t)t.bytes != left)
		return fail(&r, "as many bytes as its shape needs", "%zu bytes of data", left);
	t.data = malloc(left ? left : 1);
	if (!t.data)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, ".npy", NULL, NULL, "%zu bytes", left);
	place_elements(&r, &t, data);
	*out_tensor = t;
	return LTH_OK;
}

enum lth_code lth_npy_write(const struct lth_host_tensor *tensor, struct lth_buf *out, struct lth_diag *diag)
{
	const char *descr = NULL;
	for (int i = 0; i < NUM_TYPES; i++)
		if (types[i].dtype == tensor->dtype)
			descr = types[i].descr;
	if (!descr)
		return lth_diag_fail(diag, LTH_UNSUPPORTED, ".npy", "a type that NumPy has", "write it as .pb", "%s",
				     lth_dtype_text(tensor->dtype));
	struct lth_buf header = {0};
	lth_buf_printf(&header, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
	for (uint32_t axis = 0; axis < tensor->rank; axis++)
		lth_buf_printf(&header, "%s%lld", axis ? ", " : "", (long long)tensor->dims[axis]);
	lth_buf_puts(&header, tensor->rank == 1 ? ",), }" : "), }");
	while ((10 + header.size + 1) % 64 != 0 && lth_buf_ok(&header)) /* data begins at a multiple of 64 */
		lth_buf_putc(&header, ' ');
	lth_buf_putc(&header, '\n');
	lth_buf_append(out, "\x93NUMPY\x01\x00", 8);
	lth_buf_u8(out, (uint8_t)(header.size & 0xFF));
	lth_buf_u8(out, (uint8_t)(header.size >> 8));
	lth_buf_append(out, header.data, header.size);
	lth_buf_append(out, tensor->data, (size_t)tensor->bytes);
	out->failed = out->failed || header.failed;
	lth_buf_free(&header);
	return LTH_OK;
}
