/* Fourier transforms as the sums they are defined by: DFT along an axis, STFT over sliding windows. Where frames have a
 * constant length, their waves are constants, and the transform is a convolution with them. The angle's multiple is
 * reduced modulo the length in integers first, so that long transforms keep their accuracy. */
#include "compiler/ops/axes.h"
#include "compiler/ops/build.h"
#include "compiler/ops/family.h"

#include <math.h>
#include <string.h>

/* Terms cancel: sums are kept in double, and rounded at the end. */
static const enum lth_dtype work_dtype = LTH_DTYPE_F64;

static lth_sx rounded(struct lth_lower *lower, const struct lth_node *node, lth_sx sum)
{
	return lth_sx_cast(lth_lower_pool(lower), sum, lth_compute_dtype(lth_value_dtype(lower, node->outputs[0])));
}

/* Real and imaginary part of an element; the last axis of `at` holds one part, or both: the run's to say where it is a
 * symbol. */
static void read_complex(struct lth_lower *lower, lth_value_id value, lth_sx *at, lth_sx *out_real,
			 lth_sx *out_imaginary)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	uint32_t last = lth_rank(lower, value) - 1;
	lth_sx parts = lth_extent(lower, value, -1), one = lth_sx_int(pool, 1);
	at[last] = lth_sx_int(pool, 0);
	*out_real = lth_sx_cast(pool, lth_read(lower, value, at), work_dtype);
	*out_imaginary = lth_same_const(pool, *out_real, 0);
	int64_t known;
	if (lth_sx_is_int(pool, parts, &known) && known == 1)
		return;
	at[last] = lth_safe_index(pool, one, parts);
	lth_sx second = lth_sx_cast(pool, lth_read(lower, value, at), work_dtype);
	*out_imaginary = lth_sx_select(pool, lth_lt(pool, one, parts), second, *out_imaginary);
}

/* A signal's last axis holds the parts of a number. */
static enum lth_code require_parts(struct lth_infer *infer, uint32_t input)
{
	const struct lth_type *type = lth_infer_type(infer, input);
	const char *rule = "a last axis of 1 (real) or 2 (complex)";
	lth_dim parts = type->dims[type->rank - 1], one = lth_dim_const(infer->dims, 1);
	enum lth_code code = lth_infer_require(infer, LTH_REL_LE, one, parts, rule);
	return code ? code : lth_infer_require(infer, LTH_REL_LE, parts, lth_dim_const(infer->dims, 2), rule);
}

/* The part `part` (0 real, 1 imaginary) of x times exp(sign 2 pi i k n / length). */
static lth_sx rotated(struct lth_sx_pool *pool, lth_sx real, lth_sx imaginary, lth_sx k, lth_sx n, lth_sx length,
		      double sign, lth_sx part)
{
	enum lth_dtype type = lth_sx_dtype(pool, real);
	lth_sx turns = lth_modulo(pool, lth_mul(pool, k, n), length);
	lth_sx angle = lth_div(pool, lth_sx_cast(pool, turns, type), lth_sx_cast(pool, length, type));
	angle = lth_mul(pool, angle, lth_sx_const_f(pool, type, sign * 6.283185307179586));
	lth_sx cos = lth_unary(pool, LTH_SCALAR_COS, angle), sin = lth_unary(pool, LTH_SCALAR_SIN, angle);
	lth_sx first = lth_sub(pool, lth_mul(pool, real, cos), lth_mul(pool, imaginary, sin));
	lth_sx second = lth_add(pool, lth_mul(pool, real, sin), lth_mul(pool, imaginary, cos));
	return lth_sx_select(pool, lth_eq(pool, part, lth_sx_int(pool, 0)), first, second);
}

/* floor(length / 2) + 1 */
static lth_dim one_side(struct lth_dims *dims, lth_dim length)
{
	return lth_dim_add(dims, lth_dim_floordiv(dims, length, lth_dim_const(dims, 2)), lth_dim_const(dims, 1));
}

/* ---- DFT ---- */

enum { SIGNAL, LENGTH, AXIS };

/* What the contents of a DFT's inputs say; they are checked. */
struct dft {
	struct lth_axes axes; /* one is in it; which one, the run may say */
	lth_dim extent;       /* of the signal along it */
	lth_dim length;       /* of the transform */
	bool inverse, onesided;
};

