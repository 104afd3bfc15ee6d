/* Scalar operators in LLVM IR, with the exact semantics of scalars.def; every rule works on scalars and vectors alike.
 * Math functions of f32 have been expanded before (lower/expand.h); those of f64 call libm lane by lane. See llvm.h. */
#include "compiler/codegen/llvm.h"

#include "compiler/lower/lanes.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static bool is_signed(enum lth_dtype dtype)
{
	return lth_dtype_class(dtype) == LTH_CLASS_INT;
}

static LLVMValueRef zero(LLVMValueRef like)
{
	return LLVMConstNull(LLVMTypeOf(like));
}

static LLVMValueRef icmp(const struct emitter *e, LLVMIntPredicate predicate, LLVMValueRef a, LLVMValueRef b)
{
	return LLVMBuildICmp(e->builder, predicate, a, b, "");
}

static LLVMValueRef fcmp(const struct emitter *e, LLVMRealPredicate predicate, LLVMValueRef a, LLVMValueRef b)
{
	return LLVMBuildFCmp(e->builder, predicate, a, b, "");
}

static LLVMValueRef choose(const struct emitter *e, LLVMValueRef condition, LLVMValueRef yes, LLVMValueRef no)
{
	return LLVMBuildSelect(e->builder, condition, yes, no, "");
}

/* The value of a constant integer or of a splat of one. */
static bool constant_int(LLVMValueRef value, int64_t *out)
{
	if (LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMVectorTypeKind && LLVMIsConstant(value)) {
		LLVMValueRef first = LLVMGetAggregateElement(value, 0);
		for (unsigned k = 1; k < LLVMGetVectorSize(LLVMTypeOf(value)); k++)
			if (LLVMGetAggregateElement(value, k) != first)
				return false;
		value = first;
	}
	if (!value || !LLVMIsAConstantInt(value))
		return false;
	*out = LLVMConstIntGetSExtValue(value);
	return true;
}

/* Quotient and remainder towards zero that never trap: by 0 both are 0; INT_MIN / -1 wraps. */
static LLVMValueRef divide(const struct emitter *e, enum lth_dtype dtype, LLVMValueRef a, LLVMValueRef b, bool remainder)
{
	int64_t by;
	bool known = constant_int(b, &by), sign = is_signed(dtype);
	LLVMValueRef divisor = b, one = lth_llvm_int(LLVMTypeOf(b), 1);
	LLVMValueRef is_zero = NULL, is_minus = NULL;
	if (known && by == 0)
		return zero(a);
	if (!known)
		is_zero = icmp(e, LLVMIntEQ, b, zero(b));
	if (sign && (!known || by == -1))
		is_minus = icmp(e, LLVMIntEQ, b, LLVMConstAllOnes(LLVMTypeOf(b)));
	if (is_zero || is_minus) {
		LLVMValueRef bad = is_zero && is_minus ? LLVMBuildOr(e->builder, is_zero, is_minus, "") :
				   is_zero ? is_zero : is_minus;
		divisor = choose(e, bad, one, b);
	}
	if (remainder) { /* by 1 it is 0, as wanted */
		return sign ? LLVMBuildSRem(e->builder, a, divisor, "") : LLVMBuildURem(e->builder, a, divisor, "");
	}
	LLVMValueRef quotient = sign ? LLVMBuildSDiv(e->builder, a, divisor, "") :
				       LLVMBuildUDiv(e->builder, a, divisor, "");
	if (is_minus)
		quotient = choose(e, is_minus, LLVMBuildNeg(e->builder, a, ""), quotient);
	return is_zero ? choose(e, is_zero, zero(a), quotient) : quotient;
}

