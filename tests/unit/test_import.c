/* Importers: both formats give one graph, data in each of its forms, functions, options; and whatever a hostile file
 * holds, a code with a place. The models are written here, byte by byte. */
#include "compiler/import/import.h"
#include "compiler/ops/op.h"
#include "tests/unit/onnx_writer.h"
#include "tests/unit/run_suite.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLOAT = 1, UINT8 = 2, INT64 = 7, STRING = 8, BOOL = 9, INT4 = 22 };

static struct lth_arena *arena;
static struct lth_graph *graph;
static struct lth_diag diag;
static char line[4096];

static void begin(void)
{
	arena = lth_arena_create(64 << 20);
	graph = NULL;
	diag = (struct lth_diag){.code = LTH_OK};
	ck_assert_ptr_nonnull(arena);
}

static void end(void)
{
	lth_arena_destroy(&arena);
}

static enum lth_code import_with(struct lth_buf model, const struct lth_compile_file *files, size_t num_files,
				 const struct lth_import_options *options)
{
	diag = (struct lth_diag){.code = LTH_OK};
	enum lth_code code = lth_import_onnx(model.data, model.size, files, num_files, options, arena, &graph, &diag);
	/* constants may borrow the files, never the model's bytes */
	lth_buf_free(&model);
	lth_diag_line(&diag, line, sizeof(line));
	return code;
}

static enum lth_code import(struct lth_buf model)
{
	return import_with(model, NULL, 0, NULL);
}

static void expect_ok(enum lth_code code)
{
	ck_assert_msg(code == LTH_OK, "%s", line);
}

static void expect_fault(enum lth_code code, enum lth_code expected, const char *words)
{
	ck_assert_msg(code == expected && strstr(line, words), "%d: %s (wanted '%s')", (int)code, line, words);
}

static void expect_text(const char *expected)
{
	struct lth_buf text = {0};
	lth_graph_print(graph, false, &text);
	ck_assert_str_eq(lth_buf_text(&text), expected);
	lth_buf_free(&text);
}

/* y = Relu(x) over a batch. */
static struct lth_buf relu_graph(void)
{
	struct lth_buf g = ow_message();
	ow_text(&g, OW_GRAPH_NAME, "g");
	ow_sub(&g, OW_GRAPH_INPUT,
	       ow_input("x", FLOAT, 2, (const int64_t[]){0, 4}, (const char *const[]){"batch", NULL}));
	ow_sub(&g, OW_GRAPH_NODE, ow_node("Relu", "r", "x", "y"));
	ow_sub(&g, OW_GRAPH_OUTPUT, ow_input("y", FLOAT, 0, NULL, NULL));
	return g;
}

START_TEST(onnx_and_json_give_one_graph)
{
	static const char json[] =
		"{\"format\": \"lathe.graph/1\", \"name\": \"g\", \"opset\": 12,\n"
		" \"dims\": {\"batch\": {\"min\": 1}},\n"
		" \"inputs\": [{\"name\": \"x\", \"type\": \"f32\", \"shape\": [\"batch\", null, 1]}],\n"
		" \"constants\": [{\"name\": \"w\", \"type\": \"f32\", \"shape\": [1], \"values\": [-0.5]}],\n"
		" \"nodes\": [{\"op\": \"Squeeze\", \"name\": \"s\", \"inputs\": [\"x\"], \"outputs\": [\"t\"],\n"
		"   \"attributes\": {\"axes\": [2]}},\n"
		"  {\"op\": \"Add\", \"inputs\": [\"t\", \"w\"], \"outputs\": [\"y\"]}],\n"
		" \"outputs\": [\"y\"]}";
	static const char text[] = "graph \"g\" opset 12\n"
				   "symbol batch in [1, *] hint 1\n"
				   "symbol x[1] in [1, *] hint 1\n"
				   "input %x : f32[batch, x[1], 1]\n"
				   "const %w : f32[1] = [-0.5]\n"
				   "const %s.axes : i64[1] = [2]\n"
				   "%t = Squeeze(%x, %s.axes) : f32[batch, x[1]] node \"s\"\n"
				   "%y = Add(%t, %w) : f32[batch, x[1]]\n"
				   "output %y\n";
	const int64_t axes[] = {2};
	struct lth_buf g = ow_message(), squeeze = ow_node("Squeeze", "s", "x", "t");
	ow_attr_ints(&squeeze, "axes", axes, 1);
	ow_text(&g, OW_GRAPH_NAME, "g");
	ow_sub(&g, OW_GRAPH_INITIALIZER,
	       ow_tensor("w", FLOAT, 1, (const int64_t[]){1}, (const float[]){-0.5f}, 4));
	ow_sub(&g, OW_GRAPH_INPUT,
	       ow_input("x", FLOAT, 3, (const int64_t[]){0, -1, 1}, (const char *const[]){"batch", NULL, NULL}));
	ow_sub(&g, OW_GRAPH_NODE, squeeze);
	ow_sub(&g, OW_GRAPH_NODE, ow_node("Add", "", "t w", "y"));
	ow_sub(&g, OW_GRAPH_OUTPUT, ow_input("y", FLOAT, 0, NULL, NULL));
	expect_ok(import(ow_model(g, 12)));
	expect_text(text);
	enum lth_code code = lth_import_json(json, strlen(json), NULL, 0, NULL, arena, &graph, &diag);
	lth_diag_line(&diag, line, sizeof(line));
	expect_ok(code);
	expect_text(text);
}
END_TEST

