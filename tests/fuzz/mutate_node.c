/* New nodes for the mutator of models: any operator of the table, with as many operands as it takes, picked from what the
 * graph defines or made as constants, attributes that its row allows (mostly), regions copied from the model, and results
 * that become the graph's. What is wrong with such a node is seldom its form, so that inference and lowering get to work. */
#include "tests/fuzz/mutate.h"

#include <stdlib.h>
#include <string.h>

enum { FLOAT = 1, INT = 2, STRING = 3, TENSOR = 4, GRAPH = 5, FLOATS = 6, INTS = 7, STRINGS = 8, TYPE = 13 };
enum { F32 = 1, I64 = 7, NUM_ONNX_DTYPES = 25 };

static bool one_in(struct tree *tree, uint32_t chances)
{
	return mutate_pick(tree, chances) == 0;
}

/* Appends to a repeated field of pointers; the list stays as it is when the arena is exhausted. */
static void append(struct tree *tree, void *list_at, size_t *count, void *element)
{
	void **list, **copy = lth_arena_array(tree->arena, *count + 1, sizeof(*copy));
	if (!copy || !element)
		return;
	memcpy(&list, list_at, sizeof(list));
	if (*count)
		memcpy(copy, list, *count * sizeof(*copy));
	copy[(*count)++] = element;
	memcpy(list_at, &copy, sizeof(copy));
}

static void *new_message(struct tree *tree, const ProtobufCMessageDescriptor *kind)
{
	ProtobufCMessage *made = lth_arena_alloc(tree->arena, kind->sizeof_message);
	if (made)
		protobuf_c_message_init(kind, made);
	return made;
}

/* The n-th message of the kind, n at random; NULL without one. */
static void *any_message(struct tree *tree, const ProtobufCMessageDescriptor *kind)
{
	uint32_t start = mutate_pick(tree, tree->num_messages);
	for (uint32_t i = 0; i < tree->num_messages; i++) {
		ProtobufCMessage *found = tree->messages[(start + i) % tree->num_messages];
		if (found->descriptor == kind)
			return found;
	}
	return NULL;
}

static void *copy_any(struct tree *tree, const ProtobufCMessageDescriptor *kind)
{
	const ProtobufCMessage *found = any_message(tree, kind);
	return found ? mutate_copy(tree, found) : NULL;
}

static char *new_name(struct tree *tree)
{
	return lth_arena_printf(tree->arena, "f%u", mutate_pick(tree, 1 << 20));
}

static void fill_dims(struct tree *tree, Lth__Onnx__Tensor *tensor, int64_t *count)
{
	tensor->n_dims = mutate_pick(tree, 3);
	tensor->dims = lth_arena_array(tree->arena, tensor->n_dims + 1, sizeof(*tensor->dims));
	*count = 1;
	for (size_t i = 0; tensor->dims && i < tensor->n_dims; i++) {
		tensor->dims[i] = one_in(tree, 12) ? 0 : 1 + mutate_pick(tree, 4);
		*count *= tensor->dims[i];
	}
}

/* A small constant: mostly of floats or of small integers, as axes, pads and shapes are. */
static Lth__Onnx__Tensor *new_tensor(struct tree *tree)
{
	Lth__Onnx__Tensor *tensor = new_message(tree, &lth__onnx__tensor__descriptor);
	int64_t count = 0;
	if (!tensor)
		return NULL;
	tensor->name = new_name(tree);
	tensor->data_type = one_in(tree, 6) ? (int32_t)mutate_pick(tree, NUM_ONNX_DTYPES) : one_in(tree, 2) ? F32 : I64;
	tensor->has_data_type = 1;
	fill_dims(tree, tensor, &count);
	int64_t *ints = lth_arena_array(tree->arena, (size_t)count + 1, sizeof(*ints));
	float *floats = lth_arena_array(tree->arena, (size_t)count + 1, sizeof(*floats));
	uint8_t *bytes = lth_arena_array(tree->arena, (size_t)count + 1, 16);
	if (!tensor->dims || !ints || !floats || !bytes)
		return NULL;
	for (int64_t i = 0; i < count; i++) {
		ints[i] = one_in(tree, 10) ? mutate_number(tree, 1) : (int64_t)mutate_pick(tree, 4) - one_in(tree, 4);
		floats[i] = one_in(tree, 6) ? (float)mutate_real(tree, 1) : (float)mutate_pick(tree, 8) / 4;
	}
	tensor->n_int64_data = tensor->data_type == I64 ? (size_t)count : 0;
	tensor->int64_data = ints;
	tensor->n_float_data = tensor->data_type == F32 ? (size_t)count : 0;
	tensor->float_data = floats;
	enum lth_dtype dtype = lth_dtype_by_onnx(tensor->data_type);
	int64_t size;
	if (tensor->data_type != I64 && tensor->data_type != F32 && dtype != LTH_NUM_DTYPES &&
	    dtype != LTH_DTYPE_STRING && lth_dtype_bytes(dtype, count, &size)) {
		tensor->has_raw_data = 1;
		tensor->raw_data = (ProtobufCBinaryData){.len = (size_t)size, .data = bytes};
	}
	return tensor;
}

