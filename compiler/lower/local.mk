# liblower: scalar expressions, loop IR and what makes it: schedules and templates.
noinst_LIBRARIES += %D%/liblower.a
%C%_liblower_a_SOURCES = \
	%D%/lanes.c %D%/lanes.h \
	%D%/lanes_cast.c \
	%D%/loop.c %D%/loop.h %D%/loop_build.h %D%/loops.def \
	%D%/loop_fold.c \
	%D%/loop_text.c \
	%D%/narrow.c \
	%D%/scalar.c %D%/scalars.def %D%/expr.h