START_TEST(data_in_each_of_its_forms)
{
	struct lth_buf g = relu_graph(), typed = ow_tensor("typed", UINT8, 1, (const int64_t[]){3}, NULL, 0);
	struct lth_buf packed = ow_tensor("packed", INT4, 1, (const int64_t[]){3}, NULL, 0);
	struct lth_buf strings = ow_tensor("strings", STRING, 1, (const int64_t[]){1}, NULL, 0);
	for (int i = 1; i <= 3; i++)
		ow_int(&typed, 5, i * 100 > 255 ? 255 : i * 100);
	ow_int(&packed, 5, 0x21);
	ow_int(&packed, 5, 0x03);
	ow_bytes(&strings, 6, "a\0b", 3);
	ow_sub(&g, OW_GRAPH_INITIALIZER, typed);
	ow_sub(&g, OW_GRAPH_INITIALIZER, packed);
	ow_sub(&g, OW_GRAPH_INITIALIZER, strings);
	ow_sub(&g, OW_GRAPH_INITIALIZER, ow_tensor("bools", BOOL, 1, (const int64_t[]){2}, "\0\7", 2));
	for (int i = 0; i < 4; i++) {
		static const char *const names[] = {"typed", "packed", "strings", "bools"};
		ow_sub(&g, OW_GRAPH_OUTPUT, ow_input(names[i], FLOAT, 0, NULL, NULL));
	}
	expect_ok(import(ow_model(g, 17)));
	expect_text("graph \"g\" opset 17\n"
		    "symbol batch in [1, *] hint 1\n"
		    "input %x : f32[batch, 4]\n"
		    "const %typed : u8[3] = [100, 200, 255]\n"
		    "const %packed : i4[3] = hex 2103\n"
		    "const %strings : string[1] = [\"a\\u0000b\"]\n"
		    "const %bools : bool[2] = [0, 1]\n"
		    "%y = Relu(%x) : ?[*] node \"r\"\n"
		    "output %y, %typed, %packed, %strings, %bools\n");
}
END_TEST

static struct lth_buf external_model(const char *location, const char *offset, const char *length)
{
	struct lth_buf g = relu_graph(), tensor = ow_tensor("w", UINT8, 1, (const int64_t[]){2}, NULL, 0);
	const char *const entries[3][2] = {{"location", location}, {"offset", offset}, {"length", length}};
	for (int i = 0; i < 3; i++) {
		struct lth_buf entry = ow_message();
		ow_text(&entry, 1, entries[i][0]);
		ow_text(&entry, 2, entries[i][1]);
		if (*entries[i][1])
			ow_bytes(&tensor, 13, entry.data, entry.size);
		lth_buf_free(&entry);
	}
	ow_int(&tensor, 14, 1);
	ow_sub(&g, OW_GRAPH_INITIALIZER, tensor);
	ow_sub(&g, OW_GRAPH_OUTPUT, ow_input("w", UINT8, 0, NULL, NULL));
	return ow_model(g, 17);
}

