/* Header parsing. See negotiate.h. */
#include "daemon/negotiate.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *skip_blanks(const char *text)
{
	while (*text == ' ' || *text == '\t')
		text++;
	return text;
}

/* True when the first `length` letters of `text` are `word`, whatever the case. */
static bool is_word(const char *text, size_t length, const char *word)
{
	return strlen(word) == length && strncasecmp(text, word, length) == 0;
}

/* The q parameter of one element of an Accept header, in thousandths. */
static int quality(const char *parameters, size_t length)
{
	const char *end = parameters + length;
	for (const char *p = parameters; p < end; p++) {
		if (*p != ';')
			continue;
		p = skip_blanks(p + 1);
		if (p + 2 < end && (*p == 'q' || *p == 'Q') && p[1] == '=') {
			double q = strtod(p + 2, NULL);
			return q >= 1 ? 1000 : q > 0 ? (int)(q * 1000 + 0.5) : 0;
		}
		p--;
	}
	return 1000;
}

enum lth_media lth_accept(const char *accept)
{
	static const char *const names[LTH_NUM_MEDIA][2] = {{"application/json", "application/*"},
							    {"application/octet-stream", "application/*"},
							    {"text/plain", "text/*"}};
	int best[LTH_NUM_MEDIA] = {0}, specific[LTH_NUM_MEDIA] = {-1, -1, -1};
	for (const char *part = accept; part && *part;) {
		part = skip_blanks(part);
		size_t length = strcspn(part, ","), name = strcspn(part, ",; \t");
		int q = quality(part, length);
		for (int media = 0; media < LTH_NUM_MEDIA; media++) {
			int match = is_word(part, name, names[media][0])   ? 2
				    : is_word(part, name, names[media][1]) ? 1
				    : is_word(part, name, "*/*")           ? 0
									   : -1;
			if (match > specific[media]) {
				specific[media] = match;
				best[media] = q;
			}
		}
		part += length + (part[length] == ',');
	}
	enum lth_media chosen = LTH_MEDIA_JSON;
	for (int media = 1; media < LTH_NUM_MEDIA; media++)
		if (best[media] > best[chosen] ||
		    (best[media] == best[chosen] && best[media] && specific[media] > specific[chosen]))
			chosen = (enum lth_media)media;
	return chosen;
}

enum lth_content lth_content_type(const char *type)
{
	static const struct {
		const char *name;
		enum lth_content content;
	} types[] = {
		{"application/octet-stream", LTH_CONTENT_RAW}, {"application/onnx", LTH_CONTENT_RAW},
		{"application/x-onnx", LTH_CONTENT_RAW},       {"application/x-www-form-urlencoded", LTH_CONTENT_RAW},
		{"application/json", LTH_CONTENT_JSON},        {"text/csv", LTH_CONTENT_CSV},
	};
	if (!type || !*type)
		return LTH_CONTENT_RAW;
	size_t length = strcspn(type, "; \t");
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (is_word(type, length, types[i].name))
			return types[i].content;
	return LTH_CONTENT_OTHER;
}

static bool parse_position(const char **text, uint64_t *out)
{
	char *end;
	if (!isdigit((unsigned char)**text))
		return false;
	errno = 0;
	*out = strtoull(*text, &end, 10);
	*text = end;
	return errno == 0;
}

enum lth_range lth_range_parse(const char *range, uint64_t size, uint64_t *out_first, uint64_t *out_last)
{
	uint64_t first = 0, last = 0;
	if (!range || strncasecmp(range, "bytes=", 6) != 0 || strchr(range, ','))
		return LTH_RANGE_WHOLE;
	range = skip_blanks(range + 6);
	bool has_first = parse_position(&range, &first);
	if (*range != '-')
		return LTH_RANGE_WHOLE; /* malformed: as if it were not there */
	range++;
	bool has_last = parse_position(&range, &last);
	if (*skip_blanks(range) || (!has_first && !has_last) || (has_first && has_last && last < first))
		return LTH_RANGE_WHOLE;
	if (!has_first) { /* the last N bytes */
		if (!last || !size)
			return LTH_RANGE_OUTSIDE;
		*out_first = last < size ? size - last : 0;
		*out_last = size - 1;
		return LTH_RANGE_PART;
	}
	if (first >= size)
		return LTH_RANGE_OUTSIDE;
	*out_first = first;
	*out_last = has_last && last < size ? last : size - 1;
	return LTH_RANGE_PART;
}

bool lth_content_range_parse(const char *text, uint64_t *out_first, uint64_t *out_last, uint64_t *out_total)
{
	static const char unit[] = "bytes ";
	uint64_t numbers[3];
	const char ends[3] = {'-', '/', 0};
	if (strncmp(text, unit, sizeof(unit) - 1) != 0)
		return false;
	text += sizeof(unit) - 1;
	for (int i = 0; i < 3; i++) {
		size_t digits = strspn(text, "0123456789");
		if (!digits || digits > 18 || text[digits] != ends[i])
			return false;
		numbers[i] = strtoull(text, NULL, 10);
		text += digits + 1;
	}
	if (numbers[0] > numbers[1] || numbers[1] >= numbers[2])
		return false;
	*out_first = numbers[0];
	*out_last = numbers[1];
	*out_total = numbers[2];
	return true;
}

bool lth_etag_listed(const char *list, const char *etag)
{
	size_t size = strlen(etag);
	for (const char *part = list; part && *part;) {
		part = skip_blanks(part);
		if (*part == '*')
			return true;
		if (strncmp(part, "W/", 2) == 0)
			part += 2;
		if (strncmp(part, etag, size) == 0)
			return true;
		part += strcspn(part, ",");
		part += *part == ',';
	}
	return false;
}

bool lth_origin_allowed(const char *origin, const char *host, bool loopback)
{
	static const char *const loopback_names[] = {"localhost", "127.0.0.1", "[::1]"};
	if (!origin)
		return true;
	const char *authority = strncmp(origin, "http://", 7) == 0    ? origin + 7
				: strncmp(origin, "https://", 8) == 0 ? origin + 8
								      : NULL;
	if (!authority || !host || strcasecmp(authority, host) != 0)
		return false;
	if (!loopback)
		return true;
	const char *port = strrchr(authority, ':');
	size_t length = port && strspn(port + 1, "0123456789") == strlen(port + 1) ? (size_t)(port - authority)
										   : strlen(authority);
	for (size_t i = 0; i < sizeof(loopback_names) / sizeof(loopback_names[0]); i++)
		if (is_word(authority, length, loopback_names[i]))
			return true;
	return false;
}

struct lth_prefer lth_prefer_parse(const char *prefer)
{
	struct lth_prefer out = {.wait_seconds = -1};
	for (const char *part = prefer; part && *part;) {
		part = skip_blanks(part);
		size_t length = strcspn(part, ",;");
		if (is_word(part, strcspn(part, ",; \t"), "respond-async"))
			out.respond_async = true;
		else if (length > 5 && strncasecmp(part, "wait=", 5) == 0 && isdigit((unsigned char)part[5])) {
			long seconds = strtol(part + 5, NULL, 10);
			out.wait_seconds = seconds > 3600 ? 3600 : seconds;
		}
		part += strcspn(part, ",");
		part += *part == ',';
	}
	return out;
}
