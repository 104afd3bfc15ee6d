/* Other shapes over the same elements (Reshape, Flatten, Squeeze, Unsqueeze), repetition (Expand, Tile), and what is
 * known of a shape itself (Shape, Size).
 *
 * A reshape's index is translated group by group: the finest cut of both shapes into runs of axes with equal products.
 * So axes that a reshape does not touch stay as they are, and the others cost one division each. */
#include "compiler/ops/axes.h"
#include "compiler/ops/control.h"
#include "compiler/ops/family.h"

#include <string.h>

void lth_infer_pass_contents(struct lth_infer *infer)
{
	if (infer->node->outputs[0] == LTH_NONE)
		return;
	const struct lth_contents *contents = lth_value_contents(infer->graph, infer->node->inputs[0]);
	if (contents)
		infer->graph->values[infer->node->outputs[0]].contents = contents;
}

/* ---- Reshape, Flatten ---- */

/* The entry that is -1 takes what the others leave of the elements. */
static enum lth_code fill_rest(struct lth_infer *infer, lth_dim total, lth_dim *dims, uint32_t count, uint32_t rest)
{
	dims[rest] = lth_dim_const(infer->dims, 1);
	lth_dim others = lth_dim_product(infer->dims, dims, count);
	int64_t known;
	if (lth_dim_is_const(infer->dims, others, &known) && known == 0)
		return lth_infer_reject(infer, "no -1 beside a 0", "a new shape with both");
	lth_dim exact = lth_dim_div_exact(infer->dims, total, others);
	if (exact != LTH_DIM_NONE) {
		dims[rest] = exact;
		return LTH_OK;
	}
	dims[rest] = lth_dim_floordiv(infer->dims, total, others);
	return lth_infer_require(infer, LTH_REL_DIVIDES, others, total, "a new shape that divides the elements");
}

/* A new shape of which the run alone knows whether an entry copies (0) or fills (-1): every entry is the sum of what
 * it would be, weighted by whether it is. The maximum with 0 keeps each as one atom: products of the sums would
 * explode. */
static enum lth_code run_time_dims(struct lth_infer *infer, const lth_dim *wanted, uint32_t count, lth_dim *dims)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	struct lth_dims *d = infer->dims;
	bool allow_zero = lth_op_int(infer->node, "allowzero") != 0;
	lth_dim total = lth_type_elements(infer->graph, type), one = lth_dim_const(d, 1), zero = lth_dim_const(d, 0);
	lth_dim others = one;
	lth_dim fills[LTH_MAX_CONTENTS];
	for (uint32_t i = 0; i < count; i++) {
		fills[i] = lth_dim_is(d, wanted[i], -1);
		dims[i] = wanted[i];
		if (!allow_zero && i < type->rank)
			dims[i] = lth_dim_choose(d, lth_dim_is(d, wanted[i], 0), type->dims[i], wanted[i]);
		others = lth_dim_mul(d, others, lth_dim_max(d, zero, lth_dim_choose(d, fills[i], one, dims[i])));
	}
	lth_dim rest = lth_dim_floordiv(d, total, lth_dim_max(d, others, one));
	for (uint32_t i = 0; i < count; i++)
		dims[i] = lth_dim_max(d, zero, lth_dim_choose(d, fills[i], rest, dims[i]));
	return lth_infer_require(infer, LTH_REL_EQ, total, lth_dim_product(d, dims, count),
				 "as many elements as before");
}

static enum lth_code reshape_dims(struct lth_infer *infer, const lth_dim *wanted, uint32_t count, lth_dim *dims)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	lth_dim total = lth_type_elements(infer->graph, type);
	bool allow_zero = lth_op_int(infer->node, "allowzero") != 0;
	uint32_t rest = count;
	for (uint32_t i = 0; i < count; i++) {
		int64_t value, min, max;
		dims[i] = wanted[i];
		lth_dim_range(infer->dims, wanted[i], &min, &max);
		if (!lth_dim_is_const(infer->dims, wanted[i], &value)) {
			enum lth_code code =
				min >= 0 ? LTH_OK
					 : lth_infer_require(infer, LTH_REL_LE, lth_dim_const(infer->dims, 0),
							     wanted[i], "a size of 0 or more");
			if (code)
				return code;
		} else if (value == -1 && rest == count) {
			rest = i;
		} else if (value == 0 && !allow_zero) {
			if (i >= type->rank)
				return lth_infer_reject(infer, "an axis of the input to copy",
							"0 at axis %u of the new shape", i);
			dims[i] = type->dims[i];
		} else if (value < 0) {
			return lth_infer_reject(infer, "sizes, and -1 at most once", "%lld at axis %u of the new shape",
						(long long)value, i);
		}
	}
	if (rest < count)
		return fill_rest(infer, total, dims, count, rest);
	return lth_infer_require(infer, LTH_REL_EQ, total, lth_dim_product(infer->dims, dims, count),
				 "as many elements as before");
}

