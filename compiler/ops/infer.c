/* Inference: the driver over nodes, and the helpers of infer.h but for contents (contents.c) and row checks
 * (infer_check.c). */
#include "compiler/ops/strings.h"
#include "compiler/ops/infer.h"

#include "compiler/ops/build.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- errors ---- */

static enum lth_code fail(struct lth_infer *infer, enum lth_code code, const char *expected, const char *advice,
			  const char *found, va_list args)
{
	char text[sizeof(infer->diag->found)];
	vsnprintf(text, sizeof(text), found, args);
	const struct lth_node *node = &infer->graph->nodes[infer->id];
	const char *place = lth_arena_printf(infer->graph->arena, "node '%s' (%s%s%s)", node->name, node->op->domain,
					     node->op->domain[0] ? "." : "", node->op->name);
	return lth_diag_fail(infer->diag, code, place ? place : node->name, expected, advice, "%s", text);
}

enum lth_code lth_infer_reject(struct lth_infer *infer, const char *expected, const char *found, ...)
{
	va_list args;
	va_start(args, found);
	enum lth_code code = fail(infer, LTH_INVALID_GRAPH, expected, NULL, found, args);
	va_end(args);
	return code;
}

enum lth_code lth_infer_unsupported(struct lth_infer *infer, const char *advice, const char *found, ...)
{
	va_list args;
	va_start(args, found);
	enum lth_code code = fail(infer, LTH_UNSUPPORTED, NULL, advice, found, args);
	va_end(args);
	return code;
}

enum lth_code lth_infer_exhausted(struct lth_infer *infer)
{
	return lth_diag_fail(infer->diag, LTH_OUT_OF_MEMORY, infer->graph->nodes[infer->id].name, NULL,
			     "raise the compile's memory limit", "the compile's memory is used up");
}

/* The buffer's text as an arena string. */
static const char *keep(struct lth_infer *infer, struct lth_buf *buf)
{
	const char *text = lth_arena_strdup(infer->graph->arena, lth_buf_text(buf));
	lth_buf_free(buf);
	return text ? text : "";
}

const char *lth_infer_dim_text(struct lth_infer *infer, lth_dim dim)
{
	struct lth_buf buf = {0};
	if (dim == LTH_DIM_NONE)
		lth_buf_puts(&buf, "?");
	else
		lth_dim_print(infer->dims, dim, &buf);
	return keep(infer, &buf);
}

const char *lth_infer_shape_text(struct lth_infer *infer, const struct lth_type *type)
{
	struct lth_buf buf = {0};
	lth_buf_putc(&buf, '[');
	for (uint32_t i = 0; type->rank != LTH_RANK_UNKNOWN && i < type->rank; i++) {
		if (i)
			lth_buf_puts(&buf, ", ");
		lth_dim_print(infer->dims, type->dims[i], &buf);
	}
	lth_buf_puts(&buf, type->rank == LTH_RANK_UNKNOWN ? "...]" : "]");
	return keep(infer, &buf);
}

const char *lth_infer_input_text(struct lth_infer *infer, uint32_t input)
{
	lth_value_id id = lth_node_input(infer->node, input);
	const char *text = lth_arena_printf(infer->graph->arena, "input %u '%s'", input,
					    id == LTH_NONE ? "" : infer->graph->values[id].name);
	return text ? text : "an input";
}

/* ---- inputs ---- */

const struct lth_type *lth_infer_type(const struct lth_infer *infer, uint32_t input)
{
	lth_value_id id = lth_node_input(infer->node, input);
	return id == LTH_NONE ? NULL : &infer->graph->values[id].type;
}

uint32_t lth_infer_rank(const struct lth_infer *infer, uint32_t input)
{
	const struct lth_type *type = lth_infer_type(infer, input);
	return type ? type->rank : 0;
}

