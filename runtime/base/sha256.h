/* SHA-256 by libcrypto (FIPS 180-4), and its text form "sha256:HEX" that names blobs, models and kernels. */
#ifndef LTH_BASE_SHA256_H
#define LTH_BASE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LTH_DIGEST_TEXT = 7 + 64 + 1 }; /* "sha256:", 64 hex digits, NUL */

struct lth_sha256; /* an incremental hash */

struct lth_sha256 *lth_sha256_create(void); /* NULL when out of memory */
void lth_sha256_update(struct lth_sha256 *hash, const void *bytes, size_t size);
/* Writes the digest's text and destroys the hash. */
void lth_sha256_finish(struct lth_sha256 **hash, char out_text[LTH_DIGEST_TEXT]);

void lth_sha256_text(const void *bytes, size_t size, char out_text[LTH_DIGEST_TEXT]);
/* True for exactly "sha256:" and 64 lower-case hex digits. */
bool lth_digest_valid(const char *text);

#endif
