/* The functions of an ONNX model: found by name, and counted before any is inlined. Functions that call functions can
 * write any number of nodes: thirty of two calls each write a billion, so the number is reckoned function by function,
 * each once, instead of by writing until the limit is met. */
#include "compiler/import/onnx_internal.h"

#include "compiler/ops/op.h"
#include "runtime/base/hash.h"

#include <string.h>

enum { UNKNOWN = -1 };

static const char *text_or_empty(const char *text)
{
	return text ? text : "";
}

static uint64_t hash_names(const char *domain, const char *name, const char *overload)
{
	uint64_t hash = lth_hash_bytes(domain, strlen(domain), 1);
	hash = lth_hash_bytes(name, strlen(name), hash);
	return lth_hash_bytes(overload, strlen(overload), hash);
}

const Lth__Onnx__Function *lth_onnx_function(const struct lth_onnx *onnx, const Lth__Onnx__Node *node,
					     uint32_t *out_index)
{
	const char *domain = lth_onnx_domain(node->domain), *name = text_or_empty(node->op_type);
	const char *overload = text_or_empty(node->overload);
	uint64_t hash = hash_names(domain, name, overload);
	for (uint32_t at = 0, id; (id = lth_id_table_next(&onnx->functions, hash, &at)) != LTH_ID_NONE;) {
		const Lth__Onnx__Function *function = onnx->model->functions[id];
		if (strcmp(text_or_empty(function->name), name) == 0 &&
		    strcmp(lth_onnx_domain(function->domain), domain) == 0 &&
		    strcmp(text_or_empty(function->overload), overload) == 0) {
			*out_index = id;
			return function;
		}
	}
	return NULL;
}

/* ---- counting ---- */

struct count {
	const struct lth_onnx *onnx;
	int64_t *of_functions; /* by index; UNKNOWN */
	unsigned depth;
};

static int64_t count_nodes(struct count *count, Lth__Onnx__Node *const *nodes, size_t num_nodes);

static int64_t count_attribute(struct count *count, const Lth__Onnx__Attribute *attribute)
{
	int64_t sum = attribute->g ? count_nodes(count, attribute->g->node, attribute->g->n_node) : 0;
	for (size_t i = 0; i < attribute->n_graphs && sum <= LTH_IMPORT_MAX_NODES; i++)
		sum += count_nodes(count, attribute->graphs[i]->node, attribute->graphs[i]->n_node);
	return sum;
}

/* Calls deeper than inlining follows count nothing: they are refused when it comes to them. */
static int64_t count_call(struct count *count, uint32_t index)
{
	if (count->of_functions[index] != UNKNOWN || count->depth == LTH_ONNX_MAX_CALL_DEPTH)
		return count->of_functions[index] == UNKNOWN ? 0 : count->of_functions[index];
	const Lth__Onnx__Function *function = count->onnx->model->functions[index];
	count->depth++;
	int64_t sum = count_nodes(count, function->node, function->n_node);
	for (size_t i = 0; i < function->n_attribute_proto && sum <= LTH_IMPORT_MAX_NODES; i++)
		sum += count_attribute(count, function->attribute_proto[i]);
	count->depth--;
	return count->of_functions[index] = sum;
}

/* Nodes that are written for these, and calls that are followed, up to one more than are allowed. */
static int64_t count_nodes(struct count *count, Lth__Onnx__Node *const *nodes, size_t num_nodes)
{
	int64_t sum = 0;
	for (size_t i = 0; i < num_nodes && sum <= LTH_IMPORT_MAX_NODES; i++) {
		uint32_t index;
		bool known = lth_op_find(lth_onnx_domain(nodes[i]->domain), text_or_empty(nodes[i]->op_type)) != NULL;
		sum += 1 + (!known && lth_onnx_function(count->onnx, nodes[i], &index) ? count_call(count, index) : 0);
		for (size_t k = 0; k < nodes[i]->n_attribute && sum <= LTH_IMPORT_MAX_NODES; k++)
			sum += count_attribute(count, nodes[i]->attribute[k]);
	}
	return sum > LTH_IMPORT_MAX_NODES ? LTH_IMPORT_MAX_NODES + 1 : sum;
}

enum lth_code lth_onnx_functions(struct lth_onnx *onnx)
{
	struct lth_arena *arena = onnx->base.arena;
	size_t num_functions = onnx->model->n_functions;
	struct count count = {.onnx = onnx,
			      .of_functions = lth_arena_array(arena, num_functions + 1, sizeof(*count.of_functions))};
	if (!count.of_functions)
		return lth_importer_memory(&onnx->base);
	for (uint32_t i = 0; i < num_functions; i++) {
		const Lth__Onnx__Function *function = onnx->model->functions[i];
		uint64_t hash = hash_names(lth_onnx_domain(function->domain), text_or_empty(function->name),
					   text_or_empty(function->overload));
		if (!lth_id_table_put(&onnx->functions, arena, hash, i))
			return lth_importer_memory(&onnx->base);
		count.of_functions[i] = UNKNOWN;
	}
	const Lth__Onnx__Graph *graph = onnx->model->graph;
	if (count_nodes(&count, graph->node, graph->n_node) > LTH_IMPORT_MAX_NODES)
		return lth_importer_too_many(&onnx->base, text_or_empty(graph->name));
	return LTH_OK;
}
