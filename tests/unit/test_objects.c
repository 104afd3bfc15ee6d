/* Unit tests of objects: their store, programs over them written by hand, values at the border, types, files. */
#include "runtime/exe/value.h"
#include "runtime/exec/objects.h"
#include "runtime/exec/query.h"
#include "tests/unit/run_suite.h"

#include <stdlib.h>
#include <string.h>

static struct lth_arena *arena;
static const struct lathe_api api = {LTH_QUERY_FUNCTIONS};

static void setup(void)
{
	arena = lth_arena_create(0);
}

static void teardown(void)
{
	lth_arena_destroy(&arena);
}

/* ---- the store ---- */

static struct lth_object *number(struct lth_objects *objects, int64_t value)
{
	struct lth_object *object = lth_object_tensor(objects, LTH_DTYPE_I64, 0, NULL);
	memcpy(object->data, &value, sizeof(value));
	return object;
}

static int64_t value_at(const struct lth_object *list, int64_t at)
{
	int64_t value;
	memcpy(&value, lth_list_item(list, at)->data, sizeof(value));
	return value;
}

START_TEST(lists_never_change)
{
	struct lth_objects objects = {.pool = lth_pool_create()};
	struct lth_object *a = lth_object_list(&objects, 0);
	for (int64_t i = 0; i < 3; i++)
		a = lth_list_insert(&objects, a, i, number(&objects, i));
	struct lth_object *b = lth_list_insert(&objects, a, 3, number(&objects, 10));
	struct lth_object *c = lth_list_insert(&objects, a, 3, number(&objects, 20)); /* b has that place already */
	struct lth_object *d = lth_list_insert(&objects, b, 0, number(&objects, 30));
	struct lth_object *e = lth_list_erase(&objects, b, 3), *f = lth_list_erase(&objects, b, 1);
	struct lth_object *g = lth_list_insert(&objects, e, 3, number(&objects, 40));
	ck_assert_int_eq(a->count, 3);
	ck_assert_int_eq(value_at(b, 3), 10);
	ck_assert_int_eq(value_at(c, 3), 20);
	ck_assert(value_at(d, 0) == 30 && value_at(d, 4) == 10 && d->count == 5);
	ck_assert(e->count == 3 && value_at(e, 2) == 2);
	ck_assert(f->count == 3 && value_at(f, 1) == 2 && value_at(f, 2) == 10);
	ck_assert(value_at(g, 3) == 40 && value_at(b, 3) == 10);
	lth_objects_free(&objects);
	ck_assert_int_eq(lth_pool_counters(objects.pool)->used_bytes, 0);
	lth_pool_destroy(&objects.pool);
}
END_TEST

START_TEST(putting_behind_the_last_shares)
{
	enum { COUNT = 10000 };
	struct lth_objects objects = {.pool = lth_pool_create()};
	struct lth_object *list = lth_object_list(&objects, 0), *item = number(&objects, 1);
	for (int64_t i = 0; i < COUNT; i++)
		list = lth_list_insert(&objects, list, i, item);
	/* a header a list and twice the items: nothing like COUNT * COUNT / 2 */
	ck_assert_int_lt(lth_pool_counters(objects.pool)->used_bytes, COUNT * 1024);
	lth_objects_free(&objects);
	lth_pool_destroy(&objects.pool);
}
END_TEST

START_TEST(handles_are_looked_up)
{
	struct lth_objects objects = {.pool = lth_pool_create()};
	struct lth_object *item = number(&objects, 1);
	int64_t handle = 0;
	for (int i = 0; i < 100; i++)
		handle = lth_objects_name(&objects, item);
	ck_assert_ptr_eq(lth_objects_find(&objects, handle), item);
	const int64_t none[] = {0, -1, handle + 1, INT64_MAX, INT64_MIN};
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		ck_assert_ptr_null(lth_objects_find(&objects, none[i]));
	lth_objects_sweep(&objects);
	ck_assert_ptr_null(lth_objects_find(&objects, handle));
	lth_objects_free(&objects);
	lth_pool_destroy(&objects.pool);
}
END_TEST

/* ---- programs ---- */

