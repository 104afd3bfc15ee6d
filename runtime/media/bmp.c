/* Windows bitmaps: palettes of 1, 2, 4 and 8 bits, 16, 24 and 32 bits with any masks, run lengths (RLE8, RLE4), rows
 * from either end; headers of every version. A few dozen lines beat a dependency here: there is no library of codecs for
 * this format alone. */
#include "runtime/media/image.h"

#include <stdbool.h>
#include <string.h>

enum { FILE_HEADER = 14, CORE_HEADER = 12, INFO_HEADER = 40 };
enum compression { NONE = 0, RLE8 = 1, RLE4 = 2, BITFIELDS = 3, ALPHA_BITFIELDS = 6 };

struct bitmap {
	const unsigned char *bytes;
	size_t size;
	uint32_t header, bits, compression, colors;
	uint64_t width, height, palette, pixels; /* the last two: offsets */
	uint32_t masks[3]; /* red, green, blue */
	bool from_top;
};

static uint32_t u16(const struct bitmap *b, uint64_t at)
{
	return at + 2 <= b->size ? b->bytes[at] | (uint32_t)b->bytes[at + 1] << 8 : 0;
}

static uint32_t u32(const struct bitmap *b, uint64_t at)
{
	return u16(b, at) | u16(b, at + 2) << 16;
}

static bool read_info(struct bitmap *b)
{
	bool core = b->header == CORE_HEADER;
	int64_t width = core ? (int64_t)u16(b, 18) : (int32_t)u32(b, 18);
	int64_t height = core ? (int64_t)u16(b, 20) : (int32_t)u32(b, 22);
	if ((!core && b->header < INFO_HEADER) || b->size < (uint64_t)FILE_HEADER + b->header || width <= 0 || height == 0)
		return false;
	b->from_top = height < 0;
	b->width = (uint64_t)width;
	b->height = (uint64_t)(height < 0 ? -height : height);
	b->bits = core ? u16(b, 24) : u16(b, 28);
	b->compression = core ? NONE : u32(b, 30);
	b->colors = core ? 0 : u32(b, 46);
	b->pixels = u32(b, 10);
	b->palette = (uint64_t)FILE_HEADER + b->header;
	if (b->bits <= 8 && (b->colors == 0 || b->colors > 1u << b->bits))
		b->colors = 1u << b->bits;
	return true;
}

/* Masks of 16 and 32 bits: the usual ones, or those behind the header. */
static bool read_masks(struct bitmap *b)
{
	static const uint32_t usual16[3] = {0x7C00, 0x03E0, 0x001F}, usual32[3] = {0xFF0000, 0x00FF00, 0x0000FF};
	memcpy(b->masks, b->bits == 16 ? usual16 : usual32, sizeof(b->masks));
	bool given = b->compression == BITFIELDS || b->compression == ALPHA_BITFIELDS;
	for (uint32_t k = 0; given && k < 3; k++) {
		b->masks[k] = u32(b, FILE_HEADER + INFO_HEADER + 4 * k);
		if (b->masks[k] == 0)
			return false;
	}
	return true;
}

static bool supported(const struct bitmap *b)
{
	switch (b->compression) {
	case NONE:
		return b->bits == 1 || b->bits == 2 || b->bits == 4 || b->bits == 8 || b->bits == 16 || b->bits == 24 ||
		       b->bits == 32;
	case RLE8:
		return b->bits == 8 && !b->from_top;
	case RLE4:
		return b->bits == 4 && !b->from_top;
	case BITFIELDS:
	case ALPHA_BITFIELDS:
		return b->bits == 16 || b->bits == 32;
	default:
		return false;
	}
}

/* Blue, green and red of a palette's entry; black beyond it. */
static void put_color(const struct bitmap *b, uint32_t index, unsigned char *out)
{
	uint64_t at = b->palette + (uint64_t)index * (b->header == CORE_HEADER ? 3 : 4);
	bool there = index < b->colors && at + 3 <= b->size;
	for (uint32_t k = 0; k < 3; k++)
		out[k] = there ? b->bytes[at + 2 - k] : 0;
}

