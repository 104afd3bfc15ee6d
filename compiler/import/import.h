/* Importers: bytes to graph. ONNX (protobuf) and Lathe's own JSON graph IR (api/graph.schema.json) give the same graph:
 * operators in their newest form, dimensions as symbols with ranges, constants as values. Nothing is inferred beyond
 * what an upgrade needs; lth_infer_graph comes next. Untrusted bytes: every fault is a code with a place.
 *
 * Thread rule: reentrant; the graph and all it refers to live in the arena, or in the model's and files' bytes, which
 * must outlive it. */
#ifndef LTH_IMPORT_H
#define LTH_IMPORT_H

#include "compiler/compile.h"
#include "compiler/ir/graph.h"

/* What a request says of a symbol; fields that are not given keep the defaults of LTH_IMPORT_DIM_DEFAULT. */
struct lth_import_dim {
	const char *name;
	int64_t min, max; /* inclusive; INT64_MAX: no bound */
	int64_t hint;     /* -1: the least allowed value */
	int64_t multiple;
};
#define LTH_IMPORT_DIM_DEFAULT {NULL, 1, INT64_MAX, -1, 1}

struct lth_import_options {
	const struct lth_import_dim *dims;
	size_t num_dims;
	bool symbolic; /* fixed dimensions of inputs become symbols too: `input[axis]`, from 0, the fixed value their hint */
};

/* LTH_INVALID_MODEL, LTH_UNSUPPORTED_OP (all missing operators in one message), LTH_UNSUPPORTED, LTH_MISSING_BLOB,
 * LTH_INVALID_OPTION (`dims` that name no symbol, or an empty range), LTH_OUT_OF_MEMORY, LTH_LIMIT_EXCEEDED. `options`
 * may be NULL. */
LTH_MUST_CHECK enum lth_code lth_import_onnx(const void *model, size_t size, const struct lth_compile_file *files,
					     size_t num_files, const struct lth_import_options *options,
					     struct lth_arena *arena, struct lth_graph **out_graph,
					     struct lth_diag *diag);
/* As above; malformed JSON and what does not fit the schema is LTH_INVALID_JSON with line:column. */
LTH_MUST_CHECK enum lth_code lth_import_json(const void *model, size_t size, const struct lth_compile_file *files,
					     size_t num_files, const struct lth_import_options *options,
					     struct lth_arena *arena, struct lth_graph **out_graph,
					     struct lth_diag *diag);

#endif
