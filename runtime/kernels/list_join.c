/* Cutting tensors into lists and putting lists of tensors together (ONNX SplitToSequence, ConcatFromSequence).
 *
 *   list_split        output: list; inputs: tensor, split (absent: pieces of one); attributes axis, keepdims (0: pieces
 *                     lose the axis, of which each must have 1)
 *   list_concat_dims  output: i64 [rank], the result's dims; input: list of at least one tensor; attributes axis and
 *                     new_axis
 *   list_concat       output: tensor; inputs: list, dims; attributes as before */
#include "runtime/kernels/list.h"

#include "runtime/base/checked.h"

#include <string.h>

/* ---- split ---- */

struct cut {
	struct lth_builtin_tensor data, split;
	uint32_t axis;
	bool keep, by_length;
	int64_t length;
};

static bool read_cut(struct lth_builtin_call *call, struct cut *cut)
{
	cut->data = lth_builtin_input(call, 0);
	cut->split = lth_builtin_input(call, 1);
	int64_t axis = lth_builtin_int(call, "axis", 0);
	if (!call->objects || !cut->data.dims || axis < 0 || axis >= cut->data.rank ||
	    lth_dtype_bits(cut->data.dtype) < 8) {
		lth_builtin_fail(call, LTH_KERNEL_SHAPE, "list_split takes a tensor of whole bytes and an axis");
		return false;
	}
	cut->axis = (uint32_t)axis;
	cut->keep = lth_builtin_int(call, "keepdims", 1) != 0;
	cut->by_length = !cut->split.dims || cut->split.rank == 0;
	cut->length = 1;
	if (cut->split.dims && cut->by_length && !lth_list_int(call, 1, &cut->length))
		return false;
	if (cut->length > 0)
		return true;
	lth_builtin_fail(call, LTH_KERNEL_SHAPE, "pieces of length %lld", (long long)cut->length);
	return false;
}

/* The length of piece `number` that begins at `at`; false where there is no such piece. */
static bool next_piece(const struct cut *cut, int64_t number, int64_t at, int64_t *out)
{
	int64_t rest = cut->data.dims[cut->axis] - at;
	if (cut->by_length) {
		*out = rest < cut->length ? rest : cut->length;
		return rest > 0;
	}
	if (number >= cut->split.dims[0])
		return false;
	const char *sizes = cut->split.data;
	int64_t place = number * cut->split.strides[0];
	*out = cut->split.dtype == LTH_DTYPE_I32 ? ((const int32_t *)(const void *)sizes)[place]
						 : ((const int64_t *)(const void *)sizes)[place];
	return true;
}

static struct lth_object *copy_piece(struct lth_builtin_call *call, const struct cut *cut, int64_t at, int64_t length)
{
	int64_t dims[LTH_MAX_RANK], strides[LTH_MAX_RANK];
	struct lth_builtin_tensor piece = cut->data;
	int64_t shift = at * cut->data.strides[cut->axis] * (int64_t)(lth_dtype_bits(piece.dtype) / 8);
	piece.data = piece.data ? (char *)piece.data + shift : NULL;
	piece.dims = dims;
	piece.strides = strides;
	piece.rank = 0;
	for (uint32_t axis = 0; axis < cut->data.rank; axis++) {
		if (axis == cut->axis && !cut->keep)
			continue;
		dims[piece.rank] = axis == cut->axis ? length : cut->data.dims[axis];
		strides[piece.rank++] = cut->data.strides[axis];
	}
	return lth_list_copy(call, &piece);
}

int lth_builtin_list_split(struct lth_builtin_call *call)
{
	struct cut cut;
	if (!read_cut(call, &cut))
		return LTH_KERNEL_SHAPE;
	if (!cut.by_length &&
	    (cut.split.rank != 1 || (cut.split.dtype != LTH_DTYPE_I32 && cut.split.dtype != LTH_DTYPE_I64)))
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "split takes a length or a list of lengths");
	struct lth_object *list = lth_object_list(call->objects, 0);
	int64_t at = 0, length, extent = cut.data.dims[cut.axis];
	for (int64_t number = 0; list && next_piece(&cut, number, at, &length); number++) {
		if (length < 0 || length > extent - at || (!cut.keep && length != 1))
			return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "a piece of length %lld at %lld of %lld",
						(long long)length, (long long)at, (long long)extent);
		struct lth_object *piece = copy_piece(call, &cut, at, length);
		if (!piece || !lth_list_push(call->objects, list, piece))
			list = NULL;
		at += length;
	}
	if (list && at != extent)
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "pieces of %lld in all for a size of %lld",
					(long long)at, (long long)extent);
	return lth_list_result(call, list);
}