static int open_text(const char *text, struct lathe_executable **out, struct lathe_error *error)
{
	struct lth_program *program;
	struct lth_diag diag = {0};
	struct lth_buf bytes = {0}, again = {0};
	char line[4096];
	enum lth_code code = lth_program_parse(text, strlen(text), arena, &program, &diag);
	ck_assert_msg(code == LTH_OK, "%s", lth_diag_line(&diag, line, sizeof(line)));
	lth_program_print(program, &again);
	ck_assert_str_eq(lth_buf_text(&again), text);
	lth_program_encode(program, &bytes);
	const struct lth_image image = {.program = lth_arena_memdup(arena, bytes.data, bytes.size),
					.program_bytes = bytes.size,
					.info = "{}",
					.info_bytes = 2};
	lth_buf_free(&bytes);
	lth_buf_free(&again);
	return lth_query_open(&image, &api, out, error);
}

/* One input of a type, one output of another, and what happens between. */
static const char *program_text(const char *in, const char *out, const char *lines)
{
	return lth_arena_printf(arena,
				"program \"p\" {\n"
				"\tfused_sizes true\n"
				"\tconstants 0\n"
				"\tsymbol $n in [0, inf] multiple 1 hint 1 data\n"
				"\te0 = $n * 4\n"
				"\tstorage s0 \"x\" input 0 bytes 8\n"
				"\tstorage s1 \"y\" arena bytes 8\n"
				"\tstorage s2 \"at\" arena bytes 8\n"
				"\tstorage s3 \"dims\" arena bytes 8\n"
				"\tstorage s4 \"item\" pool bytes e0\n"
				"\ttensor t0 \"x\" object[] in s0\n"
				"\ttensor t1 \"y\" object[] in s1\n"
				"\ttensor t2 \"at\" i64[] in s2\n"
				"\ttensor t3 \"dims\" i64[1] in s3\n"
				"\ttensor t4 \"item\" f32[$n] in s4\n"
				"\tinput \"x\" t0 is \"%s\"\n"
				"\toutput \"y\" %s\n"
				"\t0: alloc s1\n"
				"\t1: alloc s2\n"
				"\t2: alloc s3\n"
				"%s"
				"}\n",
				in, out, lines);
}

static struct lathe_value tensor_value(int32_t dtype, uint32_t rank, int64_t extent, void *data, uint64_t bytes)
{
	struct lathe_value value = {.kind = LATHE_TENSOR};
	value.tensor = (struct lathe_tensor){.dtype = dtype, .rank = rank, .data = data, .bytes = bytes};
	value.tensor.dims[0] = extent;
	return value;
}

static struct lathe_tensor object_tensor(struct lathe_value *value)
{
	return (struct lathe_tensor){.dtype = LATHE_OBJECT, .data = value, .bytes = sizeof(*value)};
}

struct session {
	struct lathe_executable *executable;
	struct lathe_context *context;
	struct lathe_error error;
};

static void begin(struct session *s, const char *text)
{
	ck_assert_msg(open_text(text, &s->executable, &s->error) == 0, "%s", s->error.text);
	ck_assert(lth_query_context_create(s->executable, NULL, &s->context, &s->error) == 0);
}

static void finish(struct session *s)
{
	lth_context_destroy(&s->context);
	lth_executable_unload(&s->executable);
}

static int run(struct session *s, struct lathe_value *in, struct lathe_tensor *out)
{
	struct lathe_tensor input = object_tensor(in);
	return lth_query_run(s->context, &input, 1, out, 1, &s->error);
}

static float first_data[] = {1, 2, 3}, second_data[] = {4, 5};

static struct lathe_value two_tensors(struct lathe_value elements[2])
{
	elements[0] = tensor_value(LATHE_F32, 1, 3, first_data, sizeof(first_data));
	elements[1] = tensor_value(LATHE_F32, 1, 2, second_data, sizeof(second_data));
	return (struct lathe_value){.kind = LATHE_SEQUENCE, .count = 2, .elements = elements};
}

