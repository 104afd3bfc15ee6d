/* Recurrent layers. Weights are packed so that one panel yields all gates of a vector of hidden units; the products of
 * the input and of the last state go into the same accumulators, and the gates are applied at once. A unit of work is a
 * direction and a few batch rows, which it takes through all steps with their states in its scratch. Weights that are
 * not constant are packed into scratch first. Rows beyond the batch repeat the last one and are not handed over; rows
 * whose sequence has ended keep their state and give zeros.
 * A batch of one has code of its own: its weights are used once a step, so the products of the input, which need no
 * state, are made for a chunk of steps ahead, some steps at once. */
#include "compiler/lower/templates/cells.h"

enum { MAX_ROWS = 4, MAX_GATES = 4, CHUNK = 16 };

struct layer {
	struct lth_emit *emit;
	const struct lth_recurrent *p;
	enum lth_dtype compute;
	unsigned lanes, rows, gates;
	unsigned burst;         /* steps whose input is multiplied at once, ahead of them; 0: in each step */
	bool ragged;            /* hidden units do not fill the last vector */
	struct lth_tiles tiles; /* for the inner loop */
	lth_lv steps, batch, input, hidden, padded, x_step, x_batch, state_dir, state_batch;
	/* scratch: states [2][rows][padded], cells [rows][padded], two more such for GRU, products of the input
	 * [CHUNK][gates][padded], packed weights */
	lth_lv states, cells, spare[2], ahead, packed_w, packed_r;
	/* of the unit: */
	unsigned direction; /* whose activations are used */
	lth_lv dir, reverse, row[MAX_ROWS], valid[MAX_ROWS], length[MAX_ROWS];
	lth_lv w, r; /* packed weights of the direction */
	/* of the step: */
	lth_lv step, h_now, h_next, time[MAX_ROWS], active[MAX_ROWS], unit, mask;
};

static unsigned gate_count(enum lth_cell cell)
{
	return cell == LTH_CELL_LSTM ? 4 : cell == LTH_CELL_GRU ? 3 : 1;
}

static lth_lv load_masked(struct layer *layer, const struct lth_operand *operand, lth_lv offset)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	return lth_loop_load(fn, lth_loop_offset(fn, operand->pointer, offset, operand->memory), operand->memory,
			     layer->lanes, layer->mask);
}

/* A vector of row `r` in a scratch array at the unit at hand. */
static lth_lv scratch_place(struct layer *layer, lth_lv array, unsigned r)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	return lth_loop_offset(fn, array, t_add(fn, t_mul_const(fn, layer->padded, r), layer->unit), layer->compute);
}

static lth_lv scratch_load(struct layer *layer, lth_lv array, unsigned r)
{
	return lth_loop_load(layer->emit->fn, scratch_place(layer, array, r), layer->compute, layer->lanes,
			     LTH_LV_NONE);
}

static void scratch_store(struct layer *layer, lth_lv array, unsigned r, lth_lv value)
{
	lth_loop_store(layer->emit->fn, scratch_place(layer, array, r), value, layer->compute, LTH_LV_NONE);
}

/* Opens the loop over vectors of hidden units. */
static void open_units(struct layer *layer)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	layer->unit = lth_loop_for(fn, lth_loop_i64(fn, 0), layer->hidden, layer->lanes, NULL, 0, NULL);
	layer->mask = LTH_LV_NONE;
	if (layer->ragged)
		layer->mask = lth_loop_mask(fn, t_sub(fn, layer->hidden, layer->unit), layer->lanes);
}

static void close_units(struct layer *layer)
{
	lth_loop_end_for(layer->emit->fn, NULL, 0, NULL);
}

/* The sum of both biases of `gate`, or of one of them (part 0: w, 1: r). */
static lth_lv bias(struct layer *layer, unsigned gate, bool input_part, bool state_part)
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
static void multiply(struct layer *layer, const lth_lv *a, unsigned num_rows, enum lth_dtype memory, lth_lv weights,
		     lth_lv depth, unsigned first, unsigned count, lth_lv *acc)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	struct lth_tile tile = {layer->lanes, count, num_rows};
	struct lth_tile_rows rows = {.steps = LTH_STEP_ADJACENT, .memory = memory, .ahead = LTH_LV_NONE};
	lth_lv at = t_mul(fn, t_mul_const(fn, layer->unit, layer->gates), depth);
	at = t_add_const(fn, at, (int64_t)first * layer->lanes);
	for (unsigned r = 0; r < num_rows; r++)
		rows.pointer[r] = a[r];
	lth_tile_dot(&layer->tiles, &tile, num_rows, &rows,
		     lth_loop_offset(fn, weights, at, layer->tiles.panel_memory), depth, acc);
}