lth_dim lth_infer_dim(const struct lth_infer *infer, uint32_t input, uint32_t axis)
{
	const struct lth_type *type = lth_infer_type(infer, input);
	assert(type && axis < type->rank);
	return type->dims[axis];
}

enum lth_code lth_infer_need_one(struct lth_infer *infer, uint32_t input)
{
	const struct lth_type *type = lth_infer_type(infer, input);
	lth_dim one = lth_dim_const(infer->dims, 1);
	lth_dim elements = type ? lth_type_elements(infer->graph, type) : one;
	if (lth_dim_equal(infer->dims, elements, one) != LTH_NO)
		return lth_infer_require(infer, LTH_REL_EQ, elements, one, "one element");
	return lth_infer_reject(infer, "one element", "%s has shape %s", lth_infer_input_text(infer, input),
				lth_infer_shape_text(infer, type));
}

enum lth_code lth_infer_need_rank(struct lth_infer *infer, uint32_t input, uint32_t min, uint32_t max)
{
	uint32_t rank = lth_infer_rank(infer, input);
	if (rank >= min && rank <= max)
		return LTH_OK;
	struct lth_arena *arena = infer->graph->arena;
	const char *expected = min == max             ? lth_arena_printf(arena, "rank %u", min)
			     : max >= LTH_MAX_RANK    ? lth_arena_printf(arena, "rank %u or more", min)
						      : lth_arena_printf(arena, "rank %u to %u", min, max);
	return lth_infer_reject(infer, expected, "%s has rank %u", lth_infer_input_text(infer, input), rank);
}

/* ---- outputs ---- */

enum lth_code lth_infer_output(struct lth_infer *infer, uint32_t output, enum lth_dtype dtype, uint32_t rank,
			       const lth_dim *dims)
{
	if (output >= infer->node->num_outputs || infer->node->outputs[output] == LTH_NONE)
		return LTH_OK;
	if (dtype == LTH_NUM_DTYPES)
		dtype = infer->out_dtypes[output < LTH_MAX_RANK ? output : LTH_MAX_RANK - 1];
	assert(dtype != LTH_NUM_DTYPES);
	if (rank > LTH_MAX_RANK)
		return lth_infer_unsupported(infer, NULL, "output %u has rank %u; ranks above %d are not implemented",
					     output, rank, LTH_MAX_RANK);
	for (uint32_t i = 0; i < rank; i++) {
		int64_t min, max;
		if (dims[i] == LTH_DIM_NONE)
			return lth_infer_reject(infer, NULL, "axis %u of output %u has a size that overflows 64 bits",
						i, output);
		lth_dim_range(infer->dims, dims[i], &min, &max);
		if (max < 0)
			return lth_infer_reject(infer, "0 or more", "axis %u of output %u has size %s", i, output,
						lth_infer_dim_text(infer, dims[i]));
	}
	lth_dim sizes[LTH_MAX_RANK];
	for (uint32_t i = 0; i < rank; i++) /* what follows multiplies sizes */
		sizes[i] = lth_dim_depends_on_data(infer->dims, dims[i]) ? lth_dim_opaque(infer->dims, dims[i]) : dims[i];
	struct lth_value *value = &infer->graph->values[infer->node->outputs[output]];
	if (value->layout && value->type.rank != rank) /* that a text declared with another rank */
		value->layout = NULL;
	value->type = lth_type_tensor(infer->graph, dtype, rank, sizes);
	return LTH_OK;
}

enum lth_code lth_infer_output_type(struct lth_infer *infer, uint32_t output, const struct lth_type *type)
{
	if (type->kind == LTH_TYPE_TENSOR)
		return lth_infer_output(infer, output, type->dtype, type->rank, type->dims);
	if (output < infer->node->num_outputs && infer->node->outputs[output] != LTH_NONE)
		infer->graph->values[infer->node->outputs[output]].type = *type;
	return LTH_OK;
}

