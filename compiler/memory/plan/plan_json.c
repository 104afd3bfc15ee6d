/* Planning requests: reads buffers from CSV or JSON and options from a table, runs the planner or the checker, and
 * writes the answer. Thread rule: reentrant. */
#include "compiler/memory/plan/plan_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a request may set. */
struct job_options {
	struct lth_plan_options plan;
	struct lth_plan_reading reading;
};

enum option { OPTION_STRATEGY, OPTION_CAPACITY, OPTION_EFFORT, OPTION_SEED, OPTION_TIME_LIMIT, OPTION_ALIGNMENT,
	      NUM_OPTIONS };
static const char *const option_names[NUM_OPTIONS] = {"strategy",      "capacity", "effort", "seed",
						      "time_limit_ms", "alignment"};

static enum lth_code unknown(enum lth_code code, const char *place, const char *word, const char *const *names,
			     size_t count, struct lth_diag *diag)
{
	char advice[128] = "", expected[256] = "one of";
	const char *near = lth_nearest(word, names, count);
	for (size_t k = 0; k < count; k++) {
		size_t used = strlen(expected);
		snprintf(expected + used, sizeof(expected) - used, "%s %s", k ? "," : "", names[k]);
	}
	if (near)
		snprintf(advice, sizeof(advice), "did you mean '%s'?", near);
	return lth_diag_fail(diag, code, place, expected, advice, "'%s'", word);
}

static enum lth_code set_strategy(const json_t *value, struct job_options *options, struct lth_diag *diag)
{
	const char *names[LTH_NUM_PLAN];
	if (!json_is_string(value))
		return lth_diag_fail(diag, LTH_INVALID_OPTION, "strategy", "the name of a strategy", NULL,
				     "a value that is not text");
	for (size_t k = 0; k < LTH_NUM_PLAN; k++)
		names[k] = lth_plan_strategy_name((enum lth_plan_strategy)k);
	options->plan.strategy = lth_plan_strategy_by_name(json_string_value(value));
	if (options->plan.strategy == LTH_NUM_PLAN)
		return unknown(LTH_INVALID_OPTION, "strategy", json_string_value(value), names, LTH_NUM_PLAN, diag);
	return LTH_OK;
}

/* A whole number, or its decimal text, as query strings bring it. */
static bool whole_number(const json_t *value, int64_t *out_number)
{
	if (json_is_integer(value)) {
		*out_number = json_integer_value(value);
		return true;
	}
	const char *text = json_string_value(value);
	if (!text || !*text || strlen(text) > 18 || text[strspn(text, "0123456789")])
		return false;
	*out_number = strtoll(text, NULL, 10);
	return true;
}

static enum lth_code set_number(enum option option, const json_t *value, struct job_options *options,
				struct lth_diag *diag)
{
	const int64_t least = option == OPTION_ALIGNMENT ? 1 : 0;
	int64_t number = -1;
	char expected[64];
	if (!whole_number(value, &number) || number < least) {
		snprintf(expected, sizeof(expected), "a whole number of at least %" PRId64, least);
		char *found = json_dumps(value, JSON_ENCODE_ANY);
		enum lth_code code = lth_diag_fail(diag, LTH_INVALID_OPTION, option_names[option], expected, NULL,
						   "%.100s", found ? found : "another value");
		free(found);
		return code;
	}
	switch (option) {
	case OPTION_CAPACITY:
		options->plan.capacity = number;
		break;
	case OPTION_EFFORT:
		options->plan.effort = number;
		break;
	case OPTION_SEED:
		options->plan.seed = (uint64_t)number;
		break;
	case OPTION_TIME_LIMIT:
		options->plan.time_limit_ms = number;
		break;
	default:
		options->reading.alignment = number;
		break;
	}
	return LTH_OK;
}

