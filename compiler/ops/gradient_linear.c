/* Derivatives of matrix products, convolutions and normalisations. */
#include "compiler/ops/family.h"
#include "compiler/ops/gradient.h"

#include <string.h>

#define RULE(name) lth_value_id lth_gradient_##name(struct lth_gradient *g, uint32_t input)

static lth_value_id binary(struct lth_gradient *g, enum lth_op_id op, lth_value_id a, lth_value_id b)
{
	return lth_build2(g->infer, op, a, b);
}

static lth_value_id mul(struct lth_gradient *g, lth_value_id a, lth_value_id b)
{
	return binary(g, LTH_OP_ID_Mul, a, b);
}

/* ---- softmax and normalisation ---- */

RULE(softmax) /* y (g - sum(g y)) */
{
	(void)input;
	const int64_t axis = lth_op_int(&g->node, "axis");
	lth_value_id y = g->node.outputs[0];
	lth_value_id sum = lth_build_reduce(g->infer, LTH_OP_ID_ReduceSum, mul(g, g->of[0], y), &axis, 1, true);
	return mul(g, y, binary(g, LTH_OP_ID_Sub, g->of[0], sum));
}

RULE(log_softmax) /* g - exp(y) sum(g) */
{
	(void)input;
	const int64_t axis = lth_op_int(&g->node, "axis");
	lth_value_id sum = lth_build_reduce(g->infer, LTH_OP_ID_ReduceSum, g->of[0], &axis, 1, true);
	lth_value_id share = lth_build1(g->infer, LTH_OP_ID_Exp, g->node.outputs[0]);
	return binary(g, LTH_OP_ID_Sub, g->of[0], mul(g, share, sum));
}

static lth_value_id mean_over(struct lth_gradient *g, lth_value_id value, const int64_t *axes, uint32_t count)
{
	return lth_build_reduce(g->infer, LTH_OP_ID_ReduceMean, value, axes, count, true);
}

/* Of scale (x - mean) / sqrt(variance + epsilon) over axes, by x, or by the scale as it is broadcast. With h for the
 * quotient, r for its factor and d = g scale: r (d - mean(d) - h mean(d h)), and g h. */
static lth_value_id normalised(struct lth_gradient *g, const int64_t *axes, uint32_t count, lth_value_id scale,
			       bool by_scale)
{
	struct lth_infer *infer = g->infer;
	lth_value_id x = lth_gradient_in(g, 0);
	lth_value_id centred = binary(g, LTH_OP_ID_Sub, x, mean_over(g, x, axes, count));
	lth_value_id variance = mean_over(g, mul(g, centred, centred), axes, count);
	variance = binary(g, LTH_OP_ID_Add, variance, lth_gradient_number(g, 0, lth_op_float(&g->node, "epsilon")));
	lth_value_id r = lth_build1(infer, LTH_OP_ID_Reciprocal, lth_build1(infer, LTH_OP_ID_Sqrt, variance));
	lth_value_id h = mul(g, centred, r);
	if (by_scale)
		return mul(g, g->of[0], h);
	lth_value_id d = mul(g, g->of[0], scale);
	lth_value_id mean = mean_over(g, d, axes, count), along = mean_over(g, mul(g, d, h), axes, count);
	lth_value_id rest = binary(g, LTH_OP_ID_Sub, d, mean);
	return mul(g, r, binary(g, LTH_OP_ID_Sub, rest, mul(g, h, along)));
}

RULE(layer_norm)
{
	int64_t rank = lth_gradient_type(g, 0)->rank, first = lth_op_int(&g->node, "axis"), axes[LTH_MAX_RANK];
	uint32_t count = 0;
	if (input == 2)
		return g->of[0];
	for (uint32_t k = 1; k < g->node.num_outputs; k++)
		if (g->of[k] != LTH_NONE)
			return lth_gradient_refuse(g, "by way of its mean or deviation");
	for (int64_t axis = first < 0 ? first + rank : first; axis < rank; axis++)
		axes[count++] = axis;
	return normalised(g, axes, count, lth_gradient_in(g, 1), input == 1);
}

/* A vector over channels: the sum over all other axes of [N, C, ...]. */
static lth_value_id of_channels(struct lth_gradient *g, lth_value_id value)
{
	int64_t axes[LTH_MAX_RANK] = {0};
	uint32_t rank = lth_gradient_type(g, 0)->rank;
	for (uint32_t i = 2; i < rank; i++)
		axes[i - 1] = i;
	return lth_build_reduce(g->infer, LTH_OP_ID_ReduceSum, value, axes, rank - 1, false);
}

