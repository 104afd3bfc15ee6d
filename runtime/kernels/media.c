/* What liblathe-media computes: images and regular expressions.
 *
 *   image_decode  outputs: pixels string [] (rows from the top, channels last), size i64 [2] (height, width); input: the
 *                 file's bytes u8 [n]; attribute pixel_format (RGB, BGR, Grayscale). Bytes that cannot be decoded give an
 *                 empty image, as ONNX ImageDecoder-20 says. One string holds the pixels since their number is known
 *                 only when they are there: string_bytes then makes the tensor.
 *   string_bytes  output: u8 of any shape; input: a string [] of as many bytes
 *   regex_full_match  output: bool, like the input; inputs: strings, pattern u8 [bytes] (ONNX RegexFullMatch-20)
 */
#include "runtime/exec/pool.h"
#include "runtime/exec/strings.h"
#include "runtime/kernels/copy.h"
#include "runtime/kernels/walk.h"
#include "runtime/media/media.h"

#include <string.h>

static const struct lathe_media_api *open_media(struct lth_builtin_call *call)
{
	char words[LATHE_MEDIA_MESSAGE] = "linked without it";
	const struct lathe_media_api *api = lth_media_open ? lth_media_open(words) : NULL;
	if (!api)
		lth_builtin_fail(call, LTH_KERNEL_LIBRARY, "%s", words);
	return api;
}

static int media_error(struct lth_builtin_call *call, enum lathe_media_code code, const char *message)
{
	if (code == LATHE_MEDIA_MEMORY)
		return LTH_KERNEL_MEMORY;
	return lth_builtin_fail(call, code == LATHE_MEDIA_LIMIT ? LTH_KERNEL_LIMIT : LTH_KERNEL_SHAPE, "%s", message);
}

static void *take(void *strings, size_t bytes)
{
	return lth_strings_take(strings, bytes);
}

static enum lathe_media_pixels wanted_pixels(const struct lth_builtin_call *call)
{
	char format[16];
	if (!lth_builtin_text_attribute(call, "pixel_format", format, sizeof(format)))
		return LATHE_MEDIA_RGB;
	return strcmp(format, "Grayscale") == 0 ? LATHE_MEDIA_GRAYSCALE
	       : strcmp(format, "BGR") == 0	? LATHE_MEDIA_BGR
						: LATHE_MEDIA_RGB;
}

/* Decodes dense bytes. */
static int decode(struct lth_builtin_call *call, const struct lathe_media_api *api, const void *bytes, size_t size)
{
	struct lathe_media_image image = {.bytes = bytes, .size = size, .pixels_are = wanted_pixels(call), .take = take,
					  .context = call->strings};
	struct lth_string *pixels = call->tensors[0].data;
	int64_t *extent = call->tensors[1].data;
	enum lathe_media_code code = api->decode(&image);
	if (code != LATHE_MEDIA_OK && code != LATHE_MEDIA_BROKEN)
		return media_error(call, code, image.message);
	*pixels = (struct lth_string){"", 0};
	extent[0] = extent[1] = 0;
	if (code == LATHE_MEDIA_OK) {
		int64_t channels = image.pixels_are == LATHE_MEDIA_GRAYSCALE ? 1 : 3;
		*pixels = (struct lth_string){(const char *)image.pixels,
					      (size_t)(image.height * image.width * channels)};
		extent[0] = image.height;
		extent[1] = image.width;
	}
	return 0;
}

int lth_builtin_image_decode(struct lth_builtin_call *call)
{
	struct lth_builtin_tensor in = lth_builtin_input(call, 0);
	if (in.rank != 1 || in.dtype != LTH_DTYPE_U8 || call->num_outputs < 2 || !call->tensors[0].data ||
	    !call->tensors[1].data || call->tensors[1].rank != 1 || call->tensors[1].dims[0] != 2)
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "image_decode takes bytes and gives pixels and a size");
	const struct lathe_media_api *api = open_media(call);
	if (!api)
		return LTH_KERNEL_LIBRARY;
	if (lth_tensor_is_dense(1, in.dims, in.strides))
		return decode(call, api, in.data, (size_t)in.dims[0]);
	const int64_t one = 1;
	struct lth_builtin_tensor dense = in;
	dense.strides = &one;
	dense.data = lth_pool_take(call->pool, in.dims[0]);
	if (!dense.data)
		return LTH_KERNEL_MEMORY;
	lth_copy_tensor(&dense, &in, NULL);
	int error = decode(call, api, dense.data, (size_t)in.dims[0]);
	lth_pool_give(call->pool, dense.data, in.dims[0]);
	return error;
}

int lth_builtin_string_bytes(struct lth_builtin_call *call)
{
	struct lth_builtin_tensor in = lth_builtin_input(call, 0), out = call->tensors[0];
	if (in.rank != 0 || in.dtype != LTH_DTYPE_STRING || out.dtype != LTH_DTYPE_U8)
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "string_bytes takes one string");
	const struct lth_string *text = in.data;
	int64_t count = lth_tensor_count(out.rank, out.dims);
	if ((uint64_t)count != text->size)
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "%zu bytes for a tensor of %lld", text->size,
					(long long)count);
	if (count)
		memcpy(out.data, text->data, text->size);
	return 0;
}

int lth_builtin_regex_full_match(struct lth_builtin_call *call)
{
	struct lth_builtin_tensor in = lth_builtin_input(call, 0), pattern = lth_builtin_input(call, 1);
	char message[LATHE_MEDIA_MESSAGE] = "";
	struct lathe_regex *regex;
	struct lth_walk walk;
	if (in.dtype != LTH_DTYPE_STRING || pattern.rank != 1 || pattern.dtype != LTH_DTYPE_U8 ||
	    !lth_tensor_is_dense(1, pattern.dims, pattern.strides))
		return lth_builtin_fail(call, LTH_KERNEL_SHAPE, "regex_full_match takes strings and a pattern");
	const struct lathe_media_api *api = open_media(call);
	if (!api)
		return LTH_KERNEL_LIBRARY;
	enum lathe_media_code code = api->regex_open(pattern.data, (size_t)pattern.dims[0], &regex, message);
	if (code != LATHE_MEDIA_OK)
		return media_error(call, code, message);
	int64_t count = lth_tensor_count(in.rank, in.dims);
	uint8_t *out = call->tensors[0].data;
	lth_walk_init(&walk, &in, LTH_MAX_RANK);
	for (int64_t i = 0; i < count && code == LATHE_MEDIA_OK; i++, lth_walk_next(&walk)) {
		const struct lth_string *text = (const void *)walk.at;
		int matches = 0;
		code = api->regex_match(regex, text->data, text->size, &matches, message);
		out[i] = (uint8_t)matches;
	}
	api->regex_close(&regex);
	return code == LATHE_MEDIA_OK ? 0 : media_error(call, code, message);
}
