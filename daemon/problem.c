/* Problem documents. See problem.h. */
#include "daemon/problem.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Diagnostics quote what clients and workers sent, which need not be UTF-8. */
static json_t *text_value(const char *text)
{
	json_t *value = json_string(text);
	if (value)
		return value;
	char *clean = strdup(text);
	if (!clean)
		return NULL;
	for (char *c = clean; *c; c++)
		*c = (char)(*c & 0x80 ? '?' : *c);
	value = json_string(clean);
	free(clean);
	return value;
}

static void set(json_t *problem, const char *key, const char *text)
{
	if (text[0])
		json_object_set_new(problem, key, text_value(text));
}

char *lth_problem_text(const struct lth_diag *diag, const json_t *extra)
{
	char line[4096], type[64];
	json_t *problem = json_object();
	snprintf(type, sizeof(type), "about:lathe:%s", lth_code_slug(diag->code));
	set(problem, "type", type);
	set(problem, "title", lth_code_text(diag->code));
	json_object_set_new(problem, "status", json_integer(lth_code_http(diag->code)));
	set(problem, "detail", lth_diag_line(diag, line, sizeof(line)));
	set(problem, "place", diag->place);
	set(problem, "found", diag->found);
	set(problem, "expected", diag->expected);
	set(problem, "advice", diag->advice);
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)extra, key, value)
		json_object_set(problem, key, value);
	char *text = problem ? json_dumps(problem, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
	json_decref(problem);
	return text;
}
