/* Recurrent layers. Weights are packed so that one panel yields all gates of a vector of hidden units; the products of
 * the input and of the last state go into the same accumulators, and the gates are applied at once. A unit of work is a
 * direction and a few batch rows, which it takes through all steps with their states in its scratch. Weights that are
 * not constant are packed into scratch first. Rows beyond the batch repeat the last one and are not handed over; rows
 * whose sequence has ended keep their state and give zeros. */
#include "compiler/lower/templates/recurrent.h"

static unsigned gate_count(enum lth_cell cell)
{
	return cell == LTH_CELL_LSTM ? 4 : cell == LTH_CELL_GRU ? 3 : 1;
}

/* Copies the direction's weights into panels in scratch: what lth_pack_run does for constants. */
static lth_lv pack_here(struct lth_layer *layer, const struct lth_operand *weights, lth_lv depth, lth_lv out)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	lth_lv matrix = t_mul(fn, t_mul_const(fn, layer->hidden, layer->gates), depth);
	lth_lv source = lth_loop_offset(fn, weights->pointer, t_mul(fn, layer->dir, matrix), weights->memory);
	lth_layer_open_units(layer);
	lth_lv mask = lth_loop_mask(fn, t_sub(fn, layer->hidden, layer->unit), layer->lanes);
	lth_lv panel =
		lth_loop_offset(fn, out, t_mul(fn, t_mul_const(fn, layer->unit, layer->gates), depth), layer->compute);
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
	lth_layer_close_units(layer);
	return out;
}

static lth_lv packed_weights(struct lth_layer *layer, const struct lth_operand *weights, bool packed, lth_lv depth,
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

static void emit_unit(struct lth_layer *layer, lth_lv unit, lth_lv blocks, bool packed)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	const struct lth_recurrent *p = layer->p;
	lth_lv one = lth_loop_i64(fn, 1);
	layer->dir = p->directions == 1 ? lth_loop_i64(fn, 0) : t_div(fn, unit, blocks);
	layer->reverse =
		p->directions == 2 ? t_eq(fn, layer->dir, one) : lth_loop_const_i(fn, LTH_DTYPE_BOOL, p->reverse);
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
		lth_layer_run(layer);
		return;
	}
	lth_loop_if(fn, layer->reverse);
	layer->direction = 1;
	lth_layer_run(layer);
	lth_loop_else(fn, NULL, 0);
	layer->direction = 0;
	lth_layer_run(layer);
	lth_loop_end_if(fn, NULL, 0, NULL);
}

/* Sets the arrays' places in a thread's scratch; returns its size in elements of the compute type. */
static lth_dim lay_out_scratch(struct lth_layer *layer, lth_dim padded, bool packed)
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
		behind =
			lth_loop_offset(fn, layer->ahead,
					t_mul_const(fn, layer->padded, LTH_LAYER_CHUNK * layer->gates), layer->compute);
		total = lth_dim_add(dims, total, lth_dim_mul(dims, panels, lth_dim_const(dims, LTH_LAYER_CHUNK)));
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
	out->flops =
		lth_dim_mul(dims, out->flops, lth_dim_const(dims, 2 * (int64_t)p->directions * gate_count(p->cell)));
	return true;
}

/* The units of work, `rows` of the batch each. Returns the scratch of a thread in elements of the compute type. */
static lth_dim emit_units(struct lth_layer *layer, unsigned rows, lth_dim padded, lth_lv blocks, bool packed)
{
	struct lth_loop_fn *fn = layer->emit->fn;
	int64_t steps;
	bool few = lth_dim_is_const(layer->emit->dims, layer->p->steps, &steps) && steps < LTH_LAYER_ROWS;
	layer->rows = rows;
	layer->burst = rows > 1 || few ? 0 : layer->emit->machine->registers >= 32 ? LTH_LAYER_ROWS : 2;
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
	struct lth_layer layer = {.emit = emit,
				  .p = p,
				  .compute = problem->compute,
				  .gates = gate_count(p->cell),
				  .lanes = lth_machine_lanes(emit->machine, problem->compute)};
	bool packed = plan->packs[0].kind != LTH_PACK_NONE;
	int64_t most = emit->machine->registers >= 32 ? LTH_LAYER_ROWS : 2, likely = lth_t_likely(dims, p->batch);
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