START_TEST(external_data_stays_inside_the_request)
{
	const struct lth_compile_file file = {"data/w.bin", "\1\2\3\4", 4};
	expect_ok(import_with(external_model("data/w.bin", "2", "2"), &file, 1, NULL));
	ck_assert_int_eq(memcmp(graph->values[lth_graph_find_value(graph, "w")].constant.data, "\3\4", 2), 0);
	expect_fault(import_with(external_model("data/w.bin", "3", "2"), &file, 1, NULL), LTH_INVALID_MODEL,
		     "offset 3");
	expect_fault(import_with(external_model("data/w.bin", "18446744073709551615", ""), &file, 1, NULL),
		     LTH_INVALID_MODEL, "offset");
	expect_fault(import_with(external_model("data/w.bin", "-1", ""), &file, 1, NULL), LTH_INVALID_MODEL, "digits");
	expect_fault(import_with(external_model("data/w.bin", "", "3"), &file, 1, NULL), LTH_INVALID_MODEL, "3 bytes");
	expect_fault(import_with(external_model("../w.bin", "", ""), &file, 1, NULL), LTH_INVALID_MODEL, "relative");
	expect_fault(import_with(external_model("data/../../w", "", ""), &file, 1, NULL), LTH_INVALID_MODEL,
		     "relative");
	expect_fault(import_with(external_model("/etc/passwd", "", ""), &file, 1, NULL), LTH_INVALID_MODEL, "relative");
	expect_fault(import_with(external_model("other", "", ""), &file, 1, NULL), LTH_MISSING_BLOB, "'other'");
}
END_TEST

START_TEST(initializers_that_are_inputs_are_constants)
{
	struct lth_buf g = relu_graph(), sparse = ow_message();
	ow_sub(&g, OW_GRAPH_INPUT, ow_input("w", FLOAT, 1, (const int64_t[]){1}, NULL));
	ow_sub(&g, OW_GRAPH_INITIALIZER, ow_tensor("w", FLOAT, 1, (const int64_t[]){1}, (const float[]){3}, 4));
	ow_sub(&sparse, 1, ow_tensor("s", FLOAT, 1, (const int64_t[]){2}, (const float[]){5, 6}, 8));
	ow_sub(&sparse, 2, ow_tensor("", INT64, 2, (const int64_t[]){2, 2}, (const int64_t[]){0, 1, 1, 0}, 32));
	ow_int(&sparse, 3, 2);
	ow_int(&sparse, 3, 2);
	ow_sub(&g, OW_GRAPH_SPARSE, sparse);
	ow_sub(&g, OW_GRAPH_OUTPUT, ow_input("w", FLOAT, 0, NULL, NULL));
	ow_sub(&g, OW_GRAPH_OUTPUT, ow_input("s", FLOAT, 0, NULL, NULL));
	expect_ok(import(ow_model(g, 17)));
	expect_text("graph \"g\" opset 17\n"
		    "symbol batch in [1, *] hint 1\n"
		    "input %x : f32[batch, 4]\n"
		    "const %w : f32[1] = [3.0]\n"
		    "const %s : f32[2, 2] = [0.0, 5.0, 6.0, 0.0]\n"
		    "%y = Relu(%x) : ?[*] node \"r\"\n"
		    "output %y, %w, %s\n");
}
END_TEST