/* Rounding down instead of towards zero: `remainder` picks what is wanted. */
static LLVMValueRef divide_floor(const struct emitter *e, enum lth_dtype dtype, LLVMValueRef a, LLVMValueRef b,
				 bool remainder)
{
	int64_t by;
	if (!is_signed(dtype))
		return divide(e, dtype, a, b, remainder);
	if (constant_int(b, &by) && by > 0 && (by & (by - 1)) == 0) {
		LLVMTypeRef type = LLVMTypeOf(a);
		if (remainder)
			return LLVMBuildAnd(e->builder, a, lth_llvm_int(type, (uint64_t)by - 1), "");
		return LLVMBuildAShr(e->builder, a, lth_llvm_int(type, (uint64_t)__builtin_ctzll((uint64_t)by)), "");
	}
	LLVMValueRef rest = divide(e, dtype, a, b, true);
	LLVMValueRef inexact = icmp(e, LLVMIntNE, rest, zero(rest));
	LLVMValueRef opposite = icmp(e, LLVMIntSLT, LLVMBuildXor(e->builder, rest, b, ""), zero(rest));
	LLVMValueRef adjust = LLVMBuildAnd(e->builder, inexact, opposite, "");
	if (remainder)
		return choose(e, adjust, LLVMBuildAdd(e->builder, rest, b, ""), rest);
	LLVMValueRef quotient = divide(e, dtype, a, b, false);
	return LLVMBuildAdd(e->builder, quotient, LLVMBuildSExt(e->builder, adjust, LLVMTypeOf(a), ""), "");
}

/* Shifts by the width or more are defined. */
static LLVMValueRef shift(const struct emitter *e, enum lth_scalar_op op, enum lth_dtype dtype, LLVMValueRef a,
			  LLVMValueRef b)
{
	LLVMTypeRef type = LLVMTypeOf(a);
	int64_t by;
	if (constant_int(b, &by) && by >= 0 && by < (int64_t)lth_dtype_bits(dtype)) {
		if (op == LTH_SCALAR_SHL)
			return LLVMBuildShl(e->builder, a, b, "");
		return is_signed(dtype) ? LLVMBuildAShr(e->builder, a, b, "") : LLVMBuildLShr(e->builder, a, b, "");
	}
	LLVMValueRef width = lth_llvm_int(type, lth_dtype_bits(dtype)), last = lth_llvm_int(type, lth_dtype_bits(dtype) - 1);
	if (op == LTH_SCALAR_SHR && is_signed(dtype))
		return LLVMBuildAShr(e->builder, a, lth_llvm_intrinsic2(e, "llvm.umin", b, last), "");
	LLVMValueRef inside = icmp(e, LLVMIntULT, b, width);
	LLVMValueRef amount = LLVMBuildAnd(e->builder, b, last, "");
	LLVMValueRef shifted = op == LTH_SCALAR_SHL ? LLVMBuildShl(e->builder, a, amount, "") :
						      LLVMBuildLShr(e->builder, a, amount, "");
	return choose(e, inside, shifted, zero(a));
}

static LLVMValueRef int2(const struct emitter *e, enum lth_scalar_op op, enum lth_dtype dtype, LLVMValueRef a,
			 LLVMValueRef b)
{
	bool sign = is_signed(dtype);
	switch (op) {
	case LTH_SCALAR_ADD:
		return LLVMBuildAdd(e->builder, a, b, "");
	case LTH_SCALAR_SUB:
		return LLVMBuildSub(e->builder, a, b, "");
	case LTH_SCALAR_MUL:
		return LLVMBuildMul(e->builder, a, b, "");
	case LTH_SCALAR_DIV:
	case LTH_SCALAR_REM:
		return divide(e, dtype, a, b, op == LTH_SCALAR_REM);
	case LTH_SCALAR_FLOORDIV:
	case LTH_SCALAR_MOD:
		return divide_floor(e, dtype, a, b, op == LTH_SCALAR_MOD);
	case LTH_SCALAR_MIN:
		return lth_llvm_intrinsic2(e, sign ? "llvm.smin" : "llvm.umin", a, b);
	case LTH_SCALAR_MAX:
		return lth_llvm_intrinsic2(e, sign ? "llvm.smax" : "llvm.umax", a, b);
	case LTH_SCALAR_AND:
		return LLVMBuildAnd(e->builder, a, b, "");
	case LTH_SCALAR_OR:
		return LLVMBuildOr(e->builder, a, b, "");
	case LTH_SCALAR_XOR:
		return LLVMBuildXor(e->builder, a, b, "");
	case LTH_SCALAR_SHL:
	case LTH_SCALAR_SHR:
		return shift(e, op, dtype, a, b);
	case LTH_SCALAR_EQ:
		return icmp(e, LLVMIntEQ, a, b);
	case LTH_SCALAR_NE:
		return icmp(e, LLVMIntNE, a, b);
	case LTH_SCALAR_LT:
		return icmp(e, sign ? LLVMIntSLT : LLVMIntULT, a, b);
	case LTH_SCALAR_LE:
		return icmp(e, sign ? LLVMIntSLE : LLVMIntULE, a, b);
	default:
		assert(!"an integer operator");
		return NULL;
	}
}

