/* What the expansions of com.microsoft share. Thread rule: as infer.h. */
#ifndef LTH_OPS_MICROSOFT_H
#define LTH_OPS_MICROSOFT_H

#include "compiler/ops/build.h"

/* The node's attributes that `op` has too. */
const struct lth_attr *lth_ms_attrs_for(struct lth_infer *infer, enum lth_op_id op, uint32_t *out_count);
/* Images with their channels last, moved behind the batch axis; or back. */
lth_value_id lth_ms_move_channels(struct lth_infer *infer, lth_value_id x, bool to_first);
/* The activation that a fused operator's attribute names, with its parameters in the order alpha, beta. */
lth_value_id lth_ms_activated(struct lth_infer *infer, lth_value_id x, const double *params, uint32_t num_params);
/* By scale and zero point, which may be absent; quantised to the element type of output 0 then. */
lth_value_id lth_ms_dequantized(struct lth_infer *infer, lth_value_id x, lth_value_id scale, lth_value_id zero);
lth_value_id lth_ms_quantized(struct lth_infer *infer, lth_value_id x, lth_value_id scale, lth_value_id zero);

#endif