static enum lth_code read_options(const json_t *object, struct job_options *options, struct lth_diag *diag)
{
	const char *key;
	json_t *value, *borrowed = (json_t *)(uintptr_t)object; /* jansson's iteration takes no const */
	if (object && !json_is_object(object))
		return lth_diag_fail(diag, LTH_INVALID_JSON, "options", "an object", NULL, "another value");
	json_object_foreach(borrowed, key, value) {
		size_t k = 0;
		while (k < NUM_OPTIONS && strcmp(option_names[k], key) != 0)
			k++;
		if (k == NUM_OPTIONS)
			return unknown(LTH_INVALID_OPTION, "options", key, option_names, NUM_OPTIONS, diag);
		enum lth_code code = k == OPTION_STRATEGY ? set_strategy(value, options, diag)
							  : set_number((enum option)k, value, options, diag);
		if (code != LTH_OK)
			return code;
	}
	return LTH_OK;
}

static enum lth_code read_id(const json_t *value, char *space, size_t size, const char **out_id, const char *place,
			     struct lth_diag *diag)
{
	if (json_is_integer(value)) {
		snprintf(space, size, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		*out_id = space;
		return LTH_OK;
	}
	if (!json_is_string(value) || !*json_string_value(value))
		return lth_diag_fail(diag, LTH_INVALID_JSON, place, "an id: text or a whole number", NULL,
				     "%s", value ? "another value" : "no member 'id'");
	*out_id = json_string_value(value);
	return LTH_OK;
}

static enum lth_code read_field(const json_t *row, const char *name, bool required, int64_t *value, const char *place,
				struct lth_diag *diag)
{
	const json_t *member = json_object_get(row, name);
	if (!member && !required)
		return LTH_OK;
	if (!json_is_integer(member))
		return lth_diag_fail(diag, LTH_INVALID_JSON, place, "a whole number below 2^63", NULL,
				     member ? "another value for '%s'" : "no member '%s'", name);
	*value = json_integer_value(member);
	return LTH_OK;
}

static enum lth_code check_members(const json_t *row, const char *place, struct lth_diag *diag)
{
	static const char *const names[] = {"id", "lower", "upper", "size", "alignment", "offset"};
	const size_t count = sizeof(names) / sizeof(names[0]);
	const char *key;
	json_t *value, *borrowed = (json_t *)(uintptr_t)row;
	json_object_foreach(borrowed, key, value) {
		size_t k = 0;
		while (k < count && strcmp(names[k], key) != 0)
			k++;
		if (k == count)
			return unknown(LTH_INVALID_JSON, place, key, names, count, diag);
	}
	return LTH_OK;
}

static enum lth_code read_buffer(const json_t *row, size_t index, const struct lth_plan_reading *reading,
				 struct lth_plan_table *table, struct lth_diag *diag)
{
	struct lth_buffer buffer = {.alignment = reading->alignment, .fixed_offset = -1};
	int64_t offset = LTH_PLAN_NO_OFFSET;
	char place[64], space[32];
	const char *id = NULL, *field = NULL;
	snprintf(place, sizeof(place), "buffers[%zu]", index);
	if (!json_is_object(row))
		return lth_diag_fail(diag, LTH_INVALID_JSON, place, "an object", NULL, "another value");
	enum lth_code code = check_members(row, place, diag);
	if (code == LTH_OK)
		code = read_id(json_object_get(row, "id"), space, sizeof(space), &id, place, diag);
	if (code == LTH_OK)
		code = read_field(row, "lower", true, &buffer.lower, place, diag);
	if (code == LTH_OK)
		code = read_field(row, "upper", true, &buffer.upper, place, diag);
	if (code == LTH_OK)
		code = read_field(row, "size", true, &buffer.size, place, diag);
	if (code == LTH_OK)
		code = read_field(row, "alignment", false, &buffer.alignment, place, diag);
	if (code == LTH_OK)
		code = read_field(row, "offset", false, &offset, place, diag);
	if (code != LTH_OK)
		return code;
	if (offset != LTH_PLAN_NO_OFFSET && reading->offsets_are_fixed)
		buffer.fixed_offset = offset >= 0 ? offset : -2; /* -1 means free */
	const char *fault = lth_plan_buffer_fault(&buffer, &field);
	if (fault)
		return lth_diag_fail(diag, LTH_INVALID_REQUEST, place, fault, NULL, "another '%s' in buffer '%s'",
				     field, id);
	if (!lth_plan_table_add(table, id, strlen(id), &buffer, offset))
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, place, NULL, NULL, "no room");
	return LTH_OK;
}

