/* The memory planner's files and requests: CSV and JSON in and out, and what each refuses. */
#include "compiler/memory/plan/plan_json.h"
#include "tests/unit/run_suite.h"

#include <stdlib.h>
#include <string.h>

static const struct lth_plan_reading fixed_offsets = {.alignment = 1, .offsets_are_fixed = true};

static enum lth_code read_csv(const char *text, struct lth_plan_table *table, struct lth_diag *diag)
{
	return lth_plan_read_csv(text, strlen(text), &fixed_offsets, table, diag);
}

START_TEST(csv_columns_come_in_any_order)
{
	struct lth_plan_table table = {0};
	struct lth_diag diag = {0};
	const char *text = "\xEF\xBB\xBFsize, upper ,\"id\",lower,offset,alignment\r\n"
			   "10,4,\"a, \"\"b\"\"\",0,,\r\n\r\n 64,9,c,2,128,64\n";
	ck_assert_int_eq((int)read_csv(text, &table, &diag), LTH_OK);
	ck_assert_uint_eq(table.count, 2);
	ck_assert_str_eq(table.ids[0], "a, \"b\"");
	ck_assert_int_eq(table.buffers[0].alignment, 1);
	ck_assert_int_eq(table.buffers[0].fixed_offset, -1);
	ck_assert_int_eq(table.offsets[0], LTH_PLAN_NO_OFFSET);
	ck_assert_int_eq(table.buffers[1].lower, 2);
	ck_assert_int_eq(table.buffers[1].upper, 9);
	ck_assert_int_eq(table.buffers[1].size, 64);
	ck_assert_int_eq(table.buffers[1].fixed_offset, 128);
	lth_plan_table_free(&table);
}
END_TEST

START_TEST(csv_written_reads_back)
{
	struct lth_plan_table table = {0}, again = {0};
	struct lth_diag diag = {0};
	char *text = NULL, *second = NULL;
	const int64_t offsets[] = {64, INT64_MAX - 3};
	ck_assert_int_eq((int)read_csv("id,lower,upper,size\n\"x \"\"y\",0,9223372036854775807,3\n-7,1,2,0\n", &table,
				       &diag), LTH_OK);
	ck_assert_int_eq((int)lth_plan_write_csv(&table, offsets, &text, &diag), LTH_OK);
	ck_assert_int_eq((int)read_csv(text, &again, &diag), LTH_OK);
	ck_assert_int_eq((int)lth_plan_write_csv(&again, again.offsets, &second, &diag), LTH_OK);
	ck_assert_str_eq(text, second);
	ck_assert_str_eq(again.ids[1], "-7");
	free(text);
	free(second);
	lth_plan_table_free(&table);
	lth_plan_table_free(&again);
}
END_TEST

static const struct {
	const char *text, *place, *word;
} wrong_csv[] = {
	{"", "1:1", "no text"},
	{"\n\n  \n", "4:1", "no text"},
	{"id,lower,upper\n", "1:10", "no column 'size'"},
	{"id,lower,upper,sise\n", "1:16", "did you mean 'size'"},
	{"id,lower,upper,size,id\n", "1:21", "again"},
	{"id,lower,upper,size\na,0,4\n", "2:6", "end of the line"},
	{"id,lower,upper,size\na,0,4,8,9\n", "2:9", "one cell more"},
	{"id,lower,upper,size\na,0,4,8\n\nb,0,x,8\n", "4:5", "whole number"},
	{"id,lower,upper,size\na,0,4,\n", "2:7", "whole number"},
	{"id,lower,upper,size\na,0,4,-\n", "2:7", "whole number"},
	{"id,lower,upper,size\na,0,4,1e3\n", "2:7", "whole number"},
	{"id,lower,upper,size\n,0,4,8\n", "2:1", "empty cell"},
	{"id,lower,upper,size\na,-1,4,8\n", "2:3", "lower -1 of 'a'"},
	{"id,lower,upper,size\na,5,4,8\n", "2:5", "half-open"},
	{"id,lower,upper,size\na,4,4,8\n", "2:5", "half-open"},
	{"id,lower,upper,size\na,0,4,-8\n", "2:7", "size -8"},
	{"id,lower,upper,size\na,0,4,9223372036854775808\n", "2:7", "below 2^63"},
	{"id,lower,upper,size\na,0,4,8\nb,0,4,8\na,1,2,3\n", "4:1", "line 2 has too"},
	{"id,lower,upper,size\n\"a,0,4,8\n", "2:1", "closing quote"},
	{"id,lower,upper,size\n\"a\"b,0,4,8\n", "2:1", "behind a quoted cell"},
	{"id,lower,upper,size,alignment\na,0,4,8,0\n", "2:9", "alignment 0"},
	{"id,lower,upper,size,alignment,offset\na,0,4,8,16,24\n", "2:12", "multiple"},
	{"id,lower,upper,size,offset\na,0,4,8,-24\n", "2:9", "offset -24"},
};

