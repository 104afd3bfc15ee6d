/* From loop IR to LLVM IR, one to one. Loops are rotated (a guard, then a body that tests at its end), carried values are
 * phis, nothing is left for passes to do. See llvm.h. */
#include "compiler/codegen/llvm.h"

#include "compiler/lower/loop_build.h"

#include <stdlib.h>
#include <string.h>

struct emit_block {
	const struct lth_loop_instr *opening;
	LLVMBasicBlockRef before;    /* FOR: where the guard stands */
	LLVMBasicBlockRef body;      /* FOR: the loop */
	LLVMBasicBlockRef after;     /* FOR: behind the loop; IF: the other arm, or what follows */
	LLVMBasicBlockRef then_end;  /* IF: where the first arm ended */
	LLVMBasicBlockRef merge;     /* IF: what follows both arms; NULL before an else */
	const uint32_t *yields;      /* IF: of the first arm */
	LLVMValueRef index;
	bool guarded;
};

LLVMTypeRef lth_llvm_scalar_type(const struct emitter *e, enum lth_dtype dtype)
{
	switch (dtype) {
	case LTH_DTYPE_F16:
		return LLVMHalfTypeInContext(e->context);
	case LTH_DTYPE_F32:
		return LLVMFloatTypeInContext(e->context);
	case LTH_DTYPE_F64:
		return LLVMDoubleTypeInContext(e->context);
	case LTH_DTYPE_BOOL:
		return LLVMInt1TypeInContext(e->context);
	case LTH_POINTER_TYPE:
		return LLVMPointerTypeInContext(e->context, 0);
	default:
		return LLVMIntTypeInContext(e->context, lth_dtype_bits(dtype));
	}
}

LLVMTypeRef lth_llvm_type(const struct emitter *e, enum lth_dtype dtype, unsigned lanes)
{
	LLVMTypeRef scalar = lth_llvm_scalar_type(e, dtype);
	return lanes > 1 ? LLVMVectorType(scalar, lanes) : scalar;
}

static LLVMValueRef constant_splat(LLVMValueRef lane, unsigned count)
{
	LLVMValueRef lanes[LTH_MAX_LANES * 4];
	for (unsigned k = 0; k < count; k++)
		lanes[k] = lane;
	return LLVMConstVector(lanes, count);
}

LLVMValueRef lth_llvm_int(LLVMTypeRef type, uint64_t value)
{
	if (LLVMGetTypeKind(type) != LLVMVectorTypeKind)
		return LLVMConstInt(type, value, false);
	return constant_splat(LLVMConstInt(LLVMGetElementType(type), value, false), LLVMGetVectorSize(type));
}

LLVMValueRef lth_llvm_real(LLVMTypeRef type, double value)
{
	if (LLVMGetTypeKind(type) != LLVMVectorTypeKind)
		return LLVMConstReal(type, value);
	return constant_splat(LLVMConstReal(LLVMGetElementType(type), value), LLVMGetVectorSize(type));
}

/* A constant <count x i32> of first, first + 1, ... */
static LLVMValueRef lane_numbers(const struct emitter *e, unsigned first, unsigned count, unsigned bits)
{
	LLVMValueRef lanes[LTH_MAX_LANES * 4];
	LLVMTypeRef type = LLVMIntTypeInContext(e->context, bits);
	for (unsigned k = 0; k < count; k++)
		lanes[k] = LLVMConstInt(type, first + k, false);
	return LLVMConstVector(lanes, count);
}

/* insertelement + shufflevector: the form that LLVM folds into broadcasting loads (KERNELS.md, 1). */
LLVMValueRef lth_llvm_splat(const struct emitter *e, LLVMValueRef scalar, unsigned lanes)
{
	if (lanes == 1)
		return scalar;
	LLVMTypeRef type = LLVMVectorType(LLVMTypeOf(scalar), lanes), i32 = LLVMInt32TypeInContext(e->context);
	LLVMValueRef poison = LLVMGetPoison(type);
	LLVMValueRef first = LLVMBuildInsertElement(e->builder, poison, scalar, LLVMConstInt(i32, 0, false), "");
	return LLVMBuildShuffleVector(e->builder, first, poison, lth_llvm_int(LLVMVectorType(i32, lanes), 0), "");
}

