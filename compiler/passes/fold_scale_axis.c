/* FoldScaleAxis: a scale or an offset by channel behind a convolution or a matrix product goes into its constant
 * weights and bias: (W x + b) s + t is (W s) x + (b s + t). Batch normalisation, which inference writes as arithmetic
 * by channel, vanishes that way. Computed in double and rounded once a step; what is not finite stays as it is. Legal
 * when weights, bias and the channel's numbers are constants and nobody else reads the result in between; within
 * rounding. Thread rule: as the graph's. */
#include "compiler/passes/pass.h"

#include "compiler/passes/rewrite.h"

#include <math.h>
#include <string.h>

LTH_PASS_GRAPH_FN(lth_pass_fold_scale_axis)

/* y = (producer's result) * scale + offset, by channel. */
struct affine {
	double *scale, *offset; /* NULL: all 1, all 0 */
};

/* What the weights of a producer look like: outer x channels x inner elements, the channel of an element given by its
 * place in the middle; of a grouped ConvTranspose there are `groups` such blocks with their channels in turn. */
struct weights {
	lth_value_id value;
	int64_t groups, outer, channels, inner; /* `channels` of one group */
	uint32_t channel_axis;                  /* of the producer's output */
	bool takes_bias;
};

static bool static_shape(const struct lth_graph *graph, lth_value_id value, uint32_t rank, int64_t *out)
{
	if (value == LTH_NONE || graph->values[value].def != LTH_DEF_CONSTANT || graph->values[value].type.rank != rank)
		return false;
	return lth_type_static(graph, &graph->values[value].type, out);
}

static bool describe_weights(const struct lth_graph *graph, const struct lth_node *node, struct weights *out)
{
	int64_t shape[LTH_MAX_RANK];
	lth_value_id value = lth_node_input(node, 1);
	uint32_t rank = graph->values[node->outputs[0]].type.rank;
	*out = (struct weights){.value = value, .groups = 1, .outer = 1, .inner = 1, .channel_axis = 1, .takes_bias = true};
	if (rank < 1 || rank > LTH_MAX_RANK)
		return false;
	switch (lth_op_id(node->op)) {
	case LTH_OP_ID_Conv:
	case LTH_OP_ID_ConvTranspose:
		if (!static_shape(graph, value, rank, shape) || rank < 3)
			return false;
		for (uint32_t axis = 2; axis < rank; axis++)
			out->inner *= shape[axis]; /* the bytes exist: no overflow */
		out->channels = shape[0];
		if (lth_op_id(node->op) == LTH_OP_ID_Conv) {
			out->inner *= shape[1];
			return true;
		}
		out->groups = lth_node_int(node, "group", 1);
		out->channels = shape[1];
		if (out->groups < 1 || shape[0] % out->groups != 0)
			return false;
		out->outer = shape[0] / out->groups;
		return true;
	case LTH_OP_ID_Gemm:
		if (!static_shape(graph, value, 2, shape) || lth_node_float(node, "beta", 1) != 1)
			return false;
		out->outer = lth_node_int(node, "transB", 0) ? 1 : shape[0];
		out->channels = lth_node_int(node, "transB", 0) ? shape[0] : shape[1];
		out->inner = lth_node_int(node, "transB", 0) ? shape[1] : 1;
		return true;
	case LTH_OP_ID_MatMul:
		if (!static_shape(graph, value, 2, shape))
			return false;
		out->outer = shape[0];
		out->channels = shape[1];
		out->channel_axis = rank - 1;
		out->takes_bias = false;
		return true;
	default:
		return false;
	}
}

/* The constant as one number a channel: it must vary along `axis` of a tensor of `rank` axes only. */
static double *by_channel(struct lth_graph *graph, lth_value_id value, uint32_t rank, uint32_t axis, int64_t channels)
{
	int64_t shape[LTH_MAX_RANK];
	if (value == LTH_NONE || graph->values[value].def != LTH_DEF_CONSTANT || graph->values[value].type.rank > rank ||
	    !lth_type_static(graph, &graph->values[value].type, shape))
		return NULL;
	const struct lth_value *entry = &graph->values[value];
	uint32_t own = entry->type.rank;
	bool varies = false;
	for (uint32_t i = 0; i < own; i++) {
		if (shape[i] == 1)
			continue;
		if (rank - own + i != axis || shape[i] != channels)
			return NULL;
		varies = true;
	}
	double *list = lth_arena_array(graph->arena, (size_t)channels, sizeof(*list));
	for (int64_t c = 0; c < channels; c++)
		if (!list || !lth_load_real(entry->type.dtype, entry->constant.data, varies ? c : 0, &list[c]) ||
		    !isfinite(list[c]))
			return NULL;
	return list;
}

