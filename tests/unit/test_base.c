/* Unit tests of runtime/base. */
#include "runtime/base/arena.h"
#include "runtime/base/buf.h"
#include "runtime/base/checked.h"
#include "runtime/base/diag.h"
#include "runtime/base/hash.h"
#include "runtime/base/id_table.h"
#include "runtime/base/io.h"
#include "runtime/base/machine.h"
#include "runtime/base/sha256.h"
#include "tests/unit/run_suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

START_TEST(codes_have_distinct_slugs)
{
	for (int a = 0; a < LTH_NUM_CODES; a++)
		ck_assert_int_eq((int)lth_code_by_slug(lth_code_slug((enum lth_code)a)), a);
	ck_assert_int_eq((int)lth_code_by_slug("no-such"), LTH_NUM_CODES);
	ck_assert_int_eq(lth_code_http(LTH_UNSUPPORTED_OP), 422);
}
END_TEST

START_TEST(first_error_wins_and_long_text_is_cut)
{
	struct lth_diag diag = {0};
	char line[4096], text[4000];
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	ck_assert_int_eq((int)lth_diag_fail(&diag, LTH_INVALID_JSON, "1:2", "a", "b", "%s", text), LTH_INVALID_JSON);
	lth_diag_fail(&diag, LTH_INTERNAL, "later", NULL, NULL, "y");
	ck_assert_int_eq((int)diag.code, LTH_INVALID_JSON);
	ck_assert_uint_eq(strlen(diag.found), sizeof(diag.found) - 1);
	ck_assert_str_eq(diag.found + sizeof(diag.found) - 4, "...");
	lth_diag_within(&diag, "node '%s'", "n");
	ck_assert_str_eq(diag.place, "node 'n': 1:2");
	ck_assert_ptr_nonnull(strstr(lth_diag_line(&diag, line, sizeof(line)), "expected a; b"));
}
END_TEST

START_TEST(nearest_word)
{
	const char *const names[] = {"FoldConstant", "MemoryPlan", "FuseOps"};
	ck_assert_str_eq(lth_nearest("memoryplan", names, 3), "MemoryPlan");
	ck_assert_str_eq(lth_nearest("FuseOp", names, 3), "FuseOps");
	ck_assert_ptr_null(lth_nearest("zzz", names, 3));
}
END_TEST

START_TEST(arena_cap_is_sticky)
{
	struct lth_arena *arena = lth_arena_create(1 << 20);
	ck_assert_ptr_nonnull(lth_arena_alloc(arena, 1000));
	ck_assert_ptr_null(lth_arena_alloc(arena, 2 << 20));
	ck_assert_ptr_null(lth_arena_alloc(arena, 1));
	ck_assert(!lth_arena_ok(arena));
	lth_arena_destroy(&arena);
	ck_assert_ptr_null(arena);
	lth_arena_destroy(&arena);
}
END_TEST

START_TEST(arena_grow_keeps_content)
{
	struct lth_arena *arena = lth_arena_create(0);
	uint32_t capacity = 0, *numbers = NULL;
	ck_assert_ptr_nonnull(lth_arena_grow(arena, NULL, &capacity, 0, sizeof(*numbers)));
	capacity = 0;
	for (uint32_t i = 0; i < 1000; i++) {
		numbers = lth_arena_grow(arena, numbers, &capacity, i + 1, sizeof(*numbers));
		numbers[i] = i;
	}
	for (uint32_t i = 0; i < 1000; i++)
		ck_assert_uint_eq(numbers[i], i);
	ck_assert_ptr_null(lth_arena_array(arena, SIZE_MAX, 16));
	lth_arena_destroy(&arena);
}
END_TEST

START_TEST(buf_numbers_and_quotes)
{
	struct lth_buf buf = {0};
	lth_buf_double(&buf, 0.1);
	lth_buf_putc(&buf, ' ');
	lth_buf_double(&buf, 1.0 / 3);
	lth_buf_quote(&buf, "a\"\n\x01");
	lth_buf_u32(&buf, 0x04030201);
	ck_assert(lth_buf_ok(&buf));
	ck_assert_int_eq(memcmp(lth_buf_text(&buf), "0.1 0.3333333333333333\"a\\\"\\n\\u0001\"\1\2\3\4", buf.size), 0);
	lth_buf_free(&buf);
}
END_TEST

