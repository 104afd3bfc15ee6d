/* Einsum as a matrix product. The subscripts of two inputs fall into parts: batch axes of both, rows and columns of one,
 * and what is summed over both. Each input is transposed into the order of its parts, parts of several axes are made
 * one, and MatMul's result is taken apart and transposed back; layouts and templates then do what they do for any
 * product. Other equations stay what they are. */
#include "compiler/ops/einsum.h"

#include "compiler/ops/build.h"

#include <string.h>

enum part { BATCH, ROWS, SUMMED, COLUMNS, NUM_PARTS };

struct product {
	const struct lth_einsum *e;
	uint32_t left; /* the input that has the rows; the other one has the columns */
	struct labels {
		uint8_t list[LTH_EINSUM_LABELS];
		uint32_t count;
	} parts[NUM_PARTS];
};

static int place_in_input(const struct lth_einsum *e, uint32_t input, uint8_t label)
{
	return lth_einsum_place(e->inputs[input].labels, e->inputs[input].rank, label);
}

/* The parts of the product whose rows are those of input `left`, each in the order of the result. */
static struct product parts_of(const struct lth_einsum *e, uint32_t left)
{
	struct product product = {.e = e, .left = left};
	for (uint32_t i = 0; i < e->num_output; i++) {
		bool in_left = place_in_input(e, left, e->output[i]) >= 0;
		bool in_right = place_in_input(e, 1 - left, e->output[i]) >= 0;
		struct labels *part = &product.parts[in_left && in_right ? BATCH : in_left ? ROWS : COLUMNS];
		part->list[part->count++] = e->output[i];
	}
	memcpy(product.parts[SUMMED].list, e->reduced, e->num_reduced);
	product.parts[SUMMED].count = e->num_reduced;
	return product;
}

static lth_dim extent_in(const struct lth_infer *infer, const struct lth_einsum *e, uint32_t input, uint8_t label)
{
	int place = place_in_input(e, input, label);
	return place < 0 ? LTH_DIM_NONE : lth_infer_dim(infer, input, (uint32_t)place);
}

bool lth_einsum_is_product(struct lth_infer *infer, const struct lth_einsum *e)
{
	if (e->num_inputs != 2 || e->num_reduced == 0)
		return false;
	for (uint32_t input = 0; input < 2; input++)
		for (uint32_t k = 0; k < e->inputs[input].rank; k++) /* a diagonal */
			if (place_in_input(e, input, e->inputs[input].labels[k]) != (int)k)
				return false;
	for (uint32_t i = 0; i < e->num_reduced; i++) {
		lth_dim left = extent_in(infer, e, 0, e->reduced[i]), right = extent_in(infer, e, 1, e->reduced[i]);
		if (left == LTH_DIM_NONE || right == LTH_DIM_NONE ||
		    (left != right && lth_dim_equal(infer->dims, left, right) != LTH_YES))
			return false;
	}
	return true;
}

/* ---- which input has the rows ---- */

static double likely_size(const struct lth_infer *infer, const struct product *product, uint32_t input,
			  const enum part *parts, uint32_t num_parts)
{
	double size = 1;
	for (uint32_t p = 0; p < num_parts; p++)
		for (uint32_t i = 0; i < product->parts[parts[p]].count; i++) {
			int64_t extent = 1;
			lth_dim dim = extent_in(infer, product->e, input, product->parts[parts[p]].list[i]);
			(void)(dim != LTH_DIM_NONE && lth_dim_eval_hint(infer->dims, dim, &extent));
			size *= (double)extent;
		}
	return size;
}

/* The labels of MatMul's result, in its order. */
static uint32_t result_labels(const struct product *product, uint8_t *out)
{
	static const enum part order[] = {BATCH, ROWS, COLUMNS};
	uint32_t count = 0;
	for (uint32_t p = 0; p < 3; p++) {
		memcpy(out + count, product->parts[order[p]].list, product->parts[order[p]].count);
		count += product->parts[order[p]].count;
	}
	return count;
}

static bool in_order(const struct product *product)
{
	uint8_t labels[2 * LTH_EINSUM_LABELS];
	uint32_t count = result_labels(product, labels);
	return memcmp(labels, product->e->output, count) == 0;
}

/* Elements that are moved beside the product itself: the right factor goes into panels, which constants do at compile
 * time, and a result in another order is turned. */
static double moved(const struct lth_infer *infer, const struct product *product)
{
	static const enum part right[] = {BATCH, SUMMED, COLUMNS}, rows[] = {ROWS};
	const struct lth_value *factor = &infer->graph->values[infer->node->inputs[1 - product->left]];
	double size = factor->def == LTH_DEF_CONSTANT ? 0 : likely_size(infer, product, 1 - product->left, right, 3);
	if (!in_order(product))
		size += likely_size(infer, product, 1 - product->left, (enum part[]){BATCH, COLUMNS}, 2) *
			likely_size(infer, product, product->left, rows, 1);
	return size;
}

/* ---- building ---- */

/* `count` sizes of a shape from place `first` on. */
static lth_value_id sizes(struct lth_infer *infer, lth_value_id value, int64_t first, int64_t count)
{
	return lth_build_slice(infer, lth_build1(infer, LTH_OP_ID_Shape, value), 0, first, first + count);
}