/* Which element of its sequence row `r` reads and gives at a step; where it has ended, the step's own, and *out_active,
 * which is LTH_LV_NONE where sequences have one length, is false. */
static lth_lv time_of(struct layer *layer, unsigned r, lth_lv step, lth_lv *out_active)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	bool counted = layer->p->lengths.pointer != LTH_LV_NONE;
	lth_lv backwards = t_sub(fn, t_sub(fn, layer->length[r], lth_loop_i64(fn, 1)), step);
	lth_lv time = t_select(fn, layer->reverse, backwards, step);
	*out_active = counted ? t_lt(fn, step, layer->length[r]) : LTH_LV_NONE;
	return counted ? t_select(fn, *out_active, time, step) : time;
}

static lth_lv input_row(struct layer *layer, unsigned r, lth_lv time)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	const struct lth_operand *x = &layer->p->x;
	lth_lv at = t_add(fn, t_mul(fn, time, layer->x_step), t_mul(fn, layer->row[r], layer->x_batch));
	return lth_loop_offset(fn, x->pointer, at, x->memory);
}

/* The product of the input for a gate of the unit at hand, at a step. */
static lth_lv ahead_place(struct layer *layer, lth_lv step, unsigned gate)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	lth_lv slot = t_mul_const(fn, t_and(fn, step, lth_loop_i64(fn, CHUNK - 1)), layer->gates);
	lth_lv at = t_add(fn, t_mul(fn, t_add_const(fn, slot, gate), layer->padded), layer->unit);
	return lth_loop_offset(fn, layer->ahead, at, layer->compute);
}

/* Multiplies the input of the steps [step, step + count) for the unit at hand. */
static void multiply_burst(struct layer *layer, lth_lv step, unsigned count)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	lth_lv rows[MAX_ROWS] = {0}, acc[MAX_ROWS * MAX_GATES], active;
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
static void multiply_ahead(struct layer *layer, lth_lv begin, lth_lv end)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	lth_lv whole = t_sub(fn, end, t_rem(fn, t_sub(fn, end, begin), lth_loop_i64(fn, layer->burst)));
	open_units(layer);
	multiply_burst(layer, lth_loop_for(fn, begin, whole, layer->burst, NULL, 0, NULL), layer->burst);
	lth_loop_end_for(fn, NULL, 0, NULL);
	multiply_burst(layer, lth_loop_for(fn, whole, end, 1, NULL, 0, NULL), 1);
	lth_loop_end_for(fn, NULL, 0, NULL);
	close_units(layer);
}

static void multiply_input(struct layer *layer, unsigned first, unsigned count, lth_lv *acc)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	lth_lv rows[MAX_ROWS];
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

static void multiply_state(struct layer *layer, lth_lv state, unsigned first, unsigned count, lth_lv *acc)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	lth_lv rows[MAX_ROWS];
	for (unsigned r = 0; r < layer->rows; r++)
		rows[r] = lth_loop_offset(fn, state, t_mul_const(fn, layer->padded, r), layer->compute);
	multiply(layer, rows, layer->rows, layer->compute, layer->r, layer->hidden, first, count, acc);
}

static void hand_over(struct layer *layer, uint32_t output, lth_lv step, unsigned r, lth_lv value)
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
static void finish_state(struct layer *layer, unsigned r, lth_lv h_old, lth_lv h)
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

static void step_lstm(struct layer *layer)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	lth_lv acc[MAX_ROWS * MAX_GATES], peepholes[3] = {LTH_LV_NONE, LTH_LV_NONE, LTH_LV_NONE};
	open_units(layer);
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
	close_units(layer);
}