/* A name that the graph defines; "" seldom, and where it defines none. */
static char *operand(struct tree *tree, Lth__Onnx__Graph *graph)
{
	if (one_in(tree, 4)) {
		Lth__Onnx__Tensor *constant = new_tensor(tree);
		append(tree, &graph->initializer, &graph->n_initializer, constant);
		return constant ? constant->name : NULL;
	}
	uint32_t nodes = (uint32_t)graph->n_node, inputs = (uint32_t)graph->n_input;
	uint32_t constants = (uint32_t)graph->n_initializer, at = mutate_pick(tree, nodes + inputs + constants + 1);
	if (at < inputs)
		return graph->input[at]->name;
	if (at < inputs + constants)
		return graph->initializer[at - inputs]->name;
	const Lth__Onnx__Node *node = at < inputs + constants + nodes ? graph->node[at - inputs - constants] : NULL;
	return node && node->n_output ? node->output[mutate_pick(tree, (uint32_t)node->n_output)] : NULL;
}

/* One of the words `a,b,c`; of a range, near one of its ends. */
static char *allowed_word(struct tree *tree, const struct lth_attr_rule *rule)
{
	const char *at = rule->allowed, *end = rule->allowed + rule->allowed_size;
	for (;;) {
		size_t size = 0;
		while (at + size < end && at[size] != ',')
			size++;
		if (at + size == end || one_in(tree, 3))
			return lth_arena_strndup(tree->arena, at, size);
		at += size + 1;
	}
}

static int64_t int_value(struct tree *tree, const struct lth_attr_rule *rule)
{
	if (rule->allowed && !one_in(tree, 12))
		return strtoll(allowed_word(tree, rule), NULL, 10) + (one_in(tree, 3) ? mutate_pick(tree, 4) : 0);
	return one_in(tree, 6) ? mutate_number(tree, 1) : (int64_t)mutate_pick(tree, 5) - one_in(tree, 4);
}

static void set_text(struct tree *tree, Lth__Onnx__Attribute *attribute, const struct lth_attr_rule *rule)
{
	char *word = rule->allowed ? allowed_word(tree, rule) : lth_arena_strdup(tree->arena, "a");
	attribute->type = STRING;
	attribute->has_s = 1;
	attribute->s = (ProtobufCBinaryData){.len = word ? strlen(word) : 0, .data = (uint8_t *)word};
}

static void set_list(struct tree *tree, Lth__Onnx__Attribute *attribute, const struct lth_attr_rule *rule)
{
	size_t count = mutate_pick(tree, 5);
	attribute->ints = lth_arena_array(tree->arena, count + 1, sizeof(*attribute->ints));
	attribute->floats = lth_arena_array(tree->arena, count + 1, sizeof(*attribute->floats));
	attribute->strings = lth_arena_array(tree->arena, count + 1, sizeof(*attribute->strings));
	if (!attribute->ints || !attribute->floats || !attribute->strings)
		return;
	for (size_t i = 0; i < count; i++) {
		attribute->ints[i] = one_in(tree, 12) ? mutate_number(tree, 1) : (int64_t)mutate_pick(tree, 4);
		attribute->floats[i] = (float)mutate_real(tree, 1);
		attribute->strings[i] = (ProtobufCBinaryData){.len = 1, .data = (uint8_t *)lth_arena_strdup(tree->arena, "b")};
	}
	attribute->type = rule->kind == LTH_ATTR_INTS ? INTS : rule->kind == LTH_ATTR_FLOATS ? FLOATS : STRINGS;
	attribute->n_ints = attribute->type == INTS ? count : 0;
	attribute->n_floats = attribute->type == FLOATS ? count : 0;
	attribute->n_strings = attribute->type == STRINGS ? count : 0;
}

