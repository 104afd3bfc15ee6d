/* From a bundle to the store. See publish.h. The bundle was written by a worker that had hostile input: every number in
 * its index is checked against the file before it is used. */
#include "daemon/publish.h"
#include "runtime/base/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const size_t BUNDLE_LIMIT = (size_t)8 << 30;

struct work {
	uv_work_t request;
	struct lth_publish publish;
	struct lth_answer *answer;
	struct lth_diag diag;
};

struct part {
	const char *name;
	const void *data;
	size_t size;
};

static enum lth_code damaged(struct lth_diag *diag, const char *what)
{
	return lth_diag_fail(diag, LTH_INTERNAL, "result bundle", NULL, NULL, "a damaged bundle: %s", what);
}

static bool slice(const struct lth_wire_view *bundle, const json_t *entry, struct part *out)
{
	json_int_t offset = json_integer_value(json_object_get(entry, "offset"));
	json_int_t bytes = json_integer_value(json_object_get(entry, "bytes"));
	if (offset < 0 || bytes < 0 || (uint64_t)offset > bundle->size ||
	    (uint64_t)bytes > bundle->size - (uint64_t)offset)
		return false;
	out->data = (const char *)bundle->data + offset;
	out->size = (size_t)bytes;
	return true;
}

/* A kernel's row of the index with its bytes, whose digest must be what the row says. */
static enum lth_code verified_part(const struct lth_wire_view *bundle, const json_t *entry, const char *key,
				   struct part *out, struct lth_diag *diag)
{
	char digest[LTH_DIGEST_TEXT];
	const char *claimed = json_string_value(json_object_get(entry, "digest"));
	out->name = json_string_value(json_object_get(entry, key));
	if (!out->name || !claimed || !slice(bundle, entry, out))
		return damaged(diag, "a row of the index");
	lth_sha256_text(out->data, out->size, digest);
	return strcmp(digest, claimed) == 0 ? LTH_OK : damaged(diag, "a digest differs");
}

/* An artifact that is a part of the bundle. */
static enum lth_code copy_range(struct work *work, const struct lth_wire_view *bundle, const json_t *row,
				struct part *part, char out_digest[LTH_DIGEST_TEXT])
{
	if (!slice(bundle, row, part))
		return damaged(&work->diag, "a row of the index");
	uint64_t offset = (uint64_t)((const char *)part->data - (const char *)bundle->data);
	return lth_store_put_range(work->publish.store, work->publish.bundle_fd, offset, part->data, part->size,
				   out_digest, &work->diag);
}

/* An artifact that is a file of the work folder; its name is made of a number. */
static enum lth_code take_file(struct work *work, const json_t *row, struct part *part,
			       char out_digest[LTH_DIGEST_TEXT])
{
	char *path;
	uint64_t size = 0;
	json_int_t number = json_integer_value(json_object_get(row, "file"));
	if (number < 0 || asprintf(&path, "%s/artifact-%lld", work->publish.work_dir, (long long)number) < 0)
		return damaged(&work->diag, "a row of the index");
	enum lth_code code = lth_store_take_file(work->publish.store, path, out_digest, &size, &work->diag);
	part->size = (size_t)size;
	free(path);
	return code;
}

static enum lth_code store_artifacts(struct work *work, const struct lth_wire_view *bundle, const json_t *rows,
				     json_t *out_list)
{
	size_t index;
	json_t *row;
	json_array_foreach((json_t *)(uintptr_t)rows, index, row) {
		struct part part = {.name = json_string_value(json_object_get(row, "kind"))};
		char digest[LTH_DIGEST_TEXT], url[32 + LTH_DIGEST_TEXT];
		if (!part.name)
			return damaged(&work->diag, "a row of the index");
		enum lth_code code = json_object_get(row, "file") ? take_file(work, row, &part, digest)
								  : copy_range(work, bundle, row, &part, digest);
		if (code != LTH_OK)
			return code;
		snprintf(url, sizeof(url), "/v1/blobs/%s", digest);
		json_array_append_new(out_list, json_pack("{s:s, s:s, s:I, s:s}", "kind", part.name, "digest", digest,
							  "bytes", (json_int_t)part.size, "url", url));
	}
	return LTH_OK;
}

static enum lth_code store_kernels(struct work *work, const struct lth_wire_view *bundle, const json_t *rows)
{
	size_t index;
	json_t *row;
	json_array_foreach((json_t *)(uintptr_t)rows, index, row) {
		struct part part;
		enum lth_code code = verified_part(bundle, row, "name", &part, &work->diag);
		if (code == LTH_OK)
			code = lth_store_put_kernel(work->publish.store, part.name, part.data, part.size, &work->diag);
		if (code != LTH_OK)
			return code;
	}
	return LTH_OK;
}

/* The document as it is stored: schema and action key first, then the worker's members in DESIGN's order with ours
 * among them. Takes nothing. */
static json_t *decorate(const struct work *work, json_t *document, json_t *artifacts)
{
	static const char *const before[] = {"compiler", "model"};
	json_t *out = json_pack("{s:s, s:s}", "schema", "lathe.result/1", "action_key", work->publish.key);
	for (int i = 0; i < 2; i++)
		if (json_object_get(document, before[i]))
			json_object_set(out, before[i], json_object_get(document, before[i]));
	json_t *model = json_object_get(out, "model");
	if (!json_is_object(model)) {
		model = json_object();
		json_object_set_new(out, "model", model);
	}
	if (!json_object_get(model, "digest"))
		json_object_set_new(model, "digest", json_string(work->publish.model));
	json_object_set(out, "artifacts", artifacts);
	json_t *timing = json_pack("{s:f}", "queue_ms", work->publish.queue_ms);
	json_object_update(timing, json_object_get(document, "timing"));
	json_object_set_new(timing, "queue_ms", json_real(work->publish.queue_ms));
	json_object_set_new(out, "timing", timing);
	json_object_update_missing(out, document);
	const char *const ours[] = {"id", "status", "cache"};
	for (int i = 0; i < 3; i++)
		json_object_del(out, ours[i]);
	return out;
}