/* The sizes of a part's axes in an input, one behind the other in `out`. */
static uint32_t part_sizes(struct lth_infer *infer, const struct product *product, uint32_t input, enum part part,
			   lth_value_id *out)
{
	const struct labels *labels = &product->parts[part];
	for (uint32_t i = 0; i < labels->count; i++)
		out[i] = sizes(infer, lth_in(infer, input), place_in_input(product->e, input, labels->list[i]), 1);
	return labels->count;
}

/* The number of places in a part: the size of the one axis that it becomes. */
static lth_value_id part_size(struct lth_infer *infer, const struct product *product, uint32_t input, enum part part)
{
	lth_value_id factors[LTH_EINSUM_LABELS], size = LTH_NONE;
	uint32_t count = part_sizes(infer, product, input, part, factors);
	for (uint32_t i = 0; i < count; i++)
		size = i ? lth_build2(infer, LTH_OP_ID_Mul, size, factors[i]) : factors[i];
	return count ? size : lth_build_ints(infer, &(int64_t){1}, 1);
}

static lth_value_id reshape(struct lth_infer *infer, lth_value_id value, const lth_value_id *shape, uint32_t count)
{
	const struct lth_attr zeros = lth_attr_int("allowzero", 1);
	const lth_value_id in[] = {value, lth_build_concat(infer, shape, count, 0)};
	return lth_build(infer, LTH_OP_ID_Reshape, in, 2, &zeros, 1);
}

static lth_value_id transpose(struct lth_infer *infer, lth_value_id value, const int64_t *perm, uint32_t rank)
{
	for (uint32_t i = 0; i < rank; i++)
		if (perm[i] != (int64_t)i)
			return lth_build_transpose(infer, value, perm, rank);
	return value;
}

/* Several axes of rows need not become one where all of the left factor is rows. */
static bool is_one_axis(const struct product *product, enum part part)
{
	uint32_t count = product->parts[part].count;
	return count == 1 || (part == ROWS && count > 1 && product->parts[BATCH].count == 0);
}

/* An input as a factor: the batch axes, then its two other parts. */
static lth_value_id factor(struct lth_infer *infer, const struct product *product, uint32_t input, enum part second,
			   enum part third)
{
	const enum part order[] = {BATCH, second, third};
	int64_t perm[LTH_MAX_RANK], batch = product->parts[BATCH].count;
	uint32_t rank = 0;
	for (uint32_t p = 0; p < 3; p++)
		for (uint32_t i = 0; i < product->parts[order[p]].count; i++)
			perm[rank++] = place_in_input(product->e, input, product->parts[order[p]].list[i]);
	lth_value_id value = transpose(infer, lth_in(infer, input), perm, rank);
	if (is_one_axis(product, second) && is_one_axis(product, third))
		return value;
	lth_value_id shape[LTH_EINSUM_LABELS + 2];
	uint32_t count = 0;
	if (batch)
		shape[count++] = sizes(infer, value, 0, batch);
	for (uint32_t p = 1; p < 3; p++) {
		if (is_one_axis(product, order[p]))
			count += part_sizes(infer, product, input, order[p], shape + count);
		else
			shape[count++] = part_size(infer, product, input, order[p]);
	}
	return reshape(infer, value, shape, count);
}

/* The product in the order of the equation, rows and columns as the axes that they were. */
static lth_value_id result(struct lth_infer *infer, const struct product *product, lth_value_id value)
{
	uint8_t labels[2 * LTH_EINSUM_LABELS];
	int64_t perm[LTH_MAX_RANK], batch = product->parts[BATCH].count;
	uint32_t rank = result_labels(product, labels);
	if (!is_one_axis(product, ROWS) || !is_one_axis(product, COLUMNS)) {
		lth_value_id shape[2 * LTH_EINSUM_LABELS];
		uint32_t count = 0;
		if (batch)
			shape[count++] = sizes(infer, value, 0, batch);
		count += part_sizes(infer, product, product->left, ROWS, shape + count);
		count += part_sizes(infer, product, 1 - product->left, COLUMNS, shape + count);
		if (count == 0)
			shape[count++] = lth_build_ints(infer, NULL, 0);
		value = reshape(infer, value, shape, count);
	}
	for (uint32_t i = 0; i < rank; i++)
		perm[i] = lth_einsum_place(labels, rank, product->e->output[i]);
	return transpose(infer, value, perm, rank);
}

enum lth_code lth_einsum_build_product(struct lth_infer *infer, const struct lth_einsum *e)
{
	struct product straight = parts_of(e, 0), swapped = parts_of(e, 1);
	const struct product *product = moved(infer, &swapped) < moved(infer, &straight) ? &swapped : &straight;
	lth_value_id left = factor(infer, product, product->left, ROWS, SUMMED);
	lth_value_id right = factor(infer, product, 1 - product->left, SUMMED, COLUMNS);
	lth_value_id value = lth_build2(infer, LTH_OP_ID_MatMul, left, right);
	lth_build_output(infer, 0, result(infer, product, value));
	return LTH_OK;
}
