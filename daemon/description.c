/* The workers' description of themselves. See description.h. */
#include "daemon/description.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum lth_option_type type_by_name(const char *name)
{
	static const struct {
		const char *name;
		enum lth_option_type type;
	} types[] = {
		{"bool", LTH_OPTION_BOOL},     {"int", LTH_OPTION_INT},     {"number", LTH_OPTION_NUMBER},
		{"string", LTH_OPTION_STRING}, {"enum", LTH_OPTION_STRING}, {"list", LTH_OPTION_LIST},
		{"dims", LTH_OPTION_DIMS},     {"map", LTH_OPTION_MAP},     {"variants", LTH_OPTION_VARIANTS},
	};
	for (size_t i = 0; name && i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(types[i].name, name) == 0)
			return types[i].type;
	return LTH_OPTION_ANY; /* a newer worker's type: the worker checks it */
}

/* The words of a list whose entries are strings or objects with a name. */
static bool collect_words(const json_t *list, struct lth_option_row *row)
{
	size_t count = json_array_size(list);
	if (!count)
		return true;
	row->values = calloc(count, sizeof(*row->values));
	if (!row->values)
		return false;
	for (size_t i = 0; i < count; i++) {
		const json_t *entry = json_array_get(list, i);
		const char *word = json_is_string(entry) ? json_string_value(entry)
							 : json_string_value(json_object_get(entry, "name"));
		if (word)
			row->values[row->num_values++] = word;
	}
	return true;
}

static enum lth_code read_row(const json_t *root, const json_t *entry, struct lth_option_row *row,
			      struct lth_diag *diag)
{
	const char *singular = json_string_value(json_object_get(entry, "singular"));
	const char *from = json_string_value(json_object_get(entry, "values_from"));
	row->path = json_string_value(json_object_get(entry, "path"));
	if (!row->path)
		return lth_diag_fail(diag, LTH_INTERNAL, "description", "options with a path", NULL,
				     "an option without one");
	row->query_name = singular ? singular : row->path;
	row->type = type_by_name(json_string_value(json_object_get(entry, "type")));
	row->minimum = json_object_get(entry, "min");
	row->maximum = json_object_get(entry, "max");
	row->standard = json_object_get(entry, "default");
	row->is_set = json_is_true(json_object_get(entry, "set"));
	row->in_key = !json_is_false(json_object_get(entry, "key"));
	if (!collect_words(from ? json_object_get(root, from) : json_object_get(entry, "values"), row))
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "description", NULL, NULL, "words of %s", row->path);
	return LTH_OK;
}

static enum lth_code read_options(struct lth_description *fresh, struct lth_diag *diag)
{
	const json_t *options = json_object_get(fresh->root, "options");
	size_t count = json_array_size(options);
	fresh->options = calloc(count + 1, sizeof(*fresh->options));
	fresh->paths = calloc(count + 1, sizeof(*fresh->paths));
	fresh->query_names = calloc(count + 1, sizeof(*fresh->query_names));
	if (!fresh->options || !fresh->paths || !fresh->query_names)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "description", NULL, NULL, "%zu options", count);
	for (size_t i = 0; i < count; i++) {
		fresh->num_options = i + 1;
		enum lth_code code = read_row(fresh->root, json_array_get(options, i), &fresh->options[i], diag);
		if (code != LTH_OK)
			return code;
		fresh->paths[i] = fresh->options[i].path;
		fresh->query_names[i] = fresh->options[i].query_name;
	}
	return LTH_OK;
}

enum lth_code lth_description_load(struct lth_description *description, const char *text, size_t size,
				   struct lth_diag *diag)
{
	struct lth_description fresh = {0};
	json_error_t error;
	fresh.root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
	const char *build = json_string_value(json_object_get(fresh.root, "build"));
	enum lth_code code = LTH_OK;
	if (!build || strlen(build) >= sizeof(fresh.build))
		code = lth_diag_fail(diag, LTH_INTERNAL, "description", "an object with `build`", NULL, "%s",
				     fresh.root ? "none" : error.text);
	if (code == LTH_OK) {
		snprintf(fresh.build, sizeof(fresh.build), "%s", build);
		code = read_options(&fresh, diag);
	}
	if (code != LTH_OK) {
		lth_description_free(&fresh);
		return code;
	}
	lth_description_free(description);
	*description = fresh;
	return LTH_OK;
}

void lth_description_free(struct lth_description *description)
{
	for (size_t i = 0; i < description->num_options; i++)
		free(description->options[i].values);
	free(description->options);
	free(description->paths);
	free(description->query_names);
	json_decref(description->root);
	*description = (struct lth_description){0};
}

const struct lth_option_row *lth_description_option(const struct lth_description *description, const char *path)
{
	for (size_t i = 0; i < description->num_options; i++)
		if (strcmp(description->options[i].path, path) == 0)
			return &description->options[i];
	return NULL;
}
