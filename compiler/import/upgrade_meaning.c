/* Changes of what an operator computes: the old meaning is written with the newest operators. */
#include "compiler/import/upgrade.h"

#include <stdlib.h>
#include <string.h>

/* Before 7 the second operand stood at `axis` of the first: axes of extent 1 behind it do the same. */
enum lth_code lth_up_broadcast(struct lth_importer *importer, struct lth_draft *draft, const char *detail)
{
	(void)detail;
	bool placed = lth_draft_find(draft, "axis") && lth_up_int_attr(draft, "broadcast", 0) != 0;
	int64_t axis = lth_up_int_attr(draft, "axis", 0), axes[LTH_MAX_RANK];
	lth_draft_drop(draft, "axis");
	lth_draft_drop(draft, "broadcast");
	if (!placed || draft->num_inputs != 2)
		return LTH_OK;
	const struct lth_type *a = lth_up_ranked(importer, draft->inputs[0]),
			      *b = lth_up_ranked(importer, draft->inputs[1]);
	if (!a || !b)
		return lth_up_unsupported(importer, draft,
					  "broadcasting at an axis of an input whose rank is not known");
	axis += axis < 0 ? a->rank : 0;
	if (axis < 0 || axis > a->rank || b->rank > a->rank - (uint32_t)axis)
		return lth_up_fail(importer, draft, "an axis at which the second input fits", "another axis");
	uint32_t behind = a->rank - (uint32_t)axis - b->rank;
	for (uint32_t i = 0; i < behind; i++)
		axes[i] = (int64_t)b->rank + i;
	if (behind == 0)
		return LTH_OK;
	const lth_value_id inputs[2] = {draft->inputs[1], lth_up_ints(importer, draft, "axes", axes, behind)};
	return lth_up_emit(importer, draft, "Unsqueeze", inputs, 2, NULL, 0, &draft->inputs[1]);
}

/* Before 7 a slope of one axis was a slope a channel, axis 1. */
enum lth_code lth_up_channel_slope(struct lth_importer *importer, struct lth_draft *draft, const char *detail)
{
	int64_t axes[LTH_MAX_RANK];
	(void)detail;
	const struct lth_type *x = lth_up_ranked(importer, lth_up_input(draft, 0));
	const struct lth_type *slope = lth_up_ranked(importer, lth_up_input(draft, 1));
	if (!slope || slope->rank != 1)
		return LTH_OK;
	if (!x)
		return lth_up_unsupported(importer, draft,
					  "a slope for each channel of an input whose rank is not known");
	for (uint32_t i = 2; i < x->rank; i++)
		axes[i - 2] = (int64_t)i - 1;
	if (x->rank <= 2)
		return LTH_OK;
	const lth_value_id inputs[2] = {draft->inputs[1], lth_up_ints(importer, draft, "axes", axes, x->rank - 2)};
	return lth_up_emit(importer, draft, "Unsqueeze", inputs, 2, NULL, 0, &draft->inputs[1]);
}

/* Whether rows of the flattened form are the last axis alone (or nothing but ones follows), and which axis that is. */
static bool one_axis(const struct lth_importer *importer, const struct lth_type *type, int64_t *axis)
{
	int64_t extent;
	if (!type)
		return *axis == -1;
	int64_t at = *axis + (*axis < 0 ? type->rank : 0);
	if (at < 0 || at >= type->rank)
		return true; /* stays as it is, for the operator's own rule to refuse */
	*axis = at;
	for (int64_t i = at + 1; i < type->rank; i++)
		if (!lth_dim_is_const(importer->graph->dims, type->dims[i], &extent) || extent != 1)
			return false;
	return true;
}

/* Softmax and its relatives worked on rows of the input flattened to two axes at `axis`. */
enum lth_code lth_up_flat_rows(struct lth_importer *importer, struct lth_draft *draft, const char *detail)
{
	int64_t axis = lth_up_int_attr(draft, "axis", 1);
	lth_value_id x = lth_up_input(draft, 0), flat, shape, rows;
	const char *op = draft->op;
	enum lth_code code;
	(void)detail;
	if (x == LTH_NONE)
		return LTH_OK;
	if (one_axis(importer, lth_up_ranked(importer, x), &axis))
		return lth_up_set_int(importer, draft, "axis", axis);
	const struct lth_attr at = lth_up_attr_int("axis", axis), last = lth_up_attr_int("axis", -1);
	if ((code = lth_up_emit(importer, draft, "Flatten", &x, 1, &at, 1, &flat)) ||
	    (code = lth_up_emit(importer, draft, op, &flat, 1, &last, 1, &rows)) ||
	    (code = lth_up_emit(importer, draft, "Shape", &x, 1, NULL, 0, &shape)))
		return code;
	const lth_value_id back[2] = {rows, shape};
	return lth_up_finish(importer, draft, "Reshape", back, 2, NULL, 0);
}

