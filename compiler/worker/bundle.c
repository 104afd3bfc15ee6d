/* The bundle: everything that a job made in one file which the daemon opened. The daemon checks every number in it
 * before it believes any of it. */
#include "compiler/worker/worker.h"
#include "runtime/base/io.h"
#include "runtime/base/sha256.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static enum lth_code write_part(int fd, const void *data, size_t size, uint64_t *offset, struct lth_diag *diag)
{
	if (!lth_write_full(fd, data, size)) {
		enum lth_code code = errno == EFBIG    ? LTH_LIMIT_EXCEEDED
				     : errno == ENOSPC ? LTH_DISK_FULL
						       : LTH_IO_ERROR;
		return lth_diag_fail(diag, code, "result bundle", NULL, NULL, "%s after %llu bytes", strerror(errno),
				     (unsigned long long)*offset);
	}
	*offset += size;
	return LTH_OK;
}

/* Writes one named part and appends its row to `rows`. Artifacts are large, and the daemon hashes them anyway: they go
 * without a digest. */
static enum lth_code write_row(int fd, json_t *rows, const char *key, const char *name, const void *data, size_t size,
			       bool with_digest, uint64_t *offset, struct lth_diag *diag)
{
	char digest[LTH_DIGEST_TEXT];
	json_t *row = json_pack("{s:s, s:I, s:I}", key, name, "offset", (json_int_t)*offset, "bytes", (json_int_t)size);
	if (with_digest) {
		lth_sha256_text(data, size, digest);
		json_object_set_new(row, "digest", json_string(digest));
	}
	if (!row || json_array_append_new(rows, row) != 0)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "result bundle", NULL, NULL, "index of %s", name);
	return write_part(fd, data, size, offset, diag);
}

/* An artifact that is a file of the work folder already stays there for the daemon to take. */
static enum lth_code name_file(json_t *rows, size_t place, const struct lth_artifact *artifact, struct lth_diag *diag)
{
	json_t *row = json_pack("{s:s, s:I, s:I}", "kind", artifact->kind, "file", (json_int_t)place, "bytes",
				(json_int_t)artifact->size);
	if (!row || json_array_append_new(rows, row) != 0)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "result bundle", NULL, NULL, "index of %s",
				     artifact->kind);
	return LTH_OK;
}

static enum lth_code write_json(int fd, const json_t *value, uint64_t *offset, uint64_t *out_bytes,
				struct lth_diag *diag)
{
	char *text = json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(17));
	if (!text)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "result bundle", NULL, NULL, "JSON text");
	uint64_t begin = *offset;
	enum lth_code code = write_part(fd, text, strlen(text), offset, diag);
	if (code == LTH_OK)
		*out_bytes = *offset - begin;
	free(text);
	return code;
}

enum lth_code lth_worker_bundle(int fd, const struct lth_compile_result *result, uint64_t *out_index_offset,
				uint64_t *out_index_bytes, struct lth_diag *diag)
{
	uint64_t offset = 0, document_bytes = 0, index_bytes = 0;
	json_t *artifacts = json_array(), *kernels = json_array(), *index = NULL;
	enum lth_code code = write_json(fd, result->document, &offset, &document_bytes, diag);
	for (size_t i = 0; code == LTH_OK && i < result->num_artifacts; i++) {
		const struct lth_artifact *artifact = &result->artifacts[i];
		if (artifact->path)
			code = name_file(artifacts, i, artifact, diag);
		else
			code = write_row(fd, artifacts, "kind", artifact->kind, artifact->data, artifact->size, false,
					 &offset, diag);
	}
	for (size_t i = 0; code == LTH_OK && i < result->num_new_kernels; i++) {
		const struct lth_kernel_object *kernel = &result->new_kernels[i];
		code = write_row(fd, kernels, "name", kernel->name, kernel->data, kernel->size, true, &offset, diag);
	}
	if (code != LTH_OK)
		goto done;
	index = json_pack("{s:{s:i, s:I}, s:O, s:O}", "document", "offset", 0, "bytes", (json_int_t)document_bytes,
			  "artifacts", artifacts, "kernels", kernels);
	if (!index) {
		code = lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "result bundle", NULL, NULL, "index");
		goto done;
	}
	uint64_t index_offset = offset;
	code = write_json(fd, index, &offset, &index_bytes, diag);
	if (code == LTH_OK) {
		*out_index_offset = index_offset;
		*out_index_bytes = index_bytes;
	}
done:
	json_decref(index);
	json_decref(artifacts);
	json_decref(kernels);
	return code;
}