START_TEST(a_sequence_goes_through)
{
	struct session s;
	struct lathe_value elements[2], in = two_tensors(elements);
	struct lathe_tensor out = {0};
	begin(&s, program_text("seq(f32[?])", "t1 is \"seq(f32[?])\"", "\t3: copy t1 from t0\n\t4: return\n"));
	ck_assert_str_eq(lth_query_describe(s.executable)->input_types[0], "seq(f32[?])");
	ck_assert_msg(run(&s, &in, &out) == 0, "%s", s.error.text);
	const struct lathe_value *got = out.data;
	ck_assert(out.dtype == LATHE_OBJECT && got->kind == LATHE_SEQUENCE && got->count == 2);
	ck_assert(got->elements[1].tensor.dims[0] == 2 && got->elements[1].tensor.dtype == LATHE_F32);
	ck_assert(memcmp(got->elements[1].tensor.data, second_data, sizeof(second_data)) == 0);
	ck_assert_ptr_ne(got->elements[1].tensor.data, second_data); /* it outlives the caller's */
	/* what came out may go in again, and is still there when the run ends */
	struct lathe_value feed = *got;
	struct lathe_tensor own = {0};
	struct lathe_value room;
	own.data = &room;
	own.bytes = sizeof(room);
	ck_assert_msg(run(&s, &feed, &own) == 0, "%s", s.error.text);
	ck_assert_ptr_eq(own.data, &room);
	ck_assert(room.count == 2 && ((float *)room.elements[0].tensor.data)[2] == 3);
	/* nor is an output that comes back unreleased a buffer to write to: it ends */
	out = (struct lathe_tensor){0};
	in.count = 1;
	elements[0].tensor.dims[0] = 0; /* small blocks, that the pool gives for one another */
	for (int i = 0; i < 6; i++) {
		ck_assert_msg(run(&s, &in, &out) == 0, "run %d: %s", i, s.error.text);
		got = out.data;
		ck_assert(got->count == 1 && got->elements[0].tensor.dims[0] == 0);
	}
	finish(&s);
}
END_TEST

START_TEST(an_element_is_taken_out)
{
	struct session s;
	struct lathe_value elements[2], in = two_tensors(elements);
	struct lathe_tensor out = {0};
	/* position: the length less one; the length is read by list_length */
	const char *lines = "\t3: builtin \"numbers\" writes (t2) reads () ints (-1)\n"
			    "\t4: builtin \"list_dims\" writes (t3) reads (t0, t2) attributes \"rank=1\"\n"
			    "\t5: bind $n from t3 at 0\n"
			    "\t6: alloc s4\n"
			    "\t7: builtin \"list_at\" writes (t4) reads (t0, t2) node \"last\"\n"
			    "\t8: return\n";
	begin(&s, program_text("seq(f32[?])", "t4", lines));
	ck_assert_msg(run(&s, &in, &out) == 0, "%s", s.error.text);
	ck_assert(out.rank == 1 && out.dims[0] == 2 && ((float *)out.data)[1] == 5);
	lth_context_release(s.context, &out);
	in.count = 0;
	ck_assert(run(&s, &in, &out) == LATHE_ERROR_RUNTIME);
	ck_assert_ptr_nonnull(strstr(s.error.text, "position -1 of 0 elements"));
	finish(&s);
}
END_TEST

START_TEST(memory_that_was_never_written_names_nothing)
{
	struct session s;
	struct lathe_value elements[2], in = two_tensors(elements);
	struct lathe_tensor out = {0};
	begin(&s, program_text("seq(f32[?])", "t1 is \"seq(f32[?])\"",
			       "\t3: builtin \"list_erase\" writes (t1) reads (t1)\n\t4: return\n"));
	ck_assert(run(&s, &in, &out) == LATHE_ERROR_RUNTIME);
	finish(&s);
	begin(&s, program_text("seq(f32[?])", "t1 is \"seq(f32[?])\"",
			       "\t3: builtin \"numbers\" writes (t1) reads () ints (123456789)\n\t4: return\n"));
	ck_assert(run(&s, &in, &out) == LATHE_ERROR_EXECUTABLE);
	finish(&s);
	/* a list where a tensor's type was promised */
	begin(&s, program_text("seq(f32[?])", "t1 is \"seq(seq(f32[?]))\"", "\t3: copy t1 from t0\n\t4: return\n"));
	ck_assert(run(&s, &in, &out) == LATHE_ERROR_EXECUTABLE);
	ck_assert_ptr_nonnull(strstr(s.error.text, "found a tensor, expected a sequence"));
	finish(&s);
}
END_TEST

