/* FoldConstant: what compile time can know becomes a constant. Three ways: a node whose outputs' contents inference
 * knows as numbers; a node all of whose inputs are constants, which lowering and the interpreter evaluate; an If whose
 * condition is known, whose arm takes its place. Results much larger than what they are made of stay computations (a
 * broadcast constant would only fill the executable), and so does what would take the interpreter long. Legal always;
 * exact, since kernels and interpreter agree. Thread rule: as the graph's. */
#include "compiler/passes/pass.h"

#include "compiler/lower/evaluate.h"
#include "compiler/ops/op.h"
#include "compiler/passes/rewrite.h"
#include "runtime/base/checked.h"

#include <string.h>

LTH_PASS_GRAPH_FN(lth_pass_fold_constant)

enum {
	FREE_BYTES = 1 << 16,       /* results up to this size are folded whatever their inputs' size */
	GROWTH = 4,                 /* larger ones if at most so many times as large as the inputs together */
};
static const int64_t work_limit = (int64_t)1 << 26; /* elements touched; about a second of interpretation */

struct folder {
	const struct lth_pass_context *context;
	struct lth_diag attempt; /* what came of the last evaluation */
};

/* Elements and bytes of a static tensor; false for others, and for those beyond int64. */
static bool static_size(const struct lth_graph *graph, lth_value_id value, int64_t *out_elements, int64_t *out_bytes)
{
	const struct lth_type *type = &graph->values[value].type;
	int64_t shape[LTH_MAX_RANK], elements = 1;
	if (type->kind != LTH_TYPE_TENSOR || type->dtype == LTH_NUM_DTYPES || type->rank > LTH_MAX_RANK ||
	    !lth_type_static(graph, type, shape))
		return false;
	for (uint32_t axis = 0; axis < type->rank; axis++)
		if (!lth_mul_i64(elements, shape[axis], &elements))
			return false;
	*out_elements = elements;
	return lth_dtype_bytes(type->dtype, elements, out_bytes);
}

static bool store_int(enum lth_dtype dtype, char *data, uint32_t index, int64_t value)
{
	unsigned bits = lth_dtype_bits(dtype);
	enum lth_dtype_class class = lth_dtype_class(dtype);
	if (bits % 8 != 0 || (class != LTH_CLASS_INT && class != LTH_CLASS_UINT && class != LTH_CLASS_BOOL))
		return false;
	/* The low bytes of a little-endian integer are the narrower integer. */
	memcpy(data + (size_t)index * (bits / 8), &value, bits / 8);
	return true;
}

/* The constant that the value's contents are, or LTH_NONE. */
static lth_value_id constant_of_contents(struct lth_rewrite *rewrite, lth_value_id id)
{
	struct lth_graph *graph = rewrite->graph;
	const struct lth_value *value = &graph->values[id];
	const struct lth_contents *contents = value->contents;
	enum lth_dtype dtype = value->type.dtype;
	int64_t shape[LTH_MAX_RANK], elements, bytes;
	if (!contents || (!contents->dims && !contents->reals) || !static_size(graph, id, &elements, &bytes) ||
	    elements != contents->count || !lth_type_static(graph, &value->type, shape))
		return LTH_NONE;
	uint32_t rank = value->type.rank;
	char *data = lth_arena_alloc(graph->arena, (size_t)bytes);
	for (uint32_t i = 0; data && i < contents->count; i++) {
		int64_t integer;
		double real;
		if (contents->dims && (contents->dims[i] == LTH_DIM_NONE ||
				       !lth_dim_is_const(graph->dims, contents->dims[i], &integer) ||
				       !store_int(dtype, data, i, integer)))
			return LTH_NONE;
		if (!contents->dims && (contents->reals[i] == LTH_DIM_NONE ||
					!lth_real_is_const(graph->dims, contents->reals[i], &real) ||
					!lth_store_real(dtype, data, i, real)))
			return LTH_NONE;
	}
	lth_value_id constant = LTH_NONE;
	if (data)
		constant = lth_rewrite_constant(rewrite, "value", dtype, rank, shape, data, bytes);
	if (constant != LTH_NONE)
		graph->values[constant].contents = contents;
	return constant;
}

/* A node with one output whose contents are numbers. */
static bool fold_contents(struct lth_rewrite *rewrite, lth_node_id id)
{
	const struct lth_node *node = &rewrite->graph->nodes[id];
	if (node->num_outputs != 1)
		return false;
	lth_value_id output = node->outputs[0];
	lth_value_id constant = constant_of_contents(rewrite, output);
	if (constant == LTH_NONE)
		return false;
	lth_rewrite_replace(rewrite, output, constant);
	return true;
}

static bool all_inputs_constant(const struct lth_graph *graph, const struct lth_node *node)
{
	for (uint32_t k = 0; k < node->num_inputs; k++) {
		if (node->inputs[k] == LTH_NONE)
			continue;
		const struct lth_value *value = &graph->values[node->inputs[k]];
		if (value->def != LTH_DEF_CONSTANT || lth_is_two_words(value->type.dtype))
			return false;
	}
	return true;
}

/* An upper estimate of the elements that evaluating touches: for inner products and windows every output element may
 * read a whole slice of the weights. */
