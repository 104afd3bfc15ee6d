/* Mutates ONNX models as trees of messages, by protobuf-c's descriptors, for the fuzz targets that read them: bytes
 * changed at random seldom come through the wire format, and what does is seldom a graph. A mutation changes one field
 * of one message: a number to one that is near or at an edge, a name to another that the model has, an operator or an
 * attribute to another that Lathe knows; a list loses, repeats or swaps elements; a message is dropped, emptied or
 * replaced by another of its kind from anywhere in the model, so that operands cross, nodes move into subgraphs and
 * functions, and types and constants trade places; a node of any operator is added (mutate_node.c); a dimension, an
 * element type or the operator set becomes another. Crossing two models trades messages between them. */
#include "tests/fuzz/mutate.h"

#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *first, size_t first_size, const uint8_t *second, size_t second_size,
				 uint8_t *out, size_t max_size, unsigned int seed);

enum { MUTATE_ARENA_BYTES = 64 << 20, MAX_CHANGES = 4, MAX_BYTES = 4096 };

uint32_t mutate_pick(struct tree *tree, uint32_t below)
{
	tree->random = tree->random * 6364136223846793005u + 1442695040888963407u;
	return below ? (uint32_t)(tree->random >> 33) % below : 0;
}

static void *arena_alloc(void *arena, size_t size)
{
	return lth_arena_alloc(arena, size);
}

static void arena_free(void *arena, void *memory)
{
	(void)arena;
	(void)memory; /* goes with the arena */
}

static size_t element_size(ProtobufCType type)
{
	switch (type) {
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_DOUBLE:
		return 8;
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_FLOAT:
		return 4;
	case PROTOBUF_C_TYPE_BYTES:
		return sizeof(ProtobufCBinaryData);
	default: /* text and messages; ONNX has no other types */
		return sizeof(void *);
	}
}

static void *member(ProtobufCMessage *message, unsigned offset)
{
	return (char *)message + offset;
}

static void collect_name(struct tree *tree, char *name)
{
	char **names = lth_arena_grow(tree->arena, tree->names, &tree->cap_names, tree->num_names + 1, sizeof(*names));
	if (!names || !name)
		return;
	tree->names = names;
	tree->names[tree->num_names++] = name;
}

static void collect(struct tree *tree, ProtobufCMessage *message)
{
	ProtobufCMessage **messages = lth_arena_grow(tree->arena, tree->messages, &tree->cap_messages,
						     tree->num_messages + 1, sizeof(*messages));
	if (!messages)
		return;
	tree->messages = messages;
	tree->messages[tree->num_messages++] = message;
	for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
		if (field->type != PROTOBUF_C_TYPE_MESSAGE && field->type != PROTOBUF_C_TYPE_STRING)
			continue;
		void **at = member(message, field->offset);
		bool list = field->label == PROTOBUF_C_LABEL_REPEATED;
		size_t count = list ? *(size_t *)member(message, field->quantifier_offset) : *at != NULL;
		void **elements = list ? *at : at;
		for (size_t k = 0; k < count; k++) {
			if (field->type == PROTOBUF_C_TYPE_MESSAGE)
				collect(tree, elements[k]);
			else
				collect_name(tree, elements[k]);
		}
	}
}

/* False for bytes that are no model. */
static bool read_tree(struct tree *tree, const uint8_t *data, size_t size, struct lth_arena *arena, unsigned seed)
{
	ProtobufCAllocator allocator = {arena_alloc, arena_free, arena};
	struct lth_diag diag = {.code = LTH_OK};
	*tree = (struct tree){.arena = arena, .random = seed * 0x9e3779b97f4a7c15u + 1};
	if (lth_onnx_check_wire(data, size, &diag) != LTH_OK)
		return false;
	tree->root = protobuf_c_message_unpack(&lth__onnx__model__descriptor, &allocator, size, data);
	if (tree->root)
		collect(tree, tree->root);
	return tree->root && lth_arena_ok(arena);
}

