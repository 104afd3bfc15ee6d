/* Derivatives of data movement and of reductions.
 *
 * Movement, whatever it is, has one rule: the same node on a tensor of places (each element's own number, from 1) tells
 * where every output element came from; the gradient goes back to those places, added up. 0 is a fill value's place. */
#include "compiler/ops/family.h"
#include "compiler/ops/gradient.h"

#include <string.h>

#define RULE(name) lth_value_id lth_gradient_##name(struct lth_gradient *g, uint32_t input)

static lth_value_id binary(struct lth_gradient *g, enum lth_op_id op, lth_value_id a, lth_value_id b)
{
	return lth_build2(g->infer, op, a, b);
}

/* ---- movement ---- */

RULE(reshape)
{
	return lth_build_reshape_like(g->infer, g->of[0], lth_gradient_in(g, input));
}

RULE(transpose)
{
	const int64_t *perm;
	int64_t inverse[LTH_MAX_RANK];
	uint32_t count, rank = lth_gradient_type(g, input)->rank;
	if (!lth_node_ints(&g->node, "perm", &perm, &count))
		return lth_build1(g->infer, LTH_OP_ID_Transpose, g->of[0]); /* reversed, as it was */
	for (uint32_t i = 0; i < rank; i++)
		inverse[perm[i]] = i;
	return lth_build_transpose(g->infer, g->of[0], inverse, rank);
}

static lth_value_id flat(struct lth_gradient *g, lth_value_id value)
{
	return lth_build_reshape(g->infer, value, &(int64_t){-1}, 1);
}

/* 1, 2, ... in the shape of `like`; also how many, as a scalar. */
static lth_value_id number_places(struct lth_gradient *g, lth_value_id like, lth_value_id *out_count)
{
	struct lth_infer *infer = g->infer;
	lth_value_id one = lth_build_scalar(infer, LTH_DTYPE_I64, 1);
	*out_count = lth_build1(infer, LTH_OP_ID_Size, like);
	lth_value_id end = binary(g, LTH_OP_ID_Add, *out_count, one);
	lth_value_id places = lth_build(infer, LTH_OP_ID_Range, (lth_value_id[]){one, end, one}, 3, NULL, 0);
	return lth_build_reshape_like(infer, places, like);
}

/* What stands at `places` of a flat tensor of `count` elements and a place 0 before them, summed up, in the shape of
 * `like`. */
static lth_value_id add_up(struct lth_gradient *g, lth_value_id places, lth_value_id of, lth_value_id count,
			   lth_value_id like)
{
	struct lth_infer *infer = g->infer;
	const struct lth_attr how = {.name = "reduction", .kind = LTH_ATTR_STRING, .count = 1, .s = {"add", 3}};
	const int64_t first = 1, last = INT64_MAX;
	lth_value_id one = lth_build_scalar(infer, LTH_DTYPE_I64, 1);
	lth_value_id room = lth_build_reshape(infer, binary(g, LTH_OP_ID_Add, count, one), &first, 1);
	enum lth_dtype dtype = infer->failed ? LTH_DTYPE_F32 : infer->graph->values[like].type.dtype;
	lth_value_id empty = lth_gradient_fill(infer, dtype, 0, room);
	lth_value_id at = flat(g, places), what = flat(g, of);
	lth_value_id sums = lth_build(infer, LTH_OP_ID_ScatterElements, (lth_value_id[]){empty, at, what}, 3, &how, 1);
	lth_value_id begin = lth_build_ints(infer, &first, 1), end = lth_build_ints(infer, &last, 1);
	sums = lth_build(infer, LTH_OP_ID_Slice, (lth_value_id[]){sums, begin, end}, 3, NULL, 0);
	return lth_build_reshape_like(infer, sums, like);
}

/* Whether input `k` of the node holds elements to be moved, as `input` does, and no numbers that say where to. */
static bool moves(const struct lth_gradient *g, uint32_t k)
{
	return g->node.op == &lth_ops[LTH_OP_ID_Concat] || k == 0;
}

