/* Graphs and functions of an ONNX model into regions. Functions are inlined where they are called, unless Lathe knows
 * the operator itself; graphs inside nodes become regions that see the names around them. */
#include "compiler/import/onnx_internal.h"

#include "compiler/ops/op.h"

#include <inttypes.h>
#include <string.h>

#define ABSENT (LTH_NONE - 1) /* a function's input that the caller left out */

enum attribute_type { /* AttributeProto.AttributeType */
		      TYPE_UNDEFINED,
		      TYPE_FLOAT,
		      TYPE_INT,
		      TYPE_STRING,
		      TYPE_TENSOR,
		      TYPE_GRAPH,
		      TYPE_FLOATS,
		      TYPE_INTS,
		      TYPE_STRINGS,
		      TYPE_TENSORS,
		      TYPE_GRAPHS,
		      TYPE_SPARSE_TENSOR,
		      TYPE_SPARSE_TENSORS,
		      TYPE_TYPE_PROTO,
		      TYPE_TYPE_PROTOS
};

static const char *text_or_empty(const char *text)
{
	return text ? text : "";
}

const char *lth_onnx_node_place(const Lth__Onnx__Node *node)
{
	if (node->name && *node->name)
		return node->name;
	for (size_t i = 0; i < node->n_output; i++)
		if (*node->output[i])
			return node->output[i];
	return text_or_empty(node->op_type);
}

static enum lth_code memory_unless(struct lth_onnx *onnx, bool ok)
{
	return ok ? LTH_OK : lth_importer_memory(&onnx->base);
}

/* ---- names ---- */

static const char *prefixed(struct lth_onnx *onnx, const char *name)
{
	return *onnx->prefix ? lth_arena_printf(onnx->base.arena, "%s%s", onnx->prefix, name) : name;
}

static enum lth_code define(struct lth_onnx *onnx, struct lth_onnx_scope *scope, const char *place, const char *name,
			    lth_value_id value)
{
	if (lth_name_map_get(&scope->values, name) != LTH_NONE)
		return lth_importer_fail(&onnx->base, LTH_INVALID_MODEL, place, "one definition of each name",
					 "a second definition of '%s'", name);
	return memory_unless(onnx, lth_name_map_put(&scope->values, onnx->base.arena, name, value));
}

static enum lth_code resolve(struct lth_onnx *onnx, const struct lth_onnx_scope *scope, const char *place,
			     const char *name, lth_value_id *out)
{
	for (const struct lth_onnx_scope *s = scope; s; s = s->parent) {
		uint32_t id = lth_name_map_get(&s->values, name);
		if (id != LTH_NONE) {
			*out = id == ABSENT ? LTH_NONE : id;
			return LTH_OK;
		}
	}
	return lth_importer_fail(&onnx->base, LTH_INVALID_MODEL, place,
				 "the name of an input, a constant or a node's output",
				 "a use of '%s', which nothing defines", name);
}

static int64_t opset_version(const struct lth_onnx *onnx, const char *domain)
{
	for (size_t i = 0; i < onnx->num_opsets; i++) {
		const char *other = text_or_empty(onnx->opsets[i]->domain);
		other = strcmp(other, "ai.onnx") == 0 ? "" : other;
		if (strcmp(other, domain) == 0)
			return onnx->opsets[i]->version;
	}
	return 1; /* files from before operator sets, and domains that the model forgot to name */
}

/* ---- attributes ---- */

static int attribute_type(const Lth__Onnx__Attribute *attribute)
{
	if (attribute->type)
		return attribute->type;
	return attribute->has_f           ? TYPE_FLOAT /* files of the first IR versions leave the type out */
	       : attribute->has_i         ? TYPE_INT
	       : attribute->has_s         ? TYPE_STRING
	       : attribute->t             ? TYPE_TENSOR
	       : attribute->g             ? TYPE_GRAPH
	       : attribute->n_floats      ? TYPE_FLOATS
	       : attribute->n_ints        ? TYPE_INTS
	       : attribute->n_strings     ? TYPE_STRINGS
	       : attribute->sparse_tensor ? TYPE_SPARSE_TENSOR
	       : attribute->tp            ? TYPE_TYPE_PROTO
					  : TYPE_UNDEFINED;
}

