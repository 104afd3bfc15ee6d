# Unit tests with check. A test program is one file named after what it tests.
include tests/unit/codegen.mk
include tests/unit/templates.mk
EXTRA_DIST += %D%/run_suite.h
check_PROGRAMS += %D%/test_base
%C%_test_base_SOURCES = %D%/test_base.c
%C%_test_base_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
%C%_test_base_LDADD = runtime/base/libsha256.a runtime/base/libbase.a $(CHECK_LIBS) $(CRYPTO_LIBS)
TESTS += %D%/test_base
check_PROGRAMS += %D%/test_plan
%C%_test_plan_SOURCES = %D%/test_plan.c
%C%_test_plan_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
%C%_test_plan_LDADD = compiler/memory/plan/libplan.a runtime/base/libbase.a $(CHECK_LIBS)
TESTS += %D%/test_plan
check_PROGRAMS += %D%/test_dim
%C%_test_dim_SOURCES = %D%/test_dim.c
%C%_test_dim_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
%C%_test_dim_LDADD = compiler/ir/libir.a runtime/program/libprogram.a runtime/base/libbase.a $(CHECK_LIBS) -lm
TESTS += %D%/test_dim
check_PROGRAMS += %D%/test_decode
%C%_test_decode_SOURCES = %D%/test_decode.c
%C%_test_decode_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
%C%_test_decode_LDADD = compiler/memory/plan/libplan.a runtime/base/libbase.a $(CHECK_LIBS)
TESTS += %D%/test_decode

check_PROGRAMS += %D%/test_plan_io
%C%_test_plan_io_SOURCES = %D%/test_plan_io.c
%C%_test_plan_io_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JANSSON_CFLAGS)
%C%_test_plan_io_LDADD = compiler/memory/plan/libplanjson.a compiler/memory/plan/libplan.a runtime/base/libbase.a \
	$(CHECK_LIBS) $(JANSSON_LIBS)
TESTS += %D%/test_plan_io
check_PROGRAMS += %D%/test_daemon
%C%_test_daemon_SOURCES = %D%/test_daemon.c
%C%_test_daemon_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JANSSON_CFLAGS)
%C%_test_daemon_LDADD = daemon/libdaemon.a runtime/base/libsha256.a runtime/base/libbase.a \
	$(CHECK_LIBS) $(JANSSON_LIBS) $(CRYPTO_LIBS) -lm
TESTS += %D%/test_daemon
check_PROGRAMS += %D%/test_store
%C%_test_store_SOURCES = %D%/test_store.c
%C%_test_store_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JANSSON_CFLAGS)
%C%_test_store_LDADD = daemon/libdaemon.a runtime/base/libsha256.a runtime/base/libbase.a \
	$(CHECK_LIBS) $(JANSSON_LIBS) $(CRYPTO_LIBS) -lm
TESTS += %D%/test_store
check_PROGRAMS += %D%/test_child
%C%_test_child_SOURCES = %D%/test_child.c
%C%_test_child_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JANSSON_CFLAGS)
%C%_test_child_LDADD = compiler/driver/libdriver.a runtime/base/libbase.a $(CHECK_LIBS)
TESTS += %D%/test_child
include tests/unit/runtime.mk
check_PROGRAMS += %D%/test_orient
%C%_test_orient_SOURCES = %D%/test_orient.c
%C%_test_orient_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
%C%_test_orient_LDADD = compiler/memory/plan/libplan.a runtime/base/libbase.a $(CHECK_LIBS)
TESTS += %D%/test_orient
check_PROGRAMS += %D%/test_passes
%C%_test_passes_SOURCES = %D%/test_passes.c
%C%_test_passes_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
%C%_test_passes_LDADD = compiler/passes/libpasses.a compiler/ops/libops.a compiler/lower/liblower.a compiler/ops/libops.a \
	compiler/ir/libir.a runtime/program/libprogram.a runtime/base/libsha256.a runtime/base/libbase.a \
	$(CHECK_LIBS) $(CRYPTO_LIBS) -lm