RULE(places)
{
	struct lth_infer *infer = g->infer;
	lth_value_id like = lth_gradient_in(g, input), count, sum = LTH_NONE;
	uint32_t num_inputs = g->node.num_inputs, num_outputs = g->node.num_outputs;
	lth_value_id *inputs = lth_arena_memdup(infer->graph->arena, g->node.inputs, num_inputs * sizeof(*inputs));
	lth_value_id *moved = lth_arena_array(infer->graph->arena, num_outputs, sizeof(*moved));
	bool *wanted = lth_arena_array(infer->graph->arena, num_outputs, sizeof(*wanted));
	if (!inputs || !moved || !wanted || !moves(g, input))
		return LTH_NONE; /* a fill value: nothing asks for its gradient */
	inputs[input] = number_places(g, like, &count);
	for (uint32_t k = 0; k < num_inputs; k++)
		if (k != input && moves(g, k)) {
			lth_value_id shape = lth_build1(infer, LTH_OP_ID_Shape, g->node.inputs[k]);
			inputs[k] = lth_gradient_fill(infer, LTH_DTYPE_I64, 0, shape);
		}
	if (g->node.op == &lth_ops[LTH_OP_ID_Pad] && num_inputs > 2)
		inputs[2] = LTH_NONE; /* filled with place 0 */
	for (uint32_t k = 0; k < num_outputs; k++)
		wanted[k] = g->of[k] != LTH_NONE;
	lth_build_many(infer, lth_op_id(g->node.op), inputs, num_inputs, g->node.attrs, g->node.num_attrs, wanted,
		       moved, num_outputs);
	for (uint32_t k = 0; k < num_outputs && !infer->failed; k++) {
		if (!wanted[k])
			continue;
		lth_value_id part = add_up(g, moved[k], g->of[k], count, like);
		sum = sum == LTH_NONE ? part : binary(g, LTH_OP_ID_Add, sum, part);
	}
	return sum;
}

RULE(top_k)
{
	struct lth_infer *infer = g->infer;
	const struct lth_attr attrs[2] = {
		{.name = "axis", .kind = LTH_ATTR_INT, .count = 1, .i = lth_op_int(&g->node, "axis")},
		{.name = "reduction", .kind = LTH_ATTR_STRING, .count = 1, .s = {"add", 3}}};
	lth_value_id like = lth_gradient_in(g, input), found[2];
	lth_build_many(infer, LTH_OP_ID_TopK, g->node.inputs, g->node.num_inputs, g->node.attrs, g->node.num_attrs,
		       (const bool[]){true, true}, found, 2);
	lth_value_id shape = lth_build1(infer, LTH_OP_ID_Shape, like);
	lth_value_id empty = lth_gradient_fill(infer, lth_gradient_type(g, input)->dtype, 0, shape);
	return lth_build(infer, LTH_OP_ID_ScatterElements, (lth_value_id[]){empty, found[1], g->of[0]}, 3, attrs, 2);
}

/* Places that the indices of a pooling name: its second result, over the whole input. */
RULE(max_pool)
{
	struct lth_infer *infer = g->infer;
	struct lth_attr *attrs = lth_arena_array(infer->graph->arena, g->node.num_attrs + 1, sizeof(*attrs));
	lth_value_id like = lth_gradient_in(g, input), pooled[2];
	uint32_t count = 0;
	if (!attrs)
		return LTH_NONE;
	for (uint32_t i = 0; i < g->node.num_attrs; i++)
		if (strcmp(g->node.attrs[i].name, "storage_order") != 0)
			attrs[count++] = g->node.attrs[i];
	lth_build_many(infer, LTH_OP_ID_MaxPool, &like, 1, attrs, count, (const bool[]){true, true}, pooled, 2);
	lth_value_id size = lth_build1(infer, LTH_OP_ID_Size, like);
	lth_value_id places = binary(g, LTH_OP_ID_Add, pooled[1], lth_build_scalar(infer, LTH_DTYPE_I64, 1));
	return add_up(g, places, g->of[0], size, like);
}

/* ---- reductions ---- */

/* A result of the reduction with the axes that it may have dropped. */
static lth_value_id kept(struct lth_gradient *g, lth_value_id value)
{
	struct lth_infer *infer = g->infer;
	uint32_t rank = lth_gradient_type(g, 0)->rank;
	lth_value_id axes = lth_gradient_in(g, 1);
	int64_t ones[LTH_MAX_RANK];
	if (infer->failed || infer->graph->values[value].type.rank == rank)
		return value;
	if (axes != LTH_NONE && infer->graph->values[value].type.rank > 0)
		return binary(g, LTH_OP_ID_Unsqueeze, value, axes);
	for (uint32_t i = 0; i < rank; i++)
		ones[i] = 1;
	return lth_build_reshape(infer, value, ones, rank);
}

