# Fuzz targets of runtime/.
if FUZZERS
runtime_fuzz_libs = runtime/exec/librt.a runtime/tensor/libtensor.a runtime/program/libprogram.a runtime/base/libbase.a \
	-lm -lpthread
check_PROGRAMS += %D%/fuzz_program_text %D%/fuzz_program_binary %D%/fuzz_npy %D%/fuzz_pb %D%/fuzz_value %D%/fuzz_lists \
	%D%/fuzz_kernels
%C%_fuzz_program_text_SOURCES = %D%/fuzz_program_text.c
%C%_fuzz_program_text_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
%C%_fuzz_program_text_LDADD = $(runtime_fuzz_libs)
%C%_fuzz_program_binary_SOURCES = %D%/fuzz_program_binary.c
%C%_fuzz_program_binary_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
%C%_fuzz_program_binary_LDADD = $(runtime_fuzz_libs)
%C%_fuzz_npy_SOURCES = %D%/fuzz_npy.c %D%/fuzz_tensor.h
%C%_fuzz_npy_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
%C%_fuzz_npy_LDADD = $(runtime_fuzz_libs)
%C%_fuzz_pb_SOURCES = %D%/fuzz_pb.c %D%/fuzz_tensor.h
%C%_fuzz_pb_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
%C%_fuzz_pb_LDADD = $(runtime_fuzz_libs)
%C%_fuzz_lists_SOURCES = %D%/fuzz_lists.c
%C%_fuzz_lists_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
%C%_fuzz_lists_LDADD = $(runtime_fuzz_libs)
%C%_fuzz_value_SOURCES = %D%/fuzz_value.c
%C%_fuzz_value_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
%C%_fuzz_value_LDADD = runtime/exe/libexe.a $(runtime_fuzz_libs)
%C%_fuzz_kernels_SOURCES = %D%/fuzz_kernels.c
%C%_fuzz_kernels_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
%C%_fuzz_kernels_LDADD = $(runtime_fuzz_libs)
check_PROGRAMS += %D%/fuzz_media
%C%_fuzz_media_SOURCES = %D%/fuzz_media.c
%C%_fuzz_media_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
%C%_fuzz_media_LDADD = runtime/media/libmedia.a $(media_libs)
endif
EXTRA_DIST += \
	%D%/corpus/program_text/every-line %D%/corpus/program_text/data-symbol \
	%D%/corpus/program_binary/every-line %D%/corpus/program_binary/data-symbol \
	%D%/corpus/npy/floats.npy %D%/corpus/npy/scalar.npy \
	%D%/corpus/pb/raw %D%/corpus/pb/typed %D%/corpus/pb/strings %D%/corpus/pb/half \
	%D%/corpus/value/sequence %D%/corpus/value/optional %D%/corpus/value/map
EXTRA_DIST += %D%/corpus/media/bmp %D%/corpus/media/bmp-masks %D%/corpus/media/bmp-palette \
	%D%/corpus/media/bmp-runs %D%/corpus/media/j2k %D%/corpus/media/jp2 %D%/corpus/media/jpeg \
	%D%/corpus/media/pattern %D%/corpus/media/png %D%/corpus/media/pnm %D%/corpus/media/pnm-plain \
	%D%/corpus/media/tiff-lzw %D%/corpus/media/tiff-packbits %D%/corpus/media/webp
