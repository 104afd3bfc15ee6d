/* Data symbols that stand for elements of values, and which value binds each in the run. A pass that puts one value in
 * another's place moves the bindings along; names only tell people where a symbol came from. */
#include "compiler/ir/graph.h"

#include <string.h>

static bool is_bound(const struct lth_graph *graph, uint32_t symbol)
{
	for (uint32_t i = 0; i < graph->num_bindings; i++)
		if (graph->bindings[i].symbol == symbol)
			return true;
	return false;
}

static uint32_t number_of(const struct lth_dims *dims, lth_dim symbol)
{
	uint32_t number = 0;
	while (lth_dims_symbol_dim(dims, number) != symbol)
		number++;
	return number;
}

/* "VALUE[element]"; with a number behind it when that is another symbol's. A symbol that text declares, and that
 * nothing binds yet, is meant. */
static const char *free_name(const struct lth_graph *graph, const char *value, uint32_t element)
{
	const char *name = lth_arena_printf(graph->arena, "%s[%u]", value, element);
	for (uint32_t n = 1; name; n++) {
		lth_dim found = lth_dim_find_symbol(graph->dims, name);
		if (found == LTH_DIM_NONE)
			return name;
		uint32_t number = number_of(graph->dims, found);
		if (lth_dims_symbol(graph->dims, number)->from_data && !is_bound(graph, number))
			return name;
		name = lth_arena_printf(graph->arena, "%s[%u].%u", value, element, n);
	}
	return NULL;
}

lth_dim lth_graph_element(struct lth_graph *graph, lth_value_id value, uint32_t element, int64_t min)
{
	for (uint32_t i = 0; i < graph->num_bindings; i++)
		if (graph->bindings[i].value == value && graph->bindings[i].element == element)
			return lth_dims_symbol_dim(graph->dims, graph->bindings[i].symbol);
	const struct lth_value *v = &graph->values[value];
	const char *name = free_name(graph, v->name, element);
	struct lth_binding *bindings = lth_arena_grow(graph->arena, graph->bindings, &graph->cap_bindings,
						      graph->num_bindings + 1, sizeof(*bindings));
	if (!name || !bindings)
		return LTH_DIM_NONE;
	graph->bindings = bindings;
	lth_dim dim = lth_dim_symbol(graph->dims,
				     &(struct lth_dim_symbol){
					     .name = name,
					     .min = min,
					     .max = INT64_MAX,
					     .multiple = 1,
					     .hint = min > 1 ? min : 1,
					     .from_data = true,
					     .node = v->def == LTH_DEF_NODE ? graph->nodes[v->def_id].name : v->name,
					     .bound = LTH_DIM_NONE,
				     });
	if (dim != LTH_DIM_NONE)
		bindings[graph->num_bindings++] = (struct lth_binding){number_of(graph->dims, dim), value, element};
	return dim;
}

void lth_graph_rebind(struct lth_graph *graph, lth_value_id from, lth_value_id to)
{
	for (uint32_t i = 0; i < graph->num_bindings; i++)
		if (graph->bindings[i].value == from)
			graph->bindings[i].value = to;
}

bool lth_value_binds(const struct lth_graph *graph, lth_value_id value)
{
	for (uint32_t i = 0; i < graph->num_bindings; i++)
		if (graph->bindings[i].value == value)
			return true;
	return false;
}
