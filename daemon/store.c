/* The store: opening it, bodies that arrive, blobs that are there, entries. See store.h; files that are written
 * durably are store_files.c's, blobs that come to be store_put.c's. */
#include "daemon/store_files.h"
#include "runtime/base/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *const folders[] = {"", "blobs", "actions", "kernels", "jobs", "quarantine", "partial", "work", "tmp"};
enum { NUM_FOLDERS = sizeof(folders) / sizeof(folders[0]) };

/* --- what has been hashed since the start */
static uint64_t digest_bits(const char *digest, size_t first)
{
	char part[17];
	snprintf(part, sizeof(part), "%.16s", digest + 7 + first);
	return strtoull(part, NULL, 16);
}

bool lth_store_is_verified(const struct lth_store *store, const char *digest)
{
	uint64_t slot = digest_bits(digest, 0) % LTH_VERIFIED_SLOTS;
	return atomic_load_explicit(&store->verified[slot], memory_order_relaxed) == digest_bits(digest, 16);
}

void lth_store_note_verified(struct lth_store *store, const char *digest)
{
	uint64_t slot = digest_bits(digest, 0) % LTH_VERIFIED_SLOTS;
	atomic_store_explicit(&store->verified[slot], digest_bits(digest, 16), memory_order_relaxed);
}

bool lth_store_remove_blob(struct lth_store *store, const char *path)
{
	bool gone = unlink(path) == 0;
	atomic_fetch_add(&store->removed, gone);
	return gone;
}

/* --- opening */
static uint64_t count_bytes(const char *path)
{
	uint64_t total = 0;
	DIR *folder = opendir(path);
	if (!folder)
		return 0;
	for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
		struct stat info;
		char *inner;
		if (entry->d_name[0] == '.' || asprintf(&inner, "%s/%s", path, entry->d_name) < 0)
			continue;
		if (lstat(inner, &info) == 0)
			total += S_ISDIR(info.st_mode) ? count_bytes(inner) : (uint64_t)info.st_size;
		free(inner);
	}
	closedir(folder);
	return total;
}

static bool make_parents(const char *path)
{
	char part[PATH_MAX];
	snprintf(part, sizeof(part), "%s", path);
	for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		if (mkdir(part, 0755) != 0 && errno != EEXIST)
			return false;
		*slash = '/';
	}
	return true;
}

/* The kernel gives the lock back when the process ends, however it ends. */
static enum lth_code take_lock(struct lth_store *store, struct lth_diag *diag)
{
	char *path = lth_store_path(store, "lock", "");
	store->lock_fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
	free(path);
	if (store->lock_fd < 0)
		return lth_store_failed(diag, store->root, "cannot make the lock");
	if (flock(store->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return LTH_OK;
	return lth_diag_fail(diag, LTH_BUSY, store->root, "a state folder of its own", "pass another --state-dir",
			     "another lathed that uses this folder");
}

enum lth_code lth_store_open(struct lth_store *store, const char *root, struct lth_diag *diag)
{
	*store = (struct lth_store){.lock_fd = -1};
	if (!make_parents(root) || (mkdir(root, 0700) != 0 && errno != EEXIST))
		return lth_store_failed(diag, root, "cannot make the state folder");
	store->root = realpath(root, NULL);
	if (!store->root)
		return lth_store_failed(diag, root, "cannot use the state folder");
	enum lth_code code = take_lock(store, diag);
	if (code != LTH_OK) {
		lth_store_close(store);
		return code;
	}
	for (int i = 0; i < NUM_FOLDERS; i++) {
		char *path = lth_store_path(store, folders[i], "");
		bool temporary = strcmp(folders[i], "tmp") == 0 || strcmp(folders[i], "work") == 0;
		if (path && temporary)
			lth_store_empty_folder(path); /* it stays: on a full disk there is no room for another */
		bool ok = path && (mkdir(path, 0700) == 0 || errno == EEXIST);
		if (ok && (strcmp(folders[i], "blobs") == 0 || strcmp(folders[i], "kernels") == 0 ||
			   strcmp(folders[i], "partial") == 0))
			atomic_fetch_add(&store->bytes, count_bytes(path));
		free(path);
		if (!ok) {
			lth_store_close(store);
			return lth_store_failed(diag, root, "cannot make the state folders");
		}
	}
	return LTH_OK;
}

void lth_store_close(struct lth_store *store)
{
	if (store->root && store->lock_fd >= 0)
		close(store->lock_fd);
	free(store->root);
	store->root = NULL;
}

/* --- spool */
enum lth_code lth_spool_begin(struct lth_store *store, struct lth_spool *out_spool, struct lth_diag *diag)
{
	struct lth_spool spool = {.store = store, .fd = -1, .hash = lth_sha256_create()};
	if (!spool.hash)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "store", NULL, NULL, "no memory for a body");
	*out_spool = spool;
	return LTH_OK;
}

enum lth_code lth_spool_spill(struct lth_spool *spool, struct lth_diag *diag)
{
	if (spool->fd >= 0)
		return LTH_OK;
	int fd = lth_store_temporary(spool->store, &spool->path);
	if (fd < 0)
		return lth_store_failed(diag, "store", "cannot spool a body");
	spool->fd = fd;
	if (!lth_write_full(fd, spool->memory.data, spool->memory.size))
		return lth_store_failed(diag, "store", "cannot spool a body");
	lth_buf_free(&spool->memory);
	return LTH_OK;
}

enum lth_code lth_spool_append(struct lth_spool *spool, const void *data, size_t size, struct lth_diag *diag)
{
	if (size && !spool->size)
		spool->head = *(const char *)data;
	if (spool->fd < 0 && size <= LTH_SPOOL_MEMORY - spool->memory.size) {
		lth_buf_append(&spool->memory, data, size);
		if (!lth_buf_ok(&spool->memory))
			return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "store", NULL, NULL, "no memory for a body");
	} else {
		enum lth_code code = lth_spool_spill(spool, diag);
		if (code != LTH_OK)
			return code;
		if (!lth_write_full(spool->fd, data, size))
			return lth_store_failed(diag, "store", "cannot spool a body");
	}
	lth_sha256_update(spool->hash, data, size);
	spool->size += size;
	return LTH_OK;
}

