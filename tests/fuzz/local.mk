# Fuzz targets: one file each, built with --enable-fuzzers and clang.
if FUZZERS
check_PROGRAMS += %D%/fuzz_plan_csv
%C%_fuzz_plan_csv_SOURCES = %D%/fuzz_plan_csv.c
%C%_fuzz_plan_csv_CFLAGS = $(AM_CFLAGS) -fsanitize=fuzzer
%C%_fuzz_plan_csv_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
%C%_fuzz_plan_csv_LDADD = compiler/memory/plan/libplan.a runtime/base/libbase.a
endif
