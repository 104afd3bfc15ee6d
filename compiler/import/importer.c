/* From drafts to the graph. See importer.h. */
#include "compiler/import/importer.h"

#include "compiler/ops/history.h"
#include "compiler/ops/op.h"
#include "runtime/base/checked.h"
#include "runtime/base/hash.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- maps of names ---- */

static uint64_t hash_name(const char *name)
{
	return lth_hash_bytes(name, strlen(name), 1);
}

bool lth_name_map_put(struct lth_name_map *map, struct lth_arena *arena, const char *name, uint32_t value)
{
	uint32_t place = map->table.count;
	struct lth_name_entry *entries =
		lth_arena_grow(arena, map->entries, &map->capacity, place + 1, sizeof(*entries));
	assert(lth_name_map_get(map, name) == LTH_NONE);
	if (!entries)
		return false;
	map->entries = entries;
	entries[place] = (struct lth_name_entry){name, value};
	return lth_id_table_put(&map->table, arena, hash_name(name), place);
}

uint32_t lth_name_map_get(const struct lth_name_map *map, const char *name)
{
	uint64_t hash = hash_name(name);
	for (uint32_t at = 0, id; (id = lth_id_table_next(&map->table, hash, &at)) != LTH_ID_NONE;)
		if (strcmp(map->entries[id].name, name) == 0)
			return map->entries[id].value;
	return LTH_NONE;
}

/* ---- faults ---- */

enum lth_code lth_importer_fail(struct lth_importer *importer, enum lth_code code, const char *place,
				const char *expected, const char *found_format, ...)
{
	char found[1024];
	va_list args;
	va_start(args, found_format);
	vsnprintf(found, sizeof(found), found_format, args);
	va_end(args);
	return lth_diag_fail(importer->diag, code, place, expected, NULL, "%s", found);
}

enum lth_code lth_importer_too_many(struct lth_importer *importer, const char *place)
{
	char expected[48];
	snprintf(expected, sizeof(expected), "at most %d nodes", LTH_IMPORT_MAX_NODES);
	return lth_importer_fail(importer, LTH_LIMIT_EXCEEDED, place, expected, "a model with more nodes");
}

enum lth_code lth_importer_one_more(struct lth_importer *importer, const char *place)
{
	return ++importer->num_nodes > LTH_IMPORT_MAX_NODES ? lth_importer_too_many(importer, place) : LTH_OK;
}

enum lth_code lth_importer_memory(struct lth_importer *importer)
{
	return lth_diag_fail(importer->diag, LTH_OUT_OF_MEMORY, "import", NULL, "raise the job's memory limit",
			     "a model that needs more memory than the job may have");
}

enum lth_code lth_importer_tensor_bytes(struct lth_importer *importer, const char *place, enum lth_dtype dtype,
					const int64_t *shape, uint32_t rank, int64_t *out_count, int64_t *out_bytes)
{
	int64_t count = 1, bytes;
	bool empty = false;
	for (uint32_t i = 0; i < rank; i++) {
		if (shape[i] < 0)
			return lth_importer_fail(importer, importer->fault, place, "dimensions of at least 0",
						 "dimension %" PRId64 " on axis %u", shape[i], i);
		empty |= shape[i] == 0;
	}
	for (uint32_t i = 0; i < rank && !empty; i++)
		if (!lth_mul_i64(count, shape[i], &count))
			return lth_importer_fail(importer, importer->fault, place, "a size within 64 bits",
						 "a shape whose number of elements overflows");
	count = empty ? 0 : count;
	if (!lth_dtype_bytes(dtype, count, &bytes))
		return lth_importer_fail(importer, importer->fault, place, "a size within 64 bits",
					 "a tensor whose size overflows");
	*out_count = count;
	*out_bytes = bytes;
	return LTH_OK;
}

const struct lth_compile_file *lth_importer_file(const struct lth_importer *importer, const char *name)
{
	for (size_t i = 0; i < importer->num_files; i++)
		if (strcmp(importer->files[i].name, name) == 0)
			return &importer->files[i];
	return NULL;
}

/* ---- begin and end ---- */