START_TEST(csv_errors_have_a_place)
{
	struct lth_plan_table table = {0};
	struct lth_diag diag = {0};
	char line[4096];
	ck_assert_int_eq((int)read_csv(wrong_csv[_i].text, &table, &diag), LTH_INVALID_REQUEST);
	lth_diag_line(&diag, line, sizeof(line));
	ck_assert_str_eq(diag.place, wrong_csv[_i].place);
	ck_assert_msg(strstr(line, wrong_csv[_i].word) != NULL, "no '%s' in: %s", wrong_csv[_i].word, line);
	ck_assert_ptr_null(table.buffers);
}
END_TEST

static const char five[] = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n";

START_TEST(a_job_plans_csv)
{
	json_t *answer = NULL;
	struct lth_diag diag = {0};
	ck_assert_int_eq((int)lth_plan_job(five, strlen(five), true, NULL, &answer, &diag), LTH_OK);
	ck_assert_int_eq(json_integer_value(json_object_get(answer, "height")), 12);
	ck_assert_int_eq(json_integer_value(json_object_get(answer, "live_bound_bytes")), 12);
	ck_assert_int_eq(json_integer_value(json_object_get(answer, "naive_bytes")), 20);
	ck_assert_str_eq(json_string_value(json_object_get(answer, "strategy")), "exact");
	ck_assert_str_eq(json_string_value(json_object_get(answer, "certificate")),
			 "optimal: arena equals live bound");
	json_t *rows = json_object_get(answer, "buffers");
	ck_assert_uint_eq(json_array_size(rows), 5);
	ck_assert_str_eq(json_string_value(json_object_get(json_array_get(rows, 4), "id")), "b5");
	json_decref(answer);
}
END_TEST

START_TEST(a_plan_answered_passes_the_check)
{
	json_t *answer = NULL, *verdict = NULL;
	struct lth_diag diag = {0};
	const char *body = "{\"buffers\": [{\"id\": \"x\", \"lower\": 0, \"upper\": 5, \"size\": 100},"
			   "{\"id\": 7, \"lower\": 2, \"upper\": 6, \"size\": 0, \"alignment\": 64},"
			   "{\"id\": \"z\", \"lower\": 4, \"upper\": 9, \"size\": 30, \"offset\": 128}],"
			   "\"options\": {\"strategy\": \"best_fit\", \"alignment\": 32}}";
	ck_assert_int_eq((int)lth_plan_job(body, strlen(body), false, NULL, &answer, &diag), LTH_OK);
	json_t *planned = json_object_get(answer, "buffers"), *request = json_loads(body, 0, NULL);
	for (size_t i = 0; i < 3; i++)
		json_object_set(json_array_get(json_object_get(request, "buffers"), i), "offset",
				json_object_get(json_array_get(planned, i), "offset"));
	ck_assert_str_eq(json_string_value(json_object_get(json_array_get(planned, 1), "id")), "7");
	char *text = json_dumps(request, 0);
	ck_assert_int_eq((int)lth_plan_check_job(text, strlen(text), false, NULL, &verdict, &diag), LTH_OK);
	ck_assert(json_is_true(json_object_get(verdict, "valid")));
	ck_assert_int_eq(json_integer_value(json_object_get(verdict, "height")),
			 json_integer_value(json_object_get(answer, "height")));
	free(text);
	json_decref(request);
	json_decref(answer);
	json_decref(verdict);
}
END_TEST