static enum lth_code infer_reshape(struct lth_infer *infer)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	lth_dim dims[LTH_MAX_CONTENTS];
	uint32_t rank;
	enum lth_code code;
	if (lth_op_id(infer->node->op) == LTH_OP_ID_Flatten) {
		int64_t axis = lth_op_int(infer->node, "axis"), count = type->rank;
		if (axis < -count || axis > count)
			return lth_infer_reject(infer, "an axis of the input, or its rank", "axis %lld",
						(long long)axis);
		uint32_t cut = (uint32_t)(axis < 0 ? axis + count : axis);
		rank = 2;
		dims[0] = lth_dim_product(infer->dims, type->dims, cut);
		dims[1] = lth_dim_product(infer->dims, type->dims + cut, type->rank - cut);
	} else {
		const lth_dim *wanted;
		code = lth_infer_need_rank(infer, 1, 1, 1);
		if (!code)
			code = lth_infer_need_ints(infer, 1, -1, &wanted, &rank);
		bool run_time = false;
		for (uint32_t i = 0; !code && i < rank; i++) {
			int64_t min, max;
			lth_dim_range(infer->dims, wanted[i], &min, &max);
			run_time = run_time || (min == -1 && lth_dim_depends_on_data(infer->dims, wanted[i]));
		}
		if (!code)
			code = (run_time ? run_time_dims : reshape_dims)(infer, wanted, rank, dims);
		if (code)
			return code;
	}
	code = lth_infer_output(infer, 0, LTH_NUM_DTYPES, rank, dims);
	if (!code)
		lth_infer_pass_contents(infer);
	return code;
}

struct run {
	uint32_t in, out; /* axes of each side */
};

/* The shortest next runs with equal products, from axis `in` and `out` on; what is left when there is none. */
static struct run next_run(struct lth_dims *dims, const lth_dim *in, uint32_t in_rank, const lth_dim *out,
			   uint32_t out_rank)
{
	for (uint32_t total = 1; total <= in_rank + out_rank; total++)
		for (uint32_t a = 0; a <= total && a <= in_rank; a++) {
			uint32_t b = total - a;
			if (b <= out_rank && lth_dim_product(dims, in, a) == lth_dim_product(dims, out, b))
				return (struct run){a, b};
		}
	return (struct run){in_rank, out_rank};
}

static lth_sx reshape_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
			      const lth_sx *index)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	struct lth_dims *dims = lth_lower_graph(lower)->dims;
	lth_value_id from = node->inputs[0], to = node->outputs[output];
	const lth_dim *in = lth_shape_of(lower, from), *out = lth_shape_of(lower, to);
	uint32_t in_rank = lth_rank(lower, from), out_rank = lth_rank(lower, to), i = 0, o = 0;
	lth_sx at[LTH_MAX_RANK];
	while (i < in_rank) {
		struct run run = next_run(dims, in + i, in_rank - i, out + o, out_rank - o);
		lth_sx flat = lth_sx_int(pool, 0);
		for (uint32_t k = 0; k < run.out; k++)
			flat = lth_add(pool, lth_mul(pool, flat, lth_sx_dim(pool, out[o + k])), index[o + k]);
		for (uint32_t k = run.in; k-- > 0;) {
			lth_sx extent = lth_sx_dim(pool, in[i + k]);
			at[i + k] = k ? lth_modulo(pool, flat, extent) : flat;
			flat = k ? lth_floordiv(pool, flat, extent) : flat;
		}
		i += run.in;
		o += run.out;
	}
	return lth_read(lower, from, at);
}

