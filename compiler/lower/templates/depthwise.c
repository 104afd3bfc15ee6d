/* Depthwise convolution in one or two dimensions: one input channel a group, channels innermost in memory, any number
 * of output channels a group. The window is written out tap by tap, a large one row by row (windows.h). Bytes less
 * their zero points are summed as f32: some products below 2^16 stay below 2^24, where every integer is exact. */
#include "compiler/lower/templates/windows.h"

enum { MOST_EXACT_TAPS = 256 };

static struct lth_window_axis window_axis(const struct lth_conv *conv, uint32_t axis, int64_t kernel)
{
	return (struct lth_window_axis){conv->in[axis], conv->out[axis],    conv->pad[axis],     conv->x_stride[axis],
					kernel,         conv->stride[axis], conv->dilation[axis]};
}

/* Fills the windows' description; false when the problem is not depthwise or not of constant shape. */
static bool describe(struct lth_dims *dims, const struct lth_machine *machine, const struct lth_problem *problem,
		     struct lth_windows *out)
{
	const struct lth_conv *conv = &problem->conv;
	lth_dim one = lth_dim_const(dims, 1);
	int64_t out_channels, kernel[LTH_MAX_SPATIAL];
	if (conv->transposed || conv->spatial > 2 || !lth_t_is(dims, conv->in_channels, conv->groups) ||
	    !lth_t_is(dims, conv->x_channel_stride, 1) || !lth_dim_is_const(dims, conv->out_channels, &out_channels) ||
	    conv->groups < 2)
		return false;
	for (uint32_t axis = 0; axis < conv->spatial; axis++)
		if (!lth_dim_is_const(dims, conv->kernel[axis], &kernel[axis]) || kernel[axis] < 1)
			return false;
	bool bytes = problem->compute == LTH_DTYPE_I32;
	if (bytes && kernel[0] * (conv->spatial == 2 ? kernel[1] : 1) > MOST_EXACT_TAPS)
		return false;
	*out = (struct lth_windows){
		.compute = bytes ? LTH_DTYPE_F32 : problem->compute,
		.op = LTH_WINDOW_FMA,
		.x = conv->x,
		.weights = conv->w.pointer,
		.weights_memory = bytes ? LTH_DTYPE_F32 : conv->w.memory,
		.batch = conv->batch,
		.channels = conv->out_channels,
		.x_batch_stride = conv->x_batch_stride,
		.multiplier = out_channels / conv->groups,
		.x_axis = window_axis(conv, conv->spatial - 1, kernel[conv->spatial - 1]),
		.one_dimension = conv->spatial == 1,
	};
	if (conv->spatial == 2)
		out->y = window_axis(conv, 0, kernel[0]);
	else
		out->y = (struct lth_window_axis){one, one, lth_dim_const(dims, 0), lth_dim_const(dims, 0), 1, 1, 1};
	out->lanes = lth_windows_lanes(dims, machine, out->compute, conv->out_channels);
	return lth_windows_tile(dims, machine, out);
}

bool lth_depthwise_plan(struct lth_dims *dims, const struct lth_machine *machine, const struct lth_problem *problem,
			struct lth_template_plan *out)
{
	const struct lth_conv *conv = &problem->conv;
	struct lth_windows windows;
	bool bytes = lth_bytes_plan(dims, problem, &conv->x, &conv->w, conv->x_channel_stride) &&
		     lth_bytes_known(problem, &conv->w);
	if (!bytes &&
	    (!lth_t_loads_as(conv->x.memory, problem->compute) || !lth_t_loads_as(conv->w.memory, problem->compute)))
		return false;
	if (!conv->w.constant || !describe(dims, machine, problem, &windows))
		return false;
	struct lth_pack pack = {.kind = LTH_PACK_PANELS,
				.dtype = conv->w.memory,
				.groups = 1,
				.gates = 1,
				.num_k = conv->spatial,
				.panel = windows.lanes};
	if (!lth_dim_is_const(dims, conv->out_channels, &pack.columns) ||
	    !lth_dim_is_const(dims, conv->w_out_stride, &pack.column_stride))
		return false;
	for (uint32_t axis = 0; axis < conv->spatial; axis++)
		if (!lth_dim_is_const(dims, conv->kernel[axis], &pack.k[axis].extent) ||
		    !lth_dim_is_const(dims, conv->w_stride[axis], &pack.k[axis].stride))
			return false;
	pack.tail = pack.columns % windows.lanes ? windows.lanes : 0;
	if (bytes)
		lth_bytes_pack_differences(problem, &pack);
	out->packs[0] = pack;
	out->flops = lth_conv_flops(dims, conv);
	return true;
}

void lth_depthwise_emit(struct lth_emit *emit, const struct lth_problem *problem, const struct lth_template_plan *plan)
{
	struct lth_windows windows;
	struct lth_bytes bytes;
	(void)plan;
	if (!describe(emit->dims, emit->machine, problem, &windows))
		return; /* plan said yes */
	if (problem->compute == LTH_DTYPE_I32) {
		lth_bytes_begin(emit, problem, problem->conv.x.memory, 1, &bytes);
		windows.bytes = &bytes;
	}
	windows.emit = emit;
	lth_windows_emit(&windows);
}
