/* LSTM, GRU and RNN: inference and the description for the template, which is their only lowering. With `layout` 1 the
 * batch comes first; that form is the other one between transpositions. */
#include "compiler/ops/recurrent.h"
#include "compiler/ops/build.h"
#include "compiler/ops/family.h"

#include <string.h>

enum {
	X = LTH_RECURRENT_X,
	W = LTH_RECURRENT_W,
	R = LTH_RECURRENT_R,
	B = LTH_RECURRENT_B,
	LENGTHS = LTH_RECURRENT_LENGTHS,
	INITIAL_H = LTH_RECURRENT_INITIAL_H,
	INITIAL_C = LTH_RECURRENT_INITIAL_C,
	PEEPHOLES = LTH_RECURRENT_PEEPHOLES
};

static enum lth_cell cell_of(const struct lth_node *node)
{
	enum lth_op_id id = lth_op_id(node->op);
	return id == LTH_OP_ID_GRU ? LTH_CELL_GRU : id == LTH_OP_ID_RNN ? LTH_CELL_RNN : LTH_CELL_LSTM;
}

static uint32_t gate_count(const struct lth_node *node)
{
	enum lth_cell cell = cell_of(node);
	return cell == LTH_CELL_LSTM ? 4 : cell == LTH_CELL_GRU ? 3 : 1;
}

uint32_t lth_recurrent_directions(const struct lth_node *node)
{
	return lth_op_string_is(node, "direction", "bidirectional") ? 2 : 1;
}

/* ---- activations ---- */

/* Names in lower case; the defaults of alpha and beta are ONNX's. */
static const struct {
	const char *name;
	enum lth_activation activation;
	double alpha, beta;
} activations[] = {
	{"sigmoid", LTH_ACT_SIGMOID, 0, 0},
	{"tanh", LTH_ACT_TANH, 0, 0},
	{"relu", LTH_ACT_RELU, 0, 0},
	{"affine", LTH_ACT_AFFINE, 1, 0},
	{"leakyrelu", LTH_ACT_LEAKY_RELU, 0.01, 0},
	{"thresholdedrelu", LTH_ACT_THRESHOLDED_RELU, 1, 0},
	{"scaledtanh", LTH_ACT_SCALED_TANH, 1, 1},
	{"hardsigmoid", LTH_ACT_HARD_SIGMOID, 0.2, 0.5},
	{"elu", LTH_ACT_ELU, 1, 0},
	{"softsign", LTH_ACT_SOFTSIGN, 0, 0},
	{"softplus", LTH_ACT_SOFTPLUS, 0, 0},
};
enum { NUM_ACTIVATIONS = sizeof(activations) / sizeof(*activations) };

static uint32_t find_activation(const struct lth_string *name)
{
	for (uint32_t i = 0; i < NUM_ACTIVATIONS; i++) {
		size_t k = 0;
		while (k < name->size && activations[i].name[k] &&
		       (name->data[k] | 0x20) == activations[i].name[k])
			k++;
		if (k == name->size && !activations[i].name[k])
			return i;
	}
	return NUM_ACTIVATIONS;
}

/* f, g, h of each direction; LSTM uses three, GRU two, RNN one. */
static uint32_t activations_per_direction(const struct lth_node *node)
{
	enum lth_cell cell = cell_of(node);
	return cell == LTH_CELL_LSTM ? 3 : cell == LTH_CELL_GRU ? 2 : 1;
}

static enum lth_code check_activations(struct lth_infer *infer)
{
	const struct lth_attr *names = lth_node_attr(infer->node, "activations");
	uint32_t wanted = lth_recurrent_directions(infer->node) * activations_per_direction(infer->node);
	if (!names)
		return LTH_OK;
	if (names->count != wanted)
		return lth_infer_reject(infer, lth_arena_printf(infer->graph->arena, "%u", wanted), "%u activations",
					names->count);
	for (uint32_t i = 0; i < wanted; i++)
		if (find_activation(&names->strings[i]) == NUM_ACTIVATIONS)
			return lth_infer_reject(infer, "an activation of the ONNX specification", "activation '%.*s'",
						(int)names->strings[i].size, names->strings[i].data);
	return LTH_OK;
}

