/* Recurrent layers in two files: recurrent.c plans, packs weights and emits the units of work; recurrent_steps.c takes a
 * unit through its steps. Private to both. */
#ifndef LTH_LOWER_TEMPLATES_RECURRENT_H
#define LTH_LOWER_TEMPLATES_RECURRENT_H

#include "compiler/lower/templates/cells.h"

enum { LTH_LAYER_ROWS = 4, LTH_LAYER_GATES = 4, LTH_LAYER_CHUNK = 16 };

/* A layer while it is emitted; the units of work are a direction and a few rows of the batch each. */
struct lth_layer {
	struct lth_emit *emit;
	const struct lth_recurrent *p;
	enum lth_dtype compute;
	unsigned lanes, rows, gates;
	unsigned burst;         /* steps whose input is multiplied at once, ahead of them; 0: in each step */
	bool ragged;            /* hidden units do not fill the last vector */
	struct lth_tiles tiles; /* for the inner loop */
	lth_lv steps, batch, input, hidden, padded, x_step, x_batch, state_dir, state_batch;
	/* scratch: states [2][rows][padded], cells [rows][padded], two more such for GRU, products of the input
	 * [LTH_LAYER_CHUNK][gates][padded], packed weights */
	lth_lv states, cells, spare[2], ahead, packed_w, packed_r;
	/* of the unit: */
	unsigned direction; /* whose activations are used */
	lth_lv dir, reverse, row[LTH_LAYER_ROWS], valid[LTH_LAYER_ROWS], length[LTH_LAYER_ROWS];
	lth_lv w, r; /* packed weights of the direction */
	/* of the step: */
	lth_lv step, h_now, h_next, time[LTH_LAYER_ROWS], active[LTH_LAYER_ROWS], unit, mask;
};

/* The loop over vectors of hidden units: sets `unit` and `mask`. */
void lth_layer_open_units(struct lth_layer *layer);
void lth_layer_close_units(struct lth_layer *layer);
/* All steps of the unit of work at hand: its direction, rows and weights are set. */
void lth_layer_run(struct lth_layer *layer);

#endif
