# libops: what each operator means. Rows in *.def, one C file a family.
noinst_LIBRARIES += %D%/libops.a
%C%_libops_a_SOURCES = \
	%D%/op.c %D%/op.h %D%/ops.def \
	%D%/families/composite.def \
	%D%/families/elementwise.def \
	%D%/families/generator.def \
	%D%/families/irregular.def \
	%D%/families/linear.def \
	%D%/families/movement.def \
	%D%/families/reduction.def \
	%D%/pending.c
