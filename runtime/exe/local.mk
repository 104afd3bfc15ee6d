# libexe: the program around a model without its main, for the command line; stands on libtensor, libprogram, libbase.
noinst_LIBRARIES += %D%/libexe.a
%C%_libexe_a_SOURCES = \
	%D%/exe.h \
	%D%/inputs.c \
	%D%/options.c %D%/options.def \
	%D%/program.c \
	%D%/report.c \
	%D%/value.c %D%/value.h \
	%D%/value_pb.c
