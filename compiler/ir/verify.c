/* The graph's invariants (graph.h): run after import, after parsing, and after every pass of checking builds. A walk
 * over the regions in order keeps the set of values that are defined and visible; each value, node and region must be
 * where its own record says. */
#include "compiler/ops/op.h"

#include <stdio.h>

struct verifier {
	const struct lth_graph *graph;
	struct lth_diag *diag;
	bool *visible;      /* by value */
	bool *seen_regions; /* by region */
	bool *seen_nodes;
};

static enum lth_code broken(struct verifier *verifier, const char *place, const char *rule, const char *found)
{
	return lth_diag_fail(verifier->diag, LTH_INVALID_GRAPH, place, rule, NULL, "%s", found);
}

static enum lth_code check_type(struct verifier *verifier, const struct lth_type *type, const char *place,
				unsigned depth)
{
	if (type->kind >= LTH_NUM_TYPE_KINDS || depth > LTH_MAX_TYPE_DEPTH)
		return broken(verifier, place, "a type that nests at most 16 deep",
			      "a deeper one, or a kind that does not exist");
	if (type->kind != LTH_TYPE_TENSOR) {
		if (!type->element || type->dtype != LTH_DTYPE_OBJECT || type->rank != 0)
			return broken(verifier, place, "a handle, and a type of elements", "another");
		return check_type(verifier, type->element, place, depth + 1);
	}
	bool no_rank = type->rank == LTH_RANK_UNKNOWN || (depth > 0 && type->rank == LTH_RANK_NONE);
	if (type->dtype > LTH_NUM_DTYPES || type->dtype == LTH_DTYPE_OBJECT || (type->rank > LTH_MAX_RANK && !no_rank))
		return broken(verifier, place, "an element type, and a rank of at most 16", "another");
	for (uint32_t i = 0; depth == 0 && !no_rank && i < type->rank; i++)
		if (type->dims[i] == LTH_DIM_NONE)
			return broken(verifier, place, "dimensions within 64 bits", "a dimension that overflowed");
	return LTH_OK;
}

static enum lth_code check_constant(struct verifier *verifier, const struct lth_value *value)
{
	int64_t shape[LTH_MAX_RANK], count = 1, bytes;
	if (!lth_type_static(verifier->graph, &value->type, shape) || value->type.dtype >= LTH_NUM_DTYPES)
		return broken(verifier, value->name, "a static type", "a constant of another type");
	for (uint32_t i = 0; i < value->type.rank; i++)
		if (shape[i] < 0 || __builtin_mul_overflow(count, shape[i], &count))
			return broken(verifier, value->name, "a size within 64 bits",
				      "a constant's shape that overflows");
	if (!lth_dtype_bytes(value->type.dtype, count, &bytes) || bytes != value->constant.bytes ||
	    (bytes && !value->constant.data))
		return broken(verifier, value->name, "as many bytes as the type needs", "a constant with others");
	return LTH_OK;
}

static enum lth_code check_values(struct verifier *verifier)
{
	const struct lth_graph *graph = verifier->graph;
	enum lth_code code = LTH_OK;
	for (lth_value_id id = 0; id < graph->num_values && code == LTH_OK; id++) {
		const struct lth_value *value = &graph->values[id];
		if (!value->name || !*value->name)
			return broken(verifier, "values", "a name", "a value without one");
		if (value->def == LTH_DEF_DELETED)
			continue;
		code = check_type(verifier, &value->type, value->name, 0);
		if (code == LTH_OK && value->def == LTH_DEF_CONSTANT) {
			code = check_constant(verifier, value);
			verifier->visible[id] = true;
		}
	}
	return code;
}

static enum lth_code check_use(struct verifier *verifier, const char *place, lth_value_id id)
{
	if (id >= verifier->graph->num_values)
		return broken(verifier, place, "values of the graph", "a value that does not exist");
	if (!verifier->visible[id]) {
		char found[160];
		snprintf(found, sizeof(found), "a use of '%.100s', which is not defined there",
			 verifier->graph->values[id].name);
		return broken(verifier, place, "definitions before uses", found);
	}
	return LTH_OK;
}

static enum lth_code check_region(struct verifier *verifier, lth_region_id id, lth_node_id parent, unsigned depth);

static enum lth_code check_attrs(struct verifier *verifier, lth_node_id id, unsigned depth)
{
	const struct lth_node *node = &verifier->graph->nodes[id];
	enum lth_code code = LTH_OK;
	for (uint32_t i = 0; i < node->num_attrs && code == LTH_OK; i++) {
		const struct lth_attr *attr = &node->attrs[i];
		if (!attr->name || attr->kind >= LTH_NUM_ATTR_KINDS)
			return broken(verifier, node->name, "attributes with name and kind", "another");
		if (attr->kind == LTH_ATTR_TENSOR && (attr->id >= verifier->graph->num_values ||
						      verifier->graph->values[attr->id].def != LTH_DEF_CONSTANT))
			return broken(verifier, node->name, "a constant as tensor attribute", attr->name);
		if (attr->kind == LTH_ATTR_REGION)
			code = check_region(verifier, attr->id, id, depth + 1);
		if (attr->kind == LTH_ATTR_TYPE)
			code = check_type(verifier, attr->type, node->name, 1);
	}
	return code;
}

