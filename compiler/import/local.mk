# libimport: ONNX and JSON graph IR to graphs. The reader of ONNX's wire format is generated from onnx.proto.
noinst_LIBRARIES += %D%/libimport.a
%C%_libimport_a_SOURCES = \
	%D%/import.h \
	%D%/importer.c %D%/importer.h \
	%D%/json.c %D%/json_internal.h \
	%D%/json_constant.c \
	%D%/json_locate.c \
	%D%/json_node.c \
	%D%/onnx.c %D%/onnx_internal.h \
	%D%/onnx_functions.c \
	%D%/onnx_graph.c \
	%D%/onnx_order.c \
	%D%/onnx_tensor.c \
	%D%/onnx_type.c \
	%D%/onnx_wire.c \
	%D%/upgrade.c %D%/upgrade.h %D%/upgrades.def \
	%D%/upgrade_image.c \
	%D%/upgrade_inputs.c \
	%D%/upgrade_meaning.c
nodist_%C%_libimport_a_SOURCES = %D%/onnx.pb-c.c %D%/onnx.pb-c.h
# Generated code has its own habits.
%C%_libimport_a_CFLAGS = $(AM_CFLAGS) $(PROTOBUF_C_CFLAGS) $(JANSSON_CFLAGS)
BUILT_SOURCES += %D%/onnx.pb-c.h
CLEANFILES += %D%/onnx.pb-c.c %D%/onnx.pb-c.h
EXTRA_DIST += %D%/onnx.proto
$(%C%_libimport_a_OBJECTS): %D%/onnx.pb-c.h
%D%/onnx.pb-c.h: %D%/onnx.pb-c.c
%D%/onnx.pb-c.c: %D%/onnx.proto
	$(AM_V_GEN)$(MKDIR_P) %D% && $(PROTOC_C) --proto_path=$(srcdir)/%D% --c_out=$(top_builddir)/%D% onnx.proto
