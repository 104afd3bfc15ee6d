/* ManifestAlloc: Loop and Scan, seen as one: states carried from turn to turn, slices collected. The states are storages
 * that begin to live before the loop, and so do the collected outputs.
 *
 * A state whose shape changes has its extents in data symbols ("NODE.carriedI.AXIS"), which each turn sets anew, and a
 * storage of the pool that grows with it. An output collected over turns that nothing bounds grows likewise. */
#include "compiler/memory/manifest_control.h"

#include "compiler/ops/op.h"
#include "runtime/kernels/builtin.h"

#include <string.h>

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

/* The symbol that an axis of a state is, or LTH_NONE where the axis keeps its size. */
static uint32_t axis_symbol(const struct loop *loop, uint32_t state, uint32_t axis)
{
	struct lth_builder *builder = loop->builder;
	lth_value_id in = builder->graph->regions[loop->body].inputs[loop->first_in + state];
	const char *what = lth_arena_printf(builder->program->arena, "carried%u.%u", state, axis);
	lth_dim dim;
	uint32_t symbol;
	bool found = what && lth_build_find_symbol(builder, loop->node, what, &dim, &symbol);
	return found && builder->graph->values[in].type.dims[axis] == dim ? symbol : LTH_NONE;
}

static bool changes_shape(struct loop *loop, uint32_t state)
{
	lth_value_id in = loop->builder->graph->regions[loop->body].inputs[loop->first_in + state];
	for (uint32_t axis = 0; axis < loop->builder->graph->values[in].type.rank; axis++)
		if (axis_symbol(loop, state, axis) != LTH_NONE)
			return true;
	return false;
}

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
		bool changes = changes_shape(loop, i);
		if (!changes && !lth_same_dims(graph, in, first))
			return lth_build_unsupported(builder, node, "a carried value whose shape is not what comes in");
		if (changes && lth_dtype_bits(graph->values[in].type.dtype) < 8)
			return lth_build_unsupported(builder, node, "packed elements in a shape that changes");
		for (uint32_t axis = 0; axis < graph->values[in].type.rank; axis++)
			if (axis_symbol(loop, i, axis) != LTH_NONE)
				lth_build_set(builder, axis_symbol(loop, i, axis),
					      lth_build_dim(builder, graph->values[first].type.dims[axis]), node->name);
		uint32_t storage = out != LTH_NONE ? lth_build_storage(builder, out) : lth_build_storage(builder, in);
		builder->storage_of[in] = loop->storages[i] = storage;
		lth_build_alloc(builder, storage);
		uint32_t target = lth_build_dense_on(builder, in, storage);
		lth_build_copy(builder, target, lth_build_tensor(builder, first), node->name);
	}
	return LTH_OK;
}

static uint32_t multiply(struct lth_program *program, uint32_t a, uint32_t b)
{
	return lth_program_expr(program, LTH_EXPR_MUL, a, b, 0);
}

static bool on_state(const struct loop *loop, uint32_t tensor);

/* Has the value a dense storage of its own, which the turn's end leaves alone? */
static bool stands_alone(const struct loop *loop, lth_value_id value)
{
	const struct lth_builder *builder = loop->builder;
	const struct lth_value *v = &builder->graph->values[value];
	return v->def == LTH_DEF_NODE && !v->layout && builder->input->accesses[value].base == value &&
	       builder->storage_of[value] != LTH_NONE && !on_state(loop, builder->tensor_of[value]);
}

/* A state's next value with dims that are symbols of their own, set while its dims still mean this turn's: where it is, or
 * copied aside. `*out_bytes` is its size, an expression. */