TESTS += %D%/test_passes
check_PROGRAMS += %D%/test_infer
%C%_test_infer_SOURCES = %D%/test_infer.c
%C%_test_infer_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
%C%_test_infer_LDADD = $(lathe_graph_libs) $(CHECK_LIBS)
TESTS += %D%/test_infer
EXTRA_DIST += %D%/infer/composite.txt %D%/infer/elementwise.txt %D%/infer/irregular.txt %D%/infer/linear.txt \
	%D%/infer/lists.txt %D%/infer/movement.txt %D%/infer/reduction.txt %D%/infer/runtime.txt %D%/infer/shape.txt
check_PROGRAMS += %D%/test_import
%C%_test_import_SOURCES = %D%/test_import.c %D%/onnx_writer.c %D%/onnx_writer.h
%C%_test_import_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JANSSON_CFLAGS)
%C%_test_import_LDADD = $(lathe_graph_libs) $(CHECK_LIBS)
TESTS += %D%/test_import
check_PROGRAMS += %D%/test_memory
%C%_test_memory_SOURCES = %D%/test_memory.c %D%/random_programs.c %D%/random_programs.h
%C%_test_memory_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
%C%_test_memory_LDADD = compiler/memory/libmemory.a compiler/memory/plan/libplan.a compiler/ops/libops.a \
	compiler/lower/liblower.a compiler/ops/libops.a compiler/ir/libir.a runtime/program/libprogram.a \
	runtime/base/libsha256.a runtime/base/libbase.a $(CHECK_LIBS) $(CRYPTO_LIBS) -lm
TESTS += %D%/test_memory
check_PROGRAMS += %D%/test_worst
%C%_test_worst_SOURCES = %D%/test_worst.c
%C%_test_worst_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
%C%_test_worst_LDADD = compiler/memory/libmemory.a compiler/memory/plan/libplan.a compiler/ops/libops.a \
	compiler/lower/liblower.a compiler/ops/libops.a compiler/ir/libir.a runtime/program/libprogram.a \
	runtime/base/libsha256.a runtime/base/libbase.a $(CHECK_LIBS) $(CRYPTO_LIBS) -lm
TESTS += %D%/test_worst
check_PROGRAMS += %D%/test_control
%C%_test_control_SOURCES = %D%/test_control.c
%C%_test_control_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JANSSON_CFLAGS)
%C%_test_control_LDADD = compiler/driver/libdriver.a compiler/import/libimport.a compiler/passes/libpasses.a \
	compiler/ops/libops.a compiler/codegen/libcodegen.a compiler/emit/libemit.a compiler/memory/libmemory.a \
	compiler/memory/plan/libplanjson.a compiler/memory/plan/libplan.a compiler/passes/libpasses.a \
	compiler/ops/libops.a compiler/lower/liblower.a compiler/ops/libops.a compiler/lower/liblower.a \
	compiler/options/liboptions.a compiler/ir/libir.a runtime/exec/librt.a \
	runtime/program/libprogram.a runtime/base/libsha256.a runtime/base/libbase.a $(CHECK_LIBS) \
	$(LLVM_LIBS) $(PROTOBUF_C_LIBS) $(JANSSON_LIBS) $(CRYPTO_LIBS) -lm -lpthread -ldl
EXTRA_%C%_test_control_DEPENDENCIES = runtime/exec/rt-so.o \
	runtime/exec/stub-libc.so.6 runtime/exec/stub-libm.so.6
TESTS += %D%/test_control
check_PROGRAMS += %D%/test_index
%C%_test_index_SOURCES = %D%/test_index.c
%C%_test_index_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
%C%_test_index_LDADD = compiler/ir/libirtext.a compiler/ops/libops.a compiler/lower/liblower.a compiler/ops/libops.a \
	compiler/ir/libir.a runtime/program/libprogram.a runtime/base/libsha256.a runtime/base/libbase.a \
	$(CHECK_LIBS) $(CRYPTO_LIBS) -lm
TESTS += %D%/test_index
