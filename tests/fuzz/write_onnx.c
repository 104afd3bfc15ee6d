/* Writes the seeds of the ONNX fuzz target, one small model a file: operators of several versions, data in its forms, a
 * function, graphs inside a node. Usage: write_onnx DIRECTORY */
#include "tests/unit/onnx_writer.h"

#include "runtime/base/io.h"

#include <stdio.h>
#include <stdlib.h>

enum { FLOAT = 1, INT64 = 7, BOOL = 9 };

static struct lth_buf chain(const char *first, const char *second)
{
	struct lth_buf g = ow_message();
	ow_text(&g, OW_GRAPH_NAME, "g");
	ow_sub(&g, OW_GRAPH_INPUT, ow_input("x", FLOAT, 2, (const int64_t[]){0, 4}, (const char *const[]){"n", NULL}));
	ow_sub(&g, OW_GRAPH_INITIALIZER,
	       ow_tensor("w", FLOAT, 2, (const int64_t[]){4, 4},
			 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", 64));
	ow_sub(&g, OW_GRAPH_NODE, ow_node(first, "a", "x w", "m"));
	ow_sub(&g, OW_GRAPH_NODE, ow_node(second, "b", "m", "y"));
	ow_sub(&g, OW_GRAPH_OUTPUT, ow_input("y", FLOAT, 0, NULL, NULL));
	return g;
}

static struct lth_buf branches(void)
{
	struct lth_buf g = chain("MatMul", "Relu"), then_branch = ow_message(), else_branch = ow_message();
	struct lth_buf node = ow_node("If", "if", "c", "z");
	ow_sub(&then_branch, OW_GRAPH_NODE, ow_node("Relu", "t", "y", "t"));
	ow_sub(&then_branch, OW_GRAPH_OUTPUT, ow_input("t", FLOAT, 0, NULL, NULL));
	ow_sub(&else_branch, OW_GRAPH_NODE, ow_node("Neg", "e", "y", "e"));
	ow_sub(&else_branch, OW_GRAPH_OUTPUT, ow_input("e", FLOAT, 0, NULL, NULL));
	ow_attr_graph(&node, "then_branch", then_branch);
	ow_attr_graph(&node, "else_branch", else_branch);
	ow_sub(&g, OW_GRAPH_INPUT, ow_input("c", BOOL, 0, NULL, NULL));
	ow_sub(&g, OW_GRAPH_NODE, node);
	ow_sub(&g, OW_GRAPH_OUTPUT, ow_input("z", FLOAT, 0, NULL, NULL));
	return g;
}

static struct lth_buf with_function(void)
{
	struct lth_buf f = ow_message(), set = ow_message(), body = ow_node("Softmax", "n", "p", "q");
	struct lth_buf g = chain("Add", "F"), call = ow_node("F", "call", "y", "z");
	ow_attr_ref(&body, "axis", "at", 2);
	ow_text(&f, 1, "F");
	ow_text(&f, 10, "my");
	ow_text(&f, 4, "p");
	ow_text(&f, 5, "q");
	ow_text(&f, 6, "at");
	ow_sub(&f, 7, body);
	ow_int(&set, 2, 17);
	ow_sub(&f, 9, set);
	ow_text(&call, 7, "my");
	ow_attr_int(&call, "at", 1);
	ow_sub(&g, OW_GRAPH_NODE, call);
	struct lth_buf model = ow_model(g, 17);
	ow_sub(&model, OW_MODEL_FUNCTION, f);
	return model;
}

static struct lth_buf shapes(void)
{
	struct lth_buf g = chain("Add", "Shape"), squeeze = ow_node("Unsqueeze", "u", "x", "v");
	ow_attr_ints(&squeeze, "axes", (const int64_t[]){0, 1}, 2);
	ow_sub(&g, OW_GRAPH_INITIALIZER,
	       ow_tensor("k", INT64, 1, (const int64_t[]){2}, "\1\0\0\0\0\0\0\0\377\377\377\377\377\377\377\377", 16));
	ow_sub(&g, OW_GRAPH_NODE, squeeze);
	ow_sub(&g, OW_GRAPH_NODE, ow_node("Reshape", "r", "v k", "z"));
	ow_sub(&g, OW_GRAPH_OUTPUT, ow_input("z", FLOAT, 0, NULL, NULL));
	return ow_model(g, 11);
}

static struct lth_buf outside_data(void)
{
	struct lth_buf g = chain("Mul", "Tanh"), entry = ow_message();
	struct lth_buf tensor = ow_tensor("e", FLOAT, 1, (const int64_t[]){4}, NULL, 0);
	ow_text(&entry, 1, "location");
	ow_text(&entry, 2, "w.bin");
	ow_sub(&tensor, 13, entry);
	ow_int(&tensor, 14, 1);
	ow_sub(&g, OW_GRAPH_INITIALIZER, tensor);
	ow_sub(&g, OW_GRAPH_NODE, ow_node("Add", "c", "y e", "z"));
	return ow_model(g, 17);
}

/* What is reckoned by the size of an axis overflows where the axis is as large as can be. */
static struct lth_buf huge_axis(void)
{
	struct lth_buf g = ow_message();
	ow_sub(&g, OW_GRAPH_INPUT, ow_input("x", FLOAT, 4, (const int64_t[]){INT64_MAX, 3, 4, 5}, NULL));
	ow_sub(&g, OW_GRAPH_NODE, ow_node("HardSigmoid", "h", "x", "y"));
	ow_sub(&g, OW_GRAPH_OUTPUT, ow_input("y", FLOAT, 0, NULL, NULL));
	return ow_model(g, 22);
}

static int write_seed(const char *directory, const char *name, struct lth_buf model)
{
	char path[4096];
	struct lth_diag diag = {.code = LTH_OK};
	snprintf(path, sizeof(path), "%s/%s.onnx", directory, name);
	enum lth_code code = lth_write_file(path, model.data, model.size, false, &diag);
	if (code)
		fprintf(stderr, "%s: %s\n", diag.place, diag.found);
	lth_buf_free(&model);
	return code != LTH_OK;
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return EXIT_FAILURE;
	int failed = write_seed(argv[1], "matmul", ow_model(chain("MatMul", "Relu"), 17));
	failed += write_seed(argv[1], "old", ow_model(chain("Add", "Softmax"), 6));
	failed += write_seed(argv[1], "oldest", ow_model(chain("Mul", "Dropout"), 0));
	failed += write_seed(argv[1], "shapes", shapes());
	failed += write_seed(argv[1], "branches", ow_model(branches(), 17));
	failed += write_seed(argv[1], "function", with_function());
	failed += write_seed(argv[1], "outside-data", outside_data());
	failed += write_seed(argv[1], "huge-axis", huge_axis());
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
