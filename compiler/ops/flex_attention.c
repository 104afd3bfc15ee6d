/* FlexAttention of ai.onnx.preview: attention whose scores and probabilities pass through regions of the node's own,
 * which take its place in the graph, so that they fuse with what is around them. */
#include "compiler/ops/attention.h"
#include "compiler/ops/control.h"

enum { Q, K, V };

static enum lth_code check(struct lth_infer *infer)
{
	enum lth_code code = LTH_OK;
	for (uint32_t i = Q; !code && i <= V; i++)
		code = lth_infer_need_rank(infer, i, 4, 4);
	for (uint32_t i = K; !code && i <= V; i++)
		code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, i, 0), lth_infer_dim(infer, Q, 0),
					 "one batch");
	if (!code)
		code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, Q, 3), lth_infer_dim(infer, K, 3),
					 "queries and keys of one size");
	for (uint32_t axis = 1; !code && axis <= 2; axis++)
		code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, K, axis),
					 lth_infer_dim(infer, V, axis), "a value for each key");
	return code;
}

/* The region that attribute `name` holds, applied to `x`; x itself without one. */
static enum lth_code apply(struct lth_infer *infer, const char *name, lth_value_id *x)
{
	struct lth_graph *graph = infer->graph;
	lth_region_id region = lth_control_region(infer->node, name);
	if (region == LTH_NONE || infer->failed)
		return infer->failed;
	if (graph->regions[region].num_inputs != 1 || graph->regions[region].num_outputs != 1)
		return lth_infer_reject(infer, "one input and one output", "attribute '%s' with %u and %u", name,
					graph->regions[region].num_inputs, graph->regions[region].num_outputs);
	lth_graph_replace_uses(graph, graph->regions[region].inputs[0], *x);
	enum lth_code code = lth_control_enter(infer, region);
	if (code)
		return code;
	lth_value_id y = graph->regions[region].outputs[0];
	const struct lth_type *from = &graph->values[*x].type, *to = &graph->values[y].type;
	if (to->kind != LTH_TYPE_TENSOR || to->rank != from->rank || to->dtype != from->dtype)
		return lth_infer_reject(infer, "a result of its input's type and shape", "attribute '%s' gives %s",
					name, lth_infer_shape_text(infer, to));
	for (uint32_t axis = 0; !code && axis < from->rank; axis++)
		code = lth_infer_require(infer, LTH_REL_EQ, to->dims[axis], from->dims[axis],
					 "a result of its input's shape");
	if (!code && !lth_control_move_before(infer, region))
		code = lth_infer_exhausted(infer);
	graph->regions[region].num_outputs = 0;
	*x = y;
	return code;
}

static enum lth_code expand_flex_attention(struct lth_infer *infer)
{
	enum lth_code code = check(infer);
	if (code)
		return code;
	enum lth_dtype dtype = lth_infer_type(infer, Q)->dtype;
	enum lth_dtype work = dtype == LTH_DTYPE_F64 ? LTH_DTYPE_F64 : LTH_DTYPE_F32;
	if (lth_node_attr(infer->node, "softmax_precision"))
		code = lth_infer_dtype_attr(infer, "softmax_precision", &work);
	if (!code && !lth_dtype_in(work, "float"))
		code = lth_infer_reject(infer, "a floating-point type", "softmax_precision %s", lth_dtype_text(work));
	if (code)
		return code;
	lth_value_id q = lth_in(infer, Q), keys = lth_share_heads(infer, lth_in(infer, K), q);
	lth_value_id values = lth_share_heads(infer, lth_in(infer, V), q);
	lth_value_id x = lth_build_cast(infer, lth_attention_scores(infer, q, keys), work);
	code = apply(infer, "score_mod", &x);
	x = lth_build1(infer, LTH_OP_ID_Softmax, x);
	if (!code)
		code = apply(infer, "prob_mod", &x);
	if (code)
		return code;
	lth_value_id y = lth_build2(infer, LTH_OP_ID_MatMul, x, lth_build_cast(infer, values, work));
	lth_build_output(infer, 0, lth_build_cast(infer, y, dtype));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_flex_attention = {.expand = expand_flex_attention};
