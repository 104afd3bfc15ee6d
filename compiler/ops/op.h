/* Operators: one row each in ops.def; one entry each in a family file (elementwise.c, reduction.c, movement.c ...) with
 * check, inference and lowering together. Everything that text, parsers, checks and reference pages say of an operator
 * comes from its row. */
#ifndef LTH_OPS_OP_H
#define LTH_OPS_OP_H

#include "compiler/ir/graph.h"
#include "compiler/lower/lower.h"

/* How an operator is lowered and what may fuse with it (COMPILER.md, An operator's lowering). */
enum lth_op_kind {
	LTH_OP_ELEMENTWISE, /* output[i] from input[i] alone, broadcasting as numpy does */
	LTH_OP_INJECTIVE,   /* data movement: output[i] from a few computed places */
	LTH_OP_REDUCTION,   /* stages of reductions, then an element expression: sums, softmax, normalisations */
	LTH_OP_TEMPLATE,    /* matmul, convolution, pooling, recurrent cells: writes its own loops */
	LTH_OP_IRREGULAR,   /* a C kernel of the runtime */
	LTH_OP_CONTROL,     /* If, Loop, Scan: instructions of the program */
	LTH_OP_OBJECT,      /* sequences, optionals, maps: C kernels on objects */
	LTH_OP_COMPOSITE,   /* written as other nodes by inference; never seen afterwards */
	LTH_NUM_OP_KINDS
};

enum {
	LTH_OPF_COMMUTATIVE = 1 << 0,
	LTH_OPF_RANDOM = 1 << 1,   /* never folded, never merged */
	LTH_OPF_IN_PLACE = 1 << 2, /* the output may be written over an input of the same shape that dies there */
	LTH_OPF_VIEW = 1 << 3,     /* may be a view of its input: Reshape, Transpose, Slice, ... */
};

struct lth_infer; /* inference context of one node: compiler/ops/infer.h */
typedef enum lth_code (*lth_infer_fn)(struct lth_infer *infer);

/* The entry of a family file. Functions that do not apply to the operator's kind are NULL. */
struct lth_op_impl {
	lth_infer_fn infer;  /* checks; output types, shapes and contents */
	/* COMPOSITE, instead of all others: builds the nodes that stand for it (build.h). While the types of a loop
	 * around have not settled, they are built for their types and taken out again; one that cannot be built yet has
	 * `infer`, too, which gives types alone. */
	lth_infer_fn expand;
	lth_element_fn element;
	lth_reduction_fn reduction;
	lth_stage_fn stage;
	lth_problem_fn problem; /* TEMPLATE: for the templates; `reduction` and `stage` are the generic form */
	const char *builtin; /* IRREGULAR, OBJECT: the runtime's C kernel */
};

struct lth_op {
	const char *domain; /* "" is ai.onnx */
	const char *name;
	enum lth_op_kind kind;
	unsigned flags;
	uint32_t min_inputs, max_inputs; /* max UINT32_MAX: variadic */
	uint32_t min_outputs, max_outputs;
	const char *attrs; /* attribute schema, see ops.def */
	const char *types; /* type rule, see ops.def */
	const struct lth_op_impl *impl;
	const char *summary;
};

enum lth_op_id {
#define LTH_OP(id, ...) LTH_OP_ID_##id,
#include "compiler/ops/ops.def"
#undef LTH_OP
	LTH_NUM_OPS
};

extern const struct lth_op lth_ops[LTH_NUM_OPS];

static inline enum lth_op_id lth_op_id(const struct lth_op *op)
{
	return (enum lth_op_id)(op - lth_ops);
}

/* The operator, or NULL. The domains "" and "ai.onnx" are one. */
const struct lth_op *lth_op_find(const char *domain, const char *name);

const char *lth_op_kind_text(enum lth_op_kind kind);
/* docs/OPERATORS.md. reference.c */
void lth_op_reference(struct lth_buf *out);

/* The attribute's value, or its default from the operator's row. The attribute must be in the row's schema, with a
 * default if absent. */
int64_t lth_op_int(const struct lth_node *node, const char *name);
double lth_op_float(const struct lth_node *node, const char *name);
/* Whether a string attribute (or its default) is `text`. */
bool lth_op_string_is(const struct lth_node *node, const char *name, const char *text);

/* One attribute of a schema; texts are slices of the schema. */
struct lth_attr_rule {
	const char *name, *preset, *allowed; /* preset: the default, NULL for none; allowed: NULL for anything */
	size_t name_size, preset_size, allowed_size;
	enum lth_attr_kind kind;
	bool required;
};
/* Reads the rule at `*cursor` and moves on; false at the end. Start with lth_op's `attrs`. */
bool lth_attr_rule_next(const char **cursor, struct lth_attr_rule *out);
const char *lth_attr_kind_text(enum lth_attr_kind kind);

/* Checks and infers every node of the graph in order (regions included): fills types, shapes, contents; adds guards;
 * replaces composite operators by the nodes they stand for.
 * LTH_INVALID_GRAPH with node and rule; LTH_UNSUPPORTED for a type or attribute value that is not implemented. */
LTH_MUST_CHECK enum lth_code lth_infer_graph(struct lth_graph *graph, struct lth_diag *diag);
/* One node, after a pass made or changed it. */
LTH_MUST_CHECK enum lth_code lth_infer_node(struct lth_graph *graph, lth_node_id node, struct lth_diag *diag);

#endif
