/* Nodes of JSON graph IR and their attributes. A number is an integer or a float by how it is written, or by the
 * operator's row where that says float; {"tensor"}, {"graph"}, {"floats"}, {"ints"}, {"strings"} name the other kinds.
 */
#include "compiler/import/json_internal.h"

#include "compiler/ops/op.h"

#include <string.h>

/* ---- attributes ---- */

/* The kind that the operator's row gives an attribute, or LTH_NUM_ATTR_KINDS. */
static enum lth_attr_kind kind_in_row(const struct lth_draft *draft, const char *name)
{
	const struct lth_op *op = lth_op_find(draft->domain, draft->op);
	const char *cursor = op ? op->attrs : "";
	struct lth_attr_rule rule;
	while (lth_attr_rule_next(&cursor, &rule))
		if (strlen(name) == rule.name_size && memcmp(rule.name, name, rule.name_size) == 0)
			return rule.kind;
	return LTH_NUM_ATTR_KINDS;
}

static enum lth_code list_attribute(struct lth_json *json, const struct lth_json_path *path, const json_t *list,
				    enum lth_attr_kind wanted, struct lth_attr *out)
{
	struct lth_arena *arena = json->base.arena;
	size_t count = json_array_size(list);
	bool ints = true, numbers = true, texts = true;
	for (size_t i = 0; i < count; i++) {
		const json_t *value = json_array_get(list, i);
		ints &= json_is_integer(value);
		numbers &= json_is_number(value);
		texts &= json_is_string(value);
	}
	bool as_floats = numbers && (wanted == LTH_ATTR_FLOATS || !ints);
	bool as_ints = ints && !as_floats && wanted != LTH_ATTR_STRINGS;
	if (!as_floats && !as_ints && !texts)
		return lth_json_fail(json, path, "a list of integers, of numbers, or of strings", "a mixed list");
	out->kind = as_ints ? LTH_ATTR_INTS : as_floats ? LTH_ATTR_FLOATS : LTH_ATTR_STRINGS;
	out->count = (uint32_t)count;
	int64_t *int_list = lth_arena_array(arena, count, sizeof(*int_list));
	double *float_list = lth_arena_array(arena, count, sizeof(*float_list));
	struct lth_string *text_list = lth_arena_array(arena, count, sizeof(*text_list));
	if (!int_list || !float_list || !text_list)
		return lth_importer_memory(&json->base);
	for (size_t i = 0; i < count; i++) {
		const json_t *value = json_array_get(list, i);
		int_list[i] = json_integer_value(value);
		float_list[i] = json_number_value(value);
		text_list[i].size = json_is_string(value) ? json_string_length(value) : 0;
		text_list[i].data = lth_arena_strndup(arena, json_is_string(value) ? json_string_value(value) : "",
						      text_list[i].size);
	}
	if (as_ints)
		out->ints = int_list;
	else if (as_floats)
		out->floats = float_list;
	else
		out->strings = text_list;
	return LTH_OK;
}

static enum lth_code graph_attribute(struct lth_json *json, const struct lth_json_path *path, const json_t *value,
				     struct lth_json_scope *scope, struct lth_attr *out)
{
	static const char *const parts[] = {"name", "constants", "inputs", "nodes", "outputs", NULL};
	struct lth_json_scope inner = {.parent = scope, .depth = scope->depth + 1};
	inner.region = out->id = lth_graph_region(json->base.graph, LTH_NONE);
	if (inner.region == LTH_NONE)
		return lth_importer_memory(&json->base);
	enum lth_code code = lth_json_members(json, path, value, parts);
	return code ? code : lth_json_graph(json, path, value, &inner);
}

static enum lth_code type_attribute(struct lth_json *json, const struct lth_json_path *path, const json_t *value,
				    struct lth_attr *out)
{
	struct lth_type type;
	enum lth_code code = lth_json_type(json, path, value, "", LTH_DIMS_INFERRED, &type);
	if (code)
		return code;
	out->type = lth_arena_memdup(json->base.arena, &type, sizeof(type));
	return out->type ? LTH_OK : lth_importer_memory(&json->base);
}

