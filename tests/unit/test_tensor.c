/* Unit tests of runtime/tensor: .npy and TensorProto, there and back, and what they refuse. */
#include "runtime/tensor/host.h"
#include "runtime/tensor/element.h"
#include "tests/unit/run_suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void append_varint(struct lth_buf *out, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		lth_buf_u8(out, (uint8_t)(value | 0x80));
	lth_buf_u8(out, (uint8_t)value);
}

static void append_field(struct lth_buf *out, unsigned field, const void *bytes, size_t size)
{
	append_varint(out, field << 3 | 2);
	append_varint(out, size);
	lth_buf_append(out, bytes, size);
}

static struct lth_host_tensor read_pb(struct lth_buf *bytes)
{
	struct lth_host_tensor tensor = {0};
	struct lth_diag diag = {0};
	enum lth_code code = lth_pb_read(bytes->data, bytes->size, &tensor, &diag);
	ck_assert_msg(code == LTH_OK, "%s: %s", diag.place, diag.found);
	lth_buf_free(bytes);
	return tensor;
}

static void same(const struct lth_host_tensor *a, const struct lth_host_tensor *b)
{
	ck_assert_int_eq(a->dtype, b->dtype);
	ck_assert_uint_eq(a->rank, b->rank);
	ck_assert_int_eq(memcmp(a->dims, b->dims, a->rank * sizeof(a->dims[0])), 0);
	ck_assert_int_eq(a->bytes, b->bytes);
	ck_assert_int_eq(memcmp(a->data, b->data, (size_t)a->bytes), 0);
}

/* Every type of files but strings, rank 0 to 3, empty too, through both formats. */
START_TEST(all_types_round_trip)
{
	static const int64_t shapes[][4] = {{0}, {1, 5}, {2, 3, 0}, {3, 2, 3, 4}}; /* rank, dims */
	for (int type = 0; type < LTH_NUM_DTYPES; type++)
		for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
			if (type == LTH_DTYPE_STRING || type == LTH_DTYPE_OBJECT)
				continue;
			struct lth_host_tensor t = {.dtype = (enum lth_dtype)type}, back;
			t.rank = (uint32_t)shapes[s][0];
			struct lth_diag diag = {0};
			struct lth_buf bytes = {0};
			int64_t count;
			memcpy(t.dims, shapes[s] + 1, 3 * sizeof(int64_t));
			ck_assert(lth_host_count(t.rank, t.dims, &count));
			ck_assert(lth_dtype_bytes(t.dtype, count, &t.bytes));
			t.data = malloc((size_t)t.bytes + 1);
			for (int64_t i = 0; i < t.bytes; i++)
				((unsigned char *)t.data)[i] = (unsigned char)(i * 7 + type);
			ck_assert_int_eq(lth_pb_write(&t, &bytes, &diag), LTH_OK);
			back = read_pb(&bytes);
			same(&t, &back);
			lth_host_tensor_free(&back);
			if (lth_npy_write(&t, &bytes, &diag) == LTH_OK) {
				ck_assert_int_eq(lth_npy_read(bytes.data, bytes.size, &back, &diag), LTH_OK);
				same(&t, &back);
				ck_assert_uint_eq((bytes.size - (size_t)t.bytes) % 64, 0);
				lth_host_tensor_free(&back);
				lth_buf_free(&bytes);
			} else {
				ck_assert_int_eq(diag.code, LTH_UNSUPPORTED);
			}
			lth_host_tensor_free(&t);
		}
}
END_TEST

