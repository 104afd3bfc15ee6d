/* The structure of an ONNX file's bytes, checked before protobuf-c unpacks them: protobuf-c recurses without a bound
 * and says nothing of where it failed. Every length lies inside its message, every known field has the wire type that
 * its message gives it, names are UTF-8 without NUL, and messages nest at most MAX_DEPTH deep. */
#include "compiler/import/onnx_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MAX_DEPTH = 100 };
enum wire_type { WIRE_VARINT = 0, WIRE_I64 = 1, WIRE_BYTES = 2, WIRE_I32 = 5 };

enum message {
	ENTRY,
	OPSET,
	TENSOR,
	SPARSE,
	DIMENSION,
	SHAPE,
	TENSOR_TYPE,
	ELEMENT,
	MAP,
	TYPE,
	VALUE_INFO,
	ATTRIBUTE,
	NODE,
	GRAPH,
	FUNCTION,
	MODEL,
	NUM_MESSAGES,
	TEXT,
	NUMBERS
};

/* What the length-delimited fields of each message hold: a message, text, or packed numbers. */
static const struct rule {
	enum message parent;
	unsigned field;
	enum message child;
} rules[] = {
	{MODEL, 7, GRAPH},       {MODEL, 8, OPSET},       {MODEL, 25, FUNCTION},
	{OPSET, 1, TEXT},        {GRAPH, 1, NODE},        {GRAPH, 2, TEXT},
	{GRAPH, 5, TENSOR},      {GRAPH, 11, VALUE_INFO}, {GRAPH, 12, VALUE_INFO},
	{GRAPH, 13, VALUE_INFO}, {GRAPH, 15, SPARSE},     {NODE, 1, TEXT},
	{NODE, 2, TEXT},         {NODE, 3, TEXT},         {NODE, 4, TEXT},
	{NODE, 5, ATTRIBUTE},    {NODE, 7, TEXT},         {NODE, 8, TEXT},
	{ATTRIBUTE, 1, TEXT},    {ATTRIBUTE, 5, TENSOR},  {ATTRIBUTE, 6, GRAPH},
	{ATTRIBUTE, 7, NUMBERS}, {ATTRIBUTE, 8, NUMBERS}, {ATTRIBUTE, 10, TENSOR},
	{ATTRIBUTE, 11, GRAPH},  {ATTRIBUTE, 14, TYPE},   {ATTRIBUTE, 15, TYPE},
	{ATTRIBUTE, 21, TEXT},   {ATTRIBUTE, 22, SPARSE}, {ATTRIBUTE, 23, SPARSE},
	{TENSOR, 1, NUMBERS},    {TENSOR, 4, NUMBERS},    {TENSOR, 5, NUMBERS},
	{TENSOR, 7, NUMBERS},    {TENSOR, 8, TEXT},       {TENSOR, 10, NUMBERS},
	{TENSOR, 11, NUMBERS},   {TENSOR, 13, ENTRY},     {ENTRY, 1, TEXT},
	{ENTRY, 2, TEXT},        {SPARSE, 1, TENSOR},     {SPARSE, 2, TENSOR},
	{SPARSE, 3, NUMBERS},    {VALUE_INFO, 1, TEXT},   {VALUE_INFO, 2, TYPE},
	{TYPE, 1, TENSOR_TYPE},  {TYPE, 4, ELEMENT},      {TYPE, 5, MAP},
	{TYPE, 8, TENSOR_TYPE},  {TYPE, 9, ELEMENT},      {TENSOR_TYPE, 2, SHAPE},
	{SHAPE, 1, DIMENSION},   {DIMENSION, 2, TEXT},    {ELEMENT, 1, TYPE},
	{MAP, 2, TYPE},          {FUNCTION, 1, TEXT},     {FUNCTION, 4, TEXT},
	{FUNCTION, 5, TEXT},     {FUNCTION, 6, TEXT},     {FUNCTION, 7, NODE},
	{FUNCTION, 9, OPSET},    {FUNCTION, 10, TEXT},    {FUNCTION, 11, ATTRIBUTE},
	{FUNCTION, 13, TEXT},
};

enum { MAX_FIELD = 32 };

struct walker {
	const uint8_t *bytes;
	struct lth_diag *diag;
	uint8_t children[NUM_MESSAGES][MAX_FIELD]; /* enum message + 1; 0: none */
};

