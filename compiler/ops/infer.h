/* What the inference functions of operators stand on: one context a node, reading inputs and attributes, setting
 * outputs, and the rules that recur (axes, broadcasting, equal dimensions). Before an operator's own function runs, the
 * counts, attributes and element types of its row are checked (infer_check.c), so families look at shapes only.
 *
 * Shapes are dimension expressions. Contents of small tensors travel as dimensions (integers, bools) or reals (floats),
 * so that arithmetic on shapes leaves no node behind. What cannot be decided becomes a guard; a size that only data
 * knows becomes a data symbol. Thread rule: a context is its compile's own. */
#ifndef LTH_OPS_INFER_H
#define LTH_OPS_INFER_H

#include "compiler/ops/op.h"

enum { LTH_MAX_CONTENTS = 64 }; /* elements of a tensor whose contents are followed */

struct lth_infer {
	struct lth_graph *graph;
	struct lth_dims *dims;
	struct lth_diag *diag;
	lth_node_id id;
	const struct lth_node *node;              /* valid until the graph grows: composites refresh it */
	enum lth_dtype out_dtypes[LTH_MAX_RANK];  /* by the type rule; LTH_NUM_DTYPES where `?` */
	/* build.c: the first failure, where the composite stands in its region, the first node built for it. */
	enum lth_code failed;
	uint32_t at;
	lth_node_id first_built;
};

/* Errors, with the node as place. The first returns LTH_INVALID_GRAPH, the second LTH_UNSUPPORTED. */
enum lth_code lth_infer_reject(struct lth_infer *infer, const char *expected, const char *found, ...) LTH_PRINTF(3, 4);
enum lth_code lth_infer_unsupported(struct lth_infer *infer, const char *advice, const char *found, ...)
	LTH_PRINTF(3, 4);
const char *lth_infer_dim_text(struct lth_infer *infer, lth_dim dim);
const char *lth_infer_shape_text(struct lth_infer *infer, const struct lth_type *type);
/* LTH_OUT_OF_MEMORY: the arena of the compile gives no more. */
enum lth_code lth_infer_exhausted(struct lth_infer *infer);
/* "input 1 'weights'" for messages. */
const char *lth_infer_input_text(struct lth_infer *infer, uint32_t input);

/* Inputs. The type is NULL when the input is absent. */
const struct lth_type *lth_infer_type(const struct lth_infer *infer, uint32_t input);
uint32_t lth_infer_rank(const struct lth_infer *infer, uint32_t input);           /* 0 when absent */
lth_dim lth_infer_dim(const struct lth_infer *infer, uint32_t input, uint32_t axis);
enum lth_code lth_infer_need_rank(struct lth_infer *infer, uint32_t input, uint32_t min, uint32_t max);
/* A scalar, or a tensor of one element; absent ones pass. */
LTH_MUST_CHECK enum lth_code lth_infer_need_one(struct lth_infer *infer, uint32_t input);
/* Contents where known, else NULL. */
const lth_dim *lth_infer_ints(struct lth_infer *infer, uint32_t input, uint32_t *out_count);
const lth_real *lth_infer_reals(struct lth_infer *infer, uint32_t input, uint32_t *out_count);
/* Contents that the output's shape depends on. Where they are not known, each element becomes a data symbol of at least
 * `min`; that fails only when the number of elements is unknown or large. */
LTH_MUST_CHECK enum lth_code lth_infer_need_ints(struct lth_infer *infer, uint32_t input, int64_t min,
						 const lth_dim **out, uint32_t *out_count);
/* The same for what must be plain numbers at compile time (axes, ranks). */
LTH_MUST_CHECK enum lth_code lth_infer_need_consts(struct lth_infer *infer, uint32_t input, const int64_t **out,
						   uint32_t *out_count);
/* The contents of any value, as the lowering of an operator needs them again; NULL where unknown. */
const struct lth_contents *lth_value_contents(struct lth_graph *graph, lth_value_id value);

/* Outputs. An output nobody asked for is ignored. dtype LTH_NUM_DTYPES: by the type rule. */
LTH_MUST_CHECK enum lth_code lth_infer_output(struct lth_infer *infer, uint32_t output, enum lth_dtype dtype,
					      uint32_t rank, const lth_dim *dims);
/* An output of any type: one that another value has, or one that is no tensor. */
LTH_MUST_CHECK enum lth_code lth_infer_output_type(struct lth_infer *infer, uint32_t output,
						   const struct lth_type *type);
