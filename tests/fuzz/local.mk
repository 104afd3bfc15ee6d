# Fuzz targets: one file each, built with --enable-fuzzers and clang.
if FUZZERS
check_PROGRAMS += %D%/fuzz_plan_csv
%C%_fuzz_plan_csv_SOURCES = %D%/fuzz_plan_csv.c
%C%_fuzz_plan_csv_CFLAGS = $(AM_CFLAGS) -fsanitize=fuzzer
%C%_fuzz_plan_csv_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
%C%_fuzz_plan_csv_LDADD = compiler/memory/plan/libplan.a runtime/base/libbase.a
daemon_fuzz_libs = daemon/libdaemon.a runtime/base/libsha256.a runtime/base/libbase.a \
	$(MHD_LIBS) $(GNUTLS_LIBS) $(UV_LIBS) $(JANSSON_LIBS) $(CRYPTO_LIBS) -lm
check_PROGRAMS += %D%/fuzz_options %D%/fuzz_request
%C%_fuzz_options_SOURCES = %D%/fuzz_options.c %D%/fuzz_daemon.h
%C%_fuzz_options_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) -fsanitize=fuzzer
%C%_fuzz_options_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
%C%_fuzz_options_LDADD = $(daemon_fuzz_libs)
%C%_fuzz_request_SOURCES = %D%/fuzz_request.c %D%/fuzz_daemon.h
%C%_fuzz_request_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(UV_CFLAGS) -fsanitize=fuzzer
%C%_fuzz_request_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
%C%_fuzz_request_LDADD = $(daemon_fuzz_libs)
check_PROGRAMS += %D%/fuzz_onnx %D%/fuzz_json %D%/fuzz_text %D%/write_onnx
%C%_fuzz_onnx_SOURCES = %D%/fuzz_onnx.c %D%/fuzz_graph.h %D%/fuzz_import.h \
	%D%/mutate.h %D%/mutate_node.c %D%/mutate_onnx.c
%C%_fuzz_onnx_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(PROTOBUF_C_CFLAGS) -fsanitize=fuzzer
%C%_fuzz_onnx_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
%C%_fuzz_onnx_LDADD = $(lathe_graph_libs)
%C%_fuzz_json_SOURCES = %D%/fuzz_json.c %D%/fuzz_graph.h %D%/fuzz_import.h
%C%_fuzz_json_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) -fsanitize=fuzzer
%C%_fuzz_json_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
%C%_fuzz_json_LDADD = $(lathe_graph_libs)
%C%_fuzz_text_SOURCES = %D%/fuzz_text.c %D%/fuzz_graph.h
%C%_fuzz_text_CFLAGS = $(AM_CFLAGS) -fsanitize=fuzzer
%C%_fuzz_text_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
%C%_fuzz_text_LDADD = $(lathe_graph_libs)
# Seeds of these three: make-corpus tests tests/fuzz/write_onnx DIRECTORY
%C%_write_onnx_SOURCES = %D%/write_onnx.c tests/unit/onnx_writer.c tests/unit/onnx_writer.h
%C%_write_onnx_LDADD = runtime/base/libbase.a
endif
EXTRA_DIST += %D%/make-corpus %D%/run \
	%D%/corpus/options.lines %D%/corpus/request.lines \
	%D%/corpus/options/empty-values \
	%D%/corpus/options/json \
	%D%/corpus/options/query \
	%D%/corpus/request/accept \
	%D%/corpus/request/accept-huge-quality \
	%D%/corpus/request/body \
	%D%/corpus/request/body-by-digest \
	%D%/corpus/request/content-range \
	%D%/corpus/request/origin \
	%D%/corpus/request/path \
	%D%/corpus/request/range \
	%D%/corpus/request/raw
include tests/fuzz/runtime.mk
include tests/fuzz/codegen.mk

# make fuzz: each target on its seeds and on a number of inputs made of them, the same ones in every run of one build. To
# look for more: make fuzz FUZZ_FLAGS='-max_total_time=600 -seed=7'.
FUZZ_FLAGS = -runs=20000 -seed=1
fuzz_programs =
if FUZZERS
fuzz_programs += \
	%D%/fuzz_compile \
	%D%/fuzz_json \
	%D%/fuzz_kernels \
	%D%/fuzz_lists \
	%D%/fuzz_loop_text \
	%D%/fuzz_media \
	%D%/fuzz_npy \
	%D%/fuzz_onnx \
	%D%/fuzz_options \
	%D%/fuzz_pb \
	%D%/fuzz_plan_csv \
	%D%/fuzz_program_binary \
	%D%/fuzz_program_text \
	%D%/fuzz_request \
	%D%/fuzz_text \
	%D%/fuzz_value \
	%D%/write_onnx
endif
fuzz: $(fuzz_programs)
	@test -n '$(fuzz_programs)' || { echo 'configure with CC=clang-19 --enable-fuzzers'; exit 1; }
	@$(SHELL) $(srcdir)/%D%/run '$(FUZZ_FLAGS)' . $(fuzz_programs)
CLEANFOLDERS += %D%/work
.PHONY: fuzz
