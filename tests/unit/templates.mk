# Tests of the templates: emitted, compiled, linked and run against plain loops.
lth_template_test_libs = compiler/codegen/libcodegen.a compiler/lower/liblower.a compiler/ir/libir.a \
	runtime/program/libprogram.a runtime/base/libsha256.a runtime/base/libbase.a $(CHECK_LIBS) $(CRYPTO_LIBS) \
	$(LLVM_LIBS) -lm
check_PROGRAMS += %D%/test_templates_gemm %D%/test_templates_conv %D%/test_templates_rnn \
	%D%/test_templates_transpose %D%/test_templates_bytes %D%/test_templates_blocks
%C%_test_templates_gemm_SOURCES = %D%/test_templates_gemm.c %D%/template_rig.c %D%/template_rig.h
%C%_test_templates_gemm_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
%C%_test_templates_gemm_LDADD = $(lth_template_test_libs)
%C%_test_templates_conv_SOURCES = %D%/test_templates_conv.c %D%/template_rig.c
%C%_test_templates_conv_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
%C%_test_templates_conv_LDADD = $(lth_template_test_libs)
%C%_test_templates_rnn_SOURCES = %D%/test_templates_rnn.c %D%/template_rig.c
%C%_test_templates_rnn_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
%C%_test_templates_rnn_LDADD = $(lth_template_test_libs)
%C%_test_templates_transpose_SOURCES = %D%/test_templates_transpose.c %D%/template_rig.c
%C%_test_templates_transpose_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
%C%_test_templates_transpose_LDADD = $(lth_template_test_libs)
%C%_test_templates_bytes_SOURCES = %D%/test_templates_bytes.c %D%/template_rig.c
%C%_test_templates_bytes_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
%C%_test_templates_bytes_LDADD = $(lth_template_test_libs)
%C%_test_templates_blocks_SOURCES = %D%/test_templates_blocks.c %D%/template_rig.c
%C%_test_templates_blocks_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
%C%_test_templates_blocks_LDADD = $(lth_template_test_libs)
TESTS += %D%/test_templates_gemm %D%/test_templates_conv %D%/test_templates_rnn %D%/test_templates_transpose \
	%D%/test_templates_bytes %D%/test_templates_blocks
