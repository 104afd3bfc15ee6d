/* JSON graph IR (api/graph.schema.json): what people and scripts write where ONNX is too much. The same drafts,
 * upgrades and symbols as ONNX, so that both give the same graph. */
#include "compiler/import/json_internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_TYPE_PATH = 32 };

enum lth_code lth_json_fail(struct lth_json *json, const struct lth_json_path *path, const char *expected,
			    const char *found_format, ...)
{
	char place[64], found[512];
	va_list args;
	va_start(args, found_format);
	vsnprintf(found, sizeof(found), found_format, args);
	va_end(args);
	lth_json_locate(json->text, json->size, path, place, sizeof(place));
	return lth_diag_fail(json->base.diag, LTH_INVALID_JSON, place, expected, NULL, "%s", found);
}

enum lth_code lth_json_members(struct lth_json *json, const struct lth_json_path *path, const json_t *object,
			       const char *const *names)
{
	const char *key;
	json_t *value;
	size_t count = 0;
	if (!json_is_object(object))
		return lth_json_fail(json, path, "an object", "another value");
	while (names[count])
		count++;
	json_object_foreach ((json_t *)(uintptr_t)object, key, value) {
		size_t i = 0;
		while (i < count && strcmp(names[i], key) != 0)
			i++;
		if (i < count)
			continue;
		const struct lth_json_path at = {path, key, 0};
		const char *near = lth_nearest(key, names, count);
		char advice[160];
		snprintf(advice, sizeof(advice), near ? "did you mean '%s'?" : "%s", near ? near : "see the schema");
		return lth_json_fail(json, &at, advice, "unknown member '%s'", key);
	}
	return LTH_OK;
}

enum lth_code lth_json_text(struct lth_json *json, const struct lth_json_path *path, const json_t *value,
			    const char **out)
{
	if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value))
		return lth_json_fail(json, path, "a string", "another value");
	*out = lth_arena_strdup(json->base.arena, json_string_value(value));
	return *out ? LTH_OK : lth_importer_memory(&json->base);
}

enum lth_code lth_json_define(struct lth_json *json, const struct lth_json_path *path, struct lth_json_scope *scope,
			      const char *name, lth_value_id value)
{
	if (lth_name_map_get(&scope->values, name) != LTH_NONE)
		return lth_json_fail(json, path, "one definition of each name", "a second definition of '%s'", name);
	return lth_name_map_put(&scope->values, json->base.arena, name, value) ? LTH_OK
									       : lth_importer_memory(&json->base);
}

/* null and "" are an absent operand. */
enum lth_code lth_json_resolve(struct lth_json *json, const struct lth_json_path *path,
			       const struct lth_json_scope *scope, const json_t *name, lth_value_id *out)
{
	*out = LTH_NONE;
	if (json_is_null(name) || (json_is_string(name) && json_string_length(name) == 0))
		return LTH_OK;
	if (!json_is_string(name))
		return lth_json_fail(json, path, "the name of a value, or null", "another value");
	for (; scope; scope = scope->parent)
		if ((*out = lth_name_map_get(&scope->values, json_string_value(name))) != LTH_NONE)
			return LTH_OK;
	return lth_json_fail(json, path, "the name of an input, a constant or an output of a node before",
			     "a use of '%s', which nothing defines", json_string_value(name));
}

/* ---- symbols and types ---- */

static enum lth_code range_member(struct lth_json *json, const struct lth_json_path *path, const json_t *range,
				  const char *member, int64_t *target)
{
	const json_t *value = json_object_get(range, member);
	const struct lth_json_path at = {path, member, 0};
	if (!value || json_is_null(value))
		return LTH_OK;
	if (!json_is_integer(value))
		return lth_json_fail(json, &at, "an integer", "another value");
	*target = json_integer_value(value);
	return LTH_OK;
}

/* What the document's `dims` say of a name. */
static enum lth_code preset_of(struct lth_json *json, struct lth_import_dim *dim)
{
	static const char *const members[] = {"min", "max", "hint", "multiple", NULL};
	const struct lth_json_path root = {NULL, NULL, 0}, dims = {&root, "dims", 0}, at = {&dims, dim->name, 0};
	const json_t *range = json_object_get(json_object_get(json->root, "dims"), dim->name);
	enum lth_code code;
	if (!range)
		return LTH_OK;
	if (lth_name_map_get(&json->dims, dim->name) == LTH_NONE &&
	    !lth_name_map_put(&json->dims, json->base.arena, dim->name, 1))
		return lth_importer_memory(&json->base);
	if ((code = lth_json_members(json, &at, range, members)) ||
	    (code = range_member(json, &at, range, "min", &dim->min)) ||
	    (code = range_member(json, &at, range, "max", &dim->max)) ||
	    (code = range_member(json, &at, range, "hint", &dim->hint)))
		return code;
	return range_member(json, &at, range, "multiple", &dim->multiple);
}