ProtobufCMessage *mutate_copy(struct tree *tree, const ProtobufCMessage *message)
{
	ProtobufCAllocator allocator = {arena_alloc, arena_free, tree->arena};
	size_t size = protobuf_c_message_get_packed_size(message);
	uint8_t *bytes = lth_arena_alloc(tree->arena, size);
	if (!bytes)
		return NULL;
	protobuf_c_message_pack(message, bytes);
	return protobuf_c_message_unpack(message->descriptor, &allocator, size, bytes);
}

/* Another message of the kind, from anywhere in `from`; seldom, a new one without fields. */
static ProtobufCMessage *other_message(struct tree *tree, const struct tree *from,
				       const ProtobufCMessageDescriptor *kind)
{
	uint32_t start = mutate_pick(tree, from->num_messages);
	for (uint32_t i = 0; i < from->num_messages && (i || mutate_pick(tree, 16)); i++) {
		const ProtobufCMessage *found = from->messages[(start + i) % from->num_messages];
		if (found->descriptor == kind)
			return mutate_copy(tree, found);
	}
	ProtobufCMessage *made = lth_arena_alloc(tree->arena, kind->sizeof_message);
	if (made)
		protobuf_c_message_init(kind, made);
	return made;
}

int64_t mutate_number(struct tree *tree, int64_t old)
{
	static const int64_t edges[] = {0,         1,         -1,        INT32_MAX, INT32_MIN, INT64_MAX,
					INT64_MIN, 1LL << 32, 1LL << 40, 1LL << 62, 255,       65536};
	switch (mutate_pick(tree, 5)) {
	case 0:
		return edges[mutate_pick(tree, sizeof(edges) / sizeof(edges[0]))];
	case 1:
		return (int64_t)((uint64_t)old + 1);
	case 2:
		return (int64_t)((uint64_t)old - 1);
	case 3:
		return (int64_t)(0 - (uint64_t)old);
	default:
		return (int64_t)mutate_pick(tree, 32) - 4;
	}
}

double mutate_real(struct tree *tree, double old)
{
	static const double edges[] = {0, -0.0, 1, -1, 0.5, 1e-30, 1e30, 1e300, __builtin_inf(), -__builtin_inf(),
				       __builtin_nan("")};
	uint32_t choice = mutate_pick(tree, sizeof(edges) / sizeof(edges[0]) + 2);
	return choice < sizeof(edges) / sizeof(edges[0]) ? edges[choice] : choice & 1 ? -old : old * 2;
}

/* An attribute's name in the schema of a random operator. */
static char *known_attribute(struct tree *tree)
{
	const char *cursor = lth_ops[mutate_pick(tree, LTH_NUM_OPS)].attrs;
	struct lth_attr_rule rule;
	while (lth_attr_rule_next(&cursor, &rule))
		if (!mutate_pick(tree, 3))
			return lth_arena_strndup(tree->arena, rule.name, rule.name_size);
	return NULL;
}

static char *other_name(struct tree *tree, ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
	char *name = NULL;
	if (strcmp(field->name, "op_type") == 0 && mutate_pick(tree, 4)) {
		const struct lth_op *op = &lth_ops[mutate_pick(tree, LTH_NUM_OPS)];
		((Lth__Onnx__Node *)message)->domain = lth_arena_strdup(tree->arena, op->domain);
		return lth_arena_strdup(tree->arena, op->name);
	}
	if (message->descriptor == &lth__onnx__attribute__descriptor && mutate_pick(tree, 2))
		name = known_attribute(tree);
	if (!name && tree->num_names && mutate_pick(tree, 16))
		name = tree->names[mutate_pick(tree, tree->num_names)];
	return name ? name : lth_arena_strdup(tree->arena, "");
}