static bool attribute_string(struct lth_onnx *onnx, const ProtobufCBinaryData *bytes, struct lth_string *out)
{
	out->data = lth_arena_strndup(onnx->base.arena, (const char *)bytes->data, bytes->len);
	out->size = bytes->len;
	return out->data != NULL;
}

static bool attribute_list(struct lth_onnx *onnx, const Lth__Onnx__Attribute *attribute, int type, struct lth_attr *out)
{
	struct lth_arena *arena = onnx->base.arena;
	if (type == TYPE_INTS) {
		static const int64_t none[1] = {0}; /* lists are never NULL, as those of the other importers are not */
		out->kind = LTH_ATTR_INTS;
		out->count = (uint32_t)attribute->n_ints;
		out->ints = attribute->n_ints ? attribute->ints : none;
		return true;
	}
	if (type == TYPE_FLOATS) {
		double *floats = lth_arena_array(arena, attribute->n_floats, sizeof(*floats));
		for (size_t i = 0; floats && i < attribute->n_floats; i++)
			floats[i] = (double)attribute->floats[i];
		out->kind = LTH_ATTR_FLOATS;
		out->count = (uint32_t)attribute->n_floats;
		out->floats = floats;
		return floats != NULL;
	}
	struct lth_string *strings = lth_arena_array(arena, attribute->n_strings, sizeof(*strings));
	bool ok = strings != NULL;
	for (size_t i = 0; i < attribute->n_strings && ok; i++)
		ok = attribute_string(onnx, &attribute->strings[i], &strings[i]);
	out->kind = LTH_ATTR_STRINGS;
	out->count = (uint32_t)attribute->n_strings;
	out->strings = strings;
	return ok;
}

static enum lth_code attribute_region(struct lth_onnx *onnx, const Lth__Onnx__Attribute *attribute, const char *place,
				      const struct lth_onnx_scope *scope, struct lth_attr *out)
{
	struct lth_onnx_scope inner = {.parent = scope, .depth = scope->depth + 1};
	if (inner.depth > LTH_IMPORT_MAX_GRAPH_DEPTH)
		return lth_importer_fail(&onnx->base, LTH_INVALID_MODEL, place, LTH_IMPORT_GRAPH_DEPTH_RULE,
					 "attribute '%s' with a deeper one, or a function that calls itself in it",
					 out->name);
	inner.region = lth_graph_region(onnx->base.graph, LTH_NONE);
	out->kind = LTH_ATTR_REGION;
	out->id = inner.region;
	return inner.region == LTH_NONE ? lth_importer_memory(&onnx->base) : lth_onnx_graph(onnx, attribute->g, &inner);
}

static enum lth_code attribute_type_proto(struct lth_onnx *onnx, const Lth__Onnx__Attribute *attribute,
					  const char *place, struct lth_attr *out)
{
	struct lth_type type;
	enum lth_code code = lth_onnx_type(onnx, attribute->tp, place, LTH_DIMS_INFERRED, &type);
	if (code)
		return code;
	out->kind = LTH_ATTR_TYPE;
	out->type = lth_arena_memdup(onnx->base.arena, &type, sizeof(type));
	return memory_unless(onnx, out->type != NULL);
}

