/* Groups whose anchor a template computes: the node describes its problem, the table picks a template, constant weights
 * are packed, and the template hands each finished vector to the epilogue here, which evaluates the fused tail and
 * stores. When no template takes the problem the caller falls back to reductions. */
#include "compiler/lower/lower_group.h"

#include "compiler/lower/templates/template.h"
#include "compiler/ops/op.h"

#include <string.h>

struct anchor {
	struct lth_lower *lower;
	struct lth_emitter emitter;
	const struct lth_node *node;
	/* one entry a group output: its value and address over the axes of the anchor's output `source` */
	struct {
		lth_sx value, address;
		uint32_t source, operand;
		enum lth_dtype memory;
	} outputs[LTH_MAX_ROOTS / 2];
	uint32_t num_outputs;
	uint32_t rank[3];
};

static void apply(void *context, uint32_t output, const lth_lv *index, uint32_t axis, lth_lv value, unsigned lanes,
		  lth_lv mask)
{
	struct anchor *anchor = context;
	struct lth_emitter *emitter = &anchor->emitter;
	uint32_t mark = lth_emitter_open(emitter);
	for (uint32_t i = 0; i < anchor->rank[output]; i++)
		lth_emit_set_axis(emitter, i, index[i]);
	emitter->vector_axis = lanes > 1 ? axis : LTH_NONE;
	emitter->lanes = lanes;
	emitter->mask = mask;
	emitter->anchor = value;
	lth_lv results[LTH_MAX_ROOTS / 2];
	for (uint32_t k = 0; k < anchor->num_outputs; k++)
		if (anchor->outputs[k].source == output)
			results[k] = lth_emit(emitter, anchor->outputs[k].value);
	for (uint32_t k = 0; k < anchor->num_outputs; k++)
		if (anchor->outputs[k].source == output)
			lth_emit_store(emitter, anchor->outputs[k].operand, anchor->outputs[k].memory,
				       anchor->outputs[k].address, results[k]);
	lth_emitter_close(emitter, mark);
	emitter->bound = 0;
	emitter->vector_axis = LTH_NONE;
	emitter->lanes = 1;
	emitter->mask = emitter->anchor = LTH_LV_NONE;
}

static void prefetch(void *context, uint32_t output, const lth_lv *index)
{
	struct anchor *anchor = context;
	struct lth_emitter *emitter = &anchor->emitter;
	uint32_t mark = lth_emitter_open(emitter);
	for (uint32_t i = 0; i < anchor->rank[output]; i++)
		lth_emit_set_axis(emitter, i, index[i]);
	for (uint32_t k = 0; k < anchor->num_outputs; k++) {
		if (anchor->outputs[k].source != output)
			continue;
		lth_lv at = lth_emit_scalar(emitter, anchor->outputs[k].address);
		lth_lv pointer = lth_loop_pointer(emitter->fn, anchor->outputs[k].operand);
		lth_loop_prefetch(emitter->fn,
				  lth_loop_offset(emitter->fn, pointer, at, anchor->outputs[k].memory), true);
	}
	lth_emitter_close(emitter, mark);
	emitter->bound = 0;
}

static lth_lv parameter(void *context, lth_dim dim)
{
	struct anchor *anchor = context;
	return lth_lower_parameter(anchor->lower, dim);
}

/* Axes of the anchor's output `source`, and the group's outputs over them. */
static void build_outputs(struct anchor *anchor)
{
	struct lth_lower *lower = anchor->lower;
	lth_sx index[LTH_MAX_RANK];
	anchor->num_outputs = lower->group->num_outputs;
	for (uint32_t k = 0; k < anchor->num_outputs; k++) {
		lth_value_id id = lower->group->outputs[k];
		const struct lth_value *value = &lower->graph->values[id];
		uint32_t source = 0;
		for (uint32_t o = 0; o < anchor->node->num_outputs && o < 3; o++)
			if (anchor->node->outputs[o] == id)
				source = o;
		anchor->rank[source] = value->type.rank;
		for (uint32_t axis = 0; axis < value->type.rank; axis++) {
			lth_sx_set_axis(lower->pool, axis, value->type.dims[axis], axis);
			index[axis] = lth_sx_axis(lower->pool, axis);
		}
		anchor->outputs[k].source = source;
		anchor->outputs[k].value = lth_read(lower, id, index);
		anchor->outputs[k].address = lth_lower_address(lower, id, index);
		anchor->outputs[k].memory = value->type.dtype;
	}
	for (uint32_t k = 0; k < anchor->num_outputs; k++)
		anchor->outputs[k].operand = lth_lower_operand(lower, lower->group->outputs[k], true);
}

