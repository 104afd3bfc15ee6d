/* What the two halves of the program verifier share: program_verify.c looks at each thing by itself,
 * program_verify_flow.c at what control flow makes of storages and symbols. */
#ifndef LTH_PROGRAM_VERIFY_H
#define LTH_PROGRAM_VERIFY_H

#include "runtime/program/program.h"

/* Records a broken rule of thing `number` of a kind ("tensor", "instruction"). */
LTH_MUST_CHECK enum lth_code lth_verify_fail(struct lth_diag *diag, const char *kind, uint32_t number,
					     const char *expected, const char *format, ...) LTH_PRINTF(5, 6);

/* Storages are alive and symbols are bound where instructions use them. Everything else is verified already. */
LTH_MUST_CHECK enum lth_code lth_verify_flow(const struct lth_program *program, struct lth_diag *diag);

#endif
