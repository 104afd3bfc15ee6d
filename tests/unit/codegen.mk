# Tests of loop IR, code generation and emission.
lth_codegen_test_libs = compiler/codegen/libcodegen.a compiler/emit/libemit.a compiler/lower/liblower.a compiler/ir/libir.a \
	runtime/program/libprogram.a runtime/base/libsha256.a runtime/base/libbase.a $(CHECK_LIBS) $(CRYPTO_LIBS) \
	$(LLVM_LIBS) -lpthread -ldl -lm
check_PROGRAMS += %D%/test_codegen
%C%_test_codegen_SOURCES = %D%/test_codegen.c %D%/kernels.c %D%/kernels.h %D%/loop_random.c %D%/loop_random.h
%C%_test_codegen_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
%C%_test_codegen_LDADD = $(lth_codegen_test_libs)
EXTRA_%C%_test_codegen_DEPENDENCIES = runtime/exec/rt-so.o runtime/exec/rt-exe.o \
	runtime/exec/stub-libc.so.6 runtime/exec/stub-libm.so.6
TESTS += %D%/test_codegen
check_PROGRAMS += %D%/test_loop
%C%_test_loop_SOURCES = %D%/test_loop.c %D%/loop_random.c %D%/loop_random.h
%C%_test_loop_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
%C%_test_loop_LDADD = compiler/lower/liblower.a compiler/ir/libir.a runtime/program/libprogram.a runtime/base/libbase.a \
	$(CHECK_LIBS) -lm
TESTS += %D%/test_loop
check_PROGRAMS += %D%/test_vmath
%C%_test_vmath_SOURCES = %D%/test_vmath.c %D%/kernels.c %D%/kernels.h
%C%_test_vmath_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
%C%_test_vmath_LDADD = $(lth_codegen_test_libs)
TESTS += %D%/test_vmath
check_PROGRAMS += %D%/test_pack
%C%_test_pack_SOURCES = %D%/test_pack.c
%C%_test_pack_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
%C%_test_pack_LDADD = $(lth_codegen_test_libs)
TESTS += %D%/test_pack