/* Operations an element of the tail takes, each part counted once; math functions weigh more. */
static unsigned count_operations(const struct lth_sx_pool *pool, lth_sx x, bool *seen)
{
	if (x == LTH_SX_NONE || seen[x])
		return 0;
	const struct lth_sx_node *node = lth_sx_get(pool, x);
	if (node->kind != LTH_SX_OP || node->dtype == LTH_DTYPE_I64)
		return 0;
	unsigned count = node->op >= LTH_SCALAR_EXP && node->op < LTH_NUM_SCALARS ? 15 : 1;
	lth_sx operands[3] = {node->operands[0], node->operands[1], node->operands[2]};
	unsigned arity = lth_scalar_arity(node->op);
	seen[x] = true;
	for (unsigned i = 0; i < arity; i++)
		count += count_operations(pool, operands[i], seen);
	return count;
}

static unsigned epilogue_cost(struct anchor *anchor)
{
	lth_sx highest = 0;
	for (uint32_t k = 0; k < anchor->num_outputs; k++)
		highest = anchor->outputs[k].value > highest ? anchor->outputs[k].value : highest;
	bool *seen = lth_arena_array(anchor->lower->arena, (size_t)highest + 1, sizeof(*seen));
	unsigned cost = 0;
	for (uint32_t k = 0; seen && k < anchor->num_outputs; k++)
		cost += count_operations(anchor->lower->pool, anchor->outputs[k].value, seen);
	return cost;
}

/* What the epilogue's memory looks like to the template. */
static void describe_epilogue(struct anchor *anchor, const struct lth_problem *problem, struct lth_epilogue *epilogue)
{
	struct lth_lower *lower = anchor->lower;
	uint32_t rank = anchor->rank[0];
	epilogue->unit_axis = UINT32_MAX;
	epilogue->cost = epilogue_cost(anchor);
	if (anchor->num_outputs == 0)
		return;
	for (uint32_t axis = 0; axis < rank; axis++) {
		lth_sx stride;
		int64_t step;
		if (lth_sx_stride(lower->pool, anchor->outputs[0].address, axis, &stride) &&
		    lth_sx_is_int(lower->pool, stride, &step) && step == 1)
			epilogue->unit_axis = axis;
	}
	/* all axes but the vectors' own as one: would a nest over them merge to a single axis? */
	uint32_t column = problem->kind == LTH_PROBLEM_GEMM ? rank - 1 : 1;
	uint32_t last_row = problem->kind == LTH_PROBLEM_GEMM ? rank - 2 : rank - 1;
	struct lth_nest nest = {0};
	struct lth_root roots[LTH_MAX_ROOTS];
	const struct lth_type *type = &lower->graph->values[lower->group->outputs[0]].type;
	for (uint32_t axis = 0; axis < rank; axis++) {
		int64_t extent;
		if (axis == column || (lth_dim_is_const(lower->graph->dims, type->dims[axis], &extent) && extent == 1))
			continue;
		nest.axes[nest.num_axes] = axis;
		nest.extents[nest.num_axes++] = type->dims[axis];
	}
	for (uint32_t k = 0; k < anchor->num_outputs; k++) {
		roots[2 * k] = (struct lth_root){.x = anchor->outputs[k].value};
		roots[2 * k + 1] = (struct lth_root){.x = anchor->outputs[k].address, .is_address = true};
	}
	bool last = nest.num_axes == 0 || nest.axes[nest.num_axes - 1] == last_row;
	lth_nest_merge(lower, &nest, roots, 2 * anchor->num_outputs);
	epilogue->flat_pixels = nest.num_axes <= 1 && last && rank >= 3;
	/* merging has renamed the pool's axes: give them back their own extents */
	for (uint32_t axis = 0; axis < rank; axis++)
		lth_sx_set_axis(lower->pool, axis, type->dims[axis], axis);
}

/* Gives an operand its pointer: the packed constant, or the value in memory. */
static void bind_operand(struct anchor *anchor, struct lth_operand *operand, lth_value_id value,
			 const struct lth_pack *pack)
{
	struct lth_lower *lower = anchor->lower;
	if (value == LTH_NONE)
		return;
	int64_t bytes;
	if (pack && pack->kind != LTH_PACK_NONE && lth_pack_bytes(pack, &bytes)) {
		struct lth_packed packed = {.pack = lth_arena_memdup(lower->arena, pack, sizeof(*pack)),
					    .source = lower->graph->values[value].constant.data,
					    .bytes = bytes};
		operand->pointer = lth_loop_pointer(lower->fn, lth_lower_packed(lower, packed, pack->dtype));
		return;
	}
	operand->pointer = lth_loop_pointer(lower->fn, lth_lower_operand(lower, value, false));
}

