/* Building what a composite operator stands for. Each node is inferred as it is built, so an expansion can look at the
 * types of what it made. Errors stick: a builder returns LTH_NONE from the first failure on, and lth_build_expand
 * reports it. Thread rule: as infer.h. */
#ifndef LTH_OPS_BUILD_H
#define LTH_OPS_BUILD_H

#include "compiler/ops/infer.h"

static inline struct lth_attr lth_attr_int(const char *name, int64_t value)
{
	return (struct lth_attr){.name = name, .kind = LTH_ATTR_INT, .count = 1, .i = value};
}

static inline struct lth_attr lth_attr_float(const char *name, double value)
{
	return (struct lth_attr){.name = name, .kind = LTH_ATTR_FLOAT, .count = 1, .f = value};
}

/* The element type of a value that was built; f32 after a failure, which is reported anyhow. */
static inline enum lth_dtype lth_build_dtype(const struct lth_infer *infer, lth_value_id a)
{
	return infer->failed ? LTH_DTYPE_F32 : infer->graph->values[a].type.dtype;
}

/* Input `i` of the composite, LTH_NONE when absent. */
static inline lth_value_id lth_in(const struct lth_infer *infer, uint32_t i)
{
	return lth_node_input(infer->node, i);
}

/* Runs `expand` (a composite's own, or that of one form of an operator) and takes the node out of the graph. */
LTH_MUST_CHECK enum lth_code lth_build_expand(struct lth_infer *infer, lth_infer_fn expand);
/* The types of what the composite gives, and nothing else: what `expand` built is taken out again, since it may hold
 * sizes that a loop around has yet to change. */
LTH_MUST_CHECK enum lth_code lth_build_look(struct lth_infer *infer, lth_infer_fn expand);

/* A node of the operator with one output, before the composite; inputs LTH_NONE are absent. */
lth_value_id lth_build(struct lth_infer *infer, enum lth_op_id op, const lth_value_id *inputs, uint32_t num_inputs,
		       const struct lth_attr *attrs, uint32_t num_attrs);
/* The same with several outputs; those not wanted are LTH_NONE. */
void lth_build_many(struct lth_infer *infer, enum lth_op_id op, const lth_value_id *inputs, uint32_t num_inputs,
		    const struct lth_attr *attrs, uint32_t num_attrs, const bool *wanted, lth_value_id *outputs,
		    uint32_t num_outputs);
/* A node at the end of a region that a node to be built will have: it is inferred with that one. */
void lth_build_in(struct lth_infer *infer, lth_region_id region, enum lth_op_id op, const lth_value_id *inputs,
		  uint32_t num_inputs, const struct lth_attr *attrs, uint32_t num_attrs, lth_value_id *outputs,
		  uint32_t num_outputs);
lth_value_id lth_build1(struct lth_infer *infer, enum lth_op_id op, lth_value_id a);
lth_value_id lth_build2(struct lth_infer *infer, enum lth_op_id op, lth_value_id a, lth_value_id b);
/* Constants: of any type (data is copied), a 1-D tensor of i64, a scalar of a floating-point or integer type. */
lth_value_id lth_build_data(struct lth_infer *infer, enum lth_dtype dtype, uint32_t rank, const int64_t *shape,
				const void *data, size_t bytes);
lth_value_id lth_build_ints(struct lth_infer *infer, const int64_t *list, uint32_t count);
lth_value_id lth_build_scalar(struct lth_infer *infer, enum lth_dtype dtype, double value);
lth_value_id lth_build_cast(struct lth_infer *infer, lth_value_id a, enum lth_dtype dtype);
lth_value_id lth_build_select(struct lth_infer *infer, lth_value_id condition, lth_value_id a, lth_value_id b);
/* An axis's extent as an i64 scalar, and 0, 1, ... below one. */
lth_value_id lth_build_extent(struct lth_infer *infer, lth_value_id a, int64_t axis);
lth_value_id lth_build_count(struct lth_infer *infer, lth_value_id limit);
/* One behind the other along an axis; slices of an axis by index. */
lth_value_id lth_build_concat(struct lth_infer *infer, const lth_value_id *list, uint32_t count, int64_t axis);
lth_value_id lth_build_gather(struct lth_infer *infer, lth_value_id a, lth_value_id indices, int64_t axis);
/* Elements begin to end - 1 of an axis. */
lth_value_id lth_build_slice(struct lth_infer *infer, lth_value_id a, int64_t axis, int64_t begin, int64_t end);
/* Views. */
lth_value_id lth_build_reshape(struct lth_infer *infer, lth_value_id a, const int64_t *shape, uint32_t rank);
lth_value_id lth_build_reshape_like(struct lth_infer *infer, lth_value_id a, lth_value_id like);
lth_value_id lth_build_unsqueeze(struct lth_infer *infer, lth_value_id a, const int64_t *axes, uint32_t count);
lth_value_id lth_build_transpose(struct lth_infer *infer, lth_value_id a, const int64_t *perm, uint32_t rank);
/* A reduction (ReduceSum, ReduceMean, ...) over axes. */
lth_value_id lth_build_reduce(struct lth_infer *infer, enum lth_op_id op, lth_value_id a, const int64_t *axes,
			      uint32_t count, bool keep_dims);
/* `value` is output `output` of the composite. */
void lth_build_output(struct lth_infer *infer, uint32_t output, lth_value_id value);
bool lth_build_wants(const struct lth_infer *infer, uint32_t output);

#endif