static enum lth_code check_dim(struct lth_importer *importer, const struct lth_import_dim *dim)
{
	char place[160];
	int64_t least;
	snprintf(place, sizeof(place), "dims.%s", dim->name);
	if (dim->min < 0 || dim->max < dim->min || dim->multiple < 1)
		return lth_importer_fail(
			importer, LTH_INVALID_OPTION, place, "0 <= min <= max and a multiple of at least 1",
			"min %" PRId64 ", max %" PRId64 ", multiple %" PRId64, dim->min, dim->max, dim->multiple);
	if (!lth_mul_i64(lth_ceildiv_i64(dim->min, dim->multiple), dim->multiple, &least) || least > dim->max)
		return lth_importer_fail(importer, LTH_INVALID_OPTION, place, "a range that holds a multiple",
					 "no multiple of %" PRId64 " in [%" PRId64 ", %" PRId64 "]", dim->multiple,
					 dim->min, dim->max);
	if (dim->hint != -1 && (dim->hint < dim->min || dim->hint > dim->max || dim->hint % dim->multiple != 0))
		return lth_importer_fail(importer, LTH_INVALID_OPTION, place, "a hint that the range allows",
					 "hint %" PRId64, dim->hint);
	return LTH_OK;
}

enum lth_code lth_importer_begin(struct lth_importer *importer, struct lth_arena *arena,
				 const struct lth_import_options *options, struct lth_diag *diag)
{
	static const struct lth_import_options none;
	importer->arena = arena;
	importer->diag = diag;
	importer->options = options ? options : &none;
	importer->graph = lth_graph_create(arena);
	importer->dims_used = lth_arena_array(arena, importer->options->num_dims, sizeof(*importer->dims_used));
	if (!importer->graph || !importer->dims_used)
		return lth_importer_memory(importer);
	enum lth_code code = LTH_OK;
	for (size_t i = 0; i < importer->options->num_dims && code == LTH_OK; i++)
		code = check_dim(importer, &importer->options->dims[i]);
	return code;
}

enum lth_code lth_importer_symbol(struct lth_importer *importer, const struct lth_import_dim *preset, lth_dim *out)
{
	struct lth_import_dim dim = *preset;
	struct lth_dims *dims = importer->graph->dims;
	for (size_t i = 0; i < importer->options->num_dims; i++) {
		if (strcmp(importer->options->dims[i].name, dim.name) != 0)
			continue;
		dim = importer->options->dims[i];
		importer->dims_used[i] = true;
	}
	enum lth_code code = check_dim(importer, &dim);
	if (code)
		return code;
	int64_t least = lth_ceildiv_i64(dim.min, dim.multiple) * dim.multiple;
	int64_t most = dim.max == INT64_MAX ? INT64_MAX : lth_floordiv_i64(dim.max, dim.multiple) * dim.multiple;
	struct lth_dim_symbol symbol = {.name = dim.name,
					.min = least,
					.max = most,
					.multiple = dim.multiple,
					.hint = dim.hint == -1 ? least : dim.hint,
					.bound = LTH_DIM_NONE};
	*out = least == most ? lth_dim_const(dims, least) : lth_dim_symbol(dims, &symbol);
	return *out == LTH_DIM_NONE ? lth_importer_memory(importer) : LTH_OK;
}

static enum lth_code unused_dim(struct lth_importer *importer, size_t index)
{
	const char *name = importer->options->dims[index].name, *near = NULL;
	uint32_t count = lth_dims_num_symbols(importer->graph->dims);
	const char **names = lth_arena_array(importer->arena, count, sizeof(*names));
	char advice[320] = "the model has no dimension without a fixed size", place[160];
	for (uint32_t i = 0; names && i < count; i++)
		names[i] = lth_dims_symbol(importer->graph->dims, i)->name;
	if (names)
		near = lth_nearest(name, names, count);
	if (names && count)
		snprintf(advice, sizeof(advice), "did you mean '%s'?", near ? near : names[0]);
	snprintf(place, sizeof(place), "dims.%s", name);
	return lth_diag_fail(importer->diag, LTH_INVALID_OPTION, place, "the name of a dimension of the model's inputs",
			     advice, "'%s'", name);
}

static enum lth_code report_missing(struct lth_importer *importer)
{
	struct lth_buf text = {0};
	for (uint32_t i = 0; i < importer->num_missing; i++) {
		const struct lth_missing_op *op = &importer->missing[i];
		lth_buf_printf(&text, "%s%s (%s opset %" PRId64 ", %u node%s, first '%s')", i ? ", " : "", op->op,
			       *op->domain ? op->domain : "ai.onnx", op->version, op->uses, op->uses == 1 ? "" : "s",
			       op->first_node);
	}
	enum lth_code code = lth_diag_fail(importer->diag, LTH_UNSUPPORTED_OP, importer->missing[0].first_node,
					   "operators that /v1/ops lists", NULL, "%s", lth_buf_text(&text));
	lth_buf_free(&text);
	return code;
}