void lth_spool_digest(struct lth_spool *spool, char out_digest[LTH_DIGEST_TEXT])
{
	lth_sha256_finish(&spool->hash, out_digest);
}

/* The spooled bytes under their name, durably. */
static enum lth_code publish_spooled(struct lth_store *store, struct lth_spool *spool, const char *path,
				     struct lth_diag *diag)
{
	if (spool->fd < 0)
		return lth_store_write(store, path, spool->memory.data, spool->memory.size, diag);
	enum lth_code code = lth_store_settle(spool->fd, spool->path, path, diag);
	if (code == LTH_OK) {
		free(spool->path); /* the temporary is no more: nothing to unlink */
		spool->path = NULL;
	}
	return code;
}

enum lth_code lth_spool_publish(struct lth_store *store, struct lth_spool *spool, const char *digest,
				struct lth_diag *diag)
{
	char *path = lth_store_blob_path(store, digest);
	if (!path) {
		errno = ENOMEM;
		return lth_store_failed(diag, "store", "cannot name a blob");
	}
	enum lth_code code = LTH_OK;
	if (!lth_store_holds(store, digest)) {
		code = publish_spooled(store, spool, path, diag);
		if (code == LTH_OK) {
			atomic_fetch_add(&store->bytes, spool->size);
			lth_store_note_verified(store, digest);
		}
		lth_spool_discard(spool);
	}
	free(path);
	return code;
}

void lth_spool_discard(struct lth_spool *spool)
{
	char ignored[LTH_DIGEST_TEXT];
	if (spool->path)
		unlink(spool->path);
	free(spool->path);
	if (spool->fd >= 0)
		close(spool->fd);
	if (spool->hash)
		lth_sha256_finish(&spool->hash, ignored);
	lth_buf_free(&spool->memory);
	*spool = (struct lth_spool){.fd = -1};
}

/* --- blobs */
bool lth_store_has(const struct lth_store *store, const char *digest)
{
	struct stat info;
	char *path = lth_digest_valid(digest) ? lth_store_blob_path(store, digest) : NULL;
	bool has = path && stat(path, &info) == 0;
	free(path);
	return has;
}

bool lth_store_holds(struct lth_store *store, const char *digest)
{
	struct lth_diag damage = {0};
	if (!lth_store_has(store, digest))
		return false;
	return lth_store_is_verified(store, digest) || lth_store_verify(store, digest, &damage) == LTH_OK;
}

bool lth_store_use(const struct lth_store *store, const char *digest)
{
	enum { STALE_S = 600 };
	struct stat info;
	char *path = lth_digest_valid(digest) ? lth_store_blob_path(store, digest) : NULL;
	bool has = path && stat(path, &info) == 0;
	if (has && time(NULL) - info.st_mtim.tv_sec > STALE_S)
		utimensat(AT_FDCWD, path, NULL, 0);
	free(path);
	return has;
}