START_TEST(buf_whole_numbers)
{
	static const struct {
		double value;
		const char *text;
	} doubles[] = {{0, "0"},
		       {-0.0, "-0"},
		       {-7, "-7"},
		       {100000, "100000"},
		       {999999999999999, "999999999999999"},
		       {1e15, "1e+15"},
		       {-1e15, "-1e+15"},
		       {1e22, "1e+22"},
		       {0.5, "0.5"},
		       {INFINITY, "inf"}};
	static const int64_t ints[] = {0, 9, 10, -1, INT64_MAX, INT64_MIN};
	for (size_t i = 0; i < sizeof(doubles) / sizeof(doubles[0]); i++) {
		struct lth_buf buf = {0};
		lth_buf_double(&buf, doubles[i].value);
		ck_assert_str_eq(lth_buf_text(&buf), doubles[i].text);
		lth_buf_free(&buf);
	}
	for (size_t i = 0; i < sizeof(ints) / sizeof(ints[0]); i++) {
		struct lth_buf buf = {0}, same = {0};
		lth_buf_int(&buf, ints[i]);
		lth_buf_printf(&same, "%lld", (long long)ints[i]);
		ck_assert_str_eq(lth_buf_text(&buf), lth_buf_text(&same));
		lth_buf_free(&buf);
		lth_buf_free(&same);
	}
}
END_TEST

/* A text that does not fit what is left, and one that just does. */
START_TEST(buf_printf_grows)
{
	struct lth_buf buf = {0};
	for (int length = 0; length < 200; length++) {
		size_t before = buf.size;
		lth_buf_printf(&buf, "%0*d", length + 1, 7);
		ck_assert_uint_eq(buf.size, before + (size_t)length + 1);
		ck_assert_int_eq(buf.data[buf.size - 1], '7');
		ck_assert_int_eq(buf.data[buf.size], 0);
	}
	lth_buf_free(&buf);
}
END_TEST

START_TEST(division_rounds_as_named)
{
	ck_assert_int_eq(lth_floordiv_i64(-7, 2), -4);
	ck_assert_int_eq(lth_ceildiv_i64(-7, 2), -3);
	ck_assert_int_eq(lth_floordiv_i64(7, 2), 3);
	ck_assert_int_eq(lth_ceildiv_i64(7, 2), 4);
}
END_TEST

START_TEST(hash_differs_by_one_bit_and_length)
{
	char bytes[100] = {0};
	uint64_t base = lth_hash_bytes(bytes, 100, 0);
	for (int i = 0; i < 100; i++) {
		bytes[i] ^= 1;
		ck_assert_uint_ne(lth_hash_bytes(bytes, 100, 0), base);
		bytes[i] ^= 1;
	}
	ck_assert_uint_ne(lth_hash_bytes(bytes, 99, 0), base);
}
END_TEST

/* Hashes that collide and wrap around the table's end: ids of one hash come in the order they were put. */
START_TEST(id_table_keeps_all_through_growth)
{
	struct lth_arena *arena = lth_arena_create(0);
	struct lth_id_table table = {0};
	uint32_t at = 0;
	ck_assert_uint_eq(lth_id_table_next(&table, 5, &at), LTH_ID_NONE);
	for (uint32_t id = 0; id < 1000; id++)
		ck_assert(lth_id_table_put(&table, arena, UINT64_MAX - id % 7, id));
	for (uint32_t k = 0; k < 7; k++) {
		at = 0;
		for (uint32_t id = k; id < 1000; id += 7)
			ck_assert_uint_eq(lth_id_table_next(&table, UINT64_MAX - k, &at), id);
		ck_assert_uint_eq(lth_id_table_next(&table, UINT64_MAX - k, &at), LTH_ID_NONE);
	}
	lth_id_table_replace(&table, UINT64_MAX - 3, 10, 5000);
	at = 0;
	ck_assert_uint_eq(lth_id_table_next(&table, UINT64_MAX - 3, &at), 3);
	ck_assert_uint_eq(lth_id_table_next(&table, UINT64_MAX - 3, &at), 5000);
	ck_assert_uint_eq(lth_id_table_next(&table, UINT64_MAX - 3, &at), 17);
	lth_arena_destroy(&arena);
}
END_TEST

