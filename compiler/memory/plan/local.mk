# libplan: the memory planner, on runtime/base alone. libplanjson: planning requests, with jansson.
noinst_LIBRARIES += %D%/libplan.a %D%/libplanjson.a
%C%_libplan_a_SOURCES = \
	%D%/plan.h %D%/internal.h %D%/plan_strategies.def %D%/plan_orders.def \
	%D%/search.h \
	%D%/branch.c \
	%D%/check.c \
	%D%/csv.c \
	%D%/decode.c \
	%D%/extents.c %D%/extents.h \
	%D%/minimise.c \
	%D%/orient.c %D%/orient.h \
	%D%/placed.c %D%/placed.h \
	%D%/plan.c \
	%D%/portfolio.c \
	%D%/problem.c \
	%D%/repair.c \
	%D%/search.c \
	%D%/state.c \
	%D%/table.c
%C%_libplanjson_a_SOURCES = %D%/plan_json.c %D%/plan_json.h
%C%_libplanjson_a_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
dist_doc_DATA += docs/PLANNER.md
