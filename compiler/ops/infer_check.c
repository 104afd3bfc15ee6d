/* Checks that follow from an operator's row alone: numbers of inputs and outputs, attributes against the schema,
 * element types against the type rule. The rule's syntax is in ops.def. */
#include "compiler/ops/infer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sets of the type rules: a name and a test of class and width. */
static bool is_float(enum lth_dtype d)
{
	return d == LTH_DTYPE_F16 || d == LTH_DTYPE_BF16 || d == LTH_DTYPE_F32 || d == LTH_DTYPE_F64;
}

static bool is_integer(enum lth_dtype d)
{
	enum lth_dtype_class class = lth_dtype_class(d);
	return (class == LTH_CLASS_INT || class == LTH_CLASS_UINT) && lth_dtype_bits(d) >= 8;
}

static bool is_num(enum lth_dtype d)
{
	return is_float(d) || is_integer(d);
}

static bool is_f8(enum lth_dtype d)
{
	return lth_dtype_class(d) == LTH_CLASS_FLOAT && lth_dtype_bits(d) == 8 && d != LTH_DTYPE_F8E8M0;
}

static bool is_any(enum lth_dtype d)
{
	return d < LTH_NUM_DTYPES && d != LTH_DTYPE_OBJECT;
}

static const struct {
	const char *name;
	bool (*has)(enum lth_dtype);
} sets[] = {
	{"float", is_float}, {"integer", is_integer}, {"num", is_num}, {"f8", is_f8}, {"any", is_any},
};

static bool word_is(const char *word, size_t size, const char *text)
{
	return strlen(text) == size && memcmp(word, text, size) == 0;
}

bool lth_dtype_in_set(enum lth_dtype dtype, const char *set, size_t size)
{
	for (const char *end = set + size; set < end;) {
		size_t length = 0;
		while (set + length < end && set[length] != '|')
			length++;
		for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++)
			if (word_is(set, length, sets[i].name) && sets[i].has(dtype))
				return true;
		if (word_is(set, length, lth_dtype_text(dtype)))
			return true;
		set += length + 1;
	}
	return false;
}

bool lth_dtype_in(enum lth_dtype dtype, const char *set)
{
	return lth_dtype_in_set(dtype, set, strlen(set));
}

/* The set of a variable in the rule's part behind ';', or NULL. */
static const char *variable_set(const char *rule, const char *word, size_t size, size_t *out_size)
{
	for (const char *at = strchr(rule, ';'); at; at = strchr(at + 1, ';')) {
		const char *name = at + 1 + strspn(at + 1, " ");
		size_t name_size = strcspn(name, ":");
		if (name_size == size && memcmp(name, word, size) == 0) {
			*out_size = strcspn(name + name_size + 1, "; ");
			return name + name_size + 1;
		}
	}
	return NULL;
}

enum { MAX_VARIABLES = 8 };

struct bindings {
	struct {
		const char *word;
		size_t size;
		enum lth_dtype dtype;
		uint32_t input;
	} list[MAX_VARIABLES];
	uint32_t count;
};

/* The kinds of values: the words of the rules, and what messages call them. */
static const struct {
	const char *word, *text;
} kinds[LTH_NUM_TYPE_KINDS] = {
	[LTH_TYPE_TENSOR] = {"tensor", "a tensor"},
	[LTH_TYPE_SEQUENCE] = {"seq", "a sequence"},
	[LTH_TYPE_OPTIONAL] = {"optional", "an optional"},
	[LTH_TYPE_MAP] = {"map", "a map"},
};

/* The kind that a word asks for: a tensor's wherever it is not that of an object. */
static enum lth_type_kind kind_of_word(const char *word, size_t size)
{
	for (int kind = LTH_TYPE_SEQUENCE; kind < LTH_NUM_TYPE_KINDS; kind++)
		if (word_is(word, size, kinds[kind].word))
			return (enum lth_type_kind)kind;
	return LTH_TYPE_TENSOR;
}

