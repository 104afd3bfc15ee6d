/* Graph IR: values, nodes and regions with 32-bit ids. One struct lth_graph holds a model; importers build it, graph
 * passes rewrite it, lowering reads it. Operators are in canonical form only: importers upgrade every old version of an
 * ONNX operator to its newest meaning (attributes that became inputs are inputs, and so on), so that later stages know
 * one form of each.
 *
 * Invariants (lth_graph_verify): every value has one definition (graph input, constant, node output or region input);
 * nodes of a region stand in an order in which definitions precede uses; a region may read the values of the regions
 * around it; a deleted node or value is never referred to.
 *
 * Thread rule: a graph is its compile's own; all memory is the arena's. No element pointer survives a call that may
 * append. */
#ifndef LTH_IR_GRAPH_H
#define LTH_IR_GRAPH_H

#include "compiler/ir/dim.h"
#include "runtime/base/arena.h"
#include "runtime/base/buf.h"
#include "runtime/base/diag.h"
#include "runtime/tensor/dtype.h"

typedef uint32_t lth_value_id;
typedef uint32_t lth_node_id;
typedef uint32_t lth_region_id;

struct lth_op; /* compiler/ops/op.h */

enum lth_type_kind { LTH_TYPE_TENSOR, LTH_TYPE_SEQUENCE, LTH_TYPE_OPTIONAL, LTH_TYPE_MAP, LTH_NUM_TYPE_KINDS };
#define LTH_RANK_UNKNOWN UINT32_MAX
#define LTH_RANK_NONE (UINT32_MAX - 1) /* of the elements of a sequence or optional that never has any */

/* Sequences, optionals and maps are scalars of element type OBJECT to all who look at storage only: handles. What they
 * hold is `element`, whose dims say what all elements have in common: LTH_DIM_NONE where they differ, or where only the
 * run knows. */
struct lth_type {
	enum lth_type_kind kind;
	enum lth_dtype dtype;           /* TENSOR: element type, LTH_NUM_DTYPES while unknown; others: OBJECT */
	uint32_t rank;                  /* TENSOR: at most LTH_MAX_RANK, or LTH_RANK_UNKNOWN; others: 0 */
	const lth_dim *dims;            /* TENSOR: rank entries */
	enum lth_dtype key;             /* MAP: I64 or STRING */
	const struct lth_type *element; /* SEQUENCE, OPTIONAL, MAP: of what */
};

/* Bytes of a constant: dense, row-major, little-endian; sub-byte types packed low half first; strings as an array of
 * struct lth_string. Owned by the arena or by the request's model bytes, which outlive the graph. */
struct lth_constant {
	const void *data;
	int64_t bytes;
	const char *digest; /* of a parsed text without the bytes: data is zeros; NULL otherwise */
};

/* What is known at compile time of a small integer, bool or floating-point tensor's elements, row-major. */
struct lth_contents {
	uint32_t count;
	const lth_dim *dims;   /* integer and bool tensors; else NULL */
	const lth_real *reals; /* floating-point tensors; else NULL */
};

enum lth_def_kind {
	LTH_DEF_NONE,
	LTH_DEF_INPUT,
	LTH_DEF_CONSTANT,
	LTH_DEF_NODE,
	LTH_DEF_REGION_INPUT,
	LTH_DEF_DELETED
};

struct lth_value {
	const char *name; /* unique in the graph, never empty */
	struct lth_type type;
	enum lth_def_kind def;
	uint32_t def_id;                     /* NODE: the node; REGION_INPUT: the region; INPUT: position */
	uint32_t def_index;                  /* NODE: which output; REGION_INPUT: which input */
	struct lth_constant constant;        /* CONSTANT only */
	const struct lth_contents *contents; /* NULL when nothing is known */
	uint32_t declared_rank;              /* what the model says that the rank will be; LTH_RANK_UNKNOWN: nothing */
	enum lth_dtype declared_dtype;       /* the same of a result's element type; LTH_NUM_DTYPES: nothing */
	/* Physical layout: axis `layout[i]` of the logical shape is i-th in memory, outermost first. NULL: row-major */
	const uint8_t *layout;
};

enum lth_attr_kind {
	LTH_ATTR_INT,
	LTH_ATTR_FLOAT,
	LTH_ATTR_STRING,
	LTH_ATTR_TENSOR, /* a constant value's id */
	LTH_ATTR_REGION,
	LTH_ATTR_TYPE,
	LTH_ATTR_INTS,
	LTH_ATTR_FLOATS,
	LTH_ATTR_STRINGS,
	LTH_NUM_ATTR_KINDS
};

struct lth_attr {
	const char *name;
	enum lth_attr_kind kind;
	uint32_t count; /* of list kinds; 1 otherwise */
	union {
		int64_t i;
		double f;
		struct lth_string s;
		uint32_t id; /* TENSOR: value; REGION: region */
		const struct lth_type *type;
		const int64_t *ints;
		const double *floats;
		const struct lth_string *strings;
	};
};

