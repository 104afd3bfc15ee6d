/* Lowering: from a group of nodes to a kernel in loop IR. This header is what operators see: how an operator says what
 * its elements are. The contexts are opaque; lower_group.c drives them.
 *
 * An operator's family file (compiler/ops) gives `element` for elementwise and injective operators, and for reductions a
 * description of stages, `body` and `element`. Indices are logical: one i64 expression an axis of the value concerned.
 * Layout, fusion, vectors and threads are none of the operator's business. */
#ifndef LTH_LOWER_LOWER_H
#define LTH_LOWER_LOWER_H

#include "compiler/ir/graph.h"
#include "compiler/lower/expr.h"

struct lth_lower; /* the lowering of one group */

struct lth_graph *lth_lower_graph(struct lth_lower *lower);
struct lth_sx_pool *lth_lower_pool(struct lth_lower *lower);

/* The element of `value` at `index` (rank entries), in the value's compute type. Values produced inside the group are
 * evaluated in place; known contents and scalar constants become constants. Index must be in range. */
lth_sx lth_read(struct lth_lower *lower, lth_value_id value, const lth_sx *index);
/* Row-major linear index of `index` in the shape of `value`, and back. */
lth_sx lth_flatten_index(struct lth_lower *lower, lth_value_id value, const lth_sx *index);
void lth_unflatten_index(struct lth_lower *lower, lth_value_id value, lth_sx flat, lth_sx *out_index);
/* The same with numpy broadcasting from an output index of `rank` axes to the value's own shape. */
lth_sx lth_read_broadcast(struct lth_lower *lower, lth_value_id value, const lth_sx *index, uint32_t rank);
/* Input `input` of `node`, broadcast from the node's output index; LTH_SX_NONE when the input is absent. */
lth_sx lth_read_input(struct lth_lower *lower, const struct lth_node *node, uint32_t input, const lth_sx *index,
		      uint32_t rank);
/* Scalar (or one-element) input as an expression, whatever its rank. */
lth_sx lth_read_scalar(struct lth_lower *lower, lth_value_id value);
uint32_t lth_rank(struct lth_lower *lower, lth_value_id value);
/* Dimension `axis` (negative counts from the end) as an expression / as a dimension. */
lth_sx lth_extent(struct lth_lower *lower, lth_value_id value, int32_t axis);
lth_dim lth_extent_dim(struct lth_lower *lower, lth_value_id value, int32_t axis);
enum lth_dtype lth_value_dtype(struct lth_lower *lower, lth_value_id value); /* memory type */

/* Element of output `output` of an elementwise or injective node; of a reduction: the final expression, which may use
 * lth_sx_stage. */
typedef lth_sx (*lth_element_fn)(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
				 const lth_sx *index);

/* For `element` of a reduction or template: the result of stage `stage`, or, when a template computes the node, its
 * finished output `stage` (a convolution's sum, to which `element` adds the bias). */
lth_sx lth_result(struct lth_lower *lower, const struct lth_node *node, uint32_t stage, enum lth_dtype dtype);

enum lth_combiner {
	LTH_COMBINE_SUM,
	LTH_COMBINE_PROD,
	LTH_COMBINE_MIN,
	LTH_COMBINE_MAX,
	/* The result is the place (i64, row-major over the reduction axes) of the least or greatest term; of equal terms
	 * the first or last; a nan is taken for the least and the greatest. */
	LTH_COMBINE_ARGMIN_FIRST,
	LTH_COMBINE_ARGMIN_LAST,
	LTH_COMBINE_ARGMAX_FIRST,
	LTH_COMBINE_ARGMAX_LAST,
	LTH_NUM_COMBINERS
};

enum { LTH_MAX_STAGES = 4 };

/* A node as a reduction: for each row (a combination of the row axes of output 0) the stages run in order, each over the
 * same reduction axes; then `element` gives the row's outputs from the stages' results. The reduction axes are extents of
 * their own, not axes of an input, so that windows (convolution, pooling), inner products (MatMul, Einsum) and plain
 * sums are one form. A stage's index is the output's index followed by one entry a reduction axis.
 *
 * Sum over axis 1 of [a, b, c]: reduction axes {b}, stage index (i, k, r), all output axes are row axes. Softmax over the
 * last axis of [a, b]: reduction axes {b}, row axes {0}: the stages see LTH_SX_NONE at axis 1, the element sees both.
 * A second output has the first one's rank, and the same extent or 1 at each axis that is not a row axis (then it is
 * written once a row, its index 0 there). */
struct lth_reduction {
	uint32_t num_axes;               /* reduction axes, outermost first; 0: one term */
	lth_dim extents[LTH_MAX_RANK];   /* 0 is allowed: the stage's result is the combiner's neutral value */
	uint32_t row_axes;               /* bit a: axis a of output 0 tells rows apart */
	uint32_t num_stages;
	struct {
		enum lth_combiner combiner;
		enum lth_dtype dtype; /* of the terms: f32, f64, an integer type or bool */
	} stages[LTH_MAX_STAGES];
	/* A running reduction (CumSum): one stage, whose index is the output's alone, gives the term at that place; its
	 * result there combines all terms up to it along output axis `scan_axis`. `row_axes` and `extents` mean nothing. */
	bool scan;
	uint32_t scan_axis;
	bool scan_reverse, scan_exclusive; /* from the end; without the place's own term */
};

/* Says how `node` reduces; LTH_UNSUPPORTED with a reason otherwise. */
typedef enum lth_code (*lth_reduction_fn)(struct lth_lower *lower, const struct lth_node *node,
					  struct lth_reduction *out, struct lth_diag *diag);
/* What stage `stage` combines at `index` (output axes, then reduction axes); may use earlier stages. */
typedef lth_sx (*lth_stage_fn)(struct lth_lower *lower, const struct lth_node *node, uint32_t stage,
			       const lth_sx *index);

/* A template operator describes its problem (templates/template.h) and which values its operands are; false when no
 * template could take it. Strides come from lth_lower_strides. */
struct lth_problem;
struct lth_problem_values {
	lth_value_id x, w, r, bias, lengths, initial_h, initial_c, peepholes, x_zero, scales, w_zeros; /* LTH_NONE: absent */
};
typedef bool (*lth_problem_fn)(struct lth_lower *lower, const struct lth_node *node, struct lth_problem *out,
			       struct lth_problem_values *out_values);
/* Strides of a value in memory, elements, by logical axis. */
const lth_dim *lth_lower_strides(struct lth_lower *lower, lth_value_id value);

#endif
