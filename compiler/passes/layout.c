/* What layouts mean for movement operators. A Reshape splits the axes of both sides into the shortest runs of equal
 * products; it keeps every byte in place exactly when the axes of each run stand together and in order in memory, and
 * then the runs keep their order. Transpose permutes; Squeeze, Unsqueeze and Flatten are Reshapes. */
#include "compiler/passes/layout.h"

#include <string.h>

static bool is_one(const struct lth_graph *graph, lth_dim dim)
{
	int64_t extent;
	return lth_dim_is_const(graph->dims, dim, &extent) && extent == 1;
}

/* The axes that are not of extent 1, in memory order. */
static uint32_t order_of(const struct lth_graph *graph, const struct lth_type *type, const uint8_t *layout,
			 uint8_t *out)
{
	uint32_t count = 0;
	for (uint32_t place = 0; place < type->rank; place++) {
		uint32_t axis = lth_layout_axis(layout, place);
		if (!is_one(graph, type->dims[axis]))
			out[count++] = (uint8_t)axis;
	}
	return count;
}

bool lth_layout_equal(const struct lth_graph *graph, const struct lth_type *type, const uint8_t *a, const uint8_t *b)
{
	uint8_t first[LTH_MAX_RANK], second[LTH_MAX_RANK];
	if (type->kind != LTH_TYPE_TENSOR || type->rank > LTH_MAX_RANK)
		return !a && !b;
	uint32_t count = order_of(graph, type, a, first);
	order_of(graph, type, b, second);
	return memcmp(first, second, count) == 0;
}

uint32_t lth_layout_innermost(const struct lth_graph *graph, const struct lth_value *value)
{
	for (uint32_t place = value->type.rank; place-- > 0;) {
		uint32_t axis = lth_layout_axis(value->layout, place);
		if (!is_one(graph, value->type.dims[axis]))
			return axis;
	}
	return LTH_NONE;
}

static bool transpose_through(const struct lth_graph *graph, const struct lth_node *node, const uint8_t *layout,
			      uint8_t *out)
{
	uint32_t rank = graph->values[node->inputs[0]].type.rank, count = 0;
	const int64_t *perm = NULL;
	uint8_t inverse[LTH_MAX_RANK];
	bool given = lth_node_ints(node, "perm", &perm, &count);
	if (given && count != rank)
		return false;
	for (uint32_t axis = 0; axis < rank; axis++)
		inverse[given ? (uint32_t)perm[axis] : rank - 1 - axis] = (uint8_t)axis;
	for (uint32_t place = 0; place < rank; place++)
		out[place] = inverse[lth_layout_axis(layout, place)];
	return true;
}

/* One run: axes [in_begin, in_end) of the input hold the same elements as [out_begin, out_end) of the output. */
struct run {
	uint32_t in_begin, in_end, out_begin, out_end;
};

/* The shortest runs; axes of extent 1 go with the run before them. False when the products never meet. */
static bool find_runs(struct lth_graph *graph, const struct lth_type *in, const struct lth_type *out, struct run *runs,
		      uint32_t *out_count)
{
	uint32_t i = 0, o = 0, count = 0;
	while (i < in->rank || o < out->rank) {
		struct run run = {i, i, o, o};
		lth_dim in_product = lth_dim_const(graph->dims, 1), out_product = in_product;
		do {
			/* Grow the side that is known to be smaller, else the one that began later. */
			bool grow_in = i < in->rank && (o == out->rank || run.in_end == run.in_begin ||
							(run.out_end > run.out_begin &&
							 lth_dim_at_most(graph->dims, in_product, out_product)));
			if (grow_in) {
				in_product = lth_dim_mul(graph->dims, in_product, in->dims[i++]);
				run.in_end = i;
			} else if (o < out->rank) {
				out_product = lth_dim_mul(graph->dims, out_product, out->dims[o++]);
				run.out_end = o;
			}
			if (in_product == LTH_DIM_NONE || out_product == LTH_DIM_NONE)
				return false;
			if (in_product != out_product && i == in->rank && o == out->rank)
				return false;
		} while (in_product != out_product || run.in_end == run.in_begin);
		while (i < in->rank && is_one(graph, in->dims[i]))
			run.in_end = ++i;
		while (o < out->rank && is_one(graph, out->dims[o]))
			run.out_end = ++o;
		runs[count++] = run;
		if (i == in->rank && o < out->rank)
			return false;
	}
	*out_count = count;
	return true;
}

static bool reshape_through(struct lth_graph *graph, const struct lth_node *node, const uint8_t *layout, uint8_t *out)
{
	const struct lth_type *in = &graph->values[node->inputs[0]].type;
	const struct lth_type *to = &graph->values[node->outputs[0]].type;
	struct run runs[LTH_MAX_RANK + 1];
	uint8_t order[LTH_MAX_RANK];
	uint32_t num_runs, at = 0, written = 0;
	uint32_t num_order = order_of(graph, in, layout, order);
	bool sorted = true;
	for (uint32_t k = 1; k < num_order; k++)
		sorted = sorted && order[k - 1] < order[k];
	if (sorted) { /* row-major stays row-major, whatever the shapes */
		for (uint32_t axis = 0; axis < to->rank; axis++)
			out[axis] = (uint8_t)axis;
		return true;
	}
	if (in->rank == 0 || to->rank == 0 || !find_runs(graph, in, to, runs, &num_runs))
		return false;
	bool placed[LTH_MAX_RANK + 1] = {false};
	while (at < num_order) {
		uint32_t r = 0;
		while (!(order[at] >= runs[r].in_begin && order[at] < runs[r].in_end))
			r++;
		/* All of the run's axes that are not of extent 1 must follow in order. */
		for (uint32_t axis = runs[r].in_begin; axis < runs[r].in_end; axis++) {
			if (is_one(graph, in->dims[axis]))
				continue;
			if (at == num_order || order[at] != axis)
				return false;
			at++;
		}
		placed[r] = true;
		for (uint32_t axis = runs[r].out_begin; axis < runs[r].out_end; axis++)
			out[written++] = (uint8_t)axis;
	}
	for (uint32_t r = 0; r < num_runs; r++) /* runs of extent 1 */
		for (uint32_t axis = runs[r].out_begin; axis < runs[r].out_end && !placed[r]; axis++)
			out[written++] = (uint8_t)axis;
	return written == to->rank;
}

bool lth_layout_through(struct lth_graph *graph, const struct lth_node *node, const uint8_t *layout, uint8_t *out)
{
	if (node->num_inputs == 0 || node->inputs[0] == LTH_NONE || node->num_outputs == 0 ||
	    node->outputs[0] == LTH_NONE)
		return false;
	const struct lth_type *in = &graph->values[node->inputs[0]].type;
	const struct lth_type *to = &graph->values[node->outputs[0]].type;
	if (in->kind != LTH_TYPE_TENSOR || to->kind != LTH_TYPE_TENSOR || in->rank > LTH_MAX_RANK ||
	    to->rank > LTH_MAX_RANK)
		return false;
	switch (lth_op_id(node->op)) {
	case LTH_OP_ID_Transpose:
		return transpose_through(graph, node, layout, out);
	case LTH_OP_ID_Reshape:
	case LTH_OP_ID_Flatten:
	case LTH_OP_ID_Squeeze:
	case LTH_OP_ID_Unsqueeze:
		return reshape_through(graph, node, layout, out);
	case LTH_OP_ID_Identity:
	case LTH_OP_ID_LayoutCopy:
		for (uint32_t place = 0; place < to->rank; place++)
			out[place] = (uint8_t)lth_layout_axis(layout, place);
		return true;
	default:
		return false;
	}
}
