/* The arithmetic of recurrent cells on vectors of hidden units: activations, and from sums of products to the next
 * state. recurrent.c makes the loops around it. */
#ifndef LTH_LOWER_TEMPLATES_CELLS_H
#define LTH_LOWER_TEMPLATES_CELLS_H

#include "compiler/lower/templates/internal.h"

/* f(x) of direction `direction`, position `which` (ONNX: f, g, h), with the clip before it. */
lth_lv lth_cell_activate(struct lth_loop_fn *fn, const struct lth_recurrent *p, unsigned direction, unsigned which,
			 lth_lv x);

/* LSTM: gates are i, o, f, c in ONNX's order, sums without peepholes; `peepholes` i, o, f or LTH_LV_NONE. */
void lth_cell_lstm(struct lth_loop_fn *fn, const struct lth_recurrent *p, unsigned direction, const lth_lv *gates,
		   const lth_lv *peepholes, lth_lv c, lth_lv *out_h, lth_lv *out_c);
/* GRU's last step: from the update gate z and the candidate n. */
lth_lv lth_cell_gru(struct lth_loop_fn *fn, lth_lv z, lth_lv n, lth_lv h);

#endif
