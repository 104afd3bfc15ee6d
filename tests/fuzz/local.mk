# Fuzz targets: one file each, built with --enable-fuzzers and clang.
if FUZZERS
check_PROGRAMS += %D%/fuzz_plan_csv
%C%_fuzz_plan_csv_SOURCES = %D%/fuzz_plan_csv.c
%C%_fuzz_plan_csv_CFLAGS = $(AM_CFLAGS) -fsanitize=fuzzer
%C%_fuzz_plan_csv_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
%C%_fuzz_plan_csv_LDADD = compiler/memory/plan/libplan.a runtime/base/libbase.a
check_PROGRAMS += %D%/fuzz_request
%C%_fuzz_request_SOURCES = %D%/fuzz_request.c
%C%_fuzz_request_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) -fsanitize=fuzzer
%C%_fuzz_request_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
%C%_fuzz_request_LDADD = daemon/libdaemon.a runtime/base/libsha256.a runtime/base/libbase.a \
	$(JANSSON_LIBS) $(CRYPTO_LIBS) -lm
endif
EXTRA_DIST += \
	%D%/corpus/request/accept \
	%D%/corpus/request/empty-values \
	%D%/corpus/request/json \
	%D%/corpus/request/origin \
	%D%/corpus/request/query \
	%D%/corpus/request/range
include tests/fuzz/runtime.mk
