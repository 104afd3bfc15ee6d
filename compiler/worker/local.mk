# libworker: the protocol loop and the sandbox of a worker; knows nothing of compiling.
noinst_LIBRARIES += %D%/libworker.a
%C%_libworker_a_SOURCES = \
	%D%/bundle.c \
	%D%/crash.c \
	%D%/loop.c \
	%D%/sandbox.c \
	%D%/worker.h
%C%_libworker_a_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(SECCOMP_CFLAGS)