static uint32_t save_aside(struct loop *loop, uint32_t state, lth_value_id value, uint32_t *out_bytes)
{
	struct lth_builder *builder = loop->builder;
	struct lth_program *program = builder->program;
	const struct lth_type *type = &builder->graph->values[value].type;
	struct lth_tensor tensor = {.dtype = type->dtype,
				    .rank = type->rank,
				    .name = builder->graph->values[value].name,
				    .offset = lth_program_const(program, 0)};
	uint32_t bytes = lth_program_const(program, (int64_t)lth_dtype_bits(type->dtype) / 8);
	for (uint32_t axis = 0; axis < type->rank; axis++) {
		tensor.dims[axis] = lth_build_dim(builder, type->dims[axis]);
		if (lth_dim_depends_on_data(builder->graph->dims, type->dims[axis])) {
			struct lth_symbol next = {.name = lth_arena_printf(program->arena, "%s.next%u.%u", loop->node->name,
									   state, axis),
						  .max = INT64_MAX,
						  .multiple = 1,
						  .hint = 1,
						  .source = LTH_SOURCE_DATA,
						  .bound = LTH_NONE};
			uint32_t symbol = lth_program_symbol(program, &next);
			struct lth_instr set = {.op = LTH_INSTR_SET, .symbol = symbol, .ints = &tensor.dims[axis],
						.num_ints = 1, .node = loop->node->name};
			lth_program_instr(program, &set);
			tensor.dims[axis] = lth_program_expr(program, LTH_EXPR_SYMBOL, symbol, LTH_NONE, 0);
		}
		bytes = multiply(program, bytes, tensor.dims[axis]);
	}
	lth_program_dense_strides(program, tensor.rank, tensor.dims, tensor.strides);
	*out_bytes = bytes;
	uint32_t from = lth_build_tensor(builder, value);
	if (stands_alone(loop, value)) {
		tensor.storage = builder->storage_of[value];
		return lth_program_tensor(program, &tensor);
	}
	struct lth_storage storage = {.kind = LTH_STORAGE_POOL, .size = bytes, .alignment = builder->input->alignment,
				      .name = tensor.name};
	tensor.storage = lth_program_storage(program, &storage);
	lth_build_alloc(builder, tensor.storage);
	uint32_t saved = lth_program_tensor(program, &tensor);
	lth_build_copy(builder, saved, from, loop->node->name);
	return saved;
}

/* A state of another shape takes its next value: its symbols, then room for it, then the bytes. */
static void take_aside(struct loop *loop, uint32_t state, uint32_t saved, uint32_t bytes)
{
	struct lth_builder *builder = loop->builder;
	struct lth_program *program = builder->program;
	const struct lth_tensor from = program->tensors[saved];
	lth_value_id in = builder->graph->regions[loop->body].inputs[loop->first_in + state];
	for (uint32_t axis = 0; axis < from.rank; axis++)
		if (axis_symbol(loop, state, axis) != LTH_NONE)
			lth_build_set(builder, axis_symbol(loop, state, axis), from.dims[axis], loop->node->name);
	uint32_t to = lth_build_dense_on(builder, in, loop->storages[state]);
	lth_build_grow(builder, to, bytes, loop->node->name);
	lth_build_copy(builder, to, saved, loop->node->name);
}

/* Is the tensor on a storage that the turn's end overwrites? */
static bool on_state(const struct loop *loop, uint32_t tensor)
{
	const struct lth_program *program = loop->builder->program;
	uint32_t storage = program->tensors[tensor].storage;
	if (loop->condition != LTH_NONE && program->tensors[loop->condition].storage == storage)
		return true;
	for (uint32_t k = 0; k < loop->num_states; k++)
		if (loop->storages[k] == storage)
			return true;
	return false;
}

/* A condition's tensor; one may come as a list of one. */
static uint32_t scalar_of(struct lth_builder *builder, lth_value_id condition)
{
	uint32_t tensor = lth_build_tensor(builder, condition); /* first: it may move the list */
	struct lth_tensor scalar = builder->program->tensors[tensor];
	scalar.rank = 0;
	return lth_program_tensor(builder->program, &scalar);
}

/* The next states: first those that read a state's own storage, or change its shape, are saved aside, then all are copied
 * into place, last those that change what dims mean. */
