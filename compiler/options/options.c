/* Options of a compile. See options.h. */
#include "compiler/options/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct row {
	const char *path, *type, *singular, *values;
	int64_t min, max;
	const char *standard;
	bool set, key;
	const char *text;
} rows[LTH_NUM_OPTIONS] = {
#define LTH_OPTION(id, path, type, singular, values, min, max, standard, set, key, text) \
	[LTH_OPTION_ID_##id] = {path, #type, singular, values, min, max, standard, set, key, text},
#include "compiler/options/options.def"
#undef LTH_OPTION
};

static const json_t *at_path(const json_t *options, const char *path)
{
	char part[64];
	while (options && *path) {
		size_t length = strcspn(path, ".");
		snprintf(part, sizeof(part), "%.*s", (int)length, path);
		options = json_object_get(options, part);
		path += length + (path[length] == '.');
	}
	return options;
}

json_t *lth_option_defaults(void)
{
	json_t *list = json_array();
	for (int i = 0; list && i < LTH_NUM_OPTIONS; i++)
		json_array_append_new(list, json_loads(rows[i].standard, JSON_DECODE_ANY, NULL));
	return list;
}

const json_t *lth_option_get(const json_t *options, const json_t *defaults, enum lth_option_id id)
{
	const json_t *value = at_path(options, rows[id].path);
	return value ? value : json_array_get(defaults, id);
}

bool lth_option_given(const json_t *options, enum lth_option_id id)
{
	return at_path(options, rows[id].path) != NULL;
}

json_t *lth_options_overlay(const json_t *base, const json_t *overlay)
{
	json_t *out = base ? json_deep_copy(base) : json_object();
	const char *key;
	json_t *value;
	if (!out || !json_is_object(overlay))
		return out;
	/* iteration needs a mutable handle; nothing is changed through it */
	json_t *from = json_deep_copy(overlay);
	json_object_foreach(from, key, value)
	{
		const json_t *old = json_object_get(out, key);
		json_object_set_new(out, key,
				    json_is_object(value) && json_is_object(old) ? lth_options_overlay(old, value)
										: json_incref(value));
	}
	json_decref(from);
	return out;
}

static json_t *split_words(const char *values)
{
	json_t *list = json_array();
	while (*values) {
		size_t length = strcspn(values, " ");
		json_array_append_new(list, json_stringn(values, length));
		values += length + (values[length] == ' ');
	}
	return list;
}

json_t *lth_options_describe(void)
{
	json_t *list = json_array();
	for (int i = 0; list && i < LTH_NUM_OPTIONS; i++) {
		const struct row *row = &rows[i];
		json_t *out = json_pack("{s:s, s:s, s:b, s:b, s:s}", "path", row->path, "type", row->type, "set",
					row->set, "key", row->key, "description", row->text);
		json_object_set_new(out, "default", json_loads(row->standard, JSON_DECODE_ANY, NULL));
		if (row->singular)
			json_object_set_new(out, "singular", json_string(row->singular));
		if (row->values && row->values[0] == '@')
			json_object_set_new(out, "values_from", json_string(row->values + 1));
		else if (row->values)
			json_object_set_new(out, "values", split_words(row->values));
		if (row->min || row->max) {
			json_object_set_new(out, "min", json_integer(row->min));
			json_object_set_new(out, "max", json_integer(row->max));
		}
		json_array_append_new(list, out);
	}
	return list;
}

static const char *type_name(const json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT: return "an object";
	case JSON_ARRAY: return "a list";
	case JSON_STRING: return "a string";
	case JSON_INTEGER: return "an integer";
	case JSON_REAL: return "a real number";
	case JSON_TRUE:
	case JSON_FALSE: return "a bool";
	default: return "null";
	}
}

static enum lth_code wrong_type(const char *path, const char *expected, const json_t *found, struct lth_diag *diag)
{
	return lth_diag_fail(diag, LTH_INVALID_OPTION, path, expected, NULL, "%s", type_name(found));
}

/* "unknown X", with the nearest of the known ones. */
static enum lth_code unknown_word(const char *path, const char *word, const json_t *known, const char *what,
				  struct lth_diag *diag)
{
	size_t count = json_array_size(known);
	const char **names = calloc(count + 1, sizeof(*names));
	char advice[160] = "";
	for (size_t i = 0; names && i < count; i++)
		names[i] = json_string_value(json_array_get(known, i));
	const char *nearest = names ? lth_nearest(word, names, count) : NULL;
	if (nearest)
		snprintf(advice, sizeof(advice), "did you mean %s?", nearest);
	free(names);
	return lth_diag_fail(diag, LTH_INVALID_OPTION, path, NULL, advice, "the unknown %s '%s'", what, word);
}

static bool contains(const json_t *list, const char *word)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (strcmp(json_string_value(json_array_get(list, i)), word) == 0)
			return true;
	return false;
}

static enum lth_code check_word(const struct row *row, const json_t *value, const json_t *known,
				struct lth_diag *diag)
{
	if (!json_is_string(value))
		return wrong_type(row->path, "a string", value, diag);
	if (known && *json_string_value(value) && !contains(known, json_string_value(value)))
		return unknown_word(row->path, json_string_value(value), known,
				    row->values[0] == '@' ? "pass" : "value", diag);
	return LTH_OK;
}