struct lth_node {
	const struct lth_op *op;
	const char *name; /* unique, never empty: importers name the nameless after their first output */
	lth_region_id region;
	uint32_t num_inputs, num_outputs, num_attrs;
	lth_value_id *inputs;  /* LTH_NONE: absent optional input */
	lth_value_id *outputs; /* LTH_NONE: an output nobody asked for */
	struct lth_attr *attrs;
	uint32_t group; /* set by FuseOps: nodes with one group number become one kernel; LTH_NONE before */
	bool deleted;
};

enum { LTH_MAX_REGION_DEPTH = 64, LTH_MAX_TYPE_DEPTH = 16 }; /* what recurses over regions and types counts on */
struct lth_region {
	lth_node_id parent; /* the node that holds it; LTH_NONE for the main region */
	lth_value_id *inputs, *outputs;
	lth_node_id *nodes; /* in order */
	uint32_t num_inputs, num_outputs, num_nodes;
	uint32_t cap_inputs, cap_outputs, cap_nodes;
};

/* A fact that must hold whenever its region runs and could not be decided: becomes a GUARD of the program. */
struct lth_guard {
	lth_region_id region;
	enum lth_relation relation; /* EQ, LE, DIVIDES of a and b */
	lth_dim a, b;
	const char *node; /* whose rule it is */
	const char *what; /* the rule in words */
};

/* a <= b at the shapes that a model is made for, though it runs without: where hints are chosen, they keep to it. */
struct lth_usual {
	lth_dim a, b;
};

/* Who binds a data symbol that stands for an element: the value must be in memory when the symbol is needed. */
struct lth_binding {
	uint32_t symbol;  /* its number */
	lth_value_id value;
	uint32_t element; /* row-major */
};

/* How many nodes of the model, as it was written, have an operator. */
struct lth_op_use {
	const char *name; /* with its domain, unless that is ai.onnx */
	uint32_t nodes;
};

struct lth_graph {
	struct lth_arena *arena;
	struct lth_dims *dims;
	const char *name;
	int64_t opset;               /* of ai.onnx in the model, for figures */
	struct lth_op_use *op_uses;  /* likewise; by first use */
	uint32_t num_op_uses, cap_op_uses;
	struct lth_value *values;
	struct lth_node *nodes;
	struct lth_region *regions; /* regions[0] is the main one: its inputs and outputs are the model's */
	struct lth_guard *guards;
	struct lth_binding *bindings;
	struct lth_usual *usual;
	uint32_t num_values, num_nodes, num_regions, num_guards, num_bindings, num_usual;
	uint32_t cap_values, cap_nodes, cap_regions, cap_guards, cap_bindings, cap_usual;
	uint32_t num_groups;
	uint32_t open_regions; /* that inference is in */
	uint64_t looks;        /* at regions: loops in loops are looked at again and again */
	uint32_t tentative;    /* loops around whose shapes have not settled: sizes from data get no bound yet */
	struct lth_graph_names *names; /* name tables of the building functions */
};

/* Building. Ids are LTH_NONE when the arena is exhausted (sticky; check lth_arena_ok once). Names are made unique by a
 * suffix where taken. */
struct lth_graph *lth_graph_create(struct lth_arena *arena);
lth_value_id lth_graph_value(struct lth_graph *graph, const char *name, const struct lth_type *type);
lth_value_id lth_graph_constant(struct lth_graph *graph, const char *name, enum lth_dtype dtype, uint32_t rank,
				const int64_t *shape, const void *data, int64_t bytes); /* data is borrowed */
lth_region_id lth_graph_region(struct lth_graph *graph, lth_node_id parent);
/* A new input of a region (region 0: of the model), and one more output. */
lth_value_id lth_graph_input(struct lth_graph *graph, lth_region_id region, const char *name,
			     const struct lth_type *type);
bool lth_graph_output(struct lth_graph *graph, lth_region_id region, lth_value_id value);
/* By name, or LTH_NONE. */
lth_value_id lth_graph_find_value(const struct lth_graph *graph, const char *name);
lth_node_id lth_graph_find_node(const struct lth_graph *graph, const char *name);
/* For passes that put one value in another's place. */
void lth_graph_exchange_names(struct lth_graph *graph, lth_value_id a, lth_value_id b);
/* Appends a node to the region (or inserts it before position `at` with _insert); copies the lists; outputs get their
 * definition set. */
lth_node_id lth_graph_node(struct lth_graph *graph, lth_region_id region, const struct lth_op *op, const char *name,
			   const lth_value_id *inputs, uint32_t num_inputs, const lth_value_id *outputs,
			   uint32_t num_outputs, const struct lth_attr *attrs, uint32_t num_attrs);