static void step_rnn(struct layer *layer)
{
	lth_lv acc[MAX_ROWS];
	open_units(layer);
	for (unsigned r = 0; r < layer->rows; r++)
		acc[r] = bias(layer, 0, true, true);
	multiply_input(layer, 0, 1, acc);
	multiply_state(layer, layer->h_now, 0, 1, acc);
	for (unsigned r = 0; r < layer->rows; r++) {
		lth_lv before = scratch_load(layer, layer->h_now, r);
		finish_state(layer, r, before, lth_cell_activate(layer->emit->fn, layer->p, layer->direction, 0, acc[r]));
	}
	close_units(layer);
}

/* linear_before_reset: the reset gate scales the product with the state, which has its own accumulators. */
static void step_gru_linear(struct layer *layer)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	lth_lv acc[MAX_ROWS * 3], state[MAX_ROWS * 3];
	open_units(layer);
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
	close_units(layer);
}

/* The default: the reset gate scales the state itself, so all of it must be known before the candidate's product. */
static void step_gru(struct layer *layer)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	lth_lv gates[MAX_ROWS * 2], candidate[MAX_ROWS];
	open_units(layer);
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
	close_units(layer);
	open_units(layer);
	for (unsigned r = 0; r < layer->rows; r++)
		candidate[r] = bias(layer, 2, true, true);
	multiply_input(layer, 2, 1, candidate);
	multiply_state(layer, layer->spare[1], 2, 1, candidate);
	for (unsigned r = 0; r < layer->rows; r++) {
		lth_lv h_old = scratch_load(layer, layer->h_now, r);
		lth_lv n = lth_cell_activate(fn, layer->p, layer->direction, 1, candidate[r]);
		finish_state(layer, r, h_old, lth_cell_gru(fn, scratch_load(layer, layer->spare[0], r), n, h_old));
	}
	close_units(layer);
}

/* A row's state at the start: given, or zero. */
static void start_states(struct layer *layer)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	open_units(layer);
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
	close_units(layer);
}

static lth_lv state_buffer(struct layer *layer, lth_lv step)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	lth_lv odd = t_and(fn, step, lth_loop_i64(fn, 1));
	return lth_loop_offset(fn, layer->states, t_mul(fn, odd, t_mul_const(fn, layer->padded, layer->rows)),
			       layer->compute);
}

static void run_step(struct layer *layer, lth_lv step)
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
static void run_all(struct layer *layer)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	lth_lv begin = lth_loop_i64(fn, 0), end = layer->steps;
	if (layer->burst) {
		begin = lth_loop_for(fn, begin, layer->steps, CHUNK, NULL, 0, NULL);
		end = t_min(fn, t_add_const(fn, begin, CHUNK), layer->steps);
		multiply_ahead(layer, begin, end);
	}
	run_step(layer, lth_loop_for(fn, begin, end, 1, NULL, 0, NULL));
	lth_loop_end_for(fn, NULL, 0, NULL);
	if (layer->burst)
		lth_loop_end_for(fn, NULL, 0, NULL);
}

static void run_steps(struct layer *layer)
{
	start_states(layer);
	run_all(layer);
	if (!layer->p->outputs[1] && !layer->p->outputs[2])
		return;
	lth_lv last = state_buffer(layer, layer->steps);
	open_units(layer);
	for (unsigned r = 0; r < layer->rows; r++) {
		hand_over(layer, 1, LTH_LV_NONE, r, scratch_load(layer, last, r));
		if (layer->p->cell == LTH_CELL_LSTM)
			hand_over(layer, 2, LTH_LV_NONE, r, scratch_load(layer, layer->cells, r));
	}
	close_units(layer);
}

