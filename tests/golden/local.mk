# Golden tests: text in, lathe-opt, text out. A folder lists its own.
TEST_EXTENSIONS = .lt
LT_LOG_COMPILER = $(SHELL) $(srcdir)/%D%/run-golden
AM_TESTS_ENVIRONMENT += LATHE_OPT='$(abs_top_builddir)/compiler/lathe-opt$(EXEEXT)'; export LATHE_OPT;
EXTRA_DIST += %D%/run-golden
include tests/golden/passes/local.mk
include tests/golden/import/local.mk
include tests/golden/objects/local.mk