/* Shapes that a model declares of its results are not believed, element types must be right. */
START_TEST(results_are_of_the_declared_type)
{
	static const struct {
		int type;
		enum lth_code code;
	} cases[] = {{FLOAT, LTH_OK}, {INT64, LTH_INVALID_GRAPH}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct lth_buf g = ow_message();
		ow_sub(&g, OW_GRAPH_INPUT, ow_input("x", FLOAT, 1, (const int64_t[]){4}, NULL));
		ow_sub(&g, OW_GRAPH_NODE, ow_node("Relu", "a", "x", "y"));
		ow_sub(&g, OW_GRAPH_OUTPUT, ow_input("y", cases[i].type, 2, (const int64_t[]){7, 7}, NULL));
		expect_ok(import(ow_model(g, 17)));
		enum lth_code code = lth_infer_graph(graph, &diag);
		lth_diag_line(&diag, line, sizeof(line));
		expect_fault(code, cases[i].code, code ? "declared as i64, expected f32" : "");
	}
}
END_TEST

START_TEST(nodes_are_ordered_and_cycles_refused)
{
	struct lth_buf g = ow_message();
	ow_sub(&g, OW_GRAPH_INPUT, ow_input("x", FLOAT, 1, (const int64_t[]){4}, NULL));
	ow_sub(&g, OW_GRAPH_NODE, ow_node("Relu", "last", "m", "y"));
	ow_sub(&g, OW_GRAPH_NODE, ow_node("Neg", "first", "x", "m"));
	ow_sub(&g, OW_GRAPH_OUTPUT, ow_input("y", FLOAT, 0, NULL, NULL));
	expect_ok(import(ow_model(g, 17)));
	expect_text("graph \"\" opset 17\n"
		    "input %x : f32[4]\n"
		    "%m = Neg(%x) : ?[*] node \"first\"\n"
		    "%y = Relu(%m) : ?[*] node \"last\"\n"
		    "output %y\n");
	g = ow_message();
	ow_sub(&g, OW_GRAPH_NODE, ow_node("Relu", "a", "q", "p"));
	ow_sub(&g, OW_GRAPH_NODE, ow_node("Relu", "b", "p", "q"));
	expect_fault(import(ow_model(g, 17)), LTH_INVALID_MODEL, "depends on its own result");
	g = ow_message();
	ow_sub(&g, OW_GRAPH_NODE, ow_node("Relu", "self", "p", "p"));
	expect_fault(import(ow_model(g, 17)), LTH_INVALID_MODEL, "self");
}
END_TEST

static struct lth_buf function_of(const char *name, const char *inner_op, const char *inner_domain)
{
	struct lth_buf f = ow_message(), set = ow_message(), node = ow_node(inner_op, "n", "a", "b");
	ow_text(&node, 7, inner_domain);
	ow_attr_ref(&node, "axis", "at", 2);
	ow_text(&f, 1, name);
	ow_text(&f, 10, "my");
	ow_text(&f, 4, "a");
	ow_text(&f, 5, "b");
	ow_text(&f, 6, "at");
	ow_sub(&f, 7, node);
	ow_int(&set, 2, 17);
	ow_sub(&f, 9, set);
	return f;
}

static struct lth_buf calling_model(struct lth_buf function, const char *op)
{
	struct lth_buf g = ow_message(), call = ow_node(op, "call", "x", "y");
	ow_text(&call, 7, "my");
	ow_attr_int(&call, "at", 1);
	ow_sub(&g, OW_GRAPH_INPUT, ow_input("x", FLOAT, 2, (const int64_t[]){2, 3}, NULL));
	ow_sub(&g, OW_GRAPH_NODE, call);
	ow_sub(&g, OW_GRAPH_OUTPUT, ow_input("y", FLOAT, 0, NULL, NULL));
	struct lth_buf model = ow_model(g, 17);
	ow_sub(&model, OW_MODEL_FUNCTION, function);
	return model;
}

START_TEST(functions_are_inlined)
{
	expect_ok(import(calling_model(function_of("F", "Softmax", ""), "F")));
	expect_text("graph \"\" opset 17\n"
		    "input %x : f32[2, 3]\n"
		    "%\"call/b\" = Softmax(%x) {axis: 1} : ?[*] node \"call/n\"\n"
		    "output %\"call/b\"\n");
	expect_fault(import(calling_model(function_of("F", "F", "my"), "F")), LTH_INVALID_MODEL, "calls itself");
}
END_TEST