static LLVMValueRef bool2(const struct emitter *e, enum lth_scalar_op op, LLVMValueRef a, LLVMValueRef b)
{
	switch (op) {
	case LTH_SCALAR_ADD:
	case LTH_SCALAR_MAX:
		return LLVMBuildOr(e->builder, a, b, "");
	case LTH_SCALAR_MUL:
	case LTH_SCALAR_MIN:
		return LLVMBuildAnd(e->builder, a, b, "");
	default: /* as unsigned integers of one bit */
		return int2(e, op, LTH_DTYPE_U8, a, b);
	}
}

static bool surely_a_number(LLVMValueRef value)
{
	if (!LLVMIsConstant(value))
		return false;
	bool vector = LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMVectorTypeKind;
	LLVMBool loses;
	for (unsigned k = 0; k < (vector ? LLVMGetVectorSize(LLVMTypeOf(value)) : 1); k++) {
		LLVMValueRef lane = vector ? LLVMGetAggregateElement(value, k) : value;
		double number = lane && LLVMIsAConstantFP(lane) ? LLVMConstRealGetDouble(lane, &loses) : 0.0 / 0.0;
		if (number != number)
			return false;
	}
	return true;
}

/* b where it is beyond a or a nan, else a. One instruction when b is a constant: x86 gives its second operand when the
 * comparison does not hold. */
static LLVMValueRef min_max(const struct emitter *e, LLVMRealPredicate beyond, LLVMValueRef a, LLVMValueRef b)
{
	LLVMValueRef best = choose(e, fcmp(e, beyond, a, b), b, a);
	return surely_a_number(b) ? best : choose(e, fcmp(e, LLVMRealUNO, b, b), b, best);
}

/* The remainder with the divisor's sign; of a zero too. */
static LLVMValueRef float_mod(const struct emitter *e, LLVMValueRef a, LLVMValueRef b)
{
	LLVMValueRef rest = LLVMBuildFRem(e->builder, a, b, ""), nothing = zero(rest);
	LLVMValueRef is_zero = fcmp(e, LLVMRealOEQ, rest, nothing);
	LLVMValueRef rest_negative = fcmp(e, LLVMRealOLT, rest, nothing), negative = fcmp(e, LLVMRealOLT, b, nothing);
	LLVMValueRef opposite = LLVMBuildXor(e->builder, rest_negative, negative, "");
	LLVMValueRef adjusted = choose(e, opposite, LLVMBuildFAdd(e->builder, rest, b, ""), rest);
	return choose(e, is_zero, lth_llvm_intrinsic2(e, "llvm.copysign", rest, b), adjusted);
}

static LLVMValueRef float2(const struct emitter *e, enum lth_scalar_op op, LLVMValueRef a, LLVMValueRef b)
{
	switch (op) {
	case LTH_SCALAR_ADD:
		return LLVMBuildFAdd(e->builder, a, b, "");
	case LTH_SCALAR_SUB:
		return LLVMBuildFSub(e->builder, a, b, "");
	case LTH_SCALAR_MUL:
		return LLVMBuildFMul(e->builder, a, b, "");
	case LTH_SCALAR_DIV:
		return LLVMBuildFDiv(e->builder, a, b, "");
	case LTH_SCALAR_REM:
		return LLVMBuildFRem(e->builder, a, b, "");
	case LTH_SCALAR_MOD:
		return float_mod(e, a, b);
	case LTH_SCALAR_MIN:
		return min_max(e, LLVMRealOGT, a, b);
	case LTH_SCALAR_MAX:
		return min_max(e, LLVMRealOLT, a, b);
	case LTH_SCALAR_EQ:
		return fcmp(e, LLVMRealOEQ, a, b);
	case LTH_SCALAR_NE:
		return fcmp(e, LLVMRealUNE, a, b);
	case LTH_SCALAR_LT:
		return fcmp(e, LLVMRealOLT, a, b);
	case LTH_SCALAR_LE:
		return fcmp(e, LLVMRealOLE, a, b);
	default:
		assert(!"a float operator");
		return NULL;
	}
}

LLVMValueRef lth_llvm_apply2(struct emitter *e, enum lth_scalar_op op, enum lth_dtype dtype, LLVMValueRef a,
			     LLVMValueRef b)
{
	if (dtype == LTH_POINTER_TYPE)
		return icmp(e, LLVMIntEQ, a, b);
	if (dtype == LTH_DTYPE_BOOL)
		return bool2(e, op, a, b);
	return lth_is_float(dtype) ? float2(e, op, a, b) : int2(e, op, dtype, a, b);
}

