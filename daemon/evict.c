/* Eviction: least recently used blobs and kernel objects first, until the store is below its budget. A file's time of
 * use is its modification time, which reading and every cache hit renew. What a job in flight needs is held by the
 * caller's list; what is young stays too, since a client may be about to name it; a reply under way keeps its open
 * file. See store.h. */
#include "daemon/store_files.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct file {
	char *path;
	uint64_t size;
	struct timespec used;
};

struct files {
	struct file *list;
	size_t count, capacity;
	uint64_t bytes;
};

static void add(struct files *files, char *path, const struct stat *info) /* takes the path */
{
	if (files->count == files->capacity) {
		size_t capacity = files->capacity ? files->capacity * 2 : 256;
		struct file *list = realloc(files->list, capacity * sizeof(*list));
		if (!list) {
			free(path);
			return;
		}
		files->list = list;
		files->capacity = capacity;
	}
	files->list[files->count++] = (struct file){path, (uint64_t)info->st_size, info->st_mtim};
	files->bytes += (uint64_t)info->st_size;
}

static void scan(struct files *files, const char *path)
{
	DIR *folder = opendir(path);
	for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
		struct stat info;
		char *inner;
		if (entry->d_name[0] == '.' || asprintf(&inner, "%s/%s", path, entry->d_name) < 0)
			continue;
		if (lstat(inner, &info) == 0 && S_ISREG(info.st_mode)) {
			add(files, inner, &info);
			continue;
		}
		scan(files, inner);
		free(inner);
	}
	if (folder)
		closedir(folder);
}

static int by_use(const void *a, const void *b)
{
	const struct file *left = a, *right = b;
	if (left->used.tv_sec != right->used.tv_sec)
		return left->used.tv_sec < right->used.tv_sec ? -1 : 1;
	if (left->used.tv_nsec != right->used.tv_nsec)
		return left->used.tv_nsec < right->used.tv_nsec ? -1 : 1;
	return strcmp(left->path, right->path);
}

static bool is_held_file(const struct file *file, bool (*is_held)(const void *, const char *), const void *context)
{
	char digest[LTH_DIGEST_TEXT + 1];
	const char *slash = strrchr(file->path, '/');
	snprintf(digest, sizeof(digest), "sha256:%s", slash ? slash + 1 : "");
	return lth_digest_valid(digest) && is_held(context, digest);
}

unsigned lth_store_evict(struct lth_store *store, uint64_t budget_bytes, unsigned grace_s,
			 bool (*is_held)(const void *context, const char *digest), const void *context)
{
	struct files files = {0};
	struct timespec now;
	unsigned gone = 0;
	clock_gettime(CLOCK_REALTIME, &now);
	const char *const folders[] = {"blobs", "kernels", "partial"};
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		char *path = lth_store_path(store, folders[i], "");
		if (path)
			scan(&files, path);
		free(path);
	}
	if (files.count)
		qsort(files.list, files.count, sizeof(*files.list), by_use);
	uint64_t left = files.bytes;
	for (size_t i = 0; i < files.count; i++) {
		const struct file *file = &files.list[i];
		bool young = now.tv_sec - file->used.tv_sec < (time_t)grace_s;
		if (left > budget_bytes && !young && !is_held_file(file, is_held, context) &&
		    lth_store_remove_blob(store, file->path)) {
			left -= file->size;
			gone++;
		}
		free(file->path);
	}
	free(files.list);
	atomic_store(&store->bytes, left); /* a count anew: it had drifted by what others wrote meanwhile at most */
	return gone;
}
