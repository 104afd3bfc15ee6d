/* Lane functions of all scalar operators but casts. See lanes.h. Each type gets its functions and its table row from one
 * macro, so that a rule is written once per class of types. Narrow integers compute in uint64_t and wrap. */
#include "compiler/lower/lanes.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* A lane function: `expression` over a, b, c of type IN gives the result of type OUT. */
#define LANES(name, OUT, IN, expression) \
	static void name(void *out, const void *pa, const void *pb, const void *pc, size_t n) \
	{ \
		OUT *to = out; \
		const IN *xa = pa, *xb = pb ? pb : pa, *xc = pc ? pc : pa; \
		for (size_t i = 0; i < n; i++) { \
			const IN a = xa[i], b = xb[i], c = xc[i]; \
			(void)b; \
			(void)c; \
			to[i] = (OUT)(expression); \
		} \
	}

#define SELECT_LANES(name, T) \
	static void name(void *out, const void *pa, const void *pb, const void *pc, size_t n) \
	{ \
		T *to = out; \
		const uint8_t *condition = pa; \
		const T *xb = pb, *xc = pc; \
		for (size_t i = 0; i < n; i++) \
			to[i] = condition[i] ? xb[i] : xc[i]; \
	}

#define COMPARE_LANES(N, T) \
	LANES(eq_##N, uint8_t, T, a == b) \
	LANES(ne_##N, uint8_t, T, a != b) \
	LANES(lt_##N, uint8_t, T, a < b) \
	LANES(le_##N, uint8_t, T, a <= b) \
	SELECT_LANES(select_##N, T)

/* Rules common to signed and unsigned integers; U is the unsigned type of the same width. */
#define INT_LANES(N, T, U, BITS) \
	LANES(add_##N, T, T, (U)((uint64_t)a + (uint64_t)b)) \
	LANES(sub_##N, T, T, (U)((uint64_t)a - (uint64_t)b)) \
	LANES(mul_##N, T, T, (U)((uint64_t)a * (uint64_t)b)) \
	LANES(min_##N, T, T, b < a ? b : a) \
	LANES(max_##N, T, T, a < b ? b : a) \
	LANES(neg_##N, T, T, (U)(0 - (uint64_t)a)) \
	LANES(and_##N, T, T, a & b) \
	LANES(or_##N, T, T, a | b) \
	LANES(xor_##N, T, T, a ^ b) \
	LANES(not_##N, T, T, (U) ~(uint64_t)a) \
	LANES(shl_##N, T, T, (U)b >= BITS ? 0 : (U)((uint64_t)a << ((U)b & (BITS - 1)))) \
	LANES(popcount_##N, T, T, __builtin_popcountll((U)a)) \
	COMPARE_LANES(N, T)

#define SIGNED_LANES(N, T, U, BITS) \
	INT_LANES(N, T, U, BITS) \
	LANES(div_##N, T, T, b == 0 ? 0 : b == -1 ? (T)(U)(0 - (uint64_t)a) : (T)(a / b)) \
	LANES(rem_##N, T, T, b == 0 || b == -1 ? 0 : a % b) \
	LANES(floordiv_##N, T, T, b == 0 ? 0 : b == -1 ? (T)(U)(0 - (uint64_t)a) : \
	      (T)(a / b - (a % b != 0 && (a < 0) != (b < 0)))) \
	LANES(mod_##N, T, T, b == 0 || b == -1 ? 0 : (T)(a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0))) \
	LANES(abs_##N, T, T, a < 0 ? (T)(U)(0 - (uint64_t)a) : a) \
	LANES(shr_##N, T, T, a >> ((U)b >= BITS ? BITS - 1 : (U)b))

#define UNSIGNED_LANES(N, T, BITS) \
	INT_LANES(N, T, T, BITS) \
	LANES(div_##N, T, T, b == 0 ? 0 : a / b) \
	LANES(rem_##N, T, T, b == 0 ? 0 : a % b) \
	LANES(floordiv_##N, T, T, b == 0 ? 0 : a / b) \
	LANES(mod_##N, T, T, b == 0 ? 0 : a % b) \
	LANES(abs_##N, T, T, a) \
	LANES(shr_##N, T, T, b >= BITS ? 0 : a >> (b & (BITS - 1)))

/* The remainder with the divisor's sign; of a zero too. */
static double float_mod(double a, double b)
{
	double rest = fmod(a, b);
	if (rest == 0)
		return copysign(rest, b);
	return (rest < 0) != (b < 0) ? rest + b : rest;
}

static double sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

static double scale(double a, double b)
{
	return b != b ? a + b : ldexp(a, b > 5000 ? 5000 : b < -5000 ? -5000 : (int)b);
}

/* Math functions of f32 are libm's of double, rounded: the most exact answer there is. (Division, square root and the
 * like are rounded once only, since 53 >= 2 * 24 + 2.) */
#define FLOAT_LANES(N, T, FMA) \
	LANES(add_##N, T, T, a + b) \
	LANES(sub_##N, T, T, a - b) \
	LANES(mul_##N, T, T, a * b) \
	LANES(div_##N, T, T, a / b) \
	LANES(mod_##N, T, T, float_mod((double)a, (double)b)) \
	LANES(rem_##N, T, T, fmod((double)a, (double)b)) \
	LANES(min_##N, T, T, b < a || b != b ? b : a) \
	LANES(max_##N, T, T, a < b || b != b ? b : a) \
	LANES(neg_##N, T, T, -a) \
	LANES(abs_##N, T, T, fabs((double)a)) \
	LANES(fma_##N, T, T, FMA(a, b, c)) \
	LANES(sqrt_##N, T, T, sqrt((double)a)) \
	LANES(floor_##N, T, T, floor((double)a)) \
	LANES(ceil_##N, T, T, ceil((double)a)) \
	LANES(trunc_##N, T, T, trunc((double)a)) \
	LANES(rint_##N, T, T, rint((double)a)) \
	LANES(scale_##N, T, T, scale((double)a, (double)b)) \
	LANES(isnan_##N, uint8_t, T, a != a) \
	LANES(exp_##N, T, T, exp((double)a)) \
	LANES(log_##N, T, T, log((double)a)) \
	LANES(sin_##N, T, T, sin((double)a)) \
	LANES(cos_##N, T, T, cos((double)a)) \
	LANES(tan_##N, T, T, tan((double)a)) \
	LANES(asin_##N, T, T, asin((double)a)) \
	LANES(acos_##N, T, T, acos((double)a)) \
	LANES(atan_##N, T, T, atan((double)a)) \
	LANES(sinh_##N, T, T, sinh((double)a)) \
	LANES(cosh_##N, T, T, cosh((double)a)) \
	LANES(tanh_##N, T, T, tanh((double)a)) \
	LANES(asinh_##N, T, T, asinh((double)a)) \
	LANES(acosh_##N, T, T, acosh((double)a)) \
	LANES(atanh_##N, T, T, atanh((double)a)) \
	LANES(erf_##N, T, T, erf((double)a)) \
	LANES(log1p_##N, T, T, log1p((double)a)) \
	LANES(expm1_##N, T, T, expm1((double)a)) \
	LANES(pow_##N, T, T, pow((double)a, (double)b)) \
	LANES(sigmoid_##N, T, T, sigmoid((double)a)) \
	LANES(lgamma_##N, T, T, lth_lgamma((double)a)) \
	COMPARE_LANES(N, T)

/* lgamma without the global sign it leaves in signgam. */
static double lth_lgamma(double x)
{
	int sign;
	return lgamma_r(x, &sign);
}

/* Of bool, sums and maxima are `or`, products and minima `and`. */
#define BOOL_LANES(N, T) \
	LANES(or_##N, T, T, a | b) \
	LANES(and_##N, T, T, a & b) \
	LANES(xor_##N, T, T, a ^ b) \
	LANES(not_##N, T, T, !a) \
	COMPARE_LANES(N, T)

SIGNED_LANES(i8, int8_t, uint8_t, 8)
SIGNED_LANES(i16, int16_t, uint16_t, 16)
SIGNED_LANES(i32, int32_t, uint32_t, 32)
SIGNED_LANES(i64, int64_t, uint64_t, 64)
UNSIGNED_LANES(u8, uint8_t, 8)
UNSIGNED_LANES(u16, uint16_t, 16)
UNSIGNED_LANES(u32, uint32_t, 32)
UNSIGNED_LANES(u64, uint64_t, 64)
FLOAT_LANES(f32, float, fmaf)
FLOAT_LANES(f64, double, fma)
BOOL_LANES(b8, uint8_t)

#define S(op) LTH_SCALAR_##op
#define COMPARE_ROW(N) [S(EQ)] = eq_##N, [S(NE)] = ne_##N, [S(LT)] = lt_##N, [S(LE)] = le_##N, [S(SELECT)] = select_##N
#define INT_ROW(N) \
	{[S(ADD)] = add_##N, [S(SUB)] = sub_##N, [S(MUL)] = mul_##N, [S(DIV)] = div_##N, \
	 [S(FLOORDIV)] = floordiv_##N, [S(MOD)] = mod_##N, [S(REM)] = rem_##N, [S(MIN)] = min_##N, \
	 [S(MAX)] = max_##N, [S(NEG)] = neg_##N, [S(ABS)] = abs_##N, [S(AND)] = and_##N, [S(OR)] = or_##N, \
	 [S(XOR)] = xor_##N, [S(NOT)] = not_##N, [S(SHL)] = shl_##N, [S(SHR)] = shr_##N, \
	 [S(POPCOUNT)] = popcount_##N, COMPARE_ROW(N)}
#define FLOAT_ROW(N) \
	{[S(ADD)] = add_##N, [S(SUB)] = sub_##N, [S(MUL)] = mul_##N, [S(DIV)] = div_##N, [S(MOD)] = mod_##N, \
	 [S(REM)] = rem_##N, [S(MIN)] = min_##N, [S(MAX)] = max_##N, [S(NEG)] = neg_##N, [S(ABS)] = abs_##N, \
	 [S(FMA)] = fma_##N, [S(SQRT)] = sqrt_##N, [S(FLOOR)] = floor_##N, [S(CEIL)] = ceil_##N, \
	 [S(TRUNC)] = trunc_##N, [S(RINT)] = rint_##N, [S(SCALE)] = scale_##N, [S(ISNAN)] = isnan_##N, [S(EXP)] = exp_##N, \
	 [S(LOG)] = log_##N, [S(SIN)] = sin_##N, [S(COS)] = cos_##N, [S(TAN)] = tan_##N, [S(ASIN)] = asin_##N, \
	 [S(ACOS)] = acos_##N, [S(ATAN)] = atan_##N, [S(SINH)] = sinh_##N, [S(COSH)] = cosh_##N, \
	 [S(TANH)] = tanh_##N, [S(ASINH)] = asinh_##N, [S(ACOSH)] = acosh_##N, [S(ATANH)] = atanh_##N, \
	 [S(ERF)] = erf_##N, [S(LOG1P)] = log1p_##N, [S(EXPM1)] = expm1_##N, [S(POW)] = pow_##N, \
	 [S(SIGMOID)] = sigmoid_##N, [S(LGAMMA)] = lgamma_##N, COMPARE_ROW(N)}

static const lth_lanes_fn rows[LTH_NUM_DTYPES][LTH_NUM_SCALARS] = {
	[LTH_DTYPE_I8] = INT_ROW(i8),
	[LTH_DTYPE_I16] = INT_ROW(i16),
	[LTH_DTYPE_I32] = INT_ROW(i32),
	[LTH_DTYPE_I64] = INT_ROW(i64),
	[LTH_DTYPE_U8] = INT_ROW(u8),
	[LTH_DTYPE_U16] = INT_ROW(u16),
	[LTH_DTYPE_U32] = INT_ROW(u32),
	[LTH_DTYPE_U64] = INT_ROW(u64),
	[LTH_DTYPE_F32] = FLOAT_ROW(f32),
	[LTH_DTYPE_F64] = FLOAT_ROW(f64),
	[LTH_DTYPE_BOOL] = {[S(ADD)] = or_b8, [S(MAX)] = or_b8, [S(OR)] = or_b8, [S(MUL)] = and_b8,
			    [S(MIN)] = and_b8, [S(AND)] = and_b8, [S(XOR)] = xor_b8, [S(NOT)] = not_b8,
			    COMPARE_ROW(b8)},
};

#define ROUND_LANES(N, D) LANES(round_##N, float, float, lth_narrow_widen(LTH_DTYPE_##D, lth_narrow_round(LTH_DTYPE_##D, a)))
ROUND_LANES(f16, F16)
ROUND_LANES(bf16, BF16)
ROUND_LANES(e4m3, F8E4M3)
ROUND_LANES(e4m3uz, F8E4M3UZ)
ROUND_LANES(e5m2, F8E5M2)
ROUND_LANES(e5m2uz, F8E5M2UZ)
ROUND_LANES(e8m0, F8E8M0)
ROUND_LANES(f4, F4E2M1)

static lth_lanes_fn round_to(enum lth_dtype narrow)
{
	switch (narrow) {
	case LTH_DTYPE_F16:
		return round_f16;
	case LTH_DTYPE_BF16:
		return round_bf16;
	case LTH_DTYPE_F8E4M3:
		return round_e4m3;
	case LTH_DTYPE_F8E4M3UZ:
		return round_e4m3uz;
	case LTH_DTYPE_F8E5M2:
		return round_e5m2;
	case LTH_DTYPE_F8E5M2UZ:
		return round_e5m2uz;
	case LTH_DTYPE_F8E8M0:
		return round_e8m0;
	case LTH_DTYPE_F4E2M1:
		return round_f4;
	default:
		return NULL;
	}
}

#define COPY_LANES(N, BYTES) \
	static void copy_##N(void *out, const void *a, const void *b, const void *c, size_t n) \
	{ \
		(void)b; \
		(void)c; \
		memcpy(out, a, n * BYTES); \
	}
COPY_LANES(8, 1)
COPY_LANES(16, 2)
COPY_LANES(32, 4)
COPY_LANES(64, 8)

static lth_lanes_fn bitcast(enum lth_dtype from, enum lth_dtype to)
{
	if (lth_lane_bytes(from) != lth_lane_bytes(to) || (from == LTH_DTYPE_BOOL) != (to == LTH_DTYPE_BOOL))
		return NULL;
	switch (lth_lane_bytes(from)) {
	case 1:
		return copy_8;
	case 2:
		return copy_16;
	case 4:
		return copy_32;
	default:
		return copy_64;
	}
}

bool lth_is_compute_dtype(enum lth_dtype dtype)
{
	return dtype < LTH_NUM_DTYPES && rows[dtype][LTH_SCALAR_EQ];
}

size_t lth_lane_bytes(enum lth_dtype dtype)
{
	return dtype >= LTH_NUM_DTYPES ? sizeof(void *) : lth_dtype_bits(dtype) / 8;
}

lth_lanes_fn lth_lanes(enum lth_scalar_op op, enum lth_dtype operand, enum lth_dtype result)
{
	assert(op < LTH_NUM_SCALARS);
	if (operand >= LTH_NUM_DTYPES) /* pointers */
		return op == LTH_SCALAR_SELECT ? select_u64 : op == LTH_SCALAR_EQ ? eq_u64 : NULL;
	if (!lth_is_compute_dtype(operand))
		return NULL;
	switch (op) {
	case LTH_SCALAR_CAST:
		return lth_lanes_cast(operand, result);
	case LTH_SCALAR_BITCAST:
		return lth_is_compute_dtype(result) ? bitcast(operand, result) : NULL;
	case LTH_SCALAR_ROUND_TO:
		return operand == LTH_DTYPE_F32 ? round_to(result) : NULL;
	default:
		return rows[operand][op];
	}
}