enum lth_code lth_infer_like(struct lth_infer *infer, uint32_t output, uint32_t input)
{
	const struct lth_type *type = lth_infer_type(infer, input);
	return lth_infer_output(infer, output, LTH_NUM_DTYPES, type->rank, type->dims);
}

enum lth_code lth_infer_same(struct lth_infer *infer)
{
	for (uint32_t i = 0; i < infer->node->num_outputs; i++) {
		enum lth_code code = lth_infer_like(infer, i, 0);
		if (code)
			return code;
	}
	return LTH_OK;
}

/* ---- rules ---- */

enum lth_code lth_infer_axis(struct lth_infer *infer, int64_t axis, uint32_t rank, uint32_t *out)
{
	int64_t count = (int64_t)rank;
	if (axis < -count || axis >= count)
		return lth_infer_reject(infer,
					lth_arena_printf(infer->graph->arena, "in [%d, %d)", -(int)rank, (int)rank),
					"axis %lld", (long long)axis);
	*out = (uint32_t)(axis < 0 ? axis + count : axis);
	return LTH_OK;
}

static enum lth_truth decide(struct lth_infer *infer, enum lth_relation relation, lth_dim a, lth_dim b)
{
	switch (relation) {
	case LTH_REL_EQ:
		return lth_dim_equal(infer->dims, a, b);
	case LTH_REL_LE:
		return lth_dim_le(infer->dims, a, b);
	default:
		return lth_dim_divides(infer->dims, a, b);
	}
}

enum lth_code lth_infer_require(struct lth_infer *infer, enum lth_relation relation, lth_dim a, lth_dim b,
				const char *rule)
{
	struct lth_graph *graph = infer->graph;
	if (a == LTH_DIM_NONE || b == LTH_DIM_NONE)
		return lth_infer_reject(infer, rule, "a size overflows 64 bits");
	enum lth_truth truth = decide(infer, relation, a, b);
	if (truth == LTH_YES)
		return LTH_OK;
	if (truth == LTH_NO)
		return lth_infer_reject(infer, rule, "%s and %s", lth_infer_dim_text(infer, a),
					lth_infer_dim_text(infer, b));
	const struct lth_node *node = &graph->nodes[infer->id];
	if (graph->tentative)
		return LTH_OK; /* of sizes that a loop may change; said again when they have settled */
	lth_graph_guard(graph, &(struct lth_guard){
				       .region = node->region, .relation = relation, .a = a, .b = b, .node = node->name, .what = rule});
	return LTH_OK;
}

/* The square of its sign, so that nothing overflows, is at least 1. */
enum lth_code lth_infer_require_nonzero(struct lth_infer *infer, lth_dim dim, const char *rule)
{
	struct lth_dims *dims = infer->dims;
	lth_dim one = lth_dim_const(dims, 1), minus = lth_dim_const(dims, -1);
	lth_dim sign = lth_dim_max(dims, minus, lth_dim_min(dims, one, dim));
	return lth_infer_require(infer, LTH_REL_LE, one, lth_dim_mul(dims, sign, sign), rule);
}

enum lth_code lth_infer_require_either(struct lth_infer *infer, lth_dim a, lth_dim b, lth_dim c, const char *rule)
{
	struct lth_dims *dims = infer->dims;
	enum lth_truth first = lth_dim_equal(dims, a, b), second = lth_dim_equal(dims, a, c);
	if (first == LTH_YES || second == LTH_YES)
		return LTH_OK;
	if (first == LTH_NO || second == LTH_NO)
		return lth_infer_require(infer, LTH_REL_EQ, a, second == LTH_NO ? b : c, rule);
	lth_dim product = lth_dim_mul(dims, lth_dim_sub(dims, a, b), lth_dim_sub(dims, a, c));
	return lth_infer_require(infer, LTH_REL_EQ, product, lth_dim_const(dims, 0), rule);
}

