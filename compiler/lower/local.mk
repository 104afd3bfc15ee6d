# liblower: scalar expressions, loop IR and what makes it: schedules and templates.
noinst_LIBRARIES += %D%/liblower.a
%C%_liblower_a_SOURCES = \
	%D%/access.c %D%/access.h \
	%D%/anchor.c \
	%D%/emit.c \
	%D%/evaluate.c %D%/evaluate.h \
	%D%/group.c %D%/kernel.h %D%/lower.h %D%/lower_group.h \
	%D%/map.c %D%/map.h \
	%D%/nest.c \
	%D%/packed.c \
	%D%/parallel.c \
	%D%/read.c \
	%D%/reduce.c %D%/scan.c \
	%D%/sx.c %D%/sx.h \
	%D%/sx_index.c \
	%D%/table.c \
	%D%/turn.c \
	%D%/view.c
include compiler/lower/templates/local.mk

# Loop IR: building, text, checking, running, expansion.
%C%_liblower_a_SOURCES += \
	%D%/expand.c %D%/expand.h \
	%D%/interp.c \
	%D%/lanes.c %D%/lanes.h %D%/lanes_rows.inc \
	%D%/lanes_cast.c \
	%D%/lanes_wide.c \
	%D%/loop.c %D%/loop.h %D%/loop_build.h %D%/loops.def \
	%D%/loop_blocks.c \
	%D%/loop_fold.c \
	%D%/loop_memory.c \
	%D%/loop_parse.c \
	%D%/loop_text.c \
	%D%/loop_verify.c \
	%D%/narrow.c \
	%D%/scalar.c %D%/scalars.def %D%/expr.h \
	%D%/vmath.c %D%/vmath.h \
	%D%/vmath64.c
dist_doc_DATA += docs/LOOP-IR.md
