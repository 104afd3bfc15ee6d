# libops: what each operator means. Rows in *.def, one C file a family.
noinst_LIBRARIES += %D%/libops.a
%C%_libops_a_SOURCES = \
	%D%/op.c %D%/op.h %D%/ops.def %D%/reference.c \
	%D%/history.c %D%/history.h %D%/history.def %D%/cases.def \
	%D%/infer.c %D%/infer.h %D%/infer_check.c %D%/infer_shapes.c %D%/shapes.def %D%/contents.c \
	%D%/lists.c %D%/lists.def \
	%D%/build.c %D%/build.h \
	%D%/family.h \
	%D%/elementwise.c %D%/elementwise_contents.c \
	%D%/activation.c \
	%D%/attention.c %D%/attention.h %D%/attention_heads.c \
	%D%/axes.c %D%/axes.h \
	%D%/cast.c \
	%D%/quantize.c \
	%D%/random.c %D%/random.h \
	%D%/families/composite.def \
	%D%/families/control.def \
	%D%/families/elementwise.def \
	%D%/families/generator.def \
	%D%/families/irregular.def \
	%D%/families/linear.def \
	%D%/families/microsoft.def \
	%D%/families/ml.def \
	%D%/families/movement.def \
	%D%/families/strings.def \
	%D%/families/training.def \
	%D%/families/reduction.def \
	%D%/gather.c \
	%D%/gradient.c %D%/gradient.h %D%/gradients.def \
	%D%/gradient_elementwise.c %D%/gradient_linear.c %D%/gradient_shape.c \
	%D%/generator.c \
	%D%/movement.c \
	%D%/reshape.c \
	%D%/slice.c \
	%D%/control.c %D%/control.h \
	%D%/control_if.c %D%/control_split.c %D%/control_squeeze.c \
	%D%/control_copy.c \
	%D%/control_optional.c \
	%D%/object.c %D%/object.h %D%/object_list.c %D%/object_split.c %D%/sequence_map.c \
	%D%/ml_maps.c \
	%D%/families/object.def \
	%D%/conv.c \
	%D%/block_matmul.c \
	%D%/matmul.c \
	%D%/matrix.c \
	%D%/media.c \
	%D%/microsoft.c \
	%D%/microsoft.h %D%/microsoft_attention.c \
	%D%/microsoft_blocks.c %D%/microsoft_cache.c \
	%D%/microsoft_decoder.c \
	%D%/microsoft_forms.c \
	%D%/microsoft_fused.c \
	%D%/microsoft_sequence.c \
	%D%/microsoft_text.c \
	%D%/crop_and_resize.c \
	%D%/normalization.c \
	%D%/pool.c \
	%D%/ml.c %D%/ml.h \
	%D%/ml_labels.c \
	%D%/ml_models.c \
	%D%/ml_trees.c \
	%D%/strings.c %D%/strings.h \
	%D%/text.c \
	%D%/training.c \
	%D%/unpool.c \
	%D%/reduction.c \
	%D%/window.c \
	%D%/window.h \
	%D%/composite.c \
	%D%/recurrent.c %D%/recurrent.h %D%/recurrent_dynamic.c \
	%D%/irregular.c \
	%D%/resize.c %D%/resize.h %D%/resize_dense.c \
	%D%/deform.c \
	%D%/einsum.c %D%/einsum.h %D%/einsum_product.c \
	%D%/flex_attention.c \
	%D%/grid_sample.c \
	%D%/roi.c \
	%D%/sample.c \
	%D%/sample.h \
	%D%/spectral.c
