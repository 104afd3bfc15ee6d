/* Checks the shapes of a node's inputs against the rule that shapes.def has for its operator. Thread rule: as infer.h. */
#include "compiler/ops/infer.h"

#include <stdlib.h>
#include <string.h>

static const char *const rules[LTH_NUM_OPS] = {
#define LTH_SHAPES(id, rule) [LTH_OP_ID_##id] = rule,
#include "compiler/ops/shapes.def"
#undef LTH_SHAPES
};

/* Part of a rule. */
struct slice {
	const char *data;
	size_t size;
};

static struct slice trimmed(const char *data, size_t size)
{
	while (size && *data == ' ') {
		data++;
		size--;
	}
	while (size && data[size - 1] == ' ')
		size--;
	return (struct slice){data, size};
}

/* What stands before the next `separator`, taken off the slice; false when nothing is left. */
static bool next_part(struct slice *rest, char separator, struct slice *out)
{
	if (!rest->data)
		return false;
	const char *end = memchr(rest->data, separator, rest->size);
	size_t size = end ? (size_t)(end - rest->data) : rest->size;
	*out = trimmed(rest->data, size);
	*rest = end ? trimmed(end + 1, rest->size - size - 1) : (struct slice){NULL, 0};
	return true;
}

static bool is_word(struct slice slice, const char *word)
{
	return slice.size == strlen(word) && memcmp(slice.data, word, slice.size) == 0;
}

struct shapes {
	struct lth_infer *infer;
	lth_dim extent[26]; /* of each letter; LTH_DIM_NONE: not seen yet */
	uint32_t input;
	struct slice list; /* that holds for the input, for messages */
};

static enum lth_code check_extent(struct shapes *s, lth_dim extent, lth_dim wanted, bool or_one)
{
	struct lth_infer *infer = s->infer;
	if (lth_dim_equal(infer->dims, extent, wanted) == LTH_YES)
		return LTH_OK;
	const char *rule = lth_arena_printf(infer->graph->arena, "%s of shape [%.*s]", lth_infer_input_text(infer, s->input),
					    (int)s->list.size, s->list.data);
	if (or_one)
		return lth_infer_require_either(infer, extent, wanted, lth_dim_const(infer->dims, 1), rule);
	return lth_infer_require(infer, LTH_REL_EQ, extent, wanted, rule);
}

/* A word of shapes.def's syntax against an extent. */
static enum lth_code check_word(struct shapes *s, struct slice word, lth_dim extent)
{
	struct lth_dims *dims = s->infer->dims;
	char *end;
	if (is_word(word, "_"))
		return LTH_OK;
	if (word.data[0] == '@') {
		const char *name = lth_arena_strndup(s->infer->graph->arena, word.data + 1, word.size - 1);
		return name ? check_extent(s, extent, lth_dim_const(dims, lth_op_int(s->infer->node, name)), false) : LTH_OK;
	}
	bool or_one = word.data[word.size - 1] == '?';
	int64_t factor = strtoll(word.data, &end, 10);
	bool counted = end > word.data;
	if (end == word.data + word.size)
		return check_extent(s, extent, lth_dim_const(dims, factor), false);
	lth_dim *known = &s->extent[*end - 'a'];
	if (*known != LTH_DIM_NONE)
		return check_extent(s, extent, counted ? lth_dim_mul(dims, *known, lth_dim_const(dims, factor)) : *known, or_one);
	if (!or_one && !counted)
		*known = extent;
	return LTH_OK;
}

/* How many axes a list of words names; whether it begins with any number of others. */
static uint32_t list_rank(struct slice list, bool *out_more)
{
	struct slice word;
	uint32_t rank = 0;
	*out_more = list.size && list.data[0] == '*';
	while (next_part(&list, ' ', &word))
		rank++;
	return rank - *out_more;
}

static enum lth_code check_list(struct shapes *s, const struct lth_type *type)
{
	struct slice list = s->list, word;
	bool more;
	enum lth_code code = LTH_OK;
	uint32_t axis = type->rank - list_rank(list, &more);
	if (more)
		next_part(&list, ' ', &word);
	while (!code && next_part(&list, ' ', &word))
		code = check_word(s, word, type->dims[axis++]);
	return code;
}

/* The input against the list of its form that has its rank. */
static enum lth_code check_input(struct shapes *s, struct slice form)
{
	struct lth_infer *infer = s->infer;
	const struct lth_type *type = lth_infer_type(infer, s->input);
	struct slice rest = form;
	if (!type || type->kind != LTH_TYPE_TENSOR || is_word(form, "-"))
		return LTH_OK;
	while (next_part(&rest, '|', &s->list)) {
		bool more;
		if (is_word(s->list, ".") && type->rank <= 1)
			return lth_infer_need_one(infer, s->input);
		uint32_t rank = list_rank(s->list, &more);
		if (!is_word(s->list, ".") && (more ? type->rank >= rank : type->rank == rank))
			return check_list(s, type);
	}
	const char *expected = is_word(form, ".") ? "one element"
						  : lth_arena_printf(infer->graph->arena, "shape [%.*s]", (int)form.size, form.data);
	return lth_infer_reject(infer, expected, "%s has shape %s", lth_infer_input_text(infer, s->input),
				lth_infer_shape_text(infer, type));
}

enum lth_code lth_infer_shapes(struct lth_infer *infer)
{
	const char *rule = rules[lth_op_id(infer->node->op)];
	struct slice rest = {rule, rule ? strlen(rule) : 0}, form;
	struct shapes s = {.infer = infer};
	enum lth_code code = LTH_OK;
	for (size_t i = 0; i < sizeof(s.extent) / sizeof(*s.extent); i++)
		s.extent[i] = LTH_DIM_NONE;
	while (!code && next_part(&rest, ',', &form)) {
		code = check_input(&s, form);
		s.input++;
	}
	return code;
}
