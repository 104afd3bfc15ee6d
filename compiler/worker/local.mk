# libworker: the protocol loop and the sandbox of a worker; knows nothing of compiling.
noinst_LIBRARIES += %D%/libworker.a
%C%_libworker_a_SOURCES = \
	%D%/bundle.c \
	%D%/calls.c \
	%D%/crash.c \
	%D%/loop.c \
	%D%/sandbox.c \
	%D%/worker.h
%C%_libworker_a_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(SECCOMP_CFLAGS)

# lathe-worker: the process of the daemon's pool. Libraries from the top floor down.
libexec_PROGRAMS += compiler/lathe-worker
compiler_lathe_worker_SOURCES = compiler/worker_main.c
compiler_lathe_worker_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
lathe_compile_libs = compiler/driver/libdriver.a compiler/import/libimport.a \
	compiler/passes/libpasses.a compiler/ops/libops.a compiler/codegen/libcodegen.a compiler/emit/libemit.a \
	compiler/memory/libmemory.a compiler/memory/plan/libplanjson.a compiler/memory/plan/libplan.a \
	compiler/lower/liblower.a compiler/options/liboptions.a compiler/ir/libir.a runtime/exec/librt.a runtime/media/liblocate.a \
	runtime/program/libprogram.a runtime/base/libsha256.a runtime/base/libbase.a \
	$(LLVM_LIBS) $(PROTOBUF_C_LIBS) $(JANSSON_LIBS) $(CRYPTO_LIBS) -lm -lpthread
compiler_lathe_worker_LDADD = %D%/libworker.a $(lathe_compile_libs) $(SECCOMP_LIBS)