LLVMValueRef lth_llvm_slice(const struct emitter *e, LLVMValueRef vector, unsigned first, unsigned count)
{
	return LLVMBuildShuffleVector(e->builder, vector, LLVMGetPoison(LLVMTypeOf(vector)),
				      lane_numbers(e, first, count, 32), "");
}

LLVMValueRef lth_llvm_concat(const struct emitter *e, LLVMValueRef a, LLVMValueRef b, unsigned lanes)
{
	return LLVMBuildShuffleVector(e->builder, a, b, lane_numbers(e, 0, lanes, 32), "");
}

LLVMValueRef lth_llvm_intrinsic(const struct emitter *e, const char *name, LLVMTypeRef *types, unsigned num_types,
				LLVMValueRef *arguments, unsigned count)
{
	unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
	assert(id != 0);
	LLVMValueRef callee = LLVMGetIntrinsicDeclaration(e->module, id, types, num_types);
	return LLVMBuildCall2(e->builder, LLVMIntrinsicGetType(e->context, id, types, num_types), callee, arguments, count,
			      "");
}

LLVMValueRef lth_llvm_intrinsic1(const struct emitter *e, const char *name, LLVMValueRef a)
{
	LLVMTypeRef type = LLVMTypeOf(a);
	return lth_llvm_intrinsic(e, name, &type, 1, &a, 1);
}

LLVMValueRef lth_llvm_intrinsic2(const struct emitter *e, const char *name, LLVMValueRef a, LLVMValueRef b)
{
	LLVMTypeRef type = LLVMTypeOf(a);
	return lth_llvm_intrinsic(e, name, &type, 1, (LLVMValueRef[]){a, b}, 2);
}

static LLVMBasicBlockRef new_block(const struct emitter *e)
{
	return LLVMCreateBasicBlockInContext(e->context, "");
}

static void enter(const struct emitter *e, LLVMBasicBlockRef block)
{
	LLVMAppendExistingBasicBlock(e->function, block);
	LLVMPositionBuilderAtEnd(e->builder, block);
}

/* Word `slot` of the call structure. */
static LLVMValueRef call_field(const struct emitter *e, unsigned slot, LLVMTypeRef type)
{
	LLVMTypeRef i64 = LLVMInt64TypeInContext(e->context);
	LLVMValueRef at = LLVMConstInt(i64, slot, false);
	LLVMValueRef address = LLVMBuildInBoundsGEP2(e->builder, i64, LLVMGetParam(e->function, 0), &at, 1, "");
	return LLVMBuildLoad2(e->builder, type, address, "");
}

/* Entry `id` of the array in word `slot` of the call. */
static LLVMValueRef call_entry(const struct emitter *e, LLVMValueRef array, uint32_t id, LLVMTypeRef type)
{
	LLVMValueRef at = LLVMConstInt(LLVMInt64TypeInContext(e->context), id, false);
	return LLVMBuildLoad2(e->builder, type, LLVMBuildInBoundsGEP2(e->builder, type, array, &at, 1, ""), "");
}

static LLVMValueRef constant(const struct emitter *e, const struct lth_loop_instr *x)
{
	LLVMTypeRef type = lth_llvm_scalar_type(e, x->dtype);
	if (x->dtype == LTH_DTYPE_F32 || x->dtype == LTH_DTYPE_F64)
		return LLVMConstReal(type, x->f);
	return LLVMConstInt(type, (uint64_t)x->i, false);
}

/* Loads of the entries of word `slot` of the call that the function uses, in their order, not in that of their uses. */
static void emit_call_entries(struct emitter *e, enum lth_loop_op op, unsigned slot, uint32_t count, LLVMTypeRef type)
{
	LLVMValueRef array = NULL;
	for (uint32_t id = 0; id < count; id++)
		e->entries[id] = LTH_LV_NONE;
	for (lth_lv v = 0; v < e->fn->num_instrs; v++)
		if (lth_loop_get(e->fn, v)->op == op)
			e->entries[lth_loop_get(e->fn, v)->id] = v;
	for (uint32_t id = 0; id < count; id++) {
		if (e->entries[id] == LTH_LV_NONE)
			continue;
		array = array ? array : call_field(e, slot, lth_llvm_scalar_type(e, LTH_POINTER_TYPE));
		e->values[e->entries[id]] = call_entry(e, array, id, type);
	}
}

