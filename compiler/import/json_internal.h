/* Inside of the JSON importer. Positions: jansson keeps none, so each reader carries the path to what it reads, and on
 * a fault json_locate.c finds the path's line and column in the text. */
#ifndef LTH_IMPORT_JSON_INTERNAL_H
#define LTH_IMPORT_JSON_INTERNAL_H

#include "compiler/import/importer.h"

#include <jansson.h>

/* One step from the document's root; on the stack of the reader. */
struct lth_json_path {
	const struct lth_json_path *parent; /* NULL: the root */
	const char *key;                    /* member of an object, or NULL */
	size_t index;                       /* element of an array */
};

struct lth_json_scope {
	const struct lth_json_scope *parent;
	struct lth_name_map values;
	lth_region_id region;
	unsigned depth;
};

struct lth_json {
	struct lth_importer base;
	const char *text;
	size_t size;
	const json_t *root;
	struct lth_name_map dims; /* names of the document's `dims` that an input uses */
};

/* "line:column" of the path's value in the text. */
void lth_json_locate(const char *text, size_t size, const struct lth_json_path *path, char *out, size_t out_size);

/* LTH_INVALID_JSON at the path. */
enum lth_code lth_json_fail(struct lth_json *json, const struct lth_json_path *path, const char *expected,
			    const char *found_format, ...) LTH_PRINTF(4, 5);
/* The object's members are among `names` (ending with NULL); anything else is a fault that names the nearest. */
LTH_MUST_CHECK enum lth_code lth_json_members(struct lth_json *json, const struct lth_json_path *path,
					      const json_t *object, const char *const *names);
/* Text without NUL that lives in the arena. */
LTH_MUST_CHECK enum lth_code lth_json_text(struct lth_json *json, const struct lth_json_path *path, const json_t *value,
					   const char **out);
LTH_MUST_CHECK enum lth_code lth_json_constant(struct lth_json *json, const struct lth_json_path *path,
					       const json_t *object, const char *name, lth_value_id *out);
/* The type of an input or of an element. */
LTH_MUST_CHECK enum lth_code lth_json_type(struct lth_json *json, const struct lth_json_path *path,
					   const json_t *object, const char *name, enum lth_import_dims dims,
					   struct lth_type *out);
/* Constants, inputs, nodes and outputs of a graph object into a region. */
LTH_MUST_CHECK enum lth_code lth_json_graph(struct lth_json *json, const struct lth_json_path *path,
					    const json_t *object, struct lth_json_scope *scope);
LTH_MUST_CHECK enum lth_code lth_json_node(struct lth_json *json, const struct lth_json_path *path,
					   const json_t *object, struct lth_json_scope *scope);
LTH_MUST_CHECK enum lth_code lth_json_define(struct lth_json *json, const struct lth_json_path *path,
					     struct lth_json_scope *scope, const char *name, lth_value_id value);
LTH_MUST_CHECK enum lth_code lth_json_resolve(struct lth_json *json, const struct lth_json_path *path,
					      const struct lth_json_scope *scope, const json_t *name,
					      lth_value_id *out);

#endif
