/* ai.onnx.ml's operators on maps: ZipMap, CastMap, DictVectorizer. A map in a run is a list of two tensors, its keys in
 * ascending order and their values. */
#include "compiler/ops/ml.h"
#include "compiler/ops/object.h"
#include "compiler/ops/strings.h"

#include <string.h>

/* ---- ZipMap ---- */

static enum lth_code expand_zip_map(struct lth_infer *infer)
{
	const struct lth_attr *strings = lth_node_attr(infer->node, "classlabels_strings");
	const struct lth_attr *ints = lth_node_attr(infer->node, "classlabels_int64s");
	if (!strings == !ints)
		return lth_infer_reject(infer, "classlabels_strings or classlabels_int64s",
					strings ? "both" : "neither");
	enum lth_code code = lth_infer_need_rank(infer, 0, 1, 2);
	if (code)
		return code;
	lth_value_id x = infer->node->inputs[0];
	if (lth_infer_rank(infer, 0) == 1)
		x = lth_build_unsqueeze(infer, x, (int64_t[]){0}, 1);
	lth_value_id keys = strings ? lth_build_strings(infer, strings->strings, strings->count)
				    : lth_build_ints(infer, ints->ints, ints->count);
	lth_build_output(infer, 0, lth_build2(infer, LTH_OP_ID_MapsOfRows, keys, x));
	return LTH_OK;
}

static enum lth_code infer_maps_of_rows(struct lth_infer *infer)
{
	enum lth_code code = lth_infer_need_rank(infer, 0, 1, 1);
	if (!code)
		code = lth_infer_need_rank(infer, 1, 2, 2);
	if (!code)
		code = lth_infer_require(infer, LTH_REL_EQ, lth_infer_dim(infer, 1, 1), lth_infer_dim(infer, 0, 0),
					 "a column for each key");
	const struct lth_type value = lth_type_tensor(infer->graph, LTH_DTYPE_F32, 0, NULL);
	if (code)
		return code;
	const struct lth_type map =
		lth_type_object(infer->graph, LTH_TYPE_MAP, lth_infer_type(infer, 0)->dtype, &value);
	const struct lth_type list = lth_type_object(infer->graph, LTH_TYPE_SEQUENCE, LTH_DTYPE_F32, &map);
	return lth_infer_output_type(infer, 0, &list);
}

const struct lth_op_impl lth_impl_zip_map = {.expand = expand_zip_map};
const struct lth_op_impl lth_impl_maps_of_rows = {.infer = infer_maps_of_rows, .builtin = "maps_of_rows"};

/* ---- CastMap ---- */

static enum lth_code need_scalars(struct lth_infer *infer, const struct lth_type *map)
{
	const struct lth_type *value = map->element;
	if (value->kind == LTH_TYPE_TENSOR && value->dtype != LTH_NUM_DTYPES &&
	    (value->rank == 0 || value->rank == LTH_RANK_UNKNOWN))
		return LTH_OK;
	return lth_infer_unsupported(infer, NULL, "%s: a map whose values are no scalars",
				     lth_infer_input_text(infer, 0));
}

/* max_map values, of which those that the map has are its own. */
static lth_value_id spread(struct lth_infer *infer, lth_value_id keys, lth_value_id values, enum lth_dtype dtype)
{
	int64_t count = lth_op_int(infer->node, "max_map");
	size_t width = lth_dtype_bits(dtype) / 8;
	void *zeros = lth_arena_array(infer->graph->arena, (size_t)count + 1, width);
	if (!zeros)
		return LTH_NONE;
	lth_value_id all = dtype == LTH_DTYPE_STRING
				   ? lth_build_strings(infer, zeros, (uint32_t)count)
				   : lth_build_data(infer, dtype, 1, &count, zeros, (size_t)count * width);
	return lth_build(infer, LTH_OP_ID_ScatterElements, (lth_value_id[]){all, keys, values}, 3, NULL, 0);
}

static enum lth_code expand_cast_map(struct lth_infer *infer)
{
	enum { MAX_MAP = 1 << 20 };
	const struct lth_type map = *lth_infer_type(infer, 0);
	enum lth_dtype to = lth_op_string_is(infer->node, "cast_to", "TO_FLOAT")   ? LTH_DTYPE_F32
			    : lth_op_string_is(infer->node, "cast_to", "TO_INT64") ? LTH_DTYPE_I64
										   : LTH_DTYPE_STRING;
	lth_value_id parts[2] = {LTH_NONE, LTH_NONE};
	enum lth_code code = need_scalars(infer, &map);
	if (!code && map.key != LTH_DTYPE_I64)
		code = lth_infer_reject(infer, "keys of type i64", "keys of type %s", lth_dtype_text(map.key));
	for (int64_t i = 0; i < 2 && !code; i++)
		code = lth_build_item(infer, infer->node->inputs[0],
				      lth_build_data(infer, LTH_DTYPE_I64, 0, NULL, &i, 8), false, &parts[i]);
	if (code)
		return code;
	lth_value_id values = lth_build_cast(infer, parts[1], to);
	if (lth_op_string_is(infer->node, "map_form", "SPARSE")) {
		int64_t count = lth_op_int(infer->node, "max_map");
		if (count < 1 || count > MAX_MAP)
			return lth_infer_reject(infer, "max_map in [1, 1048576]", "max_map %lld", (long long)count);
		values = spread(infer, parts[0], values, to);
	}
	lth_build_output(infer, 0, lth_build_unsqueeze(infer, values, (int64_t[]){0}, 1));
	return LTH_OK;
}

const struct lth_op_impl lth_impl_cast_map = {.expand = expand_cast_map};

/* ---- DictVectorizer ---- */

static enum lth_code expand_dict_vectorizer(struct lth_infer *infer)
{
	const struct lth_type map = *lth_infer_type(infer, 0);
	const struct lth_attr *strings = lth_node_attr(infer->node, "string_vocabulary");
	const struct lth_attr *ints = lth_node_attr(infer->node, "int64_vocabulary");
	enum lth_code code = need_scalars(infer, &map);
	if (!code && !strings == !ints)
		code = lth_infer_reject(infer, "string_vocabulary or int64_vocabulary", strings ? "both" : "neither");
	if (!code && map.key != (strings ? LTH_DTYPE_STRING : LTH_DTYPE_I64))
		code = lth_infer_reject(infer, "a vocabulary of the keys' type", "keys of type %s",
					lth_dtype_text(map.key));
	if (code)
		return code;
	lth_value_id keys = strings ? lth_build_strings(infer, strings->strings, strings->count)
				    : lth_build_ints(infer, ints->ints, ints->count);
	lth_value_id found = lth_build2(infer, LTH_OP_ID_MapFind, infer->node->inputs[0], keys);
	lth_build_output(infer, 0, lth_build_unsqueeze(infer, found, (int64_t[]){0}, 1));
	return LTH_OK;
}

static enum lth_code infer_map_find(struct lth_infer *infer)
{
	const struct lth_type *map = lth_infer_type(infer, 0), *keys = lth_infer_type(infer, 1);
	enum lth_code code = need_scalars(infer, map);
	if (!code && map->key != keys->dtype)
		code = lth_infer_reject(infer, lth_dtype_text(map->key), "keys of type %s", lth_dtype_text(keys->dtype));
	return code ? code : lth_infer_output(infer, 0, map->element->dtype, keys->rank, keys->dims);
}

const struct lth_op_impl lth_impl_dict_vectorizer = {.expand = expand_dict_vectorizer};
const struct lth_op_impl lth_impl_map_find = {.infer = infer_map_find, .builtin = "map_find"};
