/* The steps of a recurrent layer for a few rows of the batch: products of the input and of the last state, the cells, and
 * what they hand over. See recurrent.c.
 *
 * A batch of one has code of its own: its weights are used once a step, so the products of the input, which need no
 * state, are made for a chunk of steps ahead, some steps at once. */
#include "compiler/lower/templates/recurrent.h"

static lth_lv load_masked(struct lth_layer *layer, const struct lth_operand *operand, lth_lv offset)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	return lth_loop_load(fn, lth_loop_offset(fn, operand->pointer, offset, operand->memory), operand->memory,
			     layer->lanes, layer->mask);
}

/* A vector of row `r` in a scratch array at the unit at hand. */
static lth_lv scratch_place(struct lth_layer *layer, lth_lv array, unsigned r)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	return lth_loop_offset(fn, array, t_add(fn, t_mul_const(fn, layer->padded, r), layer->unit), layer->compute);
}

static lth_lv scratch_load(struct lth_layer *layer, lth_lv array, unsigned r)
{
	return lth_loop_load(layer->emit->fn, scratch_place(layer, array, r), layer->compute, layer->lanes,
			     LTH_LV_NONE);
}

static void scratch_store(struct lth_layer *layer, lth_lv array, unsigned r, lth_lv value)
{
	lth_loop_store(layer->emit->fn, scratch_place(layer, array, r), value, layer->compute, LTH_LV_NONE);
}

/* Opens the loop over vectors of hidden units. */
void lth_layer_open_units(struct lth_layer *layer)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	layer->unit = lth_loop_for(fn, lth_loop_i64(fn, 0), layer->hidden, layer->lanes, NULL, 0, NULL);
	layer->mask = LTH_LV_NONE;
	if (layer->ragged)
		layer->mask = lth_loop_mask(fn, t_sub(fn, layer->hidden, layer->unit), layer->lanes);
}

void lth_layer_close_units(struct lth_layer *layer)
{
	lth_loop_end_for(layer->emit->fn, NULL, 0, NULL);
}

/* The sum of both biases of `gate`, or of one of them (part 0: w, 1: r). */
static lth_lv bias(struct lth_layer *layer, unsigned gate, bool input_part, bool state_part)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	lth_lv sum = lth_t_zero(fn, layer->compute, layer->lanes);
	for (unsigned part = 0; part < 2 && layer->p->bias.pointer != LTH_LV_NONE; part++) {
		if (!(part ? state_part : input_part))
			continue;
		lth_lv block = t_add_const(fn, t_mul_const(fn, layer->dir, 2 * (int64_t)layer->gates),
					   part * layer->gates + gate);
		lth_lv at = t_add(fn, t_mul(fn, block, layer->hidden), layer->unit);
		sum = t_add(fn, sum, load_masked(layer, &layer->p->bias, at));
	}
	return sum;
}

/* acc[row][gate - first] += `num_rows` rows of `a` times the panel of the unit at hand, gates [first, first + count). */
static void multiply(struct lth_layer *layer, const lth_lv *a, unsigned num_rows, enum lth_dtype memory, lth_lv weights,
		     lth_lv depth, unsigned first, unsigned count, lth_lv *acc)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	struct lth_tile tile = {layer->lanes, count, num_rows};
	struct lth_tile_rows rows = {.steps = LTH_STEP_ADJACENT, .memory = memory, .ahead = LTH_LV_NONE};
	lth_lv at = t_mul(fn, t_mul_const(fn, layer->unit, layer->gates), depth);
	at = t_add_const(fn, at, (int64_t)first * layer->lanes);
	for (unsigned r = 0; r < num_rows; r++)
		rows.pointer[r] = a[r];
	lth_tile_dot(&layer->tiles, &tile, num_rows, &rows, lth_loop_offset(fn, weights, at, layer->tiles.panel_memory),
		     depth, acc);
}

/* Which element of its sequence row `r` reads and gives at a step; where it has ended, the step's own, and *out_active,
 * which is LTH_LV_NONE where sequences have one length, is false. */
static lth_lv time_of(struct lth_layer *layer, unsigned r, lth_lv step, lth_lv *out_active)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	bool counted = layer->p->lengths.pointer != LTH_LV_NONE;
	lth_lv backwards = t_sub(fn, t_sub(fn, layer->length[r], lth_loop_i64(fn, 1)), step);
	lth_lv time = t_select(fn, layer->reverse, backwards, step);
	*out_active = counted ? t_lt(fn, step, layer->length[r]) : LTH_LV_NONE;
	return counted ? t_select(fn, *out_active, time, step) : time;
}

