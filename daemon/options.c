/* Options: query strings, checks, action keys. See options.h. */
#include "daemon/options.h"
#include "runtime/base/buf.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum lth_code unknown(const char *name, const char *const *names, size_t count, const char *what,
			     struct lth_diag *diag)
{
	char advice[256] = "";
	const char *nearest = lth_nearest(name, names, count);
	if (nearest)
		snprintf(advice, sizeof(advice), "did you mean %s?", nearest);
	else if (count)
		snprintf(advice, sizeof(advice),
			 "lathe options and lathe passes (/v1/options, /v1/passes) list what there is");
	return lth_diag_fail(diag, LTH_INVALID_OPTION, name, NULL, advice, "the unknown %s '%s'", what, name);
}

static enum lth_code wrong(const struct lth_option_row *row, const char *expected, const char *found,
			   struct lth_diag *diag)
{
	return lth_diag_fail(diag, LTH_INVALID_OPTION, row->path, expected, NULL, "%s", *found ? found : "nothing");
}

/* Which of two values was meant, nobody knows. */
static enum lth_code twice(const struct lth_option_row *row, struct lth_diag *diag)
{
	return wrong(row, "one value", "two", diag);
}

/* --- from a query string */
static bool parse_integer(const char *text, json_int_t *out)
{
	char *end;
	errno = 0;
	long long value = strtoll(text, &end, 10);
	if (errno || end == text || *end)
		return false;
	*out = value;
	return true;
}

static json_t *scalar(const struct lth_option_row *row, const char *text)
{
	json_int_t integer;
	char *end;
	switch (row->type) {
	case LTH_OPTION_BOOL:
		if (strcmp(text, "true") == 0 || strcmp(text, "1") == 0)
			return json_true();
		return strcmp(text, "false") == 0 || strcmp(text, "0") == 0 ? json_false() : NULL;
	case LTH_OPTION_INT: return parse_integer(text, &integer) ? json_integer(integer) : NULL;
	case LTH_OPTION_NUMBER: {
		double number = strtod(text, &end);
		return end != text && !*end && isfinite(number) ? json_real(number) : NULL;
	}
	case LTH_OPTION_ANY:
		if (parse_integer(text, &integer))
			return json_integer(integer);
		return json_string(text);
	case LTH_OPTION_STRING: return json_string(text);
	default: return NULL;
	}
}

/* Puts `value` (taken) at a dotted path, making the objects on the way. */
static bool put(json_t *options, const char *path, json_t *value)
{
	char part[128];
	const char *dot;
	while (value && (dot = strchr(path, '.')) != NULL) {
		snprintf(part, sizeof(part), "%.*s", (int)(dot - path), path);
		json_t *inner = json_object_get(options, part);
		if (!json_is_object(inner)) {
			inner = json_object();
			json_object_set_new(options, part, inner);
		}
		options = inner;
		path = dot + 1;
	}
	return json_object_set_new(options, path, value) == 0;
}

static json_t *get(const json_t *options, const char *path)
{
	char part[128];
	const char *dot;
	while (options && (dot = strchr(path, '.')) != NULL) {
		snprintf(part, sizeof(part), "%.*s", (int)(dot - path), path);
		options = json_object_get(options, part);
		path = dot + 1;
	}
	return options ? json_object_get(options, path) : NULL;
}

/* min[:max[:hint]][:xMULTIPLE]; a max of * is none */
static json_t *dim_range(const char *text)
{
	static const char *const keys[] = {"min", "max", "hint"};
	json_t *range = json_object();
	char *copy = strdup(text), *rest = copy;
	int position = 0;
	bool ok = range && copy, open = false;
	for (char *part; ok && (part = strsep(&rest, ":")) != NULL;) {
		json_int_t number;
		bool multiple = part[0] == 'x';
		if (position == 1 && strcmp(part, "*") == 0) {
			open = true;
			position++;
			continue;
		}
		ok = parse_integer(part + multiple, &number) &&
		     (multiple ? rest == NULL && position > 0 : position < 3) &&
		     json_object_set_new(range, multiple ? "multiple" : keys[position], json_integer(number)) == 0;
		position++;
	}
	if (ok && !open && !json_object_get(range, "max")) /* one number: a fixed extent */
		json_object_set(range, "max", json_object_get(range, "min"));
	free(copy);
	if (ok)
		return range;
	json_decref(range);
	return NULL;
}

