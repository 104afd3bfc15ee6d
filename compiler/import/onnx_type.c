/* TypeProto to types. Dimensions of the model's inputs become symbols: by their dim_param, or `input[axis]` where they
 * have no name. Everywhere else dimensions are inferred, since real models put one name on different sizes. Of what a
 * sequence or optional holds only the numbers are taken: a name may be another size in each element. */
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

/* The size that every element has, where it is a number. */
static lth_dim element_dim(struct lth_onnx *onnx, const Lth__Onnx__Dimension *dim)
{
	bool known = dim->has_dim_value && !(dim->dim_param && *dim->dim_param) && dim->dim_value >= 0;
	return known ? lth_dim_const(onnx->base.graph->dims, dim->dim_value) : LTH_DIM_NONE;
}

static enum lth_code tensor_type(struct lth_onnx *onnx, const Lth__Onnx__TensorType *tensor, const char *place,
				 enum lth_import_dims kind, struct lth_type *out)
{
	lth_dim dims[LTH_MAX_RANK];
	out->kind = LTH_TYPE_TENSOR;
	out->rank = LTH_RANK_UNKNOWN;
	out->dtype = lth_dtype_by_onnx(tensor->elem_type);
	if (out->dtype == LTH_NUM_DTYPES && tensor->elem_type != 0)
		return lth_importer_fail(&onnx->base, LTH_INVALID_MODEL, place, "a data type of ONNX",
					 "element type %d", tensor->elem_type);
	if (!tensor->shape || kind == LTH_DIMS_INFERRED)
		return LTH_OK;
	if (tensor->shape->n_dim > LTH_MAX_RANK)
		return lth_importer_fail(&onnx->base, LTH_UNSUPPORTED, place, "at most 16 dimensions",
					 "a tensor with %zu", tensor->shape->n_dim);
	for (size_t i = 0; i < tensor->shape->n_dim; i++) {
		if (kind == LTH_DIMS_ELEMENT) {
			dims[i] = element_dim(onnx, tensor->shape->dim[i]);
			continue;
		}
		enum lth_code code = input_dim(onnx, tensor->shape->dim[i], place, i, &dims[i]);
		if (code)
			return code;
	}
	*out = lth_type_tensor(onnx->base.graph, out->dtype, (uint32_t)tensor->shape->n_dim, dims);
	return LTH_OK;
}

static enum lth_code object_type(struct lth_onnx *onnx, enum lth_type_kind kind, enum lth_dtype key,
				 const Lth__Onnx__Type *element, const char *place, struct lth_type *out)
{
	struct lth_type inner;
	if (!element)
		return lth_importer_fail(&onnx->base, LTH_INVALID_MODEL, place, "a type of the elements",
					 "a sequence, optional or map without one");
	enum lth_code code = lth_onnx_type(onnx, element, place, LTH_DIMS_ELEMENT, &inner);
	if (code)
		return code;
	*out = lth_type_object(onnx->base.graph, kind, key, &inner);
	return out->element ? LTH_OK : lth_importer_memory(&onnx->base);
}

static enum lth_code map_type(struct lth_onnx *onnx, const Lth__Onnx__MapType *map, const char *place,
			      struct lth_type *out)
{
	enum lth_dtype key = lth_dtype_by_onnx(map->key_type);
	if (key != LTH_DTYPE_I64 && key != LTH_DTYPE_STRING)
		return lth_importer_fail(&onnx->base, LTH_UNSUPPORTED, place, "keys of type int64 or string",
					 "a map whose keys are of element type %d", map->key_type);
	return object_type(onnx, LTH_TYPE_MAP, key, map->value_type, place, out);
}

enum lth_code lth_onnx_type(struct lth_onnx *onnx, const Lth__Onnx__Type *type, const char *place,
			    enum lth_import_dims dims, struct lth_type *out)
{
	*out = (struct lth_type){.kind = LTH_TYPE_TENSOR, .dtype = LTH_NUM_DTYPES, .rank = LTH_RANK_UNKNOWN};
	if (!type)
		return LTH_OK;
	if (type->tensor_type)
		return tensor_type(onnx, type->tensor_type, place, dims, out);
	if (type->sequence_type)
		return object_type(onnx, LTH_TYPE_SEQUENCE, LTH_DTYPE_F32, type->sequence_type->elem_type, place, out);
	if (type->optional_type)
		return object_type(onnx, LTH_TYPE_OPTIONAL, LTH_DTYPE_F32, type->optional_type->elem_type, place, out);
	if (type->map_type)
		return map_type(onnx, type->map_type, place, out);
	if (type->sparse_tensor_type)
		return lth_importer_fail(&onnx->base, LTH_UNSUPPORTED, place, NULL, "a sparse tensor as input");
	return LTH_OK;
}