static void next_states(struct loop *loop)
{
	struct lth_builder *builder = loop->builder;
	const struct lth_region *region = &builder->graph->regions[loop->body];
	const char *node = loop->node->name;
	uint32_t *from = lth_arena_array(builder->program->arena, loop->num_states + 1, sizeof(uint32_t));
	uint32_t *bytes = lth_arena_array(builder->program->arena, loop->num_states + 1, sizeof(uint32_t));
	for (uint32_t i = 0; from && bytes && i < loop->num_states; i++) {
		lth_value_id out = region->outputs[loop->first_out + i];
		from[i] = LTH_NONE;
		if (out == region->inputs[loop->first_in + i])
			continue; /* it stays what it was */
		if (changes_shape(loop, i)) {
			from[i] = save_aside(loop, i, out, &bytes[i]);
			continue;
		}
		from[i] = lth_build_tensor(builder, out);
		if (on_state(loop, from[i])) {
			uint32_t aside = lth_build_scratch(builder, builder->program->storages[loop->storages[i]].size,
							   builder->graph->values[out].name);
			lth_build_alloc(builder, aside);
			uint32_t saved = lth_build_dense_on(builder, out, aside);
			lth_build_copy(builder, saved, from[i], node);
			from[i] = saved;
		}
	}
	if (loop->condition != LTH_NONE && region->outputs[0] != region->inputs[1])
		lth_build_copy(builder, loop->condition, scalar_of(builder, region->outputs[0]), node);
	for (uint32_t i = 0; from && bytes && i < loop->num_states; i++)
		if (from[i] != LTH_NONE && !changes_shape(loop, i))
			lth_build_copy(builder,
				       lth_build_dense_on(builder, region->outputs[loop->first_out + i], loop->storages[i]),
				       from[i], node);
	for (uint32_t i = 0; from && bytes && i < loop->num_states; i++)
		if (from[i] != LTH_NONE && changes_shape(loop, i))
			take_aside(loop, i, from[i], bytes[i]);
}

/* The turn's slice of a collected output. */
static uint32_t slice_tensor(struct loop *loop, lth_value_id out, lth_value_id slice, uint32_t number)
{
	struct lth_builder *builder = loop->builder;
	struct lth_dims *dims = builder->graph->dims;
	const struct lth_type *whole = &builder->graph->values[out].type, *part = &builder->graph->values[slice].type;
	int64_t axis = lth_control_entry(loop->node, "scan_output_axes", number);
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
	if (lth_control_entry(loop->node, "scan_output_directions", number))
		place = lth_dim_sub(dims, lth_dim_sub(dims, loop->length, lth_dim_const(dims, 1)), loop->turn);
	lth_dim width = lth_dim_const(dims, (int64_t)lth_dtype_bits(part->dtype) / 8);
	if (strides)
		tensor.offset = lth_build_dim(builder, lth_dim_mul(dims, lth_dim_mul(dims, place, strides[axis]), width));
	return lth_program_tensor(builder->program, &tensor);
}

/* An output whose length the turns decide without a bound lives in a pool storage that grows. */
static bool grows(struct loop *loop, lth_value_id out)
{
	struct lth_builder *builder = loop->builder;
	const struct lth_type *type = &builder->graph->values[out].type;
	lth_dim elements = lth_dim_product(builder->graph->dims, type->dims, type->rank);
	return lth_dim_upper_bound(builder->graph->dims, elements) == LTH_DIM_NONE &&
	       !lth_build_known(builder, elements, lth_build_dim(builder, elements));
}

/* Before the first turn there is no slice. */
static void clear_slice_axes(struct loop *loop, uint32_t output, uint32_t rank)
{
	for (uint32_t axis = 0; axis < rank; axis++) {
		lth_dim dim;
		uint32_t symbol;
		const char *what = lth_arena_printf(loop->builder->program->arena, "slice%u.%u", output, axis);
		if (what && lth_build_find_symbol(loop->builder, loop->node, what, &dim, &symbol))
			lth_build_set(loop->builder, symbol, lth_program_const(loop->builder->program, 0),
				      loop->node->name);
	}
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
			return lth_build_unsupported(builder, loop->node, "collecting packed elements");
		if (grows(loop, out))
			lth_build_pool(builder, out, lth_dim_const(graph->dims, 0));
		lth_build_alloc(builder, lth_build_storage(builder, out));
		clear_slice_axes(loop, k, type->rank);
	}
	return LTH_OK;
}

/* Sets the symbols of a collected output that the slices decide; all slices have one size. */
static void set_slice_axes(struct loop *loop, uint32_t output, lth_value_id slice)
{
	struct lth_builder *builder = loop->builder;
	struct lth_dims *dims = builder->graph->dims;
	const struct lth_type *part = &builder->graph->values[slice].type;
	for (uint32_t axis = 0; axis < part->rank; axis++) {
		lth_dim dim;
		uint32_t symbol;
		const char *what = lth_arena_printf(builder->program->arena, "slice%u.%u", output, axis);
		if (!what || !lth_build_find_symbol(builder, loop->node, what, &dim, &symbol))
			continue;
		lth_dim change = lth_dim_sub(dims, part->dims[axis], dim), zero = lth_dim_const(dims, 0);
		change = lth_dim_mul(dims, change, lth_dim_min(dims, loop->turn, lth_dim_const(dims, 1)));
		uint32_t left = lth_build_dim(builder, change), nothing = lth_build_dim(builder, zero);
		uint32_t ints[2] = {left, nothing};
		struct lth_instr guard = {.op = LTH_INSTR_GUARD,
					  .ints = ints,
					  .num_ints = 2,
					  .relation = LTH_REL_EQ,
					  .text = "slices of one size in all turns",
					  .node = loop->node->name};
		lth_program_instr(builder->program, &guard);
		lth_build_set(builder, symbol, lth_build_dim(builder, part->dims[axis]), loop->node->name);
	}
}

