/* The order of a graph's nodes. The specification asks for definitions before uses, but files exist that break it, so
 * nodes are sorted where needed; the given order stays where it is valid. A name that a graph inside a node uses and
 * does not define counts as a use by that node. Cycles are refused. */
#include "compiler/import/onnx_internal.h"

#include <string.h>

struct local_names { /* what the graphs around a use define, up to but without the one that is ordered */
	const struct local_names *parent;
	struct lth_name_map map;
};

struct order {
	struct lth_onnx *onnx;
	struct lth_name_map producers; /* name -> node position */
	uint32_t *uses, *first_use;    /* positions of producers; those of node i at [first_use[i], first_use[i + 1]) */
	uint32_t num_uses, cap_uses;
};

static bool note_use(struct order *order, const struct local_names *locals, const char *name)
{
	for (; locals; locals = locals->parent)
		if (lth_name_map_get(&locals->map, name) != LTH_NONE)
			return true;
	uint32_t producer = lth_name_map_get(&order->producers, name);
	if (producer == LTH_NONE)
		return true;
	uint32_t *uses = lth_arena_grow(order->onnx->base.arena, order->uses, &order->cap_uses, order->num_uses + 1,
					sizeof(*uses));
	if (!uses)
		return false;
	order->uses = uses;
	uses[order->num_uses++] = producer;
	return true;
}

static bool define(struct order *order, struct lth_name_map *map, const char *name, uint32_t value)
{
	if (!name || !*name || lth_name_map_get(map, name) != LTH_NONE)
		return true;
	return lth_name_map_put(map, order->onnx->base.arena, name, value);
}

static bool note_graph(struct order *order, const Lth__Onnx__Graph *graph, const struct local_names *parent);

/* Gradient names the tensor that it differentiates, which is none of its inputs. */
static bool note_named(struct order *order, const Lth__Onnx__Node *node, const Lth__Onnx__Attribute *attribute,
		       const struct local_names *locals)
{
	bool names = node->op_type && strcmp(node->op_type, "Gradient") == 0 && attribute->name &&
		     strcmp(attribute->name, "y") == 0;
	if (!names)
		return true;
	const char *name = lth_arena_strndup(order->onnx->base.arena, (const char *)attribute->s.data, attribute->s.len);
	return name && note_use(order, locals, name);
}

static bool note_node(struct order *order, const Lth__Onnx__Node *node, const struct local_names *locals)
{
	bool ok = true;
	for (size_t i = 0; i < node->n_input && ok; i++)
		ok = note_use(order, locals, node->input[i]);
	for (size_t i = 0; i < node->n_attribute && ok; i++) {
		ok = note_named(order, node, node->attribute[i], locals);
		if (node->attribute[i]->g && ok)
			ok = note_graph(order, node->attribute[i]->g, locals);
		for (size_t k = 0; k < node->attribute[i]->n_graphs && ok; k++)
			ok = note_graph(order, node->attribute[i]->graphs[k], locals);
	}
	return ok;
}

static bool note_graph(struct order *order, const Lth__Onnx__Graph *graph, const struct local_names *parent)
{
	struct local_names locals = {.parent = parent};
	bool ok = true;
	for (size_t i = 0; i < graph->n_input && ok; i++)
		ok = define(order, &locals.map, graph->input[i]->name, 0);
	for (size_t i = 0; i < graph->n_initializer && ok; i++)
		ok = define(order, &locals.map, graph->initializer[i]->name, 0);
	for (size_t i = 0; i < graph->n_node && ok; i++)
		for (size_t k = 0; k < graph->node[i]->n_output && ok; k++)
			ok = define(order, &locals.map, graph->node[i]->output[k], 0);
	for (size_t i = 0; i < graph->n_node && ok; i++)
		ok = note_node(order, graph->node[i], &locals);
	for (size_t i = 0; i < graph->n_output && ok; i++)
		ok = !graph->output[i]->name || note_use(order, &locals, graph->output[i]->name);
	return ok;
}

/* Depth first over uses, nodes in the given order, without recursion. */
static enum lth_code sort(struct order *order, Lth__Onnx__Node *const *nodes, uint32_t count, uint32_t *sorted)
{
	enum { NEW, OPEN, DONE };
	struct lth_importer *base = &order->onnx->base;
	uint8_t *state = lth_arena_array(base->arena, count, sizeof(*state));
	uint32_t *stack = lth_arena_array(base->arena, count, sizeof(*stack));
	uint32_t *next = lth_arena_memdup(base->arena, order->first_use, count * sizeof(*next));
	uint32_t done = 0;
	if (!state || !stack || !next)
		return lth_importer_memory(base);
	for (uint32_t root = 0; root < count; root++) {
		uint32_t depth = 0;
		if (state[root] == NEW) {
			state[root] = OPEN;
			stack[depth++] = root;
		}
		while (depth) {
			uint32_t node = stack[depth - 1];
			if (next[node] == order->first_use[node + 1]) {
				state[node] = DONE;
				sorted[done++] = node;
				depth--;
				continue;
			}
			uint32_t producer = order->uses[next[node]++];
			if (state[producer] == OPEN)
				return lth_importer_fail(base, LTH_INVALID_MODEL, lth_onnx_node_place(nodes[node]),
							 "a graph without cycles",
							 "a node that depends on its own result");
			if (state[producer] == NEW) {
				state[producer] = OPEN;
				stack[depth++] = producer;
			}
		}
	}
	return LTH_OK;
}

enum lth_code lth_onnx_order(struct lth_onnx *onnx, Lth__Onnx__Node *const *nodes, size_t count,
			     const uint32_t **out_order)
{
	struct order order = {.onnx = onnx};
	if (count >= UINT32_MAX)
		return lth_importer_memory(&onnx->base);
	uint32_t *sorted = lth_arena_array(onnx->base.arena, count, sizeof(*sorted));
	order.first_use = lth_arena_array(onnx->base.arena, count + 1, sizeof(*order.first_use));
	bool ok = sorted && order.first_use;
	for (uint32_t i = 0; i < count && ok; i++)
		for (size_t k = 0; k < nodes[i]->n_output && ok; k++)
			ok = define(&order, &order.producers, nodes[i]->output[k], i);
	for (uint32_t i = 0; i < count && ok; i++) {
		ok = note_node(&order, nodes[i], NULL);
		order.first_use[i + 1] = order.num_uses;
	}
	if (!ok)
		return lth_importer_memory(&onnx->base);
	*out_order = sorted;
	return sort(&order, nodes, (uint32_t)count, sorted);
}