static Lth__Onnx__Attribute *new_attribute(struct tree *tree, const struct lth_attr_rule *rule)
{
	Lth__Onnx__Attribute *attribute = new_message(tree, &lth__onnx__attribute__descriptor);
	if (!attribute)
		return NULL;
	attribute->name = lth_arena_strndup(tree->arena, rule->name, rule->name_size);
	attribute->has_type = 1;
	switch (rule->kind) {
	case LTH_ATTR_INT:
		attribute->type = INT;
		attribute->has_i = 1;
		attribute->i = int_value(tree, rule);
		break;
	case LTH_ATTR_FLOAT:
		attribute->type = FLOAT;
		attribute->has_f = 1;
		attribute->f = (float)mutate_real(tree, 1);
		break;
	case LTH_ATTR_STRING:
		set_text(tree, attribute, rule);
		break;
	case LTH_ATTR_TENSOR:
		attribute->type = TENSOR;
		attribute->t = new_tensor(tree);
		break;
	case LTH_ATTR_REGION:
		attribute->type = GRAPH;
		attribute->g = copy_any(tree, &lth__onnx__graph__descriptor);
		break;
	case LTH_ATTR_TYPE:
		attribute->type = TYPE;
		attribute->tp = copy_any(tree, &lth__onnx__type__descriptor);
		break;
	default:
		set_list(tree, attribute, rule);
	}
	return attribute;
}

static void add_attributes(struct tree *tree, Lth__Onnx__Node *node, const struct lth_op *op)
{
	const char *cursor = op->attrs;
	struct lth_attr_rule rule;
	while (lth_attr_rule_next(&cursor, &rule))
		if (rule.required ? !one_in(tree, 16) : one_in(tree, 3))
			append(tree, &node->attribute, &node->n_attribute, new_attribute(tree, &rule));
}

/* Between the least and the most, of a list that has no end a few. */
static uint32_t how_many(struct tree *tree, uint32_t least, uint32_t most)
{
	uint32_t room = most - least < 3 ? most - least : 3;
	return least + mutate_pick(tree, room + 1);
}

/* The results become outputs of the graph: in the place of others, or beside them. */
static void give_results(struct tree *tree, Lth__Onnx__Graph *graph, const Lth__Onnx__Node *node)
{
	for (size_t i = 0; i < node->n_output; i++) {
		if (graph->n_output && one_in(tree, 2)) {
			graph->output[mutate_pick(tree, (uint32_t)graph->n_output)]->name = node->output[i];
			continue;
		}
		Lth__Onnx__ValueInfo *info = new_message(tree, &lth__onnx__value_info__descriptor);
		if (info)
			info->name = node->output[i];
		append(tree, &graph->output, &graph->n_output, info);
	}
}

void mutate_add_node(struct tree *tree)
{
	const struct lth_op *op = &lth_ops[mutate_pick(tree, LTH_NUM_OPS)];
	Lth__Onnx__Graph *graph = any_message(tree, &lth__onnx__graph__descriptor);
	Lth__Onnx__Node *node = new_message(tree, &lth__onnx__node__descriptor);
	if (!graph || !node)
		return;
	node->op_type = lth_arena_strdup(tree->arena, op->name);
	node->domain = lth_arena_strdup(tree->arena, op->domain);
	node->name = new_name(tree);
	for (uint32_t count = how_many(tree, op->min_inputs, op->max_inputs); node->n_input < count;) {
		char *name = operand(tree, graph);
		if (!name && !(name = lth_arena_strdup(tree->arena, "")))
			return;
		append(tree, &node->input, &node->n_input, name);
	}
	for (uint32_t count = how_many(tree, op->min_outputs, op->max_outputs); node->n_output < count;) {
		char *name = new_name(tree);
		if (!name)
			return;
		append(tree, &node->output, &node->n_output, name);
	}
	if (!lth_arena_ok(tree->arena))
		return;
	add_attributes(tree, node, op);
	append(tree, &graph->node, &graph->n_node, node);
	give_results(tree, graph, node);
}
