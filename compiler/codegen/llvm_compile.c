/* One kernel through LLVM: expansion, IR, machine code. LLVM reports what it cannot do by a fatal error that must not
 * return; the handler here jumps back into lth_llvm_compile instead, so that a compile fails with a diagnostic. What LLVM
 * held at that moment leaks: a worker that saw such an error should be replaced soon. See llvm.h. */
#include "compiler/codegen/llvm.h"

#include "compiler/lower/expand.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/ErrorHandling.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct guard {
	jmp_buf back;
	struct lth_diag *diag;
};

/* The guard of the compile that this thread is in; LLVM's handler has no other way to learn of it. */
static _Thread_local struct guard *current;
static pthread_once_t installed = PTHREAD_ONCE_INIT;

static void on_fatal_error(const char *reason)
{
	struct guard *guard = current;
	if (!guard) {
		fprintf(stderr, "LLVM: %s\n", reason);
		abort();
	}
	lth_diag_fail(guard->diag, LTH_INTERNAL, "code generation", NULL, "please report the model that shows it", "%s",
		      reason);
	longjmp(guard->back, 1);
}

static void install(void)
{
	LLVMInstallFatalErrorHandler(on_fatal_error);
}

static void on_diagnostic(LLVMDiagnosticInfoRef info, void *context)
{
	if (LLVMGetDiagInfoSeverity(info) != LLVMDSError)
		return;
	char *text = LLVMGetDiagInfoDescription(info);
	lth_diag_fail(context, LTH_INTERNAL, "code generation", NULL, NULL, "%s", text);
	LLVMDisposeMessage(text);
}

struct work {
	const struct lth_loop_fn *fn;
	const struct lth_codegen_target *target;
	LLVMTargetMachineRef machine;
	const char *symbol;
	bool want_ir;
	LLVMCodeGenFileType kind;
	struct lth_buf *out;
};

#ifndef NDEBUG
/* Only a mistake in this folder can fail here. */
static bool verified(LLVMModuleRef module, struct lth_diag *diag)
{
	char *message = NULL;
	bool bad = LLVMVerifyModule(module, LLVMReturnStatusAction, &message);
	if (bad)
		lth_diag_fail(diag, LTH_INTERNAL, "code generation", "valid LLVM IR", NULL, "%s", message);
	LLVMDisposeMessage(message);
	return !bad;
}
#else
static bool verified(LLVMModuleRef module, struct lth_diag *diag)
{
	(void)module;
	(void)diag;
	return true;
}
#endif

static void write_module(const struct work *work, LLVMModuleRef module, struct lth_diag *diag)
{
	if (work->want_ir) {
		char *text = LLVMPrintModuleToString(module);
		lth_buf_puts(work->out, text);
		LLVMDisposeMessage(text);
		return;
	}
	char *message = NULL;
	LLVMMemoryBufferRef bytes = NULL;
	if (LLVMTargetMachineEmitToMemoryBuffer(work->machine, module, work->kind, &message, &bytes)) {
		lth_diag_fail(diag, LTH_INTERNAL, "code generation", NULL, NULL, "%s", message);
		LLVMDisposeMessage(message);
		return;
	}
	lth_buf_append(work->out, LLVMGetBufferStart(bytes), LLVMGetBufferSize(bytes));
	LLVMDisposeMemoryBuffer(bytes);
}

static void run(const struct work *work, LLVMContextRef context, struct lth_arena *arena, struct lth_diag *diag)
{
	unsigned what = LTH_EXPAND_MATH | LTH_EXPAND_NARROW | (work->target->f16c ? 0 : LTH_EXPAND_F16);
	const struct lth_loop_fn *fn = lth_loop_expand(work->fn, what, arena);
	LLVMModuleRef module = fn ? lth_llvm_emit(fn, work->target, context, work->machine, work->symbol) : NULL;
	if (!module) {
		lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "code generation", NULL, NULL, "no memory for a kernel");
		return;
	}
	if (verified(module, diag))
		write_module(work, module, diag);
	LLVMDisposeModule(module);
}

static enum lth_code guarded(const struct work *work, struct lth_diag *diag)
{
	struct guard guard = {.diag = diag};
	struct lth_arena *arena = lth_arena_create(0);
	LLVMContextRef context = LLVMContextCreate();
	pthread_once(&installed, install);
	LLVMContextSetDiagnosticHandler(context, on_diagnostic, diag);
	current = &guard;
	if (setjmp(guard.back) == 0) {
		if (arena)
			run(work, context, arena, diag);
		else
			lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "code generation", NULL, NULL, "no memory for a kernel");
		LLVMContextDispose(context);
	}
	current = NULL;
	lth_arena_destroy(&arena);
	if (diag->code == LTH_OK && !lth_buf_ok(work->out))
		lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "code generation", NULL, NULL, "no memory for an object");
	return diag->code;
}

enum lth_code lth_llvm_compile(const struct lth_loop_fn *fn, const struct lth_codegen_target *target,
			       LLVMTargetMachineRef machine, const char *symbol, LLVMCodeGenFileType kind,
			       struct lth_buf *out, struct lth_diag *diag)
{
	struct work work = {.fn = fn, .target = target, .machine = machine, .symbol = symbol, .kind = kind, .out = out};
	return guarded(&work, diag);
}

enum lth_code lth_llvm_ir(const struct lth_loop_fn *fn, const struct lth_codegen_target *target,
			  LLVMTargetMachineRef machine, const char *symbol, struct lth_buf *out, struct lth_diag *diag)
{
	struct work work = {.fn = fn, .target = target, .machine = machine, .symbol = symbol, .want_ir = true, .out = out};
	return guarded(&work, diag);
}