lth_node_id lth_graph_insert(struct lth_graph *graph, lth_region_id region, uint32_t at, const struct lth_op *op,
			     const char *name, const lth_value_id *inputs, uint32_t num_inputs,
			     const lth_value_id *outputs, uint32_t num_outputs, const struct lth_attr *attrs,
			     uint32_t num_attrs);
void lth_graph_guard(struct lth_graph *graph, const struct lth_guard *guard);
void lth_graph_usual(struct lth_graph *graph, lth_dim a, lth_dim b);
/* For whoever moves all nodes of one region into another. */
void lth_graph_move_guards(struct lth_graph *graph, lth_region_id from, lth_region_id to);
/* Where the least values leave the model without a shape, moves the hints that say no more than them. After inference. */
void lth_graph_settle_hints(struct lth_graph *graph);
/* Every use of `from`, in all regions and outputs, reads `to` instead, and symbols are bound by it. O(uses of all
 * nodes). */
void lth_graph_replace_uses(struct lth_graph *graph, lth_value_id from, lth_value_id to);
/* Marks a node deleted, with its outputs and all that its regions hold; takes it from its region at the next
 * lth_graph_compact. */
void lth_graph_delete_node(struct lth_graph *graph, lth_node_id node);
void lth_graph_clear_region(struct lth_graph *graph, lth_region_id region);
void lth_graph_compact(struct lth_graph *graph);              /* drops deleted nodes from region lists; ids stay */
uint32_t lth_graph_live_nodes(const struct lth_graph *graph); /* in all regions */

struct lth_type lth_type_tensor(struct lth_graph *graph, enum lth_dtype dtype, uint32_t rank, const lth_dim *dims);
/* A sequence, optional or map (with its key's type) of `element`, which is copied. */
struct lth_type lth_type_object(struct lth_graph *graph, enum lth_type_kind kind, enum lth_dtype key,
				const struct lth_type *element);
/* The type of elements that are of type a or b; false when they are of two kinds. `out` may be a or b. graph_type.c */
bool lth_type_join(struct lth_graph *graph, const struct lth_type *a, const struct lth_type *b, struct lth_type *out);
bool lth_type_equal(const struct lth_type *a, const struct lth_type *b);
bool lth_type_static(const struct lth_graph *graph, const struct lth_type *type, int64_t *out_shape); /* tensors */
lth_dim lth_type_elements(struct lth_graph *graph, const struct lth_type *type);
const struct lth_attr *lth_node_attr(const struct lth_node *node, const char *name); /* or NULL */
int64_t lth_node_int(const struct lth_node *node, const char *name, int64_t otherwise);
double lth_node_float(const struct lth_node *node, const char *name, double otherwise);
/* Borrowed text, NUL-terminated; `otherwise` if absent. */
const char *lth_node_string(const struct lth_node *node, const char *name, const char *otherwise);
bool lth_node_ints(const struct lth_node *node, const char *name, const int64_t **out, uint32_t *out_count);
/* Input `index` or LTH_NONE when absent or beyond the list. */
lth_value_id lth_node_input(const struct lth_node *node, uint32_t index);
/* The elements of a constant integer value as int64 (any integer or bool dtype), arena-owned; false if not constant. */
bool lth_value_const_ints(struct lth_graph *graph, lth_value_id value, const int64_t **out, uint32_t *out_count);
/* The elements of a constant floating-point or integer value as double; false if not constant. */
bool lth_value_const_floats(struct lth_graph *graph, lth_value_id value, const double **out, uint32_t *out_count);

/* The data symbol that stands for an element of the value in the course of the run; `min` is its least value. The same
 * one when asked again. LTH_DIM_NONE when the arena is exhausted. */
lth_dim lth_graph_element(struct lth_graph *graph, lth_value_id value, uint32_t element, int64_t min);
/* What bound symbols by `from` binds them by `to`, which holds the same elements. */
void lth_graph_rebind(struct lth_graph *graph, lth_value_id from, lth_value_id to);
/* True when lowering knows all elements without data of the run: no load, no dependence on who computes them. */
bool lth_contents_suffice(const struct lth_graph *graph, lth_value_id value);
bool lth_value_binds(const struct lth_graph *graph, lth_value_id value); /* a symbol, by any element */

LTH_MUST_CHECK enum lth_code lth_graph_verify(const struct lth_graph *graph, struct lth_diag *diag);
void lth_type_print(const struct lth_graph *graph, const struct lth_type *type, struct lth_buf *out);
/* Text form (docs/IR.md): print(parse(x)) == x. Large constants print as a digest of their bytes and keep their data
 * only with `with_data`, which prints all bytes in hex. */
void lth_graph_print(const struct lth_graph *graph, bool with_data, struct lth_buf *out);
LTH_MUST_CHECK enum lth_code lth_graph_parse(const char *text, size_t size, struct lth_arena *arena,
					     struct lth_graph **out_graph, struct lth_diag *diag);

#endif