static bool affordable(const struct lth_graph *graph, const struct lth_node *node,
		       const struct lth_pass_context *context)
{
	int64_t in_elements = 1, in_bytes = 0, elements, bytes, work, most_out = 0;
	for (uint32_t k = 0; k < node->num_inputs; k++) {
		if (node->inputs[k] == LTH_NONE)
			continue;
		if (!static_size(graph, node->inputs[k], &elements, &bytes) || !lth_add_i64(in_bytes, bytes, &in_bytes))
			return false;
		if (elements > in_elements)
			in_elements = elements;
	}
	for (uint32_t k = 0; k < node->num_outputs; k++) {
		if (node->outputs[k] == LTH_NONE)
			continue;
		if (!static_size(graph, node->outputs[k], &elements, &bytes))
			return false;
		if (context->fold_bytes > 0 && (uint64_t)bytes > context->fold_bytes)
			return false;
		if (bytes > FREE_BYTES && bytes / GROWTH > in_bytes)
			return false;
		if (elements > most_out)
			most_out = elements;
	}
	bool plain = node->op->kind == LTH_OP_ELEMENTWISE || node->op->kind == LTH_OP_INJECTIVE;
	if (plain)
		work = most_out;
	else if (most_out < in_elements && node->op->kind == LTH_OP_REDUCTION && node->num_inputs <= 2)
		work = in_elements;
	else if (!lth_mul_i64(most_out, in_elements, &work))
		return false;
	return work <= work_limit;
}

static bool can_evaluate(const struct lth_op *op)
{
	switch (op->kind) {
	case LTH_OP_ELEMENTWISE:
	case LTH_OP_INJECTIVE:
	case LTH_OP_REDUCTION:
	case LTH_OP_TEMPLATE:
		return !(op->flags & LTH_OPF_RANDOM);
	default:
		return false;
	}
}

static void evaluate(struct lth_rewrite *rewrite, lth_node_id id, struct lth_diag *attempt)
{
	struct lth_graph *graph = rewrite->graph;
	uint32_t num_outputs = graph->nodes[id].num_outputs;
	for (uint32_t k = 0; k < num_outputs; k++)
		if (graph->nodes[id].outputs[k] != LTH_NONE && !lth_rewrite_unpin(rewrite, k))
			return;
	/* What cannot be evaluated now (no lowering, an index out of range) is the run's to compute or to refuse. */
	*attempt = (struct lth_diag){0};
	enum lth_code code = lth_lower_evaluate_node(graph, id, attempt);
	if (code == LTH_OK) {
		graph->nodes[id].deleted = true; /* and its outputs are constants now */
		lth_rewrite_consumed(rewrite);
	}
	if (code == LTH_OUT_OF_MEMORY && rewrite->code == LTH_OK)
		rewrite->code = lth_diag_fail(rewrite->diag, code, attempt->place, attempt->expected, attempt->advice,
					      "%s", attempt->found);
}

static lth_region_id region_attr(const struct lth_node *node, const char *name)
{
	const struct lth_attr *attr = lth_node_attr(node, name);
	return attr && attr->kind == LTH_ATTR_REGION ? attr->id : LTH_NONE;
}

/* An If that always takes one arm becomes what the arm holds. */
static bool inline_arm(struct lth_rewrite *rewrite, lth_node_id id)
{
	struct lth_graph *graph = rewrite->graph;
	double condition;
	if (!lth_constant_number(graph, graph->nodes[id].inputs[0], &condition))
		return false;
	lth_region_id arm = region_attr(&graph->nodes[id], condition != 0 ? "then_branch" : "else_branch");
	lth_region_id other = region_attr(&graph->nodes[id], condition != 0 ? "else_branch" : "then_branch");
	uint32_t num_outputs = graph->nodes[id].num_outputs;
	if (arm == LTH_NONE || graph->regions[arm].num_outputs < num_outputs)
		return false;
	const lth_value_id *results = lth_arena_memdup(graph->arena, graph->regions[arm].outputs,
						       num_outputs * sizeof(*results));
	if (!results)
		return false;
	lth_rewrite_inline(rewrite, arm);
	if (other != LTH_NONE)
		lth_graph_clear_region(graph, other);
	for (uint32_t k = 0; k < num_outputs; k++) {
		if (graph->nodes[id].outputs[k] == LTH_NONE || !lth_rewrite_unpin(rewrite, k))
			continue;
		rewrite->uses[results[k]] += 1; /* until the If is gone */
		lth_rewrite_replace(rewrite, graph->nodes[id].outputs[k], results[k]);
		rewrite->uses[results[k]] -= 1;
	}
	lth_graph_delete_node(graph, id);
	lth_rewrite_consumed(rewrite);
	return true;
}

static void fold_node(struct lth_rewrite *rewrite, lth_node_id id, void *data)
{
	struct folder *folder = data;
	const struct lth_graph *graph = rewrite->graph;
	const struct lth_node *node = &graph->nodes[id];
	if (node->op->kind == LTH_OP_CONTROL && strcmp(node->op->name, "If") == 0) {
		inline_arm(rewrite, id);
		return;
	}
	if (lth_op_id(node->op) == LTH_OP_ID_Identity) {
		if (graph->values[node->inputs[0]].def == LTH_DEF_CONSTANT)
			lth_rewrite_replace(rewrite, node->outputs[0], node->inputs[0]);
		return;
	}
	if (!can_evaluate(node->op))
		return;
	if (fold_contents(rewrite, id))
		return;
	node = &graph->nodes[id];
	if (all_inputs_constant(graph, node) && affordable(graph, node, folder->context))
		evaluate(rewrite, id, &folder->attempt);
}

enum lth_code lth_pass_fold_constant(struct lth_graph *graph, const struct lth_pass_context *context,
				     struct lth_diag *diag)
{
	struct folder folder = {.context = context};
	uint32_t changes;
	return lth_rewrite_run(graph, fold_node, &folder, diag, &changes);
}
