/* The store: blobs by their SHA-256, action entries by action key, kernel objects by name, spooled jobs, work folders.
 *   blobs/HH/HEX   actions/HH/HEX   kernels/NAME.o   jobs/ID   quarantine/HEX/   work/wN/   tmp/   lock
 * Every write is: temporary file, fsync, rename, fsync of the folder; a failed fsync is a failed write. Temporaries have
 * one folder of their own in the same file system, so that start-up finds them all. Names come from digests and ids that
 * were checked, never from a request's text. Thread rule: a store is read-only after opening, its functions may be called
 * from any thread (byte counts are atomic); opening and recovery on one. */
#ifndef LTH_DAEMON_STORE_H
#define LTH_DAEMON_STORE_H

#include "runtime/base/buf.h"
#include "runtime/base/diag.h"
#include "runtime/base/sha256.h"

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { LTH_VERIFIED_SLOTS = 1 << 14 };

struct lth_store {
	char *root;
	int lock_fd; /* held while the store is open: two daemons in one folder would undo each other's work */
	atomic_uint_fast64_t bytes;  /* of blobs and kernels */
	atomic_uint_fast64_t serial; /* of temporary names */
	atomic_uint_fast64_t removed; /* blobs, since the store was opened: who has seen one there asks again when it grows */
	/* Blobs whose bytes have been hashed since the store was opened, as 64 bits of their digests: the others are
	 * verified before their first reply. A blob that lost its slot to another is verified once more. */
	atomic_uint_fast64_t verified[LTH_VERIFIED_SLOTS];
};

/* Opens or makes the folders, deletes temporaries and work folders, counts what is there. */
LTH_MUST_CHECK enum lth_code lth_store_open(struct lth_store *store, const char *root, struct lth_diag *diag);
void lth_store_close(struct lth_store *store);

/* A path inside the store, malloc'ed; NULL when out of memory. */
char *lth_store_path(const struct lth_store *store, const char *folder, const char *name);

/* --- spool: bytes that arrive and whose digest is not known yet. Few stay in memory: most requests are answered from
 * the cache, and touch no file for it. */
enum { LTH_SPOOL_MEMORY = 64 << 10 };
struct lth_spool {
	struct lth_store *store; /* NULL when not begun, or ended */
	int fd;                  /* -1: the bytes are in memory */
	char *path;
	struct lth_buf memory;
	struct lth_sha256 *hash;
	uint64_t size;
	char head; /* the first byte, once size is not 0 */
};
LTH_MUST_CHECK enum lth_code lth_spool_begin(struct lth_store *store, struct lth_spool *out_spool,
					     struct lth_diag *diag);
LTH_MUST_CHECK enum lth_code lth_spool_append(struct lth_spool *spool, const void *data, size_t size,
					      struct lth_diag *diag);
/* Moves the bytes into a file (fd) if they are in memory. */
LTH_MUST_CHECK enum lth_code lth_spool_spill(struct lth_spool *spool, struct lth_diag *diag);
/* The digest of what has arrived; nothing can be appended any more. */
void lth_spool_digest(struct lth_spool *spool, char out_digest[LTH_DIGEST_TEXT]);
/* Makes the spooled bytes the blob of this digest, durably, which ends the spool; where that blob exists already it is
 * kept, and the spool is the caller's to discard. */
LTH_MUST_CHECK enum lth_code lth_spool_publish(struct lth_store *store, struct lth_spool *spool, const char *digest,
					       struct lth_diag *diag);
/* Accepts an ended one. Of a large one it takes tens of milliseconds: the system frees its memory. */
void lth_spool_discard(struct lth_spool *spool);

/* --- partial.c: uploads that go on where they were cut off. What has arrived of a blob stands in partial/HEX; its
 * bytes count as the store's and are evicted like a blob's. */
uint64_t lth_partial_size(const struct lth_store *store, const char *digest); /* 0 when there is none */
/* Appends the spooled bytes at `offset`, which must be how much is there (or 0: begin anew). Ends the spool. */
LTH_MUST_CHECK enum lth_code lth_partial_add(struct lth_store *store, struct lth_spool *spool, const char *digest,
					     uint64_t offset, uint64_t *out_size, struct lth_diag *diag);
