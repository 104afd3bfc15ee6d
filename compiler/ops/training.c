/* Steps of optimisers (ai.onnx.preview.training), written out as arithmetic that fuses into one kernel a tensor. Inputs
 * are the rate R, the count of updates T, then the tensors X, their gradients G and their states, each a list of equal
 * length; outputs are the new X and the new states. */
#include "compiler/ops/build.h"
#include "compiler/ops/family.h"

enum { RATE, UPDATES, FIRST_TENSOR };

/* One tensor of the step, and scalars of its element type. */
struct step {
	enum lth_dtype dtype;
	lth_value_id rate, updates; /* R and T */
	lth_value_id x, gradient;   /* the gradient with its penalty */
};

static lth_value_id add(struct lth_infer *infer, lth_value_id a, lth_value_id b)
{
	return lth_build2(infer, LTH_OP_ID_Add, a, b);
}

static lth_value_id sub(struct lth_infer *infer, lth_value_id a, lth_value_id b)
{
	return lth_build2(infer, LTH_OP_ID_Sub, a, b);
}

static lth_value_id mul(struct lth_infer *infer, lth_value_id a, lth_value_id b)
{
	return lth_build2(infer, LTH_OP_ID_Mul, a, b);
}

static lth_value_id divide(struct lth_infer *infer, lth_value_id a, lth_value_id b)
{
	return lth_build2(infer, LTH_OP_ID_Div, a, b);
}

static lth_value_id scaled(struct lth_infer *infer, const struct step *step, lth_value_id a, double factor)
{
	return mul(infer, a, lth_build_scalar(infer, step->dtype, factor));
}

/* How many tensors a node optimises, each with `states` states. */
static enum lth_code count_tensors(struct lth_infer *infer, uint32_t states, uint32_t *out_count)
{
	uint32_t lists = infer->node->num_inputs - FIRST_TENSOR, count = lists / (2 + states);
	if (lists % (2 + states) || infer->node->num_outputs > count * (1 + states))
		return lth_infer_reject(infer, "R, T, then as many gradients and states as tensors",
					"%u inputs and %u outputs", infer->node->num_inputs, infer->node->num_outputs);
	*out_count = count;
	return LTH_OK;
}

static struct step begin_step(struct lth_infer *infer, uint32_t tensor, uint32_t count)
{
	double penalty = lth_op_float(infer->node, "norm_coefficient");
	struct step step = {.x = lth_node_input(infer->node, FIRST_TENSOR + tensor)};
	lth_value_id gradient = lth_node_input(infer->node, FIRST_TENSOR + count + tensor);
	lth_value_id rate = lth_node_input(infer->node, RATE), updates = lth_node_input(infer->node, UPDATES);
	step.dtype = infer->graph->values[step.x].type.dtype;
	step.rate = lth_build_cast(infer, rate, step.dtype);
	step.updates = lth_build_cast(infer, updates, step.dtype);
	step.gradient = penalty == 0 ? gradient : add(infer, scaled(infer, &step, step.x, penalty), gradient);
	return step;
}

static lth_value_id state_of(struct lth_infer *infer, uint32_t state, uint32_t tensor, uint32_t count)
{
	return lth_node_input(infer->node, FIRST_TENSOR + (2 + state) * count + tensor);
}

/* T > 0 ? later : first */
static lth_value_id after_first(struct lth_infer *infer, const struct step *step, lth_value_id later,
				lth_value_id first)
{
	lth_value_id zero = lth_build_scalar(infer, step->dtype, 0);
	lth_value_id updated = lth_build2(infer, LTH_OP_ID_Greater, step->updates, zero);
	return lth_build(infer, LTH_OP_ID_Where, (lth_value_id[]){updated, later, first}, 3, NULL, 0);
}

static enum lth_code expand_momentum(struct lth_infer *infer)
{
	uint32_t count = 0;
	double alpha = lth_op_float(infer->node, "alpha"), beta = lth_op_float(infer->node, "beta");
	bool nesterov = lth_op_string_is(infer->node, "mode", "nesterov");
	enum lth_code code = count_tensors(infer, 1, &count);
	for (uint32_t i = 0; !code && i < count; i++) {
		struct step s = begin_step(infer, i, count);
		lth_value_id later = lth_build_scalar(infer, s.dtype, beta),
			     first = lth_build_scalar(infer, s.dtype, 1);
		lth_value_id fresh = mul(infer, s.gradient, after_first(infer, &s, later, first));
		lth_value_id velocity = add(infer, scaled(infer, &s, state_of(infer, 0, i, count), alpha), fresh);
		lth_value_id direction =
			nesterov ? add(infer, s.gradient, scaled(infer, &s, velocity, alpha)) : velocity;
		lth_build_output(infer, i, sub(infer, s.x, mul(infer, s.rate, direction)));
		lth_build_output(infer, count + i, velocity);
	}
	return code;
}

