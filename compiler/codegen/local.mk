# libcodegen: loop IR to objects. The only folder that includes LLVM's headers.
noinst_LIBRARIES += %D%/libcodegen.a
%C%_libcodegen_a_SOURCES = \
	%D%/codegen.c %D%/codegen.h \
	%D%/llvm.h \
	%D%/llvm_compile.c \
	%D%/llvm_emit.c \
	%D%/llvm_memory.c \
	%D%/llvm_scalar.c \
	%D%/llvm_target.c %D%/targets.def
%C%_libcodegen_a_CFLAGS = $(AM_CFLAGS) $(LLVM_CFLAGS)