static enum lth_code read_json_buffers(const json_t *rows, const struct lth_plan_reading *reading,
				       struct lth_plan_table *table, struct lth_diag *diag)
{
	if (!json_is_array(rows))
		return lth_diag_fail(diag, LTH_INVALID_JSON, "buffers", "an array of objects", NULL, "%s",
				     rows ? "another value" : "no member 'buffers'");
	if (json_array_size(rows) > LTH_PLAN_MAX_BUFFERS)
		return lth_diag_fail(diag, LTH_TOO_LARGE, "buffers", "at most 16777216", NULL, "%zu buffers",
				     json_array_size(rows));
	for (size_t i = 0; i < json_array_size(rows); i++) {
		enum lth_code code = read_buffer(json_array_get(rows, i), i, reading, table, diag);
		if (code != LTH_OK)
			return code;
	}
	size_t repeated = lth_plan_table_repeated_id(table);
	if (repeated == SIZE_MAX)
		return LTH_OK;
	if (repeated == SIZE_MAX - 1)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "buffers", NULL, NULL, "no room");
	char place[64];
	snprintf(place, sizeof(place), "buffers[%zu]", repeated);
	return lth_diag_fail(diag, LTH_INVALID_REQUEST, place, "distinct ids", NULL, "id '%s' again",
			     table->ids[repeated]);
}

static enum lth_code read_json(const char *bytes, size_t size, const json_t *request, struct job_options *options,
			       struct lth_plan_table *table, struct lth_diag *diag)
{
	json_error_t error;
	json_t *body = json_loadb(bytes, size, JSON_REJECT_DUPLICATES, &error);
	if (!body) {
		char place[64];
		snprintf(place, sizeof(place), "%d:%d", error.line, error.column);
		return lth_diag_fail(diag, LTH_INVALID_JSON, place, "JSON", NULL, "%s", error.text);
	}
	enum lth_code code = LTH_OK;
	const char *key;
	json_t *value;
	if (!json_is_object(body))
		code = lth_diag_fail(diag, LTH_INVALID_JSON, "body", "an object with 'buffers'", NULL, "another value");
	json_object_foreach(body, key, value)
		if (code == LTH_OK && strcmp(key, "buffers") != 0 && strcmp(key, "options") != 0)
			code = lth_diag_fail(diag, LTH_INVALID_JSON, "body", "the members 'buffers' and 'options'",
					     NULL, "a member '%s'", key);
	if (code == LTH_OK)
		code = read_options(json_object_get(body, "options"), options, diag);
	if (code == LTH_OK)
		code = read_options(request, options, diag);
	if (code == LTH_OK)
		code = read_json_buffers(json_object_get(body, "buffers"), &options->reading, table, diag);
	json_decref(body);
	return code;
}

static enum lth_code read_request(const char *bytes, size_t size, bool csv, const json_t *request,
				  struct job_options *options, struct lth_plan_table *table, struct lth_diag *diag)
{
	options->plan.strategy = LTH_PLAN_EXACT;
	options->reading.alignment = 1;
	if (!csv)
		return read_json(bytes, size, request, options, table, diag);
	enum lth_code code = read_options(request, options, diag);
	return code == LTH_OK ? lth_plan_read_csv(bytes, size, &options->reading, table, diag) : code;
}

