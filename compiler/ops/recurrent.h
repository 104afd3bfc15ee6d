/* What LSTM, GRU, RNN (recurrent.c) and DynamicQuantizeLSTM (recurrent_dynamic.c) share: inputs 0 to 7, attributes and
 * activations. Private to compiler/ops. */
#ifndef LTH_OPS_RECURRENT_H
#define LTH_OPS_RECURRENT_H

#include "compiler/ops/family.h"

enum lth_recurrent_input {
	LTH_RECURRENT_X,
	LTH_RECURRENT_W,
	LTH_RECURRENT_R,
	LTH_RECURRENT_B,
	LTH_RECURRENT_LENGTHS,
	LTH_RECURRENT_INITIAL_H,
	LTH_RECURRENT_INITIAL_C,
	LTH_RECURRENT_PEEPHOLES
};

uint32_t lth_recurrent_directions(const struct lth_node *node);
/* X, W, R and what may come behind them; `w` is [directions, rows of gates, inputs] with both axes of the matrices
 * exchanged when `turned`. Attributes too. */
LTH_MUST_CHECK enum lth_code lth_recurrent_check(struct lth_infer *infer, lth_dim batch, lth_dim hidden, bool turned);
/* The input's shape, if it is given. */
LTH_MUST_CHECK enum lth_code lth_recurrent_need_shape(struct lth_infer *infer, uint32_t input, const lth_dim *shape,
						      uint32_t rank);
/* Activations with their parameters, of `out->directions` directions. */
void lth_recurrent_activations(const struct lth_node *node, struct lth_recurrent *out);

#endif