/* Puts the turn's slice into a collected output. */
static void collect(struct loop *loop, lth_value_id out, lth_value_id slice, uint32_t number)
{
	struct lth_builder *builder = loop->builder;
	struct lth_dims *dims = builder->graph->dims;
	const struct lth_type *part = &builder->graph->values[slice].type;
	set_slice_axes(loop, loop->num_states + number, slice);
	uint32_t to = slice_tensor(loop, out, slice, number);
	if (builder->program->storages[builder->storage_of[out]].kind == LTH_STORAGE_POOL) {
		lth_dim count = loop->length != LTH_DIM_NONE ? loop->length
							     : lth_dim_add(dims, loop->turn, lth_dim_const(dims, 1));
		count = lth_dim_mul(dims, count, lth_dim_product(dims, part->dims, part->rank));
		count = lth_dim_mul(dims, count, lth_dim_const(dims, (int64_t)lth_dtype_bits(part->dtype) / 8));
		lth_build_grow(builder, to, lth_build_dim(builder, count), loop->node->name);
	}
	lth_build_copy(builder, to, lth_build_tensor(builder, slice), loop->node->name);
}

/* The counter, and a condition that is true whenever the body runs, in memory when something of the body reads them there:
 * written at the body's start, before instruction `first`. */
static void materialise(struct loop *loop, uint32_t input, lth_dim value, uint32_t first)
{
	struct lth_builder *builder = loop->builder;
	struct lth_program *program = builder->program;
	lth_value_id id = builder->graph->regions[loop->body].inputs[input];
	uint32_t tensor = builder->tensor_of[id], added = program->num_instrs;
	if (tensor == LTH_NONE || (builder->alive && builder->alive[program->tensors[tensor].storage]))
		return;
	uint32_t number = lth_build_dim(builder, value);
	lth_build_alloc(builder, program->tensors[tensor].storage);
	struct lth_instr write = {.op = LTH_INSTR_BUILTIN,
				  .callee = LTH_BUILTIN_NUMBERS,
				  .tensors = &tensor,
				  .num_tensors = 1,
				  .num_outputs = 1,
				  .ints = &number,
				  .num_ints = 1,
				  .node = loop->node->name};
	lth_program_instr(program, &write);
	enum { ADDED = 2 };
	struct lth_instr moved[ADDED];
	if (program->num_instrs != added + ADDED)
		return; /* the arena is exhausted */
	memcpy(moved, program->instrs + added, sizeof(moved));
	memmove(program->instrs + first + ADDED, program->instrs + first, (added - first) * sizeof(*moved));
	memcpy(program->instrs + first, moved, sizeof(moved));
}

static enum lth_code build_turns(struct loop *loop)
{
	struct lth_builder *builder = loop->builder;
	struct lth_program *program = builder->program;
	struct lth_dims *dims = builder->graph->dims;
	const struct lth_region *region = &builder->graph->regions[loop->body];
	lth_dim turns;
	uint32_t turns_symbol;
	bool counts = lth_build_find_symbol(builder, loop->node, "turns", &turns, &turns_symbol);
	if (counts)
		lth_build_set(builder, turns_symbol, lth_program_const(program, 0), loop->node->name);
	struct lth_instr head = {.op = LTH_INSTR_LOOP,
				 .tensors = &loop->condition,
				 .num_tensors = 1,
				 .ints = &loop->trips,
				 .num_ints = 1,
				 .symbol = loop->turn_symbol,
				 .node = loop->node->name};
	lth_program_instr(program, &head);
	lth_build_bound(builder, loop->turn_symbol);
	uint32_t body_start = program->num_instrs;
	const struct lth_region *body = &builder->graph->regions[loop->body];
	for (uint32_t i = 0; i < body->num_inputs; i++)
		lth_build_binds(builder, body->inputs[i]);
	enum lth_code code = lth_build_region(builder, loop->body);
	if (code != LTH_OK)
		return code;
	uint32_t first = loop->first_out + loop->num_states;
	for (uint32_t k = loop->num_states; k < loop->node->num_outputs; k++)
		if (loop->node->outputs[k] != LTH_NONE)
			collect(loop, loop->node->outputs[k], region->outputs[first + k - loop->num_states],
				k - loop->num_states);
	next_states(loop);
	if (counts)
		lth_build_set(builder, turns_symbol,
			 lth_build_dim(builder, lth_dim_add(dims, loop->turn, lth_dim_const(dims, 1))), loop->node->name);
	if (loop->first_in == 2) {
		materialise(loop, 0, loop->turn, body_start);
		materialise(loop, 1, lth_dim_const(dims, 1), body_start);
	}
	lth_build_plain(builder, LTH_INSTR_ENDLOOP, loop->node->name);
	return LTH_OK;
}

