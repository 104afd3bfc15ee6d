# memory-bench EXECUTABLE...: plans at random shapes of the box, and resident memory over many runs; built by name:
# make bench/memory/memory-bench. passes.py compares the memory passes and ONNX Runtime.
EXTRA_PROGRAMS += %D%/memory-bench
%C%_memory_bench_SOURCES = %D%/memory_bench.c
%C%_memory_bench_LDADD = -ldl -lm
CLEANFILES += %D%/memory-bench$(EXEEXT)
EXTRA_DIST += %D%/passes.py
