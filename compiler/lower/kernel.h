/* What lowering makes of a group: a kernel in loop IR with its operands, ready for a CALL instruction and for codegen.
 * Thread rule: plain data of one compile. */
#ifndef LTH_LOWER_KERNEL_H
#define LTH_LOWER_KERNEL_H

#include "compiler/lower/access.h"
#include "compiler/lower/loop.h"
#include "compiler/lower/templates/pack.h"

/* What code may assume of the machine. */
struct lth_lower_target {
	unsigned vector_bytes; /* 16, 32 or 64 */
	unsigned registers;    /* vector registers: 16 or 32 */
	bool fma, dot4;
	int64_t l1_bytes, l2_bytes;
};

/* A constant in the form that a kernel wants, which it gets when the executable is written. */
struct lth_packed {
	const struct lth_pack *pack;
	const void *source; /* the constant's own bytes */
	int64_t bytes;	    /* packed */
};

struct lth_kernel_operand {
	lth_value_id value; /* LTH_NONE for a packed constant */
	struct lth_packed packed;
	bool written;
	bool in_place; /* read only at the element that is then written to operand 0, of the same width */
};

struct lth_kernel_spec {
	struct lth_loop_fn *fn;
	const char *description; /* for people */
	const char *node;        /* name of the node it is known by in errors and profiles */
	struct lth_kernel_operand *operands; /* one a pointer parameter */
	uint32_t num_operands;
	const lth_dim *ints; /* one an int parameter */
	uint32_t num_ints;
	lth_dim range;        /* units of parallel work */
	uint32_t grain;       /* fewest units worth a task of their own */
	lth_dim scratch_bytes; /* a thread; LTH_DIM_NONE: none */
	lth_dim flops; /* of its template; LTH_DIM_NONE: not known */
};

/* A group: nodes in order and the values that are needed outside of it. */
struct lth_lower_group {
	const lth_node_id *nodes;
	uint32_t num_nodes;
	const lth_value_id *outputs;
	uint32_t num_outputs;
};

/* Lowers a group to one kernel. `templates` false: every operator by its generic expression (opt_level 0 and 1).
 * LTH_UNSUPPORTED names the node and what about it is not implemented. group.c */
LTH_MUST_CHECK enum lth_code lth_lower_kernel(struct lth_graph *graph, const struct lth_access *accesses,
					      const struct lth_lower_group *group,
					      const struct lth_lower_target *target, bool templates,
					      struct lth_kernel_spec *out, struct lth_diag *diag);

/* True when output `output` of the node is a window on one of its inputs; `*out` tells which. view.c */
bool lth_lower_view(struct lth_graph *graph, const struct lth_access *accesses, lth_node_id node, uint32_t output,
		    struct lth_access *out);

#endif
