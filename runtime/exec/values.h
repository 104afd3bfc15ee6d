/* Values that are no tensors at the border of a run: a caller's sequences, optionals and maps to objects, and back.
 * Thread rule: as the context's. */
#ifndef LTH_EXEC_VALUES_H
#define LTH_EXEC_VALUES_H

#include "runtime/exec/context.h"

/* Makes objects of all inputs that are no tensors, each checked against its type; their bytes stay the caller's. */
LTH_MUST_CHECK enum lth_code lth_take_values(struct lathe_context *context, const struct lathe_tensor *inputs,
					     struct lth_diag *diag);
/* Fills in output `number`, an object, as a value that lives on. */
LTH_MUST_CHECK enum lth_code lth_deliver_value(struct lathe_context *context, uint32_t number,
					       struct lathe_tensor *output, struct lth_diag *diag);

#endif
