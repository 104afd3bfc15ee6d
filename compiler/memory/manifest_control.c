/* ManifestAlloc: control flow. The results of an If and the states of a loop are storages that begin to live before it;
 * arms and bodies write or copy into them. Block targets are filled in at the end (lth_program_link_blocks). */
#include "compiler/memory/manifest.h"

#include "compiler/ops/op.h"

#include <string.h>

static void emit(struct lth_builder *builder, enum lth_instr_op op, const char *node)
{
	struct lth_instr instr = {.op = op, .node = node};
	lth_program_instr(builder->program, &instr);
}

static enum lth_code unsupported(struct lth_builder *builder, const struct lth_node *node, const char *what)
{
	return lth_diag_fail(builder->diag, LTH_UNSUPPORTED, node->name, NULL, NULL, "%s: %s", node->op->name, what);
}

/* The graph's data symbol NODE.WHAT as a dimension and as the program's symbol; false when there is none. */
static bool find_symbol(struct lth_builder *builder, const struct lth_node *node, const char *what, lth_dim *out_dim,
			uint32_t *out_symbol)
{
	struct lth_dims *dims = builder->graph->dims;
	const char *name = lth_arena_printf(builder->program->arena, "%s.%s", node->name, what);
	lth_dim dim = name ? lth_dim_find_symbol(dims, name) : LTH_DIM_NONE;
	for (uint32_t i = 0; dim != LTH_DIM_NONE && i < lth_dims_num_symbols(dims); i++)
		if (lth_dims_symbol_dim(dims, i) == dim) {
			*out_dim = dim;
			*out_symbol = builder->symbol_map[i];
			return *out_symbol != LTH_NONE;
		}
	return false;
}

static void emit_set(struct lth_builder *builder, uint32_t symbol, uint32_t value, const char *node)
{
	struct lth_instr instr = {
		.op = LTH_INSTR_SET, .symbol = symbol, .ints = &value, .num_ints = 1, .node = node};
	lth_program_instr(builder->program, &instr);
	lth_build_bound(builder, symbol);
}

static void emit_copy(struct lth_builder *builder, uint32_t to, uint32_t from, const char *node)
{
	uint32_t tensors[2] = {to, from};
	struct lth_instr instr = {
		.op = LTH_INSTR_COPY, .tensors = tensors, .num_tensors = 2, .num_outputs = 1, .node = node};
	lth_program_instr(builder->program, &instr);
}

/* A dense tensor with the shape of `like` on a storage. */
static uint32_t dense_on(struct lth_builder *builder, lth_value_id like, uint32_t storage)
{
	const struct lth_value *v = &builder->graph->values[like];
	struct lth_tensor tensor = {.dtype = v->type.dtype,
				    .rank = v->type.rank,
				    .name = v->name,
				    .storage = storage,
				    .offset = lth_program_const(builder->program, 0)};
	const lth_dim *strides =
		lth_dense_strides(builder->graph, builder->program->arena, v->type.rank, v->type.dims, NULL);
	for (uint32_t axis = 0; strides && axis < tensor.rank; axis++) {
		tensor.dims[axis] = lth_build_dim(builder, v->type.dims[axis]);
		tensor.strides[axis] = lth_build_dim(builder, strides[axis]);
	}
	return lth_program_tensor(builder->program, &tensor);
}

static bool same_dims(const struct lth_graph *graph, lth_value_id a, lth_value_id b)
{
	const struct lth_type *x = &graph->values[a].type, *y = &graph->values[b].type;
	return x->rank == y->rank && x->dtype == y->dtype &&
	       (x->rank == 0 || memcmp(x->dims, y->dims, x->rank * sizeof(x->dims[0])) == 0);
}

/* Lets the producer of `inner`, in the region, write straight into the storage of `outer`, where it has one of its own. */
static bool write_through(struct lth_builder *builder, lth_region_id region, lth_value_id inner, uint32_t storage,
			  lth_value_id outer)
{
	const struct lth_graph *graph = builder->graph;
	const struct lth_value *v = &graph->values[inner];
	if (v->def != LTH_DEF_NODE || graph->nodes[v->def_id].region != region || v->layout ||
	    builder->input->accesses[inner].base != inner || builder->storage_of[inner] != LTH_NONE ||
	    !same_dims(graph, inner, outer))
		return false;
	builder->storage_of[inner] = storage;
	return true;
}

