/* What the files of state swapping share. */
#ifndef LTH_MEMORY_SWAP_H
#define LTH_MEMORY_SWAP_H

#include "compiler/memory/memory.h"
#include "compiler/memory/spans.h"

enum lth_swap_outcome {
	LTH_SWAP_REFUSED, /* the program cannot be so */
	LTH_SWAP_MADE,
	LTH_SWAP_FAILED, /* for want of memory; the diagnostics say so */
};

/* Makes `instrs` the program's, with the ALLOCs of what swaps side by side; where it had KILLs they are placed anew.
 * Unless made, the program is no longer good. swap_settle.c */
enum lth_swap_outcome lth_swap_settle(struct lth_program *program, struct lth_instr *instrs, uint32_t num_instrs,
				      bool kills, struct lth_diag *diag);

#endif