static void bind_operands(struct anchor *anchor, struct lth_problem *problem, const struct lth_problem_values *values,
			  const struct lth_template_plan *plan)
{
	switch (problem->kind) {
	case LTH_PROBLEM_GEMM:
		bind_operand(anchor, &problem->gemm.a, values->x, NULL);
		bind_operand(anchor, &problem->gemm.b, values->w, &plan->packs[0]);
		bind_operand(anchor, &problem->zero_points.a, values->x_zero, NULL);
		if (plan->packs[0].kind == LTH_PACK_NONE && !problem->blocks.bits)
			bind_operand(anchor, &problem->zero_points.b_read, values->w_zeros, NULL);
		bind_operand(anchor, &problem->blocks.scales, values->scales, NULL);
		if (problem->blocks.bits)
			bind_operand(anchor, &problem->blocks.zeros, values->w_zeros, NULL);
		break;
	case LTH_PROBLEM_CONV:
		bind_operand(anchor, &problem->conv.x, values->x, NULL);
		bind_operand(anchor, &problem->conv.w, values->w, &plan->packs[0]);
		bind_operand(anchor, &problem->zero_points.a, values->x_zero, NULL);
		break;
	case LTH_PROBLEM_POOL:
		bind_operand(anchor, &problem->pool.x, values->x, NULL);
		break;
	case LTH_PROBLEM_TRANSPOSE:
		bind_operand(anchor, &problem->transpose.x, values->x, NULL);
		break;
	case LTH_PROBLEM_RECURRENT:
		bind_operand(anchor, &problem->recurrent.x, values->x, NULL);
		bind_operand(anchor, &problem->recurrent.w, values->w, &plan->packs[0]);
		bind_operand(anchor, &problem->recurrent.r, values->r, &plan->packs[1]);
		bind_operand(anchor, &problem->recurrent.bias, values->bias, NULL);
		bind_operand(anchor, &problem->recurrent.lengths, values->lengths, NULL);
		bind_operand(anchor, &problem->recurrent.initial_h, values->initial_h, NULL);
		bind_operand(anchor, &problem->recurrent.initial_c, values->initial_c, NULL);
		bind_operand(anchor, &problem->recurrent.peepholes, values->peepholes, NULL);
		break;
	default:
		break;
	}
}

enum lth_code lth_lower_template(struct lth_lower *lower, const struct lth_node *node, struct lth_kernel_spec *out,
				 bool *out_done)
{
	struct anchor anchor = {.lower = lower, .node = node};
	struct lth_problem problem;
	struct lth_problem_values values;
	struct lth_template_plan plan;
	struct lth_machine machine = {.vector_bytes = lower->target->vector_bytes,
				      .registers = lower->target->registers,
				      .l1_bytes = lower->target->l1_bytes,
				      .l2_bytes = lower->target->l2_bytes,
				      .dot4 = lower->target->dot4};
	memset(&problem, 0, sizeof(problem));
	memset(&values, 0xff, sizeof(values));
	memset(&plan, 0, sizeof(plan));
	*out_done = false;
	if (!node->op->impl->problem(lower, node, &problem, &values) ||
	    !lth_template_plan(lower->graph->dims, &machine, &problem, &plan))
		return lower->code;
	lower->anchor = (lth_node_id)(node - lower->graph->nodes);
	lth_emitter_init(&anchor.emitter, lower);
	bind_operands(&anchor, &problem, &values, &plan);
	uint32_t own = lower->num_operands;
	build_outputs(&anchor);
	if (lower->code != LTH_OK || !lth_arena_ok(lower->arena))
		return lower->code;
	if (anchor.num_outputs == 1)
		lth_lower_mark_in_place(lower, anchor.outputs[0].value, anchor.outputs[0].address,
					anchor.outputs[0].memory, own);
	struct lth_epilogue epilogue = {.context = &anchor, .apply = apply, .prefetch = prefetch};
	describe_epilogue(&anchor, &problem, &epilogue);
	struct lth_emit emit = {.fn = lower->fn,
				.dims = lower->graph->dims,
				.machine = &machine,
				.epilogue = &epilogue,
				.param = parameter,
				.context = &anchor,
				.units = LTH_DIM_NONE,
				.min_units = LTH_DIM_NONE,
				.scratch_bytes = LTH_DIM_NONE};
	lth_template_emit(&emit, &problem, &plan);
	int64_t grain;
	out->range = emit.units;
	out->grain = emit.min_units != LTH_DIM_NONE && lth_dim_eval_hint(lower->graph->dims, emit.min_units, &grain) &&
				     grain > 0 && grain < UINT32_MAX
			     ? (uint32_t)grain
			     : 1;
	int64_t scratch;
	if (emit.scratch_bytes != LTH_DIM_NONE &&
	    (!lth_dim_is_const(lower->graph->dims, emit.scratch_bytes, &scratch) || scratch > 0))
		out->scratch_bytes = emit.scratch_bytes;
	out->flops = plan.flops;
	*out_done = true;
	return lower->code;
}