static struct dft describe_dft(struct lth_graph *graph, const struct lth_node *node)
{
	struct lth_dims *dims = graph->dims;
	const struct lth_type *type = &graph->values[node->inputs[SIGNAL]].type;
	struct dft dft = {.inverse = lth_op_int(node, "inverse") != 0, .onesided = lth_op_int(node, "onesided") != 0};
	lth_dim preset = lth_dim_const(dims, -2);
	const struct lth_contents one_but_last = {.count = 1, .dims = &preset};
	if (lth_node_input(node, AXIS) != LTH_NONE)
		lth_node_axes(graph, node, AXIS, type->rank, &dft.axes);
	else
		lth_axes_read(dims, &one_but_last, type->rank, &dft.axes);
	dft.extent = lth_dim_const(dims, 0);
	for (uint32_t i = 0; i < type->rank; i++)
		dft.extent = lth_dim_add(dims, dft.extent, lth_dim_mul(dims, dft.axes.in[i], type->dims[i]));
	dft.length = dft.extent;
	if (lth_node_input(node, LENGTH) != LTH_NONE) {
		dft.length = lth_value_contents(graph, node->inputs[LENGTH])->dims[0];
	} else if (dft.inverse && dft.onesided) { /* 2 (n - 1) */
		lth_dim less = lth_dim_sub(dims, dft.extent, lth_dim_const(dims, 1));
		dft.length = lth_dim_mul(dims, lth_dim_const(dims, 2), less);
	}
	return dft;
}

/* The axis is one before the last. */
static enum lth_code require_axis(struct lth_infer *infer, const struct lth_axes *axes)
{
	lth_dim before = lth_dim_const(infer->dims, 0);
	for (uint32_t i = 0; i + 1 < axes->rank; i++)
		before = lth_dim_add(infer->dims, before, axes->in[i]);
	return lth_infer_require(infer, LTH_REL_EQ, before, lth_dim_const(infer->dims, 1), "an axis before the last");
}

static enum lth_code infer_dft(struct lth_infer *infer)
{
	const struct lth_type *type = lth_infer_type(infer, SIGNAL);
	const lth_dim *ignored;
	uint32_t count;
	lth_dim dims[LTH_MAX_RANK];
	struct lth_axes axes;
	enum lth_code code = lth_infer_need_rank(infer, SIGNAL, 2, LTH_MAX_RANK);
	if (!code && lth_infer_type(infer, LENGTH))
		code = lth_infer_need_ints(infer, LENGTH, 1, &ignored, &count);
	if (!code && lth_infer_type(infer, AXIS))
		code = lth_infer_axes(infer, AXIS, type->rank, &axes);
	if (!code)
		code = require_parts(infer, SIGNAL);
	if (code)
		return code;
	struct dft dft = describe_dft(infer->graph, infer->node);
	code = require_axis(infer, &dft.axes);
	if (!code && dft.onesided && !dft.inverse)
		code = lth_infer_require(infer, LTH_REL_EQ, type->dims[type->rank - 1], lth_dim_const(infer->dims, 1),
					 "real numbers where one side is enough");
	if (code)
		return code;
	lth_dim along = dft.onesided && !dft.inverse ? one_side(infer->dims, dft.length) : dft.length;
	for (uint32_t i = 0; i + 1 < type->rank; i++)
		dims[i] = lth_dim_choose(infer->dims, dft.axes.in[i], along, type->dims[i]);
	dims[type->rank - 1] = lth_dim_const(infer->dims, dft.onesided && dft.inverse ? 1 : 2);
	return lth_infer_output(infer, 0, LTH_NUM_DTYPES, type->rank, dims);
}

static enum lth_code dft_reduction(struct lth_lower *lower, const struct lth_node *node, struct lth_reduction *out,
				   struct lth_diag *diag)
{
	(void)diag;
	out->num_axes = 1;
	out->extents[0] = describe_dft(lth_lower_graph(lower), node).length;
	out->row_axes = (1u << lth_rank(lower, node->outputs[0])) - 1;
	out->num_stages = 1;
	out->stages[0].combiner = LTH_COMBINE_SUM;
	out->stages[0].dtype = work_dtype;
	return LTH_OK;
}

static lth_sx dft_stage(struct lth_lower *lower, const struct lth_node *node, uint32_t stage, const lth_sx *index)
{
	(void)stage;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	struct dft dft = describe_dft(lth_lower_graph(lower), node);
	const struct lth_axes *axes = &dft.axes;
	lth_sx at[LTH_MAX_RANK], real, imaginary, n = index[axes->rank], length = lth_sx_dim(pool, dft.length);
	lth_sx extent = lth_sx_dim(pool, dft.extent), source = n, mirrored = LTH_SX_NONE, k = lth_sx_int(pool, 0);
	if (dft.inverse && dft.onesided) { /* the other half is the conjugate of this one */
		mirrored = lth_lt(pool, lth_floordiv(pool, length, lth_sx_int(pool, 2)), n);
		source = lth_sx_select(pool, mirrored, lth_sub(pool, length, n), n);
	}
	lth_sx safe = lth_safe_index(pool, source, extent);
	for (uint32_t i = 0; i < axes->rank; i++) {
		lth_sx here = lth_lt(pool, lth_sx_int(pool, 0), lth_sx_dim(pool, axes->in[i]));
		at[i] = lth_sx_select(pool, here, safe, index[i]);
		k = lth_sx_select(pool, here, index[i], k);
	}
	read_complex(lower, node->inputs[SIGNAL], at, &real, &imaginary);
	if (mirrored != LTH_SX_NONE)
		imaginary = lth_sx_select(pool, mirrored, lth_unary(pool, LTH_SCALAR_NEG, imaginary), imaginary);
	lth_sx term = rotated(pool, real, imaginary, k, n, length, dft.inverse ? 1 : -1, index[axes->rank - 1]);
	/* A length beyond the signal reads zeros. */
	return lth_sx_select(pool, lth_lt(pool, source, extent), term, lth_same_const(pool, term, 0));
}