const struct lth_op_impl lth_impl_reshape = {.infer = infer_reshape, .element = reshape_element};

/* ---- Squeeze, Unsqueeze ---- */

/* Sum over i of extents[i] where axis i is the j-th that is not in the set. */
static lth_dim kept_extent(struct lth_dims *dims, const struct lth_axes *axes, const lth_dim *extents, uint32_t j)
{
	lth_dim sum = lth_dim_const(dims, 0);
	for (uint32_t i = 0; i < axes->rank; i++)
		sum = lth_dim_add(dims, sum, lth_dim_mul(dims, extents[i], lth_axes_is_kept(dims, axes, i, j)));
	return sum;
}

/* Without axes, those that are 1 go. Where only the run knows which are, it must be as many as the result's declared rank
 * says; if that is not told either, the axes in question are `out_open`. */
static enum lth_code squeeze_ones(struct lth_infer *infer, struct lth_axes *axes, uint32_t *out_dropped,
				  uint32_t *out_open)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	struct lth_dims *d = infer->dims;
	lth_dim one = lth_dim_const(d, 1), count = lth_dim_const(d, 0);
	lth_value_id result = infer->node->outputs[0];
	uint32_t rank = result == LTH_NONE ? LTH_RANK_UNKNOWN : infer->graph->values[result].declared_rank;
	for (uint32_t i = 0; i < type->rank; i++) {
		enum lth_truth is_one = lth_dim_equal(d, type->dims[i], one);
		axes->in[i] = is_one == LTH_UNKNOWN ? lth_dim_is(d, type->dims[i], 1) : lth_dim_const(d, is_one == LTH_YES);
		axes->flags |= is_one == LTH_YES ? 1u << i : 0;
		axes->known &= is_one != LTH_UNKNOWN;
		count = lth_dim_add(d, count, axes->in[i]);
		if (is_one != LTH_UNKNOWN || (rank != LTH_RANK_UNKNOWN && rank <= type->rank))
			continue;
		*out_open |= 1u << i;
		if (!lth_control_may_split(infer))
			return lth_infer_unsupported(infer, "name the axes",
						     "the output's rank depends on whether axis %u of size %s is 1", i,
						     lth_infer_dim_text(infer, type->dims[i]));
	}
	*out_dropped = (uint32_t)__builtin_popcount(axes->flags);
	if (axes->known || *out_open)
		return LTH_OK;
	*out_dropped = type->rank - rank;
	return lth_infer_require(infer, LTH_REL_EQ, count, lth_dim_const(d, *out_dropped),
				 "as many axes of size 1 as the result has axes less");
}

static enum lth_code infer_squeeze(struct lth_infer *infer)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	struct lth_dims *d = infer->dims;
	lth_dim one = lth_dim_const(d, 1), zero = lth_dim_const(d, 0), dims[LTH_MAX_RANK];
	uint32_t dropped, open = 0;
	struct lth_axes axes;
	enum lth_code code = lth_infer_axes(infer, 1, type->rank, &axes);
	if (!code && !lth_infer_type(infer, 1))
		code = squeeze_ones(infer, &axes, &dropped, &open);
	if (!code && open)
		return lth_control_squeeze(infer, axes.flags, open);
	for (uint32_t i = 0; !code && lth_infer_type(infer, 1) && i < type->rank; i++) {
		lth_dim excess = lth_dim_mul(d, axes.in[i], lth_dim_sub(d, type->dims[i], one));
		code = lth_infer_require(infer, LTH_REL_EQ, excess, zero, "squeezed axes of size 1");
	}
	if (code)
		return code;
	if (lth_infer_type(infer, 1))
		dropped = (uint32_t)__builtin_popcount(axes.flags);
	if (lth_infer_type(infer, 1) && !axes.known)
		lth_infer_ints(infer, 1, &dropped);
	if (dropped > type->rank)
		return lth_infer_reject(infer, "each axis once", "%u axes for rank %u", dropped, type->rank);
	for (uint32_t j = 0; j < type->rank - dropped; j++)
		dims[j] = kept_extent(d, &axes, type->dims, j);
	code = lth_infer_output(infer, 0, LTH_NUM_DTYPES, type->rank - dropped, dims);
	if (!code)
		lth_infer_pass_contents(infer);
	return code;
}

