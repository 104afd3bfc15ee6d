/* The table of changes and their building blocks. See upgrade.h. */
#include "compiler/import/upgrade.h"

#include "runtime/tensor/dtype.h"

#include <string.h>

static const struct upgrade {
	const char *domain, *op;
	int64_t below;
	lth_upgrade_fn change;
	const char *detail;
} upgrades[] = {
#define LTH_UPGRADE(of_domain, of_op, of_below, change, of_detail)                                                     \
	{of_domain, of_op, of_below, lth_up_##change, of_detail},
#include "compiler/import/upgrades.def"
#undef LTH_UPGRADE
};

enum lth_code lth_upgrade(struct lth_importer *importer, struct lth_draft *draft)
{
	enum lth_code code = LTH_OK;
	const char *op = draft->op;
	if (draft->version < 6)
		lth_draft_drop(draft, "consumed_inputs"); /* a hint of the first versions */
	for (size_t i = 0; i < sizeof(upgrades) / sizeof(upgrades[0]) && code == LTH_OK && draft->op == op; i++)
		if (draft->version < upgrades[i].below && strcmp(upgrades[i].op, op) == 0 &&
		    strcmp(upgrades[i].domain, draft->domain) == 0)
			code = upgrades[i].change(importer, draft, upgrades[i].detail);
	return code;
}

bool lth_up_word(const char **detail, char out[LTH_UP_WORD])
{
	size_t length = strcspn(*detail, " ");
	if (length == 0 || length >= LTH_UP_WORD)
		return false;
	memcpy(out, *detail, length);
	out[length] = 0;
	*detail += length + ((*detail)[length] == ' ');
	return true;
}

enum lth_code lth_up_fail(struct lth_importer *importer, const struct lth_draft *draft, const char *expected,
			  const char *found)
{
	return lth_importer_fail(importer, LTH_INVALID_GRAPH, draft->name, expected, "%s: %s", draft->op, found);
}

enum lth_code lth_up_unsupported(struct lth_importer *importer, const struct lth_draft *draft, const char *found)
{
	return lth_importer_fail(importer, LTH_UNSUPPORTED, draft->name, NULL, "%s: %s", draft->op, found);
}

/* ---- constants ---- */

static lth_value_id constant(struct lth_importer *importer, const struct lth_draft *draft, const char *what,
			     enum lth_dtype dtype, uint32_t rank, const int64_t *shape, const void *data, size_t bytes)
{
	const char *name = lth_arena_printf(importer->arena, "%s.%s", draft->name, what);
	void *copy = name ? lth_arena_memdup(importer->arena, data, bytes) : NULL;
	return copy ? lth_graph_constant(importer->graph, name, dtype, rank, shape, copy, (int64_t)bytes) : LTH_NONE;
}

lth_value_id lth_up_ints(struct lth_importer *importer, const struct lth_draft *draft, const char *what,
			 const int64_t *list, uint32_t count)
{
	const int64_t shape[1] = {count};
	return constant(importer, draft, what, LTH_DTYPE_I64, 1, shape, list, count * sizeof(*list));
}

lth_value_id lth_up_int(struct lth_importer *importer, const struct lth_draft *draft, const char *what, int64_t value)
{
	return constant(importer, draft, what, LTH_DTYPE_I64, 0, NULL, &value, sizeof(value));
}

lth_value_id lth_up_floats(struct lth_importer *importer, const struct lth_draft *draft, const char *what,
			   uint32_t rank, const int64_t *shape, const double *list, uint32_t count)
{
	float *floats = lth_arena_array(importer->arena, count, sizeof(*floats));
	for (uint32_t i = 0; floats && i < count; i++)
		floats[i] = (float)list[i];
	return floats ? constant(importer, draft, what, LTH_DTYPE_F32, rank, shape, floats, count * sizeof(*floats))
		      : LTH_NONE;
}

/* ---- nodes ---- */

/* A draft of another operator in its newest form. */
static enum lth_code emit(struct lth_importer *importer, const struct lth_draft *draft, const char *name,
			  const char *op, const lth_value_id *inputs, uint32_t num_inputs, const struct lth_attr *attrs,
			  uint32_t num_attrs, lth_value_id output)
{
	struct lth_draft other = {.domain = "", .op = op, .name = name, .version = INT64_MAX, .region = draft->region};
	bool ok = lth_draft_output(importer, &other, output);
	for (uint32_t i = 0; i < num_inputs && ok; i++)
		ok = lth_draft_input(importer, &other, inputs[i]);
	for (uint32_t i = 0; i < num_attrs && ok; i++)
		ok = lth_draft_attr(importer, &other, &attrs[i]);
	return ok ? lth_importer_emit(importer, &other) : lth_importer_memory(importer);
}

enum lth_code lth_up_emit(struct lth_importer *importer, const struct lth_draft *draft, const char *op,
			  const lth_value_id *inputs, uint32_t num_inputs, const struct lth_attr *attrs,
			  uint32_t num_attrs, lth_value_id *out)
{
	const char *name = lth_arena_printf(importer->arena, "%s.%s", draft->name, op);
	lth_value_id value = name ? lth_graph_value(importer->graph, name, NULL) : LTH_NONE;
	if (value == LTH_NONE)
		return lth_importer_memory(importer);
	enum lth_code code = emit(importer, draft, importer->graph->values[value].name, op, inputs, num_inputs, attrs,
				  num_attrs, value);
	if (code == LTH_OK)
		*out = value; /* only now: it may be one of the inputs */
	return code;
}

enum lth_code lth_up_finish(struct lth_importer *importer, struct lth_draft *draft, const char *op,
			    const lth_value_id *inputs, uint32_t num_inputs, const struct lth_attr *attrs,
			    uint32_t num_attrs)
{
	lth_value_id output = draft->num_outputs ? draft->outputs[0] : LTH_NONE;
	draft->op = NULL;
	return emit(importer, draft, draft->name, op, inputs, num_inputs, attrs, num_attrs, output);
}

/* ---- drafts ---- */

enum lth_code lth_up_set_input(struct lth_importer *importer, struct lth_draft *draft, uint32_t position,
			       lth_value_id value)
{
	while (draft->num_inputs <= position)
		if (!lth_draft_input(importer, draft, LTH_NONE))
			return lth_importer_memory(importer);
	draft->inputs[position] = value;
	return value == LTH_NONE && !lth_arena_ok(importer->arena) ? lth_importer_memory(importer) : LTH_OK;
}

enum lth_code lth_up_set_int(struct lth_importer *importer, struct lth_draft *draft, const char *name, int64_t value)
{
	const struct lth_attr attr = lth_up_attr_int(name, value);
	lth_draft_drop(draft, name);
	return lth_draft_attr(importer, draft, &attr) ? LTH_OK : lth_importer_memory(importer);
}

enum lth_code lth_up_set_text(struct lth_importer *importer, struct lth_draft *draft, const char *name,
			      const char *value)
{
	struct lth_attr attr = {.name = name, .kind = LTH_ATTR_STRING, .count = 1};
	attr.s.data = lth_arena_strdup(importer->arena, value);
	attr.s.size = strlen(value);
	lth_draft_drop(draft, name);
	return attr.s.data && lth_draft_attr(importer, draft, &attr) ? LTH_OK : lth_importer_memory(importer);
}

lth_value_id lth_up_input(const struct lth_draft *draft, uint32_t position)
{
	return position < draft->num_inputs ? draft->inputs[position] : LTH_NONE;
}

int64_t lth_up_int_attr(const struct lth_draft *draft, const char *name, int64_t otherwise)
{
	const struct lth_attr *attr = lth_draft_find(draft, name);
	return attr && attr->kind == LTH_ATTR_INT ? attr->i : otherwise;
}

double lth_up_float_attr(const struct lth_draft *draft, const char *name, double otherwise)
{
	const struct lth_attr *attr = lth_draft_find(draft, name);
	return attr && attr->kind == LTH_ATTR_FLOAT ? attr->f
	       : attr && attr->kind == LTH_ATTR_INT ? (double)attr->i
						    : otherwise;
}

const struct lth_type *lth_up_ranked(const struct lth_importer *importer, lth_value_id value)
{
	if (value == LTH_NONE)
		return NULL;
	const struct lth_type *type = &importer->graph->values[value].type;
	return type->kind == LTH_TYPE_TENSOR && type->rank != LTH_RANK_UNKNOWN ? type : NULL;
}