/* Copies the direction's weights into panels in scratch: what lth_pack_run does for constants. */
static lth_lv pack_here(struct layer *layer, const struct lth_operand *weights, lth_lv depth, lth_lv out)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	lth_lv matrix = t_mul(fn, t_mul_const(fn, layer->hidden, layer->gates), depth);
	lth_lv source = lth_loop_offset(fn, weights->pointer, t_mul(fn, layer->dir, matrix), weights->memory);
	open_units(layer);
	lth_lv mask = lth_loop_mask(fn, t_sub(fn, layer->hidden, layer->unit), layer->lanes);
	lth_lv panel = lth_loop_offset(fn, out, t_mul(fn, t_mul_const(fn, layer->unit, layer->gates), depth),
				       layer->compute);
	lth_lv lane = t_mul(fn, lth_loop_ramp(fn, lth_loop_i64(fn, 0), layer->lanes), depth);
	lth_lv k = lth_loop_for(fn, lth_loop_i64(fn, 0), depth, 1, NULL, 0, NULL);
	for (unsigned gate = 0; gate < layer->gates; gate++) {
		lth_lv unit = t_add(fn, t_mul_const(fn, layer->hidden, gate), layer->unit);
		lth_lv at = t_add(fn, t_mul(fn, unit, depth), k);
		lth_lv value = lth_loop_gather(fn, lth_loop_offset(fn, source, at, weights->memory), lane,
					       weights->memory, mask);
		lth_lv place = t_add_const(fn, t_mul_const(fn, k, (int64_t)layer->gates * layer->lanes),
					   (int64_t)gate * layer->lanes);
		lth_loop_store(fn, lth_loop_offset(fn, panel, place, layer->compute), value, layer->compute,
			       LTH_LV_NONE);
	}
	lth_loop_end_for(fn, NULL, 0, NULL);
	close_units(layer);
	return out;
}

static lth_lv packed_weights(struct layer *layer, const struct lth_operand *weights, bool packed, lth_lv depth,
			     lth_lv room)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	if (!packed)
		return pack_here(layer, weights, depth, room);
	lth_lv matrix = t_mul(fn, t_mul_const(fn, layer->padded, layer->gates), depth);
	return lth_loop_offset(fn, weights->pointer, t_mul(fn, layer->dir, matrix), weights->memory);
}

static bool same_activations(const struct lth_recurrent *p)
{
	for (unsigned which = 0; which < 3; which++)
		if (p->activations[0][which] != p->activations[1][which] || p->alpha[0][which] != p->alpha[1][which] ||
		    p->beta[0][which] != p->beta[1][which])
			return false;
	return true;
}

static void emit_unit(struct layer *layer, lth_lv unit, lth_lv blocks, bool packed)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	const struct lth_recurrent *p = layer->p;
	lth_lv one = lth_loop_i64(fn, 1);
	layer->dir = p->directions == 1 ? lth_loop_i64(fn, 0) : t_div(fn, unit, blocks);
	layer->reverse = p->directions == 2 ? t_eq(fn, layer->dir, one)
					    : lth_loop_const_i(fn, LTH_DTYPE_BOOL, p->reverse);
	lth_lv first = t_mul_const(fn, t_rem(fn, unit, blocks), layer->rows);
	for (unsigned r = 0; r < layer->rows; r++) {
		lth_lv row = t_add_const(fn, first, r);
		layer->valid[r] = t_lt(fn, row, layer->batch);
		layer->row[r] = t_min(fn, row, t_sub(fn, layer->batch, one));
		layer->length[r] = layer->steps;
		if (p->lengths.pointer == LTH_LV_NONE)
			continue;
		lth_lv place = lth_loop_offset(fn, p->lengths.pointer, layer->row[r], p->lengths.memory);
		lth_lv length = lth_loop_load(fn, place, p->lengths.memory, 1, LTH_LV_NONE);
		length = lth_loop_cast(fn, length, LTH_DTYPE_I64);
		lth_loop_fail(fn, t_lt(fn, length, lth_loop_i64(fn, 0)), LTH_KERNEL_SHAPE);
		lth_loop_fail(fn, t_lt(fn, layer->steps, length), LTH_KERNEL_SHAPE);
		layer->length[r] = t_min(fn, length, layer->steps); /* a kernel that fails runs to its end */
	}
	layer->w = packed_weights(layer, &p->w, packed, layer->input, layer->packed_w);
	layer->r = packed_weights(layer, &p->r, packed, layer->hidden, layer->packed_r);
	if (p->directions == 1 || same_activations(p)) {
		layer->direction = 0;
		run_steps(layer);
		return;
	}
	lth_loop_if(fn, layer->reverse);
	layer->direction = 1;
	run_steps(layer);
	lth_loop_else(fn, NULL, 0);
	layer->direction = 0;
	run_steps(layer);
	lth_loop_end_if(fn, NULL, 0, NULL);
}

