/* Groups to kernels in loop IR, and to the steps that ManifestAlloc makes a program of. */
#include "compiler/driver/variant.h"

#include "compiler/ops/op.h"

#include <string.h>

static enum lth_step_kind step_kind(const struct lth_variant *variant, const struct lth_group *group)
{
	const struct lth_node *node = &variant->graph->nodes[group->nodes[0]];
	if (group->num_nodes == 1 && variant->is_view[group->nodes[0]])
		return LTH_STEP_VIEW;
	switch (node->op->kind) {
	case LTH_OP_CONTROL:
		return LTH_STEP_CONTROL;
	case LTH_OP_IRREGULAR:
	case LTH_OP_OBJECT:
		return LTH_STEP_BUILTIN;
	default:
		return LTH_STEP_KERNEL;
	}
}

/* Outputs of one shape share a kernel. A group whose outputs differ in shape (a Split, a TopK) becomes one kernel an
 * output, but for anchors, whose schedules write all of their outputs themselves. */
static bool same_shape(const struct lth_graph *graph, lth_value_id a, lth_value_id b)
{
	const struct lth_value *x = &graph->values[a], *y = &graph->values[b];
	if (x->type.rank != y->type.rank)
		return false;
	for (uint32_t axis = 0; axis < x->type.rank; axis++)
		if (x->type.dims[axis] != y->type.dims[axis])
			return false;
	if (!x->layout || !y->layout)
		return x->layout == y->layout;
	return memcmp(x->layout, y->layout, x->type.rank) == 0;
}

static bool has_anchor(const struct lth_graph *graph, const struct lth_group *group)
{
	for (uint32_t i = 0; i < group->num_nodes; i++) {
		enum lth_op_kind kind = graph->nodes[group->nodes[i]].op->kind;
		if (kind == LTH_OP_TEMPLATE || kind == LTH_OP_REDUCTION)
			return true;
	}
	return false;
}

static enum lth_code lower_kernel(struct lth_variant *variant, const struct lth_group *group,
				  const lth_value_id *outputs, uint32_t num_outputs, struct lth_step *step)
{
	struct lth_lower_group one = {
		.nodes = group->nodes, .num_nodes = group->num_nodes, .outputs = outputs, .num_outputs = num_outputs};
	struct lth_kernel_spec *spec = lth_arena_alloc(variant->arena, sizeof(*spec));
	if (!spec)
		return lth_diag_fail(variant->diag, LTH_OUT_OF_MEMORY, "lowering", NULL, NULL, "no memory");
	enum lth_code code = lth_lower_kernel(variant->graph, variant->accesses, &one, &variant->lower_target,
					      variant->opt_level >= 2, spec, variant->diag);
	if (code != LTH_OK)
		return code;
	*step = (struct lth_step){.kind = LTH_STEP_KERNEL,
				  .node = group->nodes[group->num_nodes - 1],
				  .spec = spec,
				  .outputs = outputs,
				  .num_outputs = num_outputs};
	variant->kernels[variant->num_kernels++].fn = spec->fn;
	return LTH_OK;
}

static enum lth_code lower_group(struct lth_variant *variant, const struct lth_group *group,
				 struct lth_region_steps *out)
{
	enum lth_step_kind kind = step_kind(variant, group);
	if (kind != LTH_STEP_KERNEL) {
		out->steps[out->count++] = (struct lth_step){.kind = kind,
							     .node = group->nodes[0],
							     .outputs = group->outputs,
							     .num_outputs = group->num_outputs};
		return LTH_OK;
	}
	bool anchored = has_anchor(variant->graph, group);
	for (uint32_t first = 0; first < group->num_outputs;) {
		uint32_t last = first + 1;
		while (last < group->num_outputs &&
		       (anchored || same_shape(variant->graph, group->outputs[first], group->outputs[last])))
			last++;
		enum lth_code code =
			lower_kernel(variant, group, group->outputs + first, last - first, &out->steps[out->count]);
		if (code != LTH_OK)
			return code;
		out->count++;
		first = last;
	}
	return LTH_OK;
}

enum lth_code lth_variant_lower(struct lth_variant *variant)
{
	struct lth_graph *graph = variant->graph;
	uint32_t most = 0;
	for (uint32_t i = 0; i < variant->groups.count; i++)
		most += variant->groups.list[i].num_outputs + 1;
	variant->regions = lth_arena_array(variant->arena, graph->num_regions, sizeof(*variant->regions));
	variant->kernels = lth_arena_array(variant->arena, most + 1, sizeof(*variant->kernels));
	if (!variant->regions || !variant->kernels)
		return lth_diag_fail(variant->diag, LTH_OUT_OF_MEMORY, "lowering", NULL, NULL, "no memory");
	for (lth_region_id region = 0; region < graph->num_regions; region++) {
		struct lth_region_steps *out = &variant->regions[region];
		uint32_t first = variant->groups.first[region], last = variant->groups.first[region + 1], room = 1;
		for (uint32_t i = first; i < last; i++)
			room += variant->groups.list[i].num_outputs + 1;
		out->steps = lth_arena_array(variant->arena, room, sizeof(*out->steps));
		if (!out->steps)
			return lth_diag_fail(variant->diag, LTH_OUT_OF_MEMORY, "lowering", NULL, NULL, "no memory");
		for (uint32_t i = first; i < last; i++) {
			enum lth_code code = lower_group(variant, &variant->groups.list[i], out);
			if (code != LTH_OK)
				return code;
		}
	}
	enum lth_code code = lth_codegen_identify(&variant->target, variant->kernels, variant->num_kernels,
						  &variant->num_objects, variant->diag);
	if (code != LTH_OK)
		return code;
	uint32_t next = 0;
	for (lth_region_id region = 0; region < graph->num_regions; region++)
		for (uint32_t i = 0; i < variant->regions[region].count; i++)
			if (variant->regions[region].steps[i].kind == LTH_STEP_KERNEL) {
				const struct lth_codegen_kernel *kernel = &variant->kernels[next++];
				variant->regions[region].steps[i].kernel_name = kernel->name;
				variant->regions[region].steps[i].kernel = kernel->object;
			}
	return LTH_OK;
}
