# Facts that hold for every model. SEED and ROUNDS in the environment choose the random ones.
check_PROGRAMS += %D%/tensors
%C%_tensors_SOURCES = %D%/tensors.c
%C%_tensors_LDADD = runtime/tensor/libtensor.a runtime/program/libprogram.a runtime/base/libbase.a -lm
check_PROGRAMS += %D%/hostile-run
%C%_hostile_run_SOURCES = %D%/hostile-run.c
%C%_hostile_run_LDFLAGS = $(AM_LDFLAGS) -rdynamic
%C%_hostile_run_LDADD = -ldl -lm
property_tests = %D%/gradients %D%/hostile %D%/passes-change-nothing %D%/plans-at-every-shape %D%/random-numbers %D%/same-bytes
TESTS += $(property_tests)
EXTRA_DIST += $(property_tests) %D%/harness.sh %D%/random-graph.awk %D%/graph.awk %D%/gradients.awk %D%/hostile.awk
