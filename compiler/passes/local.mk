# libpasses: graph to graph. Stands on libops, liblower and libir.
noinst_LIBRARIES += %D%/libpasses.a
%C%_libpasses_a_SOURCES = \
	%D%/alter_op_layout.c %D%/layouts.def \
	%D%/dead_code_elimination.c \
	%D%/eliminate_common_subexpr.c \
	%D%/fake_quantization.c \
	%D%/fold_constant.c \
	%D%/fold_scale_axis.c \
	%D%/fuse.h %D%/fuse_graph.c \
	%D%/fuse_ops.c %D%/fusion.def \
	%D%/groups.c %D%/groups.h \
	%D%/layout.c %D%/layout.h \
	%D%/live_bound.c \
	%D%/pass.c %D%/pass.h %D%/passes.def \
	%D%/reals.c \
	%D%/rewrite.c %D%/rewrite.h \
	%D%/simplify.def %D%/simplify.h \
	%D%/simplify_algebra.c \
	%D%/simplify_expr.c \
	%D%/simplify_movement.c \
	%D%/simplify_patterns.c