static enum lth_code check_node(struct verifier *verifier, lth_region_id region, lth_node_id id, unsigned depth)
{
	const struct lth_graph *graph = verifier->graph;
	if (id >= graph->num_nodes || verifier->seen_nodes[id] || graph->nodes[id].region != region)
		return broken(verifier, "regions", "each node once, in its own region", "another");
	const struct lth_node *node = &graph->nodes[id];
	verifier->seen_nodes[id] = true;
	if (node->deleted)
		return LTH_OK;
	if (!node->op || !node->name || node->num_inputs < node->op->min_inputs ||
	    node->num_inputs > node->op->max_inputs || node->num_outputs > node->op->max_outputs)
		return broken(verifier, node->name, "inputs and outputs as the operator has them", "others");
	enum lth_code code = LTH_OK;
	for (uint32_t i = 0; i < node->num_inputs && code == LTH_OK; i++)
		if (node->inputs[i] != LTH_NONE)
			code = check_use(verifier, node->name, node->inputs[i]);
	if (code == LTH_OK)
		code = check_attrs(verifier, id, depth);
	for (uint32_t i = 0; i < node->num_outputs && code == LTH_OK; i++) {
		lth_value_id output = node->outputs[i];
		if (output == LTH_NONE)
			continue;
		if (output >= graph->num_values || verifier->visible[output] ||
		    graph->values[output].def != LTH_DEF_NODE || graph->values[output].def_id != id ||
		    graph->values[output].def_index != i)
			return broken(verifier, node->name, "one definition of each value",
				      "an output whose record names another");
		verifier->visible[output] = true;
	}
	return code;
}

/* Hides what the region defined, for the nodes behind its own. */
static void leave_region(struct verifier *verifier, const struct lth_region *region)
{
	for (uint32_t i = 0; i < region->num_inputs; i++)
		verifier->visible[region->inputs[i]] = false;
	for (uint32_t i = 0; i < region->num_nodes; i++) {
		const struct lth_node *node = &verifier->graph->nodes[region->nodes[i]];
		for (uint32_t k = 0; k < node->num_outputs && !node->deleted; k++)
			if (node->outputs[k] != LTH_NONE)
				verifier->visible[node->outputs[k]] = false;
	}
}

static enum lth_code check_region(struct verifier *verifier, lth_region_id id, lth_node_id parent, unsigned depth)
{
	const struct lth_graph *graph = verifier->graph;
	if (id >= graph->num_regions || verifier->seen_regions[id] || depth > LTH_MAX_REGION_DEPTH ||
	    graph->regions[id].parent != parent)
		return broken(verifier, parent < graph->num_nodes ? graph->nodes[parent].name : "regions",
			      "each region once, in the node that holds it, at most 64 deep", "another");
	const struct lth_region *region = &graph->regions[id];
	verifier->seen_regions[id] = true;
	for (uint32_t i = 0; i < region->num_inputs; i++) {
		lth_value_id input = region->inputs[i];
		enum lth_def_kind kind = id == 0 ? LTH_DEF_INPUT : LTH_DEF_REGION_INPUT;
		if (input >= graph->num_values || verifier->visible[input] || graph->values[input].def != kind ||
		    graph->values[input].def_index != i)
			return broken(verifier, "inputs", "one definition of each value",
				      "an input whose record names another");
		verifier->visible[input] = true;
	}
	enum lth_code code = LTH_OK;
	for (uint32_t i = 0; i < region->num_nodes && code == LTH_OK; i++)
		code = check_node(verifier, id, region->nodes[i], depth);
	for (uint32_t i = 0; i < region->num_outputs && code == LTH_OK; i++)
		code = check_use(verifier, "outputs", region->outputs[i]);
	if (code == LTH_OK && id != 0)
		leave_region(verifier, region);
	return code;
}

/* Passes walk all regions: what no node holds must be empty. */
static enum lth_code check_unowned(struct verifier *verifier)
{
	const struct lth_graph *graph = verifier->graph;
	for (lth_region_id id = 0; id < graph->num_regions; id++)
		if (!verifier->seen_regions[id] && graph->regions[id].num_nodes + graph->regions[id].num_outputs > 0)
			return broken(verifier, "regions", "a node that holds each region that isn't empty", "one without");
	return LTH_OK;
}

enum lth_code lth_graph_verify(const struct lth_graph *graph, struct lth_diag *diag)
{
	struct verifier verifier = {.graph = graph, .diag = diag};
	verifier.visible = lth_arena_array(graph->arena, graph->num_values, sizeof(bool));
	verifier.seen_regions = lth_arena_array(graph->arena, graph->num_regions, sizeof(bool));
	verifier.seen_nodes = lth_arena_array(graph->arena, graph->num_nodes, sizeof(bool));
	if (!verifier.visible || !verifier.seen_regions || !verifier.seen_nodes)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "verify", NULL, NULL, "no memory left");
	enum lth_code code = check_values(&verifier);
	if (code == LTH_OK)
		code = check_region(&verifier, 0, LTH_NONE, 0);
	return code == LTH_OK ? check_unowned(&verifier) : code;
}
