/* Memory in LLVM IR: loads, stores, gathers, scatters, masked or not, and the byte dot product. Elements lie in memory as
 * their own type, bools as bytes; other narrow floats than f16 have been expanded before. See llvm.h. */
#include "compiler/codegen/llvm.h"

#include <assert.h>

static LLVMTypeRef memory_type(const struct emitter *e, const struct lth_loop_instr *x)
{
	return lth_llvm_type(e, x->memory == LTH_DTYPE_BOOL ? LTH_DTYPE_U8 : x->memory, x->lanes);
}

/* From memory to compute type and back. */
static LLVMValueRef widen(const struct emitter *e, const struct lth_loop_instr *x, LLVMValueRef value)
{
	if (x->memory == LTH_DTYPE_BOOL)
		return LLVMBuildICmp(e->builder, LLVMIntNE, value, LLVMConstNull(LLVMTypeOf(value)), "");
	if (x->memory == LTH_DTYPE_F16)
		return LLVMBuildFPExt(e->builder, value, lth_llvm_type(e, LTH_DTYPE_F32, x->lanes), "");
	return value;
}

static LLVMValueRef narrow(const struct emitter *e, const struct lth_loop_instr *x, LLVMValueRef value)
{
	if (x->memory == LTH_DTYPE_BOOL)
		return LLVMBuildZExt(e->builder, value, memory_type(e, x), "");
	if (x->memory == LTH_DTYPE_F16)
		return LLVMBuildFPTrunc(e->builder, value, memory_type(e, x), "");
	return value;
}

static unsigned alignment(const struct lth_loop_instr *x)
{
	return lth_dtype_bits(x->memory) / 8;
}

/* Masked accesses work on vectors: a scalar is a vector of one lane. */
static LLVMValueRef as_vector(const struct emitter *e, LLVMValueRef value)
{
	if (LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMVectorTypeKind)
		return value;
	LLVMTypeRef type = LLVMVectorType(LLVMTypeOf(value), 1);
	LLVMValueRef at = LLVMConstInt(LLVMInt32TypeInContext(e->context), 0, false);
	return LLVMBuildInsertElement(e->builder, LLVMGetPoison(type), value, at, "");
}

static LLVMValueRef masked_load(const struct emitter *e, const struct lth_loop_instr *x)
{
	LLVMTypeRef vector = LLVMVectorType(lth_llvm_scalar_type(e, x->memory == LTH_DTYPE_BOOL ? LTH_DTYPE_U8 : x->memory),
					    x->lanes);
	LLVMTypeRef types[2] = {vector, LLVMPointerTypeInContext(e->context, 0)}, i32 = LLVMInt32TypeInContext(e->context);
	LLVMValueRef arguments[4] = {e->values[x->a], LLVMConstInt(i32, alignment(x), false),
				     as_vector(e, e->values[x->c]), LLVMConstNull(vector)};
	LLVMValueRef value = lth_llvm_intrinsic(e, "llvm.masked.load", types, 2, arguments, 4);
	return x->lanes > 1 ? value : LLVMBuildExtractElement(e->builder, value, LLVMConstInt(i32, 0, false), "");
}

static LLVMValueRef load(const struct emitter *e, const struct lth_loop_instr *x)
{
	if (x->c != LTH_LV_NONE)
		return widen(e, x, masked_load(e, x));
	LLVMValueRef value = LLVMBuildLoad2(e->builder, memory_type(e, x), e->values[x->a], "");
	LLVMSetAlignment(value, alignment(x));
	return widen(e, x, value);
}

static LLVMValueRef store(const struct emitter *e, const struct lth_loop_instr *x)
{
	LLVMValueRef value = narrow(e, x, e->values[x->b]);
	if (x->c == LTH_LV_NONE) {
		LLVMValueRef done = LLVMBuildStore(e->builder, value, e->values[x->a]);
		LLVMSetAlignment(done, alignment(x));
		return done;
	}
	value = as_vector(e, value);
	LLVMTypeRef types[2] = {LLVMTypeOf(value), LLVMPointerTypeInContext(e->context, 0)};
	LLVMValueRef align = LLVMConstInt(LLVMInt32TypeInContext(e->context), alignment(x), false);
	LLVMValueRef arguments[4] = {value, e->values[x->a], align, as_vector(e, e->values[x->c])};
	return lth_llvm_intrinsic(e, "llvm.masked.store", types, 2, arguments, 4);
}