static bool uses_output(const struct lth_draft *draft, uint32_t from)
{
	for (uint32_t i = from; i < draft->num_outputs; i++)
		if (draft->outputs[i] != LTH_NONE)
			return true;
	return false;
}

/* ---- Scan ---- */

/* The Scan of one batch entry: the old body over axis 0, in a region whose inputs are the entry's slices. */
static enum lth_code scan_of_entry(struct lth_importer *importer, const struct lth_draft *draft, lth_region_id region)
{
	struct lth_draft inner = {.domain = "", .op = "Scan", .version = 9, .region = region};
	const struct lth_attr *body = lth_draft_find(draft, "body"), *directions = lth_draft_find(draft, "directions");
	const struct lth_attr count = lth_up_attr_int("num_scan_inputs", lth_up_int_attr(draft, "num_scan_inputs", 0));
	inner.name = lth_arena_printf(importer->arena, "%s.entry", draft->name);
	bool ok = inner.name && lth_draft_attr(importer, &inner, body) && lth_draft_attr(importer, &inner, &count);
	if (ok && directions) {
		struct lth_attr renamed = *directions;
		renamed.name = "scan_input_directions";
		ok = lth_draft_attr(importer, &inner, &renamed);
	}
	for (uint32_t i = 1; i < draft->num_inputs && ok; i++) {
		const char *name = importer->graph->values[draft->inputs[i]].name;
		lth_value_id slice = lth_graph_input(importer->graph, region, name, NULL);
		ok = slice != LTH_NONE && lth_draft_input(importer, &inner, slice);
	}
	for (uint32_t i = 0; i < draft->num_outputs && ok; i++) {
		lth_value_id result = lth_graph_value(importer->graph, inner.name, NULL);
		ok = result != LTH_NONE && lth_draft_output(importer, &inner, result) &&
		     lth_graph_output(importer->graph, region, result);
	}
	return ok ? lth_importer_emit(importer, &inner) : lth_importer_memory(importer);
}

/* Version 8 had a batch axis before all others: a Scan over the batch whose body is the Scan of one entry. */
enum lth_code lth_up_scan_batches(struct lth_importer *importer, struct lth_draft *draft, const char *detail)
{
	struct lth_attr body = {.name = "body", .kind = LTH_ATTR_REGION, .count = 1};
	(void)detail;
	if (!lth_draft_find(draft, "body") || draft->num_inputs < 2)
		return lth_up_fail(importer, draft, "a body, and inputs behind sequence_lens", "others");
	if (draft->inputs[0] != LTH_NONE)
		return lth_up_unsupported(importer, draft, "input 0 'sequence_lens'");
	for (uint32_t i = 1; i < draft->num_inputs; i++)
		if (draft->inputs[i] == LTH_NONE)
			return lth_up_fail(importer, draft, "all inputs behind sequence_lens", "an absent one");
	body.id = lth_graph_region(importer->graph, LTH_NONE);
	if (body.id == LTH_NONE)
		return lth_importer_memory(importer);
	enum lth_code code = scan_of_entry(importer, draft, body.id);
	if (code)
		return code;
	lth_draft_drop(draft, "directions");
	lth_draft_drop(draft, "body");
	draft->num_inputs--;
	memmove(draft->inputs, draft->inputs + 1, draft->num_inputs * sizeof(*draft->inputs));
	if (!lth_draft_attr(importer, draft, &body))
		return lth_importer_memory(importer);
	return lth_up_set_int(importer, draft, "num_scan_inputs", draft->num_inputs);
}

/* ---- BatchNormalization ---- */

