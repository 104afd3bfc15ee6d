/* Scalar operators on constants, and the facts of their table. See loop.h; the rules are in lanes.c. */
#include "compiler/lower/lanes.h"
#include "compiler/lower/loop.h"

#include <assert.h>

static const struct {
	const char *text;
	unsigned arity;
} scalars[] = {
#define LTH_SCALAR(name, text, arity, rule) {text, arity},
#include "compiler/lower/scalars.def"
#undef LTH_SCALAR
};

unsigned lth_scalar_arity(enum lth_scalar_op op)
{
	assert(op < LTH_NUM_SCALARS);
	return scalars[op].arity;
}

const char *lth_scalar_text(enum lth_scalar_op op)
{
	assert(op < LTH_NUM_SCALARS);
	return scalars[op].text;
}

/* One lane in its C type. */
union lane {
	int8_t i8;
	int16_t i16;
	int32_t i32;
	int64_t i64;
	float f32;
	double f64;
};

static union lane pack(enum lth_dtype dtype, union lth_scalar_value value)
{
	union lane lane = {.i64 = 0};
	switch (dtype) {
	case LTH_DTYPE_F32:
		lane.f32 = (float)value.f;
		break;
	case LTH_DTYPE_F64:
		lane.f64 = value.f;
		break;
	case LTH_DTYPE_BOOL:
		lane.i8 = value.i != 0;
		break;
	default: /* little-endian: the low bytes are the narrow integer */
		lane.i64 = value.i;
		break;
	}
	return lane;
}

static union lth_scalar_value unpack(enum lth_dtype dtype, union lane lane)
{
	switch (dtype) {
	case LTH_DTYPE_F32:
		return (union lth_scalar_value){.f = (double)lane.f32};
	case LTH_DTYPE_F64:
		return (union lth_scalar_value){.f = lane.f64};
	case LTH_DTYPE_I8:
		return (union lth_scalar_value){.i = lane.i8};
	case LTH_DTYPE_I16:
		return (union lth_scalar_value){.i = lane.i16};
	case LTH_DTYPE_I32:
		return (union lth_scalar_value){.i = lane.i32};
	case LTH_DTYPE_BOOL:
	case LTH_DTYPE_U8:
		return (union lth_scalar_value){.i = (uint8_t)lane.i8};
	case LTH_DTYPE_U16:
		return (union lth_scalar_value){.i = (uint16_t)lane.i16};
	case LTH_DTYPE_U32:
		return (union lth_scalar_value){.i = (uint32_t)lane.i32};
	default:
		return (union lth_scalar_value){.i = lane.i64};
	}
}

union lth_scalar_value lth_scalar_eval(enum lth_scalar_op op, enum lth_dtype operand, enum lth_dtype result,
				       union lth_scalar_value a, union lth_scalar_value b, union lth_scalar_value c)
{
	lth_lanes_fn apply = lth_lanes(op, operand, result);
	assert(apply);
	union lane out = {.i64 = 0}, lane_a = pack(op == LTH_SCALAR_SELECT ? LTH_DTYPE_BOOL : operand, a);
	union lane lane_b = pack(operand, b), lane_c = pack(operand, c);
	apply(&out, &lane_a, &lane_b, &lane_c, 1);
	return unpack(op == LTH_SCALAR_ROUND_TO ? operand : result, out);
}
