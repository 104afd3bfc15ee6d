/* Files and clocks. See io.h. */
#include "runtime/base/io.h"

#include "runtime/base/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

bool lth_read_full(int fd, void *data, size_t size)
{
	char *p = data;
	while (size) {
		ssize_t n = read(fd, p, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			errno = n == 0 ? EIO : errno;
			return false;
		}
		p += n;
		size -= (size_t)n;
	}
	return true;
}

bool lth_write_full(int fd, const void *data, size_t size)
{
	const char *p = data;
	while (size) {
		ssize_t n = write(fd, p, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		p += n;
		size -= (size_t)n;
	}
	return true;
}

static enum lth_code io_error(struct lth_diag *diag, const char *path, const char *what)
{
	if (errno == ENOENT || errno == ENOTDIR)
		return lth_diag_fail(diag, LTH_NOT_FOUND, path, NULL, NULL, "no such file or folder");
	return lth_diag_fail(diag, errno == ENOSPC ? LTH_DISK_FULL : LTH_IO_ERROR, path, NULL, NULL, "%s: %s", what,
			     strerror(errno));
}

enum lth_code lth_read_file(const char *path, size_t limit, char **out_data, size_t *out_size, struct lth_diag *diag)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return io_error(diag, path, "cannot open");
	enum lth_code code = LTH_OK;
	char *data = NULL;
	struct stat info;
	if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
		code = lth_diag_fail(diag, LTH_IO_ERROR, path, "a regular file", NULL, "%s",
				     S_ISDIR(info.st_mode) ? "a folder" : "something else");
		goto done;
	}
	size_t size = (size_t)info.st_size;
	if (limit && size > limit) {
		code = lth_diag_fail(diag, LTH_TOO_LARGE, path, NULL, NULL, "%zu bytes, more than the limit of %zu",
				     size, limit);
		goto done;
	}
	data = lth_calloc_large(size + 1);
	if (!data) {
		code = lth_diag_fail(diag, LTH_OUT_OF_MEMORY, path, NULL, NULL, "%zu bytes to read", size);
		goto done;
	}
	if (!lth_read_full(fd, data, size)) {
		code = io_error(diag, path, "cannot read");
		goto done;
	}
	data[size] = 0;
	*out_data = data;
	*out_size = size;
	data = NULL;
done:
	free(data);
	close(fd);
	return code;
}

enum lth_code lth_write_file(const char *path, const void *data, size_t size, bool executable, struct lth_diag *diag)
{
	char temporary[4096];
	int n = snprintf(temporary, sizeof(temporary), "%s.tmp.%ld", path, (long)getpid());
	if (n < 0 || (size_t)n >= sizeof(temporary))
		return lth_diag_fail(diag, LTH_INVALID_REQUEST, path, NULL, NULL, "a path that is too long");
	int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, executable ? 0755 : 0644);
	if (fd < 0)
		return io_error(diag, path, "cannot create");
	bool ok = lth_write_full(fd, data, size);
	ok = close(fd) == 0 && ok;
	ok = ok && rename(temporary, path) == 0;
	if (ok)
		return LTH_OK;
	enum lth_code code = io_error(diag, path, "cannot write");
	unlink(temporary);
	return code;
}

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;
	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t lth_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t lth_cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static uint64_t usage_ns(int who)
{
	struct rusage usage;
	getrusage(who, &usage);
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000u +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000u;
}

uint64_t lth_cpu_all_ns(void)
{
	return usage_ns(RUSAGE_SELF) + usage_ns(RUSAGE_CHILDREN);
}