/* The field of a mask, brought to 8 bits. */
static unsigned char field(uint32_t value, uint32_t mask)
{
	uint32_t shift = (uint32_t)__builtin_ctz(mask), most = mask >> shift;
	return (unsigned char)(((uint64_t)((value & mask) >> shift) * 255 * 2 + most) / (2 * (uint64_t)most));
}

static void put_pixel(const struct bitmap *b, uint64_t row, size_t x, unsigned char *out)
{
	const unsigned char *bytes = b->bytes + row;
	if (b->bits <= 8) {
		uint32_t shift = 8 - b->bits - (uint32_t)(x * b->bits % 8);
		put_color(b, bytes[x * b->bits / 8] >> shift & ((1u << b->bits) - 1), out);
	} else if (b->bits == 24) {
		for (uint32_t k = 0; k < 3; k++)
			out[k] = bytes[3 * x + 2 - k];
	} else {
		uint32_t value = b->bits == 16 ? u16(b, row + 2 * x) : u32(b, row + 4 * x);
		for (uint32_t k = 0; k < 3; k++)
			out[k] = field(value, b->masks[k]);
	}
}

static unsigned char *row_of(const struct bitmap *b, struct lth_image_job *job, size_t y)
{
	return job->rgb + (b->from_top ? y : job->height - 1 - y) * job->width * 3;
}

static uint64_t row_bytes(const struct bitmap *b)
{
	return (b->width * b->bits + 31) / 32 * 4;
}

static enum lathe_media_code read_rows(const struct bitmap *b, struct lth_image_job *job)
{
	uint64_t stride = row_bytes(b);
	for (size_t y = 0; y < job->height; y++)
		for (size_t x = 0; x < job->width; x++)
			put_pixel(b, b->pixels + y * stride, x, row_of(b, job, y) + 3 * x);
	return LATHE_MEDIA_OK;
}

/* Run lengths: (count, index) runs; (0, 0) ends a row, (0, 1) the image, (0, 2) moves, (0, n) n indices as they are,
 * padded to two bytes. What is passed over stays black. */
static enum lathe_media_code read_runs(const struct bitmap *b, struct lth_image_job *job)
{
	size_t x = 0, y = 0;
	for (uint64_t at = b->pixels; at + 2 <= b->size && y < job->height;) {
		uint32_t count = b->bytes[at], code = b->bytes[at + 1];
		at += 2;
		if (count == 0 && code == 1)
			return LATHE_MEDIA_OK;
		if (count == 0 && code == 0) {
			x = 0;
			y++;
			continue;
		}
		if (count == 0 && code == 2) {
			if (at + 2 > b->size)
				return LATHE_MEDIA_BROKEN;
			x += b->bytes[at];
			y += b->bytes[at + 1];
			at += 2;
			continue;
		}
		uint32_t length = count ? count : code, bytes = b->bits == 4 ? (length + 1) / 2 : length;
		if (count == 0 && bytes > b->size - at)
			return LATHE_MEDIA_BROKEN;
		for (uint32_t k = 0; k < length && x < job->width; k++, x++) {
			uint32_t byte = count ? code : b->bytes[at + (b->bits == 4 ? k / 2 : k)];
			put_color(b, b->bits == 8 ? byte : k % 2 ? byte & 15 : byte >> 4, row_of(b, job, y) + 3 * x);
		}
		if (count == 0)
			at += (bytes + 1) & ~1u;
	}
	return y < job->height ? LATHE_MEDIA_BROKEN : LATHE_MEDIA_OK;
}

enum lathe_media_code lth_image_bmp(struct lth_image_job *job)
{
	struct bitmap b = {.bytes = job->bytes, .size = job->size};
	b.header = u32(&b, FILE_HEADER);
	if (!read_info(&b) || !supported(&b) || !read_masks(&b))
		return LATHE_MEDIA_BROKEN;
	bool runs = b.compression == RLE8 || b.compression == RLE4;
	if (!runs && (b.pixels > b.size || b.height > (b.size - b.pixels) / row_bytes(&b)))
		return LATHE_MEDIA_BROKEN; /* before any memory is asked for */
	enum lathe_media_code code = lth_image_begin(job, b.width, b.height);
	if (code != LATHE_MEDIA_OK)
		return code;
	return runs ? read_runs(&b, job) : read_rows(&b, job);
}