static enum lth_code convert_attribute(struct lth_onnx *onnx, const Lth__Onnx__Attribute *attribute, const char *place,
				       const struct lth_onnx_scope *scope, struct lth_attr *out)
{
	int type = attribute_type(attribute);
	const char *value_name = lth_arena_printf(onnx->base.arena, "%s.%s", place, text_or_empty(attribute->name));
	*out = (struct lth_attr){.name = text_or_empty(attribute->name), .count = 1};
	if (!value_name)
		return lth_importer_memory(&onnx->base);
	switch (type) {
	case TYPE_FLOAT:
		out->kind = LTH_ATTR_FLOAT;
		out->f = (double)attribute->f;
		return LTH_OK;
	case TYPE_INT:
		out->kind = LTH_ATTR_INT;
		out->i = attribute->i;
		return LTH_OK;
	case TYPE_STRING:
		out->kind = LTH_ATTR_STRING;
		return memory_unless(onnx, attribute_string(onnx, &attribute->s, &out->s));
	case TYPE_FLOATS:
	case TYPE_INTS:
	case TYPE_STRINGS: return memory_unless(onnx, attribute_list(onnx, attribute, type, out));
	default: break;
	}
	out->kind = LTH_ATTR_TENSOR;
	if (type == TYPE_TENSOR && attribute->t)
		return lth_onnx_tensor(onnx, attribute->t, value_name, &out->id);
	if (type == TYPE_SPARSE_TENSOR && attribute->sparse_tensor)
		return lth_onnx_sparse(onnx, attribute->sparse_tensor, value_name, &out->id);
	if (type == TYPE_GRAPH && attribute->g)
		return attribute_region(onnx, attribute, place, scope, out);
	if (type == TYPE_TYPE_PROTO && attribute->tp)
		return attribute_type_proto(onnx, attribute, place, out);
	bool known_list =
		type == TYPE_TENSORS || type == TYPE_GRAPHS || type == TYPE_SPARSE_TENSORS || type == TYPE_TYPE_PROTOS;
	return lth_importer_fail(&onnx->base, known_list ? LTH_UNSUPPORTED : LTH_INVALID_MODEL, place,
				 "an attribute whose value fits its type", "attribute '%s' of type %d", out->name,
				 type);
}

static const struct lth_attr *find_attr(const struct lth_attr *attrs, uint32_t count, const char *name)
{
	for (uint32_t i = 0; i < count; i++)
		if (strcmp(attrs[i].name, name) == 0)
			return &attrs[i];
	return NULL;
}

/* Adds an attribute of a node; one that names its function's attribute takes that value, or is left out. */
static enum lth_code add_attribute(struct lth_onnx *onnx, const Lth__Onnx__Attribute *attribute, const char *place,
				   const struct lth_onnx_scope *scope, struct lth_draft *draft)
{
	struct lth_attr attr;
	if (attribute->ref_attr_name && *attribute->ref_attr_name) {
		const struct lth_attr *given =
			onnx->call ? find_attr(onnx->call->attrs, onnx->call->num_attrs, attribute->ref_attr_name)
				   : NULL;
		if (!given)
			return LTH_OK;
		attr = *given;
		attr.name = text_or_empty(attribute->name);
		if (attr.kind == LTH_ATTR_REGION && onnx->base.graph->regions[attr.id].parent != LTH_NONE)
			return lth_importer_fail(&onnx->base, LTH_UNSUPPORTED, place, NULL,
						 "a function that uses its graph attribute '%s' twice",
						 attribute->ref_attr_name);
	} else {
		enum lth_code code = convert_attribute(onnx, attribute, place, scope, &attr);
		if (code)
			return code;
	}
	if (!*attr.name || lth_draft_find(draft, attr.name))
		return lth_importer_fail(&onnx->base, LTH_INVALID_MODEL, place, "attributes with a name each",
					 "attribute '%s' twice, or without a name", attr.name);
	return memory_unless(onnx, lth_draft_attr(&onnx->base, draft, &attr));
}

/* ---- nodes ---- */