/* Constants and parameters, at the function's start whatever their place in the list. */
static void emit_entry_values(struct emitter *e)
{
	LLVMTypeRef pointer = lth_llvm_scalar_type(e, LTH_POINTER_TYPE), i64 = LLVMInt64TypeInContext(e->context);
	emit_call_entries(e, LTH_LOOP_POINTER, 0, e->fn->num_pointers, pointer);
	emit_call_entries(e, LTH_LOOP_INT, 1, e->fn->num_ints, i64);
	for (lth_lv v = 0; v < e->fn->num_instrs; v++) {
		const struct lth_loop_instr *x = lth_loop_get(e->fn, v);
		switch (x->op) {
		case LTH_LOOP_CONST:
			e->values[v] = constant(e, x);
			break;
		case LTH_LOOP_SCRATCH:
			e->values[v] = call_field(e, 2, pointer);
			break;
		case LTH_LOOP_BEGIN:
		case LTH_LOOP_END:
			e->values[v] = LLVMGetParam(e->function, x->op == LTH_LOOP_BEGIN ? 1 : 2);
			break;
		case LTH_LOOP_FAIL:
			if (e->error)
				break;
			e->error = LLVMBuildAlloca(e->builder, LLVMInt32TypeInContext(e->context), "");
			LLVMBuildStore(e->builder, LLVMConstInt(LLVMInt32TypeInContext(e->context), 0, false), e->error);
			break;
		case LTH_LOOP_OP:
			if (x->scalar == LTH_SCALAR_LGAMMA && !e->sign)
				e->sign = LLVMBuildAlloca(e->builder, LLVMInt32TypeInContext(e->context), "");
			break;
		default:
			break;
		}
	}
}

static bool surely_runs(const struct emitter *e, const struct lth_loop_instr *x)
{
	const struct lth_loop_instr *begin = lth_loop_get(e->fn, x->a), *end = lth_loop_get(e->fn, x->b);
	return begin->op == LTH_LOOP_CONST && end->op == LTH_LOOP_CONST && begin->i < end->i;
}

static void emit_for(struct emitter *e, lth_lv value, const struct lth_loop_instr *x)
{
	struct emit_block *block = &e->blocks[e->num_blocks++];
	*block = (struct emit_block){
		.opening = x, .before = LLVMGetInsertBlock(e->builder), .body = new_block(e), .after = new_block(e),
		.guarded = !surely_runs(e, x),
	};
	if (block->guarded) {
		LLVMValueRef any = LLVMBuildICmp(e->builder, LLVMIntSLT, e->values[x->a], e->values[x->b], "");
		LLVMBuildCondBr(e->builder, any, block->body, block->after);
	} else {
		LLVMBuildBr(e->builder, block->body);
	}
	enter(e, block->body);
	block->index = LLVMBuildPhi(e->builder, LLVMInt64TypeInContext(e->context), "");
	LLVMAddIncoming(block->index, &e->values[x->a], &block->before, 1);
	e->values[value] = block->index;
	for (uint32_t k = 0; k < x->count; k++) {
		lth_lv phi = value + 1 + k;
		const struct lth_loop_instr *p = lth_loop_get(e->fn, phi);
		e->values[phi] = LLVMBuildPhi(e->builder, lth_llvm_type(e, p->dtype, p->lanes), "");
		LLVMAddIncoming(e->values[phi], &e->values[x->list[k]], &block->before, 1);
	}
}

static void emit_endfor(struct emitter *e, lth_lv value, const struct lth_loop_instr *x)
{
	struct emit_block *block = &e->blocks[--e->num_blocks];
	LLVMBasicBlockRef latch = LLVMGetInsertBlock(e->builder);
	LLVMValueRef next = LLVMBuildNSWAdd(e->builder, block->index, e->values[block->opening->c], "");
	LLVMValueRef more = LLVMBuildICmp(e->builder, LLVMIntSLT, next, e->values[block->opening->b], "");
	LLVMBuildCondBr(e->builder, more, block->body, block->after);
	LLVMAddIncoming(block->index, &next, &latch, 1);
	for (uint32_t k = 0; k < x->count; k++)
		LLVMAddIncoming(e->values[x->id + 1 + k], &e->values[x->list[k]], &latch, 1);
	enter(e, block->after);
	for (uint32_t k = 0; k < x->count; k++) {
		LLVMValueRef last = e->values[x->list[k]], first = e->values[block->opening->list[k]];
		LLVMValueRef result = LLVMBuildPhi(e->builder, LLVMTypeOf(last), "");
		LLVMAddIncoming(result, &last, &latch, 1);
		if (block->guarded)
			LLVMAddIncoming(result, &first, &block->before, 1);
		e->values[value + 1 + k] = result;
	}
}

