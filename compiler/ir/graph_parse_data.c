/* Constants and attribute values of the graph's text form. See graph_parse.h. */
#include "compiler/ir/graph_parse.h"

#include <inttypes.h>
#include <string.h>

/* ---- numbers, strings and lists ---- */

struct element {
	enum { ELEMENT_INT, ELEMENT_FLOAT, ELEMENT_STRING } kind;
	int64_t i;
	double f;
	struct lth_string s;
};

/* An integer has neither point nor exponent. */
static bool parse_number(struct lth_text *text, struct element *out)
{
	const struct lth_text before = *text;
	if (lth_text_int(text, &out->i)) {
		char next = text->at < text->size ? text->text[text->at] : 0;
		out->kind = ELEMENT_INT;
		out->f = (double)out->i;
		if (next != '.' && next != 'e' && next != 'E')
			return true;
		*text = before;
	}
	out->kind = ELEMENT_FLOAT;
	return lth_text_double(text, &out->f);
}

static bool parse_element(struct lth_graph_parser *parser, struct element *out)
{
	if (lth_text_peek(&parser->text) != '"')
		return parse_number(&parser->text, out);
	out->kind = ELEMENT_STRING;
	out->s.data = lth_text_quoted_bytes(&parser->text, parser->arena, &out->s.size);
	return out->s.data != NULL;
}

/* The elements of `[a, b, ...]`. */
static enum lth_code parse_elements(struct lth_graph_parser *parser, struct element **out, uint32_t *out_count)
{
	struct element *list = NULL;
	uint32_t count = 0, capacity = 0;
	enum lth_code code = lth_parse_expect(parser, '[');
	if (code == LTH_OK && !lth_text_take(&parser->text, ']')) {
		do {
			struct element *grown =
				lth_arena_grow(parser->arena, list, &capacity, count + 1, sizeof(*list));
			if (!grown)
				return lth_parse_memory(parser);
			list = grown;
			if (!parse_element(parser, &list[count]))
				return lth_parse_fail(parser, "a number or a string");
			count++;
		} while (lth_text_take(&parser->text, ','));
		code = lth_parse_expect(parser, ']');
	}
	*out = list;
	*out_count = count;
	return code;
}

static enum lth_code list_attr(struct lth_graph_parser *parser, struct lth_attr *out)
{
	struct element *list;
	enum lth_code code = parse_elements(parser, &list, &out->count);
	if (code)
		return code;
	if (out->count == 0)
		return lth_parse_fail(parser, "ints[], floats[] or strings[] for an empty list");
	bool floats = false, strings = list[0].kind == ELEMENT_STRING;
	for (uint32_t i = 0; i < out->count; i++) {
		floats |= list[i].kind == ELEMENT_FLOAT;
		if ((list[i].kind == ELEMENT_STRING) != strings)
			return lth_parse_fail(parser, "a list of one kind");
	}
	int64_t *ints = lth_arena_array(parser->arena, out->count, sizeof(*ints));
	double *doubles = lth_arena_array(parser->arena, out->count, sizeof(*doubles));
	struct lth_string *texts = lth_arena_array(parser->arena, out->count, sizeof(*texts));
	if (!ints || !doubles || !texts)
		return lth_parse_memory(parser);
	for (uint32_t i = 0; i < out->count; i++) {
		ints[i] = list[i].i;
		doubles[i] = list[i].f;
		texts[i] = list[i].s;
	}
	out->kind = strings ? LTH_ATTR_STRINGS : floats ? LTH_ATTR_FLOATS : LTH_ATTR_INTS;
	if (strings)
		out->strings = texts;
	else if (floats)
		out->floats = doubles;
	else
		out->ints = ints;
	return LTH_OK;
}

enum lth_code lth_parse_attr_value(struct lth_graph_parser *parser, struct lth_attr *out)
{
	static const struct {
		const char *word;
		enum lth_attr_kind kind;
	} empty[] = {{"ints", LTH_ATTR_INTS}, {"floats", LTH_ATTR_FLOATS}, {"strings", LTH_ATTR_STRINGS}};
	struct element element = {.i = 0};
	for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++) {
		if (!lth_text_take_string(&parser->text, empty[i].word))
			continue;
		out->kind = empty[i].kind;
		out->count = 0;
		out->ints = lth_arena_alloc(parser->arena, 0);
		enum lth_code code = lth_parse_expect(parser, '[');
		return code ? code : lth_parse_expect(parser, ']');
	}
	if (lth_text_peek(&parser->text) == '[')
		return list_attr(parser, out);
	if (!parse_element(parser, &element))
		return lth_parse_fail(parser, "a number, a string, a list, a constant, a type or a region");
	out->kind = element.kind == ELEMENT_STRING  ? LTH_ATTR_STRING
		    : element.kind == ELEMENT_FLOAT ? LTH_ATTR_FLOAT
						    : LTH_ATTR_INT;
	if (element.kind == ELEMENT_STRING)
		out->s = element.s;
	else if (element.kind == ELEMENT_FLOAT)
		out->f = element.f;
	else
		out->i = element.i;
	return LTH_OK;
}