/* {"tensor": ...}, {"graph": ...}, {"type": ...}, or a list whose kind is named. */
static enum lth_code object_attribute(struct lth_json *json, const struct lth_json_path *path, const json_t *object,
				      const struct lth_draft *draft, struct lth_json_scope *scope, struct lth_attr *out)
{
	static const char *const members[] = {"tensor", "graph", "type", "ints", "floats", "strings", NULL};
	static const enum lth_attr_kind kinds[] = {LTH_ATTR_TENSOR, LTH_ATTR_REGION, LTH_ATTR_TYPE,
						   LTH_ATTR_INTS,   LTH_ATTR_FLOATS, LTH_ATTR_STRINGS};
	enum lth_code code = lth_json_members(json, path, object, members);
	size_t which = 0;
	if (code)
		return code;
	while (members[which] && !json_object_get(object, members[which]))
		which++;
	if (!members[which] || json_object_size(object) != 1)
		return lth_json_fail(json, path, "one of tensor, graph, type, ints, floats and strings", "none or several");
	const struct lth_json_path at = {path, members[which], 0};
	const json_t *value = json_object_get(object, members[which]);
	out->kind = kinds[which];
	if (out->kind == LTH_ATTR_TENSOR) {
		const char *name = lth_arena_printf(json->base.arena, "%s.%s", draft->name, out->name);
		return name ? lth_json_constant(json, &at, value, name, &out->id) : lth_importer_memory(&json->base);
	}
	if (out->kind == LTH_ATTR_REGION)
		return graph_attribute(json, &at, value, scope, out);
	if (out->kind == LTH_ATTR_TYPE)
		return type_attribute(json, &at, value, out);
	if (!json_is_array(value))
		return lth_json_fail(json, &at, "a list", "another value");
	return list_attribute(json, &at, value, kinds[which], out);
}

static enum lth_code read_attribute(struct lth_json *json, const struct lth_json_path *path, const json_t *value,
				    const struct lth_draft *draft, struct lth_json_scope *scope, struct lth_attr *out)
{
	enum lth_attr_kind wanted = kind_in_row(draft, out->name);
	if (json_is_object(value))
		return object_attribute(json, path, value, draft, scope, out);
	if (json_is_array(value))
		return list_attribute(json, path, value, wanted, out);
	if (json_is_string(value)) {
		out->kind = LTH_ATTR_STRING;
		out->s.size = json_string_length(value);
		out->s.data = lth_arena_strndup(json->base.arena, json_string_value(value), out->s.size);
		return out->s.data ? LTH_OK : lth_importer_memory(&json->base);
	}
	if (json_is_real(value) || (json_is_integer(value) && wanted == LTH_ATTR_FLOAT)) {
		out->kind = LTH_ATTR_FLOAT;
		out->f = json_number_value(value);
		return LTH_OK;
	}
	if (json_is_integer(value) || json_is_boolean(value)) {
		out->kind = LTH_ATTR_INT;
		out->i = json_is_boolean(value) ? json_is_true(value) : json_integer_value(value);
		return LTH_OK;
	}
	return lth_json_fail(json, path, "a number, a string, a list or an object", "null");
}

static enum lth_code read_attributes(struct lth_json *json, const struct lth_json_path *path, const json_t *object,
				     struct lth_draft *draft, struct lth_json_scope *scope)
{
	const struct lth_json_path at_list = {path, "attributes", 0};
	json_t *attributes = json_object_get(object, "attributes"), *value;
	const char *key;
	if (!attributes)
		return LTH_OK;
	if (!json_is_object(attributes))
		return lth_json_fail(json, &at_list, "an object", "another value");
	json_object_foreach (attributes, key, value) {
		const struct lth_json_path at = {&at_list, key, 0};
		struct lth_attr attr = {.name = lth_arena_strdup(json->base.arena, key), .count = 1};
		enum lth_code code = attr.name ? read_attribute(json, &at, value, draft, scope, &attr)
					       : lth_importer_memory(&json->base);
		if (code)
			return code;
		if (!lth_draft_attr(&json->base, draft, &attr))
			return lth_importer_memory(&json->base);
	}
	return LTH_OK;
}

/* ---- nodes ---- */

static int64_t opset_version(const struct lth_json *json, const char *domain)
{
	const json_t *opset = json_object_get(json->root, "opset");
	const json_t *version = json_is_object(opset) ? json_object_get(opset, domain) : NULL;
	return json_is_integer(version) ? json_integer_value(version) : *domain ? 1 : json->base.graph->opset;
}

