# librt: everything that runs in an executable, save image.c, which refers to what the compiler emits.
noinst_LIBRARIES += %D%/librt.a
runtime_exec_sources = \
	%D%/context.c %D%/context.h \
	%D%/describe.c \
	%D%/executable.c %D%/executable.h \
	%D%/extent.c \
	%D%/formula.c %D%/formula.h \
	%D%/image.h \
	%D%/interp.c \
	%D%/interp_symbols.c \
	%D%/layout.c \
	%D%/monotone.c \
	%D%/objects.c %D%/objects.h \
	%D%/pool.c %D%/pool.h \
	%D%/query.c %D%/query.h \
	%D%/signature.c %D%/signature.h \
	%D%/strings.c %D%/strings.h \
	%D%/values.c %D%/values.h \
	api/lathe.h \
	runtime/kernels/bifurcation.c \
	runtime/kernels/builtin.c \
	runtime/kernels/copy.c runtime/kernels/copy.h \
	runtime/kernels/det.c \
	runtime/kernels/inverse.c \
	runtime/kernels/linear_attention.c \
	runtime/kernels/list.c runtime/kernels/list.h \
	runtime/kernels/list_join.c \
	runtime/kernels/lookup.c \
	runtime/kernels/media.c runtime/media/media.h \
	runtime/kernels/maps.c \
	runtime/kernels/murmur_hash.c \
	runtime/kernels/non_max_suppression.c \
	runtime/kernels/order.c runtime/kernels/order.h \
	runtime/kernels/pair_coupling.c \
	runtime/kernels/real.c runtime/kernels/real.h \
	runtime/kernels/select.c \
	runtime/kernels/scatter.c \
	runtime/kernels/small_float.c runtime/kernels/small_float.h \
	runtime/kernels/string_case.c \
	runtime/kernels/string_number.c \
	runtime/kernels/string_ops.c \
	runtime/kernels/top_k.c \
	runtime/kernels/trees.c \
	runtime/kernels/unique.c \
	runtime/kernels/walk.h \
	runtime/profiler.c runtime/profiler.h \
	runtime/threadpool.c runtime/threadpool.h
%C%_librt_a_SOURCES = $(runtime_exec_sources)

# The runtime as the compiler's link step takes it: one relocatable object each for shared objects and for programs,
# linked ahead so that a machine needs `ld` and no C development files. Always optimised, position independent, for the
# oldest target, never sanitised; the linker drops what an executable does not use.
runtime_image_cflags = -std=c17 $(LTH_WARN) -O2 -fPIC -fvisibility=hidden -ffunction-sections -fdata-sections \
	-march=x86-64-v2
runtime_image_sources = \
	%D%/image.c \
	$(runtime_exec_sources) \
	$(runtime_program_sources) \
	runtime/base/arena.c runtime/base/arena.h \
	runtime/base/buf.c runtime/base/buf.h \
	runtime/base/checked.h \
	runtime/base/diag.c runtime/base/diag.h \
	runtime/base/hash.c runtime/base/hash.h \
	runtime/base/io.c runtime/base/io.h \
	runtime/base/status.c runtime/base/status.def runtime/base/status.h
noinst_LIBRARIES += %D%/libimage.a
%C%_libimage_a_SOURCES = $(runtime_image_sources)
%C%_libimage_a_CFLAGS = $(runtime_image_cflags)
# The program around a model, beside it in rt-exe.o.
runtime_exe_sources = \
	runtime/exe/exe.h \
	runtime/exe/inputs.c \
	runtime/exe/main.c \
	runtime/exe/program.c \
	runtime/exe/options.c runtime/exe/options.def \
	runtime/exe/report.c \
	runtime/exe/value.c runtime/exe/value.h \
	runtime/exe/value_pb.c \
	$(runtime_tensor_sources)
noinst_LIBRARIES += %D%/libexeimage.a
%C%_libexeimage_a_SOURCES = $(runtime_exe_sources)
%C%_libexeimage_a_CFLAGS = $(runtime_image_cflags)
rtdir = $(libexecdir)/lathe
rt_DATA = %D%/rt-so.o %D%/rt-exe.o
CLEANFILES += %D%/rt-so.o %D%/rt-exe.o
%D%/rt-so.o: %D%/libimage.a
	$(AM_V_GEN)$(LTH_LD) -r -S -o $@ --whole-archive %D%/libimage.a
%D%/rt-exe.o: %D%/libimage.a %D%/libexeimage.a
	$(AM_V_GEN)$(LTH_LD) -r -S -o $@ `$(CC) -print-file-name=Scrt1.o` \
		--whole-archive %D%/libimage.a %D%/libexeimage.a
# Beside them, stand-ins for libc and libm to link against: the libraries themselves have thousands of names to read.
stub_objects = %D%/rt-so.o %D%/rt-exe.o runtime/media/rt-media.o
rt_DATA += %D%/stub-libc.so.6 %D%/stub-libm.so.6
CLEANFILES += %D%/stub-libc.so.6 %D%/stub-libm.so.6
EXTRA_DIST += %D%/stub-library
%D%/stub-libc.so.6: $(stub_objects) %D%/stub-library
	$(AM_V_GEN)sh $(srcdir)/%D%/stub-library "$(CC)" libc.so.6 $@ $(stub_objects)
%D%/stub-libm.so.6: $(stub_objects) %D%/stub-library
	$(AM_V_GEN)sh $(srcdir)/%D%/stub-library "$(CC)" libm.so.6 $@ $(stub_objects)
