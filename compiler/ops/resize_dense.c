/* Antialiased Resize whose scale only the run knows. How many neighbours a point has then depends on the run, so each axis
 * is a product with a matrix [output extent, input extent + margins] of weights, which are 0 but for the neighbours.
 * Places in the margins read the nearest edge. Thread rule: as infer.h. */
#include "compiler/ops/build.h"
#include "compiler/ops/resize.h"

#include <math.h>
#include <string.h>

enum { INPUT = LTH_RESIZE_INPUT, SCALES = LTH_RESIZE_SCALES, SIZES = LTH_RESIZE_SIZES };

struct dense {
	struct lth_infer *infer;
	lth_value_id in, out, in_real, out_real; /* extents of the axis: i64 and f64 scalars */
	lth_value_id scale, length;              /* f64 scalars; the length is not rounded to whole places by scales */
	bool cubic;
	enum lth_dtype work; /* of the sums: f32 for shorter floats, else f64 */
};

static lth_value_id real(struct dense *d, double value)
{
	return lth_build_scalar(d->infer, LTH_DTYPE_F64, value);
}

static lth_value_id apply(struct dense *d, enum lth_op_id op, lth_value_id a, lth_value_id b)
{
	return lth_build2(d->infer, op, a, b);
}

/* Entry `place` of a list as a scalar of the type. */
static lth_value_id entry(struct dense *d, lth_value_id list, uint32_t place, enum lth_dtype dtype)
{
	lth_value_id at = lth_build_scalar(d->infer, LTH_DTYPE_I64, place);
	return lth_build_cast(d->infer, lth_build_gather(d->infer, list, at, 0), dtype);
}

/* from, from + 1, ... below `to`. */
static lth_value_id count(struct dense *d, lth_value_id from, lth_value_id to)
{
	lth_value_id step = lth_build_scalar(d->infer, LTH_DTYPE_I64, 1);
	return lth_build(d->infer, LTH_OP_ID_Range, (lth_value_id[]){from, to, step}, 3, NULL, 0);
}

/* The extent and the scale of axis `axis`, entry `place` of the lists. */
static void describe(struct dense *d, lth_value_id shape, const lth_value_id *inputs, uint32_t axis, uint32_t place)
{
	struct lth_infer *infer = d->infer;
	bool stretches = lth_op_string_is(infer->node, "keep_aspect_ratio_policy", "stretch");
	const struct lth_attr *axes = lth_node_attr(infer->node, "axes");
	d->in = entry(d, shape, axis, LTH_DTYPE_I64);
	d->in_real = lth_build_cast(infer, d->in, LTH_DTYPE_F64);
	d->out = entry(d, inputs[SIZES], place, LTH_DTYPE_I64);
	d->scale = apply(d, LTH_OP_ID_Div, lth_build_cast(infer, d->out, LTH_DTYPE_F64), d->in_real);
	if (inputs[SCALES] != LTH_NONE) {
		d->scale = entry(d, inputs[SCALES], place, LTH_DTYPE_F64);
	} else if (!stretches) { /* one scale for all axes; the nearest extents */
		if (axes)
			shape = lth_build_gather(infer, shape, lth_build_ints(infer, axes->ints, axes->count), 0);
		bool smaller = lth_op_string_is(infer->node, "keep_aspect_ratio_policy", "not_larger");
		lth_value_id sizes = lth_build_cast(infer, inputs[SIZES], LTH_DTYPE_F64);
		lth_value_id ratios = apply(d, LTH_OP_ID_Div, sizes, lth_build_cast(infer, shape, LTH_DTYPE_F64));
		d->scale = lth_build_reduce(infer, smaller ? LTH_OP_ID_ReduceMin : LTH_OP_ID_ReduceMax, ratios,
					    &(int64_t){0}, 1, false);
		lth_value_id extent = apply(d, LTH_OP_ID_Mul, d->in_real, d->scale);
		extent = lth_build1(infer, LTH_OP_ID_Floor, apply(d, LTH_OP_ID_Add, extent, real(d, 0.5)));
		d->out = lth_build_cast(infer, extent, LTH_DTYPE_I64);
	}
	d->out_real = lth_build_cast(infer, d->out, LTH_DTYPE_F64);
	d->length = inputs[SCALES] == LTH_NONE ? d->out_real : apply(d, LTH_OP_ID_Mul, d->in_real, d->scale);
}

