/* Loop and Scan (control_if.c has If). Inference goes into the body with the types of what comes in, and takes the types
 * of what comes out.
 *
 * The number of turns of a loop that a condition ends is a data symbol. The number of the turn is one too ("NODE.turn"),
 * which is all that a body sees of a loop's counter. manifest_control.c writes the instructions that set these symbols. */
#include "compiler/ops/control.h"

#include <string.h>

lth_region_id lth_control_region(const struct lth_node *node, const char *name)
{
	const struct lth_attr *attr = lth_node_attr(node, name);
	return attr && attr->kind == LTH_ATTR_REGION ? attr->id : LTH_NONE;
}

enum lth_code lth_control_enter(struct lth_infer *infer, lth_region_id region)
{
	enum lth_code code = lth_infer_region(infer->graph, region, infer->diag);
	infer->node = &infer->graph->nodes[infer->id]; /* the graph may have grown */
	if (code != LTH_OK) {
		lth_diag_within(infer->diag, "in '%s'", infer->node->name);
		return code;
	}
	/* a region may give a value from outside, whose own inference an importer's early look has passed over */
	const struct lth_region *entered = &infer->graph->regions[region];
	for (uint32_t k = 0; k < entered->num_outputs; k++) {
		const struct lth_type *type = &infer->graph->values[entered->outputs[k]].type;
		if (type->kind == LTH_TYPE_TENSOR && (type->dtype == LTH_NUM_DTYPES || type->rank == LTH_RANK_UNKNOWN))
			return lth_infer_reject(infer, "a known type and rank", "result %u of a region has none", k);
	}
	return LTH_OK;
}

static void set_type(struct lth_infer *infer, lth_value_id value, const struct lth_type *type)
{
	infer->graph->values[value].type = *type;
}

/* ---- Loop ---- */

/* The number of the turn, below the number of turns where that is known. */
static lth_dim turn_symbol(struct lth_infer *infer, lth_dim turns)
{
	lth_dim last = LTH_DIM_NONE;
	int64_t low, high;
	lth_dim_range(infer->dims, turns, &low, &high);
	if (turns != LTH_DIM_NONE && low < INT32_MAX) /* models write "for ever" as a very large count */
		last = lth_dim_max(infer->dims, lth_dim_sub(infer->dims, turns, lth_dim_const(infer->dims, 1)),
				   lth_dim_const(infer->dims, 0));
	return lth_infer_data_dim(infer, "turn", last);
}

/* Gives a region's input contents: one integer. */
static void set_number(struct lth_infer *infer, lth_value_id value, lth_dim turn)
{
	struct lth_contents *contents = lth_arena_alloc(infer->graph->arena, sizeof(*contents));
	lth_dim *list = lth_arena_alloc(infer->graph->arena, sizeof(*list));
	if (!contents || !list)
		return;
	*list = turn;
	*contents = (struct lth_contents){.count = 1, .dims = list};
	infer->graph->values[value].contents = contents;
}

/* Axes of a carried value that change from turn to turn become data symbols without a bound; true if any did. */
static bool generalise(struct lth_infer *infer, uint32_t number, struct lth_type *carried, const struct lth_type *next)
{
	bool changed = false;
	lth_dim *dims = lth_arena_memdup(infer->graph->arena, carried->dims, carried->rank * sizeof(*dims));
	for (uint32_t axis = 0; dims && axis < carried->rank; axis++)
		if (carried->dims[axis] != next->dims[axis]) {
			dims[axis] = lth_infer_data_dim(
				infer, lth_arena_printf(infer->graph->arena, "carried%u.%u", number, axis), LTH_DIM_NONE);
			changed |= dims[axis] != carried->dims[axis];
		}
	if (dims)
		carried->dims = dims;
	return changed;
}

/* What a carried value is in all turns: `carried` so far, and what the body gave; wider where they differ. */
static enum lth_code widen(struct lth_infer *infer, uint32_t number, lth_region_id body, uint32_t output,
			   struct lth_type *carried, const struct lth_type *next, bool *changed)
{
	const struct lth_type was = *carried;
	struct lth_type wrapped;
	if (was.kind == LTH_TYPE_OPTIONAL && next->kind == was.element->kind) {
		enum lth_code code = lth_control_wrap(infer, body, output, &wrapped);
		if (code)
			return code;
		next = &wrapped;
	}
	if (next->kind != was.kind ||
	    (was.kind != LTH_TYPE_TENSOR && !lth_type_join(infer->graph, &was, next, carried)))
		return lth_infer_reject(infer, "carried values that keep their type",
					"value %u goes out as another type than it came in", number);
	if (was.kind != LTH_TYPE_TENSOR) {
		*changed |= !lth_type_equal(&was, carried);
		return LTH_OK;
	}
	if (next->dtype != was.dtype || next->rank != was.rank)
		return lth_infer_reject(infer, "carried values that keep type and rank",
					"value %u comes in as %s of rank %u and goes out as %s of rank %u", number,
					lth_dtype_text(was.dtype), was.rank, lth_dtype_text(next->dtype), next->rank);
	*changed |= generalise(infer, number, carried, next);
	return LTH_OK;
}

