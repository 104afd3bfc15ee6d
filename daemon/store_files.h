/* Between the files of the store: names, temporaries, durable writing and copying of files, by store_files.c; and what
 * has been hashed, by store.c. Thread rule: any thread. */
#ifndef LTH_DAEMON_STORE_FILES_H
#define LTH_DAEMON_STORE_FILES_H

#include "daemon/store.h"

/* What errno says, as a diagnostic: a full disk is LTH_DISK_FULL. */
enum lth_code lth_store_failed(struct lth_diag *diag, const char *place, const char *what);
/* "sha256:HHxxxx" -> ROOT/blobs/HH/HHxxxx, malloc'ed; NULL when out of memory. The digest must be valid. */
char *lth_store_blob_path(const struct lth_store *store, const char *digest);
/* A new file in tmp/, whose name is the caller's; -1 with errno. */
int lth_store_temporary(struct lth_store *store, char **out_path);
/* Writes bytes durably to `path`, which may be NULL: then memory is out. */
LTH_MUST_CHECK enum lth_code lth_store_write(struct lth_store *store, const char *path, const void *data, size_t size,
					     struct lth_diag *diag);
/* fsync, rename, fsync the folder; takes the temporary away on failure. Closes nothing. */
LTH_MUST_CHECK enum lth_code lth_store_settle(int fd, const char *temporary, const char *path, struct lth_diag *diag);
/* Bytes from one file into another at `to_offset`, inside the kernel where it can; false with errno. */
bool lth_store_copy(int from, uint64_t offset, int to, uint64_t to_offset, uint64_t size);
/* The digest of a whole file; false with errno. */
bool lth_store_digest_file(int fd, char out_digest[LTH_DIGEST_TEXT]);
/* Every removal of a blob, so that caches of what is there hear of it. True when it was there. */
bool lth_store_remove_blob(struct lth_store *store, const char *path);
void lth_store_note_verified(struct lth_store *store, const char *digest);

#endif