static enum lth_code check_dims(const struct row *row, const json_t *value, struct lth_diag *diag)
{
	static const char *const members[] = {"min", "max", "hint", "multiple"};
	if (!json_is_object(value))
		return wrong_type(row->path, "an object of ranges", value, diag);
	json_t *copy = json_deep_copy(value), *range, *number;
	const char *name, *member;
	char place[300];
	enum lth_code code = LTH_OK;
	json_object_foreach(copy, name, range)
	{
		snprintf(place, sizeof(place), "%s.%s", row->path, name);
		if (!json_is_object(range)) {
			code = wrong_type(place, "an object with min, max, hint, multiple", range, diag);
			break;
		}
		json_object_foreach(range, member, number)
		{
			bool known = false;
			for (int i = 0; i < 4; i++)
				known |= strcmp(member, members[i]) == 0;
			if (!known || !json_is_integer(number) || json_integer_value(number) < 0)
				code = lth_diag_fail(diag, LTH_INVALID_OPTION, place,
						     "min, max, hint, multiple, each an integer of at least 0", NULL,
						     "'%s': %s", member, type_name(number));
		}
		int64_t low = json_integer_value(json_object_get(range, "min"));
		const json_t *high = json_object_get(range, "max");
		if (code == LTH_OK && high && json_integer_value(high) < low)
			code = lth_diag_fail(diag, LTH_INVALID_OPTION, place, "min <= max", NULL,
					     "min %lld, max %lld", (long long)low,
					     (long long)json_integer_value(high));
		if (code != LTH_OK)
			break;
	}
	json_decref(copy);
	return code;
}

static enum lth_code check_value(const struct row *row, const json_t *value, const json_t *known, const json_t *passes,
				 const json_t *targets, struct lth_diag *diag)
{
	enum lth_code code = LTH_OK;
	if (strcmp(row->type, "int") == 0) {
		if (!json_is_integer(value))
			return wrong_type(row->path, "an integer", value, diag);
		int64_t number = json_integer_value(value);
		bool bounded = row->min || row->max;
		char range[64];
		snprintf(range, sizeof(range), "%lld to %lld", (long long)row->min, (long long)row->max);
		if (bounded ? number < row->min || number > row->max : number < 0)
			return lth_diag_fail(diag, LTH_INVALID_OPTION, row->path, bounded ? range : "at least 0", NULL,
					     "%lld", (long long)number);
	} else if (strcmp(row->type, "bool") == 0) {
		if (!json_is_boolean(value))
			return wrong_type(row->path, "true or false", value, diag);
	} else if (strcmp(row->type, "string") == 0) {
		return check_word(row, value, known, diag);
	} else if (strcmp(row->type, "list") == 0) {
		if (!json_is_array(value))
			return wrong_type(row->path, "a list of strings", value, diag);
		for (size_t i = 0; i < json_array_size(value) && code == LTH_OK; i++)
			code = check_word(row, json_array_get(value, i), known, diag);
	} else if (strcmp(row->type, "dims") == 0) {
		return check_dims(row, value, diag);
	} else if (strcmp(row->type, "map") == 0) {
		if (!json_is_object(value))
			return wrong_type(row->path, "an object of integers", value, diag);
	} else if (strcmp(row->type, "variants") == 0) {
		if (!json_is_array(value))
			return wrong_type(row->path, "a list of option overlays", value, diag);
		for (size_t i = 0; i < json_array_size(value) && code == LTH_OK; i++) {
			const json_t *overlay = json_array_get(value, i);
			if (json_object_get(overlay, "variants"))
				return lth_diag_fail(diag, LTH_INVALID_OPTION, row->path, NULL, NULL,
						     "variants within a variant");
			code = lth_compile_options_check(overlay, passes, targets, diag);
		}
	}
	return code;
}

/* Every member must be an option or lead to one. */
static enum lth_code check_names(const json_t *options, const char *prefix, struct lth_diag *diag)
{
	json_t *copy = json_deep_copy(options), *value;
	const char *key;
	enum lth_code code = LTH_OK;
	json_object_foreach(copy, key, value)
	{
		char path[256];
		bool is_option = false, leads = false;
		snprintf(path, sizeof(path), "%s%s", prefix, key);
		size_t length = strlen(path);
		for (int i = 0; i < LTH_NUM_OPTIONS; i++) {
			is_option |= strcmp(rows[i].path, path) == 0;
			leads |= strncmp(rows[i].path, path, length) == 0 && rows[i].path[length] == '.';
		}
		if (!is_option && leads && json_is_object(value)) {
			snprintf(path + length, sizeof(path) - length, ".");
			code = check_names(value, path, diag);
		} else if (!is_option) {
			json_t *known = json_array();
			for (int i = 0; i < LTH_NUM_OPTIONS; i++)
				json_array_append_new(known, json_string(rows[i].path));
			code = unknown_word(path, path, known, "option", diag);
			json_decref(known);
		}
		if (code != LTH_OK)
			break;
	}
	json_decref(copy);
	return code;
}

enum lth_code lth_compile_options_check(const json_t *options, const json_t *passes, const json_t *targets,
					struct lth_diag *diag)
{
	if (!options)
		return LTH_OK;
	if (!json_is_object(options))
		return wrong_type("options", "an object", options, diag);
	enum lth_code code = check_names(options, "", diag);
	for (int i = 0; i < LTH_NUM_OPTIONS && code == LTH_OK; i++) {
		const json_t *value = at_path(options, rows[i].path);
		if (!value)
			continue;
		json_t *known = NULL;
		if (rows[i].values && rows[i].values[0] == '@')
			known = json_deep_copy(strcmp(rows[i].values, "@passes") == 0 ? passes : targets);
		else if (rows[i].values)
			known = split_words(rows[i].values);
		code = check_value(&rows[i], value, known, passes, targets, diag);
		json_decref(known);
	}
	return code;
}