/* Types of the carried values: as they come in, made wider until the body gives back what it took. */
static enum lth_code infer_body(struct lth_infer *infer, lth_region_id body, uint32_t first_in, uint32_t first_out,
				uint32_t count, struct lth_type *types)
{
	for (int round = 0; round < 3; round++) {
		bool changed = false;
		for (uint32_t i = 0; i < count; i++)
			set_type(infer, infer->graph->regions[body].inputs[first_in + i], &types[i]);
		infer->graph->tentative++;
		enum lth_code code = lth_control_enter(infer, body);
		infer->graph->tentative--;
		if (code)
			return code;
		for (uint32_t i = 0; i < count; i++) {
			const struct lth_region *region = &infer->graph->regions[body];
			struct lth_type next = infer->graph->values[region->outputs[first_out + i]].type;
			if ((code = widen(infer, i, body, first_out + i, &types[i], &next, &changed)))
				return code;
		}
		if (!changed)
			return infer->graph->tentative ? LTH_OK /* an outer loop comes again */
						       : lth_control_enter(infer, body); /* now with bounds from data */
	}
	return lth_infer_unsupported(infer, NULL, "a carried value's shape that does not settle");
}

/* Does the loop's condition never become false by the body? */
static bool runs_to_the_end(const struct lth_infer *infer, lth_region_id body)
{
	const struct lth_region *region = &infer->graph->regions[body];
	const struct lth_contents *contents = lth_value_contents(infer->graph, region->outputs[0]);
	int64_t value;
	return region->outputs[0] == region->inputs[1] ||
	       (contents && contents->dims && contents->count == 1 &&
		lth_dim_is_const(infer->dims, contents->dims[0], &value) && value != 0);
}

static bool starts(const struct lth_infer *infer)
{
	lth_value_id condition = lth_node_input(infer->node, 1);
	const struct lth_contents *contents = condition == LTH_NONE ? NULL : lth_value_contents(infer->graph, condition);
	int64_t value;
	return condition == LTH_NONE || (contents && contents->dims && contents->count == 1 &&
					 lth_dim_is_const(infer->dims, contents->dims[0], &value) && value != 0);
}

/* The body's condition: one truth value; as a list of one, too, as Paddle's exporter writes it. */
static enum lth_code check_condition(struct lth_infer *infer, lth_region_id body)
{
	lth_value_id condition = infer->graph->regions[body].outputs[0];
	const struct lth_type *type = &infer->graph->values[condition].type;
	if (type->kind != LTH_TYPE_TENSOR || type->dtype != LTH_DTYPE_BOOL || type->rank == LTH_RANK_UNKNOWN)
		return lth_infer_reject(infer, "a condition of type bool[]", "the body's condition '%s' has another",
					infer->graph->values[condition].name);
	lth_dim one = lth_dim_const(infer->dims, 1), elements = lth_type_elements(infer->graph, type);
	enum lth_truth single = lth_dim_equal(infer->dims, elements, one);
	if (single == LTH_NO)
		return lth_infer_reject(infer, "a condition of one element", "the body's condition '%s' has shape %s",
					infer->graph->values[condition].name, lth_infer_shape_text(infer, type));
	if (single != LTH_YES)
		lth_graph_guard(infer->graph, &(struct lth_guard){.region = body,
								  .relation = LTH_REL_EQ,
								  .a = elements,
								  .b = one,
								  .node = infer->node->name,
								  .what = "a condition of one element"});
	return LTH_OK;
}