static enum lth_code read_dim(struct lth_json *json, const struct lth_json_path *path, const json_t *value,
			      const char *input, lth_dim *out)
{
	struct lth_import_dim preset = LTH_IMPORT_DIM_DEFAULT;
	bool fixed = json_is_integer(value) && json_integer_value(value) >= 0;
	if (fixed && json->base.options->symbolic) {
		preset.min = 0;
		preset.hint = json_integer_value(value);
	} else if (fixed) {
		*out = lth_dim_const(json->base.graph->dims, json_integer_value(value));
		return *out == LTH_DIM_NONE ? lth_importer_memory(&json->base) : LTH_OK;
	}
	if (json_is_null(value) || fixed) {
		preset.name = lth_arena_printf(json->base.arena, "%s[%zu]", input, path->index);
	} else {
		enum lth_code code = lth_json_text(json, path, value, &preset.name);
		if (code)
			return code;
	}
	if (!preset.name)
		return lth_importer_memory(&json->base);
	if (!*preset.name)
		return lth_json_fail(json, path, "a number, the name of a symbol, or null", "an empty name");
	enum lth_code code = preset_of(json, &preset);
	return code ? code : lth_importer_symbol(&json->base, &preset, out);
}

/* A list of dimensions: the model's symbols, or of a container's elements the numbers that all have. */
static enum lth_code read_shape(struct lth_json *json, const struct lth_json_path *path, const json_t *shape,
				const char *name, enum lth_import_dims kind, struct lth_type *type)
{
	lth_dim dims[LTH_MAX_RANK];
	enum lth_code code;
	if (!json_is_array(shape) || json_array_size(shape) > LTH_MAX_RANK)
		return lth_json_fail(json, path, "a shape of at most 16 dimensions", "another value");
	for (size_t i = 0; i < json_array_size(shape); i++) {
		const struct lth_json_path at = {path, NULL, i};
		const json_t *dim = json_array_get(shape, i);
		if (kind == LTH_DIMS_ELEMENT && !json_is_integer(dim))
			dims[i] = LTH_DIM_NONE;
		else if ((code = read_dim(json, &at, dim, name, &dims[i])))
			return code;
	}
	*type = lth_type_tensor(json->base.graph, type->dtype, (uint32_t)json_array_size(shape), dims);
	return type->dims ? LTH_OK : lth_importer_memory(&json->base);
}

static enum lth_code read_element_type(struct lth_json *json, const struct lth_json_path *path, const json_t *object,
				       const char *member, enum lth_dtype *out)
{
	const json_t *word = json_object_get(object, member);
	const struct lth_json_path at = {path, member, 0};
	*out = json_is_string(word) ? lth_dtype_by_text(json_string_value(word)) : LTH_NUM_DTYPES;
	if (*out != LTH_NUM_DTYPES)
		return LTH_OK;
	return lth_json_fail(json, word ? &at : path, "an element type like \"f32\"", "%s",
			     json_is_string(word) ? json_string_value(word) : "none");
}

static enum lth_code object_type(struct lth_json *json, const struct lth_json_path *path, const json_t *object,
				 const char *member, enum lth_type_kind kind, struct lth_type *out)
{
	struct lth_type inner;
	const struct lth_json_path at = {path, member, 0}, at_key = {path, "key", 0};
	enum lth_dtype key = LTH_DTYPE_F32;
	enum lth_code code = LTH_OK;
	size_t depth = 0;
	for (const struct lth_json_path *p = path; p; p = p->parent)
		depth++;
	if (depth > MAX_TYPE_PATH)
		return lth_json_fail(json, path, "a type nested less deeply", "another");
	if (kind == LTH_TYPE_MAP)
		code = read_element_type(json, path, object, "key", &key);
	if (code == LTH_OK && kind == LTH_TYPE_MAP && key != LTH_DTYPE_I64 && key != LTH_DTYPE_STRING)
		return lth_json_fail(json, &at_key, "\"i64\" or \"string\"", "%s", lth_dtype_text(key));
	if (code == LTH_OK)
		code = lth_json_type(json, &at, json_object_get(object, member), "", LTH_DIMS_ELEMENT, &inner);
	if (code)
		return code;
	*out = lth_type_object(json->base.graph, kind, key, &inner);
	return out->element ? LTH_OK : lth_importer_memory(&json->base);
}

