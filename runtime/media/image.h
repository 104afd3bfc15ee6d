/* Decoders of liblathe-media. Each turns bytes of one format into RGB of 8 bits, rows from the top; what is asked for
 * beyond that (BGR, grey) is made of it by image.c. Bytes are hostile: a decoder reads the head, asks image.c for memory
 * (which holds the limits), and only then decodes. Thread rule: a job is one thread's. */
#ifndef LTH_MEDIA_IMAGE_H
#define LTH_MEDIA_IMAGE_H

#include "runtime/media/media.h"

struct lth_image_job {
	const unsigned char *bytes;
	size_t size;
	struct lathe_media_image *image;
	unsigned char *rgb; /* height * width * 3, once lth_image_begin was called */
	size_t width, height;
};

typedef enum lathe_media_code (*lth_image_decoder)(struct lth_image_job *job);

/* Memory for an image of this size, within the limits. image.c */
enum lathe_media_code lth_image_begin(struct lth_image_job *job, uint64_t width, uint64_t height);
enum lathe_media_code lth_image_decode(struct lathe_media_image *image);

/* Each in the file of its name. */
enum lathe_media_code lth_image_bmp(struct lth_image_job *job);
enum lathe_media_code lth_image_jp2(struct lth_image_job *job);
enum lathe_media_code lth_image_jpeg(struct lth_image_job *job);
enum lathe_media_code lth_image_png(struct lth_image_job *job);
enum lathe_media_code lth_image_pnm(struct lth_image_job *job);
enum lathe_media_code lth_image_tiff(struct lth_image_job *job);
enum lathe_media_code lth_image_webp(struct lth_image_job *job);

static inline unsigned char lth_image_clamp(int value)
{
	return (unsigned char)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* The light that is left of one colour's under black ink; both are given as light, the complement of ink. */
static inline unsigned char lth_image_ink(unsigned ink, unsigned black)
{
	return (unsigned char)((ink * black + 127) / 255);
}

#endif
