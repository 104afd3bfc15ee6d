# libtensor: tensors of callers and their files; stands on libbase and on dtype.c in libprogram.
noinst_LIBRARIES += %D%/libtensor.a
runtime_tensor_sources = \
	%D%/element.c %D%/element.h \
	%D%/host.c %D%/host.h \
	%D%/npy.c \
	%D%/pb.c \
	%D%/pb_wire.c %D%/pb_wire.h
%C%_libtensor_a_SOURCES = $(runtime_tensor_sources)
