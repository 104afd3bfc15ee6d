/* From bytes to pixels: the table of formats, the limits, and what is made of RGB. */
#include "runtime/media/image.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* A file of a few bytes may claim any size: these keep the memory of a decoder within some GB. */
enum { MAX_SIDE = 1 << 20, MAX_PIXELS = 1 << 27 };

/* The first bytes of each format: at `offset`, `length` of `magic`. */
static const struct {
	const char *magic;
	size_t length, offset;
	lth_image_decoder decode;
} formats[] = {
	{"\xff\xd8\xff", 3, 0, lth_image_jpeg},
	{"\x89PNG\r\n\x1a\n", 8, 0, lth_image_png},
	{"II*\0", 4, 0, lth_image_tiff},
	{"MM\0*", 4, 0, lth_image_tiff},
	{"II+\0", 4, 0, lth_image_tiff}, /* BigTIFF */
	{"MM\0+", 4, 0, lth_image_tiff},
	{"WEBP", 4, 8, lth_image_webp},
	{"\0\0\0\x0cjP  \r\n\x87\n", 12, 0, lth_image_jp2},
	{"\xff\x4f\xff\x51", 4, 0, lth_image_jp2}, /* the bare codestream */
	{"BM", 2, 0, lth_image_bmp},
	{"P", 1, 0, lth_image_pnm},
};

enum lathe_media_code lth_image_begin(struct lth_image_job *job, uint64_t width, uint64_t height)
{
	if (width == 0 || height == 0)
		return LATHE_MEDIA_BROKEN;
	if (width > MAX_SIDE || height > MAX_SIDE || width * height > MAX_PIXELS) {
		snprintf(job->image->message, sizeof(job->image->message), "an image of %llu x %llu, at most %d pixels",
			 (unsigned long long)width, (unsigned long long)height, (int)MAX_PIXELS);
		return LATHE_MEDIA_LIMIT;
	}
	size_t bytes = (size_t)(width * height * 3);
	job->rgb = job->image->take(job->image->context, bytes);
	if (!job->rgb)
		return LATHE_MEDIA_MEMORY;
	memset(job->rgb, 0, bytes); /* what a decoder leaves out must not be another's data */
	job->width = (size_t)width;
	job->height = (size_t)height;
	return LATHE_MEDIA_OK;
}

/* ITU-R 601-2 luma in 16 bits of fraction, rounded: the values that Pillow gives. */
static void to_grey(unsigned char *rgb, size_t pixels)
{
	for (size_t i = 0; i < pixels; i++) {
		unsigned sum = rgb[3 * i] * 19595u + rgb[3 * i + 1] * 38470u + rgb[3 * i + 2] * 7471u + 0x8000u;
		rgb[i] = (unsigned char)(sum >> 16);
	}
}

static void swap_red_and_blue(unsigned char *rgb, size_t pixels)
{
	for (size_t i = 0; i < pixels; i++) {
		unsigned char red = rgb[3 * i];
		rgb[3 * i] = rgb[3 * i + 2];
		rgb[3 * i + 2] = red;
	}
}

static bool is(const struct lth_image_job *job, size_t format)
{
	size_t offset = formats[format].offset, length = formats[format].length;
	return job->size >= offset + length && memcmp(job->bytes + offset, formats[format].magic, length) == 0;
}

enum lathe_media_code lth_image_decode(struct lathe_media_image *image)
{
	struct lth_image_job job = {.bytes = image->bytes, .size = image->size, .image = image};
	enum lathe_media_code code = LATHE_MEDIA_BROKEN;
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (is(&job, i)) {
			code = formats[i].decode(&job);
			break;
		}
	if (code != LATHE_MEDIA_OK)
		return code;
	if (image->pixels_are == LATHE_MEDIA_GRAYSCALE)
		to_grey(job.rgb, job.width * job.height);
	else if (image->pixels_are == LATHE_MEDIA_BGR)
		swap_red_and_blue(job.rgb, job.width * job.height);
	image->height = (int64_t)job.height;
	image->width = (int64_t)job.width;
	image->pixels = job.rgb;
	return LATHE_MEDIA_OK;
}