static void emit_if(struct emitter *e, const struct lth_loop_instr *x)
{
	struct emit_block *block = &e->blocks[e->num_blocks++];
	*block = (struct emit_block){.opening = x, .body = new_block(e), .after = new_block(e)};
	LLVMBuildCondBr(e->builder, e->values[x->a], block->body, block->after);
	enter(e, block->body);
}

static void emit_else(struct emitter *e, const struct lth_loop_instr *x)
{
	struct emit_block *block = &e->blocks[e->num_blocks - 1];
	block->merge = new_block(e);
	block->then_end = LLVMGetInsertBlock(e->builder);
	block->yields = x->list;
	LLVMBuildBr(e->builder, block->merge);
	enter(e, block->after);
}

static void emit_endif(struct emitter *e, lth_lv value, const struct lth_loop_instr *x)
{
	struct emit_block *block = &e->blocks[--e->num_blocks];
	LLVMBasicBlockRef end = LLVMGetInsertBlock(e->builder), merge = block->merge ? block->merge : block->after;
	LLVMBuildBr(e->builder, merge);
	enter(e, merge);
	for (uint32_t k = 0; k < x->count; k++) {
		LLVMValueRef yes = e->values[block->yields[k]], no = e->values[x->list[k]];
		LLVMValueRef result = LLVMBuildPhi(e->builder, LLVMTypeOf(yes), "");
		LLVMAddIncoming(result, (LLVMValueRef[]){yes, no}, (LLVMBasicBlockRef[]){block->then_end, end}, 2);
		e->values[value + 1 + k] = result;
	}
}

/* Combines halves down to one lane, the order that the interpreter follows too; other lane counts go lane by lane. */
static LLVMValueRef emit_reduce(struct emitter *e, const struct lth_loop_instr *x)
{
	unsigned lanes = lth_loop_get(e->fn, x->a)->lanes;
	LLVMValueRef vector = e->values[x->a];
	LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context);
	for (; lanes > 1 && lanes % 2 == 0; lanes /= 2) {
		LLVMValueRef low = lth_llvm_slice(e, vector, 0, lanes / 2);
		LLVMValueRef high = lth_llvm_slice(e, vector, lanes / 2, lanes / 2);
		vector = lth_llvm_apply2(e, x->scalar, x->dtype, low, high);
	}
	LLVMValueRef result = LLVMBuildExtractElement(e->builder, vector, LLVMConstInt(i32, 0, false), "");
	for (unsigned k = 1; k < lanes; k++) {
		LLVMValueRef lane = LLVMBuildExtractElement(e->builder, vector, LLVMConstInt(i32, k, false), "");
		result = lth_llvm_apply2(e, x->scalar, x->dtype, result, lane);
	}
	return result;
}

/* lane < count, compared in 32 bits after bringing the count into range: half the vectors of 64 bits. */
static LLVMValueRef emit_mask(struct emitter *e, const struct lth_loop_instr *x)
{
	LLVMTypeRef i64 = LLVMInt64TypeInContext(e->context), i32 = LLVMInt32TypeInContext(e->context);
	LLVMValueRef count = lth_llvm_intrinsic2(e, "llvm.smin", e->values[x->a], LLVMConstInt(i64, x->lanes, false));
	count = lth_llvm_intrinsic2(e, "llvm.smax", count, LLVMConstInt(i64, 0, false));
	count = lth_llvm_splat(e, LLVMBuildTrunc(e->builder, count, i32, ""), x->lanes);
	return LLVMBuildICmp(e->builder, LLVMIntSLT, lane_numbers(e, 0, x->lanes, 32), count, "");
}

