include tests/unit/local.mk
include tests/http/local.mk
include tests/fault/local.mk
include tests/fuzz/local.mk
include tests/golden/local.mk
include tests/cli/local.mk
include tests/property/local.mk
include tests/style/local.mk
include tests/numeric/local.mk
include tests/conformance/local.mk

# make check-quick: the tests that take no time and need no daemon; what runs under sanitizers.
quick_programs = \
	%D%/unit/test_base \
	%D%/unit/test_child \
	%D%/unit/test_daemon \
	%D%/unit/test_dim \
	%D%/unit/test_exec \
	%D%/unit/test_exec_flow \
	%D%/unit/test_import \
	%D%/unit/test_infer \
	%D%/unit/test_kernels \
	%D%/unit/test_loop \
	%D%/unit/test_media \
	%D%/unit/test_orient \
	%D%/unit/test_passes \
	%D%/unit/test_plan \
	%D%/unit/test_plan_io \
	%D%/unit/test_program \
	%D%/unit/test_store \
	%D%/unit/test_tensor
check-quick: $(quick_programs) compiler/lathe-opt$(EXEEXT)
	$(MAKE) check-TESTS TESTS='$(quick_programs) $(golden_pass_tests) $(golden_import_tests)'
.PHONY: check-quick