/* Statistics for each element: (x - mean) / sqrt(variance + epsilon) * scale + bias, over the batch. */
static enum lth_code element_norm(struct lth_importer *importer, struct lth_draft *draft)
{
	double epsilon = lth_up_float_attr(draft, "epsilon", 1e-5);
	enum { X, SCALE, BIAS, MEAN, VARIANCE };
	lth_value_id pair[2] = {lth_up_floats(importer, draft, "epsilon", 0, NULL, &epsilon, 1)};
	const lth_value_id *in = draft->inputs;
	enum lth_code code;
	if (draft->num_inputs != VARIANCE + 1)
		return lth_up_fail(importer, draft, "five inputs", "others");
	pair[1] = in[VARIANCE];
	code = lth_up_emit(importer, draft, "CastLike", pair, 2, NULL, 0, &pair[0]);
	if (!code)
		code = lth_up_emit(importer, draft, "Add", pair, 2, NULL, 0, &pair[0]);
	if (!code)
		code = lth_up_emit(importer, draft, "Sqrt", pair, 1, NULL, 0, &pair[1]);
	pair[0] = in[SCALE];
	if (!code)
		code = lth_up_emit(importer, draft, "Div", pair, 2, NULL, 0, &pair[1]);
	lth_value_id centred[2] = {in[X], in[MEAN]};
	if (!code)
		code = lth_up_emit(importer, draft, "Sub", centred, 2, NULL, 0, &pair[0]);
	if (!code)
		code = lth_up_emit(importer, draft, "Mul", pair, 2, NULL, 0, &pair[0]);
	pair[1] = in[BIAS];
	return code ? code : lth_up_finish(importer, draft, "Add", pair, 2, NULL, 0);
}

/* Before 14 further outputs meant training: the running mean and variance, and the batch's own, which are gone now. */
enum lth_code lth_up_batch_norm(struct lth_importer *importer, struct lth_draft *draft, const char *detail)
{
	(void)detail;
	if (uses_output(draft, 3))
		return lth_up_unsupported(importer, draft, "outputs 3 'saved_mean' and 4 'saved_var'");
	bool elements = lth_up_int_attr(draft, "spatial", 1) == 0, training = uses_output(draft, 1);
	if (elements && training)
		return lth_up_unsupported(importer, draft, "training with statistics for each element (spatial = 0)");
	if (elements)
		return element_norm(importer, draft);
	lth_draft_drop(draft, "spatial");
	lth_draft_drop(draft, "is_test");
	if (!training)
		return LTH_OK;
	draft->num_outputs = draft->num_outputs < 3 ? draft->num_outputs : 3;
	return lth_up_set_int(importer, draft, "training_mode", 1);
}

/* A Dropout that cannot be training is the identity; a mask of the data's type became one of bools in 10. */
enum lth_code lth_up_dropout(struct lth_importer *importer, struct lth_draft *draft, const char *detail)
{
	const int64_t *flag = NULL;
	uint32_t count = 0;
	lth_value_id training = draft->version >= 12 ? lth_up_input(draft, 2) : LTH_NONE, mask;
	(void)detail;
	lth_draft_drop(draft, "is_test");
	lth_draft_drop(draft, "ratio");
	if (training != LTH_NONE &&
	    (!lth_value_const_ints(importer->graph, training, &flag, &count) || count != 1 || flag[0] != 0))
		return LTH_OK;
	draft->num_inputs = draft->num_inputs ? 1 : 0;
	if (!uses_output(draft, 1)) {
		lth_draft_drop(draft, "seed");
		draft->num_outputs = draft->num_outputs ? 1 : 0;
		draft->op = "Identity";
		return LTH_OK;
	}
	if (draft->version >= 10)
		return LTH_OK;
	mask = draft->outputs[1];
	draft->outputs[1] = lth_graph_value(importer->graph, importer->graph->values[mask].name, NULL);
	lth_value_id cast[2] = {draft->outputs[1], lth_up_input(draft, 0)};
	draft->version = 13;
	enum lth_code code = cast[0] == LTH_NONE ? lth_importer_memory(importer) : lth_importer_emit(importer, draft);
	if (code)
		return code;
	draft->outputs[0] = mask;
	draft->num_outputs = 1;
	return lth_up_finish(importer, draft, "CastLike", cast, 2, NULL, 0);
}