/* What the arithmetic node does to its non-constant operand `out_operand`. */
static bool describe_affine(struct lth_graph *graph, const struct lth_node *node, const struct weights *weights,
			    uint32_t constant, struct affine *out)
{
	uint32_t rank = graph->values[node->outputs[0]].type.rank;
	int64_t channels = weights->channels * weights->groups;
	double *list = by_channel(graph, node->inputs[constant], rank, weights->channel_axis, channels);
	enum lth_op_id op = lth_op_id(node->op);
	*out = (struct affine){0};
	if (!list)
		return false;
	switch (op) {
	case LTH_OP_ID_Mul:
		out->scale = list;
		return true;
	case LTH_OP_ID_Add:
		out->offset = list;
		return true;
	case LTH_OP_ID_Div:
		for (int64_t c = 0; c < channels; c++) {
			list[c] = 1 / list[c];
			if (!isfinite(list[c]))
				return false;
		}
		out->scale = list;
		return constant == 1;
	case LTH_OP_ID_Sub:
		out->offset = list;
		if (constant == 1) {
			for (int64_t c = 0; c < channels; c++)
				list[c] = -list[c];
			return true;
		}
		out->scale = lth_arena_array(graph->arena, (size_t)channels, sizeof(*out->scale));
		for (int64_t c = 0; c < channels && out->scale; c++)
			out->scale[c] = -1;
		return out->scale != NULL;
	default:
		return false;
	}
}

/* A run of weights times one number; false if a result is not finite. */
static bool scale_run(enum lth_dtype dtype, const char *from, char *to, int64_t first, int64_t count, double scale)
{
	bool finite = true;
	if (dtype == LTH_DTYPE_F32) { /* nearly all models: without a call an element */
		for (int64_t i = first; i < first + count; i++) {
			float element;
			memcpy(&element, from + i * 4, sizeof(element));
			element = (float)(element * scale);
			finite &= isfinite(element) != 0;
			memcpy(to + i * 4, &element, sizeof(element));
		}
		return finite;
	}
	for (int64_t i = first; i < first + count && finite; i++) {
		double element;
		finite = lth_load_real(dtype, from, i, &element) && lth_store_real(dtype, to, i, element * scale) &&
			 lth_load_real(dtype, to, i, &element) && isfinite(element);
	}
	return finite;
}

/* The weights with each channel scaled, as a new constant; LTH_NONE if a result is not finite. */
static lth_value_id scaled_weights(struct lth_rewrite *rewrite, const struct weights *weights, const double *scale)
{
	const struct lth_value value = *lth_rewrite_value(rewrite, weights->value);
	int64_t shape[LTH_MAX_RANK], at = 0;
	char *data = lth_arena_alloc(rewrite->graph->arena, (size_t)value.constant.bytes);
	if (!data || !lth_type_static(rewrite->graph, &value.type, shape))
		return LTH_NONE;
	for (int64_t g = 0; g < weights->groups; g++)
		for (int64_t o = 0; o < weights->outer; o++)
			for (int64_t c = 0; c < weights->channels; c++, at += weights->inner)
				if (!scale_run(value.type.dtype, value.constant.data, data, at, weights->inner,
					       scale[g * weights->channels + c]))
					return LTH_NONE;
	return lth_rewrite_constant(rewrite, "weights", value.type.dtype, value.type.rank, shape, data,
				    value.constant.bytes);
}