enum lth_code lth_json_type(struct lth_json *json, const struct lth_json_path *path, const json_t *object,
			    const char *name, enum lth_import_dims dims, struct lth_type *out)
{
	static const char *const members[] = {"name", "type", "shape", "sequence", "optional", "map", "key", NULL};
	static const enum lth_type_kind kinds[] = {LTH_TYPE_SEQUENCE, LTH_TYPE_OPTIONAL, LTH_TYPE_MAP};
	enum { FIRST_KIND = 3 };
	const json_t *shape = json_object_get(object, "shape");
	const struct lth_json_path at_shape = {path, "shape", 0};
	enum lth_code code = lth_json_members(json, path, object, members);
	for (int i = 0; i < 3 && code == LTH_OK; i++)
		if (json_object_get(object, members[FIRST_KIND + i]))
			return object_type(json, path, object, members[FIRST_KIND + i], kinds[i], out);
	*out = (struct lth_type){.kind = LTH_TYPE_TENSOR, .rank = LTH_RANK_UNKNOWN};
	if (code == LTH_OK)
		code = read_element_type(json, path, object, "type", &out->dtype);
	if (code == LTH_OK && shape && dims != LTH_DIMS_INFERRED)
		code = read_shape(json, &at_shape, shape, name, dims, out);
	return code;
}

/* ---- graphs ---- */

static enum lth_code name_of(struct lth_json *json, const struct lth_json_path *path, const json_t *object,
			     const char **out)
{
	const json_t *name = json_object_get(object, "name");
	const struct lth_json_path at = {path, "name", 0};
	if (!json_is_object(object) || !name || json_string_length(name) == 0)
		return lth_json_fail(json, path, "an object with a name", "another value");
	return lth_json_text(json, &at, name, out);
}

static enum lth_code read_constant(struct lth_json *json, const struct lth_json_path *path, const json_t *object,
				   struct lth_json_scope *scope)
{
	const char *name;
	lth_value_id value;
	enum lth_code code = name_of(json, path, object, &name);
	if (code || (code = lth_json_constant(json, path, object, name, &value)))
		return code;
	return lth_json_define(json, path, scope, name, value);
}

static enum lth_code read_input(struct lth_json *json, const struct lth_json_path *path, const json_t *object,
				struct lth_json_scope *scope)
{
	const char *name;
	struct lth_type type;
	enum lth_code code = name_of(json, path, object, &name);
	enum lth_import_dims dims = scope->region == 0 ? LTH_DIMS_INPUT : LTH_DIMS_INFERRED;
	if (code || (code = lth_json_type(json, path, object, name, dims, &type)))
		return code;
	lth_value_id value = lth_graph_input(json->base.graph, scope->region, name, &type);
	return value == LTH_NONE ? lth_importer_memory(&json->base) : lth_json_define(json, path, scope, name, value);
}

static enum lth_code read_output(struct lth_json *json, const struct lth_json_path *path, const json_t *name,
				 struct lth_json_scope *scope)
{
	lth_value_id value;
	enum lth_code code = lth_json_resolve(json, path, scope, name, &value);
	if (code == LTH_OK && value == LTH_NONE)
		code = lth_json_fail(json, path, "the name of a value", "none");
	if (code == LTH_OK && !lth_graph_output(json->base.graph, scope->region, value))
		code = lth_importer_memory(&json->base);
	return code;
}

typedef enum lth_code (*read_fn)(struct lth_json *json, const struct lth_json_path *path, const json_t *value,
				 struct lth_json_scope *scope);

static enum lth_code read_list(struct lth_json *json, const struct lth_json_path *path, const json_t *object,
			       const char *member, bool required, read_fn read, struct lth_json_scope *scope)
{
	const json_t *list = json_object_get(object, member);
	const struct lth_json_path at_list = {path, member, 0};
	enum lth_code code = LTH_OK;
	if (!list)
		return required ? lth_json_fail(json, path, "nodes and outputs", "a graph without %s", member) : LTH_OK;
	if (!json_is_array(list))
		return lth_json_fail(json, &at_list, "a list", "another value");
	for (size_t i = 0; i < json_array_size(list) && code == LTH_OK; i++) {
		const struct lth_json_path at = {&at_list, NULL, i};
		code = read(json, &at, json_array_get(list, i), scope);
	}
	return code;
}

enum lth_code lth_json_graph(struct lth_json *json, const struct lth_json_path *path, const json_t *object,
			     struct lth_json_scope *scope)
{
	enum lth_code code;
	if (scope->depth > LTH_IMPORT_MAX_GRAPH_DEPTH)
		return lth_json_fail(json, path, LTH_IMPORT_GRAPH_DEPTH_RULE, "a deeper one");
	if ((code = read_list(json, path, object, "constants", false, read_constant, scope)) ||
	    (code = read_list(json, path, object, "inputs", false, read_input, scope)) ||
	    (code = read_list(json, path, object, "nodes", true, lth_json_node, scope)))
		return code;
	return read_list(json, path, object, "outputs", true, read_output, scope);
}

