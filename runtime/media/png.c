/* PNG by libpng: every type as RGB of 8 bits, transparency dropped. */
#include "runtime/media/image.h"

#include <png.h>
#include <string.h>

struct reader {
	struct lth_image_job *job;
	size_t at;
	enum lathe_media_code code;
};

static void read_bytes(png_structp png, png_bytep out, size_t size)
{
	struct reader *reader = png_get_io_ptr(png);
	if (size > reader->job->size - reader->at)
		png_error(png, "end of file");
	memcpy(out, reader->job->bytes + reader->at, size);
	reader->at += size;
}

static void give_up(png_structp png, png_const_charp message)
{
	(void)message;
	png_longjmp(png, 1);
}

static void ignore(png_structp png, png_const_charp message)
{
	(void)png;
	(void)message;
}

static void decode(png_structp png, png_infop info, struct reader *reader)
{
	struct lth_image_job *job = reader->job;
	png_set_read_fn(png, reader, read_bytes);
	png_set_chunk_malloc_max(png, 8 << 20);
	png_read_info(png, info);
	reader->code = lth_image_begin(job, png_get_image_width(png, info), png_get_image_height(png, info));
	if (reader->code != LATHE_MEDIA_OK)
		return;
	reader->code = LATHE_MEDIA_BROKEN; /* until the last row is there */
	png_set_expand(png);
	png_set_scale_16(png);
	png_set_strip_alpha(png);
	png_set_gray_to_rgb(png);
	int passes = png_set_interlace_handling(png);
	png_read_update_info(png, info);
	if (png_get_rowbytes(png, info) != job->width * 3)
		return;
	for (int pass = 0; pass < passes; pass++)
		for (size_t y = 0; y < job->height; y++)
			png_read_row(png, job->rgb + y * job->width * 3, NULL);
	png_read_end(png, NULL);
	reader->code = LATHE_MEDIA_OK;
}

enum lathe_media_code lth_image_png(struct lth_image_job *job)
{
	struct reader reader = {.job = job, .code = LATHE_MEDIA_BROKEN};
	png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, give_up, ignore);
	png_infop info = png ? png_create_info_struct(png) : NULL;
	if (!info) {
		png_destroy_read_struct(&png, NULL, NULL);
		return LATHE_MEDIA_MEMORY;
	}
	if (setjmp(png_jmpbuf(png)) == 0)
		decode(png, info, &reader);
	png_destroy_read_struct(&png, &info, NULL);
	return *(volatile enum lathe_media_code *)&reader.code;
}
