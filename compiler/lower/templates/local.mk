# Templates are part of liblower.
compiler_lower_liblower_a_SOURCES += \
	%D%/blocks.c \
	%D%/build.c \
	%D%/bytes.c %D%/bytes_fill.c \
	%D%/cells.c %D%/cells.h \
	%D%/conv.c \
	%D%/depthwise.c \
	%D%/dots.c \
	%D%/gemm.c \
	%D%/internal.h \
	%D%/pack.c %D%/pack.h \
	%D%/panels.c \
	%D%/pool.c \
	%D%/recurrent.c %D%/recurrent.h %D%/recurrent_steps.c \
	%D%/spread.c \
	%D%/template.c %D%/template.h %D%/templates.def \
	%D%/tiles.c \
	%D%/transpose.c \
	%D%/windows.c %D%/windows.h \
	%D%/winograd.c
