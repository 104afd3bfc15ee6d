/* Finds the value that a path leads to in well-formed JSON text, and tells its line and column. Only run to report a
 * fault, so it simply scans from the start. */
#include "compiler/import/json_internal.h"

#include <stdio.h>
#include <string.h>

struct scanner {
	const char *text;
	size_t size, at;
};

static char peek(struct scanner *scanner)
{
	while (scanner->at < scanner->size && strchr(" \t\r\n", scanner->text[scanner->at]) &&
	       scanner->text[scanner->at])
		scanner->at++;
	return scanner->at < scanner->size ? scanner->text[scanner->at] : 0;
}

static bool take(struct scanner *scanner, char c)
{
	if (peek(scanner) != c)
		return false;
	scanner->at++;
	return true;
}

static void skip_string(struct scanner *scanner)
{
	scanner->at++;
	while (scanner->at < scanner->size && scanner->text[scanner->at] != '"')
		scanner->at += scanner->text[scanner->at] == '\\' ? 2 : 1;
	scanner->at++;
}

/* Behind the value at hand; brackets are counted, so that nesting costs no stack. */
static void skip_value(struct scanner *scanner)
{
	size_t depth = 0;
	do {
		char c = peek(scanner);
		if (c == 0)
			return;
		if (c == '"') {
			skip_string(scanner);
			continue;
		}
		if (c == '{' || c == '[')
			depth++;
		if ((c == '}' || c == ']') && depth-- == 0)
			return;
		scanner->at++;
		bool scalar = !strchr("{}[],:", c);
		while (scalar && scanner->at < scanner->size && !strchr(" \t\r\n{}[],:\"", scanner->text[scanner->at]))
			scanner->at++;
	} while (depth);
}

/* Whether the key's text at hand is `key`; keys with escapes compare by their plain part only. */
static bool key_is(const struct scanner *scanner, const char *key)
{
	size_t length = strlen(key), at = scanner->at + 1;
	return at + length < scanner->size && memcmp(scanner->text + at, key, length) == 0 &&
	       scanner->text[at + length] == '"';
}

static bool enter(struct scanner *scanner, const struct lth_json_path *step)
{
	if (step->key) {
		if (!take(scanner, '{'))
			return false;
		while (peek(scanner) == '"') {
			bool found = key_is(scanner, step->key);
			skip_string(scanner);
			if (!take(scanner, ':'))
				return false;
			if (found)
				return true;
			skip_value(scanner);
			take(scanner, ',');
		}
		return false;
	}
	if (!take(scanner, '['))
		return false;
	for (size_t i = 0; i < step->index; i++) {
		skip_value(scanner);
		if (!take(scanner, ','))
			return false;
	}
	return true;
}

static void follow(struct scanner *scanner, const struct lth_json_path *path, unsigned depth)
{
	if (!path || depth > 1000)
		return;
	follow(scanner, path->parent, depth + 1);
	size_t before = scanner->at;
	if (path->parent && !enter(scanner, path))
		scanner->at = before; /* the place of what holds it */
}

void lth_json_locate(const char *text, size_t size, const struct lth_json_path *path, char *out, size_t out_size)
{
	struct scanner scanner = {text, size, 0};
	size_t line = 1, start = 0;
	follow(&scanner, path, 0);
	peek(&scanner);
	for (size_t i = 0; i < scanner.at && i < size; i++) {
		if (text[i] == '\n') {
			line++;
			start = i + 1;
		}
	}
	snprintf(out, out_size, "%zu:%zu", line, scanner.at - start + 1);
}
