/* Kernels that put updates into a copy of their data: scatter_elements (ONNX ScatterElements, Scatter) and scatter_nd
 * (ScatterND).
 *
 *   scatter_elements  output; inputs: data, indices i32 or i64 [as updates], updates; attributes axis (0), reduction
 *   scatter_nd        output; inputs: data, indices [..., k], updates [..., data's axes from k on]; attribute reduction
 *   reduction: none (a later update of one place wins), add, mul, min, max
 *
 * Negative indices count from the end; others outside the data are an error. Updates are applied in row-major order, by
 * one thread, so that equal inputs give equal sums. */
#include "runtime/kernels/copy.h"
#include "runtime/kernels/small_float.h"
#include "runtime/kernels/walk.h"

#include <math.h>
#include <string.h>

enum reduction { NONE, ADD, MUL, MIN, MAX };

static enum reduction reduction_of(const struct lth_builtin_call *call)
{
	static const char *const names[] = {"none", "add", "mul", "min", "max"};
	char text[16];
	if (lth_builtin_text_attribute(call, "reduction", text, sizeof(text)))
		for (int i = 0; i <= MAX; i++)
			if (strcmp(text, names[i]) == 0)
				return (enum reduction)i;
	return NONE;
}

static double combine_real(double a, double b, enum reduction reduction)
{
	switch (reduction) {
	case ADD:
		return a + b;
	case MUL:
		return a * b;
	case MIN:
		return isnan(a) || a < b ? a : b;
	default:
		return isnan(a) || a > b ? a : b;
	}
}

/* Integers wrap around, as in kernels that compute with them. */
static uint64_t combine_bits(uint64_t a, uint64_t b, bool less, enum reduction reduction)
{
	switch (reduction) {
	case ADD:
		return a + b;
	case MUL:
		return a * b;
	case MIN:
		return less ? a : b;
	default:
		return less ? b : a;
	}
}

static uint64_t load_bits(const void *at, unsigned bytes, bool is_signed)
{
	uint64_t value = 0;
	memcpy(&value, at, bytes);
	unsigned unused = 64 - 8 * bytes;
	return is_signed ? (uint64_t)((int64_t)(value << unused) >> unused) : value;
}

static void combine_floats(char *to, const char *from, enum lth_dtype dtype, enum reduction reduction)
{
	float a, b;
	double x, y;
	uint16_t half = 0, other = 0;
	switch (dtype) {
	case LTH_DTYPE_F32:
		memcpy(&a, to, sizeof(a));
		memcpy(&b, from, sizeof(b));
		a = (float)combine_real((double)a, (double)b, reduction); /* one rounding: double holds the product */
		memcpy(to, &a, sizeof(a));
		break;
	case LTH_DTYPE_F64:
		memcpy(&x, to, sizeof(x));
		memcpy(&y, from, sizeof(y));
		x = combine_real(x, y, reduction);
		memcpy(to, &x, sizeof(x));
		break;
	default:
		memcpy(&half, to, lth_dtype_bits(dtype) / 8);
		memcpy(&other, from, lth_dtype_bits(dtype) / 8);
		x = combine_real(lth_small_float(half, dtype), lth_small_float(other, dtype), reduction);
		half = (uint16_t)lth_small_float_bits(x, dtype);
		memcpy(to, &half, lth_dtype_bits(dtype) / 8);
	}
}

static void move(char *to, const char *from, unsigned bytes)
{
	switch (bytes) {
	case 1:
		*to = *from;
		break;
	case 4:
		memcpy(to, from, 4);
		break;
	case 8:
		memcpy(to, from, 8);
		break;
	default:
		memcpy(to, from, bytes);
	}
}

/* Puts one element on its place. */
static void put(char *to, const char *from, enum lth_dtype dtype, enum reduction reduction)
{
	unsigned bytes = lth_dtype_bits(dtype) / 8;
	if (reduction == NONE) {
		move(to, from, bytes);
	} else if (lth_dtype_class(dtype) == LTH_CLASS_FLOAT) {
		combine_floats(to, from, dtype, reduction);
	} else {
		bool is_signed = lth_dtype_class(dtype) == LTH_CLASS_INT;
		uint64_t a = load_bits(to, bytes, is_signed), b = load_bits(from, bytes, is_signed);
		bool less = is_signed ? (int64_t)a < (int64_t)b : a < b;
		a = combine_bits(a, b, less, reduction);
		memcpy(to, &a, bytes);
	}
}

