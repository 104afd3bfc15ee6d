/* Cutting ONNX models. See onnx_cut.h. */
#include "api/cli/onnx_cut.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Field numbers of onnx.proto. */
enum { MODEL_GRAPH = 7 };
enum { GRAPH_NODE = 1, GRAPH_INITIALIZER = 5, GRAPH_OUTPUT = 12, GRAPH_VALUE_INFO = 13, GRAPH_SPARSE_INITIALIZER = 15 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OP = 4, NODE_ATTRIBUTE = 5 };
enum { ATTRIBUTE_GRAPH = 6, ATTRIBUTE_GRAPHS = 11 };
enum { TENSOR_NAME = 8, SPARSE_VALUES = 1, VALUE_INFO_NAME = 1 };
enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5, DEEPEST = 16 };

struct field {
	uint64_t number;
	const char *begin, *end; /* of the whole field */
	const char *data; /* its content, of WIRE_BYTES; else NULL */
	size_t size;
};

static bool read_varint(const char **at, const char *end, uint64_t *out)
{
	uint64_t value = 0;
	for (unsigned shift = 0; shift < 64 && *at < end; shift += 7) {
		unsigned char byte = (unsigned char)*(*at)++;
		value |= (uint64_t)(byte & 0x7F) << shift;
		if (!(byte & 0x80)) {
			*out = value;
			return true;
		}
	}
	return false;
}

/* The next field of a message; false at its end and at what is no field (then *at != end). */
static bool next_field(const char **at, const char *end, struct field *out)
{
	const char *from = *at;
	uint64_t tag, value;
	struct field field = {.begin = *at};
	if (*at == end || !read_varint(&from, end, &tag))
		return false;
	field.number = tag >> 3;
	size_t left = (size_t)(end - from), skip = 0;
	switch (tag & 7) {
	case WIRE_VARINT:
		if (!read_varint(&from, end, &value))
			return false;
		break;
	case WIRE_64:
		skip = 8;
		break;
	case WIRE_32:
		skip = 4;
		break;
	case WIRE_BYTES:
		if (!read_varint(&from, end, &value) || value > (uint64_t)(end - from))
			return false;
		left = (size_t)(end - from);
		skip = (size_t)value;
		field.data = from;
		field.size = skip;
		break;
	default:
		return false;
	}
	if (skip > left)
		return false;
	*at = field.end = from + skip;
	*out = field;
	return true;
}

static char *text_of(const struct field *field)
{
	return strndup(field->data, field->size); /* a NUL inside ends it; then no name matches, and the cut says so */
}

/* --- listing */
static bool add_value(struct lth_onnx_scan *scan, const struct field *output, const struct field *name,
		      const struct field *op)
{
	struct lth_onnx_value *values = realloc(scan->values, (scan->num_values + 1) * sizeof(*values));
	if (!values)
		return false;
	scan->values = values;
	struct lth_onnx_value *value = &values[scan->num_values++];
	value->name = text_of(output);
	value->node = name->data ? text_of(name) : strdup("");
	value->op = op->data ? text_of(op) : strdup("");
	return value->name && value->node && value->op;
}

static bool list_node(struct lth_onnx_scan *scan, const struct field *node)
{
	struct field field, name = {0}, op = {0};
	const char *end = node->data + node->size, *at = node->data;
	while (next_field(&at, end, &field)) {
		if (field.number == NODE_NAME && field.data)
			name = field;
		else if (field.number == NODE_OP && field.data)
			op = field;
	}
	at = node->data;
	while (next_field(&at, end, &field))
		if (field.number == NODE_OUTPUT && field.size && !add_value(scan, &field, &name, &op))
			return false;
	return true;
}

enum lth_code lth_onnx_scan(const char *bytes, size_t size, struct lth_onnx_scan *out_scan, struct lth_diag *diag)
{
	struct lth_onnx_scan scan = {.bytes = bytes, .size = size};
	struct field graph, field;
	const char *at = bytes, *end = bytes + size;
	bool complete = true;
	while (complete && next_field(&at, end, &graph)) {
		if (graph.number != MODEL_GRAPH || !graph.data)
			continue;
		const char *in = graph.data, *stop = graph.data + graph.size;
		while (complete && next_field(&in, stop, &field))
			if (field.number == GRAPH_NODE && field.data)
				complete = list_node(&scan, &field);
		complete = complete && in == stop;
	}
	if (complete && at == end && scan.num_values) {
		*out_scan = scan;
		return LTH_OK;
	}
	lth_onnx_scan_free(&scan);
	return lth_diag_fail(diag, LTH_INVALID_MODEL, "model", "an ONNX model with nodes", NULL, "something else");
}