/* A graph that the function presets for an attribute calls the function: another way to call itself. */
START_TEST(functions_in_presets_are_calls)
{
	struct lth_buf f = function_of("F", "Softmax", ""), g = ow_message(), call = ow_node("F", "again", "q", "r");
	struct lth_buf attribute = ow_message();
	ow_text(&call, 7, "my");
	ow_sub(&g, OW_GRAPH_INPUT, ow_input("q", FLOAT, 0, NULL, NULL));
	ow_sub(&g, OW_GRAPH_NODE, call);
	ow_sub(&g, OW_GRAPH_OUTPUT, ow_input("r", FLOAT, 0, NULL, NULL));
	ow_text(&attribute, 1, "preset");
	ow_sub(&attribute, 6, g);
	ow_sub(&f, 11, attribute);
	expect_fault(import(calling_model(f, "F")), LTH_INVALID_MODEL, "calls itself");
}
END_TEST

/* f1 to f30, each of which calls the one before twice: 2^30 calls, which nobody starts to write. */
static struct lth_buf doubling_model(struct lth_buf first)
{
	struct lth_buf model = calling_model(first, "f30");
	for (int i = 1; i <= 30; i++) {
		char name[16], before[16];
		snprintf(name, sizeof(name), "f%d", i);
		snprintf(before, sizeof(before), "f%d", i - 1);
		struct lth_buf function = function_of(name, before, "my"), second = ow_node(before, "m", "b", "c");
		ow_text(&second, 7, "my");
		ow_sub(&function, 7, second);
		ow_sub(&model, OW_MODEL_FUNCTION, function);
	}
	return model;
}

START_TEST(functions_are_counted_before_they_are_inlined)
{
	struct lth_buf empty = ow_message();
	ow_text(&empty, 1, "f0");
	ow_text(&empty, 10, "my");
	ow_text(&empty, 4, "a");
	ow_text(&empty, 5, "a");
	expect_fault(import(doubling_model(function_of("f0", "Softmax", ""))), LTH_LIMIT_EXCEEDED, "1000000 nodes");
	ck_assert(lth_arena_bytes(arena) < 16u << 20);
	expect_fault(import(doubling_model(empty)), LTH_LIMIT_EXCEEDED, "1000000 nodes");
	ck_assert(lth_arena_bytes(arena) < 16u << 20);
}
END_TEST

START_TEST(options_give_symbols_their_range)
{
	struct lth_import_dim dims[1] = {{"batch", 8, 64, 16, 8}};
	const struct lth_import_options options = {.dims = dims, .num_dims = 1};
	expect_ok(import_with(ow_model(relu_graph(), 17), NULL, 0, &options));
	const struct lth_dim_symbol *symbol = lth_dims_symbol(graph->dims, 0);
	ck_assert(symbol->min == 8 && symbol->max == 64 && symbol->hint == 16 && symbol->multiple == 8);
	dims[0] = (struct lth_import_dim){"batch", 4, 4, -1, 1}; /* a single value is no symbol */
	expect_ok(import_with(ow_model(relu_graph(), 17), NULL, 0, &options));
	ck_assert_uint_eq(lth_dims_num_symbols(graph->dims), 0);
	dims[0].name = "batsh";
	dims[0].max = 8;
	expect_fault(import_with(ow_model(relu_graph(), 17), NULL, 0, &options), LTH_INVALID_OPTION,
		     "did you mean 'batch'");
	dims[0] = (struct lth_import_dim){"batch", 5, 7, -1, 8};
	expect_fault(import_with(ow_model(relu_graph(), 17), NULL, 0, &options), LTH_INVALID_OPTION, "multiple");
	dims[0] = (struct lth_import_dim){"batch", 9, 7, -1, 1};
	expect_fault(import_with(ow_model(relu_graph(), 17), NULL, 0, &options), LTH_INVALID_OPTION, "min 9, max 7");
}
END_TEST

