# Fuzz targets of loop IR, and of a whole compile but for machine code.
if FUZZERS
check_PROGRAMS += %D%/fuzz_compile
%C%_fuzz_compile_SOURCES = %D%/fuzz_compile.c %D%/mutate.h %D%/mutate_node.c %D%/mutate_onnx.c
%C%_fuzz_compile_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(PROTOBUF_C_CFLAGS) -fsanitize=fuzzer
%C%_fuzz_compile_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
%C%_fuzz_compile_LDADD = $(lathe_compile_libs)
check_PROGRAMS += %D%/fuzz_loop_text
%C%_fuzz_loop_text_SOURCES = %D%/fuzz_loop_text.c
%C%_fuzz_loop_text_CFLAGS = $(AM_CFLAGS) -fsanitize=fuzzer
%C%_fuzz_loop_text_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
%C%_fuzz_loop_text_LDADD = compiler/lower/liblower.a compiler/ir/libir.a runtime/program/libprogram.a \
	runtime/base/libbase.a -lm
endif
EXTRA_DIST += %D%/corpus/loop_text/math %D%/corpus/loop_text/sum
