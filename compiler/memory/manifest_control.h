/* What the files of ManifestAlloc that write control flow share. */
#ifndef LTH_MEMORY_MANIFEST_CONTROL_H
#define LTH_MEMORY_MANIFEST_CONTROL_H

#include "compiler/memory/manifest.h"

enum lth_code lth_build_unsupported(struct lth_builder *builder, const struct lth_node *node, const char *what);
/* The graph's data symbol NODE.WHAT as a dimension and as the program's symbol; false when there is none. */
bool lth_build_find_symbol(struct lth_builder *builder, const struct lth_node *node, const char *what, lth_dim *out_dim,
			   uint32_t *out_symbol);
/* Instructions: one without operands; SET; COPY. */
void lth_build_plain(struct lth_builder *builder, enum lth_instr_op op, const char *node);
void lth_build_set(struct lth_builder *builder, uint32_t symbol, uint32_t value, const char *node);
void lth_build_copy(struct lth_builder *builder, uint32_t to, uint32_t from, const char *node);
/* GROW: the pool storage of a tensor holds so many bytes (expression). */
void lth_build_grow(struct lth_builder *builder, uint32_t tensor, uint32_t bytes, const char *node);
/* A dense tensor with the shape of `like` on a storage. */
uint32_t lth_build_dense_on(struct lth_builder *builder, lth_value_id like, uint32_t storage);
bool lth_same_dims(const struct lth_graph *graph, lth_value_id a, lth_value_id b);
/* Entry `index` of a list of integers, 0 where there is none. */
int64_t lth_control_entry(const struct lth_node *node, const char *name, uint32_t index);

enum lth_code lth_build_loop(struct lth_builder *builder, const struct lth_node *node);
enum lth_code lth_build_scan(struct lth_builder *builder, const struct lth_node *node);

#endif