static lth_sx dft_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output, const lth_sx *index)
{
	(void)output, (void)index;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	struct dft dft = describe_dft(lth_lower_graph(lower), node);
	lth_sx sum = lth_result(lower, node, 0, work_dtype);
	if (dft.inverse)
		sum = lth_div(pool, sum, lth_sx_cast(pool, lth_sx_dim(pool, dft.length), work_dtype));
	return rounded(lower, node, sum);
}

const struct lth_op_impl lth_impl_dft = {
	.infer = infer_dft, .element = dft_element, .reduction = dft_reduction, .stage = dft_stage};

/* ---- STFT ---- */

enum { FRAME_STEP = 1, WINDOW, FRAME_LENGTH };

static lth_dim frame_length(struct lth_graph *graph, const struct lth_node *node)
{
	if (lth_node_input(node, FRAME_LENGTH) != LTH_NONE)
		return lth_value_contents(graph, node->inputs[FRAME_LENGTH])->dims[0];
	return graph->values[node->inputs[WINDOW]].type.dims[0];
}

/* Whether frames are windows of a convolution: real, of constant length and step, and no longer than pays. */
static bool has_constant_frames(struct lth_infer *infer, int64_t *out_length, int64_t *out_step)
{
	enum { LONGEST = 1024 };
	const struct lth_type *type = lth_infer_type(infer, SIGNAL);
	const struct lth_contents *step = lth_value_contents(infer->graph, infer->node->inputs[FRAME_STEP]);
	int64_t parts = 1;
	return step && lth_dim_is_const(infer->dims, step->dims[0], out_step) && *out_step >= 1 &&
	       lth_dim_is_const(infer->dims, frame_length(infer->graph, infer->node), out_length) && *out_length >= 1 &&
	       *out_length <= LONGEST &&
	       (type->rank == 2 || lth_dim_is_const(infer->dims, type->dims[2], &parts)) && parts == 1;
}

/* exp(-2 pi i k n / length) as [2 * bins, 1, length]: a row for the real part of bin k, and one for the imaginary. */
static lth_value_id waves(struct lth_infer *infer, int64_t bins, int64_t length)
{
	const int64_t shape[3] = {2 * bins, 1, length};
	size_t count = (size_t)(2 * bins * length);
	double *rows = lth_arena_array(infer->graph->arena, count, sizeof(*rows));
	if (!rows)
		return LTH_NONE;
	for (int64_t k = 0; k < bins; k++)
		for (int64_t n = 0; n < length; n++) {
			double angle = 6.283185307179586 * (double)(k * n % length) / (double)length;
			rows[2 * k * length + n] = cos(angle);
			rows[(2 * k + 1) * length + n] = -sin(angle);
		}
	return lth_build_data(infer, work_dtype, 3, shape, rows, count * sizeof(*rows));
}

static enum lth_code expand_constant_frames(struct lth_infer *infer)
{
	static const int64_t perm[] = {0, 2, 1};
	int64_t length, step;
	if (!has_constant_frames(infer, &length, &step))
		return lth_infer_exhausted(infer);
	int64_t bins = lth_op_int(infer->node, "onesided") ? length / 2 + 1 : length;
	int64_t *strides = lth_arena_memdup(infer->graph->arena, &step, sizeof(step));
	const struct lth_attr attr = {.name = "strides", .kind = LTH_ATTR_INTS, .count = 1, .ints = strides};
	lth_value_id signal = lth_build_cast(infer, lth_in(infer, SIGNAL), work_dtype);
	lth_value_id in[2] = {signal, waves(infer, bins, length)};
	in[0] = lth_build_reshape(infer, in[0], (const int64_t[]){0, 1, -1}, 3);
	if (lth_in(infer, WINDOW) != LTH_NONE)
		in[1] = lth_build2(infer, LTH_OP_ID_Mul, in[1],
				   lth_build_cast(infer, lth_in(infer, WINDOW), work_dtype));
	lth_value_id y = lth_build_transpose(infer, lth_build(infer, LTH_OP_ID_Conv, in, 2, &attr, 1), perm, 3);
	y = lth_build_reshape(infer, y, (const int64_t[]){0, 0, bins, 2}, 4);
	lth_build_output(infer, 0, lth_build_cast(infer, y, lth_infer_type(infer, SIGNAL)->dtype));
	return LTH_OK;
}

