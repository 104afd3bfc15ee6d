/* Einsum: a sum of products by an equation of subscripts. Every subscript is a loop: those of the output are its axes,
 * the others are reduced. An ellipsis stands for broadcast axes, aligned from the right. What is a matrix product becomes
 * one (einsum_product.c). */
#include "compiler/ops/einsum.h"

#include "compiler/ops/build.h"
#include "compiler/ops/family.h"

#include <ctype.h>
#include <string.h>

static void fail(struct lth_einsum *e, const char *fault)
{
	if (!e->fault)
		e->fault = fault;
}

/* One input's term: its labels, an ellipsis taking the axes that letters leave. */
static const char *parse_term(struct lth_einsum *e, const char *at, const char *end, uint32_t input, uint32_t rank)
{
	uint32_t letters = 0, count = 0;
	bool dots = false;
	for (const char *c = at; c < end && *c != ',' && *c != '-'; c++)
		letters += isalpha((unsigned char)*c) != 0;
	if (letters > rank) {
		fail(e, "more subscripts than the input has axes");
		return end;
	}
	for (; at < end && *at != ',' && *at != '-'; at++) {
		if (*at == ' ')
			continue;
		if (isalpha((unsigned char)*at)) {
			e->inputs[input].labels[count++] = (uint8_t)*at;
			continue;
		}
		if (end - at < 3 || memcmp(at, "...", 3) != 0 || dots) {
			fail(e, "a character that is no subscript");
			return end;
		}
		dots = true;
		at += 2;
		for (uint32_t k = rank - letters; k-- > 0;)
			e->inputs[input].labels[count++] = (uint8_t)(LTH_EINSUM_ELLIPSIS + k);
		if (rank - letters > e->ellipsis)
			e->ellipsis = rank - letters;
	}
	if (count != rank)
		fail(e, "fewer subscripts than the input has axes");
	e->inputs[input].rank = rank;
	return at;
}

static uint32_t uses_of(const struct lth_einsum *e, uint8_t label)
{
	uint32_t uses = 0;
	for (uint32_t i = 0; i < e->num_inputs; i++)
		for (uint32_t k = 0; k < e->inputs[i].rank; k++)
			uses += e->inputs[i].labels[k] == label;
	return uses;
}

int lth_einsum_place(const uint8_t *list, uint32_t count, uint8_t label)
{
	for (uint32_t i = 0; i < count; i++)
		if (list[i] == label)
			return (int)i;
	return -1;
}

static void push_ellipsis(struct lth_einsum *e)
{
	for (uint32_t k = e->ellipsis; k-- > 0 && e->num_output < LTH_MAX_RANK;)
		e->output[e->num_output++] = (uint8_t)(LTH_EINSUM_ELLIPSIS + k);
}

static void parse_output(struct lth_einsum *e, const char *at, const char *end)
{
	for (; at < end && !e->fault; at++) {
		if (*at == ' ')
			continue;
		if (end - at >= 3 && memcmp(at, "...", 3) == 0) {
			push_ellipsis(e);
			at += 2;
		} else if (!isalpha((unsigned char)*at) || uses_of(e, (uint8_t)*at) == 0) {
			fail(e, "an output subscript that no input has");
		} else if (lth_einsum_place(e->output, e->num_output, (uint8_t)*at) >= 0) {
			fail(e, "an output subscript twice");
		} else {
			e->output[e->num_output++] = (uint8_t)*at;
		}
		if (e->num_output > LTH_MAX_RANK)
			fail(e, "more output axes than are implemented");
	}
}

/* Without an arrow: the broadcast axes, then the labels that occur once, in alphabetical order. */
static void imply_output(struct lth_einsum *e)
{
	push_ellipsis(e);
	for (int label = 'A'; label <= 'z' && e->num_output < LTH_MAX_RANK; label++)
		if (isalpha(label) && uses_of(e, (uint8_t)label) == 1)
			e->output[e->num_output++] = (uint8_t)label;
}

static void collect_reduced(struct lth_einsum *e)
{
	for (uint32_t i = 0; i < e->num_inputs; i++)
		for (uint32_t k = 0; k < e->inputs[i].rank; k++) {
			uint8_t label = e->inputs[i].labels[k];
			if (lth_einsum_place(e->output, e->num_output, label) >= 0 ||
			    lth_einsum_place(e->reduced, e->num_reduced, label) >= 0)
				continue;
			if (e->num_output + e->num_reduced == LTH_EINSUM_LABELS || e->num_reduced == LTH_MAX_RANK) {
				fail(e, "more subscripts than are implemented");
				return;
			}
			e->reduced[e->num_reduced++] = label;
		}
}

static void parse(struct lth_graph *graph, const struct lth_node *node, struct lth_einsum *e)
{
	const struct lth_string *equation = &lth_node_attr(node, "equation")->s;
	const char *at = equation->data, *end = at + equation->size;
	memset(e, 0, sizeof(*e));
	e->num_inputs = node->num_inputs;
	if (node->num_inputs > LTH_EINSUM_INPUTS)
		fail(e, "more inputs than are implemented");
	for (uint32_t i = 0; !e->fault && i < node->num_inputs; i++) {
		at = parse_term(e, at, end, i, graph->values[node->inputs[i]].type.rank);
		if (!e->fault && i + 1 < node->num_inputs && (at >= end || *at++ != ','))
			fail(e, "fewer terms than inputs");
	}
	if (e->fault)
		return;
	if (at < end && *at == ',')
		fail(e, "more terms than inputs");
	else if (at == end)
		imply_output(e);
	else if (end - at < 2 || at[1] != '>')
		fail(e, "a dash without an arrow");
	else
		parse_output(e, at + 2, end);
	if (!e->fault)
		collect_reduced(e);
}