static lth_lv input_row(struct lth_layer *layer, unsigned r, lth_lv time)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	const struct lth_operand *x = &layer->p->x;
	lth_lv step = t_mul(fn, time, layer->x_step);
	lth_lv at = t_add(fn, step, t_mul(fn, layer->row[r], layer->x_batch));
	return lth_loop_offset(fn, x->pointer, at, x->memory);
}

/* The product of the input for a gate of the unit at hand, at a step. */
static lth_lv ahead_place(struct lth_layer *layer, lth_lv step, unsigned gate)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	lth_lv slot = t_mul_const(fn, t_and(fn, step, lth_loop_i64(fn, LTH_LAYER_CHUNK - 1)), layer->gates);
	lth_lv at = t_add(fn, t_mul(fn, t_add_const(fn, slot, gate), layer->padded), layer->unit);
	return lth_loop_offset(fn, layer->ahead, at, layer->compute);
}

/* Multiplies the input of the steps [step, step + count) for the unit at hand. */
static void multiply_burst(struct lth_layer *layer, lth_lv step, unsigned count)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	lth_lv rows[LTH_LAYER_ROWS] = {0}, acc[LTH_LAYER_ROWS * LTH_LAYER_GATES], active;
	for (unsigned i = 0; i < count * layer->gates; i++)
		acc[i] = lth_t_zero(fn, layer->compute, layer->lanes);
	for (unsigned i = 0; i < count; i++) {
		lth_lv time = time_of(layer, 0, t_add_const(fn, step, i), &active);
		rows[i] = input_row(layer, 0, time);
	}
	multiply(layer, rows, count, layer->p->x.memory, layer->w, layer->input, 0, layer->gates, acc);
	for (unsigned i = 0; i < count * layer->gates; i++) {
		lth_lv place = ahead_place(layer, t_add_const(fn, step, i / layer->gates), i % layer->gates);
		lth_loop_store(fn, place, acc[i], layer->compute, LTH_LV_NONE);
	}
}

/* Multiplies the input of the steps [begin, end), at most a chunk. */
static void multiply_ahead(struct lth_layer *layer, lth_lv begin, lth_lv end)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	lth_lv whole = t_sub(fn, end, t_rem(fn, t_sub(fn, end, begin), lth_loop_i64(fn, layer->burst)));
	lth_layer_open_units(layer);
	multiply_burst(layer, lth_loop_for(fn, begin, whole, layer->burst, NULL, 0, NULL), layer->burst);
	lth_loop_end_for(fn, NULL, 0, NULL);
	multiply_burst(layer, lth_loop_for(fn, whole, end, 1, NULL, 0, NULL), 1);
	lth_loop_end_for(fn, NULL, 0, NULL);
	lth_layer_close_units(layer);
}

static void multiply_input(struct lth_layer *layer, unsigned first, unsigned count, lth_lv *acc)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	lth_lv rows[LTH_LAYER_ROWS];
	for (unsigned i = 0; i < count && layer->burst; i++) {
		lth_lv place = ahead_place(layer, layer->step, first + i);
		lth_lv product = lth_loop_load(fn, place, layer->compute, layer->lanes, LTH_LV_NONE);
		acc[i] = t_add(fn, acc[i], product);
	}
	if (layer->burst)
		return;
	for (unsigned r = 0; r < layer->rows; r++)
		rows[r] = input_row(layer, r, layer->time[r]);
	multiply(layer, rows, layer->rows, layer->p->x.memory, layer->w, layer->input, first, count, acc);
}

static void multiply_state(struct lth_layer *layer, lth_lv state, unsigned first, unsigned count, lth_lv *acc)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	lth_lv rows[LTH_LAYER_ROWS];
	for (unsigned r = 0; r < layer->rows; r++)
		rows[r] = lth_loop_offset(fn, state, t_mul_const(fn, layer->padded, r), layer->compute);
	multiply(layer, rows, layer->rows, layer->compute, layer->r, layer->hidden, first, count, acc);
}

static void hand_over(struct lth_layer *layer, uint32_t output, lth_lv step, unsigned r, lth_lv value)
{
	const struct lth_epilogue *epilogue = layer->emit->epilogue;
	lth_lv index[4] = {step, layer->dir, layer->row[r], layer->unit};
	uint32_t skip = output ? 1 : 0;
	if (!layer->p->outputs[output])
		return;
	if (layer->rows > 1)
		lth_loop_if(layer->emit->fn, layer->valid[r]);
	epilogue->apply(epilogue->context, output, index + skip, 3 - skip, value, layer->lanes, layer->mask);
	if (layer->rows > 1)
		lth_loop_end_if(layer->emit->fn, NULL, 0, NULL);
}

