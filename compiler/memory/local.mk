# libmemory: from the grouped graph to a program, and the memory passes over it.
noinst_LIBRARIES += %D%/libmemory.a
%C%_libmemory_a_SOURCES = \
	%D%/alias.c \
	%D%/branches.c \
	%D%/budget.c \
	%D%/formula.c \
	%D%/lifetimes.c \
	%D%/manifest.c %D%/manifest.h \
	%D%/manifest_builtin.c \
	%D%/manifest_control.c %D%/manifest_control.h %D%/manifest_loop.c \
	%D%/manifest_storage.c \
	%D%/memory.h \
	%D%/order.c \
	%D%/order_search.c %D%/order_search.h \
	%D%/plan_box.c %D%/plan_box.h \
	%D%/plan_program.c \
	%D%/ranges.c \
	%D%/remat.c \
	%D%/reuse.c \
	%D%/shapes.c \
	%D%/spans.c %D%/spans.h \
	%D%/swap.c %D%/swap.h %D%/swap_settle.c \
	%D%/worst.c
include compiler/memory/plan/local.mk