enum lth_code lth_infer_unify(struct lth_infer *infer, lth_dim a, lth_dim b, const char *rule, lth_dim *out)
{
	enum lth_code code = lth_infer_require(infer, LTH_REL_EQ, a, b, rule);
	if (code)
		return code;
	/* A constant is the simplest, then what is older. */
	bool b_simpler = lth_dim_is_const(infer->dims, b, NULL) || (!lth_dim_is_const(infer->dims, a, NULL) && b < a);
	*out = b_simpler ? b : a;
	return LTH_OK;
}

/* One axis of two broadcast shapes. A dimension that may or may not be 1 stays a maximum, with the guard that
 * (a - b)(a - 1)(b - 1) is zero: equal, or one of them 1. */
static enum lth_code broadcast_axis(struct lth_infer *infer, lth_dim a, lth_dim b, lth_dim *out)
{
	struct lth_dims *dims = infer->dims;
	lth_dim one = lth_dim_const(dims, 1), zero = lth_dim_const(dims, 0);
	if (a == b || b == one) {
		*out = a;
		return LTH_OK;
	}
	if (a == one) {
		*out = b;
		return LTH_OK;
	}
	const char *rule = "sizes that agree or are 1";
	int64_t a_min, a_max, b_min, b_max;
	lth_dim_range(dims, a, &a_min, &a_max);
	lth_dim_range(dims, b, &b_min, &b_max);
	bool a_one = a_min <= 1 && lth_dim_equal(dims, a, one) != LTH_NO;
	bool b_one = b_min <= 1 && lth_dim_equal(dims, b, one) != LTH_NO;
	if (!a_one && !b_one)
		return lth_infer_unify(infer, a, b, rule, out);
	lth_dim product = lth_dim_sub(dims, a, b);
	if (a_one)
		product = lth_dim_mul(dims, product, lth_dim_sub(dims, a, one));
	if (b_one)
		product = lth_dim_mul(dims, product, lth_dim_sub(dims, b, one));
	*out = !a_one ? a : !b_one ? b : lth_dim_max(dims, a, b);
	if (a_one && b_one && (a_min <= 0 || b_min <= 0)) { /* 0 with 1 is 0 */
		lth_dim least = lth_dim_min(dims, a, b);
		*out = lth_dim_mul(dims, *out, lth_dim_min(dims, one, least));
	}
	return lth_infer_require(infer, LTH_REL_EQ, product, zero, rule);
}

enum lth_code lth_infer_broadcast(struct lth_infer *infer, lth_dim *dims, uint32_t *rank, const lth_dim *next,
				  uint32_t next_rank)
{
	if (next_rank > *rank) {
		uint32_t shift = next_rank - *rank;
		memmove(dims + shift, dims, *rank * sizeof(*dims));
		for (uint32_t i = 0; i < shift; i++)
			dims[i] = lth_dim_const(infer->dims, 1);
		*rank = next_rank;
	}
	for (uint32_t i = 0; i < next_rank; i++) {
		lth_dim *axis = &dims[*rank - next_rank + i];
		enum lth_code code = broadcast_axis(infer, *axis, next[i], axis);
		if (code)
			return code;
	}
	return LTH_OK;
}

enum lth_code lth_infer_one_of(struct lth_infer *infer, const char *const *names, uint32_t count)
{
	const char *given = NULL;
	for (uint32_t i = 0; i < count; i++) {
		const struct lth_attr *attr = lth_node_attr(infer->node, names[i]);
		if (!attr || attr->count == 0)
			continue;
		if (given)
			return lth_infer_reject(infer, "one of them", "attributes '%s' and '%s'", given, names[i]);
		given = names[i];
	}
	return LTH_OK;
}

