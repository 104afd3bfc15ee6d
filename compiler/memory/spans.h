/* Where storages of a program begin and are used, for the passes that rewrite it. spans.c */
#ifndef LTH_MEMORY_SPANS_H
#define LTH_MEMORY_SPANS_H

#include "runtime/program/program.h"

struct lth_spans {
	uint32_t *born;   /* by storage: its ALLOC; LTH_NONE: none; num_instrs: several */
	uint32_t *last;   /* by storage: the last instruction that mentions it; num_instrs: an output of the program */
	uint32_t *opener; /* by instruction: the IF, ELSE or LOOP that opens its block, LTH_NONE outside */
};

/* Arrays of the program's size, of no particular contents; false when there is no memory. */
bool lth_spans_init(struct lth_spans *spans, const struct lth_program *program);
void lth_spans_free(struct lth_spans *spans);
void lth_spans_find(struct lth_spans *spans, const struct lth_program *program);

/* The storage of a tensor that may be absent. */
static inline uint32_t lth_tensor_storage(const struct lth_program *program, uint32_t tensor)
{
	return tensor == LTH_NONE ? LTH_NONE : program->tensors[tensor].storage;
}
/* Does the instruction read or write the storage? ALLOC and KILL do not. */
bool lth_instr_mentions(const struct lth_program *program, const struct lth_instr *instr, uint32_t storage);
/* Do the tensors show the same elements of their storages, whatever the stride of an axis of one? */
bool lth_same_window(const struct lth_program *program, const struct lth_tensor *a, const struct lth_tensor *b);

/* ShareBranches: loop states that two storages hold in turn, without copies; `tight`: not for any memory. swap.c */
LTH_MUST_CHECK enum lth_code lth_swap_states(struct lth_program *program, bool tight, struct lth_diag *diag);

#endif
