/* One compile: bytes in, artifacts and the result document out. compile.c holds the way of the data in one function.
 * Thread rule: one compile a thread at a time; no state outside the request and the result. */
#ifndef LTH_COMPILE_H
#define LTH_COMPILE_H

#include "runtime/base/diag.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file the model refers to: ONNX external data by its relative path, or a constant by digest ("sha256:..."). */
struct lth_compile_file {
	const char *name;
	const void *data;
	size_t size;
};

struct lth_compile_request {
	const void *model; /* ONNX bytes, or JSON graph IR when `model_is_json` */
	size_t model_size;
	bool model_is_json;
	const char *model_digest; /* when the caller has hashed the bytes; else NULL */
	const struct lth_compile_file *files;
	size_t num_files;
	const json_t *options;     /* an object as compiler/options/options.def describes; NULL for all defaults */
	const char *kernel_cache;  /* folder with NAME.o per cached kernel, read only; NULL for none */
	const char *work_dir;      /* an empty folder of this compile's own, for the linker; the caller removes it */
	uint64_t deadline_ns;      /* by lth_now_ns: measured runs that are not done then are given up; 0 for none */
	unsigned jobs;             /* threads for code generation, at least 1 */
	/* Told the name of each stage as it begins ("import", "passes", "codegen", ...); may be NULL. Non-zero cancels. */
	int (*on_stage)(void *context, const char *stage);
	void (*on_pass)(void *context, const char *pass); /* and of each pass, graph and memory; may be NULL */
	void *on_stage_context;                           /* of both */
};

struct lth_artifact {
	char *kind; /* as asked: "so", "exe", "a", "obj", "ir", "program", "plan", "asm", "llvm" */
	void *data;
	size_t size;
	char *path; /* NULL, or the file in work_dir that has the bytes and nobody writes any more: `data` is its map */
};
/* What an artifact owns; the file is work_dir's. */
void lth_artifact_free(struct lth_artifact *artifact);

struct lth_kernel_object {
	char *name; /* hex identity of the kernel: its file is NAME.o in the cache */
	void *data;
	size_t size;
};

struct lth_compile_result {
	json_t *document; /* the result document without what the daemon adds: id, action_key, cache, queue_ms, digests, urls */
	struct lth_artifact *artifacts; /* in the order asked for, the first variant's */
	size_t num_artifacts;
	struct lth_kernel_object *new_kernels; /* compiled now, not found in the cache */
	size_t num_new_kernels;
};

/* On failure `*out_result` is untouched and `diag` says why. The caller owns the result. */
LTH_MUST_CHECK enum lth_code lth_compile(const struct lth_compile_request *request,
					 struct lth_compile_result *out_result, struct lth_diag *diag);
void lth_compile_result_free(struct lth_compile_result *result);

/* What this build can do, as one JSON object: {"version", "llvm", "build" (digest of this build), "passes" [{name, level,
 * kind, required, description}], "ops" [{domain, name, ...}], "targets" [...], "options" [{path, type, default, ...}],
 * "problems" [{slug, http, exit, title}]}. NULL when out of memory; the caller owns it. */
json_t *lth_describe(void);

#endif