RULE(instance_norm)
{
	uint32_t space = lth_gradient_type(g, 0)->rank - 2;
	int64_t axes[LTH_MAX_RANK], behind[LTH_MAX_RANK];
	for (uint32_t i = 0; i < space; i++) {
		axes[i] = i + 2;
		behind[i] = i + 1;
	}
	if (input == 2)
		return of_channels(g, g->of[0]);
	lth_value_id scale = lth_build_unsqueeze(g->infer, lth_gradient_in(g, 1), behind, space);
	lth_value_id part = normalised(g, axes, space, scale, input == 1);
	return input == 1 ? of_channels(g, part) : part;
}

/* ---- matrix products ---- */

/* The last two axes exchanged. */
static lth_value_id turned(struct lth_gradient *g, lth_value_id matrix)
{
	int64_t perm[LTH_MAX_RANK];
	uint32_t rank = g->infer->failed ? 2 : g->infer->graph->values[matrix].type.rank;
	for (uint32_t i = 0; i < rank; i++)
		perm[i] = i;
	perm[rank - 2] = rank - 1;
	perm[rank - 1] = rank - 2;
	return lth_build_transpose(g->infer, matrix, perm, rank);
}

/* A vector on the left is a row, on the right a column; the product lacks their axes. */
RULE(matmul)
{
	const int64_t row = -2, column = -1;
	lth_value_id a = lth_gradient_in(g, 0), b = lth_gradient_in(g, 1), of = g->of[0];
	bool a_is_vector = lth_gradient_type(g, 0)->rank == 1, b_is_vector = lth_gradient_type(g, 1)->rank == 1;
	if (b_is_vector) {
		b = lth_build_unsqueeze(g->infer, b, &column, 1);
		of = lth_build_unsqueeze(g->infer, of, &column, 1);
	}
	if (a_is_vector) {
		a = lth_build_unsqueeze(g->infer, a, &row, 1);
		of = lth_build_unsqueeze(g->infer, of, &row, 1);
	}
	lth_value_id product = input == 0 ? binary(g, LTH_OP_ID_MatMul, of, turned(g, b))
					  : binary(g, LTH_OP_ID_MatMul, turned(g, a), of);
	if (input == 0 ? !a_is_vector : !b_is_vector)
		return product;
	product = lth_gradient_sum_to(g, product, input == 0 ? a : b);
	return lth_build_reshape_like(g->infer, product, lth_gradient_in(g, input));
}

RULE(gemm)
{
	bool turn_a = lth_op_int(&g->node, "transA") != 0, turn_b = lth_op_int(&g->node, "transB") != 0;
	lth_value_id of = g->of[0], product;
	if (input == 2)
		return mul(g, of, lth_gradient_number(g, 0, lth_op_float(&g->node, "beta")));
	if (input == 0) {
		lth_value_id b = turn_b ? lth_gradient_in(g, 1) : turned(g, lth_gradient_in(g, 1));
		product = binary(g, LTH_OP_ID_MatMul, of, b);
	} else {
		lth_value_id a = turn_a ? lth_gradient_in(g, 0) : turned(g, lth_gradient_in(g, 0));
		product = binary(g, LTH_OP_ID_MatMul, a, of);
	}
	product = mul(g, product, lth_gradient_number(g, 0, lth_op_float(&g->node, "alpha")));
	return (input == 0 ? turn_a : turn_b) ? turned(g, product) : product;
}

/* ---- convolution, of static sizes, in one group ---- */

struct window {
	uint32_t space; /* axes of the space */
	int64_t size[LTH_MAX_RANK], kernel[LTH_MAX_RANK], result[LTH_MAX_RANK];
	int64_t strides[LTH_MAX_RANK], dilations[LTH_MAX_RANK], pads[2 * LTH_MAX_RANK];
};

static void read_list(const struct lth_gradient *g, const char *name, int64_t otherwise, uint32_t count, int64_t *out)
{
	const int64_t *list = NULL;
	uint32_t given = 0;
	bool there = lth_node_ints(&g->node, name, &list, &given) && given == count;
	for (uint32_t i = 0; i < count; i++)
		out[i] = there ? list[i] : otherwise;
}

/* How far the windows reach along an axis. */
static int64_t covered(const struct window *w, uint32_t axis)
{
	return (w->result[axis] - 1) * w->strides[axis] + (w->kernel[axis] - 1) * w->dilations[axis] + 1;
}

/* Padding that the sizes imply, as the operator's automatic modes split it. */
static void automatic_pads(struct window *w, bool lower)
{
	for (uint32_t i = 0; i < w->space; i++) {
		int64_t pad = covered(w, i) > w->size[i] ? covered(w, i) - w->size[i] : 0;
		w->pads[i] = lower ? pad - pad / 2 : pad / 2;
		w->pads[w->space + i] = pad - w->pads[i];
	}
}

