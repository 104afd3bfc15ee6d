/* What the LLVM files of codegen/ share; included by no one else. The emitter turns one function of loop IR into one
 * LLVM function, instruction by instruction. Bools are i1; in memory a byte. */
#ifndef LTH_CODEGEN_LLVM_H
#define LTH_CODEGEN_LLVM_H

#include "compiler/codegen/codegen.h"

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

struct emit_block;

struct emitter {
	const struct lth_loop_fn *fn;
	const struct lth_codegen_target *target;
	LLVMContextRef context;
	LLVMModuleRef module;
	LLVMBuilderRef builder;
	LLVMValueRef function;
	LLVMValueRef *values;     /* by loop IR value */
	LLVMValueRef error;       /* i32 on the stack, when the function can fail */
	LLVMValueRef sign;        /* i32 on the stack for lgamma_r, when used */
	lth_lv *entries;          /* of the call, by id: the values that load them */
	struct emit_block *blocks;
	uint32_t num_blocks, cap_blocks;
};

/* Types. llvm_emit.c */
LLVMTypeRef lth_llvm_scalar_type(const struct emitter *e, enum lth_dtype dtype);
LLVMTypeRef lth_llvm_type(const struct emitter *e, enum lth_dtype dtype, unsigned lanes);
LLVMValueRef lth_llvm_int(LLVMTypeRef type, uint64_t value); /* splatted for a vector type */
LLVMValueRef lth_llvm_real(LLVMTypeRef type, double value);   /* the same */
LLVMValueRef lth_llvm_splat(const struct emitter *e, LLVMValueRef scalar, unsigned lanes);
/* A call of intrinsic `name` overloaded on `types`. */
LLVMValueRef lth_llvm_intrinsic(const struct emitter *e, const char *name, LLVMTypeRef *types, unsigned num_types,
				LLVMValueRef *arguments, unsigned count);
LLVMValueRef lth_llvm_intrinsic1(const struct emitter *e, const char *name, LLVMValueRef a);
LLVMValueRef lth_llvm_intrinsic2(const struct emitter *e, const char *name, LLVMValueRef a, LLVMValueRef b);
/* Lanes [first, first + count) of a vector. */
LLVMValueRef lth_llvm_slice(const struct emitter *e, LLVMValueRef vector, unsigned first, unsigned count);
LLVMValueRef lth_llvm_concat(const struct emitter *e, LLVMValueRef a, LLVMValueRef b, unsigned lanes);

/* One scalar operator on values of `dtype`. llvm_scalar.c */
LLVMValueRef lth_llvm_scalar(struct emitter *e, const struct lth_loop_instr *x);
LLVMValueRef lth_llvm_apply2(struct emitter *e, enum lth_scalar_op op, enum lth_dtype dtype, LLVMValueRef a,
			     LLVMValueRef b);
/* Loads, stores, gathers, scatters, prefetches, dot4. llvm_memory.c */
LLVMValueRef lth_llvm_memory(struct emitter *e, const struct lth_loop_instr *x);
LLVMValueRef lth_llvm_dot4(struct emitter *e, const struct lth_loop_instr *x);

/* Builds the function `symbol` in a new module of `context`; NULL when memory runs out. llvm_emit.c */
LLVMModuleRef lth_llvm_emit(const struct lth_loop_fn *fn, const struct lth_codegen_target *target,
			    LLVMContextRef context, LLVMTargetMachineRef machine, const char *symbol);

/* NULL with a message in diag. llvm_target.c */
LLVMTargetMachineRef lth_llvm_machine(const struct lth_codegen_target *target, struct lth_diag *diag);

/* One compile under a guard that turns LLVM's fatal errors into diagnostics. `kind` is an object or assembly. Bytes are
 * appended to `out`. llvm_compile.c */
LTH_MUST_CHECK enum lth_code lth_llvm_compile(const struct lth_loop_fn *fn, const struct lth_codegen_target *target,
					      LLVMTargetMachineRef machine, const char *symbol,
					      LLVMCodeGenFileType kind, struct lth_buf *out, struct lth_diag *diag);
LTH_MUST_CHECK enum lth_code lth_llvm_ir(const struct lth_loop_fn *fn, const struct lth_codegen_target *target,
					 LLVMTargetMachineRef machine, const char *symbol, struct lth_buf *out,
					 struct lth_diag *diag);

#endif
