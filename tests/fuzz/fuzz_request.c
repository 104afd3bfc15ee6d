/* Fuzz target: what the daemon reads from a request before any worker sees it. The first byte chooses the parser: query
 * arguments (one `name=value` a line), a JSON options object, or one of the header parsers. */
#include "daemon/negotiate.h"
#include "daemon/options.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char table[] =
	"{\"build\":\"b\",\"passes\":[{\"name\":\"FoldConstant\"},{\"name\":\"MemoryPlan\"}],\"options\":["
	"{\"path\":\"opt_level\",\"type\":\"int\",\"min\":0,\"max\":3,\"default\":2},"
	"{\"path\":\"disabled_passes\",\"type\":\"list\",\"singular\":\"disabled_pass\",\"values_from\":\"passes\","
	"\"set\":true},"
	"{\"path\":\"dims\",\"type\":\"dims\",\"singular\":\"dim\"},{\"path\":\"memory.seed\",\"type\":\"int\"},"
	"{\"path\":\"measure.dims\",\"type\":\"map\"},{\"path\":\"ratio\",\"type\":\"number\"},"
	"{\"path\":\"variants\",\"type\":\"variants\"},{\"path\":\"target\",\"type\":\"any\"},"
	"{\"path\":\"verify\",\"type\":\"bool\"}]}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void make_key(const struct lth_description *description, const json_t *options)
{
	struct lth_diag diag = {0};
	char key[LTH_DIGEST_TEXT];
	if (lth_options_check(description, options, &diag) == LTH_OK &&
	    lth_options_key(description, "sha256:m", NULL, options, "", key, &diag) != LTH_OK)
		abort(); /* what passed the check has a key */
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

static void headers(const char *text)
{
	uint64_t first, last;
	if (lth_range_parse(text, 1000, &first, &last) == LTH_RANGE_PART && (first > last || last >= 1000))
		abort();
	lth_accept(text);
	lth_content_type(text);
	lth_etag_listed(text, "\"sha256:0\"");
	lth_origin_allowed(text, text, true);
	lth_prefer_parse(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct lth_description description;
	struct lth_diag diag = {0};
	if (!description.root && lth_description_load(&description, table, sizeof(table) - 1, &diag) != LTH_OK)
		abort();
	char *text = size ? malloc(size) : NULL;
	if (!text)
		return 0;
	memcpy(text, data + 1, size - 1);
	text[size - 1] = 0;
	if (data[0] % 3 == 0) {
		query(&description, text);
	} else if (data[0] % 3 == 1) {
		json_t *options = json_loadb(text, size - 1, JSON_REJECT_DUPLICATES, NULL);
		if (options)
			make_key(&description, options);
		json_decref(options);
	} else {
		headers(text);
	}
	free(text);
	return 0;
}
