# lathe-opt: text in, passes, text out; for developers and golden tests. Libraries stand in falling order of floors.
noinst_PROGRAMS += %D%/lathe-opt
%C%_lathe_opt_SOURCES = %D%/opt_main.c
%C%_lathe_opt_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
lathe_graph_libs = compiler/import/libimport.a compiler/ir/libirtext.a compiler/passes/libpasses.a compiler/ops/libops.a \
	compiler/lower/liblower.a compiler/ir/libir.a runtime/program/libprogram.a runtime/base/libbase.a \
	$(PROTOBUF_C_LIBS) $(JANSSON_LIBS) -lm
%C%_lathe_opt_LDADD = $(lathe_graph_libs)
# The reference page of operators, from their table.
nodist_doc_DATA += docs/OPERATORS.md
CLEANFILES += docs/OPERATORS.md
docs/OPERATORS.md: %D%/lathe-opt
	$(AM_V_GEN)$(MKDIR_P) docs && %D%/lathe-opt --operators >$@.tmp && mv $@.tmp $@