/* Sets the arrays' places in a thread's scratch; returns its size in elements of the compute type. */
static lth_dim lay_out_scratch(struct layer *layer, lth_dim padded, bool packed)
{
	struct lth_emit *emit = layer->emit;
	struct lth_dims *dims = emit->dims;
	struct lth_loop_fn *fn = emit->fn;
	lth_dim array = lth_dim_mul(dims, padded, lth_dim_const(dims, layer->rows));
	lth_dim total = lth_dim_mul(dims, array, lth_dim_const(dims, 5));
	lth_dim panels = lth_dim_mul(dims, padded, lth_dim_const(dims, layer->gates));
	lth_lv step = t_mul_const(fn, layer->padded, layer->rows);
	layer->states = lth_loop_scratch(fn);
	layer->cells = lth_loop_offset(fn, layer->states, t_mul_const(fn, step, 2), layer->compute);
	layer->spare[0] = lth_loop_offset(fn, layer->states, t_mul_const(fn, step, 3), layer->compute);
	layer->spare[1] = lth_loop_offset(fn, layer->states, t_mul_const(fn, step, 4), layer->compute);
	layer->ahead = lth_loop_offset(fn, layer->states, t_mul_const(fn, step, 5), layer->compute);
	lth_lv behind = layer->ahead;
	if (layer->burst) {
		behind = lth_loop_offset(fn, layer->ahead, t_mul_const(fn, layer->padded, CHUNK * layer->gates),
					 layer->compute);
		total = lth_dim_add(dims, total, lth_dim_mul(dims, panels, lth_dim_const(dims, CHUNK)));
	}
	if (!packed) {
		layer->packed_w = behind;
		layer->packed_r = lth_loop_offset(fn, layer->packed_w,
						  t_mul(fn, t_mul_const(fn, layer->padded, layer->gates), layer->input),
						  layer->compute);
		total = lth_dim_add(dims, total,
				    lth_dim_mul(dims, panels, lth_dim_add(dims, layer->p->input, layer->p->hidden)));
	}
	return total;
}

static bool pack_of(struct lth_dims *dims, const struct lth_recurrent *p, const struct lth_operand *operand,
		    lth_dim depth, unsigned lanes, struct lth_pack *out)
{
	struct lth_pack pack = {.kind = LTH_PACK_PANELS,
				.dtype = operand->memory,
				.groups = p->directions,
				.gates = gate_count(p->cell),
				.num_k = 1};
	if (!operand->constant || !lth_dim_is_const(dims, p->hidden, &pack.columns) ||
	    !lth_dim_is_const(dims, depth, &pack.k[0].extent))
		return false;
	pack.k[0].stride = 1;
	pack.column_stride = pack.k[0].extent;
	pack.gate_stride = pack.columns * pack.column_stride;
	pack.group_stride = pack.gates * pack.gate_stride;
	pack.panel = pack.gates * lanes;
	pack.tail = pack.columns % lanes ? pack.panel : 0;
	*out = pack;
	return true;
}

bool lth_recurrent_plan(struct lth_dims *dims, const struct lth_machine *machine, const struct lth_problem *problem,
			struct lth_template_plan *out)
{
	const struct lth_recurrent *p = &problem->recurrent;
	unsigned lanes = lth_machine_lanes(machine, problem->compute);
	struct lth_pack packs[2];
	if (p->directions < 1 || p->directions > 2 || !lth_t_loads_as(p->x.memory, problem->compute) ||
	    !lth_t_loads_as(p->w.memory, problem->compute) || !lth_t_loads_as(p->r.memory, problem->compute))
		return false;
	/* Both or none, so that there is one kind of weights. */
	if (pack_of(dims, p, &p->w, p->input, lanes, &packs[0]) &&
	    pack_of(dims, p, &p->r, p->hidden, lanes, &packs[1])) {
		out->packs[0] = packs[0];
		out->packs[1] = packs[1];
	}
	out->flops = lth_dim_mul(dims, lth_dim_mul(dims, p->steps, p->batch),
				 lth_dim_mul(dims, p->hidden, lth_dim_add(dims, p->input, p->hidden)));
	out->flops = lth_dim_mul(dims, out->flops,
				 lth_dim_const(dims, 2 * (int64_t)p->directions * gate_count(p->cell)));
	return true;
}

