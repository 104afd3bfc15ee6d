# Unit tests of runtime/.
check_PROGRAMS += %D%/test_program
%C%_test_program_SOURCES = %D%/test_program.c
%C%_test_program_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
%C%_test_program_LDADD = runtime/program/libprogram.a runtime/base/libbase.a $(CHECK_LIBS) -lm
TESTS += %D%/test_program
check_PROGRAMS += %D%/test_exec
%C%_test_exec_SOURCES = %D%/test_exec.c
%C%_test_exec_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
%C%_test_exec_LDADD = runtime/exec/librt.a runtime/program/libprogram.a runtime/base/libbase.a $(CHECK_LIBS) -lm -lpthread
TESTS += %D%/test_exec
