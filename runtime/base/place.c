/* The program's own place, by /proc. See place.h. */
#include "runtime/base/place.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool lth_own_folder(char out_path[PATH_MAX])
{
	ssize_t size = readlink("/proc/self/exe", out_path, PATH_MAX - 1);
	if (size <= 0)
		return false;
	out_path[size] = 0;
	char *slash = strrchr(out_path, '/');
	if (!slash)
		return false;
	*slash = 0;
	return true;
}

/* How many bytes of both, whole components only, are the same. */
static size_t common_part(const char *a, const char *b)
{
	size_t at = 0, common = 0;
	for (;; at++) {
		bool end_of_a = !a[at] || a[at] == '/', end_of_b = !b[at] || b[at] == '/';
		if (end_of_a && end_of_b)
			common = at;
		if (!a[at] || a[at] != b[at])
			return common;
	}
}

bool lth_moved_path(const char *configured, const char *wanted, char out_path[PATH_MAX])
{
	if (!lth_own_folder(out_path))
		return false;
	size_t common = common_part(configured, wanted), length = strlen(out_path);
	for (const char *at = configured + common; *at; at++) { /* up, once a component */
		if (*at != '/' || !at[1] || at[1] == '/')
			continue;
		int size = snprintf(out_path + length, PATH_MAX - length, "/..");
		if (size < 0 || (size_t)size >= PATH_MAX - length)
			return false;
		length += (size_t)size;
	}
	int size = snprintf(out_path + length, PATH_MAX - length, "%s", wanted + common);
	return size >= 0 && (size_t)size < PATH_MAX - length;
}

void lth_own_file(const char *below, const char *file, char *out, size_t size)
{
	char own[PATH_MAX];
	*out = 0;
	if (!lth_own_folder(own))
		return;
	int written = snprintf(out, size, "%s/%s%s", own, below, file);
	if (written < 0 || (size_t)written >= size)
		*out = 0;
}