/* Refuses a capacity below the bound with the buffers that make it, the largest first. */
static enum lth_code name_the_peak(const struct lth_plan_table *table, int64_t capacity, struct lth_diag *diag)
{
	struct lth_plan_check check = {0};
	enum { NAMED = 8 };
	size_t largest[NAMED], count = 0, live = 0;
	enum lth_code code = lth_plan_check(table->buffers, table->offsets, table->count, &check, diag);
	if (code != LTH_OK)
		return code;
	for (size_t i = 0; i < table->count; i++) {
		const struct lth_buffer *b = &table->buffers[i];
		if (b->lower > check.live_bound_step || b->upper <= check.live_bound_step)
			continue;
		live++;
		size_t at = count < NAMED ? count++ : NAMED;
		for (; at > 0 && table->buffers[largest[at - 1]].size < b->size; at--)
			if (at < NAMED)
				largest[at] = largest[at - 1];
		if (at < NAMED)
			largest[at] = i;
	}
	char names[1024] = "", expected[160];
	for (size_t k = 0; k < count; k++) {
		size_t used = strlen(names);
		snprintf(names + used, sizeof(names) - used, "%s'%.64s' (%" PRId64 ")", k ? ", " : "",
			 table->ids[largest[k]], table->buffers[largest[k]].size);
	}
	snprintf(expected, sizeof(expected), "at least the live bound, %" PRId64 ": what lives at step %" PRId64,
		 check.live_bound_bytes, check.live_bound_step);
	return lth_diag_fail(diag, LTH_BUDGET_UNREACHABLE, "capacity", expected, NULL,
			     "%" PRId64 "; the largest of %zu buffers at that step: %s", capacity, live, names);
}

static enum lth_code run_plan(const struct lth_plan_table *table, const struct lth_plan_options *options,
			      struct lth_plan_result *out_result, struct lth_diag *diag)
{
	struct lth_diag reason = {0};
	struct lth_plan_options named = *options;
	named.names = (const char *const *)table->ids;
	enum lth_code code = lth_plan(table->buffers, table->count, &named, out_result, &reason);
	if (code == LTH_BUDGET_UNREACHABLE && strstr(reason.expected, "live bound"))
		return name_the_peak(table, options->capacity, diag);
	if (code != LTH_OK)
		return lth_diag_fail(diag, code, reason.place, reason.expected, reason.advice, "%s", reason.found);
	if (options->capacity == 0 || out_result->height <= options->capacity)
		return LTH_OK;
	bool proved = out_result->lower_bound_bytes > options->capacity;
	char expected[200];
	snprintf(expected, sizeof(expected),
		 "at least the height reached, %" PRId64 " (live bound %" PRId64 ", proved to need %" PRId64 ")",
		 out_result->height, out_result->live_bound_bytes, out_result->lower_bound_bytes);
	code = lth_diag_fail(diag, LTH_BUDGET_UNREACHABLE, "capacity", expected,
			     proved ? NULL : "or ask for more effort, or another seed",
			     "%" PRId64 ", which %s after %" PRId64 " nodes", options->capacity,
			     proved ? "is proved out of reach" : "was not reached", out_result->nodes);
	lth_plan_result_free(out_result);
	return code;
}

static json_t *write_answer(const struct lth_plan_table *table, const struct lth_plan_result *result,
			    enum lth_plan_strategy strategy)
{
	json_t *rows = json_array();
	for (size_t i = 0; i < table->count; i++)
		if (json_array_append_new(rows, json_pack("{s:s, s:I}", "id", table->ids[i], "offset",
							  (json_int_t)result->offsets[i])) != 0) {
			json_decref(rows);
			return NULL;
		}
	double gap = result->live_bound_bytes > 0
			     ? (double)(result->height - result->live_bound_bytes) / (double)result->live_bound_bytes
			     : 0;
	return json_pack("{s:I, s:I, s:I, s:f, s:s, s:s, s:I, s:b, s:o}", "height", (json_int_t)result->height,
			 "live_bound_bytes", (json_int_t)result->live_bound_bytes, "naive_bytes",
			 (json_int_t)result->naive_bytes, "gap", gap, "certificate", result->certificate_text,
			 "strategy", lth_plan_strategy_name(strategy), "nodes", (json_int_t)result->nodes, "cut_short",
			 (int)result->cut_short, "buffers", rows);
}

