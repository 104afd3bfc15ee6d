/* What the attention operators of all domains share: heads taken apart and put together again, and scaled scores.
 * Heads apart are [batch, heads, sequence, size]; together, [batch, sequence, heads * size]. Thread rule: as infer.h.
 */
#ifndef LTH_OPS_ATTENTION_H
#define LTH_OPS_ATTENTION_H

#include "compiler/ops/build.h"

lth_value_id lth_split_heads(struct lth_infer *infer, lth_value_id x, int64_t heads);
lth_value_id lth_merge_heads(struct lth_infer *infer, lth_value_id x);
/* Key or value heads repeated for the query heads that share them, h0, h0, h1, h1, ...; as they are when there is one
 * for each. */
lth_value_id lth_share_heads(struct lth_infer *infer, lth_value_id x, lth_value_id queries);
/* q k^T, scaled by the node's attribute `scale` or by 1 / sqrt(size); heads apart. */
lth_value_id lth_attention_scores(struct lth_infer *infer, lth_value_id q, lth_value_id k);

#endif
