/* EliminateCommonSubexpr: nodes with equal operator, attributes and inputs become one, constants with equal bytes too.
 * Inputs of commutative operators compare in any order. Random operators differ by definition, control nodes are left
 * alone. Values of a region are visible in the regions inside it, so the table of what is known is a stack that is cut
 * back where a region ends. Legal always; exact. Thread rule: as the graph's. */
#include "compiler/passes/pass.h"

#include "compiler/ops/op.h"
#include "compiler/passes/rewrite.h"
#include "runtime/base/hash.h"

#include <string.h>

LTH_PASS_GRAPH_FN(lth_pass_eliminate_common_subexpr)

enum { HASHED_BYTES = 4096 }; /* of a constant; equal hashes are compared in full */

/* Chained hash table; entries in order of entry, so that a region's can be dropped together. */
struct entry {
	uint64_t hash;
	uint32_t id; /* node, or value for constants */
	uint32_t next;
};

struct table {
	uint32_t *buckets;
	uint32_t num_buckets; /* a power of two */
	struct entry *entries;
	uint32_t count, capacity;
};

static bool table_create(struct table *table, struct lth_arena *arena, uint32_t expected)
{
	*table = (struct table){.num_buckets = 16};
	while (table->num_buckets < expected && table->num_buckets < (1u << 28))
		table->num_buckets *= 2;
	table->buckets = lth_arena_array(arena, table->num_buckets, sizeof(*table->buckets));
	if (!table->buckets)
		return false;
	memset(table->buckets, 0xff, table->num_buckets * sizeof(*table->buckets));
	return true;
}

static void table_add(struct table *table, struct lth_arena *arena, uint64_t hash, uint32_t id)
{
	struct entry *entries = lth_arena_grow(arena, table->entries, &table->capacity, table->count + 1,
					       sizeof(*entries));
	if (!entries)
		return;
	uint32_t *bucket = &table->buckets[hash & (table->num_buckets - 1)];
	table->entries = entries;
	entries[table->count] = (struct entry){hash, id, *bucket};
	*bucket = table->count++;
}

/* Drops the newest entries: each is the first of its chain. */
static void table_cut(struct table *table, uint32_t count)
{
	while (table->count > count) {
		const struct entry *entry = &table->entries[--table->count];
		table->buckets[entry->hash & (table->num_buckets - 1)] = entry->next;
	}
}

