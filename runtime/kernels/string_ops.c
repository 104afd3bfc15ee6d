/* Strings, element by element.
 *
 *   string_table   output: strings [n]; inputs: bytes u8, ends i64 [n] (element k is what stands before its end and
 *                  behind the end of k - 1): how constant strings lie in an executable, which holds no pointers
 *   string_equal   output: bool; inputs: two of strings, broadcast
 *   string_concat  output: strings; inputs: two of strings, broadcast
 *   string_split_count  output: parts i64, like the input; inputs: strings, delimiter u8 [bytes]
 *   string_split   output: strings [..., most]; inputs: strings, delimiter u8 [bytes], most i64; absent parts are
 *                  empty
 *
 * Splitting follows ONNX StringSplit-20: no delimiter splits at runs of white space and drops it at both ends;
 * attribute maxsplit limits the splits (negative: none). Parts are slices of the input's bytes, which live as long.
 */
#include "runtime/exec/strings.h"
#include "runtime/kernels/copy.h"
#include "runtime/kernels/order.h"
#include "runtime/kernels/walk.h"

#include <string.h>

/* Starts a walk of `tensor` as broadcast to `out`; false when it does not fit. */
static bool walk_as(struct lth_walk *walk, struct lth_builtin_tensor tensor, const struct lth_builtin_tensor *out)
{
	int64_t strides[LTH_MAX_RANK];
	if (!tensor.data || tensor.rank > out->rank)
		return false;
	for (uint32_t axis = 0; axis < out->rank; axis++) {
		uint32_t missing = out->rank - tensor.rank;
		int64_t dim = axis < missing ? 1 : tensor.dims[axis - missing];
		if (dim != 1 && dim != out->dims[axis])
			return false;
		strides[axis] = dim == 1 ? 0 : tensor.strides[axis - missing];
	}
	tensor.rank = out->rank;
	tensor.dims = out->dims;
	tensor.strides = strides; /* the walk takes them over as steps */
	lth_walk_init(walk, &tensor, LTH_MAX_RANK);
	return true;
}

int lth_builtin_string_table(struct lth_builtin_call *call)
{
	struct lth_builtin_tensor bytes = lth_builtin_input(call, 0), ends = lth_builtin_input(call, 1);
	struct lth_string *out = call->tensors[0].data;
	int64_t count = lth_tensor_count(call->tensors[0].rank, call->tensors[0].dims), begin = 0;
	if (ends.rank != 1 || ends.dims[0] != count || bytes.rank != 1)
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "string_table takes bytes and an end for each string");
	for (int64_t i = 0; i < count; i++) {
		int64_t end = ((const int64_t *)ends.data)[i];
		if (end < begin || end > bytes.dims[0])
			return lth_builtin_fail(call, LTH_KERNEL_INDEX, "string %lld ends at byte %lld of %lld",
						(long long)i, (long long)end, (long long)bytes.dims[0]);
		out[i] = (struct lth_string){(const char *)bytes.data + begin, (size_t)(end - begin)};
		begin = end;
	}
	return 0;
}

int lth_builtin_string_equal(struct lth_builtin_call *call)
{
	struct lth_walk a, b;
	const struct lth_builtin_tensor *out = &call->tensors[0];
	int64_t count = lth_tensor_count(out->rank, out->dims);
	if (!walk_as(&a, lth_builtin_input(call, 0), out) || !walk_as(&b, lth_builtin_input(call, 1), out))
		return count ? lth_builtin_fail(call, LTH_KERNEL_SHAPE, "strings that do not broadcast") : 0;
	for (int64_t i = 0; i < count; i++, lth_walk_next(&a), lth_walk_next(&b))
		((uint8_t *)out->data)[i] = lth_compare(a.at, b.at, LTH_DTYPE_STRING) == 0;
	return 0;
}

