/* Full matches of regular expressions; see media.h. */
#ifndef LTH_MEDIA_REGEX_H
#define LTH_MEDIA_REGEX_H

#include "runtime/media/media.h"

enum lathe_media_code lth_regex_open(const char *pattern, size_t size, struct lathe_regex **out_regex,
				     char message[LATHE_MEDIA_MESSAGE]);
enum lathe_media_code lth_regex_match(struct lathe_regex *regex, const char *text, size_t size, int *out_matches,
				      char message[LATHE_MEDIA_MESSAGE]);
void lth_regex_close(struct lathe_regex **regex);

#endif