static enum lth_code constant_list(struct lth_onnx *onnx, const struct lth_attr *attr, const char *name,
				   lth_value_id *out)
{
	struct lth_graph *graph = onnx->base.graph;
	struct lth_arena *arena = onnx->base.arena;
	bool list = attr->kind == LTH_ATTR_INTS || attr->kind == LTH_ATTR_FLOATS || attr->kind == LTH_ATTR_STRINGS;
	const int64_t shape[1] = {attr->count};
	int64_t count = attr->count;
	enum lth_dtype dtype = LTH_DTYPE_STRING;
	const void *data;
	if (attr->kind == LTH_ATTR_INT || attr->kind == LTH_ATTR_INTS) {
		dtype = LTH_DTYPE_I64;
		data = list ? attr->ints : lth_arena_memdup(arena, &attr->i, sizeof(attr->i));
	} else if (attr->kind == LTH_ATTR_FLOAT || attr->kind == LTH_ATTR_FLOATS) {
		dtype = LTH_DTYPE_F32;
		float *floats = lth_arena_array(arena, attr->count, sizeof(*floats));
		for (uint32_t i = 0; floats && i < attr->count; i++)
			floats[i] = (float)(list ? attr->floats[i] : attr->f);
		data = floats;
	} else {
		data = list ? attr->strings : lth_arena_memdup(arena, &attr->s, sizeof(attr->s));
	}
	if (!data && count)
		return lth_importer_memory(&onnx->base);
	int64_t bytes = count * (int64_t)(lth_dtype_bits(dtype) / 8);
	*out = lth_graph_constant(graph, name, dtype, list ? 1 : 0, shape, data, bytes);
	return memory_unless(onnx, *out != LTH_NONE);
}

/* Constant in each of its forms; the attribute says which. */
static enum lth_code constant_node(struct lth_onnx *onnx, const Lth__Onnx__Node *node, const struct lth_draft *draft,
				   struct lth_onnx_scope *scope)
{
	lth_value_id value;
	if (draft->num_attrs != 1 || node->n_output != 1)
		return lth_importer_fail(&onnx->base, LTH_INVALID_MODEL, draft->name, "one attribute and one output",
					 "a Constant with %u attributes and %zu outputs", draft->num_attrs,
					 node->n_output);
	const struct lth_attr *attr = &draft->attrs[0];
	if (attr->kind == LTH_ATTR_TENSOR) {
		value = attr->id;
	} else if (attr->kind == LTH_ATTR_REGION || attr->kind == LTH_ATTR_TYPE) {
		return lth_importer_fail(&onnx->base, LTH_INVALID_MODEL, draft->name, "a tensor or a list",
					 "a Constant with attribute '%s'", attr->name);
	} else {
		enum lth_code code = constant_list(onnx, attr, prefixed(onnx, node->output[0]), &value);
		if (code)
			return code;
	}
	return define(onnx, scope, draft->name, node->output[0], value);
}

static enum lth_code run_nodes(struct lth_onnx *onnx, Lth__Onnx__Node *const *nodes, size_t count,
			       struct lth_onnx_scope *scope);

/* What the body sees: the caller's attributes, then the function's presets. */
static enum lth_code call_attributes(struct lth_onnx *onnx, const Lth__Onnx__Function *function,
				     const struct lth_onnx_scope *around, struct lth_draft *draft)
{
	const struct lth_onnx_scope empty = {.depth = around->depth};
	enum lth_code code = LTH_OK;
	for (size_t i = 0; i < function->n_attribute_proto && code == LTH_OK; i++) {
		const Lth__Onnx__Attribute *preset = function->attribute_proto[i];
		if (!lth_draft_find(draft, text_or_empty(preset->name)))
			code = add_attribute(onnx, preset, draft->name, &empty, draft);
	}
	return code;
}

static enum lth_code bind_inputs(struct lth_onnx *onnx, const Lth__Onnx__Function *function,
				 const struct lth_draft *draft, struct lth_onnx_scope *inner)
{
	if (draft->num_inputs > function->n_input)
		return lth_importer_fail(&onnx->base, LTH_INVALID_MODEL, draft->name,
					 "no more inputs than the function has", "%u inputs for '%s'",
					 draft->num_inputs, draft->op);
	enum lth_code code = LTH_OK;
	for (size_t i = 0; i < function->n_input && code == LTH_OK; i++) {
		lth_value_id given = i < draft->num_inputs ? draft->inputs[i] : LTH_NONE;
		code = define(onnx, inner, draft->name, function->input[i], given == LTH_NONE ? ABSENT : given);
	}
	return code;
}

