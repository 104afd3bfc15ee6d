/* A table from requests to action keys. See shortcut.h. */
#include "daemon/shortcut.h"
#include "runtime/base/hash.h"

#include <string.h>

static size_t slot_of(const struct lth_shortcut *request)
{
	uint64_t hash = lth_hash_bytes(request->model, sizeof(request->model), 0);
	return lth_hash_bytes(request->arguments, request->size, hash) % LTH_SHORTCUTS;
}

const char *lth_shortcut_find(const struct lth_shortcuts *shortcuts, const struct lth_shortcut *request)
{
	const struct lth_shortcut *known = &shortcuts->slots[slot_of(request)];
	bool same = known->key[0] && known->size == request->size && strcmp(known->model, request->model) == 0 &&
		    memcmp(known->arguments, request->arguments, request->size) == 0;
	return same ? known->key : NULL;
}

void lth_shortcut_keep(struct lth_shortcuts *shortcuts, const struct lth_shortcut *request, const char *key)
{
	struct lth_shortcut *slot = &shortcuts->slots[slot_of(request)];
	*slot = *request;
	memcpy(slot->key, key, sizeof(slot->key));
}

void lth_shortcut_clear(struct lth_shortcuts *shortcuts)
{
	memset(shortcuts, 0, sizeof(*shortcuts));
}