int lth_builtin_string_concat(struct lth_builtin_call *call)
{
	struct lth_walk a, b;
	const struct lth_builtin_tensor *out = &call->tensors[0];
	int64_t count = lth_tensor_count(out->rank, out->dims);
	if (!walk_as(&a, lth_builtin_input(call, 0), out) || !walk_as(&b, lth_builtin_input(call, 1), out))
		return count ? lth_builtin_fail(call, LTH_KERNEL_SHAPE, "strings that do not broadcast") : 0;
	for (int64_t i = 0; i < count; i++, lth_walk_next(&a), lth_walk_next(&b)) {
		const struct lth_string *head = (const void *)a.at, *tail = (const void *)b.at;
		char *text = lth_strings_take(call->strings, head->size + tail->size);
		if (!text)
			return LTH_KERNEL_MEMORY;
		if (head->size)
			memcpy(text, head->data, head->size);
		if (tail->size)
			memcpy(text + head->size, tail->data, tail->size);
		((struct lth_string *)out->data)[i] = (struct lth_string){text, head->size + tail->size};
	}
	return 0;
}

/* ---- splitting ---- */

struct splitter {
	struct lth_string delimiter;
	int64_t most; /* splits; negative: no limit */
};

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Where the delimiter next stands in `text`, or its size. */
static size_t find(const struct lth_string *text, const struct lth_string *delimiter)
{
	for (size_t at = 0; delimiter->size <= text->size && at <= text->size - delimiter->size; at++)
		if (memcmp(text->data + at, delimiter->data, delimiter->size) == 0)
			return at;
	return text->size;
}

static void skip_spaces(struct lth_string *text)
{
	while (text->size && is_space(*text->data)) {
		text->data++;
		text->size--;
	}
}

/* Splits; the first `room` parts go to `out`. Returns how many there are. */
static int64_t split(const struct splitter *splitter, struct lth_string text, struct lth_string *out, int64_t room)
{
	bool spaces = splitter->delimiter.size == 0;
	int64_t count = 0;
	for (bool more = true; more;) {
		if (spaces) {
			skip_spaces(&text);
			if (text.size == 0)
				break;
		}
		size_t length = 0;
		if (splitter->most >= 0 && count >= splitter->most)
			length = text.size;
		else if (spaces)
			while (length < text.size && !is_space(text.data[length]))
				length++;
		else
			length = find(&text, &splitter->delimiter);
		if (count < room)
			out[count] = (struct lth_string){text.data, length};
		count++;
		more = length < text.size;
		if (more) {
			text.data += length + splitter->delimiter.size;
			text.size -= length + splitter->delimiter.size;
		}
	}
	return count;
}

static bool take_splitter(struct lth_builtin_call *call, struct splitter *out)
{
	struct lth_builtin_tensor delimiter = lth_builtin_input(call, 1);
	if (delimiter.rank != 1 || lth_builtin_input(call, 0).dtype != LTH_DTYPE_STRING)
		return false;
	*out = (struct splitter){{delimiter.data, (size_t)delimiter.dims[0]}, lth_builtin_int(call, "maxsplit", -1)};
	return true;
}

int lth_builtin_string_split_count(struct lth_builtin_call *call)
{
	struct lth_builtin_tensor in = lth_builtin_input(call, 0);
	struct splitter splitter;
	struct lth_walk walk;
	if (!take_splitter(call, &splitter))
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "string_split_count takes strings and a delimiter");
	int64_t count = lth_tensor_count(in.rank, in.dims), *out = call->tensors[0].data;
	lth_walk_init(&walk, &in, LTH_MAX_RANK);
	for (int64_t i = 0; i < count; i++, lth_walk_next(&walk))
		out[i] = split(&splitter, *(const struct lth_string *)(const void *)walk.at, NULL, 0);
	return 0;
}

int lth_builtin_string_split(struct lth_builtin_call *call)
{
	struct lth_builtin_tensor in = lth_builtin_input(call, 0), out = call->tensors[0];
	struct splitter splitter;
	struct lth_walk walk;
	if (!take_splitter(call, &splitter) || out.rank != in.rank + 1)
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "string_split takes strings and a delimiter");
	int64_t count = lth_tensor_count(in.rank, in.dims), room = out.dims[in.rank];
	struct lth_string *parts = out.data;
	lth_walk_init(&walk, &in, LTH_MAX_RANK);
	for (int64_t i = 0; i < count; i++, lth_walk_next(&walk), parts += room) {
		int64_t found = split(&splitter, *(const struct lth_string *)(const void *)walk.at, parts, room);
		for (int64_t k = found; k < room; k++)
			parts[k] = (struct lth_string){"", 0};
	}
	return 0;
}