/* bias * scale + offset as a new constant; `bias` may be absent. */
static lth_value_id folded_bias(struct lth_rewrite *rewrite, const struct lth_node *producer,
				const struct weights *weights, const struct affine *affine)
{
	struct lth_graph *graph = rewrite->graph;
	lth_value_id bias = lth_node_input(producer, 2);
	enum lth_dtype dtype = graph->values[weights->value].type.dtype;
	int64_t channels = weights->channels * weights->groups, bytes;
	double *list = NULL;
	if (bias != LTH_NONE) {
		/* A vector of its own, or of Gemm whatever stretches to one number a column. */
		bool gemm = lth_op_id(producer->op) == LTH_OP_ID_Gemm;
		list = by_channel(graph, bias, gemm ? 2 : 1, gemm ? 1 : 0, channels);
		if (!list)
			return LTH_NONE;
	}
	char *data = NULL;
	if (lth_dtype_bytes(dtype, channels, &bytes))
		data = lth_arena_alloc(graph->arena, (size_t)bytes);
	for (int64_t c = 0; c < channels; c++) {
		double element = list ? list[c] : 0;
		element = element * (affine->scale ? affine->scale[c] : 1) + (affine->offset ? affine->offset[c] : 0);
		if (!data || !lth_store_real(dtype, data, c, element) || !lth_load_real(dtype, data, c, &element) ||
		    !isfinite(element))
			return LTH_NONE;
	}
	return lth_rewrite_constant(rewrite, "bias", dtype, 1, &channels, data, bytes);
}

/* The visited node becomes its producer, with other weights. */
static bool fold(struct lth_rewrite *rewrite, const struct lth_node *producer, const struct weights *weights,
		 const struct affine *affine)
{
	const struct lth_node copy = *producer;
	lth_value_id inputs[3] = {copy.inputs[0], copy.inputs[1], lth_node_input(&copy, 2)};
	bool has_bias = inputs[2] != LTH_NONE;
	if (affine->offset && !weights->takes_bias)
		return false;
	if (affine->offset || (affine->scale && has_bias)) {
		inputs[2] = folded_bias(rewrite, &copy, weights, affine);
		if (inputs[2] == LTH_NONE)
			return false;
	}
	if (affine->scale) {
		inputs[1] = scaled_weights(rewrite, weights, affine->scale);
		if (inputs[1] == LTH_NONE)
			return false;
	}
	lth_rewrite_become(rewrite, lth_op_id(copy.op), inputs, inputs[2] != LTH_NONE ? 3 : 2, copy.attrs,
			   copy.num_attrs);
	return true;
}

static bool try_fold(struct lth_rewrite *rewrite, lth_node_id id)
{
	struct lth_graph *graph = rewrite->graph;
	static const enum lth_op_id producers[] = {LTH_OP_ID_Conv, LTH_OP_ID_ConvTranspose, LTH_OP_ID_Gemm,
						   LTH_OP_ID_MatMul};
	for (uint32_t constant = 0; constant < 2; constant++) {
		const struct lth_node *node = &graph->nodes[id];
		lth_value_id operand = node->inputs[1 - constant];
		for (size_t p = 0; p < sizeof(producers) / sizeof(producers[0]); p++) {
			struct weights weights;
			struct affine affine;
			const struct lth_node *producer = lth_sole_producer(rewrite, operand, producers[p]);
			if (!producer || producer->region != node->region ||
			    !lth_same_type(graph, operand, node->outputs[0]) ||
			    !describe_weights(graph, producer, &weights) ||
			    !describe_affine(graph, node, &weights, constant, &affine))
				continue;
			if (fold(rewrite, producer, &weights, &affine))
				return true;
			node = &graph->nodes[id];
		}
	}
	return false;
}

static void visit(struct lth_rewrite *rewrite, lth_node_id id, void *context)
{
	(void)context;
	switch (lth_op_id(rewrite->graph->nodes[id].op)) {
	case LTH_OP_ID_Add:
	case LTH_OP_ID_Sub:
	case LTH_OP_ID_Mul:
	case LTH_OP_ID_Div:
		try_fold(rewrite, id);
		break;
	default:
		break;
	}
}

enum lth_code lth_pass_fold_scale_axis(struct lth_graph *graph, const struct lth_pass_context *context,
				       struct lth_diag *diag)
{
	(void)context;
	uint32_t changes;
	return lth_rewrite_run(graph, visit, NULL, diag, &changes);
}
