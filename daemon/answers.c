/* Finished results. See answers.h. */
#include "daemon/answers.h"
#include "runtime/base/buf.h"
#include "runtime/base/io.h"

#include <stdlib.h>
#include <string.h>

enum { WAYS = 4, DOCUMENT_LIMIT = 64 << 20 };
static const char prefix[] = "{\"schema\":\"lathe.result/1\",";

static double number_at(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

static char *server_timing(const json_t *document)
{
	struct lth_buf text = {0};
	size_t index;
	json_t *phase, *timing = json_object_get(document, "timing");
	lth_buf_printf(&text, "queue;dur=%.6g", number_at(timing, "queue_ms"));
	json_array_foreach(json_object_get(timing, "phases"), index, phase) {
		const char *name = json_string_value(json_object_get(phase, "name"));
		if (!name || name[strcspn(name, "\",;= \r\n\t")])
			continue;
		lth_buf_printf(&text, ", %s;dur=%.6g", name, number_at(phase, "ms"));
	}
	if (json_object_get(timing, "total_ms"))
		lth_buf_printf(&text, ", total;dur=%.6g", number_at(timing, "total_ms"));
	return lth_buf_ok(&text) ? text.data : NULL;
}

static void print_figure(struct lth_buf *text, const char *label, const json_t *object, const char *key,
			 const char *unit)
{
	const json_t *value = json_object_get(object, key);
	if (json_is_number(value))
		lth_buf_printf(text, "  %-22s %.*f%s\n", label ? label : "-", json_is_integer(value) ? 0 : 3,
			       json_number_value(value), unit);
}

static char *summary(const json_t *document, const struct lth_answer *answer)
{
	struct lth_buf text = {0};
	size_t index;
	json_t *entry, *timing = json_object_get(document, "timing"), *memory = json_object_get(document, "memory");
	const json_t *measure = json_object_get(document, "measure");
	const char *model = json_string_value(json_object_get(json_object_get(document, "model"), "digest"));
	lth_buf_printf(&text, "model %s\n", model ? model : "-");
	for (size_t i = 0; i < answer->num_artifacts; i++)
		lth_buf_printf(&text, "artifact %s  %llu bytes  /v1/blobs/%s\n", answer->artifacts[i].kind,
			       (unsigned long long)answer->artifacts[i].bytes, answer->artifacts[i].digest);
	lth_buf_puts(&text, "time\n");
	print_figure(&text, "queue", timing, "queue_ms", " ms");
	json_array_foreach(json_object_get(timing, "phases"), index, entry)
		print_figure(&text, json_string_value(json_object_get(entry, "name")), entry, "ms", " ms");
	print_figure(&text, "total", timing, "total_ms", " ms");
	if (json_is_object(memory)) {
		const char *certificate = json_string_value(json_object_get(memory, "certificate"));
		lth_buf_puts(&text, "memory\n");
		print_figure(&text, "without reuse", memory, "naive_bytes", " bytes");
		print_figure(&text, "live bound", memory, "live_bound_bytes", " bytes");
		print_figure(&text, "arena", memory, "arena_bytes", " bytes");
		print_figure(&text, "constants", memory, "constants_bytes", " bytes");
		print_figure(&text, "allocations a run", memory, "allocations_per_run", "");
		print_figure(&text, "copies a run", memory, "copies_per_run", "");
		if (certificate)
			lth_buf_printf(&text, "  %-22s %s\n", "certificate", certificate);
	}
	if (json_is_object(measure)) {
		const json_t *latency = json_object_get(measure, "latency_us");
		lth_buf_puts(&text, "measured\n");
		print_figure(&text, "latency, median", latency, "p50", " us");
		print_figure(&text, "latency, least", latency, "min", " us");
		print_figure(&text, "peak", measure, "peak_bytes", " bytes");
	}
	return lth_buf_ok(&text) ? text.data : NULL;
}

static bool read_artifacts(const json_t *list, struct lth_answer *answer)
{
	size_t count = json_array_size(list), index;
	json_t *entry;
	answer->artifacts = calloc(count + 1, sizeof(*answer->artifacts));
	if (!answer->artifacts)
		return false;
	json_array_foreach((json_t *)(uintptr_t)list, index, entry) {
		struct lth_answer_artifact *artifact = &answer->artifacts[index];
		const char *kind = json_string_value(json_object_get(entry, "kind"));
		const char *digest = json_string_value(json_object_get(entry, "digest"));
		if (!kind || strlen(kind) >= sizeof(artifact->kind) || !digest || !lth_digest_valid(digest))
			return false;
		strcpy(artifact->kind, kind);
		strcpy(artifact->digest, digest);
		artifact->bytes = (uint64_t)json_integer_value(json_object_get(entry, "bytes"));
		answer->num_artifacts = index + 1;
	}
	return true;
}

struct lth_answer *lth_answer_plain(char *document, size_t size)
{
	struct lth_answer *answer = document ? calloc(1, sizeof(*answer)) : NULL;
	if (!answer) {
		free(document);
		return NULL;
	}
	*answer = (struct lth_answer){.references = 1, .document = document, .size = size};
	return answer;
}

struct lth_answer *lth_answer_create(char *document, size_t size, const char *digest)
{
	struct lth_answer *answer = lth_answer_plain(document, size);
	if (!answer)
		return NULL;
	json_t *root = NULL;
	bool ok = size > sizeof(prefix) && memcmp(document, prefix, sizeof(prefix) - 1) == 0;
	if (ok)
		root = json_loadb(document, size, JSON_REJECT_DUPLICATES, NULL);
	ok = root && read_artifacts(json_object_get(root, "artifacts"), answer);
	if (ok) {
		snprintf(answer->digest, sizeof(answer->digest), "%s", digest);
		answer->cacheable = !json_is_false(json_object_get(root, "cacheable"));
		answer->server_timing = server_timing(root);
		answer->summary = summary(root, answer);
		answer->peak_bytes = (uint64_t)json_integer_value(
			json_object_get(json_object_get(root, "compile"), "peak_rss_bytes"));
		ok = answer->server_timing && answer->summary;
	}
	json_decref(root);
	if (!ok)
		lth_answer_release(&answer);
	return answer;
}

struct lth_answer *lth_answer_share(struct lth_answer *answer)
{
	answer->references++;
	return answer;
}

void lth_answer_release(struct lth_answer **answer)
{
	if (*answer && --(*answer)->references == 0) {
		if ((*answer)->reply)
			(*answer)->free_reply((*answer)->reply);
		free((*answer)->document);
		free((*answer)->artifacts);
		free((*answer)->server_timing);
		free((*answer)->summary);
		free(*answer);
	}
	*answer = NULL;
}

bool lth_answer_complete(const struct lth_answer *answer, const struct lth_store *store)
{
	bool complete = lth_store_use(store, answer->digest);
	for (size_t i = 0; complete && i < answer->num_artifacts; i++)
		complete = lth_store_use(store, answer->artifacts[i].digest);
	return complete;
}

char *lth_answer_text(const struct lth_answer *answer, const char *cache, size_t *out_size)
{
	struct lth_buf text = {0};
	if (!answer->digest[0]) {
		lth_buf_append(&text, answer->document, answer->size);
	} else {
		lth_buf_puts(&text, prefix);
		lth_buf_printf(&text, "\"id\":\"%s\",\"status\":\"done\",\"cache\":\"%s\",", answer->digest + 7, cache);
		lth_buf_append(&text, answer->document + sizeof(prefix) - 1, answer->size - (sizeof(prefix) - 1));
	}
	lth_buf_putc(&text, '\n');
	if (!lth_buf_ok(&text)) {
		lth_buf_free(&text);
		return NULL;
	}
	*out_size = text.size;
	return text.data;
}

/* --- the cache */
static size_t first_slot(const char *key)
{
	char part[5] = {key[7], key[8], key[9], key[10], 0};
	return strtoul(part, NULL, 16) % (LTH_ANSWERS_SLOTS / WAYS) * WAYS;
}

static void forget(struct lth_answers *answers, size_t slot)
{
	if (answers->slots[slot].answer)
		answers->bytes -= answers->slots[slot].answer->size;
	lth_answer_release(&answers->slots[slot].answer);
}

void lth_answers_keep(struct lth_answers *answers, const char *key, struct lth_answer *answer)
{
	size_t first = first_slot(key), victim = first;
	if (answer->size > LTH_ANSWERS_BYTES / 8)
		return;
	for (size_t slot = first; slot < first + WAYS; slot++) {
		if (answers->slots[slot].answer && strcmp(answers->slots[slot].key, key) == 0) {
			victim = slot;
			break;
		}
		if (answers->slots[slot].used < answers->slots[victim].used)
			victim = slot;
	}
	forget(answers, victim);
	for (size_t slot = 0; answers->bytes + answer->size > LTH_ANSWERS_BYTES && slot < LTH_ANSWERS_SLOTS; slot++)
		forget(answers, slot); /* rare: documents are a few KB */
	strcpy(answers->slots[victim].key, key);
	answers->slots[victim].answer = lth_answer_share(answer);
	answers->slots[victim].used = ++answers->clock;
	answers->slots[victim].checked_ns = 0;
	answers->bytes += answer->size;
}

void lth_answers_clear(struct lth_answers *answers)
{
	for (size_t slot = 0; slot < LTH_ANSWERS_SLOTS; slot++)
		forget(answers, slot);
}

static struct lth_answer *load(struct lth_store *store, const char *digest)
{
	struct lth_diag diag = {0};
	char *text;
	size_t size;
	if (lth_store_read(store, digest, DOCUMENT_LIMIT, &text, &size, &diag) != LTH_OK)
		return NULL;
	return lth_answer_create(text, size, digest);
}

static bool still_complete(struct lth_answers *answers, size_t slot, struct lth_store *store)
{
	static const uint64_t FRESH_NS = 1000000000;
	uint64_t now = lth_now_ns(), removed = atomic_load(&store->removed);
	if (answers->slots[slot].removed == removed && now - answers->slots[slot].checked_ns < FRESH_NS)
		return true;
	answers->slots[slot].checked_ns = now;
	answers->slots[slot].removed = removed;
	return lth_answer_complete(answers->slots[slot].answer, store);
}

struct lth_answer *lth_answers_find(struct lth_answers *answers, struct lth_store *store, const char *key)
{
	char folder[16], name[LTH_DIGEST_TEXT];
	size_t first = first_slot(key);
	for (size_t slot = first; slot < first + WAYS; slot++) {
		if (!answers->slots[slot].answer || strcmp(answers->slots[slot].key, key) != 0)
			continue;
		if (!still_complete(answers, slot, store)) {
			forget(answers, slot);
			return NULL;
		}
		answers->slots[slot].used = ++answers->clock;
		return lth_answer_share(answers->slots[slot].answer);
	}
	lth_store_action_name(key, folder, name);
	json_t *entry = lth_store_read_entry(store, folder, name);
	const char *digest = json_string_value(json_object_get(entry, "result"));
	struct lth_answer *answer = digest && lth_digest_valid(digest) ? load(store, digest) : NULL;
	json_decref(entry);
	if (answer && !lth_answer_complete(answer, store))
		lth_answer_release(&answer);
	if (answer)
		lth_answers_keep(answers, key, answer);
	return answer;
}

struct lth_answer *lth_answers_plan(struct lth_store *store, const char *digest)
{
	struct lth_diag diag = {0};
	char *text;
	size_t size;
	if (lth_store_read(store, digest, DOCUMENT_LIMIT, &text, &size, &diag) != LTH_OK)
		return NULL;
	return lth_answer_plain(text, size);
}

struct lth_answer *lth_answers_by_id(struct lth_store *store, const char *id)
{
	char digest[LTH_DIGEST_TEXT + 1];
	snprintf(digest, sizeof(digest), "sha256:%s", id);
	return lth_digest_valid(digest) ? load(store, digest) : NULL;
}