/* ---- concat ---- */

/* The dims of the list's tensors put together, if they fit; `out` has room for `rank`. */
static bool joined_dims(struct lth_builtin_call *call, const struct lth_object *list, uint32_t rank, int64_t *out)
{
	int64_t axis = lth_builtin_int(call, "axis", 0);
	bool fresh = lth_builtin_int(call, "new_axis", 0) != 0;
	bool fits = rank <= LTH_MAX_RANK && rank >= fresh && axis >= 0 && axis < rank;
	if (!fits || list->count == 0) {
		lth_builtin_fail(call, LTH_KERNEL_SHAPE,
				 list->count ? "an axis that the rank does not have" : "an empty sequence");
		return false;
	}
	const struct lth_object *first = lth_list_item(list, 0);
	out[axis] = 0;
	for (int64_t i = 0; i < list->count; i++) {
		const struct lth_object *item = lth_list_item(list, i);
		fits = !item->is_list && item->rank + fresh == rank && item->dtype == first->dtype;
		for (uint32_t k = 0, from = 0; fits && k < rank; k++) {
			if (k == axis)
				fits = lth_add_i64(out[k], fresh ? 1 : item->dims[from], &out[k]);
			else if (i == 0)
				out[k] = item->dims[from];
			else
				fits = out[k] == item->dims[from];
			from += !(k == axis && fresh);
		}
		if (!fits) {
			lth_builtin_fail(call, LTH_KERNEL_SHAPE, "element %lld does not fit those before it",
					 (long long)i);
			return false;
		}
	}
	return true;
}

int lth_builtin_list_concat_dims(struct lth_builtin_call *call)
{
	const struct lth_builtin_tensor *out = &call->tensors[0];
	struct lth_object *list = lth_list_operand(call, 0);
	if (!list || call->num_outputs != 1 || out->dtype != LTH_DTYPE_I64 || out->rank != 1 ||
	    out->dims[0] > LTH_MAX_RANK)
		return LTH_KERNEL_SHAPE;
	return joined_dims(call, list, (uint32_t)out->dims[0], out->data) ? 0 : LTH_KERNEL_SHAPE;
}

/* Copies one item into its place along the axis, and moves on. */
static void place_item(struct lth_builtin_call *call, const struct lth_object *item, uint32_t axis, bool fresh,
		       int64_t *at)
{
	const struct lth_builtin_tensor *out = &call->tensors[0];
	int64_t from_strides[LTH_MAX_RANK], to_strides[LTH_MAX_RANK];
	struct lth_builtin_tensor from = lth_object_view(item, from_strides), to = from;
	int64_t shift = *at * out->strides[axis] * (int64_t)(lth_dtype_bits(out->dtype) / 8);
	to.data = (char *)out->data + shift;
	to.strides = to_strides;
	for (uint32_t k = 0, into = 0; k < out->rank; k++)
		if (!(k == axis && fresh))
			to_strides[into++] = out->strides[k];
	lth_copy_tensor(&to, &from, call->threads);
	*at += fresh ? 1 : item->dims[axis];
}

int lth_builtin_list_concat(struct lth_builtin_call *call)
{
	const struct lth_builtin_tensor *out = &call->tensors[0];
	struct lth_object *list = lth_list_operand(call, 0);
	int64_t dims[LTH_MAX_RANK], at = 0;
	if (!list || call->num_outputs != 1 || lth_dtype_bits(out->dtype) < 8)
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "list_concat takes a list of tensors of whole bytes");
	if (!joined_dims(call, list, out->rank, dims))
		return LTH_KERNEL_SHAPE;
	bool fits = lth_list_item(list, 0)->dtype == out->dtype;
	for (uint32_t k = 0; fits && k < out->rank; k++)
		fits = dims[k] == out->dims[k];
	if (!fits)
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "elements that are not those that the model has");
	uint32_t axis = (uint32_t)lth_builtin_int(call, "axis", 0);
	bool fresh = lth_builtin_int(call, "new_axis", 0) != 0;
	for (int64_t i = 0; i < list->count; i++)
		place_item(call, lth_list_item(list, i), axis, fresh, &at);
	return 0;
}
