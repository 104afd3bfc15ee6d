/* JPEG by libjpeg-turbo, with its default transforms ("fancy" upsampling of chroma), which the operator's specification
 * names. A stream that ends early is broken; other things that the library only warns of pass, as in Pillow. */
#include "runtime/media/image.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include <jerror.h>

enum { MAX_SCANS = 100 }; /* of a progressive image: each costs a pass over all of it, for a few bytes */

struct decoder {
	struct jpeg_decompress_struct jpeg;
	struct jpeg_error_mgr errors;
	struct jpeg_progress_mgr progress;
	jmp_buf failed;
	enum lathe_media_code code;
	unsigned char *row; /* of an image in ink */
};

static void give_up(j_common_ptr jpeg)
{
	struct decoder *d = jpeg->client_data;
	d->code = d->errors.msg_code == JERR_OUT_OF_MEMORY ? LATHE_MEDIA_MEMORY : LATHE_MEDIA_BROKEN;
	longjmp(d->failed, 1);
}

static void warn(j_common_ptr jpeg, int level)
{
	if (level < 0 && jpeg->err->msg_code == JWRN_JPEG_EOF)
		give_up(jpeg);
}

static void count_scans(j_common_ptr jpeg)
{
	struct decoder *d = jpeg->client_data;
	if (d->jpeg.input_scan_number > MAX_SCANS)
		give_up(jpeg);
}

static void say_nothing(j_common_ptr jpeg)
{
	(void)jpeg;
}

/* Adobe's four inks are stored as complements, so a product with black gives the light that is left. */
static void row_from_inks(const struct decoder *d, const struct lth_image_job *job, unsigned char *out)
{
	bool inverted = d->jpeg.saw_Adobe_marker;
	for (size_t x = 0; x < job->width; x++) {
		const unsigned char *ink = d->row + 4 * x;
		unsigned black = inverted ? ink[3] : 255u - ink[3];
		for (int k = 0; k < 3; k++)
			out[3 * x + (size_t)k] = lth_image_ink(inverted ? ink[k] : 255u - ink[k], black);
	}
}

static void decode(struct decoder *d, struct lth_image_job *job)
{
	jpeg_mem_src(&d->jpeg, job->bytes, job->size);
	jpeg_read_header(&d->jpeg, TRUE);
	d->code = lth_image_begin(job, d->jpeg.image_width, d->jpeg.image_height);
	if (d->code != LATHE_MEDIA_OK)
		return;
	bool inks = d->jpeg.jpeg_color_space == JCS_CMYK || d->jpeg.jpeg_color_space == JCS_YCCK;
	d->jpeg.out_color_space = inks ? JCS_CMYK : JCS_RGB;
	if (inks && !(d->row = malloc(job->width * 4))) {
		d->code = LATHE_MEDIA_MEMORY;
		return;
	}
	jpeg_start_decompress(&d->jpeg);
	while (d->jpeg.output_scanline < d->jpeg.output_height) {
		unsigned char *out = job->rgb + d->jpeg.output_scanline * job->width * 3;
		JSAMPROW rows[1] = {inks ? d->row : out};
		jpeg_read_scanlines(&d->jpeg, rows, 1);
		if (inks)
			row_from_inks(d, job, out);
	}
	jpeg_finish_decompress(&d->jpeg);
}

enum lathe_media_code lth_image_jpeg(struct lth_image_job *job)
{
	struct decoder *d = calloc(1, sizeof(*d)); /* in memory: a jump back leaves it as it is */
	if (!d)
		return LATHE_MEDIA_MEMORY;
	d->jpeg.err = jpeg_std_error(&d->errors);
	d->jpeg.client_data = d;
	d->errors.error_exit = give_up;
	d->errors.emit_message = warn;
	d->errors.output_message = say_nothing;
	if (setjmp(d->failed) == 0) {
		jpeg_create_decompress(&d->jpeg);
		d->progress.progress_monitor = count_scans;
		d->jpeg.progress = &d->progress;
		decode(d, job);
	}
	enum lathe_media_code code = d->code;
	jpeg_destroy_decompress(&d->jpeg);
	free(d->row);
	free(d);
	return code;
}
