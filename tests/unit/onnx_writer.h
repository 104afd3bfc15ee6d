/* Writes ONNX files for tests, field by field, so that valid and hostile models are a few lines of C. A message is a
 * buffer; writing one into another copies and frees it. Failure of the heap ends the test program. */
#ifndef LTH_TESTS_ONNX_WRITER_H
#define LTH_TESTS_ONNX_WRITER_H

#include "runtime/base/buf.h"

struct lth_buf ow_message(void);
void ow_int(struct lth_buf *message, unsigned field, int64_t value);
void ow_float(struct lth_buf *message, unsigned field, float value);
void ow_bytes(struct lth_buf *message, unsigned field, const void *bytes, size_t size);
void ow_text(struct lth_buf *message, unsigned field, const char *text);
void ow_sub(struct lth_buf *message, unsigned field, struct lth_buf sub); /* takes sub */

/* A tensor type; a dimension is a number, or a name where `names` has one. */
struct lth_buf ow_input(const char *name, int element_type, int rank, const int64_t *dims, const char *const *names);
/* `raw` NULL: no data field yet. */
struct lth_buf ow_tensor(const char *name, int data_type, int rank, const int64_t *dims, const void *raw, size_t size);
/* Names separated by spaces; "-" is an absent operand. */
struct lth_buf ow_node(const char *op, const char *name, const char *inputs, const char *outputs);
void ow_attr_int(struct lth_buf *node, const char *name, int64_t value);
void ow_attr_ints(struct lth_buf *node, const char *name, const int64_t *list, size_t count);
void ow_attr_graph(struct lth_buf *node, const char *name, struct lth_buf graph); /* takes graph */
void ow_attr_ref(struct lth_buf *node, const char *name, const char *of_function, int type);
/* A whole model around a graph, which it takes. opset 0: none named. */
struct lth_buf ow_model(struct lth_buf graph, int64_t opset);

/* Field numbers of the messages that tests write themselves. */
enum {
	OW_GRAPH_NODE = 1,
	OW_GRAPH_NAME = 2,
	OW_GRAPH_INITIALIZER = 5,
	OW_GRAPH_INPUT = 11,
	OW_GRAPH_OUTPUT = 12,
	OW_GRAPH_SPARSE = 15,
	OW_MODEL_FUNCTION = 25
};

#endif