static enum lth_code check_input(struct lth_infer *infer, struct bindings *bindings, uint32_t input, const char *word,
				 size_t size)
{
	const char *rule = infer->node->op->types;
	const struct lth_type *type = lth_infer_type(infer, input);
	if (!type || word_is(word, size, "any"))
		return LTH_OK;
	const char *where = lth_infer_input_text(infer, input);
	size_t set_size;
	if (word_is(word, size, "list"))
		return type->kind != LTH_TYPE_TENSOR
			       ? LTH_OK
			       : lth_infer_reject(infer, "a sequence, an optional or a map", "%s is a tensor", where);
	const char *set = variable_set(rule, word, size, &set_size);
	enum lth_type_kind kind = kind_of_word(word, size);
	bool object = set && lth_dtype_in_set(LTH_DTYPE_OBJECT, set, set_size);
	if (type->kind != kind && !object)
		return lth_infer_reject(infer, kinds[kind].text, "%s is %s", where, kinds[type->kind].text);
	if (kind != LTH_TYPE_TENSOR)
		return LTH_OK;
	if (type->dtype == LTH_NUM_DTYPES)
		return lth_infer_reject(infer, NULL, "%s has no known element type", where);
	if (!set && !word_is(word, size, lth_dtype_text(type->dtype)))
		return lth_infer_reject(infer, lth_arena_strndup(infer->graph->arena, word, size), "%s is of type %s",
					where, lth_dtype_text(type->dtype));
	if (!set)
		return LTH_OK;
	if (!lth_dtype_in_set(type->dtype, set, set_size))
		return lth_infer_reject(infer, lth_arena_strndup(infer->graph->arena, set, set_size),
					"%s is of type %s", where, lth_dtype_text(type->dtype));
	for (uint32_t i = 0; i < bindings->count; i++) {
		if (bindings->list[i].size != size || memcmp(bindings->list[i].word, word, size) != 0)
			continue;
		if (bindings->list[i].dtype == type->dtype)
			return LTH_OK;
		return lth_infer_reject(infer, lth_dtype_text(bindings->list[i].dtype),
					"%s is of type %s, unlike input %u", where, lth_dtype_text(type->dtype),
					bindings->list[i].input);
	}
	if (bindings->count < MAX_VARIABLES) {
		bindings->list[bindings->count].word = word;
		bindings->list[bindings->count].size = size;
		bindings->list[bindings->count].input = input;
		bindings->list[bindings->count++].dtype = type->dtype;
	}
	return LTH_OK;
}

static enum lth_dtype output_dtype(const struct bindings *bindings, const char *word, size_t size)
{
	for (uint32_t i = 0; i < bindings->count; i++)
		if (bindings->list[i].size == size && memcmp(bindings->list[i].word, word, size) == 0)
			return bindings->list[i].dtype;
	for (int d = 0; d < LTH_NUM_DTYPES; d++)
		if (word_is(word, size, lth_dtype_text((enum lth_dtype)d)))
			return (enum lth_dtype)d;
	return LTH_NUM_DTYPES; /* `?`, or a variable whose inputs are all absent */
}

static enum lth_code check_types(struct lth_infer *infer)
{
	const char *at = infer->node->op->types;
	struct bindings bindings = {.count = 0};
	bool outputs = false, repeat = false, optional = false;
	const char *word = at;
	size_t size = 0;
	for (uint32_t index = 0;; index++) {
		if (!repeat) {
			at += strspn(at, " ");
			if (strncmp(at, "->", 2) == 0 && !outputs) {
				outputs = true;
				index = UINT32_MAX;
				at += 2;
				continue;
			}
			word = at;
			size = strcspn(at, " ;*-");
			if (size == 0)
				return LTH_OK;
			at += size;
			repeat = *at == '*';
			at += repeat;
			optional = size > 1 && word[size - 1] == '?';
			size -= optional;
		}
		uint32_t count = outputs ? infer->node->num_outputs : infer->node->num_inputs;
		if (repeat && index >= count) {
			repeat = false;
			index = index - 1;
			continue;
		}
		if (outputs && index < LTH_MAX_RANK)
			infer->out_dtypes[index] = output_dtype(&bindings, word, size);
		bool required = !outputs && !optional && (repeat || index < infer->node->op->min_inputs);
		if (required && infer->node->inputs[index] == LTH_NONE)
			return lth_infer_reject(infer, NULL, "input %u is missing", index);
		if (!outputs && index < count) {
			enum lth_code code = check_input(infer, &bindings, index, word, size);
			if (code)
				return code;
		}
	}
}

static enum lth_code check_count(struct lth_infer *infer, const char *what, uint32_t count, uint32_t min, uint32_t max)
{
	if (count >= min && count <= max)
		return LTH_OK;
	const char *expected = max == UINT32_MAX ? lth_arena_printf(infer->graph->arena, "at least %u", min)
			     : min == max        ? lth_arena_printf(infer->graph->arena, "%u", min)
						 : lth_arena_printf(infer->graph->arena, "%u to %u", min, max);
	return lth_infer_reject(infer, expected, "%u %s", count, what);
}

/* Whether `text` is one of the comma-separated words. */
static bool is_listed(const char *words, size_t words_size, const char *text, size_t size)
{
	for (const char *at = words, *end = words + words_size; at <= end;) {
		size_t length = 0;
		while (at + length < end && at[length] != ',')
			length++;
		if (length == size && memcmp(at, text, size) == 0)
			return true;
		at += length + 1;
	}
	return false;
}

