# libcompiler: the driver over all stages, and compile.c itself.
noinst_LIBRARIES += %D%/libdriver.a
%C%_libdriver_a_SOURCES = \
	compiler/compile.c compiler/compile.h \
	%D%/artifacts.c \
	%D%/variant.h \
	%D%/child.c %D%/child.h \
	%D%/describe.c \
	%D%/document.c \
	%D%/measure.c \
	%D%/memory_passes.c \
	%D%/resolve.c \
	%D%/steps.c
%C%_libdriver_a_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
