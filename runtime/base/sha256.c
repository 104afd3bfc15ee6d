/* SHA-256 by libcrypto. See sha256.h. */
#include "runtime/base/sha256.h"

#include <assert.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

struct lth_sha256 {
	EVP_MD_CTX *context;
};

struct lth_sha256 *lth_sha256_create(void)
{
	struct lth_sha256 *hash = malloc(sizeof(*hash));
	if (!hash)
		return NULL;
	hash->context = EVP_MD_CTX_new();
	if (!hash->context || EVP_DigestInit_ex(hash->context, EVP_sha256(), NULL) != 1) {
		EVP_MD_CTX_free(hash->context);
		free(hash);
		return NULL;
	}
	return hash;
}

void lth_sha256_update(struct lth_sha256 *hash, const void *bytes, size_t size)
{
	int ok = EVP_DigestUpdate(hash->context, bytes, size);
	assert(ok == 1);
	(void)ok;
}

static void to_text(const unsigned char digest[32], char out_text[LTH_DIGEST_TEXT])
{
	static const char hex[] = "0123456789abcdef";
	memcpy(out_text, "sha256:", 7);
	for (int i = 0; i < 32; i++) {
		out_text[7 + 2 * i] = hex[digest[i] >> 4];
		out_text[8 + 2 * i] = hex[digest[i] & 15];
	}
	out_text[LTH_DIGEST_TEXT - 1] = 0;
}

void lth_sha256_finish(struct lth_sha256 **hash, char out_text[LTH_DIGEST_TEXT])
{
	unsigned char digest[32];
	int ok = EVP_DigestFinal_ex((*hash)->context, digest, NULL);
	assert(ok == 1);
	(void)ok;
	EVP_MD_CTX_free((*hash)->context);
	free(*hash);
	*hash = NULL;
	to_text(digest, out_text);
}

void lth_sha256_text(const void *bytes, size_t size, char out_text[LTH_DIGEST_TEXT])
{
	unsigned char digest[32];
	int ok = EVP_Digest(bytes, size, digest, NULL, EVP_sha256(), NULL);
	assert(ok == 1);
	(void)ok;
	to_text(digest, out_text);
}

bool lth_digest_valid(const char *text)
{
	if (strncmp(text, "sha256:", 7) != 0 || strlen(text) != LTH_DIGEST_TEXT - 1)
		return false;
	return strspn(text + 7, "0123456789abcdef") == 64;
}
