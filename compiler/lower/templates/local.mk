# Templates are part of liblower.
compiler_lower_liblower_a_SOURCES += \
	%D%/build.c \
	%D%/conv.c \
	%D%/gemm.c \
	%D%/internal.h \
	%D%/pack.c \
	%D%/panels.c \
	%D%/template.c %D%/template.h %D%/templates.def \
	%D%/tiles.c
