/* The table of liblathe-media: its only exported symbol. */
#include "runtime/media/image.h"
#include "runtime/media/media.h"
#include "runtime/media/regex.h"

__attribute__((visibility("default"))) const struct lathe_media_api *lathe_media_query(uint32_t version)
{
	static const struct lathe_media_api api = {
		.decode = lth_image_decode,
		.regex_open = lth_regex_open,
		.regex_match = lth_regex_match,
		.regex_close = lth_regex_close,
	};
	return version == LATHE_MEDIA_VERSION ? &api : NULL;
}