/* The number of turns: the trip count where nothing else ends the loop, else a data symbol bounded by it. */
static enum lth_code count_turns(struct lth_infer *infer, lth_region_id body, lth_dim *out)
{
	const lth_dim *trips = NULL;
	uint32_t count = 0;
	lth_dim bound = LTH_DIM_NONE;
	if (lth_node_input(infer->node, 0) != LTH_NONE) {
		enum lth_code code = lth_infer_need_ints(infer, 0, 0, &trips, &count);
		if (code)
			return code;
		int64_t low, high;
		lth_dim_range(infer->dims, trips[0], &low, &high);
		if (low < INT32_MAX) /* models write "for ever" as a very large count */
			bound = lth_dim_max(infer->dims, trips[0], lth_dim_const(infer->dims, 0));
	}
	if (bound != LTH_DIM_NONE && starts(infer) && runs_to_the_end(infer, body)) {
		*out = bound;
		return LTH_OK;
	}
	*out = lth_infer_data_dim(infer, "turns",
				  bound == LTH_DIM_NONE ? bound : lth_dim_upper_bound(infer->dims, bound));
	return LTH_OK;
}

/* The axes of a collected output behind its length: the slice's, or, where the body decides them, symbols that each turn
 * sets, all to the same. */
static void slice_axes(struct lth_infer *infer, uint32_t output, const struct lth_type *slice, lth_dim *out)
{
	for (uint32_t axis = 0; axis < slice->rank; axis++) {
		out[axis] = slice->dims[axis];
		if (!lth_dim_depends_on_data(infer->dims, slice->dims[axis]))
			continue;
		const char *what = lth_arena_printf(infer->graph->arena, "slice%u.%u", output, axis);
		out[axis] = lth_infer_data_dim(infer, what, lth_dim_upper_bound(infer->dims, slice->dims[axis]));
	}
}

static enum lth_code infer_loop(struct lth_infer *infer)
{
	lth_region_id body = lth_control_region(infer->node, "body");
	uint32_t num_carried = infer->node->num_inputs > 2 ? infer->node->num_inputs - 2 : 0;
	const struct lth_region *region = &infer->graph->regions[body];
	if (region->num_inputs != num_carried + 2 || region->num_outputs < num_carried + 1 ||
	    infer->node->num_outputs > region->num_outputs - 1)
		return lth_infer_reject(infer, "a body that takes and gives what the node does",
					"%u inputs and %u outputs for %u carried values", region->num_inputs,
					region->num_outputs, num_carried);
	struct lth_type *types = lth_arena_array(infer->graph->arena, num_carried + 1, sizeof(*types));
	struct lth_type counter = lth_type_tensor(infer->graph, LTH_DTYPE_I64, 0, NULL);
	struct lth_type flag = lth_type_tensor(infer->graph, LTH_DTYPE_BOOL, 0, NULL);
	if (!types)
		return lth_infer_exhausted(infer);
	for (uint32_t i = 0; i < num_carried; i++)
		types[i] = infer->graph->values[infer->node->inputs[i + 2]].type;
	set_type(infer, region->inputs[0], &counter);
	set_type(infer, region->inputs[1], &flag);
	const struct lth_contents *trips = lth_node_input(infer->node, 0) == LTH_NONE
						   ? NULL
						   : lth_value_contents(infer->graph, infer->node->inputs[0]);
	lth_dim most = trips && trips->dims && trips->count == 1 ? trips->dims[0] : LTH_DIM_NONE;
	set_number(infer, region->inputs[0], turn_symbol(infer, most));
	set_number(infer, infer->graph->regions[body].inputs[1], lth_dim_const(infer->dims, 1)); /* or it would not run */
	enum lth_code code = infer_body(infer, body, 2, 1, num_carried, types);
	lth_dim turns = LTH_DIM_NONE;
	if (!code)
		code = check_condition(infer, body);
	if (!code)
		code = count_turns(infer, body, &turns);
	for (uint32_t k = 0; k < infer->node->num_outputs && !code; k++) {
		if (k < num_carried) {
			code = lth_infer_output_type(infer, k, &types[k]);
			if (!code)
				code = lth_control_unwrap(infer, body, k + 1, k);
			continue;
		}
		struct lth_type slice = infer->graph->values[infer->graph->regions[body].outputs[k + 1]].type;
		lth_dim dims[LTH_MAX_RANK] = {turns};
		if (slice.kind != LTH_TYPE_TENSOR || slice.rank + 1 > LTH_MAX_RANK)
			return lth_infer_unsupported(infer, NULL, "output %u collects something else than tensors", k);
		slice_axes(infer, k, &slice, dims + 1);
		code = lth_infer_output(infer, k, slice.dtype, slice.rank + 1, dims);
	}
	return code;
}

const struct lth_op_impl lth_impl_loop = {.infer = infer_loop};

/* ---- Scan ---- */

static int64_t list_entry(const struct lth_node *node, const char *name, uint32_t index)
{
	const int64_t *list;
	uint32_t count;
	return lth_node_ints(node, name, &list, &count) && index < count ? list[index] : 0;
}