/* The points that the output's places sample, [output extent, 1]. LTH_NONE for a mode that is not implemented. */
static lth_value_id points(struct dense *d)
{
	static const char *const mode = "coordinate_transformation_mode";
	struct lth_infer *infer = d->infer;
	const int64_t last = -1;
	lth_value_id index = lth_build_cast(infer, lth_build_count(infer, d->out), LTH_DTYPE_F64);
	lth_value_id one = real(d, 1), half = real(d, 0.5), zero = real(d, 0), x;
	index = lth_build_unsqueeze(infer, index, &last, 1);
	if (lth_op_string_is(infer->node, mode, "asymmetric"))
		return apply(d, LTH_OP_ID_Div, index, d->scale);
	if (lth_op_string_is(infer->node, mode, "align_corners")) {
		lth_value_id steps = apply(d, LTH_OP_ID_Sub, d->length, one);
		x = apply(d, LTH_OP_ID_Mul, index, apply(d, LTH_OP_ID_Sub, d->in_real, one));
		x = apply(d, LTH_OP_ID_Div, x, apply(d, LTH_OP_ID_Max, steps, one));
		return x;
	}
	x = apply(d, LTH_OP_ID_Sub, apply(d, LTH_OP_ID_Div, apply(d, LTH_OP_ID_Add, index, half), d->scale), half);
	if (lth_op_string_is(infer->node, mode, "half_pixel"))
		return x;
	if (lth_op_string_is(infer->node, mode, "half_pixel_symmetric")) { /* the middles lie on each other */
		lth_value_id full = apply(d, LTH_OP_ID_Mul, d->in_real, d->scale);
		lth_value_id less = apply(d, LTH_OP_ID_Sub, one, apply(d, LTH_OP_ID_Div, d->out_real, full));
		return apply(d, LTH_OP_ID_Add, x, apply(d, LTH_OP_ID_Mul, apply(d, LTH_OP_ID_Mul, d->in_real, half), less));
	}
	if (!lth_op_string_is(infer->node, mode, "pytorch_half_pixel"))
		return LTH_NONE;
	lth_value_id several = apply(d, LTH_OP_ID_Less, one, d->out_real);
	return lth_build_select(infer, several, x, zero);
}

/* Keys' cubic kernel of a distance of at least 0: in [0, 1), in [1, 2), beyond. */
static lth_value_id cubic_weight(struct dense *d, lth_value_id t)
{
	double a = lth_op_float(d->infer->node, "cubic_coeff_a");
	const double inner[4] = {a + 2, -(a + 3), 0, 1}, outer[4] = {a, -5 * a, 8 * a, -4 * a};
	lth_value_id sums[2];
	for (int part = 0; part < 2; part++) {
		const double *c = part ? outer : inner;
		sums[part] = real(d, c[0]);
		for (int k = 1; k < 4; k++) {
			lth_value_id product = apply(d, LTH_OP_ID_Mul, sums[part], t);
			sums[part] = apply(d, LTH_OP_ID_Add, product, real(d, c[k]));
		}
	}
	lth_value_id near = apply(d, LTH_OP_ID_Less, t, real(d, 1)), far = apply(d, LTH_OP_ID_Less, t, real(d, 2));
	lth_value_id rest = lth_build_select(d->infer, far, sums[1], real(d, 0));
	return lth_build_select(d->infer, near, sums[0], rest);
}

/* Weights [output extent, places], each row of sum 1. */
static lth_value_id weights(struct dense *d, lth_value_id x, lth_value_id places, lth_value_id shrink)
{
	struct lth_infer *infer = d->infer;
	const int64_t last = -1;
	lth_value_id distance = apply(d, LTH_OP_ID_Sub, lth_build_cast(infer, places, LTH_DTYPE_F64), x), w;
	distance = lth_build1(infer, LTH_OP_ID_Abs, apply(d, LTH_OP_ID_Mul, distance, shrink));
	if (d->cubic) {
		w = cubic_weight(d, distance);
	} else {
		w = apply(d, LTH_OP_ID_Sub, real(d, 1), distance);
		w = apply(d, LTH_OP_ID_Max, w, real(d, 0));
	}
	if (lth_op_int(infer->node, "exclude_outside")) {
		lth_value_id zero = lth_build_scalar(infer, LTH_DTYPE_I64, 0);
		lth_value_id begins = apply(d, LTH_OP_ID_LessOrEqual, zero, places);
		lth_value_id inside = apply(d, LTH_OP_ID_And, begins, apply(d, LTH_OP_ID_Less, places, d->in));
		w = lth_build_select(infer, inside, w, real(d, 0));
	}
	return apply(d, LTH_OP_ID_Div, w, lth_build_reduce(infer, LTH_OP_ID_ReduceSum, w, &last, 1, true));
}