/* The nodes of the function's body, and the graphs of its presets: with its operator sets, deeper by a call. */
static enum lth_code inline_body(struct lth_onnx *onnx, const Lth__Onnx__Function *function, struct lth_draft *draft,
				 struct lth_onnx_scope *inner)
{
	const struct lth_onnx outer = *onnx;
	struct lth_onnx_call call;
	enum lth_code code;
	onnx->call = NULL;
	onnx->call_depth++;
	onnx->opsets = function->opset_import;
	onnx->num_opsets = function->n_opset_import;
	onnx->prefix = lth_arena_printf(onnx->base.arena, "%s/", draft->name);
	if (!onnx->prefix)
		return lth_importer_memory(&onnx->base);
	code = call_attributes(onnx, function, inner, draft);
	if (code == LTH_OK) {
		call = (struct lth_onnx_call){draft->attrs, draft->num_attrs};
		onnx->call = &call;
		code = run_nodes(onnx, function->node, function->n_node, inner);
	}
	onnx->call = outer.call;
	onnx->call_depth = outer.call_depth;
	onnx->opsets = outer.opsets;
	onnx->num_opsets = outer.num_opsets;
	onnx->prefix = outer.prefix;
	return code;
}

static enum lth_code inline_function(struct lth_onnx *onnx, const Lth__Onnx__Function *function,
				     const Lth__Onnx__Node *node, struct lth_draft *draft, struct lth_onnx_scope *scope)
{
	struct lth_onnx_scope inner = {.region = scope->region, .depth = scope->depth};
	enum lth_code code;
	if (onnx->call_depth == LTH_ONNX_MAX_CALL_DEPTH)
		return lth_importer_fail(&onnx->base, LTH_INVALID_MODEL, draft->name,
					 "functions that call at most 32 deep",
					 "deeper calls, or a function that calls itself: '%s'", draft->op);
	if ((code = lth_importer_one_more(&onnx->base, draft->name)) ||
	    (code = bind_inputs(onnx, function, draft, &inner)) ||
	    (code = inline_body(onnx, function, draft, &inner)))
		return code;
	if (node->n_output > function->n_output)
		return lth_importer_fail(&onnx->base, LTH_INVALID_MODEL, draft->name,
					 "no more outputs than the function has", "%zu outputs for '%s'",
					 node->n_output, draft->op);
	for (size_t i = 0; i < node->n_output && code == LTH_OK; i++) {
		lth_value_id value = LTH_NONE;
		if (!*node->output[i])
			continue;
		code = resolve(onnx, &inner, draft->name, function->output[i], &value);
		if (code == LTH_OK)
			code = define(onnx, scope, draft->name, node->output[i], value == LTH_NONE ? ABSENT : value);
	}
	return code;
}

static enum lth_code make_outputs(struct lth_onnx *onnx, const Lth__Onnx__Node *node, struct lth_draft *draft,
				  struct lth_onnx_scope *scope)
{
	enum lth_code code = LTH_OK;
	for (size_t i = 0; i < node->n_output && code == LTH_OK; i++) {
		lth_value_id value = LTH_NONE;
		if (*node->output[i]) {
			const char *name = prefixed(onnx, node->output[i]);
			value = name ? lth_graph_value(onnx->base.graph, name, NULL) : LTH_NONE;
			if (value != LTH_NONE)
				onnx->base.graph->values[value].declared_rank =
					lth_name_map_get(&scope->ranks, node->output[i]);
			code = value == LTH_NONE ? lth_importer_memory(&onnx->base)
						 : define(onnx, scope, draft->name, node->output[i], value);
		}
		if (code == LTH_OK)
			code = memory_unless(onnx, lth_draft_output(&onnx->base, draft, value));
	}
	return code;
}