/* ---- If ---- */

static enum lth_code build_arm(struct lth_builder *builder, const struct lth_node *node, lth_region_id arm)
{
	struct lth_graph *graph = builder->graph;
	const struct lth_region *region = &graph->regions[arm];
	for (uint32_t k = 0; k < node->num_outputs; k++)
		if (node->outputs[k] != LTH_NONE && builder->storage_of[node->outputs[k]] != LTH_NONE)
			write_through(builder, arm, region->outputs[k], builder->storage_of[node->outputs[k]],
				      node->outputs[k]);
	enum lth_code code = lth_build_region(builder, arm);
	for (uint32_t k = 0; k < node->num_outputs && code == LTH_OK; k++) {
		lth_value_id out = node->outputs[k], from = region->outputs[k];
		if (out == LTH_NONE || builder->storage_of[out] == LTH_NONE)
			continue;
		if (builder->storage_of[from] != builder->storage_of[out] || builder->input->accesses[from].base != from)
			emit_copy(builder, dense_on(builder, from, builder->storage_of[out]),
				  lth_build_tensor(builder, from), node->name);
		for (uint32_t axis = 0; axis < graph->values[out].type.rank; axis++) {
			lth_dim dim;
			uint32_t symbol;
			const char *what = lth_arena_printf(builder->program->arena, "out%u.%u", k, axis);
			if (what && find_symbol(builder, node, what, &dim, &symbol) &&
			    dim == graph->values[out].type.dims[axis])
				emit_set(builder, symbol, lth_build_dim(builder, graph->values[from].type.dims[axis]),
					 node->name);
		}
	}
	return code;
}

static enum lth_code build_if(struct lth_builder *builder, const struct lth_node *node)
{
	uint32_t condition = lth_build_tensor(builder, node->inputs[0]);
	for (uint32_t k = 0; k < node->num_outputs; k++)
		if (node->outputs[k] != LTH_NONE)
			lth_build_alloc(builder, lth_build_storage(builder, node->outputs[k]));
	struct lth_instr instr = {
		.op = LTH_INSTR_IF, .tensors = &condition, .num_tensors = 1, .node = node->name};
	lth_program_instr(builder->program, &instr);
	enum lth_code code = build_arm(builder, node, lth_node_attr(node, "then_branch")->id);
	if (code != LTH_OK)
		return code;
	emit(builder, LTH_INSTR_ELSE, node->name);
	code = build_arm(builder, node, lth_node_attr(node, "else_branch")->id);
	emit(builder, LTH_INSTR_ENDIF, node->name);
	return code;
}

/* ---- Loop and Scan, seen as one: states carried from turn to turn, slices collected ---- */

struct loop {
	struct lth_builder *builder;
	const struct lth_node *node;
	lth_region_id body;
	uint32_t num_states, first_in, first_out; /* of the body's inputs and outputs */
	uint32_t first_input;                     /* of the node's inputs */
	uint32_t *storages;                       /* of the states */
	lth_dim turn;
	uint32_t turn_symbol;
	uint32_t condition; /* tensor, or LTH_NONE */
	uint32_t trips;     /* expression, or LTH_NONE */
	lth_dim length;     /* of collected axes in a Scan, else LTH_DIM_NONE */
};

static enum lth_code begin_states(struct loop *loop)
{
	struct lth_builder *builder = loop->builder;
	const struct lth_node *node = loop->node;
	struct lth_graph *graph = builder->graph;
	loop->storages = lth_arena_array(builder->program->arena, loop->num_states + 1, sizeof(uint32_t));
	if (!loop->storages)
		return LTH_OK;
	for (uint32_t i = 0; i < loop->num_states; i++) {
		lth_value_id in = graph->regions[loop->body].inputs[loop->first_in + i];
		lth_value_id out = i < node->num_outputs ? node->outputs[i] : LTH_NONE;
		lth_value_id first = node->inputs[loop->first_input + i];
		if (!same_dims(graph, in, first))
			return unsupported(builder, node, "a carried value whose shape changes from turn to turn");
		uint32_t storage = out != LTH_NONE ? lth_build_storage(builder, out) : lth_build_storage(builder, in);
		builder->storage_of[in] = loop->storages[i] = storage;
		lth_build_alloc(builder, storage);
		emit_copy(builder, dense_on(builder, in, storage), lth_build_tensor(builder, first), node->name);
	}
	return LTH_OK;
}