/* Addresses of a gather or scatter. */
static LLVMValueRef addresses(const struct emitter *e, const struct lth_loop_instr *x, lth_lv index)
{
	LLVMTypeRef element = LLVMIntTypeInContext(e->context, lth_dtype_bits(x->memory));
	return LLVMBuildGEP2(e->builder, element, e->values[x->a], &e->values[index], 1, "");
}

static LLVMValueRef mask_or_all(const struct emitter *e, const struct lth_loop_instr *x)
{
	return x->c != LTH_LV_NONE ? e->values[x->c] : LLVMConstAllOnes(lth_llvm_type(e, LTH_DTYPE_BOOL, x->lanes));
}

static LLVMValueRef gather(const struct emitter *e, const struct lth_loop_instr *x)
{
	LLVMTypeRef vector = memory_type(e, x);
	LLVMValueRef at = addresses(e, x, x->b);
	LLVMTypeRef types[2] = {vector, LLVMTypeOf(at)};
	LLVMValueRef align = LLVMConstInt(LLVMInt32TypeInContext(e->context), alignment(x), false);
	LLVMValueRef arguments[4] = {at, align, mask_or_all(e, x), LLVMConstNull(vector)};
	return widen(e, x, lth_llvm_intrinsic(e, "llvm.masked.gather", types, 2, arguments, 4));
}

/* LLVM's scatter is ordered from the lowest lane up, so that of equal indices the highest stays. */
static LLVMValueRef scatter(const struct emitter *e, const struct lth_loop_instr *x)
{
	LLVMValueRef value = narrow(e, x, e->values[x->b]), at = addresses(e, x, x->list[0]);
	LLVMTypeRef types[2] = {LLVMTypeOf(value), LLVMTypeOf(at)};
	LLVMValueRef align = LLVMConstInt(LLVMInt32TypeInContext(e->context), alignment(x), false);
	LLVMValueRef arguments[4] = {value, at, align, mask_or_all(e, x)};
	return lth_llvm_intrinsic(e, "llvm.masked.scatter", types, 2, arguments, 4);
}

static LLVMValueRef prefetch(const struct emitter *e, const struct lth_loop_instr *x)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context), pointer = LLVMPointerTypeInContext(e->context, 0);
	bool write = x->i && e->target->prefetchw;
	LLVMValueRef arguments[4] = {e->values[x->a], LLVMConstInt(i32, write, false), LLVMConstInt(i32, 3, false),
				     LLVMConstInt(i32, 1, false)};
	return lth_llvm_intrinsic(e, "llvm.prefetch", &pointer, 1, arguments, 4);
}

LLVMValueRef lth_llvm_memory(struct emitter *e, const struct lth_loop_instr *x)
{
	switch (x->op) {
	case LTH_LOOP_LOAD:
		return load(e, x);
	case LTH_LOOP_STORE:
		return store(e, x);
	case LTH_LOOP_GATHER:
		return gather(e, x);
	case LTH_LOOP_SCATTER:
		return scatter(e, x);
	default:
		assert(x->op == LTH_LOOP_PREFETCH);
		return prefetch(e, x);
	}
}

/* The instruction for `lanes` sums, or NULL. */
static const char *dot_instruction(const struct emitter *e, unsigned lanes)
{
	if (!e->target->vnni || lanes * 4 > e->target->vector_bytes)
		return NULL;
	switch (lanes) {
	case 4:
		return "llvm.x86.avx512.vpdpbusd.128";
	case 8:
		return "llvm.x86.avx512.vpdpbusd.256";
	case 16:
		return "llvm.x86.avx512.vpdpbusd.512";
	default:
		return NULL;
	}
}

/* Bytes as 16-bit lanes, even and odd ones apart: products of pairs then add up in 32 bits without overflow. */
static LLVMValueRef byte_pairs(const struct emitter *e, LLVMValueRef bytes, unsigned lanes, bool odd, bool sign)
{
	LLVMTypeRef type = LLVMVectorType(LLVMInt16TypeInContext(e->context), lanes * 2);
	LLVMValueRef pairs = LLVMBuildBitCast(e->builder, bytes, type, ""), eight = lth_llvm_int(type, 8);
	if (!odd && !sign)
		return LLVMBuildAnd(e->builder, pairs, lth_llvm_int(type, 0xff), "");
	if (!odd)
		pairs = LLVMBuildShl(e->builder, pairs, eight, "");
	return sign ? LLVMBuildAShr(e->builder, pairs, eight, "") : LLVMBuildLShr(e->builder, pairs, eight, "");
}

