/* Fuzz target: the options of a compile as the daemon reads them, from query arguments (one `name=value` a line) or, after
 * a `{`, from a JSON object; and the action key of what passed the check, which must not depend on how it was written. */
#include "daemon/options.h"
#include "tests/fuzz/fuzz_daemon.h"

#include <string.h>

static void key_of(const struct lth_description *description, const json_t *options, char out_key[LTH_DIGEST_TEXT])
{
	struct lth_diag diag = {0};
	if (lth_options_key(description, "sha256:m", NULL, options, "", out_key, &diag) != LTH_OK)
		abort(); /* what passed the check has a key */
}

static void make_key(const struct lth_description *description, const json_t *options)
{
	struct lth_diag diag = {0};
	char key[LTH_DIGEST_TEXT], again[LTH_DIGEST_TEXT];
	if (lth_options_check(description, options, &diag) != LTH_OK) {
		if (!diag.found[0])
			abort(); /* an error without a reason */
		return;
	}
	key_of(description, options, key);
	char *text = json_dumps(options, JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
	json_t *other = text ? json_loads(text, 0, NULL) : NULL;
	free(text);
	if (!other)
		return;
	key_of(description, other, again);
	if (strcmp(key, again) != 0)
		abort(); /* the same options in another order */
	json_decref(other);
}

static void query(const struct lth_description *description, char *text)
{
	json_t *options = json_object();
	char *rest = text;
	for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
		struct lth_diag diag = {0};
		char *equals = strchr(line, '=');
		if (!equals)
			continue;
		*equals = 0;
		if (lth_options_add(description, options, line, equals + 1, &diag) != LTH_OK && !diag.found[0])
			abort(); /* an error without a reason */
	}
	make_key(description, options);
	json_decref(options);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct lth_description description;
	char *text = malloc(size + 1);
	load_description(&description);
	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	if (*text == '{') {
		json_t *options = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
		if (json_is_object(options))
			make_key(&description, options);
		json_decref(options);
	} else {
		query(&description, text);
	}
	free(text);
	return 0;
}
