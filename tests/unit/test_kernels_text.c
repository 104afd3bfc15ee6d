/* Unit tests of the C kernels on strings, lookups, matrices and trees: answers worked out by hand, and tables that a
 * hostile model could carry. */
#include "runtime/exec/pool.h"
#include "runtime/exec/strings.h"
#include "runtime/kernels/builtin.h"
#include "tests/unit/run_suite.h"

#include <math.h>
#include <string.h>

static struct lth_pool *pool;
static struct lth_strings strings;

static void setup(void)
{
	pool = lth_pool_create();
	strings = (struct lth_strings){.pool = pool};
}

static void teardown(void)
{
	lth_strings_free(&strings);
	ck_assert_int_eq(lth_pool_counters(pool)->used_bytes, 0); /* kernels give back what they took */
	lth_pool_destroy(&pool);
}

/* Dense operands of at most two axes, collected in order. */
static struct operands {
	struct lth_builtin_tensor list[10];
	int64_t dims[10][2], strides[10][2];
	uint32_t count;
} operands;

static void add(enum lth_dtype dtype, const void *data, uint32_t rank, int64_t d0, int64_t d1)
{
	uint32_t k = operands.count++;
	operands.dims[k][0] = d0;
	operands.dims[k][1] = d1;
	operands.strides[k][0] = rank == 2 ? d1 : 1;
	operands.strides[k][1] = 1;
	operands.list[k] = (struct lth_builtin_tensor){.data = (void *)(uintptr_t)data,
						       .dtype = dtype,
						       .rank = rank,
						       .dims = operands.dims[k],
						       .strides = operands.strides[k]};
}

static int run(lth_builtin_fn kernel, uint32_t outputs, const char *attributes)
{
	struct lth_builtin_call call = {.num_outputs = outputs,
					.num_tensors = operands.count,
					.tensors = operands.list,
					.attributes = attributes,
					.pool = pool,
					.strings = &strings};
	operands.count = 0;
	return kernel(&call);
}

static struct lth_string text(const char *bytes)
{
	return (struct lth_string){bytes, strlen(bytes)};
}

static void check_text(struct lth_string found, const char *wanted)
{
	ck_assert_uint_eq(found.size, strlen(wanted));
	ck_assert(found.size == 0 || memcmp(found.data, wanted, found.size) == 0);
}

START_TEST(numbers_from_strings)
{
	static const char *const reals[] = {"1.5", " -3e2\n", "+INF", "-inf", "nAn", "0.1", "1e-45", "1e400"};
	static const float wanted[] = {1.5f, -300, INFINITY, -INFINITY, NAN, 0.1f, 1e-45f, INFINITY};
	static const char *const wrong[] = {"", "x", "1.5x", "0x10", "1,5", "--1", "1e", "1 2"};
	struct lth_string texts[8] = {{0}};
	float singles[8] = {0};
	int64_t whole[3] = {0};
	int8_t narrow = 0;
	for (int i = 0; i < 8; i++)
		texts[i] = text(reals[i]);
	add(LTH_DTYPE_F32, singles, 1, 8, 1);
	add(LTH_DTYPE_STRING, texts, 1, 8, 1);
	ck_assert_int_eq(run(lth_builtin_parse_number, 1, ""), 0);
	for (int i = 0; i < 8; i++)
		ck_assert(singles[i] == wanted[i] || (isnan(singles[i]) && isnan(wanted[i])));
	texts[0] = text("-9223372036854775808");
	texts[1] = text("9007199254740993");
	texts[2] = text("-2.7e0");
	add(LTH_DTYPE_I64, whole, 1, 3, 1);
	add(LTH_DTYPE_STRING, texts, 1, 3, 1);
	ck_assert_int_eq(run(lth_builtin_parse_number, 1, ""), 0);
	ck_assert(whole[0] == INT64_MIN && whole[1] == 9007199254740993 && whole[2] == -2);
	for (int i = 0; i < 8; i++) {
		texts[0] = text(wrong[i]);
		add(LTH_DTYPE_F32, singles, 1, 1, 1);
		add(LTH_DTYPE_STRING, texts, 1, 1, 1);
		ck_assert_int_eq(run(lth_builtin_parse_number, 1, ""), LTH_KERNEL_SHAPE);
	}
	texts[0] = text("128");
	add(LTH_DTYPE_I8, &narrow, 1, 1, 1);
	add(LTH_DTYPE_STRING, texts, 1, 1, 1);
	ck_assert_int_eq(run(lth_builtin_parse_number, 1, ""), LTH_KERNEL_SHAPE);
	texts[0] = (struct lth_string){"1\0002", 3};
	add(LTH_DTYPE_I8, &narrow, 1, 1, 1);
	add(LTH_DTYPE_STRING, texts, 1, 1, 1);
	ck_assert_int_eq(run(lth_builtin_parse_number, 1, ""), LTH_KERNEL_SHAPE);
}
END_TEST