START_TEST(sha256_of_abc)
{
	char text[LTH_DIGEST_TEXT];
	lth_sha256_text("abc", 3, text);
	ck_assert_str_eq(text, "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	ck_assert(lth_digest_valid(text));
	ck_assert(!lth_digest_valid("sha256:BA"));
}
END_TEST

START_TEST(files_round_trip)
{
	struct lth_diag diag = {0};
	char path[] = "test_base.XXXXXX", *data;
	size_t size;
	int fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq((int)lth_write_file(path, "hello", 5, false, &diag), LTH_OK);
	ck_assert_int_eq((int)lth_read_file(path, 0, &data, &size, &diag), LTH_OK);
	ck_assert_uint_eq(size, 5);
	ck_assert_str_eq(data, "hello");
	free(data);
	ck_assert_int_eq((int)lth_read_file(path, 4, &data, &size, &diag), LTH_TOO_LARGE);
	unlink(path);
	diag = (struct lth_diag){0};
	ck_assert_int_eq((int)lth_read_file(path, 0, &data, &size, &diag), LTH_NOT_FOUND);
}
END_TEST

static void write_below(const char *root, const char *path, const char *text)
{
	struct lth_diag diag = {0};
	char full[512];
	snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
		*slash = 0;
		mkdir(full, 0700);
		*slash = '/';
	}
	ck_assert_int_eq((int)lth_write_file(full, text, strlen(text), false, &diag), LTH_OK);
}

START_TEST(machine_is_what_control_groups_leave)
{
	char root[] = "/tmp/lathe-machine-XXXXXX", command[64];
	ck_assert_ptr_nonnull(mkdtemp(root));
	uint64_t cpus = lth_machine_cpus(root), memory = lth_machine_memory_bytes(root);
	ck_assert_uint_ge(cpus, 1);
	ck_assert_uint_gt(memory, 64 << 20);
	write_below(root, "/proc/self/cgroup", "12:memory:/elsewhere\n0::/system/lathed\n");
	write_below(root, "/sys/fs/cgroup/system/lathed/memory.max", "max\n");
	write_below(root, "/sys/fs/cgroup/system/lathed/cpu.max", "max 100000\n");
	ck_assert_uint_eq(lth_machine_memory_bytes(root), memory);
	ck_assert_uint_eq(lth_machine_cpus(root), cpus);
	write_below(root, "/sys/fs/cgroup/system/memory.max", "33554432\n");
	write_below(root, "/sys/fs/cgroup/system/lathed/cpu.max", "50000 100000\n");
	ck_assert_uint_eq(lth_machine_memory_bytes(root), 33554432); /* of the group above */
	ck_assert_uint_eq(lth_machine_cpus(root), 1);
	write_below(root, "/proc/self/cgroup", "0::/\n");
	write_below(root, "/sys/fs/cgroup/memory.max", "16777216");
	ck_assert_uint_eq(lth_machine_memory_bytes(root), 16777216); /* in a container, the root is its own group */
	snprintf(command, sizeof(command), "rm -r %s", root);
	ck_assert_int_eq(system(command), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("base");
	TCase *tests = tcase_create("base");
	suite_add_tcase(suite, tests);
	tcase_add_test(tests, codes_have_distinct_slugs);
	tcase_add_test(tests, first_error_wins_and_long_text_is_cut);
	tcase_add_test(tests, nearest_word);
	tcase_add_test(tests, arena_cap_is_sticky);
	tcase_add_test(tests, arena_grow_keeps_content);
	tcase_add_test(tests, buf_numbers_and_quotes);
	tcase_add_test(tests, buf_whole_numbers);
	tcase_add_test(tests, buf_printf_grows);
	tcase_add_test(tests, division_rounds_as_named);
	tcase_add_test(tests, hash_differs_by_one_bit_and_length);
	tcase_add_test(tests, id_table_keeps_all_through_growth);
	tcase_add_test(tests, sha256_of_abc);
	tcase_add_test(tests, files_round_trip);
	tcase_add_test(tests, machine_is_what_control_groups_leave);
	return run_suite(suite);
}