void lth_recurrent_activations(const struct lth_node *node, struct lth_recurrent *out)
{
	const struct lth_attr *names = lth_node_attr(node, "activations");
	const struct lth_attr *alphas = lth_node_attr(node, "activation_alpha");
	const struct lth_attr *betas = lth_node_attr(node, "activation_beta");
	uint32_t per = activations_per_direction(node), alpha = 0, beta = 0;
	bool rnn = cell_of(node) == LTH_CELL_RNN;
	for (uint32_t d = 0; d < out->directions; d++)
		for (uint32_t i = 0; i < per; i++) {
			uint32_t k = names ? find_activation(&names->strings[d * per + i]) : rnn || i > 0;
			out->activations[d][i] = activations[k].activation;
			out->alpha[d][i] = activations[k].alpha;
			out->beta[d][i] = activations[k].beta;
			/* The lists hold values only for activations that have the parameter, in order. */
			if (activations[k].alpha != 0 && alphas && alpha < alphas->count)
				out->alpha[d][i] = alphas->floats[alpha++];
			bool has_beta = activations[k].beta != 0 || activations[k].activation == LTH_ACT_AFFINE;
			if (has_beta && betas && beta < betas->count)
				out->beta[d][i] = betas->floats[beta++];
		}
}

/* ---- inference ---- */

enum lth_code lth_recurrent_need_shape(struct lth_infer *infer, uint32_t input, const lth_dim *shape, uint32_t rank)
{
	if (!lth_infer_type(infer, input))
		return LTH_OK;
	enum lth_code code = lth_infer_need_rank(infer, input, rank, rank);
	for (uint32_t i = 0; !code && i < rank; i++)
		code = lth_infer_require(
			infer, LTH_REL_EQ, lth_infer_dim(infer, input, i), shape[i],
			lth_arena_printf(infer->graph->arena, "axis %u of input %u as the others imply", i, input));
	return code;
}

static enum lth_code check_attributes(struct lth_infer *infer, lth_dim hidden)
{
	int64_t given = lth_node_int(infer->node, "hidden_size", 0);
	double clip = lth_node_float(infer->node, "clip", 0);
	enum lth_code code = LTH_OK;
	if (lth_node_attr(infer->node, "hidden_size") && (given < 1 || given > INT32_MAX))
		return lth_infer_reject(infer, "1 or more", "hidden_size %lld", (long long)given);
	if (given)
		code = lth_infer_require(infer, LTH_REL_EQ, hidden, lth_dim_const(infer->dims, given),
					 "hidden_size as the weights'");
	if (!code && !(clip >= 0))
		code = lth_infer_reject(infer, "a limit above 0", "clip %g", clip);
	return code ? code : check_activations(infer);
}

enum lth_code lth_recurrent_check(struct lth_infer *infer, lth_dim batch, lth_dim hidden, bool turned)
{
	struct lth_dims *dims = infer->dims;
	lth_dim directions = lth_dim_const(dims, lth_recurrent_directions(infer->node)),
		gates = lth_dim_const(dims, gate_count(infer->node));
	lth_dim rows = lth_dim_mul(dims, gates, hidden), input = lth_infer_dim(infer, X, 2);
	lth_dim both = lth_dim_mul(dims, rows, lth_dim_const(dims, 2)),
		three = lth_dim_mul(dims, hidden, lth_dim_const(dims, 3));
	const struct {
		uint32_t rank;
		lth_dim shape[3];
	} wanted[] = {
		[W] = {3, {directions, turned ? input : rows, turned ? rows : input}},
		[R] = {3, {directions, turned ? hidden : rows, turned ? rows : hidden}},
		[B] = {2, {directions, both}},
		[LENGTHS] = {1, {batch}},
		[INITIAL_H] = {3, {directions, batch, hidden}},
		[INITIAL_C] = {3, {directions, batch, hidden}},
		[PEEPHOLES] = {2, {directions, three}},
	};
	enum lth_code code = LTH_OK;
	for (uint32_t i = W; !code && i <= PEEPHOLES; i++)
		code = lth_recurrent_need_shape(infer, i, wanted[i].shape, wanted[i].rank);
	return code ? code : check_attributes(infer, hidden);
}

/* Input `input` transposed, or absent as it was. */
static lth_value_id transposed(struct lth_infer *infer, uint32_t input, const int64_t *perm)
{
	lth_value_id id = lth_node_input(infer->node, input);
	return id == LTH_NONE ? id : lth_build_transpose(infer, id, perm, 3);
}

/* Batch first: X and the states are transposed before, Y and the states behind. */
static enum lth_code expand_batch_first(struct lth_infer *infer)
{
	static const int64_t swap[] = {1, 0, 2}, y_perm[] = {2, 0, 1, 3};
	lth_value_id inputs[8];
	uint32_t num_inputs = infer->node->num_inputs, num_outputs = infer->node->num_outputs;
	for (uint32_t i = 0; i < num_inputs; i++)
		inputs[i] = i == X || i == INITIAL_H || i == INITIAL_C ? transposed(infer, i, swap)
								       : infer->node->inputs[i];
	if (infer->failed)
		return infer->failed;
	struct lth_attr *attrs = lth_arena_array(infer->graph->arena, infer->node->num_attrs, sizeof(*attrs));
	uint32_t num_attrs = 0;
	for (uint32_t i = 0; attrs && i < infer->node->num_attrs; i++)
		if (strcmp(infer->node->attrs[i].name, "layout") != 0)
			attrs[num_attrs++] = infer->node->attrs[i];
	lth_value_id outputs[3];
	bool wanted[3];
	for (uint32_t i = 0; i < num_outputs; i++)
		wanted[i] = lth_build_wants(infer, i);
	lth_build_many(infer, lth_op_id(infer->node->op), inputs, num_inputs, attrs, num_attrs, wanted, outputs,
		       num_outputs);
	for (uint32_t i = 0; !infer->failed && i < num_outputs; i++)
		if (wanted[i])
			lth_build_output(infer, i,
					 lth_build_transpose(infer, outputs[i], i ? swap : y_perm, i ? 3 : 4));
	return infer->failed;
}