START_TEST(numbers_as_strings)
{
	static const float singles[] = {0.039187793f, -3, 16777216, 1e-8f, 3.4028235e38f, NAN, -INFINITY, 1e-45f};
	static const char *const wanted[] = {"0.039187793", "-3.0", "16777216.0", "1e-08",
					     "3.4028235e+38", "NaN", "-INF", "1e-45"};
	const double third = 1.0 / 3;
	const uint64_t most = UINT64_MAX;
	const uint8_t yes = 1;
	struct lth_string out[8] = {{0}};
	add(LTH_DTYPE_STRING, out, 1, 8, 1);
	add(LTH_DTYPE_F32, singles, 1, 8, 1);
	ck_assert_int_eq(run(lth_builtin_format_number, 1, ""), 0);
	for (int i = 0; i < 8; i++)
		check_text(out[i], wanted[i]);
	const struct {
		enum lth_dtype dtype;
		const void *element;
		const char *wanted;
	} rows[] = {{LTH_DTYPE_F64, &third, "0.3333333333333333"},
		    {LTH_DTYPE_U64, &most, "18446744073709551615"},
		    {LTH_DTYPE_I64, &most, "-1"},
		    {LTH_DTYPE_BOOL, &yes, "True"}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		add(LTH_DTYPE_STRING, out, 0, 1, 1);
		add(rows[i].dtype, rows[i].element, 0, 1, 1);
		ck_assert_int_eq(run(lth_builtin_format_number, 1, ""), 0);
		check_text(out[0], rows[i].wanted);
	}
}
END_TEST

START_TEST(strings_from_tables)
{
	struct lth_string out[3] = {{0}};
	const int64_t ends[] = {2, 2, 5}, beyond[] = {2, 7, 5};
	add(LTH_DTYPE_STRING, out, 1, 3, 1);
	add(LTH_DTYPE_U8, "abcde", 1, 5, 1);
	add(LTH_DTYPE_I64, ends, 1, 3, 1);
	ck_assert_int_eq(run(lth_builtin_string_table, 1, ""), 0);
	check_text(out[0], "ab");
	check_text(out[1], "");
	check_text(out[2], "cde");
	add(LTH_DTYPE_STRING, out, 1, 3, 1);
	add(LTH_DTYPE_U8, "abcde", 1, 5, 1);
	add(LTH_DTYPE_I64, beyond, 1, 3, 1);
	ck_assert_int_eq(run(lth_builtin_string_table, 1, ""), LTH_KERNEL_INDEX);
}
END_TEST

static void check_split(const char *input, const char *delimiter, const char *attributes, int64_t count,
			const char *const *wanted)
{
	struct lth_string in = text(input), parts[4] = {{0}};
	int64_t found = -1;
	add(LTH_DTYPE_I64, &found, 1, 1, 1);
	add(LTH_DTYPE_STRING, &in, 1, 1, 1);
	add(LTH_DTYPE_U8, delimiter, 1, (int64_t)strlen(delimiter), 1);
	ck_assert_int_eq(run(lth_builtin_string_split_count, 1, attributes), 0);
	ck_assert_int_eq(found, count);
	add(LTH_DTYPE_STRING, parts, 2, 1, 4);
	add(LTH_DTYPE_STRING, &in, 1, 1, 1);
	add(LTH_DTYPE_U8, delimiter, 1, (int64_t)strlen(delimiter), 1);
	ck_assert_int_eq(run(lth_builtin_string_split, 1, attributes), 0);
	for (int64_t i = 0; i < 4; i++)
		check_text(parts[i], i < count ? wanted[i] : "");
}

START_TEST(strings_split)
{
	check_split("a--b--", "--", "", 3, (const char *[]){"a", "b", ""});
	check_split("a--b--c", "--", "maxsplit=1", 2, (const char *[]){"a", "b--c"});
	check_split("  a \t b ", "", "", 2, (const char *[]){"a", "b"});
	check_split("  a  b c", "", "maxsplit=1", 2, (const char *[]){"a", "b c"});
	check_split("", "", "", 0, NULL);
	check_split("", ",", "", 1, (const char *[]){""});
}
END_TEST

