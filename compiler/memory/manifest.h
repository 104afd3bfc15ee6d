/* Inside of ManifestAlloc, shared by manifest*.c. */
#ifndef LTH_MEMORY_MANIFEST_H
#define LTH_MEMORY_MANIFEST_H

#include "compiler/memory/memory.h"
#include "runtime/base/id_table.h"

struct lth_builder {
	const struct lth_manifest *input;
	struct lth_graph *graph;
	struct lth_program *program;
	struct lth_constants *constants;
	struct lth_diag *diag;
	uint32_t *symbol_map;  /* the graph's symbols to the program's */
	struct lth_dim_emitter emitter;
	struct lth_id_table pieces; /* of constants, by place in the compile's memory */
	uint32_t *kernel_of;   /* by number of the step: the program's, or LTH_NONE */
	uint32_t *operands, *ints; /* scratch for one call */
	uint32_t *storage_of;  /* by value: storage of a base, or LTH_NONE */
	uint32_t *tensor_of;   /* by value */
	uint32_t *output_of;   /* by base value: the main output that its storage is, or LTH_NONE */
	bool *bound;           /* by the program's symbol: it has a value where the list has come to */
	bool new_bounds;       /* since guards were looked at */
	bool *valued;          /* by expression: has_value was seen to be so */
	uint32_t cap_valued;
	bool *guarded;         /* by guard: it is in the list */
	bool *alive;           /* by storage: its ALLOC has been written */
	uint32_t cap_alive;
};

/* A dimension as an expression of the program. */
uint32_t lth_build_dim(struct lth_builder *builder, lth_dim dim);
/* The storage of a base value, and the tensor of any value; made at first use. LTH_NONE after an error. */
uint32_t lth_build_storage(struct lth_builder *builder, lth_value_id base);
/* Bytes of a value's dense shape (expression). */
uint32_t lth_build_bytes(struct lth_builder *builder, lth_value_id value);
/* Gives a base a storage of the pool that holds so many elements, known where it is allocated. */
void lth_build_pool(struct lth_builder *builder, lth_value_id base, lth_dim elements);
uint32_t lth_build_tensor(struct lth_builder *builder, lth_value_id value);
/* Bytes of the executable's constants, laid out as `pack` says (NULL: as they are). */
uint32_t lth_build_constant(struct lth_builder *builder, const void *data, const struct lth_pack *pack, int64_t bytes,
			    const char *name);
/* Writes the ALLOC of an arena or pool storage unless it is there. */
void lth_build_alloc(struct lth_builder *builder, uint32_t storage);
/* A fresh arena storage of `size` bytes (expression). */
uint32_t lth_build_scratch(struct lth_builder *builder, uint32_t size, const char *name);
enum lth_code lth_build_symbols(struct lth_builder *builder);
enum lth_code lth_build_region(struct lth_builder *builder, lth_region_id region);
enum lth_code lth_build_control(struct lth_builder *builder, const struct lth_node *node);
enum lth_code lth_build_builtin(struct lth_builder *builder, const struct lth_step *step);
/* BINDs of the data symbols that the value's elements are. manifest_builtin.c */
void lth_build_binds(struct lth_builder *builder, lth_value_id value);
/* Has every symbol of the dimension a value where the list has come to? */
bool lth_build_known(struct lth_builder *builder, lth_dim dim, uint32_t expr);
/* Notes that a symbol has a value from here on. */
void lth_build_bound(struct lth_builder *builder, uint32_t symbol);
/* GUARDs of a region whose symbols have values by now. */
void lth_build_guards(struct lth_builder *builder, lth_region_id region);

#endif