static lth_value_id like_input(struct lth_gradient *g, lth_value_id value)
{
	return binary(g, LTH_OP_ID_Expand, value, lth_build1(g->infer, LTH_OP_ID_Shape, lth_gradient_in(g, 0)));
}

/* The result's gradient times `factor`, which has the input's shape. */
static lth_value_id weighted(struct lth_gradient *g, lth_value_id factor)
{
	return binary(g, LTH_OP_ID_Mul, kept(g, g->of[0]), factor);
}

RULE(reduce_sum)
{
	return input == 0 ? like_input(g, kept(g, g->of[0])) : LTH_NONE;
}

/* How many elements of the input there are for each of the result. */
static lth_value_id elements_for_one(struct lth_gradient *g)
{
	struct lth_infer *infer = g->infer;
	lth_value_id all = lth_build1(infer, LTH_OP_ID_Size, lth_gradient_in(g, 0));
	lth_value_id results = lth_build1(infer, LTH_OP_ID_Size, g->node.outputs[0]);
	return lth_build_cast(infer, binary(g, LTH_OP_ID_Div, all, results), lth_gradient_type(g, 0)->dtype);
}

RULE(reduce_mean)
{
	if (input > 0)
		return LTH_NONE;
	lth_value_id count = elements_for_one(g);
	return like_input(g, binary(g, LTH_OP_ID_Div, kept(g, g->of[0]), count));
}

RULE(global_average)
{
	return lth_gradient_reduce_mean(g, input);
}

/* Equal elements share. */
RULE(reduce_extremum)
{
	if (input > 0)
		return LTH_NONE;
	lth_value_id is = binary(g, LTH_OP_ID_Equal, lth_gradient_in(g, 0), kept(g, g->node.outputs[0]));
	is = lth_build_cast(g->infer, is, lth_gradient_type(g, 0)->dtype);
	lth_value_id in[2] = {is, lth_gradient_in(g, 1)};
	lth_value_id count = lth_build(g->infer, LTH_OP_ID_ReduceSum, in, g->node.num_inputs, g->node.attrs,
				       g->node.num_attrs);
	return weighted(g, binary(g, LTH_OP_ID_Div, is, kept(g, count)));
}

RULE(reduce_l1)
{
	return input == 0 ? weighted(g, lth_build1(g->infer, LTH_OP_ID_Sign, lth_gradient_in(g, 0))) : LTH_NONE;
}

RULE(reduce_l2) /* x / y */
{
	if (input > 0)
		return LTH_NONE;
	return weighted(g, binary(g, LTH_OP_ID_Div, lth_gradient_in(g, 0), kept(g, g->node.outputs[0])));
}

RULE(reduce_sum_square)
{
	if (input > 0)
		return LTH_NONE;
	return weighted(g, binary(g, LTH_OP_ID_Mul, lth_gradient_in(g, 0), lth_gradient_number(g, 0, 2)));
}

RULE(reduce_log_sum) /* 1 / sum = exp(-y) */
{
	if (input > 0)
		return LTH_NONE;
	lth_value_id negative = lth_build1(g->infer, LTH_OP_ID_Neg, g->node.outputs[0]);
	lth_value_id share = lth_build1(g->infer, LTH_OP_ID_Exp, negative);
	return like_input(g, weighted(g, kept(g, share)));
}

RULE(reduce_log_sum_exp) /* exp(x - y) */
{
	if (input > 0)
		return LTH_NONE;
	lth_value_id below = binary(g, LTH_OP_ID_Sub, lth_gradient_in(g, 0), kept(g, g->node.outputs[0]));
	return weighted(g, lth_build1(g->infer, LTH_OP_ID_Exp, below));
}

RULE(cum_sum) /* the running sum from the other end */
{
	if (input > 0)
		return LTH_NONE;
	const struct lth_attr attrs[2] = {
		{.name = "exclusive", .kind = LTH_ATTR_INT, .count = 1, .i = lth_op_int(&g->node, "exclusive")},
		{.name = "reverse", .kind = LTH_ATTR_INT, .count = 1, .i = !lth_op_int(&g->node, "reverse")}};
	const lth_value_id in[2] = {g->of[0], lth_gradient_in(g, 1)};
	return lth_build(g->infer, LTH_OP_ID_CumSum, in, 2, attrs, 2);
}