/* The new state of row `r`: kept where its sequence has ended. */
static void finish_state(struct lth_layer *layer, unsigned r, lth_lv h_old, lth_lv h)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	lth_lv output = h;
	if (layer->active[r] != LTH_LV_NONE) {
		output = t_select(fn, layer->active[r], h, lth_t_zero(fn, layer->compute, layer->lanes));
		h = t_select(fn, layer->active[r], h, h_old);
	}
	scratch_store(layer, layer->h_next, r, h);
	hand_over(layer, 0, layer->time[r], r, output);
}

static void step_lstm(struct lth_layer *layer)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	lth_lv acc[LTH_LAYER_ROWS * LTH_LAYER_GATES], peepholes[3] = {LTH_LV_NONE, LTH_LV_NONE, LTH_LV_NONE};
	lth_layer_open_units(layer);
	for (unsigned i = 0; i < layer->rows * 4; i++)
		acc[i] = bias(layer, i % 4, true, true);
	multiply_input(layer, 0, 4, acc);
	multiply_state(layer, layer->h_now, 0, 4, acc);
	for (unsigned i = 0; i < 3 && layer->p->peepholes.pointer != LTH_LV_NONE; i++) {
		lth_lv block = t_add_const(fn, t_mul_const(fn, layer->dir, 3), i);
		peepholes[i] = load_masked(layer, &layer->p->peepholes,
					   t_add(fn, t_mul(fn, block, layer->hidden), layer->unit));
	}
	for (unsigned r = 0; r < layer->rows; r++) {
		lth_lv h, c, c_old = scratch_load(layer, layer->cells, r), h_old = scratch_load(layer, layer->h_now, r);
		lth_cell_lstm(fn, layer->p, layer->direction, acc + r * 4, peepholes, c_old, &h, &c);
		if (layer->active[r] != LTH_LV_NONE)
			c = t_select(fn, layer->active[r], c, c_old);
		scratch_store(layer, layer->cells, r, c);
		finish_state(layer, r, h_old, h);
	}
	lth_layer_close_units(layer);
}

static void step_rnn(struct lth_layer *layer)
{
	lth_lv acc[LTH_LAYER_ROWS];
	lth_layer_open_units(layer);
	for (unsigned r = 0; r < layer->rows; r++)
		acc[r] = bias(layer, 0, true, true);
	multiply_input(layer, 0, 1, acc);
	multiply_state(layer, layer->h_now, 0, 1, acc);
	for (unsigned r = 0; r < layer->rows; r++) {
		lth_lv before = scratch_load(layer, layer->h_now, r);
		finish_state(layer, r, before,
			     lth_cell_activate(layer->emit->fn, layer->p, layer->direction, 0, acc[r]));
	}
	lth_layer_close_units(layer);
}

/* linear_before_reset: the reset gate scales the product with the state, which has its own accumulators. */
static void step_gru_linear(struct lth_layer *layer)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	lth_lv acc[LTH_LAYER_ROWS * 3], state[LTH_LAYER_ROWS * 3];
	lth_layer_open_units(layer);
	for (unsigned i = 0; i < layer->rows * 3; i++) {
		acc[i] = bias(layer, i % 3, true, false);
		state[i] = bias(layer, i % 3, false, true);
	}
	multiply_input(layer, 0, 3, acc);
	multiply_state(layer, layer->h_now, 0, 3, state);
	for (unsigned r = 0; r < layer->rows; r++) {
		lth_lv *x = acc + r * 3, *s = state + r * 3, h_old = scratch_load(layer, layer->h_now, r);
		lth_lv z = lth_cell_activate(fn, layer->p, layer->direction, 0, t_add(fn, x[0], s[0]));
		lth_lv reset = lth_cell_activate(fn, layer->p, layer->direction, 0, t_add(fn, x[1], s[1]));
		lth_lv n = lth_cell_activate(fn, layer->p, layer->direction, 1, t_fma(fn, reset, s[2], x[2]));
		finish_state(layer, r, h_old, lth_cell_gru(fn, z, n, h_old));
	}
	lth_layer_close_units(layer);
}

