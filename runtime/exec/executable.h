/* A loaded executable: the verified program and what is worked out about it once, for all contexts.
 * Thread rule: immutable after loading; any number of contexts, each on its own thread, may share it. */
#ifndef LTH_EXEC_EXECUTABLE_H
#define LTH_EXEC_EXECUTABLE_H

#ifndef LATHE_LINKED
#define LATHE_LINKED /* declarations only: this is the other side of them */
#endif
#include "api/lathe.h"
#include "runtime/exec/image.h"
#include "runtime/program/program.h"
#include "runtime/tensor/value_type.h"

/* Ids of one kind in groups: those of group g are items[start[g] .. start[g + 1]). */
struct lth_groups {
	uint32_t *start, *items;
};

/* What a run checks of each dimension of each input, before anything else. */
struct lth_input_dim {
	uint32_t input, axis;
	uint32_t expr;   /* what the dimension must equal */
	uint32_t symbol; /* the symbol that it is, else LTH_NONE */
};

struct lathe_executable {
	const struct lathe_api *api; /* first: the functions of lathe.h call through it */
	struct lth_image image;
	struct lth_arena *arena;
	const struct lth_program *program;

	struct lth_input_dim *input_dims;
	uint32_t num_input_dims;
	uint32_t *shape_symbols; /* the INPUT symbols: their values are a shape signature */
	uint32_t num_shape_symbols;

	bool *shape_only; /* of each expression: it depends on no DATA symbol */
	bool *tensor_shape_only; /* of each tensor: extents and storage size are */
	struct lth_groups symbol_exprs;   /* of each DATA symbol: expressions over it, in order */
	struct lth_groups symbol_tensors; /* of each DATA symbol: tensors to check when it is bound */
	bool has_data_symbols;
	bool *guard_done; /* of each instruction: a GUARD that the signature has answered for all runs */
	bool *planned;    /* of each storage: an orientation places it */
	bool *allocated;  /* of each storage: some ALLOC begins it (passes leave storages behind that nothing uses) */
	uint32_t *swap_class;  /* of each storage (lth_program_swap_classes) */
	uint32_t *swapped_outputs, num_swapped_outputs; /* OUTPUT storages that swap with others */
	uint32_t max_tensors, max_ints; /* of an instruction */
	uint32_t max_depth;             /* of nested loops */

	struct lth_value_type *input_types; /* of each input that is an object */

	struct lathe_description description;
};

/* Decodes and verifies the program of an image, which must outlive the executable. */
LTH_MUST_CHECK enum lth_code lth_executable_load(const struct lth_image *image,
						 struct lathe_executable **out_executable, struct lth_diag *diag);
void lth_executable_unload(struct lathe_executable **executable);

/* The public description of a verified program, in its executable's arena. describe.c */
LTH_MUST_CHECK enum lth_code lth_executable_describe(struct lathe_executable *executable, struct lth_diag *diag);

/* Fills in an error of the public API from a diag. Returns the code. */
int lth_error_set(struct lathe_error *error, const struct lth_diag *diag);

#endif
