/* Any bytes as an image file, or as a pattern and a text: decoded or refused, within memory that is asked for. The first
 * byte says which. */
#include "runtime/media/media.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void *take(void *pixels, size_t bytes)
{
	enum { MOST = 4 << 20 }; /* larger ones only take the fuzzer's time */
	return *(void **)pixels = bytes <= MOST ? malloc(bytes) : NULL;
}

static void one_image(const struct lathe_media_api *api, enum lathe_media_pixels wanted, const uint8_t *data, size_t size)
{
	void *pixels = NULL;
	struct lathe_media_image image = {
		.bytes = data, .size = size, .pixels_are = wanted, .take = take, .context = &pixels};
	if (api->decode(&image) == LATHE_MEDIA_OK && (image.height <= 0 || image.width <= 0 || image.pixels != pixels))
		abort();
	free(pixels);
}

/* The pattern ends at the first line feed. */
static void one_pattern(const struct lathe_media_api *api, const char *data, size_t size)
{
	char message[LATHE_MEDIA_MESSAGE];
	struct lathe_regex *regex;
	size_t length = 0;
	int matches;
	while (length < size && data[length] != '\n')
		length++;
	if (api->regex_open(data, length, &regex, message) != LATHE_MEDIA_OK)
		return;
	(void)api->regex_match(regex, data + length, size - length, &matches, message);
	api->regex_close(&regex);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct lathe_media_api *api = lathe_media_query(LATHE_MEDIA_VERSION);
	if (size == 0)
		return 0;
	if (data[0] % 4 == 3)
		one_pattern(api, (const char *)data + 1, size - 1);
	else
		one_image(api, (enum lathe_media_pixels)(data[0] % 4), data + 1, size - 1);
	return 0;
}