START_TEST(missing_operators_come_in_one_message)
{
	struct lth_buf g = relu_graph(), branch = ow_message(), holder = ow_node("NoSuchHolder", "h", "x", "d");
	ow_sub(&branch, OW_GRAPH_NODE, ow_node("NoSuchInner", "i", "x", "e"));
	ow_sub(&branch, OW_GRAPH_OUTPUT, ow_input("e", FLOAT, 0, NULL, NULL));
	ow_attr_graph(&holder, "then_branch", branch);
	ow_sub(&g, OW_GRAPH_NODE, ow_node("NoSuchOp", "first", "x", "a"));
	ow_sub(&g, OW_GRAPH_NODE, ow_node("NoSuchOp", "second", "a", "b"));
	ow_sub(&g, OW_GRAPH_NODE, holder);
	expect_fault(
		import(ow_model(g, 17)), LTH_UNSUPPORTED_OP,
		"NoSuchOp (ai.onnx opset 17, 2 nodes, first 'first'), NoSuchInner (ai.onnx opset 17, 1 node, first "
		"'i'), NoSuchHolder");
}
END_TEST

/* ---- hostile files ---- */

START_TEST(wrong_structure_is_refused_with_a_place)
{
	struct lth_buf g = ow_message();
	ow_sub(&g, OW_GRAPH_NODE, ow_node("Relu", "r", "nothing", "y"));
	expect_fault(import(ow_model(g, 17)), LTH_INVALID_MODEL, "r: found a use of 'nothing'");
	g = relu_graph();
	ow_sub(&g, OW_GRAPH_NODE, ow_node("Neg", "again", "x", "y"));
	expect_fault(import(ow_model(g, 17)), LTH_INVALID_MODEL, "second definition of 'y'");
	g = relu_graph();
	ow_sub(&g, OW_GRAPH_INPUT, ow_input("x", FLOAT, 0, NULL, NULL));
	expect_fault(import(ow_model(g, 17)), LTH_INVALID_MODEL, "second definition of 'x'");
	g = relu_graph();
	ow_sub(&g, OW_GRAPH_OUTPUT, ow_input("absent", FLOAT, 0, NULL, NULL));
	expect_fault(import(ow_model(g, 17)), LTH_INVALID_MODEL, "absent");
	g = relu_graph();
	ow_sub(&g, OW_GRAPH_NODE, ow_node("Relu", "many", "x x x", "z"));
	expect_fault(import(ow_model(g, 17)), LTH_INVALID_GRAPH, "Relu with 3 inputs");
	expect_fault(import(ow_message()), LTH_INVALID_MODEL, "byte 0");
	g = ow_message();
	ow_int(&g, 1, 8);
	expect_fault(import(g), LTH_INVALID_MODEL, "without one");
	expect_fault(import(ow_model((struct lth_buf){0}, 29)), LTH_UNSUPPORTED, "up to 28");
}
END_TEST

