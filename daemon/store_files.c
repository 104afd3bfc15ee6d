/* Files of the store: names, temporaries, durable writing, copying. See store_files.h. */
#include "daemon/store_files.h"
#include "runtime/base/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum lth_code lth_store_failed(struct lth_diag *diag, const char *place, const char *what)
{
	enum lth_code code = errno == ENOSPC || errno == EDQUOT ? LTH_DISK_FULL
			     : errno == ENOMEM                  ? LTH_OUT_OF_MEMORY
								: LTH_IO_ERROR;
	return lth_diag_fail(diag, code, place, NULL, NULL, "%s: %s", what, strerror(errno));
}

char *lth_store_path(const struct lth_store *store, const char *folder, const char *name)
{
	char *path;
	return asprintf(&path, "%s/%s%s%s", store->root, folder, *name ? "/" : "", name) < 0 ? NULL : path;
}

char *lth_store_blob_path(const struct lth_store *store, const char *digest)
{
	char *path;
	const char *hex = digest + 7;
	return asprintf(&path, "%s/blobs/%.2s/%s", store->root, hex, hex) < 0 ? NULL : path;
}

static bool sync_folder_of(const char *path)
{
	char folder[PATH_MAX];
	snprintf(folder, sizeof(folder), "%s", path);
	char *slash = strrchr(folder, '/');
	if (!slash)
		return false;
	*slash = 0;
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool ok = fd >= 0 && fsync(fd) == 0;
	if (fd >= 0)
		close(fd);
	return ok;
}

/* The folder of a path, made when missing (and then durable in its parent). */
static bool make_folder_of(const char *path)
{
	char folder[PATH_MAX];
	snprintf(folder, sizeof(folder), "%s", path);
	char *slash = strrchr(folder, '/');
	if (!slash)
		return false;
	*slash = 0;
	if (mkdir(folder, 0700) == 0)
		return sync_folder_of(folder);
	return errno == EEXIST;
}

enum lth_code lth_store_settle(int fd, const char *temporary, const char *path, struct lth_diag *diag)
{
	bool ok = fsync(fd) == 0 && make_folder_of(path) && rename(temporary, path) == 0 && sync_folder_of(path);
	if (ok)
		return LTH_OK;
	enum lth_code code = lth_store_failed(diag, "store", "cannot write durably");
	unlink(temporary);
	return code;
}

bool lth_store_copy(int from, uint64_t offset, int to, uint64_t to_offset, uint64_t size)
{
	off_t in = (off_t)offset, out = (off_t)to_offset;
	while (size) {
		ssize_t count = copy_file_range(from, &in, to, &out, size, 0);
		if (count < 0 && errno == EINTR)
			continue;
		if (count == 0)
			errno = EIO; /* the file ends before it should */
		if (count <= 0)
			return false;
		size -= (uint64_t)count;
	}
	return true;
}

bool lth_store_digest_file(int fd, char out_digest[LTH_DIGEST_TEXT])
{
	enum { BLOCK = 1 << 18 };
	struct lth_sha256 *hash = lth_sha256_create();
	char *block = malloc(BLOCK);
	ssize_t count = hash && block ? 1 : -1;
	for (off_t at = 0; count > 0;) {
		count = pread(fd, block, BLOCK, at);
		if (count < 0 && errno == EINTR)
			count = 1;
		else if (count > 0)
			lth_sha256_update(hash, block, (size_t)count), at += count;
	}
	if (hash)
		lth_sha256_finish(&hash, out_digest);
	free(block);
	return count == 0;
}

int lth_store_temporary(struct lth_store *store, char **out_path)
{
	char *path;
	unsigned long long serial = atomic_fetch_add(&store->serial, 1);
	if (asprintf(&path, "%s/tmp/%ld-%llu", store->root, (long)getpid(), serial) < 0) {
		errno = ENOMEM;
		return -1;
	}
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		free(path);
	else
		*out_path = path;
	return fd;
}

enum lth_code lth_store_write(struct lth_store *store, const char *path, const void *data, size_t size,
				   struct lth_diag *diag)
{
	char *temporary;
	int fd = path ? lth_store_temporary(store, &temporary) : -1;
	if (fd < 0)
		return lth_store_failed(diag, "store", "cannot create a temporary file");
	enum lth_code code = LTH_OK;
	if (!lth_write_full(fd, data, size)) {
		code = lth_store_failed(diag, "store", "cannot write");
		unlink(temporary);
	} else {
		code = lth_store_settle(fd, temporary, path, diag);
	}
	close(fd);
	free(temporary);
	return code;
}

/* By descriptors, and never through a link: a worker that lives may change names while its folder is emptied. */
static void empty_folder(int parent, const char *name, unsigned depth)
{
	enum { DEEPEST = 100 }; /* ours have two */
	int fd = depth < DEEPEST ? openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
	DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
	if (fd >= 0 && !folder)
		close(fd);
	for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (unlinkat(fd, entry->d_name, 0) == 0 || (errno != EISDIR && errno != EPERM))
			continue;
		empty_folder(fd, entry->d_name, depth + 1);
		unlinkat(fd, entry->d_name, AT_REMOVEDIR);
	}
	if (folder)
		closedir(folder);
}

void lth_store_empty_folder(const char *path)
{
	empty_folder(AT_FDCWD, path, 0);
}

void lth_store_remove_tree(const char *path)
{
	lth_store_empty_folder(path);
	rmdir(path);
}