static enum lth_code add_dim(const struct lth_option_row *row, json_t *options, const char *value,
			     struct lth_diag *diag)
{
	static const char expected[] = "NAME=SIZE, NAME=MIN:MAX or NAME=MIN:MAX:HINT, a MAX of * for none, with "
				       ":xMULTIPLE at the end if wanted";
	char name[256];
	const char *equals = strrchr(value, '=');
	if (!equals || equals == value || (size_t)(equals - value) >= sizeof(name))
		return wrong(row, expected, value, diag);
	snprintf(name, sizeof(name), "%.*s", (int)(equals - value), value);
	json_t *range = dim_range(equals + 1);
	if (!range)
		return wrong(row, expected, value, diag);
	json_t *dims = get(options, row->path);
	if (!dims) {
		dims = json_object();
		put(options, row->path, dims);
	}
	if (json_object_get(dims, name)) {
		json_decref(range);
		return twice(row, diag);
	}
	return json_object_set_new(dims, name, range) == 0 ? LTH_OK
							   : wrong(row, "a name in UTF-8", "another encoding", diag);
}

static enum lth_code add_to_list(const struct lth_option_row *row, json_t *options, const char *value,
				 struct lth_diag *diag)
{
	json_t *list = get(options, row->path);
	if (!list) {
		list = json_array();
		put(options, row->path, list);
	}
	return json_array_append_new(list, json_string(value)) == 0 ? LTH_OK
								    : wrong(row, "UTF-8", "another encoding", diag);
}

/* measure.dims.batch=4: the row measure.dims is a map. */
static enum lth_code add_to_map(const struct lth_description *description, json_t *options, const char *name,
				const char *value, bool *out_found, struct lth_diag *diag)
{
	*out_found = false;
	for (size_t i = 0; i < description->num_options; i++) {
		const struct lth_option_row *row = &description->options[i];
		size_t length = strlen(row->path);
		json_int_t number;
		if (row->type != LTH_OPTION_MAP || strncmp(name, row->path, length) != 0 || name[length] != '.')
			continue;
		*out_found = true;
		if (!parse_integer(value, &number))
			return wrong(row, "a whole number", value, diag);
		json_t *map = get(options, row->path);
		if (!map) {
			map = json_object();
			put(options, row->path, map);
		}
		if (json_object_get(map, name + length + 1))
			return twice(row, diag);
		return json_object_set_new(map, name + length + 1, json_integer(number)) == 0
			       ? LTH_OK
			       : wrong(row, "a name in UTF-8", "another encoding", diag);
	}
	return LTH_OK;
}

enum lth_code lth_options_add(const struct lth_description *description, json_t *options, const char *name,
			      const char *value, struct lth_diag *diag)
{
	static const char *const expected[] = {
		[LTH_OPTION_BOOL] = "true or false",
		[LTH_OPTION_INT] = "a whole number",
		[LTH_OPTION_NUMBER] = "a number",
		[LTH_OPTION_STRING] = "text in UTF-8",
		[LTH_OPTION_MAP] = "NAME.KEY=NUMBER",
		[LTH_OPTION_VARIANTS] = "a JSON body: this option has no form in a query string",
		[LTH_OPTION_ANY] = "text in UTF-8",
	};
	const struct lth_option_row *row = NULL;
	for (size_t i = 0; i < description->num_options; i++)
		if (strcmp(description->options[i].query_name, name) == 0)
			row = &description->options[i];
	if (!row) {
		bool found;
		enum lth_code code = add_to_map(description, options, name, value, &found, diag);
		return found ? code : unknown(name, description->query_names, description->num_options, "option", diag);
	}
	if (row->type == LTH_OPTION_DIMS)
		return add_dim(row, options, value, diag);
	if (row->type == LTH_OPTION_LIST)
		return add_to_list(row, options, value, diag);
	if (get(options, row->path))
		return twice(row, diag);
	json_t *parsed = scalar(row, value);
	if (!parsed)
		return wrong(row, expected[row->type], value, diag);
	return put(options, row->path, parsed) ? LTH_OK
					       : lth_diag_fail(diag, LTH_OUT_OF_MEMORY, name, NULL, NULL, "an option");
}

/* --- checks */
static const char *kind_name(const json_t *value)
{
	static const char *const names[] = {"an object",     "a list", "a string", "a whole number",
					    "a real number", "true",   "false",    "null"};
	return names[json_typeof(value)];
}

static enum lth_code check_word(const struct lth_option_row *row, const json_t *value, struct lth_diag *diag)
{
	const char *word = json_string_value(value);
	if (!word)
		return wrong(row, "a string", kind_name(value), diag);
	if (!row->values)
		return LTH_OK;
	for (size_t i = 0; i < row->num_values; i++)
		if (strcmp(row->values[i], word) == 0)
			return LTH_OK;
	enum lth_code code = unknown(word, row->values, row->num_values, "value", diag);
	snprintf(diag->place, sizeof(diag->place), "%s", row->path);
	return code;
}

