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
	%D%/pool.c %D%/pool.h \
	%D%/query.c %D%/query.h \
	%D%/signature.c %D%/signature.h \
	api/lathe.h \
	runtime/kernels/builtin.c \
	runtime/kernels/copy.c runtime/kernels/copy.h \
	runtime/kernels/nms.c \
	runtime/kernels/order.c runtime/kernels/order.h \
	runtime/kernels/select.c \
	runtime/kernels/topk.c \
	runtime/kernels/unique.c \
	runtime/kernels/walk.h \
	runtime/profiler.c runtime/profiler.h \
	runtime/threadpool.c runtime/threadpool.h
%C%_librt_a_SOURCES = $(runtime_exec_sources)
