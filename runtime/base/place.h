/* Where the running program stands, and from there the other files of its installation, which may have been moved as a
 * whole or lie below a DESTDIR. Thread rule: reentrant. */
#ifndef LTH_BASE_PLACE_H
#define LTH_BASE_PLACE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* The folder of the program's file, without a slash at the end; false when the system does not tell. */
bool lth_own_folder(char out_path[PATH_MAX]);
/* The path of `wanted` (absolute, as configured) seen from the program's folder, which was configured to be `configured`:
 * with /usr/sbin for /usr/libexec/x, a program in /opt/a/usr/sbin gets /opt/a/usr/sbin/../libexec/x. False when unknown or
 * too long. */
bool lth_moved_path(const char *configured, const char *wanted, char out_path[PATH_MAX]);
/* FOLDER/below/file, where FOLDER is the running program's; empty when unknown or too long. */
void lth_own_file(const char *below, const char *file, char *out, size_t size);

#endif