static ProtobufCBinaryData other_bytes(struct tree *tree, ProtobufCBinaryData old)
{
	size_t size = old.len < MAX_BYTES ? old.len : MAX_BYTES;
	uint8_t *copy = lth_arena_alloc(tree->arena, size + 8);
	if (!copy)
		return old;
	if (size)
		memcpy(copy, old.data, size);
	if (size >= 8 && mutate_pick(tree, 2)) { /* as an element of eight bytes, or of four */
		size_t width = mutate_pick(tree, 2) ? 8 : 4, at = mutate_pick(tree, (uint32_t)(size / width)) * width;
		int64_t number = 0;
		memcpy(&number, copy + at, width);
		number = mutate_number(tree, width == 4 ? (int32_t)number : number);
		memcpy(copy + at, &number, width);
	} else if (size && mutate_pick(tree, 2)) {
		copy[mutate_pick(tree, (uint32_t)size)] ^= (uint8_t)(1u << mutate_pick(tree, 8));
	} else if (mutate_pick(tree, 2)) {
		size += 1 + mutate_pick(tree, 8);
	} else {
		size -= size ? 1 + mutate_pick(tree, (uint32_t)size) : 0;
	}
	return (ProtobufCBinaryData){.len = size, .data = copy};
}

static void change_element(struct tree *tree, ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
			   void *at)
{
	switch (field->type) {
	case PROTOBUF_C_TYPE_MESSAGE:
		*(ProtobufCMessage **)at = other_message(tree, tree, field->descriptor);
		break;
	case PROTOBUF_C_TYPE_STRING:
		*(char **)at = other_name(tree, message, field);
		break;
	case PROTOBUF_C_TYPE_BYTES:
		*(ProtobufCBinaryData *)at = other_bytes(tree, *(ProtobufCBinaryData *)at);
		break;
	case PROTOBUF_C_TYPE_FLOAT:
		*(float *)at = (float)mutate_real(tree, *(float *)at);
		break;
	case PROTOBUF_C_TYPE_DOUBLE:
		*(double *)at = mutate_real(tree, *(double *)at);
		break;
	case PROTOBUF_C_TYPE_INT32:
		*(int32_t *)at = (int32_t)mutate_number(tree, *(int32_t *)at);
		break;
	default:
		*(int64_t *)at = mutate_number(tree, *(int64_t *)at);
	}
}

static void change_list(struct tree *tree, ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
	size_t *count = member(message, field->quantifier_offset), size = element_size(field->type);
	char **list = member(message, field->offset), *copy = lth_arena_array(tree->arena, *count + 1, size);
	if (!copy)
		return;
	if (*count)
		memcpy(copy, *list, *count * size);
	*list = copy;
	char *at = copy + mutate_pick(tree, (uint32_t)*count) * size;
	char *other = copy + mutate_pick(tree, (uint32_t)*count) * size;
	char *end = copy + *count * size, swap[sizeof(ProtobufCBinaryData)];
	uint32_t choice = *count ? mutate_pick(tree, 8) : 0;
	if (choice == 0) { /* one more, at the end */
		if (*count)
			memcpy(end, at, size);
		if (!*count || field->type == PROTOBUF_C_TYPE_MESSAGE || mutate_pick(tree, 2))
			change_element(tree, message, field, end);
		++*count;
	} else if (choice == 1) { /* one less */
		memmove(at, at + size, (size_t)(end - at) - size);
		--*count;
	} else if (choice == 2) {
		memcpy(swap, at, size);
		memcpy(at, other, size);
		memcpy(other, swap, size);
	} else if (choice == 3) {
		memcpy(at, other, size);
	} else {
		change_element(tree, message, field, at);
	}
}