/* a * 2^b by AVX-512's own instruction for `lanes` lanes that fill a register. */
static LLVMValueRef scalef(const struct emitter *e, enum lth_dtype dtype, LLVMValueRef a, LLVMValueRef b, unsigned lanes)
{
	bool is_f32 = dtype == LTH_DTYPE_F32;
	unsigned bits = lanes * lth_dtype_bits(dtype);
	char name[64];
	snprintf(name, sizeof(name), "llvm.x86.avx512.mask.scalef.%s.%u", is_f32 ? "ps" : "pd", bits);
	LLVMTypeRef mask = LLVMIntTypeInContext(e->context, lanes < 8 ? 8 : lanes);
	LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context);
	LLVMValueRef arguments[5] = {a, b, LLVMConstNull(LLVMTypeOf(a)), LLVMConstAllOnes(mask),
				     LLVMConstInt(i32, 4, false)}; /* the current rounding mode */
	return lth_llvm_intrinsic(e, name, NULL, 0, arguments, bits == 512 ? 5 : 4);
}

/* a * 2^b. Elsewhere by two factors, so that neither leaves the range of exponents and the last product rounds once. */
static LLVMValueRef scale(const struct emitter *e, enum lth_dtype dtype, LLVMValueRef a, LLVMValueRef b, unsigned lanes)
{
	unsigned bytes = lth_dtype_bits(dtype) / 8;
	if (e->target->vector_bytes == 64 && lanes * bytes >= 16 && (lanes & (lanes - 1)) == 0) {
		if (lanes * bytes <= 64)
			return scalef(e, dtype, a, b, lanes);
		unsigned half = lanes / 2;
		LLVMValueRef halves[2];
		for (unsigned k = 0; k < 2; k++) {
			LLVMValueRef half_a = lth_llvm_slice(e, a, k * half, half);
			LLVMValueRef half_b = lth_llvm_slice(e, b, k * half, half);
			halves[k] = scale(e, dtype, half_a, half_b, half);
		}
		return lth_llvm_concat(e, halves[0], halves[1], lanes);
	}
	int mantissa = dtype == LTH_DTYPE_F32 ? 23 : 52, bias = dtype == LTH_DTYPE_F32 ? 127 : 1023;
	LLVMTypeRef i32 = lth_llvm_type(e, LTH_DTYPE_I32, lanes), real = LLVMTypeOf(a);
	LLVMTypeRef whole = lth_llvm_type(e, dtype == LTH_DTYPE_F32 ? LTH_DTYPE_I32 : LTH_DTYPE_I64, lanes);
	LLVMValueRef n = LLVMBuildFPToSI(e->builder, b, i32, ""), first = LLVMBuildAShr(e->builder, n, lth_llvm_int(i32, 1), "");
	LLVMValueRef parts[2] = {first, LLVMBuildSub(e->builder, n, first, "")};
	for (int k = 0; k < 2; k++) {
		LLVMValueRef biased = LLVMBuildAdd(e->builder, parts[k], lth_llvm_int(i32, (uint64_t)bias), "");
		if (dtype == LTH_DTYPE_F64)
			biased = LLVMBuildSExt(e->builder, biased, whole, "");
		biased = LLVMBuildShl(e->builder, biased, lth_llvm_int(whole, (uint64_t)mantissa), "");
		a = LLVMBuildFMul(e->builder, a, LLVMBuildBitCast(e->builder, biased, real, ""), "");
	}
	return a;
}