/* Axes and directions: one for each scanned input or output; a direction is 0 or 1. */
static enum lth_code check_scan_lists(struct lth_infer *infer, uint32_t inputs, uint32_t outputs)
{
	static const struct {
		const char *name;
		bool output, direction;
	} lists[] = {{"scan_input_axes", false, false},
		     {"scan_input_directions", false, true},
		     {"scan_output_axes", true, false},
		     {"scan_output_directions", true, true}};
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		const int64_t *list;
		uint32_t count, wanted = lists[i].output ? outputs : inputs;
		if (!lth_node_ints(infer->node, lists[i].name, &list, &count))
			continue;
		if (count != wanted)
			return lth_infer_reject(infer, lth_arena_printf(infer->graph->arena, "%u", wanted), "%u entries in %s",
						count, lists[i].name);
		for (uint32_t k = 0; k < count && lists[i].direction; k++)
			if (list[k] != 0 && list[k] != 1)
				return lth_infer_reject(infer, "0 or 1", "%lld in %s", (long long)list[k], lists[i].name);
	}
	return LTH_OK;
}

static enum lth_code infer_scan(struct lth_infer *infer)
{
	lth_region_id body = lth_control_region(infer->node, "body");
	int64_t scanned = lth_op_int(infer->node, "num_scan_inputs");
	uint32_t inputs = infer->node->num_inputs;
	const struct lth_region *region = &infer->graph->regions[body];
	if (scanned < 1 || scanned > inputs || region->num_inputs != inputs)
		return lth_infer_reject(infer, "at least one scanned input, and a body that takes them all",
					"num_scan_inputs %lld of %u inputs, %u in the body", (long long)scanned, inputs,
					region->num_inputs);
	uint32_t states = inputs - (uint32_t)scanned;
	if (region->num_outputs < states || infer->node->num_outputs > region->num_outputs)
		return lth_infer_reject(infer, "a body that gives back its states", "%u outputs for %u states",
					region->num_outputs, states);
	enum lth_code listed = check_scan_lists(infer, (uint32_t)scanned, region->num_outputs - states);
	if (listed)
		return listed;
	struct lth_type *types = lth_arena_array(infer->graph->arena, inputs + 1, sizeof(*types));
	lth_dim length = LTH_DIM_NONE;
	if (!types)
		return lth_infer_exhausted(infer);
	for (uint32_t i = 0; i < inputs; i++) {
		types[i] = infer->graph->values[infer->node->inputs[i]].type;
		if (i < states)
			continue;
		uint32_t axis;
		enum lth_code code = lth_infer_axis(infer, list_entry(infer->node, "scan_input_axes", i - states),
						    types[i].rank, &axis);
		if (!code && length != LTH_DIM_NONE)
			code = lth_infer_require(infer, LTH_REL_EQ, types[i].dims[axis], length, "scanned inputs of one length");
		if (code)
			return code;
		length = length == LTH_DIM_NONE ? types[i].dims[axis] : length;
		turn_symbol(infer, length);
		lth_dim dims[LTH_MAX_RANK];
		memcpy(dims, types[i].dims, axis * sizeof(*dims));
		memcpy(dims + axis, types[i].dims + axis + 1, (types[i].rank - axis - 1) * sizeof(*dims));
		struct lth_type slice = lth_type_tensor(infer->graph, types[i].dtype, types[i].rank - 1, dims);
		set_type(infer, infer->graph->regions[body].inputs[i], &slice);
	}
	enum lth_code code = infer_body(infer, body, 0, 0, states, types);
	for (uint32_t k = 0; k < infer->node->num_outputs && !code; k++) {
		if (k < states) {
			code = lth_infer_output_type(infer, k, &types[k]);
			continue;
		}
		struct lth_type slice = infer->graph->values[infer->graph->regions[body].outputs[k]].type;
		lth_dim dims[LTH_MAX_RANK];
		uint32_t axis;
		if (slice.rank + 1 > LTH_MAX_RANK)
			return lth_infer_unsupported(infer, NULL, "output %u of rank %u", k, slice.rank + 1);
		code = lth_infer_axis(infer, list_entry(infer->node, "scan_output_axes", k - states), slice.rank + 1, &axis);
		if (code)
			return code;
		slice_axes(infer, k, &slice, dims);
		memmove(dims + axis + 1, dims + axis, (slice.rank - axis) * sizeof(*dims));
		dims[axis] = length;
		code = lth_infer_output(infer, k, slice.dtype, slice.rank + 1, dims);
	}
	return code;
}

const struct lth_op_impl lth_impl_scan = {.infer = infer_scan};