/* The next states: first those that read a state's own storage are saved aside, then all are copied into place. */
static void next_states(struct loop *loop)
{
	struct lth_builder *builder = loop->builder;
	const struct lth_region *region = &builder->graph->regions[loop->body];
	uint32_t *from = lth_arena_array(builder->program->arena, loop->num_states + 1, sizeof(uint32_t));
	for (uint32_t i = 0; from && i < loop->num_states; i++) {
		lth_value_id out = region->outputs[loop->first_out + i];
		from[i] = lth_build_tensor(builder, out);
		uint32_t storage = builder->program->tensors[from[i]].storage;
		bool state = false;
		for (uint32_t k = 0; k < loop->num_states; k++)
			state |= k != i && loop->storages[k] == storage;
		if (storage == loop->storages[i] && out == region->inputs[loop->first_in + i]) {
			from[i] = LTH_NONE; /* it stays what it was */
		} else if (state || storage == loop->storages[i]) {
			uint32_t aside = lth_build_scratch(builder, builder->program->storages[loop->storages[i]].size,
							   builder->graph->values[out].name);
			lth_build_alloc(builder, aside);
			uint32_t saved = dense_on(builder, out, aside);
			emit_copy(builder, saved, from[i], loop->node->name);
			from[i] = saved;
		}
	}
	for (uint32_t i = 0; from && i < loop->num_states; i++)
		if (from[i] != LTH_NONE)
			emit_copy(builder, dense_on(builder, region->outputs[loop->first_out + i], loop->storages[i]), from[i],
				  loop->node->name);
}

static int64_t list_entry(const struct lth_node *node, const char *name, uint32_t index)
{
	const int64_t *list;
	uint32_t count;
	return lth_node_ints(node, name, &list, &count) && index < count ? list[index] : 0;
}

/* The turn's slice of a collected output. */
static uint32_t slice_tensor(struct loop *loop, lth_value_id out, lth_value_id slice, uint32_t number)
{
	struct lth_builder *builder = loop->builder;
	struct lth_dims *dims = builder->graph->dims;
	const struct lth_type *whole = &builder->graph->values[out].type, *part = &builder->graph->values[slice].type;
	int64_t axis = list_entry(loop->node, "scan_output_axes", number);
	axis = axis < 0 ? axis + whole->rank : axis;
	const lth_dim *strides =
		lth_dense_strides(builder->graph, builder->program->arena, whole->rank, whole->dims, NULL);
	struct lth_tensor tensor = {.dtype = part->dtype,
				    .rank = part->rank,
				    .name = builder->graph->values[out].name,
				    .storage = builder->storage_of[out]};
	for (uint32_t i = 0, from = 0; strides && i < part->rank; i++, from++) {
		from += from == (uint32_t)axis;
		tensor.dims[i] = lth_build_dim(builder, part->dims[i]);
		tensor.strides[i] = lth_build_dim(builder, strides[from]);
	}
	lth_dim place = loop->turn;
	if (list_entry(loop->node, "scan_output_directions", number))
		place = lth_dim_sub(dims, lth_dim_sub(dims, loop->length, lth_dim_const(dims, 1)), loop->turn);
	lth_dim width = lth_dim_const(dims, (int64_t)lth_dtype_bits(part->dtype) / 8);
	if (strides)
		tensor.offset = lth_build_dim(builder, lth_dim_mul(dims, lth_dim_mul(dims, place, strides[axis]), width));
	return lth_program_tensor(builder->program, &tensor);
}