static enum lth_code store_document(struct work *work, json_t *document, json_t *artifacts)
{
	char digest[LTH_DIGEST_TEXT], folder[16], name[LTH_DIGEST_TEXT];
	const char *model = json_string_value(json_object_get(json_object_get(document, "model"), "digest"));
	if (model && strcmp(model, work->publish.model) != 0)
		return lth_diag_fail(&work->diag, LTH_IO_ERROR, "model", work->publish.model, "PUT the model again",
				     "a worker that read %s", model);
	bool uncacheable =
		json_is_false(json_object_get(document, "cacheable")); /* e.g. a search that a clock cut short */
	json_t *decorated = decorate(work, document, artifacts);
	char *text = decorated ? json_dumps(decorated, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;
	json_decref(decorated);
	if (!text)
		return lth_diag_fail(&work->diag, LTH_OUT_OF_MEMORY, "result document", NULL, NULL, "its text");
	size_t size = strlen(text);
	enum lth_code code = lth_store_put(work->publish.store, text, size, digest, &work->diag);
	if (code == LTH_OK && !uncacheable) {
		char entry[160];
		int length = snprintf(entry, sizeof(entry), "{\"result\":\"%s\"}", digest);
		lth_store_action_name(work->publish.key, folder, name);
		code = lth_store_write_entry(work->publish.store, folder, name, entry, (size_t)length, &work->diag);
	}
	if (code != LTH_OK) {
		free(text);
		return code;
	}
	work->answer = lth_answer_create(text, size, digest);
	return work->answer ? LTH_OK : damaged(&work->diag, "a document that cannot be read back");
}

static enum lth_code publish_parts(struct work *work, const struct lth_wire_view *bundle, const json_t *index)
{
	struct part part = {0};
	if (!slice(bundle, json_object_get(index, "document"), &part))
		return damaged(&work->diag, "the document's place");
	json_t *document = json_loadb(part.data, part.size, JSON_REJECT_DUPLICATES, NULL), *artifacts = json_array();
	enum lth_code code = json_is_object(document) && artifacts ? LTH_OK : damaged(&work->diag, "the document");
	if (code == LTH_OK && !work->publish.key[0]) {
		char *text = strndup(part.data, part.size);
		work->answer = lth_answer_plain(text, part.size);
		if (!work->answer)
			code = lth_diag_fail(&work->diag, LTH_OUT_OF_MEMORY, "plan", NULL, NULL, "%zu bytes",
					     part.size);
		else if (work->publish.keep_plan)
			code = lth_store_put(work->publish.store, part.data, part.size, work->answer->plan_digest,
					     &work->diag);
	} else if (code == LTH_OK) {
		code = store_artifacts(work, bundle, json_object_get(index, "artifacts"), artifacts);
		if (code == LTH_OK)
			code = store_kernels(work, bundle, json_object_get(index, "kernels"));
		if (code == LTH_OK)
			code = store_document(work, document, artifacts);
	}
	json_decref(document);
	json_decref(artifacts);
	return code;
}

static void publish_bundle(struct work *work)
{
	struct lth_wire_view bundle;
	if (!lth_wire_map(work->publish.bundle_fd, BUNDLE_LIMIT, &bundle)) {
		lth_diag_fail(&work->diag, LTH_IO_ERROR, "result bundle", NULL, NULL, "%s", strerror(errno));
		return;
	}
	struct part part;
	json_t *place = json_pack("{s:I, s:I}", "offset", (json_int_t)work->publish.index_offset, "bytes",
				  (json_int_t)work->publish.index_bytes);
	json_t *index = place && slice(&bundle, place, &part)
				? json_loadb(part.data, part.size, JSON_REJECT_DUPLICATES, NULL)
				: NULL;
	if (index)
		(void)!publish_parts(work, &bundle, index);
	else
		damaged(&work->diag, "the index");
	json_decref(index);
	json_decref(place);
	lth_wire_unmap(&bundle);
}

static void run(uv_work_t *request)
{
	struct work *work = request->data;
	publish_bundle(work);
	lth_store_remove_tree(work->publish.work_dir);
	free(work->publish.work_dir);
}

static void after(uv_work_t *request, int status)
{
	struct work *work = request->data;
	if (status && work->diag.code == LTH_OK)
		lth_diag_fail(&work->diag, LTH_CANCELLED, "publishing", NULL, NULL, "%s", uv_strerror(status));
	close(work->publish.bundle_fd);
	if (work->diag.code != LTH_OK)
		lth_answer_release(&work->answer);
	work->publish.on_published(work->publish.context, work->answer, &work->diag);
	free(work);
}

bool lth_publish_begin(uv_loop_t *loop, const struct lth_publish *publish)
{
	struct work *work = calloc(1, sizeof(*work));
	if (!work)
		return false;
	work->publish = *publish;
	work->request.data = work;
	if (uv_queue_work(loop, &work->request, run, after) != 0) {
		free(work);
		return false;
	}
	return true;
}
