# Speed of the kernel templates; not run by check.
EXTRA_PROGRAMS += %D%/kernels
%C%_kernels_SOURCES = %D%/kernels.c tests/unit/template_rig.c tests/unit/template_rig.h
%C%_kernels_LDADD = compiler/codegen/libcodegen.a compiler/lower/liblower.a compiler/ir/libir.a \
	runtime/program/libprogram.a runtime/base/libsha256.a runtime/base/libbase.a $(CRYPTO_LIBS) $(LLVM_LIBS) -lm
CLEANFILES += %D%/kernels
