/* Whole-file reading and writing that survives short transfers and signals. Errors go to the diag with the file's
 * name. Thread rule: reentrant. */
#ifndef LTH_BASE_IO_H
#define LTH_BASE_IO_H

#include "runtime/base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads a whole file into malloc'ed memory (the caller's), NUL-terminated behind `*out_size` bytes.
 * Refuses more than `limit` bytes when limit is not 0. */
LTH_MUST_CHECK enum lth_code lth_read_file(const char *path, size_t limit, char **out_data, size_t *out_size,
					   struct lth_diag *diag);
/* Writes to PATH.tmp.PID in the same folder, then renames: readers see the old file or the new one, never half. */
LTH_MUST_CHECK enum lth_code lth_write_file(const char *path, const void *data, size_t size, bool executable,
					    struct lth_diag *diag);
/* Transfers exactly `size` bytes or fails; errno says why (EIO at an early end of file). */
bool lth_read_full(int fd, void *data, size_t size);
bool lth_write_full(int fd, const void *data, size_t size);
/* Monotonic clock. */
uint64_t lth_now_ns(void);
/* CPU time of the calling thread; of the process, all threads, and the children that it has waited for. The kernel adds up
 * the latter at its ticks only: fit for what takes many. */
uint64_t lth_cpu_ns(void);
uint64_t lth_cpu_all_ns(void);

#endif