static enum lth_code check_number(const struct lth_option_row *row, const json_t *value, struct lth_diag *diag)
{
	char range[96], found[48];
	double number = json_number_value(value);
	if (!json_is_number(value) || (row->type == LTH_OPTION_INT && number != floor(number)))
		return wrong(row, row->type == LTH_OPTION_INT ? "a whole number" : "a number", kind_name(value), diag);
	bool low = row->minimum && number < json_number_value(row->minimum);
	bool high = json_is_number(row->maximum) && number > json_number_value(row->maximum);
	if (!low && !high)
		return LTH_OK;
	snprintf(range, sizeof(range), json_is_number(row->maximum) ? "%.15g to %.15g" : "%.15g or more",
		 row->minimum ? json_number_value(row->minimum) : -INFINITY, json_number_value(row->maximum));
	snprintf(found, sizeof(found), "%.15g", number);
	return wrong(row, range, found, diag);
}

static enum lth_code check_dims(const struct lth_option_row *row, const json_t *value, struct lth_diag *diag)
{
	static const char *const keys[] = {"min", "max", "hint", "multiple"};
	const char *name, *key;
	char place[300];
	json_t *range, *number;
	if (!json_is_object(value))
		return wrong(row, "an object of ranges by name", kind_name(value), diag);
	json_object_foreach((json_t *)(uintptr_t)value, name, range) {
		snprintf(place, sizeof(place), "%s.%s", row->path, name);
		if (!json_is_object(range))
			return lth_diag_fail(diag, LTH_INVALID_OPTION, place, "a range such as {\"min\":1,\"max\":64}",
					     NULL, "%s", kind_name(range));
		json_object_foreach(range, key, number) {
			bool known = false;
			for (int i = 0; i < 4; i++)
				known = known || strcmp(keys[i], key) == 0;
			if (!known)
				return unknown(key, keys, 4, "member of a range", diag);
			if (!json_is_integer(number) || json_integer_value(number) < 0)
				return lth_diag_fail(diag, LTH_INVALID_OPTION, place, "whole numbers, 0 or more", NULL,
						     "%s of %s", kind_name(number), key);
		}
		const json_t *low = json_object_get(range, "min"), *high = json_object_get(range, "max");
		if (low && high && json_integer_value(low) > json_integer_value(high))
			return lth_diag_fail(diag, LTH_INVALID_OPTION, place, "min at most max", NULL,
					     "min %lld above max %lld", (long long)json_integer_value(low),
					     (long long)json_integer_value(high));
	}
	return LTH_OK;
}

static enum lth_code check_value(const struct lth_description *description, const struct lth_option_row *row,
				 const json_t *value, struct lth_diag *diag)
{
	enum lth_code code = LTH_OK;
	size_t index;
	json_t *entry;
	const char *key;
	switch (row->type) {
	case LTH_OPTION_BOOL:
		return json_is_boolean(value) ? LTH_OK : wrong(row, "true or false", kind_name(value), diag);
	case LTH_OPTION_INT:
	case LTH_OPTION_NUMBER: return check_number(row, value, diag);
	case LTH_OPTION_STRING: return check_word(row, value, diag);
	case LTH_OPTION_DIMS: return check_dims(row, value, diag);
	case LTH_OPTION_LIST:
	case LTH_OPTION_VARIANTS:
		if (!json_is_array(value))
			return wrong(row, "a list", kind_name(value), diag);
		json_array_foreach((json_t *)(uintptr_t)value, index, entry) {
			if (code == LTH_OK)
				code = row->type == LTH_OPTION_LIST ? check_word(row, entry, diag)
								    : lth_options_check(description, entry, diag);
		}
		return code;
	case LTH_OPTION_MAP:
		if (!json_is_object(value))
			return wrong(row, "an object of whole numbers by name", kind_name(value), diag);
		json_object_foreach((json_t *)(uintptr_t)value, key, entry)
			if (code == LTH_OK && !json_is_integer(entry))
				code = wrong(row, "whole numbers", kind_name(entry), diag);
		return code;
	default: return LTH_OK;
	}
}

static enum lth_code check_object(const struct lth_description *description, const json_t *object, const char *prefix,
				  struct lth_diag *diag)
{
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)object, key, value) {
		char path[256];
		enum lth_code code;
		snprintf(path, sizeof(path), "%s%s%s", prefix, *prefix ? "." : "", key);
		const struct lth_option_row *row = lth_description_option(description, path);
		bool leads = false; /* is some option's path below this one? */
		size_t length = strlen(path);
		for (size_t i = 0; !row && i < description->num_options; i++)
			leads = leads || (strncmp(description->options[i].path, path, length) == 0 &&
					  description->options[i].path[length] == '.');
		if (row)
			code = json_is_null(value) ? LTH_OK : check_value(description, row, value, diag);
		else if (leads && json_is_object(value))
			code = check_object(description, value, path, diag);
		else
			code = unknown(path, description->paths, description->num_options, "option", diag);
		if (code != LTH_OK)
			return code;
	}
	return LTH_OK;
}