static enum lth_code no_answer(struct lth_diag *diag)
{
	return lth_diag_fail(diag, LTH_INVALID_REQUEST, "ids", "UTF-8 text", NULL,
			     "an id that cannot be written as JSON, or no memory for the answer");
}

enum lth_code lth_plan_job(const char *bytes, size_t size, bool csv, const json_t *options, json_t **out_answer,
			   struct lth_diag *diag)
{
	struct lth_plan_table table = {0};
	struct job_options job = {.reading = {.offsets_are_fixed = true}};
	struct lth_plan_result result = {0};
	enum lth_code code = read_request(bytes, size, csv, options, &job, &table, diag);
	if (code == LTH_OK)
		code = run_plan(&table, &job.plan, &result, diag);
	if (code == LTH_OK) {
		json_t *answer = write_answer(&table, &result, job.plan.strategy);
		if (answer)
			*out_answer = answer;
		else
			code = no_answer(diag);
	}
	lth_plan_result_free(&result);
	lth_plan_table_free(&table);
	return code;
}

static const char *const kind_names[LTH_NUM_VIOLATION] = {
	[LTH_VIOLATION_OVERLAP] = "overlap",
	[LTH_VIOLATION_NEGATIVE] = "negative",
	[LTH_VIOLATION_ALIGNMENT] = "alignment",
	[LTH_VIOLATION_FIXED] = "fixed",
};

static json_t *write_violation(const struct lth_plan_table *table, const struct lth_plan_violation *violation)
{
	json_t *ids = json_array();
	int bad = json_array_append_new(ids, json_string(table->ids[violation->first]));
	json_t *object = json_pack("{s:s, s:s, s:o}", "kind", kind_names[violation->kind], "text",
				   lth_plan_violation_text(violation->kind), "buffers", ids);
	if (violation->second != SIZE_MAX) {
		bad |= json_array_append_new(ids, json_string(table->ids[violation->second]));
		bad |= json_object_set_new(object, "step", json_integer(violation->step));
	}
	if (bad) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static json_t *write_check(const struct lth_plan_table *table, const struct lth_plan_check *check)
{
	const size_t room = sizeof(check->violations) / sizeof(check->violations[0]);
	json_t *violations = json_array();
	for (size_t k = 0; k < check->num_violations && k < room; k++)
		if (json_array_append_new(violations, write_violation(table, &check->violations[k])) != 0) {
			json_decref(violations);
			return NULL;
		}
	return json_pack("{s:b, s:I, s:I, s:I, s:o}", "valid", check->num_violations == 0, "height",
			 (json_int_t)check->height, "live_bound_bytes", (json_int_t)check->live_bound_bytes,
			 "num_violations", (json_int_t)check->num_violations, "violations", violations);
}

/* Every buffer needs an offset here. */
static enum lth_code need_offsets(const struct lth_plan_table *table, struct lth_diag *diag)
{
	for (size_t i = 0; i < table->count; i++) {
		if (table->offsets[i] != LTH_PLAN_NO_OFFSET)
			continue;
		char place[96];
		snprintf(place, sizeof(place), "buffer '%.64s'", table->ids[i]);
		return lth_diag_fail(diag, LTH_INVALID_REQUEST, place, "an offset for every buffer", NULL, "none");
	}
	return LTH_OK;
}

enum lth_code lth_plan_check_job(const char *bytes, size_t size, bool csv, const json_t *options, json_t **out_answer,
				 struct lth_diag *diag)
{
	struct lth_plan_table table = {0};
	struct job_options job = {0};
	struct lth_plan_check check = {0};
	enum lth_code code = read_request(bytes, size, csv, options, &job, &table, diag);
	if (code == LTH_OK)
		code = need_offsets(&table, diag);
	if (code == LTH_OK)
		code = lth_plan_check(table.buffers, table.offsets, table.count, &check, diag);
	if (code == LTH_OK) {
		json_t *answer = write_check(&table, &check);
		if (answer)
			*out_answer = answer;
		else
			code = no_answer(diag);
	}
	lth_plan_table_free(&table);
	return code;
}
