/* liblathe-media: regular expressions and image codecs, which executables take from well-kept libraries (PCRE2,
 * libjpeg-turbo, libpng, libtiff, libwebp, OpenJPEG). A shared library of its own, opened by name on first use, so that
 * only executables that need it ask for it and all others stay self-contained. This header is the ABI between the two:
 * one exported symbol that returns a table of functions.
 *
 * Thread rule: functions may be called from any number of threads; a regex is for one thread at a time. */
#ifndef LTH_MEDIA_MEDIA_H
#define LTH_MEDIA_MEDIA_H

#include <stddef.h>
#include <stdint.h>

#define LATHE_MEDIA_SONAME "liblathe-media.so.0"
enum { LATHE_MEDIA_VERSION = 1, LATHE_MEDIA_MESSAGE = 160 };

enum lathe_media_code {
	LATHE_MEDIA_OK,
	LATHE_MEDIA_BROKEN, /* bytes that no decoder takes; a pattern that is none */
	LATHE_MEDIA_LIMIT,  /* what would take too much memory or time; the message says what and how much */
	LATHE_MEDIA_MEMORY,
};

enum lathe_media_pixels { LATHE_MEDIA_RGB, LATHE_MEDIA_BGR, LATHE_MEDIA_GRAYSCALE };

/* One image to decode. */
struct lathe_media_image {
	const void *bytes;
	size_t size;
	enum lathe_media_pixels pixels_are;
	void *(*take)(void *context, size_t bytes); /* memory for the pixels; NULL when out of it */
	void *context;
	int64_t height, width; /* result */
	unsigned char *pixels; /* result: height * width * (1 or 3) bytes, rows from the top */
	char message[LATHE_MEDIA_MESSAGE];
};

struct lathe_regex;

struct lathe_media_api {
	/* Formats: BMP, JPEG, JPEG 2000, PNG, PNM, TIFF, WebP, told apart by their first bytes. */
	enum lathe_media_code (*decode)(struct lathe_media_image *image);
	/* A pattern in UTF-8. The syntax is PCRE2's, which holds RE2's but for \C;
	 * `$` is the end of the text alone, `.` no line feed, as in RE2. */
	enum lathe_media_code (*regex_open)(const char *pattern, size_t size, struct lathe_regex **out_regex,
					    char message[LATHE_MEDIA_MESSAGE]);
	/* Whether the pattern matches a text from end to end. A text that is not UTF-8 never does. */
	enum lathe_media_code (*regex_match)(struct lathe_regex *regex, const char *text, size_t size, int *out_matches,
					     char message[LATHE_MEDIA_MESSAGE]);
	void (*regex_close)(struct lathe_regex **regex);
};

/* The table, or NULL for another version. */
const struct lathe_media_api *lathe_media_query(uint32_t version);
typedef const struct lathe_media_api *(*lathe_media_query_fn)(uint32_t version);

/* The table of the library that this process finds: the file that $LATHE_MEDIA names, else LATHE_MEDIA_SONAME where the
 * dynamic linker looks. NULL with the loader's words. load.c, which only executables that need it are linked with
 * (rt-media.o): elsewhere this is NULL. */
__attribute__((weak)) const struct lathe_media_api *lth_media_open(char message[LATHE_MEDIA_MESSAGE]);

/* Sets $LATHE_MEDIA to the library beside the running program, where there is one and the user set none. For programs
 * that run executables themselves, before their first thread. locate.c */
void lth_media_locate(void);

#endif