/* Whether a number is in a range "LEAST..MOST" of which either end may be left out; false for other rules. Ends are
 * integers; no NaN is in any range. */
static bool in_range(const struct lth_attr_rule *rule, const struct lth_attr *attr, bool *out_is_range)
{
	const char *dots = memchr(rule->allowed, '.', rule->allowed_size);
	*out_is_range = dots != NULL;
	if (!dots)
		return false;
	bool bounded = dots + 2 < rule->allowed + rule->allowed_size, is_float = attr->kind == LTH_ATTR_FLOAT;
	int64_t least = dots > rule->allowed ? strtoll(rule->allowed, NULL, 10) : INT64_MIN;
	int64_t most = bounded ? strtoll(dots + 2, NULL, 10) : INT64_MAX;
	if (is_float)
		return attr->f >= (double)least && attr->f <= (double)most;
	return attr->i >= least && attr->i <= most;
}

/* A string or a number against the values that its rule lists. */
static enum lth_code check_value(struct lth_infer *infer, const struct lth_attr *attr, const struct lth_attr_rule *rule)
{
	char number[32] = "";
	struct lth_string text = attr->s;
	bool range = false;
	if (attr->kind != LTH_ATTR_STRING && in_range(rule, attr, &range))
		return LTH_OK;
	if (attr->kind == LTH_ATTR_INT)
		text = (struct lth_string){
			number, (size_t)snprintf(number, sizeof(number), "%lld", (long long)attr->i)};
	if (attr->kind == LTH_ATTR_FLOAT)
		text = (struct lth_string){number, (size_t)snprintf(number, sizeof(number), "%g", attr->f)};
	if (!range && is_listed(rule->allowed, rule->allowed_size, text.data, text.size))
		return LTH_OK;
	return lth_infer_reject(infer, lth_arena_strndup(infer->graph->arena, rule->allowed, rule->allowed_size),
				"attribute '%s' is '%.*s'", attr->name, (int)text.size, text.data);
}

static enum lth_code check_attr(struct lth_infer *infer, const struct lth_attr *attr)
{
	const char *cursor = infer->node->op->attrs, *names[32];
	unsigned long num_names = 0;
	struct lth_arena *arena = infer->graph->arena;
	struct lth_attr_rule rule;
	while (lth_attr_rule_next(&cursor, &rule)) {
		if (!word_is(rule.name, rule.name_size, attr->name)) {
			if (num_names < 32 && (names[num_names] = lth_arena_strndup(arena, rule.name, rule.name_size)))
				num_names++;
			continue;
		}
		if (rule.kind != attr->kind)
			return lth_infer_reject(infer, lth_attr_kind_text(rule.kind), "attribute '%s' is of kind %s",
						attr->name, lth_attr_kind_text(attr->kind));
		return rule.allowed ? check_value(infer, attr, &rule) : LTH_OK;
	}
	const char *nearest = lth_nearest(attr->name, names, num_names);
	return lth_infer_reject(infer, nearest, "unknown attribute '%s'", attr->name);
}

static enum lth_code check_attrs(struct lth_infer *infer)
{
	const struct lth_node *node = infer->node;
	for (uint32_t i = 0; i < node->num_attrs; i++) {
		enum lth_code code = check_attr(infer, &node->attrs[i]);
		if (code)
			return code;
	}
	const char *cursor = node->op->attrs;
	struct lth_attr_rule rule;
	while (lth_attr_rule_next(&cursor, &rule)) {
		bool found = !rule.required;
		for (uint32_t i = 0; i < node->num_attrs && !found; i++)
			found = word_is(rule.name, rule.name_size, node->attrs[i].name);
		if (!found)
			return lth_infer_reject(infer, NULL, "attribute '%.*s' is missing", (int)rule.name_size,
						rule.name);
	}
	return LTH_OK;
}

enum lth_code lth_infer_check(struct lth_infer *infer)
{
	const struct lth_node *node = infer->node;
	const struct lth_op *op = node->op;
	enum lth_code code = check_count(infer, "inputs", node->num_inputs, op->min_inputs, op->max_inputs);
	if (!code)
		code = check_count(infer, "outputs", node->num_outputs, op->min_outputs, op->max_outputs);
	for (uint32_t i = 0; i < LTH_MAX_RANK; i++)
		infer->out_dtypes[i] = LTH_NUM_DTYPES;
	if (!code)
		code = check_attrs(infer);
	return code ? code : check_types(infer);
}
