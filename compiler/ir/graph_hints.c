/* Hints that nobody gave. A symbol without a hint has the least value of its range, and at the least height and width
 * many a network has no shape: five halvings of 1 are 0. Plans, orders, figures and measured runs at such a point say
 * nothing, so the hints grow together until every shape exists, and what need not have grown shrinks again.
 * Thread rule: the graph is its compile's own. */
#include "compiler/ir/graph.h"

#include "runtime/base/checked.h"

/* The search tries every extent up to here, then doubles. */
enum { ONE_BY_ONE = 64, DOUBLINGS = 14 };

struct settle {
	const struct lth_graph *graph;
	int64_t *values; /* by symbol: the hint under trial */
	int64_t least;   /* extent that counts as a shape: 1, or 0 where the model has none such */
	bool usual;      /* what is usual must hold, too */
};

/* Only what the inputs decide: what data decide may be anything. */
static bool known(const struct lth_dims *dims, lth_dim a)
{
	return a != LTH_DIM_NONE && !lth_dim_depends_on_data(dims, a);
}

static bool type_exists(const struct settle *s, const struct lth_type *type)
{
	const struct lth_dims *dims = s->graph->dims;
	bool shaped = type->kind == LTH_TYPE_TENSOR && type->rank != LTH_RANK_UNKNOWN;
	for (uint32_t axis = 0; shaped && axis < type->rank; axis++) {
		int64_t extent;
		if (!known(dims, type->dims[axis]) || lth_dim_is_const(dims, type->dims[axis], NULL))
			continue;
		if (!lth_dim_eval(dims, type->dims[axis], s->values, &extent) || extent < s->least)
			return false;
	}
	return true;
}

static bool holds(const struct settle *s, enum lth_relation relation, lth_dim a, lth_dim b)
{
	const struct lth_dims *dims = s->graph->dims;
	int64_t x, y;
	if (!known(dims, a) || !known(dims, b))
		return true;
	return lth_dim_eval(dims, a, s->values, &x) && lth_dim_eval(dims, b, s->values, &y) &&
	       lth_relation_holds(relation, x, y);
}

static bool shapes_exist(const struct settle *s)
{
	for (uint32_t i = 0; i < s->graph->num_guards; i++) {
		const struct lth_guard *guard = &s->graph->guards[i];
		if (guard->region == 0 && !holds(s, guard->relation, guard->a, guard->b))
			return false;
	}
	for (uint32_t i = 0; s->usual && i < s->graph->num_usual; i++)
		if (!holds(s, LTH_REL_LE, s->graph->usual[i].a, s->graph->usual[i].b))
			return false;
	for (lth_value_id id = 0; id < s->graph->num_values; id++)
		if (!type_exists(s, &s->graph->values[id].type))
			return false;
	return true;
}

/* A hint above the least value is the request's word and stays. */
static bool movable(const struct lth_dim_symbol *symbol)
{
	return !symbol->from_data && symbol->hint == symbol->min;
}

/* The least value of the symbol's range that is at least `extent`, or its top. */
static int64_t value_near(const struct lth_dim_symbol *symbol, int64_t extent)
{
	int64_t value;
	if (extent <= symbol->min)
		return symbol->min;
	value = lth_ceildiv_i64(extent, symbol->multiple) * symbol->multiple;
	return value > symbol->max ? symbol->max : value;
}

static bool find(struct settle *s)
{
	const struct lth_dims *dims = s->graph->dims;
	uint32_t count = lth_dims_num_symbols(dims);
	for (int step = 0; step < ONE_BY_ONE + DOUBLINGS; step++) {
		int64_t extent = step < ONE_BY_ONE ? step : (int64_t)ONE_BY_ONE << (step - ONE_BY_ONE);
		for (uint32_t i = 0; i < count; i++) {
			const struct lth_dim_symbol *symbol = lth_dims_symbol(dims, i);
			s->values[i] = movable(symbol) ? value_near(symbol, extent) : symbol->hint;
		}
		if (shapes_exist(s))
			return true;
	}
	return false;
}

void lth_graph_settle_hints(struct lth_graph *graph)
{
	struct lth_dims *dims = graph->dims;
	uint32_t count = lth_dims_num_symbols(dims);
	struct settle s = {.graph = graph,
			   .values = lth_arena_array(graph->arena, count + 1, sizeof(*s.values)),
			   .least = 1,
			   .usual = true};
	if (!s.values)
		return; /* exhaustion is sticky */
	bool found = find(&s);
	if (!found) {
		s.usual = false;
		found = find(&s);
	}
	if (!found) {
		s.least = 0;
		found = find(&s);
	}
	for (uint32_t i = 0; i < count && found; i++) {
		int64_t grown = s.values[i];
		s.values[i] = lth_dims_symbol(dims, i)->hint;
		if (s.values[i] != grown && !shapes_exist(&s))
			s.values[i] = grown;
		if (s.values[i] == grown && grown != lth_dims_symbol(dims, i)->hint)
			lth_dims_settle_hint(dims, i, grown);
	}
}