START_TEST(wrong_values_are_refused)
{
	struct session s;
	struct lathe_value elements[2], in = two_tensors(elements);
	struct lathe_tensor out = {0};
	begin(&s, program_text("seq(f32[?])", "t1 is \"seq(f32[?])\"", "\t3: copy t1 from t0\n\t4: return\n"));
	static const struct {
		const char *text;
		int what;
	} cases[] = {
		{"expected a sequence", 0}, {"expected elements", 1},      {"element 1: found element type 7", 2},
		{"expected rank 1", 3},     {"element 0: found 0 bytes", 4}, {"expected a tensor", 5},
		{"dims of 0 or more", 6},   {"expected elements", 7},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		in = two_tensors(elements);
		switch (cases[i].what) {
		case 0: in.kind = LATHE_OPTIONAL; break;
		case 1: in.elements = NULL; break;
		case 2: elements[1].tensor.dtype = LATHE_I64; break;
		case 3: elements[0].tensor.rank = 2; break;
		case 4: elements[0].tensor.bytes = 0; break;
		case 5: elements[0].kind = LATHE_SEQUENCE; break;
		case 6: elements[0].tensor.dims[0] = -1; break;
		default: in.count = UINT64_MAX; break;
		}
		ck_assert_msg(run(&s, &in, &out) == LATHE_ERROR_INPUT, "case %zu", i);
		ck_assert_msg(strstr(s.error.text, cases[i].text), "case %zu: %s", i, s.error.text);
	}
	struct lathe_tensor small = object_tensor(&in);
	small.bytes = 8;
	ck_assert(lth_query_run(s.context, &small, 1, &out, 1, &s.error) == LATHE_ERROR_INPUT);
	finish(&s);
	in = two_tensors(elements);
	begin(&s, program_text("seq(f32[3])", "t1 is \"seq(f32[3])\"", "\t3: copy t1 from t0\n\t4: return\n"));
	ck_assert(run(&s, &in, &out) == LATHE_ERROR_INPUT);
	ck_assert_ptr_nonnull(strstr(s.error.text, "element 1: found 2 at axis 0, expected 3"));
	finish(&s);
}
END_TEST

START_TEST(optionals_have_a_value_or_none)
{
	struct session s;
	struct lathe_value elements[2], in = two_tensors(elements);
	struct lathe_tensor out = {0};
	const char *lines =
		"\t3: builtin \"numbers\" writes (t2) reads () ints (0)\n"
		"\t4: builtin \"list_at\" writes (t1) reads (t0, t2) attributes \"optional=1\" node \"get\"\n"
		"\t5: return\n";
	begin(&s, program_text("optional(seq(f32[?]))", "t1 is \"seq(f32[?])\"", lines));
	struct lathe_value optional = {.kind = LATHE_OPTIONAL, .count = 1, .elements = &in};
	ck_assert_msg(run(&s, &optional, &out) == 0, "%s", s.error.text);
	ck_assert_int_eq((int)((struct lathe_value *)out.data)->count, 2);
	optional.count = 0;
	ck_assert(run(&s, &optional, &out) == LATHE_ERROR_RUNTIME);
	ck_assert_ptr_nonnull(strstr(s.error.text, "node 'get'"));
	ck_assert_ptr_nonnull(strstr(s.error.text, "an optional without a value"));
	optional.count = 2;
	ck_assert(run(&s, &optional, &out) == LATHE_ERROR_INPUT);
	finish(&s);
}
END_TEST