/* The instruction for lanes of 32 bits, or NULL. */
static const char *permute_instruction(const struct emitter *e, const struct lth_loop_instr *x)
{
	bool real = x->dtype == LTH_DTYPE_F32;
	if (lth_dtype_bits(x->dtype) != 32 || x->lanes * 4u > e->target->vector_bytes)
		return NULL;
	if (x->lanes == 16)
		return real ? "llvm.x86.avx512.permvar.sf.512" : "llvm.x86.avx512.permvar.si.512";
	if (x->lanes == 8)
		return real ? "llvm.x86.avx2.permps" : "llvm.x86.avx2.permd";
	return NULL;
}

static LLVMValueRef emit_permute(struct emitter *e, const struct lth_loop_instr *x)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context);
	LLVMValueRef arguments[2] = {e->values[x->a], e->values[x->b]};
	const char *instruction = permute_instruction(e, x);
	if (instruction)
		return lth_llvm_intrinsic(e, instruction, NULL, 0, arguments, 2);
	LLVMValueRef result = LLVMGetPoison(LLVMTypeOf(arguments[0]));
	LLVMValueRef count = lth_llvm_int(LLVMTypeOf(arguments[1]), x->lanes);
	LLVMValueRef lanes = LLVMBuildURem(e->builder, arguments[1], count, "");
	for (unsigned k = 0; k < x->lanes; k++) {
		LLVMValueRef at = LLVMConstInt(i32, k, false);
		LLVMValueRef from = LLVMBuildExtractElement(e->builder, lanes, at, "");
		LLVMValueRef value = LLVMBuildExtractElement(e->builder, arguments[0], from, "");
		result = LLVMBuildInsertElement(e->builder, result, value, at, "");
	}
	return result;
}

static LLVMValueRef emit_shuffle(struct emitter *e, const struct lth_loop_instr *x)
{
	LLVMValueRef lanes[LTH_MAX_LANES];
	for (uint32_t k = 0; k < x->count; k++)
		lanes[k] = LLVMConstInt(LLVMInt32TypeInContext(e->context), x->list[k], false);
	return LLVMBuildShuffleVector(e->builder, e->values[x->a], e->values[x->b], LLVMConstVector(lanes, x->count), "");
}

static LLVMValueRef emit_offset(struct emitter *e, const struct lth_loop_instr *x)
{
	LLVMTypeRef element = LLVMIntTypeInContext(e->context, lth_dtype_bits(x->memory));
	return LLVMBuildGEP2(e->builder, element, e->values[x->a], &e->values[x->b], 1, "");
}

/* The first error stays. */
static void emit_fail(struct emitter *e, const struct lth_loop_instr *x)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context);
	LLVMValueRef failed = e->values[x->a];
	if (x->lanes > 1)
		failed = lth_llvm_intrinsic1(e, "llvm.vector.reduce.or", failed);
	LLVMValueRef old = LLVMBuildLoad2(e->builder, i32, e->error, "");
	LLVMValueRef none = LLVMBuildICmp(e->builder, LLVMIntEQ, old, LLVMConstInt(i32, 0, false), "");
	LLVMValueRef set = LLVMBuildSelect(e->builder, LLVMBuildAnd(e->builder, failed, none, ""),
					   LLVMConstInt(i32, (uint64_t)x->i, false), old, "");
	LLVMBuildStore(e->builder, set, e->error);
}