static enum lth_code infer_stft(struct lth_infer *infer)
{
	const struct lth_type *type = lth_infer_type(infer, SIGNAL);
	struct lth_dims *d = infer->dims;
	const lth_dim *step, *ignored;
	uint32_t count;
	enum lth_code code = lth_infer_need_rank(infer, SIGNAL, 2, 3);
	if (!code)
		code = lth_infer_need_one(infer, FRAME_STEP);
	if (!code)
		code = lth_infer_need_one(infer, FRAME_LENGTH);
	if (!code)
		code = lth_infer_need_ints(infer, FRAME_STEP, 1, &step, &count);
	if (!code && lth_infer_type(infer, WINDOW))
		code = lth_infer_need_rank(infer, WINDOW, 1, 1);
	if (!code && lth_infer_type(infer, FRAME_LENGTH))
		code = lth_infer_need_ints(infer, FRAME_LENGTH, 1, &ignored, &count);
	if (!code && !lth_infer_type(infer, WINDOW) && !lth_infer_type(infer, FRAME_LENGTH))
		code = lth_infer_reject(infer, "a window or a frame length", "neither");
	if (!code && type->rank == 3)
		code = require_parts(infer, SIGNAL);
	if (code)
		return code;
	int64_t known_length, known_step;
	lth_dim length = frame_length(infer->graph, infer->node);
	code = lth_infer_require(infer, LTH_REL_LE, length, type->dims[1], "frames no longer than the signal");
	if (!code && lth_infer_type(infer, WINDOW))
		code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, WINDOW, 0), length,
					 "a window as long as a frame");
	if (!code && has_constant_frames(infer, &known_length, &known_step))
		return lth_build_expand(infer, expand_constant_frames);
	lth_dim frames = lth_dim_floordiv(d, lth_dim_sub(d, type->dims[1], length), step[0]);
	lth_dim dims[4] = {type->dims[0], lth_dim_add(d, frames, lth_dim_const(d, 1)),
			   lth_op_int(infer->node, "onesided") ? one_side(d, length) : length, lth_dim_const(d, 2)};
	return code ? code : lth_infer_output(infer, 0, LTH_NUM_DTYPES, 4, dims);
}

static enum lth_code stft_reduction(struct lth_lower *lower, const struct lth_node *node, struct lth_reduction *out,
				    struct lth_diag *diag)
{
	(void)diag;
	out->num_axes = 1;
	out->extents[0] = frame_length(lth_lower_graph(lower), node);
	out->row_axes = 15;
	out->num_stages = 1;
	out->stages[0].combiner = LTH_COMBINE_SUM;
	out->stages[0].dtype = work_dtype;
	return LTH_OK;
}

/* Index (batch, frame, bin, part), then the place in the frame. */
static lth_sx stft_stage(struct lth_lower *lower, const struct lth_node *node, uint32_t stage, const lth_sx *index)
{
	(void)stage;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	lth_sx n = index[4], step = lth_sx_cast(pool, lth_read_scalar(lower, node->inputs[FRAME_STEP]), LTH_DTYPE_I64);
	lth_sx at[3] = {index[0], lth_add(pool, lth_mul(pool, index[1], step), n), LTH_SX_NONE}, real, imaginary;
	if (lth_rank(lower, node->inputs[SIGNAL]) == 2) {
		real = lth_sx_cast(pool, lth_read(lower, node->inputs[SIGNAL], at), work_dtype);
		imaginary = lth_same_const(pool, real, 0);
	} else {
		read_complex(lower, node->inputs[SIGNAL], at, &real, &imaginary);
	}
	if (lth_node_input(node, WINDOW) != LTH_NONE) {
		lth_sx weight = lth_sx_cast(pool, lth_read(lower, node->inputs[WINDOW], &n), work_dtype);
		real = lth_mul(pool, real, weight);
		imaginary = lth_mul(pool, imaginary, weight);
	}
	lth_sx length = lth_sx_dim(pool, frame_length(lth_lower_graph(lower), node));
	return rotated(pool, real, imaginary, index[2], n, length, -1, index[3]);
}

static lth_sx stft_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output, const lth_sx *index)
{
	(void)output, (void)index;
	return rounded(lower, node, lth_result(lower, node, 0, work_dtype));
}

const struct lth_op_impl lth_impl_stft = {
	.infer = infer_stft, .element = stft_element, .reduction = stft_reduction, .stage = stft_stage};