const struct lth_op_impl lth_impl_momentum = {.expand = expand_momentum};

static enum lth_code expand_adagrad(struct lth_infer *infer)
{
	uint32_t count = 0;
	double decay = lth_op_float(infer->node, "decay_factor"), epsilon = lth_op_float(infer->node, "epsilon");
	enum lth_code code = count_tensors(infer, 1, &count);
	for (uint32_t i = 0; !code && i < count; i++) {
		struct step s = begin_step(infer, i, count);
		lth_value_id one = lth_build_scalar(infer, s.dtype, 1);
		lth_value_id rate = divide(infer, s.rate, add(infer, one, scaled(infer, &s, s.updates, decay)));
		lth_value_id square = mul(infer, s.gradient, s.gradient);
		lth_value_id sum = add(infer, state_of(infer, 0, i, count), square);
		lth_value_id root = lth_build1(infer, LTH_OP_ID_Sqrt, sum);
		lth_value_id divisor = add(infer, root, lth_build_scalar(infer, s.dtype, epsilon));
		lth_value_id change = divide(infer, mul(infer, rate, s.gradient), divisor);
		lth_build_output(infer, i, sub(infer, s.x, change));
		lth_build_output(infer, count + i, sum);
	}
	return code;
}

const struct lth_op_impl lth_impl_adagrad = {.expand = expand_adagrad};

/* R * sqrt(1 - beta^T) / (1 - alpha^T), but R before the first update. */
static lth_value_id adam_rate(struct lth_infer *infer, const struct step *s, double alpha, double beta)
{
	lth_value_id one = lth_build_scalar(infer, s->dtype, 1);
	lth_value_id beta_power = lth_build2(infer, LTH_OP_ID_Pow, lth_build_scalar(infer, s->dtype, beta), s->updates);
	lth_value_id alpha_power =
		lth_build2(infer, LTH_OP_ID_Pow, lth_build_scalar(infer, s->dtype, alpha), s->updates);
	lth_value_id root = lth_build1(infer, LTH_OP_ID_Sqrt, sub(infer, one, beta_power));
	lth_value_id divisor = sub(infer, one, alpha_power);
	lth_value_id corrected = divide(infer, mul(infer, s->rate, root), divisor);
	return after_first(infer, s, corrected, s->rate);
}

static enum lth_code expand_adam(struct lth_infer *infer)
{
	uint32_t count = 0;
	double alpha = lth_op_float(infer->node, "alpha"), beta = lth_op_float(infer->node, "beta");
	double epsilon = lth_op_float(infer->node, "epsilon");
	double shrink = lth_op_float(infer->node, "norm_coefficient_post");
	enum lth_code code = count_tensors(infer, 2, &count);
	for (uint32_t i = 0; !code && i < count; i++) {
		struct step s = begin_step(infer, i, count);
		lth_value_id mean = scaled(infer, &s, state_of(infer, 0, i, count), alpha);
		mean = add(infer, mean, scaled(infer, &s, s.gradient, 1 - alpha));
		lth_value_id square = scaled(infer, &s, state_of(infer, 1, i, count), beta);
		lth_value_id fresh = mul(infer, s.gradient, s.gradient);
		square = add(infer, square, scaled(infer, &s, fresh, 1 - beta));
		lth_value_id root = lth_build1(infer, LTH_OP_ID_Sqrt, square);
		lth_value_id divisor = add(infer, root, lth_build_scalar(infer, s.dtype, epsilon));
		lth_value_id change = divide(infer, mul(infer, adam_rate(infer, &s, alpha, beta), mean), divisor);
		lth_value_id x = sub(infer, s.x, change);
		lth_build_output(infer, i, shrink == 0 ? x : scaled(infer, &s, x, 1 - shrink));
		lth_build_output(infer, count + i, mean);
		lth_build_output(infer, 2 * count + i, square);
	}
	return code;
}

const struct lth_op_impl lth_impl_adam = {.expand = expand_adam};
