# Unit tests of runtime/.
check_PROGRAMS += %D%/test_program
%C%_test_program_SOURCES = %D%/test_program.c
%C%_test_program_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
%C%_test_program_LDADD = runtime/program/libprogram.a runtime/base/libbase.a $(CHECK_LIBS) -lm
TESTS += %D%/test_program
check_PROGRAMS += %D%/test_exec
%C%_test_exec_SOURCES = %D%/test_exec.c %D%/exec_fixture.c %D%/exec_fixture.h
%C%_test_exec_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
%C%_test_exec_LDADD = runtime/exec/librt.a runtime/program/libprogram.a runtime/base/libbase.a $(CHECK_LIBS) -lm -lpthread
TESTS += %D%/test_exec
check_PROGRAMS += %D%/test_exec_flow
%C%_test_exec_flow_SOURCES = %D%/test_exec_flow.c %D%/exec_fixture.c %D%/exec_fixture.h
%C%_test_exec_flow_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
%C%_test_exec_flow_LDADD = runtime/exec/librt.a runtime/program/libprogram.a runtime/base/libbase.a $(CHECK_LIBS) -lm -lpthread
TESTS += %D%/test_exec_flow
# The runtime's images, linked with ld as the compiler does.
check_PROGRAMS += %D%/image_blob %D%/test_image
%C%_image_blob_SOURCES = %D%/image_blob.c
%C%_image_blob_LDADD = runtime/program/libprogram.a runtime/base/libbase.a -lm
%C%_test_image_SOURCES = %D%/test_image.c
%C%_test_image_LDADD = -ldl
AM_TESTS_ENVIRONMENT += CC='$(CC)'; LD='$(LTH_LD)'; export CC LD;
EXTRA_DIST += %D%/link-image
TESTS += %D%/link-image
check_PROGRAMS += %D%/test_tensor %D%/test_kernels
%C%_test_tensor_SOURCES = %D%/test_tensor.c
%C%_test_tensor_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
%C%_test_tensor_LDADD = runtime/tensor/libtensor.a runtime/program/libprogram.a runtime/base/libbase.a $(CHECK_LIBS)
%C%_test_kernels_SOURCES = %D%/test_kernels.c
%C%_test_kernels_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
%C%_test_kernels_LDADD = runtime/exec/librt.a runtime/program/libprogram.a runtime/base/libbase.a $(CHECK_LIBS) \
	-lm -lpthread
check_PROGRAMS += %D%/test_kernels_text
%C%_test_kernels_text_SOURCES = %D%/test_kernels_text.c
%C%_test_kernels_text_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
%C%_test_kernels_text_LDADD = $(%C%_test_kernels_LDADD)
TESTS += %D%/test_tensor %D%/test_kernels %D%/test_kernels_text
check_PROGRAMS += %D%/test_objects
%C%_test_objects_SOURCES = %D%/test_objects.c
%C%_test_objects_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
%C%_test_objects_LDADD = runtime/exe/libexe.a runtime/exec/librt.a runtime/tensor/libtensor.a \
	runtime/program/libprogram.a runtime/base/libbase.a $(CHECK_LIBS) -lm -lpthread
TESTS += %D%/test_objects
check_PROGRAMS += %D%/test_media
%C%_test_media_SOURCES = %D%/test_media.c
%C%_test_media_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(media_cflags)
%C%_test_media_LDADD = runtime/media/libmedia.a $(media_libs) $(CHECK_LIBS)
TESTS += %D%/test_media
