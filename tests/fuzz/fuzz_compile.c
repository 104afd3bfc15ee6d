/* Fuzz target of what lies between a model and machine code: import, inference, graph passes, groups, lowering, the
 * memory passes, with every verifier on. The model may be refused at any point, but nothing may turn out to be broken. */
#include "compiler/compile.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every level, by the bytes: a model is compiled at one of them, its mutants at others. */
static json_t *options_for(const uint8_t *data, size_t size)
{
	unsigned sum = 0;
	for (size_t i = 0; i < size; i++)
		sum = sum * 31 + data[i];
	return json_pack("{s:i, s:b, s:b, s:s, s:[s,s,s,s]}", "opt_level", (int)(sum >> 8 & 3), "symbolic",
			 (int)(sum >> 10 & 1), "verify", 1, "target", "x86-64-v3", "artifacts", "ir", "loops",
			 "program", "plan");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct lth_compile_file file = {"w.bin", "0123456789abcdef", 16};
	struct lth_compile_result result;
	struct lth_diag diag = {.code = LTH_OK};
	json_t *options = options_for(data, size);
	assert(options);
	struct lth_compile_request request = {
		.model = data, .model_size = size, .files = &file, .num_files = 1, .options = options, .jobs = 1};
	enum lth_code code = lth_compile(&request, &result, &diag);
	if (code == LTH_OK)
		lth_compile_result_free(&result);
	if (code == LTH_INTERNAL) {
		char line[4096];
		fprintf(stderr, "%s\n", lth_diag_line(&diag, line, sizeof(line)));
		abort();
	}
	json_decref(options);
	return 0;
}