/* Constant's attribute is its value; it needs no node. */
static enum lth_code constant_node(struct lth_json *json, const struct lth_json_path *path,
				   const struct lth_draft *draft, const json_t *outputs, struct lth_json_scope *scope)
{
	const char *name;
	const struct lth_json_path at_list = {path, "outputs", 0}, at = {&at_list, NULL, 0};
	bool tensor = draft->num_attrs == 1 && draft->attrs[0].kind == LTH_ATTR_TENSOR;
	if (!tensor || json_array_size(outputs) != 1)
		return lth_json_fail(json, path, "a Constant with one {\"tensor\"} and one output", "another");
	enum lth_code code = lth_json_text(json, &at, json_array_get(outputs, 0), &name);
	return code ? code : lth_json_define(json, &at, scope, name, draft->attrs[0].id);
}

static enum lth_code read_outputs(struct lth_json *json, const struct lth_json_path *path, const json_t *outputs,
				  struct lth_draft *draft, struct lth_json_scope *scope)
{
	const struct lth_json_path at_list = {path, "outputs", 0};
	enum lth_code code = LTH_OK;
	for (size_t i = 0; i < json_array_size(outputs) && code == LTH_OK; i++) {
		const json_t *item = json_array_get(outputs, i);
		const struct lth_json_path at = {&at_list, NULL, i};
		lth_value_id value = LTH_NONE;
		if (!json_is_null(item) && !(json_is_string(item) && json_string_length(item) == 0)) {
			const char *name;
			if ((code = lth_json_text(json, &at, item, &name)))
				return code;
			value = lth_graph_value(json->base.graph, name, NULL);
			code = value == LTH_NONE ? lth_importer_memory(&json->base)
						 : lth_json_define(json, &at, scope, name, value);
		}
		if (code == LTH_OK && !lth_draft_output(&json->base, draft, value))
			code = lth_importer_memory(&json->base);
	}
	return code;
}

static enum lth_code read_inputs(struct lth_json *json, const struct lth_json_path *path, const json_t *inputs,
				 struct lth_draft *draft, const struct lth_json_scope *scope)
{
	const struct lth_json_path at_list = {path, "inputs", 0};
	enum lth_code code = LTH_OK;
	for (size_t i = 0; i < json_array_size(inputs) && code == LTH_OK; i++) {
		const struct lth_json_path at = {&at_list, NULL, i};
		lth_value_id value;
		code = lth_json_resolve(json, &at, scope, json_array_get(inputs, i), &value);
		if (code == LTH_OK && !lth_draft_input(&json->base, draft, value))
			code = lth_importer_memory(&json->base);
	}
	return code;
}

static enum lth_code optional_text(struct lth_json *json, const struct lth_json_path *path, const json_t *object,
				   const char *member, const char **out)
{
	const struct lth_json_path at = {path, member, 0};
	const json_t *value = json_object_get(object, member);
	*out = "";
	return value ? lth_json_text(json, &at, value, out) : LTH_OK;
}

enum lth_code lth_json_node(struct lth_json *json, const struct lth_json_path *path, const json_t *object,
			    struct lth_json_scope *scope)
{
	static const char *const members[] = {"op", "domain", "name", "inputs", "outputs", "attributes", NULL};
	const json_t *inputs = json_object_get(object, "inputs"), *outputs = json_object_get(object, "outputs");
	struct lth_draft draft = {.region = scope->region};
	enum lth_code code;
	if ((code = lth_json_members(json, path, object, members)) ||
	    (code = optional_text(json, path, object, "op", &draft.op)) ||
	    (code = optional_text(json, path, object, "domain", &draft.domain)) ||
	    (code = optional_text(json, path, object, "name", &draft.name)))
		return code;
	draft.domain = strcmp(draft.domain, "ai.onnx") == 0 ? "" : draft.domain;
	if (!*draft.op || (inputs && !json_is_array(inputs)) || !json_is_array(outputs))
		return lth_json_fail(json, path, "an op, a list of inputs and a list of outputs", "a node without");
	if (!*draft.name && json_is_string(json_array_get(outputs, 0)))
		if ((code = lth_json_text(json, path, json_array_get(outputs, 0), &draft.name)))
			return code;
	draft.version = opset_version(json, draft.domain);
	if ((code = read_inputs(json, path, inputs, &draft, scope)) ||
	    (code = read_attributes(json, path, object, &draft, scope)) ||
	    (code = lth_importer_count(&json->base, &draft)) ||
	    (code = lth_importer_check_version(&json->base, &draft)))
		return code;
	if (!*draft.domain && strcmp(draft.op, "Constant") == 0)
		return constant_node(json, path, &draft, outputs, scope);
	if ((code = read_outputs(json, path, outputs, &draft, scope)))
		return code;
	return lth_importer_emit(&json->base, &draft);
}