/* f64 math (and lgamma of f32): a call of libm's function for each lane. */
static LLVMValueRef call_libm(struct emitter *e, const struct lth_loop_instr *x, LLVMValueRef a, LLVMValueRef b)
{
	char name[32];
	bool gamma = x->scalar == LTH_SCALAR_LGAMMA;
	LLVMTypeRef f64 = LLVMDoubleTypeInContext(e->context), i32 = LLVMInt32TypeInContext(e->context);
	LLVMTypeRef types[2] = {f64, gamma ? LLVMPointerTypeInContext(e->context, 0) : f64};
	unsigned arity = gamma ? 2 : lth_scalar_arity(x->scalar);
	snprintf(name, sizeof(name), "%s%s", lth_scalar_text(x->scalar), gamma ? "_r" : "");
	LLVMTypeRef type = LLVMFunctionType(f64, types, arity, false);
	LLVMValueRef callee = LLVMGetNamedFunction(e->module, name);
	callee = callee ? callee : LLVMAddFunction(e->module, name, type);
	LLVMValueRef result = LLVMGetPoison(lth_llvm_type(e, x->dtype, x->lanes));
	for (unsigned k = 0; k < x->lanes; k++) {
		LLVMValueRef lane = LLVMConstInt(i32, k, false), arguments[2] = {a, b};
		for (unsigned n = 0; x->lanes > 1 && n < lth_scalar_arity(x->scalar); n++)
			arguments[n] = LLVMBuildExtractElement(e->builder, arguments[n], lane, "");
		if (x->dtype == LTH_DTYPE_F32)
			arguments[0] = LLVMBuildFPExt(e->builder, arguments[0], f64, "");
		if (gamma)
			arguments[1] = e->sign;
		LLVMValueRef value = LLVMBuildCall2(e->builder, type, callee, arguments, arity, "");
		if (x->dtype == LTH_DTYPE_F32)
			value = LLVMBuildFPTrunc(e->builder, value, LLVMFloatTypeInContext(e->context), "");
		result = x->lanes > 1 ? LLVMBuildInsertElement(e->builder, result, value, lane, "") : value;
	}
	return result;
}

/* Saturating conversion of vectors, spelled out: what cannot be represented is converted as 0 and put right after it.
 * LLVM's own intrinsic falls apart into lanes. */
static LLVMValueRef saturate(const struct emitter *e, const struct lth_loop_instr *x, LLVMValueRef a)
{
	bool sign = is_signed(x->dtype);
	unsigned bits = lth_dtype_bits(x->dtype);
	LLVMTypeRef real = LLVMTypeOf(a), type = lth_llvm_type(e, x->dtype, x->lanes);
	LLVMTypeRef wide = bits < 32 ? lth_llvm_type(e, LTH_DTYPE_I32, x->lanes) : type;
	double above = sign ? (double)(1ull << (bits - 1)) : 2 * (double)(1ull << (bits - 1)); /* a power of two */
	uint64_t most = ~0ull >> (64 - bits + sign), least = sign ? ~0ull << (bits - 1) : 0;
	LLVMValueRef top = lth_llvm_real(real, above), bottom = lth_llvm_real(real, sign ? -above : 0);
	LLVMValueRef low = fcmp(e, LLVMRealOGE, a, bottom), high = fcmp(e, LLVMRealOGE, a, top);
	LLVMValueRef fits = LLVMBuildAnd(e->builder, low, fcmp(e, LLVMRealOLT, a, top), "");
	LLVMValueRef safe = choose(e, fits, a, zero(a));
	LLVMValueRef whole = sign || bits < 32 ? LLVMBuildFPToSI(e->builder, safe, wide, "") :
						 LLVMBuildFPToUI(e->builder, safe, wide, "");
	if (wide != type)
		whole = LLVMBuildTrunc(e->builder, whole, type, "");
	whole = choose(e, high, lth_llvm_int(type, most), whole);
	return sign ? choose(e, fcmp(e, LLVMRealOLT, a, bottom), lth_llvm_int(type, least), whole) : whole;
}

static LLVMValueRef cast(const struct emitter *e, const struct lth_loop_instr *x, enum lth_dtype from, LLVMValueRef a)
{
	LLVMTypeRef type = lth_llvm_type(e, x->dtype, x->lanes);
	if (from == x->dtype)
		return a;
	if (lth_is_float(from)) {
		if (x->dtype == LTH_DTYPE_BOOL)
			return fcmp(e, LLVMRealUNE, a, zero(a));
		if (lth_is_float(x->dtype))
			return x->dtype == LTH_DTYPE_F64 ? LLVMBuildFPExt(e->builder, a, type, "") :
							   LLVMBuildFPTrunc(e->builder, a, type, "");
		if (x->lanes > 1)
			return saturate(e, x, a);
		LLVMTypeRef types[2] = {type, LLVMTypeOf(a)};
		return lth_llvm_intrinsic(e, is_signed(x->dtype) ? "llvm.fptosi.sat" : "llvm.fptoui.sat", types, 2, &a, 1);
	}
	if (x->dtype == LTH_DTYPE_BOOL)
		return icmp(e, LLVMIntNE, a, zero(a));
	if (lth_is_float(x->dtype))
		return is_signed(from) ? LLVMBuildSIToFP(e->builder, a, type, "") : LLVMBuildUIToFP(e->builder, a, type, "");
	unsigned have = from == LTH_DTYPE_BOOL ? 1 : lth_dtype_bits(from), want = lth_dtype_bits(x->dtype);
	if (have == want)
		return a;
	if (have > want)
		return LLVMBuildTrunc(e->builder, a, type, "");
	return is_signed(from) ? LLVMBuildSExt(e->builder, a, type, "") : LLVMBuildZExt(e->builder, a, type, "");
}

