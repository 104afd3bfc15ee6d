/* Bytes that become blobs and kernel objects, durably. See store.h. What a worker wrote is hashed only once nobody
 * else can write it any more: it is copied into a file of our own, or taken over as it is, after a lease has shown
 * that it has no writers. */
#include "daemon/store_files.h"
#include "runtime/base/io.h"
#include "runtime/base/team.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum lth_code lth_store_put(struct lth_store *store, const void *data, size_t size, char out_digest[LTH_DIGEST_TEXT],
			    struct lth_diag *diag)
{
	char digest[LTH_DIGEST_TEXT];
	enum lth_code code = LTH_OK;
	lth_sha256_text(data, size, digest);
	if (!lth_store_holds(store, digest)) {
		char *path = lth_store_blob_path(store, digest);
		code = lth_store_write(store, path, data, size, diag);
		free(path);
		if (code == LTH_OK) {
			atomic_fetch_add(&store->bytes, size);
			lth_store_note_verified(store, digest);
		}
	}
	if (code == LTH_OK)
		memcpy(out_digest, digest, LTH_DIGEST_TEXT);
	return code;
}

/* The file under its name, unless a blob of this digest is there. */
static enum lth_code keep_file(struct lth_store *store, int file, const char *temporary, uint64_t size,
			       const char *digest, struct lth_diag *diag)
{
	if (lth_store_holds(store, digest)) {
		unlink(temporary);
		return LTH_OK;
	}
	char *path = lth_store_blob_path(store, digest);
	if (!path) {
		unlink(temporary);
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "store", NULL, NULL, "no memory to name a blob");
	}
	enum lth_code code = lth_store_settle(file, temporary, path, diag);
	free(path);
	if (code == LTH_OK) {
		atomic_fetch_add(&store->bytes, size);
		lth_store_note_verified(store, digest);
	}
	return code;
}

enum lth_code lth_store_put_range(struct lth_store *store, int fd, uint64_t offset, const void *data, size_t size,
				  char out_digest[LTH_DIGEST_TEXT], struct lth_diag *diag)
{
	char digest[LTH_DIGEST_TEXT], *temporary;
	lth_sha256_text(data, size, digest);
	if (lth_store_holds(store, digest)) { /* made before, by other options perhaps: nothing to write */
		memcpy(out_digest, digest, sizeof(digest));
		return LTH_OK;
	}
	int copy = lth_store_temporary(store, &temporary);
	enum lth_code code = LTH_OK;
	if (copy < 0)
		return lth_store_failed(diag, "store", "cannot create a temporary file");
	if (!lth_store_copy(fd, offset, copy, 0, size)) {
		code = lth_store_failed(diag, "store", "cannot write");
		unlink(temporary);
	} else {
		sync_file_range(copy, 0, 0, SYNC_FILE_RANGE_WRITE); /* a hint: the fsync that follows counts */
		if (lth_store_digest_file(copy, digest)) {
			code = keep_file(store, copy, temporary, size, digest, diag);
		} else {
			code = lth_store_failed(diag, "store", "cannot read back");
			unlink(temporary);
		}
	}
	close(copy);
	free(temporary);
	if (code == LTH_OK)
		memcpy(out_digest, digest, sizeof(digest));
	return code;
}

/* --- files of workers */
/* Nobody has it open for writing: then the kernel grants a read lease, which is given back at once. Without other names
 * nobody can open it so later: the worker's sandbox ends at its work folder. */
static bool is_ours_alone(int fd)
{
	struct stat info;
	if (fstat(fd, &info) != 0 || info.st_nlink != 1 || fcntl(fd, F_SETLEASE, F_RDLCK) != 0)
		return false;
	fcntl(fd, F_SETLEASE, F_UNLCK);
	return true;
}

/* From where on a thread more is worth it. */
enum { LARGE = 4 << 20 };

struct settling {
	int fd, error; /* 0, or the errno of who could not read */
	char digest[LTH_DIGEST_TEXT];
};