/* The extent of a label: of all axes that bear it; broadcast axes may be 1. */
static enum lth_code label_extent(struct lth_infer *infer, const struct lth_einsum *e, uint8_t label, lth_dim *out)
{
	enum lth_code code = LTH_OK;
	uint32_t rank = 0;
	*out = LTH_DIM_NONE;
	for (uint32_t i = 0; !code && i < e->num_inputs; i++)
		for (uint32_t k = 0; !code && k < e->inputs[i].rank; k++) {
			lth_dim here;
			if (e->inputs[i].labels[k] != label)
				continue;
			here = lth_infer_dim(infer, i, k);
			code = lth_infer_broadcast(infer, out, &rank, &here, 1);
		}
	return code;
}

static enum lth_code build_product(struct lth_infer *infer)
{
	struct lth_einsum e;
	parse(infer->graph, infer->node, &e);
	return lth_einsum_build_product(infer, &e);
}

static enum lth_code infer_einsum(struct lth_infer *infer)
{
	struct lth_einsum e;
	lth_dim dims[LTH_MAX_RANK], ignored;
	parse(infer->graph, infer->node, &e);
	const struct lth_string *equation = &lth_node_attr(infer->node, "equation")->s;
	if (e.fault)
		return lth_infer_reject(infer, "an equation that fits the inputs", "%s in '%.*s'", e.fault,
					(int)equation->size, equation->data);
	enum lth_code code = LTH_OK;
	for (uint32_t i = 0; !code && i < e.num_output; i++)
		code = label_extent(infer, &e, e.output[i], &dims[i]);
	for (uint32_t i = 0; !code && i < e.num_reduced; i++)
		code = label_extent(infer, &e, e.reduced[i], &ignored);
	if (!code && !infer->graph->tentative && lth_einsum_is_product(infer, &e))
		return lth_build_expand(infer, build_product);
	return code ? code : lth_infer_output(infer, 0, LTH_NUM_DTYPES, e.num_output, dims);
}

/* The extent of a reduced label in a checked node: that of the axis that is not 1. */
static lth_dim reduced_extent(struct lth_lower *lower, const struct lth_node *node, const struct lth_einsum *e,
			      uint8_t label)
{
	struct lth_dims *dims = lth_lower_graph(lower)->dims;
	lth_dim one = lth_dim_const(dims, 1), result = one;
	for (uint32_t i = 0; i < e->num_inputs; i++)
		for (uint32_t k = 0; k < e->inputs[i].rank; k++)
			if (e->inputs[i].labels[k] == label) {
				lth_dim here = lth_extent_dim(lower, node->inputs[i], (int32_t)k);
				result = result == one ? here : here == one || here == result ? result
										: lth_dim_max(dims, result, here);
			}
	return result;
}

static enum lth_code einsum_reduction(struct lth_lower *lower, const struct lth_node *node, struct lth_reduction *out,
				      struct lth_diag *diag)
{
	(void)diag;
	struct lth_einsum e;
	parse(lth_lower_graph(lower), node, &e);
	out->num_axes = e.num_reduced;
	for (uint32_t i = 0; i < e.num_reduced; i++)
		out->extents[i] = reduced_extent(lower, node, &e, e.reduced[i]);
	out->row_axes = (1u << e.num_output) - 1;
	out->num_stages = 1;
	out->stages[0].combiner = LTH_COMBINE_SUM;
	out->stages[0].dtype = lth_compute_dtype(lth_value_dtype(lower, node->inputs[0]));
	return LTH_OK;
}

static lth_sx einsum_stage(struct lth_lower *lower, const struct lth_node *node, uint32_t stage, const lth_sx *index)
{
	(void)stage;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	struct lth_einsum e;
	lth_sx product = LTH_SX_NONE;
	parse(lth_lower_graph(lower), node, &e);
	for (uint32_t i = 0; i < e.num_inputs; i++) {
		lth_sx at[LTH_MAX_RANK];
		for (uint32_t k = 0; k < e.inputs[i].rank; k++) {
			int kept = lth_einsum_place(e.output, e.num_output, e.inputs[i].labels[k]);
			int reduced = lth_einsum_place(e.reduced, e.num_reduced, e.inputs[i].labels[k]);
			at[k] = kept >= 0 ? index[kept] : index[e.num_output + (uint32_t)reduced];
		}
		lth_sx x = lth_read_broadcast(lower, node->inputs[i], at, e.inputs[i].rank);
		product = product == LTH_SX_NONE ? x : lth_mul(pool, product, x);
	}
	return product;
}

static lth_sx einsum_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
			     const lth_sx *index)
{
	(void)output, (void)index;
	return lth_result(lower, node, 0, lth_compute_dtype(lth_value_dtype(lower, node->inputs[0])));
}

const struct lth_op_impl lth_impl_einsum = {
	.infer = infer_einsum, .element = einsum_element, .reduction = einsum_reduction, .stage = einsum_stage};