/* Output 0 with the shape of an input and the type of the rule. */
LTH_MUST_CHECK enum lth_code lth_infer_like(struct lth_infer *infer, uint32_t output, uint32_t input);
/* Known contents of an output; lists are copied; ignored when there are too many or one is LTH_DIM_NONE. */
void lth_infer_set_ints(struct lth_infer *infer, uint32_t output, const lth_dim *list, uint32_t count);
void lth_infer_set_reals(struct lth_infer *infer, uint32_t output, const lth_real *list, uint32_t count);
/* Whether an output may carry contents: integer, bool or float of few elements. */
bool lth_infer_wants_contents(const struct lth_infer *infer, uint32_t output, uint32_t *out_count);
/* Contents of output 0 as elements of input `input` at places `from` (-1: zero); one for one. */
void lth_infer_move_contents(struct lth_infer *infer, uint32_t input, const int32_t *from, uint32_t count);
/* The same where output 0's element at an index is input 0's at offset + index . strides. */
void lth_infer_walk_contents(struct lth_infer *infer, int64_t offset, const int64_t *strides);

/* Rules. */
LTH_MUST_CHECK enum lth_code lth_infer_axis(struct lth_infer *infer, int64_t axis, uint32_t rank, uint32_t *out);
/* The relation must hold: decided now, or a guard. */
LTH_MUST_CHECK enum lth_code lth_infer_require(struct lth_infer *infer, enum lth_relation relation, lth_dim a,
					       lth_dim b, const char *rule);
/* A number must not be 0. */
LTH_MUST_CHECK enum lth_code lth_infer_require_nonzero(struct lth_infer *infer, lth_dim dim, const char *rule);
/* a equals b or c. */
LTH_MUST_CHECK enum lth_code lth_infer_require_either(struct lth_infer *infer, lth_dim a, lth_dim b, lth_dim c,
						      const char *rule);
/* Equal dimensions; *out is the simpler of both. */
LTH_MUST_CHECK enum lth_code lth_infer_unify(struct lth_infer *infer, lth_dim a, lth_dim b, const char *rule,
					     lth_dim *out);
/* numpy broadcasting of `next` onto the shape in dims[*rank] (room for LTH_MAX_RANK). */
LTH_MUST_CHECK enum lth_code lth_infer_broadcast(struct lth_infer *infer, lth_dim *dims, uint32_t *rank,
						 const lth_dim *next, uint32_t next_rank);
/* At most one of these attributes is given. */
LTH_MUST_CHECK enum lth_code lth_infer_one_of(struct lth_infer *infer, const char *const *names, uint32_t count);
/* The axes that a list attribute names, if it is given: each of them once. */
LTH_MUST_CHECK enum lth_code lth_infer_axes_attr(struct lth_infer *infer, const char *name, uint32_t rank);
/* The element type that attribute `name` (a TensorProto.DataType) names. */
LTH_MUST_CHECK enum lth_code lth_infer_dtype_attr(struct lth_infer *infer, const char *name, enum lth_dtype *out);
/* A dimension that only data decides: the symbol "NODE.WHAT" in [0, bound], the same one when inferred again. */
lth_dim lth_infer_data_dim(struct lth_infer *infer, const char *what, lth_dim bound);

/* All nodes of a region in order; control flow calls it for its own regions. */
LTH_MUST_CHECK enum lth_code lth_infer_region(struct lth_graph *graph, lth_region_id region, struct lth_diag *diag);

/* lists.c: operands that are lists of a length which the model leaves open become lists of a known one. */
LTH_MUST_CHECK enum lth_code lth_infer_lists(struct lth_infer *infer);
/* Gives the ranks that a model declares of results to what comes before them and has the same. */
void lth_infer_declared_ranks(struct lth_graph *graph);

/* infer_check.c: counts, attributes and element types by the operator's row; fills out_dtypes. */
LTH_MUST_CHECK enum lth_code lth_infer_check(struct lth_infer *infer);
/* infer_shapes.c: the inputs' shapes by shapes.def. */
LTH_MUST_CHECK enum lth_code lth_infer_shapes(struct lth_infer *infer);
/* Whether a type belongs to a set of the table's type rules ("float|i32"). */
bool lth_dtype_in(enum lth_dtype dtype, const char *set);
bool lth_dtype_in_set(enum lth_dtype dtype, const char *set, size_t size);

/* Often used inference functions. */
enum lth_code lth_infer_same(struct lth_infer *infer); /* outputs like input 0; no contents */

#endif
