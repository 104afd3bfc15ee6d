/* What the importers share: drafts of nodes, the way from a draft to the graph, symbols from options, and scopes of
 * names. Both formats fill drafts; lth_importer_emit upgrades a draft to the newest form of its operator (upgrade.c),
 * finds the operator, and appends the node. Operators that Lathe lacks are collected and reported together. */
#ifndef LTH_IMPORT_IMPORTER_H
#define LTH_IMPORT_IMPORTER_H

#include "compiler/import/import.h"
#include "runtime/base/id_table.h"

/* A map from names to numbers; keys are borrowed. */
struct lth_name_entry {
	const char *name;
	uint32_t value;
};
struct lth_name_map {
	struct lth_id_table table; /* of places in entries */
	struct lth_name_entry *entries;
	uint32_t capacity;
};
/* False when the arena is exhausted. The name must not be in the map. */
bool lth_name_map_put(struct lth_name_map *map, struct lth_arena *arena, const char *name, uint32_t value);
uint32_t lth_name_map_get(const struct lth_name_map *map, const char *name); /* LTH_NONE when absent */

/* An operator that the model uses and Lathe lacks. */
struct lth_missing_op {
	const char *domain, *op, *first_node;
	int64_t version;
	uint32_t uses;
};

/* What the dimensions of a tensor's type mean. */
enum lth_import_dims {
	LTH_DIMS_INFERRED, /* nothing */
	LTH_DIMS_INPUT,    /* the model's symbols */
	LTH_DIMS_ELEMENT,  /* what all elements of a container have in common; else LTH_DIM_NONE */
};

struct lth_importer {
	struct lth_graph *graph;
	struct lth_arena *arena;
	struct lth_diag *diag;
	const struct lth_compile_file *files;
	size_t num_files;
	const struct lth_import_options *options;
	bool *dims_used; /* by position in options->dims */
	struct lth_missing_op *missing;
	uint32_t num_missing, cap_missing;
	struct lth_name_map missing_map, use_map;
	enum lth_code fault; /* of malformed input: LTH_INVALID_MODEL or LTH_INVALID_JSON */
	uint32_t num_nodes;
	bool early; /* infer each node as it is made */
};

/* A node before it is one. Lists grow in the importer's arena. */
struct lth_draft {
	const char *domain, *op, *name; /* domain "" is ai.onnx */
	int64_t version;                /* of the operator set it was written for */
	lth_value_id *inputs, *outputs; /* LTH_NONE: absent */
	struct lth_attr *attrs;
	uint32_t num_inputs, num_outputs, num_attrs;
	uint32_t cap_inputs, cap_outputs, cap_attrs;
	lth_region_id region;
};

LTH_MUST_CHECK enum lth_code lth_importer_begin(struct lth_importer *importer, struct lth_arena *arena,
						const struct lth_import_options *options, struct lth_diag *diag);
/* Reports missing operators, options that name nothing, and an exhausted arena; then verifies the graph. */
LTH_MUST_CHECK enum lth_code lth_importer_end(struct lth_importer *importer);
/* The dimension of a name that an input uses: a symbol with what the options say of it. */
LTH_MUST_CHECK enum lth_code lth_importer_symbol(struct lth_importer *importer, const struct lth_import_dim *preset,
						 lth_dim *out);
/* A node of the model as it is written: counts the use of its operator; and refuses an operator that the model's operator
 * set does not have yet. */
LTH_MUST_CHECK enum lth_code lth_importer_count(struct lth_importer *importer, const struct lth_draft *draft);
LTH_MUST_CHECK enum lth_code lth_importer_check_version(struct lth_importer *importer, const struct lth_draft *draft);
LTH_MUST_CHECK enum lth_code lth_importer_emit(struct lth_importer *importer, struct lth_draft *draft);
/* Of ai.onnx; what nodes of a JSON document without an opset mean. */
enum { LTH_NEWEST_OPSET = 28 };
/* Fails with what was found; `place` is the node or value. */
enum lth_code lth_importer_fail(struct lth_importer *importer, enum lth_code code, const char *place,
				const char *expected, const char *found_format, ...) LTH_PRINTF(5, 6);
enum lth_code lth_importer_memory(struct lth_importer *importer);
/* Nodes of a model, and calls of functions: those that call others can write any number. */
enum { LTH_IMPORT_MAX_NODES = 1000000 };
enum lth_code lth_importer_too_many(struct lth_importer *importer, const char *place);
LTH_MUST_CHECK enum lth_code lth_importer_one_more(struct lth_importer *importer, const char *place);
/* Graphs in nodes of graphs: what inference, passes and lowering recurse over. Operators that are written out add a few
 * levels to it (LTH_MAX_REGION_DEPTH). */
enum { LTH_IMPORT_MAX_GRAPH_DEPTH = 32 };
#define LTH_IMPORT_GRAPH_DEPTH_RULE "graphs nested at most 32 deep"
/* The bytes of a file of the request by name, or NULL. */
const struct lth_compile_file *lth_importer_file(const struct lth_importer *importer, const char *name);

bool lth_draft_input(struct lth_importer *importer, struct lth_draft *draft, lth_value_id value);
bool lth_draft_output(struct lth_importer *importer, struct lth_draft *draft, lth_value_id value);
bool lth_draft_attr(struct lth_importer *importer, struct lth_draft *draft, const struct lth_attr *attr);
struct lth_attr *lth_draft_find(const struct lth_draft *draft, const char *name); /* or NULL */
void lth_draft_drop(struct lth_draft *draft, const char *name);

/* upgrade.c: makes the draft the newest form of its operator; may emit other nodes before it, and after it by way of
 * emitting it itself: then draft->op becomes NULL. */
LTH_MUST_CHECK enum lth_code lth_upgrade(struct lth_importer *importer, struct lth_draft *draft);

/* Bytes of `count` elements, or LTH_INVALID_MODEL-like faults for shapes whose size overflows. */
LTH_MUST_CHECK enum lth_code lth_importer_tensor_bytes(struct lth_importer *importer, const char *place,
						       enum lth_dtype dtype, const int64_t *shape, uint32_t rank,
						       int64_t *out_count, int64_t *out_bytes);

#endif
