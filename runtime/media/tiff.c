/* TIFF by libtiff, first page, through its RGBA interface, which takes every layout that the library knows. */
#include "runtime/media/image.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <tiffio.h>

enum { MAX_ALLOCATION = 1 << 30 };

struct file {
	const struct lth_image_job *job;
	uint64_t at;
};

static tmsize_t read_bytes(thandle_t handle, void *out, tmsize_t size)
{
	struct file *file = handle;
	uint64_t left = file->at < file->job->size ? file->job->size - file->at : 0;
	size_t count = size < 0 ? 0 : (uint64_t)size < left ? (size_t)size : (size_t)left;
	memcpy(out, file->job->bytes + (left ? file->at : 0), count);
	file->at += count;
	return (tmsize_t)count;
}

static tmsize_t write_bytes(thandle_t handle, void *in, tmsize_t size)
{
	(void)handle;
	(void)in;
	(void)size;
	return 0;
}

static toff_t seek(thandle_t handle, toff_t offset, int whence)
{
	struct file *file = handle;
	uint64_t base = whence == SEEK_CUR ? file->at : whence == SEEK_END ? file->job->size : 0;
	file->at = base + offset; /* reads behind the end are empty; a wrap is a place like any other */
	return file->at;
}

static int do_nothing(thandle_t handle)
{
	(void)handle;
	return 0;
}

static toff_t size_of(thandle_t handle)
{
	return ((struct file *)handle)->job->size;
}

static int be_silent(TIFF *tiff, void *data, const char *module, const char *format, va_list arguments)
{
	(void)tiff;
	(void)data;
	(void)module;
	(void)format;
	(void)arguments;
	return 1;
}

static TIFF *open_file(struct file *file)
{
	TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
	if (!options)
		return NULL;
	TIFFOpenOptionsSetErrorHandlerExtR(options, be_silent, NULL);
	TIFFOpenOptionsSetWarningHandlerExtR(options, be_silent, NULL);
	TIFFOpenOptionsSetMaxSingleMemAlloc(options, MAX_ALLOCATION);
	TIFF *tiff = TIFFClientOpenExt("image", "rm", file, read_bytes, write_bytes, seek, do_nothing, size_of, NULL,
				       NULL, options);
	TIFFOpenOptionsFree(options);
	return tiff;
}

static enum lathe_media_code decode(TIFF *tiff, struct lth_image_job *job)
{
	uint32_t width = 0, height = 0;
	char reason[1024];
	if (!TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width) || !TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height) ||
	    !TIFFRGBAImageOK(tiff, reason))
		return LATHE_MEDIA_BROKEN;
	enum lathe_media_code code = lth_image_begin(job, width, height);
	if (code != LATHE_MEDIA_OK)
		return code;
	size_t pixels = job->width * job->height;
	uint32_t *raster = calloc(pixels, sizeof(*raster));
	if (!raster)
		return LATHE_MEDIA_MEMORY;
	if (!TIFFReadRGBAImageOriented(tiff, width, height, raster, ORIENTATION_TOPLEFT, 1))
		code = LATHE_MEDIA_BROKEN;
	for (size_t i = 0; code == LATHE_MEDIA_OK && i < pixels; i++) {
		job->rgb[3 * i] = (unsigned char)TIFFGetR(raster[i]);
		job->rgb[3 * i + 1] = (unsigned char)TIFFGetG(raster[i]);
		job->rgb[3 * i + 2] = (unsigned char)TIFFGetB(raster[i]);
	}
	free(raster);
	return code;
}

enum lathe_media_code lth_image_tiff(struct lth_image_job *job)
{
	struct file file = {.job = job};
	TIFF *tiff = open_file(&file);
	if (!tiff)
		return LATHE_MEDIA_BROKEN;
	enum lathe_media_code code = decode(tiff, job);
	TIFFClose(tiff);
	return code;
}