/* Before 21 scale and bias were one number a group: each is repeated over the channels of its group. */
static enum lth_code per_channel(struct lth_importer *importer, struct lth_draft *draft, uint32_t input,
				 lth_value_id shape)
{
	const int64_t one = 1, all = -1;
	lth_value_id pair[2] = {lth_up_input(draft, input), lth_up_ints(importer, draft, "axes", &one, 1)};
	enum lth_code code = lth_up_emit(importer, draft, "Unsqueeze", pair, 2, NULL, 0, &pair[0]);
	if (code)
		return code;
	pair[1] = shape;
	if ((code = lth_up_emit(importer, draft, "Expand", pair, 2, NULL, 0, &pair[0])))
		return code;
	pair[1] = lth_up_ints(importer, draft, "shape", &all, 1);
	return lth_up_emit(importer, draft, "Reshape", pair, 2, NULL, 0, &draft->inputs[input]);
}

enum lth_code lth_up_group_scale(struct lth_importer *importer, struct lth_draft *draft, const char *detail)
{
	int64_t groups = lth_up_int_attr(draft, "num_groups", 0);
	const struct lth_attr range[2] = {lth_up_attr_int("start", 1), lth_up_attr_int("end", 2)};
	const struct lth_attr axis = lth_up_attr_int("axis", 0);
	lth_value_id shape;
	enum lth_code code;
	(void)detail;
	if (draft->num_inputs != 3 || groups < 1)
		return lth_up_fail(importer, draft, "three inputs and num_groups of at least 1", "others");
	lth_value_id x = draft->inputs[0], list[2] = {LTH_NONE, lth_up_ints(importer, draft, "groups", &groups, 1)};
	if ((code = lth_up_emit(importer, draft, "Shape", &x, 1, range, 2, &list[0])) ||
	    (code = lth_up_emit(importer, draft, "Div", list, 2, NULL, 0, &shape)))
		return code;
	const lth_value_id parts[2] = {list[1], shape};
	if ((code = lth_up_emit(importer, draft, "Concat", parts, 2, &axis, 1, &shape)) ||
	    (code = per_channel(importer, draft, 1, shape)))
		return code;
	return per_channel(importer, draft, 2, shape);
}

/* Tile's first form repeated one axis. */
enum lth_code lth_up_tile_axis(struct lth_importer *importer, struct lth_draft *draft, const char *detail)
{
	const int64_t *tiles, *axis;
	int64_t repeats[LTH_MAX_RANK];
	uint32_t tiles_count, axis_count;
	(void)detail;
	const struct lth_type *x = lth_up_ranked(importer, lth_up_input(draft, 0));
	if (draft->num_inputs != 3)
		return lth_up_fail(importer, draft, "input, tiles and axis", "other inputs");
	if (!x || !lth_value_const_ints(importer->graph, draft->inputs[1], &tiles, &tiles_count) ||
	    !lth_value_const_ints(importer->graph, draft->inputs[2], &axis, &axis_count))
		return lth_up_unsupported(importer, draft, "the first form with tiles or axis that are not constant");
	if (tiles_count != 1 || axis_count != 1 || axis[0] < 0 || axis[0] >= x->rank)
		return lth_up_fail(importer, draft, "one count, and an axis of the input", "others");
	for (uint32_t i = 0; i < x->rank; i++)
		repeats[i] = i == axis[0] ? tiles[0] : 1;
	draft->num_inputs = 1;
	return lth_up_set_input(importer, draft, 1, lth_up_ints(importer, draft, "repeats", repeats, x->rank));
}

/* The tensors that attributes name ("attribute attribute ..."), one or a list each, behind the inputs. */
enum lth_code lth_up_named_tensors(struct lth_importer *importer, struct lth_draft *draft, const char *detail)
{
	char name[LTH_UP_WORD];
	while (lth_up_word(&detail, name)) {
		const struct lth_attr *attr = lth_draft_find(draft, name);
		bool list = attr && attr->kind == LTH_ATTR_STRINGS;
		if (attr && !list && attr->kind != LTH_ATTR_STRING)
			return lth_up_fail(importer, draft, "names of tensors", name);
		for (uint32_t i = 0; attr && i < attr->count; i++) {
			const struct lth_string *text = list ? &attr->strings[i] : &attr->s;
			const char *tensor = lth_arena_strndup(importer->arena, text->data, text->size);
			lth_value_id value = tensor ? lth_graph_find_value(importer->graph, tensor) : LTH_NONE;
			if (tensor && value == LTH_NONE)
				return lth_up_fail(importer, draft, "the name of a tensor computed before", tensor);
			if (!lth_draft_input(importer, draft, value))
				return lth_importer_memory(importer);
		}
	}
	return LTH_OK;
}