/* One operand and the arithmetic intrinsics. */
static LLVMValueRef unary(struct emitter *e, const struct lth_loop_instr *x, enum lth_dtype dtype, LLVMValueRef a)
{
	bool real = lth_is_float(dtype);
	switch (x->scalar) {
	case LTH_SCALAR_NEG:
		return real ? LLVMBuildFNeg(e->builder, a, "") : LLVMBuildNeg(e->builder, a, "");
	case LTH_SCALAR_ABS:
		if (real)
			return lth_llvm_intrinsic1(e, "llvm.fabs", a);
		return is_signed(dtype) ? lth_llvm_intrinsic2(e, "llvm.smax", a, LLVMBuildNeg(e->builder, a, "")) : a;
	case LTH_SCALAR_NOT:
		return LLVMBuildNot(e->builder, a, "");
	case LTH_SCALAR_POPCOUNT:
		return lth_llvm_intrinsic1(e, "llvm.ctpop", a);
	case LTH_SCALAR_CAST:
		return cast(e, x, dtype, a);
	case LTH_SCALAR_BITCAST:
		return LLVMBuildBitCast(e->builder, a, lth_llvm_type(e, x->dtype, x->lanes), "");
	case LTH_SCALAR_ROUND_TO: { /* f16 where the hardware has it; other types have been expanded */
		assert(x->memory == LTH_DTYPE_F16);
		LLVMValueRef half = LLVMBuildFPTrunc(e->builder, a, lth_llvm_type(e, LTH_DTYPE_F16, x->lanes), "");
		return LLVMBuildFPExt(e->builder, half, LLVMTypeOf(a), "");
	}
	case LTH_SCALAR_SQRT:
		return lth_llvm_intrinsic1(e, "llvm.sqrt", a);
	case LTH_SCALAR_FLOOR:
		return lth_llvm_intrinsic1(e, "llvm.floor", a);
	case LTH_SCALAR_CEIL:
		return lth_llvm_intrinsic1(e, "llvm.ceil", a);
	case LTH_SCALAR_TRUNC:
		return lth_llvm_intrinsic1(e, "llvm.trunc", a);
	case LTH_SCALAR_RINT:
		return lth_llvm_intrinsic1(e, "llvm.rint", a);
	case LTH_SCALAR_ISNAN:
		return fcmp(e, LLVMRealUNO, a, a);
	default:
		return call_libm(e, x, a, NULL);
	}
}

LLVMValueRef lth_llvm_scalar(struct emitter *e, const struct lth_loop_instr *x)
{
	LLVMValueRef a = e->values[x->a];
	enum lth_dtype dtype = lth_loop_get(e->fn, x->a)->dtype;
	switch (lth_scalar_arity(x->scalar)) {
	case 1:
		return unary(e, x, dtype, a);
	case 2:
		if (x->scalar == LTH_SCALAR_POW)
			return call_libm(e, x, a, e->values[x->b]);
		if (x->scalar == LTH_SCALAR_SCALE)
			return scale(e, dtype, a, e->values[x->b], x->lanes);
		return lth_llvm_apply2(e, x->scalar, dtype, a, e->values[x->b]);
	default:
		break;
	}
	if (x->scalar == LTH_SCALAR_SELECT)
		return choose(e, a, e->values[x->b], e->values[x->c]);
	assert(x->scalar == LTH_SCALAR_FMA);
	/* Without the instruction llvm.fma would be a call a lane: contraction is allowed, not demanded. */
	LLVMTypeRef type = LLVMTypeOf(a);
	return lth_llvm_intrinsic(e, e->target->fma ? "llvm.fma" : "llvm.fmuladd", &type, 1,
				  (LLVMValueRef[]){a, e->values[x->b], e->values[x->c]}, 3);
}