/* The default: the reset gate scales the state itself, so all of it must be known before the candidate's product. */
static void step_gru(struct lth_layer *layer)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	lth_lv gates[LTH_LAYER_ROWS * 2], candidate[LTH_LAYER_ROWS];
	lth_layer_open_units(layer);
	for (unsigned i = 0; i < layer->rows * 2; i++)
		gates[i] = bias(layer, i % 2, true, true);
	multiply_input(layer, 0, 2, gates);
	multiply_state(layer, layer->h_now, 0, 2, gates);
	for (unsigned r = 0; r < layer->rows; r++) {
		lth_lv reset = lth_cell_activate(fn, layer->p, layer->direction, 0, gates[r * 2 + 1]);
		scratch_store(layer, layer->spare[0], r,
			      lth_cell_activate(fn, layer->p, layer->direction, 0, gates[r * 2]));
		scratch_store(layer, layer->spare[1], r, t_mul(fn, reset, scratch_load(layer, layer->h_now, r)));
	}
	lth_layer_close_units(layer);
	lth_layer_open_units(layer);
	for (unsigned r = 0; r < layer->rows; r++)
		candidate[r] = bias(layer, 2, true, true);
	multiply_input(layer, 2, 1, candidate);
	multiply_state(layer, layer->spare[1], 2, 1, candidate);
	for (unsigned r = 0; r < layer->rows; r++) {
		lth_lv h_old = scratch_load(layer, layer->h_now, r);
		lth_lv n = lth_cell_activate(fn, layer->p, layer->direction, 1, candidate[r]);
		finish_state(layer, r, h_old, lth_cell_gru(fn, scratch_load(layer, layer->spare[0], r), n, h_old));
	}
	lth_layer_close_units(layer);
}

/* A row's state at the start: given, or zero. */
static void start_states(struct lth_layer *layer)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	lth_layer_open_units(layer);
	for (unsigned r = 0; r < layer->rows; r++) {
		lth_lv direction = t_mul(fn, layer->dir, layer->state_dir);
		lth_lv at = t_add(fn, direction, t_mul(fn, layer->row[r], layer->state_batch));
		lth_lv zero = lth_t_zero(fn, layer->compute, layer->lanes);
		const struct lth_operand *h = &layer->p->initial_h, *c = &layer->p->initial_c;
		at = t_add(fn, at, layer->unit);
		scratch_store(layer, layer->states, r, h->pointer == LTH_LV_NONE ? zero : load_masked(layer, h, at));
		if (layer->p->cell == LTH_CELL_LSTM)
			scratch_store(layer, layer->cells, r,
				      c->pointer == LTH_LV_NONE ? zero : load_masked(layer, c, at));
	}
	lth_layer_close_units(layer);
}

static lth_lv state_buffer(struct lth_layer *layer, lth_lv step)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	lth_lv odd = t_and(fn, step, lth_loop_i64(fn, 1));
	return lth_loop_offset(fn, layer->states, t_mul(fn, odd, t_mul_const(fn, layer->padded, layer->rows)),
			       layer->compute);
}

static void run_step(struct lth_layer *layer, lth_lv step)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	layer->step = step;
	layer->h_now = state_buffer(layer, step);
	layer->h_next = state_buffer(layer, t_add_const(fn, step, 1));
	for (unsigned r = 0; r < layer->rows; r++)
		layer->time[r] = time_of(layer, r, step, &layer->active[r]);
	if (layer->p->cell == LTH_CELL_LSTM)
		step_lstm(layer);
	else if (layer->p->cell == LTH_CELL_RNN)
		step_rnn(layer);
	else if (layer->p->linear_before_reset)
		step_gru_linear(layer);
	else
		step_gru(layer);
}

/* All steps, in chunks where their input is multiplied ahead. */
static void run_all(struct lth_layer *layer)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	lth_lv begin = lth_loop_i64(fn, 0), end = layer->steps;
	if (layer->burst) {
		begin = lth_loop_for(fn, begin, layer->steps, LTH_LAYER_CHUNK, NULL, 0, NULL);
		end = t_min(fn, t_add_const(fn, begin, LTH_LAYER_CHUNK), layer->steps);
		multiply_ahead(layer, begin, end);
	}
	run_step(layer, lth_loop_for(fn, begin, end, 1, NULL, 0, NULL));
	lth_loop_end_for(fn, NULL, 0, NULL);
	if (layer->burst)
		lth_loop_end_for(fn, NULL, 0, NULL);
}

void lth_layer_run(struct lth_layer *layer)
{
	start_states(layer);
	run_all(layer);
	if (!layer->p->outputs[1] && !layer->p->outputs[2])
		return;
	lth_lv last = state_buffer(layer, layer->steps);
	lth_layer_open_units(layer);
	for (unsigned r = 0; r < layer->rows; r++) {
		hand_over(layer, 1, LTH_LV_NONE, r, scratch_load(layer, last, r));
		if (layer->p->cell == LTH_CELL_LSTM)
			hand_over(layer, 2, LTH_LV_NONE, r, scratch_load(layer, layer->cells, r));
	}
	lth_layer_close_units(layer);
}