void lth_store_link_blob(const struct lth_store *store, const char *digest, const char *path)
{
	char *blob = lth_digest_valid(digest) ? lth_store_blob_path(store, digest) : NULL;
	if (blob && link(blob, path) != 0)
		errno = 0; /* it is there already, or the blob is gone: the digest in the request still names it */
	free(blob);
}

enum lth_code lth_store_verify(struct lth_store *store, const char *digest, struct lth_diag *diag)
{
	uint64_t size;
	char actual[LTH_DIGEST_TEXT];
	int fd = lth_store_open_blob(store, digest, &size);
	if (fd < 0)
		return lth_diag_fail(diag, LTH_NOT_FOUND, digest, NULL, NULL, "no blob of this digest");
	enum lth_code code = LTH_OK;
	if (!lth_store_digest_file(fd, actual)) {
		code = lth_store_failed(diag, digest, "cannot read");
	} else if (strcmp(actual, digest) != 0) {
		char *path = lth_store_blob_path(store, digest);
		if (path && lth_store_remove_blob(store, path))
			atomic_fetch_sub(&store->bytes, size);
		free(path);
		code = lth_diag_fail(diag, LTH_NOT_FOUND, digest, NULL, "send the request that made it again",
				     "a blob whose bytes were damaged on the disk; it has been removed");
	} else {
		lth_store_note_verified(store, digest);
	}
	close(fd);
	return code;
}

int lth_store_open_blob(const struct lth_store *store, const char *digest, uint64_t *out_size)
{
	struct stat info;
	char *path = lth_digest_valid(digest) ? lth_store_blob_path(store, digest) : NULL;
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	free(path);
	if (fd < 0)
		return -1;
	if (fstat(fd, &info) != 0) {
		close(fd);
		return -1;
	}
	futimens(fd, NULL); /* least recently used goes first; a failure only makes it look older */
	*out_size = (uint64_t)info.st_size;
	return fd;
}

enum lth_code lth_store_read(struct lth_store *store, const char *digest, size_t limit, char **out_data,
			     size_t *out_size, struct lth_diag *diag)
{
	char *data, actual[LTH_DIGEST_TEXT], *path = lth_digest_valid(digest) ? lth_store_blob_path(store, digest) : NULL;
	size_t size;
	if (!path)
		return lth_diag_fail(diag, LTH_NOT_FOUND, digest, NULL, NULL, "no blob of this name");
	enum lth_code code = lth_read_file(path, limit, &data, &size, diag);
	if (code == LTH_OK) {
		lth_sha256_text(data, size, actual);
		if (strcmp(actual, digest) == 0) {
			*out_data = data;
			*out_size = size;
		} else {
			(void)lth_store_remove_blob(store, path); /* damaged on disk: a hit no more */
			free(data);
			code = lth_diag_fail(diag, LTH_IO_ERROR, digest, NULL, NULL, "a blob whose bytes were damaged");
		}
	}
	free(path);
	return code;
}

/* --- entries */
void lth_store_action_name(const char *key, char out_folder[16], char out_name[LTH_DIGEST_TEXT])
{
	snprintf(out_folder, 16, "actions/%.2s", key + 7);
	snprintf(out_name, LTH_DIGEST_TEXT, "%s", key + 7);
}

enum lth_code lth_store_write_entry(struct lth_store *store, const char *folder, const char *name, const void *data,
				    size_t size, struct lth_diag *diag)
{
	char *path = lth_store_path(store, folder, name);
	enum lth_code code = lth_store_write(store, path, data, size, diag);
	free(path);
	return code;
}

json_t *lth_store_read_entry(const struct lth_store *store, const char *folder, const char *name)
{
	struct lth_diag diag = {0};
	char *data = NULL, *path = lth_store_path(store, folder, name);
	size_t size;
	json_t *entry = NULL;
	if (path && lth_read_file(path, 64u << 20, &data, &size, &diag) == LTH_OK)
		entry = json_loadb(data, size, JSON_REJECT_DUPLICATES, NULL);
	free(data);
	free(path);
	return entry;
}

void lth_store_remove_entry(const struct lth_store *store, const char *folder, const char *name)
{
	char *path = lth_store_path(store, folder, name);
	if (path)
		unlink(path);
	free(path);
}

int lth_store_anonymous_file(const struct lth_store *store)
{
	char *path = lth_store_path(store, "tmp", "");
	int fd = path ? open(path, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600) : -1;
	free(path);
	return fd;
}