static enum lth_code fail(struct walker *walker, size_t at, const char *expected, const char *found)
{
	char place[48];
	snprintf(place, sizeof(place), "byte %zu", at);
	return lth_diag_fail(walker->diag, LTH_INVALID_MODEL, place, expected, "is this an ONNX file?", "%s", found);
}

/* Reads a varint in [*at, end); false when it does not end there or is too long. */
static bool varint(const uint8_t *bytes, size_t *at, size_t end, uint64_t *out)
{
	uint64_t value = 0;
	for (unsigned shift = 0; shift < 70 && *at < end; shift += 7) {
		uint8_t byte = bytes[(*at)++];
		value |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
		if (!(byte & 0x80)) {
			*out = value;
			return true;
		}
	}
	return false;
}

/* Well-formed UTF-8 without NUL, overlong forms and surrogates. */
static bool is_text(const uint8_t *text, size_t size)
{
	for (size_t i = 0; i < size;) {
		uint8_t lead = text[i++];
		if (lead == 0 || (lead >= 0x80 && lead < 0xc2) || lead > 0xf4)
			return false;
		unsigned more = lead < 0x80 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
		if (size - i < more)
			return false;
		for (unsigned k = 0; k < more; k++)
			if ((text[i + k] & 0xc0) != 0x80)
				return false;
		if ((lead == 0xe0 && text[i] < 0xa0) || (lead == 0xed && text[i] > 0x9f) ||
		    (lead == 0xf0 && text[i] < 0x90) || (lead == 0xf4 && text[i] > 0x8f))
			return false;
		i += more;
	}
	return true;
}

static enum lth_code walk(struct walker *walker, enum message message, size_t at, size_t end, unsigned depth);

static enum lth_code walk_bytes(struct walker *walker, enum message message, uint64_t field, size_t start, size_t end,
				unsigned depth)
{
	unsigned child = field < MAX_FIELD ? walker->children[message][field] : 0u;
	if (child == 0 || child == NUMBERS + 1)
		return LTH_OK;
	if (child == TEXT + 1)
		return is_text(walker->bytes + start, end - start)
			       ? LTH_OK
			       : fail(walker, start, "UTF-8 text without NUL", "a name that is not text");
	return walk(walker, (enum message)(child - 1), start, end, depth + 1);
}

static enum lth_code walk(struct walker *walker, enum message message, size_t at, size_t end, unsigned depth)
{
	if (depth > MAX_DEPTH)
		return fail(walker, at, "messages at most 100 deep", "messages that nest deeper");
	while (at < end) {
		size_t start = at;
		uint64_t key, length;
		if (!varint(walker->bytes, &at, end, &key) || key >> 3 == 0 || key >> 32)
			return fail(walker, start, "a field of a message", "a broken field number");
		bool known = key >> 3 < MAX_FIELD && walker->children[message][key >> 3];
		bool is_message = known && walker->children[message][key >> 3] != NUMBERS + 1;
		if (is_message && (key & 7) != WIRE_BYTES)
			return fail(walker, start, "a field with a length", "a field of another wire type");
		switch (key & 7) {
		case WIRE_VARINT:
			if (!varint(walker->bytes, &at, end, &length))
				return fail(walker, start, "a number", "a number that does not end");
			break;
		case WIRE_I64:
		case WIRE_I32:
			length = (key & 7) == WIRE_I64 ? 8 : 4;
			if (end - at < length)
				return fail(walker, start, "a number", "the end of the message");
			at += (size_t)length;
			break;
		case WIRE_BYTES:
			if (!varint(walker->bytes, &at, end, &length) || length > end - at)
				return fail(walker, start, "a field within its message",
					    "a field longer than what is left: the file is cut or damaged");
			enum lth_code code = walk_bytes(walker, message, key >> 3, at, at + (size_t)length, depth);
			if (code)
				return code;
			at += (size_t)length;
			break;
		default: return fail(walker, start, "wire types 0, 1, 2 or 5", "an unknown wire type");
		}
	}
	return LTH_OK;
}

enum lth_code lth_onnx_check_wire(const uint8_t *bytes, size_t size, struct lth_diag *diag)
{
	struct walker walker = {.bytes = bytes, .diag = diag};
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		walker.children[rules[i].parent][rules[i].field] = (uint8_t)(rules[i].child + 1);
	if (size == 0)
		return fail(&walker, 0, "an ONNX model", "an empty file");
	return walk(&walker, MODEL, 0, size, 0);
}
