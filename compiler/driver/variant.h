/* One variant of a compile from graph to artifacts: what each stage of compile.c reads and fills in. Shared by the files
 * of driver/ only. Thread rule: a compile's own. */
#ifndef LTH_DRIVER_VARIANT_H
#define LTH_DRIVER_VARIANT_H

#include "compiler/codegen/codegen.h"
#include "compiler/compile.h"
#include "compiler/memory/memory.h"
#include "compiler/options/options.h"
#include "compiler/passes/groups.h"
#include "compiler/passes/pass.h"

enum { LTH_MAX_PHASES = 16, LTH_MAX_RECORDS = 2 * LTH_NUM_PASSES };

struct lth_phase {
	const char *name;
	double ms;
};

struct lth_variant {
	const struct lth_compile_request *request;
	struct lth_diag *diag;
	json_t *options, *defaults; /* this variant's, resolved by lth_option_get */
	struct lth_arena *arena;

	/* resolved options */
	unsigned opt_level;
	struct lth_pass_set passes;
	struct lth_codegen_target target;
	struct lth_lower_target lower_target;
	struct lth_memory_options memory_options;
	int64_t threads;
	bool verify;
	bool is_first; /* the one whose artifacts are given out */

	/* the way of the data */
	struct lth_graph *graph;
	uint32_t model_nodes; /* as imported */
	struct lth_buf ir_text;
	struct lth_access *accesses;
	bool *is_view;
	struct lth_groups groups;
	struct lth_region_steps *regions;
	struct lth_codegen_kernel *kernels; /* one a kernel step, in order */
	uint32_t num_kernels, num_objects; /* steps, and distinct kernels among them */
	struct lth_program *program;
	struct lth_constants constants;
	struct lth_memory_report memory_report;
	struct lth_order_report order_report;
	uint32_t recomputed; /* values, by Rematerialize */
	struct lth_codegen_result code;
	struct lth_artifact *artifacts;
	size_t num_artifacts;
	char *library; /* path of the shared object for measuring, when asked for */

	/* the ledger */
	struct lth_phase phases[LTH_MAX_PHASES];
	size_t num_phases;
	struct lth_pass_record records[LTH_MAX_RECORDS];
	size_t num_records;
	double total_ms, cpu_ms; /* cpu_ms: all threads, the linker too */
	json_t *measured; /* the result document's `measure`, or NULL */
};

/* Values of this variant's options. */
const json_t *lth_variant_option(const struct lth_variant *variant, enum lth_option_id id);
int64_t lth_variant_int(const struct lth_variant *variant, enum lth_option_id id);
bool lth_variant_wants(const struct lth_variant *variant, const char *artifact);
/* Is machine code needed? Not where all that was asked for are texts; comparing variants is about the whole compile. */
bool lth_variant_needs_code(const struct lth_variant *variant);

/* resolve.c: options to the fields above. */
LTH_MUST_CHECK enum lth_code lth_variant_resolve(struct lth_variant *variant);
/* steps.c: groups to kernels in loop IR and steps for ManifestAlloc. */
LTH_MUST_CHECK enum lth_code lth_variant_lower(struct lth_variant *variant);
/* memory_passes.c: ManifestAlloc and the memory passes, each with its record. */
LTH_MUST_CHECK enum lth_code lth_variant_memory(struct lth_variant *variant);
/* artifacts.c: what was asked for, as bytes. */
LTH_MUST_CHECK enum lth_code lth_variant_artifacts(struct lth_variant *variant);
/* measure.c: runs all variants interleaved in a child process and fills in `measured` of each. */
LTH_MUST_CHECK enum lth_code lth_variant_measure(struct lth_variant *variants, size_t count);
/* describe.c: the words that options may use: {"passes": [...], "targets": [...]}. The caller owns it. */
json_t *lth_describe_words(void);
/* document.c */
json_t *lth_variant_document(struct lth_variant *variants, size_t count);

#endif