static enum lth_code run_node(struct lth_onnx *onnx, const Lth__Onnx__Node *node, struct lth_onnx_scope *scope)
{
	const char *domain = lth_onnx_domain(node->domain);
	struct lth_draft draft = {.domain = domain,
				  .op = text_or_empty(node->op_type),
				  .region = scope->region,
				  .version = opset_version(onnx, domain)};
	draft.name = prefixed(onnx, lth_onnx_node_place(node));
	enum lth_code code = memory_unless(onnx, draft.name != NULL);
	for (size_t i = 0; i < node->n_input && code == LTH_OK; i++) {
		lth_value_id value = LTH_NONE;
		if (*node->input[i])
			code = resolve(onnx, scope, draft.name, node->input[i], &value);
		if (code == LTH_OK)
			code = memory_unless(onnx, lth_draft_input(&onnx->base, &draft, value));
	}
	for (size_t i = 0; i < node->n_attribute && code == LTH_OK; i++)
		code = add_attribute(onnx, node->attribute[i], draft.name, scope, &draft);
	if (code)
		return code;
	uint32_t index;
	const Lth__Onnx__Function *function = lth_onnx_function(onnx, node, &index);
	if (function && !lth_op_find(domain, draft.op)) /* Lathe's own operator wins */
		return inline_function(onnx, function, node, &draft, scope);
	if ((code = lth_importer_count(&onnx->base, &draft)) ||
	    (code = function ? LTH_OK : lth_importer_check_version(&onnx->base, &draft)))
		return code;
	if (!*domain && strcmp(draft.op, "Constant") == 0)
		return constant_node(onnx, node, &draft, scope);
	code = make_outputs(onnx, node, &draft, scope);
	return code ? code : lth_importer_emit(&onnx->base, &draft);
}

static enum lth_code run_nodes(struct lth_onnx *onnx, Lth__Onnx__Node *const *nodes, size_t count,
			       struct lth_onnx_scope *scope)
{
	const uint32_t *order;
	enum lth_code code = lth_onnx_order(onnx, nodes, count, &order);
	for (size_t i = 0; i < count && code == LTH_OK; i++)
		code = run_node(onnx, nodes[order[i]], scope);
	return code;
}

/* ---- graphs ---- */

static enum lth_code constants(struct lth_onnx *onnx, const Lth__Onnx__Graph *graph, struct lth_onnx_scope *scope)
{
	enum lth_code code = LTH_OK;
	lth_value_id value;
	for (size_t i = 0; i < graph->n_initializer && code == LTH_OK; i++) {
		const char *name = text_or_empty(graph->initializer[i]->name);
		code = lth_onnx_tensor(onnx, graph->initializer[i], prefixed(onnx, name), &value);
		if (code == LTH_OK)
			code = define(onnx, scope, name, name, value);
	}
	for (size_t i = 0; i < graph->n_sparse_initializer && code == LTH_OK; i++) {
		const Lth__Onnx__SparseTensor *sparse = graph->sparse_initializer[i];
		const char *name = sparse->values ? text_or_empty(sparse->values->name) : "";
		code = lth_onnx_sparse(onnx, sparse, prefixed(onnx, name), &value);
		if (code == LTH_OK)
			code = define(onnx, scope, name, name, value);
	}
	return code;
}

/* Of a tensor; LTH_RANK_UNKNOWN where the type does not say. */
static uint32_t declared_rank(const Lth__Onnx__Type *type)
{
	bool told = type && type->tensor_type && type->tensor_type->shape &&
		    type->tensor_type->shape->n_dim <= LTH_MAX_RANK;
	return told ? (uint32_t)type->tensor_type->shape->n_dim : LTH_RANK_UNKNOWN;
}

