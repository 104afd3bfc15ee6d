/* See onnx_writer.h. Field numbers are those of the ONNX specification. */
#include "tests/unit/onnx_writer.h"

#include <stdlib.h>
#include <string.h>

struct lth_buf ow_message(void)
{
	return (struct lth_buf){.data = NULL};
}

static void varint(struct lth_buf *message, uint64_t value)
{
	while (value >= 0x80) {
		lth_buf_u8(message, (uint8_t)(value | 0x80));
		value >>= 7;
	}
	lth_buf_u8(message, (uint8_t)value);
	if (!lth_buf_ok(message))
		abort();
}

void ow_int(struct lth_buf *message, unsigned field, int64_t value)
{
	varint(message, (uint64_t)field << 3);
	varint(message, (uint64_t)value);
}

void ow_float(struct lth_buf *message, unsigned field, float value)
{
	varint(message, (uint64_t)field << 3 | 5);
	lth_buf_append(message, &value, sizeof(value));
}

void ow_bytes(struct lth_buf *message, unsigned field, const void *bytes, size_t size)
{
	varint(message, (uint64_t)field << 3 | 2);
	varint(message, size);
	if (size)
		lth_buf_append(message, bytes, size);
}

void ow_text(struct lth_buf *message, unsigned field, const char *text)
{
	ow_bytes(message, field, text, strlen(text));
}

void ow_sub(struct lth_buf *message, unsigned field, struct lth_buf sub)
{
	ow_bytes(message, field, sub.data, sub.size);
	lth_buf_free(&sub);
}

struct lth_buf ow_input(const char *name, int element_type, int rank, const int64_t *dims, const char *const *names)
{
	struct lth_buf shape = ow_message(), tensor = ow_message(), type = ow_message(), info = ow_message();
	for (int i = 0; i < rank; i++) {
		struct lth_buf dim = ow_message();
		if (names && names[i])
			ow_text(&dim, 2, names[i]);
		else if (dims[i] >= 0)
			ow_int(&dim, 1, dims[i]);
		ow_sub(&shape, 1, dim);
	}
	ow_int(&tensor, 1, element_type);
	ow_sub(&tensor, 2, shape);
	ow_sub(&type, 1, tensor);
	ow_text(&info, 1, name);
	ow_sub(&info, 2, type);
	return info;
}

struct lth_buf ow_tensor(const char *name, int data_type, int rank, const int64_t *dims, const void *raw, size_t size)
{
	struct lth_buf tensor = ow_message();
	for (int i = 0; i < rank; i++)
		ow_int(&tensor, 1, dims[i]);
	ow_int(&tensor, 2, data_type);
	ow_text(&tensor, 8, name);
	if (raw)
		ow_bytes(&tensor, 9, raw, size);
	return tensor;
}

static void names(struct lth_buf *node, unsigned field, const char *list)
{
	while (*list) {
		size_t length = strcspn(list, " ");
		bool absent = length == 1 && *list == '-';
		ow_bytes(node, field, list, absent ? 0 : length);
		list += length + (list[length] == ' ');
	}
}

struct lth_buf ow_node(const char *op, const char *name, const char *inputs, const char *outputs)
{
	struct lth_buf node = ow_message();
	names(&node, 1, inputs);
	names(&node, 2, outputs);
	ow_text(&node, 3, name);
	ow_text(&node, 4, op);
	return node;
}

void ow_attr_int(struct lth_buf *node, const char *name, int64_t value)
{
	struct lth_buf attr = ow_message();
	ow_text(&attr, 1, name);
	ow_int(&attr, 3, value);
	ow_int(&attr, 20, 2);
	ow_sub(node, 5, attr);
}

void ow_attr_ints(struct lth_buf *node, const char *name, const int64_t *list, size_t count)
{
	struct lth_buf attr = ow_message();
	ow_text(&attr, 1, name);
	for (size_t i = 0; i < count; i++)
		ow_int(&attr, 8, list[i]);
	ow_int(&attr, 20, 7);
	ow_sub(node, 5, attr);
}

void ow_attr_graph(struct lth_buf *node, const char *name, struct lth_buf graph)
{
	struct lth_buf attr = ow_message();
	ow_text(&attr, 1, name);
	ow_sub(&attr, 6, graph);
	ow_int(&attr, 20, 5);
	ow_sub(node, 5, attr);
}

void ow_attr_ref(struct lth_buf *node, const char *name, const char *of_function, int type)
{
	struct lth_buf attr = ow_message();
	ow_text(&attr, 1, name);
	ow_text(&attr, 21, of_function);
	ow_int(&attr, 20, type);
	ow_sub(node, 5, attr);
}

struct lth_buf ow_model(struct lth_buf graph, int64_t opset)
{
	struct lth_buf model = ow_message(), set = ow_message();
	ow_int(&model, 1, 8);
	if (opset) {
		ow_text(&set, 1, "");
		ow_int(&set, 2, opset);
		ow_sub(&model, 8, set);
	}
	ow_sub(&model, 7, graph);
	return model;
}