static int64_t load_index(const void *at, enum lth_dtype dtype)
{
	return dtype == LTH_DTYPE_I32 ? *(const int32_t *)at : *(const int64_t *)at;
}

/* An index, counted from the end where it is negative; -1 when it is outside. */
static int64_t read_index(const char *at, enum lth_dtype dtype, int64_t dim)
{
	int64_t index = load_index(at, dtype);
	if (index < -dim || index >= dim)
		return -1;
	return index < 0 ? index + dim : index;
}

static int bad_index(struct lth_builtin_call *call, const char *at, enum lth_dtype dtype, int64_t dim)
{
	return lth_builtin_fail(call, LTH_KERNEL_INDEX, "index %lld on an axis of %lld",
				(long long)load_index(at, dtype), (long long)dim);
}

/* Types that these kernels move and combine. */
static bool types_fit(const struct lth_builtin_tensor *in, enum reduction reduction)
{
	enum lth_dtype dtype = in[0].dtype;
	enum lth_dtype_class class = lth_dtype_class(dtype);
	if (!in[0].dims || !in[1].dims || !in[2].dims || in[2].dtype != dtype || lth_dtype_bits(dtype) < 8 ||
	    (in[1].dtype != LTH_DTYPE_I32 && in[1].dtype != LTH_DTYPE_I64))
		return false;
	return reduction == NONE || (class != LTH_CLASS_STRING && class != LTH_CLASS_COMPLEX);
}

static int prepare(struct lth_builtin_call *call, struct lth_builtin_tensor in[3], enum reduction *out_reduction)
{
	for (uint32_t i = 0; i < 3; i++)
		in[i] = lth_builtin_input(call, i);
	*out_reduction = reduction_of(call);
	if (call->num_outputs != 1 || !types_fit(in, *out_reduction))
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "data, integer indices and updates are wanted");
	lth_copy_tensor(&call->tensors[0], &in[0], call->threads);
	return 0;
}

/* One row of updates along the last axis. Steps in bytes. */
struct scatter_row {
	const char *indices, *updates;
	char *out; /* with index 0 on the axis, at the first update */
	int64_t index_step, update_step, out_step, axis_step;
	int64_t count, dim;
};

/* How many were put before an index that is out of range. */
static int64_t put_row(const struct scatter_row *row, enum lth_dtype index_dtype, enum lth_dtype dtype,
		       enum reduction reduction)
{
	for (int64_t i = 0; i < row->count; i++) {
		int64_t index = read_index(row->indices + i * row->index_step, index_dtype, row->dim);
		if (index < 0)
			return i;
		put(row->out + i * row->out_step + index * row->axis_step, row->updates + i * row->update_step, dtype,
		    reduction);
	}
	return row->count;
}

int lth_builtin_scatter_elements(struct lth_builtin_call *call)
{
	struct lth_builtin_tensor in[3];
	enum reduction reduction;
	int error = prepare(call, in, &reduction);
	if (error)
		return error;
	const struct lth_builtin_tensor *out = &call->tensors[0], *indices = &in[1], *updates = &in[2];
	int64_t axis = lth_builtin_int(call, "axis", 0), element = lth_dtype_bits(out->dtype) / 8;
	axis += axis < 0 ? out->rank : 0;
	bool fits = axis >= 0 && axis < (int64_t)out->rank && indices->rank == out->rank && updates->rank == out->rank;
	for (uint32_t k = 0; fits && k < out->rank; k++)
		fits = indices->dims[k] == updates->dims[k] && (k == axis || indices->dims[k] <= out->dims[k]);
	if (!fits)
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "indices and updates that do not fit the data");
	uint32_t last = out->rank - 1;
	int64_t total = lth_tensor_count(indices->rank, indices->dims), width = indices->dims[last];
	struct lth_builtin_tensor index_rows = *indices, update_rows = *updates; /* their outer axes */
	struct lth_walk index, update;
	index_rows.rank = update_rows.rank = last;
	lth_walk_init(&index, &index_rows, LTH_MAX_RANK);
	lth_walk_init(&update, &update_rows, LTH_MAX_RANK);
	struct scatter_row row = {.dim = out->dims[axis],
				  .count = width,
				  .index_step = indices->strides[last] * (int64_t)(lth_dtype_bits(indices->dtype) / 8),
				  .update_step = updates->strides[last] * element,
				  .axis_step = out->strides[axis] * element,
				  .out_step = axis == last ? 0 : out->strides[last] * element};
	for (int64_t i = 0; i < total; i += width, lth_walk_next(&index), lth_walk_next(&update)) {
		row.indices = index.at;
		row.updates = update.at;
		row.out = out->data;
		for (uint32_t k = 0; k < last; k++)
			row.out += k == axis ? 0 : index.index[k] * out->strides[k] * element;
		int64_t done = put_row(&row, indices->dtype, out->dtype, reduction);
		if (done < width)
			return bad_index(call, row.indices + done * row.index_step, indices->dtype, row.dim);
	}
	return 0;
}