/* The storage of a loop's condition, filled with its first value; what the body takes as its condition reads it too. */
static void begin_condition(struct loop *loop)
{
	struct lth_builder *builder = loop->builder;
	lth_value_id first = lth_node_input(loop->node, 1), in = builder->graph->regions[loop->body].inputs[1];
	uint32_t storage = lth_build_storage(builder, in);
	lth_build_alloc(builder, storage);
	loop->condition = lth_build_dense_on(builder, in, storage);
	lth_build_copy(builder, loop->condition, scalar_of(builder, first), loop->node->name);
}

static bool is_true(struct lth_graph *graph, lth_value_id value)
{
	const int64_t *list;
	uint32_t count;
	const struct lth_contents *contents = graph->values[value].contents;
	int64_t known;
	if (contents && contents->dims)
		return lth_dim_is_const(graph->dims, contents->dims[0], &known) && known;
	return lth_value_const_ints(graph, value, &list, &count) && count == 1 && list[0];
}

/* Is the condition true before every turn? Then the trip count alone ends the loop. */
static bool always_true(const struct lth_builder *builder, const struct lth_node *node, lth_region_id body)
{
	const struct lth_region *region = &builder->graph->regions[body];
	return is_true(builder->graph, lth_node_input(node, 1)) &&
	       (region->outputs[0] == region->inputs[1] || is_true(builder->graph, region->outputs[0]));
}

enum lth_code lth_build_loop(struct lth_builder *builder, const struct lth_node *node)
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
	if (!lth_build_find_symbol(builder, node, "turn", &loop.turn, &loop.turn_symbol))
		return lth_build_unsupported(builder, node, "a loop without a counter");
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
			return lth_build_unsupported(builder, node, "a trip count that is not known when it begins");
	}
	bool counted = loop.trips != LTH_NONE && lth_node_input(node, 1) != LTH_NONE && always_true(builder, node, loop.body);
	if (lth_node_input(node, 1) != LTH_NONE && !counted)
		begin_condition(&loop);
	else if (loop.trips == LTH_NONE)
		return lth_build_unsupported(builder, node, "a loop without an end");
	enum lth_code code = begin_states(&loop);
	if (code == LTH_OK)
		code = begin_collected(&loop);
	return code == LTH_OK ? build_turns(&loop) : code;
}

enum lth_code lth_build_scan(struct lth_builder *builder, const struct lth_node *node)
{
	uint32_t scanned = (uint32_t)lth_node_int(node, "num_scan_inputs", 1);
	const struct lth_type *first = &builder->graph->values[node->inputs[node->num_inputs - scanned]].type;
	int64_t axis = lth_control_entry(node, "scan_input_axes", 0);
	struct loop loop = {.builder = builder,
			    .node = node,
			    .body = lth_node_attr(node, "body")->id,
			    .num_states = node->num_inputs - scanned,
			    .condition = LTH_NONE,
			    .length = first->dims[axis < 0 ? axis + first->rank : axis]};
	if (!lth_build_find_symbol(builder, node, "turn", &loop.turn, &loop.turn_symbol))
		return lth_build_unsupported(builder, node, "a scan without a counter");
	loop.trips = lth_build_dim(builder, loop.length);
	enum lth_code code = begin_states(&loop);
	if (code == LTH_OK)
		code = begin_collected(&loop);
	return code == LTH_OK ? build_turns(&loop) : code;
}

