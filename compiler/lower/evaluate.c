/* Evaluating a node at compile time: its generic kernel, run by the interpreter. See evaluate.h. */
#include "compiler/lower/evaluate.h"

#include "compiler/lower/kernel.h"
#include "compiler/ops/op.h"

#include <stdlib.h>
#include <string.h>

/* Vectors as wide as the interpreter likes; nothing here depends on the machine, so folding gives the same bytes
 * everywhere. */
static const struct lth_lower_target interpreter_target = {.vector_bytes = 64, .registers = 32};

static enum lth_code refuse(struct lth_diag *diag, const struct lth_node *node, const char *why)
{
	return lth_diag_fail(diag, LTH_UNSUPPORTED, node->name, NULL, NULL, "%s cannot be evaluated: %s",
			     node->op->name, why);
}

static bool constant_inputs(const struct lth_graph *graph, const struct lth_node *node)
{
	for (uint32_t i = 0; i < node->num_inputs; i++)
		if (node->inputs[i] != LTH_NONE && graph->values[node->inputs[i]].def != LTH_DEF_CONSTANT)
			return false;
	return true;
}

/* Memory for an output of static shape; NULL when it is not, or is too large to address. */
static void *output_memory(struct lth_graph *graph, const struct lth_value *value, int64_t *out_bytes)
{
	int64_t shape[LTH_MAX_RANK], count = 1;
	if (value->type.kind != LTH_TYPE_TENSOR || value->type.dtype >= LTH_NUM_DTYPES ||
	    value->type.rank > LTH_MAX_RANK || !lth_type_static(graph, &value->type, shape))
		return NULL;
	for (uint32_t axis = 0; axis < value->type.rank; axis++)
		if (__builtin_mul_overflow(count, shape[axis], &count))
			return NULL;
	if (!lth_dtype_bytes(value->type.dtype, count, out_bytes) || *out_bytes > (int64_t)1 << 40)
		return NULL;
	return lth_arena_alloc(graph->arena, (size_t)*out_bytes + 64);
}

static enum lth_code run(struct lth_graph *graph, const struct lth_node *node, const struct lth_kernel_spec *spec,
			 void *const *outputs, struct lth_diag *diag)
{
	enum lth_code code = LTH_OUT_OF_MEMORY;
	void **pointers = calloc(spec->num_operands + 1, sizeof(*pointers));
	int64_t *ints = calloc(spec->num_ints + 1, sizeof(*ints)), range, scratch_bytes = 0;
	bool known = lth_dim_is_const(graph->dims, spec->range, &range) &&
		     (spec->scratch_bytes == LTH_DIM_NONE ||
		      lth_dim_is_const(graph->dims, spec->scratch_bytes, &scratch_bytes));
	void *scratch = calloc((size_t)scratch_bytes + 1, 1);
	int error = 0;
	if (!pointers || !ints || !scratch) {
		lth_diag_fail(diag, code, node->name, NULL, NULL, "no memory to evaluate it");
		goto done;
	}
	for (uint32_t i = 0; i < spec->num_operands; i++) {
		lth_value_id id = spec->operands[i].value;
		for (uint32_t o = 0; o < node->num_outputs; o++)
			if (node->outputs[o] == id)
				pointers[i] = outputs[o];
		if (!pointers[i]) /* the ABI has no const: inputs are only read */
			memcpy(&pointers[i], &graph->values[id].constant.data, sizeof(void *));
	}
	for (uint32_t i = 0; i < spec->num_ints; i++)
		known = known && lth_dim_is_const(graph->dims, spec->ints[i], &ints[i]);
	if (!known) {
		code = refuse(diag, node, "its size is not known");
		goto done;
	}
	struct lathe_kernel_call call = {.pointers = pointers, .ints = ints, .scratch = scratch};
	code = lth_loop_interpret(spec->fn, &call, 0, range, &error, diag);
	if (code == LTH_OK && error)
		code = lth_diag_fail(diag, LTH_INVALID_GRAPH, node->name, "indices within their tensors", NULL,
				     "%s over constants fails with kernel error %d", node->op->name, error);
done:
	free(pointers);
	free(ints);
	free(scratch);
	return code;
}

enum lth_code lth_lower_evaluate_node(struct lth_graph *graph, lth_node_id id, struct lth_diag *diag)
{
	const struct lth_node node = graph->nodes[id];
	void *outputs[LTH_MAX_RANK] = {NULL};
	int64_t bytes[LTH_MAX_RANK];
	lth_value_id wanted[LTH_MAX_RANK];
	uint32_t num_wanted = 0;
	if (!constant_inputs(graph, &node))
		return refuse(diag, &node, "an input is not constant");
	if (!node.op->impl || (!node.op->impl->element && !node.op->impl->reduction) ||
	    (node.op->flags & LTH_OPF_RANDOM) || node.num_outputs > LTH_MAX_RANK)
		return refuse(diag, &node, "it has no generic lowering");
	for (uint32_t o = 0; o < node.num_outputs; o++) {
		if (node.outputs[o] == LTH_NONE)
			continue;
		outputs[o] = output_memory(graph, &graph->values[node.outputs[o]], &bytes[o]);
		if (!outputs[o])
			return refuse(diag, &node, "an output's size is not known or too large");
		wanted[num_wanted++] = node.outputs[o];
	}
	struct lth_access *accesses = calloc(graph->num_values, sizeof(*accesses));
	if (!accesses)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, node.name, NULL, NULL, "no memory to evaluate it");
	for (uint32_t i = 0; i < node.num_inputs + node.num_outputs; i++) {
		lth_value_id value = i < node.num_inputs ? node.inputs[i] : node.outputs[i - node.num_inputs];
		if (value == LTH_NONE || graph->values[value].type.kind != LTH_TYPE_TENSOR)
			continue;
		const struct lth_type *type = &graph->values[value].type;
		accesses[value] = (struct lth_access){
			.base = value,
			.strides = lth_dense_strides(graph, graph->arena, type->rank, type->dims, NULL),
			.offset = lth_dim_const(graph->dims, 0)};
	}
	struct lth_kernel_spec spec;
	enum lth_code code = LTH_OK;
	/* outputs of one shape share a kernel; others get one each */
	for (uint32_t first = 0; first < num_wanted && code == LTH_OK; first++) {
		struct lth_lower_group group = {
			.nodes = &id, .num_nodes = 1, .outputs = &wanted[first], .num_outputs = 1};
		code = lth_lower_kernel(graph, accesses, &group, &interpreter_target, false, &spec, diag);
		if (code == LTH_OK)
			code = run(graph, &node, &spec, outputs, diag);
	}
	free(accesses);
	if (code != LTH_OK)
		return code;
	for (uint32_t o = 0; o < node.num_outputs; o++)
		if (node.outputs[o] != LTH_NONE) {
			struct lth_value *value = &graph->values[node.outputs[o]];
			value->def = LTH_DEF_CONSTANT;
			value->def_id = value->def_index = 0;
			value->constant = (struct lth_constant){.data = outputs[o], .bytes = bytes[o]};
			value->layout = NULL;
		}
	return LTH_OK;
}
