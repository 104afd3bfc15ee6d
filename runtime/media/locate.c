/* For programs of Lathe's own that run executables: where the library stands beside them. */
#include "runtime/media/media.h"

#include "runtime/base/place.h"

#include <stdlib.h>
#include <unistd.h>

void lth_media_locate(void)
{
	/* In a build folder, from one or two folders down; installed, from bin or libexec. */
	static const char *const below[] = {"../runtime/media/", "../../runtime/media/", "../lib/"};
	char path[4096];
	for (size_t k = 0; k < sizeof(below) / sizeof(below[0]) && !getenv("LATHE_MEDIA"); k++) {
		lth_own_file(below[k], LATHE_MEDIA_SONAME, path, sizeof(path));
		if (*path && access(path, R_OK) == 0)
			setenv("LATHE_MEDIA", path, 1);
	}
}
