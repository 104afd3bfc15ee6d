/* What this build can do, from the tables. */
#include "compiler/driver/variant.h"

#include "compiler/ops/op.h"
#include "config.h"
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

static json_t *describe_ops(void)
{
	json_t *list = json_array();
	for (int i = 0; i < LTH_NUM_OPS; i++) {
		const struct lth_op *op = &lth_ops[i];
		json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "domain",
						      *op->domain ? op->domain : "ai.onnx", "name", op->name,
						      "lowering", lth_op_kind_text(op->kind), "attributes", op->attrs, "types",
						      op->types, "summary", op->summary));
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

json_t *lth_describe(void)
{
	json_t *out = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "version", PACKAGE_VERSION, "llvm",
				lth_codegen_llvm_version(), "passes", describe_passes(), "ops", describe_ops(),
				"targets", describe_targets(), "options", lth_options_describe(), "problems",
				describe_problems());
	/* the build's identity: what it says of itself */
	char digest[LTH_DIGEST_TEXT];
	char *text = out ? json_dumps(out, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	if (!text) {
		json_decref(out);
		return NULL;
	}
	lth_sha256_text(text, strlen(text), digest);
	json_object_set_new(out, "build", json_string(digest));
	free(text);
	return out;
}