/* One thread hashes, another takes the bytes to the disk: that is a hint, the fsync that follows counts. */
static void settle(void *context, unsigned member)
{
	struct settling *settling = context;
	if (member == 0)
		settling->error = lth_store_digest_file(settling->fd, settling->digest) ? 0 : errno;
	else
		sync_file_range(settling->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
}

/* Hashed on its way to the disk. */
static enum lth_code keep_as_it_is(struct lth_store *store, int fd, const char *path, uint64_t size,
				   char out_digest[LTH_DIGEST_TEXT], struct lth_diag *diag)
{
	struct settling settling = {.fd = fd};
	fchmod(fd, 0600);
	lth_team_run(size >= LARGE ? 2 : 1, settle, &settling);
	if (settling.error == 0) {
		memcpy(out_digest, settling.digest, sizeof(settling.digest));
		return keep_file(store, fd, path, size, out_digest, diag);
	}
	errno = settling.error;
	enum lth_code code = lth_store_failed(diag, "store", "cannot read a result");
	unlink(path);
	return code;
}

static enum lth_code copy_whole(struct lth_store *store, int fd, uint64_t size, char out_digest[LTH_DIGEST_TEXT],
				struct lth_diag *diag)
{
	void *data = size ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
	if (data == MAP_FAILED)
		return lth_store_failed(diag, "store", "cannot map a result");
	enum lth_code code = lth_store_put_range(store, fd, 0, data ? data : "", size, out_digest, diag);
	if (data)
		munmap(data, size);
	return code;
}

/* From the worker's folder into ours: the same file under a name that the worker cannot reach. -1 with errno. */
static int move_in(struct lth_store *store, const char *path, char **out_path, struct stat *out_info)
{
	int fd = lth_store_temporary(store, out_path);
	if (fd < 0)
		return -1;
	close(fd);
	fd = rename(path, *out_path) == 0 ? open(*out_path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
	if (fd >= 0 && fstat(fd, out_info) == 0 && S_ISREG(out_info->st_mode))
		return fd;
	int error = fd >= 0 ? EINVAL : errno;
	if (fd >= 0)
		close(fd);
	unlink(*out_path);
	free(*out_path);
	errno = error;
	return -1;
}

enum lth_code lth_store_take_file(struct lth_store *store, const char *path, char out_digest[LTH_DIGEST_TEXT],
				  uint64_t *out_size, struct lth_diag *diag)
{
	char *moved, digest[LTH_DIGEST_TEXT];
	struct stat info;
	enum lth_code code;
	int fd = move_in(store, path, &moved, &info);
	if (fd < 0)
		return lth_store_failed(diag, "store", "cannot take over a result");
	if (is_ours_alone(fd)) {
		code = keep_as_it_is(store, fd, moved, (uint64_t)info.st_size, digest, diag);
	} else {
		code = copy_whole(store, fd, (uint64_t)info.st_size, digest, diag);
		unlink(moved);
	}
	close(fd);
	free(moved);
	if (code != LTH_OK)
		return code;
	memcpy(out_digest, digest, sizeof(digest));
	*out_size = (uint64_t)info.st_size;
	return LTH_OK;
}

/* --- kernels */
/* A worker that compiled what is there found it damaged, or two compiled it at once. Which of two that differ is good
 * cannot be told here, and no worker may replace a good one: both go, and the next compile brings it again. */
static void settle_kernels(struct lth_store *store, const char *path, const void *data, size_t size)
{
	struct lth_diag ignored = {0};
	char *there;
	size_t there_size;
	if (lth_read_file(path, 0, &there, &there_size, &ignored) != LTH_OK)
		return;
	if ((there_size != size || memcmp(there, data, size) != 0) && unlink(path) == 0)
		atomic_fetch_sub(&store->bytes, there_size);
	free(there);
}

enum lth_code lth_store_put_kernel(struct lth_store *store, const char *name, const void *data, size_t size,
				   struct lth_diag *diag)
{
	static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-";
	char file[160], *path;
	size_t length = strlen(name);
	if (!length || length > 128 || strspn(name, letters) != length)
		return lth_diag_fail(diag, LTH_INTERNAL, "kernel cache", "letters, digits, _ and -", NULL,
				     "the name '%s'", name);
	snprintf(file, sizeof(file), "%s.o", name);
	path = lth_store_path(store, "kernels", file);
	if (path && access(path, F_OK) == 0) {
		settle_kernels(store, path, data, size);
		free(path);
		return LTH_OK;
	}
	enum lth_code code = lth_store_write(store, path, data, size, diag);
	free(path);
	if (code == LTH_OK)
		atomic_fetch_add(&store->bytes, size);
	return code;
}