/* A tensor of 2 numbers in a typed field: `packed` bytes, and the same as single fields. */
static void check_typed(enum lth_dtype dtype, unsigned field, const void *packed, size_t size, unsigned wire,
			const void *expected, int64_t count)
{
	for (int single = 0; single < 2; single++) {
		struct lth_buf out = {0};
		lth_buf_append(&out, "\x0a\x01", 2); /* dims, packed */
		append_varint(&out, (uint64_t)count);
		if (!single) {
			append_field(&out, field, packed, size);
		} else {
			const unsigned char *at = packed, *end = at + size;
			while (at < end) {
				size_t length = wire == 5 ? 4 : 8;
				if (wire == 0)
					for (length = 1; at[length - 1] & 0x80;)
						length++;
				append_varint(&out, field << 3 | wire);
				lth_buf_append(&out, at, length);
				at += length;
			}
		}
		append_varint(&out, 2 << 3); /* the type comes last */
		append_varint(&out, (uint64_t)lth_dtype_onnx(dtype));
		struct lth_host_tensor t = read_pb(&out);
		ck_assert_int_eq(t.dtype, dtype);
		ck_assert_int_eq(t.dims[0], count);
		ck_assert_int_eq(memcmp(t.data, expected, (size_t)t.bytes), 0);
		lth_host_tensor_free(&t);
	}
}