void lth_onnx_scan_free(struct lth_onnx_scan *scan)
{
	for (size_t i = 0; i < scan->num_values; i++) {
		free(scan->values[i].name);
		free(scan->values[i].node);
		free(scan->values[i].op);
	}
	free(scan->values);
	*scan = (struct lth_onnx_scan){0};
}

/* --- cutting. Names that are needed are keys of a JSON object, which serves as a set. */
static void need(json_t *names, const struct field *name)
{
	json_object_setn_new_nocheck(names, name->data, name->size, json_true());
}

static bool needed(const json_t *names, const char *data, size_t size)
{
	return json_object_getn(names, data, size) != NULL;
}

static void need_inputs(json_t *names, const char *data, size_t size, int depth);

/* Nodes of a subgraph read values of the graphs around it. */
static void need_captures(json_t *names, const struct field *attribute, int depth)
{
	struct field graph, node;
	const char *at = attribute->data, *end = attribute->data + attribute->size;
	while (depth < DEEPEST && next_field(&at, end, &graph)) {
		if ((graph.number != ATTRIBUTE_GRAPH && graph.number != ATTRIBUTE_GRAPHS) || !graph.data)
			continue;
		const char *in = graph.data, *stop = graph.data + graph.size;
		while (next_field(&in, stop, &node)) {
			struct field name;
			const char *inside = node.data, *node_end = node.data ? node.data + node.size : NULL;
			if (node.number == GRAPH_NODE && node.data)
				need_inputs(names, node.data, node.size, depth + 1);
			else if (node.number == GRAPH_OUTPUT && node.data) /* may be an outer value itself */
				while (next_field(&inside, node_end, &name))
					if (name.number == VALUE_INFO_NAME && name.data)
						need(names, &name);
		}
	}
}

static void need_inputs(json_t *names, const char *data, size_t size, int depth)
{
	struct field field;
	const char *at = data, *end = data + size;
	while (next_field(&at, end, &field)) {
		if (field.number == NODE_INPUT && field.size)
			need(names, &field);
		else if (field.number == NODE_ATTRIBUTE && field.data)
			need_captures(names, &field, depth);
	}
}

/* Whether a field of the given number inside of `message` is a needed name. */
static bool names_needed(const json_t *names, const struct field *message, uint64_t number)
{
	struct field field;
	const char *at = message->data, *end = message->data + message->size;
	while (next_field(&at, end, &field))
		if (field.number == number && field.data && needed(names, field.data, field.size))
			return true;
	return false;
}

static bool sparse_needed(const json_t *names, const struct field *sparse)
{
	struct field field;
	const char *at = sparse->data, *end = sparse->data + sparse->size;
	while (next_field(&at, end, &field))
		if (field.number == SPARSE_VALUES && field.data && names_needed(names, &field, TENSOR_NAME))
			return true;
	return false;
}

/* Whether this field of the graph goes into the cut. */
static bool is_kept(const json_t *names, const struct field *field)
{
	if (!field->data)
		return true;
	switch (field->number) {
	case GRAPH_NODE:
		return names_needed(names, field, NODE_OUTPUT);
	case GRAPH_INITIALIZER:
		return names_needed(names, field, TENSOR_NAME);
	case GRAPH_SPARSE_INITIALIZER:
		return sparse_needed(names, field);
	case GRAPH_OUTPUT:
		return false;
	case GRAPH_VALUE_INFO:
		return names_needed(names, field, VALUE_INFO_NAME);
	default:
		return true;
	}
}

static void put_varint(struct lth_buf *out, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		lth_buf_u8(out, (uint8_t)(value | 0x80));
	lth_buf_u8(out, (uint8_t)value);
}

static void put_bytes(struct lth_buf *out, unsigned number, const void *data, size_t size)
{
	put_varint(out, (uint64_t)number << 3 | WIRE_BYTES);
	put_varint(out, size);
	lth_buf_append(out, data, size);
}