START_TEST(strings_without_stop_words)
{
	/* e with accents, an i without its dot, and bytes that are no UTF-8 (an overlong one, a lone head) between letters */
	const struct lth_string in[] = {text("Monday"), text("\xC3\x89t\xC3\xA9\xC4\xB1"), text("FRIDAY"),
					text("a\xC0\x80z\xC3")};
	const int64_t ends[] = {6};
	struct lth_string out[4] = {{0}};
	int64_t count = -1;
	add(LTH_DTYPE_STRING, out, 1, 4, 1);
	add(LTH_DTYPE_I64, &count, 0, 1, 1);
	add(LTH_DTYPE_STRING, in, 1, 4, 1);
	add(LTH_DTYPE_U8, "friday", 1, 6, 1);
	add(LTH_DTYPE_I64, ends, 1, 1, 1);
	ck_assert_int_eq(run(lth_builtin_string_normalize, 2, "case_change_action=UPPER"), 0);
	ck_assert_int_eq(count, 3);
	check_text(out[0], "MONDAY");
	check_text(out[1], "\xC3\x89T\xC3\x89I");
	check_text(out[2], "A\xC0\x80Z\xC3");
}
END_TEST

START_TEST(lookups)
{
	const float x[] = {2, NAN, 0, 3}, keys[] = {-1, 0, 2, NAN};
	const int64_t wanted[] = {2, 3, 1, 4};
	int64_t out[4] = {0};
	add(LTH_DTYPE_I64, out, 1, 4, 1);
	add(LTH_DTYPE_F32, x, 1, 4, 1);
	add(LTH_DTYPE_F32, keys, 1, 4, 1);
	ck_assert_int_eq(run(lth_builtin_lookup, 1, ""), 0);
	ck_assert_mem_eq(out, wanted, sizeof(wanted));
}
END_TEST

START_TEST(determinants)
{
	const double in[] = {0, 2, 3, 4, 1, 2, 2, 4};
	double out[2] = {0};
	add(LTH_DTYPE_F64, out, 1, 2, 1);
	add(LTH_DTYPE_F64, in, 2, 2, 2);
	operands.list[1].rank = 3; /* two matrices */
	const int64_t dims[] = {2, 2, 2}, strides[] = {4, 2, 1};
	operands.list[1].dims = dims;
	operands.list[1].strides = strides;
	ck_assert_int_eq(run(lth_builtin_det, 1, ""), 0);
	ck_assert_double_eq_tol(out[0], -6, 1e-12);
	ck_assert_double_eq_tol(out[1], 0, 1e-12);
}
END_TEST

/* One node on feature 1 with two leaves; `child` is where it goes if true. */
static int run_trees(const char *attributes, int64_t child, float *out)
{
	const float x[] = {0, 1, 0, 3, 0, NAN};
	const int64_t nodes[] = {1, 0, child, -2, 1, 0, 0}, roots[] = {0, 0}, leaves[] = {0, 1, 3},
		      targets[] = {0, 0, 1};
	const double splits[] = {2}, weights[] = {1, 4, 8};
	add(LTH_DTYPE_F32, out, 2, 3, 2);
	add(LTH_DTYPE_F32, x, 2, 3, 2);
	add(LTH_DTYPE_I64, nodes, 2, 1, 7);
	add(LTH_DTYPE_F64, splits, 1, 1, 1);
	add(LTH_DTYPE_F64, splits, 1, 0, 1);
	add(LTH_DTYPE_I64, roots, 1, 2, 1);
	add(LTH_DTYPE_I64, leaves, 1, 3, 1);
	add(LTH_DTYPE_I64, targets, 1, 3, 1);
	add(LTH_DTYPE_F64, weights, 1, 3, 1);
	return run(lth_builtin_trees, 1, attributes);
}

START_TEST(trees)
{
	float out[6] = {0};
	ck_assert_int_eq(run_trees("aggregate=1", -1, out), 0);
	ck_assert_mem_eq(out, ((const float[]){2, 0, 8, 16, 2, 0}), sizeof(out));
	ck_assert_int_eq(run_trees("aggregate=0", -1, out), 0);
	ck_assert_mem_eq(out, ((const float[]){1, 0, 4, 8, 1, 0}), sizeof(out));
	ck_assert_int_eq(run_trees("aggregate=1", 0, out), LTH_KERNEL_INDEX);  /* its own child: would not end */
	ck_assert_int_eq(run_trees("aggregate=1", 7, out), LTH_KERNEL_INDEX);  /* no such node */
	ck_assert_int_eq(run_trees("aggregate=1", -3, out), LTH_KERNEL_INDEX); /* no such leaf */
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("kernels on text and models");
	TCase *tests = tcase_create("kernels");
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, strings_from_tables);
	tcase_add_test(tests, numbers_from_strings);
	tcase_add_test(tests, numbers_as_strings);
	tcase_add_test(tests, strings_split);
	tcase_add_test(tests, strings_without_stop_words);
	tcase_add_test(tests, lookups);
	tcase_add_test(tests, determinants);
	tcase_add_test(tests, trees);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