START_TEST(wrong_tensors_are_refused)
{
	static const struct {
		int type, rank;
		int64_t dims[3];
		size_t bytes;
		const char *words;
	} cases[] = {
		{99, 1, {1}, 4, "data type 99"},
		{FLOAT, 1, {2}, 4, "4 bytes, the shape needs 8"},
		{FLOAT, 1, {-1}, 4, "dimension -1"},
		{FLOAT, 3, {INT64_C(1) << 40, INT64_C(1) << 40, 2}, 4, "overflows"},
		{FLOAT, 2, {INT64_C(1) << 31, INT64_C(1) << 31}, 4, "overflows"},
		{FLOAT, 2, {INT64_C(1) << 30, INT64_C(1) << 20}, 4, "the shape needs"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct lth_buf g = relu_graph();
		ow_sub(&g, OW_GRAPH_INITIALIZER,
		       ow_tensor("w", cases[i].type, cases[i].rank, cases[i].dims, "\0\0\0\0\0\0\0", cases[i].bytes));
		expect_fault(import(ow_model(g, 17)), LTH_INVALID_MODEL, cases[i].words);
	}
}
END_TEST

/* If in If around a graph, which it takes. */
static struct lth_buf branches(int depth, struct lth_buf inner)
{
	for (int i = 0; i < depth; i++) {
		struct lth_buf outer = ow_message(), node = ow_node("If", "n", "", "y");
		ow_attr_graph(&node, "then_branch", inner);
		ow_sub(&outer, OW_GRAPH_NODE, node);
		inner = outer;
	}
	return inner;
}

START_TEST(deep_nesting_is_refused)
{
	expect_fault(import(ow_model(branches(200, ow_message()), 17)), LTH_INVALID_MODEL, "deep");
	/* functions whose bodies are each within the limit of a file */
	struct lth_buf model = calling_model(function_of("f0", "Softmax", ""), "f9");
	for (int i = 1; i < 10; i++) {
		char name[16], before[16];
		snprintf(name, sizeof(name), "f%d", i);
		snprintf(before, sizeof(before), "f%d", i - 1);
		struct lth_buf f = ow_message(), body = ow_message(), node = ow_node("If", "n", "", "b");
		struct lth_buf call = ow_node(before, "call", "a", "c");
		ow_text(&call, 7, "my");
		ow_sub(&body, OW_GRAPH_NODE, call);
		ow_attr_graph(&node, "then_branch", branches(10, body));
		ow_text(&f, 1, name);
		ow_text(&f, 10, "my");
		ow_text(&f, 4, "a");
		ow_sub(&f, 7, node);
		ow_sub(&model, OW_MODEL_FUNCTION, f);
	}
	expect_fault(import(model), LTH_INVALID_MODEL, "32 deep");
	struct lth_buf type = ow_message(), info = ow_message(), g = ow_message();
	for (int i = 0; i < 5000; i++) {
		struct lth_buf element = ow_message(), outer = ow_message();
		ow_sub(&element, 1, type);
		ow_sub(&outer, 4, element);
		type = outer;
	}
	ow_text(&info, 1, "x");
	ow_sub(&info, 2, type);
	ow_sub(&g, OW_GRAPH_INPUT, info);
	expect_fault(import(ow_model(g, 17)), LTH_INVALID_MODEL, "deep");
}
END_TEST

START_TEST(memory_has_a_cap)
{
	struct lth_buf g = relu_graph(), sparse = ow_message();
	ow_sub(&sparse, 1, ow_tensor("s", FLOAT, 1, (const int64_t[]){0}, "", 0));
	ow_sub(&sparse, 2, ow_tensor("", INT64, 1, (const int64_t[]){0}, "", 0));
	ow_int(&sparse, 3, INT64_C(1) << 40);
	ow_sub(&g, OW_GRAPH_SPARSE, sparse);
	expect_fault(import(ow_model(g, 17)), LTH_OUT_OF_MEMORY, "memory");
}
END_TEST

/* Every prefix and many damaged copies of a model that has a bit of everything: never a crash. */
START_TEST(damage_is_never_a_crash)
{
	struct lth_buf model = calling_model(function_of("F", "Softmax", ""), "F");
	struct lth_buf g = relu_graph(), holder = ow_node("If", "h", "x", "d");
	ow_attr_graph(&holder, "then_branch", relu_graph());
	ow_sub(&g, OW_GRAPH_NODE, holder);
	ow_sub(&g, OW_GRAPH_INITIALIZER, ow_tensor("w", FLOAT, 1, (const int64_t[]){2}, (const float[]){1, 2}, 8));
	ow_sub(&model, 7, g);
	const char *given = getenv("LATHE_SEED");
	uint64_t state = given ? strtoull(given, NULL, 0) : 7;
	printf("LATHE_SEED=%" PRIu64 "\n", state);
	for (size_t round = 0; round < model.size + 3000; round++) {
		struct lth_buf copy = ow_message();
		bool prefix = round < model.size;
		lth_buf_append(&copy, model.data, prefix ? round : model.size);
		for (int i = 0; i < 3 && !prefix; i++) {
			state = state * 6364136223846793005u + 1442695040888963407u;
			copy.data[(state >> 33) % copy.size] ^= (char)(1u << (state >> 29) % 8);
		}
		lth_arena_destroy(&arena);
		arena = lth_arena_create(16 << 20);
		enum lth_code code = import(copy);
		ck_assert(code == diag.code);
	}
	lth_buf_free(&model);
}
END_TEST

/* The n-th allocation fails, for every n: a code, never a crash. */
START_TEST(each_allocation_may_fail)
{
	for (size_t n = 1;; n++) {
		lth_arena_destroy(&arena);
		arena = lth_arena_create(0);
		lth_arena_fail_after(arena, n);
		enum lth_code code = import(calling_model(function_of("F", "Softmax", ""), "F"));
		if (code == LTH_OK)
			break;
		ck_assert_msg(code == LTH_OUT_OF_MEMORY, "%s", line);
	}
}
END_TEST

static void json_fault(const char *text, enum lth_code expected, const char *words)
{
	diag = (struct lth_diag){.code = LTH_OK};
	enum lth_code code = lth_import_json(text, strlen(text), NULL, 0, NULL, arena, &graph, &diag);
	lth_diag_line(&diag, line, sizeof(line));
	expect_fault(code, expected, words);
}

START_TEST(json_faults_have_line_and_column)
{
	json_fault("{\"opset\": 17,\n \"opset\": 18}", LTH_INVALID_JSON, "2:");
	json_fault("{\"opset\": 17,\n \"nodes\": [{\"op\": \"Relu\", \"inputs\": [\"q\"], \"outputs\": [\"y\"]}]}",
		   LTH_INVALID_JSON, "2:38: found a use of 'q'");
	json_fault("{\"opset\": 17,\n\n  \"node\": []}", LTH_INVALID_JSON,
		   "3:11: found unknown member 'node', expected did you mean 'nodes'?");
	json_fault("[1, 2", LTH_INVALID_JSON, "1:");
	json_fault("{\"opset\": 17, \"inputs\": [{\"name\": \"x\", \"type\": \"f33\"}]}", LTH_INVALID_JSON, "f33");
	json_fault("{\"opset\": 17, \"constants\": [{\"name\": \"c\", \"type\": \"f32\", \"shape\": [2], \"values\": "
		   "[1]}]}",
		   LTH_INVALID_JSON, "1 values for 2 elements");
	json_fault("{\"opset\": 17, \"constants\": [{\"name\": \"c\", \"type\": \"f16\", \"shape\": [1], \"base64\": "
		   "\"AA=\"}]}",
		   LTH_INVALID_JSON, "base64");
	json_fault("{\"opset\": 17, \"constants\": [{\"name\": \"c\", \"type\": \"u8\", \"shape\": [1], \"values\": "
		   "[256]}]}",
		   LTH_INVALID_JSON, "a value of the constant's type");
	json_fault("{\"opset\": 17, \"constants\": [{\"name\": \"c\", \"type\": \"u8\", \"shape\": [1], \"digest\": "
		   "\"sha256:00\"}]}",
		   LTH_MISSING_BLOB, "sha256:00");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("import");
	TCase *cases = tcase_create("import");
	tcase_set_timeout(cases, 240);
	tcase_add_checked_fixture(cases, begin, end);
	tcase_add_test(cases, onnx_and_json_give_one_graph);
	tcase_add_test(cases, data_in_each_of_its_forms);
	tcase_add_test(cases, external_data_stays_inside_the_request);
	tcase_add_test(cases, initializers_that_are_inputs_are_constants);
	tcase_add_test(cases, results_are_of_the_declared_type);
	tcase_add_test(cases, nodes_are_ordered_and_cycles_refused);
	tcase_add_test(cases, functions_are_inlined);
	tcase_add_test(cases, functions_in_presets_are_calls);
	tcase_add_test(cases, functions_are_counted_before_they_are_inlined);
	tcase_add_test(cases, options_give_symbols_their_range);
	tcase_add_test(cases, missing_operators_come_in_one_message);
	tcase_add_test(cases, wrong_structure_is_refused_with_a_place);
	tcase_add_test(cases, wrong_tensors_are_refused);
	tcase_add_test(cases, deep_nesting_is_refused);
	tcase_add_test(cases, memory_has_a_cap);
	tcase_add_test(cases, damage_is_never_a_crash);
	tcase_add_test(cases, each_allocation_may_fail);
	tcase_add_test(cases, json_faults_have_line_and_column);
	suite_add_tcase(suite, cases);
	return run_suite(suite);
}