const struct lth_op_impl lth_impl_squeeze = {.infer = infer_squeeze, .element = reshape_element};

static enum lth_code infer_unsqueeze(struct lth_infer *infer)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	struct lth_dims *d = infer->dims;
	const lth_dim *ignored;
	lth_dim dims[LTH_MAX_RANK];
	struct lth_axes axes;
	uint32_t count;
	enum lth_code code = lth_infer_need_ints(infer, 1, -LTH_MAX_RANK, &ignored, &count);
	if (code)
		return code;
	uint32_t rank = type->rank + count;
	if (rank > LTH_MAX_RANK)
		return lth_infer_unsupported(infer, NULL, "rank %u is above %d", rank, LTH_MAX_RANK);
	code = lth_infer_axes(infer, 1, rank, &axes);
	if (code)
		return code;
	for (uint32_t k = 0; k < rank; k++) { /* a new axis is 1; the i-th old one is where it is the i-th kept */
		dims[k] = axes.in[k];
		for (uint32_t i = 0; i < type->rank; i++)
			dims[k] = lth_dim_add(d, dims[k],
					      lth_dim_mul(d, type->dims[i], lth_axes_is_kept(d, &axes, k, i)));
	}
	code = lth_infer_output(infer, 0, LTH_NUM_DTYPES, rank, dims);
	if (!code)
		lth_infer_pass_contents(infer);
	return code;
}

const struct lth_op_impl lth_impl_unsqueeze = {.infer = infer_unsqueeze, .element = reshape_element};

/* ---- Expand, Tile ---- */

/* Output 0's contents where each element is one of the input's: `place` maps indices of a constant shape. */
static void repeat_contents(struct lth_infer *infer)
{
	uint32_t count;
	int32_t from[LTH_MAX_CONTENTS];
	int64_t out[LTH_MAX_RANK], in[LTH_MAX_RANK];
	if (!lth_infer_wants_contents(infer, 0, &count))
		return;
	const struct lth_type *type = lth_infer_type(infer, 0);
	const struct lth_type *result = &infer->graph->values[infer->node->outputs[0]].type;
	if (!lth_type_static(infer->graph, type, in) || !lth_type_static(infer->graph, result, out))
		return;
	for (uint32_t k = 0; k < count; k++) {
		int64_t rest = k, place = 0, stride = 1;
		for (uint32_t i = 0; i < result->rank; i++) {
			int64_t at = rest % out[result->rank - 1 - i];
			rest /= out[result->rank - 1 - i];
			if (i >= type->rank)
				continue;
			place += at % in[type->rank - 1 - i] * stride;
			stride *= in[type->rank - 1 - i];
		}
		from[k] = (int32_t)place;
	}
	lth_infer_move_contents(infer, 0, from, count);
}

static enum lth_code infer_expand(struct lth_infer *infer)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	const lth_dim *wanted;
	uint32_t count, rank = 0;
	lth_dim dims[LTH_MAX_RANK];
	enum lth_code code = lth_infer_need_rank(infer, 1, 1, 1);
	if (!code)
		code = lth_infer_need_ints(infer, 1, 0, &wanted, &count);
	if (code)
		return code;
	if (count > LTH_MAX_RANK)
		return lth_infer_unsupported(infer, NULL, "rank %u is above %d", count, LTH_MAX_RANK);
	code = lth_infer_broadcast(infer, dims, &rank, wanted, count);
	if (!code)
		code = lth_infer_broadcast(infer, dims, &rank, type->dims, type->rank);
	if (!code)
		code = lth_infer_output(infer, 0, LTH_NUM_DTYPES, rank, dims);
	if (!code)
		repeat_contents(infer);
	return code;
}

static lth_sx expand_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output,
			     const lth_sx *index)
{
	return lth_read_broadcast(lower, node->inputs[0], index, lth_rank(lower, node->outputs[output]));
}

const struct lth_op_impl lth_impl_expand = {.infer = infer_expand, .element = expand_element};