START_TEST(maps_come_in_any_order)
{
	struct session s;
	int64_t keys[] = {7, -2, 7, 3};
	float values[] = {70, -20, 71, 30};
	struct lathe_value pair[2] = {tensor_value(LATHE_I64, 1, 4, keys, sizeof(keys)),
				      tensor_value(LATHE_F32, 1, 4, values, sizeof(values))};
	struct lathe_value in = {.kind = LATHE_MAP, .count = 2, .elements = pair};
	struct lathe_tensor out = {0};
	begin(&s, program_text("map(i64, f32[])", "t1 is \"map(i64, f32[])\"", "\t3: copy t1 from t0\n\t4: return\n"));
	ck_assert_msg(run(&s, &in, &out) == 0, "%s", s.error.text);
	const struct lathe_value *got = out.data;
	ck_assert(got->kind == LATHE_MAP && got->count == 2 && got->elements[0].tensor.dims[0] == 3);
	static const int64_t sorted[] = {-2, 3, 7};
	static const float theirs[] = {-20, 30, 71}; /* of equal keys the last counts */
	ck_assert(memcmp(got->elements[0].tensor.data, sorted, sizeof(sorted)) == 0);
	ck_assert(memcmp(got->elements[1].tensor.data, theirs, sizeof(theirs)) == 0);
	pair[1].tensor.dims[0] = 3;
	ck_assert(run(&s, &in, &out) == LATHE_ERROR_INPUT);
	in.count = 1;
	ck_assert(run(&s, &in, &out) == LATHE_ERROR_INPUT);
	finish(&s);
}
END_TEST

START_TEST(programs_that_break_rules_are_refused)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"f32[?]x", "t1 is \"seq(f32[*])\""}, {"seq(f32[*])", "t1"}, {"seq(f32[*])", "t2 is \"seq(f32[*])\""},
		{"seq(f32[*]", "t1 is \"seq(f32[*])\""}, {"map(f32, f32[])", "t1 is \"seq(f32[*])\""},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct lathe_executable *executable = NULL;
		struct lathe_error error;
		const char *text = program_text(cases[i].in, cases[i].out, "\t3: copy t1 from t0\n\t4: return\n");
		ck_assert_msg(open_text(text, &executable, &error) == LATHE_ERROR_EXECUTABLE, "case %zu", i);
	}
}
END_TEST

/* ---- types and files ---- */

START_TEST(types_print_as_they_are_read)
{
	static const char *const good[] = {"seq(f32[*])", "optional(seq(i32[?, 4]))", "seq(map(string, f32[]))",
					   "map(i64, string[])", "seq(seq(u4[0]))", "f16[1, 2, 3]"};
	static const char *const bad[] = {"",
					  "seq",
					  "seq()",
					  "seq(f32)",
					  "seq(f32[*]))",
					  "seq(f32[-1])",
					  "seq(object[])",
					  "map(f32, f32[])",
					  "seq(f32[99999999999999999999])",
					  "seq(f32[1 2])",
					  "seq(map(word. f32[]))",
					  "seq(seq(seq(seq(seq(seq(seq(seq(seq(f32[])))))))))"};
	struct lth_value_type type;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct lth_buf text = {0};
		ck_assert_msg(lth_value_type_parse(good[i], &type), "%s", good[i]);
		lth_value_type_print(&type, &text);
		ck_assert_str_eq(lth_buf_text(&text), good[i]);
		lth_buf_free(&text);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(!lth_value_type_parse(bad[i], &type), "%s", bad[i]);
}
END_TEST

static struct lth_value_type type_of(const char *text)
{
	struct lth_value_type type;
	ck_assert(lth_value_type_parse(text, &type));
	return type;
}