/* What the model says of a value's type, as a ValueInfoProto; false when it says nothing. */
static bool find_info(const struct field *graph, const char *name, struct field *out)
{
	struct field field, inner;
	const char *at = graph->data, *stop = graph->data + graph->size;
	while (next_field(&at, stop, &field)) {
		if ((field.number != GRAPH_OUTPUT && field.number != GRAPH_VALUE_INFO) || !field.data)
			continue;
		const char *in = field.data, *end = field.data + field.size;
		while (next_field(&in, end, &inner))
			if (inner.number == VALUE_INFO_NAME && inner.data && inner.size == strlen(name) &&
			    memcmp(inner.data, name, inner.size) == 0) {
				*out = field;
				return true;
			}
	}
	return false;
}

/* Outputs with the type that the model gives them, else by name alone: types are inferred. */
static void put_outputs(const struct lth_onnx_scan *scan, size_t begin, size_t end, const struct field *graph,
			struct lth_buf *out)
{
	for (size_t i = begin; i < end; i++) {
		struct lth_buf info = {0};
		struct field known;
		if (find_info(graph, scan->values[i].name, &known)) {
			put_bytes(out, GRAPH_OUTPUT, known.data, known.size);
			continue;
		}
		put_bytes(&info, VALUE_INFO_NAME, scan->values[i].name, strlen(scan->values[i].name));
		put_bytes(out, GRAPH_OUTPUT, lth_buf_text(&info), info.size);
		lth_buf_free(&info);
	}
}

/* Nodes from the last to the first: what a needed node reads is needed. */
static void spread_need(json_t *names, const struct field *nodes, size_t count)
{
	for (size_t i = count; i > 0; i--)
		if (names_needed(names, &nodes[i - 1], NODE_OUTPUT))
			need_inputs(names, nodes[i - 1].data, nodes[i - 1].size, 0);
}

static bool list_nodes(const struct field *graph, struct field **out_nodes, size_t *out_count)
{
	struct field field, *nodes = NULL;
	size_t count = 0, capacity = 0;
	const char *at = graph->data, *stop = graph->data + graph->size;
	while (next_field(&at, stop, &field)) {
		if (field.number != GRAPH_NODE || !field.data)
			continue;
		if (count == capacity) {
			capacity = capacity ? 2 * capacity : 64;
			struct field *grown = realloc(nodes, capacity * sizeof(*nodes));
			if (!grown) {
				free(nodes);
				return false;
			}
			nodes = grown;
		}
		nodes[count++] = field;
	}
	*out_nodes = nodes;
	*out_count = count;
	return true;
}

static bool cut_graph(const struct lth_onnx_scan *scan, size_t begin, size_t end, const struct field *graph,
		      struct lth_buf *out)
{
	struct field field, *nodes;
	json_t *names = json_object();
	size_t count;
	const char *at = graph->data, *stop = graph->data + graph->size;
	bool whole = names && list_nodes(graph, &nodes, &count);
	for (size_t i = begin; whole && i < end; i++)
		json_object_setn_new_nocheck(names, scan->values[i].name, strlen(scan->values[i].name), json_true());
	if (whole) {
		spread_need(names, nodes, count);
		free(nodes);
	}
	while (whole && next_field(&at, stop, &field))
		if (is_kept(names, &field))
			lth_buf_append(out, field.begin, (size_t)(field.end - field.begin));
	put_outputs(scan, begin, end, graph, out);
	json_decref(names);
	return whole;
}

enum lth_code lth_onnx_cut(const struct lth_onnx_scan *scan, size_t begin, size_t end, struct lth_buf *out,
			   struct lth_diag *diag)
{
	struct field field;
	const char *at = scan->bytes, *stop = scan->bytes + scan->size;
	bool whole = true;
	while (whole && next_field(&at, stop, &field)) {
		struct lth_buf graph = {0};
		if (field.number != MODEL_GRAPH || !field.data) {
			lth_buf_append(out, field.begin, (size_t)(field.end - field.begin));
			continue;
		}
		whole = cut_graph(scan, begin, end, &field, &graph) && lth_buf_ok(&graph);
		put_bytes(out, MODEL_GRAPH, lth_buf_text(&graph), graph.size);
		lth_buf_free(&graph);
	}
	return whole && lth_buf_ok(out)
		       ? LTH_OK
		       : lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "model", NULL, NULL, "no memory to cut it");
}