static enum lth_code infer_recurrent(struct lth_infer *infer)
{
	enum lth_code code = lth_infer_need_rank(infer, X, 3, 3);
	if (!code)
		code = lth_infer_need_rank(infer, R, 3, 3);
	if (code)
		return code;
	int64_t layout = lth_op_int(infer->node, "layout");
	if (layout == 1)
		return lth_build_expand(infer, expand_batch_first);
	if (layout != 0)
		return lth_infer_reject(infer, "0 or 1", "layout %lld", (long long)layout);
	lth_dim batch = lth_infer_dim(infer, X, 1), hidden = lth_infer_dim(infer, R, 2);
	code = lth_recurrent_check(infer, batch, hidden, false);
	lth_dim directions = lth_dim_const(infer->dims, lth_recurrent_directions(infer->node));
	lth_dim y[4] = {lth_infer_dim(infer, X, 0), directions, batch, hidden};
	if (!code)
		code = lth_infer_output(infer, 0, LTH_NUM_DTYPES, 4, y);
	for (uint32_t i = 1; !code && i < infer->node->num_outputs; i++)
		code = lth_infer_output(infer, i, LTH_NUM_DTYPES, 3, y + 1);
	return code;
}

/* ---- for the template ---- */

static struct lth_operand optional(struct lth_lower *lower, const struct lth_node *node, uint32_t input,
				   lth_value_id *out_value)
{
	*out_value = lth_node_input(node, input);
	return *out_value == LTH_NONE ? (struct lth_operand){.pointer = LTH_LV_NONE}
				      : lth_operand_of(lower, *out_value);
}

static bool recurrent_problem(struct lth_lower *lower, const struct lth_node *node, struct lth_problem *out,
			      struct lth_problem_values *out_values)
{
	struct lth_recurrent *cell = &out->recurrent;
	lth_value_id x = node->inputs[X], r = node->inputs[R];
	const lth_dim *strides = lth_lower_strides(lower, x);
	enum lth_op_id id = lth_op_id(node->op);
	struct lth_dims *dims = lth_lower_graph(lower)->dims;
	cell->cell = cell_of(node);
	cell->directions = lth_recurrent_directions(node);
	cell->reverse = lth_op_string_is(node, "direction", "reverse");
	for (uint32_t i = 0; i < node->num_outputs; i++)
		cell->outputs[i] = node->outputs[i] != LTH_NONE;
	cell->steps = lth_extent_dim(lower, x, 0);
	cell->batch = lth_extent_dim(lower, x, 1);
	cell->input = lth_extent_dim(lower, x, 2);
	cell->hidden = lth_extent_dim(lower, r, 2);
	cell->x_step_stride = strides[0];
	cell->x_batch_stride = strides[1];
	cell->state_dir_stride = lth_dim_mul(dims, cell->batch, cell->hidden);
	cell->state_batch_stride = cell->hidden;
	cell->x = optional(lower, node, X, &out_values->x);
	cell->w = optional(lower, node, W, &out_values->w);
	cell->r = optional(lower, node, R, &out_values->r);
	cell->bias = optional(lower, node, B, &out_values->bias);
	cell->lengths = optional(lower, node, LENGTHS, &out_values->lengths);
	cell->initial_h = optional(lower, node, INITIAL_H, &out_values->initial_h);
	cell->initial_c = optional(lower, node, INITIAL_C, &out_values->initial_c);
	cell->peepholes = optional(lower, node, PEEPHOLES, &out_values->peepholes);
	lth_recurrent_activations(node, cell);
	cell->clip = lth_node_float(node, "clip", 0);
	cell->linear_before_reset = id == LTH_OP_ID_GRU && lth_op_int(node, "linear_before_reset") != 0;
	cell->input_forget = id == LTH_OP_ID_LSTM && lth_op_int(node, "input_forget") != 0;
	out->kind = LTH_PROBLEM_RECURRENT;
	out->compute = lth_compute_dtype(lth_value_dtype(lower, x));
	return true;
}

const struct lth_op_impl lth_impl_recurrent = {.infer = infer_recurrent, .problem = recurrent_problem};