/* Sums of neighbouring products; LLVM finds pmaddwd in it. */
static LLVMValueRef multiply_add_pairs(const struct emitter *e, LLVMValueRef a, LLVMValueRef b, unsigned lanes)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context), wide = LLVMVectorType(i32, lanes * 2);
	a = LLVMBuildSExt(e->builder, a, wide, "");
	b = LLVMBuildSExt(e->builder, b, wide, "");
	LLVMValueRef product = LLVMBuildMul(e->builder, a, b, "");
	LLVMValueRef even[LTH_MAX_LANES], odd[LTH_MAX_LANES], poison = LLVMGetPoison(wide);
	for (unsigned k = 0; k < lanes; k++) {
		even[k] = LLVMConstInt(i32, 2 * k, false);
		odd[k] = LLVMConstInt(i32, 2 * k + 1, false);
	}
	LLVMValueRef first = LLVMBuildShuffleVector(e->builder, product, poison, LLVMConstVector(even, lanes), "");
	LLVMValueRef second = LLVMBuildShuffleVector(e->builder, product, poison, LLVMConstVector(odd, lanes), "");
	return LLVMBuildAdd(e->builder, first, second, "");
}

/* One scalar sum: four products. */
static LLVMValueRef dot_scalar(const struct emitter *e, LLVMValueRef sum, LLVMValueRef a, LLVMValueRef b)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context);
	for (unsigned k = 0; k < 4; k++) {
		LLVMValueRef at = LLVMConstInt(i32, k, false);
		LLVMValueRef x = LLVMBuildZExt(e->builder, LLVMBuildExtractElement(e->builder, a, at, ""), i32, "");
		LLVMValueRef y = LLVMBuildSExt(e->builder, LLVMBuildExtractElement(e->builder, b, at, ""), i32, "");
		sum = LLVMBuildAdd(e->builder, sum, LLVMBuildMul(e->builder, x, y, ""), "");
	}
	return sum;
}

static LLVMValueRef dot(const struct emitter *e, LLVMValueRef sum, LLVMValueRef a, LLVMValueRef b, unsigned lanes)
{
	if (lanes == 1)
		return dot_scalar(e, sum, a, b);
	const char *instruction = dot_instruction(e, lanes);
	if (instruction) {
		LLVMTypeRef type = LLVMTypeOf(sum);
		a = LLVMBuildBitCast(e->builder, a, type, "");
		b = LLVMBuildBitCast(e->builder, b, type, "");
		LLVMValueRef arguments[3] = {sum, a, b};
		return lth_llvm_intrinsic(e, instruction, NULL, 0, arguments, 3);
	}
	if (e->target->vnni && lanes % 8 == 0) { /* wider than a register: halves */
		unsigned half = lanes / 2;
		LLVMValueRef halves[2];
		for (unsigned k = 0; k < 2; k++) {
			LLVMValueRef half_sum = lth_llvm_slice(e, sum, k * half, half);
			LLVMValueRef half_a = lth_llvm_slice(e, a, k * half * 4, half * 4);
			LLVMValueRef half_b = lth_llvm_slice(e, b, k * half * 4, half * 4);
			halves[k] = dot(e, half_sum, half_a, half_b, half);
		}
		return lth_llvm_concat(e, halves[0], halves[1], lanes);
	}
	for (unsigned odd = 0; odd < 2; odd++) {
		LLVMValueRef x = byte_pairs(e, a, lanes, odd, false), y = byte_pairs(e, b, lanes, odd, true);
		sum = LLVMBuildAdd(e->builder, sum, multiply_add_pairs(e, x, y, lanes), "");
	}
	return sum;
}

LLVMValueRef lth_llvm_dot4(struct emitter *e, const struct lth_loop_instr *x)
{
	return dot(e, e->values[x->a], e->values[x->b], e->values[x->c], x->lanes);
}
