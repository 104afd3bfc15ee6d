/* Diagnostics. See diag.h. */
#include "runtime/base/diag.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Copies with an ellipsis where it does not fit. */
static void put(char *out, size_t size, const char *text)
{
	size_t length = text ? strlen(text) : 0;
	if (length < size) {
		if (length)
			memcpy(out, text, length);
		out[length] = 0;
		return;
	}
	memcpy(out, text, size - 4);
	memcpy(out + size - 4, "...", 4);
}

enum lth_code lth_diag_fail(struct lth_diag *diag, enum lth_code code, const char *place, const char *expected,
			    const char *advice, const char *found_format, ...)
{
	assert(code != LTH_OK);
	if (diag->code != LTH_OK)
		return code;
	char text[sizeof(diag->found) + 64];
	va_list args;
	va_start(args, found_format);
	vsnprintf(text, sizeof(text), found_format, args);
	va_end(args);
	diag->code = code;
	put(diag->place, sizeof(diag->place), place);
	put(diag->found, sizeof(diag->found), text);
	put(diag->expected, sizeof(diag->expected), expected);
	put(diag->advice, sizeof(diag->advice), advice);
	return code;
}

void lth_diag_within(struct lth_diag *diag, const char *format, ...)
{
	char old[sizeof(diag->place)], text[sizeof(diag->place) * 3];
	va_list args;
	memcpy(old, diag->place, sizeof(old));
	va_start(args, format);
	int used = vsnprintf(text, sizeof(text) - sizeof(old), format, args);
	va_end(args);
	if (used < 0)
		return;
	size_t at = strlen(text);
	snprintf(text + at, sizeof(text) - at, "%s%s", old[0] ? ": " : "", old);
	put(diag->place, sizeof(diag->place), text);
}

const char *lth_diag_line(const struct lth_diag *diag, char *buffer, unsigned long size)
{
	snprintf(buffer, size, "%s: %s%sfound %s%s%s%s%s", lth_code_text(diag->code), diag->place,
		 diag->place[0] ? ": " : "", diag->found, diag->expected[0] ? ", expected " : "", diag->expected,
		 diag->advice[0] ? "; " : "", diag->advice);
	return buffer;
}

enum lth_code lth_diag_read_line(struct lth_diag *diag, enum lth_code code, const char *line)
{
	const char *title = lth_code_text(code);
	size_t length = strlen(title);
	if (strncmp(line, title, length) == 0 && strncmp(line + length, ": ", 2) == 0)
		line += length + 2;
	const char *found = strstr(line, ": found ");
	char place[sizeof(diag->place)] = "";
	if (found && (size_t)(found - line) < sizeof(place)) {
		memcpy(place, line, (size_t)(found - line));
		line = found + strlen(": found ");
	} else if (strncmp(line, "found ", 6) == 0) {
		line += 6;
	}
	return lth_diag_fail(diag, code, place, NULL, NULL, "%s", line);
}

/* Levenshtein distance with letter case ignored, cut off at words of 64 letters. */
static unsigned distance(const char *a, const char *b)
{
	enum { MAX = 64 };
	unsigned row[MAX + 1];
	size_t na = strlen(a), nb = strlen(b);
	if (na > MAX || nb > MAX)
		return MAX;
	for (size_t j = 0; j <= nb; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; i <= na; i++) {
		unsigned diagonal = row[0];
		row[0] = (unsigned)i;
		for (size_t j = 1; j <= nb; j++) {
			unsigned above = row[j];
			char ca = a[i - 1], cb = b[j - 1];
			ca = (char)(ca >= 'A' && ca <= 'Z' ? ca + 32 : ca);
			cb = (char)(cb >= 'A' && cb <= 'Z' ? cb + 32 : cb);
			unsigned best = diagonal + (ca != cb);
			best = best < above + 1 ? best : above + 1;
			best = best < row[j - 1] + 1 ? best : row[j - 1] + 1;
			row[j] = best;
			diagonal = above;
		}
	}
	return row[nb];
}

const char *lth_nearest(const char *word, const char *const *names, unsigned long count)
{
	const char *best = NULL;
	unsigned best_distance = (unsigned)strlen(word) / 3 + 2;
	for (unsigned long i = 0; i < count; i++) {
		unsigned d = distance(word, names[i]);
		if (d < best_distance) {
			best = names[i];
			best_distance = d;
		}
	}
	return best;
}
