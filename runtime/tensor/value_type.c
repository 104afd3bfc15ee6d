/* The text of types. See value_type.h. */
#include "runtime/tensor/value_type.h"

#include <string.h>

static const char *const words[LTH_NUM_VALUE_KINDS] = {
	[LTH_VALUE_SEQUENCE] = "seq", [LTH_VALUE_OPTIONAL] = "optional", [LTH_VALUE_MAP] = "map"};

static bool take(const char **at, const char *text)
{
	size_t length = strlen(text);
	while (**at == ' ')
		(*at)++;
	if (strncmp(*at, text, length) != 0)
		return false;
	*at += length;
	return true;
}

static bool take_dtype(const char **at, enum lth_dtype *out)
{
	char word[32];
	while (**at == ' ')
		(*at)++;
	size_t length = strcspn(*at, "[,() ");
	if (length >= sizeof(word))
		return false;
	memcpy(word, *at, length);
	word[length] = 0;
	*at += length;
	*out = lth_dtype_by_text(word);
	return *out != LTH_NUM_DTYPES;
}

static bool take_size(const char **at, int64_t *out)
{
	int64_t size = 0;
	if (take(at, "?")) {
		*out = LTH_ANY_SIZE;
		return true;
	}
	if (**at < '0' || **at > '9')
		return false;
	for (; **at >= '0' && **at <= '9'; (*at)++)
		if (__builtin_mul_overflow(size, 10, &size) || __builtin_add_overflow(size, **at - '0', &size))
			return false;
	*out = size;
	return true;
}

static bool take_tensor(const char **at, struct lth_value_type *out)
{
	if (!take_dtype(at, &out->dtype) || !take(at, "["))
		return false;
	if (take(at, "*") || take(at, "!")) {
		out->rank = LTH_ANY_RANK;
		return take(at, "]");
	}
	while (!take(at, "]"))
		if (out->rank == LTH_MAX_VALUE_RANK || (out->rank && !take(at, ",")) ||
		    !take_size(at, &out->dims[out->rank++]))
			return false;
	return true;
}

/* The kind of container whose word comes next; a tensor's where none does. */
static enum lth_value_kind take_kind(const char **at)
{
	for (int kind = LTH_VALUE_SEQUENCE; kind < LTH_NUM_VALUE_KINDS; kind++)
		if (take(at, words[kind]))
			return (enum lth_value_kind)kind;
	return LTH_VALUE_TENSOR;
}

static bool take_containers(const char **at, struct lth_value_type *out)
{
	for (;;) {
		enum lth_value_kind kind = take_kind(at);
		if (kind == LTH_VALUE_TENSOR)
			return true;
		if (out->depth == LTH_MAX_VALUE_DEPTH || !take(at, "("))
			return false;
		enum lth_dtype *key = &out->keys[out->depth];
		out->kinds[out->depth++] = kind;
		if (kind != LTH_VALUE_MAP)
			continue;
		if (!take_dtype(at, key) || (*key != LTH_DTYPE_I64 && *key != LTH_DTYPE_STRING) || !take(at, ","))
			return false;
	}
}

bool lth_value_type_parse(const char *text, struct lth_value_type *out)
{
	struct lth_value_type type = {.depth = 0};
	const char *at = text;
	if (!take_containers(&at, &type) || !take_tensor(&at, &type))
		return false;
	for (uint32_t i = 0; i < type.depth; i++)
		if (!take(&at, ")"))
			return false;
	if (*at)
		return false;
	*out = type;
	return true;
}

void lth_value_type_print(const struct lth_value_type *type, struct lth_buf *out)
{
	for (uint32_t i = 0; i < type->depth; i++) {
		lth_buf_printf(out, "%s(", words[type->kinds[i]]);
		if (type->kinds[i] == LTH_VALUE_MAP)
			lth_buf_printf(out, "%s, ", lth_dtype_text(type->keys[i]));
	}
	lth_buf_printf(out, "%s[", lth_dtype_text(type->dtype));
	if (type->rank == LTH_ANY_RANK)
		lth_buf_putc(out, '*');
	for (int32_t axis = 0; axis < type->rank; axis++)
		if (type->dims[axis] == LTH_ANY_SIZE)
			lth_buf_puts(out, axis ? ", ?" : "?");
		else
			lth_buf_printf(out, "%s%lld", axis ? ", " : "", (long long)type->dims[axis]);
	lth_buf_putc(out, ']');
	for (uint32_t i = 0; i < type->depth; i++)
		lth_buf_putc(out, ')');
}

enum lth_value_kind lth_value_type_kind(const struct lth_value_type *type)
{
	return type->depth ? type->kinds[0] : LTH_VALUE_TENSOR;
}

struct lth_value_type lth_value_type_element(const struct lth_value_type *type)
{
	struct lth_value_type element = *type;
	element.depth--;
	memmove(element.kinds, type->kinds + 1, element.depth * sizeof(*element.kinds));
	memmove(element.keys, type->keys + 1, element.depth * sizeof(*element.keys));
	return element;
}