/* The units of work, `rows` of the batch each. Returns the scratch of a thread in elements of the compute type. */
static lth_dim emit_units(struct layer *layer, unsigned rows, lth_dim padded, lth_lv blocks, bool packed)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	int64_t steps;
	bool few = lth_dim_is_const(layer->emit->dims, layer->p->steps, &steps) && steps < MAX_ROWS;
	layer->rows = rows;
	layer->burst = rows > 1 || few ? 0 : layer->emit->machine->registers >= 32 ? MAX_ROWS : 2;
	lth_dim scratch = lay_out_scratch(layer, padded, packed);
	lth_lv unit = lth_loop_for(fn, lth_loop_begin(fn), lth_loop_end(fn), 1, NULL, 0, NULL);
	emit_unit(layer, unit, blocks, packed);
	lth_loop_end_for(fn, NULL, 0, NULL);
	return scratch;
}

void lth_recurrent_emit(struct lth_emit *emit, const struct lth_problem *problem, const struct lth_template_plan *plan)
{
	const struct lth_recurrent *p = &problem->recurrent;
	struct lth_dims *dims = emit->dims;
	struct lth_loop_fn *fn = emit->fn;
	struct layer layer = {.emit = emit,
			      .p = p,
			      .compute = problem->compute,
			      .gates = gate_count(p->cell),
			      .lanes = lth_machine_lanes(emit->machine, problem->compute)};
	bool packed = plan->packs[0].kind != LTH_PACK_NONE;
	int64_t most = emit->machine->registers >= 32 ? MAX_ROWS : 2, likely = lth_t_likely(dims, p->batch);
	lth_dim lanes = lth_dim_const(dims, layer.lanes);
	lth_dim padded = lth_dim_mul(dims, lth_dim_ceildiv(dims, p->hidden, lanes), lanes);
	unsigned rows = (unsigned)(likely < 1 ? 1 : likely < most ? likely : most);
	layer.ragged = lth_dim_known_factor(dims, p->hidden) % layer.lanes != 0;
	layer.steps = lth_t_param(emit, p->steps);
	layer.batch = lth_t_param(emit, p->batch);
	layer.input = lth_t_param(emit, p->input);
	layer.hidden = lth_t_param(emit, p->hidden);
	layer.padded = lth_t_param(emit, padded);
	layer.x_step = lth_t_param(emit, p->x_step_stride);
	layer.x_batch = lth_t_param(emit, p->x_batch_stride);
	layer.state_dir = lth_t_param(emit, p->state_dir_stride);
	layer.state_batch = lth_t_param(emit, p->state_batch_stride);
	layer.tiles = (struct lth_tiles){.emit = emit,
					 .compute = problem->compute,
					 .load_mask = LTH_LV_NONE,
					 .panel_memory = packed ? p->w.memory : problem->compute,
					 .panel_step = lth_loop_i64(fn, (int64_t)layer.gates * layer.lanes)};
	lth_dim blocks = lth_dim_ceildiv(dims, p->batch, lth_dim_const(dims, rows));
	lth_lv blocks_value = lth_t_param(emit, blocks);
	int64_t batch;
	bool split = rows > 1 && !lth_dim_is_const(dims, p->batch, &batch);
	lth_dim scratch = lth_dim_const(dims, 0);
	if (split) {
		lth_loop_if(fn, t_lt(fn, layer.batch, lth_loop_i64(fn, 2)));
		scratch = emit_units(&layer, 1, padded, blocks_value, packed);
		lth_loop_else(fn, NULL, 0);
	}
	scratch = lth_dim_max(dims, scratch, emit_units(&layer, rows, padded, blocks_value, packed));
	if (split)
		lth_loop_end_if(fn, NULL, 0, NULL);
	emit->scratch_bytes = lth_dim_mul(dims, scratch, lth_dim_const(dims, lth_dtype_bits(layer.compute) / 8));
	emit->units = lth_dim_mul(dims, blocks, lth_dim_const(dims, p->directions));
	emit->min_units = lth_dim_const(dims, 1);
}
