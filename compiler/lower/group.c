/* Lowering a group: finds its anchor and takes the schedule that fits (kernel.h). */
#include "compiler/lower/lower_group.h"

#include "compiler/ops/op.h"

#include <string.h>

/* The one node of the group that decides the loops: a template or a reduction. */
static const struct lth_node *find_anchor(const struct lth_graph *graph, const struct lth_lower_group *group)
{
	for (uint32_t i = 0; i < group->num_nodes; i++) {
		const struct lth_node *node = &graph->nodes[group->nodes[i]];
		if (node->op->kind == LTH_OP_TEMPLATE || node->op->kind == LTH_OP_REDUCTION)
			return node;
	}
	return NULL;
}

static const char *describe(struct lth_lower *lower, const struct lth_node *anchor)
{
	struct lth_buf text = {0};
	if (anchor)
		lth_buf_puts(&text, anchor->op->name);
	for (uint32_t i = 0; i < lower->group->num_nodes && text.size < 60; i++) {
		const struct lth_node *node = &lower->graph->nodes[lower->group->nodes[i]];
		if (node != anchor)
			lth_buf_printf(&text, "%s%s", text.size ? "+" : "", node->op->name);
	}
	const char *copy = lth_arena_strdup(lower->arena, lth_buf_text(&text));
	lth_buf_free(&text);
	return copy;
}

/* Every element function gave an expression, or said why not; exhaustion of the arena is found here. */
static enum lth_code finish(struct lth_lower *lower, const struct lth_node *named, struct lth_kernel_spec *out)
{
	if (lower->code != LTH_OK)
		return lower->code;
	if (!lth_arena_ok(lower->arena))
		return lth_diag_fail(lower->diag, LTH_OUT_OF_MEMORY, named->name, NULL, NULL,
				     "the compile's memory is exhausted while lowering");
	out->fn = lower->fn;
	out->node = named->name;
	out->operands = lower->operands;
	out->num_operands = lower->num_operands;
	out->ints = lower->ints;
	out->num_ints = lower->num_ints;
	return LTH_OK;
}

enum lth_code lth_lower_kernel(struct lth_graph *graph, const struct lth_access *accesses,
			       const struct lth_lower_group *group, const struct lth_lower_target *target,
			       bool templates, struct lth_kernel_spec *out, struct lth_diag *diag)
{
	struct lth_lower lower = {.graph = graph,
				  .arena = graph->arena,
				  .accesses = accesses,
				  .group = group,
				  .target = target,
				  .diag = diag,
				  .anchor = LTH_NONE,
				  .word = LTH_SX_NONE};
	struct lth_kernel_spec spec = {.scratch_bytes = LTH_DIM_NONE, .flops = LTH_DIM_NONE, .grain = 1};
	const struct lth_node *anchor = find_anchor(graph, group);
	const struct lth_node *named = anchor ? anchor : &graph->nodes[group->nodes[group->num_nodes - 1]];
	lower.pool = lth_sx_pool_create(graph->arena, graph->dims);
	lower.fn = lth_loop_create(graph->arena, 0);
	if (!lower.pool || !lower.fn)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, named->name, NULL, NULL, "no memory for a kernel");
	lower.fn->description = spec.description = describe(&lower, anchor);
	/* what is written stands first among the operands, as the program's instructions have it */
	for (uint32_t i = 0; i < group->num_outputs; i++)
		lth_lower_operand(&lower, group->outputs[i], true);
	enum lth_code code;
	bool done = false;
	if (anchor && anchor->op->impl->problem && (templates || !anchor->op->impl->reduction)) {
		code = lth_lower_template(&lower, anchor, &spec, &done);
		if (code != LTH_OK)
			return code;
	}
	if (done)
		code = LTH_OK;
	else if (!anchor)
		code = lth_lower_map(&lower, &spec);
	else if (anchor->op->impl->reduction)
		code = lth_lower_reduction(&lower, anchor, &spec);
	else
		code = lth_lower_fail(&lower, LTH_UNSUPPORTED, anchor, "no template takes this form of the operator");
	if (code != LTH_OK)
		return code;
	code = finish(&lower, named, &spec);
	if (code == LTH_OK)
		*out = spec;
	return code;
}