enum lth_code lth_infer_axes_attr(struct lth_infer *infer, const char *name, uint32_t rank)
{
	const int64_t *list;
	uint32_t count, axis, seen = 0;
	if (!lth_node_ints(infer->node, name, &list, &count))
		return LTH_OK;
	for (uint32_t k = 0; k < count; k++) {
		enum lth_code code = lth_infer_axis(infer, list[k], rank, &axis);
		if (!code && seen & 1u << axis)
			code = lth_infer_reject(infer, "each axis once", "axis %lld twice", (long long)list[k]);
		if (code)
			return code;
		seen |= 1u << axis;
	}
	return LTH_OK;
}

enum lth_code lth_infer_dtype_attr(struct lth_infer *infer, const char *name, enum lth_dtype *out)
{
	int64_t number = lth_op_int(infer->node, name);
	enum lth_dtype dtype = number < 0 || number > INT32_MAX ? LTH_NUM_DTYPES : lth_dtype_by_onnx((int)number);
	if (dtype == LTH_NUM_DTYPES)
		return lth_infer_reject(infer, "an element type's number", "attribute '%s' is %lld", name,
					(long long)number);
	*out = dtype;
	return LTH_OK;
}

lth_dim lth_infer_data_dim(struct lth_infer *infer, const char *what, lth_dim bound)
{
	const struct lth_node *node = &infer->graph->nodes[infer->id];
	int64_t top = INT64_MAX, low;
	if (infer->graph->tentative)
		bound = LTH_DIM_NONE;
	if (bound != LTH_DIM_NONE)
		lth_dim_range(infer->dims, bound, &low, &top);
	lth_dim dim = lth_dim_symbol(infer->dims,
			      &(struct lth_dim_symbol){
				      .name = lth_arena_printf(infer->graph->arena, "%s.%s", node->name, what),
				      .min = 0,
				      .max = top,
				      .multiple = 1,
				      .hint = top == INT64_MAX ? 1 : top,
				      .from_data = true,
				      .node = node->name,
				      .bound = bound,
			      });
	lth_dim_tighten(infer->dims, dim, bound, top); /* it may be known from before shapes settled */
	return dim;
}

/* ---- the driver ---- */

#define GIVE_SHAPES "give the model's inputs a shape, or name it in the request"

/* Ranks must be known before an operator looks at shapes: nothing here guesses them. */
static enum lth_code check_ranks(struct lth_infer *infer)
{
	for (uint32_t i = 0; i < infer->node->num_inputs; i++) {
		const struct lth_type *type = lth_infer_type(infer, i);
		if (type && type->kind == LTH_TYPE_TENSOR && type->rank == LTH_RANK_UNKNOWN)
			return lth_infer_unsupported(infer, GIVE_SHAPES, "%s has no known rank",
						     lth_infer_input_text(infer, i));
	}
	return LTH_OK;
}

static enum lth_code check_outputs(struct lth_infer *infer)
{
	for (uint32_t i = 0; i < infer->node->num_outputs; i++) {
		lth_value_id id = infer->node->outputs[i];
		if (id == LTH_NONE)
			continue;
		const struct lth_type *type = &infer->graph->values[id].type;
		assert(type->kind != LTH_TYPE_TENSOR || type->rank != LTH_RANK_UNKNOWN);
	}
	if (!lth_arena_ok(infer->graph->arena))
		return lth_infer_exhausted(infer);
	return LTH_OK;
}

enum lth_code lth_infer_node(struct lth_graph *graph, lth_node_id id, struct lth_diag *diag)
{
	struct lth_infer infer = {.graph = graph, .dims = graph->dims, .diag = diag, .id = id,
				  .node = &graph->nodes[id]};
	if (!lth_arena_ok(graph->arena))
		return lth_infer_exhausted(&infer);
	const struct lth_op *op = infer.node->op;
	enum lth_code code = lth_infer_check(&infer);
	if (!code)
		code = check_ranks(&infer);
	if (!code)
		code = lth_infer_shapes(&infer);
	if (!code)
		code = lth_infer_lists(&infer);
	if (code)
		return code;
	if (op->impl->expand && !graph->tentative)
		return lth_build_expand(&infer, op->impl->expand);
	if (op->impl->infer)
		code = op->impl->infer(&infer);
	else if (op->impl->expand)
		code = lth_build_look(&infer, op->impl->expand);
	else
		code = lth_infer_unsupported(&infer, NULL, "shape inference of %s is not implemented", op->name);
	return code || graph->nodes[id].deleted ? code : check_outputs(&infer); /* some forms are expanded too */
}

