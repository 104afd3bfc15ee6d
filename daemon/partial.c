/* Uploads that go on where they were cut off. See store.h. A part is appended under the file's lock and its bytes are
 * not synced: what a crash of the machine loses is found when the whole is hashed, before it becomes a blob. */
#include "daemon/store_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static char *partial_path(const struct lth_store *store, const char *digest)
{
	return lth_store_path(store, "partial", digest + 7);
}

uint64_t lth_partial_size(const struct lth_store *store, const char *digest)
{
	struct stat info;
	char *path = lth_digest_valid(digest) ? partial_path(store, digest) : NULL;
	uint64_t size = path && stat(path, &info) == 0 ? (uint64_t)info.st_size : 0;
	free(path);
	return size;
}

/* Opened and locked; -1 with the diag. One upload at a time goes into a file. */
static int open_locked(const char *path, int flags, uint64_t *out_size, struct lth_diag *diag)
{
	struct stat info, named;
	int fd = open(path, O_RDWR | O_CLOEXEC | flags, 0600);
	if (fd < 0) {
		(void)!lth_store_failed(diag, "store", "cannot open a partial upload");
		return -1;
	}
	/* still under this name: the one before us may have made a blob of the file, which never changes */
	if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &info) == 0 && stat(path, &named) == 0 &&
	    info.st_ino == named.st_ino) {
		*out_size = (uint64_t)info.st_size;
		return fd;
	}
	close(fd);
	lth_diag_fail(diag, LTH_BUSY, "upload", NULL, "ask with HEAD how far it is", "another upload of the same blob");
	return -1;
}

static enum lth_code append(struct lth_store *store, struct lth_spool *spool, int fd, uint64_t offset, uint64_t size,
			    uint64_t *out_size, struct lth_diag *diag)
{
	char expected[48];
	if (offset && offset != size) {
		snprintf(expected, sizeof(expected), "bytes %llu-", (unsigned long long)size);
		return lth_diag_fail(diag, LTH_BAD_RANGE, "Content-Range", expected, "ask with HEAD how far it is",
				     "bytes %llu-", (unsigned long long)offset);
	}
	if (ftruncate(fd, (off_t)offset) != 0)
		return lth_store_failed(diag, "store", "cannot begin anew");
	atomic_fetch_sub(&store->bytes, size - offset);
	if (!lth_store_copy(spool->fd, 0, fd, offset, spool->size)) {
		enum lth_code code = lth_store_failed(diag, "store", "cannot write");
		if (ftruncate(fd, (off_t)offset) != 0)
			errno = 0; /* then it is longer than told, and its digest will tell */
		return code;
	}
	atomic_fetch_add(&store->bytes, spool->size);
	*out_size = offset + spool->size;
	return LTH_OK;
}

enum lth_code lth_partial_add(struct lth_store *store, struct lth_spool *spool, const char *digest, uint64_t offset,
			      uint64_t *out_size, struct lth_diag *diag)
{
	uint64_t size = 0;
	char *path = partial_path(store, digest);
	enum lth_code spilt = lth_spool_spill(spool, diag);
	int fd = path && spilt == LTH_OK ? open_locked(path, offset ? 0 : O_CREAT, &size, diag) : -1;
	enum lth_code code = fd >= 0 ? append(store, spool, fd, offset, size, out_size, diag) : diag->code;
	if (!path)
		code = lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "upload", NULL, NULL, "no memory for its name");
	else if (fd < 0 && spilt == LTH_OK && code == LTH_IO_ERROR && offset) { /* there is none to go on with */
		*diag = (struct lth_diag){0};
		code = lth_diag_fail(diag, LTH_BAD_RANGE, "Content-Range", "bytes 0-", "begin the upload anew",
				     "bytes %llu-, of which nothing has arrived", (unsigned long long)offset);
	}
	if (fd >= 0)
		close(fd);
	free(path);
	lth_spool_discard(spool);
	return code;
}

void lth_partial_keep(struct lth_store *store, struct lth_spool *spool, const char *digest, uint64_t offset)
{
	struct lth_diag diag = {0};
	uint64_t size;
	if (lth_store_has(store, digest) || offset + spool->size <= lth_partial_size(store, digest))
		lth_spool_discard(spool);
	else
		(void)!lth_partial_add(store, spool, digest, offset, &size, &diag); /* if not, it begins anew */
}

enum lth_code lth_partial_finish(struct lth_store *store, const char *digest, struct lth_diag *diag)
{
	uint64_t size = 0;
	char actual[LTH_DIGEST_TEXT], *path = partial_path(store, digest), *blob = lth_store_blob_path(store, digest);
	enum lth_code code = LTH_OK;
	int fd = path && blob ? open_locked(path, 0, &size, diag) : -1;
	if (fd < 0) {
		code = diag->code != LTH_OK ? diag->code
					    : lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "upload", NULL, NULL, "no memory");
	} else if (!lth_store_digest_file(fd, actual)) {
		code = lth_store_failed(diag, "store", "cannot read a partial upload");
	} else if (strcmp(actual, digest) != 0) {
		code = lth_diag_fail(diag, LTH_INVALID_REQUEST, "body", digest, "begin the upload anew",
				     "bytes whose digest is %s", actual);
		unlink(path);
		atomic_fetch_sub(&store->bytes, size);
	} else if (lth_store_holds(store, digest)) {
		unlink(path);
		atomic_fetch_sub(&store->bytes, size);
	} else {
		code = lth_store_settle(fd, path, blob, diag);
		if (code == LTH_OK)
			lth_store_note_verified(store, digest);
		else
			atomic_fetch_sub(&store->bytes, size);
	}
	if (fd >= 0)
		close(fd);
	free(path);
	free(blob);
	return code;
}