static bool read_window(struct lth_gradient *g, struct window *w)
{
	const struct lth_graph *graph = g->infer->graph;
	int64_t x[LTH_MAX_RANK], kernel[LTH_MAX_RANK], y[LTH_MAX_RANK];
	w->space = lth_gradient_type(g, 0)->rank - 2;
	if (lth_op_int(&g->node, "group") != 1)
		return lth_gradient_refuse(g, "in several groups"), false;
	if (!lth_type_static(graph, lth_gradient_type(g, 1), kernel) ||
	    !lth_type_static(graph, &graph->values[g->node.outputs[0]].type, y) ||
	    !lth_type_static(graph, lth_gradient_type(g, 0), x))
		return lth_gradient_refuse(g, "over sizes that only the run knows"), false;
	memcpy(w->size, x + 2, w->space * sizeof(*x));
	memcpy(w->kernel, kernel + 2, w->space * sizeof(*kernel));
	memcpy(w->result, y + 2, w->space * sizeof(*y));
	read_list(g, "strides", 1, w->space, w->strides);
	read_list(g, "dilations", 1, w->space, w->dilations);
	read_list(g, "pads", 0, 2 * w->space, w->pads);
	bool upper = lth_op_string_is(&g->node, "auto_pad", "SAME_UPPER");
	bool lower = lth_op_string_is(&g->node, "auto_pad", "SAME_LOWER");
	if (upper || lower)
		automatic_pads(w, lower);
	return true;
}

static struct lth_attr list_attr(const struct lth_gradient *g, const char *name, const int64_t *list, uint32_t count)
{
	return (struct lth_attr){.name = name,
				 .kind = LTH_ATTR_INTS,
				 .count = count,
				 .ints = lth_arena_memdup(g->infer->graph->arena, list, count * sizeof(*list))};
}

/* The transposed convolution, filled up at the far ends to the input's size. */
static lth_value_id of_image(struct lth_gradient *g, const struct window *w)
{
	int64_t missing[LTH_MAX_RANK];
	for (uint32_t i = 0; i < w->space; i++)
		missing[i] = w->size[i] + w->pads[i] + w->pads[w->space + i] - covered(w, i);
	const struct lth_attr attrs[] = {
		list_attr(g, "strides", w->strides, w->space), list_attr(g, "dilations", w->dilations, w->space),
		list_attr(g, "pads", w->pads, 2 * w->space), list_attr(g, "output_padding", missing, w->space)};
	const lth_value_id in[2] = {g->of[0], lth_gradient_in(g, 1)};
	return lth_build(g->infer, LTH_OP_ID_ConvTranspose, in, 2, attrs, 4);
}

/* Batch and channels exchanged. */
static lth_value_id by_channel(struct lth_gradient *g, lth_value_id value, uint32_t space)
{
	int64_t perm[LTH_MAX_RANK] = {1, 0};
	for (uint32_t i = 2; i < space + 2; i++)
		perm[i] = i;
	return lth_build_transpose(g->infer, value, perm, space + 2);
}

/* The image convolved with the gradient, steps and dilations exchanged; what the stride left over is cut off. */
static lth_value_id of_kernel(struct lth_gradient *g, const struct window *w)
{
	struct lth_infer *infer = g->infer;
	int64_t zeros[LTH_MAX_RANK] = {0}, axes[LTH_MAX_RANK];
	const struct lth_attr attrs[] = {list_attr(g, "strides", w->dilations, w->space),
					 list_attr(g, "dilations", w->strides, w->space),
					 list_attr(g, "pads", w->pads, 2 * w->space)};
	lth_value_id image = by_channel(g, lth_gradient_in(g, 0), w->space), of = by_channel(g, g->of[0], w->space);
	lth_value_id sums = lth_build(infer, LTH_OP_ID_Conv, (lth_value_id[]){image, of}, 2, attrs, 3);
	for (uint32_t i = 0; i < w->space; i++)
		axes[i] = i + 2;
	lth_value_id begin = lth_build_ints(infer, zeros, w->space), end = lth_build_ints(infer, w->kernel, w->space);
	lth_value_id along = lth_build_ints(infer, axes, w->space);
	sums = lth_build(infer, LTH_OP_ID_Slice, (lth_value_id[]){sums, begin, end, along}, 4, NULL, 0);
	return by_channel(g, sums, w->space);
}

RULE(conv)
{
	struct window w;
	if (input == 2)
		return of_channels(g, g->of[0]);
	if (!read_window(g, &w))
		return LTH_NONE;
	return input == 0 ? of_image(g, &w) : of_kernel(g, &w);
}