/* Nodes may be inserted before the one at hand by composites, never behind it. */
static enum lth_code infer_nodes(struct lth_graph *graph, lth_region_id region, struct lth_diag *diag)
{
	for (uint32_t at = 0; at < graph->regions[region].num_nodes; at++) {
		lth_node_id id = graph->regions[region].nodes[at];
		if (graph->nodes[id].deleted)
			continue;
		enum lth_code code = lth_infer_node(graph, id, diag);
		if (code)
			return code;
		while (graph->regions[region].nodes[at] != id)
			at++;
	}
	return LTH_OK;
}

/* Each loop looks at its body until the types of what it carries settle: in loops that nest deep, times without end. */
static bool looks_too_often(struct lth_graph *graph)
{
	enum { LOOKS = 1 << 16, LOOKS_A_REGION = 16 };
	return graph->looks++ > LOOKS + (uint64_t)LOOKS_A_REGION * graph->num_regions;
}

enum lth_code lth_infer_region(struct lth_graph *graph, lth_region_id region, struct lth_diag *diag)
{
	if (graph->open_regions > LTH_MAX_REGION_DEPTH || looks_too_often(graph))
		return lth_diag_fail(diag, LTH_LIMIT_EXCEEDED, "graph",
				     "regions at most 64 deep, and loops in loops that keep the shapes they carry", NULL,
				     "regions whose inference does not come to an end");
	graph->open_regions++;
	enum lth_code code = infer_nodes(graph, region, diag);
	graph->open_regions--;
	return code;
}

/* The model's results are of the element types that it declares. Its shapes are not held against it: real models keep
 * those of the sizes they were exported with. */
static enum lth_code check_results(const struct lth_graph *graph, struct lth_diag *diag)
{
	for (uint32_t k = 0; k < graph->regions[0].num_outputs; k++) {
		const struct lth_value *value = &graph->values[graph->regions[0].outputs[k]];
		if (value->type.kind == LTH_TYPE_TENSOR && value->declared_dtype != LTH_NUM_DTYPES &&
		    value->declared_dtype != value->type.dtype)
			return lth_diag_fail(diag, LTH_INVALID_GRAPH, value->name, lth_dtype_text(value->type.dtype),
					     "correct the model's declaration", "the result is declared as %s",
					     lth_dtype_text(value->declared_dtype));
	}
	return LTH_OK;
}

/* Those that no node reads: what nodes read they check themselves. */
static enum lth_code check_inputs(const struct lth_graph *graph, struct lth_diag *diag)
{
	for (uint32_t k = 0; k < graph->regions[0].num_inputs; k++) {
		const struct lth_value *value = &graph->values[graph->regions[0].inputs[k]];
		if (value->type.kind == LTH_TYPE_TENSOR && value->type.rank == LTH_RANK_UNKNOWN)
			return lth_diag_fail(diag, LTH_UNSUPPORTED, value->name, "an input of known rank",
					     GIVE_SHAPES, "an input without a shape");
	}
	return LTH_OK;
}

enum lth_code lth_infer_graph(struct lth_graph *graph, struct lth_diag *diag)
{
	graph->looks = 0;
	lth_infer_declared_ranks(graph);
	enum lth_code code = lth_strings_to_tables(graph, diag);
	if (!code)
		code = lth_infer_region(graph, 0, diag);
	if (!code)
		code = check_inputs(graph, diag);
	if (!code)
		code = check_results(graph, diag);
	if (!code)
		lth_graph_compact(graph);
	return code;
}