START_TEST(a_check_names_the_buffers)
{
	json_t *verdict = NULL;
	struct lth_diag diag = {0};
	const char *text = "id,lower,upper,size,alignment,offset\np,0,5,10,1,0\nq,4,9,10,4,9\nr,7,8,1,1,-5\n";
	ck_assert_int_eq((int)lth_plan_check_job(text, strlen(text), true, NULL, &verdict, &diag), LTH_OK);
	ck_assert(json_is_false(json_object_get(verdict, "valid")));
	json_t *violations = json_object_get(verdict, "violations");
	static const char *const kinds[] = {"alignment", "negative", "overlap"};
	ck_assert_uint_eq(json_array_size(violations), 3);
	for (size_t k = 0; k < 3; k++)
		ck_assert_str_eq(json_string_value(json_object_get(json_array_get(violations, k), "kind")), kinds[k]);
	json_t *overlap = json_array_get(violations, 2), *ids = json_object_get(overlap, "buffers");
	ck_assert_str_eq(json_string_value(json_array_get(ids, 0)), "p");
	ck_assert_str_eq(json_string_value(json_array_get(ids, 1)), "q");
	ck_assert_int_eq(json_integer_value(json_object_get(overlap, "step")), 4);
	json_decref(verdict);
	const char *missing = "id,lower,upper,size,offset\np,0,5,10,\n";
	ck_assert_int_eq((int)lth_plan_check_job(missing, strlen(missing), true, NULL, &verdict, &diag),
			 LTH_INVALID_REQUEST);
}
END_TEST

static const struct {
	const char *body, *options;
	enum lth_code code;
	const char *word;
} wrong_jobs[] = {
	{"{", NULL, LTH_INVALID_JSON, "1:1"},
	{"[]", NULL, LTH_INVALID_JSON, "an object with 'buffers'"},
	{"{}", NULL, LTH_INVALID_JSON, "no member 'buffers'"},
	{"{\"buffers\": [], \"bufers\": 1}", NULL, LTH_INVALID_JSON, "'bufers'"},
	{"{\"buffers\": [3]}", NULL, LTH_INVALID_JSON, "buffers[0]"},
	{"{\"buffers\": [{\"lower\": 0, \"upper\": 1, \"size\": 1}]}", NULL, LTH_INVALID_JSON, "no member 'id'"},
	{"{\"buffers\": [{\"id\": \"a\", \"lower\": 0, \"upper\": 1.5, \"size\": 1}]}", NULL, LTH_INVALID_JSON, "'upper'"},
	{"{\"buffers\": [{\"id\": \"a\", \"lower\": 0, \"upper\": 1, \"size\": 1, \"aligment\": 8}]}", NULL, LTH_INVALID_JSON,
	 "did you mean 'alignment'"},
	{"{\"buffers\": [{\"id\": \"a\", \"lower\": 3, \"upper\": 1, \"size\": 1}]}", NULL, LTH_INVALID_REQUEST, "half-open"},
	{"{\"buffers\": [{\"id\": \"a\", \"lower\": 0, \"upper\": 1, \"size\": 1, \"offset\": -1}]}", NULL,
	 LTH_INVALID_REQUEST, "offset"},
	{"{\"buffers\": [{\"id\": \"1\", \"lower\": 0, \"upper\": 1, \"size\": 1},"
	 "{\"id\": 1, \"lower\": 0, \"upper\": 1, \"size\": 1}]}", NULL, LTH_INVALID_REQUEST, "'1' again"},
	{"{\"buffers\": [{\"id\": \"a\", \"lower\": 0, \"upper\": 1, \"size\": 9223372036854775808}]}", NULL,
	 LTH_INVALID_JSON, "integer"},
	{"{\"buffers\": [{\"id\": \"a\", \"lower\": 0, \"upper\": 2, \"size\": 50, \"offset\": 0},"
	 "{\"id\": \"b\", \"lower\": 1, \"upper\": 3, \"size\": 50, \"offset\": 10}]}", NULL, LTH_INVALID_REQUEST,
	 "buffer 'a' at 0 and buffer 'b' at 10 share a step and a byte"},
	{"{\"buffers\": [{\"id\": \"a\", \"lower\": 0, \"upper\": 2, \"size\": 4611686018427387904}]}", NULL,
	 LTH_INVALID_REQUEST, "buffer 'a': found a sum of sizes that overflows"},
	{"{\"buffers\": []}", "{\"strategy\": \"exakt\"}", LTH_INVALID_OPTION, "did you mean 'exact'"},
	{"{\"buffers\": []}", "{\"strategies\": 1}", LTH_INVALID_OPTION, "one of strategy, capacity"},
	{"{\"buffers\": []}", "{\"capacity\": -5}", LTH_INVALID_OPTION, "at least 0"},
	{"{\"buffers\": []}", "{\"effort\": \"much\"}", LTH_INVALID_OPTION, "much"},
	{"{\"buffers\": []}", "{\"alignment\": 0}", LTH_INVALID_OPTION, "at least 1"},
	{"{\"buffers\": [{\"id\": \"big\", \"lower\": 0, \"upper\": 9, \"size\": 100},"
	 "{\"id\": \"small\", \"lower\": 5, \"upper\": 12, \"size\": 20},"
	 "{\"id\": \"late\", \"lower\": 9, \"upper\": 12, \"size\": 30}]}", "{\"capacity\": \"110\"}", LTH_BUDGET_UNREACHABLE,
	 "the largest of 2 buffers at that step: 'big' (100), 'small' (20), expected at least the live bound, 120"},
};

