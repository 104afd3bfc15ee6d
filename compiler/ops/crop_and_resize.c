/* CropAndResize of com.microsoft: boxes of images, given as fractions of their extent, sampled on a grid of a fixed
 * size by the nearest or the four neighbouring pixels. */
#include "compiler/ops/family.h"

#include <string.h>

enum { IMAGES, BOXES, BATCH, SIZE };

static enum lth_code infer_crop(struct lth_infer *infer)
{
	const lth_dim *size;
	uint32_t count;
	enum lth_code code = lth_infer_need_ints(infer, SIZE, 1, &size, &count);
	if (code)
		return code;
	for (uint32_t i = 0; !code && i < 2; i++)
		code = lth_infer_require(infer, LTH_REL_LE, lth_dim_const(infer->dims, 1), size[i],
					 "crops of at least one pixel");
	const lth_dim dims[4] = {lth_infer_dim(infer, BOXES, 0), lth_infer_dim(infer, IMAGES, 1), size[0], size[1]};
	return code ? code : lth_infer_output(infer, 0, LTH_NUM_DTYPES, 4, dims);
}

/* Where a pixel of the crop lies in the image, along one axis. */
struct place {
	lth_sx at, inside; /* real; bool */
	lth_sx extent;	   /* i64 */
};

/* From low to high edge in equal steps; a single pixel lies in the middle. */
static struct place place_along(struct lth_lower *lower, const struct lth_node *node, const lth_sx *index,
				uint32_t axis)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	uint32_t column = axis - 2;
	lth_sx box[2] = {index[0], lth_sx_int(pool, column)}, one = lth_sx_int(pool, 1);
	lth_sx low = lth_read(lower, node->inputs[BOXES], box);
	box[1] = lth_sx_int(pool, column + 2);
	lth_sx high = lth_read(lower, node->inputs[BOXES], box);
	enum lth_dtype work = lth_sx_dtype(pool, low);
	lth_sx extent = lth_extent(lower, node->inputs[IMAGES], (int32_t)axis);
	lth_sx count = lth_extent(lower, node->outputs[0], (int32_t)axis);
	lth_sx top = lth_sx_cast(pool, lth_sub(pool, extent, one), work);
	lth_sx steps = lth_max(pool, lth_sub(pool, count, one), one);
	lth_sx step = lth_div(pool, lth_mul(pool, lth_sub(pool, high, low), top), lth_sx_cast(pool, steps, work));
	lth_sx at = lth_add(pool, lth_mul(pool, low, top), lth_mul(pool, lth_sx_cast(pool, index[axis], work), step));
	lth_sx half = lth_sx_const(pool, work, 0.5), zero = lth_sx_const(pool, work, 0);
	lth_sx middle = lth_mul(pool, lth_mul(pool, half, lth_add(pool, low, high)), top);
	at = lth_sx_select(pool, lth_eq(pool, count, one), middle, at);
	lth_sx inside = lth_and(pool, lth_le(pool, zero, at), lth_le(pool, at, top));
	return (struct place){at, inside, extent};
}

/* The pixel below or above a place, or `shift` further on; what lies outside is not taken, but must be in range. */
static lth_sx pixel(struct lth_sx_pool *pool, const struct place *place, double shift, enum lth_scalar_op round)
{
	lth_sx zero = lth_same_const(pool, place->at, 0), at = lth_sx_select(pool, place->inside, place->at, zero);
	at = lth_unary(pool, round, lth_add(pool, at, lth_same_const(pool, at, shift)));
	return lth_safe_index(pool, lth_sx_cast(pool, at, LTH_DTYPE_I64), place->extent);
}

static lth_sx between(struct lth_sx_pool *pool, lth_sx a, lth_sx b, lth_sx share)
{
	return lth_add(pool, a, lth_mul(pool, lth_sub(pool, b, a), share));
}

static lth_sx crop_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output, const lth_sx *index)
{
	(void)output;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	struct place y = place_along(lower, node, index, 2), x = place_along(lower, node, index, 3);
	lth_sx image = lth_read(lower, node->inputs[BATCH], index), value;
	lth_sx at[4] = {lth_data_index(pool, image, lth_extent(lower, node->inputs[IMAGES], 0)), index[1]};
	if (lth_op_string_is(node, "mode", "nearest")) {
		at[2] = pixel(pool, &y, 0.5, LTH_SCALAR_FLOOR);
		at[3] = pixel(pool, &x, 0.5, LTH_SCALAR_FLOOR);
		value = lth_read(lower, node->inputs[IMAGES], at);
	} else {
		lth_sx rows[2];
		lth_sx down = lth_sub(pool, y.at, lth_unary(pool, LTH_SCALAR_FLOOR, y.at));
		lth_sx across = lth_sub(pool, x.at, lth_unary(pool, LTH_SCALAR_FLOOR, x.at));
		for (int i = 0; i < 2; i++) {
			at[2] = pixel(pool, &y, 0, i ? LTH_SCALAR_CEIL : LTH_SCALAR_FLOOR);
			at[3] = pixel(pool, &x, 0, LTH_SCALAR_FLOOR);
			lth_sx left = lth_read(lower, node->inputs[IMAGES], at);
			at[3] = pixel(pool, &x, 0, LTH_SCALAR_CEIL);
			rows[i] = between(pool, left, lth_read(lower, node->inputs[IMAGES], at), across);
		}
		value = between(pool, rows[0], rows[1], down);
	}
	lth_sx outside = lth_same_const(pool, value, lth_op_float(node, "extrapolation_value"));
	return lth_sx_select(pool, lth_and(pool, y.inside, x.inside), value, outside);
}

const struct lth_op_impl lth_impl_ms_crop_and_resize = {.infer = infer_crop, .element = crop_element};