/* y resampled along one axis, which comes to stand last and goes back. */
static lth_value_id resample(struct dense *d, lth_value_id y, uint32_t axis, uint32_t rank)
{
	static const int64_t turn[] = {1, 0};
	struct lth_infer *infer = d->infer;
	lth_value_id x = points(d);
	if (x == LTH_NONE)
		return LTH_NONE;
	lth_value_id shrink = apply(d, LTH_OP_ID_Min, d->scale, real(d, 1));
	lth_value_id margin = lth_build1(infer, LTH_OP_ID_Ceil, apply(d, LTH_OP_ID_Div, real(d, d->cubic ? 2 : 1), shrink));
	margin = lth_build_cast(infer, margin, LTH_DTYPE_I64);
	lth_value_id first = lth_build1(infer, LTH_OP_ID_Neg, margin);
	lth_value_id places = count(d, first, apply(d, LTH_OP_ID_Add, d->in, margin));
	lth_value_id zero = lth_build_scalar(infer, LTH_DTYPE_I64, 0), one = lth_build_scalar(infer, LTH_DTYPE_I64, 1);
	lth_value_id w = lth_build_cast(infer, weights(d, x, places, shrink), d->work);
	lth_value_id edge = apply(d, LTH_OP_ID_Sub, d->in, one);
	lth_value_id source = apply(d, LTH_OP_ID_Max, apply(d, LTH_OP_ID_Min, places, edge), zero);
	y = lth_build_gather(infer, y, source, axis);
	int64_t perm[LTH_MAX_RANK];
	for (uint32_t i = 0; i < rank; i++)
		perm[i] = i;
	perm[axis] = rank - 1;
	perm[rank - 1] = axis;
	y = axis + 1 == rank ? y : lth_build_transpose(infer, y, perm, rank);
	y = apply(d, LTH_OP_ID_MatMul, y, lth_build_transpose(infer, w, turn, 2));
	return axis + 1 == rank ? y : lth_build_transpose(infer, y, perm, rank);
}

/* Rounded to whole numbers of the type. */
static lth_value_id limited(struct dense *d, lth_value_id y, enum lth_dtype dtype)
{
	bool is_signed = lth_dtype_class(dtype) == LTH_CLASS_INT;
	double most = ldexp(1, (int)lth_dtype_bits(dtype) - is_signed), least = is_signed ? -most : 0;
	lth_value_id rounded = lth_build1(d->infer, LTH_OP_ID_Round, y), low = real(d, least);
	const lth_value_id in[] = {rounded, low, real(d, most - 1)};
	return lth_build(d->infer, LTH_OP_ID_Clip, in, 3, NULL, 0);
}

enum lth_code lth_resize_dense(struct lth_infer *infer)
{
	enum lth_dtype dtype = lth_infer_type(infer, INPUT)->dtype;
	bool is_short = lth_dtype_in(dtype, "f16|bf16|f32"), is_whole = lth_dtype_in(dtype, "i8|u8|i16|u16|i32|u32");
	struct dense d = {.infer = infer, .cubic = lth_op_string_is(infer->node, "mode", "cubic"),
			  .work = is_short ? LTH_DTYPE_F32 : LTH_DTYPE_F64};
	uint32_t rank = lth_infer_rank(infer, INPUT), count;
	lth_value_id inputs[SIZES + 1];
	for (uint32_t i = 0; i <= SIZES; i++)
		inputs[i] = lth_node_input(infer->node, i);
	if (!is_short && !is_whole && dtype != LTH_DTYPE_F64)
		return lth_infer_unsupported(infer, "make the scales constants",
					     "antialiasing of type %s by scales that only the run knows", lth_dtype_text(dtype));
	if (inputs[SIZES] == LTH_NONE)
		return lth_infer_reject(infer, "scales above 0", "a scale of 0");
	lth_value_id shape = lth_build1(infer, LTH_OP_ID_Shape, inputs[INPUT]);
	lth_value_id y = lth_build_cast(infer, inputs[INPUT], d.work);
	for (uint32_t axis = 0; axis < rank && !infer->failed; axis++) {
		uint32_t place = lth_resize_place(infer->node, axis, rank, &count);
		if (place == UINT32_MAX)
			continue;
		describe(&d, shape, inputs, axis, place);
		y = resample(&d, y, axis, rank);
		if (!infer->failed && y == LTH_NONE)
			return lth_infer_unsupported(infer, "make the scales constants",
						     "antialiasing in these coordinates by scales that only the run knows");
	}
	lth_build_output(infer, 0, lth_build_cast(infer, is_whole ? limited(&d, y, dtype) : y, dtype));
	return LTH_OK;
}