/* A region whose attribute an upgrade dropped or a function does not read has no node: it isn't part of the model. */
static void drop_unowned_regions(struct lth_graph *graph)
{
	for (lth_region_id id = 1; id < graph->num_regions; id++)
		if (graph->regions[id].parent == LTH_NONE)
			lth_graph_clear_region(graph, id);
	lth_graph_compact(graph);
}

enum lth_code lth_importer_end(struct lth_importer *importer)
{
	if (!lth_arena_ok(importer->arena))
		return lth_importer_memory(importer);
	if (importer->num_missing)
		return report_missing(importer);
	for (size_t i = 0; i < importer->options->num_dims; i++)
		if (!importer->dims_used[i])
			return unused_dim(importer, i);
	drop_unowned_regions(importer->graph);
	return lth_graph_verify(importer->graph, importer->diag);
}

/* ---- drafts ---- */

bool lth_draft_input(struct lth_importer *importer, struct lth_draft *draft, lth_value_id value)
{
	lth_value_id *list = lth_arena_grow(importer->arena, draft->inputs, &draft->cap_inputs, draft->num_inputs + 1,
					    sizeof(*list));
	if (!list)
		return false;
	draft->inputs = list;
	list[draft->num_inputs++] = value;
	return true;
}

bool lth_draft_output(struct lth_importer *importer, struct lth_draft *draft, lth_value_id value)
{
	lth_value_id *list = lth_arena_grow(importer->arena, draft->outputs, &draft->cap_outputs,
					    draft->num_outputs + 1, sizeof(*list));
	if (!list)
		return false;
	draft->outputs = list;
	list[draft->num_outputs++] = value;
	return true;
}

bool lth_draft_attr(struct lth_importer *importer, struct lth_draft *draft, const struct lth_attr *attr)
{
	struct lth_attr *list =
		lth_arena_grow(importer->arena, draft->attrs, &draft->cap_attrs, draft->num_attrs + 1, sizeof(*list));
	if (!list)
		return false;
	draft->attrs = list;
	list[draft->num_attrs++] = *attr;
	return true;
}

struct lth_attr *lth_draft_find(const struct lth_draft *draft, const char *name)
{
	for (uint32_t i = 0; i < draft->num_attrs; i++)
		if (strcmp(draft->attrs[i].name, name) == 0)
			return &draft->attrs[i];
	return NULL;
}

void lth_draft_drop(struct lth_draft *draft, const char *name)
{
	struct lth_attr *attr = lth_draft_find(draft, name);
	if (attr) {
		memmove(attr, attr + 1, (size_t)(draft->attrs + draft->num_attrs - attr - 1) * sizeof(*attr));
		draft->num_attrs--;
	}
}

static enum lth_code note_missing(struct lth_importer *importer, const struct lth_draft *draft)
{
	const char *key =
		lth_arena_printf(importer->arena, "%s\n%s\n%" PRId64, draft->domain, draft->op, draft->version);
	if (!key)
		return lth_importer_memory(importer);
	uint32_t index = lth_name_map_get(&importer->missing_map, key);
	if (index != LTH_NONE) {
		importer->missing[index].uses++;
		return LTH_OK;
	}
	struct lth_missing_op *missing = lth_arena_grow(importer->arena, importer->missing, &importer->cap_missing,
							importer->num_missing + 1, sizeof(*missing));
	if (!missing || !lth_name_map_put(&importer->missing_map, importer->arena, key, importer->num_missing))
		return lth_importer_memory(importer);
	importer->missing = missing;
	missing[importer->num_missing++] =
		(struct lth_missing_op){draft->domain, draft->op, draft->name, draft->version, 1};
	return LTH_OK;
}

enum lth_code lth_importer_count(struct lth_importer *importer, const struct lth_draft *draft)
{
	struct lth_graph *graph = importer->graph;
	const char *name = *draft->domain ? lth_arena_printf(importer->arena, "%s.%s", draft->domain, draft->op) : draft->op;
	if (!name)
		return lth_importer_memory(importer);
	uint32_t index = lth_name_map_get(&importer->use_map, name);
	if (index != LTH_NONE) {
		graph->op_uses[index].nodes++;
		return LTH_OK;
	}
	struct lth_op_use *uses = lth_arena_grow(importer->arena, graph->op_uses, &graph->cap_op_uses,
						 graph->num_op_uses + 1, sizeof(*uses));
	if (!uses || !lth_name_map_put(&importer->use_map, importer->arena, name, graph->num_op_uses))
		return lth_importer_memory(importer);
	graph->op_uses = uses;
	uses[graph->num_op_uses++] = (struct lth_op_use){name, 1};
	return LTH_OK;
}