/* ---- the document ---- */

/* A number, or an object of domains, or absent. */
static enum lth_code check_opset(struct lth_json *json, const struct lth_json_path *root)
{
	const json_t *opset = json_object_get(json->root, "opset");
	const struct lth_json_path at = {root, "opset", 0};
	const char *domain;
	json_t *version;
	if (json_is_integer(opset) && json_integer_value(opset) >= 1) {
		json->base.graph->opset = json_integer_value(opset);
		return json->base.graph->opset > LTH_NEWEST_OPSET
			       ? lth_json_fail(json, &at, "a version up to 28", "%" PRId64, json->base.graph->opset)
			       : LTH_OK;
	}
	if (!opset) {
		json->base.graph->opset = LTH_NEWEST_OPSET;
		return LTH_OK;
	}
	if (!json_is_object(opset))
		return lth_json_fail(json, &at, "an opset: a version, or a version for each domain", "another value");
	json_object_foreach ((json_t *)(uintptr_t)opset, domain, version) {
		const struct lth_json_path at_domain = {&at, domain, 0};
		if (!json_is_integer(version) || json_integer_value(version) < 1)
			return lth_json_fail(json, &at_domain, "a version of at least 1", "another value");
	}
	const json_t *main = json_object_get(opset, "");
	json->base.graph->opset = main ? json_integer_value(main) : LTH_NEWEST_OPSET;
	return LTH_OK;
}

/* A range for a name that no input uses is a slip of the pen. */
static enum lth_code check_dims_used(struct lth_json *json, const struct lth_json_path *at_dims, const json_t *dims)
{
	const char *name;
	json_t *range;
	json_object_foreach ((json_t *)(uintptr_t)dims, name, range) {
		const struct lth_json_path at = {at_dims, name, 0};
		if (lth_name_map_get(&json->dims, name) == LTH_NONE)
			return lth_json_fail(json, &at, "the name of a dimension of an input", "'%s'", name);
	}
	return LTH_OK;
}

static enum lth_code read_document(struct lth_json *json)
{
	static const char *const members[] = {"format", "name",  "opset",   "dims", "constants",
					      "inputs", "nodes", "outputs", NULL};
	const struct lth_json_path root = {NULL, NULL, 0}, at_format = {&root, "format", 0},
				   at_dims = {&root, "dims", 0};
	struct lth_json_scope scope = {.region = 0};
	const json_t *format = json_object_get(json->root, "format"), *dims = json_object_get(json->root, "dims");
	const json_t *name = json_object_get(json->root, "name");
	enum lth_code code = lth_json_members(json, &root, json->root, members);
	if (code)
		return code;
	if (format && (!json_is_string(format) || strcmp(json_string_value(format), "lathe.graph/1") != 0))
		return lth_json_fail(json, &at_format, "\"lathe.graph/1\"", "another format");
	if (dims && !json_is_object(dims))
		return lth_json_fail(json, &at_dims, "an object of ranges by name", "another value");
	if (name) {
		const struct lth_json_path at = {&root, "name", 0};
		if ((code = lth_json_text(json, &at, name, &json->base.graph->name)))
			return code;
	}
	if ((code = check_opset(json, &root)))
		return code;
	if ((code = lth_json_graph(json, &root, json->root, &scope)))
		return code;
	return dims ? check_dims_used(json, &at_dims, dims) : LTH_OK;
}

enum lth_code lth_import_json(const void *model, size_t size, const struct lth_compile_file *files, size_t num_files,
			      const struct lth_import_options *options, struct lth_arena *arena,
			      struct lth_graph **out_graph, struct lth_diag *diag)
{
	struct lth_json json = {.base = {.files = files, .num_files = num_files, .fault = LTH_INVALID_JSON},
				.text = model,
				.size = size};
	json_error_t error;
	enum lth_code code = lth_importer_begin(&json.base, arena, options, diag);
	if (code)
		return code;
	json_t *root = json_loadb(model, size, JSON_REJECT_DUPLICATES, &error);
	if (!root) {
		char place[64];
		snprintf(place, sizeof(place), "%d:%d", error.line, error.column);
		return lth_diag_fail(diag, LTH_INVALID_JSON, place, "a JSON document", NULL, "%s", error.text);
	}
	json.root = root;
	code = read_document(&json);
	if (code == LTH_OK)
		code = lth_importer_end(&json.base);
	json_decref(root);
	if (code == LTH_OK)
		*out_graph = json.base.graph;
	return code;
}