/* Written, read again, and written as the same bytes; every shorter text is refused or another value, never a crash. */
static void check_round(const struct lathe_value *value, const char *text)
{
	const struct lth_value_type type = type_of(text);
	struct lth_buf first = {0}, second = {0};
	struct lathe_value again;
	struct lth_diag diag = {0};
	char line[4096];
	ck_assert(lth_value_write(value, &type, "v", &first, &diag) == LTH_OK);
	enum lth_code code = lth_value_read(first.data, first.size, &type, &again, &diag);
	ck_assert_msg(code == LTH_OK, "%s: %s", text, lth_diag_line(&diag, line, sizeof(line)));
	ck_assert(lth_value_write(&again, &type, "v", &second, &diag) == LTH_OK);
	ck_assert(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
	lth_value_free(&again);
	for (size_t size = 0; size < first.size; size++) {
		char *cut = malloc(size + 1); /* of exactly so many bytes, for the sanitizers */
		memcpy(cut, first.data, size);
		diag = (struct lth_diag){0};
		if (lth_value_read(cut, size, &type, &again, &diag) == LTH_OK)
			lth_value_free(&again);
		free(cut);
	}
	lth_buf_free(&first);
	lth_buf_free(&second);
}

START_TEST(values_are_read_as_they_are_written)
{
	struct lathe_value elements[2], list = two_tensors(elements), lists[2] = {list, list};
	struct lathe_value empty = {.kind = LATHE_SEQUENCE}, none = {.kind = LATHE_OPTIONAL};
	struct lathe_value some = {.kind = LATHE_OPTIONAL, .count = 1, .elements = &list};
	struct lathe_value nested = {.kind = LATHE_SEQUENCE, .count = 2, .elements = lists};
	int64_t ints[] = {-5, 9};
	struct {
		struct lathe_string text[2];
	} strings = {{{"a", 1}, {"bc", 2}}};
	struct lathe_value by_int[2] = {tensor_value(LATHE_I64, 1, 2, ints, sizeof(ints)),
					tensor_value(LATHE_F32, 1, 2, second_data, sizeof(second_data))};
	struct lathe_value by_name[2] = {tensor_value(LATHE_STRING, 1, 2, &strings, sizeof(strings)), by_int[0]};
	struct lathe_value maps[2] = {{.kind = LATHE_MAP, .count = 2, .elements = by_name},
				      {.kind = LATHE_MAP, .count = 2, .elements = by_name}};
	struct lathe_value words = {.kind = LATHE_SEQUENCE, .count = 1, .elements = by_name};
	struct lathe_value rows = {.kind = LATHE_SEQUENCE, .count = 2, .elements = maps};
	struct lathe_value map = {.kind = LATHE_MAP, .count = 2, .elements = by_int};
	check_round(&list, "seq(f32[*])");
	check_round(&empty, "seq(f32[*])");
	check_round(&none, "optional(f32[3])");
	check_round(&some, "optional(seq(f32[?]))");
	check_round(&nested, "seq(seq(f32[?]))");
	check_round(&words, "seq(string[?])");
	check_round(&map, "map(i64, f32[])");
	check_round(&rows, "seq(map(string, i64[]))");
}
END_TEST

START_TEST(files_of_another_kind_are_refused)
{
	static const unsigned char map_in_sequence[] = {0x10, 4, 0x32, 0}, two_values[] = {0x1a, 0, 0x1a, 0};
	static const unsigned char unlike[] = {0x2a, 8, 0x10, 7, 0x18, 1, 0x18, 2, 0x18, 3};
	struct lathe_value value;
	struct lth_diag diag = {0};
	struct lth_value_type type = type_of("seq(f32[*])");
	ck_assert(lth_value_read(map_in_sequence, sizeof(map_in_sequence), &type, &value, &diag) == LTH_BAD_INPUT);
	type = type_of("optional(f32[*])");
	diag = (struct lth_diag){0};
	ck_assert(lth_value_read(two_values, sizeof(two_values), &type, &value, &diag) == LTH_BAD_INPUT);
	type = type_of("map(i64, f32[])");
	diag = (struct lth_diag){0};
	ck_assert(lth_value_read(unlike, sizeof(unlike), &type, &value, &diag) != LTH_OK);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("objects");
	TCase *c = tcase_create("all");
	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, lists_never_change);
	tcase_add_test(c, putting_behind_the_last_shares);
	tcase_add_test(c, handles_are_looked_up);
	tcase_add_test(c, a_sequence_goes_through);
	tcase_add_test(c, an_element_is_taken_out);
	tcase_add_test(c, memory_that_was_never_written_names_nothing);
	tcase_add_test(c, wrong_values_are_refused);
	tcase_add_test(c, optionals_have_a_value_or_none);
	tcase_add_test(c, maps_come_in_any_order);
	tcase_add_test(c, programs_that_break_rules_are_refused);
	tcase_add_test(c, types_print_as_they_are_read);
	tcase_add_test(c, values_are_read_as_they_are_written);
	tcase_add_test(c, files_of_another_kind_are_refused);
	suite_add_tcase(suite, c);
	return run_suite(suite);
}
