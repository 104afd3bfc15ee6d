include compiler/emit/local.mk
include compiler/codegen/local.mk
include compiler/lower/local.mk
include compiler/memory/local.mk
include compiler/ir/local.mk
include compiler/passes/local.mk
include compiler/ops/local.mk
include compiler/options/local.mk
include compiler/driver/local.mk
include compiler/worker/local.mk
include compiler/import/local.mk
include compiler/opt.mk

# What a program that compiles links, from the top floor down; ops and lowering call each other.
lth_compiler_libs = compiler/driver/libdriver.a compiler/options/liboptions.a compiler/emit/libemit.a \
	compiler/import/libimport.a compiler/passes/libpasses.a compiler/ops/libops.a compiler/codegen/libcodegen.a \
	compiler/memory/libmemory.a compiler/lower/liblower.a compiler/ops/libops.a compiler/lower/liblower.a \
	compiler/memory/plan/libplanjson.a compiler/memory/plan/libplan.a compiler/ir/libir.a \
	runtime/program/libprogram.a runtime/base/libsha256.a runtime/base/libbase.a
lth_compiler_system_libs = $(LLVM_LIBS) $(JANSSON_LIBS) $(CRYPTO_LIBS) $(PROTOBUF_C_LIBS) $(SECCOMP_LIBS) -lm -lpthread -ldl

libexec_PROGRAMS += %D%/lathe-worker
%C%_lathe_worker_SOURCES = %D%/worker_main.c
%C%_lathe_worker_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
%C%_lathe_worker_LDADD = compiler/worker/libworker.a $(lth_compiler_libs) $(lth_compiler_system_libs)