enum lth_code lth_options_check(const struct lth_description *description, const json_t *options, struct lth_diag *diag)
{
	if (!json_is_object(options))
		return lth_diag_fail(diag, LTH_INVALID_OPTION, "options", "an object", NULL, "%s", kind_name(options));
	return check_object(description, options, "", diag);
}

/* --- the action key */
static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void canonical(const json_t *value, struct lth_buf *out);

static void canonical_object(const json_t *object, struct lth_buf *out)
{
	size_t count = json_object_size(object), at = 0;
	const char **keys = calloc(count + 1, sizeof(*keys)), *key;
	json_t *value;
	if (!keys) {
		out->failed = true;
		return;
	}
	json_object_foreach((json_t *)(uintptr_t)object, key, value)
		keys[at++] = key;
	qsort(keys, count, sizeof(*keys), by_text); /* keys of one object differ: no ties */
	lth_buf_putc(out, '{');
	for (size_t i = 0; i < count; i++) {
		const json_t *member = json_object_get(object, keys[i]);
		if (json_is_null(member))
			continue;
		lth_buf_quote(out, keys[i]);
		lth_buf_putc(out, ':');
		canonical(member, out);
		lth_buf_putc(out, ',');
	}
	lth_buf_putc(out, '}');
	free(keys);
}

static void canonical(const json_t *value, struct lth_buf *out)
{
	size_t index;
	json_t *entry;
	switch (json_typeof(value)) {
	case JSON_OBJECT: canonical_object(value, out); return;
	case JSON_ARRAY:
		lth_buf_putc(out, '[');
		json_array_foreach((json_t *)(uintptr_t)value, index, entry) {
			canonical(entry, out);
			lth_buf_putc(out, ',');
		}
		lth_buf_putc(out, ']');
		return;
	case JSON_STRING: lth_buf_quote(out, json_string_value(value)); return;
	case JSON_INTEGER: lth_buf_printf(out, "%lld", (long long)json_integer_value(value)); return;
	case JSON_REAL: {
		double number = json_real_value(value);
		if (number == floor(number) && fabs(number) < 9e15)
			lth_buf_printf(out, "%lld", (long long)number);
		else
			lth_buf_double(out, number);
		return;
	}
	default: lth_buf_puts(out, json_is_true(value) ? "true" : json_is_false(value) ? "false" : "null"); return;
	}
}

static json_t *sorted_words(const json_t *list)
{
	size_t count = json_array_size(list), kept = 0;
	const char **words = calloc(count + 1, sizeof(*words));
	json_t *out = json_array();
	for (size_t i = 0; words && i < count; i++)
		if (json_is_string(json_array_get(list, i)))
			words[kept++] = json_string_value(json_array_get(list, i));
	if (words)
		qsort(words, kept, sizeof(*words), by_text);
	for (size_t i = 0; words && i < kept; i++)
		if (!i || strcmp(words[i], words[i - 1]) != 0)
			json_array_append_new(out, json_string(words[i]));
	free(words);
	return out;
}

enum lth_code lth_options_key(const struct lth_description *description, const char *model_digest, const json_t *files,
			      const json_t *options, const char *salt, char out_key[LTH_DIGEST_TEXT],
			      struct lth_diag *diag)
{
	struct lth_buf text = {0};
	lth_buf_printf(&text, "lathe.action/1\nbuild %s\nmodel %s\nsalt ", description->build, model_digest);
	lth_buf_quote(&text, salt);
	const json_t *host = json_object_get(description->root, "host");
	if (host)
		canonical(host, &text);
	lth_buf_puts(&text, "\nfiles ");
	if (files)
		canonical(files, &text);
	for (size_t i = 0; i < description->num_options; i++) {
		const struct lth_option_row *row = &description->options[i];
		const json_t *value = get(options, row->path);
		json_t *sorted = NULL;
		if (!row->in_key)
			continue;
		if (!value || json_is_null(value))
			value = row->standard;
		if (value && row->is_set && json_is_array(value))
			value = sorted = sorted_words(value);
		lth_buf_printf(&text, "\n%s ", row->path);
		if (value)
			canonical(value, &text);
		json_decref(sorted);
	}
	bool ok = lth_buf_ok(&text);
	if (ok)
		lth_sha256_text(text.data, text.size, out_key);
	lth_buf_free(&text);
	return ok ? LTH_OK : lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "action key", NULL, NULL, "its text");
}
