/* JPEG 2000 by OpenJPEG: the boxed format and the bare codestream; grey, RGB and sYCC, components of any precision and
 * subsampling. */
#include "runtime/media/image.h"

#include <openjpeg.h>
#include <stdbool.h>
#include <string.h>

enum { MAX_COMPONENTS = 4 }; /* each costs four bytes a pixel before anything is known of it */

struct file {
	const struct lth_image_job *job;
	size_t at;
};

static OPJ_SIZE_T read_bytes(void *out, OPJ_SIZE_T size, void *context)
{
	struct file *file = context;
	size_t left = file->job->size - file->at;
	if (left == 0)
		return (OPJ_SIZE_T)-1;
	size_t count = size < left ? size : left;
	memcpy(out, file->job->bytes + file->at, count);
	file->at += count;
	return count;
}

static OPJ_BOOL seek(OPJ_OFF_T offset, void *context)
{
	struct file *file = context;
	if (offset < 0 || (uint64_t)offset > file->job->size)
		return OPJ_FALSE;
	file->at = (size_t)offset;
	return OPJ_TRUE;
}

static OPJ_OFF_T skip(OPJ_OFF_T count, void *context)
{
	struct file *file = context;
	OPJ_OFF_T left = (OPJ_OFF_T)(file->job->size - file->at);
	if (count < 0 || left == 0)
		return -1;
	if (count > left)
		count = left;
	file->at += (size_t)count;
	return count;
}

static opj_stream_t *open_stream(struct file *file)
{
	opj_stream_t *stream = opj_stream_create(64 * 1024, OPJ_TRUE);
	if (!stream)
		return NULL;
	opj_stream_set_user_data(stream, file, NULL);
	opj_stream_set_user_data_length(stream, file->job->size);
	opj_stream_set_read_function(stream, read_bytes);
	opj_stream_set_seek_function(stream, seek);
	opj_stream_set_skip_function(stream, skip);
	return stream;
}

/* A component's sample for pixel (x, y), in 8 bits. */
static int sample(const opj_image_comp_t *component, size_t x, size_t y)
{
	size_t column = x / component->dx, row = y / component->dy;
	column = column < component->w ? column : component->w - 1;
	row = row < component->h ? row : component->h - 1;
	int64_t value = component->data[row * component->w + column];
	if (component->sgnd)
		value += (int64_t)1 << (component->prec - 1);
	value = component->prec > 8 ? value >> (component->prec - 8) : value << (8 - component->prec);
	return value < 0 ? 0 : value > 255 ? 255 : (int)value;
}

static void put_pixel(const opj_image_t *image, bool ycc, size_t x, size_t y, unsigned char *out)
{
	int first = sample(&image->comps[0], x, y);
	if (image->numcomps < 3) {
		memset(out, first, 3);
		return;
	}
	int second = sample(&image->comps[1], x, y), third = sample(&image->comps[2], x, y);
	if (!ycc) {
		out[0] = (unsigned char)first;
		out[1] = (unsigned char)second;
		out[2] = (unsigned char)third;
		return;
	}
	second -= 128;
	third -= 128;
	out[0] = lth_image_clamp(first + ((91881 * third + 32768) >> 16));
	out[1] = lth_image_clamp(first - ((22554 * second + 46802 * third + 32768) >> 16));
	out[2] = lth_image_clamp(first + ((116130 * second + 32768) >> 16));
}

static bool components_fit(const opj_image_t *image)
{
	for (OPJ_UINT32 k = 0; k < image->numcomps && k < 3; k++) {
		const opj_image_comp_t *component = &image->comps[k];
		if (!component->data || !component->w || !component->h || !component->dx || !component->dy ||
		    component->prec < 1 || component->prec > 31)
			return false;
	}
	return true;
}

static enum lathe_media_code decode(struct lth_image_job *job, opj_codec_t *codec, opj_stream_t *stream,
				    opj_image_t **out_image)
{
	opj_dparameters_t parameters;
	opj_set_default_decoder_parameters(&parameters);
	if (!opj_setup_decoder(codec, &parameters) || !opj_read_header(stream, codec, out_image))
		return LATHE_MEDIA_BROKEN;
	const opj_image_t *image = *out_image;
	if (image->numcomps < 1 || image->numcomps > MAX_COMPONENTS || image->x1 <= image->x0 || image->y1 <= image->y0)
		return LATHE_MEDIA_BROKEN;
	enum lathe_media_code code = lth_image_begin(job, image->x1 - image->x0, image->y1 - image->y0);
	if (code != LATHE_MEDIA_OK)
		return code;
	if (!opj_decode(codec, stream, *out_image) || !opj_end_decompress(codec, stream) || !components_fit(image))
		return LATHE_MEDIA_BROKEN;
	bool ycc = image->color_space == OPJ_CLRSPC_SYCC;
	for (size_t y = 0; y < job->height; y++)
		for (size_t x = 0; x < job->width; x++)
			put_pixel(image, ycc, x, y, job->rgb + (y * job->width + x) * 3);
	return LATHE_MEDIA_OK;
}

enum lathe_media_code lth_image_jp2(struct lth_image_job *job)
{
	struct file file = {.job = job};
	opj_codec_t *codec = opj_create_decompress(job->bytes[0] == 0xff ? OPJ_CODEC_J2K : OPJ_CODEC_JP2);
	opj_stream_t *stream = codec ? open_stream(&file) : NULL;
	opj_image_t *image = NULL;
	enum lathe_media_code code = stream ? decode(job, codec, stream, &image) : LATHE_MEDIA_MEMORY;
	if (image)
		opj_image_destroy(image);
	if (stream)
		opj_stream_destroy(stream);
	if (codec)
		opj_destroy_codec(codec);
	return code;
}
