/* What rewriting passes share: a walk over all nodes in which definitions come before uses, use counts that stay right
 * while nodes change, and replacing one value by another in constant time (readers see it when the walk reaches them).
 *
 * A value that a region gives back is pinned: the model's outputs keep their names, and each output of a region keeps a
 * definition of its own inside the region. Replacing one turns its node into an Identity where a plain exchange would
 * break that. Thread rule: as the graph's. */
#ifndef LTH_PASSES_REWRITE_H
#define LTH_PASSES_REWRITE_H

#include "compiler/ops/op.h"

struct lth_rewrite {
	struct lth_graph *graph;
	struct lth_diag *diag;
	enum lth_code code;      /* the first failure; sticky */
	lth_region_id region;    /* where the walk is */
	uint32_t position;
	lth_node_id node;        /* the node being visited */
	uint32_t *uses;          /* by value: readings by nodes and region outputs */
	lth_value_id *forward;   /* by value: what stands for it, itself at first */
	bool *pinned;            /* by value: some region's output */
	uint32_t num_values, cap_uses, cap_forward, cap_pinned;
	uint32_t changes;
};

/* Visits one node, whose inputs are up to date. May change it, insert nodes before it, and replace its outputs. */
typedef void (*lth_visit_fn)(struct lth_rewrite *rewrite, lth_node_id node, void *context);

/* Calls `visit` for every live node of every region (of a control node's regions before the node itself), then takes
 * deleted nodes out of the lists. Returns what went wrong, or LTH_OK. */
LTH_MUST_CHECK enum lth_code lth_rewrite_run(struct lth_graph *graph, lth_visit_fn visit, void *context,
					     struct lth_diag *diag, uint32_t *out_changes);

/* All readers of `from` (an output of the visited node) will read `to`. A node without used outputs is deleted. False
 * if there was nothing to change: an Identity of `to` that only regions read. */
bool lth_rewrite_replace(struct lth_rewrite *rewrite, lth_value_id from, lth_value_id to);

/* A new node before the visited one, with one output whose type inference gives; named after the visited node and
 * `suffix`. Returns the output; LTH_NONE on failure (sticky). */
lth_value_id lth_rewrite_insert(struct lth_rewrite *rewrite, enum lth_op_id op, const char *suffix,
				const lth_value_id *inputs, uint32_t num_inputs, const struct lth_attr *attrs,
				uint32_t num_attrs);

/* The visited node becomes another operator with the same first output; further outputs must be unused. */
void lth_rewrite_become(struct lth_rewrite *rewrite, enum lth_op_id op, const lth_value_id *inputs,
			uint32_t num_inputs, const struct lth_attr *attrs, uint32_t num_attrs);

/* For a visited node that is about to be replaced altogether: output `index`, if pinned, is given back through an
 * Identity behind the node from now on, and pinned no more. False on failure (sticky). */
bool lth_rewrite_unpin(struct lth_rewrite *rewrite, uint32_t index);

/* The visited node is gone (its outputs have got another definition): its inputs have a reader less. */
void lth_rewrite_consumed(struct lth_rewrite *rewrite);

/* The nodes of a region of the visited node (already walked) move in front of it, into its own region. What the region
 * gave back is pinned no more. */
void lth_rewrite_inline(struct lth_rewrite *rewrite, lth_region_id region);

/* Input `index` of the visited node reads `to` from now on. */
void lth_rewrite_set_input(struct lth_rewrite *rewrite, uint32_t index, lth_value_id to);

/* New constants. `_constant` borrows data that lives as long as the graph (NULL: failure); `_scalar_f` rounds to the
 * element type, a float. */
lth_value_id lth_rewrite_constant(struct lth_rewrite *rewrite, const char *suffix, enum lth_dtype dtype,
				  uint32_t rank, const int64_t *shape, const void *data, int64_t bytes);
lth_value_id lth_rewrite_scalar_f(struct lth_rewrite *rewrite, const char *suffix, enum lth_dtype dtype, double value);

/* Questions that patterns ask. */
static inline struct lth_value *lth_rewrite_value(const struct lth_rewrite *rewrite, lth_value_id value)
{
	return &rewrite->graph->values[value];
}
/* The node that defines `value`, when it is an `op` and `value` its first output; else NULL. */
const struct lth_node *lth_producer(const struct lth_graph *graph, lth_value_id value, enum lth_op_id op);
/* The same, if moreover nothing but the reader reads it: it dies when the reader changes. */
const struct lth_node *lth_sole_producer(const struct lth_rewrite *rewrite, lth_value_id value, enum lth_op_id op);
/* True for a constant all of whose elements are one number (any shape with at least one element). */
bool lth_constant_number(struct lth_graph *graph, lth_value_id value, double *out);
/* True when both are tensors of one element type and certainly equal shapes. */
bool lth_same_type(const struct lth_graph *graph, lth_value_id a, lth_value_id b);
/* Element `index` of dense constant data as a double, and back (rounded to nearest even). Floating-point types of 16 to
 * 64 bits, to read also whole-byte integers and bool; false for others. reals.c */
bool lth_load_real(enum lth_dtype dtype, const void *data, int64_t index, double *out);
bool lth_store_real(enum lth_dtype dtype, void *data, int64_t index, double value);

#endif
