/* Squeeze without axes where only the run knows which axes are 1, so that the result has no rank: the node becomes an
 * If for each axis in question, whose branches name the axes. What follows is moved into the branches then, as it is
 * for any If whose results differ in rank (control_split.c). Thread rule: as infer.h. */
#include "compiler/ops/control.h"

#include "compiler/ops/build.h"

enum { MOST_AXES = 4 }; /* each doubles the branches */

struct squeeze {
	struct lth_infer *infer;
	lth_value_id x;
	lth_value_id is_one[LTH_MAX_RANK]; /* for the axes in question */
};

static lth_value_id add_node(struct squeeze *squeeze, lth_region_id region, enum lth_op_id op,
			     const lth_value_id *inputs, uint32_t count, const struct lth_attr *attrs,
			     uint32_t num_attrs)
{
	struct lth_graph *graph = squeeze->infer->graph;
	lth_value_id out = lth_graph_value(graph, lth_ops[op].name, NULL);
	lth_node_id id = lth_graph_node(graph, region, &lth_ops[op], lth_ops[op].name, inputs, count, &out, 1, attrs,
					num_attrs);
	squeeze->infer->node = &graph->nodes[squeeze->infer->id];
	return id == LTH_NONE ? LTH_NONE : out;
}

static bool fill_arms(struct squeeze *squeeze, lth_node_id parent, uint32_t ones, uint32_t open,
		      struct lth_attr out_arms[2]);

/* The region gives x without `ones`; of the axes `open`, without those that are 1. */
static bool fill_arm(struct squeeze *squeeze, lth_region_id region, uint32_t ones, uint32_t open)
{
	struct lth_infer *infer = squeeze->infer;
	struct lth_attr arms[2];
	int64_t axes[LTH_MAX_RANK];
	uint32_t count = 0;
	lth_value_id out = squeeze->x;
	if (open) {
		const lth_value_id condition = squeeze->is_one[__builtin_ctz(open)];
		if (!fill_arms(squeeze, LTH_NONE, ones, open, arms))
			return false;
		out = add_node(squeeze, region, LTH_OP_ID_If, &condition, 1, arms, 2);
		return out != LTH_NONE && lth_graph_output(infer->graph, region, out);
	}
	for (uint32_t axis = 0; axis < LTH_MAX_RANK; axis++)
		if (ones & 1u << axis)
			axes[count++] = axis;
	const lth_value_id in[2] = {squeeze->x, lth_build_ints(infer, axes, count)};
	out = count ? add_node(squeeze, region, LTH_OP_ID_Squeeze, in, 2, NULL, 0)
		    : add_node(squeeze, region, LTH_OP_ID_Identity, in, 1, NULL, 0);
	return !infer->failed && out != LTH_NONE && lth_graph_output(infer->graph, region, out);
}

/* The branches of an If on the first of the axes `open`. */
static bool fill_arms(struct squeeze *squeeze, lth_node_id parent, uint32_t ones, uint32_t open,
		      struct lth_attr out_arms[2])
{
	static const char *const names[] = {"then_branch", "else_branch"};
	uint32_t first = open & -open;
	for (int i = 0; i < 2; i++) {
		lth_region_id arm = lth_graph_region(squeeze->infer->graph, parent);
		if (arm == LTH_NONE || !fill_arm(squeeze, arm, i == 0 ? ones | first : ones, open & ~first))
			return false;
		out_arms[i] = (struct lth_attr){.name = names[i], .kind = LTH_ATTR_REGION, .count = 1, .id = arm};
	}
	return true;
}

bool lth_control_may_split(const struct lth_infer *infer)
{
	const struct lth_graph *graph = infer->graph;
	lth_node_id parent = graph->regions[infer->node->region].parent;
	bool in_if = parent != LTH_NONE && graph->nodes[parent].op == &lth_ops[LTH_OP_ID_If];
	return graph->tentative == 0 && (in_if || lth_control_has_rest(infer));
}

enum lth_code lth_control_squeeze(struct lth_infer *infer, uint32_t ones, uint32_t open)
{
	struct lth_graph *graph = infer->graph;
	struct squeeze squeeze = {.infer = infer, .x = infer->node->inputs[0]};
	lth_value_id *condition = lth_arena_array(graph->arena, 1, sizeof(*condition));
	struct lth_attr *arms = lth_arena_array(graph->arena, 2, sizeof(*arms));
	if (__builtin_popcount(open) > MOST_AXES)
		return lth_infer_unsupported(infer, "name the axes", "the output's rank depends on whether %d axes are 1",
					     __builtin_popcount(open));
	infer->at = 0;
	infer->first_built = graph->num_nodes;
	lth_value_id one = lth_build_scalar(infer, LTH_DTYPE_I64, 1);
	for (uint32_t axis = 0; axis < LTH_MAX_RANK; axis++) {
		if (!(open & 1u << axis))
			continue;
		lth_value_id extent = lth_build_extent(infer, squeeze.x, axis);
		squeeze.is_one[axis] = lth_build2(infer, LTH_OP_ID_Equal, extent, one);
	}
	if (infer->failed)
		return infer->failed;
	if (!condition || !arms || !fill_arms(&squeeze, infer->id, ones, open, arms))
		return lth_infer_exhausted(infer);
	*condition = squeeze.is_one[__builtin_ctz(open)];
	struct lth_node *node = &graph->nodes[infer->id];
	node->op = &lth_ops[LTH_OP_ID_If];
	node->inputs = condition;
	node->num_inputs = 1;
	node->attrs = arms;
	node->num_attrs = 2;
	infer->node = node;
	return node->op->impl->infer(infer);
}
