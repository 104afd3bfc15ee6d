/* Finding liblathe-media. The one place of a runtime that calls dlopen; see media.h. The library stays mapped once it is
 * loaded, so asking again costs a look into the loader's list and nothing has to be remembered here. */
#include "runtime/media/media.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

const struct lathe_media_api *lth_media_open(char message[LATHE_MEDIA_MESSAGE])
{
	const char *path = getenv("LATHE_MEDIA");
	if (!path || !*path)
		path = LATHE_MEDIA_SONAME;
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!library) {
		const char *words = dlerror();
		snprintf(message, LATHE_MEDIA_MESSAGE, "%s", words ? words : path);
		return NULL;
	}
	union {
		void *object;
		lathe_media_query_fn function;
	} query = {dlsym(library, "lathe_media_query")}; /* POSIX: the two have one representation */
	const struct lathe_media_api *api = query.object ? query.function(LATHE_MEDIA_VERSION) : NULL;
	dlclose(library);
	if (!api)
		snprintf(message, LATHE_MEDIA_MESSAGE, "%.100s: another version of it", path);
	return api;
}
