/* Inside of the ONNX importer. onnx_wire.c bounds what protobuf-c may be given, onnx_tensor.c and onnx_type.c turn
 * tensors and types, onnx_order.c orders nodes, onnx_functions.c finds and counts functions, onnx_graph.c walks graphs
 * and functions. */
#ifndef LTH_IMPORT_ONNX_INTERNAL_H
#define LTH_IMPORT_ONNX_INTERNAL_H

#include "compiler/import/importer.h"
#include "compiler/import/onnx.pb-c.h"
#include "runtime/base/id_table.h"

#include <string.h>

/* Names of one graph or function body; a graph inside a node sees those around it. */
struct lth_onnx_scope {
	const struct lth_onnx_scope *parent;
	struct lth_name_map values;
	struct lth_name_map ranks; /* that a graph declares for what its nodes give */
	lth_region_id region;
	unsigned depth; /* of the region */
};

/* Attributes that the caller of a function gave, or that the function presets. */
struct lth_onnx_call {
	const struct lth_attr *attrs;
	uint32_t num_attrs;
};

struct lth_onnx {
	struct lth_importer base;
	const Lth__Onnx__Model *model;
	struct lth_id_table functions; /* the model's, by hash of their names */
	/* the operator sets in force: the model's, or those of the function that is being inlined */
	Lth__Onnx__OpsetId *const *opsets;
	size_t num_opsets;
	const struct lth_onnx_call *call; /* NULL outside functions */
	const char *prefix;               /* of node names inside functions; "" outside */
	unsigned call_depth;
};

/* Structure of the bytes: nesting, lengths, field types; before anything is allocated. */
LTH_MUST_CHECK enum lth_code lth_onnx_check_wire(const uint8_t *bytes, size_t size, struct lth_diag *diag);

/* A tensor as a constant value; `name` overrides the tensor's own when not NULL. */
LTH_MUST_CHECK enum lth_code lth_onnx_tensor(struct lth_onnx *onnx, const Lth__Onnx__Tensor *tensor, const char *name,
					     lth_value_id *out);
LTH_MUST_CHECK enum lth_code lth_onnx_sparse(struct lth_onnx *onnx, const Lth__Onnx__SparseTensor *sparse,
					     const char *name, lth_value_id *out);
LTH_MUST_CHECK enum lth_code lth_onnx_type(struct lth_onnx *onnx, const Lth__Onnx__Type *type, const char *place,
					   enum lth_import_dims dims, struct lth_type *out);

/* The nodes' positions in an order in which definitions precede uses, the given order where that is one already. */
LTH_MUST_CHECK enum lth_code lth_onnx_order(struct lth_onnx *onnx, Lth__Onnx__Node *const *nodes, size_t count,
					    const uint32_t **out_order);
/* The constants, inputs, nodes and outputs of a graph into a region. */
LTH_MUST_CHECK enum lth_code lth_onnx_graph(struct lth_onnx *onnx, const Lth__Onnx__Graph *graph,
					    struct lth_onnx_scope *scope);
/* "ai.onnx" and none are the same: "". */
static inline const char *lth_onnx_domain(const char *domain)
{
	return !domain || strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

enum { LTH_ONNX_MAX_CALL_DEPTH = 32 };
/* Reads the model's functions, and counts what they write. onnx_functions.c */
LTH_MUST_CHECK enum lth_code lth_onnx_functions(struct lth_onnx *onnx);
/* The function of a node's name, with its index; NULL where the model has none. */
const Lth__Onnx__Function *lth_onnx_function(const struct lth_onnx *onnx, const Lth__Onnx__Node *node,
					     uint32_t *out_index);
/* A name for messages: a node's own, or that of its first output. */
const char *lth_onnx_node_place(const Lth__Onnx__Node *node);

#endif
