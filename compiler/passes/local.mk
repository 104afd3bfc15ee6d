# libpasses: graph to graph. Stands on libops, liblower and libir.
noinst_LIBRARIES += %D%/libpasses.a
%C%_libpasses_a_SOURCES = \
	%D%/alter_op_layout.c %D%/layouts.def \
	%D%/dead_code_elimination.c \
	%D%/eliminate_common_subexpr.c \
	%D%/fold_constant.c \
	%D%/fuse_ops.c %D%/fusion.def \
	%D%/groups.c %D%/groups.h \
	%D%/layout.c %D%/layout.h \
	%D%/live_bound.c \
	%D%/pass.c %D%/pass.h %D%/passes.def \
	%D%/reals.c \
	%D%/rewrite.c %D%/rewrite.h