static enum lth_code begin_collected(struct loop *loop)
{
	struct lth_builder *builder = loop->builder;
	struct lth_graph *graph = builder->graph;
	for (uint32_t k = loop->num_states; k < loop->node->num_outputs; k++) {
		lth_value_id out = loop->node->outputs[k];
		if (out == LTH_NONE)
			continue;
		const struct lth_type *type = &graph->values[out].type;
		if (lth_dtype_bits(type->dtype) < 8)
			return unsupported(builder, loop->node, "collecting packed elements");
		if (lth_dim_upper_bound(graph->dims, lth_dim_product(graph->dims, type->dims, type->rank)) == LTH_DIM_NONE)
			return unsupported(builder, loop->node, "collecting an output over turns without a bound");
		lth_build_alloc(builder, lth_build_storage(builder, out));
	}
	return LTH_OK;
}

static enum lth_code build_turns(struct loop *loop)
{
	struct lth_builder *builder = loop->builder;
	struct lth_program *program = builder->program;
	struct lth_dims *dims = builder->graph->dims;
	const struct lth_region *region = &builder->graph->regions[loop->body];
	lth_dim turns;
	uint32_t turns_symbol;
	bool counts = find_symbol(builder, loop->node, "turns", &turns, &turns_symbol);
	if (counts)
		emit_set(builder, turns_symbol, lth_program_const(program, 0), loop->node->name);
	struct lth_instr head = {.op = LTH_INSTR_LOOP,
				 .tensors = &loop->condition,
				 .num_tensors = 1,
				 .ints = &loop->trips,
				 .num_ints = 1,
				 .symbol = loop->turn_symbol,
				 .node = loop->node->name};
	lth_program_instr(program, &head);
	lth_build_bound(builder, loop->turn_symbol);
	enum lth_code code = lth_build_region(builder, loop->body);
	if (code != LTH_OK)
		return code;
	uint32_t first = loop->first_out + loop->num_states;
	for (uint32_t k = loop->num_states; k < loop->node->num_outputs; k++)
		if (loop->node->outputs[k] != LTH_NONE) {
			lth_value_id slice = region->outputs[first + k - loop->num_states];
			emit_copy(builder, slice_tensor(loop, loop->node->outputs[k], slice, k - loop->num_states),
				  lth_build_tensor(builder, slice), loop->node->name);
		}
	next_states(loop);
	if (loop->condition != LTH_NONE)
		emit_copy(builder, loop->condition, lth_build_tensor(builder, region->outputs[0]), loop->node->name);
	if (counts)
		emit_set(builder, turns_symbol,
			 lth_build_dim(builder, lth_dim_add(dims, loop->turn, lth_dim_const(dims, 1))), loop->node->name);
	emit(builder, LTH_INSTR_ENDLOOP, loop->node->name);
	return LTH_OK;
}

/* The storage of a loop's condition, filled with its first value; what the body takes as its condition reads it too. */
static void begin_condition(struct loop *loop)
{
	struct lth_builder *builder = loop->builder;
	lth_value_id first = lth_node_input(loop->node, 1), in = builder->graph->regions[loop->body].inputs[1];
	uint32_t storage = lth_build_storage(builder, in);
	lth_build_alloc(builder, storage);
	loop->condition = dense_on(builder, in, storage);
	struct lth_tensor scalar = builder->program->tensors[lth_build_tensor(builder, first)];
	scalar.rank = 0; /* a condition may come as a list of one */
	emit_copy(builder, loop->condition, lth_program_tensor(builder->program, &scalar), loop->node->name);
}

static enum lth_code build_loop(struct lth_builder *builder, const struct lth_node *node)
{
	struct loop loop = {.builder = builder,
			    .node = node,
			    .body = lth_node_attr(node, "body")->id,
			    .num_states = node->num_inputs > 2 ? node->num_inputs - 2 : 0,
			    .first_in = 2,
			    .first_out = 1,
			    .first_input = 2,
			    .condition = LTH_NONE,
			    .trips = LTH_NONE,
			    .length = LTH_DIM_NONE};
	if (!find_symbol(builder, node, "turn", &loop.turn, &loop.turn_symbol))
		return unsupported(builder, node, "a loop without a counter");
	lth_value_id count = lth_node_input(node, 0);
	if (count != LTH_NONE) {
		const struct lth_contents *contents = builder->graph->values[count].contents;
		int64_t constant;
		const int64_t *list;
		uint32_t entries;
		if (contents && contents->dims)
			loop.trips = lth_build_dim(builder, contents->dims[0]);
		else if (lth_value_const_ints(builder->graph, count, &list, &entries) && entries == 1)
			loop.trips = lth_program_const(builder->program, constant = list[0]);
		else
			return unsupported(builder, node, "a trip count that is not known when it begins");
	}
	if (lth_node_input(node, 1) != LTH_NONE)
		begin_condition(&loop);
	else if (loop.trips == LTH_NONE)
		return unsupported(builder, node, "a loop without an end");
	enum lth_code code = begin_states(&loop);
	if (code == LTH_OK)
		code = begin_collected(&loop);
	return code == LTH_OK ? build_turns(&loop) : code;
}