START_TEST(wrong_jobs_are_refused)
{
	json_t *answer = NULL, *options = wrong_jobs[_i].options ? json_loads(wrong_jobs[_i].options, 0, NULL) : NULL;
	struct lth_diag diag = {0};
	char line[4096];
	const char *body = wrong_jobs[_i].body;
	ck_assert_int_eq((int)lth_plan_job(body, strlen(body), false, options, &answer, &diag), (int)wrong_jobs[_i].code);
	lth_diag_line(&diag, line, sizeof(line));
	ck_assert_msg(strstr(line, wrong_jobs[_i].word) != NULL, "no '%s' in: %s", wrong_jobs[_i].word, line);
	ck_assert_ptr_null(answer);
	json_decref(options);
}
END_TEST

/* Three buffers of which two and two live together need 3 where the live bound is 2: a capacity of 2 is refuted. */
START_TEST(a_capacity_proved_out_of_reach_says_so)
{
	json_t *answer = NULL, *options = json_pack("{s:i}", "capacity", 11);
	struct lth_diag diag = {0};
	const char *text = "id,lower,upper,size,offset\nlow,0,2,4,0\nhigh,4,6,4,4\nfree,1,5,7,\n";
	ck_assert_int_eq((int)lth_plan_job(text, strlen(text), true, options, &answer, &diag), LTH_BUDGET_UNREACHABLE);
	ck_assert_msg(strstr(diag.found, "proved out of reach") != NULL, "%s", diag.found);
	ck_assert_msg(strstr(diag.expected, "at least the height reached, 15") != NULL, "%s", diag.expected);
	json_decref(options);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("plan_io");
	TCase *tests = tcase_create("plan_io");
	tcase_add_test(tests, csv_columns_come_in_any_order);
	tcase_add_test(tests, csv_written_reads_back);
	tcase_add_loop_test(tests, csv_errors_have_a_place, 0, sizeof(wrong_csv) / sizeof(wrong_csv[0]));
	tcase_add_test(tests, a_job_plans_csv);
	tcase_add_test(tests, a_plan_answered_passes_the_check);
	tcase_add_test(tests, a_check_names_the_buffers);
	tcase_add_loop_test(tests, wrong_jobs_are_refused, 0, sizeof(wrong_jobs) / sizeof(wrong_jobs[0]));
	tcase_add_test(tests, a_capacity_proved_out_of_reach_says_so);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
