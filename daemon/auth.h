/* Who may do what. With a token file, or with client certificates, every request but the open ones needs a role;
 * without either, whoever reaches the socket may do everything (which is why only loopback and Unix sockets are
 * listened on without them). Tokens are compared by their SHA-256 in constant time. Thread rule: loop thread. */
#ifndef LTH_DAEMON_AUTH_H
#define LTH_DAEMON_AUTH_H

#include "runtime/base/diag.h"
#include "runtime/base/sha256.h"

#include <stdbool.h>
#include <stddef.h>

/* Each role includes those before it. */
enum lth_role { LTH_ROLE_OPEN, LTH_ROLE_READ, LTH_ROLE_SUBMIT, LTH_ROLE_ADMIN, LTH_NUM_ROLE };

struct lth_token {
	char digest[LTH_DIGEST_TEXT], name[64];
	enum lth_role role;
};

struct lth_tokens {
	struct lth_token *list;
	size_t count;
};

/* A line a token: TOKEN ROLE [NAME], with ROLE read, submit or admin; # begins a comment. The file must not be readable
 * for others. On failure `*tokens` keeps what it had. */
LTH_MUST_CHECK enum lth_code lth_tokens_load(struct lth_tokens *tokens, const char *path, struct lth_diag *diag);
void lth_tokens_free(struct lth_tokens *tokens);
/* The token of an Authorization header ("Bearer TOKEN"); NULL when it is none of ours. */
const struct lth_token *lth_tokens_find(const struct lth_tokens *tokens, const char *authorization);

#endif