/* ---- constants ---- */

static bool store(enum lth_dtype dtype, const struct element *element, uint8_t *out, int64_t index)
{
	unsigned bits = lth_dtype_bits(dtype);
	enum lth_dtype_class class = lth_dtype_class(dtype);
	if (dtype == LTH_DTYPE_STRING) {
		memcpy(out + index * (int64_t)sizeof(element->s), &element->s, sizeof(element->s));
		return element->kind == ELEMENT_STRING;
	}
	if (element->kind == ELEMENT_STRING || bits < 8)
		return false;
	if (dtype == LTH_DTYPE_F32) {
		float value = (float)element->f;
		memcpy(out + index * 4, &value, 4);
		return true;
	}
	if (dtype == LTH_DTYPE_F64) {
		memcpy(out + index * 8, &element->f, 8);
		return true;
	}
	bool integer = class == LTH_CLASS_INT || class == LTH_CLASS_UINT || class == LTH_CLASS_BOOL;
	if (!integer || element->kind != ELEMENT_INT)
		return false;
	int64_t low = class == LTH_CLASS_INT ? (int64_t)(UINT64_MAX << (bits - 1)) : 0;
	int64_t high = class == LTH_CLASS_BOOL  ? 1
		       : bits == 64             ? INT64_MAX
		       : class == LTH_CLASS_INT ? ~low
						: (int64_t)((UINT64_C(1) << bits) - 1);
	memcpy(out + index * (bits / 8), &element->i, bits / 8); /* little-endian host */
	return element->i >= low && element->i <= high;
}

static int hex_value(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static enum lth_code parse_hex(struct lth_graph_parser *parser, uint8_t *out, int64_t bytes)
{
	struct lth_text *text = &parser->text;
	lth_text_peek(text);
	if ((uint64_t)bytes > (text->size - text->at) / 2)
		return lth_parse_fail(parser, "two hex digits for each byte");
	for (int64_t i = 0; i < bytes; i++) {
		int high = hex_value(text->text[text->at]), low = hex_value(text->text[text->at + 1]);
		if (high < 0 || low < 0)
			return lth_parse_fail(parser, "two hex digits for each byte");
		out[i] = (uint8_t)(high << 4 | low);
		text->at += 2;
	}
	return LTH_OK;
}

/* The digest stands for bytes that the text leaves out: zeros take their place. */
static enum lth_code parse_digest(struct lth_graph_parser *parser, struct lth_constant *out)
{
	struct lth_text *text = &parser->text;
	lth_text_peek(text);
	size_t start = text->at;
	while (text->at < text->size && text->at - start < 16 && hex_value(text->text[text->at]) >= 0)
		text->at++;
	if (text->at - start != 16)
		return lth_parse_fail(parser, "a digest of 16 hex digits");
	out->digest = lth_arena_strndup(parser->arena, text->text + start, 16);
	return out->digest ? LTH_OK : lth_parse_memory(parser);
}

static enum lth_code parse_values(struct lth_graph_parser *parser, const struct lth_type *type, int64_t count,
				  uint8_t *bytes)
{
	struct element single = {.i = 0}, *list = &single;
	uint32_t found = 1;
	if (type->rank == 0) {
		if (!parse_element(parser, &single))
			return lth_parse_fail(parser, "a number, a string, hex or digest");
	} else {
		enum lth_code code = parse_elements(parser, &list, &found);
		if (code)
			return code;
	}
	if (found != count)
		return lth_parse_fail(parser, "as many elements as the type has");
	for (int64_t i = 0; i < count; i++)
		if (!store(type->dtype, &list[i], bytes, i))
			return lth_parse_fail(parser, "elements of the constant's type");
	return LTH_OK;
}

enum lth_code lth_parse_constant(struct lth_graph_parser *parser, const struct lth_type *type, const int64_t *shape,
				 struct lth_constant *out)
{
	int64_t count = 1;
	*out = (struct lth_constant){.data = NULL};
	for (uint32_t i = 0; i < type->rank; i++)
		if (shape[i] < 0 || __builtin_mul_overflow(count, shape[i], &count))
			return lth_parse_fail(parser, "a constant whose size is within 64 bits");
	if (!lth_dtype_bytes(type->dtype, count, &out->bytes))
		return lth_parse_fail(parser, "a constant whose size is within 64 bits");
	bool hex = lth_text_take_string(&parser->text, "hex");
	bool digest = !hex && lth_text_take_string(&parser->text, "digest");
	if ((hex && type->dtype == LTH_DTYPE_STRING) ||
	    (!digest && (uint64_t)out->bytes > parser->text.size * sizeof(struct lth_string)))
		return lth_parse_fail(parser, "the elements of a constant"); /* more than the text can hold */
	uint8_t *bytes = lth_arena_alloc(parser->arena, (size_t)out->bytes);
	if (!bytes)
		return lth_parse_memory(parser);
	out->data = bytes;
	return hex      ? parse_hex(parser, bytes, out->bytes)
	       : digest ? parse_digest(parser, out)
			: parse_values(parser, type, count, bytes);
}
