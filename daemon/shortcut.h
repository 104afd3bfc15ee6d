/* The short cut of requests that came before: which action a model with these query arguments means, without parsing
 * the options and hashing the key again. A fixed table, direct-mapped; what it forgets is only computed anew. Cleared
 * when the workers describe themselves anew, since the description decides what arguments mean. Thread rule: loop
 * thread. */
#ifndef LTH_DAEMON_SHORTCUT_H
#define LTH_DAEMON_SHORTCUT_H

#include "runtime/base/sha256.h"

enum { LTH_SHORTCUTS = 1024, LTH_SHORTCUT_ARGUMENTS = 248 };

struct lth_shortcuts {
	struct lth_shortcut {
		char model[LTH_DIGEST_TEXT]; /* empty: none */
		char key[LTH_DIGEST_TEXT];
		char arguments[LTH_SHORTCUT_ARGUMENTS];            /* name NUL value NUL ... NUL */
		size_t size;                                       /* of the arguments */
	} slots[LTH_SHORTCUTS];
};

/* The action key; NULL when it is not known. Borrowed until the next change. */
const char *lth_shortcut_find(const struct lth_shortcuts *shortcuts, const struct lth_shortcut *request);
/* `request` has everything but the key. */
void lth_shortcut_keep(struct lth_shortcuts *shortcuts, const struct lth_shortcut *request, const char *key);
void lth_shortcut_clear(struct lth_shortcuts *shortcuts);

#endif