/* One slice of updates onto the place that a tuple gave. */
static void put_slice(const struct lth_builtin_tensor *out, uint32_t tuple, char *to,
		      const struct lth_builtin_tensor *updates, char *from, enum reduction reduction,
		      struct lth_threadpool *threads)
{
	struct lth_builtin_tensor target = *out, source = *updates;
	uint32_t first = updates->rank - (out->rank - tuple);
	target.data = to;
	target.rank = source.rank = out->rank - tuple;
	target.dims += tuple;
	target.strides += tuple;
	source.data = from;
	source.dims = target.dims;
	source.strides += first;
	if (reduction == NONE) {
		lth_copy_tensor(&target, &source, threads);
		return;
	}
	struct lth_walk place, update;
	int64_t count = lth_tensor_count(target.rank, target.dims);
	lth_walk_init(&place, &target, LTH_MAX_RANK);
	lth_walk_init(&update, &source, LTH_MAX_RANK);
	for (int64_t i = 0; i < count; i++, lth_walk_next(&place), lth_walk_next(&update))
		put(place.at, update.at, out->dtype, reduction);
}

static bool nd_shapes_fit(const struct lth_builtin_tensor *out, const struct lth_builtin_tensor *indices,
			  const struct lth_builtin_tensor *updates)
{
	if (indices->rank == 0)
		return false;
	uint32_t outer = indices->rank - 1;
	int64_t tuple = indices->dims[outer];
	if (tuple < 0 || tuple > (int64_t)out->rank || updates->rank != outer + out->rank - (uint32_t)tuple)
		return false;
	for (uint32_t k = 0; k < updates->rank; k++)
		if (updates->dims[k] != (k < outer ? indices->dims[k] : out->dims[(uint32_t)tuple + k - outer]))
			return false;
	return true;
}

int lth_builtin_scatter_nd(struct lth_builtin_call *call)
{
	struct lth_builtin_tensor in[3];
	enum reduction reduction;
	int error = prepare(call, in, &reduction);
	if (error)
		return error;
	const struct lth_builtin_tensor *out = &call->tensors[0], *indices = &in[1], *updates = &in[2];
	if (!nd_shapes_fit(out, indices, updates))
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "indices and updates that do not fit the data");
	uint32_t outer = indices->rank - 1, tuple = (uint32_t)indices->dims[outer];
	int64_t count = lth_tensor_count(outer, indices->dims), element = lth_dtype_bits(out->dtype) / 8;
	int64_t step = indices->strides[outer] * (int64_t)(lth_dtype_bits(indices->dtype) / 8);
	struct lth_builtin_tensor tuples = *indices, slices = *updates; /* their outer axes */
	struct lth_walk walk, update;
	tuples.rank = slices.rank = outer;
	lth_walk_init(&walk, &tuples, LTH_MAX_RANK);
	lth_walk_init(&update, &slices, LTH_MAX_RANK);
	for (int64_t i = 0; i < count; i++, lth_walk_next(&walk), lth_walk_next(&update)) {
		int64_t place = 0;
		for (uint32_t k = 0; k < tuple; k++) {
			const char *at = walk.at + k * step;
			int64_t index = read_index(at, indices->dtype, out->dims[k]);
			if (index < 0)
				return bad_index(call, at, indices->dtype, out->dims[k]);
			place += index * out->strides[k];
		}
		put_slice(out, tuple, (char *)out->data + place * element, updates, update.at, reduction,
			  call->threads);
	}
	return 0;
}
