/* WebP by libwebp: still images, with loss and without; transparency dropped. */
#include "runtime/media/image.h"

#include <webp/decode.h>

enum lathe_media_code lth_image_webp(struct lth_image_job *job)
{
	WebPBitstreamFeatures features;
	VP8StatusCode status = WebPGetFeatures(job->bytes, job->size, &features);
	if (status == VP8_STATUS_OUT_OF_MEMORY)
		return LATHE_MEDIA_MEMORY;
	if (status != VP8_STATUS_OK || features.width <= 0 || features.height <= 0)
		return LATHE_MEDIA_BROKEN;
	enum lathe_media_code code = lth_image_begin(job, (uint64_t)features.width, (uint64_t)features.height);
	if (code != LATHE_MEDIA_OK)
		return code;
	int stride = (int)(job->width * 3);
	size_t room = job->width * job->height * 3;
	return WebPDecodeRGBInto(job->bytes, job->size, job->rgb, room, stride) ? LATHE_MEDIA_OK : LATHE_MEDIA_BROKEN;
}