enum lth_code lth_importer_check_version(struct lth_importer *importer, const struct lth_draft *draft)
{
	const struct lth_op_history *history = lth_op_history(draft->domain, draft->op);
	int64_t first = history ? lth_op_first_version(history) : 1;
	char expected[128];
	if (draft->version >= first)
		return LTH_OK;
	const char *set = *draft->domain ? draft->domain : "ai.onnx";
	snprintf(expected, sizeof(expected), "operator set %s %" PRId64 " or later, which has the operator", set, first);
	return lth_importer_fail(importer, LTH_INVALID_GRAPH, draft->name, expected, "%s in a model of %s %" PRId64,
				 draft->op, set, draft->version);
}

/* Absent inputs at the end are no inputs; outputs likewise. */
static void trim(const lth_value_id *list, uint32_t *count)
{
	while (*count && list[*count - 1] == LTH_NONE)
		--*count;
}

/* The changes of old versions ask for ranks: types are inferred as the nodes come, where possible. What is wrong is
 * found again, and reported, by the inference of the whole graph. */
static void infer_early(struct lth_importer *importer, const struct lth_draft *draft, lth_node_id node)
{
	enum { RANKS_MATTER_BELOW = 13 };
	struct lth_diag ignored = {.code = LTH_OK};
	bool inside = draft->region != 0; /* of a loop, perhaps, whose types are not known yet */
	importer->early |= !*draft->domain && draft->version < RANKS_MATTER_BELOW;
	importer->graph->tentative += inside;
	enum lth_code code = importer->early ? lth_infer_node(importer->graph, node, &ignored) : LTH_OK;
	importer->graph->tentative -= inside;
	(void)code;
}

/* How many inputs and outputs the operator has, in words. */
static void describe_ports(const struct lth_op *op, char *out, size_t size)
{
	char inputs[48];
	if (op->max_inputs == UINT32_MAX)
		snprintf(inputs, sizeof(inputs), "%u or more inputs", op->min_inputs);
	else if (op->min_inputs == op->max_inputs)
		snprintf(inputs, sizeof(inputs), "%u input%s", op->min_inputs, op->min_inputs == 1 ? "" : "s");
	else
		snprintf(inputs, sizeof(inputs), "%u to %u inputs", op->min_inputs, op->max_inputs);
	if (op->max_outputs == UINT32_MAX)
		snprintf(out, size, "%s", inputs);
	else
		snprintf(out, size, "%s and at most %u output%s", inputs, op->max_outputs, op->max_outputs == 1 ? "" : "s");
}

enum lth_code lth_importer_emit(struct lth_importer *importer, struct lth_draft *draft)
{
	enum lth_code code = lth_importer_one_more(importer, draft->name);
	if (code)
		return code;
	if (!draft->name || !*draft->name) {
		draft->name = draft->num_outputs && draft->outputs[0] != LTH_NONE
				      ? importer->graph->values[draft->outputs[0]].name
				      : draft->op;
	}
	trim(draft->inputs, &draft->num_inputs);
	code = lth_upgrade(importer, draft);
	if (code || !draft->op)
		return code;
	trim(draft->inputs, &draft->num_inputs);
	trim(draft->outputs, &draft->num_outputs);
	const struct lth_op *op = lth_op_find(draft->domain, draft->op);
	if (!op)
		return note_missing(importer, draft);
	if (draft->num_inputs < op->min_inputs || draft->num_inputs > op->max_inputs ||
	    draft->num_outputs > op->max_outputs) {
		char expected[96];
		describe_ports(op, expected, sizeof(expected));
		return lth_importer_fail(importer, LTH_INVALID_GRAPH, draft->name, expected,
					 "%s with %u inputs and %u outputs", draft->op, draft->num_inputs,
					 draft->num_outputs);
	}
	lth_node_id node =
		lth_graph_node(importer->graph, draft->region, op, draft->name, draft->inputs, draft->num_inputs,
			       draft->outputs, draft->num_outputs, draft->attrs, draft->num_attrs);
	if (node == LTH_NONE)
		return lth_importer_memory(importer);
	infer_early(importer, draft, node);
	return LTH_OK;
}
