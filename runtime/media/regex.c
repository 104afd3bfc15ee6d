/* Regular expressions by PCRE2, in its interpreter: compiled code would need memory that is writable and executable,
 * which sandboxes deny. PCRE2 backtracks where RE2 does not, so a pattern can be made to take exponential time: steps,
 * nesting and heap of a match are limited, and a match that reaches a limit is an error, never a guess. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "runtime/media/regex.h"

#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	MAX_STEPS = 10 * 1000 * 1000, /* PCRE2's own default: some tenths of a second */
	MAX_DEPTH = 1000 * 1000,
	MAX_HEAP_KIB = 64 * 1024,
	MAX_PATTERN = 64 * 1024,
};

struct lathe_regex {
	pcre2_code *code;
	pcre2_match_data *data;
	pcre2_match_context *context;
};

static void describe(int error, char message[LATHE_MEDIA_MESSAGE])
{
	PCRE2_UCHAR8 words[LATHE_MEDIA_MESSAGE];
	if (pcre2_get_error_message(error, words, sizeof(words)) < 0)
		words[0] = 0;
	snprintf(message, LATHE_MEDIA_MESSAGE, "%s", (const char *)words);
}

/* A pattern's code, by RE2's reading of newlines and of the end. */
static enum lathe_media_code compile(const char *pattern, size_t size, pcre2_code **out_code,
				     char message[LATHE_MEDIA_MESSAGE])
{
	char words[LATHE_MEDIA_MESSAGE];
	int error;
	PCRE2_SIZE place;
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);
	if (!context)
		return LATHE_MEDIA_MEMORY;
	pcre2_set_newline(context, PCRE2_NEWLINE_LF);
	pcre2_set_max_pattern_length(context, MAX_PATTERN);
	*out_code = pcre2_compile((PCRE2_SPTR)pattern, size,
				  PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C |
					  PCRE2_ANCHORED | PCRE2_ENDANCHORED,
				  &error, &place, context);
	pcre2_compile_context_free(context);
	if (*out_code)
		return LATHE_MEDIA_OK;
	if (error == PCRE2_ERROR_HEAP_FAILED)
		return LATHE_MEDIA_MEMORY;
	describe(error, words);
	snprintf(message, LATHE_MEDIA_MESSAGE, "byte %zu of the pattern: %.110s", (size_t)place, words);
	return LATHE_MEDIA_BROKEN;
}

enum lathe_media_code lth_regex_open(const char *pattern, size_t size, struct lathe_regex **out_regex,
				     char message[LATHE_MEDIA_MESSAGE])
{
	struct lathe_regex *regex = calloc(1, sizeof(*regex));
	if (!regex)
		return LATHE_MEDIA_MEMORY;
	enum lathe_media_code code = compile(pattern, size, &regex->code, message);
	if (code == LATHE_MEDIA_OK) {
		regex->data = pcre2_match_data_create_from_pattern(regex->code, NULL);
		regex->context = pcre2_match_context_create(NULL);
		if (!regex->data || !regex->context)
			code = LATHE_MEDIA_MEMORY;
	}
	if (code != LATHE_MEDIA_OK) {
		lth_regex_close(&regex);
		return code;
	}
	pcre2_set_match_limit(regex->context, MAX_STEPS);
	pcre2_set_depth_limit(regex->context, MAX_DEPTH);
	pcre2_set_heap_limit(regex->context, MAX_HEAP_KIB);
	*out_regex = regex;
	return LATHE_MEDIA_OK;
}

enum lathe_media_code lth_regex_match(struct lathe_regex *regex, const char *text, size_t size, int *out_matches,
				      char message[LATHE_MEDIA_MESSAGE])
{
	int count = pcre2_match(regex->code, (PCRE2_SPTR)text, size, 0, 0, regex->data, regex->context);
	if (count < 0 && count != PCRE2_ERROR_NOMATCH) {
		describe(count, message);
		return count == PCRE2_ERROR_NOMEMORY ? LATHE_MEDIA_MEMORY : LATHE_MEDIA_LIMIT;
	}
	/* Bytes that are no UTF-8 end a fragment, which the anchors take for the text: ask for the text's own ends. */
	const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(regex->data);
	*out_matches = count > 0 && ends[0] == 0 && ends[1] == size;
	return LATHE_MEDIA_OK;
}

void lth_regex_close(struct lathe_regex **regex)
{
	if (!*regex)
		return;
	pcre2_match_context_free((*regex)->context);
	pcre2_match_data_free((*regex)->data);
	pcre2_code_free((*regex)->code);
	free(*regex);
	*regex = NULL;
}
