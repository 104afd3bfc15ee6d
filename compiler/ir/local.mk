# libir: graphs, dimensions and their text forms. Stands on libprogram and libbase.
noinst_LIBRARIES += %D%/libir.a
%C%_libir_a_SOURCES = \
	%D%/dim.c %D%/dim.h %D%/dim_internal.h \
	%D%/dim_bound.c \
	%D%/dim_divide.c \
	%D%/dim_eval.c \
	%D%/dim_order.c \
	%D%/dim_program.c \
	%D%/dim_range.c \
	%D%/dim_real.c \
	%D%/dim_text.c \
	%D%/graph.c %D%/graph.h %D%/graph_internal.h \
	%D%/graph_const.c \
	%D%/graph_hints.c \
	%D%/graph_print.c \
	%D%/graph_query.c %D%/graph_type.c \
	%D%/graph_bind.c \
	%D%/text.c %D%/text.h \
	%D%/verify.c
# libirtext: reading text needs the operator table, so it stands on libops too.
noinst_LIBRARIES += %D%/libirtext.a
%C%_libirtext_a_SOURCES = \
	%D%/graph_parse.c %D%/graph_parse.h \
	%D%/graph_parse_data.c
dist_doc_DATA += docs/IR.md
