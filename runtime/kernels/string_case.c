/* string_normalize: stop words taken out, letters changed (ONNX StringNormalizer-10).
 *
 *   outputs: strings [n] or [1, n], extent; inputs: strings of the same rank, stop words: bytes u8, ends i64 (as in
 *   string_table)
 *   attributes: case_change_action (NONE, LOWER, UPPER), is_case_sensitive
 *
 * When nothing is left, the result is one empty string. Letters are those of Unicode, one code point at a time, by
 * the C library's tables for C.UTF-8; where that locale is missing, those of ASCII. Bytes that are not UTF-8 stay. */
#include "runtime/exec/pool.h"
#include "runtime/exec/strings.h"
#include "runtime/kernels/copy.h"
#include "runtime/kernels/order.h"
#include "runtime/kernels/walk.h"

#include <locale.h>
#include <string.h>
#include <wctype.h>

enum change { KEEP, LOWER, UPPER };

struct normalizer {
	struct lth_builtin_call *call;
	locale_t locale; /* (locale_t)0: ASCII only */
	enum change change;
	bool sensitive;
	struct lth_string *stops; /* lower case unless sensitive */
	int64_t num_stops;
};

/* The code point at `text` and its length; a byte that begins none is returned as length 1, point UINT32_MAX. */
static size_t decode(const unsigned char *text, size_t size, uint32_t *out_point)
{
	static const unsigned char heads[] = {0, 0xC0, 0xE0, 0xF0}, masks[] = {0x80, 0xE0, 0xF0, 0xF8};
	static const uint32_t least[] = {0, 0x80, 0x800, 0x10000}; /* shorter points in more bytes are no UTF-8 */
	for (size_t length = 1; length <= 4 && length <= size; length++) {
		if ((text[0] & masks[length - 1]) != heads[length - 1])
			continue;
		uint32_t point = text[0] & (uint32_t)(unsigned char)~masks[length - 1];
		size_t k = 1;
		for (; k < length && (text[k] & 0xC0) == 0x80; k++)
			point = point << 6 | (text[k] & 0x3Fu);
		if (k < length || point < least[length - 1])
			break;
		*out_point = point;
		return length;
	}
	*out_point = UINT32_MAX;
	return 1;
}

static size_t encode(uint32_t point, char *out)
{
	size_t length = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
	static const unsigned char heads[] = {0, 0xC0, 0xE0, 0xF0};
	for (size_t k = length; k-- > 1; point >>= 6)
		out[k] = (char)(0x80 | (point & 0x3F));
	out[0] = (char)(heads[length - 1] | point);
	return length;
}

static uint32_t change_point(const struct normalizer *n, uint32_t point, enum change change)
{
	if (n->locale)
		return (uint32_t)(change == LOWER ? towlower_l((wint_t)point, n->locale)
						  : towupper_l((wint_t)point, n->locale));
	if (change == LOWER)
		return point >= 'A' && point <= 'Z' ? point + 32 : point;
	return point >= 'a' && point <= 'z' ? point - 32 : point;
}

/* Changed letters in bytes of the run; a point may grow from two bytes to three. False when out of memory. */
static bool changed(const struct normalizer *n, const struct lth_string *from, enum change change,
		    struct lth_string *out)
{
	char *text = lth_strings_take(n->call->strings, from->size * 3 / 2 + 4);
	size_t size = 0;
	if (!text)
		return false;
	for (size_t at = 0; at < from->size;) {
		uint32_t point;
		size_t length = decode((const unsigned char *)from->data + at, from->size - at, &point);
		if (point == UINT32_MAX)
			text[size++] = from->data[at];
		else
			size += encode(change_point(n, point, change), text + size);
		at += length;
	}
	*out = (struct lth_string){text, size};
	return true;
}

static bool is_stop(const struct normalizer *n, const struct lth_string *word)
{
	for (int64_t i = 0; i < n->num_stops; i++)
		if (lth_compare(word, &n->stops[i], LTH_DTYPE_STRING) == 0)
			return true;
	return false;
}

static int load_stops(struct normalizer *n, const struct lth_builtin_tensor *bytes,
		      const struct lth_builtin_tensor *ends)
{
	int64_t begin = 0;
	for (int64_t i = 0; i < n->num_stops; i++) {
		int64_t end = ((const int64_t *)ends->data)[i];
		if (end < begin || end > bytes->dims[0])
			return lth_builtin_fail(n->call, LTH_KERNEL_INDEX, "a stop word outside the bytes");
		n->stops[i] = (struct lth_string){(const char *)bytes->data + begin, (size_t)(end - begin)};
		if (!n->sensitive && !changed(n, &n->stops[i], LOWER, &n->stops[i]))
			return LTH_KERNEL_MEMORY;
		begin = end;
	}
	return 0;
}

static int run(struct normalizer *n, const struct lth_builtin_tensor *in)
{
	struct lth_walk walk;
	struct lth_string *out = n->call->tensors[0].data;
	int64_t total = lth_tensor_count(in->rank, in->dims), count = 0;
	lth_walk_init(&walk, in, LTH_MAX_RANK);
	for (int64_t i = 0; i < total; i++, lth_walk_next(&walk)) {
		const struct lth_string *word = (const void *)walk.at;
		struct lth_string plain = *word;
		if (!n->sensitive && n->num_stops && !changed(n, word, LOWER, &plain))
			return LTH_KERNEL_MEMORY;
		if (is_stop(n, &plain))
			continue;
		out[count] = *word;
		if (n->change != KEEP && !changed(n, word, n->change, &out[count]))
			return LTH_KERNEL_MEMORY;
		count++;
	}
	if (count == 0)
		out[count++] = (struct lth_string){"", 0};
	*(int64_t *)n->call->tensors[1].data = count;
	return 0;
}

int lth_builtin_string_normalize(struct lth_builtin_call *call)
{
	struct lth_builtin_tensor in = lth_builtin_input(call, 0), bytes = lth_builtin_input(call, 1);
	struct lth_builtin_tensor ends = lth_builtin_input(call, 2);
	char action[8] = "NONE";
	const struct lth_builtin_tensor *out = &call->tensors[0];
	int64_t total = lth_tensor_count(in.rank, in.dims), room = lth_tensor_count(out->rank, out->dims);
	if (call->num_outputs != 2 || in.rank < 1 || bytes.rank != 1 || ends.rank != 1 || room < total || room < 1)
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "string_normalize takes strings and stop words");
	lth_builtin_text_attribute(call, "case_change_action", action, sizeof(action));
	struct normalizer n = {.call = call,
			       .change = *action == 'L' ? LOWER : *action == 'U' ? UPPER : KEEP,
			       .sensitive = lth_builtin_int(call, "is_case_sensitive", 0) != 0,
			       .num_stops = ends.dims[0]};
	int64_t size = n.num_stops * (int64_t)sizeof(*n.stops);
	n.stops = lth_pool_take(call->pool, size);
	if (!n.stops)
		return LTH_KERNEL_MEMORY;
	n.locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	int error = load_stops(&n, &bytes, &ends);
	if (!error)
		error = run(&n, &in);
	if (n.locale)
		freelocale(n.locale);
	lth_pool_give(call->pool, n.stops, size);
	return error;
}
