/* TypeProto to types. Dimensions of the model's inputs become symbols: by their dim_param, or `input[axis]` where they
 * have no name. Everywhere else dimensions are inferred, since real models put one name on different sizes. */
#include "compiler/import/onnx_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static enum lth_code input_dim(struct lth_onnx *onnx, const Lth__Onnx__Dimension *dim, const char *input, size_t axis,
			       lth_dim *out)
{
	struct lth_import_dim preset = LTH_IMPORT_DIM_DEFAULT;
	bool named = dim->dim_param && *dim->dim_param;
	if (dim->has_dim_value && !named && dim->dim_value >= 0 && onnx->base.options->symbolic) {
		preset.min = 0;
		preset.hint = dim->dim_value;
	} else if (dim->has_dim_value && !named && dim->dim_value >= 0) {
		*out = lth_dim_const(onnx->base.graph->dims, dim->dim_value);
		return *out == LTH_DIM_NONE ? lth_importer_memory(&onnx->base) : LTH_OK;
	}
	if (dim->has_dim_value && dim->dim_value < -1) /* -1 is how some exporters write an unknown */
		return lth_importer_fail(&onnx->base, LTH_INVALID_MODEL, input, "dimensions of at least 0",
					 "dimension %" PRId64 " on axis %zu", dim->dim_value, axis);
	preset.name = named ? dim->dim_param : lth_arena_printf(onnx->base.arena, "%s[%zu]", input, axis);
	if (!preset.name)
		return lth_importer_memory(&onnx->base);
	return lth_importer_symbol(&onnx->base, &preset, out);
}

static enum lth_code tensor_type(struct lth_onnx *onnx, const Lth__Onnx__TensorType *tensor, const char *place,
				 bool symbols, struct lth_type *out)
{
	lth_dim dims[LTH_MAX_RANK];
	out->kind = LTH_TYPE_TENSOR;
	out->rank = LTH_RANK_UNKNOWN;
	out->dtype = lth_dtype_by_onnx(tensor->elem_type);
	if (out->dtype == LTH_NUM_DTYPES && tensor->elem_type != 0)
		return lth_importer_fail(&onnx->base, LTH_INVALID_MODEL, place, "a data type of ONNX",
					 "element type %d", tensor->elem_type);
	if (!tensor->shape || !symbols)
		return LTH_OK;
	if (tensor->shape->n_dim > LTH_MAX_RANK)
		return lth_importer_fail(&onnx->base, LTH_UNSUPPORTED, place, "at most 16 dimensions",
					 "a tensor with %zu", tensor->shape->n_dim);
	for (size_t i = 0; i < tensor->shape->n_dim; i++) {
		enum lth_code code = input_dim(onnx, tensor->shape->dim[i], place, i, &dims[i]);
		if (code)
			return code;
	}
	*out = lth_type_tensor(onnx->base.graph, out->dtype, (uint32_t)tensor->shape->n_dim, dims);
	return LTH_OK;
}

static enum lth_code element_type(struct lth_onnx *onnx, const Lth__Onnx__Type *element, const char *place,
				  struct lth_type *out)
{
	struct lth_type inner = {.kind = LTH_TYPE_TENSOR};
	if (!element)
		return lth_importer_fail(&onnx->base, LTH_INVALID_MODEL, place, "a type of the elements",
					 "a sequence, optional or map without one");
	enum lth_code code = lth_onnx_type(onnx, element, place, false, &inner);
	if (code)
		return code;
	out->element = lth_arena_memdup(onnx->base.arena, &inner, sizeof(inner));
	return out->element ? LTH_OK : lth_importer_memory(&onnx->base);
}

enum lth_code lth_onnx_type(struct lth_onnx *onnx, const Lth__Onnx__Type *type, const char *place, bool symbols,
			    struct lth_type *out)
{
	struct lth_type result = {.kind = LTH_TYPE_TENSOR, .dtype = LTH_NUM_DTYPES, .rank = LTH_RANK_UNKNOWN};
	enum lth_code code = LTH_OK;
	if (!type) {
		*out = result;
		return LTH_OK;
	}
	if (type->tensor_type) {
		code = tensor_type(onnx, type->tensor_type, place, symbols, &result);
	} else if (type->sequence_type) {
		result.kind = LTH_TYPE_SEQUENCE;
		code = element_type(onnx, type->sequence_type->elem_type, place, &result);
	} else if (type->optional_type) {
		result.kind = LTH_TYPE_OPTIONAL;
		code = element_type(onnx, type->optional_type->elem_type, place, &result);
	} else if (type->map_type) {
		result.kind = LTH_TYPE_MAP;
		result.dtype = lth_dtype_by_onnx(type->map_type->key_type);
		code = element_type(onnx, type->map_type->value_type, place, &result);
	} else if (type->sparse_tensor_type) {
		code = lth_importer_fail(&onnx->base, LTH_UNSUPPORTED, place, NULL, "a sparse tensor as input");
	}
	if (code == LTH_OK)
		*out = result;
	return code;
}