static bool same_string(struct lth_string a, struct lth_string b)
{
	return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static bool same_attr(const struct lth_attr *a, const struct lth_attr *b)
{
	if (a->kind != b->kind || a->count != b->count)
		return false;
	switch (a->kind) {
	case LTH_ATTR_INT:
		return a->i == b->i;
	case LTH_ATTR_FLOAT:
		return memcmp(&a->f, &b->f, sizeof(a->f)) == 0;
	case LTH_ATTR_STRING:
		return same_string(a->s, b->s);
	case LTH_ATTR_TENSOR:
		return a->id == b->id;
	case LTH_ATTR_INTS:
		return a->count == 0 || memcmp(a->ints, b->ints, a->count * sizeof(*a->ints)) == 0;
	case LTH_ATTR_FLOATS:
		return a->count == 0 || memcmp(a->floats, b->floats, a->count * sizeof(*a->floats)) == 0;
	case LTH_ATTR_STRINGS:
		for (uint32_t i = 0; i < a->count; i++)
			if (!same_string(a->strings[i], b->strings[i]))
				return false;
		return true;
	default:
		return false; /* regions and types: never taken for equal */
	}
}

static bool same_attrs(const struct lth_node *a, const struct lth_node *b)
{
	if (a->num_attrs != b->num_attrs)
		return false;
	for (uint32_t i = 0; i < a->num_attrs; i++) {
		const struct lth_attr *other = lth_node_attr(b, a->attrs[i].name);
		if (!other || !same_attr(&a->attrs[i], other))
			return false;
	}
	return true;
}

static bool same_inputs(const struct lth_node *a, const struct lth_node *b)
{
	if (a->num_inputs != b->num_inputs)
		return false;
	if (memcmp(a->inputs, b->inputs, a->num_inputs * sizeof(*a->inputs)) == 0)
		return true;
	return (a->op->flags & LTH_OPF_COMMUTATIVE) && a->num_inputs == 2 && a->inputs[0] == b->inputs[1] &&
	       a->inputs[1] == b->inputs[0];
}

/* `to` can stand for `from` when it has every output that `from` has. */
static bool same_node(const struct lth_graph *graph, const struct lth_node *from, const struct lth_node *to)
{
	if (from->op != to->op || !same_inputs(from, to) || !same_attrs(from, to) ||
	    from->num_outputs > to->num_outputs)
		return false;
	for (uint32_t k = 0; k < from->num_outputs; k++) {
		if (from->outputs[k] == LTH_NONE)
			continue;
		if (to->outputs[k] == LTH_NONE || !lth_same_type(graph, from->outputs[k], to->outputs[k]))
			return false;
	}
	return true;
}

/* Equal nodes hash equally whatever the order of attributes and of commuting inputs: those are summed. */
static uint64_t node_hash(const struct lth_node *node)
{
	uint64_t inputs = 0, attrs = 0;
	bool commutes = node->op->flags & LTH_OPF_COMMUTATIVE;
	for (uint32_t k = 0; k < node->num_inputs; k++)
		inputs = commutes ? inputs + lth_hash_u64(node->inputs[k], 1) : lth_hash_u64(node->inputs[k], inputs);
	for (uint32_t a = 0; a < node->num_attrs; a++) {
		const struct lth_attr *attr = &node->attrs[a];
		uint64_t hash = lth_hash_bytes(attr->name, strlen(attr->name), attr->count);
		if (attr->kind == LTH_ATTR_INT)
			hash = lth_hash_u64((uint64_t)attr->i, hash);
		else if (attr->kind == LTH_ATTR_INTS && attr->count > 0)
			hash = lth_hash_bytes(attr->ints, attr->count * sizeof(*attr->ints), hash);
		attrs += hash;
	}
	return lth_hash_u64(attrs, lth_hash_u64(inputs, (uint64_t)lth_op_id(node->op)));
}

struct merger {
	struct table nodes, contents;
	lth_region_id region; /* of the visit before */
	uint32_t *base, *contents_base; /* by region: entries that were there when the walk came in */
};

/* The walk visits a region's nodes between two nodes of the region around it: entries of a region that the walk has
 * left are dropped as soon as a node of another region is visited. */
static void follow_walk(struct merger *merger, const struct lth_graph *graph, lth_region_id region)
{
	if (merger->region == region)
		return;
	/* Leave regions until one around the new node is reached. */
	lth_region_id left = merger->region;
	for (;;) {
		lth_region_id outer = region;
		while (outer != left && graph->regions[outer].parent != LTH_NONE)
			outer = graph->nodes[graph->regions[outer].parent].region;
		if (outer == left)
			break;
		table_cut(&merger->nodes, merger->base[left]);
		table_cut(&merger->contents, merger->contents_base[left]);
		left = graph->nodes[graph->regions[left].parent].region;
	}
	/* Enter those between it and the node. */
	for (lth_region_id inner = region; inner != left; inner = graph->nodes[graph->regions[inner].parent].region) {
		merger->base[inner] = merger->nodes.count;
		merger->contents_base[inner] = merger->contents.count;
	}
	merger->region = region;
}

/* Integer tensors all of whose elements are known as expressions are equal when those are, however they were computed:
 * shapes that models compute anew for every layer. */
static bool known_contents(const struct lth_graph *graph, lth_value_id id)
{
	const struct lth_contents *contents = graph->values[id].contents;
	if (!contents || !contents->dims)
		return false;
	for (uint32_t i = 0; i < contents->count; i++)
		if (contents->dims[i] == LTH_DIM_NONE)
			return false;
	return true;
}

static bool merge_contents(struct lth_rewrite *rewrite, lth_node_id id, struct merger *merger)
{
	struct lth_graph *graph = rewrite->graph;
	lth_value_id output = graph->nodes[id].outputs[0];
	if (graph->nodes[id].num_outputs != 1 || output == LTH_NONE || !known_contents(graph, output))
		return false;
	const struct lth_contents *contents = graph->values[output].contents;
	size_t size = contents->count * sizeof(*contents->dims);
	uint64_t hash = lth_hash_bytes(contents->dims, size, (uint64_t)graph->values[output].type.dtype);
	uint32_t at = merger->contents.buckets[hash & (merger->contents.num_buckets - 1)];
	for (; at != LTH_NONE; at = merger->contents.entries[at].next) {
		lth_value_id earlier = merger->contents.entries[at].id;
		if (merger->contents.entries[at].hash == hash && graph->values[earlier].def != LTH_DEF_DELETED &&
		    lth_same_type(graph, earlier, output) &&
		    memcmp(graph->values[earlier].contents->dims, contents->dims, size) == 0)
			return lth_rewrite_replace(rewrite, output, earlier);
	}
	table_add(&merger->contents, graph->arena, hash, output);
	return false;
}

static void merge_node(struct lth_rewrite *rewrite, lth_node_id id, void *context)
{
	struct merger *merger = context;
	struct lth_graph *graph = rewrite->graph;
	const struct lth_node *node = &graph->nodes[id];
	follow_walk(merger, graph, node->region);
	if ((node->op->flags & LTH_OPF_RANDOM) || node->op->kind == LTH_OP_CONTROL ||
	    lth_op_id(node->op) == LTH_OP_ID_Identity)
		return;
	if (merge_contents(rewrite, id, merger))
		return;
	uint64_t hash = node_hash(node);
	uint32_t at = merger->nodes.buckets[hash & (merger->nodes.num_buckets - 1)];
	for (; at != LTH_NONE; at = merger->nodes.entries[at].next) {
		const struct lth_node *earlier = &graph->nodes[merger->nodes.entries[at].id];
		if (merger->nodes.entries[at].hash != hash || earlier->deleted || !same_node(graph, node, earlier))
			continue;
		if (node->num_outputs > 1)
			for (uint32_t k = 0; k < node->num_outputs; k++)
				if (node->outputs[k] != LTH_NONE && rewrite->pinned[node->outputs[k]])
					return; /* an Identity stands for one output only */
		uint32_t num_outputs = node->num_outputs;
		for (uint32_t k = 0; k < num_outputs; k++) {
			lth_value_id from = graph->nodes[id].outputs[k];
			if (from != LTH_NONE)
				lth_rewrite_replace(rewrite, from, earlier->outputs[k]);
		}
		return;
	}
	table_add(&merger->nodes, graph->arena, hash, id);
}

static bool same_constant(const struct lth_graph *graph, lth_value_id a, lth_value_id b)
{
	const struct lth_constant *first = &graph->values[a].constant, *second = &graph->values[b].constant;
	return lth_same_type(graph, a, b) && first->bytes == second->bytes &&
	       (first->data == second->data || memcmp(first->data, second->data, (size_t)first->bytes) == 0);
}

/* Readers of a constant read the first with the same bytes. Strings are pointers in memory and are left alone. */
static enum lth_code merge_constants(struct lth_graph *graph)
{
	struct table table;
	lth_value_id *stand_in = lth_arena_array(graph->arena, graph->num_values, sizeof(*stand_in));
	if (!stand_in || !table_create(&table, graph->arena, graph->num_values))
		return LTH_OUT_OF_MEMORY;
	for (lth_value_id id = 0; id < graph->num_values; id++) {
		const struct lth_value *value = &graph->values[id];
		stand_in[id] = id;
		if (value->def != LTH_DEF_CONSTANT || !value->constant.data || value->type.dtype == LTH_DTYPE_STRING)
			continue;
		int64_t hashed = value->constant.bytes < HASHED_BYTES ? value->constant.bytes : HASHED_BYTES;
		uint64_t hash = lth_hash_bytes(value->constant.data, (size_t)hashed, (uint64_t)value->constant.bytes);
		uint32_t at = table.buckets[hash & (table.num_buckets - 1)];
		while (at != LTH_NONE && !(table.entries[at].hash == hash &&
					   same_constant(graph, table.entries[at].id, id)))
			at = table.entries[at].next;
		if (at != LTH_NONE)
			stand_in[id] = table.entries[at].id;
		else
			table_add(&table, graph->arena, hash, id);
	}
	for (lth_node_id id = 0; id < graph->num_nodes; id++) {
		struct lth_node *node = &graph->nodes[id];
		for (uint32_t k = 0; k < node->num_inputs && !node->deleted; k++)
			if (node->inputs[k] != LTH_NONE)
				node->inputs[k] = stand_in[node->inputs[k]];
		for (uint32_t a = 0; a < node->num_attrs && !node->deleted; a++)
			if (node->attrs[a].kind == LTH_ATTR_TENSOR)
				node->attrs[a].id = stand_in[node->attrs[a].id];
	}
	return lth_arena_ok(graph->arena) ? LTH_OK : LTH_OUT_OF_MEMORY;
}

enum lth_code lth_pass_eliminate_common_subexpr(struct lth_graph *graph, const struct lth_pass_context *context,
						struct lth_diag *diag)
{
	(void)context;
	struct merger merger = {0};
	uint32_t changes;
	merger.base = lth_arena_array(graph->arena, graph->num_regions, sizeof(*merger.base));
	merger.contents_base = lth_arena_array(graph->arena, graph->num_regions, sizeof(*merger.contents_base));
	if (!merger.base || !merger.contents_base || merge_constants(graph) != LTH_OK ||
	    !table_create(&merger.nodes, graph->arena, graph->num_nodes) ||
	    !table_create(&merger.contents, graph->arena, graph->num_nodes))
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "passes", NULL, "raise the memory limit",
				     "the compile's arena is exhausted");
	return lth_rewrite_run(graph, merge_node, &merger, diag, &changes);
}