/* Of a tensor; LTH_NUM_DTYPES where the type does not say. */
static enum lth_dtype declared_dtype(const Lth__Onnx__Type *type)
{
	return type && type->tensor_type ? lth_dtype_by_onnx(type->tensor_type->elem_type) : LTH_NUM_DTYPES;
}

/* An input that has an initializer is a constant: its default is what it is compiled with. */
static enum lth_code inputs(struct lth_onnx *onnx, const Lth__Onnx__Graph *graph, struct lth_onnx_scope *scope)
{
	bool main = scope->region == 0;
	for (size_t i = 0; i < graph->n_input; i++) {
		const char *name = text_or_empty(graph->input[i]->name);
		struct lth_type type;
		if (lth_name_map_get(&scope->values, name) != LTH_NONE) {
			bool constant = onnx->base.graph->values[lth_name_map_get(&scope->values, name)].def ==
					LTH_DEF_CONSTANT;
			if (constant)
				continue;
		}
		if (!*name || (main && !graph->input[i]->type))
			return lth_importer_fail(&onnx->base, LTH_INVALID_MODEL, *name ? name : "inputs",
						 "inputs with a name and a type", "input %zu without", i);
		enum lth_import_dims dims = main ? LTH_DIMS_INPUT : LTH_DIMS_INFERRED;
		enum lth_code code = lth_onnx_type(onnx, graph->input[i]->type, name, dims, &type);
		if (code)
			return code;
		lth_value_id value = lth_graph_input(onnx->base.graph, scope->region, prefixed(onnx, name), &type);
		if (value != LTH_NONE)
			onnx->base.graph->values[value].declared_rank = declared_rank(graph->input[i]->type);
		code = value == LTH_NONE ? lth_importer_memory(&onnx->base) : define(onnx, scope, name, name, value);
		if (code)
			return code;
	}
	return LTH_OK;
}

/* Sizes are inferred, but the length of a list that the run brings, a model tells by the rank of the result alone. */
static enum lth_code declared_ranks(struct lth_onnx *onnx, Lth__Onnx__ValueInfo *const *list, size_t count,
				    struct lth_onnx_scope *scope)
{
	for (size_t i = 0; i < count; i++) {
		const char *name = text_or_empty(list[i]->name);
		uint32_t rank = declared_rank(list[i]->type);
		if (rank == LTH_RANK_UNKNOWN || lth_name_map_get(&scope->ranks, name) != LTH_NONE)
			continue;
		if (!lth_name_map_put(&scope->ranks, onnx->base.arena, name, rank))
			return lth_importer_memory(&onnx->base);
	}
	return LTH_OK;
}

enum lth_code lth_onnx_graph(struct lth_onnx *onnx, const Lth__Onnx__Graph *graph, struct lth_onnx_scope *scope)
{
	enum lth_code code;
	if ((code = constants(onnx, graph, scope)) || (code = inputs(onnx, graph, scope)) ||
	    (code = declared_ranks(onnx, graph->value_info, graph->n_value_info, scope)) ||
	    (code = declared_ranks(onnx, graph->output, graph->n_output, scope)) ||
	    (code = run_nodes(onnx, graph->node, graph->n_node, scope)))
		return code;
	for (size_t i = 0; i < graph->n_output && code == LTH_OK; i++) {
		const char *name = text_or_empty(graph->output[i]->name);
		lth_value_id value;
		code = resolve(onnx, scope, name, name, &value);
		if (code == LTH_OK && value == LTH_NONE)
			code = lth_importer_fail(&onnx->base, LTH_INVALID_MODEL, name, "an output with a value",
						 "an absent input as output");
		if (code == LTH_OK && scope->region == 0)
			onnx->base.graph->values[value].declared_dtype = declared_dtype(graph->output[i]->type);
		if (code == LTH_OK)
			code = memory_unless(onnx, lth_graph_output(onnx->base.graph, scope->region, value));
	}
	return code;
}
