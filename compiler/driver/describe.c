/* What this build can do, from the tables. */
#include "compiler/driver/variant.h"

#include "compiler/emit/emit.h"
#include "compiler/ops/history.h"
#include "compiler/ops/op.h"
#include "config.h"
#include "runtime/base/io.h"
#include "runtime/base/sha256.h"

#include <stdlib.h>
#include <string.h>

static json_t *describe_passes(void)
{
	json_t *list = json_array();
	for (int i = 0; i < LTH_NUM_PASSES; i++)
		json_array_append_new(list, json_pack("{s:s, s:s, s:i, s:b, s:s}", "name", lth_passes[i].name, "kind",
						      lth_passes[i].kind == LTH_PASS_GRAPH ? "graph" : "memory",
						      "level", (int)lth_passes[i].level, "required",
						      lth_passes[i].required, "description",
						      lth_passes[i].description));
	return list;
}

/* The versions of the operator set in which an operator came or changed; none for Lathe's own. */
static json_t *versions_of(const char *domain, const char *name)
{
	json_t *list = json_array();
	const char *at = lth_op_versions(domain, name);
	for (char *end; *at; at = end)
		json_array_append_new(list, json_integer(strtoll(at, &end, 10)));
	return list;
}

static json_t *describe_op(const char *domain, const char *name, const char *lowering, const char *attrs,
			   const char *types, const char *summary)
{
	return json_pack("{s:s, s:s, s:o, s:s, s:s, s:s, s:s, s:i}", "domain", *domain ? domain : "ai.onnx", "name", name,
			 "versions", versions_of(domain, name), "lowering", lowering, "attributes", attrs, "types", types,
			 "summary", summary, "tests_passed", (int)lth_op_cases(domain, name));
}

static json_t *describe_ops(void)
{
	json_t *list = json_array();
	for (int i = 0; i < LTH_NUM_OPS; i++) {
		const struct lth_op *op = &lth_ops[i];
		json_array_append_new(list, describe_op(op->domain, op->name, lth_op_kind_text(op->kind), op->attrs,
							op->types, op->summary));
	}
	for (uint32_t i = 0; i < lth_num_op_histories; i++) {
		const struct lth_op_history *row = &lth_op_histories[i];
		if (!lth_op_find(row->domain, row->name))
			json_array_append_new(list, describe_op(row->domain, row->name, "import", "", "",
								LTH_OP_IMPORT_SUMMARY));
	}
	return list;
}

static json_t *describe_targets(void)
{
	json_t *list = json_array();
	for (unsigned i = 0; lth_codegen_target_name(i); i++)
		json_array_append_new(list, json_pack("{s:s, s:s}", "name", lth_codegen_target_name(i), "description",
						      lth_codegen_target_description(i)));
	return list;
}

static json_t *describe_problems(void)
{
	json_t *list = json_array();
	for (int i = 1; i < LTH_NUM_CODES; i++)
		json_array_append_new(list, json_pack("{s:s, s:i, s:i, s:s}", "slug", lth_code_slug((enum lth_code)i),
						      "http", lth_code_http((enum lth_code)i), "exit",
						      lth_code_exit((enum lth_code)i), "title",
						      lth_code_text((enum lth_code)i)));
	return list;
}

json_t *lth_describe_words(void)
{
	json_t *passes = json_array(), *targets = json_array();
	for (int i = 0; i < LTH_NUM_PASSES; i++)
		json_array_append_new(passes, json_string(lth_passes[i].name));
	for (unsigned i = 0; lth_codegen_target_name(i); i++)
		json_array_append_new(targets, json_string(lth_codegen_target_name(i)));
	return json_pack("{s:o, s:o}", "passes", passes, "targets", targets);
}

/* The build's identity: its own program file and the runtime it links, so that no cached answer outlives a change. */
static void build_digest(char out_digest[LTH_DIGEST_TEXT])
{
	char paths[4][4096] = {"/proc/self/exe"};
	lth_emit_runtime_file("rt-so.o", paths[1], sizeof(paths[1]));
	lth_emit_runtime_file("rt-exe.o", paths[2], sizeof(paths[2]));
	lth_emit_runtime_file("rt-media.o", paths[3], sizeof(paths[3]));
	struct lth_sha256 *hash = lth_sha256_create();
	out_digest[0] = 0;
	for (int i = 0; hash && i < 4; i++) {
		struct lth_diag ignored = {0};
		char *data;
		size_t size;
		if (lth_read_file(paths[i], 0, &data, &size, &ignored) != LTH_OK)
			continue;
		lth_sha256_update(hash, data, size);
		free(data);
	}
	if (hash)
		lth_sha256_finish(&hash, out_digest);
}

json_t *lth_describe(void)
{
	json_t *out = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "version", PACKAGE_VERSION, "llvm",
				lth_codegen_llvm_version(), "passes", describe_passes(), "ops", describe_ops(),
				"targets", describe_targets(), "options", lth_options_describe(), "problems",
				describe_problems());
	char digest[LTH_DIGEST_TEXT];
	build_digest(digest);
	if (out)
		json_object_set_new(out, "build", json_string(digest));
	return out;
}