START_TEST(typed_fields)
{
	const float f[2] = {1.5f, -2};
	const double d[2] = {1.5, -2};
	const int64_t i64[2] = {300, -1};
	const int32_t i32[2] = {300, -1};
	const int8_t i8[2] = {5, -1};
	const uint16_t half[2] = {0x3c00, 0xc000};
	const unsigned char minus_one[] = "\xac\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"; /* 300, -1 */
	check_typed(LTH_DTYPE_F32, 4, f, sizeof(f), 5, f, 2);
	check_typed(LTH_DTYPE_C64, 4, f, sizeof(f), 5, f, 1);
	check_typed(LTH_DTYPE_F64, 10, d, sizeof(d), 1, d, 2);
	check_typed(LTH_DTYPE_C128, 10, d, sizeof(d), 1, d, 1);
	check_typed(LTH_DTYPE_I64, 7, minus_one, 12, 0, i64, 2);
	check_typed(LTH_DTYPE_I32, 5, minus_one, 12, 0, i32, 2);
	check_typed(LTH_DTYPE_I8, 5, "\x05\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, 0, i8, 2);
	check_typed(LTH_DTYPE_BOOL, 5, "\x01\x00", 2, 0, "\x01\x00", 2);
	check_typed(LTH_DTYPE_F16, 5, "\x80\x78\x80\x80\x03", 5, 0, half, 2);
	check_typed(LTH_DTYPE_U64, 11, "\xac\x02\x07", 3, 0, (const uint64_t[]){300, 7}, 2);
	check_typed(LTH_DTYPE_U32, 11, "\xac\x02\x07", 3, 0, (const uint32_t[]){300, 7}, 2);
	check_typed(LTH_DTYPE_I4, 5, "\x21\x03", 2, 0, "\x21\x03", 3); /* two elements a number */
}
END_TEST

START_TEST(strings_and_names)
{
	struct lth_buf out = {0};
	struct lth_diag diag = {0};
	lth_buf_append(&out, "\x08\x02\x10\x08", 4);
	append_field(&out, 6, "abc", 3);
	append_field(&out, 6, "", 0);
	append_field(&out, 8, "words", 5);
	struct lth_host_tensor t = read_pb(&out), back;
	const struct lth_string *s = t.data;
	ck_assert_str_eq(t.name, "words");
	ck_assert(s[0].size == 3 && memcmp(s[0].data, "abc", 3) == 0 && s[1].size == 0);
	ck_assert_int_eq(lth_npy_write(&t, &out, &diag), LTH_UNSUPPORTED);
	ck_assert_int_eq(lth_pb_write(&t, &out, &diag), LTH_OK);
	back = read_pb(&out);
	ck_assert(((struct lth_string *)back.data)[0].size == 3);
	ck_assert_str_eq(back.name, "words");
	lth_host_tensor_free(&back);
	lth_host_tensor_free(&t);
}
END_TEST

static void pb_fails(const char *bytes, size_t size, enum lth_code code, const char *text)
{
	struct lth_host_tensor t = {0};
	struct lth_diag diag = {0};
	ck_assert_int_eq(lth_pb_read(bytes, size, &t, &diag), code);
	ck_assert_msg(strstr(diag.found, text) || strstr(diag.expected, text), "found '%s', expected '%s'", diag.found,
		      diag.expected);
	ck_assert_ptr_null(t.data);
}

START_TEST(pb_refuses)
{
	pb_fails("", 0, LTH_BAD_INPUT, "an element type of ONNX");
	pb_fails("\x10\x63", 2, LTH_BAD_INPUT, "an element type of ONNX");
	pb_fails("\x08\x02\x10\x01\x4a\x04" "1234", 10, LTH_BAD_INPUT, "8 bytes of f32");
	pb_fails("\x08\x02\x10\x01\x4a\x09" "1234", 10, LTH_BAD_INPUT, "end inside a field");
	pb_fails("\x08\x02\x10\x01\x70\x01", 6, LTH_UNSUPPORTED, "external data");
	pb_fails("\x10\x01\x1a\x00", 4, LTH_UNSUPPORTED, "segment");
	pb_fails("\x10\x01\x7b", 3, LTH_BAD_INPUT, "no known kind");
	pb_fails("\x10\x80", 2, LTH_BAD_INPUT, "end inside a number");
	pb_fails("\x10\x01\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13, LTH_BAD_INPUT, "bytes of f32");
	pb_fails("\x08\x01\x08\x01\x08\x01\x08\x01\x08\x01\x08\x01\x08\x01\x08\x01\x08\x01\x08\x01\x08\x01\x08\x01"
		 "\x08\x01\x08\x01\x08\x01\x08\x01\x08\x01\x10\x01", 36, LTH_BAD_INPUT, "at most 16");
}
END_TEST

static void npy_fails(const char *header, size_t data, const char *text)
{
	struct lth_buf out = {0};
	struct lth_host_tensor t = {0};
	struct lth_diag diag = {0};
	lth_buf_append(&out, "\x93NUMPY\x02\x00", 8);
	lth_buf_u32(&out, (uint32_t)strlen(header));
	lth_buf_puts(&out, header);
	for (size_t i = 0; i < data; i++)
		lth_buf_u8(&out, 0);
	ck_assert_int_eq(lth_npy_read(out.data, out.size, &t, &diag), LTH_BAD_INPUT);
	ck_assert_msg(strstr(diag.found, text) || strstr(diag.expected, text), "found '%s', expected '%s'", diag.found,
		      diag.expected);
	lth_buf_free(&out);
}

START_TEST(npy_refuses)
{
	npy_fails("{'descr': '<U5', 'fortran_order': False, 'shape': (2,), }", 40, "strings");
	npy_fails("{'descr': '>q4', 'fortran_order': False, 'shape': (2,), }", 8, ">q4");
	npy_fails("{'descr': '<f4', 'fortran_order': None, 'shape': (2,), }", 8, "another fortran_order");
	npy_fails("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 9, "as many bytes");
	npy_fails("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", 9, "a dimension");
	npy_fails("{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999999999999,), }", 9, "63 bits");
	npy_fails("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", 9, "as many bytes");
	npy_fails("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", 8, "structured");
	npy_fails("{'descr': '<f4', 'descr': '<f4'}", 8, "another key");
	npy_fails("{'descr': '<f4'}", 8, "fewer keys");
	npy_fails("{", 0, "another key");
	npy_fails("", 0, "a header");
}
END_TEST

/* [[1, 2, 3], [4, 5, 6]] and [[1-2i], [3+4i]] as NumPy stores them with order='F' and big-endian types. */
START_TEST(npy_reads_either_order_of_axes_and_bytes)
{
	static const struct {
		const char *header, *data;
		size_t size;
		const char *values;
	} files[] = {
		{"{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", "\1\4\2\5\3\6", 6, "[1,2,3,4,5,6]"},
		{"{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }", "\0\1\0\4\0\2\0\5\0\3\0\6", 12,
		 "[1,2,3,4,5,6]"},
		{"{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", "\x3f\x80\0\0\xc0\0\0\0", 8, "[1,-2]"},
		{"{'descr': '>c8', 'fortran_order': False, 'shape': (1,), }", "\x3f\x80\0\0\xc0\0\0\0", 8,
		 "[\"1-2i\"]"},
		{"{'descr': '<f8', 'fortran_order': True, 'shape': (0, 4611686018427387904, 4), }", "", 0, "[]"},
	};
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct lth_buf out = {0}, json = {0};
		struct lth_host_tensor t = {0};
		struct lth_diag diag = {0};
		lth_buf_append(&out, "\x93NUMPY\x02\x00", 8);
		lth_buf_u32(&out, (uint32_t)strlen(files[i].header));
		lth_buf_puts(&out, files[i].header);
		lth_buf_append(&out, files[i].data, files[i].size);
		ck_assert_int_eq(lth_npy_read(out.data, out.size, &t, &diag), LTH_OK);
		lth_host_json_members(&t, &json);
		ck_assert_msg(strstr(lth_buf_text(&json), files[i].values), "%s", lth_buf_text(&json));
		lth_host_tensor_free(&t);
		lth_buf_free(&out);
		lth_buf_free(&json);
	}
}
END_TEST

START_TEST(json_values_read_back_exactly)
{
	float data[5] = {0.1f, 16777216.0f, 1.0f / 3, 1e-45f, 3.4028235e38f};
	const struct lth_host_tensor t = {.dtype = LTH_DTYPE_F32, .rank = 1, .dims = {5}, .data = data, .bytes = 20};
	struct lth_buf json = {0};
	lth_host_json_members(&t, &json);
	const char *values = strstr(lth_buf_text(&json), "\"values\":[");
	ck_assert_ptr_nonnull(values);
	values += strlen("\"values\":[");
	ck_assert_int_eq(strncmp(values, "0.1,", 4), 0);
	for (int i = 0; i < 5; i++) {
		char *end;
		ck_assert(strtof(values, &end) == data[i]);
		values = end + 1;
	}
	lth_buf_free(&json);
}
END_TEST

START_TEST(npy_reads_version_two_and_any_order_of_keys)
{
	const char *header = "{'shape': (1, 2), 'fortran_order': False, 'descr': '<i2'}   \n";
	struct lth_buf out = {0};
	struct lth_host_tensor t = {0};
	struct lth_diag diag = {0};
	lth_buf_append(&out, "\x93NUMPY\x02\x00", 8);
	lth_buf_u32(&out, (uint32_t)strlen(header));
	lth_buf_puts(&out, header);
	lth_buf_append(&out, "\x01\x00\xff\xff", 4);
	ck_assert_int_eq(lth_npy_read(out.data, out.size, &t, &diag), LTH_OK);
	ck_assert(t.rank == 2 && t.dims[1] == 2 && ((int16_t *)t.data)[1] == -1);
	lth_host_tensor_free(&t);
	lth_buf_free(&out);
}
END_TEST

START_TEST(files_are_known_by_their_first_bytes)
{
	float data[2] = {1, 2};
	struct lth_host_tensor t = {.dtype = LTH_DTYPE_F32, .rank = 1, .dims = {2}, .data = data, .bytes = 8}, back;
	struct lth_diag diag = {0};
	char folder[] = "test-tensor-XXXXXX", path[64];
	ck_assert_ptr_nonnull(mkdtemp(folder));
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/x.%s", folder, i ? "npy" : "pb");
		ck_assert_int_eq(lth_host_write_file(path, &t, &diag), LTH_OK);
		ck_assert_int_eq(lth_host_read_file(path, &back, &diag), LTH_OK);
		same(&t, &back);
		lth_host_tensor_free(&back);
		unlink(path);
	}
	ck_assert_int_eq(lth_host_read_file(path, &back, &diag), LTH_NOT_FOUND);
	rmdir(folder);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("tensor");
	TCase *tests = tcase_create("tensor");
	tcase_add_test(tests, all_types_round_trip);
	tcase_add_test(tests, typed_fields);
	tcase_add_test(tests, strings_and_names);
	tcase_add_test(tests, pb_refuses);
	tcase_add_test(tests, npy_refuses);
	tcase_add_test(tests, npy_reads_version_two_and_any_order_of_keys);
	tcase_add_test(tests, npy_reads_either_order_of_axes_and_bytes);
	tcase_add_test(tests, json_values_read_back_exactly);
	tcase_add_test(tests, files_are_known_by_their_first_bytes);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
