# plan-bench FOLDER: measures the memory planner; built by name: make bench/plan/plan-bench.
EXTRA_PROGRAMS += %D%/plan-bench
%C%_plan_bench_SOURCES = %D%/plan_bench.c
%C%_plan_bench_LDADD = compiler/memory/plan/libplan.a runtime/base/libbase.a -lm
CLEANFILES += %D%/plan-bench$(EXEEXT)