static enum lth_code build_scan(struct lth_builder *builder, const struct lth_node *node)
{
	uint32_t scanned = (uint32_t)lth_node_int(node, "num_scan_inputs", 1);
	const struct lth_type *first = &builder->graph->values[node->inputs[node->num_inputs - scanned]].type;
	int64_t axis = list_entry(node, "scan_input_axes", 0);
	struct loop loop = {.builder = builder,
			    .node = node,
			    .body = lth_node_attr(node, "body")->id,
			    .num_states = node->num_inputs - scanned,
			    .condition = LTH_NONE,
			    .length = first->dims[axis < 0 ? axis + first->rank : axis]};
	if (!find_symbol(builder, node, "turn", &loop.turn, &loop.turn_symbol))
		return unsupported(builder, node, "a scan without a counter");
	loop.trips = lth_build_dim(builder, loop.length);
	enum lth_code code = begin_states(&loop);
	if (code == LTH_OK)
		code = begin_collected(&loop);
	return code == LTH_OK ? build_turns(&loop) : code;
}

enum lth_code lth_build_control(struct lth_builder *builder, const struct lth_node *node)
{
	switch (lth_op_id(node->op)) {
	case LTH_OP_ID_If:
		return build_if(builder, node);
	case LTH_OP_ID_Loop:
		return build_loop(builder, node);
	case LTH_OP_ID_Scan:
		return build_scan(builder, node);
	default:
		return unsupported(builder, node, "this control flow is not implemented");
	}
}

/* ---- windows ---- */

static void scan_windows(struct lth_graph *graph, struct lth_access *accesses, const struct lth_node *node)
{
	struct lth_dims *dims = graph->dims;
	uint32_t scanned = (uint32_t)lth_node_int(node, "num_scan_inputs", 1), states = node->num_inputs - scanned;
	const char *name = lth_arena_printf(graph->arena, "%s.turn", node->name);
	lth_dim turn = name ? lth_dim_find_symbol(dims, name) : LTH_DIM_NONE;
	for (uint32_t i = 0; i < scanned && turn != LTH_DIM_NONE; i++) {
		lth_value_id from = node->inputs[states + i];
		lth_value_id to = graph->regions[lth_node_attr(node, "body")->id].inputs[states + i];
		const struct lth_type *type = &graph->values[from].type;
		int64_t axis = list_entry(node, "scan_input_axes", i);
		axis = axis < 0 ? axis + type->rank : axis;
		lth_dim *strides = lth_arena_array(graph->arena, type->rank + 1, sizeof(*strides)), place = turn;
		if (list_entry(node, "scan_input_directions", i))
			place = lth_dim_sub(dims, lth_dim_sub(dims, type->dims[axis], lth_dim_const(dims, 1)), turn);
		if (!strides)
			return;
		for (uint32_t k = 0, out = 0; k < type->rank; k++)
			if (k != (uint32_t)axis)
				strides[out++] = accesses[from].strides[k];
		lth_dim shift = lth_dim_mul(dims, place, accesses[from].strides[axis]);
		accesses[to] = (struct lth_access){.base = accesses[from].base,
						   .strides = strides,
						   .offset = lth_dim_add(dims, accesses[from].offset, shift)};
	}
}

void lth_control_windows(struct lth_graph *graph, struct lth_access *accesses, const struct lth_node *node)
{
	if (lth_op_id(node->op) == LTH_OP_ID_Scan)
		scan_windows(graph, accesses, node);
}