static void emit_instr(struct emitter *e, lth_lv v)
{
	const struct lth_loop_instr *x = lth_loop_get(e->fn, v);
	LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context);
	switch (x->op) {
	case LTH_LOOP_OP:
		e->values[v] = lth_llvm_scalar(e, x);
		break;
	case LTH_LOOP_SPLAT:
		e->values[v] = lth_llvm_splat(e, e->values[x->a], x->lanes);
		break;
	case LTH_LOOP_RAMP:
		e->values[v] = LLVMBuildAdd(e->builder, lth_llvm_splat(e, e->values[x->a], x->lanes),
					    lane_numbers(e, 0, x->lanes, 64), "");
		break;
	case LTH_LOOP_MASK:
		e->values[v] = emit_mask(e, x);
		break;
	case LTH_LOOP_EXTRACT:
		e->values[v] = LLVMBuildExtractElement(e->builder, e->values[x->a],
						       LLVMConstInt(i32, (uint64_t)x->i, false), "");
		break;
	case LTH_LOOP_SHUFFLE:
		e->values[v] = emit_shuffle(e, x);
		break;
	case LTH_LOOP_PERMUTE:
		e->values[v] = emit_permute(e, x);
		break;
	case LTH_LOOP_REDUCE:
		e->values[v] = emit_reduce(e, x);
		break;
	case LTH_LOOP_OFFSET:
		e->values[v] = emit_offset(e, x);
		break;
	case LTH_LOOP_LOAD:
	case LTH_LOOP_STORE:
	case LTH_LOOP_GATHER:
	case LTH_LOOP_SCATTER:
	case LTH_LOOP_PREFETCH:
		e->values[v] = lth_llvm_memory(e, x);
		break;
	case LTH_LOOP_DOT4:
		e->values[v] = lth_llvm_dot4(e, x);
		break;
	case LTH_LOOP_FOR:
		emit_for(e, v, x);
		break;
	case LTH_LOOP_ENDFOR:
		emit_endfor(e, v, x);
		break;
	case LTH_LOOP_IF:
		emit_if(e, x);
		break;
	case LTH_LOOP_ELSE:
		emit_else(e, x);
		break;
	case LTH_LOOP_ENDIF:
		emit_endif(e, v, x);
		break;
	case LTH_LOOP_FAIL:
		emit_fail(e, x);
		break;
	default: /* entry values are there already, PHIs and RESULTs come with their blocks */
		break;
	}
}

static void add_attribute(const struct emitter *e, const char *name, const char *value)
{
	LLVMAttributeRef attribute = LLVMCreateStringAttribute(e->context, name, (unsigned)strlen(name), value,
							       (unsigned)strlen(value));
	LLVMAddAttributeAtIndex(e->function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, attribute);
}

static void declare(struct emitter *e, const char *symbol)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context), i64 = LLVMInt64TypeInContext(e->context);
	LLVMTypeRef arguments[3] = {LLVMPointerTypeInContext(e->context, 0), i64, i64};
	e->function = LLVMAddFunction(e->module, symbol, LLVMFunctionType(i32, arguments, 3, false));
	LLVMSetVisibility(e->function, LLVMHiddenVisibility);
	unsigned nounwind = LLVMGetEnumAttributeKindForName("nounwind", 8);
	LLVMAddAttributeAtIndex(e->function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
				LLVMCreateEnumAttribute(e->context, nounwind, 0));
	/* LLVM would otherwise halve the vectors of some CPUs. */
	const char *bits = e->target->vector_bytes == 64 ? "512" : e->target->vector_bytes == 32 ? "256" : "128";
	add_attribute(e, "prefer-vector-width", bits);
	add_attribute(e, "min-legal-vector-width", bits);
}

LLVMModuleRef lth_llvm_emit(const struct lth_loop_fn *fn, const struct lth_codegen_target *target, LLVMContextRef context,
			    LLVMTargetMachineRef machine, const char *symbol)
{
	struct emitter e = {.fn = fn, .target = target, .context = context};
	uint32_t most_entries = fn->num_pointers > fn->num_ints ? fn->num_pointers : fn->num_ints;
	e.values = calloc(fn->num_instrs + 1, sizeof(*e.values));
	e.blocks = calloc(fn->num_instrs + 1, sizeof(*e.blocks));
	e.entries = calloc(most_entries + 1, sizeof(*e.entries));
	if (!e.values || !e.blocks || !e.entries) {
		free(e.values);
		free(e.blocks);
		free(e.entries);
		return NULL;
	}
	e.module = LLVMModuleCreateWithNameInContext("lathe", context);
	LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
	LLVMSetModuleDataLayout(e.module, layout);
	LLVMDisposeTargetData(layout);
	LLVMSetTarget(e.module, target->triple);
	e.builder = LLVMCreateBuilderInContext(context);
	declare(&e, symbol);
	enter(&e, new_block(&e));
	emit_entry_values(&e);
	for (lth_lv v = 0; v < fn->num_instrs; v++)
		emit_instr(&e, v);
	LLVMTypeRef i32 = LLVMInt32TypeInContext(context);
	LLVMBuildRet(e.builder, e.error ? LLVMBuildLoad2(e.builder, i32, e.error, "") : LLVMConstInt(i32, 0, false));
	LLVMDisposeBuilder(e.builder);
	free(e.values);
	free(e.blocks);
	free(e.entries);
	return e.module;
}