static enum lth_code infer_tile(struct lth_infer *infer)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	const lth_dim *repeats;
	uint32_t count;
	lth_dim dims[LTH_MAX_RANK];
	enum lth_code code = lth_infer_need_rank(infer, 1, 1, 1);
	if (!code)
		code = lth_infer_need_ints(infer, 1, 0, &repeats, &count);
	if (code)
		return code;
	if (count != type->rank)
		return lth_infer_reject(infer, "one number an axis", "%u repeats for rank %u", count, type->rank);
	for (uint32_t i = 0; i < count; i++)
		dims[i] = lth_dim_mul(infer->dims, type->dims[i], repeats[i]);
	code = lth_infer_output(infer, 0, LTH_NUM_DTYPES, count, dims);
	if (!code)
		repeat_contents(infer);
	return code;
}

static lth_sx tile_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output, const lth_sx *index)
{
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	const lth_dim *in = lth_shape_of(lower, node->inputs[0]), *out = lth_shape_of(lower, node->outputs[output]);
	lth_sx at[LTH_MAX_RANK];
	for (uint32_t i = 0; i < lth_rank(lower, node->inputs[0]); i++)
		at[i] = in[i] == out[i] ? index[i] : lth_modulo(pool, index[i], lth_sx_dim(pool, in[i]));
	return lth_read(lower, node->inputs[0], at);
}

const struct lth_op_impl lth_impl_tile = {.infer = infer_tile, .element = tile_element};

/* ---- Shape, Size ---- */

/* The slice of the axes that Shape gives. */
static void shape_axes(const struct lth_node *node, uint32_t rank, uint32_t *out_start, uint32_t *out_count)
{
	int64_t start = lth_node_int(node, "start", 0), end = lth_node_int(node, "end", rank), count = rank;
	start = start < 0 ? start + count : start;
	end = end < 0 ? end + count : end;
	start = start < 0 ? 0 : start > count ? count : start;
	end = end < 0 ? 0 : end > count ? count : end;
	*out_start = (uint32_t)start;
	*out_count = (uint32_t)(end > start ? end - start : 0);
}

static enum lth_code infer_shape(struct lth_infer *infer)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	uint32_t start, count;
	if (type->kind != LTH_TYPE_TENSOR)
		return lth_infer_reject(infer, "a tensor", "%s is not a tensor", lth_infer_input_text(infer, 0));
	shape_axes(infer->node, type->rank, &start, &count);
	lth_dim length = lth_dim_const(infer->dims, count);
	enum lth_code code = lth_infer_output(infer, 0, LTH_NUM_DTYPES, 1, &length);
	if (!code)
		lth_infer_set_ints(infer, 0, type->dims + start, count);
	return code;
}

static lth_sx shape_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output, const lth_sx *index)
{
	(void)output;
	struct lth_sx_pool *pool = lth_lower_pool(lower);
	const lth_dim *dims = lth_shape_of(lower, node->inputs[0]);
	uint32_t start, count;
	shape_axes(node, lth_rank(lower, node->inputs[0]), &start, &count);
	lth_sx result = lth_sx_int(pool, 0);
	for (uint32_t i = count; i-- > 0;) {
		lth_sx here = lth_eq(pool, index[0], lth_sx_int(pool, i));
		result = i + 1 == count ? lth_sx_dim(pool, dims[start + i])
					: lth_sx_select(pool, here, lth_sx_dim(pool, dims[start + i]), result);
	}
	return result;
}

const struct lth_op_impl lth_impl_shape = {.infer = infer_shape, .element = shape_element};

static enum lth_code infer_size(struct lth_infer *infer)
{
	const struct lth_type *type = lth_infer_type(infer, 0);
	if (type->kind != LTH_TYPE_TENSOR)
		return lth_infer_reject(infer, "a tensor", "%s is not a tensor", lth_infer_input_text(infer, 0));
	lth_dim elements = lth_type_elements(infer->graph, type);
	enum lth_code code = lth_infer_output(infer, 0, LTH_NUM_DTYPES, 0, NULL);
	if (!code)
		lth_infer_set_ints(infer, 0, &elements, 1);
	return code;
}

static lth_sx size_element(struct lth_lower *lower, const struct lth_node *node, uint32_t output, const lth_sx *index)
{
	(void)output, (void)index;
	struct lth_graph *graph = lth_lower_graph(lower);
	return lth_sx_dim(lth_lower_pool(lower), lth_type_elements(graph, &graph->values[node->inputs[0]].type));
}

const struct lth_op_impl lth_impl_size = {.infer = infer_size, .element = size_element};
