/* Status codes: lookups over the table. */
#include "runtime/base/status.h"

#include <assert.h>
#include <string.h>

static const struct {
	const char *slug, *text;
	int http, exit;
} codes[LTH_NUM_CODES] = {
#define LTH_STATUS(name, http, exit, slug, text) [LTH_##name] = {slug, text, http, exit},
#include "runtime/base/status.def"
#undef LTH_STATUS
};

const char *lth_code_text(enum lth_code code)
{
	assert(code < LTH_NUM_CODES);
	return codes[code].text;
}

const char *lth_code_slug(enum lth_code code)
{
	assert(code < LTH_NUM_CODES);
	return codes[code].slug;
}

int lth_code_http(enum lth_code code)
{
	assert(code < LTH_NUM_CODES);
	return codes[code].http;
}

int lth_code_exit(enum lth_code code)
{
	assert(code < LTH_NUM_CODES);
	return codes[code].exit;
}

enum lth_code lth_code_by_slug(const char *slug)
{
	for (int code = 0; code < LTH_NUM_CODES; code++)
		if (strcmp(codes[code].slug, slug) == 0)
			return (enum lth_code)code;
	return LTH_NUM_CODES;
}
