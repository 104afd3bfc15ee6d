# codegen-bench: measures code generation, linking and vector math; built by name: make bench/codegen/codegen-bench.
EXTRA_PROGRAMS += %D%/codegen-bench
%C%_codegen_bench_SOURCES = %D%/codegen_bench.c
%C%_codegen_bench_LDADD = compiler/codegen/libcodegen.a compiler/emit/libemit.a compiler/lower/liblower.a \
	compiler/ir/libir.a runtime/program/libprogram.a runtime/base/libsha256.a runtime/base/libbase.a \
	$(LLVM_LIBS) $(CRYPTO_LIBS) -lpthread -ldl -lm
CLEANFILES += %D%/codegen-bench$(EXEEXT)