/* Keeps the beginning of an upload that was cut, when it is more than what is there. Ends the spool. */
void lth_partial_keep(struct lth_store *store, struct lth_spool *spool, const char *digest, uint64_t offset);
/* Makes the blob of it, durably; bytes of another digest are thrown away. */
LTH_MUST_CHECK enum lth_code lth_partial_finish(struct lth_store *store, const char *digest, struct lth_diag *diag);

/* --- blobs */
LTH_MUST_CHECK enum lth_code lth_store_put(struct lth_store *store, const void *data, size_t size,
					   char out_digest[LTH_DIGEST_TEXT], struct lth_diag *diag);
/* The same for bytes of a file that others may still be able to write, given mapped as well. They are copied inside the
 * kernel, and on their way to the disk while the copy, which nobody else can write, is hashed. */
LTH_MUST_CHECK enum lth_code lth_store_put_range(struct lth_store *store, int fd, uint64_t offset, const void *data,
						 size_t size, char out_digest[LTH_DIGEST_TEXT],
						 struct lth_diag *diag);
/* Makes a blob of a file that a worker made in its work folder, without copying it: the file leaves the folder, and
 * when nobody has it open for writing, and it has no other name there, nobody can change it any more. Else it is
 * copied. */
LTH_MUST_CHECK enum lth_code lth_store_take_file(struct lth_store *store, const char *path,
						 char out_digest[LTH_DIGEST_TEXT], uint64_t *out_size,
						 struct lth_diag *diag);
/* True when the blob's bytes have been hashed since the store was opened. */
bool lth_store_is_verified(const struct lth_store *store, const char *digest);
/* Hashes the blob; a damaged one is removed: a hit no more. */
LTH_MUST_CHECK enum lth_code lth_store_verify(struct lth_store *store, const char *digest, struct lth_diag *diag);
bool lth_store_has(const struct lth_store *store, const char *digest);
/* True when the blob is there and its bytes are good: what has not been hashed since the start is hashed now. So asks
 * who has the bytes at hand and would not write them a second time. */
bool lth_store_holds(struct lth_store *store, const char *digest);
/* Opens for reading and marks the blob as used; -1 when it is not there. */
int lth_store_open_blob(const struct lth_store *store, const char *digest, uint64_t *out_size);
/* The same question, asked on behalf of a cache hit: marks the blob as used when it has not been for some minutes. */
bool lth_store_use(const struct lth_store *store, const char *digest);
/* A second name for a blob (or a copy of nothing, when it has gone): for a reproducer that eviction must not take. */
void lth_store_link_blob(const struct lth_store *store, const char *digest, const char *path);
/* Reads a whole blob of at most `limit` bytes and verifies its digest; the caller frees. */
LTH_MUST_CHECK enum lth_code lth_store_read(struct lth_store *store, const char *digest, size_t limit,
					    char **out_data, size_t *out_size, struct lth_diag *diag);

/* --- small files by checked name: action entries, spooled jobs */
LTH_MUST_CHECK enum lth_code lth_store_write_entry(struct lth_store *store, const char *folder, const char *name,
						   const void *data, size_t size, struct lth_diag *diag);
json_t *lth_store_read_entry(const struct lth_store *store, const char *folder,
			     const char *name); /* NULL: none or damaged */
void lth_store_remove_entry(const struct lth_store *store, const char *folder, const char *name);
/* "actions/HH" and "HEX" of an action key. */
void lth_store_action_name(const char *key, char out_folder[16], char out_name[LTH_DIGEST_TEXT]);

/* A kernel object; its name must be [0-9a-zA-Z_-]+ (checked). One that is there with other bytes is removed. */
LTH_MUST_CHECK enum lth_code lth_store_put_kernel(struct lth_store *store, const char *name, const void *data,
						  size_t size, struct lth_diag *diag);

/* A new empty file without a name, for a result bundle; -1 with errno. */
int lth_store_anonymous_file(const struct lth_store *store);
/* Removes what a folder inside the store holds, or the folder, too. */
void lth_store_empty_folder(const char *path);
void lth_store_remove_tree(const char *path);

/* --- evict.c: removes the least recently used blobs and kernels until at most `budget` bytes are left. `is_held` says
 * which digests must stay; `grace_s` protects what is younger. Returns how many files went. */
unsigned lth_store_evict(struct lth_store *store, uint64_t budget_bytes, unsigned grace_s,
			 bool (*is_held)(const void *context, const char *digest), const void *context);

#endif