/* A dimension, an element type or an operator set: what decides how all else is read. */
static void change_meaning(struct tree *tree)
{
	static const char *const symbols[] = {"n", "m", "k"};
	ProtobufCMessage *message = tree->messages[mutate_pick(tree, tree->num_messages)];
	if (message->descriptor == &lth__onnx__dimension__descriptor) {
		Lth__Onnx__Dimension *dim = (Lth__Onnx__Dimension *)message;
		dim->has_dim_value = mutate_pick(tree, 2) != 0;
		dim->dim_value = mutate_pick(tree, 4) ? mutate_pick(tree, 6) : mutate_number(tree, dim->dim_value);
		dim->dim_param =
			dim->has_dim_value ? NULL : lth_arena_strdup(tree->arena, symbols[mutate_pick(tree, 3)]);
	} else if (message->descriptor == &lth__onnx__tensor_type__descriptor) {
		((Lth__Onnx__TensorType *)message)->elem_type = (int32_t)mutate_pick(tree, 25);
		((Lth__Onnx__TensorType *)message)->has_elem_type = 1;
	} else if (message->descriptor == &lth__onnx__opset_id__descriptor) {
		((Lth__Onnx__OpsetId *)message)->version = 1 + mutate_pick(tree, 28);
		((Lth__Onnx__OpsetId *)message)->has_version = 1;
	}
}

static void change(struct tree *tree)
{
	uint32_t kind = mutate_pick(tree, 6);
	if (kind == 0) {
		mutate_add_node(tree);
		return;
	}
	if (kind == 1) {
		change_meaning(tree);
		return;
	}
	ProtobufCMessage *message = tree->messages[mutate_pick(tree, tree->num_messages)];
	const ProtobufCFieldDescriptor *field =
		&message->descriptor->fields[mutate_pick(tree, message->descriptor->n_fields)];
	if (field->label == PROTOBUF_C_LABEL_REPEATED) {
		change_list(tree, message, field);
		return;
	}
	bool pointer = field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_MESSAGE;
	protobuf_c_boolean *has = pointer ? NULL : member(message, field->quantifier_offset);
	if (!mutate_pick(tree, 8)) {
		if (pointer)
			*(void **)member(message, field->offset) = NULL;
		else
			*has = 0;
		return;
	}
	change_element(tree, message, field, member(message, field->offset));
	if (has)
		*has = 1;
}

/* 0 where it does not fit. */
static size_t write_tree(const struct tree *tree, uint8_t *out, size_t max_size)
{
	size_t size = lth_arena_ok(tree->arena) ? protobuf_c_message_get_packed_size(tree->root) : SIZE_MAX;
	return size <= max_size ? protobuf_c_message_pack(tree->root, out) : 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	struct lth_arena *arena = lth_arena_create(MUTATE_ARENA_BYTES);
	struct tree tree;
	size_t written = 0;
	if (arena && read_tree(&tree, data, size, arena, seed) && mutate_pick(&tree, 32)) {
		for (uint32_t count = 1 + mutate_pick(&tree, MAX_CHANGES); count && lth_arena_ok(arena); count--)
			change(&tree);
		written = write_tree(&tree, data, max_size);
	}
	lth_arena_destroy(&arena);
	return written ? written : LLVMFuzzerMutate(data, size, max_size);
}

/* Lists of the first model get messages of the second. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *first, size_t first_size, const uint8_t *second, size_t second_size,
				 uint8_t *out, size_t max_size, unsigned int seed)
{
	struct lth_arena *arena = lth_arena_create(MUTATE_ARENA_BYTES);
	struct tree tree, other;
	size_t written = 0;
	if (arena && read_tree(&tree, first, first_size, arena, seed) &&
	    read_tree(&other, second, second_size, arena, seed)) {
		for (uint32_t count = 1 + mutate_pick(&tree, MAX_CHANGES); count && lth_arena_ok(arena); count--) {
			ProtobufCMessage *into = tree.messages[mutate_pick(&tree, tree.num_messages)];
			ProtobufCMessage *from = other_message(&tree, &other, into->descriptor);
			if (from)
				memcpy(into, from, into->descriptor->sizeof_message);
		}
		written = write_tree(&tree, out, max_size);
	}
	lth_arena_destroy(&arena);
	return written;
}
